//! Numbers of workbooks: as Excel shows them, not as they are stored.

use std::io::{Cursor, Read as _};

use colloquy_extract::{Format, Options, extract};
use zip::ZipArchive;

use super::made::{docx, pptx, relation, relations, xlsx_of};

fn text(bytes: &[u8], format: Format) -> String {
    extract(bytes, format, &Options::default())
        .unwrap()
        .markdown
}

/// The parts of a workbook that Excel writes for cells of these formats.
#[test]
fn numbers_of_excel_are_those_that_it_shows() {
    let workbook = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<workbook xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><fileVersion appName="xl" lastEdited="7" lowestEdited="7" rupBuild="28127"/><workbookPr defaultThemeVersion="202300"/><sheets><sheet name="Rates" sheetId="1" r:id="r1"/></sheets><calcPr calcId="191029"/></workbook>"#;
    let styles = r##"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<styleSheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" mc:Ignorable="x14ac" xmlns:x14ac="http://schemas.microsoft.com/office/spreadsheetml/2009/9/ac"><numFmts count="5"><numFmt numFmtId="44" formatCode="_-* #,##0.00\ &quot;DM&quot;_-;\-* #,##0.00\ &quot;DM&quot;_-;_-* &quot;-&quot;??\ &quot;DM&quot;_-;_-@_-"/><numFmt numFmtId="164" formatCode="0\ &quot;days&quot;"/><numFmt numFmtId="165" formatCode="0.00\ &quot;USD per day&quot;"/><numFmt numFmtId="166" formatCode="[$-F400]h:mm:ss\ AM/PM"/><numFmt numFmtId="167" formatCode="[h]:mm"/></numFmts><cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs><cellXfs count="10"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/><xf numFmtId="164" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/><xf numFmtId="165" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/><xf numFmtId="44" fontId="0" fillId="0" borderId="0" xfId="0" applyFont="1"><alignment horizontal="left"/></xf><xf numFmtId="20" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/><xf numFmtId="166" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/><xf numFmtId="167" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/><xf numFmtId="10" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/><xf numFmtId="22" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/><xf numFmtId="14" fontId="0" fillId="0" borderId="0" xfId="0" applyNumberFormat="1"/></cellXfs></styleSheet>"##;
    let sheet = r#"<?xml version="1.0" encoding="UTF-8" standalone="yes"?>
<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><dimension ref="A1:E3"/><sheetData><row r="1" spans="1:5" x14ac:dyDescent="0.25"><c r="A1" s="1"><v>14</v></c><c r="B1" s="2"><v>4.3499999999999996</v></c><c r="C1" s="3"><v>1234.5</v></c><c r="D1"><v>4.3499999999999996</v></c><c r="E1"><f>D1*2</f><v>0.30000000000000004</v></c></row><row r="2"><c r="A2" s="4"><v>0.35416666666666669</v></c><c r="B2" s="5"><v>0.85416666666666663</v></c><c r="C2" s="6"><v>1.5</v></c><c r="D2" s="7"><v>0.125</v></c><c r="E2" s="8"><v>42735.5</v></c></row><row r="3"><c r="A3" s="9"><v>42735</v></c><c r="B3" s="1"/><c r="C3" s="9" t="str"><f>"14"</f><v>14</v></c><c r="D3" t="b"><v>1</v></c><c r="E3" s="1" t="e"><v>#N/A</v></c></row></sheetData></worksheet>"#;
    let styles: (&str, &[u8]) = ("xl/styles.xml", styles.as_bytes());
    let read = text(&xlsx_of(workbook, sheet, &[styles]), Format::Xlsx);
    for row in [
        "| 14 days | 4.35 USD per day | 1234.50 DM | 4.35 | 0.3 |",
        "| 8:30 | 8:30:00 PM | 36:00 | 12.50% | 2016-12-31T12:00:00 |",
        "| 2016-12-31 |  | 14 | TRUE | #ERROR:#N/A |",
    ] {
        assert!(read.replace('\\', "").contains(row), "{row}: {read}");
    }
}

