//! The signed URLs of calls.

use super::*;

on_each_database!(of_many_clients_one_gets_the_call, |database| {
    let app = start(&database).await;
    let (acme, _) = app.acme_and_other().await;
    let id = create(&app, &acme, call()).await;
    let takers = (0..16).map(|_| calls::take(&app.state, &id, None));
    let results = futures_util::future::join_all(takers).await;
    let (won, lost): (Vec<_>, Vec<_>) = results
        .into_iter()
        .map(Result::unwrap)
        .partition(Result::is_ok);
    assert_eq!(won.len(), 1, "{}", database.kind());
    assert!(
        lost.iter()
            .all(|result| matches!(result, Err(CloseCode::CallInUse)))
    );
});

on_each_database!(a_changed_or_expired_url_is_refused, |database| {
    let app = start_by(builder(&database)).await;
    let (acme, _) = app.acme_and_other().await;
    let made = post_call(&app, &acme, call()).await;
    let id = bare_id(&made);
    let good = signed_query(made["data"]["signedUrl"].as_str().unwrap());
    let check = |id: &str, query: &SignedQuery| calls::check_session_url(&app.state, id, query);
    assert_eq!(check(&id, &good), Ok(()));
    let other = create(&app, &acme, call()).await;
    assert_eq!(check(&other, &good), Err(CloseCode::InvalidSignature));
    let later = SignedQuery {
        exp: good.exp + 60,
        ..good.clone()
    };
    assert_eq!(check(&id, &later), Err(CloseCode::InvalidSignature));
    let other_key = SignedQuery {
        kid: "k2".to_owned(),
        ..good.clone()
    };
    assert_eq!(check(&id, &other_key), Err(CloseCode::InvalidSignature));
    let upper = SignedQuery {
        sig: good.sig.to_uppercase(),
        ..good.clone()
    };
    assert_eq!(check(&id, &upper), Err(CloseCode::InvalidSignature));

    app.advance(Duration::from_secs(299));
    assert_eq!(check(&id, &good), Ok(()));
    app.advance(Duration::from_secs(1));
    assert_eq!(check(&id, &good), Err(CloseCode::UrlExpired));
    let path = format!("/v2/calls/{id}");
    let read = app.get(&acme.key, &path).await.expect(200);
    assert_eq!(read["data"]["signedUrl"], Value::Null);
});

on_each_database!(
    nodes_share_a_ring_and_a_rotated_ring_knows_old_urls,
    |database| {
        let node = |name: &str| builder(&database).node(name);
        let ring = |text: &str| -> SigningKeys { serde_json::from_value(json!(text)).unwrap() };
        let url_of = |call: &Value| signed_query(call["data"]["signedUrl"].as_str().unwrap());
        let check = |app: &TestRoutes<Place>, call: &Value| {
            calls::check_session_url(&app.state, &bare_id(call), &url_of(call))
        };

        // Without configuration every node has the same generated ring.
        let (a, b) = (start_by(node("a")).await, start_by(node("b")).await);
        let (acme, _) = a.acme_and_other().await;
        let of_a = post_call(&a, &acme, call()).await;
        assert_eq!(check(&b, &of_a), Ok(()));

        let only_old = ring("k1:0123456789abcdef");
        let old = node("c").config(|config| config.signing_keys = Some(only_old));
        let old = start_by(old).await;
        let both = ring("k2:fedcba9876543210,k1:0123456789abcdef");
        let new = node("d").config(|config| config.signing_keys = Some(both));
        let new = start_by(new).await;
        let of_old = post_call(&old, &acme, call()).await;
        assert_eq!(url_of(&of_old).kid, "k1");
        assert_eq!(check(&new, &of_old), Ok(()));
        let invalid = Err(CloseCode::InvalidSignature);
        assert_eq!(check(&a, &of_old), invalid);
        let of_new = post_call(&new, &acme, call()).await;
        assert_eq!(url_of(&of_new).kid, "k2");
        assert_eq!(check(&old, &of_new), invalid);
    }
);

// The database's clock tells when a URL expires, so that the clock of no node ends a call early or keeps one.
on_each_database!(
    calls_of_nodes_with_wrong_clocks_are_open_until_their_urls_expire,
    |database| {
        let node = |name: &str, seconds: i64| {
            let node = builder(&database).node(name);
            start_by(node.wrong_by(seconds))
        };
        let right = node("right", 0).await;
        let behind = node("behind", -600).await;
        let ahead = node("ahead", 2 * 3_600).await;
        let (acme, _) = right.acme_and_other().await;
        let nodes = [&right, &behind, &ahead];
        let mut made = Vec::new();
        for node in nodes {
            made.push(post_call(node, &acme, call()).await);
        }
        for node in nodes {
            calls::sweep(&node.state).await.unwrap();
        }
        for (call, node) in made.iter().flat_map(|call| nodes.map(|node| (call, node))) {
            let id = bare_id(call);
            let read = node.get(&acme.key, &format!("/v2/calls/{id}")).await;
            let read = read.expect(200);
            assert_eq!(read["data"]["state"], "starting");
            let query = signed_query(read["data"]["signedUrl"].as_str().unwrap());
            let checked = calls::check_session_url(&node.state, &id, &query);
            assert_eq!(checked, Ok(()));
            let expired = calls::session_url(&node.state, &id, query.exp - 302).unwrap();
            let checked = calls::check_session_url(&node.state, &id, &signed_query(&expired));
            assert_eq!(checked, Err(CloseCode::UrlExpired));
        }

        let later = "UPDATE calls SET expires_at = expires_at - 302000";
        right.state.store.db().execute(later).await.unwrap();
        calls::sweep(&behind.state).await.unwrap();
        for call in &made {
            let path = call["data"]["id"].as_str().unwrap();
            let read = ahead.get(&acme.key, path).await.expect(200);
            assert_eq!(read["data"]["state"], "error");
        }
    }
);
