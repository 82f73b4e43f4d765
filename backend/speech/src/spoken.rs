//! What of a written text is spoken.

use std::{borrow::Cow, iter};

use colloquy_base::markup::{entity, is_emphasis, link, tag};
use unicode_normalization::UnicodeNormalization as _;

use super::directions;

/// Small capitals, and the letters that they stand for.
const SMALL_CAPITALS: (&str, &str) = ("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnopqrstuvwyz");

/// The text without what cannot be heard: stage directions, Markdown, HTML tags, addresses beyond their host, emoji.
#[must_use]
pub fn spoken(text: &str) -> String {
    let mut lines = Vec::new();
    let mut in_code = false;
    let text = plain_letters(text);
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") || line.starts_with("~~~") {
            in_code = !in_code;
            continue;
        }
        let is_rule = line.chars().count() >= 3
            && line
                .chars()
                .all(|c| matches!(c, '-' | '*' | '_' | '=' | '|' | ':' | ' '));
        if in_code || is_rule {
            continue;
        }
        lines.push(inline(&directions::removed(without_prefix(line))));
    }
    let joined = lines.join(" ");
    let words = joined.split_whitespace().collect::<Vec<_>>();
    words.join(" ")
}

/// The text with plain letters and digits in place of those of full width, of formulas and of small capitals, which voices read as codes.
fn plain_letters(text: &str) -> Cow<'_, str> {
    match text.chars().all(|c| plain_letter(c) == c) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(text.chars().map(plain_letter).collect()),
    }
}

fn plain_letter(c: char) -> char {
    match c {
        '\u{ff10}'..='\u{ff19}'
        | '\u{ff21}'..='\u{ff3a}'
        | '\u{ff41}'..='\u{ff5a}'
        | '\u{1d400}'..='\u{1d7ff}' => iter::once(c).nfkc().next().unwrap_or(c),
        // Those letters of formulas that were there before the others; "℃" and "№" are none.
        '\u{2100}'..='\u{2138}' => {
            let mut plain = iter::once(c).nfkc();
            match (plain.next(), plain.next()) {
                (Some(letter), None) if letter.is_ascii_alphabetic() => letter,
                _ => c,
            }
        }
        '\u{250}'..='\u{2af}' | '\u{1d00}'..='\u{1d7f}' | '\u{a720}'..='\u{a7ff}' => {
            let (small, plain) = SMALL_CAPITALS;
            let mut pairs = small.chars().zip(plain.chars());
            let found = pairs.find(|(small, _)| *small == c);
            found.map_or(c, |(_, plain)| plain)
        }
        _ => c,
    }
}

/// Without the mark of a heading, a quotation or a list. The number of a numbered list is heard.
fn without_prefix(line: &str) -> &str {
    let line = line.trim_start_matches(['#', '>', ' ']);
    if directions::begins_apart(line) {
        return line;
    }
    for mark in ["- [ ] ", "- [x] ", "- ", "* ", "+ ", "• "] {
        if let Some(item) = line.strip_prefix(mark) {
            return item;
        }
    }
    line
}

fn inline(line: &str) -> String {
    let mut spoken = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if let Some((text, after)) = link(rest) {
            spoken.push_str(&inline(text));
            rest = after;
            continue;
        }
        if let Some((host, after)) = address(rest) {
            spoken.push_str(host);
            rest = after;
            continue;
        }
        if c == '<'
            && let Some(after) = tag(rest)
        {
            spoken.push(' ');
            rest = after;
            continue;
        }
        if c == '&'
            && let Some((meant, after)) = entity(rest)
        {
            spoken.push(meant);
            rest = after;
            continue;
        }
        rest = &rest[c.len_utf8()..];
        let next = rest.chars().next();
        match c {
            '|' => spoken.push(' '),
            '`' => {}
            '*' | '_' | '~' if is_emphasis(c, spoken.chars().next_back(), next) => {}
            _ if is_silent(c) => {
                // A digit sign is a digit, a variation selector and a joiner.
                if !spoken.ends_with(' ') && !is_joiner(c) {
                    spoken.push(' ');
                }
            }
            _ => spoken.push(c),
        }
    }
    spoken
}

