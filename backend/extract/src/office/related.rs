//! Text in parts that `undoc` does not look into: diagrams, charts, and documents inside of a document.

use std::collections::HashMap;

use super::{
    chunk, drawings,
    inserts::Inserts,
    pictures::{self, Picture},
    relations,
};
use crate::{error::ExtractError, limits::Bounds, package::Package};

/// What is in other parts.
#[derive(Debug, Default)]
pub(super) struct Related {
    pub(super) inserts: Inserts,
    /// The marks of what is put in, by the part that names it and the name that it has there.
    pub(super) marks: HashMap<String, HashMap<String, String>>,
    /// Why the first document inside of it was not read, and how many were not.
    pub(super) unread: Option<ExtractError>,
    pub(super) unread_count: u32,
}

impl Related {
    /// What a Word document has in other parts. Documents inside of it are read where it is in none itself.
    pub(super) fn of_word(
        package: &mut Package<'_>,
        bounds: &Bounds,
        cells: &mut usize,
        is_outermost: bool,
    ) -> Result<Self, ExtractError> {
        const DOCUMENT: &str = "word/document.xml";
        let mut related = Self::default();
        let mut chunks = 0;
        for relation in relations::of(package, DOCUMENT)? {
            let text = if relation.kind == "aFChunk" {
                chunks += 1;
                let text = if is_outermost && chunks <= chunk::MOST {
                    let bytes = package.read(&relation.target)?.unwrap_or_default();
                    chunk::markdown(&relation.target, &bytes, bounds)
                } else {
                    Err(ExtractError::failed(
                        "more documents are inside of it than are read",
                    ))
                };
                match text {
                    Ok(text) => text,
                    Err(error) => {
                        related.unread.get_or_insert(error);
                        related.unread_count += 1;
                        continue;
                    }
                }
            } else {
                drawings::shown(package, &relation, bounds, cells)?
            };
            related.add(DOCUMENT, relation.id, text);
        }
        Ok(related)
    }

    /// The diagrams of slides.
    pub(super) fn of_slides(
        package: &mut Package<'_>,
        bounds: &Bounds,
        cells: &mut usize,
    ) -> Result<Self, ExtractError> {
        let is_slide = |name: &&str| name.starts_with("ppt/slides/slide") && name.ends_with(".xml");
        let slides: Vec<String> = package
            .names()
            .filter(is_slide)
            .map(str::to_owned)
            .collect();
        let mut related = Self::default();
        for slide in slides {
            for relation in relations::of(package, &slide)? {
                // `undoc` reads charts.
                if relation.kind == "diagramData" {
                    let text = drawings::shown(package, &relation, bounds, cells)?;
                    related.add(&slide, relation.id, text);
                }
            }
        }
        Ok(related)
    }

    /// Marks where pictures are shown.
    pub(super) fn mark_pictures(&mut self, pictures: &[Picture]) {
        for (part, id, mark) in pictures::marks(pictures) {
            self.mark(part, id.to_owned(), mark);
        }
    }

    fn add(&mut self, part: &str, id: String, text: String) {
        if let Some(mark) = self.inserts.add(text) {
            self.mark(part, id, mark);
        }
    }

    fn mark(&mut self, part: &str, id: String, mark: String) {
        let marks = self.marks.entry(part.to_owned()).or_default();
        marks.insert(id, mark);
    }
}
