//! The SQL of transcripts.

use colloquy_store::{Executor, StoreError, statement};

/// A part of a recording that was transcribed.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct TranscribedPart {
    /// In samples at 16,000 Hz.
    pub(crate) begin_sample: i64,
    pub(crate) end_sample: i64,
    /// Empty where nobody speaks.
    pub(crate) words: String,
    /// The language that it was transcribed as although no model could tell whether it is spoken there.
    pub(crate) assumed_language: Option<String>,
}

/// What was transcribed of a recording, in order.
pub(crate) async fn transcript(
    db: &impl Executor,
    document: &str,
    source: &str,
) -> Result<Vec<TranscribedPart>, StoreError> {
    let sql = "SELECT begin_sample, end_sample, words, assumed_language FROM knowledge_transcripts \
               WHERE document_id = $1 AND source = $2 ORDER BY begin_sample";
    db.fetch_all(statement(sql, [document.into(), source.into()]))
        .await
}

/// Returns at most `limit` parts of a recording with words that begin behind the sample `after`, in order.
pub(crate) async fn spoken_parts(
    db: &impl Executor,
    document: &str,
    source: &str,
    after: i64,
    limit: u64,
) -> Result<Vec<TranscribedPart>, StoreError> {
    let sql = "SELECT begin_sample, end_sample, words, assumed_language FROM knowledge_transcripts \
               WHERE document_id = $1 AND source = $2 AND begin_sample > $3 AND TRIM(words) <> '' ORDER BY begin_sample LIMIT $4";
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let values = [document.into(), source.into(), after.into(), limit.into()];
    db.fetch_all(statement(sql, values)).await
}

pub(crate) async fn put_part(
    db: &impl Executor,
    document: &str,
    source: &str,
    part: &TranscribedPart,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO knowledge_transcripts (document_id, source, begin_sample, end_sample, words, assumed_language) \
               VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (document_id, source, begin_sample) DO NOTHING";
    let values = [
        document.into(),
        source.into(),
        part.begin_sample.into(),
        part.end_sample.into(),
        part.words.as_str().into(),
        part.assumed_language.as_deref().into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Forgets what was transcribed of recordings that the document had before this one.
pub(crate) async fn forget_other_transcripts(
    db: &impl Executor,
    document: &str,
    source: &str,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM knowledge_transcripts WHERE document_id = $1 AND source <> $2";
    db.execute(statement(sql, [document.into(), source.into()]))
        .await?;
    Ok(())
}

/// Forgets what was transcribed as a language that was assumed, now that a model tells.
pub(crate) async fn forget_assumed_transcripts(
    db: &impl Executor,
    document: &str,
) -> Result<(), StoreError> {
    let sql =
        "DELETE FROM knowledge_transcripts WHERE document_id = $1 AND assumed_language IS NOT NULL";
    db.execute(statement(sql, [document.into()])).await?;
    Ok(())
}
