//! Numbers with the text, the currency, the percent sign and the leading zeros that their format adds to them. A section that adds none of these has no
//! layout: its numbers are plain (`number_format.rs`). Thousands are not separated. Source: ECMA-376 part 1, section 18.8.31.

use super::number_format::{is_exact, shortest};

/// The longest section that has a layout, in parts; Excel allows 255 characters.
const MOST_PARTS: usize = 255;
/// Characters that tell the sign of a number: alone, they make no layout.
const SIGNS: &str = "+-\u{2013}\u{2212}()";
/// Significant digits of a number, as Excel keeps them, and of a whole one that is stored exactly.
const SIGNIFICANT: usize = 15;
const SIGNIFICANT_EXACT: usize = 16;
/// The largest exponent of ten of a number that is shown in all its digits.
const LARGEST_EXPONENT: i32 = 20;

/// A part of a section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Text that is shown as it is, such as a currency symbol.
    Text(char),
    /// Space that is as wide as a character.
    Gap,
    /// A place of a digit: `0`, `#` or `?`.
    Digit(char),
    /// The decimal point.
    Point,
    /// A comma without quotes.
    Comma,
    /// A number in the format `General`.
    General,
}

/// A section of a format while it is read.
#[derive(Debug, Default)]
pub(super) struct Draft {
    parts: Vec<Part>,
    /// True if the section has an exponent, a fraction, or letters without quotes, which have no layout.
    is_unknown: bool,
}

impl Draft {
    /// Adds text in quotes, behind a backslash, or of a currency, or a percent sign.
    pub(super) fn text(&mut self, character: char) {
        self.parts.push(Part::Text(character));
    }

    /// Adds space that is as wide as a character.
    pub(super) fn gap(&mut self) {
        self.parts.push(Part::Gap);
    }

    /// Adds a place of a digit.
    pub(super) fn digit(&mut self, place: char) {
        self.parts.push(Part::Digit(place));
    }

    /// Adds the word `General`.
    pub(super) fn general(&mut self) {
        self.parts.push(Part::General);
    }

    /// Adds a character that stands for itself without quotes.
    pub(super) fn bare(&mut self, character: char) {
        match character {
            '.' => self.parts.push(Part::Point),
            ',' => self.parts.push(Part::Comma),
            '/' => self.refuse(),
            other if other.is_ascii_alphanumeric() => self.refuse(),
            other => self.text(other),
        }
    }

    /// Leaves the section without a layout.
    pub(super) fn refuse(&mut self) {
        self.is_unknown = true;
    }

    /// Returns the layout, or `None` if the numbers of the section are plain or cannot be laid out.
    pub(super) fn layout(self) -> Option<Layout> {
        if self.is_unknown || self.parts.len() > MOST_PARTS {
            return None;
        }
        let (parts, commas) = without_commas(&self.parts)?;
        let count = |part: Part| parts.iter().filter(|one| **one == part).count();
        let (first, last) = (
            parts.iter().position(is_digit),
            parts.iter().rposition(is_digit),
        );
        let is_known = match (count(Part::General), count(Part::Point)) {
            (0, 0) => true,
            (0, 1) => first.is_some(),
            (1, 0) => first.is_none(),
            _ => false,
        };
        if !is_known {
            return None;
        }
        let point = parts.iter().position(|one| *one == Part::Point);
        let (whole, decimals) = parts.split_at(point.unwrap_or(parts.len()));
        let (whole, decimals) = (places(whole), places(decimals));
        // A place behind a zero shows a zero as well.
        let least_whole = whole.iter().skip_while(|place| **place != '0').count();
        let last_zero = decimals.iter().rposition(|place| *place == '0');
        let is_padded = least_whole > 1 && !commas.separate;
        let is_split = first
            .zip(last)
            .is_some_and(|(first, last)| parts[first..last].iter().any(is_shown));
        if !is_padded && !is_split && !parts.iter().any(is_worded) {
            return None;
        }
        Some(Layout {
            whole_places: whole.len(),
            least_whole,
            least_decimals: last_zero.map_or(0, |at| at + 1),
            most_decimals: decimals.len(),
            thousands: commas.divide,
            is_split,
            parts,
        })
    }
}

