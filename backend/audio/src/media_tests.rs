use colloquy_fuzz::fuzz;

use super::*;

#[path = "media_tests/of_aac.rs"]
mod of_aac;
#[path = "media_tests/of_tracks.rs"]
mod of_tracks;
#[path = "media_tests/of_wav.rs"]
mod of_wav;

use of_aac::high_efficiency;

const RATE_HZ: u32 = 16_000;
const SECOND: usize = RATE_HZ as usize;

/// So many samples from one on.
fn span(from: usize, most: usize) -> Span {
    Span {
        rate_hz: RATE_HZ,
        from: from as u64,
        most,
    }
}

/// So many seconds of tones that rise with each second, made by ffmpeg.
fn recording(name: &str, seconds: u32, arguments: &[&str]) -> Vec<u8> {
    let sound = format!("aevalsrc=0.4*sin(2*PI*t*(300+100*floor(t))):s=44100:d={seconds}");
    test_sounds::generated(&sound, name, arguments)
}

/// A film with it.
fn film(name: &str, seconds: u32, codec: &str) -> Vec<u8> {
    let pictures = format!("color=c=red:s=64x64:r=5:d={seconds}");
    let arguments = [
        "-f",
        "lavfi",
        "-i",
        &pictures,
        "-c:v",
        "mpeg4",
        "-c:a",
        codec,
        "-shortest",
    ];
    recording(name, seconds, &arguments)
}

/// The frequency of some sound, by how often it crosses zero.
fn frequency(samples: &[i16]) -> f64 {
    let crossed = samples
        .windows(2)
        .filter(|pair| pair[0] < 0 && pair[1] >= 0);
    crossed.count() as f64 * f64::from(RATE_HZ) / samples.len() as f64
}

fn all() -> Vec<(Container, Vec<u8>)> {
    vec![
        (
            Container::Mp3,
            recording("a.mp3", 6, &["-c:a", "libmp3lame"]),
        ),
        (
            Container::Mp3,
            recording("v.mp3", 6, &["-c:a", "libmp3lame", "-q:a", "5"]),
        ),
        (Container::Wav, recording("a.wav", 6, &[])),
        (
            Container::Wav,
            recording("f.wav", 6, &["-c:a", "pcm_f32le", "-ac", "2"]),
        ),
        (
            Container::Wav,
            recording("m.wav", 6, &["-c:a", "libmp3lame"]),
        ),
        (Container::Flac, recording("a.flac", 6, &[])),
        (Container::Ogg, recording("o.ogg", 6, &["-c:a", "libopus"])),
        (
            Container::Ogg,
            recording(
                "s.ogg",
                6,
                &["-c:a", "libopus", "-ac", "2", "-frame_duration", "60"],
            ),
        ),
        (
            Container::Ogg,
            recording("v.ogg", 6, &["-c:a", "libvorbis"]),
        ),
        (Container::Ogg, recording("f.ogg", 6, &["-c:a", "flac"])),
        (
            Container::Webm,
            recording("o.webm", 6, &["-c:a", "libopus"]),
        ),
        (
            Container::Webm,
            recording("v.webm", 6, &["-c:a", "libvorbis"]),
        ),
        // As browsers record: without a length, an index, or the sizes of its parts.
        (
            Container::Webm,
            recording(
                "l.webm",
                6,
                &["-c:a", "libopus", "-live", "1", "-f", "webm"],
            ),
        ),
        (Container::Mp4, recording("a.m4a", 6, &["-c:a", "aac"])),
        (
            Container::Mp4,
            recording(
                "f.mp4",
                6,
                &["-c:a", "aac", "-movflags", "frag_keyframe+empty_moov"],
            ),
        ),
        (
            Container::Mp4,
            recording("s.m4a", 6, &["-ac", "6", "-c:a", "aac"]),
        ),
        (
            Container::Mp4,
            high_efficiency(6, &syom::EncodeOptions::adts().with_he(true), 1),
        ),
        (Container::Mp4, recording("l.m4a", 6, &["-c:a", "alac"])),
        (Container::Mp4, film("a.mp4", 6, "aac")),
        (Container::Mp4, film("a.mov", 6, "pcm_s16le")),
        (Container::Avi, film("p.avi", 6, "pcm_s16le")),
        (Container::Avi, film("m.avi", 6, "libmp3lame")),
    ]
}

