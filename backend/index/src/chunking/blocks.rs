//! The blocks of a Markdown document, and where a block that is too large may be cut.
//!
//! The parser keeps about a hundred bytes for each byte of hostile text, such as `*a* ` again and again, so a document is parsed a piece at a
//! time. A piece ends where its last block begins, which is parsed again with what follows; so blocks are those of the whole document,
//! unless one is larger than [`PieceLimits::most`]. Such a block is cut between its items, rows or lines.

use std::{
    borrow::Cow,
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    ops::Range,
};

use pulldown_cmark::{
    BrokenLink, CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd,
};

/// The most bytes of a heading's title; longer ones are text.
const MAX_TITLE: usize = 300;
/// The most bytes of a line, or of the names of a table, that stands before the rest of a block that was cut.
const MAX_OPENING: usize = 4 * 1024;
/// The most labels of link definitions that are known beyond their piece.
const MAX_LABELS: usize = 64 * 1024;

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

/// How much of a document is parsed at once, in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct PieceLimits {
    /// How large pieces are.
    pub(super) usual: usize,
    /// How large a piece becomes for a block that is larger than that.
    pub(super) most: usize,
}

impl Default for PieceLimits {
    fn default() -> Self {
        Self {
            usual: 32 * 1024,
            most: 128 * 1024,
        }
    }
}

/// Reads the blocks of a document, piece by piece.
pub(super) struct Blocks<'a> {
    markdown: &'a str,
    limits: PieceLimits,
    /// Where the next piece begins.
    from: usize,
    /// What stands before the next piece while a block that was cut goes on: the first line of code, or the names of a table.
    opening: Range<usize>,
    /// Hashes of the labels that the document defines, as the parser sees the definitions of a piece alone.
    labels: HashSet<u64>,
}

/// What is being read.
#[derive(Debug, Default)]
struct Open {
    range: Range<usize>,
    title: String,
    names: Range<usize>,
    pieces: Vec<Range<usize>>,
    is_fenced: bool,
}

/// Something at the top of a piece.
struct Top {
    /// As the parser has it.
    range: Range<usize>,
    /// `None`: there is nothing to be found in it.
    block: Option<Block>,
    is_fenced: bool,
}

impl<'a> Blocks<'a> {
    pub(super) fn new(markdown: &'a str, limits: PieceLimits) -> Self {
        let is_one_piece = markdown.len() <= limits.usual;
        Self {
            markdown,
            limits,
            from: 0,
            opening: 0..0,
            labels: match is_one_piece {
                true => HashSet::new(),
                false => labels(markdown),
            },
        }
    }

    /// The next blocks, in order, or `None` at the end. They do not overlap.
    pub(super) fn next_piece(&mut self) -> Option<Vec<Block>> {
        if self.from >= self.markdown.len() {
            return None;
        }
        let mut size = self.limits.usual;
        loop {
            let end = self.piece_end(size);
            let mut tops = self.parse(end);
            if end == self.markdown.len() {
                self.go_on(end);
                return Some(taken(tops));
            }
            let Some(last) = tops.pop() else {
                // White space in front of a line says what the line is.
                let line = self.line_start(end);
                if line == self.from && size < self.limits.most {
                    size = (size * 2).min(self.limits.most);
                    continue;
                }
                self.go_on(if line > self.from { line } else { end });
                return Some(Vec::new());
            };
            if !self.markdown[last.range.end..end].trim().is_empty() {
                // Definitions of links follow it, which are no blocks.
                self.go_on(last.range.end);
                tops.push(last);
                return Some(taken(tops));
            }
            if !tops.is_empty() {
                let before = tops.last().map_or(self.from, |before| before.range.end);
                self.go_on(self.line_start(last.range.start).max(before));
                return Some(taken(tops));
            }
            if size >= self.limits.most {
                return Some(self.cut(last, end));
            }
            size = (size * 2).min(self.limits.most);
        }
    }

    /// Goes on with blocks that are not those of before.
    fn go_on(&mut self, from: usize) {
        self.from = from;
        self.opening = 0..0;
    }

    /// Where a piece of this size ends: after a line, else after a word.
    fn piece_end(&self, size: usize) -> usize {
        let rest = &self.markdown[self.from..];
        if rest.len() <= size {
            return self.markdown.len();
        }
        let piece = &rest[..rest.floor_char_boundary(size)];
        let line = piece.rfind('\n').map(|at| at + 1);
        let end = line.or_else(|| piece.rfind(' ').map(|at| at + 1));
        // A character is four bytes at most.
        let end = end.unwrap_or(piece.len()).max(rest.ceil_char_boundary(1));
        self.from + end
    }

    /// Where the line begins that this is in.
    fn line_start(&self, at: usize) -> usize {
        let before = &self.markdown[self.from..at];
        self.from + before.rfind('\n').map_or(0, |at| at + 1)
    }

