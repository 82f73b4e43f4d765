//! Compound files: the container of documents, workbooks and presentations of Office 97 to 2003. What their streams say belongs to
//! `stories.rs`, `xls.rs` and `ppt.rs`.

use std::io::{Cursor, Read as _, Result};

/// A compound file in memory.
pub(super) struct CompoundFile<'a> {
    container: cfb::CompoundFile<Cursor<&'a [u8]>>,
    bytes: u64,
}

impl<'a> CompoundFile<'a> {
    /// Reads the directory of a file.
    ///
    /// # Errors
    /// When it is damaged.
    pub(super) fn open(bytes: &'a [u8]) -> Result<Self> {
        Ok(Self {
            container: cfb::CompoundFile::open(Cursor::new(bytes))?,
            bytes: bytes.len() as u64,
        })
    }

    /// Reads the whole stream of this name.
    ///
    /// # Errors
    /// When there is none, or it is damaged.
    pub(super) fn read(&mut self, name: &str) -> Result<Vec<u8>> {
        let mut content = vec![];
        // No stream is longer than the file.
        let mut stream = self.container.open_stream(name)?.take(self.bytes);
        stream.read_to_end(&mut content)?;
        Ok(content)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{ErrorKind, Write as _};

    use super::*;

    #[test]
    fn streams_are_read_whole() {
        let mut made = cfb::CompoundFile::create(Cursor::new(vec![])).unwrap();
        // One that is stored among others, and one with sectors of its own.
        for (name, bytes) in [("/short", 7), ("/long", 9_000)] {
            let mut stream = made.create_stream(name).unwrap();
            stream.write_all(&vec![b'x'; bytes]).unwrap();
        }
        made.flush().unwrap();
        let made = made.into_inner().into_inner();
        let mut file = CompoundFile::open(&made).unwrap();
        assert_eq!(file.read("/short").unwrap(), vec![b'x'; 7]);
        assert_eq!(file.read("/long").unwrap(), vec![b'x'; 9_000]);
        let missing = file.read("/other").unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NotFound);
        assert!(CompoundFile::open(b"no container").is_err());
    }
}
