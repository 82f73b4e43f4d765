//! The SQL of what was asked of services, and of budgets.

use std::collections::HashMap;

use colloquy_accounts::Tenant;
use colloquy_providers::TokenUsage;
use colloquy_store::{Executor, StoreError, placeholders, statement};

use super::pages::{DocumentPlace, DocumentSpan, FOLLOWING, UP_TO, following};
use crate::{
    admission::{PaidStep, TakenFor, UsageBound, UsageOutcome, Used},
    budget::NoRoom,
    document::Step,
};

/// A request that is about to be sent.
#[derive(Debug)]
pub(crate) struct NewUsage<'a> {
    pub(crate) id: &'a str,
    pub(crate) base: &'a str,
    pub(crate) document: &'a str,
    pub(crate) step: PaidStep,
    pub(crate) model: &'a str,
    pub(crate) is_local: bool,
    pub(crate) node: &'a str,
    pub(crate) bound: UsageBound,
}

fn number(count: Option<u64>) -> Option<i64> {
    count.map(|count| i64::try_from(count).unwrap_or(i64::MAX))
}

pub(crate) async fn insert_usage(
    db: &impl Executor,
    new: &NewUsage<'_>,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO knowledge_usage (id, base_id, document_id, kind, model, local, node_id, outcome, bound_tokens, bound_seconds, \
               bound_cost, unknown, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, 'pending', $8, $9, $10, $11, $12)";
    let values = [
        new.id.into(),
        new.base.into(),
        new.document.into(),
        new.step.as_str().into(),
        new.model.into(),
        new.is_local.into(),
        new.node.into(),
        number(new.bound.tokens).into(),
        number(new.bound.seconds).into(),
        number(new.bound.cost).into(),
        false.into(),
        now.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// Notes what a request came to, once; one whose outcome was not known may still tell. Whether it did.
pub(crate) async fn settle_usage(
    db: &impl Executor,
    id: &str,
    outcome: UsageOutcome,
    used: &Used,
    is_unknown: bool,
    now: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE knowledge_usage SET outcome = $2, input_tokens = $3, output_tokens = $4, seconds = $5, cost = $6, unknown = $7, \
               settled_at = $8 WHERE id = $1 AND outcome IN ('pending', 'uncertain')";
    let values = [
        id.into(),
        outcome.as_str().into(),
        number(used.tokens.map(|tokens| tokens.input)).into(),
        number(used.tokens.map(|tokens| tokens.output)).into(),
        number(used.seconds).into(),
        number(used.cost).into(),
        is_unknown.into(),
        now.into(),
    ];
    Ok(db.execute(statement(sql, values)).await? == 1)
}

/// Forgets a request that was not sent. Whether it was there.
pub(crate) async fn remove_usage(db: &impl Executor, id: &str) -> Result<bool, StoreError> {
    let sql = "DELETE FROM knowledge_usage WHERE id = $1 AND outcome IN ('pending', 'uncertain')";
    Ok(db.execute(statement(sql, [id.into()])).await? == 1)
}

/// True if there is a row of this request.
pub(crate) async fn has_usage(db: &impl Executor, id: &str) -> Result<bool, StoreError> {
    let sql = "SELECT COUNT(*) FROM knowledge_usage WHERE id = $1";
    Ok(db.fetch_count(statement(sql, [id.into()])).await? > 0)
}

/// A request of a process that is gone.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct LostUsage {
    pub(crate) id: String,
    pub(crate) base_id: String,
    #[sqlx(rename = "local")]
    pub(crate) is_local: bool,
}

/// Requests whose process is gone, some of them.
pub(crate) async fn lost_usage(
    db: &impl Executor,
    own_node: &str,
    lost_before: i64,
) -> Result<Vec<LostUsage>, StoreError> {
    let sql = format!(
        "SELECT id, base_id, local FROM knowledge_usage \
         WHERE outcome = 'pending' AND node_id <> $2 AND node_id NOT IN ({}) ORDER BY id LIMIT 1000",
        colloquy_kernel::node::LIVING
    );
    db.fetch_all(statement(sql, [lost_before.into(), own_node.into()]))
        .await
}

/// A request of which something is not known.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct UnknownUsage {
    pub(crate) id: String,
    #[sqlx(try_from = "String")]
    pub(crate) kind: PaidStep,
    bound_tokens: Option<i64>,
    bound_cost: Option<i64>,
    input_tokens: Option<i64>,
    output_tokens: Option<i64>,
    cost: Option<i64>,
}

