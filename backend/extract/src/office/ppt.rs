//! Presentations of PowerPoint 97 to 2003: their slides with titles, lists and tables, and the notes of them. Source: [MS-PPT]. A file is a
//! stranger's, so whatever it claims is looked at within bounds (`records.rs`).

mod directory;
#[cfg(test)]
mod made;
mod records;
mod slides;
mod styles;
mod summary;
mod tables;
#[cfg(test)]
mod tests;
mod texts;

use std::{
    collections::HashMap,
    fmt,
    io::{Cursor, Read},
};

use undoc::{Document, FormatType, Paragraph, Section};

use self::{
    directory::Directory,
    records::{Budget, Record, string, u32_at},
    slides::{Outlined, Slides, blocks, paragraphs},
    styles::{Numbers, Styles},
    texts::{Looks, NOTES, texts},
};
use crate::{error::ExtractError, limits::Bounds};

const DOCUMENT: u16 = 0x03E8;
const SLIDE: u16 = 0x03EE;
const SLIDE_ATOM: u16 = 0x03EF;
const NOTES_PAGE: u16 = 0x03F0;
const SLIDE_PERSIST: u16 = 0x03F3;
const ENVIRONMENT: u16 = 0x03F2;
const MAIN_MASTER: u16 = 0x03F8;
const EXTERNAL_OBJECTS: u16 = 0x0409;
const INFORMATION: u16 = 0x07D0;
const TEXT_MASTER_STYLE: u16 = 0x0FA3;
const STYLE_TEXT_PROP_9: u16 = 0x0FAC;
const TEXT_MASTER_STYLE_9: u16 = 0x0FAD;
const OUTLINE_PROPERTIES: u16 = 0x0FAE;
const OUTLINE_PROPERTIES_HEADER: u16 = 0x0FAF;
const STRING: u16 = 0x0FBA;
const HYPERLINK_ATOM: u16 = 0x0FD3;
const HYPERLINK: u16 = 0x0FD7;
const SLIDE_LIST: u16 = 0x0FF0;
const TAGS: u16 = 0x1388;
const BINARY_TAG: u16 = 0x138A;
const BINARY_TAG_DATA: u16 = 0x138B;
/// The tag of what PowerPoint 2000 added.
const TAG_OF_2000: &str = "___PPT9";

/// Lists of slides.
const LIST_OF_SLIDES: u16 = 0;
const LIST_OF_MASTERS: u16 = 1;
const LIST_OF_NOTES: u16 = 2;

/// Which of the strings of a link is where it leads to.
const TARGET: u16 = 1;
/// A slide names a title master, which names a main master.
const MOST_MASTERS: usize = 3;

/// Reads a presentation: a section for each slide.
///
/// # Errors
/// When it is encrypted, is damaged, or goes beyond the bounds.
pub(super) fn read(bytes: &[u8], bounds: &Bounds) -> Result<Document, ExtractError> {
    let mut container = cfb::CompoundFile::open(Cursor::new(bytes)).map_err(damaged)?;
    let mut stream = |name: &str| {
        let mut content = vec![];
        // No stream is longer than the file.
        let mut stream = container.open_stream(name)?.take(bytes.len() as u64);
        stream.read_to_end(&mut content)?;
        Ok::<_, std::io::Error>(content)
    };
    let mut needed = |name: &str| {
        stream(name).map_err(|error| damaged(format_args!("the stream {name:?}: {error}")))
    };
    let current_user = needed("/Current User")?;
    let content = needed("/PowerPoint Document")?;
    let metadata = stream("/\u{5}SummaryInformation").unwrap_or_default();
    let mut document = slides(&current_user, &content, bounds)?;
    let summary = summary::metadata(&metadata);
    document.metadata.title = summary.title;
    document.metadata.author = summary.author;
    Ok(document)
}

/// The slides of the streams of a presentation.
fn slides(current_user: &[u8], content: &[u8], bounds: &Bounds) -> Result<Document, ExtractError> {
    let mut budget = Budget::new(bounds);
    let presentation = Presentation::read(current_user, content, &mut budget)?;
    let mut document = Document::new();
    document.format = FormatType::Ppt;
    document.metadata.page_count = u32::try_from(presentation.slides.len()).ok();
    for (index, slide) in presentation.slides.iter().enumerate() {
        document.add_section(presentation.section(index, slide, &mut budget)?);
    }
    Ok(document)
}

