//! The routes of all capabilities, by interface.

use std::{convert::Infallible, future::ready, mem, sync::LazyLock};

use axum::{
    Router,
    body::Bytes,
    extract::Request,
    http::header::CONTENT_TYPE,
    middleware,
    response::{IntoResponse as _, Response},
    routing::get,
};
use futures_util::{FutureExt as _, future::BoxFuture};
use tower::{ServiceExt as _, service_fn};
use tower_http::services::ServeDir;

use super::{capabilities, openapi};
use crate::{
    app::App,
    http::{ApiError, Interface, observe},
    kernel::router::merge_descriptions,
};

/// The routes of each interface, without what is around them.
fn interfaces() -> Vec<(Interface, Router<App>)> {
    let mut all: Vec<_> = Interface::ALL
        .map(|interface| (interface, Router::new()))
        .into();
    let routes = capabilities::ALL
        .iter()
        .flat_map(|capability| capability.routes());
    for (interface, routes) in routes {
        if let Some((_, theirs)) = all.iter_mut().find(|(one, _)| *one == interface) {
            *theirs = mem::take(theirs).merge(Router::from(routes));
        }
    }
    all
}

/// The description of all routes.
pub(super) fn document() -> utoipa::openapi::OpenApi {
    let mut document = openapi::base();
    for capability in capabilities::ALL {
        for (interface, routes) in capability.routes() {
            let mut part = routes.describe();
            openapi::add_errors(&mut part, interface.errors());
            if interface.takes_query_key() {
                openapi::add_query_key(&mut part);
            }
            merge_descriptions(&mut document, part);
        }
    }
    document
}

/// The description as JSON, built at the first request for it. The bytes alone are kept: the description itself is many times larger.
static DOCUMENT: LazyLock<serde_json::Result<Bytes>> =
    LazyLock::new(|| serde_json::to_vec(&document()).map(Bytes::from));

async fn served_document() -> Result<Response, ApiError> {
    match &*DOCUMENT {
        Ok(json) => Ok(([(CONTENT_TYPE, "application/json")], json.clone()).into_response()),
        Err(error) => Err(ApiError::internal(error)),
    }
}

/// The whole server.
pub fn router(app: App) -> Router {
    let mut all = interfaces();
    for (interface, routes) in &mut all {
        if *interface == Interface::OPERATIONS {
            *routes = mem::take(routes).route("/openapi.json", get(served_document));
        }
    }
    with_layers(all, app)
}

/// Answers a path that has no route: as the interface that it belongs to, and where it belongs to none with a file of
/// `http.static_dir`.
fn unmatched(
    app: &App,
) -> impl Fn(Request) -> BoxFuture<'static, Result<Response, Infallible>> + Clone + Send + Sync + 'static
{
    let all = Interface::ALL.map(|interface| {
        let routes = match &app.config.http.static_dir {
            Some(folder) if interface == Interface::OPERATIONS => {
                Router::new().fallback_service(ServeDir::new(folder))
            }
            _ => Router::new().fallback(async || ApiError::not_found("Route")),
        };
        (interface, interface.wrap_unmatched::<()>(&app.edge, routes))
    });
    move |request| {
        let path = request.uri().path();
        let found = all.iter().find(|(interface, _)| interface.has(path));
        match found.map(|(_, routes)| routes.clone()) {
            Some(routes) => routes.oneshot(request).boxed(),
            None => ready(Ok(ApiError::not_found("Route").into_response())).boxed(),
        }
    }
}

/// The routes of these interfaces with what is around each of them, and around all of them: ids, spans, log and metrics.
pub fn with_layers(
    interfaces: impl IntoIterator<Item = (Interface, Router<App>)>,
    app: App,
) -> Router {
    let routes = interfaces
        .into_iter()
        .map(|(interface, routes)| interface.wrap(&app.edge, routes))
        .fold(Router::new(), Router::merge);
    let routes = capabilities::ALL
        .iter()
        .fold(routes, |routes, capability| capability.around(routes, &app));
    routes
        .fallback_service(service_fn(unmatched(&app)))
        .layer(middleware::from_fn_with_state(
            app.edge.clone(),
            observe::observe,
        ))
        .with_state(app)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::audit::{RECORDED, Subject, UNRECORDED};

    /// Returns true if a schema of the document has a property.
    fn has_property(document: &Value, schema: &Value, name: &str) -> bool {
        if let Some(reference) = schema["$ref"].as_str() {
            let schema = document.pointer(reference.trim_start_matches('#'));
            return schema.is_some_and(|schema| has_property(document, schema, name));
        }
        let all = schema["allOf"].as_array().into_iter().flatten();
        !schema["properties"][name].is_null()
            || all.into_iter().any(|one| has_property(document, one, name))
    }

    #[test]
    fn every_operation_is_in_the_audit_log_or_has_a_reason_not_to_be() {
        let document = serde_json::to_value(document()).unwrap();
        let mut mutating = 0;
        for (path, item) in document["paths"].as_object().unwrap() {
            for (method, operation) in item.as_object().unwrap() {
                if ["get", "head", "options", "parameters"].contains(&method.as_str()) {
                    continue;
                }
                mutating += 1;
                let method = method.to_uppercase();
                let mut recorded = RECORDED
                    .iter()
                    .filter(|one| one.method == method && one.path == path);
                let left_out = UNRECORDED
                    .iter()
                    .filter(|(left_out, at, _)| *left_out == method && at == path);
                let Some(recorded) = recorded.next() else {
                    assert_eq!(left_out.count(), 1, "{method} {path} is recorded nowhere");
                    continue;
                };
                assert_eq!(left_out.count(), 0, "{method} {path}");
                assert_eq!(operation["operationId"], recorded.action, "{method} {path}");
                let names_subject = match recorded.subject {
                    Subject::Parameter(name) => {
                        let mut parameters = operation["parameters"].as_array().unwrap().iter();
                        parameters.any(|parameter| parameter["name"] == name)
                    }
                    Subject::Response(name) => {
                        let responses = operation["responses"].as_object().unwrap().iter();
                        let mut schemas =
                            responses.filter(|(status, _)| status.starts_with('2')).map(
                                |(_, response)| &response["content"]["application/json"]["schema"],
                            );
                        schemas.all(|schema| has_property(&document, schema, name))
                    }
                    Subject::Unnamed => true,
                };
                assert!(names_subject, "{method} {path}: {:?}", recorded.subject);
            }
        }
        assert_eq!(mutating, RECORDED.len() + UNRECORDED.len());
    }

    #[test]
    fn every_route_is_served_by_the_interface_that_its_path_belongs_to() {
        let mut routes = 0;
        for capability in capabilities::ALL {
            for (interface, theirs) in capability.routes() {
                for path in theirs.describe().paths.paths.keys() {
                    let of_path = Interface::ALL.iter().find(|one| one.has(path));
                    assert_eq!(of_path, Some(&interface), "{path}");
                    routes += 1;
                }
            }
        }
        assert_eq!(document().paths.paths.len(), routes);
    }

    #[test]
    fn every_operation_has_an_id_of_its_own() {
        let mut ids = std::collections::HashSet::new();
        let document = document();
        for (path, item) in &document.paths.paths {
            let operations = [&item.get, &item.put, &item.post, &item.delete, &item.patch];
            for operation in operations.into_iter().flatten() {
                let id = operation.operation_id.clone().unwrap();
                assert!(ids.insert(id.clone()), "{id} at {path}");
            }
        }
    }
}
