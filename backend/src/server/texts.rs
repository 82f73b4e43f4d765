//! The sum of texts in the storage of partners, which several capabilities store: compared with the rows now and then.

use std::time::Duration;

use crate::{
    accounts::storage,
    analyses,
    app::App,
    bases, calls, characters, generation,
    kernel::Capability,
    messaging,
    store::{Store, StoreError},
    transcripts, webhooks,
};

/// How often the sums are compared with the rows.
const RECOUNTED_EVERY: Duration = Duration::from_secs(3_600);
/// A query for each kind of text that counts.
const KINDS: [&str; 9] = [
    generation::TEXTS,
    characters::TEXTS,
    calls::TEXTS,
    analyses::TEXTS,
    messaging::TEXTS,
    transcripts::TEXTS,
    webhooks::TEXTS,
    bases::TEXTS,
    storage::TEXTS,
];

/// The comparison of the sums with the rows.
#[derive(Debug)]
pub(super) struct Texts;

#[async_trait::async_trait]
impl Capability<App> for Texts {
    fn name(&self) -> &'static str {
        "texts"
    }

    async fn start(&self, app: &App) -> anyhow::Result<()> {
        let shutdown = app.kernel.shutdown.clone();
        app.kernel
            .repeat("counting texts", RECOUNTED_EVERY, move |base| {
                let shutdown = shutdown.clone();
                async move {
                    let recounted = recount_texts(&base.store);
                    let recounted = shutdown.run_until_cancelled(recounted).await;
                    recounted.transpose().map(|_| ())
                }
            });
        Ok(())
    }
}

/// Corrects the sums of the texts of partners that differ from their rows, and returns how many they were.
///
/// # Errors
/// The database's failure.
pub async fn recount_texts(store: &Store) -> Result<u64, StoreError> {
    storage::recount_texts(store, &KINDS).await
}

#[cfg(test)]
#[path = "texts_tests.rs"]
mod tests;
