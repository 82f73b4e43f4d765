//! What chunks are made of.

use proptest::prelude::*;

use super::{
    blocks::{Blocks, Kind, PieceLimits},
    *,
};
use crate::{indexing, search::IndexedDocument};

/// Words and signs, as a tokenizer would begin.
fn count(text: &str) -> usize {
    text.split_whitespace()
        .map(|word| word.len().div_ceil(6))
        .sum()
}

fn cut(markdown: &str, title: &str, max_tokens: usize) -> Vec<Chunk> {
    chunk(markdown, title, ChunkOptions::of(max_tokens), &count)
}

fn texts(chunks: &[Chunk]) -> Vec<&str> {
    chunks.iter().map(|chunk| chunk.text.as_str()).collect()
}

fn words(word: &str, number: usize) -> String {
    vec![word; number].join(" ")
}

#[test]
fn sections_become_chunks_with_their_headings() {
    let lions = words("lion", 30);
    let birds = words("bird", 30);
    let text = format!("# Zoo\n\n## Lions\n\n{lions}\n\n## *Birds* of `prey`\n\n{birds}\n");
    let chunks = cut(&text, "Guide", 64);
    assert_eq!(texts(&chunks), [lions.as_str(), birds.as_str()]);
    assert_eq!(chunks[0].path, ["Guide", "Zoo", "Lions"]);
    assert_eq!(chunks[1].path, ["Guide", "Zoo", "Birds of prey"]);
    assert_eq!(
        chunks[1].passage(),
        format!("Guide > Zoo > Birds of prey\n{birds}")
    );
    for chunk in &chunks {
        assert_eq!(&text[chunk.range.clone()], chunk.text);
    }
}

#[test]
fn a_title_that_is_the_first_heading_is_said_once() {
    let chunks = cut("# Zoo\n\nIt opens at nine.", "Zoo", 64);
    assert_eq!(chunks[0].path, ["Zoo"]);
    assert_eq!(chunks[0].text, "It opens at nine.");
}

#[test]
fn small_sections_share_a_chunk_and_keep_their_headings() {
    let text = "# Hours\n\n## Monday\n\nClosed.\n\n## Tuesday\n\nNine to six.\n\n# Prices\n\nTwo coins for each child.\n";
    let chunks = cut(text, "", 200);
    assert_eq!(
        texts(&chunks),
        ["Closed.\n\n## Tuesday\n\nNine to six.\n\n# Prices\n\nTwo coins for each child."]
    );
    let large = text.replace("Closed.", &words("closed", 32));
    let chunks = cut(&large, "", 120);
    assert_eq!(chunks.len(), 2, "{chunks:#?}");
    assert_eq!(chunks[1].path, ["Hours", "Tuesday"]);
}

#[test]
fn lists_and_tables_that_fit_are_whole() {
    let before = words("before", 40);
    let list = (0..10)
        .map(|n| format!("- item {n} of ten"))
        .collect::<Vec<_>>()
        .join("\n");
    let table = format!(
        "| name | price |\n|---|---|\n{}",
        (0..10)
            .map(|n| format!("| thing {n} | {n} |"))
            .collect::<Vec<_>>()
            .join("\n")
    );
    let chunks = cut(&format!("{before}\n\n{list}\n\n{table}\n"), "", 80);
    assert_eq!(texts(&chunks), [before.as_str(), &list, &table]);
}

#[test]
fn what_announces_a_list_stands_with_it() {
    let before = words("before", 40);
    let list = (0..10)
        .map(|n| format!("- item {n} of ten"))
        .collect::<Vec<_>>()
        .join("\n");
    let text = format!("# A\n\n{before}\n\n## Prices\n\nThe prices are:\n\n{list}\n");
    let chunks = cut(&text, "", 90);
    assert_eq!(
        texts(&chunks),
        [before.clone(), format!("The prices are:\n\n{list}")]
    );
    assert_eq!(chunks[1].path, ["A", "Prices"]);
    assert_eq!(chunks[0].headings.len(), 1);
    assert_eq!(chunks[1].headings[0].title, "Prices");
}

