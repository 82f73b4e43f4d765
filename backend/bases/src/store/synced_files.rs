//! The SQL of files that are, or are to be, at a vector store elsewhere.

use colloquy_accounts::Tenant;
use colloquy_store::{Executor, StoreError, statement};

use super::vectorstores::{owned, to_do};
use crate::vectorstore::FileState;

const COLUMNS: &str = "f.id, f.base_id, f.document_id, f.sha256, f.is_current, f.state, f.file_id, f.asked_at, f.attempts, f.since";

/// A file that is, or is to be, at the vector store.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct SyncedFile {
    pub(crate) id: String,
    pub(crate) base_id: String,
    pub(crate) document_id: String,
    pub(crate) sha256: String,
    pub(crate) is_current: bool,
    #[sqlx(try_from = "String")]
    pub(crate) state: FileState,
    pub(crate) file_id: Option<String>,
    pub(crate) asked_at: Option<i64>,
    pub(crate) attempts: i64,
    pub(crate) since: i64,
}

/// The files for which something is due, the longest first.
pub(crate) async fn due_files(
    db: &impl Executor,
    partner: Option<&str>,
    only_removals: bool,
    now: i64,
    most: usize,
) -> Result<Vec<SyncedFile>, StoreError> {
    let (owner, mut values) = owned(partner);
    values.push(now.into());
    let sql = format!(
        "SELECT {COLUMNS} FROM vectorstore_files f WHERE {owner} AND {} AND f.next_at <= ${} \
         ORDER BY f.next_at, f.id LIMIT {most}",
        to_do(only_removals),
        values.len()
    );
    db.fetch_all(statement(sql, values)).await
}

/// When the next thing is due.
pub(crate) async fn next_due(
    db: &impl Executor,
    partner: Option<&str>,
    only_removals: bool,
) -> Result<Option<i64>, StoreError> {
    #[derive(sqlx::FromRow)]
    struct NextRow {
        next_at: Option<i64>,
    }
    let (owner, values) = owned(partner);
    let sql = format!(
        "SELECT MIN(f.next_at) AS next_at FROM vectorstore_files f WHERE {owner} AND {}",
        to_do(only_removals)
    );
    let row: Option<NextRow> = db.fetch_one(statement(sql, values)).await?;
    Ok(row.and_then(|row| row.next_at))
}

/// What is to be at the vector store of a document.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct CurrentFile {
    pub(crate) id: String,
    pub(crate) sha256: String,
    #[sqlx(try_from = "String")]
    pub(crate) state: FileState,
    pub(crate) file_id: Option<String>,
    pub(crate) asked_at: Option<i64>,
}

pub(crate) async fn current_file(
    db: &impl Executor,
    document: &str,
) -> Result<Option<CurrentFile>, StoreError> {
    let sql = "SELECT id, sha256, state, file_id, asked_at FROM vectorstore_files WHERE document_id = $1 AND is_current";
    db.fetch_one(statement(sql, [document.into()])).await
}

/// A file to bring there.
#[derive(Debug)]
pub(crate) struct NewSyncedFile<'a> {
    pub(crate) id: &'a str,
    pub(crate) base: &'a str,
    pub(crate) document: &'a str,
    pub(crate) sha256: &'a str,
}

