//! The words of voice messages.
//!
//! Transcribers have a few seconds for what a caller says in a turn, and voice messages are longer than that: they are cut
//! at pauses, and the parts are transcribed one after the other.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use colloquy_audio::pauses::{RATE_HZ, joined, parts};
use colloquy_base::fair_queue::Claim;
use colloquy_providers::{Utterance, spoken_language};
use colloquy_sandbox::SandboxError;
use colloquy_speech::{OggError, Voice};

use super::{
    failure::Failure,
    request::{Question, decode_file},
};
use crate::Messaging;

/// The voice messages of a completion.
pub(super) struct VoiceMessages<'a> {
    messaging: &'a Messaging,
    question: &'a Question,
    voice: &'a Voice,
    claim: &'a Claim,
    /// How much more may be heard.
    left: Duration,
}

impl<'a> VoiceMessages<'a> {
    /// Nothing is heard yet. The expected language is the one of the voice that answers.
    pub(super) fn new(
        messaging: &'a Messaging,
        question: &'a Question,
        voice: &'a Voice,
        claim: &'a Claim,
    ) -> Self {
        Self {
            messaging,
            question,
            voice,
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
        let transcriber = &self.messaging.providers.batch.transcriber;
        let parts = parts(&samples);
        let language = match self.voice.detects_language {
            true => spoken_language(&**transcriber, &parts, None, self.claim)
                .await
                .map_err(Failure::Transcription)?,
            false => self.voice.language.clone(),
        };
        let mut words = Vec::new();
        for part in parts {
            let utterance = Utterance::new(part, language.clone(), self.claim.clone());
            let heard = transcriber.transcribe(utterance).await;
            words.push(heard.map_err(Failure::Transcription)?);
        }
        Ok(joined(&words))
    }
}
