//! Presentations that are cut off, or whose fields claim what is not so.

use super::{
    made::{
        BODY, Deck, OTHER, atom, container, file, items, numbers, shape, style, tagged, text,
        text_box,
    },
    slides,
};
use crate::{
    document::UnreadReason,
    error::{Bound, ExtractError},
    format::Format,
    limits::Bounds,
    office::{binary, inserts::Inserts, written},
};

/// A record that claims to be as long as can be.
fn endless(mut record: Vec<u8>) -> Vec<u8> {
    record[4..8].fill(0xFF);
    record
}

fn said(text_of: &str) -> Vec<u8> {
    text_box(&[text(OTHER, text_of, &[])])
}

fn deck(slides: &[Vec<u8>]) -> Deck {
    Deck {
        slides: slides.to_vec(),
        ..Deck::default()
    }
}

/// The Markdown of streams, and the slides of which text is missing.
fn read((user, content): &(Vec<u8>, Vec<u8>)) -> Result<(String, Vec<u32>), ExtractError> {
    let mut read = slides(user, content, &[], &Bounds::default())?;
    let written = written(&mut read.document, Inserts::default())?;
    Ok((written.markdown, read.lost))
}

/// The streams of a presentation whose directory has another offset for an object.
fn moved(deck: &Deck, object: usize, offset: impl Fn(u32) -> u32) -> (Vec<u8>, Vec<u8>) {
    let (user, mut content) = deck.streams();
    let edit = content.len() - 36;
    let directory = edit - 8 - 4 * (4 + deck.slides.len());
    let entry = directory + 8 + 4 * object;
    let offset = offset(u32::try_from(directory).unwrap());
    content[entry..entry + 4].copy_from_slice(&offset.to_le_bytes());
    (user, content)
}

#[test]
fn records_that_are_cut_off_are_told_of() {
    let kept = |markdown: &str, lost: &[u32]| Ok((markdown.to_owned(), lost.to_vec()));
    let of = |slides: &[Vec<u8>]| read(&deck(slides).streams());
    assert_eq!(of(&[said("a"), said("b")]), kept("a\n\nb\n", &[]));
    // What holds records is read as far as there are any,
    let cut = [said("a"), endless(said("b")), said("c")].concat();
    assert_eq!(of(&[cut, said("d")]), kept("a\n\nb\n\nd\n", &[1]));
    // and others are left out.
    let cut = text_box(&[endless(text(OTHER, "gone", &[]))]);
    assert_eq!(of(&[said("a"), cut.clone()]), kept("a\n", &[2]));
    let short = [said("a"), vec![0xF; 7]].concat();
    assert_eq!(of(&[short]), kept("a\n", &[1]));
    let filled = [said("a"), vec![0; 7]].concat();
    assert_eq!(of(&[filled]), kept("a\n", &[]));
    assert!(matches!(of(&[cut]), Err(ExtractError::Damaged(_))));
    // Slides behind the end of their list are those behind the last one.
    let deck = Deck {
        outline: endless(text(BODY, "gone", &[])),
        ..deck(&[said("a"), said("b")])
    };
    assert_eq!(read(&deck.streams()), kept("a\n", &[2]));
}

#[test]
fn slides_behind_the_last_one_are_told_of_whatever_else_is_lost() {
    let cut = text_box(&[endless(text(OTHER, "gone", &[]))]);
    let mut shapes = vec![said("a"), said("b")];
    shapes.resize(150, cut);
    let (user, mut content) = deck(&shapes).streams();
    let (_, lost) = read(&(user.clone(), content.clone())).unwrap();
    assert_eq!(lost, (3..=102).collect::<Vec<u32>>());
    // The list of slides breaks off at the last one.
    let last = atom(0x03F3, 0, &numbers(&[4 + 149, 0, 0, 256 + 149, 0]));
    let mut records = content.windows(last.len());
    let listed = records.position(|record| record == last).unwrap();
    content[listed + 4..listed + 8].fill(0xFF);
    let (_, lost) = read(&(user, content)).unwrap();
    assert_eq!(lost, (3..=101).chain([150]).collect::<Vec<u32>>());
}

