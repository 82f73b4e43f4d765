//! The SQL of lists of knowledge bases, and of names that the database does not fold.

use std::collections::HashMap;

use colloquy_accounts::{Tenant, ledger::part_of_limit};
use colloquy_store::{Dialect, Executor, Keyset, Order, StoreError, placeholders, statement};

use super::{
    BASE_COLUMNS, BaseRow, Whole,
    lists::{KeyedId, Query, SIZES, STATES, Sizes, StateCounts, count, grouped},
    pages::SCAN_PAGE,
};
use crate::{
    base::{KnowledgeBase, Progress},
    document::Unfinished,
    lists::SortKey,
    names::sort_name,
};

/// The cost of the base `b` by its ledger, in units of 1e-8 dollars.
const LEDGER_COST: &str =
    "COALESCE((SELECT a.used FROM quota_amounts a WHERE a.quota = b.id AND a.measure = 'cost'), 0)";

/// Returns the part of a limit of the base `b` that is used or reserved, in millionths, of the limit of which most is; -1 without limits.
fn tightest_limit(dialect: Dialect) -> String {
    let greatest = match dialect {
        Dialect::Sqlite => "MAX",
        Dialect::Postgres => "GREATEST",
    };
    format!(
        "{greatest}(COALESCE((SELECT MAX({}) FROM quota_amounts a WHERE a.quota = b.id AND a.limit_amount IS NOT NULL), -1), \
         CASE WHEN b.character_limit IS NULL THEN -1 ELSE (SELECT {} FROM knowledge_documents d \
         WHERE d.base_id = b.id AND d.deletion_requested_at IS NULL AND d.folder_id NOT IN \
         (SELECT f.id FROM knowledge_folders f WHERE f.base_id = b.id AND f.deletion_requested_at IS NOT NULL)) END)",
        part_of_limit("a.used + a.reserved", "a.limit_amount"),
        part_of_limit("COALESCE(SUM(d.text_characters), 0)", "b.character_limit"),
    )
}

/// The bases that a list has.
#[derive(Debug)]
pub(crate) struct BaseFilter {
    pub(crate) tenant: Tenant,
    /// A text that their names contain.
    pub(crate) name: Option<String>,
    /// What is unfinished about one of their documents at least; all bases for none.
    pub(crate) unfinished: Vec<Unfinished>,
}

impl BaseFilter {
    /// Completes a statement by the condition of bases `b`, whose first value is the partner.
    fn query(&self, dialect: Dialect, sql: impl Into<String>) -> Query {
        let mut query = Query::new(sql, self.tenant.partner().as_str());
        query.sql.push_str(" b.partner = $1");
        query.and_name(dialect, "b.sort_name", self.name.as_deref());
        if !self.unfinished.is_empty() {
            let condition = Unfinished::of_bases(&self.unfinished);
            query.sql.push_str(&format!(" AND {condition}"));
        }
        query
    }
}

/// Returns the ids of a part of the bases that pass a filter.
pub(crate) async fn base_keys(
    db: &impl Executor,
    filter: &BaseFilter,
    sort: SortKey,
    order: Order,
    keyset: &Keyset,
) -> Result<Vec<KeyedId>, StoreError> {
    let limit;
    let key: &str = match sort {
        SortKey::Price => LEDGER_COST,
        SortKey::Size => {
            "COALESCE((SELECT CAST(SUM(d.size_bytes) AS BIGINT) FROM knowledge_documents d WHERE d.base_id = b.id), 0)"
        }
        SortKey::Limit => {
            limit = tightest_limit(db.dialect());
            &limit
        }
        _ => "b.sort_name",
    };
    let sql = format!("SELECT b.id, {key} AS key FROM knowledge_bases b WHERE");
    let query = filter.query(db.dialect(), sql);
    // Without this word, databases compute the key again wherever it stands.
    let outer = Query {
        sql: format!(
            "WITH x AS MATERIALIZED ({}) SELECT x.id, x.key FROM x WHERE TRUE",
            query.sql
        ),
        values: query.values,
    };
    outer.keys(db, sort, ("x.key", "x.id"), keyset, order).await
}

/// How many bases there are, and what they cost.
#[derive(Debug, Clone, Copy, Default, sqlx::FromRow)]
pub(crate) struct BaseCosts {
    pub(crate) bases: i64,
    /// By their ledgers, in units of 1e-8 dollars.
    pub(crate) cost: i64,
}

/// Returns the number and the cost of all bases that pass a filter.
pub(crate) async fn base_costs(
    db: &impl Executor,
    filter: &BaseFilter,
) -> Result<BaseCosts, StoreError> {
    let sql = format!(
        "SELECT COUNT(*) AS bases, CAST(COALESCE(SUM({LEDGER_COST}), 0) AS BIGINT) AS cost FROM knowledge_bases b WHERE"
    );
    let query = filter.query(db.dialect(), sql);
    let costs = db.fetch_one(statement(query.sql, query.values)).await?;
    Ok(costs.unwrap_or_default())
}

/// Returns the sizes of the bases that pass a filter, all together, without some bases.
pub(crate) async fn base_sizes_except(
    db: &impl Executor,
    filter: &BaseFilter,
    ids: &[String],
) -> Result<Sizes, StoreError> {
    let sql = format!(
        "SELECT {} FROM knowledge_documents d WHERE d.base_id IN (SELECT b.id FROM knowledge_bases b WHERE",
        *SIZES
    );
    let mut query = filter.query(db.dialect(), sql);
    query.and_not_among("b.id", ids);
    query.sql.push(')');
    let sizes = db.fetch_one(statement(query.sql, query.values)).await?;
    Ok(sizes.unwrap_or_default())
}

