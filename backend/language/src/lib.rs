//! The language of a text, where nobody says it, and which of its words say nothing of what it is about.
//!
//! What people have read out, write and ask is often one short sentence. Its script says the most; where several languages share one, its
//! commonest words do, and letters that few of them have. The statistics of a detector decide where these do not.

mod function_words;
mod script;
#[cfg(test)]
mod sentences;
mod words;

use std::{collections::HashMap, sync::LazyLock};

use whatlang::{Detector, Lang};

use self::words::WORDS;
pub use self::{
    function_words::is_function_word,
    script::{Script, unread_script},
};

/// The languages of the interface, as the detector calls them, and their short codes.
const LANGUAGES: [(Lang, &str); 15] = [
    (Lang::Eng, "en"),
    (Lang::Spa, "es"),
    (Lang::Fra, "fr"),
    (Lang::Deu, "de"),
    (Lang::Ita, "it"),
    (Lang::Por, "pt"),
    (Lang::Pol, "pl"),
    (Lang::Rus, "ru"),
    (Lang::Nld, "nl"),
    (Lang::Ara, "ar"),
    (Lang::Cmn, "zh-cn"),
    (Lang::Jpn, "ja"),
    (Lang::Kor, "ko"),
    (Lang::Hin, "hi"),
    (Lang::Heb, "he"),
];
/// From here on the detector is right about greetings, too, once its two guesses agree.
const CONFIDENT: f64 = 0.5;
/// Words that say this much decide: one that only one language of ours has, or several that few have.
const TELLING: f64 = 0.65;
/// And by so much more than those of the next language.
const CLEARLY: f64 = 1.3;

/// Letters and signs that few languages have, those languages, and what one of them counts.
const LETTERS: [(&str, &[&str], f64); 20] = [
    ("ß", &["de"], 2.0),
    ("¿¡ñ", &["es"], 1.5),
    ("ãõ", &["pt"], 1.0),
    ("łżźśąęń", &["pl"], 1.5),
    ("œù", &["fr"], 0.8),
    ("êâ", &["fr", "pt"], 0.4),
    ("ç", &["fr", "pt", "ca", "tr"], 0.3),
    ("èò", &["it", "ca"], 0.3),
    ("å", &["da", "sv", "no"], 1.0),
    ("øæ", &["da", "no"], 1.5),
    ("ä", &["de", "sv", "fi"], 0.4),
    ("ö", &["de", "sv", "fi", "tr", "hu"], 0.3),
    ("ü", &["de", "tr", "hu"], 0.4),
    ("őű", &["hu"], 2.0),
    ("ěřů", &["cs"], 2.0),
    ("čšž", &["cs", "sk", "hr"], 1.0),
    ("ğış", &["tr"], 1.5),
    ("ățș", &["ro"], 1.5),
    ("ơưđạảấầậắếềệịọốồộớờợụủứừự", &["vi"], 1.5),
    ("ыэё", &["ru"], 1.0),
];
/// Letters of the Cyrillic alphabets of others.
const NOT_RUSSIAN: &str = "іїєґўјљњћђџѓќ";
/// Letters of the Persian, Urdu and Pashto alphabets that Arabic does not have.
const NOT_ARABIC: &str = "پچژگکیٹڈڑےںہھۂټډړښځڅڼ";
/// Those of Pashto, of Urdu, and of Persian, in the order in which they tell the language.
const PASHTO: &str = "ټډړښځڅڼ";
const URDU: &str = "ٹڈڑںےہھۂ";
const PERSIAN: &str = "پچژگ";
/// Letters that Persian shares with Urdu, and writes otherwise than Arabic.
const KAF_AND_YEH: &str = "کی";
/// Letters that Persian and Urdu rarely have.
const ARABIC: &str = "ةىيكأإؤ";
/// Pairs of letters that are one in Yiddish.
const NOT_HEBREW: &str = "װױײ";

/// Which languages have a word.
static LANGUAGES_OF: LazyLock<HashMap<&str, Vec<&str>>> = LazyLock::new(|| {
    let mut languages_of: HashMap<&str, Vec<&str>> = HashMap::new();
    for (language, words) in WORDS {
        for word in words.split_whitespace() {
            let languages = languages_of.entry(word).or_default();
            if languages.last() != Some(&language) {
                languages.push(language);
            }
        }
    }
    languages_of
});

