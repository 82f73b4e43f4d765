//! Stage directions in the languages of the interface other than English.
//!
//! The words here tell them from emphasis: a small letter at the beginning does not, since facts have one, too (`*sonntags geschlossen*`).

use std::{collections::HashSet, sync::LazyLock};

/// What people do in directions, by language: in the third person, in the participle, or as what is said for it. They are in small letters;
/// Russian has `е` for `ё`, Arabic no vowel marks, and Hindi no dots below letters.
const ACTIONS: [(&str, &str); 12] = [
    (
        "ar",
        "يبتسم, تبتسم, مبتسما, مبتسمة, يضحك, تضحك, ضاحكا, ضاحكة, يتنهد, تتنهد, متنهدا, متنهدة, يومئ, تومئ, يومئ برأسه, \
        تومئ برأسها, يهز رأسه, تهز رأسها, يتوقف قليلا, تتوقف قليلا, يتوقف للحظة, تتوقف للحظة, يهمس, تهمس, هامسا, \
        هامسة, يسعل, تسعل, يتنحنح, تتنحنح, يغمز, تغمز, غامزا, غامزة, يبتسم ابتسامة عريضة, يهز كتفيه, تهز كتفيها, يشهق, \
        تشهق, يقهقه, تقهقه, يضحك بخفوت, تضحك بخفوت",
    ),
    (
        "de",
        "lächelt, lächelnd, lacht, lachend, seufzt, seufzend, nickt, nickend, pausiert, hält inne, macht eine pause, \
        flüstert, flüsternd, hustet, hustend, räuspert sich, sich räuspernd, zwinkert, zwinkernd, grinst, grinsend, \
        zuckt mit den schultern, zuckt mit den achseln, zuckt die schultern, zuckt die achseln, schulterzuckend, \
        achselzuckend, keucht, keuchend, schnappt nach luft, kichert, kichernd, schmunzelt, schmunzelnd, gluckst, \
        winkt, winkend",
    ),
    (
        "es",
        "sonríe, sonriendo, sonriente, ríe, se ríe, riendo, riéndose, suspira, suspirando, asiente, asintiendo, hace \
        una pausa, haciendo una pausa, susurra, susurrando, tose, tosiendo, carraspea, carraspeando, se aclara la \
        garganta, guiña un ojo, guiña el ojo, guiñando un ojo, sonríe ampliamente, se encoge de hombros, encogiéndose \
        de hombros, jadea, jadeando, suelta una risita, ríe entre dientes, se ríe entre dientes, suelta una carcajada, \
        saluda con la mano",
    ),
    (
        "fr",
        "sourit, souriant, en souriant, rit, riant, en riant, soupire, soupirant, en soupirant, hoche la tête, hochant \
        la tête, fait une pause, marque une pause, chuchote, chuchotant, en chuchotant, murmure, murmurant, tousse, \
        toussant, toussote, se racle la gorge, s'éclaircit la gorge, s'éclaircit la voix, fait un clin d'œil, cligne \
        de l'œil, sourit largement, hausse les épaules, haussant les épaules, halète, retient son souffle, pousse un \
        cri de surprise, glousse, gloussant, ricane, ricanant, pouffe, pouffe de rire, rit doucement, petit rire",
    ),
    (
        "he",
        "מחייך, מחייכת, בחיוך, צוחק, צוחקת, נאנח, נאנחת, באנחה, מהנהן, מהנהנת, עוצר לרגע, עוצרת לרגע, משתהה, לוחש, \
        לוחשת, בלחישה, משתעל, משתעלת, מכחכח, מכחכחת, מכחכח בגרונו, מכחכחת בגרונה, קורץ, קורצת, מחייך חיוך רחב, מחייכת \
        חיוך רחב, מושך בכתפיו, מושכת בכתפיה, מתנשף, מתנשפת, מצחקק, מצחקקת, מגחך, מגחכת",
    ),
    (
        "hi",
        "मुस्कुराता है, मुस्कुराती है, मुस्कुराते हुए, मुस्कुराकर, मुस्कराता है, मुस्कराती है, मुस्कराते हुए, हँसता है, \
        हँसती है, हँसते हुए, हंसता है, हंसती है, हंसते हुए, हँसकर, आह भरता है, आह भरती है, आह भरते हुए, सिर हिलाता है, \
        सिर हिलाती है, सिर हिलाते हुए, रुकता है, रुकती है, रुककर, फुसफुसाता है, फुसफुसाती है, फुसफुसाते हुए, खाँसता \
        है, खाँसती है, खांसता है, खांसती है, खाँसते हुए, गला साफ करता है, गला साफ करती है, गला साफ करते हुए, आँख मारता \
        है, आँख मारती है, आंख मारता है, आंख मारती है, आँख मारते हुए, खीसें निपोरता है, खीसें निपोरती है, कंधे उचकाता \
        है, कंधे उचकाती है, कंधे उचकाते हुए, हाँफता है, हाँफती है, हांफता है, हांफती है, खिलखिलाता है, खिलखिलाती है, \
        खिलखिलाते हुए, मंद हँसी हँसता है, मंद हँसी हँसती है, धीरे से हँसता है, धीरे से हँसती है",
    ),
    (
        "it",
        "sorride, sorridendo, sorridente, ride, ridendo, sospira, sospirando, annuisce, annuendo, fa una pausa, facendo \
        una pausa, sussurra, sussurrando, tossisce, tossendo, si schiarisce la gola, si schiarisce la voce, \
        schiarendosi la voce, fa l'occhiolino, strizza l'occhio, facendo l'occhiolino, fa un gran sorriso, sogghigna, \
        sogghignando, alza le spalle, fa spallucce, alzando le spalle, ansima, ansimando, trattiene il respiro, \
        ridacchia, ridacchiando, ride sotto i baffi, saluta con la mano",
    ),
    (
        "ko",
        "미소, 미소를 짓는다, 미소 짓는다, 미소를 지으며, 미소 지으며, 미소를 짓다, 웃음, 웃는다, 웃으며, 웃다, 한숨, 한숨을 쉰다, 한숨을 쉬며, 한숨을 쉬다, 고개를 끄덕인다, 고개를 \
        끄덕이며, 고개를 끄덕이다, 끄덕인다, 끄덕이며, 끄덕, 잠시 멈춘다, 잠시 멈추며, 잠시 멈추고, 잠시 침묵, 속삭인다, 속삭이며, 속삭이다, 기침, 기침한다, 기침하며, 기침을 한다, 헛기침, \
        헛기침을 한다, 헛기침하며, 목을 가다듬는다, 목을 가다듬으며, 윙크, 윙크한다, 윙크하며, 윙크를 한다, 씩 웃는다, 씩 웃으며, 싱긋 웃는다, 싱긋 웃으며, 어깨를 으쓱한다, 어깨를 으쓱하며, \
        으쓱, 숨을 들이켠다, 숨을 헐떡인다, 헉, 킥킥 웃는다, 킥킥 웃으며, 낄낄 웃는다, 킥킥, 껄껄 웃는다, 껄껄 웃으며, 피식 웃는다, 피식 웃으며",
    ),
    (
        "nl",
        "glimlacht, glimlachend, lacht, lachend, zucht, zuchtend, knikt, knikkend, pauzeert, pauzerend, valt even stil, \
        fluistert, fluisterend, hoest, hoestend, kucht, kuchend, schraapt zijn keel, schraapt haar keel, schraapt de \
        keel, knipoogt, knipogend, geeft een knipoog, grijnst, grijnzend, haalt zijn schouders op, haalt haar \
        schouders op, haalt de schouders op, schouderophalend, hapt naar adem, hijgt, hijgend, giechelt, giechelend, \
        grinnikt, grinnikend, gniffelt, gniffelend, zwaait, zwaaiend",
    ),
    (
        "pl",
        "uśmiecha się, uśmiechając się, uśmiechnięty, uśmiechnięta, śmieje się, śmiejąc się, wzdycha, wzdychając, kiwa \
        głową, kiwając głową, przytakuje, robi pauzę, robiąc pauzę, milknie na chwilę, szepcze, szepcząc, szeptem, \
        kaszle, kaszląc, odkasłuje, odchrząkuje, odchrząkując, chrząka, mruga, mruga okiem, puszcza oko, puszczając \
        oko, uśmiecha się szeroko, szczerzy się, szczerzy zęby, wzrusza ramionami, wzruszając ramionami, wstrzymuje \
        oddech, łapie oddech, sapie, sapiąc, chichocze, chichocząc, parska śmiechem, śmieje się cicho, macha, macha \
        ręką",
    ),
    (
        "pt",
        "sorri, sorrindo, sorridente, ri, rindo, suspira, suspirando, acena, acena com a cabeça, acenando com a cabeça, \
        assente, assentindo, faz uma pausa, fazendo uma pausa, sussurra, sussurrando, tosse, tossindo, pigarreia, \
        pigarreando, limpa a garganta, limpando a garganta, pisca, pisca o olho, dá uma piscadela, piscando, sorri \
        largamente, abre um sorriso, dá de ombros, encolhe os ombros, dando de ombros, encolhendo os ombros, ofega, \
        ofegando, ofegante, prende a respiração, dá uma risadinha, dando uma risadinha, ri baixinho, rindo baixinho",
    ),
    (
        "ru",
        "улыбается, улыбаясь, улыбнулся, улыбнулась, с улыбкой, смеется, смеясь, засмеялся, засмеялась, вздыхает, \
        вздыхая, вздохнул, вздохнула, со вздохом, кивает, кивая, кивнул, кивнула, делает паузу, сделав паузу, \
        замолкает, шепчет, прошептал, прошептала, шепотом, кашляет, кашляя, откашливается, откашлявшись, прочищает \
        горло, подмигивает, подмигивая, подмигнул, подмигнула, ухмыляется, ухмыляясь, ухмыльнулся, ухмыльнулась, \
        широко улыбается, пожимает плечами, пожимая плечами, пожал плечами, пожала плечами, ахает, ахнул, ахнула, \
        задыхается, хихикает, хихикая, посмеивается, посмеиваясь, усмехается, усмехаясь, усмехнулся, усмехнулась, \
        машет рукой",
    ),
];

