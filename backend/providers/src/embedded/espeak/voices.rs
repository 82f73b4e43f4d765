//! The voices that are installed, and which of them a request means.

use std::{collections::HashMap, process::Stdio};

use colloquy_base::language::{self, language_codes};

use super::{
    super::{
        super::{Gender, ProviderError, VoiceInfo},
        programs::{not_started, start},
    },
    ESPEAK, failed,
};

/// The voice where neither voice nor language is known.
const DEFAULT_VOICE: &str = "en-us";
/// The voice of Chinese that speaks the pinyin which the program reads Chinese characters as. Its plain voice spells that in English, with the
/// numbers of the tones.
const PINYIN_VOICE: &str = "cmn-latn-pinyin";
/// The variant that makes a woman's voice of any language's.
const FEMALE: &str = "f3";

/// The voices that are installed: names in lower case, and what the program calls them.
#[derive(Debug, Default)]
pub(super) struct Voices {
    /// By language and by name; the value is the language, the form that the program takes everywhere.
    names: HashMap<String, String>,
    variants: HashMap<String, String>,
    /// The file of each language's voice. A variant is added to it, since the program passes over one that is added to some
    /// languages (`en-gb+f3`, `fr-fr+f3`).
    files: HashMap<String, String>,
    /// In the program's order.
    listed: Vec<Listed>,
}

/// A row of the program's list.
#[derive(Debug)]
struct Listed {
    language: String,
    name: String,
    gender: Option<Gender>,
}

