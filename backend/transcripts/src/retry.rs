//! Another attempt at a transcript that failed, with the recording or the address that it kept. Words that were heard before the failure are kept, so
//! that they are not paid for again.

use colloquy_accounts::{
    Tenant, hold_partner,
    ledger::{self, Amounts, DetachedUsage, Measure, UsageContext},
    partners, quotas,
    storage::{self, Sum},
};
use colloquy_kernel::jobs;

use super::{
    accept::check_open,
    error::{AcceptError, RetryError},
    hearing, kept_since,
    routes::TranscriptStatus,
    store,
    transcribe::Transcribe,
};
use crate::Transcripts;

/// Queues a transcript again, which the caller reaches, as of [`store::find`]. No-op while it is open after an earlier retry. The quota that it was
/// created with pays.
///
/// # Errors
/// When there is no such transcript, it has not failed or keeps nothing, or it would not be accepted now if it were new.
pub(super) async fn retry(
    transcripts: &Transcripts,
    tenant: Option<&Tenant>,
    quota: Option<&str>,
    id: &str,
) -> Result<(), RetryError> {
    let since = kept_since(transcripts);
    let found = store::standing(transcripts.store.db(), tenant, quota, id, since).await?;
    let found = found.ok_or(RetryError::Unknown)?;
    let tenant = &found.tenant();
    if let Some(quota) = &found.quota {
        let model = transcripts.providers.batch.transcriber.name();
        let allowed = quotas::check_model(transcripts, tenant, quota, model).await;
        allowed.map_err(AcceptError::from)?;
    }
    let partner = partners::read(transcripts, tenant).await;
    let partner = partner.map_err(AcceptError::from)?;
    let transaction = transcripts.store.begin().await?;
    // Nobody else retries it, or adds another one, before this transaction ends.
    hold_partner(&transaction, tenant).await?;
    let found = store::standing(&transaction, Some(tenant), quota, id, since).await?;
    let found = found.ok_or(RetryError::Unknown)?;
    match found.status()? {
        TranscriptStatus::Error if found.is_retryable() => {}
        TranscriptStatus::Error => return Err(RetryError::NothingKept),
        TranscriptStatus::Completed => return Err(RetryError::NotFailed),
        TranscriptStatus::Queued | TranscriptStatus::Processing => {
            return match found.is_retried() {
                true => Ok(()),
                false => Err(RetryError::NotFailed),
            };
        }
    }
    if !partner.settings.is_transcription_enabled() {
        return Err(AcceptError::SwitchedOff.into());
    }
    check_open(transcripts, store::count_open(&transaction, tenant).await?)?;
    let now = transcripts.clock.now_ms();
    if let Some(quota) = &found.quota {
        // Checks that a second is left; the parts reserve what they take.
        let second = Amounts::default().with(Measure::Seconds, 1);
        let about = UsageContext {
            endpoint: hearing::ENDPOINT,
            model: transcripts.providers.batch.transcriber.name().to_owned(),
            character: None,
            request_id: id.to_owned(),
        };
        let reservation = transcripts.clock.new_id().to_string();
        let reserved =
            ledger::reserve_kept(&transaction, quota, &reservation, second, about, now).await?;
        reserved.map_err(AcceptError::from)?;
        let nothing = DetachedUsage::Nothing;
        ledger::settle_kept(transcripts, &transaction, &reservation, nothing).await?;
    }
    if !store::queue_again(&transaction, id, since, now).await? {
        return Err(RetryError::NothingKept);
    }
    let job = Transcribe {
        transcript: id.to_owned(),
    };
    jobs::enqueue(transcripts, &transaction, Some(tenant.partner()), &job).await?;
    let partner = tenant.partner().as_str();
    storage::release(&transaction, partner, Sum::Texts, found.failed_bytes).await?;
    transaction.commit().await?;
    transcripts.kernel.jobs.wake();
    Ok(())
}
