//! Clients that come back.

use std::collections::HashMap;

use support::on_each_database;
use tokio::time::sleep;

use super::*;

on_each_database!(a_client_that_resumes_gets_what_it_missed, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    app.partner("other").await;
    let mut stream = watch(&app, &acme.key, "acme").await;
    add_voice(&app, "acme", "ada").await;
    stream.reaches(newest(&app).await).await;
    let last = stream.last_id.unwrap();
    drop(stream);

    add_voice(&app, "acme", "eve").await;
    add_voice(&app, "other", "zoe").await;
    run(&app, "DELETE FROM voices WHERE name = 'ada'").await;
    let mut stream = resume(&app, &acme.key, "acme", last).await;
    assert_eq!(stream.event().await, event("voice", "eve", None, false));
    assert_eq!(stream.event().await, event("voice", "ada", None, true));
    assert_eq!(stream.event().await.0, "ready");
    add_voice(&app, "acme", "ida").await;
    loop {
        let told = stream.event().await;
        if told == event("voice", "ida", None, false) {
            break;
        }
        // What was missed may come twice, and nothing else.
        assert!(
            ["eve", "ada"].contains(&told.1["id"].as_str().unwrap()),
            "{told:?}"
        );
    }
});

on_each_database!(
    a_client_that_missed_too_much_reads_everything_again,
    |database| {
        let app = start(builder(&database)).await;
        let acme = app.partner("acme").await;
        let reset = async |id: i64| {
            let mut stream = resume(&app, &acme.key, "acme", id).await;
            stream.event().await.0 == "reset"
        };
        assert!(!reset(0).await);
        // The number of a database that was restored since.
        assert!(reset(newest(&app).await + 1).await);
        // Beside the change of the key.
        run(&app, &voices("acme", "v", 999)).await;
        assert!(!reset(0).await);
        add_voice(&app, "acme", "last").await;
        assert!(reset(0).await);
        assert!(!reset(newest(&app).await - 1_000).await);

        let request = watching(&app, &acme.key, "acme").header("last-event-id", "x1");
        assert_eq!(request.send().await.status(), 400);
    }
);

