//! What a document came to.

use serde::{Deserialize, Serialize};

use crate::{error::ExtractError, markdown};

/// The text of a document, and what it says of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Document {
    /// Its text.
    pub markdown: String,
    /// Its title, or else its first heading.
    pub title: Option<String>,
    /// Who wrote it, as it says.
    pub author: Option<String>,
    /// The language that it names, such as `en` or `pt-BR`.
    pub language: Option<String>,
    /// How many pages, slides or pictures it has, where it has such.
    pub pages: Option<u32>,
    /// The pages that somebody has to look at, in order.
    pub unread: Vec<UnreadPage>,
    /// How many documents, objects of other programs, metafiles, drawings in SVG and broken pictures are inside of it whose text is not in
    /// the Markdown, and that nobody can look at. Text of a Word 97-2003 document beside its body counts as one where some of it is lost. Of documents of Office 97 to 2003,
    /// charts and pictures that are not looked at count as well.
    pub unread_objects: u32,
    /// How many formulas of a workbook (`.xlsx`) have no stored result, so that their cells are empty. In `.xls` files, each formula has one.
    pub missing_results: u32,
}

/// A page whose text has to be recognized in its image.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadPage {
    /// Its number, from 1 on; of a file of a book, its place in the spine; of a picture inside of a document, a larger one.
    pub page: u32,
    /// Where its text belongs in the Markdown: the bytes from here,
    pub begin: usize,
    /// to here, which are what can be had of its text without looking at it.
    pub end: usize,
    /// Why it has to be looked at.
    pub reason: UnreadReason,
}

/// Why a page has to be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnreadReason {
    /// It is a picture, and has no text.
    NoText,
    /// It has text that makes no sense, or too little for what it shows.
    BadText,
    /// What its text is stored as could not be read, or is not there.
    Unreadable,
    /// It is a picture inside of the text.
    Picture,
    /// It is a picture that stands for an object of another program, which [`Document::unread_objects`] counts.
    Preview,
}

impl Document {
    /// A document that is this text, with the first heading as its title.
    pub(crate) fn of_markdown(markdown: String) -> Self {
        Self {
            markdown,
            ..Self::default()
        }
    }

    /// Puts what was recognized on pages in its place. Pages that are not among them, or on which nothing was recognized, keep what
    /// they have. No page is unread afterwards.
    pub fn fill(&mut self, mut recognized: impl FnMut(u32) -> Option<String>) {
        let mut filled = String::with_capacity(self.markdown.len());
        let mut written = 0;
        for unread in std::mem::take(&mut self.unread) {
            let text = recognized(unread.page).map(|text| markdown::tidy(&text));
            let Some(text) = text.filter(|text| !text.is_empty()) else {
                continue;
            };
            let before = self.markdown.get(written..unread.begin);
            let (Some(before), true) = (before, self.markdown.is_char_boundary(unread.end)) else {
                continue;
            };
            filled.push_str(before);
            separate(&mut filled);
            filled.push_str(&text);
            written = unread.end.max(unread.begin);
            if !self.markdown[written..].starts_with('\n') {
                separate(&mut filled);
            }
        }
        filled.push_str(&self.markdown[written..]);
        self.markdown = markdown::tidy(&filled);
    }

    /// The document, when it has any text or any page that may have.
    ///
    /// # Errors
    /// When there is nothing: it holds `has_pictures` only, or nothing at all.
    pub fn finished(mut self, has_pictures: bool) -> Result<Self, ExtractError> {
        if self.unread.is_empty() && !self.markdown.chars().any(char::is_alphanumeric) {
            return Err(if has_pictures {
                ExtractError::PicturesOnly
            } else {
                ExtractError::Empty
            });
        }
        let presentable = |value: Option<String>| {
            let value = value?.split_whitespace().collect::<Vec<_>>().join(" ");
            let value: String = value
                .chars()
                .filter(|c| !c.is_control())
                .take(500)
                .collect();
            (!value.is_empty()).then_some(value)
        };
        self.title = presentable(self.title.take().filter(|title| is_title(title)))
            .or_else(|| markdown::first_heading(&self.markdown));
        self.author = presentable(self.author.take());
        self.language = self.language.take().and_then(|language| tag(&language));
        Ok(self)
    }
}

