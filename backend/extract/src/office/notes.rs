//! Notes of slides. `undoc` looks for them by the number of the slide, where the relationships of the slide name another part.
//! Source: ECMA-376 part 1, section 13.3.5.

use std::collections::{HashMap, hash_map::Entry};

use super::relations;
use crate::{error::ExtractError, package::Package};

/// What `undoc` puts the name of notes in place of.
const SLIDE: &str = "slides/slide";
const NOTES: &str = "notesSlides/notesSlide";

/// Where parts have to stand: the notes of each slide, and the relationships of them.
pub(super) fn places(package: &mut Package<'_>) -> Result<HashMap<String, String>, ExtractError> {
    let named: Vec<(String, String)> = package
        .names()
        .filter_map(|name| Some((name.to_owned(), slide_of(name)?)))
        .collect();
    let mut places = HashMap::new();
    for (relations, slide) in named {
        let Some(xml) = package.read_xml(&relations)? else {
            continue;
        };
        let place = slide.replace(SLIDE, NOTES);
        let mut related = relations::read(&slide, &xml).into_iter();
        // The notes of two slides would be those of neither.
        if let Some(notes) = related.find(|one| one.kind == "notesSlide")
            && place != slide
            && let Entry::Vacant(vacant) = places.entry(notes.target)
        {
            vacant.insert(place);
        }
    }
    let relations: Vec<(String, String)> = places
        .iter()
        .map(|(from, to)| (relations::name_of(from), relations::name_of(to)))
        .collect();
    places.extend(relations);
    Ok(places)
}

/// The name that a part is written under. Notes of no slide are left out: `undoc` would give them to the slide of their number.
pub(super) fn place(name: String, places: &HashMap<String, String>) -> Option<String> {
    match places.get(&name) {
        Some(place) => Some(place.clone()),
        None => (!name.contains("notesSlides/")).then_some(name),
    }
}

/// The slide whose relationships a part holds.
fn slide_of(relations: &str) -> Option<String> {
    let (folder, name) = relations.rsplit_once("/_rels/")?;
    let slide = format!("{folder}/{}", name.strip_suffix(".rels")?);
    slide.contains(SLIDE).then_some(slide)
}
