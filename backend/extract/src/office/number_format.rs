//! Number formats of cells: the text of a number as a date or a time, or with what its format adds to it (`number_layout.rs`), multiplied by 100
//! for each percent sign. Text in quotes, behind a backslash and in brackets makes no date and no percentage. Source: ECMA-376 part 1, sections 18.8.30 and 18.8.31.

use super::{
    clock::Clock,
    number_layout::{Draft, Layout},
};

/// So many characters of a format are read; Excel allows 255.
const LONGEST: usize = 1_024;
/// How many sections a format has: for positive and negative numbers, zero, and text.
const SECTIONS: usize = 4;

/// A number format.
#[derive(Debug, Clone, Default)]
pub(super) struct NumberFormat {
    /// The sections for numbers, at most three.
    sections: Vec<Section>,
}

#[derive(Debug, Clone, Default)]
struct Section {
    condition: Option<Condition>,
    /// How many percent signs it has, each of which multiplies by 100.
    percents: i32,
    kind: Kind,
}

/// What a section shows a number as.
#[derive(Debug, Clone, Default)]
enum Kind {
    #[default]
    Number,
    /// A number with text, a currency, a percent sign or leading zeros.
    LaidOut(Layout),
    /// A date, a time, or both.
    Clock(Clock),
}

/// A condition such as `[>=100]`.
#[derive(Debug, Clone, Copy)]
struct Condition {
    operator: &'static str,
    operand: f64,
}

/// A piece of a section.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece {
    /// A run of one of the letters `y`, `m`, `d`, `h` and `s`, in lower case.
    Letters(char, usize),
    /// A count of all hours, minutes or seconds, with so many digits at least: `[hh]`.
    Elapsed(char, usize),
    /// Digits of a fraction of a second.
    Fraction(usize),
    /// The halves of a day, as they are shown.
    HalfDay(&'static str, &'static str),
    /// Text that is shown as it is.
    Text(char),
}

impl NumberFormat {
    /// Reads the code of a format, such as `[h]:mm;@`.
    pub(super) fn parse(code: &str) -> Self {
        let mut sections = vec![];
        let mut rest: Vec<char> = code.chars().take(LONGEST).collect();
        rest.reverse();
        while !rest.is_empty() && sections.len() < SECTIONS {
            let section = Reader::default().section(&mut rest);
            // A section for text says nothing of numbers.
            if let Some(section) = section {
                sections.push(section);
            }
        }
        sections.truncate(SECTIONS - 1);
        Self { sections }
    }

    /// The format that a number stands for where the workbook does not define it. Those from 27 to 36 and from 50 to 58 are dates
    /// and times of East Asia.
    pub(super) fn built_in(id: u32) -> Self {
        Self::parse(match id {
            9 => "0%",
            10 => "0.00%",
            14..=17 | 27..=31 | 34..=36 | 50..=58 => "yyyy-mm-dd",
            18 => "h:mm AM/PM",
            19 => "h:mm:ss AM/PM",
            20 | 32 => "h:mm",
            21 | 33 => "h:mm:ss",
            22 => "yyyy-mm-dd h:mm",
            45 => "mm:ss",
            46 => "[h]:mm:ss",
            47 => "mm:ss.0",
            _ => "General",
        })
    }

    /// The text of a number; none where it is to be written as a plain number.
    pub(super) fn text(&self, value: f64, from_1904: bool) -> Option<String> {
        let (place, section) = self.section(value)?;
        let shown = value * 100_f64.powi(section.percents);
        if !shown.is_finite() {
            return None;
        }
        let text = match &section.kind {
            Kind::Number => None,
            Kind::LaidOut(layout) => self.laid_out(shown, place, layout),
            Kind::Clock(clock) => clock.text(value, from_1904),
        };
        // A percentage that cannot be laid out is one all the same.
        text.or_else(|| {
            let signs = usize::try_from(section.percents).ok()?;
            (signs > 0).then(|| shortest(shown) + &"%".repeat(signs))
        })
    }

