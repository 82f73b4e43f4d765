//! When a character takes the floor: how often it cuts in while the visitor only pauses, how often it misses that a turn is over, and how long it
//! makes the visitor wait, for each way of telling speech and each way of telling the end of a turn.
//!
//! The engine runs in its own time, with Opus between; models answer as late as they take on this machine. The turns are human
//! recordings with pauses put in between words ([`set`]).
//!
//! | figure | what it is |
//! |---|---|
//! | `cut_ins_percent` | of pauses within a turn, those in which the turn was taken for over |
//! | `missed` | turns whose end was not found within 3 s |
//! | `wait_p50_ms`, `wait_p95_ms` | from the end of speech until the turn was taken for over |
//! | `invented` | of 20 sounds in which nobody speaks, those that were taken for a turn |
//! | `engine_ms_a_second` | what the engine takes for a second of sound: decoding and telling speech |

mod conversation;
mod set;

use std::{fmt, path::PathBuf, time::Duration};

use clap::Args;
use colloquy::{
    Config,
    providers::embedded::{Pool, TurnModels},
};
use serde_json::{Value, json};

use self::{
    conversation::{Rule, TurnOutcome},
    set::Turn,
};
use crate::{
    figures::{percentile, rounded},
    recordings::{self, Change},
};

/// Options of the benchmark.
#[derive(Debug, Args)]
pub(crate) struct TurnsOptions {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// The folder with the models.
    #[arg(long, env = "COLLOQUY_MODELS_DIR")]
    models: PathBuf,
    /// How often each turn is heard, with pauses of other lengths each time.
    #[arg(long, default_value_t = 6)]
    draws: usize,
}

/// What the benchmark prints.
#[derive(Debug)]
pub(crate) struct Report {
    turns: usize,
    pauses: usize,
    rows: Vec<Row>,
    activities: Vec<Activity>,
    json: bool,
}

/// The figures of one combination.
#[derive(Debug)]
struct Row {
    sound: &'static str,
    voice_activity: &'static str,
    rule: String,
    cut_ins_percent: f64,
    missed: usize,
    wait_p50_ms: Option<f64>,
    wait_p95_ms: Option<f64>,
    engine_ms: f64,
}

/// The figures of one way to tell speech.
#[derive(Debug)]
struct Activity {
    name: &'static str,
    /// Sounds without speech that were taken for a turn.
    invented: usize,
    sounds: usize,
}

/// What becomes of the turns on their way.
const SOUNDS: &[(&str, Option<Change>)] = &[
    ("clean", None),
    ("noise 10 dB below", Some(recordings::in_noise)),
];

/// What tells speech: what is part of the engine, and a model.
const ACTIVITIES: &[&str] = &["earshot", "silero-vad"];

/// The lengths of silence that are tried alone.
const FIXED_MS: &[u32] = &[200, 350, 500, 550, 800];

/// Runs the benchmark.
///
/// # Errors
/// When a model or a recording is missing, or a model fails.
pub(crate) async fn run(options: TurnsOptions) -> anyhow::Result<Report> {
    let pool = Pool::new(1)?;
    let models = |voice_activity: &str, end_of_turn: Option<&str>| {
        let mut config = Config::default();
        config.inference.models_dir = Some(options.models.clone());
        config.calls.voice_activity = Some(voice_activity.to_owned());
        config.calls.end_of_turn = end_of_turn.map(str::to_owned);
        TurnModels::from_config(&config, &pool)
    };
    let turns = set::all(options.draws)?;
    let holds = Config::default().calls;
    let mut rules: Vec<Rule> = FIXED_MS.iter().copied().map(Rule::fixed).collect();
    rules.push(Rule::predicted(
        holds.turn_stop_ms,
        holds.complete_stop_ms,
        holds.incomplete_stop_ms,
    ));
    let mut activities = Vec::new();
    for activity in ACTIVITIES {
        let models = models(activity, None)?;
        let rule = Rule::fixed(holds.turn_stop_ms);
        let sounds = recordings::without_speech();
        let mut invented = 0;
        for sound in &sounds {
            let heard = conversation::hear(&Turn::silent(sound), &models, &rule).await?;
            invented += usize::from(heard.replies > 0);
        }
        activities.push(Activity {
            name: models.voice_activity(),
            invented,
            sounds: sounds.len(),
        });
    }
    let mut rows = Vec::new();
    for (sound, change) in SOUNDS {
        let turns: Vec<Turn> = turns.iter().map(|turn| changed(turn, *change)).collect();
        for activity in ACTIVITIES {
            for rule in &rules {
                let models = models(activity, rule.predicted.map(|_| "smart-turn-v3.2"))?;
                let mut heard = Vec::new();
                for turn in &turns {
                    heard.push(conversation::hear(turn, &models, rule).await?);
                }
                rows.push(row(sound, models.voice_activity(), rule, &turns, &heard));
            }
        }
    }
    Ok(Report {
        turns: turns.len(),
        pauses: turns.iter().map(|turn| turn.pauses.len()).sum(),
        rows,
        activities,
        json: options.json,
    })
}

