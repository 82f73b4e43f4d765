//! The figures, as JSON or as a table.

use std::{fmt, time::Duration};

use harness::client::Stack;
use serde::Serialize;

use super::{HOLD_MS, Window, floor::Floor, visitor::Visit};
use crate::figures::{megabytes, percentile, rounded};

/// The figures of one number of calls at once. Milliseconds are rounded to hundredths.
#[derive(Debug, Serialize)]
pub(crate) struct Figures {
    calls: usize,
    /// Texts a second that the server's models made vectors of meanwhile; `None`: they had nothing to do.
    busy_texts_per_second: Option<f64>,
    turns: usize,
    v2v_p50_ms: Option<f64>,
    v2v_p95_ms: Option<f64>,
    v2v_floor_p50_ms: Option<f64>,
    v2v_floor_p95_ms: Option<f64>,
    barge_in_p50_ms: Option<f64>,
    barge_in_p95_ms: Option<f64>,
    connect_p50_ms: Option<f64>,
    connect_p95_ms: Option<f64>,
    connect_floor_p50_ms: Option<f64>,
    connect_floor_p95_ms: Option<f64>,
    pacing_p50_ms: Option<f64>,
    pacing_p95_ms: Option<f64>,
    pacing_p99_ms: Option<f64>,
    cpu_core_per_call: f64,
    rss_mb_per_call: f64,
    idle_rss_mb: f64,
    missed_turns: usize,
    early_turns: usize,
    failed_barge_ins: usize,
    measured_seconds: f64,
}

/// What the benchmark prints.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(super) client: Stack,
    pub(super) codec_alone_core_per_call: f64,
    #[serde(rename = "calls")]
    pub(super) figures: Vec<Figures>,
    #[serde(skip)]
    pub(super) json: bool,
}

impl Figures {
    pub(super) fn new(
        visits: &[Visit],
        window: &Window,
        mut floor: Floor,
        idle_bytes: u64,
        busy_texts: Option<usize>,
    ) -> Self {
        floor.trips.sort();
        floor.connections.sort();
        let v2v_floor = |part| {
            let least = percentile(&floor.trips, part)? + f64::from(HOLD_MS);
            Some(rounded(least, 100.0))
        };
        let all = |samples: fn(&Visit) -> &Vec<Duration>| {
            let mut all: Vec<Duration> = visits.iter().flat_map(samples).copied().collect();
            all.sort();
            all
        };
        let (v2v, barge_in) = (all(|visit| &visit.v2v), all(|visit| &visit.barge_in));
        let pacing = all(|visit| &visit.pacing);
        let seconds = window.wall.as_secs_f64().max(0.001);
        let mut connect: Vec<Duration> = visits.iter().map(|visit| visit.connect).collect();
        connect.sort();
        let sum = |count: fn(&Visit) -> usize| visits.iter().map(count).sum::<usize>();
        let calls = visits.len();
        let (missed_turns, early_turns) = (sum(|visit| visit.missed), sum(|visit| visit.early));
        let grown = window.resident_bytes.saturating_sub(idle_bytes);
        Self {
            calls,
            busy_texts_per_second: busy_texts.map(|texts| rounded(texts as f64 / seconds, 10.0)),
            turns: v2v.len() + missed_turns + early_turns,
            v2v_p50_ms: percentile(&v2v, 50),
            v2v_p95_ms: percentile(&v2v, 95),
            v2v_floor_p50_ms: v2v_floor(50),
            v2v_floor_p95_ms: v2v_floor(95),
            barge_in_p50_ms: percentile(&barge_in, 50),
            barge_in_p95_ms: percentile(&barge_in, 95),
            connect_p50_ms: percentile(&connect, 50),
            connect_p95_ms: percentile(&connect, 95),
            connect_floor_p50_ms: percentile(&floor.connections, 50),
            connect_floor_p95_ms: percentile(&floor.connections, 95),
            pacing_p50_ms: percentile(&pacing, 50),
            pacing_p95_ms: percentile(&pacing, 95),
            pacing_p99_ms: percentile(&pacing, 99),
            cpu_core_per_call: rounded(
                window.processor.as_secs_f64() / seconds / calls as f64,
                10_000.0,
            ),
            rss_mb_per_call: rounded(megabytes(grown) / calls as f64, 1_000.0),
            idle_rss_mb: rounded(megabytes(idle_bytes), 10.0),
            missed_turns,
            early_turns,
            failed_barge_ins: sum(|visit| visit.failed_barge_ins),
            measured_seconds: rounded(window.wall.as_secs_f64(), 10.0),
        }
    }
}

