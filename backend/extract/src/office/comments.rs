//! Comments of reviewers: those of a Word document stand behind the paragraph that they are about, those of a slide behind its text, as
//! quotes that say whose they are. `undoc` writes comments into the cells of a sheet, but without their authors, and a thread with what
//! Excel says of it to other programs.
//! Sources: ECMA-376 part 1, sections 17.13.4 (Word), 18.7 (sheets) and 19.4 (slides); [MS-XLSX] (threaded comments); [MS-PPTX] (modern
//! comments).

use std::collections::{BTreeMap, HashMap, HashSet};

use quick_xml::events::{BytesStart, Event};

use super::{
    drawings::sheets,
    events,
    inserts::Inserts,
    push_reference,
    relations::{self, Relation, value},
};
use crate::{
    error::{Bound, ExtractError},
    limits::Bounds,
    markdown::escaped,
    package::Package,
};

/// The name that marks have for the comments of a slide. No relation has it, as it has blanks.
pub(super) const OF_SLIDE: &str = "comments of the slide";
/// Whose comment stands for a thread of comments in programs that know none.
const THREAD: &str = "tc=";

/// A comment.
#[derive(Debug, Default, PartialEq, Eq)]
struct Comment {
    /// The cell that it is about; in a Word document, its identifier.
    place: String,
    /// Its author, or the identifier of its author.
    author: String,
    text: String,
}

/// What the comments of a document may still say, in bytes. Each counts with its place and its author, which many comments may name and
/// each gets.
#[derive(Debug)]
pub(super) struct Room {
    left: usize,
    most: usize,
}

impl Room {
    pub(super) fn new(bounds: &Bounds) -> Self {
        let most = bounds.markdown_bytes;
        Self { left: most, most }
    }

    fn take(&mut self, parts: &[&str]) -> Result<(), ExtractError> {
        let left = parts
            .iter()
            .try_fold(self.left, |left, part| left.checked_sub(part.len()));
        let too_large = || ExtractError::too_large(Bound::MarkdownBytes, self.most);
        self.left = left.ok_or_else(too_large)?;
        Ok(())
    }
}

/// The name that marks have for a comment of a Word document.
pub(super) fn name(id: &str) -> String {
    format!("comment {id}")
}

/// The comments of a Word document by their identifiers, in Markdown.
pub(super) fn of_word(
    package: &mut Package<'_>,
    body: &[Relation],
    bounds: &Bounds,
) -> Result<Vec<(String, String)>, ExtractError> {
    let Some(part) = body.iter().find(|one| one.kind == "comments") else {
        return Ok(vec![]);
    };
    let xml = package.read_xml(&part.target)?.unwrap_or_default();
    let mut room = Room::new(bounds);
    let all = read(&xml).0.into_iter();
    let quoted = all.map(|it| {
        room.take(&[&it.text, &it.author])?;
        let text = quoted(&it.text, "", &it.author);
        Ok((it.place, text))
    });
    quoted.collect()
}

/// The comments of a document of Word 97 to 2003 in Markdown, each with its author before it.
pub(super) fn of_binary<'a>(
    comments: impl Iterator<Item = (&'a str, String)>,
    bounds: &Bounds,
) -> Result<String, ExtractError> {
    let mut room = Room::new(bounds);
    let mut markdown = String::new();
    for (author, text) in comments {
        room.take(&[&text, author])?;
        markdown.push_str(&quoted(&text, "", author));
    }
    Ok(markdown)
}

/// The comments of a slide in Markdown, by its relations and the names of all authors.
pub(super) fn of_slide(
    package: &mut Package<'_>,
    slide: &[Relation],
    authors: &HashMap<String, String>,
    room: &mut Room,
) -> Result<String, ExtractError> {
    let mut markdown = String::new();
    for comment in of_kind(package, slide, "comments")?.0 {
        let author = authors.get(&comment.author).map_or("", String::as_str);
        room.take(&[&comment.text, author])?;
        markdown.push_str(&quoted(&comment.text, "", author));
    }
    Ok(markdown)
}

/// The names of all who comment on slides.
pub(super) fn authors_of_slides(
    package: &mut Package<'_>,
) -> Result<HashMap<String, String>, ExtractError> {
    let mut authors = HashMap::new();
    for part in ["ppt/commentAuthors.xml", "ppt/authors.xml"] {
        let xml = package.read_xml(part)?.unwrap_or_default();
        authors.extend(names(&xml));
    }
    Ok(authors)
}

