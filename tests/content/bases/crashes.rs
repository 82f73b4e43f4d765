//! Processes that are killed between, and in the middle of, the stages of the work on documents.

use harness::{
    TestDatabase,
    elsewhere::until,
    eventually,
    upstream::{Api, Script, Upstream},
};

use super::*;

/// When the process is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Killed {
    /// As soon as the last document is accepted.
    Digitizing,
    /// While models rewrite.
    Rewriting,
    /// While vectors are made.
    Embedding,
}

const DOCUMENTS: usize = 4;
const SECTIONS: usize = 3;

/// A text of some sections, each of which names itself.
fn text(document: usize) -> String {
    let section = |section: usize| {
        let words = "They sleep in the stable and eat hay. ".repeat(24);
        format!("# Section {section}\n\nanimal{document}section{section}. {words}\n\n")
    };
    (0..SECTIONS).map(section).collect()
}

/// The documents for which a model may have been asked.
async fn admitted(database: &TestDatabase) -> Vec<String> {
    #[derive(sqlx::FromRow)]
    struct Admitted {
        document_id: String,
    }
    let store = database.config().open().await.unwrap();
    let sql = "SELECT DISTINCT document_id FROM knowledge_usage WHERE kind = 'rewrite'";
    let rows: Vec<Admitted> = store.db().fetch_all(sql).await.unwrap();
    rows.into_iter().map(|row| row.document_id).collect()
}

async fn survive(killed: Killed) {
    let upstream = Upstream::start().await;
    let slow = |text: &str| Script::text(text).delayed(Duration::from_millis(80), Duration::ZERO);
    upstream.set_default(Api::Chat, slow("# Stable\n\nThe animals sleep there."));
    upstream.set_default(Api::Embeddings, slow(""));
    let database = TestDatabase::sqlite();
    let settings = |config: &mut colloquy::Config| {
        upstream.offer(config);
        upstream.embed(config, "scripted-embeddings");
        config.rewriting.model = Some("scripted-chat".to_owned());
        config.rewriting.section_tokens = 250;
    };
    let server = Server::start(&database, settings).await;
    let acme = furnished_server(&server).await;
    let key = acme.key.as_str();
    let mut ids = Vec::new();
    for number in 0..DOCUMENTS {
        let form = fields(&[
            ("type", "file"),
            ("folder", "texts"),
            ("auto_rewrite", "true"),
        ]);
        let form = form.part("file", file(&format!("{number}.md"), text(number)));
        let request = server.request(key, Method::POST, &format!("/api/documents/{BASE}"));
        let made = send(request.multipart(form)).await.expect(201);
        ids.push(made["id"].as_str().unwrap().to_owned());
    }
    let asked = |api| upstream.requests(api).len();
    match killed {
        Killed::Digitizing => {}
        Killed::Rewriting => eventually("models are asked", async || asked(Api::Chat) >= 4).await,
        Killed::Embedding => {
            eventually("vectors are made", async || asked(Api::Embeddings) >= 1).await;
        }
    }
    server.kill().await;
    let admitted = admitted(&database).await;
    let server = Server::start(&database, settings).await;
    let document = async |id: &str| server.get(key, &format!("/api/document/{BASE}/{id}")).await;
    let settled = async |id: &str| {
        let is_over =
            |document: &Value| matches!(document["status"].as_str(), Some("ready" | "failed"));
        let what = format!("{killed:?}: it goes on");
        until(&what, is_over, async || document(id).await).await
    };
    let mut uncertain = Vec::new();
    for id in &ids {
        let document = settled(id).await;
        if document["status"] == "failed" {
            let error = document["processing_error"].as_str().unwrap();
            assert!(
                error.contains("what became of it is not known"),
                "{killed:?}: {document}"
            );
            uncertain.push(id);
        }
    }
    // No section was paid for twice.
    let told: Vec<String> = upstream
        .requests(Api::Chat)
        .iter()
        .map(|request| request.body["messages"].to_string())
        .collect();
    for document in 0..DOCUMENTS {
        for section in 0..SECTIONS {
            let name = format!("animal{document}section{section}.");
            let times = told.iter().filter(|told| told.contains(&name)).count();
            assert!(times <= 1, "{killed:?}: {name} was asked for {times} times");
        }
    }
    // What may have been asked for is uncertain, and nothing else is. A process may die before what was admitted leaves it.
    assert!(
        uncertain.iter().all(|id| admitted.contains(id)),
        "{killed:?}: {uncertain:?}, {admitted:?}"
    );
    // Whoever wants it has the rest done.
    for id in uncertain {
        let request = server.request(
            key,
            Method::POST,
            "/api/queue/process?partner=acme&kb=manual&action=rewrite",
        );
        send(request.json(&json!({"document": {"id": id}})))
            .await
            .expect(200);
    }
    for id in &ids {
        let document = settled(id).await;
        assert_eq!(document["status"], "ready", "{killed:?}: {document}");
        let content = format!("/api/documents/{BASE}/{id}/content/rewritten");
        let content = server.get(key, &content).await["content"].clone();
        let sections = document["rewrite_sections"].as_u64().unwrap() as usize;
        assert!(sections >= SECTIONS);
        assert_eq!(
            content.as_str().unwrap().matches("# Stable").count(),
            sections
        );
    }
    let body = json!({"partner": "acme", "kb": "manual", "user_message": "animals"});
    let request = server.request(key, Method::POST, "/api/rag-test/search");
    let found = send(request.json(&body)).await.expect(200);
    assert_ne!(found["total_results"], 0);
    server.kill().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_while_it_digitizes_loses_nothing() {
    survive(Killed::Digitizing).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_while_it_rewrites_pays_nothing_twice() {
    survive(Killed::Rewriting).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_killed_while_it_embeds_loses_nothing() {
    survive(Killed::Embedding).await;
}
