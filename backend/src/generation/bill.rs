//! What a generation costs: its bound before, what was used after.

use std::sync::Arc;

use super::wire::{Request, Tally};
use crate::{
    accounts::ledger::{Amounts, Outcome, Reservation, Standing, Usage},
    providers::{Model, TokenUsage},
};

/// The most that a request can use of these models. A token of the input has at least a byte; what the character adds to
/// the input is not in the request yet.
pub(super) fn bound(request: &Request, added_bytes: u64, models: &[Arc<Model>]) -> Amounts {
    let input = request.bound_bytes().saturating_add(added_bytes);
    let most = models.iter().map(|model| {
        let answer = request
            .max_output_tokens
            .unwrap_or(model.settings.max_output_tokens);
        let output = answer.saturating_mul(request.choices.into());
        (
            input.saturating_add(output),
            model.cost_at_most(input, output),
        )
    });
    most.fold(Amounts::default(), |bound, (tokens, cost)| Amounts {
        tokens: bound.tokens.max(tokens),
        cost: bound.cost.max(cost),
        ..bound
    })
}

/// The reservation of a generation. One that is dropped while it runs is settled at its bound.
#[derive(Debug)]
pub(super) struct Bill {
    reservation: Reservation,
    model: Arc<Model>,
    /// What stands for the input where the model does not count, in bytes.
    input_bytes: u64,
}

impl Bill {
    /// A bill for the first model that will be asked.
    pub(super) fn new(reservation: Reservation, model: Arc<Model>) -> Self {
        Self {
            reservation,
            model,
            input_bytes: 0,
        }
    }

    /// A model is asked now.
    pub(super) fn begin(&mut self) {
        self.reservation.begin();
    }

    /// This model answers.
    pub(super) fn answers(&mut self, model: &Arc<Model>) {
        self.reservation.set_model(model.name());
        self.model = Arc::clone(model);
    }

    /// The size of the request as it goes out.
    pub(super) fn set_input_bytes(&mut self, bytes: u64) {
        self.input_bytes = bytes;
    }

    /// What was told, else what was produced, is what was used.
    pub(super) fn settle(self, tally: &Tally, outcome: Outcome) {
        let usage = self.usage(tally);
        self.reservation.settle(usage, outcome);
    }

    /// The limits as they stand with this reservation.
    pub(super) fn standing(&self) -> &Standing {
        self.reservation.standing()
    }

    /// The model gave nothing, so nothing was used.
    pub(super) fn settle_unused(self, outcome: Outcome) {
        self.reservation.settle(Usage::default(), outcome);
    }

    fn usage(&self, tally: &Tally) -> Usage {
        let tokens = tally.usage.unwrap_or_else(|| self.estimate(tally));
        Usage {
            input_tokens: tokens.input,
            cached_tokens: tokens.cached,
            output_tokens: tokens.output,
            reasoning_tokens: tokens.reasoning,
            cost: self.model.cost(tokens),
            ..Usage::default()
        }
    }

    /// A quarter of the bytes, rounded up; for a model that does not count, and for an answer that was cut short.
    pub(super) fn estimate(&self, tally: &Tally) -> TokenUsage {
        TokenUsage {
            input: self.input_bytes.div_ceil(4),
            output: tally.text_bytes.div_ceil(4),
            ..TokenUsage::default()
        }
    }
}
