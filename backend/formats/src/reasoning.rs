//! How much a model shall think: what requests say about it, and how each kind of model is told.

use serde_json::{Value, json};

use super::{
    FormatError, ModelApi, Object, ReasoningStyle,
    fields::{take, take_object, take_string, take_tokens},
};

/// The smallest thinking budget that models with budgets accept, in tokens.
const MIN_BUDGET: u64 = 1_024;

/// How much a model shall think.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reasoning {
    /// `none`, `low`, `medium`, `high`, or another word that the model knows.
    Effort(String),
    /// At most so many tokens.
    MaxTokens(u64),
}

/// Takes what a request says about reasoning out of it; what `reasoning` says beyond the amount (`summary`, ..) stays
/// there.
pub(super) fn take_reasoning(
    api: ModelApi,
    body: &mut Object,
) -> Result<Option<Reasoning>, FormatError> {
    let openai = match api {
        ModelApi::Chat => take_string(body, "reasoning_effort")?,
        ModelApi::Responses => None,
    };
    let Some(mut object) = take_object(body, "reasoning")? else {
        return Ok(openai.map(Reasoning::Effort));
    };
    let names_amount = ["effort", "max_tokens"]
        .iter()
        .any(|field| object.contains_key(*field));
    let effort = take_string(&mut object, "effort").map_err(|error| error.within("reasoning"))?;
    let budget =
        take_tokens(&mut object, "max_tokens").map_err(|error| error.within("reasoning"))?;
    object.retain(|_, value| !value.is_null());
    let reasoning = match (effort, budget) {
        (Some(effort), None) => Some(Reasoning::Effort(effort)),
        (None, Some(tokens)) => Some(Reasoning::MaxTokens(tokens)),
        // A responses client may ask for a summary alone, and null or nothing at all leaves the amount to the model.
        (None, None) if api == ModelApi::Responses || names_amount || object.is_empty() => None,
        _ => {
            return Err(FormatError::new(
                "reasoning",
                "must have exactly one of effort and max_tokens",
            ));
        }
    };
    if !object.is_empty() {
        body.insert("reasoning".to_owned(), Value::Object(object));
    }
    if openai.is_some() && reasoning.is_some() {
        return Err(FormatError::new(
            "reasoning",
            "and reasoning_effort exclude each other",
        ));
    }
    Ok(reasoning.or(openai.map(Reasoning::Effort)))
}

impl Reasoning {
    /// The effort, a budget as the nearest one.
    fn effort(&self) -> &str {
        match self {
            Self::Effort(effort) => effort,
            Self::MaxTokens(..=2_048) => "low",
            Self::MaxTokens(..=8_192) => "medium",
            Self::MaxTokens(_) => "high",
        }
    }

    /// The budget in tokens, `None` for no thinking. A budget that stands for an effort leaves at least half of the output
    /// for the answer, since models with budgets take both from one limit.
    fn budget(&self, max_output_tokens: Option<u64>) -> Result<Option<u64>, FormatError> {
        let usual = match self {
            Self::MaxTokens(tokens) => return Ok(Some(*tokens)),
            Self::Effort(effort) => match effort.as_str() {
                "none" => return Ok(None),
                "minimal" => MIN_BUDGET,
                "low" => 2_048,
                "medium" => 8_192,
                "high" => 16_384,
                "xhigh" => 32_768,
                _ => {
                    return Err(FormatError::new(
                        "reasoning.effort",
                        "must be none, minimal, low, medium, high or xhigh for this model",
                    ));
                }
            },
        };
        let half = max_output_tokens.map_or(usual, |limit| limit / 2);
        Ok(Some(usual.min(half).max(MIN_BUDGET)))
    }
}

/// Tells a model how much to think. `body` is on its way to a model behind `api`; what the client said in `reasoning`
/// beyond the amount is still in it when the client speaks the same API.
pub(super) fn put_reasoning(
    api: ModelApi,
    style: ReasoningStyle,
    reasoning: Option<&Reasoning>,
    max_output_tokens: Option<u64>,
    body: &mut Object,
) -> Result<(), FormatError> {
    let more = match take(body, "reasoning") {
        Some(Value::Object(more)) => more,
        _ => Object::new(),
    };
    match style {
        ReasoningStyle::Effort if api == ModelApi::Chat => {
            if let Some(reasoning) = reasoning {
                body.insert("reasoning_effort".to_owned(), json!(reasoning.effort()));
            }
        }
        ReasoningStyle::Effort | ReasoningStyle::Object => {
            let mut object = more;
            match reasoning {
                Some(Reasoning::MaxTokens(tokens)) if style == ReasoningStyle::Object => {
                    object.insert("max_tokens".to_owned(), json!(tokens));
                }
                Some(reasoning) => {
                    object.insert("effort".to_owned(), json!(reasoning.effort()));
                }
                None => {}
            }
            if !object.is_empty() {
                body.insert("reasoning".to_owned(), Value::Object(object));
            }
        }
        ReasoningStyle::Thinking => {
            if let Some(reasoning) = reasoning {
                let thinking = match reasoning.budget(max_output_tokens)? {
                    Some(tokens) => json!({"type": "enabled", "budget_tokens": tokens}),
                    None => json!({"type": "disabled"}),
                };
                body.insert("thinking".to_owned(), thinking);
            }
        }
        ReasoningStyle::EnableThinking => {
            if let Some(reasoning) = reasoning {
                let mut kwargs = match take(body, "chat_template_kwargs") {
                    Some(Value::Object(kwargs)) => kwargs,
                    _ => Object::new(),
                };
                let enabled = !matches!(reasoning, Reasoning::Effort(effort) if effort == "none");
                kwargs.insert("enable_thinking".to_owned(), json!(enabled));
                if let Reasoning::MaxTokens(tokens) = reasoning {
                    kwargs.insert("thinking_budget".to_owned(), json!(tokens));
                }
                body.insert("chat_template_kwargs".to_owned(), Value::Object(kwargs));
            }
        }
        ReasoningStyle::None => {}
    }
    Ok(())
}
