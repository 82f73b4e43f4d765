//! The operations of the API whose changes are recorded, and those that are not, with the reason.

use axum::http::Method;
use serde::Serialize;
use utoipa::ToSchema;

use self::{
    Resource as R,
    Subject::{Parameter, Response, Unnamed},
};

/// An operation whose changes are recorded.
#[derive(Debug, PartialEq, Eq)]
pub struct Operation {
    /// The method.
    pub method: &'static str,
    /// The template of the path.
    pub path: &'static str,
    /// The name of the operation: its `operationId` in the API document.
    pub action: &'static str,
    /// The kind of resource that is changed.
    pub resource: Resource,
    /// What names the resource.
    pub subject: Subject,
}

/// Kinds of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = AuditedResource)]
pub enum Resource {
    /// A partner.
    Partner,
    /// An API key.
    Key,
    /// A quota.
    Quota,
    /// A character.
    Character,
    /// A session of the console, or a link that begins one.
    Session,
    /// A knowledge base.
    Base,
    /// A folder of a knowledge base.
    Folder,
    /// A document.
    Document,
    /// A question of an evaluation of retrieval.
    Question,
    /// An evaluation of retrieval.
    Evaluation,
    /// A voice.
    Voice,
    /// A webhook delivery.
    Delivery,
    /// A call.
    Call,
    /// A transcript of a recording.
    Transcript,
    /// A dialog analysis.
    Analysis,
}

colloquy_store::stored!(pub Resource:
    Partner = "partner", Key = "key", Quota = "quota", Character = "character", Session = "session", Base = "base", Folder = "folder",
    Document = "document", Question = "question", Evaluation = "evaluation", Voice = "voice", Delivery = "delivery", Call = "call",
    Transcript = "transcript", Analysis = "analysis",
);

/// What names the resource that an operation changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A parameter of the path, or of the query.
    Parameter(&'static str),
    /// A field of the response.
    Response(&'static str),
    /// Nothing: the operation is about all resources of the kind, or about whoever makes it.
    Unnamed,
}

impl Resource {
    /// The table whose rows name the partner of a resource that no path names the partner of.
    pub(crate) fn owner_table(self) -> Option<&'static str> {
        match self {
            Self::Call => Some("calls"),
            Self::Transcript => Some("transcripts"),
            Self::Analysis => Some("dialog_analyses"),
            _ => None,
        }
    }
}

impl Operation {
    /// Returns true if the operation commits several transactions, so that it may be refused when some of it is done.
    pub(crate) fn is_in_parts(&self) -> bool {
        self.path.starts_with("/api/bulk/")
    }
}

/// Returns the operation of a request, if its changes are recorded. `path` is the template.
pub(crate) fn recorded(method: &Method, path: &str) -> Option<&'static Operation> {
    if method.is_safe() {
        return None;
    }
    RECORDED
        .iter()
        .find(|operation| operation.path == path && operation.method == method.as_str())
}

const fn operation(
    method: &'static str,
    path: &'static str,
    action: &'static str,
    resource: Resource,
    subject: Subject,
) -> Operation {
    Operation {
        method,
        path,
        action,
        resource,
        subject,
    }
}

