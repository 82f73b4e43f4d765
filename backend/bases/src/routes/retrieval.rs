//! `/api/rag-test/search`.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use axum::{Json, extract::State};
use colloquy_accounts::{Caller, PartnerId, Scope, Tenant};
use colloquy_base::fair_queue::{Claim, Priority};
use colloquy_http::{ApiError, ApiJson};
use colloquy_index::{
    analysis::Language,
    fusion::{FusionParameters, Share},
    search::{Form, Passage, Ranking},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use super::named_partner;
use crate::{
    Bases,
    base::{self, KnowledgeBase},
    error::BaseError,
    index::IndexAway,
    replacing,
    retrieval::{self, BaseAnswer, BaseQuery},
    store,
};

/// The longest message, in characters.
const LONGEST: usize = 20_000;
/// How long it is waited for what was embedded a moment ago.
const PATIENCE: Duration = Duration::from_secs(5);
/// When an index may be searched again that cannot be now.
const INDEX_WAIT: Duration = Duration::from_secs(5);
/// The most passages that are asked for, and that a stream gives for each of them.
const MOST_PASSAGES: u64 = 200;
const MOST_MULTIPLIER: u64 = 50;

/// A search in a knowledge base, and how its streams become one.
#[derive(Debug, Clone, Default, Deserialize, ToSchema)]
#[serde(default)]
pub(crate) struct SearchBody {
    /// The partner.
    #[schema(required)]
    partner: String,
    /// The name of the base.
    #[schema(required)]
    kb: String,
    /// What the user said, up to 20,000 characters.
    #[schema(required)]
    user_message: String,
    /// What was said before it, up to 20,000 characters; it is looked for together with the user's message.
    robot_message: Option<String>,
    /// The name that stands in the place of whoever is spoken to ("you") in a second form of the question.
    character_replacement_name: Option<String>,
    /// The most passages. Only administrators change it.
    #[schema(default = 12, minimum = 1, maximum = 200)]
    top_k: Option<u64>,
    /// Each stream gives so many times more. Only administrators change it.
    #[schema(default = 6, minimum = 1, maximum = 50)]
    search_multiplier: Option<u64>,
    /// How little the first ranks stand out. Only administrators change it.
    #[schema(default = 15.0)]
    rrf_k: Option<f64>,
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
    /// `<knowledge_base_id>/<embedding_profile_id>`: these vectors instead of the base's own. For administrators.
    collection_override: Option<String>,
    /// `<partner>/<kb>`: another base. For administrators.
    rag_index_override: Option<String>,
}

/// What was found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SearchView {
    /// What held for this search.
    config: ConfigView,
    /// The forms of the question.
    queries: QueriesView,
    /// What each stream found for each form, best first.
    streams: Vec<StreamView>,
    /// The best passages, best first.
    combined_results: Vec<ResultView>,
    /// How many those are.
    total_results: usize,
    /// The languages whose words are stemmed.
    bm25_languages: Vec<&'static str>,
    /// Those of this base's documents, in which the words of the question were stemmed.
    query_languages: Vec<&'static str>,
    /// How long it took.
    timings: TimingsView,
    /// Why there is no dense stream, where the base has vectors.
    #[serde(skip_serializing_if = "Option::is_none")]
    without_vectors: Option<&'static str>,
    /// Where it was looked; administrators alone are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    routing: Option<RoutingView>,
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

/// The forms of a question.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QueriesView {
    /// As it was asked.
    original: String,
    /// With the name; null where that makes no difference.
    replaced: Option<String>,
}

/// What one stream found for one form of the question.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StreamView {
    /// `dense`, `sparse` or `bm25`.
    retriever: &'static str,
    /// `original` or `replaced`.
    query: &'static str,
    /// How long it took, in milliseconds.
    time_ms: f64,
    /// Best first.
    results: Vec<HitView>,
}

/// A passage of a stream.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct HitView {
    /// From 1.
    rank: usize,
    /// The stream's own score: a cosine, or that of BM25.
    score: f32,
    /// The document.
    document_id: String,
    /// The place of the chunk in it, from 0.
    chunk_index: usize,
}

/// A passage.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResultView {
    /// From 1.
    rank: usize,
    /// The sum of the shares of all streams.
    fusion_score: f64,
    /// The document.
    document_id: String,
    /// Its name now; null when it was deleted a moment ago.
    document_name: Option<String>,
    /// The document's title and the headings above the passage.
    path: Vec<String>,
    /// The passage, as Markdown.
    text: String,
    /// The place of the chunk in its document, from 0.
    chunk_index: usize,
    /// What each stream gave it.
    shares: Vec<ShareView>,
    /// Where else the same text was found.
    duplicates: Vec<PlaceView>,
    /// The name of its content; administrators alone are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    chunk_id: Option<String>,
}

/// What a stream gave a passage.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ShareView {
    /// `dense`, `sparse` or `bm25`.
    retriever: &'static str,
    /// `original` or `replaced`.
    query: &'static str,
    /// Its rank there, from 1.
    rank: usize,
    /// The stream's own score.
    score: f32,
    /// What of the fused score it is.
    share: f64,
}

