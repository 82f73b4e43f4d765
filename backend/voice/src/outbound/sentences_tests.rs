//! The table of what is a sentence.

use proptest::prelude::*;

use super::*;

fn collect(pieces: impl IntoIterator<Item = impl AsRef<str>>) -> Vec<String> {
    let mut splitter = Splitter::default();
    let mut sentences = Vec::new();
    for piece in pieces {
        splitter.push(piece.as_ref());
        sentences.extend(std::iter::from_fn(|| splitter.next_sentence()));
    }
    sentences.extend(std::iter::from_fn(|| splitter.next_at_end()));
    sentences
}

fn split(text: &str) -> Vec<String> {
    collect([text])
        .into_iter()
        .map(|sentence| sentence.trim().to_owned())
        .collect()
}

#[test]
fn sentences_of_many_kinds() {
    let cases: &[(&str, &[&str])] = &[
        (
            "Hello. How are you? Fine!",
            &["Hello.", "How are you?", "Fine!"],
        ),
        (
            "I met Mr. Smith and Dr. Jones. They left.",
            &["I met Mr. Smith and Dr. Jones.", "They left."],
        ),
        (
            "Take fruit, e.g. Apples. Or i.e. this.",
            &["Take fruit, e.g. Apples.", "Or i.e. this."],
        ),
        ("Pi is 3.14 or so. Yes.", &["Pi is 3.14 or so.", "Yes."]),
        (
            "Version 2.0.1 is at example.com. Get it.",
            &["Version 2.0.1 is at example.com.", "Get it."],
        ),
        ("It costs $3.50. Cheap.", &["It costs $3.50.", "Cheap."]),
        ("It was 1999. We met.", &["It was 1999.", "We met."]),
        (
            "Well... maybe. Wait... No.",
            &["Well... maybe.", "Wait...", "No."],
        ),
        ("Well… maybe. Wait… No.", &["Well… maybe.", "Wait…", "No."]),
        (
            "He said \"Stop.\" Then he left.",
            &["He said \"Stop.\"", "Then he left."],
        ),
        ("(This is one.) And two.", &["(This is one.)", "And two."]),
        ("“Really?!” Yes.", &["“Really?!”", "Yes."]),
        (
            "J. R. Smith came. So did I. Good.",
            &["J. R. Smith came.", "So did I.", "Good."],
        ),
        ("No. I mean it.", &["No.", "I mean it."]),
        (
            "See no. 5 and fig. 3. Done.",
            &["See no. 5 and fig. 3.", "Done."],
        ),
        (
            "At 5 p.m. we go. At 6 p.m. They come.",
            &["At 5 p.m. we go.", "At 6 p.m.", "They come."],
        ),
        (
            "Apples, pears, etc. are fruit. Etc. Bye.",
            &["Apples, pears, etc. are fruit.", "Etc.", "Bye."],
        ),
        (
            "Open until 5 p.m. *except* Mondays. At 6 p.m. *Then* we go.",
            &[
                "Open until 5 p.m. *except* Mondays.",
                "At 6 p.m.",
                "*Then* we go.",
            ],
        ),
        (
            "The U.N. said so. He lives in D.C. They do not.",
            &["The U.N. said so.", "He lives in D.C.", "They do not."],
        ),
        (
            "I SAID DON’T. He isn't. WE CAN'T. Stop.",
            &["I SAID DON’T.", "He isn't.", "WE CAN'T.", "Stop."],
        ),
        (
            "'J. Moss' wrote it, see l'art. 5. Good.",
            &["'J. Moss' wrote it, see l'art. 5.", "Good."],
        ),
        (
            "Les œuvres d'A. Dumas. Vive l'E. Rossi. Bon.",
            &["Les œuvres d'A. Dumas.", "Vive l'E. Rossi.", "Bon."],
        ),
        (
            "Hmm... *smiles* Let me look that up.",
            &["Hmm...", "*smiles* Let me look that up."],
        ),
        ("Das ist z.B. Obst. Gut.", &["Das ist z.B. Obst.", "Gut."]),
        (
            "1. Open it.\n2. Close it.\n",
            &["1. Open it.", "2. Close it."],
        ),
        ("- one\n- two\n\n- three", &["- one", "- two", "- three"]),
        ("A heading\nAnd text.", &["A heading", "And text."]),
        (
            "你好。今天好吗？很好！",
            &["你好。", "今天好吗？", "很好！"],
        ),
        (
            "彼は「はい。」と言った。そう。",
            &["彼は「はい。」", "と言った。", "そう。"],
        ),
        ("यह है। वह है।", &["यह है।", "वह है।"]),
        ("यह श्लोक है॥ वह है।", &["यह श्लोक है॥", "वह है।"]),
        ("هل أنت بخير؟ نعم.", &["هل أنت بخير؟", "نعم."]),
        ("No end", &["No end"]),
        ("**Bold.** Next.", &["**Bold.**", "Next."]),
        ("...", &[]),
        ("*** --- ***\n", &[]),
        ("", &[]),
        ("   \n\n ", &[]),
        ("One.  \n\n  Two.", &["One.", "Two."]),
    ];
    for (text, expected) in cases {
        assert_eq!(split(text), *expected, "{text}");
    }
}

