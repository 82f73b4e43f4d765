//! Transcripts of recordings.

use anyhow::ensure;
use serde::{Deserialize, Serialize};

/// Transcripts of recordings, of `/v2/transcript`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TranscriptsConfig {
    /// The largest recording, in bytes.
    pub max_file_bytes: u64,
    /// The longest recording, in seconds.
    pub max_seconds: u32,
    /// How long it may take to get a recording from an address, in seconds.
    pub fetch_seconds: u32,
    /// How many transcripts a partner may have in progress.
    pub in_progress: u32,
    /// How long a transcript is kept once it ended, in days.
    pub kept_days: u32,
}

impl Default for TranscriptsConfig {
    fn default() -> Self {
        Self {
            max_file_bytes: 100 * 1024 * 1024,
            max_seconds: 10 * 3_600,
            fetch_seconds: 300,
            in_progress: 100,
            kept_days: 30,
        }
    }
}

impl TranscriptsConfig {
    pub(super) fn validate(&self) -> anyhow::Result<()> {
        for (name, value, most) in [
            ("max_seconds", self.max_seconds, 100 * 3_600),
            ("fetch_seconds", self.fetch_seconds, 3_600),
            ("in_progress", self.in_progress, u32::MAX),
            ("kept_days", self.kept_days, 36_500),
        ] {
            ensure!(
                (1..=most).contains(&value),
                "transcripts.{name}: 1 to {most}"
            );
        }
        ensure!(
            (1..=4 * 1024 * 1024 * 1024).contains(&self.max_file_bytes),
            "transcripts.max_file_bytes: 1 to 4294967296"
        );
        Ok(())
    }
}
