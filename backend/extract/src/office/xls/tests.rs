//! Streams of workbooks that are made record by record.

use undoc::Block;

use super::*;

const FORMATS: [&str; 8] = [
    "h:mm",
    "yyyy\\-mm\\-dd",
    "0%",
    "[h]:mm",
    "0*d",
    "0.0_d",
    "hh:mm:ss",
    "h\"\u{e9}\"mm",
];

fn record(kind: u16, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap();
    [&kind.to_le_bytes()[..], &length.to_le_bytes(), data].concat()
}

fn halves(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|one| one.to_le_bytes()).collect()
}

/// A workbook whose sheet has these records.
fn workbook(version: u16, more: &[u8], sheet: &[u8]) -> Vec<u8> {
    workbook_of(version, more, &[(WITH_CELLS, sheet)])
}

/// A workbook with these sheets: the kind and the records of each; its styles have the formats in order.
fn workbook_of(version: u16, more: &[u8], sheets: &[(u8, &[u8])]) -> Vec<u8> {
    let mut globals = record(BEGIN, &halves(&[version, WORKBOOK]));
    globals.extend(more);
    for (id, code) in (164..).zip(FORMATS) {
        let text: Vec<u8> = code.chars().map(|c| u8::try_from(c).unwrap()).collect();
        let count = u8::try_from(text.len()).unwrap();
        let mut data = halves(&[id]);
        match version {
            EXCEL_97 => data.extend([count, 0, 0]),
            _ => data.push(count),
        }
        data.extend(text);
        globals.extend(record(FORMAT, &data));
        globals.extend(record(STYLE, &halves(&[0, id, 0])));
    }
    let name: &[u8] = match version {
        EXCEL_97 => b"\x01\0S",
        _ => b"\x01S",
    };
    let end = record(END, &[]);
    // A chart follows the workbook, which no sheet names.
    let chart = [record(BEGIN, &halves(&[version, 0x0020])), end.clone()].concat();
    let listed = sheets.len() * (HEADER_BYTES + 6 + name.len());
    let place = globals.len() + listed + end.len() + chart.len();
    let mut streams = vec![];
    for (kind, records) in sheets {
        let place = u32::try_from(place + streams.len()).unwrap().to_le_bytes();
        globals.extend(record(SHEET, &[&place[..], &[0, *kind], name].concat()));
        let kind = if *kind == CHART { 0x0020 } else { 0x0010 };
        streams.extend(record(BEGIN, &halves(&[version, kind])));
        streams.extend_from_slice(records);
        streams.extend_from_slice(&end);
    }
    [globals, end, chart, streams].concat()
}

fn number(kind: u16, place: [u16; 3], value: f64, more: &[u8]) -> Vec<u8> {
    record(
        kind,
        &[&halves(&place)[..], &value.to_le_bytes(), more].concat(),
    )
}

fn margins_of(above: &[&str], below: &[&str]) -> Margins {
    let owned = |codes: &[&str]| {
        codes
            .iter()
            .map(|&code| code.to_owned())
            .collect::<Vec<_>>()
    };
    Margins::of(&owned(above), &owned(below))
}

/// The cells of the first sheet.
fn cells(stream: &[u8]) -> Vec<Vec<String>> {
    let Rewritten { stream, .. } = rewritten(stream, &Bounds::default()).unwrap().unwrap();
    let document = XlsParser::from_bytes(stream).unwrap().parse().unwrap();
    rows(&document.sections[0])
}

fn rows(section: &undoc::Section) -> Vec<Vec<String>> {
    let Some(Block::Table(table)) = section.content.first() else {
        panic!("{section:?}");
    };
    let rows = table.rows.iter();
    rows.map(|row| row.cells.iter().map(undoc::Cell::plain_text).collect())
        .collect()
}

