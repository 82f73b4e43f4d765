//! The SQL of voices.

use colloquy_accounts::Tenant;
use colloquy_audio::media::Container;
use colloquy_blobs::{BlobKey, Written};
use colloquy_store::{Executor, StoreError, Transaction, statement, stored};

use super::voice::{NewVoice, Original, Processing};

stored!(pub(super) Processing: Idle = "idle", InProgress = "in_progress", Completed = "completed", Failed = "failed");

/// A voice.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(super) struct VoiceRow {
    pub(super) id: String,
    partner: String,
    pub(super) name: String,
    pub(super) creator_name: Option<String>,
    pub(super) creator_email: Option<String>,
    pub(super) uploaded_name: Option<String>,
    blob_key: Option<BlobKey>,
    blob_bytes: Option<i64>,
    container: Option<String>,
    pub(super) milliseconds: Option<i64>,
    #[sqlx(try_from = "String")]
    pub(super) splitting: Processing,
    pub(super) splitting_error: Option<String>,
    pub(super) split_run: Option<String>,
    pub(super) split_begun_at: Option<i64>,
    pub(super) max_samples: i64,
    pub(super) sample_seconds: i64,
    pub(super) window_sample: i64,
    pub(super) embeds_next: bool,
    pub(super) embedding_type: Option<String>,
    pub(super) preferred_sample: Option<i64>,
}

impl VoiceRow {
    pub(super) fn tenant(&self) -> Tenant {
        Tenant::of_row(&self.partner)
    }

    /// The recording that it was made of.
    pub(super) fn original(&self) -> Option<Original> {
        let container = self.container.as_deref().and_then(Container::of_name)?;
        Some(Original {
            key: self.blob_key.clone()?,
            bytes: self.blob_bytes?.unsigned_abs(),
            container,
        })
    }
}

/// A voice in a list.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct ListedRow {
    pub(super) name: String,
    pub(super) creator_name: Option<String>,
    pub(super) creator_email: Option<String>,
    pub(super) blob_key: Option<BlobKey>,
    #[sqlx(try_from = "String")]
    pub(super) splitting: Processing,
    pub(super) samples: i64,
    pub(super) embedding: Option<String>,
}

/// A sample of a voice.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(super) struct SampleRow {
    pub(super) sample_index: i64,
    pub(super) source_seconds: i64,
    pub(super) milliseconds: i64,
    pub(super) blob_key: BlobKey,
}

/// What was made of a voice.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(super) struct EmbeddingRow {
    pub(super) voice_id: String,
    pub(super) voice_type: String,
    #[sqlx(try_from = "String")]
    pub(super) status: Processing,
    pub(super) error: Option<String>,
    pub(super) run: String,
    pub(super) token: String,
    pub(super) begun_at: i64,
    pub(super) updated_at: i64,
    pub(super) given: i64,
    pub(super) blob_key: Option<BlobKey>,
}

/// A sentence that was spoken with a sample.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(super) struct TestSampleRow {
    pub(super) sample_index: i64,
    pub(super) sentence_index: i64,
    pub(super) blob_key: BlobKey,
}

/// What a sample is worth.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(super) struct ScoreRow {
    pub(super) sample_index: i64,
    pub(super) score_thousandths: i64,
    /// The voice that suits the sample, where the worker tells.
    pub(super) synthesizer_voice: Option<String>,
}

/// A voice that the synthesizer can speak with.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct SpeakingRow {
    name: String,
    synthesizer_voice: String,
}

impl From<SpeakingRow> for colloquy_speech::SpeakingVoice {
    fn from(row: SpeakingRow) -> Self {
        Self {
            name: row.name,
            synthesizer_voice: row.synthesizer_voice,
        }
    }
}

