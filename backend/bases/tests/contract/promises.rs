//! What knowledge bases promise, by name: the same cases on SQLite and on PostgreSQL. Those of budgets are in `budgets`, those of channels in
//! `channels`. Lists have no pages.

use std::io::{Cursor, Read as _};

use super::{
    budgets::{Budgeted, CHARACTERS, FINAL, REWRITTEN, is_blocked},
    *,
};

impl Budgeted {
    /// `GET` of a path below the API, with this base in it.
    async fn read(&self, kind: &str, below: &str) -> Answer {
        let path = format!("/api/{kind}/{BASE}{below}");
        self.app.get(&self.key, &path).await
    }

    async fn write(&self, id: &str, variant: &str, text: &str) -> Answer {
        let path = format!("/api/documents/{BASE}/{id}/content/{variant}");
        put(&self.app, &self.key, &path, &[("content", text)]).await
    }

    async fn content(&self, id: &str, variant: &str) -> String {
        let below = format!("/{id}/content/{variant}");
        let content = self.read("documents", &below).await.expect(200)["content"].clone();
        content.as_str().unwrap().to_owned()
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.app.post(&self.key, path, body).await
    }

    async fn delete(&self, below: &str) -> Answer {
        let path = format!("/api/documents/{BASE}/{below}");
        self.app.delete(&self.key, &path).await
    }

    /// Makes a document without a content.
    async fn empty(&self, name: &str) -> String {
        let form = fields(&[("name", name), ("folder", "texts"), ("type", "file")]);
        let path = format!("/api/documents/{BASE}/empty");
        let made = post(&self.app, &self.key, &path, form).await.expect(201);
        made["id"].as_str().unwrap().to_owned()
    }

    async fn ids(&self) -> Vec<String> {
        let listed = self.read("documents", "").await.expect(200);
        let listed = listed["documents"].as_array().unwrap().iter();
        listed
            .map(|it| it["id"].as_str().unwrap().to_owned())
            .collect()
    }
}

rule!(
    folders_are_listed_by_name_and_go_with_what_is_in_them,
    |it: Budgeted| {
        let path = format!("/api/folders/{BASE}");
        for (name, status) in [
            ("Ärzte", 201),
            ("b c", 201),
            ("texts", 409),
            ("a/b", 400),
            (" ", 400),
        ] {
            let made = post(&it.app, &it.key, &path, fields(&[("name", name)])).await;
            made.expect(status);
        }
        let listed = it.read("folders", "").await.expect(200);
        let mut names: Vec<String> = serde_json::from_value(listed["folders"].clone()).unwrap();
        assert_eq!(names.len(), 3, "{names:?}");
        names.sort();
        assert_eq!(names, ["b c", "texts", "Ärzte"]);
        let id = it.add(1, &[FINAL]).await;
        it.becomes(&id, "ready").await;
        let gone = it.app.delete(&it.key, &format!("{path}/texts")).await;
        assert_eq!(gone.expect(200), json!({"status": "deleted"}));
        assert_eq!(it.ids().await, [""; 0]);
        it.app
            .delete(&it.key, &format!("{path}/texts"))
            .await
            .expect(404);
        let budget = it.budget().await;
        assert_eq!(budget["characters"]["consumed"], 0);
        assert_ne!(budget["tokens"]["consumed"], 0);
    }
);

rule!(
    each_variant_of_a_content_is_written_and_read,
    |it: Budgeted| {
        let id = it.empty("Notes").await;
        for variant in ["original", "digitized", "rewritten"] {
            it.read("documents", &format!("/{id}/content/{variant}"))
                .await
                .expect(404);
        }
        let file = Form::new().part("file", file("original.md", "# The original"));
        let path = format!("/api/documents/{BASE}/{id}/content/original");
        post(&it.app, &it.key, &path, file).await.expect(200);
        assert_eq!(
            it.document(&id).await["digitize_status"],
            "none",
            "it is read when it is asked for"
        );
        it.write(&id, "digitized", "# The text").await.expect(200);
        it.write(&id, "rewritten", "# What is found")
            .await
            .expect(200);
        it.write(&id, "draft", "x").await.expect(400);
        it.write(&id, "extracted", "x").await.expect(400);
        it.becomes(&id, "ready").await;
        assert_eq!(it.content(&id, "original").await, "# The original");
        assert_eq!(it.content(&id, "digitized").await, "# The text");
        assert_eq!(it.content(&id, "rewritten").await, "# What is found");
        let made = it.document(&id).await;
        assert_eq!(
            (&made["digitized_chars"], &made["rewritten_chars"]),
            (&json!(10), &json!(15))
        );
        // The original is read again in the place of the text; what is found stays.
        let process = "/api/queue/process?partner=acme&kb=manual";
        it.post(process, json!({"document": {"id": id}}))
            .await
            .expect(200);
        it.becomes(&id, "ready").await;
        assert_eq!(it.content(&id, "digitized").await.trim(), "# The original");
        assert_eq!(it.content(&id, "rewritten").await, "# What is found");
    }
);

