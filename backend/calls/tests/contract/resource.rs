//! A call from its creation to its end, as its partner reads it.

use super::*;

on_each_database!(
    calls_of_others_are_unknown_and_the_path_style_id_is_understood,
    |database| {
        let app = start(&database).await;
        let (acme, other) = app.acme_and_other().await;
        let id = create(&app, &acme, call()).await;
        for (partner, id) in [
            (&other, id.as_str()),
            (&acme, "0190d3f4-0000-7000-8000-000000000000"),
            (&acme, "x"),
        ] {
            for rest in ["", "/transcript", "/lines", "/quality", "/visitor"] {
                let path = format!("/v2/calls/{id}{rest}");
                let unknown = app.get(&partner.key, &path).await.expect(404);
                assert_eq!(unknown["error"]["code"], "CALL_NOT_FOUND");
            }
        }
        for path in [
            format!("/v2/calls/{id}"),
            format!("/v2/calls/%2Fv2%2Fcalls%2F{id}"),
        ] {
            for key in [acme.key.as_str(), ADMIN_KEY] {
                assert_eq!(bare_id(&app.get(key, &path).await.expect(200)), id);
            }
        }
    }
);

on_each_database!(a_call_lives_from_starting_to_completed, |database| {
    let app = start(&database).await;
    let (acme, _) = app.acme_and_other().await;
    let place = &app.state;
    let mut body = call();
    body["character_params"] = json!({"ship": "Nautilus"});
    let id = create(&app, &acme, body).await;
    let path = format!("/v2/calls/{id}");

    let setup = calls::take(place, &id, None).await.unwrap().unwrap();
    assert_eq!(setup.id, id);
    assert_eq!(setup.tenant.partner().as_str(), "acme");
    assert_eq!(setup.character.reference.as_deref(), Some("acme/ada"));
    assert_eq!(setup.character.parameters.other["ship"], "a boat");
    assert_eq!(setup.character_params["ship"], "Nautilus");
    let again = calls::take(place, &id, None).await.unwrap();
    assert_eq!(again.unwrap_err(), CloseCode::CallInUse);
    let taken = app.get(&acme.key, &path).await.expect(200);
    assert_eq!(taken["data"]["state"], "starting");
    assert_eq!(taken["data"]["signedUrl"], Value::Null);

    calls::mark_ongoing(place, &id).await.unwrap();
    let ongoing = app.get(&acme.key, &path).await.expect(200);
    assert_eq!(ongoing["data"]["state"], "ongoing");
    let url = format!("{BASE_URL}{path}/session").replace("http:", "ws:");
    assert_eq!(
        ongoing["data"]["available_endpoints"],
        json!([{"type": "websocket", "url": url}])
    );
    assert_eq!(
        calls::take(place, &id, None).await.unwrap().unwrap_err(),
        CloseCode::CallInUse
    );
    assert_eq!(
        transcript(&app, &acme, &path).await,
        json!({"data": {"available": false}})
    );

    calls::finish(place, &id, outcome()).await.unwrap();
    let completed = app.get(&acme.key, &path).await.expect(200);
    assert_eq!(completed["data"]["state"], "completed");
    assert_eq!(completed["data"]["available_endpoints"], json!([]));
    assert_eq!(
        completed["data"]["duration"],
        json!({"call_seconds": 61, "server_runtime_seconds": 64})
    );
    assert_eq!(
        transcript(&app, &acme, &path).await,
        json!({"data": {"available": true, "transcript": [
            {"text": "Welcome aboard.", "originator": "bot"},
            {"text": "Where \"do\" we go?", "originator": "user"},
        ]}})
    );

    // The first end counts, and what is over cannot be taken or go on.
    let failed = Outcome {
        error: Some("LATE".into()),
        ..outcome()
    };
    calls::finish(place, &id, failed).await.unwrap();
    calls::mark_ongoing(place, &id).await.unwrap();
    assert_eq!(app.get(&acme.key, &path).await.expect(200), completed);
    assert_eq!(
        calls::take(place, &id, None).await.unwrap().unwrap_err(),
        CloseCode::CallNotFound
    );
    assert_eq!(
        calls::take(place, "x", None).await.unwrap().unwrap_err(),
        CloseCode::CallNotFound
    );
});

on_each_database!(
    a_failed_call_and_a_silent_call_have_no_transcript,
    |database| {
        let app = start(&database).await;
        let (acme, _) = app.acme_and_other().await;
        for (error, lines, state) in [
            (Some("MEDIA_FAILED"), outcome().transcript, "error"),
            (None, Vec::new(), "completed"),
        ] {
            let id = create(&app, &acme, call()).await;
            calls::take(&app.state, &id, None).await.unwrap().unwrap();
            let ended = Outcome {
                error: error.map(Into::into),
                transcript: lines,
                ..outcome()
            };
            calls::finish(&app.state, &id, ended).await.unwrap();
            let path = format!("/v2/calls/{id}");
            let read = app.get(&acme.key, &path).await.expect(200);
            assert_eq!(read["data"]["state"], state);
            assert_eq!(
                read["data"]["duration"]["call_seconds"].is_null(),
                error.is_some()
            );
            assert_eq!(
                transcript(&app, &acme, &path).await,
                json!({"data": {"available": false}})
            );
        }
    }
);

on_each_database!(open_calls_are_counted_by_partner, |database| {
    let app = start(&database).await;
    let (acme, _) = app.acme_and_other().await;
    let id = create(&app, &acme, call()).await;
    create(&app, &acme, call()).await;
    let setup = calls::take(&app.state, &id, None).await.unwrap().unwrap();
    assert_eq!(
        calls::count_open(app.state.store.db(), &setup.tenant)
            .await
            .unwrap(),
        2
    );
    calls::finish(&app.state, &id, outcome()).await.unwrap();
    assert_eq!(
        calls::count_open(app.state.store.db(), &setup.tenant)
            .await
            .unwrap(),
        1
    );
});

on_each_database!(a_partner_with_open_calls_stays, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let character = json!({"personality": "You are Ada."});
    let call = json!({"character": character, "call_time_limit_seconds": 60});
    app.post(&acme.key, CALLS, call).await.expect(200);
    let refused = app.delete(ADMIN_KEY, "/api/partners/acme").await;
    assert_eq!(refused.expect(409)["code"], "conflict");
    let db = app.state.store.db();
    let ended = "UPDATE calls SET state = 'completed' WHERE partner = 'acme'";
    db.execute(ended).await.unwrap();
    app.delete(ADMIN_KEY, "/api/partners/acme")
        .await
        .expect(204);
});
