//! The place of files: a folder, or a bucket of object storage that speaks S3.

use std::{
    fmt,
    ops::Range,
    path::{Path as FilePath, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream::BoxStream};
use object_store::{
    ClientConfigKey, MultipartUpload, ObjectStore, ObjectStoreExt as _, PutPayload, RetryConfig,
    aws::{AmazonS3Builder, AmazonS3ConfigKey},
    local::LocalFileSystem,
    path::Path,
};
use sha2::{Digest as _, Sha256};
use url::Url;

use super::{
    BlobKey, WriteError,
    gathered::{Gathered, IN_MEMORY, Part, SpoolPlace},
};

/// What is gathered of a file before it is sent to object storage, which takes no smaller parts.
const BUCKET_PART: usize = 5 * 1024 * 1024;
/// So many of them are in memory at a time.
const BUCKET_PARTS_AT_ONCE: usize = 2;
/// How long a connection to object storage may take to begin, a request to end, and all tries of one together.
const CONNECT: &str = "5 seconds";
const REQUEST: &str = "60 seconds";
const ALL_TRIES: Duration = Duration::from_secs(30);
const TRIES: usize = 4;

/// Why there is no place for files.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The setting cannot be understood.
    #[error("use file:///PATH or s3://BUCKET/PREFIX")]
    Malformed,
    /// The folder cannot be made or entered.
    #[error("cannot make {}", folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
    /// The settings of the bucket, which come from the environment (`AWS_*`), do not do.
    #[error("object storage")]
    Bucket(#[source] object_store::Error),
}

/// Why a file could not be stored, read or removed.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// It is not there: it was given up, or nobody keeps it yet.
    #[error("the file is not there")]
    Missing,
    /// It is not there although it is kept.
    #[error("the file is damaged: it is kept and not there")]
    Lost,
    /// It is not what was written: it is shorter or longer, or its hash is another.
    #[error("the file is damaged: it is not what was stored")]
    Damaged,
    /// It is larger than who reads it can take.
    #[error("the file has more than {0} bytes")]
    TooLarge(u64),
    /// The place fails, now or for good: it is full, away, or refuses.
    #[error("the place of files: {0}")]
    Failed(String),
}

impl ObjectError {
    /// True if what was stored cannot be had any more: the file is lost, or is not what was written.
    #[must_use]
    pub fn is_damage(&self) -> bool {
        matches!(self, Self::Lost | Self::Damaged)
    }

    pub(super) fn other(reason: impl Into<String>) -> Self {
        Self::Failed(reason.into())
    }
}

impl From<object_store::Error> for ObjectError {
    fn from(error: object_store::Error) -> Self {
        match error {
            object_store::Error::NotFound { .. } => Self::Missing,
            other => Self::Failed(other.to_string()),
        }
    }
}

/// A file that is being read.
pub struct OpenFile {
    /// Its size.
    pub bytes: u64,
    /// Its content.
    pub pieces: BoxStream<'static, Result<Bytes, ObjectError>>,
}

impl fmt::Debug for OpenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenFile")
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

/// What was written.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

/// The place of files.
#[derive(Debug)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    /// In front of every key.
    prefix: Path,
    /// The folder, if it is one.
    folder: Option<PathBuf>,
    part_bytes: usize,
    /// Where parts are gathered that are too large for memory.
    spool: Option<SpoolPlace>,
}

impl Objects {
    /// The place that a URL names: `file:///PATH`, made when it is missing, or `s3://BUCKET/PREFIX`, whose keys, region and
    /// endpoint come from the environment as those of other programs do (`AWS_ACCESS_KEY_ID`, `AWS_ENDPOINT_URL`, ..). In
    /// the folder `spool` is what came of a file that a bucket does not take yet.
    ///
    /// # Errors
    /// When there is no such place.
    pub fn open(url: &Url, spool: PathBuf) -> Result<Self, OpenError> {
        match url.scheme() {
            "file" => {
                let folder = url.to_file_path().map_err(|()| OpenError::Malformed)?;
                Self::in_folder(&folder)
            }
            "s3" => Self::in_bucket(url, spool),
            _ => Err(OpenError::Malformed),
        }
    }