/// Takes the comments on cells of a workbook, and gives the parts that stand for those that hold them: `undoc` writes their marks into the
/// cells. Comments on cells that the text does not show are written at the end.
pub(super) fn of_workbook(
    package: &mut Package<'_>,
    workbook: &str,
    inserts: &mut Inserts,
    bounds: &Bounds,
) -> Result<HashMap<String, String>, ExtractError> {
    let named = relations::of(package, "xl/workbook.xml")?;
    let people = named.iter().find(|one| one.kind == "person");
    let people = match people {
        Some(people) => package.read_xml(&people.target)?.unwrap_or_default(),
        None => String::new(),
    };
    let people = names(&people);
    let named = relations::by_id(named);
    let mut room = Room::new(bounds);
    let mut parts = HashMap::new();
    for (sheet, id) in sheets(workbook) {
        let Some(part) = named.get(&id) else {
            continue;
        };
        let related = relations::of(package, &part.target)?;
        let comments = of_sheet(package, &related, &people, &mut room)?;
        let mut cells: BTreeMap<&str, Vec<&Comment>> = BTreeMap::new();
        for comment in &comments {
            room.take(&[&sheet, &comment.place])?;
            cells.entry(&comment.place).or_default().push(comment);
        }
        let mut marked = "<comments><commentList>".to_owned();
        for (cell, comments) in cells {
            let all = comments.iter().map(|it| said(&it.text, &it.author));
            let all: Vec<String> = all.filter(|said| !said.is_empty()).collect();
            let place = format!("{sheet}!{cell}");
            let at_end = comments.iter();
            let at_end = at_end.map(|it| quoted(&it.text, &place, &it.author));
            if let Some(mark) = inserts.add_certain(all.join(" "), Some(at_end.collect())) {
                let cell = quick_xml::escape::escape(cell);
                marked.push_str(&format!(
                    r#"<comment ref="{cell}"><text><t>{mark}</t></text></comment>"#
                ));
            }
        }
        marked.push_str("</commentList></comments>");
        // A sheet has one such part.
        for part in related.into_iter().filter(|one| one.kind == "comments") {
            parts.insert(part.target, std::mem::take(&mut marked));
        }
    }
    Ok(parts)
}

/// The comments on the cells of a sheet, with the names of their authors.
fn of_sheet(
    package: &mut Package<'_>,
    sheet: &[Relation],
    people: &HashMap<String, String>,
    room: &mut Room,
) -> Result<Vec<Comment>, ExtractError> {
    let (mut threads, _) = of_kind(package, sheet, "threadedComment")?;
    for comment in &mut threads {
        let author = people.get(&comment.author).map_or("", String::as_str);
        room.take(&[&comment.text, author])?;
        comment.author = author.to_owned();
    }
    let (notes, authors) = of_kind(package, sheet, "comments")?;
    let mut comments = of_notes(notes, &authors, &threads, room)?;
    comments.append(&mut threads);
    Ok(comments)
}

/// Comments that are in no thread, with the names of their authors.
fn of_notes(
    notes: Vec<Comment>,
    authors: &[String],
    threads: &[Comment],
    room: &mut Room,
) -> Result<Vec<Comment>, ExtractError> {
    let in_threads: HashSet<&str> = threads.iter().map(|one| one.place.as_str()).collect();
    let mut named = vec![];
    for note in notes {
        let author = note.author.parse().ok();
        let author = author.and_then(|at: usize| authors.get(at));
        let author = author.map_or("", |author| author.trim());
        if author.starts_with(THREAD) && in_threads.contains(note.place.as_str()) {
            continue;
        }
        room.take(&[&note.text, author])?;
        // Excel writes the author above the text.
        let text = note.text.trim_start().strip_prefix(author);
        let text = text.filter(|_| !author.is_empty());
        let text = text.and_then(|text| text.strip_prefix(':'));
        named.push(Comment {
            text: text.unwrap_or(&note.text).to_owned(),
            author: author.to_owned(),
            place: note.place,
        });
    }
    Ok(named)
}

