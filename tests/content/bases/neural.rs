//! Search by meaning, with the model that is there by default.

mod quality;
mod recordings;

use colloquy::providers;
use harness::TestDatabase;

use super::*;
use harness::neural;

async fn app() -> TestApp {
    let folder = neural::folder_with("meaning", &["all-minilm-l6-v2"]);
    let settings = neural::settings(folder);
    let providers = providers::from_config(&settings).unwrap();
    let builder = TestApp::builder(&TestDatabase::sqlite()).providers(providers);
    builder.with_decoder().quick_worker().start().await
}

/// Checks that share loaded models, of which none changes them.
#[tokio::test(flavor = "multi_thread")]
async fn what_means_the_same_is_close() {
    let app = app().await;
    let acme = furnished(&app).await;
    a_question_finds_a_passage_in_other_words(&app, &acme).await;
    vectors_of_what_means_the_same_are_close(&app, &acme).await;
}

/// The questions share no word with the passages.
async fn a_question_finds_a_passage_in_other_words(app: &TestApp, acme: &TestPartner) {
    let key = acme.key.as_str();
    for (name, text) in [
        (
            "Surgery",
            "The physician examines patients every weekday before noon.",
        ),
        (
            "Garage",
            "Automobiles are repaired behind the building, and washed on request.",
        ),
        (
            "Kitchen",
            "Soup is served from twelve to two, with bread that we bake ourselves.",
        ),
    ] {
        let form = fields(&[
            ("type", "file"),
            ("folder", "texts"),
            ("name", name),
            ("use_original_as_rewritten", "true"),
        ]);
        let form = form.part("file", file("text.txt", text));
        post(app, key, &format!("/api/documents/{BASE}"), form)
            .await
            .expect(201);
    }
    let info = settled(app, key).await;
    assert_eq!(info["embedding_profile_name"], "all-minilm-l6-v2", "{info}");
    for (question, name) in [
        ("When can I see a doctor?", "Surgery"),
        ("My car is broken", "Garage"),
        ("I am hungry", "Kitchen"),
    ] {
        assert_eq!(best(app, key, question).await, name, "{question}");
    }
    let found = search(app, key, "My car is broken").await;
    assert!(found["timings"]["embedding_ms"].is_number(), "{found}");
    let share = &found["combined_results"][0]["shares"][0];
    assert_eq!(share["retriever"], "dense", "{found}");
}

async fn vectors_of_what_means_the_same_are_close(app: &TestApp, acme: &TestPartner) {
    let quota = app.quota(acme, json!({"kinds": ["text"]})).await;
    let ask = async |input: Value| {
        let body = json!({"model": "all-minilm-l6-v2", "input": input});
        let request = app.request(Method::POST, "/v3/embeddings");
        send(request.bearer_auth(&quota.key).json(&body)).await
    };
    let texts = [
        "A cat sleeps.",
        "The kitten is asleep.",
        "Shares fell sharply on Monday.",
    ];
    let list = ask(json!(texts)).await.expect(200);
    let vector = |at: usize| -> Vec<f64> {
        serde_json::from_value(list["data"][at]["embedding"].clone()).unwrap()
    };
    let cosine = |one: &[f64], other: &[f64]| -> f64 {
        one.iter().zip(other).map(|(one, other)| one * other).sum()
    };
    let vectors = [vector(0), vector(1), vector(2)];
    assert_eq!(vectors[0].len(), 384);
    let near = cosine(&vectors[0], &vectors[1]);
    let far = cosine(&vectors[0], &vectors[2]);
    assert!(near > far + 0.3, "{near} {far}");
    let long = ask(json!(["short", "word ".repeat(300)])).await.expect(400);
    assert_eq!(long["error"]["param"], "input[1]", "{long}");
}
