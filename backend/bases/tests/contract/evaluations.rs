//! Saved questions, and how well they are answered.

use colloquy_http::memory::Share;

use super::*;

const QUESTIONS: &str = "/api/rag-questions/acme/manual";
const EVALUATIONS: &str = "/api/rag-evaluations/acme/manual";

/// Saves a question that expects these documents, and returns its id.
async fn save(app: &App, key: &str, message: &str, expected: &[&str]) -> String {
    let body = json!({"user_message": message, "expected_document_ids": expected});
    let made = app.post(key, QUESTIONS, body).await.expect(201);
    made["id"].as_str().unwrap().to_owned()
}

/// Begins an evaluation, and returns its comparison once it is done.
async fn evaluated(app: &App, key: &str, body: Value) -> Value {
    let begun = app.post(key, EVALUATIONS, body).await.expect(202);
    assert_eq!(begun["figures"], Value::Null, "{begun}");
    let path = format!("{EVALUATIONS}/{}", begun["id"].as_str().unwrap());
    let is_done = |seen: &Value| seen["evaluation"]["status"] == "done";
    let read = async || app.get(key, &path).await.expect(200);
    support::until("the evaluation is done", is_done, read).await
}

/// All results of an evaluation, read in pages of one.
async fn results(app: &App, key: &str, compared: &Value) -> Vec<Value> {
    let id = compared["evaluation"]["id"].as_str().unwrap();
    let path = format!("{EVALUATIONS}/{id}/results?limit=1");
    let (mut all, mut next) = (Vec::new(), path.clone());
    loop {
        let page = app.get(key, &next).await.expect(200);
        all.extend(page["results"].as_array().unwrap().clone());
        match page["next_cursor"].as_str() {
            Some(cursor) => next = format!("{path}&cursor={cursor}"),
            None => return all,
        }
    }
}

fn close(found: &Value, expected: f64) {
    let found = found.as_f64().unwrap();
    assert!((found - expected).abs() < 1e-9, "{found} {expected}");
}

on_each_database!(questions_are_saved_with_their_documents, |database| {
    let app = start_working(builder(&database)).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let lions = add(&app, key, "Lions", LIONS).await;
    let hours = add(&app, key, "Hours", HOURS).await;
    settled(&app, key).await;
    let body = json!({
        "user_message": " When do you open? ", "robot_message": "Hello!", "character_replacement_name": "Ada",
        "expected_document_ids": [hours, lions, hours],
    });
    let saved = app.post(key, QUESTIONS, body.clone()).await.expect(201);
    assert_eq!(saved["user_message"], "When do you open?");
    assert_eq!(saved["robot_message"], "Hello!");
    assert_eq!(saved["character_replacement_name"], "Ada");
    let expected = json!([
        {"document_id": lions, "document_name": "Lions"}, {"document_id": hours, "document_name": "Hours"},
    ]);
    assert_eq!(saved["expected_documents"], expected);
    let second = save(&app, key, "And on Sundays?", &[&hours]).await;
    let first_page = app.get(key, &format!("{QUESTIONS}?limit=1")).await;
    let first_page = first_page.expect(200);
    assert_eq!(first_page["total"], 2);
    assert_eq!(first_page["questions"][0]["id"], second);
    let cursor = first_page["next_cursor"].as_str().unwrap();
    let next = format!("{QUESTIONS}?limit=1&cursor={cursor}");
    let next = app.get(key, &next).await.expect(200);
    assert_eq!(next["questions"], json!([saved]));
    assert_eq!(
        (&next["next_cursor"], &next["total"]),
        (&Value::Null, &Value::Null)
    );

    let path = format!("{QUESTIONS}/{}", saved["id"].as_str().unwrap());
    let changed = json!({"user_message": "When is it open?", "expected_document_ids": [hours]});
    let changed = app.put(key, &path, changed).await.expect(200);
    assert_eq!(changed["robot_message"], Value::Null);
    assert_eq!(app.get(key, &path).await.expect(200), changed);
    assert_eq!(changed["expected_documents"].as_array().unwrap().len(), 1);
    for (changes, field) in [
        (json!({"user_message": " "}), "user_message"),
        (json!({"user_message": "x".repeat(20_001)}), "user_message"),
        (
            json!({"robot_message": "x".repeat(20_001)}),
            "robot_message",
        ),
        (
            json!({"character_replacement_name": "x".repeat(201)}),
            "character_replacement_name",
        ),
        (
            json!({"expected_document_ids": []}),
            "expected_document_ids",
        ),
        (
            json!({"expected_document_ids": ["none"]}),
            "expected_document_ids",
        ),
        (
            json!({"expected_document_ids": vec!["x"; 21]}),
            "expected_document_ids",
        ),
        (
            json!({"expected_document_ids": ["\0"]}),
            "expected_document_ids",
        ),
        (json!({"user_mesage": "x"}), "user_mesage"),
    ] {
        let mut body = body.clone();
        let changes = changes.as_object().unwrap().clone();
        body.as_object_mut().unwrap().extend(changes);
        for refused in [
            app.post(key, QUESTIONS, body.clone()).await,
            app.put(key, &path, body.clone()).await,
        ] {
            assert_eq!(refused.expect(400)["field"], field, "{body}");
        }
    }
    for query in ["limit=0", "cursor=x", "q=x"] {
        let refused = app.get(key, &format!("{QUESTIONS}?{query}")).await;
        let (field, _) = query.split_once('=').unwrap();
        assert_eq!(refused.expect(400)["field"], field);
    }
    // What is deleted answers nothing.
    app.delete(key, &format!("/api/documents/{BASE}/{hours}"))
        .await
        .expect(200);
    let left = app.get(key, QUESTIONS).await.expect(200);
    assert_eq!(left["questions"][0]["expected_documents"], json!([]));
    app.delete(key, &path).await.expect(204);
    app.delete(key, &path).await.expect(404);
    app.get(key, &path).await.expect(404);
    app.put(key, &path, body).await.expect(404);
    assert_eq!(rows(&app, "knowledge_question_documents").await, 0);

    let other = app.partner("other").await;
    let theirs = format!("{QUESTIONS}/{second}");
    app.get(&other.key, QUESTIONS).await.expect(403);
    app.delete(&other.key, &theirs).await.expect(403);
    let base = fields(&[("name", "manual")]);
    post(&app, &other.key, "/api/knowledgebases/other", base)
        .await
        .expect(201);
    let foreign = format!("/api/rag-questions/other/manual/{second}");
    app.get(&other.key, &foreign).await.expect(404);
    app.delete(&other.key, &foreign).await.expect(404);
    let calls = app.key("acme", json!({"name": "calls", "scopes": ["calls"]}));
    let calls = calls.await["api_key"].as_str().unwrap().to_owned();
    app.get(&calls, QUESTIONS).await.expect(403);
    app.get(&calls, EVALUATIONS).await.expect(403);
});

