//! The words of a recording as its client wants them written.

/// Sounds that people make while they think, by the language that they are made in.
fn fillers(language: &str) -> &'static [&'static str] {
    match language {
        "en" => &[
            "um", "umm", "uh", "uhh", "uhm", "er", "erm", "hm", "hmm", "mhm",
        ],
        "es" => &["eh", "em", "ehm", "hmm"],
        "fr" => &["euh", "heu", "hum", "hmm"],
        "de" => &["äh", "ähm", "öh", "öhm", "hm", "hmm"],
        "id" => &["eh", "em", "hm", "hmm"],
        "it" => &["ehm", "uhm", "mh", "hmm"],
        "ja" => &["えーと", "えっと", "えー", "うーん"],
        "nl" => &["eh", "ehm", "uh", "uhm", "hm", "hmm"],
        "pl" => &["yyy", "eee", "hmm"],
        "pt" => &["hã", "hum", "hmm"],
        "ru" => &["эм", "ммм", "хм", "ээ"],
        "tr" => &["ııı", "eee", "hmm"],
        "uk" => &["ем", "ммм", "гм", "еее"],
        "ca" => &["eh", "ehm", "hmm"],
        _ => &[],
    }
}

/// The text without the sounds that people make while they think. `language` is a BCP 47 tag.
pub(super) fn without_fillers(text: &str, language: &str) -> String {
    let fillers = fillers(language.split('-').next().unwrap_or_default());
    if fillers.is_empty() {
        return text.to_owned();
    }
    // Where words stand side by side, a mark behind tells that it was one.
    let unspaced = fillers.iter().filter(|filler| !filler.is_ascii());
    let text = unspaced.fold(text.to_owned(), |text, filler| {
        text.replace(&format!("{filler}、"), "")
    });
    let mut kept: Vec<String> = Vec::new();
    // Whether the next word begins a sentence whose first word was left out.
    let mut begins = false;
    for word in text.split_whitespace() {
        let bare = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        let end = word.trim_end_matches(is_end);
        // The ER is open: letters that are all capital are a name.
        let is_name = bare.chars().count() > 1 && bare.chars().all(char::is_uppercase);
        let is_filler = !is_name && fillers.contains(&bare.to_lowercase().as_str());
        if is_filler {
            let is_first = kept.last().is_none_or(|last| last.ends_with(is_end));
            if is_first {
                begins = true;
                continue;
            }
            // "I, um, think": the commas were for the filler. The end of a sentence stays.
            let mark = &word[end.len()..];
            if let Some(last) = kept.last_mut()
                && (!mark.is_empty() || word.ends_with(','))
            {
                if last.ends_with(',') {
                    last.pop();
                }
                last.push_str(mark);
            }
            continue;
        }
        kept.push(match std::mem::take(&mut begins) {
            true => capitalized(word),
            false => word.to_owned(),
        });
    }
    kept.join(" ")
}

fn is_end(letter: char) -> bool {
    matches!(letter, '.' | '?' | '!' | '…' | '。' | '？' | '！')
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next();
    first.map_or_else(String::new, |first| {
        first.to_uppercase().chain(letters).collect()
    })
}

/// The text without capital letters and punctuation. What stands within a word or a number stays: `don't`, `3.5`, `e-mail`.
pub(super) fn unformatted(text: &str, language: &str) -> String {
    let words = text.split_whitespace().filter_map(|word| {
        // A sign in front belongs to what follows it: -5, $5, %.
        let is_mark = |letter: char| {
            !letter.is_alphanumeric()
                && !matches!(
                    letter,
                    '%' | '$' | '€' | '£' | '°' | '+' | '-' | '&' | '@' | '#'
                )
        };
        let word = word.trim_matches(is_mark);
        let word = word.trim_end_matches('-');
        let is_number = word
            .trim_start_matches('-')
            .starts_with(|letter: char| letter.is_ascii_digit());
        let word = match is_number {
            true => word,
            false => word.trim_start_matches('-'),
        };
        // In scripts without spaces, marks stand between words that have none.
        let word: String = word
            .chars()
            .filter(|letter| !matches!(letter, '、' | '。' | '，' | '？' | '！' | '「' | '」'))
            .collect();
        (!word.is_empty()).then(|| lowercase(&word, language))
    });
    words.collect::<Vec<_>>().join(" ")
}

/// In Turkish, I and İ are the capitals of other letters.
fn lowercase(word: &str, language: &str) -> String {
    match language.split('-').next() {
        Some("tr") => word.replace('I', "ı").replace('İ', "i").to_lowercase(),
        _ => word.to_lowercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fillers_go_and_nothing_else() {
        for (said, written) in [
            ("Um, I think so.", "I think so."),
            ("I, um, think so.", "I think so."),
            ("I think, uh, so.", "I think so."),
            ("So I think um so.", "So I think so."),
            ("We, er... we open at nine.", "We... we open at nine."),
            ("I don't know, um. Yes.", "I don't know. Yes."),
            ("Uh. Yes, hmm?", "Yes?"),
            ("Um", ""),
            (
                "Her umbrella is under the album.",
                "Her umbrella is under the album.",
            ),
            ("The ER is open.", "The ER is open."),
            (
                "It is open, and then, um, we close.",
                "It is open, and then we close.",
            ),
        ] {
            assert_eq!(without_fillers(said, "en-US"), written, "{said}");
        }
        assert_eq!(
            without_fillers("Ähm, wir öffnen um neun.", "de"),
            "Wir öffnen um neun."
        );
        assert_eq!(without_fillers("Um, was?", "xx"), "Um, was?");
        assert_eq!(
            without_fillers("Um acht kommt er.", ""),
            "Um acht kommt er."
        );
        assert_eq!(
            without_fillers("えーと、今日はいい天気です。", "ja"),
            "今日はいい天気です。"
        );
    }

    #[test]
    fn plain_text_has_words_and_numbers() {
        for (formatted, plain) in [
            ("Hello, World! It's 3.5 km.", "hello world it's 3.5 km"),
            (
                "\"Don't\" -- he said… (e-mail me)",
                "don't he said e-mail me",
            ),
            ("It costs $5, or 10%.", "it costs $5 or 10%"),
            ("¿Qué tal? ¡Bien!", "qué tal bien"),
            ("今日は、いい天気です。", "今日はいい天気です"),
            ("It is -5 °C - cold.", "it is -5 °c cold"),
            ("", ""),
        ] {
            assert_eq!(unformatted(formatted, "en"), plain);
        }
        assert_eq!(unformatted("Işık İyi.", "tr"), "ışık iyi");
    }
}
