//! The call resource: creation, state, signed URLs, transcript and completion. `media` runs the calls; this module
//! decides who may join one and what is stored about it.
//!
//! A call is a row from the moment it is created; no state of it lives in memory alone. So a process that dies leaves
//! calls that the next one, or another node, finds and ends ([`sweep`]). The row has the character until the call is over, and
//! goes `calls.kept_days` later ([`purge()`]), or when the partner deletes it.

mod bill;
mod create;
mod ended;
pub mod ending;
mod error;
mod extract;
mod finish;
mod lines;
mod purge;
pub mod quality;
mod recover;
pub mod request;
pub mod room;
pub mod routes;
mod sign;
mod store;
mod view;

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context as _;
use axum::extract::FromRef;
use colloquy_accounts::{Accounts, Tenant, partners::PartnerDependent};
use colloquy_characters::{Character, Characters};
use colloquy_http::{Edge, Interface};
use colloquy_kernel::{Capability, Routes, State, journal, node};
use colloquy_protocol::{CloseCode, Originator, call::RECONNECT_WINDOW_MS};
use colloquy_providers::Providers;
use colloquy_store::{Executor, StoreError, Transaction};
use colloquy_webhooks::Webhooks;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::sleep;

use self::{
    ending::{EndRequests, RunningCalls},
    room::CallRoom,
    sign::Ring,
};
pub use self::{
    finish::{Ended, end, finish},
    lines::LineLog,
    purge::purge,
    recover::sweep,
    sign::session_url,
    store::TEXTS,
};

/// What `media` needs to run a call.
#[derive(Debug)]
pub struct CallSetup {
    /// The call's bare identifier; `/v2/calls/<id>` is made of it.
    pub id: String,
    /// Whose call it is.
    pub tenant: Tenant,
    /// The character, as it was when the call was created.
    pub character: Arc<Character>,
    /// The template parameters.
    pub character_params: Map<String, Value>,
    /// The longest the call may last.
    pub time_limit: Duration,
    /// Whether somebody asks for its end.
    pub end_requests: EndRequests,
}

/// The query of a signed URL.
#[derive(Debug, Clone, serde::Deserialize)]
pub struct SignedQuery {
    /// When the URL expires, in seconds since 1970.
    pub exp: i64,
    /// The signing key's id.
    pub kid: String,
    /// The signature, hexadecimal.
    pub sig: String,
}

/// How a call ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// `None` when the call completed; a stable code when it failed.
    pub error: Option<Cow<'static, str>>,
    /// How long media flowed.
    pub call_time: Duration,
    /// How long the server worked on it, from the client's arrival to the end.
    pub server_time: Duration,
    /// What was said.
    pub transcript: Vec<TranscriptLine>,
    /// Facts about the visitor: fields with their values.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub visitor: Map<String, Value>,
}

/// A line of the stored transcript.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TranscriptLine {
    /// The words.
    pub text: String,
    /// Who said them.
    pub originator: Originator,
    /// Milliseconds since the media connected.
    pub at_ms: u64,
    /// Whether the visitor spoke over it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// How it came about; of replies of the character.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<ReplyRecord>,
}

/// How a reply of the character came about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ReplyRecord {
    /// Milliseconds from the end of the visitor's turn until the character is heard; null where it was heard at once.
    pub waited_ms: Option<u64>,
    /// Milliseconds until the visitor's words are known; null for typed ones. The work begins in the first pause of the visitor, so that stages may take
    /// longer than the visitor waits.
    pub transcription_ms: Option<u64>,
    /// Milliseconds until the first words of the model, with the search for passages.
    pub model_ms: Option<u64>,
    /// Milliseconds until the first sound of the first sentence.
    pub synthesis_ms: Option<u64>,
    /// The titles of the documents whose passages the model was given, best first.
    #[serde(default)]
    pub documents: Vec<String>,
}

/// The state of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallState {
    /// Created; nobody's media is connected yet.
    Starting,
    /// Media flows.
    Ongoing,
    /// Ended as it should.
    Completed,
    /// Nobody joined in time, it failed, or its node was lost.
    Error,
}

