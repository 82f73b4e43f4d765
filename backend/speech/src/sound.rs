//! Sound on its way to a client: sent piece by piece while it is made, or collected where the format wants that.
//!
//! A failure before the first byte is an error with its own status. After it the body breaks off without its end, so that no
//! client takes a part for the whole.

use std::future;

use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use bytes::Bytes;
use colloquy_accounts::ledger::Outcome;
use colloquy_audio::encode::Format;
use colloquy_http::memory::Share;
use futures_util::{StreamExt as _, stream};

use super::{
    bill::Bill,
    cache::Key,
    recording::{Recording, SoundError},
    text_reader::TextReader,
};
use crate::Speech;

/// What is to be made of a text.
pub(super) struct Order {
    pub(super) request_id: u64,
    pub(super) format: Format,
    /// The text's length.
    pub(super) characters: u64,
    /// Under which the file is kept, where files are kept.
    pub(super) key: Option<Key>,
    /// What the request holds of the memory for bodies, in which a sound counts that is held.
    pub(super) memory: Option<Share>,
}

/// A file that is being made. Dropped before its end, it settles what was spoken until then.
pub(super) struct SoundStream {
    speech: Speech,
    order: Order,
    recording: Recording,
    /// Gone once it is settled, which is the end.
    bill: Option<Bill>,
    /// The file so far, while it may be kept.
    file: Option<Vec<u8>>,
    /// Whether the client gets what is made, while it is made.
    is_leaving: bool,
}

impl SoundStream {
    pub(super) fn new(speech: &Speech, order: Order, reading: TextReader, bill: Bill) -> Self {
        Self {
            speech: speech.clone(),
            file: order.key.is_some().then(Vec::new),
            // The lower half of the number tells streams apart that are joined.
            recording: Recording::new(
                reading,
                order.format,
                order.characters,
                order.request_id as u32,
            )
            .counted_in(order.memory.clone()),
            order,
            bill: Some(bill),
            is_leaving: false,
        }
    }

    /// The body of the answer: from its first bytes on where the format allows that, else when all of it is there.
    ///
    /// # Errors
    /// When nothing, or not all, of what has to be there comes.
    pub(super) async fn body(mut self) -> Result<Response, SoundError> {
        if !self.order.format.is_streamed() {
            // Such a file comes as a whole, and is not copied.
            let file = self.next().await.unwrap_or(Err(SoundError::Silent))?;
            return Ok(file.into_response());
        }
        let first = self.next().await.unwrap_or(Err(SoundError::Silent))?;
        self.is_leaving = true;
        let rest = stream::unfold(self, |mut making| async move {
            let bytes = making.next().await?;
            Some((bytes, making))
        });
        let all = stream::once(future::ready(Ok(first))).chain(rest);
        Ok(Body::from_stream(all).into_response())
    }

    /// The next bytes of the file. The last ones, and a failure, settle the bill.
    async fn next(&mut self) -> Option<Result<Bytes, SoundError>> {
        self.bill.as_ref()?;
        let made = tokio::select! {
            biased;
            () = self.speech.kernel.drain_over.cancelled() => Err(SoundError::Stopped),
            made = self.recording.next() => made,
        };
        Some(match made {
            Ok((bytes, is_last)) => {
                let bytes = Bytes::from(bytes);
                self.keep(&bytes, is_last);
                if is_last {
                    self.settle(self.order.characters, Outcome::Completed);
                }
                Ok(bytes)
            }
            Err(error) if self.is_leaving => {
                let request_id = self.order.request_id;
                tracing::warn!(tts_request_id = request_id, %error, "speech broke off");
                self.settle(self.recording.sent_characters(), Outcome::Failed);
                Err(error)
            }
            Err(error) => {
                // The client gets an error and no sound.
                self.settle(0, Outcome::Failed);
                Err(error)
            }
        })
    }

    /// Keeps what may be asked for again, when it is not too large and there is memory for it.
    fn keep(&mut self, bytes: &Bytes, is_last: bool) {
        let room = self.speech.cache.room();
        let memory = self.order.memory.as_ref();
        self.file = self.file.take().and_then(|mut file| {
            // A file that comes as a whole is not copied.
            if is_last && file.is_empty() {
                return Some(file);
            }
            let fits = file.len() + bytes.len() <= room;
            if !fits || memory.is_some_and(|memory| memory.grow(bytes.len()).is_err()) {
                return None;
            }
            file.extend_from_slice(bytes);
            Some(file)
        });
        if is_last && let (Some(key), Some(file)) = (self.order.key.take(), self.file.take()) {
            let file = match file.is_empty() {
                true => bytes.clone(),
                false => Bytes::from(file),
            };
            self.speech.cache.insert(key, file);
        }
    }

    fn settle(&mut self, characters: u64, outcome: Outcome) {
        if let Some(bill) = self.bill.take() {
            bill.settle(characters.min(self.order.characters), outcome);
        }
    }
}

impl Drop for SoundStream {
    fn drop(&mut self) {
        self.settle(self.recording.sent_characters(), Outcome::Cancelled);
    }
}
