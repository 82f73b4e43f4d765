//! One `response.create` on a WebSocket, from its text to the messages that answer it.

use std::sync::Arc;

use axum::{
    extract::{FromRequestParts as _, ws::Message},
    http::{
        HeaderMap,
        header::{CONTENT_LENGTH, CONTENT_TYPE},
        request::Parts,
    },
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use colloquy_accounts::quotas::QuotaCaller;
use colloquy_base::{invalid::InvalidField, json};
use colloquy_http::{
    ApiError, Arrival,
    memory::{self, Share, off_thread},
    observe::Observed,
    public_error,
};
use colloquy_providers::ModelApi;
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use serde_json::{Value, json};

use super::super::{
    error::PrepareError,
    generate,
    prepare::Requester,
    request::ClientRequest,
    stored::Recent,
    streamed::{self, StreamItem},
};
use crate::Generation;

/// What requests on a socket are counted as.
const METHOD: &str = "WEBSOCKET";
const ROUTE: &str = "/v3/responses";

/// A response that is being made. Dropping it cancels the model and settles.
pub(super) struct Running {
    messages: BoxStream<'static, Vec<Message>>,
    observed: Arc<Observed>,
}

impl Running {
    /// Begins with a message of the client. `parts` are those of the request that opened the socket, and `room` holds the
    /// bytes of the message.
    pub(super) fn start(
        generation: &Generation,
        mut parts: Parts,
        room: Share,
        text: Bytes,
        recent: Arc<Recent>,
    ) -> Self {
        let address = parts.extensions.get::<Arrival>().map(|it| it.address);
        let address = address.unwrap_or(std::net::Ipv4Addr::UNSPECIFIED.into());
        let id = generation.clock.new_id().to_string();
        let route = ROUTE.to_owned();
        let observed = Observed::new(&generation.edge, &parts.headers, METHOD, route, id, address);
        let observed = Arc::new(observed);
        parts.extensions.insert(observed.arrival.clone());
        parts.extensions.insert(room.clone());
        let (generation, seen) = (generation.clone(), Arc::clone(&observed));
        let messages = stream::once(async move {
            match begin(&generation, &mut parts, &seen.arrival, &room, text, &recent).await {
                Ok(events) => {
                    seen.answered(&Response::default());
                    // What it holds is held until its last event.
                    let messages = move |items| {
                        let _held = &room;
                        self::messages(items)
                    };
                    events.map(messages).boxed()
                }
                Err(refused) => {
                    let Refused { error, limits } = *refused;
                    let (message, response) = error_message(error, limits, Some(&seen.arrival.id));
                    seen.answered(&response);
                    stream::iter([vec![message]]).boxed()
                }
            }
        });
        Self {
            messages: messages.flatten().boxed(),
            observed,
        }
    }

    /// The next messages for the client; `None` at the end. Nothing is lost when this future is dropped.
    pub(super) async fn next(&mut self) -> Option<Vec<Message>> {
        self.observed.around(self.messages.next()).await
    }
}

/// Why there is no response, and how much of the quota is left where that is known.
struct Refused {
    error: ApiError,
    limits: HeaderMap,
}

impl From<ApiError> for Box<Refused> {
    fn from(error: ApiError) -> Self {
        Self::new(Refused {
            error,
            limits: HeaderMap::new(),
        })
    }
}

/// Asks who it is once more: the key may be worth nothing by now.
async fn begin(
    generation: &Generation,
    parts: &mut Parts,
    arrival: &Arrival,
    room: &Share,
    text: Bytes,
    recent: &Arc<Recent>,
) -> Result<BoxStream<'static, Vec<StreamItem>>, Box<Refused>> {
    let QuotaCaller(quota) = QuotaCaller::from_request_parts(parts, generation).await?;
    memory::grow_for(room, text.clone()).await?;
    let request = off_thread(text.len(), move || parse(&text)).await?;
    let request = request.map_err(ApiError::from)?;
    let asker = Requester {
        quota: &quota,
        endpoint: "responses",
        arrival,
        memory: Some(room),
        recent: Some(recent),
    };
    let begun = generate::begin(generation, &asker, request)
        .await
        .map_err(ApiError::from)?;
    let limits = begun.headers(generation);
    let events = streamed::events(generation, begun).await;
    let events = events.map_err(|error| {
        let error = error.into();
        Box::new(Refused { error, limits })
    })?;
    Ok(events.boxed())
}

