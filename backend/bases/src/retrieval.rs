//! Looking for passages in a base.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use colloquy_accounts::{PartnerId, Tenant};
use colloquy_base::fair_queue::Claim;
use colloquy_index::{
    fusion::FusionParameters,
    search::{
        self as found, ChunkText, IndexError, Place, Question, SearchRequest, SearchResponse,
        Stream,
    },
};
use colloquy_knowledge::{
    KnowledgeBases, KnowledgeSource, Origin, Passage, Query, Reader, UnknownBase,
    quoting::{self, MAX_PASSAGES},
};
use colloquy_providers::{Embedder, EmbeddingRequest};
use tokio::{task::spawn_blocking, time::timeout};
use uuid::Uuid;

use super::{
    Bases,
    base::KnowledgeBase,
    embedding::Profile,
    index::{IndexAway, space},
    replacing::replaced,
    store,
};

/// How long a character waits for what was embedded a moment ago.
const PATIENCE: Duration = Duration::from_millis(300);
/// Of the time that a reply waits for its knowledge, the vectors of the question get one part of so many; without them its words are left.
const EMBEDDING_PART: u32 = 2;
/// A passage that shares no word with the question has at least this cosine with it; those of passages about something else are around 0.1.
const LEAST_COSINE: f32 = 0.3;
/// The most of a question that is embedded, in bytes.
const MOST_EMBEDDED: usize = 8 * 1024;

/// What is asked of a base.
#[derive(Debug, Clone)]
pub(crate) struct BaseQuery {
    /// The question.
    pub(crate) original: String,
    /// The same with the character's name in the place of another, where that makes a difference.
    pub(crate) replaced: Option<String>,
    pub(crate) fusion: FusionParameters,
    pub(crate) claim: Claim,
    /// How long it is waited for what was embedded a moment ago.
    pub(crate) patience: Duration,
    /// How long it is waited for the vectors of the question; `None`: for as long as the embedder takes.
    pub(crate) embedding_patience: Option<Duration>,
    /// Another base's id and profile in the place of the base's own.
    pub(crate) place: Option<(Uuid, i64)>,
    /// How many of the first passages of each stream are read.
    pub(crate) stream_texts: usize,
}

/// What a base answers.
#[derive(Debug, Clone, Default)]
pub(crate) struct BaseAnswer {
    /// Nothing, where nothing was ever embedded.
    pub(crate) found: Option<SearchResponse>,
    /// The profile that the base is searched by.
    pub(crate) profile: Option<Profile>,
    /// How long the vectors of the question took.
    pub(crate) embedding: Option<Duration>,
    /// Why there are none, though the base has vectors.
    pub(crate) without_vectors: Option<&'static str>,
    /// The first passages of each stream, as many as were wanted.
    pub(crate) texts: HashMap<Place, ChunkText>,
}

/// What a character would be told.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Prompt {
    /// The places of its passages among those that were found, from 0.
    pub(crate) places: Vec<usize>,
    /// The part of the system prompt; empty without passages.
    pub(crate) text: String,
}

impl Prompt {
    /// Returns what a character would be told of passages, best first.
    pub(crate) fn of(passages: &[found::Passage]) -> Self {
        let fitting = passages.iter().enumerate().filter(|(_, found)| fits(found));
        let fitting = fitting.take(MAX_PASSAGES);
        let (places, mut quoted): (Vec<usize>, Vec<Passage>) = fitting
            .map(|(place, found)| (place, told(found.clone())))
            .unzip();
        quoting::bound(&mut quoted);
        Self {
            places,
            text: quoting::quote(&quoted),
        }
    }
}

