//! Presentations that are made here, and one that PowerPoint wrote.

use std::{fs, io::Cursor, path::Path};

use undoc::Document;

use super::{
    Read,
    made::{
        BODY, Deck, HALF_BODY, NOTES, OTHER, TITLE, anchor, atom, cell, container, file, file_of,
        group, items, master_style, numbered, numbers, shape, style, table, tagged, text, text_box,
        wide,
    },
    read, slides,
};
use crate::{
    error::{Bound, ExtractError},
    format::Format,
    limits::Bounds,
    office::{binary, blips, inserts::Inserts, written},
};

impl Deck {
    fn read(&self) -> Result<Document, ExtractError> {
        let (user, content) = self.streams();
        slides(&user, &content, &[], &Bounds::default()).map(|read| read.document)
    }

    fn markdown(&self) -> String {
        markdown(&mut self.read().unwrap())
    }
}

fn markdown(document: &mut Document) -> String {
    written(document, Inserts::default()).unwrap().markdown
}

#[test]
fn lists_and_tables_are_those_that_powerpoint_shows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/documents/ppt");
    let bytes = fs::read(folder.join("legacy_sample.ppt")).unwrap();
    let reference = fs::read_to_string(folder.join("legacy_sample.ppt.golden.md")).unwrap();
    let Read {
        mut document,
        lost,
        unread,
    } = read(&bytes, &Bounds::default()).unwrap();
    assert!(lost.is_empty(), "{lost:?}");
    assert_eq!(unread, 0);
    assert_eq!(document.metadata.page_count, Some(3));
    let markdown = markdown(&mut document);
    let plain = |line: &str| line.trim_start_matches("##").trim().to_owned();
    let lines: Vec<String> = markdown.lines().map(plain).collect();
    for line in reference.lines().filter(|line| !line.starts_with("| -")) {
        assert!(
            lines.contains(&plain(line)),
            "{line:?} is not in {markdown}"
        );
    }
    assert!(markdown.contains("Second line of notes."));
    assert!(!markdown.contains("Click to edit"));
}

#[test]
fn tables_stand_in_groups_and_have_merged_cells() {
    let cells = [
        cell([0, 0, 2_000, 1_000], "head"),
        cell([0, 1_000, 1_000, 2_000], "a\rb"),
        cell([1_000, 1_000, 2_000, 2_000], "c"),
        // A line.
        shape(&[anchor([0, 1_000, 2_000, 1_000])]),
    ];
    let right_to_left = table(5, &cells[1..]);
    let shapes = group(&[
        shape(&[]),
        group(&[shape(&[]), table(3, &cells)]),
        right_to_left,
    ]);
    assert_eq!(
        Deck::of(&[shapes, table(0, &cells[2..])]).markdown(),
        "| head |  |\n| --- | --- |\n| a b | c |\n\n| c | a b |\n| --- | --- |\n\nc\n"
    );
}

#[test]
fn cells_that_stand_elsewhere_are_text() {
    let wide = (0..101).map(|at| cell([at * 10, 0, at * 10 + 10, 10], "x"));
    let document = Deck::of(&[table(1, &wide.collect::<Vec<_>>())])
        .read()
        .unwrap();
    assert_eq!(document.sections[0].content.len(), 101);
    let bounds = Bounds {
        cells: 3,
        ..Bounds::default()
    };
    let cells = [cell([0, 0, 9, 9], "a"), cell([9, 9, 18, 18], "b")];
    let (user, content) = Deck::of(&[table(1, &cells)]).streams();
    assert_eq!(
        slides(&user, &content, &[], &bounds).unwrap_err(),
        ExtractError::too_large(Bound::Cells, 3_u64)
    );
}

#[test]
fn bullets_are_those_of_the_master_unless_a_paragraph_says_otherwise() {
    let lines = "one\rtwo\rthree\rfour";
    let styled = style(
        &[
            (4, 0, None),
            (4, 1, None),
            (6, 0, Some(false)),
            (5, 2, None),
        ],
        &[(19, 0)],
    );
    let deck = Deck {
        master: [
            master_style(1, &[true, true, false]),
            master_style(7, &[false]),
        ]
        .concat(),
        slides: vec![
            text_box(&[text(BODY, lines, std::slice::from_ref(&styled))]),
            text_box(&[text(HALF_BODY, lines, std::slice::from_ref(&styled))]),
            text_box(&[text(OTHER, lines, &[styled])]),
        ],
        ..Deck::default()
    };
    assert_eq!(
        deck.markdown(),
        "- one\n  - two\n\nthree\n\nfour\n\none\n\n- two\n\nthree\n\nfour\n\none\n\ntwo\n\nthree\n\nfour\n"
    );
}

