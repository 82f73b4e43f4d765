//! What was really heard and said, in the order in which it began.

use crate::interface::{Line, LineId};

#[derive(Debug, Default)]
pub(crate) struct Transcript {
    lines: Vec<Line>,
    next_id: u64,
}

impl Transcript {
    /// An id for a line that may come, so that interim results and the final one are the same line to the client.
    pub(crate) fn reserve(&mut self) -> LineId {
        let id = LineId(self.next_id);
        self.next_id += 1;
        id
    }

    pub(crate) fn lines(&self) -> &[Line] {
        &self.lines
    }

    /// Records a line where it belongs by its beginning: a late transcript goes before what was said after it.
    pub(crate) fn insert(&mut self, line: Line) {
        let place = self.lines.partition_point(|other| other.at <= line.at);
        self.lines.insert(place, line);
    }

    /// Sets a line of the character; it appears with its first words and goes with its last.
    pub(crate) fn set_bot(&mut self, line: Line) {
        // The line that changes is nearly always the last one.
        let place = self.lines.iter().rposition(|other| other.id == line.id);
        match place {
            Some(place) if line.text.is_empty() => drop(self.lines.remove(place)),
            Some(place) => self.lines[place] = line,
            None if line.text.is_empty() => {}
            None => self.insert(line),
        }
    }
}

/// The part of `text` that was spoken when `played` of `total` samples were: whole words only.
pub(crate) fn spoken_part(text: &str, played: u64, total: u64) -> &str {
    if played >= total {
        return text;
    }
    let characters = text.chars().count() as u64;
    let spoken = (u128::from(characters) * u128::from(played) / u128::from(total)) as usize;
    let Some((cut, after)) = text.char_indices().nth(spoken) else {
        return text;
    };
    let before = &text[..cut];
    let inside_word = |character: char| character.is_alphanumeric() && !is_ideographic(character);
    let splits_word = inside_word(after) && before.chars().next_back().is_some_and(inside_word);
    let whole = match splits_word {
        true => before.trim_end_matches(inside_word),
        false => before,
    };
    whole.trim_end()
}

/// Scripts that set no spaces between words; each character may end one.
pub(crate) fn is_ideographic(character: char) -> bool {
    let point = u32::from(character);
    // CJK radicals to unified ideographs, compatibility ideographs, full-width forms, and the planes for ideographs.
    [
        0x2e80..=0x9fff,
        0xf900..=0xfaff,
        0xff00..=0xffef,
        0x20000..=0x3ffff,
    ]
    .iter()
    .any(|block| block.contains(&point))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::interface::Originator;

    #[test]
    fn spoken_part_keeps_whole_words() {
        let cases = [
            ("Hello there, friend.", 0, 10, ""),
            ("Hello there, friend.", 1, 10, ""),
            ("Hello there, friend.", 3, 10, "Hello"),
            ("Hello there, friend.", 5, 10, "Hello"),
            ("Hello there, friend.", 6, 10, "Hello there,"),
            ("Hello there, friend.", 10, 10, "Hello there, friend."),
            ("Hello", 0, 0, "Hello"),
            ("こんにちは世界", 5, 7, "こんにちは"),
            ("", 1, 2, ""),
        ];
        for (text, played, total, expected) in cases {
            assert_eq!(
                spoken_part(text, played, total),
                expected,
                "{text} {played}/{total}"
            );
        }
    }

    #[test]
    fn a_late_line_goes_before_what_began_after_it() {
        let mut transcript = Transcript::default();
        let line = |id, at| Line {
            id: LineId(id),
            originator: Originator::User,
            text: "x".to_owned(),
            at: Duration::from_secs(at),
            interrupted: false,
            is_aside: false,
        };
        transcript.insert(line(1, 5));
        transcript.insert(line(0, 2));
        transcript.insert(line(2, 5));
        let ids: Vec<_> = transcript.lines().iter().map(|line| line.id.0).collect();
        assert_eq!(ids, [0, 1, 2]);
    }
}
