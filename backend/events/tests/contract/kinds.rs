//! What each trigger records.

use std::collections::BTreeSet;

use support::on_each_database;

use super::*;

/// A change that is expected: the kind of the resource, its id, and whether it was deleted.
type Told = (&'static str, &'static str, bool);

/// The kinds of events.
const KINDS: [&str; 16] = [
    "analysis",
    "base",
    "budget",
    "call",
    "call_lines",
    "call_quality",
    "character",
    "completion",
    "delivery",
    "document",
    "evaluation",
    "folder",
    "key",
    "question",
    "transcript",
    "voice",
];

/// Those of what is in a knowledge base.
const OF_A_BASE: [&str; 6] = [
    "base",
    "budget",
    "document",
    "evaluation",
    "folder",
    "question",
];

const DOCUMENT: &str = "INSERT INTO knowledge_documents (id, base_id, folder_id, name, type, content_type, model_tier, auto_rewrite, \
     use_original_as_rewritten, digitizing, rewriting, embedding, revision, created_at, updated_at) \
     VALUES ('d1', 'b1', 'f1', 'text', 'file', 'auto', 'standard', FALSE, FALSE, 'none', 'none', 'none', 0, 1, 1)";
const FOLDER: &str = "INSERT INTO knowledge_folders (id, base_id, name, type, created_at) VALUES ('f1', 'b1', 'inbox', 'regular', 1)";
const QUESTION: &str = "INSERT INTO knowledge_questions (id, base_id, user_message, bytes, revision, created_at, updated_at) \
     VALUES ('q1', 'b1', 'When?', 1, 1, 1, 1)";
const EVALUATION: &str = "INSERT INTO knowledge_evaluations (id, base_id, status, cutoff, parameters, questions, asked, created_at) \
     VALUES ('e1', 'b1', 'queued', 10, '{}', 1, 0, 1)";
const SAMPLE: &str = "INSERT INTO voice_samples (voice_id, sample_index, source_seconds, milliseconds, blob_key, blob_bytes) \
     VALUES ('v1', 1, 0, 1, 'blob', 1)";

const OF_BASES: &[(&str, &[Told])] = &[
    (
        "INSERT INTO knowledge_bases (id, partner, name, created_at) VALUES ('b1', 'acme', 'help', 1)",
        &[("base", "help", false), ("budget", "help", false)],
    ),
    (
        "UPDATE knowledge_bases SET expert_name = 'Ada'",
        &[("base", "help", false)],
    ),
    (
        "UPDATE knowledge_bases SET character_limit = 5",
        &[("base", "help", false), ("budget", "help", false)],
    ),
    (FOLDER, &[("folder", "inbox", false)]),
    (
        "UPDATE knowledge_folders SET deletion_requested_at = NULL",
        &[("folder", "inbox", false)],
    ),
    (
        "INSERT INTO knowledge_channels (folder_id, base_id, channel_url, alias, enabled, model_tier, status, created_at) \
         VALUES ('f1', 'b1', '@zoo', '@zoo', TRUE, 'standard', 'pending', 1)",
        &[("folder", "inbox", false)],
    ),
    (
        "UPDATE knowledge_channels SET status = 'syncing'",
        &[("folder", "inbox", false)],
    ),
    // A scan that notes videos changes its channel, too.
    (
        "INSERT INTO knowledge_channel_videos (channel, video, url, title, state, seen_at, place) \
         VALUES ('f1', 'v', 'https://example.org/v', 'Lions', 'pending', 1, 1)",
        &[],
    ),
    (
        "DELETE FROM knowledge_channels",
        &[("folder", "inbox", false)],
    ),
    (DOCUMENT, &[("document", "d1", false)]),
    // As with each content that is stored.
    (
        "UPDATE knowledge_documents SET revision = revision + 1",
        &[("document", "d1", false)],
    ),
    (
        "UPDATE knowledge_documents SET embedding = 'running'",
        &[("document", "d1", false)],
    ),
    (
        "INSERT INTO knowledge_usage (id, base_id, document_id, kind, model, local, node_id, outcome, unknown, created_at) \
         VALUES ('u1', 'b1', 'd1', 'rewrite', 'm', FALSE, 'n', 'pending', FALSE, 1)",
        &[("budget", "help", false)],
    ),
    (
        "INSERT INTO blobs (key, owner, state, bytes, updated_at) VALUES ('x', 'acme', 'kept', 1, 1)",
        &[],
    ),
    // Its size and its cost are columns of the document.
    (
        "INSERT INTO knowledge_contents (document_id, variant, blob, file_name, media_type, bytes, sha256, updated_at) \
         VALUES ('d1', 'original', 'x', 'a.txt', 'text/plain', 1, '', 1)",
        &[("document", "d1", false)],
    ),
    (
        "UPDATE knowledge_usage SET outcome = 'success'",
        &[("budget", "help", false), ("document", "d1", false)],
    ),
    (
        "DELETE FROM knowledge_usage",
        &[("budget", "help", false), ("document", "d1", false)],
    ),
    (QUESTION, &[("question", "q1", false)]),
    (
        "UPDATE knowledge_questions SET revision = 2",
        &[("question", "q1", false)],
    ),
    (
        "INSERT INTO knowledge_question_documents VALUES ('q1', 'd1')",
        &[],
    ),
    (EVALUATION, &[("evaluation", "e1", false)]),
    (
        "INSERT INTO knowledge_evaluation_results (evaluation_id, question_id) VALUES ('e1', 'q1')",
        &[],
    ),
    (
        "UPDATE knowledge_evaluations SET asked = 1",
        &[("evaluation", "e1", false)],
    ),
    (
        "DELETE FROM knowledge_documents",
        &[("document", "d1", true)],
    ),
    (
        "DELETE FROM knowledge_questions",
        &[("question", "q1", true)],
    ),
    (
        "DELETE FROM knowledge_evaluations",
        &[("evaluation", "e1", true)],
    ),
    (DOCUMENT, &[("document", "d1", false)]),
    (
        "DELETE FROM knowledge_folders",
        &[("document", "d1", true), ("folder", "inbox", true)],
    ),
];