    fn in_folder(folder: &FilePath) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Folder {
            folder: folder.to_owned(),
            source,
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let folder = folder.canonicalize().map_err(failed)?;
        let store = LocalFileSystem::new_with_prefix(&folder).map_err(OpenError::Bucket)?;
        Ok(Self {
            // What a client was told is stored outlasts the machine's next moment, too.
            store: Arc::new(store.with_fsync(true)),
            prefix: Path::default(),
            folder: Some(folder),
            part_bytes: IN_MEMORY,
            spool: None,
        })
    }

    fn in_bucket(url: &Url, spool: PathBuf) -> Result<Self, OpenError> {
        let bucket = url.host_str().filter(|name| !name.is_empty());
        let bucket = bucket.ok_or(OpenError::Malformed)?;
        let retry = RetryConfig {
            max_retries: TRIES,
            retry_timeout: ALL_TRIES,
            ..RetryConfig::default()
        };
        // Which cryptography TLS uses is the process's choice; without one there would be none.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = AmazonS3ConfigKey::Client;
        let store = AmazonS3Builder::from_env()
            .with_bucket_name(bucket)
            .with_config(client(ClientConfigKey::ConnectTimeout), CONNECT)
            .with_config(client(ClientConfigKey::Timeout), REQUEST)
            .with_retry(retry)
            .build()
            .map_err(OpenError::Bucket)?;
        let prefix = Path::from_url_path(url.path()).map_err(|_| OpenError::Malformed)?;
        Ok(Self {
            store: Arc::new(store),
            prefix,
            folder: None,
            part_bytes: BUCKET_PART,
            spool: Some(SpoolPlace::new(spool, BUCKET_PARTS_AT_ONCE)),
        })
    }

    fn path(&self, key: &BlobKey) -> Path {
        let parts = self.prefix.parts();
        let key = Path::from(key.as_str());
        parts.chain(key.parts()).collect()
    }

    /// Where a file lies in the folder, if it is one.
    pub(super) fn local_path(&self, key: &BlobKey) -> Option<PathBuf> {
        let folder = self.folder.as_ref()?;
        Some(folder.join(key.as_str()))
    }

    /// Writes a file as its pieces come. It is there when all of it is, or not at all.
    pub(super) async fn write<E>(
        &self,
        key: &BlobKey,
        pieces: impl Stream<Item = Result<Bytes, E>> + Send,
        most: u64,
    ) -> Result<Stored, WriteError<E>> {
        let path = self.path(key);
        let mut pieces = pin!(pieces);
        let mut hash = Sha256::new();
        let mut bytes = 0;
        let mut gathered = match &self.spool {
            None => Gathered::default(),
            Some(place) => Gathered::spooled(place.clone()),
        };
        let mut upload = None;
        while let Some(piece) = pieces.next().await {
            let mut piece = match piece {
                Ok(piece) => piece,
                Err(error) => {
                    abort(upload).await;
                    return Err(WriteError::Source(error));
                }
            };
            bytes += u64::try_from(piece.len()).unwrap_or(u64::MAX);
            if bytes > most {
                abort(upload).await;
                return Err(WriteError::TooLarge(most));
            }
            hash.update(&piece);
            // All parts but the last have the same size, which some servers insist on.
            while gathered.len() + piece.len() > self.part_bytes {
                let fits = piece.split_to(self.part_bytes - gathered.len());
                let part = full(&mut gathered, &fits).await;
                upload = Some(self.put_next(&path, upload, part).await?);
            }
            if let Err(error) = gathered.push(&piece).await {
                abort(upload).await;
                return Err(error.into());
            }
        }
        let rest = gathered.take().await;
        match upload {
            None => {
                let rest = rest?;
                let payload = PutPayload::from_bytes(rest.bytes.clone());
                let put = self.store.put(&path, payload).await;
                put.map_err(ObjectError::from)?;
            }
            begun => {
                let mut upload = self.put_next(&path, begun, rest).await?;
                if let Err(error) = upload.complete().await {
                    abort(Some(upload)).await;
                    return Err(ObjectError::from(error).into());
                }
            }
        }
        Ok(Stored {
            bytes,
            sha256: hex(&hash.finalize()),
        })
    }

