//! Voices that this server makes itself, with its models.

use super::*;
use harness::neural;

/// Where Debian has recordings of another person.
const CARDS: &str = "/usr/share/pocketsphinx/test/data/cards";

const MODELS: [&str; 3] = ["silero-vad", "piper-en_US-joe-medium", "ge2e"];

/// A server that has a voice, and can tell who speaks.
async fn server() -> TestApp {
    let settings = neural::settings(neural::folder_with("voices", &MODELS));
    let inference = settings.inference.clone();
    // A job asks again and again whether the models are done, which compute in real time.
    let builder = builder(&TestDatabase::sqlite()).real_time();
    let builder = builder.config(|config| config.inference = inference);
    let providers = colloquy::providers::from_config(&settings).unwrap();
    builder.providers(providers).start().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voice_is_embedded_by_the_server_itself() {
    let app = server().await;
    let acme = app.partner("acme").await;
    let (sound, times) = spoken(2);
    create(&app, &acme, "Anna", wav(&sound)).await;
    let voice = processed(&app, &acme.key, "Anna").await;
    assert_eq!(
        voice["status"],
        json!({"splitting": "completed", "embedding": "completed"}),
        "{voice}"
    );
    assert_eq!(voice["embedding_type"], "builtin");
    let samples = voice["samples"].as_array().unwrap();
    for sample in samples {
        let begin = source(sample);
        let begins = times
            .iter()
            .any(|time| (-0.2..1.2).contains(&(time.0 - begin)));
        assert!(begins, "{begin} {times:?}");
    }
    let info = &voice["embedding_info"];
    let scores = info["sample_scores"].as_array().unwrap();
    assert_eq!(scores.len(), samples.len());
    assert!(
        scores.iter().all(|it| it["score"].as_f64().unwrap() > 0.7),
        "{scores:?}"
    );
    assert_eq!(
        info["test_samples"].as_array().unwrap().len(),
        3 * samples.len()
    );
    let known = app
        .get(&acme.key, "/v2/audio/voices")
        .await
        .expect(200)
        .to_string();
    let spoken_by = info["synthesizer_voice"].as_str().unwrap();
    assert!(known.contains(spoken_by), "{spoken_by}: {known}");
    let said = bytes(
        &app,
        &acme.key,
        &format!("{}/test-samples/test_0_1.opus", path("Anna")),
    )
    .await;
    let seconds = decoded_by_ffmpeg(&said, 48_000).len() as f64 / 48_000.0;
    assert!((2.0..9.0).contains(&seconds), "{seconds}");
    let zip = bytes(&app, &acme.key, &format!("{}/embedding.zip", path("Anna"))).await;
    let mut zip = zip::ZipArchive::new(std::io::Cursor::new(zip)).unwrap();
    let mut text = String::new();
    zip.by_name("embedding.json")
        .unwrap()
        .read_to_string(&mut text)
        .unwrap();
    let described: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(described["embedding"].as_array().unwrap().len(), 256);
    assert_eq!(
        described["samples"].as_array().unwrap().len(),
        samples.len()
    );
    is_tidy(&app).await;
    // It speaks, for its partner.
    let voices = app.get(&acme.key, "/v2/audio/voices").await.expect(200);
    let listed = voices["voices"].as_array().unwrap().iter();
    let own = listed
        .clone()
        .find(|it| it["id"] == "repo:acme/Anna")
        .unwrap();
    assert_eq!(own["name"], "Anna");
    let speak = async |key: &str, voice: &str| {
        let body = json!({
            "model": "colloquy-tts", "voice": voice, "input": "Good morning.", "response_format": "pcm",
        });
        let request = app
            .request(Method::POST, "/v2/audio/speech")
            .bearer_auth(key);
        request.json(&body).send().await.unwrap()
    };
    let said = speak(&acme.key, "repo:acme/Anna").await;
    assert_eq!(said.status(), 200);
    assert!(said.bytes().await.unwrap().len() > 24_000);
    let other = app.partner("other").await;
    for (key, voice) in [
        (&other.key, "repo:acme/Anna"),
        (&other.key, "repo:other/Anna"),
        (&acme.key, "repo:acme/Bert"),
    ] {
        assert_eq!(speak(key, voice).await.status(), 400, "{voice}");
    }
    let refused = post(
        &app,
        &acme.key,
        &format!("{}/embed", path("Anna")),
        &[("tts_type", "xtts")],
    )
    .await;
    assert!(
        refused.expect(400)["detail"]
            .as_str()
            .unwrap()
            .contains("builtin")
    );
}

/// A sample of somebody else, and one that is full of noise, are worth less than the others.
#[tokio::test(flavor = "multi_thread")]
async fn samples_are_scored_by_who_speaks_and_by_noise() {
    let app = server().await;
    let acme = app.partner("acme").await;
    make_empty(&app, &acme.key, "Anna").await;
    let samples = format!("{}/samples", path("Anna"));
    let mut sounds = novel();
    let noise = harness::sounds::Noise::new(7).scaled(2_500.0);
    let noisy = sounds[0].iter().zip(noise);
    sounds.push(
        noisy
            .map(|(sample, noise)| sample.saturating_add(noise as i16))
            .collect(),
    );
    for sound in &sounds {
        post_form(&app, &acme.key, &samples, file("a.wav", wav(sound)))
            .await
            .expect(201);
    }
    let other = fs::read(format!("{CARDS}/005.wav")).unwrap();
    post_form(&app, &acme.key, &samples, file("a.wav", other))
        .await
        .expect(201);
    post(&app, &acme.key, &format!("{}/embed", path("Anna")), &[])
        .await
        .expect(202);
    let voice = processed(&app, &acme.key, "Anna").await;
    let scores = voice["embedding_info"]["sample_scores"].as_array().unwrap();
    let scores: Vec<f64> = scores
        .iter()
        .map(|it| it["score"].as_f64().unwrap())
        .collect();
    println!("{scores:?}");
    let (own, [noisy, other]) = (&scores[..5], [scores[5], scores[6]]);
    let least = own.iter().copied().fold(1.0, f64::min);
    assert!(noisy < scores[0] - 0.1 && other < least, "{scores:?}");
}
