//! Text normalization for English: what is written becomes what is said, before it becomes phonemes. "$5.50 at 3pm" is "5 dollars and
//! 50 cents at 3 P M". Whole numbers stay digits: espeak-ng reads them well, as it reads other languages by rules of its own. Markup
//! and pictures are gone before.
//!
//! The expressions are matched in linear time, and each rule goes over the text once.

mod names;
mod products;

use std::{borrow::Cow, sync::LazyLock};

use regex::{Captures, Regex};

pub(super) use self::products::with_products;
use self::{
    names::{abbreviation, title, unit_of, weekday},
    products::multiplied,
};

/// What is said of a match.
type Say = fn(&Captures<'_>) -> String;

/// A rule: what it matches, and what is said instead.
struct Rule {
    pattern: Regex,
    say: Say,
}

/// An English text as it is said.
#[must_use]
pub(super) fn english(text: &str) -> String {
    let text = multiplied(text, "times");
    let plain = text.chars().map(|letter| match letter {
        '\u{2018}' | '\u{2019}' => '\'',
        '\u{201c}' | '\u{201d}' | '\u{ab}' | '\u{bb}' => '"',
        '\u{a0}' | '\u{202f}' | '\u{2009}' => ' ',
        letter => letter,
    });
    collapse(&apply(&ENGLISH, &plain.collect::<String>()))
}

fn apply<'a>(rules: &[Rule], text: &'a str) -> Cow<'a, str> {
    rules.iter().fold(Cow::Borrowed(text), |text, rule| {
        match rule.pattern.replace_all(&text, rule.say) {
            Cow::Borrowed(_) => text,
            Cow::Owned(changed) => Cow::Owned(changed),
        }
    })
}

/// One space between words, none before punctuation.
fn collapse(text: &str) -> String {
    let mut said = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        let is_mark = word.starts_with([',', '.', '!', '?', ';', ':']);
        if !said.is_empty() && !is_mark {
            said.push(' ');
        }
        said.push_str(word);
    }
    said
}

fn rules(rules: &[(&str, Say)]) -> Vec<Rule> {
    let compile = |(pattern, say): &(&str, _)| {
        // Every pattern is tried by a test.
        let pattern = Regex::new(pattern).ok()?;
        Some(Rule { pattern, say: *say })
    };
    rules.iter().filter_map(compile).collect()
}

/// English, from what has more of a context to what has less.
static ENGLISH: LazyLock<Vec<Rule>> = LazyLock::new(|| rules(ENGLISH_RULES));

