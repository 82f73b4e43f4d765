//! CSV as RFC 4180 has it, safe to open in spreadsheets.

use std::fmt::{Display, Write as _};

use axum::http::{HeaderMap, header::ACCEPT};

/// The media type of files with a row of names.
pub(super) const MEDIA_TYPE: &str = "text/csv; charset=utf-8; header=present";

/// Rows that are written one after the other.
#[derive(Debug, Default)]
pub(super) struct Csv {
    text: String,
    /// True if the current row has a field.
    begun: bool,
}

impl Csv {
    /// Adds a field that needs no quotes: a number, a day, or a name of this program.
    pub(super) fn value(&mut self, value: &(impl Display + ?Sized)) {
        self.separate();
        // Writing to a string does not fail.
        let _ = write!(self.text, "{value}");
    }

    /// Adds a field that somebody wrote. Where a spreadsheet would take it for a formula, it begins with `'`.
    pub(super) fn text(&mut self, text: &str) {
        self.separate();
        let defused = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
            format!("'{text}")
        } else {
            text.to_owned()
        };
        if defused.contains([',', '"', '\r', '\n']) {
            let _ = write!(self.text, "\"{}\"", defused.replace('"', "\"\""));
        } else {
            self.text.push_str(&defused);
        }
    }

    fn separate(&mut self) {
        if self.begun {
            self.text.push(',');
        }
        self.begun = true;
    }

    /// Ends the current row.
    pub(super) fn end_row(&mut self) {
        self.text.push_str("\r\n");
        self.begun = false;
    }

    /// Returns what was written.
    pub(super) fn finish(self) -> String {
        self.text
    }
}

/// Returns true if `Accept` prefers CSV to JSON. Whoever accepts anything gets JSON.
pub(super) fn is_preferred(headers: &HeaderMap) -> bool {
    let mut csv = 0.0;
    let mut json = 0.0;
    let mut other = 0.0;
    let values = headers.get_all(ACCEPT).into_iter();
    let ranges = values.filter_map(|value| value.to_str().ok());
    for range in ranges.flat_map(|value| value.split(',')) {
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        let weight: f32 = weight.map_or(1.0, |weight| weight.parse().unwrap_or(0.0));
        match kind.as_str() {
            "text/csv" => csv = weight,
            "application/json" => json = weight,
            "*/*" | "application/*" => other = weight.max(other),
            _ => {}
        }
    }
    csv > json && csv >= other
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn fields_are_quoted_and_formulas_are_defused() {
        let mut csv = Csv::default();
        csv.value("day");
        csv.value(&7);
        for text in ["plain", "a,b", "say \"hi\"", "two\nlines", "", "é"] {
            csv.text(text);
        }
        csv.end_row();
        for text in ["=1+1", "+1", "-1", "@a", "\ta", "=\"a\",b", "a=b"] {
            csv.text(text);
        }
        csv.end_row();
        let expected = "day,7,plain,\"a,b\",\"say \"\"hi\"\"\",\"two\nlines\",,é\r\n\
                        '=1+1,'+1,'-1,'@a,'\ta,\"'=\"\"a\"\",b\",a=b\r\n";
        assert_eq!(csv.finish(), expected);
    }

    #[test]
    fn csv_is_sent_to_whoever_prefers_it() {
        for (accept, preferred) in [
            ("text/csv", true),
            ("TEXT/CSV; q=0.5", true),
            ("text/csv, */*", true),
            ("text/csv, application/json;q=0.9", true),
            ("text/csv;header=present;q=0.5, */*;q=0.1", true),
            ("text/csv, application/json", false),
            ("text/csv;q=0.1, */*", false),
            ("text/csv;q=0", false),
            ("text/csv;q=x", false),
            ("application/json", false),
            ("*/*", false),
            ("", false),
        ] {
            let mut headers = HeaderMap::new();
            assert!(!is_preferred(&headers));
            headers.insert(ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(is_preferred(&headers), preferred, "{accept}");
        }
    }
}
