//! Documents of others, made text.
//!
//! It owns how a document is read by processes that are not trusted, and with how much of what: a child of the sandbox reads its
//! text ([`child`]), another one makes images of the pages that have none, and the program Tesseract recognizes text on those
//! ([`ocr`]). The sound of recordings and films is decoded likewise ([`sound`]). It stops at the Markdown: where documents come from and where their text goes is the knowledge base's.

pub mod child;
pub mod ocr;
pub mod sound;

use std::time::Duration;

use colloquy_base::fair_queue::Claim;
use colloquy_extract::PageImage;
pub use colloquy_extract::{
    Bound, Bounds, ContentType, DetectError, Document, ExtractError, Format, Medium, UnreadReason,
    detect,
};
pub use colloquy_sandbox::Input;
use colloquy_sandbox::{Limit, Limits, Sandbox, SandboxError};

pub use colloquy_audio::media::{Container, MediaError};

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

impl From<SandboxError<ExtractError>> for DigitizeError {
    fn from(error: SandboxError<ExtractError>) -> Self {
        match error {
            SandboxError::Refused(error) => Self::Document(error),
            SandboxError::Limit(limit) => Self::Limit(limit),
            SandboxError::Crashed(why) => Self::Crashed(why),
            passing => Self::Later(passing.to_string()),
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
    let unread: Vec<u32> = document.unread.iter().map(|unread| unread.page).collect();
    let mut recognized: Vec<(u32, String)> = vec![];
    let mut missing = vec![];
    if let Some(ocr) = ocr {
        for pages in unread.chunks(child::PAGES_AT_ONCE) {
            let images = images(sandbox, claim, &file, format, pages).await?;
            for page in pages {
                let image = images.iter().find(|image| image.page == *page);
                match image {
                    Some(image) => match ocr.recognize(sandbox, claim, image).await {
                        Ok(text) => recognized.push((*page, text)),
                        Err(error) if error.may_pass() => {
                            return Err(DigitizeError::Later(error.to_string()));
                        }
                        Err(error) => {
                            tracing::info!(page, %error, "no text was recognized on a page");
                            missing.push(*page);
                        }
                    },
                    None => missing.push(*page),
                }
            }
        }
    } else {
        missing.clone_from(&unread);
    }
    document.fill(|page| {
        let found = recognized.iter().find(|(number, _)| *number == page);
        found.map(|(_, text)| text.clone())
    });
    if let Some(most) = options.max_markdown_bytes
        && document.markdown.len() > most
    {
        let (bound, most) = (Bound::MarkdownBytes, most as u64);
        return Err(DigitizeError::Document(ExtractError::TooLarge {
            bound,
            most,
        }));
    }
    let document = document.finished(!unread.is_empty()).map_err(|error| {
        if ocr.is_none() && error == ExtractError::PicturesOnly {
            DigitizeError::NoOcr
        } else {
            DigitizeError::Document(error)
        }
    })?;
    Ok(Digitized {
        document,
        recognized: recognized.into_iter().map(|(page, _)| page).collect(),
        missing,
    })
}

/// Images of pages. One that its child fails at costs the others nothing.
async fn images(
    sandbox: &Sandbox,
    claim: &Claim,
    file: &Input,
    format: Format,
    pages: &[u32],
) -> Result<Vec<PageImage>, DigitizeError> {
    match child::page_images(sandbox, claim, file, format, pages).await {
        Ok(images) => Ok(images),
        Err(error) if error.may_pass() => Err(error.into()),
        Err(_) if pages.len() > 1 => {
            let mut images = vec![];
            for page in pages {
                match child::page_images(sandbox, claim, file, format, &[*page]).await {
                    Ok(image) => images.extend(image),
                    Err(error) if error.may_pass() => return Err(error.into()),
                    Err(error) => tracing::info!(page, %error, "a page cannot be shown"),
                }
            }
            Ok(images)
        }
        Err(error) => {
            tracing::info!(?pages, %error, "a page cannot be shown");
            Ok(vec![])
        }
    }
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
