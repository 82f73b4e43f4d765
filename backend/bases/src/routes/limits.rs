//! `/api/knowledgebases/../limits`.

use axum::{Json, extract::State};
use colloquy_accounts::{PartnerTenant, ledger::Measure};
use colloquy_base::{json::given, money::Usd};
use colloquy_http::{ApiError, ApiJson, ApiPath};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{BasePath, base_of};
use crate::{
    Bases,
    admission::{self, TakenFor},
    base::KnowledgeBase,
    budget::{self, BlockingReason, BudgetChange, BudgetState},
    store,
};

/// The limits of a base; null is unlimited, 0 takes nothing more.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = BaseLimits)]
pub(crate) struct LimitsView {
    /// Characters of accepted text.
    character_limit: Option<u64>,
    /// Tokens of rewriting and embedding, for ever.
    token_limit: Option<u64>,
    /// Dollars, for ever.
    #[schema(value_type = Option<String>, example = "12.5")]
    dollar_limit_usd: Option<Usd>,
}

/// Makes a view of how one of the limits stands: of a count, or of dollars.
macro_rules! limit_view {
    ($(#[$about:meta])+ $name:ident, $amount:ty, $shown:ty) => {
        $(#[$about])+
        #[derive(Debug, Serialize, ToSchema)]
        pub(crate) struct $name {
            /// The most; null for none.
            #[schema(value_type = Option<$shown>)]
            limit: Option<$amount>,
            /// What is there of characters, or was used of tokens and dollars so far.
            #[schema(value_type = $shown)]
            consumed: $amount,
            /// What requests that are under way, or whose end is not known, may use.
            #[schema(value_type = $shown)]
            reserved: $amount,
            /// What is left, 0 at least; null without a limit.
            #[schema(value_type = Option<$shown>)]
            remaining: Option<$amount>,
            /// Requests that were answered and of which nobody knows how much they used.
            unknown_events: u64,
        }
    };
}

limit_view! {
    /// How a limit of characters or tokens stands.
    CountLimitView, u64, u64
}

limit_view! {
    /// How a limit of dollars stands.
    DollarLimitView, Usd, String
}

/// How the budget of a base stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BudgetView {
    /// The limits.
    limits: LimitsView,
    /// Characters of accepted text.
    characters: CountLimitView,
    /// Tokens of rewriting and embedding.
    tokens: CountLimitView,
    /// Dollars.
    dollars: DollarLimitView,
    /// Requests of which nobody knows what became of them: while there are any, and a limit of tokens or dollars, nothing is asked that
    /// costs something.
    uncertain_operations: u64,
    /// Why the base takes nothing more of something.
    blocking_reasons: Vec<BlockingReason>,
    /// Whether there is such a reason.
    blocked: bool,
}

impl BudgetView {
    /// How the budget of a base stands now.
    pub(super) async fn of(bases: &Bases, base: &KnowledgeBase) -> Result<Self, ApiError> {
        let db = bases.store.db();
        let state = BudgetState::read(db, &base.id).await?;
        let state = state.ok_or_else(|| ApiError::not_found("Knowledge base"))?;
        let characters = store::count_characters(db, &base.id, None).await?;
        Ok(Self::new(&state, characters))
    }

    /// How a budget stands with so many characters of accepted text.
    pub(super) fn new(state: &BudgetState, characters: u64) -> Self {
        let (limits, standing) = (&state.limits, &state.standing);
        let blocking_reasons = state.blocking_reasons(characters);
        let used = |measure| standing.used.of(measure);
        let reserved = |measure| standing.reserved.of(measure);
        Self {
            limits: LimitsView {
                character_limit: limits.characters,
                token_limit: limits.tokens,
                dollar_limit_usd: limits.dollars,
            },
            characters: CountLimitView {
                limit: limits.characters,
                consumed: characters,
                reserved: 0,
                remaining: limits
                    .characters
                    .map(|limit| limit.saturating_sub(characters)),
                unknown_events: 0,
            },
            tokens: CountLimitView {
                limit: limits.tokens,
                consumed: used(Measure::Tokens),
                reserved: reserved(Measure::Tokens),
                remaining: standing.remaining(Measure::Tokens),
                unknown_events: state.spending.unknown_tokens,
            },
            dollars: DollarLimitView {
                limit: limits.dollars,
                consumed: Usd(used(Measure::Cost)),
                reserved: Usd(reserved(Measure::Cost)),
                remaining: standing.remaining(Measure::Cost).map(Usd),
                unknown_events: state.spending.unknown_dollars,
            },
            uncertain_operations: state.spending.uncertain,
            blocked: !blocking_reasons.is_empty(),
            blocking_reasons,
        }
    }
}

/// How many characters a base has and may have.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuotaInfoView {
    /// The most; null for none.
    character_limit: Option<u64>,
    /// Those of its texts.
    characters_used: u64,
    /// What is left; null without a limit.
    characters_remaining: Option<u64>,
}