on_each_database!(deleted_resources_are_forgotten_after_a_day, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    add_voice(&app, "acme", "ada").await;
    let before = newest(&app).await;
    run(&app, "DELETE FROM voices WHERE name = 'ada'").await;
    let gone = newest(&app).await;
    add_voice(&app, "acme", "eve").await;
    run(
        &app,
        &format!("UPDATE changes SET changed_at = 1 WHERE seq = {gone}"),
    )
    .await;
    let mut stream = resume(&app, &acme.key, "acme", before).await;
    assert_eq!(stream.event().await, event("voice", "ada", None, true));
    drop(stream);
    app.stop().await;

    // A server that starts purges.
    let app = start(builder(&database)).await;
    support::eventually("the change is purged", async || {
        let sql = format!("SELECT COUNT(*) FROM changes WHERE seq = {gone}");
        store(&app).db().fetch_count(sql).await.unwrap() == 0
    })
    .await;
    let mut stream = resume(&app, &acme.key, "acme", before).await;
    assert_eq!(stream.event().await.0, "reset");
    let mut stream = resume(&app, &acme.key, "acme", gone).await;
    assert_eq!(stream.event().await, event("voice", "eve", None, false));
});

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_is_committed_late_is_not_passed_over() {
    let app = start(builder(&TestDatabase::postgres().await)).await;
    let acme = app.partner("acme").await;
    add_voice(&app, "acme", "first").await;
    let mut stream = watch(&app, &acme.key, "acme").await;
    stream.reaches(newest(&app).await).await;

    // The slow transaction gets the smaller number.
    let slow = store(&app).begin().await.unwrap();
    slow.execute(voice("acme", "slow")).await.unwrap();
    add_voice(&app, "acme", "quick").await;
    let quick = newest(&app).await;
    assert_eq!(stream.event().await, event("voice", "quick", None, false));
    let last = stream.last_id.unwrap();
    assert!(
        last < quick - 1,
        "{last} is before the slow change, {quick} is the quick one"
    );
    slow.commit().await.unwrap();
    assert_eq!(stream.event().await, event("voice", "slow", None, false));
    stream.reaches(quick).await;

    // A client that came back in the meantime gets both.
    let mut again = resume(&app, &acme.key, "acme", last).await;
    let told = [again.event().await, again.event().await];
    let names = told.map(|(_, data)| data["id"].clone());
    assert_eq!(names, [json!("slow"), json!("quick")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_change_of_a_younger_transaction_is_not_passed_over() {
    let app = start(builder(&TestDatabase::postgres().await)).await;
    let acme = app.partner("acme").await;
    add_voice(&app, "acme", "first").await;
    let mut stream = watch(&app, &acme.key, "acme").await;
    stream.reaches(newest(&app).await).await;

    // The elder transaction gets the larger number, and ends first.
    let elder = store(&app).begin().await.unwrap();
    let touch = "UPDATE partners SET updated_at = updated_at WHERE id = 'acme'";
    elder.execute(touch).await.unwrap();
    let younger = store(&app).begin().await.unwrap();
    younger.execute(voice("acme", "younger")).await.unwrap();
    elder.execute(voice("acme", "elder")).await.unwrap();
    elder.commit().await.unwrap();
    let last_number = newest(&app).await;
    assert_eq!(stream.event().await, event("voice", "elder", None, false));
    // The reader has had time to take the number for complete.
    add_voice(&app, "acme", "later").await;
    assert_eq!(stream.event().await, event("voice", "later", None, false));
    let last = stream.last_id.unwrap();
    assert!(last < last_number - 1, "{last} {last_number}");
    younger.commit().await.unwrap();
    assert_eq!(stream.event().await, event("voice", "younger", None, false));
    let mut again = resume(&app, &acme.key, "acme", last).await;
    let told = [
        again.event().await,
        again.event().await,
        again.event().await,
    ];
    let names = told.map(|(_, data)| data["id"].clone());
    assert_eq!(names, [json!("younger"), json!("elder"), json!("later")]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_of_one_node_reach_the_streams_of_another() {
    let database = TestDatabase::postgres().await;
    let first = start(builder(&database).node("first")).await;
    let second = start(builder(&database).node("second")).await;
    let acme = first.partner("acme").await;
    let mut stream = watch(&second, &acme.key, "acme").await;
    add_voice(&first, "acme", "ada").await;
    assert_eq!(stream.event().await, event("voice", "ada", None, false));
    stream.reaches(newest(&first).await).await;
    // The id of one node is good for the other.
    let last = stream.last_id.unwrap();
    add_voice(&second, "acme", "eve").await;
    let mut stream = resume(&first, &acme.key, "acme", last).await;
    assert_eq!(stream.event().await, event("voice", "eve", None, false));
}

on_each_database!(
    changes_that_nobody_waited_for_are_not_repeated,
    |database| {
        let app = start(builder(&database)).await;
        let acme = app.partner("acme").await;
        let mut stream = watch(&app, &acme.key, "acme").await;
        add_voice(&app, "acme", "ada").await;
        stream.reaches(newest(&app).await).await;
        let last = stream.last_id.unwrap();
        drop(stream);
        // The reader rests.
        sleep(patience(Duration::from_millis(600))).await;
        add_voice(&app, "acme", "eve").await;
        sleep(patience(Duration::from_millis(300))).await;

        let mut stream = watch(&app, &acme.key, "acme").await;
        let mut resumed = resume(&app, &acme.key, "acme", last).await;
        assert_eq!(resumed.event().await, event("voice", "eve", None, false));
        assert_eq!(resumed.event().await.0, "ready");
        add_voice(&app, "acme", "ida").await;
        for stream in [&mut stream, &mut resumed] {
            assert_eq!(stream.event().await, event("voice", "ida", None, false));
        }
    }
);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_stays_open_for_long_holds_no_other_change_up() {
    /// More than are read again while the transaction is open.
    const OTHERS: usize = 1_100;
    let app = start(builder(&TestDatabase::postgres().await)).await;
    let acme = app.partner("acme").await;
    add_voice(&app, "acme", "first").await;
    let mut stream = watch(&app, &acme.key, "acme").await;
    stream.reaches(newest(&app).await).await;

    let slow = store(&app).begin().await.unwrap();
    slow.execute(voice("acme", "slow")).await.unwrap();
    let mut told = HashMap::new();
    let mut count = async |stream: &mut TestStream, all: usize| {
        while told.len() < all {
            let (kind, data) = stream.event().await;
            assert_eq!(kind, "voice", "{data}");
            let name = data["id"].as_str().unwrap().to_owned();
            *told.entry(name).or_insert(0) += 1;
        }
    };
    run(&app, &voices("acme", "v", OTHERS)).await;
    count(&mut stream, OTHERS).await;
    let last = stream.last_id;
    add_voice(&app, "acme", "next").await;
    count(&mut stream, OTHERS + 1).await;
    // A client that comes back gets the change of the transaction, too.
    assert_eq!(stream.last_id, last);

    slow.commit().await.unwrap();
    count(&mut stream, OTHERS + 2).await;
    stream.reaches(newest(&app).await).await;
    add_voice(&app, "acme", "end").await;
    count(&mut stream, OTHERS + 3).await;
    assert!(told.contains_key("slow") && told.values().all(|times| *times == 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_changes_beside_an_open_transaction_than_are_remembered_end_in_a_reset() {
    /// More than are remembered.
    const OTHERS: usize = 10_100;
    let app = start(builder(&TestDatabase::postgres().await)).await;
    let acme = app.partner("acme").await;
    add_voice(&app, "acme", "first").await;
    let mut stream = watch(&app, &acme.key, "acme").await;
    stream.reaches(newest(&app).await).await;

    let slow = store(&app).begin().await.unwrap();
    slow.execute(voice("acme", "slow")).await.unwrap();
    run(&app, &voices("acme", "v", OTHERS)).await;
    for _ in 0..OTHERS {
        assert_eq!(stream.event().await.0, "voice");
    }
    add_voice(&app, "acme", "next").await;
    let next = stream.event().await;
    assert_eq!(next, event("voice", "next", None, false));
    slow.commit().await.unwrap();
    assert_eq!(stream.event().await.0, "reset");

    stream.reaches(newest(&app).await).await;
    add_voice(&app, "acme", "end").await;
    let end = event("voice", "end", None, false);
    while stream.event().await != end {}
}

on_each_database!(
    one_transaction_with_many_changes_resets_nobody,
    |database| {
        const MANY: usize = 10_100;
        let app = start(builder(&database)).await;
        let acme = app.partner("acme").await;
        let mut stream = watch(&app, &acme.key, "acme").await;
        run(&app, &voices("acme", "v", MANY)).await;
        for _ in 0..MANY {
            assert_eq!(stream.event().await.0, "voice");
        }
        stream.reaches(newest(&app).await).await;
        add_voice(&app, "acme", "end").await;
        let end = event("voice", "end", None, false);
        assert_eq!(stream.event().await, end);
    }
);
