//! A file for code that reads here and there of it.

use std::io::{self, Read, Seek, SeekFrom};

use bytes::Bytes;
use tokio::runtime::Handle;

use super::{BlobKey, Blobs, verifying::Damage};

/// What is read at once.
const PIECE: u64 = 256 * 1024;

/// A file that is read a piece at a time. It blocks the thread, so it is for threads that may be blocked.
#[derive(Debug)]
pub struct BlobReader {
    blobs: Blobs,
    runtime: Handle,
    key: BlobKey,
    bytes: u64,
    position: u64,
    /// What was read last, and from where.
    piece: Bytes,
    begin: u64,
}

impl BlobReader {
    pub(super) fn new(blobs: Blobs, key: BlobKey, bytes: u64) -> Self {
        Self {
            blobs,
            runtime: Handle::current(),
            key,
            bytes,
            position: 0,
            piece: Bytes::new(),
            begin: 0,
        }
    }

    /// What is there of the last piece from the position on.
    fn rest(&self) -> &[u8] {
        let skipped = self.position.checked_sub(self.begin);
        let skipped = skipped.and_then(|skipped| usize::try_from(skipped).ok());
        skipped
            .and_then(|skipped| self.piece.get(skipped..))
            .unwrap_or_default()
    }
}

impl Read for BlobReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.position >= self.bytes || buffer.is_empty() {
            return Ok(0);
        }
        if self.rest().is_empty() {
            let end = self.bytes.min(self.position + PIECE);
            let range = self.position..end;
            let read = async {
                let read = self.blobs.0.objects.read_range(&self.key, range).await;
                self.blobs.found(&self.key, read).await
            };
            self.piece = self.runtime.block_on(read).map_err(io::Error::other)?;
            if self.piece.len() as u64 != end - self.position {
                self.piece = Bytes::new();
                let (blobs, key) = (&self.blobs, &self.key);
                let damaged = self.runtime.block_on(async {
                    let why = "it is shorter than it was";
                    match blobs.expected(key).await {
                        Ok(expected) => {
                            let damage = Damage::Altered;
                            blobs.note_damage(key, &expected, damage, why).await
                        }
                        Err(error) => error,
                    }
                });
                return Err(io::Error::other(damaged));
            }
            self.begin = self.position;
        }
        let rest = self.rest();
        let count = rest.len().min(buffer.len());
        let (Some(from), Some(to)) = (rest.get(..count), buffer.get_mut(..count)) else {
            return Ok(0);
        };
        to.copy_from_slice(from);
        self.position += u64::try_from(count).unwrap_or_default();
        Ok(count)
    }
}

impl Seek for BlobReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(offset) => self.bytes.checked_add_signed(offset),
            SeekFrom::Current(offset) => self.position.checked_add_signed(offset),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}
