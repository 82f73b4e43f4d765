//! The models by their public names, each with what it costs, how long it may take, and whether it rests.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{ChatModel, ProviderErrorKind, embedded::Extractive, openai, traced::Traced};
use crate::{
    config::{Config, ModelConfig},
    money::Usd,
};

/// The price of a million tokens is what settings name.
const PER_TOKENS: u128 = 1_000_000;

/// The models that text can be generated with.
#[derive(Debug, Clone)]
pub struct Models {
    by_name: Arc<BTreeMap<String, Arc<Model>>>,
    of_calls: Arc<Model>,
}

/// A model.
pub struct Model {
    /// What answers.
    pub chat: Arc<dyn ChatModel>,
    /// What it understands, costs, and how long it may take.
    pub settings: ModelConfig,
    /// Whether it rests.
    pub rest: Rest,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("name", &self.chat.name())
            .finish_non_exhaustive()
    }
}

/// The tokens of an answer, as its model counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens of the request.
    pub input: u64,
    /// Those of them that the model had cached.
    pub cached: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// Those of them that were reasoning.
    pub reasoning: u64,
}

/// About how many tokens a text has: a quarter of its characters, rounded up. It stands in where a model does not count,
/// and its vocabulary is not known.
#[must_use]
pub fn approximate_tokens(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

impl Models {
    /// The models of the settings, and `builtin/extractive`.
    ///
    /// # Errors
    /// When an HTTP client cannot be made. No model is asked anything.
    pub fn from_config(config: &Config) -> anyhow::Result<Self> {
        let embedded = Model::new(Arc::new(Extractive), ModelConfig::default());
        let mut by_name = BTreeMap::from([(embedded.name().to_owned(), Arc::new(embedded))]);
        let of_calls = ModelConfig {
            base_url: config.chat.base_url.clone(),
            api_key: config.chat.api_key.clone(),
            ..ModelConfig::default()
        };
        let named = config.chat.model.iter().map(|name| (name, &of_calls));
        for (name, settings) in named.chain(&config.models) {
            if let Some(chat) = openai::Chat::from_config(name, settings)? {
                let chat = Traced::new(chat, settings);
                let model = Model::new(Arc::new(chat), settings.clone());
                by_name.insert(name.clone(), Arc::new(model));
            }
        }
        let of_calls = config.chat.model.as_deref().unwrap_or(Extractive::NAME);
        let of_calls = by_name.get(of_calls).map(Arc::clone);
        Ok(Self {
            of_calls: of_calls.ok_or_else(|| anyhow::anyhow!("chat.model: unknown"))?,
            by_name: Arc::new(by_name),
        })
    }

    /// The model of this public name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Model>> {
        self.by_name.get(name)
    }

    /// All models, by name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Model>> {
        self.by_name.values()
    }

    /// The model of calls.
    #[must_use]
    pub fn of_calls(&self) -> &Arc<Model> {
        &self.of_calls
    }
}

impl Model {
    /// A model with its settings.
    pub fn new(chat: Arc<dyn ChatModel>, settings: ModelConfig) -> Self {
        Self {
            chat,
            settings,
            rest: Rest::default(),
        }
    }

