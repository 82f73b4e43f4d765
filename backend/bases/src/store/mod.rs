//! The SQL of knowledge bases.

mod channels;
mod contents;
mod documents;
mod embedding;
mod embedding_info;
mod embedding_steps;
mod estimates;
mod evaluations;
mod history;
mod listed_bases;
mod listed_folders;
mod lists;
mod pages;
#[cfg(test)]
mod plans;
mod questions;
mod rewriting;
mod statistics;
mod synced_files;
mod toc;
mod transcripts;
mod unknown_usage;
mod usage;
mod vectorstores;
mod waiting_work;

use colloquy_accounts::Tenant;
use colloquy_store::{Dialect, Executor, StoreError, statement};
use serde::{Deserialize, Serialize};

pub(super) use self::{
    channels::*, contents::*, documents::*, embedding::*, embedding_info::*, embedding_steps::*,
    estimates::*, evaluations::*, history::*, listed_bases::*, listed_folders::*, lists::*,
    pages::*, questions::*, rewriting::*, statistics::*, synced_files::*, toc::*, transcripts::*,
    unknown_usage::*, usage::*, vectorstores::*, waiting_work::*,
};
use super::{
    base::{KnowledgeBase, Progress},
    folder::Folder,
    names::sort_name,
    rows::Removed,
};

#[derive(sqlx::FromRow)]
struct BaseRow {
    id: String,
    name: String,
    expert_name: Option<String>,
    user_email: Option<String>,
    created_at: i64,
    deletion_requested_at: Option<i64>,
}

#[derive(sqlx::FromRow)]
struct ListedRow {
    #[sqlx(flatten)]
    base: BaseRow,
    #[sqlx(flatten)]
    progress: ProgressRow,
}

#[derive(sqlx::FromRow)]
struct ProgressRow {
    pending: i64,
    failed: i64,
    embedded: i64,
}

impl From<ProgressRow> for Progress {
    fn from(row: ProgressRow) -> Self {
        Self {
            pending: row.pending.unsigned_abs(),
            failed: row.failed.unsigned_abs(),
            embedded: row.embedded.unsigned_abs(),
        }
    }
}

const BASE_COLUMNS: &str =
    "b.id, b.name, b.expert_name, b.user_email, b.created_at, b.deletion_requested_at";

impl From<BaseRow> for KnowledgeBase {
    fn from(row: BaseRow) -> Self {
        Self {
            id: row.id,
            name: row.name,
            expert_name: row.expert_name,
            user_email: row.user_email,
            created_at: row.created_at,
            deletion_requested_at: row.deletion_requested_at,
        }
    }
}

/// Whether there was no base of this name.
pub(super) async fn insert_base(
    db: &impl Executor,
    tenant: &Tenant,
    base: &KnowledgeBase,
) -> Result<bool, StoreError> {
    let sql = "INSERT INTO knowledge_bases (id, partner, name, expert_name, user_email, created_at, sort_name) \
               VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (partner, name) DO NOTHING";
    let values = [
        base.id.as_str().into(),
        tenant.partner().as_str().into(),
        base.name.as_str().into(),
        base.expert_name.as_deref().into(),
        base.user_email.as_deref().into(),
        base.created_at.into(),
        sort_name(&base.name).into(),
    ];
    Ok(db.execute(statement(sql, values)).await? == 1)
}

pub(super) async fn count_bases(db: &impl Executor, tenant: &Tenant) -> Result<u64, StoreError> {
    let sql = "SELECT COUNT(*) FROM knowledge_bases WHERE partner = $1";
    db.fetch_count(statement(sql, [tenant.partner().as_str().into()]))
        .await
}

/// Returns false once a base was deleted.
pub(super) async fn has_base(db: &impl Executor, base: &str) -> Result<bool, StoreError> {
    let sql = "SELECT COUNT(*) FROM knowledge_bases WHERE id = $1";
    Ok(db.fetch_count(statement(sql, [base.into()])).await? > 0)
}

