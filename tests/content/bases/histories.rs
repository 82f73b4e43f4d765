//! Random histories of a whole base: documents come, change and go, limits are raised and lowered, models fail, processes die. After each step, and
//! once all is quiet, what was admitted fits the limits, what was used is what the models told, and nothing waits that could go on.
//!
//! A seed decides the steps, and the machine how they meet the work in the background.

use std::{
    collections::{BTreeMap, HashSet},
    fmt::Write as _,
    mem,
    sync::Arc,
};

use colloquy::{clock::ManualClock, store::Store};
use harness::{
    TestDatabase,
    app::{ADMIN_KEY, client},
    by_length, news,
    upstream::{Api, Fault, Script, Upstream},
};
use rand::{RngExt as _, SeedableRng as _, rngs::StdRng};
use tokio::{
    runtime,
    task::JoinHandle,
    time::{Instant, timeout},
};

use super::{
    usage::{self, Amounts, EMBEDDING_USD, Row},
    *,
};

const LIMITS: &str = "/api/knowledgebases/acme/manual/limits";
const STEPS: std::ops::Range<usize> = 30..61;
const DOCUMENTS: usize = 18;
/// A job that was running when its process died, and was alone, is not run again when that one dies, too.
const CRASHES: usize = 2;
/// How long a history may take until it is quiet.
const PATIENCE: Duration = Duration::from_secs(60);
/// Less than a worker may be late with the lease of a job that was just begun.
const JUMP_MS: i64 = 35_000;

/// A server in a runtime of its own, which is taken away from under it as if its process was killed.
struct Process {
    app: Option<TestApp>,
    runtime: Option<runtime::Runtime>,
}

impl Process {
    async fn start(builder: harness::TestAppBuilder) -> Self {
        let started = tokio::task::spawn_blocking(|| {
            let mut runtime = runtime::Builder::new_multi_thread();
            let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
            let app = runtime.block_on(builder.start());
            Self {
                app: Some(app),
                runtime: Some(runtime),
            }
        });
        started.await.unwrap()
    }

    fn app(&self) -> &TestApp {
        self.app.as_ref().unwrap()
    }

    /// What runs ends where it waits next, and nothing is told to stop.
    async fn kill(mut self) {
        let (runtime, app) = (self.runtime.take().unwrap(), self.app.take());
        let killed = tokio::task::spawn_blocking(move || {
            runtime.shutdown_timeout(Duration::from_secs(10));
            drop(app);
        });
        killed.await.unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A document as the test knows it.
#[derive(Debug, Clone)]
struct Known {
    id: String,
    number: usize,
    /// Whether its text is rewritten when it comes, else it is its final content.
    is_rewritten: bool,
    /// The text that was written last.
    text: String,
    /// Whether its text is its final content, and nobody wrote another one.
    is_final: bool,
    /// Whether somebody wrote its text, which is not rewritten then before somebody wants it.
    is_written: bool,
}

/// A limit, and what was there when it was set: what is there later is no more than the higher one.
#[derive(Debug, Clone, Copy, Default)]
struct Ceiling(Option<u64>);

struct History {
    seed: u64,
    begun: Instant,
    steps: String,
    random: StdRng,
    database: TestDatabase,
    store: Store,
    upstream: Upstream,
    clock: Arc<ManualClock>,
    http: reqwest::Client,
    process: Option<Process>,
    key: String,
    documents: Vec<Known>,
    /// The markers of all documents, also of those that are gone.
    markers: BTreeMap<String, String>,
    killed: HashSet<String>,
    /// How many requests of vectors and of chat have an answer of their own.
    scripted: [usize; 2],
    /// Of characters, tokens and dollars.
    ceilings: [Ceiling; 3],
    _ticking: JoinHandle<()>,
}

/// A failure shows what happened.
impl Drop for History {
    #[expect(clippy::print_stderr, reason = "a test that fails shows its history")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}:\n{}", self.seed, self.steps);
        }
    }
}

#[derive(sqlx::FromRow)]
struct Work {
    kind: String,
    state: String,
    run_at: i64,
    last_error: Option<String>,
}

