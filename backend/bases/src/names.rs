//! What bases, folders and documents may be called.

use colloquy_base::{
    invalid::InvalidField,
    names::{in_path, is_hidden, shown},
};
use unicode_normalization::UnicodeNormalization as _;

pub(crate) use colloquy_base::names::email;

/// The longest name, in characters.
const LONGEST: usize = 200;
/// Characters without ink that are no white space: zero-width ones, and the filler of Hangul, of which blank titles are made.
const INVISIBLE: [char; 6] = [
    '\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}', '\u{3164}', '\u{feff}',
];
/// The longest extension that stays with a name that is cut, in characters.
const LONGEST_EXTENSION: usize = 16;

/// The name of a base or of a folder, which stands in paths.
///
/// # Errors
/// When it is empty, too long, or has a character that cannot stand in a path.
pub(crate) fn name(field: &'static str, text: &str) -> Result<String, InvalidField> {
    in_path(field, text, LONGEST)
}

/// The name of a document, or of a person.
///
/// # Errors
/// When it is empty, too long, or has a character that cannot be seen.
pub(crate) fn title(field: &'static str, text: &str) -> Result<String, InvalidField> {
    shown(field, text, LONGEST)
}

/// Returns the folded form of a name, which lists sort by and filters are searched in: composed (NFC), and each character in lower case whatever
/// surrounds it, so that a part of a name folds as the whole does. Both forms of the small sigma are one.
///
/// The database stores this form. A change of the folding needs a migration that empties `sort_name`.
pub(crate) fn sort_name(name: &str) -> String {
    let lower = name.nfc().flat_map(char::to_lowercase);
    lower.map(|c| if c == 'ς' { 'σ' } else { c }).collect()
}

/// A name for something that has none, made of a text as [`of_title`] does.
pub(crate) fn derived(text: &str) -> String {
    of_title(text).unwrap_or_else(|| "Untitled".to_owned())
}

/// The name that a title gives, cut to what a name may have; `None` if there is nothing to see in it.
pub(crate) fn of_title(text: &str) -> Option<String> {
    let clean: String = text
        .chars()
        .map(|c| if is_hidden(c) { ' ' } else { c })
        .collect();
    let cut: String = clean.trim().chars().take(LONGEST).collect();
    let is_seen = |c: char| !c.is_whitespace() && !INVISIBLE.contains(&c);
    cut.contains(is_seen).then(|| cut.trim().to_owned())
}

/// The name of a file, which says by its extension what it is: where it is too long, it is cut before that.
pub(crate) fn of_file(text: &str) -> String {
    let text = text.trim();
    match text.rsplit_once('.') {
        Some((stem, extension))
            if text.chars().count() > LONGEST && extension.chars().count() <= LONGEST_EXTENSION =>
        {
            let room = LONGEST - 1 - extension.chars().count();
            let stem: String = derived(stem).chars().take(room).collect();
            derived(&format!("{}.{extension}", stem.trim_end()))
        }
        _ => derived(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_name_folds_as_the_whole_does() {
        for (name, folded) in [
            ("Annual REPORT 5%", "annual report 5%"),
            ("ÜBER", "über"),
            ("U\u{308}ber", "über"),
            ("ΟΔΟΣ", "οδοσ"),
            ("οδος", "οδοσ"),
            ("ΟΔΟΣΑ", "οδοσα"),
            ("Straße", "straße"),
            ("İ", "i\u{307}"),
        ] {
            assert_eq!(sort_name(name), folded, "{name}");
            assert_eq!(sort_name(folded), folded, "{name}");
        }
    }

    #[test]
    fn what_has_no_name_gets_one() {
        assert_eq!(derived(" \n "), "Untitled");
        assert_eq!(derived("a\tb.pdf "), "a b.pdf");
        assert_eq!(derived(&"é".repeat(500)).chars().count(), LONGEST);
    }

    #[test]
    fn a_title_without_anything_to_see_gives_no_name() {
        for blank in [
            "",
            " \n\t",
            "\u{3000}\u{a0}",
            "\u{0}\u{202e}",
            "\u{3164} \u{200b}",
        ] {
            assert_eq!(of_title(blank), None, "{blank:?}");
        }
        assert_eq!(
            of_title("\u{0}Feeding\tlions\u{202e}\u{7}").as_deref(),
            Some("Feeding lions")
        );
        assert_eq!(of_title(&"é".repeat(10_000)), Some("é".repeat(LONGEST)));
    }

    #[test]
    fn a_file_keeps_its_extension_however_long_its_name_is() {
        for (name, end) in [
            (format!("{}.pdf", "a".repeat(200)), "a.pdf"),
            (format!("{}.tar.gz ", "é".repeat(5_000)), "é.gz"),
            (format!("{}  .docx", "a ".repeat(200)), "a.docx"),
            (format!("a.{}", "b".repeat(500)), "bbb"),
        ] {
            let cut = of_file(&name);
            assert!(cut.ends_with(end), "{cut}");
            assert!(cut.chars().count() <= LONGEST, "{cut}");
        }
        assert_eq!(of_file(" a\tb.pdf "), "a b.pdf");
        assert_eq!(of_file(""), "Untitled");
    }
}
