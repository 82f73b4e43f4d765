//! What does harm, or is not what it seems: each has an error that says which, in bounded time and memory.

use std::time::Duration;

use colloquy_base::clock::{Clock as _, SystemClock};
use colloquy_extract::{
    Bound, Bounds, Document, ExtractError, Format, Options, UnreadReason, extract,
};

use super::made::{
    container, docx, docx_of, epub, lines, pages, pages_with, paragraph, pdf, scan, stream, xlsx,
};

fn read(bytes: &[u8], format: Format) -> Result<Document, ExtractError> {
    extract(bytes, format, &Options::default())
}

fn bounded(
    bytes: &[u8],
    format: Format,
    change: impl FnOnce(&mut Bounds),
) -> Result<Document, ExtractError> {
    let mut options = Options::default();
    change(&mut options.bounds);
    extract(bytes, format, &options)
}

fn too_large(result: Result<Document, ExtractError>, expected: Bound) {
    let result = result.map(|document| document.markdown.len());
    let is_expected =
        matches!(&result, Err(ExtractError::TooLarge { bound, .. }) if *bound == expected);
    assert!(is_expected, "{expected:?}: {result:?}");
}

#[test]
fn a_container_that_unpacks_to_too_much_is_refused() {
    let most = Bounds::default().unpacked_bytes;
    // One letter again and again, which takes a thousandth of its length.
    let text = "a".repeat(most / 4);
    let bomb = docx(&paragraph(&text), &[]);
    assert!(bomb.len() < text.len() / 500, "{}", bomb.len());
    let less = |bounds: &mut Bounds| bounds.unpacked_bytes = most / 8;
    too_large(bounded(&bomb, Format::Docx, less), Bound::UnpackedBytes);
    too_large(
        bounded(&epub(&text, &[]), Format::Epub, less),
        Bound::UnpackedBytes,
    );
    // Many parts, each of them within the bound.
    let part = &text.as_bytes()[..most / 32];
    let names = [
        "word/a.xml",
        "word/b.xml",
        "word/c.xml",
        "word/d.xml",
        "word/e.xml",
    ];
    let parts = docx(&paragraph("text"), &names.map(|name| (name, part)));
    too_large(bounded(&parts, Format::Docx, less), Bound::UnpackedBytes);
}

#[test]
fn a_container_with_too_many_files_is_refused() {
    let names: Vec<String> = (0..30_000)
        .map(|number| format!("word/a{number}.xml"))
        .collect();
    let more: Vec<(&str, &[u8])> = names
        .iter()
        .map(|name| (name.as_str(), &b"<a/>"[..]))
        .collect();
    too_large(
        read(&docx(&paragraph("text"), &more), Format::Docx),
        Bound::Entries,
    );
}

#[test]
fn what_compresses_well_and_is_small_is_read() {
    // A hundredth of what it is, which a bound on the ratio refuses.
    let rows = "<row><c><v>1</v></c><c><v>1</v></c></row>".repeat(20_000);
    let sheet = xlsx(&rows);
    assert!(
        rows.len() / sheet.len() > 100,
        "{} to {}",
        rows.len(),
        sheet.len()
    );
    let document = read(&sheet, Format::Xlsx).unwrap();
    assert_eq!(document.markdown.matches("| 1 | 1 |").count(), 20_000);
    let same = paragraph("the same words again ").repeat(100_000);
    let document = docx(&same, &[]);
    assert!(
        same.len() / document.len() > 150,
        "{} to {}",
        same.len(),
        document.len()
    );
    assert!(read(&document, Format::Docx).is_ok());
}

#[test]
fn a_picture_inside_that_unpacks_to_much_is_not_unpacked() {
    let picture = vec![0; 100 * 1024 * 1024];
    let document = docx(&paragraph("words"), &[("word/media/image1.png", &picture)]);
    let read = bounded(&document, Format::Docx, |bounds| {
        bounds.unpacked_bytes = 1024 * 1024
    });
    assert_eq!(read.unwrap().markdown, "words\n");
}