impl UnknownUsage {
    /// What it used, where what is not known is taken for its bound, or for nothing.
    pub(crate) fn taken_for(&self, taken: TakenFor) -> Used {
        let number = |number: Option<i64>| number.map(i64::unsigned_abs);
        let or = |known: Option<i64>, bound: Option<i64>| match (known, taken) {
            (Some(known), _) => Some(known.unsigned_abs()),
            (None, TakenFor::Bound) => number(bound),
            (None, TakenFor::Nothing) => Some(0),
        };
        let tokens = match (self.input_tokens, self.kind) {
            (None, PaidStep::Transcribe | PaidStep::Discover) => None,
            (input, _) => or(input, self.bound_tokens).map(|input| TokenUsage {
                input,
                output: number(self.output_tokens).unwrap_or_default(),
                ..TokenUsage::default()
            }),
        };
        Used {
            tokens,
            seconds: None,
            cost: or(self.cost, self.bound_cost),
        }
    }
}

/// So many requests of a base of which something is not known, after one of them.
pub(crate) async fn unknown_usage(
    db: &impl Executor,
    base: &str,
    after: &str,
    most: usize,
) -> Result<Vec<UnknownUsage>, StoreError> {
    let sql = "SELECT id, kind, bound_tokens, bound_cost, input_tokens, output_tokens, cost FROM knowledge_usage \
               WHERE base_id = $1 AND unknown AND id > $2 ORDER BY id LIMIT $3";
    let most = number(Some(most as u64));
    db.fetch_all(statement(sql, [base.into(), after.into(), most.into()]))
        .await
}

