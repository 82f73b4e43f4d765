//! Marks inside of a line of Markdown or HTML: what of them is words.

/// The longest HTML tag that is taken for one, in bytes.
const MAX_TAG_BYTES: usize = 200;
/// The longest label or target of a link, in bytes. What opens without an end costs no more than this.
const MAX_LINK_BYTES: usize = 2_048;
/// The longest name or number of a character reference with the semicolon behind it, in bytes.
const MAX_ENTITY_BYTES: usize = 10;

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

/// Splits a text that begins with a character reference, a number or one of the common names, into its meaning and the text behind it. Blanks of
/// all widths are a plain one.
#[must_use]
pub fn entity(text: &str) -> Option<(char, &str)> {
    let (name, after) = split_near(text.strip_prefix('&')?, ";", MAX_ENTITY_BYTES)?;
    let meant = match name.strip_prefix('#') {
        Some(number) => {
            let hexadecimal = number.strip_prefix(['x', 'X']);
            let code = match hexadecimal {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
        None => named(name)?,
    };
    match meant.is_whitespace() {
        true => Some((' ', after)),
        false => (!meant.is_control()).then_some((meant, after)),
    }
}

fn named(name: &str) -> Option<char> {
    // The names of U+00A0 to U+00FF, in their order.
    const LATIN_1: [&str; 96] = [
        "nbsp", "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf",
        "laquo", "not", "shy", "reg", "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro",
        "para", "middot", "cedil", "sup1", "ordm", "raquo", "frac14", "frac12", "frac34", "iquest",
        "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig", "Ccedil", "Egrave",
        "Eacute", "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve",
        "Oacute", "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc",
        "Uuml", "Yacute", "THORN", "szlig", "agrave", "aacute", "acirc", "atilde", "auml", "aring",
        "aelig", "ccedil", "egrave", "eacute", "ecirc", "euml", "igrave", "iacute", "icirc",
        "iuml", "eth", "ntilde", "ograve", "oacute", "ocirc", "otilde", "ouml", "divide", "oslash",
        "ugrave", "uacute", "ucirc", "uuml", "yacute", "thorn", "yuml",
    ];
    const OTHERS: &[(&str, char)] = &[
        ("amp", '&'),
        ("lt", '<'),
        ("gt", '>'),
        ("quot", '"'),
        ("apos", '\''),
        ("OElig", 'Œ'),
        ("oelig", 'œ'),
        ("Scaron", 'Š'),
        ("scaron", 'š'),
        ("Yuml", 'Ÿ'),
        ("ensp", ' '),
        ("emsp", ' '),
        ("thinsp", ' '),
        ("ndash", '–'),
        ("mdash", '—'),
        ("lsquo", '‘'),
        ("rsquo", '’'),
        ("sbquo", '‚'),
        ("ldquo", '“'),
        ("rdquo", '”'),
        ("bdquo", '„'),
        ("bull", '•'),
        ("hellip", '…'),
        ("permil", '‰'),
        ("prime", '′'),
        ("Prime", '″'),
        ("lsaquo", '‹'),
        ("rsaquo", '›'),
        ("euro", '€'),
        ("trade", '™'),
        ("larr", '←'),
        ("uarr", '↑'),
        ("rarr", '→'),
        ("darr", '↓'),
        ("minus", '−'),
        ("asymp", '≈'),
        ("ne", '≠'),
        ("le", '≤'),
        ("ge", '≥'),
    ];
    let latin = (0xa0..=u8::MAX).zip(LATIN_1);
    let mut latin = latin.map(|(code, other)| (other, char::from(code)));
    let mut others = OTHERS.iter().copied();
    let is_it = |(other, _): &(&str, char)| *other == name;
    let (_, meant) = latin.find(is_it).or_else(|| others.find(is_it))?;
    Some(meant)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn character_references_are_read() {
        for (text, meant, after) in [
            ("&amp;lt;", '&', "lt;"),
            ("&nbsp;5", ' ', "5"),
            ("&euro; or", '€', " or"),
            ("&pound;4", '£', "4"),
            ("&mdash;", '—', ""),
            ("&yuml;", 'ÿ', ""),
            ("&auml;", 'ä', ""),
            ("&Auml;", 'Ä', ""),
            ("&#39;s", '\'', "s"),
            ("&#8364;", '€', ""),
            ("&#x20AC;", '€', ""),
            ("&#10;", ' ', ""),
        ] {
            assert_eq!(entity(text), Some((meant, after)), "{text}");
        }
        for text in [
            "& so", "&so;", "&euro", "&;", "&#;", "&#x;", "&#0;", "&#xd800;", "R&D",
        ] {
            assert_eq!(entity(text), None, "{text}");
        }
    }
}
