//! What a stream tells, to whom, and when it ends.

use support::on_each_database;
use test_routes::ADMIN_KEY;

use super::*;

const CREATE_BASE: &str =
    "INSERT INTO knowledge_bases (id, partner, name, created_at) VALUES ('b1', 'acme', 'help', 1)";
const CREATE_FOLDER: &str = "INSERT INTO knowledge_folders (id, base_id, name, type, created_at) VALUES ('f1', 'b1', 'inbox', 'regular', 1)";

on_each_database!(changes_reach_the_streams_of_their_partner, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    let other = app.partner("other").await;
    let mut own = watch(&app, &acme.key, "acme").await;
    let mut admin = watch(&app, ADMIN_KEY, "acme").await;
    let mut others = watch(&app, &other.key, "other").await;

    run(&app, CREATE_BASE).await;
    let mut told = [own.event().await, own.event().await];
    told.sort_by(|a, b| a.0.cmp(&b.0));
    let expected = [
        event("base", "help", Some("help"), false),
        event("budget", "help", Some("help"), false),
    ];
    assert_eq!(told, expected);
    run(&app, CREATE_FOLDER).await;
    assert_eq!(
        own.event().await,
        event("folder", "inbox", Some("help"), false)
    );
    add_voice(&app, "acme", "ada").await;
    assert_eq!(own.event().await, event("voice", "ada", None, false));
    run(&app, "UPDATE voices SET name = 'eve' WHERE name = 'ada'").await;
    let mut told = [own.event().await, own.event().await];
    told.sort_by_key(|(_, data)| data["id"].to_string());
    let expected = [
        event("voice", "ada", None, true),
        event("voice", "eve", None, false),
    ];
    assert_eq!(told, expected);
    run(&app, "DELETE FROM knowledge_bases WHERE id = 'b1'").await;
    assert_eq!(own.event().await, event("base", "help", Some("help"), true));

    for _ in 0..6 {
        admin.event().await;
    }
    assert_eq!(
        admin.event().await,
        event("base", "help", Some("help"), true)
    );
    // Nothing of this came to the other partner.
    add_voice(&app, "other", "zoe").await;
    assert_eq!(others.event().await, event("voice", "zoe", None, false));
    // The base took its folders along.
    let rest = "SELECT COUNT(*) FROM changes WHERE base = 'help' AND kind <> 'base'";
    assert_eq!(store(&app).db().fetch_count(rest).await.unwrap(), 0);
});

on_each_database!(a_stream_is_of_a_partner_that_the_key_reaches, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    app.partner("other").await;
    let status = async |request: TestRequest| request.send().await.status().as_u16();
    assert_eq!(status(watching(&app, &acme.key, "other")).await, 403);
    assert_eq!(status(watching(&app, "cqk_nothing", "acme")).await, 401);
    let request = app.request(Method::GET, "/api/events/acme");
    assert_eq!(status(request).await, 401);
});

on_each_database!(a_key_learns_of_what_its_scopes_allow, |database| {
    let app = start(builder(&database)).await;
    app.partner("acme").await;
    let body = json!({"name": "bases", "scopes": ["knowledge"]});
    let made = app.key("acme", body).await;
    let key = made["api_key"].as_str().unwrap();
    let mut stream = watch(&app, key, "acme").await;
    add_voice(&app, "acme", "ada").await;
    run(&app, CREATE_BASE).await;
    let told = stream.event().await;
    assert!(["base", "budget"].contains(&told.0.as_str()), "{told:?}");
});

on_each_database!(a_stream_ends_with_its_key, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    let made = app.key("acme", json!({"name": "short"})).await;
    let mut stream = watch(&app, made["api_key"].as_str().unwrap(), "acme").await;
    let mut other = watch(&app, &acme.key, "acme").await;
    let path = format!("/api/keys/acme/{}", made["id"].as_str().unwrap());
    app.delete(&acme.key, &path).await.expect(204);
    while stream.next().await.is_some() {}
    let key = event("key", made["id"].as_str().unwrap(), None, false);
    assert_eq!(other.event().await, key);
    add_voice(&app, "acme", "ada").await;
    assert_eq!(other.event().await, event("voice", "ada", None, false));
});

