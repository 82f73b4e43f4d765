//! Speech by espeak-ng.

use std::collections::BTreeSet;

use super::*;

const TEXT: &str = "The museum opens at nine. Come early, and bring a friend! There is a café on the ground \
    floor, with cakes. On Sundays it is closed.";

#[tokio::test]
async fn every_format_lasts_as_long_and_says_what_it_is() {
    let (app, partner) = embedded().await;
    let raw = sound(ask(
        &app,
        &partner.key,
        TEXT,
        json!({"response_format": "pcm"}),
    ))
    .await;
    assert_eq!(raw.header("content-type"), "application/octet-stream");
    assert_eq!(raw.header("x-svc-tts-sample-rate"), "24000");
    let expected = samples(&raw.bytes);
    assert!(expected.len() > 5 * 24_000, "{} samples", expected.len());
    let formats = [
        (json!({}), "audio/mpeg"),
        (json!({"response_format": "mp3"}), "audio/mpeg"),
        (json!({"response_format": "opus"}), "audio/ogg"),
        (json!({"response_format": "wav"}), "audio/wav"),
    ];
    for (format, kind) in formats {
        let answer = sound(ask(&app, &partner.key, TEXT, format)).await;
        assert_eq!(answer.header("content-type"), kind);
        let is_streamed = answer.header("transfer-encoding") == "chunked";
        assert_eq!(is_streamed, kind != "audio/wav", "{kind}");
        let decoded = decoded(&answer.bytes);
        let longer_ms = (decoded.len() as i64 - expected.len() as i64) * 1_000 / 24_000;
        println!(
            "{kind}: {} bytes, {longer_ms} ms longer",
            answer.bytes.len()
        );
        assert!(longer_ms.abs() <= 20, "{kind} is {longer_ms} ms longer");
        if kind == "audio/wav" {
            let length = answer.bytes.len();
            assert_eq!(answer.header("content-length"), length.to_string());
            assert_eq!(
                answer.bytes[4..8],
                u32::try_from(length - 8).unwrap().to_le_bytes()
            );
            assert_eq!(
                answer.bytes[40..44],
                u32::try_from(length - 44).unwrap().to_le_bytes()
            );
            assert!(decoded == expected);
        }
    }
}

#[tokio::test]
async fn every_language_speaks_audibly_and_in_its_own_way() {
    let (app, partner) = embedded().await;
    let greetings = [
        ("en", "Hello there, how are you?"),
        ("es", "Hola, ¿cómo estás?"),
        ("fr", "Bonjour, comment allez-vous ?"),
        ("de", "Guten Tag, wie geht es Ihnen?"),
        ("it", "Buongiorno, come sta?"),
        ("pt", "Olá, como está?"),
        ("pl", "Dzień dobry, jak się masz?"),
        ("ru", "Здравствуйте, как дела?"),
        ("nl", "Goedendag, hoe gaat het?"),
        ("ar", "مرحبا، كيف حالك؟"),
        ("zh-cn", "你好，你好吗？"),
        ("ja", "こんにちは、おげんきですか。"),
        ("ko", "안녕하세요? 잘 지내세요?"),
        ("hi", "नमस्ते, आप कैसे हैं?"),
        ("he", "שלום, מה שלומך?"),
    ];
    let mut heard = BTreeSet::new();
    for (language, greeting) in greetings {
        // The same letters in each language, too. Its Hebrew voice passes over digits.
        let digits = if language == "he" {
            greeting
        } else {
            "1, 2, 3, 4, 5"
        };
        for (voice, text) in [("en", greeting), ("en+f3", greeting), ("de+f3", digits)] {
            let more = json!({"language": language, "voice": voice, "response_format": "pcm"});
            let answer = sound(ask(&app, &partner.key, text, more)).await;
            let samples = samples(&answer.bytes);
            let loud = samples.iter().filter(|s| s.unsigned_abs() > 1_000).count();
            assert!(loud > 4_000, "{language} {voice}: {loud} loud samples");
            let is_new = heard.insert(answer.bytes) || (language == "he" && voice == "de+f3");
            assert!(is_new, "{language} {voice} sounds like another one");
        }
    }
}

