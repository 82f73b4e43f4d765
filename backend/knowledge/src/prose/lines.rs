//! Ends of lines inside of a paragraph: those over which its sentence goes on, and `<br>`, which parts the lines of a list.

use std::{borrow::Cow, iter};

use colloquy_base::markup::tag;

use super::{
    HEADING_WORDS, behind_marks, fence, is_picture, is_rule, is_wide, item, marked_heading, plain,
    unquoted,
};

/// A line of this width may have been wrapped, so that its sentence goes on in the next line. Wide characters count twice.
const WRAPPED_WIDTH: usize = 40;
/// Words that end neither a sentence nor a heading (English), so that the next line goes on.
const GOES_ON_AFTER: &[&str] = &[
    "an", "the", "and", "or", "of", "to", "at", "by", "than", "into", "after", "before", "until",
    "within", "during", "between", "its", "their", "our", "your", "every",
];
/// Further words behind which a line of marked words alone is part of the sentence (English), though they may end a heading.
const GOES_ON_BEFORE_MARKS: &[&str] = &[
    "is", "are", "was", "were", "be", "has", "have", "can", "may", "must", "will", "called",
    "named", "a", "in", "on", "from", "with", "without", "for", "as", "via", "per", "see", "under",
    "over", "near", "behind", "beside", "opposite", "around", "through", "against",
];
/// Words that go on with a sentence behind marked words (English): "`widget x` to start the pump".
const GOES_ON_BEHIND_MARKS: &[&str] = &[
    "to", "and", "or", "of", "for", "in", "on", "at", "by", "with", "from", "as", "until",
    "before", "after",
];
/// Signs that belong to the number behind them.
const NUMBER_SIGNS: &[char] = &['#', '+', '$', '€', '£', '¥'];
/// In so many lines a sentence has to end that goes on in a number.
const SENTENCE_LINES: usize = 3;
/// A first line of so few words is a heading or a label rather than a part of a sentence that was wrapped.
const LABEL_WORDS: usize = 2;
/// Words that begin a heading (English) which ends as a sentence may break off: "Where we are".
const HEADINGS_BEGIN: &[&str] = &["how", "what", "when", "where", "which", "who", "why"];
/// What ends a sentence, or announces what follows it.
const ENDS: &[char] = &[
    '.', '!', '?', ':', ';', '…', '。', '！', '？', '：', '।', '؟',
];

/// A paragraph, or an item of a list, as far as its lines were joined.
#[derive(Debug)]
pub(super) struct Joined<'a> {
    /// The first line, without the mark of an item.
    first: &'a str,
    /// True for an item of a list.
    is_item: bool,
    /// How far the first line is indented, in bytes.
    indentation: usize,
    /// True if a dash stands in front of the first line, as it does of items of a list.
    is_dashed: bool,
    /// The last line as it is written, since two blanks at its end break it.
    last: &'a str,
    /// The number of words.
    words: usize,
    /// The number of lines.
    pub(super) lines: usize,
}

impl<'a> Joined<'a> {
    /// A paragraph with its first line.
    pub(super) fn new(line: &'a str) -> Self {
        Self {
            first: without_mark(line),
            is_item: item(unquoted(line)).is_some(),
            indentation: indentation(line),
            is_dashed: behind_dash(unquoted(line)).is_some(),
            last: line,
            words: without_mark(line).split_whitespace().count(),
            lines: 1,
        }
    }

    /// Adds a line.
    pub(super) fn push(&mut self, line: &'a str) {
        self.last = line;
        self.words += line.split_whitespace().count();
        self.lines += 1;
    }

    /// Returns true if the paragraph goes on in a line, behind which `rest` stands.
    pub(super) fn goes_on_in(&self, line: &str, rest: &str) -> bool {
        let next = unquoted(line);
        if let Some(aside) = behind_dash(next) {
            return self.goes_on_behind_dash(next, aside, rest);
        }
        let goes_on = may_go_on(next)
            && (is_soft(self.last, next)
                || self.is_inside(next)
                || self.goes_on_in_marks(line, rest));
        goes_on || self.goes_on_in_number(line, rest)
    }

