//! The SQL of saved questions.

use std::collections::{HashMap, HashSet};

use colloquy_store::{Executor, Order, Slice, StoreError, placeholders, statement};
use uuid::Uuid;

use super::embedding_info::NOT_BEING_DELETED;
use crate::{
    questions::{Asked, ExpectedDocument, SavedQuestion},
    rows::QUESTION_BYTES,
};

/// A saved question without its documents.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct QuestionRow {
    pub(crate) id: String,
    pub(crate) user_message: String,
    pub(crate) robot_message: Option<String>,
    pub(crate) character_replacement_name: Option<String>,
    pub(crate) revision: i64,
    pub(crate) created_at: i64,
    pub(crate) updated_at: i64,
}

/// The columns of a [`QuestionRow`].
pub(super) const QUESTION_COLUMNS: &str = "q.id, q.user_message, q.robot_message, q.character_replacement_name, q.revision, q.created_at, q.updated_at";

impl QuestionRow {
    /// Returns the row of a new question.
    pub(crate) fn new(id: Uuid, asked: &Asked, now: i64) -> Self {
        Self {
            id: id.to_string(),
            user_message: asked.user_message.clone(),
            robot_message: asked.robot_message.clone(),
            character_replacement_name: asked.replacement_name.clone(),
            revision: 1,
            created_at: now,
            updated_at: now,
        }
    }

    /// Returns the row with other texts.
    pub(crate) fn changed(self, asked: &Asked, now: i64) -> Self {
        Self {
            user_message: asked.user_message.clone(),
            robot_message: asked.robot_message.clone(),
            character_replacement_name: asked.replacement_name.clone(),
            revision: self.revision + 1,
            updated_at: now,
            ..self
        }
    }

