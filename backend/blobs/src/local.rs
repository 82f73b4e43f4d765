//! A file as a path of this machine, for programs that read files.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::StreamExt as _;
use tempfile::TempPath;
use tokio::io::AsyncWriteExt as _;

use super::{BlobKey, Blobs, ObjectError};

/// Nobody reads a copy for so long.
const OLD: Duration = Duration::from_secs(24 * 3_600);
/// The folder of copies, in the data folder, and of what came of a file that a bucket does not take yet.
pub(super) const COPIES: &str = "copies";

/// A file as a path of this machine, for as long as this lives.
#[derive(Debug)]
pub struct LocalFile {
    path: PathBuf,
    /// Removed with this, where the place of files is elsewhere.
    _copy: Option<TempPath>,
}

impl LocalFile {
    /// Where it is. It is not to be changed.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Blobs {
    /// A file of `most` bytes at most as a path of this machine: where it lies, or a copy of what lies elsewhere. Little of it is in memory
    /// at a time.
    ///
    /// # Errors
    /// When it is not there, is larger, or cannot be copied.
    pub async fn local(&self, key: &BlobKey, most: u64) -> Result<LocalFile, ObjectError> {
        let parts = &*self.0;
        if let Some(path) = parts.objects.local_path(key) {
            return match tokio::fs::metadata(&path).await {
                Ok(metadata) if metadata.len() > most => Err(ObjectError::TooLarge(most)),
                Ok(_) => Ok(LocalFile { path, _copy: None }),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    Err(ObjectError::Missing)
                }
                Err(error) => Err(ObjectError::Failed(error.to_string())),
            };
        }
        let failed = |error: std::io::Error| ObjectError::Failed(error.to_string());
        let folder = parts.base.config.store.dir.join(COPIES);
        let copy = tokio::task::spawn_blocking(move || {
            std::fs::create_dir_all(&folder)?;
            tempfile::NamedTempFile::new_in(folder)
        });
        let copy = copy
            .await
            .map_err(|error| ObjectError::Failed(error.to_string()))?;
        let (file, copy) = copy.map_err(failed)?.into_parts();
        let mut file = tokio::fs::File::from_std(file);
        let mut open = self.read(key).await?;
        if open.bytes > most {
            return Err(ObjectError::TooLarge(most));
        }
        while let Some(piece) = open.pieces.next().await.transpose()? {
            file.write_all(&piece).await.map_err(failed)?;
        }
        file.flush().await.map_err(failed)?;
        Ok(LocalFile {
            path: copy.to_path_buf(),
            _copy: Some(copy),
        })
    }

    /// Removes copies that a process left behind which died.
    ///
    /// # Errors
    /// When they cannot be removed.
    pub(crate) async fn remove_old_copies(&self) -> std::io::Result<()> {
        let folder = self.0.base.config.store.dir.join(COPIES);
        let mut entries = match tokio::fs::read_dir(folder).await {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(error),
        };
        while let Some(entry) = entries.next_entry().await? {
            // Another process may be reading those that are younger, or have removed this one.
            let Ok(metadata) = entry.metadata().await else {
                continue;
            };
            let age = metadata.modified()?.elapsed().unwrap_or_default();
            if age > OLD {
                tokio::fs::remove_file(entry.path()).await?;
            }
        }
        Ok(())
    }
}
