//! The scripts of texts, and the languages that are written in each.

use std::{collections::BTreeMap, fmt};

/// A script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names are those of Unicode")]
pub enum Script {
    Latin,
    Cyrillic,
    Arabic,
    Hebrew,
    Devanagari,
    Han,
    Kana,
    Hangul,
    Greek,
    Armenian,
    Georgian,
    Syriac,
    Thaana,
    Nko,
    Bengali,
    Gurmukhi,
    Gujarati,
    Oriya,
    Tamil,
    Telugu,
    Kannada,
    Malayalam,
    Sinhala,
    Thai,
    Lao,
    Tibetan,
    Myanmar,
    Ethiopic,
    Cherokee,
    CanadianAboriginal,
    Khmer,
    Mongolian,
    Tifinagh,
    Bopomofo,
    Yi,
    /// Any other: rare ones, and letters that are signs, such as those of formulas.
    Other,
}

impl Script {
    /// True if espeak-ng reads words in this script in any voice: it goes over to the one language that it knows of the script.
    #[must_use]
    pub fn is_read_by_espeak(self) -> bool {
        matches!(
            self,
            Self::Hangul
                | Self::Devanagari
                | Self::Bengali
                | Self::Gurmukhi
                | Self::Gujarati
                | Self::Tamil
                | Self::Kannada
                | Self::Malayalam
                | Self::Sinhala
                | Self::Georgian
        )
    }

    /// The script of a letter; `None` for what is no letter.
    pub(super) fn of_letter(letter: char) -> Option<Self> {
        Some(match letter {
            '\u{400}'..='\u{52F}' => Self::Cyrillic,
            '\u{590}'..='\u{5FF}' | '\u{FB1D}'..='\u{FB4F}' => Self::Hebrew,
            '\u{600}'..='\u{6FF}' | '\u{750}'..='\u{77F}' => Self::Arabic,
            '\u{900}'..='\u{97F}' => Self::Devanagari,
            // The small ones of Ainu and those of half the width count, too.
            '\u{3040}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}' | '\u{FF66}'..='\u{FF9F}' => {
                Self::Kana
            }
            // The sign that repeats one counts as one.
            '\u{3005}'
            | '\u{3400}'..='\u{4DBF}'
            | '\u{4E00}'..='\u{9FFF}'
            | '\u{F900}'..='\u{FAFF}'
            | '\u{20000}'..='\u{323AF}' => Self::Han,
            '\u{1100}'..='\u{11FF}' | '\u{AC00}'..='\u{D7AF}' => Self::Hangul,
            _ if !letter.is_alphabetic() => return None,
            'a'..='z' | 'A'..='Z' | '\u{C0}'..='\u{24F}' | '\u{1E00}'..='\u{1EFF}' => Self::Latin,
            '\u{370}'..='\u{3FF}' | '\u{1F00}'..='\u{1FFF}' => Self::Greek,
            '\u{530}'..='\u{58F}' | '\u{FB13}'..='\u{FB17}' => Self::Armenian,
            '\u{700}'..='\u{74F}' => Self::Syriac,
            '\u{780}'..='\u{7BF}' => Self::Thaana,
            '\u{7C0}'..='\u{7FF}' => Self::Nko,
            '\u{8A0}'..='\u{8FF}' | '\u{FB50}'..='\u{FDFF}' | '\u{FE70}'..='\u{FEFF}' => {
                Self::Arabic
            }
            '\u{980}'..='\u{9FF}' => Self::Bengali,
            '\u{A00}'..='\u{A7F}' => Self::Gurmukhi,
            '\u{A80}'..='\u{AFF}' => Self::Gujarati,
            '\u{B00}'..='\u{B7F}' => Self::Oriya,
            '\u{B80}'..='\u{BFF}' => Self::Tamil,
            '\u{C00}'..='\u{C7F}' => Self::Telugu,
            '\u{C80}'..='\u{CFF}' => Self::Kannada,
            '\u{D00}'..='\u{D7F}' => Self::Malayalam,
            '\u{D80}'..='\u{DFF}' => Self::Sinhala,
            '\u{E00}'..='\u{E7F}' => Self::Thai,
            '\u{E80}'..='\u{EFF}' => Self::Lao,
            '\u{F00}'..='\u{FFF}' => Self::Tibetan,
            '\u{1000}'..='\u{109F}' | '\u{A9E0}'..='\u{A9FF}' | '\u{AA60}'..='\u{AA7F}' => {
                Self::Myanmar
            }
            '\u{10A0}'..='\u{10FF}' | '\u{1C90}'..='\u{1CBF}' | '\u{2D00}'..='\u{2D2F}' => {
                Self::Georgian
            }
            '\u{1200}'..='\u{139F}' | '\u{2D80}'..='\u{2DDF}' => Self::Ethiopic,
            '\u{13A0}'..='\u{13FF}' | '\u{AB70}'..='\u{ABBF}' => Self::Cherokee,
            '\u{1400}'..='\u{167F}' => Self::CanadianAboriginal,
            '\u{1780}'..='\u{17FF}' => Self::Khmer,
            '\u{1800}'..='\u{18AF}' => Self::Mongolian,
            '\u{2D30}'..='\u{2D7F}' => Self::Tifinagh,
            '\u{3100}'..='\u{312F}' | '\u{31A0}'..='\u{31BF}' => Self::Bopomofo,
            '\u{3130}'..='\u{318F}' => Self::Hangul,
            '\u{A000}'..='\u{A4CF}' => Self::Yi,
            _ => Self::Other,
        })
    }

