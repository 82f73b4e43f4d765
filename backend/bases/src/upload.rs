//! How documents come in.

use std::io::{Read, Seek};

use bytes::Bytes;
use colloquy_accounts::Tenant;
use colloquy_blobs::Written;
use colloquy_digitize::{DetectError, Format, detect};
use colloquy_extract::{
    ExtractError,
    format::{ExtensionKind, extension, extension_kind},
};
use colloquy_kernel::jobs;
use colloquy_store::{StoreError, Transaction};
use futures_util::Stream;
use tokio::task::spawn_blocking;

use super::{
    Bases,
    base::KnowledgeBase,
    budget,
    content::{NewContent, Variant},
    digitizing::Digitize,
    document::{self, ContentTypeChoice, Described, Document, Fetching, ModelTier, Source, Step},
    error::{BaseError, ReceiveError},
    facts::DocumentFacts,
    folder::Folder,
    names, rows,
    store::{self, OwnedChannel},
};

/// What is told of a document when it comes.
#[derive(Debug, Clone, Default)]
pub(crate) struct DocumentOptions {
    pub(crate) name: Option<String>,
    pub(crate) expert_name: Option<String>,
    pub(crate) user_email: Option<String>,
    pub(crate) auto_rewrite: bool,
    pub(crate) model_tier: ModelTier,
    pub(crate) use_original_as_rewritten: bool,
    pub(crate) character_limit: Option<u64>,
}

/// A file that was written, and belongs to no document yet. Dropped as such, it is discarded: when it is refused, or whoever brings it goes
/// away.
#[derive(Debug)]
pub(crate) struct Unclaimed {
    bases: Bases,
    written: Written,
    is_claimed: bool,
}

impl Unclaimed {
    pub(crate) fn new(bases: &Bases, written: Written) -> Self {
        Self {
            bases: bases.clone(),
            written,
            is_claimed: false,
        }
    }

    pub(crate) fn written(&self) -> &Written {
        &self.written
    }

    /// Gives it to somebody who sees to it.
    pub(crate) fn claim(mut self) -> Written {
        self.is_claimed = true;
        self.written.clone()
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if self.is_claimed {
            return;
        }
        let (bases, written) = (self.bases.clone(), self.written.clone());
        let discard = async move { bases.blobs.discard(&written).await };
        self.bases.kernel.tasks.spawn(discard);
    }
}

/// A file that was uploaded, and belongs to no document yet.
#[derive(Debug)]
pub(crate) struct Uploaded {
    file_name: String,
    format: Format,
    file: Unclaimed,
}

impl Uploaded {
    /// The file as the original of a document.
    fn content(&self) -> NewContent {
        NewContent {
            variant: Variant::Original,
            written: self.file.written().clone(),
            file_name: self.file_name.clone(),
            media_type: self.format.media_type().to_owned(),
            characters: None,
            made_of: None,
        }
    }

    /// The same, for somebody who sees to the file.
    pub(crate) fn into_content(self) -> NewContent {
        let content = self.content();
        self.file.claim();
        content
    }
}

/// Takes a file as it comes, and looks whether it is what its name says.
pub(crate) async fn receive<E: Send>(
    bases: &Bases,
    tenant: &Tenant,
    file_name: &str,
    pieces: impl Stream<Item = Result<Bytes, E>> + Send,
) -> Result<Uploaded, ReceiveError<E>> {
    // Refused before any of it is read.
    let file_name = names::of_file(file_name.rsplit(['/', '\\']).next().unwrap_or_default());
    check_name(&file_name)?;
    let most = bases.config.knowledge.max_file_bytes;
    let written = bases.blobs.write(tenant.partner(), pieces, most).await;
    let written = written.map_err(ReceiveError::of_write)?;
    let mut reader = bases.blobs.reader(&written.key, written.bytes);
    let file = Unclaimed::new(bases, written);
    let name = file_name.clone();
    let format = spawn_blocking(move || looked_at(&name, &mut reader)).await??;
    Ok(Uploaded {
        file_name,
        format,
        file,
    })
}

fn check_name(name: &str) -> Result<(), ExtractError> {
    let extension = || extension(name).chars().take(16).collect();
    match extension_kind(name) {
        ExtensionKind::Format(_) => Ok(()),
        ExtensionKind::Archive => Err(ExtractError::Archive(extension())),
        ExtensionKind::Unknown => Err(ExtractError::UnknownExtension(extension())),
    }
}

/// What a file is, by its name and what is in it.
pub(crate) fn looked_at(name: &str, file: &mut (impl Read + Seek)) -> Result<Format, BaseError> {
    detect(name, file).map_err(|error| match error {
        DetectError::Refused(refused) => BaseError::Refused(refused),
        DetectError::Read(error) => {
            BaseError::Files(colloquy_blobs::ObjectError::Failed(error.to_string()))
        }
    })
}

/// A document of an address, in no folder yet.
fn addressed(bases: &Bases, url: String, name: String, options: DocumentOptions) -> Document {
    Document {
        url: Some(url),
        fetching: Fetching::Wanted,
        digitizing: Step::Queued,
        ..blank(bases, Source::Url, name, options)
    }
}

/// A document of an address in a folder, not inserted yet.
pub(crate) fn of_url(
    bases: &Bases,
    folder: &Folder,
    url: String,
    options: DocumentOptions,
) -> Document {
    let name = options.name.clone();
    let name = name.unwrap_or_else(|| names::derived(&url));
    Document {
        folder_id: folder.id.clone(),
        folder: folder.name.clone(),
        ..addressed(bases, url, name, options)
    }
}

