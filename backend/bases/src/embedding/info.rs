//! How far the documents of a base are embedded.

use colloquy_store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

use super::Profile;
use crate::{
    Bases,
    base::KnowledgeBase,
    document::Step,
    pages::Pages,
    store::{self, EmbeddingUpdate, SCAN_PAGE, UnembeddedDocument},
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
#[derive(Debug, Clone)]
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

/// The documents of a base whose embedding failed, oldest first.
pub(crate) fn failed(bases: &Bases, base: &KnowledgeBase) -> Pages<UnembeddedDocument> {
    Pages::of_base(bases, base, SCAN_PAGE, |bases, base, after| async move {
        store::unembedded_page(bases.store.db(), &base, &after).await
    })
}

/// How far the documents of a base are embedded.
pub(crate) async fn info(bases: &Bases, base: &KnowledgeBase) -> Result<EmbeddingInfo, StoreError> {
    let db = bases.store.db();
    let counts = store::embedding_counts(db, &base.id).await?;
    let newest = store::newest_embedding_update(db, &base.id).await?;
    let last_error = store::newest_embedding_error(db, &base.id).await?;
    let profile = match store::profile_of(db, &base.id).await? {
        Some(id) => store::load_profile(db, id).await?,
        None => None,
    };
    let count = |stored: i64| usize::try_from(stored).unwrap_or_default();
    Ok(EmbeddingInfo {
        base: base.id.clone(),
        profile,
        eligible: count(counts.eligible),
        pending: count(counts.pending),
        failed: count(counts.failed),
        embedded: count(counts.embedded),
        chunks: counts.chunks,
        status: status(counts.pending, newest),
        updated_at: newest.map(|newest| newest.embedding_at),
        embedded_at: counts.embedded_at,
        last_error,
    })
}

fn status(pending: i64, newest: Option<EmbeddingUpdate>) -> Option<UpdateStatus> {
    if pending > 0 {
        return Some(UpdateStatus::InProgress);
    }
    newest.map(|newest| match newest.embedding {
        Step::Failed => UpdateStatus::Fail,
        _ => UpdateStatus::Success,
    })
}
