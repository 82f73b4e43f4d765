use std::process::Command;

use colloquy_fuzz::fuzz;

use super::*;

const SECOND: usize = RATE_HZ as usize;

/// So many seconds of tones that rise with each second, made by ffmpeg.
fn recording(name: &str, seconds: u32, arguments: &[&str]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    let sound = format!("aevalsrc=0.4*sin(2*PI*t*(300+100*floor(t))):s=44100:d={seconds}");
    let output = Command::new("ffmpeg")
        .args(["-v", "error", "-f", "lavfi", "-i", &sound])
        .args(arguments)
        .arg(&path)
        .output()
        .expect("ffmpeg is installed");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    std::fs::read(path).unwrap()
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
        (Container::Mp4, recording("a.m4a", 6, &["-c:a", "aac"])),
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
            |from: usize, most: usize| read_window(file, *container, from as u64, most).unwrap();
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
            read_window(&silent, container, 0, SECOND),
            Err(MediaError::NoSound),
            "{name}"
        );
    }
    let ac3 = film("a.avi", 1, "ac3");
    let refused = read_window(&ac3, Container::Avi, 0, SECOND).unwrap_err();
    assert!(
        matches!(&refused, MediaError::Unsupported(what) if what.contains("0x2000")),
        "{refused}"
    );
    for container in [
        Container::Mp3,
        Container::Wav,
        Container::Mp4,
        Container::Avi,
    ] {
        for junk in [
            &b""[..],
            b"RIFF",
            b"RIFF\xff\xff\xff\xffAVI LIST\xff\xff\xff\xffhdrl",
            &[0; 4_096],
        ] {
            read_window(junk, container, 0, SECOND).unwrap_err();
        }
    }
}

/// Bytes of a file are changed: four tell where and to what.
#[test]
fn changed_files_are_refused_or_give_no_more_than_was_asked_for() {
    let seconds = ["-t", "1"];
    let films = ["pcm_s16le", "libmp3lame"].map(|codec| (Container::Avi, film("a.avi", 1, codec)));
    let sounds = [
        (Container::Mp3, recording("a.mp3", 1, &seconds)),
        (Container::Wav, recording("a.wav", 1, &seconds)),
        (Container::Mp4, recording("a.m4a", 1, &seconds)),
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
            match read_window(&changed, container, 0, SECOND / 2) {
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
