//! Replies of drafts: what is streamed, what a model is asked, who may ask, and what is noted.

use colloquy::{Config, providers};
use harness::{
    app::{ADMIN_KEY, send},
    process::Server,
    upstream::{End, Fault, INPUT_TOKENS, Script},
};

use super::*;

const REPLIES: &str = "/api/character_drafts/acme/replies";
const MODELS: &str = "/api/character_drafts/acme/models";

fn draft() -> Value {
    json!({
        "personality": "You are {{ robot_name }}, and you talk with {{ guest }}.",
        "parameters": {
            "robot_name": "Max", "greetings": ["Welcome to the zoo!"], "rag_enabled": true,
            "documents": [{"title": "Opening hours", "text": "The zoo opens   at nine.\n\nIt closes at six."}],
        },
    })
}

fn question(model: &str) -> Value {
    json!({
        "character": draft(),
        "character_params": {"guest": "Ann"},
        "messages": [
            {"role": "assistant", "content": "Welcome to the zoo!"},
            {"role": "user", "content": "When do you open?"},
        ],
        "model": model,
    })
}

/// The usage of the partner, by key and model, once this many replies were settled.
async fn settled(text: &Text, requests: u64) -> Value {
    let is_settled = |report: &Value| report["total"]["requests"] == requests;
    until("the usage is settled", is_settled, async || {
        let path = "/api/usage/acme?group_by=key,model";
        text.app.get(&text.partner, path).await.expect(200)
    })
    .await
}

/// The events of a reply.
async fn reply(text: &Text, body: Value) -> Vec<Value> {
    let request = text.app.request(Method::POST, REPLIES);
    let request = request.header("x-api-key", &text.partner).json(&body);
    let response = request.send().await.unwrap();
    assert_eq!(response.status(), 200);
    let events = events(&response.text().await.unwrap());
    events
        .into_iter()
        .map(|event| {
            assert_eq!(event.json()["type"], event.name.as_str());
            event.json()
        })
        .collect()
}

fn said(events: &[Value]) -> String {
    events.iter().fold(String::new(), |said, event| {
        match event["type"].as_str().unwrap() {
            "reply.delta" => said + event["text"].as_str().unwrap(),
            "reply.retracted" => String::new(),
            _ => said,
        }
    })
}

