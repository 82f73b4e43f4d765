//! Files as one ZIP file, made while it is sent.
//!
//! One file at a time is read, a piece of it in memory; the client's pace is the server's.

use std::{
    collections::VecDeque,
    convert::Infallible,
    error::Error,
    io::{self, Write},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream, stream::BoxStream};
use zip::{
    ZipWriter,
    write::{SimpleFileOptions, StreamWriter},
};

use super::{BlobKey, Blobs, ObjectError, OpenFile};

/// A ZIP file as it comes: a text, which has this name, and files by theirs. Files that were given up are left out.
pub fn bundle(
    blobs: Blobs,
    text: (&'static str, String),
    files: VecDeque<(String, BlobKey)>,
) -> impl Stream<Item = Result<Bytes, BundleError>> {
    let (name, text) = text;
    let text = stream::iter([Ok::<_, Infallible>(Bytes::from(text))]);
    let files = stream::iter(files).map(Ok);
    streamed_bundle(blobs, (name, text), files)
}

/// Like [`bundle`], with a text and a list of files that are streams. The list is polled after the end of the text. Breaks off when one of
/// these streams fails.
pub fn streamed_bundle<E: Into<BoxError> + 'static>(
    blobs: Blobs,
    text: (
        &'static str,
        impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    ),
    files: impl Stream<Item = Result<(String, BlobKey), E>> + Send + 'static,
) -> impl Stream<Item = Result<Bytes, BundleError>> + Send + 'static {
    let told = |error: E| BundleError::List(error.into());
    let (name, text) = text;
    let sink = Sink::default();
    let bundle = Bundle {
        zip: Some(ZipWriter::new_stream(sink.clone())),
        sink,
        blobs,
        name: Some(name),
        text: Some(text.map_err(told).boxed()),
        waiting: files.map_err(told).boxed(),
        open: None,
    };
    stream::try_unfold(bundle, Bundle::next)
}

type BoxError = Box<dyn Error + Send + Sync>;

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
    /// Its text, or the list of its files, breaks off.
    #[error("what is to be packed cannot be read")]
    List(#[source] BoxError),
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
    /// That of the text, which was not begun.
    name: Option<&'static str>,
    /// The rest of the text; `None` once it was packed.
    text: Option<BoxStream<'static, Result<Bytes, BundleError>>>,
    waiting: BoxStream<'static, Result<(String, BlobKey), BundleError>>,
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
        if let Some(name) = self.name.take() {
            zip.start_file(name, options)?;
            return Ok(true);
        }
        if let Some(text) = &mut self.text {
            match text.next().await.transpose()? {
                Some(piece) => zip.write_all(&piece)?,
                None => self.text = None,
            }
            return Ok(true);
        }
        if let Some(open) = &mut self.open {
            match open.pieces.next().await.transpose()? {
                Some(piece) => zip.write_all(&piece)?,
                None => self.open = None,
            }
            return Ok(true);
        }
        if let Some((name, blob)) = self.waiting.next().await.transpose()? {
            match self.blobs.read(&blob).await {
                Ok(open) => {
                    zip.start_file(name, options)?;
                    self.open = Some(open);
                }
                // It was replaced or deleted a moment ago. One that is lost is no reason to send less.
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
