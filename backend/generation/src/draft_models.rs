//! `/api/character_drafts/{partner}/models`: the models that replies of drafts may name.

use axum::{
    Json,
    extract::{FromRef, State},
};
use colloquy_accounts::{Accounts, PartnerTenant, Scope, partners};
use colloquy_http::ApiError;
use colloquy_kernel::{router::DescribedRouter, routes};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Generation;

pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Generation: FromRef<S>,
{
    DescribedRouter::new().routes(routes!(list_draft_models))
}

/// A model that can reply.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DraftModel {
    /// The name, as `model` of a request has it.
    name: String,
    /// True for the model of calls, which replies to requests without `model`.
    is_default: bool,
    /// True if the settings of the server have a price for its tokens.
    is_priced: bool,
}

/// The models that can reply.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DraftModels {
    /// By name.
    models: Vec<DraftModel>,
}

/// Lists the models that replies of drafts may name: those that the partner may use, and the model of calls. The key needs the scopes `characters` and
/// `calls`.
#[utoipa::path(
    get, path = "/api/character_drafts/{partner}/models", operation_id = "list_draft_models", tag = "characters",
    params(("partner" = String, Path)),
    responses(
        (status = 200, body = DraftModels),
        (status = 403, description = "The key lacks a scope"),
        (status = 404, description = "The partner was not found"),
    ),
)]
pub(crate) async fn list_draft_models(
    State(generation): State<Generation>,
    caller: PartnerTenant,
) -> Result<Json<DraftModels>, ApiError> {
    caller.principal.require(Scope::Characters)?;
    caller.principal.require(Scope::Calls)?;
    let partner = partners::read(&generation, &caller.tenant).await?;
    let default = generation.providers.chat.name();
    let all = generation.providers.models.all();
    let mut models: Vec<DraftModel> = all
        .filter(|it| it.name() == default || partner.settings.allows_model(it.name()))
        .map(|it| DraftModel {
            name: it.name().to_owned(),
            is_default: it.name() == default,
            is_priced: it.is_priced(),
        })
        .collect();
    models.sort_unstable_by(|one, other| one.name.cmp(&other.name));
    models.dedup_by(|one, other| one.name == other.name);
    Ok(Json(DraftModels { models }))
}