/// Looks for passages; [`IndexAway`] where the index cannot be searched now. Without the vectors of the question, which the embedder may fail to give, the words are compared alone.
pub(crate) async fn search(
    bases: &Bases,
    base: &KnowledgeBase,
    query: BaseQuery,
) -> anyhow::Result<BaseAnswer> {
    let db = bases.store.db();
    let own = match store::profile_of(db, &base.id).await? {
        Some(profile) => Some((Uuid::parse_str(&base.id)?, profile)),
        None => None,
    };
    let Some((id, profile)) = query.place.or(own) else {
        return Ok(BaseAnswer::default());
    };
    let profile = store::load_profile(db, profile).await?;
    let Some(profile) = profile else {
        return Ok(BaseAnswer::default());
    };
    let Some(index) = bases.index.current(bases, query.patience).await? else {
        return Ok(BaseAnswer::default());
    };
    let began = bases.clock.instant();
    let vectors = vectors(bases, &profile, &query).await;
    let embedding = vectors.as_ref().is_ok_and(Option::is_some);
    let embedding = embedding.then(|| bases.clock.instant().saturating_duration_since(began));
    let (mut vectors, without_vectors) = match vectors {
        Ok(vectors) => (vectors.unwrap_or_default().into_iter(), None),
        Err(reason) => (Vec::new().into_iter(), Some(reason)),
    };
    let (space, stream_texts) = (space(id, profile.id), query.stream_texts);
    let request = SearchRequest {
        space,
        original: Question {
            text: query.original,
            vector: vectors.next(),
        },
        replaced: query.replaced.map(|text| Question {
            text,
            vector: vectors.next(),
        }),
        fusion: query.fusion,
    };
    let found = read(bases, index.search(request).await)?;
    let texts = match stream_texts {
        0 => HashMap::new(),
        most => read(bases, index.texts(space, first(&found, most)).await)?,
    };
    Ok(BaseAnswer {
        found: Some(found),
        profile: Some(profile),
        embedding,
        without_vectors,
        texts,
    })
}

/// Returns what an index answers; it is suspected where it fails.
fn read<T>(bases: &Bases, answer: Result<T, IndexError>) -> anyhow::Result<T> {
    match answer {
        Err(error @ (IndexError::Failed(_) | IndexError::Damaged(_))) => {
            bases.index.suspect(&error);
            Err(IndexAway(Some(error)).into())
        }
        answer => Ok(answer?),
    }
}

/// Returns the places of so many passages of each stream, each once.
fn first(found: &SearchResponse, most: usize) -> Vec<Place> {
    let hits = found.rankings.iter();
    let hits = hits.flat_map(|ranking| ranking.hits.iter().take(most));
    let places: HashSet<Place> = hits.map(|hit| hit.place).collect();
    places.into_iter().collect()
}

/// The vectors of the question; `None` where the base has no vectors.
async fn vectors(
    bases: &Bases,
    profile: &Profile,
    query: &BaseQuery,
) -> Result<Option<Vec<Vec<f32>>>, &'static str> {
    let current = Profile::current(bases).await;
    if current.map_err(|_| "the database failed")? != *profile {
        return Err("the base has vectors of another model, and is being embedded again");
    }
    let Some(embedder) = &bases.providers.embedder else {
        return Ok(None);
    };
    let cut = |text: &String| embedded(&**embedder, text).to_owned();
    let texts = [Some(&query.original), query.replaced.as_ref()];
    let request = EmbeddingRequest {
        texts: texts.into_iter().flatten().map(cut).collect(),
        claim: query.claim.clone(),
    };
    let made = match query.embedding_patience {
        Some(patience) => match timeout(patience, embedder.embed(request)).await {
            Ok(made) => made,
            Err(_) => return Err("the embedder is too slow"),
        },
        None => embedder.embed(request).await,
    };
    made.map(|made| Some(made.vectors))
        .map_err(|_| "the embedder failed")
}

/// The beginning of a question that the embedder reads: a service may refuse what is longer.
fn embedded<'a>(embedder: &dyn Embedder, text: &'a str) -> &'a str {
    let beginning = |bytes: usize| &text[..text.floor_char_boundary(bytes)];
    let is_read = |text: &str| embedder.count_tokens(text) <= embedder.max_tokens();
    let (mut read, mut unread) = (0, MOST_EMBEDDED);
    if is_read(beginning(unread)) {
        return beginning(unread);
    }
    while unread - read > 1 {
        let middle = usize::midpoint(read, unread);
        if is_read(beginning(middle)) {
            read = middle;
        } else {
            unread = middle;
        }
    }
    beginning(read)
}