/// The names of people by their identifiers.
fn names(xml: &str) -> HashMap<String, String> {
    let of = |event| match event {
        Event::Start(start) | Event::Empty(start)
            if matches!(
                start.local_name().as_ref(),
                "cmAuthor" | "author" | "person"
            ) =>
        {
            let name = value(&start, "displayName").or_else(|| value(&start, "name"));
            Some((value(&start, "id")?, name?))
        }
        _ => None,
    };
    events(xml).filter_map(of).collect()
}

/// The comments in all parts of a kind, and the authors that are named there.
fn of_kind(
    package: &mut Package<'_>,
    relations: &[Relation],
    kind: &str,
) -> Result<(Vec<Comment>, Vec<String>), ExtractError> {
    let (mut comments, mut authors) = (vec![], vec![]);
    for relation in relations.iter().filter(|one| one.kind == kind) {
        let xml = package.read_xml(&relation.target)?.unwrap_or_default();
        let (more, named) = read(&xml);
        comments.extend(more);
        authors.extend(named);
    }
    Ok((comments, authors))
}

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The lines of a comment in Markdown.
fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().map(words).filter(|line| !line.is_empty());
    lines.map(|line| escaped(&line)).collect()
}

/// A comment as a quote; nothing where it says nothing.
fn quoted(text: &str, place: &str, author: &str) -> String {
    let lines = lines(text);
    if lines.is_empty() {
        return String::new();
    }
    let (place, author) = (escaped(&words(place)), escaped(&words(author)));
    let mut head = "Comment".to_owned();
    for (word, what) in [("on", place), ("by", author)] {
        if !what.is_empty() {
            head.push_str(&format!(" {word} {what}"));
        }
    }
    format!("> **{head}:** {}\n\n", lines.join("\n> "))
}

/// A comment within a line; nothing where it says nothing.
fn said(text: &str, author: &str) -> String {
    let text = lines(text).join(" ");
    match escaped(&words(author)) {
        author if author.is_empty() || text.is_empty() => text,
        author => format!("{author}: {text}"),
    }
}

/// A part while it is read.
#[derive(Default)]
struct Reader {
    comments: Vec<Comment>,
    authors: Vec<String>,
    /// The comments that are open. A reply is within what it replies to.
    open: Vec<usize>,
    /// How many elements are open whose text is that of a comment, and how many whose text is none.
    texts: usize,
    left_out: usize,
    in_author: bool,
}

/// The comments of a part, each before its replies, and the authors that are named there.
fn read(xml: &str) -> (Vec<Comment>, Vec<String>) {
    let mut reader = Reader::default();
    for event in events(xml) {
        match event {
            Event::Start(start) => reader.start(&start),
            Event::Empty(start) => reader.empty(start.local_name().as_ref()),
            Event::End(end) => reader.end(end.local_name().as_ref()),
            Event::Text(text) => reader.text(&text),
            Event::CData(text) => reader.text(&text),
            Event::GeneralRef(reference) => {
                let mut text = String::new();
                push_reference(&mut text, &reference);
                reader.text(&text);
            }
            _ => {}
        }
    }
    (reader.comments, reader.authors)
}

impl Reader {
    fn start(&mut self, start: &BytesStart<'_>) {
        match start.local_name().as_ref() {
            // How a word is pronounced, and what stands in for something else.
            "rPh" | "Fallback" => self.left_out += 1,
            "comment" | "threadedComment" | "cm" | "reply" => {
                let first = |names: &[&str]| names.iter().find_map(|name| value(start, name));
                self.open.push(self.comments.len());
                self.comments.push(Comment {
                    place: first(&["ref", "id"]).unwrap_or_default(),
                    author: first(&["author", "authorId", "personId"]).unwrap_or_default(),
                    text: String::new(),
                });
            }
            "author" => {
                self.authors.push(String::new());
                self.in_author = true;
            }
            "t" | "text" => self.texts += 1,
            name => self.empty(name),
        }
    }

    fn empty(&mut self, name: &str) {
        match name {
            "br" | "cr" => self.push("\n"),
            "tab" => self.push(" "),
            // Comments name authors by their places, so one without a name has one, too.
            "author" => self.authors.push(String::new()),
            _ => {}
        }
    }

    fn end(&mut self, name: &str) {
        match name {
            "rPh" | "Fallback" => self.left_out = self.left_out.saturating_sub(1),
            "comment" | "threadedComment" | "cm" | "reply" => {
                self.open.pop();
            }
            "author" => self.in_author = false,
            "t" | "text" => self.texts = self.texts.saturating_sub(1),
            "p" => self.push("\n"),
            _ => {}
        }
    }

