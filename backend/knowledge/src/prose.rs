//! A document as what can be read aloud of it: Markdown, or plain text, in blocks whose words stand in one line without marks.
//!
//! Lines that were wrapped are one text, headings are told from what stands below them, a row of a table is a sentence, and so are lines of a
//! list that `<br>` parts. Blocks are read one at a time, so that a long document takes no more memory than its longest block.

mod lines;

use colloquy_base::markup::{entity, is_emphasis, link, split_near, tag};

use lines::{Joined, without_breaks};

/// The longest comment, address or name in brackets inside of a line, in bytes.
const MAX_BRACKET_BYTES: usize = 2_048;
/// The most words of a line that is a heading without being marked as one.
const HEADING_WORDS: usize = 6;
/// The most words of such a line that is a question, as in a list of questions and answers.
const QUESTION_WORDS: usize = 14;
const QUESTION_MARKS: [char; 3] = ['?', '？', '؟'];
/// The level of a heading that is not marked as one: below all that are.
pub const UNMARKED: u8 = 7;

/// A block of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block<'a> {
    /// What it is.
    pub kind: BlockKind<'a>,
    /// Its words in one line, without marks; empty for code.
    pub text: String,
    /// The lines of the document.
    pub source: &'a str,
}

/// What a block is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BlockKind<'a> {
    /// A line that names what follows.
    Heading {
        /// 1 to 6, of which 1 is the highest; [`UNMARKED`] for a line without a mark.
        level: u8,
    },
    /// A paragraph, or an item of a list.
    Text,
    /// A row of a table.
    Row {
        /// The names of the columns, as the lines of the document; empty for a table without.
        columns: &'a str,
    },
    /// Lines between fences.
    Code,
}

/// Reads the blocks of a document, in their order.
#[must_use]
pub fn blocks(document: &str) -> Blocks<'_> {
    Blocks {
        document,
        at: 0,
        columns: None,
        is_behind_question: false,
    }
}

/// The blocks of a document.
#[derive(Debug, Clone)]
pub struct Blocks<'a> {
    document: &'a str,
    /// Where the next line begins.
    at: usize,
    /// The names of the columns of the table that is being read, and their lines.
    columns: Option<(Vec<String>, &'a str)>,
    /// The block before is an item that is a question, and the next one is an item as well.
    is_behind_question: bool,
}

impl<'a> Iterator for Blocks<'a> {
    type Item = Block<'a>;

    fn next(&mut self) -> Option<Block<'a>> {
        loop {
            let start = self.at;
            let (line, after) = self.line(start)?;
            let content = unquoted(line);
            let is_silent = is_rule(content) || is_definition(content) || is_picture(content);
            if content.is_empty() || is_silent {
                self.at = after;
                self.columns = None;
                continue;
            }
            if let Some(row) = self.row(content, after) {
                match row {
                    Some(row) => return Some(row),
                    None => continue,
                }
            }
            self.columns = None;
            self.at = after;
            if let Some(fence) = fence(content) {
                return Some(self.code(start, fence));
            }
            if let Some((level, title)) = marked_heading(content) {
                let text = plain(title);
                if text.is_empty() {
                    continue;
                }
                let source = line.trim();
                return Some(Block {
                    kind: BlockKind::Heading { level },
                    text,
                    source,
                });
            }
            let block = self.text(start, line, content);
            if !block.text.is_empty() {
                return Some(block);
            }
        }
    }
}

impl<'a> Blocks<'a> {
    /// The line that begins here, and where the next one does.
    fn line(&self, at: usize) -> Option<(&'a str, usize)> {
        let rest = self.document.get(at..).filter(|rest| !rest.is_empty())?;
        let line = rest.split_inclusive('\n').next()?;
        Some((line.trim_end_matches(['\n', '\r']), at + line.len()))
    }

