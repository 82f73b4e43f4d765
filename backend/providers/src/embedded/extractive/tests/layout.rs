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

#[tokio::test]
async fn code_is_said_behind_the_sentence_that_announces_it() {
    for (text, question, answer) in [
        (
            "Start it:\n\n```sh\nwidget serve\n```\n\nThen open the page.",
            "How do I start it?",
            "Start it: widget serve. Then open the page.",
        ),
        (
            "To start the engine, run this command in a shell:\n\n```\nwidget x\n```\n\nIt hums.",
            "How do I start the engine?",
            "To start the engine, run this command in a shell: widget x. It hums.",
        ),
    ] {
        let (told, _) = from_base(&[(&["Pump"][..], text)], question).await;
        assert_eq!(told, format!("According to Pump: {answer}"));
    }
}

#[tokio::test]
async fn all_steps_of_an_instruction_are_said() {
    const QUESTION: &str = "How do I reset the device?";
    for (headings, text, answer) in [
        (
            &["Manual", QUESTION][..],
            "Follow these steps:\n\n1. Hold the button.\n2. Wait for the light.\n3. Let it go.\n4. Close the lid.",
            "Hold the button. Wait for the light. Let it go. Close the lid.",
        ),
        (
            &["Manual"],
            "To reset the device, do this with a pin in your hand:\n1. Hold the reset button.\n2. Wait.\n3. Let go.",
            "To reset the device, do this with a pin in your hand: Hold the reset button. Wait. Let go.",
        ),
        (
            &["Manual"],
            "## Resetting\n\n1. Open the lid.\n2. Hold the reset button.\n3. Close the lid.",
            "Open the lid. Hold the reset button. Close the lid.",
        ),
    ] {
        let (told, _) = from_base(&[(headings, text)], QUESTION).await;
        assert_eq!(told, format!("According to Manual: {answer}"));
    }
    // As many as an answer has room for.
    let step = |number: usize| format!("{number}. Turn the wheel of the pump to the left.\n");
    let many: String = (1..=20).map(step).collect();
    let (told, _) = from_base(&[(&["Manual", QUESTION][..], many.as_str())], QUESTION).await;
    assert_eq!(told.matches("Turn the wheel").count(), 8, "{told}");
    // Who asks for something else gets the step that tells it.
    let steps = "1. Open the lid.\n2. Hold the reset button.\n3. Close the lid.";
    let question = "Which button do I hold?";
    let (told, _) = from_base(&[(&["Manual"][..], steps)], question).await;
    assert_eq!(told, "According to Manual: Hold the reset button.");
}
