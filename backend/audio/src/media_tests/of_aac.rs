//! AAC, with ffmpeg as the judge.

use std::{ops::Range, process::Command};

use symphonia::core::{
    audio::Position,
    codecs::audio::{AudioCodecParameters, well_known::CODEC_ID_AAC},
};

use super::{Container, SECOND, aac, frequency, read_window, recording, span};

/// The same in AAC of high efficiency, which ffmpeg decodes but does not encode.
pub(super) fn high_efficiency(
    seconds: usize,
    options: &syom::EncodeOptions,
    channels: usize,
) -> Vec<u8> {
    muxed(&encoded(seconds, options, channels))
}

/// The same as an ADTS stream, which begins with a tag of ID3.
fn encoded(seconds: usize, options: &syom::EncodeOptions, channels: usize) -> Vec<u8> {
    const HZ: u32 = 44_100;
    let wave = |at: usize| {
        let second = at as f32 / HZ as f32;
        let tone = second * (300.0 + 100.0 * second.floor());
        0.4 * (std::f32::consts::TAU * tone.fract()).sin()
    };
    let sound: Vec<f32> = (0..seconds * HZ as usize).map(wave).collect();
    syom::encode_with(&vec![sound; channels], HZ, options).unwrap()
}

/// A file of MPEG-4 with the packets of an ADTS stream.
fn muxed(adts: &[u8]) -> Vec<u8> {
    test_sounds::converted(adts, "a.m4a", &["-c", "copy"])
}

/// The loudness of each tenth of a second.
fn loudness(samples: &[i16]) -> Vec<f64> {
    let square = |sample: &i16| f64::from(*sample).powi(2);
    let (tenths, _) = samples.as_chunks::<{ SECOND / 10 }>();
    let mean = |tenth: &[i16]| tenth.iter().map(square).sum::<f64>() / tenth.len() as f64;
    tenths.iter().map(|tenth| mean(tenth).sqrt()).collect()
}

#[test]
fn aac_is_mixed_down_and_sounds_as_ffmpeg_has_it() {
    let options = syom::EncodeOptions::adts;
    // The same in each channel; that for low tones has none of it.
    let all_of = |layout: &str, channels: usize| {
        let channels: Vec<String> = (0..channels).map(|at| format!("c{at}=c0")).collect();
        let pan = format!("pan={layout}|{}", channels.join("|"));
        recording("a.m4a", 3, &["-af", &pan, "-c:a", "aac"])
    };
    for (name, file) in [
        ("mono", all_of("mono", 1)),
        ("2.1", all_of("2.1", 3)),
        ("5.1", all_of("5.1", 6)),
        ("7.1", all_of("7.1", 8)),
        ("HE", high_efficiency(3, &options().with_he(true), 2)),
        ("HE v2", high_efficiency(3, &options().with_he_v2(true), 2)),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.m4a");
        std::fs::write(&path, &file).unwrap();
        let mut ffmpeg = Command::new("ffmpeg");
        ffmpeg.args(["-v", "error", "-i"]).arg(path);
        ffmpeg.args(["-ac", "1", "-ar", "16000", "-f", "s16le", "-"]);
        let output = ffmpeg.output().unwrap().stdout;
        let (samples, _) = output.as_chunks::<2>();
        let samples: Vec<i16> = samples.iter().copied().map(i16::from_le_bytes).collect();
        let expected = loudness(&samples);
        assert!(expected.len() >= 28 && expected[10] > 1_000.0, "{name}");
        let window = read_window(&file, Container::Mp4, span(0, 4 * SECOND)).unwrap();
        let heard = loudness(&window.samples);
        assert!(heard.len().abs_diff(expected.len()) <= 2, "{name}");
        for (heard, expected) in heard.iter().zip(&expected).skip(3).take(20) {
            let ratio = heard / expected;
            assert!((0.85..1.15).contains(&ratio), "{name}: {ratio}");
        }
    }
}

#[test]
fn aac_of_other_kinds_is_refused_by_name() {
    let mut parameters = AudioCodecParameters::default();
    parameters.for_codec(CODEC_ID_AAC);
    let kind = |parameters: &AudioCodecParameters| match aac::Aac::of(parameters) {
        Ok(_) => "decoded".to_owned(),
        Err(error) => error.to_string(),
    };
    assert!(kind(&parameters).contains("without its configuration"));
    // Scalable.
    parameters.with_extra_data(Box::from([0x32, 0x10]));
    assert!(kind(&parameters).contains("this kind of AAC"));
    let mut bare = AudioCodecParameters::default();
    bare.for_codec(CODEC_ID_AAC).with_sample_rate(48_000);
    bare.with_channels(Position::FRONT_LEFT.into());
    assert_eq!(kind(&bare), "decoded");
}

