//! Statements over many rows with few texts.
//!
//! A connection keeps its prepared statements by their text, up to a hundred of them. So rows are written in pieces of
//! 64, 32, .. and 1, and a statement comes in seven texts, however many rows there are.

use std::sync::OnceLock;

use sea_orm::{ConnectionTrait, DatabaseTransaction, DbErr, QueryResult, Statement, Value};

/// The largest piece is 2 to this.
const LARGEST: u32 = 6;

/// A statement over rows of so many values each: its text before the rows, and after them.
pub(super) struct Rows<const VALUES: usize> {
    before: &'static str,
    after: &'static str,
    texts: [OnceLock<String>; LARGEST as usize + 1],
}

impl<const VALUES: usize> Rows<VALUES> {
    pub(super) const fn new(before: &'static str, after: &'static str) -> Self {
        Self {
            before,
            after,
            texts: [const { OnceLock::new() }; LARGEST as usize + 1],
        }
    }

    /// Runs it for the rows; for none it does nothing.
    pub(super) async fn execute(
        &self,
        transaction: &DatabaseTransaction,
        rows: impl ExactSizeIterator<Item = [Value; VALUES]>,
    ) -> Result<(), DbErr> {
        for statement in self.statements(transaction, rows) {
            transaction.execute_raw(statement).await?;
        }
        Ok(())
    }

    /// Runs it for the rows and gives what comes back.
    pub(super) async fn query(
        &self,
        transaction: &DatabaseTransaction,
        rows: impl ExactSizeIterator<Item = [Value; VALUES]>,
    ) -> Result<Vec<QueryResult>, DbErr> {
        let mut results = Vec::new();
        for statement in self.statements(transaction, rows) {
            results.extend(transaction.query_all_raw(statement).await?);
        }
        Ok(results)
    }

    fn statements(
        &self,
        transaction: &DatabaseTransaction,
        mut rows: impl ExactSizeIterator<Item = [Value; VALUES]>,
    ) -> Vec<Statement> {
        let backend = transaction.get_database_backend();
        let mut statements = Vec::new();
        while let Some(power) = rows.len().checked_ilog2() {
            let power = power.min(LARGEST);
            let values: Vec<Value> = rows.by_ref().take(1 << power).flatten().collect();
            let text = self.text(power);
            statements.push(Statement::from_sql_and_values(backend, text, values));
        }
        statements
    }

    fn text(&self, power: u32) -> &str {
        self.texts[power as usize].get_or_init(|| {
            let rows: Vec<String> = (0..1_usize << power)
                .map(|row| {
                    let places: Vec<String> = (1..=VALUES)
                        .map(|value| format!("${}", row * VALUES + value))
                        .collect();
                    format!("({})", places.join(", "))
                })
                .collect();
            format!("{}{}{}", self.before, rows.join(", "), self.after)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_in_powers_of_two() {
        static ROWS: Rows<2> = Rows::new("INSERT INTO t VALUES ", " RETURNING a");
        assert_eq!(ROWS.text(0), "INSERT INTO t VALUES ($1, $2) RETURNING a");
        assert_eq!(
            ROWS.text(1),
            "INSERT INTO t VALUES ($1, $2), ($3, $4) RETURNING a"
        );
        assert!(ROWS.text(LARGEST).contains("($127, $128) RETURNING"));
    }
}
