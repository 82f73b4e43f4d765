//! Documents of Office as other programs than Office write them, and what is in them beside plain words.

use colloquy_extract::{Document, ExtractError, Format, Options, extract};

use super::made::{
    container, docx, docx_of, paragraph, placeholder, pptx, relation, relations, slide, xlsx_of,
};

fn read(bytes: &[u8], format: Format) -> Result<Document, ExtractError> {
    extract(bytes, format, &Options::default())
}

fn text(bytes: &[u8], format: Format) -> String {
    read(bytes, format).unwrap().markdown
}

const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

/// The namespace of workbooks, transitional and strict.
const SHEETS: [&str; 2] = [
    "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    "http://purl.oclc.org/ooxml/spreadsheetml/main",
];

#[test]
fn a_workbook_is_read_whatever_its_prefixes() {
    let strict = "http://purl.oclc.org/ooxml/officeDocument/relationships";
    for (sheets, related) in [(SHEETS[0], RELATIONS), (SHEETS[1], strict)] {
        let workbook = format!(
            r#"<x:workbook xmlns:x="{sheets}" xmlns:d="{related}"><x:sheets><x:sheet name="Stock" sheetId="1" d:id="r1"/></x:sheets></x:workbook>"#
        );
        let sheet = format!(
            r#"<x:worksheet xmlns:x="{sheets}"><x:sheetData><x:row r="1"><x:c r="A1" t="s"><x:v>0</x:v></x:c><x:c r="B1" t="inlineStr"><x:is><x:t>inline</x:t></x:is></x:c></x:row><x:row r="2"><x:c r="A2"><x:v>7</x:v></x:c></x:row></x:sheetData></x:worksheet>"#
        );
        let strings =
            format!(r#"<x:sst xmlns:x="{sheets}"><x:si><x:t>shared</x:t></x:si></x:sst>"#);
        let strings: (&str, &[u8]) = ("xl/sharedStrings.xml", strings.as_bytes());
        let read = text(&xlsx_of(&workbook, &sheet, &[strings]), Format::Xlsx);
        assert!(read.contains("## Stock"), "{read}");
        assert!(
            read.contains("| shared | inline |") && read.contains("| 7 |"),
            "{read}"
        );
    }
}

#[test]
fn a_document_is_read_whatever_its_prefixes() {
    let words = "http://schemas.openxmlformats.org/wordprocessingml/2006/main";
    let strict = "http://purl.oclc.org/ooxml/wordprocessingml/main";
    for document in [
        format!(
            r#"<ns0:document xmlns:ns0="{words}"><ns0:body><ns0:p><ns0:pPr><ns0:pStyle ns0:val="h"/></ns0:pPr><ns0:r><ns0:t>Words</ns0:t></ns0:r></ns0:p></ns0:body></ns0:document>"#
        ),
        format!(
            r#"<document xmlns="{strict}" xmlns:w="{strict}"><body><p><pPr><pStyle w:val="h"/></pPr><r><t>Words</t></r></p></body></document>"#
        ),
    ] {
        let styles = format!(
            r#"<s:styles xmlns:s="{words}"><s:style s:type="paragraph" s:styleId="h"><s:name s:val="heading 2"/><s:pPr><s:outlineLvl s:val="1"/></s:pPr></s:style></s:styles>"#
        );
        let related = relations(&relation("r1", "styles", "styles.xml"));
        let more: [(&str, &[u8]); 2] = [
            ("word/styles.xml", styles.as_bytes()),
            ("word/_rels/document.xml.rels", related.as_bytes()),
        ];
        assert_eq!(text(&docx_of(&document, &more), Format::Docx), "## Words\n");
    }
}

#[test]
fn readings_are_no_part_of_words() {
    let space = SHEETS[0];
    let workbook = format!(
        r#"<workbook xmlns="{space}" xmlns:r="{RELATIONS}"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>"#
    );
    let sheet = format!(
        r#"<worksheet xmlns="{space}"><sheetData><row><c t="s"><v>0</v></c><c t="inlineStr"><is><t>京都</t><rPh sb="0" eb="2"><t>キョウト</t></rPh></is></c></row></sheetData></worksheet>"#
    );
    let strings = format!(
        r#"<sst xmlns="{space}"><si><t>東京</t><rPh sb="0" eb="2"><t>トウキョウ</t></rPh><phoneticPr fontId="1"/></si></sst>"#
    );
    let strings: (&str, &[u8]) = ("xl/sharedStrings.xml", strings.as_bytes());
    let read = text(&xlsx_of(&workbook, &sheet, &[strings]), Format::Xlsx);
    assert!(read.contains("| 東京 | 京都 |"), "{read}");
}

#[test]
fn characters_of_cells_are_those_that_are_meant() {
    let space = SHEETS[0];
    let workbook = format!(
        r#"<workbook xmlns="{space}" xmlns:r="{RELATIONS}"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>"#
    );
    let sheet = format!(
        r#"<worksheet xmlns="{space}"><sheetData><row><c t="s"><v>0</v></c><c t="inlineStr"><is><t>a_x0041_b</t></is></c><c t="str"><v>c_x0042_d</v></c></row></sheetData></worksheet>"#
    );
    let strings = format!(r#"<sst xmlns="{space}"><si><t>one_x000D_&#10;two</t></si></sst>"#);
    let strings: (&str, &[u8]) = ("xl/sharedStrings.xml", strings.as_bytes());
    let read = text(&xlsx_of(&workbook, &sheet, &[strings]), Format::Xlsx);
    assert!(read.contains("| one two | aAb | cBd |"), "{read}");
}

#[test]
fn dates_count_from_the_year_that_the_workbook_says() {
    let space = SHEETS[0];
    let read = |properties: &str| {
        let workbook = format!(
            r#"<workbook xmlns="{space}" xmlns:r="{RELATIONS}"><workbookPr {properties}/><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>"#
        );
        let styles = format!(
            r#"<styleSheet xmlns="{space}"><numFmts count="1"><numFmt numFmtId="164" formatCode="yyyy\-mm\-dd"/></numFmts><cellXfs count="3"><xf numFmtId="0"/><xf numFmtId="14"><alignment/></xf><xf numFmtId="164"/></cellXfs></styleSheet>"#
        );
        let sheet = format!(
            r#"<worksheet xmlns="{space}"><sheetData><row><c s="1"><v>42735</v></c><c s="2" t="n"><v>42735.5</v></c><c s="0"><v>42735</v></c><c s="1"/><c><v>42735</v></c><c s="1" t="str"><v>42735</v></c></row></sheetData></worksheet>"#
        );
        let styles: (&str, &[u8]) = ("xl/styles.xml", styles.as_bytes());
        text(&xlsx_of(&workbook, &sheet, &[styles]), Format::Xlsx)
    };
    let from_1900 = "| 2016-12-31 | 2016-12-31T12:00:00 | 42735 |  | 42735 | 42735 |";
    let from_1904 = "| 2021-01-01 | 2021-01-01T12:00:00 | 42735 |  | 42735 | 42735 |";
    for (properties, expected) in [
        ("", from_1900),
        (r#"date1904="0""#, from_1900),
        (r#"date1904="1""#, from_1904),
        (r#"date1904="true""#, from_1904),
    ] {
        let read = read(properties);
        assert!(read.contains(expected), "{properties}: {read}");
    }
}

#[test]
fn parts_are_found_by_their_relationships() {
    let space = r#"xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main""#;
    let top = relations(&relation("r1", "officeDocument", "/word/document2.xml"));
    let related = [
        relation("s", "styles", "styles2.xml"),
        relation("f", "footnotes", "footnotes2.xml"),
    ];
    let related = relations(&related.concat());
    let styles = format!(
        r#"<w:styles {space}><w:style w:type="paragraph" w:styleId="h"><w:name w:val="heading 1"/><w:pPr><w:outlineLvl w:val="0"/></w:pPr></w:style></w:styles>"#
    );
    let notes = format!(
        r#"<w:footnotes {space}><w:footnote w:id="2">{}</w:footnote></w:footnotes>"#,
        paragraph("the note")
    );
    let document = format!(
        r#"<w:document {space}><w:body><w:p><w:pPr><w:pStyle w:val="h"/></w:pPr><w:r><w:t>Terms</w:t></w:r></w:p><w:p><w:r><w:t>body</w:t><w:footnoteReference w:id="2"/></w:r></w:p></w:body></w:document>"#
    );
    let file = container(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("_rels/.rels", top.as_bytes()),
        ("word/document2.xml", document.as_bytes()),
        ("word/_rels/document2.xml.rels", related.as_bytes()),
        ("word/styles2.xml", styles.as_bytes()),
        ("word/footnotes2.xml", notes.as_bytes()),
    ]);
    let read = text(&file, Format::Docx);
    assert!(read.starts_with("# Terms\n\nbody"), "{read}");
    assert!(read.contains("the note"), "{read}");

    let space = SHEETS[0];
    let top = relations(&relation("r1", "officeDocument", "xl/workbook2.xml"));
    let related = relation("r1", "worksheet", "worksheets/sheet1.xml")
        + &relation("r2", "sharedStrings", "strings.xml");
    let related = relations(&related);
    let workbook = format!(
        r#"<workbook xmlns="{space}" xmlns:r="{RELATIONS}"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>"#
    );
    let sheet = format!(
        r#"<worksheet xmlns="{space}"><sheetData><row><c t="s"><v>0</v></c></row></sheetData></worksheet>"#
    );
    let strings = format!(r#"<sst xmlns="{space}"><si><t>shared</t></si></sst>"#);
    let file = container(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("_rels/.rels", top.as_bytes()),
        ("xl/workbook2.xml", workbook.as_bytes()),
        ("xl/_rels/workbook2.xml.rels", related.as_bytes()),
        ("xl/worksheets/sheet1.xml", sheet.as_bytes()),
        ("xl/strings.xml", strings.as_bytes()),
    ]);
    let read = text(&file, Format::Xlsx);
    assert!(read.contains("| shared |"), "{read}");
}

fn layout() -> [(&'static str, Vec<u8>); 3] {
    let shapes = placeholder("title", &["Click to edit Master title style"])
        + &placeholder("body", &["Edit Master text styles", "Second level"]);
    let master = relations(&relation(
        "r1",
        "slideMaster",
        "../slideMasters/slideMaster1.xml",
    ));
    [
        (
            "ppt/slideLayouts/slideLayout1.xml",
            slide("sldLayout", &shapes).into(),
        ),
        (
            "ppt/slideLayouts/_rels/slideLayout1.xml.rels",
            master.into(),
        ),
        (
            "ppt/slideMasters/slideMaster1.xml",
            slide("sldMaster", &shapes).into(),
        ),
    ]
}

#[test]
fn prompts_of_a_layout_are_no_text_of_a_slide() {
    let layout = layout();
    let mut more: Vec<(&str, &[u8])> = layout
        .iter()
        .map(|(name, content)| (*name, content.as_slice()))
        .collect();
    let related = relation("r1", "slideLayout", "../slideLayouts/slideLayout1.xml");
    let empty = placeholder("title", &[]) + &placeholder("body", &[]);
    let filled = placeholder("title", &[]) + &placeholder("body", &["What it is about"]);
    let deck = pptx(&[(&empty, &related), (&filled, &related)], &more);
    assert_eq!(text(&deck, Format::Pptx).trim(), "What it is about");
    more.push(("ppt/media/image1.png", b"a picture"));
    let number =
        "<p:sp><p:txBody><a:p><a:fld type='slidenum'><a:t>7</a:t></a:fld></a:p></p:txBody></p:sp>";
    let numbered = empty.clone() + number;
    let pictures = pptx(&[(&empty, &related), (&numbered, &related)], &more);
    assert_eq!(
        read(&pictures, Format::Pptx),
        Err(ExtractError::PicturesOnly)
    );
}

#[test]
fn notes_are_those_of_their_slide() {
    let notes = |text: &str| slide("notes", &placeholder("body", &[text])).into_bytes();
    let shapes = |text: &str| placeholder("body", &[text]);
    let (of_third, of_first, of_none) = (
        notes("about the third"),
        notes("about the first"),
        notes("about none"),
    );
    let more: [(&str, &[u8]); 3] = [
        ("ppt/notesSlides/notesSlide1.xml", &of_third),
        ("ppt/notesSlides/notesSlide2.xml", &of_none),
        ("ppt/notesSlides/notesSlide3.xml", &of_first),
    ];
    let related = |number: u32| {
        let target = format!("../notesSlides/notesSlide{number}.xml");
        relation("r1", "notesSlide", &target)
    };
    let slides = ["first", "second", "third"].map(shapes);
    let deck = pptx(
        &[
            (&slides[0], &related(3)),
            (&slides[1], ""),
            (&slides[2], &related(1)),
        ],
        &more,
    );
    let read = text(&deck, Format::Pptx);
    let places = [
        "first",
        "about the first",
        "second",
        "third",
        "about the third",
    ];
    let places = places.map(|part| read.find(part).unwrap_or_else(|| panic!("{part}: {read}")));
    assert!(places.is_sorted(), "{read}");
    assert!(!read.contains("about none"), "{read}");
}

#[test]
fn equations_are_text_in_a_line() {
    let run = |text: &str| format!("<m:r><w:rPr><w:i/></w:rPr><m:t>{text}</m:t></m:r>");
    let power = format!(
        "<m:sSup><m:e>{}</m:e><m:sup>{}</m:sup></m:sSup>",
        run("x"),
        run("2")
    );
    let fraction = format!(
        "<m:f><m:fPr><m:type m:val='bar'/></m:fPr><m:num>{}</m:num><m:den>{}</m:den></m:f>",
        run("a &lt; b"),
        run("12")
    );
    let root = format!(
        "<m:rad><m:radPr><m:degHide m:val='1'/></m:radPr><m:deg/><m:e>{}</m:e></m:rad>",
        run("y")
    );
    let sum = format!(
        "<m:nary><m:naryPr><m:chr m:val='∑'/></m:naryPr><m:sub>{}</m:sub><m:sup>{}</m:sup><m:e>{}</m:e></m:nary>",
        run("i=1"),
        run("n"),
        run("k")
    );
    let brackets = format!(
        "<m:d><m:dPr><m:begChr m:val='['/><m:endChr m:val=']'/></m:dPr><m:e>{}</m:e></m:d>",
        run("z")
    );
    for (equation, expected) in [
        (&power, "x^2"),
        (&fraction, "(a < b)/12"),
        (&root, "√y"),
        (&sum, "∑_(i=1)^n k"),
        (&brackets, "[z]"),
    ] {
        let body = format!(
            r#"<w:p xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"><w:r><w:t xml:space="preserve">so </w:t></w:r><m:oMath>{equation}</m:oMath><w:r><w:t xml:space="preserve"> holds</w:t></w:r></w:p>"#
        );
        let read = text(&docx(&body, &[]), Format::Docx);
        let plain = read.replace('\\', "");
        assert_eq!(plain, format!("so {expected} holds\n"), "{read}");
    }
    // Alone in its paragraph, and within other text.
    let body = format!(
        "{}<w:p><m:oMathPara><m:oMath>{power}</m:oMath></m:oMathPara></w:p>",
        paragraph("Then")
    );
    let read = text(&docx(&body, &[]), Format::Docx);
    assert!(read.starts_with("Then\n") && read.contains("x^2"), "{read}");
}
