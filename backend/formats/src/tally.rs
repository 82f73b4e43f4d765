//! What an answer has told so far, for accounting.

use serde_json::Value;

use super::{ModelApi, ModelEvent, Object, TokenUsage, event::ApiEvent};

/// What a stream or an answer has told so far.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    /// The usage, as soon as the model has told it.
    pub usage: Option<TokenUsage>,
    /// The UTF-8 bytes that the model has produced: text, refusals, thinking, arguments of tools. An upper bound of the
    /// output's tokens where the usage is missing.
    pub text_bytes: u64,
    /// How the answer ended; `None` while it has not.
    pub ending: Option<Ending>,
    /// The usage object itself, and whose it is: it may say more than tokens.
    said: Option<(ModelApi, Object)>,
}

/// How an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The model was done.
    Completed,
    /// The model stopped at a limit or a filter.
    Incomplete,
    /// There was an error, and the client was told.
    Failed,
}

impl Tally {
    /// Of an answer of which nothing is there but what it used.
    #[must_use]
    pub fn of(used: TokenUsage) -> Self {
        Self {
            usage: Some(used),
            ..Self::default()
        }
    }

    /// Takes in an event or a whole answer of a model.
    pub(super) fn observe(&mut self, event: &ModelEvent) {
        if let Some(usage) = event.said_usage()
            && let Some(tokens) = event.usage()
        {
            self.usage = Some(tokens);
            self.said = Some((event.api(), usage.clone()));
        }
        let repeats = match &event.0 {
            ApiEvent::Chat(_) => false,
            // A terminal event repeats what its stream has told.
            ApiEvent::Response(event) => event.tells_response(),
        };
        if !repeats || self.text_bytes == 0 {
            self.text_bytes = self.text_bytes.saturating_add(event.content_bytes());
        }
    }

    /// The usage that a client of this API is told.
    pub(super) fn usage_for(&self, api: ModelApi) -> Option<Value> {
        let said = self
            .said
            .as_ref()
            .filter(|(of, _)| *of == api)
            .map(|(_, usage)| usage);
        self.usage.map(|usage| usage.write(api, said))
    }
}