#[test]
fn the_sound_of_all_containers_is_read_from_any_place() {
    for (number, (container, file)) in all().iter().enumerate() {
        let read =
            |from: usize, most: usize| read_window(file, *container, span(from, most)).unwrap();
        let whole = read(0, 60 * SECOND);
        assert!(whole.is_last, "{number}");
        // Encoders put some silence in front and behind.
        assert!(
            whole.samples.len().abs_diff(6 * SECOND) < SECOND / 5,
            "{number}: {}",
            whole.samples.len()
        );
        if let Some(declared) = whole.declared {
            assert!(
                declared.abs_diff(Duration::from_secs(6)) < Duration::from_millis(200),
                "{number}: {declared:?}"
            );
        }
        for second in 0..5 {
            let window = read(second * SECOND + SECOND / 2, SECOND / 4);
            assert!(!window.is_last);
            assert_eq!(window.samples.len(), SECOND / 4);
            let (heard, expected) = (frequency(&window.samples), 300.0 + 100.0 * second as f64);
            assert!(
                (heard - expected).abs() < 20.0,
                "{number}: {heard} Hz in second {second}"
            );
        }
        let end = read(whole.samples.len() + SECOND, SECOND);
        assert!(end.is_last && end.samples.is_empty(), "{number}");
    }
}

/// What was cut out of something that began long before has its own beginning, and files that follow one another in a chain are one.
#[test]
fn time_counts_from_the_first_packet_through_a_chain() {
    let late = ["-output_ts_offset", "500"];
    for (container, name, codec) in [
        (Container::Webm, "late.webm", "libopus"),
        (Container::Ogg, "late.ogg", "libopus"),
        (Container::Ogg, "late.ogg", "libvorbis"),
    ] {
        let file = recording(name, 6, &[&["-c:a", codec][..], &late].concat());
        let read = |from: usize| read_window(&file, container, span(from, SECOND / 4)).unwrap();
        for second in 0..5 {
            let window = read(second * SECOND + SECOND / 2);
            let (heard, expected) = (frequency(&window.samples), 300.0 + 100.0 * second as f64);
            assert!(
                (heard - expected).abs() < 20.0,
                "{codec} {name}: {heard} Hz in second {second}"
            );
        }
        let declared = read(0).declared.unwrap_or(Duration::from_secs(6));
        assert!(
            declared < Duration::from_secs(8),
            "{codec} {name}: {declared:?}"
        );
        let end = read_window(&file, container, span(7 * SECOND, SECOND)).unwrap();
        assert!(end.is_last && end.samples.is_empty(), "{codec} {name}");
    }
    for codec in ["libopus", "libvorbis"] {
        let one = recording("one.ogg", 3, &["-c:a", codec]);
        let chain = [one.clone(), one].concat();
        let whole = read_window(&chain, Container::Ogg, span(0, 60 * SECOND)).unwrap();
        assert!(whole.is_last);
        let length = whole.samples.len();
        assert!(
            length.abs_diff(6 * SECOND) < SECOND / 4,
            "{codec}: {length}"
        );
        let second =
            frequency(&whole.samples[3 * SECOND + SECOND / 4..3 * SECOND + SECOND * 3 / 4]);
        assert!((second - 300.0).abs() < 20.0, "{codec}: {second} Hz");
    }
}

/// The tones of a recording rise with each second from a place on.
#[track_caller]
fn rises(samples: &[i16], from: usize, seconds: usize, what: &str) {
    for second in 0..seconds {
        let at = from + second * SECOND;
        let heard = frequency(&samples[at + SECOND * 2 / 5..at + SECOND * 3 / 5]);
        let expected = 300.0 + 100.0 * second as f64;
        assert!(
            (heard - expected).abs() < 25.0,
            "{what}: {heard} Hz in second {second} from {from} on"
        );
    }
}

