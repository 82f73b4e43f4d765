//! Messages of a connected call in both directions.

use super::*;

#[test]
fn a_passing_error_is_told_and_the_call_goes_on() {
    let mut harness = Harness::talking();
    harness.message(json!({"type": "error", "code": "SERVER", "message": "slow", "fatal": false}));
    assert_eq!(harness.take(), ["non-fatal SERVER"]);
    assert!(!harness.call.is_ended());
}

#[test]
fn a_newer_server_is_tolerated_and_something_else_is_not() {
    let mut harness = Harness::talking();
    harness.frame(r#"{"type":"weather"}"#);
    harness.frame(r#"{"type":"agent_state","state":"dreaming"}"#);
    assert!(harness.take().is_empty());
    harness.frame("<html>");
    assert_eq!(harness.take()[1], "error PROTOCOL");
}

#[test]
fn news_of_the_conversation_reach_the_application_with_roles() {
    let mut harness = Harness::talking();
    harness.message(
        json!({"type": "transcript", "id": "1", "originator": "bot", "text": "Hello.",
        "final": true, "at_ms": 7}),
    );
    harness.message(
        json!({"type": "transcript", "id": "2", "originator": "user", "text": "Hi",
        "final": false, "at_ms": 9}),
    );
    harness.message(json!({"type": "agent_state", "state": "thinking"}));
    harness.message(json!({"type": "user_info", "info": "likes tea"}));
    harness.message(json!({"type": "rag_info", "total_tokens": 12,
        "documents": [{"title": "Tea", "fusion_score": 0.5, "token_count": 12}]}));
    let log = harness.take();
    assert!(log[0].contains("role: \"Guide\""), "{}", log[0]);
    assert!(log[1].contains("role: \"You\""), "{}", log[1]);
    assert_eq!(
        log[2],
        format!("{:?}", Event::AgentStateChange(AgentState::Thinking))
    );
    assert!(log[3].contains("likes tea"));
    assert!(log[4].contains("count: 1"), "{}", log[4]);
}

#[test]
fn an_event_serializes_as_the_argument_of_its_callback() {
    let argument = |event: Event| serde_json::to_value(event).unwrap();
    let call_id = Some("/v2/calls/1".to_owned());
    assert_eq!(
        argument(Event::CallStart { call_id }),
        json!({"callId": "/v2/calls/1"})
    );
    assert_eq!(
        argument(Event::CallStart { call_id: None }),
        json!({"callId": null})
    );
    let status = Event::StatusUpdate(SessionState::Reconnecting);
    assert_eq!(argument(status), "reconnecting");
    let state = Event::AgentStateChange(AgentState::Thinking);
    assert_eq!(argument(state), "thinking");
    assert_eq!(argument(Event::UserInfo("tea".into())), "tea");
    assert_eq!(argument(Event::AudioBlockedChange(true)), true);
    assert_eq!(
        argument(Event::HangUp(HangUpReason::TimeLimit)),
        "time_limit"
    );
    let document = RagDocument {
        title: "Tea".into(),
        fusion_score: 0.5,
        token_count: 12,
    };
    assert_eq!(
        argument(Event::RagInfo {
            documents: vec![document],
            count: 1,
            total_tokens: 12
        }),
        json!({"documents": [{"title": "Tea", "fusion_score": 0.5, "token_count": 12}],
            "count": 1, "total_tokens": 12})
    );
    let line = TranscriptLine {
        id: "1".into(),
        originator: Originator::Bot,
        role: "Guide".into(),
        text: "Hello.".into(),
        is_final: true,
        at_ms: 7,
    };
    assert_eq!(
        argument(Event::Transcript(line)),
        json!({"id": "1", "originator": "bot", "role": "Guide", "text": "Hello.",
            "final": true, "atMs": 7})
    );
}

#[test]
fn mute_is_told_once_and_again_after_a_reconnect() {
    let mut harness = Harness::talking();
    harness.input(Input::Mute(true));
    harness.input(Input::Mute(true));
    assert_eq!(harness.take(), ["mute true", "send mute"]);
    harness.input(Input::SocketClosed { code: 1006 });
    harness.input(Input::Mute(false));
    harness.input(Input::Mute(true));
    harness.take();
    harness.pass(250);
    harness.input(Input::SocketOpened);
    harness.call.handle(harness.now_ms, frame_input(WELCOME));
    let sent = std::iter::from_fn(|| harness.call.poll())
        .filter(|o| *o == Output::Command(Command::Send(frames::mute(true))));
    assert_eq!(sent.count(), 1);

    let options = Options {
        muted: true,
        ..Options::default()
    };
    let signed_url = "wss://h/s".to_owned();
    let mut harness = Harness::start(Start::Server { signed_url }, options);
    harness.up();
    assert!(harness.take().contains(&"send mute".to_owned()));
}

#[test]
fn typed_turns_are_sent_when_they_can_be() {
    let mut harness = Harness::talking();
    harness.input(Input::Text("hello".into()));
    harness.input(Input::Text("  ".into()));
    // Characters count, not bytes, and not the blanks around them.
    harness.input(Input::Text(format!(" {} ", "é".repeat(MAX_TEXT_CHARS))));
    harness.input(Input::Text("x".repeat(MAX_TEXT_CHARS + 1)));
    assert_eq!(harness.take(), ["send text", "send text"]);
    assert!(!Harness::server().call.accepts_text("hello"));
}
