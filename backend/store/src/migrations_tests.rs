//! Migrations of databases with rows.

use sqlx::AssertSqlSafe;
use sqlx_postgres::PgConnection;
use sqlx_sqlite::SqliteConnection;
use support::TestDatabase;

use super::*;

/// What lists read of a document.
#[derive(Debug, PartialEq, Eq, sqlx::FromRow)]
struct ListedDocument {
    id: String,
    sort_name: String,
    size_bytes: i64,
    text_characters: Option<i64>,
    final_characters: Option<i64>,
    rewrite_cost: Option<i64>,
    rewrite_known: bool,
    reading_cost: i64,
    reading_requests: i64,
    reading_unpriced: i64,
    tokens: i64,
    blocked_at: Option<i64>,
}

const LISTED: &str = "SELECT id, sort_name, size_bytes, text_characters, final_characters, rewrite_cost, rewrite_known, reading_cost, \
     reading_requests, reading_unpriced, tokens, blocked_at FROM knowledge_documents ORDER BY id";

/// Rows that a server of migration 50 leaves.
fn left() -> Vec<String> {
    let mut statements: Vec<String> = [
        "INSERT INTO partners VALUES ('acme', 'Acme', '{}', 1, 1)",
        "INSERT INTO knowledge_bases (id, partner, name, created_at) VALUES ('b', 'acme', 'Manual', 1)",
        "INSERT INTO knowledge_folders (id, base_id, name, type, created_at) VALUES ('f', 'b', 'Äpfel', 'regular', 1)",
        "INSERT INTO blobs (key, state, bytes, updated_at) VALUES ('x', 'kept', 1, 1)",
    ]
    .map(str::to_owned)
    .to_vec();
    for (id, name, step) in [
        ("d1", "Notes", "done"),
        ("d2", "ÜBER", "blocked"),
        ("d3", "", "none"),
    ] {
        statements.push(format!(
            "INSERT INTO knowledge_documents (id, base_id, folder_id, name, type, content_type, model_tier, auto_rewrite, \
             use_original_as_rewritten, digitizing, rewriting, embedding, revision, created_at, updated_at) \
             VALUES ('{id}', 'b', 'f', '{name}', 'file', 'auto', 'standard', FALSE, FALSE, '{step}', 'none', 'none', 0, 1, 9)"
        ));
    }
    for (id, variant, bytes, characters) in [
        ("d1", "original", 100, "NULL"),
        ("d1", "digitized", 50, "40"),
        ("d1", "rewritten", 30, "20"),
        ("d2", "digitized", 70, "60"),
    ] {
        statements.push(format!(
            "INSERT INTO knowledge_contents (document_id, variant, blob, file_name, media_type, bytes, characters, sha256, updated_at) \
             VALUES ('{id}', '{variant}', 'x', '', '', {bytes}, {characters}, '', 0)"
        ));
    }
    statements.push(
        "INSERT INTO knowledge_rewrites (document_id, revision, model, sections, done, asking, input_tokens, output_tokens, cost, complete, \
         updated_at) VALUES ('d1', 0, 'm', 1, 1, TRUE, 0, 0, 500, TRUE, 0)"
            .to_owned(),
    );
    for (id, outcome, cost) in [
        ("u1", "success", "7"),
        ("u2", "fault", "NULL"),
        ("u3", "pending", "5"),
    ] {
        statements.push(format!(
            "INSERT INTO knowledge_usage (id, base_id, document_id, kind, model, local, node_id, outcome, input_tokens, cost, unknown, created_at) \
             VALUES ('{id}', 'b', 'd1', 'transcribe', 'm', FALSE, 'n', '{outcome}', 11, {cost}, FALSE, 1)"
        ));
    }
    statements
}

