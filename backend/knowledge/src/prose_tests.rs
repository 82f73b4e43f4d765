//! What is read of documents.

use super::*;

fn read(document: &str) -> Vec<(char, String)> {
    let kind = |kind: &BlockKind<'_>| match kind {
        BlockKind::Heading { .. } => '#',
        BlockKind::Text => 'T',
        BlockKind::Row { .. } => '|',
        BlockKind::Code => '`',
    };
    blocks(document)
        .map(|block| (kind(&block.kind), block.text))
        .collect()
}

pub(super) fn is_read(document: &str, expected: &[(char, &str)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(kind, text)| (*kind, (*text).to_owned()))
        .collect();
    assert_eq!(read(document), expected, "{document}");
}

#[test]
fn wrapped_lines_are_one_text() {
    is_read(
        "## Updates\n\nReplace the program and start it again. The server finishes the calls that are running before it stops, and \
         brings the database up to date\nwhen it starts.\n\n> Quoted words that were wrapped because the line\n> was too long.\n",
        &[
            ('#', "Updates"),
            (
                'T',
                "Replace the program and start it again. The server finishes the calls that are running before it stops, and \
                 brings the database up to date when it starts.",
            ),
            (
                'T',
                "Quoted words that were wrapped because the line was too long.",
            ),
        ],
    );
    is_read(
        "- one item that goes on\n  in the next line\n- two\n3. three\n\nHouse of the Sun\nPlan 5  \nPlan 6\n",
        &[
            ('T', "one item that goes on in the next line"),
            ('T', "two"),
            ('T', "three"),
            ('#', "House of the Sun"),
            ('T', "Plan 5"),
            ('T', "Plan 6"),
        ],
    );
    is_read(
        "営業時間は午前九時から午後六時までです。ただし月曜日は\n休みです。",
        &[(
            'T',
            "営業時間は午前九時から午後六時までです。ただし月曜日は休みです。",
        )],
    );
}

#[test]
fn a_sentence_goes_on_after_words_that_end_none() {
    is_read(
        "Connect the cable.\nThe light turns green after\n30 seconds. Press the\nRESET button.\n\nPrices\n12 euros",
        &[
            ('T', "Connect the cable."),
            (
                'T',
                "The light turns green after 30 seconds. Press the RESET button.",
            ),
            ('#', "Prices"),
            ('T', "12 euros"),
        ],
    );
    // A letter is a name, too.
    is_read(
        "Choose plan a\nIt costs nothing.",
        &[('#', "Choose plan a"), ('T', "It costs nothing.")],
    );
}

#[test]
fn a_tag_ends_a_line_of_a_list_and_breaks_no_sentence() {
    for (document, text) in [
        (
            "Opening hours:<br>Mon–Fri 9–17<br/>Sat 10–14",
            "Opening hours: Mon–Fri 9–17, Sat 10–14",
        ),
        (
            "Our museum is open<br>Monday to Friday<br />from 9 to 5.",
            "Our museum is open Monday to Friday from 9 to 5.",
        ),
        (
            "**Prices** <br>**Adults** 10 euros<BR>Children (to 12)<br><br> 5 euros<br>",
            "Prices Adults 10 euros, Children (to 12), 5 euros",
        ),
        (
            "- Visit us<br>Main Street 5<br>12345 Town",
            "Visit us Main Street 5, 12345 Town",
        ),
        // The last line is a sentence.
        (
            "Opening hours<br>Mon–Fri 9–17<br>Sat 10–14<br>Closed on Sundays.",
            "Opening hours Mon–Fri 9–17, Sat 10–14 Closed on Sundays.",
        ),
        (
            "We offer:<br>Coffee<br>Cake<br>Sandwiches",
            "We offer: Coffee, Cake, Sandwiches",
        ),
        // Lines that were wrapped.
        (
            "Open 9 to 5 on<br>Monday and Friday.",
            "Open 9 to 5 on Monday and Friday.",
        ),
        (
            "Geöffnet von 9 bis 17<br>Uhr.",
            "Geöffnet von 9 bis 17 Uhr.",
        ),
        ("Opening<br>Hours", "Opening Hours"),
        ("Call us:<br>+49 30<br>123456", "Call us: +49 30 123456"),
        (
            "We are open from Monday to Friday until nine<br>Saturdays until ten",
            "We are open from Monday to Friday until nine Saturdays until ten",
        ),
        ("Connect the<br>Light 2", "Connect the Light 2"),
        ("It is one.<br>It is two.", "It is one. It is two."),
        ("![Logo](a.png)<br>Welcome to 2", "Welcome to 2"),
        ("<br>Plan 9 <b>is</b><br/>", "Plan 9 is"),
    ] {
        is_read(document, &[('T', text)]);
    }
    is_read(
        "## Adult<br>Ticket\n\n| Day<br>Time | Price |\n|---|---|\n| Mon<br>Tue | 9 |",
        &[('#', "Adult Ticket"), ('|', "Mon Tue: 9")],
    );
    // With a look at the whole paragraph for each tag, this takes minutes.
    let many = "Plan 9<br>".repeat(100_000);
    let read = blocks(&many).last().unwrap().text;
    assert!(read.ends_with("Plan 9, Plan 9"), "{}", read.len());
}

