//! What people do while a document is being worked on is kept, and what cannot be worked on holds nothing else up.

use harness::{
    TestDatabase, eventually, patience,
    upstream::{Api, Fault, Script, Upstream},
};

use super::*;

const LIONS: &str = "# Lions\n\nLions eat meat.";

/// A server on this database, which finds passages by their words.
async fn start(database: &TestDatabase) -> TestApp {
    let builder = TestApp::builder(database);
    builder.with_decoder().quick_worker().start().await
}

/// The same with this model at an upstream, which is asked for a text at a time.
async fn start_with(database: &TestDatabase, upstream: &Upstream, model: &str) -> TestApp {
    // In real time, in which a model that fails is asked again.
    let builder = TestApp::builder(database).real_time();
    let builder = builder.with_decoder().quick_worker().config(|config| {
        upstream.embed(config, model);
        config.embedder.max_texts = 1;
    });
    builder.start().await
}

/// How the search index is.
async fn index_state(app: &TestApp) -> Value {
    let deep = app.get("", "/health/deep").await.json();
    deep["checks"]["search_index"]["state"].clone()
}

/// An index follows changes in their order, so one that it cannot follow must not hold up those behind it.
#[tokio::test(flavor = "multi_thread")]
async fn vectors_that_are_lost_are_told_and_hold_nothing_up() {
    let database = TestDatabase::sqlite();
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let lions = add(&app, key, "Lions", LIONS).await;
    settled(&app, key).await;
    add(&app, key, "Hours", HOURS).await;
    settled(&app, key).await;
    let sql = format!("SELECT blob FROM knowledge_manifests WHERE document_id = '{lions}'");
    let blob: Option<String> = app.app.store.db().fetch_scalar(sql).await.unwrap();
    app.stop().await;

    let folder = database.config().dir;
    fs::remove_dir_all(folder.join("index")).unwrap();
    let blob = blob.unwrap();
    let name = blob.rsplit('/').next().unwrap();
    let files = walk(&folder);
    let file = files.iter().find(|file| file.ends_with(name));
    fs::remove_file(file.expect("the file of the vectors")).unwrap();

    let app = start(&database).await;
    finds(&app, key, "open", "Hours").await;
    assert_eq!(best(&app, key, "lions").await, "");
    let told = document(&app, key, &lions).await;
    assert_eq!(told["embedding_status"], "failed", "{told}");
    let info = settled(&app, key).await;
    assert_eq!(
        info["last_error"], "the file with its vectors is lost",
        "{info}"
    );

    // They can be made again.
    let retry = format!("/api/embedding/{BASE}/retry-failed");
    let retried = app.post(key, &retry, Value::Null).await.expect(200);
    assert_eq!(retried["queued"], 1);
    finds(&app, key, "lions", "Lions").await;
    assert_eq!(settled(&app, key).await["failed_document_count"], 0);
}

/// A disk that is not mounted has no files at all, which says nothing of any document.
#[tokio::test(flavor = "multi_thread")]
async fn files_that_are_all_away_are_waited_for() {
    let database = TestDatabase::sqlite();
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let lions = add(&app, key, "Lions", LIONS).await;
    add(&app, key, "Hours", HOURS).await;
    settled(&app, key).await;
    app.stop().await;

    let folder = database.config().dir;
    let (files, aside) = (folder.join("blobs"), folder.join("aside"));
    fs::remove_dir_all(folder.join("index")).unwrap();
    fs::rename(&files, &aside).unwrap();
    let app = start(&database).await;
    eventually("the index is not made", async || {
        index_state(&app).await == "degraded"
    })
    .await;
    // An index that cannot be made finds nothing, which is not what the base has.
    search_answer(&app, key, "lions").await.expect(503);
    let waits = document(&app, key, &lions).await;
    assert_eq!(waits["embedding_status"], "done", "{waits}");
    app.stop().await;
    if files.exists() {
        fs::remove_dir_all(&files).unwrap();
    }
    fs::rename(&aside, &files).unwrap();
    let app = start(&database).await;
    finds(&app, key, "lions", "Lions").await;
}

/// Files of an index are written half on a disk that is full, or changed by one that fails.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_damaged_is_made_again_and_hides_nothing() {
    let database = TestDatabase::sqlite();
    let mut app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    add(&app, key, "Lions", LIONS).await;
    add(&app, key, "Hours", HOURS).await;
    settled(&app, key).await;
    for kind in ["store", "idx", "json", "position"] {
        app.stop().await;
        let files = walk(&database.config().dir.join("index")).into_iter();
        for file in files.filter(|file| file.to_string_lossy().ends_with(kind)) {
            let bytes = fs::read(&file).unwrap();
            fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
        }
        app = start(&database).await;
        let answer = search_answer(&app, key, "lions").await;
        if answer.status == 503 {
            finds(&app, key, "lions", "Lions").await;
        } else {
            assert_eq!(answer.json()["total_results"], 1, "{kind}: {}", answer.text);
        }
        assert_eq!(best(&app, key, "open").await, "Hours");
        let deep = app.get("", "/health/deep").await.json();
        assert_eq!(deep["checks"]["search_index"]["state"], "up", "{deep}");
    }
}

