//! Languages by name and by tag.

mod names;

use self::names::NAMED;

/// The languages of the speech interface, by their short codes.
const SPOKEN: [&str; 15] = [
    "en", "es", "fr", "de", "it", "pt", "pl", "ru", "nl", "ar", "zh-cn", "ja", "ko", "hi", "he",
];

/// The tag that the name of Chinese means: the one of the speech interface.
const CHINESE: (&str, &str) = ("zh", "zh-cn");

/// Words beside the name of a language that tell which of its varieties is meant. None of them names a language.
const VARIETIES: &[&str] = &[
    "algerian",
    "american",
    "argentine",
    "argentinian",
    "australia",
    "australian",
    "austria",
    "austrian",
    "belgian",
    "belgium",
    "brazil",
    "brazilian",
    "british",
    "canada",
    "canadian",
    "chilean",
    "china",
    "colombian",
    "egypt",
    "egyptian",
    "european",
    "france",
    "germany",
    "gulf",
    "india",
    "indian",
    "iraqi",
    "latin america",
    "latin american",
    "lebanese",
    "levantine",
    "mainland",
    "mexican",
    "mexico",
    "modern",
    "moroccan",
    "morocco",
    "neutral",
    "new zealand",
    "nigerian",
    "peninsular",
    "peruvian",
    "portugal",
    "quebec",
    "saudi",
    "simplified",
    "singapore",
    "south african",
    "spain",
    "standard",
    "swiss",
    "switzerland",
    "syrian",
    "taiwan",
    "taiwanese",
    "traditional",
    "tunisian",
    "u.k.",
    "u.s.",
    "uk",
    "united kingdom",
    "united states",
    "us",
    "usa",
];

/// How many varieties may stand beside a name, as in `Modern Standard Arabic`.
const MOST_VARIETIES: usize = 2;

/// The languages that the speech interface takes, by their short codes.
pub fn language_codes() -> impl Iterator<Item = &'static str> {
    SPOKEN.into_iter()
}

/// The language of a BCP 47 tag without its region and script: `en` of `en-US`.
#[must_use]
pub fn primary(tag: &str) -> &str {
    tag.split('-').next().unwrap_or(tag)
}

/// The codes of ISO 639-2 for a language that is not known, for several, for one without a code, and for no words.
const UNDETERMINED: &str = "und";
const SEVERAL: &str = "mul";
const NO_LANGUAGE: [&str; 4] = [UNDETERMINED, SEVERAL, "mis", "zxx"];

/// True if a tag says that the language is not known (`und`).
#[must_use]
pub fn is_undetermined(tag: &str) -> bool {
    has_code(tag, UNDETERMINED)
}

/// True if a tag says that there are several languages (`mul`).
#[must_use]
pub fn is_several(tag: &str) -> bool {
    has_code(tag, SEVERAL)
}

fn has_code(tag: &str, code: &str) -> bool {
    let mut subtags = tag.trim().split(['-', '_']);
    subtags
        .next()
        .is_some_and(|first| first.eq_ignore_ascii_case(code))
}

/// A language as a person or a program gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NamedLanguage {
    /// `auto`: the one that is spoken.
    Detected,
    /// This one, as a BCP 47 tag in lower case. Its primary subtag is of ISO 639-1 where the language has one.
    Tag(String),
}

impl NamedLanguage {
    /// Parses a name in English (`German`, `Brazilian Portuguese`, `English (US)`, `English - US`) or in the language itself (`Deutsch`), a
    /// code of two or three letters (`de`, `deu`), a tag (`pt-BR`, `en_US`), or `auto`. `None` for everything else.
    ///
    /// A code of three letters is also taken if its language has no name here, as a speech service may know it; not one that stands for no
    /// language, such as `und` and `mul`.
    #[must_use]
    pub fn parse(language: &str) -> Option<Self> {
        let language = language.trim().to_lowercase();
        if language == "auto" {
            return Some(Self::Detected);
        }
        // "English (US)" is English.
        let name = language.split('(').next().unwrap_or_default().trim();
        let tag = of_variety(&without_separators(name), MOST_VARIETIES);
        let tag = tag.map(str::to_owned).or_else(|| of_tag(name));
        tag.map(Self::Tag)
    }
}

/// The BCP 47 tag of a language that is given by name (`German`) or by tag (`de`, `en_US`). `None` for `auto`, and for
/// what is neither.
#[must_use]
pub fn language_tag(language: &str) -> Option<String> {
    match NamedLanguage::parse(language)? {
        NamedLanguage::Detected => None,
        NamedLanguage::Tag(tag) => Some(tag),
    }
}

/// The tag of the language with this name.
fn of_name(name: &str) -> Option<&'static str> {
    let (tag, ..) = NAMED.iter().find(|(.., names)| names.contains(&name))?;
    Some(match *tag == CHINESE.0 {
        true => CHINESE.1,
        false => *tag,
    })
}

/// The words of a name, with one space between two: without the commas and lone dashes between a language and its variety.
fn without_separators(name: &str) -> String {
    let words = name.split(|c: char| c == ',' || c.is_whitespace());
    let words = words.filter(|word| !["", "-", "–", "—"].contains(word));
    words.collect::<Vec<_>>().join(" ")
}

/// The tag of a language that is named alone, or with at most so many varieties before it or behind.
fn of_variety(name: &str, most: usize) -> Option<&'static str> {
    let with_variety = || {
        let fewer = most.checked_sub(1)?;
        VARIETIES.iter().find_map(|&variety| {
            let before = || name.strip_prefix(variety)?.strip_prefix(' ');
            let behind = || name.strip_suffix(variety)?.strip_suffix(' ');
            of_variety(before().or_else(behind)?, fewer)
        })
    };
    of_name(name).or_else(with_variety)
}