    /// Returns a number in the layout of the section at `place`, with a minus sign where the section does not tell it, or `None` if it has
    /// no text there.
    fn laid_out(&self, value: f64, place: usize, layout: &Layout) -> Option<String> {
        let has_minus = value < 0.0 && !self.tells_sign(place, layout)?;
        let text = layout.text(value)?;
        Some(if has_minus { format!("-{text}") } else { text })
    }

    /// Returns true if the section at `place` is for negative numbers alone and tells the sign by its text: a section that differs from the one for
    /// positive numbers by its colour alone does not. Returns `None` if its condition leaves the sign open.
    fn tells_sign(&self, place: usize, layout: &Layout) -> Option<bool> {
        let first = self.sections.first()?;
        let is_for_negatives = match (self.sections.get(place)?.condition, first.condition) {
            (None, None) => place == 1,
            (None, Some(first)) if place == 1 && first.excludes_negatives() => true,
            (Some(own), _) if own.excludes_positives() => true,
            _ => return None,
        };
        let other = self.sections.get(usize::from(place == 0));
        let words = match other.map(|other| &other.kind) {
            Some(Kind::LaidOut(other)) => other.words(),
            _ => String::new(),
        };
        Some(is_for_negatives && (!layout.has_number() || layout.words() != words))
    }

    /// The place of the section that a number is shown by, and the section: the first one whose condition holds, or else the last one.
    fn section(&self, value: f64) -> Option<(usize, &Section)> {
        let count = self.sections.len();
        let holds = |(place, section): (usize, &Section)| match (section.condition, place) {
            (Some(condition), _) => condition.holds(value),
            (None, 0) if count == 2 => value >= 0.0,
            (None, 0) => value > 0.0,
            (None, _) => value < 0.0,
        };
        let found = self.sections.iter().enumerate().position(holds);
        let place = found.unwrap_or(count.saturating_sub(1));
        Some((place, self.sections.get(place)?))
    }
}

impl Condition {
    fn parse(text: &str) -> Option<Self> {
        let (operator, operand) = ["<=", ">=", "<>", "<", ">", "="]
            .into_iter()
            .find_map(|operator| Some((operator, text.strip_prefix(operator)?)))?;
        let operand = operand.trim().parse().ok()?;
        Some(Self { operator, operand })
    }

    fn excludes_negatives(self) -> bool {
        matches!(self.operator, ">" | ">=") && self.operand == 0.0
    }

    fn excludes_positives(self) -> bool {
        matches!(self.operator, "<" | "<=") && self.operand == 0.0
    }

    fn holds(self, value: f64) -> bool {
        match self.operator {
            "<=" => value <= self.operand,
            ">=" => value >= self.operand,
            "<>" => value != self.operand,
            "<" => value < self.operand,
            ">" => value > self.operand,
            _ => value == self.operand,
        }
    }
}

/// A section while it is read. Characters are taken from the end.
#[derive(Debug, Default)]
struct Reader {
    condition: Option<Condition>,
    pieces: Vec<Piece>,
    /// The section as one for plain numbers.
    draft: Draft,
    percents: i32,
    /// Whether there is a place for a digit, which no date has.
    has_digits: bool,
    /// Whether the section shows text.
    is_text: bool,
}