    /// The public name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.chat.name()
    }

    /// What these tokens cost, in units of 1e-8 USD, rounded up.
    #[must_use]
    pub fn cost(&self, usage: TokenUsage) -> u64 {
        let settings = &self.settings;
        let cached = usage.cached.min(usage.input);
        let reasoning = usage.reasoning.min(usage.output);
        let parts = [
            (usage.input - cached, settings.input_usd),
            (
                cached,
                settings.cached_input_usd.unwrap_or(settings.input_usd),
            ),
            (usage.output - reasoning, settings.output_usd),
            (
                reasoning,
                settings.reasoning_usd.unwrap_or(settings.output_usd),
            ),
        ];
        let whole: u128 = parts
            .iter()
            .map(|(tokens, price)| u128::from(*tokens) * u128::from(price.0))
            .sum();
        u64::try_from(whole.div_ceil(PER_TOKENS)).unwrap_or(u64::MAX)
    }

    /// What that many tokens cost at most, in units of 1e-8 USD.
    #[must_use]
    pub fn cost_at_most(&self, input: u64, output: u64) -> u64 {
        let settings = &self.settings;
        let input_price = settings.cached_input_usd.max(Some(settings.input_usd));
        let output_price = settings.reasoning_usd.max(Some(settings.output_usd));
        let part = |tokens: u64, price: Option<Usd>| {
            u128::from(tokens) * u128::from(price.unwrap_or_default().0)
        };
        let whole = part(input, input_price) + part(output, output_price);
        u64::try_from(whole.div_ceil(PER_TOKENS)).unwrap_or(u64::MAX)
    }
}

/// The first rest after failures.
const FIRST_REST: Duration = Duration::from_secs(1);
/// The longest rest after failures.
const LONGEST_REST: Duration = Duration::from_secs(30);
/// The longest rest that a model asks for itself.
const LONGEST_TOLD_REST: Duration = Duration::from_secs(600);
/// Failures in a row after which a model rests.
const FAILURES: u32 = 5;

/// A circuit breaker: a model that failed several times in a row rests; then one request finds out whether it is back.
#[derive(Debug, Default)]
pub struct Rest(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Failures in a row.
    failures: u32,
    /// The end of the rest.
    until: Option<Instant>,
    /// The last rest, which the next one doubles.
    last: Duration,
    /// The rests so far.
    rests: u64,
}

/// A request that may ask the model. What it finds out counts unless the model went to rest meanwhile: requests that run
/// side by side fail together, and are one failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admission(u64);

impl Rest {
    /// Whether the model may be asked now.
    ///
    /// # Errors
    /// How long it still rests. The request that ends a rest is let through alone: others wait for what it finds out,
    /// for as long as the rest was.
    pub fn admit(&self, now: Instant) -> Result<Admission, Duration> {
        let mut state = self.lock();
        if let Some(until) = state.until {
            if now < until {
                return Err(until - now);
            }
            state.until = Some(now + state.last);
        }
        Ok(Admission(state.rests))
    }

    /// The model answered.
    pub fn answered(&self, admission: Admission) {
        let mut state = self.lock();
        if admission.0 == state.rests {
            state.failures = 0;
            state.until = None;
            state.last = Duration::ZERO;
        }
    }

    /// The model failed. One that finds fault with the request answers.
    pub fn failed(
        &self,
        admission: Admission,
        now: Instant,
        kind: ProviderErrorKind,
        retry_after: Option<Duration>,
    ) {
        if kind == ProviderErrorKind::Rejected {
            return self.answered(admission);
        }
        let mut state = self.lock();
        if admission.0 != state.rests {
            return;
        }
        state.failures += 1;
        // Whoever says when to come back need not fail five times.
        let told = (kind == ProviderErrorKind::RateLimited)
            .then_some(retry_after)
            .flatten();
        if state.failures < FAILURES && told.is_none() {
            return;
        }
        let rest = match told {
            Some(wait) => wait.min(LONGEST_TOLD_REST),
            None => (state.last * 2).clamp(FIRST_REST, LONGEST_REST),
        };
        state.last = rest;
        state.until = Some(now + rest);
        state.rests += 1;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock as _, ManualClock};

    fn usd(text: &str) -> Usd {
        text.parse().unwrap()
    }

    const FAILED: ProviderErrorKind = ProviderErrorKind::Failed;

