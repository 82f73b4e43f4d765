//! The engine between a visitor and providers, all of it in fake time.

pub(crate) mod network;
pub(crate) mod visitor;

use std::collections::BTreeMap;
use std::time::Duration;

use colloquy_voice::{
    AgentState, EndReason, Engine, EngineConfig, Event, FailedProvider, Input, Line, Originator,
    OutgoingFrame, Output, PauseId, ReplyId, SentenceId, TranscriptionId, TurnSettings,
    UtteranceStage,
};

/// The frame that stands for silence on the wire.
pub(crate) const SILENCE: [u8; 3] = [0xf8, 0xff, 0xfe];

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub(crate) fn config() -> EngineConfig {
    EngineConfig {
        turns: TurnSettings {
            stop_ms: 200,
            ..TurnSettings::default()
        },
        greetings: Vec::new(),
        interruption_message: None,
        apology: "Sorry, something went wrong.".to_owned(),
        patience_message: None,
        patience_after: Duration::from_secs(3),
        time_limit: Duration::from_secs(600),
        provider_timeout: Duration::from_secs(5),
        bitrate_bps: 32_000,
        seed: 7,
    }
}

/// How the providers answer. `None` and empty lists leave the answer to the test.
#[derive(Clone)]
pub(crate) struct Script {
    pub(crate) words: Option<&'static str>,
    pub(crate) words_delay: Duration,
    /// Whether turns seem to be over.
    pub(crate) is_complete: Option<bool>,
    pub(crate) prediction_delay: Duration,
    pub(crate) reply: Vec<&'static str>,
    /// Before the first piece and between pieces.
    pub(crate) reply_delay: Duration,
    pub(crate) speech: bool,
    pub(crate) speech_delay: Duration,
    pub(crate) rate_hz: u32,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            words: Some("go forward ten meters"),
            words_delay: Duration::ZERO,
            is_complete: None,
            prediction_delay: Duration::ZERO,
            reply: vec![
                "Going forward ten meters now. ",
                "Tell me when to stop, please.",
            ],
            reply_delay: Duration::ZERO,
            speech: true,
            speech_delay: Duration::ZERO,
            rate_hz: 24_000,
        }
    }
}

pub(crate) struct Harness {
    pub(crate) engine: Engine,
    pub(crate) now: Duration,
    pub(crate) script: Script,
    pub(crate) log: Vec<(Duration, Output)>,
    inbox: BTreeMap<(Duration, u64), Input>,
    scheduled: u64,
}

/// How long the scripted synthesizer speaks: 15 characters a second.
pub(crate) fn speech_ms(text: &str) -> usize {
    text.chars().count() * 1000 / 15
}

pub(crate) fn tone(rate_hz: u32, ms: usize) -> Vec<i16> {
    let angle = |n| std::f32::consts::TAU * 220.0 * n as f32 / rate_hz as f32;
    (0..rate_hz as usize * ms / 1000)
        .map(|n| (angle(n).sin() * 8000.0) as i16)
        .collect()
}

impl Harness {
    pub(crate) fn new(config: EngineConfig) -> Self {
        Self {
            engine: Engine::new(config).unwrap(),
            now: Duration::ZERO,
            script: Script::default(),
            log: Vec::new(),
            inbox: BTreeMap::new(),
            scheduled: 0,
        }
    }

    /// A call that is up.
    pub(crate) fn connected(config: EngineConfig) -> Self {
        let mut harness = Self::new(config);
        harness.input(Input::Connected);
        harness
    }

    pub(crate) fn schedule(&mut self, at: Duration, input: Input) {
        self.scheduled += 1;
        self.inbox.insert((at, self.scheduled), input);
    }

    pub(crate) fn input(&mut self, input: Input) {
        self.engine.handle(self.now, input);
        self.drain();
    }

    /// Lets time pass: every input at its time, every timer when the engine wants it.
    pub(crate) fn run_until(&mut self, end: Duration) {
        let mut stuck = 0;
        loop {
            let due = self.inbox.keys().next().copied();
            let timer = self.engine.next_timeout();
            let at = match (due, timer) {
                (Some((due, _)), Some(timer)) => due.min(timer),
                (Some((due, _)), None) => due,
                (None, Some(timer)) => timer,
                (None, None) => break,
            };
            if at > end {
                break;
            }
            stuck = if at > self.now { 0 } else { stuck + 1 };
            assert!(
                stuck < 1000,
                "the engine asks for a timer at {at:?} again and again"
            );
            self.now = self.now.max(at);
            match due {
                Some(key) if key.0 <= self.now => {
                    let input = self.inbox.remove(&key).unwrap();
                    self.input(input);
                }
                _ => self.input(Input::Timeout),
            }
        }
        self.now = self.now.max(end);
    }

    pub(crate) fn run_for(&mut self, time: Duration) {
        self.run_until(self.now + time);
    }

    pub(crate) fn drain(&mut self) {
        while let Some(output) = self.engine.poll() {
            self.answer(&output);
            self.log.push((self.now, output));
        }
    }

