//! Who signs in at the console, on both databases, through the routes.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod pages;

use std::time::Duration;

use axum::{extract::FromRef, http::Method};
use colloquy_accounts::{Accounts, AccountsCapability};
use colloquy_console::{Console, ConsoleCapability};
use colloquy_events::{Events, EventsCapability};
use colloquy_http::Edge;
use colloquy_kernel::{Capability, Kernel};
use colloquy_store::Executor as _;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use support::{TestDatabase, on_each_database, patience};
use test_routes::{ADMIN_KEY, Answer, TestRequest, TestRoutes, TestRoutesBuilder, send};
use tokio::time::timeout;

const SESSION: &str = "/api/console/session";
const EVERYWHERE: &str = "/api/console/sessions";
const LINKS: &str = "/api/console/links";
const COOKIE: &str = "colloquy-session-8080";

/// The state of the capabilities.
#[derive(Clone)]
struct Place(Console, Events);

impl FromRef<Place> for Events {
    fn from_ref(place: &Place) -> Self {
        place.1.clone()
    }
}

impl AsRef<Kernel> for Place {
    fn as_ref(&self) -> &Kernel {
        self.0.as_ref()
    }
}

impl FromRef<Place> for Accounts {
    fn from_ref(place: &Place) -> Self {
        Self::clone(&place.0)
    }
}

impl FromRef<Place> for Console {
    fn from_ref(place: &Place) -> Self {
        place.0.clone()
    }
}

const CAPABILITIES: [&dyn Capability<Place>; 3] =
    [&AccountsCapability, &ConsoleCapability, &EventsCapability];

fn builder(database: &TestDatabase) -> TestRoutesBuilder {
    TestRoutesBuilder::new(database)
}

async fn start(builder: TestRoutesBuilder) -> TestRoutes<Place> {
    let place = async |accounts: Accounts, _: Edge| {
        Place(Console::new(accounts.clone()), Events::new(accounts))
    };
    builder.start(|_| Vec::new(), place, &CAPABILITIES).await
}

/// A request as a page of the console sends it.
fn console(app: &TestRoutes<Place>, method: Method, path: &str) -> TestRequest {
    of_page(app, method, path).header("x-colloquy-console", "1")
}

/// A request of a page of the server's own origin.
fn of_page(app: &TestRoutes<Place>, method: Method, path: &str) -> TestRequest {
    app.request(method, path)
        .header("host", "localhost:8080")
        .header("origin", "http://localhost:8080")
        .header("sec-fetch-site", "same-origin")
}

/// Sends a request of the console with the cookie of a session.
async fn ask(app: &TestRoutes<Place>, method: Method, path: &str, cookie: &str) -> Answer {
    send(console(app, method, path).header("cookie", cookie)).await
}

async fn sign_in_with(app: &TestRoutes<Place>, body: &Value) -> Answer {
    send(console(app, Method::POST, SESSION).json(body)).await
}

/// The cookie that an answer sets, as a browser sends it back.
fn cookie(answer: &Answer) -> String {
    let set = answer.header("set-cookie");
    for attribute in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=604800"] {
        assert!(set.split("; ").any(|one| one == attribute), "{set}");
    }
    set.split(';').next().unwrap().to_owned()
}

/// Signs in with a key, and gives the cookie.
async fn sign_in(app: &TestRoutes<Place>, key: &str) -> String {
    let answer = sign_in_with(app, &json!({"api_key": key})).await;
    let cookie = cookie(&answer);
    answer.expect(200);
    cookie
}

/// What is in a link to sign in.
fn token(made: &Value) -> String {
    let url = made["url"].as_str().unwrap();
    url.split_once("/console/#sign-in=").unwrap().1.to_owned()
}

async fn status(app: &TestRoutes<Place>, cookie: &str) -> u16 {
    ask(app, Method::GET, "/api/auth/me", cookie)
        .await
        .status
        .as_u16()
}

