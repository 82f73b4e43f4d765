//! `/api/character_drafts/{partner}/replies`: replies of a character that need not be saved, for whoever writes it.
//!
//! A reply is made as in a call: the same prompt, search and model. Unlike a call, its stream tells what was found, how long each stage took, and
//! what it cost. Whoever asks has an API key and no quota: usage is counted in a budget of the partner without limits, and stands in the log and the
//! metrics, too. Its bound is reserved before the model is asked, so that a process that is killed leaves nothing uncounted.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use axum::{
    Extension,
    body::Body,
    extract::{FromRef, State},
    response::Response,
};
use bytes::Bytes;
use colloquy_accounts::{
    Accounts, PartnerTenant, Scope,
    ledger::{Outcome, Reservation, UsageContext, budget},
    partners,
    quotas::NotAllowed,
};
use colloquy_base::{clock::runtime_now, money::Usd, permits::Permit};
use colloquy_characters::{CharacterInput, InvalidCharacter, parse_character_params};
use colloquy_formats::{
    ChatMessage, ChatRole, ErrorBody, Request, ThoughtFilter, TokenUsage, VisibleResult,
    VisibleRetrieval,
};
use colloquy_http::{ApiError, ApiJson, Arrival, event_stream, memory::Share};
use colloquy_kernel::{router::DescribedRouter, routes};
use colloquy_providers::{ChatRequest, Model, ModelApi};
use futures_util::stream;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::time::{Instant, sleep_until};
use utoipa::ToSchema;

use super::{
    bill::{self, Bounds},
    dispatch::{self, Dispatch, Step},
    error::PrepareError,
    failure,
    prepare::{Documents, Persona, resolved, working_bytes},
    prompt::{self, PromptStyle},
    reply,
};
use crate::Generation;

/// Replies in progress at a time, and those of one partner.
pub(super) const MOST: usize = 64;
pub(super) const MOST_OF_PARTNER: usize = 8;
/// When a partner that has as many as it may should ask again.
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// The most turns of a conversation.
const MAX_TURNS: usize = 200;
/// The endpoint in records of usage.
const ENDPOINT: &str = "character_drafts";
/// Keeps a silent stream open.
const PING: Bytes = Bytes::from_static(b": ping\n\n");

pub(super) fn routes<S: colloquy_kernel::State>() -> DescribedRouter<S>
where
    Accounts: FromRef<S>,
    Generation: FromRef<S>,
{
    DescribedRouter::new().routes(routes!(create_draft_reply))
}

/// A conversation with a draft.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DraftReplyBody {
    /// The character: an object with `personality` and `parameters`, or a saved one of the partner as `repo:<partner>/<name>`.
    character: Value,
    /// Values for placeholders of its templates: strings, numbers, booleans and null.
    #[schema(value_type = Option<BTreeMap<String, Value>>)]
    character_params: Option<Value>,
    /// The turns so far, oldest first, the last one the user's: 1 to 200. Turns of one speaker in a row count as one.
    messages: Vec<DraftTurn>,
    /// The model; without one, that of calls.
    model: Option<String>,
    /// The form of the reply.
    #[serde(default)]
    style: DraftStyle,
}

/// A turn of a conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DraftTurn {
    /// Who said it.
    role: DraftRole,
    /// The words.
    content: String,
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum DraftRole {
    /// The visitor.
    User,
    /// The character.
    Assistant,
}

/// The form of a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum DraftStyle {
    /// As in a call: a few short sentences that can be spoken.
    #[default]
    Spoken,
    /// As in text.
    Written,
}

