//! The words of voice messages.
//!
//! Transcribers have a few seconds for what a caller says in a turn, and voice messages are longer than that: they are cut
//! at pauses, and the parts are transcribed one after the other.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use colloquy_audio::pauses::{RATE_HZ, joined, parts};
use colloquy_base::fair_queue::Claim;
use colloquy_providers::Utterance;
use colloquy_sandbox::SandboxError;
use colloquy_speech::OggError;

use super::{
    failure::Failure,
    request::{Question, decode_file},
};
use crate::Messaging;

/// The voice messages of a completion.
pub(super) struct VoiceMessages<'a> {
    messaging: &'a Messaging,
    question: &'a Question,
    language: Option<&'a str>,
    claim: &'a Claim,
    /// How much more may be heard.
    left: Duration,
}

impl<'a> VoiceMessages<'a> {
    /// Ears that have heard nothing yet; `language` is the expected one, as a BCP 47 tag.
    pub(super) fn new(
        messaging: &'a Messaging,
        question: &'a Question,
        language: Option<&'a str>,
        claim: &'a Claim,
    ) -> Self {
        Self {
            messaging,
            question,
            language,
            claim,
            left: Duration::from_secs(messaging.config.limits.completion_audio_seconds.into()),
        }
    }

    /// The words of an audio file; empty when there are none.
    pub(super) async fn hear(&mut self, file: &str) -> anyhow::Result<String> {
        let file = self
            .question
            .audio_files
            .get(file)
            .context("an audio file")?;
        let file = Bytes::from(decode_file(file)?);
        let decoded =
            colloquy_speech::decode(&self.messaging.speech, self.claim, file, self.left).await;
        let samples = decoded.map_err(|error| match error {
            SandboxError::Refused(OggError::TooLong(_)) => Failure::TooLong,
            error => Failure::Unreadable(error),
        })?;
        let lasts = Duration::from_secs_f64(samples.len() as f64 / RATE_HZ as f64);
        self.left = self.left.saturating_sub(lasts);
        let mut words = Vec::new();
        for part in parts(&samples) {
            let utterance =
                Utterance::new(part, self.language.map(str::to_owned), self.claim.clone());
            let transcriber = &self.messaging.providers.batch.transcriber;
            let heard = transcriber.transcribe(utterance).await;
            words.push(heard.map_err(Failure::Transcription)?);
        }
        Ok(joined(&words))
    }
}
