//! Documents of others, made text.
//!
//! It owns how a document is read by processes that are not trusted, and with how much of what: a child of the sandbox reads its
//! text ([`child`]), another one makes images of the pages that have none, and the program Tesseract recognizes text on those
//! ([`ocr`]), for as long as a document may take ([`pages`]). The sound of recordings and films is decoded likewise ([`sound`]). It stops at
//! the Markdown: where documents come from and where their text goes is the knowledge base's.

pub mod child;
pub mod ocr;
mod pages;
pub mod sound;

use std::{collections::HashSet, convert::Infallible, time::Duration};

use colloquy_base::fair_queue::Claim;
pub use colloquy_extract::{
    Bound, Bounds, ContentType, DetectError, Document, ExtractError, Format, Medium, UnreadReason,
    detect,
};
pub use colloquy_sandbox::Input;
use colloquy_sandbox::{Limit, Limits, Sandbox, SandboxError};

pub use colloquy_audio::media::{Container, MediaError};

use self::pages::{Looked, Pages};
pub use self::{
    child::DocumentDecoder,
    ocr::{NoOcr, Ocr, OcrError},
    sound::SoundDecoder,
};

/// How a document is digitized.
#[derive(Debug, Clone, Default)]
pub struct DigitizeOptions {
    /// The address of a page, when the article on it is wanted and not all of it.
    pub article_of: Option<String>,
    /// The encoding that came with the text.
    pub charset: Option<String>,
    /// The longest text, in bytes of Markdown; `None` for the longest of all.
    pub max_markdown_bytes: Option<usize>,
}

/// Why a document has no text.
#[derive(Debug, thiserror::Error)]
pub enum DigitizeError {
    /// What is wrong with the document, in words for whoever uploaded it.
    #[error(transparent)]
    Document(ExtractError),
    /// What is wrong with a recording.
    #[error(transparent)]
    Sound(MediaError),
    /// The document needs more than any document may.
    #[error("the document is too large: reading it takes too much {}", limit_words(*.0))]
    Limit(Limit),
    /// Its pages are pictures, and nothing is there that recognizes text on them.
    #[error("the document has pages without text, and text recognition is not available")]
    NoOcr,
    /// What reads it failed.
    #[error("the document could not be read: {0}")]
    Crashed(String),
    /// It was not this document's fault.
    #[error("{0}")]
    Later(String),
}

impl DigitizeError {
    /// Whether the same document may be read at another time.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Later(_))
    }
}

/// Whether a failure is that the sandbox has no room, or that somebody killed its child.
#[must_use]
pub fn is_without_room(error: &anyhow::Error) -> bool {
    let mut causes = error.chain();
    causes.any(|cause| cause.downcast_ref().is_some_and(DigitizeError::may_pass))
}

fn limit_words(limit: Limit) -> &'static str {
    match limit {
        Limit::Memory => "memory",
        Limit::Time => "time",
        Limit::Output => "output",
    }
}

impl From<ExtractError> for DigitizeError {
    fn from(error: ExtractError) -> Self {
        Self::Document(error)
    }
}

impl From<MediaError> for DigitizeError {
    fn from(error: MediaError) -> Self {
        Self::Sound(error)
    }
}