/// An event of a reply; `type` is the name of the event, too.
#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "type")]
pub(crate) enum DraftReplyEvent {
    /// The first event: what the model is asked with.
    #[serde(rename = "reply.prepared")]
    Prepared {
        /// The id of the request, as in `X-Request-Id` and in the log.
        request_id: String,
        /// What was looked up; null for a character that looks nothing up.
        retrieval: Option<DraftRetrieval>,
        /// The knowledge base that the character names, if it is not found.
        unknown_base: Option<String>,
    },
    /// The next piece of the reply.
    #[serde(rename = "reply.delta")]
    Delta {
        /// The text to append.
        text: String,
    },
    /// All text so far was a thought of the model's and is no part of the reply.
    #[serde(rename = "reply.retracted")]
    Retracted,
    /// The last event of a complete reply.
    #[serde(rename = "reply.done")]
    Done {
        /// The model that replied.
        model: String,
        /// The tokens.
        usage: DraftUsage,
        /// The price of the tokens in USD; null if the settings of the server have no price for the model.
        cost_usd: Option<Usd>,
        /// The time of each stage.
        times: DraftTimes,
    },
    /// The last event of a reply that failed after the stream began.
    #[serde(rename = "reply.failed")]
    Failed {
        /// The reason as a code, such as `upstream_timeout`.
        code: String,
        /// The reason in words.
        message: String,
    },
}

/// What was looked up for a reply.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DraftRetrieval {
    /// The questions; none if the last turn asks for nothing.
    queries: Vec<String>,
    /// The passages that the model gets, best first, at most 4.
    results: Vec<DraftSource>,
}

/// A passage that was found.
#[derive(Debug, Serialize, ToSchema)]
struct DraftSource {
    /// The public identifier of its document, as `POST /v3/responses` has it.
    file_id: String,
    /// The title of its document.
    filename: String,
    /// The relevance, larger is better.
    score: Option<f64>,
    /// The first 200 characters.
    text: String,
    /// `chunk_index`, and `retrievers`: the names of the searches that found it.
    #[schema(value_type = BTreeMap<String, Value>)]
    attributes: Value,
}

/// The tokens of a reply.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DraftUsage {
    /// Tokens of the prompt and the conversation.
    input_tokens: u64,
    /// Those of them that the model had cached.
    cached_input_tokens: u64,
    /// Tokens of the reply.
    output_tokens: u64,
    /// Those of them that were reasoning.
    reasoning_tokens: u64,
    /// True if the model did not tell them: a quarter of the bytes then.
    is_estimated: bool,
}

/// The time of each stage of a reply, in milliseconds.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DraftTimes {
    /// Filling the templates in, with the wait for it.
    render_ms: u64,
    /// Looking things up; null for a character that looks nothing up.
    retrieval_ms: Option<u64>,
    /// From the request to the model until the first text; null if there was none.
    first_text_ms: Option<u64>,
    /// From the request to the model until its end.
    model_ms: u64,
    /// From the arrival of the request until the end of the reply.
    total_ms: u64,
}

