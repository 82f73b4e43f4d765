//! On which threads models compute, and with which priority. Each test has a process of its own, so the threads are those that it made.

use std::{collections::BTreeMap, fs};

use harness::elsewhere::until;

use super::*;

/// How much less weight models have than what carries packets.
const NICENESS: i64 = 10;

/// The part of all time that a thread has to have taken to count as one that computes: others prepare what is asked.
const COMPUTES: i64 = 5;

/// A thread of this process.
#[derive(Debug, Clone, PartialEq)]
struct Thread {
    name: String,
    niceness: i64,
    /// User time, in ticks of 10 ms.
    taken: i64,
}

/// The threads of this process, by their ids.
fn threads() -> BTreeMap<u32, Thread> {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let ids = tasks.map(|task| task.unwrap().file_name().into_string().unwrap());
    ids.filter_map(|id| {
        // A thread may end meanwhile.
        let stat = fs::read_to_string(format!("/proc/self/task/{id}/stat")).ok()?;
        let (name, fields) = stat.rsplit_once(") ")?;
        let fields: Vec<&str> = fields.split(' ').collect();
        let field = |number: usize| fields[number - 3].parse().unwrap();
        let thread = Thread {
            name: name.split_once('(')?.1.to_owned(),
            niceness: field(19),
            taken: field(14),
        };
        Some((id.parse().unwrap(), thread))
    })
    .collect()
}

/// The threads that took time while something was awaited, with the time that they took.
async fn busy_in(work: impl Future<Output = ()>) -> Vec<Thread> {
    let before = threads();
    work.await;
    let grown = threads().into_iter().map(|(id, thread)| {
        let taken = before.get(&id).map_or(0, |earlier| earlier.taken);
        let taken = thread.taken - taken;
        Thread { taken, ..thread }
    });
    let mut grown: Vec<Thread> = grown.collect();
    let all: i64 = grown.iter().map(|thread| thread.taken).sum();
    assert!(all >= 20, "too little was computed to tell: {grown:?}");
    grown.retain(|thread| thread.taken * COMPUTES >= all);
    grown
}

/// The defaults, with so many threads, on a machine that has other work.
fn with_threads(threads: u32) -> Providers {
    let patient = |config: &mut Config| {
        config.inference.threads = Some(threads);
        config.calls.provider_timeout_ms = 240_000;
    };
    with_models(talk(), patient).unwrap()
}

fn own_niceness() -> i64 {
    threads()[&std::process::id()].niceness
}

/// Has speech of this many times two seconds understood, by one who repeats a sentence.
async fn hear(providers: &Providers, times: usize) {
    let said = utterance(recording("goforward.raw").repeat(times), Some("en"));
    providers.transcriber.transcribe(said).await.unwrap();
}

#[tokio::test]
async fn models_compute_with_little_weight_for_the_scheduler() {
    let here = own_niceness();
    let providers = with_threads(1);
    let least = (here + NICENESS).min(19);
    let of_runtime = |thread: &Thread| thread.name.starts_with("rten");
    let hearing = busy_in(hear(&providers, 6)).await;
    let speaking = busy_in(async {
        speak(&providers, say(&"This is spoken to its end. ".repeat(4))).await;
    });
    for busy in [hearing, speaking.await] {
        // One thread asks, and one computes for it.
        assert!((1..=2).contains(&busy.len()), "{busy:?}");
        assert!(busy.iter().any(of_runtime), "{busy:?}");
        assert!(
            busy.iter().all(|thread| thread.niceness == least),
            "{busy:?}"
        );
    }
    assert_eq!(own_niceness(), here);
}

#[tokio::test]
async fn two_answers_are_computed_side_by_side_by_two_threads() {
    let providers = with_threads(2);
    let busy = busy_in(async {
        tokio::join!(hear(&providers, 6), hear(&providers, 6));
    })
    .await;
    let computing: Vec<_> = busy
        .iter()
        .filter(|thread| thread.name.starts_with("rten"))
        .collect();
    let [one, other] = computing[..] else {
        panic!("{busy:?}")
    };
    // Neither waited for the other: each computed about half of it.
    let (less, more) = (one.taken.min(other.taken), one.taken.max(other.taken));
    assert!(less * 2 > more, "{busy:?}");
}

#[tokio::test]
async fn threads_are_as_many_as_those_of_the_pool_twice_over_and_end_with_it() {
    let of_models = || {
        let threads = threads().into_values();
        threads
            .filter(|thread| {
                ["rten", "inference", "models"]
                    .iter()
                    .any(|name| thread.name.starts_with(name))
            })
            .map(|thread| thread.name)
            .collect::<Vec<_>>()
    };
    let providers = with_threads(3);
    // Those of the runtime for loading stay; those who loaded end, a moment later.
    tokio::time::sleep(patience(Duration::from_secs(1))).await;
    let loading = of_models().len() - 3;
    let all = (0..6).map(|_| hear(&providers, 1));
    join_all(all).await;
    assert_eq!(of_models().len(), loading + 2 * 3, "{:?}", of_models());
    drop(providers);
    let are_gone = |names: &Vec<String>| names.len() <= loading;
    until("the threads end", are_gone, async || of_models()).await;
}