impl QuotaInfoView {
    pub(super) fn new(budget: &BudgetView) -> Self {
        Self {
            character_limit: budget.characters.limit,
            characters_used: budget.characters.consumed,
            characters_remaining: budget.characters.remaining,
        }
    }
}

/// The budget of a knowledge base.
#[utoipa::path(
    get, path = "/api/knowledgebases/{partner}/{kb}/limits", operation_id = "read_limits", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)),
    responses((status = 200, body = BudgetView), (status = 404))
)]
pub(super) async fn read(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
) -> Result<Json<BudgetView>, ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    Ok(Json(BudgetView::of(&bases, &base).await?))
}

/// Limits that change; what is left out stays as it is.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LimitsBody {
    /// The most characters of accepted text; null: unlimited, 0: nothing more.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u64>)]
    character_limit: Option<Option<u64>>,
    /// The most tokens of rewriting and embedding, for ever.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u64>)]
    token_limit: Option<Option<u64>>,
    /// The most dollars, for ever, with 8 decimals at most: a number or a text.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>, example = "12.5")]
    dollar_limit_usd: Option<Option<Usd>>,
}

/// Gives a knowledge base other limits. Where there is room then, what waited for it goes on by itself. A limit below what was used already
/// lets nothing begin any more; what was sent goes on.
#[utoipa::path(
    patch, path = "/api/knowledgebases/{partner}/{kb}/limits", operation_id = "change_limits", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)), request_body = LimitsBody,
    responses((status = 200, body = BudgetView), (status = 400), (status = 404), (status = 409))
)]
pub(super) async fn change(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    ApiJson(body): ApiJson<LimitsBody>,
) -> Result<Json<BudgetView>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    storable("character_limit", body.character_limit)?;
    storable("token_limit", body.token_limit)?;
    storable(
        "dollar_limit_usd",
        body.dollar_limit_usd.map(|limit| limit.map(|usd| usd.0)),
    )?;
    let change = BudgetChange {
        characters: body.character_limit,
        tokens: body.token_limit,
        dollars: body.dollar_limit_usd,
    };
    budget::change(&bases, &tenant, &base.id, change).await?;
    Ok(Json(BudgetView::of(&bases, &base).await?))
}

/// What is decided.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecisionBody {
    /// What the requests are taken for.
    taken_for: TakenFor,
}

/// Decides about the requests of a knowledge base of which nobody knows what became of them or what they used: from then on they count as what
/// they are taken for, and block nothing. For administrators, who have looked into the bills of the services.
#[utoipa::path(
    post, path = "/api/knowledgebases/{partner}/{kb}/limits/unknown", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)), request_body = DecisionBody,
    responses((status = 200, body = BudgetView), (status = 400), (status = 403), (status = 404))
)]
pub(super) async fn decide(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    ApiJson(body): ApiJson<DecisionBody>,
) -> Result<Json<BudgetView>, ApiError> {
    caller.principal.require_admin()?;
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    admission::decide(&bases, &tenant, &base.id, body.taken_for).await?;
    Ok(Json(BudgetView::of(&bases, &base).await?))
}

/// Passes unless it is more than the database holds.
fn storable(field: &'static str, limit: Option<Option<u64>>) -> Result<(), ApiError> {
    match limit.flatten() {
        Some(limit) if i64::try_from(limit).is_err() => {
            Err(ApiError::invalid(field, "is too large"))
        }
        _ => Ok(()),
    }
}
