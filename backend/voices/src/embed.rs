//! The job that has a worker make something of the samples of a voice: it gives them, waits, and takes what was made.

use std::{collections::HashSet, time::Duration};

use colloquy_accounts::{Tenant, begin_run};
use colloquy_base::fair_queue::{Claim, Priority};
use colloquy_blobs::{NoRoom, WriteError, Written};
use colloquy_kernel::jobs::{self, GivenUp, Job, RetryRule, Run, RunResult};
use colloquy_providers::{
    MadeVoice, ProviderError, ProviderErrorKind, VoiceFile, VoiceJob, VoiceProgress, VoiceSample,
    VoiceWorker,
};
use serde::{Deserialize, Serialize};

use super::{
    split::is_outage,
    store::{self, EmbeddingRow, SampleRow, ScoreRow},
    voice::Processing,
};
use crate::Voices;

/// How often a job is tried again after a failure of the worker, and after a process that died.
const ATTEMPTS: u32 = 10;
/// How often a worker is asked that no connection can be made to.
const CONNECT_ATTEMPTS: u32 = 3;
/// How long it takes between two questions after a job at first, and at most.
const FIRST_WAIT: Duration = Duration::from_millis(300);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The largest file of embeddings, and of a sentence.
const MOST_EMBEDDING_BYTES: u64 = 256 * 1024 * 1024;
const MOST_SENTENCE_BYTES: u64 = 8 * 1024 * 1024;
/// The most bytes of all files of a job.
const MOST_BYTES: u64 = 1024 * 1024 * 1024;
/// How often a worker is given a job that it does not have.
const MOST_GIVEN: i64 = 10;
/// The largest sample.
const MOST_SAMPLE_BYTES: u64 = 16 * 1024 * 1024;

/// Has something made of the samples of a voice.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Embed {
    /// The worker's job.
    pub run: String,
}

/// Why nothing was made of a voice.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("the voice worker: {0}")]
    Refused(String),
    #[error("the voice worker {}, also when it was asked again", worker_failure(.0))]
    Worker(#[source] ProviderError),
    #[error("the voice worker took longer than {0} s")]
    TooLong(u32),
    #[error("the voice worker has lost the job {MOST_GIVEN} times")]
    Lost,
    #[error("this server has no voice worker any more")]
    NoWorker,
    #[error("{0}")]
    NoRoom(NoRoom),
    #[error("embedding was begun several times, and interrupted each time")]
    Interrupted,
}

/// What a partner is told of a worker's failure, without its words.
fn worker_failure(error: &ProviderError) -> &'static str {
    match error.kind {
        ProviderErrorKind::Connect => "cannot be reached",
        _ => "failed",
    }
}

impl jobs::Failure for Failure {
    fn may_pass(&self) -> bool {
        matches!(self, Self::Worker(_))
    }

    fn most_attempts(&self) -> u32 {
        match self {
            Self::Worker(error) if error.kind == ProviderErrorKind::Connect => CONNECT_ATTEMPTS,
            _ => u32::MAX,
        }
    }
}

impl Failure {
    /// For the log, which has no words of the worker.
    fn code(&self) -> &'static str {
        match self {
            Self::Refused(_) => "refused",
            Self::Worker(_) => "worker",
            Self::TooLong(_) => "too_long",
            Self::Lost => "lost",
            Self::NoWorker => "no_worker",
            Self::NoRoom(_) => "no_room",
            Self::Interrupted => "interrupted",
        }
    }
}

impl From<ProviderError> for Failure {
    fn from(error: ProviderError) -> Self {
        match error.kind {
            ProviderErrorKind::Rejected => Self::Refused(error.message),
            _ => Self::Worker(error),
        }
    }
}

impl Job for Embed {
    type State = Voices;

    const KIND: &'static str = "voices.embed";

    const RETRY: RetryRule = RetryRule {
        attempts: u32::MAX,
        first: Duration::from_secs(1),
        most: Duration::from_secs(120),
    };

    /// Most of them wait for the worker.
    const AT_ONCE: usize = 8;

    fn dedup_key(&self) -> Option<String> {
        Some(self.run.clone())
    }