/// A base that is being deleted tells nothing of what is in it.
const OF_DELETED_BASES: &[(&str, &[Told])] = &[
    (FOLDER, &[("folder", "inbox", false)]),
    (DOCUMENT, &[("document", "d1", false)]),
    (QUESTION, &[("question", "q1", false)]),
    (EVALUATION, &[("evaluation", "e1", false)]),
    (
        "UPDATE knowledge_bases SET deletion_requested_at = 1",
        &[("base", "help", false)],
    ),
    ("DELETE FROM knowledge_documents", &[]),
    ("DELETE FROM knowledge_folders", &[]),
    ("DELETE FROM knowledge_bases", &[("base", "help", true)]),
];

const OF_JOBS: &[(&str, &[Told])] = &[
    (
        "INSERT INTO calls (id, partner, state, character_json, character_params, time_limit_seconds, expires_at, created_at, updated_at, \
         character_bytes, ended_bytes) VALUES ('c1', 'acme', 'starting', '{}', '{}', 1, 1, 1, 1, 0, 0)",
        &[("call", "c1", false)],
    ),
    (
        "UPDATE calls SET taken_at = 2, node_id = 'n'",
        &[("call", "c1", false)],
    ),
    (
        "UPDATE calls SET state = 'ongoing', ongoing_at = 3",
        &[("call", "c1", false)],
    ),
    (
        "INSERT INTO call_lines (call_id, line, originator, text, at_ms, interrupted) VALUES ('c1', 0, 'bot', 'Welcome.', 1, FALSE)",
        &[("call_lines", "c1", false)],
    ),
    (
        "UPDATE call_lines SET text = 'Welcome aboard.'",
        &[("call_lines", "c1", false)],
    ),
    (
        "INSERT INTO call_quality (call_id, points) VALUES ('c1', '[]')",
        &[("call_quality", "c1", false)],
    ),
    (
        "UPDATE call_quality SET points = '[1]'",
        &[("call_quality", "c1", false)],
    ),
    ("UPDATE calls SET node_id = NULL, cost = 1", &[]),
    ("DELETE FROM calls", &[("call", "c1", true)]),
    (
        "INSERT INTO webhook_deliveries (id, partner, event, subject, url, payload, state, attempts, round_attempts, created_at, updated_at) \
         VALUES ('w1', 'acme', 'call.ended', '/v2/calls/c1', 'https://example.org', '{}', 'pending', 0, 0, 1, 1)",
        &[("delivery", "w1", false)],
    ),
    (
        "UPDATE webhook_deliveries SET attempts = 1",
        &[("delivery", "w1", false)],
    ),
    (
        "UPDATE webhook_deliveries SET state = 'succeeded'",
        &[("delivery", "w1", false)],
    ),
    ("UPDATE webhook_deliveries SET updated_at = 2", &[]),
    (
        "DELETE FROM webhook_deliveries",
        &[("delivery", "w1", true)],
    ),
    (
        "INSERT INTO transcripts (id, partner, status, options, window_sample, created_at) VALUES ('t1', 'acme', 'queued', '{}', 0, 1)",
        &[("transcript", "t1", false)],
    ),
    (
        "UPDATE transcripts SET window_sample = 16000",
        &[("transcript", "t1", false)],
    ),
    (
        "UPDATE transcripts SET status = 'completed'",
        &[("transcript", "t1", false)],
    ),
    ("UPDATE transcripts SET language = 'en'", &[]),
    ("DELETE FROM transcripts", &[("transcript", "t1", true)]),
    (
        "INSERT INTO dialog_analyses (id, partner, state, asked, created_at) VALUES ('a1', 'acme', 'in-progress', 0, 1)",
        &[("analysis", "a1", false)],
    ),
    (
        "UPDATE dialog_analyses SET asked = 1",
        &[("analysis", "a1", false)],
    ),
    (
        "UPDATE dialog_analyses SET state = 'failed'",
        &[("analysis", "a1", false)],
    ),
    ("UPDATE dialog_analyses SET error = NULL", &[]),
    ("DELETE FROM dialog_analyses", &[("analysis", "a1", true)]),
    (
        "INSERT INTO completions (id, partner, state, created_at) VALUES ('p1', 'acme', 'in-progress', 1)",
        &[("completion", "p1", false)],
    ),
    (
        "UPDATE completions SET state = 'completed'",
        &[("completion", "p1", false)],
    ),
    ("UPDATE completions SET question = NULL", &[]),
    ("DELETE FROM completions", &[("completion", "p1", true)]),
];