/// All of a file, a window after another.
fn in_windows(file: &[u8], container: Container, most: usize) -> Vec<i16> {
    let mut samples = Vec::new();
    loop {
        let window = read_window(file, container, span(samples.len(), most)).unwrap();
        samples.extend(window.samples);
        if window.is_last {
            return samples;
        }
        assert!(samples.len() < 100 * SECOND, "it has no end");
    }
}

#[test]
fn all_files_of_a_chain_are_heard_in_windows() {
    for codec in ["libopus", "libvorbis", "flac"] {
        let files = [3, 5, 2].map(|seconds| recording("one.ogg", seconds, &["-c:a", codec]));
        let chain = files.concat();
        // Windows begin in each of the files, and go on from one to the next.
        for most in [2 * SECOND, 7 * SECOND / 2, 60 * SECOND] {
            let whole = in_windows(&chain, Container::Ogg, most);
            assert!(
                whole.len().abs_diff(10 * SECOND) < SECOND / 3,
                "{codec} {most}: {}",
                whole.len()
            );
            for (begin, seconds) in [(0, 3), (3, 5), (8, 2)] {
                rises(&whole, begin * SECOND, seconds, codec);
            }
        }
    }
}

/// What stands in front of its frames says how long an MP3 was once, and its first frames only how long it may be.
#[test]
fn all_of_an_mp3_is_heard_whatever_it_says_of_its_length() {
    let lame = ["-c:a", "libmp3lame"];
    let one = recording("a.mp3", 3, &lame);
    let other = recording("b.mp3", 4, &[&lame[..], &["-q:a", "3"]].concat());
    let untold = ["-write_xing", "0", "-id3v2_version", "0", "-q:a", "4"];
    // Frames of silence are small, those of noise large.
    let loud = ["-af", "volume='if(lt(t,4),0,1)':eval=frame"];
    let quiet = ["-af", "volume='if(lt(t,4),1,0)':eval=frame"];
    let grows = recording("g.mp3", 8, &[&lame[..], &untold, &loud].concat());
    let shrinks = recording("s.mp3", 8, &[&lame[..], &untold, &quiet].concat());
    let files = [
        ("chained", [&one[..], &other].concat(), 7),
        ("cut off", one[..one.len() / 2].to_vec(), 1),
        ("grows", grows, 8),
        ("shrinks", shrinks, 8),
    ];
    for (name, file, seconds) in files {
        let expected = match name {
            "cut off" => 3 * SECOND / 2,
            _ => seconds * SECOND,
        };
        for most in [2 * SECOND, 60 * SECOND] {
            let window = read_window(&file, Container::Mp3, span(0, most)).unwrap();
            let declared = window.declared.unwrap().as_secs_f64() * SECOND as f64;
            assert!(
                (declared - expected as f64).abs() < SECOND as f64 / 5.0,
                "{name}: {declared}"
            );
            let length = in_windows(&file, Container::Mp3, most).len();
            assert!(
                length.abs_diff(expected) < SECOND / 5,
                "{name} {most}: {length}"
            );
        }
    }
    let chained = in_windows(&[&one[..], &other].concat(), Container::Mp3, 2 * SECOND);
    rises(&chained, 3 * SECOND, 4, "the second file");
}

