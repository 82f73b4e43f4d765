//! Knowledge bases.

use colloquy_accounts::{Tenant, hold_partner, partner_exists};
use colloquy_store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    Bases,
    budget::{self, Budget},
    error::BaseError,
    rows,
    spend::SpentByBase,
    store,
};

/// A knowledge base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KnowledgeBase {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) expert_name: Option<String>,
    pub(crate) user_email: Option<String>,
    pub(crate) created_at: i64,
    /// When it was to be deleted, if it was.
    pub(crate) deletion_requested_at: Option<i64>,
}

/// How far the documents of a base are embedded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EmbeddingStatus {
    /// All that can be.
    Success,
    /// Some are waiting or being worked on.
    InProgress,
    /// Some failed, and nothing is being worked on.
    Fail,
    /// There is nothing to embed.
    None,
    /// The base is being deleted.
    DeletePending,
}

/// How many documents of a base are how far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Progress {
    pub(crate) pending: u64,
    pub(crate) failed: u64,
    pub(crate) embedded: u64,
}

impl KnowledgeBase {
    /// What its list entry says.
    pub(crate) fn embedding_status(&self, progress: Progress) -> EmbeddingStatus {
        match progress {
            _ if self.deletion_requested_at.is_some() => EmbeddingStatus::DeletePending,
            Progress { pending: 1.., .. } => EmbeddingStatus::InProgress,
            Progress { failed: 1.., .. } => EmbeddingStatus::Fail,
            Progress { embedded: 1.., .. } => EmbeddingStatus::Success,
            Progress { .. } => EmbeddingStatus::None,
        }
    }

    /// Passes unless it is being deleted.
    pub(crate) fn require_open(self) -> Result<Self, BaseError> {
        match self.deletion_requested_at {
            None => Ok(self),
            Some(_) => Err(BaseError::Conflict("The knowledge base is being deleted")),
        }
    }
}

/// What a new base is.
#[derive(Debug)]
pub(crate) struct NewBase {
    pub(crate) name: String,
    pub(crate) expert_name: Option<String>,
    pub(crate) user_email: Option<String>,
    pub(crate) budget: Budget,
}

/// Makes one.
pub(crate) async fn create(
    bases: &Bases,
    tenant: &Tenant,
    new: NewBase,
) -> Result<KnowledgeBase, BaseError> {
    let base = KnowledgeBase {
        id: bases.clock.new_id().to_string(),
        name: new.name,
        expert_name: new.expert_name,
        user_email: new.user_email,
        created_at: bases.clock.now_ms(),
        deletion_requested_at: None,
    };
    let most = bases.config.knowledge.max_bases;
    let transaction = bases.store.begin().await?;
    // Nobody else adds one before this transaction ends.
    hold_partner(&transaction, tenant).await?;
    if !partner_exists(&transaction, tenant).await? {
        return Err(BaseError::NotFound("Partner"));
    }
    if store::count_bases(&transaction, tenant).await? >= u64::from(most) {
        return Err(BaseError::Full(format!(
            "A partner has {most} knowledge bases at most"
        )));
    }
    if !store::insert_base(&transaction, tenant, &base).await? {
        return Err(BaseError::Conflict("A knowledge base of this name exists"));
    }
    budget::open(&transaction, tenant, &base, &new.budget).await?;
    rows::charge(bases, &transaction, tenant, rows::BASE_BYTES).await?;
    transaction.commit().await?;
    Ok(base)
}

/// All of a partner, by name, with what they did cost.
pub(crate) async fn list(
    bases: &Bases,
    tenant: &Tenant,
) -> Result<Vec<(KnowledgeBase, Progress, SpentByBase)>, StoreError> {
    let db = bases.store.db();
    let listed = store::list_bases(db, tenant).await?;
    let sums = store::usage_sums(db, tenant, None).await?;
    let with_sums = listed.into_iter().map(|(base, progress)| {
        let spent = SpentByBase::of(&sums, &base.id);
        (base, progress, spent)
    });
    Ok(with_sums.collect())
}

/// What a base did cost.
pub(crate) async fn spent(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
) -> Result<SpentByBase, StoreError> {
    let sums = store::usage_sums(bases.store.db(), tenant, Some(&base.id)).await?;
    Ok(SpentByBase::of(&sums, &base.id))
}

/// One of them.
pub(crate) async fn find(
    bases: &Bases,
    tenant: &Tenant,
    name: &str,
) -> Result<KnowledgeBase, BaseError> {
    let found = store::find_base(bases.store.db(), tenant, name).await?;
    found.ok_or(BaseError::NotFound("Knowledge base"))
}
