//! The rows that are listed, written by SQL that SQLite and PostgreSQL both know.
//!
//! Triggers of the database keep the sizes, the costs of rewritings and the changes of resources. Requests to services are written as settled, which no
//! trigger counts; one statement adds them up. No document is queued or running, so that the server has nothing to do meanwhile.

mod jobs;

use colloquy::{
    clock::rfc3339,
    store::{Db, Dialect, Executor as _},
};

/// The partner that the server was started with.
pub(super) const PARTNER: &str = "bench";
/// The knowledge base with most documents.
pub(super) const BASE: &str = "archive";
/// Folders of [`BASE`]; every other base has one.
const FOLDERS: u32 = 50;
/// Documents of every other base.
const FEW_DOCUMENTS: u32 = 5;
const CHARACTERS: u32 = 200;
const KEYS: u32 = 100;
/// Lines of a transcript.
const LINES: u32 = 20;
const MINUTE_MS: i64 = 60_000;
const DAY_MS: i64 = 24 * 60 * MINUTE_MS;

/// True for a document `d` with a text, with final content, with vectors.
const HAS_TEXT: &str = "d.digitizing = 'done'";
const HAS_FINAL: &str = "d.rewriting = 'done'";
const HAS_VECTORS: &str = "d.embedding = 'done'";
/// The number of a document `d`.
const NUMBER: &str = "CAST(SUBSTR(d.id, 25) AS BIGINT)";

/// A number that has nothing to do with the order of the rows `i`.
const SCATTERED: &str = "(i * 7919 % 100003)";

const WORDS: [&str; 20] = [
    "anchor", "beacon", "canal", "delta", "estuary", "fathom", "glacier", "harbour", "inlet",
    "jetty", "keel", "lagoon", "mooring", "narrows", "ocean", "pier", "quay", "reef", "strait",
    "tide",
];

/// The tables whose ids are known.
#[derive(Debug, Clone, Copy)]
pub(super) enum Table {
    Base,
    Folder,
    Document,
    Usage,
    Call,
    Delivery,
    Key,
    Quota,
    Transcript,
    Analysis,
    Question,
}

/// How much there is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seeded {
    pub(super) bases: u32,
    /// Those of [`BASE`].
    pub(super) documents: u32,
    /// Calls, and deliveries.
    pub(super) calls: u32,
    /// The time of the newest row, in milliseconds since 1970.
    pub(super) now: i64,
}

impl Seeded {
    /// The time of the call in the middle, in milliseconds since 1970.
    pub(super) fn middle(&self) -> i64 {
        self.now - MINUTE_MS * i64::from(self.calls) / 2
    }

    /// The date of a number of days before that of the newest row.
    pub(super) fn day(&self, before: i64) -> String {
        rfc3339(self.now - before * DAY_MS)
            .chars()
            .take(10)
            .collect()
    }
}

/// Returns the id of a row.
pub(super) fn id(table: Table, number: u32) -> String {
    format!("{}{number:012}", prefix(table))
}

fn prefix(table: Table) -> String {
    format!("00000000-0000-7000-80{:02}-", table as u8)
}

/// The SQL of the id of a row.
fn id_of(table: Table, number: &str) -> String {
    let prefix = prefix(table);
    format!("('{prefix}' || SUBSTR(CAST(1000000000000 + {number} AS TEXT), 2))")
}

/// The SQL of a word.
fn word(number: &str) -> String {
    let words = (0..).zip(WORDS);
    let words: String = words
        .map(|(i, it)| format!(" WHEN {i} THEN '{it}'"))
        .collect();
    format!("(CASE ({number}) % {}{words} END)", WORDS.len())
}

/// Rows `i` from 0, for an insertion.
fn rows(count: u32) -> String {
    format!(
        "WITH RECURSIVE n(i) AS (SELECT CAST(0 AS BIGINT) UNION ALL SELECT i + 1 FROM n WHERE i + 1 < {count})"
    )
}

