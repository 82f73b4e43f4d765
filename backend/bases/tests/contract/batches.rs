//! Many addresses or documents in one request, and the duplicates that they have.

use colloquy_store::Dialect;

use super::*;

/// More than two of the pieces that they are inserted in, and a part of a third one.
const ADDRESSES: usize = 45;

fn numbered(number: usize) -> String {
    format!("https://zoo.example/{number}")
}

/// Brings addresses, each of which has a result in its place.
async fn bring(app: &App, key: &str, urls: &[String]) -> Value {
    let path = format!("/api/documents/{BASE}/batch");
    let body = json!({"folder": "texts", "urls": urls});
    let made = app.post(key, &path, body).await.expect(200);
    let results = made["results"].as_array().unwrap();
    let told: Vec<&str> = results
        .iter()
        .map(|result| result["url"].as_str().unwrap())
        .collect();
    assert_eq!(told, urls);
    made
}

/// Checks that the first `taken` of the results are documents, with one job each, and returns the reasons of the others.
async fn refused_behind(app: &App, made: &Value, taken: usize) -> Vec<String> {
    let results = made["results"].as_array().unwrap();
    let failed = results.len() - taken;
    let summary = json!({"total": results.len(), "succeeded": taken, "failed": failed});
    assert_eq!(made["summary"], summary);
    let (first, others) = results.split_at(taken);
    for result in first {
        assert_eq!(result["status"], "success", "{result}");
        assert!(result["document_id"].is_string(), "{result}");
    }
    assert_eq!(rows(app, "knowledge_documents").await, taken as u64);
    let jobs = rows(app, "work WHERE kind = 'bases.digitize'").await;
    assert_eq!(jobs, taken as u64);
    let refused = others.iter().map(|result| {
        assert_eq!(result["status"], "error", "{result}");
        assert_eq!(result["document_id"], Value::Null);
        assert_eq!(result["duplicate_document_ids"], json!([]));
        result["error"].as_str().unwrap().to_owned()
    });
    refused.collect()
}

on_each_database!(each_address_is_told_of_in_its_place, |database| {
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let same = "https://zoo.example/same".to_owned();
    let urls: Vec<String> = (0..ADDRESSES)
        .map(|number| match number % 10 {
            3 => format!("ftp://zoo.example/{number}"),
            4 | 7 => same.clone(),
            _ => numbered(number),
        })
        .collect();
    let made = bring(&app, key, &urls).await;
    assert_eq!(
        made["summary"],
        json!({"total": 45, "succeeded": 40, "failed": 5})
    );
    let results = made["results"].as_array().unwrap();
    // Those with the same address that came before, in the same piece and in earlier ones.
    let mut before = Vec::new();
    let mut ids = Vec::new();
    for (place, result) in results.iter().enumerate() {
        if place % 10 == 3 {
            assert_eq!(result["status"], "error");
            let why = result["error"].as_str().unwrap();
            let prefix = format!("urls[{place}]: must be an address");
            assert!(why.starts_with(&prefix), "{why}");
            continue;
        }
        assert_eq!(result["status"], "success", "{result}");
        assert_eq!(result["error"], Value::Null);
        let id = result["document_id"].clone();
        let duplicates = &result["duplicate_document_ids"];
        match place % 10 {
            4 | 7 => {
                assert_eq!(*duplicates, json!(before), "{place}");
                before.push(id.clone());
            }
            _ => assert_eq!(*duplicates, json!([]), "{place}"),
        }
        ids.push(id);
    }
    assert_eq!(before.len(), 9);
    let again = bring(&app, key, &[same, numbered(1)]).await;
    let duplicates = |place: usize| &again["results"][place]["duplicate_document_ids"];
    assert_eq!(*duplicates(0), json!(before));
    assert_eq!(*duplicates(1), json!([ids[1]]));

    let listed = app.get(key, &format!("/api/documents/{BASE}")).await;
    let listed = listed.expect(200);
    let documents = listed["documents"].as_array().unwrap().iter();
    let told: Vec<Value> = documents.map(|document| document["id"].clone()).collect();
    ids.extend((0..2).map(|place| again["results"][place]["document_id"].clone()));
    assert_eq!(told, ids, "in the order of the request");
});

on_each_database!(a_batch_fills_a_base, |database| {
    let builder = builder(&database).config(|config| config.knowledge.max_documents = 30);
    let app = start_by(builder).await;
    let acme = furnished(&app).await;
    let urls: Vec<String> = (0..ADDRESSES).map(numbered).collect();
    let made = bring(&app, &acme.key, &urls).await;
    let refused = refused_behind(&app, &made, 30).await;
    for (place, why) in (30..).zip(refused) {
        let expected = format!("urls[{place}]: A knowledge base has 30 documents at most");
        assert_eq!(why, expected);
    }
});