/// The short code of the text's language. `None` when the detection is not sure, and for a language that the interface
/// does not have: the synthesizer's default is a better guess than a wrong language.
#[must_use]
pub fn detect(text: &str) -> Option<&'static str> {
    let has = |letters: &str| text.chars().any(|letter| letters.contains(letter));
    match Script::of(text)? {
        Script::Hangul => Some("ko"),
        Script::Kana => Some("ja"),
        Script::Han => Some("zh-cn"),
        Script::Hebrew => (!has(NOT_HEBREW)).then_some("he"),
        Script::Arabic if has(NOT_ARABIC) => None,
        Script::Arabic if has(ARABIC) => Some("ar"),
        Script::Arabic => by_statistics(text),
        Script::Cyrillic
            if text
                .to_lowercase()
                .contains(|letter| NOT_RUSSIAN.contains(letter)) =>
        {
            None
        }
        Script::Latin | Script::Cyrillic | Script::Devanagari => by_words(text),
        // Scripts of languages that the interface does not have.
        _ => None,
    }
}

/// The short code of the language to speak a text in: the detected one, else the only language of the interface that is written in the
/// text's script. `None` for Latin letters, which many languages share, and for scripts of other languages.
#[must_use]
pub fn detect_to_speak(text: &str) -> Option<&'static str> {
    let of_script = || match Script::of(text)? {
        Script::Arabic => Some(by_arabic_letters(text)),
        script => script.language(),
    };
    detect_readable(text).or_else(|| of_script().filter(|code| is_ours(code)))
}

/// The language to speak a text in with a voice of the language `own`: the detected one, else that of a script which the voice does not read. `None`
/// for the voice's own, also for Chinese characters alone where the voice reads them: with a Japanese voice they are Japanese.
#[must_use]
pub fn detect_for_voice(own: &str, text: &str) -> Option<&'static str> {
    if Script::of(text) == Some(Script::Han) && Script::Han.is_of(own) {
        return None;
    }
    let of_script = || {
        let unread = unread_script(text, |script| script.is_of(own));
        match unread.or_else(|| Script::of(text))? {
            // An Arabic voice names letters that Arabic does not have.
            Script::Arabic if unread.is_some() || is_arabic(own) => Some(by_arabic_letters(text)),
            script => unread.and(script.language()),
        }
    };
    detect_readable(text).or_else(of_script)
}

/// The detected language, unless it is not written in the script of most letters: "Hello" makes no English of a Russian sentence.
fn detect_readable(text: &str) -> Option<&'static str> {
    detect(text).filter(|code| unread_script(text, |script| script.is_of(code)).is_none())
}

/// True if a BCP 47 tag is that of Arabic.
fn is_arabic(tag: &str) -> bool {
    let primary = tag.split('-').next().unwrap_or(tag);
    primary.eq_ignore_ascii_case("ar")
}

/// The language of a text in Arabic letters, by those that Arabic does not have.
fn by_arabic_letters(text: &str) -> &'static str {
    let has = |letters: &str| text.chars().any(|letter| letters.contains(letter));
    if has(PASHTO) {
        "ps"
    } else if has(URDU) {
        "ur"
    } else if has(PERSIAN) || has(KAF_AND_YEH) && !has(ARABIC) {
        "fa"
    } else {
        "ar"
    }
}

/// True if the interface has a language of this short code.
fn is_ours(code: &str) -> bool {
    LANGUAGES.iter().any(|(_, known)| *known == code)
}

/// True if a text has Chinese characters, which Japanese reads in several ways each.
#[must_use]
pub fn has_han(text: &str) -> bool {
    text.chars()
        .any(|letter| Script::of_letter(letter) == Some(Script::Han))
}

/// The text without its Chinese characters. The words around them stay apart.
#[must_use]
pub fn without_han(text: &str) -> String {
    without(
        |letter| Script::of_letter(letter) == Some(Script::Han),
        text,
    )
}

/// The text without its kana. The words around them stay apart.
#[must_use]
pub fn without_kana(text: &str) -> String {
    without(
        |letter| Script::of_letter(letter) == Some(Script::Kana),
        text,
    )
}

