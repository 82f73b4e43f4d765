//! The bodies of the quota endpoints.

use colloquy_base::{clock::rfc3339, invalid::InvalidField, json::given, money::Usd};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{QuotaChange, QuotaKind, QuotaState};
use crate::{
    Directory,
    ledger::{Amounts, Limits, Measure, Period},
    routes::expiry,
};

/// Limits; null for none.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct LimitsView {
    /// Input and output tokens.
    tokens: Option<u64>,
    /// US dollars, as a decimal string with at most 8 decimal places; a number is read too.
    dollars: Option<Usd>,
    /// Characters of text that is spoken.
    characters: Option<u64>,
    /// Seconds of calls.
    seconds: Option<u64>,
}

impl From<Limits> for LimitsView {
    fn from(limits: Limits) -> Self {
        Self {
            tokens: limits.of(Measure::Tokens),
            dollars: limits.of(Measure::Cost).map(Usd),
            characters: limits.of(Measure::Characters),
            seconds: limits.of(Measure::Seconds),
        }
    }
}

impl From<LimitsView> for Limits {
    fn from(view: LimitsView) -> Self {
        Self::default()
            .with(Measure::Tokens, view.tokens)
            .with(Measure::Cost, view.dollars.map(|dollars| dollars.0))
            .with(Measure::Characters, view.characters)
            .with(Measure::Seconds, view.seconds)
    }
}

/// An amount of each measure.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AmountsView {
    /// Input and output tokens.
    tokens: u64,
    /// US dollars.
    dollars: Usd,
    /// Characters of text that is spoken.
    characters: u64,
    /// Seconds of calls.
    seconds: u64,
}

impl From<Amounts> for AmountsView {
    fn from(amounts: Amounts) -> Self {
        Self {
            tokens: amounts.of(Measure::Tokens),
            dollars: Usd(amounts.of(Measure::Cost)),
            characters: amounts.of(Measure::Characters),
            seconds: amounts.of(Measure::Seconds),
        }
    }
}

/// A quota, without the secret of its key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuotaView {
    /// The id, which is also the middle part of the key.
    id: String,
    /// What people call it.
    name: String,
    /// What it is for.
    kinds: Vec<QuotaKind>,
    /// The most that can be used in a period.
    limits: LimitsView,
    /// When what was used is forgotten.
    period: Period,
    /// When the running period began; RFC 3339, null for a lifetime.
    period_start: Option<String>,
    /// When it ends; RFC 3339, null for a lifetime.
    period_end: Option<String>,
    /// What was used in the running period.
    used: AmountsView,
    /// The most that running requests may still use.
    reserved: AmountsView,
    /// What is left; null where there is no limit.
    remaining: LimitsView,
    /// The models it may use; null for all.
    allowed_models: Option<Vec<String>>,
    /// The characters it may use: `repo:<partner>/*`, `repo:<partner>/<name>`, `inline`; null for all of the partner and
    /// inline ones.
    allowed_characters: Option<Vec<String>>,
    /// Whether it is switched off.
    disabled: bool,
    /// RFC 3339.
    created_at: String,
    /// RFC 3339.
    updated_at: String,
    /// RFC 3339; null for never.
    expires_at: Option<String>,
    /// When something was reserved last; RFC 3339, null for never.
    last_used_at: Option<String>,
    /// RFC 3339; null for a quota that was not revoked.
    revoked_at: Option<String>,
}

impl From<QuotaState> for QuotaView {
    fn from(state: QuotaState) -> Self {
        let QuotaState {
            quota, standing, ..
        } = state;
        let end = standing.period_end();
        let remaining = Limits::from_fn(|measure| standing.remaining(measure));
        let patterns = quota.allowed_characters.as_ref();
        let patterns = patterns.map(|list| list.iter().map(ToString::to_string).collect());
        Self {
            id: quota.id,
            name: quota.name,
            kinds: quota.kinds,
            limits: standing.limits.into(),
            period: standing.period,
            period_start: end.map(|_| rfc3339(standing.period_start)),
            period_end: end.map(rfc3339),
            used: standing.used.into(),
            reserved: standing.reserved.into(),
            remaining: remaining.into(),
            allowed_models: quota.allowed_models,
            allowed_characters: patterns,
            disabled: quota.disabled,
            created_at: rfc3339(quota.created_at),
            updated_at: rfc3339(quota.updated_at),
            expires_at: quota.expires_at.map(rfc3339),
            last_used_at: state.last_used_at.map(rfc3339),
            revoked_at: quota.revoked_at.map(rfc3339),
        }
    }
}

/// A quota with its key.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct QuotaWithKey {
    /// The quota.
    #[serde(flatten)]
    pub(super) quota: QuotaView,
    /// The key itself; it is shown this once.
    pub(super) api_key: String,
}

/// What can be set about a quota. What is left out stays as it is; null takes a restriction away.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuotaBody {
    /// What people call it, at most 100 characters, without control characters.
    name: Option<String>,
    /// What it is for: `text`, `speech`, `call`. Needed at creation.
    kinds: Option<Vec<QuotaKind>>,
    /// The most that can be used in a period; they replace all limits. Without any there is no limit.
    limits: Option<LimitsView>,
    /// When what was used is forgotten; `month` when it is left out at creation.
    period: Option<Period>,
    /// The models it may use, by their public names; null for all.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    allowed_models: Option<Option<Vec<String>>>,
    /// The characters it may use: `repo:<partner>/*`, `repo:<partner>/<name>`, `inline`; null for all of the partner and
    /// inline ones.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<Vec<String>>)]
    allowed_characters: Option<Option<Vec<String>>>,
    /// Whether it is switched off.
    disabled: Option<bool>,
    /// When it ends, in days from now; null for never.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    expires_in_days: Option<Option<u32>>,
}

impl QuotaBody {
    pub(super) fn change(self, directory: &Directory) -> Result<QuotaChange, InvalidField> {
        let expires_at = self.expires_in_days.map(|days| expiry(directory, days));
        Ok(QuotaChange {
            name: self.name,
            kinds: self.kinds,
            limits: self.limits.map(Into::into),
            period: self.period,
            allowed_models: self.allowed_models,
            allowed_characters: self.allowed_characters,
            disabled: self.disabled,
            expires_at: expires_at.transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::{ledger::UsageRow, quotas::usage::UsageView};

    #[test]
    fn every_measure_is_shown_under_its_name() {
        for measure in Measure::ALL {
            let name = measure.as_str();
            let amounts = Amounts::default().with(measure, 7);
            let shown = match measure {
                Measure::Cost => Value::from("0.00000007"),
                _ => Value::from(7),
            };
            let usage = serde_json::to_value(UsageView::from(UsageRow {
                usage: amounts,
                ..UsageRow::default()
            }));
            assert_eq!(usage.unwrap()[name], shown, "{name}");
            if !Measure::LIMITED.contains(&measure) {
                continue;
            }
            let amounts_view = serde_json::to_value(AmountsView::from(amounts)).unwrap();
            assert_eq!(amounts_view[name], shown, "{name}");
            let limits = Limits::default().with(measure, Some(7));
            let limits_view = serde_json::to_value(LimitsView::from(limits)).unwrap();
            assert_eq!(limits_view[name], shown, "{name}");
            let read: LimitsView = serde_json::from_value(limits_view).unwrap();
            assert_eq!(Limits::from(read), limits, "{name}");
        }
    }
}
