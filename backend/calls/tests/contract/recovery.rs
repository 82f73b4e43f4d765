//! Calls whose end nobody else writes: never joined, or their node is lost.

use colloquy_base::clock::Clock as _;
use test_routes::receiver::Receiver;

use super::*;

/// Places a call of a minute; its path.
pub(super) async fn create(
    app: &TestRoutes<Place>,
    partner: &TestPartner,
    webhook: Option<&str>,
) -> String {
    let body = json!({"character": "repo:acme/ada", "call_time_limit_seconds": 60, "on_completion_webhook": webhook});
    let answer = app.post(&partner.key, CALLS, body).await;
    let id = &answer.expect(200)["data"]["id"];
    id.as_str().unwrap().to_owned()
}

/// Takes a call for a node, whose media connects.
async fn connect(calls: &Calls, path: &str) {
    calls::take(calls, bare(path), None).await.unwrap().unwrap();
    calls::mark_ongoing(calls, bare(path)).await.unwrap();
}

pub(super) fn completed() -> Outcome {
    Outcome {
        error: None,
        call_time: Duration::from_secs(5),
        server_time: Duration::from_secs(6),
        visitor: serde_json::Map::new(),
        transcript: Vec::new(),
    }
}

on_each_database!(
    a_call_of_a_clock_that_was_ahead_does_not_wait_for_its_day,
    |database| {
        let clock = manual();
        let app = start_by(builder(&database).shared_clock(&clock)).await;
        let (acme, _) = app.acme_and_other().await;
        let now = clock.now();
        app.advance(Duration::from_secs(40 * 24 * 3_600));
        let ahead = create(&app, &acme, None).await;
        calls::sweep(&app.state).await.unwrap();
        assert_eq!(state(&app, &acme, &ahead).await, "starting");
        clock.set(now);
        // The clocks of other nodes may be a little ahead.
        app.advance(Duration::from_secs(600));
        let early = create(&app, &acme, None).await;
        clock.set(now);
        calls::sweep(&app.state).await.unwrap();
        assert_eq!(state(&app, &acme, &ahead).await, "error");
        assert_eq!(state(&app, &acme, &early).await, "starting");
    }
);

on_each_database!(
    a_call_that_nobody_joins_ends_in_error_at_its_expiry,
    |database| {
        let app = start_by(builder(&database)).await;
        let (acme, _) = app.acme_and_other().await;
        let (never, joined) = (
            create(&app, &acme, None).await,
            create(&app, &acme, None).await,
        );
        calls::take(&app.state, bare(&joined), None)
            .await
            .unwrap()
            .unwrap();
        app.advance(Duration::from_secs(299));
        calls::sweep(&app.state).await.unwrap();
        assert_eq!(state(&app, &acme, &never).await, "starting");
        app.advance(Duration::from_secs(1));
        calls::sweep(&app.state).await.unwrap();
        assert_eq!(state(&app, &acme, &never).await, "error");
        assert_eq!(state(&app, &acme, &joined).await, "starting");
        let take = calls::take(&app.state, bare(&never), None).await.unwrap();
        assert!(take.is_err());
    }
);

on_each_database!(
    calls_of_a_silent_node_end_in_error_and_those_of_living_nodes_go_on,
    |database| {
        let clock = manual();
        let node = |name: &str| start_by(builder(&database).node(name).shared_clock(&clock));
        let alive = node("alive").await;
        let (acme, _) = alive.acme_and_other().await;
        // Joined, but no heartbeat after the first.
        let silent = node("silent").await;
        let kept = create(&alive, &acme, None).await;
        let (lost, lost_early) = (
            create(&alive, &acme, None).await,
            create(&alive, &acme, None).await,
        );
        connect(&alive.state, &kept).await;
        connect(&silent.state, &lost).await;
        calls::take(&silent.state, bare(&lost_early), None)
            .await
            .unwrap()
            .unwrap();

        clock.advance(Duration::from_secs(30));
        calls::sweep(&alive.state).await.unwrap();
        assert_eq!(state(&alive, &acme, &lost).await, "ongoing");
        clock.advance(Duration::from_secs(1));
        calls::sweep(&alive.state).await.unwrap();
        assert_eq!(state(&alive, &acme, &lost).await, "error");
        assert_eq!(state(&alive, &acme, &lost_early).await, "error");
        assert_eq!(state(&alive, &acme, &kept).await, "ongoing");
    }
);

