//! One question to a model, and what it costs.
//!
//! Where a quota pays, a question is reserved before it is asked and settled after. What is reserved stands in the row of the analysis,
//! so that a process that dies between the two leaves nothing that nobody settles: nobody knows what became of its question, so its
//! bound is what it cost.

use std::time::Duration;

use colloquy_accounts::{
    begin_run,
    ledger::{self, Amounts, DetachedUsage, Measure, Outcome, UsageContext},
};
use colloquy_kernel::jobs::Run;
use colloquy_providers::{
    Model, ModelAnswer, ModelRequest, ProviderError, ProviderErrorKind, TokenUsage, without_thought,
};
use colloquy_store::{StoreError, Transaction};
use tokio::time::timeout;

use super::{
    failure::Failure,
    question::{AnswerSource, Question},
    store,
    store::OpenRow,
};
use crate::Analyses;

/// What the records of usage call it.
pub(super) const ENDPOINT: &str = "dialog_analyses";

/// An analysis that a model is asked about.
pub(super) struct Asking<'a> {
    pub(super) analyses: &'a Analyses,
    pub(super) run: &'a Run,
    pub(super) row: &'a OpenRow,
    pub(super) model: &'a Model,
}

/// A question that may be asked.
struct Admitted {
    reservation: Option<String>,
}

impl AnswerSource for Asking<'_> {
    async fn ask(&self, asked: i64, question: &Question<'_>) -> anyhow::Result<String> {
        let request = question.request(self.analyses, self.model);
        let admitted = self.admit(asked, request.bytes).await?;
        let answer = answer(self.analyses, self.model, &request.request).await;
        let spent = match &answer {
            Ok((_, used)) => self.used(*used, Outcome::Completed),
            Err((error, used)) => match used.or_else(|| error.used()) {
                Some(used) => self.used(Some(used), Outcome::Failed),
                None if did_nothing(error) => DetachedUsage::Nothing,
                None => DetachedUsage::Bound,
            },
        };
        let analyses = self.analyses;
        let tenant = &self.row.tenant();
        // A failure counts as an attempt of the job; questions are counted whose answers can be judged.
        let asked = if answer.is_ok() { asked + 1 } else { asked };
        let reservation = admitted.reservation.as_deref();
        self.run
            .insist(analyses, || async move {
                let transaction = begin_run(analyses, tenant, self.run).await?;
                if let Some(id) = reservation {
                    ledger::settle_kept(analyses, &transaction, id, spent).await?;
                }
                store::set_asked(&transaction, &self.row.id, asked, None).await?;
                transaction.commit().await?;
                Ok(())
            })
            .await?;
        match answer {
            Ok((text, _)) => Ok(text),
            Err((error, _)) => Err(Failure::Model(error).into()),
        }
    }
}

impl Asking<'_> {
    /// Reserves the most that a question may use, where a quota pays, and notes that it is asked.
    async fn admit(&self, asked: i64, bytes: u64) -> anyhow::Result<Admitted> {
        let analyses = self.analyses;
        // A token has at least a byte.
        let output = u64::from(analyses.config.analyses.max_output_tokens);
        let bound = Amounts::tokens(bytes, output)
            .with(Measure::Cost, self.model.cost_at_most(bytes, output));
        let (id, now) = (analyses.clock.new_id().to_string(), analyses.clock.now_ms());
        let transaction = begin_run(analyses, &self.row.tenant(), self.run).await?;
        let reservation = match &self.row.quota {
            Some(quota) => {
                let about = UsageContext {
                    endpoint: ENDPOINT,
                    model: self.model.name().to_owned(),
                    character: None,
                    request_id: self.row.id.clone(),
                };
                let reserved =
                    ledger::reserve_kept(&transaction, quota, &id, bound, about, now).await?;
                reserved.map_err(Failure::Quota)?;
                Some(id)
            }
            None => None,
        };
        store::set_asked(
            &transaction,
            &self.row.id,
            asked + 1,
            reservation.as_deref(),
        )
        .await?;
        transaction.commit().await?;
        Ok(Admitted { reservation })
    }

    /// What a question came to that used so much; its bound where that is not known.
    fn used(&self, used: Option<TokenUsage>, outcome: Outcome) -> DetachedUsage {
        let Some(tokens) = used else {
            return DetachedUsage::Bound;
        };
        let amounts = Amounts::tokens(tokens.input, tokens.output)
            .with(Measure::CachedTokens, tokens.cached)
            .with(Measure::ReasoningTokens, tokens.reasoning)
            .with(Measure::Cost, self.model.cost(tokens));
        DetachedUsage::Used(amounts, outcome)
    }
}

/// What a model answers, with what that used; of a failure, too, where it is known.
///
/// # Errors
/// The model's.
pub(super) async fn answer(
    analyses: &Analyses,
    model: &Model,
    request: &ModelRequest,
) -> Result<(String, Option<TokenUsage>), (ProviderError, Option<TokenUsage>)> {
    let error =
        |kind, message: &str, used| Err((ProviderError::new(model.name(), kind, message), used));
    let patience = Duration::from_millis(analyses.config.analyses.answer_ms.into());
    let answer = timeout(patience, model.chat.ask(request)).await;
    let answer = answer.unwrap_or_else(|_| {
        let message = "no answer in time";
        Err(ProviderError::new(
            model.name(),
            ProviderErrorKind::Timeout,
            message,
        ))
    });
    let (contact, now) = (model.health.contact(), analyses.clock.instant());
    match &answer {
        Ok(_) => contact.answered(now),
        Err(error) => contact.failed(now, error),
    }
    let answer = answer.map_err(|error| (error, None))?;
    let ModelAnswer::Whole(event) = answer else {
        let message = "a stream that nobody asked for";
        return error(ProviderErrorKind::Malformed, message, None);
    };
    let used = event.usage();
    if event.failure().is_some() {
        return error(ProviderErrorKind::Failed, "it reports a failure", used);
    }
    // What was cut short or filtered does not fit the schemas, which is told like anything else that does not.
    let text = event.text().map(without_thought);
    Ok((text.unwrap_or_default(), used))
}

/// Settles the question that somebody asked and nobody settled, in a transaction.
pub(super) async fn settle_lost(
    analyses: &Analyses,
    transaction: &Transaction,
    row: &OpenRow,
) -> Result<(), StoreError> {
    match &row.reservation {
        Some(id) => ledger::settle_kept(analyses, transaction, id, DetachedUsage::Bound).await,
        None => Ok(()),
    }
}

/// Whether a model that failed so did nothing: it was not asked, or says so itself.
fn did_nothing(error: &ProviderError) -> bool {
    use ProviderErrorKind as Kind;
    matches!(
        error.kind,
        Kind::Connect
            | Kind::Busy
            | Kind::Resting
            | Kind::Rejected
            | Kind::RateLimited
            | Kind::Misconfigured
    )
}
