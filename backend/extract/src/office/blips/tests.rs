use super::{
    made::{bitmap, drawing, entry, group, record, shape, shape_of},
    *,
};

const NOWHERE: u32 = u32::MAX;

/// A metafile with this size in units of length.
fn metafile(width: u32, height: u32, bytes: usize) -> Vec<u8> {
    let mut data = vec![0; 2 * IDENTIFIER_BYTES + 20];
    data.extend(width.to_le_bytes());
    data.extend(height.to_le_bytes());
    data.resize(data.len() + bytes, 0);
    record(0, 0x3D5, 0xF01A, &data)
}

#[test]
fn pictures_of_shapes_are_counted_once() {
    let entries = [
        entry(NOWHERE, &bitmap(200, -100)),
        // A bullet, one that no shape shows, a metafile, one that is shown small, and one that does not say its size.
        entry(NOWHERE, &bitmap(8, 8)),
        entry(NOWHERE, &bitmap(300, 100)),
        entry(NOWHERE, &metafile(914_400, 914_400, 9)),
        entry(NOWHERE, &metafile(9_525, 9_525, 9_000)),
        entry(NOWHERE, &metafile(0, 0, 5_000)),
        // Nothing, as of a link; a record without an entry; one of another kind; and one in another stream.
        entry(NOWHERE, &[]),
        bitmap(200, 100),
        entry(NOWHERE, &record(0, 0, 0xF117, &[0; 5_000])),
        entry(3, &[]),
    ];
    let delayed = [vec![0; 3], bitmap(90, 90)].concat();
    let shown = [1, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11].map(shape_of);
    let content = [group(&entries), vec![0], drawing(&shown, 3)].concat();
    let bounds = Bounds::default();
    // The first, the fourth, the sixth, the eighth and the tenth.
    assert_eq!(of_word(&content, &delayed, &bounds), 5);
    assert_eq!(of_word(&content, &[], &bounds), 4);
    // The first is in the margins, too.
    let content = [content, vec![1], drawing(&[shape_of(1), shape_of(3)], 0)].concat();
    assert_eq!(of_word(&content, &delayed, &bounds), 6);
}

#[test]
fn entries_of_one_picture_count_once() {
    let entries = [0, 0, 3].map(|place| entry(place, &[]));
    let shown = [1, 2, 3].map(shape_of);
    let content = [group(&entries), vec![0], drawing(&shown, 0)].concat();
    let delayed = bitmap(90, 90);
    // Nothing that may hold text is at the third place.
    assert_eq!(of_word(&content, &delayed, &Bounds::default()), 1);
}

#[test]
fn pictures_that_fill_shapes_are_counted_and_textures_are_not() {
    let entries = [1, 2, 3].map(|_| entry(NOWHERE, &bitmap(200, 100)));
    let shapes = [
        shape(&[(0x0180, 3), (0x4186, 1)]),
        // A texture, and a fill that is not used.
        shape(&[(0x0180, 2), (0x4186, 2)]),
        shape(&[(0x4186, 3)]),
        // A picture in a shape that it fills, too.
        shape(&[(0x4104, 1), (0x0180, 3), (0x4186, 1)]),
    ];
    let content = [group(&entries), vec![0], drawing(&shapes, 0)].concat();
    assert_eq!(of_word(&content, &[], &Bounds::default()), 1);
}

#[test]
fn pictures_in_shapes_that_are_not_filled_are_not_counted() {
    let entries = [1, 2, 3, 4].map(|_| entry(NOWHERE, &bitmap(200, 100)));
    let filled =
        |picture: u32, flags: u32| shape(&[(0x0180, 3), (0x4186, picture), (0x01BF, flags)]);
    let shapes = [
        // Filled; without a fill; with a flag that does not count; and with another flag alone.
        filled(1, 0x0010_0010),
        filled(2, 0x0010_0000),
        filled(3, 0x0000_0000),
        filled(4, 0x0001_0001),
    ];
    let content = [group(&entries), vec![0], drawing(&shapes, 0)].concat();
    assert_eq!(of_word(&content, &[], &Bounds::default()), 3);
}

#[test]
fn backgrounds_are_not_counted() {
    let entries = [1, 2].map(|_| entry(NOWHERE, &bitmap(200, 100)));
    let with_flags = |flags: u32, picture: u32| {
        let about = [1, flags].map(u32::to_le_bytes).concat();
        let about = record(2, 1, 0xF00A, &about);
        let mut table = vec![];
        for (name, value) in [(0x0180_u16, 3_u32), (0x4186, picture)] {
            table.extend(name.to_le_bytes());
            table.extend(value.to_le_bytes());
        }
        let content = [about, record(3, 2, 0xF00B, &table)].concat();
        record(15, 0, 0xF004, &content)
    };
    // The other one comes behind the background, and has an anchor.
    let shapes = [with_flags(0x0C00, 1), with_flags(0x0A00, 2)];
    let content = [group(&entries), vec![0], drawing(&shapes, 1)].concat();
    assert_eq!(of_word(&content, &[], &Bounds::default()), 1);
}

#[test]
fn drawn_texts_are_counted_and_other_shapes_are_not() {
    let shapes = [
        shape(&[(0xC0C0, 14), (0x0080, 1)]),
        // Without a text, a text box, and a line.
        shape(&[(0xC0C0, 2)]),
        shape(&[(0x0080, 0x0001_0000)]),
        shape(&[(0x01CB, 9_525)]),
        // A picture inside of its shape.
        shape(&[(0xC104, 500)]),
    ];
    let content = [group(&[]), vec![0], drawing(&shapes, 1)].concat();
    assert_eq!(of_word(&content, &[], &Bounds::default()), 2);
}

#[test]
fn drawings_that_are_damaged_have_an_end() {
    let bounds = Bounds::default();
    let shapes = [shape_of(1), shape_of(2)];
    // Deeper than any stack of calls.
    let mut deep = vec![];
    for depth in (0..100_000_u32).rev() {
        deep.extend([15, 0, 3, 0xF0]);
        deep.extend((8 * depth).to_le_bytes());
    }
    let mut shown = Shown::default();
    shown.add(&deep);
    assert_eq!(shown, Shown::default());
    let entries = [entry(0, &bitmap(200, 100)), entry(0, &[])];
    let content = [group(&entries), vec![0], drawing(&shapes, 2)].concat();
    assert_eq!(of_word(&content, &[], &bounds), 1);
    for length in 0..content.len() {
        assert!(of_word(&content[..length], &content[..length], &bounds) <= 1);
    }
    for place in 0..content.len() {
        let mut lying = content.clone();
        lying[place] = 0xFF;
        let _ = of_word(&lying, &content, &bounds);
    }
}
