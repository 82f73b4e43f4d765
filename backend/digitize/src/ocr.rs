//! Text on images, recognized by the program Tesseract: one process for each page, with limits of its own, which is given a plain
//! graymap that this server made and decodes nothing else.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use bytes::Bytes;
use colloquy_base::fair_queue::{Claim, Priority};
use colloquy_extract::{MOST_PIXELS, PageImage};
use colloquy_sandbox::{Caller, Limits, Program, Sandbox, SandboxError};

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
    #[error("{0} is not installed; Debian has it in the package tesseract-ocr")]
    NotInstalled(PathBuf),
    /// It does not name its languages.
    #[error("{0} does not run: {1}")]
    Failed(PathBuf, OcrError),
    /// It does not know a language.
    #[error("the language {0:?} is not installed for text recognition")]
    Language(String),
}

impl Ocr {
    /// The program as Debian installs it, for languages by their three letters, such as `eng` and `deu`; the first is the likeliest.
    ///
    /// # Errors
    /// When it is not there, does not run in the sandbox, or does not know one of them.
    pub async fn open(sandbox: &Sandbox, languages: &[&str]) -> Result<Self, NoOcr> {
        Self::of_program(sandbox, Path::new(PROGRAM), languages).await
    }

    /// Another program of the same kind.
    ///
    /// # Errors
    /// As [`Ocr::open`] has them.
    pub async fn of_program(
        sandbox: &Sandbox,
        program: &Path,
        languages: &[&str],
    ) -> Result<Self, NoOcr> {
        if !program.is_file() {
            return Err(NoOcr::NotInstalled(program.to_owned()));
        }
        let listing = Program {
            path: program,
            arguments: &["--list-langs"],
            environment: &ENVIRONMENT,
            port: None,
        };
        let limits = Limits {
            time: LISTING,
            ..limits(PROGRAM_BYTES, LISTING.as_secs(), MOST_TEXT_BYTES)
        };
        let claim = Claim::own(Priority::Request);
        let listed = sandbox.run_program(&claim, listing, limits, Bytes::new());
        let failed = |error| NoOcr::Failed(program.to_owned(), error);
        let listed = listed.await.map_err(failed)?;
        let listed = String::from_utf8_lossy(&listed);
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
    use std::{fs, os::unix::fs::PermissionsExt as _};

    use colloquy_config::SandboxConfig;

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

    /// A program that does this.
    fn script(path: &Path, does: &str) {
        fs::write(path, format!("#!/bin/sh\n{does}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Children of the sandbox do this instead of becoming a program.
    fn sandbox(folder: &Path, does: &str) -> Sandbox {
        let program = folder.join("colloquy");
        script(&program, does);
        Sandbox::new(&SandboxConfig {
            program: Some(program),
            ..SandboxConfig::default()
        })
    }

    #[tokio::test]
    async fn a_missing_program_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let sandbox = sandbox(folder.path(), "echo eng");
        let error = Ocr::of_program(&sandbox, Path::new("/no/such/program"), &["eng"]).await;
        assert!(matches!(error, Err(NoOcr::NotInstalled(_))));
    }

    #[tokio::test]
    async fn languages_are_listed_within_the_sandbox() {
        let folder = tempfile::tempdir().unwrap();
        let tesseract = folder.path().join("tesseract");
        script(&tesseract, "echo deu");
        let path = tesseract.display();
        let does = format!(
            "case \"$*\" in decode*\" program -- {path} --list-langs\") echo eng;; *) exit 9;; esac"
        );
        let sandbox = sandbox(folder.path(), &does);
        let ocr = Ocr::of_program(&sandbox, &tesseract, &["eng"])
            .await
            .unwrap();
        assert_eq!(ocr.languages, "eng");
        // What it would say of itself, if it ran without.
        let unknown = Ocr::of_program(&sandbox, &tesseract, &["deu"]).await;
        assert!(matches!(unknown, Err(NoOcr::Language(language)) if language == "deu"));
    }

    #[tokio::test]
    async fn a_program_that_fails_is_told_from_one_that_is_missing() {
        let folder = tempfile::tempdir().unwrap();
        let tesseract = folder.path().join("tesseract");
        script(&tesseract, "echo eng");
        let sandbox = sandbox(folder.path(), "exit 1");
        let error = Ocr::of_program(&sandbox, &tesseract, &["eng"]).await;
        assert!(matches!(error, Err(NoOcr::Failed(..))));
    }
}
