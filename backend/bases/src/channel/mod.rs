//! Folders that follow a channel of a video platform.
//!
//! A channel is looked through once a day ([`Discover`]): what is new is noted, and then made documents of the folder, newest first
//! ([`Import`]), which go the way of all other addresses. Each video is known by what the platform calls it: one that the base has already is a
//! duplicate, one whose document somebody deleted stays away, and what is live or has not begun waits. A scan is charged, and admitted like
//! everything that costs something. The rows of its videos count in the storage of the partner: where there is no room for all of them, the
//! newest ones are noted.

mod address;
mod discovery;
mod folding;
mod import;
mod job;

use std::collections::HashMap;

use colloquy_accounts::Tenant;
use colloquy_kernel::jobs;
use colloquy_store::{Executor, StoreError, Transaction, stored};
use serde::Serialize;
use utoipa::ToSchema;

pub(crate) use self::address::ChannelAddress;
use self::{address::video_of, job::LONGEST_REST};
pub use self::{import::Import, job::Discover};
use super::{
    Bases,
    admission::UsageBound,
    base::KnowledgeBase,
    budget::BudgetState,
    document::ModelTier,
    error::BaseError,
    folder::{self, Folder},
    rows,
    store::{self, VideoCounts},
};

/// How many documents of other folders are told that a channel has, too.
pub(crate) const MOST_DUPLICATES: i64 = 100;

/// How far a channel is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ChannelStatus {
    /// It waits to be looked through.
    Pending,
    /// It is being looked through.
    Syncing,
    /// All of it was seen.
    Synced,
    /// Some of it was seen; `last_error` says what is missing.
    Incomplete,
    /// It waits for room in the budget of its base.
    BudgetBlocked,
    /// Somebody does not want it to be looked through, or it became another channel.
    Paused,
    /// It could not be looked through; `last_error` says why.
    Error,
    /// Another folder follows the same channel.
    Duplicate,
}

stored!(pub(crate)
    ChannelStatus: Pending = "pending", Syncing = "syncing", Synced = "synced", Incomplete = "incomplete",
    BudgetBlocked = "budget_blocked", Paused = "paused", Error = "error", Duplicate = "duplicate",
);

/// A channel that a folder follows.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Channel {
    pub(crate) folder_id: String,
    /// The name of the folder.
    pub(crate) folder: String,
    pub(crate) channel_url: String,
    pub(crate) alias: String,
    pub(crate) channel_id: Option<String>,
    pub(crate) enabled: bool,
    #[sqlx(try_from = "String")]
    pub(crate) model_tier: ModelTier,
    #[sqlx(try_from = "String")]
    pub(crate) status: ChannelStatus,
    pub(crate) last_error: Option<String>,
    pub(crate) duplicate_of: Option<String>,
    pub(crate) last_sync_at: Option<i64>,
    pub(crate) next_sync_at: Option<i64>,
}

/// What a new channel folder is.
#[derive(Debug)]
pub(crate) struct NewChannel {
    /// As it was submitted.
    pub(crate) channel_url: String,
    pub(crate) address: ChannelAddress,
    pub(crate) model_tier: ModelTier,
}

/// The documents of a base by the videos that they are of.
async fn documents_of(
    transaction: &Transaction,
    base: &str,
) -> Result<HashMap<String, String>, StoreError> {
    let known = store::document_urls(transaction, base).await?;
    let of_videos = known
        .into_iter()
        .filter_map(|known| Some((video_of(&known.url)?, known.id)));
    Ok(of_videos.collect())
}

/// The most that a scan may use.
pub(crate) fn scan_bound(bases: &Bases) -> UsageBound {
    UsageBound {
        cost: Some(bases.config.knowledge.discovery_usd.0),
        ..UsageBound::default()
    }
}

/// Whether a base takes what a channel brings: it has room for a scan, and none of its limits is used up.
pub(crate) fn has_headroom(bases: &Bases, state: &BudgetState, characters: u64) -> bool {
    state.blocking_reasons(characters).is_empty() && state.room_for(&scan_bound(bases)).is_ok()
}

/// Makes a folder that follows a channel, and has it looked through.
pub(crate) async fn create(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    name: String,
    new: NewChannel,
) -> Result<Folder, BaseError> {
    let transaction = bases.store.begin().await?;
    let state = BudgetState::lock(&transaction, &base.id).await?;
    let folder =
        folder::insert(bases, &transaction, base, name, folder::Kind::VideoChannel).await?;
    let now = bases.clock.now_ms();
    if !store::insert_channel(&transaction, base, &folder, &new, now).await? {
        return Err(BaseError::Conflict(
            "A folder of the knowledge base follows this channel",
        ));
    }
    if let Some(state) = state {
        request(bases, &transaction, tenant, base, &folder.id, &state).await?;
    }
    rows::charge(bases, &transaction, tenant, rows::FOLDER_BYTES).await?;
    transaction.commit().await?;
    bases.kernel.jobs.wake();
    Ok(folder)
}

/// Has a channel looked through, or has it wait where the base has no room.
async fn request(
    bases: &Bases,
    transaction: &Transaction,
    tenant: &Tenant,
    base: &KnowledgeBase,
    folder: &str,
    state: &BudgetState,
) -> Result<ChannelStatus, StoreError> {
    let characters = store::count_characters(transaction, &base.id, None).await?;
    let status = match has_headroom(bases, state, characters) {
        true => ChannelStatus::Pending,
        false => ChannelStatus::BudgetBlocked,
    };
    store::set_channel_status(transaction, folder, status, None).await?;
    if status == ChannelStatus::Pending {
        queue(bases, transaction, tenant, folder).await?;
    }
    Ok(status)
}