const ENGLISH_RULES: &[(&str, Say)] = &[
    // Addresses.
    (
        r"\b([A-Za-z0-9._%+-]+)@([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+)\b",
        |c| format!("{} at {}", address(&c[1]), address(&c[2])),
    ),
    (r"\b(www\.[^\s<>()\x22]*[^\s<>()\x22.,;:!?'/])/?", |c| {
        address(&c[1])
    }),
    (
        r"\b([A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.(?:com|org|net|io|dev|ai|edu|gov|info|app|co|uk|de|fr|eu|es|it|nl|ch|at|us|ca)(?:/[^\s<>()\x22]*[^\s<>()\x22.,;:!?'/])?)/?(?:\b|$)",
        |c| address(&c[1]),
    ),
    // Money.
    (
        r"([-−]?)([$€£¥₹])\s?(\d[\d,]*)(?:\.(\d+))?(?:\s?(k|K|M|B|bn|mn|thousand|million|billion|trillion)\b)?",
        |c| money(part(c, 1), &c[2], &c[3], part(c, 4), part(c, 5)),
    ),
    (
        r"([-−]?)\b(\d[\d,]*)(?:\.(\d+))?\s?(€|£|USD|EUR|GBP|CHF)(?:\b|$|[\s.,!?;:])",
        |c| {
            let said = money(part(c, 1), &c[4], &c[2], part(c, 3), "");
            let end = c[0]
                .chars()
                .last()
                .filter(|end| !end.is_alphanumeric() && !"€£".contains(*end));
            format!("{said}{}", end.map(String::from).unwrap_or_default())
        },
    ),
    // Dates.
    (r"\b(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])\b", |c| {
        date(&c[2], &c[3], &c[1])
    }),
    (
        r"\b(0?[1-9]|1[0-2])/(0?[1-9]|[12]\d|3[01])/((?:19|20)\d\d)\b",
        |c| date(&c[1], &c[2], &c[3]),
    ),
    (
        r"\b(Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)\.?\s(\d{1,2}(?:st|nd|rd|th)?\b|\d{4}\b)",
        |c| format!("{} {}", long_month(&c[1]), &c[2]),
    ),
    (
        r"\b(January|February|March|April|May|June|July|August|September|October|November|December)\s(\d{1,2})(?:st|nd|rd|th)?(?:,?\s(\d{4}))?\b",
        |c| {
            let said = format!("{} {}", &c[1], ordinal(&c[2]));
            with_year(said, part(c, 3))
        },
    ),
    (
        r"\b(\d{1,2})(?:st|nd|rd|th)?\s(?:of\s)?(January|February|March|April|May|June|July|August|September|October|November|December)(?:,?\s(\d{4}))?\b",
        |c| {
            let said = format!("{} {}", &c[2], ordinal(&c[1]));
            with_year(said, part(c, 3))
        },
    ),
    (
        r"(?i)\b(in|since|from|until|till|by|before|after|around|year|spring|summer|autumn|fall|winter|of|January|February|March|April|May|June|July|August|September|October|November|December)\s(1[1-9]\d\d|20\d\d)\b",
        |c| format!("{} {}", &c[1], year(&c[2])),
    ),
    (r"(?:\b(1[6-9]|20)|')(\d)0'?s\b", |c| {
        decade(part(c, 1), &c[2])
    }),
    // Times.
    (
        r"(?i)\b([01]?\d|2[0-3])(?:[:.]([0-5]\d))?\s?([ap])\.?\s?m\b(\.[\s\x22')]*[a-z]|\.,|\.\b)?",
        |c| {
            let said = format!(
                "{} {} M",
                time(&c[1], part(c, 2), true),
                c[3].to_uppercase()
            );
            format!("{said}{}", part(c, 4).trim_start_matches('.'))
        },
    ),
    (r"\b([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?\b", |c| {
        let said = time(&c[1], &c[2], false);
        match part(c, 3) {
            "" => said,
            seconds => format!("{said} and {} seconds", number(seconds)),
        }
    }),
    // Telephone numbers: of three groups, or with a country code.
    (
        r"(?:\+\d{1,3}[\s.-]?)(?:\(\d{1,4}\)[\s.-]?)?\d{2,4}(?:[\s.-]\d{2,4}){1,4}\b|(?:\(\d{3}\)\s?|\b\d{3}[-.])\d{3}[-.]\d{4}\b|\b\d{3}-\d{4}\b",
        |c| telephone(&c[0]),
    ),
    // Quantities.
    (
        r"([-−]?)\b(\d[\d,]*(?:\.\d+)?)\s?(?:-|–|to)\s?(\d[\d,]*(?:\.\d+)?)\s?(%|°\s?[CF]\b)",
        |c| {
            format!(
                "{}{} to {}{}",
                sign(part(c, 1)),
                digits(&c[2]),
                digits(&c[3]),
                unit_of(&c[4], false)
            )
        },
    ),
    (
        r"([-−]?)\b(\d[\d,]*(?:\.\d+)?)\s?(%|°\s?[CF]\b|°)",
        |c| {
            format!(
                "{}{}{}",
                sign(part(c, 1)),
                digits(&c[2]),
                unit_of(&c[3], &c[2] == "1")
            )
        },
    ),
    (
        r"([-−]?)\b(\d[\d,]*(?:\.\d+)?)\s?(km/h|m/s|mph|kph|Mbps|Gbps|kbps|MB/s|GB/s|kWh|kW|MW|kHz|MHz|GHz|Hz|km²|m²|m2|m³|km|cm|mm|kg|mg|lbs|lb|oz|ml|mL|kB|KB|MB|GB|TB|ft|yd|mi|mins|min|hrs|hr|secs|sec|ms|kcal|cal|mAh|dB|V|W|g|m|l|L)\b(\.[\s\x22')]*[a-z])?",
        |c| {
            let said = format!(
                "{}{}{}",
                sign(part(c, 1)),
                digits(&c[2]),
                unit_of(&c[3], &c[2] == "1")
            );
            format!("{said}{}", part(c, 4).trim_start_matches('.'))
        },
    ),
    (r"\b(\d[\d,]*)\s?[x×]\s?(\d[\d,]*)\b", |c| {
        format!("{} by {}", digits(&c[1]), digits(&c[2]))
    }),
    (r"\b(\d+(?:\.\d+)?)[x×]\b", |c| format!("{} times", &c[1])),
    (r"\b(\d{1,3})\s([1-9])/([2-9])\b", |c| {
        format!("{} and {}", &c[1], fraction(&c[2], &c[3]))
    }),
    (r"\b([1-9])/([2-9]|10)\b", |c| fraction(&c[1], &c[2])),
    (r"\b24/7\b", |_| "24 7".to_owned()),
    (r"\b(\d[\d,]*)\s?[-–—]\s?(\d[\d,]*)\b", |c| {
        format!("{} to {}", digits(&c[1]), digits(&c[2]))
    }),
    (r"(?i)\bv(\d+(?:\.\d+)*)\b", |c| {
        format!("version {}", c[1].replace('.', " point "))
    }),
    (r"\b(\d+(?:\.\d+){2,})\b", |c| c[1].replace('.', " point ")),
    (r"\b(\d{1,3}(?:,\d{3})+)\b", |c| digits(&c[1])),
    (r"(^|[\s(=])[-−](\d)", |c| {
        format!("{}minus {}", &c[1], &c[2])
    }),
    (r"(?i)#\s?(\d)|\bno\.\s?(\d)", |c| {
        format!("number {}", first(c))
    }),
    // Abbreviations. What may end a sentence keeps its point there.
    (
        r"\b(Mr|Mrs|Ms|Dr|Prof|Gen|Sen|Rep|Capt|Lt|Sgt|Rev|Hon|Mt)\.(\s)",
        |c| format!("{}{}", title(&c[1]), &c[2]),
    ),
    (r"\bSt\.\s([A-Z])", |c| format!("Saint {}", &c[1])),
    (
        r"\b(Mon|Tue|Tues|Wed|Thu|Thur|Thurs|Fri|Sat|Sun)\.?(,|\s(?:\d|at|from|to|and|[-–]))",
        |c| format!("{}{}", weekday(&c[1]), &c[2]),
    ),
    (
        r"\b(St|Ave|Blvd|Rd|Jr|Sr|Inc|Ltd|Corp|Co|dept|Dept|approx|est|min|max|vs|etc|misc|temp|tel|ext|fig|Fig|vol|Vol|incl|excl)\.(\s*[\x22')]*(?:$|\s[A-Z]))?",
        |c| {
            let end = part(c, 2);
            let point = if c.get(2).is_none() || &c[1] == "vs" {
                ""
            } else {
                "."
            };
            format!("{}{point}{end}", abbreviation(&c[1]))
        },
    ),
    (r"(?i)\be\.\s?g\.,?", |_| "for example,".to_owned()),
    (r"(?i)\bi\.\s?e\.,?", |_| "that is,".to_owned()),
    (r"\b(?:Ph\.\s?D)\b\.?", |_| "P H D".to_owned()),
    (r"\b((?:[A-Z]\.){2,})(\s*$|\s+[A-Z])?", |c| {
        let letters: Vec<_> = c[1]
            .chars()
            .filter(|letter| *letter != '.')
            .map(String::from)
            .collect();
        let end = part(c, 2);
        let point = if end.trim().is_empty() && c.get(2).is_some() {
            "."
        } else {
            ""
        };
        format!("{}{point}{end}", letters.join(" "))
    }),
    (r"\bFAQ(s?)\b", |c| {
        format!("F A Q{}", if c[1].is_empty() { "" } else { "'s" })
    }),
    (r"\band/or\b", |_| "and or".to_owned()),
    (r"\b([A-Za-z]{2,})/([A-Za-z]{2,})\b", |c| {
        format!("{} or {}", &c[1], &c[2])
    }),
    // Signs.
    (r"\s*&\s*", |_| " and ".to_owned()),
    (r"(\d)\s?\+\s?(\d)", |c| format!("{} plus {}", &c[1], &c[2])),
    (r"(\w)\s?=\s?(\w)", |c| {
        format!("{} equals {}", &c[1], &c[2])
    }),
    (r"(\d)\+", |c| format!("{} plus", &c[1])),
    (r"\s@\s", |_| " at ".to_owned()),
    (r"\s[-–—]+\s|—|--+", |_| ", ".to_owned()),
    (r"[*_~^|<>{}\\#=+]+", |_| " ".to_owned()),
];