/// The voices of a partner that the synthesizer can speak with, or the one of this name: as what was last made of each says, of its preferred
/// sample where there is one, or what was made before for another type, while that cannot speak.
pub(super) async fn speaking(
    db: &impl Executor,
    tenant: &Tenant,
    name: Option<&str>,
) -> Result<Vec<SpeakingRow>, StoreError> {
    let sql = "SELECT v.name, COALESCE(s.synthesizer_voice, e.synthesizer_voice) AS synthesizer_voice \
               FROM voices v JOIN voice_embeddings e ON e.voice_id = v.id \
               LEFT JOIN voice_scores s ON s.voice_id = e.voice_id AND s.voice_type = e.voice_type AND s.sample_index = v.preferred_sample \
               WHERE v.partner = $1 AND (CAST($2 AS TEXT) IS NULL OR v.name = $2) AND COALESCE(s.synthesizer_voice, e.synthesizer_voice) IS NOT NULL \
               ORDER BY v.name, CASE WHEN e.voice_type = v.embedding_type THEN 0 ELSE 1 END, e.updated_at DESC";
    let values = [tenant.partner().as_str().into(), name.into()];
    let mut rows: Vec<SpeakingRow> = db.fetch_all(statement(sql, values)).await?;
    rows.dedup_by(|later, first| later.name == first.name);
    Ok(rows)
}

const COLUMNS: &str = "id, partner, name, creator_name, creator_email, uploaded_name, blob_key, blob_bytes, container, milliseconds, \
                       splitting, splitting_error, split_run, split_begun_at, max_samples, sample_seconds, window_sample, embeds_next, embedding_type, \
                       preferred_sample";

pub(super) async fn insert(
    db: &impl Executor,
    new: &NewVoice<'_>,
    now: i64,
) -> Result<bool, StoreError> {
    let sql = "INSERT INTO voices (id, partner, name, creator_name, creator_email, uploaded_name, blob_key, blob_bytes, container, splitting, \
               max_samples, sample_seconds, window_sample, embeds_next, created_at) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'idle', 0, 0, 0, FALSE, $10) ON CONFLICT (partner, name) DO NOTHING";
    let original = new.original;
    let bytes = original.map(|(_, written, _)| i64::try_from(written.bytes));
    let values = [
        new.id.into(),
        new.tenant.partner().as_str().into(),
        new.name.into(),
        new.creator_name.into(),
        new.creator_email.into(),
        original.map(|(name, _, _)| name).into(),
        original.map(|(_, written, _)| written.key.as_str()).into(),
        bytes.transpose().map_err(StoreError::other)?.into(),
        original.map(|(_, _, container)| container.name()).into(),
        now.into(),
    ];
    Ok(db.execute(statement(sql, values)).await? > 0)
}

pub(super) async fn count(db: &impl Executor, tenant: &Tenant) -> Result<u64, StoreError> {
    let sql = "SELECT COUNT(*) FROM voices WHERE partner = $1";
    db.fetch_count(statement(sql, [tenant.partner().as_str().into()]))
        .await
}

/// How many voices of a partner are being split or embedded.
pub(super) async fn count_in_progress(
    db: &impl Executor,
    tenant: &Tenant,
) -> Result<u64, StoreError> {
    let sql = "SELECT COUNT(*) FROM voices WHERE partner = $1 AND (splitting = 'in_progress' \
               OR EXISTS (SELECT 1 FROM voice_embeddings WHERE voice_id = voices.id AND status = 'in_progress'))";
    db.fetch_count(statement(sql, [tenant.partner().as_str().into()]))
        .await
}

/// The voices of a partner, by name.
pub(super) async fn list(
    db: &impl Executor,
    tenant: &Tenant,
) -> Result<Vec<ListedRow>, StoreError> {
    let sql = "SELECT name, creator_name, creator_email, blob_key, splitting, \
               (SELECT COUNT(*) FROM voice_samples WHERE voice_id = voices.id) AS samples, \
               (SELECT status FROM voice_embeddings WHERE voice_id = voices.id AND voice_type = voices.embedding_type) AS embedding \
               FROM voices WHERE partner = $1 ORDER BY name";
    db.fetch_all(statement(sql, [tenant.partner().as_str().into()]))
        .await
}

pub(super) async fn find(
    db: &impl Executor,
    tenant: &Tenant,
    name: &str,
) -> Result<Option<VoiceRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM voices WHERE partner = $1 AND name = $2");
    let values = [tenant.partner().as_str().into(), name.into()];
    db.fetch_one(statement(sql, values)).await
}

pub(super) async fn by_id(db: &impl Executor, id: &str) -> Result<Option<VoiceRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS} FROM voices WHERE id = $1");
    db.fetch_one(statement(sql, [id.into()])).await
}