#[test]
fn a_long_table_repeats_its_names() {
    let rows = (0..40)
        .map(|n| format!("| thing {n} | {n} coins |"))
        .collect::<Vec<_>>();
    let names = "| name | price |\n|---|---|";
    let text = format!("{names}\n{}\n", rows.join("\n"));
    let chunks = cut(&text, "Prices", 80);
    assert!(chunks.len() > 3);
    for chunk in &chunks {
        assert!(chunk.text.starts_with(names), "{}", chunk.text);
        assert!(chunk.tokens <= 80);
        assert!(text[chunk.range.clone()].ends_with("coins |"));
    }
    for row in rows {
        assert_eq!(
            chunks
                .iter()
                .filter(|chunk| chunk.text.contains(&row))
                .count(),
            1
        );
    }
}

#[test]
fn long_lists_are_cut_between_items_and_long_text_between_sentences() {
    let items = (0..30)
        .map(|n| format!("- the item of number {n}\n  and more of it"))
        .collect::<Vec<_>>();
    for chunk in cut(&items.join("\n"), "", 60) {
        assert!(chunk.text.starts_with("- the item"), "{}", chunk.text);
        assert!(chunk.text.ends_with("more of it"), "{}", chunk.text);
    }
    let sentence = "The keeper feeds the lions at noon, says Dr. Moss of the zoo.";
    for chunk in cut(&[sentence; 30].join(" "), "", 60) {
        assert!(chunk.text.starts_with("The keeper"), "{}", chunk.text);
        assert!(chunk.text.ends_with("the zoo."), "{}", chunk.text);
    }
}

#[test]
fn one_long_word_is_cut_anyway() {
    let unknown = |text: &str| text.split_whitespace().count();
    let text = "東".repeat(100_000);
    let chunks = chunk(&text, "", ChunkOptions::of(100), &unknown);
    assert!(chunks.iter().all(|chunk| chunk.text.len() <= 100 * 17));
    assert_eq!(
        chunks
            .iter()
            .map(|chunk| chunk.text.as_str())
            .collect::<String>(),
        text
    );
}

#[test]
fn an_id_names_the_content_and_not_its_place() {
    let first = cut("# A\n\nOne of them.", "T", 64);
    let moved = cut(
        "Before it stands a sentence of more than twelve words, which is enough for a chunk.\n\n# A\n\nOne of them.",
        "T",
        16,
    );
    let same = moved.iter().find(|chunk| chunk.path == ["T", "A"]).unwrap();
    assert_eq!(first[0].id, same.id);
    assert_ne!(first[0].id, cut("# B\n\nOne of them.", "T", 64)[0].id);
    assert_eq!(first[0].id.to_string().parse(), Ok(first[0].id));
    assert_eq!(
        "+0000000000000000000000000000000".parse::<ChunkId>(),
        Err(NotAnId)
    );
}

#[test]
fn headings_without_text_are_found_again() {
    let chunks = cut("# Only this\n", "", 64);
    assert_eq!(texts(&chunks), ["# Only this"]);
    let chunks = cut("# One\n\n# Two\n\nText.\n\n## Three\n", "", 64);
    let all = chunks
        .iter()
        .map(Chunk::passage)
        .collect::<Vec<_>>()
        .join("\n");
    for title in ["One", "Two", "Three"] {
        assert!(all.contains(title), "{all}");
    }
    assert!(cut("", "Title", 64).is_empty());
    assert!(cut(" \n\n---\n", "Title", 64).is_empty());
}

#[test]
fn the_table_of_contents_is_the_tree_of_headings() {
    let text = "# A\n\nText.\n\n### A.1\n\nText.\n\n## A.2\n\nText.\n\n# B\n\nText.\n";
    let chunks = cut(text, "", 16);
    let headings = chunks
        .iter()
        .flat_map(|chunk| chunk.headings.iter().map(|heading| (chunk.index, heading)));
    let tree = table_of_contents(headings);
    let names = |entries: &[TocEntry]| {
        entries
            .iter()
            .map(|entry| entry.title.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&tree), ["A", "B"]);
    assert_eq!(names(&tree[0].children), ["A.1", "A.2"]);
    assert!(tree[1].chunk_index < chunks.len());
    assert!(text[tree[0].children[1].start..].starts_with("## A.2"));
}

