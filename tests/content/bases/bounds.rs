//! What uploads cost the server, in memory of the real process.

use colloquy::clock::{Clock as _, SystemClock};
use futures_util::future::join_all;
use harness::{TestDatabase, app::streamed, elsewhere::until, patience};

use super::*;

const MIB: u64 = 1024 * 1024;

/// A file of so many mebibytes, which says that it is a PDF and is none.
fn pretended(name: &str, mebibytes: usize) -> Part {
    streamed(name, b"%PDF-1.7\n", mebibytes)
}

/// Uploads such a file; again, as long as the server says that it is overloaded, which a slow machine is by fifty of them.
async fn bring(server: &Server, key: &str, name: &str, mebibytes: usize) -> Answer {
    for _ in 0..10 {
        let form = fields(&[("type", "file"), ("folder", "texts")]);
        let form = form.part("file", pretended(name, mebibytes));
        let request = server.request(key, Method::POST, &format!("/api/documents/{BASE}"));
        let answer = send(
            request
                .timeout(patience(Duration::from_secs(100)))
                .multipart(form),
        )
        .await;
        if answer.status != 503 {
            return answer;
        }
        assert_ne!(answer.header("retry-after"), "", "{}", answer.text);
        sleep(Duration::from_secs(1)).await;
    }
    panic!("{name} is never taken");
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
    let idle = server.peak_bytes();
    // The largest that is taken, and one that is larger.
    bring(&server, key, "large.pdf", 99).await.expect(201);
    let refused = bring(&server, key, "larger.pdf", 101).await;
    assert_eq!(refused.expect(413)["field"], "file");
    let grown = server.peak_bytes().saturating_sub(idle) / MIB;
    assert!(grown < 64, "{grown} MiB for one");
    // And many at once.
    let many = (0..50).map(|number| {
        let (server, name) = (&server, format!("{number}.pdf"));
        async move { bring(server, key, &name, pieces).await }
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
