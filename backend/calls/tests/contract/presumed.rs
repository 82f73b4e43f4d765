//! Calls that were presumed lost and go on.

use calls::LineLog;

use super::{
    live::{end, expect_no_lines, line, lines, said_by_bot, take},
    recovery::{completed, create},
    *,
};

// Nothing else tells its partner that a call goes on that was taken for lost.
on_each_database!(
    a_call_whose_node_is_heard_again_is_shown_as_it_goes_on,
    |database| {
        let clock = manual();
        let node = |name: &str| start_by(builder(&database).node(name).shared_clock(&clock));
        let alive = node("alive").await;
        let (acme, _) = alive.acme_and_other().await;
        let cut_off = node("cut-off").await;
        let joined = create(&alive, &acme, None).await;
        let connected = create(&alive, &acme, None).await;
        for path in [&joined, &connected] {
            let taken = calls::take(&cut_off.state, bare(path), None).await;
            taken.unwrap().unwrap();
        }
        let marked = calls::mark_ongoing(&cut_off.state, bare(&connected)).await;
        marked.unwrap();
        let states = async || {
            let joined = state(&alive, &acme, &joined).await;
            (joined, state(&alive, &acme, &connected).await)
        };
        let listed = async |state: &str| {
            let path = format!("/v2/calls?state={state}");
            let page = alive.get(&acme.key, &path).await.expect(200);
            let ids = page["data"].as_array().unwrap().iter();
            ids.map(|call| call["id"].as_str().unwrap().to_owned())
                .collect::<Vec<_>>()
        };
        let error_code = async || {
            let read = alive.get(&acme.key, &connected).await.expect(200);
            read["data"]["error_code"].clone()
        };
        clock.advance(Duration::from_secs(31));
        calls::sweep(&alive.state).await.unwrap();
        assert_eq!(states().await, (json!("error"), json!("error")));
        assert_eq!(error_code().await, "NODE_LOST");

        node::heartbeat(&cut_off.state.kernel).await.unwrap();
        calls::sweep(&alive.state).await.unwrap();
        assert_eq!(states().await, (json!("starting"), json!("ongoing")));
        assert_eq!(error_code().await, Value::Null);
        assert_eq!(listed("ongoing").await, std::slice::from_ref(&connected));
        assert_eq!(listed("error").await, [""; 0]);
        // Longer than calls are kept for a node that stays away.
        clock.advance(Duration::from_secs(660));
        assert_eq!(states().await, (json!("error"), json!("error")));
        node::heartbeat(&cut_off.state.kernel).await.unwrap();
        alive.delete(&acme.key, &connected).await.expect(409);
        let finished = calls::finish(&cut_off.state, bare(&connected), completed()).await;
        finished.unwrap();
        assert_eq!(states().await, (json!("starting"), json!("completed")));
        alive.delete(&acme.key, &connected).await.expect(204);
        alive.stop().await;
    }
);

// Whoever watches such a call goes on watching, and can end it.
on_each_database!(
    a_call_that_was_presumed_lost_is_followed_and_ended_while_its_node_lives,
    |database| {
        let clock = manual();
        let node = |name: &str| start_by(builder(&database).node(name).shared_clock(&clock));
        let alive = node("alive").await;
        let (acme, _) = alive.acme_and_other().await;
        let cut_off = node("cut-off").await;
        let key = acme.key.as_str();
        let mut running = Vec::new();
        for _ in 0..2 {
            let path = create(&alive, &acme, None).await;
            let setup = take(&cut_off, bare(&path)).await;
            calls::mark_ongoing(&cut_off.state, bare(&path))
                .await
                .unwrap();
            let log = LineLog::start(&cut_off.state, bare(&path));
            said_by_bot(&alive, key, bare(&path), &log, "Welcome.").await;
            running.push((path, setup, log));
        }
        let [(watched, watched_setup, log), (early, early_setup, _)] = &running[..] else {
            unreachable!()
        };
        let is_asked = async |setup: &calls::CallSetup| {
            calls::ending::look_for_end_requests(&cut_off.state)
                .await
                .unwrap();
            let asked = tokio::time::timeout(Duration::ZERO, setup.end_requests.requested());
            asked.await.is_ok()
        };
        clock.advance(Duration::from_secs(31));
        calls::sweep(&alive.state).await.unwrap();
        let none = json!({"is_open": false, "lines": []});
        assert_eq!(lines(&alive, key, bare(watched)).await, none);
        // Its node may live all the same.
        let status = end(&alive, key, bare(early)).await;
        assert_eq!(status["error_code"], "NODE_LOST", "{status}");
        assert!(is_asked(early_setup).await);
        assert!(!is_asked(watched_setup).await);

        node::heartbeat(&cut_off.state.kernel).await.unwrap();
        assert_eq!(state(&alive, &acme, watched).await, "ongoing");
        log.said(1, line(Originator::User, "Are you there?", 40_000, false));
        let open = support::until(
            "the line is there",
            |seen: &Value| seen["lines"][0]["text"] == "Are you there?",
            async || lines(&alive, key, bare(watched)).await,
        )
        .await;
        assert_eq!(open["is_open"], true, "{open}");
        let status = end(&alive, key, bare(watched)).await;
        assert_eq!(status["state"], "ongoing", "its node ends it: {status}");
        assert_eq!(status["error_code"], Value::Null, "{status}");
        assert!(is_asked(watched_setup).await);

        for (path, ..) in &running {
            let said = vec![line(Originator::Bot, "Welcome.", 100, false)];
            let outcome = Outcome {
                transcript: said,
                ..completed()
            };
            calls::finish(&cut_off.state, bare(path), outcome)
                .await
                .unwrap();
            let over = lines(&alive, key, bare(path)).await;
            assert_eq!(over["is_open"], false);
            assert_eq!(over["lines"][0]["text"], "Welcome.");
        }
        drop(running);
        expect_no_lines(&alive).await;
        alive.stop().await;
    }
);