/// Where a chunk stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PlaceView {
    /// The document.
    document_id: String,
    /// The place of the chunk in it, from 0.
    chunk_index: usize,
}

/// How long a search took, in milliseconds.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TimingsView {
    /// The vectors of the question; null where there are none.
    embedding_ms: Option<f64>,
    /// All streams and what they become together.
    search_ms: f64,
    /// All of it.
    total_ms: f64,
}

/// Where it was looked.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RoutingView {
    /// The base.
    knowledge_base_id: String,
    /// The profile.
    embedding_profile_id: Option<i64>,
}

/// Looks for passages in a knowledge base as characters do, and tells how they were found.
///
/// Three streams rank passages: `dense` by the cosine of vectors, those that it finds in the order of a question that is moved towards its nearest
/// passages; `bm25` by the words of the question; `sparse` by these and the words that its nearest passages are about. `score` is that of the stream: for
/// `dense`, the cosine with the question itself. A passage gets from each of them `weight / (rrf_k + rank)`. Passages of the same text are one.
#[utoipa::path(
    post, path = "/api/rag-test/search", tag = "knowledge bases", request_body = SearchBody,
    responses(
        (status = 200, body = SearchView), (status = 400), (status = 403), (status = 404),
        (status = 503, description = "The search index is being rebuilt; retry after `Retry-After` seconds"),
    )
)]
pub(super) async fn search(
    State(bases): State<Bases>,
    Caller(principal): Caller,
    ApiJson(body): ApiJson<SearchBody>,
) -> Result<Json<SearchView>, ApiError> {
    principal.require(Scope::Knowledge)?;
    let began = bases.clock.instant();
    let is_admin = principal.require_admin().is_ok();
    let partner = named_partner(&body.partner)?;
    let tenant = principal.tenant(&partner)?;
    let fusion = fusion(&body, is_admin)?;
    let (original, replaced) = questions(&body)?;
    let base = base_of(&bases, &tenant, &body, is_admin).await?;
    let place = match &body.collection_override {
        Some(collection) => Some(collection_of(collection, is_admin)?),
        None => None,
    };
    let query = BaseQuery {
        original: original.clone(),
        replaced: replaced.clone(),
        fusion,
        claim: Claim::new(Priority::Request, tenant.partner().as_str()),
        patience: PATIENCE,
        embedding_patience: None,
        place,
    };
    let answer = retrieval::search(&bases, &base, query)
        .await
        .map_err(refused)?;
    let names = names(&bases, &base, &answer).await?;
    let total = bases.clock.instant().saturating_duration_since(began);
    let BaseAnswer {
        found,
        profile,
        embedding,
        without_vectors,
    } = answer;
    let routing = is_admin.then(|| RoutingView {
        knowledge_base_id: base.id.clone(),
        embedding_profile_id: profile.as_ref().map(|profile| profile.id),
    });
    let search_ms = found.as_ref().map_or(0.0, |found| ms(found.took));
    let (passages, rankings, languages) = match found {
        Some(found) => (found.passages, found.rankings, found.languages),
        None => (Vec::new(), Vec::new(), Vec::new()),
    };
    let results = passages.into_iter().enumerate();
    let combined_results: Vec<_> = results
        .map(|(at, passage)| result(at + 1, passage, &names, is_admin))
        .collect();
    Ok(Json(SearchView {
        config: config(&fusion, profile.map(|profile| profile.name)),
        queries: QueriesView { original, replaced },
        streams: rankings.into_iter().map(StreamView::from).collect(),
        total_results: combined_results.len(),
        combined_results,
        bm25_languages: Language::all().map(Language::tag).collect(),
        query_languages: languages.into_iter().map(Language::tag).collect(),
        timings: TimingsView {
            embedding_ms: embedding.map(ms),
            search_ms,
            total_ms: ms(total),
        },
        without_vectors,
        routing,
    }))
}

/// What a client is told of a search that failed.
fn refused(error: anyhow::Error) -> ApiError {
    match error.downcast::<IndexAway>() {
        Ok(away) => ApiError {
            source: Some(Arc::new(away)),
            ..ApiError::unavailable("The search index cannot be searched now", INDEX_WAIT)
        },
        Err(error) => ApiError::internal(error),
    }
}

