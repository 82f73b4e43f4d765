//! Characters: their prompts, their knowledge, and what a client is shown of it.

use harness::upstream::{Fault, Script};

use super::{sockets::Socket, *};

const PERSONALITY: &str = "You are {{ robot_name }}, and you talk with {{ person_name }}.";

fn inline() -> Value {
    json!({
        "personality": PERSONALITY,
        "parameters": {
            "robot_name": "Max", "person_name": "somebody", "conversation_prefix": "It is morning.",
            "greetings": ["Welcome to the zoo!"], "max_new_tokens": 5, "rag_enabled": true,
            "documents": [
                {"title": "Opening hours", "text": "The zoo opens   at nine.\n\nIt closes at six. ".repeat(8)},
                {"title": "Lions", "text": "The lions eat meat."},
            ],
        },
    })
}

fn ask(model: &str, question: &str, character: &Value) -> Value {
    json!({
        "model": model, "input": question, "instructions": "Be brief.",
        "metadata": {"svc": {"character": character, "character_params": {"person_name": "Ann"}}, "trace": "1"},
    })
}

#[tokio::test]
async fn a_character_stands_before_what_the_client_says() {
    let text = Text::start().await;
    let character = json!({"name": "max", "personality": PERSONALITY, "parameters": {"robot_name": "Max", "person_name": "x"}});
    text.app
        .post(&text.partner, "/api/characters/acme", character)
        .await
        .expect(201);
    for reference in ["repo:acme/max", "repo-force:acme/max"] {
        let body = json!({
            "model": "scripted-chat",
            "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}],
            "metadata": {"svc": {"character": reference, "character_params": {"person_name": "Ann"}}},
        });
        text.post(CHAT, body).await.expect(200);
    }
    for asked in text.asked(Api::Chat) {
        assert_eq!(asked.body.get("metadata"), None);
        let messages = asked.body["messages"].as_array().unwrap();
        let first = messages[0]["content"].to_string();
        assert!(
            first.contains("You are Max, and you talk with Ann."),
            "{first}"
        );
        assert!(asked.body["messages"].to_string().contains("Be brief."));
        assert_eq!(
            messages.last().unwrap(),
            &json!({"role": "user", "content": "Hi"})
        );
    }
}

#[tokio::test]
async fn an_inline_character_has_its_prefix_greeting_and_knowledge() {
    let text = Text::start().await;
    text.post(
        RESPONSES,
        ask("scripted-responses", "When do you open?", &inline()),
    )
    .await
    .expect(200);
    let body = &text.asked(Api::Responses)[0].body;
    let prompt = body["instructions"].as_str().unwrap();
    for part in [
        "You are Max",
        "with Ann",
        "It is morning.",
        "Welcome to the zoo!",
        "opens   at nine",
        "Be brief.",
    ] {
        assert!(prompt.contains(part), "{part} is not in {prompt}");
    }
    assert_eq!(body["metadata"], json!({"trace": "1"}));
    assert_eq!(
        body.get("max_output_tokens"),
        None,
        "max_new_tokens limits nothing"
    );
}

#[tokio::test]
async fn knowledge_that_is_too_slow_does_not_hold_the_answer_up() {
    let text =
        Text::with(|_, builder| builder.config(|config| config.limits.retrieval_ms = 1)).await;
    let mut character = inline();
    let long = "The zoo opens at nine and closes at six. ".repeat(2_000);
    character["parameters"]["documents"] = json!(vec![json!({"title": "Hours", "text": long}); 20]);
    let question = "When does the zoo open, and when does it close? ".repeat(400);
    let body = ask("scripted-chat", &question, &character);
    let searched = |items: &[Value]| {
        let search = items.iter().find(|item| item["type"] == "file_search_call");
        let search = search.expect("the search is shown");
        assert_eq!(search["status"], "completed");
        assert_eq!(search["results"], json!([]));
    };
    let whole = text.post(RESPONSES, body.clone()).await.expect(200);
    searched(whole["output"].as_array().unwrap());
    let events = text.stream(RESPONSES, body).await;
    let last = events.last().unwrap().json();
    searched(last["response"]["output"].as_array().unwrap());
    assert_eq!(
        response_text(&events),
        harness::upstream::Script::default().text
    );
}

