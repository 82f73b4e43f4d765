//! Which documents are embedded first.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use colloquy::{
    Config,
    clock::ManualClock,
    providers::{Embedder, EmbeddingRequest, Embeddings, ProviderError, Providers},
};
use harness::{TestAppBuilder, TestDatabase, doubles::Doubles, news};
use tokio::sync::Semaphore;

use super::*;

/// A model that notes what it is asked for and answers nothing until the test [opens](Self::open) it. A token is a word.
struct Gate {
    asked: Mutex<Vec<Vec<String>>>,
    permits: Semaphore,
    /// Moved by so much for each request.
    clock: Option<(Arc<ManualClock>, Duration)>,
}

impl Gate {
    fn closed(clock: Option<(Arc<ManualClock>, Duration)>) -> Arc<Self> {
        Arc::new(Self {
            asked: Mutex::default(),
            permits: Semaphore::new(0),
            clock,
        })
    }

    /// Answers one request: the one that has waited the longest, or the next.
    fn answer_one(&self) {
        self.permits.add_permits(1);
    }

    fn open(&self) {
        self.permits.add_permits(10_000);
    }

    /// A server that embeds with it.
    fn builder(self: &Arc<Self>) -> TestAppBuilder {
        let providers = Providers {
            embedder: Some(self.clone()),
            ..Doubles::default().providers(&Config::default())
        };
        let builder = TestApp::builder(&TestDatabase::sqlite()).providers(providers);
        builder.with_decoder().quick_worker()
    }

    /// The requests so far.
    fn asked(&self) -> Vec<Vec<String>> {
        self.asked.lock().unwrap().clone()
    }

    /// How many requests had a text with this in it.
    fn asked_for(&self, words: &str) -> usize {
        let asked = self.asked();
        let has = |texts: &&Vec<String>| texts.iter().any(|text| text.contains(words));
        asked.iter().filter(has).count()
    }
}

#[async_trait]
impl Embedder for Gate {
    fn name(&self) -> &str {
        "gate"
    }

