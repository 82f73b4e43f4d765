//! Requests to routes, in this process.

use std::{fmt::Display, net::SocketAddr};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::ConnectInfo,
    http::{
        HeaderName, HeaderValue, Method, Request,
        header::{CONTENT_LENGTH, CONTENT_TYPE},
    },
};
use futures_util::{FutureExt as _, future::BoxFuture};
use serde_json::Value;
use tower::ServiceExt as _;

use crate::{Answer, Answers};

/// A request to routes, which [`send`] sends.
#[derive(Debug)]
#[must_use]
pub struct TestRequest {
    routes: Router,
    request: Request<Bytes>,
}

impl TestRequest {
    /// A request without a key and a body.
    pub(crate) fn new(routes: &Router, method: Method, path: &str) -> Self {
        let request = Request::builder().method(method).uri(path);
        Self {
            routes: routes.clone(),
            request: request.body(Bytes::new()).expect("a request"),
        }
    }

    /// Adds a header.
    pub fn header(mut self, name: &str, value: impl AsRef<str>) -> Self {
        let name = HeaderName::from_bytes(name.as_bytes()).expect("the name of a header");
        let value = HeaderValue::from_str(value.as_ref()).expect("the value of a header");
        self.request.headers_mut().append(name, value);
        self
    }

    /// Adds a key in `Authorization: Bearer`.
    pub fn bearer_auth(self, key: impl Display) -> Self {
        self.header("authorization", format!("Bearer {key}"))
    }

    /// Gives it a JSON body.
    pub fn json(mut self, body: &Value) -> Self {
        let body = body.to_string();
        let headers = self.request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        *self.request.body_mut() = body.into();
        self
    }
}

/// Sends a request as if it came over a connection of this machine, and reads the answer.
pub async fn send(request: TestRequest) -> Answer {
    let TestRequest { routes, request } = request;
    let mut request = request.map(Body::from);
    let client = SocketAddr::from(([127, 0, 0, 1], 1));
    request.extensions_mut().insert(ConnectInfo(client));
    let Ok(response) = routes.oneshot(request).await;
    let (parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.expect("a body");
    Answer {
        status: parts.status,
        headers: parts.headers,
        text: String::from_utf8(body.into()).expect("UTF-8"),
    }
}

impl Answers for Router {
    fn answer(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: Value,
    ) -> BoxFuture<'static, Answer> {
        let mut request = TestRequest::new(self, method, path).header("x-api-key", key);
        if !body.is_null() {
            request = request.json(&body);
        }
        send(request).boxed()
    }
}
