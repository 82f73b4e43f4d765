use std::{
    fs,
    io::{Cursor, Write as _},
    path::Path,
};

use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::*;
use crate::format::EXTENSIONS;

fn tell(name: &str, bytes: &[u8]) -> Result<Format, ExtractError> {
    match detect(name, &mut Cursor::new(bytes)) {
        Ok(format) => Ok(format),
        Err(DetectError::Refused(error)) => Err(error),
        Err(DetectError::Read(error)) => panic!("{error}"),
    }
}

fn zip(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(vec![]));
    for (name, content) in files {
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        zip.start_file(*name, options).unwrap();
        zip.write_all(content).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The begin of files of formats that are known by it.
fn begins() -> Vec<(&'static str, Vec<u8>)> {
    let atom = |kind: &[u8]| [&[0, 0, 0, 24], kind, &[0; 12]].concat();
    let riff = |kind: &[u8]| [b"RIFF\x10\0\0\0", kind, &[0; 12]].concat();
    let office = |main: &str| zip(&[("[Content_Types].xml", b"<Types/>"), (main, b"<x/>")]);
    vec![
        ("pdf", b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n".to_vec()),
        ("docx", office("word/document.xml")),
        ("pptx", office("ppt/presentation.xml")),
        ("xlsx", office("xl\\workbook.xml")),
        ("epub", zip(&[("mimetype", b"application/epub+zip")])),
        (
            "epub",
            zip(&[("a", b""), ("META-INF/container.xml", b"<x/>")]),
        ),
        ("mp4", atom(b"ftypisom")),
        ("m4v", atom(b"ftypM4V ")),
        ("mov", atom(b"moov")),
        ("m4a", atom(b"ftypM4A ")),
        ("avi", riff(b"AVI ")),
        ("wav", riff(b"WAVE")),
        ("webp", riff(b"WEBP")),
        ("mp3", b"ID3\x04\0\0\0\0\0\0".to_vec()),
        ("mp3", b"\xFF\xFB\x90\x64\0\0\0".to_vec()),
        ("jpg", b"\xFF\xD8\xFF\xE0\0\x10JFIF".to_vec()),
        ("png", b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR".to_vec()),
        ("tiff", b"II*\0\x08\0\0\0".to_vec()),
        ("tif", b"MM\0*\0\0\0\x08".to_vec()),
        ("gif", b"GIF89a\x01\0\x01\0".to_vec()),
        ("txt", b"just words\n".to_vec()),
    ]
}

#[test]
fn a_name_and_a_signature_have_to_agree() {
    let video = ["mp4", "m4v", "mov", "m4a"];
    for (kind, bytes) in begins() {
        let own = Format::of_extension(kind).unwrap();
        for (extension, format) in EXTENSIONS {
            let told = tell(&format!("a.{extension}"), &bytes);
            let agrees = own == format
                || own.is_characters() && format.is_characters()
                || video.contains(&kind) && video.contains(&extension);
            match told {
                Ok(told) => assert!(agrees && told == format, "{kind} as {extension}"),
                Err(ExtractError::Mismatch { expected, found }) => {
                    assert!(!agrees, "{kind} as {extension}: {found}");
                    assert_eq!(expected, format);
                    assert!(!found.is_empty());
                }
                Err(error) => panic!("{kind} as {extension}: {error}"),
            }
        }
    }
}

#[test]
fn documents_that_others_made_are_what_they_are_called() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/documents");
    let mut count = 0;
    for format in fs::read_dir(folder).unwrap() {
        let format = format.unwrap().path();
        if !format.is_dir() {
            continue;
        }
        for file in fs::read_dir(&format).unwrap() {
            let path = file.unwrap().path();
            let name = path.to_string_lossy();
            if name.ends_with(".ogg") || name.ends_with(".golden.md") {
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            let expected = Format::of_extension(&extension(&name)).unwrap();
            assert_eq!(tell(&name, &bytes), Ok(expected), "{name}");
            count += 1;
        }
    }
    assert!(count > 60, "{count}");
}

#[test]
fn archives_are_blocked_by_name_and_by_content() {
    let archives: [(&str, Vec<u8>); 8] = [
        ("zip", zip(&[("a.txt", b"a")])),
        ("gz", b"\x1F\x8B\x08\0\0".to_vec()),
        ("bz2", b"BZh91AY&SY".to_vec()),
        ("xz", b"\xFD7zXZ\0".to_vec()),
        ("7z", b"7z\xBC\xAF\x27\x1C".to_vec()),
        ("rar", b"Rar!\x1A\x07\x01".to_vec()),
        ("tar", [&[b'a'; 257][..], b"ustar", &[0; 200]].concat()),
        ("zip", zip(&[])),
    ];
    for (kind, bytes) in &archives {
        for name in ["a.docx", "a.pdf", "a.txt", "a.epub"] {
            let told = tell(name, bytes);
            assert_eq!(
                told,
                Err(ExtractError::Archive((*kind).to_owned())),
                "{name}"
            );
        }
        let named = tell(&format!("a.{kind}"), b"text");
        assert_eq!(named, Err(ExtractError::Archive((*kind).to_owned())));
    }
    assert_eq!(
        tell("a.tgz", b""),
        Err(ExtractError::Archive("tgz".to_owned()))
    );
    // Words that only begin like one.
    for text in ["BZh is no archive", "LZIP"] {
        assert_eq!(tell("a.txt", text.as_bytes()), Ok(Format::Text), "{text}");
    }
}

#[test]
fn what_is_nothing_of_this_is_named() {
    assert_eq!(
        tell("a.exe", b"MZ"),
        Err(ExtractError::UnknownExtension("exe".to_owned()))
    );
    assert_eq!(
        tell("a", b"text"),
        Err(ExtractError::UnknownExtension(String::new()))
    );
    for format in ["pdf", "docx", "txt", "mp3"] {
        assert_eq!(tell(&format!("a.{format}"), b""), Err(ExtractError::Empty));
    }
    let found = |name: &str, bytes: &[u8]| match tell(name, bytes) {
        Err(ExtractError::Mismatch { found, .. }) => found,
        other => panic!("{name}: {other:?}"),
    };
    assert_eq!(
        found("a.pdf", b"<!DOCTYPE html><title>Not found</title>"),
        "HTML"
    );
    assert_eq!(found("a.doc", b"{\\rtf1\\ansi words}"), "RTF");
    assert_eq!(found("a.txt", b"{\\rtf1\\ansi words}"), "RTF");
    assert_eq!(
        found("a.txt", &[&b"\x7FELF\x02\x01\x01"[..], &[0; 60]].concat()),
        "application/x-executable"
    );
    assert_eq!(found("a.txt", b"a\x01b\x02"), "of no known format");
    assert_eq!(found("a.jpg", &begins()[6].1), "MPEG-4 or QuickTime");
    let heif = [&[0, 0, 0, 24][..], b"ftypheic", &[0; 12]].concat();
    assert_eq!(found("a.mp4", &heif), "a picture (HEIF)");
    let odt = zip(&[
        ("mimetype", b"application/vnd.oasis.opendocument.text"),
        ("content.xml", b""),
    ]);
    assert_eq!(found("a.docx", &odt), "OpenDocument");
    let binary = zip(&[("[Content_Types].xml", b""), ("xl/workbook.bin", b"")]);
    assert_eq!(found("a.xlsx", &binary), "a binary workbook (XLSB)");
    // What is no text begins far behind.
    let late = [&[b'a'; 200_000][..], &[1; 300]].concat();
    assert_eq!(found("a.txt", &late), "of no known format");
}

#[test]
fn words_are_no_signature() {
    for text in [
        "The wide river",
        "one moov, two",
        "See %PDF-1.7 for what begins with %PDF-",
        "The file begins with %PDF-",
    ] {
        for name in ["a.txt", "a.md"] {
            assert!(tell(name, text.as_bytes()).is_ok(), "{name}: {text}");
        }
        assert!(tell("a.mov", text.as_bytes()).is_err(), "{text}");
        assert!(tell("a.pdf", text.as_bytes()).is_err(), "{text}");
    }
    let pdf = b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n1 0 obj";
    let stream = [7; 100];
    for before in [
        &b""[..],
        b"\r\n",
        b"\xEF\xBB\xBF",
        b"\0\0\0\0",
        b"HTTP/1.1 200 OK\r\n\r\n",
    ] {
        let file = [before, pdf, &stream].concat();
        assert_eq!(tell("a.pdf", &file), Ok(Format::Pdf), "{before:?}");
        assert!(tell("a.txt", &file).is_err(), "{before:?}");
    }
}

#[test]
fn a_pdf_may_be_all_text() {
    let file = |before: &str| format!("{before}%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\nendobj\n");
    for before in [
        "HTTP/1.1 200 OK\r\nContent-Type: application/pdf\r\n\r\n",
        "\n \n",
        "a line\n",
    ] {
        let file = file(before);
        assert_eq!(
            tell("a.pdf", file.as_bytes()),
            Ok(Format::Pdf),
            "{before:?}"
        );
    }
    // The mark may stand within a line of a file that ends as a PDF does.
    let whole = |before: &str, after: &str| file(before) + "startxref\n0\n%%EOF\n" + after;
    for (before, after, is_one) in [
        ("x".repeat(1_000), String::new(), true),
        ("It begins with ".to_owned(), "\n".repeat(1_000), true),
        ("x".repeat(1_020), String::new(), false),
        (
            "It begins with ".to_owned(),
            "and goes on\n".repeat(100),
            false,
        ),
    ] {
        let told = tell("a.pdf", whole(&before, &after).as_bytes());
        assert_eq!(told.is_ok(), is_one, "{before:.20} {after:.20}");
    }
    // A text may show how a PDF begins.
    assert!(tell("a.txt", file("Such a file begins with\n").as_bytes()).is_ok());
    for text in [
        file("It begins with "),
        file(&"long\n".repeat(300)),
        "about\n%PDF-x.y and 1 0 obj".to_owned(),
        "about\n%PDF-1.7 alone".to_owned(),
    ] {
        assert!(tell("a.pdf", text.as_bytes()).is_err(), "{text}");
    }
}

#[test]
fn ebcdic_is_named() {
    // `<html><body>Hello, world</body></html>` in code page 037, in one line and in several.
    let page: Vec<u8> = [
        "4C88A394936E4C829684A86E",
        "4C976EC8859393966B40A6969993844B40E38889A240898940819540964D9340978187854B4C61976E",
        "4C61829684A86E4C6188A394936E",
    ]
    .concat()
    .as_bytes()
    .as_chunks::<2>()
    .0
    .iter()
    .map(|hex| u8::from_str_radix(std::str::from_utf8(hex).unwrap(), 16).unwrap())
    .collect();
    let lines = [&page[..], b"\x15", &page].concat();
    for file in [&page, &lines] {
        for name in ["a.html", "a.txt"] {
            let refused = tell(name, file).unwrap_err().to_string();
            assert!(
                refused.ends_with("text in EBCDIC, which is not read"),
                "{refused}"
            );
        }
    }
    // Text of other alphabets has bytes of these values.
    let cyrillic = encoding_rs::WINDOWS_1251
        .encode("Привет,мир!@@Как@дела?")
        .0
        .into_owned();
    assert!(tell("a.txt", &[&cyrillic[..], b" \n"].concat()).is_ok());
}

#[test]
fn a_stray_byte_does_not_make_text_something_else() {
    for stray in [0, 8, 0x7F] {
        let with = |text: &[u8]| [text, &[stray], b" and on"].concat();
        assert_eq!(tell("a.txt", &with(b"words")), Ok(Format::Text));
        assert_eq!(tell("a.csv", &with(b"a,b\n1,2")), Ok(Format::Csv));
        assert_eq!(tell("a.html", &with(b"<html>a")), Ok(Format::Html));
        let long = with(&[b'a'; 200_000]);
        assert_eq!(tell("a.txt", &long.repeat(2)), Ok(Format::Text));
    }
}

/// A compound file with one sector of allocation table and one of directory.
fn compound(names: &[&str]) -> Vec<u8> {
    let mut header = vec![0; 512];
    header[..8].copy_from_slice(&ole::SIGNATURE);
    header[30] = 9;
    header[48..52].copy_from_slice(&1_u32.to_le_bytes());
    header[68..72].copy_from_slice(&u32::MAX.to_le_bytes());
    header[76..512].fill(0xFF);
    header[76..80].copy_from_slice(&0_u32.to_le_bytes());
    let mut table = vec![0xFF; 512];
    let sectors = (names.len() + 1).div_ceil(4);
    for sector in 1..sectors {
        table[4 * sector..4 * sector + 4].copy_from_slice(&(sector as u32 + 1).to_le_bytes());
    }
    table[4 * sectors..4 * sectors + 4].copy_from_slice(&0xFFFF_FFFE_u32.to_le_bytes());
    let mut directory = vec![];
    let entry = |name: &str, right: u32, child: u32| {
        let mut entry = vec![0; 128];
        let units: Vec<u8> = name.encode_utf16().flat_map(u16::to_le_bytes).collect();
        entry[..units.len()].copy_from_slice(&units);
        entry[64] = units.len() as u8 + 2;
        entry[68..72].copy_from_slice(&u32::MAX.to_le_bytes());
        entry[72..76].copy_from_slice(&right.to_le_bytes());
        entry[76..80].copy_from_slice(&child.to_le_bytes());
        entry
    };
    directory.extend(entry("Root Entry", u32::MAX, 1));
    for (index, name) in names.iter().enumerate() {
        // The last one leads back to the first.
        let right = if index + 1 < names.len() {
            index as u32 + 2
        } else {
            1
        };
        directory.extend(entry(name, right, u32::MAX));
    }
    directory.resize(sectors * 512, 0);
    [header, table, directory].concat()
}

#[test]
fn compound_files_are_told_apart_by_what_is_at_their_top() {
    for (stream, format) in [
        ("WordDocument", Format::Doc),
        ("PowerPoint Document", Format::Ppt),
        ("Workbook", Format::Xls),
        ("Book", Format::Xls),
    ] {
        let names = ["a", "b", "c", "d", "e", stream];
        assert_eq!(
            tell(&format!("a.{}", format.name()), &compound(&names)),
            Ok(format)
        );
        for other in [Format::Doc, Format::Ppt, Format::Xls, Format::Docx] {
            let told = tell(&format!("a.{}", other.name()), &compound(&names));
            assert_eq!(told.is_ok(), other == format, "{stream} as {other}");
        }
    }
    let locked = compound(&["EncryptionInfo", "EncryptedPackage"]);
    assert_eq!(tell("a.docx", &locked), Err(ExtractError::Encrypted));
    assert!(matches!(
        tell("a.doc", &locked),
        Err(ExtractError::Mismatch { .. })
    ));
    assert!(matches!(
        tell("a.doc", &compound(&["mail"])),
        Err(ExtractError::Mismatch { .. })
    ));
    assert!(matches!(
        tell("a.doc", &locked[..600]),
        Err(ExtractError::Damaged(_))
    ));
    // A directory whose sectors lead in a circle has an end.
    let mut circle = compound(&["a", "b", "c", "d"]);
    circle[512 + 8..512 + 12].copy_from_slice(&1_u32.to_le_bytes());
    assert!(matches!(
        tell("a.doc", &circle),
        Err(ExtractError::Mismatch { .. })
    ));
}

/// Reads that are counted, of a file that never has to exist.
struct Counted {
    file: Cursor<Vec<u8>>,
    read: u64,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(into)?;
        self.read += read as u64;
        Ok(read)
    }
}

impl Seek for Counted {
    fn seek(&mut self, to: io::SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

#[test]
fn a_directory_that_claims_millions_costs_little() {
    let one = zip(&[("a", b"")]);
    let entry = one.windows(4).position(|w| w == b"PK\x01\x02").unwrap();
    let end = one.windows(4).position(|w| w == b"PK\x05\x06").unwrap();
    let mut many = one[..entry].to_vec();
    for _ in 0..200_000 {
        many.extend(&one[entry..end]);
    }
    let size = (many.len() - entry) as u32;
    let mut tail = one[end..].to_vec();
    tail[10..12].copy_from_slice(&0xFFFF_u16.to_le_bytes());
    tail[12..16].copy_from_slice(&size.to_le_bytes());
    many.extend(tail);
    let length = many.len() as u64;
    let mut file = Counted {
        file: Cursor::new(many),
        read: 0,
    };
    let told = agrees(Format::Docx, &mut file);
    assert!(
        matches!(told, Err(DetectError::Refused(ExtractError::Archive(_)))),
        "{told:?}"
    );
    assert!(file.read < length, "{} of {length}", file.read);
}

#[test]
fn no_fuzzed_file_makes_detection_fail() {
    let seeds: Vec<Vec<u8>> = begins()
        .into_iter()
        .map(|(_, bytes)| bytes)
        .chain([
            compound(&["WordDocument"]),
            compound(&["a", "EncryptedPackage"]),
        ])
        .collect();
    colloquy_fuzz::fuzz(&seeds, |bytes| {
        let found = found(&mut Cursor::new(bytes)).unwrap();
        match found {
            Found::Other(words) => words,
            found => format!("{found:?}"),
        }
    });
}