#[test]
fn a_sentence_goes_on_in_a_line_of_marked_words() {
    for (document, text) in [
        (
            "The password of the guest network is\n`sunflower-42`\nand changes every month.",
            "The password of the guest network is sunflower-42 and changes every month.",
        ),
        (
            "The office of the mayor is in\n*Room 12*\non the second floor.",
            "The office of the mayor is in Room 12 on the second floor.",
        ),
        (
            "There is a public car park in\n[Mill Street](https://example.org/mill)\ntwo minutes away.",
            "There is a public car park in Mill Street two minutes away.",
        ),
        (
            "You can download the manual from\n[our support page](https://example.org)\nor ask for it at the front desk.",
            "You can download the manual from our support page or ask for it at the front desk.",
        ),
        (
            "- The key of the shed is in\n  **Room 12**\n  (second floor).",
            "The key of the shed is in Room 12 (second floor).",
        ),
        (
            "There is a public car park in\n[Mill Street](https://example.org) ![*(map)*](map.png)\ntwo minutes away.",
            "There is a public car park in Mill Street (map) two minutes away.",
        ),
        // Words that more stands behind.
        (
            "The password of the guest network is\n`sunflower-42` and changes every month.",
            "The password of the guest network is sunflower-42 and changes every month.",
        ),
        (
            "The office of the mayor is in\n**Room 12**, on the second\nfloor.",
            "The office of the mayor is in Room 12, on the second floor.",
        ),
        // The sentence ends behind the mark.
        (
            "Please write to the office\n<https://example.org/write>. Then\nwait.",
            "Please write to the office https://example.org/write. Then wait.",
        ),
        (
            "The fee for the tour is\n**12 euros**.",
            "The fee for the tour is 12 euros.",
        ),
        // Words before that may end a heading.
        (
            "Our chef recommends\n_the soup_\nof the day.",
            "Our chef recommends the soup of the day.",
        ),
        (
            "Please write to the office\n[page](a.html). Then\nthe staff reads\n[the page](b.html)\neach day.",
            "Please write to the office page. Then the staff reads the page each day.",
        ),
        (
            "The office is in the\nold house\n**Room 12**\non the second floor.",
            "The office is in the old house Room 12 on the second floor.",
        ),
    ] {
        is_read(document, &[('T', text)]);
    }
}

#[test]
fn a_line_of_marked_words_may_begin_a_block() {
    is_read(
        "It is warm.\n**Parking**\nis free.\n\n**Parking**\n\nIt is free.",
        &[
            ('T', "It is warm."),
            ('T', "Parking is free."),
            ('#', "Parking"),
            ('T', "It is free."),
        ],
    );
    for (document, title, texts) in [
        (
            "Opening hours\n**Summer**\ndaily from nine to five\n**Winter**\ndaily from ten to four",
            "Opening hours",
            &[
                "Summer daily from nine to five",
                "Winter daily from ten to four",
            ][..],
        ),
        (
            "About the museum\n**Parking**\nis free.",
            "About the museum",
            &["Parking is free."],
        ),
        (
            "The Grand Hotel\n[Booking](a.html)\nis open.",
            "The Grand Hotel",
            &["Booking is open."],
        ),
        (
            "Where we are\n*Main Street*\nnear the church",
            "Where we are",
            &["Main Street near the church"],
        ),
        (
            "Downloads in two languages\n[Manual](a.pdf)\nin English\n[Plan](b.pdf)\nin German",
            "Downloads in two languages",
            &["Manual in English", "Plan in German"],
        ),
        // The line before is broken on purpose.
        (
            "The office is in  \n*Room 12*\non the second floor",
            "The office is in",
            &["Room 12 on the second floor"],
        ),
        // No sentence goes on.
        (
            "It works in these browsers\n[Chrome](a), [Edge](b)",
            "It works in these browsers",
            &["Chrome, Edge"],
        ),
        (
            "Downloads for you\n[Manual 2](a.pdf)\nIn English",
            "Downloads for you",
            &["Manual 2", "In English"],
        ),
    ] {
        let texts = texts.iter().map(|text| ('T', *text));
        let expected: Vec<_> = [('#', title)].into_iter().chain(texts).collect();
        is_read(document, &expected);
    }
}

