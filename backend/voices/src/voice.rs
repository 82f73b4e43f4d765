//! Voices: making, changing and removing them, and what is not done while they are being processed.

use colloquy_accounts::{Tenant, hold_partner, partner_exists};
use colloquy_audio::media::Container;
use colloquy_base::invalid::InvalidField;
use colloquy_blobs::{BlobKey, Written};
use colloquy_kernel::jobs;
use colloquy_speech::VoiceLibrary as _;
use colloquy_store::{StoreError, Transaction};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    embed::Embed,
    error::VoiceError,
    split::Split,
    store::{self, EmbeddingRow, SampleRow, ScoreRow, TestSampleRow, VoiceRow},
};
use crate::Voices;

/// How a recording is split where nothing else is asked for.
pub(super) const MAX_SAMPLES: u32 = 25;
pub(super) const SAMPLE_SECONDS: u32 = 15;
/// The most samples of a voice.
pub(super) const MOST_SAMPLES: u32 = 100;

/// Where splitting or embedding stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Processing {
    /// Nobody asked for it.
    Idle,
    /// It goes on; the voice is locked.
    InProgress,
    /// It is done.
    Completed,
    /// It was given up.
    Failed,
}

/// The recording that a voice was made of.
#[derive(Debug, Clone)]
pub(super) struct Original {
    pub(super) key: BlobKey,
    pub(super) bytes: u64,
    pub(super) container: Container,
}

/// A voice to store.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewVoice<'a> {
    pub(super) id: &'a str,
    pub(super) tenant: &'a Tenant,
    pub(super) name: &'a str,
    pub(super) creator_name: Option<&'a str>,
    pub(super) creator_email: Option<&'a str>,
    /// What the recording is called, and where it is.
    pub(super) original: Option<(&'a str, &'a Written, Container)>,
}

/// A voice with all that is shown of it.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) row: VoiceRow,
    pub(super) samples: Vec<SampleRow>,
    pub(super) embedding: Option<EmbeddingRow>,
    pub(super) scores: Vec<ScoreRow>,
    pub(super) test_samples: Vec<TestSampleRow>,
    /// The voice of the synthesizer that speaks: of an earlier embedding while the last one has none.
    pub(super) synthesizer_voice: Option<String>,
}

/// Whether a partner may have another voice, and whether it may be processed, before its recording is read.
pub(super) async fn check_room(voices: &Voices, tenant: &Tenant) -> Result<(), VoiceError> {
    let db = voices.store.db();
    check_count(voices, store::count(db, tenant).await?)?;
    check_in_progress(voices, store::count_in_progress(db, tenant).await?)
}

fn check_count(voices: &Voices, count: u64) -> Result<(), VoiceError> {
    let most = voices.config.voices.max_voices;
    if count >= u64::from(most) {
        let message = format!("The library of a partner has {most} voices at most");
        return Err(VoiceError::Conflict(message));
    }
    Ok(())
}

/// Stores a voice, whose recording is split and embedded at once where it has one.
pub(super) async fn create(voices: &Voices, new: NewVoice<'_>) -> Result<(), VoiceError> {
    let tenant = new.tenant;
    let transaction = voices.store.begin().await?;
    hold_partner(&transaction, tenant).await?;
    if !partner_exists(&transaction, tenant).await? {
        return Err(VoiceError::NotFound("Partner"));
    }
    check_count(voices, store::count(&transaction, tenant).await?)?;
    if !store::insert(&transaction, &new, voices.clock.now_ms()).await? {
        return Err(taken());
    }
    if let Some((_, written, _)) = new.original {
        let running = store::count_in_progress(&transaction, tenant).await?;
        check_in_progress(voices, running)?;
        voices.blobs.keep(&transaction, written).await?;
        let how = [MAX_SAMPLES, SAMPLE_SECONDS];
        begin_split(voices, &transaction, tenant, new.id, how, true).await?;
    }
    transaction.commit().await?;
    voices.kernel.jobs.wake();
    Ok(())
}

fn taken() -> VoiceError {
    VoiceError::Conflict("There is a voice of this name already".to_owned())
}

/// Whether another voice of a partner may be processed.
fn check_in_progress(voices: &Voices, running: u64) -> Result<(), VoiceError> {
    match running >= u64::from(voices.config.voices.in_progress) {
        true => Err(VoiceError::TooMany),
        false => Ok(()),
    }
}

async fn begin_split(
    voices: &Voices,
    transaction: &Transaction,
    tenant: &Tenant,
    voice: &str,
    how: [u32; 2],
    embeds_next: bool,
) -> Result<(), StoreError> {
    let job = Split {
        voice: voice.to_owned(),
        run: voices.clock.new_id().to_string(),
    };
    let now = voices.clock.now_ms();
    store::begin_split(transaction, voice, &job.run, how, embeds_next, now).await?;
    jobs::enqueue(voices, transaction, Some(tenant.partner()), &job).await
}

