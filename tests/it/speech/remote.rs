//! Speech by an OpenAI-compatible server: what it is asked, what goes wrong, and how early sound comes.

use harness::{
    eventually,
    upstream::{End, Fault, Script},
};
use tokio::time::Instant;

use super::*;

const SENTENCES: &str = "The first sentence is here. The second one is a little longer than it. Then comes a third. And \
    there is a fourth one to wait for. The fifth sentence of this text is its last.";

fn texts(upstream: &Upstream) -> Vec<String> {
    let requests = upstream.requests(Api::Speech).into_iter();
    requests
        .map(|request| request.body["input"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn the_server_is_asked_for_its_own_voice_and_model() {
    let (app, partner, upstream) = remote(|config| {
        config.synthesizer.voices = [("anna".to_owned(), "af_bella".to_owned())].into();
        config.synthesizer.language_field = Some("lang_code".to_owned());
    })
    .await;
    let text = "Das Museum öffnet um neun Uhr morgens, und wer früher kommt, muss draußen warten.";
    let more = json!({"voice": "anna", "speed": 1.25});
    sound(ask(&app, &partner.key, text, more)).await;
    let asked = &upstream.requests(Api::Speech)[0];
    assert_eq!(asked.body["model"], "scripted-voice");
    assert_eq!(asked.body["voice"], "af_bella");
    assert_eq!(asked.body["speed"], 1.25);
    assert_eq!(asked.body["lang_code"], "de");
    sound(ask(&app, &partner.key, "Taxi 12", json!({"voice": "anna"}))).await;
    let asked = upstream.requests(Api::Speech).pop().unwrap();
    assert!(asked.body.get("lang_code").is_none() && asked.body.get("speed").is_none());

    let refused = send(ask(&app, &partner.key, "Hi", json!({"voice": "af_bella"}))).await;
    assert!(refused.expect(400)["error"].is_string());
    let page = app.get(&partner.key, "/v2/audio/voices").await.expect(200);
    let anna = json!({"id": "anna", "name": "anna", "language": null, "gender": null});
    let expected = json!({"model": "colloquy-tts", "voices": [anna], "may_have_others": false});
    assert_eq!(page, expected);
}

#[tokio::test]
async fn without_a_mapping_the_server_knows_its_voices() {
    let (app, partner, upstream) = remote(|_| ()).await;
    sound(ask(&app, &partner.key, "Hi", json!({"voice": "nova"}))).await;
    assert_eq!(upstream.requests(Api::Speech)[0].body["voice"], "nova");
    let page = app.get(&partner.key, "/v2/audio/voices").await.expect(200);
    assert_eq!(page["may_have_others"], true);
    assert_eq!(page["voices"][0]["id"], "alloy");
}

#[tokio::test]
async fn failures_before_the_first_byte_have_their_own_status() {
    let (app, partner, upstream) = remote(|_| ()).await;
    let cases = [
        (Fault::Status(400), 400),
        (Fault::Status(422), 400),
        (Fault::Status(401), 502),
        (Fault::Status(500), 502),
        (
            Fault::RateLimited {
                retry_after: Some(7),
            },
            503,
        ),
        (Fault::Stall { after: 0 }, 503),
        (Fault::Cut { after: 0 }, 502),
        (Fault::Malformed { after: 0 }, 502),
        (Fault::Empty, 502),
    ];
    for (fault, status) in cases {
        upstream.set_default(Api::Speech, Script::fault(fault.clone()));
        for format in ["mp3", "opus", "wav", "pcm"] {
            let more = json!({"response_format": format});
            let answer = send(ask(&app, &partner.key, "Hello there.", more)).await;
            assert_eq!(answer.status.as_u16(), status, "{fault:?}: {}", answer.text);
            let body = answer.json();
            assert!(body["error"].is_string(), "{fault:?}: {body}");
            assert_eq!(body.as_object().unwrap().len(), 1, "{fault:?}: {body}");
            assert!(answer.header("x-svc-tts-request-id").parse::<i64>().is_ok());
            if matches!(fault, Fault::RateLimited { .. }) {
                assert_eq!(answer.header("retry-after"), "7");
            }
            if matches!(fault, Fault::Stall { .. }) {
                // Patience is long enough for one.
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_failure_after_the_first_byte_never_looks_complete() {
    let (app, partner, upstream) = remote(|_| ()).await;
    let faults = [Fault::Cut { after: 2 }, Fault::Stall { after: 2 }];
    for fault in faults {
        for format in ["mp3", "opus", "pcm"] {
            // The second piece of the text fails.
            upstream.script(Api::Speech, Script::default());
            upstream.script(Api::Speech, Script::fault(fault.clone()));
            let more = json!({"response_format": format});
            let request = ask(&app, &partner.key, SENTENCES, more);
            let response = request.send().await.unwrap();
            assert_eq!(response.status(), 200);
            assert!(response.bytes().await.is_err(), "{fault:?} {format}");
        }
        upstream.script(Api::Speech, Script::default());
        upstream.script(Api::Speech, Script::fault(fault.clone()));
        let answer = send(ask(
            &app,
            &partner.key,
            SENTENCES,
            json!({"response_format": "wav"}),
        ))
        .await;
        assert!(answer.status.is_server_error(), "{fault:?}");
    }
}

#[tokio::test]
async fn the_whole_text_is_asked_for_once() {
    let (app, partner, upstream) = remote(|_| ()).await;
    let one = sound(ask(
        &app,
        &partner.key,
        SENTENCES,
        json!({"response_format": "pcm"}),
    ))
    .await;
    let asked = texts(&upstream);
    assert_eq!(asked[0], "The first sentence is here.");
    assert_eq!(asked.join(" "), SENTENCES);
    let characters: usize = asked.iter().map(|text| text.chars().count()).sum();
    let expected = (characters as f64 * 0.06 * 24_000.0) as usize;
    assert!(samples(&one.bytes).len().abs_diff(expected) < 100);
    for text in [
        "**Bold** & [linked](https://example.org/x)",
        "one\n\n# Two\n",
    ] {
        sound(ask(&app, &partner.key, text, json!({}))).await;
    }
    let asked = texts(&upstream);
    assert_eq!(asked[asked.len() - 2..], ["Bold & linked", "one Two"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_first_byte_comes_before_the_last_sentence() {
    let text = format!("{SENTENCES} {SENTENCES} This one is its very last.");
    // A server that sends sound as it makes it: ten times as fast as it is played.
    let (app, partner, upstream) = remote(|_| ()).await;
    let streaming = Script::default().delayed(Duration::ZERO, Duration::from_millis(10));
    // One that makes everything before it sends anything.
    let whole = Script::default().delayed(Duration::from_millis(200), Duration::ZERO);
    for script in [streaming, whole] {
        upstream.set_default(Api::Speech, script);
        for format in ["mp3", "opus", "pcm"] {
            let before = texts(&upstream).len();
            let began = Instant::now();
            let request = ask(
                &app,
                &partner.key,
                &text,
                json!({"response_format": format}),
            );
            let mut response = request.send().await.unwrap();
            response.chunk().await.unwrap().unwrap();
            let first = began.elapsed();
            let asked = texts(&upstream)[before..].concat();
            assert!(
                !asked.contains("very last"),
                "{format}: the last sentence was asked for"
            );
            while response.chunk().await.unwrap().is_some() {}
            println!(
                "{format}: first bytes after {first:?}, all after {:?}",
                began.elapsed()
            );
        }
    }
    // It comes although the second sentence never comes to its end.
    let requests = || upstream.requests(Api::Speech);
    upstream.set_default(Api::Speech, Script::fault(Fault::Stall { after: 2 }));
    for format in ["mp3", "opus", "pcm"] {
        let before = requests().len();
        upstream.script(Api::Speech, Script::default());
        let more = json!({"response_format": format});
        let request = ask(&app, &partner.key, SENTENCES, more);
        let mut response = request.send().await.unwrap();
        response.chunk().await.unwrap().unwrap();
        let others = requests().split_off(before + 1);
        assert!(others.iter().all(|asked| asked.end.is_none()), "{format}");
        drop(response);
        eventually("all requests have ended", async || {
            requests().iter().all(|asked| asked.end.is_some())
        })
        .await;
    }
}

#[tokio::test]
async fn a_client_that_goes_away_ends_the_synthesis() {
    let (app, partner, upstream) = remote(|_| ()).await;
    let requests = || upstream.requests(Api::Speech);
    // The second sentence begins, and no piece comes that it could be noticed by.
    upstream.script(Api::Speech, Script::default());
    upstream.set_default(Api::Speech, Script::fault(Fault::Stall { after: 2 }));
    let request = ask(
        &app,
        &partner.key,
        SENTENCES,
        json!({"response_format": "pcm"}),
    );
    let mut response = request.send().await.unwrap();
    response.chunk().await.unwrap().unwrap();
    eventually("the second sentence is asked for", async || {
        requests().len() > 1
    })
    .await;
    let left_at = Instant::now();
    drop(response);
    eventually("all requests have ended", async || {
        requests().iter().all(|asked| asked.end.is_some())
    })
    .await;
    let asked = requests();
    for request in &asked[1..] {
        let (end, at) = request.end.unwrap();
        assert_eq!(end, End::Disconnected);
        let late = at.saturating_duration_since(left_at);
        assert!(late < limit() / 2, "{late:?}");
    }

    // The same before the first byte.
    upstream.set_default(Api::Speech, Script::fault(Fault::Stall { after: 0 }));
    tokio::select! {
        answer = ask(&app, &partner.key, "Hello there.", json!({})).send() => panic!("{answer:?}"),
        () = eventually("it is asked for", async || requests().len() > asked.len()) => {}
    }
    let nth = asked.len();
    let (end, _) = upstream.ended(Api::Speech, nth, limit() / 2).await.unwrap();
    assert_eq!(end, End::Disconnected);
    let asked = requests();
    assert_eq!(asked[nth].body["input"], "Hello there.");
    assert_eq!(asked.len(), nth + 1, "nothing more is asked for");
}

#[tokio::test]
async fn identical_requests_are_repeated_from_the_cache() {
    let (app, partner, upstream) = remote(|config| config.speech.cache_entries = 2).await;
    let other = app.partner("other").await;
    for (format, asked) in [("mp3", 1), ("wav", 2), ("opus", 3)] {
        let request = || {
            ask(
                &app,
                &partner.key,
                "Hello there.",
                json!({"response_format": format}),
            )
        };
        let first = sound(request()).await;
        let second = sound(request()).await;
        assert!(
            first.bytes == second.bytes && !first.bytes.is_empty(),
            "{format}"
        );
        assert_eq!(second.header("content-type"), first.header("content-type"));
        assert_ne!(
            second.header("x-svc-tts-request-id"),
            first.header("x-svc-tts-request-id")
        );
        assert_eq!(upstream.requests(Api::Speech).len(), asked, "{format}");
    }
    // The oldest made room; what differs, or is another partner's, is made.
    for (key, more) in [
        (&partner.key, json!({})),
        (&partner.key, json!({"speed": 0.9})),
        (&other.key, json!({})),
    ] {
        let before = upstream.requests(Api::Speech).len();
        sound(ask(&app, key, "Hello there.", more)).await;
        assert_eq!(upstream.requests(Api::Speech).len(), before + 1);
    }
}

#[tokio::test]
async fn nothing_is_kept_unless_it_is_wanted_and_complete() {
    let (app, partner, upstream) = remote(|_| ()).await;
    for asked in 1..=2 {
        sound(ask(&app, &partner.key, "Hello there.", json!({}))).await;
        assert_eq!(upstream.requests(Api::Speech).len(), asked);
    }
    let (app, partner, upstream) = remote(|config| config.speech.cache_entries = 10).await;
    upstream.script(Api::Speech, Script::fault(Fault::Cut { after: 2 }));
    let request = ask(&app, &partner.key, "Hello there.", json!({})).send();
    assert!(request.await.unwrap().bytes().await.is_err());
    sound(ask(&app, &partner.key, "Hello there.", json!({}))).await;
    assert_eq!(upstream.requests(Api::Speech).len(), 2);
}
