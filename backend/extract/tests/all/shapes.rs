//! Text that Office documents hold in shapes, beside plain paragraphs.

use colloquy_extract::{Format, Options, extract};

use super::made::{docx, pptx, relation, relations, xlsx_of};

fn text(bytes: &[u8], format: Format) -> String {
    extract(bytes, format, &Options::default())
        .unwrap()
        .markdown
}

#[test]
fn shapes_within_charts_are_read() {
    let chart = "<c:chartSpace><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Sales</a:t></a:r></a:p></c:rich></c:tx></c:title></c:chart><c:userShapes r:id=\"u1\"/></c:chartSpace>";
    let drawn = "<c:userShapes><cdr:relSizeAnchor><cdr:sp><cdr:txBody><a:bodyPr/><a:p><a:r><a:t>Best year *so far*</a:t></a:r></a:p></cdr:txBody></cdr:sp></cdr:relSizeAnchor><cdr:relSizeAnchor><cdr:sp><cdr:spPr/></cdr:sp></cdr:relSizeAnchor></c:userShapes>";
    let of_chart = relations(&relation(
        "u1",
        "chartUserShapes",
        "../drawings/drawing9.xml",
    ));
    let related = relation("c1", "chart", "../charts/chart1.xml");
    let frame = r#"<a:graphic><a:graphicData><c:chart r:id="c1"/></a:graphicData></a:graphic>"#;
    let parts = |folder: &str| {
        [
            (format!("{folder}/charts/chart1.xml"), chart),
            (
                format!("{folder}/charts/_rels/chart1.xml.rels"),
                of_chart.as_str(),
            ),
            (format!("{folder}/drawings/drawing9.xml"), drawn),
        ]
    };
    fn files<'a>(parts: &'a [(String, &'a str)]) -> Vec<(&'a str, &'a [u8])> {
        let files = parts.iter();
        files
            .map(|(name, xml)| (name.as_str(), xml.as_bytes()))
            .collect()
    }
    let expected = "Sales\n\nBest year \\*so far\\*\n";

    let of_words = relations(&related.replace("../", ""));
    let words = parts("word");
    let mut more = files(&words);
    more.push(("word/_rels/document.xml.rels", of_words.as_bytes()));
    let body = format!("<w:p><w:r><w:drawing>{frame}</w:drawing></w:r></w:p>");
    assert_eq!(text(&docx(&body, &more), Format::Docx), expected);

    let slides = parts("ppt");
    let slide = format!("<p:graphicFrame>{frame}</p:graphicFrame>");
    let deck = pptx(&[(&slide, &related)], &files(&slides));
    assert_eq!(text(&deck, Format::Pptx), expected);

    let space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let workbook = format!(
        r#"<workbook xmlns="{space}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>"#
    );
    let sheet = format!(
        r#"<worksheet xmlns="{space}"><sheetData><row><c><v>1</v></c></row></sheetData><drawing r:id="r1"/></worksheet>"#
    );
    let drawing = format!("<xdr:wsDr><xdr:graphicFrame>{frame}</xdr:graphicFrame></xdr:wsDr>");
    let of_sheet = relations(&relation("r1", "drawing", "../drawings/drawing1.xml"));
    let of_drawing = relations(&related);
    let sheets = parts("xl");
    let mut more = files(&sheets);
    more.push(("xl/worksheets/_rels/sheet1.xml.rels", of_sheet.as_bytes()));
    more.push(("xl/drawings/drawing1.xml", drawing.as_bytes()));
    more.push(("xl/drawings/_rels/drawing1.xml.rels", of_drawing.as_bytes()));
    let read = text(&xlsx_of(&workbook, &sheet, &more), Format::Xlsx);
    assert_eq!(read, format!("## S\n\n| 1 |\n| --- |\n\n{expected}"));
}
