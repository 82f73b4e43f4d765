//! The final contents of a base as one ZIP file.

use std::collections::VecDeque;

use bytes::Bytes;
use colloquy_base::clock::rfc3339;
use colloquy_blobs::{Blobs, BundleError};
use futures_util::Stream;
use serde_json::json;

use super::{content::Variant, document::Described};

/// What is known of each document, as a file of the bundle.
const INFO: &str = "documents_info.json";

/// A bundle as it comes.
pub(crate) fn stream(
    blobs: Blobs,
    documents: &[Described],
) -> impl Stream<Item = Result<Bytes, BundleError>> + use<> {
    let final_of = |found: &Described| {
        let content = found.content(Variant::Rewritten)?;
        let name = format!("{}.md", found.document.id);
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
            "file": name,
        });
        Some((info, (name, content.blob.clone())))
    };
    let (info, waiting): (Vec<_>, VecDeque<_>) = documents.iter().filter_map(final_of).unzip();
    let info = json!({ "documents": info }).to_string();
    colloquy_blobs::bundle(blobs, (INFO, info), waiting)
}
