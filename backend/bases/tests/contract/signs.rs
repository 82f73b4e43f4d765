//! What a document shows of contents that are not what they seem to be.

use super::*;

async fn warning(app: &App, key: &str, id: &str) -> String {
    let document = document(app, key, id).await;
    let warning = document["processing_warning"].as_str();
    warning.unwrap_or_default().to_owned()
}

async fn digitize(app: &App, key: &str, id: &str) -> Value {
    let process = "/api/queue/process?partner=acme&kb=manual";
    let body = json!({"document": {"id": id}});
    app.post(key, process, body).await.expect(200);
    digitized(app, key, id).await
}

on_each_database!(
    contents_that_are_older_than_what_they_are_made_of_say_so,
    |database| {
        let builder = builder(&database).config(|config| config.fetch.allow_private = true);
        let app = start_working(builder).await;
        let (origin, _site) = site().await;
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let made = upload(&app, key, "a.txt", b"Lions sleep.".to_vec()).await;
        let made = made.expect(201);
        let id = made["id"].as_str().unwrap();
        let document = digitized(&app, key, id).await;
        assert_eq!(document["processing_warning"], Value::Null, "{document}");

        // Another original.
        let content = format!("/api/documents/{BASE}/{id}/content");
        let original = format!("{content}/original");
        let written = put(&app, key, &original, &[("content", "Tigers swim.")]).await;
        let told = written.expect(200)["processing_warning"].clone();
        assert!(
            told.as_str().unwrap().contains("earlier original"),
            "{told}"
        );
        let document = digitize(&app, key, id).await;
        assert_eq!(document["processing_warning"], Value::Null, "{document}");

        // Another text below a final content.
        let written = format!("{content}/rewritten");
        put(&app, key, &written, &[("content", "Tigers swim well.")])
            .await
            .expect(200);
        settled(&app, key).await;
        assert_eq!(warning(&app, key, id).await, "");
        let text = format!("{content}/digitized");
        put(&app, key, &text, &[("content", "Bears play.")])
            .await
            .expect(200);
        let told = warning(&app, key, id).await;
        assert!(told.contains("earlier text"), "{told}");
        put(&app, key, &written, &[("content", "Bears play well.")])
            .await
            .expect(200);
        assert_eq!(warning(&app, key, id).await, "");

        // Another address.
        let form = fields(&[
            ("type", "url"),
            ("folder", "texts"),
            ("use_original_as_rewritten", "true"),
            ("url", &format!("{origin}/latin")),
        ]);
        let made = post(&app, key, &format!("/api/documents/{BASE}"), form).await;
        let made = made.expect(201);
        let id = made["id"].as_str().unwrap();
        settled(&app, key).await;
        assert_eq!(warning(&app, key, id).await, "");
        let path = format!("/api/documents/{BASE}/{id}/url");
        let lions = format!("{origin}/lions");
        let changed = put(&app, key, &path, &[("url", &lions)]).await;
        let told = changed.expect(200)["processing_warning"].clone();
        assert!(told.as_str().unwrap().contains("earlier address"), "{told}");
        digitize(&app, key, id).await;
        settled(&app, key).await;
        assert_eq!(warning(&app, key, id).await, "");
    }
);

