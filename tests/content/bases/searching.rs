//! How final contents come to be found, and are found no more.

use std::sync::Arc;

use colloquy::{
    clock::{Clock as _, SystemClock},
    config::Secret,
};
use colloquy_pgvector::{PgIndex, PgOptions};
use harness::{
    TestDatabase,
    app::ADMIN_KEY,
    eventually,
    upstream::{Api, Fault, Script, Upstream},
};

use super::*;

/// A document whose text is its final content.
pub(super) async fn add(app: &TestApp, key: &str, name: &str, text: &str) -> String {
    let form = fields(&[
        ("type", "file"),
        ("folder", "texts"),
        ("name", name),
        ("use_original_as_rewritten", "true"),
    ]);
    let form = form.part("file", file("text.md", text));
    let made = post(app, key, &format!("/api/documents/{BASE}"), form).await;
    made.expect(201)["id"].as_str().unwrap().to_owned()
}

const LIONS: &str = "# Lions\n\nLions eat meat.\n\n## Sleep\n\nThey sleep for twenty hours.\n";
pub(super) const HOURS: &str = "# Opening hours\n\nThe zoo opens at nine and closes at six.\n";

on_both_databases!(
    what_is_written_is_found_and_what_is_replaced_is_not,
    |builder| builder.with_decoder().quick_worker(),
    |app| {
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let nothing = search(&app, key, "When do lions sleep?").await;
        assert_eq!(nothing["total_results"], 0, "{nothing}");
        let lions = add(&app, key, "Lions", LIONS).await;
        add(&app, key, "Hours", HOURS).await;
        let info = settled(&app, key).await;
        assert_eq!(info["last_update_status"], "success", "{info}");
        assert_eq!(info["embedded_document_count"], 2);
        assert_eq!(info["embedding_profile_name"], "words");
        assert_eq!(best(&app, key, "When does it open?").await, "Hours");
        assert_eq!(best(&app, key, "lion").await, "Lions", "by its stem");

        let toc = app.get(key, &format!("/api/toc/{BASE}")).await.expect(200);
        let contents = &toc["documents"][0]["contents"];
        assert_eq!(contents[0]["title"], "Lions", "{toc}");
        assert_eq!(contents[0]["children"][0]["title"], "Sleep");
        assert_eq!(toc["documents"][0].get("status"), None);
        let path = format!("/api/toc/{BASE}?include_status=true");
        let toc = app.get(key, &path).await.expect(200);
        assert_eq!(toc["documents"][1]["status"]["embedding_status"], "done");

        let content = format!("/api/documents/{BASE}/{lions}/content/rewritten");
        let written = put(&app, key, &content, &[("content", "Tigers swim.")]).await;
        assert_eq!(written.expect(200)["embedding_status"], "queued");
        settled(&app, key).await;
        assert_eq!(found(&app, key, "meat").await, [""; 0]);
        assert_eq!(best(&app, key, "tigers").await, "Lions");
        let form = Form::new().part("file", file("new.md", "Elephants remember."));
        let path = format!("/api/documents/{BASE}/{lions}/content/rewritten");
        post(&app, key, &path, form).await.expect(200);
        settled(&app, key).await;
        assert_eq!(found(&app, key, "tigers").await, [""; 0]);
        assert_eq!(best(&app, key, "remember").await, "Lions");

        let path = format!("/api/documents/{BASE}/{lions}");
        app.delete(key, &path).await.expect(200);
        assert_eq!(found(&app, key, "remember").await, [""; 0]);
        assert_eq!(best(&app, key, "open").await, "Hours");
        app.delete(key, "/api/folders/acme/manual/texts")
            .await
            .expect(200);
        assert_eq!(found(&app, key, "open").await, [""; 0]);
        assert_eq!(rows(&app, "knowledge_manifests").await, 0);
    }
);

