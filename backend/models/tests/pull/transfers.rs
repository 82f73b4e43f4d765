//! Transfers that break off, and servers that do not go on where they were asked to.

use std::time::Duration;

use colloquy_models::{
    folder::{Presence, ReadError},
    pull::PullError,
};
use support::patience;
use tokio::time::timeout;

use crate::{
    server::Answer,
    setting::{Setting, contents, file, model},
};

const PATH: &str = "/small/voice.bin";

#[tokio::test]
async fn a_transfer_that_breaks_off_goes_on_where_it_stopped() {
    let setting = Setting::new().await;
    let voice = contents(300_000);
    let model = model(vec![file("voice.bin", &voice)]);
    setting.server.put(PATH, &voice);
    assert_eq!(setting.folder.presence(model), Presence::Missing);
    let read = setting.folder.read(model, &model.files[0]);
    assert!(matches!(read, Err(ReadError::Missing { .. })));
    // More often than it would be tried in vain.
    setting.server.next(PATH, &[Answer::BreaksOffHalfWay; 5]);
    setting.get(model, &setting.mirror()).await.unwrap();
    let halves = [150_000, 225_000, 262_500, 281_250, 290_625].map(Some);
    let asked = setting.server.asked_from();
    assert_eq!(asked[0], None);
    assert_eq!(asked[1..], halves);
    assert_eq!(
        setting.steps(),
        ["begins small/voice.bin", "done voice.bin"]
    );
    assert_eq!(*setting.server.arrived.borrow(), 300_000);
    let read = setting.folder.read(model, &model.files[0]);
    assert_eq!(read.unwrap(), voice);
    setting.folder.verify(model).unwrap();
    assert_eq!(setting.folder.presence(model), Presence::Present);
    // Nothing is left over, and nothing is asked for twice.
    assert!(!setting.partial().exists());
    setting.get(model, &setting.mirror()).await.unwrap();
    assert_eq!(setting.steps(), ["present voice.bin"]);
    assert_eq!(setting.server.asked(), []);
}

#[tokio::test]
async fn what_a_process_left_behind_is_taken_up_by_the_next_one() {
    let setting = Setting::new().await;
    let voice = contents(300_000);
    let model = model(vec![file("voice.bin", &voice)]);
    setting.server.put(PATH, &voice);
    let longer = vec![9; 300_001];
    for (left, asked) in [
        (&voice[..200_000], vec![Some(200_000)]),
        // All of it is there, and was not put in its place.
        (&voice[..], vec![]),
        // What is no part of it is not gone on with.
        (&longer[..300_000], vec![None]),
        (&longer[..], vec![None]),
    ] {
        setting.clear();
        setting.leave(&model.files[0], left);
        setting.get(model, &setting.mirror()).await.unwrap();
        assert_eq!(setting.server.asked_from(), asked);
        setting.folder.verify(model).unwrap();
    }
}

#[tokio::test]
async fn a_server_that_sends_another_part_is_asked_for_all_of_it() {
    let setting = Setting::new().await;
    let voice = contents(300_000);
    let model = model(vec![file("voice.bin", &voice)]);
    setting.server.put(PATH, &voice);
    let (at, none) = (Some(200_000), None);
    for (answer, asked) in [
        (Answer::Whole, vec![at]),
        (Answer::PartBefore(1), vec![at, none]),
        (Answer::PartBefore(100_000), vec![at, none]),
        (Answer::PartWithoutItsPlace, vec![at, none]),
        (Answer::Status(416), vec![at, none]),
    ] {
        setting.clear();
        setting.leave(&model.files[0], &voice[..200_000]);
        setting.server.next(PATH, &[answer]);
        setting.get(model, &setting.mirror()).await.unwrap();
        assert_eq!(setting.server.asked_from(), asked, "{answer:?}");
        setting.folder.verify(model).unwrap();
    }
}

/// The first part was of an earlier file of that name, or of another mirror's.
#[tokio::test]
async fn a_file_that_has_changed_since_is_got_as_a_whole() {
    let setting = Setting::new().await;
    let voice = contents(300_000);
    let model = model(vec![file("voice.bin", &voice)]);
    setting.server.put(PATH, &voice);
    setting.leave(&model.files[0], &[9; 200_000]);
    setting.get(model, &setting.mirror()).await.unwrap();
    assert_eq!(setting.server.asked_from(), [Some(200_000), None]);
    setting.folder.verify(model).unwrap();

    // Within one transfer, too: what the server has is longer at first.
    setting.clear();
    setting.server.put(PATH, &[9; 400_000]);
    setting.leave(&model.files[0], &[9; 100_000]);
    setting.server.next(PATH, &[Answer::BreaksOff(100_000)]);
    let changed = async {
        let mut arrived = setting.server.arrived.subscribe();
        arrived
            .wait_for(|arrived| *arrived == 200_000)
            .await
            .unwrap();
        setting.server.put(PATH, &voice);
    };
    setting.server.arrived.send_replace(0);
    let origin = setting.mirror();
    let changed = timeout(patience(Duration::from_secs(60)), changed);
    let (got, changed) = tokio::join!(setting.get(model, &origin), changed);
    got.unwrap();
    changed.unwrap();
    assert_eq!(
        setting.server.asked_from(),
        [Some(100_000), Some(200_000), None]
    );
    setting.folder.verify(model).unwrap();

    // It is not tried for ever.
    setting.clear();
    setting.server.put(PATH, &[9; 300_000]);
    setting.leave(&model.files[0], &[9; 200_000]);
    let error = setting.get(model, &setting.mirror()).await.unwrap_err();
    assert!(matches!(error, PullError::Nowhere { .. }), "{error}");
    assert_eq!(setting.server.asked_from(), [Some(200_000), None]);
    assert_eq!(setting.folder.presence(model), Presence::Missing);
}

/// Each of them gets somewhere each time, and is never done.
#[tokio::test]
async fn a_transfer_that_begins_again_and_again_is_given_up() {
    let voice = contents(300_000);
    let model = model(vec![file("voice.bin", &voice)]);
    let up_and_down = [100_000, 150_000].map(Answer::WholeThatBreaksOff);
    let without_rest = [Answer::BreaksOffHalfWay, Answer::Status(416)];
    for (answers, asked) in [(up_and_down, 4), (without_rest, 7)] {
        let setting = Setting::new().await;
        setting.server.put(PATH, &voice);
        setting.server.next(PATH, &answers.repeat(50));
        let error = setting.get(model, &setting.mirror()).await.unwrap_err();
        assert!(matches!(error, PullError::Nowhere { .. }), "{error}");
        assert_eq!(setting.server.asked().len(), asked);
        assert_eq!(setting.folder.presence(model), Presence::Missing);
    }
}

#[tokio::test]
async fn a_failure_that_may_pass_is_waited_for_and_another_one_is_not() {
    let setting = Setting::new().await;
    let voice = contents(1_000);
    let model = model(vec![file("voice.bin", &voice)]);
    setting.server.put(PATH, &voice);
    for status in [429, 500, 503] {
        setting.clear();
        setting.server.next(PATH, &[Answer::Status(status); 2]);
        setting.get(model, &setting.mirror()).await.unwrap();
        assert_eq!(setting.server.asked().len(), 3);
    }
    for (status, asked) in [(503, 3), (404, 1), (403, 1), (204, 1)] {
        setting.clear();
        setting.server.always(PATH, Answer::Status(status));
        setting.get(model, &setting.mirror()).await.unwrap_err();
        assert_eq!(setting.server.asked().len(), asked, "{status}");
    }
}
