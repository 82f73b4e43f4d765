//! Parts of Office documents, written as `undoc` expects them. It compares names with the prefixes that Office uses, where a
//! document may bind any other prefix to a namespace; it reads phonetic readings and text that was moved away as text, prompts of a layout as
//! the text of a slide, and on slides also what stands in for a branch that is read; and it knows neither equations, nor CDATA, nor lists that
//! a style makes, nor symbols, nor form fields, nor WordArt of before 2010, nor characters that cells write in digits, nor what Excel shows of a number:
//! cells with numbers become cells with text.
//!
//! Most parts of documents need nothing of this, and stay as they are. Sources: ECMA-376 parts 1 and 4 (namespaces, transitional and
//! strict), Namespaces in XML 1.0.

use std::collections::HashMap;

use memchr::memmem;
use quick_xml::{
    Reader,
    events::{BytesStart, Event, attributes::Attribute},
};

use super::{
    attributes, equation::Equation, list_styles::ListStyles, numbers::Numbers,
    paragraphs::Paragraphs, relations::value, strings, symbols, templates::Slide,
};
use crate::error::ExtractError;

/// Namespaces, by the prefix that `undoc` knows them by.
const KNOWN: [(&str, &str); 18] = [
    (
        "",
        "http://schemas.openxmlformats.org/spreadsheetml/2006/main",
    ),
    ("", "http://purl.oclc.org/ooxml/spreadsheetml/main"),
    (
        "",
        "http://schemas.openxmlformats.org/package/2006/relationships",
    ),
    (
        "w",
        "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    ),
    ("w", "http://purl.oclc.org/ooxml/wordprocessingml/main"),
    (
        "p",
        "http://schemas.openxmlformats.org/presentationml/2006/main",
    ),
    ("p", "http://purl.oclc.org/ooxml/presentationml/main"),
    ("a", "http://schemas.openxmlformats.org/drawingml/2006/main"),
    ("a", "http://purl.oclc.org/ooxml/drawingml/main"),
    (
        "wp",
        "http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing",
    ),
    (
        "wp",
        "http://purl.oclc.org/ooxml/drawingml/wordprocessingDrawing",
    ),
    (
        "r",
        "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    ),
    (
        "r",
        "http://purl.oclc.org/ooxml/officeDocument/relationships",
    ),
    (
        "m",
        "http://schemas.openxmlformats.org/officeDocument/2006/math",
    ),
    ("m", "http://purl.oclc.org/ooxml/officeDocument/math"),
    (
        "mc",
        "http://schemas.openxmlformats.org/markup-compatibility/2006",
    ),
    ("v", "urn:schemas-microsoft-com:vml"),
    ("o", "urn:schemas-microsoft-com:office:office"),
];

/// So much of what follows `xmlns` is looked at, in bytes: a part may be full of it.
const LONGEST_DECLARATION: usize = 1_024;

/// What a part may hold that is written otherwise.
const REWRITTEN: [&str; 14] = [
    "rPh",
    "oMath",
    "sldLayout",
    "sldMaster",
    "slidenum",
    "<![CDATA[",
    "Fallback",
    "ffData",
    "w:moveFrom",
    "w:ruby",
    "w:sym",
    "symEx",
    "textpath",
    strings::BEGIN,
];

/// Notes of a Word document, whose paragraphs, tabs and breaks `undoc` writes without anything between their words.
const NOTES: [&str; 2] = ["word/footnotes.xml", "word/endnotes.xml"];
/// What separates words of notes.
const GAP: &str = r#"<w:t xml:space="preserve"> </w:t>"#;

/// What parts are written with.
#[derive(Debug, Default)]
pub(super) struct Context {
    /// How cells of a sheet show numbers.
    pub(super) numbers: Numbers,
    /// Styles that make list items.
    pub(super) lists: ListStyles,
    /// The marks of what is put in, by the part that names it and the name that it has there.
    pub(super) marks: HashMap<String, HashMap<String, String>>,
}

/// A part as `undoc` expects it.
pub(super) fn rewritten(
    name: &str,
    xml: String,
    context: &Context,
) -> Result<String, ExtractError> {
    let is_sheet = is_sheet(&xml);
    let holds = |what: &&str| memmem::find(xml.as_bytes(), what.as_bytes()).is_some();
    let marks = context.marks.get(name);
    let has_lists = !context.lists.is_empty() && holds(&"pStyle");
    let is_notes = NOTES.contains(&name);
    if !is_sheet
        && !is_notes
        && !has_lists
        && marks.is_none()
        && !REWRITTEN.iter().any(holds)
        && !has_other_prefixes(&xml)
    {
        return Ok(xml);
    }
    let mut reader = Reader::from_str(&xml);
    let settings = reader.config_mut();
    settings.check_end_names = false;
    settings.allow_unmatched_ends = true;
    let mut part = Part {
        written: String::with_capacity(xml.len()),
        names: Names::default(),
        open: vec![],
        left_out: 0,
        is_template: false,
        is_notes,
        slide: Slide::default(),
        equation: None,
        numbers: is_sheet.then_some(&context.numbers),
        style: None,
        number: None,
        paragraphs: Paragraphs::new(&context.lists, marks),
    };
    loop {
        match reader.read_event() {
            Ok(Event::Start(start)) => part.start(&start, false),
            Ok(Event::Empty(start)) => part.start(&start, true),
            Ok(Event::End(end)) => part.end(end.name().as_ref()),
            Ok(Event::Text(text)) => part.text(&text),
            Ok(Event::GeneralRef(reference)) => part.text(&format!("&{};", &*reference)),
            Ok(Event::CData(text)) => part.text(&quick_xml::escape::escape(&*text)),
            Ok(Event::Eof) => return Ok(part.written),
            // A declaration says nothing of text that is decoded.
            Ok(_) => {}
            Err(error) => return Err(ExtractError::damaged(format!("{name}: {error}"))),
        }
    }
}

/// Whether a part is a sheet of a workbook, wherever it stands.
pub(super) fn is_sheet(xml: &str) -> bool {
    memmem::find(xml.as_bytes(), b"sheetData").is_some()
}

/// Whether a prefix is bound to a namespace that `undoc` knows by another one, or a prefix that it knows to another namespace.
fn has_other_prefixes(xml: &str) -> bool {
    memmem::find_iter(xml.as_bytes(), "xmlns").any(|at| {
        let rest = &xml[at + 5..];
        let rest = &rest[..rest.floor_char_boundary(LONGEST_DECLARATION)];
        let declared = rest.split_once('=').and_then(|(prefix, value)| {
            let prefix = prefix.trim_end();
            let prefix = prefix.strip_prefix(':').unwrap_or(prefix);
            let value = value.trim_start();
            let quote = value.chars().next().filter(|c| matches!(c, '"' | '\''))?;
            let (namespace, _) = value[1..].split_once(quote)?;
            Some((prefix, namespace))
        });
        declared.is_some_and(|(prefix, namespace)| match known(namespace) {
            Some(expected) => prefix != expected,
            None => is_known_prefix(prefix),
        })
    })
}

/// The prefix of a namespace.
fn known(namespace: &str) -> Option<&'static str> {
    let found = KNOWN.iter().find(|(_, one)| *one == namespace);
    found.map(|(prefix, _)| *prefix)
}

/// Whether `undoc` takes a prefix for that of a namespace it knows.
fn is_known_prefix(prefix: &str) -> bool {
    !prefix.is_empty() && KNOWN.iter().any(|(known, _)| *known == prefix)
}

/// Prefixes that are bound where the reader is, and what is written in their place: none for those of other namespaces.
#[derive(Default)]
struct Names {
    bound: HashMap<String, Vec<Option<&'static str>>>,
}

impl Names {
    /// Binds what an element declares. Gives the prefixes, for [`Names::release`].
    fn bind(&mut self, start: &BytesStart<'_>) -> Vec<String> {
        let mut prefixes = vec![];
        for attribute in attributes(start) {
            let prefix = match attribute.key.as_ref() {
                "xmlns" => "",
                other => match other.strip_prefix("xmlns:") {
                    Some(prefix) => prefix,
                    None => continue,
                },
            };
            let place = self.bound.entry(prefix.to_owned()).or_default();
            place.push(known(&attribute.value));
            prefixes.push(prefix.to_owned());
        }
        prefixes
    }

    fn release(&mut self, prefixes: &[String]) {
        for prefix in prefixes {
            if let Some(place) = self.bound.get_mut(prefix) {
                place.pop();
            }
        }
    }

    /// A name with the prefix that it is known by; none where it stays as it is.
    fn expected(&self, name: &str, is_attribute: bool) -> Option<String> {
        let (prefix, local) = name.split_once(':').unwrap_or(("", name));
        // An attribute without a prefix is in no namespace.
        if is_attribute && prefix.is_empty() {
            return None;
        }
        match self.bound.get(prefix)?.last()? {
            Some(expected) if *expected == prefix => None,
            Some("") => Some(local.to_owned()),
            Some(expected) => Some(format!("{expected}:{local}")),
            // Another namespace must not be taken for the one that the prefix stands for elsewhere.
            None if is_known_prefix(prefix) => Some(format!("{prefix}_:{local}")),
            None => None,
        }
    }
}

/// An element that is open.
struct Open {
    name: String,
    written: String,
    prefixes: Vec<String>,
}

/// True for text of a cell.
fn is_string(open: &Open) -> bool {
    matches!(open.written.as_str(), "t" | "v")
}

/// A part while it is written.
struct Part<'a> {
    written: String,
    names: Names,
    open: Vec<Open>,
    /// How many elements are open since one that is left out.
    left_out: usize,
    /// A layout or a master of slides.
    is_template: bool,
    /// Notes of a Word document.
    is_notes: bool,
    /// What is known of a slide.
    slide: Slide,
    /// The equation that is read, and how many elements are open around it.
    equation: Option<(usize, Equation)>,
    /// How a sheet shows numbers,
    numbers: Option<&'a Numbers>,
    /// the style of the cell, where it holds a number,
    style: Option<usize>,
    /// and the number, as far as it was read.
    number: Option<String>,
    /// What is added to paragraphs.
    paragraphs: Paragraphs<'a>,
}

