//! The most that one document may cost. Where it stands in relation to nothing else, a figure is absolute: what a valid document
//! is compressed to says little about it, as an empty column of a sheet shows.

/// Bounds on what is read of a document. The child process that reads it has bounds of its own, on memory and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Files inside of a container.
    pub entries: usize,
    /// Bytes of all parts of a container that are text, unpacked.
    pub unpacked_bytes: usize,
    /// Elements inside of elements.
    pub depth: usize,
    /// Elements of all parts.
    pub elements: usize,
    /// Cells of all tables of a sheet or a file of values.
    pub cells: usize,
    /// Pages of a PDF, frames of a picture.
    pub pages: u32,
    /// Pixels of a picture or of the image of a page.
    pub pixels: u64,
    /// Bytes of the Markdown.
    pub markdown_bytes: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            entries: 20_000,
            unpacked_bytes: 256 * 1024 * 1024,
            depth: 256,
            elements: 10_000_000,
            cells: 500_000,
            pages: 20_000,
            pixels: 100_000_000,
            markdown_bytes: 64 * 1024 * 1024,
        }
    }
}
