//! The answers of lists of knowledge.

use colloquy_base::{clock::rfc3339, money::Usd};
use serde::Serialize;
use utoipa::ToSchema;

use super::{channels::FolderDetailsView, limits::BudgetView};
use crate::{
    base::EmbeddingStatus,
    content::Variant,
    document::{DocumentStatus, Source, Step},
    folder::Kind,
    lists::{BaseSums, DescribedBase, ListedDocument, ListedFolder},
    spend::DocumentSpend,
    store::{DocumentSums, StateCounts},
};

/// What is known of a cost.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SpendKind {
    /// The cost of all requests is known.
    Exact,
    /// The cost of some requests is not known.
    AtLeast,
    /// The cost of no request is known.
    Unknown,
    /// No request with a price was sent.
    None,
}

/// Spend of documents: their latest rewriting, and all of their transcription requests.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SpendView {
    /// What is known of the cost.
    kind: SpendKind,
    /// The cost for people: `$0.00125`, `≥ $0.00125`, `n/a` or `—`.
    #[schema(example = "≥ $0.00125")]
    display: String,
    /// Dollars, as far as they are known; null for `unknown` and `none`.
    #[schema(value_type = Option<String>, example = "0.00125")]
    usd: Option<Usd>,
    /// What `display` means.
    explanation: &'static str,
}

impl From<DocumentSpend> for SpendView {
    fn from(spend: DocumentSpend) -> Self {
        let (kind, explanation) = match spend {
            DocumentSpend::Exactly(_) => (
                SpendKind::Exact,
                "Cost of the latest rewriting and of all transcription requests",
            ),
            DocumentSpend::AtLeast(_) => (
                SpendKind::AtLeast,
                "Lower bound: the cost of some requests is not known",
            ),
            DocumentSpend::Unknown => (
                SpendKind::Unknown,
                "Requests were sent, and the cost of none of them is known",
            ),
            DocumentSpend::Nothing => (SpendKind::None, "No request with a price was sent"),
        };
        Self {
            kind,
            display: spend.to_string(),
            usd: spend.usd(),
            explanation,
        }
    }
}

/// Spend of a document, with its parts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentSpendView {
    /// Both parts together.
    #[serde(flatten)]
    spend: SpendView,
    /// Dollars of the latest rewriting, as far as they are known; null without one.
    #[schema(value_type = Option<String>)]
    rewrite_usd: Option<Usd>,
    /// False if `rewrite_usd` is a lower bound; null without a rewriting.
    rewrite_complete: Option<bool>,
    /// Dollars of all transcription requests, as far as they are known; null without any.
    #[schema(value_type = Option<String>)]
    reading_usd: Option<Usd>,
    /// Transcription requests that were sent.
    reading_requests: i64,
    /// Transcription requests without a known cost.
    reading_unpriced: i64,
}

/// Spend of several documents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SpendSumView {
    /// The sum; a lower bound if that of any document is.
    #[serde(flatten)]
    spend: SpendView,
    /// Documents whose cost is a lower bound or unknown.
    incomplete_documents: i64,
}

impl From<&DocumentSums> for SpendSumView {
    fn from(sums: &DocumentSums) -> Self {
        Self {
            spend: sums.spend().into(),
            incomplete_documents: sums.incomplete,
        }
    }
}

/// What `price` sorts by. The prices of documents do not add up to that of their knowledge base, which also counts earlier rewritings, embedding,
/// channels, and documents that were deleted.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PriceBasis {
    /// The spend of the documents that there are.
    Spend,
    /// All settled requests of the knowledge base, as its budget counts them.
    Ledger,
}

/// Sums over documents.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentSumsView {
    /// Documents.
    documents: i64,
    /// Bytes of the originals; of the text, or else of the final content, where there is no original.
    size_bytes: i64,
    /// Characters of digitized texts.
    text_characters: i64,
    /// Input and output tokens of all settled requests.
    tokens: i64,
    /// Spend.
    spend: SpendSumView,
}

