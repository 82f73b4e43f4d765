//! Whatever costs something is admitted before and settled after.

use async_trait::async_trait;
use colloquy_bases::sweep;
use colloquy_providers::{Embedder, EmbeddingRequest, Embeddings, ProviderError};
use tokio::sync::Semaphore;

use super::*;

/// A model that the server computes itself, once for each permit. Each text has seven tokens.
struct Held(Semaphore);

#[async_trait]
impl Embedder for Held {
    fn name(&self) -> &str {
        "held"
    }

    fn max_tokens(&self) -> usize {
        128
    }

    fn count_tokens(&self, _text: &str) -> usize {
        7
    }

    fn counts_exactly(&self) -> bool {
        true
    }

    fn max_texts(&self) -> usize {
        64
    }

    async fn embed(&self, request: EmbeddingRequest) -> Result<Embeddings, ProviderError> {
        self.0.acquire().await.unwrap().forget();
        let texts = request.texts.len();
        Ok(Embeddings {
            vectors: vec![vec![0.6, 0.8]; texts],
            tokens: Some(7 * texts as u64),
        })
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}

async fn count(app: &App, which: &str) -> usize {
    let sql = format!("SELECT COUNT(*) FROM knowledge_usage WHERE {which}");
    app.state.store.db().fetch_count(sql).await.unwrap() as usize
}

/// Each request to a service has one row, and each row a request.
async fn agree(app: &App, upstream: &Upstream) {
    for (kind, api) in [("rewrite", Api::Chat), ("embed", Api::Embeddings)] {
        let asked = upstream.requests(api).len();
        assert_eq!(
            count(app, &format!("kind = '{kind}'")).await,
            asked,
            "{kind}"
        );
    }
    assert_eq!(count(app, "outcome = 'pending'").await, 0);
    assert_eq!(count(app, "settled_at IS NULL").await, 0);
}

on_each_database!(every_paid_step_is_admitted_once, |database| {
    let upstream = Upstream::start().await;
    let models = |config: &mut Config| {
        upstream.offer(config);
        upstream.embed(config, "scripted-embeddings");
        config.embedder.max_texts = 2;
        config.embedder.input_usd = Some("0.02".parse().unwrap());
        config.rewriting.model = Some("scripted-chat".to_owned());
        config.rewriting.section_tokens = 100;
    };
    let builder = builder(&database).config(models);
    let app = start_working(builder).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let add = async |name: &str, more: (&'static str, &str)| {
        let text: String = (0..8)
            .map(|part| format!("# {name} {part}\n\n{}\n\n", "Words of it. ".repeat(40)))
            .collect();
        let form = fields(&[("type", "file"), ("folder", "texts"), more]);
        let form = form.part("file", file(&format!("{name}.md"), text));
        let made = post(&app, key, &format!("/api/documents/{BASE}"), form).await;
        let id = made.expect(201)["id"].as_str().unwrap().to_owned();
        app.advance_through("bases.%").await;
        let path = format!("/api/document/{BASE}/{id}");
        app.get(key, &path).await.expect(200)
    };
    let long: String = (0..8)
        .map(|part| format!("## Part {part}\n\n{}\n\n", "More of it. ".repeat(90)))
        .collect();
    upstream.set_default(Api::Chat, Script::text(long));
    let made = add("rewritten", ("auto_rewrite", "true")).await;
    assert_eq!(made["status"], "ready", "{made}");
    agree(&app, &upstream).await;
    let rewritten = count(&app, "kind = 'rewrite' AND outcome = 'success'").await;
    assert!(
        rewritten > 2 && made["rewrite_sections"] == rewritten,
        "{made}"
    );
    let whole = "cost > 0 AND input_tokens > 0 AND bound_tokens > input_tokens";
    assert_eq!(
        count(
            &app,
            &format!("kind = 'rewrite' AND {whole} AND output_tokens > 0")
        )
        .await,
        rewritten
    );
    let embedded = count(&app, "kind = 'embed' AND cost > 0 AND input_tokens > 0").await;
    assert_eq!(embedded, upstream.requests(Api::Embeddings).len());
    assert!(embedded > 1);

    // What went wrong after it was asked for may have to be paid for.
    upstream.set_default(Api::Chat, Script::fault(Fault::Status(500)));
    let made = add("fault", ("auto_rewrite", "true")).await;
    assert_eq!(made["rewrite_status"], "failed");
    agree(&app, &upstream).await;
    assert!(
        count(
            &app,
            "kind = 'rewrite' AND outcome = 'uncertain' AND cost IS NULL AND unknown"
        )
        .await
            >= 1
    );
    upstream.script(Api::Embeddings, Script::fault(Fault::Status(500)));
    let made = add("embedded", ("use_original_as_rewritten", "true")).await;
    assert_eq!(made["status"], "ready", "{made}");
    agree(&app, &upstream).await;
    assert_eq!(
        count(&app, "kind = 'embed' AND outcome = 'uncertain'").await,
        1
    );

    // Rows outlive their documents, and not their bases.
    let all = count(&app, "TRUE").await;
    let path = format!("/api/documents/{BASE}/{}", made["id"].as_str().unwrap());
    app.delete(key, &path).await.expect(200);
    assert_eq!(count(&app, "TRUE").await, all);
    app.delete(key, "/api/knowledgebases/acme/manual")
        .await
        .expect(200);
    eventually("the base is gone", async || count(&app, "TRUE").await == 0).await;
});

/// Where no connection can be made nothing is sent, so nothing is written down.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_not_sent_has_no_row() {
    let upstream = Upstream::start().await;
    let models = |config: &mut Config| {
        upstream.offer(config);
        let mut away = config.models["scripted-chat"].clone();
        away.base_url = Some("http://127.0.0.1:9/v1".parse().unwrap());
        config.models.insert("away".to_owned(), away);
        config.rewriting.model = Some("away".to_owned());
        config.rewriting.backup_model = Some("scripted-chat".to_owned());
    };
    let builder = builder(&TestDatabase::sqlite()).config(models);
    let app = start_working(builder).await;
    let acme = furnished(&app).await;
    let form = fields(&[
        ("type", "file"),
        ("folder", "texts"),
        ("auto_rewrite", "true"),
    ]);
    let form = form.part("file", file("a.md", "Lions sleep."));
    let made = post(&app, &acme.key, &format!("/api/documents/{BASE}"), form).await;
    made.expect(201);
    settled(&app, &acme.key).await;
    assert_eq!(
        count(&app, "model = 'scripted-chat' AND outcome = 'success'").await,
        1
    );
    assert_eq!(count(&app, "model = 'away'").await, 0);
}

