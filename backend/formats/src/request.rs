//! A client's request, parsed and validated. What the service acts on are fields of [`Request`]; everything else stays as
//! the client sent it and goes to the model.

use std::{collections::BTreeSet, fmt};

use colloquy_base::json::integer;
use serde_json::Value;

use super::{
    FormatError, ModelApi, Object, Reasoning,
    fields::{take, take_bool, take_object, take_string, take_tokens},
    items::{self, Places},
    messages,
    reasoning::take_reasoning,
    types,
};

/// The most choices of a chat completion.
const MAX_CHOICES: u32 = 128;

/// A request for text.
#[derive(Clone)]
pub struct Request {
    /// The API that the client speaks.
    pub api: ModelApi,
    /// The model that the client asks for.
    pub model: String,
    /// The model to try when that one cannot serve the request.
    pub fallback_model: Option<String>,
    /// Whether the answer is streamed.
    pub stream: bool,
    /// Whether a streamed chat completion ends with a chunk of usage.
    pub include_usage: bool,
    /// The most tokens of the answer.
    pub max_output_tokens: Option<u64>,
    /// How many choices a chat completion has.
    pub choices: u32,
    /// How much the model shall think; `None` leaves it to the model.
    pub reasoning: Option<Reasoning>,
    /// What the request says to the service alone: `metadata.svc`, as the client sent it.
    pub svc: Option<Object>,
    /// Whether the response may be read again; responses only.
    pub store: bool,
    /// Whether it asks for a compaction of the conversation in place of an answer.
    pub compacts: bool,
    /// The response that this one goes on from; responses only.
    pub previous_response_id: Option<String>,
    /// Everything else; `metadata` without `svc`, and dropped when nothing is left of it.
    pub(super) body: Object,
    /// System text in front of the client's own.
    pub(super) system: Option<String>,
    /// Items in front of the client's own; responses only.
    pub(super) history: Vec<Value>,
    /// The indices in the input of items that stood in a stored response.
    pub(super) resolved: BTreeSet<usize>,
    /// Where the items of the input stood in what the client sent.
    pub(super) places: Places,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("api", &self.api)
            .field("model", &self.model)
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

impl Request {
    /// Reads a body.
    ///
    /// # Errors
    /// [`FormatError`] that names the field. Fields that are not known pass.
    pub fn read(api: ModelApi, body: Value) -> Result<Self, FormatError> {
        let Value::Object(mut body) = body else {
            return Err(FormatError::new("body", "must be a JSON object"));
        };
        let svc = take_svc(&mut body)?;
        let model = take_string(&mut body, "model")?
            .ok_or_else(|| FormatError::new("model", "is required"))?;
        let fallback_model = take_string(&mut body, "fallback_model")?;
        let stream = take_bool(&mut body, "stream")?.unwrap_or(false);
        let reasoning = take_reasoning(api, &mut body)?;
        let mut request = Self {
            api,
            model,
            fallback_model,
            stream,
            include_usage: false,
            max_output_tokens: None,
            choices: 1,
            reasoning,
            svc,
            store: false,
            compacts: false,
            previous_response_id: None,
            body,
            system: None,
            history: Vec::new(),
            resolved: BTreeSet::new(),
            places: Places::default(),
        };
        match api {
            ModelApi::Chat => request.take_chat()?,
            ModelApi::Responses => request.take_responses()?,
        }
        Ok(request)
    }

    /// The fields of chat completions alone.
    fn take_chat(&mut self) -> Result<(), FormatError> {
        let body = &mut self.body;
        messages::check(body.get("messages"))?;
        types::check(body, types::CHAT)?;
        types::write_integers(body, types::CHAT);
        let preferred = take_tokens(body, "max_completion_tokens")?;
        let compatible = take_tokens(body, "max_tokens")?;
        self.max_output_tokens = preferred.or(compatible);
        if let Some(choices) = take(body, "n") {
            let choices = integer(&choices)
                .and_then(|choices| u32::try_from(choices).ok())
                .filter(|choices| (1..=MAX_CHOICES).contains(choices));
            self.choices =
                choices.ok_or_else(|| FormatError::new("n", "must be an integer of 1 to 128"))?;
        }
        if let Some(mut options) = take_object(body, "stream_options")? {
            self.include_usage = take_bool(&mut options, "include_usage")
                .map_err(|error| error.within("stream_options"))?
                .unwrap_or(false);
            if !options.is_empty() {
                body.insert("stream_options".to_owned(), Value::Object(options));
            }
        }
        Ok(())
    }

    /// The fields of responses alone.
    fn take_responses(&mut self) -> Result<(), FormatError> {
        let body = &mut self.body;
        self.places = items::check(body.get_mut("input"))?;
        types::check(body, types::RESPONSES)?;
        types::write_integers(body, types::RESPONSES);
        self.max_output_tokens = take_tokens(body, "max_output_tokens")?;
        self.store = take_bool(body, "store")?.unwrap_or(true);
        self.previous_response_id = take_string(body, "previous_response_id")?;
        // The upstream keeps conversations for the service's key, which all partners share.
        if take(body, "conversation").is_some() {
            return Err(FormatError::new(
                "conversation",
                "is not supported: go on with previous_response_id",
            ));
        }
        if take_bool(body, "background")?.unwrap_or(false) {
            return Err(FormatError::new(
                "background",
                "must be false: answers are given at once",
            ));
        }
        Ok(())
    }
}

/// Takes `metadata.svc` out.
fn take_svc(body: &mut Object) -> Result<Option<Object>, FormatError> {
    let Some(mut metadata) = take_object(body, "metadata")? else {
        return Ok(None);
    };
    let svc = take_object(&mut metadata, "svc").map_err(|error| error.within("metadata"))?;
    if !metadata.is_empty() {
        body.insert("metadata".to_owned(), Value::Object(metadata));
    }
    Ok(svc)
}

#[cfg(test)]
#[path = "request_tests.rs"]
pub(super) mod tests;
