//! Reads changes while anybody listens, and publishes each of them.
//!
//! PostgreSQL assigns the number of a change before its transaction commits, so a change can become visible after one with a larger number. The
//! reader therefore reads again what lies above [`Reader::complete`], and raises that to a number once every transaction has ended that may hold
//! a smaller one: those that recorded changes when the number was seen, which hold a lock for it. Streams hand `complete` to their clients, who
//! resume from it.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    time::Duration,
};

use colloquy_store::StoreError;
use tokio::time::{sleep, timeout};

use crate::{
    Events,
    kind::written,
    store::{self, Change},
};

/// How often changes are read that other nodes may have written.
const EVERY: Duration = Duration::from_millis(250);
/// The pause before what this node has written is read, so that many transactions are read together.
const PAUSE: Duration = Duration::from_millis(50);
/// Changes that are read and published together.
const PAGE: i64 = 200;
/// Published changes above `complete` beyond which they are not read again before `complete` rises. A transaction that stays open for long would
/// otherwise have all of them read with each reading.
const REREAD: usize = 250;
/// Published changes above `complete` whose numbers are remembered while a transaction stays open. Beyond, streams are told to read everything again
/// when `complete` rises.
const REMEMBERED: usize = 10_000;

/// Reads changes until the server stops.
pub(crate) async fn run(events: Events) {
    let kernel = events.kernel.clone();
    let read = async {
        loop {
            events.hub.watched().await;
            let mut reader = Reader::default();
            let mut writes = events.store.writes();
            while events.hub.is_watched() {
                writes.mark_unchanged();
                if let Err(error) = reader.read(&events).await {
                    events.store.complain("reading changes", &error);
                }
                sleep(PAUSE).await;
                // Whatever of it ends, it is time to read: the store lives for as long as the reader.
                let _ = timeout(EVERY, writes.changed()).await;
            }
            events.hub.pause();
        }
    };
    tokio::select! {
        () = kernel.shutdown.cancelled() => {}
        () = read => {}
    }
}

/// A number, and the transactions that may hold a smaller one.
#[derive(Debug)]
struct Mark {
    seq: i64,
    writers: HashSet<String>,
}

#[derive(Debug, Default)]
struct Reader {
    /// All changes up to this number have been published. `None` before the first reading.
    complete: Option<i64>,
    /// The numbers of the published changes above `complete`.
    published: BTreeSet<i64>,
    /// The largest number that was published and is not remembered any more. Smaller ones that become visible late are missed.
    forgotten: Option<i64>,
    /// The next value of `complete`.
    mark: Option<Mark>,
    /// True once `complete` was told to the streams.
    is_known: bool,
    /// The partners that were published to since `complete` was told last.
    partners: HashSet<String>,
}

impl Reader {
    /// Publishes the changes that became visible since the last reading.
    async fn read(&mut self, events: &Events) -> Result<(), StoreError> {
        let db = events.store.db();
        let complete = match self.complete {
            Some(complete) => complete,
            None => *self.complete.insert(store::assigned(db).await?),
        };
        // Before the changes are read: those of ended transactions are visible then.
        let reached = match &self.mark {
            Some(mark) => {
                let writers = store::writers(db).await?;
                mark.writers.is_disjoint(&writers).then_some(mark.seq)
            }
            None => None,
        };
        let waits = self.mark.is_some() && reached.is_none();
        let mut from = self.forgotten.unwrap_or(complete);
        if waits && self.published.len() > REREAD {
            from = self.published.last().copied().unwrap_or(from);
        }
        loop {
            let page = store::after(db, from, PAGE).await?;
            let Some(last) = page.last() else { break };
            from = last.seq;
            let is_last = (page.len() as i64) < PAGE;
            self.publish(events, page);
            if is_last {
                break;
            }
        }
        if waits && self.published.len() > REMEMBERED {
            self.forgotten = std::mem::take(&mut self.published).pop_last();
        }
        if let Some(seq) = reached {
            self.reach(events, seq);
        }
        self.set_mark(events).await
    }

    /// Publishes those of the changes that were not published yet.
    fn publish(&mut self, events: &Events, page: Vec<Change>) {
        let mut batches: HashMap<&str, Vec<_>> = HashMap::new();
        for change in &page {
            if self.published.insert(change.seq) && events.hub.has(&change.partner) {
                let batch = batches.entry(change.partner.as_str()).or_default();
                batch.extend(written(change));
            }
        }
        for (partner, batch) in batches {
            events.hub.publish(partner, batch);
            self.partners.insert(partner.to_owned());
        }
    }

    /// Marks the newest number, unless a smaller one is still waited for.
    async fn set_mark(&mut self, events: &Events) -> Result<(), StoreError> {
        let newest = self.published.last().copied();
        let newest = newest.or(self.forgotten).or(self.complete);
        let Some(seq) = newest.filter(|_| self.mark.is_none()) else {
            return Ok(());
        };
        if self.is_known && self.complete == Some(seq) {
            return Ok(());
        }
        // Changes of transactions that end from here on are read before the number is reached.
        let writers = store::writers(events.store.db()).await?;
        self.mark = Some(Mark { seq, writers });
        Ok(())
    }

    fn reach(&mut self, events: &Events, seq: i64) {
        self.mark = None;
        self.complete = Some(seq);
        self.published = self.published.split_off(&seq.saturating_add(1));
        // Streams that did not wait may have missed changes of transactions that had begun before.
        if !self.is_known || self.forgotten.is_some() {
            events.hub.reset();
            self.is_known = true;
        }
        self.forgotten = self.forgotten.filter(|&forgotten| forgotten > seq);
        events.hub.completed(seq, self.partners.drain());
    }
}
