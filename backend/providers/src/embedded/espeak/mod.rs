//! Speech by the program `espeak-ng`: a process a sentence, whose sound is passed on while it is made.
//!
//! Only so many processes work at once; further sentences wait in a fair queue. A process is read as fast as it works, not as
//! fast as somebody listens, so that a slow client does not keep its slot.
//!
//! How loud a voice is, is measured when it speaks for the first time, on numbers, which each language
//! has words for, or, in Japanese, a sentence.

mod voices;

use std::{
    collections::HashMap,
    num::NonZero,
    process::Stdio,
    sync::{Arc, Mutex, PoisonError},
    thread,
};

use async_trait::async_trait;
use colloquy_audio::loudness::{self, Gain};
use colloquy_audio::wav;
use colloquy_base::fair_queue::{FairQueue, Slot};
use futures_util::{StreamExt as _, stream};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    process::{Child, ChildStdout},
    sync::{OnceCell, mpsc},
};
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

use self::voices::Voices;
use super::{
    super::{
        NotSpoken, Pcm, ProviderError, ProviderErrorKind, SpeechRequest, SpeechStream, Synthesizer,
        VoiceList,
        understood::{detect_for_espeak, readable_by_espeak, voice_to_read},
    },
    ESPEAK, busy,
    normalize::with_products,
    programs::start,
    queue,
};

/// The program's normal speed, in words per minute.
const NORMAL_WPM: f32 = 175.0;
/// The speeds at which it can still be understood.
const SPEED: std::ops::RangeInclusive<f32> = 0.4..=2.5;

/// What a voice says to be measured.
const REHEARSED: &str = "1984, 273, 561, 48.";
/// The same for Japanese, whose numbers are softer than everything else that its voice says.
const REHEARSED_JAPANESE: &str = "こんにちは。きょうは いい てんきです。";

/// Processes at once for each core: they wait for files, too.
const PROCESSES_A_CORE: usize = 2;
/// What may be read at a time, in bytes.
const PIECE_BYTES: usize = 16 * 1024;
/// Pieces that may wait for a listener, 16 MB of them: more than the sound of the longest sentence.
const PIECES: usize = 1_024;

/// The program espeak-ng.
#[derive(Debug)]
pub struct Espeak {
    /// Asked once, when first needed.
    voices: OnceCell<Voices>,
    /// Of each voice that has spoken; there are no more than are installed.
    gains: Mutex<HashMap<String, Arc<OnceCell<Gain>>>>,
    queue: FairQueue,
    /// What reads the processes.
    tasks: TaskTracker,
}

impl Default for Espeak {
    fn default() -> Self {
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        Self::new(cores * PROCESSES_A_CORE)
    }
}

impl Espeak {
    /// Speaks up to `processes` sentences at once.
    #[must_use]
    pub fn new(processes: usize) -> Self {
        Self {
            voices: OnceCell::new(),
            gains: Mutex::default(),
            queue: queue("synthesizer", processes),
            tasks: TaskTracker::new(),
        }
    }
}

impl Espeak {
    /// Whether it has a voice of this name, or a variant.
    pub(super) async fn knows(&self, voice: &str) -> Result<bool, ProviderError> {
        let voices = self.voices.get_or_try_init(Voices::ask).await?;
        Ok(voices.knows(voice))
    }

    /// What makes a voice as loud as the others. It is measured once.
    async fn gain(&self, voice: &str) -> Result<Gain, ProviderError> {
        let gain = {
            let mut gains = self.gains.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(gains.entry(voice.to_owned()).or_default())
        };
        let measured = gain.get_or_try_init(|| async {
            let mut process = SpeechProcess::start(voice, NORMAL_WPM, rehearsed(voice)).await?;
            let (mut sound, mut rate) = (Vec::new(), 0);
            while let Some(piece) = process.next().await? {
                rate = piece.sample_rate_hz;
                sound.extend(piece.samples.into_iter().map(loudness::value));
            }
            Ok(Gain::of(&sound, rate))
        });
        measured.await.copied()
    }
}