impl Reader {
    /// Reads up to the end of the section; none where the section is for text.
    fn section(mut self, rest: &mut Vec<char>) -> Option<Section> {
        while let Some(character) = rest.pop() {
            match character {
                ';' => break,
                '"' => {
                    while let Some(quoted) = rest.pop().filter(|c| *c != '"') {
                        self.text(quoted);
                    }
                }
                '\\' => {
                    if let Some(escaped) = rest.pop() {
                        self.text(escaped);
                    }
                }
                // The width of a character, and one that fills the cell.
                '_' => {
                    rest.pop();
                    self.draft.gap();
                }
                '*' => drop(rest.pop()),
                '[' => {
                    let mut inside = String::new();
                    while let Some(one) = rest.pop().filter(|c| *c != ']') {
                        inside.push(one);
                    }
                    self.brackets(&inside);
                }
                '%' => {
                    self.percents += 1;
                    self.draft.text('%');
                }
                '@' => self.is_text = true,
                '0' | '#' | '?' => {
                    self.has_digits = true;
                    self.draft.digit(character);
                }
                '.' if self.is_behind_seconds() && rest.last() == Some(&'0') => {
                    self.pieces.push(Piece::Fraction(taken(rest, '0')));
                }
                _ => self.letter(character, rest),
            }
        }
        let is_clock = |piece: &Piece| matches!(piece, Piece::Letters(..) | Piece::Elapsed(..));
        let is_percentage = self.percents > 0;
        let kind = if is_percentage && !self.has_digits {
            Kind::Number
        } else if !self.has_digits && self.pieces.iter().any(is_clock) {
            Kind::Clock(Clock::new(self.pieces))
        } else if self.is_text && !is_percentage {
            return None;
        } else {
            self.draft.layout().map_or(Kind::Number, Kind::LaidOut)
        };
        Some(Section {
            condition: self.condition,
            percents: self.percents,
            kind,
        })
    }

    fn text(&mut self, character: char) {
        self.pieces.push(Piece::Text(character));
        self.draft.text(character);
    }

    fn brackets(&mut self, inside: &str) {
        if let Some(currency) = inside.strip_prefix('$') {
            // A symbol, and a locale behind a hyphen.
            let symbol = currency.split('-').next().unwrap_or_default();
            return symbol.chars().for_each(|one| self.draft.text(one));
        }
        let inside = inside.to_ascii_lowercase();
        let first = inside.chars().next().unwrap_or_default();
        if matches!(first, 'h' | 'm' | 's') && inside.chars().all(|one| one == first) {
            self.pieces.push(Piece::Elapsed(first, inside.len()));
        } else {
            self.condition = self.condition.or(Condition::parse(&inside));
        }
    }

    fn letter(&mut self, character: char, rest: &mut Vec<char>) {
        const HALVES: [(&str, &str, &str); 3] = [
            ("am/pm", "AM", "PM"),
            ("a/p", "A", "P"),
            ("上午/下午", "上午", "下午"),
        ];
        if starts_with(character, rest, "general") {
            self.has_digits = true;
            self.draft.general();
            return skip(rest, "general");
        }
        let half = HALVES
            .iter()
            .find(|(words, ..)| starts_with(character, rest, words));
        if let Some((words, am, pm)) = half {
            self.pieces.push(Piece::HalfDay(am, pm));
            self.draft.refuse();
            return skip(rest, words);
        }
        match character.to_ascii_lowercase() {
            // The exponent of a number.
            'e' if self.has_digits && matches!(rest.last(), Some('+' | '-')) => {
                self.draft.refuse();
            }
            letter @ ('y' | 'm' | 'd' | 'h' | 's') => self.date(rest, letter, letter),
            // Years of other calendars, and days of the week.
            letter @ ('e' | 'g' | 'b') => self.date(rest, letter, 'y'),
            'a' if rest.ends_with(&['a', 'a']) => self.date(rest, 'a', 'd'),
            _ => {
                self.pieces.push(Piece::Text(character));
                self.draft.bare(character);
            }
        }
    }

    /// Adds a run of a letter of dates and times, whose first one was taken, as what it stands for.
    fn date(&mut self, rest: &mut Vec<char>, letter: char, stands_for: char) {
        let count = 1 + taken(rest, letter);
        self.pieces.push(Piece::Letters(stands_for, count));
        self.draft.refuse();
    }

    fn is_behind_seconds(&self) -> bool {
        matches!(
            self.pieces.last(),
            Some(Piece::Letters('s', _) | Piece::Elapsed('s', _))
        )
    }
}

