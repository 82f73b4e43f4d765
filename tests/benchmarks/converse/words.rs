//! Words of an answer as rules compare them: without case and punctuation, numbers as digits, money as `9 50 euros`.

use colloquy_word_errors::{NUMBERS, TENS};

/// Returns the words of a text in lower case. Numbers written out become digits, `:00` and `.00` go, and a sign or code of euros follows its amount.
pub(crate) fn words(text: &str) -> Vec<String> {
    let mut words = Vec::<String>::new();
    let mut is_money = false;
    // Tens that were written out just before: `twenty` of `twenty-five`.
    let mut tens: Option<u32> = None;
    for word in split(text) {
        match word.as_str() {
            "€" => match words.last().is_some_and(|last| is_number(last)) {
                true => words.push("euros".to_owned()),
                false => is_money = true,
            },
            "euro" | "eur" | "euros" => words.push("euros".to_owned()),
            "00" if words.last().is_some_and(|last| is_number(last)) => {}
            _ => {
                let number = numeral(&word);
                let unit = number.filter(|unit| (1..10).contains(unit));
                if let (Some(whole), Some(unit)) = (tens, unit) {
                    words.pop();
                    words.push((whole + unit).to_string());
                    tens = None;
                    continue;
                }
                tens = number.filter(|whole| *whole >= 20);
                let word = number.map_or(word, |number| number.to_string());
                if is_money && !is_number(&word) {
                    words.push("euros".to_owned());
                    is_money = false;
                }
                words.push(word);
            }
        }
    }
    if is_money {
        words.push("euros".to_owned());
    }
    words
}

/// True if the words of `phrase` follow each other in `words`.
pub(crate) fn has_phrase(words: &[String], phrase: &str) -> bool {
    let phrase = self::words(phrase);
    !phrase.is_empty()
        && words
            .windows(phrase.len())
            .any(|window| window == phrase.as_slice())
}

/// Returns how many sentences a text has; a period within a number ends none.
pub(crate) fn sentences(text: &str) -> usize {
    let letters = |text: &str| text.chars().any(char::is_alphanumeric);
    let mut count = 0;
    for line in text.lines() {
        let pieces = line.split_inclusive([' ', '\u{a0}']);
        let mut sentence = String::new();
        for piece in pieces {
            sentence.push_str(piece);
            if piece.trim_end().ends_with(['.', '!', '?']) {
                count += usize::from(letters(&sentence));
                sentence.clear();
            }
        }
        count += usize::from(letters(&sentence));
    }
    count
}

/// Splits at everything but letters and digits, and between digits and letters. Apostrophes within words go: `don't` is `dont`.
fn split(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut word = String::new();
    for letter in text.to_lowercase().chars() {
        if matches!(letter, '\'' | '’') {
            continue;
        }
        let is_other = word
            .chars()
            .last()
            .is_some_and(|last| last.is_ascii_digit() != letter.is_ascii_digit());
        if !letter.is_alphanumeric() || is_other {
            words.extend((!word.is_empty()).then(|| std::mem::take(&mut word)));
        }
        if letter.is_alphanumeric() {
            word.push(letter);
        } else if letter == '€' {
            words.push("€".to_owned());
        }
    }
    words.extend((!word.is_empty()).then_some(word));
    words
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.chars().all(|letter| letter.is_ascii_digit())
}

fn numeral(word: &str) -> Option<u32> {
    let small = (0..).zip(NUMBERS);
    let tens = (0..).step_by(10).zip(TENS).skip(2);
    small
        .chain(tens)
        .find(|(_, it)| *it == word)
        .map(|(number, _)| number)
}
