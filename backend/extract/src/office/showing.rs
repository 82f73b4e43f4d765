//! Parts of a document that show pictures, diagrams, charts and objects of other programs, and what each of them names: the body of a
//! Word document, its margins, notes and comments; slides, with the layouts and masters that they use; sheets and their drawings.

use std::collections::HashSet;

use super::{
    objects,
    relations::{self, Relation},
};
use crate::{error::ExtractError, format::Format, package::Package};

/// The body of a Word document.
const BODY: &str = "word/document.xml";

/// A part that shows something.
#[derive(Debug)]
pub(super) struct ShowingPart {
    /// Its name in the container.
    pub(super) name: String,
    /// The parts that it names.
    pub(super) relations: Vec<Relation>,
    /// The names of pictures that it shows in the place of objects of other programs alone. Sheets have none, as their pictures are not
    /// looked at.
    pub(super) previews: HashSet<String>,
    /// True if its text is read, so that a mark in it keeps its place.
    pub(super) is_in_text: bool,
}

/// The parts of a document that show something.
pub(super) fn of(
    package: &mut Package<'_>,
    format: Format,
) -> Result<Vec<ShowingPart>, ExtractError> {
    match format {
        Format::Docx => of_word(package),
        Format::Pptx => of_slides(package),
        _ => {
            let is_one = |name: &str| name.starts_with("xl/drawings/drawing") || is_sheet(name);
            named(package, is_one, false)
        }
    }
}

/// True if a part is a sheet of a workbook by its name.
pub(super) fn is_sheet(name: &str) -> bool {
    name.starts_with("xl/worksheets/")
}

fn of_word(package: &mut Package<'_>) -> Result<Vec<ShowingPart>, ExtractError> {
    let body = read(package, BODY.to_owned(), true)?;
    let mut seen = HashSet::from([BODY.to_owned()]);
    let mut around = vec![];
    for related in &body.relations {
        let target = related.target.as_str();
        // `undoc` finds notes by their usual names, and comments are read apart (`comments.rs`).
        let is_in_text = match related.kind.as_str() {
            "header" | "footer" => true,
            "footnotes" => target == "word/footnotes.xml",
            "endnotes" => target == "word/endnotes.xml",
            "comments" => false,
            _ => continue,
        };
        if seen.insert(target.to_owned()) {
            around.push(read(package, target.to_owned(), is_in_text)?);
        }
    }
    around.insert(0, body);
    Ok(around)
}

/// Layouts that no slide uses show nothing.
fn of_slides(package: &mut Package<'_>) -> Result<Vec<ShowingPart>, ExtractError> {
    let mut parts = named(package, |name| name.starts_with("ppt/slides/slide"), true)?;
    let mut seen = HashSet::new();
    for kind in ["slideLayout", "slideMaster"] {
        let relations = parts.iter().flat_map(|part| &part.relations);
        let templates = relations.filter(|one| one.kind == kind);
        let templates: Vec<String> = templates.map(|one| one.target.clone()).collect();
        for name in templates {
            if seen.insert(name.clone()) {
                parts.push(read(package, name, false)?);
            }
        }
    }
    Ok(parts)
}

/// The parts with such names.
fn named(
    package: &mut Package<'_>,
    is_one: impl Fn(&str) -> bool,
    is_in_text: bool,
) -> Result<Vec<ShowingPart>, ExtractError> {
    let names = package.names();
    let names = names.filter(|name| name.ends_with(".xml") && is_one(name));
    let names: Vec<String> = names.map(str::to_owned).collect();
    let parts = names.into_iter();
    parts.map(|name| read(package, name, is_in_text)).collect()
}

fn read(
    package: &mut Package<'_>,
    name: String,
    is_in_text: bool,
) -> Result<ShowingPart, ExtractError> {
    let relations = relations::of(package, &name)?;
    let mut previews = HashSet::new();
    if !is_sheet(&name) && relations.iter().any(objects::is_object) {
        let xml = package.read_xml(&name)?.unwrap_or_default();
        previews = objects::previews(&xml, &relations);
    }
    Ok(ShowingPart {
        name,
        relations,
        previews,
        is_in_text,
    })
}