/// Codes with leading zeros, amounts of money, units and percentages, beside plain numbers.
#[test]
fn numbers_have_what_their_format_adds() {
    let space = r#"xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main""#;
    let workbook = format!(
        r#"<workbook {space} xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>"#
    );
    let cells = [
        ("00000", "1067", "01067"),
        ("0000000000", "30123456", "0030123456"),
        ("[$€-407] #,##0.00", "2.5", "€ 2.50"),
        ("&quot;US&quot;#,##0.00", "-1234.5", "-US1234.50"),
        ("0 &quot;days&quot;", "14", "14 days"),
        (
            "0.0 &quot;h&quot;;0.0 &quot;h ago&quot;",
            "-1.5",
            "1.5 h ago",
        ),
        ("0 &quot;&lt;&amp;&quot;", "3", "3 <&"),
        ("0 %", "0.25", "25 %"),
        ("0.00%;[Red]-0.00%", "-0.125", "-12.50%"),
        ("0&quot;%&quot;", "25", "25%"),
        ("#,##0.00", "1234.5", "1234.5"),
        ("0.00", "2", "2"),
    ];
    let (mut formats, mut styles, mut row) = (String::new(), String::new(), String::new());
    for (style, (code, value, _)) in cells.iter().enumerate() {
        let id = 164 + style;
        formats.push_str(&format!(r#"<numFmt numFmtId="{id}" formatCode="{code}"/>"#));
        styles.push_str(&format!(r#"<xf numFmtId="{id}"/>"#));
        row.push_str(&format!(r#"<c s="{style}"><v>{value}</v></c>"#));
    }
    let styles = format!(
        "<styleSheet {space}><numFmts>{formats}</numFmts><cellXfs>{styles}</cellXfs></styleSheet>"
    );
    let sheet = format!("<worksheet {space}><sheetData><row>{row}</row></sheetData></worksheet>");
    let styles: (&str, &[u8]) = ("xl/styles.xml", styles.as_bytes());
    let read = text(&xlsx_of(&workbook, &sheet, &[styles]), Format::Xlsx);
    let read = read
        .replace('\\', "")
        .replace("&lt;", "<")
        .replace("&amp;", "&");
    let expected: Vec<&str> = cells.iter().map(|(_, _, expected)| *expected).collect();
    let expected = format!("| {} |", expected.join(" | "));
    assert!(read.contains(&expected), "{expected}: {read}");
}

/// A file that Microsoft Excel wrote, in which clauses are counted by cells of the format `\1\.0#`, beside plain numbers.
#[test]
fn numbers_of_a_file_of_excel_are_no_dates() {
    let read = text(
        include_bytes!("../../../../tests/data/documents/xlsx/xlsx_07_gap_tolerance_.xlsx"),
        Format::Xlsx,
    );
    let line = |what: &str| {
        let mut lines = read.lines();
        lines
            .find(|line| line.starts_with('|') && line.contains(what))
            .unwrap_or_else(|| panic!("{what}: {read}"))
    };
    for (number, clause) in [
        ("1.01", "Rated system voltage"),
        ("1.02", "Rated system frequency"),
        ("1.06", "Control voltage supply"),
        ("1.07", "Metal-enclosed partition"),
        ("1.09", "Voltage and Current measurement"),
        ("1.10", "Hazardous area classification"),
        ("1.13", "Humidity"),
        ("1.14", "Arc testing"),
    ] {
        let line = line(clause);
        assert!(line.starts_with(&format!("| {number} |")), "{line}");
    }
    for (what, number) in [
        ("Rated system frequency", "| 134 |"),
        ("Humidity", "| 100 |"),
        ("DATA SHEET", "| 2016 |"),
        ("13156456", "| 144564 |"),
    ] {
        let line = line(what);
        assert!(line.contains(number), "{line}");
    }
}

/// A workbook of Microsoft Excel inside of a document of Word, which stores 4.4 as 4.4000000000000004 in both.
#[test]
fn numbers_of_a_chart_and_its_workbook_are_those_that_excel_shows() {
    let document =
        include_bytes!("../../../../tests/data/documents/docx/drawingml.docx").as_slice();
    let mut container = ZipArchive::new(Cursor::new(document)).unwrap();
    let mut workbook = vec![];
    container
        .by_name("word/embeddings/Microsoft_Excel_Worksheet.xlsx")
        .unwrap()
        .read_to_end(&mut workbook)
        .unwrap();
    for read in [text(&workbook, Format::Xlsx), text(document, Format::Docx)] {
        for row in [
            "| Category 2 | 2.5 | 4.4 | 2 |",
            "| Category 3 | 3.5 | 1.8 | 3 |",
        ] {
            assert_eq!(read.matches(row).count(), 1, "{row}: {read}");
        }
    }
}

/// A chart in each kind of document: its numbers have their formats, also beside one that is an error, and stand there once.
#[test]
fn charts_show_the_same_in_documents_of_each_kind() {
    let point =
        |place: u32, value: &str| format!(r#"<c:pt idx="{place}"><c:v>{value}</c:v></c:pt>"#);
    let cache = |format: &str, points: &str| {
        format!("<c:numCache><c:formatCode>{format}</c:formatCode>{points}</c:numCache>")
    };
    let chart = format!(
        "<c:chartSpace><c:chart><c:plotArea><c:barChart><c:ser><c:cat><c:numRef>{}</c:numRef></c:cat><c:val><c:numRef>{}</c:numRef></c:val></c:ser></c:barChart></c:plotArea></c:chart></c:chartSpace>",
        cache("m/d/yyyy", &(point(0, "45000") + &point(1, "45031"))),
        cache("0.0%", &(point(0, "0.125") + &point(1, "#N/A"))),
    );
    let graphic = r#"<a:graphic><a:graphicData><c:chart r:id="c1"/></a:graphicData></a:graphic>"#;
    let named = relation("c1", "chart", "../charts/chart1.xml")
        + &relation("c2", "chartEx", "../charts/chartEx1.xml");
    let slide = format!("<p:graphicFrame>{graphic}</p:graphicFrame>");
    let other = "<cx:chartSpace/>".as_bytes();
    let slides = [
        ("ppt/charts/chart1.xml", chart.as_bytes()),
        ("ppt/charts/chartEx1.xml", other),
    ];
    let of_words = relations(&named.replace("../", ""));
    let words = [
        ("word/_rels/document.xml.rels", of_words.as_bytes()),
        ("word/charts/chart1.xml", chart.as_bytes()),
        ("word/charts/chartEx1.xml", other),
    ];
    let body = format!("<w:p><w:r><w:drawing>{graphic}</w:drawing></w:r></w:p>");
    for (bytes, format) in [
        (pptx(&[(&slide, &named)], &slides), Format::Pptx),
        (docx(&body, &words), Format::Docx),
    ] {
        let read = extract(&bytes, format, &Options::default()).unwrap();
        for row in ["| 2023-03-15 | 12.5% |", "| 2023-04-15 | #N/A |"] {
            let text = &read.markdown;
            assert_eq!(text.matches(row).count(), 1, "{format:?}: {text}");
        }
        assert!(!read.markdown.contains("45000"), "{}", read.markdown);
        // The other chart is of a kind that is not read.
        assert_eq!(read.unread_objects, 1, "{format:?}");
    }
}

/// What LibreOffice Calc 7.4 made of one table, as a workbook of either kind.
#[test]
fn numbers_of_libreoffice_are_those_that_it_shows() {
    let xlsx = text(
        include_bytes!("../data/numbers_libreoffice.xlsx"),
        Format::Xlsx,
    );
    let xls = text(
        include_bytes!("../data/numbers_libreoffice.xls"),
        Format::Xls,
    );
    for (name, value) in [
        ("days", "14 days"),
        ("per day", "4.35 USD per day"),
        ("accounting", "1234.50 DM"),
        ("sum", "4.35"),
        ("third", "0.333333333333333"),
        ("big", "123456789012"),
        ("time", "8:30"),
        ("evening", "8:30 PM"),
        ("elapsed", "36:00:00"),
        ("percent", "12.5%"),
        ("whole percent", "7%"),
        ("date", "2016-12-31"),
        ("moment", "2016-12-31T12:00:00"),
        ("red", "-2.5"),
        ("euro", "9.95 €"),
        ("science", "0.00012345"),
        ("escaped", "3d"),
    ] {
        let row = format!("| {name} | {value} |");
        for read in [&xlsx, &xls] {
            assert!(read.contains(&row), "{row}: {read}");
        }
    }
}