    /// Reads a line of a table: `Some(None)` for one that is no row.
    fn row(&mut self, content: &'a str, after: usize) -> Option<Option<Block<'a>>> {
        if !content.contains('|') {
            return None;
        }
        if is_delimiter(content) {
            self.at = after;
            return Some(None);
        }
        if self.columns.is_none() {
            let next = self.line(after);
            let delimiter = next.filter(|(line, _)| is_delimiter(unquoted(line)));
            if let Some((line, behind)) = delimiter {
                let source = &self.document[offset(self.document, content)..];
                let source = &source[..offset(source, line) + line.len()];
                self.columns = Some((cells(content), source));
                self.at = behind;
                return Some(None);
            }
            if !content.starts_with('|') {
                return None;
            }
        }
        self.at = after;
        let (names, columns) = match &self.columns {
            Some((names, source)) => (names.as_slice(), *source),
            None => (&[][..], ""),
        };
        let text = row_text(names, &cells(content));
        let block = Block {
            kind: BlockKind::Row { columns },
            text,
            source: content,
        };
        Some(Some(block).filter(|block| !block.text.is_empty()))
    }

    fn code(&mut self, start: usize, fence: &str) -> Block<'a> {
        while let Some((line, after)) = self.line(self.at) {
            self.at = after;
            let content = unquoted(line);
            let mark = fence.chars().next();
            if content.starts_with(fence) && content.chars().all(|c| Some(c) == mark) {
                break;
            }
        }
        Block {
            kind: BlockKind::Code,
            text: String::new(),
            source: self.document[start..self.at].trim(),
        }
    }

    /// Reads a paragraph or an item of a list, whose first line this is.
    fn text(&mut self, start: usize, first: &'a str, content: &'a str) -> Block<'a> {
        let item = item(content);
        let mut text = item.unwrap_or(content).to_owned();
        let mut joined = Joined::new(first);
        let mut kind = BlockKind::Text;
        let mut end = self.at;
        while let Some((line, after)) = self.line(self.at) {
            let next = unquoted(line);
            let underlines = joined.lines == 1 && item.is_none() && is_underline(next);
            if underlines {
                let level = if next.starts_with('=') { 1 } else { 2 };
                kind = BlockKind::Heading { level };
                self.at = after;
                end = after;
                break;
            }
            let rest = &self.document[after..];
            if joined.is_address_before(line, rest) {
                text.push(',');
            } else if !joined.goes_on_in(line, rest) {
                break;
            }
            if !(ends_wide(&text) && next.starts_with(is_wide)) {
                text.push(' ');
            }
            text.push_str(next);
            joined.push(line);
            self.at = after;
            end = after;
        }
        let text = text.trim_end_matches('\\');
        let text = match kind {
            BlockKind::Text => plain(&without_breaks(text)),
            _ => plain(text),
        };
        let names_what_follows = match item {
            Some(_) => self.is_answered_item(&text),
            None => joined.lines == 1 && looks_like_heading(&text) && self.has_more(),
        };
        if kind == BlockKind::Text && names_what_follows {
            kind = BlockKind::Heading { level: UNMARKED };
        }
        Block {
            kind,
            text,
            source: self.document[start..end].trim(),
        }
    }

    /// Returns true if an item of a list, which ends here, is a question with its answer below. In a list of questions alone, what stands behind
    /// the last one answers it only without a blank line.
    fn is_answered_item(&mut self, text: &str) -> bool {
        let is_behind_question = std::mem::take(&mut self.is_behind_question);
        let rest = self.document.get(self.at..).unwrap_or_default();
        let mut lines = rest.lines().map(unquoted);
        let Some(next) = lines.clone().find(|line| !line.is_empty()) else {
            return false;
        };
        if !text.ends_with(QUESTION_MARKS) || !looks_like_heading(text) {
            return false;
        }
        self.is_behind_question = item(next).is_some();
        let is_below = lines.next().is_some_and(|line| !line.is_empty());
        let is_text = !self.is_behind_question && marked_heading(next).is_none() && !is_rule(next);
        is_text && (is_below || !is_behind_question)
    }

    fn has_more(&self) -> bool {
        self.document
            .get(self.at..)
            .is_some_and(|rest| rest.contains(|c: char| !c.is_whitespace()))
    }
}

