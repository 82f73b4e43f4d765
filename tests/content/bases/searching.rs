//! How final contents come to be found, and are found no more.

use std::sync::Arc;

use colloquy::{
    clock::{Clock as _, SystemClock},
    config::Secret,
};
use colloquy_pgvector::{PgIndex, PgOptions};
use harness::TestDatabase;
use test_routes::bases::LIONS;

use super::*;

on_both_databases!(
    a_character_answers_from_its_base,
    |builder| builder.with_decoder().quick_worker(),
    |app| {
        let acme = furnished(&app).await;
        let other = app.partner("other").await;
        add(&app, &acme.key, "Hours", HOURS).await;
        settled(&app, &acme.key).await;
        let ask = async |partner: &TestPartner| {
            let quota = app.quota(partner, json!({"kinds": ["text"]})).await;
            let character = json!({"personality": "You are Ada.", "parameters": {
                "rag_enabled": true, "rag_index_required": "acme/manual",
            }});
            let body = json!({
                "model": "builtin/extractive", "input": "When does the zoo open?",
                "metadata": {"svc": {"character": character}},
            });
            let request = app.request(Method::POST, "/v3/responses");
            let answer = send(request.bearer_auth(&quota.key).json(&body)).await;
            answer.expect(200)["output"].clone()
        };
        let output = ask(&acme).await;
        let call = output.as_array().unwrap().iter();
        let call = call.filter(|item| item["type"] == "file_search_call");
        let call: Vec<_> = call.collect();
        assert_eq!(call[0]["results"][0]["filename"], "Hours", "{output}");
        let told = output.as_array().unwrap().last().unwrap();
        let told = told["content"][0]["text"].as_str().unwrap();
        assert!(told.contains("nine"), "{told}");

        // Another partner's base is none.
        let output = ask(&other).await.to_string();
        assert!(
            !output.contains("Hours") && !output.contains("nine"),
            "{output}"
        );
    }
);

/// Two nodes on one database, each with a data folder of its own: with a copy of the index each and files in a folder, or with an index in
/// PostgreSQL and files in a bucket that they share.
async fn nodes_find_the_same(database: TestDatabase, shared_index: Option<Secret>) {
    let blobs = match &shared_index {
        None => url::Url::from_directory_path(database.config().dir.join("shared-blobs")).unwrap(),
        Some(_) => {
            let bucket = given("COLLOQUY_TEST_S3_URL");
            format!("{bucket}/{}", SystemClock.new_id())
                .parse()
                .unwrap()
        }
    };
    let node = |name: &str| {
        let (blobs, shared_index) = (blobs.clone(), shared_index.clone());
        TestApp::builder(&database)
            .node(name)
            .config(move |config| {
                config.store.blob_url = Some(blobs);
                config.store.search_url = shared_index;
            })
            .with_decoder()
            .quick_worker()
    };
    let first = node("first").start().await;
    let acme = furnished(&first).await;
    let key = acme.key.as_str();
    let lions = add(&first, key, "Lions", LIONS).await;
    add(&first, key, "Hours", HOURS).await;
    settled(&first, key).await;

    let second = node("second").start().await;
    // It has to make all of its index first.
    let is_found = |name: &String| !name.is_empty();
    let name = until("it is found", is_found, async || {
        best(&second, key, "lions").await
    })
    .await;
    assert_eq!(name, "Lions");
    // From then on it knows of each change.
    let path = format!("/api/documents/{BASE}/{lions}");
    first.delete(key, &path).await.expect(200);
    assert_eq!(found(&second, key, "lions").await, [""; 0]);
    add(&second, key, "Cats", "Lions are cats.").await;
    settled(&second, key).await;
    assert_eq!(best(&first, key, "lions").await, "Cats");

    // An index that is lost is made again.
    second.stop().await;
    match &shared_index {
        None => {
            let folder = database.node_config("second").dir.join("index");
            fs::remove_dir_all(&folder).unwrap();
        }
        Some(url) => {
            let named = "SELECT installation FROM knowledge_sequence";
            let named: Option<String> = first.app.store.db().fetch_scalar(named).await.unwrap();
            let (named, clock) = (named.unwrap(), Arc::new(SystemClock));
            let index = PgIndex::open(url.reveal(), &named, PgOptions::default(), clock);
            index.await.unwrap().clear().await.unwrap();
        }
    }
    let second = node("second").start().await;
    let name = until("it is found again", is_found, async || {
        best(&second, key, "lions").await
    })
    .await;
    assert_eq!(name, "Cats");
    // One that is there goes on.
    first.stop().await;
    let first = node("first").start().await;
    assert_eq!(best(&first, key, "open").await, "Hours");
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_find_the_same_sqlite() {
    nodes_find_the_same(TestDatabase::sqlite(), None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_find_the_same_postgres() {
    nodes_find_the_same(TestDatabase::postgres().await, None).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nodes_find_the_same_in_one_index_and_a_bucket() {
    let url = Secret::new(given("COLLOQUY_TEST_PGVECTOR_URL"));
    nodes_find_the_same(TestDatabase::postgres().await, Some(url)).await;
}
