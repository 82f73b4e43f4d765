//! `/api/rag-evaluations`.

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use colloquy_accounts::PartnerTenant;
use colloquy_base::invalid::InvalidField;
use colloquy_http::{ApiError, ApiJson, ApiPath, Listing, PageQuery, memory::Share};
use serde::Deserialize;
use utoipa::ToSchema;

use super::{
    BasePath, base_of,
    evaluation_views::{
        ComparedEvaluation, EvaluationPage, EvaluationView, QuestionResultPage, QuestionResultView,
    },
    questions, slice_of,
    tuning::{self, Tuning},
};
use crate::{
    Bases,
    evaluating::{self, CUTOFF, ComparedResult, MOST_CUTOFF, NewEvaluation},
    store,
};

/// An evaluation in the path.
#[derive(Debug, Deserialize)]
pub(super) struct EvaluationPath {
    kb: String,
    evaluation_id: String,
}

/// How the questions are asked, as in a search. The weights that are left out are the defaults.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct EvaluationBody {
    /// The cut-off `k`: so many documents of each ranking count.
    #[schema(default = 10, minimum = 1, maximum = 50)]
    k: Option<u64>,
    /// What the stream of vectors counts.
    #[schema(default = 1.0)]
    rrf_weight_dense: Option<f64>,
    /// What the stream of expanded questions counts.
    #[schema(default = 1.25)]
    rrf_weight_sparse: Option<f64>,
    /// What the stream of the question's words counts.
    #[schema(default = 0.25)]
    rrf_weight_bm25: Option<f64>,
    /// What the question as it was asked counts.
    #[schema(default = 1.0)]
    query_weight_original: Option<f64>,
    /// What the question with the name counts.
    #[schema(default = 1.0)]
    query_weight_replaced: Option<f64>,
}

impl EvaluationBody {
    fn parse(&self) -> Result<NewEvaluation, ApiError> {
        let cutoff = self.k.unwrap_or(CUTOFF);
        if !(1..=MOST_CUTOFF).contains(&cutoff) {
            let message = format!("must be 1 to {MOST_CUTOFF}");
            return Err(ApiError::invalid("k", message));
        }
        let tuning = Tuning {
            rrf_weight_dense: self.rrf_weight_dense,
            rrf_weight_sparse: self.rrf_weight_sparse,
            rrf_weight_bm25: self.rrf_weight_bm25,
            query_weight_original: self.query_weight_original,
            query_weight_replaced: self.query_weight_replaced,
            ..Tuning::default()
        };
        let fusion = tuning::fusion(&tuning, false)?;
        Ok(NewEvaluation { cutoff, fusion })
    }
}

/// Lists the evaluations of a knowledge base, newest first. The newest 20 are kept.
#[utoipa::path(
    get, path = "/api/rag-evaluations/{partner}/{kb}", operation_id = "page_evaluations", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), PageQuery),
    responses(
        (status = 200, body = EvaluationPage),
        (status = 400, description = "A parameter is invalid or unknown"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base was not found"),
    )
)]
pub(super) async fn list(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    Listing { page, .. }: Listing,
) -> Result<(HeaderMap, Json<EvaluationPage>), ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let slice = slice_of(&page)?;
    let rows = store::evaluations_page(bases.store.db(), &base.id, &slice).await?;
    let listed = page.of(rows, |row| row.id.clone());
    let evaluations = listed.entries.iter().map(EvaluationView::of);
    let view = EvaluationPage {
        evaluations: evaluations.collect::<Result<_, _>>()?,
        next_cursor: listed.next_cursor,
    };
    Ok((listed.links, Json(view)))
}

/// Begins an evaluation: asks all saved questions of a knowledge base in the background, as a search does.
///
/// A document is relevant to a question that expects it, and no other is. A ranking of passages is one of documents: each stands where its best passage
/// stands. `recall` is the part of the expected documents among the first `k`. `ndcg` is the sum of `1 / log2(rank + 1)` of these, over that of an ideal
/// ranking. `reciprocal_rank` is 1 over the rank of the first of these, or 0; its mean is `mrr`. Figures are means over the questions that expect a
/// document.
///
/// A knowledge base has one evaluation at a time. The event `evaluation` tells of its progress and its end.
#[utoipa::path(
    post, path = "/api/rag-evaluations/{partner}/{kb}", operation_id = "begin_evaluation", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)), request_body = EvaluationBody,
    responses(
        (status = 202, body = EvaluationView), (status = 400, description = "A field is invalid"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base was not found"),
        (status = 409, description = "The knowledge base is being deleted, has no saved question, or has an evaluation in progress"),
        (status = 413, description = "The partner would store more than it may (`storage_limit_reached`)"),
    )
)]
pub(super) async fn begin(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    ApiJson(body): ApiJson<EvaluationBody>,
) -> Result<(StatusCode, Json<EvaluationView>), ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let row = evaluating::begin(&bases, &tenant, &base, &body.parse()?).await?;
    Ok((StatusCode::ACCEPTED, Json(EvaluationView::of(&row)?)))
}