on_each_database!(a_batch_fills_the_storage_of_its_partner, |database| {
    let app = start(&database).await;
    let acme = furnished(&app).await;
    // The first key, and the rows of the base and its folder.
    let full = 1_024 + 4_096 + 4_096 + 25 * 8_192;
    app.limit_storage("acme", full + 100).await;
    let urls: Vec<String> = (0..ADDRESSES).map(numbered).collect();
    let made = bring(&app, &acme.key, &urls).await;
    let refused = refused_behind(&app, &made, 25).await;
    for (place, why) in (25..).zip(refused) {
        assert!(why.starts_with(&format!("urls[{place}]: ")), "{why}");
        let used = format!("may have {} bytes together, and have {full};", full + 100);
        assert!(why.contains(&used), "{why}");
    }
    let listed = app.get(&acme.key, "/api/partners").await.expect(200);
    assert_eq!(listed[0]["storage"]["used_bytes"], full);
    assert_eq!(recount_texts(&app, TEXTS).await.unwrap(), 0);
});

on_each_database!(duplicates_are_of_the_same_base, |database| {
    let app = start(&database).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    furnish_another(&app, key).await;
    let text = "Lions eat meat.";
    let first = upload(&app, key, "a.md", text.into()).await.expect(201);
    let mut others: Vec<Value> = Vec::new();
    for _ in 0..2 {
        let form = fields(&[("type", "file"), ("folder", "texts")]);
        let form = form.part("file", file("b.md", text));
        let made = post(&app, key, "/api/documents/acme/large", form).await;
        let made = made.expect(201);
        assert_eq!(made["duplicate_document_ids"], json!(others));
        others.push(made["id"].clone());
    }
    // A document has others with its original and others with its address, oldest first.
    let urls = [numbered(1), numbered(1)];
    let at_address = bring(&app, key, &urls).await;
    let ids = [0, 1].map(|place: usize| at_address["results"][place]["document_id"].clone());
    let id = ids[0].as_str().unwrap();
    let original = format!("/api/documents/{BASE}/{id}/content/original");
    let form = Form::new().part("file", file("a.md", text));
    post(&app, key, &original, form).await.expect(200);
    let path = format!("/api/document/{BASE}/{id}");
    let document = app.get(key, &path).await.expect(200);
    assert_eq!(
        document["duplicate_document_ids"],
        json!([first["id"], ids[1]])
    );
    // With another original it shares the address alone.
    put(&app, key, &original, &[("content", "Tigers swim.")])
        .await
        .expect(200);
    let document = app.get(key, &path).await.expect(200);
    assert_eq!(document["duplicate_document_ids"], json!([ids[1]]));
    let path = format!("/api/document/{BASE}/{}", first["id"].as_str().unwrap());
    let document = app.get(key, &path).await.expect(200);
    assert_eq!(document["duplicate_document_ids"], json!([]));
});

/// An address that no document can have, and a name, once they are refused.
const BAD_ADDRESS: &str = "https://zoo.example/bad";

/// Makes the database fail when a document with [`BAD_ADDRESS`] or the name `bad` is inserted.
async fn refuse_bad(app: &App) {
    let db = app.state.store.db();
    let sql = match db.dialect() {
        Dialect::Postgres => format!(
            "ALTER TABLE knowledge_documents ADD CONSTRAINT no_bad CHECK (name <> 'bad' AND url <> '{BAD_ADDRESS}')"
        ),
        Dialect::Sqlite => format!(
            "CREATE TRIGGER no_bad BEFORE INSERT ON knowledge_documents WHEN NEW.name = 'bad' OR NEW.url = '{BAD_ADDRESS}' \
             BEGIN SELECT RAISE(ABORT, 'bad'); END"
        ),
    };
    db.execute(sql).await.unwrap();
}

on_each_database!(
    documents_before_a_failure_of_the_database_are_told,
    |database| {
        let app = start(&database).await;
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        refuse_bad(&app).await;
        // Nothing is stored before the first piece, so that the request can be sent again.
        let path = format!("/api/documents/{BASE}/batch");
        let body = json!({"folder": "texts", "urls": [numbered(1), BAD_ADDRESS]});
        app.post(key, &path, body).await.expect(500);
        assert_eq!(rows(&app, "knowledge_documents").await, 0);

        let mut urls: Vec<String> = (0..ADDRESSES).map(numbered).collect();
        urls[25] = BAD_ADDRESS.to_owned();
        let made = bring(&app, key, &urls).await;
        // The second piece fails, and the third one is not tried.
        let refused = refused_behind(&app, &made, 20).await;
        for (place, why) in (20..).zip(refused) {
            assert_eq!(why, format!("urls[{place}]: Internal error"));
        }
    }
);

