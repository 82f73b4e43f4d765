//! Parts of ordered lists.

use crate::Value;

/// A part of an ordered list: so many rows after a cursor, which is the value of the column that orders the list.
#[derive(Debug, Clone, Default)]
pub struct Slice {
    /// The cursor; `None` begins with the first row.
    pub after: Option<String>,
    /// How many rows; `None` for all.
    pub limit: Option<u64>,
}

/// The order of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// The smallest first.
    Ascending,
    /// The largest first.
    Descending,
}

impl Slice {
    /// The whole list.
    #[must_use]
    pub fn all() -> Self {
        Self::default()
    }

    /// Completes a statement that ends in a condition: only this part of what it selects, ordered by a text column.
    pub fn complete(&self, sql: &mut String, values: &mut Vec<Value>, column: &str, order: Order) {
        let (comparison, direction) = match order {
            Order::Ascending => (">", "ASC"),
            Order::Descending => ("<", "DESC"),
        };
        if let Some(after) = &self.after {
            values.push(after.as_str().into());
            sql.push_str(&format!(" AND {column} {comparison} ${}", values.len()));
        }
        sql.push_str(&format!(" ORDER BY {column} {direction}"));
        if let Some(limit) = self.limit {
            sql.push_str(&format!(" LIMIT {limit}"));
        }
    }
}