/// Queues the scan of a channel.
pub(crate) async fn queue(
    bases: &Bases,
    transaction: &Transaction,
    tenant: &Tenant,
    folder: &str,
) -> Result<(), StoreError> {
    let job = Discover {
        folder: folder.to_owned(),
    };
    jobs::enqueue(bases, transaction, Some(tenant.partner()), &job).await
}

/// Has channels looked through again whose scan was given up, when their time has come, and videos imported whose import was.
pub(crate) async fn queue_failed(bases: &Bases) -> Result<(), StoreError> {
    let now = bases.clock.now_ms();
    let longest = LONGEST_REST.as_millis() as i64;
    let latest = bases.kernel.latest_now_ms().await?.saturating_add(longest);
    for failed in store::failed_channels(bases.store.db(), now, latest).await? {
        let transaction = bases.store.begin().await?;
        let folder = &failed.channel.folder_id;
        queue(bases, &transaction, &failed.tenant(), folder).await?;
        transaction.commit().await?;
        bases.kernel.jobs.wake();
    }
    for left in store::channels_to_import(bases.store.db()).await? {
        let transaction = bases.store.begin().await?;
        let import = Import {
            folder: left.channel.folder_id.clone(),
        };
        let tenant = left.tenant();
        jobs::enqueue(bases, &transaction, Some(tenant.partner()), &import).await?;
        transaction.commit().await?;
        bases.kernel.jobs.wake();
    }
    Ok(())
}

/// What changes about a channel.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChannelChange {
    pub(crate) enabled: Option<bool>,
    pub(crate) model_tier: Option<ModelTier>,
}

/// The channel that a folder follows.
pub(crate) async fn find(
    bases: &Bases,
    base: &KnowledgeBase,
    folder: &Folder,
) -> Result<Channel, BaseError> {
    let found = store::find_channel(bases.store.db(), base, &folder.id).await?;
    found.ok_or(BaseError::Conflict("The folder follows no channel"))
}

/// Pauses a channel, lets it go on, or has its videos work with other models from now on.
pub(crate) async fn change(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    folder: &Folder,
    change: ChannelChange,
) -> Result<Channel, BaseError> {
    let before = find(bases, base, folder).await?;
    let transaction = bases.store.begin().await?;
    let state = BudgetState::lock(&transaction, &base.id).await?;
    let id = &folder.id;
    if let Some(tier) = change.model_tier {
        store::set_channel_tier(&transaction, id, tier).await?;
    }
    match change.enabled {
        Some(false) => {
            store::set_channel_enabled(&transaction, id, false).await?;
            store::set_channel_status(&transaction, id, ChannelStatus::Paused, None).await?;
        }
        Some(true) if !before.enabled => {
            store::set_channel_enabled(&transaction, id, true).await?;
            if let Some(state) = state {
                request(bases, &transaction, tenant, base, id, &state).await?;
            }
        }
        Some(true) | None => {}
    }
    transaction.commit().await?;
    bases.kernel.jobs.wake();
    find(bases, base, folder).await
}

/// Has a channel looked through now, or has it wait for room. Which of the two.
pub(crate) async fn sync(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    folder: &Folder,
) -> Result<ChannelStatus, BaseError> {
    let transaction = bases.store.begin().await?;
    let state = BudgetState::lock(&transaction, &base.id).await?;
    let state = state.ok_or(BaseError::NotFound("Knowledge base"))?;
    let channel = store::find_channel(&transaction, base, &folder.id).await?;
    let channel = channel.ok_or(BaseError::Conflict("The folder follows no channel"))?;
    if !channel.enabled {
        return Err(BaseError::Conflict(
            "The channel is paused: enable it first",
        ));
    }
    let status = request(bases, &transaction, tenant, base, &folder.id, &state).await?;
    transaction.commit().await?;
    bases.kernel.jobs.wake();
    Ok(status)
}

/// A channel with what is known of its videos.
#[derive(Debug)]
pub(crate) struct DescribedChannel {
    pub(crate) channel: Channel,
    pub(crate) counts: VideoCounts,
    /// Documents elsewhere in the base that it has, too.
    pub(crate) duplicates: Vec<String>,
}

/// How many channels are described together.
const DESCRIBED_AT_ONCE: usize = 200;

/// Returns the channels that these folders follow.
pub(crate) async fn among(
    bases: &Bases,
    folders: &[String],
) -> Result<Vec<DescribedChannel>, StoreError> {
    let db = bases.store.db();
    if folders.is_empty() {
        return Ok(Vec::new());
    }
    describe(db, store::channels_among(db, folders).await?).await
}

/// The channels that the folders of a base follow, by the names of these.
pub(crate) async fn list(
    bases: &Bases,
    base: &KnowledgeBase,
) -> Result<Vec<DescribedChannel>, StoreError> {
    let db = bases.store.db();
    describe(db, store::list_channels(db, base).await?).await
}

async fn describe(
    db: &impl Executor,
    channels: Vec<Channel>,
) -> Result<Vec<DescribedChannel>, StoreError> {
    let ids: Vec<String> = channels.iter().map(|it| it.folder_id.clone()).collect();
    let (mut counts, mut duplicates) = (HashMap::new(), HashMap::new());
    for ids in ids.chunks(DESCRIBED_AT_ONCE) {
        counts.extend(store::video_counts(db, ids).await?);
        duplicates.extend(store::channel_duplicates(db, ids, MOST_DUPLICATES).await?);
    }
    let describe = |channel: Channel| DescribedChannel {
        counts: counts.remove(&channel.folder_id).unwrap_or_default(),
        duplicates: duplicates.remove(&channel.folder_id).unwrap_or_default(),
        channel,
    };
    Ok(channels.into_iter().map(describe).collect())
}
