//! What the client gets in one body, and what streams and bodies have in common.

use std::{convert::Infallible, time::Duration};

use axum::{
    Json,
    body::Body,
    response::{IntoResponse as _, Response},
};
use bytes::BytesMut;
use colloquy_accounts::ledger::Outcome;
use colloquy_base::clock::runtime_now;
use colloquy_formats::{self as formats, Ending, Tally};
use colloquy_http::event_stream;
use colloquy_providers::{Model, ProviderError};
use futures_util::stream;
use serde_json::Value;

use super::{bill::Bill, error::AnswerError, generate::StartedRequest, prepare::Prepared};
use crate::Generation;

/// Answers in one piece.
///
/// # Errors
/// The failure of the models; 503 when the server stops before the answer is there, or cannot store it.
pub(super) async fn whole(
    generation: &Generation,
    begun: StartedRequest,
) -> Result<Response, AnswerError> {
    let StartedRequest {
        prepared,
        mut head,
        storing,
    } = begun;
    let Prepared {
        came_at,
        seal,
        request,
        mut dispatch,
        mut bill,
        retrieval,
        ..
    } = prepared;
    let asked = runtime_now();
    bill.begin();
    // A client that hangs up drops all of this; nobody knows then what was produced, so the bound is settled. The same goes
    // for a server that stops.
    let answered = tokio::select! {
        biased;
        answered = dispatch.whole() => answered,
        () = generation.kernel.drain_over.cancelled() => return Err(AnswerError::Stopping),
    };
    let (model, answer) = match answered {
        Ok(answered) => answered,
        Err(error) => {
            settle_failed(generation, bill, &error);
            return Err(error.into());
        }
    };
    let waited = asked.elapsed();
    bill.answers(&model);
    model.name().clone_into(&mut head.model);
    let told = if request.compacts {
        let sealed = |summary: &str| seal?.seal(summary);
        formats::compaction(&request, &head, answer, sealed)
    } else {
        formats::whole(
            &request,
            &head,
            retrieval.as_ref(),
            answer,
            seconds(generation),
        )
    };
    let (mut answer, mut tally) = match told {
        Ok(answer) => answer,
        Err(error) => {
            bill.settle_unused(Outcome::Failed);
            return Err(AnswerError::NoAnswer(error));
        }
    };
    if request.compacts {
        tally.usage.get_or_insert(bill.estimate(&tally));
        formats::put_compaction_usage(&mut answer, &tally);
    }
    bill.settle(&tally, outcome(tally.ending));
    if let Some(storing) = storing {
        storing.keep(generation, &head.id, answer.clone()).await?;
    }
    count_added(&model, came_at.elapsed(), waited);
    Ok(Json(answer).into_response())
}

/// The events of a stored response, those behind a number. Each is written when its turn comes.
pub(super) fn replayed(response: &Value, starting_after: Option<u64>) -> Response {
    // Events are numbered from 0 on; what ends the stream has no number.
    let mut frames = formats::replay(response);
    let told = starting_after.map_or(0, |number| {
        usize::try_from(number).map_or(usize::MAX, |number| number.saturating_add(1))
    });
    let rest = frames.split_off(told.min(frames.len().saturating_sub(1)));
    let written = rest.into_iter().map(|frame| {
        let mut out = BytesMut::new();
        frame.write(&mut out);
        Ok::<_, Infallible>(out.freeze())
    });
    event_stream(Body::from_stream(stream::iter(written)))
}

/// Settles what no model answered: with what the last one says it took all the same.
fn settle_failed(generation: &Generation, mut bill: Bill, error: &ProviderError) {
    let Some(used) = error.used() else {
        return bill.settle_unused(Outcome::Failed);
    };
    if let Some(model) = generation.providers.models.get(&error.provider) {
        bill.answers(model);
    }
    bill.settle(&Tally::of(used), Outcome::Failed);
}

/// What an ending means for the accounts.
pub(super) fn outcome(ending: Option<Ending>) -> Outcome {
    match ending {
        Some(Ending::Completed) => Outcome::Completed,
        Some(Ending::Incomplete) => Outcome::Incomplete,
        Some(Ending::Failed) | None => Outcome::Failed,
    }
}

/// The time as the public APIs write it.
pub(super) fn seconds(generation: &Generation) -> i64 {
    generation.clock.now_ms() / 1_000
}

/// How much of the time until the first content, or until a whole answer, was ours.
pub(super) fn count_added(model: &Model, total: Duration, waited: Duration) {
    let name = model.name().to_owned();
    metrics::histogram!("colloquy_generation_added_seconds", "model" => name)
        .record(total.saturating_sub(waited));
}
