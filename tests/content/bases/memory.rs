//! The memory of lists of documents that are sent while they are read.

use colloquy::http::memory::Share;
use harness::{TestDatabase, elsewhere::eventually};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};

use super::*;

/// Half of the memory, which one partner may hold.
const MOST_BYTES: usize = 16_000_000;

const LISTS: [&str; 4] = [
    "/api/documents/acme/manual",
    "/api/kb-data/acme/manual",
    "/api/toc/acme/manual?include_status=true",
    "/api/documents/acme/manual/rewritten-bundle",
];

async fn start() -> TestApp {
    let builder = TestApp::builder(&TestDatabase::sqlite()).config(|config| {
        config.limits.body_bytes = 1_000_000;
        config.limits.text_body_bytes = 1_000_000;
        config.limits.body_memory_bytes = 2 * MOST_BYTES;
    });
    builder.with_decoder().without_worker().start().await
}

async fn add(app: &TestApp, key: &str, name: &str) {
    let form = fields(&[("name", name), ("folder", "texts"), ("type", "file")]);
    let path = format!("/api/documents/{BASE}/empty");
    post(app, key, &path, form).await.expect(201);
}

/// Memory that the partner's other requests hold.
fn others(app: &TestApp, bytes: usize) -> Share {
    let share = Share::new(app.app.edge.clone());
    share.belongs_to(Some("acme"));
    share.grow(bytes).unwrap();
    share
}

/// The status of an answer, and its connection, from which nothing more is read. The client's system takes little on its behalf.
async fn unread(app: &TestApp, key: &str, path: &str) -> (String, TcpStream) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 * 1024).unwrap();
    let mut stream = socket.connect(app.address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {key}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    let status = String::from_utf8_lossy(&status[9..]).into_owned();
    (status, stream)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_refused_without_memory_for_the_documents_of_its_base() {
    let app = start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    let held = others(&app, MOST_BYTES - 50_000);
    for path in &LISTS[..3] {
        let empty = app.get(key, path).await.expect(200);
        assert_eq!(empty["documents"], json!([]), "{path}");
    }
    drop(held);
    for name in ["a", "b"] {
        add(&app, key, name).await;
    }
    let held = others(&app, MOST_BYTES - 50_000);
    for path in LISTS {
        let refused = app.get(key, path).await;
        assert_eq!(refused.status.as_u16(), 503, "{path}: {}", refused.text);
        assert_eq!(refused.header("retry-after"), "2", "{path}");
    }
    drop(held);
    for path in &LISTS[..3] {
        let listed = app.get(key, path).await.expect(200);
        assert_eq!(listed["documents"].as_array().unwrap().len(), 2, "{path}");
    }
    let bundle = app.request(Method::GET, LISTS[3]).bearer_auth(key);
    assert_eq!(bundle.send().await.unwrap().status().as_u16(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_list_that_is_not_read_counts_until_it_is_dropped() {
    let app = start().await;
    let acme = furnished(&app).await;
    let key = acme.key.as_str();
    for number in 0..128 {
        add(&app, key, &format!("Document {number}")).await;
    }
    // A page is larger than what connections hold that nobody reads.
    let reason = "x".repeat(100_000);
    let sql = "UPDATE knowledge_documents SET processing_error = $1";
    let db = app.app.store.db();
    db.execute(statement(sql, [reason.as_str().into()]))
        .await
        .unwrap();
    let mut held = Vec::new();
    let refused = loop {
        let (status, stream) = unread(&app, key, LISTS[0]).await;
        if status != "200" {
            break status;
        }
        held.push(stream);
        assert!(held.len() < 20, "there is always memory");
    };
    assert_eq!(refused, "503");
    // 64 documents of a page with 32 KiB each, and 128 with 150 bytes: a bit more than two megabytes.
    assert_eq!(held.len(), 7);
    drop(held);
    eventually("the memory is given back", async || {
        let share = Share::new(app.app.edge.clone());
        share.belongs_to(Some("acme"));
        share.grow(MOST_BYTES).is_ok()
    })
    .await;
}
