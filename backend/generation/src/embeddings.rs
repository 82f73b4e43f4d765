//! `POST /v3/embeddings`: texts as vectors, in the words of the public API, from the embedder that knowledge bases are searched with.

use std::sync::Arc;

use axum::{
    Extension, Json,
    extract::{Request as HttpRequest, State},
    response::{IntoResponse as _, Response},
};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use colloquy_accounts::{
    ledger::{Amounts, Measure, Outcome, UsageContext},
    quotas::{Quota, QuotaCaller, QuotaKind},
};
use colloquy_base::{
    fair_queue::{Claim, Priority},
    invalid::InvalidField,
    json,
};
use colloquy_http::{ApiError, Arrival, memory::off_thread};
use colloquy_providers::{Embedder, EmbeddingRequest};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use super::{
    error::{AnswerError, PrepareError},
    routes::body,
    schema::TextError,
};
use crate::Generation;

/// The most texts of a request, as in the public API.
const MAX_TEXTS: usize = 2_048;
/// What a price is for.
const PRICED_TOKENS: u64 = 1_000_000;

/// A request for embeddings, for the API document; it is read in [`Wanted::parse`].
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub(crate) struct EmbeddingsRequest {
    /// The public name of the embedding model; `GET /health/deep` names the one of this server.
    pub model: String,
    /// A text, or up to 2,048 of them. Token ids are not taken.
    pub input: EmbeddingInput,
    /// `float`, or `base64` for the little-endian bytes of 32-bit numbers.
    #[schema(default = "float")]
    pub encoding_format: Option<EncodingFormat>,
    /// The numbers of a vector: those of the model.
    pub dimensions: Option<u32>,
    /// Taken, and not used.
    pub user: Option<String>,
}

/// What is embedded.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum EmbeddingInput {
    /// One text.
    Text(String),
    /// Several.
    Texts(Vec<String>),
}

/// How numbers are written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum EncodingFormat {
    /// As numbers.
    #[default]
    Float,
    /// As text in base64.
    Base64,
}

/// The vectors of texts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmbeddingList {
    /// `list`.
    object: &'static str,
    /// One for each text, in their order.
    data: Vec<EmbeddingObject>,
    /// The model's public name.
    model: String,
    /// What was used.
    usage: EmbeddingUsage,
}

/// The vector of a text.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmbeddingObject {
    /// `embedding`.
    object: &'static str,
    /// The place of the text in the request, from 0.
    index: usize,
    /// The vector.
    embedding: EmbeddingVector,
}

/// A vector, as it was asked for.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum EmbeddingVector {
    /// Its numbers.
    Float(Vec<f32>),
    /// Their little-endian bytes, in base64.
    Base64(String),
}

/// What was used.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmbeddingUsage {
    /// The tokens of the texts.
    prompt_tokens: u64,
    /// The same.
    total_tokens: u64,
}

/// Turns texts into vectors, whose cosine says how close in meaning the texts are. `Authorization: Bearer` carries the key of a
/// quota for text. A text that is longer than what the model reads is refused.
#[utoipa::path(
    post, path = "/v3/embeddings", tag = "text",
    request_body = EmbeddingsRequest,
    responses(
        (status = 200, body = EmbeddingList),
        (status = 400, body = TextError), (status = 401, body = TextError), (status = 403, body = TextError),
        (status = 429, body = TextError), (status = 502, body = TextError),
        (status = 503, body = TextError, description = "The model is full (`upstream_busy`) or rests after failures (`upstream_resting`), or the \
            server has no capacity now; retry after `Retry-After` seconds"),
        (status = 504, body = TextError)
    )
)]
pub(crate) async fn create_embeddings(
    State(generation): State<Generation>,
    QuotaCaller(quota): QuotaCaller,
    Extension(arrival): Extension<Arrival>,
    request: HttpRequest,
) -> Result<Response, ApiError> {
    let bytes = body(&generation, request).await?;
    let wanted = off_thread(bytes.len(), move || Wanted::parse(&bytes)).await??;
    let embedder = embedder(&generation, &quota, &wanted)?;
    let (wanted, bound) = counted(&embedder, wanted).await?;
    let answered = tokio::select! {
        biased;
        answered = embedded(&generation, &quota, &arrival, &*embedder, wanted, bound) => answered,
        () = generation.kernel.drain_over.cancelled() => Err(AnswerError::Stopping),
    };
    Ok(answered.unwrap_or_else(|error| ApiError::from(error).into_response()))
}

