//! What people say of themselves in plain words: a modest analysis for a server without a model.
//!
//! A field gets a value where the user states it ("My name is Ada", "I live in Berlin", "My favourite colour is blue"), in what they
//! say, not in questions, and not of others. What is not stated stays as it was known, or unknown; nothing is judged.

mod topics;

use std::collections::BTreeMap;

use colloquy_knowledge::sentences;
use serde_json::Value;

use self::topics::{DESCRIBED, ENDS, Shape, TOPICS, Topic};
use super::{
    output::Output,
    request::{Input, Originator},
};

/// The most words of a value.
const MOST_WORDS: usize = 8;

/// The most values of a list.
const MOST_VALUES: usize = 50;

/// What the user states.
pub(super) fn analyze(input: &Input) -> Output {
    let mut profile: BTreeMap<String, Option<String>> = input.profile.clone();
    let said = input
        .messages
        .iter()
        .filter(|message| message.originator == Originator::User);
    let said: Vec<Sentence<'_>> = said
        .flat_map(|message| sentences(&message.text))
        .filter(|sentence| !sentence.trim_end().ends_with('?'))
        .map(Sentence::of)
        .collect();
    let said = Said::new(said);
    for (field, value) in &mut profile {
        let description = input.descriptions.get(field).map_or("", String::as_str);
        let stated = said.of_field(field, description, value.as_deref());
        if stated.is_some() {
            *value = stated;
        }
    }
    let feedback = input.feedback.keys();
    Output {
        profile,
        feedback: feedback.map(|field| (field.clone(), Value::Null)).collect(),
    }
}

/// A sentence in its words, and the same without capital letters.
struct Sentence<'a> {
    words: Vec<&'a str>,
    plain: Vec<String>,
}

impl<'a> Sentence<'a> {
    fn of(text: &'a str) -> Self {
        let words: Vec<&str> = text.split_whitespace().collect();
        let plain = words.iter().map(|word| plain(word)).collect();
        Self { words, plain }
    }

    /// Where the words behind a phrase begin, wherever it stands.
    fn behind(&self, phrase: &[&str]) -> Option<usize> {
        let mut found = self.plain.windows(phrase.len());
        let at = found.position(|words| words.iter().zip(phrase).all(|(word, it)| word == it))?;
        // "If I live in Berlin", "when my name is called": what may be is not stated.
        let before = self.plain[..at].iter();
        let is_stated = before.rev().take(3).all(|word| {
            !matches!(
                word.as_str(),
                "if" | "when" | "wish" | "that" | "pretend" | "wenn" | "si"
            )
        });
        is_stated.then_some(at + phrase.len())
    }
}

fn plain(word: &str) -> String {
    let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
    word.replace('’', "'").to_lowercase()
}

/// What the user said, and what of it is about each topic.
struct Said<'a> {
    sentences: Vec<Sentence<'a>>,
    /// For each topic where it is stated, by the number of the sentence, and what.
    topics: Vec<Vec<(usize, String)>>,
    /// The sentences that speak of what is the user's.
    mine: Vec<usize>,
}

impl<'a> Said<'a> {
    fn new(sentences: Vec<Sentence<'a>>) -> Self {
        let of_topic = |topic: &Topic| {
            let phrases: Vec<Vec<&str>> = topic
                .stated
                .iter()
                .map(|phrase| phrase.split(' ').collect())
                .collect();
            let stated = sentences
                .iter()
                .enumerate()
                .filter_map(|(number, sentence)| {
                    Some((number, of_topic(topic, &phrases, sentence)?))
                });
            stated.collect()
        };
        let topics = TOPICS.iter().map(of_topic).collect();
        let is_mine = |sentence: &Sentence<'_>| sentence.plain.iter().any(|word| word == "my");
        let mine = sentences.iter().enumerate();
        let mine = mine.filter(|(_, sentence)| is_mine(sentence));
        let mine = mine.map(|(number, _)| number).collect();
        Self {
            sentences,
            topics,
            mine,
        }
    }

