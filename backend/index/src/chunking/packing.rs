//! Blocks into chunks: as many as fit, cut where it hurts least.

use std::ops::Range;

use super::{
    Chunk, ChunkId, ChunkOptions, CutLimits, Heading, NotCut,
    blocks::{Block, Blocks, Kind, PieceLimits, title, trim},
    passage,
};

/// The most that the path may take of a chunk's tokens.
const PATH_SHARE: usize = 3;
/// The most that the names of a table's columns may take of a chunk, when they are repeated.
const NAMES_SHARE: usize = 4;
/// Sections of fewer tokens than this share a chunk whatever their levels are, so that a document has a chunk for every few bytes at most.
const TINY: usize = 12;
/// A block that announces the next one moves to its chunk when it is no more than this part of one.
const ANNOUNCEMENT_SHARE: usize = 4;
/// A token counts for no more bytes than this, so that a chunk has a bound in bytes, too.
const MAX_TOKEN_BYTES: usize = 16;
/// The most headings of a document that are told from its text; those beyond are text. Each takes many times its bytes.
const MAX_DOCUMENT_HEADINGS: usize = 50_000;
/// The most headings of a chunk.
const MAX_HEADINGS: usize = 128;

/// What a chunk is made of while it grows.
#[derive(Debug, Default)]
struct Open {
    range: Range<usize>,
    /// Of the text, without the path.
    tokens: usize,
    path: Vec<String>,
    path_tokens: usize,
    headings: Vec<Heading>,
    /// The highest level that its first section is below.
    level: u8,
    /// The row of names that stands before its text.
    names: Option<Range<usize>>,
    /// The last block, when it announces the next one.
    announcement: Option<Announcement>,
}

/// A block that announces the next one, such as "The prices are:", with the headings right before it.
#[derive(Debug)]
struct Announcement {
    range: Range<usize>,
    /// Where it begins with its headings.
    start: usize,
    tokens: usize,
    headings: usize,
}

/// Makes the chunks of a document.
pub(super) struct Packer<'a> {
    markdown: &'a str,
    options: ChunkOptions,
    /// The bytes for which a token counts at most.
    token_bytes: usize,
    count: &'a dyn Fn(&str) -> usize,
    title: String,
    /// The headings that the next block stands under.
    above: Vec<Heading>,
    /// Headings below which nothing has stood yet.
    pending: Vec<Heading>,
    /// How many headings there were.
    headings: usize,
    open: Option<Open>,
    chunks: Vec<Chunk>,
}

impl<'a> Packer<'a> {
    pub(super) fn new(
        markdown: &'a str,
        document: &str,
        options: ChunkOptions,
        count: &'a dyn Fn(&str) -> usize,
    ) -> Self {
        let max_bytes = options.max_bytes.max(ChunkOptions::SMALLEST);
        let max_tokens = options.max_tokens.clamp(ChunkOptions::SMALLEST, max_bytes);
        Self {
            markdown,
            options: ChunkOptions {
                max_tokens,
                max_bytes,
                ..options
            },
            token_bytes: (max_bytes / max_tokens).min(MAX_TOKEN_BYTES),
            count,
            title: title(document),
            above: Vec::new(),
            pending: Vec::new(),
            headings: 0,
            open: None,
            chunks: Vec::new(),
        }
    }

    /// Cuts the document, a piece of it after another.
    pub(super) fn pack(mut self, limits: &CutLimits<'_>) -> Result<Vec<Chunk>, NotCut> {
        let mut blocks = Blocks::new(self.markdown, PieceLimits::default());
        while let Some(piece) = blocks.next_piece() {
            for block in piece {
                if (limits.is_stopped)() {
                    return Err(NotCut::Stopped);
                }
                match block.kind {
                    Kind::Heading { level, title } if self.headings < MAX_DOCUMENT_HEADINGS => {
                        self.headings += 1;
                        self.heading(Heading {
                            level,
                            title,
                            start: block.range.start,
                        });
                    }
                    _ => self.block(&block),
                }
                if self.chunks.len() > limits.max_chunks {
                    return Err(NotCut::TooMany);
                }
            }
        }
        self.flush();
        if !self.pending.is_empty() {
            self.headings_alone(self.markdown.len());
        }
        match self.chunks.len() > limits.max_chunks {
            true => Err(NotCut::TooMany),
            false => Ok(self.chunks),
        }
    }

