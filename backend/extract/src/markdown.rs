//! Writing Markdown: what several formats need.

/// Text without blanks at the ends of lines, but for the two that break one, and with one blank line where there were several.
/// Code between fences is left alone.
pub(crate) fn tidy(text: &str) -> String {
    let mut tidy = String::with_capacity(text.len() + 1);
    let mut blank = 0;
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let content = line.trim_end_matches([' ', '\t', '\u{A0}']);
        let mark = fence_of(content);
        match (fence, mark) {
            (None, Some(_)) => fence = mark,
            (Some(open), Some(close))
                if close.starts_with(open) && close.len() == content.trim_start().len() =>
            {
                fence = None;
            }
            (Some(_), _) => {
                tidy.push_str(line);
                tidy.push('\n');
                continue;
            }
            (None, None) => {}
        }
        if content.is_empty() {
            blank += 1;
            continue;
        }
        if blank > 0 && !tidy.is_empty() {
            tidy.push('\n');
        }
        blank = 0;
        push_plain(&mut tidy, content);
        if line.ends_with("  ") && line.is_ascii() == content.is_ascii() {
            tidy.push_str("  ");
        }
        tidy.push('\n');
    }
    while tidy.ends_with("\n\n") {
        tidy.pop();
    }
    tidy
}

/// Adds text, in which what only looks different is the same: blanks and hyphens that do not break, joined letters, and what cannot
/// be seen. Somebody who searches for a word writes it plainly.
fn push_plain(to: &mut String, text: &str) {
    if text.is_ascii() {
        to.push_str(text);
        return;
    }
    for character in text.chars() {
        match character {
            '\u{A0}' | '\u{2000}'..='\u{200A}' | '\u{202F}' | '\u{205F}' => to.push(' '),
            '\u{2010}' | '\u{2011}' => to.push('-'),
            '\u{FB00}' => to.push_str("ff"),
            '\u{FB01}' => to.push_str("fi"),
            '\u{FB02}' => to.push_str("fl"),
            '\u{FB03}' => to.push_str("ffi"),
            '\u{FB04}' => to.push_str("ffl"),
            // Joiners mean something in some scripts, and a break that may be is none.
            '\u{AD}' | '\u{200B}' | '\u{2060}' | '\u{FEFF}' => {}
            _ => to.push(character),
        }
    }
}

/// Text with what its pictures are described as, instead of the pictures, which nobody is given.
pub(crate) fn without_pictures(markdown: &str) -> String {
    let mut text = String::with_capacity(markdown.len());
    let mut rest = markdown;
    while let Some((before, picture)) = rest.split_once("![") {
        text.push_str(before);
        let end = picture
            .find("](")
            .filter(|end| !picture[..*end].contains(['\n', '[']));
        let closed = end.and_then(|end| {
            let address = &picture[end + 2..];
            let length = address.find([')', '\n'])?;
            address[length..]
                .starts_with(')')
                .then(|| (&picture[..end], &address[length + 1..]))
        });
        match closed {
            Some((description, after)) => {
                text.push_str(description);
                rest = after;
            }
            None => {
                text.push_str("![");
                rest = picture;
            }
        }
    }
    text.push_str(rest);
    text
}

/// The marks of a line that opens or closes a fence.
fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let mark = line.chars().next().filter(|c| matches!(c, '`' | '~'))?;
    let end = line.find(|c| c != mark).unwrap_or(line.len());
    (end >= 3).then(|| &line[..end])
}

/// Text between fences that are longer than any in it.
pub(crate) fn fenced(text: &str, language: &str) -> String {
    let longest = text
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    let fence = "`".repeat((longest + 1).max(3));
    let text = text.trim_end_matches('\n');
    format!("{fence}{language}\n{text}\n{fence}\n")
}

/// Text of one line in which no mark of Markdown means anything.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    for (at, character) in text.char_indices() {
        let is_mark = match character {
            '\\' | '`' | '*' | '[' | ']' | '<' => true,
            // Within a word, it is none.
            '_' => {
                let is_word = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
                !(is_word(text[..at].chars().next_back()) && is_word(text[at + 1..].chars().next()))
            }
            '#' | '>' | '+' | '-' | '~' => at == 0,
            '.' | ')' => digits > 0 && at == digits && text[at + 1..].starts_with(' '),
            _ => false,
        };
        if is_mark {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

/// Text of several lines, likewise.
pub(crate) fn escaped_lines(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| escaped(line.trim())).collect();
    lines.join("\n")
}

/// A table, written row by row: its first row is its head.
#[derive(Debug, Default)]
pub(crate) struct Table {
    columns: usize,
    rows: usize,
}

