//! The sums of the texts of partners, while others store and delete texts.

use std::sync::Arc;

use futures_util::future::join_all;
use support::{TestDatabase, earlier::run};

use super::*;
use crate::{
    accounts::storage::{ChargeError, Sum},
    clock::SystemClock,
    config::Config,
    generation::stored,
    identifiers::PartnerId,
    kernel::Base,
    store::{Executor as _, statement},
};

/// The partners `acme` with the quota `q`, and `other` with the quota `p`. The quotas are budgets, which do not count.
async fn place(database: &TestDatabase) -> Base {
    let config = Config {
        store: database.config(),
        ..Config::default()
    };
    let store = config.store.open().await.unwrap();
    for sql in [
        "INSERT INTO partners (id, display_name, settings, created_at, updated_at) \
         VALUES ('acme', 'Acme', '{}', 1, 1), ('other', 'Other', '{}', 1, 1)",
        "INSERT INTO quotas (id, partner, purpose, name, mac, kinds, disabled, period, period_start, created_at, updated_at) \
         VALUES ('q', 'acme', 'budget', '', '', '[]', FALSE, 'lifetime', 0, 1, 1), \
         ('p', 'other', 'budget', '', '', '[]', FALSE, 'lifetime', 0, 1, 1)",
    ] {
        run(&store, sql).await;
    }
    Base::new(config, store, Arc::new(SystemClock))
}

/// The sum of a partner, if there is one.
async fn counted(base: &Base, partner: &str) -> Option<i64> {
    let sql = "SELECT texts FROM partner_storage WHERE partner = $1";
    let found = base
        .store
        .db()
        .fetch_scalar(statement(sql, [partner.into()]));
    found.await.unwrap()
}

/// Stores a completion of `acme`, as a node does that counts texts.
async fn store_text(base: &Base, id: String, bytes: usize) -> Result<(), ChargeError> {
    let transaction = base.store.begin_patient().await?;
    let sql = "INSERT INTO completions (id, partner, state, output, created_at, ended_at) \
               VALUES ($1, 'acme', 'completed', $2, 1, 2)";
    let values = [id.into(), "x".repeat(bytes).into()];
    transaction.execute(statement(sql, values)).await?;
    let acme = PartnerId::of_row("acme");
    storage::charge_text(base, &transaction, &acme, bytes).await?;
    Ok(transaction.commit().await?)
}

