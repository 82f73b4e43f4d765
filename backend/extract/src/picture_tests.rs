use image::{ImageFormat, Rgba, RgbaImage};

use super::*;

fn bounds() -> Bounds {
    Bounds::default()
}

fn encoded(picture: &DynamicImage, format: ImageFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(vec![]);
    picture.write_to(&mut bytes, format).unwrap();
    bytes.into_inner()
}

/// A TIFF of frames of so many pixels each way, whose shade is their number.
fn tiff(sides: &[u32]) -> Vec<u8> {
    let mut file = b"II*\0\x08\0\0\0".to_vec();
    for (number, side) in sides.iter().enumerate() {
        let at = file.len() as u32;
        let entries: [(u16, u16, u32); 8] = [
            (256, 4, *side),
            (257, 4, *side),
            (258, 3, 8),
            (259, 3, 1),
            (262, 3, 1),
            (273, 4, at + 2 + 8 * 12 + 4),
            (278, 4, *side),
            (279, 4, side * side),
        ];
        file.extend((entries.len() as u16).to_le_bytes());
        for (tag, kind, value) in entries {
            file.extend(tag.to_le_bytes());
            file.extend(kind.to_le_bytes());
            file.extend(1_u32.to_le_bytes());
            file.extend(value.to_le_bytes());
        }
        let pixels = side * side;
        let next = at + 2 + 8 * 12 + 4 + pixels;
        let is_last = number + 1 == sides.len();
        file.extend(if is_last { 0 } else { next }.to_le_bytes());
        file.extend(vec![number as u8 + 1; pixels as usize]);
    }
    file
}

#[test]
fn images_are_written_and_read() {
    let image = |page: u32, width: u32| PageImage {
        page,
        width,
        height: 2,
        dpi: 300,
        gray: vec![page as u8; 2 * width as usize],
    };
    let images = [image(1, 3), image(7, 0), image(9, 5)];
    let mut bytes = vec![];
    images.iter().for_each(|image| image.write(&mut bytes));
    assert_eq!(PageImage::read(&bytes), images);
    assert_eq!(PageImage::read(&bytes[..bytes.len() - 1]), images[..2]);
    assert_eq!(
        images[0].to_pgm(),
        b"P5\n3 2\n255\n\x01\x01\x01\x01\x01\x01"
    );
    // One that claims more than there may be.
    let mut huge = vec![];
    image(1, 3).write(&mut huge);
    huge[4..8].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(PageImage::read(&huge), []);
}

#[test]
fn every_frame_of_a_tiff_is_a_page() {
    let file = tiff(&[10, 20, 30]);
    let document = document(&file, Format::Tiff, &bounds()).unwrap();
    assert_eq!(document.pages, Some(3));
    assert_eq!(document.unread.len(), 3);
    for (page, side) in [(1, 10), (2, 20), (3, 30)] {
        let frame = frame(&file, Format::Tiff, page, &bounds()).unwrap();
        // Small pictures are made larger.
        assert_eq!((frame.width, frame.height), (2 * side, 2 * side));
        assert!(frame.gray.iter().all(|shade| *shade == page as u8));
    }
    assert_eq!(
        frame(&file, Format::Tiff, 4, &bounds()),
        Err(ExtractError::NoPage(4))
    );
    assert_eq!(
        frame(&file, Format::Tiff, 0, &bounds()),
        Err(ExtractError::NoPage(0))
    );
    // The last frame leads back to the first.
    let mut circle = tiff(&[10]);
    circle[8 + 2 + 96..8 + 2 + 100].copy_from_slice(&8_u32.to_le_bytes());
    assert_eq!(tiff_frames(&circle, &bounds()).unwrap(), [8]);
    let few = Bounds {
        pages: 2,
        ..bounds()
    };
    let refused = tiff_frames(&file, &few);
    assert_eq!(refused, Err(ExtractError::too_large(Bound::Pages, 2)));
}

#[test]
fn what_can_be_seen_through_is_white() {
    let mut picture = RgbaImage::from_pixel(2_000, 10, Rgba([0, 0, 0, 0]));
    picture.put_pixel(0, 0, Rgba([0, 0, 0, 255]));
    let file = encoded(&picture.into(), ImageFormat::Png);
    let frame = frame(&file, Format::Png, 1, &bounds()).unwrap();
    assert_eq!((frame.width, frame.gray[0], frame.gray[1]), (2_000, 0, 255));
}

#[test]
fn a_picture_that_breaks_off_is_read_so_far_or_damaged() {
    let noise = |x: u32, y: u32| ((x * 31 + y * 17 + x * y) % 251) as u8;
    let picture = GrayImage::from_fn(400, 300, |x, y| image::Luma([noise(x, y)]));
    for (format, kind) in [
        (Format::Png, ImageFormat::Png),
        (Format::Jpeg, ImageFormat::Jpeg),
    ] {
        let file = encoded(&picture.clone().into(), kind);
        let half = &file[..file.len() / 2];
        assert!(document(half, format, &bounds()).is_ok(), "{format}");
        let frame = frame(half, format, 1, &bounds()).unwrap();
        let first = frame.gray[..8_000].iter();
        assert!(
            first.filter(|shade| **shade < 250).count() > 4_000,
            "{format}"
        );
    }
    // The header, and nothing of the pixels.
    let file = encoded(&picture.into(), ImageFormat::Png);
    let begin = file.windows(4).position(|part| part == b"IDAT").unwrap();
    for length in [begin + 4, begin + 6] {
        let head = &file[..length];
        let read = document(head, Format::Png, &bounds());
        assert!(matches!(read, Err(ExtractError::Damaged(_))), "{read:?}");
        let frame = frame(head, Format::Png, 1, &bounds());
        assert!(matches!(frame, Err(ExtractError::Damaged(_))), "{frame:?}");
    }
}

#[test]
fn pictures_are_not_larger_than_they_may_be() {
    let wide = DynamicImage::new_luma8(6_000, 4_000);
    let file = encoded(&wide, ImageFormat::Png);
    let frame_of = |bounds: &Bounds| frame(&file, Format::Png, 1, bounds);
    let frame = frame_of(&bounds()).unwrap();
    let pixels = frame.width * frame.height;
    assert!(
        pixels <= MOST_PIXELS && pixels > MOST_PIXELS * 9 / 10,
        "{pixels}"
    );
    let less = Bounds {
        pixels: 23_999_999,
        ..bounds()
    };
    assert_eq!(
        frame_of(&less),
        Err(ExtractError::too_large(Bound::Pixels, less.pixels))
    );
    assert!(document(&file, Format::Png, &less).is_err());
    // A header that claims a picture of 4 billion pixels, in a few bytes.
    let mut bomb = file[..100].to_vec();
    bomb[16..24].copy_from_slice(&[0, 0, 0xFF, 0xFF, 0, 0, 0xFF, 0xFF]);
    let refused = document(&bomb, Format::Png, &bounds());
    assert!(refused.is_err(), "{refused:?}");
    let cut = document(&file[..20], Format::Png, &bounds());
    assert!(matches!(cut, Err(ExtractError::Damaged(_))), "{cut:?}");
}