#[test]
fn numbers_begin_where_they_are_told_to() {
    // More items than their names can tell apart.
    let lines: Vec<String> = (0..20).map(|line| format!("line {line}")).collect();
    let units: Vec<u32> = lines.iter().map(|line| line.len() as u32 + 1).collect();
    let paragraphs: Vec<_> = units.iter().map(|units| (*units, 0, Some(true))).collect();
    let characters: Vec<_> = (0_u16..)
        .zip(&units)
        .map(|(at, units)| (*units, at % 16))
        .collect();
    let mut own = vec![Some((3, 4)); 17];
    own.extend([None, Some((3, 4)), Some((1, 2))]);
    let content = text(OTHER, &lines.join("\r"), &[style(&paragraphs, &characters)]);
    let markdown = Deck::of(&[numbered(content, &own)]).markdown();
    let numbers: Vec<&str> = markdown
        .lines()
        .map(|line| line.split_once("line ").unwrap().0.trim())
        .collect();
    assert_eq!(numbers[..3], ["4.", "5.", "6."]);
    assert_eq!(numbers[16..], ["20.", "-", "4.", "2."]);
}

#[test]
fn texts_of_the_outline_have_numbers_of_their_own() {
    let styled = style(&[(4, 0, Some(true))], &[(4, 0)]);
    let number = |slide: u32, place: u16| {
        let header = atom(0x0FAF, place, &numbers(&[slide, BODY]));
        [header, items(&[Some((3, 7))])].concat()
    };
    let added = container(0x0FAE, 0, &[number(256, 1), number(257, 0)]);
    let named = |place: u32| text_box(&[atom(0x0F9E, 0, &numbers(&[place]))]);
    let deck = Deck {
        slides: vec![[named(1), named(0), named(9)].concat()],
        outline: [
            text(TITLE, "Title", &[]),
            text(BODY, "one", std::slice::from_ref(&styled)),
            text(BODY, "two", &[styled]),
        ]
        .concat(),
        document: container(0x07D0, 0, &[tagged(&[added])]),
        ..Deck::default()
    };
    assert_eq!(deck.markdown(), "# Title\n\n7. one\n- two\n");
}

#[test]
fn links_fields_lines_and_notes() {
    let link = container(
        0x0FD7,
        0,
        &[
            atom(0x0FD3, 0, &numbers(&[5])),
            atom(0x0FBA, 0, &wide("its name")),
            atom(0x0FBA, 1, &wide("https://example.com/")),
        ],
    );
    let linked = [
        container(0x0FF2, 0, &[atom(0x0FF3, 0, &numbers(&[0, 5, 0, 0]))]),
        atom(0x0FDF, 0, &numbers(&[4, 8])),
    ];
    let deck = Deck {
        slides: vec![text_box(&[
            text(OTHER, "See here\u{B}and there *", &linked),
            atom(0x0FD8, 0, &numbers(&[19])),
        ])],
        notes: [
            text_box(&[text(OTHER, "7", &[])]),
            text_box(&[text(NOTES, "said aloud", &[])]),
        ]
        .concat(),
        document: container(0x0409, 0, &[link]),
        ..Deck::default()
    };
    assert_eq!(
        deck.markdown(),
        "See [here](https://example.com/) and there\n\n> **Notes:**\n> said aloud\n"
    );
}

#[test]
fn pictures_of_slides_and_masters_are_counted_once() {
    use blips::made::{bitmap, drawing, entry, group, shape_of};

    let photo = bitmap(300, 200);
    let logo_at = u32::try_from(photo.len()).unwrap();
    let pictures = [photo, bitmap(120, 60), bitmap(8, 8)].concat();
    let store = [0, logo_at, 2 * logo_at].map(|place| entry(place, &[]));
    let said = text_box(&[text(OTHER, "words", &[])]);
    let deck = |slides: &[Vec<u8>]| {
        let deck = Deck {
            slides: slides.to_vec(),
            master: container(0x040C, 0, &[drawing(&[shape_of(2)], 1)]),
            document: container(0x040B, 0, &[group(&store)]),
            ..Deck::default()
        };
        let (user, content) = deck.streams();
        file_of(&[
            ("/Current User", &user),
            ("/PowerPoint Document", &content),
            ("/Pictures", &pictures),
        ])
    };
    let bounds = Bounds::default();
    let read = |slides: &[Vec<u8>]| {
        let (document, has_pictures) = binary(&deck(slides), Format::Ppt, &bounds).unwrap();
        (document.unread_objects, has_pictures)
    };
    // The logo of the master, the photo of two slides, and no bullet.
    let shown = [
        [said.clone(), shape_of(1), shape_of(3)].concat(),
        super::made::group(&[shape_of(1)]),
        said.clone(),
    ];
    assert_eq!(read(&shown), (2, true));
    assert_eq!(read(&[said]), (1, true));
}

