//! Lists of bases, folders and documents that the database sorts, filters and sums, in pages.
//!
//! A page is read in steps: its ids in order, the sums over all that pass the filter, and what the list says of each id. What is told of a document is
//! made by the same code as elsewhere (`document.rs`, `spend.rs`); the database has copies of sizes, costs and states in columns that triggers keep.

use std::collections::HashMap;

use colloquy_base::{invalid::InvalidField, money::Usd, names::is_hidden};
use colloquy_store::{Keyset, Order, StoreError, Value};

use super::{
    Bases,
    budget::BudgetState,
    channel::{self, DescribedChannel},
    document::{self, Described, Step},
    folder::Folder,
    spend::DocumentSpend,
    store::{
        self, BaseCosts, BaseFigures, BaseFilter, DocumentSums, Figures, FolderFigures,
        FolderFilter, KeyedId, ListedBase, ReadingCost, Sizes,
    },
};

/// The longest filter of names, in characters.
const LONGEST_FILTER: usize = 200;

/// The longest cursor, in bytes: a name of 200 characters that grew when it was folded, and its id.
const LONGEST_CURSOR: usize = 4_096;

/// What a list is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SortKey {
    Name,
    Price,
    Size,
    /// The part of the limit that is used up first, in millionths.
    Limit,
    Tokens,
    /// The time of the last change.
    Changed,
    State,
}

impl SortKey {
    /// True if its keys are texts.
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Self::Name | Self::State)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Price => "price",
            Self::Size => "size",
            Self::Limit => "limit",
            Self::Tokens => "tokens",
            Self::Changed => "changed",
            Self::State => "state",
        }
    }
}

/// The key of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Key {
    Text(String),
    Number(i64),
}

/// What a list is sorted by, and in which direction. Ids ascend for equal keys.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sorting {
    pub(crate) key: SortKey,
    pub(crate) order: Order,
}

impl Sorting {
    /// Sorts by a key. Names and states ascend unless the order says otherwise; numbers descend.
    pub(crate) fn new(key: SortKey, order: Option<Order>) -> Self {
        let default = match key.is_text() {
            true => Order::Ascending,
            false => Order::Descending,
        };
        Self {
            key,
            order: order.unwrap_or(default),
        }
    }

    /// The begin of cursors of a list that is sorted like this.
    fn prefix(self) -> String {
        let order = match self.order {
            Order::Ascending => "asc",
            Order::Descending => "desc",
        };
        format!("{}.{order}:", self.key.as_str())
    }

    /// Returns the cursor of a row: `<sort>.<order>:<id>:<key>`.
    pub(crate) fn cursor(self, row: &KeyedId) -> String {
        let (prefix, id) = (self.prefix(), &row.id);
        match &row.key {
            Key::Text(key) => format!("{prefix}{id}:{key}"),
            Key::Number(key) => format!("{prefix}{id}:{key}"),
        }
    }

    /// Returns the part of the list that follows a cursor, or the first one without a cursor.
    ///
    /// # Errors
    /// The cursor is not one of a list that is sorted like this.
    pub(crate) fn keyset(self, cursor: Option<&str>, limit: u64) -> Result<Keyset, InvalidField> {
        let parse = |cursor: &str| {
            let rest = cursor.strip_prefix(&self.prefix())?;
            let (id, key) = rest.split_once(':')?;
            let is_id = !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            let is_sound = is_id && cursor.len() <= LONGEST_CURSOR && !key.contains('\0');
            let key: Value = match self.key.is_text() {
                true => key.into(),
                false => key.parse::<i64>().ok()?.into(),
            };
            is_sound.then(|| (key, id.to_owned()))
        };
        let wrong = || InvalidField::new("cursor", "is not one of this list");
        let after = cursor.map(|cursor| parse(cursor).ok_or_else(wrong));
        Ok(Keyset {
            after: after.transpose()?,
            limit,
        })
    }
}

/// Checks a text that names are to contain.
///
/// # Errors
/// The text is empty, has more than 200 characters, or a character that no name has.
pub(crate) fn name_filter(text: Option<String>) -> Result<Option<String>, InvalidField> {
    let Some(text) = text else {
        return Ok(None);
    };
    let length = text.chars().count();
    if !(1..=LONGEST_FILTER).contains(&length) || text.contains(is_hidden) {
        let message = format!("must have 1 to {LONGEST_FILTER} characters, all of them visible");
        return Err(InvalidField::new("q", message));
    }
    Ok(Some(text))
}

