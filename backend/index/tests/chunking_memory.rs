//! What cutting a document takes of memory. The most that a process took is known of it as a whole, so nothing else may run in this one:
//! `cargo nextest` gives each test its own.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

use std::fs;

use colloquy_index::chunking::{ChunkOptions, chunk};

/// The bytes of each document. The parser would keep about a hundred times as much of it.
const SIZE: usize = 600_000;
/// What cutting takes: what the parser keeps of a piece of 128 KB, and a few times the document.
const MOST: usize = 24_000_000 + 4 * SIZE;

/// A figure of this process, in bytes.
fn figure(name: &str) -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let figure = line.split_whitespace().nth(1).unwrap();
    figure.parse::<usize>().unwrap() * 1_024
}

#[test]
fn hostile_documents_take_a_few_times_their_size() {
    let parts = [
        "*a* ",
        "[a](b) ",
        "`a` ",
        "a\n\n",
        "\n\n\n\n\n\n\nb",
        "| a | b |\n",
        "> > > a\n",
        "- - - a\n",
        "[a]: b\n",
        "# a\n",
        "# a\n\nb\n\n## c\n\n",
        "~~a~~ <b> &amp; ![c][d]\n",
    ];
    let mut taken = Vec::new();
    let openings = [
        ("| a | b |\n|---|---|\n", "| a | b |\n"),
        ("```\n", "*a* "),
        ("- a\n  ", "*a* "),
    ];
    let plain = parts.map(|part| ("", part));
    for (before, part) in plain.into_iter().chain(openings) {
        let text = format!("{before}{}", part.repeat(SIZE / part.len()));
        let count = |text: &str| text.len().div_ceil(3);
        // The most that it took so far is forgotten.
        fs::write("/proc/self/clear_refs", "5").unwrap();
        let held = figure("VmRSS");
        let chunks = chunk(&text, "Title", ChunkOptions::default(), &count);
        let most = figure("VmHWM").saturating_sub(held);
        drop(chunks);
        taken.push((most, format!("{before:?} {part:?}")));
    }
    let (most, what) = taken.iter().max().unwrap();
    assert!(*most <= MOST, "{what}: {most} bytes for {SIZE}");
}
