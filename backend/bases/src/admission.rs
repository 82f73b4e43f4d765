//! Admission: the one way to whatever costs something.
//!
//! Whoever asks a service for a document (to rewrite, to embed, to transcribe) is admitted before with the most that it may use
//! ([`admit`]), and settles after with what it used ([`Admission::settle`]). Both are stored, a row for each request to a service. A process that
//! dies between them leaves a row that says so: nobody knows what became of that request. Today everything is admitted; limits
//! of bases belong here and nowhere else.

use colloquy_providers::{ProviderError, ProviderErrorKind, TokenUsage};
use colloquy_store::StoreError;

use super::{
    Bases, outage,
    store::{self, OwnedDocument},
    stored::stored,
};

/// What a service is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PaidStep {
    /// To rewrite a section.
    Rewrite,
    /// To make vectors of chunks.
    Embed,
    /// To write down what is said in a part of a recording.
    Transcribe,
}

stored!(PaidStep: Rewrite = "rewrite", Embed = "embed", Transcribe = "transcribe");

/// The most that a request may use, as far as that is known before it is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct UsageBound {
    /// Tokens that are read and written.
    pub(crate) tokens: Option<u64>,
    /// Seconds of sound.
    pub(crate) seconds: Option<u64>,
}

/// What a request used. What is not known is left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) tokens: Option<TokenUsage>,
    pub(crate) seconds: Option<u64>,
    /// In units of 1e-8 dollars.
    pub(crate) cost: Option<u64>,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UsageOutcome {
    /// It was answered.
    Success,
    /// It was sent, and not answered as it should be; it may have to be paid for.
    Fault,
}

stored!(UsageOutcome: Success = "success", Fault = "fault");

/// A request that may be sent. It has to be settled, or withdrawn if it was not sent after all.
#[derive(Debug)]
#[must_use = "a request that is admitted is settled or withdrawn"]
pub(crate) struct Admission {
    id: String,
}

/// Whether a request that failed so was never sent.
pub(crate) fn is_unsent(error: &ProviderError) -> bool {
    use ProviderErrorKind as Kind;
    matches!(error.kind, Kind::Connect | Kind::Busy | Kind::Resting)
}

/// Admits a request for a document to a model.
///
/// # Errors
/// The database's failure: then nothing is to be sent.
pub(crate) async fn admit(
    bases: &Bases,
    owned: &OwnedDocument,
    step: PaidStep,
    model: &str,
    bound: UsageBound,
) -> Result<Admission, StoreError> {
    let id = bases.clock.new_id().to_string();
    let now = bases.clock.now_ms();
    let new = store::NewUsage {
        id: &id,
        base: &owned.base_id,
        document: &owned.document.id,
        step,
        model,
        bound,
    };
    store::insert_usage(bases.store.db(), &new, now).await?;
    Ok(Admission { id })
}

impl Admission {
    /// Stores what the request came to, however long the database is away.
    ///
    /// # Errors
    /// The database's failure, of a kind that does not pass.
    pub(crate) async fn settle(
        self,
        bases: &Bases,
        outcome: UsageOutcome,
        used: Used,
    ) -> anyhow::Result<()> {
        let (id, used) = (&self.id, &used);
        outage::insist(bases, || async move {
            let now = bases.clock.now_ms();
            store::settle_usage(bases.store.db(), id, outcome, used, now).await?;
            Ok(())
        })
        .await
    }

    /// Takes it back: nothing was sent.
    ///
    /// # Errors
    /// The database's failure, of a kind that does not pass.
    pub(crate) async fn withdraw(self, bases: &Bases) -> anyhow::Result<()> {
        let id = &self.id;
        outage::insist(bases, || async move {
            store::remove_usage(bases.store.db(), id).await?;
            Ok(())
        })
        .await
    }
}