#[tokio::test]
async fn the_language_is_detected_when_that_is_sure() {
    let (app, partner) = embedded().await;
    let pcm = |text: &'static str, more: Value| {
        let mut more = more;
        more["response_format"] = json!("pcm");
        let request = ask(&app, &partner.key, text, more);
        async { sound(request).await.bytes }
    };
    let german =
        "Das Museum öffnet um neun Uhr morgens, und wer früher kommt, muss draußen warten.";
    let detected = pcm(german, json!({})).await;
    assert!(detected == pcm(german, json!({"language": "de"})).await);
    assert!(detected == pcm(german, json!({"language": "auto"})).await);
    assert!(detected != pcm(german, json!({"language": "en"})).await);
    // Nobody can be sure about this one, so it is the voice's own language that speaks.
    let short = pcm("Taxi 12", json!({"voice": "fr"})).await;
    assert!(short == pcm("Taxi 12", json!({"voice": "fr", "language": "fr"})).await);
    assert!(short != pcm("Taxi 12", json!({"voice": "fr", "language": "de"})).await);
}

#[tokio::test]
async fn a_script_that_the_voice_does_not_read_is_spoken_in_its_language_or_refused() {
    let (app, partner) = embedded().await;
    let key = partner.key.as_str();
    // The names of the letters take 7 and 4 s.
    for (text, voice, language) in [
        ("สวัสดี", "en", json!("auto")),
        ("Καλημέρα σας", "en+f3", json!(null)),
        (
            "**Καλημέρα** [σας](https://www.example.org/a/page/about/greetings)",
            "en",
            json!("auto"),
        ),
    ] {
        let more = json!({"voice": voice, "language": language, "response_format": "pcm"});
        let answer = sound(ask(&app, key, text, more)).await;
        let seconds = samples(&answer.bytes).len() as f64 / 24_000.0;
        assert!((0.5..2.5).contains(&seconds), "{text}: {seconds} s");
    }
    // Chinese characters alone are Chinese, except for a Japanese voice.
    for voice in ["en", "zh-cn"] {
        let detected = json!({"voice": voice, "response_format": "pcm"});
        let named = json!({"voice": voice, "language": "zh-cn", "response_format": "pcm"});
        let detected = sound(ask(&app, key, "日本", detected)).await;
        assert!(detected.bytes == sound(ask(&app, key, "日本", named)).await.bytes);
    }
    // A name in a text of another script is not refused.
    let name = "The museum of Αθήνα opens at nine.";
    sound(ask(&app, key, name, json!({"language": "en"}))).await;

    for (text, voice, language, told) in [
        ("สวัสดี", "en", "en", ["Thai script", "language to auto"]),
        (
            "Привет",
            "de",
            "de",
            ["Cyrillic script", "language to auto"],
        ),
        (
            "こんにちは",
            "en",
            "en",
            ["Japanese script", "language to auto"],
        ),
        (
            "ᠮᠣᠩᠭᠣᠯ",
            "en",
            "auto",
            ["Mongolian script", "synthesizer.base_url"],
        ),
        ("日本", "ja", "auto", ["kana", "synthesizer.base_url"]),
        ("学校", "ja+f3", "auto", ["kana", "synthesizer.base_url"]),
        ("漢字", "en", "ja", ["kana", "synthesizer.base_url"]),
    ] {
        let more = json!({"voice": voice, "language": language});
        let refused = send(ask(&app, key, text, more)).await.expect(400);
        let reason = refused["errors"]["input"][0].as_str().unwrap();
        let has_all = told.iter().all(|told| reason.contains(told));
        assert!(has_all, "{text}: {refused}");
    }
}

