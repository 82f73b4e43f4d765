//! What of a document is not read, and is told of.

use colloquy_extract::{Document, ExtractError, Format, Options, extract};

use super::made::{
    docx, paragraph, placeholder, pptx, relation, relations, xlsx, xlsx_of, xlsx_related,
};

fn read(bytes: &[u8], format: Format) -> Result<Document, ExtractError> {
    extract(bytes, format, &Options::default())
}

/// An enhanced metafile of this size, in hundredths of a millimeter.
fn metafile(width: i32, height: i32) -> Vec<u8> {
    let mut bytes = vec![1];
    bytes.resize(24, 0);
    bytes.extend([0, 0, width, height].map(i32::to_le_bytes).concat());
    bytes.extend(b" EMF");
    bytes
}

/// A workbook of one cell, and these files.
fn workbook(more: &[(&str, &[u8])]) -> Vec<u8> {
    let space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let workbook = format!(
        r#"<workbook xmlns="{space}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>"#
    );
    let sheet = format!(
        r#"<worksheet xmlns="{space}"><sheetData><row><c><v>1</v></c></row></sheetData></worksheet>"#
    );
    xlsx_of(&workbook, &sheet, more)
}

#[test]
fn margins_of_sheets_are_read_once() {
    let space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let workbook = format!(
        r#"<workbook xmlns="{space}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="S" sheetId="1" r:id="r1"/><sheet name="T" sheetId="2" r:id="r2"/></sheets></workbook>"#
    );
    let sheet = |value: u32| {
        format!(
            r#"<worksheet xmlns="{space}"><sheetData><row><c><v>{value}</v></c></row></sheetData><headerFooter><oddHeader>&amp;CConfidential</oddHeader><oddFooter>&amp;LSheet of {value}&amp;RPage &amp;P</oddFooter></headerFooter></worksheet>"#
        )
    };
    let second = sheet(2);
    let more: (&str, &[u8]) = ("xl/worksheets/sheet2.xml", second.as_bytes());
    let related = relation("r2", "worksheet", "worksheets/sheet2.xml");
    let file = xlsx_related(&workbook, &related, &sheet(1), &[more]);
    let text = read(&file, Format::Xlsx).unwrap().markdown;
    let words = [
        "## S",
        "Confidential",
        "| 1 |",
        "Sheet of 1",
        "## T",
        "| 2 |",
        "Sheet of 2",
    ];
    let places = words.map(|what| text.find(what).unwrap_or_else(|| panic!("{what}: {text}")));
    assert!(places.is_sorted(), "{text}");
    assert_eq!(text.matches("Confidential").count(), 1, "{text}");
    assert!(!text.contains("Page"), "{text}");
}

