//! Long sound in parts that a transcriber takes: cut at pauses, and the words of the parts put together again.

/// The rate of the sound.
pub const RATE_HZ: usize = 16_000;
/// The longest part, in samples.
pub const MAX_PART: usize = 15 * RATE_HZ;
/// The pause that is looked for, in samples.
const PAUSE: usize = RATE_HZ / 5;
/// What stays before an utterance and behind it: detectors hear soft beginnings and ends late.
const BEFORE: usize = RATE_HZ / 10;
const AFTER: usize = RATE_HZ / 5;
/// The probability from which on somebody speaks.
const SPEECH: f32 = 0.5;
/// What is quieter than this on average has nothing to be heard in it: 60 dB below the loudest that there is.
const SILENCE: u64 = 32;

/// Cuts sound at pauses into parts of [`MAX_PART`] samples at most; nothing is left out.
#[must_use]
pub fn parts(samples: &[i16]) -> Vec<&[i16]> {
    parts_of(samples, MAX_PART)
}

/// Cuts sound at pauses into parts of so many samples at most; nothing is left out.
#[must_use]
pub fn parts_of(samples: &[i16], most: usize) -> Vec<&[i16]> {
    let mut parts = Vec::new();
    let mut rest = samples;
    while let Some(longest) = rest.get(..most) {
        let (part, after) = rest.split_at(pause(longest));
        parts.push(part);
        rest = after;
    }
    if !rest.is_empty() {
        parts.push(rest);
    }
    parts
}

/// Cuts sound before and behind its pauses that are as long as `shortest`, by the probability of each frame that somebody speaks, and into
/// parts of `most` samples. Nothing is left out: what is between is a part, too.
#[must_use]
pub fn utterances<'s>(
    samples: &'s [i16],
    scores: &[f32],
    frame: usize,
    shortest: usize,
    most: usize,
) -> Vec<&'s [i16]> {
    let mut places = Vec::new();
    let mut spoken = None;
    for (at, _) in scores
        .iter()
        .enumerate()
        .filter(|(_, score)| **score >= SPEECH)
    {
        let begin = at * frame;
        if let Some(end) = spoken
            && begin - end >= shortest.max(BEFORE + AFTER)
        {
            places.extend([end + AFTER, begin - BEFORE]);
        }
        spoken = Some(begin + frame);
    }
    let mut parts = Vec::new();
    let (mut rest, mut begin) = (samples, 0);
    for place in places {
        let (part, after) = rest.split_at((place - begin).min(rest.len()));
        parts.extend(parts_of(part, most));
        (rest, begin) = (after, place);
    }
    parts.extend(parts_of(rest, most));
    parts
}

/// Whether nothing is to be heard.
#[must_use]
pub fn is_silent(samples: &[i16]) -> bool {
    let (moments, rest) = samples.as_chunks::<PAUSE>();
    let moments = moments.iter().map(<[i16; PAUSE]>::as_slice);
    let mut moments = moments.chain([rest]).filter(|moment| !moment.is_empty());
    moments.all(|moment| power(moment) < SILENCE * SILENCE * moment.len() as u64)
}

/// The words of all parts. Between those of a script without spaces there is none.
#[must_use]
pub fn joined<P: AsRef<str>>(parts: &[P]) -> String {
    let mut words = String::new();
    for part in parts.iter().map(|part| part.as_ref().trim()) {
        let is_spaced = |character: Option<char>| character.is_some_and(|c| !is_unspaced(c));
        if is_spaced(words.chars().next_back()) && is_spaced(part.chars().next()) {
            words.push(' ');
        }
        words.push_str(part);
    }
    words
}

/// Whether a character belongs to a script whose words stand side by side: Thai, Japanese, Chinese.
fn is_unspaced(character: char) -> bool {
    matches!(character, '\u{e00}'..='\u{e7f}' | '\u{3000}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}')
}

fn power(moment: &[i16]) -> u64 {
    let squares = moment.iter().map(|sample| i64::from(*sample).pow(2));
    squares.sum::<i64>().unsigned_abs()
}

/// The middle of the quietest moment in the later half.
fn pause(samples: &[i16]) -> usize {
    let half = samples.len() / 2;
    let (moments, _) = samples[half..].as_chunks::<PAUSE>();
    moments
        .iter()
        .enumerate()
        .min_by_key(|(_, moment)| power(moment.as_slice()))
        .map_or(samples.len(), |(at, _)| half + at * PAUSE + PAUSE / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_joined_as_their_script_is_written() {
        assert_eq!(
            joined(&["go forward", "", " ten meters "]),
            "go forward ten meters"
        );
        assert_eq!(
            joined(&["今天天气", "很好。", "你好吗"]),
            "今天天气很好。你好吗"
        );
        assert_eq!(
            joined(&["안녕하세요.", "반갑습니다"]),
            "안녕하세요. 반갑습니다"
        );
        assert_eq!(joined(&["", ""]), "");
    }

    #[test]
    fn long_sound_is_cut_where_nobody_speaks() {
        let speech = |seconds: usize| vec![9_000; seconds * RATE_HZ];
        let pause = vec![3; RATE_HZ];
        let sound = [speech(11), pause, speech(20)].concat();
        let parts = parts(&sound);
        assert_eq!(parts.concat(), sound, "nothing is lost");
        assert!(parts.iter().all(|part| part.len() <= MAX_PART));
        let first = parts[0].len() as f64 / RATE_HZ as f64;
        assert!((11.0..12.0).contains(&first), "cut at {first} s");
        assert!(super::parts(&[]).is_empty());
        assert_eq!(super::parts(&sound[..MAX_PART - 1]).len(), 1);
    }

    #[test]
    fn utterances_are_cut_out_of_their_pauses() {
        const FRAME: usize = 512;
        let sound: Vec<i16> = (0..60 * FRAME).map(|at| (at / FRAME) as i16).collect();
        let mut scores = vec![0.1; 60];
        for spoken in [5..10, 12..20, 45..47] {
            scores[spoken].fill(0.9);
        }
        let cut =
            |scores: &[f32], shortest, most| utterances(&sound, scores, FRAME, shortest, most);
        let parts = cut(&scores, 20 * FRAME, MAX_PART);
        assert_eq!(parts.concat(), sound, "nothing is lost");
        let ends = [20 * FRAME + AFTER, 45 * FRAME - BEFORE, 60 * FRAME];
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        let expected = [ends[0], ends[1] - ends[0], ends[2] - ends[1]];
        assert_eq!(lengths, expected, "the pause of two frames is too short");
        assert_eq!(cut(&scores, 30 * FRAME, MAX_PART), [&sound[..]]);
        let parts = cut(&scores, 1, 12 * FRAME);
        assert_eq!(parts.concat(), sound);
        assert!(parts.len() > 3 && parts.iter().all(|part| part.len() <= 12 * FRAME));
        assert_eq!(cut(&[0.0; 60], FRAME, MAX_PART), [&sound[..]]);
        assert_eq!(cut(&[1.0; 60], FRAME, MAX_PART), [&sound[..]]);
        assert!(utterances(&[], &[], FRAME, FRAME, MAX_PART).is_empty());
    }

    #[test]
    fn a_word_in_a_long_silence_is_heard() {
        let mut sound = vec![5; MAX_PART];
        assert!(is_silent(&sound) && is_silent(&[]));
        sound[200_000..204_000].fill(800);
        assert!(!is_silent(&sound));
    }
}
