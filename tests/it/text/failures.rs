//! Models that fail: what the client sees, what is recorded, what the fallback does.

use harness::upstream::{End, Fault, INPUT_TOKENS, Script, output_tokens};

use super::*;

/// Patience for tests: the faults that are silent are over soon.
async fn impatient() -> Text {
    impatient_with(|builder| builder).await
}

async fn impatient_with(change: impl FnOnce(TestAppBuilder) -> TestAppBuilder) -> Text {
    Text::with(|_, builder| {
        change(builder).config(|config| {
            let mut second = config.models["scripted-chat"].clone();
            second.model = Some("scripted-chat".to_owned());
            config.models.insert("second".to_owned(), second);
            let (silence, all) = (ms(400), ms(1_500));
            for model in config.models.values_mut() {
                model.first_token_ms = silence;
                model.whole_ms = silence;
                model.between_tokens_ms = silence;
                model.total_ms = all;
            }
            let mut down = config.models["scripted-chat"].clone();
            down.base_url = Some("http://127.0.0.1:9/v1".parse().unwrap());
            config.models.insert("down".to_owned(), down);
        })
    })
    .await
}

/// So many milliseconds on a machine of ordinary speed.
fn ms(usual: u64) -> u32 {
    patience(Duration::from_millis(usual)).as_millis() as u32
}

/// The models, the API that each is asked by, and how many pieces stand before its third word and with it.
const MODELS: [(&str, Api, usize); 2] = [
    ("scripted-chat", Api::Chat, 3),
    ("scripted-responses", Api::Responses, 5),
];

fn faults() -> Vec<(Fault, u16, &'static str)> {
    vec![
        (
            Fault::RateLimited {
                retry_after: Some(7),
            },
            429,
            "upstream_rate_limited",
        ),
        (Fault::Status(500), 502, "upstream_error"),
        (Fault::Status(503), 502, "upstream_error"),
        (Fault::Status(401), 502, "upstream_misconfigured"),
        (Fault::Status(404), 502, "upstream_rejected"),
        (Fault::Stall { after: 0 }, 504, "upstream_timeout"),
        (Fault::ErrorFrame { after: 0 }, 502, "upstream_error"),
        (Fault::Cut { after: 0 }, 502, "upstream_cut"),
        (Fault::Malformed { after: 0 }, 502, "upstream_error"),
    ]
}

#[tokio::test]
async fn a_failure_before_the_first_content_has_a_status() {
    for (model, api, _) in MODELS {
        for (fault, status, code) in faults() {
            // A server each: a model that failed may rest.
            let text = impatient().await;
            let (key, quota) = text.quota(json!({})).await;
            text.upstream.script(api, Script::fault(fault.clone()));
            let mut body = hello();
            body["model"] = json!(model);
            body["stream"] = json!(true);
            let answer = text.app.post(&key, CHAT, body).await;
            if answer.status == 200 {
                // The head of the answer was there already: the stream ends with the error.
                let events = events(&answer.text);
                let error = events.last().unwrap().json();
                assert_eq!(error["error"]["code"], code, "{model} {fault:?}");
                let id = answer.header("x-request-id");
                assert_eq!(error["error"]["request_id"], id, "{model} {fault:?}");
                assert!(!answer.text.contains("[DONE]"));
            } else {
                let error = answer.expect(status);
                assert_eq!(error["error"]["code"], code, "{model} {fault:?}: {error}");
                let id = answer.header("x-request-id");
                assert_eq!(error["error"]["request_id"], id, "{model} {fault:?}");
                assert!(
                    error["error"]["message"].is_string() && error["error"]["type"].is_string()
                );
                if status == 429 {
                    assert_eq!(answer.header("retry-after"), "7");
                }
            }
            let usage = text.usage(&quota, 1).await;
            assert_eq!(
                usage["total"]["tokens"],
                told(api, &fault),
                "{model} {fault:?}"
            );
        }
    }
}

/// The tokens that a failure tells of.
fn told(api: Api, fault: &Fault) -> u64 {
    match (api, fault) {
        (Api::Responses, Fault::ErrorFrame { .. }) => {
            INPUT_TOKENS + output_tokens(&Script::default())
        }
        _ => 0,
    }
}

#[tokio::test]
async fn a_failure_of_a_whole_answer_is_settled_with_what_it_tells() {
    for (model, api, _) in MODELS {
        let text = impatient().await;
        let (key, quota) = text.quota(json!({})).await;
        let fault = Fault::ErrorFrame { after: 0 };
        text.upstream.script(api, Script::fault(fault.clone()));
        let body = json!({"model": model, "input": "Hello"});
        let error = text.app.post(&key, RESPONSES, body).await.expect(502);
        assert_eq!(error["error"]["code"], "upstream_error");
        let usage = text.usage(&quota, 1).await;
        assert_eq!(usage["total"]["tokens"], told(api, &fault), "{model}");
        assert_eq!(usage["rows"][0]["model"], model);
    }
}

