//! AAC, with ffmpeg as the judge.

use std::process::Command;

use symphonia::core::{
    audio::Position,
    codecs::audio::{AudioCodecParameters, well_known::CODEC_ID_AAC},
};

use super::{Container, SECOND, aac, read_window, recording, span};

/// The same in AAC of high efficiency, which ffmpeg decodes but does not encode.
pub(super) fn high_efficiency(
    seconds: usize,
    options: &syom::EncodeOptions,
    channels: usize,
) -> Vec<u8> {
    const HZ: u32 = 44_100;
    let wave = |at: usize| {
        let second = at as f32 / HZ as f32;
        let tone = second * (300.0 + 100.0 * second.floor());
        0.4 * (std::f32::consts::TAU * tone.fract()).sin()
    };
    let sound: Vec<f32> = (0..seconds * HZ as usize).map(wave).collect();
    let sound = syom::encode_with(&vec![sound; channels], HZ, options).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = ["a.aac", "a.m4a"].map(|name| folder.path().join(name));
    std::fs::write(&from, sound).unwrap();
    let mut ffmpeg = Command::new("ffmpeg");
    ffmpeg.args(["-v", "error", "-i"]).arg(from);
    let output = ffmpeg.args(["-c", "copy"]).arg(&to).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    std::fs::read(to).unwrap()
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
