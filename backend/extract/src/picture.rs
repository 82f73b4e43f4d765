//! Images that text is recognized in: pictures, and pages of a PDF. They leave here in the plainest form there is, shades of gray
//! in a bounded number, so that the program that recognizes text decodes nothing that a stranger made.

use std::{collections::HashSet, io::Cursor};

use image::{
    ColorType, DynamicImage, GenericImageView as _, GrayImage, ImageDecoder, ImageError,
    ImageReader, ImageResult, Limits,
    imageops::{self, FilterType},
    metadata::Orientation,
};
use serde::{Deserialize, Serialize};
use unpdf::parser::raster::{PageRegion, RasterOptions};

use crate::{
    document::{Document, UnreadPage, UnreadReason},
    error::{Bound, ExtractError},
    format::Format,
    limits::Bounds,
};

/// What text is recognized best at, in dots an inch.
const BEST_DPI: f32 = 300.0;
/// The most pixels of an image that is handed over: a page of A4 at the best resolution has 8.7 million.
pub const MOST_PIXELS: u32 = 12_000_000;
/// A picture that is narrower than this is of a screen, whose letters are small.
const NARROW: u32 = 1_600;
/// Either side of a picture.
const MOST_SIDE: u32 = 32_768;
/// The largest picture that is decoded to see whether it can be, in bytes: whoever only reads a document has little room.
const MOST_CHECKED_BYTES: u64 = 64 * 1024 * 1024;
/// Work for each pixel of a page, from which on it is not painted any further.
const WORK_A_PIXEL: u64 = 400;
/// What a point is of an inch.
const POINTS: f32 = 72.0;

/// The image of a page.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageImage {
    /// Its number, from 1 on.
    pub page: u32,
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
    /// Dots an inch.
    pub dpi: u32,
    /// Shades of gray, 0 is black, row by row.
    #[serde(skip)]
    pub gray: Vec<u8>,
}

impl PageImage {
    /// The image as a portable graymap, which a header of a line precedes (`P5`).
    #[must_use]
    pub fn to_pgm(&self) -> Vec<u8> {
        let mut pgm = format!("P5\n{} {}\n255\n", self.width, self.height).into_bytes();
        pgm.extend_from_slice(&self.gray);
        pgm
    }

    /// Adds the image to bytes that [`PageImage::read`] reads.
    pub fn write(&self, to: &mut Vec<u8>) {
        for number in [self.page, self.width, self.height, self.dpi] {
            to.extend(number.to_le_bytes());
        }
        to.extend_from_slice(&self.gray);
    }

    /// The images that were written, as far as they follow the form.
    #[must_use]
    pub fn read(mut bytes: &[u8]) -> Vec<Self> {
        let mut images = vec![];
        while let Some((head, rest)) = bytes.split_first_chunk::<16>() {
            let (numbers, _) = head.as_chunks::<4>();
            let number = |index: usize| numbers.get(index).map_or(0, |n| u32::from_le_bytes(*n));
            let (width, height) = (number(1), number(2));
            let Some(length) = width
                .checked_mul(height)
                .filter(|pixels| *pixels <= MOST_PIXELS)
            else {
                break;
            };
            let Some((gray, rest)) = rest.split_at_checked(length as usize) else {
                break;
            };
            images.push(Self {
                page: number(0),
                width,
                height,
                dpi: number(3),
                gray: gray.to_vec(),
            });
            bytes = rest;
        }
        images
    }
}

/// A picture as a document: its text is all to be recognized.
pub(crate) fn document(
    bytes: &[u8],
    format: Format,
    bounds: &Bounds,
) -> Result<Document, ExtractError> {
    let frames = match format {
        Format::Tiff => tiff_frames(bytes, bounds)?.len(),
        _ => 1,
    };
    // What cannot be opened is told now, and what has one frame that cannot be decoded.
    let decoder = decoder(bytes, bounds)?;
    if frames == 1
        && decoder.total_bytes() <= MOST_CHECKED_BYTES
        && let Err(error @ ExtractError::Damaged(_)) = decoded(decoder, bounds)
    {
        return Err(error);
    }
    let pages = u32::try_from(frames).unwrap_or(u32::MAX);
    Ok(Document {
        pages: Some(pages),
        unread: (1..=pages)
            .map(|page| UnreadPage {
                page,
                begin: 0,
                end: 0,
                reason: UnreadReason::NoText,
            })
            .collect(),
        ..Document::default()
    })
}

