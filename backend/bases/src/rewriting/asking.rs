//! One question to a model that rewrites.
//!
//! The models are those of text generation. A backup is asked only when no connection to the first one can be made, since then nothing was
//! asked yet. Whatever else goes wrong may have been paid for, so it is not asked again by itself.

use std::{sync::Arc, time::Duration};

use colloquy_extract::format::ContentType;
use colloquy_providers::{
    ChatMessage, ChatRequest, ChatRole, Model, ModelAnswer, ModelApi, ModelRequest, ProviderError,
    ProviderErrorKind, TokenUsage, without_thought,
};
use tokio::time::timeout;

use super::template;
use crate::{
    Bases,
    admission::{self, PaidRequest, PaidStep, UsageBound, UsageOutcome, Used, is_unsent},
    document::ModelTier,
    store::OwnedDocument,
};

/// The longest message of a model that a document repeats, in characters.
const MAX_REFUSAL_CHARS: usize = 500;

/// A part of a document that is to be rewritten.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) title: &'a str,
    pub(super) path: &'a [String],
    pub(super) text: &'a str,
    /// Its number, from 1, and how many there are.
    pub(super) place: (usize, usize),
    pub(super) content_type: ContentType,
    pub(super) person: Option<&'a str>,
}

/// A part that was rewritten.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) text: String,
    pub(super) model: String,
    /// What was used.
    pub(super) used: Used,
}

/// Why a part was not rewritten.
#[derive(Debug)]
pub(super) enum NotWritten {
    /// Nothing was asked: no model could be reached.
    Unreached(String),
    /// Nothing was asked: the document waits for room in a budget, and says so.
    Waits,
    /// A model was asked. What it used is known, or not.
    Spent { reason: String, used: Used },
}

/// The models for a tier, the first one first; none where none is configured.
pub(crate) fn models(bases: &Bases, tier: ModelTier) -> Vec<Arc<Model>> {
    let settings = &bases.config.rewriting;
    let standard = settings.model.as_ref().or(bases.config.chat.model.as_ref());
    let first = match tier {
        ModelTier::Standard => standard,
        ModelTier::Economy => settings.economy_model.as_ref().or(standard),
    };
    let first = first.filter(|name| *name != colloquy_config::EMBEDDED_MODEL);
    let Some(first) = first else {
        return Vec::new();
    };
    let named = [Some(first), settings.backup_model.as_ref()];
    let models = named.into_iter().flatten();
    let found = models.filter_map(|name| bases.providers.models.get(name));
    let mut models: Vec<Arc<Model>> = found.cloned().collect();
    models.dedup_by(|one, other| Arc::ptr_eq(one, other));
    models
}

/// Asks for a part. The error is this server's own, when nothing is known of the request or it was not sent.
pub(super) async fn ask(
    bases: &Bases,
    owned: &OwnedDocument,
    models: &[Arc<Model>],
    part: Part<'_>,
) -> anyhow::Result<Result<Answer, NotWritten>> {
    let mut unreached = String::new();
    for model in models {
        let request = request(bases, model, part);
        // A token has at least a byte.
        let (input, output) = (
            request.bytes,
            bases.config.rewriting.max_output_tokens.into(),
        );
        let name = model.name();
        let paid = PaidRequest {
            step: PaidStep::Rewrite,
            model: name,
            is_local: false,
            bound: UsageBound {
                counts_tokens: true,
                tokens: Some(input + output),
                seconds: None,
                cost: model.is_priced().then(|| model.cost_at_most(input, output)),
            },
        };
        let Ok(admission) = admission::admit(bases, owned.payer(), paid).await? else {
            return Ok(Err(NotWritten::Waits));
        };
        let answer = ask_model(bases, model, &request.request).await;
        let priced = |tokens: Option<TokenUsage>| Used {
            tokens,
            seconds: None,
            cost: tokens
                .filter(|_| model.is_priced())
                .map(|tokens| model.cost(tokens)),
        };
        let (outcome, used) = match &answer {
            Ok((_, used)) => (UsageOutcome::Success, priced(*used)),
            Err(AskFailure::Provider(error)) if is_unsent(error) => {
                admission.withdraw().await?;
                unreached = format!("{name} cannot be reached: {}", error.reason());
                if error.kind == ProviderErrorKind::Connect {
                    continue;
                }
                let (reason, used) = (format!("{name}: {}", told(error)), Used::nothing());
                return Ok(Err(NotWritten::Spent { reason, used }));
            }
            Err(AskFailure::Provider(error)) => match error.used() {
                Some(used) => (UsageOutcome::Fault, priced(Some(used))),
                None => UsageOutcome::of_failure(error),
            },
            Err(AskFailure::Refused(_, used)) => (UsageOutcome::Fault, priced(*used)),
        };
        admission.settle(outcome, used).await?;
        return Ok(match answer {
            Ok((text, _)) => Ok(Answer {
                text,
                model: name.to_owned(),
                used,
            }),
            Err(AskFailure::Provider(error)) => Err(NotWritten::Spent {
                reason: format!("{name}: {}", told(&error)),
                used,
            }),
            Err(AskFailure::Refused(reason, _)) => Err(NotWritten::Spent {
                reason: format!("{name}: {reason}"),
                used,
            }),
        });
    }
    Ok(Err(NotWritten::Unreached(unreached)))
}

