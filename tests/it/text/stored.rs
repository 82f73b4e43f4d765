//! Responses that are kept, and conversations that go on from them.

use colloquy::store::Executor as _;
use harness::{
    eventually,
    upstream::{INPUT_TOKENS, Script, output_tokens},
};

use super::*;

#[tokio::test]
async fn a_conversation_goes_on_from_a_response() {
    let text = Text::start().await;
    for (model, api, said) in [
        ("scripted-responses", Api::Responses, "input"),
        ("scripted-chat", Api::Chat, "messages"),
    ] {
        text.upstream.set_default(api, Script::text("You are Ann."));
        let first = text
            .post(RESPONSES, json!({"model": model, "input": "I am Ann."}))
            .await
            .expect(200);
        let second =
            json!({"model": model, "input": "Who am I?", "previous_response_id": first["id"]});
        let second = text.post(RESPONSES, second).await.expect(200);
        assert_eq!(second["previous_response_id"], first["id"]);
        let third = json!({"model": model, "input": [{"role": "user", "content": "Sure?"}], "previous_response_id": second["id"]});
        let events = text.stream(RESPONSES, third).await;
        let id = events.last().unwrap().json()["response"]["id"]
            .as_str()
            .unwrap()
            .to_owned();
        let asked = text.asked(api).last().unwrap().body[said].to_string();
        let places = ["I am Ann.", "You are Ann.", "Who am I?", "Sure?"]
            .map(|part| asked.find(part).expect(part));
        assert!(places.is_sorted(), "{asked}");
        // A stream is kept as well.
        let kept = text
            .app
            .get(&text.key, &format!("/v3/responses/{id}"))
            .await
            .expect(200);
        assert_eq!(kept, events.last().unwrap().json()["response"]);
        let again = format!("/v3/responses/{id}?stream=true");
        let replayed = text.app.get(&text.key, &again).await;
        assert_eq!(
            replayed.header("content-type"),
            "text/event-stream; charset=utf-8"
        );
        assert!(replayed.text.ends_with("data: [DONE]\n\n"));
        let replayed = super::events(&replayed.text);
        assert_eq!(replayed[0].name, "response.created");
        assert_eq!(response_text(&replayed), response_text(&events));
        assert_eq!(replayed.last().unwrap().json()["response"], kept);
        let numbers = replayed
            .iter()
            .map(|event| event.json()["sequence_number"].as_u64());
        assert!(numbers.eq((0..).take(replayed.len()).map(Some)));
        let rest = text
            .app
            .get(&text.key, &format!("{again}&starting_after=3"))
            .await;
        assert_eq!(super::events(&rest.text), replayed[4..]);
        let none = text
            .app
            .get(&text.key, &format!("{again}&starting_after=999"))
            .await;
        assert_eq!(none.text, "data: [DONE]\n\n");
        let whole = format!("/v3/responses/{id}?starting_after=3");
        let refused = text.app.get(&text.key, &whole).await.expect(400);
        assert_eq!(refused["error"]["param"], "starting_after");
        let items = text
            .app
            .get(&text.key, &format!("/v3/responses/{id}/input_items"))
            .await
            .expect(200);
        let asked = items["data"][0]["content"].to_string();
        assert!(asked.contains("Sure?"), "{asked}");
    }
}

