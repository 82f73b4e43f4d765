//! Text in parts that `undoc` does not look into: diagrams, charts, comments, templates of slides, and documents inside of a document; and how many of these and
//! of the objects of other programs are not read.

use std::collections::{HashMap, HashSet};

use super::{
    chunk, comments, drawings,
    inserts::Inserts,
    objects,
    pictures::{self, Picture},
    relations::Relation,
    showing::ShowingPart,
    templates,
};
use crate::{error::ExtractError, limits::Bounds, package::Package};

/// The parts of a Word document on which comments are read.
const COMMENTED: [&str; 3] = [
    "word/document.xml",
    "word/footnotes.xml",
    "word/endnotes.xml",
];

/// What is in other parts.
#[derive(Debug, Default)]
pub(super) struct Related {
    pub(super) inserts: Inserts,
    /// The marks of what is put in, by the part that names it and the name that it has there.
    pub(super) marks: HashMap<String, HashMap<String, String>>,
    /// Why the first document inside of it was not read.
    pub(super) unread: Option<ExtractError>,
    /// How many documents, objects, charts, diagrams and pictures are not read.
    pub(super) unread_count: u32,
}

impl Related {
    /// What a Word document has in other parts. Documents inside of it are read where it is in none itself.
    pub(super) fn of_word(
        package: &mut Package<'_>,
        parts: &[ShowingPart],
        bounds: &Bounds,
        cells: &mut usize,
        is_outermost: bool,
    ) -> Result<Self, ExtractError> {
        let mut related = Self::default();
        let mut chunks = 0;
        for (part, relation) in all(parts) {
            let is_chunk = relation.kind == "aFChunk";
            if !part.is_in_text {
                let is_text = is_chunk || is_drawn(relation);
                related.unread_count += u32::from(is_text);
                continue;
            }
            let text = if is_chunk {
                chunks += 1;
                let text = if is_outermost && chunks <= chunk::MOST {
                    let unread = &mut related.unread_count;
                    match package.read(&relation.target)? {
                        Some(bytes) => chunk::markdown(&relation.target, &bytes, bounds, unread),
                        None => Err(ExtractError::damaged(
                            "a document that is embedded in it is missing",
                        )),
                    }
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
                drawings::shown(package, relation, bounds, cells)?
            };
            related.add(&part.name, relation.id.clone(), text);
        }
        // The body comes first.
        let body = parts.first().map(|body| body.relations.as_slice());
        for (id, text) in comments::of_word(package, body.unwrap_or_default(), bounds)? {
            if let Some(mark) = related.inserts.add_certain(text, None) {
                for part in COMMENTED {
                    related.mark(part, comments::name(&id), mark.clone());
                }
            }
        }
        Ok(related)
    }

    /// The diagrams, the charts and the comments of slides, and the text of their templates.
    pub(super) fn of_slides(
        package: &mut Package<'_>,
        parts: &[ShowingPart],
        bounds: &Bounds,
        cells: &mut usize,
    ) -> Result<Self, ExtractError> {
        let mut related = Self::default();
        let mut drawn = HashSet::new();
        for (part, relation) in all(parts) {
            if !part.is_in_text {
                // What a template shows stands beside the text of slides.
                related.unread_count += u32::from(is_drawn(relation));
            } else if is_drawn(relation) {
                let text = drawings::shown(package, relation, bounds, cells)?;
                if text.contains(char::is_alphanumeric) {
                    drawn.insert(part.name.as_str());
                }
                related.add(&part.name, relation.id.clone(), text);
            }
        }
        let marks = templates::marks(package, parts, &mut related.inserts)?;
        // Words of a chart or a diagram are those of its slide.
        for mark in marks {
            if !drawn.contains(mark.part.as_str()) {
                related.mark(&mark.part, mark.name.to_owned(), mark.mark);
            }
        }
        let is_commented = |part: &&ShowingPart| {
            part.is_in_text && part.relations.iter().any(|one| one.kind == "comments")
        };
        let commented: Vec<&ShowingPart> = parts.iter().filter(is_commented).collect();
        if !commented.is_empty() {
            let authors = comments::authors_of_slides(package)?;
            let mut room = comments::Room::new(bounds);
            for part in commented {
                let text = comments::of_slide(package, &part.relations, &authors, &mut room)?;
                if let Some(mark) = related.inserts.add_certain(text, None) {
                    related.mark(&part.name, comments::OF_SLIDE.to_owned(), mark);
                }
            }
        }
        Ok(related)
    }

    /// Counts the objects of other programs, such as a sheet inside of a Word document, each once. None of them is read; the pictures that
    /// stand in their places are looked at, and do not count. What a chart names are the numbers that it shows.
    pub(super) fn count_objects(&mut self, parts: &[ShowingPart]) {
        let related = all(parts).map(|(_, relation)| relation);
        let objects = related.filter(|relation| objects::is_object(relation));
        let objects: HashSet<&str> = objects.map(|one| one.target.as_str()).collect();
        self.count(objects.len());
    }

    /// Counts what is not read.
    pub(super) fn count(&mut self, unread: usize) {
        let unread = u32::try_from(unread).unwrap_or(u32::MAX);
        self.unread_count = self.unread_count.saturating_add(unread);
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

/// The relations of parts, each with its part.
fn all(parts: &[ShowingPart]) -> impl Iterator<Item = (&ShowingPart, &Relation)> {
    parts
        .iter()
        .flat_map(|part| part.relations.iter().map(move |one| (part, one)))
}

/// True for charts and diagrams.
fn is_drawn(relation: &Relation) -> bool {
    matches!(relation.kind.as_str(), "chart" | "diagramData")
}
