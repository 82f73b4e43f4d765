//! The SQL of transcripts.

use colloquy_accounts::{Tenant, storage};
use colloquy_audio::media::Container;
use colloquy_base::clock::rfc3339;
use colloquy_blobs::{BlobKey, Written};
use colloquy_store::{
    Executor, Order, Slice, Store, StoreError, Transaction, Value, placeholders, statement,
};

use super::{
    request::{Options, Source},
    routes::{TranscriptStatus, TranscriptView},
};

/// The bytes that a transcript counts beside its texts: its row with the short columns and the indexes.
const ROW_BYTES: usize = 1_024;
/// The bytes of a transcript, in SQL. Its audio URL counts while it is stored, its text or error once it has ended, and the words of its parts if
/// it failed and keeps them.
const BYTES: &str = "1024 + octet_length(options) + COALESCE(octet_length(audio_url), 0) \
     + COALESCE(octet_length(text), 0) + COALESCE(octet_length(error), 0) + part_bytes";

/// The query of the bytes of each transcript of the partner `$1`, for `storage::recount_texts`.
pub const TEXTS: &str = "SELECT 1024 + octet_length(options) + COALESCE(octet_length(audio_url), 0) \
     + COALESCE(octet_length(text), 0) + COALESCE(octet_length(error), 0) + part_bytes AS bytes FROM transcripts WHERE partner = $1";

/// True for a transcript that failed and keeps its recording or the address of one.
const RETRYABLE: &str = "CAST(CASE WHEN status = 'error' AND (blob_key IS NOT NULL OR audio_url IS NOT NULL) THEN 1 ELSE 0 END AS BIGINT)";

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
    /// When it was created, or queued again after it had failed.
    pub(super) begun_at: i64,
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

/// A transcript as its client reads it. Those of lists have no text.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Row {
    pub(super) id: String,
    status: String,
    language: Option<String>,
    text: Option<String>,
    audio_seconds: Option<i64>,
    error: Option<String>,
    retryable: i64,
    created_at: i64,
    ended_at: Option<i64>,
}

/// The columns of [`Row`] without the text.
fn columns() -> String {
    format!(
        "id, status, language, audio_seconds, error, {RETRYABLE} AS retryable, created_at, ended_at"
    )
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

/// A transcript that the caller reaches, unless it ended at `kept_since` or before: one of the partner and the quota, where there are such.
pub(super) async fn find(
    db: &impl Executor,
    tenant: Option<&Tenant>,
    quota: Option<&str>,
    id: &str,
    kept_since: i64,
) -> Result<Option<TranscriptView>, StoreError> {
    let columns = columns();
    let sql = format!(
        "SELECT {columns}, text FROM transcripts \
         WHERE id = $1 AND (CAST($2 AS TEXT) IS NULL OR partner = $2) AND (ended_at IS NULL OR ended_at > $3) \
         AND (CAST($4 AS TEXT) IS NULL OR quota = $4)"
    );
    let values = [
        id.into(),
        tenant.map(|tenant| tenant.partner().as_str()).into(),
        kept_since.into(),
        quota.into(),
    ];
    let row: Option<Row> = db.fetch_one(statement(sql, values)).await?;
    row.map(view).transpose()
}

/// Which transcripts to list.
#[derive(Debug)]
pub(super) struct TranscriptFilter<'a> {
    /// Those of this partner.
    pub(super) tenant: Option<&'a Tenant>,
    /// Those that this quota pays for.
    pub(super) quota: Option<&'a str>,
    /// Those of these statuses; of all if there is none.
    pub(super) statuses: &'a [TranscriptStatus],
    /// Those created at this time or later, in milliseconds since 1970.
    pub(super) created_from: Option<i64>,
    /// Those created before this time.
    pub(super) created_before: Option<i64>,
    /// Those that have not ended, or after this time.
    pub(super) kept_since: i64,
}

/// A part of the transcripts, without their texts, newest first: ids sort by their time.
pub(super) async fn list(
    db: &impl Executor,
    filter: &TranscriptFilter<'_>,
    slice: &Slice,
) -> Result<Vec<Row>, StoreError> {
    let columns = columns();
    let mut sql = format!(
        "SELECT {columns}, CAST(NULL AS TEXT) AS text FROM transcripts WHERE (ended_at IS NULL OR ended_at > $1)"
    );
    let mut values: Vec<Value> = vec![filter.kept_since.into()];
    let partner = filter.tenant.map(|tenant| tenant.partner().as_str());
    let conditions: [(&str, Option<Value>); 4] = [
        ("partner =", partner.map(Into::into)),
        ("quota =", filter.quota.map(Into::into)),
        ("created_at >=", filter.created_from.map(Into::into)),
        ("created_at <", filter.created_before.map(Into::into)),
    ];
    for (condition, value) in conditions {
        if let Some(value) = value {
            values.push(value);
            sql.push_str(&format!(" AND {condition} ${}", values.len()));
        }
    }
    if !filter.statuses.is_empty() {
        let statuses = filter.statuses.iter().map(|status| status.as_str());
        let statuses = placeholders(&mut values, statuses);
        sql.push_str(&format!(" AND status IN ({statuses})"));
    }
    slice.complete(&mut sql, &mut values, "id", Order::Descending);
    db.fetch_all(statement(sql, values)).await
}

