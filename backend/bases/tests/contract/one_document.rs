//! What a page about one document reads.

use super::*;

/// Checks who may read a path below `/api` that ends in a base and a document.
async fn is_guarded(app: &App, key: &str, route: &str, id: &str) {
    let path = format!("/api/{route}/{BASE}/{id}");
    app.get(key, &path).await.expect(200);
    for query in ["limit=0", "limit=101", "name=x", "cursor=x", "cursor=-1"] {
        let refused = app.get(key, &format!("{path}?{query}")).await.expect(400);
        let (field, _) = query.split_once('=').unwrap();
        assert_eq!(refused["field"], field, "{refused}");
    }
    for missing in [
        format!("/api/{route}/{BASE}/none"),
        format!("/api/{route}/acme/none/{id}"),
    ] {
        app.get(key, &missing).await.expect(404);
    }
    let other = app.partner("other").await;
    app.get(&other.key, &path).await.expect(403);
    // A base of another partner has the name, and not the document.
    let base = fields(&[("name", "manual")]);
    post(app, &other.key, "/api/knowledgebases/other", base)
        .await
        .expect(201);
    let foreign = format!("/api/{route}/other/manual/{id}");
    app.get(&other.key, &foreign).await.expect(404);
    let calls = app.key("acme", json!({"name": "calls", "scopes": ["calls"]}));
    let calls = calls.await["api_key"].as_str().unwrap().to_owned();
    app.get(&calls, &path).await.expect(403);
}

/// A text of many chunks.
fn long_text() -> String {
    let section = |number: usize| {
        let words = format!("Enclosure {number} has animals that eat hay. ").repeat(40);
        format!("# Enclosure {number}\n\n{words}\n\n")
    };
    (0..12).map(section).collect()
}

on_each_database!(chunks_are_listed_as_they_were_embedded, |database| {
    let app = start_working(builder(&database)).await;
    let key = furnished(&app).await.key;
    let text = long_text();
    let id = add(&app, &key, "Enclosures", &text).await;
    settled(&app, &key).await;
    let path = format!("/api/document-chunks/{BASE}/{id}");
    let whole = app.get(&key, &path).await.expect(200);
    let chunks = whole["chunks"].as_array().unwrap();
    assert!(chunks.len() > 10, "{}", chunks.len());
    assert_eq!(whole["total"], chunks.len());
    assert_eq!(
        (&whole["is_stale"], &whole["next_cursor"]),
        (&json!(false), &Value::Null)
    );
    assert!(whole["profile"].is_string() && whole["embedded_at"].is_string());
    for (index, chunk) in chunks.iter().enumerate() {
        assert_eq!(chunk["index"], index);
        let titles = chunk["path"].as_array().unwrap().iter();
        let titles: Vec<&str> = titles.map(|title| title.as_str().unwrap()).collect();
        assert_eq!(titles[0], "Enclosures", "{chunk}");
        let passage = format!(
            "{}\n{}",
            titles.join(" > "),
            chunk["text"].as_str().unwrap()
        );
        assert_eq!(chunk["passage"], passage);
        let at = |field: &str| usize::try_from(chunk[field].as_u64().unwrap()).unwrap();
        assert!(
            text[at("start")..at("end")].contains("Enclosure"),
            "{chunk}"
        );
        assert!(chunk["tokens"].as_u64().unwrap() > 0);
    }
    // Pages join.
    let (mut paged, mut next) = (Vec::new(), format!("{path}?limit=3"));
    loop {
        let page = app.get(&key, &next).await.expect(200);
        assert_eq!(page["total"], chunks.len());
        paged.extend(page["chunks"].as_array().unwrap().clone());
        let Some(cursor) = page["next_cursor"].as_str() else {
            break;
        };
        next = format!("{path}?limit=3&cursor={cursor}");
    }
    assert_eq!(paged, *chunks);
    let behind = app.get(&key, &format!("{path}?cursor=999")).await;
    assert_eq!(behind.expect(200)["chunks"], json!([]));

    is_guarded(&app, &key, "document-chunks", &id).await;
    let form = fields(&[("name", "Empty"), ("folder", "texts"), ("type", "file")]);
    let made = post(&app, &key, &format!("/api/documents/{BASE}/empty"), form).await;
    let empty = made.expect(201)["id"].as_str().unwrap().to_owned();
    let path_of_empty = format!("/api/document-chunks/{BASE}/{empty}");
    app.get(&key, &path_of_empty).await.expect(404);
    let stale = "UPDATE knowledge_manifests SET stale = TRUE";
    app.state.store.db().execute(stale).await.unwrap();
    assert_eq!(app.get(&key, &path).await.expect(200)["is_stale"], true);
    // A file that is none.
    let damaged = "UPDATE knowledge_manifests SET blob = (SELECT blob FROM knowledge_contents WHERE variant = 'digitized')";
    app.state.store.db().execute(damaged).await.unwrap();
    app.get(&key, &path).await.expect(500);
});