/// Begins to have something made of the samples of a voice.
pub(super) async fn begin_embedding(
    voices: &Voices,
    transaction: &Transaction,
    tenant: &Tenant,
    voice: &str,
    voice_type: &str,
) -> Result<(), StoreError> {
    if let Some(before) = store::embedding(transaction, voice, voice_type).await? {
        let keys = store::remove_embedding(transaction, &before).await?;
        voices.blobs.doom(transaction, &keys).await?;
    }
    let job = Embed {
        run: voices.clock.new_id().to_string(),
    };
    let token = format!("{:032x}", rand::random::<u128>());
    let now = voices.clock.now_ms();
    store::begin_embedding(transaction, voice, voice_type, [&job.run, &token], now).await?;
    jobs::enqueue(voices, transaction, Some(tenant.partner()), &job).await
}

/// A voice of a partner.
pub(super) async fn find(
    voices: &Voices,
    tenant: &Tenant,
    name: &str,
) -> Result<VoiceRow, VoiceError> {
    let found = store::find(voices.store.db(), tenant, name).await?;
    found.ok_or(VoiceError::NotFound("Voice"))
}

/// A voice with all that is shown of it.
pub(super) async fn describe(voices: &Voices, row: VoiceRow) -> Result<Described, VoiceError> {
    let db = voices.store.db();
    let samples = store::samples(db, &row.id).await?;
    let Some(voice_type) = row.embedding_type.as_deref() else {
        return Ok(Described {
            row,
            samples,
            embedding: None,
            scores: Vec::new(),
            test_samples: Vec::new(),
            synthesizer_voice: None,
        });
    };
    // Read first: a status of `completed` is never shown without what was made by then.
    let embedding = store::embedding(db, &row.id, voice_type).await?;
    // As speech asks for it, so that what is shown is what speaks.
    let speaking = voices.voice(&row.tenant(), &row.name).await?;
    Ok(Described {
        samples,
        embedding,
        scores: store::scores(db, &row.id, voice_type).await?,
        test_samples: store::test_samples(db, &row.id, voice_type).await?,
        synthesizer_voice: speaking.map(|voice| voice.synthesizer_voice),
        row,
    })
}

/// Begins to change a voice, which nobody else changes before the transaction ends.
///
/// # Errors
/// When there is none, or it is being processed.
async fn begin_change(
    voices: &Voices,
    tenant: &Tenant,
    name: &str,
) -> Result<(Transaction, VoiceRow), VoiceError> {
    let transaction = voices.store.begin().await?;
    hold_partner(&transaction, tenant).await?;
    let found = store::find(&transaction, tenant, name).await?;
    let voice = found.ok_or(VoiceError::NotFound("Voice"))?;
    let embeddings = store::embeddings(&transaction, &voice.id).await?;
    let is_embedding = |it: &EmbeddingRow| it.status == Processing::InProgress;
    match voice.splitting == Processing::InProgress || embeddings.iter().any(is_embedding) {
        true => Err(VoiceError::Locked),
        false => Ok((transaction, voice)),
    }
}

/// Gives a voice another name.
pub(super) async fn rename(
    voices: &Voices,
    tenant: &Tenant,
    name: &str,
    other: &str,
) -> Result<(), VoiceError> {
    let (transaction, voice) = begin_change(voices, tenant, name).await?;
    if !store::rename(&transaction, &voice, other).await? {
        return Err(taken());
    }
    Ok(transaction.commit().await?)
}

/// Removes a voice with all of its files.
pub(super) async fn delete(voices: &Voices, tenant: &Tenant, name: &str) -> Result<(), VoiceError> {
    let (transaction, voice) = begin_change(voices, tenant, name).await?;
    let keys = store::delete(&transaction, &voice).await?;
    voices.blobs.doom(&transaction, &keys).await?;
    Ok(transaction.commit().await?)
}

/// Splits the recording of a voice anew: its samples, and what was made of them, go.
pub(super) async fn split(
    voices: &Voices,
    tenant: &Tenant,
    name: &str,
    how: [u32; 2],
) -> Result<(), VoiceError> {
    let (transaction, voice) = begin_change(voices, tenant, name).await?;
    if voice.original().is_none() {
        let message = "The voice was made without a recording, so there is nothing to split";
        return Err(InvalidField::new("voice", message).into());
    }
    let running = store::count_in_progress(&transaction, tenant).await?;
    check_in_progress(voices, running)?;
    let keys = store::remove_samples(&transaction, &voice.id).await?;
    voices.blobs.doom(&transaction, &keys).await?;
    begin_split(voices, &transaction, tenant, &voice.id, how, false).await?;
    transaction.commit().await?;
    voices.kernel.jobs.wake();
    Ok(())
}

