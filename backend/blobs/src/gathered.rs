//! What has come of a file and is not stored yet.

use std::{
    io::{self, SeekFrom},
    path::PathBuf,
    sync::Arc,
};

use bytes::{Bytes, BytesMut};
use tokio::{
    fs::File,
    io::{AsyncReadExt as _, AsyncSeekExt as _, AsyncWriteExt as _},
    sync::{OwnedSemaphorePermit, Semaphore},
    task::spawn_blocking,
};

use super::ObjectError;

/// What is in memory of a file that is being written.
pub(super) const IN_MEMORY: usize = 64 * 1024;

/// What was gathered of a file, for as long as it takes whoever sends it: little of it is in memory. What object storage takes as
/// one part is kept in a file of no name, and is in memory only while the part is sent.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    memory: BytesMut,
    /// `None` where parts are no larger than what may be in memory.
    spool: Option<Spool>,
}

/// What is in front of the part in memory, in a file.
#[derive(Debug)]
struct Spool {
    place: SpoolPlace,
    /// Made when it is needed.
    file: Option<File>,
    bytes: usize,
}

/// Where files keep what was gathered of them, and the room for parts that are sent.
#[derive(Debug, Clone)]
pub(super) struct SpoolPlace {
    folder: PathBuf,
    parts: Arc<Semaphore>,
}

/// A part that can be sent. As long as this lives, it has a place in memory.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) bytes: Bytes,
    _place: Option<OwnedSemaphorePermit>,
}

impl SpoolPlace {
    /// In a folder that is made when it is needed; so many parts at a time are in memory.
    pub(super) fn new(folder: PathBuf, parts: usize) -> Self {
        Self {
            folder,
            parts: Arc::new(Semaphore::new(parts)),
        }
    }
}

impl Gathered {
    /// Nothing yet, of a file whose parts may be larger than what is in memory.
    pub(super) fn spooled(place: SpoolPlace) -> Self {
        Self {
            memory: BytesMut::new(),
            spool: Some(Spool {
                place,
                file: None,
                bytes: 0,
            }),
        }
    }

    /// How much it is, in bytes.
    pub(super) fn len(&self) -> usize {
        self.memory.len() + self.spool.as_ref().map_or(0, |spool| spool.bytes)
    }

    /// Adds what came.
    ///
    /// # Errors
    /// When the disk does not take it.
    pub(super) async fn push(&mut self, piece: &[u8]) -> Result<(), ObjectError> {
        match &mut self.spool {
            Some(spool) if self.memory.len() + piece.len() > IN_MEMORY => {
                spool.write(&self.memory).await.map_err(failed)?;
                spool.write(piece).await.map_err(failed)?;
                self.memory.clear();
            }
            _ => self.memory.extend_from_slice(piece),
        }
        Ok(())
    }

    /// Takes all of it, once there is room for it in memory. Nothing is left.
    ///
    /// # Errors
    /// When the disk does not give it back.
    pub(super) async fn take(&mut self) -> Result<Part, ObjectError> {
        let memory = self.memory.split().freeze();
        let Some(spool) = self.spool.as_mut().filter(|spool| spool.bytes > 0) else {
            return Ok(Part {
                bytes: memory,
                _place: None,
            });
        };
        let place = Arc::clone(&spool.place.parts).acquire_owned().await;
        let place = place.map_err(|error| ObjectError::other(error.to_string()))?;
        let bytes = spool.read_with(&memory).await.map_err(failed)?;
        Ok(Part {
            bytes,
            _place: Some(place),
        })
    }
}

impl Spool {
    async fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let folder = self.place.folder.clone();
                let made = spawn_blocking(move || {
                    std::fs::create_dir_all(&folder)?;
                    tempfile::tempfile_in(folder)
                });
                let mut file = File::from_std(made.await??);
                file.set_max_buf_size(IN_MEMORY);
                none.insert(file)
            }
        };
        file.write_all(piece).await?;
        self.bytes += piece.len();
        Ok(())
    }

    /// What was written, and this behind it; the file is empty then.
    async fn read_with(&mut self, end: &[u8]) -> io::Result<Bytes> {
        let mut part = Vec::with_capacity(self.bytes + end.len());
        if let Some(file) = &mut self.file {
            file.flush().await?;
            file.rewind().await?;
            file.take(self.bytes as u64).read_to_end(&mut part).await?;
            file.set_len(0).await?;
            file.seek(SeekFrom::Start(0)).await?;
        }
        if part.len() != self.bytes {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.bytes = 0;
        part.extend_from_slice(end);
        Ok(part.into())
    }
}

fn failed(error: io::Error) -> ObjectError {
    ObjectError::other(error.to_string())
}
