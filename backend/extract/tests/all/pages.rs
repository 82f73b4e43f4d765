//! Pages of a PDF: which have to be looked at, and what somebody has typed on them.

use colloquy_extract::{Document, Format, Options, UnreadReason, extract};

use super::made::{lines, pages, pdf, scan, stream};

fn read(bytes: &[u8]) -> Document {
    extract(bytes, Format::Pdf, &Options::default()).unwrap()
}

const STAMP: &str = "Downloaded from https://archive.example.org/journals/1937/04 on 12 May 2024, for the use of its members alone.";

/// A picture of the whole page, and lines above one another, in a mode of painting.
fn scan_with(mode: u8, height: u32, lines: &[&str]) -> Vec<u8> {
    let shown: Vec<String> = lines.iter().map(|line| format!("({line}) Tj T*")).collect();
    let content = format!(
        "q 595 0 0 842 0 0 cm /I Do Q BT {mode} Tr /F 8 Tf 10 TL 20 {height} Td {} ET",
        shown.join(" ")
    );
    stream("", content.as_bytes())
}

#[test]
fn a_scan_with_a_stamp_is_looked_at() {
    let unread = |page: Vec<u8>| {
        let document = read(&pages(&[page]));
        let reasons = document.unread.iter().map(|unread| unread.reason);
        reasons.collect::<Vec<_>>()
    };
    assert_eq!(unread(scan()), [UnreadReason::NoText]);
    assert_eq!(unread(scan_with(0, 30, &[STAMP])), [UnreadReason::BadText]);
    assert_eq!(unread(scan_with(0, 400, &[STAMP])), [UnreadReason::BadText]);
    // What was recognized is kept, and what was written on a picture.
    let text = ["The lions of the garden sleep all day, and wake when the visitors have left."; 12];
    let layer = scan_with(3, 700, &text);
    assert_eq!(unread(layer), []);
    assert_eq!(unread(scan_with(0, 700, &text)), []);
}

#[test]
fn what_is_typed_on_a_page_is_read() {
    let annotation = |more: &str| {
        format!("<< /Type /Annot /Subtype /FreeText /Rect [9 9 99 99] {more} >>").into_bytes()
    };
    let page = |content: u32, annotations: &str| {
        format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {content} 0 R /Annots [{annotations}] /Resources << /Font << /F 7 0 R >> /XObject << /I 8 0 R >> >> >>").into_bytes()
    };
    let wide: String = "Zoë: 5 €"
        .encode_utf16()
        .map(|unit| format!("{unit:04X}"))
        .collect();
    let objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Count 2 /Kids [3 0 R 4 0 R] >>".to_vec(),
        page(5, "9 0 R 10 0 R 11 0 R 12 0 R"),
        page(6, "9 0 R 13 0 R"),
        scan(),
        lines(&["A form to be filled in."]),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_vec(),
        stream(
            "/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8",
            b"a",
        ),
        annotation("/Contents (Paid \\204 in full\\rby Ann)"),
        annotation("/F 2 /Contents (hidden)"),
        annotation("/Contents ()"),
        b"<< /Type /Annot /Subtype /Text /Rect [9 9 99 99] /Contents (a remark) >>".to_vec(),
        annotation(&format!("/Contents <FEFF{wide}>")),
    ];
    let mut document = read(&pdf(&objects, ""));
    assert_eq!(document.unread.len(), 1, "{document:?}");
    document.fill(|page| Some(format!("What stands on page {page}.")));
    assert_eq!(
        document.markdown,
        "What stands on page 1.\n\nPaid — in full\nby Ann\n\nA form to be filled in.\n\nZoë: 5 €\n"
    );
}

#[test]
fn a_pdf_begins_at_its_mark() {
    let file = pages(&[lines(&["The lions sleep all day."])]);
    for before in [
        &b"\xEF\xBB\xBF"[..],
        b"\r\n\n",
        b"HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n",
        b"\0\0\0\0",
    ] {
        let file = [before, &file].concat();
        assert_eq!(
            read(&file).markdown,
            "The lions sleep all day.\n",
            "{before:?}"
        );
    }
}