/// A document without content, in no folder yet.
fn blank(bases: &Bases, source: Source, name: String, options: DocumentOptions) -> Document {
    let now = bases.clock.now_ms();
    Document {
        id: bases.clock.new_id().to_string(),
        folder_id: String::new(),
        folder: String::new(),
        name,
        source,
        url: None,
        expert_name: options.expert_name,
        user_email: options.user_email,
        person_name: None,
        fetching: Fetching::None,
        content_type: ContentTypeChoice::Auto,
        model_tier: options.model_tier,
        auto_rewrite: options.auto_rewrite,
        use_original_as_rewritten: options.use_original_as_rewritten,
        character_limit: options
            .character_limit
            .map(|limit| i64::try_from(limit).unwrap_or(i64::MAX)),
        digitizing: Step::None,
        rewriting: Step::None,
        embedding: Step::None,
        processing_error: None,
        embedding_error: None,
        headings_left_out: None,
        facts: DocumentFacts::default(),
        revision: 0,
        created_at: now,
        updated_at: now,
        deletion_requested_at: None,
        is_going: false,
    }
}

/// Makes a document of a file, and has its text read.
pub(crate) async fn add_file(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    folder: &Folder,
    file: Uploaded,
    options: DocumentOptions,
) -> Result<Described, BaseError> {
    let id = insert_file(bases, tenant, base, folder, file, options).await?;
    document::find(bases, base, &id).await
}

/// Like [`add_file`], but returns the document's id alone: nothing is read that could fail once the document is there.
pub(crate) async fn insert_file(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    folder: &Folder,
    file: Uploaded,
    options: DocumentOptions,
) -> Result<String, BaseError> {
    let name = options.name.clone();
    let name = name.unwrap_or_else(|| names::derived(&file.file_name));
    let document = Document {
        folder_id: folder.id.clone(),
        folder: folder.name.clone(),
        digitizing: Step::Queued,
        ..blank(bases, Source::File, name, options)
    };
    insert(bases, tenant, base, &document, Some(&file.content())).await?;
    file.file.claim();
    Ok(document.id)
}

/// Makes a document of an address, and has what is there read.
pub(crate) async fn add_url(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    folder: &Folder,
    url: String,
    options: DocumentOptions,
) -> Result<Described, BaseError> {
    let document = of_url(bases, folder, url, options);
    insert(bases, tenant, base, &document, None).await?;
    document::find(bases, base, &document.id).await
}

/// Makes a document that somebody will write.
pub(crate) async fn add_empty(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    folder: &Folder,
    name: String,
    source: Source,
    url: Option<String>,
) -> Result<Described, BaseError> {
    let document = Document {
        folder_id: folder.id.clone(),
        folder: folder.name.clone(),
        url,
        ..blank(bases, source, name, DocumentOptions::default())
    };
    insert(bases, tenant, base, &document, None).await?;
    document::find(bases, base, &document.id).await
}

/// Makes a document of the address of a channel's video, in a transaction that holds the budget of the base. The document's id.
pub(crate) async fn insert_url(
    bases: &Bases,
    transaction: &Transaction,
    channel: &OwnedChannel,
    url: &str,
    options: DocumentOptions,
) -> Result<String, BaseError> {
    let folder = &channel.channel;
    let name = options.name.clone();
    let name = name.unwrap_or_else(|| names::derived(url));
    let document = Document {
        folder_id: folder.folder_id.clone(),
        folder: folder.folder.clone(),
        ..addressed(bases, url.to_owned(), name, options)
    };
    let (tenant, base) = (channel.tenant(), &channel.base_id);
    insert_in(bases, transaction, &tenant, base, &document, None).await?;
    Ok(document.id)
}

async fn insert(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    document: &Document,
    original: Option<&NewContent>,
) -> Result<(), BaseError> {
    let transaction = budget::begin(bases, &base.id).await?;
    insert_in(bases, &transaction, tenant, &base.id, document, original).await?;
    transaction.commit().await?;
    bases.kernel.jobs.wake();
    Ok(())
}

/// Inserts a document in a transaction that holds the budget of its base.
async fn insert_in(
    bases: &Bases,
    transaction: &Transaction,
    tenant: &Tenant,
    base: &str,
    document: &Document,
    original: Option<&NewContent>,
) -> Result<(), BaseError> {
    if room(bases, transaction, base).await? == 0 {
        return Err(full(bases));
    }
    insert_queued(bases, transaction, tenant, base, document, original).await?;
    rows::charge(bases, transaction, tenant, rows::DOCUMENT_BYTES).await
}

/// Returns how many more documents a base may have. The transaction has to hold the budget of the base ([`budget::begin`]): those who only
/// share the partner all count the same capacity, and exceed it together.
pub(crate) async fn room(
    bases: &Bases,
    transaction: &Transaction,
    base: &str,
) -> Result<u64, StoreError> {
    let most = u64::from(bases.config.knowledge.max_documents);
    let count = store::count_documents(transaction, base).await?;
    Ok(most.saturating_sub(count))
}

/// The refusal of a document that a base has no room for.
pub(crate) fn full(bases: &Bases) -> BaseError {
    let most = bases.config.knowledge.max_documents;
    BaseError::Full(format!("A knowledge base has {most} documents at most"))
}

/// Inserts a document and enqueues what reads it. Its row has to be charged by the same transaction.
pub(crate) async fn insert_queued(
    bases: &Bases,
    transaction: &Transaction,
    tenant: &Tenant,
    base: &str,
    document: &Document,
    original: Option<&NewContent>,
) -> Result<(), StoreError> {
    store::insert_document(transaction, base, document).await?;
    if let Some(original) = original {
        original.store(bases, transaction, &document.id).await?;
    }
    if document.digitizing == Step::Queued {
        let job = Digitize {
            document: document.id.clone(),
        };
        jobs::enqueue(bases, transaction, Some(tenant.partner()), &job).await?;
    }
    Ok(())
}
