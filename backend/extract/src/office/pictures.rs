//! Pictures inside of Office documents, whose text has to be recognized: which there are, and where they stand in the text.

use std::collections::{HashMap, HashSet};

use super::{
    inserts, metafile, names,
    showing::{self, ShowingPart},
    undrawn,
};
use crate::{
    document::{UnreadPage, UnreadReason},
    error::ExtractError,
    format::{Format, Medium, extension},
    limits::Bounds,
    package::{Package, is_picture},
    picture::{self, PageImage},
};

/// Pictures of so many bytes are looked at, whatever they are.
pub(super) const LARGE_BYTES: u64 = 4 * 1024;
/// What a word takes, in pixels. Smaller pictures of fewer bytes are bullets and lines.
const LEAST_WIDTH: u32 = 40;
const LEAST_HEIGHT: u32 = 12;
/// The most pictures of a document that are looked at.
const MOST: usize = 500;
/// The number of the first picture: pages come before.
const FIRST: u32 = 1_000_001;

/// A picture of a document.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Picture {
    /// Its name in the container; empty for one that stands for all that are too many.
    target: String,
    /// The parts that show it, and the names that it has there, where that is known.
    shown: Vec<(String, String)>,
    /// True if it is shown in the place of objects of other programs alone, which are counted.
    pub(super) is_preview: bool,
}

/// The pictures that parts of a document show, in the order of their numbers.
pub(super) fn of(
    package: &mut Package<'_>,
    parts: &[ShowingPart],
    bounds: &Bounds,
) -> Result<Vec<Picture>, ExtractError> {
    let mut found: Vec<Picture> = vec![];
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut small: HashSet<&str> = HashSet::new();
    // The background of a sheet is decoration, and the preview of an object in it stands for the object.
    for part in parts.iter().filter(|part| !showing::is_sheet(&part.name)) {
        for relation in &part.relations {
            let target = relation.target.as_str();
            let is_unshown =
                relation.kind != "image" || metafile::is_one(target) || undrawn::is_drawing(target);
            if is_unshown || small.contains(target) {
                continue;
            }
            let place = match places.get(target) {
                Some(place) => *place,
                None if found.len() > MOST => continue,
                None if !is_large(package, target, bounds)? => {
                    small.insert(target);
                    continue;
                }
                None if found.len() == MOST => {
                    found.push(Picture::default());
                    continue;
                }
                None => {
                    places.insert(target, found.len());
                    found.push(Picture {
                        target: target.to_owned(),
                        shown: vec![],
                        is_preview: true,
                    });
                    found.len() - 1
                }
            };
            found[place].is_preview &= part.previews.contains(&relation.id);
            if part.is_in_text {
                let shown = (part.name.clone(), relation.id.clone());
                found[place].shown.push(shown);
            }
        }
    }
    Ok(found)
}

/// Counts the pictures that may hold text and cannot be looked at, each once: metafiles, drawings, and small pictures that are broken. Those
/// that are shown in the place of objects alone count with these, and drawings beside a picture of the same count with it, if it is looked at or
/// counts itself.
pub(super) fn count_undrawn(
    package: &mut Package<'_>,
    parts: &[ShowingPart],
    bounds: &Bounds,
) -> Result<usize, ExtractError> {
    let mut targets: HashSet<&str> = HashSet::new();
    // Pictures that are looked at or count themselves.
    let mut seen: HashMap<&str, bool> = HashMap::new();
    for part in parts.iter().filter(|part| !showing::is_sheet(&part.name)) {
        let named = part.relations.iter().filter(|one| one.kind == "image");
        let pictures = named
            .clone()
            .filter(|one| !undrawn::is_drawing(&one.target));
        let pictures: HashMap<&str, &str> = pictures
            .map(|one| (one.id.as_str(), one.target.as_str()))
            .collect();
        for one in named.filter(|one| !part.previews.contains(&one.id)) {
            let double = part.doubles.get(&one.id);
            let picture = double.and_then(|id| pictures.get(id.as_str()).copied());
            let is_double = match picture {
                None => false,
                Some(picture) => match seen.get(picture).copied() {
                    Some(counts) => counts,
                    None => {
                        let counts = is_large(package, picture, bounds)?
                            || is_undrawn(package, picture, bounds)?;
                        seen.insert(picture, counts);
                        counts
                    }
                },
            };
            if !is_double {
                targets.insert(&one.target);
            }
        }
    }
    let mut count = 0;
    for target in targets {
        count += usize::from(is_undrawn(package, target, bounds)?);
    }
    Ok(count)
}

