//! Speech as a server has it by default: what its ears and its voice understand and say, and how long they take. PocketSphinx and
//! espeak-ng, which are used without neural models, are measured beside them in the same run.
//!
//! Recordings are those of human speech with their words ([`recordings`]), in parts that are as long as what visitors say; models are in
//! `COLLOQUY_MODELS_DIR`. Of each figure there is another one with `programs_` before it, for the two programs.
//!
//! All of it takes some minutes, of which the calls are more than half; each figure is shown on standard error as soon as it is known.
//!
//! | figure | what it is |
//! |---|---|
//! | `words` | words of the recordings |
//! | `wer_clean`, `wer_8khz`, `wer_telephone`, `wer_noise10` | words left out, put in or changed, in percent of those said: as recorded, sampled at 8,000 Hz, through a telephone's band (300 to 3,400 Hz), in white noise 10 dB below the speech |
//! | `invented` | words heard in 20 sounds in which nobody speaks: silence, noise, hum, clicks, breath, chords |
//! | `stt_p50_ms_5s` | the time to the words of 5 s of speech |
//! | `tts_first_audio_p50_ms` | from a sentence to its first sound |
//! | `tts_rtf` | the time to speak, over the time that the speech lasts |
//! | `tts_readback_wer` | words that Whisper hears wrongly of what is spoken, in percent |
//! | `v2v_default_p50_ms`, `v2v_default_4_p50_ms` | with nothing but defaults and a voice-activity hold of 200 ms, from the end of a visitor's speech, another recording in each turn, to the first audible reply, with one call and with four |
//! | `v2v_recordings` | the recordings that are short and have no pause in them, which visitors say |
//! | `missed_turns_1`, `missed_turns_4` | turns without a reply |
//! | `rss_mb` | the largest resident set of that server |

mod measure;
mod talk;

use std::{fmt, path::PathBuf, time::Duration};

use anyhow::Context as _;
use clap::Args;
use colloquy::{Config, providers};
use colloquy_word_errors as word_errors;
use harness::client::Speech;
use serde_json::{Map, Value};

use crate::{progress::Progress, recordings};

/// How long one thing may take that is measured without a call: PocketSphinx hears all recordings in a minute or two.
const STEP: Duration = Duration::from_secs(600);
/// How long a turn of a call may take: the character's last words, the visitor's, and the wait for a reply.
const TURN: Duration = Duration::from_secs(60);

/// Options of the benchmark.
#[derive(Debug, Args)]
pub(crate) struct SpeechOptions {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// The folder with the models.
    #[arg(long, env = "COLLOQUY_MODELS_DIR")]
    models: PathBuf,
    /// The model that hears, unless it is the server's choice.
    #[arg(long)]
    transcriber: Option<String>,
    /// Turns of each call.
    #[arg(long, default_value_t = 8)]
    turns: usize,
    /// Show the server's log, and what was heard.
    #[arg(long)]
    debug: bool,
    /// The server to measure; the `colloquy` beside this program unless given.
    #[arg(long)]
    server: Option<PathBuf>,
}

/// What the benchmark prints.
#[derive(Debug)]
pub(crate) struct Report {
    figures: Map<String, Value>,
    json: bool,
}