fn number(bits: &[bool]) -> usize {
    let add = |number: usize, bit: &bool| 2 * number + usize::from(*bit);
    bits.iter().fold(0, add)
}

/// Where the content of a fill element is that begins here. Source: ISO/IEC 14496-3, 4.4.2.7.
fn fill_element(bits: &[bool], at: usize) -> Option<Range<usize>> {
    let read = |from: usize, most: usize| Some(number(bits.get(from..from + most)?));
    if read(at, 3)? != 6 {
        return None;
    }
    let (begin, bytes) = match read(at + 3, 4)? {
        15 => (at + 15, 14 + read(at + 7, 8)?),
        bytes => (at + 7, bytes),
    };
    let end = begin + 8 * bytes;
    (end <= bits.len()).then_some(begin..end)
}

/// True if nothing but fill elements comes from here to the end of a packet.
fn is_filled(bits: &[bool], mut at: usize) -> bool {
    while let Some(content) = fill_element(bits, at) {
        at = content.end;
    }
    let is_end = bits.get(at..at + 3).is_some_and(|id| number(id) == 7);
    is_end && bits.len() < at + 3 + 8
}

/// Takes the header of spectral band replication out of a packet, which stays as long as it is. Returns true if there was one.
fn take_header(packet: &mut [u8]) -> bool {
    /// Its bits, where it has no further parts.
    const HEADER: usize = 16;
    /// The kind of the element, and a flag that a header follows.
    const BEFORE: usize = 5;
    let mut bits = Vec::new();
    for byte in &*packet {
        bits.extend((0..8).rev().map(|place| (byte >> place) & 1 == 1));
    }
    for at in 0..bits.len() {
        let Some(content) = fill_element(&bits, at) else {
            continue;
        };
        let Range { start, end } = content;
        if end - start > BEFORE + HEADER
            && number(&bits[start..start + BEFORE]) == 0b11011
            && is_filled(&bits, end)
        {
            bits[start + BEFORE - 1] = false;
            bits.copy_within(start + BEFORE + HEADER..end, start + BEFORE);
            bits[end - HEADER..end].fill(false);
            for (byte, bits) in packet.iter_mut().zip(bits.chunks(8)) {
                *byte = u8::try_from(number(bits)).unwrap();
            }
            return true;
        }
    }
    false
}

/// The bytes of the tag of ID3 that a file begins with. Source: ID3 tag version 2.4.0, section 3.1.
fn tag_bytes(file: &[u8]) -> usize {
    const HEADER: usize = 10;
    assert!(file.starts_with(b"ID3"));
    let size = file[6..HEADER].iter();
    HEADER + size.fold(0_usize, |size, byte| size << 7 | usize::from(*byte))
}

/// The content of each frame of an ADTS stream. Source: ISO/IEC 14496-3, 1.A.2.2.
fn packets_of(adts: &mut [u8]) -> Vec<&mut [u8]> {
    const HEADER: usize = 7;
    const CHECKSUM: usize = 2;
    let mut packets = Vec::new();
    let mut rest = adts;
    while !rest.is_empty() {
        assert!(rest[0] == 0xFF && rest[1] & 0xF6 == 0xF0, "no frame");
        let is_protected = rest[1] & 1 == 0;
        let [high, middle, low] = [rest[3] & 3, rest[4], rest[5]].map(usize::from);
        let length = high << 11 | middle << 3 | low >> 5;
        let begin = HEADER + if is_protected { CHECKSUM } else { 0 };
        assert!(length > begin, "a frame of {length} bytes");
        let (frame, others) = std::mem::take(&mut rest).split_at_mut(length);
        packets.push(&mut frame[begin..]);
        rest = others;
    }
    packets
}

/// An encoder may say once how the upper half of the spectrum is made of the lower one, and nothing more of it for the rest of the file.
#[test]
fn packets_that_lean_on_the_first_one_are_heard_from_any_place() {
    let mut adts = encoded(6, &syom::EncodeOptions::adts().with_he(true), 1);
    let begin = tag_bytes(&adts);
    let packets = packets_of(&mut adts[begin..]).into_iter();
    let taken = packets.skip(1).map(take_header);
    let taken = taken.filter(|was_there| *was_there).count();
    assert!(taken > 100, "{taken}");
    let file = muxed(&adts);
    for second in [0, 3, 4] {
        let from = second * SECOND + SECOND / 2;
        let window = read_window(&file, Container::Mp4, span(from, SECOND / 4)).unwrap();
        assert_eq!(window.samples.len(), SECOND / 4);
        let (heard, expected) = (frequency(&window.samples), 300.0 + 100.0 * second as f64);
        assert!(
            (heard - expected).abs() < 20.0,
            "{heard} Hz in second {second}"
        );
    }
}
