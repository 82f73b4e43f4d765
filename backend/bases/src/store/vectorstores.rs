//! The SQL of vector stores elsewhere, and of how far documents are brought there.

use colloquy_accounts::Tenant;
use colloquy_store::{Executor, Order, Slice, StoreError, Value, statement};

use crate::{base::KnowledgeBase, store::Whole, vectorstore::SyncCounts};

/// The condition that a row belongs to a partner, the first value, or to none any more.
pub(super) fn owned(partner: Option<&str>) -> (&'static str, Vec<Value>) {
    match partner {
        Some(partner) => ("f.owner = $1", vec![partner.into()]),
        None => ("f.owner IS NULL", vec![]),
    }
}

/// The states in which something is to be done.
pub(super) fn to_do(only_removals: bool) -> &'static str {
    match only_removals {
        true => "f.state = 'removing'",
        false => "f.state IN ('queued', 'uploaded', 'indexing', 'removing')",
    }
}

/// The vector stores that are to go and have no files any more.
pub(crate) async fn empty_vectorstores(
    db: &impl Executor,
    partner: Option<&str>,
) -> Result<Vec<BaseVectorstore>, StoreError> {
    let (owner, mut values) = owned(partner);
    values.push(true.into());
    let sql = format!(
        "SELECT f.base_id, f.store_id, f.asked_at, f.last_error, f.last_synced_at FROM vectorstores f WHERE {owner} AND f.removing = ${} \
         AND NOT EXISTS (SELECT 1 FROM vectorstore_files o WHERE o.base_id = f.base_id)",
        values.len()
    );
    db.fetch_all(statement(sql, values)).await
}

/// Somebody for whose files or vector stores something is to be done.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct OwnerWithWork {
    /// The partner; `None` for those that are gone.
    pub(crate) owner: Option<String>,
    /// Whether something is to be removed.
    pub(crate) removes: bool,
}

pub(crate) async fn owners_with_work(db: &impl Executor) -> Result<Vec<OwnerWithWork>, StoreError> {
    let sql = format!(
        "SELECT w.owner, MAX(w.removes) > 0 AS removes FROM (\
         SELECT f.owner, CASE WHEN f.state = 'removing' THEN 1 ELSE 0 END AS removes FROM vectorstore_files f WHERE {} \
         UNION ALL SELECT v.owner, 1 AS removes FROM vectorstores v WHERE v.removing = $1) w GROUP BY w.owner",
        to_do(false)
    );
    db.fetch_all(statement(sql, [true.into()])).await
}

/// The vector store of a base.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct BaseVectorstore {
    pub(crate) base_id: String,
    pub(crate) store_id: Option<String>,
    pub(crate) asked_at: Option<i64>,
    pub(crate) last_error: Option<String>,
    pub(crate) last_synced_at: Option<i64>,
}

pub(crate) async fn vectorstore_of(
    db: &impl Executor,
    base: &str,
) -> Result<Option<BaseVectorstore>, StoreError> {
    let sql = "SELECT base_id, store_id, asked_at, last_error, last_synced_at FROM vectorstores WHERE base_id = $1";
    db.fetch_one(statement(sql, [base.into()])).await
}

