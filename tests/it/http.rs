//! What is around every handler: ids, shapes of errors, limits, CORS, health, metrics, the OpenAPI document.

use std::{fs::File, io::Write as _, time::Duration};

use axum::{
    Router,
    body::Body,
    http::{Request, Response},
};
use colloquy::{config::ModelConfig, http::Interface};
use harness::{
    TestApp, TestDatabase,
    app::{ADMIN_KEY, client, send},
    disk::SmallDisk,
    elsewhere::eventually,
};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tower::ServiceExt as _;

async fn app() -> TestApp {
    TestApp::builder(&TestDatabase::sqlite()).start().await
}

#[tokio::test]
async fn every_answer_has_a_request_id() {
    let app = app().await;
    let given = app
        .request(Method::GET, "/health")
        .header("x-request-id", "trace:1.2_3-4");
    assert_eq!(send(given).await.header("x-request-id"), "trace:1.2_3-4");
    for path in ["/health", "/api/auth/me", "/nowhere", "/v2/calls/nowhere"] {
        let answer = send(app.request(Method::GET, path)).await;
        assert_eq!(answer.header("x-request-id").len(), 36, "{path}");
    }
    for odd in ["", "two words", "<script>", &"x".repeat(129)] {
        let answer = send(
            app.request(Method::GET, "/health")
                .header("x-request-id", odd),
        )
        .await;
        assert_eq!(answer.header("x-request-id").len(), 36, "{odd}");
    }
}

/// A route that forgets to ask who it is would be open to everybody.
#[tokio::test]
async fn every_route_asks_for_a_key() {
    let app = TestApp::builder(&TestDatabase::sqlite())
        .config(|config| config.limits.attempts_per_minute = 10_000)
        .start()
        .await;
    let document = serde_json::to_value(colloquy::server::openapi::document()).unwrap();
    let mut asked = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            // What is open says so.
            if operation["security"] == json!([{}]) {
                continue;
            }
            let named = path.replace(['{', '}'], "");
            // What is wrong otherwise is told to those only who may know.
            let wrong_query = format!("{named}?x=%00");
            let segments = path.split('/');
            let segments = segments.map(|it| if it.starts_with('{') { "%00" } else { it });
            let wrong_path = segments.collect::<Vec<_>>().join("/");
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            for (path, key) in [
                (&named, None),
                (&named, Some("")),
                (&named, Some("cqk_wrong_key_of_nobody")),
                (&wrong_query, None),
                (&wrong_path, None),
            ] {
                let mut request = app.request(method.clone(), path);
                if method != Method::GET && method != Method::DELETE {
                    request = request.json(&json!({}));
                }
                if let Some(key) = key {
                    request = request.header("x-api-key", key);
                }
                let answer = send(request).await;
                assert_eq!(
                    answer.status, 401,
                    "{method} {path} {key:?}: {}",
                    answer.text
                );
                asked += 1;
            }
        }
    }
    assert!(asked > 100, "{asked}");
}

/// Samples would pile up on a server whose `/metrics` nobody reads.
#[tokio::test]
async fn samples_of_metrics_are_put_together_though_nobody_reads_them() {
    let app = app().await;
    eventually("samples are put together", async || {
        // To read them puts them together, too, and does not count.
        let metrics = send(app.request(Method::GET, "/metrics")).await.text;
        let counted = metrics
            .lines()
            .find_map(|line| line.strip_prefix("colloquy_metrics_upkeeps_total "));
        counted.is_some_and(|count| count.parse::<u64>().unwrap() >= 1)
    })
    .await;
}

