//! Recordings that are split into samples.

use std::io::{Cursor, Read as _};

use axum::http::Method;
use serde_json::{Value, json};
use support::on_each_database;
use test_routes::{
    send,
    sounds::wav,
    voices::{RATE_HZ, create, file, path, post, post_form, processed, source, spoken},
};
use test_sounds::{converted, decoded_by_ffmpeg};
use zip::ZipArchive;

use crate::{builder, bytes, start, tidy};

on_each_database!(a_recording_becomes_samples, |database| {
    let app = start(builder(&database)).await;
    let (acme, other) = (app.partner("acme").await, app.partner("other").await);
    let (sound, times) = spoken(2);
    let sound = converted(&wav(&sound), "a.mp3", &[]);
    let made = create(&app, &acme, "Anna", sound).await;
    assert_eq!(made["status"]["splitting"], "in_progress", "{made}");
    assert_eq!(made["original_filename"], "original.mp3");
    assert_eq!(made["original_uploaded_name"], "take one.mp3");
    let voice = processed(&app, &acme.key, "Anna").await;
    assert_eq!(
        voice["status"],
        json!({"splitting": "completed", "embedding": "idle"})
    );
    let duration = voice["original_duration"].as_f64().unwrap();
    assert!((duration - times[4].1 - 2.0).abs() < 0.2, "{duration}");
    let samples = voice["samples"].as_array().unwrap();
    assert!((2..=5).contains(&samples.len()), "{samples:?}");
    for (number, sample) in samples.iter().enumerate() {
        assert_eq!(sample["index"], number);
        let begin = source(sample);
        // Each begins with a recording, in whole seconds.
        let begins = times
            .iter()
            .any(|time| (-0.2..1.2).contains(&(time.0 - begin)));
        assert!(begins, "{begin} {times:?}");
        let duration = sample["duration"].as_f64().unwrap();
        assert!((1.0..=15.0).contains(&duration), "{sample}");
        let opus = bytes(
            &app,
            &acme.key,
            &format!("{}/samples/{number}", path("Anna")),
        )
        .await;
        let heard = decoded_by_ffmpeg(&opus, 48_000).len() as f64 / 48_000.0;
        assert!((heard - duration).abs() < 0.05, "{heard} {duration}");
        let rate = opus.len() as f64 * 8.0 / duration;
        assert!(
            (60_000.0..130_000.0).contains(&rate),
            "{rate} bits a second"
        );
    }
    let heard: f64 = samples
        .iter()
        .map(|it| it["duration"].as_f64().unwrap())
        .sum();
    let said: f64 = times.iter().map(|time| time.1 - time.0).sum();
    assert!(
        (said * 0.85..said + 3.0).contains(&heard),
        "{heard} of {said}"
    );

    let listed = app.get(&acme.key, "/api/voices/acme").await.expect(200);
    let expected = json!([{
        "name": "Anna", "has_original": true, "sample_count": samples.len(), "splitting_status": "completed",
        "embedding_status": "idle", "creator_name": null, "creator_email": null,
    }]);
    assert_eq!(listed, expected);
    let bundle = bytes(&app, &acme.key, &format!("{}/samples-bundle", path("Anna"))).await;
    let mut zip = ZipArchive::new(Cursor::new(bundle)).unwrap();
    assert_eq!(zip.len(), samples.len() + 1);
    let mut info = String::new();
    zip.by_name("voice_info.json")
        .unwrap()
        .read_to_string(&mut info)
        .unwrap();
    assert_eq!(serde_json::from_str::<Value>(&info).unwrap(), voice);
    assert!(zip.by_name("0.opus").is_ok());

    // Nobody else reaches it.
    let denied = app.get(&other.key, &path("Anna")).await.expect(403);
    assert_eq!(denied["detail"], "Access denied", "{denied}");
    app.get(&other.key, "/api/voices/other/Anna")
        .await
        .expect(404);
    let missing = app.get(&acme.key, &path("Bert")).await.expect(404);
    assert_eq!(missing["detail"], "Voice not found", "{missing}");
    let wrong = app.get("nonsense", &path("Anna")).await.expect(401);
    assert_eq!(wrong["detail"], "Invalid API key", "{wrong}");
    let by_query = app.request(
        Method::GET,
        &format!("{}?api_key={}", path("Anna"), acme.key),
    );
    send(by_query).await.expect(200);
    let page = json!({"kind": "publishable", "allowed_origins": ["https://www.example.com"]});
    for key in [json!({"name": "calls", "scopes": ["calls"]}), page] {
        let made = app.key("acme", key).await;
        let key = made["api_key"].as_str().unwrap();
        let denied = app.get(key, &path("Anna")).await.expect(403);
        assert_eq!(denied["detail"], "Access denied", "{denied}");
    }

    // What no database stores is nowhere.
    let strange = [
        path("%00"),
        format!("{}/test-files/%00", path("Anna")),
        "/api/voice-worker/jobs/%00".to_owned(),
    ];
    for place in strange {
        for method in [Method::GET, Method::POST, Method::DELETE] {
            let status = app
                .call(&acme.key, method, &place, Value::Null)
                .await
                .status;
            assert!(status.is_client_error(), "{place}: {status}");
        }
    }

    // Split anew, into shorter ones, of which there are fewer.
    let how = [("max_samples", "3"), ("sample_duration", "5")];
    post(&app, &acme.key, &format!("{}/split", path("Anna")), &how)
        .await
        .expect(202);
    let voice = processed(&app, &acme.key, "Anna").await;
    let samples = voice["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 3, "{samples:?}");
    assert!(
        samples
            .iter()
            .all(|it| it["duration"].as_f64().unwrap() <= 5.0),
        "{samples:?}"
    );
    tidy(&app).await;
    app.delete(&acme.key, &path("Anna")).await.expect(204);
    app.get(&acme.key, &path("Anna")).await.expect(404);
    app.state.blobs.sweep().await.unwrap();
    tidy(&app).await;
});

// Nothing is cut in the midst of a word: between the samples, and in what was left out of the recording, nobody speaks.
on_each_database!(samples_together_are_all_that_was_said, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    let (sound, _) = spoken(1);
    create(&app, &acme, "Anna", wav(&sound)).await;
    let voice = processed(&app, &acme.key, "Anna").await;
    let count = voice["samples"].as_array().unwrap().len();
    let energy = |samples: &[i16], quiet: f64| -> (f64, f64) {
        let loudest = samples
            .iter()
            .map(|it| f64::from(*it).abs())
            .fold(1.0, f64::max);
        let moments = samples.chunks(samples.len().div_ceil(1_000).max(1));
        let loud = |moment: &&[i16]| {
            let squares = moment.iter().map(|it| (f64::from(*it) / loudest).powi(2));
            (squares.sum::<f64>() / moment.len() as f64).sqrt() > quiet
        };
        (
            moments.clone().filter(loud).count() as f64,
            moments.count() as f64,
        )
    };
    for number in 0..count {
        let opus = bytes(
            &app,
            &acme.key,
            &format!("{}/samples/{number}", path("Anna")),
        )
        .await;
        let sound = decoded_by_ffmpeg(&opus, 48_000);
        // The first and the last 30 ms are quiet beside the rest: no word begins or ends there.
        let border = 48 * 30;
        let ends = [&sound[..border], &sound[sound.len() - border..]];
        let loudest = sound.iter().map(|it| it.unsigned_abs()).max().unwrap();
        for end in ends {
            let loud = end.iter().map(|it| it.unsigned_abs()).max().unwrap();
            assert!(loud < loudest / 5, "{number}: {loud} of {loudest}");
        }
        let (loud, all) = energy(&sound, 0.02);
        assert!(loud / all > 0.6, "{number}: {loud} of {all} moments");
    }
});

