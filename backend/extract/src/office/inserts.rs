//! Text that stands in parts of its own and belongs in the middle of another: a mark is written where it belongs, which `undoc`
//! takes for text, and the Markdown is put in the place of the mark.

/// What a mark is between. No text has these, which are no characters.
const OPEN: char = '\u{FDD0}';
const CLOSE: char = '\u{FDD1}';

/// What the number of a mark follows that stays in the text.
const KEPT: char = '\u{FDD2}';

/// The texts to be put in.
#[derive(Debug, Default)]
pub(super) struct Inserts {
    /// By the number in their marks.
    texts: Vec<String>,
    /// Numbers of those that are written at the end where none of their marks is, and what is written there where it is something else.
    certain: Vec<(usize, Option<String>)>,
}

impl Inserts {
    /// Takes Markdown of one or more blocks, and gives its mark; none where there is nothing.
    pub(super) fn add(&mut self, markdown: String) -> Option<String> {
        if markdown.trim().is_empty() {
            return None;
        }
        let mark = format!("{OPEN}{}{CLOSE}", self.texts.len());
        self.texts.push(markdown);
        Some(mark)
    }

    /// Likewise of what is written at the end where none of its marks is, in other words if there are any.
    pub(super) fn add_certain(
        &mut self,
        markdown: String,
        at_end: Option<String>,
    ) -> Option<String> {
        let number = self.texts.len();
        let mark = self.add(markdown)?;
        self.certain.push((number, at_end));
        Some(mark)
    }

    /// The text with each Markdown in the place of the first of its marks: as blocks where the mark is a line of its own, and on the
    /// line that it stands in otherwise.
    pub(super) fn put(mut self, text: String) -> String {
        if self.certain.is_empty() && !text.contains(OPEN) {
            return text;
        }
        let mut whole = String::with_capacity(text.len());
        for line in text.split_inclusive('\n') {
            let mut rest = line;
            while let Some((before, number, after)) = marked(rest) {
                let number = match number {
                    Some(Number::Kept(number)) => {
                        whole.push_str(before);
                        whole.push_str(&keep(number));
                        rest = after;
                        continue;
                    }
                    Some(Number::Put(number)) => Some(number),
                    None => None,
                };
                let markdown = number.and_then(|number| self.texts.get_mut(number));
                let markdown = markdown.map(std::mem::take).unwrap_or_default();
                let is_alone = line.trim().starts_with(OPEN) && after.trim().is_empty();
                whole.push_str(before);
                if markdown.is_empty() {
                    // Whoever wrote the document knew the mark.
                } else if is_alone {
                    whole.push_str(&format!("\n{}\n", markdown.trim_matches('\n')));
                } else {
                    // A quote is none within a line.
                    let lines = markdown.lines();
                    let lines = lines.map(|line| line.strip_prefix("> ").unwrap_or(line));
                    let words: Vec<&str> = lines.flat_map(str::split_whitespace).collect();
                    whole.push_str(&words.join(" ").replace('|', "\\|"));
                }
                rest = after;
            }
            whole.push_str(rest);
        }
        for (number, at_end) in self.certain {
            let left = std::mem::take(&mut self.texts[number]);
            if !left.is_empty() {
                let left = at_end.unwrap_or(left);
                whole.push_str(&format!("\n\n{}\n", left.trim_matches('\n')));
            }
        }
        whole
    }
}

/// A mark that stays where it is, until [`kept`] finds it.
pub(super) fn keep(number: u32) -> String {
    format!("{OPEN}{KEPT}{number}{CLOSE}")
}

/// True if a text has a mark.
pub(super) fn is_marked(text: &str) -> bool {
    text.contains(OPEN)
}

/// What a mark says.
enum Number {
    /// Which text is put in its place.
    Put(usize),
    /// It stays.
    Kept(u32),
}

/// The first mark of a text: what stands before it, what it says, and what follows.
fn marked(text: &str) -> Option<(&str, Option<Number>, &str)> {
    let (before, rest) = text.split_once(OPEN)?;
    // No mark is without an end: whoever wrote the document knows the sign.
    let (number, after) = rest.split_once(CLOSE).unwrap_or(("", rest));
    let number = match number.strip_prefix(KEPT) {
        Some(kept) => kept.parse().map(Number::Kept).ok(),
        None => number.parse().map(Number::Put).ok(),
    };
    Some((before, number, after))
}

/// A line without its marks, and the numbers of those that were kept.
pub(super) fn kept(line: &str) -> (String, Vec<u32>) {
    let (mut plain, mut numbers) = (String::with_capacity(line.len()), vec![]);
    let mut rest = line;
    while let Some((before, number, after)) = marked(rest) {
        plain.push_str(before);
        if let Some(Number::Kept(number)) = number {
            numbers.push(number);
        }
        // Words around it stay one blank apart.
        let is_apart = plain.is_empty() || plain.ends_with(' ');
        rest = after
            .strip_prefix(' ')
            .filter(|_| is_apart)
            .unwrap_or(after);
    }
    plain.push_str(rest);
    (plain, numbers)
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
            "before\n\n\n- a\n- b | c\n\n\n| x y |  |\n\nend"
        );
    }

    #[test]
    fn texts_that_are_certain_stand_at_the_end_without_a_mark() {
        let mut inserts = Inserts::default();
        let quote = |name: &str| format!("> {name}\n> more\n\n");
        let marks = ["a", "b", "c"].map(|name| inserts.add_certain(quote(name), None).unwrap());
        inserts.add(quote("d"));
        let text = format!("| {} |\n\n{}\n", marks[0], marks[1]);
        assert_eq!(
            inserts.put(text),
            "| a more |\n\n\n> b\n> more\n\n\n\n> c\n> more\n"
        );
        let mut inserts = Inserts::default();
        inserts.add_certain("a".to_owned(), Some(quote("a")));
        assert_eq!(inserts.put("text\n".to_owned()), "text\n\n\n> a\n> more\n");
    }
}