/// A filter whose name is misspelled would list everything.
#[tokio::test]
async fn every_list_refuses_a_parameter_that_it_does_not_have() {
    let app = app().await;
    app.partner("acme").await;
    let document = serde_json::to_value(colloquy::server::openapi::document()).unwrap();
    let mut lists = Vec::new();
    for (template, operations) in document["paths"].as_object().unwrap() {
        let parameters = operations["get"]["parameters"].as_array();
        let mut names = parameters.into_iter().flatten().map(|it| &it["name"]);
        if !names.any(|name| name == "cursor") {
            continue;
        }
        let path = template.replace("{partner}", "acme");
        let path = path.replace("{name}", "ada");
        for (query, field) in [
            ("colour=red", "colour"),
            ("limit=1&Cursor=x", "Cursor"),
            ("limit=none", "limit"),
        ] {
            let refused = app.get(ADMIN_KEY, &format!("{path}?{query}")).await;
            // Transcripts and dialog analyses name wrong fields in a way of their own.
            let status = match path.as_str() {
                "/v2/transcript" | "/v2/dialog_analyses" => 422,
                _ => 400,
            };
            let refused = refused.expect(status);
            let error = refused.get("error").unwrap_or(&refused);
            let is_named = error["field"] == field || refused["errors"].get(field).is_some();
            assert!(is_named, "{path}?{query}: {refused}");
        }
        let known = app.get(ADMIN_KEY, &format!("{path}?limit=1")).await;
        assert!(
            matches!(known.status.as_u16(), 200 | 404),
            "{path}: {}",
            known.text
        );
        lists.push(template.as_str());
    }
    let expected = [
        "/api/audit",
        "/api/audit/{partner}",
        "/api/characters/{partner}",
        "/api/characters/{partner}/{name}/versions",
        "/api/document-chunks/{partner}/{kb}/{doc_id}",
        "/api/document-history/{partner}/{kb}/{doc_id}",
        "/api/document-list/{partner}/{kb}",
        "/api/document-transcript/{partner}/{kb}/{doc_id}",
        "/api/folder-list/{partner}/{kb}",
        "/api/kb-list/{partner}",
        "/api/keys/{partner}",
        "/api/knowledgebases/{partner}/{kb}/limits/unknown",
        "/api/partners",
        "/api/quotas/{partner}",
        "/api/rag-evaluations/{partner}/{kb}",
        "/api/rag-evaluations/{partner}/{kb}/{evaluation_id}/results",
        "/api/rag-questions/{partner}/{kb}",
        "/api/vectorstore-sync/{partner}/{kb}",
        "/api/webhooks/{partner}/deliveries",
        "/v2/calls",
        "/v2/dialog_analyses",
        "/v2/transcript",
    ];
    assert_eq!(lists, expected);
}

#[tokio::test]
async fn errors_have_the_shape_of_their_interface() {
    let app = app().await;
    let missing = send(app.request(Method::GET, "/api/nowhere"))
        .await
        .expect(404);
    assert_eq!(
        missing,
        json!({"detail": "Route not found", "code": "not_found"})
    );
    let missing = send(app.request(Method::GET, "/v2/calls/a/b/c"))
        .await
        .expect(404);
    assert_eq!(
        missing,
        json!({"error": {"code": "NOT_FOUND", "message": "Route not found"}})
    );

    let wrong = send(app.request(Method::PATCH, "/api/partners")).await;
    assert_eq!(wrong.expect(405)["code"], "method_not_allowed");
    assert!(
        wrong.header("allow").contains("GET"),
        "{}",
        wrong.header("allow")
    );
}

#[tokio::test]
async fn bodies_are_checked_at_the_edge() {
    let app = app().await;
    app.partner("acme").await;
    let post = |body: String, content_type: &str| {
        app.request(Method::POST, "/api/characters/acme")
            .header("x-api-key", ADMIN_KEY)
            .header("content-type", content_type)
            .body(body)
    };
    let form = send(post(
        "name=x".to_owned(),
        "application/x-www-form-urlencoded",
    ))
    .await;
    assert_eq!(form.expect(415)["code"], "unsupported_media_type");
    let broken = send(post("{\"name\": ".to_owned(), "application/json")).await;
    assert_eq!(broken.expect(400)["code"], "invalid_parameters");
    let typed = send(post(
        r#"{"name": 1, "personality": ""}"#.to_owned(),
        "application/json; charset=utf-8",
    ))
    .await;
    assert_eq!(typed.expect(400)["field"], "name");
    let large = format!("{{\"name\": \"{}\"}}", "x".repeat(1024 * 1024));
    let large = send(post(large, "application/json")).await;
    assert_eq!(large.expect(413)["code"], "body_too_large");
}

