//! Dates of workbooks that count days from 1904, not 1900. Source: ECMA-376 part 1, section 18.17.4.1.

use std::collections::HashSet;

use quick_xml::events::BytesStart;
use undoc::Block;

use super::{attribute, attributes};
use crate::package::Stored;

/// Days from the begin of the one system to that of the other.
const BETWEEN: f64 = 1_462.0;
/// How many formats of cells a workbook has at most, as Excel has them.
const MOST_STYLES: usize = 65_490;

/// Whether a workbook counts days from 1904.
pub(super) fn are_from_1904(workbook: &str) -> bool {
    attribute(workbook, "workbookPr", "date1904")
        .is_some_and(|value| matches!(value.as_str(), "1" | "true" | "on"))
}

/// Which styles of cells make a date of a number: those in which `undoc` shows the first day as one.
pub(super) fn styles(styles: &str) -> HashSet<usize> {
    let count = memchr::memmem::find_iter(styles.as_bytes(), "<xf").take(MOST_STYLES);
    let rows: String = (0..count.count())
        .map(|style| format!(r#"<row><c s="{style}"><v>1</v></c></row>"#))
        .collect();
    let sheet = format!("<worksheet><sheetData>{rows}</sheetData></worksheet>");
    let relation = |id: &str, target: &str| {
        format!(
            r#"<Relationships><Relationship Id="{id}" Type="t" Target="{target}"/></Relationships>"#
        )
    };
    let workbook = r#"<workbook><sheets><sheet name="S" r:id="r"/></sheets></workbook>"#;
    let parts = [
        ("xl/_rels/workbook.xml.rels", relation("r", "sheet.xml")),
        ("xl/sheet.xml", sheet),
        ("xl/styles.xml", styles.to_owned()),
        ("xl/workbook.xml", workbook.to_owned()),
    ];
    let mut stored = Stored::new();
    if parts
        .iter()
        .any(|(name, xml)| stored.add(name, xml).is_err())
    {
        return HashSet::new();
    }
    let shown = stored
        .finish()
        .ok()
        .and_then(|bytes| undoc::xlsx::XlsxParser::from_bytes(bytes).ok())
        .and_then(|mut parser| parser.parse().ok());
    let blocks = shown
        .into_iter()
        .flat_map(|shown| shown.sections)
        .flat_map(|s| s.content);
    let rows = blocks.flat_map(|block| match block {
        Block::Table(table) => table.rows,
        _ => vec![],
    });
    rows.enumerate()
        .filter(|(_, row)| {
            row.cells
                .first()
                .is_some_and(|cell| cell.plain_text() != "1")
        })
        .map(|(style, _)| style)
        .collect()
}

/// Whether a cell shows a number as a date.
pub(super) fn is_date(cell: &BytesStart<'_>, styles: &HashSet<usize>) -> bool {
    let (mut is_number, mut is_styled) = (true, false);
    for attribute in attributes(cell) {
        match attribute.key.as_ref() {
            "t" => is_number = &*attribute.value == "n",
            "s" => {
                is_styled = attribute
                    .value
                    .parse()
                    .is_ok_and(|style| styles.contains(&style))
            }
            _ => {}
        }
    }
    is_number && is_styled
}

/// A day of the system of 1904 in that of 1900. What is less than a day is a time, and the same in both.
pub(super) fn from_1900(value: &str) -> String {
    match value.trim().parse::<f64>() {
        Ok(day) if day >= 1.0 => (day + BETWEEN).to_string(),
        _ => value.to_owned(),
    }
}