#[tokio::test]
async fn speed_changes_how_long_it_lasts() {
    let (app, partner) = embedded().await;
    let mut lengths = Vec::new();
    for speed in [json!(0.5), json!(1), json!(null), json!(1.5)] {
        let more = json!({"speed": speed, "response_format": "pcm"});
        lengths.push(sound(ask(&app, &partner.key, TEXT, more)).await.bytes.len());
    }
    assert!(lengths[0] * 2 > lengths[1] * 3, "{lengths:?}");
    assert_eq!(lengths[1], lengths[2]);
    assert!(lengths[1] * 5 > lengths[3] * 6, "{lengths:?}");
}

#[tokio::test]
async fn the_listed_voices_speak() {
    let (app, partner) = embedded().await;
    let page = app.get(&partner.key, "/v2/audio/voices").await.expect(200);
    assert_eq!(page["may_have_others"], false);
    let voices = page["voices"].as_array().unwrap();
    let german = json!({"id": "de", "name": "German", "language": "de", "gender": "male"});
    assert!(voices.contains(&german), "{page}");
    let ids = voices.iter().map(|voice| voice["id"].as_str().unwrap());
    let ids = ids.collect::<BTreeSet<_>>();
    assert_eq!(ids.len(), voices.len(), "ids are unique");
    let languages = [
        "en", "es", "fr", "de", "it", "pt", "pl", "ru", "nl", "ar", "zh-cn", "ja", "ko", "hi", "he",
    ];
    for language in languages {
        let woman = format!("{language}+f3");
        assert!(
            ids.contains(language) && ids.contains(woman.as_str()),
            "{language}"
        );
    }
    let mut heard = BTreeSet::new();
    for id in ["en", "en+f3", "en-gb", "pt-br", "zh-cn"] {
        let more = json!({"voice": id, "response_format": "pcm"});
        assert!(heard.insert(sound(ask(&app, &partner.key, "Taxi 12", more)).await.bytes));
    }
}

#[tokio::test]
async fn the_longest_text_is_spoken_to_its_end() {
    let (app, partner) = embedded().await;
    let sentence = "This is a sentence of forty characters. ";
    assert_eq!(sentence.len(), 40);
    let text = sentence.repeat(50);
    let began = tokio::time::Instant::now();
    let mut response = ask(&app, &partner.key, &text, json!({"response_format": "pcm"}))
        .send()
        .await
        .unwrap();
    let first = response.chunk().await.unwrap().unwrap().len();
    let first_after = began.elapsed();
    let mut bytes = first;
    while let Some(piece) = response.chunk().await.unwrap() {
        bytes += piece.len();
    }
    println!(
        "first bytes after {first_after:?}, all {bytes} after {:?}",
        began.elapsed()
    );
    assert!(
        first_after * 2 < began.elapsed(),
        "first bytes after {first_after:?}"
    );
    let one = sound(ask(
        &app,
        &partner.key,
        sentence,
        json!({"response_format": "pcm"}),
    ))
    .await;
    let ratio = bytes as f64 / one.bytes.len() as f64;
    assert!((42.0..58.0).contains(&ratio), "{ratio} sentences");
}