#[tokio::test]
async fn documents_whose_index_never_finds_room_are_refused_for_good() {
    let text = Text::with(|_, builder| {
        builder.config(|config| {
            config.limits.document_memory_bytes = 4_000_000;
        })
    })
    .await;
    let mut character = inline();
    for (sentences, status) in [(500, 200), (4_000, 413)] {
        let document = "The zoo opens at nine. ".repeat(sentences);
        character["parameters"]["documents"] = json!([{"title": "Hours", "text": document}]);
        let body = ask("scripted-chat", "When does the zoo open?", &character);
        text.post(RESPONSES, body).await.expect(status);
    }
}

#[tokio::test]
async fn documents_of_one_title_are_told_apart() {
    let text = Text::start().await;
    let mut character = inline();
    let document = |words: &str| json!({"title": "Notes", "text": words});
    character["parameters"]["documents"] = json!([
        document("The zoo opens at nine."),
        document("The zoo opens at ten on Sundays.")
    ]);
    let mut ids = Vec::new();
    for name in ["Max", "Max", "Moritz"] {
        character["parameters"]["name"] = json!(name);
        let body = ask("scripted-chat", "When does the zoo open?", &character);
        let answer = text.post(RESPONSES, body).await.expect(200);
        let items = answer["output"].as_array().unwrap();
        let search = items.iter().find(|item| item["type"] == "file_search_call");
        let results = search.unwrap()["results"].as_array().unwrap();
        ids.push([0, 1].map(|at| results[at]["file_id"].as_str().unwrap().to_owned()));
    }
    assert_ne!(ids[0][0], ids[0][1]);
    assert_eq!(ids[0], ids[1]);
    assert!(!ids[0].contains(&ids[2][0]));
}

#[tokio::test]
async fn what_was_looked_up_is_shown() {
    let text = Text::start().await;
    for model in ["scripted-chat", "scripted-responses", "builtin/extractive"] {
        let whole = text
            .post(RESPONSES, ask(model, "When do you open?", &inline()))
            .await
            .expect(200);
        shown(whole["output"].as_array().unwrap());

        let events = text
            .stream(RESPONSES, ask(model, "When do you open?", &inline()))
            .await;
        let names = events
            .iter()
            .map(|event| event.name.as_str())
            .collect::<Vec<_>>();
        let expected = [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.output_item.done",
            "response.output_item.added",
            "response.file_search_call.in_progress",
            "response.file_search_call.searching",
            "response.file_search_call.completed",
            "response.output_item.done",
            "response.output_item.added",
            "response.output_item.done",
        ];
        assert_eq!(names[..expected.len()], expected, "{model}");
        for (number, event) in events.iter().enumerate() {
            assert_eq!(event.json()["sequence_number"], number);
        }
        let completed = events
            .iter()
            .find(|event| event.name == "response.file_search_call.completed")
            .unwrap()
            .json();
        assert_eq!(completed["output_index"], 1);
        assert_eq!(completed["item"]["results"][0]["filename"], "Opening hours");
        let added = events[2].json();
        assert_eq!(
            (&added["output_index"], &added["item"]["type"]),
            (&json!(0), &json!("reasoning"))
        );
        // The model's own items come after those three.
        let message = events
            .iter()
            .find(|event| event.name == "response.output_text.delta")
            .unwrap()
            .json();
        assert_eq!(message["output_index"], 3, "{model}");
        let last = events.last().unwrap().json();
        shown(last["response"]["output"].as_array().unwrap());
    }
}

#[tokio::test]
async fn what_an_answer_does_not_rest_on_is_not_shown_where_the_model_can_tell() {
    let text = Text::start().await;
    for (model, said, is_shown) in [
        ("scripted-chat", "My name is Zoo.", true),
        ("builtin/extractive", "My name is Zoo.", false),
        ("builtin/extractive", "When does the zoo open?", true),
    ] {
        let body = ask(model, said, &inline());
        let whole = text.post(RESPONSES, body.clone()).await.expect(200);
        let events = text.stream(RESPONSES, body).await;
        let streamed = events.last().unwrap().json();
        for output in [&whole["output"], &streamed["response"]["output"]] {
            let results = output[1]["results"].as_array().unwrap();
            assert_eq!(!results.is_empty(), is_shown, "{model}: {said}");
            let found = format!("Found {} relevant documents, thinking...", results.len());
            assert_eq!(output[2]["summary"][0]["text"], found.as_str());
        }
        let shown = events
            .iter()
            .find(|event| event.name == "response.file_search_call.completed")
            .unwrap()
            .json();
        let results = &shown["item"]["results"];
        assert_eq!(results, &whole["output"][1]["results"]);
    }
    // What a tool said may be what the answer rests on.
    let mut body = ask("builtin/extractive", "", &inline());
    body["input"] = json!([
        {"type": "function_call", "call_id": "a", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "a", "output": "When does the zoo open?"},
        {"role": "user", "content": "My name is Zoo."},
    ]);
    let whole = text.post(RESPONSES, body).await.expect(200);
    let results = whole["output"][1]["results"].as_array().unwrap();
    assert!(!results.is_empty(), "{whole}");
}

