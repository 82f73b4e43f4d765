//! Responses count in the storage of their partner.

use colloquy_generation::stored;
use test_routes::storage::counted;

use super::*;

on_each_database!(a_response_of_the_journal_counts_once, |database| {
    let app = start(&database).await;
    let acme = app.partner("acme").await;
    let quota = json!({"kinds": ["text"], "period": "lifetime"});
    let quota = app.quota(&acme, quota).await;
    let input = json!([{"role": "user", "content": "Zoë?"}]);
    let left = json!({
        "quota": quota.path.rsplit('/').next(), "created_at": 1, "expires_at": 9_000_000_000_000_i64,
        "row": {"id": "resp_1", "previous_id": null, "input": input, "response": {"id": "resp_1", "output": []}},
    });
    let journal = app.state.config.store.dir.join("journal");
    let file = journal.join("response.resp_1.json");
    let before = counted(&app).await;
    let mut sums = Vec::new();
    for _ in 0..2 {
        std::fs::write(&file, left.to_string()).unwrap();
        stored::start(&app.state).await.unwrap();
        assert!(!file.exists(), "the database has it");
        sums.push(counted(&app).await);
    }
    assert!(sums[0] > before && sums[0] == sums[1], "{sums:?}");
});
