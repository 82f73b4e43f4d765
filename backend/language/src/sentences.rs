//! Short everyday sentences in every language of the interface: one set that the detector was tuned on, one that it was not,
//! and sentences in other languages, which are none of ours.

/// The detector may be changed for these.
pub(super) const TUNING: [(&str, [&str; 4]); 15] = [
    (
        "en",
        [
            "Where is the station?",
            "I would like a coffee, please.",
            "How much does it cost?",
            "See you tomorrow!",
        ],
    ),
    (
        "es",
        [
            "¿Dónde está el baño?",
            "Quiero un café, por favor.",
            "Hoy hace mucho calor.",
            "Nos vemos mañana.",
        ],
    ),
    (
        "fr",
        [
            "Où est la gare ?",
            "Je voudrais un café.",
            "Il fait beau aujourd'hui.",
            "À demain !",
        ],
    ),
    (
        "de",
        [
            "Wo ist der Bahnhof?",
            "Ich hätte gern einen Kaffee.",
            "Was kostet das?",
            "Bis morgen!",
        ],
    ),
    (
        "it",
        [
            "Dov'è la stazione?",
            "Vorrei un caffè, grazie.",
            "Quanto costa?",
            "Ci vediamo domani.",
        ],
    ),
    (
        "pt",
        [
            "Onde fica a estação?",
            "Queria um café, se faz favor.",
            "Quanto custa isto?",
            "Até amanhã!",
        ],
    ),
    (
        "pl",
        [
            "Gdzie jest dworzec?",
            "Poproszę kawę.",
            "Ile to kosztuje?",
            "Do zobaczenia jutro!",
        ],
    ),
    (
        "ru",
        [
            "Где вокзал?",
            "Я хочу кофе.",
            "Сколько это стоит?",
            "До завтра!",
        ],
    ),
    (
        "nl",
        [
            "Waar is het station?",
            "Ik wil graag een koffie.",
            "Hoeveel kost dat?",
            "Tot morgen!",
        ],
    ),
    (
        "ar",
        [
            "أين المحطة؟",
            "أريد قهوة من فضلك.",
            "كم الثمن؟",
            "إلى الغد!",
        ],
    ),
    (
        "zh-cn",
        [
            "车站在哪里？",
            "我想要一杯咖啡。",
            "这个多少钱？",
            "明天见！",
        ],
    ),
    (
        "ja",
        [
            "駅はどこですか。",
            "コーヒーをください。",
            "これはいくらですか。",
            "また明日。",
        ],
    ),
    (
        "ko",
        [
            "역이 어디예요?",
            "커피 한 잔 주세요.",
            "이거 얼마예요?",
            "내일 봐요!",
        ],
    ),
    (
        "hi",
        [
            "स्टेशन कहाँ है?",
            "मुझे एक कॉफ़ी चाहिए।",
            "यह कितने का है?",
            "कल मिलते हैं!",
        ],
    ),
    (
        "he",
        [
            "איפה התחנה?",
            "אני רוצה קפה, בבקשה.",
            "כמה זה עולה?",
            "נתראה מחר!",
        ],
    ),
];

/// The detector was never changed for these.
pub(super) const HELD_OUT: [(&str, [&str; 4]); 15] = [
    (
        "en",
        [
            "My sister lives in London.",
            "Can you help me with this?",
            "We had a great time last night.",
            "What time does the shop open?",
        ],
    ),
    (
        "es",
        [
            "Mi hermana vive en Madrid.",
            "¿Puedes ayudarme con esto?",
            "Anoche lo pasamos muy bien.",
            "¿A qué hora abre la tienda?",
        ],
    ),
    (
        "fr",
        [
            "Ma sœur habite à Lyon.",
            "Peux-tu m'aider ?",
            "Nous avons bien mangé hier soir.",
            "À quelle heure ouvre le magasin ?",
        ],
    ),
    (
        "de",
        [
            "Meine Schwester wohnt in Köln.",
            "Kannst du mir helfen?",
            "Gestern Abend war es schön.",
            "Wann macht der Laden auf?",
        ],
    ),
    (
        "it",
        [
            "Mia sorella abita a Roma.",
            "Puoi aiutarmi con questo?",
            "Ieri sera siamo stati bene.",
            "A che ora apre il negozio?",
        ],
    ),
    (
        "pt",
        [
            "A minha irmã mora em Lisboa.",
            "Você pode me ajudar?",
            "Ontem à noite foi muito bom.",
            "A que horas abre a loja?",
        ],
    ),
    (
        "pl",
        [
            "Moja siostra mieszka w Krakowie.",
            "Możesz mi pomóc?",
            "Wczoraj było bardzo miło.",
            "O której otwierają sklep?",
        ],
    ),
    (
        "ru",
        [
            "Моя сестра живёт в Москве.",
            "Ты можешь мне помочь?",
            "Вчера было очень весело.",
            "Когда открывается магазин?",
        ],
    ),
    (
        "nl",
        [
            "Mijn zus woont in Utrecht.",
            "Kun je me helpen?",
            "Gisteravond was het gezellig.",
            "Hoe laat gaat de winkel open?",
        ],
    ),
    (
        "ar",
        [
            "أختي تسكن في القاهرة.",
            "هل يمكنك مساعدتي؟",
            "كان أمس يوما جميلا.",
            "متى يفتح المتجر؟",
        ],
    ),
    (
        "zh-cn",
        [
            "我姐姐住在北京。",
            "你能帮我吗？",
            "昨天晚上很开心。",
            "商店几点开门？",
        ],
    ),
    (
        "ja",
        [
            "姉は東京に住んでいます。",
            "手伝ってくれますか。",
            "昨夜は楽しかったです。",
            "お店は何時に開きますか。",
        ],
    ),
    (
        "ko",
        [
            "누나는 서울에 살아요.",
            "저를 도와줄 수 있어요?",
            "어젯밤은 정말 즐거웠어요.",
            "가게는 몇 시에 열어요?",
        ],
    ),
    (
        "hi",
        [
            "मेरी बहन दिल्ली में रहती है।",
            "क्या आप मेरी मदद कर सकते हैं?",
            "कल रात बहुत मज़ा आया।",
            "दुकान कब खुलती है?",
        ],
    ),
    (
        "he",
        [
            "אחותי גרה בתל אביב.",
            "אתה יכול לעזור לי?",
            "אתמול בערב היה נחמד.",
            "מתי החנות נפתחת?",
        ],
    ),
];

/// No languages of the interface: Danish, Swedish, Norwegian, Finnish, Czech, Romanian, Turkish, Hungarian, Vietnamese,
/// Indonesian, Croatian, Catalan, Ukrainian, Bulgarian, Serbian, Persian, Urdu, Marathi, Nepali, Greek.
pub(super) const OTHERS: [&str; 20] = [
    "Hvor er stationen?",
    "Jag skulle vilja ha en kaffe.",
    "Hva koster dette?",
    "Missä on rautatieasema?",
    "Kde je nádraží?",
    "Unde este gara?",
    "Tren istasyonu nerede?",
    "Hol van a pályaudvar?",
    "Nhà ga ở đâu?",
    "Di mana stasiun kereta?",
    "Gdje je kolodvor?",
    "On és l'estació de tren?",
    "Де знаходиться вокзал?",
    "Къде е гарата?",
    "Где је станица?",
    "ایستگاه کجاست؟",
    "اسٹیشن کہاں ہے؟",
    "स्टेशन कुठे आहे?",
    "स्टेशन कहाँ छ?",
    "Πού είναι ο σταθμός;",
];