/// A model that never answers holds nothing of it back, and one that fails does so in the stream.
#[tokio::test]
async fn what_was_looked_up_is_shown_before_the_model_answers() {
    let text = Text::start().await;
    let found = "response.file_search_call.completed";
    for (model, api) in [
        ("scripted-chat", Api::Chat),
        ("scripted-responses", Api::Responses),
    ] {
        let mut body = ask(model, "When do you open?", &inline());
        text.upstream
            .script(api, Script::fault(Fault::Stall { after: 0 }));
        let mut socket = Socket::open(&text).await;
        socket.create(body.clone()).await;
        while socket.event().await["type"] != found {}
        drop(socket);
        body["stream"] = json!(true);
        text.upstream
            .script(api, Script::fault(Fault::Stall { after: 0 }));
        let response = text.open(RESPONSES, &body).await;
        assert_eq!(response.status(), 200);
        read_until(response, |so_far| so_far.contains("rs_svc_rag_found_")).await;

        text.upstream.script(api, Script::fault(Fault::Status(500)));
        let events = text.stream(RESPONSES, body.clone()).await;
        let failed = events.last().unwrap().json();
        assert_eq!(events.last().unwrap().name, "error", "{failed}");
        assert_eq!(failed["code"], "upstream_error");
        assert_eq!(failed["message"], "The model failed (status 500)");
        assert!(failed["error"]["request_id"].is_string(), "{failed}");
        assert!(events.iter().any(|event| event.name == found));
        // Another model takes over behind the items.
        text.upstream.script(api, Script::fault(Fault::Status(500)));
        body["fallback_model"] = json!("builtin/extractive");
        let events = text.stream(RESPONSES, body).await;
        let last = events.last().unwrap().json();
        assert_eq!(last["response"]["model"], "builtin/extractive");
        shown(last["response"]["output"].as_array().unwrap());
    }
}

#[tokio::test]
async fn a_knowledge_base_that_is_not_there_is_told() {
    let text = Text::start().await;
    let mut character = inline();
    for base in ["acme/none", "other/none"] {
        character["parameters"]["rag_index_required"] = json!(base);
        let body = ask("scripted-chat", "When do you open?", &character);
        let answer = text.post(RESPONSES, body).await;
        let expected = format!("the knowledge base {base} of rag_index_required is not found");
        assert_eq!(answer.header("x-colloquy-warning"), expected);
        answer.expect(200);
        // Nothing is searched for an answer that the client has begun.
        let begun = json!([
            {"role": "user", "content": "When do you open?"},
            {"role": "assistant", "content": "We open"},
        ]);
        for (path, field) in [(CHAT, "messages"), (RESPONSES, "input")] {
            let mut body = ask("scripted-chat", "", &character);
            for given in ["input", "instructions"] {
                body.as_object_mut().unwrap().remove(given);
            }
            body[field] = begun.clone();
            let answer = text.post(path, body).await;
            assert_eq!(answer.header("x-colloquy-warning"), expected, "{path}");
            answer.expect(200);
        }
        let hello = ask("builtin/extractive", "Hello!", &character);
        let answer = text.post(RESPONSES, hello).await.expect(200).to_string();
        assert!(answer.contains("Lions"), "{answer}");
        assert!(
            !answer.contains("about none") && !answer.contains("and none"),
            "{answer}"
        );
        let saved = json!({
            "name": "max", "personality": "P", "parameters": {"rag_enabled": true, "rag_index_required": base},
        });
        let path = "/api/characters/acme";
        let refused = text.app.post(&text.partner, path, saved).await.expect(400);
        assert_eq!(refused["field"], "parameters.rag_index_required");
    }
    let off = json!({"name": "max", "personality": "P", "parameters": {"rag_index_required": "acme/none"}});
    let path = "/api/characters/acme";
    text.app.post(&text.partner, path, off).await.expect(201);
    let on = json!({"personality": "P", "parameters": {"rag_enabled": true, "rag_index_required": "acme/none"}});
    let path = "/api/characters/acme/max";
    let refused = text.app.call(&text.partner, Method::PUT, path, on).await;
    refused.expect(400);
}