/// The column `embedded` of [`ProgressRow`], beside [`PENDING_AND_FAILED`].
const EMBEDDED: &str =
    "COALESCE(SUM(CASE WHEN d.embedding = 'done' THEN 1 ELSE 0 END), 0) AS embedded";

/// Counts the documents of a base by the state of their embedding, without those that are being deleted.
pub(super) async fn progress_of(db: &impl Executor, base: &str) -> Result<Progress, StoreError> {
    let sql = format!(
        "SELECT {PENDING_AND_FAILED}, {EMBEDDED} FROM knowledge_documents d WHERE d.base_id = $1 AND {NOT_BEING_DELETED}"
    );
    let row: Option<ProgressRow> = db.fetch_one(statement(sql, [base.into()])).await?;
    Ok(row.map(Progress::from).unwrap_or_default())
}

pub(super) async fn list_bases(
    db: &impl Executor,
    tenant: &Tenant,
) -> Result<Vec<(KnowledgeBase, Progress)>, StoreError> {
    let sql = format!(
        "SELECT {BASE_COLUMNS}, {PENDING_AND_FAILED}, {EMBEDDED} FROM knowledge_bases b \
         LEFT JOIN knowledge_documents d ON d.base_id = b.id AND {NOT_BEING_DELETED} \
         WHERE b.partner = $1 GROUP BY b.id ORDER BY b.name"
    );
    let statement = statement(sql, [tenant.partner().as_str().into()]);
    let rows: Vec<ListedRow> = db.fetch_all(statement).await?;
    let listed = |row: ListedRow| (row.base.into(), row.progress.into());
    Ok(rows.into_iter().map(listed).collect())
}

pub(super) async fn find_base(
    db: &impl Executor,
    tenant: &Tenant,
    name: &str,
) -> Result<Option<KnowledgeBase>, StoreError> {
    let sql = format!(
        "SELECT {BASE_COLUMNS} FROM knowledge_bases b WHERE b.partner = $1 AND b.name = $2"
    );
    let values = [tenant.partner().as_str().into(), name.into()];
    let row: Option<BaseRow> = db.fetch_one(statement(sql, values)).await?;
    Ok(row.map(KnowledgeBase::from))
}

#[derive(sqlx::FromRow)]
struct PartnerRow {
    partner: String,
}

/// Whose a base is, for work in the background.
pub(super) async fn tenant_of(
    db: &impl Executor,
    base: &str,
) -> Result<Option<Tenant>, StoreError> {
    let sql = "SELECT partner FROM knowledge_bases WHERE id = $1";
    let row: Option<PartnerRow> = db.fetch_one(statement(sql, [base.into()])).await?;
    Ok(row.map(|row| Tenant::of_row(&row.partner)))
}

#[derive(sqlx::FromRow)]
struct NameRow {
    name: String,
}

/// What a base is called, for work in the background.
pub(super) async fn base_name(
    db: &impl Executor,
    base: &str,
) -> Result<Option<String>, StoreError> {
    let sql = "SELECT name FROM knowledge_bases WHERE id = $1";
    let row: Option<NameRow> = db.fetch_one(statement(sql, [base.into()])).await?;
    Ok(row.map(|row| row.name))
}

/// Whether there was no folder of this name.
pub(super) async fn insert_folder(
    db: &impl Executor,
    base: &KnowledgeBase,
    folder: &Folder,
) -> Result<bool, StoreError> {
    let sql = "INSERT INTO knowledge_folders (id, base_id, name, type, created_at, sort_name) VALUES ($1, $2, $3, $4, $5, $6) \
               ON CONFLICT (base_id, name) DO NOTHING";
    let values = [
        folder.id.as_str().into(),
        base.id.as_str().into(),
        folder.name.as_str().into(),
        folder.kind.as_str().into(),
        folder.created_at.into(),
        sort_name(&folder.name).into(),
    ];
    Ok(db.execute(statement(sql, values)).await? == 1)
}

