//! Documents of Office, old and new. `undoc` reads them; what it is given was unpacked, counted, and written as it expects it here
//! first. Old presentations are read here (`ppt.rs`).

mod blips;
mod chart;
mod chunk;
mod clock;
mod code_page;
mod comments;
mod compound;
mod diagram;
mod drawings;
mod equation;
mod form_fields;
mod formulas;
mod inserts;
mod list_styles;
mod metafile;
mod names;
mod notes;
mod number_format;
mod number_layout;
mod numbers;
mod objects;
mod page_numbers;
mod paragraphs;
mod pictures;
mod ppt;
mod related;
mod relations;
mod rewrite;
mod rtf;
mod sheet_margins;
mod showing;
mod stories;
mod strings;
mod symbols;
mod tables;
mod templates;
mod undrawn;
mod xls;

use std::collections::{HashMap, HashSet};

use quick_xml::{
    Reader,
    events::{BytesRef, BytesStart, Event, attributes::Attribute},
};
use undoc::{
    Block, ErrorKind, FormatType, Paragraph, Section,
    render::{RenderOptions, to_markdown},
};

use self::{
    inserts::Inserts, list_styles::ListStyles, numbers::Numbers, related::Related,
    rewrite::Context, sheet_margins::Margins,
};
use crate::{
    document::{Document, UnreadPage, UnreadReason},
    error::{Bound, ExtractError},
    format::Format,
    limits::Bounds,
    markdown,
    package::Package,
    picture::PageImage,
};

/// A chart that shows nothing.
const NO_CHART: &str = "<c:chartSpace/>";

/// A document of Office Open XML.
pub(crate) fn open_xml(
    bytes: &[u8],
    format: Format,
    bounds: &Bounds,
) -> Result<(Document, bool), ExtractError> {
    read_open_xml(bytes, format, bounds, true)
}