/// Runs the benchmark.
///
/// # Errors
/// When a model or a recording is missing, or a provider fails.
pub(crate) async fn run(options: SpeechOptions) -> anyhow::Result<Report> {
    let recordings = recordings::all().context("recordings: tests/bench gets them")?;
    let neural = |config: &mut Config| config.transcriber.model = options.transcriber.clone();
    let programs = |config: &mut Config| {
        config.transcriber.model = Some("pocketsphinx".to_owned());
        config.synthesizer.model = Some("espeak-ng".to_owned());
    };
    let with = |change: &dyn Fn(&mut Config)| {
        let mut config = Config::default();
        config.inference.models_dir = Some(options.models.clone());
        // What is right does not depend on how busy the machine is.
        config.calls.provider_timeout_ms = 120_000;
        change(&mut config);
        providers::from_config(&config)
    };
    let mut progress = Progress::begin();
    let words = recordings
        .iter()
        .map(|recording| word_errors::words(&recording.words).len());
    progress.note("words", words.sum::<usize>());
    let neural = with(&neural)?;
    let programs = with(&programs)?;
    for (prefix, providers) in [("", &neural), ("programs_", &programs)] {
        let named = |name: &str| format!("{prefix}{name}");
        progress.note(named("transcriber"), providers.transcriber.name());
        progress.note(named("synthesizer"), providers.synthesizer.name());
        let ears = providers.transcriber.as_ref();
        for (name, change) in [
            ("wer_clean", None),
            ("wer_8khz", Some(recordings::at_8khz as recordings::Change)),
            ("wer_telephone", Some(recordings::telephone)),
            ("wer_noise10", Some(recordings::in_noise)),
        ] {
            let name = named(name);
            let rate = measure::error_rate(ears, &recordings, change, options.debug);
            let rate = progress.measure(&name, STEP, rate).await?;
            progress.note(name, rate);
        }
        let name = named("invented");
        let invented = measure::invented(ears, options.debug);
        let invented = progress.measure(&name, STEP, invented).await?;
        progress.note(name, invented);
        let name = named("stt_p50_ms_5s");
        let five = recordings::seconds(&recordings, 5);
        let hearing = measure::hearing(ears, &five);
        let hearing = progress.measure(&name, STEP, hearing).await?;
        progress.note(name, hearing);
        let voice = providers.synthesizer.as_ref();
        let speaking = measure::speaking(voice, neural.transcriber.as_ref(), options.debug);
        let speaking = progress.measure(&named("tts"), STEP, speaking).await?;
        progress.note(named("tts_first_audio_p50_ms"), speaking.first_audio_p50_ms);
        progress.note(named("tts_rtf"), speaking.real_time_factor);
        progress.note(named("tts_readback_wer"), speaking.readback_error_rate);
    }
    // Their threads are not to stand beside the server's.
    drop((neural, programs));
    let said = recordings::unbroken(&recordings);
    let said = said.into_iter().map(Speech::trimmed);
    let said = said.collect::<anyhow::Result<Vec<_>>>()?;
    progress.note("v2v_recordings", said.len());
    // The first visitor has one turn alone before the others come.
    let turns = u32::try_from(options.turns.saturating_add(2)).unwrap_or(u32::MAX);
    let limit = TURN.saturating_mul(turns);
    for (prefix, without_models) in [("", false), ("programs_", true)] {
        for (name, calls) in [("v2v_default_p50_ms", 1), ("v2v_default_4_p50_ms", 4)] {
            let name = format!("{prefix}{name}");
            let talked = talk::talk(&options, &said, calls, without_models);
            let talked = progress.measure(&name, limit, talked).await?;
            progress.note(name, talked.v2v_p50_ms);
            progress.note(format!("{prefix}missed_turns_{calls}"), talked.missed);
            progress.note(format!("{prefix}rss_mb"), talked.rss_mb);
        }
    }
    Ok(Report {
        figures: progress.into_figures(),
        json: options.json,
    })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.json {
            return f.write_str(&serde_json::to_string(&self.figures).map_err(|_| fmt::Error)?);
        }
        let shown = |value: Option<&Value>| match value {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Null) | None => "-".to_owned(),
            Some(value) => value.to_string(),
        };
        for (name, value) in &self.figures {
            if name.starts_with("programs_") {
                continue;
            }
            let beside = self.figures.get(&format!("programs_{name}"));
            writeln!(
                f,
                "{name:28}{:>24}{:>16}",
                shown(Some(value)),
                shown(beside)
            )?;
        }
        Ok(())
    }
}