/// Gives a voice another name. Whether nobody has it.
pub(super) async fn rename(
    transaction: &Transaction,
    voice: &VoiceRow,
    name: &str,
) -> Result<bool, StoreError> {
    let sql = "UPDATE voices SET name = $2 WHERE id = $1 \
               AND NOT EXISTS (SELECT 1 FROM voices other WHERE other.partner = $3 AND other.name = $2 AND other.id <> $1)";
    let values = [
        voice.id.as_str().into(),
        name.into(),
        voice.partner.as_str().into(),
    ];
    Ok(transaction.execute(statement(sql, values)).await? > 0)
}

/// Removes a voice, and gives the keys of its files.
pub(super) async fn delete(
    transaction: &Transaction,
    voice: &VoiceRow,
) -> Result<Vec<BlobKey>, StoreError> {
    let mut keys = remove_samples(transaction, &voice.id).await?;
    keys.extend(voice.blob_key.clone());
    let sql = "DELETE FROM voices WHERE id = $1";
    transaction
        .execute(statement(sql, [voice.id.as_str().into()]))
        .await?;
    Ok(keys)
}

/// Removes the samples of a voice with all that was made of them, and gives the keys of the files.
pub(super) async fn remove_samples(
    transaction: &Transaction,
    voice: &str,
) -> Result<Vec<BlobKey>, StoreError> {
    let mut keys: Vec<BlobKey> = Vec::new();
    for embedding in embeddings(transaction, voice).await? {
        keys.extend(remove_embedding(transaction, &embedding).await?);
    }
    let samples = samples(transaction, voice).await?;
    keys.extend(samples.into_iter().map(|sample| sample.blob_key));
    let sql = "DELETE FROM voice_samples WHERE voice_id = $1";
    transaction.execute(statement(sql, [voice.into()])).await?;
    let sql = "UPDATE voices SET preferred_sample = NULL WHERE id = $1";
    transaction.execute(statement(sql, [voice.into()])).await?;
    Ok(keys)
}