/// A `response.create`: the body of `POST /v3/responses` with a type. It is streamed in any case.
fn parse(text: &[u8]) -> Result<ClientRequest, PrepareError> {
    let mut object = json::object(text)?;
    if object
        .remove("type")
        .is_none_or(|it| it != "response.create")
    {
        return Err(InvalidField::new("type", "type must be response.create").into());
    }
    if object.remove("stream_id").is_some_and(|it| !it.is_null()) {
        let message = "stream_id is not supported: open a connection for each lane";
        return Err(InvalidField::new("stream_id", message).into());
    }
    let generates = |it: Value| it.is_null() || it == true;
    if object.remove("generate").is_some_and(|it| !generates(it)) {
        return Err(InvalidField::new("generate", "generate must be true").into());
    }
    let mut request = ClientRequest::read(ModelApi::Responses, Value::Object(object))?;
    request.text.stream = true;
    Ok(request)
}

/// What a client is told, in messages.
fn messages(items: Vec<StreamItem>) -> Vec<Message> {
    let message = |item| match item {
        StreamItem::Event(frame) => frame.into_message().map(Message::text),
        StreamItem::Silence => Some(Message::Ping(Bytes::new())),
    };
    items.into_iter().filter_map(message).collect()
}

/// An error as a message, with the headers that it would have over HTTP, and as that answer.
pub(super) fn error_message(
    error: ApiError,
    limits: HeaderMap,
    request: Option<&str>,
) -> (Message, Response) {
    let mut told = public_error(&error, request);
    let mut response = error.into_response();
    response.headers_mut().extend(limits);
    let headers = response.headers().iter();
    let mut headers: serde_json::Map<String, Value> = headers
        .filter(|(name, _)| **name != CONTENT_TYPE && **name != CONTENT_LENGTH)
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.into())))
        .collect();
    if let Some(id) = request {
        headers.insert("x-request-id".to_owned(), id.into());
    }
    told["headers"] = headers.into();
    let status = response.status().as_u16();
    let message = json!({"type": "error", "status": status, "error": told});
    (Message::text(message.to_string()), response)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_create_is_a_body_with_a_type() {
        let body = json!({"type": "response.create", "model": "m", "input": "Hi", "stream": false});
        assert!(parse(body.to_string().as_bytes()).unwrap().text.stream);
        for (change, field) in [
            (json!({"type": null}), "type"),
            (json!({"type": "response.steer"}), "type"),
            (json!({"type": 1}), "type"),
            (json!({"stream_id": "a"}), "stream_id"),
            (json!({"generate": false}), "generate"),
            (json!({"stream": 1}), "stream"),
            (json!({"background": true}), "background"),
            (json!({"model": 1}), "model"),
        ] {
            let mut body = body.clone();
            for (name, value) in change.as_object().unwrap() {
                body[name] = value.clone();
            }
            let error = ApiError::from(parse(body.to_string().as_bytes()).unwrap_err());
            assert_eq!(error.field.as_deref(), Some(field), "{change}");
            assert_eq!(error.status.as_u16(), 400);
        }
        for junk in ["", "[]", "7", "\"response.create\"", "{"] {
            let error = ApiError::from(parse(junk.as_bytes()).unwrap_err());
            assert_eq!(error.field.as_deref(), Some("body"), "{junk}");
        }
    }

    #[test]
    fn an_error_says_what_it_would_say_over_http() {
        let error = ApiError::rate_limited(Duration::from_secs(3));
        let (message, response) = error_message(error, HeaderMap::new(), Some("r-1"));
        assert_eq!(response.status(), 429);
        let told: Value = serde_json::from_str(message.to_text().unwrap()).unwrap();
        let expected = json!({
            "type": "error", "status": 429,
            "error": {
                "type": "rate_limit_error", "code": "rate_limited", "param": null,
                "message": "Rate limit exceeded, try again in 3 s", "request_id": "r-1",
                "headers": {"retry-after": "3", "x-request-id": "r-1"},
            },
        });
        assert_eq!(told, expected);
    }
}
