//! The queues of jobs, and other work that waits.

use std::sync::LazyLock;

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use super::AnsweringNode;
use crate::{
    accounts::Caller,
    app::App,
    clock::rfc3339,
    config::without_credentials,
    http::ApiError,
    jobs::{self, MOST_COUNTED, Queue, QueueFailure},
    kernel::{MOST_WAITING, WaitReason, WaitingKind, WaitingWork},
    server::capabilities,
};

/// The kinds of jobs of all capabilities.
static KINDS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let registry = jobs::Registry::<App>::default();
    let all = capabilities::ALL.iter();
    all.fold(registry, |registry, capability| capability.jobs(registry))
        .kinds()
});

/// The queues of the installation.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SystemQueues {
    answered_by: AnsweringNode,
    /// The time of the answer by the clock of the node, RFC 3339.
    at: String,
    /// The highest exact count: 10,000. `most_counted` + 1 stands for any higher number.
    most_counted: u64,
    /// A queue for each kind of job, in alphabetical order.
    queues: Vec<SystemQueue>,
    /// Work of partners that waits for something other than a worker: for each kind and reason, of at most 50 partners or knowledge bases.
    waiting: Vec<WaitingWorkView>,
    /// True if more partners or knowledge bases wait than `waiting` lists, of any kind and reason.
    has_more: bool,
}

/// The jobs of a kind.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SystemQueue {
    /// The kind, such as `bases.embed`.
    kind: String,
    /// Jobs that are due and wait for a worker; at most `most_counted` + 1.
    due: u64,
    /// Jobs that wait for a later time, such as another attempt; at most `most_counted` + 1.
    later: u64,
    /// Jobs that were given up, as long as they are kept; at most `most_counted` + 1.
    failed: u64,
    /// The time that the oldest due job has waited, in milliseconds; null if no job is due.
    oldest_due_age_ms: Option<u64>,
    /// The time at which the next job becomes due, RFC 3339; null if no job waits for a later time.
    next_at: Option<String>,
    /// Running jobs by node.
    running: Vec<RunningJobsView>,
    /// The most frequent earlier failures of waiting jobs, three at most, among the 1,000 jobs that are due first.
    failures: Vec<QueueFailureView>,
}

/// The running jobs of a kind on a node.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunningJobsView {
    /// The id of the node.
    node: String,
    /// The number of jobs.
    jobs: u64,
}

/// Jobs that failed and wait for another attempt.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct QueueFailureView {
    /// The message of the failure, cut after 500 characters.
    reason: String,
    /// The number of jobs with this failure.
    jobs: u64,
    /// The highest number of attempts of these jobs.
    attempts: u64,
}

/// Work of a partner that waits for something other than a worker.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct WaitingWorkView {
    kind: WaitingKind,
    /// `budget`: the knowledge base has too little of its budget left. `receiver`: the receiver failed, and another attempt follows. `service`: the
    /// service cannot be reached, rejects the key, or limits the rate. `failed`: the last attempt failed within the last day, and an operator has to send
    /// the delivery again.
    reason: WaitReason,
    /// The id of the partner; null if the partner was deleted.
    partner: Option<String>,
    /// The name of the knowledge base; null for `webhooks`, and if the base was deleted.
    base: Option<String>,
    /// The number of documents, channels, deliveries or files that wait; at most `most_counted` + 1.
    count: u64,
    /// The message that is stored with the oldest one; null if none is.
    detail: Option<String>,
    /// The time since which the oldest one waits, RFC 3339; null if unknown.
    since: Option<String>,
    /// The time of the next attempt, RFC 3339; null if none is planned.
    next_at: Option<String>,
}

/// Shows how many jobs of each kind wait, run and failed, and what else waits and why; administrators only.
#[utoipa::path(get, path = "/api/system/queues", tag = "operations", responses((status = 200, body = SystemQueues)))]
pub(super) async fn list_system_queues(
    State(app): State<App>,
    Caller(principal): Caller,
) -> Result<Json<SystemQueues>, ApiError> {
    principal.require_admin()?;
    let now = app.clock.now_ms();
    let found = jobs::queues(app.store.db(), &KINDS, now).await?;
    let mut waiting = Vec::new();
    for capability in capabilities::ALL {
        waiting.extend(capability.waiting(&app).await?);
    }
    let (waiting, has_more) = shown(waiting);
    Ok(Json(SystemQueues {
        answered_by: AnsweringNode::of(&app),
        at: rfc3339(now),
        most_counted: MOST_COUNTED,
        queues: found.into_iter().map(|queue| view(queue, now)).collect(),
        waiting: waiting.into_iter().map(waiting_view).collect(),
        has_more,
    }))
}

/// Returns the first [`MOST_WAITING`] entries of each kind and reason, and true if there are more.
fn shown(all: Vec<WaitingWork>) -> (Vec<WaitingWork>, bool) {
    let mut listed: Vec<WaitingWork> = Vec::with_capacity(all.len());
    let mut has_more = false;
    for work in all {
        let alike = |one: &&WaitingWork| (one.kind, one.reason) == (work.kind, work.reason);
        if listed.iter().filter(alike).count() as u64 == MOST_WAITING {
            has_more = true;
        } else {
            listed.push(work);
        }
    }
    (listed, has_more)
}

fn view(queue: Queue, now: i64) -> SystemQueue {
    let age = |at: i64| u64::try_from(now - at).unwrap_or(0);
    let failure = |failure: QueueFailure| QueueFailureView {
        reason: without_credentials(&failure.reason),
        jobs: failure.jobs.unsigned_abs(),
        attempts: failure.attempts.unsigned_abs(),
    };
    let running = queue.running.into_iter().map(|running| RunningJobsView {
        node: running.node,
        jobs: running.jobs,
    });
    SystemQueue {
        kind: queue.kind,
        due: queue.due,
        later: queue.later,
        failed: queue.failed,
        oldest_due_age_ms: queue.oldest_due_at.map(age),
        next_at: queue.next_at.map(rfc3339),
        running: running.collect(),
        failures: queue.failures.into_iter().map(failure).collect(),
    }
}

fn waiting_view(work: WaitingWork) -> WaitingWorkView {
    WaitingWorkView {
        kind: work.kind,
        reason: work.reason,
        partner: work.partner,
        base: work.base,
        count: work.count,
        detail: work.detail.as_deref().map(without_credentials),
        since: work.since.map(rfc3339),
        next_at: work.next_at.map(rfc3339),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn works(reason: WaitReason, count: u64) -> impl Iterator<Item = WaitingWork> {
        (0..count).map(move |number| WaitingWork {
            kind: WaitingKind::Webhooks,
            partner: Some(format!("partner{number}")),
            base: None,
            count: 1,
            reason,
            detail: None,
            since: None,
            next_at: None,
        })
    }

    #[test]
    fn more_work_of_a_reason_than_is_shown_is_told_of() {
        let failed = || works(WaitReason::Failed, MOST_WAITING);
        let all: Vec<_> = works(WaitReason::Receiver, MOST_WAITING)
            .chain(failed())
            .collect();
        assert_eq!(shown(all.clone()), (all.clone(), false));
        let more = works(WaitReason::Receiver, MOST_WAITING + 1);
        assert_eq!(shown(more.chain(failed()).collect()), (all, true));
    }
}
