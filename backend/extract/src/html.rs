//! Pages of the Web: the whole page, or the article that is on it.

use std::borrow::Cow;

use dom_smoothie::{Config, Readability};
use html_to_markdown_rs::{
    ConversionError, ConversionOptions, HiddenContent, InlineDataMedia, NewlineStyle,
    PreprocessingOptions, WarningKind,
};
use quick_xml::{Reader, escape::escape, events::Event};

use crate::{
    document::Document,
    error::{Bound, ExtractError},
    limits::Bounds,
    markdown,
};

/// Whether a page is read as a whole, or for the article on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// Everything that it shows.
    Whole,
    /// What its visitors come for: without menus, advertisements and the like. Its links count from this address.
    Article(&'a str),
}

/// An article has so many characters at least; what is found shorter is not what the visitors came for.
const SHORTEST_ARTICLE: usize = 200;

/// A page.
pub(crate) fn page(html: &str, part: Part<'_>, bounds: &Bounds) -> Result<Document, ExtractError> {
    let html = if html.trim_start().starts_with("<?xml") {
        of_xml(html)
    } else {
        html.into()
    };
    let html = html.as_ref();
    check(html, bounds)?;
    match part {
        Part::Whole => whole(html, None, bounds),
        Part::Article(url) => match article(html, url, bounds)? {
            Some(article) => Ok(article),
            // A page without an article, such as a list: then all of it is what there is.
            None => whole(html, Some(url), bounds),
        },
    }
}

/// What is written as XML, written as HTML: there `<title/>` begins a title that has no end, and CDATA is no text. As it is where it is
/// not well-formed. Sources: XML 1.0, sections 2.7 and 3.1; HTML, section 13.1.2.
pub(crate) fn of_xml(xml: &str) -> Cow<'_, str> {
    let mut reader = Reader::from_str(xml);
    let settings = reader.config_mut();
    settings.check_end_names = false;
    settings.allow_unmatched_ends = true;
    settings.allow_dangling_amp = true;
    let mut html = String::with_capacity(xml.len());
    loop {
        let begin = place(&reader);
        let event = match reader.read_event() {
            Ok(Event::Eof) => return html.into(),
            Ok(event) => event,
            Err(_) => return xml.into(),
        };
        let written = xml.get(begin..place(&reader)).unwrap_or_default();
        match event {
            Event::Empty(element) if !VOID.contains(&element.name().as_ref()) => {
                let name = element.name();
                html.push_str(written.strip_suffix("/>").unwrap_or(written));
                html.push_str(&format!("></{}>", name.as_ref()));
            }
            Event::CData(text) => html.push_str(&escape(&*text)),
            _ => html.push_str(written),
        }
    }
}

fn place(reader: &Reader<&[u8]>) -> usize {
    usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX)
}

/// A part of another document, which is HTML.
pub(crate) fn fragment(html: &str, bounds: &Bounds) -> Result<String, ExtractError> {
    check(html, bounds)?;
    convert(html, None, bounds).map(|converted| converted.0)
}

fn article(html: &str, url: &str, bounds: &Bounds) -> Result<Option<Document>, ExtractError> {
    let config = Config {
        max_elements_to_parse: bounds.elements,
        char_threshold: SHORTEST_ARTICLE,
        ..Config::default()
    };
    let Ok(mut reader) = Readability::new(html, Some(url), Some(config)) else {
        return Ok(None);
    };
    let article = match reader.parse() {
        Ok(article) => article,
        Err(dom_smoothie::ReadabilityError::TooManyElements(..)) => {
            return Err(ExtractError::too_large(Bound::Elements, bounds.elements));
        }
        Err(_) => return Ok(None),
    };
    if article
        .text_content
        .chars()
        .filter(|c| !c.is_whitespace())
        .count()
        < SHORTEST_ARTICLE
    {
        return Ok(None);
    }
    let (text, _) = convert(&article.content, Some(url), bounds)?;
    Ok(Some(Document {
        title: Some(article.title).filter(|title| !title.trim().is_empty()),
        author: article.byline,
        language: article.lang,
        ..Document::of_markdown(markdown::tidy(&text))
    }))
}

fn whole(html: &str, url: Option<&str>, bounds: &Bounds) -> Result<Document, ExtractError> {
    let (text, metadata) = convert(html, url, bounds)?;
    let described = metadata.document;
    let social = |name: &str| described.open_graph.get(name).cloned();
    Ok(Document {
        title: described.title.clone().or_else(|| social("title")),
        author: described.author.clone(),
        language: described.language.clone(),
        ..Document::of_markdown(markdown::tidy(&text))
    })
}

