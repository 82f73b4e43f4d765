//! What a generation costs: its bound before, what was used after.

use std::sync::Arc;

use colloquy_accounts::ledger::{Amounts, Limits, Measure, Outcome, Reservation, Standing};
use colloquy_formats::{ModelApi, Request, Tally, TokenUsage};
use colloquy_providers::Model;

/// What is reserved for a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    /// The input's tokens at most: a token has at least a byte. What the character adds is in it.
    input: u64,
    /// The answers that are asked for.
    choices: u64,
    /// The limit of each that the client sets.
    max_output_tokens: Option<u64>,
}

impl Bounds {
    /// Of this request, to which the character adds so much.
    pub(super) fn new(request: &Request, added_bytes: u64) -> Self {
        Self {
            input: request.bound_bytes().saturating_add(added_bytes),
            choices: request.choices.into(),
            max_output_tokens: request.max_output_tokens,
        }
    }

    /// The most that these models can use.
    pub(super) fn most(&self, models: &[Arc<Model>]) -> Amounts {
        self.with_answers(models, |model| model.settings.max_output_tokens)
    }

    /// The least that they can be asked with: an answer without a limit of its own makes do with what a quota has left.
    pub(super) fn least(&self, models: &[Arc<Model>]) -> Amounts {
        self.with_answers(models, least_output)
    }

    fn with_answers(&self, models: &[Arc<Model>], tokens: impl Fn(&Model) -> u64) -> Amounts {
        let each = models.iter().map(|model| {
            let answer = self.max_output_tokens.unwrap_or_else(|| tokens(model));
            let output = answer.saturating_mul(self.choices);
            Amounts::default()
                .with(Measure::Tokens, self.input.saturating_add(output))
                .with(Measure::Cost, model.cost_at_most(self.input, output))
        });
        each.fold(Amounts::default(), |bound, of_model| {
            bound.zip(of_model, u64::max)
        })
    }

    /// The most output tokens of all answers of this model. `reserved` is what the quota has a limit of.
    fn most_output(&self, reserved: Option<Amounts>, model: &Model) -> u64 {
        let each = match (self.max_output_tokens, reserved) {
            (Some(asked), _) => asked,
            (None, Some(reserved)) => self.output_within(reserved, model),
            (None, None) => model.settings.max_output_tokens,
        };
        each.saturating_mul(self.choices)
    }

    /// The limit of an answer of this model for which so much is reserved.
    pub(super) fn output_within(&self, reserved: Amounts, model: &Model) -> u64 {
        let tokens = reserved.of(Measure::Tokens);
        let tokens = tokens.saturating_sub(self.input);
        let paid = model.output_within(reserved.of(Measure::Cost), self.input);
        let most = model.settings.max_output_tokens;
        let answer = tokens
            .min(paid.unwrap_or(u64::MAX))
            .checked_div(self.choices);
        answer.unwrap_or(most).clamp(least_output(model), most)
    }

    /// Estimates usage from bytes, a quarter of them rounded up. The output is at most what the answers of the model may have.
    fn estimate(
        &self,
        input_bytes: u64,
        output_bytes: u64,
        reserved: Option<Amounts>,
        model: &Model,
    ) -> TokenUsage {
        TokenUsage {
            input: input_bytes.div_ceil(4),
            output: output_bytes
                .div_ceil(4)
                .min(self.most_output(reserved, model)),
            ..TokenUsage::default()
        }
    }
}

/// The lowest limit that a model takes: that of the public API of responses, and one token elsewhere.
fn least_output(model: &Model) -> u64 {
    let least = match model.chat.api() {
        ModelApi::Chat => 1,
        ModelApi::Responses => 16,
    };
    least.min(model.settings.max_output_tokens)
}

/// The reservation of a generation. One that is dropped while it runs is settled at its bound.
#[derive(Debug)]
pub(super) struct Bill {
    reservation: Reservation,
    model: Arc<Model>,
    /// What it was reserved for.
    bounds: Bounds,
    /// What stands for the input where the model does not count, in bytes.
    input_bytes: u64,
}