on_each_database!(questions_are_bounded_and_count_as_texts, |database| {
    let app = start_working(builder(&database)).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let hours = add(&app, key, "Hours", HOURS).await;
    settled(&app, key).await;
    let used = async || {
        let listed = app.get(key, "/api/partners").await.expect(200);
        assert_eq!(recount_texts(&app, TEXTS).await.unwrap(), 0);
        listed[0]["storage"]["used_bytes"].as_u64().unwrap()
    };
    let before = used().await;
    let id = save(&app, key, "When?", &[&hours]).await;
    assert_eq!(used().await, before + 32_768 + 5);
    let path = format!("{QUESTIONS}/{id}");
    for (message, bytes) in [("When does it open?", 18), ("é?", 3)] {
        let body = json!({"user_message": message, "expected_document_ids": [hours]});
        app.put(key, &path, body).await.expect(200);
        assert_eq!(used().await, before + 32_768 + bytes);
    }
    app.limit_storage("acme", before + 32_768 + 100).await;
    let body = json!({"user_message": "x".repeat(200), "expected_document_ids": [hours]});
    let refused = app.put(key, &path, body.clone()).await.expect(413);
    assert_eq!(refused["code"], "storage_limit_reached");
    app.post(key, QUESTIONS, body).await.expect(413);
    assert_eq!(used().await, before + 32_768 + 3);
    app.limit_storage("acme", 1 << 40).await;
    app.delete(key, &path).await.expect(204);
    assert_eq!(used().await, before);

    let base = "SELECT id FROM knowledge_bases";
    for number in 1..500 {
        let sql = format!(
            "INSERT INTO knowledge_questions (id, base_id, user_message, bytes, revision, created_at, updated_at) \
             SELECT 'q{number:03}', ({base}), 'x', 0, 1, 1, 1"
        );
        app.state.store.db().execute(sql).await.unwrap();
    }
    save(&app, key, "The last one?", &[&hours]).await;
    let body = json!({"user_message": "One more?", "expected_document_ids": [hours]});
    let refused = app.post(key, QUESTIONS, body).await.expect(409);
    assert_eq!(refused["code"], "limit_reached", "{refused}");
    app.post(key, EVALUATIONS, json!({})).await.expect(202);
    app.delete(key, "/api/knowledgebases/acme/manual")
        .await
        .expect(200);
    eventually("the base is gone", async || {
        rows(&app, "knowledge_bases").await == 0
    })
    .await;
    assert_eq!(used().await, 1_024);
    assert_eq!(rows(&app, "knowledge_evaluation_results").await, 0);
});

