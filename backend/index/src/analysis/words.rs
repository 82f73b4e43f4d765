//! Text as words.

use unicode_normalization::UnicodeNormalization as _;
use unicode_properties::{GeneralCategoryGroup, UnicodeGeneralCategory as _};

/// What a word is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Letters and digits of a script that has spaces.
    Word,
    /// Digits, with a point before the fraction.
    Number,
    /// Characters of a script that has none.
    Unspaced,
    /// A sign that means something by itself, such as an emoji.
    Sign,
}

/// Digits zero of scripts that have their own.
const ZEROS: [char; 14] = [
    '\u{660}', '\u{6f0}', '\u{7c0}', '\u{966}', '\u{9e6}', '\u{a66}', '\u{ae6}', '\u{b66}',
    '\u{be6}', '\u{c66}', '\u{ce6}', '\u{d66}', '\u{e50}', '\u{ed0}',
];

/// Gives the words of a text, normalized, to `take`.
pub(super) fn words(text: &str, mut take: impl FnMut(&str, Kind)) {
    let mut characters = text
        .nfkc()
        .flat_map(char::to_lowercase)
        .filter(|c| !is_invisible(*c))
        .map(digit)
        .peekable();
    let mut word = String::new();
    let mut kind = Kind::Word;
    while let Some(c) = characters.next() {
        let next = match c {
            c if is_unspaced(c) => Some(Kind::Unspaced),
            c if c.is_alphanumeric() => Some(Kind::Word),
            // Vowels of Indian scripts are marks.
            c if c.general_category_group() == GeneralCategoryGroup::Mark && !word.is_empty() => {
                Some(kind)
            }
            _ => None,
        };
        if let Some(next) = next {
            if kind != next {
                finish(&mut word, kind, &mut take);
            }
            kind = next;
            word.push(c);
            continue;
        }
        let is_number = || {
            word.bytes()
                .all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b',')
        };
        let joins = match c {
            '.' | ',' => is_number() && characters.peek().is_some_and(char::is_ascii_digit),
            '\'' | '’' => characters.peek().is_some_and(|next| next.is_alphanumeric()),
            // C++, C#.
            '+' | '#' => word.len() <= 2 && word.starts_with(|c: char| c.is_ascii_alphabetic()),
            _ => false,
        };
        if joins && !word.is_empty() && kind == Kind::Word {
            word.push(c);
            continue;
        }
        finish(&mut word, kind, &mut take);
        kind = Kind::Word;
        if c.general_category_group() == GeneralCategoryGroup::Symbol && !c.is_ascii() {
            take(c.encode_utf8(&mut [0; 4]), Kind::Sign);
        }
    }
    finish(&mut word, kind, &mut take);
}

fn finish(word: &mut String, kind: Kind, take: &mut impl FnMut(&str, Kind)) {
    if word.is_empty() {
        return;
    }
    let is_number = word
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b',');
    match kind {
        Kind::Word if is_number => number(word, take),
        Kind::Word => parts(word, take),
        kind => take(word, kind),
    }
    word.clear();
}

/// What is said by a word with an apostrophe: the longer part of "lion's" and "l'homme", each of "dell'arte".
fn parts(word: &str, take: &mut impl FnMut(&str, Kind)) {
    if !word.contains(['\'', '’']) {
        return take(word, Kind::Word);
    }
    let mut longest = "";
    for part in word.split(['\'', '’']) {
        if part.chars().count() > 2 {
            take(part, Kind::Word);
        }
        if part.len() > longest.len() {
            longest = part;
        }
    }
    if longest.chars().count() <= 2 && !longest.is_empty() {
        take(longest, Kind::Word);
    }
}

/// "1,000", "1.000" and "1000" are the same, and so are "2.5" and "2,5". "12.11.2024" is three.
fn number(word: &str, take: &mut impl FnMut(&str, Kind)) {
    let parts: Vec<&str> = word.split(['.', ',']).collect();
    let separators = word
        .matches(['.', ','])
        .collect::<std::collections::BTreeSet<_>>();
    let is_grouped = separators.len() == 1
        && parts[0].len() <= 3
        && parts[0] != "0"
        && parts[1..].iter().all(|part| part.len() == 3);
    match parts.as_slice() {
        [whole] => take(whole, Kind::Number),
        parts if is_grouped => take(&parts.concat(), Kind::Number),
        [whole, fraction] => take(&format!("{whole}.{fraction}"), Kind::Number),
        // "1,234.5".
        [whole @ .., fraction]
            if separators.len() == 2 && whole[1..].iter().all(|part| part.len() == 3) =>
        {
            take(&format!("{}.{fraction}", whole.concat()), Kind::Number);
        }
        parts => parts.iter().for_each(|part| take(part, Kind::Number)),
    }
}

/// Decimal digits of all scripts as those of ASCII.
fn digit(c: char) -> char {
    let value = ZEROS.iter().find_map(|zero| {
        let value = u32::from(c).checked_sub(u32::from(*zero))?;
        char::from_digit(value, 10).filter(|_| value < 10)
    });
    value.unwrap_or(c)
}

/// Joiners, soft hyphens, variation selectors and the stroke that stretches Arabic words.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}' | '\u{640}')
}

/// Scripts without spaces between words, and Hangul.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}'      // Thai, Lao
        | '\u{f00}'..='\u{fff}'    // Tibetan
        | '\u{1000}'..='\u{109f}'  // Myanmar
        | '\u{1100}'..='\u{11ff}'  // Hangul
        | '\u{1780}'..='\u{17ff}'  // Khmer
        | '\u{3005}'..='\u{3007}'
        | '\u{3040}'..='\u{30ff}'  // Kana
        | '\u{3105}'..='\u{318f}'
        | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}'  // Han
        | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7ff}'  // Hangul
        | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
        && (c.is_alphanumeric() || c.general_category_group() == GeneralCategoryGroup::Mark)
}
