//! What administrators switch for a partner.

use std::num::NonZeroU32;

use colloquy_base::invalid::InvalidField;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Far more than anybody needs.
const MOST_PER_MINUTE: u32 = 1_000_000;
/// More requests for a vector store than a service takes.
const MOST_SYNC_PER_MINUTE: u32 = 6_000;
/// The largest whole number that every reader of JSON knows exactly.
const MOST_BYTES: u64 = (1 << 53) - 1;
const MOST_MODELS: usize = 100;

/// The settings of a partner; what is left out is as it is for everybody.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct PartnerSettings {
    /// Whether the sound of documents is transcribed; without it, it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transcription_enabled: Option<bool>,
    /// Whether the final content of documents is kept in step with the vector store of the server's settings; without it, it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vectorstore_sync_enabled: Option<bool>,
    /// How many requests a minute that may take of the vector store, 1 to 6000; without it, `vectorstore.requests_per_minute` of
    /// the server's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 6_000)]
    pub vectorstore_sync_requests_per_minute: Option<NonZeroU32>,
    /// How many requests a minute all keys of the partner may make together, 1 to 1000000, those of a minute also at once; each node
    /// counts for itself. Without it, each key has the rate of the server's settings, which it has in any case.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u32>, minimum = 1, maximum = 1_000_000)]
    pub requests_per_minute: Option<NonZeroU32>,
    /// Storage limit of the partner in bytes, uploads, derived files and texts together, 0 to 9007199254740991. Default:
    /// `limits.storage_bytes_per_partner` of the server's settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(maximum = 9_007_199_254_740_991u64)]
    pub storage_bytes: Option<u64>,
    /// The models that quotas of the partner may use, by their public names, whatever else they allow; without it, all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_models: Option<Vec<String>>,
}

impl PartnerSettings {
    /// The settings as a row has them. One of an earlier version may hold what is no setting now.
    pub(crate) fn of_row(text: &str) -> Result<Self, serde_json::Error> {
        fn take<T: DeserializeOwned>(map: &mut Map<String, Value>, name: &str) -> Option<T> {
            serde_json::from_value(map.remove(name)?).ok()
        }
        let mut map: Map<String, Value> = serde_json::from_str(text)?;
        let map = &mut map;
        Ok(Self {
            transcription_enabled: take(map, "transcription_enabled"),
            vectorstore_sync_enabled: take(map, "vectorstore_sync_enabled"),
            vectorstore_sync_requests_per_minute: take(map, "vectorstore_sync_requests_per_minute"),
            requests_per_minute: take(map, "requests_per_minute"),
            storage_bytes: take(map, "storage_bytes"),
            allowed_models: take(map, "allowed_models"),
        })
    }

    /// Checks what their types do not say.
    pub(crate) fn validate(&self) -> Result<(), InvalidField> {
        let rates = [
            (
                "settings.requests_per_minute",
                self.requests_per_minute,
                MOST_PER_MINUTE,
            ),
            (
                "settings.vectorstore_sync_requests_per_minute",
                self.vectorstore_sync_requests_per_minute,
                MOST_SYNC_PER_MINUTE,
            ),
        ];
        for (field, rate, most) in rates {
            if rate.is_some_and(|rate| rate.get() > most) {
                return Err(InvalidField::new(field, format!("1 to {most}")));
            }
        }
        if self.storage_bytes.is_some_and(|bytes| bytes > MOST_BYTES) {
            let message = format!("0 to {MOST_BYTES}");
            return Err(InvalidField::new("settings.storage_bytes", message));
        }
        let Some(models) = &self.allowed_models else {
            return Ok(());
        };
        if models.len() > MOST_MODELS {
            let message = format!("at most {MOST_MODELS}");
            return Err(InvalidField::new("settings.allowed_models", message));
        }
        for (index, model) in models.iter().enumerate() {
            if !(1..=200).contains(&model.chars().count()) {
                let field = format!("settings.allowed_models[{index}]");
                return Err(InvalidField::new(field, "1 to 200 characters"));
            }
        }
        Ok(())
    }

    /// Whether the sound of documents is transcribed.
    #[must_use]
    pub fn is_transcription_enabled(&self) -> bool {
        self.transcription_enabled.unwrap_or(true)
    }

    /// Whether documents are kept in step with a vector store.
    #[must_use]
    pub fn is_vectorstore_sync_enabled(&self) -> bool {
        self.vectorstore_sync_enabled.unwrap_or(false)
    }

    /// Whether quotas of the partner may use a model, as far as the partner goes.
    #[must_use]
    pub fn allows_model(&self, model: &str) -> bool {
        let allowed = self.allowed_models.as_ref();
        allowed.is_none_or(|allowed| allowed.iter().any(|allowed| allowed == model))
    }
}

#[cfg(test)]
mod tests {
    use colloquy_base::json;

    use super::*;

    #[test]
    fn rows_of_earlier_versions_may_hold_anything() {
        let row = r#"{"plan": "gold", "requests_per_minute": 0, "allowed_models": 5, "transcription_enabled": false}"#;
        let settings = PartnerSettings::of_row(row).unwrap();
        let expected = PartnerSettings {
            transcription_enabled: Some(false),
            ..PartnerSettings::default()
        };
        assert_eq!(settings, expected);
        assert!(PartnerSettings::of_row("[]").is_err());
    }

    #[test]
    fn rates_that_are_none_are_told_in_words_of_the_interface() {
        for (rate, told) in [
            ("-1", "must be an integer of 1 to 4294967295, not -1"),
            ("0", "must be an integer of 1 to 4294967295, not 0"),
            (
                "5000000000",
                "must be an integer of 1 to 4294967295, not 5000000000",
            ),
            ("1.5", "must be an integer of at least 1, not 1.5"),
        ] {
            for field in [
                "requests_per_minute",
                "vectorstore_sync_requests_per_minute",
            ] {
                let body = format!(r#"{{"{field}": {rate}}}"#);
                let error = json::read::<PartnerSettings>(body.as_bytes()).unwrap_err();
                assert_eq!((&*error.field, &*error.message), (field, told));
            }
        }
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let field = |settings: PartnerSettings| settings.validate().map_err(|error| error.field);
        let rate = |rate| PartnerSettings {
            requests_per_minute: NonZeroU32::new(rate),
            ..PartnerSettings::default()
        };
        assert_eq!(field(rate(1_000_000)), Ok(()));
        assert_eq!(
            field(rate(1_000_001)).unwrap_err(),
            "settings.requests_per_minute"
        );
        let storage = |bytes| PartnerSettings {
            storage_bytes: Some(bytes),
            ..PartnerSettings::default()
        };
        assert_eq!(field(storage(0)), Ok(()));
        assert_eq!(
            field(storage(MOST_BYTES + 1)).unwrap_err(),
            "settings.storage_bytes"
        );
        let models = |models: Vec<String>| PartnerSettings {
            allowed_models: Some(models),
            ..PartnerSettings::default()
        };
        assert_eq!(field(models(Vec::new())), Ok(()));
        let (fine, long) = ("a".repeat(200), "a".repeat(201));
        assert_eq!(
            field(models(vec![fine, long])).unwrap_err(),
            "settings.allowed_models[1]"
        );
        assert_eq!(
            field(models(vec!["a".to_owned(); 101])).unwrap_err(),
            "settings.allowed_models"
        );
    }

    #[test]
    fn a_partner_without_models_may_use_none() {
        let none = PartnerSettings {
            allowed_models: Some(Vec::new()),
            ..PartnerSettings::default()
        };
        assert!(!none.allows_model("a"));
        assert!(PartnerSettings::default().allows_model("a"));
    }
}