#[test]
fn an_aside_behind_a_dash_is_no_item() {
    for (document, text) in [
        (
            "The Brewmaster descales itself\n– unlike its predecessor – every\nFriday night.",
            "The Brewmaster descales itself – unlike its predecessor – every Friday night.",
        ),
        (
            "The Brewmaster descales itself\n— unlike its predecessor — on\nFriday night.",
            "The Brewmaster descales itself — unlike its predecessor — on Friday night.",
        ),
        (
            "The museum in the park\n– Berlin's oldest –\nOpera House and all are open.",
            "The museum in the park – Berlin's oldest – Opera House and all are open.",
        ),
        (
            "- The cafe is open\n  – except on Mondays.",
            "The cafe is open – except on Mondays.",
        ),
        (
            "There is a public car park in\n[Mill Street](https://example.org/mill)\n– two minutes away – behind\nMarket Square.",
            "There is a public car park in Mill Street – two minutes away – behind Market Square.",
        ),
    ] {
        is_read(document, &[('T', text)]);
    }
    for (document, blocks) in [
        (
            "We offer today\n– coffee\n– cake\n\n– tea",
            &[
                ('#', "We offer today"),
                ('T', "coffee"),
                ('T', "cake"),
                ('T', "tea"),
            ][..],
        ),
        (
            "Our shop in the park has\n– coffee\n  with milk\n\n– cake",
            &[
                ('#', "Our shop in the park has"),
                ('T', "coffee with milk"),
                ('T', "cake"),
            ],
        ),
        (
            "– Coffee\nwith milk\n– tea",
            &[('T', "Coffee with milk"), ('T', "tea")],
        ),
        ("Drinks\n– coffee", &[('#', "Drinks"), ('T', "coffee")]),
        (
            "The hours of the zoo\n– Monday",
            &[('#', "The hours of the zoo"), ('T', "Monday")],
        ),
        (
            "It is open.\n– except on Mondays",
            &[('T', "It is open."), ('T', "except on Mondays")],
        ),
        (
            "The shop is open\n- except on Mondays",
            &[('#', "The shop is open"), ('T', "except on Mondays")],
        ),
    ] {
        is_read(document, blocks);
    }
}

#[test]
fn lines_are_looked_at_a_few_times() {
    // With a look at the whole paragraph for each of its lines, these take minutes.
    for (lines, blocks) in [
        ("- We all like it\n– so\n", 2),
        ("We all like it\n*so*\nas it is. And\n", 2),
        ("It is so.\nwe all like it\n[so](a).\n", 1),
    ] {
        let document = lines.repeat(50_000);
        let count = super::blocks(&document).count();
        // The last line has none like it behind it.
        assert_eq!(count.next_multiple_of(2), blocks * 50_000, "{lines}");
    }
}

#[test]
fn a_picture_alone_is_no_paragraph() {
    is_read(
        "# The zoo\n\n![Two lions](lions.png)\n\nLions sleep all day long, as the picture above shows.\n![A bear](bear.png)\nBears do not.\n\n\
         [![Map](map.png)](map.pdf) [![Plan](plan.png)](plan.pdf)\n\nThe end.",
        &[
            ('#', "The zoo"),
            ('T', "Lions sleep all day long, as the picture above shows."),
            ('T', "Bears do not."),
            ('T', "The end."),
        ],
    );
    is_read(
        "# ![Logo](logo.png) The zoo\n\n[![Logo](logo.png)](https://example.org) ![](a.png) It is open.\n\n\
         | Animal | Picture |\n|---|---|\n| Lion | ![asleep](lion.png) |",
        &[
            ('#', "The zoo"),
            ('T', "It is open."),
            ('|', "Lion: asleep"),
        ],
    );
}

