//! Bases, their folders and documents: what comes in, and how it goes.

use super::*;

on_each_database!(a_file_that_is_refused_leaves_the_others_alone, |database| {
    let app = start_working(builder(&database)).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    for (name, bytes, why) in [
        ("a.zip", b"PK\x03\x04".to_vec(), "archives"),
        (
            "a.exe",
            b"MZ".to_vec(),
            r#"files of the type \"exe\" are not supported"#,
        ),
        (
            "README",
            b"Read me.".to_vec(),
            "a file without an extension is not supported",
        ),
        ("a.pdf", b"plain text".to_vec(), "the name says PDF"),
        ("a.txt", Vec::new(), "empty"),
        ("a.pptx", sample("docx/word_sample.docx"), "PowerPoint"),
    ] {
        let refused = upload(&app, key, name, bytes).await.expect(400);
        let message = refused["detail"].to_string();
        assert!(message.contains(why), "{name}: {refused}");
    }
    let form = fields(&[("folder", "texts"), ("names", "First"), ("names", "")])
        .part("files", file("a.md", "# A\n\nOne."))
        .part("files", file("b.zip", "PK\x03\x04"))
        .part("files", file("c.txt", "Three."));
    let path = "/api/documents/acme/manual/files/batch";
    let batch = post(&app, key, path, form).await.expect(200);
    assert_eq!(
        batch["summary"],
        json!({"total": 3, "succeeded": 2, "failed": 1})
    );
    let status: Vec<&Value> = (0..3).map(|at| &batch["results"][at]["status"]).collect();
    assert_eq!(status, ["success", "error", "success"]);
    let first = batch["results"][0]["document_id"].as_str().unwrap();
    assert_eq!(digitized(&app, key, first).await["name"], "First");
    let third = batch["results"][2]["document_id"].as_str().unwrap();
    assert_eq!(digitized(&app, key, third).await["name"], "c.txt");
    nothing_is_pending(&app).await;
    app.state.blobs.sweep().await.unwrap();
    let empty = fields(&[("folder", "texts")]);
    assert_eq!(
        post(&app, key, path, empty).await.expect(400)["detail"][0]["field"],
        Value::Null
    );
});

on_each_database!(documents_are_written_and_renamed, |database| {
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let form = fields(&[("name", "Notes"), ("folder", "texts"), ("type", "file")]);
    let path = "/api/documents/acme/manual/empty";
    let made = post(&app, key, path, form).await.expect(201);
    assert_eq!(made["status"], "empty");
    let document = format!(
        "/api/documents/acme/manual/{}",
        made["id"].as_str().unwrap()
    );
    let content = format!("{document}/content/digitized");
    let written = put(&app, key, &content, &[("content", "Zwölf Boxkämpfer")]).await;
    assert_eq!(written.expect(200)["digitized_chars"], 16);
    let long = [
        ("content", "Zwölf Boxkämpfer jagen"),
        ("character_limit", "16"),
    ];
    let refused = put(&app, key, &content, &long).await.expect(403);
    assert_eq!(refused["detail"], "QUOTA_EXCEEDED:knowledge_chars");
    let kept = app.get(key, &content).await.expect(200);
    assert_eq!(kept["content"], "Zwölf Boxkämpfer");
    put(
        &app,
        key,
        &format!("{document}/content/draft"),
        &[("content", "x")],
    )
    .await
    .expect(400);

    let renamed = put(&app, key, &format!("{document}/name"), &[("name", "Plan")]).await;
    assert_eq!(renamed.expect(200)["name"], "Plan");
    put(&app, key, &format!("{document}/name"), &[("name", " ")])
        .await
        .expect(400);
    put(&app, key, &format!("{document}/type"), &[("type", "url")])
        .await
        .expect(200);
    put(&app, key, &format!("{document}/type"), &[("type", "tape")])
        .await
        .expect(400);
    let url = [("url", "https://a.example/b")];
    let renamed = put(&app, key, &format!("{document}/url"), &url)
        .await
        .expect(200);
    assert_eq!(
        (&renamed["type"], &renamed["url"]),
        (&json!("url"), &json!(url[0].1))
    );
    let url = [("url", "ftp://a.example")];
    put(&app, key, &format!("{document}/url"), &url)
        .await
        .expect(400);
});

