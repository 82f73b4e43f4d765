//! `/api/rag-questions`.

use axum::{
    Extension, Json,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use colloquy_accounts::PartnerTenant;
use colloquy_base::{clock::rfc3339, invalid::InvalidField};
use colloquy_http::{
    ApiError, ApiJson, ApiPath, Listing, PageQuery,
    memory::{NoRoom, Share},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{BasePath, base_of, slice_of};
use crate::{
    Bases,
    questions::{self, Asked, ExpectedDocument, MOST_EXPECTED, NewQuestion, SavedQuestion},
    store,
};

/// A saved question in the path.
#[derive(Debug, Deserialize)]
pub(super) struct QuestionPath {
    kb: String,
    question_id: String,
}

/// A question, and the documents that answer it.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuestionBody {
    /// What the user says, 1 to 20,000 characters.
    user_message: String,
    /// What was said before it, up to 20,000 characters.
    robot_message: Option<String>,
    /// The name that stands in the place of whoever is spoken to ("you") in a second form of the question, up to 200 characters.
    character_replacement_name: Option<String>,
    /// Ids of 1 to 20 documents of the knowledge base.
    #[schema(min_items = 1, max_items = 20)]
    expected_document_ids: Vec<String>,
}

impl QuestionBody {
    fn parse(self) -> Result<NewQuestion, InvalidField> {
        let asked = Asked::parse(
            &self.user_message,
            self.robot_message.as_deref(),
            self.character_replacement_name.as_deref(),
        )?;
        let mut expected = self.expected_document_ids;
        let refuse = |message: String| InvalidField::new("expected_document_ids", message);
        if !(1..=MOST_EXPECTED).contains(&expected.len()) {
            return Err(refuse(format!("must have 1 to {MOST_EXPECTED} ids")));
        }
        // PostgreSQL takes no NUL.
        if expected.iter().any(|id| id.contains('\0')) {
            return Err(refuse("has a NUL character".to_owned()));
        }
        expected.sort_unstable();
        expected.dedup();
        Ok(NewQuestion { asked, expected })
    }
}

/// A saved question.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuestionView {
    /// The id.
    id: String,
    /// What the user says.
    user_message: String,
    /// What was said before it; null if nothing was.
    robot_message: Option<String>,
    /// The name of whoever is spoken to; null without one.
    character_replacement_name: Option<String>,
    /// The documents that answer it. A document that is deleted drops out.
    expected_documents: Vec<ExpectedDocumentView>,
    /// When it was saved. RFC 3339.
    created_at: String,
    /// When it was changed last. RFC 3339.
    updated_at: String,
}

/// A document that answers a question.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExpectedDocumentView {
    /// The id.
    document_id: String,
    /// The name.
    document_name: String,
}

impl From<ExpectedDocument> for ExpectedDocumentView {
    fn from(document: ExpectedDocument) -> Self {
        Self {
            document_id: document.id,
            document_name: document.name,
        }
    }
}

impl From<SavedQuestion> for QuestionView {
    fn from(question: SavedQuestion) -> Self {
        Self {
            id: question.id,
            user_message: question.asked.user_message,
            robot_message: question.asked.robot_message,
            character_replacement_name: question.asked.replacement_name,
            expected_documents: question.expected.into_iter().map(Into::into).collect(),
            created_at: rfc3339(question.created_at),
            updated_at: rfc3339(question.updated_at),
        }
    }
}

/// A page of saved questions.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuestionPage {
    /// The questions, newest first.
    questions: Vec<QuestionView>,
    /// Number of saved questions of the knowledge base; null on later pages.
    total: Option<u64>,
    /// The cursor of the next page; null on the last one.
    next_cursor: Option<String>,
}

/// The memory of a byte of the texts of questions: the text, a copy, and its JSON in a buffer that doubles when it grows.
const PER_BYTE: usize = 4;

/// Reserves the memory of texts of questions for an answer, before they are read.
///
/// # Errors
/// 503 if the memory is not free, 413 if it never can be.
pub(super) fn reserve(share: Option<&Share>, text_bytes: u64) -> Result<(), ApiError> {
    let bytes = usize::try_from(text_bytes).unwrap_or(usize::MAX);
    let grown = share.map_or(Ok(()), |share| share.grow(bytes.saturating_mul(PER_BYTE)));
    grown.map_err(|why| match why {
        NoRoom::Now => ApiError::from(why),
        NoRoom::Ever => ApiError {
            message: "The questions of the page take more memory than this server has for one answer; ask for fewer with `limit`"
                .to_owned(),
            ..ApiError::from(why)
        },
    })
}

