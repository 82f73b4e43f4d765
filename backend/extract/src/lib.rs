//! Documents: their bytes in, Markdown out.
//!
//! What a file is, is told where the file is ([`detect()`]). Its text is read by [`extract()`], in a child process that has limits:
//! whatever the bounds here let pass is bounded once more by memory, time and output there. This crate computes and nothing else:
//! it opens no file, speaks to nobody, and knows nothing of the server.

mod characters;
mod cleanup;
mod csv;
pub mod detect;
pub mod document;
mod epub;
pub mod error;
pub mod format;
mod html;
mod limits;
mod markdown;
mod office;
mod package;
mod pdf;
mod picture;
mod text;

use std::{io::Cursor, thread};

pub use self::{
    characters::decode,
    detect::{DetectError, detect},
    document::{Document, UnreadPage, UnreadReason},
    error::{Bound, ExtractError},
    format::{ContentType, Format, Medium},
    limits::Bounds,
    picture::{MOST_PIXELS, PageImage},
};

/// The stack of a reader: some of them call themselves for each level of what they read, whose depth is bounded.
pub const STACK_BYTES: usize = 64 * 1024 * 1024;

/// How a document is read.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The address of a page, when the article on it is wanted and not all of it. Its links count from there.
    pub article_of: Option<String>,
    /// The encoding that came with the text, as the header `Content-Type` names it.
    pub charset: Option<String>,
    /// The most that it may cost.
    pub bounds: Bounds,
}

/// The text of a document.
///
/// A document without any text is an error, unless it has pages that somebody can look at: they are named
/// ([`Document::unread`]), and [`Document::fill`] puts in its place what was recognized on them.
///
/// # Errors
/// When it is not of the format, encrypted, damaged, empty, holds pictures only, is too large, or is to be listened to.
pub fn extract(bytes: &[u8], format: Format, options: &Options) -> Result<Document, ExtractError> {
    check(bytes, format)?;
    apart(|| read(bytes, format, options))
}

/// The images of pages that somebody has to look at, given away one by one. A page that cannot be shown has none.
///
/// # Errors
/// When the document cannot be read, or has no such page.
pub fn page_images(
    bytes: &[u8],
    format: Format,
    pages: &[u32],
    bounds: &Bounds,
    mut give: impl FnMut(PageImage) + Send,
) -> Result<(), ExtractError> {
    check(bytes, format)?;
    apart(|| match format {
        Format::Pdf => pdf::images(bytes, pages, bounds, give),
        _ if format.medium() == Medium::Picture => {
            for page in pages {
                give(picture::frame(bytes, format, *page, bounds)?);
            }
            Ok(())
        }
        Format::Docx | Format::Pptx | Format::Xlsx | Format::Doc | Format::Ppt | Format::Xls => {
            office::images(bytes, format, pages, bounds, give)
        }
        // What is unread of a book is not in it.
        Format::Epub => Ok(()),
        _ => Err(ExtractError::NoPage(
            pages.first().copied().unwrap_or_default(),
        )),
    })
}

fn check(bytes: &[u8], format: Format) -> Result<(), ExtractError> {
    match detect::agrees(format, &mut Cursor::new(bytes)) {
        Ok(()) => Ok(()),
        Err(DetectError::Refused(error)) => Err(error),
        Err(DetectError::Read(error)) => Err(ExtractError::failed(error)),
    }
}

/// Runs a reader on a stack that is large enough for it. What it stops at without saying why is an error like others.
fn apart<T: Send>(
    read: impl FnOnce() -> Result<T, ExtractError> + Send,
) -> Result<T, ExtractError> {
    thread::scope(|scope| {
        let reader = thread::Builder::new()
            .stack_size(STACK_BYTES)
            .spawn_scoped(scope, read)
            .map_err(ExtractError::failed)?;
        reader.join().unwrap_or_else(|panic| {
            let words = panic.downcast_ref::<String>().map(String::as_str);
            let words = words.or_else(|| panic.downcast_ref::<&str>().copied());
            Err(ExtractError::failed(words.unwrap_or("its reader stopped")))
        })
    })
}

fn read(bytes: &[u8], format: Format, options: &Options) -> Result<Document, ExtractError> {
    let bounds = &options.bounds;
    let characters = || characters::decode(bytes, options.charset.as_deref());
    let (document, has_pictures) = match format {
        Format::Pdf => (pdf::document(bytes, bounds)?, false),
        Format::Docx | Format::Pptx | Format::Xlsx => office::open_xml(bytes, format, bounds)?,
        Format::Doc | Format::Ppt | Format::Xls => office::binary(bytes, format, bounds)?,
        Format::Epub => epub::book(bytes, bounds)?,
        Format::Html => {
            let part = match &options.article_of {
                Some(url) => html::Part::Article(url),
                None => html::Part::Whole,
            };
            (html::page(&characters(), part, bounds)?, false)
        }
        Format::Markdown => (text::markdown(&characters()), false),
        Format::Text => (text::plain(&characters()), false),
        Format::Csv => (csv::table(&characters(), bounds)?, false),
        Format::Python
        | Format::JavaScript
        | Format::Css
        | Format::Json
        | Format::Xml
        | Format::Yaml => (text::code(&characters(), format), false),
        Format::Jpeg | Format::Png | Format::Tiff | Format::Gif | Format::WebP => {
            (picture::document(bytes, format, bounds)?, true)
        }
        Format::Mp4
        | Format::Mov
        | Format::M4v
        | Format::Avi
        | Format::Mp3
        | Format::Wav
        | Format::M4a => {
            return Err(ExtractError::NotText(format));
        }
    };
    if document.markdown.len() > bounds.markdown_bytes {
        return Err(ExtractError::too_large(
            Bound::MarkdownBytes,
            bounds.markdown_bytes,
        ));
    }
    document.finished(has_pictures)
}