on_each_database!(chunks_are_charged_for, |database| {
    let least = 200 * 1024;
    let builder = builder(&database).config(|config| config.limits.body_memory_bytes = least);
    let app = start_working(builder).await;
    let key = furnished(&app).await.key;
    let small = add(&app, &key, "Hours", HOURS).await;
    settled(&app, &key).await;
    let large = add(&app, &key, "Enclosures", &long_text().repeat(6)).await;
    settled(&app, &key).await;
    let path = |id: &str| format!("/api/document-chunks/{BASE}/{id}?limit=1");
    app.get(&key, &path(&small)).await.expect(200);
    app.get(&key, &path(&large)).await.expect(413);
});

rule!(
    a_history_has_steps_and_requests,
    |budgeted: budgets::Budgeted| {
        use super::budgets::REWRITTEN;
        let (app, key) = (&budgeted.app, budgeted.key.as_str());
        let fault = Script::fault(Fault::Status(400));
        budgeted.upstream.script(Api::Chat, fault);
        let id = budgeted.add(1, &[REWRITTEN]).await;
        budgeted.becomes(&id, "failed").await;
        let path = format!("/api/document-history/{BASE}/{id}");
        let failed = app.get(key, &path).await.expect(200);
        let steps = |history: &Value| -> Vec<String> {
            let steps = history["steps"].as_array().unwrap().iter();
            let of = |step: &Value| {
                let word = |field: &str| step[field].as_str().unwrap().to_owned();
                format!("{} {}", word("step"), word("state"))
            };
            steps.rev().map(of).collect()
        };
        let begin = [
            "digitize queued",
            "digitize done",
            "rewrite queued",
            "rewrite failed",
        ];
        assert_eq!(steps(&failed), begin, "{failed}");
        let newest = &failed["steps"][0];
        let why = newest["reason"].as_str().unwrap();
        let error = budgeted.document(&id).await["processing_error"].clone();
        assert!(error.as_str().unwrap().starts_with(why), "{why}: {error}");
        assert!(newest["at"].is_string());
        assert_eq!(failed["steps"][1]["reason"], Value::Null);

        let text = Script::text("A text about animals, rewritten.");
        budgeted.upstream.set_default(Api::Chat, text);
        app.advance(Duration::from_secs(1));
        let retry = format!("/api/documents/{BASE}/{id}/retry");
        app.post(key, &retry, Value::Null).await.expect(200);
        budgeted.becomes(&id, "ready").await;
        let ready = app.get(key, &path).await.expect(200);
        let all = [
            begin.as_slice(),
            &[
                "rewrite queued",
                "rewrite done",
                "embed queued",
                "embed done",
            ],
        ];
        assert_eq!(steps(&ready), all.concat(), "{ready}");
        let requests = ready["requests"].as_array().unwrap();
        let kinds: Vec<_> = requests
            .iter()
            .map(|it| (&it["kind"], &it["outcome"]))
            .collect();
        let (embed, rewrite) = (json!("embed"), json!("rewrite"));
        let (success, fault) = (json!("success"), json!("fault"));
        // Both at one time, so in the order of their ids.
        assert_eq!(
            kinds[..2],
            [(&rewrite, &success), (&embed, &success)],
            "{ready}"
        );
        assert!(
            kinds[2..].iter().all(|it| *it == (&rewrite, &fault)),
            "{ready}"
        );
        let embedded = &requests[1];
        assert!(embedded["input_tokens"].as_i64().unwrap() > 0);
        assert!(embedded["cost_usd"].is_string() && embedded["settled_at"].is_string());
        assert_eq!(
            (&embedded["unknown"], &embedded["seconds"]),
            (&json!(false), &Value::Null)
        );
        // Pages join; steps are on the first one.
        let (mut paged, mut next) = (Vec::new(), format!("{path}?limit=1"));
        loop {
            let page = app.get(key, &next).await.expect(200);
            assert_eq!(page["steps"].is_array(), paged.is_empty());
            paged.extend(page["requests"].as_array().unwrap().clone());
            let Some(cursor) = page["next_cursor"].as_str() else {
                break;
            };
            next = format!("{path}?limit=1&cursor={cursor}");
        }
        assert_eq!(paged, *requests);
        let sql = "UPDATE knowledge_usage SET outcome = 'pending', settled_at = NULL WHERE id = $1";
        let sent = embedded["id"].as_str().unwrap();
        let sent = colloquy_store::statement(sql, [sent.into()]);
        app.state.store.db().execute(sent).await.unwrap();
        let pending = &app.get(key, &path).await.expect(200)["requests"][1];
        assert_eq!(
            (&pending["outcome"], &pending["settled_at"]),
            (&Value::Null, &Value::Null)
        );
        is_guarded(app, key, "document-history", &id).await;
    }
);

