//! How far a benchmark is that takes minutes: its figures on standard error as soon as they are known, and a bound for each of its steps.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use harness::client::now;
use serde_json::{Map, Value};
use tokio::time::timeout;

/// The figures so far.
#[derive(Debug)]
pub(crate) struct Progress {
    began: Instant,
    figures: Map<String, Value>,
}

impl Progress {
    /// The beginning of a benchmark.
    pub(crate) fn begin() -> Self {
        Self {
            began: now(),
            figures: Map::new(),
        }
    }

    /// Keeps a figure and shows it.
    pub(crate) fn note(&mut self, name: impl Into<String>, value: impl Into<Value>) {
        let (name, value) = (name.into(), value.into());
        self.say(&format!("{name} {value}"));
        self.figures.insert(name, value);
    }

    /// Measures something, and shows what.
    ///
    /// # Errors
    /// When it fails or takes longer than `limit`; the error names it.
    pub(crate) async fn measure<T>(
        &self,
        what: &str,
        limit: Duration,
        measured: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<T> {
        self.say(&format!("{what} .."));
        let measured = timeout(limit, measured).await;
        let too_long = || format!("{what} takes longer than {} s", limit.as_secs());
        let measured = measured.with_context(too_long)?;
        measured.with_context(|| what.to_owned())
    }

    /// All figures, at the end.
    pub(crate) fn into_figures(self) -> Map<String, Value> {
        self.figures
    }

    #[expect(
        clippy::print_stderr,
        reason = "what a benchmark shows while it measures"
    )]
    fn say(&self, what: &str) {
        let seconds = self.began.elapsed().as_secs();
        eprintln!("{seconds:>5} s  {what}");
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use super::*;

    #[tokio::test]
    async fn what_does_not_end_is_named() {
        let progress = Progress::begin();
        let endless = pending::<anyhow::Result<()>>();
        let error = progress.measure("wer_clean", Duration::ZERO, endless).await;
        let error = format!("{:#}", error.unwrap_err());
        assert!(
            error.starts_with("wer_clean takes longer than 0 s"),
            "{error}"
        );
        let failing = ready(Err::<(), _>(anyhow::anyhow!("no sound")));
        let error = progress.measure("tts", Duration::MAX, failing).await;
        assert_eq!(format!("{:#}", error.unwrap_err()), "tts: no sound");
    }

    #[test]
    fn figures_are_kept() {
        let mut progress = Progress::begin();
        progress.note("words", 236);
        progress.note("missing", None::<f64>);
        let figures = progress.into_figures();
        assert_eq!(figures.len(), 2);
        assert_eq!(figures["words"], 236);
        assert!(figures["missing"].is_null());
    }
}
