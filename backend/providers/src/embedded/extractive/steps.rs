//! Steps of an instruction: items of numbered lists, and code behind the sentence that announces it.

use super::answer::asks;

/// Longer code is not said, in bytes.
const MAX_CODE_BYTES: usize = 200;

/// The number of the item of a list that a block is.
pub(super) fn number(source: &str) -> Option<u16> {
    let line = source.trim_start_matches(['>', ' ', '\t']);
    let digits = line.bytes().take_while(u8::is_ascii_digit).count();
    let is_item = line[digits..].starts_with(". ") || line[digits..].starts_with(") ");
    line[..digits].parse().ok().filter(|_| is_item)
}

/// Code between fences as it is said behind the words above it; `None` if it is empty or too long. Behind a question it stands alone.
pub(super) fn announced(announcement: &str, source: &str) -> Option<String> {
    let lines = source
        .lines()
        .map(|line| line.trim_start_matches(['>', ' ', '\t']).trim_end())
        .filter(|line| !line.is_empty() && !line.starts_with("```") && !line.starts_with("~~~"))
        .map(|line| line.strip_prefix("$ ").unwrap_or(line));
    let code = lines.collect::<Vec<_>>().join(", ");
    if code.is_empty() || code.len() > MAX_CODE_BYTES {
        return None;
    }
    Some(match asks(announcement) {
        true => code,
        false => format!("{}: {code}", announcement.trim_end_matches([':', '.'])),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_have_numbers() {
        assert_eq!(number("1. Open it."), Some(1));
        assert_eq!(number("> 12) Open it."), Some(12));
        for source in ["1.5 litres", "1984 was it", "- Open it.", "100000. It", ""] {
            assert_eq!(number(source), None, "{source}");
        }
    }

    #[test]
    fn code_is_said_behind_its_announcement() {
        let code = "```sh\n$ widget build\n\nwidget serve\n```";
        for (announcement, said) in [
            ("Start it:", "Start it: widget build, widget serve"),
            ("Updates", "Updates: widget build, widget serve"),
            ("How does it start?", "widget build, widget serve"),
        ] {
            assert_eq!(announced(announcement, code).as_deref(), Some(said));
        }
        assert_eq!(announced("Start it:", "```\n```"), None);
        assert_eq!(announced("Start it:", &"widget x\n".repeat(30)), None);
    }
}