fn changed(turn: &Turn, change: Option<Change>) -> Turn {
    Turn {
        samples: change.map_or_else(|| turn.samples.clone(), |change| change(&turn.samples)),
        ..turn.clone()
    }
}

fn row(
    sound: &'static str,
    voice_activity: &'static str,
    rule: &Rule,
    turns: &[Turn],
    heard: &[TurnOutcome],
) -> Row {
    let pauses: usize = turns.iter().map(|turn| turn.pauses.len()).sum();
    let cut_ins: usize = heard.iter().map(|heard| heard.cut_ins).sum();
    let mut waits: Vec<Duration> = heard.iter().filter_map(|heard| heard.waited).collect();
    waits.sort();
    Row {
        sound,
        voice_activity,
        rule: rule.to_string(),
        cut_ins_percent: (1_000.0 * cut_ins as f64 / pauses.max(1) as f64).round() / 10.0,
        missed: heard.len() - waits.len(),
        wait_p50_ms: percentile(&waits, 50),
        wait_p95_ms: percentile(&waits, 95),
        engine_ms: median(heard.iter().map(|heard| heard.engine_ms)),
    }
}

/// The middle one of these figures, rounded to hundredths.
fn median(figures: impl Iterator<Item = f64>) -> f64 {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    let middle = figures.get(figures.len() / 2);
    rounded(middle.copied().unwrap_or_default(), 100.0)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.json {
            let rows: Vec<Value> = self.rows.iter().map(Row::json).collect();
            let activities: Vec<Value> = self.activities.iter().map(Activity::json).collect();
            let report = json!({
                "turns": self.turns,
                "pauses": self.pauses,
                "voice_activity": activities,
                "rows": rows,
            });
            return write!(f, "{report}");
        }
        for activity in &self.activities {
            let Activity {
                name,
                invented,
                sounds,
            } = activity;
            writeln!(
                f,
                "{name}: {invented} of {sounds} sounds without speech taken for a turn"
            )?;
        }
        writeln!(f, "{} turns with {} pauses", self.turns, self.pauses)?;
        let figures = ["cut-ins %", "missed", "p50 ms", "p95 ms", "engine ms/s"];
        let labels = ["sound", "voice activity", "end of turn"];
        line(f, labels, figures.map(str::to_owned))?;
        for row in &self.rows {
            let ms = |value: Option<f64>| value.map_or("-".to_owned(), |ms| format!("{ms:.0}"));
            let figures = [
                format!("{:.1}", row.cut_ins_percent),
                row.missed.to_string(),
                ms(row.wait_p50_ms),
                ms(row.wait_p95_ms),
                format!("{:.2}", row.engine_ms),
            ];
            line(f, [row.sound, row.voice_activity, &row.rule], figures)?;
        }
        Ok(())
    }
}

fn line(f: &mut fmt::Formatter<'_>, labels: [&str; 3], figures: [String; 5]) -> fmt::Result {
    for label in labels {
        write!(f, "{label:22}")?;
    }
    for figure in figures {
        write!(f, "{figure:>12}")?;
    }
    writeln!(f)
}

impl Activity {
    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "invented": self.invented,
            "sounds": self.sounds,
        })
    }
}

impl Row {
    fn json(&self) -> Value {
        json!({
            "sound": self.sound,
            "voice_activity": self.voice_activity,
            "end_of_turn": self.rule,
            "cut_ins_percent": self.cut_ins_percent,
            "missed": self.missed,
            "wait_p50_ms": self.wait_p50_ms,
            "wait_p95_ms": self.wait_p95_ms,
            "engine_ms_a_second": self.engine_ms,
        })
    }
}
