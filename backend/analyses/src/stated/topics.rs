//! What people state of themselves, and in which words.

/// Words by which a description asks for a topic.
pub(super) const DESCRIBED: &[&str] = &[
    "name",
    "age",
    "city",
    "town",
    "occupation",
    "profession",
    "job",
    "employer",
    "hometown",
    "nationality",
    "hobby",
    "hobbies",
    "birthday",
    "email",
];

/// Where a value ends: it is followed by another thought.
pub(super) const ENDS: &[&str] = &[
    "and", "but", "because", "so", "since", "although", "while", "when", "where", "which", "who",
    "that", "now", "then", "or", "if", "though", "und", "aber", "weil", "denn", "y", "pero",
    "porque", "et", "mais", "parce",
];

/// What a statement is about, and how people make it.
pub(super) struct Topic {
    /// Words of a field's name or description that ask for it.
    pub(super) asked: &'static [&'static str],
    /// How it is stated: what stands in front of the value.
    pub(super) stated: &'static [&'static str],
    pub(super) shape: Shape,
}

/// What a value looks like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Names: words with a capital letter, three at most, or the first word.
    Name,
    /// A number of years.
    Age,
    /// Words up to the next thought.
    Words,
    /// The same; what is said later stands beside what was said before.
    List,
    /// An address of e-mail, wherever it stands.
    Email,
}

/// What people state of themselves.
pub(super) const TOPICS: &[Topic] = &[
    Topic {
        asked: &[
            "name",
            "firstname",
            "lastname",
            "surname",
            "username",
            "nombre",
            "nom",
        ],
        stated: &[
            "my name is",
            "my name's",
            "i am called",
            "i'm called",
            "ich heiße",
            "mein name ist",
            "me llamo",
            "mi nombre es",
            "je m'appelle",
            "mon nom est",
            "mi chiamo",
            "il mio nome è",
        ],
        shape: Shape::Name,
    },
    Topic {
        asked: &["age", "old", "years", "alter", "edad"],
        stated: &["i am", "i'm", "my age is", "ich bin", "tengo", "j'ai", "ho"],
        shape: Shape::Age,
    },
    Topic {
        asked: &[
            "city",
            "location",
            "place",
            "town",
            "residence",
            "lives",
            "live",
            "home",
            "country",
            "region",
            "wohnort",
            "ciudad",
            "ville",
        ],
        stated: &[
            "i live in",
            "i'm living in",
            "i am living in",
            "i'm based in",
            "i am based in",
            "i moved to",
            "i have moved to",
            "i've moved to",
            "my home is in",
            "ich wohne in",
            "ich lebe in",
            "vivo en",
            "j'habite à",
            "abito a",
        ],
        shape: Shape::Words,
    },
    Topic {
        asked: &[
            "origin",
            "hometown",
            "birthplace",
            "nationality",
            "from",
            "herkunft",
        ],
        stated: &[
            "i'm from",
            "i am from",
            "i come from",
            "i was born in",
            "ich komme aus",
            "soy de",
            "je viens de",
            "vengo da",
        ],
        shape: Shape::Words,
    },
    Topic {
        asked: &[
            "job",
            "occupation",
            "profession",
            "work",
            "role",
            "career",
            "beruf",
            "profesión",
        ],
        stated: &[
            "i work as a",
            "i work as an",
            "i work as",
            "i'm working as a",
            "i'm working as an",
            "my job is",
            "my profession is",
            "ich arbeite als",
            "trabajo como",
            "je travaille comme",
        ],
        shape: Shape::Words,
    },
    Topic {
        asked: &[
            "company",
            "employer",
            "workplace",
            "organization",
            "firma",
            "empresa",
        ],
        stated: &[
            "i work at",
            "i work for",
            "i'm working at",
            "i'm working for",
            "ich arbeite bei",
            "je travaille chez",
        ],
        shape: Shape::Words,
    },
    Topic {
        asked: &[
            "hobby",
            "hobbies",
            "interest",
            "interests",
            "likes",
            "like",
            "passion",
            "passions",
            "hobbys",
        ],
        stated: &[
            "i like",
            "i love",
            "i enjoy",
            "i really like",
            "i'm interested in",
            "i am interested in",
            "ich mag",
            "ich liebe",
            "me gusta",
            "me gustan",
            "j'aime",
            "mi piace",
        ],
        shape: Shape::List,
    },
    Topic {
        asked: &["dislikes", "dislike", "aversions"],
        stated: &[
            "i don't like",
            "i do not like",
            "i dislike",
            "i hate",
            "ich mag keine",
            "no me gusta",
        ],
        shape: Shape::List,
    },
    Topic {
        asked: &["languages", "speaks", "spoken"],
        stated: &["i speak", "ich spreche", "hablo", "je parle"],
        shape: Shape::Words,
    },
    Topic {
        asked: &["birthday", "birthdate", "born", "geburtstag"],
        stated: &[
            "my birthday is on",
            "my birthday is",
            "i was born on",
            "i was born in",
        ],
        shape: Shape::Words,
    },
    Topic {
        asked: &["email", "mail", "e-mail"],
        stated: &[],
        shape: Shape::Email,
    },
];