impl CallState {
    /// The name in the table and on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ongoing => "ongoing",
            Self::Completed => "completed",
            Self::Error => "error",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Starting, Self::Ongoing, Self::Completed, Self::Error]
            .into_iter()
            .find(|state| state.as_str() == text)
    }
}

/// The state of this capability in a server; cheap to clone.
#[derive(Debug, Clone)]
pub struct Calls(Arc<Parts>);

/// What [`Calls`] holds, besides the [`Characters`] that it derefs to.
#[derive(Debug)]
pub struct Parts {
    characters: Characters,
    webhooks: Webhooks,
    providers: Providers,
    /// Room for calls on this node.
    pub room: Arc<CallRoom>,
    running: Arc<RunningCalls>,
    signing: Ring,
    edge: Edge,
}

impl Calls {
    /// Reads the keys of session URLs.
    ///
    /// # Errors
    /// When the database fails.
    pub async fn open(
        characters: Characters,
        webhooks: Webhooks,
        providers: Providers,
        edge: Edge,
    ) -> anyhow::Result<Self> {
        Ok(Self(Arc::new(Parts {
            room: CallRoom::new(&characters.config.media, Arc::clone(&characters.clock)),
            running: Arc::default(),
            signing: Ring::open(&characters).await?,
            characters,
            webhooks,
            providers,
            edge,
        })))
    }
}

colloquy_kernel::state!(Calls: Parts.characters: Characters);

/// The call resource, as a part of a server.
#[derive(Debug)]
pub struct CallsCapability;

#[async_trait::async_trait]
impl<S: State> Capability<S> for CallsCapability
where
    Accounts: FromRef<S>,
    Calls: FromRef<S>,
{
    fn name(&self) -> &'static str {
        "calls"
    }

    fn routes(&self) -> Vec<Routes<S>> {
        vec![(Interface::CALLS, routes::routes())]
    }

    /// Stores the ends that an earlier process could not store, ends the other calls that it left behind, and sweeps from
    /// then on.
    async fn start(&self, state: &S) -> anyhow::Result<()> {
        let calls = Calls::from_ref(state);
        journal::replay::<Ended>(&calls).await?;
        sweep(&calls).await.context("ending lost calls")?;
        calls
            .kernel
            .tasks
            .spawn(recover::keep_sweeping(calls.clone()));
        let shutdown = calls.kernel.shutdown.clone();
        calls
            .kernel
            .repeat("removing old calls", PURGE_EVERY, move |base| {
                let shutdown = shutdown.clone();
                async move {
                    let purged = shutdown.run_until_cancelled(purge(&base)).await;
                    purged.transpose().map(|_| ())
                }
            });
        Ok(())
    }
}

/// Checks the signature and the expiry of a session URL. Nothing is read from the database before this passes.
///
/// # Errors
/// The close code to refuse the socket with: `InvalidSignature`, `UrlExpired`.
pub fn check_session_url(calls: &Calls, id: &str, query: &SignedQuery) -> Result<(), CloseCode> {
    let now = node::expected_database_now_ms(&calls.kernel);
    calls.signing.check(id, query, now)
}

/// Spends the signed URL: takes a `starting` call for this node and returns what is needed to run it. The call stays
/// `starting` until [`mark_ongoing`]. `metadata` is what the page passed on; it is kept with the call, unless it is large and
/// the disk is low.
///
/// # Errors
/// `CallInUse` when it was taken before, `CallNotFound` when it is over or unknown, and the database's failure.
pub async fn take(
    calls: &Calls,
    id: &str,
    metadata: Option<&Map<String, Value>>,
) -> Result<Result<CallSetup, CloseCode>, StoreError> {
    let endpoint = sign::endpoint(calls, id);
    let now = calls.clock.now_ms();
    let node = &calls.kernel.node.id;
    let metadata = metadata.map(serde_json::to_string).transpose();
    let mut metadata = metadata.map_err(StoreError::other)?;
    let is_low = calls.edge.require_disk().is_err();
    let large = metadata.take_if(|text| is_low && text.len() > LOW_DISK_METADATA_BYTES);
    let db = calls.store.db();
    if let Some(row) = store::take(db, id, node, &endpoint, metadata, now).await? {
        if let Some(text) = large {
            let bytes = text.len();
            tracing::warn!(
                call = id,
                bytes,
                "the metadata of the page is not stored, since the disk is nearly full"
            );
        }
        return Ok(Ok(row.setup(calls.running.listen(id))?));
    }
    // Taken, over, or unknown; the row tells. Nothing is at stake if it moves on between the two statements.
    let lost_before = node::expected_lost_before(&calls.kernel);
    let state = store::load(db, lost_before, id).await?;
    let state = state.map(|row| row.state());
    Ok(Err(match state.transpose()? {
        Some(CallState::Starting | CallState::Ongoing) => CloseCode::CallInUse,
        _ => CloseCode::CallNotFound,
    }))
}