fn is_digit(part: &Part) -> bool {
    matches!(part, Part::Digit(_))
}

/// True for text that is no space.
fn is_shown(part: &Part) -> bool {
    matches!(part, Part::Text(one) if !one.is_whitespace())
}

/// True for text that says more than a sign.
fn is_worded(part: &Part) -> bool {
    matches!(part, Part::Text(one) if !one.is_whitespace() && !SIGNS.contains(*one))
}

/// The places of digits among parts.
fn places(parts: &[Part]) -> Vec<char> {
    let place = |part: &Part| match part {
        Part::Digit(place) => Some(*place),
        _ => None,
    };
    parts.iter().filter_map(place).collect()
}

/// Commas of a section.
#[derive(Debug, Default)]
struct Commas {
    /// True if they separate thousands.
    separate: bool,
    /// How often they divide the number by a thousand.
    divide: i32,
}

/// Takes the commas out of a section, except those before its digits, which are text. Returns `None` if one of them stands elsewhere than
/// between digits, before the point or behind the last digit.
fn without_commas(parts: &[Part]) -> Option<(Vec<Part>, Commas)> {
    let (mut kept, mut commas) = (Vec::with_capacity(parts.len()), Commas::default());
    let is_other = |part: &&Part| **part != Part::Comma;
    for (at, part) in parts.iter().enumerate() {
        if *part != Part::Comma {
            kept.push(*part);
            continue;
        }
        let (before, behind) = (&parts[..at], &parts[at + 1..]);
        let is_behind_digit = before.iter().rev().find(is_other).is_some_and(is_digit);
        match behind.iter().find(is_other) {
            _ if !before.iter().any(is_digit) => kept.push(Part::Text(',')),
            _ if !is_behind_digit => return None,
            Some(Part::Digit(_)) if !before.contains(&Part::Point) => commas.separate = true,
            Some(Part::Point) => commas.divide += 1,
            _ if !behind.iter().any(is_digit) => commas.divide += 1,
            _ => return None,
        }
    }
    Some((kept, commas))
}

/// The layout of numbers in a section.
#[derive(Debug, Clone)]
pub(super) struct Layout {
    parts: Vec<Part>,
    /// Places of digits before the point.
    whole_places: usize,
    /// Digits before the point, at least.
    least_whole: usize,
    /// Digits behind the point, at least and at most.
    least_decimals: usize,
    most_decimals: usize,
    /// How often the number is divided by a thousand.
    thousands: i32,
    /// True if text stands between the digits.
    is_split: bool,
}

impl Layout {
    /// True if the number itself is shown, not text alone.
    pub(super) fn has_number(&self) -> bool {
        let is_number = |part: &Part| is_digit(part) || *part == Part::General;
        self.parts.iter().any(is_number)
    }

    /// Returns the text beside the number.
    pub(super) fn words(&self) -> String {
        let word = |part: &Part| match part {
            Part::Text(one) if !one.is_whitespace() => Some(*one),
            _ => None,
        };
        self.parts.iter().filter_map(word).collect()
    }

