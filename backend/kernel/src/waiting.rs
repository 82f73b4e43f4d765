//! Work that waits for something, as operators see it.

use serde::Serialize;
use utoipa::ToSchema;

/// Most entries of a kind and a reason that are shown. A capability returns one more of them if it has more.
pub const MOST_WAITING: u64 = 50;

/// The kind of work that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitingKind {
    /// Documents of a knowledge base.
    Documents,
    /// Channels of a knowledge base.
    Channels,
    /// Deliveries of webhooks.
    Webhooks,
    /// Files of documents, to be brought to a vector store or removed there.
    VectorstoreFiles,
}

/// The reason for which work waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// Room in the budget of the knowledge base.
    Budget,
    /// The next attempt, after the receiver failed.
    Receiver,
    /// A service that cannot be reached, rejects the key, or limits the rate.
    Service,
    /// An operator who sends the delivery again: the last attempt failed within the last day.
    Failed,
}

/// Work of a partner that waits, other than jobs that a worker will take. Times are in milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingWork {
    /// The kind of work.
    pub kind: WaitingKind,
    /// The partner; `None` for what one that is gone has left.
    pub partner: Option<String>,
    /// The name of the knowledge base.
    pub base: Option<String>,
    /// The number of documents, channels, deliveries or files that wait.
    pub count: u64,
    /// The reason for which the work waits.
    pub reason: WaitReason,
    /// The reason of the oldest one in words, where it is stored.
    pub detail: Option<String>,
    /// The time since which the oldest one waits.
    pub since: Option<i64>,
    /// The time of the next attempt.
    pub next_at: Option<i64>,
}
