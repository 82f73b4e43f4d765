//! PDF: the text of each page in reading order, and which pages have to be looked at instead. `unpdf` reads the pages, one at a
//! time; what a page's text is worth is judged here.

mod annotations;
mod packed;

use std::{collections::HashMap, ops::ControlFlow};

use unpdf::{
    Block, ErrorKind, ErrorMode, FormField, Page, PageSelection, PageStreamOptions, ParseEvent,
    ParseOptions, PdfParser, RenderOptions, render::BlockRenderer,
};

use crate::{
    cleanup,
    detect::pdf_from_mark,
    document::{Document, UnreadPage, UnreadReason},
    error::{Bound, ExtractError},
    limits::Bounds,
    markdown,
    picture::{self, PageImage},
};

/// A page that a picture covers so far, with so few characters, is a scan with a stamp or a number on it.
const SCAN_COVERAGE: f32 = 0.5;
const SCAN_CHARACTERS: usize = 60;
/// A page that a picture covers all but its margins is a scan as well where all that is painted on it is in those margins but so many
/// characters, or is this short in all: a page that was written has more. What a scan was recognized to say is not painted.
const FULL_COVERAGE: f32 = 0.9;
const STAMP_CHARACTERS: u32 = 200;
/// A page without text that fills so many shapes may have text that was made shapes.
const OUTLINES: u32 = 24;
/// The share of characters that stand for nothing, from which on a text is bad.
const BAD_SHARE: f64 = 0.1;

/// A document.
pub(crate) fn document(bytes: &[u8], bounds: &Bounds) -> Result<Document, ExtractError> {
    let bytes = pdf_from_mark(bytes);
    let parser = open(bytes, bounds)?;
    let typed = annotations::texts(bytes);
    let count = parser.page_count();
    if count > bounds.pages {
        return Err(ExtractError::too_large(Bound::Pages, bounds.pages));
    }
    let mut reader = PageReader::new(typed, bounds);
    let quality = parser.for_each_page(stream_options(PageSelection::All), |event| {
        reader.event(event)
    });
    let quality = quality.map_err(|error| refusal(&error))?;
    if let Some(error) = reader.refused {
        return Err(error);
    }
    let mut document = reader.document;
    if document.pages.is_none_or(|pages| pages == 0) {
        return Err(if count == 0 && quality.unresolved_page_nodes == 0 {
            ExtractError::Empty
        } else {
            ExtractError::damaged("none of its pages could be found")
        });
    }
    // What the file lost cannot be recognized in an image of it either.
    if quality.unresolved_page_nodes > 0
        && document.markdown.trim().is_empty()
        && document.unread.is_empty()
    {
        return Err(ExtractError::damaged("its pages could not be found"));
    }
    document.language = language(bytes);
    Ok(document)
}

/// Images of pages, in the order in which they are asked for, given away one by one. A page that cannot be painted has none.
pub(crate) fn images(
    bytes: &[u8],
    pages: &[u32],
    bounds: &Bounds,
    mut give: impl FnMut(PageImage),
) -> Result<(), ExtractError> {
    let parser = open(pdf_from_mark(bytes), bounds)?;
    let sizes = sizes(&parser, pages)?;
    for page in pages {
        let Some(size) = sizes.get(page) else {
            return Err(ExtractError::NoPage(*page));
        };
        if let Ok(image) = picture::pdf_page(&parser, *page, *size) {
            give(image);
        }
    }
    Ok(())
}

/// The widths and heights of pages, in points.
fn sizes(parser: &PdfParser, pages: &[u32]) -> Result<HashMap<u32, (f32, f32)>, ExtractError> {
    let all = 1..=parser.page_count();
    let options = PageStreamOptions {
        extract_text: false,
        ..stream_options(PageSelection::Pages(
            pages
                .iter()
                .copied()
                .filter(|page| all.contains(page))
                .collect(),
        ))
    };
    let mut sizes = HashMap::new();
    let read = parser.for_each_page(options, |event| {
        if let ParseEvent::PageParsed(page) = event {
            sizes.insert(page.number, page.dimensions());
        }
        ControlFlow::Continue(())
    });
    read.map_err(|error| refusal(&error))?;
    Ok(sizes)
}

/// Opens a file, with nothing but its bytes.
fn open(bytes: &[u8], bounds: &Bounds) -> Result<PdfParser, ExtractError> {
    check_depth(bytes, bounds)?;
    let options = ParseOptions::new()
        .lenient()
        .sequential()
        .with_resources(false);
    PdfParser::from_bytes_with_options(bytes, options).map_err(|error| refusal(&error))
}

fn check_depth(bytes: &[u8], bounds: &Bounds) -> Result<(), ExtractError> {
    if depth(bytes) > bounds.depth {
        return Err(ExtractError::too_large(Bound::Depth, bounds.depth));
    }
    Ok(())
}

