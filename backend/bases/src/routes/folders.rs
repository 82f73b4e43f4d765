//! `/api/folders`.

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use colloquy_accounts::PartnerTenant;
use colloquy_base::clock::rfc3339;
use colloquy_http::{ApiError, ApiPath, form::Fields};
use serde::Serialize;
use utoipa::ToSchema;

use super::{BasePath, FIELD_BYTES, FolderPath, base_of, uploads::model_tier, views::DeletionView};
use crate::{
    Bases,
    channel::{self, ChannelAddress, NewChannel},
    document::ModelTier,
    erase,
    folder::{self, Kind},
    names,
    store::Whole,
};

/// The folders of a base.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoldersView {
    /// Their names, in order.
    folders: Vec<String>,
}

/// A folder.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FolderView {
    /// The id.
    id: String,
    /// The name.
    name: String,
    /// Where its documents come from.
    #[serde(rename = "type")]
    kind: Kind,
    /// RFC 3339.
    created_at: String,
}

/// The names of the folders of a knowledge base.
#[utoipa::path(
    get, path = "/api/folders/{partner}/{kb}", operation_id = "list_folders", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    responses((status = 200, body = FoldersView), (status = 404))
)]
pub(super) async fn list(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
) -> Result<Json<FoldersView>, ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let folders = folder::list(&bases, &base).await?;
    let names = folders.into_iter().map(|folder| folder.name);
    Ok(Json(FoldersView {
        folders: names.collect(),
    }))
}

/// The fields of a form that makes a folder.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(super) struct NewFolderForm {
    /// 1 to 200 characters, without `/` and `\`.
    name: String,
    /// `regular`, or `video_channel` for one that follows a channel of a video platform.
    #[schema(default = "regular")]
    r#type: Option<Kind>,
    /// The channel, for `video_channel`: a handle such as `@name`, or an address with `/@..`, `/channel/UC..`, `/user/..` or `/c/..`.
    channel_url: Option<String>,
    /// How much the models may cost that work on its videos.
    #[schema(default = "standard")]
    model_tier: Option<ModelTier>,
}

/// Makes a folder.
#[utoipa::path(
    post, path = "/api/folders/{partner}/{kb}", operation_id = "create_folder", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    request_body(content = NewFolderForm, content_type = "multipart/form-data"),
    responses(
        (status = 201, body = FolderView), (status = 400),
        (status = 413, description = "the partner would store more than it may (`storage_limit_reached`)"),
        (status = 409, description = "the name is taken, or another folder of the base follows the channel"),
    )
)]
pub(super) async fn create(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    request: Request,
) -> Result<(StatusCode, Json<FolderView>), ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let mut fields = Fields::read(request, FIELD_BYTES).await?;
    let name = names::name("name", &fields.require("name")?)?;
    let kind = match fields.take("type") {
        None => Kind::Regular,
        Some(kind) => Kind::try_from(kind)
            .map_err(|_| ApiError::invalid("type", "must be regular or video_channel"))?,
    };
    let made = match kind {
        Kind::Regular => {
            fields.finish()?;
            folder::create(&bases, &tenant, &base, name).await?
        }
        Kind::VideoChannel => {
            let channel = new_channel(&mut fields)?;
            fields.finish()?;
            channel::create(&bases, &tenant, &base, name, channel).await?
        }
    };
    let view = FolderView {
        id: made.id,
        name: made.name,
        kind: made.kind,
        created_at: rfc3339(made.created_at),
    };
    Ok((StatusCode::CREATED, Json(view)))
}

fn new_channel(fields: &mut Fields) -> Result<NewChannel, ApiError> {
    let channel_url = fields.require("channel_url")?;
    let address = ChannelAddress::parse(&channel_url).ok_or_else(|| {
        let message = "must be a handle such as @name, or the address of a channel with /@.., /channel/UC.., /user/.. or /c/..";
        ApiError::invalid("channel_url", message)
    })?;
    Ok(NewChannel {
        channel_url: channel_url.trim().to_owned(),
        address,
        model_tier: model_tier(fields)?,
    })
}

/// Deletes a folder with its documents.
#[utoipa::path(
    delete, path = "/api/folders/{partner}/{kb}/{folder}", operation_id = "delete_folder", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("folder" = String, Path)),
    responses((status = 200, body = DeletionView), (status = 404))
)]
pub(super) async fn delete(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<FolderPath>,
) -> Result<Json<DeletionView>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let folder = folder::find(&bases, &base, &path.folder).await?;
    let deletion = erase::erase(&bases, &tenant, Whole::Folder, &folder.id).await?;
    Ok(Json(deletion.into()))
}