/// Writes all rows.
///
/// # Errors
/// A statement fails.
pub(super) async fn write(db: &Db, seeded: &Seeded) -> anyhow::Result<()> {
    let knowledge = [
        bases(seeded),
        documents(seeded),
        contents(),
        usage(db.dialect()),
    ];
    let others = [
        calls(seeded),
        deliveries(seeded),
        accounts(seeded),
        jobs::usage(seeded),
        jobs::jobs(seeded),
        jobs::questions(seeded),
    ];
    for sql in knowledge.into_iter().chain(others).flatten() {
        db.execute(sql).await?;
        // What autovacuum does by itself, later: most statements leave a dead copy of each document.
        if db.dialect() == Dialect::Postgres {
            db.execute("VACUUM ANALYZE").await?;
        }
    }
    Ok(())
}

fn bases(seeded: &Seeded) -> Vec<String> {
    let Seeded { bases, now, .. } = seeded;
    let name = format!(
        "CASE WHEN i = 0 THEN '{BASE}' ELSE {} || '-' || CAST(i AS TEXT) END",
        word("i * 7")
    );
    let base = id_of(Table::Base, "i");
    let folders = FOLDERS + bases - 1;
    let of_folder = id_of(
        Table::Base,
        &format!("(CASE WHEN i < {FOLDERS} THEN 0 ELSE i - {FOLDERS} + 1 END)"),
    );
    let folder = id_of(Table::Folder, "i");
    vec![
        format!(
            "INSERT INTO knowledge_bases (id, partner, name, character_limit, created_at, sort_name) {} \
             SELECT {base}, '{PARTNER}', {name}, CASE WHEN i % 3 = 1 THEN 1000000 END, {now}, {name} FROM n",
            rows(*bases)
        ),
        format!(
            "INSERT INTO quotas (id, partner, purpose, name, mac, kinds, disabled, period, period_start, created_at, updated_at) \
             SELECT id, partner, 'budget', '', '', '[]', FALSE, 'lifetime', 0, {now}, {now} FROM knowledge_bases"
        ),
        format!(
            "INSERT INTO knowledge_folders (id, base_id, name, type, created_at, sort_name) {} \
             SELECT {folder}, {of_folder}, 'folder-' || CAST(i AS TEXT), 'regular', {now}, 'folder-' || CAST(i AS TEXT) FROM n",
            rows(folders)
        ),
        format!(
            "INSERT INTO blobs (key, owner, state, bytes, updated_at) VALUES ('seeded', '{PARTNER}', 'kept', 1, {now})"
        ),
    ]
}

