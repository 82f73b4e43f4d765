//! A file as a path of this machine, for programs that read files.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use futures_util::StreamExt as _;
use tokio::io::AsyncWriteExt as _;

use super::{BlobKey, Blobs, ObjectError, copies::Copy};

/// Nobody reads a copy for so long.
const OLD: Duration = Duration::from_secs(24 * 3_600);
/// The folder of copies, in the data folder, and of what came of a file that a bucket does not take yet.
pub(super) const COPIES: &str = "copies";

/// A file as a path of this machine, for as long as this lives.
#[derive(Debug)]
pub struct LocalFile {
    place: Place,
}

#[derive(Debug)]
enum Place {
    Here(PathBuf),
    Elsewhere(Arc<Copy>),
}

impl LocalFile {
    /// Where it is. It is not to be changed.
    #[must_use]
    pub fn path(&self) -> &Path {
        match &self.place {
            Place::Here(path) => path,
            Place::Elsewhere(copy) => copy.path(),
        }
    }
}

fn failed(error: std::io::Error) -> ObjectError {
    ObjectError::Failed(error.to_string())
}

impl Blobs {
    /// A file of `most` bytes at most as a path of this machine: where it lies, or a copy of what lies elsewhere, which
    /// stays for a while. Little of it is in memory at a time.
    ///
    /// # Errors
    /// When it is not there, is larger, is not what was written, or cannot be copied.
    pub async fn local(&self, key: &BlobKey, most: u64) -> Result<LocalFile, ObjectError> {
        let parts = &*self.0;
        if let Some(path) = parts.objects.local_path(key) {
            let expected = self.expected(key).await?;
            return match tokio::fs::metadata(&path).await {
                Ok(metadata) => {
                    self.compare_length(key, &expected, metadata.len()).await?;
                    if metadata.len() > most {
                        return Err(ObjectError::TooLarge(most));
                    }
                    let changed = metadata.modified().map_err(failed)?;
                    self.verify_local(key, changed).await?;
                    Ok(LocalFile {
                        place: Place::Here(path),
                    })
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    self.found(key, Err(ObjectError::Missing)).await
                }
                Err(error) => Err(failed(error)),
            };
        }
        let now = || parts.base.clock.instant();
        let copy = match parts.copies.find(key, now()) {
            Some(copy) if copy.bytes() > most => return Err(ObjectError::TooLarge(most)),
            Some(copy) => copy,
            None => {
                let copied = self.copy(key, most).await;
                if let Err(ObjectError::Failed(_)) = copied {
                    // It may have been the disk that had no room: others make some for when it is tried again.
                    parts.copies.forget_all();
                }
                parts.copies.keep(key, copied?, now())
            }
        };
        Ok(LocalFile {
            place: Place::Elsewhere(copy),
        })
    }

    /// Copies a file of `most` bytes at most to this machine.
    async fn copy(&self, key: &BlobKey, most: u64) -> Result<Copy, ObjectError> {
        let folder = self.0.base.config.store.dir.join(COPIES);
        let copy = tokio::task::spawn_blocking(move || {
            std::fs::create_dir_all(&folder)?;
            tempfile::NamedTempFile::new_in(folder)
        });
        let copy = copy
            .await
            .map_err(|error| ObjectError::Failed(error.to_string()))?;
        let (file, path) = copy.map_err(failed)?.into_parts();
        let mut file = tokio::fs::File::from_std(file);
        let mut open = self.read(key).await?;
        if open.bytes > most {
            return Err(ObjectError::TooLarge(most));
        }
        // The reserve of the disk is not for copies: whoever wants one waits.
        let admitted = self.0.disk.admit(open.bytes).await;
        let mut arriving = admitted.map_err(|full| ObjectError::Failed(full.to_string()))?;
        while let Some(piece) = open.pieces.next().await.transpose()? {
            file.write_all(&piece).await.map_err(failed)?;
            arriving.written(piece.len() as u64);
        }
        file.flush().await.map_err(failed)?;
        Ok(Copy::new(path, open.bytes))
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