pub(super) async fn count_folders(
    db: &impl Executor,
    base: &KnowledgeBase,
) -> Result<u64, StoreError> {
    let sql = "SELECT COUNT(*) FROM knowledge_folders WHERE base_id = $1";
    db.fetch_count(statement(sql, [base.id.as_str().into()]))
        .await
}

pub(super) async fn list_folders(
    db: &impl Executor,
    base: &KnowledgeBase,
) -> Result<Vec<Folder>, StoreError> {
    let sql = "SELECT id, name, type, created_at, deletion_requested_at FROM knowledge_folders WHERE base_id = $1 ORDER BY name";
    db.fetch_all(statement(sql, [base.id.as_str().into()]))
        .await
}

pub(super) async fn find_folder(
    db: &impl Executor,
    base: &KnowledgeBase,
    name: &str,
) -> Result<Option<Folder>, StoreError> {
    let sql = "SELECT id, name, type, created_at, deletion_requested_at FROM knowledge_folders WHERE base_id = $1 AND name = $2";
    let values = [base.id.as_str().into(), name.into()];
    db.fetch_one(statement(sql, values)).await
}

/// What is deleted with all that is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Whole {
    /// A knowledge base.
    Base,
    /// A folder.
    Folder,
    /// A document.
    Document,
}

impl Whole {
    fn table(self) -> &'static str {
        match self {
            Self::Base => "knowledge_bases",
            Self::Folder => "knowledge_folders",
            Self::Document => "knowledge_documents",
        }
    }

    /// The column of documents that says what they belong to.
    fn column(self) -> &'static str {
        match self {
            Self::Base => "base_id",
            Self::Folder => "folder_id",
            Self::Document => "id",
        }
    }
}

#[derive(sqlx::FromRow)]
struct BaseIdRow {
    base_id: String,
}

/// The base that it belongs to, or is.
pub(super) async fn base_with(
    db: &impl Executor,
    whole: Whole,
    id: &str,
) -> Result<Option<String>, StoreError> {
    let column = match whole {
        Whole::Base => "id",
        Whole::Folder | Whole::Document => "base_id",
    };
    let sql = format!(
        "SELECT {column} AS base_id FROM {} WHERE id = $1",
        whole.table()
    );
    let row: Option<BaseIdRow> = db.fetch_one(statement(sql, [id.into()])).await?;
    Ok(row.map(|row| row.base_id))
}

/// Notes that it is to be deleted, from when on nothing begins in it. Whether it is there.
pub(super) async fn request_deletion(
    db: &impl Executor,
    whole: Whole,
    id: &str,
    now: i64,
) -> Result<bool, StoreError> {
    let sql = format!(
        "UPDATE {} SET deletion_requested_at = COALESCE(deletion_requested_at, $2) WHERE id = $1",
        whole.table()
    );
    Ok(db.execute(statement(sql, [id.into(), now.into()])).await? == 1)
}

/// How many documents in it are being worked on.
pub(super) async fn count_running(
    db: &impl Executor,
    whole: Whole,
    id: &str,
) -> Result<u64, StoreError> {
    let sql = format!(
        "SELECT COUNT(*) FROM knowledge_documents WHERE {} = $1 AND 'running' IN (digitizing, rewriting, embedding)",
        whole.column()
    );
    db.fetch_count(statement(sql, [id.into()])).await
}

/// How many channels in it are being looked through. None of them begins any more.
pub(super) async fn stop_channels(
    db: &impl Executor,
    whole: Whole,
    id: &str,
) -> Result<u64, StoreError> {
    if whole == Whole::Document {
        return Ok(0);
    }
    let column = whole.column();
    let sql = format!("UPDATE knowledge_channels SET enabled = $2 WHERE {column} = $1");
    db.execute(statement(sql, [id.into(), false.into()]))
        .await?;
    let sql = format!(
        "SELECT COUNT(*) FROM knowledge_channels WHERE {column} = $1 AND status = 'syncing'"
    );
    db.fetch_count(statement(sql, [id.into()])).await
}