/// The text without the words in scripts that are not read, which a voice would spell. The words around them stay apart, and a Greek letter that stands
/// alone is a sign of a formula.
#[must_use]
pub fn without_unread(text: &str, is_read: impl Fn(Script) -> bool) -> String {
    /// No character.
    const LEFT_OUT: char = '\u{fdd0}';
    let letters: Vec<char> = text.chars().collect();
    let script_at = |at: usize| letters.get(at).copied().and_then(Script::of_letter);
    let mut is_left_out = false;
    let mut marked = String::with_capacity(text.len());
    for (at, letter) in letters.iter().enumerate() {
        is_left_out = match script_at(at) {
            Some(Script::Greek)
                if at.checked_sub(1).and_then(script_at).is_none()
                    && script_at(at + 1).is_none() =>
            {
                false
            }
            Some(script) => !is_read(script),
            // Vowels and tones that are no letters go with theirs.
            None => is_left_out && is_sign_of_word(*letter),
        };
        marked.push(if is_left_out { LEFT_OUT } else { *letter });
    }
    without(|letter| letter == LEFT_OUT, &marked)
}

/// True for what is neither a letter nor a digit, a space or punctuation that many scripts share.
fn is_sign_of_word(c: char) -> bool {
    let is_shared =
        matches!(c, '\u{2000}'..='\u{206f}' | '\u{20a0}'..='\u{2bff}' | '\u{3000}'..='\u{303f}');
    ('\u{300}'..'\u{10000}').contains(&c)
        && !is_shared
        && !c.is_alphanumeric()
        && !c.is_whitespace()
}

fn without(is_left_out: impl Fn(char) -> bool, text: &str) -> String {
    if !text.contains(&is_left_out) {
        return text.to_owned();
    }
    let mut rest = String::with_capacity(text.len());
    for part in text.split(&is_left_out) {
        let begins_word = part.starts_with(|c: char| c.is_alphanumeric() || c.is_whitespace());
        let had_space = rest.ends_with(char::is_whitespace);
        rest.truncate(rest.trim_end().len());
        let part = part.trim_start();
        // Punctuation that ends something stands at the word before.
        let ends = part.starts_with(|c: char| ".,;:!?)]}»”…。、，！？".contains(c));
        if !rest.is_empty() && !part.is_empty() && (begins_word || had_space) && !ends {
            rest.push(' ');
        }
        rest.push_str(part);
    }
    rest.truncate(rest.trim_end().len());
    rest
}

/// By the commonest words, and by statistics where these say too little.
fn by_words(text: &str) -> Option<&'static str> {
    let text = text.to_lowercase();
    let mut scores = HashMap::<&'static str, f64>::new();
    let in_word = |c: char| c.is_alphabetic() || Script::of_letter(c) == Some(Script::Devanagari);
    for word in text.split(|c| !in_word(c)) {
        let languages = LANGUAGES_OF.get(word).map_or(&[][..], Vec::as_slice);
        let (known, others): (Vec<_>, Vec<_>) = languages.iter().partition(|code| is_ours(code));
        let of_ours = 1.0 / (known.len() as f64 + others.len() as f64 / 2.0);
        let of_others = 1.0 / languages.len() as f64;
        for (languages, counts) in [(known, of_ours), (others, of_others)] {
            for language in languages {
                *scores.entry(language).or_default() += counts;
            }
        }
    }
    for (letters, languages, counts) in LETTERS {
        let found = text.chars().filter(|letter| letters.contains(*letter));
        // A second one says little more.
        let found = found.count().min(2) as f64;
        for language in languages {
            *scores.entry(language).or_default() += counts * found;
        }
    }
    let mut scores: Vec<_> = scores.into_iter().collect();
    scores.sort_by(|(_, one), (_, other)| other.total_cmp(one));
    let next = scores.get(1).map_or(0.0, |(_, score)| *score);
    match scores.first() {
        Some((code, score)) if *score >= TELLING && *score >= next * CLEARLY => {
            is_ours(code).then_some(*code)
        }
        // A language of others that says more than any of ours.
        Some((code, score)) if *score >= TELLING && !is_ours(code) => None,
        _ => by_statistics(&text),
    }
}

/// The first guess, among all languages, has to be one of ours: Danish is no Dutch, although nothing of ours is closer. How
/// sure the detection is shows the second guess, among ours alone: that a text in Devanagari may also be Nepali is no
/// reason to read it out in English.
fn by_statistics(text: &str) -> Option<&'static str> {
    let first = whatlang::detect_lang(text)?;
    let (_, code) = LANGUAGES.iter().find(|(lang, _)| *lang == first)?;
    let ours = LANGUAGES.iter().map(|(lang, _)| *lang).collect();
    let second = Detector::with_allowlist(ours).detect(text)?;
    (second.lang() == first && second.confidence() >= CONFIDENT).then_some(*code)
}

#[cfg(test)]
mod tests {
    use super::{
        sentences::{HELD_OUT, OTHERS, TUNING},
        *,
    };