on_each_database!(
    files_before_a_failure_of_the_database_are_told,
    |database| {
        let app = start(&database).await;
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        refuse_bad(&app).await;
        let path = format!("/api/documents/{BASE}/files/batch");
        let form = |names: [&str; 3]| {
            let mut form = fields(&[("folder", "texts")]);
            for name in names {
                let text = format!("A text about {name}.");
                form = form.text("names", name.to_owned());
                form = form.part("files", file("a.md", text));
            }
            form
        };
        let first = post(&app, key, &path, form(["bad", "lions", "tigers"])).await;
        first.expect(500);
        assert_eq!(rows(&app, "knowledge_documents").await, 0);

        let made = post(&app, key, &path, form(["lions", "bad", "tigers"])).await;
        let made = made.expect(200);
        let summary = json!({"total": 3, "succeeded": 1, "failed": 2});
        assert_eq!(made["summary"], summary, "{made}");
        let results = &made["results"];
        assert!(results[0]["document_id"].is_string(), "{made}");
        for result in results.as_array().unwrap().iter().skip(1) {
            assert_eq!(result["status"], "error", "{result}");
            assert_eq!(result["document_id"], Value::Null);
            assert_eq!(result["error"], "Internal error");
        }
        assert_eq!(rows(&app, "knowledge_documents").await, 1);
    }
);

on_each_database!(
    documents_whose_duplicates_cannot_be_read_are_told,
    |database| {
        let app = start(&database).await;
        let acme = furnished(&app).await;
        let key = acme.key.as_str();
        // Duplicates are looked for by this column, which no insertion names.
        let sql =
            "ALTER TABLE knowledge_documents RENAME COLUMN deletion_requested_at TO unreadable";
        app.state.store.db().execute(sql).await.unwrap();
        let urls = vec![numbered(1); ADDRESSES];
        let made = bring(&app, key, &urls).await;
        refused_behind(&app, &made, ADDRESSES).await;
        for result in made["results"].as_array().unwrap() {
            assert_eq!(result["duplicate_document_ids"], json!([]));
        }

        let form = fields(&[("folder", "texts")])
            .part("files", file("a.md", "Lions eat meat."))
            .part("files", file("b.md", "Lions eat meat."));
        let path = format!("/api/documents/{BASE}/files/batch");
        let made = post(&app, key, &path, form).await.expect(200);
        let summary = json!({"total": 2, "succeeded": 2, "failed": 0});
        assert_eq!(made["summary"], summary, "{made}");
        for result in made["results"].as_array().unwrap() {
            assert!(result["document_id"].is_string(), "{result}");
            assert_eq!(result["duplicate_document_ids"], json!([]));
        }
    }
);

/// PostgreSQL notes in each row which transaction has written it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_embeddings_are_queued_again_a_hundred_in_a_transaction() {
    let app = start(&TestDatabase::postgres().await).await;
    let acme = furnished(&app).await;
    let urls: Vec<String> = (0..250).map(numbered).collect();
    bring(&app, &acme.key, &urls).await;
    let db = app.state.store.db();
    let sql = "UPDATE knowledge_documents SET digitizing = 'done', embedding = 'failed'";
    assert_eq!(db.execute(sql).await.unwrap(), 250);
    let path = format!("/api/embedding/{BASE}/retry-failed");
    let retried = app.post(&acme.key, &path, json!({})).await.expect(200);
    assert_eq!(retried["queued"], 250);
    assert_eq!(rows(&app, "work WHERE kind = 'bases.embed'").await, 250);
    let sql =
        "SELECT COUNT(DISTINCT xmin::text) FROM knowledge_documents WHERE embedding = 'queued'";
    assert_eq!(db.fetch_count(sql).await.unwrap(), 3);
}

/// Makes a second base, `large`, with a folder `texts`.
async fn furnish_another(app: &App, key: &str) {
    for (path, name) in [
        ("/api/knowledgebases/acme", "large"),
        ("/api/folders/acme/large", "texts"),
    ] {
        let form = fields(&[("name", name)]);
        post(app, key, path, form).await.expect(201);
    }
}