#[tokio::test]
async fn the_items_of_a_response_come_in_pages() {
    let text = Text::start().await;
    let said = ["one", "two", "three", "four", "five"];
    let input = said.map(|word| json!({"role": "user", "content": word}));
    let body = json!({"model": "scripted-responses", "input": input});
    let made = text.post(RESPONSES, body).await.expect(200);
    let path = format!("/v3/responses/{}/input_items", made["id"].as_str().unwrap());
    let words = |page: &Value| {
        let items = page["data"].as_array().unwrap().iter();
        let words = items.map(|item| item["content"].as_str().unwrap().to_owned());
        words.collect::<Vec<_>>().join(" ")
    };
    let page = async |query: &str| text.app.get(&text.key, &format!("{path}{query}")).await;
    let all = page("").await.expect(200);
    assert_eq!(words(&all), "five four three two one");
    assert_eq!(all["has_more"], false);
    let first = page("?limit=2&order=asc").await.expect(200);
    assert_eq!(
        (words(&first).as_str(), &first["has_more"]),
        ("one two", &json!(true))
    );
    assert_eq!(first["first_id"], first["data"][0]["id"]);
    let after = first["last_id"].as_str().unwrap();
    let rest = page(&format!("?limit=3&order=asc&after={after}"))
        .await
        .expect(200);
    assert_eq!(
        (words(&rest).as_str(), &rest["has_more"]),
        ("three four five", &json!(false))
    );
    for (query, field) in [
        ("?limit=0", "limit"),
        ("?limit=101", "limit"),
        ("?after=none", "after"),
    ] {
        assert_eq!(
            page(query).await.expect(400)["detail"]["context"]["field"],
            field
        );
    }
}

#[tokio::test]
async fn a_conversation_is_no_longer_than_a_body() {
    let text =
        Text::with(|_, builder| builder.config(|config| config.limits.text_body_bytes = 20_000))
            .await;
    let mut body = json!({"model": "scripted-responses", "input": "x".repeat(6_000)});
    let mut went_on = 0;
    loop {
        let answer = text.post(RESPONSES, body.clone()).await;
        if answer.status == 400 {
            let error = answer.expect(400);
            assert_eq!(error["detail"]["context"]["field"], "previous_response_id");
            break;
        }
        body["previous_response_id"] = answer.expect(200)["id"].clone();
        went_on += 1;
    }
    // Two fit, the third made them too long.
    assert_eq!(went_on, 3);
}

#[tokio::test]
async fn an_answer_that_cannot_be_kept_is_refused_and_paid_for() {
    let text = Text::start().await;
    let (key, quota) = text.quota(json!({})).await;
    let db = text.app.app.store.db();
    db.execute("DROP TABLE responses").await.unwrap();
    let answer = text.app.post(&key, RESPONSES, hello_response()).await;
    answer.expect(500);
    let usage = text.usage(&quota, 1).await;
    let told = INPUT_TOKENS + output_tokens(&Script::default());
    assert_eq!(usage["total"]["tokens"], told);
}

#[tokio::test]
async fn what_is_not_kept_is_not_there() {
    let text = Text::start().await;
    let mut body = hello_response();
    body["store"] = json!(false);
    let gone = text.post(RESPONSES, body).await.expect(200);
    let path = format!("/v3/responses/{}", gone["id"].as_str().unwrap());
    text.app.get(&text.key, &path).await.expect(404);
    assert!(text.asked(Api::Responses)[0].body["store"] == json!(false));

    let kept = text.post(RESPONSES, hello_response()).await.expect(200);
    let path = format!("/v3/responses/{}", kept["id"].as_str().unwrap());
    let (stranger, _) = text.quota(json!({})).await;
    text.app.get(&stranger, &path).await.expect(404);
    let go_on =
        json!({"model": "scripted-responses", "input": "x", "previous_response_id": kept["id"]});
    text.app
        .post(&stranger, RESPONSES, go_on.clone())
        .await
        .expect(400);
    text.app.delete(&stranger, &path).await.expect(404);
    text.app.get(&text.key, &path).await.expect(200);
    assert_eq!(
        text.app.delete(&text.key, &path).await.expect(200)["deleted"],
        true
    );
    text.app.get(&text.key, &path).await.expect(404);
    text.post(RESPONSES, go_on).await.expect(400);
}

fn refer(id: &Value) -> Value {
    json!({"type": "item_reference", "id": id})
}