on_each_database!(what_cannot_be_split_says_why, |database| {
    let app = builder(&database).config(|config| config.voices.max_seconds = 60);
    let app = start(app).await;
    let acme = app.partner("acme").await;
    let junk = [b"ID3\x04\0\0\0\0\0\x0a".to_vec(), vec![0x55; 40_000]].concat();
    let cases = [
        ("silence", wav(&vec![0; 10 * RATE_HZ]), "nobody speaks"),
        ("junk", junk, "damaged"),
        ("long", wav(&vec![0; 61 * RATE_HZ]), "longer than 60 s"),
    ];
    for (name, sound, reason) in cases {
        create(&app, &acme, name, sound).await;
        let voice = processed(&app, &acme.key, name).await;
        assert_eq!(voice["status"]["splitting"], "failed", "{voice}");
        let told = voice["status"]["splitting_error"].as_str().unwrap();
        assert!(told.contains(reason), "{told}");
        assert_eq!(voice["samples"], json!([]));
    }
    let text = file("a.mp3", b"no sound".to_vec()).text("name", "text");
    let refused = post_form(&app, &acme.key, "/api/voices/acme", text)
        .await
        .expect(400);
    assert!(
        refused["detail"].as_str().unwrap().contains("file"),
        "{refused}"
    );
    app.get(&acme.key, &path("text")).await.expect(404);
    tidy(&app).await;
    // A name that is wrong, or taken, leaves no file behind.
    let (sound, _) = spoken(1);
    let wrong = file("a.wav", wav(&sound)).text("name", "a/b");
    post_form(&app, &acme.key, "/api/voices/acme", wrong)
        .await
        .expect(400);
    let taken = file("a.wav", wav(&sound)).text("name", "junk");
    post_form(&app, &acme.key, "/api/voices/acme", taken)
        .await
        .expect(409);
    tidy(&app).await;
});
