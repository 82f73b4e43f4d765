//! The memory of stored responses that are read, and gone on from.

use colloquy::http::memory::Share;
use harness::elsewhere::eventually;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
};

use super::*;

async fn with_memory(text_body_bytes: usize, body_memory_bytes: usize) -> Text {
    Text::with(|_, builder| {
        builder.config(move |config| {
            config.limits.text_body_bytes = text_body_bytes;
            config.limits.body_bytes = 100_000;
            config.limits.body_memory_bytes = body_memory_bytes;
        })
    })
    .await
}

/// A client that reads the status of its answer and nothing more; `None` if that is 503. Its system takes little on its behalf.
async fn unread(text: &Text, path: &str) -> Option<TcpStream> {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(64 * 1024).unwrap();
    let mut stream = socket.connect(text.app.address).await.unwrap();
    let key = &text.key;
    let head = format!("GET {path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {key}\r\n\r\n");
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).await.unwrap();
    match &status {
        b"HTTP/1.1 200" => Some(stream),
        b"HTTP/1.1 503" => None,
        _ => panic!("{}", String::from_utf8_lossy(&status)),
    }
}

/// Memory that the partner's other requests hold.
fn others(text: &Text, bytes: usize) -> Share {
    let share = Share::new(text.app.app.edge.clone());
    share.belongs_to(Some("acme"));
    share.grow(bytes).unwrap();
    share
}

async fn refused(text: &Text, body: &Value) {
    let answer = text.post(RESPONSES, body.clone()).await;
    assert_eq!(answer.expect(503)["error"]["code"], "unavailable");
    assert_eq!(answer.header("retry-after"), "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_read_of_a_stored_response_counts_until_it_is_sent() {
    let text = with_memory(6_000_000, 64_000_000).await;
    // Five megabytes, of which a partner's half of the memory has room for six; reading them takes three of these.
    let input = "The zoo opens at nine. ".repeat(217_400);
    let body = json!({"model": "builtin/extractive", "input": input});
    let made = text.post(RESPONSES, body).await.expect(200);
    let path = format!("{RESPONSES}/{}/input_items", made["id"].as_str().unwrap());
    let mut held = Vec::new();
    while let Some(stream) = unread(&text, &path).await {
        held.push(stream);
        assert!(held.len() < 20, "there is always memory");
    }
    assert_eq!(held.len(), 4);
    let answer = text.app.get(&text.key, &path).await;
    assert_eq!(answer.expect(503)["error"]["code"], "unavailable");
    assert_eq!(answer.header("retry-after"), "2");
    let on =
        json!({"model": "builtin/extractive", "input": "And?", "previous_response_id": made["id"]});
    refused(&text, &on).await;
    // What is small takes little.
    let small = format!("{RESPONSES}/{}", made["id"].as_str().unwrap());
    text.app.get(&text.key, &small).await.expect(200);

    drop(held);
    eventually("the memory is given back", async || {
        let items = text.app.get(&text.key, &path).await;
        items.status == 200
            && items.json()["data"][0]["content"]
                .to_string()
                .contains("The zoo")
    })
    .await;
    eventually("it can be gone on from", async || {
        text.post(RESPONSES, on.clone()).await.status == 200
    })
    .await;
}

#[tokio::test]
async fn a_conversation_and_its_references_count_three_times() {
    let text = with_memory(1_000_000, 10_000_000).await;
    let said = |bytes: usize| json!({"model": "scripted-responses", "input": "x".repeat(bytes)});
    let first = text.post(RESPONSES, said(450_000)).await.expect(200);
    let mut second = said(450_000);
    second["previous_response_id"] = first["id"].clone();
    let second = text.post(RESPONSES, second).await.expect(200);

    // Twice would fit into the partner's half, which is 5 MB.
    let mut on = said(1);
    on["previous_response_id"] = second["id"].clone();
    let of_first = first["id"].as_str().unwrap().replace("resp_", "item_");
    let item = json!({"type": "item_reference", "id": format!("{of_first}_0")});
    let refers = json!({
        "model": "scripted-responses", "input": [item, {"role": "user", "content": "Sure?"}],
    });
    for (body, held_bytes) in [(on, 2_600_000), (refers, 4_000_000)] {
        let held = others(&text, held_bytes);
        refused(&text, &body).await;
        drop(held);
        text.post(RESPONSES, body).await.expect(200);
    }
}
