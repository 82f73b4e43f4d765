//! One stream: the changes of a partner, written as server-sent events.

use std::{collections::VecDeque, convert::Infallible, time::Duration};

use axum::{body::Body, http::StatusCode};
use bytes::Bytes;
use colloquy_accounts::{LastingKey, Principal, Tenant, partners};
use colloquy_base::permits::Permit;
use colloquy_http::ApiError;
use colloquy_store::StoreError;
use futures_util::stream;
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    time::{Interval, MissedTickBehavior, interval},
};

use crate::{
    Events,
    hub::{Published, Written},
    kind::written,
    store,
};

/// How often the key of a stream is authenticated again, and a comment sent.
const CHECK_EVERY: Duration = Duration::from_secs(15);
/// Checks in a row that may fail because the database is unavailable.
const FAILED_CHECKS: u32 = 4;
/// How long a new stream waits for the number that its client resumes from.
const WAIT: Duration = Duration::from_secs(1);
/// Changes that a client which resumes may have missed. Beyond these it reads everything again.
const MISSED: i64 = 1_000;
/// How long clients wait before they connect again, in milliseconds.
const RETRY_MS: u32 = 2_000;

const RESET: &str = "event: reset\ndata: {}\n\n";

/// A stream of a partner's changes.
pub(crate) struct Watch {
    events: Events,
    tenant: Tenant,
    key: LastingKey,
    /// The caller, as of the last check.
    principal: Principal,
    published: Receiver<Published>,
    /// Text to be sent before anything that is published.
    ready: VecDeque<String>,
    /// The last id that was sent.
    id: Option<i64>,
    /// The largest number of a change that was sent.
    sent: i64,
    checks: Interval,
    failed_checks: u32,
    _permit: Permit,
}

impl Watch {
    /// Begins a stream. A client that resumes gets what it missed since `last_id`.
    ///
    /// # Errors
    /// The database's failure.
    pub(crate) async fn begin(
        events: Events,
        tenant: Tenant,
        key: LastingKey,
        principal: Principal,
        permit: Permit,
        last_id: Option<i64>,
    ) -> Result<Self, StoreError> {
        let partner = tenant.partner().as_str();
        // Wakes the reader, and misses nothing that is published from here on.
        let waiting = events.hub.subscribe(partner);
        let complete = events.hub.complete_within(WAIT).await;
        // A reader that has just begun tells earlier streams to read everything again.
        let published = events.hub.subscribe(partner);
        drop(waiting);
        let mut checks = interval(CHECK_EVERY);
        checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        checks.reset();
        let mut watch = Self {
            events,
            tenant,
            key,
            principal,
            published,
            ready: VecDeque::new(),
            id: complete,
            sent: 0,
            checks,
            failed_checks: 0,
            _permit: permit,
        };
        let missed = match last_id {
            Some(last) => watch.missed(last).await?,
            None => Some(Vec::new()),
        };
        let id = complete.map(|id| format!("id: {id}\n")).unwrap_or_default();
        watch.ready.push_back(format!("retry: {RETRY_MS}\n\n"));
        match missed {
            Some(changes) => {
                if let Some(text) = watch.allowed(&changes) {
                    watch.ready.push_back(text);
                }
                watch
                    .ready
                    .push_back(format!("event: ready\n{id}data: {{}}\n\n"));
            }
            None => watch
                .ready
                .push_back(format!("event: reset\n{id}data: {{}}\n\n")),
        }
        Ok(watch)
    }

    /// Returns the changes since a number; `None` if they are not all known or too many.
    async fn missed(&self, last: i64) -> Result<Option<Vec<Written>>, StoreError> {
        let db = self.events.store.db();
        let partner = self.tenant.partner().as_str();
        let changes = store::after_of(db, partner, last, MISSED + 1).await?;
        // A number that was not assigned is one of a database that was restored since. What is purged is noted before it is gone.
        let is_known = store::forgotten(db).await? <= last && last <= store::assigned(db).await?;
        let is_short = changes.len() as i64 <= MISSED;
        Ok((is_known && is_short).then(|| changes.iter().filter_map(written).collect()))
    }

    /// Returns the body of the stream, which ends with the key or the server.
    pub(crate) fn into_body(self) -> Body {
        let pieces = stream::unfold(self, |mut watch| async move {
            let text = watch.next().await?;
            Some((Ok::<_, Infallible>(Bytes::from(text)), watch))
        });
        Body::from_stream(pieces)
    }

    /// Returns the next text to send; `None` at the end of the stream.
    async fn next(&mut self) -> Option<String> {
        if let Some(text) = self.ready.pop_front() {
            return Some(text);
        }
        let shutdown = self.events.kernel.shutdown.clone();
        loop {
            tokio::select! {
                biased;
                () = shutdown.cancelled() => return None,
                _ = self.checks.tick() => {
                    self.check().await?;
                    return Some(self.id_block().unwrap_or_else(|| ":\n\n".to_owned()));
                }
                received = self.published.recv() => {
                    if let Some(text) = self.received(received)? {
                        return Some(text);
                    }
                }
            }
        }
    }

    /// Authenticates the key again; returns `None` if the stream ends.
    async fn check(&mut self) -> Option<()> {
        match self.authenticate().await {
            Ok(principal) => {
                self.principal = principal;
                self.failed_checks = 0;
                Some(())
            }
            Err(error) if error.status == StatusCode::SERVICE_UNAVAILABLE => {
                self.failed_checks += 1;
                (self.failed_checks < FAILED_CHECKS).then_some(())
            }
            Err(_) => None,
        }
    }

    async fn authenticate(&self) -> Result<Principal, ApiError> {
        let principal = self.key.check(&self.events).await?;
        principal.tenant(self.tenant.partner())?;
        // Keys of a partner end with it, those of administrators do not.
        if principal.require_admin().is_ok() {
            partners::read(&self.events, &self.tenant).await?;
        }
        Ok(principal)
    }

    /// Returns what to send for a message, if anything; `None` at the end of the stream.
    fn received(&mut self, received: Result<Published, RecvError>) -> Option<Option<String>> {
        match received {
            Ok(Published::Changes(changes)) => Some(self.allowed(&changes)),
            // Sent with the next comment if nothing was sent since the last id.
            Ok(Published::Complete(id)) if id >= self.sent && self.sent > 0 => {
                self.sent = 0;
                self.id = Some(id);
                Some(Some(format!("id: {id}\n\n")))
            }
            Ok(Published::Complete(_)) => Some(None),
            Ok(Published::Reset) => Some(Some(RESET.to_owned())),
            Err(RecvError::Lagged(_)) => {
                self.published = self.published.resubscribe();
                Some(Some(RESET.to_owned()))
            }
            Err(RecvError::Closed) => None,
        }
    }

    /// Returns the events that the key may learn of.
    fn allowed(&mut self, changes: &[Written]) -> Option<String> {
        let allowed = changes
            .iter()
            .filter(|change| self.principal.require(change.scope).is_ok());
        let text: String = allowed.map(|change| change.text.as_str()).collect();
        if text.is_empty() {
            return None;
        }
        let newest = changes.iter().map(|change| change.seq).max();
        self.sent = self.sent.max(newest.unwrap_or_default());
        Some(text)
    }

    /// Returns the newest id, as a block without an event, if the client does not have it and has all changes up to it.
    fn id_block(&mut self) -> Option<String> {
        let id = self.events.hub.complete();
        // What was published before the id is received before it is sent.
        if id <= self.id || !self.published.is_empty() {
            return None;
        }
        self.id = id;
        self.sent = 0;
        id.map(|id| format!("id: {id}\n\n"))
    }
}