#[test]
fn headings_name_what_follows() {
    is_read(
        "Title\n=====\nText below it.\n\nSub\n---\n\nWhich browsers work?\n\nAll of them.\n\nOpening hours:\n- Daily at nine\n\n\
         # Marked #\n#hashtag goes on.\n\nThe end",
        &[
            ('#', "Title"),
            ('T', "Text below it."),
            ('#', "Sub"),
            ('#', "Which browsers work?"),
            ('T', "All of them."),
            ('#', "Opening hours:"),
            ('T', "Daily at nine"),
            ('#', "Marked"),
            ('T', "#hashtag goes on."),
            ('T', "The end"),
        ],
    );
}

#[test]
fn definitions_stand_below_their_terms() {
    is_read(
        "An amble\n: A slow walk\n  of a horse\n: A slow dance\n\nA trot\n: It is faster",
        &[
            ('#', "An amble"),
            ('T', "A slow walk of a horse"),
            ('T', "A slow dance"),
            ('#', "A trot"),
            ('T', "It is faster"),
        ],
    );
}

#[test]
fn an_item_that_is_a_question_stands_above_its_answer() {
    is_read(
        "1. Which browsers work?\n   Chrome and Firefox.\n2. Is it free?\n\n   Yes.\n\n3. Is it safe? Yes.\n- Is it open?\nAlways.",
        &[
            ('#', "Which browsers work?"),
            ('T', "Chrome and Firefox."),
            ('#', "Is it free?"),
            ('T', "Yes."),
            ('T', "Is it safe? Yes."),
            ('#', "Is it open?"),
            ('T', "Always."),
        ],
    );
    is_read(
        "- Is it free?\n- Is it safe?\n\nCall us.\n\n- Is it open?\n\n# Hours\n\n- Is it late?",
        &[
            ('T', "Is it free?"),
            ('T', "Is it safe?"),
            ('T', "Call us."),
            ('T', "Is it open?"),
            ('#', "Hours"),
            ('T', "Is it late?"),
        ],
    );
}

#[test]
fn footnotes_are_texts() {
    is_read(
        "It has a warranty[^1] and a plug[^2].\n\n[^1]: The warranty lasts two years.\n[^2]: Yes.\n[^3]: https://example.org\n[1]: a.html",
        &[
            ('T', "It has a warranty and a plug."),
            ('T', "The warranty lasts two years."),
            ('T', "Yes."),
        ],
    );
}

#[test]
fn headings_have_levels() {
    let document = "Title\n===\nSub\n---\n### Marked\n\nWhich browsers work?\n\nAll of them.";
    let levels = blocks(document).filter_map(|block| match block.kind {
        BlockKind::Heading { level } => Some(level),
        _ => None,
    });
    assert_eq!(levels.collect::<Vec<_>>(), [1, 2, 3, UNMARKED]);
}

#[test]
fn rows_are_sentences() {
    is_read(
        "| Word | Meaning |\n|---|:--|\n| Barge-in | The visitor *speaks* while the character does |\n| | |\n| a\\|b | c |\n\n\
         | Animal | Food | Age |\n| --- | --- | --- |\n| Lion | meat | 12 |\n| Owl | - | 3 |\n\n| lone | row |\n\na | b is no table",
        &[
            ('|', "Barge-in: The visitor speaks while the character does"),
            ('|', "a|b: c"),
            ('|', "Lion: Food meat, Age 12"),
            ('|', "Owl: Age 3"),
            ('|', "lone: row"),
            ('T', "a | b is no table"),
        ],
    );
    let columns = blocks("Text\n\n| A | B |\n|---|---|\n| 1 | 2 |").last();
    assert_eq!(
        columns.map(|block| block.kind),
        Some(BlockKind::Row {
            columns: "| A | B |\n|---|---|"
        })
    );
}

