//! Changes as events.

use colloquy_accounts::Scope;
use serde::Serialize;
use utoipa::ToSchema;

use crate::{hub::Written, store::Change};

/// The data of an event: the resource that changed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangedResource<'a> {
    /// The id of the resource in its own interface; the name of a base, folder, character or voice.
    id: &'a str,
    /// The knowledge base of a document, folder, base, budget, question or evaluation; null for other resources.
    base: Option<&'a str>,
    /// True if the resource was deleted.
    deleted: bool,
}

/// Returns a change as an event; `None` for a kind that a newer version of the server records.
pub(crate) fn written(change: &Change) -> Option<Written> {
    let data = ChangedResource {
        id: &change.id,
        base: Some(change.base.as_str()).filter(|base| !base.is_empty()),
        deleted: change.gone,
    };
    let (scope, data) = (scope(&change.kind)?, serde_json::to_string(&data).ok()?);
    Some(Written {
        seq: change.seq,
        scope,
        text: format!("event: {}\ndata: {data}\n\n", change.kind),
    })
}

/// Returns the scope that a key needs to learn of a kind of resource.
fn scope(kind: &str) -> Option<Scope> {
    match kind {
        "base" | "folder" | "document" | "budget" | "question" | "evaluation" => {
            Some(Scope::Knowledge)
        }
        "call" | "call_lines" | "call_quality" => Some(Scope::Calls),
        "delivery" => Some(Scope::Webhooks),
        "transcript" => Some(Scope::Transcripts),
        "analysis" => Some(Scope::Analyses),
        "completion" => Some(Scope::Messaging),
        "character" => Some(Scope::Characters),
        "key" => Some(Scope::Keys),
        "voice" => Some(Scope::Voices),
        _ => None,
    }
}
