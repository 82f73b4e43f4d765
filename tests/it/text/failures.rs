//! Models that fail: what the client sees, what is recorded, what the fallback does.

use super::*;
use harness::upstream::{Fault, Script};

/// Patience for tests: the faults that are silent are over soon.
async fn impatient() -> Text {
    Text::with(|_, builder| {
        builder.config(|config| {
            let mut second = config.models["scripted-chat"].clone();
            second.model = Some("scripted-chat".to_owned());
            config.models.insert("second".to_owned(), second);
            for model in config.models.values_mut() {
                model.first_token_ms = 400;
                model.between_tokens_ms = 400;
                model.total_ms = 5_000;
            }
            let mut down = config.models["scripted-chat"].clone();
            down.base_url = Some("http://127.0.0.1:9/v1".parse().unwrap());
            config.models.insert("down".to_owned(), down);
        })
    })
    .await
}

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
    for (fault, status, code) in faults() {
        // A server each: a model that failed may rest.
        let text = impatient().await;
        let (key, quota) = text.quota(json!({})).await;
        text.upstream
            .script(Api::Chat, Script::fault(fault.clone()));
        let mut body = hello();
        body["stream"] = json!(true);
        let answer = text.app.post(&key, CHAT, body).await;
        if answer.status == 200 {
            // The head of the answer was there already: the stream ends with the error.
            let events = events(&answer.text);
            let error = events.last().unwrap().json();
            assert_eq!(error["error"]["code"], code, "{fault:?}");
            assert!(!answer.text.contains("[DONE]"));
        } else {
            let error = answer.expect(status);
            assert_eq!(error["error"]["code"], code, "{fault:?}: {error}");
            assert!(error["error"]["message"].is_string() && error["error"]["type"].is_string());
            if status == 429 {
                assert_eq!(answer.header("retry-after"), "7");
            }
        }
        let usage = text.usage(&quota, 1).await;
        assert_eq!(usage["total"]["tokens"], 0, "{fault:?}");
    }
}

#[tokio::test]
async fn a_failure_in_the_middle_never_looks_complete() {
    for fault in [
        Fault::ErrorFrame { after: 3 },
        Fault::Stall { after: 3 },
        Fault::Cut { after: 3 },
        Fault::Unfinished { after: 3 },
        Fault::Malformed { after: 3 },
    ] {
        let text = impatient().await;
        text.upstream
            .set_default(Api::Chat, Script::fault(fault.clone()));
        let (key, quota) = text.quota(json!({})).await;
        let mut body = hello();
        body["stream"] = json!(true);
        // There is something to fall back on, but it is too late for it.
        body["fallback_model"] = json!("second");
        let answer = text.app.post(&key, CHAT, body).await;
        assert_eq!(answer.status, 200);
        assert!(
            !answer.text.contains("[DONE]") && !answer.text.contains("\"stop\""),
            "{fault:?}"
        );
        let events = events(&answer.text);
        assert_eq!(chat_text(&events[..events.len() - 1]), "This is the ");
        assert!(events.last().unwrap().json()["error"]["message"].is_string());
        let usage = text.usage(&quota, 1).await;
        assert_eq!(
            usage["total"]["output_tokens"], 3,
            "12 bytes, a quarter of them"
        );

        let events = text
            .stream(
                RESPONSES,
                json!({"model": "second", "input": "Hello", "fallback_model": "scripted-chat"}),
            )
            .await;
        let last = events.last().unwrap();
        assert!(
            ["error", "response.failed"].contains(&last.name.as_str()),
            "{fault:?}: {}",
            last.name
        );
        assert_eq!(response_text(&events), "This is the ");
        assert_eq!(
            text.asked(Api::Chat).len(),
            2,
            "{fault:?}: no model was asked twice"
        );
    }
}

#[tokio::test]
async fn another_model_takes_over_before_the_first_content() {
    for (fault, ..) in faults() {
        for streamed in [false, true] {
            let text = impatient().await;
            if !streamed && matches!(fault, Fault::Stall { .. }) {
                // A whole answer may take as long as it takes.
                continue;
            }
            let (key, quota) = text.quota(json!({})).await;
            text.upstream
                .script(Api::Chat, Script::fault(fault.clone()));
            let mut body = hello();
            body["fallback_model"] = json!("second");
            body["stream"] = json!(streamed);
            let answer = text.app.post(&key, CHAT, body).await;
            assert_eq!(answer.status, 200, "{fault:?}: {}", answer.text);
            let (said, model) = if streamed {
                let events = events(&answer.text);
                assert_eq!(events.last().unwrap().data, "[DONE]");
                let last = events[events.len() - 2].json();
                (chat_text(&events), last["model"].clone())
            } else {
                let body = answer.json();
                (
                    body["choices"][0]["message"]["content"]
                        .as_str()
                        .unwrap()
                        .to_owned(),
                    body["model"].clone(),
                )
            };
            assert_eq!(
                (said.as_str(), &model),
                (Script::default().text.as_str(), &json!("second")),
                "{fault:?}"
            );
            let usage = text.usage(&quota, 1).await;
            assert_eq!(usage["rows"][0]["model"], "second", "{fault:?}");
        }
    }
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
        .set_default(Api::Chat, Script::fault(Fault::Status(500)));
    for _ in 0..5 {
        text.post(CHAT, hello()).await.expect(502);
    }
    let resting = text.post(CHAT, hello()).await;
    resting.expect(503);
    assert_eq!(resting.header("retry-after"), "1");
    assert_eq!(text.asked(Api::Chat).len(), 5);
    // The fallback is asked at once.
    let mut body = hello();
    body["fallback_model"] = json!("scripted-responses");
    assert_eq!(
        text.post(CHAT, body).await.expect(200)["model"],
        "scripted-responses"
    );
    // After the rest one request finds out.
    text.upstream.set_default(Api::Chat, Script::default());
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    text.post(CHAT, hello()).await.expect(200);
    text.post(CHAT, hello()).await.expect(200);
}

#[tokio::test]
async fn huge_events_are_taken_up_to_a_bound() {
    let text = Text::start().await;
    text.upstream
        .script(Api::Chat, Script::fault(Fault::Huge { bytes: 3_000_000 }));
    let mut body = hello();
    body["stream"] = json!(true);
    let answer = text.post(CHAT, body.clone()).await;
    assert_eq!(chat_text(&events(&answer.text)).len(), 3_000_000);
    text.upstream
        .script(Api::Chat, Script::fault(Fault::Huge { bytes: 5_000_000 }));
    let answer = text.post(CHAT, body).await;
    let end = &answer.text[answer.text.len().saturating_sub(300)..];
    assert!(
        end.contains("upstream_error") && !end.contains("[DONE]"),
        "{end}"
    );
}