    /// A section begins.
    fn heading(&mut self, heading: Heading) {
        let goes_on = self.open.as_ref().is_some_and(|open| {
            let fits = open.path_tokens + open.tokens < self.options.max_tokens;
            let is_small = open.tokens < self.options.min_tokens && heading.level >= open.level;
            let headings = open.headings.len() + self.pending.len();
            fits && headings < MAX_HEADINGS && (is_small || open.tokens < TINY)
        });
        if !goes_on {
            self.flush();
        }
        let gathered = self.pending.first().map(|first| first.start);
        if let Some(start) = gathered
            && self.open.is_none()
            && (self.pending.len() >= MAX_HEADINGS
                || self.tokens(&(start..heading.start)) >= self.options.max_tokens / 2)
        {
            self.headings_alone(heading.start);
        }
        self.above.retain(|above| above.level < heading.level);
        // Levels that are skipped cannot make a path long: each level is there once.
        self.above.push(heading.clone());
        self.pending.push(heading);
    }

    /// A chunk of headings below which nothing stands, up to `end`.
    fn headings_alone(&mut self, end: usize) {
        let pending = std::mem::take(&mut self.pending);
        let Some(first) = pending.first() else {
            return;
        };
        let range = first.start..end;
        let mut open = self.opened(range.start, vec![self.title.clone()], first.level);
        open.headings = pending;
        self.open = Some(open);
        self.pieces(&range, None);
        self.flush();
    }

    fn block(&mut self, block: &Block) {
        if let Kind::Table { names, .. } = &block.kind
            && names.start < block.range.start
        {
            // The rest of a table, whose names stand far above.
            return self.cut(block);
        }
        if let Some(open) = &self.open {
            // Headings between two blocks of a chunk belong to its text.
            let start = open.range.end;
            let tokens = self.tokens(&(start..block.range.end));
            if open.path_tokens + open.tokens + tokens <= self.options.max_tokens
                && self.is_short(open, block.range.end)
            {
                return self.extend(block, tokens);
            }
            let announcement = self.take_announcement();
            self.flush();
            if let Some(announcement) = announcement {
                self.begin(announcement.start);
                let start = self
                    .open
                    .as_ref()
                    .map_or(announcement.start, |open| open.range.start);
                self.pieces(&(start..announcement.end), None);
                return self.block(block);
            }
        }
        self.begin(block.range.start);
        let start = self.open.as_ref().map(|open| open.range.start);
        let start = start.unwrap_or(block.range.start);
        let tokens = self.tokens(&(start..block.range.end));
        if tokens <= self.room() {
            return self.extend(block, tokens);
        }
        self.pieces(&(start..block.range.start), None);
        self.cut(block);
    }

    /// Adds a block to the open chunk, in which it has room.
    fn extend(&mut self, block: &Block, tokens: usize) {
        let announcement = self.announcement(block);
        if let Some(open) = &mut self.open {
            open.announcement =
                announcement.filter(|announcement| announcement.start > open.range.start);
            open.range.end = block.range.end;
            open.tokens += tokens;
            open.headings.append(&mut self.pending);
        }
    }

    fn announcement(&self, block: &Block) -> Option<Announcement> {
        let text = &self.markdown[block.range.clone()];
        if block.kind != Kind::Text || !text.ends_with([':', '：']) {
            return None;
        }
        let first = self.pending.first().map(|first| first.start);
        let start = first.unwrap_or(block.range.start);
        let tokens = self.tokens(&(start..block.range.end));
        (tokens * ANNOUNCEMENT_SHARE <= self.options.max_tokens).then(|| Announcement {
            range: block.range.clone(),
            start,
            tokens,
            headings: self.pending.len(),
        })
    }

    /// Takes the announcing block at the end of the open chunk out of it, with its headings.
    fn take_announcement(&mut self) -> Option<Range<usize>> {
        let open = self.open.as_mut()?;
        let announcement = open.announcement.take()?;
        let kept = open.headings.len().saturating_sub(announcement.headings);
        self.pending.splice(0..0, open.headings.split_off(kept));
        open.range.end = announcement.start;
        open.tokens = open.tokens.saturating_sub(announcement.tokens);
        Some(announcement.range)
    }

