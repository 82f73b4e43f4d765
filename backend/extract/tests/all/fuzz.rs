//! Documents that are changed at random: each has a text or an error, and no reader hangs or brings its process down.

use std::{fs, path::Path};

use colloquy_extract::{Bounds, Format, Options, extract, page_images};
use colloquy_fuzz::fuzz;

use super::made;

/// Bounds that keep each try short.
fn options() -> Options {
    let mut options = Options::default();
    options.bounds.unpacked_bytes = 4 * 1024 * 1024;
    options.bounds.elements = 50_000;
    options.bounds.cells = 20_000;
    options.bounds.markdown_bytes = 1024 * 1024;
    options.bounds.pixels = 4_000_000;
    options
}

/// What a document came to, in few words.
fn outcome(bytes: &[u8], format: Format, options: &Options) -> String {
    match extract(bytes, format, options) {
        Ok(document) => {
            for unread in &document.unread {
                assert!(
                    unread.begin <= unread.end
                        && document.markdown.get(unread.begin..unread.end).is_some()
                );
            }
            assert!(document.markdown.len() <= options.bounds.markdown_bytes);
            let marks = ["# ", "| ", "- ", "1. ", "```", "**", "](", "> "];
            let used = marks
                .iter()
                .filter(|mark| document.markdown.contains(*mark));
            let length = document.markdown.len() / 100;
            let unread = document.unread.len();
            let used = used.collect::<Vec<_>>();
            format!("{length} {used:?} {unread} {}", document.title.is_some())
        }
        Err(error) => error.to_string().chars().take(40).collect(),
    }
}

/// Changes what is inside of a container, which stays one.
fn fuzz_inside(seeds: &[&str], format: Format, make: impl Fn(&str) -> Vec<u8>) {
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect();
    let options = options();
    fuzz(&seeds, |inside| {
        outcome(&make(&String::from_utf8_lossy(inside)), format, &options)
    });
}

/// Changes a few bytes of a document that is larger than what is changed as a whole: four bytes tell where and to what.
fn fuzz_patched(name: &str, format: Format) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/documents");
    let document = fs::read(folder.join(name)).unwrap();
    let options = options();
    let seeds = vec![vec![], vec![0; 4], (0..64).collect()];
    fuzz(&seeds, |patches| {
        let mut changed = document.clone();
        for patch in patches.as_chunks::<4>().0 {
            let [a, b, c, value] = *patch;
            let place = u32::from_be_bytes([0, a, b, c]) as usize * 7 % changed.len();
            changed[place] = value;
        }
        if patches.len() % 4 == 3 {
            changed.truncate(changed.len() * patches.len() % 97 / 97 + 100);
        }
        outcome(&changed, format, &options)
    });
}

#[test]
fn word_documents() {
    let body = "<w:p><w:pPr><w:pStyle w:val=\"Heading1\"/><w:numPr><w:ilvl w:val=\"0\"/><w:numId w:val=\"1\"/></w:numPr></w:pPr><w:r><w:rPr><w:b/></w:rPr><w:t>text</w:t><w:br/></w:r><w:hyperlink r:id=\"r1\"><w:r><w:t>a</w:t></w:r></w:hyperlink></w:p>";
    let table = "<w:tbl><w:tr><w:tc><w:tcPr><w:gridSpan w:val=\"2\"/><w:vMerge/></w:tcPr><w:p><w:r><w:t>cell</w:t></w:r></w:p></w:tc></w:tr></w:tbl>";
    let formula = "<w:p><m:oMath><m:f><m:num><m:r><m:t>1</m:t></m:r></m:num><m:den/></m:f></m:oMath><w:fldSimple w:instr=\"PAGE\"/></w:p>";
    fuzz_inside(&[body, table, formula], Format::Docx, |body| {
        made::docx(body, &[])
    });
}

