//! What a client of `/v3/responses` is shown of a search in the character's knowledge: two status items and a
//! `file_search_call` between them (interface document 1, "Knowledge visibility items").

use serde_json::{Value, json};

use super::{Object, fields::str_of};

/// The longest preview of a source, in characters.
const PREVIEW_CHARS: usize = 200;
/// How the ids of the three items begin.
const LOADING: &str = "rs_svc_rag_loading_";
const SEARCH: &str = "fs_svc_";
const FOUND: &str = "rs_svc_rag_found_";

/// A search that a client may see.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VisibleRetrieval {
    /// What was looked for.
    pub queries: Vec<String>,
    /// What was found, best first; empty also when the search failed.
    pub results: Vec<VisibleResult>,
}

/// A source that was found.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VisibleResult {
    /// The stable public identifier.
    pub file_id: String,
    /// The title.
    pub filename: String,
    /// The relevance, when there is one.
    pub score: Option<f64>,
    /// The text that was found, in full; only a preview of it is shown.
    pub text: String,
    /// What else may be shown, such as `chunk_index` and `retrievers`: strings, numbers and booleans.
    pub attributes: Object,
}

impl VisibleResult {
    /// The part of the text that may be shown: its first 200 characters, with white space collapsed.
    #[must_use]
    pub fn preview(&self) -> String {
        preview(&self.text)
    }
}

/// The three items of a search, done.
pub(super) struct VisibilityItems {
    pub(super) loading: Value,
    pub(super) search: Value,
    pub(super) found: Value,
}

impl VisibilityItems {
    /// The items, with ids that end in `seed`.
    pub(super) fn new(retrieval: &VisibleRetrieval, seed: &str) -> Self {
        let results = retrieval.results.iter().map(result).collect::<Vec<_>>();
        let found = format!("Found {} relevant documents, thinking...", results.len());
        Self {
            loading: status(
                format!("{LOADING}{seed}"),
                "Looking through the knowledge base...",
            ),
            search: json!({
                "id": format!("{SEARCH}{seed}"),
                "type": "file_search_call",
                "status": "completed",
                "queries": retrieval.queries,
                "results": results,
            }),
            found: status(format!("{FOUND}{seed}"), &found),
        }
    }
}

fn status(id: String, text: &str) -> Value {
    json!({
        "id": id,
        "type": "reasoning",
        "status": "completed",
        "summary": [{"type": "summary_text", "text": text}],
    })
}

fn result(result: &VisibleResult) -> Value {
    json!({
        "file_id": result.file_id,
        "filename": result.filename,
        "score": result.score,
        "text": result.preview(),
        "attributes": result.attributes,
    })
}

/// The beginning of a text, with its white space collapsed.
fn preview(text: &str) -> String {
    let mut preview = String::new();
    let mut left = PREVIEW_CHARS;
    for word in text.split_whitespace() {
        if !preview.is_empty() {
            // A space is worth its place only before another character.
            if left < 2 {
                break;
            }
            preview.push(' ');
            left -= 1;
        }
        for character in word.chars().take(left) {
            preview.push(character);
            left -= 1;
        }
    }
    preview
}

/// The items of a response that a later request goes on from: all but those about a search.
pub fn output_items(response: &Value) -> Vec<Value> {
    let output = response.get("output").and_then(Value::as_array);
    let items = output.into_iter().flatten();
    items
        .filter(|item| !is_visibility_item(item))
        .cloned()
        .collect()
}

/// Whether an item is one of ours.
pub(super) fn is_visibility_item(item: &Value) -> bool {
    item.as_object()
        .and_then(|item| str_of(item, "id"))
        .is_some_and(|id| {
            let mut seeds = [LOADING, SEARCH, FOUND]
                .map(|prefix| id.strip_prefix(prefix))
                .into_iter();
            // A model may begin its ids like this, and what makes those unique has more words.
            seeds.any(|seed| seed.is_some_and(|seed| !seed.contains('_')))
        })
}