/// What a stranger may write to make cutting slow.
#[test]
fn strange_documents_take_time_and_memory_in_proportion() {
    let size = 200_000;
    let parts = [
        ">",
        "[",
        "*",
        "|",
        "- ",
        "  - ",
        "#",
        "# a\n",
        "`",
        "<",
        "![",
        "a\n\n",
        "\\",
        "&",
        "1. ",
        "> > ",
        "|-|\n",
        "_a",
        "[^1]: ",
        "# a\n\nb\n\n## c\n\n",
    ];
    for part in parts {
        let text = part.repeat(size / part.len());
        let counted = std::cell::Cell::new(0);
        let counting = |text: &str| {
            counted.set(counted.get() + text.len());
            count(text)
        };
        let chunks = chunk(&text, "Title", ChunkOptions::of(100), &counting);
        assert!(counted.get() < 30 * size, "{part:?}: {}", counted.get());
        let kept: usize = chunks
            .iter()
            .map(|chunk| chunk.passage().len() + chunk.headings.len() * 64)
            .sum();
        assert!(kept < 40 * size, "{part:?}: {kept}");
        assert!(chunks.len() < size / 8, "{part:?}: {} chunks", chunks.len());
    }
}

/// An index takes whatever a document is cut into: it is asked in the order of changes, and one that it refused would hold up all others.
#[test]
fn strange_documents_become_chunks_that_an_index_takes() {
    let heading = |at: usize| format!("# {}{at}\n", "&nGt;".repeat(40));
    let long = "a ".repeat(150);
    let documents = [
        format!("```\na\n{}b\n```", "\n".repeat(70_000)),
        format!("```\n{}\n```", " \na\n".repeat(30_000)),
        "a\n\n\n\n\n\n\n\n\n\n\n".repeat(10_000),
        "#\n".repeat(40_000),
        format!("a\n\n{}b", "#\n".repeat(40_000)),
        format!("a\n\n{}b", "# b\n\nc\n\n".repeat(20_000)),
        (0..900).map(heading).collect(),
        format!("a\n\n{}b", (0..900).map(heading).collect::<String>()),
        format!("| {long} |\n|---|\n{}", "| b |\n".repeat(20_000)),
        "-".repeat(200_000),
        "a".repeat(200_000),
        "a ".repeat(100_000),
        format!("- a\n{}", "\n  b\n".repeat(30_000)),
    ];
    let words = |text: &str| text.split_whitespace().count();
    let thirds = |text: &str| text.len().div_ceil(3);
    let nothing = |_: &str| 0;
    let counts: [&dyn Fn(&str) -> usize; 3] = [&words, &thirds, &nothing];
    let sizes: &[usize] = match std::env::var_os("COLLOQUY_TEST_NIGHTLY") {
        Some(_) => &[16, 254, 512, 8_191, 32_768],
        None => &[16, 512, 32_768],
    };
    for text in &documents {
        for &max_tokens in sizes {
            for (count, tokens) in counts.iter().enumerate() {
                let chunks = chunk(text, &long, ChunkOptions::of(max_tokens), tokens);
                let document = IndexedDocument {
                    id: uuid::Uuid::nil(),
                    language: None,
                    chunks: chunks
                        .into_iter()
                        .map(|chunk| (chunk, [1.0_f32].as_slice().into()))
                        .collect(),
                };
                let taken = indexing::check(&document, None);
                assert!(
                    taken.is_ok(),
                    "{:?}.. at {max_tokens}, {count}: {taken:?}",
                    &text[..8]
                );
            }
        }
    }
}

/// The kinds and texts of all blocks, parsed in pieces of this size.
fn blocks(markdown: &str, usual: usize, most: usize) -> Vec<(Kind, &str)> {
    let mut blocks = Blocks::new(markdown, PieceLimits { usual, most });
    std::iter::from_fn(|| blocks.next_piece())
        .flatten()
        .map(|block| (block.kind, &markdown[block.range]))
        .collect()
}

