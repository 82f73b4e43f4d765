//! Electronic books: the files of their spine, in its order.
//!
//! Sources: EPUB 3.3, sections 4.2 (container), 5 (package document); EPUB OCF 3.2, section 3.5.2 for `encryption.xml`.

use std::collections::HashMap;

use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};

use crate::{
    document::{Document, UnreadPage, UnreadReason},
    error::{Bound, ExtractError},
    html,
    limits::Bounds,
    markdown,
    office::{attribute, element_text},
    package::{Package, resolve},
};

/// Ways to hide a font from others, which lock nobody out.
const FONT_METHODS: [&str; 2] = [
    "http://www.idpf.org/2008/embedding",
    "http://ns.adobe.com/pdf/enc#RC",
];

/// How many missing files are named at most.
const MOST_MISSING: usize = 100;

/// A book.
///
/// Files that its spine names and it does not have are told as unread pages; nobody can look at them.
pub(crate) fn book(bytes: &[u8], bounds: &Bounds) -> Result<(Document, bool), ExtractError> {
    let mut package = Package::open(bytes, bounds)?;
    if let Some(encryption) = package.read_xml("META-INF/encryption.xml")?
        && is_locked(&encryption)
    {
        return Err(ExtractError::Encrypted);
    }
    let container = package.read_xml("META-INF/container.xml")?;
    let container =
        container.ok_or_else(|| ExtractError::damaged("META-INF/container.xml is missing"))?;
    let place = attribute(&container, "rootfile", "full-path")
        .ok_or_else(|| ExtractError::damaged("no package document is named"))?;
    let Some(described) = package.read_xml(&place)? else {
        return Err(ExtractError::damaged(format!("{place} is missing")));
    };
    let mut text = String::new();
    let mut missing = vec![];
    for (number, chapter) in (1..).zip(spine(&described)) {
        let Some(bytes) = package.read(&resolve(&place, &chapter.file))? else {
            // A chapter that is not there is no reason to read none.
            missing.push(UnreadPage {
                page: number,
                begin: text.len(),
                end: text.len(),
                reason: UnreadReason::Unreadable,
            });
            continue;
        };
        let mut html = crate::characters::decode(&bytes, None);
        if chapter.is_xml {
            html = html::of_xml(&html).into();
        }
        let chapter = html::fragment(&html, bounds)?;
        let chapter = chapter.trim();
        if chapter.is_empty() {
            continue;
        }
        if text.len() + chapter.len() > bounds.markdown_bytes {
            return Err(ExtractError::too_large(
                Bound::MarkdownBytes,
                bounds.markdown_bytes,
            ));
        }
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        text.push_str(chapter);
    }
    if text.is_empty() && !missing.is_empty() {
        return Err(ExtractError::damaged("files of its spine are missing"));
    }
    missing.truncate(MOST_MISSING);
    let document = Document {
        unread: missing,
        title: element_text(&described, "title"),
        author: element_text(&described, "creator"),
        language: element_text(&described, "language"),
        ..Document::of_markdown(markdown::tidy(&text))
    };
    Ok((document, package.has_pictures()))
}

/// A file of the spine.
#[derive(Debug, PartialEq, Eq)]
struct Chapter {
    file: String,
    /// Whether it is written as XML, and not as HTML.
    is_xml: bool,
}

/// Whether anything but fonts is encrypted.
fn is_locked(encryption: &str) -> bool {
    let mut reader = Reader::from_str(encryption);
    loop {
        match reader.read_event() {
            Ok(Event::Start(start) | Event::Empty(start))
                if start.local_name().as_ref() == "EncryptionMethod" =>
            {
                let method = value(&start, "Algorithm").unwrap_or_default();
                if !FONT_METHODS.contains(&method.as_str()) {
                    return true;
                }
            }
            Ok(Event::Eof) | Err(_) => return false,
            Ok(_) => {}
        }
    }
}

/// The files of a book, in the order in which they are read.
fn spine(described: &str) -> Vec<Chapter> {
    let mut reader = Reader::from_str(described);
    let mut files = HashMap::new();
    let mut order = vec![];
    while let Ok(event) = reader.read_event() {
        match event {
            Event::Start(start) | Event::Empty(start) => match start.local_name().as_ref() {
                "item" => {
                    let (id, file) = (value(&start, "id"), value(&start, "href"));
                    let kind = value(&start, "media-type").unwrap_or_default();
                    // The contents of the book are also a chapter of it, which says nothing that the chapters do not say.
                    let is_contents = value(&start, "properties")
                        .is_some_and(|all| all.split_whitespace().any(|one| one == "nav"));
                    if let (Some(id), Some(file), true, false) =
                        (id, file, kind.contains("html"), is_contents)
                    {
                        let is_xml = kind.trim() == "application/xhtml+xml";
                        files.insert(id, Chapter { file, is_xml });
                    }
                }
                "itemref" => order.extend(value(&start, "idref")),
                _ => {}
            },
            Event::Eof => break,
            _ => {}
        }
    }
    // A file is read once, however often it is named.
    order
        .into_iter()
        .filter_map(|id| files.remove(&id))
        .collect()
}

fn value(start: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = start
        .attributes()
        .flatten()
        .find(|a| a.key.as_ref() == name)?;
    let text = found.value;
    quick_xml::escape::unescape(&text)
        .ok()
        .map(|text| text.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_in_the_order_of_the_spine() {
        let described = r#"<package><manifest>
            <item id="n" href="nav.xhtml" properties="nav" media-type="application/xhtml+xml"/>
            <item id="b" href="b%20c.xhtml" media-type="application/xhtml+xml"/>
            <item id="a" href="a.xhtml?x=1&amp;y#z" media-type="application/xhtml+xml"/>
            <item id="p" href="p.png" media-type="image/png"/>
            </manifest><spine><itemref idref="a"/><itemref idref="b"/><itemref idref="a"/><itemref idref="n"/><itemref idref="p"/></spine></package>"#;
        let chapters = spine(described);
        assert!(chapters.iter().all(|chapter| chapter.is_xml));
        let files: Vec<&str> = chapters.iter().map(|one| one.file.as_str()).collect();
        assert_eq!(files, ["a.xhtml?x=1&y#z", "b%20c.xhtml"]);
        assert_eq!(resolve("OEBPS/content.opf", files[0]), "OEBPS/a.xhtml");
        assert_eq!(resolve("OEBPS/content.opf", files[1]), "OEBPS/b c.xhtml");
        assert_eq!(resolve("content.opf", "../../x/./y"), "x/y");
    }

    #[test]
    fn hidden_fonts_lock_nobody_out() {
        let with = |method: &str| format!("<e:EncryptionMethod Algorithm=\"{method}\"/>");
        assert!(!is_locked(&with(FONT_METHODS[0])));
        assert!(is_locked(&format!(
            "{}{}",
            with(FONT_METHODS[1]),
            with("http://www.w3.org/2001/04/xmlenc#aes128-cbc")
        )));
    }
}