#[test]
fn numbers_are_shown_by_the_formats_of_their_cells() {
    let whole = |number: u32| (number << 2) | 2;
    let short = |place: [u16; 3], stored: u32| {
        record(
            SHORT_NUMBER,
            &[&halves(&place)[..], &stored.to_le_bytes()].concat(),
        )
    };
    let percent = u32::try_from(0.25_f64.to_bits() >> 32).unwrap();
    let several = [
        halves(&[1, 0, 4]),
        whole(3).to_le_bytes().to_vec(),
        halves(&[5]),
        whole(3).to_le_bytes().to_vec(),
        halves(&[2]),
        (whole(1200) | 1).to_le_bytes().to_vec(),
        halves(&[2]),
    ];
    let sheet = [
        number(NUMBER, [0, 0, 0], 0.354_166_666_666_666_7, &[]),
        number(FORMULA, [0, 1, 6], 44_927.75, &[0; 8]),
        short([0, 2, 2], percent),
        number(NUMBER, [0, 3, 3], 1.5, &[]),
        // What continues a record goes with it.
        record(CONTINUE, b"abc"),
        record(NUMBERS, &several.concat()),
        // An embedded chart has numbers of its own.
        record(BEGIN, &halves(&[EXCEL_97, 0x0020])),
        number(NUMBER, [9, 9, 0], 7.0, &[]),
        record(END, &[]),
        number(NUMBER, [1, 3, 1], 42_735.0, &[]),
        number(NUMBER, [2, 0, 7], 0.25, &[]),
        number(NUMBER, [2, 1, 99], 0.1 + 0.2, &[]),
        number(NUMBER, [2, 2, 99], f64::NAN, &[]),
        // TRUE, of a formula.
        record(
            FORMULA,
            &[halves(&[2, 3, 0, 1, 1, 0, NO_NUMBER]), vec![0; 8]].concat(),
        ),
    ];
    for version in [EXCEL_97, EXCEL_5] {
        let stream = workbook(version, &[], &sheet.concat());
        let rows = [
            ["8:30", "18:00:00", "25%", "36:00"],
            ["3", "3", "1200%", "2016-12-31"],
            ["6\u{e9}00", "0.3", "NaN", "TRUE"],
        ];
        assert_eq!(cells(&stream), rows, "{version:x}");
    }
}

#[test]
fn sheets_are_read_whatever_stands_between_them() {
    let first = [
        record(HEADER, b"\x03\0\0One"),
        number(NUMBER, [0, 0, 0], 0.5, &[]),
    ];
    let second = [
        number(NUMBER, [0, 0, 2], 0.5, &[]),
        record(FOOTER, b"\x03\0\0Two"),
    ];
    let chart = [
        record(HEADER, b"\x05\0\0Chart"),
        number(NUMBER, [0, 0, 0], 7.0, &[]),
    ];
    let [first, second, chart] = [first, second, chart].map(|sheet| sheet.concat());
    let sheets: [(u8, &[u8]); 3] = [(WITH_CELLS, &first), (CHART, &chart), (WITH_CELLS, &second)];
    let stream = workbook_of(EXCEL_97, &[], &sheets);
    let Rewritten {
        stream,
        margins,
        unread,
        ..
    } = rewritten(&stream, &Bounds::default()).unwrap().unwrap();
    assert_eq!(
        margins,
        [margins_of(&["One"], &[]), margins_of(&[], &["Two"])]
    );
    // The sheet that is a chart.
    assert_eq!(unread, 1);
    let document = XlsParser::from_bytes(stream).unwrap().parse().unwrap();
    let sheets: Vec<_> = document.sections.iter().map(rows).collect();
    assert_eq!(sheets, [[["12:00"]], [["50%"]]]);
}

#[test]
fn shared_text_goes_on_in_the_next_record() {
    const SHARED: u16 = 0x00FC;
    let shared = [
        record(SHARED, b"\x01\0\0\0\x01\0\0\0\x04\0\0ab"),
        record(CONTINUE, b"\0cd"),
    ];
    let sheet = [
        record(SHARED_TEXT, &[0; 10]),
        number(NUMBER, [0, 1, 0], 0.5, &[]),
    ];
    let stream = workbook(EXCEL_97, &shared.concat(), &sheet.concat());
    assert_eq!(cells(&stream), [["abcd", "12:00"]]);
}

