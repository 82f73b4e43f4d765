//! Calls count in the storage of their partner: their characters until they end, their transcripts and metadata from then on.

use futures_util::future::join_all;

use super::*;

/// The bytes that calls which are over have of their characters.
async fn held_by_ended_calls(app: &TestRoutes<Place>) -> u64 {
    let sql = "SELECT CAST(COALESCE(SUM(octet_length(character_json) + octet_length(character_params)), 0) AS BIGINT) \
               FROM calls WHERE ended_at IS NOT NULL";
    app.state.store.db().fetch_count(sql).await.unwrap()
}

/// A call with a character of its own, of 1,300 bytes and more.
fn inline_call() -> Value {
    let character = json!({"personality": "You are Zoë.".repeat(100)});
    json!({"character": character, "character_params": {"who": "Zoë"}, "call_time_limit_seconds": 60})
}

/// The bare id of a call that was created.
async fn place_call(app: &TestRoutes<Place>, key: &str) -> String {
    bare_id(&app.post(key, CALLS, inline_call()).await.expect(200))
}

/// Joins a call with this metadata.
pub(super) async fn join(app: &TestRoutes<Place>, id: &str, metadata: &Value) {
    let joined = calls::take(&app.state, id, metadata.as_object()).await;
    joined.unwrap().unwrap();
}

pub(super) fn outcome(error: Option<&'static str>) -> Outcome {
    Outcome {
        error: error.map(Into::into),
        call_time: Duration::from_secs(5),
        server_time: Duration::from_secs(6),
        visitor: serde_json::Map::new(),
        transcript: vec![TranscriptLine {
            text: "Hello, Zoë!".to_owned(),
            originator: Originator::User,
            at_ms: 1,
            interrupted: false,
            reply: None,
        }],
    }
}

/// The bytes of the transcript of [`outcome`].
fn transcript_bytes() -> u64 {
    let lines = serde_json::to_string(&outcome(None).transcript).unwrap();
    lines.len() as u64
}

on_each_database!(a_call_counts_until_it_is_deleted, |database| {
    let app = start_by(builder(&database)).await;
    let (acme, _) = app.acme_and_other().await;
    let key = acme.key.as_str();
    let before = counted(&app).await;
    let mut ids = Vec::new();
    for placed in 1..=4 {
        ids.push(place_call(&app, key).await);
        let counted = counted(&app).await;
        assert!(counted >= before + placed * 1_300, "{counted}");
    }
    let [missed, said, failed, lost] = &ids[..] else {
        unreachable!()
    };
    let metadata = json!({"page": "/zoë"});
    let open = counted(&app).await;
    for id in [said, failed, lost] {
        join(&app, id, &metadata).await;
    }
    assert_eq!(
        counted(&app).await,
        open,
        "metadata counts once the call ended"
    );
    // The second end is none.
    for _ in 0..2 {
        for (id, error) in [(said, None), (failed, Some("INTERNAL"))] {
            let finished = calls::finish(&app.state, id, outcome(error)).await;
            finished.unwrap();
        }
    }
    let gone = format!("UPDATE calls SET node_id = 'gone' WHERE id = '{lost}'");
    app.state.store.db().execute(gone).await.unwrap();
    app.advance(Duration::from_secs(300));
    calls::sweep(&app.state).await.unwrap();
    let (of_metadata, of_transcript) = (metadata.to_string().len() as u64, transcript_bytes());
    assert_eq!(
        counted(&app).await,
        before + 3 * of_metadata + of_transcript
    );
    assert_eq!(held_by_ended_calls(&app).await, 0);
    // The node lives after all.
    let finished = calls::finish(&app.state, lost, outcome(None)).await;
    finished.unwrap();
    let ended = before + 3 * of_metadata + 2 * of_transcript;
    assert_eq!(counted(&app).await, ended);
    expect_exact_sums(&app).await;

    for (id, state) in [
        (missed, "error"),
        (said, "completed"),
        (failed, "error"),
        (lost, "completed"),
    ] {
        let path = format!("{CALLS}/{id}");
        let read = app.get(key, &path).await.expect(200);
        assert_eq!(read["data"]["state"], state, "{read}");
        let path = format!("{path}/transcript");
        let transcript = app.get(key, &path).await.expect(200);
        let is_completed = state == "completed";
        assert_eq!(transcript["data"]["available"], is_completed);
        let seat = calls::room::seat(&app.state, id, None).await;
        assert_eq!(seat.unwrap().unwrap_err(), CloseCode::CallNotFound);
    }

    app.advance(8 * DAY);
    calls::purge(&app.state).await.unwrap();
    for (id, status) in [(missed, 404), (said, 200), (failed, 404), (lost, 200)] {
        let path = format!("{CALLS}/{id}");
        app.get(key, &path).await.expect(status);
    }
    assert_eq!(counted(&app).await, ended - of_metadata);
    app.delete(key, &format!("{CALLS}/{lost}"))
        .await
        .expect(204);
    assert_eq!(
        counted(&app).await,
        before + of_metadata + of_transcript,
        "what the one has that was said"
    );
    app.advance(357 * DAY);
    calls::purge(&app.state).await.unwrap();
    for id in &ids {
        let path = format!("{CALLS}/{id}");
        app.get(key, &path).await.expect(404);
    }
    assert_eq!(counted(&app).await, before);
    expect_exact_sums(&app).await;
});

