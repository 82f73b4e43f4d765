//! Words as they are compared: how they are written makes no difference.

/// The words of a text: lower case, without punctuation, numbers in letters.
pub(super) fn of(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace('-', " ");
    let words = text.split(|letter: char| !letter.is_alphanumeric() && letter != '\'');
    let words = words.map(|word| word.trim_matches('\''));
    words
        .filter(|word| !word.is_empty())
        .map(|word| in_letters(word).to_owned())
        .collect()
}

fn in_letters(word: &str) -> &str {
    const NUMBERS: [&str; 21] = [
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
        "twenty",
    ];
    match word {
        "mr" => "mister",
        "mrs" => "missus",
        "dr" => "doctor",
        word => {
            let number = word.parse::<usize>().ok();
            number
                .and_then(|number| NUMBERS.get(number).copied())
                .unwrap_or(word)
        }
    }
}

/// How many words were left out, put in or changed.
pub(super) fn errors(said: &[String], heard: &[String]) -> usize {
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
        assert_eq!(of("Go forward, 10 meters!"), of("go forward ten meters"));
        assert_eq!(
            of("Mr. Dashwood's ill-disposed"),
            ["mister", "dashwood's", "ill", "disposed"]
        );
        let errors = |said: &str, heard: &str| super::errors(&of(said), &of(heard));
        assert_eq!(errors("a b c", "a b c"), 0);
        assert_eq!(errors("a b c", "a x c d"), 2);
        assert_eq!(errors("a b c", ""), 3);
        assert_eq!(errors("", "a"), 1);
    }
}
