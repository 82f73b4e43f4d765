//! Text on images, recognized by the program Tesseract: one process for each page, with limits of its own, which is given a plain
//! graymap that this server made and decodes nothing else.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use bytes::Bytes;
use colloquy_extract::{MOST_PIXELS, PageImage};
use colloquy_sandbox::{Caller, Program, Sandbox, SandboxError};
use tokio::{process::Command, time::timeout};

use crate::limits;

/// Where Debian's package `tesseract-ocr` installs it.
const PROGRAM: &str = "/usr/bin/tesseract";
/// All memory of a process: most of it is for the model of a language.
const PROGRAM_BYTES: u64 = 768 * 1024 * 1024;
/// Bytes that it needs for each pixel, beside.
const BYTES_A_PIXEL: u64 = 24;
/// Processor time of a page, in seconds.
const PAGE_SECONDS: u64 = 60;
/// The longest text of a page.
const MOST_TEXT_BYTES: usize = 1024 * 1024;
/// How long the program may take to name its languages.
const LISTING: Duration = Duration::from_secs(10);
/// One thread for each process, and nothing of ours.
const ENVIRONMENT: [(&str, &str); 2] = [("OMP_THREAD_LIMIT", "1"), ("LC_ALL", "C.UTF-8")];

/// Why no text was recognized on a page.
pub type OcrError = SandboxError<std::convert::Infallible>;

/// The program, and the languages that it looks for.
#[derive(Debug, Clone)]
pub struct Ocr {
    program: PathBuf,
    languages: String,
}

/// Why text cannot be recognized at all.
#[derive(Debug, thiserror::Error)]
pub enum NoOcr {
    /// The program is not there.
    #[error("{0} cannot be started; Debian has it in the package tesseract-ocr")]
    NotInstalled(PathBuf),
    /// It does not know a language.
    #[error("the language {0:?} is not installed for text recognition")]
    Language(String),
}

impl Ocr {
    /// The program as Debian installs it, for languages by their three letters, such as `eng` and `deu`; the first is the likeliest.
    ///
    /// # Errors
    /// When it is not there, or does not know one of them.
    pub async fn open(languages: &[&str]) -> Result<Self, NoOcr> {
        Self::of_program(Path::new(PROGRAM), languages).await
    }

    /// Another program of the same kind.
    ///
    /// # Errors
    /// As [`Ocr::open`] has them.
    pub async fn of_program(program: &Path, languages: &[&str]) -> Result<Self, NoOcr> {
        let missing = || NoOcr::NotInstalled(program.to_owned());
        let listing = Command::new(program)
            .arg("--list-langs")
            .env_clear()
            .envs(ENVIRONMENT)
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let listed = timeout(LISTING, listing).await;
        let listed = listed.ok().and_then(Result::ok).ok_or_else(missing)?;
        if !listed.status.success() {
            return Err(missing());
        }
        let listed = String::from_utf8_lossy(&listed.stdout);
        for language in languages {
            if !listed.lines().any(|line| line.trim() == *language) {
                return Err(NoOcr::Language((*language).to_owned()));
            }
        }
        Ok(Self {
            program: program.to_owned(),
            languages: languages.join("+"),
        })
    }

    /// The text on an image: paragraphs, with a blank line between them.
    ///
    /// # Errors
    /// When the program takes more than it may, or fails.
    pub async fn recognize(
        &self,
        sandbox: &Sandbox,
        caller: impl Into<Caller<'_>>,
        image: &PageImage,
    ) -> Result<String, OcrError> {
        let dpi = image.dpi.clamp(70, 2_400).to_string();
        let arguments = [
            "stdin",
            "stdout",
            "-l",
            &self.languages,
            "--dpi",
            &dpi,
            "--psm",
            "3",
        ];
        let limits = limits(
            PROGRAM_BYTES + BYTES_A_PIXEL * u64::from(MOST_PIXELS),
            PAGE_SECONDS,
            MOST_TEXT_BYTES,
        );
        let image = Bytes::from(image.to_pgm());
        let program = Program {
            path: &self.program,
            arguments: &arguments,
            environment: &ENVIRONMENT,
            port: None,
        };
        let text = sandbox.run_program(caller, program, limits, image).await?;
        Ok(paragraphs(&String::from_utf8_lossy(&text)))
    }
}

/// Lines that were broken for the width of the page are joined, and words that were parted at their ends.
fn paragraphs(text: &str) -> String {
    let mut joined = String::with_capacity(text.len());
    for line in text
        .lines()
        .map(|line| line.trim_matches([' ', '\t', '\u{0C}']))
    {
        if line.is_empty() {
            if !joined.is_empty() && !joined.ends_with("\n\n") {
                joined.push_str("\n\n");
            }
            continue;
        }
        if let Some(begin) = joined.strip_suffix('-')
            && begin.ends_with(char::is_lowercase)
            && line.starts_with(char::is_lowercase)
        {
            joined.pop();
        } else if !joined.is_empty() && !joined.ends_with('\n') {
            joined.push(' ');
        }
        joined.push_str(line);
    }
    joined.truncate(joined.trim_end().len());
    if !joined.is_empty() {
        joined.push('\n');
    }
    joined
}

/// Whether what was recognized in a picture is text, and not what a photograph looks like. Signs and shadows become single letters.
pub(crate) fn is_legible(text: &str) -> bool {
    // A sign of Chinese or Japanese is as good as a word.
    let is_sign = |c: &char| *c >= '\u{3040}' && c.is_alphabetic();
    let letters = |word: &str| match word.chars().filter(|c| c.is_alphabetic()).count() {
        0..3 => word.chars().filter(is_sign).count(),
        letters => letters,
    };
    let in_words: usize = text.split_whitespace().map(letters).sum();
    let all = text
        .chars()
        .filter(|c| !c.is_whitespace() && !c.is_numeric());
    in_words >= 4 && in_words * 2 > all.count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_to_paragraphs() {
        let text = "A line that is bro-\nken in two, and an-\nOther one\n\n\n \nNew\x0C\n";
        assert_eq!(
            paragraphs(text),
            "A line that is broken in two, and an- Other one\n\nNew\n"
        );
        assert_eq!(paragraphs("\n \x0C"), "");
    }

    #[test]
    fn photographs_have_no_text() {
        for text in [
            "Settings > Devices > Add a device",
            "Press the red button for 3 s",
            "Gerät zurücksetzen",
            "Артикул 4711",
            "Total 4711 815",
            "営 業 時 間",
        ] {
            assert!(is_legible(text), "{text}");
        }
        for noise in [
            "",
            "a i ~~ | _ Se",
            "ee ~ -- ,. oO |",
            "1 2 3",
            "~wWw~|/.,;:'^^__--<<",
        ] {
            assert!(!is_legible(noise), "{noise}");
        }
    }

    #[tokio::test]
    async fn a_missing_program_is_named() {
        let error = Ocr::of_program(Path::new("/no/such/program"), &["eng"]).await;
        assert!(matches!(error, Err(NoOcr::NotInstalled(_))));
    }
}
