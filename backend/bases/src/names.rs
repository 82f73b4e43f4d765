//! What bases, folders and documents may be called.

use colloquy_base::{
    invalid::InvalidField,
    names::{in_path, is_hidden, shown},
};

pub(crate) use colloquy_base::names::email;

/// The longest name, in characters.
const LONGEST: usize = 200;

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

/// A name for something that has none: the end of what it is made of, cut to what a name may have.
pub(crate) fn derived(text: &str) -> String {
    let clean: String = text
        .chars()
        .map(|c| if is_hidden(c) { ' ' } else { c })
        .collect();
    let cut: String = clean.trim().chars().take(LONGEST).collect();
    match cut.trim() {
        "" => "Untitled".to_owned(),
        cut => cut.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_name_gets_one() {
        assert_eq!(derived(" \n "), "Untitled");
        assert_eq!(derived("a\tb.pdf "), "a b.pdf");
        assert_eq!(derived(&"é".repeat(500)).chars().count(), LONGEST);
    }
}