    /// How many of the sentences are found, and which are not.
    fn found(set: &[(&str, [&str; 4])]) -> (usize, Vec<String>) {
        let sentences = set
            .iter()
            .flat_map(|(code, texts)| texts.map(|text| (*code, text)));
        let (right, wrong): (Vec<_>, Vec<_>) =
            sentences.partition(|(code, text)| detect(text) == Some(code));
        let wrong = wrong
            .iter()
            .map(|(code, text)| format!("{code}: {text} is {:?}", detect(text)));
        (right.len(), wrong.collect())
    }

    #[test]
    fn a_short_sentence_is_enough() {
        for (name, set) in [("tuning", &TUNING), ("held out", &HELD_OUT)] {
            let (right, wrong) = found(set);
            assert!(right >= 57, "{name}: {right} of 60; {wrong:#?}");
        }
    }

    #[test]
    fn sentences_of_other_languages_are_left_open() {
        let taken = OTHERS.iter().filter_map(|text| Some((text, detect(text)?)));
        let taken = taken.collect::<Vec<_>>();
        assert!(taken.len() <= 1, "{taken:#?}");
    }

    #[test]
    fn every_language_is_detected_when_there_is_enough_of_it() {
        let texts = [
            (
                "en",
                "The museum opens at nine in the morning, and visitors who come before that have to wait outside.",
            ),
            (
                "es",
                "El museo abre a las nueve de la mañana y los visitantes que llegan antes tienen que esperar fuera.",
            ),
            (
                "fr",
                "Le musée ouvre à neuf heures du matin et les visiteurs qui arrivent avant doivent attendre dehors.",
            ),
            (
                "de",
                "Das Museum öffnet um neun Uhr morgens, und wer früher kommt, muss draußen auf die anderen warten.",
            ),
            (
                "it",
                "Il museo apre alle nove del mattino e i visitatori che arrivano prima devono aspettare fuori.",
            ),
            (
                "pt",
                "O museu abre às nove horas da manhã e os visitantes que chegam antes têm de esperar lá fora.",
            ),
            (
                "pl",
                "Muzeum otwiera się o dziewiątej rano, a zwiedzający, którzy przyjdą wcześniej, muszą czekać na zewnątrz.",
            ),
            (
                "ru",
                "Музей открывается в девять часов утра, и посетители, которые приходят раньше, должны ждать снаружи.",
            ),
            (
                "nl",
                "Het museum gaat om negen uur 's ochtends open en bezoekers die eerder komen, moeten buiten wachten.",
            ),
            (
                "ar",
                "يفتح المتحف أبوابه في الساعة التاسعة صباحا، وعلى الزوار الذين يأتون قبل ذلك أن ينتظروا في الخارج.",
            ),
            (
                "zh-cn",
                "博物馆早上九点开门，提前到达的游客需要在外面等候。",
            ),
            (
                "ja",
                "博物館は午前九時に開きます。早く着いた方は外でお待ちください。",
            ),
            (
                "ko",
                "박물관은 아침 아홉 시에 문을 열고, 일찍 온 방문객은 밖에서 기다려야 합니다.",
            ),
            (
                "hi",
                "संग्रहालय सुबह नौ बजे खुलता है और जो लोग पहले आते हैं उन्हें बाहर इंतज़ार करना पड़ता है।",
            ),
            (
                "he",
                "המוזיאון נפתח בתשע בבוקר, ומבקרים שמגיעים לפני כן צריכים לחכות בחוץ.",
            ),
        ];
        for (code, text) in texts {
            assert_eq!(detect(text), Some(code), "{text}");
        }
        let codes = texts.map(|(code, _)| code);
        assert!(colloquy_base::language::language_codes().eq(codes));
        assert!(codes.iter().eq(LANGUAGES.iter().map(|(_, code)| code)));
    }

    #[test]
    fn a_greeting_is_enough_for_most() {
        let texts = [
            ("es", "Hola, ¿cómo estás?"),
            ("fr", "Bonjour, comment allez-vous ?"),
            ("de", "Hallo, ich heiße Anna und wohne in Berlin."),
            ("pl", "Dzień dobry, jak się masz?"),
            (
                "ru",
                "Привет! Меня зовут Анна, я живу в Москве и работаю врачом.",
            ),
            ("nl", "Goedendag, hoe gaat het?"),
            ("zh-cn", "你好，你好吗？"),
            ("ja", "こんにちは、おげんきですか。"),
            ("ko", "안녕하세요?"),
            ("hi", "नमस्ते, आप कैसे हैं?"),
            ("he", "שלום, מה שלומך?"),
        ];
        for (code, text) in texts {
            assert_eq!(detect(text), Some(code), "{text}");
        }
    }