#[test]
fn slides_and_notes_that_are_not_there_are_told_of() {
    let deck = deck(&[said("a"), said("b"), said("c")]);
    // A directory that names itself, and an offset behind the end.
    let nowhere: [fn(u32) -> u32; 2] = [|directory| directory, |_| u32::MAX];
    for offset in nowhere {
        let (markdown, lost) = read(&moved(&deck, 5, offset)).unwrap();
        assert_eq!((markdown.as_str(), lost), ("a\n\nc\n", vec![2]));
        // The notes of all of them.
        let (markdown, lost) = read(&moved(&deck, 3, offset)).unwrap();
        assert_eq!((markdown.as_str(), lost), ("a\n\nb\n\nc\n", vec![1, 2, 3]));
        let refused = read(&moved(&deck, 1, offset)).unwrap_err().to_string();
        assert!(refused.contains("its document is missing"), "{refused}");
    }
    // Whoever uploaded it is told.
    let (user, content) = moved(&deck, 5, |_| u32::MAX);
    let (document, _) = binary(&file(&user, &content), Format::Ppt, &Bounds::default()).unwrap();
    let unread: Vec<_> = document
        .unread
        .iter()
        .map(|it| (it.page, it.reason))
        .collect();
    assert_eq!(unread, [(2, UnreadReason::Unreadable)]);
    assert_eq!(document.unread[0].begin, document.markdown.len());
}

#[test]
fn a_presentation_without_a_slide_that_is_there_is_damaged() {
    let refused = read(&moved(&deck(&[said("a")]), 4, |_| u32::MAX)).unwrap_err();
    assert!(
        refused.to_string().contains("its slides are missing"),
        "{refused}"
    );
}

#[test]
fn directories_and_edits_that_name_themselves_have_an_end() {
    let (user, content) = deck(&[said("a")]).streams();
    let edit = content.len() - 36;
    let with = |place: usize, value: u32| {
        let mut content = content.clone();
        content[place..place + 4].copy_from_slice(&value.to_le_bytes());
        read(&(user.clone(), content))
    };
    let at = u32::try_from(edit).unwrap();
    let refused =
        |result: Result<(String, Vec<u32>), ExtractError>| result.unwrap_err().to_string();
    assert!(refused(with(edit + 16, at)).contains("names a later one"));
    assert!(refused(with(edit + 20, at)).contains("directory of an edit is missing"));
    // A directory of more objects than it has.
    let directory = edit - 8 - 4 * 5;
    assert_eq!(with(directory + 8, 0xFFF0_0001).unwrap().0, "a\n");
}

#[test]
fn groups_that_have_no_end_are_refused_at_any_depth() {
    for kind in [0xF002, 0xF003] {
        let deep = endless(container(kind, 0, &[])).repeat(10_000);
        let refused = ExtractError::too_large(Bound::Depth, Bounds::default().depth);
        assert_eq!(read(&deck(&[deep]).streams()), Err(refused));
    }
}

#[test]
fn counts_beyond_the_text_are_those_of_the_text() {
    const MOST: u32 = u32::MAX;
    let styled = style(&[(MOST, 0, Some(true))], &[(MOST, 15)]);
    let links = [
        container(0x0FF2, 0, &[atom(0x0FF3, 0, &numbers(&[0, MOST, 0, 0]))]),
        atom(0x0FDF, 0, &numbers(&[0, MOST])),
        atom(0x0FD8, 0, &numbers(&[MOST])),
    ];
    let content = text(OTHER, "kept", &[vec![styled], links.to_vec()].concat());
    // The first item has tags without end.
    let added = [
        atom(0x0FAC, 0, &numbers(&[0, 0, 0x200, MOST])),
        items(&[Some((3, u16::MAX))]),
        atom(0x0FAF, u16::MAX >> 4, &numbers(&[MOST, MOST])),
    ];
    let shapes = shape(&[
        container(0xF011, 0, &[tagged(&added)]),
        atom(0xF00F, 0, &numbers(&[MOST; 4])),
        atom(0xF122, u16::MAX >> 4, &numbers(&[MOST, MOST])),
        container(0xF00D, 0, &[atom(0x0F9E, 0, &numbers(&[MOST])), content]),
    ]);
    let (markdown, lost) = read(&deck(&[shapes]).streams()).unwrap();
    assert_eq!((markdown.as_str(), lost.len()), ("- kept\n", 0));
}

#[test]
fn blank_lines_count() {
    let (user, content) = deck(&[said(&"\r".repeat(20_000))]).streams();
    let bounds = Bounds {
        elements: 15_000,
        ..Bounds::default()
    };
    assert_eq!(
        slides(&user, &content, &[], &bounds).unwrap_err(),
        ExtractError::too_large(Bound::Elements, bounds.elements)
    );
}