/// True if a file is a picture that may hold text and is not looked at.
fn is_undrawn(
    package: &mut Package<'_>,
    name: &str,
    bounds: &Bounds,
) -> Result<bool, ExtractError> {
    if metafile::is_one(name) {
        return is_large(package, name, bounds);
    }
    let is_drawing = undrawn::is_drawing(name);
    let claimed = package.claimed_bytes(name).filter(|_| is_picture(name));
    let read = match claimed {
        None => return Ok(false),
        Some(_) if is_drawing => package.read_begin(name, undrawn::HEADER_BYTES),
        // Larger ones are looked at, whatever they are.
        Some(LARGE_BYTES..) => return Ok(false),
        Some(_) if undrawn::has_no_decoder(name) => return Ok(false),
        Some(_) => package.read(name),
    };
    match read {
        Ok(bytes) if is_drawing => Ok(undrawn::may_hold_text(&bytes.unwrap_or_default())),
        Ok(bytes) => Ok(undrawn::is_undecodable(&bytes.unwrap_or_default(), bounds)),
        Err(error @ ExtractError::TooLarge { .. }) => Err(error),
        // Others than drawings are told of when they are looked at.
        Err(_) => Ok(is_drawing),
    }
}

/// True if a file is a picture that may hold text.
fn is_large(package: &mut Package<'_>, name: &str, bounds: &Bounds) -> Result<bool, ExtractError> {
    let claimed = package.claimed_bytes(name).filter(|_| is_picture(name));
    let Some(length) = claimed else {
        return Ok(false);
    };
    let read = match metafile::is_one(name) {
        // A long one is not unpacked for its size.
        true => package.read_begin(name, metafile::HEADER_BYTES),
        false if length >= LARGE_BYTES => return Ok(true),
        false => package.read(name),
    };
    match read {
        Ok(bytes) => Ok(may_hold_text(
            name,
            &bytes.unwrap_or_default(),
            length,
            bounds,
        )),
        Err(error @ ExtractError::TooLarge { .. }) => Err(error),
        // Told of when it is looked at.
        Err(_) => Ok(true),
    }
}

/// True if a picture of so many bytes has the pixels of a word, by the first of them, or is large. A metafile says how large it is shown,
/// whatever it takes, and counts by its bytes where it does not.
fn may_hold_text(name: &str, bytes: &[u8], length: u64, bounds: &Bounds) -> bool {
    let is_large = length >= LARGE_BYTES;
    match metafile::is_one(name) {
        true => metafile::dimensions(bytes).map_or(is_large, has_word),
        false => is_large || picture::dimensions(bytes, bounds).is_ok_and(has_word),
    }
}

/// True if a word fits in a picture of this width and height.
pub(super) fn has_word((width, height): (u32, u32)) -> bool {
    width >= LEAST_WIDTH && height >= LEAST_HEIGHT
}

/// The marks of pictures: a part that shows one, the name that it has there, and the mark.
pub(super) fn marks(pictures: &[Picture]) -> impl Iterator<Item = (&str, &str, String)> {
    (FIRST..).zip(pictures).flat_map(|(number, picture)| {
        let shown = picture.shown.iter();
        shown.map(move |(part, id)| (part.as_str(), id.as_str(), inserts::keep(number)))
    })
}

/// Puts pictures of which nobody knows where they are shown behind the text, which is `end` bytes long, and keeps one place of each other
/// one. Whoever wrote the document may know the marks.
pub(super) fn settle(unread: &mut Vec<UnreadPage>, pictures: &[Picture], end: usize) {
    let numbered = (FIRST..).zip(pictures);
    let elsewhere = numbered.filter(|(_, picture)| picture.shown.is_empty());
    unread.extend(elsewhere.map(|(number, _)| page_at(number, end)));
    let mut seen = HashSet::new();
    unread.retain_mut(|it| match numbered_of(pictures, it.page) {
        Some(picture) => {
            if picture.is_preview {
                it.reason = UnreadReason::Preview;
            }
            seen.insert(it.page)
        }
        None => false,
    });
}

