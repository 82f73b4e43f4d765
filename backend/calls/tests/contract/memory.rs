//! The memory of what calls bring.

use colloquy_http::memory::Share;

use super::*;

/// The parameters of a character whose index is counted with more than a megabyte.
fn with_documents() -> Value {
    let text = "The zoo opens at nine. ".repeat(1_700);
    json!({"rag_enabled": true, "documents": [{"title": "Hours", "text": text}]})
}

/// Routes where one partner has memory for the documents of one such character.
async fn small(database: &TestDatabase) -> TestRoutes<Place> {
    let builder = builder(database).config(|config| {
        config.limits.body_bytes = 100_000;
        config.limits.text_body_bytes = 100_000;
        config.limits.body_memory_bytes = 4_000_000;
        config.limits.document_memory_bytes = 4_000_000;
    });
    start_by(builder).await
}

/// The place of a call whose client has come.
async fn seat(app: &TestRoutes<Place>, id: &str) -> Result<calls::room::CallSlot, CloseCode> {
    let seat = calls::room::seat(&app.state, id, None).await;
    seat.unwrap()
}

async fn refused(app: &TestRoutes<Place>, acme: &TestPartner, body: &Value) {
    let refused = app.post(&acme.key, CALLS, body.clone()).await;
    assert_eq!(refused.expect(503)["error"]["code"], "UNAVAILABLE");
    assert_eq!(refused.header("retry-after"), "2");
}

on_each_database!(
    documents_of_inline_characters_take_memory_while_their_calls_live,
    |database| {
        let app = small(&database).await;
        let (acme, _) = app.acme_and_other().await;
        let mut inline = call();
        inline["character"] = json!({"personality": "P", "parameters": with_documents()});
        let first = create(&app, &acme, inline.clone()).await;
        let second = create(&app, &acme, inline.clone()).await;
        let held = seat(&app, &first).await.unwrap();
        let full = seat(&app, &second).await;
        assert_eq!(full.unwrap_err(), CloseCode::Capacity);
        assert_eq!(app.state.room.open(), 1);
        refused(&app, &acme, &inline).await;
        // Bodies have memory of their own.
        let body = Share::new(app.edge.clone());
        body.belongs_to(Some("acme"));
        body.grow(1_000_000).unwrap();
        drop(body);
        // Calls that bring no documents find room, and so do those that look nothing up.
        let saved = create(&app, &acme, call()).await;
        drop(seat(&app, &saved).await.unwrap());
        let mut unused = inline.clone();
        unused["character"]["parameters"]["rag_enabled"] = json!(false);
        let unused = create(&app, &acme, unused).await;
        drop(seat(&app, &unused).await.unwrap());

        drop(held);
        drop(seat(&app, &second).await.unwrap());
        create(&app, &acme, inline).await;
    }
);

on_each_database!(
    documents_of_a_saved_character_take_memory_once,
    |database| {
        let app = small(&database).await;
        let (acme, _) = app.acme_and_other().await;
        let [zoo, sea] = ["zoo", "sea"].map(|name| {
            let mut call = call();
            call["character"] = json!(format!("repo:acme/{name}"));
            call
        });
        for name in ["zoo", "sea"] {
            app.character(&acme, name, "P", with_documents()).await;
        }
        let of_sea = create(&app, &acme, sea.clone()).await;
        let mut held = Vec::new();
        for _ in 0..3 {
            let id = create(&app, &acme, zoo.clone()).await;
            held.push(seat(&app, &id).await.unwrap());
        }
        let full = seat(&app, &of_sea).await;
        assert_eq!(full.unwrap_err(), CloseCode::Capacity);
        assert_eq!(app.state.room.open(), 3);
        refused(&app, &acme, &sea).await;
        // What nobody holds any more gives way.
        held.clear();
        drop(seat(&app, &of_sea).await.unwrap());
        create(&app, &acme, zoo).await;
    }
);
