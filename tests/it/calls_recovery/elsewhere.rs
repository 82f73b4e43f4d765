//! Clients that come to another node than the one that holds their call, as a load balancer may send them to any.

use colloquy::calls::room::CallOrigin;
use colloquy_protocol::{ClientMessage, CloseCode, ServerMessage};
use harness::{
    client::{FromServer, Refused, Socket},
    elsewhere, eventually,
};

use super::*;

/// The address of a node's own.
const NODE: &str = "https://node-2.example/";

/// Creates a call, and returns its path and its signed URL.
async fn call(server: &TestApp, partner: &TestPartner) -> (String, String) {
    let body = json!({"character": "repo:acme/ada", "call_time_limit_seconds": 60});
    let made = server.post(&partner.key, "/v2/calls", body).await;
    let made = made.expect(200);
    let of = |field: &str| made["data"][field].as_str().unwrap().to_owned();
    (of("id"), of("signedUrl"))
}

/// Opens the session at this URL, with a resume token or without, and returns what the server says until it closes.
async fn answers(url: &str, token: Option<&str>) -> Vec<FromServer> {
    let mut socket = Socket::open(url).await.unwrap();
    let greeted = match token {
        Some(token) => socket.resume(token).await,
        None => socket.begin(false).await,
    };
    greeted.unwrap();
    let mut answers = vec![socket.next().await];
    while !matches!(answers.last(), Some(FromServer::Closed(_))) {
        answers.push(socket.next().await);
    }
    answers
}

/// How the session of a call is closed, behind a redirect to the node's own address if it has one.
fn sent_on(redirect: Option<String>) -> Vec<FromServer> {
    let redirect = redirect.map(|url| FromServer::Message(ServerMessage::Redirect { url }));
    let closed = FromServer::Closed(Some(CloseCode::CallElsewhere.number()));
    redirect.into_iter().chain([closed]).collect()
}

/// The URL of the session at [`NODE`].
fn at_node(path: &str, url: &str) -> String {
    let query = url.split_once('?').unwrap().1;
    format!("wss://node-2.example{path}/session?{query}")
}

fn refused(code: CloseCode) -> Refused {
    Refused {
        close: Some(code.number()),
        code: Some(code.code().to_owned()),
    }
}

async fn refusal(url: &str) -> Refused {
    let mut socket = Socket::open(url).await.unwrap();
    socket.begin(false).await.unwrap();
    socket.refusal().await.unwrap()
}

#[tokio::test]
async fn a_client_that_comes_to_another_node_is_sent_to_the_one_that_holds_the_call() {
    let database = TestDatabase::sqlite();
    let clock = Arc::new(ManualClock::new("2026-01-02T03:04:05Z".parse().unwrap()));
    let node = |name: &str| TestApp::builder(&database).node(name).clock(clock.clone());
    let asked = node("asked").without_worker().start().await;
    let (acme, _) = asked.acme_and_other().await;
    for origin in [Some(NODE), None] {
        let holder = node(if origin.is_some() { "known" } else { "unknown" });
        let holder = holder.config(|config| {
            config.http.node_url = origin.map(|origin| origin.parse().unwrap());
        });
        let holder = holder.idle().await;
        let (path, url) = call(&asked, &acme).await;
        calls::take(&holder.calls, bare(&path), None)
            .await
            .unwrap()
            .unwrap();
        let expected = sent_on(origin.map(|_| at_node(&path, &url)));
        for token in [Some("token"), None] {
            assert_eq!(answers(&url, token).await, expected, "{token:?}");
        }
    }
}