/// Whether a passage has to do with the question: something is always the nearest.
fn fits(passage: &found::Passage) -> bool {
    let mut shares = passage.shares.iter();
    shares.any(|share| match share.stream {
        Stream::Dense => share.score >= LEAST_COSINE,
        Stream::Bm25 => true,
        Stream::Sparse => false,
    })
}

/// The bases of partners, for characters.
#[derive(Debug, Clone)]
pub(super) struct CharacterBases(pub(super) Bases);

#[async_trait]
impl KnowledgeBases for CharacterBases {
    async fn exists(&self, partner: &PartnerId, name: &str) -> anyhow::Result<bool> {
        let tenant = Tenant::of_row(partner.as_str());
        let found = store::find_base(self.0.store.db(), &tenant, name).await?;
        Ok(found.is_some_and(|base| base.deletion_requested_at.is_none()))
    }

    fn open(&self, name: &str, reader: Reader<'_>) -> Arc<dyn KnowledgeSource> {
        let partner = reader.partner.as_str();
        Arc::new(CharacterBase {
            bases: self.0.clone(),
            tenant: Tenant::of_row(partner),
            name: name.to_owned(),
            character: reader.character.map(str::to_owned),
            claim: Claim::new(reader.priority, partner),
        })
    }
}

/// A base that a character looks things up in.
#[derive(Debug)]
struct CharacterBase {
    bases: Bases,
    tenant: Tenant,
    name: String,
    /// What the character is called.
    character: Option<String>,
    claim: Claim,
}

#[async_trait]
impl KnowledgeSource for CharacterBase {
    /// None before a search: the name of a base is for whoever manages it.
    fn titles(&self) -> Vec<String> {
        Vec::new()
    }

    async fn search(&self, query: Query) -> anyhow::Result<Vec<Passage>> {
        let found = store::find_base(self.bases.store.db(), &self.tenant, &self.name).await?;
        let Some(base) = found.filter(|base| base.deletion_requested_at.is_none()) else {
            let partner = self.tenant.partner().as_str();
            return Err(UnknownBase(format!("{partner}/{}", self.name)).into());
        };
        let in_context = |text: String| match query.context.as_str() {
            "" => text,
            context => format!("{text}\n{context}"),
        };
        let replaced = match self.character.clone() {
            Some(name) => {
                let question = query.text.clone();
                spawn_blocking(move || replaced(&question, &name)).await?
            }
            None => None,
        };
        let defaults = FusionParameters::default();
        let limit = query.limit;
        let retrieval = Duration::from_millis(self.bases.config.limits.retrieval_ms.into());
        let query = BaseQuery {
            original: in_context(query.text.clone()),
            replaced: replaced.map(in_context),
            // As deep as for anybody, and cut after: the fusion of a few is not the best of many.
            fusion: FusionParameters {
                top_k: defaults.top_k.max(limit),
                ..defaults
            },
            embedding_patience: Some(retrieval / EMBEDDING_PART),
            claim: self.claim.clone(),
            patience: PATIENCE,
            place: None,
            stream_texts: 0,
        };
        let answer = search(&self.bases, &base, query).await?;
        let passages = answer.found.map(|found| found.passages);
        let passages = passages.unwrap_or_default().into_iter();
        let passages = passages.filter(fits).take(limit);
        Ok(passages.map(told).collect())
    }
}

/// A passage as characters get it.
fn told(found: found::Passage) -> Passage {
    let mut retrievers: Vec<&'static str> = Vec::new();
    for share in &found.shares {
        if !retrievers.contains(&share.stream.name()) {
            retrievers.push(share.stream.name());
        }
    }
    let mut path = found.path.into_iter();
    Passage {
        title: path.next().unwrap_or_default(),
        headings: path.collect(),
        text: found.text,
        score: found.score,
        document: Origin::Kept(found.place.document.to_string()),
        chunk_index: found.place.index,
        retrievers,
    }
}

#[cfg(test)]
mod tests {
    use colloquy_index::{chunking::ChunkId, fusion::Share, search::Form};
    use colloquy_providers::{Embeddings, ProviderError};

