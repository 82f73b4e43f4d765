//! What a model thinks before it answers, where its server does not tell that from the answer: `<think>…</think>` at the beginning of
//! the text.
//!
//! Clients of text generation get the text as the model sends it, since theirs may read the block. Whoever takes an answer for words (a call, a
//! message, an analysis, a rewriting, a summary) takes it without.

/// The beginnings and the ends of such blocks.
const BLOCKS: [(&str, &str); 2] = [("<think>", "</think>"), ("<thinking>", "</thinking>")];

/// The text of a whole answer without the blocks of thought that it begins with. Of a block that does not end, nothing is left.
#[must_use]
pub fn without_thought(text: String) -> String {
    let mut filter = ThoughtFilter::default();
    let mut answer = filter.push(text);
    answer.push_str(&filter.finish());
    answer
}

/// Takes blocks of thought from the beginning of a text that comes in pieces, wherever these end. White space around blocks goes with
/// them; a text without any stays as it is.
#[derive(Debug, Default)]
pub struct ThoughtFilter {
    state: State,
    /// What may be the beginning of a block, or inside of one the beginning of its end.
    held: String,
    /// A block was taken.
    has_thought: bool,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    /// Nothing of the answer came.
    #[default]
    Before,
    /// A block goes on until this.
    Thinking(&'static str),
    Answering,
}

impl ThoughtFilter {
    /// Takes the next piece, and returns what of the answer is there by now.
    pub fn push(&mut self, piece: String) -> String {
        if matches!(self.state, State::Answering) {
            return piece;
        }
        self.held.push_str(&piece);
        loop {
            let lower = self.held.to_ascii_lowercase();
            match self.state {
                State::Answering => return std::mem::take(&mut self.held),
                State::Thinking(end) => match lower.find(end) {
                    Some(at) => {
                        self.held.drain(..at + end.len());
                        self.state = State::Before;
                    }
                    None => {
                        let tail = self.held.len().saturating_sub(end.len());
                        self.held.drain(..self.held.floor_char_boundary(tail));
                        return String::new();
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
                        return String::new();
                    } else {
                        if self.has_thought {
                            self.held.drain(..indent);
                        }
                        self.state = State::Answering;
                    }
                }
            }
        }
    }

    /// What is left of the answer when no more text comes.
    #[must_use]
    pub fn finish(self) -> String {
        match self.state {
            State::Thinking(_) => String::new(),
            State::Before if self.has_thought => self.held.trim_start().to_owned(),
            State::Before | State::Answering => self.held,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CASES: [(&str, &str); 16] = [
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
                let pieces = letters.chunks(size).map(|piece| piece.iter().collect());
                let mut said: String = pieces.map(|piece| filter.push(piece)).collect();
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
}
