//! What people may call things.
//!
//! Names stand in paths and are shown to people, so they may be in any script and have spaces; what would end a segment of a
//! path, or cannot be seen, is left out.

use crate::invalid::InvalidField;

/// A name that stands in paths, of so many characters at most.
///
/// # Errors
/// When it is empty, too long, or has a character that cannot stand in a path.
pub fn in_path(field: &'static str, text: &str, longest: usize) -> Result<String, InvalidField> {
    let text = shown(field, text, longest)?;
    if text.contains(['/', '\\']) || text == "." || text == ".." {
        return Err(InvalidField::new(
            field,
            "must not have / or \\, nor be . or ..",
        ));
    }
    Ok(text)
}

/// A name that is shown, of so many characters at most.
///
/// # Errors
/// When it is empty, too long, or has a character that cannot be seen.
pub fn shown(field: &'static str, text: &str, longest: usize) -> Result<String, InvalidField> {
    let text = text.trim();
    let length = text.chars().count();
    if !(1..=longest).contains(&length) {
        return Err(InvalidField::new(
            field,
            format!("must have 1 to {longest} characters"),
        ));
    }
    visible(field, text)?;
    Ok(text.to_owned())
}

/// Checks a text that is shown, which may be empty.
///
/// # Errors
/// When it has a character that cannot be seen.
pub fn visible(field: &'static str, text: &str) -> Result<(), InvalidField> {
    match text.chars().any(is_hidden) {
        true => Err(InvalidField::new(
            field,
            "must not have characters that cannot be seen",
        )),
        false => Ok(()),
    }
}

/// An e-mail address: something, `@`, something.
///
/// # Errors
/// When it is no address.
pub fn email(field: &'static str, text: &str) -> Result<String, InvalidField> {
    let text = shown(field, text, 254)?;
    let sides = text.split_once('@');
    let is_address = sides.is_some_and(|(local, host)| {
        !local.is_empty() && !host.is_empty() && !host.contains('@') && !text.contains(' ')
    });
    if is_address {
        Ok(text)
    } else {
        Err(InvalidField::new(field, "must be an e-mail address"))
    }
}

/// Control characters, separators of lines, and what changes the direction of what follows.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_in_paths() {
        let name = |text: &str| in_path("folder", text, 200);
        for good in ["Handbuch", "知識", "a b", "100%", "x?y#z", "..a"] {
            assert_eq!(name(good).unwrap(), good);
        }
        assert_eq!(name("  a ").unwrap(), "a");
        let long = "x".repeat(201);
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
            let refused = name(bad).unwrap_err();
            assert_eq!(refused.field, "folder", "{bad:?}");
        }
        assert_eq!(shown("name", "a/b", 200).unwrap(), "a/b");
    }

    #[test]
    fn addresses_have_two_sides() {
        assert!(email("user_email", "a@b.example").is_ok());
        for bad in ["", "a", "@b", "a@", "a@b@c", "a b@c"] {
            assert!(email("user_email", bad).is_err(), "{bad}");
        }
    }
}