impl Voices {
    pub(super) async fn ask() -> Result<Self, ProviderError> {
        let list = |kind: &'static str| async move {
            let child = start(ESPEAK, |command| {
                command
                    .arg(kind)
                    .stdin(Stdio::null())
                    .stdout(Stdio::piped())
                    .stderr(Stdio::null());
            })?;
            let output = child.wait_with_output().await;
            let output = output.map_err(|error| not_started(ESPEAK, &error))?;
            if !output.status.success() {
                return Err(failed(format!("listing the voices: {}", output.status)));
            }
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        };
        Ok(Self::of_lists(
            &list("--voices").await?,
            &list("--voices=variant").await?,
        ))
    }

    /// Reads the tables `Pty Language Age/Gender VoiceName File Other`.
    fn of_lists(voices: &str, variants: &str) -> Self {
        let mut known = Self::default();
        for row in voices.lines().skip(1) {
            let mut columns = row.split_whitespace();
            let Some(language) = columns.nth(1) else {
                continue;
            };
            let gender = columns.next().and_then(gender);
            let name = columns.next();
            if let Some(file) = columns.next() {
                known
                    .files
                    .entry(language.to_owned())
                    .or_insert_with(|| file.to_owned());
            }
            known.listed.push(Listed {
                language: language.to_owned(),
                name: name.unwrap_or(language).replace('_', " ").trim().to_owned(),
                gender,
            });
            for name in name.into_iter().chain([language]) {
                known
                    .names
                    .entry(name.to_lowercase())
                    .or_insert_with(|| language.to_owned());
            }
        }
        for row in variants.lines().skip(1) {
            // The file's name may hold a space, so the column is cut by its prefix.
            if let Some((_, file)) = row.split_once("!v/") {
                let file = file.trim();
                known.variants.insert(file.to_lowercase(), file.to_owned());
            }
        }
        if let Some(pinyin) = known.names.get(PINYIN_VOICE).cloned() {
            known.names.insert(own_name("zh").to_owned(), pinyin);
        }
        known
    }

    /// The `-v` argument. A voice is a name, a language, `name+variant`, or a variant alone. A voice that is not
    /// installed, such as another provider's, gives way to the language's voice: the character is better heard with
    /// another voice than not at all.
    pub(super) fn choose(&self, voice: Option<&str>, language: Option<&str>) -> String {
        let spoken = self.of_language(language);
        let Some(voice) = voice.map(str::to_lowercase) else {
            return spoken;
        };
        let (name, variant) = match voice.split_once('+') {
            Some((name, variant)) => (name, Some(variant)),
            None if self.variants.contains_key(&voice) => ("", Some(voice.as_str())),
            None => (voice.as_str(), None),
        };
        let name = self.names.get(own_name(name)).unwrap_or(&spoken);
        match variant.and_then(|variant| self.variants.get(variant)) {
            Some(variant) => format!("{}+{variant}", self.files.get(name).unwrap_or(name)),
            None => name.clone(),
        }
    }

    /// Whether the name, or the variant, of this voice is installed.
    pub(super) fn knows(&self, voice: &str) -> bool {
        let voice = voice.to_lowercase();
        let (name, variant) = voice.split_once('+').unwrap_or((&voice, &voice));
        self.names.contains_key(own_name(name)) || self.variants.contains_key(variant)
    }

    /// The voice of a language.
    fn of_language(&self, language: Option<&str>) -> String {
        let installed = self.installed(language.unwrap_or(DEFAULT_VOICE));
        installed.map_or_else(|| DEFAULT_VOICE.to_owned(), String::clone)
    }

    /// True if a language, a BCP 47 tag, has a voice.
    pub(super) fn has_language(&self, language: &str) -> bool {
        self.installed(language).is_some()
    }

    fn installed(&self, language: &str) -> Option<&String> {
        let tag = language.to_lowercase();
        let primary = language::primary(&tag);
        let own = match primary {
            "zh" if tag.ends_with("hk") || tag.ends_with("yue") => "yue",
            "zh" => own_name("zh"),
            "no" | "iw" => own_name(primary),
            _ => own_name(&tag),
        };
        [own, primary]
            .into_iter()
            .find_map(|name| self.names.get(name))
    }

    /// What the speech interface offers: the voices of its languages and their regions, each as it is and as a woman's. The
    /// voice that a language has by default goes by the language's code, whatever the program calls it.
    pub(super) fn offered(&self) -> Vec<VoiceInfo> {
        let mut offered = Vec::new();
        for code in language_codes() {
            let default = self.names.get(own_name(code));
            let is_default = |listed: &&Listed| Some(&listed.language) == default;
            let regions = self.listed.iter().filter(|listed| {
                language::primary(&listed.language) == code && !is_default(listed)
            });
            let first = self.listed.iter().find(is_default);
            let voices = first
                .map(|listed| (code, listed))
                .into_iter()
                .chain(regions.map(|listed| (listed.language.as_str(), listed)));
            for (id, listed) in voices {
                offered.push(VoiceInfo {
                    id: id.to_owned(),
                    name: listed.name.clone(),
                    language: Some(id.to_owned()),
                    gender: listed.gender,
                    // A variant of no name: the other language's voice as it is.
                    abroad: String::new(),
                    is_neural: false,
                });
                if let Some(variant) = self.variants.get(FEMALE) {
                    offered.push(VoiceInfo {
                        id: format!("{id}+{variant}"),
                        name: format!("{}, female", listed.name),
                        language: Some(id.to_owned()),
                        gender: Some(Gender::Female),
                        abroad: variant.clone(),
                        is_neural: false,
                    });
                }
            }
        }
        offered
    }
}

/// The column `Age/Gender`.
fn gender(column: &str) -> Option<Gender> {
    match column.rsplit('/').next() {
        Some("F") => Some(Gender::Female),
        Some("M") => Some(Gender::Male),
        _ => None,
    }
}

