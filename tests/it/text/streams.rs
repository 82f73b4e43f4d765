//! Streams: their order, what keeps them open, what ends them, and who pays when a client goes away.

use harness::upstream::{End, Fault, INPUT_TOKENS, Script};

use super::*;

/// Numbers without a gap, one terminal event, and it is the last.
fn check(events: &[Event], terminal: &str) {
    for (number, event) in events.iter().enumerate() {
        let data = event.json();
        assert_eq!(data["type"], event.name.as_str());
        assert_eq!(data["sequence_number"], number, "{}", event.name);
    }
    let ends = [
        "response.completed",
        "response.incomplete",
        "response.failed",
        "error",
    ];
    let found = events
        .iter()
        .filter(|event| ends.contains(&event.name.as_str()))
        .count();
    assert_eq!(found, 1);
    assert_eq!(events.last().unwrap().name, terminal);
    assert_eq!(events[0].name, "response.created");
}

#[tokio::test]
async fn a_response_comes_in_order() {
    let text = Text::start().await;
    let mut streams = Vec::new();
    for (model, api) in [
        ("scripted-chat", Api::Chat),
        ("scripted-responses", Api::Responses),
    ] {
        text.upstream
            .set_default(api, Script::text("One two.").thinking("Hm. "));
        let events = text
            .stream(RESPONSES, json!({"model": model, "input": "Count."}))
            .await;
        check(&events, "response.completed");
        let done = events.last().unwrap().json();
        let response = &done["response"];
        assert!(response["id"].as_str().unwrap().starts_with("resp_"));
        assert_eq!(response["id"], events[0].json()["response"]["id"]);
        assert_eq!(response["model"], model);
        assert_eq!(response["usage"]["output_tokens"], 3);
        assert_eq!(
            response["usage"]["output_tokens_details"]["reasoning_tokens"],
            1
        );
        assert_eq!(response["output"][0]["content"][0]["text"], "Hm. ");
        streams.push(
            events
                .into_iter()
                .map(|event| event.name)
                .collect::<Vec<_>>(),
        );
    }
    let expected = [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.reasoning_text.delta",
        "response.reasoning_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
    ];
    for names in streams {
        // Whether a part of the thinking is announced is the model's business.
        let mut names = names;
        if let Some(at) = names
            .iter()
            .position(|name| name == "response.content_part.added")
            && at < 6
        {
            names.remove(at);
        }
        assert_eq!(names, expected);
    }
}

#[tokio::test]
async fn a_chat_completion_comes_in_order() {
    let text = Text::start().await;
    for model in ["scripted-chat", "scripted-responses"] {
        let mut body = json!({"model": model, "messages": [{"role": "user", "content": "Hi"}]});
        let events = text.stream(CHAT, body.clone()).await;
        assert_eq!(events.last().unwrap().data, "[DONE]");
        assert!(events.iter().all(|event| event.name.is_empty()));
        let chunks = events[..events.len() - 1]
            .iter()
            .map(Event::json)
            .collect::<Vec<_>>();
        assert_eq!(
            chunks[0]["choices"][0]["delta"]["role"], "assistant",
            "{model}"
        );
        assert_eq!(
            chunks.last().unwrap()["choices"][0]["finish_reason"],
            "stop"
        );
        assert!(
            chunks
                .iter()
                .all(|chunk| chunk.get("usage").is_none_or(Value::is_null)),
            "nobody asked for usage"
        );
        assert!(
            chunks
                .iter()
                .all(|chunk| chunk["model"] == model && chunk["id"] == chunks[0]["id"])
        );

        body["stream_options"] = json!({"include_usage": true});
        let events = text.stream(CHAT, body).await;
        let chunks = events[..events.len() - 1]
            .iter()
            .map(Event::json)
            .collect::<Vec<_>>();
        let (last, before) = chunks.split_last().unwrap();
        assert_eq!(last["choices"], json!([]));
        assert_eq!(last["usage"]["prompt_tokens"], INPUT_TOKENS);
        assert!(before.iter().all(|chunk| chunk["usage"].is_null()));
    }
}

#[tokio::test]
async fn split_characters_and_comments_of_the_model_do_no_harm() {
    let text = Text::start().await;
    let words = "Grüße 你好 👋🏽 — “ja” \u{2028} end";
    for (path, model, api) in [
        (CHAT, "scripted-chat", Api::Chat),
        (RESPONSES, "scripted-responses", Api::Responses),
        (RESPONSES, "scripted-chat", Api::Chat),
    ] {
        for fault in [Fault::Drip, Fault::KeepAlives] {
            text.upstream.script(
                api,
                Script {
                    text: words.to_owned(),
                    ..Script::fault(fault)
                },
            );
            let mut body = json!({"model": model});
            let said = match path {
                CHAT => {
                    body["messages"] = json!([{"role": "user", "content": "Hi"}]);
                    chat_text(&text.stream(path, body).await)
                }
                _ => {
                    body["input"] = json!("Hi");
                    response_text(&text.stream(path, body).await)
                }
            };
            assert_eq!(said, words);
        }
    }
}

#[tokio::test]
async fn a_silent_stream_is_kept_open_with_comments() {
    let text =
        Text::with(|_, builder| builder.config(|config| config.http.keep_alive_seconds = 1)).await;
    let slow = Duration::from_millis(3_500);
    let asked = tokio::time::Instant::now();
    text.upstream.script(
        Api::Responses,
        Script::text("Late.").delayed(slow, Duration::ZERO),
    );
    let mut body = hello_response();
    body["stream"] = json!(true);
    let response = text.open(RESPONSES, &body).await;
    let whole = response.text().await.unwrap();
    // One in each second.
    let pings = whole.matches(": ping\n").count();
    let most = asked.elapsed().as_secs() as usize + 1;
    assert!((2..=most).contains(&pings), "{whole}");
    assert!(!whole.contains("id:"));
    let events = events(&whole);
    check(&events, "response.completed");
    assert_eq!(response_text(&events), "Late.");
}