fn ms(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// How the streams become one.
fn fusion(body: &SearchBody, is_admin: bool) -> Result<FusionParameters, ApiError> {
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

fn for_administrators(field: &'static str) -> ApiError {
    ApiError {
        field: Some(field.to_owned()),
        ..ApiError::forbidden("is for administrators")
    }
}

/// The question in its forms. What the user said comes first: of a long text, an embedder and an index read the beginning.
fn questions(body: &SearchBody) -> Result<(String, Option<String>), ApiError> {
    let bounded = |field: &'static str, text: &str| match text.chars().count() <= LONGEST {
        true => Ok(()),
        false => {
            let message = format!("must have at most {LONGEST} characters");
            Err(ApiError::invalid(field, message))
        }
    };
    let user = body.user_message.trim();
    if user.is_empty() {
        return Err(ApiError::invalid("user_message", "is required"));
    }
    bounded("user_message", &body.user_message)?;
    let robot = body.robot_message.as_deref().unwrap_or_default();
    bounded("robot_message", robot)?;
    let together = |user: &str| match robot.trim() {
        "" => user.to_owned(),
        robot => format!("{user}\n{robot}"),
    };
    let name = body.character_replacement_name.as_deref();
    let name = name.map(str::trim).filter(|name| !name.is_empty());
    if name.is_some_and(|name| name.chars().count() > 200) {
        return Err(ApiError::invalid(
            "character_replacement_name",
            "must have at most 200 characters",
        ));
    }
    let replaced = name.and_then(|name| replacing::replaced(user, name));
    Ok((together(user), replaced.as_deref().map(together)))
}

/// The base that is searched.
async fn base_of(
    bases: &Bases,
    tenant: &Tenant,
    body: &SearchBody,
    is_admin: bool,
) -> Result<KnowledgeBase, ApiError> {
    let Some(index) = &body.rag_index_override else {
        return Ok(base::find(bases, tenant, &body.kb).await?);
    };
    if !is_admin {
        return Err(for_administrators("rag_index_override"));
    }
    let named = index.split_once('/').and_then(|(partner, name)| {
        let partner = PartnerId::parse(partner).ok()?;
        Some((Tenant::of_row(partner.as_str()), name))
    });
    let Some((tenant, name)) = named else {
        let message = "must be <partner>/<kb>";
        return Err(ApiError::invalid("rag_index_override", message));
    };
    Ok(base::find(bases, &tenant, name).await?)
}

fn collection_of(collection: &str, is_admin: bool) -> Result<(Uuid, i64), ApiError> {
    if !is_admin {
        return Err(for_administrators("collection_override"));
    }
    let parts = collection.split_once('/');
    let parts = parts.and_then(|(base, profile)| Some((base.parse().ok()?, profile.parse().ok()?)));
    parts.ok_or_else(|| {
        let message = "must be <knowledge_base_id>/<embedding_profile_id>";
        ApiError::invalid("collection_override", message)
    })
}

/// The names of the documents of a base.
async fn names(
    bases: &Bases,
    base: &KnowledgeBase,
    answer: &BaseAnswer,
) -> Result<HashMap<String, String>, BaseError> {
    let passages = answer.found.iter().flat_map(|found| &found.passages);
    let ids = passages.map(|passage| passage.place.document.to_string());
    let ids: HashSet<String> = ids.collect();
    let mut names = HashMap::new();
    for id in ids {
        let name = store::document_name(bases.store.db(), base, &id).await?;
        names.extend(name.map(|name| (id, name)));
    }
    Ok(names)
}

fn config(fusion: &FusionParameters, profile: Option<String>) -> ConfigView {
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

fn form(form: Form) -> &'static str {
    match form {
        Form::Original => "original",
        Form::Replaced => "replaced",
    }
}

impl From<Ranking> for StreamView {
    fn from(ranking: Ranking) -> Self {
        let hits = ranking.hits.into_iter().enumerate();
        Self {
            retriever: ranking.stream.name(),
            query: form(ranking.form),
            time_ms: ms(ranking.took),
            results: hits
                .map(|(at, hit)| HitView {
                    rank: at + 1,
                    score: hit.score,
                    document_id: hit.place.document.to_string(),
                    chunk_index: hit.place.index,
                })
                .collect(),
        }
    }
}

impl From<Share> for ShareView {
    fn from(share: Share) -> Self {
        Self {
            retriever: share.stream.name(),
            query: form(share.form),
            rank: share.rank,
            score: share.score,
            share: share.share,
        }
    }
}

fn result(
    rank: usize,
    passage: Passage,
    names: &HashMap<String, String>,
    is_admin: bool,
) -> ResultView {
    let document_id = passage.place.document.to_string();
    let duplicates = passage.duplicates.into_iter().map(|place| PlaceView {
        document_id: place.document.to_string(),
        chunk_index: place.index,
    });
    ResultView {
        rank,
        fusion_score: passage.score,
        document_name: names.get(&document_id).cloned(),
        document_id,
        path: passage.path,
        text: passage.text,
        chunk_index: passage.place.index,
        shares: passage.shares.into_iter().map(ShareView::from).collect(),
        duplicates: duplicates.collect(),
        chunk_id: is_admin.then(|| passage.id.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_said_is_read_however_much_was_said_before() {
        let body = SearchBody {
            user_message: " When do you open? ".to_owned(),
            robot_message: Some("x".repeat(LONGEST)),
            character_replacement_name: Some("Ada".to_owned()),
            ..SearchBody::default()
        };
        let (original, replaced) = questions(&body).unwrap();
        assert!(original.starts_with("When do you open?\nxxx"));
        assert!(replaced.unwrap().starts_with("When do Ada open?\nxxx"));
        let alone = SearchBody {
            robot_message: None,
            ..body
        };
        assert_eq!(questions(&alone).unwrap().0, "When do you open?");
    }
}