/// What a request wants.
#[derive(Debug, PartialEq)]
struct Wanted {
    model: String,
    texts: Vec<String>,
    format: EncodingFormat,
    dimensions: Option<u64>,
}

impl Wanted {
    fn parse(bytes: &[u8]) -> Result<Self, InvalidField> {
        let mut body = json::object(bytes)?;
        let Some(Value::String(model)) = body.remove("model") else {
            return Err(InvalidField::new(
                "model",
                "model is required, and must be a string",
            ));
        };
        let texts = texts(body.remove("input").unwrap_or_default())?;
        let format = match body.remove("encoding_format") {
            None | Some(Value::Null) => EncodingFormat::default(),
            Some(Value::String(format)) if format == "float" => EncodingFormat::Float,
            Some(Value::String(format)) if format == "base64" => EncodingFormat::Base64,
            Some(_) => {
                let message = "encoding_format must be float or base64";
                return Err(InvalidField::new("encoding_format", message));
            }
        };
        let dimensions = match body.remove("dimensions") {
            None | Some(Value::Null) => None,
            Some(given) => {
                let given = json::integer(&given).and_then(|given| u64::try_from(given).ok());
                let given = given.filter(|dimensions| *dimensions > 0);
                Some(given.ok_or_else(|| {
                    InvalidField::new("dimensions", "dimensions must be an integer of at least 1")
                })?)
            }
        };
        if let Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) =
            body.get("user")
        {
            return Err(InvalidField::new("user", "user must be a string"));
        }
        Ok(Self {
            model,
            texts,
            format,
            dimensions,
        })
    }
}

fn texts(input: Value) -> Result<Vec<String>, InvalidField> {
    let invalid = |field: String, what: &str| {
        let message = format!("{field}: {what}");
        InvalidField::new(field, message)
    };
    let whole = |what: &str| invalid("input".to_owned(), what);
    let values = match input {
        Value::String(text) => vec![Value::String(text)],
        Value::Array(values) if (1..=MAX_TEXTS).contains(&values.len()) => values,
        Value::Array(_) => return Err(whole(&format!("1 to {MAX_TEXTS} texts"))),
        _ => return Err(whole("a text or an array of texts is required")),
    };
    let text = |(place, value): (usize, Value)| match value {
        Value::String(text) if text.is_empty() => {
            Err(invalid(format!("input[{place}]"), "the text is empty"))
        }
        Value::String(text) => Ok(text),
        Value::Number(_) | Value::Array(_) => {
            Err(whole("token ids are not taken; send the texts themselves"))
        }
        _ => Err(invalid(format!("input[{place}]"), "it is not a text")),
    };
    values.into_iter().enumerate().map(text).collect()
}

/// The embedder of the request, when the quota may use it.
fn embedder(
    generation: &Generation,
    quota: &Quota,
    wanted: &Wanted,
) -> Result<Arc<dyn Embedder>, PrepareError> {
    quota.require_kind(QuotaKind::Text)?;
    let embedder = generation.providers.embedder.as_ref();
    let embedder = embedder.filter(|embedder| embedder.name() == wanted.model);
    let Some(embedder) = embedder else {
        let (field, name) = ("model", wanted.model.clone());
        if generation.providers.models.get(&name).is_none() {
            return Err(PrepareError::UnknownModel { field, name });
        }
        quota.require_model(&name)?;
        let what = "writes text and makes no embeddings; ask it with /v3/responses or /v3/chat/completions";
        return Err(PrepareError::OtherModel { field, name, what });
    };
    quota.require_model(&wanted.model)?;
    Ok(Arc::clone(embedder))
}