// A page reads the texts of its own questions, once there is memory for them.
on_each_database!(pages_of_long_questions_are_charged_for, |database| {
    let builder = builder(&database).config(|config| {
        config.limits.body_bytes = 200_000;
        config.limits.text_body_bytes = 200_000;
        config.limits.body_memory_bytes = 4_000_000;
    });
    let app = start_working(builder).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let hours = add(&app, key, "Hours", HOURS).await;
    settled(&app, key).await;
    // 80 kB each.
    let long = "é".repeat(20_000);
    let body =
        json!({"user_message": long, "robot_message": long, "expected_document_ids": [hours]});
    for _ in 0..10 {
        app.post(key, QUESTIONS, body.clone()).await.expect(201);
    }
    let compared = evaluated(&app, key, json!({})).await;
    let id = compared["evaluation"]["id"].as_str().unwrap();
    let results = format!("{EVALUATIONS}/{id}/results");
    for (path, field) in [(QUESTIONS, "questions"), (&results, "results")] {
        let refused = app.get(key, path).await;
        let told = refused.expect(413)["detail"].as_str().unwrap().to_owned();
        assert!(told.contains("questions of the page"), "{told}");
        // What a page took is given back.
        let (mut seen, mut next) = (0, format!("{path}?limit=3"));
        loop {
            let page = app.get(key, &next).await.expect(200);
            let entries = page[field].as_array().unwrap();
            let said = |entry: &Value| entry["user_message"] == long;
            assert!(entries.iter().all(said), "{}", entries.len());
            seen += entries.len();
            match page["next_cursor"].as_str() {
                Some(cursor) => next = format!("{path}?limit=3&cursor={cursor}"),
                None => break,
            }
        }
        assert_eq!(seen, 10);
        let others = Share::new(app.edge.clone());
        others.belongs_to(Some("acme"));
        others.grow(1_500_000).unwrap();
        let refused = app.get(key, &format!("{path}?limit=3")).await;
        assert_eq!(refused.header("retry-after"), "2");
        refused.expect(503);
    }
});

