//! Documents that LibreOffice wrote, and that are made piece by piece.

use super::*;

/// The streams of a document that LibreOffice wrote.
fn streams() -> (Vec<u8>, Vec<u8>) {
    let file = include_bytes!("../../../tests/data/margins_libreoffice.doc");
    let mut file = CompoundFile::open(file).unwrap();
    ["/WordDocument", "/1Table"]
        .map(|name| file.read(name).unwrap())
        .into()
}

#[test]
fn margins_comments_and_boxes_are_found() {
    let (word, table) = streams();
    let bounds = Bounds::default();
    let stories = of(&word, &table, &bounds).unwrap();
    let margins = |kind: &str| {
        let pages = ["the first page", "odd pages", "even pages"];
        pages.map(|pages| format!("{kind} of {pages}"))
    };
    assert_eq!(stories.headers, margins("Header"));
    assert_eq!(stories.footers, margins("Footer"));
    assert_eq!(
        stories.comments,
        "> **Comment by Ann:** Is it June?\n> Ask Bo.\n\n> **Comment by B\u{f6} \u{c7}elik:** July, said Ann.\n\n"
    );
    assert_eq!(stories.boxes, ["Words in a text box"]);
    assert!(!stories.has_lost);
    let few = Bounds {
        markdown_bytes: 100,
        ..bounds
    };
    let refused = ExtractError::too_large(Bound::MarkdownBytes, 100);
    assert_eq!(of(&word, &table, &few), Err(refused));
}

#[test]
fn margins_of_all_sections_have_the_text_of_their_boxes() {
    let four = |number: usize| u32::try_from(number).unwrap().to_le_bytes();
    // Separators of notes, and the margins of two sections.
    let margins = [
        ["", "", "", "", "", ""],
        ["Even\r", "Odd\r", "", "Below\r", "First\r", ""],
        ["", "\u{1}Odd 2\r", "", "Below 2\r", "", ""],
    ];
    let margins = margins.as_flattened();
    let ends = margins.iter().scan(0_usize, |end, text| {
        *end += text.len();
        Some(*end)
    });
    let positions = [0].into_iter().chain(ends).chain([0]);
    let mut table: Vec<u8> = positions.flat_map(four).collect();
    let parts = [
        // `undoc` reads the picture in the body.
        (BODY, "Body \u{1}\r".to_owned()),
        (FOOTNOTES, "\u{2} Note \u{1}\r".to_owned()),
        (MARGINS, margins.concat()),
        (BOXES, "Box\u{1}\r".to_owned()),
        (MARGIN_BOXES, "7\rAcme\r".to_owned()),
    ];
    let mut lengths = [0; MARGIN_BOXES + 1];
    let mut text = String::new();
    for (part, one) in &parts {
        lengths[*part] = one.len();
        text.push_str(one);
    }
    // Means nothing.
    lengths[RESERVED] = 9;
    let mut ranges = [[0; 2]; PIECES + 1];
    ranges[MARGIN_TEXTS] = [0, table.len()];
    // One piece: what it is, its length, two positions, flags, its place and properties.
    ranges[PIECES] = [table.len(), 1 + 4 + 8 + 2 + 4 + 2];
    let mut word: Vec<u8> = vec![0; LISTS_AT + 2];
    word.extend_from_slice(&[11, 0]);
    word.extend(lengths.into_iter().flat_map(four));
    word.extend_from_slice(&[34, 0]);
    word.extend(ranges.into_iter().flatten().flat_map(four));
    let place = four(0x4000_0000 | (2 * word.len()));
    word.extend(text.bytes());
    table.push(2);
    for number in [16, 0, text.len()] {
        table.extend(four(number));
    }
    table.extend_from_slice(&[0, 0]);
    table.extend(place);
    table.extend_from_slice(&[0, 0]);

    let stories = of(&word, &table, &Bounds::default()).unwrap();
    assert_eq!(stories.headers, ["First", "Odd", "Even", "Odd 2"]);
    assert_eq!(stories.footers, ["Below", "Below 2", "7", "Acme"]);
    assert_eq!(stories.boxes, ["Box"]);
    assert_eq!((stories.unread, stories.has_lost), (3, false));
    let mut document = undoc::Document::default();
    document.add_section(undoc::Section::new(0));
    stories.add(&mut document, &mut Inserts::default());
    let section = &mut document.sections[0];
    crate::office::put_margins_in(section);
    let lines: Vec<String> = section
        .content
        .iter()
        .filter_map(|block| match block {
            undoc::Block::Paragraph(one) => Some(one.plain_text()),
            _ => None,
        })
        .collect();
    let expected = [
        "First", "Odd", "Even", "Odd 2", "Box", "Below", "Below 2", "Acme",
    ];
    assert_eq!(lines, expected);
}

