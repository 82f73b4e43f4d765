//! A whole text, read aloud: cut into pieces, which the synthesizer gets one after the other.
//!
//! Many synthesizers send nothing before they have made everything, so the first piece is a sentence, or a clause of a long
//! one; then pieces grow, since whole paragraphs sound better than their sentences. One that sends sound while it makes it
//! loses nothing by this: espeak-ng took 0.2 s for 2,000 characters either way, and the sound was as long to 2 ms. A client
//! that goes away leaves the rest unasked.

use std::collections::VecDeque;

use colloquy_base::fair_queue::Claim;
use colloquy_providers::{Pcm, ProviderError, SpeechStream};
use colloquy_voice::Splitter;
use futures_util::StreamExt as _;

use super::{Voice, ask, audible};
use crate::Speech;

/// The longest piece, in characters. It is what calls ask for at once: a synthesizer that streams nothing makes this much
/// within the patience that providers get.
const MAX_PIECE: usize = 300;
/// The longest second piece.
const SECOND_PIECE: usize = 150;

/// A text that is being read.
pub(super) struct TextReader {
    speech: Speech,
    voice: Voice,
    claim: Claim,
    waiting: VecDeque<String>,
    stream: Option<SpeechStream>,
    sent_characters: u64,
}

impl TextReader {
    /// A reading of this text; `None` when nothing in it can be heard. Nobody is asked before [`Self::next`].
    pub(super) fn new(speech: &Speech, voice: Voice, text: &str, claim: &Claim) -> Option<Self> {
        let waiting = pieces(&audible(speech, &voice, text, claim));
        (!waiting.is_empty()).then(|| Self {
            speech: speech.clone(),
            voice,
            claim: claim.clone(),
            waiting,
            stream: None,
            sent_characters: 0,
        })
    }

    /// The next piece of sound. A failure ends the reading.
    pub(super) async fn next(&mut self) -> Option<Result<Pcm, ProviderError>> {
        loop {
            if let Some(stream) = &mut self.stream {
                match stream.next().await {
                    Some(Ok(pcm)) => return Some(Ok(pcm)),
                    Some(Err(error)) => return Some(Err(self.failed(error))),
                    None => self.stream = None,
                }
            }
            let text = self.waiting.pop_front()?;
            let characters = text.chars().count() as u64;
            self.sent_characters += characters;
            let text = text.trim_start().to_owned();
            match ask(&self.speech, &self.voice, text, &self.claim).await {
                Ok(stream) => {
                    self.stream = Some(stream);
                    // Whoever hears the beginning is to hear the end.
                    self.claim.is_continued = true;
                }
                Err(error) => {
                    // It gave nothing for this piece.
                    self.sent_characters -= characters;
                    return Some(Err(self.failed(error)));
                }
            }
        }
    }

    /// The characters that the synthesizer got, of the text as it is spoken; without a piece that it gave no sound for.
    pub(super) fn sent_characters(&self) -> u64 {
        self.sent_characters
    }

    fn failed(&mut self, error: ProviderError) -> ProviderError {
        self.stream = None;
        self.waiting.clear();
        error
    }
}

/// The pieces of a text, which are the text again when they are put together; none when nothing in it can be heard.
fn pieces(text: &str) -> VecDeque<String> {
    let mut splitter = Splitter::default();
    splitter.push(text);
    let mut pieces = VecDeque::<String>::new();
    let mut room = 0;
    while let Some(sentence) = splitter.next_at_end() {
        let characters = sentence.chars().count();
        match pieces.back_mut() {
            Some(piece) if piece.chars().count() + characters <= room => piece.push_str(&sentence),
            _ => {
                pieces.push_back(sentence);
                room = match pieces.len() {
                    1 => 0,
                    2 => SECOND_PIECE,
                    _ => (room * 2).min(MAX_PIECE),
                };
            }
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_first_piece_and_longer_ones_after_it() {
        let sentence = "This sentence has a length of fifty characters ok.";
        assert_eq!(sentence.len(), 50);
        let text = [sentence; 40].join(" ");
        let pieces = pieces(&text);
        let lengths = pieces.iter().map(String::len).collect::<Vec<_>>();
        assert_eq!(lengths, [50, 102, 255, 255, 255, 255, 255, 255, 255, 102]);
        assert_eq!(Vec::from(pieces).concat(), text, "nothing is lost");
    }

    #[test]
    fn what_cannot_be_heard_has_no_pieces() {
        assert!(pieces("").is_empty());
        assert!(pieces("... !").is_empty());
        assert_eq!(pieces("Hi. !!"), ["Hi."]);
        assert_eq!(pieces(&"a".repeat(1_000)).len(), 4);
    }
}