/// What a blocked document needs.
#[derive(Debug, sqlx::FromRow)]
struct Needs {
    name: String,
    digitizing: String,
    rewriting: String,
    embedding: String,
    needed_characters: Option<i64>,
    needed_tokens: Option<i64>,
    needed_cost: Option<i64>,
    own_characters: Option<i64>,
}

/// How a measure of the budget stood when a request was admitted, with what was reserved for it.
#[derive(sqlx::FromRow)]
struct Admitted {
    measure: String,
    limit_amount: Option<i64>,
    used: i64,
    reserved: i64,
    uncertain: i64,
}

impl History {
    async fn start(seed: u64, database: TestDatabase) -> Self {
        let clock = Arc::new(ManualClock::new("2026-01-02T03:04:05Z".parse().unwrap()));
        let ticking = tokio::spawn({
            let clock = Arc::clone(&clock);
            async move {
                let mut last = Instant::now();
                loop {
                    sleep(Duration::from_millis(1)).await;
                    let now = Instant::now();
                    clock.advance(now - mem::replace(&mut last, now));
                }
            }
        });
        let mut history = Self {
            seed,
            begun: Instant::now(),
            steps: String::new(),
            random: StdRng::seed_from_u64(seed),
            store: database.config().open().await.unwrap(),
            database,
            upstream: Upstream::start().await,
            clock,
            http: client(),
            process: None,
            key: String::new(),
            documents: Vec::new(),
            markers: BTreeMap::new(),
            killed: HashSet::new(),
            scripted: [0; 2],
            ceilings: [Ceiling::default(); 3],
            _ticking: ticking,
        };
        for (api, after_ms) in [(Api::Chat, 80), (Api::Embeddings, 30)] {
            history.upstream.set_default(api, answer(None, after_ms));
        }
        history.begin().await;
        let app = history.process.as_ref().unwrap().app();
        history.key = furnished(app).await.key;
        history.watch_admissions().await;
        history
    }

    /// Starts a server on the database.
    async fn begin(&mut self) {
        let builder = TestApp::builder(&self.database)
            .clock(Arc::clone(&self.clock))
            .with_decoder()
            .quick_worker()
            .config(|config| {
                self.upstream.offer(config);
                self.upstream.embed(config, "scripted-embeddings");
                config.embedder.input_usd = Some(EMBEDDING_USD.parse().unwrap());
                // Long documents take several requests.
                config.embedder.max_tokens = 100;
                config.embedder.max_texts = 2;
                config.rewriting.model = Some("scripted-chat".to_owned());
                config.rewriting.max_output_tokens = 100;
                config.rewriting.section_tokens = 150;
            });
        self.process = Some(Process::start(builder).await);
    }

    /// Notes in the database how the budget stands whenever a request is admitted, in the transaction that admits it.
    async fn watch_admissions(&self) {
        let table = "CREATE TABLE admitted (usage_id TEXT NOT NULL, measure TEXT NOT NULL, limit_amount BIGINT, used BIGINT NOT NULL, \
                     reserved BIGINT NOT NULL, uncertain BIGINT NOT NULL)";
        let note = "INSERT INTO admitted SELECT NEW.id, measure, limit_amount, used, reserved, \
                    (SELECT COUNT(*) FROM knowledge_usage u WHERE u.outcome = 'uncertain') FROM quota_amounts WHERE quota = NEW.base_id;";
        let statements = match self.database.kind() {
            "sqlite" => vec![format!(
                "CREATE TRIGGER note_admission AFTER INSERT ON knowledge_usage BEGIN {note} END"
            )],
            _ => vec![
                format!(
                    "CREATE FUNCTION note_admission() RETURNS trigger AS $$ BEGIN {note} RETURN NEW; END $$ LANGUAGE plpgsql"
                ),
                "CREATE TRIGGER note_admission AFTER INSERT ON knowledge_usage FOR EACH ROW EXECUTE FUNCTION note_admission()".to_owned(),
            ],
        };
        self.store.db().execute(table).await.unwrap();
        for statement in statements {
            self.store.db().execute(statement).await.unwrap();
        }
    }