pub(super) fn view(row: Row) -> Result<TranscriptView, StoreError> {
    let status = TranscriptStatus::try_from(row.status)?;
    let is_completed = status == TranscriptStatus::Completed;
    Ok(TranscriptView {
        text: row.text.filter(|_| is_completed),
        audio_duration: row.audio_seconds.filter(|_| is_completed),
        language_code: row.language.filter(|_| is_completed),
        retryable: row.error.as_ref().map(|_| row.retryable == 1),
        error: row.error,
        created_at: Some(rfc3339(row.created_at)),
        ended_at: row.ended_at.map(rfc3339),
        ..TranscriptView::new(&row.id, status)
    })
}

/// A transcript that is still to be worked on.
pub(super) async fn load_open(db: &impl Executor, id: &str) -> Result<Option<OpenRow>, StoreError> {
    let sql = "SELECT id, partner, quota, options, audio_url, blob_key, blob_bytes, container, window_sample, language, \
               COALESCE(retried_at, created_at) AS begun_at FROM transcripts WHERE id = $1 AND ended_at IS NULL";
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
    Text {
        text: &'a str,
        audio_seconds: i64,
    },
    /// The recording, or its address, and the words of its parts are kept if it may be tried again.
    Error {
        reason: &'a str,
        is_kept: bool,
    },
}

/// Recording and bytes that a transcript releases when it ends.
#[derive(Debug, Default)]
pub(super) struct Ended {
    /// Its recording.
    pub(super) recording: Option<BlobKey>,
    /// The bytes that do not count any more without those that count in their place: negative where these are more.
    pub(super) released_bytes: i64,
}

/// Ends a transcript. What it was made of does not stay, unless it may be tried again. Releases nothing if the transcript has ended before.
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
    let (status, text, seconds, error, is_kept) = match end {
        End::Text {
            text,
            audio_seconds,
        } => {
            let status = TranscriptStatus::Completed;
            (status, Some(text), Some(audio_seconds), None, false)
        }
        End::Error { reason, is_kept } => {
            (TranscriptStatus::Error, None, None, Some(reason), is_kept)
        }
    };
    let part_bytes = match is_kept {
        true => part_bytes(db, id).await?,
        false => 0,
    };
    let source = match is_kept {
        true => "",
        false => ", audio_url = NULL, blob_key = NULL, blob_bytes = NULL",
    };
    let sql = format!(
        "UPDATE transcripts SET status = $2, text = $3, audio_seconds = $4, error = $5, ended_at = $6, part_bytes = $7{source} \
         WHERE id = $1 AND ended_at IS NULL"
    );
    let values = [
        id.into(),
        status.as_str().into(),
        text.into(),
        seconds.into(),
        error.into(),
        now.into(),
        part_bytes.into(),
    ];
    let ended = db.execute(statement(sql, values)).await?;
    let Some(row) = row.filter(|_| ended == 1) else {
        return Ok(Ended::default());
    };
    let added = storage::counted(text.or(error).map_or(0, str::len) as u64);
    if is_kept {
        return Ok(Ended {
            recording: None,
            released_bytes: -(added + part_bytes),
        });
    }
    let sql = "DELETE FROM transcript_parts WHERE transcript_id = $1";
    db.execute(statement(sql, [id.into()])).await?;
    Ok(Ended {
        recording: row.blob_key,
        released_bytes: row.url_bytes - added,
    })
}

/// Returns the bytes of the words of all parts.
async fn part_bytes(db: &Transaction, id: &str) -> Result<i64, StoreError> {
    let sql = "SELECT CAST(COALESCE(SUM(octet_length(words)), 0) AS BIGINT) FROM transcript_parts WHERE transcript_id = $1";
    let bytes: Option<i64> = db.fetch_scalar(statement(sql, [id.into()])).await?;
    Ok(bytes.unwrap_or_default())
}

/// A transcript that is to be changed from outside of its job.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Standing {
    partner: String,
    pub(super) quota: Option<String>,
    status: String,
    retryable: i64,
    retried_at: Option<i64>,
    /// The bytes that do not count any more while it is open.
    pub(super) failed_bytes: i64,
}

