//! The labelled set: conversations of turns of people, with pauses where they may have paused to think, where each turn ends, and the time
//! that the character has between two of them.

use std::f64::consts::TAU;

use harness::sounds::Noise;

use crate::recordings::{self, RATE};

/// Silence before a turn, in samples.
const BEFORE: usize = RATE / 2;

/// The least silence after a turn, in samples: whoever has not answered by then has missed it. The visitor listens for as long as this and a
/// pause.
pub(super) const AFTER: usize = 3 * RATE;

/// Sound of the room at a border that passes into the next, in samples.
const FADE: usize = RATE / 200;

/// What people pause within a turn: a logarithmic normal distribution with this median and spread, between these limits. Of
/// pauses within turns half are shorter than about half a second, and one of ten is longer than a second.
const PAUSE_MEDIAN_MS: f64 = 450.0;
const PAUSE_SPREAD: f64 = 0.65;
const PAUSE_MS: (f64, f64) = (200.0, 2_000.0);

/// A part of a recording without a pause, in milliseconds.
#[derive(Debug, Clone, Copy)]
struct Piece {
    recording: &'static str,
    from: usize,
    to: usize,
}

const fn piece(recording: &'static str, from: usize, to: usize) -> Piece {
    Piece {
        recording,
        from,
        to,
    }
}

/// What a visitor says in a call, in samples.
#[derive(Debug, Clone)]
pub(super) struct Conversation {
    pub(super) samples: Vec<i16>,
    pub(super) turns: Vec<Turn>,
}

/// A turn, by its places in the conversation.
#[derive(Debug, Clone, Default)]
pub(super) struct Turn {
    /// Where the visitor pauses and goes on.
    pub(super) pauses: Vec<(usize, usize)>,
    /// Where speech ends.
    pub(super) end: usize,
}

impl Conversation {
    /// A sound in which nobody speaks, and silence.
    pub(super) fn silent(sound: &[i16]) -> Self {
        let mut samples = sound.to_vec();
        samples.resize(samples.len() + AFTER, 0);
        Self {
            samples,
            turns: Vec::new(),
        }
    }
}

/// So many conversations, each with all turns and other lengths of pauses.
///
/// # Errors
/// When a recording is missing.
pub(super) fn all(draws: usize) -> anyhow::Result<Vec<Conversation>> {
    let mut random = Noise::new(17);
    let mut conversations = Vec::new();
    for _ in 0..draws {
        let mut samples = Vec::new();
        let mut turns = Vec::new();
        for pieces in TURNS {
            turns.push(turn(&mut samples, pieces, &mut random)?);
        }
        conversations.push(Conversation { samples, turns });
    }
    Ok(conversations)
}

/// Adds a turn to a conversation.
fn turn(samples: &mut Vec<i16>, pieces: &[Piece], random: &mut Noise) -> anyhow::Result<Turn> {
    let mut turn = Turn::default();
    for (index, piece) in pieces.iter().enumerate() {
        let recording = recordings::named(piece.recording)?;
        let room = room(&recording);
        if index == 0 {
            join(samples, &silence(room, BEFORE));
        } else {
            let pause = pause(random);
            join(samples, &silence(room, pause));
            turn.pauses.push((turn.end, samples.len()));
        }
        let ms = RATE / 1_000;
        let to = (piece.to * ms).min(recording.len());
        join(samples, &recording[(piece.from * ms).min(to)..to]);
        turn.end = samples.len();
        if index + 1 == pieces.len() {
            let listened = AFTER + pause(random);
            join(samples, &silence(room, listened));
        }
    }
    Ok(turn)
}

/// What is taken for the sound of the room: this much of a recording, where it is most quiet.
const ROOM: usize = RATE / 10;

fn room(recording: &[i16]) -> &[i16] {
    let energy = |sound: &&[i16]| -> u64 {
        sound
            .iter()
            .map(|sample| u64::from(sample.unsigned_abs()).pow(2))
            .sum()
    };
    let places = recording.windows(ROOM).step_by(ROOM / 10);
    places.min_by_key(energy).unwrap_or(recording)
}

/// So much of the room's sound, there and back again.
fn silence(room: &[i16], samples: usize) -> Vec<i16> {
    let back = room.iter().rev();
    room.iter()
        .chain(back)
        .cycle()
        .take(samples)
        .copied()
        .collect()
}

/// Adds a sound behind another without a click.
fn join(samples: &mut Vec<i16>, next: &[i16]) {
    let fade = FADE.min(samples.len()).min(next.len());
    let begin = samples.len() - fade;
    for (at, next) in next[..fade].iter().enumerate() {
        let part = at as f64 / fade as f64;
        let before = f64::from(samples[begin + at]);
        samples[begin + at] = (before * (1.0 - part) + f64::from(*next) * part).round() as i16;
    }
    samples.extend_from_slice(&next[fade..]);
}

/// The length of a pause, in samples.
fn pause(random: &mut Noise) -> usize {
    let mut uniform = || random.next().map_or(0.5, |value| (value + 1.0) / 2.0);
    let (first, second) = (uniform().max(1e-12), uniform());
    let normal = (-2.0 * first.ln()).sqrt() * (TAU * second).cos();
    let ms = PAUSE_MEDIAN_MS * (PAUSE_SPREAD * normal).exp();
    (ms.clamp(PAUSE_MS.0, PAUSE_MS.1) * RATE as f64 / 1_000.0) as usize
}

