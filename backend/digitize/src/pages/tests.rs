use std::{fs, os::unix::fs::PermissionsExt as _, path::Path};

use bytes::Bytes;
use colloquy_base::fair_queue::Priority;
use colloquy_config::SandboxConfig;
use colloquy_extract::{Bound, Document, UnreadPage, UnreadReason};
use tempfile::TempDir;

use super::*;
use crate::{DigitizeOptions, Digitized, digitize};

const PAGES: u32 = 16;

/// A document whose pages are pictures, with programs that read it as told.
struct Scan {
    folder: TempDir,
    sandbox: Sandbox,
    ocr: Ocr,
    claim: Claim,
    file: Input,
    is_optional: bool,
}

fn script(path: &Path, does: &str) {
    fs::write(path, format!("#!/bin/sh\n{does}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// As children answer.
fn framed(output: &[u8]) -> Vec<u8> {
    let length = u32::try_from(output.len()).unwrap();
    [&[0][..], &length.to_le_bytes(), output].concat()
}

impl Scan {
    /// `paints` is what paints a page, `$page`; `page` and `blank` are what recognizes text on one and on an empty page.
    async fn new(paints: &str, page: &str, blank: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().display();
        let end = [1, 0, 0, 0, 0];
        fs::write(folder.path().join("end"), end).unwrap();
        let unread = (1..=PAGES).map(|page| UnreadPage {
            page,
            begin: 0,
            end: 0,
            reason: UnreadReason::NoText,
        });
        let document = Document {
            unread: unread.collect(),
            ..Document::default()
        };
        let document = framed(&serde_json::to_vec(&document).unwrap());
        fs::write(folder.path().join("text"), document).unwrap();
        for page in 1..=PAGES {
            let mut image = vec![];
            let gray = vec![u8::try_from(page).unwrap(); 64];
            let painted = PageImage {
                page,
                width: 8,
                height: 8,
                dpi: 300,
                gray,
            };
            painted.write(&mut image);
            fs::write(folder.path().join(page.to_string()), framed(&image)).unwrap();
        }
        let program = folder.path().join("program");
        let does = format!(
            "cd {path}; [ \"$9\" = --list-langs ] || echo \"$6 $7\" >> runs\n\
             case \"$6 $7\" in\n\
             'document text') cat text end;;\n\
             'document images') for page in $(echo \"${{11}}\" | tr , ' '); do {paints}; done; cat end;;\n\
             *) shift 7; exec \"$@\";;\n\
             esac"
        );
        script(&program, &does);
        let tesseract = folder.path().join("tesseract");
        let does = format!(
            "[ \"$1\" != --list-langs ] || exec echo eng\n\
             case $(tail -c 1 | od -An -tu1) in *255) {blank};; *) {page};; esac"
        );
        script(&tesseract, &does);
        let config = SandboxConfig {
            processes: 2,
            program: Some(program),
            ..SandboxConfig::default()
        };
        let sandbox = Sandbox::new(&config);
        let ocr = Ocr::of_program(&sandbox, &tesseract, &["eng"]);
        let ocr = ocr.await.unwrap();
        Self {
            folder,
            sandbox,
            ocr,
            claim: Claim::new(Priority::Background, "acme"),
            file: Input::from(Bytes::from_static(b"%PDF")),
            is_optional: false,
        }
    }

    async fn look(&self, most_bytes: usize, time: Duration) -> Result<Looked, DigitizeError> {
        let pages = Pages {
            sandbox: &self.sandbox,
            ocr: &self.ocr,
            claim: &self.claim,
            file: &self.file,
            format: Format::Pdf,
            is_optional: self.is_optional,
        };
        let all: Vec<u32> = (1..=PAGES).collect();
        pages.look(&all, most_bytes, time).await
    }

    async fn digitize(&self) -> Result<Digitized, DigitizeError> {
        let (ocr, file) = (Some(&self.ocr), self.file.clone());
        let options = DigitizeOptions::default();
        digitize(&self.sandbox, ocr, &self.claim, file, Format::Pdf, &options).await
    }

    /// How often text was looked for.
    fn recognitions(&self) -> usize {
        let runs = fs::read_to_string(self.folder.path().join("runs")).unwrap();
        runs.lines()
            .filter(|run| run.starts_with("program"))
            .count()
    }
}

const PAINTS: &str = "cat $page";
const PAINTS_NONE: &str = "true";
const NOTHING: &str = "exit 0";
const HOUR: Duration = Duration::from_secs(3_600);

#[tokio::test]
async fn a_document_has_so_much_time_for_its_pages() {
    let scan = Scan::new(PAINTS, "sleep 0.5; echo Words.", NOTHING).await;
    let looked = scan.look(1_000, Duration::from_secs(2)).await.unwrap();
    let read = looked.recognized.len();
    assert!((1..=4).contains(&read), "{read}");
    assert_eq!(looked.recognized[&1], "Words.\n");
    assert_eq!(read + looked.missing.len(), PAGES as usize);
    assert_eq!(looked.missing.last(), Some(&PAGES));
    let is_time = matches!(looked.failure, Some(DigitizeError::Limit(Limit::Time)));
    assert!(is_time, "{:?}", looked.failure);
    assert!(scan.recognitions() <= 4);
}

#[test]
fn honest_scans_have_time_enough() {
    // A thousand pages of 10 kB, and of 100 kB.
    for megabytes in [10, 100] {
        let time = time_of(megabytes * MEGABYTE).as_secs();
        assert!(time >= 1_000 * 4, "{time}");
    }
    assert!(time_of(5 * MEGABYTE / 2) <= 3 * HOUR);
}

#[tokio::test]
async fn pages_with_too_much_text_are_not_all_looked_at() {
    let scan = Scan::new(PAINTS, "echo 'A hundred bytes'", NOTHING).await;
    let outcome = scan.look(40, HOUR).await;
    let Err(DigitizeError::Document(ExtractError::TooLarge { bound, most })) = outcome else {
        panic!("{outcome:?}");
    };
    assert_eq!((bound, most), (Bound::MarkdownBytes, 40));
    assert_eq!(scan.recognitions(), 3);
}

#[tokio::test]
async fn what_no_page_could_be_looked_at_for_is_told() {
    let empty = Scan::new(PAINTS, NOTHING, NOTHING).await.digitize().await;
    let is_empty = matches!(
        &empty,
        Err(DigitizeError::Document(ExtractError::PicturesOnly))
    );
    assert!(is_empty, "{empty:?}");

    let unpainted = Scan::new(PAINTS_NONE, NOTHING, NOTHING).await;
    let unpainted = unpainted.digitize().await;
    let reason = unpainted.unwrap_err().to_string();
    assert_eq!(reason, "the document is damaged: page 1 cannot be shown");

    let refused = r#"exec printf '\002\013\000\000\000"encrypted"'"#;
    let refused = Scan::new(refused, NOTHING, NOTHING).await.digitize().await;
    let reason = refused.unwrap_err().to_string();
    assert_eq!(reason, "the document is encrypted or protected");

    let crashed = Scan::new(PAINTS, "exit 7", NOTHING).await.digitize().await;
    let crashed = crashed.unwrap_err();
    assert!(
        matches!(&crashed, DigitizeError::Crashed(why) if why.contains('7')),
        "{crashed:?}"
    );
    assert!(!crashed.may_pass());

    // A page that could be looked at says what it says.
    let some = "[ $page = 1 ] || cat $page";
    let some = Scan::new(some, "echo Words.", NOTHING)
        .await
        .digitize()
        .await;
    let some = some.unwrap();
    assert_eq!(some.missing, [1]);
    assert_eq!(some.recognized.len(), PAGES as usize - 1);
}

#[tokio::test]
async fn an_object_and_its_preview_count_once() {
    let scan = Scan::new(PAINTS_NONE, NOTHING, NOTHING).await;
    let page = |page, reason| UnreadPage {
        page,
        begin: 0,
        end: 0,
        reason,
    };
    let document = Document {
        markdown: "Words.\n".to_owned(),
        unread: vec![
            page(1, UnreadReason::Picture),
            page(2, UnreadReason::Preview),
        ],
        unread_objects: 1,
        ..Document::default()
    };
    let document = framed(&serde_json::to_vec(&document).unwrap());
    fs::write(scan.folder.path().join("text"), document).unwrap();
    let digitized = scan.digitize().await.unwrap();
    assert!(digitized.missing.is_empty(), "{digitized:?}");
    assert_eq!(digitized.missing_pictures, 2);
}

#[tokio::test]
async fn a_program_that_fails_at_an_empty_page_says_nothing_about_a_document() {
    let broken = Scan::new(PAINTS, "exit 7", "exit 7").await;
    let error = broken.digitize().await.unwrap_err();
    assert!(error.may_pass(), "{error:?}");
    assert_eq!(broken.recognitions(), 2);

    // A document that says enough without them does not wait for it.
    let optional = Scan {
        is_optional: true,
        ..Scan::new(PAINTS, "exit 7", "exit 7").await
    };
    let looked = optional.look(1_000, HOUR).await.unwrap();
    assert_eq!(looked.missing.len(), PAGES as usize);
    assert!(matches!(looked.failure, Some(DigitizeError::NoOcr)));

    let gone = Scan::new(PAINTS, NOTHING, NOTHING).await;
    fs::remove_file(gone.folder.path().join("tesseract")).unwrap();
    assert!(gone.digitize().await.unwrap_err().may_pass());
}
