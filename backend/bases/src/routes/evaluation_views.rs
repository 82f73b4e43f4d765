//! What is answered of evaluations.

use std::collections::HashMap;

use colloquy_base::clock::rfc3339;
use colloquy_store::StoreError;
use serde::Serialize;
use utoipa::ToSchema;

use super::tuning::{self, ConfigView};
use crate::{
    evaluating::{
        Compared, ComparedResult, Conditions, EvaluationStatus, Figures, IndexedContent, Outcome,
        Scores,
    },
    store::EvaluationRow,
};

/// An evaluation of the saved questions of a knowledge base.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EvaluationView {
    /// The id.
    id: String,
    /// How far it is.
    status: EvaluationStatus,
    /// The cut-off: so many documents of each ranking count.
    k: usize,
    /// Number of saved questions when it began.
    questions: u64,
    /// Number of those that were asked.
    asked: u64,
    /// What held for the searches.
    config: ConfigView,
    /// What could be found when it began; null before the first question.
    content: Option<IndexedContentView>,
    /// True if that was no longer so when it ended, so that its questions may not have been asked of the same content; null before.
    content_changed: Option<bool>,
    /// The figures of all questions; null until it is done, or if no question expects a document any more.
    figures: Option<FiguresView>,
    /// Why it failed; null otherwise.
    error: Option<String>,
    /// When it was begun. RFC 3339.
    created_at: String,
    /// When it ended. RFC 3339; null before.
    ended_at: Option<String>,
}

/// What can be found in a knowledge base.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IndexedContentView {
    /// Documents that can be found.
    documents: u64,
    /// The chunks of these.
    chunks: u64,
    /// When the newest of these was embedded. RFC 3339; null if there is none.
    embedded_at: Option<String>,
}

impl From<&IndexedContent> for IndexedContentView {
    fn from(content: &IndexedContent) -> Self {
        Self {
            documents: content.documents,
            chunks: content.chunks,
            embedded_at: content.embedded_at_ms.map(rfc3339),
        }
    }
}

/// Means over questions, from 0 to 1.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FiguresView {
    /// Number of questions that count: those that expect a document.
    questions: u64,
    /// Number of questions that do not count, since all of their documents were deleted.
    without_documents: u64,
    /// Number of questions that were asked without vectors, though the knowledge base has some.
    without_vectors: u64,
    /// Mean recall at `k`.
    recall: f64,
    /// Mean normalized discounted cumulative gain at `k`.
    ndcg: f64,
    /// Mean reciprocal rank within `k`.
    mrr: f64,
}

impl From<Figures> for FiguresView {
    fn from(figures: Figures) -> Self {
        Self {
            questions: figures.questions,
            without_documents: figures.without_documents,
            without_vectors: figures.without_vectors,
            recall: figures.recall,
            ndcg: figures.ndcg,
            mrr: figures.mrr,
        }
    }
}

impl EvaluationView {
    /// Describes an evaluation.
    pub(super) fn of(row: &EvaluationRow) -> Result<Self, StoreError> {
        let conditions = row.conditions()?;
        let changed = |it: &Conditions| it.end.as_ref().map(|end| *end != it.begin);
        let begin = conditions.as_ref().map(|it| &it.begin);
        let profile = begin.and_then(|begin| begin.embedding_profile_name.clone());
        Ok(Self {
            id: row.id.clone(),
            status: row.status,
            k: row.k(),
            questions: row.questions.unsigned_abs(),
            asked: row.asked.unsigned_abs(),
            config: tuning::config(&row.fusion()?, profile),
            content: begin.map(Into::into),
            content_changed: conditions.as_ref().and_then(changed),
            figures: row.figures()?.map(Into::into),
            error: row.error.clone(),
            created_at: rfc3339(row.created_at),
            ended_at: row.ended_at.map(rfc3339),
        })
    }
}

/// A page of evaluations.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EvaluationPage {
    /// The evaluations, newest first.
    pub(super) evaluations: Vec<EvaluationView>,
    /// The cursor of the next page; null on the last one.
    pub(super) next_cursor: Option<String>,
}

