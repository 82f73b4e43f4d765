//! A real model is pulled from a mirror that stops half-way. The model is in the folder `COLLOQUY_TEST_MODELS_DIR`, where
//! `tests/run` puts it.

use std::{
    fs::{self, Permissions},
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, StatusCode, Uri, header},
    response::{IntoResponse as _, Response},
    routing::get,
};
use futures_util::{StreamExt as _, stream};
use harness::{
    disk::SmallDisk,
    elsewhere::eventually,
    process::{BECOME_NOBODY, binary},
};
use tempfile::TempDir;
use tokio::{process::Child, sync::watch};

use super::{models, run, told};

/// Where the mirror stops until it is told to go on.
const HALF: usize = 600_000;

/// A mirror with one model, and a folder that it is pulled into.
struct Mirror {
    served: Arc<ServedFile>,
    base: String,
    temporary: TempDir,
}

struct ServedFile {
    file: Bytes,
    goes_on: watch::Sender<bool>,
    asked: Mutex<Vec<Option<usize>>>,
}

impl Mirror {
    async fn start() -> Self {
        let served = Arc::new(ServedFile {
            file: fs::read(original()).unwrap().into(),
            goes_on: watch::Sender::new(false),
            asked: Mutex::default(),
        });
        let app = Router::new()
            .route("/silero-vad/model.onnx", get(serve))
            .with_state(Arc::clone(&served));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self {
            served,
            base,
            temporary: tempfile::tempdir().unwrap(),
        }
    }

    fn folder(&self) -> PathBuf {
        self.temporary.path().join("models")
    }

    /// From where on each request wanted the file.
    fn asked(&self) -> Vec<Option<usize>> {
        self.served.asked.lock().unwrap().clone()
    }

    fn go_on(&self) {
        self.served.goes_on.send_replace(true);
    }

    fn pull(&self, folder: &Path) -> Command {
        models(folder, &["pull", "silero-vad", "--from", &self.base])
    }

    /// Begins to pull, and waits until the mirror has stopped.
    async fn half_way(&self, folder: &Path) -> Child {
        let child = begun(self.pull(folder));
        let partial = folder.join(".partial");
        eventually("half of the file is there", async || {
            let file = fs::read_dir(&partial)
                .ok()
                .and_then(|mut files| files.next());
            file.is_some_and(|file| file.unwrap().metadata().unwrap().len() == HALF as u64)
        })
        .await;
        assert!(!folder.join("silero-vad").exists());
        child
    }
}

async fn serve(State(served): State<Arc<ServedFile>>, headers: HeaderMap) -> Response {
    let from = headers.get(header::RANGE).map(|range| {
        let from = range.to_str().unwrap().strip_prefix("bytes=").unwrap();
        from.strip_suffix('-').unwrap().parse::<usize>().unwrap()
    });
    served.asked.lock().unwrap().push(from);
    let (begin, bytes) = (from.unwrap_or(0), served.file.len());
    let parts =
        [begin..HALF.max(begin), HALF.max(begin)..bytes].map(|part| served.file.slice(part));
    let [first, rest] = parts;
    let mut goes_on = served.goes_on.subscribe();
    let rest = async move {
        let _ = goes_on.wait_for(|goes_on| *goes_on).await;
        Ok::<_, std::io::Error>(rest)
    };
    let body = stream::once(async { Ok(first) }).chain(stream::once(rest));
    let status = from.map_or(StatusCode::OK, |_| StatusCode::PARTIAL_CONTENT);
    let headers = [
        (header::CONTENT_LENGTH, (bytes - begin).to_string()),
        (
            header::CONTENT_RANGE,
            format!("bytes {begin}-{}/{bytes}", bytes - 1),
        ),
    ];
    (status, headers, Body::from_stream(body)).into_response()
}

/// The file, as it was pulled.
fn original() -> PathBuf {
    let folder = std::env::var_os("COLLOQUY_TEST_MODELS_DIR");
    let named = "COLLOQUY_TEST_MODELS_DIR names a folder with models: tests/run unit";
    PathBuf::from(folder.ok_or(named).unwrap()).join("silero-vad/model.onnx")
}

fn begun(mut command: Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut command = tokio::process::Command::from(command);
    command.kill_on_drop(true).spawn().unwrap()
}

async fn ended(child: Child) -> (bool, String, String) {
    told(child.wait_with_output().await.unwrap())
}