on_each_database!(
    a_session_reaches_what_its_key_reaches_until_it_is_signed_out,
    |database| {
        let app = start(builder(&database)).await;
        let acme = app.partner("acme").await;
        app.partner("other").await;
        let partner = sign_in(&app, &acme.key).await;
        let admin = sign_in(&app, ADMIN_KEY).await;
        assert!(partner.starts_with(&format!("{COOKIE}=")), "{partner}");
        let get = async |path: &str, cookie: &str| ask(&app, Method::GET, path, cookie).await;

        let read = get(SESSION, &partner).await.expect(200);
        assert_eq!(
            (&read["partner"], &read["isAdmin"]),
            (&json!("acme"), &json!(false))
        );
        let read = get(SESSION, &admin).await.expect(200);
        assert_eq!(
            (&read["partner"], &read["isAdmin"]),
            (&Value::Null, &json!(true))
        );
        get("/api/keys/acme", &partner).await.expect(200);
        get("/api/keys/other", &partner).await.expect(403);
        get("/api/partners/acme", &partner).await.expect(403);
        get("/api/keys/other", &admin).await.expect(200);

        // A key that is shown counts, and the session does not.
        let both = console(&app, Method::GET, "/api/auth/me").header("cookie", &admin);
        let both = send(both.header("x-api-key", &acme.key)).await.expect(200);
        assert_eq!(both["partner"], "acme");
        let both = console(&app, Method::GET, SESSION).header("cookie", &admin);
        send(both.header("x-api-key", &acme.key)).await.expect(404);
        let wrong = console(&app, Method::GET, "/api/auth/me").header("cookie", &admin);
        send(wrong.header("x-api-key", "cqa_wrong"))
            .await
            .expect(401);
        // A request with a key has no session.
        app.get(&acme.key, SESSION).await.expect(404);
        // Caches keep nothing for whoever comes next.
        let read = get("/api/auth/me", &admin).await;
        assert_eq!(
            (read.header("cache-control"), read.header("vary")),
            ("no-store", "cookie")
        );

        let out = ask(&app, Method::DELETE, SESSION, &partner).await;
        assert!(out.header("set-cookie").contains("Max-Age=0"));
        assert_eq!(out.status, 204);
        assert_eq!(status(&app, &partner).await, 401);
        assert_eq!(
            ask(&app, Method::DELETE, SESSION, &partner).await.status,
            204
        );
        assert_eq!(status(&app, &admin).await, 200);
    }
);

on_each_database!(
    signing_out_everywhere_ends_the_sessions_of_the_key,
    |database| {
        let app = start(builder(&database)).await;
        let acme = app.partner("acme").await;
        let other = app.partner("other").await;
        let (first, second) = (
            sign_in(&app, &acme.key).await,
            sign_in(&app, &acme.key).await,
        );
        let others = sign_in(&app, &other.key).await;
        let link = app.post(&acme.key, LINKS, json!({})).await.expect(201);
        let others_link = app.post(&other.key, LINKS, json!({})).await.expect(201);
        app.delete(&acme.key, EVERYWHERE).await.expect(404);
        let out = ask(&app, Method::DELETE, EVERYWHERE, &second).await;
        assert_eq!(out.status, 204);
        let body = |link: &Value| json!({"link": token(link)});
        sign_in_with(&app, &body(&link)).await.expect(401);
        sign_in_with(&app, &body(&others_link)).await.expect(200);
        for (cookie, expected) in [(first, 401), (second, 401), (others, 200)] {
            assert_eq!(status(&app, &cookie).await, expected);
        }
    }
);

on_each_database!(a_session_ends_by_time_and_with_its_key, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    let hours = |hours: u64| Duration::from_secs(hours * 3_600);

    let idle = sign_in(&app, &acme.key).await;
    app.advance(hours(12) - Duration::from_secs(1));
    assert_eq!(status(&app, &idle).await, 200);
    app.advance(hours(12) - Duration::from_secs(61));
    assert_eq!(status(&app, &idle).await, 200, "it was used");
    // Requests that nobody asked for do not count as use.
    app.advance(hours(6));
    let unasked = of_page(&app, Method::GET, "/api/auth/me")
        .header("x-colloquy-console", "background")
        .header("cookie", &idle);
    send(unasked).await.expect(200);
    app.advance(hours(6));
    assert_eq!(status(&app, &idle).await, 401);

    let busy = sign_in(&app, &acme.key).await;
    for _ in 0..15 {
        app.advance(hours(11));
        assert_eq!(status(&app, &busy).await, 200);
    }
    app.advance(hours(3));
    assert_eq!(status(&app, &busy).await, 401, "seven days are over");

    let key = app
        .key("acme", json!({"name": "console", "expires_in_days": 1}))
        .await;
    let (text, id) = (
        key["api_key"].as_str().unwrap(),
        key["id"].as_str().unwrap(),
    );
    let expiring = sign_in(&app, text).await;
    for _ in 0..2 {
        app.advance(hours(7));
        assert_eq!(status(&app, &expiring).await, 200);
    }
    let read = ask(&app, Method::GET, SESSION, &expiring).await.expect(200);
    assert_eq!(
        read["expires_at"], key["expires_at"],
        "it ends with its key"
    );
    app.delete(&acme.key, &format!("/api/keys/acme/{id}"))
        .await
        .expect(204);
    assert_eq!(status(&app, &expiring).await, 401, "its key was revoked");

    let gone = sign_in(&app, &acme.key).await;
    assert_eq!(status(&app, &gone).await, 200);
    app.delete(ADMIN_KEY, "/api/partners/acme")
        .await
        .expect(204);
    assert_eq!(status(&app, &gone).await, 401, "its partner is gone");
});

