//! A server that is killed again and again: what the models were asked, what the ledger counted and what became of the documents say the same.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Instant,
};

use colloquy::store::Store;
use harness::{
    TestDatabase,
    app::ADMIN_KEY,
    elsewhere::eventually,
    news, patience,
    upstream::{Api, INPUT_TOKENS, Script, Upstream, output_tokens},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};

use super::{
    usage::{self, EMBEDDING_USD, Row},
    *,
};

const LIMITS: &str = "/api/knowledgebases/acme/manual/limits";
const SECTIONS: usize = 3;
const ANSWER: &str = "# Stable\n\nThe animals sleep there.";
/// How long a server may take to come to a moment in which it is to be killed, on a machine of ordinary speed.
const PATIENCE: Duration = Duration::from_secs(2);

/// The moment in which a server is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// After a document was accepted.
    Digitizing,
    /// After a model was asked to rewrite.
    Rewriting,
    /// After a model was asked for vectors.
    Embedding,
}

/// A text of some sections, each of which names the document and itself.
fn text(number: usize) -> String {
    let section = |section: usize| {
        let words = format!(" animal{number:03} sleeps in stable {section} and eats hay.");
        let words = words.repeat(20);
        format!("# Part {section}\n\nanimal{number:03}section{section}.{words}\n\n")
    };
    (0..SECTIONS).map(section).collect()
}

#[derive(sqlx::FromRow)]
struct Node {
    id: String,
}

struct Killed {
    upstream: Upstream,
    store: Store,
    key: String,
    /// The marker of each document by its id.
    markers: BTreeMap<String, String>,
    /// How often somebody wanted a document to be rewritten again.
    wishes: HashMap<String, usize>,
}

impl Killed {
    /// The processes before this one.
    async fn earlier(&self) -> HashSet<String> {
        let sql = "SELECT id FROM nodes ORDER BY id DESC";
        let nodes: Vec<Node> = self.store.db().fetch_all(sql).await.unwrap();
        nodes.into_iter().skip(1).map(|node| node.id).collect()
    }

    async fn add(&mut self, server: &Server) {
        let number = self.markers.len();
        let wanted = match number % 2 {
            0 => "auto_rewrite",
            _ => "use_original_as_rewritten",
        };
        let form = fields(&[("type", "file"), ("folder", "texts"), (wanted, "true")]);
        let form = form.part("file", file(&format!("animal{number:03}.md"), text(number)));
        let request = server.request(&self.key, Method::POST, &format!("/api/documents/{BASE}"));
        let made = send(request.multipart(form)).await.expect(201);
        let id = made["id"].as_str().unwrap().to_owned();
        self.markers.insert(id, format!("animal{number:03}"));
    }

    async fn documents(&self, server: &Server) -> Vec<Value> {
        let data = server.get(&self.key, &format!("/api/kb-data/{BASE}")).await;
        data["documents"].as_array().unwrap().clone()
    }

    /// Waits until nobody knows any more what became of the requests of processes that were killed.
    async fn swept(&self) {
        let living = "node_id = (SELECT MAX(id) FROM nodes)";
        let sql = format!(
            "SELECT COUNT(*) FROM knowledge_usage WHERE outcome = 'pending' AND NOT {living}"
        );
        eventually("lost requests are uncertain", async || {
            self.store.db().fetch_count(sql.clone()).await.unwrap() == 0
        })
        .await;
    }

    /// Has all that failed done again. How many documents these are.
    async fn ask_again(&mut self, server: &Server) -> usize {
        let mut again = 0;
        for document in self.documents(server).await {
            let action = match () {
                () if document["digitize_status"] == "failed" => "digitize",
                () if document["rewrite_status"] == "failed" => "rewrite",
                () => continue,
            };
            let path = format!("/api/queue/process?partner=acme&kb=manual&action={action}");
            let body = json!({"document": {"id": document["id"]}});
            let request = server.request(&self.key, Method::POST, &path).json(&body);
            send(request).await.expect(200);
            let id = document["id"].as_str().unwrap().to_owned();
            *self.wishes.entry(id).or_default() += 1;
            again += 1;
        }
        let path = format!("/api/embedding/{BASE}/retry-failed");
        let request = server.request(&self.key, Method::POST, &path);
        let queued = send(request).await.expect(200)["queued"].as_u64().unwrap();
        again + queued as usize
    }

    async fn limit(&self, server: &Server, body: Value) {
        let request = server.request(&self.key, Method::PATCH, LIMITS);
        send(request.json(&body)).await.expect(200);
    }

