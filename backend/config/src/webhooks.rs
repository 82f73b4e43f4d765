//! Webhooks, and outbound requests to addresses that partners name.

use std::path::PathBuf;

use anyhow::ensure;
use serde::{Deserialize, Serialize};

use super::{Secret, secret::check_key};

/// Webhook delivery.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebhooksConfig {
    /// The secret of the Standard Webhooks signature (`whsec_` and base64, or plain text); unset: no signature.
    pub secret: Option<Secret>,
    /// How long a receiver may take, in milliseconds.
    pub timeout_ms: u64,
    /// How often a failed delivery is tried again.
    pub retries: u32,
    /// The wait before the first retry, in milliseconds; it doubles each time, with jitter.
    pub first_retry_ms: u64,
}

impl Default for WebhooksConfig {
    fn default() -> Self {
        Self {
            secret: None,
            timeout_ms: 30_000,
            retries: 5,
            first_retry_ms: 5_000,
        }
    }
}

impl WebhooksConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        check_key("webhooks.secret", self.secret.as_ref())?;
        ensure!(self.timeout_ms >= 1, "webhooks.timeout_ms: at least 1");
        ensure!(
            self.first_retry_ms >= 1,
            "webhooks.first_retry_ms: at least 1"
        );
        Ok(())
    }
}

/// Outbound requests to addresses that partners name.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FetchConfig {
    /// Whether private addresses may be reached.
    pub allow_private: bool,
    /// A PEM file with further certificate authorities to trust.
    pub ca_file: Option<PathBuf>,
}