/// A document of Office Open XML, in which documents inside of it are read where it is in none itself.
fn read_open_xml(
    bytes: &[u8],
    format: Format,
    bounds: &Bounds,
    is_outermost: bool,
) -> Result<(Document, bool), ExtractError> {
    let mut package = names::open(bytes, format, bounds)?;
    let has_pictures = package.has_pictures();
    let mut language = Language::default();
    let mut slides = 0;
    let mut cells = 0;
    let mut missing_results = 0_u32;
    let mut context = Context::default();
    let (mut notes, mut drawings, mut commented) = (None, vec![], HashMap::new());
    let parts = showing::of(&mut package, format)?;
    let mut related = match format {
        Format::Docx => {
            let part = |name| plain_part(&mut package, name);
            let [styles, numbering] = ["word/styles.xml", "word/numbering.xml"].map(part);
            context.lists = ListStyles::read(&styles?, &numbering?);
            Related::of_word(&mut package, &parts, bounds, &mut cells, is_outermost)?
        }
        Format::Pptx => {
            notes = Some(notes::places(&mut package)?);
            Related::of_slides(&mut package, &parts, bounds, &mut cells)?
        }
        _ => {
            let workbook = plain_part(&mut package, "xl/workbook.xml")?;
            context.numbers = Numbers::read(&workbook, &plain_part(&mut package, "xl/styles.xml")?);
            drawings = drawings::of_sheets(&mut package, &workbook, bounds, &mut cells)?;
            let mut related = Related::default();
            commented =
                comments::of_workbook(&mut package, &workbook, &mut related.inserts, bounds)?;
            related
        }
    };
    let mut pictures = pictures::of(&mut package, &parts, bounds)?;
    if !is_outermost {
        let pictures = std::mem::take(&mut pictures);
        related.count(pictures.iter().filter(|one| !one.is_preview).count());
    }
    related.count_objects(&parts);
    let has_objects = related.unread_count > 0;
    related.count(pictures::count_undrawn(&mut package, &parts, bounds)?);
    related.mark_pictures(&pictures);
    context.marks = std::mem::take(&mut related.marks);
    let mut margins = HashMap::new();
    let counted = package.counted(|name, xml| {
        let mut xml = commented.remove(&name).unwrap_or(xml);
        if chart::is_chart(&xml) {
            // `undoc` does not know what a chart shows of its numbers, and refuses a document in which one of them is an error.
            NO_CHART.clone_into(&mut xml);
        }
        if format == Format::Xlsx && rewrite::is_sheet(&xml) {
            missing_results = missing_results.saturating_add(formulas::without_result(&xml));
        }
        let xml = rewrite::rewritten(&name, xml, &context)?;
        language.look(&name, &xml);
        if name.starts_with("ppt/slides/slide") && name.ends_with(".xml") {
            slides += 1;
        }
        if format == Format::Xlsx && rewrite::is_sheet(&xml) {
            count_cells(&xml, &mut cells, bounds.cells)?;
            margins.insert(name.clone(), Margins::read(&xml));
        }
        let name = match &notes {
            Some(places) => notes::place(name, places),
            None => Some(name),
        };
        Ok(name.map(|name| (name, xml)))
    })?;
    let read = match format {
        Format::Docx => undoc::docx::DocxParser::from_bytes(counted).and_then(|mut p| p.parse()),
        Format::Pptx => undoc::pptx::PptxParser::from_bytes(counted).and_then(|mut p| p.parse()),
        _ => undoc::xlsx::XlsxParser::from_bytes(counted).and_then(|mut p| p.parse()),
    };
    let mut read = read.map_err(|error| refusal(&error))?;
    let mut seen = HashSet::new();
    for (section, (part, drawings)) in read.sections.iter_mut().zip(drawings) {
        if let Some(margins) = margins.remove(&part) {
            margins.add(section, &mut seen);
        }
        if let Some(mark) = related.inserts.add(drawings) {
            section.add_paragraph(Paragraph::with_text(mark));
        }
    }
    let mut document = written(&mut read, related.inserts)?;
    document.language = language.named.or(language.default);
    document.pages = document.pages.or((slides > 0).then_some(slides));
    let end = document.markdown.len();
    pictures::settle(&mut document.unread, &pictures, end);
    let is_empty = !document.markdown.contains(char::is_alphanumeric);
    document.unread_objects = related.unread_count;
    document.missing_results = missing_results;
    let has_something = !is_empty || !document.unread.is_empty();
    match related.unread {
        Some(error) if is_empty => Err(error),
        _ if has_something => Ok((document, has_pictures)),
        _ if missing_results > 0 => Err(ExtractError::failed(
            "its formulas have no stored results: open and save the file in a spreadsheet program",
        )),
        _ if !has_objects => Ok((document, has_pictures)),
        _ => Err(ExtractError::failed(
            "it holds objects of other programs only, which are not read",
        )),
    }
}

/// A part with the prefixes of Office; empty where it is not there.
fn plain_part(package: &mut Package<'_>, name: &str) -> Result<String, ExtractError> {
    let xml = package.read_xml(name)?.unwrap_or_default();
    rewrite::rewritten(name, xml, &Context::default())
}

/// A document of Office 97 to 2003.
pub(crate) fn binary(
    bytes: &[u8],
    format: Format,
    bounds: &Bounds,
) -> Result<(Document, bool), ExtractError> {
    let (mut inserts, mut lost_texts) = (Inserts::default(), 0_u32);
    // `lost` are pages that could not be read, and `unread` counts pictures, charts and other objects.
    let (mut read, lost, unread) = match format {
        Format::Ppt => {
            let ppt::Read {
                document,
                lost,
                unread,
            } = ppt::read(bytes, bounds)?;
            (document, lost, unread)
        }
        Format::Xls => {
            let (document, unread) = xls::read(bytes, bounds)?;
            (document, vec![], unread)
        }
        _ => {
            let mut read = read_word(bytes)?;
            let stories = stories::read(bytes, bounds)?;
            lost_texts += u32::from(stories.has_lost);
            let unread = stories.unread;
            stories.add(&mut read, &mut inserts);
            (read, vec![], unread)
        }
    };
    let has_pictures = unread > 0 || !read.resources.is_empty();
    let mut document = written(&mut read, inserts)?;
    let end = document.markdown.len();
    let lost = lost.into_iter().map(|slide| UnreadPage {
        page: slide,
        begin: end,
        end,
        reason: UnreadReason::Unreadable,
    });
    document.unread = lost
        .chain(pictures::pages_of_binary(&read, bounds, end))
        .collect();
    let metafiles = pictures::metafiles_of_binary(&read, bounds);
    document.unread_objects = unread.saturating_add(metafiles + lost_texts);
    Ok((document, has_pictures))
}