/// The request, and the most tokens that it may use.
async fn counted(embedder: &Arc<dyn Embedder>, wanted: Wanted) -> Result<(Wanted, u64), ApiError> {
    let bytes = wanted.texts.iter().map(String::len).sum();
    let embedder = Arc::clone(embedder);
    let count = move || token_bound(&*embedder, &wanted).map(|bound| (wanted, bound));
    Ok(off_thread(bytes, count).await??)
}

fn token_bound(embedder: &dyn Embedder, wanted: &Wanted) -> Result<u64, InvalidField> {
    let longest = embedder.max_tokens();
    let mut bound = 0;
    for (place, text) in wanted.texts.iter().enumerate() {
        if !embedder.counts_exactly() {
            // A token has at least a byte.
            bound += text.len() as u64;
            continue;
        }
        let tokens = embedder.count_tokens(text);
        if tokens > longest {
            let field = format!("input[{place}]");
            let model = &wanted.model;
            let message = format!("{field} has {tokens} tokens; {model} reads {longest}");
            return Err(InvalidField::new(field, message));
        }
        bound += tokens as u64;
    }
    Ok(bound)
}

async fn embedded(
    generation: &Generation,
    quota: &Arc<Quota>,
    arrival: &Arrival,
    embedder: &dyn Embedder,
    wanted: Wanted,
    bound: u64,
) -> Result<Response, AnswerError> {
    let Wanted {
        model,
        mut texts,
        format,
        dimensions,
    } = wanted;
    let price = generation.config.embedder.input_usd.unwrap_or_default();
    let amounts = |tokens: u64| {
        Amounts::tokens(tokens, 0).with(Measure::Cost, price.cost_of(tokens, PRICED_TOKENS))
    };
    let about = UsageContext {
        endpoint: "embeddings",
        model: model.clone(),
        character: None,
        request_id: arrival.id.clone(),
    };
    let reserved = generation.ledger.reserve(quota, amounts(bound), about);
    let mut reservation = reserved.await?;
    let standing = reservation.standing().headers(generation.clock.now_ms());
    reservation.begin();
    let claim = Claim::new(Priority::Request, quota.tenant.partner().as_str());
    let mut data = Vec::with_capacity(texts.len());
    let mut used = 0;
    while !texts.is_empty() {
        let rest = texts.split_off(embedder.max_texts().min(texts.len()));
        let part = std::mem::replace(&mut texts, rest);
        let estimate: u64 = part.iter().map(|text| text.len().div_ceil(4) as u64).sum();
        let request = EmbeddingRequest {
            texts: part,
            claim: claim.clone(),
        };
        let made = match embedder.embed(request).await {
            Ok(made) => made,
            Err(error) => {
                reservation.settle(amounts(used), Outcome::Failed);
                return Err(error.into());
            }
        };
        used += made.tokens.unwrap_or(estimate);
        for vector in made.vectors {
            if dimensions.is_some_and(|wanted| wanted != vector.len() as u64) {
                reservation.settle(amounts(used), Outcome::Failed);
                let message = format!("{model} has vectors of {} numbers", vector.len());
                return Err(InvalidField::new("dimensions", message).into());
            }
            data.push(EmbeddingObject {
                object: "embedding",
                index: data.len(),
                embedding: written(vector, format),
            });
        }
    }
    reservation.settle(amounts(used), Outcome::Completed);
    let list = EmbeddingList {
        object: "list",
        data,
        model,
        usage: EmbeddingUsage {
            prompt_tokens: used,
            total_tokens: used,
        },
    };
    Ok((standing, Json(list)).into_response())
}