#[tokio::test]
async fn what_was_encoded_can_be_read_back() {
    let (app, partner) = embedded().await;
    let longest = Duration::from_secs(60);
    let opus = sound(ask(
        &app,
        &partner.key,
        TEXT,
        json!({"response_format": "opus"}),
    ))
    .await;
    let raw = sound(ask(
        &app,
        &partner.key,
        TEXT,
        json!({"response_format": "pcm"}),
    ))
    .await;
    let seconds = (raw.bytes.len() / 2) as f64 / 24_000.0;
    let near = |samples: &[i16]| {
        let off = (samples.len() as f64 / 16_000.0 - seconds).abs();
        let loud = samples.iter().filter(|s| s.unsigned_abs() > 1_000).count();
        assert!(
            off < 0.005 && loud > 8_000,
            "{off} s off, {loud} loud samples"
        );
    };
    near(&colloquy::speech::decode_ogg(&opus.bytes, longest).unwrap());
    // What others record: Vorbis, stereo, long packets, other rates.
    let wav = sound(ask(
        &app,
        &partner.key,
        TEXT,
        json!({"response_format": "wav"}),
    ))
    .await;
    let recorders: [&[&str]; 4] = [
        &["-c:a", "libopus", "-ac", "2", "-f", "ogg"],
        &[
            "-c:a",
            "libopus",
            "-frame_duration",
            "60",
            "-b:a",
            "16k",
            "-f",
            "ogg",
        ],
        &["-c:a", "libvorbis", "-ar", "44100", "-ac", "2", "-f", "ogg"],
        &["-c:a", "libvorbis", "-ar", "16000", "-f", "ogg"],
    ];
    for recorder in recorders {
        let file = ffmpeg(&wav.bytes, recorder);
        near(&colloquy::speech::decode_ogg(&file, longest).unwrap());
        let short = colloquy::speech::decode_ogg(&file, Duration::from_secs(2));
        assert!(short.is_err_and(|error| error.to_string() == "longer than 2 s"));
        for cut in [file.len() / 3, 100, 20] {
            // Whatever comes of a part, it is no panic, and no more than the whole.
            let part = colloquy::speech::decode_ogg(&file[..cut], longest);
            assert!(part.is_ok_and(|part| part.len() < 16_000 * 20) || cut < file.len() / 3);
        }
    }
    for file in [&b""[..], b"OggS", &wav.bytes] {
        assert!(colloquy::speech::decode_ogg(file, longest).is_err());
    }
}