on_both_databases!(
    tables_of_contents_of_many_documents_are_sent_while_they_are_read,
    |builder| builder.with_decoder().quick_worker(),
    |app| {
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        for number in 0..40 {
            let name = format!("Document {number}");
            let form = fields(&[
                ("name", name.as_str()),
                ("folder", "texts"),
                ("type", "file"),
            ]);
            let made = post(&app, key, &format!("/api/documents/{BASE}/empty"), form).await;
            made.expect(201);
        }
        let path = format!("/api/toc/{BASE}?include_status=true");
        let answer = app.get(key, &path).await;
        assert!(!answer.headers.contains_key("content-length"));
        let toc = answer.expect(200);
        assert_eq!(toc["embedding_info"]["embedded_document_count"], 0);
        let listed = app.get(key, &format!("/api/documents/{BASE}")).await;
        let listed = listed.expect(200);
        let ids = |all: &Value, id: &str| -> Vec<Value> {
            let documents = all["documents"].as_array().unwrap().iter();
            documents.map(|document| document[id].clone()).collect()
        };
        let told = ids(&toc, "document_id");
        assert_eq!(told.len(), 40, "{toc}");
        assert_eq!(told, ids(&listed, "id"));

        let toc = app.get(key, &format!("/api/toc/{BASE}")).await.expect(200);
        assert_eq!(toc, json!({"knowledge_base": "manual", "documents": []}));
    }
);

on_both_databases!(
    an_embedding_says_what_it_cannot_do,
    |builder| builder.with_decoder().quick_worker(),
    |app| {
        let acme = furnished(&app).await;
        let other = app.partner("other").await;
        let key = acme.key.as_str();
        let form = fields(&[("name", "n"), ("folder", "texts"), ("type", "file")]);
        let made = post(&app, key, &format!("/api/documents/{BASE}/empty"), form).await;
        let id = made.expect(201)["id"].as_str().unwrap().to_owned();
        let embed = format!("/api/embedding/{BASE}/documents/{id}");
        app.post(key, &embed, Value::Null).await.expect(409);
        let content = format!("/api/documents/{BASE}/{id}/content/rewritten");
        put(&app, key, &content, &[("content", HOURS)])
            .await
            .expect(200);
        settled(&app, key).await;
        let again = format!("{embed}?force=false");
        let again = app.post(key, &again, Value::Null).await.expect(200);
        assert_eq!(again["job_id"], Value::Null);
        let forced = app.post(key, &embed, Value::Null).await.expect(200);
        assert!(forced["job_id"].is_string(), "{forced}");
        settled(&app, key).await;

        let question = |changes: Value| {
            let mut body = json!({"partner": "acme", "kb": "manual", "user_message": "open"});
            body.as_object_mut()
                .unwrap()
                .extend(changes.as_object().unwrap().clone());
            body
        };
        let ask = async |key: &str, changes: Value| {
            app.post(key, "/api/rag-test/search", question(changes))
                .await
        };
        for (changes, field) in [
            (json!({"user_message": " "}), "user_message"),
            (json!({"user_message": "x".repeat(20_001)}), "user_message"),
            (
                json!({"robot_message": "x".repeat(20_001)}),
                "robot_message",
            ),
            (json!({"rrf_weight_dense": -1}), "rrf_weight_dense"),
            (
                json!({"query_weight_original": "x"}),
                "query_weight_original",
            ),
            (
                json!({"character_replacement_name": "x".repeat(201)}),
                "character_replacement_name",
            ),
            (json!({"partner": "../"}), "partner"),
            (json!({"partner": ""}), "partner"),
        ] {
            let refused = ask(key, changes.clone()).await.expect(400);
            assert_eq!(refused["field"], field, "{changes}: {refused}");
            let told = refused["detail"].as_str().unwrap();
            let is_sentence = told.starts_with(char::is_uppercase);
            assert!(is_sentence || told.contains(field), "{changes}: {told}");
        }
        for changes in [
            json!({"top_k": 5}),
            json!({"search_multiplier": 7}),
            json!({"rrf_k": 60}),
            json!({"collection_override": "x"}),
            json!({"rag_index_override": "acme/manual"}),
        ] {
            ask(key, changes.clone()).await.expect(403);
        }
        ask(&other.key, json!({})).await.expect(403);
        ask(key, json!({"kb": "none"})).await.expect(404);
        let own = ask(key, json!({"top_k": 12})).await.expect(200);
        assert_eq!(own.get("routing"), None);
        assert_eq!(own["combined_results"][0].get("chunk_id"), None);
        let all = ask(
            ADMIN_KEY,
            json!({"top_k": 1, "rag_index_override": "acme/manual"}),
        )
        .await;
        let all = all.expect(200);
        assert!(all["routing"]["knowledge_base_id"].is_string(), "{all}");
        assert!(all["combined_results"][0]["chunk_id"].is_string());
        let named = json!({"user_message": "Do you open?", "character_replacement_name": "Ada"});
        let named = ask(key, named).await.expect(200);
        assert_eq!(named["queries"]["replaced"], "Do Ada open?");
    }
);

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

