//! Questions.

use std::{
    collections::{HashMap, HashSet},
    time::Instant,
};

use colloquy_index::{
    analysis::{Language, document_terms},
    chunking::passage,
    feedback,
    fusion::{Fused, fuse},
    indexing,
    search::{
        ChunkText, Form, Hit, IndexError, Passage, Place, Question, Ranking, SearchRequest,
        SearchResponse, Space, Stream,
    },
};
use sqlx::Row as _;
use sqlx_postgres::{PgConnection, PgRow, Postgres};
use uuid::Uuid;

use super::{PgIndex, Shown, chunk_id, failed, writing::text};

/// As in BM25: from how many times on a term counts no more, and how much longer texts count less.
const K1: f64 = 1.2;
const B: f64 = 0.75;

/// A space, as one snapshot has it.
struct Snapshot<'a> {
    index: &'a PgIndex,
    /// In a transaction that sees nothing of others.
    connection: &'a mut PgConnection,
    number: i64,
    dimensions: usize,
    chunks: u64,
    terms: u64,
    languages: Vec<Language>,
    depth: i64,
}

/// One form of the question.
struct Asked<'a> {
    form: Form,
    question: &'a Question,
    terms: Vec<String>,
}

/// The best passages for a question.
pub(super) async fn search(
    index: &PgIndex,
    request: SearchRequest,
) -> Result<SearchResponse, IndexError> {
    let begin = index.clock.instant();
    let took = |index: &PgIndex| index.clock.instant().saturating_duration_since(begin);
    let mut transaction = index
        .pool
        .begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
        .await
        .map_err(failed)?;
    let Some(mut snapshot) = Snapshot::of(index, &mut transaction, &request).await? else {
        return Ok(SearchResponse {
            passages: Vec::new(),
            rankings: Vec::new(),
            languages: Vec::new(),
            took: took(index),
        });
    };
    let replaced = request.replaced.as_ref();
    let questions = std::iter::once((Form::Original, &request.original))
        .chain(replaced.map(|question| (Form::Replaced, question)));
    let mut rankings = Vec::new();
    for (form, question) in questions {
        if let Some(vector) = &question.vector
            && (vector.len() != snapshot.dimensions || !indexing::has_direction(vector))
        {
            return Err(IndexError::Vector);
        }
        let asked = Asked {
            form,
            question,
            terms: indexing::question_terms(&question.text, &snapshot.languages),
        };
        let mut own = [snapshot.dense(&asked).await?, snapshot.bm25(&asked).await?];
        let nearest = snapshot.nearest(&own, &request);
        if request.fusion.weight(Stream::Sparse, form) > 0.0 {
            rankings.push(snapshot.sparse(&asked, &nearest).await?);
        }
        snapshot.reorder(&asked, &nearest, &mut own[0]).await?;
        rankings.extend(own);
    }
    rankings.sort_by_key(|ranking| (ranking.form, ranking.stream));
    let fused = fuse(&rankings, &request.fusion);
    let mut shown = snapshot.shown(&fused).await?;
    let languages = snapshot.languages;
    let passages = fused.into_iter().filter_map(|fused| {
        let (_, shown) = shown.remove(&fused.place)?;
        Some(Passage {
            place: fused.place,
            duplicates: fused.duplicates,
            id: fused.id,
            path: shown.path,
            headings: shown.headings,
            text: shown.text,
            range: shown.start..shown.end,
            score: fused.score,
            shares: fused.shares,
        })
    });
    Ok(SearchResponse {
        passages: passages.collect(),
        rankings,
        languages,
        took: took(index),
    })
}

/// Returns the texts of chunks of a space.
pub(super) async fn texts(
    index: &PgIndex,
    space: Space,
    places: &[Place],
) -> Result<HashMap<Place, ChunkText>, IndexError> {
    let show = "SELECT chunks.document, chunks.place, chunks.shown
        FROM unnest($4::uuid[], $5::integer[]) AS wanted (document, place)
        JOIN colloquy_index.spaces ON spaces.installation = $1 AND spaces.base = $2 AND spaces.generation = $3
        JOIN colloquy_index.chunks ON chunks.space = spaces.number AND chunks.document = wanted.document AND chunks.place = wanted.place";
    let (documents, indexes) = columns(places.iter().copied())?;
    let rows = sqlx::query::<Postgres>(show)
        .bind(&*index.installation)
        .bind(space.base)
        .bind(i64::from(space.generation))
        .bind(documents)
        .bind(indexes)
        .fetch_all(&index.pool)
        .await
        .map_err(failed)?;
    let read = |row: &PgRow| {
        let Shown { path, text, .. } = read_shown(row)?;
        Ok((place(row)?, ChunkText { path, text }))
    };
    rows.iter().map(read).collect()
}

