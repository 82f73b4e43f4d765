//! What clients are told of knowledge bases.

use colloquy_base::{clock::rfc3339, money::Usd};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    admission::PaidStep,
    base::{EmbeddingStatus, KnowledgeBase, Progress},
    content::{Content, Variant},
    document::{ContentTypeChoice, Described, DocumentStatus, ModelTier, Source, Step},
    embedding::{EmbeddingInfo, UpdateStatus},
    erase::Deletion,
    spend::SpentByBase,
    store::Rewrite,
};

/// A knowledge base.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct KnowledgeBaseView {
    /// The id.
    id: String,
    /// The name, as paths have it.
    name: String,
    /// How far its documents are embedded.
    embedding_status: EmbeddingStatus,
    /// Whose knowledge it is.
    expert_name: Option<String>,
    /// Who made it.
    user_email: Option<String>,
    /// RFC 3339.
    created_at: String,
    /// When it was to be deleted; null unless it is being deleted. RFC 3339.
    deletion_requested_at: Option<String>,
    /// What all requests to services came to that were settled.
    lifetime_usage: LifetimeUsageView,
    /// What rewriting used, for older clients: one entry.
    rewrite_usage: [RewriteUsageView; 1],
    /// What reading documents used, for older clients.
    digitization_usage: DigitizationUsageView,
}

/// What all requests of a base to services came to.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LifetimeUsageView {
    /// Requests that were settled.
    event_count: u64,
    /// Those whose cost is known.
    priced_event_count: u64,
    /// Those whose cost is not.
    unpriced_event_count: u64,
    /// What they cost in dollars, as far as that is known.
    #[schema(value_type = String, example = "0.00125")]
    cost_usd_total: Usd,
    /// Requests to rewrite.
    rewrite_event_count: u64,
    /// Requests to transcribe.
    digitization_event_count: u64,
}

/// What rewriting used.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RewriteUsageView {
    /// Null: it is of all models.
    model: Option<String>,
    /// Requests whose answer was taken.
    rewritten_count: u64,
    /// Requests whose answer was not.
    rejected_count: u64,
    /// Requests whose tokens are known.
    complete_usage_count: u64,
    /// Requests whose cost is known.
    complete_cost_count: u64,
    /// What they cost in dollars, as far as that is known.
    #[schema(value_type = String)]
    cost_usd_total: Usd,
    /// The tokens that were read.
    input_tokens_total: u64,
    /// The tokens that were written.
    output_tokens_total: u64,
    /// Requests to the backup model whose tokens are known.
    fallback_complete_usage_count: u64,
    /// The tokens that it read.
    fallback_input_tokens_total: u64,
    /// The tokens that it wrote.
    fallback_output_tokens_total: u64,
}

/// What reading documents used.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DigitizationUsageView {
    /// Documents that a service was asked for.
    svc_document_count: u64,
    /// Requests whose cost is known.
    complete_cost_count: u64,
    /// What they cost in dollars, as far as that is known.
    #[schema(value_type = String)]
    cost_usd_total: Usd,
}

/// What a base used so far.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct UsageTotalsView {
    /// Requests to services that were settled.
    event_count: u64,
    /// The tokens that were read.
    input_tokens: u64,
    /// The tokens that were written.
    output_tokens: u64,
    /// What they cost in dollars, as far as that is known.
    #[schema(value_type = String)]
    cost_usd: Usd,
    /// The part of rewriting.
    #[schema(value_type = String)]
    rewrite_cost_usd: Usd,
    /// The part of embedding.
    #[schema(value_type = String)]
    embedding_cost_usd: Usd,
    /// The part of reading documents.
    #[schema(value_type = String)]
    digitization_cost_usd: Usd,
    /// The part of looking through channels.
    #[schema(value_type = String)]
    discovery_cost_usd: Usd,
}