    async fn run(self, voices: Voices, run: Run) -> anyhow::Result<RunResult> {
        match self.attempt(&voices, &run).await {
            Err(error) if is_outage(&error) => {
                let what = "embedding voices, which wait for the end of an outage";
                voices.store.complain(what, &format!("{error:#}"));
                Ok(RunResult::after_outage())
            }
            result => result,
        }
    }

    async fn give_up(self, voices: Voices, run: Run, _why: GivenUp) -> anyhow::Result<()> {
        match self.row(&voices).await? {
            Some((row, tenant)) => fail(&voices, &run, &tenant, &row, &Failure::Interrupted).await,
            None => Ok(()),
        }
    }
}

/// What is to be done next.
enum Next {
    /// To wait.
    Wait,
    /// To take what was made.
    Take(MadeVoice),
}

impl Embed {
    /// What is being made, while this run does it, and whose it is.
    async fn row(&self, voices: &Voices) -> anyhow::Result<Option<(EmbeddingRow, Tenant)>> {
        let db = voices.store.db();
        let row = store::embedding_of_run(db, &self.run).await?;
        let Some(row) = row.filter(|row| row.status == Processing::InProgress) else {
            return Ok(None);
        };
        let voice = store::by_id(db, &row.voice_id).await?;
        Ok(voice.map(|voice| (row, voice.tenant())))
    }

    async fn attempt(&self, voices: &Voices, run: &Run) -> anyhow::Result<RunResult> {
        let Some((row, tenant)) = self.row(voices).await? else {
            return Ok(RunResult::Done);
        };
        let made = match &voices.providers.voice_worker {
            None => Err(Failure::NoWorker.into()),
            Some(_) if run.attempt > ATTEMPTS => Err(Failure::Interrupted.into()),
            Some(worker) => make(voices, &**worker, &row, &tenant).await,
        };
        let waited = voices.clock.now_ms() - row.begun_at;
        match run.outcome::<_, Failure>(made, ATTEMPTS)? {
            Ok(Next::Wait) => return Ok(RunResult::Again(wait(waited))),
            Ok(Next::Take(made)) => {
                let taken = take(voices, run, &tenant, &row, &made).await;
                if let Err(failure) = run.outcome::<_, Failure>(taken, ATTEMPTS)? {
                    fail(voices, run, &tenant, &row, &failure).await?;
                }
            }
            Err(failure) => fail(voices, run, &tenant, &row, &failure).await?,
        }
        if let Some(worker) = &voices.providers.voice_worker
            && let Err(error) = worker.forget(&self.run).await
        {
            // It forgets by itself sooner or later.
            tracing::info!("a voice worker was not told that a job has ended: {error}");
        }
        Ok(RunResult::Done)
    }
}

/// How long until the next question, of a job that has taken so many milliseconds.
fn wait(waited_ms: i64) -> Duration {
    let part = Duration::from_millis(waited_ms.unsigned_abs() / 10);
    part.clamp(FIRST_WAIT, LONGEST_WAIT)
}

/// Asks how far a job is, and gives it where the worker does not have it.
async fn make(
    voices: &Voices,
    worker: &dyn VoiceWorker,
    row: &EmbeddingRow,
    tenant: &Tenant,
) -> anyhow::Result<Next> {
    let longest = voices.config.voice_worker.seconds;
    let waited = voices.clock.now_ms() - row.begun_at;
    if waited > i64::from(longest) * 1_000 {
        return Err(Failure::TooLong(longest).into());
    }
    let asked = |error: ProviderError| match error.kind {
        // There is no room now: no attempt is lost.
        ProviderErrorKind::Busy => anyhow::Error::from(error),
        _ => Failure::from(error).into(),
    };
    match worker.progress(&row.run).await.map_err(asked)? {
        VoiceProgress::Running(_) => Ok(Next::Wait),
        VoiceProgress::Done(made) => Ok(Next::Take(made)),
        VoiceProgress::Failed(reason) => {
            let reason: String = reason.chars().take(500).collect();
            Err(Failure::Refused(reason).into())
        }
        VoiceProgress::Unknown if row.given >= MOST_GIVEN => Err(Failure::Lost.into()),
        VoiceProgress::Unknown => {
            let origin = voices.config.http.origin();
            let callback = format!(
                "{origin}/api/voice-worker/jobs/{}?token={}",
                row.run, row.token
            );
            let job = VoiceJob {
                id: row.run.clone(),
                voice_type: row.voice_type.clone(),
                sentences: voices.config.voice_worker.sentences.clone(),
                callback_url: Some(callback),
                claim: Claim::new(Priority::Background, tenant.partner().as_str()),
            };
            worker.begin(&job).await.map_err(asked)?;
            for sample in store::samples(voices.store.db(), &row.voice_id).await? {
                let audio = voices
                    .blobs
                    .read_whole(&sample.blob_key, MOST_SAMPLE_BYTES)
                    .await?;
                let index = u32::try_from(sample.sample_index)?;
                let sample = VoiceSample { index, audio };
                worker.add(&job, sample).await.map_err(asked)?;
            }
            // From here on it is the worker's to keep.
            store::count_given(voices.store.db(), &row.run).await?;
            worker.start(&job).await.map_err(asked)?;
            Ok(Next::Wait)
        }
    }
}

