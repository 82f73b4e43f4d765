//! Good and bad answers for each rule.

use super::*;

fn turn(says: &str) -> Turn {
    Turn {
        says: says.to_owned(),
        ..Turn::default()
    }
}

fn accepts(turn: &Turn, answer: &str) -> bool {
    judge(turn, answer, &["Prices and tickets".to_owned()], None).is_acceptable()
}

#[test]
fn words_are_compared_without_case_punctuation_and_notation() {
    let price = Turn {
        all: vec!["9 50 euros|9 euros and 50 cents".to_owned()],
        ..turn("How much?")
    };
    for good in [
        "It costs 9.50 euros.",
        "That's €9.50!",
        "9,50 € a head",
        "Nine euros and fifty cents.",
    ] {
        assert!(accepts(&price, good), "{good}");
    }
    for bad in ["It costs 19.50 euros.", "It costs 9 euros.", "", "9.50"] {
        assert!(!accepts(&price, bad), "{bad}");
    }
    for (text, expected) in [
        ("Twenty-five", "25"),
        ("at 9:00", "at 9"),
        ("9am", "9 am"),
        ("I don’t", "i dont"),
        ("half past nine", "half past 9"),
        ("€ 12 a head", "12 euros a head"),
    ] {
        assert_eq!(words(text).join(" "), expected, "{text}");
    }
}

#[test]
fn wrong_facts_contradict() {
    let hours = Turn {
        all: vec!["closed".to_owned()],
        none: vec!["from 9|opens at 9".to_owned()],
        ..turn("And on Mondays?")
    };
    assert!(accepts(&hours, "We are closed on Mondays."));
    let wrong = judge(&hours, "On Mondays it opens at nine.", &[], None);
    assert!(wrong.is_contradicted && !wrong.is_acceptable());
    let silent = judge(&hours, "I am not sure.", &[], None);
    assert!(!silent.is_contradicted && !silent.is_acceptable());
}

#[test]
fn marks_and_lengths_are_not_acceptable() {
    let any = Turn {
        all: vec!["closed".to_owned()],
        avoid: vec!["tuesday".to_owned()],
        words: Some(6),
        ..turn("And on Mondays?")
    };
    assert!(accepts(&any, "On Mondays we are closed."));
    for bad in [
        "| Monday | closed |",
        "Monday: **closed**",
        "closed, see [hours](hours)",
        "closed, says hours.md",
        "closed, but not on Tuesday",
        "We are closed on every single Monday.",
    ] {
        let verdict = judge(&any, bad, &[], None);
        assert!(
            !verdict.is_acceptable() && !verdict.is_contradicted,
            "{bad}"
        );
    }
}

#[test]
fn refusals_are_short_different_and_show_no_sources() {
    let unknown = Turn::unanswerable("Do you have 3 lifts?");
    assert!(accepts(&unknown, "I don't know that, sorry."));
    assert!(accepts(
        &unknown,
        "Sorry, I do not know. I can tell you about our rooms."
    ));
    for bad in [
        "Yes, we do.",
        "I don't know, but a lift costs 9 euros.",
        "I don't know. See Prices and Tickets.",
        "I don't know. Really. I never did.",
        "I don't know **that**.",
    ] {
        assert!(!accepts(&unknown, bad), "{bad}");
    }
    let second = |answer| judge(&unknown, answer, &[], Some("I don't know that, sorry."));
    assert!(second("That is something I cannot tell.").is_acceptable());
    assert!(!second("I don't know that; sorry!").is_acceptable());
    assert!(!second("I cannot tell. Ask me about rooms.").is_acceptable());
}

#[test]
fn questions_begin_with_their_answer_and_keep_their_language() {
    let question = Turn {
        begins: Some(Begins::No),
        ..turn("Are dogs allowed?")
    };
    assert!(accepts(&question, "No, dogs stay outside."));
    assert!(accepts(&question, "Unfortunately not."));
    assert!(!accepts(&question, "Dogs are not allowed."));
    assert!(!accepts(&question, "Yes, of course."));
    let german = Turn {
        language: Some("de".to_owned()),
        ..turn("Wann öffnen Sie?")
    };
    assert!(accepts(&german, "Das ist leider nur auf Englisch möglich."));
    assert!(!accepts(&german, "The shop is open from nine."));
}

#[test]
fn the_words_of_the_visitor_are_no_answer() {
    let name = Turn {
        kind: Kind::Memory,
        all: vec!["maria".to_owned()],
        ..turn("I am Maria.")
    };
    assert!(accepts(&name, "Hello Maria!"));
    assert!(!accepts(&name, "I am Maria"));
    let hello = Turn {
        kind: Kind::Manners,
        ..name
    };
    assert!(accepts(&hello, "I am Maria"));
}

#[test]
fn a_whole_table_is_no_answer() {
    let student = Turn {
        all: vec!["9 euros".to_owned()],
        ..turn("And students?")
    };
    assert!(accepts(
        &student,
        "Students pay 9 euros a year, adults 24 euros."
    ));
    assert!(!accepts(
        &student,
        "Adult 24 euros, student 9 euros, child 0 euros, family 36 euros."
    ));
}
