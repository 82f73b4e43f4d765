//! What a model is asked, and the shapes of what comes back.

use colloquy::{jobs, messaging::Complete, providers};
use harness::{eventually, upstream::Script};

use super::{audio::recorded, *};

/// A server whose chat model is an upstream.
async fn with_upstream() -> (TestApp, TestPartner, Upstream) {
    let upstream = Upstream::start().await;
    let mut config = colloquy::Config::default();
    upstream.configure(&mut config);
    let builder = TestApp::builder(&TestDatabase::sqlite()).quick_worker();
    let app = builder
        .with_decoder()
        .providers(providers::from_config(&config).unwrap())
        .start()
        .await;
    let (acme, _) = app.acme_and_other().await;
    (app, acme, upstream)
}

#[tokio::test(flavor = "multi_thread")]
async fn options_are_asked_for_by_themselves_and_a_few_at_once() {
    let (app, acme, upstream) = with_upstream().await;
    let slow = Duration::from_millis(300);
    for number in 0..12 {
        let script = Script::text(format!(" Answer {number}.\n"));
        upstream.script(Api::Chat, script.delayed(slow, Duration::ZERO));
    }
    let body = question(json!([written("m1", "Hello")]), json!({"num_options": 12}));
    let output = output(&app, &acme.key, body).await;
    let answer = &output["messages"][1];
    assert_eq!(answer.as_object().unwrap().len(), 3);
    let options = answer["options"].as_array().unwrap();
    assert_eq!(answer["text"], options[0]["text"]);
    let mut texts = options
        .iter()
        .map(|option| option["text"].as_str().unwrap())
        .collect::<Vec<_>>();
    texts.sort_unstable();
    let mut expected = (0..12)
        .map(|number| format!("Answer {number}."))
        .collect::<Vec<_>>();
    expected.sort_unstable();
    assert_eq!(texts, expected);

    let requests = upstream.requests(Api::Chat);
    assert_eq!(requests.len(), 12);
    let running = |at: &Recorded| {
        let during = |other: &&Recorded| other.at <= at.at && other.end.unwrap().1 > at.at;
        requests.iter().filter(during).count()
    };
    let most = requests.iter().map(running).max().unwrap();
    assert!((2..=4).contains(&most), "{most} at once");

    // One of them fails for good: so does the completion.
    upstream.script(Api::Chat, Script::text("Fine."));
    upstream.set_default(
        Api::Chat,
        Script::fault(harness::upstream::Fault::Status(400)),
    );
    let body = question(json!([written("m1", "Hello")]), json!({"num_options": 3}));
    let (code, message) = reason(&app, &acme.key, body).await;
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("reply_failed", "The model failed")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_of_a_character_answers_with_its_knowledge() {
    let (app, acme, upstream) = with_upstream().await;
    let parameters = json!({
        "ship": "a boat", "rag_enabled": true, "greetings": ["Ahoy!"],
        "documents": [{"title": "Tides", "text": "The tide is high at seven."}],
    });
    let personality = "You are Eve, a pilot of {{ ship }}.";
    app.character(&acme, "eve", personality, parameters.clone())
        .await;
    let custom = json!({"description": parameters.to_string(), "personality": personality});
    let characters = [
        json!({"character": "repo:acme/eve"}),
        json!({"character": "repo-force:acme/eve"}),
        json!({"character": custom}),
        json!({"character": null, "character_name": "eve"}),
        json!({"character": null, "character_name": "repo:acme/eve"}),
    ];
    for mut more in characters {
        let messages = json!([
            {"id": "p1", "originator": "user", "text": "Hello", "is_processed": true},
            {"id": "p2", "originator": "bot", "text": "Ahoy!", "is_processed": true},
            written("m1", "When is the tide high?"),
            written("m2", "Today?"),
        ]);
        more["character_params"] = json!({"ship": "the Argo"});
        let silent = more["character"] == "repo:acme/eve";
        more["generate_audio"] = json!(!silent);
        let shown = more.to_string();
        output(&app, &acme.key, question(messages, more)).await;
        let body = upstream.requests(Api::Chat).pop().unwrap().body;
        let messages = body["messages"].as_array().unwrap();
        let prompt = messages[0]["content"].as_str().unwrap();
        assert!(
            prompt.starts_with("You are Eve, a pilot of the Argo."),
            "{shown}: {prompt}"
        );
        for part in ["The tide is high at seven.", "by saying: Ahoy!"] {
            assert!(prompt.contains(part), "{part} is not in {prompt}");
        }
        assert_eq!(
            prompt.contains("You exchange voice messages."),
            !silent,
            "{prompt}"
        );
        let turns = json!([
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Ahoy!"},
            {"role": "user", "content": "When is the tide high?\nToday?"},
        ]);
        assert_eq!(messages[1..], turns.as_array().unwrap()[..], "{shown}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_sound_is_transcribed_in_parts_and_silence_is_no_question() {
    let (app, acme, upstream) = with_upstream().await;
    // 0.06 s a character: 17 s.
    let long = "This is a sentence of forty characters. ".repeat(7);
    upstream.script(Api::Chat, Script::text(long));
    let spoken = json!({"generate_audio": true});
    let spoken = output(
        &app,
        &acme.key,
        question(json!([written("m1", "Hello")]), spoken),
    )
    .await;
    let file = &spoken["audio_files"]["response"];

    upstream.script(Api::Transcription, Script::text("to the left"));
    upstream.script(Api::Transcription, Script::text("to the right"));
    let heard = question(
        json!([voiced("m1", "a")]),
        json!({"audio_files": {"a": file}}),
    );
    let heard = output(&app, &acme.key, heard).await;
    let expected = json!({"id": "m1", "type": "audio", "text": "to the left to the right"});
    assert_eq!(heard["messages"][0], expected);
    let requests = upstream.requests(Api::Transcription);
    let bytes = requests
        .iter()
        .map(|request| request.body["file_bytes"].as_u64().unwrap());
    let bytes = bytes.collect::<Vec<_>>();
    assert_eq!(bytes.len(), 2);
    assert!(
        bytes.iter().all(|bytes| *bytes <= 15 * 32_000 + 100),
        "{bytes:?}"
    );
    let body = upstream.requests(Api::Chat).pop().unwrap().body;
    let turns = body["messages"].as_array().unwrap();
    assert_eq!(turns[1]["content"], "to the left to the right");

    upstream.set_default(
        Api::Transcription,
        Script::fault(harness::upstream::Fault::Empty),
    );
    let tone = recorded("sine=duration=0.5", &["-c:a", "libopus"]);
    let silence = question(
        json!([voiced("m1", "a")]),
        json!({"audio_files": {"a": tone}}),
    );
    let (code, _) = reason(&app, &acme.key, silence).await;
    assert_eq!(code, "nothing_heard");
    // With words beside it, there is something to answer.
    let both = json!([voiced("m1", "a"), written("m2", "And now?")]);
    let both = output(
        &app,
        &acme.key,
        question(both, json!({"audio_files": {"a": tone}})),
    )
    .await;
    assert_eq!(both["messages"][0]["text"], "");
}

/// A spoken answer has sound, so the model is asked again for a reply without words.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_cannot_be_heard_is_none() {
    let (app, acme, upstream) = with_upstream().await;
    upstream.set_default(Api::Chat, Script::text("*smiles* 🙂"));
    let hello = json!([written("m1", "Hello")]);
    let written = output(&app, &acme.key, question(hello.clone(), json!({}))).await;
    assert_eq!(written["messages"][1]["text"], "*smiles* 🙂");
    let spoken = question(hello, json!({"generate_audio": true}));
    let path = asked(&app, &acme.key, spoken).await;
    let told = first_error(&app, &path).await;
    assert!(told.contains("the reply is empty"), "{told}");
}

/// Thoughts without an answer count as an empty answer.
#[tokio::test(flavor = "multi_thread")]
async fn a_reply_of_thoughts_alone_is_none() {
    let (app, acme, upstream) = with_upstream().await;
    for script in [
        Script::text("<think>Hm.</think>"),
        Script::fault(harness::upstream::Fault::Empty),
        Script::text(" "),
    ] {
        upstream.set_default(Api::Chat, script.clone());
        let hello = question(json!([written("m1", "Hello")]), json!({}));
        let path = asked(&app, &acme.key, hello).await;
        let told = first_error(&app, &path).await;
        assert!(told.contains("the reply is empty"), "{script:?}: {told}");
    }
}

/// A thought whose beginning the model's template keeps to itself is no part of the reply.
#[tokio::test(flavor = "multi_thread")]
async fn a_thought_without_its_beginning_is_no_reply() {
    let (app, acme, upstream) = with_upstream().await;
    let script = Script::text("secret plan</think>Hello there friend.");
    upstream.set_default(Api::Chat, script);
    let hello = question(json!([written("m1", "Hello")]), json!({}));
    for _ in 0..2 {
        let told = output(&app, &acme.key, hello.clone()).await;
        assert_eq!(told["messages"][1]["text"], "Hello there friend.");
    }
}

/// What the first attempt of a completion failed with.
async fn first_error(app: &TestApp, path: &str) -> String {
    let id = path.rsplit_once('/').unwrap().1;
    let error = async || {
        let job = jobs::find::<Complete>(app.app.store.db(), id).await;
        job.unwrap().and_then(|job| job.last_error)
    };
    eventually("it was tried", || async { error().await.is_some() }).await;
    error().await.unwrap()
}
