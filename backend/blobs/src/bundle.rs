//! Files as one ZIP file, made while it is sent.
//!
//! One file at a time is read, a piece of it in memory; the client's pace is the server's.

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, stream};
use zip::{
    ZipWriter,
    write::{SimpleFileOptions, StreamWriter},
};

use super::{BlobKey, Blobs, ObjectError, OpenFile};

/// A ZIP file as it comes: a text, which has this name, and files by theirs. Files that are not there any more are left out.
pub fn bundle(
    blobs: Blobs,
    text: (&'static str, String),
    files: VecDeque<(String, BlobKey)>,
) -> impl Stream<Item = Result<Bytes, BundleError>> {
    let sink = Sink::default();
    let bundle = Bundle {
        zip: Some(ZipWriter::new_stream(sink.clone())),
        sink,
        blobs,
        text: Some(text),
        waiting: files,
        open: None,
    };
    stream::try_unfold(bundle, Bundle::next)
}

/// Why a bundle breaks off.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file cannot be read.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// It cannot be packed.
    #[error(transparent)]
    Zip(#[from] zip::result::ZipError),
    /// The same.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// What was packed and not sent.
#[derive(Debug, Clone, Default)]
struct Sink(Arc<Mutex<Vec<u8>>>);

impl Sink {
    fn take(&self) -> Vec<u8> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut packed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        packed.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Bundle {
    /// `None` once it is complete.
    zip: Option<ZipWriter<StreamWriter<Sink>>>,
    sink: Sink,
    blobs: Blobs,
    text: Option<(&'static str, String)>,
    waiting: VecDeque<(String, BlobKey)>,
    open: Option<OpenFile>,
}

impl Bundle {
    async fn next(mut self) -> Result<Option<(Bytes, Self)>, BundleError> {
        loop {
            let packed = self.sink.take();
            if !packed.is_empty() {
                return Ok(Some((packed.into(), self)));
            }
            if !self.step().await? {
                return Ok(None);
            }
        }
    }

    /// Packs a little more. Whether there was something.
    async fn step(&mut self) -> Result<bool, BundleError> {
        let Some(zip) = &mut self.zip else {
            return Ok(false);
        };
        let options = SimpleFileOptions::default();
        if let Some((name, text)) = self.text.take() {
            zip.start_file(name, options)?;
            zip.write_all(text.as_bytes())?;
            return Ok(true);
        }
        if let Some(open) = &mut self.open {
            match open.pieces.next().await.transpose()? {
                Some(piece) => zip.write_all(&piece)?,
                None => self.open = None,
            }
            return Ok(true);
        }
        if let Some((name, blob)) = self.waiting.pop_front() {
            match self.blobs.read(&blob).await {
                Ok(open) => {
                    zip.start_file(name, options)?;
                    self.open = Some(open);
                }
                // It was replaced or deleted a moment ago.
                Err(ObjectError::Missing) => {}
                Err(error) => return Err(error.into()),
            }
            return Ok(true);
        }
        if let Some(zip) = self.zip.take() {
            zip.finish()?;
        }
        Ok(true)
    }
}
