//! Text in layouts and masters of slides, for slides that have no words themselves: each shows that of its own layout and of the master of
//! this one, which is written where the first of them stands. Text of placeholders is a prompt, which no slide shows. Source: ECMA-376 part 1,
//! sections 19.3.1.38 (`sld`), 19.3.1.39 (`sldLayout`) and 19.3.1.42 (`sldMaster`).

use std::collections::HashMap;

use quick_xml::events::BytesStart;

use super::{attribute, drawings, inserts::Inserts, relations::value, showing::ShowingPart};
use crate::{error::ExtractError, markdown::tidy, package::Package};

/// The names that marks have for the text of the layout and of the master of a slide. No relation has them, as they have blanks.
pub(super) const NAMES: [&str; 2] = ["text of the layout", "text of the master"];

/// The attribute by which a slide hides the shapes of its layout and master, and a layout those of its master.
const SHOWS_MASTER: &str = "showMasterSp";

/// A mark for the text of a template.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// The slide that shows the text.
    pub(super) part: String,
    /// The name that the mark has there, one of [`NAMES`].
    pub(super) name: &'static str,
    pub(super) mark: String,
}

/// A layout or a master.
struct Template<'a> {
    part: &'a ShowingPart,
    /// The mark of its text, if it has any.
    mark: Option<String>,
    hides_master: bool,
}

/// Returns the marks for the text that the templates of slides show.
pub(super) fn marks(
    package: &mut Package<'_>,
    parts: &[ShowingPart],
    inserts: &mut Inserts,
) -> Result<Vec<Mark>, ExtractError> {
    let mut templates: HashMap<&str, Template<'_>> = HashMap::new();
    for part in parts.iter().filter(|part| !part.is_in_text) {
        let xml = package.look_at_xml(&part.name)?.unwrap_or_default();
        let text: String = drawings::texts(&xml)
            .map(|text| format!("{text}\n\n"))
            .collect();
        let has_words = text.contains(char::is_alphanumeric);
        let mark = has_words.then(|| inserts.add(tidy(&text))).flatten();
        let shows_master = attribute(&xml, "sldLayout", SHOWS_MASTER);
        let template = Template {
            part,
            mark,
            hides_master: shows_master.is_some_and(|value| is_false(&value)),
        };
        templates.insert(&part.name, template);
    }
    let mut marks = vec![];
    for slide in parts.iter().filter(|part| part.is_in_text) {
        let layout = target(slide, "slideLayout").and_then(|name| templates.get(name));
        let master = layout
            .filter(|layout| !layout.hides_master)
            .and_then(|layout| target(layout.part, "slideMaster"))
            .and_then(|name| templates.get(name));
        for (name, template) in NAMES.into_iter().zip([layout, master]) {
            if let Some(mark) = template.and_then(|template| template.mark.clone()) {
                marks.push(Mark {
                    part: slide.name.clone(),
                    name,
                    mark,
                });
            }
        }
    }
    Ok(marks)
}

/// The part of a kind that another one names.
fn target<'a>(part: &'a ShowingPart, kind: &str) -> Option<&'a str> {
    let found = part.relations.iter().find(|one| one.kind == kind)?;
    Some(&found.target)
}

fn is_false(value: &str) -> bool {
    matches!(value.trim(), "0" | "false")
}

/// A slide while it is written.
#[derive(Debug, Default)]
pub(super) struct Slide {
    /// Where its shapes begin in what is written.
    begin: Option<usize>,
    has_words: bool,
    hides_templates: bool,
}

impl Slide {
    /// The slide begins.
    pub(super) fn start(&mut self, start: &BytesStart<'_>) {
        self.hides_templates = value(start, SHOWS_MASTER).is_some_and(|value| is_false(&value));
    }

    /// Its shapes begin at a place of what is written.
    pub(super) fn shapes_begin(&mut self, at: usize) {
        self.begin = Some(at);
    }

    /// Text of an element.
    pub(super) fn text(&mut self, element: &str, text: &str) {
        self.has_words |= matches!(element, "a:t" | "m:t") && text.contains(char::is_alphanumeric);
    }

    /// Returns where the text of its templates belongs, or `None` if the slide does not need it.
    pub(super) fn place_of_templates(&self) -> Option<usize> {
        self.begin
            .filter(|_| !self.has_words && !self.hides_templates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::office::rewrite::{Context, rewritten};

    #[test]
    fn marks_of_templates_stand_on_slides_without_words() {
        const PART: &str = "ppt/slides/slide1.xml";
        let marks = NAMES.into_iter().zip(["L", "M"]);
        let marks = marks.map(|(name, mark)| (name.to_owned(), mark.to_owned()));
        let context = Context {
            marks: HashMap::from([(PART.to_owned(), marks.collect())]),
            ..Context::default()
        };
        let slide =
            |root: &str, shapes: &str| format!("<{root}><p:spTree>{shapes}</p:spTree></p:sld>");
        let shape = |text: &str| format!("<p:sp><a:p><a:t>{text}</a:t></a:p></p:sp>");
        let marked = |mark: &str| {
            format!("<p:sp><p:txBody><a:p><a:r><a:t>{mark}</a:t></a:r></a:p></p:txBody></p:sp>")
        };
        let both = marked("L") + &marked("M");
        for (root, shapes, templates) in [
            ("p:sld", String::new(), both.as_str()),
            ("p:sld", "<p:pic/>".to_owned() + &shape("- "), both.as_str()),
            ("p:sld showMasterSp='1'", shape(""), both.as_str()),
            ("p:sld showMasterSp='0'", shape(""), ""),
            ("p:sld", "<p:pic/>".to_owned() + &shape("Hours"), ""),
        ] {
            let xml = rewritten(PART, slide(root, &shapes), &context).unwrap();
            assert_eq!(xml, slide(root, &format!("{templates}{shapes}")), "{root}");
        }
    }
}