/// The three items of the document, then the answer.
fn shown(output: &[Value]) {
    let id = |at: usize| output[at]["id"].as_str().unwrap();
    assert!(id(0).starts_with("rs_svc_rag_loading_"));
    assert_eq!(
        output[0]["summary"][0]["text"],
        "Looking through the knowledge base..."
    );
    assert!(id(1).starts_with("fs_svc_"));
    assert_eq!(output[1]["type"], "file_search_call");
    assert_eq!(output[1]["status"], "completed");
    assert_eq!(output[1]["queries"], json!(["When do you open?"]));
    let results = output[1]["results"].as_array().unwrap();
    assert!(id(2).starts_with("rs_svc_rag_found_"));
    let found = format!("Found {} relevant documents, thinking...", results.len());
    assert_eq!(output[2]["summary"][0]["text"], found.as_str());
    let first = &results[0];
    assert!(first["file_id"].as_str().unwrap().starts_with("file_svc_"));
    assert_eq!(first["filename"], "Opening hours");
    assert!(first["score"].as_f64().unwrap() > 0.0);
    let preview = first["text"].as_str().unwrap();
    assert!(
        preview.starts_with("The zoo opens at nine. It closes at six."),
        "{preview}"
    );
    assert!(preview.chars().count() <= 200 && !preview.contains("  "));
    assert_eq!(first["attributes"]["retrievers"], "bm25");
    assert!(first["attributes"]["chunk_index"].is_u64());
    assert_eq!(output[3]["type"], "message");
}

#[tokio::test]
async fn nothing_found_is_shown_too_and_chat_completions_never_show_it() {
    let text = Text::start().await;
    let whole = text
        .post(
            RESPONSES,
            ask("scripted-chat", "Quantum physics?", &inline()),
        )
        .await
        .expect(200);
    assert_eq!(whole["output"][1]["results"], json!([]));
    assert_eq!(whole["output"][1]["status"], "completed");
    assert_eq!(
        whole["output"][2]["summary"][0]["text"],
        "Found 0 relevant documents, thinking..."
    );
    let chat = json!({
        "model": "scripted-chat", "messages": [{"role": "user", "content": "When do you open?"}],
        "metadata": {"svc": {"character": inline()}},
    });
    let whole = text.post(CHAT, chat.clone()).await.expect(200);
    assert!(!whole.to_string().contains("svc"), "{whole}");
    let prompt = text.asked(Api::Chat).last().unwrap().body["messages"][0]["content"].to_string();
    assert!(prompt.contains("opens   at nine"), "{prompt}");
    let events = text.stream(CHAT, chat).await;
    assert!(!events.iter().any(|event| event.data.contains("svc")));
}

#[tokio::test]
async fn a_quota_may_use_its_characters_only() {
    let text = Text::start().await;
    let character = json!({"name": "max", "personality": "You are Max.", "parameters": {}});
    text.app
        .post(&text.partner, "/api/characters/acme", character)
        .await
        .expect(201);
    let other = text.app.partner("other").await.key;
    let character = json!({"name": "eve", "personality": "You are Eve.", "parameters": {}});
    text.app
        .post(&other, "/api/characters/other", character)
        .await
        .expect(201);
    let with = |character: Value| {
        let mut body = hello();
        body["metadata"] = json!({"svc": {"character": character}});
        body
    };
    text.post(CHAT, with(json!("repo:acme/max")))
        .await
        .expect(200);
    // Whether another partner has a character of this name stays unknown.
    let foreign = text.post(CHAT, with(json!("repo:other/eve"))).await;
    let nobody = text.post(CHAT, with(json!("repo:other/nobody"))).await;
    assert_eq!(foreign.status, nobody.status);
    assert!(foreign.status == 403 || foreign.status == 400);
    let (limited, _) = text
        .quota(json!({"allowed_characters": ["repo:acme/guide"]}))
        .await;
    text.app
        .post(&limited, CHAT, with(json!("repo:acme/max")))
        .await
        .expect(403);
    text.app
        .post(&limited, CHAT, with(inline()))
        .await
        .expect(403);
}