#[test]
fn dates_count_from_the_year_that_the_workbook_says() {
    let sheet = number(NUMBER, [0, 0, 1], 42_735.0, &[]);
    for (mode, date) in [(0, "2016-12-31"), (1, "2021-01-01")] {
        let mode = record(DATE_MODE, &halves(&[mode]));
        assert_eq!(cells(&workbook(EXCEL_97, &mode, &sheet)), [[date]]);
    }
}

#[test]
fn damaged_and_other_workbooks_are_refused_or_left_as_they_are() {
    let whole = workbook(EXCEL_97, &[], &number(NUMBER, [0, 0, 0], 0.5, &[]));
    let bounds = Bounds::default();
    for length in 0..whole.len() {
        // Whatever is missing, nothing stops.
        let _ = rewritten(&whole[..length], &bounds);
    }
    let read = |stream: &[u8], bounds: &Bounds| rewritten(stream, bounds).map(|it| it.is_some());
    assert_eq!(read(&whole, &bounds), Ok(true));
    let cut_off = read(&whole[..whole.len() - 6], &bounds);
    assert!(
        matches!(cut_off, Err(ExtractError::Damaged(_))),
        "{cut_off:?}"
    );
    let password = workbook(EXCEL_97, &record(ENCRYPTED, &[0; 6]), &[]);
    assert_eq!(read(&password, &bounds), Err(ExtractError::Encrypted));
    let older = record(0x0409, &halves(&[0x0400, 0x0010]));
    assert_eq!(read(&older, &bounds), Ok(false));
    let few = Bounds {
        unpacked_bytes: 100,
        ..bounds
    };
    let refused = ExtractError::too_large(Bound::UnpackedBytes, 100);
    assert_eq!(read(&whole, &few), Err(refused));
}

#[test]
fn margins_of_sheets_are_read() {
    let wide: Vec<u8> = "&R\u{20ac}"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    for (version, above, below) in [
        (
            EXCEL_97,
            b"\x04\0\0&CTo".to_vec(),
            [&b"\x03\0\x01"[..], &wide].concat(),
        ),
        (EXCEL_5, b"\x04&CTo".to_vec(), b"\x03&R\x80".to_vec()),
    ] {
        let view: &[u8] = match version {
            EXCEL_97 => b"\x04\0\0view",
            _ => b"\x04view",
        };
        let sheet = [
            record(HEADER, &above),
            record(FOOTER, &below),
            record(VIEW, &[0; 50]),
            record(HEADER, view),
            record(FOOTER, view),
            record(VIEW_END, &[1, 0]),
        ]
        .concat();
        let stream = workbook(version, &[], &sheet);
        let Rewritten { margins, .. } = rewritten(&stream, &Bounds::default()).unwrap().unwrap();
        assert_eq!(
            margins,
            [margins_of(&["&CTo"], &["&R\u{20ac}"])],
            "{version:x}"
        );
        let sheet = record(HEADER, &[]);
        let stream = workbook(version, &[], &sheet);
        let Rewritten { margins, .. } = rewritten(&stream, &Bounds::default()).unwrap().unwrap();
        assert_eq!(margins, [Margins::default()], "{version:x}");
    }
}

#[test]
fn margins_of_even_and_first_pages_are_read() {
    let more = |view: u8| {
        let mut data = vec![0x9C, 0x08];
        data.resize(12, 0);
        data.push(view);
        data.resize(28, 0);
        // Those of even pages and of the first one differ. Even pages have no footer.
        data.extend([3, 0, 4, 0, 0, 0, 5, 0, 1, 0]);
        data.extend(b"\x04\0\0Even\x05\0\0First\x01\0\x01");
        data.extend("\u{20ac}".encode_utf16().flat_map(u16::to_le_bytes));
        data
    };
    let read = |more: &[u8]| {
        let sheet = [record(HEADER, b"\x03\0\0Odd"), record(MORE_MARGINS, more)];
        let stream = workbook(EXCEL_97, &[], &sheet.concat());
        let Rewritten { margins, .. } = rewritten(&stream, &Bounds::default()).unwrap().unwrap();
        margins
    };
    let all = margins_of(&["Odd", "Even", "First"], &["\u{20ac}"]);
    assert_eq!(read(&more(0)), [all]);
    let odd = margins_of(&["Odd"], &[]);
    for other in [&more(7)[..], &more(0)[..50], &[]] {
        assert_eq!(read(other), std::slice::from_ref(&odd));
    }
}