    /// Returns true if the address that the last line belongs to goes on in a line: a street in front of its town, or a name in front of both.
    /// Commas part the lines of an address.
    pub(super) fn is_address_before(&self, line: &str, rest: &str) -> bool {
        let next = unquoted(line);
        let following = || rest.lines().next().map(unquoted).unwrap_or_default();
        let may_be_name = || self.lines == 1 && is_title(self.first) && !self.names_what_follows();
        is_street(self.before()) && is_town(next)
            || is_street(next) && may_be_name() && is_town(following())
    }

    /// The words of the last line.
    fn before(&self) -> &str {
        match self.lines {
            1 => self.first,
            _ => unquoted(self.last),
        }
    }

    /// Returns true if all lines so far are a label or a heading rather than a part of a sentence that was wrapped.
    fn names_what_follows(&self) -> bool {
        let is_short = self.words <= HEADING_WORDS;
        self.lines == 1 && (self.words <= LABEL_WORDS || is_short && begins_heading(self.first))
    }

    /// Returns true if a line that begins with a number is part of the sentence, which ends nearby: the line before ends none, and the line is no
    /// entry of a list. Inside of a paragraph, `1.` alone begins a list.
    fn goes_on_in_number(&self, line: &str, rest: &str) -> bool {
        let next = unquoted(line);
        // A line that is indented less than its paragraph is not inside of it.
        let is_outside = self.is_item || indentation(line) < self.indentation;
        let begins_list = is_outside || next.starts_with("1. ") || next.starts_with("1) ");
        let is_item = item(next).is_some() && begins_list;
        let is_name = self.lines == 1 && is_title(self.first);
        if !begins_with_number(next) || is_item || is_name || self.names_what_follows() {
            return false;
        }
        let lines = rest.lines().map(unquoted);
        let mut behind = lines.take_while(|line| !line.is_empty());
        let mut near = iter::once(next).chain(behind.clone()).take(SENTENCE_LINES);
        let following = behind.next().unwrap_or_default();
        !is_broken(self.last)
            && !ends_sentence(self.before())
            && !is_counted_again(next, following)
            && near.any(has_end)
    }

    /// Returns true if a line with a dash in front is an aside of the sentence ("– unlike its predecessor – every"), and no item of a list. Of
    /// items there are several.
    fn goes_on_behind_dash(&self, next: &str, aside: &str, rest: &str) -> bool {
        // An em dash marks no item.
        if next.starts_with('—') && is_soft(self.last, next) {
            return true;
        }
        let ends_with_dash = aside.ends_with(['–', '—']) && !is_broken(self.last);
        let is_aside = is_closed(aside) || aside.starts_with(char::is_lowercase);
        let names_what_follows = self.lines == 1 && self.words <= LABEL_WORDS;
        is_aside
            && (is_soft(self.last, aside) || ends_with_dash)
            && (is_closed(aside) || !names_what_follows)
            && !ends_sentence(self.last)
            && !self.is_dashed
            && !is_dashed_again(rest.lines())
    }

    /// Returns true if a line stands inside of a sentence, since the last line is an aside behind which more has to follow, or marked words alone.
    fn is_inside(&self, next: &str) -> bool {
        let last = unquoted(self.last);
        let is_open = match behind_dash(last) {
            Some(aside) => is_closed(aside),
            None => behind_marks(last) == Some("") && begins_inside(next),
        };
        is_open && self.lines > 1 && !is_broken(self.last) && !ends_sentence(last)
    }

    /// Returns true if a line that begins with a link, code or emphasis is part of the sentence: the line before ends none, and the sentence goes
    /// on behind the mark.
    fn goes_on_in_marks(&self, line: &str, rest: &str) -> bool {
        let next = unquoted(line);
        let Some(behind) = behind_marks(next) else {
            return false;
        };
        let before = self.before();
        if ends_sentence(before) || is_broken(self.last) || self.names_what_follows() {
            return false;
        }
        let is_short = self.words <= HEADING_WORDS;
        let is_open = GOES_ON_BEFORE_MARKS.contains(&last_word(before));
        let goes_on = match behind.chars().next() {
            None => !is_broken(line) && begins_in(rest),
            Some(_) => {
                ends_at_once(behind)
                    || is_open && begins_inside(behind)
                    || !begins_with_name(next) && goes_on_behind_marks(behind)
            }
        };
        let words = next.trim_start_matches(['*', '_']);
        let is_label = next.starts_with(['*', '_'])
            && next.len() - words.len() > 1
            && !words.starts_with(char::is_lowercase);
        let may_be_label = is_short && (is_label || self.lines == 1 && is_title(before));
        goes_on
            && (is_open
                || !may_be_label
                    && behind_marks(self.first).is_none()
                    && !is_marked_again(line, rest))
    }
}