#[test]
fn a_sentence_is_given_out_when_it_is_complete() {
    let mut splitter = Splitter::default();
    let mut after = |piece: &str| {
        splitter.push(piece);
        splitter.next_sentence()
    };
    assert_eq!(after("Hello"), None);
    assert_eq!(after("."), None, "a decimal or a quote may follow");
    assert_eq!(after(" "), Some("Hello.".to_owned()));
    assert_eq!(after("So much for 3."), None);
    assert_eq!(after("5"), None);
    assert_eq!(after(".\n"), Some(" So much for 3.5.".to_owned()));
}

#[test]
fn the_first_sentence_may_end_at_a_clause() {
    let long = "When all the birds have gone to the south, the lake is very quiet, and the nights are long.";
    assert_eq!(
        split(long),
        [
            "When all the birds have gone to the south,",
            "the lake is very quiet, and the nights are long.",
        ]
    );
    assert_eq!(split("Well, yes, that is so."), ["Well, yes, that is so."]);
    let number = "There were about as many people there as 10,000 or so.";
    assert_eq!(split(number), [number]);
    let second = "Yes. When all the birds have gone to the south, the lake is very quiet.";
    assert_eq!(
        split(second).len(),
        2,
        "only the first sentence is in a hurry"
    );
    assert_eq!(
        split("今天天气非常好我们可以一起去公园散步，然后回家吃饭。").len(),
        2
    );
}

#[test]
fn whoever_waited_gets_a_clause() {
    let mut splitter = Splitter::default();
    splitter.push("Well, if it rains, we stay");
    assert_eq!(splitter.next_sentence(), None);
    splitter.hurry();
    assert_eq!(
        splitter.next_sentence().as_deref(),
        Some("Well, if it rains,"),
        "a word alone is too little"
    );
    splitter.push(" in the house, I think");
    assert_eq!(splitter.next_sentence(), None, "that was one clause");
    splitter.hurry();
    assert_eq!(
        splitter.next_sentence().as_deref(),
        Some(" we stay in the house,")
    );
}

#[test]
fn whoever_waited_gets_a_clause_in_every_script() {
    for (clause, rest) in [
        ("إذا هطل المطر اليوم،", " فسنبقى في البيت"),
        ("إذا هطل المطر اليوم؛", " فسنبقى في البيت"),
        ("אם ירד גשם היום,", " נישאר בבית"),
        ("अगर आज बारिश हुई,", " तो हम घर पर रहेंगे"),
        ("비가 오면 우리는 모두,", " 집에 있을 거예요"),
        ("今天如果下雨，", "我们就待在家里"),
        ("今日雨が降れば、", "家にいます"),
        ("ｷｮｳｱﾒｶﾞﾌﾚﾊﾞ､", "ｲｴﾆｲﾏｽ"),
    ] {
        let mut splitter = Splitter::default();
        splitter.push(clause);
        splitter.push(rest);
        assert_eq!(splitter.next_sentence(), None, "{clause}");
        splitter.hurry();
        assert_eq!(splitter.next_sentence().as_deref(), Some(clause));
    }
}

