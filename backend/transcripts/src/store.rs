//! The SQL of transcripts.

use colloquy_accounts::{Tenant, storage};
use colloquy_audio::media::Container;
use colloquy_blobs::{BlobKey, Written};
use colloquy_store::{Executor, Store, StoreError, Transaction, statement};

use super::{
    request::{Options, Source},
    routes::{TranscriptStatus, TranscriptView},
};

/// The bytes that a transcript counts beside its texts: its row with the short columns and the indexes.
const ROW_BYTES: usize = 1_024;
/// The bytes of a transcript, in SQL. Its audio URL counts until the transcript ends, its text or error from then on.
const BYTES: &str = "1024 + octet_length(options) + COALESCE(octet_length(audio_url), 0) \
     + COALESCE(octet_length(text), 0) + COALESCE(octet_length(error), 0)";

/// The query of the bytes of each transcript of the partner `$1`, for `storage::recount_texts`.
pub const TEXTS: &str = "SELECT 1024 + octet_length(options) + COALESCE(octet_length(audio_url), 0) \
     + COALESCE(octet_length(text), 0) + COALESCE(octet_length(error), 0) AS bytes FROM transcripts WHERE partner = $1";

/// A transcript to store.
pub(super) struct NewTranscript<'a> {
    pub(super) id: &'a str,
    pub(super) tenant: &'a Tenant,
    pub(super) quota: Option<&'a str>,
    pub(super) options: &'a Options,
    pub(super) source: &'a Source,
}

/// A transcript that has not ended.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct OpenRow {
    pub(super) id: String,
    partner: String,
    pub(super) quota: Option<String>,
    options: String,
    pub(super) audio_url: Option<String>,
    blob_key: Option<BlobKey>,
    blob_bytes: Option<i64>,
    container: Option<String>,
    /// Where the window begins that is being heard.
    pub(super) window_sample: i64,
    /// The language that was detected.
    pub(super) language: Option<String>,
    pub(super) created_at: i64,
}

/// The recording of a transcript.
#[derive(Debug, Clone)]
pub(super) struct StoredRecording {
    pub(super) key: BlobKey,
    pub(super) bytes: u64,
    pub(super) container: Container,
}

impl OpenRow {
    pub(super) fn tenant(&self) -> Tenant {
        Tenant::of_row(&self.partner)
    }

    pub(super) fn options(&self) -> Result<Options, StoreError> {
        serde_json::from_str(&self.options).map_err(StoreError::malformed)
    }

    /// The recording, once it is here.
    pub(super) fn recording(&self) -> Result<Option<StoredRecording>, StoreError> {
        let Some(key) = self.blob_key.clone() else {
            return Ok(None);
        };
        let container = self.container.as_deref().and_then(Container::of_name);
        let container =
            container.ok_or_else(|| StoreError::malformed("a recording of no known type"))?;
        Ok(Some(StoredRecording {
            key,
            bytes: self.blob_bytes.unwrap_or_default().unsigned_abs(),
            container,
        }))
    }
}

/// A part of a recording.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(super) struct Part {
    /// In samples at 16,000 Hz.
    pub(super) begin_sample: i64,
    pub(super) end_sample: i64,
    /// The id of what is reserved for it.
    pub(super) reservation: Option<String>,
    /// `None` while a transcriber is asked for them; empty where nobody speaks.
    pub(super) words: Option<String>,
}

/// A transcript as its client reads it.
#[derive(Debug, sqlx::FromRow)]
struct Row {
    id: String,
    status: String,
    language: Option<String>,
    text: Option<String>,
    audio_seconds: Option<i64>,
    error: Option<String>,
}