fn documents(seeded: &Seeded) -> Vec<String> {
    let Seeded {
        bases,
        documents,
        now,
        ..
    } = seeded;
    let others = bases - 1;
    let all = documents + others * FEW_DOCUMENTS;
    let is_in_base = format!("i < {documents}");
    let base = id_of(
        Table::Base,
        &format!("(CASE WHEN {is_in_base} THEN 0 ELSE 1 + (i - {documents}) % {others} END)"),
    );
    let folder = id_of(
        Table::Folder,
        &format!(
            "(CASE WHEN {is_in_base} THEN i % {FOLDERS} ELSE {FOLDERS} + (i - {documents}) % {others} END)"
        ),
    );
    let name = format!(
        "{} || ' ' || {} || ' ' || CAST({SCATTERED} AS TEXT) || '.pdf'",
        word(&format!("{SCATTERED} / 100")),
        word(&format!("{SCATTERED} / 2000"))
    );
    let id = id_of(Table::Document, "i");
    // Of each hundred: 2 without content, 2 failed, 1 blocked, 5 with a text, 10 with final content, the others searchable.
    let step = |unfinished: &[(u32, &str)], done_from: u32| {
        let cases = unfinished.iter();
        let cases: String = cases
            .map(|(of_hundred, state)| {
                format!(" WHEN {SCATTERED} % 100 = {of_hundred} THEN '{state}'")
            })
            .collect();
        format!("CASE{cases} WHEN {SCATTERED} % 100 >= {done_from} THEN 'done' ELSE 'none' END")
    };
    vec![format!(
        "INSERT INTO knowledge_documents (id, base_id, folder_id, name, sort_name, type, content_type, model_tier, auto_rewrite, \
         use_original_as_rewritten, digitizing, rewriting, embedding, processing_error, needed_tokens, needed_cost, blocked_at, revision, \
         created_at, updated_at) {} \
         SELECT {id}, {base}, {folder}, {name}, {name}, 'file', 'auto', 'standard', TRUE, FALSE, {}, {}, {}, \
         CASE {SCATTERED} % 100 WHEN 2 THEN 'The file is damaged' WHEN 3 THEN 'The service does not answer' WHEN 4 THEN 'The budget is used up' END, \
         CASE WHEN {SCATTERED} % 100 = 4 THEN 5000 END, CASE WHEN {SCATTERED} % 100 = 4 THEN 70000 END, CASE WHEN {SCATTERED} % 100 = 4 THEN {now} END, 1, \
         {now} - {all} + i, {now} - i * 104729 % 100003 FROM n",
        rows(all),
        step(&[(2, "failed")], 3),
        step(&[(3, "failed"), (4, "blocked")], 10),
        step(&[], 20),
    )]
}

fn contents() -> Vec<String> {
    let insert = "INSERT INTO knowledge_contents (document_id, variant, blob, file_name, media_type, bytes, characters, sha256, \
                  updated_at, revision, base_id, made_of)";
    let sha256 = format!("'seeded-' || CAST({NUMBER} AS TEXT)");
    let bytes = format!("1000 + {NUMBER} * 7919 % 5000000");
    let text = |variant: &str, which: &str, share: u32| {
        format!(
            "{insert} SELECT d.id, '{variant}', 'seeded', 'text.md', 'text/markdown', ({bytes}) / {share}, ({bytes}) / {share}, \
             {sha256} || '{variant}', d.updated_at, 1, NULL, {sha256} FROM knowledge_documents d WHERE {which}"
        )
    };
    vec![
        format!(
            "{insert} SELECT d.id, 'original', 'seeded', d.name, 'application/pdf', {bytes}, NULL, {sha256}, d.updated_at, 1, d.base_id, NULL \
             FROM knowledge_documents d WHERE {HAS_TEXT} OR d.digitizing = 'failed'"
        ),
        text("digitized", HAS_TEXT, 40),
        text("rewritten", HAS_FINAL, 50),
        format!(
            "INSERT INTO knowledge_rewrites (document_id, revision, model, sections, done, asking, input_tokens, output_tokens, cost, complete, \
             updated_at) SELECT d.id, 1, 'model', 5, 5, FALSE, 9000, 3000, {NUMBER} * 101 % 1000003, {NUMBER} % 25 <> 0, d.updated_at \
             FROM knowledge_documents d WHERE {HAS_FINAL}"
        ),
        format!(
            "INSERT INTO knowledge_steps (document_id, step, state, reason, at) \
             SELECT d.id, 'digitize', d.digitizing, CASE d.digitizing WHEN 'failed' THEN d.processing_error END, d.updated_at \
             FROM knowledge_documents d WHERE d.digitizing <> 'none' \
             UNION ALL SELECT d.id, 'rewrite', d.rewriting, CASE d.rewriting WHEN 'done' THEN NULL ELSE d.processing_error END, d.updated_at \
             FROM knowledge_documents d WHERE d.rewriting <> 'none' \
             UNION ALL SELECT d.id, 'embed', d.embedding, NULL, d.updated_at FROM knowledge_documents d WHERE {HAS_VECTORS}"
        ),
    ]
}