impl From<DocumentSums> for DocumentSumsView {
    fn from(sums: DocumentSums) -> Self {
        Self {
            documents: sums.sizes.documents,
            size_bytes: sums.sizes.size_bytes,
            text_characters: sums.sizes.text_characters,
            tokens: sums.tokens,
            spend: (&sums).into(),
        }
    }
}

/// A document in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListedDocumentView {
    /// The id.
    id: String,
    /// The name.
    name: String,
    /// The name of its folder.
    folder: String,
    /// The source.
    #[serde(rename = "type")]
    source: Source,
    /// Its address; null for a file.
    url: Option<String>,
    /// The state of the document as a whole.
    state: DocumentStatus,
    /// The state of digitizing.
    digitize_status: Step,
    /// The state of rewriting.
    rewrite_status: Step,
    /// The state of embedding.
    embedding_status: Step,
    /// Why a step failed or waits; null without a reason.
    reason: Option<String>,
    /// What is wrong with the contents although no step failed, as in `processing_warning` of the document.
    warning: Option<String>,
    /// When the unfinished work of the document was enqueued, or began to wait for its budget; null if nothing waits or runs. RFC 3339.
    queued_at: Option<String>,
    /// When a queued step is tried next; null if none is queued. RFC 3339.
    next_attempt_at: Option<String>,
    /// Bytes of the original; of the text, or else of the final content, if there is no original.
    size_bytes: i64,
    /// Characters of the digitized text; null without one.
    text_characters: Option<i64>,
    /// Characters of the final content; null without one.
    final_characters: Option<i64>,
    /// Input and output tokens of all settled requests of the document.
    tokens: i64,
    /// Input tokens of the latest rewriting; null without one.
    rewrite_input_tokens: Option<i64>,
    /// Output tokens of the latest rewriting; null without one.
    rewrite_output_tokens: Option<i64>,
    /// Spend.
    spend: DocumentSpendView,
    /// The model that answered the latest rewriting last.
    rewrite_model: Option<String>,
    /// Sections of the latest rewriting.
    rewrite_sections: Option<i64>,
    /// Sections that are done.
    rewrite_sections_done: Option<i64>,
    /// Media type of the original; null without one.
    media_type: Option<String>,
    /// RFC 3339.
    created_at: String,
    /// RFC 3339.
    updated_at: String,
}

impl From<ListedDocument> for ListedDocumentView {
    fn from(listed: ListedDocument) -> Self {
        let (queued_at, reading_usd) = (listed.queued_at(), listed.reading_usd());
        let ListedDocument { described, figures } = listed;
        let rewrite = described.rewrite.as_ref();
        let original = described.content(Variant::Original);
        Self {
            state: described.status(),
            reason: described.error().map(str::to_owned),
            warning: described.warning(),
            queued_at: queued_at.map(rfc3339),
            next_attempt_at: figures.next_attempt_at.map(rfc3339),
            size_bytes: figures.size_bytes,
            text_characters: figures.text_characters,
            final_characters: figures.final_characters,
            tokens: figures.tokens,
            rewrite_input_tokens: rewrite.map(|it| it.input_tokens),
            rewrite_output_tokens: rewrite.map(|it| it.output_tokens),
            spend: DocumentSpendView {
                spend: described.spend().into(),
                rewrite_usd: rewrite.map(|it| Usd(it.cost.unsigned_abs())),
                rewrite_complete: rewrite.map(|it| it.is_cost_known()),
                reading_usd,
                reading_requests: figures.reading_requests,
                reading_unpriced: figures.reading_unpriced,
            },
            rewrite_model: rewrite
                .map(|it| it.model.clone())
                .filter(|model| !model.is_empty()),
            rewrite_sections: rewrite.map(|it| it.sections),
            rewrite_sections_done: rewrite.map(|it| it.done),
            media_type: original.map(|it| it.essence().to_owned()),
            id: described.document.id,
            name: described.document.name,
            folder: described.document.folder,
            source: described.document.source,
            url: described.document.url,
            digitize_status: described.document.digitizing,
            rewrite_status: described.document.rewriting,
            embedding_status: described.document.embedding,
            created_at: rfc3339(described.document.created_at),
            updated_at: rfc3339(described.document.updated_at),
        }
    }
}

