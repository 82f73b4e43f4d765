//! The child that reads a document: what it is told, what it does, and what it may use.

use clap::{Args, Subcommand};
use colloquy_base::fair_queue::Claim;
use colloquy_extract::{
    Bounds, Document, ExtractError, Format, MOST_PIXELS, Options, PageImage, extract,
    page_images as images_of,
};
use colloquy_sandbox::{Caller, Input, Sandbox, SandboxError};

use crate::{DigitizeOptions, limits};

/// How many pages a child makes images of: they are all in memory when it is done.
pub const PAGES_AT_ONCE: usize = 8;

/// The address space of a child without its document. Most of it is what the allocator sets aside for a thread, and the stack of
/// the reader, and never touched.
const CHILD_BYTES: u64 = 512 * 1024 * 1024;
/// The most address space of a child.
const MOST_CHILD_BYTES: u64 = 4 * 1024 * 1024 * 1024;
/// What a compressed document may take whatever its size, beside: as many cells as a sheet may have take 300 MB, in a file of 2 MB.
const COMPRESSED_BYTES: u64 = 1024 * 1024 * 1024;
/// Processor time of the smallest document, and what each megabyte adds to it, in seconds: a megabyte of PDF has some 350 pages of text.
const CHILD_SECONDS: u64 = 30;
const SECONDS_A_MEGABYTE: u64 = 6;
/// Processor time of an image of a page, in seconds.
const SECONDS_A_PAGE: u64 = 10;
/// The longest result: Markdown as JSON, in which some characters take two bytes.
const MOST_RESULT_BYTES: usize = 2 * 64 * 1024 * 1024;
const MEGABYTE: u64 = 1024 * 1024;

/// What the child is told.
#[derive(Debug, Clone, Args)]
pub struct DocumentDecoder {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Clone, Subcommand)]
enum Task {
    /// Its text.
    Text {
        /// What it is: an extension.
        #[arg(long, value_parser = parse_format)]
        format: Format,
        /// The address of a page whose article is wanted.
        #[arg(long)]
        article_of: Option<String>,
        /// The encoding that came with it.
        #[arg(long)]
        charset: Option<String>,
        /// The longest text.
        #[arg(long)]
        max_markdown_bytes: Option<usize>,
    },
    /// Images of its pages.
    Images {
        /// What it is: an extension.
        #[arg(long, value_parser = parse_format)]
        format: Format,
        /// The pages, from 1 on.
        #[arg(long, value_delimiter = ',')]
        pages: Vec<u32>,
    },
}

fn parse_format(extension: &str) -> Result<Format, String> {
    Format::of_extension(extension).ok_or_else(|| format!("{extension} is no format"))
}

impl DocumentDecoder {
    /// Does the child's work: a [`Document`] as JSON, or images one after another.
    ///
    /// # Errors
    /// When the document is refused.
    pub fn decode(&self, file: &[u8]) -> Result<Vec<u8>, ExtractError> {
        match &self.task {
            Task::Text {
                format,
                article_of,
                charset,
                max_markdown_bytes,
            } => {
                let mut bounds = Bounds::default();
                if let Some(most) = max_markdown_bytes {
                    bounds.markdown_bytes = bounds.markdown_bytes.min(*most);
                }
                let options = Options {
                    article_of: article_of.clone(),
                    charset: charset.clone(),
                    bounds,
                };
                let document = extract(file, *format, &options)?;
                serde_json::to_vec(&document)
                    .map_err(|error| ExtractError::Failed(error.to_string()))
            }
            Task::Images { format, pages } => {
                let mut output = vec![];
                images_of(file, *format, pages, &Bounds::default(), |image| {
                    image.write(&mut output)
                })?;
                Ok(output)
            }
        }
    }
}

/// The text of a document, read by a child.
///
/// # Errors
/// When it is refused, or takes more than a document of its size may.
pub async fn read(
    sandbox: &Sandbox,
    claim: &Claim,
    file: &Input,
    format: Format,
    options: &DigitizeOptions,
) -> Result<Document, SandboxError<ExtractError>> {
    let (address, encoding, longest);
    let mut what = vec!["document", "text", "--format", format.name()];
    if let Some(url) = &options.article_of {
        address = format!("--article-of={url}");
        what.push(&address);
    }
    if let Some(charset) = &options.charset {
        encoding = format!("--charset={charset}");
        what.push(&encoding);
    }
    if let Some(most) = options.max_markdown_bytes {
        longest = format!("--max-markdown-bytes={most}");
        what.push(&longest);
    }
    let length = file.length().await.map_err(SandboxError::NotStarted)?;
    let limits = limits(
        (CHILD_BYTES + memory_of(format, length)).min(MOST_CHILD_BYTES),
        seconds_of(length),
        MOST_RESULT_BYTES,
    );
    let document = sandbox.decode(claim, &what, limits, file.clone()).await?;
    serde_json::from_slice(&document)
        .map_err(|error| SandboxError::Crashed(format!("no document: {error}")))
}

/// Images of some pages of a document, at most [`PAGES_AT_ONCE`]. Pages that cannot be shown have none.
///
/// # Errors
/// When the document is refused, or a page takes more than it may.
pub async fn page_images(
    sandbox: &Sandbox,
    caller: impl Into<Caller<'_>>,
    file: &Input,
    format: Format,
    pages: &[u32],
) -> Result<Vec<PageImage>, SandboxError<ExtractError>> {
    let list: Vec<String> = pages.iter().map(u32::to_string).collect();
    let list = list.join(",");
    let what = [
        "document",
        "images",
        "--format",
        format.name(),
        "--pages",
        &list,
    ];
    let length = file.length().await.map_err(SandboxError::NotStarted)?;
    let output = pages.len() as u64 * u64::from(MOST_PIXELS) + MEGABYTE;
    let limits = limits(
        // The images while they grow; what paints one has a picture of it in colours, and the page's own pictures.
        CHILD_BYTES + 3 * output + 24 * u64::from(MOST_PIXELS) + 4 * length,
        seconds_of(length) + SECONDS_A_PAGE * pages.len() as u64,
        usize::try_from(output).unwrap_or(usize::MAX),
    );
    let output = sandbox.decode(caller, &what, limits, file.clone()).await?;
    Ok(PageImage::read(&output))
}

/// What a document may take in memory, by its size. Measured (resident): text 4 times its size, PDF 11 times with little else but
/// text and 2.4 times with pictures, HTML 15 to 18 times, Word 22 times, a sheet of half a million cells 300 MB.
fn memory_of(format: Format, length: u64) -> u64 {
    match format {
        // What is compressed is read as a whole, but for its pictures.
        Format::Docx | Format::Pptx | Format::Xlsx | Format::Epub => COMPRESSED_BYTES + 24 * length,
        Format::Html => 24 * length,
        Format::Pdf => 16 * length,
        _ => 8 * length,
    }
}

fn seconds_of(length: u64) -> u64 {
    CHILD_SECONDS + length * SECONDS_A_MEGABYTE / MEGABYTE
}
