//! `/api/knowledgebases`, `/api/kb-stats` and `/api/content_types`.

use axum::{
    Json,
    extract::{Request, State},
    http::StatusCode,
};
use colloquy_accounts::PartnerTenant;
use colloquy_base::money::Usd;
use colloquy_http::{ApiError, ApiPath, form::Fields};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    BasePath, FIELD_BYTES, allowed, base_of,
    views::{DeletionView, KnowledgeBaseView},
};
use crate::{
    Bases,
    base::{self, NewBase, Progress},
    budget::Budget,
    erase, names,
    spend::SpentByBase,
    store::{self, Statistics, Whole},
};

/// A template that documents are rewritten by.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContentTypeView {
    /// What requests say.
    id: &'static str,
    /// What people call it.
    name: &'static str,
}

/// The templates.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContentTypesView {
    /// All of them.
    content_types: [ContentTypeView; 4],
}

/// The templates that documents can be rewritten by. It needs no key.
#[utoipa::path(
    get, path = "/api/content_types", tag = "knowledge bases", security(()), responses((status = 200, body = ContentTypesView))
)]
pub(super) async fn content_types() -> Json<ContentTypesView> {
    let content_types = [
        ("auto", "Detect from the source"),
        ("article", "Article"),
        ("video", "Video"),
        ("book", "Book"),
    ];
    Json(ContentTypesView {
        content_types: content_types.map(|(id, name)| ContentTypeView { id, name }),
    })
}

/// The partner's knowledge bases, by name.
#[utoipa::path(
    get, path = "/api/knowledgebases/{partner}", operation_id = "list_knowledge_bases", tag = "knowledge bases", params(("partner" = String, Path)),
    responses((status = 200, body = [KnowledgeBaseView]))
)]
pub(super) async fn list(
    State(bases): State<Bases>,
    caller: PartnerTenant,
) -> Result<Json<Vec<KnowledgeBaseView>>, ApiError> {
    let listed = base::list(&bases, &allowed(caller)?).await?;
    let backup = bases.config.rewriting.backup_model.as_deref();
    let view = |(base, progress, spent): (_, _, SpentByBase)| {
        KnowledgeBaseView::new(base, progress, &spent, backup)
    };
    Ok(Json(listed.into_iter().map(view).collect()))
}

/// The fields of a form that makes a base.
#[derive(ToSchema)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(super) struct NewBaseForm {
    /// 1 to 200 characters, without `/` and `\`.
    name: String,
    /// The most characters of digitized text; none: unlimited, 0: nothing.
    character_limit: Option<u64>,
    /// The most tokens of rewriting and embedding, for ever.
    token_limit: Option<u64>,
    /// The most dollars, for ever, with 8 decimals at most.
    dollar_limit_usd: Option<String>,
    /// Whose knowledge it is.
    expert_name: Option<String>,
    /// Who makes it.
    user_email: Option<String>,
}

/// Makes a knowledge base.
#[utoipa::path(
    post, path = "/api/knowledgebases/{partner}", operation_id = "create_knowledge_base", tag = "knowledge bases", params(("partner" = String, Path)),
    request_body(content = NewBaseForm, content_type = "multipart/form-data"),
    responses(
        (status = 201, body = KnowledgeBaseView), (status = 400), (status = 404, description = "there is no such partner"),
        (status = 409, description = "the name is taken"),
        (status = 413, description = "the partner would store more than it may (`storage_limit_reached`)"),
    )
)]
pub(super) async fn create(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    request: Request,
) -> Result<(StatusCode, Json<KnowledgeBaseView>), ApiError> {
    let tenant = allowed(caller)?;
    let mut fields = Fields::read(request, FIELD_BYTES).await?;
    let new = NewBase {
        name: names::name("name", &fields.require("name")?)?,
        expert_name: optional(fields.take("expert_name"), |it| {
            names::title("expert_name", it)
        })?,
        user_email: optional(fields.take("user_email"), |it| {
            names::email("user_email", it)
        })?,
        budget: Budget {
            characters: optional(fields.take("character_limit"), |it| {
                limit("character_limit", it)
            })?,
            tokens: optional(fields.take("token_limit"), |it| limit("token_limit", it))?,
            dollars: optional(fields.take("dollar_limit_usd"), dollars)?,
        },
    };
    fields.finish()?;
    let made = base::create(&bases, &tenant, new).await?;
    let spent = SpentByBase::default();
    let view = KnowledgeBaseView::new(made, Progress::default(), &spent, None);
    Ok((StatusCode::CREATED, Json(view)))
}

