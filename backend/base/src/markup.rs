//! Marks inside of a line of Markdown or HTML: what of them is words.

/// The longest HTML tag that is taken for one, in bytes.
const MAX_TAG_BYTES: usize = 200;
/// The longest label or target of a link, in bytes. What opens without an end costs no more than this.
const MAX_LINK_BYTES: usize = 2_048;

/// Splits a text at the first `end` within `most` bytes.
#[must_use]
pub fn split_near<'a>(text: &'a str, end: &str, most: usize) -> Option<(&'a str, &'a str)> {
    let near = &text[..text.floor_char_boundary(most)];
    let at = near.find(end)?;
    Some((&text[..at], &text[at + end.len()..]))
}

/// Splits a text that begins with `[label](target)` or `![label](target)` into the label and the text behind it.
#[must_use]
pub fn link(text: &str) -> Option<(&str, &str)> {
    let inner = text.strip_prefix("![").or_else(|| text.strip_prefix('['))?;
    let (label, after) = split_near(inner, "](", MAX_LINK_BYTES)?;
    if label.contains(['[', ']']) {
        return None;
    }
    let (_, after) = split_near(after, ")", MAX_LINK_BYTES)?;
    Some((label, after))
}

/// Returns the text behind the HTML tag that a text begins with.
#[must_use]
pub fn tag(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('<')?;
    let begins = inner
        .strip_prefix('/')
        .unwrap_or(inner)
        .starts_with(|c: char| c.is_ascii_alphabetic());
    let (_, after) = split_near(inner, ">", MAX_TAG_BYTES)?;
    begins.then_some(after)
}

/// Splits a text that begins with one of the common character references into its meaning and the text behind it.
#[must_use]
pub fn entity(text: &str) -> Option<(&'static str, &str)> {
    const ENTITIES: &[(&str, &str)] = &[
        ("&amp;", "&"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
    ];
    ENTITIES
        .iter()
        .find_map(|(name, meant)| Some((*meant, text.strip_prefix(name)?)))
}

/// Returns true if `*`, `_` or `~` between these characters is emphasis: it stands beside a word, but not between digits (`3*4`), inside
/// of a name (`snake_case`) or between spaces (`3 * 4`).
#[must_use]
pub fn is_emphasis(mark: char, before: Option<char>, after: Option<char>) -> bool {
    let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let is_digit = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    let is_space = |c: Option<char>| c.is_none_or(char::is_whitespace);
    let stands_alone = is_space(before) && is_space(after);
    let in_a_word = is_word(before) && is_word(after) && mark != '*';
    let multiplies = is_digit(before) && is_digit(after);
    // One tilde before a number means "about".
    let about = mark == '~' && is_digit(after);
    !stands_alone && !in_a_word && !multiplies && !about
}