const DASHWOOD: &str = "librivox/sense_and_sensibility_01_austen_64kb-0870.wav";
const ILL_DISPOSED: &str = "librivox/sense_and_sensibility_01_austen_64kb-0880.wav";
const UNLESS: &str = "librivox/sense_and_sensibility_01_austen_64kb-0890.wav";
const MARRIED: &str = "librivox/sense_and_sensibility_01_austen_64kb-0920.wav";
const AMIABLE: &str = "librivox/sense_and_sensibility_01_austen_64kb-0930.wav";

/// Turns, each in pieces between which the visitor pauses. Borders between words are where the recording is quiet, so that none
/// is cut.
const TURNS: &[&[Piece]] = &[
    // Go forward | ten meters.
    &[
        piece("goforward.raw", 480, 1_155),
        piece("goforward.raw", 1_155, 2_560),
    ],
    // And Mister John Dashwood | had then leisure to consider how much there might be | prudently in his power to do for them.
    &[piece(DASHWOOD, 220, 1_565), piece(DASHWOOD, 1_565, 6_760)],
    &[piece(DASHWOOD, 220, 4_955), piece(DASHWOOD, 4_955, 6_760)],
    // He was not | an ill-disposed young man, | unless to be rather | cold-hearted | and rather selfish | is to be ill-disposed.
    &[piece(ILL_DISPOSED, 240, 2_800), piece(UNLESS, 270, 5_080)],
    &[
        piece(ILL_DISPOSED, 240, 1_085),
        piece(ILL_DISPOSED, 1_085, 2_800),
        piece(UNLESS, 270, 5_080),
    ],
    &[piece(UNLESS, 270, 1_305), piece(UNLESS, 1_305, 5_080)],
    &[
        piece(UNLESS, 270, 2_185),
        piece(UNLESS, 2_185, 3_325),
        piece(UNLESS, 3_325, 5_080),
    ],
    // Had he married a more amiable woman, | he might have been made | still more respectable | than he was.
    &[piece(MARRIED, 300, 2_545), piece(MARRIED, 2_545, 5_800)],
    &[
        piece(MARRIED, 300, 3_855),
        piece(MARRIED, 3_855, 4_815),
        piece(MARRIED, 4_815, 5_800),
    ],
    // He might even have been made amiable himself.
    &[piece(AMIABLE, 260, 2_880)],
    // Ten of clubs. Four, | queen of clubs. Seven of clubs. Five, | five. Eight of spades, | four of clubs, | seven of hearts.
    &[piece("cards/001.wav", 160, 960)],
    &[
        piece("cards/002.wav", 110, 795),
        piece("cards/002.wav", 795, 1_700),
    ],
    &[piece("cards/003.wav", 90, 1_360)],
    &[
        piece("cards/004.wav", 220, 815),
        piece("cards/004.wav", 815, 1_220),
    ],
    &[
        piece("cards/005.wav", 190, 1_145),
        piece("cards/005.wav", 1_145, 2_155),
        piece("cards/005.wav", 2_155, 3_250),
    ],
    // Go somewhere and do something. Thirty-three four | six ninety-two.
    &[piece("something.raw", 440, 2_330)],
    &[
        piece("numbers.raw", 460, 1_955),
        piece("numbers.raw", 1_955, 3_500),
    ],
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_are_as_long_as_those_of_people() {
        let mut random = Noise::new(1);
        let mut pauses: Vec<usize> = (0..2_000)
            .map(|_| pause(&mut random) * 1_000 / RATE)
            .collect();
        pauses.sort_unstable();
        assert!((400..500).contains(&pauses[1_000]), "{}", pauses[1_000]);
        assert!((800..1_300).contains(&pauses[1_800]), "{}", pauses[1_800]);
        assert!(pauses[0] >= 199 && pauses[1_999] <= 2_000);
    }

    #[test]
    fn pieces_lie_between_each_other_and_pauses_are_where_nobody_speaks() {
        let [conversation] = &all(1).unwrap()[..] else {
            panic!("one draw is one conversation")
        };
        let samples = &conversation.samples;
        assert_eq!(conversation.turns.len(), TURNS.len());
        let mut began = 0;
        for turn in &conversation.turns {
            let borders = turn.pauses.iter().flat_map(|(from, to)| [*from, *to]);
            let borders: Vec<usize> = [began]
                .into_iter()
                .chain(borders)
                .chain([turn.end])
                .collect();
            assert!(borders.is_sorted() && samples.len() >= turn.end + AFTER - RATE / 10);
            let loudness = |sound: &[i16]| {
                let squares = sound.iter().map(|sample| f64::from(*sample).powi(2));
                (squares.sum::<f64>() / sound.len() as f64).sqrt()
            };
            let speech = loudness(
                &samples[began + BEFORE..turn.pauses.first().map_or(turn.end, |pause| pause.0)],
            );
            for (from, to) in turn.pauses.iter().chain([&(turn.end, turn.end + AFTER)]) {
                let quiet = loudness(&samples[from + FADE..to - FADE]);
                assert!(quiet < speech / 5.0, "{quiet} {speech}");
            }
            began = turn.end + AFTER;
        }
    }
}