/// Has a character reply that need not be saved, and streams the reply with what was looked up for it, the time of each stage, the tokens and
/// their price. For trying a draft out: applications use `/v3/responses` with the key of a quota. The key needs the scopes `characters` and `calls`;
/// usage is not limited by a quota, and is logged and counted in the metrics.
///
/// The stream of server-sent events begins with `reply.prepared`, goes on with `reply.delta`, and ends with `reply.done` or `reply.failed`.
/// `reply.retracted` takes all text back that came before it. To cancel a reply, close the connection.
#[utoipa::path(
    post, path = "/api/character_drafts/{partner}/replies", operation_id = "reply_as_character", tag = "characters",
    params(("partner" = String, Path)),
    request_body = DraftReplyBody,
    responses(
        (status = 200, description = "The events; the schema is that of their data", content((DraftReplyEvent = "text/event-stream"))),
        (status = 400, description = "A field is wrong, the character cannot be used (`invalid_character`), a placeholder has no value, or there is no such model"),
        (status = 404, description = "The partner was not found"),
        (status = 413, description = "The body is too large, or the documents of the character take more memory than the server has for one partner"),
        (status = 403, description = "The key lacks a scope, or the partner may not use the model (`model_not_allowed`)"),
        (status = 429, description = "Eight replies of drafts of the partner are in progress; retry after `Retry-After` seconds"),
        (status = 503, description = "No memory or time for it now; retry after `Retry-After` seconds"),
    ),
)]
pub(crate) async fn create_draft_reply(
    State(generation): State<Generation>,
    caller: PartnerTenant,
    Extension(arrival): Extension<Arrival>,
    share: Option<Extension<Share>>,
    ApiJson(body): ApiJson<DraftReplyBody>,
) -> Result<Response, ApiError> {
    caller.principal.require(Scope::Characters)?;
    caller.principal.require(Scope::Calls)?;
    let turns = turns(&body.messages)?;
    let tenant = &caller.tenant;
    let Some(place) = generation.drafts.try_acquire(tenant.partner().as_str()) else {
        return Err(ApiError {
            message: "Too many replies of drafts are in progress".to_owned(),
            ..ApiError::rate_limited(RETRY_AFTER)
        });
    };
    let model = model(&generation, body.model.as_deref())?;
    let partner = partners::read(&generation, tenant).await?;
    if body.model.is_some() && !partner.settings.allows_model(model.name()) {
        return Err(NotAllowed::PartnerModel.into());
    }
    let character = CharacterInput::parse(&body.character)?;
    if character
        .partner()
        .is_some_and(|partner| partner != tenant.partner())
    {
        return Err(InvalidCharacter {
            field: None,
            message: "Unknown character".to_owned(),
        }
        .into());
    }
    let params = parse_character_params(body.character_params.as_ref())?;

    let rendering = runtime_now();
    let who = (&caller.principal, tenant);
    let persona: Result<Persona, ApiError> =
        resolved(&generation, who, character, &params, Documents::Searched).await;
    let persona = persona?;
    let render_ms = millis(rendering.elapsed());
    let searching = runtime_now();
    let found = persona.look_up(&generation, &turns).await;
    let retrieval_ms = found.as_ref().map(|_| millis(searching.elapsed()));
    let retrieval = found.as_ref().map(|found| persona.visible(found).into());
    let deleted = || found.as_ref()?.unknown_base.clone();
    let unknown_base = persona.unknown_base.clone().or_else(deleted);
    let passages = found.map(|found| found.passages).unwrap_or_default();

    let style = match body.style {
        DraftStyle::Spoken => PromptStyle::Spoken,
        DraftStyle::Written => PromptStyle::Written,
    };
    let asked = ChatRequest {
        system: prompt::system(&persona.speaker, style, &passages),
        messages: turns,
        grounding: Arc::new(persona.speaker.grounding(passages)),
    };
    let (request, models) = request(&asked, model)?;
    let input_bytes = request.bound_bytes();
    if let Some(Extension(memory)) = &share {
        memory.grow(working_bytes(&models, input_bytes))?;
    }
    let about = UsageContext {
        endpoint: ENDPOINT,
        model: models[0].name().to_owned(),
        character: persona.reference.clone(),
        request_id: arrival.id.clone(),
    };
    let now = generation.clock.now_ms();
    let budget = budget::of_drafts(generation.store.db(), tenant, now).await?;
    let most = Bounds::new(&request, 0).most(&models);
    let ledger = &generation.ledger;
    let mut reservation = ledger.reserve_of_budget(&budget, most, about).await?;
    reservation.begin();
    let dispatch = Dispatch::new(
        &generation,
        tenant,
        &request,
        &models,
        Some(&asked.grounding),
        |_| None,
    );
    let mut reply = DraftReply {
        ping_every: Duration::from_secs(generation.config.http.keep_alive_seconds.into()),
        key_id: caller.principal.key_id.clone(),
        partner: tenant.partner().as_str().to_owned(),
        arrival,
        model: Arc::clone(&models[0]),
        dispatch,
        generation,
        ready: VecDeque::new(),
        filter: Some(ThoughtFilter::default()),
        asked_at: runtime_now(),
        first_text_ms: None,
        render_ms,
        retrieval_ms,
        usage: None,
        input_bytes,
        output_bytes: 0,
        reservation: Some(reservation),
        _memory: share.map(|Extension(share)| share),
        _place: place,
    };
    reply.tell(DraftReplyEvent::Prepared {
        request_id: reply.arrival.id.clone(),
        retrieval,
        unknown_base: unknown_base.map(|unknown| unknown.0),
    });
    let pieces = stream::unfold(reply, |mut reply| async move {
        let piece = reply.next().await?;
        Some((Ok::<Bytes, Infallible>(piece), reply))
    });
    Ok(event_stream(Body::from_stream(pieces)))
}