on_each_database!(words_of_a_recording_have_times, |database| {
    let app = start_working(builder(&database)).await;
    let key = furnished(&app).await.key;
    let id = add(&app, &key, "Hours", HOURS).await;
    settled(&app, &key).await;
    let path = format!("/api/document-transcript/{BASE}/{id}");
    let none = app.get(&key, &path).await.expect(200);
    assert_eq!(none, json!({"segments": [], "next_cursor": null}));
    let described = app.get(&key, &format!("/api/document/{BASE}/{id}")).await;
    let original = described.expect(200)["content_hash"].clone();
    let original = original.as_str().unwrap();
    let put = "INSERT INTO knowledge_transcripts (document_id, source, begin_sample, end_sample, words) VALUES ($1, $2, $3, $4, $5)";
    let parts = [
        (original, 0, 16_000, ""),
        (original, 16_000, 40_000, " We open at nine. "),
        (original, 40_000, 56_000, " "),
        (original, 56_000, 88_000, "And close at six."),
        ("another original", 16_000, 32_000, "Old words"),
    ];
    for (source, begin, end, words) in parts {
        let values = [
            id.as_str().into(),
            source.into(),
            i64::from(begin).into(),
            i64::from(end).into(),
            words.into(),
        ];
        let part = colloquy_store::statement(put, values);
        app.state.store.db().execute(part).await.unwrap();
    }
    let segments = json!([
        {"begin_ms": 1_000, "end_ms": 2_500, "text": "We open at nine."},
        {"begin_ms": 3_500, "end_ms": 5_500, "text": "And close at six."},
    ]);
    let whole = app.get(&key, &path).await.expect(200);
    assert_eq!(whole["segments"], segments);
    let first = app.get(&key, &format!("{path}?limit=1")).await.expect(200);
    assert_eq!(first["segments"], json!([segments[0]]));
    let cursor = first["next_cursor"].as_str().unwrap();
    let next = app
        .get(&key, &format!("{path}?limit=1&cursor={cursor}"))
        .await;
    assert_eq!(
        next.expect(200),
        json!({"segments": [segments[1]], "next_cursor": null})
    );
    is_guarded(&app, &key, "document-transcript", &id).await;
});
