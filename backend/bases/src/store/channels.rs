//! The SQL of channels and their videos.

use std::collections::HashMap;

use colloquy_accounts::Tenant;
use colloquy_kernel::jobs::Job as _;
use colloquy_store::{Executor, StoreError, Transaction, placeholders, statement, stored};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    base::KnowledgeBase,
    channel::{Channel, ChannelStatus, Import, NewChannel},
    document::ModelTier,
    folder::Folder,
};

const COLUMNS: &str = "c.folder_id, f.name AS folder, c.channel_url, c.alias, c.channel_id, c.enabled, c.model_tier, c.status, c.last_error, \
     c.duplicate_of, c.last_sync_at, c.next_sync_at";

/// Whether no folder of the base followed a channel of this alias.
pub(crate) async fn insert_channel(
    db: &impl Executor,
    base: &KnowledgeBase,
    folder: &Folder,
    new: &NewChannel,
    now: i64,
) -> Result<bool, StoreError> {
    let sql = "INSERT INTO knowledge_channels (folder_id, base_id, channel_url, alias, enabled, model_tier, status, created_at) \
               VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7) ON CONFLICT (base_id, alias) DO NOTHING";
    let values = [
        folder.id.as_str().into(),
        base.id.as_str().into(),
        new.channel_url.as_str().into(),
        new.address.alias().into(),
        true.into(),
        new.model_tier.as_str().into(),
        now.into(),
    ];
    Ok(db.execute(statement(sql, values)).await? == 1)
}

pub(crate) async fn find_channel(
    db: &impl Executor,
    base: &KnowledgeBase,
    folder: &str,
) -> Result<Option<Channel>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM knowledge_channels c JOIN knowledge_folders f ON f.id = c.folder_id WHERE c.base_id = $1 AND c.folder_id = $2"
    );
    let values = [base.id.as_str().into(), folder.into()];
    db.fetch_one(statement(sql, values)).await
}

/// The channels that the folders of a base follow, by the names of these, without folders that are being deleted.
pub(crate) async fn list_channels(
    db: &impl Executor,
    base: &KnowledgeBase,
) -> Result<Vec<Channel>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS} FROM knowledge_channels c JOIN knowledge_folders f ON f.id = c.folder_id \
         WHERE c.base_id = $1 AND f.deletion_requested_at IS NULL ORDER BY f.name"
    );
    db.fetch_all(statement(sql, [base.id.as_str().into()]))
        .await
}

/// Returns the channels that these folders follow, without folders that are being deleted.
pub(crate) async fn channels_among(
    db: &impl Executor,
    folders: &[String],
) -> Result<Vec<Channel>, StoreError> {
    let mut values = Vec::new();
    let ids = placeholders(&mut values, folders.iter().map(String::as_str));
    let sql = format!(
        "SELECT {COLUMNS} FROM knowledge_channels c JOIN knowledge_folders f ON f.id = c.folder_id \
         WHERE c.folder_id IN ({ids}) AND f.deletion_requested_at IS NULL"
    );
    db.fetch_all(statement(sql, values)).await
}

/// A channel, whoever's it is, for work in the background.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct OwnedChannel {
    #[sqlx(flatten)]
    pub(crate) channel: Channel,
    pub(crate) base_id: String,
    partner: String,
}

impl OwnedChannel {
    pub(crate) fn tenant(&self) -> Tenant {
        Tenant::of_row(&self.partner)
    }
}

/// A channel whose folder is not being deleted.
pub(crate) async fn load_channel(
    db: &impl Executor,
    folder: &str,
) -> Result<Option<OwnedChannel>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, c.base_id, b.partner FROM knowledge_channels c JOIN knowledge_folders f ON f.id = c.folder_id \
         JOIN knowledge_bases b ON b.id = c.base_id \
         WHERE c.folder_id = $1 AND f.deletion_requested_at IS NULL AND b.deletion_requested_at IS NULL"
    );
    db.fetch_one(statement(sql, [folder.into()])).await
}