/// The operations whose changes are recorded.
#[rustfmt::skip]
pub const RECORDED: &[Operation] = &[
    operation("POST", "/api/partners/{partner}", "create_partner", R::Partner, Parameter("partner")),
    operation("PUT", "/api/partners/{partner}", "update_partner", R::Partner, Parameter("partner")),
    operation("DELETE", "/api/partners/{partner}", "delete_partner", R::Partner, Parameter("partner")),
    operation("POST", "/api/keys/{partner}", "create_key", R::Key, Response("id")),
    operation("DELETE", "/api/keys/{partner}/{key_id}", "revoke_key", R::Key, Parameter("key_id")),
    operation("POST", "/api/quotas/{partner}", "create_quota", R::Quota, Response("id")),
    operation("PUT", "/api/quotas/{partner}/{quota_id}", "update_quota", R::Quota, Parameter("quota_id")),
    operation("POST", "/api/quotas/{partner}/{quota_id}/rotate", "rotate", R::Quota, Parameter("quota_id")),
    operation("DELETE", "/api/quotas/{partner}/{quota_id}", "revoke", R::Quota, Parameter("quota_id")),
    operation("POST", "/api/console/session", "sign_in", R::Session, Unnamed),
    operation("DELETE", "/api/console/session", "sign_out", R::Session, Unnamed),
    operation("DELETE", "/api/console/sessions", "sign_out_everywhere", R::Session, Unnamed),
    operation("POST", "/api/console/links", "make_link", R::Session, Unnamed),
    operation("POST", "/api/characters/{partner}", "create_character", R::Character, Response("name")),
    operation("PUT", "/api/characters/{partner}/{name}", "update_character", R::Character, Parameter("name")),
    operation("DELETE", "/api/characters/{partner}/{name}", "delete_character", R::Character, Parameter("name")),
    operation("POST", "/api/knowledgebases/{partner}", "create_knowledge_base", R::Base, Response("name")),
    operation("DELETE", "/api/knowledgebases/{partner}/{kb}", "delete_knowledge_base", R::Base, Parameter("kb")),
    operation("PATCH", "/api/knowledgebases/{partner}/{kb}/limits", "change_limits", R::Base, Parameter("kb")),
    operation("POST", "/api/knowledgebases/{partner}/{kb}/limits/unknown", "decide", R::Base, Parameter("kb")),
    operation("POST", "/api/folders/{partner}/{kb}", "create_folder", R::Folder, Response("name")),
    operation("DELETE", "/api/folders/{partner}/{kb}/{folder}", "delete_folder", R::Folder, Parameter("folder")),
    operation("PATCH", "/api/folders/{partner}/{kb}/{folder}/channel", "change_channel", R::Folder, Parameter("folder")),
    operation("POST", "/api/folders/{partner}/{kb}/{folder}/sync", "sync", R::Folder, Parameter("folder")),
    operation("POST", "/api/documents/{partner}/{kb}", "create_document", R::Document, Response("id")),
    operation("POST", "/api/documents/{partner}/{kb}/empty", "create_empty", R::Document, Response("id")),
    operation("POST", "/api/documents/{partner}/{kb}/batch", "create_urls", R::Base, Parameter("kb")),
    operation("POST", "/api/documents/{partner}/{kb}/files/batch", "create_files", R::Base, Parameter("kb")),
    operation("DELETE", "/api/documents/{partner}/{kb}/{doc_id}", "delete_document", R::Document, Parameter("doc_id")),
    operation("PUT", "/api/documents/{partner}/{kb}/{doc_id}/content/{type}", "write", R::Document, Parameter("doc_id")),
    operation("POST", "/api/documents/{partner}/{kb}/{doc_id}/content/{type}", "upload", R::Document, Parameter("doc_id")),
    operation("PUT", "/api/documents/{partner}/{kb}/{doc_id}/folder", "move_document", R::Document, Parameter("doc_id")),
    operation("PUT", "/api/documents/{partner}/{kb}/{doc_id}/name", "rename", R::Document, Parameter("doc_id")),
    operation("PUT", "/api/documents/{partner}/{kb}/{doc_id}/type", "set_type", R::Document, Parameter("doc_id")),
    operation("PUT", "/api/documents/{partner}/{kb}/{doc_id}/url", "set_url", R::Document, Parameter("doc_id")),
    operation("POST", "/api/documents/{partner}/{kb}/{doc_id}/retry", "retry_document", R::Document, Parameter("doc_id")),
    operation("POST", "/api/embedding/{partner}/{kb}/documents/{doc_id}", "embed", R::Document, Parameter("doc_id")),
    operation("POST", "/api/embedding/{partner}/{kb}/retry-failed", "retry", R::Base, Parameter("kb")),
    operation("POST", "/api/bulk/delete/{partner}/{kb}", "delete_documents", R::Base, Parameter("kb")),
    operation("POST", "/api/bulk/move/{partner}/{kb}", "move_documents", R::Base, Parameter("kb")),
    operation("POST", "/api/bulk/retry/{partner}/{kb}", "retry_documents", R::Base, Parameter("kb")),
    operation("POST", "/api/bulk/rewrite/kb/{partner}/{kb}", "rewrite_base", R::Base, Parameter("kb")),
    operation("POST", "/api/bulk/rewrite/folder/{partner}/{kb}/{folder}", "rewrite_folder", R::Folder, Parameter("folder")),
    operation("POST", "/api/queue/process", "process", R::Base, Parameter("kb")),
    operation("POST", "/api/rewriting/{partner}/retry-failed", "retry_failed_rewritings", R::Document, Unnamed),
    operation("POST", "/api/vectorstore-sync/{partner}/{kb}/backfill", "backfill", R::Base, Parameter("kb")),
    operation("POST", "/api/vectorstore-sync/{partner}/{kb}/retry-failed", "retry_failed_vectorstore_sync", R::Base, Parameter("kb")),
    operation("POST", "/api/rag-questions/{partner}/{kb}", "create_question", R::Question, Response("id")),
    operation("PUT", "/api/rag-questions/{partner}/{kb}/{question_id}", "change_question", R::Question, Parameter("question_id")),
    operation("DELETE", "/api/rag-questions/{partner}/{kb}/{question_id}", "delete_question", R::Question, Parameter("question_id")),
    operation("POST", "/api/rag-evaluations/{partner}/{kb}", "begin_evaluation", R::Evaluation, Response("id")),
    operation("DELETE", "/api/rag-evaluations/{partner}/{kb}/{evaluation_id}", "delete_evaluation", R::Evaluation, Parameter("evaluation_id")),
    operation("POST", "/api/voices/{partner}", "create_voice", R::Voice, Response("name")),
    operation("POST", "/api/voices/{partner}/empty", "create_empty_voice", R::Voice, Response("name")),
    operation("DELETE", "/api/voices/{partner}/{voice}", "delete_voice", R::Voice, Parameter("voice")),
    operation("PUT", "/api/voices/{partner}/{voice}/name", "rename_voice", R::Voice, Parameter("voice")),
    operation("POST", "/api/voices/{partner}/{voice}/split", "split_voice", R::Voice, Parameter("voice")),
    operation("POST", "/api/voices/{partner}/{voice}/embed", "embed_voice", R::Voice, Parameter("voice")),
    operation("PUT", "/api/voices/{partner}/{voice}/preferred-sample", "prefer_sample", R::Voice, Parameter("voice")),
    operation("POST", "/api/voices/{partner}/{voice}/samples", "add_sample", R::Voice, Parameter("voice")),
    operation("DELETE", "/api/voices/{partner}/{voice}/samples/{index}", "delete_sample", R::Voice, Parameter("voice")),
    operation("DELETE", "/api/voices/{partner}/{voice}/test-files/{tts_type}", "delete_test_files", R::Voice, Parameter("voice")),
    operation("POST", "/api/webhooks/{partner}/deliveries/{id}/resend", "resend_delivery", R::Delivery, Parameter("id")),
    operation("POST", "/v2/calls/{call_id}/end", "end_call", R::Call, Parameter("call_id")),
    operation("DELETE", "/v2/calls/{call_id}", "delete_call", R::Call, Parameter("call_id")),
    operation("POST", "/v2/transcript/{id}/retry", "retry_transcript", R::Transcript, Parameter("id")),
    operation("DELETE", "/v2/transcript/{id}", "delete_transcript", R::Transcript, Parameter("id")),
    operation("POST", "/v2/dialog_analyses/{id}/retry", "retry_analysis", R::Analysis, Parameter("id")),
];