/// The record of an object of Excel 97.
fn object(kind: u16) -> Vec<u8> {
    record(
        0x005D,
        &[halves(&[0x15, 0x12, kind, 1]), vec![0; 14]].concat(),
    )
}

/// The record of a text of so many units, and the records that continue it.
fn shape_text(units: u16, parts: &[&[u8]]) -> Vec<u8> {
    let head = record(0x01B6, &halves(&[0, 0, 0, 0, 0, units, 16, 0, 0]));
    let parts = parts.iter().flat_map(|part| record(CONTINUE, part));
    head.into_iter().chain(parts).collect()
}

#[test]
fn shapes_are_read_and_pictures_and_charts_are_counted() {
    const DRAWING: u16 = 0x00EC;
    let wide: Vec<u8> = "\u{20ac}9"
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let wide = [&[1][..], &wide].concat();
    let runs: &[u8] = &[0; 16];
    let chart = [
        record(BEGIN, &halves(&[EXCEL_97, 0x0020])),
        // What stands inside of a chart belongs to it.
        object(8),
        shape_text(1, &[b"\0x"]),
        record(BEGIN, &halves(&[EXCEL_97, 0x0020])),
        record(END, &[]),
        record(END, &[]),
    ];
    let sheet = [
        number(NUMBER, [0, 0, 0], 0.5, &[]),
        object(6),
        record(DRAWING, b"drawn"),
        // A text goes on in another width, and its runs follow.
        shape_text(11, &[b"\0Refunds\n ", &wide, runs]),
        object(0x19),
        shape_text(4, &[b"\0Note", runs]),
        object(8),
        object(5),
        chart.concat(),
        object(2),
        shape_text(0, &[]),
        object(6),
        // Cut off.
        shape_text(9, &[b"\0Half"]),
    ];
    let stream = workbook(EXCEL_97, &[], &sheet.concat());
    let read = rewritten(&stream, &Bounds::default()).unwrap().unwrap();
    assert_eq!(read.shapes, [["Refunds", "\u{20ac}9"]]);
    // The picture, the chart, and the text that is cut off.
    assert_eq!(read.unread, 3);
    assert_eq!(cells(&stream), [["12:00"]]);

    // Earlier versions store text in the object.
    let older = |kind: u16| record(0x005D, &[halves(&[1, 0, kind, 1]), vec![0; 70]].concat());
    let sheet = [older(6), older(8), older(2), older(5), chart.concat()];
    let stream = workbook(EXCEL_5, &[], &sheet.concat());
    let read = rewritten(&stream, &Bounds::default()).unwrap().unwrap();
    assert_eq!((read.shapes, read.unread), (vec![vec![]], 3));
}

#[test]
fn pictures_that_are_shown_again_count_once_and_bullets_do_not() {
    use crate::office::blips::made::{bitmap, entry, group};

    let store = [bitmap(300, 200), bitmap(8, 8)].map(|picture| entry(u32::MAX, &picture));
    let drawings = group(&store);
    let (begin, rest) = drawings.split_at(70);
    let drawings = [record(DRAWINGS, begin), record(CONTINUE, rest)].concat();
    // A sheet of another program, with its records for the picture.
    let mut embedded = halves(&[0x15, 0x12, 8, 1]);
    embedded.resize(22, 0);
    embedded.extend(halves(&[7, 2, 2, 8, 2, 1, 9, 2, 0, 0, 0]));
    let embedded = record(0x005D, &embedded);
    let unread = |sheet: &[Vec<u8>]| {
        let stream = workbook(EXCEL_97, &drawings, &sheet.concat());
        let read = rewritten(&stream, &Bounds::default()).unwrap().unwrap();
        read.unread
    };
    assert_eq!(unread(&[]), 0);
    assert_eq!(unread(&[object(8), object(8), object(8)]), 1);
    assert_eq!(unread(&[object(8), embedded]), 2);
}

