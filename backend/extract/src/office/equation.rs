//! Equations of Office as text in a line, such as `x^2/(a+b)`. Source: ECMA-376 part 1, section 22.1 (Office Math).

use quick_xml::events::BytesStart;

use super::attributes;

/// An equation while it is read. What it is given and gives is text as XML has it, with references.
#[derive(Debug, Default)]
pub(super) struct Equation {
    text: String,
    open: Vec<Open>,
}

/// An element that is open.
#[derive(Debug)]
struct Open {
    name: String,
    /// Where it begins: its mark,
    begin: usize,
    /// and what is in it.
    inside: usize,
    /// What stands around it.
    around: Option<(String, String)>,
}

impl Equation {
    /// An element begins.
    pub(super) fn start(&mut self, name: &str, start: &BytesStart<'_>, is_empty: bool) {
        let begin = self.text.len();
        self.value(name, start);
        if is_empty {
            if name == "m:naryPr" {
                self.text.push('∫');
            }
            return;
        }
        let is_next = self.open.last().is_some_and(|open| {
            let is_list = matches!(
                open.name.as_str(),
                "m:mr" | "m:eqArr" | "m:d" | "m:m" | "m:nary"
            );
            is_list && open.inside < begin && matches!(name, "m:e" | "m:mr")
        });
        self.text.push_str(match name {
            _ if is_next => " ",
            "m:den" => "/",
            "m:sub" | "m:lim" => "_",
            "m:sup" => "^",
            "m:rad" => "√",
            _ => "",
        });
        let is_root = name == "m:e" && self.open.last().is_some_and(|open| open.name == "m:rad");
        let is_group = is_root
            || matches!(
                name,
                "m:num" | "m:den" | "m:sub" | "m:sup" | "m:deg" | "m:lim"
            );
        self.open.push(Open {
            name: name.to_owned(),
            begin,
            inside: self.text.len(),
            around: (is_group || name == "m:d").then(|| ("(".to_owned(), ")".to_owned())),
        });
    }

    /// What an element says by its value: the sign of a sum, the brackets.
    fn value(&mut self, name: &str, start: &BytesStart<'_>) {
        let value = || {
            let mut all = attributes(start);
            all.find(|one| one.key.local_name().as_ref() == "val")
                .map(|one| one.value.into_owned())
                .unwrap_or_default()
        };
        let [.., around, properties] = self.open.as_mut_slice() else {
            return;
        };
        match (properties.name.as_str(), name, &mut around.around) {
            ("m:naryPr", "m:chr", _) => self.text.push_str(&value()),
            ("m:dPr", "m:begChr", Some((before, _))) => *before = value(),
            ("m:dPr", "m:endChr", Some((_, after))) => *after = value(),
            _ => {}
        }
    }

    /// The element that was opened last ends.
    pub(super) fn end(&mut self) {
        let Some(open) = self.open.pop() else {
            return;
        };
        let inside = &self.text[open.inside..];
        match open.name.as_str() {
            "m:naryPr" if inside.is_empty() => self.text.push('∫'),
            "m:fName" => self.text.push(' '),
            _ => {}
        }
        let Some((before, after)) = open.around else {
            return;
        };
        let inside = &self.text[open.inside..];
        let is_one = inside.chars().nth(1).is_none() || inside.bytes().all(|b| b.is_ascii_digit());
        if open.name == "m:d" || !is_one {
            self.text.insert_str(open.inside, &before);
            self.text.push_str(&after);
        } else if inside.is_empty() {
            self.text.truncate(open.begin);
        }
    }

    /// Text, where it is of the equation.
    pub(super) fn add(&mut self, text: &str) {
        let is_text = |open: &Open| matches!(open.name.as_str(), "m:t" | "w:t");
        if self.open.last().is_some_and(is_text) {
            self.text.push_str(text);
        }
    }

    /// What was read.
    pub(super) fn text(&self) -> &str {
        self.text.trim()
    }
}
