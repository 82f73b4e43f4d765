//! Answers with many documents, which are sent while they are read.

use std::{
    collections::HashSet,
    io::{Cursor, Read as _},
};

use test_routes::bases::{DOCUMENTS, add_many};

use super::*;

async fn run(app: &App, sql: String) {
    app.state
        .store
        .db()
        .execute(statement(sql, []))
        .await
        .unwrap();
}

fn ids(listed: &Value) -> Vec<&str> {
    let documents = listed["documents"].as_array().unwrap().iter();
    documents
        .map(|document| document["id"].as_str().unwrap())
        .collect()
}

on_each_database!(
    lists_of_several_pages_have_each_document_as_it_is,
    |database| {
        let app = start(&database).await;
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        post(
            &app,
            key,
            "/api/folders/acme/manual",
            fields(&[("name", "bare")]),
        )
        .await
        .expect(201);
        let path = format!("/api/documents/{BASE}/empty");
        let mut made = add_many(async |form| {
            app.advance(Duration::from_millis(1));
            post(&app, key, &path, form).await
        })
        .await;
        // The same original in the first page and in the last one, both of which have a text waiting.
        let lions = upload(&app, key, "lions.txt", b"Lions eat meat.".to_vec()).await;
        made.push(lions.expect(201)["id"].as_str().unwrap().to_owned());
        let content = format!("/api/documents/{BASE}/{}/content/original", made[1]);
        let form = Form::new().part("file", file("lions.txt", "Lions eat meat."));
        post(&app, key, &content, form).await.expect(200);
        // Two of one time, the last of a page and the first of the next one.
        run(
            &app,
            format!(
                "UPDATE knowledge_documents SET created_at = (SELECT d.created_at FROM knowledge_documents d WHERE d.id = '{}') WHERE id = '{}'",
                made[63], made[64]
            ),
        )
        .await;
        run(
            &app,
            format!(
                "UPDATE knowledge_documents SET embedding = 'failed', embedding_error = 'it is broken', embedding_at = 1 WHERE id = '{}'",
                made[100]
            ),
        )
        .await;
        run(
            &app,
            format!(
                "UPDATE knowledge_documents SET deletion_requested_at = 1 WHERE id = '{}'",
                made[6]
            ),
        )
        .await;

        let answer = app.get(key, &format!("/api/documents/{BASE}")).await;
        assert!(!answer.headers.contains_key("content-length"));
        let listed = answer.expect(200);
        assert_eq!(ids(&listed), made);
        for document in listed["documents"].as_array().unwrap() {
            let id = document["id"].as_str().unwrap();
            let alone = app.get(key, &format!("/api/document/{BASE}/{id}")).await;
            assert_eq!(*document, alone.expect(200));
        }
        let duplicates = |nth: usize| &listed["documents"][nth]["duplicate_document_ids"];
        assert_eq!(*duplicates(1), json!([made[DOCUMENTS]]));
        assert_eq!(*duplicates(DOCUMENTS), json!([made[1]]));
        // Every sixth one has the first address; one of these is being deleted.
        let others = duplicates(0).as_array().unwrap();
        assert_eq!(others.len(), DOCUMENTS.div_ceil(6) - 2);
        assert!(others.contains(&json!(made[138])), "{others:?}");
        assert!(!others.contains(&json!(made[6])), "{others:?}");
        assert_eq!(listed["embedding_status"], "fail");
        let info = &listed["embedding_info"];
        assert_eq!(info["failed_document_count"], 1, "{info}");
        assert_eq!(info["last_error"], "it is broken");

        let all = app.get(key, &format!("/api/kb-data/{BASE}")).await;
        assert!(!all.headers.contains_key("content-length"));
        let all = all.expect(200);
        for field in ["documents", "embedding_status", "embedding_info", "name"] {
            assert_eq!(all[field], listed[field], "{field}");
        }
        assert_eq!(all["folders"], json!(["bare", "texts"]));
        let statistics = app.get(key, &format!("/api/kb-stats/{BASE}")).await;
        let statistics = statistics.expect(200);
        assert_eq!(statistics["document_count"], made.len(), "{statistics}");
        assert_eq!(statistics["error_count"], 1);
        let bulk = format!("/api/bulk/rewrite/kb/{BASE}?dry_run=true");
        let bulk = post(&app, key, &bulk, Form::new()).await.expect(200);
        let skipped = bulk["skipped_documents"].as_array().unwrap().iter();
        let skipped: HashSet<&str> = skipped
            .map(|skipped| skipped["document_id"].as_str().unwrap())
            .collect();
        assert_eq!(skipped.len(), made.len(), "{bulk}");
    }
);