    fn answer(&mut self, output: &Output) {
        let script = self.script.clone();
        match output {
            Output::Transcribe {
                transcription,
                stage: UtteranceStage::Paused | UtteranceStage::Over,
                ..
            } => {
                if let Some(words) = script.words {
                    self.transcribe(self.now + script.words_delay, *transcription, words);
                }
            }
            Output::PredictEndOfTurn { pause, .. } => {
                if let Some(is_complete) = script.is_complete {
                    let pause = *pause;
                    let at = self.now + script.prediction_delay;
                    self.schedule(at, Input::EndOfTurnPredicted { pause, is_complete });
                }
            }
            Output::Reply(reply) if !script.reply.is_empty() => {
                let mut at = self.now;
                for delta in script.reply {
                    at += script.reply_delay;
                    self.schedule(
                        at,
                        Input::ReplyText {
                            reply: *reply,
                            delta: delta.to_owned(),
                        },
                    );
                }
                self.schedule(at, Input::ReplyEnded { reply: *reply });
            }
            Output::Speak { sentence, text } if script.speech => {
                let sentence = *sentence;
                let at = self.now + script.speech_delay;
                let samples = tone(script.rate_hz, speech_ms(text));
                self.schedule(
                    at,
                    Input::Speech {
                        sentence,
                        samples,
                        sample_rate_hz: script.rate_hz,
                    },
                );
                self.schedule(at, Input::SpeechEnded { sentence });
            }
            _ => {}
        }
    }

    pub(crate) fn transcribe(&mut self, at: Duration, transcription: TranscriptionId, words: &str) {
        let text = words.to_owned();
        self.schedule(
            at,
            Input::Transcribed {
                transcription,
                text,
            },
        );
    }

    fn pick<T>(&self, pick: impl Fn(&Output) -> Option<T>) -> Vec<(Duration, T)> {
        self.log
            .iter()
            .filter_map(|(at, output)| Some((*at, pick(output)?)))
            .collect()
    }

    pub(crate) fn frames(&self) -> Vec<(Duration, OutgoingFrame)> {
        self.pick(|output| match output {
            Output::Send(frame) => Some(frame.clone()),
            _ => None,
        })
    }

    /// Frames with a voice in them.
    pub(crate) fn voice(&self) -> Vec<(Duration, OutgoingFrame)> {
        let mut frames = self.frames();
        frames.retain(|(_, frame)| frame.payload[..] != SILENCE);
        frames
    }

    /// Questions for the words of utterances that are over: when, which, and the audio.
    pub(crate) fn utterances(&self) -> Vec<(Duration, (TranscriptionId, Vec<i16>))> {
        self.transcriptions(UtteranceStage::Over)
    }

    /// Questions for the words of utterances at this stage.
    pub(crate) fn transcriptions(
        &self,
        wanted: UtteranceStage,
    ) -> Vec<(Duration, (TranscriptionId, Vec<i16>))> {
        self.pick(|output| match output {
            Output::Transcribe {
                transcription,
                samples,
                stage,
            } if *stage == wanted => Some((*transcription, samples.clone())),
            _ => None,
        })
    }

    /// Questions whether the turn is over: when, which, and the audio.
    pub(crate) fn predictions(&self) -> Vec<(Duration, (PauseId, Vec<i16>))> {
        self.pick(|output| match output {
            Output::PredictEndOfTurn { pause, samples } => Some((*pause, samples.clone())),
            _ => None,
        })
    }

    pub(crate) fn replies(&self) -> Vec<(Duration, ReplyId)> {
        self.pick(|output| match output {
            Output::Reply(reply) => Some(*reply),
            _ => None,
        })
    }

    pub(crate) fn spoken(&self) -> Vec<(Duration, (SentenceId, String))> {
        self.pick(|output| match output {
            Output::Speak { sentence, text } => Some((*sentence, text.clone())),
            _ => None,
        })
    }

    pub(crate) fn agent(&self) -> Vec<AgentState> {
        let states = self.pick(|output| match output {
            Output::Event(Event::Agent(state)) => Some(*state),
            _ => None,
        });
        states.into_iter().map(|(_, state)| state).collect()
    }

    pub(crate) fn failures(&self) -> Vec<FailedProvider> {
        let failures = self.pick(|output| match output {
            Output::Event(Event::ProviderFailed(provider)) => Some(*provider),
            _ => None,
        });
        failures.into_iter().map(|(_, provider)| provider).collect()
    }

    pub(crate) fn line_events(&self) -> Vec<(Duration, (Line, bool))> {
        self.pick(|output| match output {
            Output::Event(Event::Transcript { line, is_final }) => Some((line.clone(), *is_final)),
            _ => None,
        })
    }

    pub(crate) fn ends(&self) -> Vec<(Duration, EndReason)> {
        self.pick(|output| match output {
            Output::End(reason) => Some(*reason),
            _ => None,
        })
    }

    pub(crate) fn cancelled(&self, wanted: &Output) -> bool {
        self.log.iter().any(|(_, output)| output == wanted)
    }

    /// The transcript in short: who said what.
    pub(crate) fn lines(&self) -> Vec<(Originator, String)> {
        self.engine
            .transcript()
            .iter()
            .map(|line| (line.originator, line.text.clone()))
            .collect()
    }
}
