//! The body that a model gets.

use serde_json::{Value, json};

use super::{
    FormatError, LimitField, ModelApi, Object, ReasoningStyle, Request, compact,
    fields::{str_of, take},
    item_ids, items, plain,
    reasoning::put_reasoning,
    to_chat, to_responses,
};

/// What a model's server understands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The API that it speaks.
    pub api: ModelApi,
    /// How it is told how much to think.
    pub reasoning: ReasoningStyle,
    /// What it calls the limit of a chat completion.
    pub limit_field: LimitField,
    /// Whether it can be asked for the usage of a streamed chat completion.
    pub stream_usage: bool,
    /// The limit of an answer for which the client has set none; without it the model's own holds.
    pub max_output_tokens: Option<u64>,
    /// Whether what only steers the answer is left out where the API has no word for it.
    pub drop_unsupported: bool,
    /// Whether it answers with plain text alone.
    pub plain_text: bool,
    /// Whether it is to answer event by event although the client wants one piece (see [`Assembler`](super::Assembler)).
    pub events: bool,
}

/// The body for a model that is called `upstream_model` where it is served. When the client speaks the model's API,
/// nothing changes but the model, the limits, the reasoning and what is put in front; otherwise it is translated.
///
/// # Errors
/// [`FormatError`] that names the field which has no counterpart in the model's API.
pub fn upstream_body(
    request: &Request,
    abilities: &Capabilities,
    upstream_model: &str,
) -> Result<Object, FormatError> {
    if abilities.plain_text {
        plain::check(request)?;
    }
    if request.compacts {
        let mut body = compact::upstream_body(request, abilities.api)?;
        if abilities.api == ModelApi::Chat
            && let Some(tokens) = abilities.max_output_tokens
        {
            body.insert(abilities.limit_field.name().to_owned(), json!(tokens));
        }
        body.insert("model".to_owned(), json!(upstream_model));
        return Ok(body);
    }
    let translated = translated(request, abilities)?;
    let mut body = translated.unwrap_or_else(|| match request.api {
        ModelApi::Chat => same_chat(request),
        ModelApi::Responses => same_responses(request),
    });
    let limit = match abilities.api {
        ModelApi::Chat => abilities.limit_field.name(),
        ModelApi::Responses => "max_output_tokens",
    };
    if let Some(tokens) = request.max_output_tokens.or(abilities.max_output_tokens) {
        body.insert(limit.to_owned(), json!(tokens));
    }
    put_reasoning(
        abilities.api,
        abilities.reasoning,
        request.reasoning.as_ref(),
        request.max_output_tokens,
        &mut body,
    )?;
    put_stream(request.stream || abilities.events, abilities, &mut body);
    if abilities.api == ModelApi::Responses {
        // Responses are stored here, where every model can go on from them.
        body.insert("store".to_owned(), json!(false));
    }
    body.insert("model".to_owned(), json!(upstream_model));
    Ok(body)
}

/// Whether a model can be asked this. For a model of the client's own API nothing is copied.
///
/// # Errors
/// Those of [`upstream_body`].
pub fn check_upstream(request: &Request, abilities: &Capabilities) -> Result<(), FormatError> {
    if abilities.plain_text {
        plain::check(request)?;
    }
    let translated = translated(request, abilities)?;
    put_reasoning(
        abilities.api,
        abilities.reasoning,
        request.reasoning.as_ref(),
        request.max_output_tokens,
        &mut translated.unwrap_or_default(),
    )
}

/// The request in the words of the model's API, when that is not the client's.
fn translated(request: &Request, abilities: &Capabilities) -> Result<Option<Object>, FormatError> {
    match (request.api, abilities.api) {
        (ModelApi::Chat, ModelApi::Chat) | (ModelApi::Responses, ModelApi::Responses) => Ok(None),
        (ModelApi::Responses, ModelApi::Chat) => to_chat::translate(request).map(Some),
        (ModelApi::Chat, ModelApi::Responses) => {
            to_responses::translate(request, abilities.drop_unsupported).map(Some)
        }
    }
}

fn put_stream(stream: bool, abilities: &Capabilities, body: &mut Object) {
    if !stream {
        body.remove("stream_options");
        return;
    }
    body.insert("stream".to_owned(), json!(true));
    if abilities.api == ModelApi::Chat && abilities.stream_usage {
        let mut options = match take(body, "stream_options") {
            Some(Value::Object(options)) => options,
            _ => Object::new(),
        };
        options.insert("include_usage".to_owned(), json!(true));
        body.insert("stream_options".to_owned(), Value::Object(options));
    }
}

fn same_chat(request: &Request) -> Object {
    let mut body = request.body.clone();
    if request.choices > 1 {
        body.insert("n".to_owned(), json!(request.choices));
    }
    if let (Some(system), Some(Value::Array(messages))) =
        (&request.system, body.get_mut("messages"))
    {
        messages.insert(0, json!({"role": "system", "content": system}));
    }
    body
}

pub(super) fn same_responses(request: &Request) -> Object {
    let mut body = request.body.clone();
    if let Some(instructions) = instructions(request) {
        body.insert("instructions".to_owned(), json!(instructions));
    }
    let input = match body.remove("input") {
        Some(Value::String(text)) if request.history.is_empty() => Value::String(text),
        input => {
            let mut items = request.history.clone();
            match input {
                Some(Value::Array(input)) => items.extend(input),
                input => items.extend(items::of_input(input.as_ref()).into_owned()),
            }
            items.retain(items::stands_alone);
            items.iter_mut().for_each(item_ids::restore);
            Value::Array(items)
        }
    };
    body.insert("input".to_owned(), input);
    body
}

/// What was put in front, then the client's instructions.
pub(super) fn instructions(request: &Request) -> Option<String> {
    let client = match request.api {
        ModelApi::Chat => None,
        ModelApi::Responses => str_of(&request.body, "instructions"),
    };
    match (&request.system, client) {
        (Some(system), Some(client)) => Some(format!("{system}\n\n{client}")),
        (Some(text), None) => Some(text.clone()),
        (None, client) => client.map(str::to_owned),
    }
}

/// Refuses the fields of a body that mean something and have no counterpart.
pub(super) fn refuse(body: &mut Object, fields: &[&str]) -> Result<(), FormatError> {
    for field in fields {
        let empty = match take(body, field) {
            None | Some(Value::Bool(false)) => true,
            Some(Value::Array(values)) => values.is_empty(),
            Some(Value::Object(object)) => object.is_empty(),
            Some(_) => false,
        };
        if !empty {
            return Err(FormatError::unsupported(*field));
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "upstream_tests.rs"]
mod tests;
