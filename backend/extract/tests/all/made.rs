//! Documents that tests make, so that none that does harm has to be kept.

use std::io::{Cursor, Write as _};

use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

/// A ZIP container with these files, compressed.
pub(crate) fn container(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(vec![]));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Deflated);
    for (name, content) in files {
        zip.start_file(*name, options).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

const TYPES: &str = r#"<?xml version="1.0"?><Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/><Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>"#;
const WORD: &str = r#"xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main""#;
const RELATIONS: &str = "http://schemas.openxmlformats.org/officeDocument/2006/relationships";

pub(crate) fn relations(list: &str) -> String {
    format!(
        r#"<?xml version="1.0"?><Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">{list}</Relationships>"#
    )
}

pub(crate) fn relation(id: &str, kind: &str, target: &str) -> String {
    format!(r#"<Relationship Id="{id}" Type="{RELATIONS}/{kind}" Target="{target}"/>"#)
}

/// A Word document with this in its body, and more files.
pub(crate) fn docx(body: &str, more: &[(&str, &[u8])]) -> Vec<u8> {
    docx_of(
        &format!(r#"<?xml version="1.0"?><w:document {WORD}><w:body>{body}</w:body></w:document>"#),
        more,
    )
}

/// A Word document whose main part is this.
pub(crate) fn docx_of(document: &str, more: &[(&str, &[u8])]) -> Vec<u8> {
    let relations = relations(&relation("r1", "officeDocument", "word/document.xml"));
    let mut files: Vec<(&str, &[u8])> = vec![
        ("[Content_Types].xml", TYPES.as_bytes()),
        ("_rels/.rels", relations.as_bytes()),
        ("word/document.xml", document.as_bytes()),
    ];
    files.extend(more);
    container(&files)
}

/// A paragraph of a Word document.
pub(crate) fn paragraph(text: &str) -> String {
    format!("<w:p><w:r><w:t>{text}</w:t></w:r></w:p>")
}

/// A workbook with one sheet, whose rows are these.
pub(crate) fn xlsx(rows: &str) -> Vec<u8> {
    let space = r#"xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main""#;
    let workbook = format!(
        r#"<workbook {space} xmlns:r="{RELATIONS}"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>"#
    );
    let sheet = format!("<worksheet {space}><sheetData>{rows}</sheetData></worksheet>");
    xlsx_of(&workbook, &sheet, &[])
}

/// A workbook whose main part and whose sheet are these, and more files.
pub(crate) fn xlsx_of(workbook: &str, sheet: &str, more: &[(&str, &[u8])]) -> Vec<u8> {
    xlsx_related(workbook, "", sheet, more)
}

/// A workbook whose main part has more relationships.
pub(crate) fn xlsx_related(
    workbook: &str,
    related: &str,
    sheet: &str,
    more: &[(&str, &[u8])],
) -> Vec<u8> {
    let top = relations(&relation("r1", "officeDocument", "xl/workbook.xml"));
    let book = relation("r1", "worksheet", "worksheets/sheet1.xml") + related;
    let book = relations(&book);
    let mut files: Vec<(&str, &[u8])> = vec![
        ("[Content_Types].xml", TYPES.as_bytes()),
        ("_rels/.rels", top.as_bytes()),
        ("xl/workbook.xml", workbook.as_bytes()),
        ("xl/_rels/workbook.xml.rels", book.as_bytes()),
        ("xl/worksheets/sheet1.xml", sheet.as_bytes()),
    ];
    files.extend(more);
    container(&files)
}

/// A presentation of slides with these shapes, the numbers of which count from 1, with these relationships each, and more files.
pub(crate) fn pptx(slides: &[(&str, &str)], more: &[(&str, &[u8])]) -> Vec<u8> {
    let top = relations(&relation("r1", "officeDocument", "ppt/presentation.xml"));
    let mut files: Vec<(String, Vec<u8>)> = vec![
        ("[Content_Types].xml".to_owned(), TYPES.into()),
        ("_rels/.rels".to_owned(), top.into()),
    ];
    let (mut list, mut named) = (String::new(), String::new());
    for (index, (shapes, related)) in slides.iter().enumerate() {
        let number = index + 1;
        list.push_str(&format!(r#"<p:sldId id="{number}" r:id="r{number}"/>"#));
        let target = format!("slides/slide{number}.xml");
        named.push_str(&relation(&format!("r{number}"), "slide", &target));
        files.push((
            format!("ppt/slides/slide{number}.xml"),
            slide("sld", shapes).into(),
        ));
        files.push((
            format!("ppt/slides/_rels/slide{number}.xml.rels"),
            relations(related).into(),
        ));
    }
    let presentation = format!(
        r#"<p:presentation xmlns:p="{SLIDES}" xmlns:r="{RELATIONS}"><p:sldIdLst>{list}</p:sldIdLst></p:presentation>"#
    );
    files.push(("ppt/presentation.xml".to_owned(), presentation.into()));
    files.push((
        "ppt/_rels/presentation.xml.rels".to_owned(),
        relations(&named).into(),
    ));
    let mut all: Vec<(&str, &[u8])> = files
        .iter()
        .map(|(name, content)| (name.as_str(), content.as_slice()))
        .collect();
    all.extend(more);
    container(&all)
}

const SLIDES: &str = "http://schemas.openxmlformats.org/presentationml/2006/main";

/// A slide, a layout, a master, or notes, as its root is called.
pub(crate) fn slide(root: &str, shapes: &str) -> String {
    format!(
        r#"<p:{root} xmlns:p="{SLIDES}" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="{RELATIONS}"><p:cSld><p:spTree>{shapes}</p:spTree></p:cSld></p:{root}>"#
    )
}

/// A placeholder, and the paragraphs in it.
pub(crate) fn placeholder(kind: &str, paragraphs: &[&str]) -> String {
    let paragraphs: String = paragraphs
        .iter()
        .map(|text| format!("<a:p><a:r><a:t>{text}</a:t></a:r></a:p>"))
        .collect();
    format!(
        r#"<p:sp><p:nvSpPr><p:cNvPr id="2" name="n"/><p:cNvSpPr/><p:nvPr><p:ph type="{kind}"/></p:nvPr></p:nvSpPr><p:spPr/><p:txBody><a:bodyPr/><a:lstStyle/>{paragraphs}<a:p><a:endParaRPr/></a:p></p:txBody></p:sp>"#
    )
}

/// A book with one chapter, and more files.
pub(crate) fn epub(chapter: &str, more: &[(&str, &[u8])]) -> Vec<u8> {
    let mut files: Vec<(&str, &[u8])> = vec![("OEBPS/a.xhtml", chapter.as_bytes())];
    files.extend(more);
    epub_of(&["a"], &files)
}

/// A book with these chapters in its spine, and these files.
pub(crate) fn epub_of(chapters: &[&str], more: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut manifest, mut spine) = (String::new(), String::new());
    for id in chapters {
        manifest.push_str(&format!(
            r#"<item id="{id}" href="{id}.xhtml" media-type="application/xhtml+xml"/>"#
        ));
        spine.push_str(&format!(r#"<itemref idref="{id}"/>"#));
    }
    let described = format!(
        r#"<package xmlns="http://www.idpf.org/2007/opf" xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>The Title</dc:title><dc:creator>Ann Author</dc:creator><dc:language>fr</dc:language></metadata><manifest>{manifest}</manifest><spine>{spine}</spine></package>"#
    );
    let mut files: Vec<(&str, &[u8])> = vec![
        ("META-INF/container.xml", br#"<container><rootfiles><rootfile full-path="OEBPS/content.opf"/></rootfiles></container>"#),
        ("OEBPS/content.opf", described.as_bytes()),
    ];
    files.extend(more);
    container(&files)
}

/// A PDF of these objects, the first of which is its catalog; the numbers of others count from 1.
pub(crate) fn pdf(objects: &[Vec<u8>], more_of_trailer: &str) -> Vec<u8> {
    let mut file = b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n".to_vec();
    let mut places = vec![];
    for (index, object) in objects.iter().enumerate() {
        places.push(file.len());
        file.extend(format!("{} 0 obj\n", index + 1).bytes());
        file.extend(object);
        file.extend(b"\nendobj\n");
    }
    let table = file.len();
    file.extend(format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).bytes());
    for place in places {
        file.extend(format!("{place:010} 00000 n \n").bytes());
    }
    let count = objects.len() + 1;
    file.extend(format!("trailer\n<< /Size {count} /Root 1 0 R {more_of_trailer} >>\nstartxref\n{table}\n%%EOF\n").bytes());
    file
}

/// A stream object.
pub(crate) fn stream(dictionary: &str, bytes: &[u8]) -> Vec<u8> {
    let head = format!("<< {dictionary} /Length {} >>\nstream\n", bytes.len());
    [head.as_bytes(), bytes, b"\nendstream"].concat()
}

/// A PDF of pages, each of which has this content and the font and the picture that it may use.
pub(crate) fn pages(contents: &[Vec<u8>]) -> Vec<u8> {
    pages_with(contents, "")
}

/// The same, with more in its trailer.
pub(crate) fn pages_with(contents: &[Vec<u8>], more_of_trailer: &str) -> Vec<u8> {
    let kids: Vec<String> = (0..contents.len())
        .map(|page| format!("{} 0 R", 5 + 2 * page))
        .collect();
    let gray: Vec<u8> = (0..64 * 64).map(|pixel: u32| (pixel % 251) as u8).collect();
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R /Lang (de-DE) >>".to_vec(),
        format!(
            "<< /Type /Pages /Count {} /Kids [{}] >>",
            contents.len(),
            kids.join(" ")
        )
        .into_bytes(),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_vec(),
        stream(
            "/Type /XObject /Subtype /Image /Width 64 /Height 64 /ColorSpace /DeviceGray /BitsPerComponent 8",
            &gray,
        ),
    ];
    for (page, content) in contents.iter().enumerate() {
        let stream_number = 6 + 2 * page;
        objects.push(format!("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Contents {stream_number} 0 R /Resources << /Font << /F 3 0 R >> /XObject << /I 4 0 R >> >> >>").into_bytes());
        objects.push(content.clone());
    }
    pdf(&objects, more_of_trailer)
}

/// The content of a page with lines of text.
pub(crate) fn lines(lines: &[&str]) -> Vec<u8> {
    let shown: Vec<String> = lines.iter().map(|line| format!("({line}) Tj T*")).collect();
    stream(
        "",
        format!("BT /F 12 Tf 14 TL 72 770 Td {} ET", shown.join(" ")).as_bytes(),
    )
}

/// The content of a page that is a picture.
pub(crate) fn scan() -> Vec<u8> {
    stream("", b"q 595 0 0 842 0 0 cm /I Do Q")
}