fn said(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

#[tokio::test]
async fn ids_that_a_model_repeats_are_of_one_item_each() {
    let text = Text::start().await;
    let ask = |input: Value| json!({"model": "scripted-responses", "input": input});
    let mut answers = Vec::new();
    for answer in ["Four.", "Six."] {
        let script = Script::text(answer).thinking("Hm. ");
        text.upstream.set_default(Api::Responses, script);
        // Two users begin with the same words.
        let first = text.post(RESPONSES, ask(json!("Hi"))).await.expect(200);
        answers.push(first);
    }
    let id = |response: &Value, item: usize| response["output"][item]["id"].clone();
    for (answer, text_of) in answers.iter().zip(["Four.", "Six."]) {
        let (thought, message) = (id(answer, 0), id(answer, 1));
        for (id, theirs) in [(&thought, "rs_1_clq_"), (&message, "msg_1_clq_")] {
            assert!(id.as_str().unwrap().starts_with(theirs), "{id}");
        }
        // The one is put where the other would stand, too, and each once, however often it is referred to.
        let mut input = vec![said("Hi"), refer(&thought)];
        input.extend(std::iter::repeat_n(refer(&message), 20_000));
        input.push(said("Sure?"));
        text.post(RESPONSES, ask(json!(input))).await.expect(200);
        let input = text.asked(Api::Responses).last().unwrap().body["input"].clone();
        assert_eq!(input.as_array().unwrap().len(), 4, "{input}");
        assert_eq!([&input[1]["id"], &input[2]["id"]], ["rs_1", "msg_1"]);
        assert_eq!(input[2]["content"][0]["text"], text_of, "{input}");
    }
    // What was sent back whole has the model's ids again.
    let sent = json!([said("Hi"), answers[0]["output"][1], said("Sure?")]);
    text.post(RESPONSES, ask(sent)).await.expect(200);
    let input = text.asked(Api::Responses).last().unwrap().body["input"].clone();
    assert_eq!(input[1]["id"], "msg_1");
    // An answer that is not there any more is not replaced by another one, and the model's own ids are nobody's.
    let mut unstored = ask(json!("Hi"));
    unstored["store"] = json!(false);
    let unstored = text.post(RESPONSES, unstored).await.expect(200);
    let path = format!("{RESPONSES}/{}", answers[0]["id"].as_str().unwrap());
    text.app.delete(&text.key, &path).await.expect(200);
    for gone in [id(&unstored, 1), id(&answers[0], 1), json!("msg_1")] {
        let input = json!([
            said("Hi"),
            refer(&id(&answers[1], 1)),
            refer(&gone),
            said("Sure?")
        ]);
        let refused = text.post(RESPONSES, ask(input)).await.expect(404);
        assert_eq!(refused["error"]["code"], "item_not_found");
        assert_eq!(refused["error"]["param"], "input[2].id");
    }
    // Events, the response and what is stored say the same.
    let events = text.stream(RESPONSES, ask(json!("Hi"))).await;
    let events: Vec<Value> = events.iter().map(Event::json).collect();
    let end = events.last().unwrap()["response"].clone();
    let known = [id(&end, 0), id(&end, 1)];
    for event in &events {
        for told in [&event["item_id"], &event["item"]["id"]] {
            assert!(told.is_null() || known.contains(told), "{event}");
        }
    }
    let path = format!("{RESPONSES}/{}", end["id"].as_str().unwrap());
    let stored = text.app.get(&text.key, &path).await.expect(200);
    assert_eq!(stored["output"], end["output"]);
}

#[tokio::test]
async fn references_reach_models_of_both_apis_as_items() {
    let text = Text::start().await;
    for (model, api) in [
        ("scripted-chat", Api::Chat),
        ("scripted-responses", Api::Responses),
    ] {
        let script = Script::text("Four.").thinking("Two and two. ");
        text.upstream.set_default(api, script);
        let first = json!({"model": model, "input": "2 + 2?"});
        let first = text.post(RESPONSES, first).await.expect(200);
        let output = first["output"].as_array().unwrap();
        let mut input = vec![json!({"role": "user", "content": "2 + 2?"})];
        input.extend(output.iter().map(|item| refer(&item["id"])));
        input.push(json!({"role": "user", "content": "Sure?"}));
        let second = json!({"model": model, "input": input});
        text.post(RESPONSES, second).await.expect(200);
        let asked = text.asked(api).last().unwrap().body.clone();
        let told = match api {
            Api::Responses => {
                for (index, theirs) in ["rs_1", "msg_1"].into_iter().enumerate() {
                    let mut item = output[index].clone();
                    item["id"] = json!(theirs);
                    assert_eq!(asked["input"][index + 1], item);
                }
                asked["input"].to_string()
            }
            _ => {
                let answer = json!({"role": "assistant", "content": "Four."});
                assert_eq!(asked["messages"][1], answer);
                asked["messages"].to_string()
            }
        };
        assert!(!told.contains("item_reference"), "{told}");
    }
    // An output of a tool that nobody called.
    let output = json!([{"type": "function_call_output", "call_id": "call_9", "output": "7"}]);
    let lost = json!({"model": "scripted-chat", "input": output});
    let refused = text.post(RESPONSES, lost).await.expect(400);
    assert_eq!(refused["error"]["param"], "input[0].call_id");
    // And one that stands before its call.
    let call =
        json!({"type": "function_call", "call_id": "call_9", "name": "f", "arguments": "{}"});
    let asked = json!({"role": "user", "content": "3 + 4?"});
    let early = json!({"model": "scripted-chat", "input": [asked, output[0], call]});
    let refused = text.post(RESPONSES, early).await.expect(400);
    assert_eq!(refused["error"]["param"], "input[1].call_id");
    let told = refused["error"]["message"].as_str().unwrap();
    assert!(told.contains("must stand behind its call"), "{told}");
}

#[tokio::test]
async fn items_about_a_search_are_not_told_to_the_model_again() {
    let text = Text::start().await;
    let character = json!({"personality": "You are Max.", "parameters": {
        "rag_enabled": true, "documents": [{"title": "Lions", "text": "The lions eat meat."}],
    }});
    let first = json!({"model": "scripted-responses", "input": "What do lions eat?", "metadata": {"svc": {"character": character}}});
    let first = text.post(RESPONSES, first).await.expect(200);
    // A client may refer to all of an output.
    let output = first["output"].as_array().unwrap();
    assert!(first["output"].to_string().contains("fs_svc_"), "{first}");
    let mut input: Vec<Value> = output.iter().map(|item| refer(&item["id"])).collect();
    input.push(json!({"role": "user", "content": "And?"}));
    let third = json!({"model": "scripted-responses", "input": input});
    let third = text.post(RESPONSES, third).await.expect(200);
    let asked = text.asked(Api::Responses)[1].body["input"].clone();
    let path = format!("{RESPONSES}/{}/input_items", third["id"].as_str().unwrap());
    let kept = text.app.get(&text.key, &path).await.expect(200);
    for items in [&asked, &kept["data"]] {
        assert_eq!(items.as_array().unwrap().len(), output.len() - 2, "{items}");
        assert!(!items.to_string().contains("svc_"), "{items}");
    }
    let second = json!({"model": "scripted-responses", "input": "And?", "previous_response_id": first["id"]});
    text.post(RESPONSES, second).await.expect(200);
    let asked = text.asked(Api::Responses)[2].body["input"].to_string();
    assert!(
        !asked.contains("svc_") && asked.contains("What do lions eat?"),
        "{asked}"
    );
}

#[tokio::test]
async fn inputs_of_responses_in_progress_count_in_the_storage() {
    let text = Text::start().await;
    text.app.limit_storage("acme", 100_000).await;
    text.upstream.script(Api::Responses, Script::text("one"));
    let held = text.upstream.hold(Api::Responses);
    let body = json!({"model": "scripted-responses", "input": "x".repeat(60_000)});
    let first = text.post(RESPONSES, body.clone());
    let second = async {
        eventually("the model is asked", async || {
            !text.asked(Api::Responses).is_empty()
        })
        .await;
        let second = text.post(RESPONSES, body.clone()).await;
        drop(held);
        second
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(second.status, 413, "{}", second.text);
    assert_eq!(text.asked(Api::Responses).len(), 1);
    // The reservation went with the first response, which counts now.
    text.post(RESPONSES, body.clone()).await.expect(413);
    let path = format!("{RESPONSES}/{}", first.expect(200)["id"].as_str().unwrap());
    text.app.delete(&text.key, &path).await.expect(200);
    text.post(RESPONSES, body).await.expect(200);
}
