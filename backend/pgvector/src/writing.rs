//! Changes of the index.

use std::collections::HashMap;

use colloquy_index::{
    analysis::Language,
    chunking::Chunk,
    indexing,
    search::{Change, IndexError, IndexedDocument, PackedVector, Space},
};
use sqlx::Row as _;
use sqlx_postgres::{PgConnection, Postgres};
use uuid::Uuid;

use super::{PgIndex, Shown, failed};

/// Chunks that are written with one statement.
const AT_ONCE: usize = 256;

/// A space as the database has it.
#[derive(Debug, Clone, Copy)]
struct KnownSpace {
    number: i64,
    dimensions: usize,
    chunks: i64,
}

/// Makes changes, all of them or none.
pub(super) async fn apply(index: &PgIndex, changes: Vec<Change>) -> Result<(), IndexError> {
    let mut transaction = index.pool.begin().await.map_err(failed)?;
    let writing = &mut *transaction;
    // One writes at a time, so that what is counted is right.
    let lock = "SELECT name FROM colloquy_index.installations WHERE name = $1 FOR UPDATE";
    sqlx::query::<Postgres>(lock)
        .bind(&*index.installation)
        .execute(&mut *writing)
        .await
        .map_err(failed)?;
    let before = count(index, writing).await?;
    for change in changes {
        match change {
            Change::Put(space, document) => put(index, writing, space, document).await?,
            Change::RemoveDocument { base, document } => {
                for space in spaces(index, writing, base, None).await? {
                    remove(writing, space.number, document).await?;
                }
            }
            Change::RemoveSpace(space) => {
                drop_spaces(index, writing, space.base, Some(space.generation)).await?;
            }
            Change::RemoveBase(base) => drop_spaces(index, writing, base, None).await?,
        }
    }
    // What only takes something away always fits.
    let after = count(index, writing).await?;
    if after > index.max_chunks && after > before {
        return Err(IndexError::Full);
    }
    transaction.commit().await.map_err(failed)
}

/// The chunks of all spaces.
async fn count(index: &PgIndex, writing: &mut PgConnection) -> Result<u64, IndexError> {
    let count = "SELECT coalesce(sum(chunks), 0)::bigint AS chunks FROM colloquy_index.spaces WHERE installation = $1";
    let row = sqlx::query::<Postgres>(count)
        .bind(&*index.installation)
        .fetch_one(writing)
        .await
        .map_err(failed)?;
    let chunks: i64 = row.try_get("chunks").map_err(failed)?;
    u64::try_from(chunks).map_err(failed)
}

/// The spaces of a base, or the one of a generation.
async fn spaces(
    index: &PgIndex,
    writing: &mut PgConnection,
    base: Uuid,
    generation: Option<u32>,
) -> Result<Vec<KnownSpace>, IndexError> {
    let find = "SELECT number, dimensions, chunks FROM colloquy_index.spaces
        WHERE installation = $1 AND base = $2 AND ($3::bigint IS NULL OR generation = $3)";
    let rows = sqlx::query::<Postgres>(find)
        .bind(&*index.installation)
        .bind(base)
        .bind(generation.map(i64::from))
        .fetch_all(writing)
        .await
        .map_err(failed)?;
    let read = |row: &sqlx_postgres::PgRow| {
        let dimensions: i32 = row.try_get("dimensions")?;
        Ok(KnownSpace {
            number: row.try_get("number")?,
            dimensions: usize::try_from(dimensions).unwrap_or_default(),
            chunks: row.try_get("chunks")?,
        })
    };
    let read: Result<_, sqlx::Error> = rows.iter().map(read).collect();
    read.map_err(failed)
}

async fn drop_spaces(
    index: &PgIndex,
    writing: &mut PgConnection,
    base: Uuid,
    generation: Option<u32>,
) -> Result<(), IndexError> {
    let remove = "DELETE FROM colloquy_index.spaces
        WHERE installation = $1 AND base = $2 AND ($3::bigint IS NULL OR generation = $3)";
    sqlx::query::<Postgres>(remove)
        .bind(&*index.installation)
        .bind(base)
        .bind(generation.map(i64::from))
        .execute(writing)
        .await
        .map_err(failed)?;
    Ok(())
}