/// Returns the reason of a failure, with the model's message where it refused the request, which is the document's.
fn told(error: &ProviderError) -> String {
    let reason = error.reason();
    match error.refusal(MAX_REFUSAL_CHARS) {
        Some(message) => format!("{reason}: {message}"),
        None => reason.into_owned(),
    }
}

enum AskFailure {
    Provider(ProviderError),
    Refused(&'static str, Option<TokenUsage>),
}

/// A question as a model is asked it.
struct ModelQuestion {
    request: ModelRequest,
    /// The length of its text.
    bytes: u64,
}

fn request(bases: &Bases, model: &Model, part: Part<'_>) -> ModelQuestion {
    let settings = &bases.config.rewriting;
    let content = template::question(part.title, part.path, part.place, part.text);
    let system = template::system(part.content_type, part.person);
    let bytes = (content.len() + system.len()) as u64;
    let request = ChatRequest {
        system,
        messages: vec![ChatMessage {
            role: ChatRole::User,
            content,
        }],
        ..ChatRequest::default()
    };
    let api = model.chat.api();
    let mut request = request.for_model(api);
    let limit = match api {
        ModelApi::Chat => model.settings.limit_field.name(),
        ModelApi::Responses => "max_output_tokens",
    };
    let body = &mut request.body;
    body.insert("model".to_owned(), model.name().into());
    body.insert("stream".to_owned(), false.into());
    body.insert(limit.to_owned(), settings.max_output_tokens.into());
    ModelQuestion { request, bytes }
}

async fn ask_model(
    bases: &Bases,
    model: &Model,
    request: &ModelRequest,
) -> Result<(String, Option<TokenUsage>), AskFailure> {
    let patience = Duration::from_millis(bases.config.rewriting.section_ms.into());
    let answer = timeout(patience, model.chat.ask(request)).await;
    let answer = answer.unwrap_or_else(|_| {
        let message = "no answer in time";
        Err(ProviderError::new(
            model.name(),
            ProviderErrorKind::Timeout,
            message,
        ))
    });
    let (contact, now) = (model.health.contact(), bases.clock.instant());
    match &answer {
        Ok(_) => contact.answered(now),
        Err(error) => contact.failed(now, error),
    }
    let event = match answer.map_err(AskFailure::Provider)? {
        ModelAnswer::Whole(event) => event,
        // It was asked for one piece.
        ModelAnswer::Events(_) => {
            return Err(AskFailure::Refused("a stream that nobody asked for", None));
        }
    };
    let used = event.usage();
    if event.failure().is_some() {
        return Err(AskFailure::Refused("it reports a failure", used));
    }
    if let Some(reason) = event.finish_reasons().find_map(refused) {
        return Err(AskFailure::Refused(reason, used));
    }
    let text = event.text().map(without_thought);
    match text.map(|text| text.trim().to_owned()) {
        Some(text) if !text.is_empty() => Ok((text, used)),
        _ => Err(AskFailure::Refused("an answer without text", used)),
    }
}

/// Why an answer that ended like this is not taken.
fn refused(reason: &str) -> Option<&'static str> {
    match reason {
        "content_filter" => Some("its content filter stopped the answer"),
        "length" | "max_tokens" | "max_output_tokens" => Some("the answer was truncated"),
        "stop" | "completed" => None,
        _ => Some("the answer ended in an unknown way"),
    }
}
