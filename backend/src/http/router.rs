//! Every route of the server, and the layers around them.

use axum::{
    Json, Router,
    extract::DefaultBodyLimit,
    http::{HeaderName, Method, header},
    middleware,
    routing::get,
};
use std::time::Duration;
use tower_http::{
    catch_panic::CatchPanicLayer,
    cors::{AllowOrigin, CorsLayer},
    services::ServeDir,
};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{ApiError, error::is_call_path, health, observe, openapi, unread};
use crate::{
    App,
    accounts::{quotas::routes as quotas, routes as accounts},
    calls::routes as calls,
    characters::routes as characters,
    generation::routes as generation,
    media,
    messaging::routes as messaging,
    speech::routes as speech,
    webhooks::routes as webhooks,
};

/// The routes, without their layers; the OpenAPI document is made of the same list.
pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(openapi::base())
        // accounts
        .routes(routes!(accounts::me))
        .routes(routes!(accounts::list_partners))
        .routes(routes!(
            accounts::read_partner,
            accounts::create_partner,
            accounts::update_partner,
            accounts::delete_partner
        ))
        .routes(routes!(accounts::list_keys, accounts::create_key))
        .routes(routes!(accounts::revoke_key))
        .routes(routes!(quotas::list, quotas::create))
        .routes(routes!(quotas::read, quotas::update, quotas::revoke))
        .routes(routes!(quotas::rotate))
        .routes(routes!(quotas::usage))
        // characters
        .routes(routes!(characters::list, characters::create))
        .routes(routes!(
            characters::read,
            characters::update,
            characters::delete
        ))
        .routes(routes!(characters::list_versions))
        .routes(routes!(characters::read_version))
        // calls
        .routes(routes!(calls::create_call))
        .routes(routes!(media::check::check_path))
        .routes(routes!(calls::read_call))
        .routes(routes!(calls::read_transcript))
        // text generation
        .routes(routes!(generation::chat_completions))
        .routes(routes!(generation::create_response))
        .routes(routes!(
            generation::read_response,
            generation::delete_response
        ))
        .routes(routes!(generation::list_input_items))
        .routes(routes!(generation::list_models))
        .routes(routes!(quotas::own_usage))
        // speech
        .routes(routes!(speech::create_speech))
        .routes(routes!(speech::list_voices))
        // legacy messaging
        .merge(legacy())
        // webhooks
        .routes(routes!(webhooks::list_deliveries))
        .routes(routes!(webhooks::read_delivery))
        .routes(routes!(webhooks::resend_delivery))
        // operations
        .routes(routes!(health::health))
        .routes(routes!(health::deep))
        .routes(routes!(health::metrics))
}

/// The interface whose answers say that it is deprecated.
#[expect(deprecated, reason = "it is its clients who are to leave it")]
fn legacy() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(messaging::create_completion))
        .routes(routes!(messaging::read_completion))
        .layer(middleware::map_response(messaging::mark_deprecated))
}

/// The whole server.
pub fn router(app: App) -> Router {
    let (routes, document) = routes().split_for_parts();
    // The session is a WebSocket, which OpenAPI cannot describe; its contract is the crate `colloquy-protocol`.
    let routes = routes.route("/v2/calls/{id}/session", get(media::session_socket));
    let mut router = routes.route("/openapi.json", get(move || async move { Json(document) }));
    router = match &app.config.http.static_dir {
        Some(folder) => router.fallback_service(ServeDir::new(folder)),
        None => router.fallback(async || ApiError::not_found("Route")),
    };
    with_layers(router, app)
}

/// What is around every route: ids, log, metrics, CORS, bodies that nobody read, the shape of errors, panics, the size of
/// bodies.
pub fn with_layers(router: Router<App>, app: App) -> Router {
    router
        .layer(DefaultBodyLimit::max(app.config.limits.body_bytes))
        .layer(CatchPanicLayer::custom(observe::panicked))
        .layer(middleware::from_fn(observe::shape))
        .layer(middleware::from_fn(unread::read_rest))
        .layer(cors())
        .layer(middleware::from_fn_with_state(
            app.clone(),
            observe::observe,
        ))
        .with_state(app)
}

/// Pages of any origin may reach the call routes, without cookies; a publishable key then says which origins it is for.
fn cors() -> CorsLayer {
    let request_id = HeaderName::from_static("x-request-id");
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(|_, parts| {
            is_call_path(parts.uri.path())
        }))
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            HeaderName::from_static("x-api-key"),
            request_id.clone(),
        ])
        .expose_headers([header::RETRY_AFTER, request_id])
        .max_age(Duration::from_secs(3_600))
}