/// How a figure is shown.
type Cell<'a> = &'a dyn Fn(&Figures) -> String;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.json {
            return f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?);
        }
        let milliseconds =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.0} ms"));
        let tenths =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.1} ms"));
        let finely =
            |value: Option<f64>| value.map_or("-".to_owned(), |value| format!("{value:.2} ms"));
        writeln!(f, "{:28}{:>12}", "clients on", self.client.to_string())?;
        write!(f, "{:28}", "calls at once")?;
        let rows: [(&str, Cell); 21] = [
            ("texts a second, by models", &|figures| {
                figures
                    .busy_texts_per_second
                    .map_or("-".to_owned(), |texts| format!("{texts:.0}"))
            }),
            ("voice to voice, p50", &|figures| {
                milliseconds(figures.v2v_p50_ms)
            }),
            ("voice to voice, p95", &|figures| {
                milliseconds(figures.v2v_p95_ms)
            }),
            ("the least possible, p50", &|figures| {
                tenths(figures.v2v_floor_p50_ms)
            }),
            ("the least possible, p95", &|figures| {
                tenths(figures.v2v_floor_p95_ms)
            }),
            ("barge-in, p50", &|figures| {
                milliseconds(figures.barge_in_p50_ms)
            }),
            ("barge-in, p95", &|figures| {
                milliseconds(figures.barge_in_p95_ms)
            }),
            ("connect, p50", &|figures| {
                milliseconds(figures.connect_p50_ms)
            }),
            ("connect, p95", &|figures| {
                milliseconds(figures.connect_p95_ms)
            }),
            ("connect, alone, p50", &|figures| {
                tenths(figures.connect_floor_p50_ms)
            }),
            ("connect, alone, p95", &|figures| {
                tenths(figures.connect_floor_p95_ms)
            }),
            ("off the pace, p50", &|figures| {
                finely(figures.pacing_p50_ms)
            }),
            ("off the pace, p95", &|figures| {
                finely(figures.pacing_p95_ms)
            }),
            ("off the pace, p99", &|figures| {
                finely(figures.pacing_p99_ms)
            }),
            ("processor a call, cores", &|figures| {
                format!("{:.4}", figures.cpu_core_per_call)
            }),
            ("memory a call", &|figures| {
                format!("{:.2} MB", figures.rss_mb_per_call)
            }),
            ("memory before the calls", &|figures| {
                format!("{:.1} MB", figures.idle_rss_mb)
            }),
            ("turns", &|figures| figures.turns.to_string()),
            ("missed turns", &|figures| figures.missed_turns.to_string()),
            ("early turns", &|figures| figures.early_turns.to_string()),
            ("failed barge-ins", &|figures| {
                figures.failed_barge_ins.to_string()
            }),
        ];
        for figures in &self.figures {
            write!(f, "{:>12}", figures.calls)?;
        }
        for (name, value) in rows {
            write!(f, "\n{name:28}")?;
            for figures in &self.figures {
                write!(f, "{:>12}", value(figures))?;
            }
        }
        let (alone, name) = (self.codec_alone_core_per_call, "Opus alone, cores a call");
        write!(f, "\n{name:28}{alone:>12.4}")?;
        write!(f, "\n{:28}", "times Opus alone")?;
        for figures in &self.figures {
            write!(f, "{:>12.2}", figures.cpu_core_per_call / alone)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_per_call() {
        let visit = |ms| Visit {
            connect: Duration::from_millis(ms),
            v2v: vec![Duration::from_millis(10 * ms)],
            pacing: vec![Duration::from_micros(100 * ms)],
            missed: 1,
            ..Visit::default()
        };
        let window = Window {
            wall: Duration::from_secs(10),
            processor: Duration::from_secs(1),
            resident_bytes: 5_000_000,
        };
        let floor = Floor {
            trips: vec![Duration::from_micros(500)],
            connections: vec![Duration::from_millis(20)],
        };
        let figures = Figures::new(&[visit(1), visit(2)], &window, floor, 1_000_000, Some(250));
        assert_eq!(figures.v2v_floor_p50_ms, Some(200.5));
        assert_eq!(figures.connect_floor_p95_ms, Some(20.0));
        assert_eq!(figures.cpu_core_per_call, 0.05);
        assert_eq!(figures.rss_mb_per_call, 2.0);
        assert_eq!(
            (figures.calls, figures.turns, figures.missed_turns),
            (2, 4, 2)
        );
        assert_eq!(figures.v2v_p50_ms, Some(10.0));
        assert_eq!(figures.barge_in_p50_ms, None);
        assert_eq!(
            (figures.pacing_p50_ms, figures.pacing_p99_ms),
            (Some(0.1), Some(0.2))
        );
        assert_eq!(figures.busy_texts_per_second, Some(25.0));
        let table = Report {
            client: Stack::Webrtc,
            codec_alone_core_per_call: 0.02,
            figures: vec![figures],
            json: false,
        }
        .to_string();
        for row in [
            "voice to voice, p50                10 ms",
            "the least possible, p50         200.5 ms",
            "off the pace, p99                0.20 ms",
        ] {
            assert!(table.contains(row), "{table}");
        }
        assert!(
            table.ends_with("times Opus alone                    2.50"),
            "{table}"
        );
    }
}