    /// The script that has the most of a text's letters; `None` without letters. Japanese has Chinese characters, too.
    pub(super) fn of(text: &str) -> Option<Self> {
        most(counts(text))
    }

    /// The primary subtags of the languages that are written in the script, the one with the most speakers first. Latin letters, which voices of all
    /// languages read, have none.
    fn languages(self) -> &'static [&'static str] {
        match self {
            Self::Cyrillic => &[
                "ru", "uk", "be", "bg", "mk", "sr", "bs", "sh", "hbs", "kk", "ky", "tg", "mn",
                "tt", "ba", "cv", "ce", "os", "ab", "av", "kv", "cu", "uz", "tk", "az", "nog",
                "ug",
            ],
            Self::Arabic => &[
                "ar", "fa", "ur", "ps", "sd", "ug", "ku", "ckb", "ks", "pa", "az",
            ],
            Self::Hebrew => &["he", "iw", "yi", "ji"],
            Self::Devanagari => &[
                "hi", "mr", "ne", "sa", "kok", "mai", "bho", "sd", "ks", "new",
            ],
            // Of the Chinese voices of espeak-ng, those of other languages name each character.
            Self::Han => &["zh", "cmn", "yue", "ja"],
            Self::Kana => &["ja"],
            Self::Hangul => &["ko"],
            Self::Greek => &["el", "grc"],
            Self::Armenian => &["hy", "hyw"],
            Self::Georgian => &["ka", "xmf"],
            Self::Syriac => &["syr", "arc"],
            Self::Thaana => &["dv"],
            Self::Nko => &["nqo"],
            Self::Bengali => &["bn", "as", "bpy", "mni"],
            Self::Gurmukhi => &["pa"],
            Self::Gujarati => &["gu"],
            Self::Oriya => &["or"],
            Self::Tamil => &["ta"],
            Self::Telugu => &["te"],
            Self::Kannada => &["kn"],
            Self::Malayalam => &["ml"],
            Self::Sinhala => &["si"],
            Self::Thai => &["th"],
            Self::Lao => &["lo"],
            Self::Tibetan => &["bo", "dz"],
            Self::Myanmar => &["my", "shn"],
            Self::Ethiopic => &["am", "ti", "gez"],
            Self::Cherokee => &["chr"],
            Self::CanadianAboriginal => &["iu", "cr", "oj"],
            Self::Khmer => &["km"],
            Self::Mongolian => &["mn"],
            Self::Tifinagh => &["zgh", "ber"],
            Self::Bopomofo => &["zh", "cmn"],
            Self::Yi => &["ii"],
            Self::Latin | Self::Other => &[],
        }
    }

    /// The language to speak a text of this script in, a BCP 47 tag. `None` for Latin letters, which many languages share, and for rare scripts.
    #[must_use]
    pub fn language(self) -> Option<&'static str> {
        match self {
            Self::Han | Self::Bopomofo => Some("zh-cn"),
            _ => self.languages().first().copied(),
        }
    }

    /// True if a voice of a language, a BCP 47 tag, reads the script: the language is written in it, or it is that of Latin letters.
    #[must_use]
    pub fn is_of(self, language: &str) -> bool {
        let primary = language.split('-').next().unwrap_or(language);
        let languages = self.languages();
        languages.is_empty()
            || languages
                .iter()
                .any(|known| known.eq_ignore_ascii_case(primary))
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Han => f.write_str("Chinese"),
            Self::Kana => f.write_str("Japanese"),
            Self::Hangul => f.write_str("Korean"),
            Self::Nko => f.write_str("N'Ko"),
            Self::CanadianAboriginal => f.write_str("Canadian Aboriginal"),
            other => fmt::Debug::fmt(other, f),
        }
    }
}