/// What a voice says to be measured, by its language or its file.
fn rehearsed(voice: &str) -> &'static str {
    match voice == "ja" || voice.starts_with("jpx/") {
        true => REHEARSED_JAPANESE,
        false => REHEARSED,
    }
}

#[async_trait]
impl Synthesizer for Espeak {
    fn name(&self) -> &str {
        ESPEAK
    }

    fn check_language(
        &self,
        voice: Option<&str>,
        language: Option<&str>,
        text: Option<&str>,
    ) -> Result<(), NotSpoken> {
        // Until the voices are known, those of all languages count as installed.
        let voices = self.voices.get();
        let is_installed = |tag: &str| voices.is_none_or(|voices| voices.has_language(tag));
        NotSpoken::check_for_espeak(voice, language, text, is_installed)
    }

    fn detect_language(&self, voice: Option<&str>, text: &str) -> Option<&'static str> {
        detect_for_espeak(voice, None, text)
    }

    fn readable(&self, voice: Option<&str>, language: Option<&str>, text: String) -> String {
        match self.check_language(voice, language, Some(&text)) {
            Err(NotSpoken::OtherLanguage(_) | NotSpoken::Script(_)) => String::new(),
            Ok(()) | Err(NotSpoken::Kanji) => readable_by_espeak(voice, language, text),
        }
    }

    async fn speak(&self, request: SpeechRequest) -> Result<SpeechStream, ProviderError> {
        let (voice, language) = (request.voice.as_deref(), request.language.as_deref());
        let voices = self.voices.get_or_try_init(Voices::ask).await?;
        let checked = match language {
            // English would be spoken in its place.
            Some(tag) if !voices.has_language(tag) => {
                self.check_language(voice, language, Some(&request.text))
            }
            // A piece of a text may be in another script than the whole.
            _ => NotSpoken::check_kanji(voice, language, Some(&request.text)),
        };
        checked.map_err(|unspoken| {
            ProviderError::new(ESPEAK, ProviderErrorKind::Rejected, unspoken.to_string())
        })?;
        let voice = voices.choose(voice_to_read(voice, language, &request.text), language);
        let speed = request.speed.clamp(*SPEED.start(), *SPEED.end());
        let entered = self.queue.enter(&request.claim).await;
        let slot = entered.map_err(|full| busy(ESPEAK, full))?;
        let gain = self.gain(&voice).await?;
        let process = SpeechProcess::start(&voice, NORMAL_WPM * speed, &request.text).await?;
        let (pieces, heard) = mpsc::channel(PIECES);
        // It ends with whoever listens.
        let reading = AbortOnDropHandle::new(self.tasks.spawn(process.pass_on(pieces, gain, slot)));
        let pieces = stream::unfold((heard, reading), |(mut heard, reading)| async move {
            let piece = heard.recv().await?;
            Some((piece, (heard, reading)))
        });
        Ok(pieces.boxed())
    }

    async fn voices(&self) -> Result<VoiceList, ProviderError> {
        let voices = self.voices.get_or_try_init(Voices::ask).await?;
        Ok(VoiceList {
            voices: voices.offered(),
            may_have_others: false,
        })
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Voices::ask().await.map(|_| ())
    }
}

/// A process that speaks.
struct SpeechProcess {
    child: Child,
    output: ChildStdout,
    decoder: wav::Decoder,
}

