//! `stop`: the sequences at which an answer ends. Responses have no such field, so where a model speaks that API the text is
//! cut here, and the model is not asked for more.

use serde_json::Value;

use super::{FormatError, Object, fields::str_of};

/// The most sequences of the public API.
const MOST: usize = 4;
/// A longer sequence would hold back that much of a stream.
const MOST_BYTES: usize = 1_024;

/// The sequences of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Stops(Vec<String>);

impl Stops {
    /// Those that the field names: a string, or a list of up to four.
    pub(super) fn of(body: &Object) -> Result<Self, FormatError> {
        let wrong = || FormatError::new("stop", "must be a string or an array of up to 4 strings");
        let sequences = match body.get("stop") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::String(text)) => vec![text.clone()],
            Some(Value::Array(list)) if list.len() <= MOST => list
                .iter()
                .map(|text| text.as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>()
                .ok_or_else(wrong)?,
            Some(_) => return Err(wrong()),
        };
        if sequences.iter().any(|text| text.len() > MOST_BYTES) {
            return Err(FormatError::new("stop", "must be at most 1,024 bytes long"));
        }
        let sequences = sequences.into_iter().filter(|text| !text.is_empty());
        Ok(Self(sequences.collect()))
    }

    /// Where the text ends: where the sequence begins that is complete first, as for a model that is asked after every token.
    pub(super) fn find(&self, text: &str) -> Option<usize> {
        let found = self.0.iter().filter_map(|stop| {
            let start = text.find(stop.as_str())?;
            Some((start + stop.len(), start))
        });
        found.min().map(|(_, start)| start)
    }

    /// From where on the text may be the beginning of a sequence.
    fn undecided(&self, text: &str) -> usize {
        let begins = |from: &usize| {
            let rest = &text[*from..];
            self.0.iter().any(|stop| stop.starts_with(rest))
        };
        let longest = self.0.iter().map(String::len).max().unwrap_or(0);
        let first = text.ceil_char_boundary(text.len().saturating_sub(longest));
        let places = (first..text.len()).filter(|at| text.is_char_boundary(*at));
        places.into_iter().find(begins).unwrap_or(text.len())
    }
}

/// A text that comes in pieces, cut at its first sequence.
#[derive(Debug, Default)]
pub(super) struct StopCutter {
    stops: Stops,
    /// What may be the beginning of a sequence.
    held: String,
    stopped: bool,
}

impl StopCutter {
    pub(super) fn new(stops: Stops) -> Self {
        Self {
            stops,
            ..Self::default()
        }
    }

    /// The next piece, as far as it may be told now; nothing once the text has ended.
    pub(super) fn push(&mut self, piece: &str) -> String {
        if self.stopped {
            return String::new();
        }
        if self.stops.0.is_empty() {
            return piece.to_owned();
        }
        let mut text = std::mem::take(&mut self.held);
        text.push_str(piece);
        if let Some(end) = self.stops.find(&text) {
            self.stopped = true;
            text.truncate(end);
        } else {
            self.held = text.split_off(self.stops.undecided(&text));
        }
        text
    }

    /// What was held back, at the end of the text.
    pub(super) fn rest(&mut self) -> String {
        std::mem::take(&mut self.held)
    }

    /// Whether a sequence came.
    pub(super) fn stopped(&self) -> bool {
        self.stopped
    }
}

/// The log probabilities of as many tokens as a text has.
pub(super) fn logprobs_of(text: &str, logprobs: &mut Vec<Value>) {
    let mut told = 0;
    let within = logprobs.iter().take_while(|entry| {
        let token = entry.as_object().and_then(|entry| str_of(entry, "token"));
        told += token.map_or(0, str::len);
        told <= text.len()
    });
    let within = within.count();
    logprobs.truncate(within);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn stops(value: &Value) -> Result<Stops, FormatError> {
        Stops::of(json!({"stop": value}).as_object().unwrap())
    }

    #[test]
    fn sequences_are_a_string_or_a_few() {
        assert_eq!(stops(&json!("a")).unwrap().0, ["a"]);
        assert_eq!(stops(&json!(["a", ""])).unwrap().0, ["a"]);
        assert_eq!(stops(&Value::Null).unwrap(), Stops::default());
        for wrong in [
            json!(7),
            json!([1]),
            json!(["a", "b", "c", "d", "e"]),
            json!("x".repeat(1_025)),
        ] {
            assert!(stops(&wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_sequence_that_is_complete_first_ends_the_text() {
        let stops = Stops(vec!["é".to_owned(), "。é。".to_owned()]);
        assert_eq!(stops.find("aa。é。"), Some("aa。".len()));
        let mut cutter = StopCutter::new(stops);
        assert_eq!(cutter.push("aa。") + &cutter.push("é"), "aa。");
        assert!(cutter.stopped());
    }

    #[test]
    fn log_probabilities_end_with_the_text() {
        let mut logprobs = vec![json!({"token": "One"}), json!({"token": " two"})];
        logprobs_of("One t", &mut logprobs);
        assert_eq!(logprobs, [json!({"token": "One"})]);
    }

    proptest! {
        #[test]
        fn pieces_end_where_the_text_would(
            text in "[abé。]{0,24}", sequences in prop::collection::vec("[abé。]{1,4}", 0..4), at in prop::collection::vec(0_usize..24, 0..6)
        ) {
            let stops = Stops(sequences);
            let expected = &text[..stops.find(&text).unwrap_or(text.len())];
            let mut cutter = StopCutter::new(stops.clone());
            let mut said = String::new();
            let mut at: Vec<_> = at.into_iter().map(|at| text.floor_char_boundary(at.min(text.len()))).collect();
            at.sort_unstable();
            let mut from = 0;
            for to in at.into_iter().chain([text.len()]) {
                said.push_str(&cutter.push(&text[from..to]));
                from = to;
            }
            said.push_str(&cutter.rest());
            prop_assert_eq!(said, expected);
        }
    }
}
