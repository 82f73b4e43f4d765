//! What is added to a Word document or a slide while it is written: the lists that styles make of paragraphs, what form fields show, and marks where text
//! of other parts belongs, comments among them.

use std::collections::{HashMap, HashSet};

use quick_xml::events::BytesStart;

use super::{
    comments,
    form_fields::FormField,
    list_styles::{LAST_LEVEL, ListStyles},
    relations::value,
    templates,
};

/// What is added to a part.
#[derive(Debug)]
pub(super) struct Paragraphs<'a> {
    lists: &'a ListStyles,
    /// The marks of parts, by the names that this one has for them.
    marks: Option<&'a HashMap<String, String>>,
    /// A part is put in once, however often it is named.
    used: HashSet<&'a str>,
    /// Marks that are written once the paragraph, the shape, the picture or the frame ends, or all of the slide.
    waiting: Vec<&'a str>,
    open: Vec<Paragraph<'a>>,
    field: FormField,
}

/// A paragraph that is open.
#[derive(Debug, Default)]
struct Paragraph<'a> {
    /// The list and the level that its style has.
    list: Option<(&'a str, u8)>,
    /// True if the paragraph names a list itself, which counts in place of its style's.
    has_list: bool,
    /// The level that the paragraph has itself, in the list of its style, too.
    level: Option<u8>,
}

impl<'a> Paragraphs<'a> {
    pub(super) fn new(lists: &'a ListStyles, marks: Option<&'a HashMap<String, String>>) -> Self {
        Self {
            lists,
            marks,
            used: HashSet::new(),
            waiting: vec![],
            open: vec![],
            field: FormField::default(),
        }
    }

    /// An element begins, whose mark is not written yet.
    pub(super) fn start(
        &mut self,
        name: &str,
        start: &BytesStart<'_>,
        is_empty: bool,
        to: &mut String,
    ) {
        self.field.start(name, start);
        match name {
            "w:p" if !is_empty => self.open.push(Paragraph::default()),
            "w:pStyle" => {
                let style = value(start, "val").unwrap_or_default();
                if let Some(paragraph) = self.open.last_mut() {
                    paragraph.list = self.lists.of(&style);
                }
            }
            "w:numId" => {
                if let Some(paragraph) = self.open.last_mut() {
                    paragraph.has_list = true;
                }
            }
            "w:ilvl" => {
                let level = value(start, "val").and_then(|level| level.parse::<u8>().ok());
                if let Some(paragraph) = self.open.last_mut() {
                    paragraph.level = level.map(|level| level.min(LAST_LEVEL));
                }
            }
            "w:commentReference" => {
                let id = value(start, "id").unwrap_or_default();
                let mark = self.mark(&comments::name(&id));
                self.waiting.extend(mark);
            }
            "w:altChunk" => {
                if let Some(mark) = value(start, "id").and_then(|id| self.mark(&id)) {
                    push_paragraph(to, mark);
                }
            }
            _ => {
                let id = match start.local_name().as_ref() {
                    "relIds" => value(start, "dm"),
                    "chart" | "imagedata" => value(start, "id"),
                    "blip" => value(start, "embed"),
                    _ => None,
                };
                let mark = id.and_then(|id| self.mark(&id));
                self.waiting.extend(mark);
            }
        }
    }

    /// The mark of a part, at its first use.
    fn mark(&mut self, id: &str) -> Option<&'a str> {
        let (_, mark) = self.marks?.get_key_value(id)?;
        self.used.insert(mark).then_some(mark)
    }

    /// An element ends, which is not written yet.
    pub(super) fn ends(&mut self, name: &str, to: &mut String) {
        if name == "p:spTree" {
            let mark = self.mark(comments::OF_SLIDE);
            self.waiting.extend(mark);
            self.push_shapes(to);
        }
        if name == "w:pPr"
            && let Some(paragraph) = self.open.last_mut()
            && let Some((list, level)) = paragraph.list.take()
            && !paragraph.has_list
        {
            let level = paragraph.level.unwrap_or(level);
            let list = quick_xml::escape::escape(list);
            to.push_str(&format!(
                r#"<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{list}"/></w:numPr>"#
            ));
        }
    }

    /// The end of an element was written.
    pub(super) fn ended(&mut self, name: &str, to: &mut String) {
        match name {
            "w:p" => {
                self.open.pop();
                if self.open.is_empty() {
                    self.waiting
                        .drain(..)
                        .for_each(|mark| push_paragraph(to, mark));
                }
            }
            "w:fldChar" => {
                if let Some(text) = self.field.take_text() {
                    let text = quick_xml::escape::escape(&text);
                    to.push_str(&format!(r#"<w:t xml:space="preserve">{text}</w:t>"#));
                }
            }
            "p:graphicFrame" | "p:pic" | "p:sp" => self.push_shapes(to),
            _ => {}
        }
    }

    /// Writes the marks that wait, each as a shape of a slide.
    fn push_shapes(&mut self, to: &mut String) {
        self.waiting.drain(..).for_each(|mark| push_shape(to, mark));
    }

    /// Returns the marks for the text of the templates of a slide as shapes.
    pub(super) fn of_templates(&mut self) -> String {
        let mut shapes = String::new();
        for name in templates::NAMES {
            if let Some(mark) = self.mark(name) {
                push_shape(&mut shapes, mark);
            }
        }
        shapes
    }
}

fn push_shape(to: &mut String, mark: &str) {
    to.push_str(&format!(
        "<p:sp><p:txBody><a:p><a:r><a:t>{mark}</a:t></a:r></a:p></p:txBody></p:sp>"
    ));
}

fn push_paragraph(to: &mut String, mark: &str) {
    to.push_str(&format!("<w:p><w:r><w:t>{mark}</w:t></w:r></w:p>"));
}
