//! The job that delivers: one attempt a run.

use std::time::Duration;

use bytes::Bytes;
use colloquy_fetch::{Bounds, FetchError, Request};
use colloquy_kernel::jobs::{GivenUp, Job, RetryRule, Run, RunResult};
use reqwest::{
    Method, StatusCode,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};
use serde::{Deserialize, Serialize};
use url::Url;

use super::{
    sign::signature,
    store::{self, Attempt, Delivery},
};
use crate::Webhooks;

/// Sends one delivery of the outbox until it succeeded or used up its attempts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Deliver {
    /// The delivery's id.
    pub delivery: String,
}

impl Job for Deliver {
    type State = Webhooks;

    const KIND: &'static str = "webhook.deliver";

    /// For our own failures (database, process); the receiver's are counted in the outbox.
    const RETRY: RetryRule = RetryRule {
        attempts: 20,
        first: Duration::from_secs(2),
        most: Duration::from_secs(300),
    };

    const AT_ONCE: usize = 32;

    fn dedup_key(&self) -> Option<String> {
        Some(self.delivery.clone())
    }

    async fn run(self, webhooks: Webhooks, run: Run) -> anyhow::Result<RunResult> {
        let Some(delivery) = store::load(webhooks.store.db(), &self.delivery).await? else {
            return Ok(RunResult::Done);
        };
        if !delivery.is_pending() {
            return Ok(RunResult::Done);
        }
        let started_at = webhooks.clock.now_ms();
        let begun = webhooks.clock.instant();
        let result = post(&webhooks, &delivery).await?;
        let attempt = Attempt {
            started_at,
            duration_ms: (webhooks.clock.instant() - begun).as_millis() as i64,
            result,
        };
        run.insist(&webhooks, || {
            record(&webhooks, &run, &delivery.id, &attempt)
        })
        .await
    }

    async fn give_up(self, webhooks: Webhooks, run: Run, _why: GivenUp) -> anyhow::Result<()> {
        let transaction = webhooks.store.begin().await?;
        if run.holds(&transaction).await? {
            let now = webhooks.clock.now_ms();
            store::give_up(&transaction, &self.delivery, now).await?;
            transaction.commit().await?;
        }
        Ok(())
    }
}

/// What the receiver answered, or why it did not. An error of the function itself is ours.
async fn post(
    webhooks: &Webhooks,
    delivery: &Delivery,
) -> anyhow::Result<Result<StatusCode, FetchError>> {
    let config = &webhooks.config.webhooks;
    let timestamp = webhooks.clock.now().as_second();
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut add = |name: &'static str, value: String| -> anyhow::Result<()> {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_str(&value)?,
        );
        Ok(())
    };
    add("webhook-id", delivery.id.clone())?;
    add("webhook-timestamp", timestamp.to_string())?;
    if let Some(secret) = &config.secret {
        let value = signature(secret, &delivery.id, timestamp, &delivery.payload);
        add("webhook-signature", value)?;
    }
    let request = Request {
        method: Method::POST,
        url: Url::parse(&delivery.url)?,
        headers,
        body: Bytes::from(delivery.payload.clone()),
    };
    let bounds = Bounds {
        time: Duration::from_millis(config.timeout_ms),
        bytes: 0,
        redirects: 0,
        https_only: true,
    };
    let answer = webhooks.fetcher.send(request, bounds).await;
    Ok(answer.map(|answer| answer.status))
}

/// Writes the attempt and what follows from it, if this run still holds the lease.
async fn record(
    webhooks: &Webhooks,
    run: &Run,
    id: &str,
    attempt: &Attempt,
) -> anyhow::Result<RunResult> {
    let config = &webhooks.config.webhooks;
    let transaction = webhooks.store.begin().await?;
    if !run.holds(&transaction).await? {
        return Ok(RunResult::Done);
    }
    // Read again: a resend may have begun a new round in between.
    let Some(delivery) = store::load(&transaction, id).await? else {
        return Ok(RunResult::Done);
    };
    let succeeded = matches!(attempt.result, Ok(StatusCode::OK));
    let tried = u32::try_from(delivery.round_attempts + 1).unwrap_or(u32::MAX);
    let now = webhooks.clock.now_ms();
    let (progress, next) = if succeeded {
        (store::Progress::Succeeded, RunResult::Done)
    } else if tried > config.retries {
        (store::Progress::Failed, RunResult::Done)
    } else {
        let wait = RetryRule {
            attempts: config.retries + 1,
            first: Duration::from_millis(config.first_retry_ms),
            most: Duration::from_secs(3600),
        }
        .wait(tried);
        let at = now + wait.as_millis() as i64;
        (store::Progress::RetryAt(at), RunResult::Again(wait))
    };
    store::record(&transaction, &delivery, attempt, progress, now).await?;
    transaction.commit().await?;
    let outcome = if succeeded { "success" } else { "failure" };
    metrics::counter!("colloquy_webhook_attempts_total", "outcome" => outcome).increment(1);
    Ok(next)
}
