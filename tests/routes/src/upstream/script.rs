//! What the upstream does with a request.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

/// How a request is answered. Programs in other languages write it as JSON.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Script {
    /// The words of the reply, or of the transcription. Speech is made of the request's text.
    pub text: String,
    /// What the model thinks before it answers.
    pub thinking: String,
    /// A tool that the model calls: its name and the arguments as JSON.
    pub tool: Option<(String, String)>,
    /// How long the first byte of the response, its head, takes.
    #[serde(rename = "first_delay_ms", deserialize_with = "millis")]
    pub first_delay: Duration,
    /// How long each further piece takes.
    #[serde(rename = "between_delay_ms", deserialize_with = "millis")]
    pub between_delay: Duration,
    /// What goes wrong.
    pub fault: Option<Fault>,
    /// Speech comes with a WAV header.
    pub wav: bool,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            text: "This is the scripted answer. It has two sentences.".to_owned(),
            thinking: String::new(),
            tool: None,
            first_delay: Duration::ZERO,
            between_delay: Duration::ZERO,
            fault: None,
            wav: false,
        }
    }
}

/// What goes wrong. Pieces are counted from 0: the words of a reply, the tenths of a second of speech.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// 429, with `Retry-After` in seconds.
    RateLimited {
        /// The header's value.
        retry_after: Option<u32>,
    },
    /// This status, with an error body.
    Status(u16),
    /// 200, this many pieces, then an error frame, which for a response tells what was used; for the other APIs a body
    /// that is an error.
    ErrorFrame {
        /// Pieces before it.
        after: usize,
    },
    /// This many pieces, then silence for ever. 0: not even the head of the response.
    Stall {
        /// Pieces before it.
        after: usize,
    },
    /// This many pieces, then the connection is cut.
    Cut {
        /// Pieces before it.
        after: usize,
    },
    /// This many pieces, then the stream ends as if all were well, but without its end.
    Unfinished {
        /// Pieces before it.
        after: usize,
    },
    /// This many pieces, then what is no JSON.
    Malformed {
        /// Pieces before it.
        after: usize,
    },
    /// A piece of this many bytes.
    Huge {
        /// Its size.
        bytes: usize,
    },
    /// Every byte comes by itself, so that characters and samples are split.
    Drip,
    /// Comments between the events.
    KeepAlives,
    /// 200 without any content.
    Empty,
    /// A whole chat completion that ends for this reason.
    Finish(String),
    /// A whole chat completion, or vectors, that do not tell what was used.
    Untold,
    /// Vectors of so many numbers.
    Dimensions(usize),
}

fn millis<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    u64::deserialize(deserializer).map(Duration::from_millis)
}

impl Script {
    /// A script that answers with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// A script that goes wrong.
    #[must_use]
    pub fn fault(fault: Fault) -> Self {
        Self {
            fault: Some(fault),
            ..Self::default()
        }
    }

    /// The same with delays.
    #[must_use]
    pub fn delayed(mut self, first: Duration, between: Duration) -> Self {
        self.first_delay = first;
        self.between_delay = between;
        self
    }

    /// The same, after thinking this.
    #[must_use]
    pub fn thinking(mut self, words: impl Into<String>) -> Self {
        self.thinking = words.into();
        self
    }

    /// Calls a tool, and says nothing.
    pub fn tool(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self {
            text: String::new(),
            tool: Some((name.into(), arguments.into())),
            ..Self::default()
        }
    }

    /// The same with a WAV header on speech.
    #[must_use]
    pub fn with_wav(mut self) -> Self {
        self.wav = true;
        self
    }
}
