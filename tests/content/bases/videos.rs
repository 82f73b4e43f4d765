//! Pages of video platforms, described by a program that prints what yt-dlp prints.

use std::os::unix::fs::PermissionsExt as _;

use axum::{Router, routing::get};
use colloquy::{
    config::{Secret, TranscriberConfig},
    providers,
};
use harness::{
    TestDatabase,
    client::go_forward,
    eventually,
    sounds::{converted, wav},
    upstream::{Api, Script, Upstream},
};
use tempfile::TempDir;
use test_routes::videos::PRINT;
use tokio::{net::TcpListener, task::JoinSet};

use super::*;

const JSON3: &str = r#"{"events": [{"tStartMs": 2000, "segs": [{"utf8": "Lions "}, {"utf8": "sleep all day."}]},
    {"tStartMs": 62000, "segs": [{"utf8": "They hunt at night."}]}]}"#;
const VTT: &str = "WEBVTT\n\n00:00:03.000 --> 00:00:05.000\nTigers swim.\n";

/// What a program prints and how it ends, by a word in the address.
fn program(folder: &TempDir, answers: &[(&str, String, i32)]) -> std::path::PathBuf {
    let mut cases = String::new();
    for (at, (word, printed, code)) in answers.iter().enumerate() {
        let file = folder.path().join(format!("{at}.json"));
        fs::write(&file, printed).unwrap();
        let to = if *code == 0 { "" } else { " >&2" };
        cases += &format!("  *{word}*) print {}{to}; exit {code};;\n", file.display());
    }
    let script = format!(
        "#!/bin/sh\n{PRINT}for last; do :; done\nfor option in --dump-single-json --no-cache-dir --config-locations --use-extractors; do\n  \
         case \" $* \" in *\" $option \"*) ;; *) exit 9;; esac\ndone\ncase \"$last\" in\n{cases}esac\nexit 3\n"
    );
    let path = folder.path().join("yt-dlp");
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// Sound as the platform has it.
fn sound() -> Vec<u8> {
    converted(&wav(&go_forward()), "a.m4a", &["-c:a", "aac"])
}

async fn site() -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let sound = sound();
    let router = Router::new()
        .route("/captions.json3", get(|| async { JSON3 }))
        .route("/captions.vtt", get(|| async { VTT }))
        .route("/sound.m4a", get(move || async move { sound }));
    let mut server = JoinSet::new();
    server.spawn(async move {
        axum::serve(listener, router).await.unwrap();
    });
    (origin, server)
}

/// A server whose program describes videos so.
async fn server(upstream: &Upstream, folder: &TempDir, answers: &[(&str, String, i32)]) -> TestApp {
    let program = program(folder, answers);
    let listening = TranscriberConfig {
        base_url: Some(upstream.base_url()),
        api_key: Some(Secret::new("upstream-key")),
        model: Some("scripted-transcriber".to_owned()),
        ..TranscriberConfig::default()
    };
    let settings = colloquy::Config {
        transcriber: listening.clone(),
        ..colloquy::Config::default()
    };
    let app = TestApp::builder(&TestDatabase::sqlite()).config(|config| {
        config.fetch.allow_private = true;
        config.knowledge.yt_dlp = Some(program);
        config.sandbox.readable = vec![folder.path().to_owned()];
        config.knowledge.video_hosts = vec!["www.videos.example".to_owned()];
        config.transcriber = listening;
    });
    let app = app.providers(providers::from_config(&settings).unwrap());
    app.with_decoder().quick_worker().start().await
}

fn address(word: &str) -> String {
    format!("https://www.videos.example/watch?v={word}")
}

