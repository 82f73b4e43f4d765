//! Stage directions and emphasis in the languages of the interface other than English.

use super::removed;

/// A language: who smiles, laughs, sighs, nods, pauses, whispers, coughs, clears their throat, winks, grins, shrugs, gasps, giggles and chuckles; a
/// sentence that may follow; and what is emphasized.
struct Abroad {
    directions: [&'static str; 14],
    sentence: &'static str,
    emphasis: &'static [&'static str],
}

const LANGUAGES: [Abroad; 14] = [
    // Arabic.
    Abroad {
        directions: [
            "يبتسم",
            "تضحك",
            "متنهدًا",
            "يومئ برأسه",
            "يتوقف قليلاً",
            "تهمس",
            "يسعل",
            "يتنحنح",
            "يغمز",
            "يبتسم ابتسامة عريضة",
            "يهز كتفيه",
            "تشهق",
            "يقهقه",
            "يضحك بخفوت",
        ],
        sentence: "مرحبا بكم.",
        emphasis: &["هذا *مهم* جدا.", "*مهم* جدا.", "الرجل *يضحك* كثيرا."],
    },
    // German.
    Abroad {
        directions: [
            "lächelt freundlich",
            "lacht",
            "seufzt",
            "nickt",
            "hält inne",
            "flüstert",
            "hustet",
            "räuspert sich",
            "zwinkert",
            "grinst",
            "zuckt mit den Schultern",
            "keucht",
            "kichernd",
            "schmunzelt",
        ],
        sentence: "Guten Tag.",
        emphasis: &[
            "Das ist *wichtig*.",
            "*wichtig*",
            "*Wichtig* ist das nicht.",
            "Wenn es regnet, *lacht* sie.",
            "Nun *lacht* er wieder.",
            "Er *lacht* oft",
            "Wer zuletzt *lacht*",
        ],
    },
    // Spanish.
    Abroad {
        directions: [
            "sonríe",
            "se ríe",
            "suspira",
            "asiente",
            "hace una pausa",
            "susurra",
            "tose",
            "se aclara la garganta",
            "guiña un ojo",
            "sonríe ampliamente",
            "se encoge de hombros",
            "jadea",
            "suelta una risita",
            "ríe entre dientes",
        ],
        sentence: "Buenos días.",
        emphasis: &["Es *importante*.", "*muy*", "Ella *sonríe* siempre."],
    },
    // French.
    Abroad {
        directions: [
            "sourit",
            "rit",
            "soupire",
            "hoche la tête",
            "marque une pause",
            "chuchote",
            "tousse",
            "se racle la gorge",
            "fait un clin d’œil",
            "sourit largement",
            "hausse les épaules",
            "halète",
            "glousse",
            "rit doucement",
        ],
        sentence: "Bonjour.",
        emphasis: &[
            "C'est *important*.",
            "*très*",
            "Il *rit* souvent",
            "Rira bien qui *rit*",
        ],
    },
    // Hebrew.
    Abroad {
        directions: [
            "מחייך",
            "צוחקת",
            "נאנח",
            "מהנהן",
            "עוצר לרגע",
            "לוחשת",
            "משתעל",
            "מכחכח בגרונו",
            "קורץ",
            "מחייך חיוך רחב",
            "מושך בכתפיו",
            "מתנשף",
            "מצחקקת",
            "מגחך",
        ],
        sentence: "שלום לכם.",
        emphasis: &["זה *חשוב* מאוד.", "*חשוב* מאוד.", "הילד *צוחק* הרבה."],
    },
    // Hindi.
    Abroad {
        directions: [
            "मुस्कुराता है",
            "हँसती है",
            "आह भरता है",
            "सिर हिलाता है",
            "रुककर",
            "फुसफुसाती है",
            "खाँसता है",
            "गला साफ\u{93c} करता है",
            "आँख मारता है",
            "खीसें निपोरता है",
            "कंधे उचकाता है",
            "हाँफता है",
            "खिलखिलाती है",
            "धीरे से हँसता है",
        ],
        sentence: "नमस्ते।",
        emphasis: &[
            "यह *बहुत* ज़रूरी है।",
            "*बहुत* ज़रूरी है।",
            "वह *हँसता है* और जाता है।",
        ],
    },
    // Italian.
    Abroad {
        directions: [
            "sorride",
            "ride",
            "sospira",
            "annuisce",
            "fa una pausa",
            "sussurra",
            "tossisce",
            "si schiarisce la voce",
            "fa l'occhiolino",
            "sogghigna",
            "alza le spalle",
            "ansima",
            "ridacchia",
            "ride sotto i baffi",
        ],
        sentence: "Buongiorno.",
        emphasis: &[
            "È *importante*.",
            "*molto*",
            "Enjoy the *ride*",
            "*Ride* the bus.",
        ],
    },
    // Japanese.
    Abroad {
        directions: [
            "微笑む",
            "笑いながら",
            "ため息をつく",
            "頷いて",
            "少し間を置いて",
            "ささやくように",
            "咳",
            "咳払いをして",
            "ウインク",
            "ニヤリと笑う",
            "肩をすくめる",
            "息をのむ",
            "くすくす笑う",
            "小さく笑う",
        ],
        sentence: "はい、こんにちは。",
        emphasis: &[
            "これは*重要*です。",
            "*重要*です。",
            "*笑い*は薬です。",
            "彼の*笑い*を見た。",
        ],
    },
    // Korean.
    Abroad {
        directions: [
            "미소 지으며",
            "웃으며",
            "한숨을 쉬며",
            "고개를 끄덕이며",
            "잠시 멈추고",
            "속삭이며",
            "기침",
            "목을 가다듬으며",
            "윙크",
            "씩 웃으며",
            "어깨를 으쓱하며",
            "숨을 헐떡인다",
            "킥킥 웃으며",
            "피식 웃는다",
        ],
        sentence: "안녕하세요.",
        emphasis: &[
            "이것은 *중요한* 일입니다.",
            "*중요한* 일입니다.",
            "그가 *웃으며* 말했다.",
        ],
    },
    // Dutch.
    Abroad {
        directions: [
            "glimlacht",
            "lacht",
            "zucht",
            "knikt",
            "pauzeert",
            "fluistert",
            "hoest",
            "schraapt haar keel",
            "knipoogt",
            "grijnst",
            "haalt haar schouders op",
            "hapt naar adem",
            "giechelt",
            "grinnikt",
        ],
        sentence: "Goedemorgen.",
        emphasis: &["Dat is *belangrijk*.", "*heel*", "Hij *lacht* altijd"],
    },
    // Polish.
    Abroad {
        directions: [
            "uśmiecha się",
            "śmieje się",
            "wzdycha",
            "kiwa głową",
            "robi pauzę",
            "szepcze",
            "kaszle",
            "odchrząkuje",
            "puszcza oko",
            "uśmiecha się szeroko",
            "wzrusza ramionami",
            "wstrzymuje oddech",
            "chichocze",
            "śmieje się cicho",
        ],
        sentence: "Dzień dobry.",
        emphasis: &["To jest *ważne*.", "*bardzo*", "On *śmieje się* często"],
    },
    // Portuguese.
    Abroad {
        directions: [
            "sorri",
            "ri",
            "suspira",
            "acena com a cabeça",
            "faz uma pausa",
            "sussurra",
            "tosse",
            "pigarreia",
            "pisca o olho",
            "abre um sorriso",
            "dá de ombros",
            "ofega",
            "dá uma risadinha",
            "ri baixinho",
        ],
        sentence: "Bom dia.",
        emphasis: &["É *importante*.", "*muito*", "Ela *ri* sempre"],
    },
    // Russian.
    Abroad {
        directions: [
            "улыбается",
            "смеётся",
            "вздыхает",
            "кивает",
            "делает паузу",
            "шёпотом",
            "кашляет",
            "откашливается",
            "подмигивает",
            "ухмыляется",
            "пожимает плечами",
            "ахает",
            "хихикает",
            "посмеивается",
        ],
        sentence: "Здравствуйте.",
        emphasis: &["Это *важно*.", "*очень*", "Он *смеётся* часто"],
    },
    // Chinese.
    Abroad {
        directions: [
            "微笑",
            "笑了笑",
            "叹了口气",
            "点了点头",
            "停顿了一下",
            "轻声说",
            "咳嗽",
            "清了清嗓子",
            "眨了眨眼",
            "咧嘴一笑",
            "耸了耸肩",
            "倒吸一口气",
            "咯咯笑",
            "轻轻地笑",
        ],
        sentence: "你好，请进。",
        emphasis: &[
            "这很*重要*，请注意。",
            "*重要* 请注意",
            "*微笑*是一种力量。",
            "他*笑了*很久。",
        ],
    },
];