impl Table {
    /// A table of so many columns. Rows with fewer cells are filled up.
    pub(crate) fn new(columns: usize) -> Self {
        Self { columns, rows: 0 }
    }

    /// How many columns it has.
    pub(crate) fn columns(&self) -> usize {
        self.columns
    }

    /// Adds a row.
    pub(crate) fn row<'a>(&mut self, to: &mut String, cells: impl IntoIterator<Item = &'a str>) {
        to.push('|');
        let mut written = 0;
        for cell in cells.into_iter().take(self.columns) {
            to.push(' ');
            push_cell(to, cell);
            to.push_str(" |");
            written += 1;
        }
        for _ in written..self.columns {
            to.push_str("  |");
        }
        to.push('\n');
        if self.rows == 0 {
            to.push('|');
            for _ in 0..self.columns {
                to.push_str(" - |");
            }
            to.push('\n');
        }
        self.rows += 1;
    }
}

/// A cell is one line, and no bar ends it.
fn push_cell(to: &mut String, cell: &str) {
    let mut gap = false;
    for character in cell.trim().chars() {
        match character {
            '\n' | '\r' => gap = true,
            _ => {
                if gap && character != ' ' {
                    to.push(' ');
                }
                gap = false;
                if character == '|' {
                    to.push('\\');
                }
                to.push(character);
            }
        }
    }
}

/// The text of the first heading of the highest level that there is, without its marks, in the begin of a document.
pub(crate) fn first_heading(markdown: &str) -> Option<String> {
    const LOOKED_AT: usize = 200;
    const LONGEST: usize = 200;
    let mut best: Option<(usize, &str)> = None;
    let mut in_fence = false;
    for line in markdown.lines().take(LOOKED_AT) {
        if fence_of(line).is_some() {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        let level = line.len() - line.trim_start_matches('#').len();
        let Some(text) = line[level..].strip_prefix(' ') else {
            continue;
        };
        if (1..=6).contains(&level) && best.is_none_or(|(highest, _)| level < highest) {
            best = Some((level, text));
        }
    }
    let (_, text) = best?;
    let text: String = text
        .chars()
        .filter(|c| !matches!(c, '*' | '_' | '`' | '\\'))
        .collect();
    let text = text.trim().trim_end_matches('#').trim();
    (!text.is_empty()).then(|| text.chars().take(LONGEST).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tidying_keeps_breaks_and_code() {
        let text = "\n\na  \nb \n\n\n\nc\n```\n\n\n x  \n```\n\n\n";
        assert_eq!(tidy(text), "a  \nb\n\nc\n```\n\n\n x  \n```\n");
        assert_eq!(tidy(" \n\n"), "");
        let fancy = "e\u{FB03}cient\u{A0}co\u{AD}operation, non\u{2011}stop \u{200B}";
        assert_eq!(tidy(fancy), "efficient cooperation, non-stop \n");
    }

    #[test]
    fn tables_are_as_wide_as_they_say() {
        let mut out = String::new();
        let mut table = Table::new(2);
        table.row(&mut out, ["a|b", "c\nd"]);
        table.row(&mut out, ["e"]);
        table.row(&mut out, ["f", "g", "h"]);
        assert_eq!(out, "| a\\|b | c d |\n| - | - |\n| e |  |\n| f | g |\n");
    }

    #[test]
    fn marks_in_text_mean_nothing() {
        for (text, expected) in [
            ("a*b [c] `d` <e>", r"a\*b \[c\] \`d\` \<e>"),
            ("snake_case _x_", r"snake_case \_x\_"),
            ("# no", r"\# no"),
            ("- no - 1", r"\- no - 1"),
            ("12. no", r"12\. no"),
            ("12.5 %", "12.5 %"),
            ("", ""),
        ] {
            assert_eq!(escaped(text), expected);
        }
        assert_eq!(escaped_lines("a\n  # b\n"), "a\n\\# b");
    }

    #[test]
    fn pictures_leave_their_description() {
        let text = "a ![b c](d.png \"e\") f ![](g.svg)\n[![h](i)](j) ![no\n](k) ![l";
        assert_eq!(without_pictures(text), "a b c f \n[h](j) ![no\n](k) ![l");
    }

    #[test]
    fn the_highest_heading_is_the_title() {
        let text = "## Intro\ntext\n# The **Title** #\n```\n# no\n```\n# Other";
        assert_eq!(first_heading(text).as_deref(), Some("The Title"));
        assert_eq!(first_heading("#tag\ntext"), None);
    }
}
