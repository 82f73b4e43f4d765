//! What documents are called where they are named to a visitor.

use colloquy_knowledge::{
    Passage,
    prose::{BlockKind, blocks},
    terms,
};

use super::{answer::asks, reading};

/// A longer title is cut where it is named, in bytes.
pub(super) const MAX_TOPIC_BYTES: usize = 200;

/// The title of a passage's document as it is said. The name of a file is nothing to say: the document's own title stands for it, if
/// the passage stands below that, or begins with it. Of a long one this is the beginning.
pub(super) fn spoken_title(passage: &Passage, text: &str) -> String {
    let title = passage.title.trim();
    if file_stem(title).is_none() {
        return title.replace('_', " ");
    }
    if let Some(highest) = passage.headings.first() {
        return match asks(highest) {
            true => String::new(),
            false => named(highest),
        };
    }
    let first = blocks(text).next();
    let is_title = |source: &str| source.starts_with("# ");
    let is_heading = |kind: &BlockKind<'_>| matches!(kind, BlockKind::Heading { .. });
    let heading = first.filter(|it| is_heading(&it.kind) && is_title(it.source));
    heading.map(|block| named(&block.text)).unwrap_or_default()
}

/// A heading as a title, and none for the empty one that stands for those which were left out.
fn named(heading: &str) -> String {
    let beginning = reading::beginning(heading, MAX_TOPIC_BYTES);
    beginning.trim_end().to_owned()
}

/// The name of a file without its ending, if the text is such a name.
pub(super) fn file_stem(title: &str) -> Option<&str> {
    let (stem, ending) = title.rsplit_once('.')?;
    let is_ending = (1..=5).contains(&ending.len())
        && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && ending.bytes().any(|byte| byte.is_ascii_alphabetic());
    (is_ending && !terms(stem).is_empty()).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_title_of_a_file_is_its_highest_heading() {
        let said = |title: &str, headings: &[&str], text: &str| {
            let passage = Passage {
                title: title.to_owned(),
                headings: headings.iter().map(|it| (*it).to_owned()).collect(),
                ..Passage::default()
            };
            spoken_title(&passage, text)
        };
        assert_eq!(said("Our_zoo", &["Prices"], ""), "Our zoo");
        assert_eq!(said("zoo.md", &["The zoo", "Prices"], ""), "The zoo");
        assert_eq!(said("zoo.md", &[], "# The zoo\n\nIt is open."), "The zoo");
        assert_eq!(said("zoo.md", &["Is it open?"], ""), "");
        // The highest one was left out, so the next one is not that of the document.
        assert_eq!(said("zoo.md", &["", "Prices"], "# The zoo\n\nNine."), "");
        let long = "äöü ".repeat(100);
        for title in [
            said("zoo.md", &[long.as_str()], ""),
            said("zoo.md", &[], &format!("# {long}\n\nNine.")),
        ] {
            assert!((190..=MAX_TOPIC_BYTES).contains(&title.len()), "{title}");
            assert!(long.starts_with(&title) && !title.ends_with(' '), "{title}");
        }
    }
}
