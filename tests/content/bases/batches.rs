//! Many addresses in one request, and the duplicates that they have.

use colloquy::server;
use harness::app::ADMIN_KEY;

use super::*;

/// More than two of the pieces that they are inserted in, and a part of a third one.
const ADDRESSES: usize = 45;

fn numbered(number: usize) -> String {
    format!("https://zoo.example/{number}")
}

/// Brings addresses, each of which has a result in its place.
async fn bring(app: &TestApp, key: &str, urls: &[String]) -> Value {
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
async fn refused_behind(app: &TestApp, made: &Value, taken: usize) -> Vec<String> {
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

on_both_databases!(
    each_address_is_told_of_in_its_place,
    |builder| builder.without_worker(),
    |app| {
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
    }
);

on_both_databases!(
    a_batch_fills_a_base,
    |builder| {
        let builder = builder.config(|config| config.knowledge.max_documents = 30);
        builder.without_worker()
    },
    |app| {
        let acme = furnished(&app).await;
        let urls: Vec<String> = (0..ADDRESSES).map(numbered).collect();
        let made = bring(&app, &acme.key, &urls).await;
        let refused = refused_behind(&app, &made, 30).await;
        for (place, why) in (30..).zip(refused) {
            let expected = format!("urls[{place}]: A knowledge base has 30 documents at most");
            assert_eq!(why, expected);
        }
    }
);

on_both_databases!(
    a_batch_fills_the_storage_of_its_partner,
    |builder| builder.without_worker(),
    |app| {
        let acme = furnished(&app).await;
        // The first key, and the rows of the base and its folder.
        let full = 1_024 + 4_096 + 4_096 + 25 * 8_192;
        let body = json!({"settings": {"storage_bytes": full + 100}});
        let request = app.request(Method::PUT, "/api/partners/acme");
        send(request.bearer_auth(ADMIN_KEY).json(&body))
            .await
            .expect(200);
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
        assert_eq!(server::recount_texts(&app.app.store).await.unwrap(), 0);
    }
);

on_both_databases!(
    duplicates_are_of_the_same_base,
    |builder| builder.without_worker(),
    |app| {
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
    }
);

/// Makes a second base, `large`, with a folder `texts`.
async fn furnish_another(app: &TestApp, key: &str) {
    for (path, name) in [
        ("/api/knowledgebases/acme", "large"),
        ("/api/folders/acme/large", "texts"),
    ] {
        let form = fields(&[("name", name)]);
        post(app, key, path, form).await.expect(201);
    }
}
