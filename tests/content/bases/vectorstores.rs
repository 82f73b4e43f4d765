//! A vector store elsewhere of a server: its health, and a process that is killed. What else is done with it is tested in `colloquy-bases`.

use harness::{
    TestDatabase,
    app::ADMIN_KEY,
    elsewhere, eventually,
    vectorstores::{Failure, Operation, VectorStores},
};
use test_routes::bases::LIONS;

use super::*;

const SYNC: &str = "/api/vectorstore-sync/acme/manual";

#[tokio::test(flavor = "multi_thread")]
async fn a_vector_store_that_answers_is_up() {
    let service = VectorStores::start().await;
    let builder = TestApp::builder(&TestDatabase::sqlite());
    let app = builder.config(|config| service.offer(config)).start().await;
    let deep = app.get(ADMIN_KEY, "/health/deep").await.expect(200);
    assert_eq!(deep["checks"]["vectorstore"]["state"], "up");
}

/// What changes for a partner, and its end, a server tells its bases.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bases_hear_of_their_partner() {
    let service = VectorStores::start().await;
    let builder = TestApp::builder(&TestDatabase::sqlite());
    let builder = builder.config(|config| service.offer(config));
    let app = builder.with_decoder().quick_worker().start().await;
    let key = furnished(&app).await.key;
    let set = async |is_on: bool| {
        let body = json!({"settings": {"vectorstore_sync_enabled": is_on}});
        let answer = app.put(ADMIN_KEY, "/api/partners/acme", body).await;
        answer.expect(200);
    };
    set(true).await;
    service.fail(Operation::Upload, [Failure::Status(401)]);
    add(&app, &key, "Lions", LIONS).await;
    eventually("the key is refused", async || {
        let state = app.get(ADMIN_KEY, SYNC).await.expect(200);
        state["last_error"]
            .as_str()
            .is_some_and(|it| it.contains("status 401"))
    })
    .await;
    set(false).await;
    set(true).await;
    eventually("it goes on", async || service.files().len() == 1).await;
    settled(&app, &key).await;
    let found = search(&app, ADMIN_KEY, "lions").await;
    let base = found["routing"]["knowledge_base_id"].as_str().unwrap();
    let profile = &found["routing"]["embedding_profile_id"];
    // Another base is named, since this one goes, and its collection is searched all the same.
    let other = app.partner("other").await;
    let form = fields(&[("name", "b")]);
    let made = post(&app, &other.key, "/api/knowledgebases/other", form).await;
    made.expect(201);
    let again = json!({
        "partner": "other", "kb": "b", "user_message": "lions",
        "collection_override": format!("{base}/{profile}"),
    });
    let total = async || {
        let found = app.post(ADMIN_KEY, "/api/rag-test/search", again.clone());
        found.await.expect(200)["total_results"].as_u64().unwrap()
    };
    assert_ne!(total().await, 0);
    let gone = app.delete(ADMIN_KEY, "/api/partners/acme").await;
    gone.expect(204);
    eventually("it goes there", async || {
        service.files().is_empty() && service.stores().is_empty()
    })
    .await;
    eventually("it goes here", async || total().await == 0).await;
}

/// A process is killed after each of the requests that two documents take.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_killed_brings_and_removes_everything_once() {
    const KINDS: usize = 2;
    let service = VectorStores::start().await;
    service.delay(Duration::from_millis(120));
    let database = TestDatabase::sqlite();
    let settings = |config: &mut colloquy::Config| {
        service.offer(config);
        // The test looks often.
        config.limits.requests_per_minute = 100_000;
        config.limits.request_burst = 10_000;
    };
    let mut server = Server::start(&database, settings).await;
    let acme = furnished_server(&server).await;
    let body = json!({"settings": {"vectorstore_sync_enabled": true}});
    let request = server.request(ADMIN_KEY, Method::PUT, "/api/partners/acme");
    send(request.json(&body)).await.expect(200);
    let mut ids = Vec::new();
    for number in 0..KINDS {
        let form = fields(&[("name", "Animals"), ("folder", "texts"), ("type", "file")]);
        let path = format!("/api/documents/{BASE}/empty");
        let request = server.request(&acme.key, Method::POST, &path);
        let made = send(request.multipart(form)).await.expect(201);
        ids.push((number, made["id"].as_str().unwrap().to_owned()));
    }
    let kind = "application/x-www-form-urlencoded";
    // The first brings, each other one brings and removes what was there before.
    for (round, asked) in [1, 2, 3, 4, 5, 7, 8].into_iter().enumerate() {
        let seen = service.asked().len();
        let mut expected = Vec::new();
        for (number, id) in &ids {
            let path = format!("/api/documents/{BASE}/{id}/content/rewritten");
            let text = format!("Animal {number} of {round}.");
            let request = server.request(&acme.key, Method::PUT, &path);
            let request = request.header("Content-Type", kind);
            send(request.body(format!("content={text}")))
                .await
                .expect(200);
            expected.push(text);
        }
        eventually("the service is asked", async || {
            service.asked().len() >= seen + asked
        })
        .await;
        // Each round ends it at another moment.
        sleep(Duration::from_millis(35 * round as u64)).await;
        server.kill().await;
        server = Server::start(&database, settings).await;
        elsewhere::eventually("all is brought and removed", async || {
            let state = server.get(ADMIN_KEY, SYNC).await;
            state["status"] == "synced" && state["counts"]["synced"] == KINDS
        })
        .await;
        assert_eq!(service.searched(), expected, "{round}");
        assert_eq!(service.files().len(), KINDS, "{round}");
        assert_eq!(service.stores().len(), 1, "{round}");
    }
    // In the midst of an upload that nobody waits for any more, its document goes.
    let path = format!("/api/documents/{BASE}/{}/content/rewritten", ids[0].1);
    let request = server.request(&acme.key, Method::PUT, &path);
    let uploads = service.count(Operation::Upload);
    send(request.header("Content-Type", kind).body("content=Another"))
        .await
        .expect(200);
    eventually("it is uploaded", async || {
        service.count(Operation::Upload) > uploads
    })
    .await;
    server.kill().await;
    service.delay(Duration::ZERO);
    let server = Server::start(&database, |config| {
        settings(config);
        config.vectorstore.base_url = None;
    })
    .await;
    let request = server.request(
        &acme.key,
        Method::DELETE,
        &format!("/api/knowledgebases/{BASE}"),
    );
    send(request).await.expect(200);
    server.kill().await;
    let server = Server::start(&database, settings).await;
    eventually("all of it goes", async || {
        service.files().is_empty() && service.stores().is_empty()
    })
    .await;
    server.kill().await;
}