#[test]
fn formulas_without_a_stored_result_are_counted() {
    let cells = [
        r#"<c r="A1" t="inlineStr"><is><t>Total</t></is></c><c r="B1"><v>2</v></c>"#,
        r#"<c r="C1"><f>B1*2</f><v></v></c><c r="D1" s="0"><f>B1*3</f></c>"#,
        r#"<c r="E1"><f>B1*4</f><v>8</v></c><c r="F1" t="str"><f>""</f><v></v></c>"#,
    ];
    let file = xlsx(&format!("<row>{}</row>", cells.concat()));
    let document = read(&file, Format::Xlsx).unwrap();
    assert_eq!((document.missing_results, document.unread_objects), (2, 0));
    let text = document.markdown;
    assert!(text.contains("| Total | 2 |  |  | 8 |"), "{text}");

    // A workbook of nothing else is not empty.
    let file = xlsx(r#"<row><c r="A1"><f>1+1</f><v/></c></row>"#);
    let error = read(&file, Format::Xlsx).unwrap_err();
    assert!(
        matches!(&error, ExtractError::Failed(why) if why.contains("no stored results")),
        "{error:?}"
    );
    let file = xlsx(r#"<row><c r="A1" t="str"><f>""</f><v></v></c></row>"#);
    assert_eq!(read(&file, Format::Xlsx), Err(ExtractError::Empty));
}

#[test]
fn metafiles_are_counted() {
    let (figure, mut bullet) = (metafile(5_000, 3_000), metafile(300, 300));
    // A bullet may take more bytes than a word.
    bullet.resize(5_000, 0);
    let mut of_no_size = b"\x01\0\x09\0".to_vec();
    of_no_size.resize(5_000, 0);
    let image = |id: &str, name: &str| relation(id, "image", name);
    let related = [
        image("p1", "media/figure.emf"),
        image("p2", "media/figure.emf"),
        image("p3", "media/bullet.emf"),
        image("p4", "media/unsized.wmf"),
        image("p5", "media/gone.emf"),
        image("p6", "media/short.wmf"),
    ];
    let related = relations(&related.concat());
    let more: [(&str, &[u8]); 5] = [
        ("word/_rels/document.xml.rels", related.as_bytes()),
        ("word/media/figure.emf", &figure),
        ("word/media/bullet.emf", &bullet),
        ("word/media/unsized.wmf", &of_no_size),
        ("word/media/short.wmf", &of_no_size[..4]),
    ];
    let document = read(&docx(&paragraph("text"), &more), Format::Docx).unwrap();
    assert_eq!((document.unread_objects, document.unread.len()), (2, 0));
    assert_eq!(
        read(&docx("", &more), Format::Docx),
        Err(ExtractError::PicturesOnly)
    );

    // In the place of an object, which counts.
    let related = image("p1", "media/figure.emf") + &relation("o1", "oleObject", "o.bin");
    let related = relations(&related);
    let more: [(&str, &[u8]); 2] = [
        ("word/_rels/document.xml.rels", related.as_bytes()),
        ("word/media/figure.emf", &figure),
    ];
    let object = r#"<w:p><w:r><w:object><v:shape><v:imagedata r:id="p1"/></v:shape><o:OLEObject r:id="o1"/></w:object></w:r></w:p>"#;
    let document = read(&docx(&(paragraph("text") + object), &more), Format::Docx).unwrap();
    assert_eq!((document.unread_objects, document.unread.len()), (1, 0));

    let title = placeholder("title", &["Hours"]);
    let related = image("p1", "../media/figure.emf");
    let media: (&str, &[u8]) = ("ppt/media/figure.emf", &figure);
    let slides = pptx(&[(&title, &related), (&title, &related)], &[media]);
    assert_eq!(read(&slides, Format::Pptx).unwrap().unread_objects, 1);

    let of_sheet = relations(&relation("d1", "drawing", "../drawings/drawing1.xml"));
    let of_drawing = relations(&image("p1", "../media/figure.emf"));
    let more: [(&str, &[u8]); 4] = [
        ("xl/worksheets/_rels/sheet1.xml.rels", of_sheet.as_bytes()),
        ("xl/drawings/drawing1.xml", b"<xdr:wsDr/>"),
        ("xl/drawings/_rels/drawing1.xml.rels", of_drawing.as_bytes()),
        ("xl/media/figure.emf", &figure),
    ];
    let sheets = read(&workbook(&more), Format::Xlsx).unwrap();
    assert_eq!(sheets.unread_objects, 1);
}

#[test]
fn drawings_and_broken_pictures_are_counted() {
    let drawing = |side: u32| format!(r#"<svg viewBox="0 0 {side} {side}"><path d="M0 0"/></svg>"#);
    let (figure, icon) = (drawing(300), drawing(24));
    let mut long = drawing(300);
    long.push_str(&" ".repeat(9_000));
    let image = |id: &str, name: &str| relation(id, "image", name);
    let related = [
        image("p1", "media/figure.svg"),
        image("p2", "media/figure.svg"),
        image("p3", "media/icon.svg"),
        image("p4", "media/long.svg"),
        image("p5", "media/double.svg"),
        image("p6", "media/broken.png"),
        image("p7", "media/gone.png"),
        image("p8", "media/large.png"),
        image("p9", "media/small.jp2"),
    ];
    let related = relations(&related.concat());
    let more: [(&str, &[u8]); 8] = [
        ("word/media/small.jp2", b"a picture"),
        ("word/_rels/document.xml.rels", related.as_bytes()),
        ("word/media/figure.svg", figure.as_bytes()),
        ("word/media/icon.svg", icon.as_bytes()),
        ("word/media/long.svg", long.as_bytes()),
        ("word/media/double.svg", figure.as_bytes()),
        ("word/media/broken.png", b"a picture"),
        ("word/media/large.png", &[7; 5_000]),
    ];
    let double = r#"<w:p><w:r><w:drawing><a:blip r:embed="p8"><a:extLst><a:ext><asvg:svgBlip r:embed="p5"/></a:ext></a:extLst></a:blip></w:drawing></w:r></w:p>"#;
    let document = read(&docx(&(paragraph("text") + double), &more), Format::Docx).unwrap();
    // The figure, the long one and the broken picture; the large one is looked at, which says that it is broken.
    assert_eq!((document.unread_objects, document.unread.len()), (3, 1));
    let without = read(&docx(&paragraph("text"), &more), Format::Docx).unwrap();
    assert_eq!((without.unread_objects, without.unread.len()), (4, 0));
    // Beside a picture that is not in the document, which nobody looks at.
    let gone = double.replace("p8", "p7");
    let beside = read(&docx(&(paragraph("text") + &gone), &more), Format::Docx).unwrap();
    assert_eq!((beside.unread_objects, beside.unread.len()), (4, 0));
}

#[test]
fn missing_documents_inside_of_a_document_are_counted() {
    let related = relations(&relation("c", "aFChunk", "gone.html"));
    let more: [(&str, &[u8]); 1] = [("word/_rels/document.xml.rels", related.as_bytes())];
    let chunk = r#"<w:altChunk r:id="c"/>"#;
    let document = read(&docx(&(paragraph("text") + chunk), &more), Format::Docx).unwrap();
    assert_eq!(
        (document.markdown.as_str(), document.unread_objects),
        ("text\n", 1)
    );
    let refused = read(&docx(chunk, &more), Format::Docx).unwrap_err();
    assert!(refused.to_string().contains("is missing"), "{refused}");
}

#[test]
fn a_preview_is_no_picture_of_a_document() {
    let preview: (&str, &[u8]) = ("docProps/thumbnail.jpeg", b"a picture");
    let slide = placeholder("title", &[]);
    for (file, format) in [
        (docx("", &[preview]), Format::Docx),
        (pptx(&[(&slide, "")], &[preview]), Format::Pptx),
    ] {
        assert_eq!(read(&file, format), Err(ExtractError::Empty), "{format}");
    }
    let picture: (&str, &[u8]) = ("word/media/image1.png", b"a picture");
    assert_eq!(
        read(&docx("", &[preview, picture]), Format::Docx),
        Err(ExtractError::PicturesOnly)
    );
}
