//! Words that should meet, in every language.

use proptest::prelude::*;

use super::*;

fn meet(language: &str, document: &str, query: &str) -> bool {
    let language = Language::from_tag(language);
    let document = document_terms(document, language);
    let query = query_terms(query, &[language], 64);
    !query.is_empty() && query.iter().any(|term| document.contains(term))
}

#[test]
fn forms_of_a_word_meet_in_every_language_of_the_service() {
    let forms = [
        ("en", "Opening hours", "when is it opened"),
        ("en", "the lion's den", "lions"),
        ("es", "las habitaciones", "habitación"),
        ("fr", "l’homme marchait", "les hommes"),
        ("fr", "marchait", "marcher"),
        ("de", "die Öffnungszeiten der Häuser", "Haus"),
        ("it", "gli animali dell'albergo", "animale"),
        ("pt", "as casas grandes", "casa grande"),
        ("pl", "zwierzętami", "zwierzęta"),
        ("ru", "животными", "животное"),
        ("nl", "de openingstijden van dieren", "dier"),
        ("ar", "الكتاب المدرسي", "كتاب"),
        ("zh-cn", "营业时间是九点", "时间"),
        ("ja", "営業時間は九時から", "営業"),
        ("ko", "영업시간은 아홉시부터", "시간"),
        ("hi", "किताबें पढ़ना", "किताब"),
        ("he", "שעות הפתיחה בבית הספר", "פתיחה"),
    ];
    for (language, document, query) in forms {
        assert!(
            meet(language, document, query),
            "{language}: {document} / {query}"
        );
    }
    let tested: std::collections::BTreeSet<_> = forms
        .iter()
        .map(|(language, ..)| Language::from_tag(language))
        .collect();
    let services: std::collections::BTreeSet<_> = colloquy_base::language::language_codes()
        .map(Language::from_tag)
        .collect();
    assert_eq!(tested, services);
    assert_eq!(
        Language::all().collect::<std::collections::BTreeSet<_>>(),
        services
    );
}

#[test]
fn languages_are_told() {
    let texts = [
        (
            "en",
            "The zoo opens at nine in the morning and closes when the sun goes down.",
        ),
        (
            "de",
            "Der Zoo öffnet morgens um neun Uhr und schließt, wenn die Sonne untergeht.",
        ),
        (
            "fr",
            "Le zoo ouvre à neuf heures du matin et ferme quand le soleil se couche.",
        ),
        (
            "ru",
            "Зоопарк открывается в девять утра и закрывается, когда садится солнце.",
        ),
        ("he", "גן החיות נפתח בתשע בבוקר ונסגר כשהשמש שוקעת."),
        ("ja", "動物園は朝九時に開き、日が沈むと閉まります。"),
        ("und", "42"),
    ];
    for (tag, text) in texts {
        assert_eq!(Language::detect(text).tag(), tag, "{text}");
    }
    assert_eq!(Language::from_tag("de-AT").tag(), "de");
    assert_eq!(Language::from_tag("zh").tag(), "zh-cn");
    assert_eq!(Language::from_tag("sv"), Language::UNKNOWN);
}

#[test]
fn spellings_of_a_word_are_one_term() {
    for words in [
        "Café cafe\u{301} ＣＡＦＥ",
        "Straße strasse",
        "Łódź lodz",
        "كِتَابٌ كتاب",
        "سلام سـلام",
        "naïve naive",
    ] {
        let terms = document_terms(words, Language::UNKNOWN);
        assert!(terms.windows(2).all(|pair| pair[0] == pair[1]), "{terms:?}");
    }
    assert_eq!(document_terms("हिन्दी", Language::UNKNOWN), ["हिन्दी"]);
}

#[test]
fn numbers_are_compared_by_value() {
    let terms = |text| document_terms(text, Language::UNKNOWN);
    for same in ["1,000 1.000 1000", "2.5 2,5", "1,234.5 1.234,5", "٤٢ 42 ४२"] {
        let terms = terms(same);
        assert!(terms.windows(2).all(|pair| pair[0] == pair[1]), "{terms:?}");
    }
    assert_eq!(terms("12.11.2024, 0.125."), ["12", "11", "2024", "0.125"]);
    assert_eq!(terms("C++ C# a+b mp3"), ["c++", "c#", "a+b", "mp3"]);
}