/// The turns that the model reads; the last one is the user's.
fn turns(messages: &[DraftTurn]) -> Result<Vec<ChatMessage>, ApiError> {
    if messages.len() > MAX_TURNS {
        let most = format!("at most {MAX_TURNS} turns");
        return Err(ApiError::invalid("messages", most));
    }
    let turns = reply::turns(messages.iter().map(|turn| {
        let role = match turn.role {
            DraftRole::User => ChatRole::User,
            DraftRole::Assistant => ChatRole::Assistant,
        };
        (role, turn.content.as_str())
    }));
    match turns.last() {
        Some(last) if last.role == ChatRole::User => Ok(turns),
        _ => Err(ApiError::invalid(
            "messages",
            "the last turn is the user's, and has words",
        )),
    }
}

fn model(generation: &Generation, named: Option<&str>) -> Result<Arc<Model>, ApiError> {
    let name = named.unwrap_or_else(|| generation.providers.chat.name());
    let model = generation.providers.models.get(name).cloned();
    model.ok_or_else(|| {
        ApiError::invalid("model", format!("there is no model {name}")).with_code("model_not_found")
    })
}

/// The request in the words of the text interfaces, and the model that can be asked it.
fn request(
    asked: &ChatRequest,
    model: Arc<Model>,
) -> Result<(Arc<Request>, Vec<Arc<Model>>), PrepareError> {
    let mut body = asked.for_model(ModelApi::Chat).body;
    body.insert("model".to_owned(), model.name().into());
    let request = Request::read(ModelApi::Chat, Value::Object(body))?;
    let models = dispatch::able(&request, vec![model])?;
    Ok((Arc::new(request), models))
}

impl From<VisibleRetrieval> for DraftRetrieval {
    fn from(retrieval: VisibleRetrieval) -> Self {
        Self {
            queries: retrieval.queries,
            results: retrieval.results.into_iter().map(Into::into).collect(),
        }
    }
}

impl From<VisibleResult> for DraftSource {
    fn from(result: VisibleResult) -> Self {
        Self {
            text: result.preview(),
            file_id: result.file_id,
            filename: result.filename,
            score: result.score,
            attributes: Value::Object(result.attributes),
        }
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A reply that is being made. Dropping it cancels the model and notes what was used.
struct DraftReply {
    generation: Generation,
    key_id: String,
    partner: String,
    arrival: Arrival,
    dispatch: Dispatch,
    model: Arc<Model>,
    ping_every: Duration,
    /// Events that are there already.
    ready: VecDeque<Bytes>,
    /// What leaves thoughts out; `None` once the reply has ended and its usage is noted.
    filter: Option<ThoughtFilter>,
    asked_at: Instant,
    first_text_ms: Option<u64>,
    render_ms: u64,
    retrieval_ms: Option<u64>,
    /// The tokens, as the model told them.
    usage: Option<TokenUsage>,
    input_bytes: u64,
    output_bytes: u64,
    /// The reservation, until the usage is settled.
    reservation: Option<Reservation>,
    /// The memory that the model's answer takes.
    _memory: Option<Share>,
    _place: Permit,
}

impl DraftReply {
    /// The next bytes of the stream; `None` at its end.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            self.filter.as_ref()?;
            let step = tokio::select! {
                biased;
                () = self.generation.kernel.drain_over.cancelled() => {
                    self.fail(failure::stopped());
                    continue;
                }
                step = self.dispatch.next() => step,
                () = sleep_until(runtime_now() + self.ping_every) => return Some(PING),
            };
            match step {
                Step::Answers(model) => self.model = model,
                Step::Event(event) => {
                    self.usage = event.usage().or(self.usage);
                    if let Some(piece) = event.text() {
                        self.hear(piece);
                    }
                }
                Step::End => self.end(),
                Step::Failed(error) => {
                    self.usage = error.used().or(self.usage);
                    self.fail(failure::body(&error));
                }
            }
        }
    }

