//! Words as tests and benchmarks compare them, of what was said and what was heard: how they are written makes no difference.

/// The numbers below twenty in letters.
pub const NUMBERS: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];

/// The tens in letters, from 0 on; the first two have no word of their own.
pub const TENS: [&str; 10] = [
    "", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
];

/// The words of a text: lower case, without punctuation, numbers below a hundred in letters.
#[must_use]
pub fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace('-', " ");
    let mut words = Vec::new();
    for word in text.split_whitespace() {
        let parts = word.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
        for part in parts.map(|part| part.trim_matches('\'')) {
            if !part.is_empty() {
                words.extend(in_letters(part).split(' ').map(str::to_owned));
            }
        }
        if word.starts_with('$') {
            words.push("dollars".to_owned());
        }
    }
    words
}

fn in_letters(word: &str) -> String {
    match (word, word.parse::<usize>()) {
        ("mr", _) => "mister".to_owned(),
        ("mrs", _) => "missus".to_owned(),
        ("dr", _) => "doctor".to_owned(),
        (_, Ok(number @ 0..20)) => NUMBERS[number].to_owned(),
        (_, Ok(number @ 20..100)) => match number % 10 {
            0 => TENS[number / 10].to_owned(),
            ones => format!("{} {}", TENS[number / 10], NUMBERS[ones]),
        },
        _ => word.to_owned(),
    }
}

/// How many words were left out, put in or changed.
#[must_use]
pub fn errors(said: &[String], heard: &[String]) -> usize {
    let mut row: Vec<usize> = (0..=heard.len()).collect();
    for (index, said) in said.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (at, heard) in heard.iter().enumerate() {
            let changed = diagonal + usize::from(said != heard);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[heard.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_compared_as_they_are_said() {
        assert_eq!(
            words("Go forward, 10 meters!"),
            words("go forward ten meters")
        );
        assert_eq!(
            words("Mr. Dashwood's ill-disposed"),
            ["mister", "dashwood's", "ill", "disposed"]
        );
        assert_eq!(
            words("above $50, or 42"),
            words("above fifty dollars or forty two")
        );
        let errors = |said: &str, heard: &str| super::errors(&words(said), &words(heard));
        assert_eq!(errors("a b c", "a b c"), 0);
        assert_eq!(errors("a b c", "a x c d"), 2);
        assert_eq!(errors("a b c", ""), 3);
        assert_eq!(errors("", "a"), 1);
    }
}