/// Where a part of a text begins in it.
fn offset(text: &str, part: &str) -> usize {
    part.as_ptr().addr() - text.as_ptr().addr()
}

/// A line without its indentation and the marks of quotations.
fn unquoted(line: &str) -> &str {
    line.trim().trim_start_matches(['>', ' ', '\t'])
}

/// The level of a heading, and its words.
fn marked_heading(line: &str) -> Option<(u8, &str)> {
    let title = line.trim_start_matches('#');
    let level = u8::try_from(line.len() - title.len()).ok()?;
    let is_marked = (1..=6).contains(&level) && title.starts_with([' ', '\t']);
    is_marked.then(|| (level, title.trim().trim_end_matches('#').trim_end()))
}

/// The words of an item of a list, of a definition, which a colon stands in front of, or of a footnote, behind its label.
fn item(line: &str) -> Option<&str> {
    for mark in [
        "- [ ] ", "- [x] ", "- [X] ", "- ", "* ", "+ ", "• ", "– ", ": ",
    ] {
        if let Some(item) = line.strip_prefix(mark) {
            return Some(item.trim_start());
        }
    }
    if let Some(inner) = line.strip_prefix("[^")
        && let Some((label, note)) = split_near(inner, "]: ", MAX_BRACKET_BYTES)
        && !label.contains([' ', ']'])
    {
        return Some(note.trim_start());
    }
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let rest = &line[digits..];
    let is_numbered = (1..=3).contains(&digits);
    let rest = rest.strip_prefix(". ").or_else(|| rest.strip_prefix(") "));
    rest.filter(|_| is_numbered).map(str::trim_start)
}

fn fence(line: &str) -> Option<&str> {
    let mark = line
        .chars()
        .next()
        .filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    // A code span is closed in its line.
    (length >= 3 && !line[length..].contains('`')).then(|| &line[..length])
}

fn is_rule(line: &str) -> bool {
    let marks = line.chars().filter(|c| !c.is_whitespace());
    let same = ['-', '*', '_']
        .into_iter()
        .any(|mark| line.chars().all(|c| c == mark || c.is_whitespace()));
    same && marks.count() >= 3
}

fn is_underline(line: &str) -> bool {
    let same = |mark: char| line.chars().all(|c| c == mark);
    line.len() >= 2 && (same('=') || same('-'))
}

fn is_delimiter(line: &str) -> bool {
    let marks = line.chars().all(|c| matches!(c, '|' | '-' | ':' | ' '));
    marks && line.contains('|') && line.contains('-')
}

/// `[label]: address`, which stands for nothing that is read. Of footnotes, `[^label]: text`, these are the ones that are an address.
fn is_definition(line: &str) -> bool {
    let inner = line
        .strip_prefix('[')
        .and_then(|rest| rest.split_once("]: "));
    inner.is_some_and(|(label, target)| {
        let is_note = label.starts_with('^');
        !label.contains('[') && !target.contains(' ') && (!is_note || target.contains("://"))
    })
}

/// Pictures alone, which say nothing. One inside of a sentence stands for its description.
fn is_picture(line: &str) -> bool {
    let mut rest = line;
    while let Some((_, after)) = picture(rest) {
        rest = after.trim_start();
    }
    rest.is_empty() && !line.is_empty()
}

/// Splits a text that begins with a picture, or with a link whose label is one, into the picture's description and the text behind it.
fn picture(text: &str) -> Option<(&str, &str)> {
    if text.starts_with("![") {
        return link(text);
    }
    let label = text.strip_prefix('[')?;
    if !label.starts_with("![") {
        return None;
    }
    let (description, after) = link(label)?;
    let (_, after) = split_near(after.strip_prefix("](")?, ")", MAX_BRACKET_BYTES)?;
    Some((description, after))
}

