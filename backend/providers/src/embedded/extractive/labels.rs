//! The labels in lists of questions and answers ("Q: Is it free? A: Yes."), which are not said.

use colloquy_knowledge::Passage;

/// What stands in front of a question.
const QUESTION: &[&str] = &["q", "question", "frage"];
/// What stands in front of a question or an answer.
const ALL: &[&str] = &["q", "question", "frage", "a", "answer", "antwort"];
/// What ends a label.
const ENDS: [char; 3] = [':', '.', ')'];
/// The longest label, in bytes: "Question 1000:".
const MAX_BYTES: usize = 16;

/// Returns what ends the labels of a passage; `None` if it labels no question, or choices. Without a question, "A:" may
/// be the first of several choices.
pub(super) fn end_of(passage: &Passage, text: &str) -> Option<char> {
    let (_, end, _) = labels(passage, text).find(|(name, _, behind)| {
        let is_question = QUESTION.iter().any(|it| it.eq_ignore_ascii_case(name));
        // "Q. Smith" is a name.
        is_question && behind.contains(['?', '？', '؟'])
    })?;
    let is_second =
        |(name, other, _): (&str, char, &str)| other == end && name.eq_ignore_ascii_case("b");
    // "Question 3: Which is bigger?" has choices below it, "A: Jupiter" and "B: Mars".
    (!labels(passage, text).any(is_second)).then_some(end)
}

/// The labels in front of the headings and lines of a passage.
fn labels<'a>(
    passage: &'a Passage,
    text: &'a str,
) -> impl Iterator<Item = (&'a str, char, &'a str)> {
    let headings = passage.headings.iter().map(String::as_str);
    let lines = headings.chain(text.lines());
    lines.filter_map(|line| {
        label(line.trim_start_matches(|c: char| c.is_whitespace() || "#*_->+|".contains(c)))
    })
}

/// Returns a text without the label in front of it, if it has one that ends like this.
pub(super) fn without(text: &str, label_end: Option<char>) -> &str {
    let Some((name, end, behind)) = label(text).filter(|_| label_end.is_some()) else {
        return text;
    };
    let is_label = Some(end) == label_end && ALL.iter().any(|it| it.eq_ignore_ascii_case(name));
    match is_label && !behind.is_empty() {
        true => behind,
        false => text,
    }
}

/// The name of a label in front of a text, without its number, what ends it, and the text behind it.
fn label(text: &str) -> Option<(&str, char, &str)> {
    let near = &text[..text.floor_char_boundary(MAX_BYTES)];
    let at = near.find(ENDS)?;
    let end = text[at..].chars().next()?;
    let name = text[..at].trim_end_matches(|c: char| c.is_ascii_digit() || c == ' ');
    // The emphasis of "**Q:** Is it free?" ends behind it.
    let behind = text[at + end.len_utf8()..].trim_start_matches(['*', '_']);
    behind
        .starts_with(char::is_whitespace)
        .then(|| (name, end, behind.trim_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_those_of_a_list_of_questions() {
        let end = |text| end_of(&Passage::default(), text);
        assert_eq!(end("Welcome.\n\n**Q:** Is it free?\n\nA: Yes."), Some(':'));
        assert_eq!(end("## Q1. Is it free?"), Some('.'));
        for text in [
            "A: red\nB: blue",
            "Q. Smith came.",
            "Quite: is it?",
            "Q:Is it?",
            "Question 3: Which is bigger?\nA: Jupiter\nB: Mars",
            "",
        ] {
            assert_eq!(end(text), None, "{text}");
        }
        let below = Passage {
            headings: vec!["FAQ".to_owned(), "Question 3: Why?".to_owned()],
            ..Passage::default()
        };
        assert_eq!(end_of(&below, "A: So."), Some(':'));

        let said = |text| without(text, Some(':'));
        for (text, expected) in [
            ("A: Yes, it is.", "Yes, it is."),
            ("Q2: Is it?", "Is it?"),
            ("Answer: No.", "No."),
            ("A. Smith came.", "A. Smith came."),
            ("Note: closed.", "Note: closed."),
            ("A:", "A:"),
            ("", ""),
        ] {
            assert_eq!(said(text), expected);
            assert_eq!(without(text, None), text);
        }
    }
}
