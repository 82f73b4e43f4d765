//! `/api/rewrite-estimate`.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use colloquy_accounts::PartnerTenant;
use colloquy_base::money::Usd;
use colloquy_http::{ApiError, ApiPath, StrictQuery};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{
    BasePath, base_of,
    lists::document_filter,
    processing::{HAS_FINAL, cannot_rewrite, no_model},
};
use crate::{
    Bases,
    admission::UsageBound,
    budget::BudgetState,
    rewriting::{self, Estimate},
    store,
};

/// Documents whose rewriting is estimated.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct EstimateQuery {
    /// If true, documents with final content are skipped.
    #[param(default = true)]
    skip_rewritten: Option<bool>,
    /// Text that the names contain, case-insensitive, 1 to 200 characters. No character is a wildcard.
    q: Option<String>,
    /// Name of the folder that has the documents.
    folder: Option<String>,
    /// States, separated by commas, as in `/api/document-list`.
    #[param(example = "digitized")]
    state: Option<String>,
}

/// An estimate of rewriting: a token for four characters of a text, and answers as long as the text.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RewriteEstimateView {
    /// Number of documents that would be queued.
    documents: u64,
    /// Tokens that would be read.
    input_tokens: u64,
    /// Tokens that would be written.
    output_tokens: u64,
    /// Dollars; null if a model has no price.
    #[schema(value_type = Option<String>, example = "0.00125")]
    cost_usd: Option<Usd>,
    /// True if the budget of the knowledge base has capacity for all of it now.
    fits_budget: bool,
    /// Documents that would be skipped, by reason.
    skipped: Vec<SkippedCount>,
}

/// Documents that are skipped for one reason.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SkippedCount {
    /// Why they are not rewritten.
    reason: &'static str,
    /// Number of documents.
    documents: u64,
}

/// Estimates the rewriting of the documents of a knowledge base that pass a filter, without queuing it.
///
/// The cost is rounded once for each group of documents with the same model tier and state, so it may differ from that of `dry_run` in the last digits.
#[utoipa::path(
    get, path = "/api/rewrite-estimate/{partner}/{kb}", operation_id = "estimate_rewriting", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), EstimateQuery),
    responses(
        (status = 200, body = RewriteEstimateView),
        (status = 400, description = "A parameter is invalid or unknown"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base or the folder was not found"),
    )
)]
pub(super) async fn read(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    StrictQuery(query): StrictQuery<EstimateQuery>,
) -> Result<Json<RewriteEstimateView>, ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let skips = query.skip_rewritten.unwrap_or(true);
    let (folder, state) = (query.folder.as_deref(), query.state.as_deref());
    let filter = document_filter(&bases, &base, query.q, folder, state).await?;
    let db = bases.store.db();
    let section = bases.config.rewriting.section_tokens.into();
    let sums = store::rewritable_sums(db, &filter, rewriting::CHARACTERS_A_TOKEN, section).await?;
    let (mut estimate, mut documents) = (Estimate::default(), 0);
    let mut skipped: BTreeMap<&str, u64> = BTreeMap::new();
    for sum in sums {
        let why = cannot_rewrite(sum.state)
            .or((skips && sum.is_final).then_some(HAS_FINAL))
            .or_else(|| no_model(&bases, sum.model_tier));
        let count = sum.documents.unsigned_abs();
        if let Some(reason) = why {
            *skipped.entry(reason).or_default() += count;
            continue;
        }
        documents += count;
        let (tokens, sections) = (sum.tokens.unsigned_abs(), sum.sections.unsigned_abs());
        estimate.add_sums(&bases, sum.model_tier, tokens, sections);
    }
    let state = BudgetState::read(db, &base.id).await?;
    let state = state.ok_or_else(|| ApiError::not_found("Knowledge base"))?;
    let bound = UsageBound {
        counts_tokens: true,
        tokens: Some(estimate.tokens.input.saturating_add(estimate.tokens.output)),
        seconds: None,
        cost: estimate.cost,
    };
    let skipped = skipped.into_iter();
    Ok(Json(RewriteEstimateView {
        documents,
        input_tokens: estimate.tokens.input,
        output_tokens: estimate.tokens.output,
        cost_usd: estimate.cost.map(Usd),
        fits_budget: documents == 0 || state.room_for(&bound).is_ok(),
        skipped: skipped
            .map(|(reason, documents)| SkippedCount { reason, documents })
            .collect(),
    }))
}