/// The node may be frozen, or cut off from the database, and live all the same.
#[tokio::test]
async fn a_call_whose_node_is_presumed_lost_is_looked_for_there_while_its_client_comes_back() {
    let database = TestDatabase::sqlite();
    let clock = Arc::new(ManualClock::new("2026-01-02T03:04:05Z".parse().unwrap()));
    let node = |name: &str| TestApp::builder(&database).node(name).clock(clock.clone());
    let asked = node("asked").without_worker().start().await;
    let (acme, _) = asked.acme_and_other().await;
    let holder = node("holder").config(|config| {
        config.http.node_url = Some(NODE.parse().unwrap());
    });
    let holder = holder.idle().await;
    let (path, url) = call(&asked, &acme).await;
    calls::take(&holder.calls, bare(&path), None)
        .await
        .unwrap()
        .unwrap();
    let expected = sent_on(Some(at_node(&path, &url)));
    let sends_on = async |when: &str| {
        for token in [Some("token"), None] {
            assert_eq!(answers(&url, token).await, expected, "{when}, {token:?}");
        }
    };
    clock.advance(Duration::from_secs(31));
    sends_on("before the sweeper").await;
    calls::sweep(&asked.app.calls).await.unwrap();
    assert_eq!(state(&asked, &acme, &path).await, "error");
    sends_on("presumed lost").await;
    clock.advance(Duration::from_secs(30));
    sends_on("as long as a client tries").await;
    node::heartbeat(&holder.kernel).await.unwrap();
    clock.advance(Duration::from_secs(29));
    sends_on("it lives").await;
    // Nobody goes on with it.
    clock.advance(Duration::from_secs(37));
    let mut socket = Socket::open(&url).await.unwrap();
    socket.resume("token").await.unwrap();
    let refusal = socket.refusal().await.unwrap();
    assert_eq!(refusal, refused(CloseCode::CallNotFound));
}

/// Nobody waits for a node that is known to be dead: another process has its folder.
#[tokio::test]
async fn a_call_of_a_process_that_is_dead_is_over_for_its_client() {
    let database = TestDatabase::sqlite();
    let node = |name: &str| TestApp::builder(&database).node(name).without_worker();
    let asked = node("asked").start().await;
    let (acme, _) = asked.acme_and_other().await;
    let (path, url) = call(&asked, &acme).await;
    {
        let dead = node("holder").idle().await;
        calls::take(&dead.calls, bare(&path), None)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(answers(&url, Some("token")).await, sent_on(None));
    }
    let _next = node("holder").idle().await;
    let mut socket = Socket::open(&url).await.unwrap();
    socket.resume("token").await.unwrap();
    let refusal = socket.refusal().await.unwrap();
    assert_eq!(refusal, refused(CloseCode::CallNotFound));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_reloaded_at_another_node_finds_its_call_sqlite() {
    reload_a_page(TestDatabase::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_is_reloaded_at_another_node_finds_its_call_postgres() {
    reload_a_page(TestDatabase::postgres().await).await;
}

async fn reload_a_page(database: TestDatabase) {
    let node = |name: &str| {
        let builder = TestApp::builder(&database).node(name).without_worker();
        builder.config(|config| {
            config.limits.attempts_per_minute = 10_000;
            config.media.max_calls = 1;
            config.http.node_url = Some(NODE.parse().unwrap());
        })
    };
    let (asked, holder) = (node("asked").start().await, node("holder").start().await);
    let (acme, _) = asked.acme_and_other().await;
    let (path, url) = call(&asked, &acme).await;
    let [from, to] = [&asked, &holder].map(|node| node.address.to_string());
    let held_url = url.replace(&from, &to);
    let mut page = Socket::open(&held_url).await.unwrap();
    page.begin(false).await.unwrap();
    page.welcome().await.unwrap();
    // A node that is full sends it on, too, and no second call begins.
    let guest = CallOrigin {
        partner: acme.id.clone(),
        page: None,
    };
    let seat = asked.app.calls.room.take(guest).unwrap();
    let expected = sent_on(Some(at_node(&path, &url)));
    assert_eq!(answers(&url, None).await, expected);
    drop(seat);
    assert_eq!(answers(&url, None).await, expected);
    assert_eq!(asked.app.calls.room.open(), 0);

    // The first page is there, so the node that holds the call refuses a second one, and takes the first one back.
    assert_eq!(refusal(&held_url).await, refused(CloseCode::CallInUse));
    drop(page);
    elsewhere::eventually("the page has its call again", async || {
        let mut page = Socket::open(&held_url).await.unwrap();
        page.begin(false).await.unwrap();
        let is_back = page.welcome().await.is_ok();
        if is_back {
            page.say(&ClientMessage::HangUp).await.unwrap();
        }
        is_back
    })
    .await;
    eventually("the call is over", async || {
        state(&asked, &acme, &path).await != "starting"
    })
    .await;
    assert_eq!(refusal(&url).await, refused(CloseCode::CallNotFound));
    asked.stop().await;
    holder.stop().await;
}