on_each_database!(
    a_file_that_becomes_an_address_is_fetched_and_says_so_until_then,
    |database| {
        let builder = builder(&database).config(|config| config.fetch.allow_private = true);
        let app = start_working(builder).await;
        let (origin, _site) = site().await;
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let counted = format!("{origin}/counted.txt");
        let (kind, address) = (("type", "url"), ("url", counted.as_str()));
        let visit = |number: usize| format!("This is visit number {number}.");
        for (order, visits) in [([kind, address], [1, 2]), ([address, kind], [3, 4])] {
            let made = upload(&app, key, "a.txt", b"Lions sleep.".to_vec()).await;
            let made = made.expect(201);
            let id = made["id"].as_str().unwrap();
            digitized(&app, key, id).await;
            let change = async |field: (&str, &str)| {
                let path = format!("/api/documents/{BASE}/{id}/{}", field.0);
                put(&app, key, &path, &[field]).await.expect(200)
            };
            for field in order {
                assert_eq!(warning(&app, key, id).await, "");
                change(field).await;
            }
            let told = warning(&app, key, id).await;
            assert!(told.contains("earlier address"), "{told}");
            assert_eq!(text_of(&app, key, id).await, "Lions sleep.");
            digitize(&app, key, id).await;
            assert_eq!(text_of(&app, key, id).await, visit(visits[0]));
            assert_eq!(warning(&app, key, id).await, "");

            // What the address gave is the original of the file that it becomes.
            change(("type", "file")).await;
            assert_eq!(warning(&app, key, id).await, "");
            digitize(&app, key, id).await;
            assert_eq!(text_of(&app, key, id).await, visit(visits[0]));
            // It is what the address gave, and no other address.
            change(kind).await;
            assert_eq!(warning(&app, key, id).await, "");
            digitize(&app, key, id).await;
            assert_eq!(text_of(&app, key, id).await, visit(visits[1]));
        }
    }
);

on_each_database!(
    a_warning_of_an_earlier_original_or_address_ends_when_that_comes_back,
    |database| {
        let builder = builder(&database).config(|config| config.fetch.allow_private = true);
        let app = start_working(builder).await;
        let (origin, _site) = site().await;
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let made = upload(&app, key, "a.txt", b"Lions sleep.".to_vec()).await;
        let made = made.expect(201);
        let id = made["id"].as_str().unwrap();
        digitized(&app, key, id).await;
        let write = async |id: &str, variant: &str, text: &str| {
            let path = format!("/api/documents/{BASE}/{id}/content/{variant}");
            let written = put(&app, key, &path, &[("content", text)]).await;
            written.expect(200)["processing_warning"].clone()
        };
        let is_older = |told: &Value| {
            let told = told.as_str().unwrap_or_default();
            told.contains("earlier original")
        };
        // A text that somebody writes in the place of the old one is no reading of the new original.
        assert!(is_older(&write(id, "original", "Tigers swim.").await));
        assert!(is_older(&write(id, "digitized", "Lions snore.").await));
        assert_eq!(write(id, "original", "Lions sleep.").await, Value::Null);
        assert_eq!(write(id, "digitized", "Lions yawn.").await, Value::Null);

        // One that was written from the start stands by itself.
        let form = fields(&[("name", "own"), ("folder", "texts"), ("type", "file")]);
        let empty = post(&app, key, &format!("/api/documents/{BASE}/empty"), form).await;
        let empty = empty.expect(201);
        let own = empty["id"].as_str().unwrap();
        assert_ne!(write(own, "original", "Bears play.").await, Value::Null);
        let told = write(own, "digitized", "Bears play well.").await;
        assert_eq!(told, Value::Null);

        let (counted, lions) = (format!("{origin}/counted.txt"), format!("{origin}/lions"));
        let form = fields(&[("type", "url"), ("folder", "texts"), ("url", &counted)]);
        let made = post(&app, key, &format!("/api/documents/{BASE}"), form).await;
        let made = made.expect(201);
        let id = made["id"].as_str().unwrap();
        digitized(&app, key, id).await;
        let path = format!("/api/documents/{BASE}/{id}/url");
        let change = async |url: &str| {
            let changed = put(&app, key, &path, &[("url", url)]).await;
            changed.expect(200)["processing_warning"].clone()
        };
        let told = change(&lions).await;
        assert!(told.as_str().unwrap().contains("earlier address"), "{told}");
        let told = write(id, "digitized", "Lions feed.").await;
        assert!(told.as_str().unwrap().contains("earlier address"), "{told}");
        assert_eq!(change(&counted).await, Value::Null);
        digitize(&app, key, id).await;
        assert_eq!(text_of(&app, key, id).await, "This is visit number 2.");
    }
);

