//! The SQL of how far the embedding of documents is.

use colloquy_store::{Executor, StoreError, statement};

use crate::document::Step;

/// Notes how far the embedding of a document is.
pub(crate) async fn set_embedding(
    db: &impl Executor,
    document: &str,
    step: Step,
    error: Option<&str>,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET embedding = $2, embedding_error = $3, embedding_refused = FALSE, embedding_at = $4, updated_at = $4 \
               WHERE id = $1";
    let values = [
        document.into(),
        step.as_str().into(),
        error.into(),
        now.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Notes why its embedding has failed, for [`fail_embedding`] to keep.
pub(crate) async fn note_embedding_error(
    db: &impl Executor,
    document: &str,
    reason: &str,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET embedding_error = $2 WHERE id = $1 AND embedding = 'running'";
    db.execute(statement(sql, [document.into(), reason.into()]))
        .await?;
    Ok(())
}

/// Notes that embedding was given up: for the reason that the last run has noted, or else for this one. A document that is embedded by now, or
/// has nothing to embed, is unchanged.
pub(crate) async fn fail_embedding(
    db: &impl Executor,
    document: &str,
    reason: &str,
    now: i64,
) -> Result<(), StoreError> {
    // What one that is queued says is the reason of an earlier run.
    let sql = "UPDATE knowledge_documents SET embedding = 'failed', \
               embedding_error = CASE WHEN embedding = 'running' THEN COALESCE(embedding_error, $2) ELSE $2 END, \
               embedding_refused = FALSE, embedding_at = $3, updated_at = $3 WHERE id = $1 AND embedding IN ('running', 'queued')";
    db.execute(statement(sql, [document.into(), reason.into(), now.into()]))
        .await?;
    Ok(())
}

/// Notes that it cannot be embedded as it is.
pub(crate) async fn refuse_embedding(
    db: &impl Executor,
    document: &str,
    reason: &str,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET embedding = 'failed', embedding_error = $2, embedding_refused = TRUE, embedding_at = $3, updated_at = $3 \
               WHERE id = $1";
    db.execute(statement(sql, [document.into(), reason.into(), now.into()]))
        .await?;
    Ok(())
}

/// Has all of it embedded again when it is embedded next, also what has not changed.
pub(crate) async fn embed_anew(db: &impl Executor, document: &str) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET embedding_anew = $2 WHERE id = $1";
    db.execute(statement(sql, [document.into(), true.into()]))
        .await?;
    Ok(())
}

/// Whether all of it is to be embedded again.
pub(crate) async fn is_embedded_anew(
    db: &impl Executor,
    document: &str,
) -> Result<bool, StoreError> {
    let sql = "SELECT COUNT(*) FROM knowledge_documents WHERE id = $1 AND embedding_anew";
    Ok(db.fetch_count(statement(sql, [document.into()])).await? > 0)
}

/// Notes that its embedding waits: for something that is wrong now, or only for its turn.
pub(crate) async fn wait_with_embedding(
    db: &impl Executor,
    document: &str,
    reason: Option<&str>,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET embedding = 'queued', embedding_error = $2 WHERE id = $1 AND embedding = 'running'";
    db.execute(statement(sql, [document.into(), reason.into()]))
        .await?;
    Ok(())
}

/// Notes that it is not being embedded, as there is nothing to embed.
pub(crate) async fn stop_embedding(db: &impl Executor, document: &str) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET embedding = 'none' WHERE id = $1 AND embedding IN ('running', 'queued')";
    db.execute(statement(sql, [document.into()])).await?;
    Ok(())
}

/// Notes that it is embedded, and whether all of it was `anew`, unless somebody has written another content since. Whether it was so.
pub(crate) async fn finish_embedding(
    db: &impl Executor,
    document: &str,
    revision: i64,
    anew: bool,
    now: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE knowledge_documents SET embedding = 'done', embedding_error = NULL, embedding_at = $3, updated_at = $3, \
               embedding_anew = CASE WHEN $4 THEN $5 ELSE embedding_anew END WHERE id = $1 AND revision = $2";
    let values = [
        document.into(),
        revision.into(),
        now.into(),
        anew.into(),
        false.into(),
    ];
    Ok(db.execute(statement(sql, values)).await? == 1)
}
