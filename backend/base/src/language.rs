//! Languages by name and by tag.

/// The languages of the interface documents: the tag, and the names that characters are written with.
const LANGUAGES: &[(&str, &[&str])] = &[
    ("en", &["english"]),
    ("es", &["spanish", "español", "espanol", "castellano"]),
    ("fr", &["french", "français", "francais"]),
    ("de", &["german", "deutsch"]),
    ("it", &["italian", "italiano"]),
    ("pt", &["portuguese", "português", "portugues"]),
    ("pl", &["polish", "polski"]),
    ("ru", &["russian", "русский"]),
    ("nl", &["dutch", "nederlands"]),
    ("ar", &["arabic", "العربية"]),
    ("zh-cn", &["chinese", "mandarin", "中文", "普通话"]),
    ("ja", &["japanese", "日本語"]),
    ("ko", &["korean", "한국어"]),
    ("hi", &["hindi", "हिन्दी"]),
    ("he", &["hebrew", "עברית"]),
];

/// The languages that the speech interface takes, by their short codes.
pub fn language_codes() -> impl Iterator<Item = &'static str> {
    LANGUAGES.iter().map(|(code, _)| *code)
}

/// The language of a BCP 47 tag without its region and script: `en` of `en-US`.
#[must_use]
pub fn primary(tag: &str) -> &str {
    tag.split('-').next().unwrap_or(tag)
}

/// The BCP 47 tag of a language that is given by name (`German`) or by tag (`de`, `en_US`). `None` for `auto`, and for
/// what is neither.
#[must_use]
pub fn language_tag(language: &str) -> Option<String> {
    let language = language.trim().to_lowercase().replace('_', "-");
    // "English (US)" is English.
    let name = language.split('(').next().unwrap_or_default().trim();
    if let Some((tag, _)) = LANGUAGES.iter().find(|(_, names)| names.contains(&name)) {
        return Some((*tag).to_owned());
    }
    let mut parts = name.split('-');
    let primary = parts.next().unwrap_or_default();
    let is_tag = (2..=3).contains(&primary.len())
        && primary.bytes().all(|byte| byte.is_ascii_lowercase())
        && parts.all(|part| {
            (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        });
    is_tag.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_tags() {
        let cases = [
            ("English", Some("en")),
            ("English (US)", Some("en")),
            ("en_US", Some("en-us")),
            ("zh-cn", Some("zh-cn")),
            ("Deutsch", Some("de")),
            ("auto", None),
            ("", None),
            ("Elvish of the west", None),
            ("--help", None),
        ];
        for (language, tag) in cases {
            assert_eq!(language_tag(language).as_deref(), tag, "{language}");
        }
    }
}
