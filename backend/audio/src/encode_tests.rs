//! What the files hold, as other decoders understand them.

use std::{
    f64::consts::TAU,
    io::{Cursor, Read as _, Write as _},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use proptest::prelude::*;
use symphonia::{
    core::{
        formats::{TrackType, probe::Hint},
        io::MediaSourceStream,
    },
    default::{get_codecs, get_probe},
};

use super::*;
use crate::ogg_reader::decode_ogg;

/// How much a file may be longer or shorter than the sound: 20 ms.
const TOLERANCE: i64 = 480;

/// A sound that is never the same twice and goes on to its last sample: a rising tone in syllables.
fn sound(rate_hz: u32, seconds: f64) -> Vec<i16> {
    let rate = f64::from(rate_hz);
    (0..(seconds * rate) as usize)
        .map(|at| {
            let time = at as f64 / rate;
            let tone = (TAU * (200.0 + 60.0 * time) * time).sin();
            let syllable = 0.6 + 0.4 * (TAU * 3.0 * time).sin();
            (tone * syllable * 12_000.0) as i16
        })
        .collect()
}

fn encode(format: Format, rate_hz: u32, samples: &[i16], piece: usize) -> Vec<u8> {
    let mut encoder = Encoder::new(format, rate_hz, 7).unwrap();
    let mut bytes = Vec::new();
    for piece in samples.chunks(piece) {
        bytes.extend(encoder.push(piece).unwrap());
    }
    bytes.extend(encoder.finish().unwrap());
    bytes
}

/// The samples at 24,000 Hz, as ffmpeg decodes them.
fn ffmpeg(format: Format, file: Vec<u8>) -> Vec<i16> {
    let mut command = Command::new("ffmpeg");
    command.args(["-v", "error"]);
    if format == Format::Pcm {
        command.args(["-f", "s16le", "-ar", "24000", "-ac", "1"]);
    }
    let mut child = command
        .args([
            "-i", "pipe:0", "-f", "s16le", "-ar", "24000", "-ac", "1", "pipe:1",
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("ffmpeg is installed");
    let mut input = child.stdin.take().unwrap();
    let writing = thread::spawn(move || input.write_all(&file));
    let mut bytes = Vec::new();
    child
        .stdout
        .take()
        .unwrap()
        .read_to_end(&mut bytes)
        .unwrap();
    writing.join().unwrap().unwrap();
    assert!(child.wait().unwrap().success());
    let (pairs, _) = bytes.as_chunks::<2>();
    pairs.iter().map(|pair| i16::from_le_bytes(*pair)).collect()
}

/// The samples of an MP3 file, as symphonia decodes them.
fn symphonia_mp3(file: Vec<u8>) -> Vec<i16> {
    let source = MediaSourceStream::new(Box::new(Cursor::new(file)), Default::default());
    let mut hint = Hint::new();
    hint.with_extension("mp3");
    let mut format = get_probe()
        .probe(&hint, source, Default::default(), Default::default())
        .unwrap();
    let track = format.default_track(TrackType::Audio).unwrap();
    let parameters = track.codec_params.as_ref().and_then(|codec| codec.audio());
    let mut decoder = get_codecs()
        .make_audio_decoder(parameters.unwrap(), &Default::default())
        .unwrap();
    let (mut samples, mut piece) = (Vec::<i16>::new(), Vec::new());
    while let Some(packet) = format.next_packet().unwrap() {
        let sound = decoder.decode(&packet).unwrap();
        assert_eq!(
            (sound.spec().rate(), sound.spec().channels().count()),
            (24_000, 1)
        );
        sound.copy_to_vec_interleaved(&mut piece);
        samples.append(&mut piece);
    }
    samples
}

fn power(samples: &[i16]) -> f64 {
    let sum: f64 = samples.iter().map(|s| f64::from(*s).powi(2)).sum();
    sum / samples.len().max(1) as f64
}

/// How much of `expected` is missing in `decoded` when it is moved by `lag` samples, in parts of its power.
fn difference(decoded: &[i16], expected: &[i16], lag: i64) -> f64 {
    let at = |index: usize| usize::try_from(index as i64 + lag).ok();
    let differences = expected.iter().enumerate().map(|(index, sample)| {
        let other = at(index).and_then(|at| decoded.get(at)).copied();
        sample.saturating_sub(other.unwrap_or_default())
    });
    power(&differences.collect::<Vec<_>>()) / power(expected)
}

#[test]
fn every_format_lasts_as_long_as_the_sound() {
    let sounds = [
        (16_000, 40_000),
        (22_050, 1),
        (22_050, 441),
        (22_050, 4_801),
        (22_050, 30_001),
        (24_000, 576),
        (44_100, 40_000),
        (48_000, 40_000),
    ];
    for (rate_hz, samples) in sounds {
        let sound = vec![1_000; samples];
        let expected = (samples as u64 * 24_000).div_ceil(rate_hz.into()) as i64;
        for format in Format::ALL {
            let file = encode(format, rate_hz, &sound, 4_096);
            let decoded = ffmpeg(format, file).len() as i64;
            let (least, most) = match format {
                // Not a vibration of the tail is missing that anybody could hear.
                Format::Mp3 => (-96, TOLERANCE),
                // ffmpeg converts from 48,000 Hz and rounds.
                Format::Opus => (-2, 2),
                Format::Wav | Format::Pcm => (0, 0),
            };
            let longer = decoded - expected;
            assert!(
                (least..=most).contains(&longer),
                "{format:?}, {samples} at {rate_hz} Hz: {longer} samples longer"
            );
        }
    }
}

#[test]
fn the_sound_begins_where_it_began_and_ends_where_it_ended() {
    let sound = sound(24_000, 2.3);
    for format in Format::ALL {
        let decoded = ffmpeg(format, encode(format, 24_000, &sound, 4_096));
        let best = (-60..=60_i64)
            .min_by(|a, b| {
                let of = |lag: &i64| difference(&decoded, &sound[1_000..6_000], lag + 1_000);
                of(a).total_cmp(&of(b))
            })
            .unwrap();
        assert!(best.abs() <= 2, "{format:?} is {best} samples late");
        for part in [0..4_800, sound.len() - 4_800..sound.len() - 100] {
            let lost = difference(&decoded, &sound[part.clone()], part.start as i64 + best);
            assert!(lost < 0.1, "{format:?} lost {lost} of {part:?}");
        }
    }
}

#[test]
fn files_grow_while_the_sound_does() {
    let sound = sound(22_050, 1.0);
    for format in Format::ALL {
        let mut encoder = Encoder::new(format, 22_050, 7).unwrap();
        let bytes = encoder.push(&sound).unwrap().len();
        let held = encoder.held_bytes();
        let rest = encoder.finish().unwrap();
        let longer = rest.capacity() - rest.len();
        let rest = rest.len();
        if format.is_streamed() {
            assert!(bytes > 8 * rest, "{format:?}: {bytes} and then {rest}");
            assert_eq!(held, 0, "{format:?}");
        } else {
            assert_eq!((bytes, rest, longer), (0, 44 + 48_000, 0));
            assert!((40_000..=rest).contains(&held), "{held} are held");
        }
    }
}

#[test]
fn mp3_is_what_its_header_says() {
    let file = encode(Format::Mp3, 24_000, &sound(24_000, 1.0), 4_096);
    assert_eq!(file.len() % 192, 0, "whole frames of 192 bytes");
    for frame in file.chunks(192) {
        // The padding bit is never needed at this rate.
        assert_eq!(frame[..3], [0xff, 0xf3, 0x84], "MPEG-2, 64 kb/s, 24,000 Hz");
        assert_eq!(frame[3] >> 6, 3, "mono");
    }
}

#[test]
fn another_decoder_agrees_about_mp3() {
    for samples in [1, 480, 576, 10_000, 24_001] {
        let sound = &sound(24_000, 1.1)[..samples];
        let decoded = symphonia_mp3(encode(Format::Mp3, 24_000, sound, 4_096));
        let longer = decoded.len() as i64 - samples as i64;
        assert!(
            (-96..=TOLERANCE).contains(&longer),
            "{samples}: {longer} longer"
        );
        if samples >= 10_000 {
            let lost = difference(&decoded, &sound[..samples - 100], 0);
            assert!(lost < 0.1, "{samples}: lost {lost}");
        }
    }
}

#[test]
fn what_is_written_as_ogg_can_be_read() {
    for samples in [1, 479, 480, 24_000, 100_003] {
        let sound_at_24 = &sound(24_000, 4.2)[..samples];
        let file = encode(Format::Opus, 24_000, sound_at_24, 777);
        let read = decode_ogg(&file, Duration::from_secs(5)).unwrap();
        assert_eq!(read.len(), (samples * 2).div_ceil(3));
        let expected = sound(16_000, 4.2);
        let heard = 1_000..read.len().saturating_sub(1_000);
        if !heard.is_empty() {
            let lost = difference(&read, &expected[heard], 1_000);
            assert!(lost < 0.1, "{samples}: lost {lost}");
        }
        // Two streams behind each other are one recording.
        let mut other = Encoder::new(Format::Opus, 24_000, 8).unwrap();
        let other = [other.push(sound_at_24).unwrap(), other.finish().unwrap()].concat();
        let both = decode_ogg(&[file, other].concat(), Duration::from_secs(10)).unwrap();
        assert_eq!(both.len(), 2 * read.len());
    }
}

#[test]
fn odd_rates_are_refused() {
    for format in Format::ALL {
        let refused = Encoder::new(format, 47_999, 7).err();
        assert!(matches!(refused, Some(EncodeError::Rate(_))), "{format:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn pieces_of_any_size_give_the_same_file(piece in 1_usize..5_000, samples in 1_usize..30_000) {
        let sound = sound(22_050, 1.4);
        let sound = &sound[..samples];
        for format in Format::ALL {
            let whole = encode(format, 22_050, sound, samples);
            prop_assert!(encode(format, 22_050, sound, piece) == whole, "{format:?}");
        }
    }
}