    fn text(&mut self, text: &str) {
        if self.in_author {
            if let Some(author) = self.authors.last_mut() {
                author.push_str(text);
            }
        } else if self.texts > 0 {
            self.push(text);
        }
    }

    /// Adds to the comment that is open.
    fn push(&mut self, text: &str) {
        let open = self.open.last().filter(|_| self.left_out == 0);
        if let Some(comment) = open.and_then(|at| self.comments.get_mut(*at)) {
            comment.text.push_str(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::Stored;

    #[test]
    fn comments_are_quotes_that_say_whose_they_are() {
        let word = r#"<w:comments><w:comment w:id="3" w:author="Ann *B*"><w:p><w:pPr><w:pStyle w:val="c"/></w:pPr><w:r><w:t>Is 5 &lt; 4?</w:t><w:tab/><w:t>No.</w:t></w:r></w:p><w:p/><w:p><w:r><w:delText>gone</w:delText><w:t>Ask   Bo.</w:t></w:r></w:p></w:comment><w:comment w:id="4"><w:p/></w:comment></w:comments>"#;
        let (all, _) = read(word);
        assert_eq!(all[0].place, "3");
        assert_eq!(
            quoted(&all[0].text, "", &all[0].author),
            "> **Comment by Ann \\*B\\*:** Is 5 \\< 4? No.\n> Ask Bo.\n\n"
        );
        assert_eq!(
            (all.len(), quoted(&all[1].text, "", "")),
            (2, String::new())
        );
    }

    #[test]
    fn replies_stand_behind_what_they_reply_to() {
        let slide = r#"<p188:cmLst><p188:cm id="{1}" authorId="{A}"><p188:replyLst><p188:reply id="{2}" authorId="{B}"><p188:txBody><a:p><a:r><a:t>second</a:t></a:r></a:p></p188:txBody></p188:reply></p188:replyLst><p188:txBody><a:p><a:r><a:t>first</a:t></a:r><a:br/><a:r><a:t>line</a:t></a:r></a:p></p188:txBody></p188:cm></p188:cmLst>"#;
        let all = read(slide).0.into_iter();
        let all: Vec<_> = all.map(|it| (it.author, it.text)).collect();
        let of = |author: &str, text: &str| (author.to_owned(), text.to_owned());
        assert_eq!(all, [of("{A}", "first\nline\n"), of("{B}", "second\n")]);
        let named =
            names(r#"<p188:authorLst><p188:author id="{A}" name="Ann"/><x/></p188:authorLst>"#);
        assert_eq!(named.get("{A}").map(String::as_str), Some("Ann"));
    }

    /// The authors and texts of the notes of a sheet.
    fn notes_of(authors: &str, comments: &[(&str, &str)], threads: &[Comment]) -> Vec<[String; 2]> {
        let comments = (1..).zip(comments).map(|(row, (author, text))| {
            format!(
                r#"<comment ref="A{row}" authorId="{author}"><text><t>{text}</t></text></comment>"#
            )
        });
        let comments: String = comments.collect();
        let (notes, authors) = read(&format!(
            "<comments><authors>{authors}</authors><commentList>{comments}</commentList></comments>"
        ));
        let mut room = Room::new(&Bounds::default());
        let named = of_notes(notes, &authors, threads, &mut room).unwrap();
        let named = named.into_iter();
        named.map(|note| [note.author, note.text]).collect()
    }

    #[test]
    fn an_author_without_a_name_has_a_place() {
        let authors = "<author/><author>Ann</author><author>tc={1}</author>";
        let comments = [("0", "first"), ("1", "Ann:second"), ("2", "third, again")];
        let threads = [Comment {
            place: "A3".to_owned(),
            text: "third".to_owned(),
            ..Comment::default()
        }];
        let named = notes_of(authors, &comments, &threads);
        assert_eq!(named, [["", "first"], ["Ann", "second"]]);
    }

    #[test]
    fn a_text_keeps_its_colon_where_nobody_wrote_it() {
        let authors = "<author> </author><author>Ann</author>";
        let comments = [
            ("0", ":-) ok"),
            ("7", ": so"),
            ("1", "Ann:\n:-("),
            ("1", "Ann"),
        ];
        let named = notes_of(authors, &comments, &[]);
        assert_eq!(
            named,
            [
                ["", ":-) ok"],
                ["", ": so"],
                ["Ann", "\n:-("],
                ["Ann", "Ann"]
            ]
        );
    }

    /// What comments are refused for where they may say ten thousand bytes.
    fn refused<T>(
        parts: &[(&str, &str)],
        read: impl FnOnce(&mut Package<'_>, &Bounds) -> Result<T, ExtractError>,
    ) -> Option<ExtractError> {
        let bounds = Bounds {
            markdown_bytes: 10_000,
            ..Bounds::default()
        };
        let mut stored = Stored::new();
        for (name, xml) in parts {
            stored.add(name, xml).unwrap();
        }
        let bytes = stored.finish().unwrap();
        let mut package = Package::open(&bytes, &bounds).unwrap();
        read(&mut package, &bounds).err()
    }

    #[test]
    fn names_count_for_each_comment_that_has_them() {
        let too_large = || Some(ExtractError::too_large(Bound::MarkdownBytes, 10_000));
        let long = "n".repeat(1_000);
        let relations = |all: &[(&str, &str)]| {
            let all = all.iter().map(|(kind, target)| {
                format!(r#"<Relationship Id="{kind}" Type="x/{kind}" Target="{target}"/>"#)
            });
            format!("<Relationships>{}</Relationships>", all.collect::<String>())
        };
        let of_book = |sheet: &str, author: &str, person: &str, count: usize| {
            let workbook =
                format!(r#"<workbook><sheet name="{sheet}" r:id="worksheet"/></workbook>"#);
            let rows = 1..=count;
            let notes = rows.clone().map(|row| {
                format!(r#"<comment ref="A{row}" authorId="0"><text><t>x</t></text></comment>"#)
            });
            let notes = notes.collect::<String>();
            let notes = format!("<comments><author>{author}</author>{notes}</comments>");
            let threads = rows.map(|row| {
                format!(
                    r#"<threadedComment ref="B{row}" personId="p"><text>x</text></threadedComment>"#
                )
            });
            let threads = threads.collect::<String>();
            let people = format!(r#"<person displayName="{person}" id="p"/>"#);
            let of_workbook_part = [("worksheet", "sheet.xml"), ("person", "people.xml")];
            let of_sheet_part = [
                ("comments", "notes.xml"),
                ("threadedComment", "threads.xml"),
            ];
            let of_workbook_part = relations(&of_workbook_part);
            let of_sheet_part = relations(&of_sheet_part);
            let parts = [
                ("xl/_rels/workbook.xml.rels", of_workbook_part.as_str()),
                ("xl/_rels/sheet.xml.rels", of_sheet_part.as_str()),
                ("xl/notes.xml", notes.as_str()),
                ("xl/threads.xml", threads.as_str()),
                ("xl/people.xml", people.as_str()),
            ];
            refused(&parts, |package, bounds| {
                of_workbook(package, &workbook, &mut Inserts::default(), bounds)
            })
        };
        for (sheet, author, person) in [(&*long, "a", "p"), ("s", &*long, "p"), ("s", "a", &*long)]
        {
            assert_eq!(of_book(sheet, author, person, 4), None);
            assert_eq!(of_book(sheet, author, person, 11), too_large());
        }
        let slide = [Relation {
            id: "c".to_owned(),
            kind: "comments".to_owned(),
            target: "ppt/comments.xml".to_owned(),
        }];
        let authors = HashMap::from([("a".to_owned(), long.clone())]);
        let of_slides = |slides: usize| {
            let comments = r#"<cm authorId="a"><text>x</text></cm>"#.repeat(5);
            refused(
                &[("ppt/comments.xml", comments.as_str())],
                |package, bounds| {
                    let mut room = Room::new(bounds);
                    for _ in 0..slides {
                        of_slide(package, &slide, &authors, &mut room)?;
                    }
                    Ok(())
                },
            )
        };
        assert_eq!((of_slides(1), of_slides(2)), (None, too_large()));
        let of_document = |count: usize| {
            let comment = format!(r#"<comment id="1" author="{long}"><t>x</t></comment>"#);
            let comments = comment.repeat(count);
            refused(
                &[("ppt/comments.xml", comments.as_str())],
                |package, bounds| of_word(package, &slide, bounds),
            )
        };
        assert_eq!((of_document(9), of_document(10)), (None, too_large()));
    }
}
