//! Voices as clients see them.

use colloquy_accounts::Tenant;
use colloquy_base::clock::rfc3339;
use serde::Serialize;
use url::Url;
use utoipa::ToSchema;

use super::super::{
    store::{ListedRow, SampleRow},
    voice::{Described, Processing},
};
use crate::Voices;

/// A voice in a list.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ListedVoice)]
pub(crate) struct ListedView {
    /// Its name, which is its place in paths.
    name: String,
    /// Whether it was made of a recording.
    has_original: bool,
    /// How many samples it has.
    sample_count: i64,
    /// Where splitting stands.
    splitting_status: Processing,
    /// Where embedding stands.
    embedding_status: Processing,
    /// Who made it.
    creator_name: Option<String>,
    /// How to reach them.
    creator_email: Option<String>,
}

/// Where a voice stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = VoiceStatus)]
pub(crate) struct StatusView {
    /// Splitting of the recording.
    splitting: Processing,
    /// Embedding of the samples.
    embedding: Processing,
    /// Why splitting failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    splitting_error: Option<String>,
    /// Why embedding failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    embedding_error: Option<String>,
}

/// A sample of a voice.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = VoiceSample)]
pub(crate) struct SampleView {
    /// Its number, which is its place in paths.
    index: i64,
    /// Where it begins in the recording: minutes and seconds.
    #[schema(example = "01:05")]
    source_timestamp: String,
    /// How long it is, in seconds.
    duration: f64,
}

/// A sentence that was spoken with a sample.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TestSample)]
pub(crate) struct TestSampleView {
    /// The number of the sample.
    sample_index: i64,
    /// The number of the sentence, from 0.
    sentence_index: i64,
    /// What the file is called: `test_<sample_index>_<sentence_index>.opus`.
    pub(super) filename: String,
}

/// What a sample is worth.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = SampleScore)]
pub(crate) struct ScoreView {
    /// The number of the sample.
    sample_index: i64,
    /// From 0 to 1, the best.
    score: f64,
}

/// What was last made of a voice.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EmbeddingOfVoice)]
pub(crate) struct EmbeddingView {
    /// What it is for.
    tts_type: String,
    /// Where it stands.
    last_update_status: Processing,
    /// Since when. RFC 3339.
    last_update_time: String,
    /// The sentences that were spoken.
    test_samples: Vec<TestSampleView>,
    /// What each sample is worth.
    sample_scores: Vec<ScoreView>,
    /// The voice of the synthesizer that speaks, as `synthesizer_voice` of the voice has it.
    synthesizer_voice: Option<String>,
}

/// A voice.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LibraryVoice)]
pub(crate) struct VoiceView {
    /// Its name, which is its place in paths.
    name: String,
    /// The recording that it was made of, as it is called here; null for a voice that was made empty.
    original_filename: Option<String>,
    /// As it was called by whoever uploaded it.
    original_uploaded_name: Option<String>,
    /// How long it is, in seconds, once that is known.
    original_duration: Option<f64>,
    /// Where splitting and embedding stand.
    status: StatusView,
    /// Its samples, by their numbers.
    samples: Vec<SampleView>,
    /// What was last made of it; null before.
    embedding_info: Option<EmbeddingView>,
    /// The type that it was last embedded for; null before.
    embedding_type: Option<String>,
    /// Where what a synthesizer needs of the voice can be got; null where there is nothing.
    embedding_zip_url: Option<String>,
    /// The number of the sample that somebody likes best.
    preferred_sample_index: Option<i64>,
    /// The voice of the synthesizer that speaks: the one that suits the preferred sample, where there is one and the worker tells, else all
    /// of them. Where the worker names neither, or what was last made is removed, the one that was made before for another type. Null where
    /// the synthesizer cannot speak with the voice.
    synthesizer_voice: Option<String>,
    /// Who made it.
    creator_name: Option<String>,
    /// How to reach them.
    creator_email: Option<String>,
}

impl From<&SampleRow> for SampleView {
    fn from(row: &SampleRow) -> Self {
        let (minutes, seconds) = (row.source_seconds / 60, row.source_seconds % 60);
        Self {
            index: row.sample_index,
            source_timestamp: format!("{minutes:02}:{seconds:02}"),
            duration: row.milliseconds as f64 / 1_000.0,
        }
    }
}

impl From<ListedRow> for ListedView {
    fn from(row: ListedRow) -> Self {
        let embedding = row.embedding.map(Processing::try_from);
        Self {
            name: row.name,
            has_original: row.blob_key.is_some(),
            sample_count: row.samples,
            splitting_status: row.splitting,
            embedding_status: embedding.and_then(Result::ok).unwrap_or(Processing::Idle),
            creator_name: row.creator_name,
            creator_email: row.creator_email,
        }
    }
}

pub(super) fn test_sample_view([sample_index, sentence_index]: [i64; 2]) -> TestSampleView {
    TestSampleView {
        sample_index,
        sentence_index,
        filename: format!("test_{sample_index}_{sentence_index}.opus"),
    }
}

impl VoiceView {
    pub(super) fn new(voices: &Voices, tenant: &Tenant, described: Described) -> Self {
        let Described {
            row,
            samples,
            embedding,
            scores,
            test_samples,
            synthesizer_voice,
        } = described;
        let original = row.original();
        let embedding_status = embedding.as_ref().map(|embedding| embedding.status);
        let embedding_error = embedding.as_ref().and_then(|it| it.error.clone());
        let zip = embedding.as_ref().filter(|it| it.blob_key.is_some());
        let embedding_zip_url =
            zip.and_then(|it| embedding_url(voices, tenant, &row.name, &it.voice_type));
        let scores = scores.into_iter().map(|score| ScoreView {
            sample_index: score.sample_index,
            score: score.score_thousandths as f64 / 1_000.0,
        });
        let tests = test_samples.into_iter();
        let tests = tests.map(|it| test_sample_view([it.sample_index, it.sentence_index]));
        let embedding_info = embedding.map(|embedding| EmbeddingView {
            tts_type: embedding.voice_type,
            last_update_status: embedding.status,
            last_update_time: rfc3339(embedding.updated_at),
            test_samples: tests.collect(),
            sample_scores: scores.collect(),
            synthesizer_voice: synthesizer_voice.clone(),
        });
        Self {
            original_filename: original.map(|it| format!("original.{}", it.container.name())),
            original_uploaded_name: row.uploaded_name,
            original_duration: row.milliseconds.map(|length| length as f64 / 1_000.0),
            status: StatusView {
                splitting: row.splitting,
                embedding: embedding_status.unwrap_or(Processing::Idle),
                splitting_error: row.splitting_error,
                embedding_error,
            },
            samples: samples.iter().map(SampleView::from).collect(),
            embedding_info,
            embedding_type: row.embedding_type,
            embedding_zip_url,
            preferred_sample_index: row.preferred_sample,
            synthesizer_voice,
            creator_name: row.creator_name,
            creator_email: row.creator_email,
            name: row.name,
        }
    }
}

/// Where what was made of a voice for a type can be got.
fn embedding_url(voices: &Voices, tenant: &Tenant, name: &str, voice_type: &str) -> Option<String> {
    let mut url = Url::parse(&voices.config.http.origin()).ok()?;
    let mut path = url.path_segments_mut().ok()?;
    path.pop_if_empty();
    path.extend([
        "api",
        "voices",
        tenant.partner().as_str(),
        name,
        "embedding.zip",
    ]);
    drop(path);
    url.query_pairs_mut().append_pair("tts_type", voice_type);
    Some(url.into())
}
