//! Drawings and stores that are made record by record.

/// A record. The version of those that hold records is 15.
pub(in crate::office) fn record(version: u16, instance: u16, kind: u16, data: &[u8]) -> Vec<u8> {
    let mut record = (instance << 4 | version).to_le_bytes().to_vec();
    record.extend(kind.to_le_bytes());
    record.extend(u32::try_from(data.len()).unwrap().to_le_bytes());
    record.extend(data);
    record
}

/// A shape with these properties.
pub(in crate::office) fn shape(properties: &[(u16, u32)]) -> Vec<u8> {
    let count = u16::try_from(properties.len()).unwrap();
    let mut table = vec![];
    for (name, value) in properties {
        table.extend(name.to_le_bytes());
        table.extend(value.to_le_bytes());
    }
    record(15, 0, 0xF004, &record(3, count, 0xF00B, &table))
}

/// A shape that shows a picture of the store.
pub(in crate::office) fn shape_of(picture: u32) -> Vec<u8> {
    shape(&[(0x007F, 1), (0x4104, picture)])
}

/// A bitmap of this size.
pub(in crate::office) fn bitmap(width: i32, height: i32) -> Vec<u8> {
    let mut data = vec![0; 16];
    // A tag, and the header.
    data.push(0xFF);
    data.extend(40_u32.to_le_bytes());
    data.extend(width.to_le_bytes());
    data.extend(height.to_le_bytes());
    data.extend([0; 28]);
    record(0, 0x7A8, 0xF01F, &data)
}

/// An entry of a store, whose picture stands in it or at a place of another stream.
pub(in crate::office) fn entry(place: u32, picture: &[u8]) -> Vec<u8> {
    let mut data = vec![0; 36];
    data[28..32].copy_from_slice(&place.to_le_bytes());
    data.extend(picture);
    record(2, 6, 0xF007, &data)
}

/// The record that has a store of these entries.
pub(in crate::office) fn group(entries: &[Vec<u8>]) -> Vec<u8> {
    let store = record(15, 1, 0xF001, &entries.concat());
    let group = [record(0, 0, 0xF006, &[0; 16]), store].concat();
    record(15, 0, 0xF000, &group)
}

/// A drawing of these shapes, in groups so deep.
pub(in crate::office) fn drawing(shapes: &[Vec<u8>], depth: usize) -> Vec<u8> {
    let mut content = shapes.concat();
    for _ in 0..depth {
        content = record(15, 0, 0xF003, &content);
    }
    record(15, 0, 0xF002, &content)
}
