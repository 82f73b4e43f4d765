//! Comments of reviewers on text, cells and slides.

use colloquy_extract::{Format, Options, extract};

use super::made::{docx, paragraph, placeholder, pptx, relation, relations, slide, xlsx_related};

fn text(bytes: &[u8], format: Format) -> String {
    extract(bytes, format, &Options::default())
        .unwrap()
        .markdown
}

#[test]
fn comments_of_word_stand_behind_what_they_are_about() {
    let about = |id: u32, text: &str| {
        format!(
            r#"<w:p><w:commentRangeStart w:id="{id}"/><w:r><w:t>{text}</w:t></w:r><w:commentRangeEnd w:id="{id}"/><w:r><w:commentReference w:id="{id}"/></w:r></w:p>"#
        )
    };
    let comment = |id: u32, author: &str, text: &str| {
        let text = paragraph(text);
        format!(r#"<w:comment w:id="{id}" {author}>{text}</w:comment>"#)
    };
    let comments = [
        comment(0, r#"w:author="Ann""#, "June?"),
        comment(1, r#"w:author="Bo""#, "Check | this"),
        comment(2, "", "Nobody names me"),
    ];
    let space = r#"xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main""#;
    let comments = format!("<w:comments {space}>{}</w:comments>", comments.concat());
    let body = format!(
        "{}{}<w:tbl><w:tr><w:tc>{}</w:tc><w:tc>{}</w:tc></w:tr></w:tbl>{}",
        about(0, "We open in May."),
        paragraph("after"),
        about(1, "5"),
        paragraph("right"),
        paragraph("last"),
    );
    let related = relations(&relation("c", "comments", "comments.xml"));
    let more: [(&str, &[u8]); 2] = [
        ("word/_rels/document.xml.rels", related.as_bytes()),
        ("word/comments.xml", comments.as_bytes()),
    ];
    let read = text(&docx(&body, &more), Format::Docx);
    let begin = "We open in May.\n\n> **Comment by Ann:** June?\n\nafter\n";
    assert!(read.starts_with(begin), "{read}");
    let cell = "**Comment by Bo:** Check \\| this |";
    assert!(
        read.lines()
            .any(|line| line.starts_with("| 5 ") && line.contains(cell)),
        "{read}"
    );
    let end = "last\n\n> **Comment:** Nobody names me\n";
    assert!(read.ends_with(end), "{read}");
    // A document without comments is as it was.
    let plain = docx(&paragraph("after"), &[]);
    assert_eq!(text(&plain, Format::Docx), "after\n");
}

/// A document that LibreOffice wrote.
#[test]
fn margins_and_comments_of_word_97_stand_around_the_text() {
    let read = text(
        include_bytes!("../data/margins_libreoffice.doc"),
        Format::Doc,
    );
    let begin = "Header of the first page\n\nHeader of odd pages\n\nHeader of even pages\n\nWe open in May.\n";
    assert!(read.starts_with(begin), "{read}");
    let end = "Words in a text box\n\nFooter of the first page\n\nFooter of odd pages\n\nFooter of even pages\n\n> **Comment by Ann:** Is it June?\n> Ask Bo.\n\n> **Comment by Bö Çelik:** July, said Ann.\n";
    assert!(read.ends_with(end), "{read}");
}

#[test]
fn comments_of_sheets_stand_in_their_cells() {
    let space = r#"xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main""#;
    let workbook = format!(
        r#"<workbook {space} xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>"#
    );
    let sheet = format!(
        r#"<worksheet {space}><sheetData><row r="1"><c r="A1"><v>1</v></c></row></sheetData></worksheet>"#
    );
    let notes = format!(
        r#"<comments {space}><authors><author>Ann</author><author>tc={{1}}</author></authors><commentList><comment ref="A1" authorId="0"><text><r><rPr><b/></rPr><t>Ann:</t></r><r><t xml:space="preserve">
Net price</t></r></text></comment><comment ref="B2" authorId="1"><text><t>[Threaded comment]</t></text></comment></commentList></comments>"#
    );
    let threads = r#"<ThreadedComments xmlns="http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments"><threadedComment ref="B2" personId="{B}" id="{1}"><text>Is it &lt; 2?</text></threadedComment><threadedComment ref="B2" personId="{A}" id="{2}" parentId="{1}"><text>Yes</text></threadedComment></ThreadedComments>"#;
    let people = r#"<personList xmlns="http://schemas.microsoft.com/office/spreadsheetml/2018/threadedcomments"><person displayName="Ann" id="{A}" userId="a"/><person displayName="Bo" id="{B}" userId="b"/></personList>"#;
    let of_book = relation("p", "person", "persons/person.xml");
    let of_sheet = relation("c", "comments", "../comments1.xml")
        + &relation(
            "t",
            "threadedComment",
            "../threadedComments/threadedComment1.xml",
        );
    let of_sheet = relations(&of_sheet);
    let more: [(&str, &[u8]); 4] = [
        ("xl/worksheets/_rels/sheet1.xml.rels", of_sheet.as_bytes()),
        ("xl/comments1.xml", notes.as_bytes()),
        (
            "xl/threadedComments/threadedComment1.xml",
            threads.as_bytes(),
        ),
        ("xl/persons/person.xml", people.as_bytes()),
    ];
    let file = xlsx_related(&workbook, &of_book, &sheet, &more);
    let read = text(&file, Format::Xlsx);
    let row = read.lines().find(|line| line.starts_with("| 1")).unwrap();
    let row = row.replace('\\', "");
    assert!(row.contains("[Comment: Ann: Net price]"), "{read}");
    // There is no cell B2.
    let end =
        "\n\n> **Comment on S!B2 by Bo:** Is it \\< 2?\n\n> **Comment on S!B2 by Ann:** Yes\n";
    assert!(read.ends_with(end), "{read}");
    assert!(!read.contains("Threaded"), "{read}");
}

#[test]
fn comments_of_slides_stand_behind_them() {
    let slides = "http://schemas.openxmlformats.org/presentationml/2006/main";
    let authors = format!(
        r#"<p:cmAuthorLst xmlns:p="{slides}"><p:cmAuthor id="0" name="Ann" initials="A"/></p:cmAuthorLst>"#
    );
    let old = format!(
        r#"<p:cmLst xmlns:p="{slides}"><p:cm authorId="0" idx="1"><p:pos x="1" y="2"/><p:text>Too long</p:text></p:cm></p:cmLst>"#
    );
    let space = r#"xmlns:m="http://schemas.microsoft.com/office/powerpoint/2018/8/main" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main""#;
    let others = format!(r#"<m:authorLst {space}><m:author id="{{B}}" name="Bo"/></m:authorLst>"#);
    let said = |text: &str| {
        format!("<m:txBody><a:bodyPr/><a:p><a:r><a:t>{text}</a:t></a:r></a:p></m:txBody>")
    };
    let new = format!(
        r#"<m:cmLst {space}><m:cm id="{{1}}" authorId="{{B}}"><m:replyLst><m:reply id="{{2}}" authorId="0">{}</m:reply></m:replyLst>{}</m:cm></m:cmLst>"#,
        said("Me."),
        said("Who?")
    );
    let more: [(&str, &[u8]); 4] = [
        ("ppt/commentAuthors.xml", authors.as_bytes()),
        ("ppt/authors.xml", others.as_bytes()),
        ("ppt/comments/comment1.xml", old.as_bytes()),
        ("ppt/comments/modernComment_1.xml", new.as_bytes()),
    ];
    let (first, second) = (
        placeholder("title", &["Hours"]),
        placeholder("title", &["Staff"]),
    );
    let (of_first, of_second) = (
        relation("c", "comments", "../comments/comment1.xml"),
        relation("c", "comments", "../comments/modernComment_1.xml"),
    );
    let deck = pptx(&[(&first, &of_first), (&second, &of_second)], &more);
    let read = text(&deck, Format::Pptx);
    let begin = "# Hours\n\n> **Comment by Ann:** Too long\n";
    assert!(read.starts_with(begin), "{read}");
    let end = "# Staff\n\n> **Comment by Bo:** Who?\n\n> **Comment by Ann:** Me.\n";
    assert!(read.ends_with(end), "{read}");
}

#[test]
fn a_comment_leaves_the_text_of_a_master_to_empty_slides() {
    let shape =
        "<p:sp><p:txBody><a:p><a:r><a:t>Welcome to Acme</a:t></a:r></a:p></p:txBody></p:sp>";
    let layout = slide("sldLayout", shape);
    let comments = r#"<p:cmLst xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main"><p:cm authorId="0" idx="1"><p:text>Too long</p:text></p:cm></p:cmLst>"#;
    let more: [(&str, &[u8]); 2] = [
        ("ppt/slideLayouts/slideLayout1.xml", layout.as_bytes()),
        ("ppt/comments/comment1.xml", comments.as_bytes()),
    ];
    let related = relation("l", "slideLayout", "../slideLayouts/slideLayout1.xml")
        + &relation("c", "comments", "../comments/comment1.xml");
    let empty = placeholder("title", &[]);
    let deck = pptx(&[(&empty, &related)], &more);
    assert_eq!(
        text(&deck, Format::Pptx),
        "Welcome to Acme\n\n> **Comment:** Too long\n"
    );
    let titled = placeholder("title", &["Hours"]);
    let deck = pptx(&[(&titled, &related)], &more);
    assert_eq!(
        text(&deck, Format::Pptx),
        "# Hours\n\n> **Comment:** Too long\n"
    );
}