/// Puts what was read for ids into their order. Rows that were deleted meanwhile are missing.
fn in_order<T>(ids: &[String], rows: Vec<T>, id: impl Fn(&T) -> &str) -> Vec<T> {
    let places: HashMap<&str, usize> = ids
        .iter()
        .enumerate()
        .map(|(place, id)| (id.as_str(), place))
        .collect();
    let mut rows = rows;
    rows.sort_by_key(|row| places.get(id(row)).copied());
    rows
}

impl DocumentSums {
    /// The cost of all documents together: a lower bound if that of any of them is.
    pub(crate) fn spend(&self) -> DocumentSpend {
        let sum = (self.cost.unsigned_abs(), self.incomplete == 0);
        DocumentSpend::of([(self.spending > 0).then_some(sum), None])
    }
}

/// A document in a list.
#[derive(Debug)]
pub(crate) struct ListedDocument {
    /// Without its duplicates.
    pub(crate) described: Described,
    pub(crate) figures: Figures,
}

impl ListedDocument {
    /// Since when a step is queued, running or blocked, in milliseconds since 1970; `None` if no step is.
    pub(crate) fn queued_at(&self) -> Option<i64> {
        let document = &self.described.document;
        let steps = [document.digitizing, document.rewriting, document.embedding];
        if steps.contains(&Step::Queued) || steps.contains(&Step::Running) {
            return self.figures.queued_at;
        }
        let blocked_at = self.figures.blocked_at.unwrap_or(document.updated_at);
        steps.contains(&Step::Blocked).then_some(blocked_at)
    }

    /// Cost of its transcription requests, as far as it is known; `None` if none was sent.
    pub(crate) fn reading_usd(&self) -> Option<Usd> {
        let reading = self.described.reading.as_ref();
        reading.map(|reading| Usd(reading.cost.unsigned_abs()))
    }
}

impl Figures {
    fn reading(&self) -> Option<ReadingCost> {
        (self.reading_requests > 0).then_some(ReadingCost {
            cost: self.reading_cost,
            events: self.reading_requests,
            priced: self.reading_requests - self.reading_unpriced,
        })
    }
}

/// Returns documents in the order of their ids.
pub(crate) async fn documents(
    bases: &Bases,
    ids: &[String],
) -> Result<Vec<ListedDocument>, StoreError> {
    let db = bases.store.db();
    let rows = store::documents_among(db, ids).await?;
    let rows = in_order(ids, rows, |row| &row.document.id);
    let readings = rows
        .iter()
        .filter_map(|row| Some((row.document.id.clone(), row.figures.reading()?)))
        .collect();
    let (documents, figures): (Vec<_>, Vec<_>) = rows
        .into_iter()
        .map(|row| (row.document, row.figures))
        .unzip();
    let described = document::describe(db, documents, readings).await?;
    let listed = described.into_iter().zip(figures);
    Ok(listed
        .map(|(described, figures)| ListedDocument { described, figures })
        .collect())
}

/// A folder in a list.
#[derive(Debug)]
pub(crate) struct ListedFolder {
    pub(crate) folder: Folder,
    pub(crate) figures: FolderFigures,
    /// The channel that it follows.
    pub(crate) channel: Option<DescribedChannel>,
    /// Cost of looking through the channel, as far as it is known; `None` if no request was sent.
    pub(crate) discovery_cost: Option<Usd>,
}

/// Returns folders of a base in the order of their ids.
pub(crate) async fn folders(
    bases: &Bases,
    base: &str,
    ids: &[String],
) -> Result<Vec<ListedFolder>, StoreError> {
    let db = bases.store.db();
    let folders = store::folders_among(db, ids).await?;
    let mut figures = store::folder_figures(db, base, ids).await?;
    let costs = store::discovery_costs(db, ids).await?;
    let channels = channel::among(bases, ids).await?.into_iter();
    let mut channels: HashMap<String, DescribedChannel> = channels
        .map(|it| (it.channel.folder_id.clone(), it))
        .collect();
    let list = |folder: Folder| ListedFolder {
        figures: figures.remove(&folder.id).unwrap_or_default(),
        channel: channels.remove(&folder.id),
        discovery_cost: costs.get(&folder.id).copied().map(Usd),
        folder,
    };
    let folders = in_order(ids, folders, |folder| &folder.id);
    Ok(folders.into_iter().map(list).collect())
}

