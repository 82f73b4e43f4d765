//! How far the documents of a base are embedded.

use serde::Serialize;
use utoipa::ToSchema;

use super::Profile;
use crate::{
    Bases,
    base::KnowledgeBase,
    document::Step,
    error::BaseError,
    pages::Pages,
    store::{self, EmbeddedDocument, SCAN_PAGE},
};

/// How the last embedding ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UpdateStatus {
    /// Documents wait or are being embedded.
    InProgress,
    /// It is done.
    Success,
    /// It failed.
    Fail,
}

/// How far the documents of a base are embedded. Times are milliseconds since 1970.
#[derive(Debug, Clone, Default)]
pub(crate) struct EmbeddingInfo {
    pub(crate) base: String,
    /// What the base is searched by, once something was embedded.
    pub(crate) profile: Option<Profile>,
    /// Documents with final content.
    pub(crate) eligible: usize,
    pub(crate) pending: usize,
    pub(crate) failed: usize,
    /// Documents that can be found.
    pub(crate) embedded: usize,
    /// The chunks of these.
    pub(crate) chunks: Option<i64>,
    pub(crate) status: Option<UpdateStatus>,
    pub(crate) updated_at: Option<i64>,
    pub(crate) embedded_at: Option<i64>,
    pub(crate) last_error: Option<String>,
}

/// The embedding of all documents of a base, oldest first.
pub(crate) fn embedded(bases: &Bases, base: &KnowledgeBase) -> Pages<EmbeddedDocument> {
    Pages::of_base(bases, base, SCAN_PAGE, |bases, base, after| async move {
        store::embedded_page(bases.store.db(), &base, &after).await
    })
}

/// How far the documents of a base are embedded.
pub(crate) async fn info(bases: &Bases, base: &KnowledgeBase) -> Result<EmbeddingInfo, BaseError> {
    let mut summary = Summary::default();
    let mut pages = embedded(bases, base);
    while let Some(page) = pages.next().await? {
        for document in page {
            summary.add(document);
        }
    }
    let db = bases.store.db();
    let profile = match store::profile_of(db, &base.id).await? {
        Some(id) => store::load_profile(db, id).await?,
        None => None,
    };
    Ok(EmbeddingInfo {
        base: base.id.clone(),
        profile,
        ..summary.info()
    })
}

/// What is known of the documents that were looked at.
#[derive(Debug, Default)]
struct Summary {
    info: EmbeddingInfo,
    failed_at: Option<i64>,
}

impl Summary {
    fn add(&mut self, document: EmbeddedDocument) {
        let info = &mut self.info;
        info.eligible += usize::from(document.is_final);
        match document.embedding {
            Step::Queued | Step::Running | Step::Blocked => info.pending += 1,
            Step::Failed => info.failed += 1,
            Step::None | Step::Done => {}
        }
        if let Some(chunks) = document.chunk_count {
            info.embedded += 1;
            *info.chunks.get_or_insert(0) += chunks;
        }
        info.embedded_at = info.embedded_at.max(document.embedded_at);
        if document.embedding_at > info.updated_at {
            info.updated_at = document.embedding_at;
            info.status = match document.embedding {
                Step::Failed => Some(UpdateStatus::Fail),
                _ => Some(UpdateStatus::Success),
            };
        }
        if document.embedding_error.is_some() && document.embedding_at > self.failed_at {
            self.failed_at = document.embedding_at;
            info.last_error = document.embedding_error;
        }
    }

    fn info(self) -> EmbeddingInfo {
        let mut info = self.info;
        if info.pending > 0 {
            info.status = Some(UpdateStatus::InProgress);
        }
        info
    }
}