/// Notes how far it is, and why.
pub(crate) async fn set_channel_status(
    db: &impl Executor,
    folder: &str,
    status: ChannelStatus,
    error: Option<&str>,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_channels SET status = $2, last_error = $3 WHERE folder_id = $1";
    let values = [folder.into(), status.as_str().into(), error.into()];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Notes that a channel is not looked through any more, unless somebody has paused it meanwhile. Whether nobody has.
pub(crate) async fn end_scan(
    db: &impl Executor,
    folder: &str,
    status: ChannelStatus,
    error: Option<&str>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE knowledge_channels SET status = $2, last_error = $3 WHERE folder_id = $1 AND status IN ('syncing', 'pending')";
    let values = [folder.into(), status.as_str().into(), error.into()];
    Ok(db.execute(statement(sql, values)).await? == 1)
}

/// Notes what a scan came to, unless somebody has paused it meanwhile. A channel that somebody wants to be looked through again stays pending.
/// Whether nobody has paused it.
pub(crate) async fn finish_scan(
    db: &impl Executor,
    folder: &str,
    status: ChannelStatus,
    error: Option<&str>,
) -> Result<bool, StoreError> {
    let sql = "UPDATE knowledge_channels SET status = CASE status WHEN 'syncing' THEN $2 ELSE status END, last_error = $3 \
               WHERE folder_id = $1 AND status IN ('syncing', 'pending')";
    let values = [folder.into(), status.as_str().into(), error.into()];
    Ok(db.execute(statement(sql, values)).await? == 1)
}

/// Notes why not all videos of a channel are imported, unless it is paused, or looked through again, by now.
pub(crate) async fn leave_incomplete(
    db: &impl Executor,
    folder: &str,
    error: &str,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_channels SET status = 'incomplete', last_error = $2 \
               WHERE folder_id = $1 AND status IN ('synced', 'incomplete')";
    db.execute(statement(sql, [folder.into(), error.into()]))
        .await?;
    Ok(())
}

/// Notes that nobody looks through it: whoever deletes its folder waits for that.
pub(crate) async fn rest_channel(db: &impl Executor, folder: &str) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_channels SET status = 'paused' WHERE folder_id = $1 AND status = 'syncing'";
    db.execute(statement(sql, [folder.into()])).await?;
    Ok(())
}

pub(crate) async fn set_channel_enabled(
    db: &impl Executor,
    folder: &str,
    enabled: bool,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_channels SET enabled = $2 WHERE folder_id = $1";
    db.execute(statement(sql, [folder.into(), enabled.into()]))
        .await?;
    Ok(())
}

pub(crate) async fn set_channel_tier(
    db: &impl Executor,
    folder: &str,
    tier: ModelTier,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_channels SET model_tier = $2 WHERE folder_id = $1";
    db.execute(statement(sql, [folder.into(), tier.as_str().into()]))
        .await?;
    Ok(())
}

/// Notes what the platform calls it.
pub(crate) async fn set_channel_id(
    db: &impl Executor,
    folder: &str,
    channel_id: &str,
) -> Result<(), StoreError> {
    let sql =
        "UPDATE knowledge_channels SET channel_id = $2, duplicate_of = NULL WHERE folder_id = $1";
    db.execute(statement(sql, [folder.into(), channel_id.into()]))
        .await?;
    Ok(())
}

/// Notes that another folder follows the same channel.
pub(crate) async fn set_duplicate_of(
    db: &impl Executor,
    folder: &str,
    other: &str,
    channel_id: &str,
) -> Result<(), StoreError> {
    let sql =
        "UPDATE knowledge_channels SET duplicate_of = $2, channel_id = $3 WHERE folder_id = $1";
    db.execute(statement(
        sql,
        [folder.into(), other.into(), channel_id.into()],
    ))
    .await?;
    Ok(())
}

/// Notes when it was seen as a whole, and when it is looked through next.
pub(crate) async fn set_scan_times(
    db: &impl Executor,
    folder: &str,
    last: Option<i64>,
    next: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_channels SET last_sync_at = COALESCE($2, last_sync_at), next_sync_at = $3 WHERE folder_id = $1";
    db.execute(statement(sql, [folder.into(), last.into(), next.into()]))
        .await?;
    Ok(())
}

#[derive(sqlx::FromRow)]
struct FolderIdRow {
    folder_id: String,
}

/// The other folder of a base that follows the channel of this name.
pub(crate) async fn channel_owner(
    db: &impl Executor,
    base: &str,
    folder: &str,
    channel_id: &str,
) -> Result<Option<String>, StoreError> {
    let sql = "SELECT c.folder_id FROM knowledge_channels c JOIN knowledge_folders f ON f.id = c.folder_id \
               WHERE c.base_id = $1 AND c.folder_id <> $2 AND c.channel_id = $3 AND c.status <> 'duplicate' \
               AND f.deletion_requested_at IS NULL ORDER BY c.created_at, c.folder_id LIMIT 1";
    let values = [base.into(), folder.into(), channel_id.into()];
    let row: Option<FolderIdRow> = db.fetch_one(statement(sql, values)).await?;
    Ok(row.map(|row| row.folder_id))
}

