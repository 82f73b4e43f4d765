//! What a visitor hears and reads.

use colloquy::store::Executor as _;
use colloquy_protocol::{AgentState, ByeReason, ClientMessage, MAX_TEXT_CHARS, SessionState};
use harness::{
    app::send,
    client::{Between, ClientOptions},
    eventually,
};
use reqwest::Method;

use super::*;

/// A pause inside a reply is shorter.
const OVER: Duration = Duration::from_millis(600);

fn agent_states(client: &NativeClient) -> Vec<AgentState> {
    told(client, |message| match message {
        ServerMessage::AgentState { state } => Some(*state),
        _ => None,
    })
}

fn user_lines(client: &NativeClient) -> usize {
    client
        .log()
        .lines()
        .iter()
        .filter(|(who, ..)| *who == Originator::User)
        .count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_visitor_is_heard_answered_and_recorded() {
    converse_and_hang_up(Stack::Rtc).await;
}

pub(super) async fn converse_and_hang_up(stack: Stack) {
    let stage = Stage::new().await;
    let (call, client) = stage.join_on(stack).await;
    stage.reaches(&call, "ongoing").await;
    converse(&client).await;
    client
        .line(Originator::Bot, soon(), |text| text == REPLY)
        .await
        .unwrap();
    client.silence(OVER, soon()).await.unwrap();
    let states = agent_states(&client);
    assert!(
        states.ends_with(&[
            AgentState::Thinking,
            AgentState::Speaking,
            AgentState::Listening
        ]),
        "{states:?}"
    );
    let bye = client.hang_up().await.unwrap();
    assert_eq!(
        bye,
        ServerMessage::Bye {
            reason: ByeReason::HangUp,
            code: None
        }
    );
    let status = stage.reaches(&call, "completed").await;
    assert!(
        status["duration"]["call_seconds"].as_u64().unwrap() >= 4,
        "{status}"
    );
    let lines =
        [("user", HEARD), ("bot", REPLY)].map(|(who, text)| (who.to_owned(), text.to_owned()));
    assert_eq!(stage.transcript(&call).await, lines);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connected_client_is_told_that_the_call_goes_on() {
    let stage = Stage::new().await;
    let (call, client) = stage.join().await;
    let ongoing = ServerMessage::Status {
        state: SessionState::Ongoing,
    };
    client
        .message(now() - soon(), soon(), |message| {
            (*message == ongoing).then_some(())
        })
        .await
        .unwrap();
    let log = client.log();
    let Some((
        _,
        ServerMessage::Welcome {
            call_id,
            time_limit_seconds,
            ..
        },
    )) = log.messages.first()
    else {
        panic!("{:?}", log.messages);
    };
    assert_eq!((call_id, *time_limit_seconds), (&call.id, 60));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_character_greets_first() {
    let stage = Stage::new().await;
    let greeting = "Welcome to the library.";
    stage
        .app
        .character(
            &stage.partner,
            "host",
            "You are a host.",
            json!({"greetings": [greeting]}),
        )
        .await;
    let call = stage.call_with("repo:acme/host", 60).await;
    let before = now();
    let client = NativeClient::connect(&call.url).await.unwrap();
    assert!(client.reply_audio(before, soon()).await.is_some());
    client
        .line(Originator::Bot, soon(), |text| text == greeting)
        .await
        .unwrap();
    converse(&client).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_visitor_who_speaks_over_a_reply_cuts_it() {
    let stage = Stage::new().await;
    let (call, client) = stage.join().await;
    // It is ready before the reply, which lasts for 3.4 seconds.
    let speech = Speech::go_forward().unwrap();
    converse(&client).await;
    tokio::time::sleep(Duration::from_millis(500)).await;
    let spoken = client.speak(&speech).await.unwrap();
    let last = client.log().last_audible(spoken.ended).unwrap();
    // The visitor speaks for 1.7 seconds, and the reply goes on for a quarter of one.
    let after = last.at.saturating_duration_since(spoken.began);
    let took = spoken.ended.duration_since(spoken.began);
    assert!(
        3 * after < took,
        "the reply went on for {after:?} of {took:?}"
    );
    let cut = client
        .line(Originator::Bot, soon(), |_| true)
        .await
        .unwrap();
    assert!(
        REPLY.starts_with(&cut) && cut.len() < REPLY.len(),
        "{cut:?}"
    );
    // What was said over the reply is a turn like any other.
    assert!(client.reply_audio(spoken.ended, soon()).await.is_some());
    client
        .line(Originator::Bot, soon(), |text| text == REPLY)
        .await
        .unwrap();
    client.silence(OVER, soon()).await.unwrap();
    client.hang_up().await.unwrap();
    stage.reaches(&call, "completed").await;
    let lines = [
        ("user", HEARD),
        ("bot", &cut),
        ("user", HEARD),
        ("bot", REPLY),
    ];
    assert_eq!(
        stage.transcript(&call).await,
        lines.map(|(who, text)| (who.to_owned(), text.to_owned()))
    );
    // The model is told what was heard of its reply, not what it meant to say.
    let asked = stage.upstream.requests(Api::Chat).pop().unwrap().body;
    assert!(
        asked["messages"]
            .as_array()
            .unwrap()
            .iter()
            .any(|message| message["content"] == cut.as_str())
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_typed_turn_is_answered_aloud() {
    let stage = Stage::new().await;
    let (_, client) = stage.join().await;
    // One that is too long is refused, and the call goes on.
    let too_long = now();
    client
        .say(&ClientMessage::Text {
            text: "é".repeat(MAX_TEXT_CHARS + 1),
        })
        .await
        .unwrap();
    let refused = client.message(too_long, soon(), |message| match message {
        ServerMessage::Error { code, fatal, .. } => Some((code.clone(), *fatal)),
        _ => None,
    });
    assert_eq!(refused.await.unwrap(), ("TEXT_TOO_LONG".to_owned(), false));
    let typed = now();
    client
        .say(&ClientMessage::Text {
            text: "When do you open?".to_owned(),
        })
        .await
        .unwrap();
    client
        .line(Originator::User, soon(), |text| text == "When do you open?")
        .await
        .unwrap();
    assert!(client.reply_audio(typed, soon()).await.is_some());
    client
        .line(Originator::Bot, soon(), |text| text == REPLY)
        .await
        .unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_muted_visitor_is_not_heard() {
    let stage = Stage::new().await;
    let (_, client) = stage.join().await;
    client
        .say(&ClientMessage::Mute { muted: true })
        .await
        .unwrap();
    let spoken = client.speak(&Speech::go_forward().unwrap()).await.unwrap();
    assert_eq!(
        client
            .reply_audio(spoken.began, Duration::from_millis(1_500))
            .await,
        None
    );
    assert_eq!(user_lines(&client), 0);
    client
        .say(&ClientMessage::Mute { muted: false })
        .await
        .unwrap();
    converse(&client).await;
    assert_eq!(user_lines(&client), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pauses_without_packets_are_silence() {
    let stage = Stage::new().await;
    for between in [Between::Dtx, Between::Silence] {
        let options = ClientOptions {
            between,
            ..ClientOptions::default()
        };
        let client = NativeClient::connect_with(&stage.call().await.url, options)
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        converse(&client).await;
        assert_eq!(user_lines(&client), 1, "{between:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_calls_on_one_port_hear_their_own_replies() {
    let stage = Stage::new().await;
    let ((_, first), (_, second)) = (stage.join().await, stage.join().await);
    assert_eq!(
        first.server_media_address().unwrap(),
        second.server_media_address().unwrap()
    );
    converse(&first).await;
    assert_eq!(second.log().first_audible(now() - soon()), None);
    assert_eq!(user_lines(&second), 0);
    first.silence(OVER, soon()).await.unwrap();
    let quiet = now();
    converse(&second).await;
    assert_eq!(first.log().first_audible(quiet), None);
    assert_eq!(user_lines(&first), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn documents_are_told_of_when_a_reply_used_some_and_only_then() {
    let stage = Stage::new().await;
    let knowing = json!({
        "rag_enabled": true, "documents": [{"title": "Lions", "text": "The lions eat meat at noon."}],
    });
    stage
        .app
        .character(&stage.partner, "keeper", "You are a keeper.", knowing)
        .await;
    let call = stage.call_with("repo:acme/keeper", 60).await;
    let client = NativeClient::connect(&call.url).await.unwrap();
    let used = || {
        told(&client, |message| match message {
            ServerMessage::RagInfo {
                documents, count, ..
            } => Some((documents.len(), *count)),
            _ => None,
        })
    };
    for (question, expected) in [
        ("Zyzzyva?", vec![]),
        ("What do the lions eat?", vec![(1, Some(1))]),
    ] {
        let asked = now();
        let text = question.to_owned();
        client.say(&ClientMessage::Text { text }).await.unwrap();
        // What a reply used is told before it is spoken.
        let speaking = ServerMessage::AgentState {
            state: AgentState::Speaking,
        };
        let spoken = client.message(asked, soon(), |message| {
            (*message == speaking).then_some(())
        });
        spoken.await.unwrap();
        assert_eq!(used(), expected, "{question}");
    }
}

/// What a base says is told of as documents are, and a base that is gone takes no answer with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_base_is_told_of_when_a_reply_used_it() {
    let stage = Stage::new().await;
    let key = stage.partner.key.as_str();
    let form = |fields: &[(&'static str, &'static str)]| {
        let form = reqwest::multipart::Form::new();
        fields
            .iter()
            .fold(form, |form, (name, text)| form.text(*name, *text))
    };
    let post = async |path: String, fields: &[(&'static str, &'static str)]| {
        let request = stage.app.request(Method::POST, &path).bearer_auth(key);
        send(request.multipart(form(fields))).await.expect(201)
    };
    let partner = &stage.partner.id;
    post(
        format!("/api/knowledgebases/{partner}"),
        &[("name", "manual")],
    )
    .await;
    post(
        format!("/api/folders/{partner}/manual"),
        &[("name", "texts")],
    )
    .await;
    let fields = [("name", "Lions"), ("folder", "texts"), ("type", "file")];
    let made = post(format!("/api/documents/{partner}/manual/empty"), &fields).await;
    let document = format!(
        "/api/documents/{partner}/manual/{}",
        made["id"].as_str().unwrap()
    );
    let content = format!("{document}/content/rewritten");
    let request = stage.app.request(Method::PUT, &content).bearer_auth(key);
    let text = "content=The+lions+eat+meat+at+noon.";
    let request = request.header("Content-Type", "application/x-www-form-urlencoded");
    send(request.body(text)).await.expect(200);
    let path = format!("/api/embedding/{partner}/manual");
    eventually("the document is embedded", async || {
        stage.app.get(key, &path).await.expect(200)["embedded_document_count"] == 1
    })
    .await;
    let knowing = json!({"rag_enabled": true, "rag_index_required": format!("{partner}/manual")});
    let personality = "You are a keeper.";
    stage
        .app
        .character(&stage.partner, "keeper", personality, knowing)
        .await;
    let call = stage.call_with(&format!("repo:{partner}/keeper"), 60).await;
    let client = NativeClient::connect(&call.url).await.unwrap();
    let told = || {
        let log = client.log();
        let infos = log
            .messages
            .iter()
            .filter(|(_, message)| matches!(message, ServerMessage::RagInfo { .. }));
        infos.count()
    };
    let ask = async || {
        let asked = now();
        let text = "What do the lions eat?".to_owned();
        client.say(&ClientMessage::Text { text }).await.unwrap();
        let speaking = ServerMessage::AgentState {
            state: AgentState::Speaking,
        };
        let spoken = client.message(asked, soon(), |message| {
            (*message == speaking).then_some(())
        });
        spoken.await.unwrap();
        let listening = ServerMessage::AgentState {
            state: AgentState::Listening,
        };
        let over = client.message(asked, soon(), |message| {
            (*message == listening).then_some(())
        });
        over.await.unwrap();
    };
    // A reply goes without what is not found in time, which a busy machine may be late with.
    for asked in 1.. {
        ask().await;
        if told() > 0 {
            break;
        }
        assert!(asked < 5, "nobody is told of the base");
    }
    let gone = stage
        .app
        .delete(key, &format!("/api/knowledgebases/{partner}/manual"))
        .await;
    gone.expect(200);
    ask().await;
    assert_eq!(told(), 1, "the reply goes on without the base");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_transcriber_is_asked_before_the_turn_is_over() {
    let hold = Duration::from_millis(2_000);
    let transcribing = Duration::from_millis(1_800);
    let answered_after = async |starts_early: bool| {
        let stage = Stage::with(|config| {
            config.calls.turn_stop_ms = hold.as_millis() as u32;
            config.calls.interim_ms = Some(0);
            config.transcriber.starts_early = starts_early;
        })
        .await;
        let script = Script::text(HEARD).delayed(transcribing, Duration::ZERO);
        stage.upstream.set_default(Api::Transcription, script);
        stage.answered_after().await
    };
    let late = answered_after(false).await;
    let early = answered_after(true).await;
    assert!(late >= hold + transcribing, "{late:?}");
    assert!(
        early >= hold && early < hold + transcribing,
        "the hold is all that the reply waits for: {early:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_character_speaks_with_a_voice_of_the_library() {
    let stage = Stage::new().await;
    let db = stage.app.app.store.db();
    for sql in [
        "INSERT INTO voices (id, partner, name, splitting, max_samples, sample_seconds, window_sample, embeds_next, embedding_type, created_at) \
         VALUES ('1', 'acme', 'Anna', 'completed', 25, 15, 0, FALSE, 'xtts', 1)",
        "INSERT INTO voice_embeddings (voice_id, voice_type, status, run, token, begun_at, updated_at, given, synthesizer_voice) \
         VALUES ('1', 'xtts', 'completed', '1', '1', 1, 1, 1, 'made')",
    ] {
        db.execute(sql).await.unwrap();
    }
    for (voice, asked) in [("repo:acme/Anna", "made"), ("repo:acme/Bert", "alloy")] {
        let parameters = json!({"voice": voice});
        let name = asked;
        stage
            .app
            .character(&stage.partner, name, "You are a guide.", parameters)
            .await;
        let call = stage.call_with(&format!("repo:acme/{name}"), 60).await;
        let client = NativeClient::connect(&call.url).await.unwrap();
        converse(&client).await;
        client.hang_up().await.unwrap();
        stage.reaches(&call, "completed").await;
        let requests = stage.upstream.requests(Api::Speech);
        assert_eq!(requests.last().unwrap().body["voice"], asked);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn typed_turns_that_come_too_fast_are_refused() {
    let stage = Stage::new().await;
    let (_, client) = stage.join().await;
    let from = now();
    for number in 1..=21 {
        let text = format!("Question {number}?");
        client.say(&ClientMessage::Text { text }).await.unwrap();
    }
    let refused = client.message(from, soon(), |message| match message {
        ServerMessage::Error { code, fatal, .. } => Some((code.clone(), *fatal)),
        _ => None,
    });
    assert_eq!(refused.await.unwrap(), ("TEXT_TOO_MUCH".to_owned(), false));
    client
        .line(Originator::User, soon(), |text| text == "Question 20?")
        .await
        .unwrap();
}
