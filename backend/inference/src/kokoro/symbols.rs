//! The symbols that Kokoro reads, and how the phonemes of espeak-ng are written with them.

/// How espeak-ng's phonemes of American English are written, in this order. A diphthong and an affricate have a letter of their
/// own; length is not written.
const AMERICAN: &[(&str, &str)] = &[
    ("ʔˌn\u{329}", "ʔn"),
    ("ʔn\u{329}", "ʔn"),
    ("n\u{329}", "ᵊn"),
    ("l\u{329}", "ᵊl"),
    ("aɪ", "I"),
    ("aʊ", "W"),
    ("ɔɪ", "Y"),
    ("eɪ", "A"),
    ("oʊ", "O"),
    ("əʊ", "O"),
    ("dʒ", "ʤ"),
    ("tʃ", "ʧ"),
    ("ʲo", "jo"),
    ("ʲə", "jə"),
    ("ʲ", ""),
    ("ɜːɹ", "ɜɹ"),
    ("ɜː", "ɜɹ"),
    ("ɪə", "iə"),
    ("ɚ", "əɹ"),
    ("ɐ", "ə"),
    ("r", "ɹ"),
    ("x", "k"),
    ("ç", "k"),
    ("ɬ", "l"),
    ("e", "A"),
    ("o", "ɔ"),
    ("ɾ", "T"),
    ("ʔ", "t"),
    ("g", "ɡ"),
    ("ː", ""),
    ("\u{303}", ""),
];

/// The symbols with their numbers, as Kokoro 1.0 was trained with them.
const NUMBERS: &[(char, i32)] = &[
    (';', 1),
    (':', 2),
    (',', 3),
    ('.', 4),
    ('!', 5),
    ('?', 6),
    ('—', 9),
    ('…', 10),
    ('"', 11),
    ('(', 12),
    (')', 13),
    ('“', 14),
    ('”', 15),
    (' ', 16),
    ('\u{303}', 17),
    ('ʣ', 18),
    ('ʥ', 19),
    ('ʦ', 20),
    ('ʨ', 21),
    ('ᵝ', 22),
    ('ꭧ', 23),
    ('A', 24),
    ('I', 25),
    ('O', 31),
    ('Q', 33),
    ('S', 35),
    ('T', 36),
    ('W', 39),
    ('Y', 41),
    ('ᵊ', 42),
    ('a', 43),
    ('b', 44),
    ('c', 45),
    ('d', 46),
    ('e', 47),
    ('f', 48),
    ('h', 50),
    ('i', 51),
    ('j', 52),
    ('k', 53),
    ('l', 54),
    ('m', 55),
    ('n', 56),
    ('o', 57),
    ('p', 58),
    ('q', 59),
    ('r', 60),
    ('s', 61),
    ('t', 62),
    ('u', 63),
    ('v', 64),
    ('w', 65),
    ('x', 66),
    ('y', 67),
    ('z', 68),
    ('ɑ', 69),
    ('ɐ', 70),
    ('ɒ', 71),
    ('æ', 72),
    ('β', 75),
    ('ɔ', 76),
    ('ɕ', 77),
    ('ç', 78),
    ('ɖ', 80),
    ('ð', 81),
    ('ʤ', 82),
    ('ə', 83),
    ('ɚ', 85),
    ('ɛ', 86),
    ('ɜ', 87),
    ('ɟ', 90),
    ('ɡ', 92),
    ('ɥ', 99),
    ('ɨ', 101),
    ('ɪ', 102),
    ('ʝ', 103),
    ('ɯ', 110),
    ('ɰ', 111),
    ('ŋ', 112),
    ('ɳ', 113),
    ('ɲ', 114),
    ('ɴ', 115),
    ('ø', 116),
    ('ɸ', 118),
    ('θ', 119),
    ('œ', 120),
    ('ɹ', 123),
    ('ɾ', 125),
    ('ɻ', 126),
    ('ʁ', 128),
    ('ɽ', 129),
    ('ʂ', 130),
    ('ʃ', 131),
    ('ʈ', 132),
    ('ʧ', 133),
    ('ʊ', 135),
    ('ʋ', 136),
    ('ʌ', 138),
    ('ɣ', 139),
    ('ɤ', 140),
    ('χ', 142),
    ('ʎ', 143),
    ('ʒ', 147),
    ('ʔ', 148),
    ('ˈ', 156),
    ('ˌ', 157),
    ('ː', 158),
    ('ʰ', 162),
    ('ʲ', 164),
    ('↓', 169),
    ('→', 171),
    ('↗', 172),
    ('↘', 173),
    ('ᵻ', 177),
];

/// The numbers of the symbols of these phonemes. What has no symbol is passed over.
pub(super) fn numbers(phonemes: &str) -> Vec<i32> {
    let mut written = phonemes.to_owned();
    for (from, to) in AMERICAN {
        written = written.replace(from, to);
    }
    let number = |symbol: char| NUMBERS.iter().find(|(known, _)| *known == symbol);
    let known = written.chars().filter_map(number);
    known.map(|(_, number)| *number).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn written(phonemes: &str) -> String {
        let symbol = |number: &i32| NUMBERS.iter().find(|(_, known)| known == number).unwrap().0;
        numbers(phonemes).iter().map(symbol).collect()
    }

    #[test]
    fn symbols_and_numbers_are_of_each_other() {
        let symbols: HashSet<_> = NUMBERS.iter().map(|(symbol, _)| symbol).collect();
        let numbers: HashSet<_> = NUMBERS.iter().map(|(_, number)| number).collect();
        assert_eq!((symbols.len(), numbers.len()), (114, 114));
        // The network's table has 178 rows; the first is for the beginning and the end.
        assert!(numbers.iter().all(|number| (1..178).contains(*number)));
    }

    #[test]
    fn phonemes_are_written_as_the_network_knows_them() {
        for (phonemes, expected) in [
            ("həlˈoʊ, wˈɜːld.", "həlˈO, wˈɜɹld."),
            ("mˈaɪ nˈeɪm ɪz dʒˈɔɪ", "mˈI nˈAm ɪz ʤˈY"),
            ("tʃˈɛk ðæt nˈaʊ", "ʧˈɛk ðæt nˈW"),
            ("bˈʌʔn\u{329}", "bˈʌtn"),
            ("ˌoʊvɚ ðə lˈeɪzi dˈɑːɡ", "ˌOvəɹ ðə lˈAzi dˈɑɡ"),
            ("wˈɔːɾɚ", "wˈɔTəɹ"),
            ("😀你\u{329}", ""),
        ] {
            assert_eq!(written(phonemes), expected);
        }
    }
}