    fn note(&mut self, step: impl std::fmt::Display) {
        let at = self.upstream.all_requests();
        let ms = self.begun.elapsed().as_millis();
        writeln!(self.steps, "  {ms} ms: {step} (after {at} requests)").unwrap();
    }

    async fn call(&self, key: &str, method: Method, path: &str, body: Value) -> Answer {
        let request = self.request(key, method, path);
        match body {
            Value::Null => send(request).await,
            body => send(request.json(&body)).await,
        }
    }

    fn request(&self, key: &str, method: Method, path: &str) -> reqwest::RequestBuilder {
        let url = self.process.as_ref().unwrap().app().url(path);
        self.http.request(method, url).bearer_auth(key)
    }

    async fn get(&self, path: &str) -> Value {
        let answer = self.call(&self.key, Method::GET, path, Value::Null);
        answer.await.expect(200)
    }

    async fn data(&self) -> Value {
        self.get(&format!("/api/kb-data/{BASE}")).await
    }

    /// One of the documents that are there; often one about which a model is being asked.
    fn any(&mut self) -> Option<usize> {
        let count = self.documents.len();
        if count == 0 {
            return None;
        }
        let at = self.random.random_range(0..count);
        if self.random.random_bool(0.4) {
            return Some(at);
        }
        let requests = [Api::Chat, Api::Embeddings].map(|api| self.upstream.requests(api));
        let mut asked = requests.iter().flatten().filter(|it| it.end.is_none());
        let Some(asked) = asked.next().map(usage::marker) else {
            return Some(at);
        };
        let mut known = self.documents.iter();
        known
            .position(|known| self.markers[&known.id] == asked)
            .or(Some(at))
    }

    /// A text of some sections, each of which names the document.
    fn text(&mut self, number: usize) -> String {
        let sections = self.random.random_range(1..4);
        let version = self.random.random_range(0..1_000_000);
        let section = |section: usize, sentences: usize| {
            let sentence = format!("animal{number:03} sleeps in stable {version} and eats hay. ");
            let text = sentence.repeat(sentences);
            format!("# Part {section}\n\n{}\n\n", text.trim_end())
        };
        let sentences = |random: &mut StdRng| random.random_range(1..9);
        let text: String = (0..sections)
            .map(|at| section(at, sentences(&mut self.random)))
            .collect();
        text.trim_end().to_owned()
    }

    async fn upload(&mut self) {
        let number = self.markers.len();
        if number == DOCUMENTS {
            return;
        }
        let is_final = self.random.random_bool(0.5);
        let text = self.text(number);
        let wanted = match is_final {
            true => "use_original_as_rewritten",
            false => "auto_rewrite",
        };
        let form = fields(&[("type", "file"), ("folder", "texts"), (wanted, "true")]);
        let form = form.part("file", file(&format!("animal{number:03}.md"), text.clone()));
        let request = self.request(&self.key, Method::POST, &format!("/api/documents/{BASE}"));
        let made = send(request.multipart(form)).await.expect(201);
        let id = made["id"].as_str().unwrap().to_owned();
        self.note(format!("upload {number} {wanted}, {} bytes", text.len()));
        self.markers
            .insert(id.clone(), format!("animal{number:03}"));
        self.documents.push(Known {
            id,
            number,
            is_rewritten: !is_final,
            text,
            is_final,
            is_written: false,
        });
        if self.random.random_bool(0.2) {
            // Perhaps before the original is read.
            self.write_to(self.documents.len() - 1, "digitized").await;
        }
    }

    /// Writes another text of a document, or another final content.
    async fn write(&mut self) {
        let Some(at) = self.any() else { return };
        let variant = match self.random.random_bool(0.7) {
            true => "digitized",
            false => "rewritten",
        };
        self.write_to(at, variant).await;
    }

