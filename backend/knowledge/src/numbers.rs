//! Numbers as they are said, in English: as digits, so that "twenty five" meets "25", "half past nine" meets "9:30", and "third" meets
//! "3rd". Other languages keep their words.

/// What the words of a text say from a place on.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct SpokenNumber {
    pub(super) terms: Vec<String>,
    /// How many words say it.
    pub(super) words: usize,
}

/// The number that begins at this place of a text, whose words are in lower case.
pub(super) fn spoken_number(words: &[&str], at: usize) -> Option<SpokenNumber> {
    let rest = words.get(at..)?;
    let first = rest.first()?;
    // Most words are none.
    if !first.starts_with(|c: char| c.is_ascii_digit()) && !is_of_numbers(first) {
        return None;
    }
    time(rest)
        .or_else(|| ordinal(words, at))
        .or_else(|| number(rest))
}

/// The text without what separates the thousands of a number: "12,000" is "12000".
pub(super) fn without_separators(text: &str) -> String {
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let separates = |at: usize| {
        at > 0 && is_digit(at - 1) && (1..=3).all(|next| is_digit(at + next)) && !is_digit(at + 4)
    };
    text.char_indices()
        .filter(|(at, c)| *c != ',' || !separates(*at))
        .map(|(_, c)| c)
        .collect()
}

const SMALL: &[&str] = &[
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];

const TENS: &[&str] = &[
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];

/// From the first to the nineteenth.
const ORDINALS: &[&str] = &[
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
];

const TENTHS: &[&str] = &[
    "twentieth",
    "thirtieth",
    "fortieth",
    "fiftieth",
    "sixtieth",
    "seventieth",
    "eightieth",
    "ninetieth",
];

const SCALES: &[(&str, u64)] = &[
    ("thousand", 1_000),
    ("million", 1_000_000),
    ("billion", 1_000_000_000),
];

const MONTHS: &[&str] = &[
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

fn is_of_numbers(word: &str) -> bool {
    [
        SMALL,
        TENS,
        ORDINALS,
        TENTHS,
        &["hundred", "half", "quarter"],
    ]
    .iter()
    .any(|words| words.contains(&word))
        || scale(word).is_some()
}

fn place(list: &[&str], word: Option<&&str>) -> Option<u64> {
    let word = word?;
    let place = list.iter().position(|one| one == word)?;
    u64::try_from(place).ok()
}

fn scale(word: &str) -> Option<u64> {
    SCALES
        .iter()
        .find(|(name, _)| *name == word)
        .map(|(_, scale)| *scale)
}

/// A number in digits.
fn digits(word: Option<&&str>) -> Option<u64> {
    let word = word?;
    let is_number = word.len() <= 9 && word.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| word.parse().ok()).flatten()
}

/// A number below 100, and how many words it has.
fn below_hundred(words: &[&str]) -> Option<(u64, usize)> {
    if let Some(small) = place(SMALL, words.first()) {
        return Some((small, 1));
    }
    let tens = (place(TENS, words.first())? + 2) * 10;
    match place(SMALL, words.get(1)) {
        Some(unit @ 1..=9) => Some((tens + unit, 2)),
        _ => Some((tens, 1)),
    }
}

/// A number below 1,000: "two hundred and fifty".
fn below_thousand(words: &[&str]) -> Option<(u64, usize)> {
    let is_hundred = |at: usize| words.get(at) == Some(&"hundred");
    let (first, used) = match below_hundred(words) {
        Some(number) => number,
        None if is_hundred(0) => (1, 0),
        None => return None,
    };
    if !is_hundred(used) || first == 0 {
        return Some((first, used));
    }
    let used = used + 1;
    let joint = used + usize::from(words.get(used) == Some(&"and"));
    match words.get(joint..).and_then(below_hundred) {
        Some((rest, more)) => Some((first * 100 + rest, joint + more)),
        None => Some((first * 100, used)),
    }
}

