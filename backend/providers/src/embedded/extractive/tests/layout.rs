//! What is said of documents, however their lines are laid out.

use colloquy_knowledge::CharacterDocument;

use super::{Dialogue, from_base};

#[tokio::test]
async fn a_short_line_cuts_nothing_off() {
    for (text, question, answer) in [
        (
            "We are open Mon–Fri\n9–17. On Sundays we are closed.",
            "When are you open?",
            "We are open Mon–Fri 9–17.",
        ),
        (
            "The office is staffed Monday to Friday\n9–17 and on Saturdays until noon.",
            "When is the office staffed?",
            "The office is staffed Monday to Friday 9–17 and on Saturdays until noon.",
        ),
        (
            "The house was built in the year\n1984. It has three floors.",
            "When was the house built?",
            "The house was built in the year 1984. It has three floors.",
        ),
        (
            "A ticket costs exactly\n5. Children pay half of that.",
            "What does a ticket cost?",
            "A ticket costs exactly 5.",
        ),
        (
            "Run the command\n`widget x` to start the pump.",
            "Which command starts the pump?",
            "Run the command widget x to start the pump.",
        ),
        (
            "The best product is\n#1 in Germany since 2010.",
            "Which product is the best?",
            "The best product is #1 in Germany since 2010.",
        ),
        (
            "A night costs 5&nbsp;&euro; or &pound;4 &mdash; with breakfast.",
            "What does a night cost?",
            "A night costs 5 € or £4 — with breakfast.",
        ),
    ] {
        let (told, _) = from_base(&[(&["Visit"][..], text)], question).await;
        assert_eq!(told, format!("According to Visit: {answer}"));
    }
}

#[tokio::test]
async fn all_of_an_address_is_said() {
    let text = "Museum of Art\nMain Street 5\n12345 Berlin";
    let (told, _) = from_base(&[(&["Visit", "Address"][..], text)], "What is the address?").await;
    assert_eq!(
        told,
        "According to Visit: Museum of Art, Main Street 5, 12345 Berlin."
    );
}

#[tokio::test]
async fn what_stands_below_a_question_of_a_list_answers_it() {
    let text = "1. Which browsers work?\n   Chrome and Firefox.\n2. Is it free?\n   Yes.\n\n- How long is the guarantee?\n\n  Two years.";
    let document = CharacterDocument {
        title: "Questions".to_owned(),
        text: text.to_owned(),
    };
    for (question, answer) in [
        ("Which browsers work?", "Chrome and Firefox."),
        ("Is it free?", "Yes."),
        ("How long is the guarantee?", "Two years."),
    ] {
        let (told, _) = from_base(&[(&["FAQ"][..], text)], question).await;
        assert_eq!(told, format!("According to FAQ: {answer}"));
        let mut dialogue = Dialogue::new(std::slice::from_ref(&document));
        let told = dialogue.say(question).await;
        assert_eq!(told, format!("According to Questions: {answer}"));
    }
}

#[tokio::test]
async fn a_footnote_is_said_without_its_label() {
    let text = "The pump[^1] is blue.\n\n[^1]: The warranty lasts two years.";
    let question = "How long does the warranty last?";
    let (told, _) = from_base(&[(&["Pump"][..], text)], question).await;
    assert_eq!(told, "According to Pump: The warranty lasts two years.");
}
