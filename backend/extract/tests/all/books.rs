//! Electronic books: chapters that are written as XML, and those that are not there.

use colloquy_extract::{Bounds, ExtractError, Format, Options, UnreadReason, extract, page_images};

use super::made::{epub, epub_of};

fn chapter(head: &str, body: &str) -> String {
    format!(
        r#"<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head>{head}</head><body>{body}<p>The end of it.</p></body></html>"#
    )
}

#[test]
fn elements_that_end_where_they_begin_end_there() {
    let named = "<title>A</title>";
    for (head, body) in [
        ("<title/>", ""),
        ("<title/><script src=\"a.js\"/>", ""),
        (named, "<script type='text/javascript' src='a.js' />"),
        (named, "<style/>"),
        (named, "<iframe src='a'/>"),
        (named, "<form><textarea name='a'/></form>"),
        (named, "<p><a id='page1'/><span/>Words</p>"),
        (
            named,
            "<script>//<![CDATA[\nif (a</script>) b();\n//]]></script>",
        ),
    ] {
        let book = epub(&chapter(head, body), &[]);
        let read = extract(&book, Format::Epub, &Options::default());
        let text = read.unwrap().markdown;
        assert!(text.ends_with("The end of it.\n"), "{head} {body}: {text}");
        assert!(!text.contains("b()"), "{text}");
    }
}

#[test]
fn chapters_that_are_missing_are_told() {
    let text = chapter("<title>A</title>", "");
    let book = epub_of(
        &["a", "b", "c", "d"],
        &[
            ("OEBPS/a.xhtml", text.as_bytes()),
            ("OEBPS/c.xhtml", text.as_bytes()),
        ],
    );
    let document = extract(&book, Format::Epub, &Options::default()).unwrap();
    assert_eq!(document.markdown, "The end of it.\n\nThe end of it.\n");
    let unread = document.unread.iter();
    let unread: Vec<_> = unread.map(|unread| (unread.page, unread.reason)).collect();
    let expected = [2, 4].map(|page| (page, UnreadReason::Unreadable));
    assert_eq!(unread, expected);
    // They cannot be looked at either.
    let mut images = 0;
    let shown = page_images(&book, Format::Epub, &[2, 4], &Bounds::default(), |_| {
        images += 1;
    });
    assert_eq!((shown, images), (Ok(()), 0));
    let mut filled = document.clone();
    filled.fill(|_| None);
    assert_eq!(filled.markdown, document.markdown);

    let empty = epub_of(&["a", "b"], &[]);
    let read = extract(&empty, Format::Epub, &Options::default());
    assert!(matches!(read, Err(ExtractError::Damaged(_))), "{read:?}");
}
