//! Names of parts. `undoc` looks for the main part of a document, its styles, lists, notes and shared strings by the names that most programs
//! give them, where relationships may name others: Word for the Web writes `word/document2.xml` and `word/styles2.xml`. Source: ECMA-376 part
//! 1, sections 11.2, 12.2 and 13.2.

use super::relations;
use crate::{error::ExtractError, format::Format, limits::Bounds, package::Package};

/// The relationships of a document.
const TOP: &str = "_rels/.rels";
/// Parts that have a usual name, by the kind of their relation to the main part.
const USUAL: [&str; 5] = [
    "styles",
    "numbering",
    "footnotes",
    "endnotes",
    "sharedStrings",
];

/// Opens a document of Office Open XML, whose parts get their usual names.
pub(super) fn open<'a>(
    bytes: &'a [u8],
    format: Format,
    bounds: &Bounds,
) -> Result<Package<'a>, ExtractError> {
    let mut package = Package::open(bytes, bounds)?;
    let (folder, main) = match format {
        Format::Docx => ("word", "word/document.xml"),
        Format::Pptx => ("ppt", "ppt/presentation.xml"),
        _ => ("xl", "xl/workbook.xml"),
    };
    for one in related(&mut package, "", TOP)? {
        if one.kind == "officeDocument" {
            rename(&mut package, &one.target, main);
        }
    }
    for one in related(&mut package, main, &relations::name_of(main))? {
        if USUAL.contains(&one.kind.as_str()) {
            let name = format!("{folder}/{}.xml", one.kind);
            rename(&mut package, &one.target, &name);
        }
    }
    Ok(package)
}

/// What a part names in the part of its relationships, which is read once more.
fn related(
    package: &mut Package<'_>,
    part: &str,
    relationships: &str,
) -> Result<Vec<relations::Relation>, ExtractError> {
    let xml = package.look_at_xml(relationships)?.unwrap_or_default();
    Ok(relations::read(part, &xml))
}

/// Renames a part and its relationships, unless there is another one of that name.
fn rename(package: &mut Package<'_>, from: &str, to: &str) {
    if package.rename(from, to) {
        package.rename(&relations::name_of(from), &relations::name_of(to));
    }
}