/// A page of the documents of a knowledge base.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentPage {
    /// The documents, in the order that was requested.
    documents: Vec<ListedDocumentView>,
    /// The number of all documents that pass the filters; null on later pages.
    total: Option<i64>,
    /// Sums over all documents that pass the filters; null on later pages.
    sums: Option<DocumentSumsView>,
    /// The basis of prices: `spend`.
    price_basis: PriceBasis,
    /// The cursor of the next page; null on the last one.
    next_cursor: Option<String>,
}

impl DocumentPage {
    pub(super) fn new(
        documents: Vec<ListedDocument>,
        sums: Option<DocumentSums>,
        next_cursor: Option<String>,
    ) -> Self {
        Self {
            documents: documents.into_iter().map(Into::into).collect(),
            total: sums.map(|sums| sums.sizes.documents),
            sums: sums.map(Into::into),
            price_basis: PriceBasis::Spend,
            next_cursor,
        }
    }
}

/// Numbers of documents by their state.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct StateCountsView {
    /// Documents of which a step is queued or running.
    active: i64,
    /// Documents of which a step waits for its budget.
    blocked: i64,
    /// Documents of which a step failed.
    failed: i64,
}

impl From<StateCounts> for StateCountsView {
    fn from(counts: StateCounts) -> Self {
        Self {
            active: counts.active,
            blocked: counts.blocked,
            failed: counts.failed,
        }
    }
}

/// A folder in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListedFolderView {
    /// The id.
    id: String,
    /// The name.
    name: String,
    /// The source of its documents.
    #[serde(rename = "type")]
    kind: Kind,
    /// RFC 3339.
    created_at: String,
    /// When its deletion was requested; null unless it is being deleted. RFC 3339.
    deletion_requested_at: Option<String>,
    /// Sums over its documents.
    #[serde(flatten)]
    sums: DocumentSumsView,
    /// Its documents by their state.
    #[serde(flatten)]
    states: StateCountsView,
    /// Dollars of looking through its channel, as far as they are known; null if no request was sent. Not part of `spend`.
    #[schema(value_type = Option<String>)]
    discovery_cost_usd: Option<Usd>,
    /// The channel that it follows; null without one, and while the folder is being deleted.
    channel: Option<FolderDetailsView>,
}

impl From<ListedFolder> for ListedFolderView {
    fn from(listed: ListedFolder) -> Self {
        Self {
            id: listed.folder.id,
            name: listed.folder.name,
            kind: listed.folder.kind,
            created_at: rfc3339(listed.folder.created_at),
            deletion_requested_at: listed.folder.deletion_requested_at.map(rfc3339),
            sums: listed.figures.sums.into(),
            states: listed.figures.states.into(),
            discovery_cost_usd: listed.discovery_cost,
            channel: listed.channel.map(Into::into),
        }
    }
}

/// A page of the folders of a knowledge base.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FolderPage {
    /// The folders, in the order that was requested.
    folders: Vec<ListedFolderView>,
    /// The number of all folders that pass the filters; null on later pages.
    total: Option<u64>,
    /// Sums over the documents of all folders that pass the filters; null on later pages.
    sums: Option<DocumentSumsView>,
    /// The basis of prices: `spend`.
    price_basis: PriceBasis,
    /// The cursor of the next page; null on the last one.
    next_cursor: Option<String>,
}

impl FolderPage {
    pub(super) fn new(
        folders: Vec<ListedFolder>,
        sums: Option<(u64, DocumentSums)>,
        next_cursor: Option<String>,
    ) -> Self {
        Self {
            folders: folders.into_iter().map(Into::into).collect(),
            total: sums.map(|(total, _)| total),
            sums: sums.map(|(_, sums)| sums.into()),
            price_basis: PriceBasis::Spend,
            next_cursor,
        }
    }
}