on_each_database!(lists_of_an_empty_base_are_empty, |database| {
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    for path in ["documents", "kb-data"] {
        let listed = app.get(key, &format!("/api/{path}/{BASE}")).await;
        let listed = listed.expect(200);
        assert_eq!(listed["documents"], json!([]));
        assert_eq!(listed["embedding_status"], "none");
        assert_eq!(listed["embedding_info"]["eligible_document_count"], 0);
    }
    let all = app
        .get(key, &format!("/api/kb-data/{BASE}"))
        .await
        .expect(200);
    assert_eq!(all["folders"], json!(["texts"]));
    let statistics = app.get(key, &format!("/api/kb-stats/{BASE}")).await;
    assert_eq!(statistics.expect(200)["document_count"], 0);
});

on_each_database!(a_bundle_has_final_contents_of_all_pages, |database| {
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let path = format!("/api/documents/{BASE}/empty");
    let made = add_many(async |form| {
        app.advance(Duration::from_millis(1));
        post(&app, key, &path, form).await
    })
    .await;
    // More than a page of them.
    let finals: Vec<usize> = (0..DOCUMENTS).filter(|nth| nth % 10 < 5).collect();
    for &nth in &finals {
        let content = format!("/api/documents/{BASE}/{}/content/rewritten", made[nth]);
        let text = format!("Lion {nth}.");
        let written = put(&app, key, &content, &[("content", text.as_str())]).await;
        written.expect(200);
    }
    let path = format!("/api/documents/{BASE}/rewritten-bundle");
    let bundle = app.request(Method::GET, &path).bearer_auth(key);
    let bundle = bundle.send().await.bytes().await.unwrap();
    let mut bundle = zip::ZipArchive::new(Cursor::new(bundle)).unwrap();
    assert_eq!(bundle.len(), finals.len() + 1);
    let mut read = |name: &str| {
        let mut text = String::new();
        let mut file = bundle.by_name(name).unwrap();
        file.read_to_string(&mut text).unwrap();
        text
    };
    let info: Value = serde_json::from_str(&read("documents_info.json")).unwrap();
    let told = info["documents"].as_array().unwrap();
    assert_eq!(told.len(), finals.len(), "{info}");
    for (told, nth) in told.iter().zip(finals) {
        assert_eq!(told["document_id"], made[nth], "{info}");
        assert_eq!(told["name"], format!("Document {nth}"));
        assert_eq!(told["folder"], "texts");
        assert_eq!(told["type"], if nth % 3 == 0 { "url" } else { "file" });
        let file = told["file"].as_str().unwrap();
        assert_eq!(read(file), format!("Lion {nth}."));
    }
});

on_each_database!(
    a_list_breaks_off_if_its_base_is_deleted_meanwhile,
    |database| {
        let app = start(&database).await;
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let path = format!("/api/documents/{BASE}/empty");
        add_many(async |form| {
            app.advance(Duration::from_millis(1));
            post(&app, key, &path, form).await
        })
        .await;
        // Nothing reads ahead of whoever reads the body, and the list is larger than what any layer holds of it.
        let reason = "x".repeat(300_000);
        let sql = "UPDATE knowledge_documents SET processing_error = $1";
        let db = app.state.store.db();
        db.execute(statement(sql, [reason.as_str().into()]))
            .await
            .unwrap();
        let list = async || {
            let path = format!("/api/documents/{BASE}");
            let request = app.request(Method::GET, &path).bearer_auth(key);
            let listed = request.send().await;
            assert_eq!(listed.status().as_u16(), 200);
            listed
        };
        let (whole, cut) = (list().await, list().await);
        let whole = whole.bytes().await.unwrap();
        assert!(whole.len() > reason.len() * DOCUMENTS);
        let path = "/api/knowledgebases/acme/manual";
        let deleted = app.call(key, Method::DELETE, path, Value::Null).await;
        deleted.expect(200);
        assert!(cut.bytes().await.is_err());
        app.get(key, &format!("/api/documents/{BASE}"))
            .await
            .expect(404);
    }
);

