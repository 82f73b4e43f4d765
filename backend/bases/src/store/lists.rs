//! The SQL of lists that are sorted, filtered and summed by the database.
//!
//! Filters, orders and sums read the index `knowledge_documents_listed` alone. The rows of a page are read by its ids in statements of their own, since
//! one statement for both would read the rows of all that it sorts. Lists of folders and bases (`listed_folders.rs`, `listed_bases.rs`) are made of the
//! same parts.

use std::{ops::AddAssign, sync::LazyLock};

use colloquy_store::{
    Dialect, Executor, Keyset, Order, StoreError, Value, placeholders, statement,
};

use super::documents::COLUMNS;
use crate::{
    document::{Document, DocumentStatus, Unfinished},
    lists::{Key, SortKey},
    names::sort_name,
};

/// The cost of a document in units of 1e-8 dollars, as far as it is known.
pub(super) const COST: &str = "(COALESCE(d.rewrite_cost, 0) + d.reading_cost)";

/// True for a document whose cost is a lower bound.
pub(super) const INCOMPLETE: &str = "(NOT d.rewrite_known OR d.reading_unpriced > 0)";

/// True for a document for which a request with a price was sent.
pub(super) const SPENDING: &str = "(d.rewrite_cost IS NOT NULL OR d.reading_requests > 0)";

/// The order of prices: that of a document without a price is below that of one whose price is unknown, which is below all known ones.
static PRICE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "(CASE WHEN NOT {SPENDING} THEN -2 WHEN {COST} = 0 AND {INCOMPLETE} THEN -1 ELSE {COST} END)"
    )
});

/// Cases of the state of a document of which a step waits, runs or failed.
const UNFINISHED_STATES: &str = "WHEN d.digitizing IN ('queued', 'running') THEN 'digitizing' WHEN d.digitizing IN ('failed', 'blocked') THEN d.digitizing \
     WHEN d.rewriting IN ('queued', 'running') THEN 'rewriting' WHEN d.rewriting IN ('failed', 'blocked') THEN d.rewriting \
     WHEN d.embedding IN ('queued', 'running') THEN 'embedding' WHEN d.embedding IN ('failed', 'blocked') THEN d.embedding";

/// The [`DocumentStatus`] of a document, as `Described::status` computes it.
static STATE: LazyLock<String> = LazyLock::new(|| {
    format!(
        "(CASE WHEN d.deletion_requested_at IS NOT NULL THEN 'delete_pending' {UNFINISHED_STATES} \
         WHEN d.final_characters IS NOT NULL THEN CASE WHEN d.embedding = 'done' THEN 'ready' ELSE 'rewritten' END \
         WHEN d.text_characters IS NOT NULL THEN 'digitized' ELSE 'empty' END)"
    )
});

/// The documents `d` of which a step waits, runs or failed, without those that are being deleted: the condition of the index
/// `knowledge_documents_unfinished`.
const UNFINISHED: &str = "d.deletion_requested_at IS NULL \
     AND (d.digitizing NOT IN ('none', 'done') OR d.rewriting NOT IN ('none', 'done') OR d.embedding NOT IN ('none', 'done'))";

fn sum(what: &str) -> String {
    format!("CAST(COALESCE(SUM({what}), 0) AS BIGINT)")
}

/// The SQL of the number of rows for which a condition is true.
pub(super) fn count(which: &str) -> String {
    format!("COALESCE(SUM(CASE WHEN {which} THEN 1 ELSE 0 END), 0)")
}

/// Sums over documents `d`, for [`Sizes`].
pub(super) static SIZES: LazyLock<String> = LazyLock::new(|| {
    let (bytes, characters) = (sum("d.size_bytes"), sum("d.text_characters"));
    format!("COUNT(*) AS documents, {bytes} AS size_bytes, {characters} AS text_characters")
});