fn damaged(why: impl fmt::Display) -> ExtractError {
    ExtractError::damaged(format_args!("PowerPoint presentation: {why}"))
}

/// A slide as the document lists it.
#[derive(Debug)]
struct Listed<'a> {
    number: u32,
    object: u32,
    /// Its texts in the outline of the document.
    outline: Vec<Record<'a>>,
}

/// What the slides of a document have in common.
#[derive(Debug)]
struct Presentation<'a> {
    directory: Directory<'a>,
    slides: Vec<Listed<'a>>,
    /// The objects of masters and of pages of notes by their numbers.
    masters: HashMap<u32, u32>,
    notes: HashMap<u32, u32>,
    /// Where links lead to, by their numbers.
    targets: HashMap<u32, String>,
    /// What text looks like where no master says it.
    styles: Styles,
    /// Further properties of texts in the outline, by the number of the slide and the place of the text there.
    items: HashMap<(u32, u16), Vec<Numbers>>,
}

impl<'a> Presentation<'a> {
    fn read(
        current_user: &[u8],
        content: &'a [u8],
        budget: &mut Budget,
    ) -> Result<Self, ExtractError> {
        let mut presentation = Self {
            directory: Directory::read(current_user, content, budget)?,
            slides: vec![],
            masters: HashMap::new(),
            notes: HashMap::new(),
            targets: HashMap::new(),
            styles: Styles::default(),
            items: HashMap::new(),
        };
        let document = presentation.directory.document(DOCUMENT);
        let document = document.ok_or_else(|| damaged("its document is missing"))?;
        for record in budget.children(document.data)? {
            match record.kind {
                ENVIRONMENT => {
                    for style in budget.children(record.data)? {
                        if style.kind == TEXT_MASTER_STYLE {
                            presentation.styles.add_bullets(style.instance, style.data);
                        }
                    }
                }
                EXTERNAL_OBJECTS => presentation.read_links(record.data, budget)?,
                INFORMATION => presentation.read_information(record.data, budget)?,
                SLIDE_LIST => presentation.read_list(record, budget)?,
                _ => {}
            }
        }
        Ok(presentation)
    }

    fn read_links(&mut self, data: &[u8], budget: &mut Budget) -> Result<(), ExtractError> {
        for link in budget.children(data)? {
            if link.kind != HYPERLINK {
                continue;
            }
            let (mut number, mut target) = (None, None);
            for part in budget.children(link.data)? {
                match part.kind {
                    HYPERLINK_ATOM => number = u32_at(part.data, 0),
                    STRING if part.instance == TARGET => {
                        budget.content(part.data)?;
                        target = Some(string(part.data));
                    }
                    _ => {}
                }
            }
            if let (Some(number), Some(target)) = (number, target.filter(|it| !it.is_empty())) {
                self.targets.insert(number, target);
            }
        }
        Ok(())
    }

