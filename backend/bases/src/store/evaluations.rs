//! The SQL of evaluations and their results.

use colloquy_index::fusion::FusionParameters;
use colloquy_store::{Dialect, Executor, Order, Slice, StoreError, statement};
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::{
    BASE_COLUMNS, BaseRow,
    questions::{QUESTION_COLUMNS, QuestionRow},
};
use crate::{
    base::KnowledgeBase,
    evaluating::{Conditions, EvaluationStatus, Figures, NewEvaluation, Outcome},
};

/// An evaluation. Its JSON is read when it is wanted.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct EvaluationRow {
    pub(crate) id: String,
    #[sqlx(try_from = "String")]
    pub(crate) status: EvaluationStatus,
    cutoff: i64,
    parameters: String,
    conditions: Option<String>,
    figures: Option<String>,
    pub(crate) error: Option<String>,
    /// Questions when it began.
    pub(crate) questions: i64,
    /// Those that were asked.
    pub(crate) asked: i64,
    pub(crate) created_at: i64,
    pub(crate) ended_at: Option<i64>,
}

const EVALUATION_COLUMNS: &str = "e.id, e.status, e.cutoff, e.parameters, e.conditions, e.figures, e.error, e.questions, e.asked, \
     e.created_at, e.ended_at";

impl EvaluationRow {
    /// Returns the row of a new evaluation of so many questions.
    pub(crate) fn new(
        id: Uuid,
        new: &NewEvaluation,
        questions: u64,
        now: i64,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            id: id.to_string(),
            status: EvaluationStatus::Queued,
            cutoff: new.cutoff.cast_signed(),
            parameters: written(&new.fusion)?,
            conditions: None,
            figures: None,
            error: None,
            questions: questions.cast_signed(),
            asked: 0,
            created_at: now,
            ended_at: None,
        })
    }

    /// Returns the evaluation once it runs.
    pub(crate) fn running(self, conditions: &Conditions) -> Result<Self, StoreError> {
        Ok(Self {
            status: EvaluationStatus::Running,
            conditions: Some(written(conditions)?),
            ..self
        })
    }

    /// How many documents of each ranking count.
    pub(crate) fn k(&self) -> usize {
        usize::try_from(self.cutoff).unwrap_or_default()
    }

    /// How the streams are fused.
    pub(crate) fn fusion(&self) -> Result<FusionParameters, StoreError> {
        read(&self.parameters)
    }

    /// What the index held; `None` before the first question.
    pub(crate) fn conditions(&self) -> Result<Option<Conditions>, StoreError> {
        self.conditions.as_deref().map(read).transpose()
    }

    /// The figures of all questions; `None` until it is done, or if no question counts.
    pub(crate) fn figures(&self) -> Result<Option<Figures>, StoreError> {
        self.figures.as_deref().map(read).transpose()
    }
}

fn written(value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(StoreError::other)
}

fn read<T: DeserializeOwned>(json: &str) -> Result<T, StoreError> {
    serde_json::from_str(json).map_err(StoreError::malformed)
}

/// True if an evaluation of a base waits or runs.
pub(crate) async fn has_unfinished_evaluation(
    db: &impl Executor,
    base: &str,
) -> Result<bool, StoreError> {
    let sql = "SELECT COUNT(*) FROM knowledge_evaluations WHERE base_id = $1 AND status IN ('queued', 'running')";
    Ok(db.fetch_count(statement(sql, [base.into()])).await? > 0)
}

