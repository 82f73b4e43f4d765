//! `/api/rag-test/search`.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use axum::{Json, extract::State};
use colloquy_accounts::{Caller, PartnerId, Scope, Tenant};
use colloquy_base::{
    fair_queue::{Claim, Priority},
    invalid::InvalidField,
};
use colloquy_http::{ApiError, ApiJson};
use colloquy_index::analysis::Language;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::{
    named_partner,
    retrieval_views::{
        Known, QueriesView, RoutingView, SearchView, StreamView, TimingsView, ms, result,
    },
    tuning::{self, Tuning, for_administrators},
};
use crate::{
    Bases,
    base::{self, KnowledgeBase},
    error::BaseError,
    index::IndexAway,
    questions::Asked,
    retrieval::{self, BaseAnswer, BaseQuery, Prompt},
    store,
};

/// How long it is waited for what was embedded a moment ago.
const PATIENCE: Duration = Duration::from_secs(5);
/// When an index may be searched again that cannot be now.
const INDEX_WAIT: Duration = Duration::from_secs(5);
/// The most passages of each stream that come with their text.
const MOST_TEXTS: usize = 50;

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
    /// How many of the first passages of each stream come with their text and the name of their document.
    #[schema(default = 0, minimum = 0, maximum = 50)]
    stream_texts: Option<u64>,
    /// `<knowledge_base_id>/<embedding_profile_id>`: these vectors instead of the base's own. For administrators.
    collection_override: Option<String>,
    /// `<partner>/<kb>`: another base. For administrators.
    rag_index_override: Option<String>,
}

impl SearchBody {
    fn tuning(&self) -> Tuning {
        Tuning {
            top_k: self.top_k,
            search_multiplier: self.search_multiplier,
            rrf_k: self.rrf_k,
            rrf_weight_dense: self.rrf_weight_dense,
            rrf_weight_sparse: self.rrf_weight_sparse,
            rrf_weight_bm25: self.rrf_weight_bm25,
            query_weight_original: self.query_weight_original,
            query_weight_replaced: self.query_weight_replaced,
        }
    }

    fn asked(&self) -> Result<Asked, InvalidField> {
        Asked::parse(
            &self.user_message,
            self.robot_message.as_deref(),
            self.character_replacement_name.as_deref(),
        )
    }

    fn stream_texts(&self) -> Result<usize, InvalidField> {
        let count = usize::try_from(self.stream_texts.unwrap_or_default());
        count
            .ok()
            .filter(|count| *count <= MOST_TEXTS)
            .ok_or_else(|| {
                let message = format!("must be 0 to {MOST_TEXTS}");
                InvalidField::new("stream_texts", message)
            })
    }
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
    let fusion = tuning::fusion(&body.tuning(), is_admin)?;
    let (original, replaced) = body.asked()?.forms();
    let stream_texts = body.stream_texts()?;
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
        stream_texts,
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
        texts,
    } = answer;
    let known = Known {
        names,
        texts,
        stream_texts,
    };
    let routing = is_admin.then(|| RoutingView {
        knowledge_base_id: base.id.clone(),
        embedding_profile_id: profile.as_ref().map(|profile| profile.id),
    });
    let search_ms = found.as_ref().map_or(0.0, |found| ms(found.took));
    let (passages, rankings, languages) = match found {
        Some(found) => (found.passages, found.rankings, found.languages),
        None => (Vec::new(), Vec::new(), Vec::new()),
    };
    let prompt = Prompt::of(&passages);
    let results = passages.into_iter().enumerate();
    let combined_results: Vec<_> = results
        .map(|(at, passage)| result(at + 1, passage, &known.names, is_admin))
        .collect();
    let streams = rankings.into_iter();
    let streams = streams.map(|ranking| StreamView::of(ranking, &known));
    Ok(Json(SearchView {
        config: tuning::config(&fusion, profile.map(|profile| profile.name)),
        queries: QueriesView { original, replaced },
        streams: streams.collect(),
        total_results: combined_results.len(),
        combined_results,
        prompt: prompt.into(),
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

/// The names of the documents of a base that an answer shows.
async fn names(
    bases: &Bases,
    base: &KnowledgeBase,
    answer: &BaseAnswer,
) -> Result<HashMap<String, String>, BaseError> {
    let passages = answer.found.iter().flat_map(|found| &found.passages);
    let places = passages.map(|passage| passage.place);
    let places = places.chain(answer.texts.keys().copied());
    let ids: HashSet<String> = places.map(|place| place.document.to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    Ok(store::document_names(bases.store.db(), &base.id, &ids).await?)
}