/// What people do in the languages that are written without spaces: all of a direction, but for how it is done.
const UNSPACED: [(&str, &str); 2] = [
    (
        "ja",
        "微笑む, 微笑み, 微笑んで, 微笑みながら, ほほえむ, ほほえみながら, にっこり, にこにこ, 笑顔で, 笑う, 笑い, 笑って, 笑いながら, ため息, ため息をつく, ため息をついて, ため息をつきながら, \
        溜息, 溜め息をつく, うなずく, うなずいて, うなずきながら, 頷く, 頷いて, 頷きながら, 間を置く, 間を置いて, 少し間を置いて, 沈黙, 一呼吸置いて, ささやく, ささやいて, ささやくように, 囁く, \
        囁いて, 囁きながら, 小声で, 咳, 咳をする, 咳き込む, 咳き込みながら, 咳払い, 咳払いをする, 咳払いして, 咳払いをして, ウインク, ウィンク, ウインクする, ウィンクする, ウインクして, \
        ウィンクして, ニヤリ, にやりと笑う, ニヤリと笑う, にやりと笑って, ニヤリと笑って, ニヤニヤ, 肩をすくめる, 肩をすくめて, 肩をすくめながら, 息をのむ, 息を呑む, 息をのんで, 息を呑んで, \
        はっとする, くすくす笑う, クスクス笑う, くすくす笑って, クスクス, くすくす, くすっと笑う, クスッと笑う, ふふっと笑う, 含み笑い, 手を振る, 手を振って",
    ),
    (
        "zh",
        "微笑, 微笑着, 微笑了一下, 微微一笑, 笑, 笑了, 笑了笑, 笑着, 笑着说, 大笑, 哈哈大笑, 叹气, 叹息, 叹了口气, 叹了一口气, 點頭, 点头, 点了点头, 點了點頭, 停顿, 停頓, 停顿片刻, \
        停顿了一下, 停頓了一下, 沉默片刻, 低语, 低語, 耳语, 耳語, 低声说, 低聲說, 小声说, 小聲說, 轻声说, 輕聲說, 咳嗽, 咳嗽一声, 咳嗽了一声, 咳嗽了一聲, 清嗓子, 清清嗓子, 清了清嗓子, \
        眨眼, 眨眨眼, 眨了眨眼, 使了个眼色, 咧嘴笑, 咧嘴一笑, 耸肩, 聳肩, 耸耸肩, 聳聳肩, 耸了耸肩, 聳了聳肩, 倒吸一口气, 倒吸一口氣, 倒吸一口凉气, 倒抽一口气, 喘气, 喘着气, 咯咯笑, \
        咯咯地笑, 咯咯笑着, 轻笑, 輕笑, 轻笑一声, 轻声笑, 轻笑着, 笑出声, 嘆氣, 嘆了口氣, 笑著, 微笑著, 笑著說, 挥手, 揮手, 挥了挥手",
    ),
];

