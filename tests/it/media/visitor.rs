//! What becomes known of the visitor, and is told to the page.

use colloquy_protocol::{AgentState, ClientMessage};
use harness::{eventually, upstream::Fault};

use super::*;

/// The model that answers questions about the visitor; replies have another.
const MODEL: &str = "scripted-responses";

fn listening() -> ClientOptions {
    ClientOptions {
        user_info: true,
        ..ClientOptions::default()
    }
}

async fn stage(model: &str) -> Stage {
    Stage::with(|config| config.analyses.model = Some(model.to_owned())).await
}

/// Types a turn, and waits until it was answered.
async fn typed(client: &NativeClient, text: &str) {
    let typed = now();
    let text = text.to_owned();
    client.say(&ClientMessage::Text { text }).await.unwrap();
    for state in [AgentState::Speaking, AgentState::Listening] {
        let expected = ServerMessage::AgentState { state };
        let reached = client.message(typed, soon(), |message| {
            (*message == expected).then_some(())
        });
        reached.await.unwrap();
    }
}

/// What became known so far.
fn known(client: &NativeClient) -> Vec<Value> {
    told(client, |message| match message {
        ServerMessage::UserInfo { info } => Some(serde_json::from_str(info).unwrap()),
        _ => None,
    })
}

async fn is_told(client: &NativeClient, expected: &[Value]) {
    let deadline = now() + soon();
    while known(client) != expected {
        assert!(now() < deadline, "{:?}", known(client));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_visitor_states_is_told_once() {
    let stage = stage("builtin/extractive").await;
    let made = stage.call().await;
    let client = NativeClient::connect_with(&made.url, listening()).await;
    let client = client.unwrap();
    typed(&client, "My name is Ada, and I live in Berlin.").await;
    let first = json!({"name": "Ada", "city": "Berlin"});
    is_told(&client, std::slice::from_ref(&first)).await;
    typed(&client, "When do you open?").await;
    typed(&client, "I have moved to Oslo. I like tea.").await;
    let second = json!({"city": "Oslo", "interests": "tea"});
    is_told(&client, &[first.clone(), second.clone()]).await;
    typed(&client, "I love jazz.").await;
    is_told(&client, &[first, second, json!({"interests": "tea, jazz"})]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_visitor_says_aloud_is_told() {
    let stage = stage("builtin/extractive").await;
    let heard = Script::text("my name is ada and i live in new york");
    stage.upstream.set_default(Api::Transcription, heard);
    let made = stage.call().await;
    let client = NativeClient::connect_with(&made.url, listening()).await;
    let client = client.unwrap();
    client.speak(&Speech::go_forward().unwrap()).await.unwrap();
    is_told(&client, &[json!({"name": "ada", "city": "new york"})]).await;
}

/// A model that answers one after the other is not kept busy with the visitor while the visitor waits for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_about_the_visitor_gives_way_to_the_next_turn() {
    let stage = stage(MODEL).await;
    let never = Script::fault(Fault::Stall { after: 0 });
    stage.upstream.script(Api::Responses, never);
    let answer = json!({
        "profile": {"name": "Ada", "age": null, "city": null, "occupation": null, "interests": null},
        "contradicted": [], "feedback": {},
    });
    let answer = Script::text(answer.to_string());
    stage.upstream.script(Api::Responses, answer);
    let made = stage.call().await;
    let client = NativeClient::connect_with(&made.url, listening()).await;
    let client = client.unwrap();
    typed(&client, "My name is Ada.").await;
    eventually("the first question", async || {
        stage.upstream.requests(Api::Responses).len() == 1
    })
    .await;
    typed(&client, "When do you open?").await;
    is_told(&client, &[json!({"name": "Ada"})]).await;
    assert_eq!(stage.upstream.requests(Api::Responses).len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_character_says_what_it_wants_to_know() {
    let stage = stage(MODEL).await;
    let schema = json!({"profile_schema": {
        "pet": {"type": "string", "description": "The animal that lives with them"}, "job": {"type": "string"},
    }});
    stage
        .app
        .character(&stage.partner, "vet", "You are a vet.", schema)
        .await;
    let answer = |pet: Value, job: Value, contradicted: Value| {
        let answer = json!({
            "profile": {"pet": pet, "job": job}, "contradicted": contradicted, "feedback": {},
        });
        Script::text(answer.to_string())
    };
    let call = stage.call_with("repo:acme/vet", 60).await;
    let client = NativeClient::connect_with(&call.url, listening()).await;
    let client = client.unwrap();
    stage.upstream.script(
        Api::Responses,
        answer(json!("a cat"), json!("clerk"), json!([])),
    );
    typed(&client, "I am a clerk, and my cat is ill.").await;
    let first = json!({"pet": "a cat", "job": "clerk"});
    is_told(&client, std::slice::from_ref(&first)).await;
    let asked = stage.upstream.requests(Api::Responses).pop().unwrap().body;
    assert_eq!(asked["model"], MODEL);
    assert_eq!(asked["text"]["format"]["type"], "json_schema", "{asked}");
    let content = asked["input"].to_string();
    for part in ["The animal that lives with them", "my cat is ill", REPLY] {
        assert!(content.contains(part), "{part}: {content}");
    }

    // A model that fails costs the visitor nothing, and is asked again after the next turn.
    stage
        .upstream
        .script(Api::Responses, Script::fault(Fault::Status(400)));
    stage
        .upstream
        .script(Api::Responses, Script::fault(Fault::Status(400)));
    typed(&client, "She does not eat.").await;
    eventually("it was asked and asked again", async || {
        stage.upstream.requests(Api::Responses).len() == 3
    })
    .await;
    // What does not fit is asked for again.
    stage
        .upstream
        .script(Api::Responses, Script::text("I cannot say."));
    stage.upstream.script(
        Api::Responses,
        answer(json!("a cat"), Value::Null, json!(["job"])),
    );
    typed(&client, "And I have lost my job.").await;
    is_told(&client, &[first, json!({"job": null})]).await;
    let asked = stage.upstream.requests(Api::Responses);
    assert_eq!(asked.len(), 5);
    let last = asked.last().unwrap().body["input"].to_string();
    assert!(
        last.contains("a cat") && last.contains("lost my job"),
        "{last}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_asked_where_the_page_does_not_listen() {
    let stage = stage(MODEL).await;
    let (_, client) = stage.join().await;
    typed(&client, "My name is Ada.").await;
    client.drop_socket().await.unwrap();
    client.resume().await.unwrap();
    typed(&client, "I live in Berlin.").await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(known(&client).is_empty());
    assert!(stage.upstream.requests(Api::Responses).is_empty());
}