/// A whole number in words, or in digits and words ("12 thousand").
fn cardinal(words: &[&str]) -> Option<(u64, usize)> {
    let (mut total, mut used, mut limit) = (0, 0, u64::MAX);
    loop {
        let rest = words.get(used..).unwrap_or_default();
        let joint = usize::from(used > 0 && rest.first() == Some(&"and"));
        let rest = &rest[joint..];
        let group = below_thousand(rest).or_else(|| match digits(rest.first()) {
            Some(number) if used == 0 && rest.get(1).is_some_and(|word| scale(word).is_some()) => {
                Some((number, 1))
            }
            _ if used == 0 && rest.first().is_some_and(|word| scale(word).is_some()) => {
                Some((1, 0))
            }
            _ => None,
        });
        let Some((group, more)) = group else { break };
        match rest.get(more).and_then(|word| scale(word)) {
            Some(scale) if scale < limit => {
                total += group * scale;
                (used, limit) = (used + joint + more + 1, scale);
            }
            // What follows is a number of its own.
            Some(_) if used > 0 => break,
            _ => {
                (total, used) = (total + group, used + joint + more);
                break;
            }
        }
    }
    (used > 0).then_some((total, used))
}

/// A number by itself, or a year: "nineteen eighty four", "nineteen oh five".
fn number(words: &[&str]) -> Option<SpokenNumber> {
    if let Some(number) = digits(words.first())
        && words[0].len() == 2
        && (1..10).contains(&number)
    {
        // The minutes of "9:05".
        return Some(one(number, 1));
    }
    let (number, used) = cardinal(words)?;
    if let (13..=20, 1) = (number, used) {
        let rest = &words[1..];
        let unit = match rest.first() {
            Some(&"oh") => place(SMALL, rest.get(1)).filter(|unit| (1..10).contains(unit)),
            _ => None,
        };
        let years = unit
            .map(|unit| (unit, 2))
            .or_else(|| below_hundred(rest).filter(|(years, _)| *years >= 10));
        if let Some((years, more)) = years {
            return Some(one(number * 100 + years, 1 + more));
        }
    }
    Some(one(number, used))
}

fn one(number: u64, words: usize) -> SpokenNumber {
    SpokenNumber {
        terms: vec![number.to_string()],
        words,
    }
}

/// A time of day: "half past nine", "a quarter to ten", "ten past nine". "Nine to five" is none: it says from when to when.
fn time(words: &[&str]) -> Option<SpokenNumber> {
    let (minutes, used) = match *words.first()? {
        "half" => (30, 1),
        "quarter" => (15, 1),
        _ => below_hundred(words).or_else(|| Some((digits(words.first())?, 1)))?,
    };
    let names_minutes = matches!(words.get(used), Some(&("minutes" | "minute")));
    let used = used + usize::from(names_minutes);
    let is_before = match *words.get(used)? {
        "past" | "after" if minutes < 60 => false,
        "to" | "before" if words[0] == "quarter" || names_minutes && minutes < 60 => true,
        _ => return None,
    };
    let rest = words.get(used + 1..)?;
    let (hour, more) = below_hundred(rest).or_else(|| Some((digits(rest.first())?, 1)))?;
    // "After five minutes" is no time of day.
    let is_hour =
        (1..=24).contains(&hour) && !matches!(rest.get(more), Some(&("minutes" | "hours")));
    if !is_hour || minutes == 0 {
        return None;
    }
    let (hour, minutes) = match is_before {
        true => (if hour == 1 { 12 } else { hour - 1 }, 60 - minutes),
        false => (hour, minutes),
    };
    Some(SpokenNumber {
        terms: vec![hour.to_string(), minutes.to_string()],
        words: used + 1 + more,
    })
}