fn convert(
    html: &str,
    url: Option<&str>,
    bounds: &Bounds,
) -> Result<(String, html_to_markdown_rs::HtmlMetadata), ExtractError> {
    let options = ConversionOptions {
        bullets: "-".to_owned(),
        compact_tables: true,
        br_in_tables: false,
        expand_abbreviations: false,
        skip_images: false,
        inline_data_media: InlineDataMedia::DropElement,
        hidden_content: HiddenContent::Drop,
        newline_style: NewlineStyle::Spaces,
        base_url: url.map(str::to_owned),
        max_depth: Some(bounds.depth.saturating_mul(2)),
        preprocessing: PreprocessingOptions {
            // Of a page in the Web nobody wants the menus; in a file they may be what it is about.
            remove_navigation: url.is_some(),
            remove_forms: false,
            ..PreprocessingOptions::default()
        },
        ..ConversionOptions::default()
    };
    let converted = html_to_markdown_rs::convert(html, options).map_err(|error| match error {
        ConversionError::Panic(why) => ExtractError::failed(why),
        other => ExtractError::damaged(other),
    })?;
    let is_cut = |warning: &html_to_markdown_rs::ProcessingWarning| {
        warning.kind == WarningKind::DepthLimitExceeded
    };
    if converted.warnings.iter().any(is_cut) {
        return Err(ExtractError::too_large(Bound::Depth, bounds.depth));
    }
    let text = converted.content.unwrap_or_default();
    let text = markdown::without_pictures(without_description(&text));
    Ok((text, converted.metadata))
}

/// What the converter puts before the text: the title and the like, which are told beside it.
fn without_description(text: &str) -> &str {
    let rest = text
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("\n---\n"));
    rest.map_or(text, |(_, text)| text)
}

/// Elements that have no end. Source: HTML, section 13.1.2.
const VOID: [&str; 13] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track",
    "wbr",
];

/// Elements that hold characters, and no elements. Source: HTML, section 13.1.2.
const CHARACTERS_ONLY: [&str; 8] = [
    "script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes",
];

/// Elements that end by themselves, or where their neighbour begins: what is open of them says nothing of depth.
const UNCLOSED: [&str; 30] = [
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr", "p", "li", "dt", "dd", "option", "optgroup", "tr", "td", "th", "thead",
    "tbody", "tfoot", "colgroup", "body", "html", "head",
];

/// Elements that end a drawing or a formula when they begin in it, beside those that have no end. Source: HTML, section 13.2.6.5.
const OF_PAGES: [&str; 34] = [
    "b",
    "big",
    "blockquote",
    "center",
    "code",
    "div",
    "dl",
    "em",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "i",
    "listing",
    "menu",
    "nobr",
    "ol",
    "pre",
    "ruby",
    "s",
    "small",
    "span",
    "strong",
    "strike",
    "sub",
    "sup",
    "table",
    "tt",
    "u",
    "ul",
    "var",
    "font",
];

/// Elements of drawings and formulas in which all is as in the page. Source: HTML, section 13.2.6.
const LABELS: [&str; 9] = [
    "foreignobject",
    "desc",
    "title",
    "annotation",
    "mi",
    "mo",
    "mn",
    "ms",
    "mtext",
];