/// A group, or nothing.
fn part<'a>(captures: &'a Captures<'_>, index: usize) -> &'a str {
    captures.get(index).map_or("", |found| found.as_str())
}

/// The first group that matched.
fn first<'a>(captures: &'a Captures<'_>) -> &'a str {
    let mut groups = captures.iter().skip(1).flatten();
    groups.next().map_or("", |found| found.as_str())
}

fn digits(number: &str) -> String {
    number.replace(',', "")
}

/// A number without zeros in front.
fn number(digits: &str) -> &str {
    match digits.trim_start_matches('0') {
        "" => "0",
        digits => digits,
    }
}

fn sign(sign: &str) -> &'static str {
    if sign.is_empty() { "" } else { "minus " }
}

/// An address, with its signs by their names.
fn address(text: &str) -> String {
    let mut said = String::new();
    let text = text
        .strip_prefix("www.")
        .map_or(Cow::Borrowed(text), |rest| {
            said.push_str("w w w dot ");
            Cow::Borrowed(rest)
        });
    for letter in text.chars() {
        let name = match letter {
            '.' => "dot",
            '-' => "dash",
            '_' => "underscore",
            '/' => "slash",
            '+' => "plus",
            '@' => "at",
            '%' => "percent",
            ':' => "colon",
            '?' => "question mark",
            '=' => "equals",
            '&' => "and",
            '#' => "hash",
            '~' => "tilde",
            letter => {
                said.push(letter);
                continue;
            }
        };
        said.push(' ');
        said.push_str(name);
        said.push(' ');
    }
    said
}

