//! What a model thinks before it answers, where its server does not tell that from the answer: `<think>…</think>` at the beginning of
//! the text, or a `</think>` whose beginning the template of the model keeps to itself.
//!
//! Clients of text generation get the text as the model sends it, since theirs may read the block. Whoever takes an answer for words (a call, a
//! message, an analysis, a rewriting, a summary) takes it without.

/// The beginnings and the ends of such blocks, in small letters.
const BLOCKS: [(&str, &str); 7] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<reasoning>", "</reasoning>"),
    ("<thought>", "</thought>"),
    ("<seed:think>", "</seed:think>"),
    ("[think]", "[/think]"),
    ("◁think▷", "◁/think▷"),
];
/// The longest text that waits for the end of a thought, in bytes. A longer one is a thought.
const MAX_WITHHELD_BYTES: usize = 1024 * 1024;

/// The text of a whole answer without the blocks of thought that it begins with, and without a thought whose end alone is there. Of a block that does
/// not end, nothing is left.
#[must_use]
pub fn without_thought(text: String) -> String {
    let mut filter = ThoughtFilter::default();
    let mut answer = filter.push(text);
    answer.push_str(&filter.finish());
    answer
}

/// Takes blocks of thought from the beginning of a text that comes in pieces, wherever these end. White space around blocks goes with
/// them; a text without any stays as it is.
///
/// A text that was passed on turns out to be a thought when an end comes without a beginning: then it is [retracted](Self::take_retraction).
#[derive(Debug, Default)]
pub struct ThoughtFilter {
    state: State,
    /// What may be the beginning of a block, or of its end.
    held: String,
    /// A block was taken.
    has_thought: bool,
    /// The text so far of an answer that begins within a thought, until its end comes.
    withheld: Option<String>,
    /// The last character that was passed on is a backtick, behind which a mark is code.
    is_behind_backtick: bool,
    /// Some of the answer was passed on.
    has_passed: bool,
    is_retracted: bool,
    /// A thought ended that had no beginning.
    ended_unopened: bool,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    /// Nothing of the answer came.
    #[default]
    Before,
    /// A block goes on until this.
    Thinking(&'static str),
    /// The text is the answer, unless the end of a thought comes.
    Answering,
    /// All that comes is the answer.
    Settled,
}

impl ThoughtFilter {
    /// A filter for a model whose answers begin within a thought: its text waits for the end of that, and is the answer if none comes.
    #[must_use]
    pub fn within_thought() -> Self {
        Self {
            withheld: Some(String::new()),
            ..Self::default()
        }
    }

    /// Takes the next piece, and returns what of the answer is there by now.
    pub fn push(&mut self, piece: String) -> String {
        if matches!(self.state, State::Settled) {
            return piece;
        }
        self.held.push_str(&piece);
        let mut said = String::new();
        loop {
            let lower = self.held.to_ascii_lowercase();
            match self.state {
                State::Settled => {
                    said.push_str(&self.withheld.take().unwrap_or_default());
                    said.push_str(&std::mem::take(&mut self.held));
                    break;
                }
                State::Thinking(end) => match lower.find(end) {
                    Some(at) => {
                        self.held.drain(..at + end.len());
                        self.state = State::Before;
                    }
                    None => {
                        let tail = self.held.len().saturating_sub(end.len());
                        self.held.drain(..self.held.floor_char_boundary(tail));
                        break;
                    }
                },
                State::Before => {
                    let text = lower.trim_start();
                    let indent = lower.len() - text.len();
                    let begun = BLOCKS.iter().find(|(begin, _)| text.starts_with(begin));
                    if let Some((begin, end)) = begun {
                        self.held.drain(..indent + begin.len());
                        self.has_thought = true;
                        self.state = State::Thinking(end);
                    } else if BLOCKS.iter().any(|(begin, _)| begin.starts_with(text)) {
                        break;
                    } else if self.has_thought {
                        self.held.drain(..indent);
                        self.state = State::Settled;
                    } else {
                        self.state = State::Answering;
                    }
                }
                State::Answering => match first_mark(&lower) {
                    Some((at, mark)) if self.ends_thought(&lower[..at], mark) => {
                        self.held.drain(..at + mark.len());
                        self.withheld = None;
                        self.is_retracted = self.has_passed;
                        self.has_thought = true;
                        self.ended_unopened = true;
                        self.state = State::Before;
                    }
                    // The answer speaks of such marks.
                    Some(_) => self.state = State::Settled,
                    None => {
                        let passed = self.held.len() - begun_mark(&lower);
                        let passed: String = self.held.drain(..passed).collect();
                        if let Some(last) = passed.chars().next_back() {
                            self.is_behind_backtick = last == '`';
                        }
                        self.pass(passed, &mut said);
                        break;
                    }
                },
            }
        }
        self.has_passed |= !said.is_empty();
        said
    }

