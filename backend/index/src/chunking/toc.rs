//! The table of contents of a document, made of its chunks.

use serde::{Deserialize, Serialize};

use super::Heading;

/// A heading, and those below it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TocEntry {
    /// Its words.
    pub title: String,
    /// 1 to 6; 1 is the highest.
    pub level: u8,
    /// Where it begins, in bytes of the document.
    pub start: usize,
    /// The chunk in which it begins, or which begins below it.
    pub chunk_index: usize,
    /// The headings below it, in order.
    pub children: Vec<TocEntry>,
}

/// The headings of a document as a tree, from the headings of its chunks in their order, each with the index of its chunk. A heading is below
/// the nearest one before it that is of a higher level.
pub fn table_of_contents<'a>(
    headings: impl IntoIterator<Item = (usize, &'a Heading)>,
) -> Vec<TocEntry> {
    let mut top = Vec::new();
    // The open entry of each depth; six levels at most.
    let mut open: Vec<TocEntry> = Vec::new();
    for (chunk_index, heading) in headings {
        close(&mut open, &mut top, heading.level);
        open.push(TocEntry {
            title: heading.title.clone(),
            level: heading.level,
            start: heading.start,
            chunk_index,
            children: Vec::new(),
        });
    }
    close(&mut open, &mut top, 0);
    top
}

/// Ends the entries that one of this level cannot be below.
fn close(open: &mut Vec<TocEntry>, top: &mut Vec<TocEntry>, level: u8) {
    while let Some(entry) = open.pop_if(|entry| entry.level >= level) {
        match open.last_mut() {
            Some(above) => above.children.push(entry),
            None => top.push(entry),
        }
    }
}
