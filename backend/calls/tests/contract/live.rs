//! Calls that run: what is said in them, and their end on request.

use calls::{LineLog, ReplyRecord};
use colloquy_store::statement;
use futures_util::future::join_all;
use support::elsewhere;

use super::*;

pub(super) fn line(
    originator: Originator,
    text: &str,
    at_ms: u64,
    interrupted: bool,
) -> TranscriptLine {
    TranscriptLine {
        text: text.to_owned(),
        originator,
        at_ms,
        interrupted,
        reply: None,
    }
}

/// Asks for the end of the call, and returns its status.
pub(super) async fn end(app: &TestRoutes<Place>, key: &str, id: &str) -> Value {
    let answer = app.post(key, &format!("{CALLS}/{id}/end"), json!({})).await;
    answer.expect(200)["data"].clone()
}

/// The lines of the call.
pub(super) async fn lines(app: &TestRoutes<Place>, key: &str, id: &str) -> Value {
    let answer = app.get(key, &format!("{CALLS}/{id}/lines")).await;
    answer.expect(200)["data"].clone()
}

/// Neither lines of calls are left, nor what tells of them.
pub(super) async fn expect_no_lines(app: &TestRoutes<Place>) {
    let db = app.state.store.db();
    for sql in [
        "SELECT COUNT(*) FROM call_lines",
        "SELECT COUNT(*) FROM changes WHERE kind = 'call_lines'",
    ] {
        assert_eq!(db.fetch_count(sql).await.unwrap(), 0, "{sql}");
    }
}

pub(super) async fn take(app: &TestRoutes<Place>, id: &str) -> calls::CallSetup {
    calls::take(&app.state, id, None).await.unwrap().unwrap()
}

on_each_database!(a_call_is_followed_while_it_runs, |database| {
    let app = start(&database).await;
    let (acme, other) = app.acme_and_other().await;
    let id = create(&app, &acme, call()).await;
    let none = json!({"is_open": true, "lines": []});
    assert_eq!(lines(&app, &acme.key, &id).await, none);
    let _setup = take(&app, &id).await;
    let log = LineLog::start(&app.state, &id);
    // A line that was heard late comes before what began after it, and one that changes stays where it is.
    log.said(1, line(Originator::Bot, "We open at nine and", 900, false));
    log.said(0, line(Originator::User, "When do you open?", 100, false));
    let answer = TranscriptLine {
        reply: Some(ReplyRecord {
            waited_ms: Some(800),
            model_ms: Some(350),
            documents: vec!["Opening hours".to_owned()],
            ..ReplyRecord::default()
        }),
        ..line(Originator::Bot, "We open", 900, true)
    };
    log.said(1, answer.clone());
    log.said(2, line(Originator::Bot, "Sorry?", 1_500, false));
    log.said(2, line(Originator::Bot, "", 1_500, false));
    let reply = json!({
        "waited_ms": 800, "transcription_ms": null, "model_ms": 350, "synthesis_ms": null, "documents": ["Opening hours"],
    });
    let question = json!({
        "text": "When do you open?", "originator": "user", "at_ms": 100, "interrupted": false, "reply": null,
    });
    let answered = json!({
        "text": "We open", "originator": "bot", "at_ms": 900, "interrupted": true, "reply": reply,
    });
    let expected = json!({"is_open": true, "lines": [question, answered]});
    eventually("the lines are there", async || {
        lines(&app, &acme.key, &id).await == expected
    })
    .await;
    let path = format!("{CALLS}/{id}/lines");
    app.get(&other.key, &path).await.expect(404);

    // The transcript of the end takes their place, and a line that comes too late is not stored.
    let said = Outcome {
        transcript: vec![
            line(Originator::User, "When do you open?", 100, false),
            answer,
            line(Originator::User, "Thanks.", 2_000, false),
        ],
        ..outcome()
    };
    calls::finish(&app.state, &id, said).await.unwrap();
    log.said(3, line(Originator::Bot, "Bye.", 3_000, false));
    let over = lines(&app, &acme.key, &id).await;
    assert_eq!(over["is_open"], false);
    assert_eq!(over["lines"][0], expected["lines"][0]);
    assert_eq!(over["lines"][1], expected["lines"][1]);
    assert_eq!(over["lines"][2]["text"], "Thanks.");
    drop(log);
    app.stop().await;
    expect_no_lines(&start(&database).await).await;
});

