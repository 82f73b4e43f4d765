//! A reservation in the hands of whoever made it, and how it is settled.

use std::{borrow::Cow, sync::Arc};

use colloquy_store::{StoreError, Transaction};
use tokio::sync::oneshot;

use super::{
    Amounts, Outcome, Standing, UsageContext,
    queue::{Open, Queue, Settlement},
    store,
};

/// What is stored about a reservation and about its usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) endpoint: Cow<'static, str>,
    pub(super) model: String,
    pub(super) character: Option<String>,
    pub(super) request_id: String,
}

impl Entry {
    pub(super) fn new(about: UsageContext) -> Self {
        Self {
            endpoint: Cow::Borrowed(about.endpoint),
            model: storable(about.model),
            character: about.character.map(storable),
            request_id: storable(about.request_id),
        }
    }
}

/// PostgreSQL stores no NUL in text. Names have none; one that has must not keep the others from being stored.
fn storable(text: String) -> String {
    if text.contains('\0') {
        text.replace('\0', "")
    } else {
        text
    }
}

/// A stored reservation, as whoever settles it knows it.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) id: String,
    pub(super) quota: String,
    pub(super) bound: Amounts,
    pub(super) entry: Entry,
    /// When it was made, on the clock of its period, in milliseconds since 1970.
    pub(super) created_at: i64,
}

/// A bound that is reserved until it is settled. Dropped without that, it is taken back as if it had never been, or, from
/// [`Self::begin`] on, settled at the bound.
#[derive(Debug)]
#[must_use = "dropped, it is taken back"]
pub struct Reservation {
    /// Gone once it is settled.
    held: Option<(Held, Open)>,
    /// Something is done that costs.
    begun: bool,
    queue: Arc<Queue>,
    standing: Standing,
}

impl Reservation {
    pub(super) fn new(held: Held, queue: &Arc<Queue>, standing: Standing) -> Self {
        Self {
            held: Some((held, Open::new(queue))),
            begun: false,
            queue: Arc::clone(queue),
            standing,
        }
    }

    /// How the quota stood after this reservation, for `x-ratelimit-*` headers.
    #[must_use]
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// What is reserved.
    #[must_use]
    pub fn bound(&self) -> Amounts {
        self.held
            .as_ref()
            .map_or_else(Amounts::default, |(held, _)| held.bound)
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.held.as_ref().map(|(held, _)| held.id.as_str())
    }

    /// Makes it a reservation of no process, once the transaction is committed and [`Self::leave`] called: it is settled by
    /// [`super::settle_kept`].
    ///
    /// # Errors
    /// The database's failure.
    pub async fn keep_in(&self, transaction: &Transaction) -> Result<(), StoreError> {
        match self.id() {
            Some(id) => store::keep(transaction, id).await,
            None => Ok(()),
        }
    }

    /// Leaves it to whoever settles it.
    pub fn leave(mut self) {
        self.held = None;
    }

    /// From now on, nobody knows what was used unless it is settled.
    pub fn begin(&mut self) {
        self.begun = true;
    }

    /// Another model answered: usage is recorded under its name.
    pub fn set_model(&mut self, model: &str) {
        if let Some((held, _)) = &mut self.held {
            held.entry.model = storable(model.to_owned());
        }
    }

    /// Queues the settlement; never blocks, never fails: the writer tries until it is stored.
    pub fn settle(mut self, usage: Amounts, outcome: Outcome) {
        self.end(Some((usage, outcome)), None);
    }

    /// The same, and waits until it is stored.
    pub async fn settled(mut self, usage: Amounts, outcome: Outcome) {
        let (done, stored) = oneshot::channel();
        self.end(Some((usage, outcome)), Some(done));
        if stored.await.is_err() {
            tracing::error!("the writer of the ledger ended before a settlement was stored");
        }
    }

    fn end(&mut self, used: Option<(Amounts, Outcome)>, done: Option<oneshot::Sender<bool>>) {
        if let Some((held, open)) = self.held.take() {
            self.queue.settle(Settlement {
                held,
                used: used.map(|(usage, outcome)| (usage.capped(), outcome)),
                done,
                open: Some(open),
            });
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some((held, _)) = &self.held {
            let bound = (held.bound.used_up(), Outcome::Bound);
            self.end(self.begun.then_some(bound), None);
        }
    }
}