/// Notes what a request is taken for of which something was not known.
pub(crate) async fn decide_usage(
    db: &impl Executor,
    id: &str,
    taken: TakenFor,
    used: &Used,
    now: i64,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_usage SET outcome = CASE WHEN outcome = 'uncertain' THEN 'fault' ELSE outcome END, input_tokens = $2, \
               output_tokens = $3, cost = $4, unknown = $5, taken_for = $6, decided_at = $7 WHERE id = $1";
    let values = [
        id.into(),
        number(used.tokens.map(|tokens| tokens.input)).into(),
        number(used.tokens.map(|tokens| tokens.output)).into(),
        number(used.cost).into(),
        false.into(),
        taken.as_str().into(),
        now.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// What is not known of what a base spent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spending {
    /// Requests that were answered without telling their tokens.
    pub(crate) unknown_tokens: u64,
    /// Requests of which nobody knows what they cost.
    pub(crate) unknown_dollars: u64,
    /// Requests of which nobody knows what became of them.
    pub(crate) uncertain: u64,
}

#[derive(sqlx::FromRow)]
struct SpendingRow {
    unknown_tokens: i64,
    unknown_dollars: i64,
    uncertain: i64,
}

impl From<SpendingRow> for Spending {
    fn from(row: SpendingRow) -> Self {
        Self {
            unknown_tokens: row.unknown_tokens.unsigned_abs(),
            unknown_dollars: row.unknown_dollars.unsigned_abs(),
            uncertain: row.uncertain.unsigned_abs(),
        }
    }
}

/// The columns of [`SpendingRow`].
fn spending_columns() -> String {
    let count = |which: &str| format!("COALESCE(SUM(CASE WHEN {which} THEN 1 ELSE 0 END), 0)");
    format!(
        "{} AS unknown_tokens, {} AS unknown_dollars, {} AS uncertain",
        count("outcome <> 'uncertain' AND kind IN ('rewrite', 'embed') AND input_tokens IS NULL"),
        count("outcome <> 'uncertain' AND cost IS NULL"),
        count("outcome = 'uncertain'"),
    )
}

pub(crate) async fn spending(db: &impl Executor, base: &str) -> Result<Spending, StoreError> {
    let columns = spending_columns();
    let sql = format!("SELECT {columns} FROM knowledge_usage WHERE base_id = $1 AND unknown");
    let row: Option<SpendingRow> = db.fetch_one(statement(sql, [base.into()])).await?;
    Ok(row.map(Spending::from).unwrap_or_default())
}

#[derive(sqlx::FromRow)]
struct BaseSpendingRow {
    base_id: String,
    #[sqlx(flatten)]
    spending: SpendingRow,
}

/// Returns what is not known of what bases spent, without bases of which all is known.
pub(crate) async fn spending_among(
    db: &impl Executor,
    bases: &[String],
) -> Result<HashMap<String, Spending>, StoreError> {
    if bases.is_empty() {
        return Ok(HashMap::new());
    }
    let mut values = Vec::new();
    let ids = placeholders(&mut values, bases.iter().map(String::as_str));
    let columns = spending_columns();
    let sql = format!(
        "SELECT base_id, {columns} FROM knowledge_usage WHERE base_id IN ({ids}) AND unknown GROUP BY base_id"
    );
    let rows: Vec<BaseSpendingRow> = db.fetch_all(statement(sql, values)).await?;
    let spending = rows
        .into_iter()
        .map(|row| (row.base_id, row.spending.into()));
    Ok(spending.collect())
}

#[derive(sqlx::FromRow)]
struct NumberRow {
    number: Option<i64>,
}

/// How many characters a base may have.
pub(crate) async fn character_limit(
    db: &impl Executor,
    base: &str,
) -> Result<Option<u64>, StoreError> {
    let sql = "SELECT character_limit AS number FROM knowledge_bases WHERE id = $1";
    let row: Option<NumberRow> = db.fetch_one(statement(sql, [base.into()])).await?;
    Ok(row.and_then(|row| row.number).map(i64::unsigned_abs))
}

pub(crate) async fn set_character_limit(
    db: &impl Executor,
    base: &str,
    limit: Option<u64>,
) -> Result<(), StoreError> {
    let sql = "UPDATE knowledge_bases SET character_limit = $2 WHERE id = $1";
    db.execute(statement(sql, [base.into(), number(limit).into()]))
        .await?;
    Ok(())
}

/// Characters of the texts of the base `$1` besides that of the document `$2`, from the index of lists alone.
pub(super) const CHARACTERS: &str = "SELECT CAST(SUM(d.text_characters) AS BIGINT) AS number FROM knowledge_documents d \
     WHERE d.base_id = $1 AND d.id <> $2 AND d.deletion_requested_at IS NULL \
     AND d.folder_id NOT IN (SELECT f.id FROM knowledge_folders f WHERE f.base_id = $1 AND f.deletion_requested_at IS NOT NULL)";

/// The characters of the texts of a base, without those that are being deleted, and without the one of this document.
pub(crate) async fn count_characters(
    db: &impl Executor,
    base: &str,
    except: Option<&str>,
) -> Result<u64, StoreError> {
    let values = [base.into(), except.unwrap_or_default().into()];
    let row: Option<NumberRow> = db.fetch_one(statement(CHARACTERS, values)).await?;
    Ok(row
        .and_then(|row| row.number)
        .unwrap_or_default()
        .unsigned_abs())
}

/// What a document needs that waits for room.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Needed {
    pub(crate) characters: Option<u64>,
    pub(crate) tokens: Option<u64>,
    pub(crate) cost: Option<u64>,
}

/// Notes that a step of a document that is under way waits for room, why, and for how much. Where somebody has written meanwhile what the step would
/// give, it does not wait.
pub(crate) async fn block(
    db: &impl Executor,
    document: &str,
    step: PaidStep,
    why: &NoRoom,
    needed: Needed,
    now: i64,
) -> Result<(), StoreError> {
    wait(db, document, step, true, why, needed, now).await
}

/// Notes that a text that is there waits for room.
pub(crate) async fn block_text(
    db: &impl Executor,
    document: &str,
    why: &NoRoom,
    needed: Needed,
    now: i64,
) -> Result<(), StoreError> {
    wait(db, document, PaidStep::Transcribe, false, why, needed, now).await
}

