//! What is answered from the documents of the demo, and what an answer takes.

mod layout;

use std::sync::Arc;

use colloquy_knowledge::{
    CharacterDocument, CharacterDocuments, KnowledgeSource as _, Origin, Passage, Query,
};
use futures_util::TryStreamExt as _;
use serde_json::json;

use super::*;
use crate::{ChatMessage, ChatRole, Grounding};

const RUNNING: &str = include_str!("../../../../../examples/knowledge/running.md");
const QUESTIONS: &str = include_str!("../../../../../examples/knowledge/questions.html");
const WORDS: &str = include_str!("../../../../../examples/knowledge/words.csv");

/// The demo's files as they are once they are digitized.
fn documents() -> Vec<CharacterDocument> {
    let document = |title: &str, text: String| CharacterDocument {
        title: title.to_owned(),
        text,
    };
    let article = QUESTIONS.split("<article>").nth(1).unwrap();
    let article = article.split("</article>").next().unwrap();
    let marks = [("<h1>", "# "), ("<h2>", "\n## "), ("<p>", "\n")];
    let mut article = article
        .replace("</h1>", "")
        .replace("</h2>", "")
        .replace("</p>", "");
    for (tag, mark) in marks {
        article = article.replace(tag, mark);
    }
    let row = |line: &str| format!("| {} |\n", line.replace(',', " | "));
    let mut rows = WORDS.lines().map(row);
    let names = rows.next().unwrap();
    let table = format!("{names}| --- | --- |\n{}", rows.collect::<String>());
    vec![
        document("running.md", RUNNING.to_owned()),
        document("questions.html", article),
        document("words.csv", table),
    ]
}

/// A conversation about documents.
struct Dialogue {
    documents: CharacterDocuments,
    request: ChatRequest,
}

impl Dialogue {
    fn new(documents: &[CharacterDocument]) -> Self {
        Self {
            documents: CharacterDocuments::new(documents),
            request: ChatRequest::default(),
        }
    }

    async fn say(&mut self, words: &str) -> String {
        let turn = |role, content: &str| ChatMessage {
            role,
            content: content.to_owned(),
        };
        let query = Query {
            text: words.to_owned(),
            context: String::new(),
            limit: 4,
        };
        self.request.grounding = Arc::new(Grounding {
            name: Some("Guide".to_owned()),
            topics: self.documents.titles(),
            passages: self.documents.search(query).await.unwrap(),
            ..Grounding::default()
        });
        self.request.messages.push(turn(ChatRole::User, words));
        let pieces = Extractive.text(&self.request).await.unwrap();
        let pieces: Vec<String> = pieces.try_collect().await.unwrap();
        let reply = pieces.concat();
        self.request
            .messages
            .push(turn(ChatRole::Assistant, &reply));
        reply
    }

    /// The passages that the last reply rests on.
    fn rested_on(&self) -> Vec<usize> {
        let mut request = self.request.clone();
        request.messages.pop();
        Extractive.passages_of(&request).unwrap()
    }
}

#[tokio::test]
async fn the_demos_documents_answer() {
    for (question, parts) in [
        (
            "How do I update it?",
            &[
                "Replace the program and start it again.",
                "brings the database up to date when it starts.",
            ][..],
        ),
        (
            "Which browsers work?",
            &["Calls work in Chrome, Edge, Firefox and Safari, on desks and on phones."],
        ),
        (
            "How long can a call last?",
            &["A call may last four hours."],
        ),
        ("Which port does it use?", &["8080"]),
        ("Can I type instead?", &["Typed words are a turn"]),
        (
            "What does barge-in mean?",
            &["Barge-in: The visitor speaks while the character does"],
        ),
        (
            "What is a signed URL?",
            &["An address that opens one call once"],
        ),
    ] {
        let mut dialogue = Dialogue::new(&documents());
        let reply = dialogue.say(question).await;
        println!("> {question}\n  {reply}");
        for part in parts {
            assert!(reply.contains(part), "{question}: {reply}");
        }
        assert!(!reply.contains(['|', '*', '#', '?']), "{question}: {reply}");
        for file in ["According to running", ".html", ".md", ".csv"] {
            assert!(!reply.contains(file), "{question}: {reply}");
        }
        assert_eq!(dialogue.rested_on().len(), 1, "{question}");
    }
}