    /// Takes what is read of a block that is larger than a piece, and goes on with its rest.
    fn cut(&mut self, top: Top, end: usize) -> Vec<Block> {
        let begin = self.line_start(top.range.start);
        let opening = std::mem::take(&mut self.opening);
        let kind = match top.block.map(|block| block.kind) {
            Some(Kind::List(mut items)) if items.len() > 1 => {
                let last = items.pop().map_or(end, |last| last.start);
                self.from = self.line_start(last);
                Kind::List(items)
            }
            Some(Kind::Table { names, mut rows }) => {
                let last = match rows.len() {
                    0 | 1 => end,
                    _ => rows.pop().map_or(end, |last| last.start),
                };
                self.from = self.line_start(last);
                if names.len() <= MAX_OPENING {
                    self.opening = names.clone();
                }
                Kind::Table { names, rows }
            }
            Some(Kind::Lines) => {
                self.from = end;
                let line = self.markdown[begin..end]
                    .find('\n')
                    .map(|at| begin + at + 1);
                self.opening = match line {
                    _ if !opening.is_empty() => opening,
                    Some(line) if top.is_fenced && line - begin <= MAX_OPENING => begin..line,
                    _ => 0..0,
                };
                Kind::Lines
            }
            _ => Kind::Text,
        };
        if self.from <= begin {
            self.from = end;
        }
        trimmed(self.markdown, kind, begin..self.from)
            .into_iter()
            .collect()
    }

    /// Parses the document from where the piece begins up to `end`.
    fn parse(&self, end: usize) -> Vec<Top> {
        let markdown = self.markdown;
        let piece = &markdown[self.from..end];
        let opening = &markdown[self.opening.clone()];
        let text = match opening {
            "" => Cow::Borrowed(piece),
            opening => Cow::Owned(format!("{opening}{piece}")),
        };
        // What stands before the piece is nowhere in it.
        let place = |at: usize| self.from + at.saturating_sub(opening.len());
        let extensions =
            Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH;
        let is_defined = |link: BrokenLink<'_>| {
            let is_defined =
                !self.labels.is_empty() && self.labels.contains(&label(&link.reference));
            is_defined.then(|| (CowStr::from(""), CowStr::from("")))
        };
        let parser = Parser::new_with_broken_link_callback(&text, extensions, Some(is_defined));
        let mut tops = Vec::new();
        let mut depth = 0_usize;
        let mut open = Open::default();
        for (event, range) in parser.into_offset_iter() {
            let range = place(range.start)..place(range.end);
            match event {
                Event::Start(tag) => {
                    match depth {
                        0 => {
                            open = Open {
                                range,
                                is_fenced: matches!(tag, Tag::CodeBlock(CodeBlockKind::Fenced(_))),
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
                        let open = std::mem::take(&mut open);
                        tops.push(Top {
                            range: open.range.clone(),
                            is_fenced: open.is_fenced,
                            block: self.block(tag, open),
                        });
                    }
                }
                Event::Text(text) | Event::Code(text)
                    if depth > 0 && open.title.len() <= MAX_TITLE =>
                {
                    open.title.push_str(&text);
                }
                Event::SoftBreak | Event::HardBreak if depth > 0 => open.title.push(' '),
                // A rule has nothing to be found; else it is HTML and the like.
                event if depth == 0 => tops.push(Top {
                    block: match event {
                        Event::Rule => None,
                        _ => trimmed(markdown, Kind::Text, range.clone()),
                    },
                    range,
                    is_fenced: false,
                }),
                _ => {}
            }
        }
        tops
    }

    /// The block that ends, if there is something in it.
    fn block(&self, tag: TagEnd, open: Open) -> Option<Block> {
        let goes_on = !self.opening.is_empty() && open.range.start <= self.from;
        let block = block(self.markdown, tag, open)?;
        let kind = match block.kind {
            // The names are those that stand before the piece.
            Kind::Table { rows, .. } if goes_on => Kind::Table {
                names: self.opening.clone(),
                rows,
            },
            kind => kind,
        };
        Some(Block { kind, ..block })
    }
}

fn taken(tops: Vec<Top>) -> Vec<Block> {
    tops.into_iter().filter_map(|top| top.block).collect()
}

/// Hashes of the labels of link definitions. They need not be right about every line: all that depends on them is whether the brackets of a
/// heading belong to its title.
fn labels(markdown: &str) -> HashSet<u64> {
    let defined = markdown.lines().filter_map(|line| {
        let (name, _) = line.trim_start().strip_prefix('[')?.split_once("]:")?;
        (!name.starts_with('^')).then(|| label(name))
    });
    defined.take(MAX_LABELS).collect()
}

/// The hash of a label, whose case and white space say nothing.
fn label(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    for word in name.split_whitespace() {
        word.to_lowercase().hash(&mut hasher);
    }
    hasher.finish()
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
