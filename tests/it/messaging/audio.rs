//! Sound in and out with the programs as they are installed, and sound that cannot be used.

use std::{
    fs,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use colloquy::{
    Config, jobs,
    messaging::Complete,
    providers::{
        self, Pcm, ProviderError, ProviderErrorKind, SpeechRequest, SpeechStream, Synthesizer,
        Transcriber, Utterance, VoiceList, embedded::PocketSphinx,
    },
    speech::decode_ogg,
};
use futures_util::stream;
use harness::{
    client::go_forward,
    doubles::Doubles,
    eventually, news, patience,
    sounds::{ffmpeg, generated},
    upstream::Script,
};
use tokio_util::sync::CancellationToken;

use super::*;

/// A voice that says "go forward ten meters", whatever it is to say.
struct Parrot;

#[async_trait]
impl Synthesizer for Parrot {
    fn name(&self) -> &str {
        "parrot"
    }

    async fn speak(&self, _request: SpeechRequest) -> Result<SpeechStream, ProviderError> {
        let pcm = Pcm {
            samples: go_forward(),
            sample_rate_hz: 16_000,
        };
        Ok(Box::pin(stream::iter([Ok(pcm)])))
    }

    async fn voices(&self) -> Result<VoiceList, ProviderError> {
        Ok(VoiceList::default())
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}

/// A voice that reads nothing of the script that it is given.
struct Illiterate;

#[async_trait]
impl Synthesizer for Illiterate {
    fn name(&self) -> &str {
        "illiterate"
    }

    fn readable(&self, _voice: Option<&str>, _language: Option<&str>, _text: String) -> String {
        String::new()
    }

    async fn speak(&self, request: SpeechRequest) -> Result<SpeechStream, ProviderError> {
        panic!("asked to speak {:?}", request.text)
    }

    async fn voices(&self) -> Result<VoiceList, ProviderError> {
        Ok(VoiceList::default())
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_the_voice_cannot_read_has_no_sound() {
    let mut providers = Doubles::default().providers(&Config::default());
    providers.batch.synthesizer = Arc::new(Illiterate);
    let builder = TestApp::builder(&TestDatabase::sqlite()).quick_worker();
    let app = builder.providers(providers).start().await;
    let (acme, _) = app.acme_and_other().await;
    let spoken = json!({"generate_audio": true});
    let hello = json!([written("m1", "Hello")]);
    let path = asked(&app, &acme.key, question(hello, spoken)).await;
    let answered = ended(&app, &acme.key, &path).await;
    assert_eq!(answered["state"], "completed", "{answered}");
    let answer = json!({"type": "text", "text": "Hello there. How can I help?"});
    assert_eq!(answered["output"]["messages"][1], answer);
    assert_eq!(answered["output"]["audio_files"], json!({}));
    let read = app.get(&acme.key, &path).await;
    let warning = "the answer has no sound: the voice reads nothing of it";
    assert_eq!(read.header("x-colloquy-warning"), warning);
}

/// A server whose chat model is an upstream, and whose voice is espeak-ng.
async fn with_espeak() -> (TestApp, TestPartner, Upstream) {
    let upstream = Upstream::start().await;
    let mut config = Config::default();
    config.calls.provider_timeout_ms = 120_000;
    upstream.configure(&mut config);
    config.synthesizer = Config::default().synthesizer;
    let builder = TestApp::builder(&TestDatabase::sqlite()).quick_worker();
    let providers = providers::from_config(&config).unwrap();
    let app = builder.providers(providers).start().await;
    let (acme, _) = app.acme_and_other().await;
    (app, acme, upstream)
}

/// A question to a character of these parameters, whose answer is to be spoken.
fn spoken_by(parameters: Value) -> Value {
    let character = json!({"personality": "You are a guide.", "parameters": parameters});
    let more = json!({"generate_audio": true, "character": character});
    question(json!([written("m1", "Hello")]), more)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_kanji_fails_with_what_is_missing() {
    let (app, acme, upstream) = with_espeak().await;
    upstream.set_default(Api::Chat, Script::text("こんにちは、学校です。"));
    for parameters in [
        json!({"language": "Japanese"}),
        json!({"language": "auto"}),
        json!({"voice": "ja+f3"}),
    ] {
        let (code, message) = reason(&app, &acme.key, spoken_by(parameters.clone())).await;
        assert_eq!(code, "speech_failed", "{parameters}");
        let told = "The answer could not be spoken: the voices of this server read Japanese in kana only; \
                    kanji need a speech service (synthesizer.base_url)";
        assert_eq!(message, told, "{parameters}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_without_sound_says_why() {
    let (app, acme, upstream) = with_espeak().await;
    for (said, told) in [
        ("こんにちは、学校です", "Japanese script"),
        ("สวัสดี", "Thai script"),
        ("Hello there.", ""),
    ] {
        upstream.set_default(Api::Chat, Script::text(said));
        let body = spoken_by(json!({"language": "English"}));
        let path = asked(&app, &acme.key, body).await;
        let completion = ended(&app, &acme.key, &path).await;
        assert_eq!(completion["state"], "completed", "{completion}");
        let output = &completion["output"];
        assert_eq!(output.as_object().unwrap().len(), 2, "{output}");
        assert_eq!(output["messages"][1]["text"], said);
        let has_sound = output["audio_files"].get("response").is_some();
        assert_eq!(has_sound, told.is_empty(), "{output}");
        let read = app.get(&acme.key, &path).await;
        let warning = read.header("x-colloquy-warning");
        let is_told = warning.starts_with("the answer has no sound: ") && warning.contains(told);
        assert_eq!(is_told, !has_sound, "{warning}");
        assert!(!warning.contains(said), "{warning}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_in_another_script_is_spoken_by_a_voice_that_reads_it() {
    let (app, acme, upstream) = with_espeak().await;
    upstream.set_default(Api::Chat, Script::text("สวัสดี"));
    for voice in [json!(null), json!("en"), json!("de+f3")] {
        let body = spoken_by(json!({"language": "auto", "voice": voice}));
        let answered = output(&app, &acme.key, body).await;
        let file = answered["audio_files"]["response"].as_str().unwrap();
        let said = decode_ogg(&STANDARD.decode(file).unwrap(), Duration::from_secs(20)).unwrap();
        // The names of its letters take 7 s.
        let seconds = said.len() as f64 / 16_000.0;
        assert!((0.5..2.5).contains(&seconds), "{voice}: {seconds} s");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_in_an_answer_is_understood_in_a_question() {
    let mut providers = Doubles::default().providers(&Config::default());
    providers.batch.synthesizer = Arc::new(Parrot);
    providers.batch.transcriber = Arc::new(PocketSphinx::default());
    let builder = TestApp::builder(&TestDatabase::sqlite()).quick_worker();
    let app = builder.with_decoder().providers(providers).start().await;
    let (acme, _) = app.acme_and_other().await;

    let personality = json!({"personality": "You say one thing."});
    let spoken = json!({"generate_audio": true, "character": personality});
    let first = output(
        &app,
        &acme.key,
        question(json!([written("m1", "Hello")]), spoken),
    )
    .await;
    let file = first["audio_files"]["response"].as_str().unwrap();
    let said = decode_ogg(&STANDARD.decode(file).unwrap(), Duration::from_secs(10)).unwrap();
    // The answer has two sentences, and each is this recording.
    assert!(said.len().abs_diff(2 * go_forward().len()) < 32);

    let messages = json!([voiced("m1", "a"), written("m2", "Understood?")]);
    let files = json!({"a": file.trim_end_matches('='), "not named": file});
    let more = json!({"audio_files": files});
    let second = output(&app, &acme.key, question(messages, more)).await;
    let twice = "go forward ten meters go forward ten meters";
    let heard = json!([
        {"id": "m1", "type": "audio", "text": twice},
        {"id": "m2", "type": "text", "text": "Understood?"},
    ]);
    assert_eq!(
        second["messages"].as_array().unwrap()[..2],
        heard.as_array().unwrap()[..]
    );
}

/// What ffmpeg makes of raw speech at 16,000 samples a second: Ogg with Opus, base64.
pub(super) fn recorded_file(path: &str) -> String {
    let raw = ["-f", "s16le", "-ar", "16000", "-ac", "1", "-i", "input"];
    let arguments = [&raw[..], &["-c:a", "libopus", "-b:a", "48k"]].concat();
    let sound = fs::read(path).unwrap();
    STANDARD.encode(ffmpeg(&arguments, Some(&sound), "a.ogg"))
}

/// What ffmpeg makes of its own source of sound, base64.
pub(super) fn recorded(source: &str, codec: &[&str]) -> String {
    STANDARD.encode(generated(source, "a.ogg", codec))
}

/// A transcriber that detects German, and says which language it was to hear.
struct Polyglot;

#[async_trait]
impl Transcriber for Polyglot {
    fn name(&self) -> &str {
        "polyglot"
    }

    async fn language(
        &self,
        _utterance: Utterance,
        _among: Option<&[&str]>,
    ) -> Result<Option<String>, ProviderError> {
        Ok(Some("de".to_owned()))
    }

    async fn transcribe(&self, utterance: Utterance) -> Result<String, ProviderError> {
        Ok(utterance.language.unwrap_or_else(|| "unknown".to_owned()))
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voice_message_is_heard_in_the_language_that_is_named_or_detected() {
    let mut providers = Doubles::default().providers(&Config::default());
    providers.batch.transcriber = Arc::new(Polyglot);
    let builder = TestApp::builder(&TestDatabase::sqlite()).quick_worker();
    let app = builder.with_decoder().providers(providers).start().await;
    let (acme, _) = app.acme_and_other().await;
    let tone = recorded("sine=duration=0.5:sample_rate=16000", &["-c:a", "libopus"]);
    for (language, heard) in [
        ("auto", "de"),
        ("Türkçe", "tr"),
        ("British English", "en"),
        ("", "unknown"),
    ] {
        let character =
            json!({"personality": "You guide visitors.", "parameters": {"language": language}});
        let more = json!({"audio_files": {"a": tone}, "character": character});
        let asked = question(json!([voiced("m1", "a")]), more);
        let answer = output(&app, &acme.key, asked).await;
        assert_eq!(answer["messages"][0]["text"], heard, "{language}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_says_what_failed_and_nothing_of_who() {
    let builder = TestApp::builder(&TestDatabase::sqlite()).quick_worker();
    let builder = builder.config(|config| config.limits.completion_audio_seconds = 1);
    let app = builder.with_decoder().start().await;
    let (acme, _) = app.acme_and_other().await;
    let tone = recorded("sine=duration=0.5:sample_rate=16000", &["-c:a", "libopus"]);
    let other = recorded("sine=duration=0.5:sample_rate=16000", &["-c:a", "flac"]);
    let heard = |files: Value, audio: bool| {
        let ids = files.as_object().unwrap().keys();
        let messages = ids.map(|id| voiced(id, id)).collect::<Vec<_>>();
        let more = json!({"audio_files": files, "generate_audio": audio});
        question(json!(messages), more)
    };
    output(&app, &acme.key, heard(json!({"a": tone}), true)).await;

    let (code, message) = reason(&app, &acme.key, heard(json!({"a": other}), false)).await;
    assert_eq!(code, "audio_unreadable");
    assert_eq!(
        message,
        "An audio file cannot be read: not Opus or Vorbis of one or two channels"
    );
    // Each of them is short enough, both are not.
    let longer = recorded(
        "sine=duration=0.7:sample_rate=16000",
        &["-c:a", "libvorbis"],
    );
    output(&app, &acme.key, heard(json!({"a": longer}), false)).await;
    let both = json!({"a": tone, "b": longer});
    let (code, _) = reason(&app, &acme.key, heard(both, false)).await;
    assert_eq!(code, "audio_too_long");

    let switches = [
        (&app.doubles.transcriber, "transcription_failed"),
        (&app.doubles.chat, "reply_failed"),
        (&app.doubles.synthesizer, "speech_failed"),
    ];
    for (switch, expected) in switches {
        switch.fail(Some(ProviderErrorKind::Rejected));
        let (code, message) = reason(&app, &acme.key, heard(json!({"a": tone}), true)).await;
        assert_eq!(code, expected);
        assert!(!message.contains("double"), "{message}");
        switch.fail(None);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_voice_that_fails_says_why() {
    let builder = TestApp::builder(&TestDatabase::sqlite()).quick_worker();
    let app = builder.start().await;
    let (acme, _) = app.acme_and_other().await;
    for (kind, why) in [
        (ProviderErrorKind::Rejected, "refused the request"),
        (ProviderErrorKind::Misconfigured, "not set up"),
    ] {
        app.doubles.synthesizer.fail(Some(kind));
        let spoken = json!({"generate_audio": true});
        let asked = question(json!([written("m1", "Hello")]), spoken);
        let (code, message) = reason(&app, &acme.key, asked).await;
        assert_eq!(code, "speech_failed");
        assert_eq!(message, format!("The answer could not be spoken: {why}"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_that_passes_is_none_of_the_completion() {
    let builder = TestApp::builder(&TestDatabase::sqlite()).quick_worker();
    let app = builder.start().await;
    let (acme, _) = app.acme_and_other().await;
    for switch in [&app.doubles.chat, &app.doubles.synthesizer] {
        switch.set_up(false);
        let path = asked(
            &app,
            &acme.key,
            question(
                json!([written("m1", "Hi")]),
                json!({"generate_audio": true}),
            ),
        )
        .await;
        eventually("it was tried", || async {
            let id = path.rsplit_once('/').unwrap().1;
            let job = jobs::find::<Complete>(app.app.store.db(), id).await;
            job.unwrap().unwrap().last_error.is_some()
        })
        .await;
        let waiting = app.get(&acme.key, &path).await.expect(200);
        assert_eq!(waiting["state"], "in-progress");
        switch.set_up(true);
        app.advance(Duration::from_secs(60));
        let ended = ended(&app, &acme.key, &path).await;
        assert_eq!(ended["state"], "completed", "{ended}");
    }
}

/// A transcriber that takes for ever over sound of 0.4 s and more, until it is let go.
struct Slow {
    waiting: AtomicUsize,
    go: CancellationToken,
}

#[async_trait]
impl Transcriber for Slow {
    fn name(&self) -> &str {
        "slow"
    }

    async fn transcribe(&self, utterance: Utterance) -> Result<String, ProviderError> {
        if utterance.samples.len() >= 6_400 {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            news::tell();
            self.go.cancelled().await;
        }
        Ok("hello".to_owned())
    }

    async fn check(&self) -> Result<(), ProviderError> {
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn voice_messages_of_a_partner_hold_nobody_up() {
    let database = TestDatabase::sqlite();
    let slow = Arc::new(Slow {
        waiting: AtomicUsize::new(0),
        go: CancellationToken::new(),
    });
    let mut providers = Doubles::default().providers(&Config::default());
    providers.batch.transcriber = slow.clone();
    let builder = TestApp::builder(&database).quick_worker();
    let builder = builder.with_decoder().providers(providers);
    let app = builder.start().await;
    let (acme, other) = app.acme_and_other().await;
    let file = |seconds: &str| {
        let source = format!("sine=duration={seconds}:sample_rate=16000");
        recorded(&source, &["-c:a", "libopus"])
    };
    let (long, short) = (file("0.5"), file("0.2"));
    let spoken = |partner: &str, file: &str| {
        let character = format!("repo:{partner}/ada");
        let more = json!({"audio_files": {"a": file}, "character": character});
        question(json!([voiced("m1", "a")]), more)
    };
    let mut paths = Vec::new();
    for _ in 0..24 {
        paths.push(asked(&app, &other.key, spoken("other", &long)).await);
    }
    let waiting = || slow.waiting.load(Ordering::SeqCst);
    eventually("one partner has what it may", || async { waiting() == 6 }).await;
    let began = Instant::now();
    for _ in 0..3 {
        output(&app, &acme.key, spoken("acme", &short)).await;
    }
    let took = began.elapsed();
    assert!(took < patience(Duration::from_secs(10)), "{took:?}");
    assert_eq!(waiting(), 6, "no further one was begun");
    // What waited is answered.
    slow.go.cancel();
    for path in paths {
        assert_eq!(ended(&app, &other.key, &path).await["state"], "completed");
    }
}
