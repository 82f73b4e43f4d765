//! Words that say nothing of what a question is about: articles, prepositions, pronouns, question words. Other than the commonest words of a
//! language, none of them is what somebody could look for.

use std::{
    collections::{HashMap, HashSet},
    sync::LazyLock,
};

use super::LANGUAGES;

/// What the lists of NLTK do not have: words that ask, and two languages.
const OTHERS: [(&str, &str); 10] = [
    (
        "es",
        "dónde quién quiénes cuándo cuánto cuánta cuántos cuántas cuál cuáles cómo puedo puede hay",
    ),
    (
        "fr",
        "où quand comment pourquoi combien quel quelle quels quelles quoi y a t il les des une est ce",
    ),
    (
        "de",
        "wann warum wieso woher wohin wie wieviel wer wessen gibt",
    ),
    (
        "it",
        "quando quanto quanti quante quale quali cosa posso può",
    ),
    (
        "pt",
        "quem quando quanto quantos quantas onde como qual quais porque posso pode há",
    ),
    (
        "ru",
        "это где когда кто что как почему зачем сколько какой какая какие какое куда откуда",
    ),
    ("nl", "waar wie wanneer waarom hoe hoeveel welke welk"),
    ("he", "מתי איפה איך למה כמה מי"),
    (
        "pl",
        "a aby albo ale ani bez bo by być był była było były będzie będą ci ciebie cię co czemu czy dla dlaczego do dokąd gdy gdzie \
            go i ich ile im ja jak jaka jaki jakie jaką jakim jakich je jego jej jemu jest jestem jesteś jeśli jeżeli już ją kiedy kim \
            kto która które którego której który których którym ku lub ma mają mam mamy mi między mnie mną mogą mogę moi moja moje \
            może można mój mu my na nad nam nami nas nasz nasza nasze nic nich nie niego niej nim nimi o od on ona one oni ono oraz po \
            pod poza przed przez przy się skąd są ta tak taka taki takie tam te tego tej ten też to tobie tu twoja twoje twój ty tych \
            tylko tym u w wam was wasz we więc wy z za ze że",
    ),
    (
        "hi",
        "और या का की के को में से पर ने तक है हैं हो था थी थे हूँ हूं होता होती होते कर करना करता करती करते किया की कि यह ये वह वे इस इन उस उन इसका \
            इसकी इसके उसका उसकी उसके उनका उनकी उनके मैं मुझे मेरा मेरी मेरे हम हमें हमारा हमारी हमारे तुम तुम्हारा आप आपका आपकी आपके अपना अपनी अपने \
            क्या कौन कौनसा कब कहाँ कहां कैसे कैसा कैसी क्यों कितना कितनी कितने किस किसका किसकी किसके किसने भी ही तो नहीं न मत जो जब तब अगर लेकिन साथ \
            लिए एक बहुत यहाँ यहां वहाँ वहां",
    ),
];

/// By the short codes of languages. Languages whose words are not written apart have none.
static WORDS: LazyLock<HashMap<&'static str, HashSet<&'static str>>> = LazyLock::new(|| {
    let lists = LANGUAGES.iter().map(|(_, code)| {
        let known = stop_words::lookup(code).unwrap_or_default().iter().copied();
        let others = OTHERS.iter().filter(|(other, _)| other == code);
        let others = others.flat_map(|(_, words)| words.split_whitespace());
        (*code, known.chain(others).collect())
    });
    lists.collect()
});

/// Whether a word, in lower case, is such a word of this language, which is named by its short code.
#[must_use]
pub fn is_function_word(word: &str, language: &str) -> bool {
    WORDS
        .get(language)
        .is_some_and(|words| words.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_with_words_apart_have_some() {
        let questions = [
            ("en", "where is the"),
            ("es", "donde está el"),
            ("fr", "est la"),
            ("de", "wo ist der"),
            ("it", "dove è il"),
            ("pt", "qual é o"),
            ("pl", "gdzie jest to"),
            ("ru", "где это же"),
            ("nl", "wat is de"),
            ("ar", "ما هذا في"),
            ("hi", "यह क्या है"),
            ("he", "מה זה של"),
        ];
        for (language, words) in questions {
            for word in words.split(' ') {
                assert!(is_function_word(word, language), "{language}: {word}");
            }
        }
        for (language, word) in [
            ("en", "soup"),
            ("en", "open"),
            ("de", "suppe"),
            ("hi", "किताब"),
        ] {
            assert!(!is_function_word(word, language), "{language}: {word}");
        }
    }
}