/// Returns the text behind the links, code and emphasis that a line begins with, and the pictures among them; `None` if it begins otherwise.
fn behind_marks(line: &str) -> Option<&str> {
    let mut rest = behind_mark(line)?.trim_start();
    while let Some(after) = behind_mark(rest).or_else(|| Some(picture(rest)?.1)) {
        rest = after.trim_start();
    }
    Some(rest)
}

/// Returns the text behind the link, code or emphasis that a text begins with.
fn behind_mark(text: &str) -> Option<&str> {
    let mark = text.chars().next()?;
    match mark {
        '[' if picture(text).is_some() => None,
        '[' => {
            let (label, after) = link(text).or_else(|| reference(text))?;
            (!label.is_empty()).then_some(after)
        }
        '<' => autolink(text).map(|(_, after)| after),
        '`' | '*' | '_' => {
            let inner = text.trim_start_matches(mark);
            let marks = &text[..text.len() - inner.len()];
            let (words, after) = split_near(inner, marks, MAX_BRACKET_BYTES)?;
            let is_code = mark == '`';
            let is_marked = !words.starts_with(char::is_whitespace)
                && !words.ends_with(char::is_whitespace)
                && !after.starts_with(mark)
                && !after.starts_with(char::is_alphanumeric);
            (is_code || is_marked).then_some(after)
        }
        _ => None,
    }
}

fn is_wide(c: char) -> bool {
    matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}')
}

fn ends_wide(text: &str) -> bool {
    text.chars().next_back().is_some_and(is_wide)
}

fn looks_like_heading(text: &str) -> bool {
    let words = text.split_whitespace().count();
    if text.ends_with(QUESTION_MARKS) {
        return words <= QUESTION_WORDS;
    }
    if let Some(title) = text.strip_suffix(':') {
        return words <= HEADING_WORDS && !title.contains(['.', ':']);
    }
    let ends = text.ends_with(['.', '!', '。', '！', '।', ';']);
    let tells = text.contains(':') || text.bytes().any(|byte| byte.is_ascii_digit());
    words <= HEADING_WORDS && !ends && !tells
}

fn cells(row: &str) -> Vec<String> {
    let row = row.strip_prefix('|').unwrap_or(row);
    let row = row.strip_suffix('|').unwrap_or(row);
    let mut cells = Vec::new();
    let mut cell = String::new();
    let mut escaped = false;
    for c in row.chars() {
        if c == '|' && !escaped {
            cells.push(plain(&cell));
            cell.clear();
        } else {
            cell.push(c);
        }
        escaped = c == '\\' && !escaped;
    }
    cells.push(plain(&cell));
    cells
}

/// Whether a cell says something; "-" does not.
fn is_told(cell: &str) -> bool {
    cell.contains(char::is_alphanumeric)
}

/// A row as a sentence: the first cell is what the others tell of. Where there are several others, each is named by its column.
fn row_text(names: &[String], cells: &[String]) -> String {
    let named = |at: usize, cell: &String| match names.get(at) {
        Some(name) if is_told(name) && names.len() > 2 => format!("{name} {cell}"),
        _ => cell.clone(),
    };
    let mut told = cells.iter().enumerate().filter(|(_, cell)| is_told(cell));
    let Some((_, subject)) = told.next() else {
        return String::new();
    };
    let told: Vec<String> = told.map(|(at, cell)| named(at, cell)).collect();
    match told.is_empty() {
        true => subject.clone(),
        false => format!("{subject}: {}", told.join(", ")),
    }
}

/// The words of a line of Markdown: without emphasis, code marks and tags, of a link its label, of a picture its description
/// unless it stands in front of other words or behind a sentence.
#[must_use]
pub fn plain(line: &str) -> String {
    let mut marked = String::with_capacity(line.len());
    write_plain(line, &mut marked);
    let mut words = String::with_capacity(marked.len());
    for word in marked.split_whitespace() {
        if !words.is_empty() {
            words.push(' ');
        }
        words.push_str(word);
    }
    words
}