#[tokio::test]
async fn a_failure_in_the_middle_never_looks_complete() {
    for (model, api, after) in MODELS {
        for fault in [
            Fault::ErrorFrame { after },
            Fault::Stall { after },
            Fault::Cut { after },
            Fault::Unfinished { after },
            Fault::Malformed { after },
        ] {
            let text = impatient().await;
            text.upstream.set_default(api, Script::fault(fault.clone()));
            let (key, quota) = text.quota(json!({})).await;
            let mut body = hello();
            body["model"] = json!(model);
            body["stream"] = json!(true);
            // There is something to fall back on, but it is too late for it.
            body["fallback_model"] = json!("second");
            let answer = text.app.post(&key, CHAT, body).await;
            assert_eq!(answer.status, 200);
            assert!(
                !answer.text.contains("[DONE]") && !answer.text.contains("\"stop\""),
                "{model} {fault:?}"
            );
            let events = events(&answer.text);
            assert_eq!(chat_text(&events[..events.len() - 1]), "This is the ");
            let last = events.last().unwrap().json();
            assert!(last["error"]["message"].is_string(), "{last}");
            let id = answer.header("x-request-id");
            assert_eq!(last["error"]["request_id"], id, "{model} {fault:?}");
            let usage = text.usage(&quota, 1).await;
            let output = match told(api, &fault) {
                // 12 bytes, a quarter of them.
                0 => 3,
                told => told - INPUT_TOKENS,
            };
            assert_eq!(usage["total"]["output_tokens"], output, "{model} {fault:?}");

            let events = text
                .stream(
                    RESPONSES,
                    json!({"model": model, "input": "Hello", "fallback_model": "second"}),
                )
                .await;
            let last = events.last().unwrap();
            assert_eq!(last.name, "error", "{model} {fault:?}");
            assert_eq!(response_text(&events), "This is the ");
            assert_eq!(
                text.upstream.all_requests(),
                2,
                "{model} {fault:?}: no other model was asked"
            );
        }
    }
}

#[tokio::test]
async fn a_stream_that_is_cut_between_its_choices_is_not_complete() {
    let text = impatient().await;
    let words = output_tokens(&Script::default()) as usize;
    let cut = Fault::Cut { after: words + 1 };
    text.upstream.script(Api::Chat, Script::fault(cut));
    let mut body = hello();
    body["n"] = json!(2);
    let events = text.stream(CHAT, body.clone()).await;
    assert!(events.iter().any(|event| event.data.contains("\"stop\"")));
    assert_eq!(
        events.last().unwrap().json()["error"]["code"],
        "upstream_cut"
    );
    let events = text.stream(CHAT, body).await;
    assert_eq!(events.last().unwrap().data, "[DONE]");
}

#[tokio::test]
async fn another_model_takes_over_before_the_first_content() {
    for (model, api, _) in MODELS {
        for (fault, ..) in faults() {
            for streamed in [false, true] {
                takes_over(model, api, &fault, streamed).await;
            }
        }
    }
}

async fn takes_over(model: &str, api: Api, fault: &Fault, streamed: bool) {
    let text = impatient().await;
    let (key, quota) = text.quota(json!({})).await;
    text.upstream.script(api, Script::fault(fault.clone()));
    let mut body = hello();
    body["model"] = json!(model);
    body["fallback_model"] = json!("second");
    body["stream"] = json!(streamed);
    let answer = text.app.post(&key, CHAT, body).await;
    assert_eq!(answer.status, 200, "{model} {fault:?}: {}", answer.text);
    let (said, model) = if streamed {
        let events = events(&answer.text);
        assert_eq!(events.last().unwrap().data, "[DONE]");
        let last = events[events.len() - 2].json();
        (chat_text(&events), last["model"].clone())
    } else {
        let body = answer.json();
        let said = body["choices"][0]["message"]["content"].as_str();
        (said.unwrap().to_owned(), body["model"].clone())
    };
    assert_eq!(
        (said.as_str(), &model),
        (Script::default().text.as_str(), &json!("second")),
        "{fault:?}"
    );
    let usage = text.usage(&quota, 1).await;
    assert_eq!(usage["rows"][0]["model"], "second", "{fault:?}");
}

