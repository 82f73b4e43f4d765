//! Another attempt at an analysis that failed, with the input that it kept.

use colloquy_accounts::{
    ledger::{self, Amounts, DetachedUsage, UsageContext},
    quotas,
    storage::{self, Sum},
};
use colloquy_kernel::jobs;

use super::{
    analyze::Analyze,
    asking::ENDPOINT,
    error::{AcceptError, RetryError},
    output::AnalysisState,
    store::{self, Sought},
};
use crate::Analyses;

/// Begins an analysis again. No-op while it is in progress after an earlier retry. The quota that it was created with pays.
///
/// # Errors
/// When there is no such analysis, it has not failed or has no input, or it would not be accepted now if it were new.
pub(super) async fn retry(analyses: &Analyses, sought: Sought<'_>) -> Result<(), RetryError> {
    let found = store::standing(analyses.store.db(), sought).await?;
    let found = found.ok_or(RetryError::Unknown)?;
    let tenant = &found.tenant();
    if let Some(quota) = &found.quota {
        let allowed = quotas::check_model(analyses, tenant, quota, analyses.model().name()).await;
        allowed.map_err(AcceptError::from)?;
    }
    let transaction = analyses.store.begin().await?;
    // Holds the partner, so that nobody else retries it before this transaction ends.
    let open = store::count_open(&transaction, tenant).await?;
    let found = store::standing(&transaction, sought).await?;
    let found = found.ok_or(RetryError::Unknown)?;
    match found.state()? {
        AnalysisState::Failed if found.has_input() => {}
        AnalysisState::Failed => return Err(RetryError::NothingKept),
        AnalysisState::InProgress if found.is_retried() => return Ok(()),
        AnalysisState::InProgress | AnalysisState::Completed => return Err(RetryError::NotFailed),
    }
    if open >= u64::from(analyses.config.analyses.in_progress) {
        return Err(AcceptError::TooMany.into());
    }
    let now = analyses.clock.now_ms();
    if let Some(quota) = &found.quota {
        // Checks that a token is left; the questions reserve what they take.
        let about = UsageContext {
            endpoint: ENDPOINT,
            model: analyses.model().name().to_owned(),
            character: None,
            request_id: sought.id.to_owned(),
        };
        let (id, token) = (analyses.clock.new_id().to_string(), Amounts::tokens(0, 1));
        let reserved = ledger::reserve_kept(&transaction, quota, &id, token, about, now).await?;
        reserved.map_err(AcceptError::from)?;
        ledger::settle_kept(analyses, &transaction, &id, DetachedUsage::Nothing).await?;
    }
    if !store::begin_again(&transaction, sought.id, sought.kept_since, now).await? {
        return Err(RetryError::NothingKept);
    }
    let job = Analyze {
        analysis: sought.id.to_owned(),
    };
    jobs::enqueue(analyses, &transaction, Some(tenant.partner()), &job).await?;
    let partner = tenant.partner().as_str();
    storage::release(&transaction, partner, Sum::Texts, found.error_bytes).await?;
    transaction.commit().await?;
    analyses.kernel.jobs.wake();
    Ok(())
}