const OF_OTHERS: &[(&str, &[Told])] = &[
    (
        "INSERT INTO characters (partner, name, version, created_at, updated_at) VALUES ('acme', 'guide', 1, 1, 1)",
        &[("character", "guide", false)],
    ),
    (
        "UPDATE characters SET version = 2",
        &[("character", "guide", false)],
    ),
    ("DELETE FROM characters", &[("character", "guide", true)]),
    (
        "INSERT INTO api_keys (id, kind, partner, name, mac, created_at) VALUES ('k1', 'secret', 'acme', 'key', '', 1)",
        &[("key", "k1", false)],
    ),
    (
        "UPDATE api_keys SET revoked_at = 1 WHERE id = 'k1'",
        &[("key", "k1", false)],
    ),
    ("UPDATE api_keys SET last_used_at = 1 WHERE id = 'k1'", &[]),
    (
        "DELETE FROM api_keys WHERE id = 'k1'",
        &[("key", "k1", true)],
    ),
    (
        "INSERT INTO voices (id, partner, name, splitting, max_samples, sample_seconds, window_sample, embeds_next, created_at) \
         VALUES ('v1', 'acme', 'ada', 'idle', 1, 1, 0, FALSE, 1)",
        &[("voice", "ada", false)],
    ),
    (
        "UPDATE voices SET splitting = 'in_progress'",
        &[("voice", "ada", false)],
    ),
    (
        "UPDATE voices SET name = 'eve'",
        &[("voice", "ada", true), ("voice", "eve", false)],
    ),
    (SAMPLE, &[("voice", "eve", false)]),
    (
        "UPDATE voice_samples SET blob_key = 'other'",
        &[("voice", "eve", false)],
    ),
    ("UPDATE voice_samples SET milliseconds = 2", &[]),
    ("DELETE FROM voice_samples", &[("voice", "eve", false)]),
    (
        "INSERT INTO voice_embeddings (voice_id, voice_type, status, run, token, begun_at, updated_at, given) \
         VALUES ('v1', 'any', 'in_progress', 'r', 't', 1, 1, 0)",
        &[("voice", "eve", false)],
    ),
    (
        "UPDATE voice_embeddings SET given = 1",
        &[("voice", "eve", false)],
    ),
    (
        "UPDATE voice_embeddings SET status = 'completed'",
        &[("voice", "eve", false)],
    ),
    ("UPDATE voice_embeddings SET token = 'u'", &[]),
    ("DELETE FROM voice_embeddings", &[("voice", "eve", false)]),
    (SAMPLE, &[("voice", "eve", false)]),
    ("DELETE FROM voices", &[("voice", "eve", true)]),
    // Of the administrators.
    (
        "INSERT INTO api_keys (id, kind, name, mac, created_at) VALUES ('k2', 'admin', 'key', '', 1)",
        &[],
    ),
];

/// The changes above a number, without their order.
async fn changed(app: &App, seq: i64) -> Vec<(String, String, String, bool)> {
    #[derive(sqlx::FromRow)]
    struct Row {
        kind: String,
        base: String,
        id: String,
        gone: bool,
    }
    let sql =
        format!("SELECT kind, base, id, gone FROM changes WHERE seq > {seq} ORDER BY kind, id");
    let rows: Vec<Row> = store(app).db().fetch_all(sql).await.unwrap();
    let changes = rows.into_iter();
    changes
        .map(|row| (row.kind, row.base, row.id, row.gone))
        .collect()
}

async fn check(app: &App, steps: &[(&str, &[Told])]) {
    for (sql, told) in steps {
        let before = newest(app).await;
        run(app, sql).await;
        let expected = told.iter().map(|(kind, id, gone)| {
            let is_of_base = OF_A_BASE.contains(kind);
            let base = if is_of_base { "help" } else { "" };
            ((*kind).to_owned(), base.to_owned(), (*id).to_owned(), *gone)
        });
        let expected: Vec<_> = expected.collect();
        assert_eq!(changed(app, before).await, expected, "{sql}");
    }
}

on_each_database!(each_kind_of_resource_is_told_of, |database| {
    let app = start(builder(&database)).await;
    let acme = app.partner("acme").await;
    for steps in [OF_BASES, OF_JOBS, OF_OTHERS] {
        check(&app, steps).await;
    }
    // All of them are events of the stream.
    let mut stream = resume(&app, &acme.key, "acme", 0).await;
    let mut told = BTreeSet::new();
    loop {
        let (kind, _) = stream.event().await;
        if kind == "ready" {
            break;
        }
        told.insert(kind);
    }
    assert_eq!(told.iter().map(String::as_str).collect::<Vec<_>>(), KINDS);
    check(&app, OF_DELETED_BASES).await;
});
