//! Texts as BERT reads them, letter by letter: without control characters, without accents and in lower case where the
//! vocabulary is so, with the places where words end.

use std::ops::ControlFlow;

use unicode_normalization::char::decompose_canonical;
use unicode_properties::{GeneralCategory, GeneralCategoryGroup, UnicodeGeneralCategory as _};

/// What is done with the letters of texts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Letters {
    /// Control characters are left out.
    pub(super) cleans: bool,
    /// Ideographs are words of one letter.
    pub(super) parts_ideographs: bool,
    /// Accents are left out.
    pub(super) strips_accents: bool,
    /// Letters become lower case.
    pub(super) lowers: bool,
}

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// A letter of a word.
    Letter(char),
    /// A letter that is a word.
    Alone(char),
    /// The end of a word, if one has begun.
    Boundary,
}

impl Letters {
    /// Gives the parts of a text one by one, until no more are wanted.
    pub(super) fn each(
        self,
        text: &str,
        each: &mut dyn FnMut(Part) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        for letter in text.chars() {
            match letter {
                // Most letters are of these, which need not be looked up.
                _ if letter.is_ascii_alphanumeric() => self.lowered(letter, each)?,
                // The page breaks and old line breaks of documents, too, which the library leaves out as control characters.
                _ if letter.is_whitespace() => each(Part::Boundary)?,
                _ if self.cleans && is_left_out(letter) => (),
                _ if self.parts_ideographs && is_ideograph(letter) => {
                    each(Part::Boundary)?;
                    self.changed(letter, each)?;
                    each(Part::Boundary)?;
                }
                _ => self.changed(letter, each)?,
            }
        }
        ControlFlow::Continue(())
    }

    /// Gives what a letter becomes.
    fn changed(
        self,
        letter: char,
        each: &mut dyn FnMut(Part) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if !self.strips_accents {
            return self.lowered(letter, each);
        }
        let mut flow = ControlFlow::Continue(());
        decompose_canonical(letter, |part| {
            if flow.is_continue() && part.general_category() != GeneralCategory::NonspacingMark {
                flow = self.lowered(part, each);
            }
        });
        flow
    }

    fn lowered(
        self,
        letter: char,
        each: &mut dyn FnMut(Part) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self.lowers {
            true => letter
                .to_lowercase()
                .try_for_each(|letter| each(part(letter))),
            false => each(part(letter)),
        }
    }
}

fn part(letter: char) -> Part {
    let is_punctuation = match letter.is_ascii() {
        true => letter.is_ascii_punctuation(),
        false => letter.general_category_group() == GeneralCategoryGroup::Punctuation,
    };
    match is_punctuation {
        true => Part::Alone(letter),
        false => Part::Letter(letter),
    }
}

/// Whether a letter, which is no white space, says nothing to a reader.
fn is_left_out(letter: char) -> bool {
    letter == '\u{fffd}'
        || letter.general_category_group() == GeneralCategoryGroup::Other
            && letter.general_category() != GeneralCategory::Unassigned
}

/// Whether a letter is one of the ideographs that Chinese is written with, which stand without spaces between them.
fn is_ideograph(letter: char) -> bool {
    matches!(
        letter,
        '\u{4e00}'..='\u{9fff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{20000}'..='\u{2a6df}'
            | '\u{2a700}'..='\u{2b73f}'
            | '\u{2b740}'..='\u{2b81f}'
            | '\u{2b820}'..='\u{2ceaf}'
            | '\u{f900}'..='\u{faff}'
            | '\u{2f800}'..='\u{2fa1f}'
    )
}