/// How wide and how high a picture is, in pixels.
pub(crate) fn dimensions(bytes: &[u8], bounds: &Bounds) -> Result<(u32, u32), ExtractError> {
    Ok(decoder(bytes, bounds)?.dimensions())
}

/// The image of one frame of a picture.
pub(crate) fn frame(
    bytes: &[u8],
    format: Format,
    page: u32,
    bounds: &Bounds,
) -> Result<PageImage, ExtractError> {
    let index = page.checked_sub(1).ok_or(ExtractError::NoPage(page))?;
    if index > 0 && format != Format::Tiff {
        return Err(ExtractError::NoPage(page));
    }
    let bytes = framed(bytes, format, index as usize, bounds)?;
    let mut decoder = decoder(&bytes, bounds)?;
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let mut picture = decoded(decoder, bounds)?;
    picture.apply_orientation(orientation);
    let gray = on_white(&picture);
    let (width, height) = gray.dimensions();
    let pixels = f64::from(width) * f64::from(height);
    let fitting = (f64::from(MOST_PIXELS) / pixels.max(1.0)).sqrt();
    // Letters on a screen are a third as large as those of a scan.
    let wanted = if width < NARROW { 2.0 } else { 1.0 };
    let factor = f64::min(wanted, fitting);
    let gray = if (factor - 1.0).abs() < 0.01 {
        gray
    } else {
        let side = |side: u32| ((f64::from(side) * factor).floor() as u32).max(1);
        imageops::resize(&gray, side(width), side(height), FilterType::CatmullRom)
    };
    Ok(image(page, gray, BEST_DPI))
}

/// The image of a page of a PDF. None where it shows nothing, or cannot be painted.
pub(crate) fn pdf_page(
    parser: &unpdf::PdfParser,
    page: u32,
    size_points: (f32, f32),
) -> Result<PageImage, ExtractError> {
    let inches = (size_points.0 / POINTS) * (size_points.1 / POINTS);
    let fitting = (MOST_PIXELS as f32 * 0.98 / inches.max(0.01)).sqrt();
    let dpi = BEST_DPI.min(fitting);
    let options = RasterOptions {
        dpi,
        region: PageRegion::Crop,
    };
    let mut left = WORK_A_PIXEL * u64::from(MOST_PIXELS);
    let painted =
        parser.render_page_with(page, &options, &mut |work| match left.checked_sub(work) {
            Some(rest) => {
                left = rest;
                std::ops::ControlFlow::Continue(())
            }
            None => std::ops::ControlFlow::Break(()),
        });
    let painted = painted.map_err(ExtractError::damaged)?;
    let pixels = u64::from(painted.width) * u64::from(painted.height);
    if pixels > u64::from(MOST_PIXELS) {
        return Err(ExtractError::too_large(
            Bound::Pixels,
            u64::from(MOST_PIXELS),
        ));
    }
    let (colours, _) = painted.rgba.as_chunks::<4>();
    let gray = colours
        .iter()
        .map(|[r, g, b, _]| shade(*r, *g, *b))
        .collect();
    Ok(PageImage {
        page,
        width: painted.width,
        height: painted.height,
        dpi: dpi as u32,
        gray,
    })
}

fn image(page: u32, gray: GrayImage, dpi: f32) -> PageImage {
    let (width, height) = gray.dimensions();
    PageImage {
        page,
        width,
        height,
        dpi: dpi as u32,
        gray: gray.into_raw(),
    }
}

/// What can be seen through shows paper.
fn on_white(picture: &DynamicImage) -> GrayImage {
    let mut gray = GrayImage::new(picture.width(), picture.height());
    for (shade_of, (.., pixel)) in gray.pixels_mut().zip(picture.pixels()) {
        let [r, g, b, alpha] = pixel.0;
        let over = |colour: u8| {
            let (colour, alpha) = (u32::from(colour), u32::from(alpha));
            u8::try_from((colour * alpha + 255 * (255 - alpha)) / 255).unwrap_or(u8::MAX)
        };
        shade_of.0 = [shade(over(r), over(g), over(b))];
    }
    gray
}

/// How light a colour is. Source: ITU-R BT.601.
fn shade(r: u8, g: u8, b: u8) -> u8 {
    let sum = 299 * u32::from(r) + 587 * u32::from(g) + 114 * u32::from(b);
    u8::try_from(sum / 1_000).unwrap_or(u8::MAX)
}

