//! The memory of what calls bring.

use super::*;

#[tokio::test]
async fn documents_of_inline_characters_take_memory_while_their_calls_live() {
    for database in TestDatabase::both().await {
        let server = builder(&database)
            .config(|config| {
                config.limits.body_bytes = 100_000;
                config.limits.text_body_bytes = 100_000;
                config.limits.body_memory_bytes = 4_000_000;
            })
            .start()
            .await;
        let (acme, _) = server.acme_and_other().await;
        // Its index is counted with more than a megabyte.
        let text = "The zoo opens at nine. ".repeat(1_700);
        let parameters =
            json!({"rag_enabled": true, "documents": [{"title": "Hours", "text": text}]});
        let mut inline = call();
        inline["character"] = json!({"personality": "P", "parameters": parameters});
        let first = create(&server, &acme, inline.clone()).await;
        let second = create(&server, &acme, inline.clone()).await;
        let seat = async |id: &str| {
            let address = "192.0.2.1".parse().unwrap();
            calls::room::seat(&server.app.calls, id, address)
                .await
                .unwrap()
        };
        let held = seat(&first).await.unwrap();
        assert_eq!(seat(&second).await.unwrap_err(), CloseCode::Capacity);
        assert_eq!(server.app.calls.room.open(), 1);
        let refused = server.post(&acme.key, "/v2/calls", inline.clone()).await;
        assert_eq!(refused.expect(503)["error"]["code"], "UNAVAILABLE");
        assert_eq!(refused.header("retry-after"), "2");
        // Calls that bring no documents find room, and so do those that look nothing up.
        let saved = create(&server, &acme, call()).await;
        drop(seat(&saved).await.unwrap());
        let mut unused = inline.clone();
        unused["character"]["parameters"]["rag_enabled"] = json!(false);
        let unused = create(&server, &acme, unused).await;
        drop(seat(&unused).await.unwrap());

        drop(held);
        drop(seat(&second).await.unwrap());
        create(&server, &acme, inline).await;
    }
}