/// Takes the marks of pictures out of a text, and gives where they were: between blocks, so that text can be put there.
pub(super) fn taken_out(text: &str) -> (String, Vec<UnreadPage>) {
    let mut rest = String::with_capacity(text.len());
    let (mut unread, mut waiting) = (vec![], vec![]);
    let place = |waiting: &mut Vec<u32>, at: usize| {
        let pages = waiting.drain(..).map(|page| page_at(page, at));
        pages.collect::<Vec<_>>()
    };
    let mut lines = text.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let (plain, mut numbers) = inserts::kept(line);
        let is_blank = plain.trim().is_empty();
        let is_alone = is_blank && !numbers.is_empty();
        waiting.append(&mut numbers);
        if is_alone {
            // One of the two lines around it parts the blocks, and items of a list have none between them.
            lines.next_if(|line| line.trim().is_empty());
            let goes_on = lines.peek().is_some_and(|line| is_item(line));
            if goes_on && rest.ends_with("\n\n") && rest.lines().rev().nth(1).is_some_and(is_item) {
                rest.pop();
            }
        }
        if is_blank {
            unread.extend(place(&mut waiting, rest.len()));
        }
        if !is_alone {
            rest.push_str(&plain);
        }
    }
    unread.extend(place(&mut waiting, rest.len()));
    (rest, unread)
}

/// Whether a line begins an item of a list.
fn is_item(line: &str) -> bool {
    let line = line.trim_start();
    let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with("- ") || (number.len() < line.len() && number.starts_with(". "))
}

/// A picture that belongs in this place.
fn page_at(page: u32, at: usize) -> UnreadPage {
    UnreadPage {
        page,
        begin: at,
        end: at,
        reason: UnreadReason::Picture,
    }
}

/// The pictures of a document of Office 97 to 2003 that can be looked at, each once, in the order of their numbers. `undoc` finds those of
/// Word alone.
pub(super) fn of_binary<'a>(
    document: &'a undoc::Document,
    bounds: &Bounds,
) -> Vec<&'a undoc::Resource> {
    all_of_binary(document, bounds, false)
}

/// How many metafiles it has, none of which can be looked at.
pub(super) fn metafiles_of_binary(document: &undoc::Document, bounds: &Bounds) -> u32 {
    let count = all_of_binary(document, bounds, true).len();
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// The metafiles or the other pictures that may hold text.
fn all_of_binary<'a>(
    document: &'a undoc::Document,
    bounds: &Bounds,
    are_metafiles: bool,
) -> Vec<&'a undoc::Resource> {
    let named = document.resources.iter();
    let large = named.filter(|(_, one)| {
        let file = one.filename.as_deref().unwrap_or_default();
        let length = one.data.len() as u64;
        metafile::is_one(file) == are_metafiles && may_hold_text(file, &one.data, length, bounds)
    });
    let mut large: Vec<_> = large.collect();
    // Their names end with numbers.
    large.sort_by_key(|(name, _)| (name.len(), *name));
    let mut seen = HashSet::new();
    large.retain(|(_, one)| seen.insert(&one.data));
    large.into_iter().map(|(_, one)| one).collect()
}

/// Where those are looked at, behind a text that is `end` bytes long; one page stands for all that are too many.
pub(super) fn pages_of_binary(
    document: &undoc::Document,
    bounds: &Bounds,
    end: usize,
) -> Vec<UnreadPage> {
    let numbered = (FIRST..).zip(of_binary(document, bounds));
    let looked_at = numbered.take(MOST + 1);
    looked_at.map(|(page, _)| page_at(page, end)).collect()
}

/// The images of pictures of a document of Office Open XML. Pictures that cannot be shown have none.
pub(super) fn images(
    bytes: &[u8],
    format: Format,
    pages: &[u32],
    bounds: &Bounds,
    mut give: impl FnMut(PageImage),
) -> Result<(), ExtractError> {
    let mut package = names::open(bytes, format, bounds)?;
    let parts = showing::of(&mut package, format)?;
    let pictures = of(&mut package, &parts, bounds)?;
    for page in pages {
        if let Some(picture) = numbered_of(&pictures, *page)
            && let Some(bytes) = package.read(&picture.target)?
            && let Some(image) = image(&bytes, &picture.target, *page, bounds)
        {
            give(image);
        }
    }
    Ok(())
}