    async fn write_to(&mut self, at: usize, variant: &str) {
        let (id, number) = (self.documents[at].id.clone(), self.documents[at].number);
        let text = self.text(number);
        let path = format!("/api/documents/{BASE}/{id}/content/{variant}");
        let request = self.request(&self.key, Method::PUT, &path);
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.append_pair("content", &text);
        let request = request
            .header("Content-Type", "application/x-www-form-urlencoded")
            .body(body.finish());
        let written = send(request).await.expect(200);
        self.note(format!(
            "write {variant} of {number}, {} bytes: {}",
            text.len(),
            written["status"]
        ));
        let document = &mut self.documents[at];
        if variant == "rewritten" {
            document.is_final = false;
            return;
        }
        document.text = text;
        document.is_written = true;
    }

    /// Writes another text of a document while a model is asked about the one before.
    async fn interrupt(&mut self) {
        let known = self.documents.iter().enumerate();
        let rewritten: Vec<usize> = known
            .filter(|(_, known)| known.is_rewritten)
            .map(|(at, _)| at)
            .collect();
        if rewritten.is_empty() {
            return;
        }
        let at = rewritten[self.random.random_range(0..rewritten.len())];
        let id = self.documents[at].id.clone();
        let path = "/api/queue/process?partner=acme&kb=manual&action=rewrite";
        let body = json!({"document": {"id": id}});
        let queued = self.call(&self.key, Method::POST, path, body).await;
        self.note(format!(
            "rewrite {}: {}",
            self.documents[at].number, queued.status
        ));
        // Perhaps it is not asked.
        let asked = news::some(|| self.is_asked(&self.markers[&id]).then_some(()));
        let _ = timeout(Duration::from_millis(500), asked).await;
        self.write_to(at, "digitized").await;
        self.settled().await;
    }

    /// Whether a model is being asked to rewrite a document.
    fn is_asked(&self, marker: &str) -> bool {
        let requests = self.upstream.requests(Api::Chat);
        let mut running = requests.iter().filter(|it| it.end.is_none());
        running.any(|it| usage::marker(it) == marker)
    }

    /// Writes a text of a document for which there may be no room, and then makes some.
    async fn outgrow(&mut self) {
        let Some(at) = self.any() else { return };
        self.settled().await;
        let taken = taken(&self.get(LIMITS).await)[0];
        let room = self.random.random_range(0..200);
        self.set_limit(0, Some(taken + room)).await;
        self.write_to(at, "digitized").await;
        self.make_room().await;
    }

    async fn delete(&mut self) {
        let Some(at) = self.any() else { return };
        let document = self.documents.remove(at);
        let path = format!("/api/documents/{BASE}/{}", document.id);
        let gone = self.call(&self.key, Method::DELETE, &path, Value::Null);
        let gone = gone.await.expect(200);
        self.note(format!("delete {}: {}", document.number, gone["status"]));
    }

    /// Sets one of the limits: to nothing, to what is there, above it, below it, to what a document needs that waits, or to none.
    async fn limit(&mut self) {
        let blocked = self.blocked().await;
        if !blocked.is_empty() && self.random.random_bool(0.5) {
            return self.limit_for(&blocked).await;
        }
        let budget = self.get(LIMITS).await;
        let which = [0, 0, 1, 2][self.random.random_range(0..4)];
        let taken = taken(&budget)[which];
        let room = [1_000, 2_000, 400_000][which];
        let limit = match self.random.random_range(0..20) {
            0 => Some(0),
            1 => Some(taken),
            2 => Some(taken / 2),
            3..6 => Some(taken + self.random.random_range(0..room)),
            6..12 => Some(taken + self.random.random_range(0..6 * room)),
            _ => None,
        };
        self.set_limit(which, limit).await;
    }

    /// Sets a limit so that there is room for one of the documents that wait, and for little more.
    async fn limit_for(&mut self, blocked: &[Needs]) {
        let needs = &blocked[self.random.random_range(0..blocked.len())];
        let taken = taken(&self.get(LIMITS).await);
        let others = taken[0] - number(needs.own_characters);
        let (which, enough) = match needs.needed_characters {
            Some(needed) => (0, others + needed.unsigned_abs()),
            None if self.random.random_bool(0.5) => (1, taken[1] + number(needs.needed_tokens)),
            None => (2, taken[2] + number(needs.needed_cost)),
        };
        let more = self.random.random_range(0..50);
        self.set_limit(which, Some(enough + more)).await;
    }

