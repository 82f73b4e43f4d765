//! Numbers of cells as Excel shows them: with the digits that it keeps, and as dates and times, or with text, a currency, a percent sign and
//! leading zeros, by the format of the cell. `undoc` prints doubles as they are stored, and takes text in a format for a date. Source: ECMA-376 part 1, section 18.8.

use std::collections::HashMap;

use quick_xml::events::{BytesStart, Event};

use super::{
    attribute, attributes, events,
    number_format::{NumberFormat, shortest},
};

/// How many formats of cells a workbook has at most, as Excel has them.
pub(super) const MOST_STYLES: usize = 65_490;

/// The number formats of a workbook.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    formats: HashMap<u32, NumberFormat>,
    /// The format of each style of cells.
    styles: Vec<u32>,
    from_1904: bool,
}

impl Numbers {
    /// Reads the styles of a workbook, whose prefixes are those of Office, and which system its dates are of.
    pub(super) fn read(workbook: &str, styles: &str) -> Self {
        let from_1904 = attribute(workbook, "workbookPr", "date1904")
            .is_some_and(|value| matches!(value.as_str(), "1" | "true" | "on"));
        let mut numbers = Self {
            from_1904,
            ..Self::default()
        };
        let mut is_cells = false;
        for event in events(styles) {
            match event {
                Event::Start(start) | Event::Empty(start) => match start.local_name().as_ref() {
                    "cellXfs" => is_cells = true,
                    "numFmt" => numbers.define(&start),
                    "xf" if is_cells && numbers.styles.len() < MOST_STYLES => {
                        numbers
                            .styles
                            .push(number(&start, "numFmtId").unwrap_or_default());
                    }
                    _ => {}
                },
                Event::End(end) if end.local_name().as_ref() == "cellXfs" => is_cells = false,
                _ => {}
            }
        }
        numbers.with_built_in()
    }

    /// The formats of a workbook of Excel 5.0 to 2003: those that it defines, with their numbers, and the number of each style.
    pub(super) fn of(
        formats: impl Iterator<Item = (u32, String)>,
        styles: Vec<u32>,
        from_1904: bool,
    ) -> Self {
        let formats = formats.map(|(id, code)| (id, NumberFormat::parse(&code)));
        let numbers = Self {
            formats: formats.collect(),
            styles,
            from_1904,
        };
        numbers.with_built_in()
    }

    /// Adds the formats that styles name and the workbook does not define.
    fn with_built_in(mut self) -> Self {
        for id in &self.styles {
            let built_in = || NumberFormat::built_in(*id);
            self.formats.entry(*id).or_insert_with(built_in);
        }
        self
    }

    fn define(&mut self, format: &BytesStart<'_>) {
        let code = attributes(format).find(|one| one.key.as_ref() == "formatCode");
        if let (Some(id), Some(code)) = (number(format, "numFmtId"), code)
            && self.formats.len() < MOST_STYLES
        {
            let code = quick_xml::escape::unescape(&code.value);
            let code = code.unwrap_or_default();
            self.formats.insert(id, NumberFormat::parse(&code));
        }
    }

    /// The style of a cell that holds a number, 0 where it names none; none for other cells.
    pub(super) fn style(cell: &BytesStart<'_>) -> Option<usize> {
        let mut style = 0;
        for attribute in attributes(cell) {
            match attribute.key.as_ref() {
                "t" if &*attribute.value != "n" => return None,
                "s" => style = attribute.value.trim().parse().unwrap_or_default(),
                _ => {}
            }
        }
        Some(style)
    }

    /// What a cell of a style shows of a number, as text of XML. What is no number stays as it is.
    pub(super) fn text(&self, stored: &str, style: usize) -> String {
        let plain = stored.trim();
        let value = plain.parse().ok().filter(|value: &f64| value.is_finite());
        let Some(value) = value else {
            return stored.to_owned();
        };
        match self.formatted(value, style) {
            Some(text) => quick_xml::escape::escape(text).into_owned(),
            // The digits of a whole number were chosen by who wrote the file.
            None => whole(plain).unwrap_or_else(|| shortest(value)),
        }
    }

    /// The text that a cell of a style shows of a number that is stored in binary.
    pub(super) fn shown(&self, value: f64, style: usize) -> String {
        let formatted = self.formatted(value, style);
        formatted.unwrap_or_else(|| shortest(value))
    }

    /// The text of a number in a format of its own; none where it is a plain number.
    fn formatted(&self, value: f64, style: usize) -> Option<String> {
        let format = self.styles.get(style).and_then(|id| self.formats.get(id))?;
        format.text(value, self.from_1904)
    }
}

/// The most digits of a whole number that is written with an exponent and shown in plain digits.
const MOST_DIGITS: usize = 21;

/// The digits of a number that is written as a whole one and not padded, also with an exponent, as Excel writes those of more than 15 digits:
/// `1.2345678901234568E+16`. `None` for another number.
fn whole(text: &str) -> Option<String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_plain(digits) {
        return (!digits.starts_with('0') || text == "0").then(|| text.to_owned());
    }
    let (mantissa, exponent) = digits.split_once(['E', 'e'])?;
    let (first, others) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let others = others.trim_end_matches('0');
    let exponent: usize = exponent.parse().ok()?;
    let is_normal = first.len() == 1 && first != "0" && is_plain(first) && is_plain(others);
    if !is_normal || exponent < others.len() || exponent >= MOST_DIGITS {
        return None;
    }
    let sign = if text.starts_with('-') { "-" } else { "" };
    let zeros = "0".repeat(exponent - others.len());
    Some(format!("{sign}{first}{others}{zeros}"))
}

/// The number that an attribute holds.
fn number(start: &BytesStart<'_>, name: &str) -> Option<u32> {
    let found = attributes(start).find(|one| one.key.as_ref() == name)?;
    found.value.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_name_formats() {
        let styles = r#"<styleSheet><numFmts><numFmt numFmtId="164" formatCode="0.0 &quot;days&quot;"/><numFmt numFmtId="165" formatCode="h&quot;&lt;&quot;mm"/></numFmts><cellStyleXfs><xf numFmtId="14"/></cellStyleXfs><cellXfs><xf numFmtId="0"/><xf numFmtId="164"><alignment/></xf><xf numFmtId="165"/><xf numFmtId="14"/></cellXfs><cellStyles><xf numFmtId="9"/></cellStyles></styleSheet>"#;
        let numbers = Numbers::read("", styles);
        for (style, stored, expected) in [
            (0, "4.3499999999999996", "4.35"),
            (1, "14", "14.0 days"),
            (2, "0.25", "6&lt;00"),
            (3, "14", "1900-01-14"),
            (4, "14", "14"),
            (0, "12345678901234567", "12345678901234567"),
            (0, "1e3", "1000"),
            (0, "1234567890123456", "1234567890123456"),
            (0, "1.2345678901234568E+16", "12345678901234568"),
            (0, "-1.234567890123456789E+18", "-1234567890123456789"),
            (0, "1.5E+21", "1.5E+21"),
            (0, "4.3499999999999996E+1", "43.5"),
            (0, "inf", "inf"),
            (0, "a &amp; b", "a &amp; b"),
            (0, "", ""),
        ] {
            assert_eq!(numbers.text(stored, style), expected, "{style} {stored}");
        }
    }
}