/// What the program calls the voice of a language, where that is not the language's code.
fn own_name(code: &str) -> &str {
    match code {
        "en" => "en-us",
        "fr" => "fr-fr",
        "zh" | "zh-cn" => "cmn",
        "no" => "nb",
        "iw" => "he",
        _ => code,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VOICES: &str = "\
Pty Language       Age/Gender VoiceName          File                 Other Languages
 5  cmn             --/M      Chinese_(Mandarin) sit/cmn              (zh-cmn 5)(zh 5)
 5  de              --/M      German             gmw/de
 2  en-gb           --/M      English_(Great_Britain) gmw/en               (en 2)
 2  en-us           --/M      English_(America)  gmw/en-US            (en 3)
 5  fr-fr           --/M      French_(France)    roa/fr               (fr 5)
 5  pt              --/M      Portuguese_(Portugal) roa/pt               (pt-pt 5)
 5  pt-br           --/M      Portuguese_(Brazil) roa/pt-BR            (pt 6)";
    const VARIANTS: &str = "\
Pty Language       Age/Gender VoiceName          File                 Other Languages
 5  variant         70/F      female3            !v/f3
 5  variant         --/M      Andy               !v/Andy";

    #[test]
    fn voices_are_chosen() {
        let voices = Voices::of_lists(VOICES, VARIANTS);
        let cases = [
            (None, None, "en-us"),
            (None, Some("en"), "en-us"),
            (None, Some("en-GB"), "en-gb"),
            (None, Some("en-AU"), "en-us"),
            (None, Some("zh-cn"), "cmn"),
            (None, Some("fr"), "fr-fr"),
            (None, Some("pt-BR"), "pt-br"),
            (None, Some("de-CH"), "de"),
            (None, Some("tlh"), "en-us"),
            (Some("en-gb+f3"), Some("de"), "gmw/en+f3"),
            (Some("German"), None, "de"),
            (Some("f3"), Some("de"), "gmw/de+f3"),
            (Some("+andy"), None, "gmw/en-US+Andy"),
            (Some("de+nobody"), None, "de"),
            (Some("alloy"), Some("de"), "de"),
            (Some("--path=/etc"), None, "en-us"),
            (Some("fr"), None, "fr-fr"),
            (Some(""), Some("fr"), "fr-fr"),
            (Some("zh-cn+f3"), Some("zh-cn"), "sit/cmn+f3"),
        ];
        for (voice, language, expected) in cases {
            assert_eq!(
                voices.choose(voice, language),
                expected,
                "{voice:?} {language:?}"
            );
        }
    }

    #[test]
    fn languages_have_a_voice_or_none() {
        let voices = Voices::of_lists(VOICES, VARIANTS);
        for (language, expected) in [
            ("de-CH", true),
            ("zh-cn", true),
            ("EN", true),
            ("th", false),
        ] {
            assert_eq!(voices.has_language(language), expected, "{language}");
        }
    }

    #[test]
    fn chinese_is_spoken_by_the_voice_of_pinyin() {
        let row = " 5  cmn-latn-pinyin --/M      Chinese_(Pinyin) sit/cmn-Latn-pinyin (zh 5)";
        let voices = Voices::of_lists(&format!("{VOICES}\n{row}"), VARIANTS);
        let choose = |voice, language| voices.choose(voice, language);
        assert_eq!(choose(None, Some("zh-cn")), "cmn-latn-pinyin");
        assert_eq!(choose(Some("zh-cn"), None), "cmn-latn-pinyin");
        assert_eq!(choose(Some("f3"), Some("zh")), "sit/cmn-Latn-pinyin+f3");
        let offered = voices.offered();
        let ids = offered.iter().map(|voice| voice.id.as_str());
        let chinese: Vec<_> = ids.filter(|id| id.starts_with("zh")).collect();
        assert_eq!(chinese, ["zh-cn", "zh-cn+f3"]);
    }

    #[test]
    fn voices_are_offered_by_the_codes_of_the_interface() {
        let offered = Voices::of_lists(VOICES, VARIANTS).offered();
        let ids = offered.iter().map(|voice| voice.id.as_str());
        let expected = [
            "en", "en+f3", "en-gb", "en-gb+f3", "fr", "fr+f3", "de", "de+f3", "pt", "pt+f3",
            "pt-br", "pt-br+f3", "zh-cn", "zh-cn+f3",
        ];
        assert!(ids.eq(expected), "{offered:?}");
        let woman = offered.iter().find(|voice| voice.id == "pt-br+f3");
        let expected = VoiceInfo {
            id: "pt-br+f3".to_owned(),
            name: "Portuguese (Brazil), female".to_owned(),
            language: Some("pt-br".to_owned()),
            gender: Some(Gender::Female),
            abroad: "f3".to_owned(),
            is_neural: false,
        };
        assert_eq!(woman, Some(&expected));
    }
}