#[test]
fn marks_are_no_words() {
    for (line, words) in [
        (
            "**Bold** and *slanted* and __so__ on",
            "Bold and slanted and so on",
        ),
        (
            "see [the manual](manual.md#part) first",
            "see the manual first",
        ),
        (
            "[**the** manual][1] and a note[^2]",
            "the manual and a note",
        ),
        (
            "See `map.pdf` and ![the *map*](map.png).",
            "See map.pdf and the map.",
        ),
        ("see ![](lion.png) it", "see it"),
        ("It is near. ![map](map.png)", "It is near."),
        ("**It is near!** ![map](map.png) Come.", "It is near! Come."),
        ("See no. ![two](two.png) and go.", "See no. two and go."),
        ("![the map](map.png) shows it", "shows it"),
        ("![the map](map.png)", "the map"),
        ("see [![the map](map.png)](map.pdf).", "see the map."),
        ("[![open](map.png) [link", "[open [link"),
        // By CommonMark this is a link whose label has a picture. Labels with brackets are no links here, so that its marks are read.
        ("[a ![lion](x) ](y)runs", "[a lion ](y)runs"),
        ("run `colloquy serve` now", "run colloquy serve now"),
        ("<b>so</b> &amp; <!-- not --> on<br>", "so & on"),
        (
            "5&nbsp;&euro; or &pound;4 &mdash; R&amp;D",
            "5 € or £4 — R&D",
        ),
        (
            "<https://example.org/a> or https://example.org",
            "https://example.org/a or https://example.org",
        ),
        (
            "2 * 3 and 4*5 and snake_case and \\*stars\\*",
            "2 * 3 and 4*5 and snake_case and *stars*",
        ),
        ("~~gone~~ about ~5", "gone about ~5"),
        ("an [open bracket", "an [open bracket"),
    ] {
        assert_eq!(plain(line), words, "{line}");
    }
}

#[test]
fn a_picture_that_only_marks_follow_is_its_description() {
    for (line, words) in [
        ("<b>![Open 9 to 5](x)</b>", "Open 9 to 5"),
        ("**![the map](map.png)**<br>", "the map"),
        ("_![the *map*](map.png)_ <!-- big -->", "the map"),
        ("`![the map](map.png)`&nbsp;[^1]", "the map"),
        ("<i>[![the map](map.png)](map.pdf)</i>", "the map"),
        // Of several, the last one that has a description.
        ("![a](x) <b>![b](y)</b> ![](z)<br>", "b"),
        ("*![](x)*", ""),
        // Words of any kind follow.
        ("<b>![the map](map.png)</b> [shows](a.html) it", "shows it"),
        ("![the map](map.png)<b>[shows][1]</b> it", "shows it"),
        ("**![the map](map.png)**&nbsp;&amp; more", "& more"),
        ("![the map](map.png) * 2", "* 2"),
        (
            "![the map](map.png) <https://example.org>",
            "https://example.org",
        ),
    ] {
        assert_eq!(plain(line), words, "{line}");
    }
    is_read(
        "<b>![Open 9 to 5](x)</b>\n\n| Day | Hours |\n|---|---|\n| Monday | <b>![9 to 5](x)</b> |",
        &[('T', "Open 9 to 5"), ('|', "Monday: 9 to 5")],
    );
}

#[test]
fn pictures_behind_blanks_take_no_longer_than_their_line() {
    // With a look at all blanks for each picture, this takes minutes.
    let line = format!(
        "![](x){}{}end",
        " ".repeat(500_000),
        "![](x)".repeat(80_000)
    );
    assert_eq!(plain(&line), "end");
    let behind = format!("{}x{}", "![a](x)".repeat(80_000), " ".repeat(500_000));
    assert_eq!(plain(&behind), "x");
    let tags = "<b>![a](x)</b>".repeat(40_000);
    assert_eq!(plain(&tags), "a");
    assert_eq!(plain("&nbsp;![a lion](x) runs"), "runs");
}

#[test]
fn what_says_nothing_is_left_out() {
    is_read(
        "---\n\n```sh\nrm -rf /\n```\n\n[1]: https://example.org\n\n![](a.png)\n\n![a lion](a.png) ![b](b.png)\n\n***\n\n~~~\nopen to the end\n# no heading",
        &[('`', ""), ('`', "")],
    );
    for odd in [
        "", "\n\n", "|", "||", "#", "# ", "-", "- ", "[", "\r\n", "|-", ">",
    ] {
        let blocks = read(odd);
        assert!(blocks.len() <= 1, "{odd:?}: {blocks:?}");
    }
}
