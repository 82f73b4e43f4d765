//! Evaluations: how well the saved questions of a base find the documents that answer them.
//!
//! An evaluation asks all questions that the base has when it begins, in the background, as a search asks them, and keeps at which rank each expected
//! document stood. The newest evaluations are kept, so that the figures before a change and behind it can be compared, question by question.

mod job;
mod metrics;

use std::collections::HashMap;

use colloquy_accounts::{
    Tenant,
    storage::{self, Sum},
};
use colloquy_index::fusion::FusionParameters;
use colloquy_kernel::jobs;
use colloquy_store::{StoreError, Transaction, stored};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

pub use self::job::Evaluate;
pub(crate) use self::metrics::Scores;
use super::{
    Bases,
    base::KnowledgeBase,
    budget,
    error::BaseError,
    questions::SavedQuestion,
    rows,
    store::{self, EvaluationRow, ResultRow},
};

/// The most evaluations of a base that are kept; the oldest ones go.
pub(crate) const KEPT: u64 = 20;
/// How many documents of each ranking count unless a request says otherwise, and the most.
pub(crate) const CUTOFF: u64 = 10;
pub(crate) const MOST_CUTOFF: u64 = 50;

/// How far an evaluation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EvaluationStatus {
    /// Waits for a worker.
    Queued,
    /// Asks its questions.
    Running,
    /// Has asked all of them.
    Done,
    /// Could not ask them, for the reason in `error`.
    Failed,
}

stored!(pub(crate) EvaluationStatus: Queued = "queued", Running = "running", Done = "done", Failed = "failed");

impl EvaluationStatus {
    /// True if questions are still to be asked.
    pub(crate) fn is_unfinished(self) -> bool {
        matches!(self, Self::Queued | Self::Running)
    }
}

/// What an index held for a base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IndexedContent {
    /// The model that made the vectors; `words` where there are none, null where nothing is embedded.
    pub(crate) embedding_profile_name: Option<String>,
    /// Documents that can be found.
    pub(crate) documents: u64,
    /// The chunks of these.
    pub(crate) chunks: u64,
    /// When the newest of these was embedded, in milliseconds since 1970.
    pub(crate) embedded_at_ms: Option<i64>,
}

/// What an index held for a base while questions were asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Conditions {
    pub(crate) begin: IndexedContent,
    /// The same at the end; null before.
    pub(crate) end: Option<IndexedContent>,
}

/// The figures of questions.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Questions that count: they expect a document.
    pub(crate) questions: u64,
    /// Questions all of whose documents were deleted.
    pub(crate) without_documents: u64,
    /// Questions that were asked without vectors, though the base has some.
    pub(crate) without_vectors: u64,
    pub(crate) recall: f64,
    pub(crate) ndcg: f64,
    pub(crate) mrr: f64,
}

impl Figures {
    /// Returns the figures of outcomes; `None` if none of them counts.
    pub(crate) fn of<'a>(
        outcomes: impl IntoIterator<Item = &'a Outcome>,
        k: usize,
    ) -> Option<Self> {
        let (mut scores, mut without_documents, mut without_vectors) = (Vec::new(), 0, 0);
        for outcome in outcomes {
            without_vectors += u64::from(outcome.without_vectors.is_some());
            match outcome.scores(k) {
                Some(found) => scores.push(found),
                None => without_documents += 1,
            }
        }
        let mean = Scores::mean(&scores)?;
        Some(Self {
            questions: scores.len() as u64,
            without_documents,
            without_vectors,
            recall: mean.recall,
            ndcg: mean.ndcg,
            mrr: mean.reciprocal_rank,
        })
    }
}

/// Where the documents of a question were found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Id and rank of each expected document; no rank for one that was not found.
    pub(crate) expected: Vec<(String, Option<usize>)>,
    /// Why the question was asked without vectors, if the base has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) without_vectors: Option<String>,
}