on_each_database!(a_partner_without_room_places_no_call, |database| {
    let app = start(&database).await;
    let (acme, _) = app.acme_and_other().await;
    let quota = json!({"kinds": ["call"], "period": "lifetime", "limits": {"seconds": 100}});
    let quota = app.quota(&acme, quota).await;
    let origin = "https://shop.example";
    let page = json!({"kind": "publishable", "allowed_origins": [origin]});
    let page = app.key("acme", page).await;
    let used = counted(&app).await;
    app.limit_storage("acme", 0).await;
    let call = json!({"character": "repo:acme/ada", "call_time_limit_seconds": 60});
    for key in [
        acme.key.as_str(),
        quota.key.as_str(),
        page["api_key"].as_str().unwrap(),
    ] {
        let request = app.request(Method::POST, CALLS).json(&call);
        let request = request.header("x-api-key", key).header("origin", origin);
        let refused = send(request).await;
        let body = refused.expect(413);
        assert_eq!(body["error"]["code"], "STORAGE_LIMIT_REACHED");
        // How much there is, is not for pages.
        assert!(!refused.text.contains("bytes together"), "{body}");
    }
    assert_eq!(counted(&app).await, used);
    let db = app.state.store.db();
    let rows = db.fetch_count("SELECT COUNT(*) FROM calls");
    assert_eq!(rows.await.unwrap(), 0);
    eventually("what was reserved is given back", || async {
        let read = app.get(&acme.key, &quota.path).await.expect(200);
        read["reserved"]["seconds"] == 0
    })
    .await;

    app.limit_storage("acme", used + 1_000_000).await;
    let first = place_call(&app, &acme.key).await;
    // Room for one at a time.
    let full = counted(&app).await;
    app.limit_storage("acme", full + transcript_bytes()).await;
    app.post(&acme.key, CALLS, inline_call()).await.expect(413);
    calls::finish(&app.state, &first, outcome(None))
        .await
        .unwrap();
    place_call(&app, &acme.key).await;
    assert_eq!(counted(&app).await, full + transcript_bytes());
});

on_each_database!(
    a_call_ends_beyond_the_limit_and_makes_room_when_it_is_deleted,
    |database| {
        let app = start(&database).await;
        let (acme, _) = app.acme_and_other().await;
        let key = acme.key.as_str();
        let before = counted(&app).await;
        let id = place_call(&app, key).await;
        app.limit_storage("acme", before).await;
        let metadata = json!({"page": "x".repeat(20_000)});
        join(&app, &id, &metadata).await;
        calls::mark_ongoing(&app.state, &id).await.unwrap();
        let finished = calls::finish(&app.state, &id, outcome(None)).await;
        finished.unwrap();
        let path = format!("{CALLS}/{id}");
        let read = app.get(key, &path).await.expect(200);
        assert_eq!(read["data"]["state"], "completed");
        assert_eq!(read["data"]["metadata"], metadata);
        let transcript = app.get(key, &format!("{path}/transcript")).await;
        assert_eq!(transcript.expect(200)["data"]["available"], true);
        let kept = metadata.to_string().len() as u64 + transcript_bytes();
        assert_eq!(counted(&app).await, before + kept);

        // New calls and other writes are refused until it is deleted.
        let new = json!({"name": "zoe", "personality": "x"});
        let characters = "/api/characters/acme";
        app.limit_storage("acme", before + 20_000).await;
        for (path, body) in [(CALLS, inline_call()), (characters, new.clone())] {
            let refused = app.post(key, path, body).await;
            assert_eq!(refused.status, 413, "{path}: {}", refused.text);
            assert!(refused.text.contains("calls that ended"), "{path}");
        }
        app.delete(key, &path).await.expect(204);
        assert_eq!(counted(&app).await, before);
        app.post(key, CALLS, inline_call()).await.expect(200);
        app.post(key, characters, new).await.expect(201);
        expect_exact_sums(&app).await;
    }
);

on_each_database!(
    calls_that_end_and_are_deleted_together_count_once,
    |database| {
        let app = start(&database).await;
        let (acme, _) = app.acme_and_other().await;
        let before = counted(&app).await;
        let mut ids = Vec::new();
        for _ in 0..8 {
            ids.push(place_call(&app, &acme.key).await);
        }
        let [ended, ending] = [&ids[..4], &ids[4..]];
        for id in ended {
            let finished = calls::finish(&app.state, id, outcome(None)).await;
            finished.unwrap();
        }
        // Each of them twice, and beside them a recount.
        let deleted = ended.iter().chain(ended).map(|id| {
            let path = format!("{CALLS}/{id}");
            let (app, key) = (&app, &acme.key);
            async move { app.delete(key, &path).await.status.as_u16() }
        });
        let finished = ending
            .iter()
            .chain(ending)
            .map(|id| calls::finish(&app.state, id, outcome(None)));
        let (deleted, finished, recounted) = tokio::join!(
            join_all(deleted),
            join_all(finished),
            recount(&app.state.store)
        );
        assert!(finished.iter().all(Result::is_ok), "{finished:?}");
        assert_eq!(recounted.unwrap(), 0);
        let of_status = |status: u16| deleted.iter().filter(|it| **it == status).count();
        assert_eq!((of_status(204), of_status(404)), (4, 4), "{deleted:?}");
        assert_eq!(counted(&app).await, before + 4 * transcript_bytes());
        expect_exact_sums(&app).await;
    }
);