    /// What is stated of a field last; of a list in all, behind what is known of it.
    fn of_field(&self, field: &str, description: &str, known: Option<&str>) -> Option<String> {
        let name = words_of(field);
        // The name says more than the description does, which has many words.
        let described = words_of(description);
        let described = described
            .iter()
            .filter(|word| DESCRIBED.contains(&word.as_str()));
        let described: Vec<String> = described.cloned().collect();
        let asked = |words: &[String]| {
            TOPICS.iter().position(|topic| {
                words
                    .iter()
                    .any(|word| topic.asked.contains(&word.as_str()))
            })
        };
        let topic = asked(&name).or_else(|| asked(&described));
        let of_topic = topic.map_or(&[][..], |topic| &self.topics[topic]);
        let mut stated: Vec<(usize, String)> = of_topic.to_vec();
        for phrase in own_phrases(&name) {
            let phrase: Vec<&str> = phrase.split(' ').collect();
            for number in &self.mine {
                let sentence = &self.sentences[*number];
                let behind = sentence.behind(&phrase);
                stated.extend(behind.and_then(|behind| Some((*number, value(sentence, behind)?))));
            }
        }
        stated.sort_by_key(|(number, _)| *number);
        let is_list = topic.is_some_and(|topic| TOPICS[topic].shape == Shape::List);
        if !is_list {
            return stated.pop().map(|(_, value)| value);
        }
        let known = known.into_iter().flat_map(|known| known.split(','));
        let known = known.map(|value| value.trim().to_owned());
        let mut values: Vec<String> = Vec::new();
        for value in known.chain(stated.into_iter().map(|(_, value)| value)) {
            if values.len() < MOST_VALUES && !value.is_empty() && !values.contains(&value) {
                values.push(value);
            }
        }
        (!values.is_empty()).then(|| values.join(", "))
    }
}