/// Counts the tags of a page: how many there are, and how many are open at once, before anything builds a tree of them.
fn check(html: &str, bounds: &Bounds) -> Result<(), ExtractError> {
    let bytes = html.as_bytes();
    let (mut open, mut elements, mut at) = (0_usize, 0_usize, 0);
    // How many drawings and formulas are open, in which elements may end where they begin; and a label in them that is as the page,
    // until anything begins in it.
    let (mut foreign, mut label) = (0_usize, None);
    let mut tag_end = 0;
    while let Some(next) = memchr::memchr(b'<', &bytes[at..]) {
        at += next + 1;
        let rest = &bytes[at..];
        if rest.starts_with(b"!--") {
            let closes = |end: &usize| {
                let comment = &rest[..*end];
                comment.ends_with(b"--") || comment.ends_with(b"--!")
            };
            let Some(end) = memchr::memchr_iter(b'>', rest).find(closes) else {
                break;
            };
            at += end + 1;
            continue;
        }
        let is_end = rest.first() == Some(&b'/');
        let name = tag_name(&rest[usize::from(is_end)..]);
        if name.is_empty() {
            continue;
        }
        elements += 1;
        if elements > bounds.elements {
            return Err(ExtractError::too_large(Bound::Elements, bounds.elements));
        }
        if tag_end < at {
            let end = memchr::memchr(b'>', rest);
            tag_end = end.map_or(bytes.len(), |end| at + end);
        }
        if !is_end && foreign == 0 && CHARACTERS_ONLY.contains(&name.as_str()) {
            at = end_of(&name, bytes, tag_end);
            continue;
        }
        if is_end {
            if let Some((_, around)) = label.take_if(|(begun, _)| *begun == name) {
                foreign = around;
            }
        } else {
            label = None;
            if LABELS.contains(&name.as_str()) && foreign > 0 {
                label = Some((name.clone(), std::mem::take(&mut foreign)));
            } else if UNCLOSED.contains(&name.as_str()) || OF_PAGES.contains(&name.as_str()) {
                // The page goes on, and its drawing is over.
                foreign = 0;
            }
        }
        if UNCLOSED.contains(&name.as_str()) {
            continue;
        }
        let is_foreign = matches!(name.as_str(), "svg" | "math");
        let is_closed = (foreign > 0 || is_foreign) && is_closed(&bytes[at..tag_end]);
        if is_end {
            open = open.saturating_sub(1);
            foreign = foreign.saturating_sub(usize::from(is_foreign));
        } else if !is_closed {
            open += 1;
            foreign += usize::from(is_foreign);
        }
        // Sloppy pages leave elements open, so this is only where nobody writes them like that.
        if open > bounds.depth.saturating_mul(UNCLOSED_ALLOWANCE) {
            return Err(ExtractError::too_large(Bound::Depth, bounds.depth));
        }
    }
    Ok(())
}

/// Whether a tag of a drawing ends with a slash that belongs to no value.
fn is_closed(tag: &[u8]) -> bool {
    let Some(tag) = tag.strip_suffix(b"/") else {
        return false;
    };
    let last = tag.iter().rposition(u8::is_ascii_whitespace);
    let (before, last) = tag.split_at(last.map_or(0, |blank| blank + 1));
    let value = match memchr::memchr(b'=', last) {
        Some(sign) => &last[sign + 1..],
        None if before.trim_ascii_end().ends_with(b"=") => last,
        None => return true,
    };
    // A slash behind a value without quotes is the end of that value.
    matches!(value, [first @ (b'"' | b'\''), .., end] if first == end) || last.is_empty()
}

/// The name of a tag, or how it begins.
fn tag_name(tag: &[u8]) -> String {
    let is_of_name = |byte: &&u8| byte.is_ascii_alphanumeric();
    let name = tag.iter().take(16).take_while(is_of_name);
    name.map(|byte| char::from(byte.to_ascii_lowercase()))
        .collect()
}

/// Where the tag is that ends an element which holds characters only.
fn end_of(name: &str, bytes: &[u8], from: usize) -> usize {
    let rest = &bytes[from..];
    let end = memchr::memmem::find_iter(rest, b"</").find(|end| tag_name(&rest[end + 2..]) == name);
    // The tag itself is none that opens anything.
    end.map_or(bytes.len(), |end| from + end + 1)
}