/// A document of Word 97 to 2003.
fn read_word(bytes: &[u8]) -> Result<undoc::Document, ExtractError> {
    let read = undoc::doc::DocParser::from_bytes(bytes.to_vec()).and_then(|mut p| p.parse());
    read.map_err(|error| refusal(&error))
}

/// The images of pictures of a document.
///
/// # Errors
/// When the document cannot be read.
pub(crate) fn images(
    bytes: &[u8],
    format: Format,
    pages: &[u32],
    bounds: &Bounds,
    give: impl FnMut(PageImage),
) -> Result<(), ExtractError> {
    match format {
        Format::Docx | Format::Pptx | Format::Xlsx => {
            pictures::images(bytes, format, pages, bounds, give)
        }
        // Pictures of old presentations and workbooks are counted alone, and unread slides are not in their presentation.
        Format::Ppt | Format::Xls => Ok(()),
        _ => {
            let read = read_word(bytes)?;
            pictures::images_of_binary(&read, pages, bounds, give);
            Ok(())
        }
    }
}

/// A document in Markdown.
fn written(read: &mut undoc::Document, inserts: Inserts) -> Result<Document, ExtractError> {
    for section in &mut read.sections {
        put_margins_in(section);
        // A slide without a name is given its number, which is no heading.
        let is_number = |name: &str| {
            name.strip_prefix("Slide ")
                .is_some_and(|number| number.bytes().all(|b| b.is_ascii_digit()))
        };
        section.name = section.name.take().filter(|name| !is_number(name));
        section.content.iter_mut().for_each(keep_words_apart);
    }
    let options = RenderOptions {
        max_heading_level: 6,
        include_images: false,
        ..RenderOptions::default()
    };
    let text = to_markdown(read, &options).map_err(|error| refusal(&error))?;
    let text = inserts.put(text);
    // The name of a sheet says nothing where the sheet is empty.
    let is_sheets = matches!(read.format, FormatType::Xlsx | FormatType::Xls);
    let is_name = |line: &str| line.is_empty() || line.starts_with("## ");
    let text = if is_sheets && text.lines().all(is_name) {
        String::new()
    } else {
        text
    };
    let metadata = &read.metadata;
    let (text, unread) = pictures::taken_out(&markdown::tidy(&without_breaks(&text)));
    Ok(Document {
        title: metadata.title.clone(),
        author: metadata.author.clone(),
        pages: metadata.page_count.filter(|count| *count > 0),
        unread,
        ..Document::of_markdown(text)
    })
}

/// Cells of one line: what breaks them is a mark of HTML.
fn without_breaks(text: &str) -> String {
    let mut lines = String::with_capacity(text.len());
    for line in text.lines() {
        if line.starts_with('|') {
            lines.push_str(&line.replace("<br>", " "));
        } else {
            lines.push_str(line);
        }
        lines.push('\n');
    }
    lines
}

