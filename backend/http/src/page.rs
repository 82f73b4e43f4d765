//! Pages of lists: every list takes `limit` and `cursor`, and names the next page in a `Link` header.

use axum::{
    extract::{FromRequestParts, OriginalUri, Query},
    http::{HeaderMap, HeaderValue, Uri, header::LINK, request::Parts},
};
use colloquy_store::Slice;
use serde::Deserialize;
use utoipa::IntoParams;

use super::ApiError;

/// The most entries of a page, and what it has when nobody says how many.
const MOST: u64 = 100;

/// Which page of a list.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// How many entries, 1 to 100; 100 without it.
    limit: Option<u64>,
    /// Where the page begins: the `cursor` of the `Link` header with `rel="next"` that came with the page before. The header
    /// is missing on the last page.
    cursor: Option<String>,
}

/// The page of a list that a request asks for.
#[derive(Debug)]
pub struct Page {
    limit: u64,
    after: Option<String>,
    uri: Uri,
}

/// The entries of a page, and where the next one begins.
#[derive(Debug)]
pub struct Listed<T> {
    /// The entries.
    pub entries: Vec<T>,
    /// The cursor of the next page; `None` on the last.
    pub next_cursor: Option<String>,
    /// The `Link` header that leads to it.
    pub links: HeaderMap,
}

impl<S: Send + Sync> FromRequestParts<S> for Page {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let original = parts.extensions.get::<OriginalUri>();
        let uri = original.map_or_else(|| parts.uri.clone(), |uri| uri.0.clone());
        let Query(query) = Query::<PageQuery>::try_from_uri(&parts.uri)
            .map_err(|rejection| ApiError::invalid("limit", rejection.body_text()))?;
        Self::new(query, uri)
    }
}

impl Page {
    fn new(query: PageQuery, uri: Uri) -> Result<Self, ApiError> {
        let limit = query.limit.unwrap_or(MOST);
        if !(1..=MOST).contains(&limit) {
            return Err(ApiError::invalid("limit", "limit is 1 to 100"));
        }
        Ok(Self {
            limit,
            after: query.cursor,
            uri,
        })
    }

    /// What to read from the database: one row more than the page has tells whether there is another page.
    #[must_use]
    pub fn slice(&self) -> Slice {
        Slice {
            after: self.after.clone(),
            limit: Some(self.limit + 1),
        }
    }

    /// The page of the rows that were read. `cursor` names a row: what the list is ordered by.
    #[must_use]
    pub fn of<T>(&self, mut rows: Vec<T>, cursor: impl Fn(&T) -> String) -> Listed<T> {
        let more = rows.len() as u64 > self.limit;
        rows.truncate(self.limit as usize);
        let next_cursor = rows.last().filter(|_| more).map(cursor);
        let mut links = HeaderMap::new();
        if let Some(link) = next_cursor.as_deref().and_then(|next| self.link(next)) {
            links.insert(LINK, link);
        }
        Listed {
            entries: rows,
            next_cursor,
            links,
        }
    }

    /// `<path?query>; rel="next"` (RFC 8288), with everything that was asked for besides the cursor. A key in the query is
    /// left out, since headers are logged where bodies are not.
    fn link(&self, next: &str) -> Option<HeaderValue> {
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        let asked = self.uri.query().unwrap_or_default();
        for (name, value) in url::form_urlencoded::parse(asked.as_bytes()) {
            if name != "cursor" && name != "api_key" {
                query.append_pair(&name, &value);
            }
        }
        query.append_pair("cursor", next);
        let target = format!("<{}?{}>; rel=\"next\"", self.uri.path(), query.finish());
        HeaderValue::try_from(target).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(uri: &str) -> Result<Page, ApiError> {
        let uri: Uri = uri.parse().unwrap();
        let Query(query) = Query::<PageQuery>::try_from_uri(&uri).unwrap();
        Page::new(query, uri)
    }

    #[test]
    fn the_next_page_keeps_the_filters_and_drops_the_key() {
        let page = page("/v2/calls?state=error&limit=2&api_key=x&cursor=9").unwrap();
        assert_eq!(page.slice().after.as_deref(), Some("9"));
        assert_eq!(page.slice().limit, Some(3));
        let listed = page.of(vec![8, 7, 6], i32::to_string);
        assert_eq!(listed.entries, [8, 7]);
        assert_eq!(listed.next_cursor.as_deref(), Some("7"));
        assert_eq!(
            listed.links[LINK],
            "</v2/calls?state=error&limit=2&cursor=7>; rel=\"next\""
        );
        let last = page.of(vec![8, 7], i32::to_string);
        assert_eq!((last.next_cursor, last.links.len()), (None, 0));
    }

    #[test]
    fn a_page_has_a_bound() {
        assert_eq!(page("/x").unwrap().slice().limit, Some(101));
        for limit in [0, 101] {
            let refused = page(&format!("/x?limit={limit}")).unwrap_err();
            assert_eq!(refused.field.as_deref(), Some("limit"));
        }
    }
}
