//! How the streams of a search become one, as requests say it.

use colloquy_http::ApiError;
use colloquy_index::fusion::FusionParameters;
use serde::Serialize;
use utoipa::ToSchema;

/// The most passages that are asked for, and that a stream gives for each of them.
const MOST_PASSAGES: u64 = 200;
const MOST_MULTIPLIER: u64 = 50;

/// What a request says of it; the defaults for the rest.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tuning {
    pub(super) top_k: Option<u64>,
    pub(super) search_multiplier: Option<u64>,
    pub(super) rrf_k: Option<f64>,
    pub(super) rrf_weight_dense: Option<f64>,
    pub(super) rrf_weight_sparse: Option<f64>,
    pub(super) rrf_weight_bm25: Option<f64>,
    pub(super) query_weight_original: Option<f64>,
    pub(super) query_weight_replaced: Option<f64>,
}

/// What held for a search.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConfigView {
    top_k: usize,
    search_multiplier: usize,
    rrf_k: f64,
    rrf_weight_dense: f64,
    rrf_weight_sparse: f64,
    rrf_weight_bm25: f64,
    query_weight_original: f64,
    query_weight_replaced: f64,
    /// The model that made the vectors; `words` where there are none, null where nothing is embedded.
    embedding_profile_name: Option<String>,
}

/// Returns what held for a search.
pub(super) fn config(fusion: &FusionParameters, profile: Option<String>) -> ConfigView {
    ConfigView {
        top_k: fusion.top_k,
        search_multiplier: fusion.search_multiplier,
        rrf_k: fusion.rrf_k,
        rrf_weight_dense: fusion.rrf_weight_dense,
        rrf_weight_sparse: fusion.rrf_weight_sparse,
        rrf_weight_bm25: fusion.rrf_weight_bm25,
        query_weight_original: fusion.query_weight_original,
        query_weight_replaced: fusion.query_weight_replaced,
        embedding_profile_name: profile,
    }
}

/// Checks how the streams become one.
pub(super) fn fusion(body: &Tuning, is_admin: bool) -> Result<FusionParameters, ApiError> {
    let default = FusionParameters::default();
    let weight = |field: &'static str, given: Option<f64>, default: f64| {
        let weight = given.unwrap_or(default);
        match (0.0..=1_000.0).contains(&weight) {
            true => Ok(weight),
            false => Err(ApiError::invalid(field, "must be 0 to 1000")),
        }
    };
    let count = |field: &'static str, given: Option<u64>, most: u64, default: usize| {
        let count = given.unwrap_or(default as u64);
        if !(1..=most).contains(&count) {
            let message = format!("must be 1 to {most}");
            return Err(ApiError::invalid(field, message));
        }
        Ok(usize::try_from(count).unwrap_or(default))
    };
    let fusion = FusionParameters {
        top_k: count("top_k", body.top_k, MOST_PASSAGES, default.top_k)?,
        search_multiplier: count(
            "search_multiplier",
            body.search_multiplier,
            MOST_MULTIPLIER,
            default.search_multiplier,
        )?,
        rrf_k: weight("rrf_k", body.rrf_k, default.rrf_k)?,
        rrf_weight_dense: weight(
            "rrf_weight_dense",
            body.rrf_weight_dense,
            default.rrf_weight_dense,
        )?,
        rrf_weight_sparse: weight(
            "rrf_weight_sparse",
            body.rrf_weight_sparse,
            default.rrf_weight_sparse,
        )?,
        rrf_weight_bm25: weight(
            "rrf_weight_bm25",
            body.rrf_weight_bm25,
            default.rrf_weight_bm25,
        )?,
        query_weight_original: weight(
            "query_weight_original",
            body.query_weight_original,
            default.query_weight_original,
        )?,
        query_weight_replaced: weight(
            "query_weight_replaced",
            body.query_weight_replaced,
            default.query_weight_replaced,
        )?,
    };
    let changed = [
        ("top_k", fusion.top_k == default.top_k),
        (
            "search_multiplier",
            fusion.search_multiplier == default.search_multiplier,
        ),
        ("rrf_k", fusion.rrf_k.to_bits() == default.rrf_k.to_bits()),
    ];
    match changed.into_iter().find(|(_, is_default)| !is_default) {
        Some((field, _)) if !is_admin => Err(for_administrators(field)),
        _ => Ok(fusion),
    }
}

pub(super) fn for_administrators(field: &'static str) -> ApiError {
    ApiError {
        field: Some(field.to_owned()),
        ..ApiError::forbidden("is for administrators")
    }
}
