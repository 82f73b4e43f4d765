//! The binary's commands, on both databases, and the keys they make.

use std::{
    fs::Permissions,
    io::ErrorKind,
    net::UdpSocket,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _},
    path::Path,
    process::Stdio,
    time::{Duration, SystemTime},
};

use harness::{
    TestApp, TestDatabase,
    app::{ADMIN_KEY, send},
    elsewhere::eventually,
    patience,
    process::{Server, command, run, run_ok},
};
use reqwest::Method;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader},
    net::TcpStream,
    time::Instant,
};

/// The keys that the commands make are the ones that the server takes.
async fn commands_make_keys(database: TestDatabase) {
    let done = run_ok(&database, &["migrate"]);
    assert!(
        done.starts_with("nothing to do: the schema is at migration "),
        "{done}"
    );
    let admin = run_ok(
        &database,
        &["key", "create", "--admin", "--quiet", "--name", "ops"],
    );
    let partner = run_ok(
        &database,
        &[
            "partner",
            "create",
            "acme",
            "--display-name",
            "Acme",
            "--quiet",
        ],
    );
    let scoped = run_ok(
        &database,
        &[
            "key",
            "create",
            "--partner",
            "acme",
            "--scope",
            "calls",
            "--scope",
            "characters",
            "--expires-in",
            "3",
        ],
    );
    let (admin, partner) = (admin.trim(), partner.trim());
    assert!(
        admin.starts_with("cqa_") && partner.starts_with("cqk_"),
        "{admin} {partner}"
    );
    let scoped = scoped.lines().last().unwrap();
    let page = run_ok(
        &database,
        &[
            "key",
            "create",
            "--partner",
            "acme",
            "--publishable",
            "--origin",
            "https://a.example",
            "--quiet",
        ],
    );
    assert!(page.starts_with("cqp_"));

    let list = run_ok(&database, &["key", "list", "--partner", "acme"]);
    assert_eq!(list.lines().count(), 4, "{list}");
    let columns = |line: &str| line.split('\t').map(str::to_owned).collect::<Vec<_>>();
    let header = columns(list.lines().next().unwrap());
    assert_eq!(header[5..], ["SCOPES", "ORIGINS", "NAME"]);
    let scopes: Vec<_> = list.lines().skip(1).map(columns).collect();
    assert!(
        scopes.iter().all(|line| line.len() == header.len()),
        "{list}"
    );
    let of = |kind: &str, scope: &str, origin: &str| {
        scopes
            .iter()
            .any(|line| line[1] == kind && line[5] == scope && line[6] == origin)
    };
    assert!(of("secret", "all", "-"), "{list}");
    assert!(of("secret", "calls,characters", "-"), "{list}");
    assert!(of("publishable", "calls", "https://a.example"), "{list}");
    assert!(!list.contains(partner), "the list shows a key");
    assert_eq!(run_ok(&database, &["key", "list"]).lines().count(), 2);
    let partners = run_ok(&database, &["partner", "list"]);
    let partners: Vec<_> = partners.lines().map(columns).collect();
    assert_eq!(partners[0], ["ID", "CREATED", "DISPLAY NAME", "STORAGE"]);
    assert_eq!((partners.len(), partners[1].len()), (2, partners[0].len()));
    assert_eq!(partners[1][0], "acme");

    // The program that made the keys had the time of its machine.
    let app = TestApp::builder(&database).real_time().start().await;
    assert_eq!(
        app.get(admin, "/api/auth/me").await.expect(200)["isAdmin"],
        true
    );
    assert_eq!(
        app.get(partner, "/api/auth/me").await.expect(200)["partner"],
        "acme"
    );
    let me = app.get(scoped, "/api/auth/me").await.expect(200);
    assert_eq!(me["scopes"], json!(["calls", "characters"]));

    let id = scoped.split('_').nth(1).unwrap();
    assert_eq!(me["key_id"], id);
    run_ok(&database, &["key", "revoke", id, "--partner", "acme"]);
    assert!(run_ok(&database, &["key", "list", "--partner", "acme"]).contains("revoked"));
    let unknown = run(&database, &["key", "list", "--partner", "nosuch"]);
    assert!(!unknown.status.success() && unknown.stdout.is_empty());
    let told = String::from_utf8_lossy(&unknown.stderr);
    assert!(told.contains("Partner not found"), "{told}");
    let wrong_owner = run(&database, &["key", "revoke", id]);
    assert!(!wrong_owner.status.success());
    run_ok(&database, &["partner", "delete", "acme"]);
    assert_eq!(run_ok(&database, &["partner", "list"]).lines().count(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_make_keys_sqlite() {
    commands_make_keys(TestDatabase::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_make_keys_postgres() {
    commands_make_keys(TestDatabase::postgres().await).await;
}

#[test]
fn mistakes_end_with_a_reason() {
    let database = TestDatabase::sqlite();
    for (arguments, reason) in [
        (vec!["partner", "create", "Not Good"], "partner:"),
        (vec!["partner", "delete", "nobody"], "Partner not found"),
        (
            vec!["key", "create", "--partner", "nobody"],
            "Partner not found",
        ),
        (
            vec!["key", "create", "--admin", "--expires-in", "0"],
            "expires_in_days",
        ),
        (vec!["dance"], "unrecognized subcommand"),
    ] {
        let output = run(&database, &arguments);
        assert!(!output.status.success(), "{arguments:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains(reason), "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

#[test]
fn the_openapi_document_is_printed() {
    let printed = run_ok(&TestDatabase::sqlite(), &["openapi"]);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../backend/openapi.json");
    assert_eq!(printed, std::fs::read_to_string(path).unwrap());
}

/// Whoever runs a command elsewhere than the server finds out that it worked on another database.
#[test]
fn commands_say_which_database_they_opened_and_that_it_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let in_folder = |arguments: &[&str]| {
        let mut command = command(&TestDatabase::sqlite(), arguments);
        command.env_remove("COLLOQUY_STORE_DIR");
        command.env_remove("COLLOQUY_STORE_DATABASE_URL");
        let output = command.current_dir(folder.path()).output().unwrap();
        assert!(output.status.success());
        let read = |bytes| String::from_utf8(bytes).unwrap();
        (read(output.stdout), read(output.stderr))
    };
    let file = folder.path().canonicalize().unwrap();
    let file = file.join("colloquy-data/colloquy.db");
    let (_, told) = in_folder(&["migrate"]);
    let made = format!("made a new database, {}", file.display());
    assert!(told.contains(&made), "{told}");
    std::fs::remove_dir_all(folder.path().join("colloquy-data")).unwrap();
    let (key, told) = in_folder(&["partner", "create", "acme", "--quiet"]);
    assert_eq!(key.lines().count(), 1);
    assert!(told.contains(&made), "{told}");
    let (_, told) = in_folder(&["partner", "list"]);
    let known = format!("colloquy: database: {}\n", file.display());
    assert!(told.contains(&known), "{told}");
}

/// The log's file may lie on a disk that is full.
#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_cannot_be_written_costs_no_request() {
    let database = TestDatabase::sqlite();
    let full = std::fs::File::options().write(true).open("/dev/full");
    let server = Server::start_logging_to(&database, |_| {}, full.unwrap().into()).await;
    let acme = server.partner("acme").await;
    let request = server.request(&acme.key, Method::GET, "/v2/calls/none");
    send(request).await.expect(404);
}

/// A server that is killed leaves the sound of visitors behind, and the next one may have another transcriber.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_starts_removes_the_sounds_of_killed_ones() {
    let memory = Path::new("/dev/shm");
    let place = match memory.is_dir() {
        true => memory.to_owned(),
        false => std::env::temp_dir(),
    };
    let mut folder = tempfile::Builder::new();
    let folder = folder.prefix("colloquy-sounds-").tempdir_in(&place);
    let folder = folder.unwrap();
    let mut file = tempfile::Builder::new();
    let file = file.prefix("colloquy-").suffix(".raw");
    let (file, path) = file.tempfile_in(&place).unwrap().into_parts();
    file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
    let _server = Server::start(&TestDatabase::sqlite(), |_| {}).await;
    assert!(!folder.path().exists() && !path.exists());
}

/// A machine without models and programs has a server that starts, and says what its calls lack.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hears_and_says_nothing_warns_of_it_with_the_commands_that_help() {
    let nothing = tempfile::tempdir().unwrap();
    let mut command = command(&TestDatabase::sqlite(), &["serve"]);
    command
        .env("PATH", nothing.path())
        .env("COLLOQUY_MODELS_DIR", nothing.path())
        .env("COLLOQUY_HTTP_LISTEN", "127.0.0.1:0")
        .env("COLLOQUY_MEDIA_PUBLIC_IP", "127.0.0.2")
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut server = tokio::process::Command::from(command);
    let mut server = server.kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let mut wanted = vec![
        ("MUTE", "apt-get install espeak-ng"),
        ("DEAF", "colloquy models pull"),
        (
            "speech in other languages is refused",
            "colloquy models pull whisper-base",
        ),
        ("speech in other languages is refused", "languages=[\"en\"]"),
        (
            "no embedding model",
            "colloquy models pull all-minilm-l6-v2",
        ),
        (
            "no neural voice",
            "colloquy models pull piper-en_US-joe-medium",
        ),
        ("made of recordings", "colloquy models pull ge2e"),
        ("announced", "127.0.0.2"),
        ("yt-dlp", "pipx install yt-dlp"),
    ];
    if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
        wanted.push(("runs as root", "a user of its own"));
    }
    let mut udp_port: Option<u16> = None;
    let told = async {
        while !wanted.is_empty() {
            let line = lines.next_line().await.unwrap().expect("it runs on");
            if let Some((_, told)) = line.split_once("udp_port=") {
                let port = told.split(' ').next().unwrap_or_default();
                udp_port = Some(port.parse().expect("a port"));
            }
            wanted.retain(|(what, command)| !(line.contains(what) && line.contains(command)));
        }
    };
    let told = tokio::time::timeout(patience(Duration::from_secs(20)), told).await;
    assert!(told.is_ok(), "not told: {wanted:?}");
    let again = UdpSocket::bind(("0.0.0.0", udp_port.expect("the port of media is told")));
    assert_eq!(again.unwrap_err().kind(), ErrorKind::AddrInUse);
}

/// A lame-duck period that no test waits for.
const LONG_SECONDS: u64 = 600;

async fn with_lame_duck(seconds: u64) -> Server {
    let database = TestDatabase::sqlite();
    Server::start(&database, |config| config.http.lame_duck_seconds = seconds).await
}

/// Waits until load balancers see that the server leaves.
async fn drains(server: &Server) {
    eventually("the server says that it leaves", async || {
        let health = send(server.request(ADMIN_KEY, Method::GET, "/health")).await;
        health.status == 503 && health.json()["status"] == "draining"
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_gets_sigterm_serves_on_until_a_second_signal() {
    for second in ["TERM", "INT"] {
        let server = with_lame_duck(LONG_SECONDS).await;
        server.signal("TERM");
        drains(&server).await;
        let acme = server.partner("acme").await;
        let made = server.get(&acme.key, "/api/auth/me").await;
        assert_eq!(made["partner"], "acme");
        server.signal(second);
        let status = server.ended().await;
        assert!(status.success(), "SIG{second}: {status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_gets_sigterm_ends_by_itself_after_the_lame_duck_period() {
    let seconds = 2;
    let server = with_lame_duck(seconds).await;
    let told = Instant::now();
    server.signal("TERM");
    let status = server.ended().await;
    assert!(status.success(), "{status}");
    let took = told.elapsed();
    assert!(took >= Duration::from_secs(seconds), "{took:?}");
}

/// Somebody waits at a terminal: nothing new is served, and what is in progress ends.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_gets_sigint_ends_with_its_last_answer() {
    let server = with_lame_duck(LONG_SECONDS).await;
    server.partner("acme").await;
    let body = br#"{"name": "ada", "personality": "You are Ada."}"#;
    let head = format!(
        "POST /api/characters/acme HTTP/1.1\r\nhost: a\r\nx-api-key: {ADMIN_KEY}\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nexpect: 100-continue\r\n\r\n",
        body.len()
    );
    let origin = server.url("");
    let address = origin.strip_prefix("http://").unwrap();
    let mut running = TcpStream::connect(address).await.unwrap();
    running.write_all(head.as_bytes()).await.unwrap();
    // The server asks for the body: the request is in progress.
    let mut go_on = [0; 25];
    running.read_exact(&mut go_on).await.unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    server.signal("INT");
    drains(&server).await;
    eventually("new work is refused", async || {
        let new = server.request(ADMIN_KEY, Method::POST, "/api/partners/other");
        send(new.json(&json!({}))).await.status == 503
    })
    .await;
    running.write_all(body).await.unwrap();
    let mut text = String::new();
    running.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 201 "), "{text}");
    let status = server.ended().await;
    assert!(status.success(), "{status}");
}

/// One that does not know an option would fail each video.
#[tokio::test(flavor = "multi_thread")]
async fn a_yt_dlp_that_is_too_old_is_named_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("yt-dlp");
    let script = "#!/bin/sh\ncase \"$*\" in *--version) echo 2021.12.01; exit;; esac\n\
        echo 'yt-dlp: error: no such option: --no-plugin-dirs' >&2; exit 2\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let database = TestDatabase::sqlite();
    let server = Server::start(&database, |config| config.knowledge.yt_dlp = Some(program)).await;
    let told =
        "yt-dlp 2021.12.01 on this server is too old: it does not know the option --no-plugin-dirs";
    eventually("the log names it", async || server.log().contains(told)).await;
}

/// A supervisor may leave files open in what it starts, which a confined program may not open by their paths.
#[tokio::test(flavor = "multi_thread")]
async fn a_helper_program_has_none_of_the_descriptors_that_the_server_was_started_with() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    std::fs::write(&secret, "2021.12.02\n").unwrap();
    let program = folder.path().join("yt-dlp");
    // It may open nothing to write, not even to keep its errors to itself.
    let script = "#!/bin/sh\ncase \"$*\" in *--version)\nversion=2021.12.01\n\
        if read -r line <&7; then version=$line; fi\necho \"$version\"; exit;; esac\n\
        echo 'yt-dlp: error: no such option: --no-plugin-dirs' >&2; exit 2\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let opens = format!("exec 7<'{}'; exec \"$@\"", secret.display());
    let server = Server::start_behind(
        &TestDatabase::sqlite(),
        |config| config.knowledge.yt_dlp = Some(program),
        &["sh", "-c", &opens, "sh"],
    )
    .await;
    let told = async || server.log().contains("on this server is too old");
    eventually("the log names the version", told).await;
    let log = server.log();
    assert!(log.contains("yt-dlp 2021.12.01"), "{log}");
}

/// As the first process of a container, whose signals are ignored until it waits for them.
#[tokio::test]
async fn a_signal_ends_a_server_that_waits_for_its_database() {
    const TERMINATE: u64 = 1 << (15 - 1);
    let nobody_listens = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody_listens.local_addr().unwrap();
    let served = command(&TestDatabase::sqlite(), &["serve"]);
    let mut shell = tokio::process::Command::new("sh");
    shell
        .args(["-c", "trap '' TERM; exec \"$@\"", "sh"])
        .arg(served.get_program())
        .args(served.get_args())
        .env("COLLOQUY_HTTP_LISTEN", "127.0.0.1:0")
        // It takes connections, and never says a word.
        .env(
            "COLLOQUY_STORE_DATABASE_URL",
            format!("postgres://colloquy@{address}/colloquy"),
        )
        .stdout(Stdio::null())
        .kill_on_drop(true);
    for (name, value) in served.get_envs() {
        if let (Some(value), true) = (value, name == "COLLOQUY_STORE_DIR") {
            shell.env(name, value);
        }
    }
    let mut server = shell.spawn().unwrap();
    let pid = server.id().unwrap();
    let waits = async || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        u64::from_str_radix(caught.unwrap().trim(), 16).unwrap() & TERMINATE != 0
    };
    eventually("it waits for the signal", waits).await;
    let sent = std::process::Command::new("kill")
        .arg(pid.to_string())
        .status();
    assert!(sent.unwrap().success());
    let ended = tokio::time::timeout(patience(Duration::from_secs(30)), server.wait()).await;
    assert_eq!(ended.expect("it ends").unwrap().code(), Some(0));
}