/// Notes that a base has, or will have, a vector store.
pub(crate) async fn open_vectorstore(
    db: &impl Executor,
    tenant: &Tenant,
    base: &str,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO vectorstores (base_id, owner, removing) VALUES ($1, $2, $3) ON CONFLICT (base_id) DO NOTHING";
    let values = [base.into(), tenant.partner().as_str().into(), false.into()];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Notes that the service is asked for a vector store.
pub(crate) async fn ask_for_vectorstore(
    db: &impl Executor,
    base: &str,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE vectorstores SET asked_at = $2 WHERE base_id = $1";
    db.execute(statement(sql, [base.into(), now.into()]))
        .await?;
    Ok(())
}

/// Notes which vector store a base has. Whether anybody still wants it.
pub(crate) async fn set_vectorstore(
    db: &impl Executor,
    base: &str,
    store: &str,
) -> Result<bool, StoreError> {
    let sql = "UPDATE vectorstores SET store_id = $2, asked_at = NULL WHERE base_id = $1";
    let changed = db.execute(statement(sql, [base.into(), store.into()]));
    Ok(changed.await? == 1)
}

/// Notes that the vector store of a base is gone, with what it knew of files: these are there and have to be brought into another one.
pub(crate) async fn lose_vectorstore(
    db: &impl Executor,
    base: &str,
    store: &str,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE vectorstore_files SET asked_at = NULL, next_at = $2, since = $2, \
               state = CASE WHEN is_current THEN 'uploaded' ELSE 'removing' END \
               WHERE base_id = $1 AND state IN ('indexing', 'synced') \
               AND EXISTS (SELECT 1 FROM vectorstores v WHERE v.base_id = $1 AND v.store_id = $3)";
    db.execute(statement(sql, [base.into(), now.into(), store.into()]))
        .await?;
    let sql = "UPDATE vectorstores SET store_id = NULL, asked_at = NULL WHERE base_id = $1 AND store_id = $2";
    db.execute(statement(sql, [base.into(), store.into()]))
        .await?;
    Ok(())
}

/// Until when nothing is asked for a partner.
pub(crate) async fn held_until(
    db: &impl Executor,
    partner: Option<&str>,
) -> Result<Option<i64>, StoreError> {
    #[derive(sqlx::FromRow)]
    struct HeldRow {
        held_until: Option<i64>,
    }
    let (owner, values) = owned(partner);
    let sql = format!("SELECT MAX(f.held_until) AS held_until FROM vectorstores f WHERE {owner}");
    let row: Option<HeldRow> = db.fetch_one(statement(sql, values)).await?;
    Ok(row.and_then(|row| row.held_until))
}

/// Notes until when nothing is asked for a partner.
pub(crate) async fn hold(
    db: &impl Executor,
    partner: Option<&str>,
    until: Option<i64>,
) -> Result<(), StoreError> {
    let (owner, mut values) = owned(partner);
    values.push(until.into());
    let sql = format!(
        "UPDATE vectorstores AS f SET held_until = ${} WHERE {owner}",
        values.len()
    );
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Has everything of a partner that waits for a better moment tried at once.
pub(crate) async fn release(
    db: &impl Executor,
    partner: Option<&str>,
    now: i64,
) -> Result<(), StoreError> {
    let (owner, mut values) = owned(partner);
    values.push(now.into());
    let sql = format!(
        "UPDATE vectorstore_files AS f SET next_at = ${at} WHERE {owner} AND {} AND f.next_at > ${at}",
        to_do(false),
        at = values.len()
    );
    db.execute(statement(sql, values)).await?;
    hold(db, partner, None).await
}

/// Times by which [`bring_sync_back`] puts right what a clock that was ahead has noted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BroughtBack {
    /// What was noted after this was noted by a clock that was ahead.
    pub(crate) latest: i64,
    /// What waits beyond this waits for such a clock.
    pub(crate) longest: i64,
    /// When the service was asked at the earliest for what it was asked for after `latest`.
    pub(crate) asked_at: i64,
    /// When all shows that it has been asked for.
    pub(crate) settled_at: i64,
}

/// Makes due what a clock that was ahead has noted for a partner. What is to be removed may have been asked for at any time: nothing of it stays
/// at the service.
pub(crate) async fn bring_sync_back(
    db: &impl Executor,
    partner: Option<&str>,
    now: i64,
    times: BroughtBack,
) -> Result<(), StoreError> {
    let (owner, mut values) = owned(partner);
    let BroughtBack {
        latest,
        longest,
        asked_at,
        settled_at,
    } = times;
    values.extend([latest, longest, asked_at, settled_at].map(Into::into));
    let [at_latest, at_longest, at_asked, at_settled] =
        [3, 2, 1, 0].map(|from| values.len() - from);
    let sql = format!(
        "UPDATE vectorstores AS f SET asked_at = CASE WHEN f.asked_at > ${at_latest} THEN ${at_asked} ELSE f.asked_at END, \
         held_until = CASE WHEN f.asked_at > ${at_latest} THEN ${at_settled} WHEN f.held_until > ${at_longest} THEN NULL ELSE f.held_until END \
         WHERE {owner} AND (f.asked_at > ${at_latest} OR f.held_until > ${at_longest})"
    );
    db.execute(statement(sql, values.clone())).await?;
    values.push(now.into());
    let at_now = values.len();
    let sql = format!(
        "UPDATE vectorstore_files AS f SET \
         asked_at = CASE WHEN f.asked_at <= ${at_latest} THEN f.asked_at WHEN f.state = 'removing' THEN 0 WHEN f.asked_at IS NULL THEN NULL ELSE ${at_asked} END, \
         since = CASE WHEN f.since > ${at_latest} THEN ${at_now} ELSE f.since END, \
         next_at = CASE WHEN f.asked_at > ${at_latest} THEN ${at_settled} ELSE ${at_now} END \
         WHERE {owner} AND {} AND (f.asked_at > ${at_latest} OR f.since > ${at_latest} OR f.next_at > ${at_longest})",
        to_do(false)
    );
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Notes why nothing goes on for a partner's bases, or that it does.
pub(crate) async fn set_vectorstore_error(
    db: &impl Executor,
    base: &str,
    error: Option<&str>,
) -> Result<(), StoreError> {
    let sql = "UPDATE vectorstores SET last_error = $2 WHERE base_id = $1 AND COALESCE(last_error, '') <> COALESCE($2, '')";
    db.execute(statement(sql, [base.into(), error.into()]))
        .await?;
    Ok(())
}

pub(crate) async fn delete_vectorstore(db: &impl Executor, base: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM vectorstores WHERE base_id = $1";
    db.execute(statement(sql, [base.into()])).await?;
    Ok(())
}

/// Whether anything of this is at the vector store, or may be.
pub(crate) async fn is_synced(
    db: &impl Executor,
    whole: Whole,
    id: &str,
) -> Result<bool, StoreError> {
    let sql = match whole {
        Whole::Base => "SELECT COUNT(*) FROM vectorstores WHERE base_id = $1",
        Whole::Document => "SELECT COUNT(*) FROM vectorstore_files WHERE document_id = $1",
        Whole::Folder => {
            "SELECT COUNT(*) FROM vectorstore_files f JOIN knowledge_documents d ON d.id = f.document_id WHERE d.folder_id = $1"
        }
    };
    Ok(db.fetch_count(statement(sql, [id.into()])).await? > 0)
}

/// Has all files of it removed, before it goes itself.
pub(crate) async fn remove_files_of(
    db: &impl Executor,
    whole: Whole,
    id: &str,
    now: i64,
) -> Result<(), StoreError> {
    let which = match whole {
        Whole::Base => "base_id = $1",
        Whole::Document => "document_id = $1",
        Whole::Folder => {
            "document_id IN (SELECT d.id FROM knowledge_documents d WHERE d.folder_id = $1)"
        }
    };
    let sql = format!(
        "UPDATE vectorstore_files SET state = 'removing', is_current = $3, attempts = 0, next_at = $2, since = $2 \
         WHERE {which} AND state <> 'removing'"
    );
    db.execute(statement(sql, [id.into(), now.into(), false.into()]))
        .await?;
    if whole == Whole::Base {
        let sql = "UPDATE vectorstores SET removing = $2 WHERE base_id = $1";
        db.execute(statement(sql, [id.into(), true.into()])).await?;
    }
    Ok(())
}

/// Has all files and vector stores of a partner removed, which is about to go. Whether there are any.
pub(crate) async fn remove_files_of_partner(
    db: &impl Executor,
    partner: &str,
    now: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE vectorstore_files SET state = 'removing', is_current = $3, attempts = 0, next_at = $2, since = $2 \
               WHERE owner = $1 AND state <> 'removing'";
    db.execute(statement(sql, [partner.into(), now.into(), false.into()]))
        .await?;
    let sql = "UPDATE vectorstores SET removing = $2 WHERE owner = $1";
    let stores = db
        .execute(statement(sql, [partner.into(), true.into()]))
        .await?;
    Ok(stores > 0)
}

/// What a document with final content is at the vector store: `missing` without a file, `outdated` with that of another content.
const STANDING: &str = "CASE WHEN f.id IS NULL THEN 'missing' WHEN f.sha256 <> c.sha256 THEN 'outdated' ELSE f.state END";

/// From what the documents with final content of a base and their files are read.
const STANDINGS: &str = "knowledge_documents d JOIN knowledge_folders o ON o.id = d.folder_id \
     JOIN knowledge_contents c ON c.document_id = d.id AND c.variant = 'rewritten' \
     LEFT JOIN vectorstore_files f ON f.document_id = d.id AND f.is_current \
     WHERE d.base_id = $1 AND d.deletion_requested_at IS NULL AND o.deletion_requested_at IS NULL";

#[derive(sqlx::FromRow)]
struct CountRow {
    standing: String,
    documents: i64,
}

/// How many documents of a base are how far.
pub(crate) async fn count_synced(
    db: &impl Executor,
    base: &KnowledgeBase,
) -> Result<SyncCounts, StoreError> {
    let sql =
        format!("SELECT {STANDING} AS standing, COUNT(*) AS documents FROM {STANDINGS} GROUP BY 1");
    let rows: Vec<CountRow> = db
        .fetch_all(statement(sql, [base.id.as_str().into()]))
        .await?;
    let mut counts = SyncCounts::default();
    for row in rows {
        let count = row.documents.unsigned_abs();
        counts.documents += count;
        *counts.of(&row.standing) += count;
    }
    // Those of a document that goes once its work has ended are to be removed, too.
    let sql = "SELECT COUNT(*) FROM vectorstore_files f LEFT JOIN knowledge_documents d ON d.id = f.document_id \
               LEFT JOIN knowledge_folders o ON o.id = d.folder_id WHERE f.base_id = $1 \
               AND (f.state = 'removing' OR d.deletion_requested_at IS NOT NULL OR o.deletion_requested_at IS NOT NULL)";
    counts.removing = db
        .fetch_count(statement(sql, [base.id.as_str().into()]))
        .await?;
    Ok(counts)
}

/// A document with final content, and how far its file is.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct SyncStanding {
    pub(crate) document_id: String,
    pub(crate) name: String,
    pub(crate) folder: String,
    pub(crate) standing: String,
    pub(crate) file_id: Option<String>,
    pub(crate) attempts: Option<i64>,
    pub(crate) next_at: Option<i64>,
    pub(crate) error: Option<String>,
    pub(crate) synced_at: Option<i64>,
}

/// A part of the documents of a base with final content, by id.
pub(crate) async fn sync_standings(
    db: &impl Executor,
    base: &KnowledgeBase,
    slice: &Slice,
) -> Result<Vec<SyncStanding>, StoreError> {
    let mut sql = format!(
        "SELECT d.id AS document_id, d.name, o.name AS folder, {STANDING} AS standing, f.file_id, f.attempts, f.next_at, f.error, \
         f.synced_at FROM {STANDINGS}"
    );
    let mut values = vec![base.id.as_str().into()];
    slice.complete(&mut sql, &mut values, "d.id", Order::Ascending);
    db.fetch_all(statement(sql, values)).await
}
