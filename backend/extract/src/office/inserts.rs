//! Text that stands in parts of its own and belongs in the middle of another: a mark is written where it belongs, which `undoc`
//! takes for text, and the Markdown is put in the place of the mark.

/// What a mark is between. No text has these, which are no characters.
const OPEN: char = '\u{FDD0}';
const CLOSE: char = '\u{FDD1}';

/// The texts to be put in, by the number in their marks.
#[derive(Debug, Default)]
pub(super) struct Inserts(Vec<String>);

impl Inserts {
    /// Takes Markdown of one or more blocks, and gives its mark; none where there is nothing.
    pub(super) fn add(&mut self, markdown: String) -> Option<String> {
        if markdown.trim().is_empty() {
            return None;
        }
        let mark = format!("{OPEN}{}{CLOSE}", self.0.len());
        self.0.push(markdown);
        Some(mark)
    }

    /// The text with each Markdown in the place of the first of its marks: as blocks where the mark is a line of its own, and on the
    /// line that it stands in otherwise.
    pub(super) fn put(mut self, text: String) -> String {
        if !text.contains(OPEN) {
            return text;
        }
        let mut whole = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let mut rest = line;
            while let Some((before, number, after)) = marked(rest) {
                let markdown = number.and_then(|number| self.0.get_mut(number));
                let markdown = markdown.map(std::mem::take).unwrap_or_default();
                let is_alone = line.trim().starts_with(OPEN) && after.trim().is_empty();
                whole.push_str(before);
                if markdown.is_empty() {
                    // Whoever wrote the document knew the mark.
                } else if is_alone {
                    whole.push_str(&format!("\n{}\n", markdown.trim_matches('\n')));
                } else {
                    let words: Vec<&str> = markdown.split_whitespace().collect();
                    whole.push_str(&words.join(" ").replace('|', "\\|"));
                }
                rest = after;
            }
            whole.push_str(rest);
        }
        whole
    }
}

/// The first mark of a text: what stands before it, its number, and what follows.
fn marked(text: &str) -> Option<(&str, Option<usize>, &str)> {
    let (before, rest) = text.split_once(OPEN)?;
    let (number, after) = rest.split_once(CLOSE).unwrap_or((rest, ""));
    Some((before, number.parse().ok(), after))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_put_where_their_marks_are() {
        let mut inserts = Inserts::default();
        assert_eq!(inserts.add(" \n".to_owned()), None);
        let list = inserts.add("- a\n- b | c\n".to_owned()).unwrap();
        let other = inserts.add("x\n\ny".to_owned()).unwrap();
        let text = format!("before\n\n{list}\n\n| {other} | {list} |\n{OPEN}9{CLOSE}\n{OPEN}end");
        assert_eq!(
            inserts.put(text),
            "before\n\n\n- a\n- b | c\n\n\n| x y |  |\n\n"
        );
    }
}