/// Returns how many bytes the transcript counts.
pub(super) async fn insert(
    db: &impl Executor,
    new: NewTranscript<'_>,
    now: i64,
) -> Result<usize, StoreError> {
    let sql = "INSERT INTO transcripts (id, partner, quota, status, options, audio_url, blob_key, blob_bytes, container, window_sample, created_at) \
               VALUES ($1, $2, $3, 'queued', $4, $5, $6, $7, $8, 0, $9)";
    let (url, upload) = match new.source {
        Source::Url(url) => (Some(url.as_str()), None),
        Source::Upload(upload) => (None, Some(upload)),
    };
    let options = serde_json::to_string(new.options).map_err(StoreError::other)?;
    let bytes = ROW_BYTES + options.len() + url.map_or(0, str::len);
    let blob_bytes = upload.map(|upload| i64::try_from(upload.written.bytes));
    let values = [
        new.id.into(),
        new.tenant.partner().as_str().into(),
        new.quota.into(),
        options.into(),
        url.into(),
        upload.map(|upload| upload.written.key.as_str()).into(),
        blob_bytes.transpose().map_err(StoreError::other)?.into(),
        upload.map(|upload| upload.container.name()).into(),
        now.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(bytes)
}

/// How many transcripts of a partner are in progress.
pub(super) async fn count_open(db: &impl Executor, tenant: &Tenant) -> Result<u64, StoreError> {
    let sql = "SELECT COUNT(*) FROM transcripts WHERE partner = $1 AND ended_at IS NULL";
    db.fetch_count(statement(sql, [tenant.partner().as_str().into()]))
        .await
}

/// A transcript of a partner, or of one of its quotas, unless it ended at `kept_since` or before.
pub(super) async fn find(
    db: &impl Executor,
    tenant: &Tenant,
    quota: Option<&str>,
    id: &str,
    kept_since: i64,
) -> Result<Option<TranscriptView>, StoreError> {
    let sql = "SELECT id, status, language, text, audio_seconds, error FROM transcripts \
               WHERE id = $1 AND partner = $2 AND (ended_at IS NULL OR ended_at > $3) \
               AND (CAST($4 AS TEXT) IS NULL OR quota = $4)";
    let values = [
        id.into(),
        tenant.partner().as_str().into(),
        kept_since.into(),
        quota.into(),
    ];
    let row: Option<Row> = db.fetch_one(statement(sql, values)).await?;
    row.map(view).transpose()
}

fn view(row: Row) -> Result<TranscriptView, StoreError> {
    let status = TranscriptStatus::try_from(row.status)?;
    let is_completed = status == TranscriptStatus::Completed;
    Ok(TranscriptView {
        text: row.text.filter(|_| is_completed),
        audio_duration: row.audio_seconds.filter(|_| is_completed),
        language_code: row.language.filter(|_| is_completed),
        error: row.error,
        ..TranscriptView::new(&row.id, status)
    })
}

/// A transcript that is still to be worked on.
pub(super) async fn load_open(db: &impl Executor, id: &str) -> Result<Option<OpenRow>, StoreError> {
    let sql = "SELECT id, partner, quota, options, audio_url, blob_key, blob_bytes, container, window_sample, language, created_at \
               FROM transcripts WHERE id = $1 AND ended_at IS NULL";
    db.fetch_one(statement(sql, [id.into()])).await
}

/// Says that it is being worked on.
pub(super) async fn begin(db: &impl Executor, id: &str) -> Result<(), StoreError> {
    let sql = "UPDATE transcripts SET status = 'processing' WHERE id = $1 AND status = 'queued'";
    db.execute(statement(sql, [id.into()])).await?;
    Ok(())
}

/// The recording is here.
pub(super) async fn set_recording(
    db: &impl Executor,
    id: &str,
    written: &Written,
    container: Container,
) -> Result<(), StoreError> {
    let sql = "UPDATE transcripts SET blob_key = $2, blob_bytes = $3, container = $4 WHERE id = $1";
    let values = [
        id.into(),
        written.key.as_str().into(),
        i64::try_from(written.bytes)
            .map_err(StoreError::other)?
            .into(),
        container.name().into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

pub(super) async fn set_language(
    db: &impl Executor,
    id: &str,
    language: &str,
) -> Result<(), StoreError> {
    let sql = "UPDATE transcripts SET language = $2 WHERE id = $1";
    db.execute(statement(sql, [id.into(), language.into()]))
        .await?;
    Ok(())
}

/// The next window begins at this sample.
pub(super) async fn set_window(
    db: &impl Executor,
    id: &str,
    begin_sample: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE transcripts SET window_sample = $2 WHERE id = $1";
    db.execute(statement(sql, [id.into(), begin_sample.into()]))
        .await?;
    Ok(())
}

/// The parts whose words are there, in order.
pub(super) async fn parts(db: &impl Executor, id: &str) -> Result<Vec<Part>, StoreError> {
    let sql = "SELECT begin_sample, end_sample, reservation, words FROM transcript_parts \
               WHERE transcript_id = $1 AND words IS NOT NULL ORDER BY begin_sample";
    db.fetch_all(statement(sql, [id.into()])).await
}

pub(super) async fn parts_without_words(
    db: &impl Executor,
    id: &str,
) -> Result<Vec<Part>, StoreError> {
    let sql = "SELECT begin_sample, end_sample, reservation, words FROM transcript_parts \
               WHERE transcript_id = $1 AND words IS NULL ORDER BY begin_sample";
    db.fetch_all(statement(sql, [id.into()])).await
}

pub(super) async fn put_part(db: &impl Executor, id: &str, part: &Part) -> Result<(), StoreError> {
    let sql = "INSERT INTO transcript_parts (transcript_id, begin_sample, end_sample, reservation, words) VALUES ($1, $2, $3, $4, $5) \
               ON CONFLICT (transcript_id, begin_sample) DO UPDATE \
               SET end_sample = excluded.end_sample, reservation = excluded.reservation, words = excluded.words";
    let values = [
        id.into(),
        part.begin_sample.into(),
        part.end_sample.into(),
        part.reservation.as_deref().into(),
        part.words.as_deref().into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

pub(super) async fn remove_part(
    db: &impl Executor,
    id: &str,
    begin_sample: i64,
) -> Result<(), StoreError> {
    let sql = "DELETE FROM transcript_parts WHERE transcript_id = $1 AND begin_sample = $2";
    db.execute(statement(sql, [id.into(), begin_sample.into()]))
        .await?;
    Ok(())
}

/// How a transcript ended.
pub(super) enum End<'a> {
    Text { text: &'a str, audio_seconds: i64 },
    Error(&'a str),
}

/// Recording and bytes that a transcript releases when it ends.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Its recording.
    pub(super) recording: Option<BlobKey>,
    /// The bytes of its audio URL without those of its text or error, which count in its place: negative where these are more.
    pub(super) released_bytes: i64,
}

/// Ends a transcript. What it was made of is not needed any more, so it does not stay. Releases nothing if the transcript has ended before.
pub(super) async fn end(
    db: &Transaction,
    id: &str,
    end: End<'_>,
    now: i64,
) -> Result<Ended, StoreError> {
    #[derive(sqlx::FromRow)]
    struct Open {
        blob_key: Option<BlobKey>,
        url_bytes: i64,
    }
    let sql = "SELECT blob_key, CAST(COALESCE(octet_length(audio_url), 0) AS BIGINT) AS url_bytes \
               FROM transcripts WHERE id = $1 AND ended_at IS NULL";
    let row: Option<Open> = db.fetch_one(statement(sql, [id.into()])).await?;
    let (status, text, seconds, error) = match end {
        End::Text {
            text,
            audio_seconds,
        } => (
            TranscriptStatus::Completed,
            Some(text),
            Some(audio_seconds),
            None,
        ),
        End::Error(reason) => (TranscriptStatus::Error, None, None, Some(reason)),
    };
    let sql = "UPDATE transcripts SET status = $2, text = $3, audio_seconds = $4, error = $5, ended_at = $6, \
               audio_url = NULL, blob_key = NULL, blob_bytes = NULL WHERE id = $1 AND ended_at IS NULL";
    let values = [
        id.into(),
        status.as_str().into(),
        text.into(),
        seconds.into(),
        error.into(),
        now.into(),
    ];
    let ended = db.execute(statement(sql, values)).await?;
    let sql = "DELETE FROM transcript_parts WHERE transcript_id = $1";
    db.execute(statement(sql, [id.into()])).await?;
    let Some(row) = row.filter(|_| ended == 1) else {
        return Ok(Ended::default());
    };
    let kept = text.or(error).map_or(0, str::len) as u64;
    Ok(Ended {
        recording: row.blob_key,
        released_bytes: row.url_bytes - storage::counted(kept),
    })
}

/// Returns true if a transcript of a partner has ended, `None` if there is none.
pub(super) async fn is_ended(
    db: &impl Executor,
    tenant: &Tenant,
    id: &str,
) -> Result<Option<bool>, StoreError> {
    let sql = "SELECT CAST(CASE WHEN ended_at IS NULL THEN 0 ELSE 1 END AS BIGINT) FROM transcripts WHERE id = $1 AND partner = $2";
    let values = [id.into(), tenant.partner().as_str().into()];
    let ended: Option<i64> = db.fetch_scalar(statement(sql, values)).await?;
    Ok(ended.map(|ended| ended == 1))
}

/// Deletes a transcript that has ended, and returns how many bytes it counted; `None` if there is no such transcript any more.
pub(super) async fn delete(
    db: &Transaction,
    tenant: &Tenant,
    id: &str,
) -> Result<Option<i64>, StoreError> {
    #[derive(sqlx::FromRow)]
    struct Deleted {
        bytes: i64,
    }
    let sql = format!(
        "DELETE FROM transcripts WHERE id = $1 AND partner = $2 AND ended_at IS NOT NULL \
         RETURNING CAST({BYTES} AS BIGINT) AS bytes"
    );
    let values = [id.into(), tenant.partner().as_str().into()];
    let deleted: Option<Deleted> = db.fetch_one(statement(sql, values)).await?;
    Ok(deleted.map(|deleted| deleted.bytes))
}

/// Deletes the transcripts that ended at `kept_since` or before, and releases their bytes.
pub(super) async fn purge(store: &Store, kept_since: i64) -> Result<u64, StoreError> {
    let sql = format!(
        "DELETE FROM transcripts WHERE id IN (SELECT id FROM transcripts WHERE ended_at <= $1 ORDER BY ended_at LIMIT $2) \
         RETURNING partner, CAST({BYTES} AS BIGINT) AS bytes"
    );
    storage::purge_texts(store, &sql, kept_since).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_query_counts_what_is_released() {
        let expected = format!("SELECT {BYTES} AS bytes FROM transcripts WHERE partner = $1");
        assert_eq!(TEXTS, expected);
        assert!(BYTES.starts_with(&format!("{ROW_BYTES} + ")));
    }
}