impl Outcome {
    /// Returns the scores; `None` if the question expects no document any more.
    pub(crate) fn scores(&self, k: usize) -> Option<Scores> {
        let ranks: Vec<Option<usize>> = self.expected.iter().map(|(_, rank)| *rank).collect();
        Scores::of(&ranks, k)
    }

    /// True if the same documents were expected.
    fn expects_the_same(&self, other: &Self) -> bool {
        let ids = |outcome: &Self| -> Vec<String> {
            let mut ids: Vec<String> = outcome.expected.iter().map(|(id, _)| id.clone()).collect();
            ids.sort_unstable();
            ids
        };
        ids(self) == ids(other)
    }
}

/// A result with that of the evaluation before, if that asked the same.
#[derive(Debug, Clone)]
pub(crate) struct ComparedResult {
    pub(crate) result: ResultRow,
    pub(crate) previous: Option<Outcome>,
}

/// An evaluation, and the one before.
#[derive(Debug)]
pub(crate) struct Compared {
    pub(crate) row: EvaluationRow,
    /// The newest one before that is done and has the same cut-off.
    pub(crate) previous: Option<EvaluationRow>,
    /// The results, worst first.
    pub(crate) results: Vec<ComparedResult>,
}

impl Compared {
    /// Returns the figures of the questions that both have asked alike, before and now.
    pub(crate) fn common(&self) -> Option<(Figures, Figures)> {
        let k = self.row.k();
        let both = self
            .results
            .iter()
            .filter_map(|it| Some((it.previous.as_ref()?, &it.result.outcome)));
        let (before, now): (Vec<&Outcome>, Vec<&Outcome>) = both.unzip();
        Figures::of(before, k).zip(Figures::of(now, k))
    }
}

/// What an evaluation is to do.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewEvaluation {
    pub(crate) cutoff: u64,
    pub(crate) fusion: FusionParameters,
}

/// Begins an evaluation of a base.
pub(crate) async fn begin(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    new: &NewEvaluation,
) -> Result<EvaluationRow, BaseError> {
    let transaction = budget::begin(bases, &base.id).await?;
    if store::has_unfinished_evaluation(&transaction, &base.id).await? {
        let message = "An evaluation of the knowledge base is in progress";
        return Err(BaseError::Conflict(message));
    }
    let questions = store::count_questions(&transaction, &base.id).await?;
    if questions == 0 {
        let message = "The knowledge base has no saved questions";
        return Err(BaseError::Conflict(message));
    }
    let id = bases.clock.new_id();
    let row = EvaluationRow::new(id, new, questions, bases.clock.now_ms())?;
    store::insert_evaluation(&transaction, &base.id, &row).await?;
    let job = Evaluate {
        evaluation: row.id.clone(),
    };
    jobs::enqueue(bases, &transaction, Some(tenant.partner()), &job).await?;
    let removed = store::delete_old_evaluations(&transaction, &base.id, KEPT).await?;
    release(&transaction, tenant, removed).await?;
    rows::charge(bases, &transaction, tenant, rows::EVALUATION_BYTES).await?;
    transaction.commit().await?;
    bases.kernel.jobs.wake();
    Ok(row)
}

/// Deletes an evaluation with its results. One that is not done stops.
pub(crate) async fn delete(
    bases: &Bases,
    tenant: &Tenant,
    base: &KnowledgeBase,
    id: &str,
) -> Result<(), BaseError> {
    let transaction = budget::begin(bases, &base.id).await?;
    if !store::delete_evaluation(&transaction, &base.id, id).await? {
        return Err(BaseError::NotFound("Evaluation"));
    }
    release(&transaction, tenant, 1).await?;
    transaction.commit().await?;
    Ok(())
}

/// Counts so many evaluations no more.
async fn release(
    transaction: &Transaction,
    tenant: &Tenant,
    evaluations: u64,
) -> Result<(), StoreError> {
    let bytes = storage::counted(evaluations * rows::EVALUATION_BYTES);
    let partner = tenant.partner().as_str();
    storage::release(transaction, partner, Sum::Texts, bytes).await
}

