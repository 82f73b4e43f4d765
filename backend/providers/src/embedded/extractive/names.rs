//! What visitors say that they are called.

use super::{
    intent::{is_small_talk, plain},
    phrases::Phrases,
};

/// The longest name, in characters.
const MAX_NAME_CHARS: usize = 40;
/// The longest name in a script without spaces, which tells nothing about where a name ends.
const MAX_UNSPACED_CHARS: usize = 12;
/// The most words of a name.
const MAX_WORDS: usize = 3;
/// Words that go on where a name would stand: "my name is not important".
const NO_NAMES: &[&str] = &[
    "a",
    "an",
    "another",
    "hard",
    "important",
    "in",
    "irrelevant",
    "kein",
    "nicht",
    "no",
    "none",
    "not",
    "on",
    "pas",
    "secret",
    "so",
    "spelled",
    "the",
    "unimportant",
    "what",
    "what's",
    "your",
];
/// What people say that they are, written with a capital: of which country, people or belief. What many are named, such as "Christian", is
/// left out.
const GROUPS: &[&str] = &[
    "afghan",
    "african",
    "albanian",
    "algerian",
    "american",
    "anglican",
    "arab",
    "arabic",
    "argentinian",
    "armenian",
    "asian",
    "australian",
    "austrian",
    "bangladeshi",
    "belgian",
    "bolivian",
    "bosnian",
    "brazilian",
    "british",
    "buddhist",
    "bulgarian",
    "cambodian",
    "canadian",
    "caribbean",
    "catalan",
    "catholic",
    "chilean",
    "chinese",
    "colombian",
    "croatian",
    "cuban",
    "cypriot",
    "czech",
    "danish",
    "dutch",
    "eastern",
    "ecuadorian",
    "egyptian",
    "english",
    "estonian",
    "ethiopian",
    "european",
    "filipino",
    "finnish",
    "french",
    "georgian",
    "german",
    "ghanaian",
    "greek",
    "hindu",
    "hispanic",
    "hungarian",
    "icelandic",
    "indian",
    "indonesian",
    "iranian",
    "iraqi",
    "irish",
    "israeli",
    "italian",
    "jamaican",
    "japanese",
    "jewish",
    "kazakh",
    "kenyan",
    "korean",
    "kurdish",
    "latin",
    "latina",
    "latino",
    "latvian",
    "lebanese",
    "libyan",
    "lithuanian",
    "macedonian",
    "malaysian",
    "maltese",
    "mexican",
    "moldovan",
    "mongolian",
    "mormon",
    "moroccan",
    "muslim",
    "nepalese",
    "new",
    "nigerian",
    "north",
    "northern",
    "norwegian",
    "orthodox",
    "pakistani",
    "palestinian",
    "persian",
    "peruvian",
    "polish",
    "portuguese",
    "protestant",
    "romanian",
    "russian",
    "saudi",
    "scandinavian",
    "scots",
    "scottish",
    "senegalese",
    "serbian",
    "sikh",
    "singaporean",
    "slovak",
    "slovenian",
    "somali",
    "south",
    "southern",
    "spanish",
    "sudanese",
    "swedish",
    "swiss",
    "syrian",
    "taiwanese",
    "thai",
    "tunisian",
    "turkish",
    "ugandan",
    "ukrainian",
    "uruguayan",
    "venezuelan",
    "vietnamese",
    "welsh",
    "western",
    "zealander",
    "zimbabwean",
];
/// What stands before a name and is none alone.
const TITLES: &[&str] = &[
    "doctor",
    "dr",
    "frau",
    "herr",
    "miss",
    "mr",
    "mrs",
    "ms",
    "mx",
    "prof",
    "professor",
    "sir",
    "st",
];
const PUNCTUATION: [char; 14] = [
    ',', '.', '!', '?', ';', ':', '\n', '。', '，', '！', '？', '、', '；', '(',
];

/// The name that was given last in these turns of the visitor, which are in order. One that was said to be a name counts before one that
/// only looks like it.
pub(super) fn given(turns: &[&str], phrases: &Phrases) -> Option<String> {
    let told = turns.iter().rev();
    let told: Vec<&str> = told
        .copied()
        .filter(|turn| !is_asked_for(turn, phrases))
        .collect();
    let mut last = told.iter();
    let named = last.find_map(|turn| find(turn, &phrases.named, phrases));
    let found = named.or_else(|| told.iter().find_map(|turn| introduced(turn, phrases)))?;
    Some(found.name)
}

/// The name in a turn that says nothing else.
pub(super) fn only_given(said: &str, phrases: &Phrases) -> Option<String> {
    if is_asked_for(said, phrases) {
        return None;
    }
    let found = find(said, &phrases.named, phrases).or_else(|| introduced(said, phrases))?;
    let rest = plain(&format!("{} {}", found.before, found.after));
    is_small_talk(&rest, phrases).then_some(found.name)
}