/// A tag, or a code alone, with the shortest code of its language.
fn of_tag(tag: &str) -> Option<String> {
    let tag = tag.replace('_', "-");
    let (code, rest) = match tag.split_once('-') {
        Some((code, rest)) => (code, Some(rest)),
        None => (tag.as_str(), None),
    };
    let is_code = code.bytes().all(|byte| byte.is_ascii_lowercase());
    let is_subtag = |part: &str| {
        (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
    };
    if !is_code || !rest.is_none_or(|rest| rest.split('-').all(is_subtag)) {
        return None;
    }
    let mut named = NAMED.iter();
    let named = named.find(|(shortest, codes, _)| *shortest == code || codes.contains(&code));
    let code = match named {
        Some((shortest, ..)) => *shortest,
        None if code.len() == 3 && !NO_LANGUAGE.contains(&code) => code,
        None => return None,
    };
    Some(match rest {
        Some(rest) => format!("{code}-{rest}"),
        None => code.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_tags() {
        let cases = [
            ("English", Some("en")),
            ("English (US)", Some("en")),
            ("British English", Some("en")),
            ("Brazilian Portuguese", Some("pt")),
            ("Chinese Simplified", Some("zh-cn")),
            ("latin american spanish", Some("es")),
            ("Mandarin", Some("zh-cn")),
            ("Mandarin Chinese", Some("zh-cn")),
            ("Chinese, Mandarin", Some("zh-cn")),
            ("Traditional Mandarin Chinese", Some("zh-cn")),
            ("Egyptian Arabic", Some("ar")),
            ("Modern Standard Arabic", Some("ar")),
            ("US English", Some("en")),
            ("English - US", Some("en")),
            ("English – United Kingdom", Some("en")),
            ("English, U.S.", Some("en")),
            ("english,uk", Some("en")),
            ("Castilian Spanish", Some("es")),
            ("Spanish  Latin American", Some("es")),
            ("Neutral Latin American Spanish", Some("es")),
            ("Canadian French", Some("fr")),
            ("French Canadian", Some("fr")),
            ("Serbo-Croatian", Some("sr")),
            ("Norwegian, Bokmål", Some("no")),
            ("中文", Some("zh-cn")),
            ("zh", Some("zh")),
            ("en_US", Some("en-us")),
            ("pt-BR", Some("pt-br")),
            ("zh-cn", Some("zh-cn")),
            ("zh-Hant-TW", Some("zh-hant-tw")),
            ("Deutsch", Some("de")),
            ("deu", Some("de")),
            ("ger-AT", Some("de-at")),
            ("Turkish", Some("tr")),
            ("Türkçe", Some("tr")),
            ("TÜRKÇE", Some("tr")),
            ("tur", Some("tr")),
            ("Ukrainian", Some("uk")),
            ("українська", Some("uk")),
            ("Catalan", Some("ca")),
            ("català", Some("ca")),
            ("Indonesian", Some("id")),
            ("Bahasa Indonesia", Some("id")),
            ("Thai", Some("th")),
            ("ไทย", Some("th")),
            ("Finnish", Some("fi")),
            ("suomi", Some("fi")),
            ("Swahili", Some("sw")),
            ("Vietnamese", Some("vi")),
            ("Tiếng Việt", Some("vi")),
            ("Norwegian Bokmål", Some("no")),
            ("nb", Some("no")),
            ("iw", Some("he")),
            ("Javanese", Some("jv")),
            ("jw", Some("jv")),
            ("haw", Some("haw")),
            ("gsw", Some("gsw")),
            ("und", None),
            ("und-Latn", None),
            ("MUL", None),
            ("zxx", None),
            ("auto", None),
            ("", None),
            ("xx", None),
            ("e", None),
            ("Elvish of the west", None),
            ("Elvish English", None),
            ("American", None),
            ("American US", None),
            ("German and English", None),
            ("German English", None),
            ("German, English", None),
            ("English - Elvish", None),
            ("Modern Standard American English", None),
            ("en, us", None),
            ("en--us", None),
            ("en-", None),
            ("--help", None),
        ];
        for (language, tag) in cases {
            assert_eq!(language_tag(language).as_deref(), tag, "{language}");
        }
        assert_eq!(
            NamedLanguage::parse(" Auto "),
            Some(NamedLanguage::Detected)
        );
        assert_eq!(NamedLanguage::parse("Elvish"), None);
    }

    #[test]
    fn codes_of_no_language_are_told_apart() {
        for tag in ["und", " UND ", "und-Latn", "und_Latn"] {
            assert!(is_undetermined(tag) && !is_several(tag), "{tag}");
        }
        assert!(is_several("mul") && is_several("Mul-Latn"));
        for other in ["", "de", "undo", "auto"] {
            assert!(!is_undetermined(other) && !is_several(other), "{other}");
        }
    }

    #[test]
    fn no_name_and_no_code_means_two_languages() {
        let mut seen = std::collections::BTreeSet::new();
        for (tag, codes, names) in NAMED {
            assert!(!names.is_empty(), "{tag}");
            for code in std::iter::once(tag).chain(*codes) {
                assert!(seen.insert(*code), "{code}");
                assert!((2..=3).contains(&code.len()), "{code}");
            }
            for name in *names {
                assert_eq!(*name, name.to_lowercase());
                let tag = Some(*tag).filter(|tag| *tag != CHINESE.0);
                assert_eq!(of_name(name), tag.or(Some(CHINESE.1)), "{name}");
            }
        }
        assert!(
            VARIETIES.iter().all(|variety| of_name(variety).is_none()),
            "no variety is a language of its own"
        );
        assert!(
            language_codes().all(|code| language_tag(code).as_deref() == Some(code)),
            "the speech interface's codes stay as they are"
        );
    }
}