/// The channels whose scan failed and whose time has come again, and those that wait beyond `latest`, since a clock was ahead.
pub(crate) async fn failed_channels(
    db: &impl Executor,
    now: i64,
    latest: i64,
) -> Result<Vec<OwnedChannel>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, c.base_id, b.partner FROM knowledge_channels c JOIN knowledge_folders f ON f.id = c.folder_id \
         JOIN knowledge_bases b ON b.id = c.base_id WHERE c.enabled AND c.status = 'error' \
         AND (c.next_sync_at IS NULL OR c.next_sync_at < $1 OR c.next_sync_at > $2) \
         AND f.deletion_requested_at IS NULL AND b.deletion_requested_at IS NULL"
    );
    db.fetch_all(statement(sql, [now.into(), latest.into()]))
        .await
}

/// The channels that were looked through and whose videos nobody imports: their job was given up.
pub(crate) async fn channels_to_import(
    db: &impl Executor,
) -> Result<Vec<OwnedChannel>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, c.base_id, b.partner FROM knowledge_channels c JOIN knowledge_folders f ON f.id = c.folder_id \
         JOIN knowledge_bases b ON b.id = c.base_id WHERE c.enabled AND c.status IN ('synced', 'incomplete') \
         AND f.deletion_requested_at IS NULL AND b.deletion_requested_at IS NULL \
         AND EXISTS (SELECT 1 FROM knowledge_channel_videos v WHERE v.channel = c.folder_id AND v.state = 'pending') \
         AND NOT EXISTS (SELECT 1 FROM work w WHERE w.kind = $1 AND w.dedup_key = c.folder_id \
         AND w.state IN ('queued', 'running', 'blocked'))"
    );
    db.fetch_all(statement(sql, [Import::KIND.into()])).await
}

/// The channels of a base that wait for room.
pub(crate) async fn blocked_channels(
    db: &impl Executor,
    base: &str,
) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT folder_id FROM knowledge_channels WHERE base_id = $1 AND status = 'budget_blocked' ORDER BY created_at, folder_id";
    let rows: Vec<FolderIdRow> = db.fetch_all(statement(sql, [base.into()])).await?;
    Ok(rows.into_iter().map(|row| row.folder_id).collect())
}

/// What becomes of a video of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum VideoState {
    /// A document is to be made of it.
    Pending,
    /// It is live, or has not begun.
    Deferred,
    /// A document was made of it.
    Imported,
    /// The base had a document of it.
    Duplicate,
    /// Somebody deleted its document.
    Suppressed,
}

stored!(pub(crate)
    VideoState: Pending = "pending", Deferred = "deferred", Imported = "imported", Duplicate = "duplicate", Suppressed = "suppressed",
);

/// A video that a scan saw.
#[derive(Debug)]
pub(crate) struct SeenVideo<'a> {
    pub(crate) channel: &'a str,
    pub(crate) video: &'a str,
    pub(crate) url: &'a str,
    pub(crate) title: &'a str,
    pub(crate) state: VideoState,
    pub(crate) document: Option<&'a str>,
    pub(crate) place: i64,
}

/// Notes a video. One that was noted before changes while it is not imported: when it is not live any more, when the base has it, or has it no
/// more. Returns true if it is new, so that its row has to be charged.
pub(crate) async fn see_video(
    transaction: &Transaction,
    seen: &SeenVideo<'_>,
    now: i64,
) -> Result<bool, StoreError> {
    let sql = "INSERT INTO knowledge_channel_videos (channel, video, url, title, state, document_id, seen_at, place) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (channel, video) DO NOTHING";
    let values = [
        seen.channel.into(),
        seen.video.into(),
        seen.url.into(),
        seen.title.into(),
        seen.state.as_str().into(),
        seen.document.into(),
        now.into(),
        seen.place.into(),
    ];
    if transaction.execute(statement(sql, values)).await? == 1 {
        return Ok(true);
    }
    let sql = "UPDATE knowledge_channel_videos SET title = $3, state = $4, document_id = $5 WHERE channel = $1 AND video = $2 \
               AND (state IN ('pending', 'deferred') OR (state = 'duplicate' \
               AND NOT EXISTS (SELECT 1 FROM knowledge_documents d WHERE d.id = knowledge_channel_videos.document_id)))";
    let values = [
        seen.channel.into(),
        seen.video.into(),
        seen.title.into(),
        seen.state.as_str().into(),
        seen.document.into(),
    ];
    transaction.execute(statement(sql, values)).await?;
    Ok(false)
}

/// A video of which a document is to be made.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct PendingVideo {
    pub(crate) video: String,
    pub(crate) url: String,
    pub(crate) title: String,
}

/// Some of those, newest first.
pub(crate) async fn pending_videos(
    db: &impl Executor,
    channel: &str,
    most: i64,
) -> Result<Vec<PendingVideo>, StoreError> {
    let sql = "SELECT video, url, title FROM knowledge_channel_videos WHERE channel = $1 AND state = 'pending' \
               ORDER BY seen_at DESC, place, video LIMIT $2";
    db.fetch_all(statement(sql, [channel.into(), most.into()]))
        .await
}