#[tokio::test]
async fn a_body_that_is_refused_unread_leaves_its_connection_in_order() {
    let app = app().await;
    let mut stream = TcpStream::connect(app.address).await.unwrap();
    let mut ask = async |length: usize, body: &str| {
        let head =
            format!("POST /v3/responses HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        // The official clients write the body by itself, too.
        tokio::time::sleep(Duration::from_millis(20)).await;
        stream.write_all(body.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        while !answer.ends_with(b"}}") {
            assert_ne!(stream.read_buf(&mut answer).await.unwrap(), 0);
        }
        String::from_utf8(answer).unwrap()
    };
    for _ in 0..3 {
        let answer = ask(2, "{}").await;
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        assert!(!answer.contains("connection: close"), "{answer}");
    }
    // What does not come is not waited for.
    let answer = ask(1_000_000, "{").await;
    assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
}

#[tokio::test]
async fn pages_of_any_origin_may_ask_the_call_routes_and_read_what_has_no_route() {
    let app = app().await;
    let preflight = |path: &str| {
        app.request(Method::OPTIONS, path)
            .header("origin", "https://www.example.com")
            .header("access-control-request-method", "POST")
            .header("access-control-request-headers", "content-type,x-api-key")
    };
    // A page whose backend URL has a path too many asks where there is no route.
    for path in [
        "/v2/calls",
        "/v2/calls/123/transcript",
        "/v2/callsx",
        "/api/v2/calls",
        "/voice/v2/calls",
    ] {
        let answer = send(preflight(path)).await;
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.header("access-control-allow-origin"),
            "https://www.example.com",
            "{path}"
        );
        assert!(
            answer
                .header("access-control-allow-headers")
                .contains("x-api-key")
        );
        assert!(
            answer
                .header("access-control-allow-methods")
                .contains("POST")
        );
        assert_eq!(answer.header("access-control-allow-credentials"), "");
    }
    for path in ["/api/partners", "/v2/audio/voices", "/health"] {
        let answer = send(preflight(path)).await;
        assert_eq!(answer.header("access-control-allow-origin"), "", "{path}");
    }
    // A page must be able to read the error of a call route.
    for path in ["/v2/calls/x/y/z", "/voice/v2/calls"] {
        let page = app.request(Method::POST, path);
        let answer = send(page.header("origin", "https://a.example")).await;
        assert_eq!(answer.status, 404, "{path}");
        let allowed = answer.header("access-control-allow-origin");
        assert_eq!(allowed, "https://a.example", "{path}");
        let exposed = answer.header("access-control-expose-headers");
        assert!(exposed.contains("retry-after"), "{path}: {exposed}");
    }
}

#[tokio::test]
async fn health_answers_at_once() {
    let app = TestApp::builder(&TestDatabase::sqlite()).start().await;
    app.advance(Duration::from_secs(90));
    app.doubles.chat.set_up(false);
    let health = send(app.request(Method::GET, "/health")).await.expect(200);
    assert_eq!(
        health,
        json!({"status": "ok", "version": "0.1.0", "uptime_seconds": 90})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn deep_health_is_degraded_while_the_reserve_keeps_files_out() {
    let Some(disk) = SmallDisk::mount("24m") else {
        return;
    };
    let database = TestDatabase::sqlite_in(disk.path("data"));
    let app = TestApp::builder(&database).start().await;
    let deep = app.get("", "/health/deep").await.expect(200);
    assert_eq!(deep["status"], "ok", "{deep}");
    assert_eq!(deep["checks"]["disk"]["state"], "up", "{deep}");
    let path = disk.path("ballast");
    let mut ballast = File::create(&path).unwrap();
    loop {
        let space = app.app.blobs.disk().space().await.unwrap();
        if space.free < space.reserve {
            break;
        }
        ballast.write_all(&[7; 65_536]).unwrap();
    }
    app.advance(Duration::from_secs(2));
    let deep = app.get("", "/health/deep").await.expect(200);
    assert_eq!(deep["status"], "degraded", "{deep}");
    assert_eq!(deep["checks"]["disk"]["state"], "degraded", "{deep}");
    let reason = deep["checks"]["disk"]["warning"].as_str().unwrap();
    assert!(reason.contains("store.disk_reserve_bytes"), "{reason}");
    std::fs::remove_file(&path).unwrap();
    drop(ballast);
    app.advance(Duration::from_secs(2));
    let deep = app.get("", "/health/deep").await.expect(200);
    assert_eq!(deep["status"], "ok", "{deep}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deep_health_asks_everything() {
    let builder = TestApp::builder(&TestDatabase::sqlite());
    let app = builder.start().await;
    let deep = send(app.request(Method::GET, "/health/deep"))
        .await
        .expect(200);
    assert_eq!(deep["status"], "ok");
    let missing = deep["missing_protection"].as_array().unwrap();
    let known = ["seccomp", "landlock", "landlock_tcp"];
    assert!(
        missing
            .iter()
            .all(|it| known.contains(&it.as_str().unwrap())),
        "{missing:?}"
    );
    for name in ["database", "chat", "transcriber", "synthesizer"] {
        assert_eq!(deep["checks"][name]["state"], "up", "{name}");
        assert!(deep["checks"][name]["time_ms"].is_u64(), "{name}");
    }
    app.doubles.synthesizer.set_up(false);
    // The answer is repeated for a moment, so that nobody can make us ask the providers all the time.
    send(app.request(Method::GET, "/health/deep"))
        .await
        .expect(200);
    app.advance(Duration::from_secs(2));
    let deep = send(app.request(Method::GET, "/health/deep"))
        .await
        .expect(503);
    assert_eq!(deep["status"], "down");
    assert_eq!(deep["checks"]["synthesizer"]["state"], "down");
    assert_eq!(deep["checks"]["chat"]["state"], "up");
    app.doubles.synthesizer.set_up(true);
    app.advance(Duration::from_secs(2));
    send(app.request(Method::GET, "/health/deep"))
        .await
        .expect(200);
}

#[tokio::test]
async fn a_database_that_is_away_is_a_reason_to_be_down() {
    let app = app().await;
    app.app.store.db().close().await;
    let deep = send(app.request(Method::GET, "/health/deep"))
        .await
        .expect(503);
    assert_eq!(deep["status"], "down");
    assert_eq!(deep["checks"]["database"]["state"], "down");
    assert_eq!(deep["checks"]["chat"]["state"], "up");
    // The process itself is well.
    send(app.request(Method::GET, "/health")).await.expect(200);
}

#[tokio::test]
async fn a_model_that_is_away_is_told_and_no_reason_to_be_down() {
    let away = ModelConfig {
        base_url: Some("http://127.0.0.1:9/v1".parse().unwrap()),
        ..ModelConfig::default()
    };
    let app = TestApp::builder(&TestDatabase::sqlite())
        .config(|config| {
            config.models.insert("away".to_owned(), away);
        })
        .start()
        .await;
    let deep = send(app.request(Method::GET, "/health/deep"))
        .await
        .expect(200);
    assert_eq!(deep["status"], "ok");
    assert_eq!(deep["models"]["away"]["state"], "down");
    assert_eq!(deep["models"]["builtin/extractive"]["state"], "up");
}

#[tokio::test]
async fn requests_are_counted_by_route() {
    let app = app().await;
    app.get(ADMIN_KEY, "/api/characters/someone")
        .await
        .expect(200);
    app.get(ADMIN_KEY, "/api/characters/someone-else")
        .await
        .expect(200);
    app.get(ADMIN_KEY, "/invented/path").await.expect(404);
    let metrics = send(app.request(Method::GET, "/metrics")).await;
    assert!(
        metrics
            .header("content-type")
            .starts_with("text/plain; version=0.0.4")
    );
    let count = r#"colloquy_http_requests_total{method="GET",route="/api/characters/{partner}",status="200"}"#;
    assert!(metrics.text.contains(count), "{}", metrics.text);
    let latency = r#"colloquy_http_request_duration_seconds_bucket{method="GET",route="/api/characters/{partner}",le="0.1"}"#;
    assert!(metrics.text.contains(latency), "{}", metrics.text);
    assert!(metrics.text.contains(r#"route="unmatched",status="404""#));
    assert!(
        !metrics.text.contains("someone"),
        "a label holds what clients send"
    );
    assert!(
        !metrics.text.contains("invented"),
        "a label holds what clients send"
    );
}

#[tokio::test]
async fn the_committed_openapi_document_is_the_served_one() {
    let app = app().await;
    let served = send(app.request(Method::GET, "/openapi.json"))
        .await
        .expect(200);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../backend/openapi.json");
    let committed: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(
        served, committed,
        "run: cargo run -p colloquy-backend -- openapi > backend/openapi.json"
    );
    let printed = colloquy::server::openapi::document_json().unwrap();
    assert_eq!(serde_json::from_str::<Value>(&printed).unwrap(), committed);
}

#[tokio::test]
async fn a_panic_becomes_a_plain_500() {
    let app = app().await;
    let router = Router::new().route("/v2/calls/panic", axum::routing::get(panics));
    let wrapped = colloquy::server::with_layers([(Interface::CALLS, router)], app.app.clone());
    let response: Response<Body> = wrapped
        .oneshot(Request::get("/v2/calls/panic").body(Body::empty()).unwrap())
        .await
        .unwrap();
    assert_eq!(response.status(), 500);
    assert_eq!(response.headers()["x-request-id"].len(), 36);
    let body = axum::body::to_bytes(response.into_body(), 10_000)
        .await
        .unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(
        body,
        json!({"error": {"code": "INTERNAL", "message": "Internal error"}})
    );
}

async fn panics() -> String {
    panic!("with a secret in it")
}

/// A publishable key passes on a call route, from its page only.
#[tokio::test]
async fn publishable_keys_pass_on_call_routes_from_their_pages() {
    async fn whoami(colloquy::accounts::Caller(principal): colloquy::accounts::Caller) -> String {
        principal.key_id
    }
    let app = app().await;
    app.partner("acme").await;
    let body = json!({"kind": "publishable", "allowed_origins": ["https://www.example.com"]});
    let made = app.key("acme", body).await;
    let router = Router::new().route("/v2/calls", axum::routing::post(whoami));
    let router = colloquy::server::with_layers([(Interface::CALLS, router)], app.app.clone());
    for (origin, status) in [
        (Some("https://www.example.com"), 200),
        (Some("http://www.example.com"), 403),
        (Some("https://www.example.com.evil.example"), 403),
        (Some("null"), 403),
        (None, 403),
    ] {
        let mut request =
            Request::post("/v2/calls").header("x-api-key", made["api_key"].as_str().unwrap());
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        let response = router
            .clone()
            .oneshot(request.body(Body::empty()).unwrap())
            .await
            .unwrap();
        assert_eq!(response.status().as_u16(), status, "{origin:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn stopping_waits_for_tasks_and_refuses_new_connections() {
    let app = app().await;
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (shared, flag) = (app.app.clone(), done.clone());
    app.app.kernel.tasks.spawn(async move {
        shared.kernel.shutdown.cancelled().await;
        // All else stops sooner.
        tokio::time::sleep(Duration::from_millis(300)).await;
        flag.store(true, std::sync::atomic::Ordering::SeqCst);
    });
    let url = app.url("/health");
    let known = client();
    known.get(&url).send().await.unwrap();
    app.stop().await;
    assert!(
        done.load(std::sync::atomic::Ordering::SeqCst),
        "a task was cut off"
    );
    assert!(client().get(&url).send().await.is_err());
}

#[tokio::test]
async fn a_folder_is_served_beside_the_interfaces() {
    let folder = std::env::temp_dir().join(format!("colloquy-static-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("index.html"), "<p>demo</p>").unwrap();
    let at = folder.clone();
    let app = TestApp::builder(&TestDatabase::sqlite())
        .config(move |config| config.http.static_dir = Some(at))
        .start()
        .await;
    let index = send(app.request(Method::GET, "/")).await;
    assert_eq!(
        (index.status.as_u16(), index.text.as_str()),
        (200, "<p>demo</p>")
    );
    assert_eq!(
        send(app.request(Method::GET, "/missing")).await.expect(404)["code"],
        "not_found"
    );
    send(app.request(Method::GET, "/health")).await.expect(200);
    let escape = send(app.request(Method::GET, "/%2e%2e/%2e%2e/etc/passwd")).await;
    assert_eq!(escape.status, 404);
    std::fs::remove_dir_all(folder).unwrap();
}