    /// Makes room where some wait and nothing else goes on, and looks who goes on.
    async fn make_room(&mut self) {
        self.settled().await;
        let blocked = self.blocked().await;
        if blocked.is_empty() {
            return;
        }
        match self.random.random_bool(0.5) {
            true => self.delete().await,
            false => self.limit_for(&blocked).await,
        }
        self.settled().await;
    }

    /// Has several documents compete for a budget that has room for few at a time.
    async fn compete(&mut self) {
        self.upload().await;
        self.settled().await;
        let taken = taken(&self.get(LIMITS).await)[1];
        let room = self.random.random_range(500..2_000);
        self.set_limit(1, Some(taken + room)).await;
        for _ in 0..3 {
            self.upload().await;
        }
        self.settled().await;
    }

    async fn set_limit(&mut self, which: usize, limit: Option<u64>) {
        let field = ["character_limit", "token_limit", "dollar_limit_usd"][which];
        let value = match which {
            2 => json!(limit.map(|units| colloquy::money::Usd(units).to_string())),
            _ => json!(limit),
        };
        let changed = self.call(&self.key, Method::PATCH, LIMITS, json!({field: value}));
        let changed = changed.await.expect(200);
        let taken = taken(&changed)[which];
        self.note(format!("{field} {value}, with {taken}"));
        self.ceilings[which] = Ceiling(limit.map(|limit| limit.max(taken)));
    }

    /// Has the next answers be others, unless there are some that nobody has asked for yet.
    fn misbehave(&mut self) {
        let chats = self.random.random_bool(0.6);
        let api = if chats { Api::Chat } else { Api::Embeddings };
        let asked = self.upstream.requests(api).len();
        if self.scripted[usize::from(chats)] > asked {
            return;
        }
        let count = self.random.random_range(1..4);
        self.scripted[usize::from(chats)] = asked + count;
        for _ in 0..count {
            let slow = self.random.random_range(50..250);
            let fault = match self.random.random_range(0..8) {
                0 | 1 => None,
                2 => Some(Fault::Untold),
                3 | 4 => Some(Fault::Status(500)),
                5 => Some(Fault::Cut { after: 1 }),
                6 => Some(Fault::Status(400)),
                _ if chats => Some(Fault::Finish("content_filter".to_owned())),
                _ => Some(Fault::RateLimited { retry_after: None }),
            };
            self.note(format!("next of {api:?}: {fault:?} after {slow} ms"));
            self.upstream.script(api, answer(fault, slow));
        }
    }

    async fn retry(&mut self) {
        let path = format!("/api/embedding/{BASE}/retry-failed");
        let queued = self.call(&self.key, Method::POST, &path, json!({})).await;
        let queued = queued.expect(200)["queued"].clone();
        self.note(format!("retry failed embeddings: {queued}"));
    }

    async fn rewrite(&mut self) {
        let skips = self.random.random_bool(0.6);
        let path = format!("/api/bulk/rewrite/folder/{BASE}/texts?skip_rewritten={skips}");
        let queued = self.call(&self.key, Method::POST, &path, json!({})).await;
        let ids = queued.expect(200)["document_ids"].clone();
        self.note(format!("rewrite the folder, skip {skips}: {ids}"));
        let ids: Vec<String> = serde_json::from_value(ids).unwrap();
        for document in &mut self.documents {
            document.is_final &= !ids.contains(&document.id);
        }
    }

    async fn crash(&mut self) {
        if self.killed.len() == CRASHES {
            return;
        }
        let before = self.upstream.all_requests();
        let waits = self.random.random_range(0..80);
        // Often in the midst of a request.
        if self.random.random_bool(0.7) {
            let asked = news::some(|| (self.upstream.all_requests() > before).then_some(()));
            let _ = timeout(Duration::from_millis(200), asked).await;
        }
        sleep(Duration::from_millis(waits / 4)).await;
        let process = self.process.take().unwrap();
        self.killed.insert(process.app().app.kernel.node.id.clone());
        self.note("crash");
        process.kill().await;
        self.begin().await;
    }