/// Whether a line may belong to the paragraph before it.
fn may_go_on(line: &str) -> bool {
    let begins_another = marked_heading(line).is_some()
        || item(line).is_some()
        || fence(line).is_some()
        || is_rule(line)
        || is_picture(line)
        || line.starts_with('|');
    !line.is_empty() && !begins_another
}

/// Whether a sentence goes on over the end of a line.
fn is_soft(line: &str, next: &str) -> bool {
    if is_broken(line) {
        return false;
    }
    let width = |c: char| if is_wide(c) { 2 } else { 1 };
    let line = line.trim();
    let is_long = line.chars().map(width).sum::<usize>() >= WRAPPED_WIDTH;
    is_long
        || GOES_ON_AFTER.contains(&last_word(line))
        || line.ends_with(',')
        || next.starts_with(char::is_lowercase)
}

/// Returns true if a line ends where it is broken on purpose.
fn is_broken(line: &str) -> bool {
    line.ends_with("  ") || line.ends_with('\\')
}

fn last_word(line: &str) -> &str {
    line.rsplit(char::is_whitespace).next().unwrap_or_default()
}

/// Returns true if a line ends a sentence, or announces what follows it.
fn ends_sentence(line: &str) -> bool {
    let words = line.trim_end();
    let words = words.trim_end_matches(['*', '_', '`', ')', '"', '\'', '”', '’']);
    words.ends_with(ENDS)
}

/// Returns true if nothing but the end of a sentence stands in front of a text.
fn ends_at_once(text: &str) -> bool {
    let behind = text.trim_start_matches(['.', '!', '?']);
    let is_end = behind.is_empty() || behind.starts_with(char::is_whitespace);
    is_end && behind.len() < text.len()
}

/// Returns true if a sentence ends in a line, or with it.
fn has_end(line: &str) -> bool {
    line.split_whitespace()
        .any(|word| word.ends_with(['.', '!', '?', '。', '！', '？', '।', '؟']))
}