rule!(
    uploads_say_what_they_lack_and_are_listed_in_their_order,
    |it: Budgeted| {
        let path = format!("/api/documents/{BASE}");
        for (form, status) in [
            (
                fields(&[("type", "file"), ("folder", "none")]).part("file", file("a.md", "a")),
                400,
            ),
            (
                fields(&[("type", "file")]).part("file", file("a.md", "a")),
                400,
            ),
            (fields(&[("type", "file"), ("folder", "texts")]), 400),
            (
                fields(&[("type", "tape"), ("folder", "texts")]).part("file", file("a.md", "a")),
                400,
            ),
        ] {
            post(&it.app, &it.key, &path, form).await.expect(status);
        }
        let first = it.add(1, &[]).await;
        let form = fields(&[("folder", "texts")])
            .part("files", file("b.md", "b"))
            .part("files", file("c.md", "c"));
        let batch = post(&it.app, &it.key, &format!("{path}/files/batch"), form).await;
        let batch = batch.expect(200);
        let id = |at: usize| {
            batch["results"][at]["document_id"]
                .as_str()
                .unwrap()
                .to_owned()
        };
        let last = it.empty("Last").await;
        assert_eq!(it.ids().await, [first, id(0), id(1), last.clone()]);
        it.settled(&last).await;
        assert_eq!(it.document(&last).await["status"], "empty");
        assert_eq!(it.document(&id(1)).await["status"], "digitized");
        let stats = it.read("kb-stats", "").await.expect(200);
        assert_eq!(stats["document_count"], 4, "{stats}");
    }
);

rule!(
    a_deletion_waits_for_a_model_that_is_asked,
    |it: Budgeted| {
        let held = it.upstream.hold(Api::Embeddings);
        let (id, other) = (it.add(1, &[FINAL]).await, it.add(2, &[FINAL]).await);
        eventually("vectors are asked for", async || {
            it.asked(Api::Embeddings) == 2
        })
        .await;
        it.delete(&format!("{id}?force=false")).await.expect(409);
        let gone = it.delete(&id).await.expect(200);
        assert_eq!(
            gone,
            json!({"status": "delete_pending", "pending": {"active_documents": 1}})
        );
        assert_eq!(it.document(&id).await["status"], "delete_pending");
        drop(held);
        it.becomes(&other, "ready").await;
        // It is looked for every two seconds whether the work has ended.
        it.app.run_due_jobs().await;
        it.app.advance(Duration::from_secs(2));
        eventually("it is gone", async || it.ids().await == [other.as_str()]).await;
        it.delete(&id).await.expect(404);
        // What was asked for it is paid for.
        let budget = it.budget().await;
        assert_eq!(budget["tokens"]["reserved"], 0, "{budget}");
        assert_eq!(
            rows(&it.app, "knowledge_usage WHERE outcome = 'success'").await,
            2
        );
        it.delete(&format!("{other}?force=false")).await.expect(200);
        assert_eq!(rows(&it.app, "knowledge_contents").await, 0);
    }
);

rule!(a_bundle_has_the_final_contents, |it: Budgeted| {
    let (first, second) = (it.add(1, &[FINAL]).await, it.add(2, &[]).await);
    it.settled(&second).await;
    let path = format!("/api/documents/{BASE}/rewritten-bundle");
    let bundle = it.app.request(Method::GET, &path).bearer_auth(&it.key);
    let bundle = bundle.send().await.bytes().await.unwrap();
    let mut bundle = zip::ZipArchive::new(Cursor::new(bundle)).unwrap();
    assert_eq!(bundle.len(), 2, "the other has no final content");
    let mut read = |name: &str| {
        let mut text = String::new();
        bundle
            .by_name(name)
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        text
    };
    assert_eq!(
        read(&format!("{first}.md")),
        it.content(&first, "rewritten").await
    );
    let info: Value = serde_json::from_str(&read("documents_info.json")).unwrap();
    assert_eq!(info["documents"][0]["document_id"], first, "{info}");
    assert_eq!(info["documents"][0]["characters"], CHARACTERS);
});

