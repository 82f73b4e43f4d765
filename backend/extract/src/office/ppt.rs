//! Presentations of PowerPoint 97 to 2003: their slides with titles, lists and tables, and the notes of them. Source: [MS-PPT]. A file is a
//! stranger's, so whatever it claims is looked at within bounds (`records.rs`).

#[cfg(test)]
mod damaged_tests;
mod directory;
mod drawings;
#[cfg(test)]
mod made;
mod records;
mod slides;
mod styles;
pub(super) mod summary;
mod tables;
#[cfg(test)]
mod tests;
mod texts;

use std::{collections::HashMap, fmt};

use undoc::{Document, FormatType, Paragraph, Section};

use self::{
    directory::Directory,
    drawings::Drawings,
    records::{Budget, Record, string, u32_at},
    slides::{Outlined, Slides, blocks, paragraphs},
    styles::{Numbers, Styles},
    texts::{Looks, NOTES, texts},
};
use super::compound::CompoundFile;
use crate::{error::ExtractError, limits::Bounds};

const DOCUMENT: u16 = 0x03E8;
const SLIDE: u16 = 0x03EE;
const SLIDE_ATOM: u16 = 0x03EF;
const NOTES_PAGE: u16 = 0x03F0;
const SLIDE_PERSIST: u16 = 0x03F3;
const ENVIRONMENT: u16 = 0x03F2;
const DRAWING_GROUP: u16 = 0x040B;
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
/// The record in a drawing group that has the store of pictures.
const DRAWING_GROUP_CONTAINER: u16 = 0xF000;
/// The tag of what PowerPoint 2000 added.
const TAG_OF_2000: &str = "___PPT9";

/// Lists of slides.
const LIST_OF_SLIDES: u16 = 0;
const LIST_OF_MASTERS: u16 = 1;
const LIST_OF_NOTES: u16 = 2;

/// What a slide without notes names as those.
const NO_NOTES: u32 = 0;

/// Which of the strings of a link is where it leads to.
const TARGET: u16 = 1;
/// A slide names a title master, which names a main master.
const MOST_MASTERS: usize = 3;
/// How many slides at most are named of which text is missing, and slides behind the last one count as one.
const MOST_LOST: usize = 100;

/// What was read of a presentation.
#[derive(Debug)]
pub(super) struct Read {
    /// A section for each slide.
    pub(super) document: Document,
    /// The numbers of slides of which text may be missing, from 1 on, in order. The number behind the last slide stands for slides that the
    /// document does not name any longer.
    pub(super) lost: Vec<u32>,
    /// Number of pictures and drawn texts of slides and of their masters, none of which is read. A picture that is shown again counts once.
    pub(super) unread: u32,
}

/// Reads a presentation.
///
/// # Errors
/// When it is encrypted, is damaged, or goes beyond the bounds. Damage that leaves text elsewhere is told in [`Read::lost`] instead.
pub(super) fn read(bytes: &[u8], bounds: &Bounds) -> Result<Read, ExtractError> {
    let mut file = CompoundFile::open(bytes).map_err(damaged)?;
    let mut needed = |name: &str| {
        file.read(name)
            .map_err(|error| damaged(format_args!("the stream {name:?}: {error}")))
    };
    let current_user = needed("/Current User")?;
    let content = needed("/PowerPoint Document")?;
    let metadata = file.read("/\u{5}SummaryInformation").unwrap_or_default();
    let pictures = file.read("/Pictures").unwrap_or_default();
    let mut read = slides(&current_user, &content, &pictures, bounds)?;
    let summary = summary::metadata(&metadata);
    read.document.metadata.title = summary.title;
    read.document.metadata.author = summary.author;
    Ok(read)
}