/// Sums over documents `d`, for [`DocumentSums`].
pub(super) static SUMS: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{}, {} AS tokens, {} AS cost, {} AS incomplete, {} AS spending",
        *SIZES,
        sum("d.tokens"),
        sum(COST),
        count(INCOMPLETE),
        count(SPENDING),
    )
});

/// The conditions of the numbers of [`StateCounts`], for [`grouped`].
pub(super) static STATES: LazyLock<[(&str, String); 3]> = LazyLock::new(|| {
    [Unfinished::Active, Unfinished::Blocked, Unfinished::Failed]
        .map(|it| (it.as_str(), it.condition()))
});

impl Unfinished {
    /// The condition of documents `d`, among those that are [`UNFINISHED`].
    fn condition(self) -> String {
        let states = match self {
            Self::Active => "'digitizing', 'rewriting', 'embedding'",
            Self::Blocked => "'blocked'",
            Self::Failed => "'failed'",
        };
        format!("(CASE {UNFINISHED_STATES} END) IN ({states})")
    }

    /// The condition of bases `b` that have one of these documents.
    pub(super) fn of_bases(which: &[Self]) -> String {
        let any: Vec<String> = which.iter().map(|it| it.condition()).collect();
        format!(
            "EXISTS (SELECT 1 FROM knowledge_documents d WHERE d.base_id = b.id AND {UNFINISHED} AND ({}))",
            any.join(" OR ")
        )
    }
}

/// Returns the statement of figures of documents `d` by one of their columns: sums over all that meet a condition, and numbers of those whose
/// steps meet further ones. These are unfinished, and are counted by their steps before they are told apart, in the order of their index.
pub(super) fn grouped<'a>(
    column: &str,
    condition: &str,
    sums: &str,
    numbers: impl Iterator<Item = &'a (&'a str, String)> + Clone,
) -> String {
    let joined: String = numbers
        .clone()
        .map(|(name, _)| format!(", COALESCE(u.{name}, 0) AS {name}"))
        .collect();
    let counted: String = numbers
        .map(|(name, which)| {
            let documents = sum(&format!("CASE WHEN {which} THEN d.documents ELSE 0 END"));
            format!(", {documents} AS {name}")
        })
        .collect();
    let of_documents = format!("FROM knowledge_documents d WHERE {condition}");
    let steps = "d.base_id, d.folder_id, d.digitizing, d.rewriting, d.embedding";
    format!(
        "SELECT a.*{joined} FROM (SELECT d.{column}, {sums} {of_documents} GROUP BY d.{column}) a \
         LEFT JOIN (SELECT d.{column}{counted} \
         FROM (SELECT {steps}, COUNT(*) AS documents {of_documents} AND {UNFINISHED} GROUP BY {steps}) d \
         GROUP BY d.{column}) u ON u.{column} = a.{column}"
    )
}

/// How many documents there are, and how large they are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct Sizes {
    pub(crate) documents: i64,
    pub(crate) size_bytes: i64,
    /// Characters of digitized texts.
    pub(crate) text_characters: i64,
}

impl AddAssign for Sizes {
    fn add_assign(&mut self, other: Self) {
        self.documents += other.documents;
        self.size_bytes += other.size_bytes;
        self.text_characters += other.text_characters;
    }
}

/// Sums over documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct DocumentSums {
    #[sqlx(flatten)]
    pub(crate) sizes: Sizes,
    /// Input and output tokens of all settled requests.
    pub(crate) tokens: i64,
    /// In units of 1e-8 dollars, as far as it is known.
    pub(crate) cost: i64,
    /// Documents whose cost is a lower bound.
    pub(crate) incomplete: i64,
    /// Documents for which a request with a price was sent.
    pub(crate) spending: i64,
}

impl AddAssign for DocumentSums {
    fn add_assign(&mut self, other: Self) {
        self.sizes += other.sizes;
        self.tokens += other.tokens;
        self.cost += other.cost;
        self.incomplete += other.incomplete;
        self.spending += other.spending;
    }
}