impl<'a> Snapshot<'a> {
    /// The space that is asked for; `None` where it has nothing.
    async fn of(
        index: &'a PgIndex,
        connection: &'a mut PgConnection,
        request: &SearchRequest,
    ) -> Result<Option<Self>, IndexError> {
        let find = "SELECT number, dimensions, chunks, terms, languages FROM colloquy_index.spaces
            WHERE installation = $1 AND base = $2 AND generation = $3 AND chunks > 0";
        let row = sqlx::query::<Postgres>(find)
            .bind(&*index.installation)
            .bind(request.space.base)
            .bind(i64::from(request.space.generation))
            .fetch_optional(&mut *connection)
            .await
            .map_err(failed)?;
        let Some(row) = row else { return Ok(None) };
        let number = |name: &str| {
            let number: i64 = row.try_get(name).map_err(failed)?;
            u64::try_from(number).map_err(failed)
        };
        let dimensions: i32 = row.try_get("dimensions").map_err(failed)?;
        let languages = number("languages")?;
        let languages = (0..64)
            .filter(|bit| languages & (1 << bit) != 0)
            .map(Language::from_number);
        Ok(Some(Self {
            index,
            connection,
            number: row.try_get("number").map_err(failed)?,
            dimensions: usize::try_from(dimensions).map_err(failed)?,
            chunks: number("chunks")?,
            terms: number("terms")?,
            languages: languages.collect(),
            depth: i64::try_from(request.fusion.depth()).unwrap_or(i64::MAX),
        }))
    }

    fn ranking(&self, stream: Stream, form: Form, hits: Vec<Hit>, begin: Instant) -> Ranking {
        Ranking {
            stream,
            form,
            hits,
            took: self.now().saturating_duration_since(begin),
        }
    }

    fn now(&self) -> Instant {
        self.index.clock.instant()
    }

    /// The nearest vectors.
    async fn dense(&mut self, asked: &Asked<'_>) -> Result<Ranking, IndexError> {
        let begin = self.now();
        let mut found = Vec::new();
        if let Some(vector) = &asked.question.vector {
            let nearest = "SELECT chunks.id, chunks.document, chunks.place, (1 - near.distance)::real AS score
                FROM (SELECT chunk, vector <=> $2::text::halfvec AS distance FROM colloquy_index.vectors
                    WHERE space = $1 ORDER BY distance LIMIT $3) AS near
                JOIN colloquy_index.chunks ON chunks.number = near.chunk";
            let rows = sqlx::query::<Postgres>(nearest)
                .bind(self.number)
                .bind(text(vector))
                .bind(self.depth)
                .fetch_all(&mut *self.connection)
                .await
                .map_err(failed)?;
            found = hits(&rows)?;
        }
        Ok(self.ranking(Stream::Dense, asked.form, found, begin))
    }

    /// The chunks with the words of the question.
    async fn bm25(&mut self, asked: &Asked<'_>) -> Result<Ranking, IndexError> {
        let begin = self.now();
        let frequencies = self
            .frequencies(asked.terms.iter().cloned().collect())
            .await?;
        let terms = asked.terms.iter().map(|term| (term.clone(), 1.0));
        let found = self.words(terms.collect(), &frequencies).await?;
        Ok(self.ranking(Stream::Bm25, asked.form, found, begin))
    }

    /// The passages nearest to a question, by its rankings of vectors and words.
    fn nearest(&self, rankings: &[Ranking], request: &SearchRequest) -> Vec<Fused> {
        let chunks = usize::try_from(self.chunks).unwrap_or(usize::MAX);
        fuse(rankings, &feedback::parameters(&request.fusion, chunks))
    }