/// Inserts an evaluation of all questions that a base has.
pub(crate) async fn insert_evaluation(
    db: &impl Executor,
    base: &str,
    row: &EvaluationRow,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO knowledge_evaluations (id, base_id, status, cutoff, parameters, questions, asked, created_at) \
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
    let values = [
        row.id.as_str().into(),
        base.into(),
        row.status.as_str().into(),
        row.cutoff.into(),
        row.parameters.as_str().into(),
        row.questions.into(),
        row.asked.into(),
        row.created_at.into(),
    ];
    db.execute(statement(sql, values)).await?;
    let sql = "INSERT INTO knowledge_evaluation_results (evaluation_id, question_id) \
               SELECT $1, q.id FROM knowledge_questions q WHERE q.base_id = $2";
    let values = [row.id.as_str().into(), base.into()];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Deletes the oldest evaluations of a base but so many, and returns how many those were.
pub(crate) async fn delete_old_evaluations(
    db: &impl Executor,
    base: &str,
    kept: u64,
) -> Result<u64, StoreError> {
    let sql = format!(
        "DELETE FROM knowledge_evaluations WHERE base_id = $1 AND id NOT IN \
         (SELECT e.id FROM knowledge_evaluations e WHERE e.base_id = $1 ORDER BY e.id DESC LIMIT {kept})"
    );
    db.execute(statement(sql, [base.into()])).await
}

/// Deletes an evaluation; returns false if the base has none of this id.
pub(crate) async fn delete_evaluation(
    db: &impl Executor,
    base: &str,
    id: &str,
) -> Result<bool, StoreError> {
    let sql = "DELETE FROM knowledge_evaluations WHERE base_id = $1 AND id = $2";
    let values = [base.into(), id.into()];
    Ok(db.execute(statement(sql, values)).await? > 0)
}

pub(crate) async fn find_evaluation(
    db: &impl Executor,
    base: &str,
    id: &str,
) -> Result<Option<EvaluationRow>, StoreError> {
    let sql = format!(
        "SELECT {EVALUATION_COLUMNS} FROM knowledge_evaluations e WHERE e.base_id = $1 AND e.id = $2"
    );
    db.fetch_one(statement(sql, [base.into(), id.into()])).await
}

/// Returns the newest evaluation before another one that is done and has the same cut-off.
pub(crate) async fn evaluation_before(
    db: &impl Executor,
    base: &str,
    row: &EvaluationRow,
) -> Result<Option<EvaluationRow>, StoreError> {
    let sql = format!(
        "SELECT {EVALUATION_COLUMNS} FROM knowledge_evaluations e WHERE e.base_id = $1 AND e.id < $2 AND e.status = 'done' \
         AND e.cutoff = $3 ORDER BY e.id DESC LIMIT 1"
    );
    let values = [base.into(), row.id.as_str().into(), row.cutoff.into()];
    db.fetch_one(statement(sql, values)).await
}

/// Returns a part of the evaluations of a base, newest first.
pub(crate) async fn evaluations_page(
    db: &impl Executor,
    base: &str,
    slice: &Slice,
) -> Result<Vec<EvaluationRow>, StoreError> {
    let mut sql =
        format!("SELECT {EVALUATION_COLUMNS} FROM knowledge_evaluations e WHERE e.base_id = $1");
    let mut values = vec![base.into()];
    slice.complete(&mut sql, &mut values, "e.id", Order::Descending);
    db.fetch_all(statement(sql, values)).await
}

#[derive(sqlx::FromRow)]
struct BaseIdRow {
    base_id: String,
}

/// Returns an evaluation with its base, for work in the background.
pub(crate) async fn load_evaluation(
    db: &impl Executor,
    id: &str,
) -> Result<Option<(KnowledgeBase, EvaluationRow)>, StoreError> {
    let sql = "SELECT base_id FROM knowledge_evaluations WHERE id = $1";
    let found: Option<BaseIdRow> = db.fetch_one(statement(sql, [id.into()])).await?;
    let Some(BaseIdRow { base_id }) = found else {
        return Ok(None);
    };
    let sql = format!("SELECT {BASE_COLUMNS} FROM knowledge_bases b WHERE b.id = $1");
    let base: Option<BaseRow> = db
        .fetch_one(statement(sql, [base_id.as_str().into()]))
        .await?;
    let row = find_evaluation(db, &base_id, id).await?;
    Ok(base.map(KnowledgeBase::from).zip(row))
}

/// Marks an evaluation as running.
pub(crate) async fn start_evaluation(
    db: &impl Executor,
    id: &str,
    conditions: &Conditions,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_evaluations SET status = 'running', conditions = $2 WHERE id = $1 AND status = 'queued'";
    let values = [id.into(), written(conditions)?.into()];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Returns questions of an evaluation that were not asked yet.
pub(crate) async fn unasked(
    db: &impl Executor,
    id: &str,
    limit: i64,
) -> Result<Vec<QuestionRow>, StoreError> {
    let sql = format!(
        "SELECT {QUESTION_COLUMNS} FROM knowledge_evaluation_results r JOIN knowledge_questions q ON q.id = r.question_id \
         WHERE r.evaluation_id = $1 AND r.outcome IS NULL ORDER BY r.question_id LIMIT {limit}"
    );
    db.fetch_all(statement(sql, [id.into()])).await
}

/// The outcome of a question.
#[derive(Debug)]
pub(crate) struct QuestionOutcome {
    pub(crate) question: String,
    /// The revision of the question that was asked.
    pub(crate) revision: i64,
    pub(crate) outcome: Outcome,
}

/// Stores outcomes of an evaluation; returns false if it does not run any more.
pub(crate) async fn set_outcomes(
    db: &impl Executor,
    id: &str,
    outcomes: &[QuestionOutcome],
) -> Result<bool, StoreError> {
    // Whoever deletes an evaluation holds its row before those of its results. The row is locked, not updated: PostgreSQL checks the foreign key of one
    // that a transaction updates twice, which waits for whoever deletes the base, and that waits for this row.
    let lock = match db.dialect() {
        Dialect::Postgres => "FOR NO KEY UPDATE",
        Dialect::Sqlite => "",
    };
    let sql =
        format!("SELECT id FROM knowledge_evaluations WHERE id = $1 AND status = 'running' {lock}");
    let running: Option<String> = db.fetch_scalar(statement(sql, [id.into()])).await?;
    if running.is_none() {
        return Ok(false);
    }
    let sql = "UPDATE knowledge_evaluation_results SET revision = $3, outcome = $4 WHERE evaluation_id = $1 AND question_id = $2";
    for outcome in outcomes {
        let values = [
            id.into(),
            outcome.question.as_str().into(),
            outcome.revision.into(),
            written(&outcome.outcome)?.into(),
        ];
        db.execute(statement(sql, values)).await?;
    }
    // Counted anew: a batch whose commit was not heard of is stored again.
    let sql = "UPDATE knowledge_evaluations SET asked = \
               (SELECT COUNT(*) FROM knowledge_evaluation_results r WHERE r.evaluation_id = $1 AND r.outcome IS NOT NULL) WHERE id = $1";
    db.execute(statement(sql, [id.into()])).await?;
    Ok(true)
}

/// Stores the figures of an evaluation that is done.
pub(crate) async fn end_evaluation(
    db: &impl Executor,
    id: &str,
    figures: Option<&Figures>,
    conditions: Option<&Conditions>,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_evaluations SET status = 'done', figures = $2, conditions = $3, ended_at = $4 \
               WHERE id = $1 AND status = 'running'";
    let values = [
        id.into(),
        figures.map(written).transpose()?.into(),
        conditions.map(written).transpose()?.into(),
        now.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Notes why an evaluation could not be done.
pub(crate) async fn fail_evaluation(
    db: &impl Executor,
    id: &str,
    reason: &str,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_evaluations SET status = 'failed', error = $2, ended_at = $3 \
               WHERE id = $1 AND status IN ('queued', 'running')";
    let values = [id.into(), reason.into(), now.into()];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// The result of a question that was asked.
#[derive(Debug, Clone)]
pub(crate) struct ResultRow {
    pub(crate) question_id: String,
    /// What the question says now.
    /// The revision that was asked, and that of now.
    pub(crate) revision: i64,
    pub(crate) revision_now: i64,
    pub(crate) outcome: Outcome,
}

impl ResultRow {
    /// Returns the place among the results: the worst first, those that do not count last.
    pub(crate) fn place(&self, k: usize) -> (i64, String) {
        let scores = self.outcome.scores(k);
        #[expect(clippy::cast_possible_truncation, reason = "1,000,000 at most")]
        let key = scores.map_or(2_000_000, |it| (it.ndcg * 1e6).round() as i64);
        (key, self.question_id.clone())
    }
}

#[derive(sqlx::FromRow)]
struct StoredResult {
    question_id: String,
    revision: i64,
    revision_now: i64,
    outcome: String,
}

/// Returns the results of all questions that an evaluation has asked.
pub(crate) async fn results_of(db: &impl Executor, id: &str) -> Result<Vec<ResultRow>, StoreError> {
    let sql = "SELECT r.question_id, COALESCE(r.revision, 0) AS revision, q.revision AS revision_now, r.outcome \
               FROM knowledge_evaluation_results r JOIN knowledge_questions q ON q.id = r.question_id \
               WHERE r.evaluation_id = $1 AND r.outcome IS NOT NULL ORDER BY r.question_id";
    let rows: Vec<StoredResult> = db.fetch_all(statement(sql, [id.into()])).await?;
    let parse = |row: StoredResult| {
        Ok(ResultRow {
            outcome: read(&row.outcome)?,
            question_id: row.question_id,
            revision: row.revision,
            revision_now: row.revision_now,
        })
    };
    rows.into_iter().map(parse).collect()
}