/// What a base has.
#[derive(Debug, Clone, Copy, Default, sqlx::FromRow)]
pub(crate) struct BaseFigures {
    #[sqlx(flatten)]
    pub(crate) sizes: Sizes,
    /// Characters that count in its budget: without texts that are being deleted.
    pub(crate) counted_characters: i64,
    #[sqlx(flatten)]
    pub(crate) states: StateCounts,
    pending: i64,
    failing: i64,
    embedded: i64,
}

impl BaseFigures {
    /// How far its documents are embedded.
    pub(crate) fn progress(&self) -> Progress {
        Progress {
            pending: self.pending.unsigned_abs(),
            failed: self.failing.unsigned_abs(),
            embedded: self.embedded.unsigned_abs(),
        }
    }
}

#[derive(sqlx::FromRow)]
struct BaseFiguresRow {
    base_id: String,
    #[sqlx(flatten)]
    figures: BaseFigures,
}

/// The statement of [`base_figures`]; `ids` are placeholders.
pub(super) fn base_figure_rows(ids: &str) -> String {
    let sums = format!(
        "{}, CAST(COALESCE(SUM(CASE WHEN d.deletion_requested_at IS NULL AND d.folder_id NOT IN (SELECT f.id FROM knowledge_folders f \
         WHERE f.base_id IN ({ids}) AND f.deletion_requested_at IS NOT NULL) THEN d.text_characters END), 0) AS BIGINT) AS counted_characters, \
         {} AS embedded",
        *SIZES,
        count("d.deletion_requested_at IS NULL AND d.embedding = 'done'"),
    );
    let progress = [
        (
            "pending",
            "d.embedding IN ('queued', 'running', 'blocked')".to_owned(),
        ),
        ("failing", "d.embedding = 'failed'".to_owned()),
    ];
    let condition = format!("d.base_id IN ({ids})");
    grouped("base_id", &condition, &sums, STATES.iter().chain(&progress))
}

/// Returns what bases have, without those that are empty.
pub(crate) async fn base_figures(
    db: &impl Executor,
    ids: &[String],
) -> Result<HashMap<String, BaseFigures>, StoreError> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let mut values = Vec::new();
    let ids = placeholders(&mut values, ids.iter().map(String::as_str));
    let rows: Vec<BaseFiguresRow> = db
        .fetch_all(statement(base_figure_rows(&ids), values))
        .await?;
    let figures = rows.into_iter().map(|row| (row.base_id, row.figures));
    Ok(figures.collect())
}

/// A base with what lists say of it besides.
#[derive(Debug)]
pub(crate) struct ListedBase {
    pub(crate) base: KnowledgeBase,
    pub(crate) character_limit: Option<u64>,
    pub(crate) folders: u64,
}

#[derive(sqlx::FromRow)]
struct ListedBaseRow {
    #[sqlx(flatten)]
    base: BaseRow,
    character_limit: Option<i64>,
    folders: i64,
}

/// Returns bases by their ids, in no order.
pub(crate) async fn bases_among(
    db: &impl Executor,
    ids: &[String],
) -> Result<Vec<ListedBase>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut values = Vec::new();
    let ids = placeholders(&mut values, ids.iter().map(String::as_str));
    let sql = format!(
        "SELECT {BASE_COLUMNS}, b.character_limit, (SELECT COUNT(*) FROM knowledge_folders f WHERE f.base_id = b.id) AS folders \
         FROM knowledge_bases b WHERE b.id IN ({ids})"
    );
    let rows: Vec<ListedBaseRow> = db.fetch_all(statement(sql, values)).await?;
    let bases = rows.into_iter().map(|row| ListedBase {
        base: row.base.into(),
        character_limit: row.character_limit.map(i64::unsigned_abs),
        folders: row.folders.unsigned_abs(),
    });
    Ok(bases.collect())
}

/// The tables of what has a name.
pub(crate) const NAMED: [Whole; 3] = [Whole::Base, Whole::Folder, Whole::Document];

/// A name whose lower case is not known.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct UnfoldedName {
    id: String,
    name: String,
}

/// Returns some of the rows whose names are not folded.
pub(crate) async fn unfolded_names(
    db: &impl Executor,
    named: Whole,
) -> Result<Vec<UnfoldedName>, StoreError> {
    let sql = format!(
        "SELECT id, name FROM {} WHERE sort_name = '' AND name <> '' ORDER BY id LIMIT {SCAN_PAGE}",
        named.table()
    );
    db.fetch_all(statement(sql, [])).await
}

/// Writes the lower case of a name, unless it was changed since.
pub(crate) async fn fold_name(
    db: &impl Executor,
    named: Whole,
    row: &UnfoldedName,
) -> Result<(), StoreError> {
    let sql = format!(
        "UPDATE {} SET sort_name = $3 WHERE id = $1 AND name = $2 AND sort_name = ''",
        named.table()
    );
    let values = [
        row.id.as_str().into(),
        row.name.as_str().into(),
        sort_name(&row.name).into(),
    ];
    db.execute(statement(sql, values)).await?;
    Ok(())
}