/// Returns an evaluation, and how it compares with the one before.
#[utoipa::path(
    get, path = "/api/rag-evaluations/{partner}/{kb}/{evaluation_id}", operation_id = "read_evaluation", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("evaluation_id" = String, Path)),
    responses(
        (status = 200, body = ComparedEvaluation),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base or the evaluation was not found"),
    )
)]
pub(super) async fn read(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<EvaluationPath>,
) -> Result<Json<ComparedEvaluation>, ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let compared = evaluating::compare(&bases, &base, &path.evaluation_id).await?;
    Ok(Json(ComparedEvaluation::of(&compared)?))
}

/// Deletes an evaluation with its results. One that is in progress stops.
#[utoipa::path(
    delete, path = "/api/rag-evaluations/{partner}/{kb}/{evaluation_id}", operation_id = "delete_evaluation", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("evaluation_id" = String, Path)),
    responses(
        (status = 204, description = "The evaluation is deleted"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base or the evaluation was not found"),
    )
)]
pub(super) async fn delete(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<EvaluationPath>,
) -> Result<StatusCode, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    evaluating::delete(&bases, &tenant, &base, &path.evaluation_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Lists the results of the questions that an evaluation has asked, worst first by `ndcg`.
///
/// Questions that were deleted since are left out. A question that is deleted while pages are read changes no other one's place.
#[utoipa::path(
    get, path = "/api/rag-evaluations/{partner}/{kb}/{evaluation_id}/results", operation_id = "page_evaluation_results", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("evaluation_id" = String, Path), PageQuery),
    responses(
        (status = 200, body = QuestionResultPage),
        (status = 400, description = "A parameter is invalid or unknown"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base or the evaluation was not found"),
        (status = 413, description = "The page takes more memory than the server has for one answer (`limits.body_memory_bytes`)"),
        (status = 503, description = "There is no memory for the answer now; retry after `Retry-After` seconds"),
    )
)]
pub(super) async fn results(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<EvaluationPath>,
    share: Option<Extension<Share>>,
    Listing { page, .. }: Listing,
) -> Result<(HeaderMap, Json<QuestionResultPage>), ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let after = page.after().map(place).transpose()?;
    let compared = evaluating::compare(&bases, &base, &path.evaluation_id).await?;
    let (db, k) = (bases.store.db(), compared.row.k());
    let is_after = |it: &ComparedResult| after.as_ref() < Some(&it.result.place(k));
    let following = compared.results.into_iter().filter(is_after);
    let rows = usize::try_from(page.rows()).unwrap_or(usize::MAX);
    let listed = page.of(following.take(rows).collect(), |it| {
        let (key, id) = it.result.place(k);
        format!("{key}:{id}")
    });
    let expected = listed.entries.iter();
    let expected = expected.flat_map(|it| &it.result.outcome.expected);
    let ids: Vec<&str> = expected.map(|(id, _)| id.as_str()).collect();
    let names = store::document_names(db, &base.id, &ids).await?;
    let asked = listed.entries.iter();
    let asked: Vec<&str> = asked.map(|it| it.result.question_id.as_str()).collect();
    let text_bytes = store::text_bytes_of(db, &base.id, &asked).await?;
    questions::reserve(share.as_deref(), text_bytes)?;
    let texts = store::question_texts(db, &base.id, &asked).await?;
    let results = listed.entries.iter();
    let view = QuestionResultPage {
        results: results
            .map(|it| QuestionResultView::of(it, k, &names, &texts))
            .collect(),
        next_cursor: listed.next_cursor,
    };
    Ok((listed.links, Json(view)))
}

/// Returns the place among the results that a cursor names.
fn place(cursor: &str) -> Result<(i64, String), InvalidField> {
    let parts = cursor.split_once(':');
    let place = parts.and_then(|(key, id)| Some((key.parse().ok()?, id.to_owned())));
    place.ok_or_else(|| InvalidField::new("cursor", "is not one of this list"))
}