#[tokio::test]
async fn a_session_of_the_configured_key_ends_when_another_one_is_configured() {
    let database = TestDatabase::sqlite();
    let app = start(builder(&database)).await;
    let cookie = sign_in(&app, ADMIN_KEY).await;
    app.stop().await;
    let same = start(builder(&database)).await;
    assert_eq!(status(&same, &cookie).await, 200);
    same.stop().await;
    let changed = builder(&database).config(|config| {
        config.admin_key = Some(colloquy_config::Secret::new("another-key-of-the-tests"));
    });
    assert_eq!(status(&start(changed).await, &cookie).await, 401);
}

on_each_database!(a_link_signs_in_once, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    let make = async |body: Value| app.post(&acme.key, LINKS, body).await;
    for minutes in [0, 1_441] {
        let refused = make(json!({"expires_in_minutes": minutes})).await;
        assert_eq!(refused.expect(400)["field"], "expires_in_minutes");
    }
    let made = make(json!({})).await.expect(201);
    let link = json!({"link": token(&made)});
    let answer = sign_in_with(&app, &link).await;
    let cookie = cookie(&answer);
    assert_eq!(answer.expect(200)["partner"], "acme");
    assert_eq!(status(&app, &cookie).await, 200);
    sign_in_with(&app, &link).await.expect(401);

    // Nobody stays signed in by way of a link of the own session.
    let with_cookie = console(&app, Method::POST, LINKS).header("cookie", &cookie);
    send(with_cookie.json(&json!({}))).await.expect(403);

    let late = token(&make(json!({"expires_in_minutes": 1})).await.expect(201));
    app.advance(Duration::from_secs(60));
    sign_in_with(&app, &json!({"link": late})).await.expect(401);
    let bodies = [
        json!({}),
        json!({"api_key": acme.key, "link": late}),
        json!({"link": "short"}),
        json!({"link": "é".repeat(43)}),
    ];
    for body in bodies {
        sign_in_with(&app, &body).await.expect(400);
    }
});

on_each_database!(requests_of_other_pages_have_no_session, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    let cookie = sign_in(&app, &acme.key).await;
    let base = |method: Method| {
        let request = app.request(method, SESSION).header("cookie", &cookie);
        request.header("host", "localhost:8080")
    };
    let foreign: [&[(&str, &str)]; 5] = [
        &[],
        &[("origin", "http://localhost:8080")],
        &[
            ("x-colloquy-console", "1"),
            ("origin", "https://evil.example"),
        ],
        &[("x-colloquy-console", "1"), ("origin", "null")],
        &[
            ("x-colloquy-console", "1"),
            ("sec-fetch-site", "cross-site"),
            ("origin", "http://localhost:8080"),
        ],
    ];
    for headers in foreign {
        let all = |request: TestRequest| {
            let add =
                |request: TestRequest, &(name, value): &(&str, &str)| request.header(name, value);
            headers.iter().fold(request, add)
        };
        send(all(base(Method::GET))).await.expect(403);
        send(all(base(Method::DELETE))).await.expect(403);
        let key = json!({"api_key": acme.key});
        send(all(base(Method::POST)).json(&key)).await.expect(403);
    }
    // What changes something says its origin.
    let silent = base(Method::DELETE).header("x-colloquy-console", "1");
    send(silent).await.expect(403);
    assert_eq!(status(&app, &cookie).await, 200);

    let secure = builder(&database).config(|config| {
        config.http.public_url = Some("https://talk.example".parse().unwrap());
    });
    let secure = start(secure.node("second")).await;
    let answer = send(
        secure
            .request(Method::POST, SESSION)
            .header("host", "10.0.0.7:8080")
            .header("origin", "https://talk.example")
            .header("x-colloquy-console", "1")
            .json(&json!({"api_key": acme.key})),
    );
    let set = answer.await;
    let set = set.header("set-cookie");
    assert!(set.starts_with("__Host-colloquy-session-8080="), "{set}");
    assert!(set.ends_with("; Secure"), "{set}");
});