rule!(
    embeddings_that_failed_are_made_when_that_is_wanted,
    |it: Budgeted| {
        it.upstream
            .script(Api::Embeddings, Script::fault(Fault::Status(400)));
        let failed = it.add(1, &[FINAL]).await;
        it.becomes(&failed, "failed").await;
        let made = it.add(2, &[FINAL]).await;
        it.becomes(&made, "ready").await;
        let info = it.read("embedding", "").await.expect(200);
        let counts = ["eligible", "pending", "failed", "embedded"];
        let counts = counts.map(|count| info[format!("{count}_document_count")].clone());
        assert_eq!(counts, [2, 0, 1, 1].map(|count| json!(count)), "{info}");
        assert_eq!(info["embedding_profile_name"], "scripted-embeddings");
        let error = it.document(&failed).await["processing_error"].clone();
        assert_eq!(error, "scripted-embeddings refuses the document");
        // It was refused, so it cost nothing.
        assert_eq!(
            rows(
                &it.app,
                "knowledge_usage WHERE outcome = 'fault' AND cost = 0"
            )
            .await,
            1
        );
        let retry = format!("/api/embedding/{BASE}/retry-failed");
        assert_eq!(it.post(&retry, json!({})).await.expect(200)["queued"], 1);
        let ready = it.becomes(&failed, "ready").await;
        assert_eq!(ready["processing_error"], Value::Null);
        assert_eq!(it.post(&retry, json!({})).await.expect(200)["queued"], 0);
    }
);

rule!(
    the_table_of_contents_has_headings_and_states,
    |it: Budgeted| {
        let id = it.empty("Stable").await;
        it.write(
            &id,
            "rewritten",
            "# Animals\n\nAll.\n\n## Lions\n\nThey sleep.\n",
        )
        .await
        .expect(200);
        it.becomes(&id, "ready").await;
        let bare = it.empty("Bare").await;
        let contents = it.read("toc", "").await.expect(200);
        assert_eq!(
            contents["documents"].as_array().unwrap().len(),
            1,
            "{contents}"
        );
        let animals = &contents["documents"][0]["contents"][0];
        assert_eq!(
            (&animals["title"], &animals["level"]),
            (&json!("Animals"), &json!(1))
        );
        assert_eq!(animals["children"][0]["title"], "Lions", "{contents}");
        let contents = it.read("toc", "?include_status=true").await.expect(200);
        let states: Vec<(&Value, &Value)> = contents["documents"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| (&it["document_id"], &it["status"]["embedding_status"]))
            .collect();
        let expected = [(&json!(id), &json!("done")), (&json!(bare), &json!("none"))];
        assert_eq!(states, expected);
    }
);

rule!(what_is_found_is_what_is_there_now, |it: Budgeted| {
    let (first, second) = (it.empty("First").await, it.empty("Second").await);
    it.write(&first, "rewritten", "The automobile stands in the garage.")
        .await
        .expect(200);
    it.write(&second, "rewritten", "The feline sleeps on the sofa.")
        .await
        .expect(200);
    it.settled(&second).await;
    // By meaning, and by its words.
    assert_eq!(best(&it.app, &it.key, "car").await, "First");
    assert_eq!(best(&it.app, &it.key, "sofa").await, "Second");
    it.write(&first, "rewritten", "The carriage stands in the yard.")
        .await
        .expect(200);
    it.settled(&first).await;
    assert!(
        !search(&it.app, &it.key, "garage")
            .await
            .to_string()
            .contains("automobile")
    );
    assert_eq!(best(&it.app, &it.key, "carriage").await, "First");
    it.delete(&first).await.expect(200);
    let names = found(&it.app, &it.key, "carriage yard").await;
    assert!(!names.contains(&"First".to_owned()), "{names:?}");
});

rule!(duplicates_are_those_that_are_there, |it: Budgeted| {
    let (first, second) = (it.add(1, &[]).await, it.add(1, &[]).await);
    let other = it.add(2, &[]).await;
    it.settled(&other).await;
    let of = async |id: &str| it.document(id).await["duplicate_document_ids"].clone();
    assert_eq!(of(&first).await, json!([second]));
    assert_eq!(of(&second).await, json!([first]));
    assert_eq!(of(&other).await, json!([]));
    it.delete(&first).await.expect(200);
    assert_eq!(of(&second).await, json!([]));
});

