//! The models by their public names, each with what it costs, how long it may take, and whether it rests.

use std::{collections::BTreeMap, fmt, sync::Arc};

use colloquy_base::money::Usd;
use colloquy_config::{Config, ModelConfig};
use colloquy_formats::TokenUsage;

use super::{ChatModel, embedded::Extractive, openai, policy::Health, traced::Traced};

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
    pub health: Arc<Health>,
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Model")
            .field("name", &self.chat.name())
            .finish_non_exhaustive()
    }
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
            health: Arc::default(),
        }
    }

    /// The public name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.chat.name()
    }

    /// Whether it is known what it costs.
    #[must_use]
    pub fn is_priced(&self) -> bool {
        self.settings.input_usd.is_some() || self.settings.output_usd.is_some()
    }

    /// The prices of a million tokens of input and of output.
    fn prices(&self) -> (Usd, Usd) {
        let settings = &self.settings;
        (
            settings.input_usd.unwrap_or_default(),
            settings.output_usd.unwrap_or_default(),
        )
    }

    /// What these tokens cost, in units of 1e-8 USD, rounded up.
    #[must_use]
    pub fn cost(&self, usage: TokenUsage) -> u64 {
        let settings = &self.settings;
        let (input, output) = self.prices();
        let cached = usage.cached.min(usage.input);
        let reasoning = usage.reasoning.min(usage.output);
        let parts = [
            (usage.input - cached, input),
            (cached, settings.cached_input_usd.unwrap_or(input)),
            (usage.output - reasoning, output),
            (reasoning, settings.reasoning_usd.unwrap_or(output)),
        ];
        let whole: u128 = parts
            .iter()
            .map(|(tokens, price)| u128::from(*tokens) * u128::from(price.0))
            .sum();
        u64::try_from(whole.div_ceil(PER_TOKENS)).unwrap_or(u64::MAX)
    }

    /// How many tokens of output so much money pays for beside the input, in units of 1e-8 USD; `None` where they cost
    /// nothing.
    #[must_use]
    pub fn output_within(&self, money: u64, input: u64) -> Option<u64> {
        let (input_price, output_price) = self.highest_prices();
        let money = u128::from(money) * PER_TOKENS;
        let left = money.saturating_sub(u128::from(input) * input_price);
        let tokens = left.checked_div(output_price)?;
        Some(u64::try_from(tokens).unwrap_or(u64::MAX))
    }

    /// What that many tokens cost at most, in units of 1e-8 USD.
    #[must_use]
    pub fn cost_at_most(&self, input: u64, output: u64) -> u64 {
        let (input_price, output_price) = self.highest_prices();
        let whole = u128::from(input) * input_price + u128::from(output) * output_price;
        u64::try_from(whole.div_ceil(PER_TOKENS)).unwrap_or(u64::MAX)
    }

    /// The most that a million tokens of input and of output cost.
    fn highest_prices(&self) -> (u128, u128) {
        let settings = &self.settings;
        let (input, output) = self.prices();
        let higher =
            |one: Usd, other: Option<Usd>| u128::from(other.max(Some(one)).unwrap_or(one).0);
        (
            higher(input, settings.cached_input_usd),
            higher(output, settings.reasoning_usd),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usd(text: &str) -> Usd {
        text.parse().unwrap()
    }

    #[test]
    fn costs_are_exact_and_rounded_up() {
        let settings = ModelConfig {
            input_usd: Some(usd("2.50")),
            cached_input_usd: Some(usd("1.25")),
            output_usd: Some(usd("10")),
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
            input_usd: Some(usd("0.075")),
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