    async fn decide(&mut self, taken_for: &str) {
        let decision = json!({"taken_for": taken_for});
        let path = format!("{LIMITS}/unknown");
        let decided = self.call(ADMIN_KEY, Method::POST, &path, decision).await;
        decided.expect(200);
        self.note(format!("decide {taken_for}"));
    }

    async fn step(&mut self) {
        match self.random.random_range(0..40) {
            0..8 => self.upload().await,
            8..15 => self.write().await,
            15 => self.compete().await,
            16..19 => self.delete().await,
            19..26 => self.limit().await,
            26..28 => self.misbehave(),
            28 => self.outgrow().await,
            29 | 30 => self.interrupt().await,
            31 => self.retry().await,
            32 => self.rewrite().await,
            33..35 => self.crash().await,
            35 => {
                let bound = self.random.random_bool(0.5);
                self.decide(if bound { "bound" } else { "nothing" }).await;
            }
            36..39 => self.make_room().await,
            _ => {
                let ms = self.random.random_range(5..120);
                sleep(Duration::from_millis(ms)).await;
            }
        }
        match self.random.random_range(0..10) {
            // Whatever comes next may hide that this step should have let others go on.
            0 => {
                self.settled().await;
            }
            1..4 => {
                let ms = self.random.random_range(1..60);
                sleep(Duration::from_millis(ms)).await;
            }
            _ => {}
        }
        self.check_ceilings().await;
    }

    /// What is used and reserved was within its limit when it was admitted, so it is now.
    async fn check_ceilings(&self) {
        let budget = self.get(LIMITS).await;
        for (Ceiling(most), taken) in self.ceilings.iter().zip(taken(&budget)) {
            assert!(
                most.is_none_or(|most| taken <= most),
                "{taken} of {most:?}: {budget}"
            );
        }
    }

    async fn check_admissions(&self) {
        let all: Vec<Admitted> = self
            .store
            .db()
            .fetch_all("SELECT measure, limit_amount, used, reserved, uncertain FROM admitted")
            .await
            .unwrap();
        for admitted in all {
            let Some(limit) = admitted.limit_amount else {
                continue;
            };
            let (taken, measure) = (admitted.used + admitted.reserved, &admitted.measure);
            assert!(taken <= limit, "{taken} of {limit} {measure} were admitted");
            assert_eq!(admitted.uncertain, 0, "{measure}: admitted all the same");
        }
    }

    /// Waits until nothing of the base is to be done, and lets the time pass that work waits for.
    async fn quiet(&self) {
        let until = Instant::now() + PATIENCE;
        // One more look, after whatever was queued while the last one ended.
        let mut looks = 0;
        while looks < 2 {
            let sql = "SELECT kind, state, run_at, last_error FROM work WHERE kind LIKE 'bases.%' AND state IN ('queued', 'running')";
            let work: Vec<Work> = self.store.db().fetch_all(sql).await.unwrap();
            let runs = work.iter().any(|work| work.state == "running");
            let next = work.iter().map(|work| work.run_at).min();
            let now = colloquy::clock::Clock::now_ms(&*self.clock);
            match next {
                None => {
                    looks += 1;
                    continue;
                }
                Some(next) if !runs && next > now => {
                    let jump = (next - now).min(JUMP_MS).unsigned_abs();
                    self.clock.advance(Duration::from_millis(jump));
                }
                Some(_) => sleep(Duration::from_millis(10)).await,
            }
            looks = 0;
            assert!(
                Instant::now() < until,
                "it is not quiet: {:?}",
                work.iter()
                    .map(|work| (&work.kind, &work.state, &work.last_error))
                    .collect::<Vec<_>>()
            );
        }
    }