/// What was made, as files here.
#[derive(Default)]
struct Taken {
    zip: Option<Written>,
    tests: Vec<([i64; 2], Written)>,
}

impl Taken {
    fn files(&self) -> impl Iterator<Item = &Written> {
        let tests = self.tests.iter().map(|(_, written)| written);
        tests.chain(&self.zip)
    }
}

/// Takes what was made.
async fn take(
    voices: &Voices,
    run: &Run,
    tenant: &Tenant,
    row: &EmbeddingRow,
    made: &MadeVoice,
) -> anyhow::Result<()> {
    let samples = store::samples(voices.store.db(), &row.voice_id).await?;
    let known: HashSet<u32> = samples.iter().filter_map(index).collect();
    let mut taken = Taken::default();
    let kept = match fetch_all(voices, tenant, row, made, &known, &mut taken).await {
        Ok(()) => keep(voices, run, tenant, row, made, &known, &taken).await,
        Err(error) => Err(error),
    };
    if kept.is_err() {
        for written in taken.files() {
            voices.blobs.discard(written).await;
        }
    }
    kept
}

/// Fetches the files that a worker made.
async fn fetch_all(
    voices: &Voices,
    tenant: &Tenant,
    row: &EmbeddingRow,
    made: &MadeVoice,
    known: &HashSet<u32>,
    taken: &mut Taken,
) -> anyhow::Result<()> {
    let Some(worker) = &voices.providers.voice_worker else {
        return Err(Failure::NoWorker.into());
    };
    let sentences = voices.config.voice_worker.sentences.len();
    let longest = voices.config.voice_worker.seconds;
    let mut left = MOST_BYTES;
    if made.has_embedding {
        let file = VoiceFile::Embedding;
        let written = fetch(voices, &**worker, tenant, row, file, MOST_EMBEDDING_BYTES).await?;
        left -= written.bytes;
        taken.zip = Some(written);
    }
    let mut seen = HashSet::new();
    for &(sample, sentence) in &made.test_samples {
        let is_asked = known.contains(&sample) && (sentence as usize) < sentences;
        if !is_asked || !seen.insert((sample, sentence)) {
            continue;
        }
        if voices.clock.now_ms() - row.begun_at > i64::from(longest) * 1_000 {
            return Err(Failure::TooLong(longest).into());
        }
        let file = VoiceFile::TestSample { sample, sentence };
        let most = MOST_SENTENCE_BYTES.min(left);
        let written = fetch(voices, &**worker, tenant, row, file, most).await?;
        left -= written.bytes;
        taken
            .tests
            .push(([sample.into(), sentence.into()], written));
    }
    Ok(())
}

