//! Sounds, films and pictures for tests, made by programs of the system: ffmpeg and espeak-ng.
//!
//! Each is made once and kept below the target folder of cargo, for all processes of tests, in this run and in later ones. What the server wrote is
//! decoded without that: it differs from run to run, so that each would be kept in vain.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test code: it fails by panicking"
)]

mod cache;

pub use cache::{Cache, Recipe};

/// Returns a sound, film or picture as a file of another kind, which its name tells, made by ffmpeg.
#[must_use]
pub fn converted(input: &[u8], name: &str, arguments: &[&str]) -> Vec<u8> {
    let arguments = [&["-i", "input"], arguments].concat();
    ffmpeg(&arguments, Some(input), name)
}

/// Returns a file of ffmpeg's own sources of sound and pictures, such as `sine`; the first of them is the first argument.
#[must_use]
pub fn generated(source: &str, name: &str, arguments: &[&str]) -> Vec<u8> {
    let arguments = [&["-f", "lavfi", "-i", source], arguments].concat();
    ffmpeg(&arguments, None, name)
}

/// Returns what ffmpeg writes as a file of this name. The input is the file `input`.
#[must_use]
pub fn ffmpeg(arguments: &[&str], input: Option<&[u8]>, name: &str) -> Vec<u8> {
    let arguments = [&["-v", "error"], arguments, &[name]].concat();
    Cache::of_target().made(&Recipe {
        program: "ffmpeg",
        arguments: &arguments,
        input,
        output: Some(name),
    })
}

/// Returns the samples of a file that the server wrote, mono, as ffmpeg decodes it. They are not kept.
#[must_use]
pub fn decoded_by_ffmpeg(file: &[u8], rate_hz: u32) -> Vec<i16> {
    let rate = rate_hz.to_string();
    let raw = ["-f", "s16le", "-ar", &rate, "-ac", "1", "a.raw"];
    let recipe = Recipe {
        program: "ffmpeg",
        arguments: &[&["-v", "error", "-i", "input"], &raw[..]].concat(),
        input: Some(file),
        output: Some("a.raw"),
    };
    let output = recipe.made();
    let (samples, _) = output.as_chunks::<2>();
    samples.iter().copied().map(i16::from_le_bytes).collect()
}

/// Returns what espeak-ng says, as a WAV file.
#[must_use]
pub fn spoken(voice: &str, text: &str) -> Vec<u8> {
    Cache::of_target().made(&Recipe {
        program: "espeak-ng",
        arguments: &["-v", voice, "-s", "140", "--stdout", text],
        input: None,
        output: None,
    })
}
