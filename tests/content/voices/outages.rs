//! Outages: voices that were accepted come through them with the samples that they would have had.

use colloquy::server;
use harness::{app::quick, disk::SmallDisk, elsewhere::eventually, process::Server};

use super::{crashes::processed_by, *};

/// Longer than a request waits for the database, and than the first attempts of a job take.
const LONG: Duration = Duration::from_secs(12);

async fn made(server: &Server, key: &str, name: &str, sound: &[u8]) {
    let form = file("a.mp3", sound.to_vec()).text("name", name.to_owned());
    let request = server.request(key, Method::POST, "/api/voices/acme");
    send(request.multipart(form)).await.expect(201);
}

/// Several windows of speech.
fn long() -> Vec<u8> {
    let (sound, _) = spoken(1);
    converted(&wav(&sound.repeat(4)), "a.mp3", &[])
}

async fn is_whole(server: &Server, key: &str, name: &str, expected: &mut Option<Value>) {
    let voice = processed_by(server, key, name).await;
    let status = json!({"splitting": "completed", "embedding": "completed"});
    assert_eq!(voice["status"], status, "{voice}");
    let samples = expected.get_or_insert_with(|| voice["samples"].clone());
    assert_eq!(&voice["samples"], samples, "{name}");
}

/// Somebody else holds the lock of the database while voices are split and embedded.
#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_loses_no_voice() {
    let worker = VoiceWorkers::start().await;
    let database = TestDatabase::sqlite();
    let server = Server::start(&database, |config| worker.offer(config)).await;
    let key = server.partner("acme").await.key;
    let sound = long();
    let mut expected = None;
    made(&server, &key, "before", &sound).await;
    is_whole(&server, &key, "before", &mut expected).await;
    for name in ["first", "second"] {
        made(&server, &key, name, &sound).await;
    }
    // In the midst of a window, or of what is stored of it.
    sleep(patience(Duration::from_millis(1_500))).await;
    let held = database.hold().await;
    // So long it is away.
    sleep(LONG).await;
    held.release().await;
    for name in ["first", "second"] {
        is_whole(&server, &key, name, &mut expected).await;
    }
    server.kill().await;
}

/// Files have no room while samples are stored: they are stored once there is some.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_loses_no_voice() {
    let Some(disk) = SmallDisk::mount("16m") else {
        return;
    };
    let place = url::Url::from_directory_path(disk.path("blobs")).unwrap();
    let worker = VoiceWorkers::start().await;
    let change = |config: &mut colloquy::Config| {
        worker.offer(config);
        config.store.blob_url = Some(place);
    };
    let server = Server::start(&TestDatabase::sqlite(), change).await;
    let key = server.partner("acme").await.key;
    let sound = long();
    let mut expected = None;
    made(&server, &key, "before", &sound).await;
    is_whole(&server, &key, "before", &mut expected).await;
    made(&server, &key, "first", &sound).await;
    let ballast = disk.fill();
    // So long it is full.
    sleep(LONG).await;
    let waits = server.get(&key, &path("first")).await;
    assert_eq!(waits["status"]["splitting"], "in_progress", "{waits}");
    eventually("it costs no attempt", async || {
        server.log().contains("wait for the end of an outage")
    })
    .await;
    drop(ballast);
    is_whole(&server, &key, "first", &mut expected).await;
    server.kill().await;
}

/// A recording that a disk has lost is no outage.
#[tokio::test(flavor = "multi_thread")]
async fn a_recording_that_is_lost_is_not_split_and_says_why() {
    let database = TestDatabase::sqlite();
    let app = builder(&database).without_worker().start().await;
    let acme = app.partner("acme").await;
    create(&app, &acme, "one", wav(&go_forward())).await;
    let sql = "SELECT key FROM blobs WHERE state = 'kept'";
    let blob: Option<String> = app.app.store.db().fetch_scalar(sql).await.unwrap();
    let file = database.config().dir.join("blobs").join(blob.unwrap());
    fs::remove_file(file).unwrap();
    server::start_worker(&app.app, quick()).await.unwrap();
    let voice = processed(&app, &acme.key, "one").await;
    assert_eq!(voice["status"]["splitting"], "failed", "{voice}");
    let told = voice["status"]["splitting_error"].as_str().unwrap();
    assert!(told.contains("damaged; upload it again"), "{told}");
}