#[tokio::test]
async fn a_sum_that_differs_from_its_rows_is_corrected() {
    for database in TestDatabase::both().await {
        let base = place(&database).await;
        // As nodes of an earlier version store and delete.
        for sql in [
            "INSERT INTO responses (id, quota, input, response, created_at, expires_at) VALUES ('r', 'q', '[\"ü\"]', '{}', 1, 2)",
            "INSERT INTO characters VALUES ('acme', 'zoe', 1, 1, 1)",
            "INSERT INTO character_versions VALUES ('acme', 'zoe', 1, 'Zoë', '{}', 1)",
            "INSERT INTO dialog_analyses (id, partner, state, input, asked, created_at) VALUES ('a', 'acme', 'in-progress', '12345', 0, 1)",
            "INSERT INTO completions (id, partner, state, output, created_at, ended_at) VALUES ('c', 'acme', 'completed', '1234', 1, 2)",
            "INSERT INTO calls (id, partner, state, character_json, character_params, metadata, time_limit_seconds, expires_at, created_at, \
             updated_at, ended_at) VALUES ('o', 'acme', 'ongoing', 'Zoë', '{}', '123', 60, 1, 1, 1, NULL), \
             ('e', 'acme', 'error', 'left by an earlier version', '{}', '12', 60, 1, 1, 1, 1)",
            "INSERT INTO calls (id, partner, state, character_json, character_params, metadata, transcript, ended_bytes, time_limit_seconds, \
             expires_at, created_at, updated_at, ended_at) VALUES ('t', 'acme', 'completed', '', '', '{}', '[\"ü\"]', 8, 60, 1, 1, 1, 1)",
            "INSERT INTO transcripts (id, partner, status, options, audio_url, text, error, window_sample, created_at, ended_at) \
             VALUES ('q', 'acme', 'queued', '{}', 'http://ü', NULL, NULL, 0, 1, NULL), \
             ('c', 'acme', 'completed', '{}', NULL, 'Zoë', NULL, 0, 1, 2), ('e', 'acme', 'error', '{}', NULL, NULL, '12345', 0, 1, 2)",
            "INSERT INTO webhook_deliveries (id, partner, event, subject, url, payload, state, attempts, round_attempts, created_at, \
             updated_at) VALUES ('w', 'acme', 'call.completed', '', 'https://', '{\"ü\"}', 'failed', 1, 1, 1, 1)",
            "INSERT INTO partner_storage (partner, bytes, texts) VALUES ('other', 7, 100)",
            "INSERT INTO knowledge_bases (id, partner, name, created_at) VALUES ('b', 'other', 'b', 1)",
            "INSERT INTO knowledge_folders (id, base_id, name, type, created_at) VALUES ('f', 'b', 'f', 'regular', 1)",
            "INSERT INTO api_keys (id, kind, partner, name, mac, allowed_origins, created_at) \
             VALUES ('k', 'publishable', 'other', 'Zoë', '', '[\"ü\"]', 1), ('l', 'secret', 'other', '', '', NULL, 1), \
             ('m', 'admin', NULL, '', '', NULL, 1)",
            "INSERT INTO quotas (id, partner, name, mac, kinds, allowed_models, allowed_characters, disabled, period, period_start, \
             created_at, updated_at, revoked_at) \
             VALUES ('u', 'other', 'Zoë', '', '[]', '[\"ü\"]', NULL, FALSE, 'lifetime', 0, 1, 1, NULL), \
             ('v', 'other', '', '', '[]', NULL, '[\"inline\"]', FALSE, 'lifetime', 0, 1, 1, 2)",
            "INSERT INTO knowledge_channels (folder_id, base_id, channel_url, alias, enabled, model_tier, status, created_at) \
             VALUES ('f', 'b', '@zoo', '@zoo', TRUE, 'standard', 'synced', 1)",
            "INSERT INTO knowledge_channel_videos (channel, video, url, title, state, seen_at, place) \
             VALUES ('f', 'v1', '', '', 'suppressed', 1, 0), ('f', 'v2', '', '', 'pending', 1, 1)",
            "INSERT INTO partners (id, display_name, settings, created_at, updated_at) VALUES ('none', '', '{}', 1, 1)",
        ] {
            run(&base.store, sql).await;
        }
        let recount = || recount_texts(&base.store);
        assert_eq!(recount().await.unwrap(), 2, "{}", database.kind());
        let of_transcripts = 3 * (1_024 + 2) + 9 + 4 + 5;
        let of_delivery = 1_024 + 8 + 6;
        let all = 8 + 6 + 5 + 4 + 6 + 8 + of_transcripts + of_delivery;
        assert_eq!(counted(&base, "acme").await, Some(all));
        let (keys, quotas) = (2 * 1_024 + 6, 2 * 2_048 + 6 + 10);
        let of_other = 2 * 4_096 + 2 * 1_024 + keys + quotas;
        assert_eq!(counted(&base, "other").await, Some(of_other));
        assert_eq!(counted(&base, "none").await, None);
        let files = "SELECT bytes FROM partner_storage WHERE partner = 'other'";
        assert_eq!(base.store.db().fetch_count(files).await.unwrap(), 7);
        assert_eq!(recount().await.unwrap(), 0);

        let transaction = base.store.begin().await.unwrap();
        let released = storage::release(&transaction, "acme", Sum::Texts, all + 1);
        released.await.unwrap();
        transaction.commit().await.unwrap();
        assert_eq!(counted(&base, "acme").await, Some(0), "never negative");
        assert_eq!(recount().await.unwrap(), 1);
        assert_eq!(counted(&base, "acme").await, Some(all));
    }
}

#[tokio::test]
async fn a_sum_is_corrected_while_texts_are_stored() {
    for database in TestDatabase::both().await {
        let base = place(&database).await;
        let wrong = "INSERT INTO partner_storage (partner, bytes, texts) VALUES ('acme', 0, 5000)";
        run(&base.store, wrong).await;
        let stored = (0..6).map(|number| store_text(&base, format!("c{number}"), 100));
        let recounted = (0..3).map(|_| recount_texts(&base.store));
        let (stored, recounted) = tokio::join!(join_all(stored), join_all(recounted));
        assert!(stored.iter().all(Result::is_ok), "{stored:?}");
        assert!(recounted.iter().all(Result::is_ok), "{recounted:?}");
        assert_eq!(counted(&base, "acme").await, Some(600));
    }
}