/// A line that is broken within a heading or a cell is written as one line there, and its words stay two.
fn keep_words_apart(block: &mut Block) {
    let paragraph = |paragraph: &mut Paragraph| {
        for run in &mut paragraph.runs {
            if run.line_break && !run.text.ends_with(char::is_whitespace) {
                run.text.push(' ');
            }
        }
    };
    match block {
        Block::Paragraph(one) => paragraph(one),
        Block::Table(table) => {
            tables::repeat_merged(table);
            table
                .rows
                .iter_mut()
                .flat_map(|row| &mut row.cells)
                .flat_map(|cell| &mut cell.content)
                .for_each(paragraph);
        }
        _ => {}
    }
}

/// Puts what stands above and below all pages before and behind the text, once.
fn put_margins_in(section: &mut Section) {
    let mut seen = HashSet::new();
    let mut told = |paragraphs: Option<Vec<Paragraph>>| {
        let mut paragraphs = paragraphs.unwrap_or_default();
        paragraphs.retain(|one| {
            let text = one.plain_text();
            (inserts::is_marked(&text) || !is_page_number(&text)) && seen.insert(text)
        });
        paragraphs.into_iter().map(Block::Paragraph)
    };
    let above = told(section.header.take());
    let below = told(section.footer.take());
    section.content.splice(..0, above);
    section.content.extend(below);
}

/// True if a line of a margin is empty, a rule, or the number of a page, alone or of how many, which says nothing in the text.
fn is_page_number(text: &str) -> bool {
    const MOST_DIGITS: usize = 3;
    const AROUND: &str = "-–—−_=|·•.~*()[]<>/";
    let bare = |text: &str| {
        let number = text.trim_matches(|c: char| c.is_whitespace() || AROUND.contains(c));
        number.chars().all(char::is_numeric) && number.chars().count() <= MOST_DIGITS
    };
    let (number, of) = text.split_once(['/', '|']).unwrap_or((text, ""));
    bare(text) || bare(number) && bare(of)
}

fn refusal(error: &undoc::Error) -> ExtractError {
    match error.kind() {
        ErrorKind::Encrypted => ExtractError::Encrypted,
        ErrorKind::Render | ErrorKind::Other => ExtractError::failed(error),
        _ => ExtractError::damaged(error),
    }
}

/// The language that a document names: of itself, or of the text that has no other.
#[derive(Default)]
struct Language {
    named: Option<String>,
    default: Option<String>,
}

impl Language {
    fn look(&mut self, name: &str, xml: &str) {
        match name {
            "docProps/core.xml" => self.named = element_text(xml, "language"),
            "word/styles.xml" => self.default = attribute(xml, "lang", "val"),
            _ => {}
        }
    }
}

/// The text of the first element of a name, whatever its prefix.
pub(crate) fn element_text(xml: &str, name: &str) -> Option<String> {
    let mut reader = Reader::from_str(xml);
    let mut inside = false;
    let mut text = String::new();
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) if start.local_name().as_ref() == name => inside = true,
            Event::End(end) if inside && end.local_name().as_ref() == name => break,
            Event::Text(part) if inside => text.push_str(&part),
            Event::GeneralRef(reference) if inside => push_reference(&mut text, &reference),
            Event::Eof => return None,
            _ => {}
        }
    }
    let text = text.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// Adds the character that a reference stands for, where it stands for one.
fn push_reference(text: &mut String, reference: &BytesRef<'_>) {
    let known = reference.resolve_char_ref().ok().flatten();
    let named: &str = reference;
    let named = quick_xml::escape::resolve_predefined_entity(named);
    match (known, named) {
        (Some(character), _) => text.push(character),
        (None, Some(named)) => text.push_str(named),
        (None, None) => {}
    }
}

/// What a part is made of, up to where it is damaged.
fn events(xml: &str) -> impl Iterator<Item = Event<'_>> {
    let mut reader = Reader::from_str(xml);
    let settings = reader.config_mut();
    settings.check_end_names = false;
    settings.allow_unmatched_ends = true;
    std::iter::from_fn(move || match reader.read_event() {
        Ok(Event::Eof) | Err(_) => None,
        Ok(event) => Some(event),
    })
}