#[test]
fn what_is_done_abroad_is_not_said() {
    for Abroad {
        directions,
        sentence,
        ..
    } in LANGUAGES
    {
        for direction in directions {
            let mut letters = direction.chars();
            let first = letters.next().unwrap();
            let capital: String = first.to_uppercase().chain(letters).collect();
            for written in [direction.to_owned(), capital, direction.to_uppercase()] {
                for (open, close) in [
                    ("*", "*"),
                    ("(", ")"),
                    ("[", "]"),
                    ("（", "）"),
                    ("(*", "*)"),
                ] {
                    let marked = format!("{open}{written}{close}");
                    assert_eq!(removed(&marked), "", "{marked}");
                    let before = format!("{marked} {sentence}");
                    assert_eq!(removed(&before).trim(), sentence, "{before}");
                    let behind = format!("{sentence} {marked}");
                    assert_eq!(removed(&behind).trim(), sentence, "{behind}");
                }
            }
        }
    }
}

#[test]
fn what_is_emphasized_abroad_is_said() {
    for written in LANGUAGES.iter().flat_map(|language| language.emphasis) {
        assert_eq!(removed(written), *written);
    }
}

#[test]
fn directions_stand_behind_greetings_and_without_spaces() {
    for (written, said) in [
        (
            "Hallo *lächelt* schön, dich zu sehen",
            "Hallo  schön, dich zu sehen",
        ),
        ("नमस्ते *मुस्कुराते हुए* आप कैसे हैं", "नमस्ते  आप कैसे हैं"),
        ("Ach, *seufzt*, ja.", "Ach, , ja."),
        ("*微笑*你好！", "你好！"),
        ("你好！*点头*请进。", "你好！请进。"),
        ("*にっこり*はい、どうぞ。", "はい、どうぞ。"),
        ("そうですね（笑）", "そうですね"),
        ("そうですね（笑）。", "そうですね。"),
    ] {
        assert_eq!(removed(written), said, "{written}");
    }
}

#[test]
fn gestures_in_brackets_are_not_said() {
    for (written, said) in [
        ("(laughs) Well, that is new.", " Well, that is new."),
        ("[Sighs deeply] Fine.", " Fine."),
        ("[laughter]", ""),
        ("(clears her throat) Welcome.", " Welcome."),
        ("Hello (smiles) nice to see you", "Hello  nice to see you"),
        ("That is a good idea (laughs).", "That is a good idea ."),
        ("See you soon! [waves]", "See you soon! "),
        ("(smiles and nods) Yes.", " Yes."),
        ("(*softly whispers*) Come here.", " Come here."),
    ] {
        assert_eq!(removed(written), said, "{written}");
    }
    for written in [
        "It costs 3.50 euros (half price).",
        "Open daily (closed on Monday).",
        "The symptoms (coughs) last for days.",
        "It has one symptom (cough).",
        "(coughs and colds) Take rest.",
        "(smiles are free) Come in.",
        "(looks at the menu) Try the soup.",
        "[smiles](https://example.org) is a shop",
        "sin(waves)",
        "(pause button) Press it.",
        "((laughs",
    ] {
        assert_eq!(removed(written), written);
    }
    let many = "([".repeat(50_000);
    assert_eq!(removed(&many), many);
}