on_each_database!(a_session_of_a_page_with_tls_is_for_tls, |database| {
    // The proxy in front of the server has the certificate, and no setting says so.
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    let request = |method: Method| {
        app.request(method, SESSION)
            .header("host", "talk.example")
            .header("origin", "https://talk.example")
            .header("x-colloquy-console", "https")
    };
    let answer = send(request(Method::POST).json(&json!({"api_key": acme.key}))).await;
    let set = answer.header("set-cookie");
    assert!(set.starts_with("__Host-colloquy-session="), "{set}");
    assert!(set.ends_with("; Secure"), "{set}");
    let cookie = cookie(&answer);
    let read = request(Method::GET).header("cookie", &cookie);
    assert_eq!(send(read).await.expect(200)["partner"], "acme");
    // Another host of the domain can set a cookie without the prefix.
    let tossed = format!("colloquy-session={}", cookie.split_once('=').unwrap().1);
    let read = request(Method::GET).header("cookie", tossed);
    send(read).await.expect(401);
    let out = send(request(Method::DELETE).header("cookie", &cookie)).await;
    assert!(
        out.header("set-cookie")
            .starts_with("__Host-colloquy-session=; ")
    );
});

on_each_database!(
    whoever_signs_in_again_has_one_session_in_the_browser,
    |database| {
        let app = start(builder(&database)).await;
        let acme = app.partner("acme").await;
        let other = app.partner("other").await;
        let elsewhere = sign_in(&app, &acme.key).await;
        let first = sign_in(&app, &acme.key).await;
        let again = console(&app, Method::POST, SESSION).header("cookie", &first);
        let again = send(again.json(&json!({"api_key": other.key}))).await;
        let second = cookie(&again);
        assert_eq!(again.expect(200)["partner"], "other");
        for (cookie, expected) in [(first, 401), (second, 200), (elsewhere, 200)] {
            assert_eq!(status(&app, &cookie).await, expected);
        }
    }
);

on_each_database!(a_link_that_signs_nobody_in_is_kept, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    let link = app.post(&acme.key, LINKS, json!({})).await.expect(201);
    let body = json!({"link": token(&link)});
    let db = app.state.0.store.db();
    let rename = |from: &str, to: &str| format!("ALTER TABLE {from} RENAME TO {to}");
    db.execute(rename("console_sessions", "away"))
        .await
        .unwrap();
    let failed = sign_in_with(&app, &body).await;
    assert!(failed.status.is_server_error(), "{}", failed.status);
    db.execute(rename("away", "console_sessions"))
        .await
        .unwrap();
    sign_in_with(&app, &body).await.expect(200);
    // Longer ones do not crowd out the one that was made last.
    for _ in 0..100 {
        let longer = json!({"expires_in_minutes": 1_440});
        app.post(&acme.key, LINKS, longer).await.expect(201);
    }
    let link = app.post(&acme.key, LINKS, json!({})).await.expect(201);
    let body = json!({"link": token(&link)});
    sign_in_with(&app, &body).await.expect(200);
});

on_each_database!(a_session_whose_key_ended_is_no_guess, |database| {
    let attempts = |config: &mut colloquy_config::Config| config.limits.attempts_per_minute = 3;
    let app = start(builder(&database).config(attempts)).await;
    let acme = app.partner("acme").await;
    let key = app.key("acme", json!({"name": "console"})).await;
    let cookie = sign_in(&app, key["api_key"].as_str().unwrap()).await;
    let path = format!("/api/keys/acme/{}", key["id"].as_str().unwrap());
    app.delete(&acme.key, &path).await.expect(204);
    for _ in 0..10 {
        assert_eq!(status(&app, &cookie).await, 401);
    }
    // Nobody is kept out by a cookie that somebody else set.
    let twice = format!("{cookie}; {COOKIE}={}", "A".repeat(43));
    assert_eq!(status(&app, &twice).await, 401);
    let shown = console(&app, Method::GET, "/api/auth/me").header("cookie", &twice);
    send(shown.header("x-api-key", &acme.key)).await.expect(200);
});