#[test]
fn files_that_are_cut_off_or_lie_are_errors_or_lose_text() {
    let styled = style(&[(4, 0, Some(true))], &[(4, 0)]);
    let deck = Deck {
        master: master_style(5, &[true, false]),
        ..Deck::of(&[
            table(1, &[cell([0, 0, 10, 10], "a")]),
            numbered(text(BODY, "one", &[styled]), &[Some((3, 4))]),
        ])
    };
    let (user, content) = deck.streams();
    let bounds = Bounds::default();
    assert!(slides(&user, &content, &[], &bounds).is_ok());
    for length in 0..user.len() {
        // What stands behind the fields that are read may be missing.
        let read = slides(&user[..length], &content, &[], &bounds);
        assert!(length >= 20 || read.is_err(), "{length}");
    }
    for length in 0..content.len() {
        let read = slides(&user, &content[..length], &[], &bounds);
        assert!(matches!(read, Err(ExtractError::Damaged(_))), "{length}");
    }
    // Each field claims more, or something else, in turn.
    for place in 0..content.len() {
        for byte in [0, 0xFF] {
            let mut lying = content.clone();
            lying[place] = byte;
            let _ = slides(&user, &lying, &[], &bounds);
        }
    }
}

#[test]
fn groups_without_end_are_refused() {
    let mut shapes = text_box(&[text(OTHER, "deep", &[])]);
    for _ in 0..300 {
        shapes = group(&[shapes]);
    }
    let most = Bounds::default().depth;
    let refused = ExtractError::too_large(Bound::Depth, most);
    assert_eq!(Deck::of(&[shapes.clone()]).read().unwrap_err(), refused);
    assert_eq!(
        Deck::of(&[table(1, &[shapes])]).read().unwrap_err(),
        refused
    );
}

#[test]
fn text_that_is_named_again_and_again_has_an_end() {
    let deck = Deck {
        slides: vec![text_box(&[atom(0x0F9E, 0, &numbers(&[0]))]).repeat(1_000)],
        outline: text(BODY, &"x".repeat(10_000), &[]),
        ..Deck::default()
    };
    let (user, content) = deck.streams();
    let mut bounds = Bounds {
        markdown_bytes: 1_000_000,
        ..Bounds::default()
    };
    assert_eq!(
        slides(&user, &content, &[], &bounds).unwrap_err(),
        ExtractError::too_large(Bound::MarkdownBytes, 1_000_000_u64)
    );
    bounds.elements = 10_000;
    assert_eq!(
        slides(&user, &content, &[], &bounds).unwrap_err(),
        ExtractError::too_large(Bound::Elements, 10_000_u64)
    );
}

#[test]
fn later_edits_count_and_none_names_a_later_one() {
    let (mut user, mut content) = Deck::of(&[text_box(&[text(OTHER, "old", &[])])]).streams();
    let first = u32::try_from(content.len() - 36).unwrap();
    let drawn = group(&[text_box(&[text(OTHER, "new", &[])])]);
    let drawing = container(0x040C, 0, &[container(0xF002, 0, &[drawn])]);
    let slide_at = u32::try_from(content.len()).unwrap();
    content.extend(container(0x03EE, 0, &[drawing]));
    let directory_at = u32::try_from(content.len()).unwrap();
    content.extend(atom(0x1772, 0, &numbers(&[1 << 20 | 4, slide_at])));
    let edit_at = u32::try_from(content.len()).unwrap();
    content.extend(atom(
        0x0FF5,
        0,
        &numbers(&[0, 0, first, directory_at, 1, 0, 0]),
    ));
    user[16..20].copy_from_slice(&edit_at.to_le_bytes());
    let mut read = read(&file(&user, &content), &Bounds::default()).unwrap();
    assert_eq!(markdown(&mut read.document), "new\n");
    // The first edit names the second one as the one before it.
    let before = first as usize + 16;
    content[before..before + 4].copy_from_slice(&edit_at.to_le_bytes());
    let refused = slides(&user, &content, &[], &Bounds::default()).unwrap_err();
    assert!(
        refused.to_string().contains("an edit names a later one"),
        "{refused}"
    );
}

#[test]
fn encrypted_presentations_and_those_without_a_stream_are_refused() {
    let (mut user, content) = Deck::default().streams();
    user[12..16].copy_from_slice(&0xF3D1_C4DF_u32.to_le_bytes());
    let bounds = Bounds::default();
    assert_eq!(
        read(&file(&user, &content), &bounds).unwrap_err(),
        ExtractError::Encrypted
    );
    let mut empty = cfb::CompoundFile::create(Cursor::new(vec![])).unwrap();
    empty.flush().unwrap();
    let refused = read(&empty.into_inner().into_inner(), &bounds).unwrap_err();
    assert!(refused.to_string().contains("Current User"), "{refused}");
    assert!(read(b"no container", &bounds).is_err());
}
