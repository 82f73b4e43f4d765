//! Logs, metrics and traces: what this process tells its operators. Names of metrics stand beside the code that counts.

mod help;
mod memory;
mod traces;

use std::{io::IsTerminal as _, sync::OnceLock};

use anyhow::Context as _;
use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::{
    EnvFilter, Layer as _,
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt as _,
    util::SubscriberInitExt as _,
};

pub use self::{
    memory::resident_bytes,
    traces::{Span, Traces, carried, hand_on},
};
use colloquy_config::{LogConfig, LogFormat};

/// Upper bounds of the latency histograms, in seconds.
const LATENCY_BUCKETS_S: [f64; 12] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0,
];

/// Upper bounds of what this server adds to the time of others, in seconds.
const ADDED_BUCKETS_S: [f64; 12] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0015, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2.5,
];

/// Upper bounds of work in the background, in seconds.
const WORK_BUCKETS_S: [f64; 9] = [0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0];

/// Upper bounds of histograms that count how much is done together.
const BATCH_BUCKETS: [f64; 9] = [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 512.0];

/// The recorder's read side. The `metrics` crate has one recorder a process, so this is the process's, whoever
/// asks for it.
#[derive(Clone)]
pub struct Metrics(PrometheusHandle);

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Metrics")
    }
}

impl Metrics {
    /// Installs the recorder when it is asked for the first time.
    #[must_use]
    pub fn get() -> Self {
        static HANDLE: OnceLock<PrometheusHandle> = OnceLock::new();
        Self(HANDLE.get_or_init(install).clone())
    }

    /// Puts samples together, which would pile up while nobody reads them. To be called every few seconds.
    pub fn run_upkeep(&self) {
        self.0.run_upkeep();
    }

    /// All metrics in the Prometheus text format.
    #[must_use]
    pub fn render(&self) -> String {
        self.0.render()
    }
}

fn install() -> PrometheusHandle {
    let seconds = Matcher::Suffix("_seconds".to_owned());
    let added = Matcher::Full("colloquy_generation_added_seconds".to_owned());
    let work = Matcher::Full("colloquy_messaging_completion_seconds".to_owned());
    let batches = Matcher::Suffix("_batch_operations".to_owned());
    let builder = PrometheusBuilder::new()
        .set_buckets_for_metric(seconds, &LATENCY_BUCKETS_S)
        .and_then(|builder| builder.set_buckets_for_metric(added, &ADDED_BUCKETS_S))
        .and_then(|builder| builder.set_buckets_for_metric(work, &WORK_BUCKETS_S))
        .and_then(|builder| builder.set_buckets_for_metric(batches, &BATCH_BUCKETS));
    // The builder refuses an empty list of bounds only, which these are not.
    let recorder = builder.unwrap_or_default().build_recorder();
    let handle = recorder.handle();
    if metrics::set_global_recorder(recorder).is_err() {
        tracing::warn!("another metrics recorder is installed; /metrics stays empty");
    }
    help::describe();
    handle
}

/// What other crates may log at most, whatever `log.filter` says: below, some of them write out what they carry, such as the
/// messages of a socket, headers with keys, offers with the addresses of clients, or statements with their values.
fn of_others() -> Targets {
    Targets::new()
        .with_default(LevelFilter::INFO)
        .with_target("colloquy", LevelFilter::TRACE)
        .with_target("rtc", LevelFilter::WARN)
}

/// Sends the log to standard error, in the configured form. A second call changes nothing.
///
/// # Errors
/// When `log.filter` is malformed.
pub fn init_logs(config: &LogConfig) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&config.filter).context("log.filter")?;
    let lines = fmt::layer()
        // A full disk may hold the log, too: a line that cannot be written is lost, and nothing else.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    let lines = match config.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).boxed(),
    };
    let installed = tracing_subscriber::registry()
        .with(filter)
        .with(of_others())
        .with(lines)
        .try_init();
    if installed.is_err() {
        tracing::debug!("logs were set up before");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most memory that this process has had, in KiB.
    fn peak_kib() -> u64 {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = line.and_then(|line| line.split_whitespace().next());
        kib.unwrap().parse().unwrap()
    }

    /// Four million samples take 32 MB until they are put together.
    #[test]
    fn samples_that_are_put_together_take_no_room() {
        let metrics = Metrics::get();
        let histogram = metrics::histogram!("colloquy_test_seconds");
        histogram.record(0.01);
        let before = peak_kib();
        for _ in 0..200 {
            for _ in 0..20_000 {
                histogram.record(0.01);
            }
            metrics.run_upkeep();
        }
        let grown = peak_kib() - before;
        assert!(grown < 8 * 1024, "{grown} KiB");
        let told = metrics.render();
        assert!(
            told.contains("colloquy_test_seconds_count 4000001"),
            "{told}"
        );
        metrics::counter!("colloquy_calls_created_total").increment(1);
        let told = metrics.render();
        assert!(
            told.contains("# HELP colloquy_calls_created_total Calls created."),
            "{told}"
        );
    }
}
