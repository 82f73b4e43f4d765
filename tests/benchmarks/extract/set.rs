//! The documents that extraction is measured with, each beside the Markdown that people made of it.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A document and its reference.
#[derive(Debug)]
pub(crate) struct Sample {
    /// The name of its file.
    pub(crate) name: String,
    /// The folder that it is in: its format.
    pub(crate) format: String,
    pub(crate) bytes: Vec<u8>,
    pub(crate) reference: String,
}

/// Where the documents are.
pub(crate) fn folder() -> PathBuf {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = manifest
        .ancestors()
        .find(|folder| folder.join("tests/data/documents").is_dir());
    root.unwrap_or(manifest).join("tests/data/documents")
}

/// All documents that have a reference, by format and name.
pub(crate) fn samples() -> io::Result<Vec<Sample>> {
    const REFERENCE: &str = ".golden.md";
    let mut samples = vec![];
    for format in fs::read_dir(folder())? {
        let format = format?;
        if !format.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(format.path())? {
            let path = file?.path();
            let text = path.to_string_lossy();
            let Some(document) = text.strip_suffix(REFERENCE) else {
                continue;
            };
            samples.push(Sample {
                name: document.rsplit('/').next().unwrap_or_default().to_owned(),
                format: format.file_name().to_string_lossy().into_owned(),
                bytes: fs::read(document)?,
                reference: fs::read_to_string(&path)?,
            });
        }
    }
    samples.sort_by(|one, other| (&one.format, &one.name).cmp(&(&other.format, &other.name)));
    Ok(samples)
}
