//! What follows when a content is there: final content after text, its embedding, and its way to a vector store, after final content.

use colloquy_accounts::Tenant;
use colloquy_kernel::jobs;
use colloquy_store::{StoreError, Transaction};

use super::{
    Bases,
    budget::NoRoom,
    content::{NewContent, Variant},
    document::{Document, Step},
    embedding::Embed,
    error::BaseError,
    rewriting, store, vectorstore, waking,
};

/// The text of a document, written and not accepted yet, with what it becomes at once.
#[derive(Debug)]
pub(crate) struct AcceptedText {
    digitized: NewContent,
    /// The same as final content, where the document wants no other.
    rewritten: Option<NewContent>,
}

impl AcceptedText {
    /// Writes the text of a document, which was read of the source `made_of` ([`NewContent::made_of`]), or written by somebody.
    pub(crate) async fn write(
        bases: &Bases,
        tenant: &Tenant,
        document: &Document,
        text: String,
        made_of: Option<String>,
    ) -> Result<Self, BaseError> {
        let name = || format!("{}.md", document.id);
        let rewritten = match document.use_original_as_rewritten {
            true => {
                let (text, variant) = (text.clone(), Variant::Rewritten);
                Some(NewContent::of_text(bases, tenant, variant, name(), text).await?)
            }
            false => None,
        };
        let digitized = NewContent::of_text(bases, tenant, Variant::Digitized, name(), text).await;
        match digitized {
            Ok(digitized) => Ok(Self {
                digitized: NewContent {
                    made_of,
                    ..digitized
                },
                rewritten,
            }),
            Err(error) => {
                if let Some(rewritten) = &rewritten {
                    bases.blobs.discard(&rewritten.written).await;
                }
                Err(error)
            }
        }
    }

    /// Its length.
    pub(crate) fn characters(&self) -> u64 {
        self.digitized.characters.unwrap_or_default()
    }

    /// Keeps it until there is room for it, in a transaction: what the document had remains.
    pub(crate) async fn keep(
        &self,
        bases: &Bases,
        transaction: &Transaction,
        document: &Document,
        why: &NoRoom,
    ) -> Result<(), StoreError> {
        let (id, now) = (&document.id, bases.clock.now_ms());
        let kept = NewContent {
            variant: Variant::Extracted,
            ..self.digitized.clone()
        };
        kept.store(bases, transaction, id).await?;
        let unused = self.rewritten.as_ref().map(|it| it.written.key.clone());
        bases.blobs.doom(transaction, unused.as_slice()).await?;
        let needed = store::Needed {
            characters: Some(self.characters()),
            ..store::Needed::default()
        };
        store::block_text(transaction, id, why, needed, now).await
    }

    /// Accepts it, in a transaction, and queues what follows; `rewrites` also its rewriting, where the document wants that.
    pub(crate) async fn store(
        &self,
        bases: &Bases,
        transaction: &Transaction,
        tenant: &Tenant,
        base: &str,
        document: &Document,
        rewrites: bool,
    ) -> Result<(), StoreError> {
        let id = &document.id;
        self.digitized.store(bases, transaction, id).await?;
        let extracted = store::remove_content(transaction, id, Variant::Extracted).await?;
        bases.blobs.doom(transaction, extracted.as_slice()).await?;
        let now = bases.clock.now_ms();
        store::accept_text(transaction, id, Step::Done, now).await?;
        // It may be shorter than the one before.
        waking::wake(bases, transaction, tenant, base).await?;
        match &self.rewritten {
            Some(rewritten) => finish(bases, transaction, tenant, document, rewritten).await,
            None if rewrites && document.auto_rewrite => {
                rewriting::queue(bases, transaction, tenant, id, None).await
            }
            None => Ok(()),
        }
    }
}

/// Stores the final content of a document, in a transaction: what was found of an earlier one is not found any more, and the new
/// one is embedded.
pub(crate) async fn finish(
    bases: &Bases,
    transaction: &Transaction,
    tenant: &Tenant,
    document: &Document,
    rewritten: &NewContent,
) -> Result<(), StoreError> {
    let (id, now) = (&document.id, bases.clock.now_ms());
    rewritten.store(bases, transaction, id).await?;
    store::accept_final(transaction, id, now).await?;
    store::make_stale(transaction, id).await?;
    let sha256 = &rewritten.written.sha256;
    vectorstore::bring(bases, transaction, tenant, id, sha256).await?;
    queue_embedding(bases, transaction, tenant, id, false).await
}

/// Has the final content of a document embedded; `anew` also what has not changed.
pub(crate) async fn queue_embedding(
    bases: &Bases,
    transaction: &Transaction,
    tenant: &Tenant,
    document: &str,
    anew: bool,
) -> Result<(), StoreError> {
    let now = bases.clock.now_ms();
    // Before the document, as the job itself locks them.
    let job = Embed {
        document: document.to_owned(),
    };
    jobs::enqueue(bases, transaction, Some(tenant.partner()), &job).await?;
    store::set_embedding(transaction, document, Step::Queued, None, now).await?;
    if anew {
        store::embed_anew(transaction, document).await?;
    }
    Ok(())
}