// A node that is cut off from the database for a while is taken for dead. It was not: what its calls came to counts, whether
// they end before or after the others hear of it again, and they cost what they took.
on_each_database!(
    the_outcome_of_a_node_that_was_taken_for_dead_wins,
    |database| {
        let receiver = Receiver::start().await;
        let clock = manual();
        let node = |name: &str| {
            let builder = builder(&database).node(name).shared_clock(&clock);
            start_by(builder.config(|config| receiver.configure(config)))
        };
        let alive = node("alive").await;
        alive.start_worker(&CAPABILITIES, quick()).await;
        let (acme, _) = alive.acme_and_other().await;
        let cut_off = node("cut-off").await;
        let quota = json!({"kinds": ["call"], "period": "day", "limits": {"seconds": 1000}});
        let quota = alive.quota(&acme, quota).await;
        let hook = format!("{}/hook", receiver.base);
        let payer = TestPartner {
            id: acme.id.clone(),
            key: quota.key.clone(),
        };
        let mut paths = Vec::new();
        for _ in 0..3 {
            let path = create(&alive, &payer, Some(&hook)).await;
            connect(&cut_off.state, &path).await;
            paths.push(path);
        }
        clock.advance(Duration::from_secs(3));
        node::heartbeat(&cut_off.state.kernel).await.unwrap();
        clock.advance(Duration::from_secs(31));
        calls::sweep(&alive.state).await.unwrap();
        let used = async || {
            let read = alive.get(&acme.key, &quota.path).await.expect(200);
            let usage = format!("{}/usage?from=2026-01-02&to=2026-01-02", quota.path);
            let days = alive.get(&acme.key, &usage).await.expect(200);
            (
                read["used"]["seconds"].clone(),
                read["reserved"]["seconds"].clone(),
                days["total"]["seconds"].clone(),
            )
        };
        // Until the last heartbeat.
        assert_eq!(used().await, (json!(9), json!(0), json!(9)));
        for path in &paths {
            assert_eq!(state(&alive, &acme, path).await, "error");
        }

        let [ended, failed, said] = &paths[..] else {
            unreachable!()
        };
        let finish = async |path: &str, outcome: Outcome| {
            let finished = calls::finish(&cut_off.state, bare(path), outcome).await;
            finished.unwrap();
        };
        finish(ended, completed()).await;
        node::heartbeat(&cut_off.state.kernel).await.unwrap();
        let outcome = Outcome {
            error: Some("INTERNAL".into()),
            call_time: Duration::from_secs(1),
            ..completed()
        };
        finish(failed, outcome).await;
        let outcome = Outcome {
            call_time: Duration::from_secs(40),
            transcript: vec![TranscriptLine {
                text: "Good-bye".to_owned(),
                originator: Originator::User,
                at_ms: 1,
                interrupted: false,
                reply: None,
            }],
            ..completed()
        };
        finish(said, outcome).await;
        // A second end changes nothing, and neither does another round of those who thought it dead.
        finish(said, completed()).await;
        calls::sweep(&alive.state).await.unwrap();
        assert_eq!(state(&alive, &acme, ended).await, "completed");
        assert_eq!(state(&alive, &acme, failed).await, "error");
        assert_eq!(state(&alive, &acme, said).await, "completed");
        let read = alive.get(&acme.key, said).await.expect(200);
        assert_eq!(read["data"]["duration"]["call_seconds"], 40);
        let transcript = alive.get(&acme.key, &format!("{said}/transcript")).await;
        assert_eq!(
            transcript.expect(200)["data"]["transcript"][0]["text"],
            "Good-bye"
        );
        // 5 s, 1 s and 40 s.
        assert_eq!(used().await, (json!(46), json!(0), json!(46)));
        let told = receiver.wait_for(2).await;
        let told: Vec<_> = told
            .iter()
            .map(|hook| hook.json()["data"]["id"].clone())
            .collect();
        assert!(
            told.contains(&json!(ended)) && told.contains(&json!(said)),
            "{told:?}"
        );
        assert_eq!(told.len(), 2);
        alive.stop().await;
    }
);

/// Lets no call be changed, by a PostgreSQL that says so with this SQLSTATE.
async fn refuse_changes(app: &TestRoutes<Place>, sqlstate: &str) {
    let db = app.state.store.db();
    let function = format!(
        "CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS \
         $$ BEGIN RAISE EXCEPTION 'refused' USING ERRCODE = '{sqlstate}'; END $$"
    );
    db.execute(function).await.unwrap();
    let trigger =
        "CREATE TRIGGER refuse BEFORE UPDATE ON calls FOR EACH ROW EXECUTE FUNCTION refuse()";
    db.execute(trigger).await.unwrap();
}

async fn allow_changes(app: &TestRoutes<Place>) {
    let db = app.state.store.db();
    db.execute("DROP TRIGGER refuse ON calls").await.unwrap();
}

#[tokio::test]
async fn a_call_that_connects_in_an_outage_is_ongoing_after_it() {
    let database = TestDatabase::postgres().await;
    let app = start_by(builder(&database)).await;
    let (acme, _) = app.acme_and_other().await;
    let path = create(&app, &acme, None).await;
    let id = bare(&path);
    calls::take(&app.state, id, None).await.unwrap().unwrap();
    let connected = || calls::connected(app.state.calls.clone(), id.to_owned());

    // What is refused for good is given up, so that nothing tries for ever.
    refuse_changes(&app, "23514").await;
    connected().await;
    allow_changes(&app).await;
    assert_eq!(state(&app, &acme, &path).await, "starting");

    // `cannot_connect_now`, as a server says that starts.
    refuse_changes(&app, "57P03").await;
    let begun = app.state.clock.now_ms();
    let mut trying = std::pin::pin!(connected());
    let a_while = support::patience(Duration::from_millis(100));
    let tried = tokio::time::timeout(a_while, &mut trying).await;
    assert!(tried.is_err(), "it is given up");
    app.advance(Duration::from_secs(7));
    allow_changes(&app).await;
    trying.await;
    assert_eq!(state(&app, &acme, &path).await, "ongoing");
    // It has been so since its media connected.
    let db = app.state.store.db();
    let since: Option<i64> = db
        .fetch_scalar("SELECT ongoing_at FROM calls")
        .await
        .unwrap();
    assert_eq!(since, Some(begun));
}