rule!(
    a_folder_is_rewritten_as_it_was_told_before,
    |it: Budgeted| {
        it.upstream
            .set_default(Api::Chat, Script::text("# Stable\n\nIt sleeps there."));
        let (first, second) = (it.add(1, &[]).await, it.add(2, &[FINAL]).await);
        it.settled(&second).await;
        let folder = format!("/api/bulk/rewrite/folder/{BASE}/texts");
        let told = it
            .post(&format!("{folder}?dry_run=true"), Value::Null)
            .await
            .expect(200);
        assert_eq!(
            (&told["status"], &told["queued"]),
            (&json!("dry_run"), &json!(0))
        );
        assert_eq!(told["estimate"]["documents"], 1, "{told}");
        assert_eq!(it.asked(Api::Chat), 0);
        let queued = it.post(&folder, Value::Null).await.expect(200);
        assert_eq!(
            queued["document_ids"],
            json!([first]),
            "the other has final content"
        );
        let ready = it.becomes(&first, "ready").await;
        assert_eq!(ready["rewrite_status"], "done", "{ready}");
        assert_eq!(
            it.content(&first, "rewritten").await,
            "# Stable\n\nIt sleeps there."
        );
        assert_eq!(it.asked(Api::Chat), 1);
        let none = format!("/api/bulk/rewrite/folder/{BASE}/none");
        it.post(&none, Value::Null).await.expect(404);
    }
);

rule!(
    a_text_that_is_written_before_the_original_was_read_stays,
    |it: Budgeted| {
        let id = it.add(1, &[FINAL]).await;
        it.write(&id, "digitized", "Somebody wrote this.")
            .await
            .expect(200);
        it.settled(&id).await;
        it.becomes(&id, "ready").await;
        for variant in ["digitized", "rewritten"] {
            assert_eq!(it.content(&id, variant).await, "Somebody wrote this.");
        }
    }
);

rule!(
    a_text_that_is_written_while_one_is_rewritten_is_rewritten,
    |it: Budgeted| {
        let answer = Script::text("# Stable\n\nIt sleeps there.");
        it.upstream.set_default(Api::Chat, answer);
        let held = it.upstream.hold(Api::Chat);
        let id = it.add(1, &[REWRITTEN]).await;
        eventually("a model is asked", async || it.asked(Api::Chat) == 1).await;
        it.write(&id, "digitized", "Somebody wrote this.")
            .await
            .expect(200);
        drop(held);
        let done = it.settled(&id).await;
        assert_eq!(done["status"], "ready", "nobody stopped the server: {done}");
        let asked = it.upstream.requests(Api::Chat);
        assert_eq!(asked.len(), 2);
        assert!(asked[1].body.to_string().contains("Somebody wrote this."));
        assert_eq!(it.budget().await["uncertain_operations"], 0);
    }
);

rule!(
    a_text_that_waits_needs_no_room_beside_the_one_it_replaces,
    |it: Budgeted| {
        let (first, second) = (it.add(1, &[]).await, it.add(2, &[]).await);
        it.settled(&second).await;
        // Each has 60 characters; one that has 120 fits beside nothing else.
        it.limit(json!({"character_limit": 2 * CHARACTERS})).await;
        let longer = "x".repeat(2 * CHARACTERS as usize);
        let waits = it.write(&first, "digitized", &longer).await.expect(200);
        assert_eq!(waits["status"], "budget_blocked");
        is_blocked(&it.document(&first).await, "digitize_status");
        it.delete(&second).await.expect(200);
        it.becomes(&first, "digitized").await;
        assert_eq!(it.content(&first, "digitized").await, longer);
    }
);

on_each_database!(
    a_document_that_is_being_deleted_does_not_tell_how_far_its_base_is_embedded,
    |database| {
        let app = start(&database).await;
        let key = furnished(&app).await.key;
        let urls = ["https://zoo.example/1", "https://zoo.example/2"];
        let body = json!({"folder": "texts", "urls": urls});
        let batch = format!("/api/documents/{BASE}/batch");
        let made = app.post(&key, &batch, body).await.expect(200);
        let id = |place: usize| made["results"][place]["document_id"].as_str().unwrap();
        let db = app.state.store.db();
        let sql = format!(
            "UPDATE knowledge_documents SET embedding = 'done' WHERE id = '{}'",
            id(0)
        );
        assert_eq!(db.execute(sql).await.unwrap(), 1);
        for embedding in ["queued", "running", "blocked", "failed"] {
            let sql = format!(
                "UPDATE knowledge_documents SET embedding = '{embedding}', deletion_requested_at = 1 WHERE id = '{}'",
                id(1)
            );
            assert_eq!(db.execute(sql).await.unwrap(), 1);
            let listed = app.get(&key, "/api/knowledgebases/acme").await.expect(200);
            let mut all = vec![listed[0].clone()];
            for path in ["documents", "kb-data"] {
                let read = app.get(&key, &format!("/api/{path}/{BASE}")).await;
                all.push(read.expect(200));
            }
            for base in &all {
                assert_eq!(base["embedding_status"], "success", "{embedding}: {base}");
            }
            let path = format!("/api/embedding/{BASE}");
            let info = app.get(&key, &path).await.expect(200);
            assert_eq!(info["pending_document_count"], 0, "{embedding}: {info}");
            assert_eq!(info["failed_document_count"], 0, "{embedding}: {info}");
        }
    }
);