/// An amount of money.
fn money(minus: &str, currency: &str, whole: &str, part: &str, scale: &str) -> String {
    let (one, many, small, smalls) = match currency {
        "€" | "EUR" => ("euro", "euros", "cent", "cents"),
        "£" | "GBP" => ("pound", "pounds", "penny", "pence"),
        "¥" => ("yen", "yen", "", ""),
        "₹" => ("rupee", "rupees", "paisa", "paise"),
        "CHF" => ("franc", "francs", "centime", "centimes"),
        _ => ("dollar", "dollars", "cent", "cents"),
    };
    let (minus, whole) = (sign(minus), digits(whole));
    let scale = match scale {
        "" => "",
        "k" | "K" | "thousand" => " thousand",
        "M" | "mn" | "million" => " million",
        "B" | "bn" | "billion" => " billion",
        _ => " trillion",
    };
    if !scale.is_empty() {
        let point = if part.is_empty() { "" } else { "." };
        return format!("{minus}{whole}{point}{part}{scale} {many}");
    }
    let name = |amount: &str, one: &str, many: &str| {
        let name = if amount == "1" { one } else { many };
        format!("{amount} {name}")
    };
    let large = name(&whole, one, many);
    match (part.len(), small) {
        (0, _) => format!("{minus}{large}"),
        (2, small) if !small.is_empty() => match (number(part), number(&whole)) {
            ("0", _) => format!("{minus}{large}"),
            (cents, "0") => format!("{minus}{}", name(cents, small, smalls)),
            (cents, _) => format!("{minus}{large} and {}", name(cents, small, smalls)),
        },
        _ => format!("{minus}{whole}.{part} {many}"),
    }
}

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