    /// Returns the question with its documents.
    pub(crate) fn saved(self, expected: Vec<ExpectedDocument>) -> SavedQuestion {
        SavedQuestion {
            id: self.id,
            asked: Asked {
                user_message: self.user_message,
                robot_message: self.robot_message,
                replacement_name: self.character_replacement_name,
            },
            expected,
            revision: self.revision,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }
}

/// Counts the questions of a base.
pub(crate) async fn count_questions(db: &impl Executor, base: &str) -> Result<u64, StoreError> {
    let sql = "SELECT COUNT(*) FROM knowledge_questions WHERE base_id = $1";
    db.fetch_count(statement(sql, [base.into()])).await
}

pub(crate) async fn insert_question(
    db: &impl Executor,
    base: &str,
    row: &QuestionRow,
    bytes: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO knowledge_questions (id, base_id, user_message, robot_message, character_replacement_name, bytes, revision, \
               created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let values = [
        row.id.as_str().into(),
        base.into(),
        row.user_message.as_str().into(),
        row.robot_message.as_deref().into(),
        row.character_replacement_name.as_deref().into(),
        bytes.into(),
        row.revision.into(),
        row.created_at.into(),
        row.updated_at.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

pub(crate) async fn update_question(
    db: &impl Executor,
    row: &QuestionRow,
    bytes: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_questions SET user_message = $2, robot_message = $3, character_replacement_name = $4, bytes = $5, \
               revision = $6, updated_at = $7 WHERE id = $1";
    let values = [
        row.id.as_str().into(),
        row.user_message.as_str().into(),
        row.robot_message.as_deref().into(),
        row.character_replacement_name.as_deref().into(),
        bytes.into(),
        row.revision.into(),
        row.updated_at.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

pub(crate) async fn delete_question(db: &impl Executor, id: &str) -> Result<(), StoreError> {
    let sql = "DELETE FROM knowledge_questions WHERE id = $1";
    db.execute(statement(sql, [id.into()])).await?;
    Ok(())
}

/// What a question counts in the storage of its partner.
pub(crate) async fn bytes_of_question(db: &impl Executor, id: &str) -> Result<i64, StoreError> {
    let sql = "SELECT bytes FROM knowledge_questions WHERE id = $1";
    let bytes: Option<i64> = db.fetch_scalar(statement(sql, [id.into()])).await?;
    Ok(bytes.unwrap_or_default())
}

pub(crate) async fn find_question(
    db: &impl Executor,
    base: &str,
    id: &str,
) -> Result<Option<QuestionRow>, StoreError> {
    let sql = format!(
        "SELECT {QUESTION_COLUMNS} FROM knowledge_questions q WHERE q.base_id = $1 AND q.id = $2"
    );
    db.fetch_one(statement(sql, [base.into(), id.into()])).await
}

/// Returns the bytes of the texts of a part of the questions of a base, from an index, without reading the texts.
pub(crate) async fn text_bytes_of_page(
    db: &impl Executor,
    base: &str,
    slice: &Slice,
) -> Result<u64, StoreError> {
    let mut sql = text_bytes("SELECT q.bytes FROM knowledge_questions q WHERE q.base_id = $1");
    let mut values = vec![base.into()];
    slice.complete(&mut sql, &mut values, "q.id", Order::Descending);
    sql.push_str(") AS page");
    db.fetch_count(statement(sql, values)).await
}

/// Returns the bytes of the texts of some questions of a base, as [`text_bytes_of_page`] does.
pub(crate) async fn text_bytes_of(
    db: &impl Executor,
    base: &str,
    ids: &[&str],
) -> Result<u64, StoreError> {
    let mut values = vec![base.into()];
    let listed = placeholders(&mut values, ids.iter().copied());
    if ids.is_empty() {
        return Ok(0);
    }
    let mut sql = text_bytes("SELECT q.bytes FROM knowledge_questions q WHERE q.base_id = $1");
    sql.push_str(&format!(" AND q.id IN ({listed})) AS page"));
    db.fetch_count(statement(sql, values)).await
}

/// Returns the SQL that adds up the bytes of texts of the questions that a subquery selects, up to its closing parenthesis.
fn text_bytes(selected: &str) -> String {
    format!(
        "SELECT CAST(COALESCE(SUM(CASE WHEN page.bytes > {QUESTION_BYTES} THEN page.bytes - {QUESTION_BYTES} ELSE 0 END), 0) AS BIGINT) \
         FROM ({selected}"
    )
}

/// Returns a part of the questions of a base, newest first.
pub(crate) async fn questions_page(
    db: &impl Executor,
    base: &str,
    slice: &Slice,
) -> Result<Vec<QuestionRow>, StoreError> {
    let mut sql =
        format!("SELECT {QUESTION_COLUMNS} FROM knowledge_questions q WHERE q.base_id = $1");
    let mut values = vec![base.into()];
    slice.complete(&mut sql, &mut values, "q.id", Order::Descending);
    db.fetch_all(statement(sql, values)).await
}

#[derive(sqlx::FromRow)]
struct IdRow {
    id: String,
}

/// Returns those of these documents that are in a base and are not being deleted.
pub(crate) async fn documents_of(
    db: &impl Executor,
    base: &str,
    ids: &[String],
) -> Result<HashSet<String>, StoreError> {
    let mut values = vec![base.into()];
    let listed = placeholders(&mut values, ids.iter().map(String::as_str));
    if listed.is_empty() {
        return Ok(HashSet::new());
    }
    let sql = format!(
        "SELECT d.id FROM knowledge_documents d WHERE d.base_id = $1 AND {NOT_BEING_DELETED} AND d.id IN ({listed})"
    );
    let rows: Vec<IdRow> = db.fetch_all(statement(sql, values)).await?;
    Ok(rows.into_iter().map(|row| row.id).collect())
}

/// Sets the documents that answer a question.
pub(crate) async fn set_expected(
    db: &impl Executor,
    question: &str,
    documents: &[String],
) -> Result<(), StoreError> {
    let sql = "DELETE FROM knowledge_question_documents WHERE question_id = $1";
    db.execute(statement(sql, [question.into()])).await?;
    let sql = "INSERT INTO knowledge_question_documents (question_id, document_id) VALUES ($1, $2)";
    for document in documents {
        let values = [question.into(), document.as_str().into()];
        db.execute(statement(sql, values)).await?;
    }
    Ok(())
}

#[derive(sqlx::FromRow)]
struct ExpectedRow {
    question_id: String,
    id: String,
    name: String,
}

/// Returns the documents of each of these questions, without those that are being deleted, oldest first.
pub(crate) async fn expected_of(
    db: &impl Executor,
    questions: &[&str],
) -> Result<HashMap<String, Vec<ExpectedDocument>>, StoreError> {
    let mut values = Vec::new();
    let listed = placeholders(&mut values, questions.iter().copied());
    let mut expected: HashMap<String, Vec<ExpectedDocument>> = HashMap::new();
    if listed.is_empty() {
        return Ok(expected);
    }
    let sql = format!(
        "SELECT e.question_id, d.id, d.name FROM knowledge_question_documents e JOIN knowledge_documents d ON d.id = e.document_id \
         WHERE e.question_id IN ({listed}) AND {NOT_BEING_DELETED} ORDER BY e.question_id, d.id"
    );
    let rows: Vec<ExpectedRow> = db.fetch_all(statement(sql, values)).await?;
    for ExpectedRow {
        question_id,
        id,
        name,
    } in rows
    {
        let documents = expected.entry(question_id).or_default();
        documents.push(ExpectedDocument { id, name });
    }
    Ok(expected)
}

#[derive(sqlx::FromRow)]
struct NamedRow {
    id: String,
    name: String,
}

/// Documents whose names a statement reads.
const NAMES_AT_ONCE: usize = 256;

/// Returns the texts of some questions of a base, a page of them at most.
pub(crate) async fn question_texts(
    db: &impl Executor,
    base: &str,
    ids: &[&str],
) -> Result<HashMap<String, String>, StoreError> {
    let mut values = vec![base.into()];
    let listed = placeholders(&mut values, ids.iter().copied());
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = format!(
        "SELECT q.id, q.user_message AS name FROM knowledge_questions q WHERE q.base_id = $1 AND q.id IN ({listed})"
    );
    let rows: Vec<NamedRow> = db.fetch_all(statement(sql, values)).await?;
    Ok(rows.into_iter().map(|row| (row.id, row.name)).collect())
}

/// Returns the names of documents of a base, without those that it does not have.
pub(crate) async fn document_names(
    db: &impl Executor,
    base: &str,
    ids: &[&str],
) -> Result<HashMap<String, String>, StoreError> {
    let mut names = HashMap::new();
    for part in ids.chunks(NAMES_AT_ONCE) {
        let mut values = vec![base.into()];
        let listed = placeholders(&mut values, part.iter().copied());
        let sql = format!(
            "SELECT d.id, d.name FROM knowledge_documents d WHERE d.base_id = $1 AND d.id IN ({listed})"
        );
        let rows: Vec<NamedRow> = db.fetch_all(statement(sql, values)).await?;
        names.extend(rows.into_iter().map(|row| (row.id, row.name)));
    }
    Ok(names)
}