/// A bare address: its host, and what follows.
fn address(text: &str) -> Option<(&str, &str)> {
    let after = ["https://", "http://"]
        .into_iter()
        .find_map(|scheme| text.strip_prefix(scheme))?;
    let end = after
        .find(|c: char| c.is_whitespace() || matches!(c, '<' | '>' | '"' | ')' | ']'))
        .unwrap_or(after.len());
    // A sign at the end belongs to the sentence.
    let whole = after[..end].trim_end_matches(['.', ',', ';', ':', '!', '?']);
    let host = whole.split(['/', '?', '#', ':']).next().unwrap_or_default();
    Some((
        host.strip_prefix("www.").unwrap_or(host),
        &after[whole.len()..],
    ))
}

/// Pictures, joiners and control characters.
fn is_silent(c: char) -> bool {
    is_joiner(c)
        || c.is_control()
        || matches!(c,
            '\u{2190}'..='\u{21ff}'
            | '\u{2300}'..='\u{23ff}'
            | '\u{2460}'..='\u{27bf}'
            | '\u{2b00}'..='\u{2bff}'
            | '\u{1f000}'..='\u{1faff}')
}

fn is_joiner(c: char) -> bool {
    matches!(
        c,
        '\u{200b}' | '\u{200d}' | '\u{20e3}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_not_spoken() {
        let cases = [
            ("Plain words, as they are.", "Plain words, as they are."),
            (
                "**Bold**, *slanted* and ~~gone~~.",
                "Bold, slanted and gone.",
            ),
            ("_so_ and __so__", "so and so"),
            ("snake_case and 3 * 4", "snake_case and 3 * 4"),
            ("3*4 is 12", "3*4 is 12"),
            ("*smiles* Hello, *you* there! *waves*", "Hello, you there!"),
            ("*smiles*", ""),
            ("* smiles *\n* bread\n_waves_ Bye!", "bread Bye!"),
            (
                "We are open. *except Sundays*",
                "We are open. except Sundays",
            ),
            ("Hello *smiles* nice to see you", "Hello nice to see you"),
            (
                "Open until 5 p.m. *except* Mondays",
                "Open until 5 p.m. except Mondays",
            ),
            ("2 * 3 * 4 is 24", "2 * 3 * 4 is 24"),
            ("about ~5 km", "about ~5 km"),
            ("Use `cargo run` now", "Use cargo run now"),
            ("## Opening hours", "Opening hours"),
            ("- one\n- two\n1. three", "one two 1. three"),
            ("See [the map](https://example.org/m?x=1).", "See the map."),
            ("![A lion](lion.png) sleeps", "A lion sleeps"),
            (
                "Visit https://www.example.org/a/b?c=d.",
                "Visit example.org.",
            ),
            ("Hi 👋🏽 there 🙂!", "Hi there !"),
            ("before\n```rust\nlet x = 1;\n```\nafter", "before after"),
            ("a<br>b &amp; c", "a b & c"),
            ("5&nbsp;&euro; &#8212; or &pound;4", "5 € — or £4"),
            ("1 < 2 and 3 > 2", "1 < 2 and 3 > 2"),
            ("| a | b |\n|---|---|\n| 1 | 2 |", "a b 1 2"),
            ("Grüße, 你好。", "Grüße, 你好。"),
            ("👍", ""),
            (
                "Ｈｅｌｌｏ １２！ 𝐇𝐞𝐥𝐥𝐨, 𝟏𝟐 ℋℯllo",
                "Hello 12！ Hello, 12 Hello",
            ),
            ("ᴏᴘᴇɴ ᴅᴀɪʟʏ, 20 ℃", "open daily, 20 ℃"),
        ];
        for (written, heard) in cases {
            assert_eq!(spoken(written), heard, "{written}");
        }
    }

    #[test]
    fn what_is_spoken_stays_as_it_is() {
        for text in ["Hello there.", "It costs 3.50 euros (half price)."] {
            assert_eq!(spoken(&spoken(text)), text);
        }
    }
}