/// A passage of a base, below these headings.
fn of_base(headings: &[&str], text: &str) -> Passage {
    Passage {
        title: "guide.md".to_owned(),
        headings: headings.iter().map(|it| (*it).to_owned()).collect(),
        text: text.to_owned(),
        document: Origin::Kept("01".to_owned()),
        ..Passage::default()
    }
}

/// The reply to words for which these passages of a base were found: each has headings above it, and a text.
async fn from_base(passages: &[(&[&str], &str)], words: &str) -> (String, Vec<usize>) {
    let passages = passages.iter();
    let passages = passages.map(|(headings, text)| of_base(headings, text));
    from_passages(passages.collect(), words).await
}

/// The reply to words for which these passages were found, and the passages that it rests on.
async fn from_passages(passages: Vec<Passage>, words: &str) -> (String, Vec<usize>) {
    let grounding = Grounding {
        passages,
        ..Grounding::default()
    };
    let request = ChatRequest {
        messages: vec![ChatMessage {
            role: ChatRole::User,
            content: words.to_owned(),
        }],
        grounding: Arc::new(grounding),
        ..ChatRequest::default()
    };
    let pieces = Extractive.text(&request).await.unwrap();
    let pieces: Vec<String> = pieces.try_collect().await.unwrap();
    let used = Extractive.passages_of(&request).unwrap();
    (pieces.concat(), used)
}

#[tokio::test]
async fn the_labels_of_questions_and_answers_are_not_said() {
    for text in [
        "Q: Is parking free?\n\nA: Yes, behind the museum.\n\nQ: Are dogs allowed?\n\nA: Only small ones.",
        "**Q:** Is parking free?\n**A:** Yes, behind the museum.\n\n**Q:** Are dogs allowed?\n**A:** Only small ones.",
        "Q. Is parking free? A. Yes, behind the museum.\n\nQ. Are dogs allowed? A. Only small ones.",
    ] {
        for (question, answer) in [
            ("Is parking free?", "Yes, behind the museum."),
            ("Are dogs allowed?", "Only small ones."),
        ] {
            let (told, _) = from_base(&[(&["FAQ"][..], text)], question).await;
            assert_eq!(told, format!("According to FAQ: {answer}"), "{text}");
        }
    }
    // Choices are no answers.
    let choices = "The plans differ.\n\n- A: one seat in the garden\n- B: two seats";
    let (told, _) = from_base(&[(&["Plans"][..], choices)], "Which plan has a garden?").await;
    assert!(told.contains("A: one seat in the garden."), "{told}");
}

#[tokio::test]
async fn a_tag_that_breaks_a_line_cuts_nothing_off() {
    for (text, question, answer) in [
        (
            "Opening hours:<br>Mon–Fri 9–17<br>Sat 10–14",
            "What are the opening hours?",
            "Opening hours: Mon–Fri 9–17, Sat 10–14.",
        ),
        (
            "Our museum is open<br>Monday to Friday<br>from 9 to 5.",
            "When is the museum open?",
            "Our museum is open Monday to Friday from 9 to 5.",
        ),
    ] {
        let (told, _) = from_base(&[(&["Visit"][..], text)], question).await;
        assert!(told.ends_with(answer), "{told}");
    }
}

#[tokio::test]
async fn a_line_of_marks_or_an_aside_cuts_nothing_off() {
    for (text, question, answer) in [
        (
            "The password of the guest network is\n`sunflower-42`\nand changes every month.",
            "What is the password of the guest network?",
            "The password of the guest network is sunflower-42 and changes every month.",
        ),
        (
            "The office of the mayor is in\n*Room 12*\non the second floor.",
            "Where is the office of the mayor?",
            "The office of the mayor is in Room 12 on the second floor.",
        ),
        (
            "There is a public car park in\n[Mill Street](https://example.org)\ntwo minutes away. ![map](map.png)",
            "Where is the car park?",
            "There is a public car park in Mill Street two minutes away.",
        ),
        (
            "You can download the manual from\n[our support page](https://example.org)\nor ask for it at the front desk.",
            "Where can I download the manual?",
            "You can download the manual from our support page or ask for it at the front desk.",
        ),
        (
            "The Brewmaster descales itself\n– unlike its predecessor – every\nFriday night.",
            "When does the Brewmaster descale itself?",
            "The Brewmaster descales itself – unlike its predecessor – every Friday night.",
        ),
    ] {
        let (told, _) = from_base(&[(&["Visit"][..], text)], question).await;
        assert_eq!(told, format!("According to Visit: {answer}"));
    }
}