impl Bill {
    /// A bill for the first model that will be asked.
    pub(super) fn new(reservation: Reservation, model: Arc<Model>, bounds: Bounds) -> Self {
        Self {
            reservation,
            model,
            bounds,
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

    /// What is reserved.
    pub(super) fn reserved(&self) -> Amounts {
        self.reservation.bound()
    }

    /// The limits as they stand with this reservation.
    pub(super) fn standing(&self) -> &Standing {
        self.reservation.standing()
    }

    /// The model gave nothing, so nothing was used.
    pub(super) fn settle_unused(self, outcome: Outcome) {
        self.reservation.settle(Amounts::default(), outcome);
    }

    fn usage(&self, tally: &Tally) -> Amounts {
        let tokens = tally.usage.unwrap_or_else(|| self.estimate(tally));
        amounts(&self.model, tokens)
    }

    /// Estimates usage for a model that does not count, and for an answer that was cut short.
    pub(super) fn estimate(&self, tally: &Tally) -> TokenUsage {
        let is_bounded = self.standing().limits != Limits::default();
        let reserved = is_bounded.then(|| self.reserved());
        self.bounds
            .estimate(self.input_bytes, tally.text_bytes, reserved, &self.model)
    }
}

/// The tokens that a model used, with their price, as they are settled.
pub(super) fn amounts(model: &Model, tokens: TokenUsage) -> Amounts {
    Amounts::tokens(tokens.input, tokens.output)
        .with(Measure::CachedTokens, tokens.cached)
        .with(Measure::ReasoningTokens, tokens.reasoning)
        .with(Measure::Cost, model.cost(tokens))
}

#[cfg(test)]
mod tests {
    use super::*;
    use colloquy_config::ModelConfig;
    use colloquy_providers::embedded::Extractive;

    #[test]
    fn what_is_reserved_is_enough_for_the_limit_that_comes_of_it() {
        let usd = |text: &str| text.parse().unwrap();
        for (input_usd, output_usd) in [("0", "0"), ("2.5", "10"), ("0.00000001", "0.07")] {
            let settings = ModelConfig {
                input_usd: Some(usd(input_usd)),
                output_usd: Some(usd(output_usd)),
                max_output_tokens: 500,
                ..ModelConfig::default()
            };
            let models = [Arc::new(Model::new(Arc::new(Extractive), settings))];
            for (input, choices) in [(0, 1), (90, 1), (333, 3)] {
                let bounds = Bounds {
                    input,
                    choices,
                    max_output_tokens: None,
                };
                let (least, most) = (bounds.least(&models), bounds.most(&models));
                assert_eq!(bounds.most_output(None, &models[0]), 500 * choices);
                assert_eq!(bounds.most_output(Some(least), &models[0]), choices);
                let asked = Bounds {
                    max_output_tokens: Some(7),
                    ..bounds
                };
                assert_eq!(asked.most_output(Some(most), &models[0]), 7 * choices);
                assert_eq!(bounds.output_within(least, &models[0]), 1);
                assert_eq!(bounds.output_within(most, &models[0]), 500);
                let range = |measure| (least.of(measure), most.of(measure));
                let (least_tokens, most_tokens) = range(Measure::Tokens);
                let (least_cost, most_cost) = range(Measure::Cost);
                for tokens in least_tokens..=most_tokens {
                    for cost in [least_cost, (least_cost + most_cost) / 2, most_cost] {
                        let reserved = Amounts::default()
                            .with(Measure::Tokens, tokens)
                            .with(Measure::Cost, cost);
                        let output = bounds.output_within(reserved, &models[0]) * choices;
                        assert!(input + output <= tokens, "{input} {output} {tokens}");
                        assert!(models[0].cost_at_most(input, output) <= cost);
                    }
                }
            }
        }
    }

    #[test]
    fn an_estimate_is_never_above_the_output_that_was_allowed() {
        let settings = ModelConfig {
            max_output_tokens: 500,
            ..ModelConfig::default()
        };
        let model = Model::new(Arc::new(Extractive), settings);
        let unlimited = Bounds {
            input: 100,
            choices: 2,
            max_output_tokens: None,
        };
        let asked = Bounds {
            max_output_tokens: Some(7),
            ..unlimited
        };
        let reserved = Amounts::default()
            .with(Measure::Tokens, 160)
            .with(Measure::Cost, u64::MAX);
        for (bounds, reserved, most) in [
            (unlimited, None, 1_000),
            (unlimited, Some(reserved), 60),
            (asked, None, 14),
            (asked, Some(reserved), 14),
        ] {
            let output = |bytes| bounds.estimate(401, bytes, reserved, &model).output;
            assert_eq!(output(0), 0);
            assert_eq!(output(4 * most - 3), most);
            assert_eq!(output(4 * most - 4), most - 1);
            for too_many in [4 * most + 1, 1 << 20, u64::MAX] {
                assert_eq!(output(too_many), most);
            }
            assert_eq!(bounds.estimate(401, 0, reserved, &model).input, 101);
        }
    }
}
