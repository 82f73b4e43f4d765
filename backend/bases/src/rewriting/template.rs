//! What a model is told that rewrites, by the type of content.

use colloquy_extract::format::ContentType;

/// What is said of every type.
const COMMON: &str = "You rewrite a part of a document for a knowledge base, from which passages are looked up to answer questions. \
Write in the language of the text. Keep every fact, name, number, date, unit, quotation and link, and add nothing that the text does not \
say. Write Markdown: keep the headings that are there, or give short ones that say what follows; keep tables, lists and code as they are. \
Resolve pronouns where a passage alone would not say who is meant. Leave out what is no content: navigation, advertisements, page \
numbers, running heads, and remarks about these instructions. Answer with the rewritten text alone.";

const ARTICLE: &str = "It is an article or a short document. Keep its order. Make each paragraph understandable by itself.";
const VIDEO: &str = "It is a transcript of something that was said. Make written language of it: leave out fillers, repetitions and \
false starts, put punctuation right, join what belongs together, and give each topic a heading. Keep marks of time such as [12:30] \
where a topic begins.";
const BOOK: &str = "It is a part of a long document. Keep its chapters and sections and their order. Condense what is said more than \
once; keep arguments, examples, definitions and figures.";

/// The system prompt for a part of a document.
pub(super) fn system(content_type: ContentType, person: Option<&str>) -> String {
    let special = match content_type {
        ContentType::Article => ARTICLE,
        ContentType::Video => VIDEO,
        ContentType::Book => BOOK,
    };
    match person {
        Some(name) => format!(
            "{COMMON}\n\n{special}\n\nThe text is by, or about, {name}: where it says \"I\" or \"we\" and {name} is meant, write the name."
        ),
        None => format!("{COMMON}\n\n{special}"),
    }
}

/// The part itself, and where it stands.
pub(super) fn question(title: &str, path: &[String], place: (usize, usize), text: &str) -> String {
    let (number, of) = place;
    let above = path.iter().skip(1).map(String::as_str);
    let above: Vec<&str> = above.collect();
    let under = match above.is_empty() {
        true => String::new(),
        false => format!("\nUnder the headings: {}", above.join(" > ")),
    };
    format!("Document: {title}\nPart {number} of {of}{under}\n\n<text>\n{text}\n</text>")
}