fn written(vector: Vec<f32>, format: EncodingFormat) -> EmbeddingVector {
    match format {
        EncodingFormat::Float => EmbeddingVector::Float(vector),
        EncodingFormat::Base64 => {
            let bytes: Vec<u8> = vector.into_iter().flat_map(f32::to_le_bytes).collect();
            EmbeddingVector::Base64(BASE64_STANDARD.encode(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::Mutex,
        thread::{self, ThreadId},
    };

    use async_trait::async_trait;
    use colloquy_providers::{Embeddings, ProviderError};
    use serde_json::json;

    use super::*;

    /// A token a byte, and on which threads they were counted.
    #[derive(Default)]
    struct Counting(Mutex<Vec<ThreadId>>);

    #[async_trait]
    impl Embedder for Counting {
        fn name(&self) -> &'static str {
            "counting"
        }

        fn max_tokens(&self) -> usize {
            1_000_000
        }

        fn count_tokens(&self, text: &str) -> usize {
            self.0.lock().unwrap().push(thread::current().id());
            text.len()
        }

        fn counts_exactly(&self) -> bool {
            true
        }

        fn max_texts(&self) -> usize {
            1
        }

        async fn embed(&self, _: EmbeddingRequest) -> Result<Embeddings, ProviderError> {
            unreachable!("tokens are counted before anything is embedded")
        }

        async fn check(&self) -> Result<(), ProviderError> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn the_tokens_of_a_large_body_are_counted_off_the_threads_of_all() {
        let embedder = Arc::new(Counting::default());
        let counter: Arc<dyn Embedder> = embedder.clone();
        let wanted = |bytes: usize| Wanted {
            model: "counting".to_owned(),
            texts: vec!["a".repeat(bytes)],
            format: EncodingFormat::Float,
            dimensions: None,
        };
        let (_, bound) = counted(&counter, wanted(900_000)).await.unwrap();
        assert_eq!(bound, 900_000);
        let error = counted(&counter, wanted(32 << 20)).await.unwrap_err();
        assert_eq!(error.field.as_deref(), Some("input[0]"));
        let threads = embedder.0.lock().unwrap();
        assert_eq!(threads.len(), 2);
        assert!(!threads.contains(&thread::current().id()));
    }

    #[test]
    fn mistakes_name_their_field() {
        let parse = |body: &Value| Wanted::parse(body.to_string().as_bytes());
        for (body, field) in [
            (json!([]), "body"),
            (json!({"input": "a"}), "model"),
            (json!({"model": 1, "input": "a"}), "model"),
            (json!({"model": "m"}), "input"),
            (json!({"model": "m", "input": []}), "input"),
            (json!({"model": "m", "input": ""}), "input[0]"),
            (json!({"model": "m", "input": ["a", ""]}), "input[1]"),
            (json!({"model": "m", "input": ["a", null]}), "input[1]"),
            (json!({"model": "m", "input": [1, 2]}), "input"),
            (json!({"model": "m", "input": [[1, 2]]}), "input"),
            (json!({"model": "m", "input": vec!["a"; 2_049]}), "input"),
            (
                json!({"model": "m", "input": "a", "encoding_format": "int8"}),
                "encoding_format",
            ),
            (
                json!({"model": "m", "input": "a", "dimensions": 0}),
                "dimensions",
            ),
            (json!({"model": "m", "input": "a", "user": 7}), "user"),
        ] {
            let error = parse(&body).unwrap_err();
            assert_eq!(error.field, field, "{body}");
        }
        let wanted = parse(&json!({"model": "m", "input": "a", "encoding_format": null})).unwrap();
        assert_eq!(wanted.texts, ["a"]);
    }

    #[test]
    fn numbers_are_written_as_their_bytes() {
        let vector = vec![1.0, -2.5];
        let EmbeddingVector::Base64(text) = written(vector, EncodingFormat::Base64) else {
            panic!("not base64");
        };
        let bytes = BASE64_STANDARD.decode(text).unwrap();
        assert_eq!(bytes, [0, 0, 128, 63, 0, 0, 32, 192]);
    }
}