fn long_month(short: &str) -> &str {
    let long = MONTHS.iter().find(|month| month.starts_with(&short[..3]));
    long.copied().unwrap_or(short)
}

fn date(month: &str, day: &str, of_year: &str) -> String {
    let name = number(month).parse::<usize>().ok();
    let name = name.and_then(|month| MONTHS.get(month.wrapping_sub(1)));
    let said = format!("{} {}", name.copied().unwrap_or(month), ordinal(day));
    with_year(said, of_year)
}

fn with_year(said: String, of_year: &str) -> String {
    match of_year {
        "" => said,
        of_year => format!("{said}, {}", year(of_year)),
    }
}

/// A year in two parts: 19 84, 20 24; but 2005 as a number.
fn year(digits: &str) -> String {
    let (Some(century), Some(rest)) = (digits.get(..2), digits.get(2..4)) else {
        return digits.to_owned();
    };
    match (century, rest) {
        ("20" | "10", rest) if rest.starts_with('0') => digits.to_owned(),
        (century, "00") => format!("{century} hundred"),
        (century, rest) => match rest.strip_prefix('0') {
            Some(rest) => format!("{century} oh {rest}"),
            None => format!("{century} {rest}"),
        },
    }
}

fn decade(century: &str, ten: &str) -> String {
    let decades = [
        "hundreds",
        "tens",
        "twenties",
        "thirties",
        "forties",
        "fifties",
        "sixties",
        "seventies",
        "eighties",
        "nineties",
    ];
    let ten = ten.parse::<usize>().ok().and_then(|ten| decades.get(ten));
    let ten = ten.copied().unwrap_or_default();
    match (century, ten) {
        ("20", "hundreds") => "2 thousands".to_owned(),
        ("", ten) => ten.to_owned(),
        (century, ten) => format!("{century} {ten}"),
    }
}

/// 1st, 22nd, 13th; espeak-ng reads these.
fn ordinal(day: &str) -> String {
    let day = number(day);
    let suffix = match day {
        _ if day.len() == 2 && day.starts_with('1') => "th",
        _ => match day.chars().last() {
            Some('1') => "st",
            Some('2') => "nd",
            Some('3') => "rd",
            _ => "th",
        },
    };
    format!("{day}{suffix}")
}

/// A time of day; with A M or P M behind it the full hour has no name.
fn time(hour: &str, minute: &str, has_half: bool) -> String {
    let hour = number(hour);
    match (minute, minute.strip_prefix('0')) {
        ("", _) => hour.to_owned(),
        ("00", _) if has_half => hour.to_owned(),
        ("00", _) if hour == "0" => "midnight".to_owned(),
        ("00", _) if hour.len() == 1 || hour < "13" => format!("{hour} o'clock"),
        ("00", _) => format!("{hour} hundred"),
        (_, Some(minute)) => format!("{hour} oh {minute}"),
        (minute, None) => format!("{hour} {minute}"),
    }
}

/// A telephone number: its digits, with a pause between groups.
fn telephone(number: &str) -> String {
    let groups = number.split(|letter: char| !letter.is_ascii_digit() && letter != '+');
    let spell = |group: &str| -> String {
        let digits = group.chars().map(|digit| match digit {
            '+' => "plus".to_owned(),
            digit => digit.to_string(),
        });
        digits.collect::<Vec<_>>().join(" ")
    };
    let groups = groups.filter(|group| !group.is_empty()).map(spell);
    groups.collect::<Vec<_>>().join(", ")
}

fn fraction(above: &str, below: &str) -> String {
    let (one, many) = match below {
        "2" => ("half", "halves"),
        "3" => ("third", "thirds"),
        "4" => ("quarter", "quarters"),
        "5" => ("fifth", "fifths"),
        "6" => ("sixth", "sixths"),
        "7" => ("seventh", "sevenths"),
        "8" => ("eighth", "eighths"),
        "9" => ("ninth", "ninths"),
        _ => ("tenth", "tenths"),
    };
    match above {
        "1" => format!("one {one}"),
        above => format!("{above} {many}"),
    }
}

#[cfg(test)]
mod tests;