fn begins_with_number(line: &str) -> bool {
    let number = line.trim_start_matches(NUMBER_SIGNS);
    number.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns true if the line behind one that begins with a number is another entry of the same list ("1 Open the lid", "2 Close it").
fn is_counted_again(line: &str, following: &str) -> bool {
    let mut words = line.split_whitespace();
    let ends_at_once = words.next().is_some_and(ends_sentence);
    let is_entry = match item(line) {
        Some(_) => item(following).is_some(),
        None => {
            let is_name = words
                .next()
                .is_some_and(|it| it.starts_with(char::is_uppercase));
            !ends_at_once && (is_name || ends_sentence(line))
        }
    };
    is_entry && begins_with_number(following)
}

/// Returns true if a line is a street with the number of a house in front or behind.
fn is_street(line: &str) -> bool {
    let is_number = |word: &str| {
        let letter = word.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = word.len() - letter.len();
        (1..=3).contains(&digits) && letter.len() <= 1 && letter.chars().all(char::is_alphabetic)
    };
    let mut words = line.split_whitespace();
    let is_short = (2..=HEADING_WORDS).contains(&words.clone().count());
    is_short && (words.next().is_some_and(is_number) || words.next_back().is_some_and(is_number))
}

/// Returns true if a line begins with a postal code and a name.
fn is_town(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let is_code = words.next().is_some_and(|code| {
        let is_number = code.starts_with(|c: char| c.is_ascii_digit());
        let has_digits = code.chars().all(|c| c.is_ascii_digit() || c == '-');
        is_number && has_digits && (4..=6).contains(&code.len())
    });
    is_code
        && words
            .next()
            .is_some_and(|it| it.starts_with(char::is_uppercase))
}

/// Returns true if a line begins with marked words other than code that are written like a name.
fn begins_with_name(line: &str) -> bool {
    let words = line.trim_start_matches(['*', '_', '[']);
    !line.starts_with('`') && !words.starts_with(char::is_lowercase)
}

/// Returns true if a sentence goes on in a text that stands behind marked words.
fn goes_on_behind_marks(behind: &str) -> bool {
    let first = behind.split_whitespace().next().unwrap_or_default();
    GOES_ON_BEHIND_MARKS.contains(&first)
}

/// Returns true if an aside ends in its line, so that the sentence around it goes on.
fn is_closed(aside: &str) -> bool {
    let dash = aside.rfind(['–', '—']);
    dash.is_some_and(|at| {
        let (inside, behind) = aside.split_at(at);
        let behind = behind.trim_start_matches(['–', '—']);
        let goes_on = behind.trim_start().starts_with(char::is_lowercase);
        inside.ends_with(' ') && (behind.is_empty() || behind.starts_with(' ') && goes_on)
    })
}

/// Returns true if a text cannot begin a sentence.
fn begins_inside(text: &str) -> bool {
    text.starts_with(char::is_lowercase) || text.starts_with([',', ';', '(', ')'])
}

/// Returns true if the first of these lines goes on with the sentence before it.
fn begins_in(rest: &str) -> bool {
    let mut lines = rest.lines();
    let next = lines.next().map(unquoted).unwrap_or_default();
    match behind_dash(next) {
        Some(aside) => aside.starts_with(char::is_lowercase) && !is_dashed_again(lines),
        None => may_go_on(next) && begins_inside(next),
    }
}

/// Returns true if a line begins as headings do that end as a sentence may break off.
fn begins_heading(line: &str) -> bool {
    let first = line.split_whitespace().next().unwrap_or_default();
    let asks = HEADINGS_BEGIN.contains(&first.to_lowercase().as_str());
    asks && !line.contains(',')
}

/// Returns true if all longer words are capitalized: "The Grand Hotel".
fn is_title(line: &str) -> bool {
    let mut words = line.split_whitespace();
    words.all(|word| word.chars().count() <= 3 || !word.starts_with(char::is_lowercase))
}

fn indentation(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// A line without the mark of an item of a list.
fn without_mark(line: &str) -> &str {
    let line = unquoted(line);
    item(line).unwrap_or(line)
}

/// Returns the text behind a dash in front of a line. A hyphen is none.
fn behind_dash(line: &str) -> Option<&str> {
    let behind = line
        .strip_prefix("– ")
        .or_else(|| line.strip_prefix("— "))?;
    Some(behind.trim_start())
}

/// Returns true if a dash stands in front of another line of the same list. The search ends at that line, so that all searches in a
/// document together read it once.
fn is_dashed_again<'a>(lines: impl Iterator<Item = &'a str>) -> bool {
    let mut is_behind_blank = false;
    for line in lines.map(unquoted) {
        if behind_dash(line).is_some() {
            return true;
        }
        let is_paragraph = is_behind_blank && !line.is_empty() && item(line).is_none();
        if is_paragraph || marked_heading(line).is_some() || fence(line).is_some() {
            return false;
        }
        is_behind_blank = line.is_empty();
    }
    false
}

/// Returns true if another line of the paragraph is marked words as this one is, so that these name what stands behind them. In the middle of
/// another sentence it says nothing of this one. The search ends at that line.
fn is_marked_again(line: &str, rest: &str) -> bool {
    let mut last = line;
    let behind = behind_marks(unquoted(line)).unwrap_or_default();
    let goes_on = goes_on_behind_marks(behind);
    // A sentence ended before the last line.
    let mut has_ended = has_end(behind);
    for line in rest.lines() {
        let next = unquoted(line);
        if !may_go_on(next) {
            return false;
        }
        let behind = behind_marks(next);
        let is_alike = behind.is_some_and(|it| match goes_on {
            true => goes_on_behind_marks(it),
            false => it.is_empty() || ends_at_once(it),
        });
        let is_open = GOES_ON_BEFORE_MARKS.contains(&last_word(unquoted(last)));
        if is_alike && !is_open && !is_soft(last, next) {
            return !has_ended || ends_sentence(last);
        }
        has_ended |= ends_sentence(last);
        last = line;
    }
    false
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

#[cfg(test)]
#[path = "lines_tests.rs"]
mod tests;
