//! A list of a channel, taken apart while the program prints it.
//!
//! The list is one JSON object with an array `entries`, which may be hundreds of megabytes. Each entry is read by itself and dropped, so a list
//! takes the memory of what is kept of its videos. Of everything else, only the platform's name for the channel is read.

use colloquy_sandbox::ProgramOutput;
use serde::Deserialize;

use super::{
    address::{is_video, video_url},
    discovery::ListedVideo,
};
use crate::names;

/// The most videos of a channel that are looked at.
pub(super) const MOST_VIDEOS: usize = 20_000;
/// The longest entry that is read, in bytes: one has two kilobytes at most, unless its description is printed.
const MOST_ENTRY: usize = 256 * 1024;
const CHANNEL_ID: &[u8] = b"\"channel_id\":";
const ENTRIES: &[u8] = b"\"entries\":";

/// A list of a channel, as far as the program printed it. It is not trusted.
#[derive(Debug, Default)]
pub(super) struct List {
    pub(super) channel_id: Option<String>,
    /// In the order of the list, the first [`MOST_VIDEOS`].
    pub(super) videos: Vec<ListedVideo>,
    /// How many entries cannot be read, or are too long.
    pub(super) unread: usize,
}

#[derive(Debug, Deserialize)]
struct ListedEntry {
    #[serde(default)]
    id: String,
    title: Option<String>,
    live_status: Option<String>,
    timestamp: Option<f64>,
}

impl ListedEntry {
    fn video(self) -> Option<ListedVideo> {
        let is_live = matches!(
            self.live_status.as_deref(),
            Some("is_live" | "is_upcoming" | "post_live")
        );
        let title = self.title.as_deref().and_then(names::of_title);
        is_video(&self.id).then(|| ListedVideo {
            title: title.unwrap_or_else(|| names::derived(&video_url(&self.id))),
            id: self.id,
            is_live,
            #[expect(clippy::cast_possible_truncation, reason = "seconds are whole")]
            published_at: self.timestamp.map(|seconds| seconds as i64),
        })
    }
}

/// The part of the object that the next byte belongs to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Position {
    #[default]
    Before,
    /// Among the members of the object.
    Members,
    /// Among the elements of `entries`.
    Entries,
    Behind,
    /// In something that is no such list.
    Junk,
}

/// The output of the program, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Folding {
    position: Position,
    /// The member or entry that is being read, without space between its tokens.
    piece: Vec<u8>,
    /// True if the piece is longer than [`MOST_ENTRY`], and dropped.
    is_too_long: bool,
    /// Arrays and objects within the piece that are open.
    open: usize,
    in_string: bool,
    /// True behind a backslash in a string.
    is_escaped: bool,
    list: List,
}

impl ProgramOutput for Folding {
    fn accept(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.position = self.next(byte);
        }
    }
}

impl Folding {
    /// Returns the list; `None` if the output is something else, or not whole.
    pub(super) fn list(self) -> Option<List> {
        (self.position == Position::Behind).then_some(self.list)
    }

    /// Reads a byte, and returns the position of the next one.
    fn next(&mut self, byte: u8) -> Position {
        if self.in_string {
            self.keep(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.in_string = false,
                _ => {}
            }
            return self.position;
        }
        match (self.position, byte) {
            (Position::Junk, _) => Position::Junk,
            (_, b' ' | b'\t' | b'\r' | b'\n') => self.position,
            (Position::Before, b'{') => Position::Members,
            (Position::Before | Position::Behind, _) => Position::Junk,
            (Position::Members, b'[') if self.open == 0 && self.piece == ENTRIES => {
                self.piece.clear();
                Position::Entries
            }
            (Position::Members, b',') if self.open == 0 => self.end_member(Position::Members),
            (Position::Members, b'}') if self.open == 0 => self.end_member(Position::Behind),
            (Position::Entries, b',') if self.open == 0 => self.end_entry(Position::Entries),
            (Position::Entries, b']') if self.open == 0 => self.end_entry(Position::Members),
            (position, byte) => {
                self.keep(byte);
                match byte {
                    b'"' => self.in_string = true,
                    b'{' | b'[' => self.open += 1,
                    b'}' | b']' => match self.open.checked_sub(1) {
                        Some(open) => self.open = open,
                        None => return Position::Junk,
                    },
                    _ => {}
                }
                position
            }
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.piece.len() == MOST_ENTRY {
            self.is_too_long = true;
            self.piece.clear();
        }
        if !self.is_too_long {
            self.piece.push(byte);
        }
    }

    /// Drops the piece.
    fn drop_piece(&mut self) {
        self.piece.clear();
        self.is_too_long = false;
    }

    fn end_member(&mut self, next: Position) -> Position {
        let next = match self.piece.strip_prefix(CHANNEL_ID) {
            Some(id) => match serde_json::from_slice::<Option<String>>(id) {
                Ok(id) => {
                    self.list.channel_id = id;
                    next
                }
                Err(_) => Position::Junk,
            },
            // An array has been read as one.
            None if self.piece.starts_with(ENTRIES) => Position::Junk,
            None => next,
        };
        self.drop_piece();
        next
    }

    fn end_entry(&mut self, next: Position) -> Position {
        if self.is_too_long {
            self.list.unread += 1;
        } else if !self.piece.is_empty() && self.list.videos.len() < MOST_VIDEOS {
            match serde_json::from_slice::<Option<ListedEntry>>(&self.piece) {
                Ok(entry) => self.list.videos.extend(entry.and_then(ListedEntry::video)),
                Err(_) => self.list.unread += 1,
            }
        }
        self.drop_piece();
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str, at_once: usize) -> Option<List> {
        let mut folding = Folding::default();
        for piece in json.as_bytes().chunks(at_once) {
            folding.accept(piece);
        }
        folding.list()
    }

    fn ids(list: &List) -> Vec<&str> {
        list.videos.iter().map(|video| video.id.as_str()).collect()
    }

    #[test]
    fn a_list_is_read_however_it_comes() {
        let json = r#" {"title": "a \"],} \\", "tags": ["x", {"entries": [{"id": "no"}]}], "entries" : [
            {"id": "a", "title": "{[,\\", "thumbnails": [{"id": "no"}, []], "timestamp": 10.0}, null, {"id": "b"}
        ], "channel_id": "UC1", "more": {"channel_id": "UC2"}}
        "#;
        for at_once in [1, 2, 7, 1_000] {
            let list = read(json, at_once).unwrap();
            assert_eq!(list.channel_id.as_deref(), Some("UC1"));
            assert_eq!(ids(&list), ["a", "b"]);
            assert_eq!((list.unread, list.videos[0].published_at), (0, Some(10)));
            assert_eq!(list.videos[0].title, "{[,\\");
        }
        let none = read(r#"{"channel_id": null, "entries": []}"#, 3).unwrap();
        assert_eq!((none.channel_id, none.videos.len()), (None, 0));
    }

