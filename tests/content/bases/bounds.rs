//! What uploads cost the server, in memory of the real process.

use std::sync::atomic::{AtomicUsize, Ordering};

use colloquy::clock::{Clock as _, SystemClock};
use futures_util::future::join_all;
use harness::{TestDatabase, app::streamed};

use super::*;

const MIB: u64 = 1024 * 1024;

/// A file of so many mebibytes, which says that it is a PDF and is none.
fn pretended(name: &str, mebibytes: usize) -> Part {
    streamed(name, b"%PDF-1.7\n", mebibytes)
}

/// How many uploads may come again, since a slow machine is overloaded by them.
const AGAIN: usize = 10;

/// Uploads such a file; again, if the server says that it is overloaded.
async fn bring(
    server: &Server,
    key: &str,
    name: &str,
    mebibytes: usize,
    refused: &AtomicUsize,
) -> Answer {
    loop {
        let form = fields(&[("type", "file"), ("folder", "texts")]);
        let form = form.part("file", pretended(name, mebibytes));
        let request = server.request(key, Method::POST, &format!("/api/documents/{BASE}"));
        let answer = send(request.timeout(Duration::from_secs(100)).multipart(form)).await;
        if answer.status != 503 {
            return answer;
        }
        assert_ne!(answer.header("retry-after"), "", "{}", answer.text);
        let refused = refused.fetch_add(1, Ordering::Relaxed);
        assert!(refused < AGAIN, "most are taken at once: {}", answer.text);
        sleep(Duration::from_secs(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_take_little_memory() {
    let server = Server::start_measured(&TestDatabase::sqlite(), |_| {}).await;
    many_take_little_memory(server, 2, 64).await;
}

/// Each of many is more than a part, which is what a bucket takes at a time.
#[tokio::test(flavor = "multi_thread")]
async fn uploads_to_a_bucket_take_little_memory() {
    let bucket = given("COLLOQUY_TEST_S3_URL");
    let bucket = format!("{bucket}/{}", SystemClock.new_id());
    let server = Server::start_measured(&TestDatabase::sqlite(), |config| {
        config.store.blob_url = Some(bucket.parse().unwrap());
    })
    .await;
    // Two parts, what the allocator keeps of those before, and what the connections take.
    many_take_little_memory(server, 6, 128).await;
}

async fn many_take_little_memory(server: Server, pieces: usize, most_mib: u64) {
    let acme = furnished_server(&server).await;
    let key = acme.key.as_str();
    let (idle, again) = (server.peak_bytes(), AtomicUsize::new(0));
    // The largest that is taken, and one that is larger.
    bring(&server, key, "large.pdf", 99, &again)
        .await
        .expect(201);
    let refused = bring(&server, key, "larger.pdf", 101, &again).await;
    assert_eq!(refused.expect(413)["field"], "file");
    let grown = server.peak_bytes().saturating_sub(idle) / MIB;
    assert!(grown < 64, "{grown} MiB for one");
    // And many at once.
    let many = (0..50).map(|number| {
        let (server, again, name) = (&server, &again, format!("{number}.pdf"));
        async move { bring(server, key, &name, pieces, again).await }
    });
    for answer in join_all(many).await {
        answer.expect(201);
    }
    until(
        "all of them are read",
        |data: &Value| data["error_count"] == 51,
        async || server.get(key, &format!("/api/kb-stats/{BASE}")).await,
    )
    .await;
    let grown = server.peak_bytes().saturating_sub(idle) / MIB;
    assert!(grown < most_mib, "{grown} MiB");
}
