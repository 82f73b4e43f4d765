//! Tables of contents as they are stored.

use colloquy_index::chunking::{Chunk, Heading, table_of_contents};

/// The largest table of contents that is kept, in bytes.
const MAX_BYTES: usize = 64 * 1024;

/// A stored table of contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableOfContents {
    /// The headings as a tree, JSON.
    pub(crate) json: String,
    /// Headings of the document that are not in it.
    pub(crate) left_out: usize,
}

impl TableOfContents {
    pub(super) fn empty() -> Self {
        Self {
            json: "[]".to_owned(),
            left_out: 0,
        }
    }

    /// Returns the headings of a document. Where they take more than 64 KiB, the lower levels are left out, and where those of the
    /// highest level alone take more, the last ones.
    pub(super) fn of(chunks: &[Chunk]) -> Self {
        let all: Vec<(usize, &Heading)> = chunks
            .iter()
            .flat_map(|chunk| chunk.headings.iter().map(|heading| (chunk.index, heading)))
            .collect();
        let Some(highest) = all.iter().map(|(_, heading)| heading.level).min() else {
            return Self::empty();
        };
        for lowest in (highest..=6).rev() {
            let kept = up_to(&all, lowest);
            if let Ok(json) = serde_json::to_string(&table_of_contents(kept.iter().copied()))
                && json.len() <= MAX_BYTES
            {
                return Self {
                    json,
                    left_out: all.len() - kept.len(),
                };
            }
        }
        let mut json = "[".to_owned();
        let mut kept = 0;
        // Nothing is below another heading of its own level.
        for entry in table_of_contents(up_to(&all, highest)) {
            let Ok(entry) = serde_json::to_string(&entry) else {
                break;
            };
            // A comma before it, and the bracket behind the last one.
            if json.len() + entry.len() + 2 > MAX_BYTES {
                break;
            }
            if kept > 0 {
                json.push(',');
            }
            json.push_str(&entry);
            kept += 1;
        }
        json.push(']');
        Self {
            json,
            left_out: all.len() - kept,
        }
    }
}

/// The headings of a level and of those above it, each with the index of its chunk.
fn up_to<'a>(all: &[(usize, &'a Heading)], lowest: u8) -> Vec<(usize, &'a Heading)> {
    let kept = all.iter().filter(|(_, heading)| heading.level <= lowest);
    kept.copied().collect()
}

#[cfg(test)]
mod tests {
    use colloquy_index::chunking::{ChunkId, TocEntry};

    use super::*;

    /// A chunk with headings of these levels.
    fn chunk(levels: impl IntoIterator<Item = u8>) -> Chunk {
        let heading = |(at, level): (usize, u8)| Heading {
            level,
            title: format!("Heading {at}"),
            start: at * 10,
        };
        Chunk {
            id: "00000000000000000000000000000000"
                .parse::<ChunkId>()
                .unwrap(),
            index: 0,
            path: Vec::new(),
            headings: levels.into_iter().enumerate().map(heading).collect(),
            text: String::new(),
            range: 0..0,
            tokens: 0,
        }
    }

    fn read(table: &TableOfContents) -> Vec<TocEntry> {
        assert!(table.json.len() <= MAX_BYTES);
        serde_json::from_str(&table.json).unwrap()
    }

    #[test]
    fn a_table_that_fits_has_all_headings() {
        let table = TableOfContents::of(&[chunk([1, 2, 2, 1])]);
        assert_eq!(table.left_out, 0);
        let entries = read(&table);
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].children.len(), 2);
        assert_eq!(TableOfContents::of(&[chunk([])]), TableOfContents::empty());
    }

    #[test]
    fn lower_levels_are_left_out_first() {
        let levels = (0..2_000).map(|at| if at % 10 == 0 { 2 } else { 3 });
        let table = TableOfContents::of(&[chunk(levels)]);
        let entries = read(&table);
        assert_eq!((entries.len(), table.left_out), (200, 1_800));
        assert!(entries.iter().all(|entry| entry.level == 2));
    }

    #[test]
    fn the_first_headings_of_the_highest_level_are_kept() {
        for highest in [1, 3, 6] {
            let table = TableOfContents::of(&[chunk(std::iter::repeat_n(highest, 2_000))]);
            let entries = read(&table);
            assert_eq!(entries.len() + table.left_out, 2_000);
            assert!(table.json.len() > MAX_BYTES - 200, "as many as fit");
            for (at, entry) in entries.iter().enumerate() {
                assert_eq!(entry.title, format!("Heading {at}"));
            }
        }
    }
}