    /// Opens a chunk for a block that begins here, with the headings before it.
    fn begin(&mut self, start: usize) {
        let pending = std::mem::take(&mut self.pending);
        // Headings that are above the block are its path. Another has nothing below it, and is text.
        let lost = pending
            .iter()
            .find(|heading| !self.above.contains(heading))
            .map(|heading| (heading.start, heading.level));
        let mut path = vec![self.title.clone()];
        let above = self
            .above
            .iter()
            .filter(|above| lost.is_none_or(|(start, _)| above.start < start));
        path.extend(above.map(|above| above.title.clone()));
        path.retain(|title| !title.is_empty());
        path.dedup();
        let level = pending.iter().map(|heading| heading.level).min();
        let level = level.or_else(|| self.above.last().map(|above| above.level));
        let start = lost.map_or(start, |(lost, _)| lost);
        let mut open = self.opened(start, path, level.unwrap_or(1));
        open.headings = pending;
        self.open = Some(open);
    }

    fn opened(&self, start: usize, mut path: Vec<String>, level: u8) -> Open {
        let most = self.options.max_tokens / PATH_SHARE;
        let mut path_tokens = path
            .iter()
            .map(|title| self.tokens_of(title))
            .sum::<usize>()
            + path.len().saturating_sub(1);
        // The lowest headings say most about the text.
        while path_tokens > most && path.len() > 1 {
            path_tokens = path_tokens.saturating_sub(self.tokens_of(&path.remove(0)) + 1);
        }
        if let [only] = path.as_mut_slice() {
            while path_tokens > most {
                only.truncate(only.floor_char_boundary(only.len() / 2));
                path_tokens = self.tokens_of(only);
            }
        }
        path.retain(|title| !title.is_empty());
        Open {
            range: start..start,
            path,
            path_tokens,
            level,
            ..Open::default()
        }
    }

    /// Spreads a block that is larger than a chunk over several.
    fn cut(&mut self, block: &Block) {
        match &block.kind {
            Kind::List(items) => self.parts(block, items),
            Kind::Table { names, rows } => {
                let whole = self.tokens(names) * NAMES_SHARE <= self.options.max_tokens;
                let repeated = whole.then(|| names.clone());
                if names.start >= block.range.start {
                    self.pieces(names, None);
                }
                for row in rows {
                    self.pieces(row, repeated.as_ref());
                }
            }
            Kind::Lines => {
                let lines: Vec<_> = lines(self.markdown, &block.range).collect();
                self.parts(block, &lines);
            }
            Kind::Text | Kind::Heading { .. } => self.pieces(&block.range, None),
        }
        self.flush();
    }

    /// Adds these parts of a block, and what is between them.
    fn parts(&mut self, block: &Block, parts: &[Range<usize>]) {
        let starts = parts.iter().map(|part| part.start).skip(1);
        let mut from = block.range.start;
        for to in starts.chain([block.range.end]) {
            self.pieces(&(from..to), None);
            from = to;
        }
    }

    /// Adds a range to the open chunk, or to a next one with this row of names, cut as far as it has to be.
    fn pieces(&mut self, range: &Range<usize>, names: Option<&Range<usize>>) {
        let range = trim(self.markdown, range.clone());
        if range.is_empty() || self.fits(&range, names) {
            return;
        }
        let markdown = self.markdown;
        if markdown[range.clone()].contains('\n') {
            return lines(markdown, &range).for_each(|line| self.pieces(&line, names));
        }
        let sentences = sentences(self.markdown, &range);
        if sentences.len() > 1 {
            return sentences.iter().for_each(|part| self.pieces(part, names));
        }
        // A sentence of more tokens than a chunk: as many words as fit, again and again.
        let mut rest = range;
        while !rest.is_empty() {
            self.flush();
            self.begin(rest.start);
            let cut = self.longest_prefix(&rest);
            let part = rest.start..cut;
            let tokens = self.tokens(&part);
            self.append(&part, tokens);
            let text = &self.markdown[cut..rest.end];
            rest = cut + text.len() - text.trim_start().len()..rest.end;
        }
    }