#[test]
fn deep_and_numerous_elements_are_refused() {
    let deep = format!(
        "{}{}",
        "<w:sdt>".repeat(100_000),
        "</w:sdt>".repeat(100_000)
    );
    too_large(read(&docx(&deep, &[]), Format::Docx), Bound::Depth);
    let tables = format!(
        "{}x{}",
        "<w:tbl><w:tr><w:tc>".repeat(50_000),
        "</w:tc></w:tr></w:tbl>".repeat(50_000)
    );
    too_large(read(&docx(&tables, &[]), Format::Docx), Bound::Depth);
    let unclosed = "<w:p>".repeat(100_000);
    too_large(read(&docx(&unclosed, &[]), Format::Docx), Bound::Depth);
    let many = paragraph("a").repeat(10_000);
    too_large(
        bounded(&docx(&many, &[]), Format::Docx, |bounds| {
            bounds.elements = 20_000
        }),
        Bound::Elements,
    );
    let divs = format!("{}x{}", "<div>".repeat(100_000), "</div>".repeat(100_000));
    too_large(read(divs.as_bytes(), Format::Html), Bound::Depth);
    too_large(read(&epub(&divs, &[]), Format::Epub), Bound::Depth);
    // In a drawing elements end where they begin, but not those of a page, which end the drawing.
    let left = format!("<svg><p>{}x", "<div/>".repeat(100_000));
    too_large(read(left.as_bytes(), Format::Html), Bound::Depth);
}

/// As deep as it may be: no reader runs out of its stack.
#[test]
fn what_is_as_deep_as_it_may_be_is_read() {
    let nested = |begin: &str, end: &str, times: usize| {
        format!(
            "{}{}{}",
            begin.repeat(times),
            paragraph("within"),
            end.repeat(times)
        )
    };
    let controls = nested("<w:sdt><w:sdtContent>", "</w:sdtContent></w:sdt>", 120);
    let tables = nested("<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>", 80);
    for body in [controls, tables] {
        let document = read(&docx(&body, &[]), Format::Docx).unwrap();
        assert!(
            document.markdown.contains("within"),
            "{}",
            document.markdown
        );
    }
    for element in ["div", "span", "b", "table><tr><td", "ul><li", "blockquote"] {
        let ends: String = element
            .split('>')
            .rev()
            .map(|name| format!("</{}>", name.trim_start_matches('<')))
            .collect();
        let page = format!(
            "{}within{}",
            format!("<{element}>").repeat(120),
            ends.repeat(120)
        );
        let document = read(page.as_bytes(), Format::Html).unwrap();
        assert!(document.markdown.contains("within"), "{element}");
        let options = Options {
            article_of: Some("https://example.com/a".to_owned()),
            ..Options::default()
        };
        assert!(
            extract(page.as_bytes(), Format::Html, &options).is_ok(),
            "{element}"
        );
    }
    // Sloppy pages leave elements open.
    let sloppy = "<p>text <font><b>bold<br>".repeat(1_000);
    assert!(read(sloppy.as_bytes(), Format::Html).is_ok());
}

#[test]
fn entities_are_refused_where_they_could_grow_and_kept_where_they_are_text() {
    let types = r#"<?xml version="1.0"?><!DOCTYPE a [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>"#;
    let body = format!(
        r#"{types}<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"><w:body>{}</w:body></w:document>"#,
        paragraph("&b;")
    );
    assert_eq!(
        read(&docx_of(&body, &[]), Format::Docx),
        Err(ExtractError::Entities)
    );
    let mut bomb = "<!DOCTYPE z [<!ENTITY a0 \"ha\">".to_owned();
    for level in 1..60 {
        bomb.push_str(&format!("<!ENTITY a{level} \"&a{0};&a{0};\">", level - 1));
    }
    bomb.push_str("]><z>&a59;</z>");
    let document = read(
        format!("<?xml version=\"1.0\"?>{bomb}").as_bytes(),
        Format::Xml,
    )
    .unwrap();
    assert!(document.markdown.len() < 2 * bomb.len());
    let page = read(format!("{bomb}<p>words</p>").as_bytes(), Format::Html).unwrap();
    assert!(page.markdown.len() < 4 * bomb.len());
    let stolen = "<!DOCTYPE z [<!ENTITY f SYSTEM \"file:///etc/passwd\">]><p>words &f;</p>";
    assert!(
        !read(stolen.as_bytes(), Format::Html)
            .unwrap()
            .markdown
            .contains("root:")
    );
}