    /// Returns true, once, if all that was passed on before the last piece was a thought.
    pub fn take_retraction(&mut self) -> bool {
        std::mem::take(&mut self.is_retracted)
    }

    /// True if a thought ended that had no beginning, as in all answers of some models.
    #[must_use]
    pub fn ended_unopened(&self) -> bool {
        self.ended_unopened
    }

    /// What is left of the answer when no more text comes.
    #[must_use]
    pub fn finish(self) -> String {
        match self.state {
            State::Thinking(_) => String::new(),
            State::Before if self.has_thought => self.held.trim_start().to_owned(),
            State::Before | State::Answering | State::Settled => {
                self.withheld.unwrap_or_default() + &self.held
            }
        }
    }

    /// Returns true if a mark behind some text ends a thought: one that begins a block or stands in code does not.
    fn ends_thought(&self, before: &str, mark: &str) -> bool {
        let is_code = match before.is_empty() {
            true => self.is_behind_backtick,
            false => before.ends_with('`'),
        };
        !is_code && BLOCKS.iter().any(|(_, end)| *end == mark)
    }

    /// Passes on a part of the answer, or withholds it.
    fn pass(&mut self, text: String, said: &mut String) {
        match &mut self.withheld {
            Some(withheld) if withheld.len() + text.len() > MAX_WITHHELD_BYTES => withheld.clear(),
            Some(withheld) => withheld.push_str(&text),
            None => said.push_str(&text),
        }
    }
}

/// The first beginning or end of a block in a text, and its place.
fn first_mark(text: &str) -> Option<(usize, &'static str)> {
    let found = marks().filter_map(|mark| Some((text.find(mark)?, mark)));
    found.min_by_key(|(at, _)| *at)
}

/// How many bytes at the end of a text may be the beginning of a mark.
fn begun_mark(text: &str) -> usize {
    let begun = marks().filter_map(|mark| {
        let mut lengths = (1..mark.len()).rev();
        lengths.find(|length| {
            let part = mark.get(..*length);
            part.is_some_and(|part| text.ends_with(part))
        })
    });
    begun.max().unwrap_or(0)
}

fn marks() -> impl Iterator<Item = &'static str> {
    BLOCKS.into_iter().flat_map(|(begin, end)| [begin, end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: [(&str, &str); 29] = [
        ("", ""),
        ("Hello.", "Hello."),
        ("  Hello.", "  Hello."),
        ("<think>Hm.</think>Hello.", "Hello."),
        ("\n <think>\nHm.\n</think>\n\nHello.\n", "Hello.\n"),
        ("<think></think>\n\n{\"a\": 1}", "{\"a\": 1}"),
        ("<THINK>Hm.</Think> Hello.", "Hello."),
        ("<thinking>Hm </think> hm</thinking>Hello.", "Hello."),
        ("<think>One.</think> <think>Two.</think> Hello.", "Hello."),
        ("<think>It goes on", ""),
        ("<think>Äh</thin", ""),
        ("<think>Hm.</think>  ", ""),
        ("<thin", "<thin"),
        ("<thinker> is a word", "<thinker> is a word"),
        ("I <think> so</think>.", "I <think> so</think>."),
        ("<think>Hm.</think>Say <think> aloud.", "Say <think> aloud."),
        (
            "<think>Hm.</think>Say </think> aloud.",
            "Say </think> aloud.",
        ),
        ("<reasoning>Hm.</reasoning>Hello.", "Hello."),
        ("<thought>Hm.</thought>Hello.", "Hello."),
        ("[THINK]Hm.[/THINK]Hello.", "Hello."),
        ("◁think▷Hm.◁/think▷Hello.", "Hello."),
        ("<seed:think>Hm.</seed:think>Hello.", "Hello."),
        (
            "secret plan</think>Hello there friend.",
            "Hello there friend.",
        ),
        ("Hm. 2 < 3 </THINK>\n\nHello.\n", "Hello.\n"),
        ("Äh ◁/think▷Hello.", "Hello."),
        ("Hm.</think><think>Hm.</think>Hello.", "Hello."),
        ("Hm.</think>", ""),
        ("It ends with `</think>`.", "It ends with `</think>`."),
        ("[1] is <b> and </thin", "[1] is <b> and </thin"),
    ];

    #[test]
    fn a_thought_before_the_answer_is_taken() {
        for (text, answer) in CASES {
            assert_eq!(without_thought(text.to_owned()), answer, "{text}");
        }
    }

    #[test]
    fn the_pieces_make_no_difference() {
        for (text, answer) in CASES {
            let letters: Vec<char> = text.chars().collect();
            for size in 1..=letters.len() {
                let mut filter = ThoughtFilter::default();
                let mut said = String::new();
                for piece in letters.chunks(size) {
                    let text = filter.push(piece.iter().collect());
                    if filter.take_retraction() {
                        said.clear();
                    }
                    said.push_str(&text);
                }
                said.push_str(&filter.finish());
                assert_eq!(said, answer, "{text:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_long_thought_is_not_kept() {
        let mut filter = ThoughtFilter::default();
        filter.push("<think>".to_owned());
        for _ in 0..1_000 {
            assert_eq!(filter.push("and so on, ".to_owned()), "");
            assert!(filter.held.len() <= "</thinking>".len() + 3);
        }
        assert_eq!(filter.push("</think>Hello".to_owned()), "Hello");
        assert_eq!(filter.push(" you".to_owned()), " you");
    }

    #[test]
    fn an_answer_that_begins_within_a_thought_waits_for_its_end() {
        let said = |pieces: &[&str]| {
            let mut filter = ThoughtFilter::within_thought();
            let mut said = vec![];
            for piece in pieces {
                said.push(filter.push((*piece).to_owned()));
                assert!(!filter.take_retraction(), "{pieces:?}");
            }
            let ended = filter.ended_unopened();
            said.push(filter.finish());
            (said, ended)
        };
        let strings = |pieces: &[&str]| {
            let owned = pieces.iter().map(|&piece| piece.to_owned());
            owned.collect::<Vec<String>>()
        };
        let thought = said(&["A plan. ", "More</thi", "nk>\nHi ", "you"]);
        assert_eq!(thought, (strings(&["", "", "Hi ", "you", ""]), true));
        let answer = said(&["Hi ", "you"]);
        assert_eq!(answer, (strings(&["", "", "Hi you"]), false));
        let block = said(&["<think>Hm.</think>", "Hi"]);
        assert_eq!(block, (strings(&["", "Hi", ""]), false));
        let long = "x".repeat(MAX_WITHHELD_BYTES);
        let mut filter = ThoughtFilter::within_thought();
        filter.push(long.clone());
        filter.push(long);
        assert!(filter.withheld.is_some_and(|text| text.is_empty()));
    }
}