#[tokio::test]
async fn the_first_words_come_before_the_last_are_made() {
    let text = Text::start().await;
    text.upstream
        .script(Api::Chat, Script::fault(Fault::Stall { after: 3 }));
    let mut body = hello();
    body["stream"] = json!(true);
    read_until(text.open(CHAT, &body).await, |so_far| {
        let have_come = so_far.contains("This");
        assert!(!have_come || text.asked(Api::Chat)[0].end.is_none());
        have_come
    })
    .await;
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_the_model_and_pays_for_what_was_made() {
    let text = Text::patient().await;
    let models = [
        ("scripted-chat", Api::Chat),
        ("scripted-responses", Api::Responses),
    ];
    let asks = models.into_iter().flat_map(|(model, api)| {
        let mut chat = hello();
        chat["model"] = json!(model);
        let response = json!({"model": model, "input": "Hello"});
        [(api, 0, CHAT, chat), (api, 1, RESPONSES, response)]
    });
    for (api, nth, path, mut body) in asks {
        let (key, quota) = text.quota(json!({})).await;
        // The model says no more, so nothing but the client ends it.
        let words = Script {
            text: "word ".repeat(40),
            ..Script::fault(Fault::Stall { after: 10 })
        };
        text.upstream.script(api, words);
        body["stream"] = json!(true);
        let request = text
            .app
            .request(Method::POST, path)
            .bearer_auth(&key)
            .json(&body);
        let response = request.send().await.unwrap();
        read_until(response, |so_far| so_far.matches("word ").count() >= 5).await;
        let soon = patience(Duration::from_secs(5));
        let (end, _) = text.upstream.ended(api, nth, soon).await.unwrap();
        assert_eq!(end, End::Disconnected);
        let report = text.usage(&quota, 1).await;
        let output = report["total"]["output_tokens"].as_u64().unwrap();
        // Five words of five bytes, four bytes a token; the upstream may have been a word or two ahead.
        assert!((5..=20).contains(&output), "{output} tokens");
        assert!(report["total"]["input_tokens"].as_u64().unwrap() > 0);
        let state = text
            .app
            .get(&text.partner, &format!("/api/quotas/acme/{quota}"))
            .await
            .expect(200);
        assert_eq!(state["reserved"]["tokens"], 0);
    }
}

/// A model may give more than it was asked for.
#[tokio::test]
async fn a_client_that_goes_away_pays_for_no_more_than_it_allowed() {
    const MOST: u64 = 16;
    let text = Text::start().await;
    for (model, api) in [
        ("scripted-chat", Api::Chat),
        ("scripted-responses", Api::Responses),
    ] {
        let mut chat = hello();
        chat["model"] = json!(model);
        chat["max_completion_tokens"] = json!(MOST);
        let response = json!({"model": model, "input": "Hello", "max_output_tokens": MOST});
        for (nth, (path, mut body)) in [(CHAT, chat), (RESPONSES, response)]
            .into_iter()
            .enumerate()
        {
            let (key, quota) = text.quota(json!({})).await;
            let words = Script::text("word ".repeat(400));
            text.upstream.script(
                api,
                words.delayed(Duration::ZERO, Duration::from_millis(10)),
            );
            body["stream"] = json!(true);
            let request = text.app.request(Method::POST, path).bearer_auth(&key);
            let response = request.json(&body).send().await.unwrap();
            // Thirty words of five bytes, four bytes a token, are more than were allowed.
            read_until(response, |so_far| so_far.matches("word ").count() >= 30).await;
            let soon = patience(Duration::from_secs(10));
            let gone = text.upstream.ended(api, nth, soon).await;
            assert_eq!(gone.unwrap().0, End::Disconnected);
            let report = text.usage(&quota, 1).await;
            assert_eq!(report["total"]["output_tokens"], MOST, "{model} {path}");
        }
    }
}

#[tokio::test]
async fn a_slow_reader_makes_nothing_grow() {
    let text = Text::start().await;
    // Far more than the buffers of sockets hold.
    text.upstream.script(Api::Chat, Script::default());
    let words = ("y".repeat(1_000) + " ").repeat(30_000);
    text.upstream.set_default(Api::Chat, Script::text(words));
    text.post(
        CHAT,
        json!({"model": "scripted-chat", "messages": [{"role": "user", "content": "warm"}]}),
    )
    .await
    .expect(200);
    let before = resident_bytes();
    let mut body = hello();
    body["stream"] = json!(true);
    let response = text.open(CHAT, &body).await;
    stands_still(&text, 1).await;
    // The upstream in this process holds its 30 MB of pieces; the server adds no copy of them.
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 90_000_000, "{grown} bytes");
    assert!(
        text.asked(Api::Chat)[1].end.is_none(),
        "the model was not read to its end"
    );
    drop(response);
}

/// Waits until nothing more is read of an answer of the model.
pub(super) async fn stands_still(text: &Text, nth: usize) {
    let mut before = 0;
    for _ in 0..100 {
        tokio::time::sleep(patience(Duration::from_millis(500))).await;
        let asked = text.asked(Api::Chat);
        let pieces = asked.get(nth).map_or(0, |asked| asked.pieces);
        if pieces > 0 && pieces == before {
            return;
        }
        before = pieces;
    }
    panic!("{before} pieces, and there are ever more");
}

pub(super) fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1_024
}