    #[test]
    fn what_is_unsure_or_unknown_is_left_open() {
        let texts = [
            "ok",
            "12 345",
            "Taxi, hotel, radio.",
            // Danish, Persian, Marathi, Ukrainian and Vietnamese are no languages of the interface.
            "Museet åbner klokken ni om morgenen, og gæster, der kommer før, skal vente udenfor i kulden.",
            "माझे नाव राम आहे आणि मी पुण्यात राहतो.",
            "Добрий день, як у вас справи? Сьогодні гарна погода.",
            "Xin chào, tôi tên là Lan.",
            "موزه ساعت نه صبح باز می‌شود و بازدیدکنندگانی که زودتر می‌آیند باید بیرون منتظر بمانند.",
        ];
        for text in texts {
            assert_eq!(detect(text), None, "{text}");
        }
    }

    #[test]
    fn a_script_of_one_language_is_spoken_in_that() {
        for (text, language) in [
            ("Спокойной ночи", Some("ru")),
            ("Добранич, Андрію", Some("ru")),
            ("शुभ रात्रि", Some("hi")),
            ("لیلة", Some("ar")),
            ("שלום", Some("he")),
            ("Guten Morgen, wie geht es Ihnen?", Some("de")),
            ("Taxi 12", None),
            ("Καλημέρα", None),
            ("Hello Спокойной ночи", Some("ru")),
            ("آپ کیسے ہیں؟", None),
            ("12", None),
        ] {
            assert_eq!(detect_to_speak(text), language, "{text}");
        }
        for (own, text, language) in [
            ("en-us", "Καλημέρα σας", Some("el")),
            ("de", "สวัสดี", Some("th")),
            ("en", "Добранич, Андрію", Some("ru")),
            ("uk", "Добранич, Андрію", None),
            ("el", "Καλημέρα σας", None),
            ("en", "日本", Some("zh-cn")),
            ("ja", "日本", None),
            ("ja", "Guten Morgen, wie geht es Ihnen?", Some("de")),
            ("yue-hk", "日本", None),
            ("en", "Hello Спокойной ночи", Some("ru")),
            ("en", "آپ کیسے ہیں؟", Some("ur")),
            ("ar", "آپ کیسے ہیں؟", Some("ur")),
            ("ur", "آپ کیسے ہیں؟", None),
            ("en", "حال شما چطور است؟", Some("fa")),
            ("en", "ښه راغلاست", Some("ps")),
            ("en", "12", None),
        ] {
            assert_eq!(detect_for_voice(own, text), language, "{own} {text}");
        }
        assert!(has_han("今日は") && !has_han("きょうは いい てんき, 2026"));
    }

    #[test]
    fn words_in_scripts_that_are_not_read_are_left_out() {
        for (language, text, expected) in [
            ("en", "I said שלום to him", "I said to him"),
            ("he", "I said שלום to him", "I said שלום to him"),
            ("en", "Say สวัสดี, Привет!", "Say,!"),
            ("en", "Say שָׁלוֹם now", "Say now"),
            ("en", "α + β is Ωmega, π", "α + β is mega, π"),
            ("en", "5 µm – 3 €", "5 µm – 3 €"),
        ] {
            let readable = without_unread(text, |script| script.is_of(language));
            assert_eq!(readable, expected, "{language}");
        }
    }

    #[test]
    fn words_around_chinese_characters_stay_apart() {
        for (text, expected) in [
            ("no such letter, ", "no such letter, "),
            ("We land in 東京 at nine.", "We land in at nine."),
            ("in東京now", "in now"),
            ("We like 佐々木, too", "We like, too"),
            ("Tokyo (東京)", "Tokyo ()"),
            ("東京。", "。"),
            ("costs 円 $5", "costs $5"),
            ("now 今 -5", "now -5"),
            ("Tokyo 東京 (Japan)", "Tokyo (Japan)"),
            ("東京", ""),
        ] {
            assert_eq!(without_han(text), expected, "{text}");
        }
        for (text, expected) in [
            ("We say さようなら, or バイバイ!", "We say, or!"),
            ("inカナnow 今", "in now 今"),
            ("half ｶﾅ and ㇰ small", "half and small"),
            ("きょう", ""),
        ] {
            assert_eq!(without_kana(text), expected, "{text}");
        }
    }
}