/// A place in an order, or a day of a month, which is written as a number.
fn ordinal(words: &[&str], at: usize) -> Option<SpokenNumber> {
    let rest = &words[at..];
    let first = rest.first();
    let (number, used) = if let Some(place) = place(ORDINALS, first) {
        (place + 1, 1)
    } else if let Some(tens) = place(TENTHS, first) {
        ((tens + 2) * 10, 1)
    } else if let (Some(tens), Some(unit @ 0..=8)) =
        (place(TENS, first), place(ORDINALS, rest.get(1)))
    {
        ((tens + 2) * 10 + unit + 1, 2)
    } else {
        let word = first?;
        let digits = word.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let is_ordinal = matches!(&word[digits.len()..], "st" | "nd" | "rd" | "th");
        (is_ordinal.then(|| digits.parse().ok()).flatten()?, 1)
    };
    let is_month = |word: Option<&&str>| word.is_some_and(|word| MONTHS.contains(word));
    let next = rest.get(used);
    let after = if next == Some(&"of") {
        rest.get(used + 1)
    } else {
        next
    };
    let before = at.checked_sub(1).and_then(|at| words.get(at));
    let before = match before {
        Some(&"the") => at.checked_sub(2).and_then(|at| words.get(at)),
        before => before,
    };
    let term = match number {
        _ if is_month(before) || is_month(after) => number.to_string(),
        // It is a time, too: "a second".
        2 => "second".to_owned(),
        // Whatever its ending is: the same for the word and the digits.
        _ => format!("{number}th"),
    };
    Some(SpokenNumber {
        terms: vec![term],
        words: used,
    })
}

#[cfg(test)]
mod tests {
    use super::super::terms;

    #[test]
    fn numbers_are_what_they_are_in_digits() {
        for (spoken, written) in [
            ("twelve", "12"),
            ("zero", "0"),
            ("twenty five", "25"),
            ("twenty-five", "25"),
            ("one hundred", "100"),
            ("a hundred and one", "101"),
            ("two hundred and fifty", "250"),
            ("twelve thousand", "12,000"),
            ("twelve thousand", "12 thousand"),
            ("two thousand and five", "2005"),
            (
                "three hundred forty two thousand six hundred and one",
                "342,601",
            ),
            ("one million two hundred thousand", "1,200,000"),
            ("nineteen eighty four", "1984"),
            ("eighteen ninety eight", "1898"),
            ("nineteen oh five", "1905"),
            ("twenty twenty six", "2026"),
            ("half past nine", "9:30"),
            ("half past nine", "9.30"),
            ("a quarter to ten", "9:45"),
            ("a quarter to one", "12:45"),
            ("quarter past 12", "12:15"),
            ("ten past nine", "9:10"),
            ("five minutes past nine", "09:05"),
            ("ten minutes to six", "5:50"),
            ("nine thirty", "9:30"),
            ("nine o'clock", "9"),
            ("nine to five", "9 to 5"),
            ("twenty to thirty", "20 to 30"),
            ("after five minutes", "after 5 minutes"),
            ("five after ten minutes", "5 after 10 minutes"),
            ("five six seven", "5 6 7"),
            ("third", "3rd"),
            ("the twenty first", "the 21st"),
            ("second", "2nd"),
            ("seconds", "second"),
            ("may third", "May 3"),
            ("the third of october", "3rd October"),
            ("october the twenty second", "October 22"),
            ("hundreds", "hundreds"),
        ] {
            assert_eq!(terms(spoken), terms(written), "{spoken} {written}");
        }
        assert_eq!(terms("twenty five lions"), ["25", "lion"]);
        assert_eq!(terms("first"), ["1th"]);
        assert_ne!(terms("first"), terms("one"));
        // Neither half of a thing nor a list is a time.
        assert_eq!(terms("half of nine"), ["half", "9"]);
        assert_eq!(
            terms("1,2,3 12,34 1234,567"),
            ["1", "2", "3", "12", "34", "1234567"]
        );
    }

    #[test]
    fn no_words_make_it_fail() {
        let words = [
            "twenty",
            "one",
            "hundred",
            "and",
            "thousand",
            "million",
            "billion",
            "half",
            "past",
            "to",
            "9",
            "999999999",
            "99999999999999999999",
            "3rd",
            "th",
            "second",
            "of",
            "may",
            "oh",
            "nineteen",
        ];
        for first in words {
            for second in words {
                for third in words {
                    let _ = terms(&format!(
                        "{first} {second} {third} {first} {third} {second}"
                    ));
                }
            }
        }
    }
}