    use super::*;

    /// So many tokens, of which each has three bytes.
    struct Reading(usize);

    #[async_trait]
    impl Embedder for Reading {
        fn name(&self) -> &'static str {
            "reading"
        }

        fn max_tokens(&self) -> usize {
            self.0
        }

        fn count_tokens(&self, text: &str) -> usize {
            text.len().div_ceil(3)
        }

        fn max_texts(&self) -> usize {
            1
        }

        async fn embed(&self, _: EmbeddingRequest) -> Result<Embeddings, ProviderError> {
            unreachable!("nothing is embedded")
        }

        async fn check(&self) -> Result<(), ProviderError> {
            Ok(())
        }
    }

    #[test]
    fn a_question_is_no_longer_than_its_embedder_reads() {
        let long = "é".repeat(MOST_EMBEDDED);
        for (text, tokens, bytes) in [
            ("short", 8_192, 5),
            (long.as_str(), 8_192, MOST_EMBEDDED),
            (long.as_str(), 500, 1_500),
            // Not half of a character.
            (long.as_str(), 501, 1_502),
            (long.as_str(), 0, 0),
        ] {
            let read = embedded(&Reading(tokens), text);
            assert_eq!(read.len(), bytes, "{tokens}");
            assert!(text.starts_with(read));
        }
    }

    #[test]
    fn a_passage_names_its_document_and_the_headings_above_it() {
        let document = Uuid::from_u128(7);
        let share = |stream, form| Share {
            stream,
            form,
            rank: 1,
            score: 0.5,
            share: 0.1,
        };
        let found = found::Passage {
            place: found::Place { document, index: 3 },
            duplicates: Vec::new(),
            id: ChunkId::from_bytes([0; 16]),
            path: vec!["Hours".to_owned(), "Sundays".to_owned()],
            headings: Vec::new(),
            text: "Closed.".to_owned(),
            range: 0..7,
            score: 0.3,
            shares: vec![
                share(Stream::Dense, Form::Original),
                share(Stream::Bm25, Form::Original),
                share(Stream::Dense, Form::Replaced),
            ],
        };
        let expected = Passage {
            title: "Hours".to_owned(),
            headings: vec!["Sundays".to_owned()],
            text: "Closed.".to_owned(),
            score: 0.3,
            document: Origin::Kept(document.to_string()),
            chunk_index: 3,
            retrievers: vec!["dense", "bm25"],
        };
        assert_eq!(told(found), expected);
    }

    #[test]
    fn a_prompt_has_the_best_passages_that_have_to_do_with_the_question() {
        let found = |number: u128, stream, score| found::Passage {
            place: Place {
                document: Uuid::from_u128(number),
                index: 0,
            },
            duplicates: Vec::new(),
            id: ChunkId::from_bytes([0; 16]),
            path: vec![format!("Document {number}")],
            headings: Vec::new(),
            text: format!("Text {number}."),
            range: 0..7,
            score: 0.3,
            shares: vec![Share {
                stream,
                form: Form::Original,
                rank: 1,
                score,
                share: 0.1,
            }],
        };
        let all: Vec<found::Passage> = [
            (Stream::Dense, 0.9),
            (Stream::Dense, 0.1),
            (Stream::Bm25, 0.1),
            (Stream::Sparse, 9.0),
            (Stream::Bm25, 2.0),
            (Stream::Dense, 0.3),
            (Stream::Dense, 0.9),
        ]
        .into_iter()
        .zip(1..)
        .map(|((stream, score), number)| found(number, stream, score))
        .collect();
        let prompt = Prompt::of(&all);
        assert_eq!(prompt.places, [0, 2, 4, 5]);
        assert!(prompt.text.starts_with("These passages were looked up"));
        let quoted = "<passage title=\"Document 6\">\nText 6.\n</passage>";
        assert!(prompt.text.ends_with(quoted), "{}", prompt.text);
        assert!(!prompt.text.contains("Document 7"));
        assert_eq!(Prompt::of(&[]), Prompt::default());
    }
}