/// How they do it, before the action, in languages without spaces.
const UNSPACED_MANNERS: &str = "轻轻地, 轻轻, 輕輕, 微微, 缓缓, 温柔地, 温和地, 开心地, 高兴地, 无奈地, 優しく, 静かに, 軽く, 小さく, 深く, 楽しそうに, 嬉しそうに, そっと";

/// What goes on with the word before it, in languages without spaces (`*微笑*是`, `*笑い*は`), and what begins like it.
const PARTICLES: &str = "是, 的, 了, 着, 地, 得, 也, 就, 和, は, が, を, の";
const NO_PARTICLES: &str = "是的, 是啊, 是呀, 就这样, はい, はじめ, はあ, がんば";

/// Greetings and interjections that are no adverbs: behind those a verb is one of the sentence ("Nun *lacht* er").
const GREETINGS: &str = "ach, guten, abend, moin, na, naja, servus, tschüss, danke, bueno, buenas, buenos, días, tardes, noches, \
    gracias, pues, eh, salut, merci, bonsoir, bon, coucou, buongiorno, buonasera, salve, grazie, allora, beh, \
    mah, olá, oi, bom, boa, dia, tarde, noite, obrigado, obrigada, cześć, dzień, dobry, dzięki, hej, привет, \
    здравствуйте, здравствуй, спасибо, ну, ой, ах, эй, hoi, dag, goedemorgen, bedankt, مرحبا, أهلا, شكرا, حسنا, آه, \
    你好, 您好, 嗨, 嘿, 谢谢, 嗯, 啊, こんにちは, ありがとう, やあ, ええと, あの, ああ, 안녕, 안녕하세요, 감사합니다, 음, 아, नमस्ते, नमस्कार, धन्यवाद, अच्छा, \
    अरे, שלום, היי, תודה, אה, טוב, tag, مرحبًا, أهلًا, حسنًا";