/// The call's media connected: `starting -> ongoing`. A call that is over stays over.
///
/// # Errors
/// The database's failure.
pub async fn mark_ongoing(calls: &Calls, id: &str) -> Result<(), StoreError> {
    mark_ongoing_since(calls, id, calls.clock.instant()).await
}

async fn mark_ongoing_since(calls: &Calls, id: &str, since: Instant) -> Result<(), StoreError> {
    let ago = calls.clock.instant().saturating_duration_since(since);
    let ago_ms = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
    let (database_now, now) = (calls.clock.database_now_ms(), calls.clock.now_ms());
    store::mark_ongoing(calls.store.db(), id, ago_ms, database_now, now).await
}

/// The same, tried again until it is stored. Nobody waits for it: the call's end does without.
pub async fn connected(calls: Calls, id: String) {
    let since = calls.clock.instant();
    while let Err(error) = mark_ongoing_since(&calls, &id, since).await {
        calls.store.complain("marking a call as ongoing", &error);
        if !error.is_unavailable() {
            return;
        }
        sleep(ONGOING_AGAIN).await;
    }
}

/// Another node that holds a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// The URL of the call's session there, with the signature of the request; `None` when the node has no address of its
    /// own.
    pub url: Option<String>,
}

/// Finds the other node that holds the call of a session URL. A node that is silent is presumed lost, and may live all the same, frozen or cut off
/// from the database: it counts for as long as clients try to come back to a call that has just been marked so.
///
/// # Errors
/// The database's failure.
pub async fn held_elsewhere(
    calls: &Calls,
    id: &str,
    query: &SignedQuery,
) -> Result<Option<Elsewhere>, StoreError> {
    let given_up_before = node::lost_before(&calls.kernel).await? - COMES_BACK_MS;
    let own_node = &calls.kernel.node.id;
    let holder = store::holder(calls.store.db(), id, own_node, given_up_before).await?;
    Ok(holder.map(|holder| Elsewhere {
        url: holder
            .url
            .map(|origin| sign::session_at(&origin, id, query)),
    }))
}

/// How long after its node counts as lost a call is looked for there, in milliseconds: until the next round of the sweeper marks it, and as long as a
/// client tries to come back from then on.
const COMES_BACK_MS: i64 = node::HEARTBEAT.as_millis() as i64 + RECONNECT_WINDOW_MS as i64;

/// The most bytes of a page's metadata that are stored while the disk is low. Calls go on then, whatever their partner stores.
const LOW_DISK_METADATA_BYTES: usize = 1024;
/// When it is tried again that a call is ongoing.
const ONGOING_AGAIN: Duration = Duration::from_millis(500);
/// How often calls that are too old are removed.
const PURGE_EVERY: Duration = Duration::from_secs(60);

/// Calls that are not over keep their partner from being deleted.
#[derive(Debug)]
pub struct OpenCalls;

#[async_trait::async_trait]
impl PartnerDependent for OpenCalls {
    async fn obstacle(
        &self,
        transaction: &Transaction,
        tenant: &Tenant,
    ) -> Result<Option<&'static str>, StoreError> {
        let open = count_open(transaction, tenant).await?;
        Ok((open > 0).then_some("The partner has calls that are starting or ongoing"))
    }
}

/// How many calls of a partner are `starting` or `ongoing`; a partner with such calls is not deleted.
///
/// # Errors
/// The database's failure.
pub async fn count_open(db: &impl Executor, tenant: &Tenant) -> Result<u64, StoreError> {
    store::count_open(db, tenant).await
}
