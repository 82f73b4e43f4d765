//! Documents of a base in their order, which are read a page at a time.

use colloquy_store::Value;

/// The most documents of a page that is answered with. Each has up to about 30 KiB.
pub(crate) const DOCUMENT_PAGE: u8 = 64;

/// The most documents of a page of which a few fields are read.
pub(crate) const SCAN_PAGE: u16 = 500;

/// The last document of a page, which the next page follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DocumentPlace {
    pub(crate) created_at: i64,
    pub(crate) id: String,
}

impl DocumentPlace {
    /// Before all documents.
    pub(crate) fn first() -> Self {
        Self {
            created_at: i64::MIN,
            id: String::new(),
        }
    }
}

/// The condition of the documents `d` of the base `$1` that follow `$2` and `$3`, for [`following`]. The index of a base has this order.
pub(super) const FOLLOWING: &str = "d.base_id = $1 AND (d.created_at, d.id) > ($2, $3)";

/// The condition of documents `d` up to `$4` and `$5`, which makes [`FOLLOWING`] that of a [`DocumentSpan`]. The range of times says the
/// same with less: PostgreSQL estimates how few rows are in it, which it does not for two comparisons of row values.
pub(super) const UP_TO: &str =
    "(d.created_at, d.id) <= ($4, $5) AND d.created_at BETWEEN $2 AND $4";

/// The values of [`FOLLOWING`], and `$4`, the most documents.
pub(super) fn following(base: &str, after: &DocumentPlace, most: impl Into<i64>) -> [Value; 4] {
    let most: i64 = most.into();
    [
        base.into(),
        after.created_at.into(),
        after.id.as_str().into(),
        most.into(),
    ]
}

/// The documents of a page that was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DocumentSpan<'a> {
    pub(crate) base: &'a str,
    pub(crate) after: &'a DocumentPlace,
    /// The last one of them.
    pub(crate) last: &'a DocumentPlace,
}

impl DocumentSpan<'_> {
    /// The values of [`FOLLOWING`] and [`UP_TO`].
    pub(super) fn values(&self) -> [Value; 5] {
        [
            self.base.into(),
            self.after.created_at.into(),
            self.after.id.as_str().into(),
            self.last.created_at.into(),
            self.last.id.as_str().into(),
        ]
    }
}
