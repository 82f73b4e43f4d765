//! Characters that XML cannot hold, or that somebody keeps from it, in texts of cells: `_x000D_` is the end of a line. Source: ECMA-376 part 1,
//! section 22.9.2.19 (`ST_Xstring`).

use std::borrow::Cow;

use quick_xml::escape::escape;

/// What begins such a character, and how many hexadecimal digits follow before an underscore.
pub(super) const BEGIN: &str = "_x";
const DIGITS: usize = 4;

/// Text of XML with the characters that are meant. Control characters other than tabs and ends of lines are left out, the first of two
/// that end a line among them.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(BEGIN) {
        return text.into();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        plain.push_str(before);
        match character(after) {
            Some((character, behind)) => {
                if matches!(character, '\t' | '\n') || !character.is_control() {
                    plain.push_str(&escape(character.to_string()));
                }
                rest = behind;
            }
            None => {
                plain.push_str(BEGIN);
                rest = after;
            }
        }
    }
    plain.push_str(rest);
    plain.into()
}

/// The character whose digits a text begins with, and what stands behind them.
fn character(text: &str) -> Option<(char, &str)> {
    let (digits, behind) = text.split_at_checked(DIGITS)?;
    let behind = behind.strip_prefix('_')?;
    let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    let code = u32::from_str_radix(digits, 16)
        .ok()
        .filter(|_| is_hexadecimal)?;
    Some((char::from_u32(code)?, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_those_that_are_meant() {
        for (text, expected) in [
            ("one_x000D_\ntwo", "one\ntwo"),
            ("a_x0009_b_x0007_c", "a\tbc"),
            ("_x0041__x005f_x000D_", "A_x000D_"),
            ("_x003C_&amp;", "&lt;&amp;"),
            ("my_x_file_x12_xD800_", "my_x_file_x12_xD800_"),
            ("_x+041_", "_x+041_"),
            ("_x00é_", "_x00é_"),
            ("_x000", "_x000"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }
}
