//! Budgets of bases whose process is killed. What else they do is tested in `colloquy-bases`.

use harness::{
    TestDatabase, elsewhere, eventually,
    upstream::{Api, Fault, Script, Upstream},
};

use super::*;

const LIMITS: &str = "/api/knowledgebases/acme/manual/limits";

/// A process that is killed while a model is asked leaves what nobody knows: it is told as such, and reserved for ever.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_dies_leaves_its_requests_uncertain() {
    let upstream = Upstream::start().await;
    upstream.set_default(Api::Embeddings, Script::fault(Fault::Stall { after: 0 }));
    let settings = |config: &mut colloquy::Config| {
        upstream.embed(config, "scripted-embeddings");
        config.embedder.input_usd = Some("0.02".parse().unwrap());
    };
    let database = TestDatabase::sqlite();
    let server = Server::start(&database, settings).await;
    let acme = furnished_server(&server).await;
    let key = acme.key.as_str();
    let request = server.request(key, Method::PATCH, LIMITS);
    send(request.json(&json!({"token_limit": 1_000_000})))
        .await
        .expect(200);
    let form = fields(&[
        ("type", "file"),
        ("folder", "texts"),
        ("use_original_as_rewritten", "true"),
    ]);
    let form = form.part("file", file("a.md", "Lions sleep in the savannah."));
    let request = server.request(key, Method::POST, &format!("/api/documents/{BASE}"));
    let made = send(request.multipart(form)).await.expect(201);
    let id = made["id"].as_str().unwrap().to_owned();
    eventually("vectors are asked for", async || {
        !upstream.requests(Api::Embeddings).is_empty()
    })
    .await;
    let reserved = server.get(key, LIMITS).await["tokens"]["reserved"].clone();
    assert!(reserved.as_u64().unwrap() > 0);
    server.kill().await;
    upstream.forget_scripts();
    upstream.set_default(Api::Embeddings, Script::text(""));
    let server = Server::start(&database, settings).await;
    elsewhere::eventually("it is uncertain", async || {
        server.get(key, LIMITS).await["uncertain_operations"] == 1
    })
    .await;
    let path = format!("/api/document/{BASE}/{id}");
    elsewhere::eventually("the document waits or is ready", async || {
        let status = server.get(key, &path).await["status"].clone();
        status == "blocked" || status == "ready"
    })
    .await;
    // It may have gone on before it was known that the first request has no end. What was reserved for that stays so.
    let budget = server.get(key, LIMITS).await;
    assert_eq!(budget["tokens"]["reserved"], reserved, "{budget}");
    assert_eq!(budget["blocking_reasons"], json!(["uncertain_operations"]));
}