    /// Where the largest part that the open chunk can take ends; at least one character.
    fn longest_prefix(&self, range: &Range<usize>) -> usize {
        let room = self.room().max(1);
        let text = &self.markdown[range.clone()];
        // A token has a byte or more, but for what stands for unknown characters.
        let (mut fits, mut too_long) = (0, text.len() + 1);
        let mut guess = text.floor_char_boundary(room * 4);
        while fits < guess && guess < too_long {
            match self.tokens_of(&text[..guess]) <= room {
                true => fits = guess,
                false => too_long = guess,
            }
            let next = match too_long > text.len() {
                true => (guess * 2).min(text.len()),
                false => fits.midpoint(too_long),
            };
            guess = text.floor_char_boundary(next);
        }
        let first = text.chars().next().map_or(1, char::len_utf8);
        let cut = fits.max(first).min(text.len());
        let word = text[..cut].rfind(char::is_whitespace).filter(|at| *at > 0);
        let is_inside = cut < text.len() && !text[cut..].starts_with(char::is_whitespace);
        range.start + word.filter(|_| is_inside).unwrap_or(cut)
    }

    /// The tokens that the open chunk, or else one without a path, has for text.
    fn room(&self) -> usize {
        let path = self.open.as_ref().map_or(0, |open| open.path_tokens);
        self.options.max_tokens.saturating_sub(path)
    }

    /// Adds a range to the open chunk, or to a new one, if it can be whole there.
    fn fits(&mut self, range: &Range<usize>, names: Option<&Range<usize>>) -> bool {
        let tokens = self.tokens(range);
        if let Some(open) = &self.open
            && open.path_tokens + open.tokens + tokens <= self.options.max_tokens
            && self.is_short(open, range.end)
        {
            self.append(range, tokens);
            return true;
        }
        // The next chunk may have another path, and so other room.
        self.flush();
        self.begin(range.start);
        let names_tokens = names.map_or(0, |names| self.tokens(names));
        if names_tokens + tokens > self.room() {
            return false;
        }
        if let Some(open) = &mut self.open {
            open.names = names.cloned();
            open.tokens = names_tokens;
        }
        self.append(range, tokens);
        true
    }

    fn append(&mut self, range: &Range<usize>, tokens: usize) {
        if self.open.is_none() {
            self.begin(range.start);
        }
        if let Some(open) = &mut self.open {
            open.range.end = range.end;
            open.tokens += tokens;
            open.announcement = None;
        }
    }

    /// Ends the open chunk.
    fn flush(&mut self) {
        let Some(open) = self.open.take() else {
            return;
        };
        let range = trim(self.markdown, open.range);
        if range.is_empty() {
            // Its headings come with the next one.
            self.pending.splice(0..0, open.headings);
            return;
        }
        let text = &self.markdown[range.clone()];
        let text = match open.names {
            Some(names) => format!("{}\n{text}", self.markdown[names].trim_end()),
            None => text.to_owned(),
        };
        self.chunks.push(Chunk {
            id: ChunkId::of(&passage(&open.path, &text)),
            index: self.chunks.len(),
            path: open.path,
            headings: open.headings,
            text,
            range,
            tokens: open.path_tokens + open.tokens,
        });
    }

    fn tokens(&self, range: &Range<usize>) -> usize {
        self.tokens_of(&self.markdown[range.clone()])
    }

    /// What a text counts. A tokenizer may take a word for one that it does not know, however long it is.
    fn tokens_of(&self, text: &str) -> usize {
        let least = text.len() / self.token_bytes;
        match least > self.options.max_tokens {
            // It fits nowhere, so its tokens need not be counted, which would take memory for all of them.
            true => least,
            false => (self.count)(text).max(least),
        }
    }

    /// Whether the text of a chunk may go on up to here. White space between what is counted belongs to it, and is no token.
    fn is_short(&self, open: &Open, end: usize) -> bool {
        end.saturating_sub(open.range.start) <= self.options.max_bytes
    }
}

/// The lines of a range.
fn lines<'a>(
    markdown: &'a str,
    range: &Range<usize>,
) -> impl Iterator<Item = Range<usize>> + use<'a> {
    let mut start = range.start;
    markdown[range.clone()]
        .split_inclusive('\n')
        .map(move |line| {
            let from = start;
            start += line.len();
            from..start
        })
}

/// The sentences of a range, each up to where the next one begins.
fn sentences(markdown: &str, range: &Range<usize>) -> Vec<Range<usize>> {
    let text = &markdown[range.clone()];
    let base = text.as_ptr().addr();
    let sentences = colloquy_knowledge::sentences(text);
    let starts = sentences
        .iter()
        .skip(1)
        .map(|sentence| range.start + (sentence.as_ptr().addr() - base));
    let mut ranges = Vec::with_capacity(sentences.len());
    let mut from = range.start;
    for to in starts.chain([range.end]) {
        ranges.push(from..to);
        from = to;
    }
    ranges
}