#[tokio::test]
async fn failures_and_fallbacks_are_counted() {
    let text = impatient().await;
    text.upstream
        .script(Api::Chat, Script::fault(Fault::Status(500)));
    let mut body = hello();
    body["fallback_model"] = json!("second");
    text.post(CHAT, body).await.expect(200);
    text.stream(CHAT, hello()).await;
    let metrics = text.app.app.metrics.render();
    for line in [
        r#"colloquy_generation_failures_total{model="scripted-chat",reason="failed"} 1"#,
        r#"colloquy_generation_fallbacks_total{model="scripted-chat"} 1"#,
        r#"colloquy_generation_added_seconds_count{model="second"} 1"#,
        r#"colloquy_generation_first_token_seconds_count{model="scripted-chat"} 1"#,
        r#"colloquy_generation_added_seconds_count{model="scripted-chat"} 1"#,
    ] {
        assert!(metrics.contains(line), "{line}\n{metrics}");
    }
    // A whole answer has no first token that anybody sees.
    assert!(!metrics.contains(r#"first_token_seconds_count{model="second"}"#));
}

#[tokio::test]
async fn a_server_that_does_not_take_connections_is_not_waited_for() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let deaf = socket.listen(1).unwrap();
    let address = deaf.local_addr().unwrap();
    // Its queue is full once one of these is not answered.
    let mut waiting = Vec::new();
    let answer = patience(Duration::from_millis(300));
    while let Ok(Ok(stream)) =
        tokio::time::timeout(answer, tokio::net::TcpStream::connect(address)).await
    {
        waiting.push(stream);
    }
    let text = Text::with(|_, builder| {
        builder.config(|config| {
            let mut deaf = config.models["scripted-chat"].clone();
            deaf.base_url = Some(format!("http://{address}/v1").parse().unwrap());
            deaf.connect_ms = 300;
            config.models.insert("deaf".to_owned(), deaf);
        })
    })
    .await;
    let mut body = hello();
    body["model"] = json!("deaf");
    let asked = tokio::time::Instant::now();
    let error = text.post(CHAT, body.clone()).await.expect(502);
    assert_eq!(error["error"]["code"], "upstream_unreachable");
    // By default it would be waited for five seconds.
    assert!(
        asked.elapsed() < patience(Duration::from_secs(2)).min(Duration::from_secs(4)),
        "{:?}",
        asked.elapsed()
    );
    body["fallback_model"] = json!("scripted-chat");
    assert_eq!(
        text.post(CHAT, body).await.expect(200)["model"],
        "scripted-chat"
    );
}

#[tokio::test]
async fn a_model_that_is_not_there_is_fallen_back_from_also_to_the_other_api() {
    let text = impatient().await;
    let body = json!({"model": "down", "fallback_model": "scripted-responses", "input": "Hello"});
    let whole = text.post(RESPONSES, body.clone()).await.expect(200);
    assert_eq!(whole["model"], "scripted-responses");
    let events = text.stream(RESPONSES, body).await;
    assert_eq!(response_text(&events), Script::default().text);
    assert_eq!(
        events.last().unwrap().json()["response"]["model"],
        "scripted-responses"
    );
    let alone = text
        .post(RESPONSES, json!({"model": "down", "input": "Hello"}))
        .await;
    assert_eq!(alone.expect(502)["error"]["code"], "upstream_unreachable");
}

#[tokio::test]
async fn a_request_that_the_model_refuses_is_the_clients_business() {
    let text = impatient().await;
    text.upstream
        .script(Api::Chat, Script::fault(Fault::Status(400)));
    let mut body = hello();
    body["fallback_model"] = json!("second");
    let error = text.post(CHAT, body).await.expect(400);
    assert_eq!(error["error"]["message"], "scripted refusal");
    assert_eq!(text.asked(Api::Chat).len(), 1, "no other model was asked");
}

#[tokio::test]
async fn a_model_that_keeps_failing_rests() {
    let text = impatient().await;
    text.upstream
        .set_default(Api::Chat, Script::fault(Fault::Status(503)));
    for _ in 0..5 {
        text.post(CHAT, hello()).await.expect(502);
    }
    let resting = text.post(CHAT, hello()).await;
    assert_eq!(resting.expect(503)["error"]["code"], "upstream_resting");
    assert_eq!(resting.header("retry-after"), "1");
    assert_eq!(text.asked(Api::Chat).len(), 5);
    // The fallback is asked at once.
    let mut body = hello();
    body["fallback_model"] = json!("scripted-responses");
    let answer = text.post(CHAT, body).await.expect(200);
    assert_eq!(answer["model"], "scripted-responses");
    // After the rest one request finds out.
    text.upstream.set_default(Api::Chat, Script::default());
    text.app.advance(Duration::from_millis(1_100));
    text.post(CHAT, hello()).await.expect(200);
    text.post(CHAT, hello()).await.expect(200);
}

#[tokio::test]
async fn an_answer_between_failures_keeps_a_model_awake() {
    for (model, api, _) in MODELS {
        for path in [CHAT, RESPONSES] {
            for gives_up in [false, true] {
                let text = impatient().await;
                let body = match path {
                    CHAT => {
                        json!({"model": model, "messages": [{"role": "user", "content": "Hello"}], "stream": true})
                    }
                    _ => json!({"model": model, "input": "Hello", "stream": true}),
                };
                let fail = async || {
                    text.upstream.script(api, Script::fault(Fault::Status(503)));
                    assert_eq!(text.open(path, &body).await.status(), 502);
                };
                for _ in 0..4 {
                    fail().await;
                }
                if gives_up {
                    text.upstream
                        .script(api, Script::fault(Fault::Stall { after: 5 }));
                    let begins = |text: &str| text.contains("This");
                    read_until(text.open(path, &body).await, begins).await;
                    let gone = text
                        .upstream
                        .ended(api, 4, patience(Duration::from_secs(10)))
                        .await;
                    assert_eq!(gone.unwrap().0, End::Disconnected);
                } else {
                    text.open(path, &body).await.text().await.unwrap();
                }
                for _ in 0..4 {
                    fail().await;
                }
                let answer = text.open(path, &body).await;
                assert_eq!(answer.status(), 200, "{model} {path} {gives_up}");
            }
        }
    }
}

#[tokio::test]
async fn huge_events_are_taken_up_to_a_bound() {
    let mut text = Text::start().await;
    let (key, quota) = text.quota(json!({})).await;
    text.key = key;
    text.upstream
        .script(Api::Chat, Script::fault(Fault::Huge { bytes: 3_000_000 }));
    let mut body = hello();
    body["stream"] = json!(true);
    let answer = text.post(CHAT, body.clone()).await;
    assert_eq!(chat_text(&events(&answer.text)).len(), 3_000_000);
    text.upstream
        .script(Api::Chat, Script::fault(Fault::Huge { bytes: 5_000_000 }));
    let answer = text.post(CHAT, body.clone()).await;
    let end = &answer.text[answer.text.len().saturating_sub(300)..];
    assert!(
        end.contains("upstream_error") && !end.contains("[DONE]"),
        "{end}"
    );
    // The first one told its usage, the second one was of no use; it is no content, so that there may be another model.
    let usage = text.usage(&quota, 2).await;
    let told = INPUT_TOKENS + output_tokens(&Script::default());
    assert_eq!(usage["total"]["tokens"], told);
    text.upstream
        .script(Api::Chat, Script::fault(Fault::Huge { bytes: 5_000_000 }));
    body["fallback_model"] = json!("scripted-responses");
    let answer = text.post(CHAT, body).await;
    assert_eq!(chat_text(&events(&answer.text)), Script::default().text);
}

/// The key of a partner of its own.
async fn stranger(text: &Text, name: &str) -> String {
    let partner = text.app.partner(name).await.key;
    let quota = json!({"kinds": ["text"], "period": "lifetime"});
    let path = format!("/api/quotas/{name}");
    let made = text.app.post(&partner, &path, quota).await.expect(201);
    made["api_key"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn no_partner_makes_a_model_rest_for_another() {
    for fault in [
        Fault::Status(400),
        Fault::Status(500),
        Fault::Status(503),
        Fault::RateLimited {
            retry_after: Some(60),
        },
        Fault::Stall { after: 0 },
        Fault::Cut { after: 0 },
        Fault::Malformed { after: 0 },
    ] {
        let text = impatient().await;
        let other = stranger(&text, "other").await;
        for _ in 0..12 {
            text.upstream
                .script(Api::Chat, Script::fault(fault.clone()));
            assert_ne!(text.post(CHAT, hello()).await.status, 200, "{fault:?}");
        }
        text.upstream.forget_scripts();
        let answer = text.app.post(&other, CHAT, hello()).await;
        assert_eq!(answer.status, 200, "{fault:?}: {}", answer.text);
    }
}

#[tokio::test]
async fn a_request_that_breaks_the_model_does_not_take_it_from_the_others_of_its_partner() {
    let text = impatient().await;
    for _ in 0..12 {
        text.upstream
            .script(Api::Chat, Script::fault(Fault::Status(500)));
        text.post(CHAT, hello()).await.expect(502);
    }
    text.post(CHAT, hello()).await.expect(200);
}

#[tokio::test]
async fn a_model_that_cannot_be_reached_rests_for_everybody() {
    let text = impatient().await;
    let other = stranger(&text, "other").await;
    let mut body = hello();
    body["model"] = json!("down");
    for _ in 0..5 {
        text.post(CHAT, body.clone()).await.expect(502);
    }
    let resting = text.app.post(&other, CHAT, body).await;
    resting.expect(503);
    assert_eq!(resting.header("retry-after"), "1");
}

#[tokio::test]
async fn too_many_requests_are_told_to_whose_request_it_was() {
    let text = impatient().await;
    for (told, handed_on) in [(Some(45), "45"), (None, "1")] {
        let limited = Fault::RateLimited { retry_after: told };
        text.upstream.script(Api::Chat, Script::fault(limited));
        let answer = text.post(CHAT, hello()).await;
        assert_eq!(answer.expect(429)["error"]["type"], "rate_limit_error");
        assert_eq!(answer.header("retry-after"), handed_on);
        text.post(CHAT, hello()).await.expect(200);
    }
}

/// Also with the settings' own 60 s for answers in one piece: a silent model is given up after the time of its first content,
/// and where its events do not tell all of the answer, after that of the whole.
#[tokio::test]
async fn an_answer_in_one_piece_is_waited_for_no_longer_than_a_fallback_can_wait() {
    for tells_usage in [true, false] {
        let text = Text::with(|_, builder| {
            builder.config(|config| {
                for model in config.models.values_mut() {
                    model.stream_usage = tells_usage;
                    match tells_usage {
                        true => {
                            (model.first_token_ms, model.between_tokens_ms) = (ms(300), ms(300))
                        }
                        false => model.whole_ms = ms(300),
                    }
                }
            })
        })
        .await;
        for after in [0, 1] {
            text.upstream
                .script(Api::Chat, Script::fault(Fault::Stall { after }));
            let mut body = hello();
            body["fallback_model"] = json!("scripted-responses");
            let asked = tokio::time::Instant::now();
            let answer = text.post(CHAT, body).await.expect(200);
            assert_eq!(answer["model"], "scripted-responses");
            let took = asked.elapsed();
            assert!(took >= Duration::from_millis(300), "{took:?}");
            assert!(took < patience(Duration::from_secs(5)), "{took:?}");
            let asked = text.asked(Api::Chat).pop().unwrap().body;
            assert_eq!(asked["stream"] == true, tells_usage, "{asked}");
        }
    }
}

/// A fallback that waits changes nothing of the answer.
#[tokio::test]
async fn an_answer_in_one_piece_is_the_same_while_a_fallback_waits() {
    let text = Text::start().await;
    for (model, other) in [
        ("scripted-chat", "scripted-responses"),
        ("scripted-responses", "scripted-chat"),
    ] {
        for script in [
            Script::default(),
            Script::tool("weather", r#"{"place":"Oslo"}"#),
        ] {
            for path in [CHAT, RESPONSES] {
                let mut answers = Vec::new();
                for fallback in [Value::Null, json!(other)] {
                    for api in [Api::Chat, Api::Responses] {
                        text.upstream.set_default(api, script.clone());
                    }
                    let mut body = match path {
                        CHAT => hello(),
                        _ => json!({"input": "Hello", "store": false}),
                    };
                    body["model"] = json!(model);
                    body["fallback_model"] = fallback;
                    let mut answer = text.post(path, body).await.expect(200);
                    drop_names(&mut answer);
                    answers.push(answer);
                }
                assert_eq!(answers[0], answers[1], "{model} {path}");
            }
        }
    }
}

/// Takes out what every answer has of its own.
fn drop_names(answer: &mut Value) {
    match answer {
        Value::Object(object) => {
            object.retain(|name, _| {
                !["id", "created", "created_at", "completed_at"].contains(&name.as_str())
            });
            // Whether a message that calls a tool has none or an empty one is up to the server.
            if object.get("content").is_some_and(|content| content == "") {
                object["content"] = Value::Null;
            }
            object.values_mut().for_each(drop_names);
        }
        Value::Array(values) => values.iter_mut().for_each(drop_names),
        _ => {}
    }
}

#[tokio::test]
async fn who_has_nothing_to_fall_back_on_waits_for_the_model() {
    let text = Text::with(|_, builder| {
        builder.config(|config| {
            for model in config.models.values_mut() {
                model.first_token_ms = 300;
                model.whole_ms = 300;
            }
        })
    })
    .await;
    let slow = Script::default().delayed(Duration::from_millis(600), Duration::ZERO);
    text.upstream.set_default(Api::Chat, slow);
    text.post(CHAT, hello()).await.expect(200);
}
