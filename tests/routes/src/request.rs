//! Requests to routes, in this process.

use std::{fmt::Display, net::SocketAddr};

use axum::{
    Router,
    body::{Body, Bytes, to_bytes},
    extract::ConnectInfo,
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode,
        header::{CONTENT_LENGTH, CONTENT_TYPE},
    },
    response::Response,
};
use futures_util::{FutureExt as _, TryStreamExt as _, future::BoxFuture};
use reqwest::multipart::Form;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;
use tower::ServiceExt as _;

use crate::{Answer, Answers, TestBody};

/// A request to routes, which [`send`] sends.
#[derive(Debug)]
#[must_use]
pub struct TestRequest {
    routes: Router,
    request: Request<Bytes>,
    form: Option<Form>,
}

impl TestRequest {
    /// A request without a key and a body.
    pub(crate) fn new(routes: &Router, method: Method, path: &str) -> Self {
        let request = Request::builder().method(method).uri(path);
        Self {
            routes: routes.clone(),
            request: request.body(Bytes::new()).expect("a request"),
            form: None,
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
    pub fn json(self, body: &Value) -> Self {
        self.typed("application/json", body.to_string())
    }

    /// Gives it a form as its body, which may have files.
    pub fn multipart(mut self, form: Form) -> Self {
        self.form = Some(form);
        self
    }

    /// Gives it a body of the type that its headers say, if any.
    pub fn body(mut self, body: impl Into<Bytes>) -> Self {
        let body = body.into();
        let headers = self.request.headers_mut();
        headers.insert(CONTENT_LENGTH, HeaderValue::from(body.len()));
        *self.request.body_mut() = body;
        self
    }

    /// Gives it a body of this type.
    fn typed(mut self, kind: &str, body: impl Into<Bytes>) -> Self {
        let kind = HeaderValue::from_str(kind).expect("a type");
        self.request.headers_mut().insert(CONTENT_TYPE, kind);
        self.body(body)
    }

    /// The same with the bytes of its form.
    async fn written(mut self) -> Self {
        let Some(form) = self.form.take() else {
            return self;
        };
        let kind = format!("multipart/form-data; boundary={}", form.boundary());
        let body = form
            .into_stream()
            .try_fold(Vec::<u8>::new(), |mut body, piece| {
                body.extend_from_slice(&piece);
                async { Ok(body) }
            });
        self.typed(&kind, body.await.expect("the pieces of a form"))
    }

    /// Sends it as if it came over a connection of this machine.
    pub async fn send(self) -> TestResponse {
        let Self {
            routes, request, ..
        } = self.written().await;
        let mut request = request.map(Body::from);
        let client = SocketAddr::from(([127, 0, 0, 1], 1));
        request.extensions_mut().insert(ConnectInfo(client));
        let Ok(response) = routes.oneshot(request).await;
        TestResponse(response)
    }
}

/// A response whose body is still to come: it is made while it is read.
#[derive(Debug)]
pub struct TestResponse(Response);

impl TestResponse {
    /// The status.
    pub fn status(&self) -> StatusCode {
        self.0.status()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// The body, to be read as it comes.
    pub fn into_body(self) -> Body {
        self.0.into_body()
    }

    /// The body.
    ///
    /// # Errors
    /// When it breaks off.
    pub async fn bytes(self) -> Result<Bytes, axum::Error> {
        to_bytes(self.0.into_body(), usize::MAX).await
    }
}

/// Sends a request as if it came over a connection of this machine, and reads the answer.
pub async fn send(request: TestRequest) -> Answer {
    let response = request.send().await;
    let (status, headers) = (response.status(), response.headers().clone());
    let body = response.bytes().await.expect("a body");
    Answer {
        status,
        headers,
        text: String::from_utf8(body.into()).expect("UTF-8"),
    }
}

impl Answers for Router {
    fn answer(
        &self,
        key: &str,
        method: Method,
        path: &str,
        body: TestBody,
    ) -> BoxFuture<'static, Answer> {
        let request = TestRequest::new(self, method, path).header("x-api-key", key);
        let request = match body {
            TestBody::Empty => request,
            TestBody::Json(body) => request.json(&body),
            TestBody::Form(form) => request.multipart(form),
            TestBody::Fields(fields) => request.typed("application/x-www-form-urlencoded", fields),
        };
        // In a task of its own, as a server answers each connection, which ends when nobody waits for the answer.
        let answer = AbortOnDropHandle::new(tokio::spawn(send(request)));
        async { answer.await.expect("an answer") }.boxed()
    }
}