on_both_databases!(
    what_the_character_said_counts_and_administrators_choose_what_is_searched,
    |builder| builder.with_decoder().quick_worker(),
    |app| {
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let other = app.partner("other").await;
        post(
            &app,
            &other.key,
            "/api/knowledgebases/other",
            fields(&[("name", "b")]),
        )
        .await
        .expect(201);
        add(&app, key, "Lions", LIONS).await;
        add(&app, key, "Hours", HOURS).await;
        settled(&app, key).await;
        let ask = async |key: &str, changes: Value| {
            let mut body = json!({"partner": "acme", "kb": "manual"});
            let changes = changes.as_object().unwrap().clone();
            body.as_object_mut().unwrap().extend(changes);
            app.post(key, "/api/rag-test/search", body).await
        };
        // The visitor says what he wants only together with what he was asked.
        let answer = json!({"user_message": "Yes, please.", "robot_message": "Shall I tell you when it opens?"});
        let found = ask(key, answer).await.expect(200);
        assert_eq!(
            found["combined_results"][0]["document_name"], "Hours",
            "{found}"
        );
        assert_eq!(
            found["queries"]["original"],
            "Yes, please.\nShall I tell you when it opens?"
        );

        let question = json!({"user_message": "When do lions sleep?"});
        let own = ask(ADMIN_KEY, question).await.expect(200);
        let (base, profile) = (
            own["routing"]["knowledge_base_id"].as_str().unwrap(),
            &own["routing"]["embedding_profile_id"],
        );
        let collection = format!("{base}/{profile}");
        // Another base is named, and that collection is searched all the same.
        let elsewhere = json!({
            "partner": "other", "kb": "b", "user_message": "When do lions sleep?",
            "collection_override": collection,
        });
        let found = ask(ADMIN_KEY, elsewhere).await.expect(200);
        assert!(found["total_results"].as_u64().unwrap() > 0, "{found}");
        let none = json!({"user_message": "lions", "collection_override": format!("{base}/x")});
        let refused = ask(ADMIN_KEY, none).await.expect(400);
        assert_eq!(refused["field"], "collection_override");
        let other = json!({"user_message": "lions", "rag_index_override": "other/b"});
        let found = ask(ADMIN_KEY, other).await.expect(200);
        assert_eq!(found["total_results"], 0, "{found}");

        // Bases go with their partner: their rows, their files, and what is found.
        app.delete(ADMIN_KEY, "/api/partners/acme")
            .await
            .expect(204);
        let again = furnished(&app).await;
        assert_eq!(found_count(&app, &again.key).await, 0);
        let gone =
            json!({"user_message": "When do lions sleep?", "collection_override": collection});
        eventually("the index forgets them", async || {
            let found = ask(ADMIN_KEY, gone.clone()).await.expect(200);
            found["total_results"] == 0
        })
        .await;
        app.app.blobs.sweep().await.unwrap();
        for table in [
            "knowledge_documents",
            "knowledge_manifests",
            "knowledge_contents",
            "blobs",
        ] {
            assert_eq!(rows(&app, table).await, 0, "{table}");
        }
    }
);

