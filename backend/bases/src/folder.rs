//! Folders.

use colloquy_accounts::Tenant;
use colloquy_store::{StoreError, Transaction, stored};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Bases, base::KnowledgeBase, budget, error::BaseError, rows, store};

/// Where the documents of a folder come from.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// People bring them.
    #[default]
    Regular,
    /// A channel of a video platform has them.
    VideoChannel,
}

stored!(pub(crate) Kind: Regular = "regular", VideoChannel = "video_channel");

/// A folder.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Folder {
    pub(crate) id: String,
    pub(crate) name: String,
    #[sqlx(rename = "type", try_from = "String")]
    pub(crate) kind: Kind,
    pub(crate) created_at: i64,
    /// When it was to be deleted, if it was.
    pub(crate) deletion_requested_at: Option<i64>,
}

/// Makes one.
pub(crate) async fn create(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    name: String,
) -> Result<Folder, BaseError> {
    let transaction = budget::begin(bases, &base.id).await?;
    let folder = insert(bases, &transaction, base, name, Kind::Regular).await?;
    rows::charge(bases, &transaction, tenant, rows::FOLDER_BYTES).await?;
    transaction.commit().await?;
    Ok(folder)
}

/// Makes one in a transaction that holds the budget of the base, so that nobody else counts its folders. The caller charges it.
pub(crate) async fn insert(
    bases: &Bases,
    transaction: &Transaction,
    base: &KnowledgeBase,
    name: String,
    kind: Kind,
) -> Result<Folder, BaseError> {
    let folder = Folder {
        id: bases.clock.new_id().to_string(),
        name,
        kind,
        created_at: bases.clock.now_ms(),
        deletion_requested_at: None,
    };
    let most = bases.config.knowledge.max_folders;
    if store::count_folders(transaction, base).await? >= u64::from(most) {
        return Err(BaseError::Full(format!(
            "A knowledge base has {most} folders at most"
        )));
    }
    if !store::insert_folder(transaction, base, &folder).await? {
        return Err(BaseError::Conflict("A folder of this name exists"));
    }
    Ok(folder)
}

/// All of a base, by name.
pub(crate) async fn list(bases: &Bases, base: &KnowledgeBase) -> Result<Vec<Folder>, StoreError> {
    store::list_folders(bases.store.db(), base).await
}

/// One of them.
pub(crate) async fn find(
    bases: &Bases,
    base: &KnowledgeBase,
    name: &str,
) -> Result<Folder, BaseError> {
    let found = store::find_folder(bases.store.db(), base, name).await?;
    found.ok_or(BaseError::NotFound("Folder"))
}

impl Folder {
    /// Passes unless it is being deleted.
    pub(crate) fn require_open(self) -> Result<Self, BaseError> {
        match self.deletion_requested_at {
            None => Ok(self),
            Some(_) => Err(BaseError::Conflict("The folder is being deleted")),
        }
    }
}