/// Appends the words of a line. No blanks stand in front, so that `words` is empty until there are some.
fn write_plain(line: &str, words: &mut String) {
    // The description of a picture in front, which is written where no words follow; of several pictures, the last one that is described.
    let mut in_front: Option<&str> = None;
    let mut rest = line;
    while let Some(c) = rest.chars().next() {
        if let Some((description, after)) = picture(rest) {
            if !words.is_empty() {
                if !stands_behind_sentence(words, after) {
                    write_plain(description, words);
                }
            } else if in_front.is_none() || !description.trim().is_empty() {
                in_front = Some(description);
            }
            rest = after;
            continue;
        }
        if c == '[' {
            if let Some((label, after)) = link(rest) {
                // A label has no links inside, so this goes no deeper.
                write_plain(label, words);
                rest = after;
                continue;
            }
            if let Some((label, after)) = reference(rest) {
                write_plain(label, words);
                rest = after;
                continue;
            }
        }
        if c == '<' {
            if let Some((address, after)) = autolink(rest) {
                words.push_str(address);
                rest = after;
                continue;
            }
            if let Some(after) = rest
                .strip_prefix("<!--")
                .and_then(|comment| Some(split_near(comment, "-->", MAX_BRACKET_BYTES)?.1))
                .or_else(|| tag(rest))
            {
                if !words.is_empty() {
                    words.push(' ');
                }
                rest = after;
                continue;
            }
        }
        if c == '&'
            && let Some((meant, after)) = entity(rest)
        {
            if !words.is_empty() || !meant.is_whitespace() {
                words.push(meant);
            }
            rest = after;
            continue;
        }
        let read = &line[..line.len() - rest.len()];
        rest = &rest[c.len_utf8()..];
        let next = rest.chars().next();
        // Emphasis ends behind a picture in front, too, of which no word is written.
        let before = words.chars().next_back();
        let before = before.or_else(|| in_front.and(read.chars().next_back()));
        match c {
            '\\' if next.is_some_and(|next| next.is_ascii_punctuation()) => {
                if let Some(next) = next {
                    words.push(next);
                    rest = &rest[next.len_utf8()..];
                }
            }
            '`' => {}
            '*' | '_' if is_emphasis(c, before, next) => {}
            '~' if rest.starts_with('~') => rest = &rest[1..],
            _ if words.is_empty() && c.is_whitespace() => {}
            _ => words.push(c),
        }
    }
    if let Some(description) = in_front.filter(|_| words.is_empty()) {
        // A description has no pictures inside, so this goes no deeper.
        write_plain(description, words);
    }
}

/// Returns true if a picture stands between two sentences, or behind the last one, and not inside of one.
fn stands_behind_sentence(before: &str, after: &str) -> bool {
    const NEAR: usize = 4;
    let mut near = before.chars().rev().take(NEAR);
    let last = near.find(|c| !c.is_whitespace());
    let ends = last.is_some_and(|c| ['.', '!', '?', '。', '！', '？', '।', '؟'].contains(&c));
    ends && !after.trim_start().starts_with(char::is_lowercase)
}

/// `[label][name]` and `[^note]`: the label, or nothing.
fn reference(text: &str) -> Option<(&str, &str)> {
    let (label, after) = split_near(text.strip_prefix('[')?, "]", MAX_BRACKET_BYTES)?;
    if label.starts_with('^') {
        return Some(("", after));
    }
    let (name, after) = split_near(after.strip_prefix('[')?, "]", MAX_BRACKET_BYTES)?;
    (!label.contains('[') && !name.contains('[')).then_some((label, after))
}

/// `<https://example.org>`.
fn autolink(text: &str) -> Option<(&str, &str)> {
    let (address, after) = split_near(text.strip_prefix('<')?, ">", MAX_BRACKET_BYTES)?;
    let is_address = ["http://", "https://", "mailto:"]
        .iter()
        .any(|scheme| address.starts_with(scheme));
    is_address.then(|| (address.trim_start_matches("mailto:"), after))
}

#[cfg(test)]
#[path = "prose_tests.rs"]
mod tests;