impl SpeechProcess {
    /// Starts the program, and gives it the text.
    async fn start(voice: &str, words_a_minute: f32, text: &str) -> Result<Self, ProviderError> {
        let mut child = start(ESPEAK, |command| {
            command
                .arg("--stdout")
                .arg("--stdin")
                .args(["-b", "1"]) // the text is UTF-8
                .args(["-v", voice])
                .args(["-s", &format!("{:.0}", words_a_minute)])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
        })?;
        let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed("the program has no pipes"));
        };
        // It reads everything before it makes a sound, so writing cannot wait for our reading.
        let text = plain(text, voice);
        input
            .write_all(text.as_bytes())
            .await
            .map_err(|error| failed(format!("writing the text: {}", error.kind())))?;
        drop(input);
        Ok(Self {
            child,
            output,
            decoder: wav::Decoder::new(None),
        })
    }

    /// Passes the sound on to its end, or to a failure. The place that it has in the queue is free then.
    async fn pass_on(
        mut self,
        pieces: mpsc::Sender<Result<Pcm, ProviderError>>,
        gain: Gain,
        _slot: Slot,
    ) {
        while let Some(mut piece) = self.next().await.transpose() {
            let is_last = piece.is_err();
            for sample in piece.iter_mut().flat_map(|piece| &mut piece.samples) {
                *sample = gain.sample(loudness::value(*sample));
            }
            if pieces.send(piece).await.is_err() || is_last {
                return;
            }
        }
    }

    async fn next(&mut self) -> Result<Option<Pcm>, ProviderError> {
        let mut buffer = vec![0; PIECE_BYTES];
        loop {
            let read = self
                .output
                .read(&mut buffer)
                .await
                .map_err(|error| failed(format!("reading the sound: {}", error.kind())))?;
            if read == 0 {
                return self.end().await.map(|()| None);
            }
            let pcm = self.decoder.push(&buffer[..read]).map_err(|message| {
                ProviderError::new(ESPEAK, ProviderErrorKind::Malformed, message)
            })?;
            if pcm.is_some() {
                return Ok(pcm);
            }
        }
    }

    async fn end(&mut self) -> Result<(), ProviderError> {
        let status = self
            .child
            .wait()
            .await
            .map_err(|error| failed(format!("waiting for the program: {}", error.kind())))?;
        if status.success() {
            return Ok(());
        }
        // What it complains about are voices and data files; it does not repeat the text.
        let mut complaint = Vec::new();
        if let Some(errors) = self.child.stderr.take() {
            let _ = errors.take(200).read_to_end(&mut complaint).await;
        }
        let complaint = String::from_utf8_lossy(&complaint);
        Err(failed(format!("{status}: {}", complaint.trim())))
    }
}

/// The text without what the program takes for a command: `[[` begins phonemes, and control characters its own codes. Asterisks that multiply
/// become a word of the voice's language, which its name begins with, behind the folder of a file: `gmw/en-US+f3`.
fn plain(text: &str, voice: &str) -> String {
    let name = voice.rsplit('/').next().unwrap_or(voice);
    let language = name.split('+').next().unwrap_or(name);
    with_products(text, language)
        .replace("[[", "[ [")
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

fn failed(message: impl Into<String>) -> ProviderError {
    ProviderError::new(ESPEAK, ProviderErrorKind::Failed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_holds_no_commands() {
        assert_eq!(plain("a [[b]] \u{1}30P c\n", "de"), "a [ [b]]  30P c ");
        assert_eq!(plain("2 * 3", "gmw/en-US+f3"), "2 times 3");
        assert_eq!(plain("2 * 3", "de+f3"), "2 mal 3");
        assert_eq!(plain("2 * 3", "ja"), "2 * 3");
    }

    #[test]
    fn a_text_in_a_script_that_its_language_does_not_have_is_left_out() {
        let espeak = Espeak::default();
        let readable = |language, text: &str| {
            let readable = espeak.readable(None, Some(language), text.to_owned());
            readable == text
        };
        assert!(readable("th", "สวัสดี"));
        assert!(readable("en", "Say 안녕 to everybody who comes."));
        let text = "Say สวัสดี to everybody who comes.".to_owned();
        let mixed = espeak.readable(Some("en+f3"), None, text);
        assert_eq!(mixed, "Say to everybody who comes.");
        assert!(!readable("en", "สวัสดี"));
        assert_eq!(espeak.detect_language(Some("en+f3"), "สวัสดี"), Some("th"));
    }
}