async fn wait(
    db: &impl Executor,
    document: &str,
    step: PaidStep,
    is_under_way: bool,
    why: &NoRoom,
    needed: Needed,
    now: i64,
) -> Result<(), StoreError> {
    let (column, error) = match step {
        PaidStep::Transcribe | PaidStep::Discover => ("digitizing", "processing_error"),
        PaidStep::Rewrite => ("rewriting", "processing_error"),
        PaidStep::Embed => ("embedding", "embedding_error"),
    };
    let sql = format!(
        "UPDATE knowledge_documents SET {column} = 'blocked', {error} = $2, needed_characters = $3, needed_tokens = $4, needed_cost = $5, \
         blocked_at = CASE WHEN 'blocked' IN (digitizing, rewriting, embedding) THEN COALESCE(blocked_at, updated_at) ELSE $6 END, \
         updated_at = $6 WHERE id = $1{}",
        match is_under_way {
            true => format!(" AND {column} IN ('running', 'queued')"),
            false => String::new(),
        }
    );
    let values = [
        document.into(),
        why.told().into(),
        number(needed.characters).into(),
        number(needed.tokens).into(),
        number(needed.cost).into(),
        now.into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}

/// A document of which a step waits for room.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct BlockedDocument {
    pub(crate) id: String,
    #[sqlx(try_from = "String")]
    pub(crate) digitizing: Step,
    #[sqlx(try_from = "String")]
    pub(crate) rewriting: Step,
    #[sqlx(try_from = "String")]
    pub(crate) embedding: Step,
    pub(crate) character_limit: Option<i64>,
    pub(crate) needed_characters: Option<i64>,
    pub(crate) needed_tokens: Option<i64>,
    pub(crate) needed_cost: Option<i64>,
    /// The characters of the text that it has now.
    pub(crate) own_characters: Option<i64>,
    pub(crate) created_at: i64,
}

/// As the index of them has it.
pub(super) const IS_BLOCKED: &str = "(d.digitizing = 'blocked' OR d.rewriting = 'blocked' OR d.embedding = 'blocked') \
     AND d.deletion_requested_at IS NULL";

/// The documents of a base of which a step waits for room, oldest first, so many after one of them.
pub(crate) async fn blocked_documents(
    db: &impl Executor,
    base: &str,
    after: &DocumentPlace,
    most: i64,
) -> Result<Vec<BlockedDocument>, StoreError> {
    let sql = format!(
        "SELECT d.id, d.digitizing, d.rewriting, d.embedding, d.character_limit, d.needed_characters, d.needed_tokens, d.needed_cost, \
         d.text_characters AS own_characters, d.created_at FROM knowledge_documents d JOIN knowledge_folders f ON f.id = d.folder_id \
         WHERE {FOLLOWING} AND {IS_BLOCKED} AND f.deletion_requested_at IS NULL ORDER BY d.created_at, d.id LIMIT $4"
    );
    db.fetch_all(statement(sql, following(base, after, most)))
        .await
}

#[derive(sqlx::FromRow)]
struct WaitingRow {
    id: String,
    partner: String,
}

/// The bases of which something waits for room, each with its partner.
pub(crate) async fn waiting_bases(db: &impl Executor) -> Result<Vec<(String, Tenant)>, StoreError> {
    let sql = format!(
        "SELECT b.id, b.partner FROM knowledge_bases b WHERE b.deletion_requested_at IS NULL AND (\
         EXISTS (SELECT 1 FROM knowledge_documents d WHERE d.base_id = b.id AND {IS_BLOCKED}) \
         OR EXISTS (SELECT 1 FROM knowledge_channels c WHERE c.base_id = b.id AND c.status = 'budget_blocked'))"
    );
    let rows: Vec<WaitingRow> = db.fetch_all(statement(sql, [])).await?;
    let waiting = rows
        .into_iter()
        .map(|row| (row.id, Tenant::of_row(&row.partner)));
    Ok(waiting.collect())
}

/// Whether a step of any document of a base waits for room.
pub(crate) async fn has_blocked(db: &impl Executor, base: &str) -> Result<bool, StoreError> {
    let sql = format!(
        "SELECT COUNT(*) FROM (SELECT 1 FROM knowledge_documents d WHERE d.base_id = $1 AND {IS_BLOCKED} LIMIT 1) AS found"
    );
    Ok(db.fetch_count(statement(sql, [base.into()])).await? > 0)
}

/// Queues the steps of a document that wait for room.
pub(crate) async fn unblock(
    db: &impl Executor,
    document: &str,
    now: i64,
) -> Result<(), StoreError> {
    let queued =
        |step: &str| format!("{step} = CASE WHEN {step} = 'blocked' THEN 'queued' ELSE {step} END");
    let sql = format!(
        "UPDATE knowledge_documents SET processing_error = CASE WHEN 'blocked' IN (digitizing, rewriting) THEN NULL ELSE processing_error END, \
         embedding_error = CASE WHEN embedding = 'blocked' THEN NULL ELSE embedding_error END, {}, {}, {}, needed_characters = NULL, \
         needed_tokens = NULL, needed_cost = NULL, blocked_at = NULL, updated_at = $2 WHERE id = $1",
        queued("digitizing"),
        queued("rewriting"),
        queued("embedding"),
    );
    db.execute(statement(sql, [document.into(), now.into()]))
        .await?;
    Ok(())
}

