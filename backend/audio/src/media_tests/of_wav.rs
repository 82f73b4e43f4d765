//! Kinds of sound in WAV files.

use super::{Container, MediaError, SECOND, read_window, recording, span};

/// What follows the kind in an identifier of a sub-format.
const OF_KINDS: &[u8; 14] = b"\0\0\0\0\x10\0\x80\0\0\xAA\0\x38\x9B\x71";

/// A WAV file whose format is extensible instead, with this identifier of a sub-format.
fn extensible(wav: &[u8], sub_format: &[u8]) -> Vec<u8> {
    assert_eq!(&wav[12..16], b"fmt ");
    let length = u32::from_le_bytes(wav[16..20].try_into().unwrap());
    let (format, rest) = wav[20..].split_at(length.try_into().unwrap());
    let mut file = wav[..16].to_vec();
    file.extend(40_u32.to_le_bytes());
    file.extend(0xFFFE_u16.to_le_bytes());
    file.extend_from_slice(&format[2..16]);
    file.extend(22_u16.to_le_bytes());
    // The samples of a block or the bits of a sample, and a speaker in the middle.
    file.extend_from_slice(format.get(18..20).unwrap_or(&format[14..16]));
    file.extend(4_u32.to_le_bytes());
    file.extend_from_slice(sub_format);
    file.extend_from_slice(rest);
    let length = u32::try_from(file.len() - 8).unwrap();
    file[4..8].copy_from_slice(&length.to_le_bytes());
    file
}

fn sub_format(tag: u16) -> Vec<u8> {
    [&tag.to_le_bytes()[..], OF_KINDS].concat()
}

#[test]
fn sub_formats_are_decoded_as_their_kinds() {
    for (codec, tag) in [
        ("pcm_s16le", 1),
        ("adpcm_ms", 2),
        ("pcm_alaw", 6),
        ("pcm_mulaw", 7),
        ("adpcm_ima_wav", 0x11),
        ("libmp3lame", 0x55),
    ] {
        let plain = recording("a.wav", 3, &["-c:a", codec]);
        assert_eq!(plain[20..22], u16::to_le_bytes(tag), "{codec}");
        let extensible = extensible(&plain, &sub_format(tag));
        for from in [0, SECOND] {
            let read = |file: &[u8]| read_window(file, Container::Wav, span(from, SECOND)).unwrap();
            let window = read(&plain);
            assert!(
                window.samples.iter().any(|sample| sample.abs() > 1_000),
                "{codec}"
            );
            assert_eq!(read(&extensible).samples, window.samples, "{codec}");
        }
    }
}

/// A WAV file whose format has this length instead.
fn with_format_of(wav: &[u8], length: usize) -> Vec<u8> {
    assert_eq!(&wav[12..16], b"fmt ");
    let stored = u32::from_le_bytes(wav[16..20].try_into().unwrap());
    let (format, rest) = wav[20..].split_at(stored.try_into().unwrap());
    let mut format = format.to_vec();
    format.resize(length, 0);
    let mut file = wav[..16].to_vec();
    file.extend(u32::try_from(length).unwrap().to_le_bytes());
    file.extend(format);
    file.extend_from_slice(rest);
    let length = u32::try_from(file.len() - 8).unwrap();
    file[4..8].copy_from_slice(&length.to_le_bytes());
    file
}

#[test]
fn formats_without_their_extension_are_decoded() {
    for codec in ["pcm_alaw", "pcm_mulaw", "adpcm_ms", "adpcm_ima_wav"] {
        let whole = recording("a.wav", 1, &["-c:a", codec]);
        let read = |file: &[u8]| read_window(file, Container::Wav, span(0, SECOND)).unwrap();
        let window = read(&whole);
        assert!(window.samples.iter().any(|sample| sample.abs() > 1_000));
        for length in [16, 18, 20] {
            let other = with_format_of(&whole, length);
            let samples = read(&other).samples;
            assert_eq!(samples, window.samples, "{codec} {length}");
        }
    }
}

#[test]
fn kinds_that_are_not_decoded_are_named() {
    let wav = recording("a.wav", 1, &[]);
    let of_kind = |tag: u16| {
        let mut file = wav.clone();
        file[20..22].copy_from_slice(&tag.to_le_bytes());
        file
    };
    for (file, expected) in [
        (of_kind(0x31), "GSM 6.10 (0x0031) in WAV"),
        (of_kind(0x83), "G.729 (0x0083) in WAV"),
        (of_kind(0x45), "G.726 (0x0045) in WAV"),
        (of_kind(0x4321), "an unknown kind (0x4321) in WAV"),
        (
            extensible(&wav, &sub_format(0x31)),
            "GSM 6.10 (0x0031) in WAV",
        ),
        (
            extensible(&wav, &[0xAB; 16]),
            "an unknown sub-format (ABABABABABABABABABABABABABABABAB) in WAV",
        ),
    ] {
        let refused = read_window(&file, Container::Wav, span(0, SECOND)).unwrap_err();
        assert_eq!(refused, MediaError::Unsupported(expected.to_owned()));
    }
}

#[test]
fn formats_that_are_cut_off_are_damaged() {
    let wav = recording("a.wav", 1, &["-c:a", "adpcm_ms"]);
    let whole = extensible(&wav, &sub_format(2));
    // Up to the end of the format.
    for length in 0..60 {
        let refused = read_window(&whole[..length], Container::Wav, span(0, SECOND)).unwrap_err();
        assert!(
            matches!(refused, MediaError::Malformed(_)),
            "{length}: {refused}"
        );
    }
}