/// Returns an evaluation, its results with those before, and the one before.
pub(crate) async fn compare(
    bases: &Bases,
    base: &KnowledgeBase,
    id: &str,
) -> Result<Compared, BaseError> {
    let db = bases.store.db();
    let row = store::find_evaluation(db, &base.id, id).await?;
    let row = row.ok_or(BaseError::NotFound("Evaluation"))?;
    let previous = store::evaluation_before(db, &base.id, &row).await?;
    let mut results = store::results_of(db, &row.id).await?;
    let before = match &previous {
        Some(previous) => store::results_of(db, &previous.id).await?,
        None => Vec::new(),
    };
    let before: HashMap<&str, &ResultRow> = before
        .iter()
        .map(|result| (result.question_id.as_str(), result))
        .collect();
    let k = row.k();
    // The worst first; what does not count stands at the end.
    results.sort_by_cached_key(|result| result.place(k));
    let results = results.into_iter().map(|result| {
        let same = before.get(result.question_id.as_str()).filter(|it| {
            it.revision == result.revision && it.outcome.expects_the_same(&result.outcome)
        });
        ComparedResult {
            previous: same.map(|it| it.outcome.clone()),
            result,
        }
    });
    Ok(Compared {
        results: results.collect(),
        row,
        previous,
    })
}

/// Returns what the index of a base holds.
async fn indexed_content(bases: &Bases, base: &str) -> Result<IndexedContent, StoreError> {
    let db = bases.store.db();
    let counts = store::embedding_counts(db, base).await?;
    let profile = match store::profile_of(db, base).await? {
        Some(id) => store::load_profile(db, id).await?,
        None => None,
    };
    Ok(IndexedContent {
        embedding_profile_name: profile.map(|profile| profile.name),
        documents: counts.embedded.unsigned_abs(),
        chunks: counts.chunks.unwrap_or_default().unsigned_abs(),
        embedded_at_ms: counts.embedded_at,
    })
}

/// Returns the outcome of a question whose documents were ranked.
fn outcome(question: &SavedQuestion, ranked: &[Uuid], without_vectors: Option<&str>) -> Outcome {
    let rank_of = |id: &str| {
        let place = ranked.iter().position(|ranked| ranked.to_string() == id);
        place.map(|place| place + 1)
    };
    let expected = question.expected.iter().map(|document| {
        let rank = rank_of(&document.id);
        (document.id.clone(), rank)
    });
    Outcome {
        expected: expected.collect(),
        without_vectors: without_vectors.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(ranks: &[(&str, Option<usize>)]) -> Outcome {
        let expected = ranks.iter().map(|(id, rank)| ((*id).to_owned(), *rank));
        Outcome {
            expected: expected.collect(),
            without_vectors: None,
        }
    }

    #[test]
    fn questions_that_expect_nothing_do_not_count() {
        let outcomes = [
            found(&[("a", Some(1))]),
            found(&[]),
            Outcome {
                without_vectors: Some("the embedder failed".to_owned()),
                ..found(&[("b", None)])
            },
        ];
        let figures = Figures::of(&outcomes, 10).unwrap();
        let expected = Figures {
            questions: 2,
            without_documents: 1,
            without_vectors: 1,
            recall: 0.5,
            ndcg: 0.5,
            mrr: 0.5,
        };
        assert_eq!(figures, expected);
        assert_eq!(Figures::of(&[found(&[])], 10), None);
    }

    #[test]
    fn results_are_compared_where_the_same_is_expected() {
        let one = found(&[("a", Some(1)), ("b", None)]);
        assert!(one.expects_the_same(&found(&[("b", Some(4)), ("a", Some(2))])));
        assert!(!one.expects_the_same(&found(&[("a", Some(1))])));
    }
}
