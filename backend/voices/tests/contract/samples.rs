//! Voices of samples that come one by one.

use serde_json::Value;
use support::on_each_database;
use test_routes::{
    Form, Part,
    sounds::{go_forward, wav},
    voices::{RATE_HZ, create, file, make_empty, path, post_form, processed, put},
};
use test_sounds::{converted, decoded_by_ffmpeg};

use crate::{builder, bytes, start, tidy};

on_each_database!(samples_come_one_by_one, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    make_empty(&app, &acme.key, "Anna").await;
    let samples = format!("{}/samples", path("Anna"));
    let sound = wav(&go_forward());
    let forms = [
        file("a.wav", sound.clone()),
        file("a.bin", converted(&sound, "a.mp3", &[])),
        Form::new().part(
            "sample",
            Part::bytes(converted(&sound, "a.webm", &[])).file_name("x"),
        ),
    ];
    for (number, form) in forms.into_iter().enumerate() {
        let made = post_form(&app, &acme.key, &samples, form).await.expect(201);
        assert_eq!(made["index"], number);
        let duration = made["duration"].as_f64().unwrap();
        assert!(
            (duration - go_forward().len() as f64 / 16_000.0).abs() < 0.1,
            "{made}"
        );
        let opus = bytes(&app, &acme.key, &format!("{samples}/{number}")).await;
        let heard = decoded_by_ffmpeg(&opus, 48_000).len() as f64 / 48_000.0;
        assert!((heard - duration).abs() < 0.05, "{heard} {duration}");
    }
    let junk = [b"ID3\x04\0\0\0\0\0\x0a".to_vec(), vec![0x55; 4_000]].concat();
    for (form, reason) in [
        (file("a.mp3", b"no sound at all".to_vec()), "file"),
        (file("a.mp3", junk), "file"),
        (
            file("a.wav", wav(&vec![0; 3 * RATE_HZ])),
            "nothing is to be heard",
        ),
        (
            file("a.wav", wav(&go_forward()[..RATE_HZ / 2])),
            "1 s at least",
        ),
        (file("a.wav", wav(&vec![900; 61 * RATE_HZ])), "60 s at most"),
        (Form::new().text("name", "x"), "name"),
        (Form::new().text("x", ""), "x"),
        (Form::new(), "body"),
    ] {
        let refused = post_form(&app, &acme.key, &samples, form).await.expect(400);
        let told =
            [&refused["field"], &refused["detail"]].map(|told| told.as_str().unwrap_or_default());
        let is_told = told.iter().any(|told| told.contains(reason));
        assert!(is_told, "{reason}: {refused}");
    }
    let preferred = format!("{}/preferred-sample", path("Anna"));
    let set = put(&app, &acme.key, &preferred, &[("sample_index", "1")])
        .await
        .expect(200);
    assert_eq!(set["preferred_sample_index"], 1);
    put(&app, &acme.key, &preferred, &[("sample_index", "9")])
        .await
        .expect(400);
    put(&app, &acme.key, &preferred, &[("sample_index", "x")])
        .await
        .expect(400);
    let cleared = put(&app, &acme.key, &preferred, &[("sample_index", "")])
        .await
        .expect(200);
    assert_eq!(cleared["preferred_sample_index"], Value::Null);
    put(&app, &acme.key, &preferred, &[("sample_index", "1")])
        .await
        .expect(200);
    app.delete(&acme.key, &format!("{samples}/1"))
        .await
        .expect(204);
    app.delete(&acme.key, &format!("{samples}/1"))
        .await
        .expect(404);
    let voice = app.get(&acme.key, &path("Anna")).await.expect(200);
    assert_eq!(voice["preferred_sample_index"], Value::Null);
    let left = voice["samples"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["index"].as_i64().unwrap());
    assert_eq!(left.collect::<Vec<_>>(), [0, 2]);
    let next = post_form(&app, &acme.key, &samples, file("a.wav", sound.clone())).await;
    assert_eq!(next.expect(201)["index"], 3);
    tidy(&app).await;
    // Those of a recording are its own.
    create(&app, &acme, "Bert", sound.clone()).await;
    processed(&app, &acme.key, "Bert").await;
    let of_recording = format!("{}/samples", path("Bert"));
    let added = post_form(&app, &acme.key, &of_recording, file("a.wav", sound)).await;
    added.expect(400);
});
