//! The limit of the texts of a partner, of which many arrive together.

use colloquy_accounts::storage::{self, ChargeError, PendingTexts, StorageLimitReached};
use colloquy_store::statement;
use futures_util::future::join_all;

use super::*;

/// The partner `acme`, which may store 550 bytes.
async fn place(database: &TestDatabase) -> Base {
    let config = config(database, "node");
    let store = config.store.open().await.unwrap();
    let acme = "INSERT INTO partners (id, display_name, settings, created_at, updated_at) \
                VALUES ('acme', 'Acme', '{\"storage_bytes\": 550}', 1, 1)";
    store.db().execute(acme).await.unwrap();
    Base::new(config, store, Arc::new(SystemClock))
}

/// The sum of the partner, if there is one.
async fn counted(base: &Base) -> Option<i64> {
    let sql = "SELECT texts FROM partner_storage WHERE partner = 'acme'";
    base.store.db().fetch_scalar(sql).await.unwrap()
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
async fn texts_that_arrive_together_do_not_pass_the_limit() {
    for database in TestDatabase::both().await {
        let base = place(&database).await;
        let stored = (0..8).map(|number| store_text(&base, format!("c{number}"), 100));
        let stored = join_all(stored).await;
        let refused = |stored: &&Result<(), ChargeError>| {
            let limit = 550;
            matches!(stored, Err(ChargeError::Limit(reached)) if *reached == StorageLimitReached { used: 500, limit })
        };
        assert_eq!(stored.iter().filter(refused).count(), 3, "{stored:?}");
        assert_eq!(counted(&base).await, Some(500));
        let rows = base
            .store
            .db()
            .fetch_count("SELECT COUNT(*) FROM completions");
        assert_eq!(rows.await.unwrap(), 5, "{stored:?}");
    }
}

#[tokio::test]
async fn partners_with_more_texts_than_half_of_their_limit_are_found() {
    for database in TestDatabase::both().await {
        let base = place(&database).await;
        store_text(&base, "c1".to_owned(), 275).await.unwrap();
        assert_eq!(storage::half_full(&base).await.unwrap(), []);
        store_text(&base, "c2".to_owned(), 1).await.unwrap();
        let found = storage::half_full(&base).await.unwrap();
        assert_eq!(found, [("acme".to_owned(), 275)]);
    }
}

#[tokio::test]
async fn texts_that_are_reserved_together_do_not_pass_the_limit() {
    for database in TestDatabase::both().await {
        let base = place(&database).await;
        store_text(&base, "c".to_owned(), 100).await.unwrap();
        let (texts, acme) = (PendingTexts::default(), PartnerId::of_row("acme"));
        let reserved = join_all((0..8).map(|_| texts.reserve(&base, &acme, 200))).await;
        assert_eq!(reserved.iter().filter(|it| it.is_ok()).count(), 2);
        // Those that were refused hold nothing.
        let refused = texts.reserve(&base, &acme, 51).await.unwrap_err();
        let expected = StorageLimitReached {
            used: 500,
            limit: 550,
        };
        assert!(matches!(refused, ChargeError::Limit(reached) if reached == expected));
        assert!(texts.reserve(&base, &acme, 50).await.is_ok());
        drop(reserved);
        assert!(texts.reserve(&base, &acme, 450).await.is_ok());
    }
}

#[tokio::test]
async fn a_text_that_is_stored_meanwhile_counts_once() {
    for database in TestDatabase::both().await {
        let base = place(&database).await;
        let (texts, acme) = (PendingTexts::default(), PartnerId::of_row("acme"));
        let first = texts.reserve(&base, &acme, 200).await.unwrap();
        store_text(&base, "c".to_owned(), 200).await.unwrap();
        // The second one is held while the first one is both stored and held.
        let second = texts.reserve(&base, &acme, 200);
        let (second, ()) = tokio::join!(biased; second, async { drop(first) });
        assert!(second.is_ok(), "{second:?}");
    }
}