/// Requests to services: of each document three rewritings, an embedding, and a transcription of each tenth. Of each hundredth document one outcome
/// is unknown, and as many were decided about.
fn usage(dialect: Dialect) -> Vec<String> {
    let columns = "id, base_id, document_id, kind, model, local, node_id, outcome, bound_tokens, bound_cost, input_tokens, output_tokens, cost, \
                   unknown, taken_for, decided_at, created_at, settled_at";
    let of = |kind: &str, request: u32, which: &str| {
        let number = format!("({NUMBER} * 10 + {request})");
        let id = id_of(Table::Usage, &number);
        let (unknown, decided) = match (kind, request) {
            ("rewrite", 0) => (
                format!("{NUMBER} % 100 = 0"),
                format!("{NUMBER} % 100 = 50"),
            ),
            _ => ("FALSE".to_owned(), "FALSE".to_owned()),
        };
        let known = |value: &str| format!("CASE WHEN {unknown} THEN NULL ELSE {value} END");
        format!(
            "SELECT {id}, d.base_id, d.id, '{kind}', 'model', FALSE, 'node', CASE WHEN {unknown} THEN 'uncertain' ELSE 'success' END, \
             20000, 90000, {}, {}, {}, {unknown}, CASE WHEN {decided} THEN 'bound' END, CASE WHEN {decided} THEN d.updated_at END, \
             d.created_at, d.created_at FROM knowledge_documents d WHERE {which}",
            known(&format!("{number} * 13 % 9001")),
            known(&format!("{number} * 17 % 3001")),
            known(&format!(
                "CASE WHEN '{kind}' = 'transcribe' AND {NUMBER} % 70 = 0 THEN NULL ELSE {number} * 19 % 100003 END"
            )),
        )
    };
    let requests = [
        of("rewrite", 0, HAS_FINAL),
        of("rewrite", 1, HAS_FINAL),
        of("rewrite", 2, HAS_FINAL),
        of("embed", 3, HAS_VECTORS),
        of(
            "transcribe",
            4,
            &format!("{HAS_TEXT} AND {NUMBER} % 10 = 0"),
        ),
    ];
    let spent = |measure: &str, what: &str| {
        // Less than what was used, so that nothing that waits goes on.
        let limit = format!("CASE WHEN b.name = '{BASE}' THEN 1 END");
        format!(
            "INSERT INTO quota_amounts (quota, measure, limit_amount, used, reserved) \
             SELECT b.id, '{measure}', {limit}, CAST(COALESCE(SUM({what}), 0) AS BIGINT), 0 FROM knowledge_bases b \
             LEFT JOIN knowledge_usage u ON u.base_id = b.id WHERE b.partner = '{PARTNER}' GROUP BY b.id, b.name"
        )
    };
    let mut statements: Vec<String> = requests
        .iter()
        .map(|rows| format!("INSERT INTO knowledge_usage ({columns}) {rows}"))
        .collect();
    if dialect == Dialect::Postgres {
        // The trigger writes the change of one budget for each row: a hundred thousand versions of it in a transaction, each found by way of all
        // earlier ones. The change is there, since the base has one.
        let trigger = |what: &str| {
            format!("ALTER TABLE knowledge_usage {what} TRIGGER knowledge_usage_changed")
        };
        statements.insert(0, trigger("DISABLE"));
        statements.push(trigger("ENABLE"));
    }
    statements.extend([
        "UPDATE knowledge_documents SET tokens = u.tokens, reading_cost = u.cost, reading_requests = u.requests, reading_unpriced = u.unpriced \
         FROM (SELECT document_id, CAST(SUM(COALESCE(input_tokens, 0) + COALESCE(output_tokens, 0)) AS BIGINT) AS tokens, \
         CAST(COALESCE(SUM(CASE WHEN kind = 'transcribe' THEN cost END), 0) AS BIGINT) AS cost, \
         SUM(CASE WHEN kind = 'transcribe' THEN 1 ELSE 0 END) AS requests, \
         SUM(CASE WHEN kind = 'transcribe' AND cost IS NULL THEN 1 ELSE 0 END) AS unpriced \
         FROM knowledge_usage GROUP BY document_id) AS u WHERE u.document_id = knowledge_documents.id"
            .to_owned(),
        spent("tokens", "COALESCE(u.input_tokens, 0) + COALESCE(u.output_tokens, 0)"),
        spent("cost", "u.cost"),
    ]);
    statements
}