#[tokio::test]
async fn a_price_that_nobody_asked_for_is_not_said() {
    let text = "The cellar tour costs $20 for each visitor of the cellar.\n\nThe cellar tour starts at ten. It costs $20.";
    let (told, _) = from_base(
        &[(&["Visit"][..], text)],
        "When does the cellar tour start?",
    )
    .await;
    assert!(
        told.contains("starts at ten.") && !told.contains('$'),
        "{told}"
    );
    let (told, _) = from_base(&[(&["Visit"][..], text)], "How much is the cellar tour?").await;
    assert!(told.contains("$20"), "{told}");
    let text = "The garden tour is $20.\n\nThe garden tour is daily in summer.";
    let (told, _) = from_base(&[(&["Visit"][..], text)], "When is the garden tour?").await;
    assert!(told.contains("daily") && !told.contains('$'), "{told}");
    // Where nothing else answers, it is the best that there is.
    let alone = "The cellar tour costs $20.";
    let (told, _) = from_base(&[(&["Visit"][..], alone)], "How do I find the cellar tour?").await;
    assert!(told.contains("$20"), "{told}");
}

#[tokio::test]
async fn a_price_below_the_question_is_said() {
    for (question, answer) in [
        (
            "Can I bring my dog?",
            "Yes. There is a fee of $25 per night. Please keep it on a lead.",
        ),
        (
            "What happens if I cancel?",
            "We refund you. A fee of $30 is kept for the booking.",
        ),
        ("Can I check out late?", "Yes, until noon. It costs $30."),
        (
            "When can I check in?",
            "In the afternoon. Late arrivals pay $20. The bell is outside.",
        ),
    ] {
        let document = format!("# Stay\n\n## {question}\n\n{answer}\n");
        let (told, _) = from_base(&[(&["Stay"][..], document.as_str())], question).await;
        assert!(told.ends_with(answer), "{told}");
    }
}

#[tokio::test]
async fn what_stands_behind_a_price_is_said() {
    let text = "The cellar tour starts at ten. The price is $20. The garden tour starts at noon.";
    let question = "When does the cellar tour start, and when does the garden tour start?";
    let (told, _) = from_base(&[(&["Visit"][..], text)], question).await;
    assert!(
        told.ends_with("The cellar tour starts at ten. The garden tour starts at noon."),
        "{told}"
    );
}

#[tokio::test]
async fn what_stands_below_a_question_answers_it() {
    let document = "# FAQ\n\n## Is the museum free on Sundays?\n\nYes.\n\n## Is the museum open on Mondays?\n\n\
                    No, it is closed then.\n\n## How long is the guarantee?\n\nTwo years.\n\n\
                    ## May I bring a pet?\n\nDogs are welcome.\n\n## Which browsers work?\n\n### Desktop\n\nChrome 66.";
    let (above, text) = document.split_once("\n\nYes.").unwrap();
    let text = format!("Yes.{text}");
    let headings: Vec<_> = above.lines().filter(|line| !line.is_empty()).collect();
    let headings: Vec<_> = headings
        .iter()
        .map(|it| it.trim_start_matches(['#', ' ']))
        .collect();
    let carried = CharacterDocument {
        title: "guide.md".to_owned(),
        text: document.to_owned(),
    };
    for (question, answer) in [
        ("Is the museum free on Sundays?", "Yes."),
        ("Is the museum open on Mondays?", "No, it is closed then."),
        ("How long is the guarantee?", "Two years."),
        ("May I bring a pet?", "Dogs are welcome."),
        ("Which browsers work?", "Chrome 66."),
    ] {
        let expected = format!("According to FAQ: {answer}");
        let (told, used) = from_base(&[(headings.as_slice(), text.as_str())], question).await;
        assert_eq!((told.as_str(), used), (expected.as_str(), vec![0]));
        let mut dialogue = Dialogue::new(std::slice::from_ref(&carried));
        assert_eq!(dialogue.say(question).await, expected);
    }
}