on_each_database!(a_stream_of_events_ends_with_its_session, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    let cookie = sign_in(&app, &acme.key).await;
    let other = sign_in(&app, &acme.key).await;
    let stream = async |cookie: &str| {
        let stream = console(&app, Method::GET, "/api/events/acme").header("cookie", cookie);
        let stream = stream.send().await;
        assert_eq!(stream.status(), 200);
        stream.into_body().into_data_stream()
    };
    let (mut own, mut others) = (stream(&cookie).await, stream(&other).await);
    for stream in [&mut own, &mut others] {
        for expected in ["retry: ", "event: ready\n"] {
            let piece = stream.next().await.unwrap().unwrap();
            assert!(piece.starts_with(expected.as_bytes()), "{piece:?}");
        }
    }
    ask(&app, Method::DELETE, SESSION, &cookie).await;
    let ended = async { while own.next().await.is_some() {} };
    timeout(patience(Duration::from_secs(40)), ended)
        .await
        .unwrap();
    // The other one was checked as well, and goes on.
    let next = timeout(patience(Duration::from_secs(40)), others.next());
    next.await.unwrap().unwrap().unwrap();
});

on_each_database!(signing_out_ends_whatever_a_cookie_may_mean, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    let other = app.partner("other").await;
    let own = sign_in(&app, &acme.key).await;
    let tossed = sign_in(&app, &other.key).await;
    let both = format!("{own}; {tossed}");
    assert_eq!(status(&app, &both).await, 401, "nobody knows which");
    assert_eq!(ask(&app, Method::DELETE, SESSION, &both).await.status, 204);
    for cookie in [own, tossed] {
        assert_eq!(status(&app, &cookie).await, 401);
    }
});

on_each_database!(a_clock_that_was_ahead_prolongs_nothing, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    let day = Duration::from_secs(24 * 3_600);
    app.advance(30 * day);
    let cookie = sign_in(&app, &acme.key).await;
    let link = app.post(&acme.key, LINKS, json!({})).await.expect(201);
    app.stop().await;
    let app = start(builder(&database)).await;
    assert_eq!(status(&app, &cookie).await, 401);
    let body = json!({"link": token(&link)});
    sign_in_with(&app, &body).await.expect(401);
});

/// Of the two nodes, one notes the end of a session a moment late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_nodes_notice_the_end_of_a_session_within_seconds() {
    let database = TestDatabase::postgres().await;
    let first = start(builder(&database).node("first")).await;
    let second = start(builder(&database).node("second")).await;
    let acme = first.partner("acme").await;
    let cookie = sign_in(&first, &acme.key).await;
    assert_eq!(status(&second, &cookie).await, 200);
    let out = ask(&first, Method::DELETE, SESSION, &cookie).await;
    assert_eq!(out.status, 204);
    second.advance(Duration::from_secs(6));
    assert_eq!(status(&second, &cookie).await, 401);
}

/// Whoever signs in with a stolen link while its owner signs out everywhere does not stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_that_is_being_begun_ends_with_all_others() {
    let app = start(builder(&TestDatabase::postgres().await)).await;
    let acme = app.partner("acme").await;
    let cookie = sign_in(&app, &acme.key).await;
    app.post(&acme.key, LINKS, json!({})).await.expect(201);
    // What signing in with the link does, up to its commit.
    let begun = app.state.0.store.begin().await.unwrap();
    begun
        .execute("INSERT INTO console_sessions SELECT 'begun', key_id, key_mac, created_at, last_used_at FROM console_sessions")
        .await
        .unwrap();
    begun.execute("DELETE FROM console_links").await.unwrap();
    let end_all = ask(&app, Method::DELETE, EVERYWHERE, &cookie);
    let commit = async {
        support::eventually("it waits for the link", async || {
            let waiting = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
            app.state.0.store.db().fetch_count(waiting).await.unwrap() > 0
        })
        .await;
        begun.commit().await.unwrap();
    };
    let (out, ()) = tokio::join!(end_all, commit);
    assert_eq!(out.status, 204);
    let left = "SELECT COUNT(*) FROM console_sessions";
    assert_eq!(app.state.0.store.db().fetch_count(left).await.unwrap(), 0);
}

