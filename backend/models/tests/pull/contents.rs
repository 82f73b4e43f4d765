//! Files that are not the manifest's.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use colloquy_models::folder::{Presence, ReadError};

use crate::{
    server::Answer,
    setting::{Setting, contents, file, hash, model},
};

const PATH: &str = "/small/voice.bin";

#[tokio::test]
async fn nothing_without_its_hash_comes_into_its_place_or_out_of_it() {
    let setting = Setting::new().await;
    let voice = contents(10_000);
    let model = model(vec![file("voice.bin", &voice)]);
    let origin = setting.mirror();
    let mut other = voice.clone();
    other[5_000] ^= 1;
    for (wrong, why) in [
        (other.clone(), "its SHA-256 is not the one of the manifest"),
        (contents(9_999), "it has 9999 bytes and should have 10000"),
        (contents(10_001), "it has 10001 bytes and should have 10000"),
        (vec![], "it has 0 bytes and should have 10000"),
    ] {
        setting.server.put(PATH, &wrong);
        let error = setting.get(model, &origin).await.unwrap_err();
        assert_eq!(error.to_string(), "small: voice.bin could not be got");
        assert_eq!(
            setting.steps(),
            [
                "begins small/voice.bin".to_owned(),
                format!("failed: {why}")
            ]
        );
        // Asking again would not help.
        assert_eq!(setting.server.asked().len(), 1);
        assert_eq!(setting.folder.presence(model), Presence::Missing);
    }
    setting.server.put(PATH, &voice);
    setting.get(model, &origin).await.unwrap();
    // What became of it later is seen before it is used, and mended by the next pull.
    for wrong in [other, contents(9_999), vec![]] {
        fs::write(setting.folder.file(model, &model.files[0]), &wrong).unwrap();
        let error = setting.folder.read(model, &model.files[0]).unwrap_err();
        assert!(matches!(error, ReadError::Damaged { .. }), "{error}");
        let told = error.to_string();
        assert!(told.ends_with("is damaged: colloquy models pull small"));
        setting.folder.verify(model).unwrap_err();
        setting.get(model, &origin).await.unwrap();
        setting.folder.verify(model).unwrap();
    }
}

#[tokio::test]
async fn an_answer_without_an_end_is_left_when_it_is_too_long() {
    let setting = Setting::new().await;
    let voice = contents(100_000);
    let model = model(vec![file("voice.bin", &voice)]);
    setting.server.always(PATH, Answer::Endless);
    setting.get(model, &setting.mirror()).await.unwrap_err();
    assert_eq!(
        setting.steps(),
        [
            "begins small/voice.bin",
            "failed: it is longer than it should be"
        ]
    );
    assert_eq!(setting.server.asked().len(), 1);
    assert!(setting.all_files().is_empty());
    // What the two ends of the connection hold comes on top.
    assert!(
        setting.server.sent() < 16 << 20,
        "{}",
        setting.server.sent()
    );
}

/// Whoever looks at any time finds nothing, or the file.
#[tokio::test]
async fn at_no_time_is_there_a_part_of_a_file_under_its_name() {
    let setting = Setting::new().await;
    let voice = contents(2_000_000);
    let model = model(vec![file("voice.bin", &voice)]);
    setting.server.put(PATH, &voice);
    let place = setting.folder.file(model, &model.files[0]);
    let is_over = Arc::new(AtomicBool::new(false));
    let watcher = std::thread::spawn({
        let is_over = Arc::clone(&is_over);
        move || {
            let (mut looks, mut found) = (0, 0);
            while !is_over.load(Ordering::Relaxed) {
                looks += 1;
                if let Ok(contents) = fs::read(&place) {
                    assert_eq!(hash(&contents), model.files[0].sha256);
                    found += 1;
                }
            }
            (looks, found)
        }
    });
    for answers in [
        &[][..],
        &[Answer::BreaksOffHalfWay; 3],
        &[Answer::BreaksOff(1_999_999), Answer::Whole],
    ] {
        setting.server.next(PATH, answers);
        setting.get(model, &setting.mirror()).await.unwrap();
        setting.clear();
    }
    // What is wrong is not there for a moment.
    setting.server.put(PATH, &vec![9; 2_000_000]);
    setting.get(model, &setting.mirror()).await.unwrap_err();
    is_over.store(true, Ordering::Relaxed);
    let (looks, _) = watcher.join().unwrap();
    assert!(looks > 100, "{looks}");
}