#[tokio::test]
async fn a_section_of_several_passages_is_told_from_its_first() {
    let question = "Is the museum free?";
    let passage = |document: &str, chunk_index, text| Passage {
        document: Origin::Kept(document.to_owned()),
        chunk_index,
        ..of_base(&["FAQ", question], text)
    };
    let first = passage("01", 3, "Yes, on Sundays.");
    let second = passage("01", 4, "Groups of twelve pay half.");
    let other = passage("02", 0, "No, never.");
    let found = vec![second.clone(), other.clone(), first.clone()];
    let (told, used) = from_passages(found, question).await;
    assert_eq!(
        (told.as_str(), used),
        ("According to FAQ: Yes, on Sundays.", vec![2])
    );
    // Of several documents, the one that fits best by search.
    let (told, used) = from_passages(vec![other, second, first], question).await;
    assert_eq!(
        (told.as_str(), used),
        ("According to FAQ: No, never.", vec![0])
    );
}

#[tokio::test]
async fn headings_above_a_passage_are_what_it_is_about() {
    let guests: (&[&str], &str) = (&["Prices", "Guests"], "A day costs 20 euros.");
    let members: (&[&str], &str) = (&["Prices", "Members"], "A day costs 10 euros.");
    let browsers: (&[&str], &str) = (&["Which browsers work?", "Desktop"], "Chrome 66.");
    let local: (&[&str], &str) = (&["Is it safe?"], "Yes, everything is local.");
    for (question, part) in [
        ("What do members pay?", "10 euros"),
        ("What does a day cost for guests?", "20 euros"),
        ("Which browsers work?", "Chrome 66."),
        ("Is it safe?", "Yes, everything is local."),
    ] {
        let (told, _) = from_base(&[guests, members, local, browsers], question).await;
        assert!(told.contains(part), "{question}: {told}");
    }
}

#[tokio::test]
async fn what_marks_a_text_is_not_said() {
    let documents = [CharacterDocument {
        title: "guide.md".to_owned(),
        text: "# The zoo\n\n## Do you have *lions*?\n\n**Twelve** of them, see [the map](map.md).\n\n## Prices\n\n\
               | Who | Price | Note |\n|---|---|---|\n| Adults | 12 euros | - |\n| Children | 5 euros | under `six` free |\n\n\
               Do you come by bus? Take line four to the\nlast stop."
            .to_owned(),
    }];
    for (question, answer) in [
        (
            "Do you have lions?",
            "According to The zoo: Twelve of them, see the map.",
        ),
        (
            "What about children?",
            "According to The zoo: Children: Price 5 euros, Note under six free.",
        ),
        (
            "Which bus is it?",
            "According to The zoo: Take line four to the last stop.",
        ),
    ] {
        assert_eq!(Dialogue::new(&documents).say(question).await, answer);
    }
}

#[tokio::test]
async fn what_is_needed_is_told_of_what_was_asked_for() {
    let documents = [CharacterDocument {
        title: "zorb.md".to_owned(),
        text: "# Zorb\n\n| Browser | Version | Notes |\n|---|---|---|\n| Chrome | 66 | best |\n| Firefox | 60 | fine |\n\
               | Safari | 11 | needs a fix |\n\n## Hours\n\nWe are open Monday to Friday from 9 a.m. to 5 p.m. and on Saturdays\n\
               from 10 to 2.\n\nConnect the cable.\nThe light turns green after\n30 seconds."
            .to_owned(),
    }];
    for (question, answer) in [
        (
            "What version of Firefox do I need?",
            "Firefox: Version 60, Notes fine.",
        ),
        (
            "Are you open on Saturdays?",
            "We are open Monday to Friday from 9 a.m. to 5 p.m. and on Saturdays from 10 to 2.",
        ),
        (
            "When does the light turn green?",
            "The light turns green after 30 seconds.",
        ),
    ] {
        let reply = Dialogue::new(&documents).say(question).await;
        assert!(reply.ends_with(answer), "{question}: {reply}");
    }
}

