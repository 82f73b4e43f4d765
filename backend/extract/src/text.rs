//! Formats that are characters and nothing else: plain text, Markdown, and code.

use crate::{document::Document, format::Format, markdown};

/// Plain text is Markdown with as few marks as it has: paragraphs stay, what is left of blank lines is one.
pub(crate) fn plain(text: &str) -> Document {
    Document::of_markdown(markdown::tidy(text))
}

/// Code stays as it is, between fences.
pub(crate) fn code(text: &str, format: Format) -> Document {
    let language = match format {
        Format::Python => "python",
        Format::JavaScript => "javascript",
        Format::Css => "css",
        Format::Json => "json",
        Format::Xml => "xml",
        Format::Yaml => "yaml",
        _ => "",
    };
    if text.trim().is_empty() {
        return Document::default();
    }
    Document::of_markdown(markdown::fenced(text, language))
}

/// Markdown stays as it is, but for what stands before it between lines of dashes, which describes it.
pub(crate) fn markdown(text: &str) -> Document {
    let (front, body) = front_matter(text);
    let value = |names: &[&str]| {
        let find = |line: &str| {
            let (name, value) = line.split_once(':')?;
            let is_named = names.contains(&name.to_ascii_lowercase().as_str());
            let value = value.trim().trim_matches(['"', '\'']).trim();
            (is_named && !value.is_empty()).then(|| value.to_owned())
        };
        front.lines().find_map(find)
    };
    Document {
        title: value(&["title"]),
        author: value(&["author", "authors"]),
        language: value(&["lang", "language"]),
        ..Document::of_markdown(markdown::tidy(body))
    }
}

/// What stands between dashes at the begin, and what follows it.
fn front_matter(text: &str) -> (&str, &str) {
    let Some(rest) = text.strip_prefix("---\n") else {
        return ("", text);
    };
    for end in ["\n---\n", "\n...\n"] {
        if let Some((front, body)) = rest.split_once(end)
            // A rule, some text and another rule are no description.
            && is_mapping(front)
        {
            return (front, body);
        }
    }
    ("", text)
}

/// Whether lines are a mapping of YAML: names with values, behind which their lists and what is set in belong to them.
/// Source: YAML 1.2, sections 6.6 and 8.2.
fn is_mapping(text: &str) -> bool {
    let mut is_named = false;
    text.lines().all(|line| {
        let is_value = line.starts_with([' ', '\t']) || line == "-" || line.starts_with("- ");
        if line.trim().is_empty() || line.starts_with('#') {
            return true;
        }
        if is_value {
            return is_named;
        }
        is_named = line.split_once(':').is_some_and(|(name, value)| {
            let is_separate = value.is_empty() || value.starts_with([' ', '\t']);
            is_separate
                && !name.is_empty()
                && !name.starts_with(['*', '&', '!', '>', '|', '%', '@', '`'])
        });
        is_named
    }) && is_named
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markdown_says_what_it_is() {
        let text = "---\ntitle: \"A: B\"\nauthor: Ann\nlang: de\ntags:\n  - x\n---\n# Head\n\n\n\nBody  \nline\n";
        let document = markdown(text);
        assert_eq!(document.title.as_deref(), Some("A: B"));
        assert_eq!(document.author.as_deref(), Some("Ann"));
        assert_eq!(document.language.as_deref(), Some("de"));
        assert_eq!(document.markdown, "# Head\n\nBody  \nline\n");
        let rule = "---\nnot a description\n---\nBody";
        assert_eq!(markdown(rule).markdown, format!("{rule}\n"));
        for text in [
            "---\n# Hours\n- Mon 9-17\n---\n# Contact\n",
            "---\n# Hours\n---\n# Contact\n",
            "---\n- Mon: 9-17\n- Tue: 9-17\n---\n# Contact\n",
            "---\nSee https://example.com\n---\n# Contact\n",
            "---\n---\n# Contact\n",
        ] {
            assert_eq!(markdown(text).markdown, text);
        }
        for front in [
            "# Made by hand\ntitle: A\n",
            "tags:\n- a\n- b\n",
            "\"title\": A\ntext: |\n  more\n\n  of it\n",
        ] {
            let text = format!("---\n{front}---\n# Contact\n");
            assert_eq!(markdown(&text).markdown, "# Contact\n", "{front}");
        }
    }

    #[test]
    fn code_may_hold_fences() {
        let document = code("x = '''\n````\n'''\n", Format::Python);
        assert_eq!(
            document.markdown,
            "`````python\nx = '''\n````\n'''\n`````\n"
        );
        assert_eq!(code(" \n", Format::Css).markdown, "");
    }
}
