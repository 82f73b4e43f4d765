//! Rate limits, size limits, and how long is kept what grows with every request.

use anyhow::ensure;
use serde::{Deserialize, Serialize};

/// Some 12 kB of documents for one partner.
const LEAST_DOCUMENT_MEMORY_BYTES: usize = 1024 * 1024;

/// Rate limits and size limits.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Requests a key may make in a minute.
    pub requests_per_minute: u32,
    /// Requests a key may make at once before the rate counts.
    pub request_burst: u32,
    /// With a publishable key, one address, or one /64 of IPv6, has the rate and the burst of the key divided by this, 1 to 1000: at least 6
    /// requests a minute and 8 at once, or all if that is less. One /56 of IPv6 has half of them. With 1, each has all of them, as has an
    /// address that may be that of a proxy (see `http.trusted_proxies`).
    pub networks_per_key: u32,
    /// Failed sign-ins and session attempts an address may make in a minute.
    pub attempts_per_minute: u32,
    /// The largest JSON or form body, in bytes.
    pub body_bytes: usize,
    /// The largest body of a text generation, which may hold images, in bytes.
    pub text_body_bytes: usize,
    /// The memory of this node that all bodies may take while they are read and answered, in bytes, with stored responses that are read for
    /// them, and WAV files and large answers until they are sent. One partner alone may take half of it.
    pub body_memory_bytes: usize,
    /// The memory of this node that the documents of characters may take with their indexes, in bytes: those of saved characters once
    /// each, while they are in use and for ten minutes after, unless others need it; those of inline characters while their request, message
    /// or call lives. One partner alone may take half of it.
    pub document_memory_bytes: usize,
    /// How many WebSockets of `/v3/responses` there may be on this node.
    pub text_sockets: u32,
    /// How many of them a partner may have.
    pub text_sockets_per_partner: u32,
    /// How long such a socket may stay open without a response, in seconds. Pings do not count.
    pub text_socket_idle_seconds: u32,
    /// For how long such a socket takes requests, in seconds.
    pub text_socket_seconds: u32,
    /// Event streams that may be open on this node; half of `http.max_connections` if that is less.
    pub event_streams: u32,
    /// Event streams of one partner that may be open on this node.
    pub event_streams_per_partner: u32,
    /// How long responses are kept for requests that go on from them, in days.
    pub response_days: u32,
    /// How long a reply waits for what is looked up for it, in milliseconds.
    pub retrieval_ms: u32,
    /// How long the result of a legacy completion is kept once it ended, in minutes.
    pub completion_minutes: u32,
    /// How long the voice messages of a legacy completion may last together, in seconds.
    pub completion_audio_seconds: u32,
    /// How long a service elsewhere that a legacy completion or another job asks may be silent, in seconds.
    pub completion_provider_seconds: u32,
    /// How many legacy completions a partner may have in progress.
    pub completions_in_progress: u32,
    /// Default storage limit of a partner in bytes: uploads, derived files, stored responses, versions of characters, the characters of open
    /// calls, transcripts and metadata of calls that ended, transcripts of recordings, webhook deliveries, analyses, legacy completions, the rows
    /// of knowledge bases, API keys and quotas together. The partner's `storage_bytes` overrides it.
    pub storage_bytes_per_partner: u64,
    /// How many days the usage of each request is kept in detail. The sums of days stay.
    pub usage_record_days: u32,
    /// Days for which entries of the audit log are kept.
    pub audit_days: u32,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        Self {
            requests_per_minute: 600,
            request_burst: 100,
            networks_per_key: 4,
            attempts_per_minute: 120,
            body_bytes: 1024 * 1024,
            text_body_bytes: 32 * 1024 * 1024,
            body_memory_bytes: 1024 * 1024 * 1024,
            document_memory_bytes: 1024 * 1024 * 1024,
            text_sockets: 1_024,
            text_sockets_per_partner: 128,
            text_socket_idle_seconds: 600,
            text_socket_seconds: 3_600,
            event_streams: 2_048,
            event_streams_per_partner: 1_024,
            response_days: 30,
            retrieval_ms: 1_000,
            completion_minutes: 20,
            completion_audio_seconds: 600,
            completion_provider_seconds: 60,
            completions_in_progress: 100,
            storage_bytes_per_partner: 100 * 1024 * 1024 * 1024,
            usage_record_days: 90,
            audit_days: 365,
        }
    }
}

impl LimitsConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        ensure!(
            self.requests_per_minute >= 1,
            "limits.requests_per_minute: at least 1"
        );
        ensure!(self.request_burst >= 1, "limits.request_burst: at least 1");
        ensure!(
            (1..=1_000).contains(&self.networks_per_key),
            "limits.networks_per_key: 1 to 1000"
        );
        ensure!(
            self.attempts_per_minute >= 1,
            "limits.attempts_per_minute: at least 1"
        );
        ensure!(self.body_bytes >= 1024, "limits.body_bytes: at least 1024");
        ensure!(
            self.text_body_bytes >= 1024,
            "limits.text_body_bytes: at least 1024"
        );
        // The largest body of plain text is held once as it came and three times parsed, in half of the room.
        let least = self.text_body_bytes.max(self.body_bytes).saturating_mul(10);
        ensure!(
            self.body_memory_bytes >= least,
            "limits.body_memory_bytes: at least ten times limits.text_body_bytes and limits.body_bytes, {least}"
        );
        ensure!(
            self.document_memory_bytes >= LEAST_DOCUMENT_MEMORY_BYTES,
            "limits.document_memory_bytes: at least {LEAST_DOCUMENT_MEMORY_BYTES}"
        );
        ensure!(self.text_sockets >= 1, "limits.text_sockets: at least 1");
        ensure!(
            self.text_sockets_per_partner >= 1,
            "limits.text_sockets_per_partner: at least 1"
        );
        ensure!(
            (1..=86_400).contains(&self.text_socket_idle_seconds),
            "limits.text_socket_idle_seconds: 1 to 86400"
        );
        ensure!(
            (1..=86_400).contains(&self.text_socket_seconds),
            "limits.text_socket_seconds: 1 to 86400"
        );
        ensure!(self.event_streams >= 1, "limits.event_streams: at least 1");
        ensure!(
            self.event_streams_per_partner >= 1,
            "limits.event_streams_per_partner: at least 1"
        );
        ensure!(
            (1..=3_650).contains(&self.response_days),
            "limits.response_days: 1 to 3650"
        );
        ensure!(
            (1..=60_000).contains(&self.retrieval_ms),
            "limits.retrieval_ms: 1 to 60000"
        );
        ensure!(
            (1..=1_440).contains(&self.completion_minutes),
            "limits.completion_minutes: 1 to 1440"
        );
        ensure!(
            (1..=3_600).contains(&self.completion_audio_seconds),
            "limits.completion_audio_seconds: 1 to 3600"
        );
        ensure!(
            (1..=600).contains(&self.completion_provider_seconds),
            "limits.completion_provider_seconds: 1 to 600"
        );
        ensure!(
            self.completions_in_progress >= 1,
            "limits.completions_in_progress: at least 1"
        );
        ensure!(
            self.usage_record_days >= 1,
            "limits.usage_record_days: at least 1"
        );
        ensure!(
            (1..=3_650).contains(&self.audit_days),
            "limits.audit_days: 1 to 3650"
        );
        Ok(())
    }
}