/// How many passages are found in a base.
async fn found_count(app: &TestApp, key: &str) -> usize {
    found(app, key, "When do lions sleep?").await.len()
}

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
    let mut name = String::new();
    for _ in 0..100 {
        name = best(&second, key, "lions").await;
        if !name.is_empty() {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
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
    for _ in 0..100 {
        name = best(&second, key, "lions").await;
        if !name.is_empty() {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
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

async fn another_model_takes_over(database: TestDatabase) {
    let upstream = Upstream::start().await;
    let start = async |model: Option<&str>| {
        let mut builder = TestApp::builder(&database).with_decoder().quick_worker();
        if let Some(model) = model {
            builder = builder.config(|config| upstream.embed(config, model));
        }
        builder.start().await
    };
    let app = start(None).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    add(&app, key, "Cars", "# Cars\n\nAn automobile needs petrol.").await;
    add(&app, key, "Hours", HOURS).await;
    settled(&app, key).await;
    assert_eq!(best(&app, key, "car").await, "Cars", "its title says so");
    assert_eq!(found(&app, key, "physician").await, [""; 0]);
    app.stop().await;

    // The embedder fails at first: the words go on being compared, and nothing is lost.
    upstream.set_default(Api::Embeddings, Script::fault(Fault::Status(500)));
    let app = start(Some("first")).await;
    let meanwhile = search(&app, key, "open").await;
    assert_eq!(meanwhile["combined_results"][0]["document_name"], "Hours");
    assert_eq!(meanwhile["config"]["embedding_profile_name"], "words");
    upstream.set_default(Api::Embeddings, Script::default());
    for _ in 0..200 {
        let info = settled(&app, key).await;
        if info["embedding_profile_name"] == "first" {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    let found_by = search(&app, key, "the automobile").await;
    assert_eq!(
        found_by["config"]["embedding_profile_name"], "first",
        "{found_by}"
    );
    let streams = found_by["streams"].as_array().unwrap();
    let dense = streams.iter().find(|stream| stream["retriever"] == "dense");
    assert_eq!(dense.unwrap()["results"].as_array().unwrap().len(), 2);

    // What did not change is not asked for again.
    let asked = || upstream.requests(Api::Embeddings).len();
    let before = asked();
    let list = app
        .get(key, &format!("/api/documents/{BASE}"))
        .await
        .expect(200);
    let id = list["documents"][0]["id"].as_str().unwrap();
    let content = format!("/api/documents/{BASE}/{id}/content/rewritten");
    let same = "# Cars\n\nAn automobile needs petrol.";
    put(&app, key, &content, &[("content", same)])
        .await
        .expect(200);
    settled(&app, key).await;
    assert_eq!(asked(), before);
    app.stop().await;

    let app = start(Some("second")).await;
    for _ in 0..200 {
        let info = settled(&app, key).await;
        if info["embedding_profile_name"] == "second" {
            break;
        }
        sleep(Duration::from_millis(50)).await;
    }
    let found_by = search(&app, key, "the automobile").await;
    assert_eq!(found_by["config"]["embedding_profile_name"], "second");
    assert_eq!(rows(&app, "knowledge_manifests").await, 2);

    // One that refuses a document says so.
    upstream.set_default(Api::Embeddings, Script::fault(Fault::Status(400)));
    put(&app, key, &content, &[("content", "Something new.")])
        .await
        .expect(200);
    let info = settled(&app, key).await;
    assert_eq!(info["failed_document_count"], 1, "{info}");
    assert_eq!(info["last_error"], "second refuses the document");
    upstream.set_default(Api::Embeddings, Script::default());
    let retry = format!("/api/embedding/{BASE}/retry-failed");
    let retried = app.post(key, &retry, Value::Null).await.expect(200);
    assert_eq!(retried["queued"], 1);
    assert_eq!(settled(&app, key).await["failed_document_count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_takes_over_sqlite() {
    another_model_takes_over(TestDatabase::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn another_model_takes_over_postgres() {
    another_model_takes_over(TestDatabase::postgres().await).await;
}
