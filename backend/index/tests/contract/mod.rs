//! What every index does, whatever keeps it.

use anyhow::{Context as _, Result, ensure};
use colloquy_index::{
    analysis::Language,
    chunking::{Chunk, ChunkOptions, chunk},
    fusion::FusionParameters,
    search::{
        Change, Form, IndexError, IndexedDocument, PackedVector, Passage, Place, Question,
        SearchIndex, SearchRequest, Space, Stream,
    },
};
use uuid::Uuid;

/// A vector for a text: each word is a direction, and close words are not.
pub(crate) fn vector(text: &str) -> Vec<f32> {
    let mut vector = vec![0.01; 64];
    for word in text.to_lowercase().split(|c: char| !c.is_alphanumeric()) {
        if !word.is_empty() {
            let hash = word
                .bytes()
                .fold(7_usize, |hash, byte| hash * 31 % 65_521 + usize::from(byte));
            vector[hash % 64] += 1.0;
        }
    }
    vector
}

pub(crate) fn space(base: u128, generation: u32) -> Space {
    Space {
        base: Uuid::from_u128(base),
        generation,
    }
}

pub(crate) fn cut(markdown: &str) -> Vec<Chunk> {
    chunk(markdown, "", ChunkOptions::of(24), &|text| {
        text.split_whitespace().count()
    })
}

pub(crate) fn document(id: u128, markdown: &str) -> IndexedDocument {
    let chunks = cut(markdown).into_iter().map(|chunk| {
        let vector = vector(&chunk.passage());
        (chunk, vector.as_slice().into())
    });
    IndexedDocument {
        id: Uuid::from_u128(id),
        language: Some(Language::from_tag("en")),
        chunks: chunks.collect(),
    }
}

pub(crate) fn question(space: Space, text: &str) -> SearchRequest {
    SearchRequest {
        space,
        original: Question {
            text: text.to_owned(),
            vector: Some(vector(text)),
        },
        replaced: None,
        fusion: FusionParameters::default(),
    }
}

pub(crate) async fn ask(index: &dyn SearchIndex, space: Space, text: &str) -> Result<Vec<Passage>> {
    Ok(index.search(question(space, text)).await?.passages)
}

fn texts(passages: &[Passage]) -> Vec<&str> {
    passages
        .iter()
        .map(|passage| passage.text.as_str())
        .collect()
}

/// Runs all of it on an empty index.
pub(crate) async fn run(index: &dyn SearchIndex) -> Result<()> {
    what_was_put_is_found(index)
        .await
        .context("what_was_put_is_found")?;
    a_document_is_replaced_as_a_whole(index)
        .await
        .context("a_document_is_replaced")?;
    bases_and_generations_are_apart(index)
        .await
        .context("bases_and_generations_are_apart")?;
    same_content_is_one_passage(index)
        .await
        .context("same_content_is_one_passage")?;
    every_stream_has_its_share(index)
        .await
        .context("every_stream_has_its_share")?;
    vectors_are_ordered_by_what_is_near(index)
        .await
        .context("vectors_are_ordered_by_what_is_near")?;
    what_does_not_fit_changes_nothing(index)
        .await
        .context("what_does_not_fit")?;
    vectors_are_used_again(index)
        .await
        .context("vectors_are_used_again")?;
    names_are_replaced(index)
        .await
        .context("names_are_replaced")?;
    ensure!(index.usage().await?.chunks == 0, "all was removed");
    Ok(())
}