on_each_database!(an_evaluation_tells_where_documents_stand, |database| {
    let app = start_working(builder(&database)).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let lions = add(&app, key, "Lions", LIONS).await;
    let hours = add(&app, key, "Hours", HOURS).await;
    let birds = add(&app, key, "Birds", "# Birds\n\nParrots talk.\n").await;
    settled(&app, key).await;
    app.post(key, EVALUATIONS, json!({})).await.expect(409);
    let found = save(&app, key, "When do lions sleep?", &[&lions]).await;
    // Both are expected, and the words are of one of them.
    let half = save(&app, key, "When does the zoo open?", &[&birds, &hours]).await;
    let missed = save(&app, key, "Where do tigers swim?", &[&hours]).await;

    let compared = evaluated(&app, key, json!({})).await;
    let evaluation = &compared["evaluation"];
    assert_eq!(
        (&evaluation["questions"], &evaluation["asked"]),
        (&json!(3), &json!(3))
    );
    assert_eq!(evaluation["k"], 10);
    assert_eq!(evaluation["config"]["embedding_profile_name"], "words");
    assert_eq!(evaluation["config"]["rrf_weight_sparse"], 1.25);
    assert_eq!(evaluation["content"]["documents"], 3);
    assert!(evaluation["content"]["chunks"].as_u64().unwrap() >= 3);
    assert_eq!(evaluation["content_changed"], false);
    assert!(evaluation["ended_at"].is_string());
    assert_eq!(
        (&compared["previous"], &compared["common"]),
        (&Value::Null, &Value::Null)
    );
    let figures = &evaluation["figures"];
    assert_eq!(
        (&figures["questions"], &figures["without_documents"]),
        (&json!(3), &json!(0))
    );
    let listed = results(&app, key, &compared).await;
    let ids: Vec<&str> = listed
        .iter()
        .map(|it| it["question_id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [&missed, &half, &found], "worst first: {listed:?}");
    assert_eq!(listed[0]["expected"][0]["rank"], Value::Null);
    assert_eq!(listed[0]["expected"][0]["document_name"], "Hours");
    close(&listed[0]["scores"]["reciprocal_rank"], 0.0);
    assert_eq!(listed[1]["expected"][0]["rank"], 1, "{listed:?}");
    // One of two: 1 / (1 + 1 / log2(3)).
    close(&listed[1]["scores"]["recall"], 0.5);
    close(&listed[1]["scores"]["ndcg"], 0.613_147_192_8);
    close(&listed[2]["scores"]["ndcg"], 1.0);
    close(&figures["recall"], 0.5);
    close(&figures["ndcg"], 1.613_147_192_8 / 3.0);
    close(&figures["mrr"], 2.0 / 3.0);

    // Now it is found, and one question is another.
    let content = format!("/api/documents/{BASE}/{hours}/content/rewritten");
    let text = format!("{HOURS}\nTigers swim in the pool.\n");
    put(&app, key, &content, &[("content", &text)])
        .await
        .expect(200);
    settled(&app, key).await;
    let body = json!({"user_message": "When does it open?", "expected_document_ids": [hours]});
    app.put(key, &format!("{QUESTIONS}/{half}"), body)
        .await
        .expect(200);
    let again = evaluated(&app, key, json!({})).await;
    assert_eq!(again["previous"]["id"], evaluation["id"]);
    let common = &again["common"];
    assert_eq!(common["now"]["questions"], 2, "{again}");
    close(&common["before"]["recall"], 0.5);
    close(&common["now"]["recall"], 1.0);
    let listed = results(&app, key, &again).await;
    let of = |id: &str| listed.iter().find(|it| it["question_id"] == id).unwrap();
    assert_eq!(of(&missed)["expected"][0]["rank"], 1);
    assert_eq!(of(&missed)["expected"][0]["previous_rank"], Value::Null);
    close(&of(&missed)["previous"]["recall"], 0.0);
    assert_eq!(of(&found)["expected"][0]["previous_rank"], 1);
    assert_eq!(of(&half)["previous"], Value::Null);

    // Another cut-off is another measure.
    let narrow = evaluated(&app, key, json!({"k": 1, "rrf_weight_bm25": 2})).await;
    assert_eq!(narrow["previous"], Value::Null);
    assert_eq!(narrow["evaluation"]["config"]["rrf_weight_bm25"], 2.0);
    for (body, field) in [
        (json!({"k": 0}), "k"),
        (json!({"k": 51}), "k"),
        (json!({"rrf_weight_dense": -1}), "rrf_weight_dense"),
        (json!({"rrf_k": 1}), "rrf_k"),
    ] {
        let refused = app.post(key, EVALUATIONS, body).await.expect(400);
        assert_eq!(refused["field"], field, "{refused}");
    }
    let id = narrow["evaluation"]["id"].as_str().unwrap();
    for query in ["limit=0", "cursor=x", "cursor=x:y"] {
        let path = format!("{EVALUATIONS}/{id}/results?{query}");
        let (field, _) = query.split_once('=').unwrap();
        assert_eq!(app.get(key, &path).await.expect(400)["field"], field);
    }

    // A question without documents does not count.
    app.delete(key, &format!("/api/documents/{BASE}/{lions}"))
        .await
        .expect(200);
    let last = evaluated(&app, key, json!({})).await;
    let figures = &last["evaluation"]["figures"];
    assert_eq!(
        (&figures["questions"], &figures["without_documents"]),
        (&json!(2), &json!(1))
    );
    let listed = results(&app, key, &last).await;
    assert_eq!(listed[2]["scores"], Value::Null, "{listed:?}");
    app.delete(key, &format!("{QUESTIONS}/{found}"))
        .await
        .expect(204);
    assert_eq!(results(&app, key, &last).await.len(), 2);
    app.delete(key, &format!("{EVALUATIONS}/{id}"))
        .await
        .expect(204);
    app.get(key, &format!("{EVALUATIONS}/{id}"))
        .await
        .expect(404);
});

on_each_database!(evaluations_are_bounded, |database| {
    // Nothing works them off.
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let form = fields(&[("name", "n"), ("folder", "texts"), ("type", "file")]);
    let made = post(&app, key, &format!("/api/documents/{BASE}/empty"), form).await;
    let document = made.expect(201)["id"].as_str().unwrap().to_owned();
    save(&app, key, "When?", &[&document]).await;
    let begin = async || app.post(key, EVALUATIONS, json!({})).await;
    let first = begin().await.expect(202);
    let refused = begin().await.expect(409);
    assert!(refused["detail"].as_str().unwrap().contains("in progress"));
    let first = first["id"].as_str().unwrap();
    app.delete(key, &format!("{EVALUATIONS}/{first}"))
        .await
        .expect(204);
    for _ in 0..22 {
        begin().await.expect(202);
        let end = "UPDATE knowledge_evaluations SET status = 'done'";
        app.state.store.db().execute(end).await.unwrap();
    }
    assert_eq!(rows(&app, "knowledge_evaluations").await, 20);
    assert_eq!(rows(&app, "knowledge_evaluation_results").await, 20);
    assert_eq!(recount_texts(&app, TEXTS).await.unwrap(), 0);
    let page = app.get(key, &format!("{EVALUATIONS}?limit=15")).await;
    let page = page.expect(200);
    let ids = |page: &Value| -> Vec<String> {
        let all = page["evaluations"].as_array().unwrap().iter();
        all.map(|it| it["id"].as_str().unwrap().to_owned())
            .collect()
    };
    let mut all = ids(&page);
    let cursor = page["next_cursor"].as_str().unwrap();
    let next = format!("{EVALUATIONS}?cursor={cursor}");
    all.extend(ids(&app.get(key, &next).await.expect(200)));
    assert_eq!(all.len(), 20);
    assert!(all.is_sorted_by(|a, b| a > b), "newest first");
    let refused = app.get(key, &format!("{EVALUATIONS}?cursor=x")).await;
    assert_eq!(refused.expect(400)["field"], "cursor");
    let other = app.partner("other").await;
    let path = format!("{EVALUATIONS}/{}", all[0]);
    for path in [EVALUATIONS, path.as_str(), &format!("{path}/results")] {
        app.get(&other.key, path).await.expect(403);
    }
    app.limit_storage("acme", 0).await;
    let refused = begin().await.expect(413);
    assert_eq!(refused["code"], "storage_limit_reached");
});

on_each_database!(
    a_search_shows_what_its_streams_and_a_character_read,
    |database| {
        let app = start_working(builder(&database)).await;
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let lions = add(&app, key, "Lions", LIONS).await;
        add(&app, key, "Hours", HOURS).await;
        settled(&app, key).await;
        let ask = async |changes: Value| {
            let mut body =
                json!({"partner": "acme", "kb": "manual", "user_message": "When do lions sleep?"});
            let changes = changes.as_object().unwrap().clone();
            body.as_object_mut().unwrap().extend(changes);
            app.post(key, "/api/rag-test/search", body).await
        };
        let plain = ask(json!({})).await.expect(200);
        let first = &plain["streams"][0]["results"][0];
        assert_eq!(
            (first.get("text"), first.get("document_name")),
            (None, None)
        );
        let prompt = &plain["prompt"];
        let text = prompt["text"].as_str().unwrap();
        assert_eq!(prompt["ranks"][0], 1);
        assert!(text.contains("<passage title=\"Lions"), "{text}");
        assert!(text.contains("twenty hours"), "{text}");
        for result in plain["combined_results"].as_array().unwrap() {
            let shares = result["shares"].as_array().unwrap().iter();
            let sum: f64 = shares.map(|share| share["share"].as_f64().unwrap()).sum();
            close(&result["fusion_score"], sum);
        }

        let shown = ask(json!({"stream_texts": 1})).await.expect(200);
        for stream in shown["streams"].as_array().unwrap() {
            for hit in stream["results"].as_array().unwrap() {
                let is_first = hit["rank"] == 1;
                assert_eq!(hit.get("text").is_some(), is_first, "{stream}");
                assert_eq!(hit.get("path").is_some(), is_first);
            }
        }
        let mut words = shown["streams"].as_array().unwrap().iter();
        let words = words.find(|stream| stream["retriever"] == "bm25");
        let first = &words.unwrap()["results"][0];
        assert_eq!(
            (&first["document_id"], &first["document_name"]),
            (&json!(lions), &json!("Lions"))
        );
        assert!(first["text"].as_str().unwrap().contains("sleep"), "{first}");
        let refused = ask(json!({"stream_texts": 51})).await.expect(400);
        assert_eq!(refused["field"], "stream_texts");

        let nothing = ask(json!({"user_message": "bicycles"})).await.expect(200);
        assert_eq!(nothing["prompt"], json!({"ranks": [], "text": ""}));
    }
);
