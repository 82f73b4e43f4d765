//! What can be set about a quota, and what of it makes sense.

use colloquy_base::{invalid::InvalidField, names};

use super::{CharacterPattern, QuotaKind, QuotaState};
use crate::{
    Tenant,
    ledger::{Limits, Measure, Period},
};

/// Far more than anybody uses, and far less than an integer holds.
const MOST: u64 = 1_000_000_000_000_000;
/// The same in 1e-8 USD: a billion dollars.
const MOST_COST: u64 = 100_000_000_000_000_000;
const MOST_ENTRIES: usize = 100;

/// What can be set about a quota; `None` leaves it as it is.
#[derive(Debug, Clone, Default)]
pub struct QuotaChange {
    /// What people call it, at most 100 characters.
    pub name: Option<String>,
    /// What it is for.
    pub kinds: Option<Vec<QuotaKind>>,
    /// All limits.
    pub limits: Option<Limits>,
    /// When what was used is forgotten.
    pub period: Option<Period>,
    /// The models it may use; `Some(None)` for all.
    pub allowed_models: Option<Option<Vec<String>>>,
    /// The characters it may use, as patterns; `Some(None)` for all of the partner and inline ones.
    pub allowed_characters: Option<Option<Vec<String>>>,
    /// Whether it is switched off.
    pub disabled: Option<bool>,
    /// When it ends, in milliseconds since 1970; `Some(None)` for never.
    pub expires_at: Option<Option<i64>>,
}

impl QuotaChange {
    /// Changes a quota, after a check of what is new.
    pub(super) fn apply(self, state: &mut QuotaState) -> Result<(), InvalidField> {
        let QuotaState {
            quota, standing, ..
        } = state;
        if let Some(name) = self.name {
            if name.chars().count() > 100 {
                return Err(InvalidField::new("name", "at most 100 characters"));
            }
            names::visible("name", &name)?;
            quota.name = name;
        }
        if let Some(mut kinds) = self.kinds {
            if kinds.is_empty() {
                return Err(InvalidField::new("kinds", "name at least one kind"));
            }
            kinds.sort_unstable();
            kinds.dedup();
            quota.kinds = kinds;
        }
        if let Some(limits) = self.limits {
            check_limits(&limits)?;
            standing.limits = limits;
        }
        if let Some(models) = self.allowed_models {
            quota.allowed_models = models.map(check_models).transpose()?;
        }
        if let Some(patterns) = self.allowed_characters {
            let parse = |patterns: Vec<String>| parse_characters(&quota.tenant, &patterns);
            quota.allowed_characters = patterns.map(parse).transpose()?;
        }
        standing.period = self.period.unwrap_or(standing.period);
        quota.disabled = self.disabled.unwrap_or(quota.disabled);
        quota.expires_at = self.expires_at.unwrap_or(quota.expires_at);
        Ok(())
    }
}

fn check_limits(limits: &Limits) -> Result<(), InvalidField> {
    for measure in Measure::LIMITED {
        let most = match measure {
            Measure::Cost => MOST_COST,
            _ => MOST,
        };
        if limits.of(measure).is_some_and(|limit| limit > most) {
            let field = format!("limits.{}", measure.as_str());
            return Err(InvalidField::new(field, "more than anybody can use"));
        }
    }
    Ok(())
}

/// A list that allows nothing is a mistake: whoever means that switches the quota off.
fn check_entries(field: &'static str, entries: &[String]) -> Result<(), InvalidField> {
    match (1..=MOST_ENTRIES).contains(&entries.len()) {
        true => Ok(()),
        false => Err(InvalidField::new(field, "1 to 100 entries, or null")),
    }
}

fn check_models(models: Vec<String>) -> Result<Vec<String>, InvalidField> {
    check_entries("allowed_models", &models)?;
    for (index, model) in models.iter().enumerate() {
        if !(1..=200).contains(&model.chars().count()) {
            let field = format!("allowed_models[{index}]");
            return Err(InvalidField::new(field, "1 to 200 characters"));
        }
    }
    Ok(models)
}

fn parse_characters(
    tenant: &Tenant,
    patterns: &[String],
) -> Result<Vec<CharacterPattern>, InvalidField> {
    check_entries("allowed_characters", patterns)?;
    let parse = |(index, text): (usize, &String)| {
        let field = format!("allowed_characters[{index}]");
        match CharacterPattern::parse(text) {
            Err(malformed) => Err(InvalidField::new(field, malformed.to_string())),
            Ok(pattern) if pattern.partner().is_some_and(|of| of != tenant.partner()) => {
                let message = "names another partner, whose characters the quota never reaches";
                Err(InvalidField::new(field, message))
            }
            Ok(pattern) => Ok(pattern),
        }
    };
    patterns.iter().enumerate().map(parse).collect()
}