/// `favouriteColour` and `favourite_colour` as words.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        let begins = letter.is_uppercase() && was_lower;
        was_lower = letter.is_lowercase();
        if begins || !letter.is_alphanumeric() {
            words.push(String::new());
        }
        if letter.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(letter.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// How a field of this name is stated by its name: "my favourite colour is".
fn own_phrases(name: &[String]) -> Vec<String> {
    if name.is_empty() {
        return Vec::new();
    }
    let name = name.join(" ");
    let spelled = [
        name.clone(),
        name.replace("favorite", "favourite")
            .replace("color", "colour"),
        name.replace("favourite", "favorite")
            .replace("colour", "color"),
    ];
    let mut phrases: Vec<String> = spelled
        .iter()
        .flat_map(|name| [format!("my {name} is"), format!("my {name} are")])
        .collect();
    phrases.sort_unstable();
    phrases.dedup();
    phrases
}

fn of_topic(topic: &Topic, phrases: &[Vec<&str>], sentence: &Sentence<'_>) -> Option<String> {
    if topic.shape == Shape::Email {
        let address = sentence
            .words
            .iter()
            .map(|word| word.trim_matches(|letter: char| !letter.is_alphanumeric()));
        let mut addresses = address.filter(|word| {
            word.split_once('@').is_some_and(|(name, host)| {
                !name.is_empty() && host.contains('.') && !host.contains('@')
            })
        });
        return addresses.next().map(str::to_owned);
    }
    // The longest that fits says most: "I work as a" before "I work as".
    let mut behind = phrases.iter().filter_map(|phrase| {
        let behind = sentence.behind(phrase)?;
        Some((phrase, behind))
    });
    let first = behind.next()?;
    let (phrase, behind) = behind.fold(first, |best, next| {
        if next.0.len() > best.0.len() {
            next
        } else {
            best
        }
    });
    match topic.shape {
        Shape::Name => name(sentence, behind),
        // "I have 3", which is how it is said in some languages, may be of anything.
        Shape::Age => age(
            sentence,
            behind,
            matches!(phrase[..], ["tengo" | "j'ai" | "ho"]),
        ),
        Shape::Words | Shape::List => value(sentence, behind),
        Shape::Email => None,
    }
}

fn name(sentence: &Sentence<'_>, behind: usize) -> Option<String> {
    let words = sentence.words.get(behind..)?;
    let mut name = Vec::new();
    for word in words.iter().take(3) {
        let bare = word.trim_matches(|letter: char| !letter.is_alphanumeric() && letter != '\'');
        let is_capital = bare.chars().next().is_some_and(char::is_uppercase);
        if bare.is_empty() || (!is_capital && !name.is_empty()) {
            break;
        }
        name.push(bare);
        if !is_capital || word.ends_with(|letter: char| !letter.is_alphanumeric()) {
            break;
        }
    }
    // Words that are written small may be a name that was only heard, but no word that goes on: "my name is not important".
    let is_word = matches!(
        name.first().copied(),
        Some("not" | "a" | "the" | "on" | "in" | "so" | "nicht")
    );
    (!name.is_empty() && !is_word).then(|| name.join(" "))
}

/// "I am 36 years old", "I'm 36."
fn age(sentence: &Sentence<'_>, behind: usize, says_years: bool) -> Option<String> {
    let number = sentence.plain.get(behind)?;
    let years: u32 = number.parse().ok()?;
    let next = sentence.plain.get(behind + 1).map(String::as_str);
    let ends = sentence
        .words
        .get(behind)
        .is_some_and(|word| word.ends_with([',', '.', '!']));
    let is_in_years = matches!(
        next,
        Some("years" | "year" | "jahre" | "años" | "ans" | "anni")
    );
    let is_age = is_in_years || (!says_years && (ends || matches!(next, None | Some("and"))));
    (is_age && (1..=130).contains(&years)).then(|| years.to_string())
}

/// The words up to the next thought.
fn value(sentence: &Sentence<'_>, behind: usize) -> Option<String> {
    let mut value: Vec<&str> = Vec::new();
    for (word, plain) in sentence.words.iter().zip(&sentence.plain).skip(behind) {
        if value.len() == MOST_WORDS || ENDS.contains(&plain.as_str()) {
            break;
        }
        let bare = word.trim_matches(|letter: char| {
            !letter.is_alphanumeric() && !matches!(letter, '%' | '$' | '€')
        });
        if bare.is_empty() {
            break;
        }
        value.push(bare);
        if word.ends_with([',', '.', '!', ';', ':', '…']) {
            break;
        }
    }
    let is_said = value.first().is_some_and(|first| {
        !matches!(plain(first).as_str(), "not" | "it" | "this" | "you" | "to")
    });
    is_said.then(|| value.join(" "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn profile(fields: &[(&str, Option<&str>)], said: &[&str]) -> Value {
        let messages = said
            .iter()
            .map(|text| json!({"text": text, "originator": "user"}));
        let mut messages: Vec<Value> = messages.collect();
        messages.push(json!({"text": "My name is Max. I live in Rome.", "originator": "bot"}));
        let schema = fields
            .iter()
            .map(|(field, _)| ((*field).to_owned(), json!({"type": "string"})));
        let known = fields
            .iter()
            .map(|(field, known)| ((*field).to_owned(), json!(known)));
        let body = json!({"input": {
            "messages": messages, "language": "English",
            "current_profile": known.collect::<serde_json::Map<_, _>>(),
            "profile_schema": schema.collect::<serde_json::Map<_, _>>(),
            "feedback_schema": {"mood": {"type": "string"}},
        }});
        let input = Input::parse(body.to_string().as_bytes()).unwrap();
        let output = analyze(&input);
        assert_eq!(output.feedback["mood"], Value::Null);
        json!(output.profile)
    }

    #[test]
    fn what_is_stated_is_found() {
        let fields = [
            ("name", None),
            ("age", None),
            ("city", None),
            ("occupation", None),
            ("employer", None),
            ("hobbies", None),
            ("favorite_color", None),
            ("email", None),
            ("petName", None),
        ];
        let said = [
            "Hello! My name is Ada Lovelace, and I'm 36 years old.",
            "I live in Berlin now, but I come from London.",
            "I work as an engineer because I like numbers. I work for Analytical Engines.",
            "My favourite colour is dark blue. I love long walks!",
            "Write to ada@example.com, please. My pet name is Byron.",
        ];
        let expected = json!({
            "name": "Ada Lovelace", "age": "36", "city": "Berlin", "occupation": "engineer",
            "employer": "Analytical Engines", "hobbies": "numbers, long walks", "favorite_color": "dark blue",
            "email": "ada@example.com", "petName": "Byron",
        });
        assert_eq!(profile(&fields, &said), expected);
    }

    #[test]
    fn nothing_is_invented() {
        let fields = [
            ("name", Some("Ada")),
            ("age", None),
            ("city", Some("Paris")),
            ("occupation", None),
            ("hobbies", None),
            ("shoe_size", None),
        ];
        let said = [
            "My brother's name is Tom. He lives in Madrid.",
            "Do I live in Vienna? I am tired. I am 5 minutes late.",
            "If I live in Rome, what should I see? My name is not important.",
            "I would like to know more. I wish I lived in Oslo.",
        ];
        let expected = json!({
            "name": "Ada", "age": null, "city": "Paris", "occupation": null, "hobbies": null, "shoe_size": null,
        });
        assert_eq!(profile(&fields, &said), expected);
        let moved = profile(
            &fields,
            &["I live in Rome.", "No, wait. I've moved to Oslo."],
        );
        assert_eq!(moved["city"], "Oslo");
    }

    #[test]
    fn what_somebody_likes_is_added_to_what_is_known() {
        let fields = [("likes", Some("tea, long walks")), ("dislikes", None)];
        let found = profile(&fields, &["I like jazz. I love tea! I hate noise."]);
        let expected = json!({"likes": "tea, long walks, jazz", "dislikes": "noise"});
        assert_eq!(found, expected);
        let unsaid = profile(&fields, &["Good morning."]);
        assert_eq!(
            unsaid,
            json!({"likes": "tea, long walks", "dislikes": null})
        );
    }

    #[test]
    fn a_number_that_somebody_has_is_no_age() {
        let fields = [("age", None)];
        for said in [
            "Tengo 3.",
            "J'ai 2, je crois.",
            "Ho 4.",
            "Tengo 3 hermanos.",
        ] {
            assert_eq!(profile(&fields, &[said])["age"], Value::Null, "{said}");
        }
        for said in [
            "Tengo 36 años.",
            "J'ai 36 ans.",
            "Ho 36 anni.",
            "Ich bin 36.",
        ] {
            assert_eq!(profile(&fields, &[said])["age"], "36", "{said}");
        }
    }

    /// The longest input is looked through in a moment, however its fields and sentences are.
    #[test]
    fn hostile_inputs_take_no_time() {
        let fields: Vec<(String, Option<&str>)> = (0..200)
            .map(|number| (format!("a_name_{number}"), None))
            .collect();
        let fields: Vec<(&str, Option<&str>)> = fields
            .iter()
            .map(|(name, known)| (name.as_str(), *known))
            .collect();
        for said in ["a。", "my ", "I like a. ", "my a name is ", "i am "] {
            let said = said.repeat(80_000 / said.len());
            let began = colloquy_base::clock::runtime_now();
            profile(&fields, &[&said]);
            let took = began.elapsed();
            let most = support::patience(std::time::Duration::from_secs(20));
            assert!(took < most, "{took:?}");
        }
    }

    #[test]
    fn other_languages_have_their_words_and_what_is_heard_has_no_capitals() {
        let fields = [("name", None), ("city", None)];
        let expected = json!({"name": "Ada", "city": "Köln"});
        assert_eq!(
            profile(&fields, &["Ich heiße Ada und ich wohne in Köln."]),
            expected
        );
        let heard = profile(&fields, &["my name is ada and i live in new york"]);
        assert_eq!(heard, json!({"name": "ada", "city": "new york"}));
        let french = profile(&fields, &["Je m’appelle Ada, j’habite à Lyon."]);
        assert_eq!(french, json!({"name": "Ada", "city": "Lyon"}));
    }
}