impl Part<'_> {
    fn start(&mut self, start: &BytesStart<'_>, is_empty: bool) {
        if self.left_out > 0 {
            self.left_out += usize::from(!is_empty);
            return;
        }
        let prefixes = self.names.bind(start);
        let name = start.name().as_ref().to_owned();
        let written = self.names.expected(&name, false);
        let written = written.unwrap_or_else(|| name.clone());
        if self.open.is_empty() {
            self.is_template = matches!(written.as_str(), "p:sldLayout" | "p:sldMaster");
            self.slide.start(start);
        }
        // How a word is pronounced is no part of it, a prompt is no text of the slide, and the number of a slide is its place.
        let is_number =
            |one: Attribute<'_>| one.key.as_ref() == "type" && &*one.value == "slidenum";
        let is_left_out = match written.as_str() {
            "rPh" | "w:rt" => true,
            // What a paragraph was before somebody changed it, and text where it stood before somebody moved it.
            "w:pPrChange" | "w:moveFrom" => true,
            "a:p" => self.is_template || self.is_stand_in(),
            "w:t" => self.is_stand_in(),
            "a:fld" => attributes(start).any(is_number),
            _ => false,
        };
        let instead = match is_left_out {
            true => Some(String::new()),
            false => self.instead(&written, start),
        };
        if let Some(instead) = instead {
            self.written.push_str(&instead);
            self.left_out = usize::from(!is_empty);
            self.names.release(&prefixes);
            return;
        }
        if let Some((_, equation)) = &mut self.equation {
            equation.start(&written, start, is_empty);
        } else if written == "m:oMath" {
            self.equation = (!is_empty).then(|| (self.open.len(), Equation::default()));
        } else {
            self.paragraphs
                .start(&written, start, is_empty, &mut self.written);
            self.mark(&written, start, is_empty);
            if written == "p:spTree" && !is_empty {
                self.slide.shapes_begin(self.written.len());
            }
        }
        if is_empty {
            self.names.release(&prefixes);
        } else {
            if written == "v" && self.style.is_some() {
                self.number = Some(String::new());
            }
            self.open.push(Open {
                name,
                written,
                prefixes,
            });
        }
    }

    /// True within a branch that stands in for one that is read.
    fn is_stand_in(&self) -> bool {
        self.open.iter().any(|open| open.written == "mc:Fallback")
    }

    /// Returns what is written in the place of an element that holds text otherwise than `undoc` expects it.
    fn instead(&self, name: &str, start: &BytesStart<'_>) -> Option<String> {
        let is_in_run = || self.open.last().is_some_and(|open| open.written == "w:r");
        let instead = match name {
            "w:tab" | "w:br" | "w:cr" if self.is_notes && is_in_run() => GAP.to_owned(),
            "w:noBreakHyphen" if self.is_notes => "<w:t>-</w:t>".to_owned(),
            "v:textpath" => {
                let text = value(start, "string").filter(|text| !text.trim().is_empty())?;
                let words: Vec<&str> = text.split_whitespace().collect();
                let text = quick_xml::escape::escape(words.join(" "));
                format!(
                    "<v:textbox><w:txbxContent><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:txbxContent></v:textbox>"
                )
            }
            _ if name == "w:sym" || start.local_name().as_ref() == "symEx" => {
                let font = value(start, "font").unwrap_or_default();
                let symbol = symbols::character(&font, &value(start, "char")?)?;
                let symbol = quick_xml::escape::escape(symbol.to_string());
                format!("<w:t>{symbol}</w:t>")
            }
            _ => return None,
        };
        let is_apart = self.equation.is_some() || self.is_stand_in();
        (!is_apart).then_some(instead)
    }

    /// Writes the mark that opens an element.
    fn mark(&mut self, written: &str, start: &BytesStart<'_>, is_empty: bool) {
        self.written.push('<');
        self.written.push_str(written);
        if self.numbers.is_some() && written == "c" {
            self.style = Numbers::style(start);
        }
        let is_number = self.style.is_some() && written == "c";
        if is_number {
            self.written.push_str(r#" t="str""#);
        }
        let all = || attributes(start).filter(|one| !is_number || one.key.as_ref() != "t");
        let is_other = |name: &str| self.names.expected(name, true).is_some();
        if is_number || all().any(|attribute| is_other(attribute.key.as_ref())) {
            for attribute in all() {
                let name = attribute.key.as_ref();
                let name = self.names.expected(name, true);
                let name = name.as_deref().unwrap_or(attribute.key.as_ref());
                let quote = if attribute.value.contains('"') {
                    '\''
                } else {
                    '"'
                };
                let value = &attribute.value;
                self.written
                    .push_str(&format!(" {name}={quote}{value}{quote}"));
            }
        } else {
            self.written.push_str(start.attributes_raw());
        }
        self.written.push_str(if is_empty { "/>" } else { ">" });
    }

    fn end(&mut self, name: &str) {
        if self.left_out > 0 {
            self.left_out -= 1;
            return;
        }
        let Some(open) = self.open.pop() else {
            self.written.push_str(&format!("</{name}>"));
            return;
        };
        self.names.release(&open.prefixes);
        // What does not match stays wrong.
        let written = if open.name == name {
            &open.written
        } else {
            name
        };
        if let Some((around, equation)) = &mut self.equation {
            if self.open.len() > *around {
                equation.end();
                return;
            }
            let text = equation.text();
            self.written.push_str(&format!(
                "<w:r><w:t xml:space=\"preserve\">{text}</w:t></w:r>"
            ));
            self.equation = None;
            return;
        }
        if let (Some(numbers), Some(number)) = (self.numbers, self.number.take()) {
            let text = numbers.text(&number, self.style.unwrap_or_default());
            self.written.push_str(&text);
        }
        if written == "p:spTree"
            && let Some(begin) = self.slide.place_of_templates()
        {
            self.written
                .insert_str(begin, &self.paragraphs.of_templates());
        }
        self.paragraphs.ends(written, &mut self.written);
        if self.is_notes && written == "w:p" {
            self.written.push_str(&format!("<w:r>{GAP}</w:r>"));
        }
        self.written.push_str(&format!("</{written}>"));
        self.paragraphs.ended(written, &mut self.written);
    }

    fn text(&mut self, text: &str) {
        if self.left_out > 0 {
            return;
        }
        if let Some(open) = self.open.last() {
            self.slide.text(&open.written, text);
        }
        match (&mut self.equation, &mut self.number) {
            (Some((_, equation)), _) => equation.add(text),
            (None, Some(number)) => number.push_str(text),
            (None, None) if self.open.last().is_some_and(is_string) => {
                self.written.push_str(&strings::plain(text));
            }
            (None, None) => self.written.push_str(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHEETS: &str = "http://schemas.openxmlformats.org/spreadsheetml/2006/main";
    const WORDS: &str = "http://purl.oclc.org/ooxml/wordprocessingml/main";

    fn of(xml: &str) -> String {
        rewritten("word/document.xml", xml.to_owned(), &Context::default()).unwrap()
    }

    #[test]
    fn namespaces_have_the_prefixes_that_are_expected() {
        assert_eq!(
            of(&format!(
                r#"<?xml version="1.0"?><x:a xmlns:x="{SHEETS}" n='"' x:b="&lt;"><x:t>1 &amp; 2</x:t><x:e/></x:a>"#
            )),
            format!(r#"<a xmlns:x="{SHEETS}" n='"' b="&lt;"><t>1 &amp; 2</t><e/></a>"#)
        );
        // A default namespace is bound within its element alone, and a prefix is free outside of the one that binds it.
        assert_eq!(
            of(&format!(
                r#"<b><p xmlns='{WORDS}' w="1"><r/></p><w:p xmlns:w="urn:other" w:x="1"/><w:p/></b>"#
            )),
            format!(
                r#"<b><w:p xmlns='{WORDS}' w="1"><w:r/></w:p><w_:p xmlns:w="urn:other" w_:x="1"/><w:p/></b>"#
            )
        );
        // What does not end as it begins is no better afterwards.
        let crossed = format!("<y:a xmlns:y='{SHEETS}'><y:b></y:a></y:b></c>");
        assert_eq!(
            of(&crossed),
            format!("<a xmlns:y='{SHEETS}'><b></y:a></y:b></c>")
        );
        let usual = format!("<a xmlns = '{SHEETS}'><!-- as it is --></a>");
        assert_eq!(of(&usual), usual);
    }

    #[test]
    fn text_that_is_not_shown_is_left_out() {
        let run = |text: &str| format!("<w:r><w:t>{text}</w:t></w:r>");
        let moved = format!("<w:moveTo>{}</w:moveTo>", run("new"));
        assert_eq!(
            of(&format!(
                "<w:moveFrom w:id='1'>{}</w:moveFrom>{moved}",
                run("old")
            )),
            moved
        );
        let base = format!("<w:rubyBase>{}</w:rubyBase>", run("東京"));
        assert_eq!(
            of(&format!(
                "<w:ruby><w:rt>{}</w:rt>{base}</w:ruby>",
                run("とうきょう")
            )),
            format!("<w:ruby>{base}</w:ruby>")
        );
        let choice = "<mc:Choice><a:p>x</a:p></mc:Choice>";
        assert_eq!(
            of(&format!(
                "{choice}<mc:Fallback><a:p>x</a:p><p:pic/><w:t>x</w:t></mc:Fallback>"
            )),
            format!("{choice}<mc:Fallback><p:pic/></mc:Fallback>")
        );
    }

    #[test]
    fn symbols_and_word_art_are_text() {
        let symbol =
            |font: &str, place: &str| format!(r#"<w:sym w:font="{font}" w:char="{place}"/>"#);
        assert_eq!(of(&symbol("Wingdings", "F0FE")), "<w:t>☑</w:t>");
        assert_eq!(of(&symbol("Symbol", "F03C")), "<w:t>&lt;</w:t>");
        let unknown = symbol("Wingdings", "F025");
        assert_eq!(of(&unknown), unknown);
        let emoji = r#"<mc:Choice><x:symEx x:font="Segoe UI Emoji" x:char="1F60A"></x:symEx></mc:Choice><mc:Fallback><w:t>😊</w:t></mc:Fallback>"#;
        assert_eq!(
            of(emoji),
            "<mc:Choice><w:t>😊</w:t></mc:Choice><mc:Fallback></mc:Fallback>"
        );
        let art = r#"<v:textpath on="t"/><v:textpath string=" "/><v:textpath style="a" string="A  &amp;&#10;B"/>"#;
        assert_eq!(
            of(art),
            r#"<v:textpath on="t"/><v:textpath string=" "/><v:textbox><w:txbxContent><w:p><w:r><w:t>A &amp; B</w:t></w:r></w:p></w:txbxContent></v:textbox>"#
        );
    }

    #[test]
    fn words_of_notes_stay_apart() {
        let note = "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>a</w:t><w:tab/><w:br/><w:noBreakHyphen/></w:r></w:p>";
        let written = rewritten(NOTES[0], note.to_owned(), &Context::default()).unwrap();
        assert_eq!(
            written,
            format!(
                "<w:p><w:pPr><w:tabs><w:tab/></w:tabs></w:pPr><w:r><w:t>a</w:t>{GAP}{GAP}<w:t>-</w:t></w:r><w:r>{GAP}</w:r></w:p>"
            )
        );
        assert_eq!(of(note), note);
    }

    #[test]
    fn what_looks_like_declarations_takes_time_in_proportion() {
        let many = "xmlns ".repeat(1_000_000);
        assert!(!has_other_prefixes(&many));
    }

    #[test]
    fn cdata_is_text_and_readings_are_none() {
        assert_eq!(
            of("<si><t>a<![CDATA[<&]]></t><rPh sb='0'><t>b</t></rPh><rPh/><t>c</t></si>"),
            "<si><t>a&lt;&amp;</t><t>c</t></si>"
        );
    }
}
