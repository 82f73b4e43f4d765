//! Parts of a document that show pictures, diagrams, charts and objects of other programs, and what each of them names: the body of a
//! Word document, its margins, notes and comments; slides, with the layouts and masters that they use; sheets and their drawings.

use std::collections::{HashMap, HashSet};

use super::{
    objects,
    relations::{self, Relation},
    undrawn,
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
    /// The names of drawings that stand beside a picture of the same, with the name of that picture.
    pub(super) doubles: HashMap<String, String>,
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
    let has_objects = relations.iter().any(objects::is_object);
    let has_drawings = relations.iter().any(|one| undrawn::is_drawing(&one.target));
    let (mut previews, mut doubles) = (HashSet::new(), HashMap::new());
    if !is_sheet(&name) && (has_objects || has_drawings) {
        let xml = package.look_at_xml(&name)?.unwrap_or_default();
        if has_objects {
            previews = objects::previews(&xml, &relations);
        }
        if has_drawings {
            doubles = undrawn::doubles(&xml);
        }
    }
    Ok(ShowingPart {
        name,
        relations,
        previews,
        doubles,
        is_in_text,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{error::Bound, limits::Bounds, package::Stored};

    /// Looks at a Word document with an object of another program, and reads it.
    fn read_twice(body: &str, bounds: &Bounds) -> Result<(), ExtractError> {
        let mut stored = Stored::new();
        let related = r#"<Relationships><Relationship Id="o" Type="x/oleObject" Target="o.bin"/></Relationships>"#;
        stored.add(BODY, body)?;
        stored.add("word/_rels/document.xml.rels", related)?;
        let bytes = stored.finish()?;
        let mut package = Package::open(&bytes, bounds)?;
        of(&mut package, Format::Docx)?;
        package.counted(|name, xml| Ok(Some((name, xml))))?;
        Ok(())
    }

    #[test]
    fn a_part_that_is_looked_at_and_read_counts_once() {
        let body = format!("<body>{}</body>", "<p/>".repeat(1_000));
        let all = Bounds::default();
        let within = Bounds {
            elements: 1_500,
            unpacked_bytes: body.len() + 1_000,
            ..all
        };
        assert_eq!(read_twice(&body, &within), Ok(()));
        let few = Bounds {
            elements: 900,
            ..all
        };
        let refused = ExtractError::too_large(Bound::Elements, few.elements);
        assert_eq!(read_twice(&body, &few), Err(refused));
        let little = Bounds {
            unpacked_bytes: body.len() - 1,
            ..all
        };
        let refused = ExtractError::too_large(Bound::UnpackedBytes, little.unpacked_bytes);
        assert_eq!(read_twice(&body, &little), Err(refused));
    }

    #[test]
    fn what_is_looked_at_has_bounds_for_all_parts_together() {
        let bounds = Bounds {
            elements: 10,
            ..Bounds::default()
        };
        let mut stored = Stored::new();
        stored.add("a.xml", "<a><b/><b/><b/></a>").unwrap();
        let bytes = stored.finish().unwrap();
        let mut package = Package::open(&bytes, &bounds).unwrap();
        for _ in 0..2 {
            assert!(package.look_at_xml("a.xml").unwrap().is_some());
        }
        let refused = ExtractError::too_large(Bound::Elements, bounds.elements);
        assert_eq!(package.look_at_xml("a.xml"), Err(refused));
        // Nothing was taken from what is left to be read.
        for _ in 0..2 {
            assert!(package.read_xml("a.xml").unwrap().is_some());
        }
    }
}
