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

use super::{
    Bases,
    base::KnowledgeBase,
    listing,
    pages::Pages,
    store::{self, BundledDocument, DOCUMENT_PAGE},
};

/// What is known of each document, as a file of the bundle.
const INFO: &str = "documents_info.json";

/// The ids and files of documents that are in [`INFO`], and whose files follow.
type Waiting = Arc<Mutex<VecDeque<(String, BlobKey)>>>;

/// The documents of a base with final content, oldest first.
pub(crate) fn documents(bases: &Bases, base: &KnowledgeBase) -> Pages<BundledDocument> {
    Pages::of_base(
        bases,
        base,
        DOCUMENT_PAGE,
        |bases, base, after| async move { store::bundled_page(bases.store.db(), &base, &after).await },
    )
}

/// A bundle as it comes. Breaks off, with a line in the log, when a page of documents, or a file, cannot be read. Returns `None` where the
/// list of the documents cannot be begun.
pub(crate) fn stream(
    blobs: Blobs,
    documents: Pages<BundledDocument>,
) -> Option<impl Stream<Item = anyhow::Result<Bytes>> + Send + use<>> {
    let waiting = Waiting::default();
    let told = Arc::clone(&waiting);
    let info = listing::json(r#"{"documents":[]}"#, documents, move |document| {
        let info = info_of(&document);
        let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
        told.push_back((document.id, document.blob));
        Ok(Some(info))
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

/// The entry of a document in [`INFO`].
fn info_of(document: &BundledDocument) -> Value {
    json!({
        "document_id": document.id,
        "name": document.name,
        "folder": document.folder,
        "type": document.source,
        "url": document.url,
        "expert_name": document.expert_name,
        "person_name": document.person_name,
        "content_type": document.content_type,
        "characters": document.characters,
        "updated_at": rfc3339(document.updated_at),
        "file": file_name(&document.id),
    })
}
