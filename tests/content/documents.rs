//! Documents of others, read by children with limits, and by Tesseract where they are pictures.

use std::{fs, io::Write as _, path::Path};

use bytes::Bytes;
use colloquy::{
    config::SandboxConfig,
    digitize::{
        Bound, DigitizeError, DigitizeOptions, Digitized, ExtractError, Format, Input, NoOcr, Ocr,
        child::page_images, digitize,
    },
    fair_queue::{Claim, Priority},
    sandbox::{Limit, Limits, Program, Sandbox, SandboxError},
};
use harness::{process::binary, sounds::converted};

fn sandbox() -> Sandbox {
    Sandbox::new(&SandboxConfig {
        processes: 2,
        program: Some(binary().clone()),
        ..SandboxConfig::default()
    })
}

fn claim() -> Claim {
    Claim::new(Priority::Background, "acme")
}

fn sample(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/documents");
    fs::read(folder.join(name)).unwrap()
}

async fn read(
    ocr: Option<&Ocr>,
    file: impl Into<Bytes>,
    format: Format,
) -> Result<Digitized, DigitizeError> {
    let options = DigitizeOptions::default();
    digitize(&sandbox(), ocr, &claim(), file.into(), format, &options).await
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_are_read_by_children() {
    let read = read(None, sample("docx/word_sample.docx"), Format::Docx)
        .await
        .unwrap();
    assert_eq!(read.document.title.as_deref(), Some("Swimming in the lake"));
    assert!(
        read.document
            .markdown
            .contains("| Leaves | Ash, Elm, Maple | 50 |")
    );
    assert!(read.recognized.is_empty() && read.missing.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_read_without_being_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.docx");
    fs::write(&path, sample("docx/word_sample.docx")).unwrap();
    let read = async |path: &Path| {
        let options = DigitizeOptions::default();
        let file = Input::File(path.to_owned());
        digitize(&sandbox(), None, &claim(), file, Format::Docx, &options).await
    };
    let document = read(&path).await.unwrap().document;
    assert!(document.markdown.contains("Swimming in the lake"));
    fs::remove_file(&path).unwrap();
    assert!(read(&path).await.unwrap_err().may_pass());
}

/// Complaint: a scanned PDF yields silent nothing.
#[tokio::test(flavor = "multi_thread")]
async fn text_is_recognized_on_scanned_pages() {
    let scan = sample("ocr/ocr_test.pdf");
    let refused = read(None, scan.clone(), Format::Pdf).await;
    assert!(matches!(refused, Err(DigitizeError::NoOcr)), "{refused:?}");
    let ocr = Ocr::open(&sandbox(), &["eng"]).await.unwrap();
    let read = read(Some(&ocr), scan, Format::Pdf).await.unwrap();
    assert_eq!(read.recognized, [1]);
    let words = "Docling bundles PDF document conversion to JSON and Markdown in an easy self contained package";
    assert_eq!(read.document.markdown.trim(), words);
}

/// A graymap of what Tesseract reads, as a picture of a codec. A GIF has a muxer of its own.
fn pictured(codec: &str, page: &[u8]) -> Vec<u8> {
    match codec {
        "gif" => converted(page, "a.gif", &[]),
        _ => converted(
            page,
            "picture",
            &["-frames:v", "1", "-f", "image2pipe", "-c:v", codec],
        ),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_recognized_on_pictures_of_every_format() {
    let scan = Input::from(Bytes::from(sample("ocr/ocr_test.pdf")));
    let sandbox = sandbox();
    let claim = claim();
    let images = page_images(&sandbox, &claim, &scan, Format::Pdf, &[1]);
    let images = images.await.unwrap();
    let page = images[0].to_pgm();
    let ocr = Ocr::open(&sandbox, &["eng"]).await.unwrap();
    for (codec, format) in [
        ("png", Format::Png),
        ("mjpeg", Format::Jpeg),
        ("tiff", Format::Tiff),
        ("gif", Format::Gif),
        ("libwebp", Format::WebP),
    ] {
        let picture = pictured(codec, &page);
        let read = read(Some(&ocr), picture, format).await;
        let read = read.unwrap_or_else(|error| panic!("{format}: {error}"));
        assert!(
            read.document.markdown.contains("Markdown in an easy"),
            "{format}: {}",
            read.document.markdown
        );
    }
    let blank = [b"P5\n400 400\n255\n".to_vec(), vec![255; 160_000]].concat();
    let nothing = read(Some(&ocr), pictured("png", &blank), Format::Png).await;
    assert!(
        matches!(
            nothing,
            Err(DigitizeError::Document(ExtractError::PicturesOnly))
        ),
        "{nothing:?}"
    );
}

/// A Word document with a paragraph and a picture.
fn illustrated(picture: &[u8]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
    let main = r#"<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"><w:body><w:p><w:r><w:t>See below.</w:t></w:r></w:p><w:p><w:r><w:drawing><a:blip r:embed="r1"/></w:drawing></w:r></w:p></w:body></w:document>"#;
    let relation = |kind: &str, target: &str| {
        format!(
            r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/{kind}" Target="{target}"/></Relationships>"#
        )
    };
    let types = r#"<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/></Types>"#;
    let top = relation("officeDocument", "word/document.xml");
    let images = relation("image", "media/image1.png");
    for (name, content) in [
        ("[Content_Types].xml", types.as_bytes()),
        ("_rels/.rels", top.as_bytes()),
        ("word/document.xml", main.as_bytes()),
        ("word/_rels/document.xml.rels", images.as_bytes()),
        ("word/media/image1.png", picture),
    ] {
        let options = zip::write::SimpleFileOptions::default();
        zip.start_file(name, options).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_recognized_in_pictures_of_documents() {
    let scan = Input::from(Bytes::from(sample("ocr/ocr_test.pdf")));
    let (sandbox, claim) = (sandbox(), claim());
    let images = page_images(&sandbox, &claim, &scan, Format::Pdf, &[1]);
    let images = images.await.unwrap();
    let document = illustrated(&pictured("png", &images[0].to_pgm()));
    let ocr = Ocr::open(&sandbox, &["eng"]).await.unwrap();
    let whole = read(Some(&ocr), document.clone(), Format::Docx).await;
    let whole = whole.unwrap();
    let text = whole.document.markdown;
    assert!(text.starts_with("See below."), "{text}");
    assert!(text.contains("Markdown in an easy"), "{text}");
    assert_eq!((whole.missing.len(), whole.missing_pictures), (0, 0));
    // Without anything that recognizes text, that is told.
    let part = read(None, document, Format::Docx).await.unwrap();
    assert_eq!(part.document.markdown, "See below.\n");
    assert_eq!((part.missing.len(), part.missing_pictures), (0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_recognizes_text_is_asked_for_what_it_knows() {
    let missing = Ocr::open(&sandbox(), &["eng", "xyz"]).await.unwrap_err();
    assert!(matches!(missing, NoOcr::Language(language) if language == "xyz"));
}

/// A PDF whose only page has this content, compressed.
fn pdf(content: &[u8]) -> Vec<u8> {
    let mut packed = flate2::write::ZlibEncoder::new(vec![], flate2::Compression::best());
    packed.write_all(content).unwrap();
    let packed = packed.finish().unwrap();
    let mut file = b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog /Pages 2 0 R >>\nendobj\n2 0 obj\n<< /Type /Pages /Count 1 /Kids [3 0 R] >>\nendobj\n3 0 obj\n<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents 4 0 R /Resources << /Font << /F << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>\nendobj\n".to_vec();
    file.extend(
        format!(
            "4 0 obj\n<< /Filter /FlateDecode /Length {} >>\nstream\n",
            packed.len()
        )
        .bytes(),
    );
    file.extend(packed);
    file.extend(b"\nendstream\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n");
    file
}

/// Complaint: memory on large PDFs. What a child cannot do within its limits, it does not do at all, and says so.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_takes_too_much_costs_a_child_and_no_more() {
    // A stream that unpacks to 2 GB.
    let long = pdf(&b"BT (a) Tj ET ".repeat(40_000_000));
    assert!(long.len() < 4_000_000, "{}", long.len());
    // Arrays in arrays, which are seen only when they are unpacked.
    let deep = pdf(&b"[".repeat(20_000_000));
    for (what, file) in [("long", long), ("deep", deep)] {
        let outcome = read(None, file, Format::Pdf).await;
        let is_told = matches!(
            &outcome,
            Err(DigitizeError::Limit(Limit::Memory | Limit::Time)
                | DigitizeError::Crashed(_)
                | DigitizeError::Document(_))
        );
        assert!(
            is_told,
            "{what}: {:?}",
            outcome.map(|read| read.document.markdown.len())
        );
        assert!(!outcome.unwrap_err().may_pass());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_of_100_megabytes_are_read_or_refused_with_the_reason() {
    const LENGTH: usize = 100 * 1024 * 1024;
    let line =
        b"Words that go on, and on, one line after another, as in a log that nobody reads.\n";
    let text: Vec<u8> = line.iter().copied().cycle().take(LENGTH).collect();
    let too_long = read(None, text.clone(), Format::Text).await;
    let bound = |outcome: &Result<Digitized, DigitizeError>| match outcome {
        Err(DigitizeError::Document(ExtractError::TooLarge { bound, .. })) => Some(*bound),
        _ => None,
    };
    assert_eq!(bound(&too_long), Some(Bound::MarkdownBytes), "{too_long:?}");
    let half = text[..LENGTH / 2].to_vec();
    let read_half = read(None, half, Format::Text).await.unwrap();
    assert!(read_half.document.markdown.len() > LENGTH / 2 - 100);
    let csv = b"1,2,3,4,5,6,7,8\n".repeat(LENGTH / 16);
    let cells = read(None, csv, Format::Csv).await;
    assert_eq!(bound(&cells), Some(Bound::Cells));
    let html = b"<p>Words <b>that</b> go on.</p>\n".repeat(LENGTH / 32);
    let page = read(None, html, Format::Html).await;
    assert!(
        bound(&page).is_some() || matches!(page, Err(DigitizeError::Limit(_))),
        "{:?}",
        page.map(|read| read.document.markdown.len())
    );
    let mut garbage = b"%PDF-1.7\n".to_vec();
    garbage.resize(LENGTH, b'7');
    let damaged = read(None, garbage, Format::Pdf).await;
    assert!(
        matches!(damaged, Err(DigitizeError::Document(_))),
        "{damaged:?}"
    );
}

/// As many cells as there may be, in a file of a few hundred kilobytes: its memory does not depend on its size.
#[tokio::test(flavor = "multi_thread")]
async fn the_largest_sheet_is_read_within_its_limits() {
    let cells = "<c><v>1</v></c>".repeat(100);
    let rows = format!("<row>{cells}</row>").repeat(4_900);
    let space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    let relations = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";
    let related = |kind: &str, target: &str| {
        format!(
            r#"<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r" Type="{relations}/{kind}" Target="{target}"/></Relationships>"#
        )
    };
    let mut container = zip::ZipWriter::new(std::io::Cursor::new(vec![]));
    for (name, content) in [
        ("[Content_Types].xml", "<Types/>".to_owned()),
        ("_rels/.rels", related("officeDocument", "xl/workbook.xml")),
        (
            "xl/_rels/workbook.xml.rels",
            related("worksheet", "worksheets/sheet1.xml"),
        ),
        (
            "xl/workbook.xml",
            format!(
                r#"<workbook xmlns="{space}" xmlns:r="{relations}"><sheets><sheet name="S" sheetId="1" r:id="r"/></sheets></workbook>"#
            ),
        ),
        (
            "xl/worksheets/sheet1.xml",
            format!(r#"<worksheet xmlns="{space}"><sheetData>{rows}</sheetData></worksheet>"#),
        ),
    ] {
        let options = zip::write::SimpleFileOptions::default();
        container.start_file(name, options).unwrap();
        container.write_all(content.as_bytes()).unwrap();
    }
    let file = container.finish().unwrap().into_inner();
    assert!(file.len() < 500_000, "{}", file.len());
    let read = read(None, file, Format::Xlsx).await.unwrap();
    assert_eq!(read.document.markdown.matches("| 1 ").count(), 490_000);
}

/// Runs a program that is not ours.
async fn run(
    program: &str,
    arguments: &[&str],
    limits: Limits,
    input: &[u8],
) -> Result<Vec<u8>, String> {
    let sandbox = sandbox();
    let input = Bytes::copy_from_slice(input);
    let environment = [("GREETING", "hello")];
    let claim = claim();
    let program = Program {
        path: Path::new(program),
        arguments,
        environment: &environment,
        port: None,
    };
    let ran = sandbox.run_program(&claim, program, limits, input);
    ran.await.map_err(|error| match error {
        SandboxError::Limit(limit) => format!("{limit:?}"),
        SandboxError::Crashed(why) => why,
        other => other.to_string(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_have_the_limits_of_children() {
    use std::time::Duration;

    const PLENTY: Limits = Limits {
        memory_bytes: 1024 * 1024 * 1024,
        cpu_seconds: 20,
        time: Duration::from_secs(120),
        output_bytes: 1_000_000,
    };
    let long = vec![b'x'; 900_000];
    assert_eq!(run("/bin/cat", &[], PLENTY, &long).await.unwrap(), long);
    let shell =
        async |script: &str, limits: Limits| run("/bin/sh", &["-c", script], limits, &long).await;
    assert_eq!(
        shell("echo $GREETING $HOME", PLENTY).await.unwrap(),
        b"hello\n"
    );
    let files = shell("ulimit -n; ulimit -f; ulimit -c", PLENTY)
        .await
        .unwrap();
    assert_eq!(String::from_utf8(files).unwrap(), "64\n0\n0\n");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    let write = shell(&format!("echo 1 > {}", file.display()), PLENTY).await;
    assert!(write.is_err() && !file.exists());
    // It starts nothing else, and reads nothing of others.
    assert!(shell("/bin/true; echo started", PLENTY).await.is_err());
    fs::write(&file, "secret").unwrap();
    let read = shell(&format!("read -r line < {}", file.display()), PLENTY).await;
    assert!(read.is_err(), "{read:?}");
    assert!(shell("exit 3", PLENTY).await.unwrap_err().contains('3'));
    let short = Limits {
        output_bytes: 10,
        ..PLENTY
    };
    assert_eq!(
        run("/bin/cat", &[], short, &long).await,
        Err("Output".to_owned())
    );
    let quick = Limits {
        time: Duration::from_secs(1),
        ..PLENTY
    };
    assert_eq!(
        run("/bin/sleep", &["30"], quick, b"").await,
        Err("Time".to_owned())
    );
    let idle = Limits {
        cpu_seconds: 1,
        ..PLENTY
    };
    assert_eq!(
        shell("while :; do :; done", idle).await,
        Err("Time".to_owned())
    );
    let missing = run("/no/such/program", &[], PLENTY, b"").await;
    assert!(missing.is_err(), "{missing:?}");
}
