//! Answers with many documents, which are sent while they are read.

use harness::{TestDatabase, elsewhere::eventually};
use test_routes::bases::{DOCUMENTS, add_many};

use super::*;

/// A row that the database cannot give, behind the first page: the answer has begun, and cannot say so but by its end.
#[tokio::test(flavor = "multi_thread")]
async fn a_list_breaks_off_at_a_row_that_cannot_be_read() {
    let database = TestDatabase::sqlite();
    let server = Server::start(&database, |_| {}).await;
    let acme = furnished_server(&server).await;
    let key = acme.key.as_str();
    let path = format!("/api/documents/{BASE}/empty");
    let bring = async |form| {
        let request = server.request(key, Method::POST, &path);
        send(request.multipart(form)).await
    };
    let made = add_many(bring).await;
    let final_text = format!("/api/documents/{BASE}/{}/content/rewritten", made[1]);
    let written = server.request(key, Method::PUT, &final_text);
    let written = written
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body("content=Lions.");
    send(written).await.expect(200);
    server.kill().await;
    // The bundle has several pages, too.
    let store = database.config().open().await.unwrap();
    let sql = "INSERT INTO knowledge_contents (document_id, variant, blob, file_name, media_type, bytes, characters, sha256, updated_at, revision) \
               SELECT d.id, c.variant, c.blob, c.file_name, c.media_type, c.bytes, c.characters, c.sha256, c.updated_at, c.revision \
               FROM knowledge_documents d JOIN knowledge_contents c ON c.document_id <> d.id \
               WHERE c.document_id = $1 AND c.variant = 'rewritten'";
    let id = made[1].as_str();
    let copied = store.db().execute(statement(sql, [id.into()])).await;
    assert_eq!(copied.unwrap() as usize, DOCUMENTS - 1);
    drop(store);
    let server = Server::start(&database, |_| {}).await;
    let paths = [
        format!("/api/documents/{BASE}"),
        format!("/api/kb-data/{BASE}"),
        format!("/api/documents/{BASE}/rewritten-bundle"),
    ];
    for path in &paths {
        assert!(is_whole(&server, key, path).await, "{path}");
    }
    server.kill().await;
    // A text in columns of numbers, which SQLite takes.
    let damage = async |id: &str| {
        let store = database.config().open().await.unwrap();
        for sql in [
            "UPDATE knowledge_documents SET revision = 'none' WHERE id = $1",
            "UPDATE knowledge_contents SET updated_at = 'none' WHERE document_id = $1",
        ] {
            let changed = store.db().execute(statement(sql, [id.into()])).await;
            assert_eq!(changed.unwrap(), 1);
        }
    };
    damage(&made[DOCUMENTS - 1]).await;
    let server = Server::start(&database, |_| {}).await;
    for path in paths.iter().cycle().take(4 * paths.len()) {
        assert!(!is_whole(&server, key, path).await, "{path}");
    }
    let broken = || {
        let log = server.log();
        let lines = log.lines();
        lines.filter(|line| line.contains("breaks off")).count()
    };
    // The log has a line for lists and one for bundles, however many break off.
    for what in ["list", "bundle"] {
        let line = format!("sending a {what} of documents, which breaks off");
        eventually("it is logged", async || server.log().contains(&line)).await;
    }
    assert_eq!(broken(), 2, "once each");
    server.kill().await;
    // In the first page, it is told with a status.
    damage(&made[0]).await;
    let server = Server::start(&database, |_| {}).await;
    for path in &paths {
        let answer = send(server.request(key, Method::GET, path)).await;
        answer.expect(500);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bundle_that_breaks_off_at_a_damaged_file_is_logged() {
    let database = TestDatabase::sqlite();
    let server = Server::start(&database, |_| {}).await;
    let acme = furnished_server(&server).await;
    let key = acme.key.as_str();
    let form = fields(&[("name", "Lions"), ("folder", "texts"), ("type", "file")]);
    let path = format!("/api/documents/{BASE}/empty");
    let made = send(server.request(key, Method::POST, &path).multipart(form)).await;
    let made = made.expect(201);
    let id = made["id"].as_str().unwrap();
    let path = format!("/api/documents/{BASE}/{id}/content/rewritten");
    let written = server
        .request(key, Method::PUT, &path)
        .header("Content-Type", "application/x-www-form-urlencoded")
        .body("content=Lions.");
    send(written).await.expect(200);
    let bundle = format!("/api/documents/{BASE}/rewritten-bundle");
    assert!(is_whole(&server, key, &bundle).await);
    server.kill().await;
    let store = database.config().open().await.unwrap();
    let sql = "SELECT blob FROM knowledge_contents WHERE variant = 'rewritten'";
    let blob: Option<String> = store.db().fetch_scalar(sql).await.unwrap();
    drop(store);
    let file = database.config().dir.join("blobs").join(blob.unwrap());
    assert_eq!(fs::read(&file).unwrap(), b"Lions.");
    fs::write(&file, "Ants..").unwrap();
    let server = Server::start(&database, |_| {}).await;
    assert!(!is_whole(&server, key, &bundle).await);
    eventually("it is logged", async || server.log().contains("breaks off")).await;
}

/// True if an answer comes to its end as HTTP has it.
async fn is_whole(server: &Server, key: &str, path: &str) -> bool {
    let request = server.request(key, Method::GET, path);
    // What the server wrote before it broke off may be lost.
    let Ok(response) = request.send().await else {
        return false;
    };
    assert_eq!(response.status().as_u16(), 200);
    response.bytes().await.is_ok()
}