fn listed() -> [ListedDocument; 3] {
    let empty = |id: &str| ListedDocument {
        id: id.to_owned(),
        sort_name: String::new(),
        size_bytes: 0,
        text_characters: None,
        final_characters: None,
        rewrite_cost: None,
        rewrite_known: true,
        reading_cost: 0,
        reading_requests: 0,
        reading_unpriced: 0,
        tokens: 0,
        blocked_at: None,
    };
    let first = ListedDocument {
        sort_name: "notes".to_owned(),
        size_bytes: 100,
        text_characters: Some(40),
        final_characters: Some(20),
        rewrite_cost: Some(500),
        rewrite_known: false,
        reading_cost: 7,
        reading_requests: 2,
        reading_unpriced: 1,
        tokens: 22,
        ..empty("d1")
    };
    let second = ListedDocument {
        size_bytes: 70,
        text_characters: Some(60),
        blocked_at: Some(9),
        ..empty("d2")
    };
    [first, second, empty("d3")]
}

/// Migrates a connection from 50 on, with rows.
macro_rules! migrated_with_rows {
    ($connection:ident, $dialect:expr) => {
        let all = migrator($dialect);
        all.run_to(50, &mut $connection).await.unwrap();
        for sql in left() {
            let left = sqlx::query(AssertSqlSafe(sql)).execute(&mut $connection);
            left.await.unwrap();
        }
        let noted = "SELECT MAX(seq) FROM changes";
        let before: i64 = sqlx::query_scalar(noted)
            .fetch_one(&mut $connection)
            .await
            .unwrap();
        all.run_to(51, &mut $connection).await.unwrap();
        // Nobody is told of what the migration writes.
        let after: i64 = sqlx::query_scalar(noted)
            .fetch_one(&mut $connection)
            .await
            .unwrap();
        assert_eq!(after, before);
        let found: Vec<ListedDocument> = sqlx::query_as(LISTED)
            .fetch_all(&mut $connection)
            .await
            .unwrap();
        assert_eq!(found, listed());
        // Nodes of the earlier version keep the columns.
        for sql in [
            "UPDATE knowledge_documents SET name = 'Other' WHERE id = 'd2'",
            "UPDATE knowledge_documents SET name = 'Ümlaut' WHERE id = 'd1'",
            "DELETE FROM knowledge_documents WHERE id = 'd3'",
            "INSERT INTO knowledge_bases (id, partner, name, created_at) VALUES ('c', 'acme', 'NEW', 1)",
        ] {
            sqlx::query(sql).execute(&mut $connection).await.unwrap();
        }
        let names: Vec<String> = sqlx::query_scalar(
            "SELECT sort_name FROM knowledge_documents UNION ALL SELECT sort_name FROM knowledge_bases ORDER BY sort_name",
        )
        .fetch_all(&mut $connection)
        .await
        .unwrap();
        assert_eq!(names, ["", "manual", "new", "other"]);
        // Changes of all sorts are told again.
        let told: Vec<String> = sqlx::query_scalar(
            "SELECT id || CASE WHEN gone THEN ' gone' ELSE '' END FROM changes WHERE seq > $1 ORDER BY id",
        )
        .bind(before)
        .fetch_all(&mut $connection)
        .await
        .unwrap();
        for change in ["d1", "d2", "d3 gone", "NEW"] {
            assert!(told.iter().any(|told| told == change), "{told:?}");
        }
    };
}

#[tokio::test]
async fn documents_of_an_earlier_server_are_listed_on_sqlite() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    migrated_with_rows!(connection, Dialect::Sqlite);
}

#[tokio::test]
async fn documents_of_an_earlier_server_are_listed_on_postgres() {
    let database = TestDatabase::empty_postgres().await;
    let url = database.postgres_url().unwrap();
    let mut connection = PgConnection::connect(url.as_str()).await.unwrap();
    migrated_with_rows!(connection, Dialect::Postgres);
}