on_each_database!(statistics_are_those_of_the_listed_documents, |database| {
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let path = format!("/api/documents/{BASE}/empty");
    let mut made = Vec::new();
    for name in ["a", "b", "c", "d", "e", "f"] {
        let form = fields(&[("name", name), ("folder", "texts"), ("type", "file")]);
        let document = post(&app, key, &path, form).await.expect(201);
        made.push(document["id"].as_str().unwrap().to_owned());
    }
    for (nth, variant, text) in [
        (0, "digitized", "Lions"),
        (0, "rewritten", "Lions eat meat."),
        (1, "digitized", "Ants"),
        (1, "original", "Ants."),
        (2, "digitized", "Bees fly."),
        (3, "rewritten", "Äther"),
    ] {
        let path = format!("/api/documents/{BASE}/{}/content/{variant}", made[nth]);
        let written = put(&app, key, &path, &[("content", text)]).await;
        written.expect(200);
    }
    for sql in [
        format!(
            "UPDATE knowledge_contents SET variant = 'draft' WHERE document_id = '{}' AND variant = 'digitized'",
            made[2]
        ),
        format!(
            "UPDATE knowledge_documents SET embedding = 'done' WHERE id = '{}'",
            made[0]
        ),
        // A step that waits has its own reason or none.
        format!(
            "UPDATE knowledge_documents SET embedding = 'blocked', processing_error = 'it is old', embedding_error = NULL WHERE id = '{}'",
            made[3]
        ),
        format!(
            "UPDATE knowledge_documents SET embedding = 'none', processing_error = 'it is broken' WHERE id = '{}'",
            made[4]
        ),
        format!(
            "UPDATE knowledge_documents SET embedding = 'failed', embedding_error = 'it is broken' WHERE id = '{}'",
            made[5]
        ),
    ] {
        run(&app, sql).await;
    }
    let listed = app.get(key, &format!("/api/documents/{BASE}")).await;
    let listed = listed.expect(200);
    let documents = listed["documents"].as_array().unwrap();
    let errors = documents
        .iter()
        .filter(|document| !document["processing_error"].is_null());
    assert_eq!(errors.count(), 2, "{listed}");
    let statistics = app.get(key, &format!("/api/kb-stats/{BASE}")).await;
    assert_eq!(
        statistics.expect(200),
        json!({
            "document_count": 6, "digitized_count": 2, "draft_rewrite_count": 1, "final_rewrite_count": 2,
            "total_digitized_chars": 9, "total_draft_rewrite_chars": 9, "total_final_rewrite_chars": 20,
            "error_count": 2, "embedded_count": 1,
        })
    );
});