#[test]
fn a_table_that_is_larger_than_a_piece_keeps_its_names() {
    let rows: Vec<_> = (0..20_000)
        .map(|n| format!("| thing {n} | {n} |"))
        .collect();
    let names = "| name | price |\n|---|---|";
    let text = format!("# Prices\n\n{names}\n{}\n\nThat is all.", rows.join("\n"));
    assert!(text.len() > 2 * PieceLimits::default().most);
    let chunks = cut(&text, "", 80);
    let (last, tables) = chunks.split_last().unwrap();
    assert_eq!(last.text, "That is all.");
    let mut found = Vec::new();
    for chunk in tables {
        assert_eq!(chunk.path, ["Prices"]);
        let rows = chunk.text.strip_prefix(names).unwrap();
        found.extend(rows.lines().filter(|row| !row.is_empty()));
    }
    assert_eq!(found, rows);
}

#[test]
fn code_and_lists_that_are_larger_than_a_piece_stay_what_they_are() {
    let lines: String = (0..9_000).map(|n| format!("# line {n}\n")).collect();
    let code = format!("```sh\n{lines}```\n\n# After it\n");
    let found = blocks(&code, 1_024, 16 * 1_024);
    let (after, parts) = found.split_last().unwrap();
    assert!(parts.len() > 4 && parts.iter().all(|(kind, _)| *kind == Kind::Lines));
    assert!(matches!(&after.0, Kind::Heading { title, .. } if title == "After it"));
    let items: String = (0..9_000)
        .map(|n| format!("- item {n}\n\n  of it\n"))
        .collect();
    let found = blocks(&items, 1_024, 16 * 1_024);
    assert!(found.len() > 4);
    let of_list = |(kind, text): &(Kind, &str)| match kind {
        Kind::List(items) => text.starts_with("- item") && !items.is_empty(),
        _ => false,
    };
    assert!(found.iter().all(of_list));
}

#[test]
fn a_link_may_be_defined_in_another_piece() {
    let text = format!(
        "## [1.0.0] - [2026]\n\n{}\n\n[1.0.0]: https://example.com/\n",
        "A change.\n\n".repeat(9_000)
    );
    let (kind, _) = blocks(&text, 1_024, 4_096).swap_remove(0);
    assert!(matches!(kind, Kind::Heading { title, .. } if title == "1.0.0 - [2026]"));
}

#[test]
fn cutting_ends_when_nobody_wants_the_chunks_or_there_are_too_many() {
    let text = "A paragraph of several words.\n\n".repeat(50_000);
    let asked = std::cell::Cell::new(0);
    let is_stopped = || {
        asked.set(asked.get() + 1);
        asked.get() > 10
    };
    let counted = std::cell::Cell::new(0);
    let counting = |text: &str| {
        counted.set(counted.get() + text.len());
        count(text)
    };
    let mut limits = CutLimits {
        max_chunks: usize::MAX,
        is_stopped: &is_stopped,
    };
    let options = ChunkOptions::of(64);
    let stopped = try_chunk(&text, "", options, &counting, &limits);
    assert_eq!(stopped, Err(NotCut::Stopped));
    assert!(counted.get() < 10_000, "{}", counted.get());
    limits = CutLimits {
        max_chunks: 100,
        is_stopped: &|| false,
    };
    let many = try_chunk(&text, "", options, &counting, &limits);
    assert_eq!(many, Err(NotCut::TooMany));
    assert!(counted.get() < 200_000, "{}", counted.get());
}

#[test]
fn a_piece_begins_with_the_white_space_of_its_line() {
    for text in ["  - \n  - ", "\n\n  - a\n  - b\n"] {
        for usual in (1..9).chain([usize::MAX]) {
            let blocks = blocks(text, usual, 1 << 20);
            let items = blocks.iter().map(|(kind, _)| match kind {
                Kind::List(items) => items.len(),
                _ => 0,
            });
            assert_eq!(items.collect::<Vec<_>>(), [2], "{text:?} {usual}");
        }
    }
}