#[test]
fn margins_of_page_numbers_alone_are_left_out() {
    let footer = |stories: Stories| {
        let mut section = undoc::Section::new(0);
        section.footer = Some(vec![Paragraph::with_text("Page 7 of 9")]);
        let mut document = undoc::Document::default();
        document.add_section(section);
        stories.add(&mut document, &mut Inserts::default());
        let footer = document.sections[0].footer.take().unwrap_or_default();
        let lines = footer.iter().map(Paragraph::plain_text);
        lines.collect::<Vec<String>>()
    };
    let stories = |has_lost: bool, footers: Vec<String>| Stories {
        footers,
        has_lost,
        ..Stories::default()
    };
    let page = "Page \u{13} PAGE \u{14}7\u{15} of \u{13} NUMPAGES \u{14}9\u{15}\r";
    let units: Vec<u16> = page.encode_utf16().collect();
    assert!(footer(stories(false, paragraphs(&units))).is_empty());
    assert_eq!(footer(stories(true, vec![])), ["Page 7 of 9"]);
    let name = vec!["Acme".to_owned()];
    for has_lost in [false, true] {
        assert_eq!(footer(stories(has_lost, name.clone())), name);
    }
}

#[test]
fn pictures_that_float_are_counted_and_boxes_are_not() {
    use crate::office::blips::made::{bitmap, drawing, entry, group, shape, shape_of};

    let mut word: Vec<u8> = vec![0; LISTS_AT + 2];
    // No lengths, and the ranges up to that of drawings.
    word.extend_from_slice(&[0, 0, 51, 0]);
    let ranges_at = word.len();
    word.resize(ranges_at + 51 * 8, 0);
    let picture = entry(u32::try_from(word.len()).unwrap(), &[]);
    word.extend(bitmap(300, 200));
    let box_of_text = shape(&[(0x0080, 0x0001_0000)]);
    let table = [
        group(&[picture]),
        vec![0],
        drawing(&[shape_of(1), box_of_text], 1),
        vec![1],
        drawing(&[shape_of(1)], 1),
    ]
    .concat();
    let range = ranges_at + 8 * DRAWINGS;
    let length = u32::try_from(table.len()).unwrap();
    word[range + 4..range + 8].copy_from_slice(&length.to_le_bytes());
    let stories = of(&word, &table, &Bounds::default()).unwrap();
    let expected = Stories {
        unread: 1,
        ..Stories::default()
    };
    assert_eq!(stories, expected);
}

#[test]
fn pictures_in_the_instructions_of_fields_are_none() {
    let mut stories = Stories::default();
    let text =
        "\u{15}\u{1}\u{13}HYPERLINK \u{1}\u{13}x\u{14}\u{1}\u{15}\u{14}\u{1}\u{14}\u{15}\u{1}";
    stories.count_pictures(&text.encode_utf16().collect::<Vec<u16>>());
    assert_eq!(stories.unread, 3);
}

#[test]
fn text_that_is_cut_off_is_lost() {
    let (word, table) = streams();
    let bounds = Bounds::default();
    for length in (0..word.len()).step_by(7) {
        let stories = of(&word[..length], &table, &bounds).unwrap();
        assert!(stories.has_lost || length > 2_048, "{length}");
    }
    let mut lost = 0;
    for length in (0..table.len()).step_by(7) {
        let stories = of(&word, &table[..length], &bounds).unwrap();
        lost += usize::from(stories.has_lost);
    }
    assert!(lost > 0);
}

#[test]
fn what_is_beside_the_body_of_earlier_versions_is_lost() {
    let mut word = vec![0; 0x60];
    // The length of the body.
    word[0x34] = 9;
    assert_eq!(of_earlier(&word), Stories::default());
    // That of the comments.
    word[0x44] = 1;
    assert!(of_earlier(&word).has_lost);
    assert!(!of_earlier(&word[..0x40]).has_lost);
}

#[test]
fn fields_show_their_results() {
    let text = |text: &str| paragraphs(&text.encode_utf16().collect::<Vec<u16>>());
    assert_eq!(
        text(
            "\u{5}Draft \u{13} REVNUM \u{14}7\u{15} of\t\u{13} IF \u{13} A \u{14}no\u{15}\u{14}9\u{15}\r\rx\u{15}\u{14}y"
        ),
        ["Draft 7 of 9", "xy"]
    );
    let page = "\u{13} PAGE  \\* MERGEFORMAT \u{14}7\u{15}";
    let pages = "\u{13}numpages\u{15}";
    assert_eq!(
        text(&format!(
            "Page {page} of {pages}\rPage {pages}\rRules of the house, {page}\r\u{13} IF {page} \u{14}last\u{15}"
        )),
        ["Rules of the house,", "last"]
    );
    assert_eq!(
        text(&format!(
            "Acme GmbH\t{page}\rPage {page} of {pages}\t\tPrice list\rIBM\u{B}Page {page}\rPage\t{page}\rA\tb"
        )),
        ["Acme GmbH", "Price list", "IBM", "A b"]
    );
    assert_eq!(text("\u{13} left open"), Vec::<String>::new());
}