impl From<Infallible> for DigitizeError {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl<E: Into<Self>> From<SandboxError<E>> for DigitizeError {
    fn from(error: SandboxError<E>) -> Self {
        match error {
            SandboxError::Refused(error) => error.into(),
            SandboxError::Limit(limit) => Self::Limit(limit),
            SandboxError::Crashed(why) => Self::Crashed(why),
            SandboxError::Killed => Self::Later("the decoder was killed".to_owned()),
            SandboxError::Full(full) => Self::Later(full.to_string()),
            SandboxError::NotStarted(error) => {
                Self::Later(format!("the decoder does not start: {error}"))
            }
        }
    }
}

/// What a document came to.
#[derive(Debug)]
pub struct Digitized {
    /// Its text.
    pub document: Document,
    /// Pages whose text was recognized in their image.
    pub recognized: Vec<u32>,
    /// Pages that should have been looked at and could not be: what is told of them may be missing.
    pub missing: Vec<u32>,
    /// How many pictures inside of the text could not be looked at, and how many objects of other programs there were not read. A picture
    /// that stands for such an object does not count as well.
    pub missing_pictures: u32,
}

/// The text of a document: what it holds, and what is recognized on pages that hold none.
///
/// # Errors
/// When the document is refused, takes too much, or cannot be read now.
pub async fn digitize(
    sandbox: &Sandbox,
    ocr: Option<&Ocr>,
    claim: &Claim,
    file: impl Into<Input>,
    format: Format,
    options: &DigitizeOptions,
) -> Result<Digitized, DigitizeError> {
    let file = file.into();
    let mut document = child::read(sandbox, claim, &file, format, options).await?;
    let most = Bounds::default().markdown_bytes;
    let most = options.max_markdown_bytes.map_or(most, |it| it.min(most));
    let unread: Vec<u32> = document.unread.iter().map(|unread| unread.page).collect();
    let of = |reason: UnreadReason| {
        let pages = document.unread.iter();
        let pages = pages.filter(move |unread| unread.reason == reason);
        pages.map(|unread| unread.page)
    };
    let previews: HashSet<u32> = of(UnreadReason::Preview).collect();
    let pictures = of(UnreadReason::Picture).chain(previews.iter().copied());
    let pictures: HashSet<u32> = pictures.collect();
    let looked = match ocr {
        _ if unread.is_empty() => Looked::default(),
        None => Looked::at_none(&unread, DigitizeError::NoOcr),
        Some(ocr) => {
            let pages = Pages {
                sandbox,
                ocr,
                claim,
                file: &file,
                format,
                is_optional: pictures.len() == unread.len()
                    && document.markdown.contains(char::is_alphanumeric),
            };
            let length = file.length().await;
            let length = length.map_err(|error| DigitizeError::Later(error.to_string()))?;
            pages.look(&unread, most, pages::time_of(length)).await?
        }
    };
    document.fill(|page| {
        let text = looked.recognized.get(&page);
        let text = text.filter(|text| !pictures.contains(&page) || ocr::is_legible(text));
        text.cloned()
    });
    if document.markdown.len() > most {
        return Err(too_long(most));
    }
    // A drawing made of lines is no damage.
    let is_drawing = |failure: &DigitizeError| {
        let is_damaged = matches!(failure, DigitizeError::Document(ExtractError::Damaged(_)));
        is_damaged && !pictures.is_empty()
    };
    let failure = looked.failure.filter(|failure| !is_drawing(failure));
    let document = document.finished(!unread.is_empty()).map_err(|error| {
        // What could not be looked at may have text.
        let failure = failure.filter(|_| error == ExtractError::PicturesOnly);
        failure.unwrap_or(DigitizeError::Document(error))
    })?;
    let is_page = |page: &u32| !pictures.contains(page);
    let (missing, missing_pictures): (Vec<u32>, Vec<u32>) =
        looked.missing.into_iter().partition(is_page);
    // The object that a preview stands for is counted.
    let missing_pictures = missing_pictures
        .iter()
        .filter(|page| !previews.contains(page));
    let missing_pictures = u32::try_from(missing_pictures.count()).unwrap_or(u32::MAX);
    Ok(Digitized {
        missing_pictures: missing_pictures.saturating_add(document.unread_objects),
        document,
        recognized: looked.recognized.into_keys().filter(is_page).collect(),
        missing,
    })
}

/// There is more text than so many bytes.
fn too_long(most: usize) -> DigitizeError {
    DigitizeError::Document(ExtractError::TooLarge {
        bound: Bound::MarkdownBytes,
        most: most as u64,
    })
}

/// How much longer than its processor time a child may take, beside others.
const OTHERS: u32 = 4;

/// Limits of so much processor time.
fn limits(memory_bytes: u64, cpu_seconds: u64, output_bytes: usize) -> Limits {
    Limits {
        memory_bytes,
        cpu_seconds,
        time: Duration::from_secs(cpu_seconds) * OTHERS,
        output_bytes,
    }
}