/// Numbers of documents by their state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, sqlx::FromRow)]
pub(crate) struct StateCounts {
    /// Documents of which a step is queued or running.
    pub(crate) active: i64,
    pub(crate) blocked: i64,
    pub(crate) failed: i64,
}

/// A statement while it is put together, which ends in a condition.
pub(super) struct Query {
    pub(super) sql: String,
    pub(super) values: Vec<Value>,
}

impl Query {
    pub(super) fn new(sql: impl Into<String>, value: &str) -> Self {
        Self {
            sql: sql.into(),
            values: vec![value.into()],
        }
    }

    pub(super) fn and(&mut self, condition: &str, value: impl Into<Value>) {
        self.values.push(value.into());
        let sql = format!(" AND {condition} ${}", self.values.len());
        self.sql.push_str(&sql);
    }

    /// Leaves out the rows with these ids.
    pub(super) fn and_not_among(&mut self, column: &str, ids: &[String]) {
        if !ids.is_empty() {
            let ids = placeholders(&mut self.values, ids.iter().map(String::as_str));
            self.sql.push_str(&format!(" AND {column} NOT IN ({ids})"));
        }
    }

    /// Lets names pass that contain a text, in upper or lower case.
    pub(super) fn and_name(&mut self, dialect: Dialect, column: &str, text: Option<&str>) {
        if let Some(text) = text {
            let find = match dialect {
                Dialect::Sqlite => "instr",
                Dialect::Postgres => "strpos",
            };
            self.values.push(sort_name(text).into());
            let sql = format!(" AND {find}({column}, ${}) > 0", self.values.len());
            self.sql.push_str(&sql);
        }
    }

    pub(super) async fn keys(
        mut self,
        db: &impl Executor,
        sort: SortKey,
        (key, id): (&str, &str),
        keyset: &Keyset,
        order: Order,
    ) -> Result<Vec<KeyedId>, StoreError> {
        keyset.complete(&mut self.sql, &mut self.values, (key, id), order);
        let statement = statement(self.sql, self.values);
        if sort.is_text() {
            let rows: Vec<TextKeyRow> = db.fetch_all(statement).await?;
            let keyed = rows.into_iter().map(|row| KeyedId {
                id: row.id,
                key: Key::Text(row.key),
            });
            return Ok(keyed.collect());
        }
        let rows: Vec<NumberKeyRow> = db.fetch_all(statement).await?;
        let keyed = rows.into_iter().map(|row| KeyedId {
            id: row.id,
            key: Key::Number(row.key),
        });
        Ok(keyed.collect())
    }
}

/// The id of a listed row, and the key that the list is sorted by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyedId {
    pub(crate) id: String,
    pub(crate) key: Key,
}

#[derive(sqlx::FromRow)]
struct TextKeyRow {
    id: String,
    key: String,
}

#[derive(sqlx::FromRow)]
struct NumberKeyRow {
    id: String,
    key: i64,
}

/// The documents that a list has.
#[derive(Debug)]
pub(crate) struct DocumentFilter {
    /// The id of the base.
    pub(crate) base: String,
    /// A text that their names contain.
    pub(crate) name: Option<String>,
    /// The id of their folder.
    pub(crate) folder: Option<String>,
    /// Their states; all for none.
    pub(crate) states: Vec<DocumentStatus>,
}

impl DocumentFilter {
    pub(super) fn query(&self, dialect: Dialect, columns: &str) -> Query {
        let sql = format!("SELECT {columns} FROM knowledge_documents d WHERE d.base_id = $1");
        let mut query = Query::new(sql, &self.base);
        if let Some(folder) = &self.folder {
            query.and("d.folder_id =", folder.as_str());
        }
        query.and_name(dialect, "d.sort_name", self.name.as_deref());
        if !self.states.is_empty() {
            let states = self.states.iter().map(|state| state.as_str());
            let states = placeholders(&mut query.values, states);
            query
                .sql
                .push_str(&format!(" AND {} IN ({states})", *STATE));
        }
        query
    }
}

