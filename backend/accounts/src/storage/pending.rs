//! Texts that will be stored once work that costs something is done.
//!
//! Such a text is stored whatever the partner has by then, so its bytes are reserved before the work begins. Reservations are in the memory of
//! one node: texts of requests in progress on several nodes may pass the limit together, each node's by no more than the limit leaves free.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use colloquy_base::{counts::Counts, identifiers::PartnerId};
use colloquy_kernel::Base;
use tokio::task::yield_now;

use super::{ChargeError, Standing, note_refusal, require, standing};

/// Texts of this node that are reserved and not stored yet, by partner; cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct PendingTexts(Arc<Mutex<Counts<String>>>);

/// The bytes of a text that will be stored. To be dropped once the text is stored and counts, or never will be.
#[derive(Debug)]
pub struct PendingText {
    all: PendingTexts,
    partner: String,
    bytes: usize,
}

impl PendingTexts {
    /// Reserves the bytes of a text.
    ///
    /// # Errors
    /// When the partner would store more than it may, with the texts that were reserved before this one, or the database fails.
    pub async fn reserve(
        &self,
        base: &Base,
        partner: &PartnerId,
        bytes: u64,
    ) -> Result<PendingText, ChargeError> {
        let reserved = match self.attempt(base, partner, bytes).await {
            // A text that was stored meanwhile may count twice, and one that was refused meanwhile counts.
            Err((ChargeError::Limit(_), 1..)) => {
                // Whoever has just stored a text lets go of it.
                yield_now().await;
                self.attempt(base, partner, bytes).await
            }
            first => first,
        };
        let reserved = reserved.map_err(|(error, _)| error);
        reserved.inspect_err(note_refusal)
    }

    /// Reserves the bytes of a text. An error comes with the bytes that were held before, and holds none.
    async fn attempt(
        &self,
        base: &Base,
        partner: &PartnerId,
        bytes: u64,
    ) -> Result<PendingText, (ChargeError, u64)> {
        let (text, before) = self.hold(partner, bytes);
        // Read after the text is held: one that was held before is either stored or among `before`.
        match check_beside(base, partner, before, bytes).await {
            Ok(()) => Ok(text),
            Err(error) => Err((error, before)),
        }
    }

    /// Holds the bytes of a text, and returns how many bytes were held before.
    fn hold(&self, partner: &PartnerId, bytes: u64) -> (PendingText, u64) {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let mut held = self.lock();
        let before = held.of(partner.as_str()) as u64;
        held.add(partner.as_str(), bytes);
        let text = PendingText {
            all: self.clone(),
            partner: partner.as_str().to_owned(),
            bytes,
        };
        (text, before)
    }

    fn lock(&self) -> MutexGuard<'_, Counts<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Checks that a partner may store bytes beside those that it stores and those that are held.
async fn check_beside(
    base: &Base,
    partner: &PartnerId,
    held: u64,
    bytes: u64,
) -> Result<(), ChargeError> {
    let db = base.store.db();
    let Standing { stored, limit } = standing(base, db, partner).await?;
    require(db, partner, stored.saturating_add(held), bytes, limit).await
}

impl Drop for PendingText {
    fn drop(&mut self) {
        self.all.lock().remove(self.partner.as_str(), self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_held_until_it_is_dropped() {
        let (texts, acme) = (PendingTexts::default(), PartnerId::of_row("acme"));
        let (first, before) = texts.hold(&acme, 4);
        assert_eq!(before, 0);
        let (second, before) = texts.hold(&acme, 3);
        assert_eq!(before, 4);
        assert_eq!(texts.hold(&PartnerId::of_row("other"), 1).1, 0);
        drop(first);
        assert_eq!(texts.hold(&acme, 1).1, 3);
        drop(second);
        assert_eq!(*texts.lock(), Counts::default());
    }
}