/// Likewise of one of Office 97 to 2003.
pub(super) fn images_of_binary(
    document: &undoc::Document,
    pages: &[u32],
    bounds: &Bounds,
    mut give: impl FnMut(PageImage),
) {
    let mut pictures = of_binary(document, bounds);
    pictures.truncate(MOST);
    for page in pages {
        if let Some(picture) = numbered_of(&pictures, *page)
            && let Some(name) = &picture.filename
            && let Some(image) = image(&picture.data, name, *page, bounds)
        {
            give(image);
        }
    }
}

fn numbered_of<T>(pictures: &[T], page: u32) -> Option<&T> {
    pictures.get(usize::try_from(page.checked_sub(FIRST)?).ok()?)
}

/// The image of a file of this name.
fn image(bytes: &[u8], name: &str, page: u32, bounds: &Bounds) -> Option<PageImage> {
    let format = Format::of_extension(&extension(name))?;
    if format.medium() != Medium::Picture {
        return None;
    }
    let image = picture::frame(bytes, format, 1, bounds).ok()?;
    Some(PageImage { page, ..image })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_pictures_are_between_blocks() {
        let [one, two, three] = [1, 2, 3].map(inserts::keep);
        let text = format!("before\n\n{one}\n\n| a {two} | b |\n| --- | --- |\n\nafter {three}\n");
        let (text, unread) = taken_out(&text);
        assert_eq!(text, "before\n\n| a | b |\n| --- | --- |\n\nafter \n");
        let places: Vec<_> = unread
            .iter()
            .map(|it| (it.page, &text[..it.begin]))
            .collect();
        assert_eq!(
            places,
            [
                (1, "before\n\n"),
                (2, "before\n\n| a | b |\n| --- | --- |\n"),
                (3, text.as_str())
            ]
        );
    }

    #[test]
    fn a_list_stays_one() {
        let text = format!("- a\n\n{}\n\n- b\n\nend\n", inserts::keep(1));
        let (text, unread) = taken_out(&text);
        assert_eq!(text, "- a\n- b\n\nend\n");
        assert_eq!(unread[0].begin, 4);
    }
    #[test]
    fn pictures_beyond_the_most_are_one_that_cannot_be_shown() {
        let mut document = undoc::Document::default();
        for number in 0..MOST + 20 {
            let mut data = number.to_le_bytes().to_vec();
            data.resize(usize::try_from(LARGE_BYTES).unwrap(), 0);
            let name = format!("image{number}.png");
            let picture = undoc::Resource::image(data, Some(name.clone()));
            document.add_resource(name, picture);
        }
        let pages = pages_of_binary(&document, &Bounds::default(), 7);
        assert_eq!(pages.len(), MOST + 1);
        assert!(pages.iter().all(|it| it.begin == 7));
        let mut pictures = of_binary(&document, &Bounds::default());
        assert_eq!(pictures[10].filename.as_deref(), Some("image10.png"));
        pictures.truncate(MOST);
        assert!(numbered_of(&pictures, pages[MOST - 1].page).is_some());
        assert!(numbered_of(&pictures, pages[MOST].page).is_none());
    }

    #[test]
    fn metafiles_of_word_97_are_counted_and_not_looked_at() {
        let mut document = undoc::Document::default();
        let names = [
            "image1.emf",
            "image2.wmf",
            "image3.emf",
            "image4.png",
            "image5.wmf",
        ];
        for (number, name) in names.into_iter().enumerate() {
            // The first and the third are the same, and the last does not say its size.
            let length = if number == 4 { 100 } else { 5_000 };
            let data = vec![u8::try_from(number % 2).unwrap(); length];
            let picture = undoc::Resource::image(data, Some(name.to_owned()));
            document.add_resource(name.to_owned(), picture);
        }
        let bounds = Bounds::default();
        assert_eq!(metafiles_of_binary(&document, &bounds), 2);
        assert_eq!(pages_of_binary(&document, &bounds, 0).len(), 1);
    }
}
