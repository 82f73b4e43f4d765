//! Text of Office documents that stands beside their body: in diagrams, shapes, margins, styles, and documents inside of them.

use colloquy_extract::{
    Bounds, Document, ExtractError, Format, Options, UnreadReason, extract, page_images,
};

use super::made::{
    docx, docx_of, paragraph, placeholder, pptx, relation, relations, slide, xlsx_of,
};

const WORDS: &str = r#"xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships""#;

fn read(bytes: &[u8], format: Format) -> Result<Document, ExtractError> {
    extract(bytes, format, &Options::default())
}

fn text(bytes: &[u8], format: Format) -> String {
    read(bytes, format).unwrap().markdown
}

/// The data of a diagram of two shapes, one below the other.
const DIAGRAM: &str = r#"<dgm:dataModel xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><dgm:ptLst><dgm:pt modelId="0" type="doc"/><dgm:pt modelId="1"><dgm:t><a:p><a:r><a:t>Collect</a:t></a:r></a:p></dgm:t></dgm:pt><dgm:pt modelId="2"><dgm:t><a:p><a:r><a:t>Sort</a:t></a:r></a:p></dgm:t></dgm:pt></dgm:ptLst><dgm:cxnLst><dgm:cxn modelId="9" srcId="0" destId="1" srcOrd="0"/><dgm:cxn modelId="8" srcId="1" destId="2" srcOrd="0"/></dgm:cxnLst></dgm:dataModel>"#;
const FRAME: &str = r#"<a:graphic xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/diagram"><dgm:relIds xmlns:dgm="http://schemas.openxmlformats.org/drawingml/2006/diagram" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" r:dm="d1" r:lo="d2"/></a:graphicData></a:graphic>"#;

#[test]
fn diagrams_are_lists_where_they_stand() {
    let drawing = format!("<w:r><w:drawing><wp:inline>{FRAME}</wp:inline></w:drawing></w:r>");
    let body = format!(
        "{}<w:p>{drawing}<w:r><w:t>The figure</w:t></w:r>{drawing}</w:p>{}",
        paragraph("before"),
        paragraph("after")
    );
    let related = relations(&relation("d1", "diagramData", "diagrams/data1.xml"));
    let more: [(&str, &[u8]); 2] = [
        ("word/_rels/document.xml.rels", related.as_bytes()),
        ("word/diagrams/data1.xml", DIAGRAM.as_bytes()),
    ];
    assert_eq!(
        text(&docx(&body, &more), Format::Docx),
        "before\n\nThe figure\n\n- Collect\n  - Sort\n\nafter\n"
    );
    let frame = format!("<p:graphicFrame>{FRAME}</p:graphicFrame>");
    let related = relation("d1", "diagramData", "../diagrams/data1.xml");
    let shapes = placeholder("title", &["Steps"]) + &frame;
    let data: (&str, &[u8]) = ("ppt/diagrams/data1.xml", DIAGRAM.as_bytes());
    assert_eq!(
        text(&pptx(&[(&shapes, &related)], &[data]), Format::Pptx),
        "# Steps\n\n- Collect\n  - Sort\n"
    );
}