/// What a recorder leaves out is silent, so that what follows is where its time is, in whatever window.
#[test]
fn what_is_missing_is_silent() {
    let gap = ["-af", "aselect='lt(t,2)+gt(t,4)'"];
    for (container, name, codec) in [
        (Container::Webm, "g.webm", "libopus"),
        (Container::Ogg, "g.ogg", "libopus"),
    ] {
        let file = recording(name, 8, &[&["-c:a", codec][..], &gap].concat());
        for most in [SECOND, 3 * SECOND, 60 * SECOND] {
            let whole = in_windows(&file, container, most);
            assert!(
                whole.len().abs_diff(8 * SECOND) < SECOND / 5,
                "{name} {most}: {}",
                whole.len()
            );
            for second in 0..8 {
                let at = second * SECOND;
                let part = &whole[at + SECOND * 2 / 5..at + SECOND * 3 / 5];
                if (2..4).contains(&second) {
                    let loudest = part.iter().map(|it| it.unsigned_abs()).max().unwrap();
                    assert!(loudest < 50, "{name} {most}: {loudest} in second {second}");
                } else {
                    let (heard, expected) = (frequency(part), 300.0 + 100.0 * second as f64);
                    assert!(
                        (heard - expected).abs() < 25.0,
                        "{name} {most}: {heard} Hz in second {second}"
                    );
                }
            }
        }
    }
}

/// A small file may say that it lasts for hours: it costs no more than what is asked of it.
#[test]
fn what_is_missing_for_hours_costs_a_window_at_a_time() {
    let gap = [
        "-af",
        "aselect='lt(t,2)+gt(t,4)',asetpts='PTS+gt(T,3)*36000/TB'",
    ];
    let file = recording("h.webm", 8, &[&["-c:a", "libopus"][..], &gap].concat());
    assert!(file.len() < 200_000);
    let read = |second: usize| {
        let span = span(second * SECOND, 10 * SECOND);
        read_window(&file, Container::Webm, span).unwrap()
    };
    for (second, sounds) in [
        (0, 0..2),
        (1, 0..1),
        (10, 0..0),
        (18_000, 0..0),
        (36_000, 4..8),
    ] {
        let window = read(second);
        let is_last = second == 36_000;
        assert_eq!(window.is_last, is_last, "{second}");
        let seconds = if is_last { 8 } else { 10 };
        let length = window.samples.len();
        assert!(
            length <= 10 * SECOND && length.abs_diff(seconds * SECOND) < SECOND / 10,
            "{length}"
        );
        for at in 0..seconds {
            let part = &window.samples[at * SECOND + SECOND / 4..at * SECOND + SECOND * 3 / 4];
            let is_heard = part.iter().any(|sample| sample.unsigned_abs() > 500);
            assert_eq!(
                is_heard,
                sounds.contains(&at),
                "second {at} from {second} on"
            );
        }
    }
}

#[test]
fn files_are_told_by_how_they_begin() {
    for (number, (container, file)) in all().iter().enumerate() {
        let beginning = &file[..Container::BEGINNING];
        assert_eq!(
            Container::of_beginning(beginning),
            Some(*container),
            "{number}"
        );
        assert_eq!(Container::of_name(container.name()), Some(*container));
    }
    // Layer 3 of MPEG-1 and 2 without a tag; layer 2, AAC in ADTS, text, an archive, nothing.
    for first in [[0xFF, 0xFB], [0xFF, 0xF3], [0xFF, 0xFA], [0xFF, 0xE3]] {
        assert_eq!(Container::of_beginning(&first), Some(Container::Mp3));
    }
    for other in [
        &b"\xFF\xFD\x84"[..],
        b"\xFF\xF1\x50",
        b"Hello",
        b"PK\x03\x04",
        b"RIFF",
        b"",
    ] {
        assert_eq!(Container::of_beginning(other), None, "{other:?}");
    }
}

#[test]
fn what_has_no_sound_or_an_unknown_kind_says_so() {
    let pictures = [
        "-f",
        "lavfi",
        "-i",
        "color=c=red:s=64x64:r=5:d=1",
        "-c:v",
        "mpeg4",
        "-map",
        "1:v",
    ];
    for (name, container) in [("a.mp4", Container::Mp4), ("a.avi", Container::Avi)] {
        let silent = recording(name, 1, &pictures);
        assert_eq!(
            read_window(&silent, container, span(0, SECOND)),
            Err(MediaError::NoSound),
            "{name}"
        );
    }
    let ac3 = film("a.avi", 1, "ac3");
    let refused = read_window(&ac3, Container::Avi, span(0, SECOND)).unwrap_err();
    assert!(
        matches!(&refused, MediaError::Unsupported(what) if what == "AC-3 (0x2000) in AVI"),
        "{refused}"
    );
    for container in Container::ALL {
        for junk in [
            &b""[..],
            b"RIFF",
            b"RIFF\xff\xff\xff\xffAVI LIST\xff\xff\xff\xffhdrl",
            &[0; 4_096],
        ] {
            read_window(junk, container, span(0, SECOND)).unwrap_err();
        }
    }
}

