//! What is drawn on a slide: texts and tables, in the order that they are drawn in, titles first. Sources: [MS-PPT], sections 2.5 and
//! 2.9.76 to 2.9.78; [MS-ODRAW], sections 2.2.13 to 2.2.40.

use undoc::{Block, Paragraph};

use super::{
    numbered_items,
    records::{Budget, Fields, Record, u32_at},
    styles::Numbers,
    tables::{Grid, Shape},
    texts::{Looks, Text, texts},
};
use crate::error::ExtractError;

pub(super) const DRAWING: u16 = 0x040C;
const DRAWING_CONTAINER: u16 = 0xF002;
const GROUP: u16 = 0xF003;
const SHAPE: u16 = 0xF004;
const CHILD_ANCHOR: u16 = 0xF00F;
const CLIENT_TEXT: u16 = 0xF00D;
const CLIENT_DATA: u16 = 0xF011;
const OUTLINE_TEXT_REF: u16 = 0x0F9E;
/// Records of properties of shapes, and the one that says that a group is a table, with its bits.
const PROPERTIES: [u16; 3] = [0xF00B, 0xF121, 0xF122];
const TABLE_PROPERTIES: u16 = 0x039F;
const IS_TABLE: u32 = 0x1;
const IS_RIGHT_TO_LEFT: u32 = 0x4;

/// A text of the outline, and its further properties.
#[derive(Debug)]
pub(super) struct Outlined<'a> {
    pub(super) text: Text,
    pub(super) items: &'a [Numbers],
}

/// Something on a slide.
#[derive(Debug)]
pub(super) struct Drawn {
    /// The type of its text; none of a table.
    pub(super) kind: Option<u32>,
    is_title: bool,
    blocks: Vec<Block>,
}

impl Drawn {
    fn text(text: &Text, paragraphs: Vec<Paragraph>) -> Self {
        Self {
            kind: Some(text.kind),
            is_title: text.is_title(),
            blocks: paragraphs.into_iter().map(Block::Paragraph).collect(),
        }
    }
}

/// Reads slides, and notes of them.
pub(super) struct Slides<'a, 'b> {
    looks: Looks<'a>,
    /// The texts of the outline, which shapes name by their numbers.
    outline: &'a [Outlined<'a>],
    budget: &'b mut Budget,
    shown: Vec<bool>,
    drawn: Vec<Drawn>,
}