/// How many times the depth may be open without being nested.
const UNCLOSED_ALLOWANCE: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = r#"<!DOCTYPE html><html lang="de-AT"><head><title>The title | The site</title>
        <meta name="author" content="Ann Author"></head><body>
        <nav><a href="/">Home</a> <a href="/all">All articles</a></nav>
        <main><article><h1>The title</h1><p>A first paragraph that is long enough to be the begin of an article, with
        <a href="more.html">a link</a>, some commas, and <b>marks</b>.</p>
        <p>A second one, which goes on about the same, so that whoever looks for the article of this page finds it here.</p>
        <p>And a third, since articles have some paragraphs, each of which has commas, words, and an end. What stands around
        them, such as menus, is the same on all pages, and nobody who asks about the article wants to be told of it.</p>
        <img src="a.png" alt="What the picture shows"></article></main>
        <footer>Imprint and privacy</footer><script>alert("no")</script></body></html>"#;

    fn read(part: Part<'_>) -> Document {
        page(PAGE, part, &Bounds::default()).unwrap()
    }

    #[test]
    fn a_page_is_read_as_a_whole() {
        let whole = read(Part::Whole);
        for text in [
            "Home",
            "# The title",
            "[a link](more.html)",
            "**marks**",
            "What the picture shows",
            "Imprint",
        ] {
            assert!(whole.markdown.contains(text), "{text}: {}", whole.markdown);
        }
        assert!(!whole.markdown.contains("alert") && !whole.markdown.contains("a.png"));
        assert!(!whole.markdown.starts_with("---"));
        assert_eq!(whole.title.as_deref(), Some("The title | The site"));
        assert_eq!(whole.author.as_deref(), Some("Ann Author"));
        assert_eq!(whole.language.as_deref(), Some("de-AT"));
    }

    #[test]
    fn what_ends_where_it_begins_is_not_nested() {
        let check = |html: &str| check(html, &Bounds::default());
        let depth = Err(ExtractError::too_large(Bound::Depth, 256));
        let paths = "<path d='M0 0'/>".repeat(5_000);
        assert_eq!(check(&format!("<svg>{paths}</svg>")), Ok(()));
        assert_eq!(
            check(&"<svg><g><path/></g></svg><svg/>".repeat(5_000)),
            Ok(())
        );
        assert_eq!(check(&format!("<svg></svg>{paths}")), depth);
        let icon = "<svg><title>An icon</title><path d=\"M0 0\"/><path /></svg>";
        assert_eq!(check(&icon.repeat(5_000)), Ok(()));
        // What a parser takes for a part of the page, and for a value.
        for around in ["<svg><p>", "<svg><title><p></title>"] {
            assert_eq!(check(&format!("{around}{paths}")), depth, "{around}");
        }
        for tag in ["<g a=b/>", "<g a= b/>", "<g a=b\"/>"] {
            assert_eq!(
                check(&format!("<svg>{}", tag.repeat(5_000))),
                depth,
                "{tag}"
            );
        }
        let script = "if(i<n&&n<m)a<b;".repeat(5_000);
        for name in ["script", "STYLE", "title"] {
            let html = format!("<{name} src=a>{script}</x></{name} ><p>text");
            assert_eq!(check(&html), Ok(()), "{name}");
        }
        for comment in ["<!-->-->", "<!--->", "<!--a--!>"] {
            let html = format!("{comment}{}", "<b>".repeat(5_000));
            assert_eq!(check(&html), depth, "{comment}");
        }
        assert_eq!(check(&format!("<!--{}-->", "<b>".repeat(5_000))), Ok(()));
        assert_eq!(check(&format!("<script></scripts>{script}")), Ok(()));
        assert_eq!(
            check(&format!("<script></script>{}", "<b>".repeat(5_000))),
            depth
        );
    }

    #[test]
    fn xml_is_written_as_html() {
        let xml = "<?xml version='1.0'?><html><head><title/><script src='a'/><link href='b'/></head><body><p/>a &nbsp;<br/><![CDATA[b < c]]> & d</i></body></html>";
        assert_eq!(
            of_xml(xml),
            "<?xml version='1.0'?><html><head><title></title><script src='a'></script><link href='b'/></head><body><p></p>a &nbsp;<br/>b &lt; c & d</i></body></html>"
        );
        assert_eq!(of_xml("<a/> <!-- open"), "<a/> <!-- open");
        let read = page(xml, Part::Whole, &Bounds::default()).unwrap();
        assert!(read.markdown.contains("b < c"), "{}", read.markdown);
    }

    #[test]
    fn the_article_of_a_page_is_read_alone() {
        let article = read(Part::Article("https://example.com/blog/one.html"));
        assert!(
            article.markdown.contains("A second one"),
            "{}",
            article.markdown
        );
        assert!(
            article
                .markdown
                .contains("(https://example.com/blog/more.html)"),
            "{}",
            article.markdown
        );
        for left_out in ["All articles", "Imprint", "alert"] {
            assert!(!article.markdown.contains(left_out), "{}", article.markdown);
        }
        assert!(
            article
                .title
                .is_some_and(|title| title.starts_with("The title"))
        );
        // A page that is no article is read as a whole.
        let list = "<ul><li><a href=a>One</a><li><a href=b>Two</a></ul>";
        let list = page(
            list,
            Part::Article("https://example.com/"),
            &Bounds::default(),
        )
        .unwrap();
        assert!(
            list.markdown.contains("[Two](https://example.com/b)"),
            "{}",
            list.markdown
        );
    }
}