#[test]
fn sheets_with_more_cells_than_fit_are_refused() {
    // Each row has one value, in its last column: filled up they are 82 million cells.
    let rows: String = (1..=5_000)
        .map(|row| format!(r#"<row r="{row}"><c r="XFD{row}"><v>1</v></c></row>"#))
        .collect();
    too_large(read(&xlsx(&rows), Format::Xlsx), Bound::Cells);
    let line = "1,".repeat(999);
    let values = format!("{line}1\n").repeat(1_001);
    too_large(read(values.as_bytes(), Format::Csv), Bound::Cells);
    too_large(
        read(",".repeat(30_000_000).as_bytes(), Format::Csv),
        Bound::Cells,
    );
}

#[test]
fn encrypted_documents_say_so() {
    let protected = "/Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -44 /O <0102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f20> /U <2122232425262728292a2b2c2d2e2f303132333435363738393a3b3c3d3e3f40> >> /ID [<00112233445566778899aabbccddeeff> <00112233445566778899aabbccddeeff>]";
    let locked = pages_with(&[lines(&["text"])], protected);
    assert_eq!(read(&locked, Format::Pdf), Err(ExtractError::Encrypted));
    let drm = r#"<encryption><EncryptedData><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></EncryptedData></encryption>"#;
    let book = epub(
        "<p>text</p>",
        &[("META-INF/encryption.xml", drm.as_bytes())],
    );
    assert_eq!(read(&book, Format::Epub), Err(ExtractError::Encrypted));
}

#[test]
fn what_lies_is_empty_or_damaged_says_so() {
    let good = docx(&paragraph("text"), &[]);
    for format in [
        Format::Pdf,
        Format::Xlsx,
        Format::Epub,
        Format::Text,
        Format::Png,
    ] {
        assert!(
            matches!(read(&good, format), Err(ExtractError::Mismatch { .. })),
            "{format}"
        );
    }
    for format in [
        Format::Pdf,
        Format::Docx,
        Format::Doc,
        Format::Text,
        Format::Png,
        Format::Html,
    ] {
        assert_eq!(read(b"", format), Err(ExtractError::Empty), "{format}");
    }
    let nothing = [
        (docx("<w:p/>", &[]), Format::Docx),
        (xlsx(""), Format::Xlsx),
        (epub("<p> </p>", &[]), Format::Epub),
        (pages(&[stream("", b"")]), Format::Pdf),
        (b" \n\t\r\n".to_vec(), Format::Text),
        (
            b"<html><body><div></div></body></html>".to_vec(),
            Format::Html,
        ),
        (b",,\n,,\n".to_vec(), Format::Csv),
        (b"\n".to_vec(), Format::Json),
    ];
    for (bytes, format) in nothing {
        assert_eq!(read(&bytes, format), Err(ExtractError::Empty), "{format}");
    }
    let pictures = docx("<w:p/>", &[("word/media/image1.png", b"\x89PNG\r\n\x1A\n")]);
    assert_eq!(
        read(&pictures, Format::Docx),
        Err(ExtractError::PicturesOnly)
    );
    let broken = docx_of("<w:document><w:body><w:p", &[]);
    assert!(matches!(
        read(&broken, Format::Docx),
        Err(ExtractError::Damaged(_))
    ));
    let missing = container(&[
        ("[Content_Types].xml", b"<Types/>"),
        ("word/document.xml", b"<a/>"),
    ]);
    assert!(read(&missing, Format::Docx).is_err());
    for cut in [good.len() / 2, good.len() - 30] {
        let result = read(&good[..cut], Format::Docx);
        assert!(
            matches!(result, Err(ExtractError::Damaged(_))),
            "{result:?}"
        );
    }
    let whole = pages(&[lines(&["text"])]);
    let nothing_left = read(&whole[..60], Format::Pdf);
    assert!(
        matches!(
            nothing_left,
            Err(ExtractError::Damaged(_) | ExtractError::Empty)
        ),
        "{nothing_left:?}"
    );
    for format in [Format::Mp4, Format::Wav] {
        assert!(read(b"RIFF\x10\0\0\0WAVEfmt ", format).is_err());
    }
    assert_eq!(
        read(b"RIFF\x10\0\0\0WAVEfmt ", Format::Wav),
        Err(ExtractError::NotText(Format::Wav))
    );
}

/// Complaint: a scanned PDF yields silent nothing.
#[test]
fn scanned_pages_are_named_and_their_place_is_kept() {
    let text = lines(&[
        "A page whose text can be read as it is, which is long enough to be more than a stamp.",
    ]);
    let stamp = stream(
        "",
        b"q 595 0 0 842 0 0 cm /I Do Q BT /F 12 Tf 500 20 Td (17) Tj ET",
    );
    let bytes = pages(&[text.clone(), scan(), stream("", b""), stamp, text]);
    let mut document = read(&bytes, Format::Pdf).unwrap();
    assert_eq!(document.pages, Some(5));
    assert_eq!(document.language.as_deref(), Some("de-DE"));
    let unread: Vec<_> = document
        .unread
        .iter()
        .map(|unread| (unread.page, unread.reason))
        .collect();
    assert!(
        unread
            .iter()
            .any(|(page, reason)| *page == 2 && *reason == UnreadReason::NoText),
        "{unread:?}"
    );
    assert!(unread.iter().any(|(page, _)| *page == 4), "{unread:?}");
    assert_eq!(unread.len(), 2, "{unread:?}");
    document.fill(|page| Some(format!("recognized on {page}")));
    let (first, second) = (
        document.markdown.find("recognized on 2"),
        document.markdown.find("recognized on 4"),
    );
    assert!(
        first.unwrap() > document.markdown.find("can be read").unwrap(),
        "{}",
        document.markdown
    );
    assert!(
        second.unwrap() < document.markdown.rfind("can be read").unwrap(),
        "{}",
        document.markdown
    );
    let only = read(&pages(&[scan(), scan()]), Format::Pdf).unwrap();
    assert_eq!(only.unread.len(), 2);
    // Where nothing can be recognized, that is an error.
    let mut none = only;
    none.fill(|_| None);
    assert_eq!(none.finished(true), Err(ExtractError::PicturesOnly));
}

#[test]
fn columns_are_read_one_after_the_other_and_parted_words_joined() {
    let column = |at: u32, lines: &[&str]| {
        let shown: Vec<String> = lines.iter().map(|line| format!("({line}) Tj T*")).collect();
        format!("BT /F 10 Tf 13 TL {at} 700 Td {} ET ", shown.join(" "))
    };
    let left = [
        "The left column of this page is read be-",
        "fore the right one, although its lines stand",
        "beside those of the other column, as is com-",
        "mon in journals. A reader who goes along",
        "the lines would mix both of them up, and",
        "nobody would understand a word of it all.",
    ];
    let right = [
        "The right column follows the left one. It",
        "has as many lines, which say something else,",
        "so that each of them can be told from those",
        "on the other side by anybody who looks for",
        "them. What was parted at the end of a line",
        "is one word again, such as encyclo-",
        "pedia here.",
    ];
    let content = format!("{}{}", column(50, &left), column(320, &right));
    let read = read(&pages(&[stream("", content.as_bytes())]), Format::Pdf).unwrap();
    let text = read
        .markdown
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    for words in [
        "is read before the right one",
        "common in journals",
        "such as encyclopedia here",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let (left_end, right_begin) = (
        text.find("a word of it all"),
        text.find("The right column follows"),
    );
    assert!(left_end.unwrap() < right_begin.unwrap(), "{text}");
}

#[test]
fn a_pdf_that_refers_to_itself_has_an_end() {
    let began = SystemClock.instant();
    let circle = pdf(
        &[
            b"<< /Type /Catalog /Pages 2 0 R /Outlines 2 0 R >>".to_vec(),
            b"<< /Type /Pages /Count 900000 /Kids [2 0 R 2 0 R 3 0 R] /Parent 2 0 R >>".to_vec(),
            b"<< /Type /Page /Parent 3 0 R /Contents [3 0 R 3 0 R] /Resources 3 0 R >>".to_vec(),
        ],
        "",
    );
    drop(read(&circle, Format::Pdf));
    let arrays = pdf(&[[&b"["[..]].concat().repeat(200_000)], "");
    drop(read(&arrays, Format::Pdf));
    let form = stream(
        "/Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /I 4 0 R >> >>",
        b"/I Do /I Do /I Do",
    );
    let forms = pdf(
        &[
            b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
            b"<< /Type /Pages /Count 1 /Kids [3 0 R] >>".to_vec(),
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R /Resources << /XObject << /I 4 0 R >> >> >>".to_vec(),
            form,
        ],
        "",
    );
    drop(read(&forms, Format::Pdf));
    assert!(
        SystemClock.instant().duration_since(began) < Duration::from_secs(60),
        "{:?}",
        SystemClock.instant().duration_since(began)
    );
}
