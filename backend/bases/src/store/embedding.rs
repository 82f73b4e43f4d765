//! The SQL of embedding: profiles, manifests, and what the indexes of nodes follow.

use colloquy_accounts::Tenant;
use colloquy_blobs::{BlobKey, Written};
use colloquy_store::{Executor, StoreError, Transaction, statement};

use crate::{
    document::Step,
    embedding::{Profile, TableOfContents},
    store::Whole,
};

pub(crate) async fn find_profile(
    db: &impl Executor,
    name: &str,
) -> Result<Option<Profile>, StoreError> {
    let sql = "SELECT id, name FROM embedding_profiles WHERE name = $1";
    db.fetch_one(statement(sql, [name.into()])).await
}

pub(crate) async fn load_profile(
    db: &impl Executor,
    id: i64,
) -> Result<Option<Profile>, StoreError> {
    let sql = "SELECT id, name FROM embedding_profiles WHERE id = $1";
    db.fetch_one(statement(sql, [id.into()])).await
}

/// Makes a profile of the next number, unless another one took the name or the number.
pub(crate) async fn insert_profile(db: &impl Executor, name: &str) -> Result<(), StoreError> {
    let sql = "INSERT INTO embedding_profiles (id, name) \
               SELECT COALESCE(MAX(id), 0) + 1, $1 FROM embedding_profiles WHERE TRUE ON CONFLICT DO NOTHING";
    db.execute(statement(sql, [name.into()])).await?;
    Ok(())
}

#[derive(sqlx::FromRow)]
struct ProfileRow {
    profile_id: Option<i64>,
}

/// The profile that a base is searched by.
pub(crate) async fn profile_of(db: &impl Executor, base: &str) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT profile_id FROM knowledge_bases WHERE id = $1";
    let row: Option<ProfileRow> = db.fetch_one(statement(sql, [base.into()])).await?;
    Ok(row.and_then(|row| row.profile_id))
}

pub(crate) async fn set_profile(
    db: &impl Executor,
    base: &str,
    profile: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_bases SET profile_id = $2 WHERE id = $1";
    db.execute(statement(sql, [base.into(), profile.into()]))
        .await?;
    Ok(())
}

/// A base that is searched by a profile.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct ProfiledBase {
    pub(crate) id: String,
    pub(crate) partner: String,
    pub(crate) profile_id: i64,
}

pub(crate) async fn bases_with_profiles(
    db: &impl Executor,
) -> Result<Vec<ProfiledBase>, StoreError> {
    let sql = "SELECT id, partner, profile_id FROM knowledge_bases WHERE profile_id IS NOT NULL AND deletion_requested_at IS NULL";
    db.fetch_all(statement(sql, [])).await
}

/// A document and whose it is.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct MissingDocument {
    pub(crate) id: String,
    pub(crate) partner: String,
    #[sqlx(try_from = "String")]
    pub(crate) embedding: Step,
}

/// What a document with final content lacks that a profile has not embedded.
const IS_MISSING: &str = "d.base_id = $1 AND d.deletion_requested_at IS NULL \
     AND EXISTS (SELECT 1 FROM knowledge_contents c WHERE c.document_id = d.id AND c.variant = 'rewritten') \
     AND NOT EXISTS (SELECT 1 FROM knowledge_manifests m WHERE m.document_id = d.id AND m.profile_id = $2 AND NOT m.stale)";

/// The documents of a base that a profile has not embedded.
pub(crate) async fn missing_documents(
    db: &impl Executor,
    base: &str,
    profile: i64,
) -> Result<Vec<MissingDocument>, StoreError> {
    let sql = format!(
        "SELECT d.id, b.partner, d.embedding FROM knowledge_documents d JOIN knowledge_bases b ON b.id = d.base_id WHERE {IS_MISSING} ORDER BY d.id"
    );
    db.fetch_all(statement(sql, [base.into(), profile.into()]))
        .await
}

