//! Tracks of QuickTime and MPEG-4 files, and the channels of a track.

use super::{Container, MediaError, SECOND, Window, film, frequency, read_window, recording, span};

fn loudest(window: &Window) -> u16 {
    let samples = window.samples.iter().map(|sample| sample.unsigned_abs());
    samples.max().unwrap_or(0)
}

#[test]
fn samples_in_quicktime_are_decoded_in_their_order_of_bytes() {
    for codec in [
        "pcm_s16be",
        "pcm_s24be",
        "pcm_s24le",
        "pcm_s32be",
        "pcm_s32le",
        "pcm_f32be",
        "pcm_f32le",
        "pcm_f64be",
        "pcm_f64le",
        "pcm_s8",
        "pcm_u8",
        "pcm_alaw",
        "pcm_mulaw",
        "alac",
    ] {
        let file = recording("a.mov", 5, &["-c:a", codec]);
        for second in [1, 4] {
            let window = span(second * SECOND, SECOND);
            let window = read_window(&file, Container::Mp4, window);
            let window = window.unwrap_or_else(|error| panic!("{codec}: {error}"));
            let expected = 300.0 + 100.0 * second as f64;
            let found = frequency(&window.samples);
            assert!((found - expected).abs() < 10.0, "{codec}: {found}");
            // As loud as it was made.
            let found = loudest(&window);
            assert!((12_500..14_000).contains(&found), "{codec}: {found}");
        }
    }
}

#[test]
fn kinds_that_are_not_decoded_are_named_in_quicktime() {
    for (name, codec, expected) in [
        ("a.mov", "ac3", "AC-3"),
        ("a.mov", "adpcm_ima_qt", "IMA ADPCM of QuickTime"),
        ("a.mov", "adpcm_ima_wav", "IMA ADPCM in QuickTime"),
        ("a.mov", "adpcm_ms", "Microsoft ADPCM in QuickTime"),
        ("a.mov", "mp2", "MPEG layer 2"),
        ("a.mp4", "mp2", "MPEG layer 2"),
    ] {
        let expected = Err(MediaError::Unsupported(expected.to_owned()));
        for file in [recording(name, 1, &["-c:a", codec]), film(name, 1, codec)] {
            let refused = read_window(&file, Container::Mp4, span(0, SECOND));
            assert_eq!(refused, expected, "{codec} in {name}");
        }
    }
}

#[test]
fn a_channel_that_is_the_inverse_of_the_other_leaves_no_silence() {
    let inverse = ["-af", "pan=stereo|c0=c0|c1=-1*c0", "-c:a"];
    for (name, container, codec) in [
        ("a.wav", Container::Wav, "pcm_s16le"),
        ("a.m4a", Container::Mp4, "aac"),
        ("a.webm", Container::Webm, "libopus"),
        ("a.mp3", Container::Mp3, "libmp3lame"),
    ] {
        let file = recording(name, 2, &[&inverse[..], &[codec]].concat());
        let window = read_window(&file, container, span(SECOND / 2, SECOND)).unwrap();
        let found = loudest(&window);
        assert!(found > 8_000, "{codec}: {found}");
    }
}

#[test]
fn the_first_track_that_is_not_silent_is_read() {
    let silence = ["-f", "lavfi", "-t", "5", "-i", "anullsrc=r=44100:cl=mono"];
    let tracks = |name, maps: [&str; 2], codec| {
        let maps = ["-map", maps[0], "-map", maps[1], "-c:a", codec];
        recording(name, 5, &[&silence[..], &maps].concat())
    };
    for (name, container, codec) in [
        ("a.mp4", Container::Mp4, "aac"),
        ("a.mov", Container::Mp4, "pcm_s16le"),
        ("a.mkv", Container::Webm, "flac"),
    ] {
        for maps in [["1:a", "0:a"], ["0:a", "1:a"]] {
            let file = tracks(name, maps, codec);
            for second in [0, 4] {
                let window = span(second * SECOND, SECOND);
                let window = read_window(&file, container, window).unwrap();
                let found = loudest(&window);
                assert!(found > 8_000, "{name} {maps:?}: {found}");
            }
        }
        // Where all are silent, that is no error.
        let file = tracks(name, ["1:a", "1:a"], codec);
        let window = read_window(&file, container, span(0, SECOND)).unwrap();
        assert!(loudest(&window) < 100, "{name}");
    }
    // A track that is not decoded does not hide one that is.
    let both = [
        "-map", "0:a", "-map", "0:a", "-c:a:0", "ac3", "-c:a:1", "aac",
    ];
    let file = recording("a.mp4", 2, &both);
    let window = read_window(&file, Container::Mp4, span(0, SECOND)).unwrap();
    assert!(loudest(&window) > 8_000);
}
