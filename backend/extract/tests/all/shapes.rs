//! Text that Office documents hold in shapes, symbols and notes, beside plain paragraphs.

use colloquy_extract::{Format, Options, extract};

use super::made::{docx, docx_of, paragraph, pptx, relation, relations, xlsx_of};

const WORDS: &str = r#"xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships""#;

fn text(bytes: &[u8], format: Format) -> String {
    extract(bytes, format, &Options::default())
        .unwrap()
        .markdown
}

/// A shape of a slide.
fn shape(text: &str) -> String {
    format!("<p:sp><p:txBody><a:p><a:r><a:t>{text}</a:t></a:r></a:p></p:txBody></p:sp>")
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

/// WordArt as Word up to 2007 writes it.
fn word_art(text: &str) -> String {
    format!(
        r##"<w:pict><v:shapetype id="t136"><v:textpath on="t" fitshape="t"/></v:shapetype><v:shape type="#t136"><v:textpath style="font-family:Arial" string="{text}"/></v:shape></w:pict>"##
    )
}

#[test]
fn word_art_is_read_once() {
    let art = word_art("Grand  opening and sale");
    let inside = format!(
        "<w:txbxContent>{}</w:txbxContent>",
        paragraph("Grand opening and sale")
    );
    let both = format!(
        "<mc:AlternateContent><mc:Choice><w:drawing><wps:txbx>{inside}</wps:txbx></w:drawing></mc:Choice><mc:Fallback>{art}</mc:Fallback></mc:AlternateContent>"
    );
    for run in [&art, &both] {
        let body = format!("{}<w:p><w:r>{run}</w:r></w:p>", paragraph("first"));
        assert_eq!(
            text(&docx(&body, &[]), Format::Docx),
            "first\n\nGrand opening and sale\n"
        );
        let cell = format!("<w:tc><w:p><w:r>{run}</w:r></w:p></w:tc>");
        let table = format!("<w:tbl><w:tr>{cell}</w:tr></w:tbl>");
        let read = text(&docx(&table, &[]), Format::Docx);
        assert!(read.contains("| Grand opening and sale |"), "{read}");
    }
}

/// Form fields and content controls of Word.
#[test]
fn forms_show_what_is_chosen() {
    let field = |data: &str| {
        let part = |kind: &str| format!(r#"<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>"#);
        let (separate, end) = (part("separate"), part("end"));
        format!(
            r#"<w:r><w:fldChar w:fldCharType="begin"><w:ffData><w:name w:val="f"/><w:enabled/>{data}</w:ffData></w:fldChar></w:r><w:r><w:instrText> FORM </w:instrText></w:r>{separate}{end}"#
        )
    };
    let list = |state: &str| {
        field(&format!(
            r#"<w:ddList>{state}<w:listEntry w:val="Small"/><w:listEntry w:val="Large &amp; wide"/></w:ddList>"#
        ))
    };
    let check_box = |state: &str| field(&format!("<w:checkBox><w:sizeAuto/>{state}</w:checkBox>"));
    let control = |properties: &str, text: &str| {
        format!(
            "<w:sdt><w:sdtPr>{properties}</w:sdtPr><w:sdtContent><w:r><w:t>{text}</w:t></w:r></w:sdtContent></w:sdt>"
        )
    };
    for (written, shown) in [
        (list(""), "Small"),
        (list(r#"<w:result w:val="1"/>"#), "Large & wide"),
        (list(r#"<w:default w:val="1"/>"#), "Large & wide"),
        (check_box(r#"<w:default w:val="0"/>"#), "☐"),
        (check_box(r#"<w:default w:val="0"/><w:checked/>"#), "☒"),
        (
            check_box(r#"<w:default w:val="1"/><w:checked w:val="0"/>"#),
            "☐",
        ),
        (
            control(
                r#"<w14:checkbox><w14:checked w14:val="1"/></w14:checkbox>"#,
                "☒",
            ),
            "☒",
        ),
        (
            control(
                r#"<w:dropDownList><w:listItem w:displayText="Red" w:value="1"/></w:dropDownList>"#,
                "Red",
            ),
            "Red",
        ),
    ] {
        let body = format!("<w:p><w:r><w:t>Chosen:</w:t></w:r>{written}</w:p>");
        let read = text(&docx(&body, &[]), Format::Docx).replace("&amp;", "&");
        assert_eq!(read.trim_end(), format!("Chosen:{shown}"), "{body}");
    }
}

#[test]
fn watermarks_are_read_once() {
    let header = format!(
        "<w:hdr {WORDS}><w:sdt><w:sdtContent><w:p><w:r>{}</w:r></w:p></w:sdtContent></w:sdt></w:hdr>",
        word_art("CONFIDENTIAL")
    );
    let reference =
        |kind: &str, id: &str| format!(r#"<w:headerReference w:type="{kind}" r:id="{id}"/>"#);
    let section = reference("default", "h1") + &reference("first", "h2");
    let document = format!(
        "<w:document {WORDS}><w:body>{}<w:sectPr>{section}</w:sectPr></w:body></w:document>",
        paragraph("body")
    );
    let related =
        relation("h1", "header", "header1.xml") + &relation("h2", "header", "header2.xml");
    let related = relations(&related);
    let more: [(&str, &[u8]); 3] = [
        ("word/_rels/document.xml.rels", related.as_bytes()),
        ("word/header1.xml", header.as_bytes()),
        ("word/header2.xml", header.as_bytes()),
    ];
    assert_eq!(
        text(&docx_of(&document, &more), Format::Docx),
        "CONFIDENTIAL\n\nbody\n"
    );
}

#[test]
fn symbols_are_read_and_moved_text_stands_once() {
    let body = concat!(
        r#"<w:p><w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r><w:r><w:t xml:space="preserve"> agreed, at 20 </w:t></w:r>"#,
        r#"<w:r><w:sym w:font="Symbol" w:char="F06D"/><w:t>m</w:t></w:r></w:p>"#,
        "<w:p><w:moveFrom w:id='1'><w:r><w:t>The moved words.</w:t></w:r></w:moveFrom></w:p>",
        "<w:p><w:r><w:ruby><w:rt><w:r><w:t>とうきょう</w:t></w:r></w:rt><w:rubyBase><w:r><w:t>東京</w:t></w:r></w:rubyBase></w:ruby></w:r></w:p>",
        "<w:p><w:moveTo w:id='1'><w:r><w:t>The moved words.</w:t></w:r></w:moveTo></w:p>",
    );
    assert_eq!(
        text(&docx(body, &[]), Format::Docx),
        "☑ agreed, at 20 µm\n\n東京\n\nThe moved words.\n"
    );
}

#[test]
fn words_of_notes_stay_apart() {
    let notes = format!(
        r#"<w:footnotes {WORDS}><w:footnote w:id="2"><w:p><w:r><w:t>See page</w:t><w:tab/><w:t>7</w:t></w:r></w:p>{}</w:footnote></w:footnotes>"#,
        paragraph("Second part")
    );
    let related = relations(&relation("f", "footnotes", "footnotes.xml"));
    let more: [(&str, &[u8]); 2] = [
        ("word/_rels/document.xml.rels", related.as_bytes()),
        ("word/footnotes.xml", notes.as_bytes()),
    ];
    let body = format!(
        r#"{}<w:p><w:r><w:t>noted</w:t><w:footnoteReference w:id="2"/></w:r></w:p>"#,
        paragraph("first")
    );
    let read = text(&docx(&body, &more), Format::Docx);
    assert!(read.contains("See page 7 Second part"), "{read}");
}

#[test]
fn branches_of_slides_are_read_once() {
    let shapes = format!(
        r#"<mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><mc:Choice Requires="a14">{0}</mc:Choice><mc:Fallback>{0}</mc:Fallback></mc:AlternateContent>{1}"#,
        shape("Said once"),
        shape("and more")
    );
    assert_eq!(
        text(&pptx(&[(&shapes, "")], &[]), Format::Pptx),
        "Said once\n\nand more\n"
    );
}
