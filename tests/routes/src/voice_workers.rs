//! A voice worker elsewhere, which keeps what it is given in memory and fails when it is told to.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use axum::{
    Json, Router,
    body::Bytes,
    extract::{Path, Request, State},
    http::{StatusCode, header::AUTHORIZATION},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::{get, post, put},
};
use colloquy_config::{Config, Secret};
use serde_json::{Value, json};
use support::news;
use tokio::{net::TcpListener, task::JoinSet};

/// The keys that it takes: the one of [`VoiceWorkers::offer`], and what is left of it in the settings of a process.
const KEYS: [&str; 2] = ["voice-worker-key", "[redacted]"];

/// A job as it was given.
#[derive(Debug, Clone, Default)]
pub struct GivenJob {
    /// What it was begun with.
    pub body: Value,
    /// Its samples, by their numbers.
    pub samples: BTreeMap<u32, Bytes>,
    /// Whether it was started.
    pub is_started: bool,
}

#[derive(Debug, Default)]
struct Work {
    jobs: BTreeMap<String, GivenJob>,
    /// How often a job was begun.
    begun: usize,
    /// How the next requests fail, by method and the beginning of the path behind the job.
    failures: VecDeque<(&'static str, u16)>,
    /// What the state of started jobs is; `None`: they are done.
    state: Option<Value>,
    asked: Vec<String>,
}

/// A running worker.
#[derive(Debug)]
pub struct VoiceWorkers {
    address: SocketAddr,
    work: Arc<Mutex<Work>>,
    _tasks: JoinSet<()>,
}

type Shared = State<Arc<Mutex<Work>>>;

fn lock(work: &Mutex<Work>) -> MutexGuard<'_, Work> {
    work.lock().unwrap_or_else(PoisonError::into_inner)
}

impl VoiceWorkers {
    /// Starts one on a free port.
    pub async fn start() -> Self {
        let work = Arc::<Mutex<Work>>::default();
        let routes = Router::new()
            .route("/jobs/{id}", put(begin).get(state).delete(forget))
            .route("/jobs/{id}/samples/{index}", put(add))
            .route("/jobs/{id}/start", post(start))
            .route("/jobs/{id}/files/{name}", get(file))
            .layer(from_fn_with_state(Arc::clone(&work), guard))
            .with_state(Arc::clone(&work));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self {
            address,
            work,
            _tasks: tasks,
        }
    }

    /// Names it in the settings of a server.
    pub fn offer(&self, config: &mut Config) {
        let url = format!("http://{}/", self.address);
        config.voice_worker.base_url = Some(url.parse().unwrap());
        config.voice_worker.api_key = Some(Secret::new(KEYS[0]));
        config.voice_worker.default_type = "xtts".to_owned();
    }

    /// Lets the next request of this method fail with this status; nothing is done then.
    pub fn fail(&self, method: &'static str, status: u16) {
        lock(&self.work).failures.push_back((method, status));
    }

    /// What the state of started jobs is from now on; `None`: they are done.
    pub fn set_state(&self, state: Option<Value>) {
        lock(&self.work).state = state;
    }

    /// Forgets all jobs.
    pub fn lose(&self) {
        lock(&self.work).jobs.clear();
    }

    /// The jobs that it has.
    pub fn jobs(&self) -> Vec<GivenJob> {
        lock(&self.work).jobs.values().cloned().collect()
    }

    /// How often a job was begun.
    pub fn begun(&self) -> usize {
        lock(&self.work).begun
    }

    /// What was asked: methods and paths.
    pub fn asked(&self) -> Vec<String> {
        lock(&self.work).asked.clone()
    }
}

async fn guard(State(work): Shared, request: Request, next: Next) -> Response {
    let key = request.headers().get(AUTHORIZATION);
    let key = key
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default();
    if !KEYS.iter().any(|known| key == format!("Bearer {known}")) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let method = request.method().as_str().to_owned();
    let failure = {
        let mut work = lock(&work);
        work.asked
            .push(format!("{method} {}", request.uri().path()));
        let fails = work
            .failures
            .front()
            .is_some_and(|(failing, _)| *failing == method);
        fails.then(|| work.failures.pop_front()).flatten()
    };
    news::tell();
    match failure {
        Some((_, status)) => StatusCode::from_u16(status).unwrap().into_response(),
        None => {
            let response = next.run(request).await;
            news::tell();
            response
        }
    }
}

async fn begin(State(work): Shared, Path(id): Path<String>, Json(body): Json<Value>) {
    let mut work = lock(&work);
    work.begun += 1;
    let job = GivenJob {
        body,
        ..GivenJob::default()
    };
    work.jobs.insert(id, job);
}

async fn add(
    State(work): Shared,
    Path((id, index)): Path<(String, u32)>,
    audio: Bytes,
) -> StatusCode {
    match lock(&work).jobs.get_mut(&id) {
        Some(job) => {
            job.samples.insert(index, audio);
            StatusCode::NO_CONTENT
        }
        None => StatusCode::NOT_FOUND,
    }
}

async fn start(State(work): Shared, Path(id): Path<String>) -> StatusCode {
    match lock(&work).jobs.get_mut(&id) {
        Some(job) => {
            job.is_started = true;
            StatusCode::ACCEPTED
        }
        None => StatusCode::NOT_FOUND,
    }
}

async fn state(State(work): Shared, Path(id): Path<String>) -> Response {
    let work = lock(&work);
    let Some(job) = work.jobs.get(&id) else {
        return StatusCode::NOT_FOUND.into_response();
    };
    if !job.is_started {
        return Json(json!({"state": "waiting"})).into_response();
    }
    let done = || {
        let score = |index: &u32| {
            let voice = format!("made of {index}");
            json!({"sample_index": index, "score": 0.5, "voice": voice})
        };
        let test = |index: &u32| json!({"sample_index": index, "sentence_index": 0});
        json!({
            "state": "completed",
            "voice": "made",
            // What nobody asked for is passed over.
            "scores": job.samples.keys().map(score).chain([score(&4_000)]).collect::<Vec<_>>(),
            "test_samples": job.samples.keys().map(test).chain([test(&4_000)]).collect::<Vec<_>>(),
            "has_embedding": true,
        })
    };
    Json(work.state.clone().unwrap_or_else(done)).into_response()
}

async fn file(State(work): Shared, Path((id, name)): Path<(String, String)>) -> Response {
    match lock(&work).jobs.contains_key(&id) {
        true => format!("the file {name}").into_response(),
        false => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn forget(State(work): Shared, Path(id): Path<String>) {
    lock(&work).jobs.remove(&id);
}
