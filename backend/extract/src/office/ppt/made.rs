//! Presentations that are made record by record.

use std::io::{Cursor, Write};

pub(super) const TITLE: u32 = 0;
pub(super) const BODY: u32 = 1;
pub(super) const NOTES: u32 = 2;
pub(super) const OTHER: u32 = 4;
pub(super) const HALF_BODY: u32 = 7;

pub(super) fn record(version: u16, instance: u16, kind: u16, data: &[u8]) -> Vec<u8> {
    let mut record = (instance << 4 | version).to_le_bytes().to_vec();
    record.extend(kind.to_le_bytes());
    record.extend(u32::try_from(data.len()).unwrap().to_le_bytes());
    record.extend(data);
    record
}

pub(super) fn atom(kind: u16, instance: u16, data: &[u8]) -> Vec<u8> {
    record(0, instance, kind, data)
}

pub(super) fn container(kind: u16, instance: u16, parts: &[Vec<u8>]) -> Vec<u8> {
    record(0xF, instance, kind, &parts.concat())
}

pub(super) fn numbers(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|one| one.to_le_bytes()).collect()
}

pub(super) fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

/// A text of a type, with the records of its properties.
pub(super) fn text(kind: u32, text: &str, properties: &[Vec<u8>]) -> Vec<u8> {
    let text = [
        atom(0x0F9F, 0, &numbers(&[kind])),
        atom(0x0FA0, 0, &wide(text)),
        properties.concat(),
    ];
    text.concat()
}

/// The properties of paragraphs, each with its units, its level and whether it has a bullet, and of characters, each with their units
/// and their item.
pub(super) fn style(paragraphs: &[(u32, u16, Option<bool>)], characters: &[(u32, u16)]) -> Vec<u8> {
    let mut data = vec![];
    for (units, level, bullet) in paragraphs {
        data.extend(units.to_le_bytes());
        data.extend(level.to_le_bytes());
        // Tab stops stand between others.
        data.extend((0x11_0080 | u32::from(bullet.is_some())).to_le_bytes());
        if let Some(bullet) = bullet {
            data.extend(u16::from(*bullet).to_le_bytes());
        }
        for field in [0x2022, 1, 0, 0, 0_u16] {
            data.extend(field.to_le_bytes());
        }
    }
    for (units, item) in characters {
        data.extend(numbers(&[*units, 0x2_0400]));
        data.extend((item << 10).to_le_bytes());
        data.extend(24_u16.to_le_bytes());
    }
    atom(0x0FA1, 0, &data)
}

/// Further properties: an item with a scheme and a first number, or one that says nothing.
pub(super) fn items(items: &[Option<(u16, u16)>]) -> Vec<u8> {
    let item = |item: &Option<(u16, u16)>| match item {
        None => numbers(&[0, 0, 0]),
        Some((scheme, first)) => {
            let mut data = numbers(&[0x380_0000]);
            for field in [9, 1, *scheme, *first] {
                data.extend(field.to_le_bytes());
            }
            data.extend(numbers(&[0x10_0000, 0, 0x3, 0]));
            data
        }
    };
    atom(0x0FAC, 0, &items.iter().flat_map(item).collect::<Vec<_>>())
}

/// Records under the tag of PowerPoint 2000.
pub(super) fn tagged(records: &[Vec<u8>]) -> Vec<u8> {
    let tag = [
        atom(0x0FBA, 0, &wide("___PPT9")),
        atom(0x138B, 0, &records.concat()),
    ];
    container(0x1388, 0, &[container(0x138A, 0, &tag)])
}

pub(super) fn shape(parts: &[Vec<u8>]) -> Vec<u8> {
    container(0xF004, 0, parts)
}

pub(super) fn text_box(parts: &[Vec<u8>]) -> Vec<u8> {
    shape(&[container(0xF00D, 0, parts)])
}

pub(super) fn numbered(content: Vec<u8>, own: &[Option<(u16, u16)>]) -> Vec<u8> {
    let client = container(0xF011, 0, &[tagged(&[items(own)])]);
    shape(&[client, container(0xF00D, 0, &[content])])
}

pub(super) fn group(parts: &[Vec<u8>]) -> Vec<u8> {
    container(0xF003, 0, parts)
}

pub(super) fn anchor(sides: [u32; 4]) -> Vec<u8> {
    atom(0xF00F, 0, &numbers(&sides))
}

pub(super) fn cell(sides: [u32; 4], content: &str) -> Vec<u8> {
    let content = container(0xF00D, 0, &[text(OTHER, content, &[])]);
    shape(&[anchor(sides), content])
}

