//! The sentences of a personality that say what is so, as opposed to those that say what to do.

use colloquy_knowledge::{prose::blocks, sentences};

use super::intent::plain;

/// Words that make a sentence an instruction.
const INSTRUCTIONS: &[&str] = &[
    "must",
    "should",
    "never",
    "always",
    "don't",
    "not",
    "avoid",
    "respond",
    "response",
    "responses",
    "reply",
    "replies",
    "answer",
    "answers",
    "sentence",
    "sentences",
    "prompt",
    "instruction",
    "instructions",
    "pretend",
    "roleplay",
    "if",
    "please",
    "user",
    "user's",
    "assistant",
    "markdown",
    "emoji",
    "emojis",
    "tone",
    "style",
];
/// Words that begin an order.
const ORDERS: &[&str] = &[
    "act", "ask", "be", "begin", "call", "do", "end", "explain", "focus", "follow", "give",
    "greet", "help", "keep", "let", "make", "mention", "offer", "only", "play", "provide", "refer",
    "remember", "say", "speak", "start", "stay", "stick", "suggest", "talk", "tell", "try", "use",
    "when", "write",
];
/// Words after "you" that make an order of it.
const ORDERS_TO_YOU: &[&str] = &[
    "will", "shall", "can", "may", "need", "have to", "only", "speak", "talk", "keep", "use",
    "try", "are to", "are not",
];

/// What a personality says about the world and about the character.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// About the character, in its own words: "I am a guide".
    pub(super) own: Vec<String>,
    /// About everything else, as written.
    pub(super) other: Vec<String>,
}

/// Reads a personality, which is written to the character: "You are a guide. The zoo opens at nine. Keep it short."
pub(super) fn of(personality: &str) -> Facts {
    let mut facts = Facts::default();
    let paragraphs: Vec<String> = blocks(personality).map(|block| block.text).collect();
    for sentence in paragraphs.iter().flat_map(|text| sentences(text)) {
        let words = plain(sentence);
        let mut all = words.split_whitespace();
        let is_sentence = sentence.ends_with(['.', '!']) && all.clone().count() >= 3;
        if !is_sentence || all.clone().any(|word| INSTRUCTIONS.contains(&word)) {
            continue;
        }
        match all.next() {
            Some("you" | "you're" | "your") => {
                let rest = words
                    .split_once(' ')
                    .map_or("", |(_, rest)| rest.trim_start());
                let rest = rest.split_once(' ').map_or("", |(_, rest)| rest);
                let ordered = ORDERS_TO_YOU
                    .iter()
                    .any(|order| rest.starts_with(&format!("{order} ")));
                if !ordered {
                    facts.own.push(first_person(sentence));
                }
            }
            // A sentence about "you" in the middle would be about the visitor when it is spoken.
            Some(first)
                if !ORDERS.contains(&first)
                    && !all.any(|word| matches!(word, "you" | "your" | "you're")) =>
            {
                facts.other.push(sentence.to_owned());
            }
            _ => {}
        }
    }
    facts
}

/// "You are Max, and your job is.." as the character says it.
fn first_person(sentence: &str) -> String {
    let mut spoken = Vec::new();
    let mut after_i = false;
    let mut after_preposition = false;
    for token in sentence.split_whitespace() {
        let word = token.trim_end_matches(|c: char| !c.is_alphanumeric());
        let tail = &token[word.len()..];
        let lower = word.to_lowercase();
        let replaced = match lower.as_str() {
            "you" if after_preposition => "me",
            "you" => "I",
            "you're" | "you’re" => "I'm",
            "your" => "my",
            "yours" => "mine",
            "yourself" => "myself",
            "are" if after_i => "am",
            "were" if after_i => "was",
            _ => word,
        };
        after_i = replaced == "I";
        after_preposition = matches!(
            lower.as_str(),
            "to" | "with" | "for" | "about" | "of" | "from" | "by" | "at" | "on"
        );
        spoken.push(format!("{replaced}{tail}"));
    }
    let text = spoken.join(" ");
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_told_from_orders() {
        let facts = of(
            "You are Max, a guide at the zoo. You know every animal, and they come to you. Your favourite animal is the \
             otter. You must be polite. You speak slowly. Keep it short. Never swear. The zoo opens at nine. \
             Our zoo has 40 lions, twelve of which live near the\nentrance. If you are asked, lie. Otters eat what you like.",
        );
        assert_eq!(
            facts.own,
            [
                "I am Max, a guide at the zoo.",
                "I know every animal, and they come to me.",
                "My favourite animal is the otter."
            ]
        );
        assert_eq!(
            facts.other,
            [
                "The zoo opens at nine.",
                "Our zoo has 40 lions, twelve of which live near the entrance."
            ]
        );
        assert_eq!(of(""), Facts::default());
    }
}