    #[test]
    fn what_a_platform_writes_is_not_trusted() {
        let live = r#"{"entries": [{"id": "a", "live_status": "is_live"}, {"id": "b", "live_status": "is_upcoming"},
            {"id": "c", "live_status": "was_live"}, {"id": "../d"}, {"id": ""}, {}, {"id": 5}, "e"]}"#;
        let list = read(live, 1_000).unwrap();
        let live: Vec<_> = list
            .videos
            .iter()
            .map(|it| (it.id.as_str(), it.is_live))
            .collect();
        assert_eq!(live, [("a", true), ("b", true), ("c", false)]);
        assert_eq!(list.unread, 2);
        for junk in [
            "",
            "[]",
            "<html>",
            r#"{"entries": 5}"#,
            r#"{"entries": null}"#,
            r#"{"channel_id": 5}"#,
            r#"{"entries": []"#,
            r#"{"entries": [}"#,
            r#"{"title": ]}"#,
            r#"{"entries": []} {}"#,
            r#"{"title": "}"#,
        ] {
            assert!(read(junk, 1_000).is_none(), "{junk}");
        }
        let titled = r#"{"entries": [{"id": "a", "title": "Lions\u0000"}, {"id": "b", "title": " \n"}, {"id": "c"}]}"#;
        let titles = read(titled, 1_000).unwrap().videos;
        let titles: Vec<_> = titles.into_iter().map(|it| it.title).collect();
        assert_eq!(titles, ["Lions".to_owned(), video_url("b"), video_url("c")]);
    }

    #[test]
    fn a_list_of_any_length_takes_bounded_memory() {
        let mut folding = Folding::default();
        folding.accept(b"{\"entries\": [");
        let padding = "x".repeat(100);
        for id in 0..100_000 {
            let entry = format!(r#"{{"id": "v{id}", "description": "{padding}"}}, "#);
            folding.accept(entry.as_bytes());
        }
        folding.accept(b"null], \"channel_id\": \"UC1\"}");
        assert!(folding.piece.capacity() <= 2 * MOST_ENTRY);
        let list = folding.list().unwrap();
        assert_eq!((list.videos.len(), list.unread), (MOST_VIDEOS, 0));
        assert_eq!(list.videos[MOST_VIDEOS - 1].id, "v19999");
        assert_eq!(list.channel_id.as_deref(), Some("UC1"));
    }

    #[test]
    fn an_entry_of_megabytes_is_left_out_and_counted() {
        let mut folding = Folding::default();
        folding.accept(b"{\"description\": \"");
        let long = vec![b'x'; 8 * 1024 * 1024];
        folding.accept(&long);
        folding.accept(b"\", \"entries\": [{\"id\": \"a\"}, {\"id\": \"b\", \"title\": \"");
        folding.accept(&long);
        folding.accept(b"\", \"tags\": [[]]}, {\"id\": \"c\"}]}");
        assert!(folding.piece.capacity() <= 2 * MOST_ENTRY);
        let list = folding.list().unwrap();
        assert_eq!(ids(&list), ["a", "c"]);
        assert_eq!(list.unread, 1);
    }
}