    /// Writes the next part, one at a time: who sends faster than the place takes waits. What was written is taken back when that
    /// fails, or when there is no part.
    async fn put_next(
        &self,
        path: &Path,
        upload: Option<Box<dyn MultipartUpload>>,
        part: Result<Part, ObjectError>,
    ) -> Result<Box<dyn MultipartUpload>, ObjectError> {
        let part = match part {
            Ok(part) => part,
            Err(error) => {
                abort(upload).await;
                return Err(error);
            }
        };
        let mut upload = match upload {
            Some(begun) => begun,
            None => self.store.put_multipart(path).await?,
        };
        let payload = PutPayload::from_bytes(part.bytes.clone());
        match upload.put_part(payload).await {
            Ok(()) => Ok(upload),
            Err(error) => {
                abort(Some(upload)).await;
                Err(error.into())
            }
        }
    }

    pub(super) async fn read(&self, key: &BlobKey) -> Result<OpenFile, ObjectError> {
        let found = self.store.get(&self.path(key)).await?;
        Ok(OpenFile {
            bytes: found.meta.size,
            pieces: found
                .into_stream()
                .map(|piece| piece.map_err(ObjectError::from))
                .boxed(),
        })
    }

    /// A whole file of `most` bytes at most, if it has as many as expected; otherwise how many it has.
    pub(super) async fn read_whole(
        &self,
        key: &BlobKey,
        most: u64,
        expected: Option<u64>,
    ) -> Result<Result<Bytes, u64>, ObjectError> {
        let found = self.store.get(&self.path(key)).await?;
        let bytes = found.meta.size;
        if expected.is_some_and(|expected| expected != bytes) {
            return Ok(Err(bytes));
        }
        if bytes > most {
            return Err(ObjectError::TooLarge(most));
        }
        Ok(Ok(found.bytes().await?))
    }

    /// Some bytes of a file.
    pub(super) async fn read_range(
        &self,
        key: &BlobKey,
        range: Range<u64>,
    ) -> Result<Bytes, ObjectError> {
        Ok(self.store.get_range(&self.path(key), range).await?)
    }

    /// Removes a file, and what a process left of it that died while it wrote. One that is not there is no error.
    pub(super) async fn remove(&self, key: &BlobKey) -> Result<(), ObjectError> {
        match self.store.delete(&self.path(key)).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => {}
            Err(error) => return Err(error.into()),
        }
        if let Some(folder) = &self.folder {
            // The name that the library gives to a file of which not all is there yet; a key is written once.
            let begun = folder.join(format!("{key}#1"));
            match tokio::fs::remove_file(&begun).await {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(ObjectError::Failed(error.to_string())),
            }
        }
        Ok(())
    }
}

/// Bytes as lower-case hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What was gathered, with the piece that fills it.
async fn full(gathered: &mut Gathered, piece: &[u8]) -> Result<Part, ObjectError> {
    gathered.push(piece).await?;
    gathered.take().await
}

/// Takes back what was written of a file. What cannot be taken back is removed later.
async fn abort(upload: Option<Box<dyn MultipartUpload>>) {
    let Some(mut upload) = upload else { return };
    if let Err(error) = upload.abort().await {
        tracing::debug!(%error, "a part of a file is left for later");
    }
}
