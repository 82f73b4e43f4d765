//! The figures, as JSON or as a table.

use std::{fmt, process::ExitCode, time::Duration};

use serde::Serialize;

use crate::figures::percentile;

/// The longest p95 of a request, in milliseconds.
const TARGET_MS: f64 = 200.0;

/// The figures of one request.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    name: String,
    path: String,
    p50_ms: Option<f64>,
    p95_ms: Option<f64>,
    /// The body of the last answer.
    bytes: usize,
    is_slow: bool,
}

impl Figures {
    pub(super) fn new(
        name: String,
        path: String,
        mut samples: Vec<Duration>,
        bytes: usize,
    ) -> Self {
        samples.sort();
        let p95_ms = percentile(&samples, 95);
        Self {
            name,
            path,
            p50_ms: percentile(&samples, 50),
            p95_ms,
            bytes,
            is_slow: p95_ms.is_some_and(|ms| ms > TARGET_MS),
        }
    }
}

/// What the benchmark prints.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(super) database: &'static str,
    pub(super) documents: u32,
    pub(super) seed_seconds: f64,
    pub(super) requests: Vec<Figures>,
    #[serde(skip)]
    pub(super) json: bool,
    /// True if a slow request is a failure.
    #[serde(skip)]
    pub(super) check: bool,
}

impl Report {
    /// Returns a failure if requests were to be checked and one is slow.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.check && self.slow() > 0 {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        }
    }

    fn slow(&self) -> usize {
        self.requests.iter().filter(|it| it.is_slow).count()
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.json {
            return f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?);
        }
        writeln!(
            f,
            "{}, {} documents, seeded in {:.0} s\n",
            self.database, self.documents, self.seed_seconds
        )?;
        let header = ("request", "p50", "p95", "bytes");
        writeln!(
            f,
            "{:44}{:>12}{:>12}{:>10}",
            header.0, header.1, header.2, header.3
        )?;
        let shown =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1} ms"));
        for request in &self.requests {
            let mark = if request.is_slow { "  slow" } else { "" };
            writeln!(
                f,
                "{:44}{:>12}{:>12}{:>10}{mark}",
                request.name,
                shown(request.p50_ms),
                shown(request.p95_ms),
                request.bytes
            )?;
        }
        write!(f, "\np95 over {TARGET_MS:.0} ms: {}", self.slow())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(ms: u64, check: bool) -> Report {
        let samples = vec![Duration::from_millis(ms), Duration::from_millis(1)];
        let name = "calls".to_owned();
        Report {
            database: "sqlite",
            documents: 5,
            seed_seconds: 1.2,
            requests: vec![Figures::new(name, "/v2/calls".to_owned(), samples, 300)],
            json: false,
            check,
        }
    }

    #[test]
    fn slow_requests_are_marked() {
        let table = report(201, false).to_string();
        let row =
            "calls                                             1.0 ms    201.0 ms       300  slow";
        assert!(table.contains(row), "{table}");
        assert!(table.ends_with("p95 over 200 ms: 1"), "{table}");
        let table = report(200, false).to_string();
        assert!(!table.contains("slow"), "{table}");
    }

    #[test]
    fn slow_requests_fail_a_check() {
        for (ms, check, expected) in [
            (201, true, ExitCode::FAILURE),
            (201, false, ExitCode::SUCCESS),
            (200, true, ExitCode::SUCCESS),
        ] {
            assert_eq!(report(ms, check).exit_code(), expected);
        }
    }
}