/// Returns the number of all folders that pass a filter, and the sums over their documents. The folders of the first page are `listed`; those that
/// follow are read unless it is the last one.
pub(crate) async fn folder_sums(
    bases: &Bases,
    filter: &FolderFilter,
    listed: &[ListedFolder],
    is_last: bool,
) -> Result<(u64, DocumentSums), StoreError> {
    let db = bases.store.db();
    let count = store::folder_count(db, filter).await?;
    let mut sums = DocumentSums::default();
    for it in listed {
        sums += it.figures.sums;
    }
    if !is_last {
        let ids: Vec<String> = listed.iter().map(|it| it.folder.id.clone()).collect();
        sums += store::folder_sums_except(db, filter, &ids).await?;
    }
    Ok((count, sums))
}

/// A base in a list.
#[derive(Debug)]
pub(crate) struct DescribedBase {
    pub(crate) listed: ListedBase,
    pub(crate) figures: BaseFigures,
    pub(crate) budget: BudgetState,
}

/// Returns bases in the order of their ids.
pub(crate) async fn bases(bases: &Bases, ids: &[String]) -> Result<Vec<DescribedBase>, StoreError> {
    let db = bases.store.db();
    let listed = store::bases_among(db, ids).await?;
    let mut budgets = BudgetState::among(db, &listed).await?;
    let figures = store::base_figures(db, ids).await?;
    let listed = in_order(ids, listed, |it| &it.base.id);
    let describe = |listed: ListedBase| {
        let id = &listed.base.id;
        Some(DescribedBase {
            figures: figures.get(id).copied().unwrap_or_default(),
            budget: budgets.remove(id)?,
            listed,
        })
    };
    Ok(listed.into_iter().filter_map(describe).collect())
}

/// Sums over bases.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BaseSums {
    pub(crate) costs: BaseCosts,
    pub(crate) sizes: Sizes,
}

/// Returns the sums over all bases that pass a filter. The bases of the first page are `listed`; those that follow are read
/// unless it is the last one.
pub(crate) async fn base_sums(
    bases: &Bases,
    filter: &BaseFilter,
    listed: &[DescribedBase],
    is_last: bool,
) -> Result<BaseSums, StoreError> {
    let db = bases.store.db();
    let costs = store::base_costs(db, filter).await?;
    let mut sizes = Sizes::default();
    for it in listed {
        sizes += it.figures.sizes;
    }
    if !is_last {
        let ids: Vec<String> = listed.iter().map(|it| it.listed.base.id.clone()).collect();
        sizes += store::base_sizes_except(db, filter, &ids).await?;
    }
    Ok(BaseSums { costs, sizes })
}

/// Folds the names that databases do not fold: those that were there before migration 51, or that nodes of an earlier version wrote, unless they are
/// of ASCII characters. Ends when the server stops; the next start goes on.
pub(crate) async fn fold_names(bases: &Bases) -> Result<(), StoreError> {
    let db = bases.store.db();
    for named in store::NAMED {
        loop {
            let unfolded = store::unfolded_names(db, named).await?;
            if unfolded.is_empty() {
                break;
            }
            // Each on its own: a transaction with the locks of many rows may wait for a deletion that waits for one of them.
            for row in &unfolded {
                if bases.kernel.shutdown.is_cancelled() {
                    return Ok(());
                }
                store::fold_name(db, named, row).await?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_one_of_its_list_alone() {
        let row = |key| KeyedId {
            id: "0198-a".to_owned(),
            key,
        };
        let name = Sorting::new(SortKey::Name, None);
        let price = Sorting::new(SortKey::Price, None);
        let text = name.cursor(&row(Key::Text("a:b".to_owned())));
        assert_eq!(text, "name.asc:0198-a:a:b");
        let after = name.keyset(Some(&text), 3).unwrap().after.unwrap();
        assert_eq!(after, (Value::from("a:b"), "0198-a".to_owned()));
        let number = price.cursor(&row(Key::Number(-2)));
        assert_eq!(number, "price.desc:0198-a:-2");
        price.keyset(Some(&number), 3).unwrap();
        let ascending = Sorting::new(SortKey::Price, Some(Order::Ascending));
        for (sorting, cursor) in [
            (price, text.as_str()),
            (name, &number),
            (ascending, &number),
            (price, "price.desc:0198-a:x"),
            (price, "price.desc:0198-a:"),
            (name, "name.asc::a"),
            (name, "name.asc:it's:a"),
            (name, "name.asc:0198-a:\0"),
            (name, ""),
        ] {
            sorting.keyset(Some(cursor), 3).unwrap_err();
        }
    }
}