on_each_database!(a_stream_follows_what_becomes_of_its_key, |database| {
    let app = start(builder(&database)).await;
    app.partner("acme").await;
    let other = app.partner("other").await;
    let body = json!({"name": "narrowed", "scopes": ["knowledge", "voices"]});
    let made = app.key("acme", body).await;
    let mut narrowed = watch(&app, made["api_key"].as_str().unwrap(), "acme").await;
    let mut ended = watch(&app, &other.key, "other").await;
    let mut admin = watch(&app, ADMIN_KEY, "other").await;
    let narrow = format!(
        "UPDATE api_keys SET scopes = '[\"knowledge\"]' WHERE id = '{}'",
        made["id"].as_str().unwrap()
    );
    run(&app, &narrow).await;
    // The row of the key is remembered for a while.
    app.advance(Duration::from_secs(6));
    let deleted = app.delete(ADMIN_KEY, "/api/partners/other").await;
    deleted.expect(204);
    let ends = async {
        while ended.next().await.is_some() {}
        while admin.next().await.is_some() {}
    };
    tokio::join!(narrowed.checked(), ends);
    add_voice(&app, "acme", "ada").await;
    run(&app, CREATE_BASE).await;
    let told = narrowed.event().await;
    assert!(["base", "budget"].contains(&told.0.as_str()), "{told:?}");
});

on_each_database!(a_stream_ends_with_the_server, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    let mut stream = watch(&app, &acme.key, "acme").await;
    let unread = watching(&app, &acme.key, "acme").send().await;
    let mut unread = opened(unread);
    app.state.0.kernel.shutdown.cancel();
    assert_eq!(stream.next().await, None);
    assert_eq!(unread.event().await.0, "ready");
    assert_eq!(unread.next().await, None);
    let refused = watching(&app, &acme.key, "acme").send().await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"]),
        (503, &"10".parse().unwrap())
    );
    // Nothing waits for the streams.
    app.stop().await;
});

on_each_database!(
    a_stream_that_nobody_reads_is_told_to_read_everything_again,
    |database| {
        let app = start(builder(&database)).await;
        let acme = app.partner("acme").await;
        let other = app.partner("other").await;
        let mut stream = watch(&app, &acme.key, "acme").await;
        let mut others = watch(&app, &other.key, "other").await;
        // A message has 200 changes.
        run(&app, &voices("acme", "v", 65 * 200)).await;
        add_voice(&app, "other", "zoe").await;
        assert_eq!(others.event().await, event("voice", "zoe", None, false));
        assert_eq!(stream.event().await, ("reset".to_owned(), json!({})));
        add_voice(&app, "acme", "ada").await;
        assert_eq!(stream.event().await, event("voice", "ada", None, false));
        stream.reaches(newest(&app).await).await;
    }
);

on_each_database!(a_partner_has_so_many_streams_and_no_more, |database| {
    let app = start(builder(&database).config(|config| {
        config.limits.event_streams = 6;
        config.limits.event_streams_per_partner = 2;
    }))
    .await;
    let acme = app.partner("acme").await;
    let other = app.partner("other").await;
    let first = watch(&app, &acme.key, "acme").await;
    let _second = watch(&app, &acme.key, "acme").await;
    let refused = watching(&app, &acme.key, "acme").send().await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"]),
        (429, &"10".parse().unwrap())
    );
    let _others = watch(&app, &other.key, "other").await;
    drop(first);
    watch(&app, &acme.key, "acme").await;
});

on_each_database!(a_partner_that_is_deleted_leaves_no_changes, |database| {
    let app = start(builder(&database)).await;
    app.partner("acme").await;
    add_voice(&app, "acme", "ada").await;
    run(&app, CREATE_BASE).await;
    run(&app, CREATE_FOLDER).await;
    run(&app, "DELETE FROM partners WHERE id = 'acme'").await;
    let count = store(&app)
        .db()
        .fetch_count("SELECT COUNT(*) FROM changes")
        .await;
    assert_eq!(count.unwrap(), 0);
});