on_each_database!(
    what_replaces_an_unreadable_content_says_that_it_has_not_been_read,
    |database| {
        let builder = builder(&database).config(|config| {
            config.fetch.allow_private = true;
            config.knowledge.max_text_bytes = 2_048;
        });
        let app = start_working(builder).await;
        let (origin, _site) = site().await;
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let unread = |document: &Value, what: &str| {
            assert_eq!(document["status"], "empty", "{document}");
            assert_eq!(document["processing_error"], Value::Null, "{document}");
            let told = document["processing_warning"].as_str().unwrap();
            assert!(told.starts_with(what), "{told}");
        };

        let long = "Words of it. ".repeat(200).into_bytes();
        let made = upload(&app, key, "a.txt", long).await.expect(201);
        let id = made["id"].as_str().unwrap();
        let failed = digitized(&app, key, id).await;
        assert_eq!(failed["status"], "failed", "{failed}");
        let original = format!("/api/documents/{BASE}/{id}/content/original");
        let written = put(&app, key, &original, &[("content", "Tigers swim.")]).await;
        unread(&written.expect(200), "the original has not been read");
        let read = digitize(&app, key, id).await;
        assert_eq!(read["status"], "digitized", "{read}");
        assert_eq!(read["processing_warning"], Value::Null, "{read}");

        let form = fields(&[
            ("type", "url"),
            ("folder", "texts"),
            ("url", &format!("{origin}/none")),
        ]);
        let made = post(&app, key, &format!("/api/documents/{BASE}"), form).await;
        let made = made.expect(201);
        let id = made["id"].as_str().unwrap();
        let failed = digitized(&app, key, id).await;
        assert_eq!(failed["status"], "failed", "{failed}");
        assert_eq!(failed["processing_warning"], Value::Null, "{failed}");
        let path = format!("/api/documents/{BASE}/{id}/url");
        let lions = format!("{origin}/lions");
        let changed = put(&app, key, &path, &[("url", &lions)]).await;
        unread(&changed.expect(200), "the address has not been fetched");
        let read = digitize(&app, key, id).await;
        assert_eq!(read["status"], "digitized", "{read}");
        assert_eq!(read["processing_warning"], Value::Null, "{read}");
    }
);

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_nobody_answers_at_says_so_while_it_is_tried_and_fails_within_a_minute() {
    let builder =
        builder(&TestDatabase::sqlite()).config(|config| config.fetch.allow_private = true);
    let app = start_working(builder).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let form = fields(&[
        ("type", "url"),
        ("folder", "texts"),
        ("url", "http://127.0.0.1:1/a.txt"),
    ]);
    let made = post(&app, key, &format!("/api/documents/{BASE}"), form).await;
    let path = format!(
        "/api/document/{BASE}/{}",
        made.expect(201)["id"].as_str().unwrap()
    );
    eventually("the document says why it waits", async || {
        let document = app.get(key, &path).await.expect(200);
        let error = document["processing_error"].as_str().unwrap_or_default();
        error.contains("no connection") && error.contains("tried again")
    })
    .await;
    let (attempts, waits) = app.attempts("bases.digitize").await;
    let waited: Duration = waits.iter().sum();
    assert_eq!(attempts, 3);
    assert!(waited < Duration::from_secs(60), "{waited:?}");
    let document = app.get(key, &path).await.expect(200);
    assert_eq!(document["digitize_status"], "failed", "{document}");
    let error = document["processing_error"].as_str().unwrap();
    assert!(error.contains("no connection") && !error.contains("tried again"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_original_that_is_no_text_is_shown_in_base64() {
    let app = start(&TestDatabase::sqlite()).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\0\0\0\0".to_vec();
    let made = upload(&app, key, "a.png", png).await.expect(201);
    let shown = async |made: &Value| {
        let id = made["id"].as_str().unwrap();
        let path = format!("/api/documents/{BASE}/{id}/content/original");
        app.get(key, &path).await.expect(200)
    };
    let picture = shown(&made).await;
    assert_eq!(picture["format"], "base64", "{picture}");
    let content = picture["content"].as_str().unwrap();
    assert!(content.starts_with("iVBORw0KGgo"), "{content}");
    let latin = upload(&app, key, "a.txt", b"L\xf6wen".to_vec()).await;
    let text = shown(&latin.expect(201)).await;
    assert_eq!(text["format"], "raw");
    assert!(!text["content"].as_str().unwrap().contains('\u{fffd}'));
}

/// A server that stops puts aside what it embedded, so that the next one asks for the rest alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_keeps_what_it_embedded() {
    const PARTS: usize = 60;
    let (upstream, database) = (Upstream::start().await, TestDatabase::sqlite());
    let slow = Script::default().delayed(Duration::from_millis(40), Duration::ZERO);
    upstream.set_default(Api::Embeddings, slow);
    let start = async || {
        let builder = builder(&database).config(|config| {
            upstream.embed(config, "scripted-embedder");
            config.embedder.max_texts = 1;
        });
        let settings = jobs::Settings {
            grace: Duration::from_secs(20),
            ..quick()
        };
        let app = start_by(builder.with_decoder()).await;
        app.start_worker(&CAPABILITIES, settings).await;
        app
    };
    let app = start().await;
    let key = furnished(&app).await.key;
    let section = |part| format!("# Part {part}.\n\n{}\n\n", "Words of it. ".repeat(60));
    let text: String = (0..PARTS).map(section).collect();
    add(&app, &key, "long", &text).await;
    let asked = || upstream.requests(Api::Embeddings).len();
    eventually("a part of it is embedded", async || asked() >= 26).await;
    app.stop().await;
    assert!(asked() < PARTS);
    let app = start().await;
    settled(&app, &key).await;
    // One that was on its way may have been lost.
    assert!(asked() <= PARTS + 1, "{}", asked());
}

/// Two jobs never work on one document: that of short ones has that of long ones run, where there is one.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_is_among_the_long_ones_is_embedded_there() {
    let upstream = Upstream::start().await;
    let builder = builder(&TestDatabase::sqlite());
    let builder = builder.config(|config| upstream.embed(config, "scripted-embedder"));
    let app = start_working(builder).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let id = add(&app, key, "text", "# Text\n\nThe needle.").await;
    settled(&app, key).await;
    // Its time is yet to come.
    let row = format!(
        "INSERT INTO work (id, kind, dedup_key, payload, state, run_at, attempts, again, fence, created_at, updated_at) \
         VALUES ('long', 'bases.embed_long', '{id}', '{{\"document\":\"{id}\"}}', 'queued', 9000000000000, 0, FALSE, 0, 0, 0)"
    );
    let db = app.state.store.db();
    db.execute(row).await.unwrap();
    let embed = format!("/api/embedding/{BASE}/documents/{id}");
    app.post(key, &embed, json!({})).await.expect(200);
    settled(&app, key).await;
    let fence = "SELECT fence FROM work WHERE id = 'long'";
    assert_eq!(db.fetch_count(fence).await.unwrap(), 1);
    assert_eq!(found(&app, key, "needle").await[0], "text");
}

on_each_database!(
    headings_that_a_table_of_contents_has_no_room_for_are_told,
    |database| {
        let app = start_working(builder(&database)).await;
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        let sections = |count: usize| -> String {
            let section = |at| format!("# Heading number {at}\n\nLions sleep.\n\n");
            (0..count).map(section).collect()
        };
        let long = add(&app, key, "Long", &sections(1_000)).await;
        settled(&app, key).await;
        let toc = app.get(key, &format!("/api/toc/{BASE}")).await.expect(200);
        let headings = toc["documents"][0]["contents"].as_array().unwrap();
        for (at, heading) in headings.iter().enumerate() {
            assert_eq!(heading["title"], format!("Heading number {at}"));
        }
        let left_out = 1_000 - headings.len();
        assert!((1..600).contains(&left_out), "{left_out}");
        let told = warning(&app, key, &long).await;
        assert!(
            told.contains(&format!("leaves out {left_out} headings")),
            "{told}"
        );

        // A shorter text has room.
        let content = format!("/api/documents/{BASE}/{long}/content/rewritten");
        let text = sections(3);
        put(&app, key, &content, &[("content", text.as_str())])
            .await
            .expect(200);
        settled(&app, key).await;
        let told = warning(&app, key, &long).await;
        assert!(!told.contains("leaves out"), "{told}");
    }
);
