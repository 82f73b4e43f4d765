//! The interfaces of the service: families of routes whose document promises one body for errors and says who may reach them.

use std::time::Duration;

use axum::{
    Router,
    extract::{DefaultBodyLimit, Request, State},
    http::{HeaderName, Method, StatusCode, header},
    middleware::{self, Next},
    response::{IntoResponse as _, Response},
};
use tower_http::{
    catch_panic::CatchPanicLayer,
    cors::{AllowOrigin, CorsLayer},
};

use super::{
    ApiError, Arrival, Edge, ErrorContext, ErrorShape, WARNING, bodies, draining,
    extract::too_large,
    memory,
    observe::{self, REQUEST_ID},
    storing,
};

/// A family of routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface {
    /// What its paths begin with.
    prefix: &'static str,
    errors: ErrorShape,
    /// Whether pages reach it: those of any origin, without cookies; a publishable key then says which origins it is for.
    for_pages: bool,
    /// Whether a key may stand in the query, as `api_key`.
    query_key: bool,
}

impl Interface {
    /// `/api/voices`: the voice library.
    pub const VOICES: Self = Self {
        query_key: true,
        ..Self::new("/api/voices", ErrorShape::Detail)
    };
    /// `/api`: partners, keys, quotas, characters, webhooks.
    pub const MANAGEMENT: Self = Self::new("/api", ErrorShape::Detail);
    /// `/v2/calls`: calls and their sessions.
    pub const CALLS: Self = Self {
        for_pages: true,
        ..Self::new("/v2/calls", ErrorShape::Call)
    };
    /// `/v2/audio`: speech.
    pub const SPEECH: Self = Self::new("/v2/audio", ErrorShape::Speech);
    /// `/v2/completions`: legacy messaging.
    pub const MESSAGING: Self = Self::new("/v2/completions", ErrorShape::Detail);
    /// `/v2/transcript`: recordings to text.
    pub const TRANSCRIPTS: Self = Self::new("/v2/transcript", ErrorShape::Transcript);
    /// `/v2/dialog_analyses`: what a conversation tells of a person.
    pub const ANALYSES: Self = Self::new("/v2/dialog_analyses", ErrorShape::Analysis);
    /// `/v3`: text generation.
    pub const TEXT: Self = Self::new("/v3", ErrorShape::Text);
    /// `/health`, `/metrics`, `/openapi.json`, and whatever has no other interface.
    pub const OPERATIONS: Self = Self::new("", ErrorShape::Detail);

    /// All of them; of two that a path belongs to, the first is its interface.
    pub const ALL: [Self; 9] = [
        Self::VOICES,
        Self::MANAGEMENT,
        Self::CALLS,
        Self::SPEECH,
        Self::MESSAGING,
        Self::TRANSCRIPTS,
        Self::ANALYSES,
        Self::TEXT,
        Self::OPERATIONS,
    ];

    const fn new(prefix: &'static str, errors: ErrorShape) -> Self {
        Self {
            prefix,
            errors,
            for_pages: false,
            query_key: false,
        }
    }

    /// The body of its errors.
    #[must_use]
    pub fn errors(self) -> ErrorShape {
        self.errors
    }

    /// Whether pages reach it.
    #[must_use]
    pub fn is_for_pages(self) -> bool {
        self.for_pages
    }

    /// Returns true if a key may stand in the query, as `api_key`.
    #[must_use]
    pub fn takes_query_key(self) -> bool {
        self.query_key
    }

    /// Whether a path is this interface's, also when there is no route for it.
    #[must_use]
    pub fn has(self, path: &str) -> bool {
        let rest = path.strip_prefix(self.prefix);
        rest.is_some_and(|rest| self.prefix.is_empty() || rest.is_empty() || rest.starts_with('/'))
    }

    /// Its routes with what is around each of them: CORS, room for bodies, the shape of errors, the time of bodies, the free space of
    /// the disk, the end of the server, panics, the size of bodies.
    pub fn wrap<S>(self, edge: &Edge, routes: Router<S>) -> Router<S>
    where
        S: Clone + Send + Sync + 'static,
    {
        let routes = self.without_cors(edge, routes);
        if self.for_pages {
            routes.layer(cors())
        } else {
            routes
        }
    }

    /// What answers its paths that have no route, with the same around it. Any page may read the answer: one whose backend URL has a
    /// mistake would be told of CORS instead.
    pub fn wrap_unmatched<S>(self, edge: &Edge, routes: Router<S>) -> Router<S>
    where
        S: Clone + Send + Sync + 'static,
    {
        self.without_cors(edge, routes).layer(cors())
    }

    fn without_cors<S>(self, edge: &Edge, routes: Router<S>) -> Router<S>
    where
        S: Clone + Send + Sync + 'static,
    {
        routes
            .layer(DefaultBodyLimit::max(edge.body_bytes))
            .layer(CatchPanicLayer::custom(observe::panicked))
            .layer(middleware::from_fn_with_state(
                edge.clone(),
                draining::refuse_new,
            ))
            .layer(middleware::from_fn_with_state(
                edge.clone(),
                storing::refuse_without_space,
            ))
            .layer(middleware::from_fn_with_state(edge.clone(), bodies::bound))
            .layer(middleware::from_fn_with_state(self, shape))
            .layer(middleware::from_fn_with_state(edge.clone(), memory::hold))
    }
}

fn cors() -> CorsLayer {
    let request_id = HeaderName::from_static(REQUEST_ID);
    CorsLayer::new()
        .allow_origin(AllowOrigin::mirror_request())
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            HeaderName::from_static("x-api-key"),
            request_id.clone(),
        ])
        .expose_headers([header::RETRY_AFTER, header::LINK, WARNING, request_id])
        .max_age(Duration::from_secs(3_600))
}

/// Tells handlers which interface they belong to, and gives every error its body, also those that the framework made without
/// a handler.
async fn shape(State(interface): State<Interface>, mut request: Request, next: Next) -> Response {
    let arrival = request.extensions().get::<Arrival>();
    let context = ErrorContext {
        request_id: arrival.map(|it| it.id.clone()).unwrap_or_default(),
        endpoint: request.uri().path().to_owned(),
    };
    request.extensions_mut().insert(interface);
    let response = next.run(request).await;
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if is_error && response.extensions().get::<ApiError>().is_none() && !has_json(&response) {
        let (parts, _body) = response.into_parts();
        let mut response = framework_error(status).into_response();
        for (name, value) in &parts.headers {
            // `Allow` of a 405, for one.
            if !response.headers().contains_key(name) && *name != "content-length" {
                response.headers_mut().append(name, value.clone());
            }
        }
        return interface.errors.apply(response, &context);
    }
    interface.errors.apply(response, &context)
}

fn has_json(response: &Response) -> bool {
    let value = response.headers().get(header::CONTENT_TYPE);
    value.is_some_and(|value| value.as_bytes().starts_with(b"application/json"))
}

fn framework_error(status: StatusCode) -> ApiError {
    let (code, message) = match status {
        StatusCode::NOT_FOUND => ("not_found", "There is nothing at this address"),
        StatusCode::METHOD_NOT_ALLOWED => (
            "method_not_allowed",
            "The address does not take this method",
        ),
        StatusCode::PAYLOAD_TOO_LARGE => return too_large(),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (
            "unsupported_media_type",
            "The body has the wrong content type",
        ),
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => {
            ("invalid_body", "The request is malformed")
        }
        status if status.is_server_error() => ("internal", "Internal error"),
        _ => ("refused", "The request was refused"),
    };
    ApiError::new(status, code, message)
}