fn markdown() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "#{1,6} [a-z]{1,9}( [a-z]{1,30})?",
        "([a-z]{1,9} ){0,40}[a-z]{0,80}\\.?:?",
        "- ([a-zé]{1,9} ){0,9}",
        "  - ([a-z]{1,9} ){0,9}",
        "\\| [a-z]{1,9} \\| [a-z]{1,9} \\|",
        "\\|---\\|---\\|",
        "```",
        "[>*_\\[\\]東京 ]{0,20}",
        Just(String::new()),
        Just(String::new()),
    ];
    prop::collection::vec(line, 0..60).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #[test]
    fn blocks_are_those_of_the_whole_document(text in markdown(), usual in 1..200_usize) {
        // Whether the white space in front of a first line belongs to a block depends on what stands before it.
        let read = |usual, most| {
            let shape = |(kind, text): (Kind, &str)| {
                let parts = match &kind {
                    Kind::List(items) => items.len(),
                    Kind::Table { rows, .. } => rows.len(),
                    _ => 0,
                };
                let title = match &kind {
                    Kind::Heading { level, title } => Some((*level, title.clone())),
                    _ => None,
                };
                (std::mem::discriminant(&kind), parts, title, text.trim_start().to_owned())
            };
            blocks(&text, usual, most).into_iter().map(shape).collect::<Vec<_>>()
        };
        prop_assert_eq!(read(usual, 1 << 20), read(usize::MAX, usize::MAX));
    }

    #[test]
    fn nothing_is_lost_of_blocks_that_are_cut(text in markdown(), usual in 1..60_usize) {
        let mut rest = text.clone().into_bytes();
        let mut reader = Blocks::new(&text, PieceLimits { usual, most: usual * 2 });
        let mut end = 0;
        while let Some(piece) = reader.next_piece() {
            for block in piece {
                prop_assert!(block.range.start >= end, "they overlap");
                end = block.range.end;
                rest[block.range].fill(b' ');
            }
        }
        let rest = String::from_utf8(rest).unwrap();
        prop_assert!(!rest.contains(|c: char| c.is_alphanumeric()), "lost: {rest:?} of {text:?}");
    }

    #[test]
    fn every_word_is_in_a_chunk_of_bounded_size(text in markdown(), max_tokens in 16..120_usize) {
        let chunks = cut(&text, "A title", max_tokens);
        let mut end = 0;
        let mut headings = 0;
        for (index, chunk) in chunks.iter().enumerate() {
            prop_assert_eq!(chunk.index, index);
            prop_assert!(chunk.tokens <= max_tokens, "{} > {}", chunk.tokens, max_tokens);
            prop_assert!(count(&chunk.passage()) <= max_tokens + 2);
            prop_assert!(chunk.range.start >= end, "they overlap");
            prop_assert!(chunk.text.ends_with(&text[chunk.range.clone()]));
            end = chunk.range.end;
            headings += chunk.headings.len();
        }
        let tree = table_of_contents(chunks.iter().flat_map(|chunk| {
            chunk.headings.iter().map(|heading| (chunk.index, heading))
        }));
        fn size(tree: &[TocEntry]) -> usize {
            tree.iter().map(|entry| 1 + size(&entry.children)).sum()
        }
        prop_assert_eq!(size(&tree), headings);
        // What is outside of all chunks is a heading that is a path, or no text at all.
        let mut rest = text.clone().into_bytes();
        for chunk in &chunks {
            rest[chunk.range.clone()].fill(b' ');
        }
        for heading in chunks.iter().flat_map(|chunk| &chunk.headings) {
            let line = text[heading.start..].find('\n').unwrap_or(text.len() - heading.start);
            rest[heading.start..heading.start + line].fill(b' ');
        }
        let rest = String::from_utf8(rest).unwrap();
        prop_assert!(!rest.contains(|c: char| c.is_alphanumeric()), "lost: {rest:?} of {text:?}");
    }
}
