//! The text of an event stream (`text/event-stream`, WHATWG HTML section 9.2) as events, from pieces of any size.

use std::mem;

/// The largest event, in bytes. The last event of a response repeats all of it.
pub const MAX_EVENT_BYTES: usize = 4 * 1024 * 1024;

/// An event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// The event's name; empty when the stream gives none.
    pub name: String,
    /// The data, its lines joined by line breaks.
    pub data: String,
}

/// An event grew beyond [`MAX_EVENT_BYTES`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event of more than {MAX_EVENT_BYTES} bytes")]
pub struct TooLarge;

/// Cuts a stream into events. Comments and fields that are not used here are skipped.
#[derive(Debug, Default)]
pub struct Parser {
    /// The line that is not complete yet, as bytes: a character may be split between two pieces.
    line: Vec<u8>,
    /// The last line ended with CR, so that an LF belongs to it.
    after_cr: bool,
    /// No line has been complete yet, so that a byte order mark may stand before this one.
    started: bool,
    has_data: bool,
    event: Event,
}

impl Parser {
    /// Takes the next bytes and gives the events that are complete now.
    ///
    /// # Errors
    /// When an event is too large.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Event>, TooLarge> {
        let mut events = Vec::new();
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = memchr::memchr2(b'\r', b'\n', rest) {
            self.line.extend_from_slice(&rest[..end]);
            let is_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if is_cr {
                match rest.first() {
                    Some(b'\n') => rest = &rest[1..],
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            events.extend(self.end_line());
            self.bound()?;
        }
        self.line.extend_from_slice(rest);
        self.bound()?;
        Ok(events)
    }

    fn bound(&self) -> Result<(), TooLarge> {
        if self.line.len() + self.event.data.len() > MAX_EVENT_BYTES {
            return Err(TooLarge);
        }
        Ok(())
    }

    fn end_line(&mut self) -> Option<Event> {
        let line = mem::take(&mut self.line);
        let mut line = line.as_slice();
        if !mem::replace(&mut self.started, true) {
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            let event = mem::take(&mut self.event);
            return mem::take(&mut self.has_data).then_some(event);
        }
        let (name, value) = match memchr::memchr(b':', line) {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &line[..0]),
        };
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match name {
            b"data" => {
                if mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(&value);
            }
            b"event" => self.event.name = value.into_owned(),
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(pieces: &[&[u8]]) -> Vec<(String, String)> {
        let mut parser = Parser::default();
        let mut events = Vec::new();
        for piece in pieces {
            events.extend(parser.push(piece).unwrap());
        }
        events.into_iter().map(|e| (e.name, e.data)).collect()
    }

    fn unnamed(data: &[&str]) -> Vec<(String, String)> {
        data.iter()
            .map(|data| (String::new(), (*data).to_owned()))
            .collect()
    }

    #[test]
    fn line_ends_comments_and_fields() {
        let cases: &[(&[u8], &[&str])] = &[
            (b"data: one\n\ndata:two\n\n", &["one", "two"]),
            (
                b"data: one\r\n\r\ndata: two\r\rdata: three\n\n",
                &["one", "two", "three"],
            ),
            (b": ping\n\n: ping\n\ndata: x\n\n", &["x"]),
            (b"data: a\ndata: b\n\n", &["a\nb"]),
            (b"id: 7\nretry: 10\ndata: x\n\n", &["x"]),
            (b"data\n\n", &[""]),
            (b"\xEF\xBB\xBFdata: x\n\n", &["x"]),
            (b"data:  two spaces\n\n", &[" two spaces"]),
            (b"data: never finished", &[]),
        ];
        for (stream, expected) in cases {
            assert_eq!(parse(&[stream]), unnamed(expected), "{stream:?}");
        }
    }

    #[test]
    fn names_belong_to_their_event() {
        let events = parse(&[b"event: error\ndata: {}\n\ndata: x\n\n"]);
        assert_eq!(events[0], ("error".to_owned(), "{}".to_owned()));
        assert_eq!(events[1].0, "");
    }

    #[test]
    fn a_carriage_return_at_the_end_of_a_piece() {
        assert_eq!(
            parse(&[b"data: x\r", b"\n\r", b"\n", b"data: y\r\n\r\n"]),
            unnamed(&["x", "y"])
        );
    }

    #[test]
    fn the_size_is_bounded() {
        let mut parser = Parser::default();
        assert_eq!(parser.push(b"data: "), Ok(vec![]));
        assert_eq!(parser.push(&vec![b'x'; MAX_EVENT_BYTES]), Err(TooLarge));
        let mut parser = Parser::default();
        let lines = b"data: 0123456789\n".repeat(MAX_EVENT_BYTES / 10);
        assert_eq!(parser.push(&lines), Err(TooLarge));
    }

    proptest! {
        #[test]
        fn pieces_of_any_size_give_the_same_events(
            texts in proptest::collection::vec("[^\r\n]{0,12}", 1..12),
            line_end in prop_oneof![Just("\n"), Just("\r\n"), Just("\r")],
            cuts in proptest::collection::vec(1_usize..7, 1..40),
        ) {
            let stream = texts
                .iter()
                .map(|text| format!(": ping{line_end}data: {text}{line_end}{line_end}"))
                .collect::<String>();
            let (mut rest, mut pieces) = (stream.as_bytes(), Vec::new());
            for cut in cuts.iter().cycle() {
                let (piece, after) = rest.split_at((*cut).min(rest.len()));
                pieces.push(piece);
                rest = after;
                if rest.is_empty() { break; }
            }
            let expected = texts.iter().map(String::as_str).collect::<Vec<_>>();
            prop_assert_eq!(parse(&pieces), unnamed(&expected));
        }

        #[test]
        fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut parser = Parser::default();
            for piece in bytes.chunks(3) {
                parser.push(piece).unwrap();
            }
        }
    }
}
