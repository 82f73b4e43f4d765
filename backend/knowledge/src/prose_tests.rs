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

fn is_read(document: &str, expected: &[(char, &str)]) {
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
        "- one item that goes on\n  in the next line\n- two\n3. three\n\nHouse of the Sun\nMain Street 5  \n12345 Town\n",
        &[
            ('T', "one item that goes on in the next line"),
            ('T', "two"),
            ('T', "three"),
            ('#', "House of the Sun"),
            ('T', "Main Street 5"),
            ('T', "12345 Town"),
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
        ("![the map](map.png) shows it", "shows it"),
        ("![the map](map.png)", "the map"),
        ("see [![the map](map.png)](map.pdf).", "see the map."),
        ("[![open](map.png) [link", "[open [link"),
        // By CommonMark this is a link whose label has a picture. Labels with brackets are no links here, so that its marks are read.
        ("[a ![lion](x) ](y)runs", "[a lion ](y)runs"),
        ("run `colloquy serve` now", "run colloquy serve now"),
        ("<b>so</b> &amp; <!-- not --> on<br>", "so & on"),
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