    fn tell(&mut self, event: DraftReplyEvent) {
        let data = serde_json::to_value(&event).unwrap_or_default();
        let name = data["type"].as_str().unwrap_or_default();
        let event = format!("event: {name}\ndata: {data}\n\n");
        self.ready.push_back(Bytes::from(event));
    }

    fn say(&mut self, text: String) {
        if text.is_empty() {
            return;
        }
        let first = millis(self.asked_at.elapsed());
        self.first_text_ms.get_or_insert(first);
        self.tell(DraftReplyEvent::Delta { text });
    }

    fn hear(&mut self, piece: String) {
        self.output_bytes += piece.len() as u64;
        let Some(filter) = &mut self.filter else {
            return;
        };
        let text = filter.push(piece);
        if filter.take_retraction() {
            self.first_text_ms = None;
            self.tell(DraftReplyEvent::Retracted);
        }
        self.say(text);
    }

    fn end(&mut self) {
        let Some(filter) = self.filter.take() else {
            return;
        };
        self.say(filter.finish());
        let usage = self.note(Outcome::Completed);
        let settings = &self.model.settings;
        let has_price = settings.input_usd.or(settings.output_usd).is_some();
        self.tell(DraftReplyEvent::Done {
            model: self.model.name().to_owned(),
            cost_usd: has_price.then(|| Usd(self.model.cost(usage))),
            usage: DraftUsage {
                input_tokens: usage.input,
                cached_input_tokens: usage.cached,
                output_tokens: usage.output,
                reasoning_tokens: usage.reasoning,
                is_estimated: self.usage.is_none(),
            },
            times: DraftTimes {
                render_ms: self.render_ms,
                retrieval_ms: self.retrieval_ms,
                first_text_ms: self.first_text_ms,
                model_ms: millis(self.asked_at.elapsed()),
                total_ms: millis(self.arrival.at.elapsed()),
            },
        });
    }

    fn fail(&mut self, why: ErrorBody) {
        if self.filter.take().is_none() {
            return;
        }
        self.note(Outcome::Failed);
        self.tell(DraftReplyEvent::Failed {
            code: why.code,
            message: why.message,
        });
    }

    /// Notes what was used: what the model told, else an estimate; nothing if it failed without a word.
    fn note(&mut self, outcome: Outcome) -> TokenUsage {
        let is_unused = outcome == Outcome::Failed && self.output_bytes == 0;
        let usage = self.usage.unwrap_or_else(|| match is_unused {
            true => TokenUsage::default(),
            false => TokenUsage {
                input: self.input_bytes.div_ceil(4),
                output: self.output_bytes.div_ceil(4),
                ..TokenUsage::default()
            },
        });
        if let Some(reservation) = self.reservation.take() {
            reservation.settle(bill::amounts(&self.model, usage), outcome);
        }
        let model = || self.model.name().to_owned();
        let cost = self.model.cost(usage);
        metrics::counter!("colloquy_tokens_total", "model" => model(), "kind" => "input")
            .increment(usage.input);
        metrics::counter!("colloquy_tokens_total", "model" => model(), "kind" => "output")
            .increment(usage.output);
        // A counter takes whole numbers only: 1e-9 USD.
        metrics::counter!("colloquy_cost_nanodollars_total", "model" => model())
            .increment(cost.saturating_mul(10));
        tracing::info!(
            key_id = self.key_id,
            partner = self.partner,
            request_id = self.arrival.id,
            model = model(),
            input_tokens = usage.input,
            output_tokens = usage.output,
            cost_usd = %Usd(cost),
            outcome = outcome.as_str(),
            "a reply of a draft, without a quota"
        );
        usage
    }
}

impl Drop for DraftReply {
    fn drop(&mut self) {
        // Only a client that went away leaves something to note.
        if self.filter.take().is_some() {
            self.note(Outcome::Cancelled);
        }
    }
}
