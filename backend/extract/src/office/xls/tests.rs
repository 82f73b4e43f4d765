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

/// The kind of a sheet that is a chart.
const CHART: u8 = 2;

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
    let (stream, _) = rewritten(stream, &Bounds::default()).unwrap().unwrap();
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
    let (stream, margins) = rewritten(&stream, &Bounds::default()).unwrap().unwrap();
    assert_eq!(
        margins,
        [margins_of(&["One"], &[]), margins_of(&[], &["Two"])]
    );
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
        let (_, margins) = rewritten(&stream, &Bounds::default()).unwrap().unwrap();
        assert_eq!(
            margins,
            [margins_of(&["&CTo"], &["&R\u{20ac}"])],
            "{version:x}"
        );
        let sheet = record(HEADER, &[]);
        let stream = workbook(version, &[], &sheet);
        let (_, margins) = rewritten(&stream, &Bounds::default()).unwrap().unwrap();
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
        let (_, margins) = rewritten(&stream, &Bounds::default()).unwrap().unwrap();
        margins
    };
    let all = margins_of(&["Odd", "Even", "First"], &["\u{20ac}"]);
    assert_eq!(read(&more(0)), [all]);
    let odd = margins_of(&["Odd"], &[]);
    for other in [&more(7)[..], &more(0)[..50], &[]] {
        assert_eq!(read(other), std::slice::from_ref(&odd));
    }
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