/// The script of a text that cannot be read: more than half of the letters are in scripts that are not read, and most of these in this one. `None`
/// where a few names are.
#[must_use]
pub fn unread_script(text: &str, is_read: impl Fn(Script) -> bool) -> Option<Script> {
    let counts = counts(text);
    let letters: usize = counts.values().sum();
    let unread = counts.into_iter().filter(|(script, _)| !is_read(*script));
    let unread = unread.collect::<BTreeMap<_, _>>();
    match unread.values().sum::<usize>() * 2 > letters {
        true => most(unread),
        false => None,
    }
}

/// How many letters of a text are in each script. A Greek letter that stands alone is a sign of a formula, which voices of all languages name.
fn counts(text: &str) -> BTreeMap<Script, usize> {
    let mut counts = BTreeMap::new();
    for word in text.split(|c: char| Script::of_letter(c).is_none()) {
        let letters = word.chars().filter_map(Script::of_letter);
        if letters.clone().eq([Script::Greek]) {
            continue;
        }
        for script in letters {
            *counts.entry(script).or_default() += 1;
        }
    }
    counts
}

/// The script that has the most letters. Where there are kana, Chinese characters are Japanese.
fn most(mut counts: BTreeMap<Script, usize>) -> Option<Script> {
    if counts.contains_key(&Script::Kana) {
        let han = counts.remove(&Script::Han).unwrap_or(0);
        *counts.entry(Script::Kana).or_default() += han;
    }
    let most = counts.into_iter().max_by_key(|(_, count)| *count);
    most.map(|(script, _)| script)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_unread_where_more_than_half_of_its_letters_are() {
        for (language, text, script) in [
            ("en", "สวัสดี", Some(Script::Thai)),
            ("th", "สวัสดี", None),
            ("en", "Καλημέρα σας", Some(Script::Greek)),
            ("EL-gr", "Καλημέρα σας", None),
            ("en", "Say Καλημέρα to your Greek friends.", None),
            ("en", "Καλημέρα to", Some(Script::Greek)),
            ("en", "ab ру", None),
            ("en", "α + β = γ, and π is 3.14", None),
            ("en", "π", None),
            ("en", "5 µm, 𝐱", None),
            ("en", "12 !", None),
            ("th", "Hello", None),
            ("uk", "Привіт", None),
            ("en", "日本", Some(Script::Han)),
            ("ja", "日本", None),
            ("ko", "日本", Some(Script::Han)),
            ("zh-cn", "日本", None),
            ("en", "学校です", Some(Script::Kana)),
            ("zh", "去 東京 の カナ", None),
            ("zh", "こんにちは", Some(Script::Kana)),
            ("hi", "ᠮᠣᠩᠭᠣᠯ", Some(Script::Mongolian)),
        ] {
            let unread = unread_script(text, |script| script.is_of(language));
            assert_eq!(unread, script, "{language} {text}");
        }
    }

    #[test]
    fn scripts_are_of_the_language_that_speaks_them() {
        for (text, script, language, name) in [
            ("Բարև", Script::Armenian, "hy", "Armenian"),
            ("გამარჯობა", Script::Georgian, "ka", "Georgian"),
            ("שלום", Script::Hebrew, "he", "Hebrew"),
            ("안녕", Script::Hangul, "ko", "Korean"),
            ("漢字", Script::Han, "zh-cn", "Chinese"),
            ("ສະບາຍດີ", Script::Lao, "lo", "Lao"),
            ("ትግርኛ", Script::Ethiopic, "am", "Ethiopic"),
            ("নমস্কার", Script::Bengali, "bn", "Bengali"),
            (
                "ᐃᓄᒃᑎᑐᑦ",
                Script::CanadianAboriginal,
                "iu",
                "Canadian Aboriginal",
            ),
        ] {
            assert_eq!(Script::of(text), Some(script), "{text}");
            assert_eq!(script.language(), Some(language), "{text}");
            assert!(script.is_of(language), "{text}");
            assert_eq!(script.to_string(), name);
        }
        assert_eq!(Script::Latin.language(), None);
    }
}