#[test]
fn a_picture_that_is_stored_beside_others_counts_once() {
    use crate::office::blips::made::{bitmap, drawing, entry, group, shape_of};

    let store = [(300, 200), (400, 200), (500, 200)].map(|(width, height)| bitmap(width, height));
    let drawings = record(DRAWINGS, &group(&store.map(|one| entry(u32::MAX, &one))));
    // The first part of a drawing says how long all of it is.
    let whole = drawing(&[shape_of(2), shape_of(2)], 0);
    let (first, second) = whole.split_at(8 + shape_of(2).len());
    let [first, second] = [first, second].map(|part| record(0x00EC, part));
    let again = record(0x00EC, &drawing(&[shape_of(2)], 0));
    let other = record(0x00EC, &shape_of(3));
    let unread = |sheets: &[(u8, &[u8])]| {
        let stream = workbook_of(EXCEL_97, &drawings, sheets);
        rewritten(&stream, &Bounds::default())
            .unwrap()
            .unwrap()
            .unread
    };
    let sheet = [first, object(8), second, object(8)].concat();
    let next = [again, object(8)].concat();
    assert_eq!(unread(&[(WITH_CELLS, &sheet), (WITH_CELLS, &next)]), 1);
    // The shape of a text box is none of a picture.
    let more = [sheet.clone(), other.clone(), object(6)].concat();
    assert_eq!(unread(&[(WITH_CELLS, &more)]), 1);
    let more = [sheet, other, object(8)].concat();
    assert_eq!(unread(&[(WITH_CELLS, &more)]), 2);
}

#[test]
fn shapes_stand_behind_the_cells_of_their_sheet() {
    use std::io::{Cursor, Write as _};

    let first = [
        object(6),
        shape_text(5, &[b"\0Hours"]),
        number(NUMBER, [0, 0, 0], 0.5, &[]),
        object(8),
    ];
    let first = first.concat();
    let second = number(NUMBER, [0, 0, 2], 0.5, &[]);
    let stream = workbook_of(
        EXCEL_97,
        &[],
        &[(WITH_CELLS, &first), (WITH_CELLS, &second)],
    );
    let mut file = cfb::CompoundFile::create(Cursor::new(vec![])).unwrap();
    file.create_stream("/Workbook")
        .unwrap()
        .write_all(&stream)
        .unwrap();
    file.flush().unwrap();
    let bytes = file.into_inner().into_inner();
    let (document, pictures) =
        crate::office::binary(&bytes, crate::format::Format::Xls, &Bounds::default()).unwrap();
    let places = ["12:00", "Hours", "50%"].map(|text| document.markdown.find(text).unwrap());
    assert!(places.is_sorted(), "{}", document.markdown);
    assert_eq!((document.unread_objects, pictures), (1, true));
}

#[test]
fn cells_and_what_is_read_are_bounded() {
    // The gap between two cells counts.
    let sheet = [0, 2].map(|column| number(NUMBER, [0, column, 0], 0.5, &[]));
    let stream = workbook(EXCEL_97, &[], &sheet.concat());
    let bounds = |cells: usize| Bounds {
        cells,
        ..Bounds::default()
    };
    assert!(rewritten(&stream, &bounds(3)).is_ok());
    let refused = ExtractError::too_large(Bound::Cells, 2);
    assert_eq!(rewritten(&stream, &bounds(2)), Err(refused));

    // Sheets that are the workbook itself are written once, and read each time.
    let listed = record(SHEET, b"\0\0\0\0\0\0\x01\0S").repeat(20);
    let stream = workbook(EXCEL_97, &listed, &[]);
    let most = 4 * stream.len();
    let few = Bounds {
        unpacked_bytes: most,
        ..Bounds::default()
    };
    let refused = ExtractError::too_large(Bound::UnpackedBytes, most);
    assert_eq!(rewritten(&stream, &few), Err(refused));
}