/// An evaluation, and the one before.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ComparedEvaluation {
    /// The evaluation.
    evaluation: EvaluationView,
    /// The newest evaluation before it that is done and has the same `k`; null if there is none.
    previous: Option<EvaluationView>,
    /// The figures of the questions that both have asked; null if there are none.
    common: Option<CommonFigures>,
}

/// The figures of the questions that two evaluations have asked, without those whose texts or documents were changed between them, or that were deleted
/// since.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CommonFigures {
    /// Those of the evaluation before.
    before: FiguresView,
    /// Those of this evaluation.
    now: FiguresView,
}

impl ComparedEvaluation {
    /// Describes a comparison.
    pub(super) fn of(compared: &Compared) -> Result<Self, StoreError> {
        let previous = compared.previous.as_ref();
        let common = compared.common().map(|(before, now)| CommonFigures {
            before: before.into(),
            now: now.into(),
        });
        Ok(Self {
            evaluation: EvaluationView::of(&compared.row)?,
            previous: previous.map(EvaluationView::of).transpose()?,
            common,
        })
    }
}

/// How well the ranking of a question finds its documents, from 0 to 1.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScoresView {
    /// Recall at `k`.
    recall: f64,
    /// Normalized discounted cumulative gain at `k`.
    ndcg: f64,
    /// 1 over the rank of the first expected document, or 0 if none is within `k`.
    reciprocal_rank: f64,
}

impl From<Scores> for ScoresView {
    fn from(scores: Scores) -> Self {
        Self {
            recall: scores.recall,
            ndcg: scores.ndcg,
            reciprocal_rank: scores.reciprocal_rank,
        }
    }
}

/// Where an expected document was found.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoundDocumentView {
    /// The document.
    document_id: String,
    /// Its name now; null if it was deleted since.
    document_name: Option<String>,
    /// Its rank among the documents, from 1, also behind `k`; null if the search did not find it.
    rank: Option<usize>,
    /// The same in the evaluation before; null also if the results cannot be compared.
    previous_rank: Option<usize>,
}

/// The result of a question.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuestionResultView {
    /// The saved question.
    question_id: String,
    /// What the user says, as the question is now.
    user_message: String,
    /// True if the question was changed since.
    is_changed: bool,
    /// The scores; null if it expected no document any more.
    scores: Option<ScoresView>,
    /// The scores in the evaluation before; null if that did not ask this question, or the question or its documents were changed between them.
    previous: Option<ScoresView>,
    /// The documents that it expected.
    expected: Vec<FoundDocumentView>,
    /// Why it was asked without vectors, though the knowledge base has some; null otherwise.
    without_vectors: Option<String>,
}

impl QuestionResultView {
    /// Describes a result. `names` are those of documents, `texts` those of questions, both by id.
    pub(super) fn of(
        compared: &ComparedResult,
        k: usize,
        names: &HashMap<String, String>,
        texts: &HashMap<String, String>,
    ) -> Self {
        let ComparedResult { result, previous } = compared;
        let rank_in = |outcome: &Outcome, id: &str| {
            let mut expected = outcome.expected.iter();
            let found = expected.find(|(known, _)| known == id);
            found.and_then(|(_, rank)| *rank)
        };
        let expected = result.outcome.expected.iter().map(|(id, rank)| {
            let previous = previous.as_ref();
            FoundDocumentView {
                document_name: names.get(id).cloned(),
                rank: *rank,
                previous_rank: previous.and_then(|outcome| rank_in(outcome, id)),
                document_id: id.clone(),
            }
        });
        let previous = previous.as_ref().and_then(|outcome| outcome.scores(k));
        Self {
            question_id: result.question_id.clone(),
            user_message: texts.get(&result.question_id).cloned().unwrap_or_default(),
            is_changed: result.revision != result.revision_now,
            scores: result.outcome.scores(k).map(Into::into),
            previous: previous.map(Into::into),
            expected: expected.collect(),
            without_vectors: result.outcome.without_vectors.clone(),
        }
    }
}

/// A page of results.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuestionResultPage {
    /// The results, worst first.
    pub(super) results: Vec<QuestionResultView>,
    /// The cursor of the next page; null on the last one.
    pub(super) next_cursor: Option<String>,
}