#[test]
fn whoever_waited_gets_a_clause_that_nothing_follows_yet() {
    let hurried = |text: &str| {
        let mut splitter = Splitter::default();
        splitter.push(text);
        assert_eq!(splitter.next_sentence(), None, "{text}");
        splitter.hurry();
        splitter.next_sentence()
    };
    for text in [
        "Well, if it rains,",
        "إذا هطل المطر اليوم،",
        "今天如果下雨，",
        "This is the list:",
    ] {
        assert_eq!(hurried(text).as_deref(), Some(text));
    }
    assert_eq!(hurried("There were about 10,"), None, "a number may go on");
    assert_eq!(hurried("Well,"), None, "a word alone is too little");
    // A first sentence that nobody has waited for stays with what follows.
    let long = "When all the birds have gone to the south,";
    assert_eq!(hurried(long).as_deref(), Some(long));
}

#[test]
fn stage_directions_stay_whole() {
    assert_eq!(
        split("Hello! *smiles. Then waves.* How are you? *sits down*"),
        [
            "Hello!",
            "*smiles. Then waves.* How are you?",
            "*sits down*"
        ]
    );
    // Marks that open nothing.
    assert_eq!(split("2 * 3 is 6. Yes."), ["2 * 3 is 6.", "Yes."]);
    assert_eq!(
        split("*a list\nof two. Yes."),
        ["*a list", "of two.", "Yes."]
    );
    let open = format!("*{}", "It goes on. ".repeat(30));
    assert_eq!(split(&open).len(), 30);
}

#[test]
fn full_stops_of_abbreviations_are_known() {
    for text in [
        "until 5 p.m.",
        "pears, etc.",
        "(Dr.",
        "in the U.N.",
        "by J.",
    ] {
        assert!(ends_with_abbreviation(text), "{text}");
    }
    for text in ["I am here.", "So do I.", "No.", "Wait...", "at 5", ".", ""] {
        assert!(!ends_with_abbreviation(text), "{text}");
    }
}

#[test]
fn long_sentences_are_cut_between_words() {
    let words = "word ".repeat(200);
    let parts = split(&words);
    assert!(parts.len() >= 4);
    for part in &parts {
        assert!(
            part.chars().count() <= MAX_CHARACTERS && part.ends_with("word"),
            "{part}"
        );
    }
    let clauses = format!("Yes. {}, {}", "word ".repeat(40).trim(), "more ".repeat(60));
    assert!(
        split(&clauses)[1].ends_with("word,"),
        "a clause is the better place"
    );
    assert!(
        split(&"x".repeat(1000))
            .iter()
            .all(|part| part.len() <= MAX_CHARACTERS)
    );
}

proptest! {
    /// The text comes out whole, and how it was cut into pieces makes no difference.
    #[test]
    fn nothing_is_lost_and_pieces_do_not_matter(
        text in concat!(
            "([A-Za-z]{1,7}|[0-9.]{1,4}|Mr\\.|e\\.g\\.|「はい。」|“Oh!”|[*]smiles[*])",
            "([ ,;:.!?\n—]{1,3}([A-Za-z]{1,9}|[0-9]{1,3}|etc\\.|世界|[*]{1,2}[a-z]{1,9}|[a-z][*])){0,60}",
        ),
        sizes in prop::collection::vec(1_usize..9, 1..40),
    ) {
        let whole = collect([text.as_str()]);
        let joined = whole.concat();
        prop_assert!(text.starts_with(&joined));
        prop_assert!(!text[joined.len()..].contains(char::is_alphanumeric));
        for sentence in &whole {
            prop_assert!(sentence.contains(char::is_alphanumeric));
            prop_assert!(sentence.trim().chars().count() <= MAX_CHARACTERS);
        }
        let characters: Vec<char> = text.chars().collect();
        let mut rest = characters.as_slice();
        let mut pieces = Vec::new();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, left) = rest.split_at((*size).min(rest.len()));
            pieces.push(piece.iter().collect::<String>());
            rest = left;
        }
        prop_assert_eq!(collect(pieces), whole);
    }
}