    /// Puts the hits of vectors in the order of a question that is moved towards these passages.
    async fn reorder(
        &mut self,
        asked: &Asked<'_>,
        nearest: &[Fused],
        ranking: &mut Ranking,
    ) -> Result<(), IndexError> {
        let Some(vector) = &asked
            .question
            .vector
            .as_ref()
            .filter(|_| !ranking.hits.is_empty())
        else {
            return Ok(());
        };
        let begin = self.now();
        let kept = "SELECT chunks.document, chunks.place, vectors.vector::real[] AS vector
            FROM unnest($2::uuid[], $3::integer[]) AS wanted (document, place)
            JOIN colloquy_index.chunks ON chunks.space = $1 AND chunks.document = wanted.document AND chunks.place = wanted.place
            JOIN colloquy_index.vectors ON vectors.chunk = chunks.number";
        let places = nearest.iter().map(|passage| passage.place);
        let rows = self.at(kept, places).await?;
        let read = |row: &PgRow| Ok((place(row)?, row.try_get("vector").map_err(failed)?));
        let mut vectors: HashMap<Place, Vec<f32>> =
            rows.iter().map(read).collect::<Result<_, IndexError>>()?;
        let passages = nearest.iter().filter_map(|it| vectors.remove(&it.place));
        let moved = feedback::moved(vector, &passages.collect::<Vec<_>>());

        let compare = "SELECT chunks.document, chunks.place, (1 - (vectors.vector <=> $4::text::halfvec))::real AS score
            FROM unnest($2::uuid[], $3::integer[]) AS wanted (document, place)
            JOIN colloquy_index.chunks ON chunks.space = $1 AND chunks.document = wanted.document AND chunks.place = wanted.place
            JOIN colloquy_index.vectors ON vectors.chunk = chunks.number";
        let (documents, places) = columns(ranking.hits.iter().map(|hit| hit.place))?;
        let rows = sqlx::query::<Postgres>(compare)
            .bind(self.number)
            .bind(documents)
            .bind(places)
            .bind(text(&moved))
            .fetch_all(&mut *self.connection)
            .await
            .map_err(failed)?;
        let read = |row: &PgRow| Ok((place(row)?, row.try_get("score").map_err(failed)?));
        let cosines: HashMap<Place, f32> =
            rows.iter().map(read).collect::<Result<_, IndexError>>()?;
        feedback::reorder(&mut ranking.hits, &cosines);
        ranking.took += self.now().saturating_duration_since(begin);
        Ok(())
    }

    /// The chunks with the words of the question and of the passages that are nearest to it.
    async fn sparse(
        &mut self,
        asked: &Asked<'_>,
        nearest: &[Fused],
    ) -> Result<Ranking, IndexError> {
        let begin = self.now();
        let mut shown = self.shown(nearest).await?;
        let sources: Vec<feedback::Source> = nearest
            .iter()
            .filter_map(|fused| {
                let (language, shown) = shown.remove(&fused.place)?;
                Some(feedback::Source {
                    text: passage(&shown.path, &shown.text),
                    language,
                })
            })
            .collect();
        let mut all: HashSet<String> = asked.terms.iter().cloned().collect();
        for source in &sources {
            all.extend(document_terms(&source.text, source.language));
        }
        let frequencies = self.frequencies(all).await?;
        let chunks = self.chunks;
        let space = feedback::Terms {
            mean: self.terms as f64 / chunks.max(1) as f64,
            rarest: indexing::rarity(chunks, 1),
            rarity: &mut |term| {
                indexing::rarity(chunks, frequencies.get(term).copied().unwrap_or_default())
            },
        };
        let terms = feedback::expanded(&asked.terms, &sources, space);
        let found = self.words(terms, &frequencies).await?;
        Ok(self.ranking(Stream::Sparse, asked.form, found, begin))
    }

    /// In how many chunks terms stand.
    async fn frequencies(
        &mut self,
        terms: HashSet<String>,
    ) -> Result<HashMap<String, u64>, IndexError> {
        let count = "SELECT term, count(*) AS chunks FROM colloquy_index.terms
            WHERE space = $1 AND term = ANY($2) GROUP BY term";
        let rows = sqlx::query::<Postgres>(count)
            .bind(self.number)
            .bind(terms.into_iter().collect::<Vec<_>>())
            .fetch_all(&mut *self.connection)
            .await
            .map_err(failed)?;
        let read = |row: &PgRow| {
            let chunks: i64 = row.try_get("chunks").map_err(failed)?;
            let term = row.try_get("term").map_err(failed)?;
            Ok((term, u64::try_from(chunks).map_err(failed)?))
        };
        rows.iter().map(read).collect()
    }

