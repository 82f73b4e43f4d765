//! The final contents of a base as one ZIP file.

use std::{
    collections::VecDeque,
    iter,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use colloquy_base::clock::rfc3339;
use colloquy_blobs::{BlobKey, Blobs};
use futures_util::{Stream, StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Value, json};

use super::{content::Variant, document::Described, listing, pages::Pages};

/// What is known of each document, as a file of the bundle.
const INFO: &str = "documents_info.json";

/// The ids of the documents that were told of, and their files, which follow.
type Waiting = Arc<Mutex<VecDeque<(String, BlobKey)>>>;

/// A bundle as it comes. Breaks off, with a line in the log, when a page of documents, or a file, cannot be read. Returns `None` where the
/// list of the documents cannot be begun.
pub(crate) fn stream(
    blobs: Blobs,
    documents: Pages<Described>,
) -> Option<impl Stream<Item = anyhow::Result<Bytes>> + Send + use<>> {
    let waiting = Waiting::default();
    let told = Arc::clone(&waiting);
    let info = listing::json(r#"{"documents":[]}"#, documents, move |found| {
        Ok(info_of(&found).map(|(info, blob)| {
            let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
            told.push_back((found.document.id, blob));
            info
        }))
    })?;
    let next = move || {
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let (id, blob) = waiting.pop_front()?;
        Some((file_name(&id), blob))
    };
    let files = stream::iter(iter::from_fn(next)).map(Ok::<_, anyhow::Error>);
    let bundle = colloquy_blobs::streamed_bundle(blobs, (INFO, info), files);
    let bundle = bundle.map_err(anyhow::Error::from);
    Some(bundle.inspect_err(listing::log_break_off))
}

fn file_name(id: &str) -> String {
    format!("{id}.md")
}

/// What is told of a document with final content, and the file of that.
fn info_of(found: &Described) -> Option<(Value, BlobKey)> {
    let content = found.content(Variant::Rewritten)?;
    let info = json!({
        "document_id": found.document.id,
        "name": found.document.name,
        "folder": found.document.folder,
        "type": found.document.source,
        "url": found.document.url,
        "expert_name": found.document.expert_name,
        "person_name": found.document.person_name,
        "content_type": found.document.content_type,
        "characters": content.characters,
        "updated_at": rfc3339(content.updated_at),
        "file": file_name(&found.document.id),
    });
    Some((info, content.blob.clone()))
}
