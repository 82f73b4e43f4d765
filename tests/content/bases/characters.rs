//! Characters that look things up in their bases.

use std::time::Instant;

use harness::{
    TestDatabase, patience,
    upstream::{Api, Fault, Script, Upstream},
};

use super::*;

/// A document whose final content is written.
async fn write(app: &TestApp, key: &str, name: &str, text: &str) {
    let form = fields(&[("name", name), ("folder", "texts"), ("type", "file")]);
    let made = post(app, key, &format!("/api/documents/{BASE}/empty"), form).await;
    let made = made.expect(201);
    let id = made["id"].as_str().unwrap();
    let content = format!("/api/documents/{BASE}/{id}/content/rewritten");
    put(app, key, &content, &[("content", text)])
        .await
        .expect(200);
}

/// What a character looked up to answer, and its answer.
async fn answer(
    app: &TestApp,
    partner: &TestPartner,
    base: &str,
    question: &str,
) -> (Vec<String>, String) {
    let quota = app.quota(partner, json!({"kinds": ["text"]})).await;
    let character = json!({"personality": "You are Ada.", "parameters": {"name": "Ada",
        "rag_enabled": true, "rag_index_required": base,
    }});
    let body = json!({
        "model": "builtin/extractive", "input": question, "metadata": {"svc": {"character": character}},
    });
    let request = app.request(Method::POST, "/v3/responses");
    let answer = send(request.bearer_auth(&quota.key).json(&body))
        .await
        .expect(200);
    let output = answer["output"].as_array().unwrap();
    let searches = output
        .iter()
        .filter(|item| item["type"] == "file_search_call");
    let names = searches.flat_map(|call| call["results"].as_array().unwrap());
    let names = names.map(|result| result["filename"].as_str().unwrap().to_owned());
    let told = output.last().unwrap()["content"][0]["text"]
        .as_str()
        .unwrap_or_default();
    (names.collect(), told.to_owned())
}

on_both_databases!(
    a_character_is_found_by_its_name,
    |builder| builder.quick_worker(),
    |app| {
        let acme = furnished(&app).await;
        let life = "Ada grew up in London. Ada charges five euros.";
        write(&app, &acme.key, "Life", life).await;
        write(&app, &acme.key, "Zoo", "The zoo opens at nine.").await;
        settled(&app, &acme.key).await;
        let (found, told) = answer(&app, &acme, BASE, "What do you cost?").await;
        assert_eq!(found, ["Life"], "whoever is spoken to is told of by name");
        assert!(told.contains("five euros"), "{told}");
        let (found, told) = answer(&app, &acme, BASE, "Hello!").await;
        assert!(found.is_empty(), "{told}");
        let (found, told) = answer(&app, &acme, BASE, "When does the zoo open?").await;
        assert_eq!(found, ["Zoo"]);
        assert!(told.contains("nine"), "{told}");
        // A base that is not there, or no longer, leaves an answer without it.
        let (found, told) = answer(&app, &acme, "acme/none", "When does the zoo open?").await;
        assert!(found.is_empty() && !told.is_empty(), "{found:?} {told}");
        let gone = app
            .delete(&acme.key, "/api/knowledgebases/acme/manual")
            .await;
        gone.expect(200);
        let (found, told) = answer(&app, &acme, BASE, "When does the zoo open?").await;
        assert!(found.is_empty() && !told.is_empty(), "{found:?} {told}");
    }
);

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_embedder_leaves_the_words() {
    let upstream = Upstream::start().await;
    let app = TestApp::builder(&TestDatabase::sqlite());
    let app = app.config(|config| upstream.embed(config, "scripted-embeddings"));
    let app = app.quick_worker().start().await;
    let acme = furnished(&app).await;
    write(&app, &acme.key, "Zoo", "The zoo opens at nine.").await;
    settled(&app, &acme.key).await;
    for fault in [Fault::Stall { after: 0 }, Fault::Status(500)] {
        upstream.set_default(Api::Embeddings, Script::fault(fault.clone()));
        let asked = Instant::now();
        let (found, told) = answer(&app, &acme, BASE, "When does the zoo open?").await;
        assert_eq!(found, ["Zoo"], "{fault:?}");
        assert!(told.contains("nine"), "{told}");
        assert!(
            asked.elapsed() < patience(Duration::from_secs(5)),
            "{:?}",
            asked.elapsed()
        );
    }
}