/// A file of the index is changed under a server that runs, and the files of which the index is made are away until that was seen.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_damaged_under_a_server_degrades_it() {
    let database = TestDatabase::sqlite();
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    add(&app, key, "Lions", LIONS).await;
    settled(&app, key).await;
    finds(&app, key, "lions", "Lions").await;
    assert_eq!(index_state(&app).await, "up");
    let folder = database.config().dir;
    let (files, aside) = (folder.join("blobs"), folder.join("aside"));
    fs::rename(&files, &aside).unwrap();
    let stored = walk(&folder.join("index")).into_iter();
    let stored = stored.filter(|file| file.extension().is_some_and(|kind| kind == "store"));
    let mut damaged = 0;
    for file in stored {
        let mut longer = fs::File::options().append(true).open(&file).unwrap();
        std::io::Write::write_all(&mut longer, b"more").unwrap();
        damaged += 1;
    }
    assert!(damaged > 0);
    // An index that was damaged is noticed by a search two seconds after the last look.
    let looks = std::cell::Cell::new(0);
    let later = |most: u32| {
        if looks.replace(looks.get() + 1) < most {
            app.advance(Duration::from_secs(3));
        }
    };
    eventually("the server is degraded", async || {
        later(3);
        let _ = search_answer(&app, key, "lions").await;
        index_state(&app).await == "degraded"
    })
    .await;
    search_answer(&app, key, "lions").await.expect(503);
    if files.exists() {
        fs::remove_dir_all(&files).unwrap();
    }
    fs::rename(&aside, &files).unwrap();
    eventually("the index is made anew", async || {
        later(40);
        let answer = search_answer(&app, key, "lions").await;
        answer.status == 200 && index_state(&app).await == "up"
    })
    .await;
    finds(&app, key, "lions", "Lions").await;
}