    fn max_tokens(&self) -> usize {
        128
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn counts_exactly(&self) -> bool {
        true
    }

    fn max_texts(&self) -> usize {
        2
    }

    async fn embed(&self, request: EmbeddingRequest) -> Result<Embeddings, ProviderError> {
        let vector = |text: &String| match text.contains("needle") {
            true => vec![1.0, 0.0],
            false => vec![0.0, 1.0],
        };
        let vectors = request.texts.iter().map(vector).collect();
        self.asked.lock().unwrap().push(request.texts);
        news::tell();
        self.permits.acquire().await.unwrap().forget();
        if let Some((clock, lasts)) = &self.clock {
            clock.advance(*lasts);
        }
        Ok(Embeddings {
            vectors,
            tokens: None,
        })
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}

/// A document of so many chunks.
fn text(name: &str, chunks: usize) -> String {
    let section = |part| format!("# {name}{part}.\n\n{}\n\n", "Words of it. ".repeat(30));
    (0..chunks).map(section).collect()
}

/// Long documents take none of the places of short ones, however many they are, and are cut six times at most each: each lease of a job is
/// a cut.
#[tokio::test(flavor = "multi_thread")]
async fn a_short_document_waits_for_no_request_of_long_ones() {
    const LONG: [(&str, usize); 6] = [
        ("first", 36),
        ("second", 36),
        ("third", 36),
        ("fourth", 36),
        ("fifth", 36),
        // Its bytes say that it is long, before it is cut.
        ("sixth", 80),
    ];
    let gate = Gate::closed(None);
    let app = gate.builder().start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    for (name, chunks) in LONG {
        add(&app, key, name, &text(name, chunks)).await;
    }
    eventually("long ones are embedded", async || gate.asked().len() == 2).await;
    add(&app, key, "short", "# Short\n\nThe needle.").await;
    eventually("so is the short one", async || {
        gate.asked_for("needle") == 1
    })
    .await;
    assert_eq!(gate.asked().len(), 3);
    gate.open();
    settled(&app, key).await;

    for (name, chunks) in LONG {
        for part in 0..chunks {
            let section = format!(" {name}{part}.");
            assert_eq!(gate.asked_for(&section), 1, "{section} is embedded once");
        }
    }
    let db = app.app.store.db();
    let long = "SELECT COUNT(*) FROM work WHERE kind = 'bases.embed_long'";
    assert_eq!(db.fetch_count(long).await.unwrap(), LONG.len() as u64);
    let leases = "SELECT CAST(SUM(fence) AS BIGINT) FROM work WHERE kind IN ('bases.embed', 'bases.embed_long')";
    let leases = db.fetch_count(leases).await.unwrap();
    assert!(leases <= 1 + 6 * LONG.len() as u64, "{leases}");
    assert_eq!(found(&app, key, "needle").await[0], "short");
}

/// A document of a few requests has them one after the other only while they are fast, or no other waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_of_a_few_slow_requests_makes_way_after_each() {
    let clock = Arc::new(ManualClock::new("2026-01-02T03:04:05Z".parse().unwrap()));
    let gate = Gate::closed(Some((Arc::clone(&clock), Duration::from_secs(2))));
    let app = gate.builder().clock(clock).start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    for name in ["first", "second"] {
        add(&app, key, name, &text(name, 6)).await;
    }
    eventually("both places are taken", async || gate.asked().len() == 2).await;
    add(&app, key, "short", "# Short\n\nThe needle.").await;
    let db = app.app.store.db();
    let waits = "SELECT COUNT(*) FROM work WHERE kind = 'bases.embed' AND state = 'queued'";
    eventually("the short one waits", async || {
        db.fetch_count(waits).await.unwrap() == 1
    })
    .await;
    gate.answer_one();
    eventually("one makes way", async || gate.asked().len() == 3).await;
    assert!(gate.asked()[2][0].contains("needle"), "for the short one");
    gate.open();
    settled(&app, key).await;
    assert_eq!(gate.asked().len(), 3 + 3 + 1, "nothing is embedded twice");
    let long = "SELECT COUNT(*) FROM work WHERE kind = 'bases.embed_long'";
    assert_eq!(db.fetch_count(long).await.unwrap(), 0);
}

/// A long document of which a few slow requests are missing makes way among the short ones once, and goes on among long ones.
#[tokio::test(flavor = "multi_thread")]
async fn an_edited_long_document_makes_way_once() {
    let clock = Arc::new(ManualClock::new("2026-01-02T03:04:05Z".parse().unwrap()));
    let gate = Gate::closed(Some((Arc::clone(&clock), Duration::from_secs(2))));
    let app = gate.builder().clock(clock).start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let all = text("first", 36);
    let id = add(&app, key, "first", &all).await;
    for _ in 0..18 {
        gate.answer_one();
    }
    settled(&app, key).await;

    let edited = text("edited", 8) + &all[text("first", 8).len()..];
    let path = format!("/api/documents/{BASE}/{id}/content/rewritten");
    let form = [("content", edited.as_str())];
    put(&app, key, &path, &form).await.expect(200);
    eventually("what was edited is embedded", async || {
        gate.asked().len() == 19
    })
    .await;
    add(&app, key, "other", &text("other", 6)).await;
    eventually("both places are taken", async || gate.asked().len() == 20).await;
    add(&app, key, "short", "# Short\n\nThe needle.").await;
    let db = app.app.store.db();
    let waits = "SELECT COUNT(*) FROM work WHERE kind = 'bases.embed' AND state = 'queued'";
    eventually("the short one waits", async || {
        db.fetch_count(waits).await.unwrap() == 1
    })
    .await;
    gate.answer_one();
    let long = "SELECT COUNT(*) FROM work WHERE kind = 'bases.embed_long' AND state = 'running'";
    eventually("the edited one goes on among long ones", async || {
        db.fetch_count(long).await.unwrap() == 1 && gate.asked().len() == 22
    })
    .await;
    assert_eq!(gate.asked_for("needle"), 1);
    gate.open();
    settled(&app, key).await;
    assert_eq!(
        gate.asked().len(),
        18 + 4 + 3 + 1,
        "nothing is embedded twice"
    );
}