/// The file is in the folder, it is the right one, and nothing else is.
fn is_whole(folder: &Path) {
    let (is_good, printed, said) = run(models(folder, &["verify", "silero-vad"]));
    assert!(is_good && printed == "silero-vad\tok\n", "{printed} {said}");
    let place = folder.join("silero-vad/model.onnx");
    assert_eq!(fs::read(place).unwrap(), fs::read(original()).unwrap());
    assert!(!folder.join(".partial").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_that_was_killed_goes_on_where_it_stood() {
    let mirror = Mirror::start().await;
    let folder = mirror.folder();
    let mut killed = mirror.half_way(&folder).await;
    killed.kill().await.unwrap();
    assert!(!run(models(&folder, &["verify", "silero-vad"])).0);
    mirror.go_on();
    let (is_good, _, said) = ended(begun(mirror.pull(&folder))).await;
    assert!(is_good, "{said}");
    assert_eq!(mirror.asked(), [None, Some(HALF)]);
    is_whole(&folder);
    // There is nothing to do the next time.
    let (is_good, _, said) = ended(begun(mirror.pull(&folder))).await;
    assert!(
        is_good && said.contains("silero-vad/model.onnx is here"),
        "{said}"
    );
    assert_eq!(mirror.asked().len(), 2);
}

/// Waits until a process says that it waits for another one.
async fn waits(child: &mut Child) {
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    while let Some(line) = said.next_line().await.unwrap() {
        if line.contains("another process gets models into this folder") {
            // What else it says has a reader.
            tokio::spawn(async move { while let Ok(Some(_)) = said.next_line().await {} });
            return;
        }
    }
    panic!("it did not wait");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_processes_one_waits_and_finds_what_the_other_got() {
    let mirror = Mirror::start().await;
    let folder = mirror.folder();
    let first = mirror.half_way(&folder).await;
    let mut second = begun(mirror.pull(&folder));
    waits(&mut second).await;
    mirror.go_on();
    for child in [first, second] {
        let (is_good, _, said) = ended(child).await;
        assert!(is_good, "{said}");
    }
    assert_eq!(mirror.asked(), [None]);
    is_whole(&folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_waits_goes_on_with_what_a_killed_one_has_left() {
    let mirror = Mirror::start().await;
    let folder = mirror.folder();
    let mut first = mirror.half_way(&folder).await;
    let mut second = begun(mirror.pull(&folder));
    waits(&mut second).await;
    first.kill().await.unwrap();
    mirror.go_on();
    let (is_good, _, said) = ended(second).await;
    assert!(is_good, "{said}");
    assert_eq!(mirror.asked(), [None, Some(HALF)]);
    is_whole(&folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_fills_up_ends_a_pull_which_goes_on_when_there_is_room() {
    let Some(disk) = SmallDisk::mount("1m") else {
        return;
    };
    let mirror = Mirror::start().await;
    let folder = disk.path("models");
    // What is known to have no room is not begun.
    let (is_good, _, said) = ended(begun(mirror.pull(&folder))).await;
    assert!(!is_good && said.contains("bytes free, and"), "{said}");
    assert_eq!(mirror.asked(), []);
    disk.resize("96m");
    let child = mirror.half_way(&folder).await;
    disk.resize("640k");
    mirror.go_on();
    let (is_good, _, said) = ended(child).await;
    assert!(
        !is_good && said.contains("No space left on device"),
        "{said}"
    );
    assert!(said.contains(folder.to_str().unwrap()), "{said}");
    assert!(!folder.join("silero-vad").exists());
    disk.resize("96m");
    let (is_good, _, said) = ended(begun(mirror.pull(&folder))).await;
    assert!(is_good, "{said}");
    let asked = mirror.asked();
    assert!(asked.len() == 2 && asked[1] >= Some(HALF), "{asked:?}");
    is_whole(&folder);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_file_is_named_and_got_again() {
    let mirror = Mirror::start().await;
    mirror.go_on();
    let folder = mirror.folder();
    assert!(ended(begun(mirror.pull(&folder))).await.0);
    let place = folder.join("silero-vad/model.onnx");
    let mut damaged = fs::read(&place).unwrap();
    damaged[HALF] ^= 1;
    for damaged in [&damaged[..], &damaged[..HALF]] {
        fs::write(&place, damaged).unwrap();
        let (is_good, printed, said) = run(models(&folder, &["verify"]));
        let why = "silero-vad/model.onnx is damaged: colloquy models pull silero-vad\n";
        assert!(!is_good && printed.ends_with(why), "{printed}");
        assert!(said.contains("1 of the models in"), "{said}");
        assert!(ended(begun(mirror.pull(&folder))).await.0);
        is_whole(&folder);
    }
}

/// A proxy that has the mirror's file, whatever the server is called: it keeps the addresses that it is asked for.
async fn proxy(mirror: &Mirror) -> (String, Arc<Mutex<Vec<String>>>) {
    let (asked, shelf) = (
        Arc::<Mutex<Vec<String>>>::default(),
        Arc::clone(&mirror.served),
    );
    let kept = Arc::clone(&asked);
    let app = Router::new().fallback(move |uri: Uri, headers: HeaderMap| {
        kept.lock().unwrap().push(uri.to_string());
        serve(State(shelf), headers)
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, app).await });
    (address, asked)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_of_the_environment_is_asked_and_all_that_happens_is_told() {
    let mirror = Mirror::start().await;
    mirror.go_on();
    let folder = mirror.folder();
    let (address, asked) = proxy(&mirror).await;
    // No resolver knows this name.
    let url = "http://models.invalid/silero-vad/model.onnx";
    let mut command = models(
        &folder,
        &["pull", "silero-vad", "--from", "http://models.invalid"],
    );
    for name in [
        "no_proxy",
        "NO_PROXY",
        "HTTP_PROXY",
        "ALL_PROXY",
        "all_proxy",
    ] {
        command.env_remove(name);
    }
    command.env("http_proxy", &address);
    let (is_good, printed, said) = ended(begun(command)).await;
    assert!(is_good, "{said}");
    assert_eq!(*asked.lock().unwrap(), [url]);
    is_whole(&folder);
    assert_eq!(printed, "");
    let (progress, told): (Vec<_>, Vec<_>) =
        said.lines().partition(|line| line.ends_with(" of 1.2 MB"));
    let expected = [
        format!("colloquy: models go to {}", folder.display()),
        "colloquy: 1 file to get, 1.2 MB in all".to_owned(),
        format!("colloquy: silero-vad/model.onnx, 1.2 MB, from {url}"),
        "colloquy: silero-vad/model.onnx is whole".to_owned(),
    ];
    assert_eq!(told, expected);
    // A line for each tenth at most, the last of them for all of it.
    assert!((1..=10).contains(&progress.len()), "{progress:?}");
    assert_eq!(progress.last(), Some(&"colloquy: 1.2 MB of 1.2 MB"));
}

/// A node that shares the folder of another one: it reads, and has no certificates either.
#[test]
fn a_folder_that_may_only_be_read_is_enough_to_use_models() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path().join("models");
    let source = original();
    let source = source.ancestors().nth(2).unwrap().to_str().unwrap();
    let pull = ["pull", "silero-vad", "--from", source];
    let mut command = models(&folder, &pull);
    command.envs([("SSL_CERT_FILE", "/none"), ("SSL_CERT_DIR", "/none")]);
    let (is_good, _, said) = run(command);
    assert!(is_good, "{said}");
    is_whole(&folder);

    // The administrator may write everywhere.
    let program = temporary.path().join("colloquy");
    fs::copy(binary(), &program).unwrap();
    let is_administrator = fs::metadata("/proc/self").unwrap().uid() == 0;
    let unprivileged = |arguments: &[&str]| {
        let command = models(&folder, arguments);
        let mut behind = match is_administrator {
            true => Command::new(BECOME_NOBODY[0]),
            false => Command::new("env"),
        };
        if is_administrator {
            behind.args(&BECOME_NOBODY[1..]);
        }
        behind.arg(&program).args(command.get_args());
        for (name, value) in command.get_envs() {
            match value {
                Some(value) => behind.env(name, value),
                None => behind.env_remove(name),
            };
        }
        run(behind)
    };
    let permit = |mode| {
        for path in [temporary.path(), &folder, &folder.join("silero-vad")] {
            fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        }
    };
    permit(0o555);
    let (is_good, printed, said) = unprivileged(&["verify"]);
    assert!(is_good && printed == "silero-vad\tok\n", "{said}");
    let (is_good, _, said) = unprivileged(&["pull", "silero-vad"]);
    assert!(is_good && said.contains("model.onnx is here"), "{said}");
    let (is_good, _, said) = unprivileged(&["pull", "smart-turn-v3.2", "--from", source]);
    permit(0o755);
    assert!(!is_good && said.contains("Permission denied"), "{said}");
    assert!(said.contains(folder.to_str().unwrap()), "{said}");
}