impl UsageTotalsView {
    pub(super) fn new(spent: &SpentByBase) -> Self {
        let all = spent.all();
        let cost = |step| Usd(spent.on(step).cost);
        Self {
            event_count: all.events,
            input_tokens: all.input_tokens,
            output_tokens: all.output_tokens,
            cost_usd: Usd(all.cost),
            rewrite_cost_usd: cost(PaidStep::Rewrite),
            embedding_cost_usd: cost(PaidStep::Embed),
            digitization_cost_usd: cost(PaidStep::Transcribe),
            discovery_cost_usd: cost(PaidStep::Discover),
        }
    }
}

impl KnowledgeBaseView {
    /// A base with what it did cost; `backup` is the model that rewrites when the first one cannot be reached.
    pub(super) fn new(
        base: KnowledgeBase,
        progress: Progress,
        spent: &SpentByBase,
        backup: Option<&str>,
    ) -> Self {
        let all = spent.all();
        let rewriting = spent.on(PaidStep::Rewrite);
        let fallback =
            spent.sum(|sum| sum.kind == PaidStep::Rewrite && Some(sum.model.as_str()) == backup);
        let digitization = spent.on(PaidStep::Transcribe);
        let (rewritten_count, rejected_count) = spent.rewritten();
        Self {
            lifetime_usage: LifetimeUsageView {
                event_count: all.events,
                priced_event_count: all.priced,
                unpriced_event_count: all.events - all.priced,
                cost_usd_total: Usd(all.cost),
                rewrite_event_count: rewriting.events,
                digitization_event_count: digitization.events,
            },
            rewrite_usage: [RewriteUsageView {
                model: None,
                rewritten_count,
                rejected_count,
                complete_usage_count: rewriting.counted,
                complete_cost_count: rewriting.priced,
                cost_usd_total: Usd(rewriting.cost),
                input_tokens_total: rewriting.input_tokens,
                output_tokens_total: rewriting.output_tokens,
                fallback_complete_usage_count: fallback.counted,
                fallback_input_tokens_total: fallback.input_tokens,
                fallback_output_tokens_total: fallback.output_tokens,
            }],
            digitization_usage: DigitizationUsageView {
                svc_document_count: digitization.documents,
                complete_cost_count: digitization.priced,
                cost_usd_total: Usd(digitization.cost),
            },
            embedding_status: base.embedding_status(progress),
            id: base.id,
            name: base.name,
            expert_name: base.expert_name,
            user_email: base.user_email,
            created_at: rfc3339(base.created_at),
            deletion_requested_at: base.deletion_requested_at.map(rfc3339),
        }
    }
}

/// What became of a deletion.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DeletionView {
    /// `deleted`, or `delete_pending` while something of it is being worked on.
    status: &'static str,
    /// What is waited for, while the deletion is pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pending: Option<PendingView>,
}

/// What a deletion waits for.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PendingView {
    /// Documents that are being worked on.
    active_documents: u64,
}

impl From<Deletion> for DeletionView {
    fn from(deletion: Deletion) -> Self {
        match deletion {
            Deletion::Done => Self {
                status: "deleted",
                pending: None,
            },
            Deletion::Pending(active_documents) => Self {
                status: "delete_pending",
                pending: Some(PendingView { active_documents }),
            },
        }
    }
}

