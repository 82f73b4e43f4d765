//! Outages: documents that were accepted come through them, and nobody is told anything but "later".

use std::{cell::Cell, future::Future, time::Instant};

use colloquy::{
    fair_queue::Priority,
    identifiers::PartnerId,
    knowledge::{Origin, Query, Reader},
};
use harness::{TestDatabase, disk::SmallDisk, elsewhere};
use sha2::{Digest as _, Sha256};

use super::*;

/// Longer than the attempts of a job that has an end of its own.
const LONG: Duration = Duration::from_secs(34);
/// Longer than a request waits for the database.
const SHORT: Duration = Duration::from_secs(6);
/// Less than half of the reserve of a disk, in bytes, and enough for an index to commit removals.
const FREE: u64 = 640 * 1024;

fn text(number: usize) -> String {
    format!("# Animal {number}\n\nThe animal of the number {number} sleeps in the stable.\n")
}

fn sha256(text: &str) -> String {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Brings a document; its id when it was accepted, and `None` when it is to be brought later.
async fn bring(server: &Server, key: &str, number: usize) -> Option<String> {
    let form = fields(&[
        ("type", "file"),
        ("folder", "texts"),
        ("use_original_as_rewritten", "true"),
    ]);
    let form = form.part("file", file(&format!("{number}.md"), text(number)));
    let request = server.request(key, Method::POST, &format!("/api/documents/{BASE}"));
    let answer = send(request.multipart(form)).await;
    match answer.status.as_u16() {
        201 => Some(answer.json()["id"].as_str().unwrap().to_owned()),
        // 507 where the disk is what is full.
        503 | 507 => {
            assert!(!answer.header("retry-after").is_empty());
            None
        }
        status => panic!("{status}: {}", answer.json()),
    }
}

/// Brings documents before, while and after something is out, and waits until all that were accepted are ready.
async fn outlast(
    server: &Server,
    out: Duration,
    begin: impl Future<Output = ()>,
    end: impl Future<Output = ()>,
) {
    let acme = furnished_server(server).await;
    let key = acme.key.as_str();
    let (mut accepted, mut refused, mut number) = (Vec::new(), 0, 0);
    for _ in 0..6 {
        let id = bring(server, key, number).await.unwrap();
        accepted.push((id, number));
        number += 1;
    }
    let begun = Instant::now();
    begin.await;
    let over_at = Instant::now() + out;
    while Instant::now() < over_at {
        match bring(server, key, number).await {
            Some(id) => accepted.push((id, number)),
            None => refused += 1,
        }
        number += 1;
        // Not a flood.
        sleep(Duration::from_millis(200)).await;
    }
    assert!(refused > 0, "there was no outage");
    end.await;
    // The server looks at its disk now and then.
    let id = elsewhere::until("the outage ends", Option::is_some, async || {
        bring(server, key, number).await
    })
    .await;
    let lasted = begun.elapsed();
    accepted.push((id.unwrap(), number));
    for (id, number) in &accepted {
        let path = format!("/api/document/{BASE}/{id}");
        let is_ready = |document: &Value| {
            assert_ne!(document["status"], "failed", "{document}");
            document["status"] == "ready"
        };
        let document = elsewhere::until("it goes on", is_ready, async || {
            server.get(key, &path).await
        })
        .await;
        assert_eq!(document["content_hash"], sha256(&text(*number)));
        assert_eq!(document["processing_error"], Value::Null);
        let path = format!("/api/documents/{BASE}/{id}/content/rewritten");
        let content = server.get(key, &path).await["content"].clone();
        assert_eq!(content.as_str().unwrap().trim(), text(*number).trim());
    }
    let listed = server.get(key, &format!("/api/kb-stats/{BASE}")).await;
    assert_eq!(listed["document_count"], accepted.len(), "{listed}");
    // The log has a line of it each half minute, however many documents wait.
    let lines = server
        .log()
        .matches("which wait for the end of an outage")
        .count();
    let most = 1 + lasted.as_secs() as usize / 30;
    assert!(lines <= most, "{lines} lines");
}

/// Files have no room, while jobs are begun again and again.
#[tokio::test(flavor = "multi_thread")]
async fn documents_outlast_a_full_disk() {
    let Some(disk) = SmallDisk::mount("8m") else {
        return;
    };
    let place = url::Url::from_directory_path(disk.path("blobs")).unwrap();
    let settings = |config: &mut colloquy::Config| {
        config.store.blob_url = Some(place);
    };
    let server = Server::start(&TestDatabase::sqlite(), settings).await;
    let ballast = Cell::new(None);
    let begin = async { ballast.set(Some(disk.fill())) };
    let end = async { drop(ballast.take()) };
    outlast(&server, LONG, begin, end).await;
    server.kill().await;
}

/// Neither the database nor files have room.
#[tokio::test(flavor = "multi_thread")]
async fn documents_outlast_a_disk_that_is_full_of_everything() {
    let Some(disk) = SmallDisk::mount("32m") else {
        return;
    };
    let database = TestDatabase::sqlite_in(disk.path("data"));
    let server = Server::start(&database, |_| {}).await;
    let ballast = Cell::new(None);
    let begin = async { ballast.set(Some(disk.fill())) };
    let end = async { drop(ballast.take()) };
    outlast(&server, SHORT, begin, end).await;
    server.kill().await;
}

/// A deletion that finds no room is told why, and when to come again.
#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_without_room_says_that_the_storage_is_full() {
    let Some(disk) = SmallDisk::mount("32m") else {
        return;
    };
    let database = TestDatabase::sqlite_in(disk.path("data"));
    let server = Server::start(&database, |_| {}).await;
    let acme = furnished_server(&server).await;
    let key = acme.key.as_str();
    let mut ids = Vec::new();
    for number in 0..8 {
        ids.push(bring(&server, key, number).await.unwrap());
    }
    let ballast = disk.fill();
    let mut refused = None;
    for id in &ids {
        let path = format!("/api/documents/{BASE}/{id}");
        let answer = send(server.request(key, Method::DELETE, &path)).await;
        // A page of the log that was begun may have room for one.
        if answer.status == 503 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("there was room for all of them");
    assert_eq!(refused.header("retry-after"), "10");
    let told = refused.json();
    let text = told["detail"].as_str().unwrap();
    assert!(
        text.contains("storage is full") && text.contains("make room"),
        "{told}"
    );
    assert_eq!(told["code"], "insufficient_storage");
    drop(ballast);
    server.kill().await;
}

/// A document tells the reason while an embedder is away, and once it is given up.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_says_why_it_is_not_embedded() {
    let builder = TestApp::builder(&TestDatabase::sqlite());
    let builder = builder.config(|config| {
        config.embedder.base_url = Some("http://127.0.0.1:1/v1".parse().unwrap());
        config.embedder.model = Some("nobody".to_owned());
    });
    let app = builder.with_decoder().quick_worker().start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let id = add(&app, key, "Zoo", "The zoo opens at nine.").await;
    let path = format!("/api/document/{BASE}/{id}");
    let told = async || app.get(key, &path).await.expect(200)["processing_error"].clone();
    let so_far = "the embedding service failed and is asked again: connection refused";
    eventually("the first attempt has failed", || async {
        told().await == so_far
    })
    .await;
    let (attempts, _) = app.attempts("bases.embed").await;
    assert_eq!(attempts, 6);
    let last = "the embedding service failed, also when it was asked again: connection refused";
    assert_eq!(told().await, last);
}