#[test]
fn workbooks() {
    let rows = "<row r=\"1\"><c r=\"A1\" t=\"inlineStr\"><is><t>a</t></is></c><c r=\"C1\"><v>1.5</v></c></row><row r=\"9\"><c r=\"XFD9\" t=\"s\"><v>0</v></c></row>";
    let merged = "<row><c><f>A1</f><v>2</v></c></row></sheetData><mergeCells><mergeCell ref=\"A1:B2\"/></mergeCells><sheetData>";
    fuzz_inside(&[rows, merged], Format::Xlsx, made::xlsx);
}

#[test]
fn books_and_pages() {
    let page = "<html lang=en><title>T</title><h1>A</h1><p>b <b>c</b><ul><li>d<ol><li>e</ol></ul><table><tr><td colspan=2>f<td>g</table><pre><code class=language-x>h</code></pre><a href=/i>j</a><img alt=k src=l>";
    let entities =
        "<?xml version='1.0'?><!DOCTYPE a [<!ENTITY b 'c'>]><p>&b;&amp;&#x41;<![CDATA[d]]></p>";
    fuzz_inside(&[page, entities], Format::Epub, |chapter| {
        made::epub(chapter, &[])
    });
    fuzz_inside(&[page, entities], Format::Html, |page| {
        page.as_bytes().to_vec()
    });
    let article = Options {
        article_of: Some("https://example.com/a/".to_owned()),
        ..options()
    };
    let long = format!(
        "{page}<article>{}</article>",
        "<p>Words that go on, and on, as in an article.</p>".repeat(20)
    );
    fuzz(&[page.as_bytes().to_vec(), long.into_bytes()], |page| {
        outcome(page, Format::Html, &article)
    });
}

#[test]
fn characters() {
    let seeds: [&[u8]; 6] = [
        b"a,b\n\"c\",d\n",
        b"a;b\r\n1;2",
        b"---\ntitle: a\n---\n# b\n```\nc\n```\n",
        b"\xFF\xFEa\0b\0",
        b"caf\xE9 \xA4",
        b"{\"a\":[1]}",
    ];
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.to_vec()).collect();
    let options = options();
    for format in [Format::Csv, Format::Markdown, Format::Text, Format::Json] {
        fuzz(&seeds, |bytes| outcome(bytes, format, &options));
    }
}

#[test]
fn pdf() {
    let simple = made::pages(&[made::lines(&["A line (of) text", "and another"])]);
    let table = made::pages(&[
        made::stream(
            "",
            b"0 0 m 100 0 l S 10 10 50 50 re f BT /F 9 Tf 1 0 0 1 20 20 Tm [(a) -300 (b)] TJ ET",
        ),
        made::scan(),
    ]);
    let options = options();
    fuzz(&[simple, table], |bytes| {
        outcome(bytes, Format::Pdf, &options)
    });
    fuzz_patched("pdf/table_mislabeled_as_picture.pdf", Format::Pdf);
    fuzz_patched("pdf/2305.03393v1-pg9.pdf", Format::Pdf);
}

#[test]
fn documents_of_office_97() {
    fuzz_patched("doc/greek_heading_styles.doc", Format::Doc);
    fuzz_patched("ppt/legacy_sample.ppt", Format::Ppt);
    fuzz_patched("xls/legacy_sample.xls", Format::Xls);
}

#[test]
fn images_of_pages() {
    let content = made::stream("", b"q 1 0 0 1 5 5 cm 0 0 m 100 50 l 30 9 8 7 6 5 c h f /I Do Q BT /F 40 Tf 20 20 Td (abc) Tj ET");
    let seed = made::pages(&[content]);
    let small = String::from_utf8_lossy(&seed).replace("595 842", "100 100");
    // Its streams hold no bytes that are no characters but those of the picture, which is painted all the same.
    fuzz(&[small.into_bytes()], |bytes| {
        let mut size = 0;
        let given = page_images(bytes, Format::Pdf, &[1], &Bounds::default(), |image| {
            assert_eq!(
                image.gray.len(),
                image.width as usize * image.height as usize
            );
            size = image.width / 64;
        });
        format!(
            "{size} {:?}",
            given.map_err(|error| error.to_string().chars().take(30).collect::<String>())
        )
    });
}
