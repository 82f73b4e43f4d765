//! What a question asks for, and the sentences that hold it.

use super::intent;

/// Words that ask whether something is needed.
const NEEDS: &[&str] = &[
    "do i need",
    "do i have to",
    "must i",
    "do we need",
    "is it necessary",
];

/// What a question word asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Time,
    Number,
    Place,
    /// What happens in some case.
    Case,
    /// What somebody may or can do.
    Possibility,
    /// What is needed.
    Need,
}

impl Kind {
    pub(super) fn of(said: &str) -> Option<Self> {
        let said = intent::plain(said);
        let has = |words: &[&str]| words.iter().any(|word| said.contains(&format!(" {word} ")));
        if has(&["what if", "what happens", "what now", "was passiert"]) {
            Some(Self::Case)
        } else if has(&[
            "when",
            "what time",
            "how long",
            "hours",
            "wann",
            "cuándo",
            "quand",
            "quando",
        ]) {
            Some(Self::Time)
        } else if has(&[
            "how much",
            "how many",
            "how old",
            "how far",
            "how tall",
            "price",
            "cost",
            "costs",
            "wie viel",
            "wie viele",
            "cuánto",
            "combien",
            "quanto",
        ]) {
            Some(Self::Number)
        } else if has(&["where", "wo", "dónde", "où", "dove", "onde"]) {
            Some(Self::Place)
        } else if has(NEEDS) && !asks_what_is_needed(&said) {
            Some(Self::Need)
        } else if has(&["can", "could", "may", "possible", "allowed"]) {
            Some(Self::Possibility)
        } else {
            None
        }
    }

    /// Whether a sentence holds what is asked for.
    pub(super) fn fits(self, sentence: &str) -> bool {
        const NUMBERS: &[&str] = &[
            "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
            "eleven", "twelve", "twenty", "thirty", "forty", "fifty", "hundred", "thousand",
            "free", "half",
        ];
        const TIMES: &[&str] = &[
            "o'clock",
            "am",
            "pm",
            "noon",
            "midnight",
            "daily",
            "monday",
            "tuesday",
            "wednesday",
            "thursday",
            "friday",
            "saturday",
            "sunday",
            "morning",
            "evening",
            "summer",
            "winter",
            "year",
            "years",
            "century",
            "today",
        ];
        const PLACES: &[&str] = &[
            "at", "in", "on", "near", "beside", "behind", "opposite", "between", "under", "next",
            "street", "floor", "left", "right", "north", "south", "east", "west", "entrance",
        ];
        let plain = intent::plain(sentence);
        let has = |words: &[&str]| plain.split_whitespace().any(|word| words.contains(&word));
        let counts = has(NUMBERS) || plain.bytes().any(|byte| byte.is_ascii_digit());
        match self {
            Self::Time => counts || has(TIMES),
            Self::Number => counts,
            Self::Place => has(PLACES),
            Self::Case => has(&["when", "if", "once", "after", "wenn"]),
            Self::Possibility => has(&["can", "may", "could", "cannot"]),
            Self::Need => has(&[
                "without", "need", "needs", "must", "require", "requires", "has",
            ]),
        }
    }
}

/// Returns true if a question is for the steps of something that is done: "How do I reset it?", but not "How long do I wait?"
pub(super) fn asks_for_steps(said: &str) -> bool {
    const HOW: &[&str] = &[
        "how do",
        "how does",
        "how can",
        "how could",
        "how should",
        "how to",
        "how would",
        "wie",
        "cómo",
        "comment",
        "como",
        "hoe",
        "jak",
    ];
    let plain = intent::plain(said);
    let is_amount = matches!(Kind::of(said), Some(Kind::Time | Kind::Number));
    !is_amount
        && HOW
            .iter()
            .any(|words| plain.contains(&format!(" {words} ")))
}

/// "Which version do I need?", where "do I need a version?" asks for something else.
pub(super) fn asks_what_is_needed(said: &str) -> bool {
    let said = intent::plain(said);
    let has = |words: &&str| said.contains(&format!(" {words} "));
    ["what", "which"].iter().any(has) && NEEDS.iter().any(has)
}