fn calls(seeded: &Seeded) -> Vec<String> {
    let Seeded { calls, now, .. } = seeded;
    let line = r#"{"text":"The harbour closes at nine in the evening, except on Sundays.","originator":"bot","at_ms":1000}"#;
    let transcript = vec![line; LINES as usize].join(",");
    let at = format!("{now} - ({calls} - 1 - i) * {MINUTE_MS}");
    vec![format!(
        "INSERT INTO calls (id, partner, state, error_code, character_json, character_params, character_reference, time_limit_seconds, metadata, \
         expires_at, taken_at, ongoing_at, ended_at, call_seconds, server_runtime_seconds, transcript, ended_bytes, created_at, updated_at) {} \
         SELECT {}, '{PARTNER}', CASE i % 10 WHEN 3 THEN 'error' ELSE 'completed' END, CASE i % 10 WHEN 3 THEN 'PEER_LOST' END, '', '', \
         '{PARTNER}/character-' || CAST(i % {CHARACTERS} AS TEXT), 600, '{{\"page\":\"/prices\"}}', {at} + {MINUTE_MS}, {at}, {at}, {at} + {MINUTE_MS}, \
         60, 61, CASE i % 10 WHEN 3 THEN NULL ELSE '[{transcript}]' END, 2000, {at}, {at} + {MINUTE_MS} FROM n",
        rows(*calls),
        id_of(Table::Call, "i"),
    )]
}

/// One delivery of each call, with an attempt.
fn deliveries(seeded: &Seeded) -> Vec<String> {
    let Seeded { calls, .. } = seeded;
    vec![
        format!(
            "INSERT INTO webhook_deliveries (id, partner, event, subject, url, payload, state, attempts, round_attempts, created_at, updated_at) {} \
             SELECT {}, c.partner, 'call.completed', '/v2/calls/' || c.id, 'https://example.com/hook', '{{\"data\":{{\"state\":\"completed\"}}}}', \
             CASE n.i % 20 WHEN 7 THEN 'failed' ELSE 'succeeded' END, 1, 1, c.ended_at, c.ended_at FROM n JOIN calls c ON c.id = {}",
            rows(*calls),
            id_of(Table::Delivery, "n.i"),
            id_of(Table::Call, "n.i"),
        ),
        "INSERT INTO webhook_attempts (delivery_id, number, started_at, duration_ms, status) \
         SELECT id, 1, created_at, 40, CASE state WHEN 'failed' THEN 500 ELSE 200 END FROM webhook_deliveries"
            .to_owned(),
    ]
}

fn accounts(seeded: &Seeded) -> Vec<String> {
    let now = seeded.now;
    vec![
        format!(
            "INSERT INTO characters (partner, name, version, created_at, updated_at) {} \
             SELECT '{PARTNER}', 'character-' || CAST(i AS TEXT), 1, {now}, {now} FROM n",
            rows(CHARACTERS)
        ),
        format!(
            "INSERT INTO character_versions (partner, name, version, personality, parameters, created_at) \
             SELECT partner, name, 1, 'You are a friendly guide.', '{{}}', {now} FROM characters"
        ),
        format!(
            "INSERT INTO api_keys (id, kind, partner, name, mac, scopes, created_at) {} \
             SELECT {}, 'secret', '{PARTNER}', 'key ' || CAST(i AS TEXT), 'seeded-' || CAST(i AS TEXT), NULL, {now} FROM n",
            rows(KEYS),
            id_of(Table::Key, "i"),
        ),
    ]
}