/// Has something made of the samples of a voice.
pub(super) async fn embed(
    voices: &Voices,
    tenant: &Tenant,
    name: &str,
    voice_type: Option<String>,
) -> Result<(), VoiceError> {
    let worker = voices.providers.voice_worker.as_ref();
    let worker = worker.ok_or(VoiceError::NoWorker)?;
    let (transaction, voice) = begin_change(voices, tenant, name).await?;
    let known = voice_type.or_else(|| voice.embedding_type.clone());
    let voice_type = known.unwrap_or_else(|| worker.default_type().to_owned());
    if !worker.makes(&voice_type) {
        let message = format!(
            "tts_type: this server makes voices of the type {}",
            worker.default_type()
        );
        return Err(InvalidField::new("tts_type", message).into());
    }
    if store::samples(&transaction, &voice.id).await?.is_empty() {
        return Err(InvalidField::new("voice", "The voice has no samples").into());
    }
    let running = store::count_in_progress(&transaction, tenant).await?;
    check_in_progress(voices, running)?;
    begin_embedding(voices, &transaction, tenant, &voice.id, &voice_type).await?;
    transaction.commit().await?;
    voices.kernel.jobs.wake();
    Ok(())
}

/// Adds a sample to a voice that was made empty, and gives it.
pub(super) async fn add_sample(
    voices: &Voices,
    tenant: &Tenant,
    name: &str,
    written: &Written,
    milliseconds: i64,
) -> Result<SampleRow, VoiceError> {
    let (transaction, voice) = begin_change(voices, tenant, name).await?;
    check_takes_samples(&voice)?;
    let samples = store::samples(&transaction, &voice.id).await?;
    if samples.len() >= MOST_SAMPLES as usize {
        let message = format!("A voice has {MOST_SAMPLES} samples at most");
        return Err(VoiceError::Conflict(message));
    }
    let index = samples.last().map_or(0, |last| last.sample_index + 1);
    voices.blobs.keep(&transaction, written).await?;
    store::insert_sample(&transaction, &voice.id, index, [0, milliseconds], written).await?;
    let sample = store::sample(&transaction, &voice.id, index).await?;
    transaction.commit().await?;
    sample.ok_or(VoiceError::NotFound("Sample"))
}

/// Whether samples may be added to a voice.
pub(super) fn check_takes_samples(voice: &VoiceRow) -> Result<(), VoiceError> {
    match voice.original() {
        None => Ok(()),
        Some(_) => {
            let message = "Samples are added only to voices that were made empty";
            Err(InvalidField::new("voice", message).into())
        }
    }
}

/// Removes a sample of a voice.
pub(super) async fn remove_sample(
    voices: &Voices,
    tenant: &Tenant,
    name: &str,
    index: i64,
) -> Result<(), VoiceError> {
    let (transaction, voice) = begin_change(voices, tenant, name).await?;
    let sample = store::sample(&transaction, &voice.id, index).await?;
    let sample = sample.ok_or(VoiceError::NotFound("Sample"))?;
    let keys = store::remove_sample(&transaction, &voice.id, &sample).await?;
    voices.blobs.doom(&transaction, &keys).await?;
    Ok(transaction.commit().await?)
}

/// Says which sample of a voice is the best one; `None`: none of them.
pub(super) async fn prefer(
    voices: &Voices,
    tenant: &Tenant,
    name: &str,
    index: Option<i64>,
) -> Result<(), VoiceError> {
    let (transaction, voice) = begin_change(voices, tenant, name).await?;
    if let Some(index) = index
        && store::sample(&transaction, &voice.id, index)
            .await?
            .is_none()
    {
        let message = "sample_index: the voice has no such sample";
        return Err(InvalidField::new("sample_index", message).into());
    }
    store::set_preferred(&transaction, &voice.id, index).await?;
    Ok(transaction.commit().await?)
}

/// Removes what was made of a voice for a type.
pub(super) async fn remove_embedding(
    voices: &Voices,
    tenant: &Tenant,
    name: &str,
    voice_type: &str,
) -> Result<(), VoiceError> {
    let (transaction, voice) = begin_change(voices, tenant, name).await?;
    let embedding = store::embedding(&transaction, &voice.id, voice_type).await?;
    let embedding = embedding.ok_or(VoiceError::NotFound("Embedding"))?;
    let keys = store::remove_embedding(&transaction, &embedding).await?;
    voices.blobs.doom(&transaction, &keys).await?;
    Ok(transaction.commit().await?)
}