    #[test]
    fn a_model_rests_and_one_request_finds_out() {
        let clock = ManualClock::new(jiff::Timestamp::UNIX_EPOCH);
        let rest = Rest::default();
        let fail = || {
            let admission = rest.admit(clock.instant()).unwrap();
            rest.failed(admission, clock.instant(), FAILED, None);
        };
        for _ in 0..FAILURES {
            fail();
        }
        assert_eq!(rest.admit(clock.instant()), Err(FIRST_REST));
        clock.advance(FIRST_REST);
        let finds_out = rest.admit(clock.instant()).unwrap();
        assert!(rest.admit(clock.instant()).is_err(), "the others");
        rest.failed(finds_out, clock.instant(), FAILED, None);
        assert_eq!(rest.admit(clock.instant()), Err(FIRST_REST * 2));
        for _ in 0..9 {
            clock.advance(LONGEST_REST);
            fail();
        }
        assert_eq!(rest.admit(clock.instant()), Err(LONGEST_REST));
        clock.advance(LONGEST_REST);
        rest.answered(rest.admit(clock.instant()).unwrap());
        fail();
        assert!(rest.admit(clock.instant()).is_ok());
    }

    #[test]
    fn requests_that_fail_together_are_one_rest() {
        let clock = ManualClock::new(jiff::Timestamp::UNIX_EPOCH);
        let rest = Rest::default();
        let running = [(); 12].map(|()| rest.admit(clock.instant()).unwrap());
        for admission in running {
            rest.failed(admission, clock.instant(), FAILED, None);
        }
        assert_eq!(rest.admit(clock.instant()), Err(FIRST_REST));
        rest.answered(running[0]);
        assert!(rest.admit(clock.instant()).is_err(), "it answered before");
        clock.advance(FIRST_REST);
        let slow = rest.admit(clock.instant()).unwrap();
        clock.advance(FIRST_REST);
        assert!(rest.admit(clock.instant()).is_ok());
        rest.answered(slow);
        assert!(rest.admit(clock.instant()).is_ok());
        assert!(rest.admit(clock.instant()).is_ok(), "it is back");
    }

    #[test]
    fn what_lies_with_the_request_is_an_answer() {
        let clock = ManualClock::new(jiff::Timestamp::UNIX_EPOCH);
        let rest = Rest::default();
        let admission = rest.admit(clock.instant()).unwrap();
        let fail = |kind| rest.failed(admission, clock.instant(), kind, None);
        for _ in 1..FAILURES {
            fail(FAILED);
        }
        fail(ProviderErrorKind::Rejected);
        fail(FAILED);
        assert!(rest.admit(clock.instant()).is_ok());
    }

    #[test]
    fn a_model_that_says_when_to_come_back_rests_until_then() {
        let clock = ManualClock::new(jiff::Timestamp::UNIX_EPOCH);
        for (told, rests) in [(45, 45), (86_400, 600)] {
            let rest = Rest::default();
            let admission = rest.admit(clock.instant()).unwrap();
            let told = Some(Duration::from_secs(told));
            rest.failed(
                admission,
                clock.instant(),
                ProviderErrorKind::RateLimited,
                told,
            );
            assert_eq!(rest.admit(clock.instant()), Err(Duration::from_secs(rests)));
        }
    }

    #[test]
    fn costs_are_exact_and_rounded_up() {
        let settings = ModelConfig {
            input_usd: usd("2.50"),
            cached_input_usd: Some(usd("1.25")),
            output_usd: usd("10"),
            reasoning_usd: Some(usd("12")),
            ..ModelConfig::default()
        };
        let model = Model::new(Arc::new(Extractive), settings);
        let usage = TokenUsage {
            input: 1_000,
            cached: 400,
            output: 300,
            reasoning: 100,
        };
        // 600 at 250 units, 400 at 125, 200 at 1,000, 100 at 1,200.
        assert_eq!(model.cost(usage), 150_000 + 50_000 + 200_000 + 120_000);
        assert_eq!(model.cost_at_most(1_000, 300), 250_000 + 360_000);
        let cheap = ModelConfig {
            input_usd: usd("0.075"),
            ..ModelConfig::default()
        };
        let model = Model::new(Arc::new(Extractive), cheap);
        let one = TokenUsage {
            input: 1,
            ..TokenUsage::default()
        };
        assert_eq!(model.cost(one), 8);
    }
}