// A document that is being worked on goes when that has ended.
on_each_database!(a_deletion_waits_for_work_that_runs, |database| {
    let app = start_working(builder(&database)).await;
    let acme = furnished(&app).await;
    let form = fields(&[("name", "Notes"), ("folder", "texts"), ("type", "file")]);
    let made = post(&app, &acme.key, "/api/documents/acme/manual/empty", form).await;
    let made = made.expect(201);
    let id = made["id"].as_str().unwrap();
    let db = app.state.store.db();
    let mark = |step: &str| format!("UPDATE knowledge_documents SET digitizing = '{step}'");
    db.execute(mark("running")).await.unwrap();
    let document = format!("/api/documents/acme/manual/{id}");
    let path = format!("{document}?force=false");
    app.delete(&acme.key, &path).await.expect(409);
    let pending = app.delete(&acme.key, &document).await.expect(200);
    assert_eq!(pending["status"], "delete_pending");
    let process = "/api/queue/process?partner=acme&kb=manual";
    let body = json!({"document": {"id": id}});
    for action in ["digitize", "rewrite"] {
        let path = format!("{process}&action={action}");
        app.post(&acme.key, &path, body.clone()).await.expect(409);
    }
    let pending = app
        .delete(&acme.key, "/api/folders/acme/manual/texts")
        .await;
    let expected = json!({"status": "delete_pending", "pending": {"active_documents": 1}});
    assert_eq!(pending.expect(200), expected);
    let data = app.get(&acme.key, &format!("/api/kb-data/{BASE}")).await;
    let data = data.expect(200);
    assert_eq!(
        (&data["folders"], &data["pending_folder_deletions"]),
        (&json!([]), &json!(["texts"])),
        "{data}"
    );
    assert_eq!(data["name"], "manual");
    assert_eq!(data["folder_details"], json!([]));
    assert_eq!(data["embedding_info"]["embedded_document_count"], 0);
    assert_eq!(data["documents"][0]["id"], made["id"]);
    assert!(data["documents"][0]["deletion_requested_at"].is_string());
    let form = fields(&[("name", "More"), ("folder", "texts"), ("type", "file")]);
    let late = post(&app, &acme.key, "/api/documents/acme/manual/empty", form).await;
    late.expect(409);
    // It is looked for every two seconds whether the work has ended.
    app.run_due_jobs().await;
    app.advance(Duration::from_secs(2));
    app.run_due_jobs().await;
    assert_eq!(rows(&app, "knowledge_folders").await, 1);
    db.execute(mark("done")).await.unwrap();
    app.advance(Duration::from_secs(2));
    eventually("the folder goes", async || {
        rows(&app, "knowledge_folders").await == 0
    })
    .await;
    assert_eq!(rows(&app, "knowledge_documents").await, 0);
});

on_each_database!(bases_are_made_as_the_document_says, |database| {
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let path = "/api/knowledgebases/acme";
    for (form, field) in [
        (vec![("expert_name", "Ada")], "name"),
        (vec![("name", "a/b")], "name"),
        (
            vec![("name", "b"), ("character_limit", "-1")],
            "character_limit",
        ),
        (vec![("name", "b"), ("token_limit", "1.5")], "token_limit"),
        (
            vec![("name", "b"), ("dollar_limit_usd", "0.123456789")],
            "dollar_limit_usd",
        ),
        (vec![("name", "b"), ("user_email", "nobody")], "user_email"),
        (vec![("name", "b"), ("colour", "red")], "colour"),
    ] {
        let refused = post(&app, key, path, fields(&form)).await.expect(400);
        assert!(refused.to_string().contains(field), "{form:?}: {refused}");
    }
    let form = fields(&[
        ("name", "知識 1"),
        ("character_limit", "0"),
        ("dollar_limit_usd", "1.50000001"),
        ("user_email", "a@b.example"),
    ]);
    post(&app, key, path, form).await.expect(201);
    post(&app, key, path, fields(&[("name", "manual")]))
        .await
        .expect(409);
    let listed = app.get(key, path).await.expect(200);
    let names: Vec<&Value> = (0..2).map(|at| &listed[at]["name"]).collect();
    assert_eq!(names, ["manual", "知識 1"]);
    let folders = "/api/folders/acme/%E7%9F%A5%E8%AD%98%201";
    assert_eq!(
        app.get(key, folders).await.expect(200),
        json!({"folders": []})
    );
    let types = send(app.request(Method::GET, "/api/content_types"))
        .await
        .expect(200);
    assert_eq!(types["content_types"][0]["id"], "auto");
});

// Nobody reads what is another partner's, whatever the paths say.
on_each_database!(bases_belong_to_their_partner, |database| {
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let made = upload(&app, &acme.key, "a.txt", b"secret".to_vec())
        .await
        .expect(201);
    let id = made["id"].as_str().unwrap();
    let other = app.partner("other").await;
    let form = fields(&[("name", "manual")]);
    post(&app, &other.key, "/api/knowledgebases/other", form)
        .await
        .expect(201);
    for partner in ["acme", "other"] {
        for path in [
            format!("/api/document/{partner}/manual/{id}"),
            format!("/api/documents/{partner}/manual/{id}/content/original"),
            format!("/api/documents/{partner}/manual/{id}/download/original"),
        ] {
            let answer = app.get(&other.key, &path).await;
            answer.expect(if partner == "acme" { 403 } else { 404 });
        }
    }
    let path = format!("/api/documents/other/manual/{id}");
    app.delete(&other.key, &path).await.expect(404);
    app.get(&acme.key, &format!("/api/document/acme/manual/{id}"))
        .await
        .expect(200);
});
