//! What documents are called where they are named to a visitor.

use colloquy_knowledge::{
    Passage,
    prose::{BlockKind, blocks},
    terms,
};

use super::answer::asks;

/// The title of a passage's document as it is said. The name of a file is nothing to say: the document's own title stands for it, if
/// the passage stands below that, or begins with it.
pub(super) fn spoken_title(passage: &Passage, text: &str) -> String {
    let title = passage.title.trim();
    if file_stem(title).is_none() {
        return title.replace('_', " ");
    }
    if let Some(highest) = passage.headings.first() {
        return match asks(highest) {
            true => String::new(),
            false => highest.clone(),
        };
    }
    let first = blocks(text).next();
    let is_title = |source: &str| source.starts_with("# ");
    let is_heading = |kind: &BlockKind<'_>| matches!(kind, BlockKind::Heading { .. });
    let heading = first.filter(|it| is_heading(&it.kind) && is_title(it.source));
    heading.map(|block| block.text).unwrap_or_default()
}

/// The name of a file without its ending, if the text is such a name.
pub(super) fn file_stem(title: &str) -> Option<&str> {
    let (stem, ending) = title.rsplit_once('.')?;
    let is_ending = (1..=5).contains(&ending.len())
        && ending.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && ending.bytes().any(|byte| byte.is_ascii_alphabetic());
    (is_ending && !terms(stem).is_empty()).then_some(stem)
}
