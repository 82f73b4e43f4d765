//! The job that asks the questions of an evaluation.

use std::time::Duration;

use colloquy_base::fair_queue::{Claim, Priority};
use colloquy_index::fusion::FusionParameters;
use colloquy_kernel::jobs::{GivenUp, Job, RetryRule, Run, RunResult};
use serde::{Deserialize, Serialize};

use super::{Conditions, EvaluationStatus, Figures, Outcome, indexed_content, metrics, outcome};
use crate::{
    Bases,
    base::KnowledgeBase,
    index::IndexAway,
    outage,
    questions::{self, SavedQuestion},
    retrieval::{self, BaseQuery},
    store::{self, EvaluationRow, QuestionOutcome},
};

/// How many questions are asked before their outcomes are stored.
const AT_ONCE: i64 = 10;
/// How long it asks before others have their turn.
const TURN: Duration = Duration::from_secs(20);
/// When the index is searched again that cannot be searched now.
const INDEX_WAIT: Duration = Duration::from_secs(5);
/// How long a search waits for what was embedded a moment ago.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks the questions of an evaluation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Evaluate {
    /// The id of the evaluation.
    pub evaluation: String,
}

impl Job for Evaluate {
    type State = Bases;

    const KIND: &'static str = "bases.evaluate";

    const RETRY: RetryRule = RetryRule {
        attempts: 5,
        first: Duration::from_secs(2),
        most: Duration::from_secs(60),
    };

    const AT_ONCE: usize = 2;

    fn dedup_key(&self) -> Option<String> {
        Some(self.evaluation.clone())
    }

    async fn run(self, bases: Bases, run: Run) -> anyhow::Result<RunResult> {
        let ended = self.attempt(&bases, &run).await;
        if let Err(error) = &ended
            && error.downcast_ref::<IndexAway>().is_some()
        {
            return Ok(RunResult::Again(INDEX_WAIT));
        }
        outage::outlast(&bases, ended, || async { Ok(()) }).await
    }

    async fn give_up(self, bases: Bases, _run: Run, why: GivenUp) -> anyhow::Result<()> {
        let reason = match why {
            GivenUp::Failed => "the questions could not be asked; it was tried several times",
            GivenUp::Died => "asking the questions ended the server's process",
        };
        let now = bases.clock.now_ms();
        store::fail_evaluation(bases.store.db(), &self.evaluation, reason, now).await?;
        Ok(())
    }
}

impl Evaluate {
    async fn attempt(&self, bases: &Bases, run: &Run) -> anyhow::Result<RunResult> {
        let began = bases.clock.instant();
        let Some((base, row)) = self.begin(bases, run).await? else {
            return Ok(RunResult::Done);
        };
        let fusion = row.fusion()?;
        loop {
            let db = bases.store.db();
            let pending = store::unasked(db, &row.id, AT_ONCE).await?;
            if pending.is_empty() {
                self.end(bases, run, &base, &row).await?;
                return Ok(RunResult::Done);
            }
            let mut outcomes = Vec::with_capacity(pending.len());
            for question in questions::with_expected(db, pending).await? {
                outcomes.push(QuestionOutcome {
                    outcome: ask(bases, &base, &fusion, &question).await?,
                    question: question.id,
                    revision: question.revision,
                });
            }
            if !self.store(bases, run, &row, &outcomes).await? {
                return Ok(RunResult::Done);
            }
            let is_over = bases.clock.instant().saturating_duration_since(began) >= TURN;
            if is_over || bases.kernel.shutdown.is_cancelled() {
                return Ok(RunResult::Again(Duration::ZERO));
            }
        }
    }

    /// Marks the evaluation as running; returns `None` if it is done, or is gone, or will be with its base.
    async fn begin(
        &self,
        bases: &Bases,
        run: &Run,
    ) -> anyhow::Result<Option<(KnowledgeBase, EvaluationRow)>> {
        let db = bases.store.db();
        let Some((base, row)) = store::load_evaluation(db, &self.evaluation).await? else {
            return Ok(None);
        };
        if !row.status.is_unfinished() || base.deletion_requested_at.is_some() {
            return Ok(None);
        }
        if row.status == EvaluationStatus::Running {
            return Ok(Some((base, row)));
        }
        let conditions = Conditions {
            begin: indexed_content(bases, &base.id).await?,
            end: None,
        };
        let transaction = bases.store.begin().await?;
        if !run.holds(&transaction).await? {
            return Ok(None);
        }
        store::start_evaluation(&transaction, &row.id, &conditions).await?;
        transaction.commit().await?;
        Ok(Some((base, row.running(&conditions)?)))
    }

    /// Stores outcomes; returns false if this run may not, or the evaluation is gone.
    async fn store(
        &self,
        bases: &Bases,
        run: &Run,
        row: &EvaluationRow,
        outcomes: &[QuestionOutcome],
    ) -> anyhow::Result<bool> {
        let stored = run.insist(bases, || async move {
            let transaction = bases.store.begin().await?;
            if !run.holds(&transaction).await? {
                return Ok(false);
            }
            let is_there = store::set_outcomes(&transaction, &row.id, outcomes).await?;
            transaction.commit().await?;
            Ok(is_there)
        });
        stored.await
    }

    /// Ends the evaluation.
    async fn end(
        &self,
        bases: &Bases,
        run: &Run,
        base: &KnowledgeBase,
        row: &EvaluationRow,
    ) -> anyhow::Result<()> {
        let results = store::results_of(bases.store.db(), &row.id).await?;
        let figures = Figures::of(results.iter().map(|result| &result.outcome), row.k());
        let mut conditions = row.conditions()?;
        if let Some(conditions) = &mut conditions {
            conditions.end = Some(indexed_content(bases, &base.id).await?);
        }
        let now = bases.clock.now_ms();
        let (figures, conditions) = (figures.as_ref(), conditions.as_ref());
        let ended = run.insist(bases, || async move {
            let transaction = bases.store.begin().await?;
            if !run.holds(&transaction).await? {
                return Ok(());
            }
            store::end_evaluation(&transaction, &row.id, figures, conditions, now).await?;
            transaction.commit().await?;
            Ok(())
        });
        ended.await
    }
}

/// Asks a question as a search does, and looks where its documents are.
async fn ask(
    bases: &Bases,
    base: &KnowledgeBase,
    fusion: &FusionParameters,
    question: &SavedQuestion,
) -> anyhow::Result<Outcome> {
    if question.expected.is_empty() {
        return Ok(outcome(question, &[], None));
    }
    let (original, replaced) = question.asked.forms();
    let owner = store::tenant_of(bases.store.db(), &base.id).await?;
    let owner = owner
        .as_ref()
        .map_or("", |tenant| tenant.partner().as_str());
    let query = BaseQuery {
        original,
        replaced,
        // As deep as a search looks, and all of it: ranks behind the best are told, too.
        fusion: FusionParameters {
            top_k: fusion.depth(),
            search_multiplier: 1,
            ..*fusion
        },
        claim: Claim::new(Priority::Background, owner),
        patience: PATIENCE,
        embedding_patience: None,
        place: None,
        stream_texts: 0,
    };
    let answer = retrieval::search(bases, base, query).await?;
    let passages = answer.found.map(|found| found.passages);
    let ranked = metrics::documents(&passages.unwrap_or_default());
    Ok(outcome(question, &ranked, answer.without_vectors))
}