/// All files below a folder.
fn walk(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(walk(&path)),
            false => files.push(path),
        }
    }
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn vectors_of_another_length_are_told_and_hold_nothing_up() {
    let upstream = Upstream::start().await;
    let app = TestApp::builder(&TestDatabase::sqlite());
    let app = app.config(|config| upstream.embed(config, "scripted-embedder"));
    let app = app.with_decoder().quick_worker().start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    add(&app, key, "Hours", HOURS).await;
    settled(&app, key).await;
    upstream.script(Api::Embeddings, Script::fault(Fault::Dimensions(7)));
    let lions = add(&app, key, "Lions", LIONS).await;
    eventually("it is told", async || {
        document(&app, key, &lions).await["embedding_status"] == "failed"
    })
    .await;
    add(&app, key, "Cats", "# Cats\n\nCats eat fish.").await;
    settled(&app, key).await;
    finds(&app, key, "fish", "Cats").await;
    finds(&app, key, "open", "Hours").await;
    let info = settled(&app, key).await;
    assert!(
        info["last_error"].to_string().contains("another length"),
        "{info}"
    );
    let anew = format!("/api/embedding/{BASE}/documents/{lions}?force=true");
    app.post(key, &anew, Value::Null).await.expect(200);
    finds(&app, key, "lions", "Lions").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_partner_has_so_many_parts_to_be_searched() {
    let app = TestApp::builder(&TestDatabase::sqlite());
    let app = app.config(|config| config.knowledge.max_chunks = 2);
    let app = app.with_decoder().quick_worker().start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let lions = add(&app, key, "Lions", LIONS).await;
    add(&app, key, "Hours", HOURS).await;
    settled(&app, key).await;
    let cats = add(&app, key, "Cats", "# Cats\n\nCats eat fish.").await;
    let info = settled(&app, key).await;
    assert_eq!(
        info["last_error"],
        "all documents together have more than 2 parts to be searched"
    );
    assert_eq!(
        document(&app, key, &cats).await["embedding_status"],
        "failed"
    );
    // Another text in the place of one that is searched takes no more room.
    let content = format!("/api/documents/{BASE}/{lions}/content/rewritten");
    put(
        &app,
        key,
        &content,
        &[("content", "# Tigers\n\nTigers swim.")],
    )
    .await
    .expect(200);
    settled(&app, key).await;
    finds(&app, key, "tigers", "Lions").await;
    let path = format!("/api/documents/{BASE}/{lions}");
    app.delete(key, &path).await.expect(200);
    let retry = format!("/api/embedding/{BASE}/retry-failed");
    app.post(key, &retry, Value::Null).await.expect(200);
    finds(&app, key, "fish", "Cats").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn final_content_that_comes_while_a_model_rewrites_remains() {
    let upstream = Upstream::start().await;
    let app = TestApp::builder(&TestDatabase::sqlite()).config(|config| {
        upstream.offer(config);
        config.rewriting.model = Some("scripted-chat".to_owned());
        config.rewriting.section_ms = patience(Duration::from_secs(2)).as_millis() as u32;
    });
    let app = app.with_decoder().quick_worker().start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    for fault in [
        Fault::Stall { after: 0 },
        Fault::Finish("content_filter".to_owned()),
    ] {
        let asked = || upstream.requests(Api::Chat).len();
        let before = asked();
        upstream.script(Api::Chat, Script::fault(fault.clone()));
        let held = upstream.hold(Api::Chat);
        let form = fields(&[
            ("type", "file"),
            ("folder", "texts"),
            ("auto_rewrite", "true"),
        ]);
        let form = form.part("file", file("notes.md", LIONS));
        let made = post(&app, key, &format!("/api/documents/{BASE}"), form).await;
        let made = made.expect(201);
        let id = made["id"].as_str().unwrap();
        eventually("a model is asked", async || asked() == before + 1).await;
        let content = format!("/api/documents/{BASE}/{id}/content/rewritten");
        put(&app, key, &content, &[("content", "By hand.")])
            .await
            .expect(200);
        drop(held);
        eventually("the answer came", async || {
            let sql = "SELECT COUNT(*) FROM work WHERE kind = 'bases.rewrite' AND state IN ('queued', 'running')";
            app.app.store.db().fetch_count(sql).await.unwrap() == 0
        })
        .await;
        settled(&app, key).await;
        let kept = document(&app, key, id).await;
        assert_eq!(kept["status"], "ready", "{fault:?}: {kept}");
        assert_eq!(kept["rewrite_status"], "done", "{fault:?}: {kept}");
        assert_eq!(kept["processing_error"], Value::Null, "{fault:?}");
        let kept = app.get(key, &content).await.expect(200);
        assert_eq!(kept["content"], "By hand.");
        assert_eq!(asked(), before + 1, "{fault:?}: nothing is asked again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_long_to_be_shown_says_so() {
    let app = TestApp::builder(&TestDatabase::sqlite());
    let app = app.config(|config| config.knowledge.max_text_bytes = 1_024);
    let app = app.with_decoder().quick_worker().start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let form = fields(&[("type", "file"), ("folder", "texts")]);
    let form = form.part("file", file("long.txt", "Words. ".repeat(400)));
    let made = post(&app, key, &format!("/api/documents/{BASE}"), form).await;
    let made = made.expect(201);
    let id = made["id"].as_str().unwrap();
    let content = format!("/api/documents/{BASE}/{id}/content/original");
    let refused = app.get(key, &content).await.expect(400);
    assert!(refused.to_string().contains("downloaded"), "{refused}");
}

/// A base that waits for its last document with the vectors of another model changes over when that one has failed.
#[tokio::test(flavor = "multi_thread")]
async fn another_model_takes_over_though_a_document_fails() {
    let database = TestDatabase::sqlite();
    let upstream = Upstream::start().await;
    let app = start_with(&database, &upstream, "first").await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    add(&app, key, "Hours", HOURS).await;
    settled(&app, key).await;
    add(&app, key, "Lions", LIONS).await;
    settled(&app, key).await;
    app.stop().await;

    // Whichever comes second fails after the first is done.
    upstream.script(Api::Embeddings, Script::default());
    let delay = patience(Duration::from_millis(1_500));
    let slow = Script::fault(Fault::Status(400)).delayed(delay, Duration::ZERO);
    upstream.script(Api::Embeddings, slow);
    let app = start_with(&database, &upstream, "second").await;
    eventually("the base has changed over", async || {
        let info = settled(&app, key).await;
        info["embedding_profile_name"] == "second"
    })
    .await;
    assert_eq!(settled(&app, key).await["failed_document_count"], 1);
    app.stop().await;

    // A change that is taken back leaves nothing out.
    let app = start_with(&database, &upstream, "first").await;
    eventually("the base has changed back", async || {
        let info = settled(&app, key).await;
        info["embedding_profile_name"] == "first"
    })
    .await;
    finds(&app, key, "open", "Hours").await;
    finds(&app, key, "lions", "Lions").await;
}

/// A model that is away for a while is no reason to give up what is searched.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_is_away_takes_over_nothing() {
    let database = TestDatabase::sqlite();
    let upstream = Upstream::start().await;
    let app = start_with(&database, &upstream, "first").await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    add(&app, key, "Hours", HOURS).await;
    add(&app, key, "Lions", LIONS).await;
    settled(&app, key).await;
    app.stop().await;

    upstream.set_default(Api::Embeddings, Script::fault(Fault::Status(500)));
    upstream.script(Api::Embeddings, Script::default());
    let app = start_with(&database, &upstream, "second").await;
    eventually("one document is given up", async || {
        // Its attempts come without the pauses between them.
        let at_once = "UPDATE work SET run_at = 0 WHERE kind = 'bases.embed' AND state = 'queued'";
        let db = app.app.store.db();
        db.execute(at_once).await.unwrap();
        app.app.kernel.jobs.wake();
        let failed = "SELECT COUNT(*) FROM knowledge_documents WHERE embedding = 'failed'";
        db.fetch_count(failed).await.unwrap() == 1
    })
    .await;
    upstream.set_default(Api::Embeddings, Script::default());
    let info = settled(&app, key).await;
    assert_eq!(info["embedding_profile_name"], "first", "{info}");
    finds(&app, key, "open", "Hours").await;
    finds(&app, key, "lions", "Lions").await;
    app.stop().await;

    // The next start tries again.
    let app = start_with(&database, &upstream, "second").await;
    eventually("the base has changed over", async || {
        settled(&app, key).await["embedding_profile_name"] == "second"
    })
    .await;
    finds(&app, key, "lions", "Lions").await;
}

/// What a base waited for may go instead of being embedded.
#[tokio::test(flavor = "multi_thread")]
async fn another_model_takes_over_when_what_it_lacks_is_gone() {
    let database = TestDatabase::sqlite();
    let upstream = Upstream::start().await;
    let app = start_with(&database, &upstream, "first").await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    add(&app, key, "Hours", HOURS).await;
    add(&app, key, "Lions", LIONS).await;
    settled(&app, key).await;
    app.stop().await;

    upstream.set_default(Api::Embeddings, Script::fault(Fault::Status(500)));
    upstream.script(Api::Embeddings, Script::default());
    let app = start_with(&database, &upstream, "second").await;
    let db = app.app.store.db();
    eventually("one is embedded by both", async || {
        rows(&app, "knowledge_manifests").await == 3
    })
    .await;
    let lacking = "SELECT d.id FROM knowledge_documents d WHERE \
                   (SELECT COUNT(*) FROM knowledge_manifests m WHERE m.document_id = d.id) = 1";
    let lacking: Option<String> = db.fetch_scalar(lacking).await.unwrap();
    let path = format!("/api/documents/{BASE}/{}", lacking.unwrap());
    app.delete(key, &path).await.expect(200);
    eventually("the base has changed over", async || {
        let data = app.get(key, &format!("/api/kb-data/{BASE}")).await;
        data.expect(200)["embedding_info"]["embedding_profile_name"] == "second"
    })
    .await;
}

/// What was made before a forced embedding was broken off is not made, and paid for, again.
#[tokio::test(flavor = "multi_thread")]
async fn a_forced_embedding_goes_on_where_it_was() {
    let upstream = Upstream::start().await;
    let app = TestApp::builder(&TestDatabase::sqlite()).config(|config| {
        upstream.embed(config, "scripted-embedder");
        config.embedder.max_texts = 1;
        config.embedder.max_tokens = 16;
    });
    let app = app.with_decoder().quick_worker().start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let text: String = (0..6)
        .map(|part| {
            format!(
                "# Part {part}\n\nThe keeper of number{part} feeds every animal of the zoo.\n\n"
            )
        })
        .collect();
    let id = add(&app, key, "Keepers", &text).await;
    settled(&app, key).await;
    let asked = || upstream.requests(Api::Embeddings).len();
    let whole = asked();
    assert!(whole >= 6, "{whole}");
    for _ in 0..whole - 2 {
        upstream.script(Api::Embeddings, Script::default());
    }
    upstream.script(Api::Embeddings, Script::fault(Fault::Status(500)));
    let embed = format!("/api/embedding/{BASE}/documents/{id}?force=true");
    app.post(key, &embed, Value::Null).await.expect(200);
    eventually("it is broken off", async || asked() >= 2 * whole - 1).await;
    app.advance_through("bases.%").await;
    settled(&app, key).await;
    assert_eq!(
        asked(),
        2 * whole + 1,
        "the two that were not made are asked for"
    );
    let left = "SELECT COUNT(*) FROM knowledge_documents WHERE vectors IS NOT NULL";
    assert_eq!(app.app.store.db().fetch_count(left).await.unwrap(), 0);
    // The next one begins anew.
    app.post(key, &embed, Value::Null).await.expect(200);
    settled(&app, key).await;
    assert_eq!(asked(), 3 * whole + 1);
    finds(&app, key, "number3", "Keepers").await;
}
