//! Traces.

use anyhow::ensure;
use serde::{Deserialize, Serialize};
use url::Url;

use super::{Secret, secret::check_secret};

/// Traces, for a collector of OpenTelemetry.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TracesConfig {
    /// Where a collector takes OTLP over HTTP, such as `http://localhost:4318`; unset: there are no traces.
    pub endpoint: Option<Url>,
    /// What the collector wants in a header, such as `authorization=Bearer abc`; several with commas between them.
    pub headers: Option<Secret>,
    /// The share of traces that are kept, 0 to 1. What a client has traced is kept as the client says.
    pub sample_ratio: f64,
    /// What the server is called in traces.
    pub service_name: String,
}

impl Default for TracesConfig {
    fn default() -> Self {
        Self {
            endpoint: None,
            headers: None,
            sample_ratio: 1.0,
            service_name: "colloquy".to_owned(),
        }
    }
}

impl TracesConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        if let Some(endpoint) = &self.endpoint {
            ensure!(
                matches!(endpoint.scheme(), "http" | "https"),
                "traces.endpoint: http or https"
            );
        }
        ensure!(
            (0.0..=1.0).contains(&self.sample_ratio),
            "traces.sample_ratio: 0 to 1"
        );
        ensure!(
            !self.service_name.is_empty(),
            "traces.service_name: not empty"
        );
        check_secret("traces.headers", self.headers.as_ref())?;
        ensure!(
            self.headers().is_some(),
            "traces.headers: name=value, with commas between them"
        );
        Ok(())
    }

    /// The headers, `None` when they are malformed.
    pub fn headers(&self) -> Option<Vec<(String, String)>> {
        let text = self.headers.as_ref().map_or("", Secret::reveal);
        let headers = text.split(',').filter(|header| !header.trim().is_empty());
        let header = |header: &str| {
            let (name, value) = header.split_once('=')?;
            let (name, value) = (name.trim(), value.trim());
            let whole = !name.is_empty() && !value.is_empty();
            whole.then(|| (name.to_owned(), value.to_owned()))
        };
        headers.map(header).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_pairs() {
        let headers = |text: &str| {
            let config = TracesConfig {
                headers: Some(Secret::new(text)),
                ..TracesConfig::default()
            };
            config.validate().is_ok().then(|| config.headers().unwrap())
        };
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(headers(""), None);
        assert_eq!(headers("authorization= "), None);
        let two = vec![pair("authorization", "Bearer a=b"), pair("x-scope", "c")];
        assert_eq!(headers("authorization=Bearer a=b, x-scope = c"), Some(two));
        assert_eq!(headers("authorization"), None);
        assert_eq!(headers("=value"), None);
    }
}