    /// The chunks with the best scores for weighted terms, the best first.
    async fn words(
        &mut self,
        terms: Vec<(String, f32)>,
        frequencies: &HashMap<String, u64>,
    ) -> Result<Vec<Hit>, IndexError> {
        let known = terms.into_iter().map(|(term, weight)| {
            let chunks = frequencies.get(&term).copied().unwrap_or_default();
            (term, weight, chunks)
        });
        let mut weights: HashMap<String, f64> = HashMap::new();
        for (term, weight, chunks) in indexing::compared(known.collect(), self.chunks) {
            // A word that is asked for twice counts twice.
            *weights.entry(term).or_default() +=
                f64::from(weight) * indexing::rarity(self.chunks, chunks) * (K1 + 1.0);
        }
        if weights.is_empty() {
            return Ok(Vec::new());
        }
        let (terms, weights): (Vec<String>, Vec<f64>) = weights.into_iter().unzip();
        let best = "SELECT chunks.id, chunks.document, chunks.place, best.score::real AS score FROM (
                SELECT terms.chunk, sum(asked.weight * terms.count / (terms.count + $4 * (1 - $5 + $5 * terms.length / $6))) AS score
                FROM unnest($2::text[], $3::float8[]) AS asked (term, weight)
                JOIN colloquy_index.terms ON terms.space = $1 AND terms.term = asked.term
                GROUP BY terms.chunk ORDER BY score DESC LIMIT $7
            ) AS best JOIN colloquy_index.chunks ON chunks.number = best.chunk";
        let mean = self.terms as f64 / self.chunks.max(1) as f64;
        let rows = sqlx::query::<Postgres>(best)
            .bind(self.number)
            .bind(terms)
            .bind(weights)
            .bind(K1)
            .bind(B)
            .bind(mean.max(1.0))
            .bind(self.depth)
            .fetch_all(&mut *self.connection)
            .await
            .map_err(failed)?;
        hits(&rows)
    }

    /// What is selected of chunks at these places, which are `$2` and `$3`.
    async fn at(
        &mut self,
        select: &'static str,
        places: impl Iterator<Item = Place>,
    ) -> Result<Vec<PgRow>, IndexError> {
        let (documents, places) = columns(places)?;
        sqlx::query::<Postgres>(select)
            .bind(self.number)
            .bind(documents)
            .bind(places)
            .fetch_all(&mut *self.connection)
            .await
            .map_err(failed)
    }

    /// What passages show, and the languages that they are in.
    async fn shown(
        &mut self,
        passages: &[Fused],
    ) -> Result<HashMap<Place, (Language, Shown)>, IndexError> {
        let show = "SELECT chunks.document, chunks.place, chunks.language, chunks.shown
            FROM unnest($2::uuid[], $3::integer[]) AS wanted (document, place)
            JOIN colloquy_index.chunks ON chunks.space = $1 AND chunks.document = wanted.document AND chunks.place = wanted.place";
        let places = passages.iter().map(|passage| passage.place);
        let rows = self.at(show, places).await?;
        let read = |row: &PgRow| {
            let language: i16 = row.try_get("language").map_err(failed)?;
            let language = Language::from_number(u8::try_from(language).unwrap_or_default());
            Ok((place(row)?, (language, read_shown(row)?)))
        };
        rows.iter().map(read).collect()
    }
}

/// Rows as hits, the best first.
fn hits(rows: &[PgRow]) -> Result<Vec<Hit>, IndexError> {
    let read = |row: &PgRow| {
        let id: Vec<u8> = row.try_get("id").map_err(failed)?;
        Ok(Hit {
            id: chunk_id(&id)?,
            place: place(row)?,
            score: row.try_get("score").map_err(failed)?,
        })
    };
    let mut hits: Vec<Hit> = rows.iter().map(read).collect::<Result<_, IndexError>>()?;
    hits.sort_by(|a, b| {
        let places = (a.id, a.place).cmp(&(b.id, b.place));
        b.score.total_cmp(&a.score).then(places)
    });
    Ok(hits)
}

/// Places as two columns.
fn columns(places: impl Iterator<Item = Place>) -> Result<(Vec<Uuid>, Vec<i32>), IndexError> {
    let row = |place: Place| Ok((place.document, i32::try_from(place.index).map_err(failed)?));
    let rows: Vec<(Uuid, i32)> = places.map(row).collect::<Result<_, IndexError>>()?;
    Ok(rows.into_iter().unzip())
}

fn read_shown(row: &PgRow) -> Result<Shown, IndexError> {
    let shown: String = row.try_get("shown").map_err(failed)?;
    serde_json::from_str(&shown).map_err(failed)
}

fn place(row: &PgRow) -> Result<Place, IndexError> {
    let index: i32 = row.try_get("place").map_err(failed)?;
    Ok(Place {
        document: row.try_get("document").map_err(failed)?,
        index: usize::try_from(index).map_err(failed)?,
    })
}