async fn what_was_put_is_found(index: &dyn SearchIndex) -> Result<()> {
    let here = space(1, 0);
    ensure!(
        ask(index, here, "lions").await?.is_empty(),
        "nothing is found in nothing"
    );
    let text = "# Lions\n\nThe lions eat meat at noon, when the keeper comes with a large bucket and calls them.\n\n# Birds\n\nThe birds eat seeds, and many of them sleep until the afternoon on the large tree.\n";
    index
        .apply(vec![Change::Put(here, document(1, text))])
        .await?;
    let found = ask(index, here, "What does a lion eat?").await?;
    ensure!(found.len() == 2, "{found:?}");
    ensure!(
        found[0].path == ["Lions"] && found[0].place.index == 0,
        "{found:?}"
    );
    ensure!(text[found[0].range.clone()] == found[0].text, "{found:?}");
    ensure!(found[0].headings[0].title == "Lions", "{found:?}");
    ensure!(found[0].score > found[1].score, "{found:?}");
    ensure!(index.usage().await?.chunks == 2);
    let at = |index: usize| Place {
        document: Uuid::from_u128(1),
        index,
    };
    let texts = index.texts(here, vec![at(0), at(1), at(2)]).await?;
    ensure!(texts.len() == 2, "{texts:?}");
    ensure!(
        texts[&at(0)].text == found[0].text && texts[&at(1)].path == ["Birds"],
        "{texts:?}"
    );
    ensure!(index.texts(space(1, 1), vec![at(0)]).await?.is_empty());
    index.apply(vec![Change::RemoveBase(here.base)]).await?;
    ensure!(index.texts(here, vec![at(0)]).await?.is_empty());
    ensure!(
        ask(index, here, "lions").await?.is_empty(),
        "it was removed"
    );
    Ok(())
}

async fn a_document_is_replaced_as_a_whole(index: &dyn SearchIndex) -> Result<()> {
    let here = space(2, 0);
    let long = (0..20).map(|n| format!("# Part {n}\n\nThe zebra of number {n} has stripes, eats grass, runs fast and drinks water in the evening.\n\n"));
    index
        .apply(vec![Change::Put(
            here,
            document(1, &long.collect::<String>()),
        )])
        .await?;
    ensure!(index.usage().await?.chunks == 20);
    index
        .apply(vec![Change::Put(
            here,
            document(1, "Only giraffes are left."),
        )])
        .await?;
    ensure!(texts(&ask(index, here, "zebra stripes").await?) == ["Only giraffes are left."]);
    // Put and removed in one change, and a document without text.
    let changes = vec![
        Change::Put(here, document(2, "A crocodile.")),
        Change::RemoveDocument {
            base: here.base,
            document: Uuid::from_u128(2),
        },
        Change::Put(here, document(3, "")),
    ];
    index.apply(changes).await?;
    ensure!(texts(&ask(index, here, "crocodile").await?) == ["Only giraffes are left."]);
    index
        .apply(vec![Change::RemoveDocument {
            base: here.base,
            document: Uuid::from_u128(1),
        }])
        .await?;
    ensure!(ask(index, here, "giraffes").await?.is_empty());
    Ok(())
}

async fn bases_and_generations_are_apart(index: &dyn SearchIndex) -> Result<()> {
    let (old, new, other) = (space(3, 0), space(3, 1), space(4, 0));
    index
        .apply(vec![
            Change::Put(old, document(1, "The old price is nine.")),
            Change::Put(other, document(1, "The price of others is ten.")),
        ])
        .await?;
    // Another embedder has vectors of another length.
    let mut rebuilt = document(1, "The new price is eight.");
    for (_, vector) in &mut rebuilt.chunks {
        *vector = PackedVector::from(&vector.numbers()[..32]);
    }
    index.apply(vec![Change::Put(new, rebuilt)]).await?;
    ensure!(texts(&ask(index, old, "price").await?) == ["The old price is nine."]);
    ensure!(texts(&ask(index, other, "price").await?) == ["The price of others is ten."]);
    let mut request = question(new, "price");
    request.original.vector = Some(vector("price")[..32].to_vec());
    let found = index.search(request.clone()).await?;
    ensure!(texts(&found.passages) == ["The new price is eight."]);
    ensure!(matches!(
        index.search(question(new, "price")).await,
        Err(IndexError::Vector)
    ));
    index.apply(vec![Change::RemoveSpace(old)]).await?;
    ensure!(ask(index, old, "price").await?.is_empty());
    ensure!(index.search(request.clone()).await?.passages.len() == 1);
    index
        .apply(vec![Change::Put(old, document(2, "Old again."))])
        .await?;
    index
        .apply(vec![Change::RemoveDocument {
            base: old.base,
            document: Uuid::from_u128(1),
        }])
        .await?;
    ensure!(
        index.search(request).await?.passages.is_empty(),
        "gone from all generations"
    );
    ensure!(
        ask(index, other, "price").await?.len() == 1,
        "documents of others have names of their own"
    );
    index
        .apply(vec![
            Change::RemoveBase(old.base),
            Change::RemoveBase(other.base),
        ])
        .await?;
    Ok(())
}

