//! Relationships of a part: which other parts it names, and as what. Source: ECMA-376 part 2, section 9.3.

use std::collections::HashMap;

use quick_xml::events::{BytesStart, Event};

use super::{attributes, events};
use crate::{
    error::ExtractError,
    package::{Package, resolve},
};

/// A part that another one names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Relation {
    /// The name that the part has within the other.
    pub(super) id: String,
    /// The last word of its type, such as `image`.
    pub(super) kind: String,
    /// Its name in the container.
    pub(super) target: String,
}

/// The parts of the container that a part names.
pub(super) fn of(package: &mut Package<'_>, part: &str) -> Result<Vec<Relation>, ExtractError> {
    let xml = package.read_xml(&name_of(part))?;
    let mut relations = read(part, xml.as_deref().unwrap_or_default());
    for relation in &mut relations {
        if let Some(name) = package.renamed(&relation.target) {
            name.clone_into(&mut relation.target);
        }
    }
    Ok(relations)
}

/// The relations that a part has, by their identifiers.
pub(super) fn by_id(relations: Vec<Relation>) -> HashMap<String, Relation> {
    relations
        .into_iter()
        .map(|one| (one.id.clone(), one))
        .collect()
}

/// The relations in the XML of the relationships of a part. What is outside of the container is left out.
pub(super) fn read(part: &str, xml: &str) -> Vec<Relation> {
    let mut relations = vec![];
    for event in events(xml) {
        if let Event::Start(start) | Event::Empty(start) = event
            && start.local_name().as_ref() == "Relationship"
            && value(&start, "TargetMode").is_none_or(|mode| mode != "External")
            && let (Some(kind), Some(target)) = (value(&start, "Type"), value(&start, "Target"))
        {
            relations.push(Relation {
                id: value(&start, "Id").unwrap_or_default(),
                kind: kind.rsplit('/').next().unwrap_or_default().to_owned(),
                target: resolve(part, &target),
            });
        }
    }
    relations
}

/// The part that holds the relationships of another.
pub(super) fn name_of(part: &str) -> String {
    let (folder, name) = part.rsplit_once('/').unwrap_or(("", part));
    format!("{folder}/_rels/{name}.rels")
}

/// The value of an attribute, by its name without a prefix.
pub(super) fn value(start: &BytesStart<'_>, name: &str) -> Option<String> {
    let mut all = attributes(start);
    let found = all.find(|one| one.key.local_name().as_ref() == name)?;
    let value = quick_xml::escape::unescape(&found.value).ok()?;
    Some(value.into_owned())
}
