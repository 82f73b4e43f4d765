//! Taking a transcript: the recording as it comes, the stored row and its job.

use bytes::Bytes;
use colloquy_accounts::{
    Tenant, hold_partner,
    ledger::{Amounts, LedgerError, Measure, UsageContext},
    partners,
    quotas::Payer,
    storage,
};
use colloquy_audio::media::Container;
use colloquy_base::invalid::InvalidField;
use colloquy_blobs::ObjectError;
use colloquy_http::ApiError;
use colloquy_kernel::jobs;
use futures_util::Stream;

use super::{
    error::AcceptError,
    hearing,
    request::{Options, Source, Upload},
    store::{self, NewTranscript},
    transcribe::Transcribe,
};
use crate::Transcripts;

/// Whether there is room for a transcript, before its recording is read.
///
/// # Errors
/// When the partner has no transcripts or too many in progress, the quota is exhausted, or the database fails.
pub(super) async fn check_room(
    transcripts: &Transcripts,
    payer: &Payer,
    tenant: &Tenant,
) -> Result<(), AcceptError> {
    let partner = partners::read(transcripts, tenant).await?;
    if !partner.settings.is_transcription_enabled() {
        return Err(AcceptError::SwitchedOff);
    }
    check_open(
        transcripts,
        store::count_open(transcripts.store.db(), tenant).await?,
    )?;
    if let Some(quota) = payer.quota() {
        let model = transcripts.providers.batch.transcriber.name();
        quota.require_model(model).map_err(LedgerError::from)?;
        // Whether there is a second left; what it takes is reserved part by part.
        let second = Amounts::default().with(Measure::Seconds, 1);
        let about = UsageContext {
            endpoint: hearing::ENDPOINT,
            model: model.to_owned(),
            character: None,
            request_id: String::new(),
        };
        drop(transcripts.ledger.reserve(quota, second, about).await?);
    }
    Ok(())
}

/// Checks that a partner with `open` transcripts in progress may have another.
pub(super) fn check_open(transcripts: &Transcripts, open: u64) -> Result<(), AcceptError> {
    match open >= u64::from(transcripts.config.transcripts.in_progress) {
        true => Err(AcceptError::TooMany),
        false => Ok(()),
    }
}

/// Takes a recording as it comes, and looks what it is. It goes away by itself when no transcript is made of it.
///
/// # Errors
/// When it is too large, no recording, does not arrive, or cannot be stored.
pub(super) async fn receive(
    transcripts: &Transcripts,
    tenant: &Tenant,
    pieces: impl Stream<Item = Result<Bytes, ApiError>> + Send,
) -> Result<Upload, AcceptError> {
    let most = transcripts.config.transcripts.max_file_bytes;
    let written = transcripts
        .blobs
        .write(tenant.partner(), pieces, most)
        .await?;
    match container_of(transcripts, &written.key, written.bytes).await? {
        Some(container) => Ok(Upload { container, written }),
        None => {
            transcripts.blobs.discard(&written).await;
            let message =
                "is no recording of a supported type: MP3, WAV, Ogg, FLAC, M4A, MP4, WebM";
            Err(AcceptError::Invalid(vec![InvalidField::new(
                "audio", message,
            )]))
        }
    }
}

/// What a stored file is, by how it begins.
pub(super) async fn container_of(
    transcripts: &Transcripts,
    key: &colloquy_blobs::BlobKey,
    bytes: u64,
) -> Result<Option<Container>, ObjectError> {
    let beginning = transcripts
        .blobs
        .beginning(key, bytes, Container::BEGINNING);
    let container = Container::of_beginning(&beginning.await?);
    // Of films, those that the document names.
    Ok(container.filter(|container| *container != Container::Avi))
}

/// Stores a transcript and its job, and gives its id.
///
/// # Errors
/// When the partner has too many transcripts in progress or would store more than it may, or the database fails.
pub(super) async fn accept(
    transcripts: &Transcripts,
    payer: &Payer,
    tenant: &Tenant,
    options: &Options,
    source: Source,
) -> Result<String, AcceptError> {
    let id = transcripts.clock.new_id().to_string();
    let job = Transcribe {
        transcript: id.clone(),
    };
    let transaction = transcripts.store.begin().await?;
    // Nobody else adds one before this transaction ends.
    hold_partner(&transaction, tenant).await?;
    check_open(transcripts, store::count_open(&transaction, tenant).await?)?;
    if let Source::Upload(upload) = &source {
        transcripts
            .blobs
            .keep(&transaction, &upload.written)
            .await?;
    }
    let new = NewTranscript {
        id: &id,
        tenant,
        quota: payer.quota().map(|quota| quota.id.as_str()),
        options,
        source: &source,
    };
    let bytes = store::insert(&transaction, new, transcripts.clock.now_ms()).await?;
    jobs::enqueue(transcripts, &transaction, Some(tenant.partner()), &job).await?;
    storage::charge_text(transcripts, &transaction, tenant.partner(), bytes).await?;
    transaction.commit().await?;
    transcripts.kernel.jobs.wake();
    Ok(id)
}
