//! Values separated by commas, semicolons, tabs or bars. Source: RFC 4180, and what is found beside it.

use crate::{
    document::Document,
    error::{Bound, ExtractError},
    limits::Bounds,
    markdown::Table,
};

/// What may stand between values, the likelier first.
const SEPARATORS: [char; 4] = [',', ';', '\t', '|'];
/// The most values in a row: as many as a sheet of Excel has columns.
const MOST_COLUMNS: usize = 16_384;
/// How many lines the separator is guessed from.
const GUESSED_FROM: usize = 20;

/// One table.
pub(crate) fn table(text: &str, bounds: &Bounds) -> Result<Document, ExtractError> {
    let (told, text) = told_separator(text);
    let separator = told.unwrap_or_else(|| guess(text));
    let columns = Rows::new(text, separator).map(|row| row.len()).max();
    if columns.is_some_and(|columns| columns > MOST_COLUMNS) {
        return Err(ExtractError::too_large(Bound::Cells, MOST_COLUMNS));
    }
    let mut markdown = String::new();
    let mut table = Table::new(columns.unwrap_or_default());
    let mut cells = 0;
    for row in Rows::new(text, separator) {
        // What is written counts, so that one long row does not make all others as long.
        cells += table.columns();
        if cells > bounds.cells {
            return Err(ExtractError::too_large(Bound::Cells, bounds.cells));
        }
        table.row(&mut markdown, row.iter().map(String::as_str));
    }
    Ok(Document::of_markdown(markdown))
}

/// Excel's own line before all others.
fn told_separator(text: &str) -> (Option<char>, &str) {
    let told = text
        .strip_prefix("sep=")
        .and_then(|rest| rest.split_once('\n'));
    match told.map(|(told, rest)| (told.chars().next(), rest)) {
        Some((Some(separator), rest)) if SEPARATORS.contains(&separator) => (Some(separator), rest),
        _ => (None, text),
    }
}

/// The separator that gives the most rows of the same length.
fn guess(text: &str) -> char {
    let mut best = (0, ',');
    for separator in SEPARATORS {
        let lengths: Vec<usize> = Rows::new(text, separator)
            .take(GUESSED_FROM)
            .map(|row| row.len())
            .collect();
        let like_the_first =
            |length: &&usize| lengths.first().is_some_and(|first| first == *length);
        let first = lengths.first().copied().unwrap_or_default();
        if first < 2 {
            continue;
        }
        let agreeing = lengths.iter().filter(like_the_first).count();
        let score = agreeing * 1_000 / lengths.len() * 100 + first.min(99);
        if score > best.0 {
            best = (score, separator);
        }
    }
    best.1
}

/// The rows of a text that have any value.
struct Rows<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    separator: char,
}

impl<'a> Rows<'a> {
    fn new(text: &'a str, separator: char) -> Self {
        Self {
            rest: text.chars().peekable(),
            separator,
        }
    }

    fn any_row(&mut self) -> Option<Vec<String>> {
        self.rest.peek()?;
        let mut row = vec![];
        let mut value = String::new();
        let mut is_quoted = false;
        while let Some(character) = self.rest.next() {
            match character {
                '"' if is_quoted => {
                    if self.rest.next_if_eq(&'"').is_some() {
                        value.push('"');
                    } else {
                        is_quoted = false;
                    }
                }
                _ if is_quoted => value.push(character),
                '"' if value.trim().is_empty() => {
                    value.clear();
                    is_quoted = true;
                }
                '\n' => break,
                // What is beyond the most is told, and not kept.
                _ if character == self.separator && row.len() > MOST_COLUMNS => value.clear(),
                _ if character == self.separator => row.push(std::mem::take(&mut value)),
                _ => value.push(character),
            }
        }
        row.push(value);
        Some(row)
    }
}

impl Iterator for Rows<'_> {
    type Item = Vec<String>;

    fn next(&mut self) -> Option<Vec<String>> {
        loop {
            let row = self.any_row()?;
            if row.len() > MOST_COLUMNS || row.iter().any(|value| !value.trim().is_empty()) {
                return Some(row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        table(text, &Bounds::default()).unwrap().markdown
    }

    #[test]
    fn separators_are_found_and_quotes_kept_together() {
        for separator in SEPARATORS {
            let text = format!("a{separator}b\n\"x{separator}\"\"y\"\"\nz\"{separator}1,5\n\n");
            let text = if separator == ',' {
                text.replace("1,5", "15")
            } else {
                text
            };
            let value = if separator == ',' { "15" } else { "1,5" };
            let inner = if separator == '|' {
                "\\|".to_owned()
            } else {
                separator.to_string()
            };
            let expected = format!("| a | b |\n| - | - |\n| x{inner}\"y\" z | {value} |\n");
            assert_eq!(read(&text), expected, "{separator:?}");
        }
        assert_eq!(read("sep=;\na;b,c\n"), "| a | b,c |\n| - | - |\n");
        assert_eq!(read("alone\n1\n"), "| alone |\n| - |\n| 1 |\n");
    }

    #[test]
    fn one_long_row_does_not_make_a_square() {
        let mut text = "1,".repeat(1_000);
        text.push('\n');
        text.push_str(&"1\n".repeat(2_000));
        let bounds = Bounds {
            cells: 1_000_000,
            ..Bounds::default()
        };
        let error = table(&text, &bounds).unwrap_err();
        assert_eq!(
            error,
            ExtractError::too_large(Bound::Cells, 1_000_000_usize)
        );
    }
}