/// Removes a document of a space, and counts without it.
async fn remove(writing: &mut PgConnection, space: i64, document: Uuid) -> Result<(), IndexError> {
    let remove = "WITH gone AS (
            DELETE FROM colloquy_index.chunks WHERE space = $1 AND document = $2 RETURNING terms
        ), counted AS (SELECT count(*) AS chunks, coalesce(sum(terms), 0) AS terms FROM gone)
        UPDATE colloquy_index.spaces SET chunks = spaces.chunks - counted.chunks, terms = spaces.terms - counted.terms
        FROM counted WHERE spaces.number = $1";
    sqlx::query::<Postgres>(remove)
        .bind(space)
        .bind(document)
        .execute(writing)
        .await
        .map_err(failed)?;
    Ok(())
}

async fn put(
    index: &PgIndex,
    writing: &mut PgConnection,
    space: Space,
    document: IndexedDocument,
) -> Result<(), IndexError> {
    let known = spaces(index, writing, space.base, Some(space.generation)).await?;
    let known = known.first().copied();
    let held = known.filter(|known| known.chunks > 0);
    let dimensions = indexing::check(&document, held.map(|known| known.dimensions))?;
    if let Some(known) = known {
        remove(writing, known.number, document.id).await?;
    }
    let Some(dimensions) = dimensions.filter(|_| !document.chunks.is_empty()) else {
        return Ok(());
    };
    let language = indexing::language(&document);
    let space = open_space(index, writing, space, dimensions, language).await?;
    for part in document.chunks.chunks(AT_ONCE) {
        write(writing, space, document.id, language, part).await?;
    }
    Ok(())
}

/// The number of a space, which is made when it is not there.
async fn open_space(
    index: &PgIndex,
    writing: &mut PgConnection,
    space: Space,
    dimensions: usize,
    language: Language,
) -> Result<i64, IndexError> {
    let open = "INSERT INTO colloquy_index.spaces (installation, base, generation, dimensions, languages)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (installation, base, generation)
        DO UPDATE SET dimensions = excluded.dimensions, languages = spaces.languages | excluded.languages
        RETURNING number";
    let row = sqlx::query::<Postgres>(open)
        .bind(&*index.installation)
        .bind(space.base)
        .bind(i64::from(space.generation))
        .bind(i32::try_from(dimensions).map_err(failed)?)
        .bind(1_i64 << language.number())
        .fetch_one(writing)
        .await
        .map_err(failed)?;
    row.try_get("number").map_err(failed)
}

/// How often terms stand in which chunks, a column each.
#[derive(Default)]
struct Postings {
    terms: Vec<String>,
    chunks: Vec<i64>,
    counts: Vec<f32>,
    lengths: Vec<f32>,
}