#[tokio::test]
async fn a_refusal_names_documents_and_no_files() {
    async fn refused(headings: &[&str]) -> String {
        let text = "The machine folds laundry.";
        let (told, used) = from_base(&[(headings, text)], "What is the capital of Peru?").await;
        assert_eq!(used, [0; 0], "{told}");
        told
    }
    let told = refused(&["The Zorb Manual", "What it does"]).await;
    assert!(
        told.ends_with("I can tell you about The Zorb Manual."),
        "{told}"
    );
    let told = refused(&[]).await;
    assert!(
        told.ends_with("What would you like to talk about?"),
        "{told}"
    );
}

#[tokio::test]
async fn a_refusal_rests_on_nothing() {
    let mut dialogue = Dialogue::new(&documents());
    for question in [
        "Hello!",
        "What is the capital of France?",
        "What is my name?",
    ] {
        let reply = dialogue.say(question).await;
        assert_eq!(dialogue.rested_on(), [0; 0], "{question}: {reply}");
    }
}

#[tokio::test]
async fn it_remembers_what_the_visitor_is_called() {
    let mut dialogue = Dialogue::new(&documents());
    let reply = dialogue.say("What's my name?").await;
    assert!(reply.contains("don't know"), "{reply}");
    let reply = dialogue.say("my name is maria").await;
    assert!(reply.starts_with("Nice to meet you, Maria."), "{reply}");
    assert_eq!(dialogue.say("What's my name?").await, "Your name is Maria.");
    dialogue.say("Which browsers work?").await;
    let reply = dialogue.say("So, do you remember my name?").await;
    assert_eq!(reply, "Your name is Maria.");
    for (said, name) in [
        ("I'm Eva.", "Eva"),
        ("Hi I'm Jo and I have a cat", "Jo"),
        ("I am Dave.", "Dave"),
    ] {
        let mut dialogue = Dialogue::new(&documents());
        dialogue.say(said).await;
        let reply = dialogue.say("What is my name?").await;
        assert_eq!(reply, format!("Your name is {name}."));
    }
}

/// The peak of this process's memory since it was asked for last, in bytes; where that cannot be told, since it began.
fn peak_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap();
    let kib: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    kib * 1024
}

#[tokio::test]
async fn what_an_answer_takes_does_not_grow_with_its_request() {
    const REQUEST_BYTES: usize = 8 * 1024 * 1024;
    let long = |text: &str| text.repeat(REQUEST_BYTES / text.len());
    let ask = |role: &str, content: String| {
        let question = json!({"role": "user", "content": "Which browsers work?"});
        json!({"messages": [{"role": role, "content": content}, question], "stream": true})
    };
    let bodies = [
        ask("system", long("The zoo opens at nine. ")),
        ask("system", long("a b c. ")),
        ask("assistant", long("# A\n\n| b | c |\n")),
        ask("user", long("What is it? ")),
        json!({"messages": vec![json!({"role": "user", "content": "a"}); 20_000]}),
        json!({"messages": [{"role": "user", "content": vec![json!({"text": "a b"}); 20_000]}]}),
    ];
    for body in bodies {
        let serde_json::Value::Object(body) = body else {
            unreachable!("it was written as an object")
        };
        let request = ModelRequest {
            body,
            ..ModelRequest::default()
        };
        peak_bytes();
        let before = peak_bytes();
        match Extractive.ask(&request).await.unwrap() {
            ModelAnswer::Whole(_) => {}
            ModelAnswer::Events(events) => {
                let events: Vec<_> = events.try_collect().await.unwrap();
                assert!(events.len() > 2);
            }
        }
        let grown = (peak_bytes() - before) as u64;
        println!("{grown} bytes");
        assert!(
            grown <= Extractive.working_bytes(REQUEST_BYTES as u64),
            "{grown}"
        );
    }
    assert!(Extractive.working_bytes(REQUEST_BYTES as u64) < 10 << 20);
    assert!(Extractive.working_bytes(1_000) < 100_000);
}
