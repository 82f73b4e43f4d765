//! What a worker made of a voice, and what speaks.

use super::*;

/// A voice that is split again speaks no more, until something is made of the new samples, and of those alone.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_split_takes_effect() {
    const ANNA: &str = "repo:acme/Anna";
    let worker = VoiceWorkers::start().await;
    // The voice of the synthesizer, for each sample and all of them.
    let scores: Vec<Value> = (0..25)
        .map(|index| json!({"sample_index": index, "score": 0.5, "voice": "tone"}))
        .collect();
    let made =
        json!({"state": "completed", "voice": "tone", "scores": scores, "has_embedding": true});
    worker.set_state(Some(made));
    let app = builder(&TestDatabase::sqlite());
    let app = app.config(|config| worker.offer(config)).start().await;
    let acme = app.partner("acme").await;
    let key = acme.key.as_str();
    let (sound, _) = spoken(1);
    create(&app, &acme, "Anna", wav(&sound)).await;
    app.advance_through("voices.%").await;
    let voice = processed(&app, key, "Anna").await;
    let status = json!({"splitting": "completed", "embedding": "completed"});
    assert_eq!(voice["status"], status);
    let before = voice["samples"].as_array().unwrap().len();
    assert!(before > 1, "{voice}");
    // Whether requests may name the voice, as the list says it.
    let speaks = async || {
        let body = json!({"model": "colloquy-tts", "voice": ANNA, "input": "Good day.", "response_format": "pcm"});
        let request = app.request(Method::POST, "/v2/audio/speech");
        let said = send(request.bearer_auth(key).json(&body)).await;
        let listed = app.get(key, "/v2/audio/voices").await.expect(200);
        let mut voices = listed["voices"].as_array().unwrap().iter();
        let is_listed = voices.any(|it| it["id"] == ANNA);
        let expected = if is_listed { 200 } else { 400 };
        assert_eq!(said.status, expected, "{}", said.text);
        is_listed
    };
    assert!(speaks().await);
    let preferred = format!("{}/preferred-sample", path("Anna"));
    put(&app, key, &preferred, &[("sample_index", "1")])
        .await
        .expect(200);
    assert!(speaks().await);

    let split = format!("{}/split", path("Anna"));
    let fields = [("max_samples", "1")];
    post(&app, key, &split, &fields).await.expect(202);
    assert!(!speaks().await, "what was made of the old samples is gone");
    let voice = processed(&app, key, "Anna").await;
    let status = json!({"splitting": "completed", "embedding": "idle"});
    assert_eq!(voice["status"], status);
    assert_eq!(voice["samples"].as_array().unwrap().len(), 1);
    for field in [
        "embedding_info",
        "embedding_zip_url",
        "preferred_sample_index",
    ] {
        assert_eq!(voice[field], Value::Null, "{field}");
    }
    assert!(!speaks().await, "nothing is made of the new ones yet");
    is_tidy(&app).await;

    let given = || {
        let asked = worker.asked();
        asked.iter().filter(|it| it.contains("/samples/")).count()
    };
    assert_eq!(given(), before);
    let asked = post(&app, key, &format!("{}/embed", path("Anna")), &[]).await;
    asked.expect(202);
    app.advance_through("voices.embed").await;
    let voice = processed(&app, key, "Anna").await;
    assert_eq!(voice["status"]["embedding"], "completed", "{voice}");
    assert_eq!(given(), before + 1, "the new sample alone is given");
    let scores = voice["embedding_info"]["sample_scores"].as_array().unwrap();
    assert_eq!(scores.len(), 1, "{scores:?}");
    assert!(speaks().await);
    is_tidy(&app).await;
}
