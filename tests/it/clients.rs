//! The official clients of the public APIs, unmodified, each in its own language, against the real binary. What they do is
//! in `tests/clients`, where each case prints a line; `tests/run clients` installs them first.

use std::{path::Path, sync::Arc, time::Duration};

use axum::{
    Json, Router,
    extract::{Query, State},
    routing::{get, post},
};
use colloquy::Config;
use harness::{
    TestDatabase, patience,
    process::Server,
    upstream::{Api, Script, Upstream},
    vectorstores::VectorStores,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{net::TcpListener, process::Command, task::JoinSet, time::timeout};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/clients");
/// All cases of a client take far less on a machine of ordinary speed.
const PATIENCE: Duration = Duration::from_secs(60);

/// What the next request of an API is answered with.
#[derive(Deserialize)]
struct Order {
    api: Api,
    script: Script,
}

async fn script(State(upstream): State<Arc<Upstream>>, Json(order): Json<Order>) {
    upstream.script(order.api, order.script);
}

/// A case begins: nothing is left of the one before.
async fn forget(State(upstream): State<Arc<Upstream>>) {
    upstream.forget_scripts();
}

#[derive(Deserialize)]
struct Which {
    api: Api,
}

/// What the upstream was asked, oldest first, and how it ended.
async fn asked(
    State(upstream): State<Arc<Upstream>>,
    Query(which): Query<Which>,
) -> Json<Vec<Value>> {
    let asked = upstream.requests(which.api).into_iter();
    let asked =
        asked.map(|asked| json!({"body": asked.body, "end": asked.end.map(|(end, _)| end)}));
    Json(asked.collect())
}

/// Runs a client's cases; they are told where everything is in their one argument.
async fn run(program: &Path, cases: &str) {
    let upstream = Arc::new(Upstream::start().await);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let control = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new()
        .route("/script", post(script).delete(forget))
        .route("/asked", get(asked))
        .with_state(Arc::clone(&upstream));
    let mut controlled = JoinSet::new();
    controlled.spawn(async move { axum::serve(listener, router).await });

    let server = Server::start(&TestDatabase::sqlite(), |config| {
        upstream.offer(config);
        let mut all = Config::default();
        upstream.configure(&mut all);
        config.synthesizer = all.synthesizer;
        // The lines of the cases are what there is to see.
        config.log.filter = "error".to_owned();
    })
    .await;
    let partner = server.partner("acme").await;
    let key = async |more: Value| {
        let mut quota = json!({"kinds": ["text", "speech"], "period": "lifetime"});
        for (name, value) in more.as_object().unwrap() {
            quota[name] = value.clone();
        }
        server.quota(&partner, &quota).await.key
    };
    let world = json!({
        "url": server.url(""),
        "control": control,
        "keys": {
            "all": key(json!({})).await,
            "spent": key(json!({"limits": {"tokens": 1, "characters": 1}})).await,
            "speech": key(json!({"kinds": ["speech"]})).await,
            "text": key(json!({"kinds": ["text"]})).await,
            "chat": key(json!({"allowed_models": ["scripted-chat"]})).await,
        },
    });
    let mut command = Command::new(program);
    command
        .arg(cases)
        .arg(world.to_string())
        .current_dir(FOLDER)
        .kill_on_drop(true);
    let status = timeout(patience(PATIENCE), command.status()).await.unwrap();
    let status = status.unwrap_or_else(|error| panic!("{}: {error}", program.display()));
    assert!(status.success(), "a case failed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python() {
    let program = Path::new(FOLDER).join("python/.venv/bin/python");
    run(&program, "python/all.py").await;
}

/// What stands in for services outside is what the client of these expects.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn python_and_vector_stores() {
    let service = VectorStores::start().await;
    let (url, key) = service.place();
    let mut command = Command::new(Path::new(FOLDER).join("python/.venv/bin/python"));
    command
        .arg("python/vectorstores.py")
        .arg(json!({"url": url, "key": key}).to_string())
        .current_dir(FOLDER)
        .kill_on_drop(true);
    let status = timeout(patience(PATIENCE), command.status())
        .await
        .unwrap()
        .unwrap();
    assert!(status.success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node() {
    run(Path::new("node"), "node/all.mjs").await;
}

/// Runs a part of the API document against a server: whatever is sent, it answers as the document says, and never with a failure of its own.
async fn hold_to_document(server: &Server, key: &str, settings: &str, chosen: &[&str]) {
    let folder = Path::new(FOLDER).join("python");
    // What it keeps of a run lies where it is run.
    let place = tempfile::tempdir().unwrap();
    let mut command = Command::new(folder.join(".venv/bin/schemathesis"));
    command
        .current_dir(place.path())
        .arg("--config-file")
        .arg(folder.join(settings))
        .arg("run")
        .arg(server.url("/openapi.json"))
        .args(["--no-color", "--suppress-health-check", "all", "-H"])
        .arg(format!("X-Api-Key: {key}"))
        .args(chosen)
        .kill_on_drop(true);
    let output = timeout(patience(4 * PATIENCE), command.output()).await;
    let output = output.unwrap().unwrap();
    let told = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{told}");
    assert!(told.contains(" generated, "), "{told}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn schemathesis() {
    let upstream = Upstream::start().await;
    let server = Server::start(&TestDatabase::sqlite(), |config| {
        upstream.offer(config);
        let mut all = Config::default();
        upstream.configure(&mut all);
        config.synthesizer = all.synthesizer;
        config.limits.requests_per_minute = 10_000_000;
        config.limits.attempts_per_minute = 10_000_000;
        config.log.filter = "error".to_owned();
    })
    .await;
    // What is there for the requests that name it.
    let partner = server.partner("acme").await;
    let kinds = ["text", "speech", "transcript"];
    let quota = server.quota(&partner, &json!({"kinds": kinds})).await;
    for place in [
        "/api/knowledgebases/acme",
        "/api/folders/acme/one",
        "/api/voices/acme/empty",
    ] {
        let form = reqwest::multipart::Form::new().text("name", "one");
        let request = server.request(&partner.key, reqwest::Method::POST, place);
        harness::app::send(request.multipart(form))
            .await
            .expect(201);
    }
    let sound =
        reqwest::multipart::Part::bytes(harness::sounds::wav(&harness::client::go_forward()));
    let form = reqwest::multipart::Form::new().part("file", sound.file_name("a.wav"));
    let place = "/api/voices/acme/one/samples";
    let request = server.request(&partner.key, reqwest::Method::POST, place);
    harness::app::send(request.multipart(form))
        .await
        .expect(201);
    let character =
        json!({"name": "one", "personality": "You are Ada.", "parameters": {"name": "Ada"}});
    let place = "/api/characters/acme";
    let request = server.request(&partner.key, reqwest::Method::POST, place);
    harness::app::send(request.json(&character))
        .await
        .expect(201);

    let named = "schemathesis-named.toml";
    let management = [
        "--exclude-method",
        "DELETE",
        "--include-path-regex",
        "^/api",
    ];
    let paid = [
        "--include-path-regex",
        "^/v3|^/v2/(audio|transcript|completions|dialog)",
    ];
    let calls = ["--include-path-regex", "^/v2"];
    let known = async {
        hold_to_document(&server, &partner.key, named, &management).await;
        hold_to_document(&server, &quota.key, named, &paid).await;
        hold_to_document(&server, &partner.key, named, &calls).await;
    };
    // With names that are not there, and the key that reaches everything.
    let unknown = hold_to_document(&server, harness::app::ADMIN_KEY, "schemathesis.toml", &[]);
    tokio::join!(known, unknown);
}
