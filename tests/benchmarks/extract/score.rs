//! How much of a document's text is there: words against those of a reference, whatever their order and marks.

use std::collections::HashMap;

/// The words of a Markdown text. A word is a run of letters and digits; in scripts that put no space between words, each letter is
/// one. Comments are no text, and what HTML writes for a mark is that mark.
pub(crate) fn words(markdown: &str) -> Vec<String> {
    let mut text = String::new();
    let mut rest = markdown;
    while let Some((before, comment)) = rest.split_once("<!--") {
        text.push_str(before);
        text.push(' ');
        rest = comment.split_once("-->").map_or("", |(_, after)| after);
    }
    text.push_str(rest);
    for (name, mark) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ] {
        text = text.replace(name, mark);
    }
    let mut words = vec![];
    let mut word = String::new();
    for character in text.chars().flat_map(char::to_lowercase) {
        let is_word_itself = matches!(character, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{9FFF}' | '\u{0E00}'..='\u{0E7F}');
        if (is_word_itself || !character.is_alphanumeric()) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if is_word_itself {
            words.push(character.to_string());
        } else if character.is_alphanumeric() {
            word.push(character);
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// The Markdown without the notes of slides, which no reference has.
pub(crate) fn without_notes(markdown: &str) -> String {
    let mut is_note = false;
    let lines = markdown.split_inclusive('\n').filter(|line| {
        is_note = line.trim_end() == "> **Notes:**" || is_note && line.starts_with('>');
        !is_note
    });
    lines.collect()
}

/// The harmonic mean of how many of the words are in the reference, and how many of the reference are among the words; 1 where
/// both have none.
pub(crate) fn f1(found: &str, reference: &str) -> f64 {
    let (found, reference) = (words(found), words(reference));
    if found.is_empty() && reference.is_empty() {
        return 1.0;
    }
    let mut left: HashMap<&str, usize> = HashMap::new();
    for word in &reference {
        *left.entry(word).or_default() += 1;
    }
    let mut common = 0;
    for word in &found {
        if let Some(count) = left.get_mut(word.as_str()).filter(|count| **count > 0) {
            *count -= 1;
            common += 1;
        }
    }
    2.0 * f64::from(common) / (found.len() + reference.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_left_out_and_quotes_are_not() {
        let text = "> a quote\n\n> **Notes:**\n> said\n> aloud\n\nnext\n> more\n";
        assert_eq!(without_notes(text), "> a quote\n\n\nnext\n> more\n");
    }

    #[test]
    fn words_count_once_each() {
        assert_eq!(
            words("# A **b**-c\\_d <!-- image --> &lt;e&gt; 東京"),
            ["a", "b", "c", "d", "e", "東", "京"]
        );
        assert_eq!(f1("a b", "b a"), 1.0);
        assert_eq!(f1("a a", "a b"), 0.5);
        assert_eq!(f1("", "a"), 0.0);
        assert_eq!(f1("", ""), 1.0);
    }
}
