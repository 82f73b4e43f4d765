//! The blocks of a Markdown document, and where a block that is too large may be cut.

use std::ops::Range;

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// The most bytes of a heading's title; longer ones are text.
const MAX_TITLE: usize = 300;

/// A block at the top of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) kind: Kind,
    /// In bytes of the document, without the white space around it.
    pub(super) range: Range<usize>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Heading {
        level: u8,
        title: String,
    },
    Text,
    /// The first level of its items.
    List(Vec<Range<usize>>),
    /// The rows of names, and the others.
    Table {
        names: Range<usize>,
        rows: Vec<Range<usize>>,
    },
    /// Code and the like, whose lines belong together.
    Lines,
}

/// What is being read.
#[derive(Debug, Default)]
struct Open {
    range: Range<usize>,
    title: String,
    names: Range<usize>,
    pieces: Vec<Range<usize>>,
}

/// The blocks, in order. They do not overlap.
pub(super) fn blocks(markdown: &str) -> Vec<Block> {
    let extensions =
        Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH;
    let mut blocks = Vec::new();
    let mut depth = 0_usize;
    let mut open = Open::default();
    for (event, range) in Parser::new_ext(markdown, extensions).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                match depth {
                    0 => {
                        open = Open {
                            range,
                            ..Open::default()
                        }
                    }
                    1 => match tag {
                        Tag::Item | Tag::TableRow => open.pieces.push(range),
                        Tag::TableHead => open.names = range,
                        _ => {}
                    },
                    _ => {}
                }
                depth += 1;
            }
            Event::End(tag) => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    blocks.extend(block(markdown, tag, std::mem::take(&mut open)));
                }
            }
            Event::Text(text) | Event::Code(text) if depth > 0 && open.title.len() <= MAX_TITLE => {
                open.title.push_str(&text);
            }
            Event::SoftBreak | Event::HardBreak if depth > 0 => open.title.push(' '),
            Event::Rule if depth == 0 => {}
            // Such as HTML.
            _ if depth == 0 => blocks.extend(trimmed(markdown, Kind::Text, range)),
            _ => {}
        }
    }
    blocks
}

fn block(markdown: &str, tag: TagEnd, open: Open) -> Option<Block> {
    let source = &markdown[open.range.clone()];
    // Lines of text above a line of dashes are a heading, too, as far as the grammar goes.
    let is_title = source.len() <= MAX_TITLE && source.trim().lines().count() <= 2;
    let kind = match tag {
        TagEnd::Heading(level) if is_title => Kind::Heading {
            level: number(level),
            title: title(&open.title),
        },
        TagEnd::List(_) => Kind::List(open.pieces),
        TagEnd::Table => Kind::Table {
            // The line of dashes stands between the names and the first row.
            names: open.names.start
                ..open
                    .pieces
                    .first()
                    .map_or(open.range.end, |first| first.start),
            rows: open.pieces,
        },
        TagEnd::CodeBlock => Kind::Lines,
        _ => Kind::Text,
    };
    trimmed(markdown, kind, open.range)
}

fn trimmed(markdown: &str, kind: Kind, range: Range<usize>) -> Option<Block> {
    let range = trim(markdown, range);
    (!range.is_empty()).then_some(Block { kind, range })
}

/// The range without the white space at both ends. What is before a line's first word may mean something, so lines stay whole.
pub(super) fn trim(markdown: &str, range: Range<usize>) -> Range<usize> {
    let text = &markdown[range.clone()];
    let end = range.start + text.trim_end().len();
    let blank = text.len() - text.trim_start().len();
    // The first line that is not blank begins here.
    let skipped = text[..blank].rfind('\n').map_or(0, |at| at + 1);
    let start = range.start + skipped;
    start.min(end)..end
}

fn number(level: HeadingLevel) -> u8 {
    match level {
        HeadingLevel::H1 => 1,
        HeadingLevel::H2 => 2,
        HeadingLevel::H3 => 3,
        HeadingLevel::H4 => 4,
        HeadingLevel::H5 => 5,
        HeadingLevel::H6 => 6,
    }
}

/// A title on one line, of bounded length.
pub(super) fn title(text: &str) -> String {
    let mut title = String::new();
    for word in text.split_whitespace() {
        if !title.is_empty() {
            title.push(' ');
        }
        title.push_str(word);
        if title.len() > MAX_TITLE {
            title.truncate(title.floor_char_boundary(MAX_TITLE));
            break;
        }
    }
    title
}