on_each_database!(embedding_info_has_the_newest_change_and_error, |database| {
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let path = format!("/api/documents/{BASE}/empty");
    let mut made = Vec::new();
    for name in ["a", "b", "c", "d"] {
        let form = fields(&[("name", name), ("folder", "texts"), ("type", "file")]);
        let document = post(&app, key, &path, form).await.expect(201);
        made.push(document["id"].as_str().unwrap().to_owned());
    }
    let content = format!("/api/documents/{BASE}/{}/content/rewritten", made[0]);
    let written = put(&app, key, &content, &[("content", "Lions.")]).await;
    written.expect(200);
    let set = async |nth: usize, state: &str| {
        let id = &made[nth];
        let sql = format!("UPDATE knowledge_documents SET {state} WHERE id = '{id}'");
        run(&app, sql).await;
    };
    let info = async || {
        let path = format!("/api/embedding/{BASE}");
        app.get(key, &path).await.expect(200)
    };
    let expected = |status: &str, time: &str, error: &str, pending: usize, failed: usize| {
        json!([
            1,
            pending,
            failed,
            0,
            null,
            status,
            format!("1970-01-01T00:00{time}Z"),
            error
        ])
    };
    let told = |info: &Value| {
        json!([
            info["eligible_document_count"],
            info["pending_document_count"],
            info["failed_document_count"],
            info["embedded_document_count"],
            info["last_update_details"],
            info["last_update_status"],
            info["last_update_time"],
            info["last_error"],
        ])
    };
    set(0, "embedding = 'queued', embedding_at = NULL").await;
    set(
        1,
        "embedding = 'done', embedding_at = 4000, embedding_error = 'it was broken'",
    )
    .await;
    // Of those of one time, the oldest document counts.
    set(
        2,
        "embedding = 'failed', embedding_at = 5000, embedding_error = 'it is broken'",
    )
    .await;
    set(
        3,
        "embedding = 'done', embedding_at = 5000, embedding_error = 'it is another one'",
    )
    .await;
    let broken = "it is broken";
    assert_eq!(
        told(&info().await),
        expected("in_progress", ":05", broken, 1, 1)
    );
    set(0, "embedding = 'none'").await;
    assert_eq!(told(&info().await), expected("fail", ":05", broken, 0, 1));
    set(3, "deletion_requested_at = 1").await;
    set(2, "embedding_at = NULL").await;
    let was_broken = "it was broken";
    assert_eq!(
        told(&info().await),
        expected("success", ":04", was_broken, 0, 1)
    );
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_queued_for_a_base_is_of_all_its_pages() {
    let upstream = Upstream::start().await;
    for database in TestDatabase::both().await {
        let builder = builder(&database).config(|config| {
            upstream.offer(config);
            config.rewriting.model = Some("scripted-chat".to_owned());
        });
        let app = start_by(builder).await;
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let form = fields(&[("name", "a"), ("folder", "texts"), ("type", "file")]);
        let path = format!("/api/documents/{BASE}/empty");
        let made = post(&app, key, &path, form).await.expect(201);
        let id = made["id"].as_str().unwrap();
        let content = format!("/api/documents/{BASE}/{id}/content/digitized");
        let written = put(&app, key, &content, &[("content", "Lions eat meat.")]).await;
        written.expect(200);
        // Twice as many each time, all of one time: more than a page, and no text but that of the first.
        for turn in 0..9 {
            let sql = format!(
                "INSERT INTO knowledge_documents (id, base_id, folder_id, name, type, content_type, model_tier, auto_rewrite, \
                 use_original_as_rewritten, digitizing, rewriting, embedding, revision, created_at, updated_at, fetching) \
                 SELECT d.id || '-{turn}', d.base_id, d.folder_id, d.name, d.type, d.content_type, d.model_tier, d.auto_rewrite, \
                 d.use_original_as_rewritten, d.digitizing, 'failed', 'failed', d.revision, d.created_at, d.updated_at, d.fetching \
                 FROM knowledge_documents d"
            );
            run(&app, sql).await;
        }
        run(
            &app,
            format!("UPDATE knowledge_documents SET rewriting = 'failed', embedding = 'failed' WHERE id = '{id}'"),
        )
        .await;
        let listed = app.get(key, &format!("/api/documents/{BASE}")).await;
        let listed = listed.expect(200);
        let listed: HashSet<&str> = ids(&listed).into_iter().collect();
        assert_eq!(listed.len(), 512);
        let others = |answer: &Value| {
            let skipped = answer["skipped_documents"].as_array().unwrap().iter();
            let skipped =
                skipped.map(|skipped| skipped["document_id"].as_str().unwrap().to_owned());
            skipped.collect::<HashSet<String>>()
        };
        let expected: HashSet<String> = listed
            .iter()
            .filter(|listed| **listed != id)
            .map(|listed| (*listed).to_owned())
            .collect();

        let bulk = format!("/api/bulk/rewrite/kb/{BASE}?dry_run=true");
        let bulk = post(&app, key, &bulk, Form::new()).await.expect(200);
        assert_eq!(bulk["document_ids"], json!([id]));
        assert_eq!(bulk["estimate"]["documents"], 1);
        // A token for four characters.
        assert_eq!(bulk["estimate"]["output_tokens"], 4);
        assert_eq!(bulk["skipped"], 511);
        assert_eq!(others(&bulk), expected);

        let retry = "/api/rewriting/acme/retry-failed?kb=manual";
        let interrupted = format!("{retry}&interrupted=true");
        let none = app.post(key, &interrupted, json!({})).await.expect(200);
        assert_eq!((&none["queued"], &none["skipped"]), (&json!(0), &json!(0)));
        let again = app.post(key, retry, json!({})).await.expect(200);
        assert_eq!(again["document_ids"], json!([id]));
        assert_eq!(others(&again), expected);

        let retry = format!("/api/embedding/{BASE}/retry-failed");
        let again = app.post(key, &retry, json!({})).await.expect(200);
        assert_eq!(again["queued"], 512);
        let info = &again["embedding_info"];
        assert_eq!(
            (
                &info["pending_document_count"],
                &info["failed_document_count"]
            ),
            (&json!(512), &json!(0))
        );
    }
}
