//! Products: asterisks that multiply ("2 * 3"), and the word that a language says for them.

use std::borrow::Cow;

use colloquy_base::language;

/// The most of a text on each side of an asterisk that is read for a product without blanks, in bytes.
const MAX_PRODUCT_BYTES: usize = 64;

/// The word that multiplies in a language, or `None` where it is not known. espeak-ng says nothing for the sign "×" in most of them.
fn times(language: &str) -> Option<&'static str> {
    Some(match language::primary(language) {
        "cs" | "sk" => "krát",
        "da" => "gange",
        "de" => "mal",
        "en" => "times",
        "es" => "por",
        "fi" => "kertaa",
        "fr" => "fois",
        "it" => "per",
        "nb" | "no" => "ganger",
        "nl" => "keer",
        "pl" => "razy",
        "pt" => "vezes",
        "ro" => "ori",
        "ru" => "умножить на",
        "sv" => "gånger",
        "tr" => "çarpı",
        "uk" => "помножити на",
        _ => return None,
    })
}

/// A text with the word of its language for the asterisks that multiply, or as it is where that word is not known.
#[must_use]
pub(in crate::embedded) fn with_products<'a>(text: &'a str, language: &str) -> Cow<'a, str> {
    match times(language) {
        Some(times) => multiplied(text, times),
        None => Cow::Borrowed(text),
    }
}

/// Writes `times` for the asterisks that multiply: between numbers ("2*3"), and with spaces also between names of one letter ("2 * x").
pub(super) fn multiplied<'a>(text: &'a str, times: &str) -> Cow<'a, str> {
    if !text.contains('*') {
        return Cow::Borrowed(text);
    }
    let mut said = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('*') {
        said.push_str(before);
        let (left, right) = (said.trim_end(), after.trim_start());
        let spaces = (left.len() < said.len(), right.len() < after.len());
        let multiplies = match spaces {
            (true, true) => ends_with_operand(left) && begins_with_operand(right),
            (false, false) => is_product(left, right),
            _ => false,
        };
        let left_bytes = left.len();
        if multiplies {
            said.truncate(left_bytes);
            said.push(' ');
            said.push_str(times);
            said.push(' ');
            rest = right;
        } else {
            said.push('*');
            rest = after;
        }
    }
    said.push_str(rest);
    Cow::Owned(said)
}

/// Returns true if an asterisk without blanks multiplies what stands before and behind it: the whole word is numbers and asterisks, with marks
/// of the sentence around. In "Dial *100*1#" it does not.
fn is_product(left: &str, right: &str) -> bool {
    let left = &left[left.ceil_char_boundary(left.len().saturating_sub(MAX_PRODUCT_BYTES))..];
    let right = &right[..right.floor_char_boundary(MAX_PRODUCT_BYTES)];
    let is_apart = |c: char| c.is_whitespace() || c == '=';
    let left = left.rsplit(is_apart).next().unwrap_or_default();
    let right = right.split(is_apart).next().unwrap_or_default();
    let right = right.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    is_number(left.trim_start_matches('(')) && right.split('*').all(is_number)
}

fn is_number(text: &str) -> bool {
    let is_digit = |c: char| c.is_ascii_digit();
    text.starts_with(is_digit)
        && text.ends_with(is_digit)
        && text.chars().all(|c| is_digit(c) || matches!(c, '.' | ','))
}

fn ends_with_operand(text: &str) -> bool {
    let mut letters = text.chars().rev();
    match letters.next() {
        Some(last) if last.is_alphabetic() => !letters.next().is_some_and(char::is_alphanumeric),
        last => last.is_some_and(|last| last.is_ascii_digit() || last == ')'),
    }
}

fn begins_with_operand(text: &str) -> bool {
    let mut letters = text.chars();
    match letters.next() {
        Some(first) if first.is_alphabetic() => !letters.next().is_some_and(char::is_alphanumeric),
        first => first.is_some_and(|first| first.is_ascii_digit() || "(-−".contains(first)),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::english, *};

    #[test]
    fn products() {
        for (written, said) in [
            ("2 * 3 is 6", "2 times 3 is 6"),
            (
                "2 * 3 * 4 and 2*3*4",
                "2 times 3 times 4 and 2 times 3 times 4",
            ),
            ("(1 + 2) * 3", "(1 plus 2) times 3"),
            ("2 * x", "2 times x"),
            ("a * lone mark", "a lone mark"),
            ("a 5* hotel", "a 5 hotel"),
        ] {
            assert_eq!(english(written), said);
        }
        for (written, said) in [
            (
                "Es sind 2 * 3 * 4, nicht 2*3.",
                "Es sind 2 mal 3 mal 4, nicht 2 mal 3.",
            ),
            ("5* Hotel, *so* * ist *es*", "5* Hotel, *so* * ist *es*"),
            ("* 2", "* 2"),
            ("2 *", "2 *"),
            ("2 × 3", "2 × 3"),
        ] {
            assert_eq!(with_products(written, "de"), said);
        }
        assert_eq!(with_products("2*3*4", "pt-BR"), "2 vezes 3 vezes 4");
        assert_eq!(with_products("(1.5*3)=4.5", "fr"), "(1.5 fois 3)=4.5");
        for (written, language) in [
            ("2 * 3", "ja"),
            ("Dial *100*1#", "en"),
            ("*100*1#", "de"),
            ("100*1#", "de"),
            ("*1*2", "de"),
            ("2**3", "de"),
        ] {
            assert_eq!(with_products(written, language), written);
        }
        let many = "1*".repeat(100_000);
        assert!(with_products(&many, "de").len() >= many.len());
    }
}