/// Whether a turn asks what the visitor is called.
pub(super) fn is_asked_for(said: &str, phrases: &Phrases) -> bool {
    let text = plain(said);
    phrases.my_name.iter().any(|question| {
        let question = match phrases.unspaced {
            true => (*question).to_owned(),
            false => plain(question),
        };
        text.contains(&question) && is_small_talk(&text.replace(&question, " "), phrases)
    })
}

struct Found<'a> {
    name: String,
    before: &'a str,
    after: &'a str,
}

/// The name in "I'm Eva", and none in "I'm late", "I'm OK" and "I'm German".
fn introduced<'a>(turn: &'a str, phrases: &Phrases) -> Option<Found<'a>> {
    let found = find(turn, &phrases.introduced, phrases)?;
    let name = &found.name;
    let is_written_as_one =
        name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
    let is_group = |word: &str| GROUPS.contains(&word.to_lowercase().as_str());
    let tells_a_group = name.split([' ', '-']).all(is_group);
    (is_written_as_one && !tells_a_group).then_some(found)
}

fn find<'a>(turn: &'a str, patterns: &[&str], phrases: &Phrases) -> Option<Found<'a>> {
    let patterns = patterns.iter();
    let mut patterns = patterns.filter_map(|pattern| pattern.split_once("{name}"));
    patterns.find_map(|(before, after)| named(turn, before, after, phrases.unspaced))
}

/// The name between two parts of a phrase.
fn named<'a>(turn: &'a str, opens: &str, closes: &str, unspaced: bool) -> Option<Found<'a>> {
    let (before, rest) = match opens {
        // The name is what stands before, up to the sign before that.
        "" => {
            let end = turn.find(closes)?;
            let begin = turn[..end].rfind(PUNCTUATION);
            let begin = begin.map_or(0, |at| turn.ceil_char_boundary(at + 1));
            (&turn[..begin], &turn[begin..])
        }
        _ => behind(turn, opens, unspaced)?,
    };
    let stop = stop(rest);
    let phrase = &rest[..stop];
    let phrase = match closes {
        "" => phrase,
        _ => &phrase[..phrase.find(closes)?],
    };
    let name = match unspaced {
        true => {
            let name = phrase.trim();
            (name.chars().count() <= MAX_UNSPACED_CHARS).then(|| name.to_owned())?
        }
        false => words(phrase)?,
    };
    let is_name = name.starts_with(char::is_alphabetic) && name.chars().count() <= MAX_NAME_CHARS;
    let end = rest.find(&name).map_or(stop, |at| at + name.len());
    let after = rest[end..].trim_start();
    let after = after.strip_prefix(closes.trim()).unwrap_or(after);
    is_name.then_some(Found {
        name,
        before,
        after,
    })
}

/// Where a name ends at the latest: before a sign that is not the full stop of "Dr.".
fn stop(text: &str) -> usize {
    // Behind the last full stop of a title. Those that follow it at once are its own too, so a run of them is looked at once.
    let mut title_end = None;
    for (at, sign) in text.match_indices(PUNCTUATION) {
        let word = || text[..at].rsplit(char::is_whitespace).next();
        let is_of_title = title_end == Some(at) || word().is_some_and(is_title);
        if sign != "." || !is_of_title {
            return at;
        }
        title_end = Some(at + sign.len());
    }
    text.len()
}

/// Returns true for "Dr" and "Dr.", and what else is no name without one behind it.
fn is_title(word: &str) -> bool {
    let word = word.trim_end_matches('.').to_lowercase();
    TITLES.contains(&word.as_str())
}

/// The text before a phrase and behind it, however its letters are written.
fn behind<'a>(turn: &'a str, phrase: &str, unspaced: bool) -> Option<(&'a str, &'a str)> {
    let begins_word = |at: usize| {
        let before = turn[..at].chars().next_back();
        unspaced || !before.is_some_and(char::is_alphanumeric)
    };
    let starts = turn
        .char_indices()
        .map(|(at, _)| at)
        .filter(|at| begins_word(*at));
    let mut found = starts.filter_map(|at| {
        let mut rest = turn[at..].chars();
        let is_here = phrase.chars().all(|wanted| {
            let c = rest.next().map(|c| if c == '’' { '\'' } else { c });
            c.is_some_and(|c| c.to_lowercase().eq(wanted.to_lowercase()))
        });
        is_here.then(|| (&turn[..at], rest.as_str()))
    });
    found.next()
}

