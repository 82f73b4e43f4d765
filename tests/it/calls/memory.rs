//! The memory of what calls bring.

use colloquy::http::memory::Share;

use super::*;

/// The parameters of a character whose index is counted with more than a megabyte.
fn with_documents() -> Value {
    let text = "The zoo opens at nine. ".repeat(1_700);
    json!({"rag_enabled": true, "documents": [{"title": "Hours", "text": text}]})
}

/// A server in which one partner has memory for the documents of one such character.
async fn small(database: &TestDatabase) -> TestApp {
    let builder = builder(database).config(|config| {
        config.limits.body_bytes = 100_000;
        config.limits.text_body_bytes = 100_000;
        config.limits.body_memory_bytes = 4_000_000;
        config.limits.document_memory_bytes = 4_000_000;
    });
    builder.start().await
}

/// The place of a call whose client has come.
async fn seat(server: &TestApp, id: &str) -> Result<calls::room::CallSlot, CloseCode> {
    let seat = calls::room::seat(&server.app.calls, id, None).await;
    seat.unwrap()
}

async fn refused(server: &TestApp, acme: &TestPartner, body: &Value) {
    let refused = server.post(&acme.key, "/v2/calls", body.clone()).await;
    assert_eq!(refused.expect(503)["error"]["code"], "UNAVAILABLE");
    assert_eq!(refused.header("retry-after"), "2");
}

#[tokio::test]
async fn documents_of_inline_characters_take_memory_while_their_calls_live() {
    for database in TestDatabase::both().await {
        let server = small(&database).await;
        let (acme, _) = server.acme_and_other().await;
        let mut inline = call();
        inline["character"] = json!({"personality": "P", "parameters": with_documents()});
        let first = create(&server, &acme, inline.clone()).await;
        let second = create(&server, &acme, inline.clone()).await;
        let held = seat(&server, &first).await.unwrap();
        let full = seat(&server, &second).await;
        assert_eq!(full.unwrap_err(), CloseCode::Capacity);
        assert_eq!(server.app.calls.room.open(), 1);
        refused(&server, &acme, &inline).await;
        // Bodies have memory of their own.
        let body = Share::new(server.app.edge.clone());
        body.belongs_to(Some("acme"));
        body.grow(1_000_000).unwrap();
        drop(body);
        // Calls that bring no documents find room, and so do those that look nothing up.
        let saved = create(&server, &acme, call()).await;
        drop(seat(&server, &saved).await.unwrap());
        let mut unused = inline.clone();
        unused["character"]["parameters"]["rag_enabled"] = json!(false);
        let unused = create(&server, &acme, unused).await;
        drop(seat(&server, &unused).await.unwrap());

        drop(held);
        drop(seat(&server, &second).await.unwrap());
        create(&server, &acme, inline).await;
    }
}

#[tokio::test]
async fn documents_of_a_saved_character_take_memory_once() {
    for database in TestDatabase::both().await {
        let server = small(&database).await;
        let (acme, _) = server.acme_and_other().await;
        let [zoo, sea] = ["zoo", "sea"].map(|name| {
            let mut call = call();
            call["character"] = json!(format!("repo:acme/{name}"));
            call
        });
        for name in ["zoo", "sea"] {
            server.character(&acme, name, "P", with_documents()).await;
        }
        let of_sea = create(&server, &acme, sea.clone()).await;
        let mut held = Vec::new();
        for _ in 0..3 {
            let id = create(&server, &acme, zoo.clone()).await;
            held.push(seat(&server, &id).await.unwrap());
        }
        let full = seat(&server, &of_sea).await;
        assert_eq!(full.unwrap_err(), CloseCode::Capacity);
        assert_eq!(server.app.calls.room.open(), 3);
        refused(&server, &acme, &sea).await;
        // What nobody holds any more gives way.
        held.clear();
        drop(seat(&server, &of_sea).await.unwrap());
        create(&server, &acme, zoo).await;
    }
}
