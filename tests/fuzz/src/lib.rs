//! A fuzzer for tests: it changes the inputs it is given, and keeps on changing those with an outcome that was not seen
//! before. Each use runs for a second, for thirty inputs unless these are slow, and until an input led to something new; it runs for a minute
//! in `tests/run nightly` (`COLLOQUY_TEST_NIGHTLY`).

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "only tests use it, and how long it runs is the one thing that it takes the time for"
)]

use std::{
    collections::HashSet,
    thread,
    time::{Duration, Instant},
};

use rand::{RngExt as _, SeedableRng as _, rngs::StdRng, seq::IndexedRandom as _};

/// How long a use runs: ordinarily, and in a nightly run.
const SECONDS: u64 = 1;
const NIGHTLY_SECONDS: u64 = 60;
/// The fewest inputs, unless they take longer than [`LONGEST`] more: an input that is slow stays among those that are changed.
const LEAST_TRIES: u64 = 30;
const LONGEST: Duration = Duration::from_secs(5);
/// How many it tries for the sake of the first new outcome, which a slow check reaches late.
const MOST_TRIES: u64 = 5_000;
/// The longest input.
const MOST_BYTES: usize = 4 * 1024;
/// Bytes that mean something to the parsers here.
const MARKS: &[u8] = b"{}[]\":,\\\n\r \t-+.0159eEutf\0\x7f\x80\xbf\xc3\xe2\xef\xf0\xff";

/// Shows the input that a check failed with.
struct Shown<'a>(&'a [u8]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("the input was b\"{}\"", self.0.escape_ascii());
        }
    }
}

/// Gives changed inputs to a check, which panics when it finds something and else says what the outcome was, in few words:
/// outcomes that say more than their kind lead nowhere.
///
/// # Panics
/// When no change of an input led to another outcome, and when the name of the test does not say that it fuzzes: a nightly run finds it by that.
pub fn fuzz(seeds: &[Vec<u8>], check: impl Fn(&[u8]) -> String) {
    let thread = thread::current();
    // With one thread for all tests, none of them has a thread of its own.
    let test = thread.name().filter(|name| *name != "main");
    assert!(
        test.is_none_or(|name| name.contains("fuzz")),
        "name it after what it does: {test:?}"
    );
    let is_nightly = std::env::var_os("COLLOQUY_TEST_NIGHTLY").is_some();
    let seconds = if is_nightly { NIGHTLY_SECONDS } else { SECONDS };
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut random = StdRng::seed_from_u64(rand::random());
    let mut inputs = seeds.to_vec();
    let mut outcomes = HashSet::new();
    for input in seeds {
        let _shown = Shown(input);
        outcomes.insert(check(input));
    }
    let known = outcomes.len();
    let mut tries = 0_u64;
    while Instant::now() < end
        || (tries < LEAST_TRIES && Instant::now() < end + LONGEST)
        || (outcomes.len() == known && tries < MOST_TRIES)
    {
        tries += 1;
        let mut input = inputs.choose(&mut random).unwrap().clone();
        for _ in 0..random.random_range(1..6) {
            change(&mut input, &inputs, &mut random);
        }
        input.truncate(MOST_BYTES);
        let _shown = Shown(&input);
        if outcomes.insert(check(&input)) {
            inputs.push(input.clone());
        }
    }
    // What does not get anywhere tests nothing.
    assert!(outcomes.len() > known, "{tries} inputs and nothing new");
    println!("{tries} inputs, {} outcomes", outcomes.len());
}

/// One change: of a byte, of a stretch, or with a stretch of another input.
fn change(input: &mut Vec<u8>, inputs: &[Vec<u8>], random: &mut StdRng) {
    let at = random.random_range(0..=input.len());
    let stretch = |bytes: &[u8], random: &mut StdRng| {
        let begin = random.random_range(0..=bytes.len());
        let most = (bytes.len() - begin).min(64);
        begin..begin + random.random_range(0..=most)
    };
    match random.random_range(0..8) {
        0 => input.insert(at, random.random()),
        1 => input.insert(at, *MARKS.choose(random).unwrap()),
        2 if at < input.len() => input[at] ^= 1 << random.random_range(0..8),
        3 if at < input.len() => input[at] = *MARKS.choose(random).unwrap(),
        4 => drop(input.drain(stretch(input, random))),
        5 => {
            let again = input[stretch(input, random)].to_vec();
            input.splice(at..at, again);
        }
        6 => input.truncate(at),
        _ => {
            let other = inputs.choose(random).unwrap();
            let more = other[stretch(other, random)].to_vec();
            input.splice(at..at, more);
        }
    }
}
