//! What is said of what is written.

use colloquy_base::clock::{Clock as _, SystemClock};

use super::*;

fn check(cases: &[(&str, &str)]) {
    let wrong: Vec<_> = cases
        .iter()
        .map(|(written, said)| (*written, english(written), *said))
        .filter(|(_, found, said)| found != said)
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn every_rule_has_a_pattern_that_can_be_read() {
    assert_eq!(ENGLISH.len(), ENGLISH_RULES.len());
}

#[test]
fn plain_sentences_stay_as_they_are() {
    for text in [
        "Hello, world. How are you?",
        "I don't know; that's all I have: sorry!",
        "It takes 3 or 4 days in May.",
        "He has 15 apples and 1 pear.",
        "In the end I may go.",
        "A state-of-the-art phone. No, thanks.",
        "I am here at 5 in total.",
    ] {
        assert_eq!(english(text), text);
    }
}

#[test]
fn money() {
    check(&[
        ("It costs $5.50.", "It costs 5 dollars and 50 cents."),
        ("$1", "1 dollar"),
        ("$1.01 only", "1 dollar and 1 cent only"),
        ("$0.99", "99 cents"),
        ("$1,250 a month", "1250 dollars a month"),
        ("about $3.5 million", "about 3.5 million dollars"),
        ("$5M or $2k", "5 million dollars or 2 thousand dollars"),
        ("-$20", "minus 20 dollars"),
        ("€19.99", "19 euros and 99 cents"),
        ("19.99 €, please", "19 euros and 99 cents, please"),
        ("£7.05", "7 pounds and 5 pence"),
        ("¥500", "500 yen"),
        ("12 USD.", "12 dollars."),
    ]);
}

#[test]
fn dates_and_years() {
    check(&[
        ("on 2024-05-06", "on May 6th, 20 24"),
        ("on 12/25/2023.", "on December 25th, 20 23."),
        ("May 5, 2024", "May 5th, 20 24"),
        ("March 1st", "March 1st"),
        ("Jan. 22", "January 22nd"),
        ("3 June 1998", "June 3rd, 19 98"),
        ("the 3rd of June", "the June 3rd"),
        ("in 1984", "in 19 84"),
        ("since 2005", "since 2005"),
        ("in 1905", "in 19 oh 5"),
        ("in 1900", "in 19 hundred"),
        ("the 1990s", "the 19 nineties"),
        ("the '80s", "the eighties"),
        ("2024 people", "2024 people"),
    ]);
}

#[test]
fn times() {
    check(&[
        ("at 3:30pm", "at 3 30 P M"),
        ("at 3 p.m. today", "at 3 P M today"),
        ("9:05 AM", "9 oh 5 A M"),
        ("from 9:00 to 17:00", "from 9 o'clock to 17 hundred"),
        ("at 12:00", "at 12 o'clock"),
        ("at 10:45.", "at 10 45."),
        ("1:02:03", "1 oh 2 and 3 seconds"),
    ]);
}

#[test]
fn quantities() {
    check(&[
        ("5%", "5 percent"),
        ("2.5 % of all", "2.5 percent of all"),
        ("5-10%", "5 to 10 percent"),
        ("72°F", "72 degrees Fahrenheit"),
        ("-5 °C", "minus 5 degrees Celsius"),
        ("1 km", "1 kilometer"),
        ("120km/h", "120 kilometers per hour"),
        ("10 kg of 2.5 GHz", "10 kilograms of 2.5 gigahertz"),
        ("16GB", "16 gigabytes"),
        ("30 min.", "30 minutes."),
        ("1,234,567", "1234567"),
        ("3 1/2 cups and 3/4", "3 and one half cups and 3 quarters"),
        ("24/7", "24 7"),
        ("9-17", "9 to 17"),
        ("1920x1080", "1920 by 1080"),
        ("2x faster", "2 times faster"),
        ("v2.1", "version 2 point 1"),
        ("3.11.7", "3 point 11 point 7"),
        ("5 + 3 = 8", "5 plus 3 equals 8"),
        ("it is -5 now", "it is minus 5 now"),
        ("#1", "number 1"),
        ("No. 5", "number 5"),
    ]);
}

#[test]
fn addresses() {
    check(&[
        (
            "Mail jane.doe@example.com.",
            "Mail jane dot doe at example dot com.",
        ),
        (
            "a_b-c+d@mail.co.uk",
            "a underscore b dash c plus d at mail dot co dot uk",
        ),
        (
            "See www.example.com/help/.",
            "See w w w dot example dot com slash help.",
        ),
        ("at example.org, or", "at example dot org, or"),
        ("www.colloquy.dev", "w w w dot colloquy dot dev"),
        ("That is it.So", "That is it.So"),
    ]);
}

#[test]
fn telephone_numbers() {
    check(&[
        ("call 555-123-4567", "call 5 5 5, 1 2 3, 4 5 6 7"),
        ("(555) 123-4567", "5 5 5, 1 2 3, 4 5 6 7"),
        ("+1 555 123 4567 now", "plus 1, 5 5 5, 1 2 3, 4 5 6 7 now"),
        ("555-1234", "5 5 5, 1 2 3 4"),
    ]);
}

#[test]
fn abbreviations() {
    check(&[
        ("Mr. Smith and Dr. Jones", "Mister Smith and Doctor Jones"),
        ("St. Louis", "Saint Louis"),
        ("5 Main St. is it", "5 Main Street is it"),
        ("apples, pears, etc.", "apples, pears, et cetera."),
        ("e.g. this, i.e. that", "for example, this, that is, that"),
        ("cats vs. dogs", "cats versus dogs"),
        ("approx. 5", "approximately 5"),
        ("the U.S. army", "the U S army"),
        ("in the U.S.", "in the U S."),
        ("a Ph.D. student", "a P H D student"),
        ("he/she and/or they", "he or she and or they"),
        ("Mon. to Fri. at 9", "Monday to Friday at 9"),
        ("AT&T", "AT and T"),
    ]);
}

#[test]
fn typographic_marks_are_plain_ones() {
    check(&[
        ("\u{201c}Quoted\u{201d} it\u{2019}s", "\"Quoted\" it's"),
        ("so \u{2014} it is", "so, it is"),
        ("5\u{a0}km", "5 kilometers"),
    ]);
}

#[test]
fn long_texts_take_time_in_proportion() {
    for piece in [
        "1,", "a@", "$1", "[x](", "http://", "*", "2*", "2 * ", "1-", "A.", "(5",
    ] {
        let text = piece.repeat(20_000);
        let begin = SystemClock.instant();
        let said = english(&text);
        assert!((SystemClock.instant() - begin).as_secs() < 20, "{piece}");
        assert!(said.len() < 40 * text.len(), "{piece}");
    }
}
