//! The words of voice messages.
//!
//! Transcribers have a few seconds for what a caller says in a turn, and voice messages are longer than that: they are cut
//! at pauses, and the parts are transcribed one after the other.

use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use colloquy_base::fair_queue::Claim;
use colloquy_providers::Utterance;
use colloquy_sandbox::SandboxError;
use colloquy_speech::OggError;

use super::{
    failure::Failure,
    request::{Question, decode_file},
};
use crate::Messaging;

/// The rate of decoded sound.
const RATE_HZ: usize = 16_000;
/// The longest part that is transcribed at once, in samples.
const MAX_PART: usize = 15 * RATE_HZ;
/// The pause that is looked for, in samples.
const PAUSE: usize = RATE_HZ / 5;

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
            let utterance = Utterance {
                samples: part.into(),
                language: self.language.map(str::to_owned),
                claim: self.claim.clone(),
            };
            let transcriber = &self.messaging.providers.batch.transcriber;
            let heard = transcriber.transcribe(utterance).await;
            words.push(heard.map_err(Failure::Transcription)?);
        }
        Ok(joined(&words))
    }
}

/// The words of all parts. Between those of a script without spaces there is none.
fn joined(parts: &[String]) -> String {
    let mut words = String::new();
    for part in parts.iter().map(|part| part.trim()) {
        let is_spaced = |character: Option<char>| character.is_some_and(|c| !is_unspaced(c));
        if is_spaced(words.chars().next_back()) && is_spaced(part.chars().next()) {
            words.push(' ');
        }
        words.push_str(part);
    }
    words
}

/// Whether a character belongs to a script whose words stand side by side: Thai, Japanese, Chinese.
fn is_unspaced(character: char) -> bool {
    matches!(character, '\u{e00}'..='\u{e7f}' | '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}')
}

/// Cuts sound at pauses.
fn parts(samples: &[i16]) -> Vec<&[i16]> {
    let mut parts = Vec::new();
    let mut rest = samples;
    while let Some(longest) = rest.get(..MAX_PART) {
        let (part, after) = rest.split_at(pause(longest));
        parts.push(part);
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

/// The middle of the quietest moment in the later half.
fn pause(samples: &[i16]) -> usize {
    let half = samples.len() / 2;
    let loudness = |moment: &[i16]| -> u64 {
        let squares = moment.iter().map(|sample| i64::from(*sample).pow(2));
        squares.sum::<i64>().unsigned_abs()
    };
    let (moments, _) = samples[half..].as_chunks::<PAUSE>();
    moments
        .iter()
        .enumerate()
        .min_by_key(|(_, moment)| loudness(moment.as_slice()))
        .map_or(samples.len(), |(at, _)| half + at * PAUSE + PAUSE / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_as_their_script_is_written() {
        let join = |parts: &[&str]| {
            let parts = parts.iter().map(|part| (*part).to_owned());
            joined(&parts.collect::<Vec<_>>())
        };
        assert_eq!(
            join(&["go forward", "", " ten meters "]),
            "go forward ten meters"
        );
        assert_eq!(
            join(&["今天天气", "很好。", "你好吗"]),
            "今天天气很好。你好吗"
        );
        assert_eq!(
            join(&["안녕하세요.", "반갑습니다"]),
            "안녕하세요. 반갑습니다"
        );
        assert_eq!(join(&["", ""]), "");
    }

    #[test]
    fn long_sound_is_cut_where_nobody_speaks() {
        let speech = |seconds: usize| vec![9_000; seconds * RATE_HZ];
        let pause = vec![3; RATE_HZ];
        let sound = [speech(11), pause, speech(20)].concat();
        let parts = parts(&sound);
        assert_eq!(parts.concat(), sound, "nothing is lost");
        assert!(parts.iter().all(|part| part.len() <= MAX_PART));
        let first = parts[0].len() as f64 / RATE_HZ as f64;
        assert!((11.0..12.0).contains(&first), "cut at {first} s");
        assert!(super::parts(&[]).is_empty());
        assert_eq!(super::parts(&sound[..MAX_PART - 1]).len(), 1);
    }
}
