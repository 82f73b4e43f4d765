//! The embedded model.

use super::*;

#[tokio::test]
async fn the_embedded_model_answers_without_an_upstream() {
    let text = Text::start().await;
    let ask =
        json!({"model": "builtin/extractive", "messages": [{"role": "user", "content": "Hello!"}]});
    let whole = text.post(CHAT, ask.clone()).await.expect(200);
    let said = whole["choices"][0]["message"]["content"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(said.len() > 10);
    assert_eq!(chat_text(&text.stream(CHAT, ask).await), said);
    let response = text
        .post(
            RESPONSES,
            json!({"model": "builtin/extractive", "input": "Hello!"}),
        )
        .await
        .expect(200);
    assert_eq!(response["output"][0]["content"][0]["text"], said.as_str());
}

#[tokio::test]
async fn the_embedded_model_refuses_what_it_cannot_do() {
    let text = Text::start().await;
    let schema =
        json!({"type": "json_schema", "json_schema": {"name": "s", "schema": {"type": "object"}}});
    let ask = |more: Value| {
        let mut body = hello();
        body["model"] = json!("builtin/extractive");
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        body
    };
    for (more, field) in [
        (json!({"n": 2}), "n"),
        (json!({"response_format": schema}), "response_format"),
        (json!({"tool_choice": "required"}), "tool_choice"),
    ] {
        let error = text.post(CHAT, ask(more.clone())).await.expect(400);
        assert_eq!(error["detail"]["context"]["field"], field);
        assert_eq!(error["error"]["param"], field);
        // A fallback that cannot do it is none; the first model can.
        let mut fallen = ask(more);
        fallen["model"] = json!("scripted-chat");
        fallen["fallback_model"] = json!("builtin/extractive");
        fallen["tools"] = json!([{"type": "function", "function": {"name": "f"}}]);
        text.post(CHAT, fallen).await.expect(200);
    }
    let whole = text.post(CHAT, ask(json!({}))).await.expect(200);
    let said = whole["choices"][0]["message"]["content"].as_str().unwrap();
    let cut = text.post(CHAT, ask(json!({"stop": &said[5..8]}))).await;
    assert_eq!(
        cut.expect(200)["choices"][0]["message"]["content"],
        said[..5]
    );
}