/// Lists the saved questions of a knowledge base, newest first.
#[utoipa::path(
    get, path = "/api/rag-questions/{partner}/{kb}", operation_id = "page_questions", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), PageQuery),
    responses(
        (status = 200, body = QuestionPage),
        (status = 400, description = "A parameter is invalid or unknown"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base was not found"),
        (status = 413, description = "The page takes more memory than the server has for one answer (`limits.body_memory_bytes`)"),
        (status = 503, description = "There is no memory for the answer now; retry after `Retry-After` seconds"),
    )
)]
pub(super) async fn list(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    share: Option<Extension<Share>>,
    Listing { page, .. }: Listing,
) -> Result<(HeaderMap, Json<QuestionPage>), ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let (db, slice) = (bases.store.db(), slice_of(&page)?);
    let text_bytes = store::text_bytes_of_page(db, &base.id, &slice).await?;
    reserve(share.as_deref(), text_bytes)?;
    let rows = store::questions_page(db, &base.id, &slice).await?;
    let listed = page.of(rows, |row| row.id.clone());
    let total = match page.after() {
        None => Some(store::count_questions(db, &base.id).await?),
        Some(_) => None,
    };
    let saved = questions::with_expected(db, listed.entries).await?;
    let view = QuestionPage {
        questions: saved.into_iter().map(Into::into).collect(),
        total,
        next_cursor: listed.next_cursor,
    };
    Ok((listed.links, Json(view)))
}

/// Saves a question with the documents that answer it, for evaluations. A knowledge base has 500 at most.
#[utoipa::path(
    post, path = "/api/rag-questions/{partner}/{kb}", operation_id = "create_question", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path)), request_body = QuestionBody,
    responses(
        (status = 201, body = QuestionView),
        (status = 400, description = "A field is missing or invalid, or names a document that the knowledge base does not have"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base was not found"),
        (status = 409, description = "The knowledge base is being deleted, or has as many questions as it may (`limit_reached`)"),
        (status = 413, description = "The partner would store more than it may (`storage_limit_reached`)"),
    )
)]
pub(super) async fn create(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<BasePath>,
    ApiJson(body): ApiJson<QuestionBody>,
) -> Result<(StatusCode, Json<QuestionView>), ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let saved = questions::create(&bases, &tenant, &base, body.parse()?).await?;
    Ok((StatusCode::CREATED, Json(saved.into())))
}

/// Returns a saved question.
#[utoipa::path(
    get, path = "/api/rag-questions/{partner}/{kb}/{question_id}", operation_id = "read_question", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("question_id" = String, Path)),
    responses(
        (status = 200, body = QuestionView),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base or the question was not found"),
    )
)]
pub(super) async fn read(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<QuestionPath>,
) -> Result<Json<QuestionView>, ApiError> {
    let (_, base) = base_of(&bases, caller, &path.kb).await?;
    let question = questions::find(&bases, &base, &path.question_id).await?;
    Ok(Json(question.into()))
}

/// Replaces a saved question and its documents.
///
/// Evaluations compare results of a question only while neither its texts nor its documents change.
#[utoipa::path(
    put, path = "/api/rag-questions/{partner}/{kb}/{question_id}", operation_id = "change_question", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("question_id" = String, Path)), request_body = QuestionBody,
    responses(
        (status = 200, body = QuestionView),
        (status = 400, description = "A field is missing or invalid, or names a document that the knowledge base does not have"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base or the question was not found"),
        (status = 409, description = "The knowledge base is being deleted"),
        (status = 413, description = "The partner would store more than it may (`storage_limit_reached`)"),
    )
)]
pub(super) async fn change(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<QuestionPath>,
    ApiJson(body): ApiJson<QuestionBody>,
) -> Result<Json<QuestionView>, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    let base = base.require_open()?;
    let id = &path.question_id;
    let saved = questions::change(&bases, &tenant, &base, id, body.parse()?).await?;
    Ok(Json(saved.into()))
}

/// Deletes a saved question, and its results in all evaluations. Their figures stay as they are.
#[utoipa::path(
    delete, path = "/api/rag-questions/{partner}/{kb}/{question_id}", operation_id = "delete_question", tag = "knowledge bases",
    params(("partner" = String, Path), ("kb" = String, Path), ("question_id" = String, Path)),
    responses(
        (status = 204, description = "The question is deleted"),
        (status = 403, description = "The key is of another partner, or lacks the scope `knowledge`"),
        (status = 404, description = "The knowledge base or the question was not found"),
    )
)]
pub(super) async fn delete(
    State(bases): State<Bases>,
    caller: PartnerTenant,
    ApiPath(path): ApiPath<QuestionPath>,
) -> Result<StatusCode, ApiError> {
    let (tenant, base) = base_of(&bases, caller, &path.kb).await?;
    questions::delete(&bases, &tenant, &base, &path.question_id).await?;
    Ok(StatusCode::NO_CONTENT)
}
