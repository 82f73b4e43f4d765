//! Packets of calls keep their pace while models have all that they can do, on many more threads than there are cores.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use harness::{
    app::{TestPartner, send},
    elsewhere, eventually, news,
    process::Server,
    slowness,
};
use reqwest::Method;
use tokio::task::JoinSet;

use super::*;

/// Calls at once.
const CALLS: usize = 8;

/// Threads for models. At the priority of those that send packets they would leave them little.
const THREADS: u32 = 32;

/// The part of packets that may be later, in percent, and how far from their pace the others are at most.
const LATE: usize = 5;
const BOUND: Duration = Duration::from_millis(40);

/// A server whose calls ask an upstream, and whose models make vectors on so many threads.
struct Busy {
    server: Server,
    partner: TestPartner,
    /// Of a quota of texts.
    key: String,
    _upstream: Upstream,
}

impl Busy {
    async fn start(threads: u32) -> Self {
        let upstream = Upstream::start().await;
        upstream.set_default(Api::Chat, Script::text(REPLY));
        upstream.set_default(Api::Transcription, Script::text(HEARD));
        let server = Server::start(&TestDatabase::sqlite(), |config| {
            upstream.configure(config);
            config.calls.turn_stop_ms = 200;
            config.calls.voice_activity = Some("earshot".to_owned());
            config.inference.models_dir = Some(folder());
            config.inference.threads = Some(threads);
            config.limits.request_burst = 100_000;
        })
        .await;
        let partner = server.partner("acme").await;
        let guide = json!({"name": "guide", "personality": "You are a guide.", "parameters": {}});
        let made = server.request(&partner.key, Method::POST, "/api/characters/acme");
        send(made.json(&guide)).await.expect(201);
        let quota = server.quota(&partner, &json!({"kinds": ["text"]})).await;
        Self {
            server,
            partner,
            key: quota.key,
            _upstream: upstream,
        }
    }

    /// Asks for vectors, twice as many clients as there are threads, until this is dropped.
    fn flood(&self, threads: u32) -> Flood {
        let (answers, mut clients) = (Arc::<AtomicUsize>::default(), JoinSet::new());
        for _ in 0..2 * threads {
            // One a request: all threads compute at a time, so the first answers come late.
            let body = json!({"model": "all-minilm-l6-v2", "input": "word ".repeat(180)});
            let request = self
                .server
                .request(&self.key, Method::POST, "/v3/embeddings");
            let (request, answers) = (request.json(&body), Arc::clone(&answers));
            clients.spawn(async move {
                loop {
                    send(request.try_clone().unwrap()).await.expect(200);
                    answers.fetch_add(1, Ordering::Relaxed);
                    news::tell();
                }
            });
        }
        Flood { answers, clients }
    }

    /// The signed URL of a new call.
    async fn call(&self) -> String {
        let body = json!({"character": "repo:acme/guide", "call_time_limit_seconds": "60"});
        let request = self
            .server
            .request(&self.partner.key, Method::POST, "/v2/calls");
        let made = send(request.json(&body)).await.expect(200);
        made["data"]["signedUrl"].as_str().unwrap().to_owned()
    }

    /// How many threads compute.
    async fn computing(&self) -> usize {
        let metrics = send(self.server.request("", Method::GET, "/metrics")).await;
        let taken = metrics
            .text
            .lines()
            .find_map(|line| line.strip_prefix("colloquy_queue_taken{queue=\"inference\"} "));
        taken.map_or(0, |taken| taken.parse().unwrap())
    }
}

/// Clients that ask again and again.
struct Flood {
    answers: Arc<AtomicUsize>,
    clients: JoinSet<()>,
}

impl Flood {
    /// Ends it, and returns how many answers there were: one at least, which may be late where all else has the processors.
    async fn end(mut self) -> usize {
        let answers = || self.answers.load(Ordering::Relaxed);
        eventually("a model answers", async || answers() > 0).await;
        let answers = answers();
        if let Some(ended) = self.clients.try_join_next() {
            ended.unwrap();
        }
        answers
    }
}

/// How far from their pace packets come that a visitor hears, sorted, while everybody speaks with the character.
async fn pacing(urls: Vec<String>) -> Vec<Duration> {
    let mut visits = JoinSet::new();
    for url in urls {
        visits.spawn(async move {
            let client = NativeClient::connect(&url).await.unwrap();
            for _ in 0..2 {
                let speech = Speech::go_forward_trimmed().unwrap();
                let spoken = client.speak(&speech).await.unwrap();
                client.reply_audio(spoken.ended, 2 * soon()).await.unwrap();
                let over = Duration::from_millis(600);
                client.silence(over, 2 * soon()).await.unwrap();
            }
            client.log().pacing()
        });
    }
    let mut all: Vec<Duration> = visits.join_all().await.concat();
    all.sort();
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_keep_their_pace_while_models_compute() {
    let busy = Busy::start(THREADS).await;
    let flood = busy.flood(THREADS);
    let mut urls = Vec::new();
    for _ in 0..CALLS {
        urls.push(busy.call().await);
    }
    let pacing = pacing(urls).await;
    let answers = flood.end().await;
    let at = |percent: usize| pacing[(pacing.len() * percent / 100).min(pacing.len() - 1)];
    println!(
        "{} packets, {answers} answers: p50 {:?}, p95 {:?}, p99 {:?}, most {:?}",
        pacing.len(),
        at(50),
        at(95),
        at(99),
        at(100)
    );
    assert!(pacing.len() > CALLS * 100, "{} packets", pacing.len());
    let bound = BOUND.mul_f64(slowness());
    assert!(at(100 - LATE) < bound, "{:?}", at(100 - LATE));
}

/// A core that is not computed on carries packets at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_keeps_a_thread_from_all_but_calls() {
    let busy = Busy::start(2).await;
    let flood = busy.flood(2);
    elsewhere::eventually("all threads compute", async || busy.computing().await == 2).await;
    let client = NativeClient::connect(&busy.call().await).await.unwrap();
    elsewhere::eventually("one of them is free", async || busy.computing().await == 1).await;
    for _ in 0..20 {
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(busy.computing().await <= 1);
    }
    client.hang_up().await.unwrap();
    elsewhere::eventually("all of them compute again", async || {
        busy.computing().await == 2
    })
    .await;
    flood.end().await;
}