/// Sums of days that a server of migration 61 leaves, each of one measure.
const LEFT_DAYS: [&str; 3] = [
    "INSERT INTO partners VALUES ('acme', 'Acme', '{}', 1, 1)",
    "INSERT INTO quotas (id, partner, purpose, name, mac, kinds, disabled, period, period_start, created_at, updated_at) \
     VALUES ('q', 'acme', 'key', '', '', '[]', FALSE, 'lifetime', 0, 0, 0)",
    "INSERT INTO usage_days (quota, day, model, character_ref, measure, amount) VALUES \
     ('q', '2026-01-01', 'gpt', '', 'tokens', 9007199254740993), ('q', '2026-01-01', 'gpt', '', 'cost', 2), \
     ('q', '2026-01-01', 'gpt', '', 'characters', 3), ('q', '2026-01-01', 'gpt', '', 'seconds', 4), \
     ('q', '2026-01-01', 'gpt', '', 'input_tokens', 5), ('q', '2026-01-01', 'gpt', '', 'cached_tokens', 6), \
     ('q', '2026-01-01', 'gpt', '', 'output_tokens', 7), ('q', '2026-01-01', 'gpt', '', 'reasoning_tokens', 8), \
     ('q', '2026-01-01', 'gpt', '', 'requests', 9), ('q', '2026-01-01', 'gpt', 'acme/ada', 'requests', 1), \
     ('q', '2026-01-01', 'tts', '', 'seconds', 11), ('q', '2026-01-02', 'gpt', '', 'cost', -12), \
     ('q', '2026-01-03', 'gpt', '', 'requests', 0)",
];

const DAYS: &str = "SELECT quota || ' ' || day || ' ' || model || ' ' || character_ref || ' ' || CAST(tokens AS TEXT) || ' ' || CAST(cost AS TEXT) \
     || ' ' || CAST(characters AS TEXT) || ' ' || CAST(seconds AS TEXT) || ' ' || CAST(input_tokens AS TEXT) || ' ' || CAST(cached_tokens AS TEXT) \
     || ' ' || CAST(output_tokens AS TEXT) || ' ' || CAST(reasoning_tokens AS TEXT) || ' ' || CAST(requests AS TEXT) \
     FROM usage_days ORDER BY quota, day, model, character_ref";

/// Migrates a connection from 61 to 62, with sums of days.
macro_rules! migrated_with_days {
    ($connection:ident, $dialect:expr) => {
        let all = migrator($dialect);
        all.run_to(60, &mut $connection).await.unwrap();
        for sql in LEFT_DAYS {
            sqlx::query(sql).execute(&mut $connection).await.unwrap();
        }
        all.run_to(61, &mut $connection).await.unwrap();
        let days: Vec<String> = sqlx::query_scalar(DAYS)
            .fetch_all(&mut $connection)
            .await
            .unwrap();
        assert_eq!(
            days,
            [
                "q 2026-01-01 gpt  9007199254740993 2 3 4 5 6 7 8 9",
                "q 2026-01-01 gpt acme/ada 0 0 0 0 0 0 0 0 1",
                "q 2026-01-01 tts  0 0 0 11 0 0 0 0 0",
                "q 2026-01-02 gpt  0 -12 0 0 0 0 0 0 0",
            ]
        );
        // Days have one row each, and go with their quota.
        let again = "INSERT INTO usage_days (quota, day, model, character_ref) VALUES ('q', '2026-01-01', 'gpt', '')";
        let again = sqlx::query(again).execute(&mut $connection).await;
        let refused = again.unwrap_err().into_database_error().unwrap();
        assert!(refused.is_unique_violation());
        let gone = "DELETE FROM partners";
        sqlx::query(gone).execute(&mut $connection).await.unwrap();
        let left: i64 = sqlx::query_scalar("SELECT COUNT(*) FROM usage_days")
            .fetch_one(&mut $connection)
            .await
            .unwrap();
        assert_eq!(left, 0);
    };
}

#[tokio::test]
async fn sums_of_days_keep_their_amounts_on_sqlite() {
    let mut connection = SqliteConnection::connect("sqlite::memory:").await.unwrap();
    migrated_with_days!(connection, Dialect::Sqlite);
}

#[tokio::test]
async fn sums_of_days_keep_their_amounts_on_postgres() {
    let database = TestDatabase::empty_postgres().await;
    let url = database.postgres_url().unwrap();
    let mut connection = PgConnection::connect(url.as_str()).await.unwrap();
    migrated_with_days!(connection, Dialect::Postgres);
}
