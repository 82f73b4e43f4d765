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

use super::{BasePath, FIELD_BYTES, FolderPath, base_of, views::DeletionView};
use crate::{Bases, erase, folder, names, store::Whole};

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
    /// `regular`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// RFC 3339.
    created_at: String,
}

/// The names of the folders of a knowledge base.
#[utoipa::path(
    get, path = "/api/folders/{partner}/{kb}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    responses((status = 200, body = FoldersView), (status = 404))
)]
pub(super) async fn list(
    State(bases): State<Bases>,
    ApiPath(path): ApiPath<BasePath>,
    caller: PartnerTenant,
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
    /// `regular`.
    r#type: Option<String>,
}

/// Makes a folder.
#[utoipa::path(
    post, path = "/api/folders/{partner}/{kb}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    request_body(content = NewFolderForm, content_type = "multipart/form-data"),
    responses((status = 201, body = FolderView), (status = 400), (status = 409, description = "the name is taken"))
)]
pub(super) async fn create(
    State(bases): State<Bases>,
    ApiPath(path): ApiPath<BasePath>,
    caller: PartnerTenant,
    request: Request,
) -> Result<(StatusCode, Json<FolderView>), ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let mut fields = Fields::read(request, FIELD_BYTES).await?;
    let name = names::name("name", &fields.require("name")?)?;
    if fields.take("type").is_some_and(|kind| kind != "regular") {
        return Err(ApiError::invalid("type", "type is regular"));
    }
    fields.finish()?;
    let made = folder::create(&bases, &base, name).await?;
    let view = FolderView {
        id: made.id,
        name: made.name,
        kind: "regular",
        created_at: rfc3339(made.created_at),
    };
    Ok((StatusCode::CREATED, Json(view)))
}

/// Deletes a folder with its documents.
#[utoipa::path(
    delete, path = "/api/folders/{partner}/{kb}/{folder}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("folder" = String, Path)),
    responses((status = 200, body = DeletionView), (status = 404))
)]
pub(super) async fn delete(
    State(bases): State<Bases>,
    ApiPath(path): ApiPath<FolderPath>,
    caller: PartnerTenant,
) -> Result<Json<DeletionView>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let folder = folder::find(&bases, &base, &path.folder).await?;
    let deletion = erase::erase(&bases, &tenant, Whole::Folder, &folder.id).await?;
    Ok(Json(deletion.into()))
}