    async fn until(&self, moment: Moment, requests: usize) {
        let api = match moment {
            Moment::Digitizing => return,
            Moment::Rewriting => Api::Chat,
            Moment::Embedding => Api::Embeddings,
        };
        let enough = self.upstream.requests(api).len() + requests;
        let have_come = || (self.upstream.requests(api).len() >= enough).then_some(());
        // Perhaps there is nothing of the kind left to be done.
        let _ = tokio::time::timeout(patience(PATIENCE), news::some(have_come)).await;
    }

    /// Waits until each document is ready; what failed since its process was killed is asked for again.
    async fn finish(&mut self, server: &Server) {
        let begun = Instant::now();
        while begun.elapsed() < patience(Duration::from_secs(90)) {
            let documents = self.documents(server).await;
            if documents.iter().all(|it| it["status"] == "ready") {
                return;
            }
            let is_active = |it: &Value| {
                ["digitize_status", "rewrite_status", "embedding_status"]
                    .iter()
                    .any(|step| matches!(it[step].as_str(), Some("queued" | "running")))
            };
            if !documents.iter().any(is_active) {
                assert_ne!(self.ask_again(server).await, 0, "they sleep: {documents:?}");
            }
            sleep(Duration::from_millis(50)).await;
        }
        panic!("not all are ready: {:?}", self.documents(server).await);
    }

    /// Nothing was asked for again but what somebody wanted, or what a process had not stored when it was killed.
    fn nothing_is_paid_for_twice(&self, rows: &[Row], killed: &HashSet<String>) {
        for (id, marker) in &self.markers {
            let wishes = self.wishes.get(id).copied().unwrap_or_default();
            for section in 0..SECTIONS {
                let name = format!("{marker}section{section}.");
                let times = |api| {
                    let requests = self.upstream.requests(api);
                    let named = requests
                        .iter()
                        .filter(|it| it.body.to_string().contains(&name));
                    named.count()
                };
                let asked = times(Api::Chat);
                assert!(
                    asked <= 1 + wishes,
                    "{name}: {asked} times, {wishes} wishes"
                );
                let of_killed = rows.iter().filter(|row| {
                    row.document_id == *id && row.kind == "embed" && killed.contains(&row.node_id)
                });
                let (embedded, lost) = (times(Api::Embeddings), of_killed.count());
                assert!(
                    embedded <= 1 + lost,
                    "{name}: {embedded} times, {lost} were lost"
                );
            }
        }
    }

    /// What the models were asked, the ledger, and the documents.
    async fn reconcile(&self, server: &Server) {
        let data = server.get(&self.key, &format!("/api/kb-data/{BASE}")).await;
        let budget = server.get(&self.key, LIMITS).await;
        assert_eq!(data["budget"], budget);
        let killed = self.earlier().await;
        let (store, upstream) = (&self.store, &self.upstream);
        let rows = usage::reconciled(store, upstream, &self.markers, &killed, &budget).await;
        self.nothing_is_paid_for_twice(&rows, &killed);

        // Some were uncertain, also some that nobody decided about, and of the living process nothing is.
        let of_living = rows.iter().filter(|row| !killed.contains(&row.node_id));
        assert!(
            of_living.into_iter().all(|row| row.outcome == "success"),
            "{rows:#?}"
        );
        let is_settled = |row: &&Row| row.outcome != "uncertain";
        let listed = server.get(&self.key, "/api/knowledgebases/acme").await;
        let (lifetime, rewrites) = (&listed[0]["lifetime_usage"], &listed[0]["rewrite_usage"][0]);
        assert_eq!(
            lifetime["event_count"],
            rows.iter().filter(is_settled).count()
        );
        assert_eq!(lifetime["unpriced_event_count"], 0);
        assert_eq!(lifetime["cost_usd_total"], budget["dollars"]["consumed"]);
        let of = |decided: bool| {
            let mut rows = rows
                .iter()
                .filter(is_settled)
                .filter(move |row| row.kind == "rewrite");
            rows.by_ref()
                .filter(move |row| (row.decided > 0) == decided)
                .count()
        };
        assert_eq!(rewrites["rewritten_count"], of(false), "{rewrites}");
        assert_eq!(rewrites["rejected_count"], of(true), "{rewrites}");
        let totals = &data["usage_totals"];
        let tokens = |name: &str| totals[name].as_u64().unwrap();
        let sum = tokens("input_tokens") + tokens("output_tokens");
        assert_eq!(budget["tokens"]["consumed"], sum, "{totals}");

        let documents = data["documents"].as_array().unwrap();
        assert_eq!(documents.len(), self.markers.len(), "no document is lost");
        let answer = Script::text(ANSWER);
        for (number, document) in documents.iter().enumerate() {
            assert_eq!(document["status"], "ready", "{document}");
            let id = document["id"].as_str().unwrap();
            let content = async |variant: &str| {
                let path = format!("/api/documents/{BASE}/{id}/content/{variant}");
                let content = server.get(&self.key, &path).await["content"].clone();
                content.as_str().unwrap().trim().to_owned()
            };
            let text = text(number);
            assert_eq!(content("digitized").await, text.trim());
            if number % 2 == 1 {
                assert_eq!(content("rewritten").await, text.trim());
                continue;
            }
            let sections = document["rewrite_sections"].as_u64().unwrap();
            assert_eq!(document["rewrite_sections_done"], sections);
            let expected = vec![ANSWER; sections as usize].join("\n\n");
            assert_eq!(content("rewritten").await, expected);
            assert_eq!(
                document["rewrite_input_tokens_total"],
                sections * INPUT_TOKENS
            );
            assert_eq!(
                document["rewrite_output_tokens"],
                sections * output_tokens(&answer)
            );
            assert_eq!(document["rewrite_cost_complete"], true);
        }
        let info = &data["embedding_info"];
        assert_eq!(info["embedded_document_count"], documents.len(), "{info}");
    }
}