#[test]
fn every_script_has_terms() {
    let queries = [
        "東",
        "東京",
        "ไทย",
        "ภาษา",
        "မြန်မာ",
        "ភាសា",
        "ལྷ་ས",
        "ქართული",
        "አማርኛ",
        "தமிழ்",
        "🎉",
        "C++",
        "Ω",
        "ຂອງ",
        "ꦗꦮ",
        "𠀀",
        "x",
        "7",
        "½",
        "don't",
        "o'",
        "№",
        "€",
    ];
    for query in queries {
        let language = Language::detect(query);
        assert!(!query_terms(query, &[language], 64).is_empty(), "{query}");
        assert!(meet("und", &format!("abc {query} def"), query), "{query}");
    }
}

#[test]
fn words_without_a_subject_count_only_where_there_are_no_others() {
    let [en, de] = ["en", "de"].map(Language::from_tag);
    let terms = |text: &str, languages: &[Language]| query_terms(text, languages, 64);
    assert_eq!(terms("Where is the soup?", &[en]), ["soup"]);
    assert_eq!(terms("What is 12?", &[en]), ["12"]);
    assert_eq!(terms("Wo gibt es die Suppe?", &[en, de]), ["supp"]);
    assert_eq!(terms("To be or not to be", &[en]).len(), 4);
    assert_eq!(terms("what is 🍜", &[en]), ["🍜"]);
    let document = document_terms("The soup is hot.", en);
    assert_eq!(document, ["the", "soup", "is", "hot"]);
}

#[test]
fn a_word_without_a_subject_in_another_language_has_one() {
    let [en, de, nl, ja] = ["en", "de", "nl", "ja"].map(Language::from_tag);
    let all: Vec<Language> = Language::all().collect();
    let terms = |text: &str, languages: &[Language]| query_terms(text, languages, 64);
    for languages in [&[en, de][..], &[de, en], &all] {
        let has = |text: &str, term: &str| terms(text, languages).iter().any(|it| it == term);
        assert!(has("When did the war end?", "war"), "{languages:?}");
        assert!(has("How did the man die?", "man"), "{languages:?}");
        assert!(has("How did the man die?", "die"), "{languages:?}");
        assert!(!has("My car is broken.", "is"), "{languages:?}");
        assert!(!has("Wie war die Suppe?", "war"), "{languages:?}");
        assert!(!has("Wie war die Suppe?", "die"), "{languages:?}");
    }
    // In English and Dutch alike, and in Japanese, which has no such words.
    assert_eq!(terms("Is soup hot?", &[en, nl, ja]), ["soup", "hot"]);
    assert_eq!(terms("the 12 soups", &[]), ["the", "12", "soups"]);
}

#[test]
fn a_query_is_stemmed_in_the_languages_of_the_documents() {
    let languages = [Language::from_tag("en"), Language::from_tag("de")];
    assert_eq!(
        query_terms("Häuser houses", &languages, 64),
        ["hauser", "haus", "hous"]
    );
    assert_eq!(
        query_terms(&"a b c d e f".repeat(1_000), &languages, 3).len(),
        3
    );
}

proptest! {
    #[test]
    fn terms_are_bounded_and_those_of_a_query_are_in_its_text(text in "\\PC{0,300}") {
        let terms = document_terms(&text, Language::UNKNOWN);
        prop_assert!(terms.iter().all(|term| !term.is_empty() && term.len() <= MAX_TERM_BYTES));
        let query = query_terms(&text, &[Language::UNKNOWN], 1_000);
        prop_assert!(query.iter().all(|term| terms.contains(term)));
        // What is written has terms, whatever the script.
        prop_assert!(!query.is_empty() || !text.chars().any(char::is_alphanumeric), "{text:?}");
    }
}