pub(super) fn table(bits: u32, cells: &[Vec<u8>]) -> Vec<u8> {
    let mut properties = vec![0x7F, 0, 1, 0, 0, 0, 0x9F, 0x03];
    properties.extend(bits.to_le_bytes());
    let itself = shape(&[atom(0xF122, 2, &properties), anchor([0, 0, 2_000, 2_000])]);
    group(&[&[itself][..], cells].concat())
}

/// A master's record of a type of text: whether each level has a bullet.
pub(super) fn master_style(kind: u16, bullets: &[bool]) -> Vec<u8> {
    let mut data = u16::try_from(bullets.len()).unwrap().to_le_bytes().to_vec();
    for (level, bullet) in (0_u16..).zip(bullets) {
        if kind >= 5 {
            data.extend(level.to_le_bytes());
        }
        data.extend(numbers(&[0x1]));
        data.extend(u16::from(*bullet).to_le_bytes());
        data.extend(numbers(&[0]));
    }
    atom(0x0FA3, kind, &data)
}

/// A presentation: what its parts hold.
#[derive(Default)]
pub(super) struct Deck {
    /// The shapes of each slide.
    pub(super) slides: Vec<Vec<u8>>,
    /// The outline of the first slide.
    pub(super) outline: Vec<u8>,
    /// The shapes of the page of notes of the first slide.
    pub(super) notes: Vec<u8>,
    pub(super) master: Vec<u8>,
    /// Records of the document.
    pub(super) document: Vec<u8>,
}

impl Deck {
    pub(super) fn of(shapes: &[Vec<u8>]) -> Self {
        Self {
            slides: vec![shapes.concat()],
            ..Self::default()
        }
    }

    /// The streams of the current user and of the presentation.
    pub(super) fn streams(&self) -> (Vec<u8>, Vec<u8>) {
        let persist =
            |object: u32, number: u32| atom(0x03F3, 0, &numbers(&[object, 0, 0, number, 0]));
        let drawing = |shapes: &[u8]| {
            let shapes = group(&[shapes.to_vec()]);
            container(0x040C, 0, &[container(0xF002, 0, &[shapes])])
        };
        let list = |list: u16, parts: &[Vec<u8>]| container(0x0FF0, list, parts);
        let mut listed = vec![];
        for (place, _) in (0..).zip(&self.slides) {
            listed.push(persist(4 + place, 256 + place));
            if place == 0 {
                listed.push(self.outline.clone());
            }
        }
        let document = container(
            0x03E8,
            0,
            &[
                list(1, &[persist(2, 1 << 31)]),
                self.document.clone(),
                list(0, &listed),
                list(2, &[persist(3, 512)]),
            ],
        );
        let mut objects = vec![
            document,
            container(0x03F8, 0, std::slice::from_ref(&self.master)),
            container(0x03F0, 0, &[drawing(&self.notes)]),
        ];
        for shapes in &self.slides {
            let slide = atom(0x03EF, 0, &numbers(&[0, 0, 0, 1 << 31, 512, 0]));
            objects.push(container(0x03EE, 0, &[slide, drawing(shapes)]));
        }
        let mut content = vec![0; 8];
        let mut directory = vec![u32::try_from(objects.len()).unwrap() << 20 | 1];
        for object in objects {
            directory.push(u32::try_from(content.len()).unwrap());
            content.extend(object);
        }
        let directory_at = u32::try_from(content.len()).unwrap();
        content.extend(atom(0x1772, 0, &numbers(&directory)));
        let edit_at = u32::try_from(content.len()).unwrap();
        content.extend(atom(0x0FF5, 0, &numbers(&[0, 0, 0, directory_at, 1, 0, 0])));
        let user = atom(0x0FF6, 0, &numbers(&[20, 0xE391_C05F, edit_at, 0, 0]));
        (user, content)
    }
}

/// A file of these streams.
pub(super) fn file(user: &[u8], content: &[u8]) -> Vec<u8> {
    file_of(&[("/Current User", user), ("/PowerPoint Document", content)])
}

/// A file of streams with these names.
pub(super) fn file_of(streams: &[(&str, &[u8])]) -> Vec<u8> {
    let mut file = cfb::CompoundFile::create(Cursor::new(vec![])).unwrap();
    for (name, data) in streams {
        file.create_stream(name).unwrap().write_all(data).unwrap();
    }
    file.flush().unwrap();
    file.into_inner().into_inner()
}