/// Notes what a video is whose document is there.
pub(crate) async fn set_video(
    transaction: &Transaction,
    channel: &str,
    video: &str,
    state: VideoState,
    document: &str,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_channel_videos SET state = $3, document_id = $4 WHERE channel = $1 AND video = $2";
    let values = [
        channel.into(),
        video.into(),
        state.as_str().into(),
        document.into(),
    ];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

/// Keeps the video of a document that somebody deletes from coming back.
pub(crate) async fn suppress_video(db: &impl Executor, document: &str) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_channel_videos SET state = 'suppressed', document_id = NULL WHERE document_id = $1";
    db.execute(statement(sql, [document.into()])).await?;
    Ok(())
}

/// How many videos of a channel there are in each state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct VideoCounts {
    /// Documents are to be made of them.
    pending: u64,
    /// They are live, or have not begun.
    deferred: u64,
    /// Documents were made of them.
    imported: u64,
    /// The base had documents of them.
    duplicate: u64,
    /// Somebody deleted their documents, so they stay away.
    suppressed: u64,
}

#[derive(sqlx::FromRow)]
struct CountRow {
    #[sqlx(try_from = "String")]
    state: VideoState,
    count: i64,
}

impl VideoCounts {
    fn set(&mut self, row: &CountRow) {
        let count = match row.state {
            VideoState::Pending => &mut self.pending,
            VideoState::Deferred => &mut self.deferred,
            VideoState::Imported => &mut self.imported,
            VideoState::Duplicate => &mut self.duplicate,
            VideoState::Suppressed => &mut self.suppressed,
        };
        *count = row.count.unsigned_abs();
    }
}

#[derive(sqlx::FromRow)]
struct ChannelCountRow {
    channel: String,
    #[sqlx(flatten)]
    count: CountRow,
}

/// Returns the numbers of videos of channels, by channel, without channels that have none.
pub(crate) async fn video_counts(
    db: &impl Executor,
    channels: &[String],
) -> Result<HashMap<String, VideoCounts>, StoreError> {
    let mut values = Vec::new();
    let ids = placeholders(&mut values, channels.iter().map(String::as_str));
    let sql = format!(
        "SELECT channel, state, COUNT(*) AS count FROM knowledge_channel_videos WHERE channel IN ({ids}) GROUP BY channel, state"
    );
    let rows: Vec<ChannelCountRow> = db.fetch_all(statement(sql, values)).await?;
    let mut counts: HashMap<String, VideoCounts> = HashMap::new();
    for row in rows {
        counts.entry(row.channel).or_default().set(&row.count);
    }
    Ok(counts)
}

#[derive(sqlx::FromRow)]
struct DuplicateRow {
    channel: String,
    document_id: String,
}

/// Returns for each of these channels at most `most` documents elsewhere in the base that it has, too.
pub(crate) async fn channel_duplicates(
    db: &impl Executor,
    channels: &[String],
    most: i64,
) -> Result<HashMap<String, Vec<String>>, StoreError> {
    let mut values = vec![most.into()];
    let ids = placeholders(&mut values, channels.iter().map(String::as_str));
    let sql = format!(
        "SELECT channel, document_id FROM (SELECT channel, document_id, \
         ROW_NUMBER() OVER (PARTITION BY channel ORDER BY document_id) AS place FROM knowledge_channel_videos \
         WHERE channel IN ({ids}) AND state = 'duplicate' AND document_id IS NOT NULL) AS numbered WHERE place <= $1 ORDER BY channel, place"
    );
    let rows: Vec<DuplicateRow> = db.fetch_all(statement(sql, values)).await?;
    let mut duplicates: HashMap<String, Vec<String>> = HashMap::new();
    for row in rows {
        duplicates
            .entry(row.channel)
            .or_default()
            .push(row.document_id);
    }
    Ok(duplicates)
}

/// A document with an address.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct AddressedDocument {
    pub(crate) id: String,
    pub(crate) url: String,
}

/// The documents of a base that have an address, without those that are being deleted.
pub(crate) async fn document_urls(
    db: &impl Executor,
    base: &str,
) -> Result<Vec<AddressedDocument>, StoreError> {
    let sql = "SELECT d.id, d.url FROM knowledge_documents d JOIN knowledge_folders f ON f.id = d.folder_id \
               WHERE d.base_id = $1 AND d.url IS NOT NULL AND d.deletion_requested_at IS NULL AND f.deletion_requested_at IS NULL";
    db.fetch_all(statement(sql, [base.into()])).await
}