/// A run begins to split a voice.
pub(super) async fn begin_split(
    transaction: &Transaction,
    voice: &str,
    run: &str,
    [max_samples, sample_seconds]: [u32; 2],
    embeds_next: bool,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE voices SET splitting = 'in_progress', splitting_error = NULL, split_run = $2, max_samples = $3, \
               sample_seconds = $4, window_sample = 0, embeds_next = $5, split_begun_at = $6 WHERE id = $1";
    let values = [
        voice.into(),
        run.into(),
        i64::from(max_samples).into(),
        i64::from(sample_seconds).into(),
        embeds_next.into(),
        now.into(),
    ];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

/// The next window of a recording begins at this sample.
pub(super) async fn set_window(
    transaction: &Transaction,
    voice: &str,
    window_sample: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE voices SET window_sample = $2 WHERE id = $1";
    let values = [voice.into(), window_sample.into()];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

/// How long the recording is.
pub(super) async fn set_length(
    transaction: &Transaction,
    voice: &str,
    milliseconds: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE voices SET milliseconds = $2 WHERE id = $1";
    let values = [voice.into(), milliseconds.into()];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

/// Splitting ended; with an error where there is one.
pub(super) async fn end_split(
    transaction: &Transaction,
    voice: &str,
    error: Option<&str>,
) -> Result<(), StoreError> {
    let status = match error {
        None => Processing::Completed,
        Some(_) => Processing::Failed,
    };
    let sql = "UPDATE voices SET splitting = $2, splitting_error = $3, split_run = NULL, embeds_next = FALSE WHERE id = $1";
    let values = [voice.into(), status.as_str().into(), error.into()];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

pub(super) async fn samples(db: &impl Executor, voice: &str) -> Result<Vec<SampleRow>, StoreError> {
    let sql = "SELECT sample_index, source_seconds, milliseconds, blob_key FROM voice_samples \
               WHERE voice_id = $1 ORDER BY sample_index";
    db.fetch_all(statement(sql, [voice.into()])).await
}

pub(super) async fn sample(
    db: &impl Executor,
    voice: &str,
    index: i64,
) -> Result<Option<SampleRow>, StoreError> {
    let sql = "SELECT sample_index, source_seconds, milliseconds, blob_key FROM voice_samples \
               WHERE voice_id = $1 AND sample_index = $2";
    db.fetch_one(statement(sql, [voice.into(), index.into()]))
        .await
}

pub(super) async fn insert_sample(
    transaction: &Transaction,
    voice: &str,
    sample_index: i64,
    [source_seconds, milliseconds]: [i64; 2],
    written: &Written,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO voice_samples (voice_id, sample_index, source_seconds, milliseconds, blob_key, blob_bytes) \
               VALUES ($1, $2, $3, $4, $5, $6)";
    let values = [
        voice.into(),
        sample_index.into(),
        source_seconds.into(),
        milliseconds.into(),
        written.key.as_str().into(),
        i64::try_from(written.bytes)
            .map_err(StoreError::other)?
            .into(),
    ];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

/// Removes a sample with what was made of it, and gives the keys of the files.
pub(super) async fn remove_sample(
    transaction: &Transaction,
    voice: &str,
    sample: &SampleRow,
) -> Result<Vec<BlobKey>, StoreError> {
    #[derive(sqlx::FromRow)]
    struct Key {
        blob_key: BlobKey,
    }
    let values = || [voice.into(), sample.sample_index.into()];
    let sql = "SELECT blob_key FROM voice_test_samples WHERE voice_id = $1 AND sample_index = $2";
    let tests: Vec<Key> = transaction.fetch_all(statement(sql, values())).await?;
    for sql in [
        "DELETE FROM voice_test_samples WHERE voice_id = $1 AND sample_index = $2",
        "DELETE FROM voice_scores WHERE voice_id = $1 AND sample_index = $2",
        "DELETE FROM voice_samples WHERE voice_id = $1 AND sample_index = $2",
        "UPDATE voices SET preferred_sample = NULL WHERE id = $1 AND preferred_sample = $2",
    ] {
        transaction.execute(statement(sql, values())).await?;
    }
    let keys = tests.into_iter().map(|test| test.blob_key);
    Ok(keys.chain([sample.blob_key.clone()]).collect())
}

pub(super) async fn set_preferred(
    transaction: &Transaction,
    voice: &str,
    sample: Option<i64>,
) -> Result<(), StoreError> {
    let sql = "UPDATE voices SET preferred_sample = $2 WHERE id = $1";
    let values = [voice.into(), sample.into()];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

const EMBEDDING: &str = "SELECT voice_id, voice_type, status, error, run, token, begun_at, updated_at, given, blob_key \
                         FROM voice_embeddings";

pub(super) async fn embeddings(
    db: &impl Executor,
    voice: &str,
) -> Result<Vec<EmbeddingRow>, StoreError> {
    let sql = format!("{EMBEDDING} WHERE voice_id = $1 ORDER BY voice_type");
    db.fetch_all(statement(sql, [voice.into()])).await
}

pub(super) async fn embedding(
    db: &impl Executor,
    voice: &str,
    voice_type: &str,
) -> Result<Option<EmbeddingRow>, StoreError> {
    let sql = format!("{EMBEDDING} WHERE voice_id = $1 AND voice_type = $2");
    db.fetch_one(statement(sql, [voice.into(), voice_type.into()]))
        .await
}

/// The embedding that this job of a worker is for.
pub(super) async fn embedding_of_run(
    db: &impl Executor,
    run: &str,
) -> Result<Option<EmbeddingRow>, StoreError> {
    let sql = format!("{EMBEDDING} WHERE run = $1");
    db.fetch_one(statement(sql, [run.into()])).await
}

/// Begins to make something of a voice; what was made of it for this type is removed before.
pub(super) async fn begin_embedding(
    transaction: &Transaction,
    voice: &str,
    voice_type: &str,
    [run, token]: [&str; 2],
    now: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO voice_embeddings (voice_id, voice_type, status, run, token, begun_at, updated_at, given) \
               VALUES ($1, $2, 'in_progress', $3, $4, $5, $5, 0)";
    let values = [
        voice.into(),
        voice_type.into(),
        run.into(),
        token.into(),
        now.into(),
    ];
    transaction.execute(statement(sql, values)).await?;
    let sql = "UPDATE voices SET embedding_type = $2 WHERE id = $1";
    let values = [voice.into(), voice_type.into()];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

/// The worker is given the job once more.
pub(super) async fn count_given(db: &impl Executor, run: &str) -> Result<(), StoreError> {
    let sql = "UPDATE voice_embeddings SET given = given + 1 WHERE run = $1";
    db.execute(statement(sql, [run.into()])).await?;
    Ok(())
}

/// Removes what was made of a voice for a type, and gives the keys of the files.
pub(super) async fn remove_embedding(
    transaction: &Transaction,
    embedding: &EmbeddingRow,
) -> Result<Vec<BlobKey>, StoreError> {
    let (voice, voice_type) = (embedding.voice_id.as_str(), embedding.voice_type.as_str());
    let tests = test_samples(transaction, voice, voice_type).await?;
    let sql = "DELETE FROM voice_embeddings WHERE voice_id = $1 AND voice_type = $2";
    let values = [voice.into(), voice_type.into()];
    transaction.execute(statement(sql, values)).await?;
    let keys = tests.into_iter().map(|test| test.blob_key);
    Ok(keys.chain(embedding.blob_key.clone()).collect())
}

/// Making something of a voice ended without it.
pub(super) async fn fail_embedding(
    transaction: &Transaction,
    embedding: &EmbeddingRow,
    error: &str,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE voice_embeddings SET status = 'failed', error = $3, updated_at = $4 WHERE voice_id = $1 AND voice_type = $2";
    let values = [
        embedding.voice_id.as_str().into(),
        embedding.voice_type.as_str().into(),
        error.into(),
        now.into(),
    ];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

/// Something was made of a voice.
pub(super) async fn complete_embedding(
    transaction: &Transaction,
    embedding: &EmbeddingRow,
    zip: Option<&Written>,
    synthesizer_voice: Option<&str>,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE voice_embeddings SET status = 'completed', error = NULL, updated_at = $3, blob_key = $4, blob_bytes = $5, \
               synthesizer_voice = $6 WHERE voice_id = $1 AND voice_type = $2";
    let bytes = zip.map(|written| i64::try_from(written.bytes));
    let values = [
        embedding.voice_id.as_str().into(),
        embedding.voice_type.as_str().into(),
        now.into(),
        zip.map(|written| written.key.as_str()).into(),
        bytes.transpose().map_err(StoreError::other)?.into(),
        synthesizer_voice.into(),
    ];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

pub(super) async fn insert_score(
    transaction: &Transaction,
    embedding: &EmbeddingRow,
    score: &ScoreRow,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO voice_scores (voice_id, voice_type, sample_index, score_thousandths, synthesizer_voice) \
               VALUES ($1, $2, $3, $4, $5)";
    let values = [
        embedding.voice_id.as_str().into(),
        embedding.voice_type.as_str().into(),
        score.sample_index.into(),
        score.score_thousandths.into(),
        score.synthesizer_voice.as_deref().into(),
    ];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

pub(super) async fn scores(
    db: &impl Executor,
    voice: &str,
    voice_type: &str,
) -> Result<Vec<ScoreRow>, StoreError> {
    let sql = "SELECT sample_index, score_thousandths, synthesizer_voice FROM voice_scores \
               WHERE voice_id = $1 AND voice_type = $2 ORDER BY sample_index";
    db.fetch_all(statement(sql, [voice.into(), voice_type.into()]))
        .await
}

pub(super) async fn insert_test_sample(
    transaction: &Transaction,
    embedding: &EmbeddingRow,
    [sample_index, sentence_index]: [i64; 2],
    written: &Written,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO voice_test_samples (voice_id, voice_type, sample_index, sentence_index, blob_key, blob_bytes) \
               VALUES ($1, $2, $3, $4, $5, $6)";
    let values = [
        embedding.voice_id.as_str().into(),
        embedding.voice_type.as_str().into(),
        sample_index.into(),
        sentence_index.into(),
        written.key.as_str().into(),
        i64::try_from(written.bytes)
            .map_err(StoreError::other)?
            .into(),
    ];
    transaction.execute(statement(sql, values)).await?;
    Ok(())
}

pub(super) async fn test_samples(
    db: &impl Executor,
    voice: &str,
    voice_type: &str,
) -> Result<Vec<TestSampleRow>, StoreError> {
    let sql = "SELECT sample_index, sentence_index, blob_key FROM voice_test_samples \
               WHERE voice_id = $1 AND voice_type = $2 ORDER BY sample_index, sentence_index";
    db.fetch_all(statement(sql, [voice.into(), voice_type.into()]))
        .await
}