    /// Waits until all is quiet, and checks everything.
    async fn settled(&self) -> (Value, Vec<Row>) {
        self.quiet().await;
        let data = self.data().await;
        let budget = &data["budget"];
        let (store, upstream) = (&self.store, &self.upstream);
        let rows = usage::reconciled(store, upstream, &self.markers, &self.killed, budget).await;
        self.check_admissions().await;
        self.check_ceilings().await;
        let documents = data["documents"].as_array().unwrap();
        let ids: HashSet<&str> = documents
            .iter()
            .map(|it| it["id"].as_str().unwrap())
            .collect();
        let expected = self.documents.iter().map(|known| known.id.as_str());
        assert_eq!(
            ids,
            expected.collect::<HashSet<_>>(),
            "none is lost, and those are gone that were deleted"
        );
        for document in documents {
            for step in ["digitize_status", "rewrite_status", "embedding_status"] {
                let is_active = matches!(document[step].as_str(), Some("queued" | "running"));
                assert!(!is_active, "nothing works on it: {document}");
            }
            let has_reason = self.own_reason(document, &rows).is_some();
            assert!(document["status"] != "failed" || has_reason, "{document}");
        }
        let characters = |it: &Value| it["digitized_chars"].as_u64().unwrap_or_default();
        let sum: u64 = documents.iter().map(characters).sum();
        assert_eq!(budget["characters"]["consumed"], sum, "{budget}");
        self.check_blocked(budget).await;
        (data, rows)
    }

    /// The documents that wait for room.
    async fn blocked(&self) -> Vec<Needs> {
        let sql = "SELECT d.name, d.digitizing, d.rewriting, d.embedding, d.needed_characters, d.needed_tokens, d.needed_cost, \
                   c.characters AS own_characters FROM knowledge_documents d \
                   LEFT JOIN knowledge_contents c ON c.document_id = d.id AND c.variant = 'digitized' \
                   WHERE d.deletion_requested_at IS NULL AND 'blocked' IN (d.digitizing, d.rewriting, d.embedding)";
        self.store.db().fetch_all(sql).await.unwrap()
    }

    /// No document waits for whose next step there is room.
    async fn check_blocked(&self, budget: &Value) {
        let limits = limits(budget);
        let is_limited = limits[1].is_some() || limits[2].is_some();
        let is_unknown = budget["uncertain_operations"] != 0
            || budget["tokens"]["unknown_events"] != 0
            || budget["dollars"]["unknown_events"] != 0;
        let taken = taken(budget);
        for needs in self.blocked().await {
            let steps = [&needs.digitizing, &needs.rewriting, &needs.embedding];
            let is_several = steps.iter().filter(|step| **step == "blocked").count() > 1;
            let has_room = if is_several {
                // What they need is not known of each.
                limits.iter().all(Option::is_none)
            } else if let Some(needed) = needs.needed_characters {
                let others = taken[0] - number(needs.own_characters);
                limits[0].is_none_or(|limit| others + needed.unsigned_abs() <= limit)
            } else {
                let fits = |which: usize, needed: Option<i64>| {
                    limits[which].is_none_or(|limit| taken[which] + number(needed) <= limit)
                };
                !(is_limited && is_unknown)
                    && fits(1, needs.needed_tokens)
                    && fits(2, needs.needed_cost)
            };
            let name = &needs.name;
            assert!(
                !has_room,
                "{name} sleeps and could go on: {needs:?}, {budget}"
            );
        }
    }

    /// Whether somebody wrote the text of a document before it was rewritten, and nobody wants that since.
    fn is_only_written(&self, document: &Value) -> bool {
        let mut known = self.documents.iter();
        let is_written = known.any(|known| known.is_written && document["id"] == known.id);
        is_written && document["status"] == "digitized" && document["rewrite_status"] == "none"
    }

