//! The job of an analysis: asks a model until its answer fits the schemas, a few times at most.

use std::time::Duration;

use colloquy_accounts::begin_run;
use colloquy_config::EMBEDDED_MODEL;
use colloquy_kernel::jobs::{GivenUp, Job, RetryRule, Run, RunResult, is_database_away};
use serde::{Deserialize, Serialize};
use tokio::task::spawn_blocking;

use super::{
    asking::{self, Asking},
    failure::Failure,
    output::Output,
    question, stated,
    store::{self, OpenRow},
};
use crate::Analyses;

/// How often an analysis is begun: after a process that died in the middle, and after a failure that may pass.
const ATTEMPTS: u32 = 8;

/// Works on an analysis until it ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Analyze {
    /// The analysis' id.
    pub analysis: String,
}

impl Job for Analyze {
    type State = Analyses;

    const KIND: &'static str = "analyses.analyze";

    /// It gives up by itself, after [`ATTEMPTS`], and says so in its row: the worker does when its processes die.
    const RETRY: RetryRule = RetryRule {
        attempts: u32::MAX,
        first: Duration::from_secs(1),
        most: Duration::from_secs(60),
    };

    /// Few, since somebody who is called waits for the same models with more right.
    const AT_ONCE: usize = 12;

    fn dedup_key(&self) -> Option<String> {
        Some(self.analysis.clone())
    }

    async fn run(self, analyses: Analyses, run: Run) -> anyhow::Result<RunResult> {
        match self.attempt(&analyses, &run).await {
            // An outage says nothing about the analysis: it costs no attempt.
            Err(error) if is_database_away(&error) => {
                let what = "working on analyses, which wait for the end of an outage";
                analyses.store.complain(what, &format!("{error:#}"));
                Ok(RunResult::after_outage())
            }
            result => result,
        }
    }

    async fn give_up(self, analyses: Analyses, run: Run, _why: GivenUp) -> anyhow::Result<()> {
        match store::load_open(analyses.store.db(), &self.analysis).await? {
            Some(row) => end(&analyses, &run, &row, Err(Failure::Interrupted)).await,
            None => Ok(()),
        }
    }
}

impl Analyze {
    async fn attempt(&self, analyses: &Analyses, run: &Run) -> anyhow::Result<RunResult> {
        let Some(row) = store::load_open(analyses.store.db(), &self.analysis).await? else {
            return Ok(RunResult::Done);
        };
        let outcome = match run.attempt > ATTEMPTS {
            true => Err(Failure::Interrupted.into()),
            false => analyze(analyses, run, &row).await,
        };
        let outcome = run.outcome(outcome, ATTEMPTS)?;
        end(analyses, run, &row, outcome).await?;
        Ok(RunResult::Done)
    }
}

/// Stores how an analysis ended.
async fn end(
    analyses: &Analyses,
    run: &Run,
    row: &OpenRow,
    outcome: Result<Output, Failure>,
) -> anyhow::Result<()> {
    let (id, now) = (row.id.as_str(), analyses.clock.now_ms());
    let reason = outcome.as_ref().err().map(Failure::reason);
    let (stored, reason) = (&outcome, &reason);
    let tenant = &row.tenant();
    run.insist(analyses, || async move {
        let transaction = begin_run(analyses, tenant, run).await?;
        // What is reserved may have been settled since the row was read.
        if let Some(row) = store::load_open(&transaction, id).await? {
            asking::settle_lost(analyses, &transaction, &row).await?;
        }
        let outcome = match (stored, reason) {
            (Err(_), Some(reason)) => Err(reason),
            (Ok(output), _) => Ok(output),
            (Err(_), None) => anyhow::bail!("a failure has a reason"),
        };
        store::end(&transaction, row, outcome, now).await?;
        transaction.commit().await?;
        Ok(())
    })
    .await?;
    let code = match &outcome {
        Ok(_) => "completed",
        Err(failure) => {
            let code = failure.code();
            tracing::info!(analysis = id, code, "an analysis failed");
            code
        }
    };
    metrics::counter!("colloquy_analyses_ended_total", "outcome" => code).increment(1);
    metrics::histogram!("colloquy_analysis_seconds").record((now - row.begun_at) as f64 / 1_000.0);
    Ok(())
}

/// The result. What the client is told about is a [`Failure`].
async fn analyze(analyses: &Analyses, run: &Run, row: &OpenRow) -> anyhow::Result<Output> {
    let input = row.input()?;
    let model = analyses.model();
    if model.name() == EMBEDDED_MODEL {
        // It computes, for as long as the longest input takes.
        return Ok(spawn_blocking(move || stated::analyze(&input)).await?);
    }
    if row.reservation.is_some() {
        let transaction = begin_run(analyses, &row.tenant(), run).await?;
        asking::settle_lost(analyses, &transaction, row).await?;
        store::set_asked(&transaction, &row.id, row.asked, None).await?;
        transaction.commit().await?;
    }
    let asking = Asking {
        analyses,
        run,
        row,
        model,
    };
    let (asked, most) = (row.asked, i64::from(analyses.config.analyses.max_questions));
    question::until_it_fits(&input, asked, most, asking).await
}
