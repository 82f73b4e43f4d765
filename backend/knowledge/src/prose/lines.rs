//! Ends of lines inside of a paragraph: those over which its sentence goes on, and `<br>`, which parts the lines of a list.

use std::borrow::Cow;

use colloquy_base::markup::tag;

use super::{fence, is_picture, is_rule, is_wide, item, marked_heading, plain};

/// A line of this width may have been wrapped, so that its sentence goes on in the next line. Wide characters count twice.
const WRAPPED_WIDTH: usize = 40;
/// Words that end neither a sentence nor a heading (English), so that the next line goes on.
const GOES_ON_AFTER: &[&str] = &[
    "an", "the", "and", "or", "of", "to", "at", "by", "than", "into", "after", "before", "until",
    "within", "during", "between", "its", "their", "our", "your",
];

/// Whether a line may belong to the paragraph before it.
pub(super) fn goes_on(line: &str) -> bool {
    let begins_another = marked_heading(line).is_some()
        || item(line).is_some()
        || fence(line).is_some()
        || is_rule(line)
        || is_picture(line)
        || line.starts_with('|');
    !line.is_empty() && !begins_another
}

/// Whether a sentence goes on over the end of a line.
pub(super) fn is_soft(line: &str, next: &str) -> bool {
    if line.ends_with("  ") || line.ends_with('\\') {
        return false;
    }
    let width = |c: char| if is_wide(c) { 2 } else { 1 };
    let line = line.trim();
    let is_long = line.chars().map(width).sum::<usize>() >= WRAPPED_WIDTH;
    let last = line.rsplit(char::is_whitespace).next().unwrap_or_default();
    is_long
        || GOES_ON_AFTER.contains(&last)
        || line.ends_with(',')
        || next.starts_with(char::is_lowercase)
}

/// A paragraph with a comma for each `<br>` that ends a line of a list, and a blank for each that stands inside of a sentence. The lines stay
/// one sentence: each of them says little without the first one ("Opening hours:").
pub(super) fn without_breaks(text: &str) -> Cow<'_, str> {
    let Some((mut line, mut rest)) = split_at_break(text) else {
        return Cow::Borrowed(text);
    };
    let has_title = plain(line).ends_with(':');
    let mut joined = String::with_capacity(text.len());
    joined.push_str(line);
    loop {
        let (next, after) = match split_at_break(rest) {
            Some((next, after)) => (next, Some(after)),
            None => (rest, None),
        };
        if !next.trim().is_empty() {
            joined.truncate(joined.trim_end().len());
            joined.push_str(match is_listed(line, next, has_title) {
                true => ", ",
                false => " ",
            });
            joined.push_str(next.trim_start());
            line = next;
        }
        match after {
            Some(after) => rest = after,
            None => return Cow::Owned(joined),
        }
    }
}

/// True if a `<br>` between two lines parts those of a list, by the rule for other lines. Where the first line of the paragraph is no title, which
/// ends with a colon, lines of a list have numbers and words, both of them.
fn is_listed(line: &str, next: &str, has_title: bool) -> bool {
    // A picture in front of words is not read.
    if line.contains("![") {
        return false;
    }
    let (line, next) = (plain(line), plain(next));
    let is_open = line.ends_with(|c: char| c.is_alphanumeric() || c == ')');
    // Digits alone may go on with a number.
    let begins = next.starts_with(char::is_uppercase)
        || next.starts_with(char::is_numeric) && next.contains(char::is_alphabetic);
    let is_entry =
        |line: &str| line.contains(char::is_numeric) && line.contains(char::is_alphabetic);
    let may_be_listed = has_title || is_entry(&line) && is_entry(&next);
    is_open && begins && may_be_listed && !is_soft(&line, &next)
}

/// Splits a text at its first `<br>`.
fn split_at_break(text: &str) -> Option<(&str, &str)> {
    text.match_indices('<').find_map(|(at, _)| {
        let after = tag(&text[at..])?;
        let inner = &text[at + 1..text.len() - after.len() - 1];
        let name = inner.split([' ', '/']).next().unwrap_or_default();
        name.eq_ignore_ascii_case("br")
            .then_some((&text[..at], after))
    })
}