impl Standing {
    pub(super) fn tenant(&self) -> Tenant {
        Tenant::of_row(&self.partner)
    }

    pub(super) fn status(&self) -> Result<TranscriptStatus, StoreError> {
        Ok(TranscriptStatus::try_from(self.status.clone())?)
    }

    /// Returns true if it failed and keeps what another attempt needs.
    pub(super) fn is_retryable(&self) -> bool {
        self.retryable == 1
    }

    /// Returns true if it was queued again.
    pub(super) fn is_retried(&self) -> bool {
        self.retried_at.is_some()
    }
}

/// Where a transcript stands that the caller reaches, as of [`find`].
pub(super) async fn standing(
    db: &impl Executor,
    tenant: Option<&Tenant>,
    quota: Option<&str>,
    id: &str,
    kept_since: i64,
) -> Result<Option<Standing>, StoreError> {
    let sql = format!(
        "SELECT partner, quota, status, {RETRYABLE} AS retryable, retried_at, \
         CAST(COALESCE(octet_length(error), 0) + part_bytes AS BIGINT) AS failed_bytes FROM transcripts \
         WHERE id = $1 AND (CAST($2 AS TEXT) IS NULL OR partner = $2) AND (ended_at IS NULL OR ended_at > $3) \
         AND (CAST($4 AS TEXT) IS NULL OR quota = $4)"
    );
    let values = [
        id.into(),
        tenant.map(|tenant| tenant.partner().as_str()).into(),
        kept_since.into(),
        quota.into(),
    ];
    db.fetch_one(statement(sql, values)).await
}

/// Queues a transcript again that failed. Returns false if it is gone, or keeps nothing any more.
pub(super) async fn queue_again(
    db: &Transaction,
    id: &str,
    kept_since: i64,
    now: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE transcripts SET status = 'queued', error = NULL, ended_at = NULL, part_bytes = 0, retried_at = $3 \
               WHERE id = $1 AND status = 'error' AND ended_at > $2 AND (blob_key IS NOT NULL OR audio_url IS NOT NULL)";
    let values = [id.into(), kept_since.into(), now.into()];
    Ok(db.execute(statement(sql, values)).await? == 1)
}

/// What a deleted transcript releases.
#[derive(Debug, sqlx::FromRow)]
pub(super) struct Deleted {
    /// The bytes that it counted.
    pub(super) bytes: i64,
    /// Its recording, if it failed and kept that.
    pub(super) blob_key: Option<BlobKey>,
}

/// Deletes a transcript that has ended; `None` if there is no such transcript any more.
pub(super) async fn delete(
    db: &Transaction,
    tenant: &Tenant,
    id: &str,
) -> Result<Option<Deleted>, StoreError> {
    let sql = format!(
        "DELETE FROM transcripts WHERE id = $1 AND partner = $2 AND ended_at IS NOT NULL \
         RETURNING CAST({BYTES} AS BIGINT) AS bytes, blob_key"
    );
    let values = [id.into(), tenant.partner().as_str().into()];
    db.fetch_one(statement(sql, values)).await
}

/// Takes the recordings of transcripts away that ended at `kept_since` or before, up to `most`. Returns those to be given up, `None` if none is left.
pub(super) async fn take_recordings(
    db: &Transaction,
    kept_since: i64,
    most: i64,
) -> Result<Option<Vec<BlobKey>>, StoreError> {
    #[derive(sqlx::FromRow)]
    struct Kept {
        id: String,
        blob_key: BlobKey,
    }
    let sql = "SELECT id, blob_key FROM transcripts WHERE ended_at <= $1 AND blob_key IS NOT NULL ORDER BY ended_at LIMIT $2";
    let found = statement(sql, [kept_since.into(), most.into()]);
    let found: Vec<Kept> = db.fetch_all(found).await?;
    if found.is_empty() {
        return Ok(None);
    }
    let mut taken = Vec::new();
    for Kept { id, blob_key } in found {
        // Another node may have taken it meanwhile.
        let sql = "UPDATE transcripts SET blob_key = NULL, blob_bytes = NULL WHERE id = $1 AND ended_at <= $2 AND blob_key IS NOT NULL";
        let values = [id.into(), kept_since.into()];
        if db.execute(statement(sql, values)).await? == 1 {
            taken.push(blob_key);
        }
    }
    Ok(Some(taken))
}

/// Deletes the transcripts that ended at `kept_since` or before and have no recording, and releases their bytes.
pub(super) async fn purge(store: &Store, kept_since: i64) -> Result<u64, StoreError> {
    let sql = format!(
        "DELETE FROM transcripts WHERE id IN (SELECT id FROM transcripts WHERE ended_at <= $1 AND blob_key IS NULL ORDER BY ended_at LIMIT $2) \
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
