//! Figures of a run, and the turns that failed.

use std::{collections::BTreeMap, fmt, process::ExitCode, time::Duration};

use serde::Serialize;

use super::{
    judge::Verdict,
    set::{Kind, Turn},
};
use crate::figures::{percentile, rounded};

/// The least percentage of acceptable answers.
const ACCEPTABLE: f64 = 90.0;
/// The least percentage of declined questions.
const DECLINED: f64 = 95.0;
/// The most milliseconds of the median answer.
const P50_MS: f64 = 40.0;

/// A turn that was asked, and how its answer was judged.
#[derive(Debug)]
pub(crate) struct Judged {
    /// Character and conversation.
    pub(crate) place: String,
    pub(crate) turn: Turn,
    pub(crate) answer: String,
    pub(crate) verdict: Verdict,
    pub(crate) took: Duration,
}

/// Acceptable answers of all.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct Share {
    acceptable: usize,
    turns: usize,
}

impl Share {
    fn count(&mut self, is_acceptable: bool) {
        self.turns += 1;
        self.acceptable += usize::from(is_acceptable);
    }

    fn percent(self) -> Option<f64> {
        (self.turns > 0).then(|| rounded(100.0 * self.acceptable as f64 / self.turns as f64, 10.0))
    }
}

/// An answer that broke a rule.
#[derive(Debug, Serialize)]
pub(crate) struct Failure {
    place: String,
    says: String,
    answer: String,
    good: String,
    faults: Vec<String>,
}

/// What the benchmark prints.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    acceptable: Option<f64>,
    contradicted: usize,
    declined: Option<f64>,
    p50_ms: Option<f64>,
    turns: usize,
    unanswerable: usize,
    hard: Share,
    kinds: BTreeMap<Kind, Share>,
    characters: BTreeMap<String, Share>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    failures: Vec<Failure>,
    #[serde(skip)]
    json: bool,
    #[serde(skip)]
    check: bool,
}

impl Report {
    /// Sums up the turns of conversations and the unanswerable questions.
    pub(crate) fn new(turns: Vec<Judged>, unanswerable: Vec<Judged>) -> Self {
        let (mut all, mut hard, mut declined) =
            (Share::default(), Share::default(), Share::default());
        let (mut kinds, mut characters) = (BTreeMap::new(), BTreeMap::new());
        for judged in &turns {
            let is_acceptable = judged.verdict.is_acceptable();
            let kind: &mut Share = kinds.entry(judged.turn.kind).or_default();
            kind.count(is_acceptable);
            let name = judged.place.split('/').next().unwrap_or_default();
            let character: &mut Share = characters.entry(name.to_owned()).or_default();
            character.count(is_acceptable);
            all.count(is_acceptable);
            if judged.turn.hard {
                hard.count(is_acceptable);
            }
        }
        for judged in &unanswerable {
            declined.count(judged.verdict.is_acceptable());
        }
        let every = || turns.iter().chain(&unanswerable);
        let mut took: Vec<Duration> = every().map(|it| it.took).collect();
        took.sort_unstable();
        let contradicted = every().filter(|it| it.verdict.is_contradicted).count();
        let failures = turns.into_iter().chain(unanswerable);
        let failures = failures.filter(|it| !it.verdict.is_acceptable());
        Self {
            acceptable: all.percent(),
            contradicted,
            declined: declined.percent(),
            p50_ms: percentile(&took, 50),
            turns: all.turns,
            unanswerable: declined.turns,
            hard,
            kinds,
            characters,
            failures: failures.map(Failure::of).collect(),
            json: false,
            check: false,
        }
    }

    /// Chooses how it is printed, and whether the exit code tells of missed targets.
    pub(crate) fn shown(self, json: bool, verbose: bool, check: bool) -> Self {
        let failures = match verbose {
            true => self.failures,
            false => Vec::new(),
        };
        Self {
            failures,
            json,
            check,
            ..self
        }
    }

    /// Returns a failure if a target was missed and `--check` asked for it.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.check && !self.is_good() {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        }
    }

    fn is_good(&self) -> bool {
        let reaches = |figure: Option<f64>, target| figure.is_none_or(|figure| figure >= target);
        reaches(self.acceptable, ACCEPTABLE)
            && reaches(self.declined, DECLINED)
            && self.contradicted == 0
            && self.p50_ms.is_none_or(|p50| p50 <= P50_MS)
    }
}