/// Words that are said alone, and emphasized.
const EMPHASIZED: &str = "wichtig, bitte, niemals, vielleicht, natürlich, sehr, wirklich, heute, morgen, jetzt, importante, importantes, \
    muy, por favor, claro, hoy, mañana, ahora, gratis, important, très, vraiment, aujourd'hui, demain, maintenant, \
    gratuit, s'il vous plaît, molto, davvero, oggi, domani, adesso, gratuito, per favore, muito, realmente, hoje, \
    amanhã, agora, grátis, belangrijk, heel, echt, vandaag, nu, alstublieft, nooit, altijd, ważne, bardzo, naprawdę, \
    dziś, jutro, teraz, proszę, nigdy, zawsze, tak, nie, важно, очень, правда, сегодня, завтра, сейчас, пожалуйста, \
    никогда, всегда, да, нет";

/// The most words of an action.
const MAX_WORDS: usize = 5;
/// A word that is as short is all of its direction, in bytes: many are also words of other languages.
const SHORT_BYTES: usize = 4;

/// The dot below letters of Devanagari, and one with it.
const DOT: char = '\u{93c}';
const DOTTED_PHA: char = '\u{95e}';

type Words = LazyLock<HashSet<&'static str>>;

static SPACED_ACTIONS: Words = LazyLock::new(|| of_languages(&ACTIONS));
static UNSPACED_ACTIONS: Words = LazyLock::new(|| of_languages(&UNSPACED));
static GREETED: Words = LazyLock::new(|| GREETINGS.split(", ").collect());
static STRESSED: Words = LazyLock::new(|| EMPHASIZED.split(", ").collect());

fn of_languages(table: &[(&str, &'static str)]) -> HashSet<&'static str> {
    let words = table.iter().flat_map(|(_, words)| words.split(", "));
    words.collect()
}

/// Returns true if a text begins with what people do in a direction.
pub(super) fn is_action(text: &str) -> bool {
    let text = plain(text);
    let spaces = text.match_indices([' ', ',']).map(|(at, _)| at);
    let mut ends = spaces.chain([text.len()]).take(MAX_WORDS);
    let begins_with_action = ends.any(|end| {
        let is_long = end > SHORT_BYTES || end == text.len();
        is_long && SPACED_ACTIONS.contains(&text[..end])
    });
    begins_with_action || is_unspaced_action(&text)
}

/// A direction as the tables have it.
fn plain(text: &str) -> String {
    let is_vowel_mark = |c: char| matches!(c, '\u{64b}'..='\u{652}');
    let text = text.trim_matches(|c: char| c.is_whitespace() || is_punctuation(c));
    let letters = text.chars().flat_map(char::to_lowercase);
    let letters = letters.filter(|c| !is_vowel_mark(*c) && *c != DOT);
    letters
        .map(|c| match c {
            'ё' => 'е',
            '’' => '\'',
            DOTTED_PHA => 'फ',
            _ => c,
        })
        .collect()
}

fn is_unspaced_action(text: &str) -> bool {
    let manners = UNSPACED_MANNERS.split(", ");
    let without_manner = manners.filter_map(|manner| text.strip_prefix(manner));
    let mut texts = without_manner.chain([text]);
    texts.any(|text| UNSPACED_ACTIONS.contains(text))
}

/// Returns true for a greeting or an interjection, in small letters.
pub(super) fn is_greeting(word: &str) -> bool {
    GREETED.contains(word)
}

/// Returns true for a word that is emphasized alone, in small letters.
pub(super) fn is_emphasized(word: &str) -> bool {
    STRESSED.contains(word)
}

/// Returns true if a sentence goes on with a text behind a word, in a language without spaces.
pub(super) fn goes_on(follows: &str) -> bool {
    let begins_with = |words: &str| words.split(", ").any(|it| follows.starts_with(it));
    begins_with(PARTICLES) && !begins_with(NO_PARTICLES)
}

/// Returns true for the letters of languages without spaces: kana and Chinese characters.
pub(super) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
}

fn is_punctuation(c: char) -> bool {
    c.is_ascii_punctuation() || "…。！？、，،؟।～".contains(c)
}
