//! The items that a stored response was asked with, page by page.
//!
//! An input may be as long as a body, so of its text only the items of the page are kept. Others are passed over, or read one at
//! a time where an id is looked for.

use std::{fmt, ops::Range};

use colloquy_store::StoreError;
use serde::{
    Deserializer as _,
    de::{IgnoredAny, SeqAccess, Visitor},
};
use serde_json::Value;

use super::{routes::Order, stored::identified};

/// Which items make a page.
#[derive(Debug)]
pub(super) struct PageQuery {
    /// The most items.
    pub(super) limit: usize,
    /// The id of the item before the first one.
    pub(super) after: Option<String>,
    pub(super) order: Order,
}

/// Items of an input.
#[derive(Debug, PartialEq)]
pub(super) struct Page {
    pub(super) items: Vec<Value>,
    /// True if there are items behind these.
    pub(super) has_more: bool,
}

/// A page of the input of a response, each item with an id; `None` if there is no item with the id `after`.
///
/// # Errors
/// When the text is no list of items.
pub(super) fn page(
    response: &str,
    input: &str,
    query: &PageQuery,
) -> Result<Option<Page>, StoreError> {
    let after = query.after.as_deref();
    let found = read(input, Search { response, after })?;
    if after.is_some() && found.first.is_none() {
        return Ok(None);
    }
    let (range, has_more) = match query.order {
        Order::Asc => {
            let from = found.first.map_or(0, |at| at + 1);
            let to = found.items.min(from.saturating_add(query.limit));
            (from..to, to < found.items)
        }
        Order::Desc => {
            let to = found.last.unwrap_or(found.items);
            let from = to.saturating_sub(query.limit);
            (from..to, from > 0)
        }
    };
    let mut items = read(input, Part { response, range })?;
    if query.order == Order::Desc {
        items.reverse();
    }
    Ok(Some(Page { items, has_more }))
}

fn read<'de, V: Visitor<'de>>(input: &'de str, visitor: V) -> Result<V::Value, StoreError> {
    let mut deserializer = serde_json::Deserializer::from_str(input);
    let value = deserializer.deserialize_seq(visitor);
    let value = value.map_err(StoreError::malformed)?;
    deserializer.end().map_err(StoreError::malformed)?;
    Ok(value)
}

/// Looks for an item, and counts all of them.
struct Search<'a> {
    response: &'a str,
    after: Option<&'a str>,
}

/// How many items there are, and where those of the id stand that is looked for.
#[derive(Default)]
struct Found {
    items: usize,
    first: Option<usize>,
    last: Option<usize>,
}

impl<'de> Visitor<'de> for Search<'_> {
    type Value = Found;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Found, A::Error> {
        let mut found = Found::default();
        let Some(after) = self.after else {
            while items.next_element::<IgnoredAny>()?.is_some() {
                found.items += 1;
            }
            return Ok(found);
        };
        while let Some(item) = items.next_element::<Value>()? {
            let at = found.items;
            let item = identified(self.response, at, item);
            if item.get("id").and_then(Value::as_str) == Some(after) {
                found.first = found.first.or(Some(at));
                found.last = Some(at);
            }
            found.items += 1;
        }
        Ok(found)
    }
}

/// Reads some of the items.
struct Part<'a> {
    response: &'a str,
    range: Range<usize>,
}

impl<'de> Visitor<'de> for Part<'_> {
    type Value = Vec<Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<Value>, A::Error> {
        let mut part = Vec::with_capacity(self.range.len());
        for at in 0.. {
            if self.range.contains(&at) {
                let Some(item) = items.next_element::<Value>()? else {
                    break;
                };
                part.push(identified(self.response, at, item));
            } else if items.next_element::<IgnoredAny>()?.is_none() {
                break;
            }
        }
        Ok(part)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The ids of a page's items, and whether there are more.
    fn ids(input: &Value, limit: usize, after: Option<&str>, order: Order) -> Option<String> {
        let query = PageQuery {
            limit,
            after: after.map(str::to_owned),
            order,
        };
        let page = page("resp_7", &input.to_string(), &query).unwrap()?;
        let ids = page.items.iter().map(|item| item["id"].as_str().unwrap());
        let ids = ids.collect::<Vec<_>>().join(" ");
        Some(format!("{ids}{}", if page.has_more { " .." } else { "" }))
    }

    #[test]
    fn a_page_has_the_items_of_its_place() {
        let input = json!([{"content": "a"}, {"id": "b"}, {"content": "c"}, {"id": "d"}]);
        let cases = [
            (4, None, Order::Asc, "item_7_0 b item_7_2 d"),
            (2, None, Order::Asc, "item_7_0 b .."),
            (2, Some("b"), Order::Asc, "item_7_2 d"),
            (1, Some("item_7_0"), Order::Asc, "b .."),
            (2, Some("d"), Order::Asc, ""),
            (4, None, Order::Desc, "d item_7_2 b item_7_0"),
            (3, None, Order::Desc, "d item_7_2 b .."),
            (3, Some("item_7_2"), Order::Desc, "b item_7_0"),
            (1, Some("item_7_2"), Order::Desc, "b .."),
            (5, Some("item_7_0"), Order::Desc, ""),
        ];
        for (limit, after, order, expected) in cases {
            let page = ids(&input, limit, after, order);
            assert_eq!(
                page.as_deref(),
                Some(expected),
                "{limit} {after:?} {order:?}"
            );
        }
        for order in [Order::Asc, Order::Desc] {
            assert_eq!(ids(&input, 2, Some("item_7_1"), order), None);
            assert_eq!(ids(&json!([]), 2, None, order).as_deref(), Some(""));
        }
        // Of two with one id the first in the order is meant.
        let twice = json!([{"id": "x"}, {"id": "a"}, {"id": "x"}]);
        assert_eq!(
            ids(&twice, 5, Some("x"), Order::Asc).as_deref(),
            Some("a x")
        );
        assert_eq!(
            ids(&twice, 5, Some("x"), Order::Desc).as_deref(),
            Some("a x")
        );
    }

    #[test]
    fn what_is_no_list_is_malformed() {
        let query = PageQuery {
            limit: 1,
            after: None,
            order: Order::Asc,
        };
        for input in ["{}", "[1", "[] []", ""] {
            assert!(page("resp_7", input, &query).is_err(), "{input}");
        }
    }
}