    /// Returns a number as it is shown, without its sign, or `None` if nothing is shown or its digits do not fit the layout.
    ///
    /// Decimals for which the format has no place are shown all the same, zero is a number where the format has signs alone for it, and a
    /// number of thousands that is none in full has no layout: nothing that is stored is hidden from a search.
    pub(super) fn text(&self, value: f64) -> Option<String> {
        let shows_zero =
            self.least_whole + self.least_decimals > 0 || self.parts.contains(&Part::General);
        if value == 0.0 && !shows_zero && !self.words().contains(char::is_alphanumeric) {
            return None;
        }
        if self.thousands == 0 && decimals_of(value) > self.most_decimals {
            return self.with_all_decimals(value);
        }
        let (whole, decimals) = if self.whole_places + self.most_decimals > 0 {
            self.digits(value)?
        } else {
            (String::new(), String::new())
        };
        let mut text = String::new();
        let mut decimals_left = decimals.chars();
        let (mut place, mut begin, mut is_behind_point) = (0, 0, false);
        for part in &self.parts {
            match part {
                Part::Text(one) => text.push(*one),
                Part::Gap => text.push(' '),
                Part::Comma => {}
                Part::General => text.push_str(&shortest(value.abs())),
                Part::Point => {
                    if self.whole_places == 0 {
                        text.push_str(&whole);
                    }
                    if !decimals.is_empty() || self.most_decimals == 0 {
                        text.push('.');
                    }
                    is_behind_point = true;
                }
                Part::Digit(_) if is_behind_point => text.extend(decimals_left.next()),
                Part::Digit(_) => {
                    place += 1;
                    // The first place has all digits for which there is no place.
                    let end = whole.len().saturating_sub(self.whole_places - place);
                    text.push_str(whole.get(begin..end).unwrap_or_default());
                    begin = end;
                }
            }
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then_some(text)
    }

    /// Returns the shortest decimal of a number in the place of its digits, or `None` if text stands between these.
    fn with_all_decimals(&self, value: f64) -> Option<String> {
        if self.is_split {
            return None;
        }
        let number = shortest(value.abs());
        let decimals = number.len() - number.find('.').unwrap_or(number.len());
        let width = self.least_whole + decimals;
        let (mut text, mut is_shown) = (String::new(), false);
        for part in &self.parts {
            match part {
                Part::Text(one) => text.push(*one),
                Part::Gap => text.push(' '),
                Part::Comma | Part::Point => {}
                Part::General | Part::Digit(_) if is_shown => {}
                Part::General | Part::Digit(_) => {
                    let zeros = width.saturating_sub(number.len());
                    text.extend(std::iter::repeat_n('0', zeros));
                    text.push_str(&number);
                    is_shown = true;
                }
            }
        }
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        (!text.is_empty()).then_some(text)
    }

    /// Returns the digits of a number before and behind the point; `None` if there are too many, or more than the layout has places for, or if a whole
    /// number has more than are sure.
    fn digits(&self, value: f64) -> Option<(String, String)> {
        let significant = match is_exact(value) {
            true => SIGNIFICANT_EXACT,
            false => SIGNIFICANT,
        };
        let scientific = format!("{:.*e}", significant - 1, value.abs());
        let is_unsure = value.fract() == 0.0 && scientific.parse::<f64>() != Ok(value.abs());
        if is_unsure {
            return None;
        }
        let (mantissa, exponent) = scientific.split_once('e')?;
        let mantissa: u128 = mantissa.replace('.', "").parse().ok()?;
        let exponent: i32 = exponent.parse().ok()?;
        if exponent > LARGEST_EXPONENT {
            return None;
        }
        let behind_first = i32::try_from(significant - 1).ok()?;
        let decimals = i32::try_from(self.most_decimals).ok()?;
        // The number, counted in units of its last place, is the mantissa times this power of ten.
        let shift = exponent - behind_first - 3 * self.thousands + decimals;
        let units = match 10_u128.checked_pow(shift.unsigned_abs()) {
            Some(power) if shift >= 0 => mantissa.checked_mul(power)?,
            Some(power) if mantissa.is_multiple_of(power) => mantissa / power,
            _ => return None,
        };
        let width = self.most_decimals + 1;
        let units = format!("{units:0width$}");
        let (whole, decimals) = units.split_at(units.len() - self.most_decimals);
        let (whole, least) = (whole.trim_start_matches('0'), self.least_whole);
        let shown = decimals.trim_end_matches('0').len();
        let decimals = &decimals[..shown.max(self.least_decimals)];
        Some((format!("{whole:0>least$}"), decimals.to_owned()))
    }
}

/// The digits behind the point of a number's shortest decimal; none where it has an exponent.
fn decimals_of(value: f64) -> usize {
    let text = shortest(value);
    match text.split_once('.') {
        Some((_, decimals)) if decimals.bytes().all(|digit| digit.is_ascii_digit()) => {
            decimals.len()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use crate::office::number_format::{NumberFormat, shortest};

    fn check(all: &[(&str, f64, &str)]) {
        for (code, value, expected) in all {
            let shown = NumberFormat::parse(code).text(*value, false);
            let shown = shown.unwrap_or_else(|| shortest(*value));
            assert_eq!(shown, *expected, "{code} {value}");
        }
    }

    #[test]
    fn whole_numbers_keep_their_zeros() {
        check(&[
            ("00000", 1_067.0, "01067"),
            ("00000", -1_067.0, "-01067"),
            ("00000", 123_456.0, "123456"),
            ("00000", 0.0, "00000"),
            (
                "0000 0000 0000 0000",
                1_234_567_890_123_456.0,
                "1234 5678 9012 3456",
            ),
            ("0000 0000 0000 0000", 4_000.0, "0000 0000 0000 4000"),
            (r#"0 "m""#, 1e18, "1000000000000000000 m"),
            ("0000000000", 30_123_456.0, "0030123456"),
            (r#"0"0"000 0000000"#, 12_345_678_901.0, "10234 5678901"),
            ("(000) 000-0000", 2_025_550_143.0, "(202) 555-0143"),
            (
                r"[<=9999999]000\-0000;\(000\)\ 000\-0000",
                5_550_143.0,
                "555-0143",
            ),
            ("###-####", 12_345.0, "1-2345"),
            ("000-00-0000", 1_234_567.0, "001-23-4567"),
            ("0000-00-00", 20_240_105.0, "2024-01-05"),
            (r"00\:00", 830.0, "08:30"),
            (r"\1\.0#", 7.0, "1.07"),
            ("00.0#", 1.25, "01.25"),
            ("0,000", 12.0, "12"),
            ("000;000", -7.0, "-007"),
            ("00000", 1_067.5, "01067.5"),
            ("00.0", 0.25, "00.25"),
            (r"00\:00", 830.5, "830.5"),
        ]);
    }

    #[test]
    fn text_stands_before_and_behind_numbers() {
        check(&[
            (r#"0 "days""#, 14.0, "14 days"),
            (r#"0 "days""#, 14.5, "14.5 days"),
            (r#"0.0 "days""#, -14.25, "-14.25 days"),
            (r##"#,##0 "€""##, 1_234.56, "1234.56 €"),
            (r#"0.0# "m""#, 2.5, "2.5 m"),
            (r#"0.## "m""#, 2.0, "2 m"),
            (r#".00 "m""#, 12.5, "12.50 m"),
            (r#""No. "0"#, 3.0, "No. 3"),
            (r#"0".""#, 3.0, "3."),
            (r#"General "kg""#, -1.5, "-1.5 kg"),
            (r#"General "kg""#, 1e300, "1E+300 kg"),
            (r#"0_ "kg""#, 5.0, "5 kg"),
            (r#"0 "°C""#, 21.0, "21 °C"),
            (r"0\ \m\²", 80.0, "80 m²"),
            (r#"0,"k""#, 14_000.0, "14k"),
            (r#"0,"k""#, 14_600.0, "14600"),
            (r#"0,"k""#, 0.0, "0k"),
            (r#"#,##0.0,,"M""#, 1_234_600_000.0, "1234.6M"),
            (r#"#,##0.0,,"M""#, 1_234_567_890.0, "1234567890"),
            (r#"0,.0"k""#, 1_300.0, "1.3k"),
            (r#"0,.0"k""#, 1_250.0, "1250"),
            (r#"#,##0 "€/m""#, 1_234.0, "1234 €/m"),
        ]);
    }

    #[test]
    fn currencies_are_shown() {
        check(&[
            ("[$€-407] #,##0.00", 2.5, "€ 2.50"),
            ("[$€-407]#,##0.00", -2.5, "-€2.50"),
            (r"#,##0.00\ [$zł-415]", 1_234.5, "1234.50 zł"),
            (r##""$"#,##0.00"##, 1_234.5, "$1234.50"),
            ("$#,##0_-", 7.0, "$7"),
            ("[$EUR ]#,##0.00_-", 7.0, "EUR 7.00"),
            ("[$R$-416] 0.00", 1.005, "R$ 1.005"),
            ("[$€-x-euro1] 0", 3.0, "€ 3"),
            (
                r#"_("$"* #,##0.00_);_("$"* \(#,##0.00\);_("$"* "-"??_);_(@_)"#,
                -5.0,
                "$(5.00)",
            ),
            (
                r#"_("$"* #,##0.00_);_("$"* \(#,##0.00\);_("$"* "-"??_);_(@_)"#,
                0.0,
                "0",
            ),
        ]);
    }

    #[test]
    fn each_sign_has_its_section() {
        let credit = r#"0.0" credit";0.0" debit";"settled""#;
        check(&[
            (credit, 5.0, "5.0 credit"),
            (credit, -5.0, "5.0 debit"),
            (credit, 0.0, "settled"),
            (r#""Yes";"Yes";"No""#, 1.0, "Yes"),
            (r#""Yes";"Yes";"No""#, -1.0, "Yes"),
            (r#""Yes";"Yes";"No""#, 0.0, "No"),
            // A section that tells the sign by its colour alone.
            (r#""$"0;[Red]"$"0"#, -5.0, "-$5"),
            (r#""$"0;[Red]-"$"0"#, -5.0, "-$5"),
            (r#"[<0]0" below";0" above""#, -3.0, "3 below"),
            (r#"[>=0]0" above";0" below""#, -3.0, "3 below"),
            // Conditions that leave it open keep the number as it is.
            (r#"[<100]0" kg";0" t""#, -3.5, "-3.5"),
            (r#"[<100]0" kg";0" t""#, 3.5, "3.5 kg"),
            (r#"[<100]0" kg";0" t""#, 300.0, "300 t"),
        ]);
    }

    #[test]
    fn plain_formats_show_what_is_stored() {
        check(&[
            ("0.00", 2.0, "2"),
            ("#,##0.00", 1_234.567, "1234.567"),
            ("General", 0.1, "0.1"),
            ("#,##0_);(#,##0)", -5.0, "-5"),
            (r#"_-* #,##0_-;-* #,##0_-;_-* "-"??_-;_-@_-"#, 0.0, "0"),
            ("#,##0,", 1_234_567.0, "1234567"),
            (r"#\ ##0", 1_234.5, "1234.5"),
            ("+0;-0", 5.25, "5.25"),
            ("0.", 1.5, "1.5"),
        ]);
    }

    #[test]
    fn sections_without_a_layout_show_plain_numbers() {
        check(&[
            (r#"0.00E+00 "J""#, 12_345.0, "12345"),
            (r#"# ?/? "in""#, 0.5, "0.5"),
            (r#"0.0.0 "x""#, 1.5, "1.5"),
            ("0 km", 1.5, "1.5"),
            (r#"0.0,0 "x""#, 1.5, "1.5"),
            (r#"0,"x"0"#, 1.5, "1.5"),
            (r#"General0 "x""#, 1.5, "1.5"),
            (r#""x"."#, 1.5, "1.5"),
            (r#"0 "x""#, 1e300, "1E+300"),
            (r#"0.00 "x""#, 1e-300, "1E-300"),
            (r#"0.00 "x""#, 2.5e-10, "2.5E-10"),
        ]);
        let long = format!("0\"{}\"", "x".repeat(300));
        check(&[(long.as_str(), 1.5, "1.5")]);
        let decimals = format!("0.{} \"x\"", "0".repeat(60));
        check(&[(decimals.as_str(), 1.5, "1.5")]);
    }
}