/// Somebody else holds the lock of the database.
#[tokio::test(flavor = "multi_thread")]
async fn documents_outlast_a_database_that_is_away() {
    let database = TestDatabase::sqlite();
    let server = Server::start(&database, |_| {}).await;
    let held = Cell::new(None);
    let begin = async { held.set(Some(database.hold().await)) };
    let end = async { held.take().unwrap().release().await };
    outlast(&server, SHORT, begin, end).await;
    server.kill().await;
}

/// The document that a character finds first on this node, empty for none; `None` while the index cannot be searched. Requests to search are refused
/// while the disk is low, and calls go on.
async fn found_first(app: &TestApp, question: &str) -> Option<String> {
    let partner = PartnerId::parse("acme").unwrap();
    let reader = Reader {
        partner: &partner,
        priority: Priority::Request,
        character: None,
    };
    let base = app.app.bases.for_characters().open("manual", reader);
    let query = Query {
        text: question.to_owned(),
        context: String::new(),
        limit: 1,
    };
    let passages = base.search(query).await.ok()?;
    let first = passages.into_iter().next();
    let id = first.map(|passage| match passage.document {
        Origin::Kept(id) => id,
        Origin::Carried(_) => panic!("no document of a base"),
    });
    Some(id.unwrap_or_default())
}