/// An attribute of the first element of a name that has it, whatever their prefixes.
pub(crate) fn attribute(xml: &str, element: &str, attribute: &str) -> Option<String> {
    let mut reader = Reader::from_str(xml);
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) | Event::Empty(start) if start.local_name().as_ref() == element => {
                let value = start
                    .attributes()
                    .flatten()
                    .find(|found| found.key.local_name().as_ref() == attribute);
                if let Some(value) = value {
                    return Some(value.value.into_owned());
                }
            }
            Event::Eof => return None,
            _ => {}
        }
    }
}

/// The attributes of an element that can be read. Whether two have one name is not looked for, which would take the square of their
/// number.
fn attributes<'a>(start: &'a BytesStart<'_>) -> impl Iterator<Item = Attribute<'a>> {
    let mut all = start.attributes();
    all.with_checks(false);
    all.flatten()
}

/// Counts the cells that the rows of a sheet take when the gaps between values are filled, as a table has to.
fn count_cells(xml: &str, cells: &mut usize, most: usize) -> Result<(), ExtractError> {
    let mut reader = Reader::from_str(xml);
    let settings = reader.config_mut();
    settings.check_end_names = false;
    settings.allow_unmatched_ends = true;
    let mut width = 0;
    let mut add = |width: &mut usize| {
        *cells = cells.saturating_add(std::mem::take(width));
        if *cells > most {
            return Err(ExtractError::too_large(Bound::Cells, most));
        }
        Ok(())
    };
    loop {
        match reader.read_event() {
            Ok(Event::Start(start) | Event::Empty(start)) => match start.local_name().as_ref() {
                "row" => add(&mut width)?,
                "c" => {
                    let place = start.attributes().flatten().find(|a| a.key.as_ref() == "r");
                    let column = place
                        .map(|place| column(place.value.as_bytes()))
                        .unwrap_or_default();
                    width = column.max(width + 1);
                }
                _ => {}
            },
            Ok(Event::Eof) => return add(&mut width),
            Ok(_) => {}
            Err(error) => return Err(ExtractError::damaged(error)),
        }
    }
}

/// The number of a column from the reference of a cell, such as 28 of `AB7`; 0 where it is none.
fn column(reference: &[u8]) -> usize {
    let letters = reference
        .iter()
        .take_while(|byte| byte.is_ascii_alphabetic())
        .take(4);
    letters.fold(0, |column, letter| {
        column * 26 + usize::from(letter.to_ascii_uppercase() - b'A') + 1
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_between_cells_count() {
        let mut cells = 0;
        let sheet = r#"<x:sheetData><x:row><x:c r="A1"/><x:c r="D1"/></x:row><x:row r="9"><x:c/><x:c/></x:row></x:sheetData>"#;
        count_cells(sheet, &mut cells, 6).unwrap();
        assert_eq!(cells, 6);
        assert!(count_cells(sheet, &mut cells, 11).is_err());
        assert_eq!(column(b"XFD1048576"), 16_384);
        assert_eq!(column(b"7"), 0);
    }

    #[test]
    fn margins_keep_all_but_bare_page_numbers() {
        for number in [
            "", " ", "____", "7", "- 12 -", "(3)", "| 104 |", "٣", "7 / 12", "[2/5]", "3|10",
        ] {
            assert!(is_page_number(number), "{number}");
        }
        for text in [
            "2024-17",
            "2024/17",
            "№ 12",
            "2024",
            "+49 30 1234",
            "12.5",
            "€ 7",
            "iv",
        ] {
            assert!(!is_page_number(text), "{text}");
        }
    }

    #[test]
    fn values_are_found_whatever_their_prefix() {
        let xml = "<cp:core><dc:title>a &amp; b&#33;</dc:title><w:lang w:bidi='ar' w:val='el-GR'/></cp:core>";
        assert_eq!(element_text(xml, "title").as_deref(), Some("a & b!"));
        assert_eq!(attribute(xml, "lang", "val").as_deref(), Some("el-GR"));
        assert_eq!(element_text(xml, "language"), None);
    }
}