/// The first word, and those behind it that are written with a capital. What was only heard may be written small. A possessive such as
/// "John's" is none.
fn words(phrase: &str) -> Option<String> {
    let mut name = String::new();
    for word in phrase.split_whitespace().take(MAX_WORDS) {
        let is_capital = word.starts_with(char::is_uppercase);
        let is_owner = word.ends_with("'s") || word.ends_with("’s");
        if name.is_empty() {
            if is_owner || NO_NAMES.contains(&word.to_lowercase().as_str()) {
                return None;
            }
        } else if is_capital && !is_owner {
            name.push(' ');
        } else {
            break;
        }
        name.push_str(word);
        if !is_capital {
            break;
        }
    }
    (!name.is_empty() && !is_title(&name)).then_some(name)
}

/// A name as it is said back: what was heard in small letters gets its capital.
pub(super) fn capitalized(name: &str) -> String {
    let mut letters = name.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use colloquy_base::clock::{Clock as _, SystemClock};

    use super::{super::phrases, *};

    #[test]
    fn names_are_found_where_they_are_given() {
        for (language, said, name) in [
            ("en", "My name is Maria.", "Maria"),
            ("en", "hi my name is maria", "maria"),
            (
                "en",
                "Well, my name’s Anna Maria Lopez and I am lost",
                "Anna Maria Lopez",
            ),
            ("en", "You can call me Jean-Luc, please.", "Jean-Luc"),
            ("en", "I'm Eva", "Eva"),
            ("en", "I am Dave.", "Dave"),
            ("en", "Hi I’m Jo and I have a cat", "Jo"),
            ("en", "I'm Dr. Moss, hello.", "Dr. Moss"),
            ("en", "My name is Mrs Lopez.", "Mrs Lopez"),
            ("en", "I'm Christian.", "Christian"),
            ("en", "I'm German Lopez.", "German Lopez"),
            ("en", "My name is German.", "German"),
            ("de", "Hallo, ich heiße Jörg.", "Jörg"),
            ("fr", "Je m'appelle Chloé !", "Chloé"),
            ("ko", "제 이름은 마리아입니다.", "마리아"),
            ("hi", "मेरा नाम मारिया है", "मारिया"),
            ("zh", "你好，我叫玛丽亚。", "玛丽亚"),
            ("ja", "私の名前はマリアです。", "マリア"),
            ("ja", "はじめまして、田中と申します。", "田中"),
            ("he", "שמי מריה", "מריה"),
        ] {
            let phrases = phrases::of(Some(language));
            assert_eq!(given(&[said], phrases).as_deref(), Some(name), "{said}");
            assert!(!is_asked_for(said, phrases), "{said}");
        }
        let english = phrases::of(None);
        for said in [
            "My name is not important.",
            "Call me.",
            "What is my name?",
            "The enemy name is known",
            "I'm late, sorry.",
            "I am OK.",
            "I'm not Dave.",
            "I'm German.",
            "I am Muslim, is there a room for prayer?",
            "I'm South African.",
            "I'm Irish-American.",
            "I'm John's mother.",
            "My name is John’s, I think.",
            "I'm Dr.",
            "I am Dr., as they say.",
            "",
        ] {
            assert_eq!(given(&[said], english), None, "{said}");
        }
        let both = ["My name is Maria.", "Sorry, my name is Anna.", "Who am I?"];
        assert_eq!(given(&both, english).as_deref(), Some("Anna"));
        let named = ["My name is Maria.", "I'm Spanish."];
        assert_eq!(given(&named, english).as_deref(), Some("Maria"));
    }

    #[test]
    fn full_stops_behind_a_title_take_time_in_proportion() {
        assert_eq!(stop("Dr... Moss. And more"), "Dr... Moss".len());
        assert_eq!(stop("Moss... And more"), "Moss".len());
        let begin = SystemClock.instant();
        for text in [format!("dr{}", ".".repeat(200_000)), "dr. ".repeat(50_000)] {
            assert_eq!(stop(&text), text.len());
        }
        assert!((SystemClock.instant() - begin).as_secs() < 10);
    }

    #[test]
    fn a_name_alone_is_told_from_a_question_with_one() {
        let english = phrases::of(None);
        let alone = |said| only_given(said, english);
        assert_eq!(alone("Hello! My name is Maria.").as_deref(), Some("Maria"));
        assert_eq!(alone("My name is Maria, when do you open?"), None);
        assert!(is_asked_for("So what's my name?", english));
        assert!(is_asked_for("Do you remember my name", english));
        assert!(!is_asked_for("Who am I talking to?", english));
        assert!(!is_asked_for("What is my name in Greek letters?", english));
        assert!(is_asked_for("我叫什么名字？", phrases::of(Some("zh"))));
        assert_eq!(capitalized("maria"), "Maria");
    }
}