#[test]
fn margins_are_read_once() {
    let margin = |root: &str, text: &str| {
        format!(
            "<w:{root} {WORDS}>{}{}<w:p><w:r><w:t>7</w:t></w:r></w:p></w:{root}>",
            paragraph(text),
            paragraph("2024-17")
        )
    };
    let reference =
        |kind: &str, id: &str| format!(r#"<w:{kind}Reference w:type="default" r:id="{id}"/>"#);
    let section = format!(
        "<w:sectPr>{}{}</w:sectPr>",
        reference("header", "h1"),
        reference("footer", "f1")
    );
    let first = format!(
        "<w:p><w:pPr><w:sectPr>{}</w:sectPr></w:pPr><w:r><w:t>body</w:t></w:r></w:p>",
        reference("header", "h2")
    );
    let document = format!(r#"<w:document {WORDS}><w:body>{first}{section}</w:body></w:document>"#);
    let related = [("h1", "header"), ("h2", "header"), ("f1", "footer")];
    let related: String = related
        .map(|(id, kind)| relation(id, kind, &format!("{id}.xml")))
        .concat();
    let related = relations(&related);
    let (header, footer) = (
        margin("hdr", "Acme, internal"),
        margin("ftr", "Valid from May"),
    );
    let more: [(&str, &[u8]); 4] = [
        ("word/_rels/document.xml.rels", related.as_bytes()),
        ("word/h1.xml", header.as_bytes()),
        ("word/h2.xml", header.as_bytes()),
        ("word/f1.xml", footer.as_bytes()),
    ];
    assert_eq!(
        text(&docx_of(&document, &more), Format::Docx),
        "Acme, internal\n\n2024-17\n\nbody\n\nValid from May\n"
    );
}

#[test]
fn styles_make_list_items() {
    let styles = format!(
        r#"<w:styles {WORDS}><w:style w:type="paragraph" w:styleId="b"><w:name w:val="List Bullet"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style><w:style w:type="paragraph" w:styleId="c"><w:name w:val="My list"/><w:basedOn w:val="b"/></w:style></w:styles>"#
    );
    let level = |level: u8| {
        format!(
            r#"<w:lvl w:ilvl="{level}"><w:start w:val="1"/><w:numFmt w:val="bullet"/><w:lvlText w:val="•"/></w:lvl>"#
        )
    };
    let numbering = format!(
        r#"<w:numbering {WORDS}><w:abstractNum w:abstractNumId="0">{}{}</w:abstractNum><w:num w:numId="1"><w:abstractNumId w:val="0"/></w:num></w:numbering>"#,
        level(0),
        level(1)
    );
    let item = |style: &str, more: &str, text: &str| {
        format!(
            r#"<w:p><w:pPr><w:pStyle w:val="{style}"/>{more}</w:pPr><w:r><w:t>{text}</w:t></w:r></w:p>"#
        )
    };
    let none = r#"<w:numPr><w:ilvl w:val="0"/><w:numId w:val="0"/></w:numPr>"#;
    let deep = r#"<w:numPr><w:ilvl w:val="1"/><w:numId w:val="1"/></w:numPr>"#;
    // The list is that of the style.
    let level_alone = r#"<w:numPr><w:ilvl w:val="1"/></w:numPr>"#;
    let body = [
        item("b", "", "one"),
        item("c", deep, "two"),
        item("c", "", "three"),
        item("c", level_alone, "four"),
        item("b", "<w:numPr/>", "five"),
        item("b", none, "text"),
    ];
    let related = relations(
        &(relation("s", "styles", "styles.xml") + &relation("n", "numbering", "numbering.xml")),
    );
    let more: [(&str, &[u8]); 3] = [
        ("word/_rels/document.xml.rels", related.as_bytes()),
        ("word/styles.xml", styles.as_bytes()),
        ("word/numbering.xml", numbering.as_bytes()),
    ];
    let read = text(&docx(&body.concat(), &more), Format::Docx);
    let lines: Vec<&str> = read.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(
        lines,
        ["- one", "  - two", "- three", "  - four", "- five", "text"]
    );
}

#[test]
fn text_in_pictures_is_read_once() {
    let inside = format!("<w:txbxContent>{}</w:txbxContent>", paragraph("in the box"));
    let boxed = format!(
        r#"<w:p><w:r><mc:AlternateContent xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"><mc:Choice Requires="wps"><w:drawing><wp:anchor><a:graphic><a:graphicData><wps:wsp><wps:txbx>{inside}</wps:txbx></wps:wsp></a:graphicData></a:graphic></wp:anchor></w:drawing></mc:Choice><mc:Fallback><w:pict><v:textbox>{inside}</v:textbox></w:pict></mc:Fallback></mc:AlternateContent></w:r></w:p>"#
    );
    let old = format!(
        "<w:p><w:r><w:pict><v:shape><v:textbox>{inside}</v:textbox></v:shape></w:pict></w:r></w:p>"
    );
    for body in [boxed, old] {
        assert_eq!(text(&docx(&body, &[]), Format::Docx), "in the box\n");
    }
}

#[test]
fn documents_inside_of_a_document_are_read() {
    let document = |chunks: &[&str]| {
        let chunks: String = chunks
            .iter()
            .map(|id| format!(r#"<w:altChunk r:id="{id}"/>"#))
            .collect();
        format!(
            r#"<w:document {WORDS}><w:body>{}{chunks}{}</w:body></w:document>"#,
            paragraph("first"),
            paragraph("last")
        )
    };
    let parts: [(&str, &[u8]); 4] = [
        (
            "a.html",
            b"<html><body><h2>Terms</h2><p>Pay in May.</p></body></html>",
        ),
        ("b.rtf", br"{\rtf1\ansi Caf\'e9 \b open\b0\par}"),
        ("c.docx", &docx(&paragraph("inner"), &[])),
        ("d.bin", b"\0\0"),
    ];
    let related: String = parts
        .map(|(name, _)| relation(&name[..1], "aFChunk", name))
        .concat();
    let related = relations(&related);
    let mut more: Vec<(String, &[u8])> = vec![(
        "word/_rels/document.xml.rels".to_owned(),
        related.as_bytes(),
    )];
    more.extend(parts.map(|(name, bytes)| (format!("word/{name}"), bytes)));
    let more: Vec<(&str, &[u8])> = more
        .iter()
        .map(|(name, bytes)| (name.as_str(), *bytes))
        .collect();
    let whole = docx_of(&document(&["a", "b", "c", "d"]), &more);
    let whole = read(&whole, Format::Docx).unwrap();
    assert_eq!(
        whole.markdown,
        "first\n\n## Terms\n\nPay in May.\n\nCafé open\n\ninner\n\nlast\n"
    );
    // One that cannot be read is told of,
    assert_eq!((whole.unread.len(), whole.unread_objects), (0, 1));
    // and is the reason where there is nothing else.
    let only =
        format!(r#"<w:document {WORDS}><w:body><w:altChunk r:id="d"/></w:body></w:document>"#);
    let refused = read(&docx_of(&only, &more), Format::Docx)
        .unwrap_err()
        .to_string();
    assert!(refused.contains(r#"type "bin" is embedded"#), "{refused}");
}

#[test]
fn shapes_and_charts_of_sheets_are_read() {
    let space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let workbook = format!(
        r#"<workbook xmlns="{space}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>"#
    );
    let sheet = format!(
        r#"<worksheet xmlns="{space}"><sheetData><row><c><v>1</v></c></row></sheetData><drawing r:id="r1"/></worksheet>"#
    );
    let drawing = r#"<xdr:wsDr><xdr:twoCellAnchor><xdr:sp><xdr:txBody><a:p><a:r><a:t>Call Ann *first*</a:t></a:r></a:p></xdr:txBody></xdr:sp></xdr:twoCellAnchor><xdr:graphicFrame><a:graphicData><c:chart r:id="c1"/></a:graphicData></xdr:graphicFrame></xdr:wsDr>"#;
    let chart = "<c:chartSpace><c:chart><c:title><c:tx><c:rich><a:p><a:r><a:t>Sales</a:t></a:r></a:p></c:rich></c:tx></c:title></c:chart></c:chartSpace>";
    let of_sheet = relations(&relation("r1", "drawing", "../drawings/drawing1.xml"));
    let of_drawing = relations(&relation("c1", "chart", "../charts/chart1.xml"));
    let more: [(&str, &[u8]); 4] = [
        ("xl/worksheets/_rels/sheet1.xml.rels", of_sheet.as_bytes()),
        ("xl/drawings/drawing1.xml", drawing.as_bytes()),
        ("xl/drawings/_rels/drawing1.xml.rels", of_drawing.as_bytes()),
        ("xl/charts/chart1.xml", chart.as_bytes()),
    ];
    let read = text(&xlsx_of(&workbook, &sheet, &more), Format::Xlsx);
    assert_eq!(
        read,
        "## S\n\n| 1 |\n| --- |\n\nCall Ann \\*first\\*\n\nSales\n"
    );
}

#[test]
fn slides_show_the_text_of_their_master() {
    let own =
        "<p:sp><p:txBody><a:p><a:r><a:t>Open house on Monday</a:t></a:r></a:p></p:txBody></p:sp>";
    let shapes = placeholder("title", &["Click to edit"]) + own;
    let layout = slide("sldLayout", &placeholder("body", &["Edit the text"]));
    let master = slide("sldMaster", &shapes);
    let of_layout = relations(&relation(
        "r1",
        "slideMaster",
        "../slideMasters/slideMaster1.xml",
    ));
    let more: [(&str, &[u8]); 4] = [
        ("ppt/slideLayouts/slideLayout1.xml", layout.as_bytes()),
        (
            "ppt/slideLayouts/_rels/slideLayout1.xml.rels",
            of_layout.as_bytes(),
        ),
        ("ppt/slideMasters/slideMaster1.xml", master.as_bytes()),
        ("ppt/media/image1.png", b"a picture"),
    ];
    let related = relation("r1", "slideLayout", "../slideLayouts/slideLayout1.xml");
    let empty = placeholder("title", &[]);
    assert_eq!(
        text(&pptx(&[(&empty, &related)], &more), Format::Pptx),
        "Open house on Monday\n"
    );
    // Beside text of the slide, it is decoration.
    let filled = placeholder("title", &["Hours"]);
    assert_eq!(
        text(&pptx(&[(&filled, &related)], &more), Format::Pptx),
        "# Hours\n"
    );
}

/// A picture as a file.
fn lossless(picture: &image::GrayImage) -> Vec<u8> {
    let mut file = std::io::Cursor::new(vec![]);
    picture
        .write_to(&mut file, image::ImageFormat::Png)
        .unwrap();
    file.into_inner()
}

/// A picture of noise, of this width.
fn picture(width: u32) -> Vec<u8> {
    let mut state = 1_u32;
    let picture = image::GrayImage::from_fn(width, 120, |_, _| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        image::Luma([state.to_le_bytes()[0]])
    });
    let file = lossless(&picture);
    assert!(width < 100 || file.len() > 4_096);
    file
}

/// The widths of the pictures that somebody has to look at, with the text in front of each, and the text with what is seen on them.
fn looked_at(file: &[u8], format: Format) -> (Vec<(u32, String)>, String) {
    let mut document = read(file, format).unwrap();
    assert!(
        document
            .unread
            .iter()
            .all(|it| it.reason == UnreadReason::Picture)
    );
    let pages: Vec<u32> = document.unread.iter().map(|it| it.page).collect();
    let mut widths = std::collections::HashMap::new();
    page_images(file, format, &pages, &Bounds::default(), |image| {
        widths.insert(image.page, image.width);
    })
    .unwrap();
    let before = |begin: usize| document.markdown[..begin].trim_end().to_owned();
    let unread = document.unread.iter();
    let seen = unread.map(|it| (widths[&it.page], before(it.begin)));
    let seen = seen.collect();
    document.fill(|page| Some(format!("width {}", widths[&page])));
    (seen, document.markdown)
}

#[test]
fn pictures_are_looked_at_where_they_stand() {
    let blip = |id: &str| {
        format!(
            r#"<a:graphic xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><pic:pic xmlns:pic="p"><pic:blipFill><a:blip r:embed="{id}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"/></pic:blipFill></pic:pic></a:graphic>"#
        )
    };
    let shown = |id: &str| format!("<w:p><w:r><w:drawing>{}</w:drawing></w:r></w:p>", blip(id));
    let image = |id: &str, name: &str| relation(id, "image", name);
    let related = [
        image("r1", "media/small.png"),
        image("r2", "media/late.png"),
        image("r3", "media/early.png"),
        image("r4", "media/unused.png"),
    ];
    let related = relations(&related.concat());
    // A word of few bytes is looked at, and a bullet is not.
    let word = lossless(&image::GrayImage::new(48, 14));
    assert!(word.len() < 200);
    let [small, early, late] = [20, 200, 300].map(picture);
    let media: [(&str, &[u8]); 5] = [
        ("word/_rels/document.xml.rels", related.as_bytes()),
        ("word/media/small.png", &small[..60]),
        ("word/media/early.png", &early),
        ("word/media/late.png", &late),
        ("word/media/unused.png", &late),
    ];
    let cell = |inside: &str| format!("<w:tc>{inside}</w:tc>");
    let row = cell(&paragraph("a")) + &cell(&(shown("r2") + &paragraph("b")));
    let body = [
        paragraph("first"),
        shown("r1"),
        shown("r3"),
        paragraph("second"),
        format!("<w:tbl><w:tr>{row}</w:tr></w:tbl>"),
        shown("r3"),
        paragraph("last"),
    ];
    let (seen, text) = looked_at(&docx(&body.concat(), &media), Format::Docx);
    assert_eq!(seen[0], (400, "first".to_owned()));
    assert_eq!(seen[1].0, 600);
    assert!(seen[1].1.contains("| a | b"), "{seen:?}");
    assert_eq!(seen.len(), 2, "{seen:?}");
    let places = [
        "first",
        "width 400",
        "second",
        "| a | b",
        "width 600",
        "last",
    ];
    let places = places.map(|what| text.find(what).unwrap_or_else(|| panic!("{what}: {text}")));
    assert!(places.is_sorted(), "{text}");

    // On slides.
    let pic = format!("<p:pic><p:blipFill>{}</p:blipFill></p:pic>", blip("r3"));
    let related = image("r3", "../media/early.png");
    let titled = |title: &str| placeholder("title", &[title]);
    let (one, two) = (titled("One") + &pic, titled("Two"));
    let media: (&str, &[u8]) = ("ppt/media/early.png", &early);
    let slides = pptx(&[(&one, &related), (&two, "")], &[media]);
    let (seen, text) = looked_at(&slides, Format::Pptx);
    assert_eq!(seen, [(400, "# One".to_owned())]);
    let media: [(&str, &[u8]); 1] = [("ppt/media/early.png", &word)];
    let (seen, _) = looked_at(&pptx(&[(&one, &related)], &media), Format::Pptx);
    assert_eq!(seen, [(96, "# One".to_owned())]);
    let media: (&str, &[u8]) = ("ppt/media/early.png", &early);
    let places = ["One", "width 400", "Two"].map(|what| text.find(what).unwrap());
    assert!(places.is_sorted(), "{text}");

    // A picture stands where it is shown first, not where it is named first.
    let titles: Vec<String> = (1..=10)
        .map(|number| titled(&format!("T{number}")))
        .collect();
    let shapes = titles.iter().enumerate().map(|(at, title)| match at {
        1 | 9 => (format!("{title}{pic}"), related.as_str()),
        _ => (title.clone(), ""),
    });
    let shapes: Vec<(String, &str)> = shapes.collect();
    let shapes: Vec<(&str, &str)> = shapes.iter().map(|(a, b)| (a.as_str(), *b)).collect();
    let (seen, _) = looked_at(&pptx(&shapes, &[media]), Format::Pptx);
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert!(seen[0].1.ends_with("# T2"), "{seen:?}");

    // Who knows the marks gets nothing by them.
    let marks = [0, 1, 1_000_001].map(|number| format!("\u{FDD0}\u{FDD2}{number}\u{FDD1}"));
    let marks = marks.concat() + "\u{FDD0}\u{FDD2}9\u{FDD1}\u{FDD0}x";
    let document = read(&docx(&paragraph(&marks), &[]), Format::Docx).unwrap();
    assert_eq!((document.markdown.trim(), document.unread.len()), ("x", 0));
}

#[test]
fn pictures_of_slides_stay_beside_comments() {
    let pic = r#"<p:pic><p:blipFill><a:blip r:embed="p"/></p:blipFill></p:pic>"#;
    let shape =
        "<p:sp><p:txBody><a:p><a:r><a:t>Welcome to Acme</a:t></a:r></a:p></p:txBody></p:sp>";
    let layout = slide("sldLayout", shape);
    let comments = r#"<p:cmLst xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"><p:cm authorId="0" idx="1"><p:text>Too long</p:text></p:cm></p:cmLst>"#;
    let [one, two] = [200, 300].map(picture);
    let more: [(&str, &[u8]); 4] = [
        ("ppt/slideLayouts/slideLayout1.xml", layout.as_bytes()),
        ("ppt/comments/comment1.xml", comments.as_bytes()),
        ("ppt/media/one.png", &one),
        ("ppt/media/two.png", &two),
    ];
    let first = relation("p", "image", "../media/one.png")
        + &relation("c", "comments", "../comments/comment1.xml");
    let second = relation("p", "image", "../media/two.png");
    let templated = relation("l", "slideLayout", "../slideLayouts/slideLayout1.xml") + &first;
    for (first, before) in [(first, ""), (templated, "Welcome to Acme\n\n")] {
        let deck = pptx(&[(pic, &first), (pic, &second)], &more);
        let (_, text) = looked_at(&deck, Format::Pptx);
        let rest = "width 400\n\n> **Comment:** Too long\n\nwidth 600\n";
        assert_eq!(text, format!("{before}{rest}"));
    }
}

/// A picture with this name in the part that shows it, as the body of a Word document has it.
fn shown_picture(id: &str) -> String {
    format!(
        r#"<w:p><w:r><w:drawing><a:graphic xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><pic:pic xmlns:pic="p"><pic:blipFill><a:blip r:embed="{id}"/></pic:blipFill></pic:pic></a:graphic></w:drawing></w:r></w:p>"#
    )
}

#[test]
fn margins_and_notes_show_pictures_and_diagrams() {
    let drawing =
        format!("<w:p><w:r><w:drawing><wp:inline>{FRAME}</wp:inline></w:drawing></w:r></w:p>");
    let header = format!(
        "<w:hdr {WORDS}>{}{}{drawing}</w:hdr>",
        paragraph("Acme"),
        shown_picture("r1")
    );
    let notes = format!(
        r#"<w:footnotes {WORDS}><w:footnote w:id="2">{}{}</w:footnote></w:footnotes>"#,
        paragraph("the note"),
        shown_picture("r1")
    );
    let document = format!(
        r#"<w:document {WORDS}><w:body>{}<w:p><w:r><w:footnoteReference w:id="2"/></w:r></w:p><w:sectPr><w:headerReference w:type="default" r:id="h"/></w:sectPr></w:body></w:document>"#,
        paragraph("body")
    );
    let of_body = [
        relation("h", "header", "header1.xml"),
        relation("f", "footnotes", "footnotes.xml"),
        relation("c", "comments", "comments.xml"),
    ];
    let of_body = relations(&of_body.concat());
    let of_header = relation("r1", "image", "media/a.png")
        + &relation("d1", "diagramData", "diagrams/data1.xml");
    let of_header = relations(&of_header);
    let of_notes = relations(&relation("r1", "image", "media/b.png"));
    let of_comments =
        relation("r1", "image", "media/c.png") + &relation("r2", "chart", "charts/chart1.xml");
    let of_comments = relations(&of_comments);
    let [a, b, c] = [200, 300, 400].map(picture);
    let more: [(&str, &[u8]); 10] = [
        ("word/_rels/document.xml.rels", of_body.as_bytes()),
        ("word/_rels/header1.xml.rels", of_header.as_bytes()),
        ("word/_rels/footnotes.xml.rels", of_notes.as_bytes()),
        ("word/_rels/comments.xml.rels", of_comments.as_bytes()),
        ("word/header1.xml", header.as_bytes()),
        ("word/footnotes.xml", notes.as_bytes()),
        ("word/diagrams/data1.xml", DIAGRAM.as_bytes()),
        ("word/media/a.png", &a),
        ("word/media/b.png", &b),
        ("word/media/c.png", &c),
    ];
    let file = docx_of(&document, &more);
    let (seen, text) = looked_at(&file, Format::Docx);
    assert_eq!(seen.len(), 3, "{seen:?}");
    let places = [
        "Acme",
        "width 400",
        "- Collect\n  - Sort",
        "body",
        "the note",
        "width 600",
        "width 800",
    ];
    let places = places.map(|what| text.find(what).unwrap_or_else(|| panic!("{what}: {text}")));
    assert!(places.is_sorted(), "{text}");
    // The chart of a comment.
    assert_eq!(read(&file, Format::Docx).unwrap().unread_objects, 1);
}

#[test]
fn templates_that_slides_use_show_pictures() {
    let related = relation("r1", "slideLayout", "../slideLayouts/slideLayout1.xml");
    let of_layout = relation("r1", "slideMaster", "../slideMasters/slideMaster1.xml")
        + &relation("r2", "image", "../media/used.png");
    let of_layout = relations(&of_layout);
    let unused = relations(&relation("r1", "image", "../media/unused.png"));
    let of_master = relations(&relation(
        "r1",
        "slideLayout",
        "../slideLayouts/slideLayout2.xml",
    ));
    let layouts = "ppt/slideLayouts/_rels";
    let names = [1, 2].map(|number| format!("{layouts}/slideLayout{number}.xml.rels"));
    let [used, other] = [200, 300].map(picture);
    let [layout, master] = ["sldLayout", "sldMaster"].map(|root| slide(root, ""));
    let more: [(&str, &[u8]); 7] = [
        ("ppt/slideLayouts/slideLayout1.xml", layout.as_bytes()),
        ("ppt/slideMasters/slideMaster1.xml", master.as_bytes()),
        (&names[0], of_layout.as_bytes()),
        (&names[1], unused.as_bytes()),
        (
            "ppt/slideMasters/_rels/slideMaster1.xml.rels",
            of_master.as_bytes(),
        ),
        ("ppt/media/used.png", &used),
        ("ppt/media/unused.png", &other),
    ];
    let title = placeholder("title", &["Hours"]);
    let (seen, _) = looked_at(&pptx(&[(&title, &related)], &more), Format::Pptx);
    assert_eq!(seen, [(400, "# Hours".to_owned())]);
}

#[test]
fn embedded_objects_are_counted() {
    let two = [
        relation("o1", "oleObject", "embeddings/object1.bin"),
        relation("o2", "package", "embeddings/sheet1.xlsx"),
        relation("o3", "package", "embeddings/sheet1.xlsx"),
        relation("c1", "chart", "charts/chart1.xml"),
    ];
    let related = relations(&two.concat());
    // The numbers of a chart are read.
    let of_chart = relations(&relation("p", "package", "../embeddings/sheet2.xlsx"));
    let chart = "<c:chartSpace/>";
    let more: [(&str, &[u8]); 3] = [
        ("word/_rels/document.xml.rels", related.as_bytes()),
        ("word/charts/chart1.xml", chart.as_bytes()),
        ("word/charts/_rels/chart1.xml.rels", of_chart.as_bytes()),
    ];
    let document = read(&docx(&paragraph("text"), &more), Format::Docx).unwrap();
    assert_eq!((document.unread_objects, document.unread.len()), (2, 0));
    let refused = read(&docx("", &more), Format::Docx).unwrap_err();
    assert!(refused.to_string().contains("objects of other programs"));

    // The picture that stands for an object counts with it.
    let related = relations(
        &(relation("o1", "oleObject", "embeddings/object1.bin")
            + &relation("p1", "image", "media/a.png")
            + &relation("p2", "image", "media/b.png")),
    );
    let [preview, other] = [200, 300].map(picture);
    let more: [(&str, &[u8]); 3] = [
        ("word/_rels/document.xml.rels", related.as_bytes()),
        ("word/media/a.png", &preview),
        ("word/media/b.png", &other),
    ];
    let body = format!(
        r#"<w:p><w:r><w:object><v:shape><v:imagedata r:id="p1"/></v:shape><o:OLEObject r:id="o1"/></w:object></w:r></w:p>{}"#,
        shown_picture("p2")
    );
    let document = read(&docx(&body, &more), Format::Docx).unwrap();
    let reasons: Vec<_> = document.unread.iter().map(|it| it.reason).collect();
    assert_eq!(reasons, [UnreadReason::Preview, UnreadReason::Picture]);
    assert_eq!(document.unread_objects, 1);

    let object = relation("o1", "oleObject", "../embeddings/object1.bin");
    let title = placeholder("title", &["Hours"]);
    let slides = pptx(&[(&title, &object), (&title, &object)], &[]);
    assert_eq!(read(&slides, Format::Pptx).unwrap().unread_objects, 1);

    let space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let workbook = format!(
        r#"<workbook xmlns="{space}" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>"#
    );
    let sheet = format!(
        r#"<worksheet xmlns="{space}"><sheetData><row><c><v>1</v></c></row></sheetData></worksheet>"#
    );
    let object = relations(&object);
    let more: (&str, &[u8]) = ("xl/worksheets/_rels/sheet1.xml.rels", object.as_bytes());
    let sheets = xlsx_of(&workbook, &sheet, &[more]);
    assert_eq!(read(&sheets, Format::Xlsx).unwrap().unread_objects, 1);
}