impl Failure {
    fn of(judged: Judged) -> Self {
        Self {
            place: judged.place,
            says: judged.turn.says,
            good: judged.turn.good,
            answer: judged.answer,
            faults: judged.verdict.faults,
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.json {
            return f.write_str(&serde_json::to_string(self).map_err(|_| fmt::Error)?);
        }
        for failure in &self.failures {
            writeln!(
                f,
                "{}\n  > {}\n  < {}\n  {}",
                failure.place,
                failure.says,
                failure.answer,
                failure.faults.join("; ")
            )?;
            match failure.good.as_str() {
                "" => writeln!(f)?,
                good => writeln!(f, "  good: {good}\n")?,
            }
        }
        let shown = |figure: Option<f64>| figure.map_or("-".to_owned(), |it| format!("{it:.1}"));
        let row = |f: &mut fmt::Formatter<'_>, name: &str, share: Share| {
            let of = format!("{}/{}", share.acceptable, share.turns);
            writeln!(f, "  {name:16}{of:>8}{:>8} %", shown(share.percent()))
        };
        writeln!(f, "acceptable by kind of turn")?;
        for (kind, share) in &self.kinds {
            row(f, &format!("{kind:?}"), *share)?;
        }
        row(f, "hard", self.hard)?;
        writeln!(f, "acceptable by character")?;
        for (name, share) in &self.characters {
            row(f, name, *share)?;
        }
        writeln!(f)?;
        writeln!(
            f,
            "acceptable    {} % of {}",
            shown(self.acceptable),
            self.turns
        )?;
        writeln!(f, "contradicted  {}", self.contradicted)?;
        writeln!(
            f,
            "declined      {} % of {}",
            shown(self.declined),
            self.unanswerable
        )?;
        write!(f, "p50           {} ms", shown(self.p50_ms))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(fault: Option<&str>, is_contradicted: bool) -> Judged {
        Judged {
            place: "shop/hours".to_owned(),
            turn: Turn::default(),
            answer: "At nine.".to_owned(),
            verdict: Verdict {
                faults: fault.map(str::to_owned).into_iter().collect(),
                is_contradicted,
                is_refusal: false,
            },
            took: Duration::from_millis(3),
        }
    }

    fn exit_code(turns: Vec<Judged>, unanswerable: Vec<Judged>, check: bool) -> ExitCode {
        Report::new(turns, unanswerable)
            .shown(false, false, check)
            .exit_code()
    }

    #[test]
    fn missed_targets_fail_a_check() {
        let good = || vec![judged(None, false)];
        assert_eq!(exit_code(good(), good(), true), ExitCode::SUCCESS);
        let bad = || vec![judged(Some("lacks"), false)];
        assert_eq!(exit_code(bad(), good(), true), ExitCode::FAILURE);
        assert_eq!(exit_code(bad(), good(), false), ExitCode::SUCCESS);
        assert_eq!(exit_code(good(), bad(), true), ExitCode::FAILURE);
        let mut one = vec![judged(Some("is wrong"), true)];
        one.extend((0..99).map(|_| judged(None, false)));
        assert_eq!(exit_code(one, good(), true), ExitCode::FAILURE);
    }

    #[test]
    fn failures_are_shown_on_request() {
        let turns = || vec![judged(Some("lacks \"ten\""), false), judged(None, false)];
        let shown = Report::new(turns(), Vec::new()).shown(false, true, false);
        let shown = shown.to_string();
        assert!(shown.contains("< At nine.\n  lacks \"ten\""), "{shown}");
        assert!(shown.contains("acceptable    50.0 % of 2"), "{shown}");
        let hidden = Report::new(turns(), Vec::new()).shown(true, false, false);
        let hidden: serde_json::Value = serde_json::from_str(&hidden.to_string()).unwrap();
        assert_eq!(hidden["acceptable"], 50.0);
        assert_eq!(hidden["declined"], serde_json::Value::Null);
        assert_eq!(hidden["kinds"]["fact"]["turns"], 2);
        assert!(hidden["failures"].is_null());
    }
}
