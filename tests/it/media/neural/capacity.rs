//! How many calls a server takes whose models listen and speak: as many as they keep up with, which it measures when it starts.

use harness::{
    app::{TestPartner, send},
    elsewhere::eventually,
    process::Server,
};
use reqwest::Method;

use super::*;

/// A voice and a model for ends of turns, which are soon loaded, on so many threads.
fn with_threads(threads: u32) -> impl FnOnce(&mut Config) {
    move |config| {
        config.inference.models_dir = Some(folder());
        config.inference.threads = Some(threads);
        config.transcriber.model = Some("pocketsphinx".to_owned());
        config.embedder.model = Some("none".to_owned());
        config.calls.voice_activity = Some("earshot".to_owned());
        config.calls.end_of_turn = Some("smart-turn-v3.2".to_owned());
    }
}

#[test]
fn more_threads_make_room_for_more_calls() {
    // One model is enough to tell, and is soon loaded.
    let room = |threads, end_of_turn: Option<&str>| {
        let mut config = settings(folder());
        with_threads(threads)(&mut config);
        config.synthesizer.model = Some("espeak-ng".to_owned());
        config.calls.end_of_turn = end_of_turn.map(str::to_owned);
        providers::from_config(&config).unwrap().max_calls
    };
    let room_for = |threads| room(threads, Some("smart-turn-v3.2")).unwrap();
    // What else the machine does makes each measurement another one.
    let measured = (0..5).map(|_| (room_for(1), room_for(2)));
    let measured: Vec<_> = measured.take_while(|(one, two)| one >= two).collect();
    assert!(measured.len() < 5, "{measured:?}");
    // Without models that calls ask there is no such bound.
    assert_eq!(room(1, None), None);
}

/// The bound that a server said when it started.
fn said(server: &Server) -> usize {
    let log = server.log();
    let (_, rest) = log.split_once(" max_calls=").unwrap();
    rest.split(char::is_whitespace)
        .next()
        .unwrap()
        .parse()
        .unwrap()
}

async fn ask(server: &Server, partner: &TestPartner) -> harness::app::Answer {
    let body = json!({
        "character": format!("repo:{}/guide", partner.id), "call_time_limit_seconds": "60",
    });
    let request = server.request(&partner.key, Method::POST, "/v2/calls");
    send(request.json(&body)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_takes_as_many_calls_as_its_models_keep_up_with() {
    let database = TestDatabase::sqlite();
    let server = Server::start(&database, |config| {
        with_threads(1)(config);
        config.chat.model = Some("builtin/extractive".to_owned());
    })
    .await;
    let room = said(&server);
    let most = Config::default().media.max_calls as usize;
    assert!(room < most, "{room}");
    let mut partners = Vec::new();
    for name in ["acme", "other"] {
        let partner = server.partner(name).await;
        let guide = json!({"name": "guide", "personality": "You are a guide.", "parameters": {}});
        let path = format!("/api/characters/{name}");
        let made = server
            .request(&partner.key, Method::POST, &path)
            .json(&guide);
        send(made).await.expect(201);
        partners.push(partner);
    }
    // Each of two partners gets half of it, and they take turns.
    let mut clients = Vec::new();
    for turn in 0..room {
        let made = ask(&server, &partners[turn % 2]).await.expect(200);
        let url = made["data"]["signedUrl"].as_str().unwrap();
        clients.push(NativeClient::connect(url).await.unwrap());
    }
    for partner in &partners {
        let full = ask(&server, partner).await;
        assert_eq!(full.expect(503)["error"]["code"], "UNAVAILABLE");
        assert!(full.header("retry-after").parse::<u32>().unwrap() >= 1);
    }
    // A call that ends makes room.
    clients.remove(0).hang_up().await.unwrap();
    eventually("there is room again", || async {
        ask(&server, &partners[0]).await.status == 200
    })
    .await;
}