async fn same_content_is_one_passage(index: &dyn SearchIndex) -> Result<()> {
    let here = space(5, 0);
    let changes = (1..=3).map(|id| Change::Put(here, document(id, "The same words about otters.")));
    index
        .apply(
            changes
                .chain([Change::Put(here, document(9, "Otters swim."))])
                .collect(),
        )
        .await?;
    let found = ask(index, here, "otters").await?;
    ensure!(found.len() == 2, "{found:?}");
    let same = found
        .iter()
        .find(|passage| passage.text.contains("same"))
        .context("it is found")?;
    ensure!(
        same.place.document == Uuid::from_u128(1) && same.duplicates.len() == 2,
        "{same:?}"
    );
    index.apply(vec![Change::RemoveBase(here.base)]).await?;
    Ok(())
}

async fn every_stream_has_its_share(index: &dyn SearchIndex) -> Result<()> {
    let here = space(6, 0);
    let texts = [
        "A wolf howls.",
        "The wolf pack hunts deer at night.",
        "Deer eat leaves.",
        "Boats sail.",
    ];
    let changes = (1..)
        .zip(texts)
        .map(|(id, text)| Change::Put(here, document(id, text)));
    index.apply(changes.collect()).await?;
    let request = question(here, "wolf");
    let found = index.search(request.clone()).await?;
    let streams: Vec<_> = found
        .rankings
        .iter()
        .map(|ranking| ranking.stream)
        .collect();
    ensure!(
        streams == [Stream::Dense, Stream::Sparse, Stream::Bm25],
        "{streams:?}"
    );
    let hits = |stream: Stream| {
        let ranking = found
            .rankings
            .iter()
            .find(|ranking| ranking.stream == stream);
        ranking.map_or(0, |ranking| ranking.hits.len())
    };
    ensure!(hits(Stream::Dense) == 4 && hits(Stream::Bm25) == 2);
    // The pack hunts deer, so what is about deer may be meant.
    ensure!(hits(Stream::Sparse) >= 3, "{}", hits(Stream::Sparse));
    let best = &found.passages[0];
    ensure!(best.shares.len() == 3);
    let sum: f64 = best.shares.iter().map(|share| share.share).sum();
    ensure!((sum - best.score).abs() < 1e-12);
    // Words alone, where there is no vector, and vectors alone, where no word is known.
    let words = Question {
        text: "boats".to_owned(),
        vector: None,
    };
    let found = index
        .search(SearchRequest {
            original: words,
            ..request.clone()
        })
        .await?;
    ensure!(
        found
            .passages
            .first()
            .is_some_and(|passage| passage.text == "Boats sail.")
    );
    let unknown = Question {
        text: "?".to_owned(),
        vector: Some(vector("boats")),
    };
    let found = index
        .search(SearchRequest {
            original: unknown,
            ..request
        })
        .await?;
    ensure!(found.passages[0].text == "Boats sail.");
    index.apply(vec![Change::RemoveBase(here.base)]).await?;
    Ok(())
}

/// What is like the nearest passages comes before what is not, and both tell how near the question itself is.
async fn vectors_are_ordered_by_what_is_near(index: &dyn SearchIndex) -> Result<()> {
    let here = space(10, 0);
    let directions: [(u128, [f32; 3]); 5] = [
        (1, [0.9, 0.43, 0.0]),
        (2, [0.88, 0.47, 0.0]),
        // As near to the question as the next, and nearer to the first two.
        (3, [0.60, 0.80, 0.0]),
        (4, [0.62, 0.0, 0.78]),
        (5, [0.1, 0.0, 0.99]),
    ];
    let changes = directions.map(|(id, direction)| {
        let mut put = document(id, &format!("Passage {id}."));
        for (_, vector) in &mut put.chunks {
            *vector = direction.as_slice().into();
        }
        Change::Put(here, put)
    });
    index.apply(changes.to_vec()).await?;
    let mut request = question(here, "unheard");
    request.original.vector = Some(vec![1.0, 0.0, 0.0]);
    let found = index.search(request).await?;
    let dense = found
        .rankings
        .iter()
        .find(|ranking| ranking.stream == Stream::Dense)
        .context("vectors are compared")?;
    let order: Vec<u128> = dense
        .hits
        .iter()
        .map(|hit| hit.place.document.as_u128())
        .collect();
    ensure!(order == [1, 2, 3, 4, 5], "{order:?}");
    let score = |place: usize| dense.hits[place].score;
    ensure!(
        (score(2) - 0.60).abs() < 0.01 && (score(3) - 0.62).abs() < 0.01,
        "{:?}",
        dense.hits
    );
    index.apply(vec![Change::RemoveBase(here.base)]).await?;
    Ok(())
}

