//! Taking an analysis: the stored row and its job.

use colloquy_accounts::{
    Tenant,
    ledger::{Amounts, LedgerError, UsageContext},
    quotas::Payer,
    storage,
};
use colloquy_kernel::jobs;

use super::{analyze::Analyze, asking::ENDPOINT, error::AcceptError, request::Input, store};
use crate::Analyses;

/// An analysis that was taken.
pub(super) struct Accepted {
    pub(super) id: String,
    pub(super) created_at: i64,
}

/// Counts a request of whoever pays.
///
/// # Errors
/// When it, or all together, ask too often.
pub(super) fn check_rate(analyses: &Analyses, payer: &Payer) -> Result<(), AcceptError> {
    let who = match payer {
        Payer::Quota(quota) => &quota.id,
        Payer::Key(principal) => &principal.key_id,
    };
    Ok(analyses.rate.check(who)?)
}

/// Stores an analysis and its job.
///
/// # Errors
/// When the quota is exhausted, the partner has too many analyses in progress or would store more than it may, or the database fails.
pub(super) async fn accept(
    analyses: &Analyses,
    payer: &Payer,
    tenant: &Tenant,
    input: &Input,
) -> Result<Accepted, AcceptError> {
    if let Some(quota) = payer.quota() {
        let model = analyses.model().name();
        quota.require_model(model).map_err(LedgerError::from)?;
        // Whether there is a token left; what it takes is reserved question by question.
        let about = UsageContext {
            endpoint: ENDPOINT,
            model: model.to_owned(),
            character: None,
            request_id: String::new(),
        };
        drop(
            analyses
                .ledger
                .reserve(quota, Amounts::tokens(0, 1), about)
                .await?,
        );
    }
    let (id, now) = (analyses.clock.new_id().to_string(), analyses.clock.now_ms());
    let job = Analyze {
        analysis: id.clone(),
    };
    let transaction = analyses.store.begin().await?;
    let open = store::count_open(&transaction, tenant).await?;
    if open >= u64::from(analyses.config.analyses.in_progress) {
        return Err(AcceptError::TooMany);
    }
    let quota = payer.quota().map(|quota| quota.id.as_str());
    let bytes = store::insert(&transaction, tenant, &id, quota, input, now).await?;
    jobs::enqueue(analyses, &transaction, Some(tenant.partner()), &job).await?;
    storage::charge_text(analyses, &transaction, tenant.partner(), bytes).await?;
    transaction.commit().await?;
    analyses.kernel.jobs.wake();
    Ok(Accepted {
        id,
        created_at: now,
    })
}
