//! How final contents come to be found, and are found no more.

use super::*;

on_each_database!(
    what_is_written_is_found_and_what_is_replaced_is_not,
    |database| {
        let app = start_working(builder(&database)).await;
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

on_each_database!(
    tables_of_contents_of_many_documents_are_sent_while_they_are_read,
    |database| {
        let app = start_working(builder(&database)).await;
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

on_each_database!(an_embedding_says_what_it_cannot_do, |database| {
    let app = start_working(builder(&database)).await;
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
});

on_each_database!(
    what_the_character_said_counts_and_administrators_choose_what_is_searched,
    |database| {
        let app = start_working(builder(&database)).await;
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
        app.state.blobs.sweep().await.unwrap();
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
async fn found_count(app: &App, key: &str) -> usize {
    found(app, key, "When do lions sleep?").await.len()
}

on_each_database!(another_model_takes_over, |database| {
    let upstream = Upstream::start().await;
    // Each node goes on where the one before it ended.
    let clock = support::clock::manual();
    let start = async |model: Option<&str>| {
        let mut builder = builder(&database).shared_clock(&clock);
        if let Some(model) = model {
            builder = builder.config(|config| upstream.embed(config, model));
        }
        start_working(builder).await
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
    eventually("the documents are embedded", async || {
        app.advance_through("bases.%").await;
        settled(&app, key).await["embedding_profile_name"] == "first"
    })
    .await;
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
    eventually("the documents are embedded again", async || {
        settled(&app, key).await["embedding_profile_name"] == "second"
    })
    .await;
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
});
