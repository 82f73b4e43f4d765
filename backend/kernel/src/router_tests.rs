//! Tests of described routes.

use std::cell::Cell;

use axum::{
    Json,
    body::Body,
    http::{Method, Request, StatusCode, header::ALLOW},
};
use serde::Serialize;
use serde_json::{Value, json};
use tower::ServiceExt as _;
use utoipa::ToSchema;

use super::*;

#[derive(Serialize, ToSchema)]
struct Thing {
    id: u32,
}

#[utoipa::path(get, path = "/things", tag = "things", responses((status = 200, body = Thing)))]
async fn list() -> Json<Thing> {
    Json(Thing { id: 7 })
}

#[utoipa::path(post, path = "/things", tag = "things", responses((status = 201)))]
async fn create() -> StatusCode {
    StatusCode::CREATED
}

mod others {
    use super::*;

    #[utoipa::path(get, path = "/others", responses((status = 200, body = Thing)))]
    pub(super) async fn list() -> Json<Thing> {
        Json(Thing { id: 8 })
    }
}

mod clashing {
    use super::*;

    #[derive(Serialize, ToSchema)]
    pub(super) struct Thing {
        name: String,
    }

    #[utoipa::path(get, path = "/clashing", responses((status = 200, body = Thing)))]
    pub(super) async fn list() -> Json<Thing> {
        let name = "A".to_owned();
        Json(Thing { name })
    }
}

fn described(routes: &DescribedRouter<()>) -> Value {
    serde_json::to_value(routes.describe()).unwrap()
}

#[tokio::test]
async fn the_methods_of_a_path_are_merged() {
    let together = DescribedRouter::<()>::new().routes(routes!(list, create));
    let apart = DescribedRouter::<()>::new()
        .routes(routes!(list))
        .routes(routes!(create,));
    for routes in [together, apart] {
        let document = described(&routes);
        let path = document["paths"]["/things"].as_object().unwrap();
        assert_eq!(path.keys().collect::<Vec<_>>(), ["get", "post"]);
        assert_eq!(path["get"]["operationId"], "list");
        assert_eq!(path["post"]["operationId"], "create");
        assert_eq!(path["post"]["tags"], json!(["things"]));
        let router: Router = routes.into();
        for (method, status) in [(Method::GET, 200), (Method::POST, 201), (Method::PUT, 405)] {
            let request = Request::builder().method(&method).uri("/things");
            let request = request.body(Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(response.status().as_u16(), status, "{method}");
            if status == 405 {
                assert_eq!(response.headers()[ALLOW], "GET,HEAD,POST");
            }
        }
    }
}

#[test]
fn merged_routes_are_described_like_routes_of_one_router() {
    let one = DescribedRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(others::list));
    let document = described(&one);
    assert!(document["paths"]["/others"]["get"].is_object());
    assert_eq!(document["paths"].as_object().unwrap().len(), 2);
    let thing = &document["components"]["schemas"]["Thing"];
    assert!(thing["properties"]["id"].is_object(), "{thing}");

    let things = || DescribedRouter::<()>::new().routes(routes!(list, create));
    let others = || DescribedRouter::<()>::new().routes(routes!(others::list));
    assert_eq!(described(&others().merge(things())), document);
    let mut merged = things().describe();
    merge_descriptions(&mut merged, others().describe());
    assert_eq!(serde_json::to_value(merged).unwrap(), document);
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "debug builds compare schemas")]
#[should_panic(expected = "`Thing` is the name of two schemas")]
fn a_name_of_two_schemas_is_found_in_a_router() {
    let routes = DescribedRouter::<()>::new()
        .routes(routes!(list))
        .routes(routes!(clashing::list));
    let _ = routes.describe();
}

#[test]
#[cfg_attr(not(debug_assertions), ignore = "debug builds compare schemas")]
#[should_panic(expected = "`Thing` is the name of two schemas")]
fn a_name_of_two_schemas_is_found_across_routers() {
    let mut document = DescribedRouter::<()>::new()
        .routes(routes!(list))
        .describe();
    let clashing = DescribedRouter::<()>::new().routes(routes!(clashing::list));
    merge_descriptions(&mut document, clashing.describe());
}

thread_local! {
    static DESCRIBED: Cell<usize> = const { Cell::new(0) };
}

/// A path that counts how often its operation and its schemas are made.
struct Counted;

impl Path for Counted {
    fn methods() -> Vec<HttpMethod> {
        vec![HttpMethod::Get]
    }

    fn path() -> String {
        "/counted".to_owned()
    }

    fn operation() -> Operation {
        DESCRIBED.set(DESCRIBED.get() + 1);
        Operation::default()
    }
}

impl SchemaReferences for Counted {
    fn schemas(_: &mut Schemas) {
        DESCRIBED.set(DESCRIBED.get() + 1);
    }
}

impl<'t> Tags<'t> for Counted {
    fn tags() -> Vec<&'t str> {
        Vec::new()
    }
}

#[test]
fn routes_are_described_only_when_somebody_asks() {
    let routes = DescribedRouter::<()>::new().routes([DescribedRoute::new(Counted, create)]);
    let routes = DescribedRouter::new().merge(routes);
    assert_eq!(DESCRIBED.get(), 0);
    assert!(described(&routes)["paths"]["/counted"]["get"].is_object());
    assert_eq!(DESCRIBED.get(), 2);
    let _: Router = routes.into();
    assert_eq!(DESCRIBED.get(), 2);
}
