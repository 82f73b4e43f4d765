//! When a character takes the floor: how often it cuts in while the visitor only pauses, how often it misses that a turn is over, and how long it
//! makes the visitor wait, for each way of telling speech and each way of telling the end of a turn.
//!
//! The engine runs in its own time, with Opus between; models answer as late as they take on this machine. The turns are human
//! recordings with pauses put in between words, joined into conversations in which the character answers ([`set`]).
//!
//! A row wins that misses the fewest turns, and of those the one that costs visitors the least time: what they wait in the mean, and
//! [`CUT_IN`] for each turn that was cut into, for the character's words over theirs and for beginning again. What is clean and what is in
//! noise counts alike. Who wins if a cut-in costs half of that, or twice, is printed beside it.
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
use harness::sounds::without_speech;
use serde_json::{Value, json};

use self::{
    conversation::{ConversationOutcome, Rule},
    set::Conversation,
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
    /// What a cut-in may cost, and the row that wins then.
    winners: Vec<(Duration, String)>,
    /// The row that the settings have by default.
    default: String,
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
    /// Of a turn, in the mean.
    cut_ins_a_turn: f64,
    wait_mean_ms: f64,
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

/// What a cut-in costs a visitor.
const CUT_IN: Duration = Duration::from_secs(1);

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
    let conversations = set::all(options.draws)?;
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
        let sounds = without_speech();
        let mut invented = 0;
        for sound in &sounds {
            let heard = conversation::hear(&Conversation::silent(sound), &models, &rule).await?;
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
        let conversations = conversations.iter().map(|one| changed(one, *change));
        let conversations: Vec<Conversation> = conversations.collect();
        for activity in ACTIVITIES {
            for rule in &rules {
                let models = models(activity, rule.predicted.map(|_| "smart-turn-v3.2"))?;
                let mut heard = Vec::new();
                for conversation in &conversations {
                    heard.push(conversation::hear(conversation, &models, rule).await?);
                }
                let activity = models.voice_activity();
                rows.push(row(sound, activity, rule, &conversations, &heard));
            }
        }
    }
    let default_rule = match &holds.end_of_turn {
        None => Rule::fixed(holds.turn_stop_ms),
        Some(_) => Rule::predicted(
            holds.turn_stop_ms,
            holds.complete_stop_ms,
            holds.incomplete_stop_ms,
        ),
    };
    // What a server uses that has all models and no settings.
    let activity = {
        let mut config = Config::default();
        config.inference.models_dir = Some(options.models.clone());
        TurnModels::from_config(&config, &pool)?.voice_activity()
    };
    let winner = |costs: Duration| (costs, winner(&rows, costs).unwrap_or_default());
    let turns = || conversations.iter().flat_map(|one| &one.turns);
    Ok(Report {
        turns: turns().count(),
        pauses: turns().map(|turn| turn.pauses.len()).sum(),
        winners: [CUT_IN / 2, CUT_IN, CUT_IN * 2].map(winner).into(),
        default: combination(activity, &default_rule.to_string()),
        rows,
        activities,
        json: options.json,
    })
}

fn changed(conversation: &Conversation, change: Option<Change>) -> Conversation {
    let Conversation { samples, turns } = conversation;
    Conversation {
        samples: change.map_or_else(|| samples.clone(), |change| change(samples)),
        turns: turns.clone(),
    }
}

/// What a combination is called.
fn combination(voice_activity: &str, rule: &str) -> String {
    format!("{voice_activity}, {rule}")
}

/// The combination that wins if a cut-in costs so much.
fn winner(rows: &[Row], cut_in: Duration) -> Option<String> {
    let mut costs: Vec<(String, usize, f64)> = Vec::new();
    for row in rows {
        let name = combination(row.voice_activity, &row.rule);
        let lost_ms = row.wait_mean_ms + row.cut_ins_a_turn * cut_in.as_secs_f64() * 1_000.0;
        match costs.iter_mut().find(|(other, ..)| *other == name) {
            Some((_, missed, all)) => (*missed, *all) = (*missed + row.missed, *all + lost_ms),
            None => costs.push((name, row.missed, lost_ms)),
        }
    }
    let best = costs
        .into_iter()
        .min_by(|one, other| one.1.cmp(&other.1).then(one.2.total_cmp(&other.2)));
    best.map(|(name, ..)| name)
}

fn row(
    sound: &'static str,
    voice_activity: &'static str,
    rule: &Rule,
    conversations: &[Conversation],
    heard: &[ConversationOutcome],
) -> Row {
    let turns: Vec<_> = conversations.iter().flat_map(|one| &one.turns).collect();
    let pauses: usize = turns.iter().map(|turn| turn.pauses.len()).sum();
    let cut_ins: usize = heard.iter().map(|heard| heard.cut_ins).sum();
    let waits = heard.iter().flat_map(|heard| &heard.waited);
    let mut waits: Vec<Duration> = waits.copied().flatten().collect();
    waits.sort();
    let waited: Duration = waits.iter().sum();
    Row {
        sound,
        voice_activity,
        rule: rule.to_string(),
        cut_ins_percent: (1_000.0 * cut_ins as f64 / pauses.max(1) as f64).round() / 10.0,
        missed: turns.len() - waits.len(),
        wait_p50_ms: percentile(&waits, 50),
        wait_p95_ms: percentile(&waits, 95),
        engine_ms: median(heard.iter().map(|heard| heard.engine_ms)),
        cut_ins_a_turn: cut_ins as f64 / turns.len().max(1) as f64,
        wait_mean_ms: waited.as_secs_f64() * 1_000.0 / waits.len().max(1) as f64,
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
            let winners = self.winners.iter();
            let winners =
                winners.map(|(cut_in, row)| json!({"cut_in_ms": cut_in.as_millis(), "row": row}));
            let report = json!({
                "winners": winners.collect::<Vec<_>>(),
                "default": self.default,
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
        for (cut_in, row) in &self.winners {
            writeln!(
                f,
                "if a cut-in costs {} ms, this wins: {row}",
                cut_in.as_millis()
            )?;
        }
        writeln!(f, "the default: {}", self.default)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_wins_that_misses_nothing_and_costs_the_least() {
        let row = |sound, stop_ms, missed, cut_ins_a_turn, wait_mean_ms| Row {
            sound,
            voice_activity: "earshot",
            rule: Rule::fixed(stop_ms).to_string(),
            cut_ins_percent: 0.0,
            missed,
            wait_p50_ms: None,
            wait_p95_ms: None,
            engine_ms: 0.0,
            cut_ins_a_turn,
            wait_mean_ms,
        };
        let rows = [
            row("clean", 200, 0, 0.8, 250.0),
            row("clean", 550, 0, 0.4, 600.0),
            row("clean", 800, 0, 0.2, 850.0),
            // In noise the shortest misses a turn.
            row("noise", 200, 1, 0.1, 250.0),
            row("noise", 550, 0, 0.4, 600.0),
            row("noise", 800, 0, 0.2, 850.0),
        ];
        let wins = |ms| winner(&rows, Duration::from_millis(ms)).unwrap();
        assert_eq!(wins(1_000), "earshot, 550 ms");
        assert_eq!(wins(2_000), "earshot, 800 ms");
        assert_eq!(winner(&[], CUT_IN), None);
    }
}