/// What a field means that may be missing.
pub(super) fn optional<T, E>(
    text: Option<String>,
    meaning: impl Fn(&str) -> Result<T, E>,
) -> Result<Option<T>, ApiError>
where
    ApiError: From<E>,
{
    Ok(text.as_deref().map(meaning).transpose()?)
}

pub(super) fn limit(field: &'static str, text: &str) -> Result<u64, ApiError> {
    let limit = text.trim().parse::<u64>().ok();
    limit
        .filter(|limit| i64::try_from(*limit).is_ok())
        .ok_or_else(|| ApiError::invalid(field, "must be an integer of at least 0"))
}

pub(super) fn dollars(text: &str) -> Result<Usd, ApiError> {
    let usd = text.trim().parse::<Usd>().ok();
    usd.filter(|usd| i64::try_from(usd.0).is_ok())
        .ok_or_else(|| {
            ApiError::invalid(
                "dollar_limit_usd",
                "must be 0 or more dollars, with 8 decimals at most",
            )
        })
}

/// Deletes a knowledge base with its folders and documents.
#[utoipa::path(
    delete, path = "/api/knowledgebases/{partner}/{kb}", operation_id = "delete_knowledge_base", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    responses((status = 200, body = DeletionView), (status = 404))
)]
pub(super) async fn delete(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
) -> Result<Json<DeletionView>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let deletion = erase::erase(&bases, &tenant, Whole::Base, &base.id).await?;
    Ok(Json(deletion.into()))
}

/// How much there is in a base.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StatisticsView {
    /// Documents.
    document_count: usize,
    /// Those with text.
    digitized_count: usize,
    /// Those with a draft.
    draft_rewrite_count: usize,
    /// Those with final content.
    final_rewrite_count: usize,
    /// Characters of all texts.
    total_digitized_chars: i64,
    /// Characters of all drafts.
    total_draft_rewrite_chars: i64,
    /// Characters of all final contents.
    total_final_rewrite_chars: i64,
    /// Documents of which a step failed or waits for a budget.
    error_count: usize,
    /// Documents that can be searched.
    embedded_count: usize,
}

/// How much there is in a knowledge base.
#[utoipa::path(
    get, path = "/api/kb-stats/{partner}/{kb}", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    responses((status = 200, body = StatisticsView), (status = 404))
)]
pub(super) async fn statistics(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
) -> Result<Json<StatisticsView>, ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let db = bases.store.db();
    let statistics = store::statistics(db, &base.id).await?;
    Ok(Json(statistics.into()))
}

impl From<Statistics> for StatisticsView {
    fn from(statistics: Statistics) -> Self {
        Self {
            document_count: count(statistics.documents),
            digitized_count: count(statistics.texts),
            draft_rewrite_count: count(statistics.drafts),
            final_rewrite_count: count(statistics.finals),
            total_digitized_chars: statistics.text_characters,
            total_draft_rewrite_chars: statistics.draft_characters,
            total_final_rewrite_chars: statistics.final_characters,
            error_count: count(statistics.errors),
            embedded_count: count(statistics.embedded),
        }
    }
}

fn count(stored: i64) -> usize {
    usize::try_from(stored).unwrap_or_default()
}
