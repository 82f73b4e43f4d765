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

/// What work waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// Room in the budget of the knowledge base.
    Budget,
    /// The next attempt, since the receiver failed.
    Receiver,
    /// The service, which cannot be reached, refuses the key, or has had enough.
    Service,
    /// Somebody who sends it again: all attempts within the last day failed.
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
    /// How much of it waits.
    pub count: u64,
    /// What it waits for.
    pub reason: WaitReason,
    /// The reason of the oldest one in words, where it is stored.
    pub detail: Option<String>,
    /// Since when the oldest one waits.
    pub since: Option<i64>,
    /// When it goes on by itself.
    pub next_at: Option<i64>,
}