on_each_database!(lines_of_a_call_that_failed_are_gone, |database| {
    let app = start(&database).await;
    let (acme, _) = app.acme_and_other().await;
    let id = create(&app, &acme, call()).await;
    let _setup = take(&app, &id).await;
    let log = LineLog::start(&app.state, &id);
    log.said(0, line(Originator::Bot, "Welcome.", 100, false));
    eventually("the line is there", async || {
        lines(&app, &acme.key, &id).await["lines"][0]["text"] == "Welcome."
    })
    .await;
    let failed = Outcome {
        error: Some("INTERNAL".into()),
        transcript: Vec::new(),
        ..outcome()
    };
    calls::finish(&app.state, &id, failed).await.unwrap();
    let none = json!({"is_open": false, "lines": []});
    assert_eq!(lines(&app, &acme.key, &id).await, none);
    expect_no_lines(&app).await;
});

on_each_database!(
    lines_that_come_while_their_call_ends_are_left_nowhere,
    |database| {
        let app = start(&database).await;
        let (acme, _) = app.acme_and_other().await;
        let mut logs = Vec::new();
        for _ in 0..20 {
            let id = create(&app, &acme, call()).await;
            take(&app, &id).await;
            let log = LineLog::start(&app.state, &id);
            for number in 0..20 {
                log.said(number, line(Originator::Bot, "Welcome.", 100, false));
            }
            calls::finish(&app.state, &id, outcome()).await.unwrap();
            logs.push(log);
        }
        drop(logs);
        app.stop().await;
        expect_no_lines(&start(&database).await).await;
    }
);

/// Has a line said in a call, and waits until followers see it.
pub(super) async fn said_by_bot(
    app: &TestRoutes<Place>,
    key: &str,
    id: &str,
    log: &LineLog,
    text: &str,
) {
    log.said(0, line(Originator::Bot, text, 100, false));
    eventually("the line is there", async || {
        lines(app, key, id).await["lines"][0]["text"] == text
    })
    .await;
}

/// The end of a call in which this was said.
fn ended_with(transcript: Vec<TranscriptLine>) -> Outcome {
    Outcome {
        transcript,
        ..outcome()
    }
}

// Whoever reads them gets all lines of before the end, or the transcript: no line twice, and none is missing.
on_each_database!(
    lines_are_complete_for_those_who_read_while_a_call_ends,
    |database| {
        let app = start(&database).await;
        let (acme, _) = app.acme_and_other().await;
        for _ in 0..20 {
            let id = create(&app, &acme, call()).await;
            let _setup = take(&app, &id).await;
            let log = LineLog::start(&app.state, &id);
            said_by_bot(&app, &acme.key, &id, &log, "Welcome.").await;
            let before = lines(&app, &acme.key, &id).await;
            assert_eq!(before["is_open"], true);
            let outcome = ended_with(vec![
                line(Originator::Bot, "Welcome.", 100, false),
                line(Originator::User, "Bye.", 900, false),
            ]);
            let readers = (0..6).map(|_| lines(&app, &acme.key, &id));
            let (finished, seen) =
                tokio::join!(calls::finish(&app.state, &id, outcome), join_all(readers));
            finished.unwrap();
            let after = lines(&app, &acme.key, &id).await;
            assert_eq!(after["is_open"], false);
            assert_eq!(after["lines"].as_array().unwrap().len(), 2);
            for seen in seen {
                assert!(seen == before || seen == after, "{seen}");
            }
        }
    }
);

/// Waits until a statement waits for a lock of this table.
async fn waits_for(app: &TestRoutes<Place>, table: &str) {
    let db = app.state.store.db();
    elsewhere::eventually("a statement waits for a table", async || {
        let sql = "SELECT COUNT(*) FROM pg_locks l JOIN pg_database d ON d.oid = l.database \
                   WHERE d.datname = current_database() AND NOT l.granted AND l.relation = CAST(CAST($1 AS TEXT) AS regclass)";
        db.fetch_count(statement(sql, [table.into()]))
            .await
            .unwrap()
            > 0
    })
    .await;
}

// PostgreSQL can hold a reader between its looks at the call, at its lines, and at the call again.
#[tokio::test]
async fn a_call_that_ends_between_two_looks_is_read_with_its_transcript() {
    let database = TestDatabase::postgres().await;
    let app = start(&database).await;
    let (acme, _) = app.acme_and_other().await;
    for ends_before_its_lines_are_read in [true, false] {
        let id = create(&app, &acme, call()).await;
        let _setup = take(&app, &id).await;
        let log = LineLog::start(&app.state, &id);
        said_by_bot(&app, &acme.key, &id, &log, "Welcome.").await;
        let transcript = json!([
            {"text": "Welcome.", "originator": "bot", "at_ms": 100},
            {"text": "Bye.", "originator": "user", "at_ms": 900},
        ]);
        let exclusively = async |table: &str| {
            let holder = app.state.store.begin().await.unwrap();
            let lock = format!("LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE");
            holder.execute(lock).await.unwrap();
            holder
        };
        let of_lines = exclusively("call_lines").await;
        let ends = async {
            waits_for(&app, "call_lines").await;
            let holder = match ends_before_its_lines_are_read {
                true => of_lines,
                false => {
                    let of_calls = exclusively("calls").await;
                    of_lines.commit().await.unwrap();
                    waits_for(&app, "calls").await;
                    of_calls
                }
            };
            let sql =
                "UPDATE calls SET state = 'completed', transcript = $2, ended_at = 1 WHERE id = $1";
            let values = [id.as_str().into(), transcript.to_string().into()];
            holder.execute(statement(sql, values)).await.unwrap();
            holder.commit().await.unwrap();
        };
        let (read, ()) = tokio::join!(lines(&app, &acme.key, &id), ends);
        assert_eq!(read["is_open"], false, "{read}");
        let said = read["lines"].as_array().unwrap().iter();
        let said: Vec<_> = said.map(|line| line["text"].as_str().unwrap()).collect();
        assert_eq!(said, ["Welcome.", "Bye."]);
        // A line that comes after its call is left nowhere.
        log.said(1, line(Originator::Bot, "Still there?", 1_500, false));
        drop(log);
        assert_eq!(lines(&app, &acme.key, &id).await, read);
    }
    app.stop().await;
    expect_no_lines(&start(&database).await).await;
}