/// The bases that are searched by this profile, with a document that counts as embedded and is not by it.
pub(crate) async fn bases_that_lack(
    db: &impl Executor,
    profile: i64,
) -> Result<Vec<ProfiledBase>, StoreError> {
    let sql = "SELECT b.id, b.partner, b.profile_id FROM knowledge_bases b WHERE b.profile_id = $1 AND b.deletion_requested_at IS NULL AND EXISTS \
               (SELECT 1 FROM knowledge_documents d WHERE d.base_id = b.id AND d.embedding = 'done' AND d.deletion_requested_at IS NULL \
               AND NOT EXISTS (SELECT 1 FROM knowledge_manifests m WHERE m.document_id = d.id AND m.profile_id = $1 AND NOT m.stale))";
    db.fetch_all(statement(sql, [profile.into()])).await
}

/// How many documents of a base a profile has embedded.
pub(crate) async fn count_manifests(
    db: &impl Executor,
    base: &str,
    profile: i64,
) -> Result<u64, StoreError> {
    let sql = "SELECT COUNT(*) FROM knowledge_manifests WHERE base_id = $1 AND profile_id = $2 AND NOT stale";
    db.fetch_count(statement(sql, [base.into(), profile.into()]))
        .await
}

/// How many those are, without the ones that were refused: they are no reason to go on with an old profile for ever.
pub(crate) async fn count_missing(
    db: &impl Executor,
    base: &str,
    profile: i64,
) -> Result<u64, StoreError> {
    let sql = format!(
        "SELECT COUNT(*) FROM knowledge_documents d WHERE {IS_MISSING} AND NOT d.embedding_refused"
    );
    db.fetch_count(statement(sql, [base.into(), profile.into()]))
        .await
}

/// A manifest that was written.
#[derive(Debug)]
pub(crate) struct NewManifest<'a> {
    pub(crate) document: &'a str,
    pub(crate) base: &'a str,
    pub(crate) profile: &'a Profile,
    pub(crate) written: Written,
    pub(crate) chunk_count: usize,
    pub(crate) contents: TableOfContents,
    /// Whether it is not to be searched.
    pub(crate) stale: bool,
}

#[derive(sqlx::FromRow)]
struct BlobRow {
    blob: BlobKey,
}

#[derive(sqlx::FromRow)]
struct SequenceRow {
    last: i64,
}

/// The number of the next change, which holds the others back until the transaction ends.
async fn next_sequence(db: &impl Executor) -> Result<i64, StoreError> {
    let sql = "UPDATE knowledge_sequence SET last = last + 1 WHERE id = 1";
    db.execute(statement(sql, [])).await?;
    let sql = "SELECT last FROM knowledge_sequence WHERE id = 1";
    let row: Option<SequenceRow> = db.fetch_one(statement(sql, [])).await?;
    Ok(row.map_or(0, |row| row.last))
}

/// The file that the document has of a profile.
pub(crate) async fn manifest_of(
    db: &impl Executor,
    document: &str,
    profile: i64,
) -> Result<Option<BlobKey>, StoreError> {
    let sql = "SELECT blob FROM knowledge_manifests WHERE document_id = $1 AND profile_id = $2";
    let row: Option<BlobRow> = db
        .fetch_one(statement(sql, [document.into(), profile.into()]))
        .await?;
    Ok(row.map(|row| row.blob))
}

/// The file of the chunks that a document is searched by, or would be if they were not stale.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct EmbeddedChunks {
    pub(crate) blob: BlobKey,
    /// The name of the profile.
    pub(crate) profile: String,
    pub(crate) embedded_at: i64,
    /// True if they are not searched.
    pub(crate) stale: bool,
}

/// Returns the chunks that a document has of the profile that its base is searched by.
pub(crate) async fn embedded_chunks(
    db: &impl Executor,
    document: &str,
) -> Result<Option<EmbeddedChunks>, StoreError> {
    let sql = "SELECT m.blob, p.name AS profile, m.created_at AS embedded_at, m.stale FROM knowledge_manifests m \
               JOIN knowledge_bases b ON b.id = m.base_id AND b.profile_id = m.profile_id \
               JOIN embedding_profiles p ON p.id = m.profile_id WHERE m.document_id = $1";
    db.fetch_one(statement(sql, [document.into()])).await
}