/// The slides of the streams of a presentation.
fn slides(
    current_user: &[u8],
    content: &[u8],
    pictures: &[u8],
    bounds: &Bounds,
) -> Result<Read, ExtractError> {
    let mut budget = Budget::new(bounds);
    let presentation = Presentation::read(current_user, content, &mut budget)?;
    let mut document = Document::new();
    document.format = FormatType::Ppt;
    document.metadata.page_count = u32::try_from(presentation.slides.len()).ok();
    let (mut lost, mut drawings) = (vec![], Drawings::default());
    for (number, (index, slide)) in (1..).zip(presentation.slides.iter().enumerate()) {
        document.add_section(presentation.section(index, slide, &mut drawings, &mut budget)?);
        if budget.take_lost() {
            lost.push(number);
        }
    }
    // That slides are behind the last one is told in any case.
    lost.truncate(MOST_LOST - usize::from(presentation.is_cut_off));
    if presentation.is_cut_off {
        let last = document.metadata.page_count.unwrap_or_default();
        lost.push(last.saturating_add(1));
    }
    let is_empty = |section: &Section| section.content.is_empty() && section.notes.is_none();
    if !lost.is_empty() && document.sections.iter().all(is_empty) {
        return Err(damaged("its slides are missing or cut off"));
    }
    let unread = drawings.shown.count(presentation.store, pictures, bounds);
    Ok(Read {
        document,
        lost,
        unread,
    })
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
    /// The content of the record that has the store of pictures.
    store: &'a [u8],
    /// True if the lists of slides break off.
    is_cut_off: bool,
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
            store: &[],
            is_cut_off: false,
        };
        let document = presentation.directory.document(DOCUMENT);
        let document = document.ok_or_else(|| damaged("its document is missing"))?;
        let records = budget.children(document.data)?;
        presentation.is_cut_off = document.is_cut_off || budget.take_lost();
        for record in records {
            match record.kind {
                ENVIRONMENT => {
                    for style in budget.children(record.data)? {
                        if style.kind == TEXT_MASTER_STYLE {
                            presentation.styles.add_bullets(style.instance, style.data);
                        }
                    }
                }
                DRAWING_GROUP => {
                    let group = budget.child(record.data, DRAWING_GROUP_CONTAINER)?;
                    presentation.store = group.map(|group| group.data).unwrap_or_default();
                }
                EXTERNAL_OBJECTS => presentation.read_links(record.data, budget)?,
                INFORMATION => presentation.read_information(record.data, budget)?,
                SLIDE_LIST => {
                    // Nothing of the text was in what was read before.
                    budget.take_lost();
                    presentation.read_list(record, budget)?;
                    let has_lost = budget.take_lost();
                    presentation.is_cut_off |= has_lost && record.instance == LIST_OF_SLIDES;
                }
                _ => {}
            }
        }
        budget.take_lost();
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
                budget.lose();
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

    /// The section of a slide. What of it is missing or cut off is noted in the budget.
    fn section(
        &self,
        index: usize,
        listed: &Listed<'a>,
        drawings: &mut Drawings,
        budget: &mut Budget,
    ) -> Result<Section, ExtractError> {
        let slide = self.directory.object(listed.object, &[SLIDE]);
        let atom = match slide {
            Some(slide) => budget.child(slide.data, SLIDE_ATOM)?,
            None => None,
        };
        let field = |offset| atom.and_then(|atom| u32_at(atom.data, offset));
        let styles = self.styles_of(field(12), drawings, budget)?;
        // No text of a master is shown.
        budget.take_lost();
        if slide.is_none_or(|slide| slide.is_cut_off) || atom.is_none() {
            budget.lose();
        }
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
        if let Some(slide) = slide {
            drawings.add(listed.object, slide, budget)?;
        }
        let notes = field(16).filter(|notes| *notes != NO_NOTES);
        let page = notes.and_then(|notes| {
            let object = self.notes.get(&notes)?;
            self.directory.object(*object, &[NOTES_PAGE])
        });
        if notes.is_some() && page.is_none_or(|page| page.is_cut_off) {
            budget.lose();
        }
        if let Some(page) = page {
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

    /// What text looks like on slides of a master, whose drawing is looked at, too.
    fn styles_of(
        &self,
        mut master: Option<u32>,
        drawings: &mut Drawings,
        budget: &mut Budget,
    ) -> Result<Styles, ExtractError> {
        let mut styles = Styles::default();
        for _ in 0..MOST_MASTERS {
            let number = master.and_then(|master| self.masters.get(&master));
            let Some(number) = number.copied() else {
                break;
            };
            let kinds = [MAIN_MASTER, SLIDE];
            let Some(object) = self.directory.object(number, &kinds) else {
                break;
            };
            drawings.add(number, object, budget)?;
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
