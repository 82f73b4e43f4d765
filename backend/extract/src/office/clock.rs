//! Dates and times of cells: a number of days, as Excel counts them. Source: ECMA-376 part 1, section 18.17.4.

use super::number_format::Piece;

/// Days from the begin of the system of 1900 to that of the system of 1904.
const BETWEEN: f64 = 1_462.0;
/// The last day that there is, of the year 9999.
const LAST_DAY: f64 = 2_958_466.0;
/// The day of 1970-01-01.
const EPOCH: i64 = 25_569;
/// Seconds of a day.
const DAY_SECONDS: f64 = 86_400.0;
/// What is counted of an elapsed time, in days: more is no time.
const LONGEST_ELAPSED: f64 = 1e9;

/// A format of dates, of times, or of both.
#[derive(Debug, Clone)]
pub(super) struct Clock {
    pieces: Vec<Piece>,
    has_date: bool,
    has_time: bool,
    is_elapsed: bool,
    /// Digits of the fraction of a second.
    digits: usize,
}

impl Clock {
    /// A format of these pieces, in which `m` stands for months. Those beside hours or seconds become minutes (`n`).
    pub(super) fn new(mut pieces: Vec<Piece>) -> Self {
        let mut after_hours = false;
        for at in 0..pieces.len() {
            let is_short = matches!(pieces[at], Piece::Letters('m', 1 | 2));
            let mut later = pieces[at + 1..].iter().filter_map(letter);
            if is_short
                && (after_hours || later.next() == Some('s'))
                && let Piece::Letters(letter, _) = &mut pieces[at]
            {
                *letter = 'n';
            }
            if let Some(letter) = letter(&pieces[at]) {
                after_hours = letter == 'h';
            }
        }
        let has = |letters: &str| {
            pieces
                .iter()
                .filter_map(letter)
                .any(|one| letters.contains(one))
        };
        let fractions = pieces.iter().filter_map(|piece| match piece {
            Piece::Fraction(digits) => Some(*digits),
            _ => None,
        });
        let is_elapsed = pieces
            .iter()
            .any(|piece| matches!(piece, Piece::Elapsed(..)));
        Self {
            has_date: has("ymd") && !is_elapsed,
            has_time: has("hns"),
            is_elapsed,
            // Excel shows three at most.
            digits: fractions.max().unwrap_or_default().min(3),
            pieces,
        }
    }

    /// The text of a number of days; none where it is no date or no time.
    pub(super) fn text(&self, value: f64, from_1904: bool) -> Option<String> {
        let scale = 10_i64.pow(u32::try_from(self.digits).ok()?);
        let ticks = |days: f64| (days * DAY_SECONDS * scale as f64).round() as i64;
        if self.is_elapsed {
            let sign = if value < 0.0 { "-" } else { "" };
            let is_time = value.abs() < LONGEST_ELAPSED;
            return is_time.then(|| format!("{sign}{}", self.time(ticks(value.abs()), scale)));
        }
        let value = if from_1904 && self.has_date {
            value + BETWEEN
        } else {
            value
        };
        if !(0.0..LAST_DAY).contains(&value) {
            return None;
        }
        let a_day = DAY_SECONDS as i64 * scale;
        let (day, time) = (
            ticks(value).div_euclid(a_day),
            ticks(value).rem_euclid(a_day),
        );
        if !self.has_date {
            return Some(self.time(time, scale));
        }
        let shows_time = self.has_time || time > 0;
        let time = shows_time.then(|| self.iso_time(time, scale));
        match (day, time) {
            // No day at all: a time where there is one.
            (0, time) => time.filter(|_| value > 0.0),
            (day, None) => Some(date(day)),
            (day, Some(time)) => Some(format!("{}T{time}", date(day))),
        }
    }

    /// The time within a day, as ISO 8601 writes it.
    fn iso_time(&self, ticks: i64, scale: i64) -> String {
        let seconds = ticks / scale;
        let (hour, minute, second) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        let fraction = self.fraction(ticks % scale, self.digits);
        format!("{hour:02}:{minute:02}:{second:02}{fraction}")
    }

    fn fraction(&self, ticks: i64, shown: usize) -> String {
        let all = format!("{ticks:0width$}", width = self.digits);
        match shown.min(self.digits) {
            0 => String::new(),
            shown => format!(".{}", &all[..shown]),
        }
    }

    /// A time, as the format shows it.
    fn time(&self, ticks: i64, scale: i64) -> String {
        let seconds = ticks / scale;
        let half = self
            .pieces
            .iter()
            .any(|piece| matches!(piece, Piece::HalfDay(..)));
        let hour = seconds / 3_600 % 24;
        let mut text = String::new();
        for piece in &self.pieces {
            let (number, width) = match piece {
                Piece::Elapsed('h', width) => (seconds / 3_600, *width),
                Piece::Elapsed('m', width) => (seconds / 60, *width),
                Piece::Elapsed(_, width) => (seconds, *width),
                Piece::Letters('h', width) if half => ((hour + 11) % 12 + 1, *width),
                Piece::Letters('h', width) => (hour, *width),
                Piece::Letters('n' | 'm', width) => (seconds / 60 % 60, *width),
                Piece::Letters(_, width) => (seconds % 60, *width),
                Piece::Fraction(digits) => {
                    text.push_str(&self.fraction(ticks % scale, *digits));
                    continue;
                }
                Piece::HalfDay(am, pm) => {
                    text.push_str(if hour < 12 { am } else { pm });
                    continue;
                }
                Piece::Text(character) => {
                    text.push(*character);
                    continue;
                }
            };
            text.push_str(&format!("{number:0width$}", width = width.min(9)));
        }
        text.trim().to_owned()
    }
}

/// The letter that a piece stands for.
fn letter(piece: &Piece) -> Option<char> {
    match piece {
        Piece::Letters(letter, _) | Piece::Elapsed(letter, _) => Some(*letter),
        Piece::Fraction(_) | Piece::HalfDay(..) | Piece::Text(_) => None,
    }
}

/// A day of the system of 1900, from 1 on. There, 1900 is a leap year: its day 60 is none.
fn date(day: i64) -> String {
    if day == 60 {
        return "1900-02-29".to_owned();
    }
    let day = if day < 60 { day + 1 } else { day };
    // Days of the Gregorian calendar, counted from 0000-03-01.
    let days = day - EPOCH + 719_468;
    let era = days.div_euclid(146_097);
    let of_era = days.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{of_month:02}")
}
