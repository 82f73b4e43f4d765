//! Recordings in languages that the models here tell apart, and in those that they do not.

use harness::sounds::spoken;

use super::*;

async fn hearing(database: &TestDatabase, model: &str) -> TestApp {
    let folder = neural::folder_with(&format!("recordings-{model}"), &[model, "silero-vad"]);
    let settings = neural::settings(folder);
    let inference = settings.inference.clone();
    let builder = TestApp::builder(database).config(|config| config.inference = inference);
    let builder = builder.providers(providers::from_config(&settings).unwrap());
    builder.with_decoder().quick_worker().start().await
}

async fn text_of(app: &TestApp, key: &str, id: &str) -> String {
    let content = format!("/api/documents/{BASE}/{id}/content/digitized");
    let content = app.get(key, &content).await.expect(200);
    content["content"].as_str().unwrap().to_owned()
}

/// A model of English alone makes English of whatever is said.
#[tokio::test(flavor = "multi_thread")]
async fn an_assumed_language_is_told_until_a_model_tells_it() {
    let database = TestDatabase::sqlite();
    let german = "Guten Morgen. Der Zug nach Hamburg fährt heute von Gleis sieben.";
    let app = hearing(&database, "whisper-tiny.en").await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let made = upload(&app, key, "a.wav", spoken("de", german)).await;
    let made = made.expect(201);
    let id = made["id"].as_str().unwrap();
    let document = digitized(&app, key, id).await;
    let warning = document["processing_warning"].as_str().unwrap();
    assert!(warning.contains(r#"transcribed as "en""#), "{warning}");
    assert!(warning.contains("pull whisper-base"), "{warning}");
    let wrong = text_of(&app, key, id).await;
    app.stop().await;

    let app = hearing(&database, "whisper-base").await;
    let body = json!({"document": {"id": id}});
    let queue = "/api/queue/process?partner=acme&kb=manual";
    app.post(key, queue, body).await.expect(200);
    let document = digitized(&app, key, id).await;
    assert_eq!(document["processing_warning"], Value::Null, "{document}");
    let right = text_of(&app, key, id).await;
    assert!(right.contains("Zug nach Hamburg"), "{right}");
    assert_ne!(right, wrong);

    // The next recording is in another language.
    let spanish = "Buenos días. El tren para Madrid sale hoy a las siete de la mañana.";
    let made = upload(&app, key, "b.wav", spoken("es", spanish)).await;
    let made = made.expect(201);
    let id = made["id"].as_str().unwrap();
    digitized(&app, key, id).await;
    let heard = text_of(&app, key, id).await;
    assert!(heard.contains("mañana"), "{heard}");
}