pub(crate) async fn insert_synced_file(
    db: &impl Executor,
    tenant: &Tenant,
    new: &NewSyncedFile<'_>,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO vectorstore_files (id, base_id, document_id, owner, sha256, is_current, state, attempts, next_at, since) \
               VALUES ($1, $2, $3, $4, $5, $6, 'queued', 0, $7, $7)";
    let values = [
        new.id.into(),
        new.base.into(),
        new.document.into(),
        tenant.partner().as_str().into(),
        new.sha256.into(),
        true.into(),
        now.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Notes that a file is not what its document is to be found by. It goes when that is there.
pub(crate) async fn replace_file(db: &impl Executor, id: &str) -> Result<(), StoreError> {
    let sql = "UPDATE vectorstore_files SET is_current = $2 WHERE id = $1";
    db.execute(statement(sql, [id.into(), false.into()]))
        .await?;
    Ok(())
}

pub(crate) async fn delete_synced_file(db: &impl Executor, id: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM vectorstore_files WHERE id = $1";
    db.execute(statement(sql, [id.into()])).await?;
    Ok(())
}

/// Has a file tried again, or looked at again, from a state on.
pub(crate) async fn restart_file(
    db: &impl Executor,
    id: &str,
    state: FileState,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE vectorstore_files SET state = $2, attempts = 0, next_at = $3, since = $3, error = NULL \
               WHERE id = $1 AND state <> 'removing'";
    let values = [id.into(), state.as_str().into(), now.into()];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Notes that the service is asked for the next state of a file. Whether that is still wanted.
pub(crate) async fn ask_for_file(
    db: &impl Executor,
    file: &SyncedFile,
    now: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE vectorstore_files SET asked_at = $3 WHERE id = $1 AND state = $2";
    let values = [
        file.id.as_str().into(),
        file.state.as_str().into(),
        now.into(),
    ];
    Ok(db.execute(statement(sql, values)).await? == 1)
}

/// Notes that a question has made nothing.
pub(crate) async fn withdraw_question(db: &impl Executor, id: &str) -> Result<(), StoreError> {
    let sql = "UPDATE vectorstore_files SET asked_at = NULL WHERE id = $1";
    db.execute(statement(sql, [id.into()])).await?;
    Ok(())
}

/// Notes what the service calls a file that was uploaded, also when it is to be removed by now. Whether the row is still there.
pub(crate) async fn set_uploaded(
    db: &impl Executor,
    id: &str,
    file_id: &str,
    now: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE vectorstore_files SET file_id = $2, asked_at = NULL, error = NULL, next_at = $3, since = $3, \
               state = CASE WHEN state = 'removing' THEN state ELSE 'uploaded' END WHERE id = $1";
    let values = [id.into(), file_id.into(), now.into()];
    Ok(db.execute(statement(sql, values)).await? == 1)
}

/// Has a file looked at later, as nothing came of it now. It is no failure of its own.
pub(crate) async fn defer_file(
    db: &impl Executor,
    id: &str,
    next_at: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE vectorstore_files SET next_at = $2 WHERE id = $1";
    db.execute(statement(sql, [id.into(), next_at.into()]))
        .await?;
    Ok(())
}

/// Notes that it is not known since now what a question has made.
pub(crate) async fn doubt_file(db: &impl Executor, id: &str, now: i64) -> Result<(), StoreError> {
    let sql = "UPDATE vectorstore_files SET asked_at = $2 WHERE id = $1 AND asked_at IS NOT NULL";
    db.execute(statement(sql, [id.into(), now.into()])).await?;
    Ok(())
}

/// Notes that there is no such file at the service, so that it is uploaded again.
pub(crate) async fn lose_file(db: &impl Executor, id: &str, now: i64) -> Result<(), StoreError> {
    let sql = "UPDATE vectorstore_files SET file_id = NULL, asked_at = NULL, next_at = $2, since = $2, \
               state = CASE WHEN is_current THEN 'queued' ELSE 'removing' END WHERE id = $1 AND state <> 'removing'";
    db.execute(statement(sql, [id.into(), now.into()])).await?;
    Ok(())
}

/// Notes that a file has come to another state, where it is looked at again later.
pub(crate) async fn set_file_state(
    db: &impl Executor,
    id: &str,
    state: FileState,
    now: i64,
    next_at: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE vectorstore_files SET since = CASE WHEN state = $2 THEN since ELSE $3 END, state = $2, asked_at = NULL, \
               error = NULL, next_at = $4 WHERE id = $1 AND state <> 'removing'";
    let values = [id.into(), state.as_str().into(), now.into(), next_at.into()];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Notes that a step failed, and when it is tried again; without a time it is not.
pub(crate) async fn fail_file(
    db: &impl Executor,
    id: &str,
    attempts: i64,
    next_at: Option<i64>,
    error: &str,
) -> Result<(), StoreError> {
    let (sql, next) = match next_at {
        Some(next_at) => (
            "UPDATE vectorstore_files SET attempts = $2, error = $3, next_at = $4 WHERE id = $1",
            next_at,
        ),
        None => (
            "UPDATE vectorstore_files SET attempts = $2, error = $3, next_at = $4, state = 'failed' WHERE id = $1 AND state <> 'removing'",
            0,
        ),
    };
    let values = [id.into(), attempts.into(), error.into(), next.into()];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Notes that a file is searched. What its document had before goes, if it is what the document is to be found by.
pub(crate) async fn set_synced(
    db: &impl Executor,
    file: &SyncedFile,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE vectorstore_files SET state = 'synced', asked_at = NULL, attempts = 0, error = NULL, since = $2, synced_at = $2 \
               WHERE id = $1 AND state <> 'removing'";
    let values = [file.id.as_str().into(), now.into()];
    if db.execute(statement(sql, values)).await? == 0 {
        return Ok(());
    }
    let sql = "UPDATE vectorstore_files SET state = 'removing', attempts = 0, next_at = $2, since = $2 \
               WHERE document_id = $1 AND NOT is_current AND state <> 'removing' \
               AND EXISTS (SELECT 1 FROM vectorstore_files n WHERE n.id = $3 AND n.is_current)";
    let values = [
        file.document_id.as_str().into(),
        now.into(),
        file.id.as_str().into(),
    ];
    db.execute(statement(sql, values)).await?;
    let sql = "UPDATE vectorstores SET last_synced_at = $2, last_error = NULL WHERE base_id = $1";
    let values = [file.base_id.as_str().into(), now.into()];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Has a file removed.
pub(crate) async fn remove_file(db: &impl Executor, id: &str, now: i64) -> Result<(), StoreError> {
    let sql = "UPDATE vectorstore_files SET state = 'removing', is_current = $3, attempts = 0, next_at = $2, since = $2 WHERE id = $1";
    db.execute(statement(sql, [id.into(), now.into(), false.into()]))
        .await?;
    Ok(())
}

/// A document with final content.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct FinalDocument {
    pub(crate) id: String,
    pub(crate) sha256: String,
}

/// Some documents of a base with final content, in the order of their ids.
pub(crate) async fn final_documents(
    db: &impl Executor,
    base: &str,
    after: &str,
    most: usize,
) -> Result<Vec<FinalDocument>, StoreError> {
    let sql = format!(
        "SELECT d.id, c.sha256 FROM knowledge_documents d \
         JOIN knowledge_folders f ON f.id = d.folder_id AND f.deletion_requested_at IS NULL \
         JOIN knowledge_contents c ON c.document_id = d.id AND c.variant = 'rewritten' \
         WHERE d.base_id = $1 AND d.id > $2 AND d.deletion_requested_at IS NULL ORDER BY d.id LIMIT {most}"
    );
    db.fetch_all(statement(sql, [base.into(), after.into()]))
        .await
}

/// Some documents of a base whose file failed, with the content of that, in the order of their ids.
pub(crate) async fn failed_documents(
    db: &impl Executor,
    base: &str,
    after: &str,
    most: usize,
) -> Result<Vec<FinalDocument>, StoreError> {
    let sql = format!(
        "SELECT f.document_id AS id, f.sha256 FROM vectorstore_files f WHERE f.base_id = $1 AND f.state = 'failed' AND f.is_current \
         AND f.document_id > $2 ORDER BY f.document_id LIMIT {most}"
    );
    db.fetch_all(statement(sql, [base.into(), after.into()]))
        .await
}