#[test]
fn sound_of_four_bits_a_sample_is_decoded() {
    for codec in ["adpcm_ms", "adpcm_ima_wav"] {
        let wav = recording("a.wav", 2, &["-c:a", codec]);
        let window = read_window(&wav, Container::Wav, span(0, 2 * SECOND)).unwrap();
        assert!(window.samples.len() > SECOND * 19 / 10, "{codec}");
        assert!(
            window.samples.iter().any(|sample| sample.abs() > 1_000),
            "{codec}"
        );
        let avi = film("a.avi", 2, codec);
        let window = read_window(&avi, Container::Avi, span(0, 2 * SECOND)).unwrap();
        assert!(
            window.samples.iter().any(|sample| sample.abs() > 1_000),
            "{codec}"
        );
    }
}

#[test]
fn kinds_that_are_not_decoded_are_named() {
    for (name, container, arguments, expected) in [
        ("a.mp4", Container::Mp4, &["-c:a", "ac3"][..], "AC-3"),
        ("a.mkv", Container::Webm, &["-c:a", "eac3"], "E-AC-3"),
    ] {
        let file = recording(name, 1, arguments);
        let refused = read_window(&file, container, span(0, SECOND)).unwrap_err();
        assert_eq!(
            refused,
            MediaError::Unsupported(expected.to_owned()),
            "{name}"
        );
    }
}

/// Bytes of a file are changed: four tell where and to what.
#[test]
fn fuzzed_files_are_refused_or_give_no_more_than_was_asked_for() {
    let seconds = ["-t", "1"];
    let films = ["pcm_s16le", "libmp3lame"].map(|codec| (Container::Avi, film("a.avi", 1, codec)));
    let sounds = [
        (Container::Mp3, recording("a.mp3", 1, &seconds)),
        (Container::Wav, recording("a.wav", 1, &seconds)),
        (Container::Mp4, recording("a.m4a", 1, &seconds)),
        (Container::Mp4, recording("s.m4a", 1, &["-ac", "6"])),
        (
            Container::Mp4,
            high_efficiency(1, &syom::EncodeOptions::adts().with_he_v2(true), 2),
        ),
        (Container::Mp4, recording("l.m4a", 1, &["-c:a", "alac"])),
    ];
    for (container, file) in sounds.into_iter().chain(films) {
        let seeds = vec![vec![], vec![0; 4], (0..64).collect()];
        fuzz(&seeds, |patches| {
            let mut changed = file.clone();
            for patch in patches.as_chunks::<4>().0 {
                let [high, low, value, whole] = *patch;
                // Heads are where lies cost most.
                let reach = if whole % 2 == 0 {
                    file.len().min(512)
                } else {
                    file.len()
                };
                let at = usize::from(u16::from_be_bytes([high, low])) * reach / 65_536;
                changed[at] = value;
            }
            match read_window(&changed, container, span(0, SECOND / 2)) {
                Ok(window) => {
                    assert!(window.samples.len() <= SECOND / 2);
                    let loudness = |part: &[i16]| {
                        let sum: u64 = part.iter().map(|it| u64::from(it.unsigned_abs())).sum();
                        sum / part.len() as u64
                    };
                    let heard: Vec<_> = window.samples.chunks(500).map(loudness).collect();
                    format!("{heard:?} {}", window.is_last)
                }
                Err(error) => error.to_string().chars().take(60).collect(),
            }
        });
    }
}
