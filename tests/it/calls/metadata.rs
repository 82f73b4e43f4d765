//! What pages pass on when they join calls.

use serde_json::Map;

use super::*;

/// The metadata of a call that is created and joined, as it is stored.
async fn stored(
    server: &TestApp,
    acme: &TestPartner,
    metadata: &Map<String, Value>,
    is_low: bool,
) -> Option<Value> {
    let id = create(server, acme, call()).await;
    // The server measures the disk of the test as well, and nothing is awaited before the call looks.
    server.app.edge.set_disk_low(is_low);
    let taken = calls::take(&server.app.calls, &id, Some(metadata)).await;
    server.app.edge.set_disk_low(false);
    assert_eq!(taken.unwrap().unwrap().id, id, "the call goes on");
    let path = format!("/v2/calls/{id}");
    let read = server.get(&acme.key, &path).await.expect(200);
    read["data"].get("metadata").cloned()
}

#[tokio::test]
async fn large_metadata_is_not_stored_while_the_disk_is_low() {
    let database = TestDatabase::sqlite();
    let server = builder(&database).start().await;
    let (acme, _) = server.acme_and_other().await;
    let of_bytes = |bytes: usize| {
        let frame = r#"{"page":""}"#.len();
        let metadata = json!({"page": "x".repeat(bytes - frame)});
        assert_eq!(metadata.to_string().len(), bytes);
        metadata.as_object().unwrap().clone()
    };
    let (small, large) = (of_bytes(1_024), of_bytes(1_025));
    for (metadata, is_low, is_kept) in [
        (&small, true, true),
        (&large, true, false),
        (&large, false, true),
    ] {
        let kept = stored(&server, &acme, metadata, is_low).await;
        let expected = is_kept.then(|| Value::Object(metadata.clone()));
        assert_eq!(kept, expected, "low: {is_low}");
    }
}
