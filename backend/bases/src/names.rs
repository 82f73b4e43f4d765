//! What bases, folders and documents may be called.
//!
//! Names stand in paths and are shown to people, so they may be in any script and have spaces; what would end a segment of a
//! path, or cannot be seen, is left out.

use colloquy_base::invalid::InvalidField;

/// The longest name, in characters.
const LONGEST: usize = 200;

/// The name of a base or of a folder, which stands in paths.
///
/// # Errors
/// When it is empty, too long, or has a character that cannot stand in a path.
pub(crate) fn name(field: &'static str, text: &str) -> Result<String, InvalidField> {
    let text = shown(field, text, LONGEST)?;
    if text.contains(['/', '\\']) || text == "." || text == ".." {
        return Err(InvalidField::new(
            field,
            format!("{field} cannot have / or \\, nor be . or .."),
        ));
    }
    Ok(text)
}

/// The name of a document, or of a person.
///
/// # Errors
/// When it is empty, too long, or has a character that cannot be seen.
pub(crate) fn title(field: &'static str, text: &str) -> Result<String, InvalidField> {
    shown(field, text, LONGEST)
}

/// An e-mail address: something, `@`, something.
///
/// # Errors
/// When it is no address.
pub(crate) fn email(field: &'static str, text: &str) -> Result<String, InvalidField> {
    let text = shown(field, text, 254)?;
    let sides = text.split_once('@');
    let is_address = sides.is_some_and(|(local, host)| {
        !local.is_empty() && !host.is_empty() && !host.contains('@') && !text.contains(' ')
    });
    if is_address {
        Ok(text)
    } else {
        Err(InvalidField::new(
            field,
            format!("{field} is no e-mail address"),
        ))
    }
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

fn shown(field: &'static str, text: &str, longest: usize) -> Result<String, InvalidField> {
    let text = text.trim();
    let length = text.chars().count();
    if !(1..=longest).contains(&length) {
        return Err(InvalidField::new(
            field,
            format!("{field} has 1 to {longest} characters"),
        ));
    }
    if text.chars().any(is_hidden) {
        return Err(InvalidField::new(
            field,
            format!("{field} has a character that cannot be seen"),
        ));
    }
    Ok(text.to_owned())
}

/// Control characters, and those that change the direction of what follows them.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_paths() {
        for good in ["Handbuch", "知識", "a b", "100%", "x?y#z", "..a"] {
            assert_eq!(name("name", good).unwrap(), good);
        }
        assert_eq!(name("name", "  a ").unwrap(), "a");
        let long = "x".repeat(LONGEST + 1);
        for bad in [
            "",
            "  ",
            ".",
            "..",
            "a/b",
            "a\\b",
            "a\nb",
            "a\u{202e}b",
            &long,
        ] {
            let refused = name("folder", bad).unwrap_err();
            assert_eq!(refused.field, "folder", "{bad:?}");
        }
        assert_eq!(title("name", "a/b").unwrap(), "a/b");
    }

    #[test]
    fn addresses_have_two_sides() {
        assert!(email("user_email", "a@b.example").is_ok());
        for bad in ["", "a", "@b", "a@", "a@b@c", "a b@c"] {
            assert!(email("user_email", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_has_no_name_gets_one() {
        assert_eq!(derived(" \n "), "Untitled");
        assert_eq!(derived("a\tb.pdf "), "a b.pdf");
        assert_eq!(derived(&"é".repeat(500)).chars().count(), LONGEST);
    }
}