/// What the settled requests of a base used, by what they were for, by model and by outcome.
#[derive(Debug, Clone, sqlx::FromRow)]
pub(crate) struct UsageSum {
    pub(crate) base_id: String,
    #[sqlx(try_from = "String")]
    pub(crate) kind: PaidStep,
    pub(crate) model: String,
    #[sqlx(try_from = "String")]
    pub(crate) outcome: UsageOutcome,
    pub(crate) events: i64,
    /// Those whose tokens are known.
    pub(crate) counted: i64,
    /// Those whose cost is known.
    pub(crate) priced: i64,
    pub(crate) documents: i64,
    /// In units of 1e-8 dollars.
    pub(crate) cost: i64,
    pub(crate) input_tokens: i64,
    pub(crate) output_tokens: i64,
}

/// What reading a document did cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct ReadingCost {
    /// In units of 1e-8 dollars, as far as it is known.
    pub(crate) cost: i64,
    pub(crate) events: i64,
    /// Those whose cost is known.
    pub(crate) priced: i64,
}

#[derive(sqlx::FromRow)]
struct ReadingRow {
    document_id: String,
    #[sqlx(flatten)]
    cost: ReadingCost,
}

const READING_COST: &str =
    "CAST(COALESCE(SUM(u.cost), 0) AS BIGINT) AS cost, COUNT(*) AS events, COUNT(u.cost) AS priced";

/// Returns the cost of reading each document of a page for which a service was asked.
pub(crate) async fn reading_costs_in(
    db: &impl Executor,
    span: &DocumentSpan<'_>,
) -> Result<HashMap<String, ReadingCost>, StoreError> {
    let sql = format!(
        "SELECT u.document_id, {READING_COST} FROM knowledge_usage u JOIN knowledge_documents d ON d.id = u.document_id \
         WHERE {FOLLOWING} AND {UP_TO} AND u.kind = 'transcribe' AND u.outcome <> 'pending' GROUP BY u.document_id"
    );
    let rows: Vec<ReadingRow> = db.fetch_all(statement(sql, span.values())).await?;
    let costs = rows.into_iter().map(|row| (row.document_id, row.cost));
    Ok(costs.collect())
}

/// Returns the cost of reading a document, or `None` if no service was asked.
pub(crate) async fn reading_cost_of(
    db: &impl Executor,
    document: &str,
) -> Result<Option<ReadingCost>, StoreError> {
    let sql = format!(
        "SELECT {READING_COST} FROM knowledge_usage u WHERE u.document_id = $1 AND u.kind = 'transcribe' \
         AND u.outcome <> 'pending' GROUP BY u.document_id"
    );
    db.fetch_one(statement(sql, [document.into()])).await
}

/// What the bases of a partner used, or one of them.
pub(crate) async fn usage_sums(
    db: &impl Executor,
    tenant: &Tenant,
    base: Option<&str>,
) -> Result<Vec<UsageSum>, StoreError> {
    let sum = |column: &str| format!("CAST(COALESCE(SUM(u.{column}), 0) AS BIGINT) AS {column}");
    let sql = format!(
        "SELECT u.base_id, u.kind, u.model, u.outcome, COUNT(*) AS events, COUNT(u.input_tokens) AS counted, COUNT(u.cost) AS priced, \
         COUNT(DISTINCT u.document_id) AS documents, {}, {}, {} FROM knowledge_usage u JOIN knowledge_bases b ON b.id = u.base_id \
         WHERE b.partner = $1 AND ($2 = '' OR b.id = $2) AND u.outcome IN ('success', 'fault') \
         GROUP BY u.base_id, u.kind, u.model, u.outcome",
        sum("cost"),
        sum("input_tokens"),
        sum("output_tokens"),
    );
    let values = [
        tenant.partner().as_str().into(),
        base.unwrap_or_default().into(),
    ];
    db.fetch_all(statement(sql, values)).await
}