/// What decodes a picture, which is not larger than it may be.
fn decoder<'a>(
    bytes: &'a [u8],
    bounds: &Bounds,
) -> Result<impl image::ImageDecoder + use<'a>, ExtractError> {
    let mut reader = ImageReader::new(Cursor::new(bytes))
        .with_guessed_format()
        .map_err(ExtractError::failed)?;
    let mut limits = Limits::no_limits();
    limits.max_image_width = Some(MOST_SIDE);
    limits.max_image_height = Some(MOST_SIDE);
    limits.max_alloc = Some(bounds.pixels.saturating_mul(8));
    reader.limits(limits);
    let decoder = reader
        .into_decoder()
        .map_err(|error| refusal(error, bounds))?;
    let (width, height) = decoder.dimensions();
    if u64::from(width) * u64::from(height) > bounds.pixels {
        return Err(ExtractError::too_large(Bound::Pixels, bounds.pixels));
    }
    Ok(decoder)
}

/// The pixels of a picture.
fn decoded(decoder: impl ImageDecoder, bounds: &Bounds) -> Result<DynamicImage, ExtractError> {
    // Where there is no memory, that is told, and nothing stops.
    let room = usize::try_from(decoder.total_bytes())
        .is_ok_and(|bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
    if !room {
        return Err(ExtractError::failed("its pixels do not fit in memory"));
    }
    DynamicImage::from_decoder(Cut(decoder)).map_err(|error| refusal(error, bounds))
}

fn refusal(error: ImageError, bounds: &Bounds) -> ExtractError {
    match error {
        ImageError::Limits(_) => ExtractError::too_large(Bound::Pixels, bounds.pixels),
        other => ExtractError::damaged(other),
    }
}

/// A picture that may break off: what is missing is white, and an error only where all of it is.
struct Cut<D>(D);

impl<D: ImageDecoder> ImageDecoder for Cut<D> {
    fn dimensions(&self) -> (u32, u32) {
        self.0.dimensions()
    }

    fn color_type(&self) -> ColorType {
        self.0.color_type()
    }

    fn read_image(self, pixels: &mut [u8]) -> ImageResult<()> {
        pixels.fill(u8::MAX);
        match self.0.read_image(pixels) {
            Err(_) if pixels.iter().any(|byte| *byte != u8::MAX) => Ok(()),
            read => read,
        }
    }

    fn read_image_boxed(self: Box<Self>, pixels: &mut [u8]) -> ImageResult<()> {
        (*self).read_image(pixels)
    }
}

/// A picture whose first frame is the one that is wanted.
fn framed<'a>(
    bytes: &'a [u8],
    format: Format,
    frame: usize,
    bounds: &Bounds,
) -> Result<std::borrow::Cow<'a, [u8]>, ExtractError> {
    if frame == 0 {
        return Ok(bytes.into());
    }
    let frames = tiff_frames(bytes, bounds)?;
    let number = u32::try_from(frame + 1).unwrap_or(u32::MAX);
    let begin = frames.get(frame).ok_or(ExtractError::NoPage(number))?;
    debug_assert_eq!(format, Format::Tiff);
    let mut bytes = bytes.to_vec();
    let place = if bytes.starts_with(b"II") {
        begin.to_le_bytes()
    } else {
        begin.to_be_bytes()
    };
    if let Some(first) = bytes.get_mut(4..8) {
        first.copy_from_slice(&place);
    }
    Ok(bytes.into())
}

/// Where the frames of a TIFF are described. Source: TIFF 6.0, section 2.
fn tiff_frames(bytes: &[u8], bounds: &Bounds) -> Result<Vec<u32>, ExtractError> {
    let little = bytes.starts_with(b"II");
    let u16_at = |at: usize| {
        let pair: [u8; 2] = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(if little {
            u16::from_le_bytes(pair)
        } else {
            u16::from_be_bytes(pair)
        })
    };
    let u32_at = |at: usize| {
        let four: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(if little {
            u32::from_le_bytes(four)
        } else {
            u32::from_be_bytes(four)
        })
    };
    let mut frames = vec![];
    let mut seen = HashSet::new();
    let mut next = u32_at(4).unwrap_or_default();
    while next != 0 {
        if frames.len() >= bounds.pages as usize {
            return Err(ExtractError::too_large(Bound::Pages, bounds.pages));
        }
        // A frame that leads back to another one is the last.
        if !seen.insert(next) {
            break;
        }
        let at = next as usize;
        let Some(entries) = u16_at(at) else {
            break;
        };
        frames.push(next);
        next = u32_at(at + 2 + 12 * usize::from(entries)).unwrap_or_default();
    }
    if frames.is_empty() {
        return Err(ExtractError::damaged("it has no frame"));
    }
    Ok(frames)
}

#[cfg(test)]
#[path = "picture_tests.rs"]
mod tests;