/// Whether a character and those that come next are these words, in lower case or not.
fn starts_with(character: char, rest: &[char], words: &str) -> bool {
    let mut words = words.chars();
    words.next() == Some(character.to_ascii_lowercase())
        && words.clone().count() <= rest.len()
        && words
            .zip(rest.iter().rev())
            .all(|(one, c)| one == c.to_ascii_lowercase())
}

/// Takes what comes next of words whose first character was taken.
fn skip(rest: &mut Vec<char>, words: &str) {
    rest.truncate(rest.len() + 1 - words.chars().count());
}

/// Takes all of one letter that come next, and counts them.
fn taken(rest: &mut Vec<char>, letter: char) -> usize {
    let same = rest
        .iter()
        .rev()
        .take_while(|c| c.to_ascii_lowercase() == letter)
        .count();
    rest.truncate(rest.len() - same);
    same
}

/// The smallest whole number from which on not all are stored exactly.
const INEXACT: f64 = 9_007_199_254_740_992.0;

/// Returns true for a whole number that is stored exactly.
pub(super) fn is_exact(value: f64) -> bool {
    value.fract() == 0.0 && value.abs() < INEXACT
}

/// A number with the 15 digits that Excel keeps, without zeros at its end: in plain digits, or with an exponent where these would be
/// many. A whole number that is stored exactly has all of its digits.
pub(super) fn shortest(value: f64) -> String {
    const DIGITS: usize = 15;
    const PLAIN: std::ops::RangeInclusive<i32> = -9..=20;
    if value != 0.0 && is_exact(value) {
        return format!("{value:.0}");
    }
    let scientific = format!("{:.*e}", DIGITS - 1, value.abs());
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    let digits = digits.trim_end_matches('0');
    if digits.is_empty() {
        return "0".to_owned();
    }
    let mut text = String::from(if value < 0.0 { "-" } else { "" });
    // Where the point stands, in digits.
    let point = usize::try_from(exponent + 1).unwrap_or_default();
    if !PLAIN.contains(&exponent) {
        let (first, others) = digits.split_at(1);
        let point = if others.is_empty() { "" } else { "." };
        let sign = if exponent < 0 { '-' } else { '+' };
        text.push_str(&format!(
            "{first}{point}{others}E{sign}{:02}",
            exponent.abs()
        ));
    } else if exponent < 0 {
        let zeros = usize::try_from(-exponent - 1).unwrap_or_default();
        text.push_str(&format!("0.{}{digits}", "0".repeat(zeros)));
    } else if digits.len() <= point {
        text.push_str(&format!("{digits}{}", "0".repeat(point - digits.len())));
    } else {
        let (whole, part) = digits.split_at(point);
        text.push_str(&format!("{whole}.{part}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(code: &str, value: f64) -> String {
        NumberFormat::parse(code)
            .text(value, false)
            .unwrap_or_else(|| shortest(value))
    }

    #[test]
    fn numbers_have_the_digits_that_excel_shows() {
        for (value, expected) in [
            (4.35, "4.35"),
            (0.1 + 0.2, "0.3"),
            (-1.0 / 3.0, "-0.333333333333333"),
            (0.0, "0"),
            (-0.0, "0"),
            (14.0, "14"),
            (1_234_567_890_123_456.0, "1234567890123456"),
            (-9_007_199_254_740_991.0, "-9007199254740991"),
            (1_234_567.89, "1234567.89"),
            (0.000_012_5, "0.0000125"),
            (1e20, "100000000000000000000"),
            (1.5e21, "1.5E+21"),
            (-2e-10, "-2E-10"),
            (f64::MAX, "1.79769313486232E+308"),
        ] {
            assert_eq!(shortest(value), expected);
        }
    }

    #[test]
    fn text_in_a_format_makes_no_date() {
        for (code, value, expected) in [
            (r#"0 "days""#, 14.0, "14 days"),
            (r#"0.00 "USD per day""#, 4.35, "4.35 USD per day"),
            (
                r#"_-* #,##0.00\ "DM"_-;\-* #,##0.00\ "DM"_-;_-* "-"??\ "DM"_-;_-@_-"#,
                1234.5,
                "1234.50 DM",
            ),
            (r"0\d\a\y\s", 3.0, "3days"),
            (r"\d\m\y0", 3.0, "dmy3"),
            ("[Red]0.0;[Yellow]-0.0", -2.5, "-2.5"),
            ("[$USD-409] #,##0", 7.0, "USD 7"),
            ("[$€-407]* #,##0.00_d", 7.0, "€7.00"),
            ("General", 45_000.0, "45000"),
            (r#"General "days""#, 14.0, "14 days"),
            ("0.00E+00", 12_345.0, "12345"),
            ("# ?/?", 0.5, "0.5"),
            ("@", 45_000.0, "45000"),
            (r#";;;"hidden""#, 2.0, "2"),
            ("0 days", 14.0, "14"),
            (r#""day "0"#, 14.0, "day 14"),
            ("", 1.5, "1.5"),
        ] {
            assert_eq!(shown(code, value), expected, "{code}");
        }
    }

    #[test]
    fn percentages_are_such() {
        for (code, value, expected) in [
            ("0%", 0.25, "25%"),
            ("0%", -0.25, "-25%"),
            ("0%", 0.0, "0%"),
            ("0%", 12.0, "1200%"),
            ("0.0%", 0.125, "12.5%"),
            ("0.00%", 0.07, "7.00%"),
            ("0.00%", 1.0, "100.00%"),
            ("0.0#%", 0.125, "12.5%"),
            ("#,##0.0%", 12.345, "1234.5%"),
            ("0 %", 0.25, "25 %"),
            (r"0.0\ %", 0.25, "25.0 %"),
            ("0_ %", 0.25, "25 %"),
            ("%0", 0.25, "%25"),
            ("% 0.0", -0.125, "-% 12.5"),
            ("??%", 0.05, "5%"),
            ("??%", 5.0, "500%"),
            ("#%", 0.25, "25%"),
            ("00%", 0.05, "05%"),
            ("0%%", 0.25, "2500%%"),
            ("0.00%;[Red]-0.00%", 0.125, "12.50%"),
            ("0.00%;[Red]-0.00%", -0.125, "-12.50%"),
            ("0.0%;[Red]-0.0%", -0.125, "-12.5%"),
            ("0.00%;[Red]0.00%", -0.125, "-12.50%"),
            ("0.0%_);(0.0%)", -0.125, "(12.5%)"),
            (r#"+0%;-0%;"none""#, 0.25, "+25%"),
            (r#"0%;-0%;"none""#, 0.0, "none"),
            (r#"0%" of sales""#, 0.25, "25% of sales"),
            (r#""Rate "0.0%"#, 0.25, "Rate 25.0%"),
            // A sign that is text does not multiply.
            (r#"0"%""#, 25.0, "25%"),
            (r#"0" %""#, 25.0, "25 %"),
            (r#"0.0"%""#, 25.0, "25.0%"),
            (r"0\%", 25.0, "25%"),
            (r"0\ \%", 25.0, "25 %"),
            (r#"0"%"%"#, 0.25, "25%%"),
            ("[<1]0%;0.0", 0.5, "50%"),
            ("[<1]0%;0.0", -0.5, "-50%"),
            ("[<1]0%;0.0", 2.0, "2"),
            // Digits that are stored are shown, also where Excel rounds them.
            ("0%", 0.125, "12.5%"),
            ("0.0%", 1.0 / 3.0, "33.3333333333333%"),
            // What has no layout is a plain percentage.
            ("# ?/?%", 0.25, "25%"),
            ("0.00E+00%", 0.25, "25%"),
            ("0%", 1e300, "1E+302%"),
            ("#%", 0.0, "0%"),
        ] {
            assert_eq!(shown(code, value), expected, "{code} {value}");
        }
        for (id, expected) in [(9, "25%"), (10, "25.00%")] {
            let text = NumberFormat::built_in(id).text(0.25, false);
            assert_eq!(text.as_deref(), Some(expected), "{id}");
        }
        assert_eq!(shown("0%", f64::MAX), shortest(f64::MAX));
    }

    #[test]
    fn dates_and_times_are_told_apart() {
        for (code, value, expected) in [
            ("m/d/yyyy", 42_735.0, "2016-12-31"),
            ("yyyy-mm-dd;@", 42_735.5, "2016-12-31T12:00:00"),
            ("yyyy\\-mm\\-dd hh:mm", 42_735.0, "2016-12-31T00:00:00"),
            (
                "dd.mm.yyyy hh:mm:ss.000",
                42_735.000_001_5,
                "2016-12-31T00:00:00.130",
            ),
            ("[$-409]mmmm\\ d\\,\\ yyyy;@", 42_735.0, "2016-12-31"),
            ("mmm-yy", 42_735.0, "2016-12-31"),
            ("mm", 42_735.0, "2016-12-31"),
            ("[$-411]ggge\"年\"m\"月\"d\"日\"", 42_735.0, "2016-12-31"),
            ("aaaa", 42_735.0, "2016-12-31"),
            ("h:mm", 0.354_166_666_666_666_7, "8:30"),
            ("hh:mm;@", 0.354_166_666_666_666_7, "08:30"),
            (
                "[$-F400]h:mm:ss\\ AM/PM",
                0.854_178_240_740_740_7,
                "8:30:01 PM",
            ),
            ("h:mm AM/PM", 0.0, "12:00 AM"),
            ("上午/下午h\"时\"mm\"分\"", 0.75, "下午6时00分"),
            ("mm:ss.0", 0.001_5, "02:09.6"),
            ("h:mm", 0.999_999_9, "0:00"),
            ("h:mm", 45_000.25, "6:00"),
            ("[h]:mm", 1.5, "36:00"),
            ("[H]:MM:SS", 1.5, "36:00:00"),
            (r#"[h]" h "mm" min""#, 1.5, "36 h 00 min"),
            ("[mm]:ss", 0.05, "72:00"),
            ("[s]", 0.001, "86"),
            ("[h]:mm", -0.5, "-12:00"),
            ("h:mm", -0.5, "-0.5"),
            ("yyyy-mm-dd", -3.0, "-3"),
            ("yyyy-mm-dd", 0.0, "0"),
            ("yyyy-mm-dd hh:mm", 0.5, "12:00:00"),
            ("yyyy-mm-dd", 1.0, "1900-01-01"),
            ("yyyy-mm-dd", 59.0, "1900-02-28"),
            ("yyyy-mm-dd", 60.0, "1900-02-29"),
            ("yyyy-mm-dd", 61.0, "1900-03-01"),
            ("yyyy-mm-dd", 2_958_465.0, "9999-12-31"),
            ("yyyy-mm-dd", 2_958_466.0, "2958466"),
            ("yyyy-mm-dd", 1e300, "1E+300"),
            ("[h]:mm", 1e300, "1E+300"),
        ] {
            assert_eq!(shown(code, value), expected, "{code} {value}");
        }
        let in_1904 = |value| NumberFormat::built_in(14).text(value, true);
        assert_eq!(in_1904(42_735.0).as_deref(), Some("2021-01-01"));
        assert_eq!(in_1904(0.0).as_deref(), Some("1904-01-01"));
    }

    #[test]
    fn formats_of_no_sense_do_no_harm() {
        for code in [
            "\"", "[", "\\", "_", "*", ";;;;;;;", "[h", "[]", "[>]0", "[>=x]h", "AM/P", "s.",
            "%%%%", "é\"d",
        ] {
            shown(code, 1.25);
            shown(code, -1.25);
        }
        shown(&"h\"".repeat(100_000), 1.0);
        shown(&"%".repeat(100_000), 1.0);
    }
}