#[tokio::test]
async fn a_draft_replies_and_tells_what_the_reply_took() {
    let text = Text::start().await;
    for (model, api) in [
        ("scripted-chat", Api::Chat),
        ("scripted-responses", Api::Responses),
    ] {
        text.upstream.script(api, Script::text("At nine."));
        let events = reply(&text, question(model)).await;
        let prepared = &events[0];
        assert_eq!(prepared["type"], "reply.prepared");
        assert_eq!(prepared["unknown_base"], Value::Null);
        let retrieval = &prepared["retrieval"];
        assert_eq!(retrieval["queries"], json!(["When do you open?"]));
        assert_eq!(retrieval["results"][0]["filename"], "Opening hours");
        let preview = "The zoo opens at nine. It closes at six.";
        assert_eq!(retrieval["results"][0]["text"], preview);
        assert_eq!(said(&events), "At nine.");
        let done = events.last().unwrap();
        assert_eq!(done["type"], "reply.done");
        assert_eq!(done["model"], model);
        let usage = json!({
            "input_tokens": INPUT_TOKENS, "cached_input_tokens": 4, "output_tokens": 2, "reasoning_tokens": 0, "is_estimated": false,
        });
        assert_eq!(done["usage"], usage);
        assert_eq!(done["cost_usd"], "0.000045");
        let times = &done["times"];
        let ms = |name: &str| times[name].as_u64().unwrap();
        assert!(ms("first_text_ms") <= ms("model_ms") && ms("model_ms") <= ms("total_ms"));
        assert!(ms("render_ms") + ms("retrieval_ms") <= ms("total_ms"));
    }
    let asked = &text.asked(Api::Chat)[0].body;
    let messages = asked["messages"].as_array().unwrap();
    let system = messages[0]["content"].as_str().unwrap();
    for part in [
        "You are Max, and you talk with Ann.",
        "You are on a voice call",
        "opens   at nine",
        "saying: Welcome to the zoo!",
    ] {
        assert!(system.contains(part), "{part} is not in {system}");
    }
    assert_eq!(messages.last().unwrap()["content"], "When do you open?");

    let usage = settled(&text, 2).await;
    let rows = usage["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2, "{usage}");
    for (row, model) in rows.iter().zip(["scripted-chat", "scripted-responses"]) {
        assert_eq!(row["model"], model);
        assert_eq!(row["quota_id"], "drafts:acme");
        assert_eq!(row["quota_name"], "Replies of drafts");
        assert_eq!(row["requests"], 1);
        assert_eq!(row["input_tokens"], INPUT_TOKENS);
        assert_eq!(row["cached_tokens"], 4);
        assert_eq!(row["output_tokens"], 2);
        assert_eq!(row["dollars"], "0.000045");
    }
    // The budget is no quota that the partner sees.
    let quotas = text.app.get(&text.partner, "/api/quotas/acme").await;
    assert!(!quotas.expect(200).to_string().contains("drafts:"));

    let mut written = question("scripted-chat");
    written["style"] = json!("written");
    reply(&text, written).await;
    let asked = text.asked(Api::Chat).pop().unwrap().body;
    assert!(!asked.to_string().contains("voice call"));
}

#[tokio::test]
async fn the_model_of_calls_replies_where_none_is_named() {
    let text = Text::with(|_, builder| {
        builder.providers(providers::from_config(&Config::default()).unwrap())
    })
    .await;
    let mut body = question("");
    body.as_object_mut().unwrap().remove("model");
    let events = reply(&text, body).await;
    assert!(said(&events).contains("nine"), "{events:?}");
    let done = events.last().unwrap();
    assert_eq!(done["model"], "builtin/extractive");
    assert_eq!(done["cost_usd"], Value::Null, "nobody has set a price");
    for tokens in ["input_tokens", "output_tokens"] {
        assert!(done["usage"][tokens].as_u64().unwrap() > 0, "{done}");
    }
}

#[tokio::test]
async fn a_thought_is_taken_back_and_a_failure_ends_the_stream() {
    let text = Text::start().await;
    let thinking = Script::text("Well, nine. </think> At nine.");
    text.upstream.script(Api::Chat, thinking);
    let events = reply(&text, question("scripted-chat")).await;
    assert!(
        events
            .iter()
            .any(|event| event["type"] == "reply.retracted")
    );
    assert_eq!(said(&events).trim(), "At nine.");

    for (fault, code) in [
        (Fault::Status(500), "upstream_error"),
        (Fault::Cut { after: 2 }, "upstream_cut"),
    ] {
        let script = Script {
            fault: Some(fault),
            ..Script::default()
        };
        text.upstream.script(Api::Chat, script);
        let events = reply(&text, question("scripted-chat")).await;
        let last = events.last().unwrap();
        assert_eq!(last["type"], "reply.failed", "{events:?}");
        assert_eq!(last["code"], code);
    }
}

#[tokio::test]
async fn whoever_goes_away_cancels_the_reply_and_its_tokens_are_counted() {
    let text = Text::patient().await;
    let words = Script {
        text: "word ".repeat(40),
        ..Script::fault(Fault::Stall { after: 10 })
    };
    text.upstream.script(Api::Chat, words);
    let request = text.app.request(Method::POST, REPLIES);
    let request = request.header("x-api-key", &text.partner);
    let response = request.json(&question("scripted-chat")).send().await;
    read_until(response.unwrap(), |read| {
        read.matches("reply.delta").count() >= 2
    })
    .await;
    let soon = patience(Duration::from_secs(5));
    let (end, _) = text.upstream.ended(Api::Chat, 0, soon).await.unwrap();
    assert_eq!(end, End::Disconnected);
    let counted = |metrics: &String| {
        metrics.lines().any(|line| {
            line.starts_with("colloquy_tokens_total{")
                && [r#"model="scripted-chat""#, r#"kind="output""#]
                    .iter()
                    .all(|label| line.contains(label))
        })
    };
    until("the tokens are counted", counted, async || {
        send(text.app.request(Method::GET, "/metrics")).await.text
    })
    .await;
    let usage = settled(&text, 1).await;
    assert!(
        usage["total"]["output_tokens"].as_u64().unwrap() >= 2,
        "{usage}"
    );
}

// Nobody knows what the model made of it.
#[tokio::test]
async fn a_reply_that_dies_with_its_process_counts_at_its_bound() {
    let database = TestDatabase::sqlite();
    let upstream = Upstream::start().await;
    let start = async || Server::start(&database, |config| upstream.offer(config)).await;
    let server = start().await;
    let acme = server.partner("acme").await;
    let _held = upstream.hold(Api::Chat);
    let request = server.request(&acme.key, Method::POST, REPLIES);
    let request = request.json(&question("scripted-chat"));
    let reply = request.send().await.unwrap();
    assert_eq!(reply.status(), 200);
    let is_asked = |asked: &usize| *asked == 1;
    let requests = async || upstream.requests(Api::Chat).len();
    until("the model is asked", is_asked, requests).await;
    let usage = async |server: &Server| server.get(&acme.key, "/api/usage/acme").await;
    assert_eq!(usage(&server).await["total"]["requests"], 0);
    server.kill().await;
    drop(reply);
    let server = start().await;
    let total = usage(&server).await["total"].clone();
    assert_eq!(total["requests"], 1);
    assert!(total["tokens"].as_u64().unwrap() > INPUT_TOKENS, "{total}");
    assert_ne!(total["dollars"], "0", "{total}");
}

#[tokio::test]
async fn drafts_that_cannot_reply_are_refused_before_the_stream() {
    let text = Text::start().await;
    let other = text.app.partner("other").await.key;
    let post = async |key: &str, body: Value| text.app.post(key, REPLIES, body).await;
    let with = |name: &str, value: Value| {
        let mut body = question("scripted-chat");
        body[name] = value;
        body
    };
    let turn = |role: &str, content: &str| json!({"role": role, "content": content});
    for (body, field) in [
        (with("messages", json!([])), "messages"),
        (with("messages", json!([turn("user", " ")])), "messages"),
        (
            with("messages", json!([turn("assistant", "Hi")])),
            "messages",
        ),
        (
            with("messages", json!([turn("system", "Hi")])),
            "messages[0].role",
        ),
        (
            with("messages", json!(vec![turn("user", "Hi"); 201])),
            "messages",
        ),
        (with("model", json!("nobody")), "model"),
        (with("style", json!("sung")), "style"),
        (
            with("character_params", json!({})),
            "character_params.guest",
        ),
        (
            with("character_params", json!({"context": 1})),
            "character_params.context",
        ),
        (with("character", json!("repo:other/guide")), "character"),
        (with("character", json!("repo:acme/nobody")), "character"),
        (
            with("character", json!({"personality": "{{ x"})),
            "character.personality",
        ),
        (with("tools", json!([])), "tools"),
    ] {
        let refused = post(&text.partner, body).await.expect(400);
        assert_eq!(refused["field"], field, "{refused}");
    }
    assert!(text.asked(Api::Chat).is_empty(), "no model was asked");

    post(&other, question("scripted-chat")).await.expect(403);
    post(&text.key, question("scripted-chat")).await.expect(401);
    for scopes in [json!(["calls"]), json!(["characters"])] {
        let body = json!({"scopes": scopes});
        let made = text.app.post(&text.partner, "/api/keys/acme", body).await;
        let key = made.expect(201)["api_key"].as_str().unwrap().to_owned();
        post(&key, question("scripted-chat")).await.expect(403);
    }
    let saved = json!({"name": "guide", "personality": "You are {{ guest }}'s guide."});
    let path = "/api/characters/acme";
    text.app.post(&text.partner, path, saved).await.expect(201);
    reply(&text, with("character", json!("repo:acme/guide"))).await;
    // Models that the partner may not use.
    let settings = json!({"settings": {"allowed_models": ["other"]}});
    let partner = text.app.put(ADMIN_KEY, "/api/partners/acme", settings);
    partner.await.expect(200);
    let refused = post(&text.partner, question("scripted-chat")).await;
    assert_eq!(refused.expect(403)["code"], "model_not_allowed");
}

#[tokio::test]
async fn the_models_of_drafts_are_those_that_may_reply() {
    let text = Text::start().await;
    let other = text.app.partner("other").await.key;
    let listed = async |key: &str| text.app.get(key, MODELS).await.expect(200)["models"].clone();
    let all = listed(&text.partner).await;
    let names = |models: &Value| -> Vec<String> {
        let models = models.as_array().unwrap().iter();
        models
            .map(|it| it["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert!(names(&all).is_sorted());
    // Each of them replies.
    for model in ["scripted-chat", "scripted-responses"] {
        assert!(names(&all).iter().any(|it| it == model), "{all}");
        reply(&text, question(model)).await;
    }

    text.app.get(&other, MODELS).await.expect(403);
    for scopes in [json!(["calls"]), json!(["characters"])] {
        let body = json!({"scopes": scopes});
        let made = text.app.post(&text.partner, "/api/keys/acme", body).await;
        let key = made.expect(201)["api_key"].as_str().unwrap().to_owned();
        text.app.get(&key, MODELS).await.expect(403);
    }
    let settings = json!({"settings": {"allowed_models": ["scripted-responses"]}});
    let partner = text.app.put(ADMIN_KEY, "/api/partners/acme", settings);
    partner.await.expect(200);
    assert_eq!(names(&listed(&text.partner).await), ["scripted-responses"]);

    // The model of calls replies without a name, also where others alone are allowed.
    let text = Text::with(|_, builder| {
        builder.providers(providers::from_config(&Config::default()).unwrap())
    })
    .await;
    let settings = json!({"settings": {"allowed_models": ["other"]}});
    let partner = text.app.put(ADMIN_KEY, "/api/partners/acme", settings);
    partner.await.expect(200);
    let found = text.app.get(&text.partner, MODELS).await.expect(200);
    let default = json!({"name": "builtin/extractive", "is_default": true, "is_priced": false});
    assert_eq!(found["models"], json!([default]));
}

/// Asks a draft of a partner for a reply.
async fn asked(text: &Text, partner: &str, key: &str) -> Response {
    let path = format!("/api/character_drafts/{partner}/replies");
    let request = text.app.request(Method::POST, &path);
    let request = request.header("x-api-key", key);
    let response = request.json(&question("scripted-chat")).send().await;
    response.unwrap()
}

/// The replies that a partner gets before it is refused one.
async fn replies_of(text: &Text, partner: &str, key: &str) -> Vec<Response> {
    let mut replies = Vec::new();
    loop {
        let response = asked(text, partner, key).await;
        if response.status() != 200 {
            assert_eq!(response.status(), 429);
            assert_eq!(response.headers()["retry-after"], "5");
            let refused: Value = response.json().await.unwrap();
            assert_eq!(refused["code"], "rate_limited", "{refused}");
            return replies;
        }
        replies.push(response);
    }
}

#[tokio::test]
async fn a_partner_has_eight_replies_of_drafts_at_a_time() {
    let text = Text::patient().await;
    let held = text.upstream.hold(Api::Chat);
    let mut replies = replies_of(&text, "acme", &text.partner).await;
    assert_eq!(replies.len(), 8);
    let other = text.app.partner("other").await.key;
    assert_eq!(asked(&text, "other", &other).await.status(), 200);
    // Whoever goes away makes room for another reply.
    drop(replies.pop());
    let is_taken = |status: &u16| *status == 200;
    until("there is room again", is_taken, async || {
        let response = asked(&text, "acme", &text.partner).await;
        let status = response.status().as_u16();
        if status == 200 {
            replies.push(response);
        }
        status
    })
    .await;
    assert_eq!(asked(&text, "acme", &text.partner).await.status(), 429);
    drop(held);
    for reply in replies {
        let told = reply.text().await.unwrap();
        assert!(told.contains("reply.done"), "{told}");
    }
    assert_eq!(asked(&text, "acme", &text.partner).await.status(), 200);
}

#[tokio::test]
async fn a_node_makes_64_replies_of_drafts_at_a_time_and_keeps_some_for_others() {
    let text = Text::patient().await;
    let _held = text.upstream.hold(Api::Chat);
    let mut counts = Vec::new();
    let mut replies = Vec::new();
    // A partner has no more than are left for all others.
    for number in 0..12 {
        let partner = format!("p{number}");
        let key = text.app.partner(&partner).await.key;
        let of_partner = replies_of(&text, &partner, &key).await;
        counts.push(of_partner.len());
        replies.extend(of_partner);
    }
    assert_eq!(counts, [8, 8, 8, 8, 8, 8, 8, 4, 2, 1, 1, 0]);
}