/// A node that is cut off from the database is taken for dead, and its own requests are taken back. It was not, and goes on with the next
/// permit. Returns its routes, the key of the partner and the path of the document.
async fn taken_back(database: &TestDatabase, held: &Arc<Held>) -> (App, String, String) {
    let providers = |config: &Config| Providers {
        embedder: Some(held.clone()),
        ..Doubles::default().providers(config)
    };
    let app = start_with(builder(database).with_decoder(), providers).await;
    app.start_worker(&CAPABILITIES, quick()).await;
    let acme = furnished(&app).await;
    let form = fields(&[("type", "file"), ("folder", "texts"), budgets::FINAL]);
    let form = form.part("file", file("a.md", "Lions sleep in the savannah."));
    let made = post(&app, &acme.key, &format!("/api/documents/{BASE}"), form).await;
    let id = made.expect(201)["id"].as_str().unwrap().to_owned();
    eventually("vectors are asked for", async || {
        count(&app, "outcome = 'pending'").await == 1
    })
    .await;
    assert_ne!(tokens(&app, &acme.key).await.1, json!(0));
    // As another node finds it.
    let db = app.state.store.db();
    db.execute("UPDATE knowledge_usage SET node_id = 'cut-off'")
        .await
        .unwrap();
    sweep(&app.state).await.unwrap();
    assert_eq!(count(&app, "TRUE").await, 0);
    assert_eq!(tokens(&app, &acme.key).await, (json!(0), json!(0)));
    (app, acme.key, format!("/api/document/{BASE}/{id}"))
}

/// The tokens that the budget of the base has counted, and those that are reserved in it.
async fn tokens(app: &App, key: &str) -> (Value, Value) {
    let budget = app.get(key, budgets::LIMITS).await.expect(200);
    let tokens = &budget["tokens"];
    (tokens["consumed"].clone(), tokens["reserved"].clone())
}

on_each_database!(
    what_a_node_computed_that_was_taken_for_dead_counts_once,
    |database| {
        let held = Arc::new(Held(Semaphore::new(0)));
        let (app, key, path) = taken_back(&database, &held).await;
        let key = key.as_str();
        // What was computed counts, also where there is no room for it any more.
        let request = app.request(Method::PATCH, budgets::LIMITS);
        let request = request.bearer_auth(key).json(&json!({"token_limit": 1}));
        send(request).await.expect(200);

        held.0.add_permits(1);
        eventually("the document is ready", async || {
            app.get(key, &path).await.expect(200)["status"] == "ready"
        })
        .await;
        assert_eq!(tokens(&app, key).await, (json!(7), json!(0)));
        assert_eq!(count(&app, "TRUE").await, 1);
        let counted = "local AND outcome = 'success' AND input_tokens = 7 AND NOT unknown";
        assert_eq!(count(&app, counted).await, 1);
        sweep(&app.state).await.unwrap();
        assert_eq!(tokens(&app, key).await, (json!(7), json!(0)));
    }
);

// What was computed and cannot be counted is an error of the job, which says why.
on_each_database!(
    what_was_computed_and_cannot_be_counted_is_an_error,
    |database| {
        let held = Arc::new(Held(Semaphore::new(0)));
        let (app, key, path) = taken_back(&database, &held).await;
        let db = app.state.store.db();
        db.execute("UPDATE quotas SET disabled = TRUE WHERE purpose = 'budget'")
            .await
            .unwrap();
        held.0.add_permits(1);
        eventually("the job says why", async || {
            let sql =
                "SELECT COUNT(*) FROM work WHERE last_error LIKE '%the quota is switched off%'";
            db.fetch_count(sql).await.unwrap() == 1
        })
        .await;
        assert_ne!(app.get(&key, &path).await.expect(200)["status"], "ready");
        assert_eq!(count(&app, "TRUE").await, 0);
    }
);