/// A document.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DocumentView {
    /// The id.
    id: String,
    /// The name.
    name: String,
    /// The name of its folder.
    folder: String,
    /// Where it comes from.
    #[serde(rename = "type")]
    source: Source,
    /// Its address; null for a file.
    url: Option<String>,
    /// How far it is as a whole.
    status: DocumentStatus,
    /// How far its text is.
    digitize_status: Step,
    /// How far its rewriting is.
    rewrite_status: Step,
    /// How far its embedding is.
    embedding_status: Step,
    /// Why a step failed or waits.
    processing_error: Option<String>,
    /// Warnings about the text: pages and pictures without recognized text, embedded objects that are not read, formulas without a stored
    /// result, a recording whose language was assumed, contents older than their source, an original or address that has not been read, and
    /// headings that a table of contents of 64 KiB has no room for. Null if there are none.
    processing_warning: Option<String>,
    /// Who wrote it, as it says.
    author: Option<String>,
    /// The language that it names, such as `en` or `pt-BR`.
    language: Option<String>,
    /// How many pages, slides or pictures it has, where it has such.
    pages: Option<i64>,
    /// The pages on which no text could be recognized, the first 1,000.
    missing_pages: Vec<u32>,
    /// The name of the original file.
    file_original: Option<String>,
    /// The name of its text, once it is there.
    file_digitized: Option<String>,
    /// The name of the draft, while there is one.
    file_draft: Option<String>,
    /// The name of the final content, once it is there.
    file_rewritten: Option<String>,
    /// The media type of the original.
    media_type: Option<String>,
    /// The size of the original, in bytes.
    bytes: Option<i64>,
    /// The SHA-256 of the original.
    content_hash: Option<String>,
    /// Other documents of the base with the same original or the same address, 100 at most, without those that are being deleted.
    duplicate_document_ids: Vec<String>,
    /// What the latest rewriting cost in dollars, also when it failed; null where there was none.
    #[schema(value_type = Option<String>, example = "0.00125")]
    rewrite_cost_usd: Option<Usd>,
    /// Whether the models told the usage of all of it; where they did not, the cost is a lower bound.
    rewrite_cost_complete: Option<bool>,
    /// What its latest rewriting and reading it cost in dollars, as far as that is known; null where nothing is.
    #[schema(value_type = Option<String>, example = "0.00125")]
    spend_usd: Option<Usd>,
    /// The same for people: `$0.00125`, `≥ $0.00125` where that is not all of it, `n/a` where nothing is known, `—` where nothing had a
    /// price.
    spend_display: String,
    /// The tokens that it read.
    rewrite_input_tokens_total: Option<i64>,
    /// The tokens that it wrote.
    rewrite_output_tokens: Option<i64>,
    /// The model that answered last.
    rewrite_model: Option<String>,
    /// Its sections.
    rewrite_sections: Option<i64>,
    /// How many of them are done.
    rewrite_sections_done: Option<i64>,
    /// The length of its text, in characters.
    digitized_chars: Option<i64>,
    /// The length of its final content, in characters.
    rewritten_chars: Option<i64>,
    /// Author or speaker.
    expert_name: Option<String>,
    /// Who is spoken of, in rewriting.
    person_name: Option<String>,
    /// Who brought it.
    user_email: Option<String>,
    /// The template of its rewriting.
    content_type: ContentTypeChoice,
    /// How much its model may cost.
    model_tier: ModelTier,
    /// Whether it is rewritten once its text is there.
    auto_rewrite: bool,
    /// Whether its text is its final content.
    use_original_as_rewritten: bool,
    /// The most characters that the texts of the base may have with its own.
    character_limit: Option<i64>,
    /// RFC 3339.
    created_at: String,
    /// RFC 3339.
    updated_at: String,
    /// RFC 3339; null unless it is being deleted.
    deletion_requested_at: Option<String>,
}

