//! Ears and voices alone, without a call.

use std::time::Duration;

use anyhow::Context as _;
use colloquy::{
    fair_queue::{Claim, Priority},
    providers::{Pcm, SpeechRequest, Synthesizer, Transcriber, Utterance},
};
use colloquy_word_errors as word_errors;
use futures_util::StreamExt as _;
use harness::{client::now, sounds};

use crate::{
    figures::{percentile, rounded},
    recordings::{self, RATE, Recording},
};

/// How often the same is measured.
const TIMES: usize = 21;

/// Short and long sentences, with the sounds of the language.
const SENTENCES: &[&str] = &[
    "The quick brown fox jumps over the lazy dog.",
    "Please call me back before noon tomorrow.",
    "Your parcel left on Monday and should arrive within three days.",
    "I am afraid that I did not understand the question.",
    "We offer free delivery for all orders above fifty dollars.",
    "Would you like to speak with one of our people?",
    "The weather in London is cold and rainy today.",
    "Your appointment is on Thursday at half past three, and we will remind you the day before.",
    "Thank you for calling, and have a wonderful evening.",
    "Could you spell your last name for me, please?",
];

/// The part of words that are heard wrongly, in percent.
pub(super) async fn error_rate(
    ears: &dyn Transcriber,
    recordings: &[Recording],
    change: Option<recordings::Change>,
    debug: bool,
) -> anyhow::Result<f64> {
    let (mut wrong, mut all) = (0, 0);
    for recording in recordings {
        let said = word_errors::words(&recording.words);
        let mut heard = Vec::new();
        for samples in &recording.utterances {
            let samples = change.map_or_else(|| samples.clone(), |change| change(samples));
            heard.push(hear(ears, samples).await?);
        }
        let heard = heard.join(" ");
        show(debug, &recording.words, &heard);
        wrong += word_errors::errors(&said, &word_errors::words(&heard));
        all += said.len();
    }
    Ok(percent(wrong, all))
}

/// How many words are heard where nobody speaks.
pub(super) async fn invented(ears: &dyn Transcriber, debug: bool) -> anyhow::Result<usize> {
    let mut invented = 0;
    for sound in sounds::without_speech() {
        let heard = hear(ears, sound).await?;
        show(debug, "(nothing)", &heard);
        invented += word_errors::words(&heard).len();
    }
    Ok(invented)
}

/// The time to the words of a sound.
pub(super) async fn hearing(ears: &dyn Transcriber, sound: &[i16]) -> anyhow::Result<Option<f64>> {
    let mut taken = Vec::new();
    for _ in 0..TIMES {
        let began = now();
        hear(ears, sound.to_vec()).await?;
        taken.push(began.elapsed());
    }
    taken.sort();
    Ok(percentile(&taken, 50))
}

/// How a voice speaks.
#[derive(Debug)]
pub(super) struct Speaking {
    pub(super) first_audio_p50_ms: Option<f64>,
    pub(super) real_time_factor: f64,
    pub(super) readback_error_rate: f64,
}

/// Speaks all sentences, and lets others hear them.
pub(super) async fn speaking(
    voice: &dyn Synthesizer,
    ears: &dyn Transcriber,
    debug: bool,
) -> anyhow::Result<Speaking> {
    let mut first_audio = Vec::new();
    let (mut taken, mut lasted) = (Duration::ZERO, 0.0);
    let (mut wrong, mut all) = (0, 0);
    // What is paid for once is not a sentence's.
    speak(voice, SENTENCES[0]).await?;
    for _ in 0..2 {
        for sentence in SENTENCES {
            let spoken = speak(voice, sentence).await?;
            first_audio.push(spoken.first);
            taken += spoken.all;
            let (sound, seconds) = at_16_khz(&spoken.pieces)?;
            lasted += seconds;
            let heard = hear(ears, sound).await?;
            show(debug, sentence, &heard);
            let said = word_errors::words(sentence);
            wrong += word_errors::errors(&said, &word_errors::words(&heard));
            all += said.len();
        }
    }
    first_audio.sort();
    Ok(Speaking {
        first_audio_p50_ms: percentile(&first_audio, 50),
        real_time_factor: rounded(taken.as_secs_f64() / lasted, 1_000.0),
        readback_error_rate: percent(wrong, all),
    })
}

struct SpokenSentence {
    first: Duration,
    all: Duration,
    pieces: Vec<Pcm>,
}

async fn speak(voice: &dyn Synthesizer, text: &str) -> anyhow::Result<SpokenSentence> {
    let began = now();
    let request = SpeechRequest {
        text: text.to_owned(),
        voice: None,
        language: Some("en".to_owned()),
        speed: 1.0,
        claim: Claim::own(Priority::Call),
    };
    let mut speech = voice.speak(request).await?;
    let mut first = None;
    let mut pieces = Vec::new();
    while let Some(piece) = speech.next().await {
        pieces.push(piece?);
        first.get_or_insert_with(|| began.elapsed());
    }
    Ok(SpokenSentence {
        first: first.context("no sound")?,
        all: began.elapsed(),
        pieces,
    })
}

/// The sound as ears take it, and how long it lasts.
fn at_16_khz(pieces: &[Pcm]) -> anyhow::Result<(Vec<i16>, f64)> {
    let rate = pieces.first().context("no sound")?.sample_rate_hz as usize;
    let sound: Vec<f64> = pieces
        .iter()
        .flat_map(|piece| piece.samples.iter().copied().map(f64::from))
        .collect();
    // Each sample is the mean of those that it stands for.
    let step = rate as f64 / RATE as f64;
    let count = (sound.len() as f64 / step) as usize;
    let at_rate = (0..count).map(|index| {
        let (from, to) = (index as f64 * step, (index + 1) as f64 * step);
        let covered = (from as usize..=to as usize).map(|at| {
            let part = (to.min(at as f64 + 1.0) - from.max(at as f64)).max(0.0);
            part * sound.get(at).copied().unwrap_or(0.0)
        });
        (covered.sum::<f64>() / step) as i16
    });
    Ok((at_rate.collect(), sound.len() as f64 / rate as f64))
}

async fn hear(ears: &dyn Transcriber, samples: Vec<i16>) -> anyhow::Result<String> {
    let utterance = Utterance::new(samples, Some("en".to_owned()), Claim::own(Priority::Call));
    Ok(ears.transcribe(utterance).await?)
}

fn percent(part: usize, all: usize) -> f64 {
    rounded(100.0 * part as f64 / all.max(1) as f64, 10.0)
}

#[expect(clippy::print_stderr, reason = "what --debug asks for")]
fn show(debug: bool, said: &str, heard: &str) {
    if debug {
        eprintln!("{}: {heard}", said.trim());
    }
}
