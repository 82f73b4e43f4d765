//! `/api/folders/../channel` and `/api/folders/../sync`.

use axum::{Json, extract::State};
use colloquy_accounts::PartnerTenant;
use colloquy_base::clock::rfc3339;
use colloquy_http::{ApiError, ApiJson, ApiPath};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{FolderPath, base_of, limits::BudgetView};
use crate::{
    Bases,
    channel::{self, Channel, ChannelChange, ChannelStatus, DescribedChannel},
    document::ModelTier,
    folder::{self, Kind},
    store::VideoCounts,
};

/// A channel that a folder follows.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChannelView {
    /// The id, which is the folder's.
    id: String,
    /// The name of the folder.
    name: String,
    /// `video_channel`.
    #[serde(rename = "type")]
    kind: Kind,
    /// The address as it was given.
    channel_url: String,
    /// What the platform calls the channel; null until it was looked through once.
    channel_id: Option<String>,
    /// Whether it is looked through.
    enabled: bool,
    /// How much the models may cost that work on its videos from now on.
    model_tier: ModelTier,
    /// How far it is.
    status: ChannelStatus,
    /// Why it could not be looked through, or what is missing.
    last_error: Option<String>,
    /// When all of it was seen last. RFC 3339.
    last_sync_at: Option<String>,
    /// When it is looked through next. RFC 3339.
    next_sync_at: Option<String>,
}

impl From<Channel> for ChannelView {
    fn from(channel: Channel) -> Self {
        Self {
            id: channel.folder_id,
            name: channel.folder,
            kind: Kind::VideoChannel,
            channel_url: channel.channel_url,
            channel_id: channel.channel_id,
            enabled: channel.enabled,
            model_tier: channel.model_tier,
            status: channel.status,
            last_error: channel.last_error,
            last_sync_at: channel.last_sync_at.map(rfc3339),
            next_sync_at: channel.next_sync_at.map(rfc3339),
        }
    }
}

/// A channel that a folder follows, with its videos.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FolderDetailsView {
    /// The channel.
    #[serde(flatten)]
    channel: ChannelView,
    /// How many videos there are in each state.
    counts: VideoCounts,
    /// The id of the channel of the base that is the same, where `status` is `duplicate`.
    duplicate_source: Option<String>,
    /// Documents elsewhere in the base that the channel has, too, 100 at most.
    duplicate_document_ids: Vec<String>,
}

impl From<DescribedChannel> for FolderDetailsView {
    fn from(described: DescribedChannel) -> Self {
        Self {
            duplicate_source: described.channel.duplicate_of.clone(),
            channel: described.channel.into(),
            counts: described.counts,
            duplicate_document_ids: described.duplicates,
        }
    }
}

/// What changes about a channel; what is left out stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChannelBody {
    /// Whether it is looked through.
    enabled: Option<bool>,
    /// How much the models may cost that work on its videos from now on.
    model_tier: Option<ModelTier>,
}

/// Pauses a channel, lets it go on, or has other models work on its videos. Its address cannot change.
#[utoipa::path(
    patch, path = "/api/folders/{partner}/{kb}/{folder}/channel", operation_id = "change_channel", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("folder" = String, Path)), request_body = ChannelBody,
    responses((status = 200, body = ChannelView), (status = 400), (status = 404), (status = 409, description = "the folder follows no channel"))
)]
pub(super) async fn change(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<FolderPath>,
    ApiJson(body): ApiJson<ChannelBody>,
) -> Result<Json<ChannelView>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let folder = folder::find(&bases, &base, &path.folder).await?;
    let folder = folder.require_open()?;
    let change = ChannelChange {
        enabled: body.enabled,
        model_tier: body.model_tier,
    };
    let changed = channel::change(&bases, &tenant, &base, &folder, change).await?;
    Ok(Json(changed.into()))
}

/// The state of a channel whose sync was requested.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChannelSyncView {
    /// `pending`, or `budget_blocked` where the base has no room.
    status: ChannelStatus,
    /// The budget of the base.
    budget: BudgetView,
}

/// Has a channel looked through now.
#[utoipa::path(
    post, path = "/api/folders/{partner}/{kb}/{folder}/sync", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("folder" = String, Path)),
    responses((status = 200, body = ChannelSyncView), (status = 404), (status = 409, description = "the channel is paused, or the folder follows none"))
)]
pub(super) async fn sync(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<FolderPath>,
) -> Result<Json<ChannelSyncView>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let folder = folder::find(&bases, &base, &path.folder).await?;
    let folder = folder.require_open()?;
    let status = channel::sync(&bases, &tenant, &base, &folder).await?;
    Ok(Json(ChannelSyncView {
        status,
        budget: BudgetView::of(&bases, &base).await?,
    }))
}