#[tokio::test]
async fn the_page_is_kept_from_other_pages() {
    let app = start(builder(&TestDatabase::sqlite())).await;
    let moved = send(app.request(Method::GET, "/console")).await;
    assert_eq!(
        (moved.status.as_u16(), moved.header("location")),
        (307, "/console/")
    );
    for path in ["/console/", "/console/p/acme/keys"] {
        let page = send(app.request(Method::GET, path)).await;
        assert_eq!(page.status, 200, "{path}");
        assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
        assert!(page.text.starts_with("<!doctype html>"), "{}", page.text);
        let policy = page.header("content-security-policy");
        for rule in [
            "default-src 'none'",
            "script-src 'self'",
            "img-src 'self' blob:",
            "media-src 'self' blob:",
            "frame-ancestors 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types colloquy-console",
            "font-src 'self'",
            "worker-src 'self'",
        ] {
            assert!(policy.split("; ").any(|one| one == rule), "{policy}");
        }
    }
    let missing = send(app.request(Method::GET, "/console/assets/none.js")).await;
    assert_eq!(
        (missing.status.as_u16(), missing.header("cache-control")),
        (404, "no-store")
    );
}

on_each_database!(keys_for_pages_and_wrong_keys_do_not_sign_in, |database| {
    let attempts = |config: &mut colloquy_config::Config| config.limits.attempts_per_minute = 5;
    let app = start(builder(&database).config(attempts)).await;
    let acme = app.partner("acme").await;
    let page = json!({"kind": "publishable", "allowed_origins": ["http://localhost:8080"]});
    let page = app.key("acme", page).await;
    sign_in_with(&app, &json!({"api_key": page["api_key"]}))
        .await
        .expect(403);
    let quota = app.quota(&acme, json!({"kinds": ["text"]})).await;
    sign_in_with(&app, &json!({"api_key": quota.key}))
        .await
        .expect(401);
    // Sessions and links are guessed no more often than keys.
    let mut refused = 0;
    for _ in 0..6 {
        let guess = format!("{COOKIE}={}", "A".repeat(43));
        let answer = ask(&app, Method::GET, SESSION, &guess).await;
        assert!([401, 429].contains(&answer.status.as_u16()));
        refused += usize::from(answer.status == 429);
    }
    assert!(refused > 0);
    let link = json!({"link": "A".repeat(43)});
    sign_in_with(&app, &link).await.expect(429);
});

on_each_database!(
    sessions_of_a_key_are_bounded_and_old_ones_are_removed,
    |database| {
        let app = start(builder(&database)).await;
        let acme = app.partner("acme").await;
        let first = sign_in(&app, &acme.key).await;
        for _ in 0..100 {
            app.advance(Duration::from_secs(6));
            sign_in(&app, &acme.key).await;
            app.post(&acme.key, LINKS, json!({})).await.expect(201);
        }
        let count = async |table: &str| {
            let sql = format!("SELECT COUNT(*) FROM {table}");
            app.state.0.store.db().fetch_count(sql).await.unwrap()
        };
        assert_eq!(count("console_sessions").await, 100);
        assert_eq!(
            status(&app, &first).await,
            401,
            "the one that was used longest ago"
        );
        assert_eq!(count("console_links").await, 100);
        app.advance(Duration::from_secs(13 * 3_600));
        app.start_background(&CAPABILITIES).await;
        support::eventually("they are gone", async || {
            count("console_sessions").await == 0 && count("console_links").await == 0
        })
        .await;
    }
);

on_each_database!(
    a_session_in_an_outage_is_unavailable_and_not_over,
    |database| {
        let app = start(builder(&database)).await;
        let acme = app.partner("acme").await;
        let cookie = sign_in(&app, &acme.key).await;
        assert_eq!(status(&app, &cookie).await, 200);
        let db = app.state.0.store.db();
        db.execute("ALTER TABLE console_sessions RENAME TO away")
            .await
            .unwrap();
        app.advance(Duration::from_secs(6));
        let answer = ask(&app, Method::GET, "/api/auth/me", &cookie).await;
        assert!(answer.status.is_server_error(), "{}", answer.status);
        let out = ask(&app, Method::DELETE, SESSION, &cookie).await;
        assert!(out.status.is_server_error(), "{}", out.status);
        db.execute("ALTER TABLE away RENAME TO console_sessions")
            .await
            .unwrap();
        assert_eq!(status(&app, &cookie).await, 200);
    }
);