/// Puts a manifest in the place of the one that the document had of that profile, whose file is given back.
pub(crate) async fn put_manifest(
    db: &impl Executor,
    new: &NewManifest<'_>,
    now: i64,
) -> Result<Option<BlobKey>, StoreError> {
    let sequence = next_sequence(db).await?;
    let old = manifest_of(db, new.document, new.profile.id).await?;
    let sql = "INSERT INTO knowledge_manifests (document_id, profile_id, base_id, blob, chunk_count, contents, stale, sequence, created_at, headings_left_out) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (document_id, profile_id) DO UPDATE SET \
               blob = excluded.blob, chunk_count = excluded.chunk_count, contents = excluded.contents, stale = excluded.stale, \
               sequence = excluded.sequence, created_at = excluded.created_at, headings_left_out = excluded.headings_left_out";
    let values = [
        new.document.into(),
        new.profile.id.into(),
        new.base.into(),
        new.written.key.as_str().into(),
        i64::try_from(new.chunk_count).unwrap_or(i64::MAX).into(),
        new.contents.json.as_str().into(),
        new.stale.into(),
        sequence.into(),
        now.into(),
        i64::try_from(new.contents.left_out)
            .unwrap_or(i64::MAX)
            .into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(old)
}

/// Notes that an index does not take a manifest, whose vectors are kept for the next attempt, unless there is another one by now.
pub(crate) async fn refuse_manifest(
    transaction: &Transaction,
    manifest: &ChangedManifest,
    reason: &str,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_documents SET embedding = 'failed', embedding_error = $4, embedding_refused = TRUE, embedding_at = $5, updated_at = $5 \
               WHERE id = $1 AND embedding = 'done' AND EXISTS \
               (SELECT 1 FROM knowledge_manifests m WHERE m.document_id = $1 AND m.profile_id = $2 AND m.sequence = $3)";
    let (document, profile) = (manifest.document_id.as_str(), manifest.profile_id);
    let values = [
        document.into(),
        profile.into(),
        manifest.sequence.into(),
        reason.into(),
        now.into(),
    ];
    if transaction.execute(statement(sql, values)).await? == 0 {
        return Ok(());
    }
    let sequence = next_sequence(transaction).await?;
    let sql = "UPDATE knowledge_manifests SET stale = TRUE, sequence = $3 WHERE document_id = $1 AND profile_id = $2";
    let values = [document.into(), profile.into(), sequence.into()];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

/// Some other files of vectors that are to be there.
pub(crate) async fn other_manifests(
    db: &impl Executor,
    except: &BlobKey,
) -> Result<Vec<BlobKey>, StoreError> {
    let sql =
        "SELECT blob FROM knowledge_manifests WHERE blob <> $1 ORDER BY sequence DESC LIMIT 3";
    let rows: Vec<BlobRow> = db
        .fetch_all(statement(sql, [except.as_str().into()]))
        .await?;
    Ok(rows.into_iter().map(|row| row.blob).collect())
}

/// How many chunks the documents of a partner have of a profile, without this document.
pub(crate) async fn count_chunks(
    db: &impl Executor,
    tenant: &Tenant,
    profile: i64,
    except: &str,
) -> Result<u64, StoreError> {
    let sql = "SELECT CAST(COALESCE(SUM(m.chunk_count), 0) AS BIGINT) AS count FROM knowledge_manifests m \
               JOIN knowledge_bases b ON b.id = m.base_id \
               WHERE b.partner = $1 AND m.profile_id = $2 AND m.document_id <> $3 AND NOT m.stale";
    let values = [
        tenant.partner().as_str().into(),
        profile.into(),
        except.into(),
    ];
    db.fetch_count(statement(sql, values)).await
}

#[derive(sqlx::FromRow)]
struct VectorsRow {
    vectors: Option<BlobKey>,
}

/// The vectors that a profile has made anew of a document so far.
pub(crate) async fn vectors_of(
    db: &impl Executor,
    document: &str,
    profile: i64,
) -> Result<Option<BlobKey>, StoreError> {
    let sql = "SELECT vectors FROM knowledge_documents WHERE id = $1 AND vectors_profile = $2";
    let row: Option<VectorsRow> = db
        .fetch_one(statement(sql, [document.into(), profile.into()]))
        .await?;
    Ok(row.and_then(|row| row.vectors))
}

/// Puts others in their place, or none, and gives back the file that is needed no more; `None` where the document is gone.
pub(crate) async fn replace_vectors(
    db: &impl Executor,
    document: &str,
    new: Option<(&BlobKey, i64)>,
) -> Result<Option<Option<BlobKey>>, StoreError> {
    let sql = "SELECT vectors FROM knowledge_documents WHERE id = $1";
    let old: Option<VectorsRow> = db.fetch_one(statement(sql, [document.into()])).await?;
    let sql = "UPDATE knowledge_documents SET vectors = $2, vectors_profile = $3 WHERE id = $1";
    let values = [
        document.into(),
        new.map(|(key, _)| key.as_str()).into(),
        new.map(|(_, profile)| profile).into(),
    ];
    let replaced = db.execute(statement(sql, values)).await?;
    Ok(old.filter(|_| replaced == 1).map(|row| row.vectors))
}

/// Lets nothing be found of what a document had.
pub(crate) async fn make_stale(db: &impl Executor, document: &str) -> Result<(), StoreError> {
    let sql = "SELECT COUNT(*) FROM knowledge_manifests WHERE document_id = $1 AND NOT stale";
    if db.fetch_count(statement(sql, [document.into()])).await? == 0 {
        return Ok(());
    }
    let sequence = next_sequence(db).await?;
    let sql = "UPDATE knowledge_manifests SET stale = TRUE, sequence = $2 WHERE document_id = $1";
    db.execute(statement(sql, [document.into(), sequence.into()]))
        .await?;
    Ok(())
}

/// Removes what a base has of other profiles, whose files are given back.
pub(crate) async fn remove_other_manifests(
    db: &impl Executor,
    base: &str,
    profile: i64,
    now: i64,
) -> Result<Vec<BlobKey>, StoreError> {
    let which = "FROM knowledge_manifests WHERE base_id = $1 AND profile_id <> $2";
    let sql = format!("SELECT blob {which}");
    let rows: Vec<BlobRow> = db
        .fetch_all(statement(sql, [base.into(), profile.into()]))
        .await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let sequence = next_sequence(db).await?;
    let sql = format!(
        "INSERT INTO knowledge_removals (sequence, base_id, profile_id, created_at) \
         SELECT DISTINCT $3, $1, profile_id, $4 {which}"
    );
    let values = [base.into(), profile.into(), sequence.into(), now.into()];
    db.execute(statement(sql, values)).await?;
    let sql = format!("DELETE {which}");
    db.execute(statement(sql, [base.into(), profile.into()]))
        .await?;
    Ok(rows.into_iter().map(|row| row.blob).collect())
}

/// Notes for the indexes of nodes that something goes with all that is in it.
pub(crate) async fn note_removal(
    db: &impl Executor,
    whole: Whole,
    id: &str,
    now: i64,
) -> Result<(), StoreError> {
    let sequence = next_sequence(db).await?;
    let found = match whole {
        Whole::Base => "SELECT $2, b.id, NULL, $3 FROM knowledge_bases b WHERE b.id = $1",
        Whole::Folder => {
            "SELECT $2, d.base_id, d.id, $3 FROM knowledge_documents d WHERE d.folder_id = $1"
        }
        Whole::Document => {
            "SELECT $2, d.base_id, d.id, $3 FROM knowledge_documents d WHERE d.id = $1"
        }
    };
    let sql = format!(
        "INSERT INTO knowledge_removals (sequence, base_id, document_id, created_at) {found}"
    );
    db.execute(statement(sql, [id.into(), sequence.into(), now.into()]))
        .await?;
    Ok(())
}

/// Notes that all bases of a partner go.
pub(crate) async fn note_removals_of(
    db: &impl Executor,
    partner: &str,
    now: i64,
) -> Result<(), StoreError> {
    let sequence = next_sequence(db).await?;
    let sql = "INSERT INTO knowledge_removals (sequence, base_id, created_at) \
               SELECT $2, b.id, $3 FROM knowledge_bases b WHERE b.partner = $1";
    db.execute(statement(
        sql,
        [partner.into(), sequence.into(), now.into()],
    ))
    .await?;
    Ok(())
}

/// How far changes have come.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Sequence {
    /// The last one.
    pub(crate) last: i64,
    /// The last removal that is not remembered any more.
    pub(crate) forgotten: i64,
    /// The name of the database, once it has one.
    pub(crate) installation: Option<String>,
}

pub(crate) async fn sequence(db: &impl Executor) -> Result<Sequence, StoreError> {
    let sql = "SELECT last, forgotten, installation FROM knowledge_sequence WHERE id = 1";
    let row: Option<Sequence> = db.fetch_one(statement(sql, [])).await?;
    Ok(row.unwrap_or(Sequence {
        last: 0,
        forgotten: 0,
        installation: None,
    }))
}

/// Gives the database a name, unless it has one.
pub(crate) async fn name_installation(db: &impl Executor, name: &str) -> Result<(), StoreError> {
    let sql =
        "UPDATE knowledge_sequence SET installation = $1 WHERE id = 1 AND installation IS NULL";
    db.execute(statement(sql, [name.into()])).await?;
    Ok(())
}

/// A manifest that changed.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct ChangedManifest {
    pub(crate) document_id: String,
    pub(crate) base_id: String,
    pub(crate) profile_id: i64,
    pub(crate) blob: BlobKey,
    pub(crate) stale: bool,
    pub(crate) chunk_count: i64,
    pub(crate) sequence: i64,
}