on_each_database!(a_call_that_nobody_joined_is_cancelled, |database| {
    let app = start(&database).await;
    let (acme, other) = app.acme_and_other().await;
    let body = json!({"kinds": ["call"], "period": "lifetime", "limits": {"seconds": 100}});
    let quota = app.quota(&acme, body).await;
    let created = app.post(&quota.key, CALLS, call()).await;
    let refused = created.expect(429);
    assert_eq!(refused["error"]["code"], "QUOTA_EXHAUSTED", "{refused}");
    let short = json!({"character": "repo:acme/ada", "call_time_limit_seconds": 60});
    let id = bare_id(&app.post(&quota.key, CALLS, short.clone()).await.expect(200));
    let foreign = format!("{CALLS}/{id}/end");
    app.post(&other.key, &foreign, json!({})).await.expect(404);

    let ended = end(&app, &quota.key, &id).await;
    assert_eq!(ended["state"], "error", "{ended}");
    assert_eq!(ended["error_code"], "CANCELLED", "{ended}");
    assert_eq!(ended["signedUrl"], Value::Null, "{ended}");
    let taken = calls::take(&app.state, &id, None).await.unwrap();
    assert_eq!(taken.map(|_| ()), Err(CloseCode::CallNotFound));
    // What was reserved is free again.
    app.post(&quota.key, CALLS, short).await.expect(200);
    // It stays as it is.
    assert_eq!(end(&app, &acme.key, &id).await, ended);
    expect_exact_sums(&app).await;
});

on_each_database!(a_call_ends_at_the_node_that_runs_it, |database| {
    let clock = manual();
    let node = |name: &str| builder(&database).node(name).shared_clock(&clock);
    let asked = start_by(node("asked")).await;
    let holder = start_by(node("holder")).await;
    let (acme, _) = asked.acme_and_other().await;
    for asks_holder in [true, false] {
        let id = create(&asked, &acme, call()).await;
        let other = create(&asked, &acme, call()).await;
        let setup = take(&holder, &id).await;
        let unasked = take(&holder, &other).await;
        let node = if asks_holder { &holder } else { &asked };
        let status = end(node, &acme.key, &id).await;
        assert_eq!(status["state"], "starting", "its node ends it: {status}");
        if !asks_holder {
            calls::ending::look_for_end_requests(&holder.state)
                .await
                .unwrap();
        }
        setup.end_requests.requested().await;
        let ends = tokio::time::timeout(Duration::ZERO, unasked.end_requests.requested());
        assert!(ends.await.is_err(), "nobody asked for the end of the other");

        calls::finish(&holder.state, &id, outcome()).await.unwrap();
        drop(setup);
        let status = end(&asked, &acme.key, &id).await;
        assert_eq!(status["state"], "completed", "it stays so: {status}");
        calls::finish(&holder.state, &other, outcome())
            .await
            .unwrap();
    }
});

// A request and a client that joins come at the same time: either nobody joins, or the node learns of the request.
on_each_database!(nobody_joins_a_call_that_was_ended, |database| {
    let app = start(&database).await;
    let (acme, _) = app.acme_and_other().await;
    for _ in 0..20 {
        let id = create(&app, &acme, call()).await;
        let (taken, ended) = tokio::join!(
            calls::take(&app.state, &id, None),
            end(&app, &acme.key, &id)
        );
        match taken.unwrap() {
            Ok(setup) => {
                calls::ending::look_for_end_requests(&app.state)
                    .await
                    .unwrap();
                setup.end_requests.requested().await;
                calls::finish(&app.state, &id, outcome()).await.unwrap();
            }
            Err(_) => assert_eq!(ended["error_code"], "CANCELLED", "{ended}"),
        }
    }
});