const READS: &str = "reads, or answers without storing anything";
const DATA: &str = "the work of customers' programs, which calls, usage and their own lists show";
const NOBODY: &str = "has no principal";

/// The operations with other methods than GET that are not recorded, each with the reason.
#[rustfmt::skip]
pub const UNRECORDED: &[(&str, &str, &str)] = &[
    ("POST", "/api/character_drafts/{partner}/check", READS),
    ("POST", "/api/character_drafts/{partner}/replies", READS),
    ("POST", "/api/rag-test/search", READS),
    ("POST", "/v2/calls/check", NOBODY),
    ("POST", "/api/voice-worker/jobs/{id}", NOBODY),
    ("POST", "/v2/audio/speech", DATA),
    ("POST", "/v2/calls", DATA),
    ("POST", "/v2/completions", DATA),
    ("POST", "/v2/dialog_analyses", DATA),
    ("POST", "/v2/transcript", DATA),
    ("POST", "/v3/chat/completions", DATA),
    ("POST", "/v3/embeddings", DATA),
    ("POST", "/v3/responses", DATA),
    ("POST", "/v3/responses/compact", DATA),
    ("POST", "/v3/responses/input_tokens", READS),
    ("DELETE", "/v3/responses/{response}", DATA),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_operation_is_found_by_its_method_and_template() {
        let action = |method: Method, path| recorded(&method, path).map(|found| found.action);
        let path = "/api/partners/{partner}";
        assert_eq!(action(Method::POST, path), Some("create_partner"));
        assert_eq!(action(Method::DELETE, path), Some("delete_partner"));
        assert_eq!(action(Method::GET, path), None);
        assert_eq!(action(Method::POST, "/v2/calls"), None);
    }

    #[test]
    fn no_two_operations_have_one_name() {
        let actions: HashSet<_> = RECORDED.iter().map(|operation| operation.action).collect();
        assert_eq!(actions.len(), RECORDED.len());
    }
}