async fn what_does_not_fit_changes_nothing(index: &dyn SearchIndex) -> Result<()> {
    let here = space(7, 0);
    index
        .apply(vec![Change::Put(here, document(1, "Kept."))])
        .await?;
    let changed = |change: fn(&mut IndexedDocument)| {
        let mut wrong = document(2, "Wrong.");
        change(&mut wrong);
        vec![
            Change::Put(here, document(3, "Not alone.")),
            Change::Put(here, wrong),
        ]
    };
    for wrong in [
        changed(|document| document.chunks[0].1 = [0.5_f32; 3].as_slice().into()),
        changed(|document| document.chunks[0].1 = [0.0_f32; 64].as_slice().into()),
        changed(|document| {
            let mut numbers = document.chunks[0].1.numbers();
            numbers[0] = f32::NAN;
            document.chunks[0].1 = PackedVector::from(numbers.as_slice());
        }),
    ] {
        ensure!(matches!(index.apply(wrong).await, Err(IndexError::Vector)));
    }
    let large = changed(|document| document.chunks[0].0.text = "word ".repeat(20_000));
    ensure!(matches!(
        index.apply(large).await,
        Err(IndexError::TooLarge(_))
    ));
    ensure!(texts(&ask(index, here, "wrong alone").await?) == ["Kept."]);
    index.apply(vec![Change::RemoveBase(here.base)]).await?;
    Ok(())
}

async fn vectors_are_used_again(index: &dyn SearchIndex) -> Result<()> {
    let here = space(8, 0);
    let put = document(1, "A text that is embedded once.");
    let (id, made) = (put.chunks[0].0.id, put.chunks[0].1.numbers());
    index.apply(vec![Change::Put(here, put)]).await?;
    let unknown = cut("Another.")[0].id;
    let mut kept = index.vectors(here, vec![id, unknown]).await?;
    ensure!(kept.len() == 1 && index.vectors(space(8, 1), vec![id]).await?.is_empty());
    let kept = kept.remove(&id).context("it has one")?;
    let length = made
        .iter()
        .map(|number| number * number)
        .sum::<f32>()
        .sqrt();
    let cosine: f32 = kept.iter().zip(&made).map(|(a, b)| a * b / length).sum();
    ensure!((cosine - 1.0).abs() < 0.001, "{cosine}");
    index.apply(vec![Change::RemoveBase(here.base)]).await?;
    Ok(())
}

async fn names_are_replaced(index: &dyn SearchIndex) -> Result<()> {
    let here = space(9, 0);
    index
        .apply(vec![
            Change::Put(here, document(1, "Ada wrote the first program.")),
            Change::Put(here, document(2, "You wrote nothing.")),
        ])
        .await?;
    let mut request = question(here, "what did you write");
    let replaced = "what did Ada write";
    request.replaced = Some(Question {
        text: replaced.to_owned(),
        vector: Some(vector(replaced)),
    });
    request.fusion.query_weight_original = 0.0;
    let found = index.search(request.clone()).await?;
    ensure!(
        found.passages[0].text.starts_with("Ada"),
        "{:?}",
        found.passages
    );
    ensure!(
        found
            .rankings
            .iter()
            .any(|ranking| ranking.form == Form::Replaced)
    );
    request.fusion.query_weight_original = 1.0;
    request.fusion.query_weight_replaced = 0.0;
    let found = index.search(request).await?;
    ensure!(
        found.passages[0].text.starts_with("You"),
        "{:?}",
        found.passages
    );
    index.apply(vec![Change::RemoveBase(here.base)]).await?;
    Ok(())
}