/// The manifests that changed after `from`, of `most` changes at most.
pub(crate) async fn changed_manifests(
    db: &impl Executor,
    from: i64,
    to: i64,
    most: i64,
) -> Result<Vec<ChangedManifest>, StoreError> {
    let sql = "SELECT document_id, base_id, profile_id, blob, stale, chunk_count, sequence FROM knowledge_manifests \
               WHERE sequence > $1 AND sequence <= $2 ORDER BY sequence, document_id, profile_id LIMIT $3";
    db.fetch_all(statement(sql, [from.into(), to.into(), most.into()]))
        .await
}

/// Something that went.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct Removal {
    pub(crate) sequence: i64,
    pub(crate) base_id: String,
    pub(crate) document_id: Option<String>,
    pub(crate) profile_id: Option<i64>,
}

/// What went between these changes, the latter included.
pub(crate) async fn removals(
    db: &impl Executor,
    from: i64,
    to: i64,
) -> Result<Vec<Removal>, StoreError> {
    let sql = "SELECT sequence, base_id, document_id, profile_id FROM knowledge_removals \
               WHERE sequence > $1 AND sequence <= $2 ORDER BY sequence";
    db.fetch_all(statement(sql, [from.into(), to.into()])).await
}

/// Forgets what went before this time: an index that has not heard of it is made anew.
pub(crate) async fn forget_removals(db: &impl Executor, before: i64) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_sequence SET forgotten = \
               COALESCE((SELECT MAX(sequence) FROM knowledge_removals WHERE created_at < $1), forgotten) WHERE id = 1";
    db.execute(statement(sql, [before.into()])).await?;
    let sql = "DELETE FROM knowledge_removals WHERE created_at < $1 \
               AND sequence <= (SELECT forgotten FROM knowledge_sequence WHERE id = 1)";
    db.execute(statement(sql, [before.into()])).await?;
    Ok(())
}