/// Stores what was taken, unless nobody waits for it any more.
async fn keep(
    voices: &Voices,
    run: &Run,
    tenant: &Tenant,
    row: &EmbeddingRow,
    made: &MadeVoice,
    known: &HashSet<u32>,
    taken: &Taken,
) -> anyhow::Result<()> {
    let mut scored = HashSet::new();
    let is_name = |voice: &&str| voice.len() <= 255 && !voice.chars().any(char::is_control);
    let scores = made.scores.iter();
    let scores: Vec<ScoreRow> = scores
        .filter(|(sample, score)| known.contains(sample) && score.is_finite())
        .filter(|(sample, _)| scored.insert(*sample))
        .map(|(sample, score)| {
            let mut voices = made.sample_voices.iter();
            let voice = voices.find(|(of, _)| of == sample);
            let voice = voice.map(|(_, voice)| voice.as_str()).filter(is_name);
            ScoreRow {
                sample_index: (*sample).into(),
                score_thousandths: (score.clamp(0.0, 1.0) * 1_000.0).round() as i64,
                synthesizer_voice: voice.map(str::to_owned),
            }
        })
        .collect();
    let voice = made.synthesizer_voice.as_deref().filter(is_name);
    let scores = &scores;
    run.insist(voices, || async move {
        let transaction = begin_run(voices, tenant, run).await?;
        let current = store::embedding_of_run(&transaction, &row.run).await?;
        if !current.is_some_and(|current| current.status == Processing::InProgress) {
            return Ok(());
        }
        let now = voices.clock.now_ms();
        for written in taken.files() {
            voices.blobs.keep(&transaction, written).await?;
        }
        store::complete_embedding(&transaction, row, taken.zip.as_ref(), voice, now).await?;
        for score in scores {
            store::insert_score(&transaction, row, score).await?;
        }
        for (place, written) in &taken.tests {
            store::insert_test_sample(&transaction, row, *place, written).await?;
        }
        transaction.commit().await?;
        Ok(())
    })
    .await
}

fn index(sample: &SampleRow) -> Option<u32> {
    u32::try_from(sample.sample_index).ok()
}

/// Takes a file that a worker made. It goes away by itself when it is not kept.
async fn fetch(
    voices: &Voices,
    worker: &dyn VoiceWorker,
    tenant: &Tenant,
    row: &EmbeddingRow,
    file: VoiceFile,
    most: u64,
) -> anyhow::Result<Written> {
    let pieces = worker.file(&row.run, file).await.map_err(Failure::from)?;
    let written: Result<Written, WriteError<ProviderError>> = voices
        .blobs
        .write::<ProviderError>(tenant.partner(), pieces, most)
        .await;
    written.map_err(|error| match error {
        WriteError::Source(error) => Failure::from(error).into(),
        WriteError::TooLarge(most) => {
            let message = format!("{} has more than {most} bytes", file.name());
            Failure::Refused(message).into()
        }
        WriteError::NoRoom(why @ NoRoom::Partner { .. }) => Failure::NoRoom(why).into(),
        WriteError::NoRoom(why) => why.into(),
        WriteError::Object(error) => error.into(),
        WriteError::Database(error) => error.into(),
    })
}

/// Nothing was made of a voice.
async fn fail(
    voices: &Voices,
    run: &Run,
    tenant: &Tenant,
    row: &EmbeddingRow,
    failure: &Failure,
) -> anyhow::Result<()> {
    let reason = &failure.to_string();
    run.insist(voices, || async move {
        let transaction = begin_run(voices, tenant, run).await?;
        store::fail_embedding(&transaction, row, reason, voices.clock.now_ms()).await?;
        transaction.commit().await?;
        Ok(())
    })
    .await?;
    let code = failure.code();
    tracing::info!(voice = row.voice_id, code, "a voice was not embedded");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_that_cannot_be_reached_is_asked_three_times() {
        use colloquy_kernel::jobs::Failure as _;
        let failure = |kind| Failure::from(ProviderError::new("worker", kind, "no"));
        let away = failure(ProviderErrorKind::Connect);
        assert_eq!(away.most_attempts(), 3);
        assert!(away.to_string().contains("cannot be reached"));
        let other = failure(ProviderErrorKind::Failed);
        assert_eq!(other.most_attempts(), u32::MAX);
    }

    #[test]
    fn questions_become_rarer() {
        let waits = [0, 1_000, 20_000, 3_600_000].map(wait);
        let expected = [300, 300, 2_000, 30_000].map(Duration::from_millis);
        assert_eq!(waits, expected);
    }
}
