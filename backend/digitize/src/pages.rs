//! Pages without text: images are made of them, and text is recognized on these, until the document has taken as much as it may.

use std::{collections::BTreeMap, time::Duration};

use colloquy_base::fair_queue::Claim;
use colloquy_extract::{ExtractError, Format, PageImage};
use colloquy_sandbox::{Caller, Input, Limit, Sandbox, Spent};

use crate::{DigitizeError, Ocr, child, too_long};

/// How long processes may compute for the pages of a document, and what each megabyte of it adds, in seconds. A page of a scan takes two
/// to four seconds and some 50 kB.
const SECONDS: u64 = 2 * 3_600;
const SECONDS_A_MEGABYTE: u64 = 60;
const MEGABYTE: u64 = 1024 * 1024;

/// The time for the pages of a document of this length.
pub(crate) fn time_of(length: u64) -> Duration {
    Duration::from_secs(SECONDS + length / MEGABYTE * SECONDS_A_MEGABYTE)
}

/// What looking at pages came to.
#[derive(Debug, Default)]
pub(crate) struct Looked {
    /// The text of pages.
    pub(crate) recognized: BTreeMap<u32, String>,
    /// Pages that could not be looked at.
    pub(crate) missing: Vec<u32>,
    /// Why the first of them could not be.
    pub(crate) failure: Option<DigitizeError>,
}

impl Looked {
    /// None of them can be looked at.
    pub(crate) fn at_none(pages: &[u32], failure: DigitizeError) -> Self {
        Self {
            missing: pages.to_vec(),
            failure: Some(failure),
            ..Self::default()
        }
    }
}

/// A page, and its image or why it has none.
type Painted = (u32, Result<PageImage, DigitizeError>);

/// The pages of a document, and what looks at them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pages<'a> {
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) ocr: &'a Ocr,
    pub(crate) claim: &'a Claim,
    pub(crate) file: &'a Input,
    pub(crate) format: Format,
    /// Whether the document says enough without them, so that it does not wait for a program that fails at whatever it is given.
    pub(crate) is_optional: bool,
}

impl Pages<'_> {
    /// Recognizes text on pages. After so much time the others are not looked at.
    ///
    /// # Errors
    /// When there is more text than may be, or they cannot be looked at now.
    pub(crate) async fn look(
        &self,
        pages: &[u32],
        most_bytes: usize,
        time: Duration,
    ) -> Result<Looked, DigitizeError> {
        let spent = Spent::default();
        let caller = Caller::counted(self.claim, &spent);
        let (mut looked, mut bytes) = (Looked::default(), 0);
        for some in pages.chunks(child::PAGES_AT_ONCE) {
            let mut images = match spent.time() < time {
                true => self.images(caller, some).await?,
                false => vec![],
            };
            for page in some {
                let at = images.iter().position(|(of, _)| of == page);
                let image = at.map(|at| images.swap_remove(at).1);
                let text = match image {
                    _ if spent.time() >= time => Err(DigitizeError::Limit(Limit::Time)),
                    Some(Ok(image)) => self.text(caller, &image).await?,
                    Some(Err(error)) => Err(error),
                    None => {
                        let why = format!("page {page} cannot be shown");
                        Err(ExtractError::Damaged(why).into())
                    }
                };
                match text {
                    Ok(text) => {
                        bytes += text.len();
                        if bytes > most_bytes {
                            return Err(too_long(most_bytes));
                        }
                        looked.recognized.insert(*page, text);
                    }
                    Err(error) => {
                        looked.missing.push(*page);
                        if looked.failure.is_none() {
                            tracing::info!(page, %error, "pages could not be looked at");
                            looked.failure = Some(error);
                        }
                    }
                }
            }
        }
        Ok(looked)
    }

    /// Images of pages, or why there are none of them. One that its child fails at costs the others nothing.
    async fn images(
        &self,
        caller: Caller<'_>,
        pages: &[u32],
    ) -> Result<Vec<Painted>, DigitizeError> {
        let paint = async |pages| {
            child::page_images(self.sandbox, caller, self.file, self.format, pages).await
        };
        let of_page = |image: PageImage| (image.page, Ok(image));
        let mut images = vec![];
        match (paint(pages).await, pages) {
            (Ok(painted), _) => images.extend(painted.into_iter().map(of_page)),
            (Err(error), _) if error.may_pass() => return Err(error.into()),
            (Err(error), [page]) => images.push((*page, Err(error.into()))),
            (Err(_), pages) => {
                for page in pages {
                    match paint(std::slice::from_ref(page)).await {
                        Ok(painted) => images.extend(painted.into_iter().map(of_page)),
                        Err(error) if error.may_pass() => return Err(error.into()),
                        Err(error) => images.push((*page, Err(error.into()))),
                    }
                }
            }
        }
        Ok(images)
    }

    /// The text on an image, or why there is none.
    ///
    /// # Errors
    /// When no text can be recognized now, on whatever image.
    async fn text(
        &self,
        caller: Caller<'_>,
        image: &PageImage,
    ) -> Result<Result<String, DigitizeError>, DigitizeError> {
        let error = match self.ocr.recognize(self.sandbox, caller, image).await {
            Ok(text) => return Ok(Ok(text)),
            Err(error) if error.may_pass() => return Err(error.into()),
            Err(error) => error,
        };
        match self.ocr.recognize(self.sandbox, caller, &blank()).await {
            Ok(_) => Ok(Err(error.into())),
            Err(_) if self.is_optional => Ok(Err(DigitizeError::NoOcr)),
            Err(broken) => Err(DigitizeError::Later(format!(
                "text recognition fails, also at an empty page: {broken}"
            ))),
        }
    }
}

/// A page with nothing on it.
fn blank() -> PageImage {
    const SIDE: u32 = 64;
    PageImage {
        page: 1,
        width: SIDE,
        height: SIDE,
        dpi: 300,
        gray: vec![255; (SIDE * SIDE) as usize],
    }
}

#[cfg(test)]
mod tests;