impl<'a, 'b> Slides<'a, 'b> {
    pub(super) fn new(
        looks: Looks<'a>,
        outline: &'a [Outlined<'a>],
        budget: &'b mut Budget,
    ) -> Self {
        Self {
            looks,
            outline,
            budget,
            shown: vec![false; outline.len()],
            drawn: vec![],
        }
    }

    /// Everything on a slide. Texts of the outline that no shape shows are at its end.
    pub(super) fn read(mut self, slide: Option<Record<'_>>) -> Result<Vec<Drawn>, ExtractError> {
        if let Some(slide) = slide
            && let Some(drawing) = self.budget.child(slide.data, DRAWING)?
        {
            self.children(drawing.data, 0)?;
        }
        for (place, outlined) in self.outline.iter().enumerate() {
            if !self.shown[place] {
                let Outlined { text, items } = outlined;
                let paragraphs = self.looks.paragraphs(text, items, self.budget)?;
                self.drawn.push(Drawn::text(text, paragraphs));
            }
        }
        Ok(self.drawn)
    }

    fn children(&mut self, data: &[u8], level: usize) -> Result<(), ExtractError> {
        self.budget.depth(level)?;
        for record in self.budget.children(data)? {
            match record.kind {
                DRAWING_CONTAINER => self.children(record.data, level + 1)?,
                GROUP => self.group(record.data, level + 1)?,
                SHAPE => {
                    let texts = self.shape(record.data)?.texts;
                    self.drawn.extend(texts);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// A group of shapes, the first of which is the group itself.
    fn group(&mut self, data: &[u8], level: usize) -> Result<(), ExtractError> {
        let first = Record::at(data, 0).filter(|record| record.kind == SHAPE);
        let table = match first {
            Some(first) => self.table_properties(first.data)?,
            None => 0,
        };
        if table & IS_TABLE == 0 {
            return self.children(data, level);
        }
        self.budget.depth(level)?;
        let (mut cells, mut others) = (vec![], vec![]);
        let mut groups = vec![];
        // The group itself has an anchor in the group that it is in.
        for record in self.budget.children(data)?.into_iter().skip(1) {
            match record.kind {
                GROUP => groups.push(record),
                SHAPE => {
                    let ShapeTexts { anchor, texts } = self.shape(record.data)?;
                    match anchor {
                        // Lines have no height or no width.
                        Some([left, top, right, bottom]) if left < right && top < bottom => {
                            let (left, right) = match table & IS_RIGHT_TO_LEFT {
                                0 => (left, right),
                                _ => (-right, -left),
                            };
                            cells.push(Shape {
                                left,
                                top,
                                right,
                                bottom,
                                content: texts.into_iter().flat_map(paragraphs).collect(),
                            });
                        }
                        _ => others.extend(texts),
                    }
                }
                _ => {}
            }
        }
        let blocks = match Grid::of(&cells) {
            Some(grid) => vec![Block::Table(grid.table(cells, self.budget)?)],
            None => {
                let content = cells.into_iter().flat_map(|cell| cell.content);
                content.map(Block::Paragraph).collect()
            }
        };
        self.drawn.push(Drawn {
            kind: None,
            is_title: false,
            blocks,
        });
        self.drawn.extend(others);
        for group in groups {
            self.group(group.data, level + 1)?;
        }
        Ok(())
    }

    /// The bits that a group says of itself as a table; none where it is no table.
    fn table_properties(&mut self, shape: &[u8]) -> Result<u32, ExtractError> {
        for record in self.budget.children(shape)? {
            if !PROPERTIES.contains(&record.kind) {
                continue;
            }
            self.budget.content(record.data)?;
            let mut fields = Fields::of(record.data);
            for _ in 0..record.instance {
                let (Some(name), Some(value)) = (fields.u16(), fields.u32()) else {
                    break;
                };
                // The highest two bits say what the value is.
                if name & 0x3FFF == TABLE_PROPERTIES {
                    return Ok(value);
                }
            }
        }
        Ok(0)
    }

    fn shape(&mut self, data: &[u8]) -> Result<ShapeTexts, ExtractError> {
        let children = self.budget.children(data)?;
        let mut found = ShapeTexts {
            anchor: None,
            texts: vec![],
        };
        let mut items = vec![];
        if let Some(client) = children.iter().find(|record| record.kind == CLIENT_DATA) {
            items = numbered_items(client.data, self.budget)?;
        }
        for record in children {
            match record.kind {
                CHILD_ANCHOR => found.anchor = anchor(record.data),
                CLIENT_TEXT => self.client_text(record.data, &items, &mut found.texts)?,
                _ => {}
            }
        }
        Ok(found)
    }

    fn client_text(
        &mut self,
        data: &[u8],
        items: &[Numbers],
        found: &mut Vec<Drawn>,
    ) -> Result<(), ExtractError> {
        let records = self.budget.children(data)?;
        let outline = self.outline;
        for record in &records {
            if record.kind != OUTLINE_TEXT_REF {
                continue;
            }
            let place = u32_at(record.data, 0).and_then(|place| usize::try_from(place).ok());
            if let Some((place, outlined)) = place.and_then(|at| Some((at, outline.get(at)?))) {
                self.shown[place] = true;
                let items = match outlined.items {
                    [] => items,
                    own => own,
                };
                let paragraphs = self.looks.paragraphs(&outlined.text, items, self.budget)?;
                found.push(Drawn::text(&outlined.text, paragraphs));
            }
        }
        for text in texts(&records, self.budget)? {
            let paragraphs = self.looks.paragraphs(&text, items, self.budget)?;
            found.push(Drawn::text(&text, paragraphs));
        }
        Ok(())
    }
}

/// What a shape holds, and where it stands in its group: left, top, right, bottom.
struct ShapeTexts {
    anchor: Option<[i64; 4]>,
    texts: Vec<Drawn>,
}

fn anchor(data: &[u8]) -> Option<[i64; 4]> {
    let mut fields = Fields::of(data);
    let mut side = || fields.i32().map(i64::from);
    Some([side()?, side()?, side()?, side()?])
}

/// The blocks of a slide, titles first.
pub(super) fn blocks(mut drawn: Vec<Drawn>) -> Vec<Block> {
    drawn.sort_by_key(|drawn| !drawn.is_title);
    drawn.into_iter().flat_map(|drawn| drawn.blocks).collect()
}

/// The paragraphs of something that is no table.
pub(super) fn paragraphs(drawn: Drawn) -> impl Iterator<Item = Paragraph> {
    drawn.blocks.into_iter().filter_map(|block| match block {
        Block::Paragraph(paragraph) => Some(paragraph),
        _ => None,
    })
}