/// Settings with the scripted models.
fn settle_on(upstream: &Upstream, config: &mut colloquy::Config) {
    upstream.offer(config);
    upstream.embed(config, "scripted-embeddings");
    config.embedder.input_usd = Some(EMBEDDING_USD.parse().unwrap());
    config.embedder.max_texts = 1;
    config.rewriting.model = Some("scripted-chat".to_owned());
    config.rewriting.section_tokens = 300;
    config.limits.request_burst = 100_000;
}

/// Kills a server in each of the moments, one after the other, on one database.
async fn survive(database: TestDatabase, seed: u64, moments: &[Moment]) {
    let mut random = StdRng::seed_from_u64(seed);
    let upstream = Upstream::start().await;
    let slow = |text: &str| Script::text(text).delayed(Duration::from_millis(60), Duration::ZERO);
    upstream.set_default(Api::Chat, slow(ANSWER));
    upstream.set_default(Api::Embeddings, slow(""));
    let mut server = Server::start(&database, |config| settle_on(&upstream, config)).await;
    let key = furnished_server(&server).await.key;
    let mut killed = Killed {
        store: database.config().open().await.unwrap(),
        upstream,
        key,
        markers: BTreeMap::new(),
        wishes: HashMap::new(),
    };
    let limits = json!({"token_limit": 10_000_000, "dollar_limit_usd": 1_000});
    killed.limit(&server, limits).await;
    let decided_until = moments.len() * 2 / 3;
    for (round, moment) in moments.iter().enumerate() {
        for _ in 0..random.random_range(1..3) {
            killed.add(&server).await;
        }
        killed.until(*moment, random.random_range(1..4)).await;
        // Digitizing takes longer than an answer.
        let most = if *moment == Moment::Digitizing {
            200
        } else {
            80
        };
        let waits = random.random_range(0..most);
        sleep(Duration::from_millis(waits)).await;
        server.kill().await;
        server = Server::start(&database, |config| settle_on(&killed.upstream, config)).await;
        killed.swept().await;
        if round < decided_until {
            let taken_for = if round % 2 == 0 { "bound" } else { "nothing" };
            let request = server.request(ADMIN_KEY, Method::POST, &format!("{LIMITS}/unknown"));
            let decided = send(request.json(&json!({"taken_for": taken_for}))).await;
            assert_eq!(decided.expect(200)["uncertain_operations"], 0);
        } else {
            // Nobody decides about these: they stay uncertain, and what they may have used stays reserved.
            let unlimited = json!({"token_limit": null, "dollar_limit_usd": null});
            killed.limit(&server, unlimited).await;
        }
        killed.ask_again(&server).await;
    }
    killed.finish(&server).await;
    killed.reconcile(&server).await;
    server.kill().await;
}

/// Twelve times in all, in two tests side by side.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_six_times_owes_what_it_was_told() {
    use Moment::{Digitizing, Embedding, Rewriting};
    let moments = [Digitizing, Rewriting, Embedding].repeat(2);
    survive(TestDatabase::sqlite(), 7, &moments).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_six_times_more_owes_what_it_was_told() {
    use Moment::{Digitizing, Embedding, Rewriting};
    let moments = [Embedding, Rewriting, Digitizing].repeat(2);
    survive(TestDatabase::sqlite(), 9, &moments).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_postgres_that_is_killed_owes_what_it_was_told() {
    use Moment::{Digitizing, Embedding, Rewriting};
    let moments = [Rewriting, Embedding, Digitizing];
    survive(TestDatabase::postgres().await, 8, &moments).await;
}
