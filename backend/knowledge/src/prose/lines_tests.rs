//! Over which ends of lines a sentence goes on.

use super::super::tests::is_read;

#[test]
fn a_sentence_goes_on_in_a_number() {
    for (document, text) in [
        (
            "We are open Mon–Fri\n9–17. On Sundays from\n10 to 14.",
            "We are open Mon–Fri 9–17. On Sundays from 10 to 14.",
        ),
        (
            "The office is staffed Monday to Friday\n9–17 and on Saturdays until\n14 o'clock.",
            "The office is staffed Monday to Friday 9–17 and on Saturdays until 14 o'clock.",
        ),
        (
            "The house was built in the year\n1984. It has three floors.",
            "The house was built in the year 1984. It has three floors.",
        ),
        (
            "A ticket costs exactly\n5. Children pay half of that.",
            "A ticket costs exactly 5. Children pay half of that.",
        ),
        (
            "A ticket costs exactly\n€5. Children pay half of that.",
            "A ticket costs exactly €5. Children pay half of that.",
        ),
        (
            "The best product is\n#1 in Germany since 2010.",
            "The best product is #1 in Germany since 2010.",
        ),
        (
            "- The shop is open Monday to Friday\n  9–17. It is closed on Sundays.",
            "The shop is open Monday to Friday 9–17. It is closed on Sundays.",
        ),
    ] {
        is_read(document, &[('T', text)]);
    }
}

#[test]
fn a_number_may_begin_a_block() {
    for (document, blocks) in [
        (
            "What you need to do\n1. Open the lid.\n2. Close it.",
            &[
                ('#', "What you need to do"),
                ('T', "Open the lid."),
                ('T', "Close it."),
            ][..],
        ),
        (
            "Open the lid of it\n1. Turn the key.",
            &[('#', "Open the lid of it"), ('T', "Turn the key.")],
        ),
        (
            "Go on with the lid\n3. Open it.\n4. Close it.",
            &[
                ('#', "Go on with the lid"),
                ('T', "Open it."),
                ('T', "Close it."),
            ],
        ),
        (
            "- Open the lid of it\n2. Turn the key.",
            &[('T', "Open the lid of it"), ('T', "Turn the key.")],
        ),
        (
            "The steps for cleaning\n1 Open it.\n2 Close it.",
            &[
                ('#', "The steps for cleaning"),
                ('T', "1 Open it."),
                ('T', "2 Close it."),
            ],
        ),
        (
            "Prices for children and adults\n12 euros a day\n5 euros an hour\n\nCome.",
            &[
                ('#', "Prices for children and adults"),
                ('T', "12 euros a day"),
                ('T', "5 euros an hour"),
                ('T', "Come."),
            ],
        ),
        (
            "Opening hours\n9–17. Closed on Sundays.",
            &[('#', "Opening hours"), ('T', "9–17. Closed on Sundays.")],
        ),
        (
            "The Grand Hotel\n24 rooms are free.",
            &[('#', "The Grand Hotel"), ('T', "24 rooms are free.")],
        ),
        // The paragraph is part of the item before.
        (
            "1. Which of them?\n   We have 2 or more\n2. Is it late?\n   Yes.",
            &[
                ('#', "Which of them?"),
                ('T', "We have 2 or more"),
                ('#', "Is it late?"),
                ('T', "Yes."),
            ],
        ),
        // The line before ends a sentence, or is broken on purpose.
        (
            "It is open.\n9 of us work here.",
            &[('T', "It is open."), ('T', "9 of us work here.")],
        ),
        (
            "The house was built in  \n1984. It is old.",
            &[('#', "The house was built in"), ('T', "1984. It is old.")],
        ),
    ] {
        is_read(document, blocks);
    }
}

#[test]
fn a_sentence_goes_on_behind_marked_words() {
    for (document, text) in [
        (
            "Run the command\n`widget x` to start the pump.",
            "Run the command widget x to start the pump.",
        ),
        (
            "Run the command\n`widget x` to start the pump. Then run\n`widget y` to stop it.",
            "Run the command widget x to start the pump. Then run widget y to stop it.",
        ),
        (
            "Our chef recommends\n_the soup_ of the day.",
            "Our chef recommends the soup of the day.",
        ),
    ] {
        is_read(document, &[('T', text)]);
    }
    for (document, title, texts) in [
        (
            "Options of the program\n`-a` for all.\n`-b` for none.",
            "Options of the program",
            &["-a for all.", "-b for none."][..],
        ),
        (
            "About the museum\n[Parking](a.html) in the yard",
            "About the museum",
            &["Parking in the yard"],
        ),
        (
            "About the program\n`widget` is free.",
            "About the program",
            &["widget is free."],
        ),
    ] {
        let texts = texts.iter().map(|text| ('T', *text));
        let expected: Vec<_> = [('#', title)].into_iter().chain(texts).collect();
        is_read(document, &expected);
    }
}

#[test]
fn the_lines_of_an_address_are_one_text() {
    for (document, text) in [
        (
            "Museum of Art\nMain Street 5\n12345 Berlin",
            "Museum of Art, Main Street 5, 12345 Berlin",
        ),
        (
            "Museum of Art  \nMain Street 5  \n12345 Berlin",
            "Museum of Art, Main Street 5, 12345 Berlin",
        ),
        ("12 Rue Neuve\n1000 Brussels", "12 Rue Neuve, 1000 Brussels"),
        ("- Nowa 7a\n  00-950 Warszawa", "Nowa 7a, 00-950 Warszawa"),
    ] {
        is_read(document, &[('T', text)]);
    }
    is_read(
        "Our address\nMain Street 5\n12345 Berlin\n\nPlan 5\n12345 users",
        &[
            ('#', "Our address"),
            ('T', "Main Street 5, 12345 Berlin"),
            ('T', "Plan 5"),
            ('T', "12345 users"),
        ],
    );
}
