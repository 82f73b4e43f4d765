//! Responses that later ones go on from, and refer to.

use super::*;

fn refer(id: &Value) -> Value {
    json!({"type": "item_reference", "id": id})
}

fn said(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

on_each_database!(an_item_is_referred_to_by_its_id, |database| {
    let app = start(&database).await;
    let partner = app.partner("acme").await;
    let quota = json!({"kinds": ["text"], "period": "lifetime"});
    let mut keys = Vec::new();
    for _ in 0..2 {
        let made = app.post(&partner.key, "/api/quotas/acme", quota.clone());
        let made = made.await.expect(201);
        keys.push(made["api_key"].as_str().unwrap().to_owned());
    }
    let (key, stranger) = (&keys[0], &keys[1]);
    let ask = |input: Value| json!({"model": "builtin/extractive", "input": input});
    let first = app
        .post(key, RESPONSES, ask(json!("Hello!")))
        .await
        .expect(200);
    let answer = first["output"][0].clone();
    let given = |id: &Value| {
        format!(
            "/v3/responses/{}/input_items?order=asc",
            id.as_str().unwrap()
        )
    };
    let items = app.get(key, &given(&first["id"])).await.expect(200);
    let question = items["data"][0].clone();

    // Items of both sides, each once, in the place of their references; and they are kept so.
    let input = json!([
        refer(&question["id"]),
        refer(&answer["id"]),
        {"id": answer["id"]},
        said("Thanks.")
    ]);
    let second = app
        .post(key, RESPONSES, ask(input.clone()))
        .await
        .expect(200);
    let items = app.get(key, &given(&second["id"])).await.expect(200);
    let kept = items["data"].as_array().unwrap();
    assert_eq!(kept.len(), 3, "{items}");
    assert_eq!(
        [&kept[0]["content"], &kept[1]],
        [&question["content"], &answer]
    );

    // They are nobody else's, and gone with their response; the copy stays.
    let unknown = |id: &Value| format!("Item with id '{}' not found.", id.as_str().unwrap());
    let refused = app
        .post(stranger, RESPONSES, ask(input.clone()))
        .await
        .expect(404);
    assert_eq!(refused["error"]["message"], unknown(&question["id"]));
    assert_eq!(refused["error"]["param"], "input[0].id");
    app.delete(
        key,
        &format!("/v3/responses/{}", first["id"].as_str().unwrap()),
    )
    .await
    .expect(200);
    let refused = app.post(key, RESPONSES, ask(input)).await.expect(404);
    assert_eq!(refused["error"]["message"], unknown(&question["id"]));
    let mut on = ask(json!("And?"));
    on["previous_response_id"] = second["id"].clone();
    app.post(key, RESPONSES, on).await.expect(200);

    // Neither an id that no database stores nor a thousand and one of them is looked for.
    for id in ["\0".to_owned(), "x".repeat(1_000)] {
        let odd = ask(json!([refer(&json!(id)), said("Hi")]));
        app.post(key, RESPONSES, odd).await.expect(404);
    }
    let many: Vec<Value> = (0..1_001)
        .map(|id| refer(&json!(format!("i{id}"))))
        .collect();
    let refused = app.post(key, RESPONSES, ask(json!(many))).await.expect(400);
    assert_eq!(refused["error"]["param"], "input");
    let counted = ask(json!([refer(&second["output"][0]["id"])]));
    let counted = app
        .post(key, "/v3/responses/input_tokens", counted)
        .await
        .expect(200);
    assert!(counted["input_tokens"].as_u64().unwrap() > 10, "{counted}");
});

on_each_database!(
    an_item_of_the_conversation_before_is_not_sent_twice,
    |database| {
        let app = start(&database).await;
        let partner = app.partner("acme").await;
        let quota = json!({"kinds": ["text"], "period": "lifetime"});
        let made = app.post(&partner.key, "/api/quotas/acme", quota);
        let made = made.await.expect(201);
        let key = made["api_key"].as_str().unwrap();
        let model = "builtin/extractive";
        let first = app.post(key, RESPONSES, json!({"model": model, "input": "Hello!"}));
        let first = first.await.expect(200);
        let items = format!("{RESPONSES}/{}/input_items", first["id"].as_str().unwrap());
        let items = app.get(key, &items).await.expect(200);
        let references = [&items["data"][0]["id"], &first["output"][0]["id"]].map(refer);
        let input = [&references[..], &[said("Thanks.")]].concat();
        let body = json!({"model": model, "input": input, "previous_response_id": first["id"]});
        let second = app.post(key, RESPONSES, body).await.expect(200);
        let kept = format!("{RESPONSES}/{}/input_items", second["id"].as_str().unwrap());
        let kept = app.get(key, &kept).await.expect(200);
        assert_eq!(kept["data"].as_array().unwrap().len(), 1, "{kept}");
    }
);

on_each_database!(responses_are_kept_for_a_time, |database| {
    let app = start_by(builder(&database)).await;
    let partner = app.partner("acme").await;
    let quota = json!({"kinds": ["text"], "period": "lifetime"});
    let made = app
        .post(&partner.key, "/api/quotas/acme", quota)
        .await
        .expect(201);
    let key = made["api_key"].as_str().unwrap().to_owned();
    let ask = json!({"model": "builtin/extractive", "input": "Hello!"});
    let first = app.post(&key, RESPONSES, ask).await.expect(200);
    let path = format!("/v3/responses/{}", first["id"].as_str().unwrap());
    app.get(&key, &path).await.expect(200);
    app.advance(Duration::from_secs(20 * 24 * 3_600));
    let on = json!({"model": "builtin/extractive", "input": "Hello again!", "previous_response_id": first["id"]});
    let second = app.post(&key, RESPONSES, on.clone()).await.expect(200);
    app.advance(Duration::from_secs(11 * 24 * 3_600));
    app.get(&key, &path).await.expect(404);
    app.post(&key, RESPONSES, on).await.expect(400);
    // What came before it is gone, so the second cannot be gone on from either.
    let on =
        json!({"model": "builtin/extractive", "input": "Hi", "previous_response_id": second["id"]});
    let error = app.post(&key, RESPONSES, on).await.expect(400);
    assert_eq!(error["detail"]["code"], "previous_response_not_found");
});