/// How deep arrays and dictionaries stand in each other, outside of streams: the parser calls itself for each level. Marks in strings
/// count as well, which nobody uses in such numbers.
fn depth(bytes: &[u8]) -> usize {
    let (mut deepest, mut depth, mut at) = (0, 0_usize, 0);
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'[' | b'<' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'>' => depth = depth.saturating_sub(1),
            // What is in a stream is no part of an object; what is behind it begins anew.
            b's' if bytes[at..].starts_with(b"tream") => {
                let end = memchr::memmem::find(&bytes[at..], b"endstream");
                at += end.map_or(bytes.len(), |end| end + b"endstream".len());
                depth = 0;
            }
            b'e' if bytes[at..].starts_with(b"ndobj") => depth = 0,
            _ => {}
        }
    }
    // Dictionaries have two marks at either end.
    deepest / 2
}

/// All of them are named, since the defaults start threads.
fn stream_options(pages: PageSelection) -> PageStreamOptions {
    PageStreamOptions {
        error_mode: ErrorMode::Lenient,
        extract_text: true,
        extract_resources: false,
        min_image_dimension: 64,
        pages,
        password: None,
        parallel: false,
        suppress_low_confidence_ocr: true,
        window_size: 1,
        emit_progress_every: u32::MAX,
    }
}

fn refusal(error: &unpdf::Error) -> ExtractError {
    match error.kind() {
        ErrorKind::Encrypted | ErrorKind::InvalidPassword => ExtractError::Encrypted,
        ErrorKind::Render | ErrorKind::Other => ExtractError::failed(error),
        _ => ExtractError::damaged(error),
    }
}

/// Takes what `unpdf` reads, and keeps the text of it.
struct PageReader<'a> {
    document: Document,
    renderer: BlockRenderer,
    fields: Vec<FormField>,
    /// What somebody has typed on pages, by their numbers.
    typed: HashMap<u32, Vec<String>>,
    bounds: &'a Bounds,
    refused: Option<ExtractError>,
}

impl<'a> PageReader<'a> {
    fn new(typed: HashMap<u32, Vec<String>>, bounds: &'a Bounds) -> Self {
        Self {
            document: Document::default(),
            renderer: BlockRenderer::new(RenderOptions::default()),
            fields: vec![],
            typed,
            bounds,
            refused: None,
        }
    }