impl From<Described> for DocumentView {
    fn from(described: Described) -> Self {
        let name = |variant| described.content(variant).map(|it| it.file_name.clone());
        let characters = |variant| described.content(variant).and_then(|it| it.characters);
        let original: Option<&Content> = described.content(Variant::Original);
        let rewrite = described.rewrite.as_ref();
        let spend = described.spend();
        let error = described.error().map(str::to_owned);
        let warning = described.warning();
        Self {
            spend_usd: spend.usd(),
            spend_display: spend.to_string(),
            rewrite_cost_usd: rewrite.map(|it| Usd(it.cost.unsigned_abs())),
            rewrite_cost_complete: rewrite.map(Rewrite::is_cost_known),
            rewrite_input_tokens_total: rewrite.map(|it| it.input_tokens),
            rewrite_output_tokens: rewrite.map(|it| it.output_tokens),
            rewrite_model: rewrite
                .map(|it| it.model.clone())
                .filter(|model| !model.is_empty()),
            rewrite_sections: rewrite.map(|it| it.sections),
            rewrite_sections_done: rewrite.map(|it| it.done),
            status: described.status(),
            file_original: name(Variant::Original),
            file_digitized: name(Variant::Digitized),
            file_draft: name(Variant::Draft),
            file_rewritten: name(Variant::Rewritten),
            media_type: original.map(|it| it.essence().to_owned()),
            bytes: original.map(|it| it.bytes),
            content_hash: original.map(|it| it.sha256.clone()),
            digitized_chars: characters(Variant::Digitized),
            rewritten_chars: characters(Variant::Rewritten),
            duplicate_document_ids: described.duplicates,
            id: described.document.id,
            name: described.document.name,
            folder: described.document.folder,
            source: described.document.source,
            url: described.document.url,
            digitize_status: described.document.digitizing,
            rewrite_status: described.document.rewriting,
            embedding_status: described.document.embedding,
            processing_error: error,
            processing_warning: warning,
            missing_pages: described.document.facts.missing_pages(),
            author: described.document.facts.author,
            language: described.document.facts.language,
            pages: described.document.facts.pages,
            expert_name: described.document.expert_name,
            person_name: described.document.person_name,
            user_email: described.document.user_email,
            content_type: described.document.content_type,
            model_tier: described.document.model_tier,
            auto_rewrite: described.document.auto_rewrite,
            use_original_as_rewritten: described.document.use_original_as_rewritten,
            character_limit: described.document.character_limit,
            created_at: rfc3339(described.document.created_at),
            updated_at: rfc3339(described.document.updated_at),
            deletion_requested_at: described.document.deletion_requested_at.map(rfc3339),
        }
    }
}

/// How far the documents of a base are embedded.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EmbeddingInfoView {
    /// When a document was embedded last. RFC 3339.
    last_successful_update_time: Option<String>,
    /// When the embedding of a document began or ended last. RFC 3339.
    last_update_time: Option<String>,
    /// How that ended; `in_progress` while a document waits or is being embedded; null before the first one.
    last_update_status: Option<UpdateStatus>,
    /// What is there of it now.
    last_update_details: Option<EmbeddingDetailsView>,
    /// What can be found.
    last_successful_details: Option<EmbeddingDetailsView>,
    /// The id of the base.
    knowledge_base_id: String,
    /// The number of the profile that the base is searched by; null until a document is embedded.
    embedding_profile_id: Option<i64>,
    /// Its name: the model's, or `words` where texts are found by their words alone.
    embedding_profile_name: Option<String>,
    /// Documents with final content.
    eligible_document_count: usize,
    /// Those that wait or are being embedded.
    pending_document_count: usize,
    /// Those that failed.
    failed_document_count: usize,
    /// Those that can be found.
    embedded_document_count: usize,
    /// Why a document failed last.
    last_error: Option<String>,
}

/// How much is embedded.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub(crate) struct EmbeddingDetailsView {
    /// Chunks of documents.
    chunk_count: i64,
    /// Their vectors.
    point_count: i64,
}

impl From<EmbeddingInfo> for EmbeddingInfoView {
    fn from(info: EmbeddingInfo) -> Self {
        let details = info.chunks.map(|chunk_count| EmbeddingDetailsView {
            chunk_count,
            point_count: chunk_count,
        });
        let (id, name) = info
            .profile
            .map(|profile| (profile.id, profile.name))
            .unzip();
        Self {
            last_successful_update_time: info.embedded_at.map(rfc3339),
            last_update_time: info.updated_at.map(rfc3339),
            last_update_status: info.status,
            last_update_details: details,
            last_successful_details: details,
            knowledge_base_id: info.base,
            embedding_profile_id: id,
            embedding_profile_name: name,
            eligible_document_count: info.eligible,
            pending_document_count: info.pending,
            failed_document_count: info.failed,
            embedded_document_count: info.embedded,
            last_error: info.last_error,
        }
    }
}
