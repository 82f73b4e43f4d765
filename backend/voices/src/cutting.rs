//! Where a recording is cut into samples: at pauses, by what a detector of voice activity heard. Silence is left out.

use std::ops::Range;

use colloquy_audio::loudness::{self, Gain};

/// The rate of the sound that is cut, and of samples.
pub(super) const RATE_HZ: usize = 48_000;
/// The probability from which on somebody speaks.
const SPEECH: f32 = 0.5;
/// What is shorter than this between words is no pause.
const SHORTEST_PAUSE: usize = RATE_HZ / 5;
/// What is shorter than this is no word.
const SHORTEST_PHRASE: usize = RATE_HZ / 10;
/// What stays in front of a phrase and behind it, where the pause is long enough: detectors hear soft beginnings and ends late.
const BEFORE: usize = RATE_HZ / 10;
const AFTER: usize = RATE_HZ / 5;
/// The shortest sample.
pub(super) const SHORTEST_SAMPLE: usize = RATE_HZ;
/// The moment that is looked for where there is no pause: 20 ms.
const MOMENT: usize = RATE_HZ / 50;
/// At borders sound comes and goes in so many samples: 5 ms.
const FADE: usize = RATE_HZ / 200;

/// The stretches of a window in which somebody speaks, of the probabilities of its frames.
pub(super) fn phrases(scores: &[f32], frame: usize, length: usize) -> Vec<Range<usize>> {
    let mut phrases: Vec<Range<usize>> = Vec::new();
    let spoken = scores
        .iter()
        .enumerate()
        .filter(|(_, score)| **score >= SPEECH);
    for (index, _) in spoken {
        let (begin, end) = (index * frame, ((index + 1) * frame).min(length));
        match phrases.last_mut() {
            Some(phrase) if begin < phrase.end + SHORTEST_PAUSE => phrase.end = end,
            _ => phrases.push(begin..end),
        }
    }
    // What is cut off by the end of the window may be the beginning of a word.
    phrases.retain(|phrase| phrase.len() >= SHORTEST_PHRASE || phrase.end == length);
    widened(&phrases, length)
}

/// Phrases with what stays around them; in a pause that is too short for that they meet.
fn widened(phrases: &[Range<usize>], length: usize) -> Vec<Range<usize>> {
    let middle = |before: usize, after: usize| before + (after - before) / 2;
    let widen = |(at, phrase): (usize, &Range<usize>)| {
        let before = at
            .checked_sub(1)
            .map_or(0, |at| middle(phrases[at].end, phrase.start));
        let next = phrases.get(at + 1);
        let after = next.map_or(length, |next| middle(phrase.end, next.start));
        let begin = phrase.start.saturating_sub(BEFORE).max(before);
        begin..(phrase.end + AFTER).min(after)
    };
    phrases.iter().enumerate().map(widen).collect()
}

/// A sample: stretches of a window, one after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Cut(Vec<Range<usize>>);

impl Cut {
    /// Where it begins.
    pub(super) fn begin(&self) -> usize {
        self.0.first().map_or(0, |phrase| phrase.start)
    }

    /// How many samples of sound it has.
    pub(super) fn length(&self) -> usize {
        self.0.iter().map(Range::len).sum()
    }

    fn push(&mut self, phrase: Range<usize>) {
        match self.0.last_mut() {
            Some(last) if last.end == phrase.start => last.end = phrase.end,
            _ => self.0.push(phrase),
        }
    }

    /// Its sound, as loud as that of all others, without clicks where stretches meet.
    pub(super) fn sound(&self, window: &[i16]) -> Vec<i16> {
        let mut sound = Vec::with_capacity(self.length());
        for stretch in &self.0 {
            let begin = sound.len();
            let values = window[stretch.clone()].iter().copied().map(loudness::value);
            sound.extend(values);
            let fade = FADE.min(stretch.len() / 2);
            for at in 0..fade {
                let part = at as f32 / fade as f32;
                sound[begin + at] *= part;
                let end = sound.len() - 1 - at;
                sound[end] *= part;
            }
        }
        let gain = Gain::of(&sound, RATE_HZ as u32);
        sound.into_iter().map(|value| gain.sample(value)).collect()
    }
}

/// The samples of a window, of at most `longest` each, and where the next window begins: with what was begun and not finished. That
/// is behind the beginning of this one.
pub(super) fn cut(
    window: &[i16],
    phrases: &[Range<usize>],
    longest: usize,
    is_last: bool,
) -> (Vec<Cut>, usize) {
    let mut cuts = Vec::new();
    let mut current = Cut::default();
    // A phrase that reaches the end of the window may go on behind it.
    let is_open = |phrase: &Range<usize>| !is_last && phrase.end == window.len();
    // Soft beginnings are heard late: the last moments may belong to a word that follows.
    let spoken = phrases.last().map_or(0, |phrase| phrase.end);
    let mut end = match is_last {
        true => window.len(),
        false => window.len().saturating_sub(BEFORE).max(spoken).max(1),
    };
    for phrase in phrases {
        if is_open(phrase) && phrase.start > 0 {
            end = phrase.start;
            break;
        }
        let mut rest = phrase.clone();
        if rest.len() > longest || is_open(phrase) {
            cuts.extend(close(&mut current));
        }
        while rest.len() > longest {
            let at = quietest(window, rest.start + longest / 2..rest.start + longest);
            let mut piece = Cut::default();
            piece.push(rest.start..at);
            cuts.push(piece);
            rest.start = at;
        }
        if is_open(phrase) {
            if rest.start == 0 {
                // A window of which no phrase ends and none is too long: it is as long as a sample, or shorter.
                let mut piece = Cut::default();
                piece.push(0..quietest(window, rest.len() / 2..rest.len()));
                rest.start = piece.length();
                cuts.push(piece);
            }
            end = rest.start;
            break;
        }
        if current.length() + rest.len() > longest {
            cuts.extend(close(&mut current));
        }
        current.push(rest);
    }
    if !is_last && !cuts.is_empty() && !current.0.is_empty() {
        return (cuts, current.begin());
    }
    cuts.extend(close(&mut current));
    (cuts, end)
}

fn close(current: &mut Cut) -> Option<Cut> {
    let closed = std::mem::take(current);
    (!closed.0.is_empty()).then_some(closed)
}

/// The middle of the quietest moment.
fn quietest(window: &[i16], among: Range<usize>) -> usize {
    let (moments, _) = window[among.clone()].as_chunks::<MOMENT>();
    let power = |moment: &[i16; MOMENT]| -> i64 {
        moment.iter().map(|sample| i64::from(*sample).pow(2)).sum()
    };
    let quietest = moments
        .iter()
        .enumerate()
        .min_by_key(|(_, moment)| power(moment));
    quietest.map_or(among.end, |(at, _)| among.start + at * MOMENT + MOMENT / 2)
}

#[cfg(test)]
#[path = "cutting_tests.rs"]
mod tests;