    fn event(&mut self, event: ParseEvent) -> ControlFlow<()> {
        match event {
            ParseEvent::DocumentStart {
                metadata,
                page_count,
                form_fields,
                ..
            } => {
                self.document.title = metadata.title;
                self.document.author = metadata.author;
                self.document.pages = Some(page_count);
                self.fields = form_fields;
            }
            ParseEvent::PageParsed(page) => self.page(&page),
            ParseEvent::PageFailed { page, .. } => {
                self.unread(page, 0, UnreadReason::Unreadable);
                self.typed(page);
            }
            ParseEvent::DocumentEnd { .. } => self.form(),
            ParseEvent::Progress { .. } => {}
        }
        if self.document.markdown.len() > self.bounds.markdown_bytes {
            let most = self.bounds.markdown_bytes;
            self.refused = Some(ExtractError::too_large(Bound::MarkdownBytes, most));
        }
        if self.refused.is_some() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn page(&mut self, page: &Page) {
        let mut text = String::new();
        let mut previous = None;
        for block in &page.elements {
            // Nobody is given the pictures.
            if !matches!(block, Block::Image { .. }) {
                text.push_str(&self.renderer.render_block_after(previous, block));
            }
            previous = Some(block);
        }
        let text = markdown::tidy(&cleanup::cleaned(&text));
        let reason = judge(page, &text);
        self.add(&text);
        if let Some(reason) = reason {
            self.unread(page.number, text.len(), reason);
        }
        self.typed(page.number);
    }

    /// What was typed on a page stands behind it: an image of the page does not show it.
    fn typed(&mut self, page: u32) {
        for text in self.typed.remove(&page).unwrap_or_default() {
            self.add(&markdown::tidy(&text));
        }
    }

    /// Adds a paragraph, or what has several.
    fn add(&mut self, text: &str) {
        if !text.is_empty() {
            if !self.document.markdown.is_empty() {
                self.document.markdown.push('\n');
            }
            self.document.markdown.push_str(text);
        }
    }

    /// Notes a page that has to be looked at; so many bytes at the end are what was read of it.
    fn unread(&mut self, page: u32, length: usize, reason: UnreadReason) {
        let end = self.document.markdown.len();
        self.document.unread.push(UnreadPage {
            page,
            begin: end - length,
            end,
            reason,
        });
    }

    /// What somebody has filled in stands beside the pages.
    fn form(&mut self) {
        let mut form = String::new();
        for field in &self.fields {
            let value = field.display_value();
            let (name, value) = (field.name.trim(), value.trim());
            if !value.is_empty() && value != "Off" {
                form.push_str(&format!("- {name}: {}\n", value.replace('\n', " ")));
            }
        }
        self.add(&form);
    }
}

/// Whether a page has to be looked at, and why.
fn judge(page: &Page, text: &str) -> Option<UnreadReason> {
    let characters = text.chars().filter(|c| c.is_alphanumeric()).count();
    let shows = page.image_op_count > 0 || page.fill_op_count >= OUTLINES;
    if characters == 0 {
        return if page.undecodable_content_streams > 0 {
            Some(UnreadReason::Unreadable)
        } else if page.ocr_text_suppressed
            || page.suppressed_text_runs > 0
            || page.undecoded_text_codes > 0
        {
            Some(UnreadReason::BadText)
        } else {
            // A page that shows nothing is empty.
            shows.then_some(UnreadReason::NoText)
        };
    }
    let written = page.painted_text_chars;
    let is_short = written < STAMP_CHARACTERS
        || ((written - page.margin_text_chars.min(written)) as usize) < SCAN_CHARACTERS;
    let is_recognized = page.invisible_text_chars as usize >= SCAN_CHARACTERS;
    let is_full_scan = page.image_coverage >= FULL_COVERAGE && is_short && !is_recognized;
    let is_stamped_scan = page.image_coverage >= SCAN_COVERAGE && characters < SCAN_CHARACTERS;
    let is_stamped_scan = is_stamped_scan || is_full_scan;
    if page.ocr_text_suppressed || is_stamped_scan {
        return Some(UnreadReason::BadText);
    }
    let shown = characters + page.undecoded_text_codes as usize;
    let wrong = text.chars().filter(|c| stands_for_nothing(*c)).count();
    let lost = wrong + page.undecoded_text_codes as usize;
    // A run that was left out is a word or more.
    let is_incomplete = page.suppressed_text_runs as f64 * 5.0 > shown as f64 * BAD_SHARE;
    (lost as f64 > shown as f64 * BAD_SHARE || is_incomplete).then_some(UnreadReason::BadText)
}

/// Characters that a font without a meaning for its codes leaves behind.
fn stands_for_nothing(character: char) -> bool {
    matches!(character, '\u{FFFD}' | '\u{E000}'..='\u{F8FF}' | '\u{F0000}'..)
        || character.is_control() && !character.is_whitespace()
}

/// The language that the document names where it can be seen without unpacking anything.
fn language(bytes: &[u8]) -> Option<String> {
    const LONGEST: usize = 35;
    let finder = memchr::memmem::Finder::new(b"/Lang");
    finder.find_iter(bytes).find_map(|at| {
        let rest = bytes[at + 5..].trim_ascii_start().strip_prefix(b"(")?;
        let end = memchr::memchr(b')', &rest[..rest.len().min(LONGEST + 1)])?;
        let language = std::str::from_utf8(&rest[..end]).ok()?;
        (!language.is_empty()).then(|| language.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        Page::a4(1)
    }

    #[test]
    fn pages_are_judged_by_what_they_show_and_say() {
        assert_eq!(judge(&page(), ""), None);
        let scan = Page {
            image_op_count: 1,
            image_coverage: 1.0,
            ..page()
        };
        assert_eq!(judge(&scan, ""), Some(UnreadReason::NoText));
        assert_eq!(judge(&scan, "Page 7 of 12"), Some(UnreadReason::BadText));
        let text =
            "a searchable scan whose text is long enough to be more than the number of a page";
        let with = |painted_text_chars, margin_text_chars, invisible_text_chars| Page {
            painted_text_chars,
            margin_text_chars,
            invisible_text_chars,
            ..scan.clone()
        };
        // A layer of text that was recognized, with a stamp and without one.
        assert_eq!(judge(&with(0, 0, 1_000), text), None);
        assert_eq!(judge(&with(130, 130, 1_000), text), None);
        // A stamp, however long, in a margin or elsewhere.
        for stamp in [with(130, 130, 0), with(400, 380, 0), with(120, 0, 20)] {
            assert_eq!(judge(&stamp, text), Some(UnreadReason::BadText));
        }
        // A page that was written on a picture, and one with a picture beside its text.
        assert_eq!(judge(&with(900, 120, 0), text), None);
        let beside = Page {
            image_coverage: 0.7,
            ..with(130, 20, 0)
        };
        assert_eq!(judge(&beside, text), None);
        let outlines = Page {
            fill_op_count: 900,
            ..page()
        };
        assert_eq!(judge(&outlines, ""), Some(UnreadReason::NoText));
        let fonts = Page {
            suppressed_text_runs: 40,
            ..page()
        };
        assert_eq!(judge(&fonts, ""), Some(UnreadReason::BadText));
        assert_eq!(
            judge(&fonts, "only a little is left"),
            Some(UnreadReason::BadText)
        );
        assert_eq!(
            judge(&page(), "\u{E001}\u{E002} abc"),
            Some(UnreadReason::BadText)
        );
        assert_eq!(judge(&page(), "abc"), None);
        let lost = Page {
            undecodable_content_streams: 1,
            ..page()
        };
        assert_eq!(judge(&lost, ""), Some(UnreadReason::Unreadable));
    }

    #[test]
    fn the_language_is_found_where_it_is_written() {
        assert_eq!(
            language(b"<< /Lang (de-DE) /Type /Catalog >>").as_deref(),
            Some("de-DE")
        );
        assert_eq!(language(b"/Lang () /Lang(fr)").as_deref(), Some("fr"));
        assert_eq!(language(b"/Lang (").as_deref(), None);
    }
}
