//! The language of a text, where the request does not name one.

use whatlang::{Detector, Lang};

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

/// The short code of the text's language. `None` when the detection is not sure, and for a language that the interface
/// does not have: the synthesizer's default is a better guess than a wrong language.
///
/// The first guess, among all languages, has to be one of ours: Danish is no Dutch, although nothing of ours is closer. How
/// sure the detection is shows the second guess, among ours alone: that a text in Devanagari may also be Nepali is no
/// reason to read it out in English.
pub(super) fn detect(text: &str) -> Option<&'static str> {
    let first = whatlang::detect_lang(text)?;
    let (_, code) = LANGUAGES.iter().find(|(lang, _)| *lang == first)?;
    let ours = LANGUAGES.iter().map(|(lang, _)| *lang).collect();
    let second = Detector::with_allowlist(ours).detect(text)?;
    (second.lang() == first && second.confidence() >= CONFIDENT).then_some(*code)
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert!(super::super::language::language_codes().eq(codes));
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
}