    fn read_information(&mut self, data: &[u8], budget: &mut Budget) -> Result<(), ExtractError> {
        for record in added_in_2000(data, budget)? {
            match record.kind {
                TEXT_MASTER_STYLE_9 => self.styles.add_numbers(record.instance, record.data),
                OUTLINE_PROPERTIES => {
                    let mut place = None;
                    for part in budget.children(record.data)? {
                        match part.kind {
                            OUTLINE_PROPERTIES_HEADER => {
                                place = u32_at(part.data, 0).map(|slide| (slide, part.instance));
                            }
                            STYLE_TEXT_PROP_9 => {
                                if let Some(place) = place.take() {
                                    budget.content(part.data)?;
                                    self.items.insert(place, styles::items(part.data));
                                }
                            }
                            _ => {}
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn read_list(&mut self, list: Record<'a>, budget: &mut Budget) -> Result<(), ExtractError> {
        for record in budget.children(list.data)? {
            if record.kind != SLIDE_PERSIST {
                if let (LIST_OF_SLIDES, Some(slide)) = (list.instance, self.slides.last_mut()) {
                    slide.outline.push(record);
                }
                continue;
            }
            let (Some(object), Some(number)) = (u32_at(record.data, 0), u32_at(record.data, 12))
            else {
                continue;
            };
            match list.instance {
                LIST_OF_SLIDES => self.slides.push(Listed {
                    number,
                    object,
                    outline: vec![],
                }),
                LIST_OF_MASTERS => {
                    self.masters.insert(number, object);
                }
                LIST_OF_NOTES => {
                    self.notes.insert(number, object);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn section(
        &self,
        index: usize,
        listed: &Listed<'a>,
        budget: &mut Budget,
    ) -> Result<Section, ExtractError> {
        let slide = self.directory.object(listed.object, &[SLIDE]);
        let atom = match slide {
            Some(slide) => budget.child(slide.data, SLIDE_ATOM)?,
            None => None,
        };
        let field = |offset| atom.and_then(|atom| u32_at(atom.data, offset));
        let styles = self.styles_of(field(12), budget)?;
        let looks = Looks {
            styles: &styles,
            targets: &self.targets,
        };
        let texts = texts(&listed.outline, budget)?.into_iter().enumerate();
        let outline: Vec<Outlined<'_>> = texts
            .map(|(place, text)| Outlined {
                text,
                items: self.items_of(listed.number, place),
            })
            .collect();
        let mut section = Section::new(index);
        section.content = blocks(Slides::new(looks, &outline, budget).read(slide)?);
        let notes = field(16).and_then(|notes| self.notes.get(&notes));
        if let Some(page) = notes.and_then(|notes| self.directory.object(*notes, &[NOTES_PAGE])) {
            let drawn = Slides::new(looks, &[], budget).read(Some(page))?;
            let notes = drawn.into_iter().filter(|drawn| drawn.kind == Some(NOTES));
            let notes: Vec<Paragraph> = notes.flat_map(paragraphs).collect();
            section.notes = (!notes.is_empty()).then_some(notes);
        }
        Ok(section)
    }

    fn items_of(&self, slide: u32, place: usize) -> &[Numbers] {
        let place = u16::try_from(place).ok();
        let items = place.and_then(|place| self.items.get(&(slide, place)));
        items.map(Vec::as_slice).unwrap_or_default()
    }

    /// What text looks like on slides of a master.
    fn styles_of(
        &self,
        mut master: Option<u32>,
        budget: &mut Budget,
    ) -> Result<Styles, ExtractError> {
        let mut styles = Styles::default();
        for _ in 0..MOST_MASTERS {
            let object = master.and_then(|master| self.masters.get(&master));
            let kinds = [MAIN_MASTER, SLIDE];
            let Some(object) = object.and_then(|object| self.directory.object(*object, &kinds))
            else {
                break;
            };
            if object.kind == SLIDE {
                let atom = budget.child(object.data, SLIDE_ATOM)?;
                master = atom.and_then(|atom| u32_at(atom.data, 12));
                continue;
            }
            for record in budget.children(object.data)? {
                if record.kind == TEXT_MASTER_STYLE {
                    styles.add_bullets(record.instance, record.data);
                }
            }
            for record in added_in_2000(object.data, budget)? {
                if record.kind == TEXT_MASTER_STYLE_9 {
                    styles.add_numbers(record.instance, record.data);
                }
            }
            break;
        }
        styles.inherit(&self.styles);
        Ok(styles)
    }
}

/// The records that PowerPoint 2000 added to a record.
fn added_in_2000<'a>(data: &'a [u8], budget: &mut Budget) -> Result<Vec<Record<'a>>, ExtractError> {
    let mut added = vec![];
    for tags in budget.children(data)? {
        if tags.kind != TAGS {
            continue;
        }
        for tag in budget.children(tags.data)? {
            if tag.kind != BINARY_TAG {
                continue;
            }
            let mut is_of_2000 = false;
            for part in budget.children(tag.data)? {
                match part.kind {
                    STRING => {
                        budget.content(part.data)?;
                        is_of_2000 = string(part.data) == TAG_OF_2000;
                    }
                    BINARY_TAG_DATA if is_of_2000 => added.extend(budget.children(part.data)?),
                    _ => {}
                }
            }
        }
    }
    Ok(added)
}

/// Further properties of the text of a shape.
fn numbered_items(client: &[u8], budget: &mut Budget) -> Result<Vec<Numbers>, ExtractError> {
    let mut added = added_in_2000(client, budget)?.into_iter();
    match added.find(|record| record.kind == STYLE_TEXT_PROP_9) {
        Some(record) => {
            budget.content(record.data)?;
            Ok(styles::items(record.data))
        }
        None => Ok(vec![]),
    }
}
