//! Calls that another node holds, which clients are sent on to.

use colloquy_calls::Elsewhere;

use super::*;

/// The address of a node's own.
const NODE: &str = "https://node-2.example/";

/// Creates a call, and returns its path and its signed URL.
async fn placed(app: &TestRoutes<Place>, partner: &TestPartner) -> (String, String) {
    let body = json!({"character": "repo:acme/ada", "call_time_limit_seconds": 60});
    let made = post_call(app, partner, body).await;
    let of = |field: &str| made["data"][field].as_str().unwrap().to_owned();
    (of("id"), of("signedUrl"))
}

/// Where a client with this URL is sent on to, if another node holds its call.
async fn sent_on(app: &TestRoutes<Place>, path: &str, url: &str) -> Option<Elsewhere> {
    let held = calls::held_elsewhere(&app.state, bare(path), &signed_query(url)).await;
    held.unwrap()
}

/// The session at [`NODE`].
fn at_node(path: &str, url: &str) -> Elsewhere {
    let query = url.split_once('?').unwrap().1;
    let url = format!("wss://node-2.example{path}/session?{query}");
    Elsewhere { url: Some(url) }
}

async fn take(app: &TestRoutes<Place>, path: &str) {
    let taken = calls::take(&app.state, bare(path), None).await;
    taken.unwrap().unwrap();
}

on_each_database!(
    a_call_is_found_at_the_other_node_that_holds_it,
    |database| {
        let clock = manual();
        let node = |name: &str| builder(&database).node(name).shared_clock(&clock);
        let asked = start_by(node("asked")).await;
        let (acme, _) = asked.acme_and_other().await;
        for origin in [Some(NODE), None] {
            let holder = node(if origin.is_some() { "known" } else { "unknown" });
            let holder = holder.config(|config| {
                config.http.node_url = origin.map(|origin| origin.parse().unwrap());
            });
            let holder = start_by(holder).await;
            let (path, url) = placed(&asked, &acme).await;
            assert_eq!(sent_on(&asked, &path, &url).await, None);
            take(&holder, &path).await;
            let expected = match origin {
                Some(_) => at_node(&path, &url),
                None => Elsewhere { url: None },
            };
            assert_eq!(sent_on(&asked, &path, &url).await, Some(expected));
            assert_eq!(sent_on(&holder, &path, &url).await, None);
            calls::finish(&holder.state, bare(&path), outcome())
                .await
                .unwrap();
            assert_eq!(sent_on(&asked, &path, &url).await, None, "it is over");
        }
    }
);

// The node may be frozen, or cut off from the database, and live all the same.
on_each_database!(
    a_call_whose_node_is_presumed_lost_is_looked_for_there_for_a_while,
    |database| {
        let clock = manual();
        let node = |name: &str| builder(&database).node(name).shared_clock(&clock);
        let asked = start_by(node("asked")).await;
        let (acme, _) = asked.acme_and_other().await;
        let holder = node("holder").config(|config| {
            config.http.node_url = Some(NODE.parse().unwrap());
        });
        let holder = start_by(holder).await;
        let (path, url) = placed(&asked, &acme).await;
        take(&holder, &path).await;
        let expected = Some(at_node(&path, &url));
        clock.advance(Duration::from_secs(31));
        let found = sent_on(&asked, &path, &url).await;
        assert_eq!(found, expected, "before the sweeper");
        calls::sweep(&asked.state).await.unwrap();
        assert_eq!(state(&asked, &acme, &path).await, "error");
        let found = sent_on(&asked, &path, &url).await;
        assert_eq!(found, expected, "presumed lost");
        clock.advance(Duration::from_secs(30));
        let found = sent_on(&asked, &path, &url).await;
        assert_eq!(found, expected, "as long as a client tries");
        node::heartbeat(&holder.state.kernel).await.unwrap();
        clock.advance(Duration::from_secs(29));
        assert_eq!(sent_on(&asked, &path, &url).await, expected, "it lives");
        // Nobody goes on with it.
        clock.advance(Duration::from_secs(37));
        assert_eq!(sent_on(&asked, &path, &url).await, None);
    }
);

// Nobody waits for a node that is known to be dead: another process has its folder.
on_each_database!(
    a_call_of_a_process_that_is_dead_is_nowhere_else,
    |database| {
        let node = |name: &str| start_by(builder(&database).node(name));
        let asked = node("asked").await;
        let (acme, _) = asked.acme_and_other().await;
        let (path, url) = placed(&asked, &acme).await;
        let dead = node("holder").await;
        take(&dead, &path).await;
        let unknown = Some(Elsewhere { url: None });
        assert_eq!(sent_on(&asked, &path, &url).await, unknown);
        dead.stop().await;
        assert_eq!(sent_on(&asked, &path, &url).await, unknown);
        let _next = node("holder").await;
        assert_eq!(sent_on(&asked, &path, &url).await, None);
    }
);