/// The query that finds the files of all that is in it.
pub(super) fn files_in(whole: Whole) -> String {
    format!(
        "SELECT c.blob FROM knowledge_contents c JOIN knowledge_documents d ON d.id = c.document_id WHERE d.{0} = $1 \
         UNION SELECT m.blob FROM knowledge_manifests m JOIN knowledge_documents d ON d.id = m.document_id WHERE d.{0} = $1 \
         UNION SELECT d.vectors FROM knowledge_documents d WHERE d.{0} = $1 AND d.vectors IS NOT NULL",
        whole.column()
    )
}

/// Whose it is.
pub(super) async fn partner_with(
    db: &impl Executor,
    whole: Whole,
    id: &str,
) -> Result<Option<String>, StoreError> {
    let Some(base) = base_with(db, whole, id).await? else {
        return Ok(None);
    };
    let sql = "SELECT partner FROM knowledge_bases WHERE id = $1";
    let row: Option<PartnerRow> = db.fetch_one(statement(sql, [base.into()])).await?;
    Ok(row.map(|row| row.partner))
}

/// Locks a base or a folder until the transaction ends, so that nothing is inserted in it. On SQLite the transaction is the lock.
pub(super) async fn close_to_inserts(
    db: &impl Executor,
    whole: Whole,
    id: &str,
) -> Result<(), StoreError> {
    if db.dialect() == Dialect::Postgres && whole != Whole::Document {
        let sql = format!("SELECT 1 FROM {} WHERE id = $1 FOR UPDATE", whole.table());
        db.execute(statement(sql, [id.into()])).await?;
    }
    Ok(())
}

/// Deletes it with all that is in it, and returns how many rows that were.
pub(super) async fn delete(
    db: &impl Executor,
    whole: Whole,
    id: &str,
) -> Result<Removed, StoreError> {
    let mut removed = Removed::default();
    if whole == Whole::Base {
        let sql = "SELECT CAST(COALESCE(SUM(bytes), 0) AS BIGINT) FROM knowledge_questions WHERE base_id = $1";
        removed.question_bytes = db.fetch_count(statement(sql, [id.into()])).await?;
        let sql = "DELETE FROM knowledge_evaluations WHERE base_id = $1";
        removed.evaluations = db.execute(statement(sql, [id.into()])).await?;
        let sql = "DELETE FROM knowledge_questions WHERE base_id = $1";
        db.execute(statement(sql, [id.into()])).await?;
    }
    // What is in it first: rows that a foreign key deletes are not told.
    let sql = format!(
        "DELETE FROM knowledge_documents WHERE {} = $1",
        whole.column()
    );
    removed.documents = db.execute(statement(sql, [id.into()])).await?;
    if whole == Whole::Document {
        return Ok(removed);
    }
    let sql = match whole {
        Whole::Base => {
            "DELETE FROM knowledge_channel_videos WHERE channel IN (SELECT folder_id FROM knowledge_channels WHERE base_id = $1)"
        }
        Whole::Folder | Whole::Document => {
            "DELETE FROM knowledge_channel_videos WHERE channel = $1"
        }
    };
    removed.videos = db.execute(statement(sql, [id.into()])).await?;
    let sql = match whole {
        Whole::Base => "DELETE FROM knowledge_folders WHERE base_id = $1",
        Whole::Folder | Whole::Document => "DELETE FROM knowledge_folders WHERE id = $1",
    };
    removed.folders = db.execute(statement(sql, [id.into()])).await?;
    if whole == Whole::Base {
        let sql = "DELETE FROM knowledge_bases WHERE id = $1";
        removed.bases = db.execute(statement(sql, [id.into()])).await?;
    }
    Ok(removed)
}
