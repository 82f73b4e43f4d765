//! Token usage, read from and written in the shapes of both APIs.

use serde_json::{Value, json};

use super::{ModelApi, Object};

/// The tokens of an answer, as its model counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens of the request.
    pub input: u64,
    /// Those of them that the model had cached.
    pub cached: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// Those of them that were reasoning.
    pub reasoning: u64,
}

/// More than any answer has, so that sums and prices of what a broken server says stay within their integers.
const MAX_TOKENS: u64 = 1 << 40;

/// What the two APIs call the same.
struct Names {
    input: &'static str,
    input_details: &'static str,
    output: &'static str,
    output_details: &'static str,
}

const fn names(api: ModelApi) -> Names {
    match api {
        ModelApi::Chat => Names {
            input: "prompt_tokens",
            input_details: "prompt_tokens_details",
            output: "completion_tokens",
            output_details: "completion_tokens_details",
        },
        ModelApi::Responses => Names {
            input: "input_tokens",
            input_details: "input_tokens_details",
            output: "output_tokens",
            output_details: "output_tokens_details",
        },
    }
}

impl TokenUsage {
    /// Reads a `usage` object; `None` when it is none of this API.
    pub fn read(api: ModelApi, usage: &Object) -> Option<Self> {
        let names = names(api);
        let input = tokens(usage.get(names.input)?)?;
        let told = usage.get(names.output).and_then(tokens).unwrap_or(0);
        // Some servers leave thinking out of the output, but not out of the total.
        let total = usage.get("total_tokens").and_then(tokens).unwrap_or(0);
        let output = told.max(total.saturating_sub(input));
        let detail = |details: &str, name: &str| usage.get(details)?.get(name).and_then(tokens);
        let cached = detail(names.input_details, "cached_tokens")
            .or_else(|| usage.get("prompt_cache_hit_tokens").and_then(tokens))
            .unwrap_or(0);
        let reasoning = detail(names.output_details, "reasoning_tokens").unwrap_or(0);
        Some(Self {
            input,
            cached: cached.min(input),
            output,
            reasoning: reasoning.min(output),
        })
    }

    /// The `usage` object of this API. What a server of the same API said beyond the tokens is kept.
    pub fn write(self, api: ModelApi, said: Option<&Object>) -> Value {
        let names = names(api);
        let mut usage = said.cloned().unwrap_or_default();
        usage.insert(names.input.to_owned(), json!(self.input));
        usage.insert(names.output.to_owned(), json!(self.output));
        usage.insert(
            "total_tokens".to_owned(),
            json!(self.input.saturating_add(self.output)),
        );
        for (details, name, tokens) in [
            (names.input_details, "cached_tokens", self.cached),
            (names.output_details, "reasoning_tokens", self.reasoning),
        ] {
            let mut object = match usage.remove(details) {
                Some(Value::Object(object)) => object,
                _ => Object::new(),
            };
            object.insert(name.to_owned(), json!(tokens));
            if api == ModelApi::Responses && details == names.input_details {
                // The newest public schema asks for it, and few servers tell it.
                object.entry("cache_write_tokens").or_insert(json!(0));
            }
            usage.insert(details.to_owned(), Value::Object(object));
        }
        Value::Object(usage)
    }
}

/// A number of tokens, at most [`MAX_TOKENS`]; some servers write whole numbers with a fraction.
fn tokens(value: &Value) -> Option<u64> {
    let tokens = value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        (number.is_finite() && number >= 0.0).then_some(number as u64)
    })?;
    Some(tokens.min(MAX_TOKENS))
}