/// The SQL of what documents are sorted by.
fn document_key(sort: SortKey) -> &'static str {
    match sort {
        // Documents have no limits.
        SortKey::Name | SortKey::Limit => "d.sort_name",
        SortKey::Price => PRICE.as_str(),
        SortKey::Size => "d.size_bytes",
        SortKey::Tokens => "d.tokens",
        SortKey::Changed => "d.updated_at",
        SortKey::State => STATE.as_str(),
    }
}

/// Returns the ids of a part of the documents that pass a filter.
pub(crate) async fn document_keys(
    db: &impl Executor,
    filter: &DocumentFilter,
    sort: SortKey,
    order: Order,
    keyset: &Keyset,
) -> Result<Vec<KeyedId>, StoreError> {
    let key = document_key(sort);
    let query = filter.query(db.dialect(), &format!("d.id, {key} AS key"));
    query.keys(db, sort, (key, "d.id"), keyset, order).await
}

/// Returns the sums over all documents that pass a filter.
pub(crate) async fn document_sums(
    db: &impl Executor,
    filter: &DocumentFilter,
) -> Result<DocumentSums, StoreError> {
    let query = filter.query(db.dialect(), &SUMS);
    let sums = db.fetch_one(statement(query.sql, query.values)).await?;
    Ok(sums.unwrap_or_default())
}

/// A document with what lists say of it besides.
#[derive(Debug, sqlx::FromRow)]
pub(crate) struct DocumentRow {
    #[sqlx(flatten)]
    pub(crate) document: Document,
    #[sqlx(flatten)]
    pub(crate) figures: Figures,
}

/// The columns of a document that lists are sorted and summed by, and how long its work waits.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub(crate) struct Figures {
    pub(crate) size_bytes: i64,
    pub(crate) text_characters: Option<i64>,
    pub(crate) final_characters: Option<i64>,
    pub(crate) tokens: i64,
    /// Cost of its transcription requests, in units of 1e-8 dollars, as far as it is known.
    pub(crate) reading_cost: i64,
    pub(crate) reading_requests: i64,
    /// Those without a known cost.
    pub(crate) reading_unpriced: i64,
    /// When it began to wait for capacity; kept after that.
    pub(crate) blocked_at: Option<i64>,
    /// When its oldest unfinished job was enqueued.
    pub(crate) queued_at: Option<i64>,
    /// When a queued job of it runs next.
    pub(crate) next_attempt_at: Option<i64>,
}

/// The jobs of a document `d` that are not finished, found by document: SQLite would read the whole queue for a list of ids.
const JOBS: &str = "FROM work w WHERE w.kind IN ('bases.digitize', 'bases.rewrite', 'bases.embed', 'bases.embed_long') \
     AND w.dedup_key = d.id AND w.state IN ('queued', 'running', 'blocked')";

/// The statement of [`documents_among`], up to the ids.
fn document_rows() -> String {
    format!(
        "SELECT {COLUMNS}, d.size_bytes, d.text_characters, d.final_characters, d.tokens, d.reading_cost, d.reading_requests, d.reading_unpriced, \
         d.blocked_at, (SELECT MIN(w.created_at) {JOBS}) AS queued_at, \
         (SELECT MIN(CASE WHEN w.state = 'queued' THEN w.run_at END) {JOBS}) AS next_attempt_at \
         FROM knowledge_documents d JOIN knowledge_folders f ON f.id = d.folder_id WHERE d.id IN "
    )
}

/// Returns documents by their ids, in no order.
pub(crate) async fn documents_among(
    db: &impl Executor,
    ids: &[String],
) -> Result<Vec<DocumentRow>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut values = Vec::new();
    let ids = placeholders(&mut values, ids.iter().map(String::as_str));
    let sql = format!("{}({ids})", document_rows());
    db.fetch_all(statement(sql, values)).await
}

#[cfg(test)]
#[path = "lists_tests.rs"]
mod tests;
