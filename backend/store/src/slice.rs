//! Parts of ordered lists, and lists of values in statements.

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

/// A part of a list that a key orders, and the ids of rows with equal keys: so many rows after a cursor.
#[derive(Debug, Clone)]
pub struct Keyset {
    /// Key and id of the row that the part follows; `None` begins with the first row.
    pub after: Option<(Value, String)>,
    /// The most rows.
    pub limit: u64,
}

impl Keyset {
    /// Completes a statement that ends in a condition: only this part of what it selects. `key` and `id` are SQL expressions that are not null. Ids
    /// ascend for equal keys in either order.
    pub fn complete(
        &self,
        sql: &mut String,
        values: &mut Vec<Value>,
        (key, id): (&str, &str),
        order: Order,
    ) {
        let (comparison, direction) = match order {
            Order::Ascending => (">", "ASC"),
            Order::Descending => ("<", "DESC"),
        };
        if let Some((after, after_id)) = &self.after {
            values.push(after.clone());
            let bound = values.len();
            values.push(after_id.as_str().into());
            let bound_id = values.len();
            // An index that has this order is read from the cursor on, which it is not for the alternatives alone.
            sql.push_str(&format!(
                " AND {key} {comparison}= ${bound} AND ({key} {comparison} ${bound} OR {id} > ${bound_id})"
            ));
        }
        sql.push_str(&format!(
            " ORDER BY {key} {direction}, {id} LIMIT {}",
            self.limit
        ));
    }
}

/// Appends texts to the values of a statement, and returns their placeholders for `IN (..)`: `$3, $4`. The last one is repeated up to a power of
/// two, so that few texts of statements are prepared. Returns an empty text for no values.
pub fn placeholders<'a>(
    values: &mut Vec<Value>,
    texts: impl ExactSizeIterator<Item = &'a str>,
) -> String {
    let first = values.len() + 1;
    let count = match texts.len() {
        0 => 0,
        count => count.next_power_of_two(),
    };
    values.extend(texts.map(Value::from));
    if let Some(last) = values.last().cloned() {
        values.resize(first - 1 + count, last);
    }
    let placeholders: Vec<String> = (first..first + count).map(|at| format!("${at}")).collect();
    placeholders.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_statements_have_lists_of_values() {
        let listed = |count: usize| {
            let mut values = vec![Value::from(1_i64)];
            let texts = vec!["x"; count];
            let sql = placeholders(&mut values, texts.into_iter());
            (sql, values.len())
        };
        assert_eq!(listed(0), (String::new(), 1));
        assert_eq!(listed(1), ("$2".to_owned(), 2));
        assert_eq!(listed(3), ("$2, $3, $4, $5".to_owned(), 5));
        assert_eq!(listed(100).1, 129);
    }

    #[test]
    fn a_key_set_continues_behind_its_row() {
        let keyset = Keyset {
            after: Some((5_i64.into(), "b".to_owned())),
            limit: 3,
        };
        let (mut sql, mut values) = ("WHERE TRUE".to_owned(), vec![Value::from("x")]);
        keyset.complete(&mut sql, &mut values, ("k", "d.id"), Order::Descending);
        assert_eq!(
            sql,
            "WHERE TRUE AND k <= $2 AND (k < $2 OR d.id > $3) ORDER BY k DESC, d.id LIMIT 3"
        );
        assert_eq!(values[1..], [Value::from(5_i64), Value::from("b")]);
    }
}
