//! The SQL of lists of folders.

use std::collections::HashMap;

use colloquy_store::{Dialect, Executor, Keyset, Order, StoreError, placeholders, statement};

use super::lists::{
    COST, DocumentSums, INCOMPLETE, KeyedId, Query, SPENDING, STATES, SUMS, StateCounts, grouped,
};
use crate::{
    folder::{Folder, Kind},
    lists::SortKey,
};

/// The folders that a list has.
#[derive(Debug)]
pub(crate) struct FolderFilter {
    /// The id of the base.
    pub(crate) base: String,
    /// A text that their names contain.
    pub(crate) name: Option<String>,
    pub(crate) kind: Option<Kind>,
}

impl FolderFilter {
    /// The condition of folders `f`.
    fn query(&self, dialect: Dialect, sql: impl Into<String>) -> Query {
        let mut query = Query::new(sql, &self.base);
        query.sql.push_str(" f.base_id = $1");
        query.and_name(dialect, "f.sort_name", self.name.as_deref());
        if let Some(kind) = self.kind {
            query.and("f.type =", kind.as_str());
        }
        query
    }
}

/// Returns the ids of a part of the folders that pass a filter.
pub(crate) async fn folder_keys(
    db: &impl Executor,
    filter: &FolderFilter,
    sort: SortKey,
    order: Order,
    keyset: &Keyset,
) -> Result<Vec<KeyedId>, StoreError> {
    let (key, summed) = match sort {
        SortKey::Price => (
            "COALESCE(x.price, -2)",
            format!(
                "CAST(CASE WHEN SUM(CASE WHEN {SPENDING} THEN 1 ELSE 0 END) = 0 THEN -2 \
             WHEN SUM({COST}) = 0 AND SUM(CASE WHEN {INCOMPLETE} THEN 1 ELSE 0 END) > 0 THEN -1 ELSE SUM({COST}) END AS BIGINT) AS price"
            ),
        ),
        SortKey::Size => (
            "COALESCE(x.size_bytes, 0)",
            "CAST(SUM(d.size_bytes) AS BIGINT) AS size_bytes".to_owned(),
        ),
        _ => ("f.sort_name", String::new()),
    };
    let join = match summed.is_empty() {
        true => String::new(),
        false => format!(
            "LEFT JOIN (SELECT d.folder_id, {summed} FROM knowledge_documents d WHERE d.base_id = $1 GROUP BY d.folder_id) x \
             ON x.folder_id = f.id "
        ),
    };
    let sql = format!("SELECT f.id, {key} AS key FROM knowledge_folders f {join}WHERE");
    let query = filter.query(db.dialect(), sql);
    query.keys(db, sort, (key, "f.id"), keyset, order).await
}

/// Returns the number of all folders that pass a filter.
pub(crate) async fn folder_count(
    db: &impl Executor,
    filter: &FolderFilter,
) -> Result<u64, StoreError> {
    let sql = "SELECT COUNT(*) FROM knowledge_folders f WHERE";
    let query = filter.query(db.dialect(), sql);
    db.fetch_count(statement(query.sql, query.values)).await
}

/// Returns the sums over the documents of the folders that pass a filter, without some folders.
pub(crate) async fn folder_sums_except(
    db: &impl Executor,
    filter: &FolderFilter,
    ids: &[String],
) -> Result<DocumentSums, StoreError> {
    let sql = format!(
        "SELECT {} FROM knowledge_documents d WHERE d.base_id = $1 AND d.folder_id IN (SELECT f.id FROM knowledge_folders f WHERE",
        *SUMS
    );
    let mut query = filter.query(db.dialect(), sql);
    query.and_not_among("f.id", ids);
    query.sql.push(')');
    let sums = db.fetch_one(statement(query.sql, query.values)).await?;
    Ok(sums.unwrap_or_default())
}

/// What a folder has.
#[derive(Debug, Clone, Copy, Default, sqlx::FromRow)]
pub(crate) struct FolderFigures {
    #[sqlx(flatten)]
    pub(crate) sums: DocumentSums,
    #[sqlx(flatten)]
    pub(crate) states: StateCounts,
}

#[derive(sqlx::FromRow)]
struct FolderFiguresRow {
    folder_id: String,
    #[sqlx(flatten)]
    figures: FolderFigures,
}

/// Returns folders of a base by their ids, in no order.
pub(crate) async fn folders_among(
    db: &impl Executor,
    ids: &[String],
) -> Result<Vec<Folder>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut values = Vec::new();
    let ids = placeholders(&mut values, ids.iter().map(String::as_str));
    let sql = format!(
        "SELECT id, name, type, created_at, deletion_requested_at FROM knowledge_folders WHERE id IN ({ids})"
    );
    db.fetch_all(statement(sql, values)).await
}

/// The statement of [`folder_figures`]; `ids` are placeholders.
pub(super) fn folder_figure_rows(ids: &str) -> String {
    let condition = format!("d.base_id = $1 AND d.folder_id IN ({ids})");
    grouped("folder_id", &condition, &SUMS, STATES.iter())
}

/// Returns what folders of a base have, without those that are empty.
pub(crate) async fn folder_figures(
    db: &impl Executor,
    base: &str,
    ids: &[String],
) -> Result<HashMap<String, FolderFigures>, StoreError> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let mut values = vec![base.into()];
    let ids = placeholders(&mut values, ids.iter().map(String::as_str));
    let rows: Vec<FolderFiguresRow> = db
        .fetch_all(statement(folder_figure_rows(&ids), values))
        .await?;
    let figures = rows.into_iter().map(|row| (row.folder_id, row.figures));
    Ok(figures.collect())
}

#[derive(sqlx::FromRow)]
struct CostRow {
    id: String,
    cost: i64,
}

/// Returns the cost of looking through channels in units of 1e-8 dollars, as far as it is known, by folder, without folders for which no request
/// was sent.
pub(crate) async fn discovery_costs(
    db: &impl Executor,
    folders: &[String],
) -> Result<HashMap<String, u64>, StoreError> {
    if folders.is_empty() {
        return Ok(HashMap::new());
    }
    let mut values = Vec::new();
    let ids = placeholders(&mut values, folders.iter().map(String::as_str));
    let sql = format!(
        "SELECT u.document_id AS id, CAST(COALESCE(SUM(u.cost), 0) AS BIGINT) AS cost FROM knowledge_usage u \
         WHERE u.document_id IN ({ids}) AND u.kind = 'discover' AND u.outcome <> 'pending' GROUP BY u.document_id"
    );
    let rows: Vec<CostRow> = db.fetch_all(statement(sql, values)).await?;
    Ok(rows
        .into_iter()
        .map(|row| (row.id, row.cost.unsigned_abs()))
        .collect())
}