/// How many processes speak at this moment that this process has started.
fn speaking() -> usize {
    let own = std::process::id().to_string();
    let output = Command::new("pgrep")
        .args(["-c", "-P", &own, "espeak-ng"])
        .output()
        .unwrap();
    let count = String::from_utf8_lossy(&output.stdout);
    count.trim().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_of_requests_waits_in_a_fair_queue() {
    let (app, acme) = embedded().await;
    let other = app.partner("other").await;
    let slots = 2 * thread::available_parallelism().unwrap().get();
    sound(ask(&app, &acme.key, "Hello.", json!({}))).await;
    let text = "Spoken for a crowd.";
    let tasks = tokio_util::task::TaskTracker::new();
    let crowd = (0..100).map(|_| {
        let request = ask(&app, &acme.key, text, json!({"response_format": "pcm"}));
        tasks.spawn(async move {
            let answer = request.send().await.unwrap();
            let retry = answer.headers().contains_key("retry-after");
            let status = answer.status();
            let whole = answer.bytes().await.is_ok();
            (status.as_u16(), retry, whole)
        })
    });
    let crowd = crowd.collect::<Vec<_>>();
    let watched = tasks.spawn(async move {
        let mut most = 0;
        loop {
            most = most.max(speaking());
            if most > slots {
                return most;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    harness::eventually("the crowd waits", || async {
        let metrics = app.app.metrics.render();
        let waiting = metrics
            .lines()
            .find_map(|line| line.strip_prefix("colloquy_queue_waiting{queue=\"synthesizer\"} "));
        waiting.is_some_and(|waiting| waiting.parse::<f64>().unwrap() > 10.0)
    })
    .await;
    sound(ask(&app, &other.key, "Hello.", json!({}))).await;
    let waiting = crowd.iter().filter(|one| !one.is_finished()).count();
    assert!(
        waiting > 20,
        "the other one came in the middle, {waiting} wait"
    );
    let mut served = 0;
    for one in crowd {
        match one.await.unwrap() {
            (200, _, true) => served += 1,
            (503, true, _) => {}
            odd => panic!("{odd:?}"),
        }
    }
    println!("{served} of 100 were served");
    assert!(served >= 2 * slots, "{served}");
    assert!(!watched.is_finished(), "more than {slots} processes");
    watched.abort();
}

/// One rule for what is said and what is heard, wherever it is asked for.
#[tokio::test]
async fn languages_that_nothing_here_knows_are_refused_with_what_to_install() {
    let (app, partner) = embedded().await;
    let key = partner.key.as_str();
    let call = async |language: &str| {
        let character =
            json!({"personality": "You guide visitors.", "parameters": {"language": language}});
        let body = json!({"character": character, "call_time_limit_seconds": 600});
        app.post(key, "/v2/calls", body).await
    };
    call("English").await.expect(200);
    let told = |refused: &Value| {
        let told = refused.to_string();
        assert!(told.contains("colloquy models pull whisper-base"), "{told}");
        told
    };
    for language in [
        "German",
        "ja",
        "Turkish",
        "Türkçe",
        "Ukrainian",
        "Swahili",
        "vie",
        "auto",
    ] {
        let refused = call(language).await.expect(400);
        assert!(told(&refused).contains("character.parameters.language"));
    }
    let parameters = json!({"language": "English", "voice": {"language": "German"}});
    let character = json!({"personality": "You guide visitors.", "parameters": parameters});
    let body = json!({"character": character, "call_time_limit_seconds": 600});
    let refused = app.post(key, "/v2/calls", body).await.expect(400);
    assert!(told(&refused).contains("character.parameters.voice.language"));
    let unknown = call("Elvish").await.expect(400).to_string();
    assert!(unknown.contains("is not a known language"), "{unknown}");

    let message = async |language: &str, sound: bool| {
        let message = match sound {
            true => {
                json!({"id": "m1", "type": "audio", "audio_file_id": "a", "is_processed": false})
            }
            false => json!({"id": "m1", "type": "text", "text": "Hi", "is_processed": false}),
        };
        let character =
            json!({"personality": "You guide visitors.", "parameters": {"language": language}});
        let input = json!({
            "messages": [message], "character": character, "generate_audio": false,
            "audio_files": {"a": "T2dnUw=="},
        });
        app.post(key, "/v2/completions", json!({"input": input}))
            .await
    };
    message("German", false).await.expect(200);
    message("English", true).await.expect(200);
    for language in ["German", "Turkish", "auto"] {
        let refused = message(language, true).await.expect(400);
        assert!(told(&refused).contains("input.character.parameters.language"));
    }

    let transcript = async |language: Value| {
        let mut body = json!({"audio_url": "https://example.com/a.mp3"});
        body.as_object_mut()
            .unwrap()
            .extend(language.as_object().unwrap().clone());
        app.post(key, "/v2/transcript", body).await
    };
    for (language, field) in [
        (json!({"language_code": "de"}), "language_code"),
        (json!({"language_auto": true}), "language_auto"),
    ] {
        let refused = transcript(language).await.expect(422);
        told(&refused["errors"][field]);
    }

    for (text, voice) in [("図書館は九時に開きます。", "en"), ("Taxi, 東京", "ja+f3")]
    {
        let kanji = json!({"language": "auto", "voice": voice});
        let refused = send(ask(&app, key, text, kanji)).await.expect(400);
        let told_of = refused["errors"]["input"][0].as_str().unwrap();
        assert!(told_of.contains("kana"), "{voice}: {refused}");
    }
    let speaks =
        json!({"personality": "You guide visitors.", "parameters": {"voice": {"id": "ja"}}});
    let body = json!({"character": speaks, "call_time_limit_seconds": 600});
    let refused = app.post(key, "/v2/calls", body).await.expect(400);
    let refused = refused.to_string();
    assert!(
        refused.contains("character") && refused.contains("kana"),
        "{refused}"
    );

    let health = app.get("", "/health/deep").await.json();
    let hears = &health["checks"]["transcriber"];
    assert_eq!(hears["languages"], json!(["en"]), "{health}");
    told(&hears["warning"]);
}