    /// Why a document has failed that has: `None`, if it should not have.
    fn own_reason(&self, document: &Value, rows: &[Row]) -> Option<&'static str> {
        let id = document["id"].as_str().unwrap();
        let last = |kind: &str| {
            rows.iter()
                .rfind(|row| row.document_id == id && row.kind == kind)
        };
        let is_failure = |row: &Row| {
            row.outcome != "success" || row.decided > 0 || self.killed.contains(&row.node_id)
        };
        let error = document["processing_error"].as_str().unwrap_or_default();
        if document["rewrite_status"] == "failed" {
            let has_failed =
                last("rewrite").is_some_and(is_failure) || error.contains("after failures");
            return has_failed.then_some("rewriting it failed");
        }
        if document["embedding_status"] == "failed" {
            let has_failed = last("embed").is_some_and(is_failure);
            return has_failed.then_some("embedding it failed");
        }
        None
    }

    /// Takes the limits away and decides what is unknown: everything goes on by itself to its end.
    async fn end(&mut self) {
        self.settled().await;
        self.upstream.forget_scripts();
        for which in 0..3 {
            self.set_limit(which, None).await;
        }
        self.decide("bound").await;
        // Requests that were under way may have become unknown since.
        self.quiet().await;
        self.decide("bound").await;
        let (data, rows) = self.settled().await;
        for document in data["documents"].as_array().unwrap() {
            let is_done = document["status"] == "ready" || self.is_only_written(document);
            assert!(
                is_done || self.own_reason(document, &rows).is_some(),
                "it has not gone on: {document}"
            );
        }
        self.note("ask again for what failed");
        // A model that failed rests for a while.
        self.clock.advance(Duration::from_secs(31));
        for document in data["documents"].as_array().unwrap() {
            if document["rewrite_status"] == "failed" || self.is_only_written(document) {
                let path = "/api/queue/process?partner=acme&kb=manual&action=rewrite";
                let body = json!({"document": {"id": document["id"]}});
                let queued = self.call(&self.key, Method::POST, path, body).await;
                queued.expect(200);
            }
        }
        self.quiet().await;
        self.retry().await;
        let (data, _) = self.settled().await;
        for document in data["documents"].as_array().unwrap() {
            assert_eq!(document["status"], "ready", "{document}");
        }
        for known in self.documents.clone() {
            let content = async |variant: &str| {
                let path = format!("/api/documents/{BASE}/{}/content/{variant}", known.id);
                let content = self.get(&path).await["content"].clone();
                content.as_str().unwrap().trim().to_owned()
            };
            assert_eq!(content("digitized").await, known.text, "{}", known.number);
            if known.is_final {
                assert_eq!(content("rewritten").await, known.text, "{}", known.number);
            }
        }
    }

    async fn run(mut self) {
        let count = self.random.random_range(STEPS);
        for _ in 0..count {
            self.step().await;
        }
        self.end().await;
        let process = self.process.take().unwrap();
        process.kill().await;
    }
}

/// An answer of a model; the one that makes vectors takes no words.
fn answer(fault: Option<Fault>, after_ms: u64) -> Script {
    let script = Script {
        fault,
        ..Script::text("# Stable\n\nThe animals sleep there.")
    };
    script.delayed(Duration::from_millis(after_ms), Duration::ZERO)
}

fn number(number: Option<i64>) -> u64 {
    number.unwrap_or_default().unsigned_abs()
}

/// What there is of characters, and what is used and reserved of tokens and dollars.
fn taken(budget: &Value) -> [u64; 3] {
    let sum = |amounts: Amounts| amounts.used + amounts.reserved;
    let [tokens, dollars] = usage::amounts(budget).map(sum);
    [
        usage::units(&budget["characters"]["consumed"]),
        tokens,
        dollars,
    ]
}

/// The limits of characters, tokens and dollars.
fn limits(budget: &Value) -> [Option<u64>; 3] {
    ["characters", "tokens", "dollars"].map(|measure| {
        let limit = &budget[measure]["limit"];
        (!limit.is_null()).then(|| usage::units(limit))
    })
}

/// A test for each seed; a nightly run goes on with other seeds.
macro_rules! histories {
    ($database:expr, $($name:ident: $seed:expr),* $(,)?) => {
        $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn $name() {
            for round in 0..by_length(1, 5) {
                History::start($seed + 100 * round, $database).await.run().await;
            }
        })*
    };
}

mod sqlite {
    use super::*;

    histories!(
        TestDatabase::sqlite(),
        seed_1: 1, seed_2: 2, seed_3: 3, seed_4: 4, seed_5: 5, seed_6: 6,
        seed_7: 7, seed_8: 8, seed_9: 9, seed_10: 10, seed_11: 11, seed_12: 12,
    );
}

mod postgres {
    use super::*;

    histories!(
        TestDatabase::postgres().await,
        seed_21: 21, seed_22: 22, seed_23: 23,
    );
}