/// Writes chunks of a document.
async fn write(
    writing: &mut PgConnection,
    space: i64,
    document: Uuid,
    language: Language,
    chunks: &[(Chunk, PackedVector)],
) -> Result<(), IndexError> {
    let terms: Vec<Vec<String>> = chunks
        .iter()
        .map(|(chunk, _)| indexing::terms(chunk, language))
        .collect();
    let lengths: Vec<i32> = terms
        .iter()
        .map(|terms| i32::try_from(terms.len()).unwrap_or(i32::MAX))
        .collect();
    let numbers = insert(writing, space, document, language, chunks, &lengths).await?;
    let mut postings = Postings::default();
    let mut vectors = Vec::new();
    let mut of_vectors = Vec::new();
    for (((chunk, vector), terms), length) in chunks.iter().zip(terms).zip(&lengths) {
        let number = numbers.get(&chunk.index).copied();
        let number = number.ok_or_else(|| failed("a chunk was not written"))?;
        of_vectors.push(number);
        vectors.push(text(&vector.numbers()));
        let mut counts: HashMap<String, u32> = HashMap::new();
        for term in terms {
            *counts.entry(term).or_default() += 1;
        }
        for (term, count) in counts {
            postings.terms.push(term);
            postings.chunks.push(number);
            postings.counts.push(count as f32);
            postings.lengths.push(*length as f32);
        }
    }
    let vector = "INSERT INTO colloquy_index.vectors (chunk, space, vector)
        SELECT made.chunk, $1, made.vector::halfvec FROM unnest($2::bigint[], $3::text[]) AS made (chunk, vector)";
    sqlx::query::<Postgres>(vector)
        .bind(space)
        .bind(of_vectors)
        .bind(vectors)
        .execute(&mut *writing)
        .await
        .map_err(failed)?;
    let posting = "INSERT INTO colloquy_index.terms (space, term, chunk, count, length)
        SELECT $1, made.* FROM unnest($2::text[], $3::bigint[], $4::real[], $5::real[]) AS made";
    sqlx::query::<Postgres>(posting)
        .bind(space)
        .bind(postings.terms)
        .bind(postings.chunks)
        .bind(postings.counts)
        .bind(postings.lengths)
        .execute(&mut *writing)
        .await
        .map_err(failed)?;
    let count = "UPDATE colloquy_index.spaces SET chunks = chunks + $2, terms = terms + $3 WHERE number = $1";
    sqlx::query::<Postgres>(count)
        .bind(space)
        .bind(i64::try_from(chunks.len()).map_err(failed)?)
        .bind(lengths.iter().map(|length| i64::from(*length)).sum::<i64>())
        .execute(writing)
        .await
        .map_err(failed)?;
    Ok(())
}

/// Writes the rows of chunks, and tells their numbers by their places.
async fn insert(
    writing: &mut PgConnection,
    space: i64,
    document: Uuid,
    language: Language,
    chunks: &[(Chunk, PackedVector)],
    lengths: &[i32],
) -> Result<HashMap<usize, i64>, IndexError> {
    let mut places = Vec::new();
    let mut ids = Vec::new();
    let mut shown = Vec::new();
    for (chunk, _) in chunks {
        places.push(i32::try_from(chunk.index).map_err(failed)?);
        ids.push(chunk.id.to_bytes().to_vec());
        let shows = Shown {
            path: chunk.path.clone(),
            headings: chunk.headings.clone(),
            text: chunk.text.clone(),
            start: chunk.range.start,
            end: chunk.range.end,
        };
        // PostgreSQL has no text with this character; in JSON it is written with an escape.
        shown.push(serde_json::to_string(&shows).map_err(failed)?);
    }
    let insert = "INSERT INTO colloquy_index.chunks (space, document, language, place, id, terms, shown)
        SELECT $1, $2, $3, made.* FROM unnest($4::integer[], $5::bytea[], $6::integer[], $7::text[]) AS made
        RETURNING number, place";
    let rows = sqlx::query::<Postgres>(insert)
        .bind(space)
        .bind(document)
        .bind(i16::from(language.number()))
        .bind(places)
        .bind(ids)
        .bind(lengths)
        .bind(shown)
        .fetch_all(writing)
        .await
        .map_err(failed)?;
    let read = |row: &sqlx_postgres::PgRow| {
        let place: i32 = row.try_get("place").map_err(failed)?;
        let number = row.try_get("number").map_err(failed)?;
        Ok((usize::try_from(place).map_err(failed)?, number))
    };
    rows.iter().map(read).collect()
}

/// A vector of length 1 in the direction of this one, as PostgreSQL reads it.
pub(super) fn text(vector: &[f32]) -> String {
    let squares: f64 = vector.iter().map(|number| f64::from(*number).powi(2)).sum();
    let length = squares.sqrt();
    let numbers: Vec<String> = vector
        .iter()
        .map(|number| format!("{:.6}", f64::from(*number) / length))
        .collect();
    format!("[{}]", numbers.join(","))
}