#[tokio::test]
async fn retention_of_many_texts_releases_what_it_deletes() {
    let numbers = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 701)";
    let partner = "CASE WHEN i % 3 = 0 THEN 'other' ELSE 'acme' END";
    for database in TestDatabase::both().await {
        let base = place(&database).await;
        for sql in [
            format!(
                "INSERT INTO completions (id, partner, state, output, created_at, ended_at) \
                 {numbers} SELECT 'c' || i, {partner}, 'completed', 'ü' || i, 1, i FROM n"
            ),
            format!(
                "INSERT INTO dialog_analyses (id, partner, state, error, asked, created_at, ended_at) \
                 {numbers} SELECT 'a' || i, {partner}, 'failed', 'ü' || i, 0, 1, i FROM n"
            ),
            format!(
                "INSERT INTO responses (id, quota, input, response, created_at, expires_at) \
                 {numbers} SELECT 'r' || i, CASE WHEN i % 3 = 0 THEN 'p' ELSE 'q' END, '[]', 'ü' || i, 1, i FROM n"
            ),
            format!(
                "INSERT INTO transcripts (id, partner, status, options, text, window_sample, created_at, ended_at) \
                 {numbers} SELECT 't' || i, {partner}, 'completed', '{{}}', 'ü' || i, 0, 1, i FROM n"
            ),
            format!(
                "INSERT INTO webhook_deliveries (id, partner, event, subject, url, payload, state, attempts, round_attempts, \
                 created_at, updated_at) \
                 {numbers} SELECT 'w' || i, {partner}, '', '', 'https://' || i, 'ü', \
                 CASE WHEN i % 2 = 0 THEN 'failed' ELSE 'succeeded' END, 1, 1, 1, i FROM n"
            ),
            // These stay.
            "INSERT INTO transcripts (id, partner, status, options, window_sample, created_at) VALUES ('t', 'acme', 'queued', '{}', 0, 1)"
                .to_owned(),
            "INSERT INTO webhook_deliveries (id, partner, event, subject, url, payload, state, attempts, round_attempts, created_at, \
             updated_at) VALUES ('w', 'other', '', '', 'kept', '', 'pending', 0, 0, 1, 1)"
                .to_owned(),
            "INSERT INTO completions (id, partner, state, question, created_at) VALUES ('c', 'acme', 'in-progress', 'kept', 1)"
                .to_owned(),
            "INSERT INTO dialog_analyses (id, partner, state, input, asked, created_at) VALUES ('a', 'acme', 'in-progress', 'kept', 0, 1)"
                .to_owned(),
            "INSERT INTO responses (id, quota, input, response, created_at, expires_at) VALUES ('r', 'p', '[]', 'kept', 1, 9000000000000000)"
                .to_owned(),
        ] {
            run(&base.store, sql).await;
        }
        assert_eq!(recount_texts(&base.store).await.unwrap(), 2);
        // Too much in the sums would show, too.
        run(&base.store, "UPDATE partner_storage SET texts = texts + 7").await;
        assert_eq!(messaging::purge(&base).await.unwrap(), 701);
        assert_eq!(analyses::purge(&base).await.unwrap(), 701);
        assert_eq!(stored::prune(&base).await.unwrap(), 701);
        assert_eq!(transcripts::purge(&base).await.unwrap(), 701);
        assert_eq!(webhooks::purge(&base).await.unwrap(), 701);
        let (transcript, delivery) = (1_024 + 2, 1_024 + 4);
        assert_eq!(counted(&base, "acme").await, Some(4 + 4 + transcript + 7));
        assert_eq!(counted(&base, "other").await, Some(2 + 4 + delivery + 7));
    }
}

#[tokio::test]
async fn a_partner_that_is_deleted_has_no_sum() {
    for database in TestDatabase::both().await {
        let base = place(&database).await;
        store_text(&base, "c1".to_owned(), 100).await.unwrap();
        run(&base.store, "DELETE FROM partners WHERE id = 'acme'").await;
        assert_eq!(counted(&base, "acme").await, None);

        // What ends after its partner.
        let transaction = base.store.begin().await.unwrap();
        let released = storage::release(&transaction, "acme", Sum::Texts, 50);
        released.await.unwrap();
        let replaced = storage::replace_text(&transaction, "acme", 1, 100);
        replaced.await.unwrap();
        let paid = storage::count_text_of_quota(&transaction, "q", 100);
        paid.await.unwrap();
        transaction.commit().await.unwrap();
        let refused = store_text(&base, "c2".to_owned(), 1).await;
        assert!(matches!(refused, Err(ChargeError::Store(_))), "{refused:?}");
        assert_eq!(messaging::purge(&base).await.unwrap(), 0);
        assert_eq!(recount_texts(&base.store).await.unwrap(), 0);
        assert_eq!(counted(&base, "acme").await, None);

        let again = "INSERT INTO partners (id, display_name, settings, created_at, updated_at) VALUES ('acme', '', '{}', 2, 2)";
        run(&base.store, again).await;
        store_text(&base, "c3".to_owned(), 40).await.unwrap();
        assert_eq!(counted(&base, "acme").await, Some(40));
    }
}
