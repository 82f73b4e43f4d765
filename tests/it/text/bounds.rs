//! How much a request may ask for, and what is reserved for it.

use std::sync::atomic::{AtomicUsize, Ordering};

use harness::eventually;

use super::*;

#[tokio::test]
async fn an_answer_keeps_within_what_a_limited_quota_reserves_for_it() {
    let text = Text::with(|_, builder| {
        builder.config(|config| {
            for model in config.models.values_mut() {
                model.max_output_tokens = 700;
            }
        })
    })
    .await;
    let (limited, _) = text.quota(json!({"limits": {"dollars": "5"}})).await;
    let body = |model: &str| json!({"model": model, "input": "Hello"});
    for (model, api, field) in [
        ("scripted-chat", Api::Chat, "max_completion_tokens"),
        ("scripted-responses", Api::Responses, "max_output_tokens"),
    ] {
        text.app
            .post(&limited, RESPONSES, body(model))
            .await
            .expect(200);
        let mut own = body(model);
        own["max_output_tokens"] = json!(900);
        text.app.post(&limited, RESPONSES, own).await.expect(200);
        // A quota without limits has nothing to keep within.
        text.post(RESPONSES, body(model)).await.expect(200);
        let limits = text
            .asked(api)
            .into_iter()
            .map(|asked| asked.body[field].clone());
        assert_eq!(
            limits.collect::<Vec<_>>(),
            [json!(700), json!(900), Value::Null]
        );
    }
}

#[tokio::test]
async fn a_body_that_is_too_large_is_a_wrong_one() {
    let text =
        Text::with(|_, builder| builder.config(|config| config.limits.text_body_bytes = 10_000))
            .await;
    for (path, mut body) in [(CHAT, hello()), (RESPONSES, hello_response())] {
        text.post(path, body.clone()).await.expect(200);
        body["user"] = json!("x".repeat(10_000));
        let refused = text.post(path, body.clone()).await.expect(400);
        assert_eq!(refused["detail"]["code"], "body_too_large");
        assert_eq!(refused["detail"]["context"]["field"], "body");
        // One that does not say how long it is.
        let pieces = body.to_string().into_bytes();
        let pieces = pieces
            .chunks(1_000)
            .map(|piece| Ok::<_, std::io::Error>(piece.to_vec()));
        let body =
            reqwest::Body::wrap_stream(futures_util::stream::iter(pieces.collect::<Vec<_>>()));
        let request = text.app.request(Method::POST, path).bearer_auth(&text.key);
        let request = request
            .header("content-type", "application/json")
            .body(body);
        assert_eq!(request.send().await.unwrap().status(), 400);
    }
}

#[tokio::test]
async fn an_answer_without_a_limit_makes_do_with_what_the_quota_has_left() {
    for (model, api, field) in [
        ("scripted-chat", Api::Chat, "max_completion_tokens"),
        ("scripted-responses", Api::Responses, "max_output_tokens"),
    ] {
        let text = Text::start().await;
        let body = json!({"model": model, "input": "Hello"});
        let last = || text.asked(api).pop().unwrap().body;
        // Far less than the 4,096 that are reserved by default.
        let (key, id) = text.quota(json!({"limits": {"tokens": 400}})).await;
        text.app
            .post(&key, RESPONSES, body.clone())
            .await
            .expect(200);
        let first = last()[field].as_u64().unwrap();
        assert!((200..400).contains(&first), "{first}");
        // What was used is gone, and what is left is the next one's.
        let used = text.usage(&id, 1).await["total"]["tokens"]
            .as_u64()
            .unwrap();
        text.app
            .post(&key, RESPONSES, body.clone())
            .await
            .expect(200);
        assert_eq!(last()[field], first - used);
        // The client's own limit is not changed.
        let mut own = body.clone();
        own["max_output_tokens"] = json!(5_000);
        let refused = text.app.post(&key, RESPONSES, own).await;
        assert_eq!(refused.expect(429)["detail"]["code"], "quota_exhausted");

        // Money is looked at in the same way: 0.002 USD are 200 tokens of output, without the input.
        let (key, _) = text.quota(json!({"limits": {"dollars": "0.002"}})).await;
        text.app
            .post(&key, RESPONSES, body.clone())
            .await
            .expect(200);
        let paid = last()[field].as_u64().unwrap();
        assert!((50..200).contains(&paid), "{paid}");

        let (spent, _) = text.quota(json!({"limits": {"tokens": 1}})).await;
        let asked = text.upstream.all_requests();
        let refused = text.app.post(&spent, RESPONSES, body).await;
        assert_eq!(refused.expect(429)["error"]["type"], "rate_limit_error");
        assert_eq!(text.upstream.all_requests(), asked);
    }
}

#[tokio::test]
async fn no_more_than_the_limit_admits_at_once() {
    let text = Text::start().await;
    let one = json!({
        "model": "scripted-chat", "max_tokens": 100,
        "messages": [{"role": "user", "content": "x"}],
    });
    // The bound of one request, as the key shows it.
    let (key, id) = text.quota(json!({"limits": {"tokens": 1_000_000}})).await;
    let answer = text.app.post(&key, CHAT, one.clone()).await;
    answer.expect(200);
    let remaining: u64 = answer
        .header("x-ratelimit-remaining-tokens")
        .parse()
        .unwrap();
    let bound = 1_000_000 - remaining;
    text.usage(&id, 1).await;

    let (key, _) = text.quota(json!({"limits": {"tokens": bound * 10}})).await;
    // Those that are admitted are answered when all others were refused.
    let held = text.upstream.hold(Api::Chat);
    let others = AtomicUsize::new(0);
    let all = (0..64).map(async |_| {
        let answer = text.app.post(&key, CHAT, one.clone()).await;
        others.fetch_add(usize::from(answer.status == 429), Ordering::Relaxed);
        answer
    });
    let refuse = async {
        eventually("the others are refused", async || {
            others.load(Ordering::Relaxed) >= 54
        })
        .await;
        drop(held);
    };
    let (answers, ()) = tokio::join!(futures_util::future::join_all(all), refuse);
    let admitted = answers.iter().filter(|answer| answer.status == 200).count();
    let refused = answers.iter().filter(|answer| answer.status == 429).count();
    assert_eq!((admitted, refused), (10, 54));
    assert!(
        answers
            .iter()
            .all(|answer| answer.status == 200 || answer.header("retry-after") == "1")
    );
}