/// A knowledge base in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ListedBaseView {
    /// The id.
    id: String,
    /// The name, as paths have it.
    name: String,
    /// Whose knowledge it is.
    expert_name: Option<String>,
    /// Who made it.
    user_email: Option<String>,
    /// RFC 3339.
    created_at: String,
    /// When its deletion was requested; null unless it is being deleted. RFC 3339.
    deletion_requested_at: Option<String>,
    /// How far its documents are embedded.
    embedding_status: EmbeddingStatus,
    /// Folders.
    folders: u64,
    /// Documents.
    documents: i64,
    /// Its documents by their state.
    #[serde(flatten)]
    states: StateCountsView,
    /// Bytes of the originals; of the text, or else of the final content, where there is no original.
    size_bytes: i64,
    /// Characters of digitized texts.
    text_characters: i64,
    /// Dollars of all settled requests, as far as they are known, also of documents that were deleted.
    #[schema(value_type = String, example = "0.00125")]
    cost_usd: Usd,
    /// True if the cost or the outcome of a request is not known, so that `cost_usd` is a lower bound.
    has_unknown_cost: bool,
    /// The budget.
    budget: BudgetView,
}

impl From<DescribedBase> for ListedBaseView {
    fn from(described: DescribedBase) -> Self {
        let DescribedBase {
            listed,
            figures,
            budget,
        } = described;
        let counted = figures.counted_characters.unsigned_abs();
        Self {
            embedding_status: listed.base.embedding_status(figures.progress()),
            id: listed.base.id,
            name: listed.base.name,
            expert_name: listed.base.expert_name,
            user_email: listed.base.user_email,
            created_at: rfc3339(listed.base.created_at),
            deletion_requested_at: listed.base.deletion_requested_at.map(rfc3339),
            folders: listed.folders,
            documents: figures.sizes.documents,
            states: figures.states.into(),
            size_bytes: figures.sizes.size_bytes,
            text_characters: figures.sizes.text_characters,
            cost_usd: budget.cost(),
            has_unknown_cost: budget.spending.unknown_dollars > 0 || budget.spending.uncertain > 0,
            budget: BudgetView::new(&budget, counted),
        }
    }
}

/// Sums over knowledge bases.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BaseSumsView {
    /// Documents.
    documents: i64,
    /// Bytes of the originals; of the text, or else of the final content, where there is no original.
    size_bytes: i64,
    /// Characters of digitized texts.
    text_characters: i64,
    /// Dollars of all settled requests, as far as they are known, also of documents that were deleted.
    #[schema(value_type = String, example = "0.00125")]
    cost_usd: Usd,
}

/// A page of the knowledge bases of a partner.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KnowledgeBasePage {
    /// The knowledge bases, in the order that was requested.
    knowledge_bases: Vec<ListedBaseView>,
    /// The number of all knowledge bases that pass the filter; null on later pages.
    total: Option<i64>,
    /// Sums over all knowledge bases that pass the filter; null on later pages.
    sums: Option<BaseSumsView>,
    /// The basis of prices: `ledger`.
    price_basis: PriceBasis,
    /// The cursor of the next page; null on the last one.
    next_cursor: Option<String>,
}

impl KnowledgeBasePage {
    pub(super) fn new(
        bases: Vec<DescribedBase>,
        sums: Option<BaseSums>,
        next_cursor: Option<String>,
    ) -> Self {
        Self {
            knowledge_bases: bases.into_iter().map(Into::into).collect(),
            total: sums.map(|sums| sums.costs.bases),
            sums: sums.map(|sums| BaseSumsView {
                documents: sums.sizes.documents,
                size_bytes: sums.sizes.size_bytes,
                text_characters: sums.sizes.text_characters,
                cost_usd: Usd(sums.costs.cost.unsigned_abs()),
            }),
            price_basis: PriceBasis::Ledger,
            next_cursor,
        }
    }
}