/// Until this document is found first, or none.
async fn finds(app: &TestApp, question: &str, document: &str) {
    let what = format!("{question} finds {document:?}");
    eventually(&what, async || {
        found_first(app, question).await.as_deref() == Some(document)
    })
    .await;
}

/// Two nodes: documents come to the first, and the data folder of the second, with its index, is on a disk that becomes low.
#[tokio::test(flavor = "multi_thread")]
async fn an_index_applies_removals_only_while_the_disk_is_low() {
    let Some(disk) = SmallDisk::mount("32m") else {
        return;
    };
    let database = TestDatabase::sqlite();
    let blobs = url::Url::from_directory_path(database.config().dir.join("shared-blobs")).unwrap();
    let node = |name: &str| {
        let blobs = blobs.clone();
        let builder = TestApp::builder(&database).node(name);
        builder.config(move |config| config.store.blob_url = Some(blobs))
    };
    let first = node("first").with_decoder().quick_worker().start().await;
    let acme = furnished(&first).await;
    let key = acme.key.as_str();
    let lions = add(&first, key, "Lions", "Lions eat meat.").await;
    let hours = add(&first, key, "Hours", HOURS).await;
    settled(&first, key).await;
    let dir = disk.path("data");
    let second = node("second").config(move |config| config.store.dir = dir);
    let second = second.without_worker().start().await;
    let delete = async |id: &str| {
        let path = format!("/api/documents/{BASE}/{id}");
        second.delete(key, &path).await.expect(200);
    };
    let degraded = || second.app.bases.degraded_index();
    finds(&second, "meat", &lions).await;
    assert_eq!(degraded(), None);

    let ballast = disk.fill_but(FREE);
    let zebras = add(&first, key, "Zebras", "Zebras graze.").await;
    settled(&first, key).await;
    // An index follows when it is searched.
    eventually("the addition waits", async || {
        let found = found_first(&second, "graze").await;
        assert_ne!(found, Some(zebras.clone()));
        degraded().is_some()
    })
    .await;
    let deep = second.get("", "/health/deep").await.json();
    assert_eq!(deep["checks"]["search_index"]["state"], "degraded");
    finds(&second, "meat", &lions).await;
    delete(&lions).await;
    finds(&second, "meat", "").await;
    finds(&second, "graze", "").await;
    finds(&second, "open", &hours).await;
    assert!(degraded().is_some());

    // Nothing was lost: what waited comes, and what went stays away.
    drop(ballast);
    finds(&second, "graze", &zebras).await;
    eventually("nothing waits", async || degraded().is_none()).await;
    finds(&second, "meat", "").await;
    // Where nothing is added, nothing waits.
    let _ballast = disk.fill_but(FREE);
    delete(&zebras).await;
    finds(&second, "graze", "").await;
    assert_eq!(degraded(), None);
}
