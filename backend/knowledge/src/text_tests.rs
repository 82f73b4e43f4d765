//! Sentences and terms of texts.

use super::*;

#[test]
fn sentences_end_where_they_end() {
    let text = "# Visit\n\nDr. Moss opens at 9.30 a day. Is it far? No!\n- By bus, e.g. line 4.\n営業は九時です。休みは月曜です。";
    assert_eq!(
        sentences(text),
        [
            "Visit",
            "Dr. Moss opens at 9.30 a day.",
            "Is it far?",
            "No!",
            "By bus, e.g. line 4.",
            "営業は九時です。",
            "休みは月曜です。"
        ]
    );
}

#[test]
fn options_of_commands_keep_their_dashes() {
    for (line, said) in [
        ("-g, --grit NUMBER", "-g, --grit NUMBER"),
        ("- -g, --grit NUMBER", "-g, --grit NUMBER"),
        ("* --grit sets it", "--grit sets it"),
        ("--- Grit", "Grit"),
        ("-Grit", "Grit"),
        ("-a grit", "a grit"),
        ("- a, b", "a, b"),
        ("-- Grit", "Grit"),
    ] {
        assert_eq!(sentences(line), [said]);
    }
}

#[test]
fn numbers_keep_their_sign() {
    for (line, said) in [
        ("#1 in Germany", "#1 in Germany"),
        ("- #1 in Germany", "#1 in Germany"),
        ("# 1 in Germany", "1 in Germany"),
        ("#News", "News"),
    ] {
        assert_eq!(sentences(line), [said]);
    }
}

#[test]
fn halves_of_the_day_end_a_sentence_only_before_another() {
    let text = "We open at 9 a.m. and close at 5 p.m. on Saturdays. It is 7 P.M. Monday to Friday at 6 a.m. The rest is free. \
                Come at 8 p.m.";
    assert_eq!(
        sentences(text),
        [
            "We open at 9 a.m. and close at 5 p.m. on Saturdays.",
            "It is 7 P.M. Monday to Friday at 6 a.m.",
            "The rest is free.",
            "Come at 8 p.m."
        ]
    );
    let text = "We close at 5 p.m. Friday is a holiday. Come until 6 p.m. Friday, or on Monday until 7 p.m. Sundays we rest.";
    assert_eq!(
        sentences(text),
        [
            "We close at 5 p.m.",
            "Friday is a holiday.",
            "Come until 6 p.m. Friday, or on Monday until 7 p.m.",
            "Sundays we rest."
        ]
    );
}

#[test]
fn letters_with_full_stops_end_a_sentence_only_before_another() {
    let text = "The U.S. Army came. We ship to the U.S. and Canada. It is in the U.S. The rest is not. Ask “Dr. Moss” or 'J. Hill' \
                (\"St. Mary\"). We are in Washington, D.C. Tickets cost $20. In Washington, D.C. Smith is known. The U.S. Government has \
                paid. It is what the U.S. Army has said. He lives in D.C.";
    assert_eq!(
        sentences(text),
        [
            "The U.S. Army came.",
            "We ship to the U.S. and Canada.",
            "It is in the U.S.",
            "The rest is not.",
            "Ask “Dr. Moss” or 'J. Hill' (\"St. Mary\").",
            "We are in Washington, D.C.",
            "Tickets cost $20.",
            "In Washington, D.C. Smith is known.",
            "The U.S. Government has paid.",
            "It is what the U.S. Army has said.",
            "He lives in D.C."
        ]
    );
}

#[test]
fn a_question_behind_letters_with_full_stops_stands_alone() {
    let text = "Our head office is in Washington, D.C. Need directions? Call us. We ship to the whole U.S. Questions? Write to us. \
                Do you work for the U.S. Army?";
    assert_eq!(
        sentences(text),
        [
            "Our head office is in Washington, D.C.",
            "Need directions?",
            "Call us.",
            "We ship to the whole U.S.",
            "Questions?",
            "Write to us.",
            "Do you work for the U.S. Army?"
        ]
    );
}

#[test]
fn related_words_have_one_term() {
    for words in [
        "open opens opened opening",
        "city cities",
        "price prices priced",
        "box boxes",
        "lion's lions",
    ] {
        let terms = terms(words);
        assert!(terms.windows(2).all(|pair| pair[0] == pair[1]), "{terms:?}");
    }
    assert_eq!(terms("What is it?"), Vec::<String>::new());
    assert_eq!(terms("営業時間"), ["営業", "業時", "時間"]);
}