/// Makes a document of each address. Their ids, in this order.
async fn brought(app: &TestApp, key: &str, words: &[&str]) -> Vec<String> {
    let urls: Vec<String> = words.iter().map(|word| address(word)).collect();
    let body = json!({"folder": "texts", "urls": urls});
    let made = app
        .post(key, &format!("/api/documents/{BASE}/batch"), body)
        .await
        .expect(200);
    let made = made["results"].as_array().unwrap().iter();
    made.map(|result| result["document_id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn videos_are_read_by_their_captions_or_their_sound() {
    let (origin, _site) = site().await;
    let folder = tempfile::tempdir().unwrap();
    let file = |ext: &str| json!({"ext": ext, "url": format!("{origin}/captions.{ext}")});
    let formats = json!([
        {"url": format!("{origin}/film"), "ext": "mp4", "acodec": "mp4a", "vcodec": "avc1", "protocol": "https", "filesize": 1},
        {"url": format!("{origin}/sound.m4a"), "ext": "m4a", "acodec": "mp4a", "vcodec": "none", "protocol": "https", "filesize": 9},
    ]);
    let about = |more: Value| {
        let mut about = json!({"title": "Feeding lions", "uploader": "Ada", "language": "en", "_type": "video"});
        about
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        about.to_string()
    };
    let answers = [
        (
            "captions",
            about(json!({"subtitles": {"en": [file("json3"), file("vtt")]}, "formats": formats})),
            0,
        ),
        (
            "automatic",
            about(json!({"automatic_captions": {"en": [file("vtt")]}})),
            0,
        ),
        ("sound", about(json!({"formats": formats})), 0),
        ("live", about(json!({"is_live": true})), 0),
        (
            "private",
            "ERROR: [platform] x: Private video. Sign in if you may.\n".to_owned(),
            1,
        ),
        ("junk", "<html>".to_owned(), 0),
        ("list", about(json!({"_type": "playlist"})), 0),
        ("silent", about(json!({})), 0),
    ];
    let upstream = Upstream::start().await;
    upstream.set_default(Api::Transcription, Script::text("go forward ten meters"));
    let app = server(&upstream, &folder, &answers).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let words = answers.map(|(word, ..)| word);
    let made = brought(&app, key, &words).await;
    let expected = [
        Ok("[00:02] Lions sleep all day.\n\n[01:02] They hunt at night."),
        Ok("[00:03] Tigers swim."),
        Ok("[00:00] go forward ten meters"),
        Err("the video is live"),
        Err("Private video"),
        Err("cannot be understood"),
        Err("several videos"),
        Err("neither captions nor sound"),
    ];
    for (at, expected) in expected.into_iter().enumerate() {
        let (id, word) = (&made[at], words[at]);
        let document = digitized(&app, key, id).await;
        match expected {
            Ok(text) => {
                assert_eq!(document["status"], "digitized", "{word}: {document}");
                let content = format!("/api/documents/{BASE}/{id}/content/digitized");
                let content = app.get(key, &content).await.expect(200);
                assert_eq!(content["content"].as_str().unwrap().trim(), text, "{word}");
            }
            Err(why) => {
                assert_eq!(document["status"], "failed", "{word}: {document}");
                let error = document["processing_error"].as_str().unwrap();
                assert!(error.contains(why), "{word}: {error}");
            }
        }
        let address = address(word);
        let name = match word {
            "private" | "junk" | "list" => address.as_str(),
            _ => "Feeding lions",
        };
        assert_eq!(document["name"], name, "{word}");
        if at < 2 {
            assert_eq!(document["processing_warning"], Value::Null, "{document}");
        }
        if at < 3 {
            assert_eq!(
                (&document["author"], &document["language"]),
                (&json!("Ada"), &json!("en"))
            );
        }
        if word == "sound" {
            assert_eq!(document["file_original"], "Feeding lions.m4a");
        }
    }
    assert_eq!(upstream.requests(Api::Transcription).len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_video_is_called_by_its_title_also_where_nothing_of_it_can_be_read() {
    let (origin, _site) = site().await;
    let folder = tempfile::tempdir().unwrap();
    let about = |title: &str, more: Value| {
        let mut about = json!({"title": title, "_type": "video"});
        let fields = about.as_object_mut().unwrap();
        fields.extend(more.as_object().unwrap().clone());
        (about.to_string(), 0)
    };
    let captions = |ext: &str| json!({"subtitles": {"en": [{"ext": "vtt", "url": format!("{origin}/captions.{ext}")}]}});
    let sound = |file: &str| json!({"formats": [{"url": format!("{origin}/{file}"), "ext": "m4a", "acodec": "mp4a", "vcodec": "none"}]});
    let (long, cut) = ("é".repeat(10_000), "é".repeat(200));
    // What becomes of it, and what it is called: nothing is said of what is tried again.
    let cases = [
        (
            "hidden",
            about("\u{0}Feeding\tlions\u{202e}\u{7}", captions("vtt")),
            Some("digitized"),
            Some("Feeding lions"),
        ),
        (
            "long",
            about(&long, captions("vtt")),
            Some("digitized"),
            Some(cut.as_str()),
        ),
        ("empty", about("", captions("vtt")), Some("digitized"), None),
        (
            "blank",
            about(" \n\u{3000}", captions("vtt")),
            Some("digitized"),
            None,
        ),
        (
            "upcoming",
            about("Feeding lions", json!({"live_status": "is_upcoming"})),
            Some("failed"),
            Some("Feeding lions"),
        ),
        // No sound, although it says so.
        (
            "broken",
            about("Feeding lions", sound("captions.vtt")),
            Some("failed"),
            Some("Feeding lions"),
        ),
        (
            "mute",
            about("Feeding lions", sound("gone.m4a")),
            None,
            Some("Feeding lions"),
        ),
        (
            "uncaptioned",
            about("Feeding lions", captions("gone")),
            None,
            Some("Feeding lions"),
        ),
    ];
    let answers: Vec<_> = cases
        .iter()
        .map(|(word, (printed, code), ..)| (*word, printed.clone(), *code))
        .collect();
    let upstream = Upstream::start().await;
    let app = server(&upstream, &folder, &answers).await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let words = cases.each_ref().map(|(word, ..)| *word);
    let made = brought(&app, key, &words).await;
    for ((word, _, status, name), id) in cases.iter().zip(&made) {
        let address = address(word);
        let name = name.unwrap_or(&address);
        match status {
            Some(status) => {
                let document = digitized(&app, key, id).await;
                assert_eq!(document["status"], *status, "{word}: {document}");
                assert_eq!(document["name"], name, "{word}");
            }
            None => {
                let path = format!("/api/document/acme/manual/{id}");
                let what = format!("{word} is called by its title");
                eventually(&what, async || {
                    app.get(key, &path).await.expect(200)["name"] == name
                })
                .await;
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_program_a_video_says_what_is_missing() {
    let app = TestApp::builder(&TestDatabase::sqlite())
        .config(|config| config.knowledge.yt_dlp = Some("/no/such/program".into()))
        .with_decoder()
        .quick_worker()
        .start()
        .await;
    let acme = furnished(&app).await;
    let body = json!({"folder": "texts", "urls": ["https://youtu.be/x"]});
    let made = app
        .post(&acme.key, &format!("/api/documents/{BASE}/batch"), body)
        .await
        .expect(200);
    let id = made["results"][0]["document_id"].as_str().unwrap();
    let document = digitized(&app, &acme.key, id).await;
    let error = document["processing_error"].as_str().unwrap();
    assert!(error.contains("yt-dlp, which is not installed"), "{error}");
}
