//! The endpoints of knowledge bases.

mod bases;
mod bulk;
mod channels;
mod chunks;
mod conditions;
mod content_json;
mod contents;
mod document_actions;
mod documents;
mod embedding;
mod errors;
mod estimates;
mod evaluation_views;
mod evaluations;
mod folders;
mod history;
mod limit_details;
mod limits;
mod list_views;
mod lists;
mod processing;
mod questions;
mod retrieval;
mod retrieval_views;
mod streamed;
mod toc;
mod transcript;
mod tuning;
mod uploads;
mod vectorstore;
mod views;

use axum::extract::FromRef;
use colloquy_accounts::{Accounts, PartnerId, PartnerTenant, Scope, Tenant};
use colloquy_base::invalid::InvalidField;
use colloquy_http::{ApiError, Page};
use colloquy_kernel::{router::DescribedRouter, routes};
use colloquy_store::Slice;
use serde::Deserialize;
use uuid::Uuid;

use super::{
    Bases,
    base::{self, KnowledgeBase},
};

/// The longest text of a field, and of all fields of a form together, in bytes.
const FIELD_BYTES: usize = 8 * 1024;

/// Knowledge bases.
pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Bases: FromRef<S>,
{
    DescribedRouter::new()
        .routes(routes!(bases::content_types))
        .routes(routes!(bases::list, bases::create))
        .routes(routes!(bases::delete))
        .routes(routes!(limits::read, limits::change))
        .routes(routes!(limit_details::unknown, limits::decide))
        .routes(routes!(limit_details::wake))
        .routes(routes!(bases::statistics))
        .routes(routes!(lists::knowledge_bases))
        .routes(routes!(lists::folders))
        .routes(routes!(lists::documents))
        .routes(routes!(folders::list, folders::create))
        .routes(routes!(folders::delete))
        .routes(routes!(channels::change))
        .routes(routes!(channels::sync))
        .routes(routes!(documents::list, uploads::create))
        .routes(routes!(documents::read_all))
        .routes(routes!(uploads::create_files))
        .routes(routes!(uploads::create_urls))
        .routes(routes!(documents::create_empty))
        .routes(routes!(documents::read))
        .routes(routes!(documents::rename))
        .routes(routes!(document_actions::move_to))
        .routes(routes!(document_actions::retry))
        .routes(routes!(documents::set_type))
        .routes(routes!(documents::set_url))
        .routes(routes!(documents::delete))
        .routes(routes!(contents::read, contents::write, contents::upload))
        .routes(routes!(contents::download))
        .routes(routes!(contents::bundle))
        .routes(routes!(chunks::list))
        .routes(routes!(history::list))
        .routes(routes!(transcript::list))
        .routes(routes!(processing::process))
        .routes(routes!(processing::rewrite_folder))
        .routes(routes!(processing::rewrite_base))
        .routes(routes!(processing::retry_failed))
        .routes(routes!(estimates::read))
        .routes(routes!(bulk::move_all))
        .routes(routes!(bulk::delete_all))
        .routes(routes!(bulk::retry_all))
        .routes(routes!(embedding::read))
        .routes(routes!(embedding::retry))
        .routes(routes!(embedding::embed))
        .routes(routes!(toc::contents))
        .routes(routes!(vectorstore::read))
        .routes(routes!(vectorstore::backfill))
        .routes(routes!(vectorstore::retry_failed))
        .routes(routes!(retrieval::search))
        .routes(routes!(questions::list, questions::create))
        .routes(routes!(
            questions::read,
            questions::change,
            questions::delete
        ))
        .routes(routes!(evaluations::list, evaluations::begin))
        .routes(routes!(evaluations::read, evaluations::delete))
        .routes(routes!(evaluations::results))
}

/// A base in the path.
#[derive(Debug, Deserialize)]
struct BasePath {
    kb: String,
}

/// A folder in the path.
#[derive(Debug, Deserialize)]
struct FolderPath {
    kb: String,
    folder: String,
}

/// A document in the path.
#[derive(Debug, Deserialize)]
struct DocumentPath {
    kb: String,
    doc_id: String,
}

/// The tenant of a caller who may work with knowledge bases.
fn allowed(caller: PartnerTenant) -> Result<Tenant, ApiError> {
    caller.principal.require(Scope::Knowledge)?;
    Ok(caller.tenant)
}

/// The partner that a query or a body names.
fn named_partner(name: &str) -> Result<PartnerId, InvalidField> {
    match name.is_empty() {
        true => Err(InvalidField::new("partner", "is required")),
        false => PartnerId::parse(name),
    }
}

/// Returns the part of a list of ids that a page is.
fn slice_of(page: &Page) -> Result<Slice, InvalidField> {
    match page.after() {
        Some(after) if Uuid::try_parse(after).is_err() => {
            Err(InvalidField::new("cursor", "is not one of this list"))
        }
        _ => Ok(page.slice()),
    }
}

/// The same with a base of it.
async fn base_of(
    bases: &Bases,
    caller: PartnerTenant,
    name: &str,
) -> Result<(Tenant, KnowledgeBase), ApiError> {
    let tenant = allowed(caller)?;
    let base = base::find(bases, &tenant, name).await?;
    Ok((tenant, base))
}