/// Ends a paragraph.
fn separate(text: &mut String) {
    if !text.is_empty() && !text.ends_with("\n\n") {
        text.push_str(if text.ends_with('\n') { "\n" } else { "\n\n" });
    }
}

/// Whether a title is one that somebody gave, and not what a program put there.
fn is_title(title: &str) -> bool {
    let lower = title.trim().to_lowercase();
    let is_program = [
        "microsoft word",
        "microsoft powerpoint",
        "untitled",
        "powerpoint presentation",
        "slide 1",
    ]
    .iter()
    .any(|default| lower.starts_with(default));
    !is_program && crate::format::extension_kind(&lower) == crate::format::ExtensionKind::Unknown
}

/// A language tag, as far as it looks like one: `en`, `pt-BR`.
fn tag(language: &str) -> Option<String> {
    let language = language.trim().replace('_', "-");
    let mut parts = language.split('-');
    let is_primary = |part: &str| {
        (2..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphabetic())
    };
    let is_part = |part: &str| {
        (1..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    let is_tag = parts.next().is_some_and(is_primary) && parts.all(is_part);
    (is_tag && language.len() <= 35 && !language.starts_with("und")).then_some(language)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unread(page: u32, begin: usize, end: usize) -> UnreadPage {
        UnreadPage {
            page,
            begin,
            end,
            reason: UnreadReason::NoText,
        }
    }

    #[test]
    fn recognized_pages_are_put_in_their_places() {
        let document = Document {
            markdown: "first\n\nbad\n\nlast\n".to_owned(),
            unread: vec![unread(1, 0, 0), unread(3, 7, 10), unread(5, 17, 17)],
            ..Document::default()
        };
        let mut whole = document.clone();
        whole.fill(|page| Some(format!("page {page}\n\n")));
        assert_eq!(
            whole.markdown,
            "page 1\n\nfirst\n\npage 3\n\nlast\n\npage 5\n"
        );
        let mut none = document.clone();
        none.fill(|_| None);
        assert_eq!(none.markdown, document.markdown);
        let mut some = document;
        some.fill(|page| (page == 3).then(|| "good".to_owned()));
        assert_eq!(some.markdown, "first\n\ngood\n\nlast\n");
        assert!(some.unread.is_empty());
    }

    #[test]
    fn places_that_are_none_do_no_harm() {
        let mut document = Document {
            markdown: "äöü".to_owned(),
            unread: vec![unread(1, 1, 3), unread(2, 9, 900), unread(3, 4, 2)],
            ..Document::default()
        };
        document.fill(|page| Some(page.to_string()));
        assert!(document.markdown.contains('ü'), "{}", document.markdown);
    }

    #[test]
    fn a_document_without_text_is_none() {
        let of = |text: &str| Document::of_markdown(text.to_owned());
        assert_eq!(of("| |\n- -\n").finished(false), Err(ExtractError::Empty));
        assert_eq!(of("\n").finished(true), Err(ExtractError::PicturesOnly));
        let pages = Document {
            unread: vec![unread(1, 0, 0)],
            ..Document::default()
        };
        assert!(pages.finished(true).is_ok());
    }

    #[test]
    fn titles_of_programs_are_none() {
        let document = |title: &str| Document {
            title: Some(title.to_owned()),
            language: Some("pt_BR".to_owned()),
            ..Document::of_markdown("# The heading\n".to_owned())
        };
        for program in ["Microsoft Word - a.doc", "report.docx", "Untitled", " \n "] {
            let document = document(program).finished(false).unwrap();
            assert_eq!(document.title.as_deref(), Some("The heading"), "{program}");
            assert_eq!(document.language.as_deref(), Some("pt-BR"));
        }
        let document = document(" A\n real  title ").finished(false).unwrap();
        assert_eq!(document.title.as_deref(), Some("A real title"));
        for none in [
            "",
            "x",
            "english",
            "und",
            "e1",
            "en--US",
            "en-toolongtobeone",
        ] {
            assert_eq!(tag(none), None, "{none}");
        }
    }
}
