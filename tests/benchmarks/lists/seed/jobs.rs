//! A year of usage, and the jobs that have lists: transcripts, analyses, and evaluations of saved questions.

use serde_json::json;

use super::{BASE, MINUTE_MS, PARTNER, Seeded, Table, id_of, rows};

/// Quotas of the partner.
const QUOTAS: u32 = 20;
/// Days with usage, the last of them today.
const DAYS: u32 = 365;
/// Models, and characters, that each quota uses every day.
const MODELS: u32 = 3;
const CHARACTERS: u32 = 4;
/// Saved questions: as many as a knowledge base may have.
const QUESTIONS: u32 = 500;

/// Returns the statements that write quotas and what each used every day of a year.
pub(super) fn usage(seeded: &Seeded) -> Vec<String> {
    let now = seeded.now;
    let quota = id_of(Table::Quota, "i");
    let of = |count: u32, of: u32| format!("(i / {of} % {count})");
    let days: String = (0..DAYS)
        .map(|before| format!(" WHEN {before} THEN '{}'", seeded.day(before.into())))
        .collect();
    let day = format!("CASE {}{days} END", of(DAYS, MODELS * CHARACTERS));
    let owner = id_of(
        Table::Quota,
        &format!("(i / {})", MODELS * CHARACTERS * DAYS),
    );
    vec![
        format!(
            "INSERT INTO quotas (id, partner, purpose, name, mac, kinds, disabled, period, period_start, created_at, updated_at) {} \
             SELECT {quota}, '{PARTNER}', 'key', 'quota ' || CAST(i AS TEXT), 'seeded-' || CAST(i AS TEXT), '[\"text\"]', FALSE, 'lifetime', 0, {now}, {now} FROM n",
            rows(QUOTAS)
        ),
        format!(
            "INSERT INTO quota_amounts (quota, measure, limit_amount, used, reserved) {} \
             SELECT {quota}, 'tokens', 1000000000000, 1000000 + i, 0 FROM n",
            rows(QUOTAS)
        ),
        format!(
            "INSERT INTO usage_days (quota, day, model, character_ref, requests, tokens, cost, seconds) {} \
             SELECT {owner}, {day}, 'model-' || CAST({} AS TEXT), '{PARTNER}/character-' || CAST({} AS TEXT), \
             40 + i % 7, 90000 + i % 1009, 1700000 + i % 10007, 600 + i % 61 FROM n",
            rows(QUOTAS * DAYS * MODELS * CHARACTERS),
            of(MODELS, CHARACTERS),
            of(CHARACTERS, 1),
        ),
    ]
}

/// Returns the statements that write as many transcripts and analyses as there are calls. Each tenth failed.
pub(super) fn jobs(seeded: &Seeded) -> Vec<String> {
    let Seeded { calls, now, .. } = seeded;
    let at = format!("{now} - ({calls} - 1 - i) * {MINUTE_MS}");
    let output = json!({"profile": {"name": "Maria"}, "feedback": {"satisfied": true}});
    let error = json!({"code": "model_failed", "message": "The model does not answer"});
    let text = "The harbour closes at nine in the evening, except on Sundays. ".repeat(40);
    vec![
        format!(
            "INSERT INTO transcripts (id, partner, status, options, window_sample, language, text, audio_seconds, error, created_at, ended_at) {} \
             SELECT {}, '{PARTNER}', CASE i % 10 WHEN 3 THEN 'error' ELSE 'completed' END, '{{}}', 0, 'en', \
             CASE i % 10 WHEN 3 THEN NULL ELSE '{text}' END, 240, CASE i % 10 WHEN 3 THEN 'The recording is damaged' END, {at}, {at} + {MINUTE_MS} FROM n",
            rows(*calls),
            id_of(Table::Transcript, "i"),
        ),
        format!(
            "INSERT INTO dialog_analyses (id, partner, state, output, error, asked, created_at, ended_at) {} \
             SELECT {}, '{PARTNER}', CASE i % 10 WHEN 3 THEN 'failed' ELSE 'completed' END, CASE i % 10 WHEN 3 THEN NULL ELSE '{output}' END, \
             CASE i % 10 WHEN 3 THEN '{error}' END, 1, {at}, {at} + {MINUTE_MS} FROM n",
            rows(*calls),
            id_of(Table::Analysis, "i"),
        ),
    ]
}

/// Returns the statements that write the saved questions of [`BASE`], each with an expected document.
pub(super) fn questions(seeded: &Seeded) -> Vec<String> {
    let Seeded { documents, now, .. } = seeded;
    let question = id_of(Table::Question, "i");
    let document = id_of(Table::Document, &format!("(i * 199 % {documents})"));
    vec![
        format!(
            "INSERT INTO knowledge_questions (id, base_id, user_message, bytes, revision, created_at, updated_at) {} \
             SELECT {question}, b.id, 'When does pier ' || CAST(i AS TEXT) || ' close on Sundays?', 200, 1, {now}, {now} \
             FROM n JOIN knowledge_bases b ON b.name = '{BASE}'",
            rows(QUESTIONS)
        ),
        format!(
            "INSERT INTO knowledge_question_documents (question_id, document_id) {} SELECT {question}, {document} FROM n",
            rows(QUESTIONS)
        ),
    ]
}
