//! Pages of lists: the lists of these interfaces take `limit` and `cursor` besides their filters, refuse any other parameter, and
//! name the next page in a `Link` header.
//!
//! Two kinds of lists are not read in such pages. Those of knowledge bases that the interface document has are given whole; the settings
//! `knowledge.max_bases`, `max_folders` and `max_documents` bound them, and `document-list`, `folder-list` and `kb-list` give the same in pages. The
//! items of a stored response have the pages of the public API.

use std::collections::HashSet;

use axum::{
    extract::{FromRequestParts, OriginalUri},
    http::{HeaderMap, HeaderValue, Uri, header::LINK, request::Parts},
};
use colloquy_base::invalid::InvalidField;
use colloquy_store::Slice;
use serde::{Deserialize, de::DeserializeOwned};
use utoipa::{
    IntoParams,
    openapi::path::{Parameter, ParameterIn},
};

use super::{
    ApiError,
    parameters::{read_query, shortened},
};

/// The most entries of a page, and what it has when nobody says how many.
const MOST: u64 = 100;

/// The page of a list that a request names.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageQuery {
    /// The most entries of the page, 1 to 100; 100 by default.
    limit: Option<u64>,
    /// The `cursor` of the `Link` header with `rel="next"` of the previous page; left out for the first page. The last page has
    /// no such header.
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

/// Which entries of a list a request asks for: a page of those that the filter lets pass. A parameter that is neither is refused,
/// since a filter whose name is misspelled would list everything.
#[derive(Debug)]
pub struct Listing<F = NoFilter> {
    /// The filter.
    pub filter: F,
    /// The page.
    pub page: Page,
}

/// The filter of a list that has none.
#[derive(Debug, Deserialize)]
pub struct NoFilter {}

impl IntoParams for NoFilter {
    fn into_params(_: impl Fn() -> Option<ParameterIn>) -> Vec<Parameter> {
        Vec::new()
    }
}

impl<S: Send + Sync, F: DeserializeOwned + IntoParams> FromRequestParts<S> for Listing<F> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Ok(OriginalUri(uri)) = OriginalUri::from_request_parts(parts, state).await;
        let mut known = names::<F>();
        known.extend(names::<PageQuery>());
        let query = uri.query().unwrap_or_default();
        refuse_unknown(query, &known)?;
        Ok(Self {
            filter: read_query(query)?,
            page: Page::new(read_query(query)?, uri)?,
        })
    }
}

/// Parameters of the query, of which unknown ones are refused.
#[derive(Debug, Clone)]
pub struct StrictQuery<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + IntoParams> FromRequestParts<S> for StrictQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        let query = parts.uri.query().unwrap_or_default();
        refuse_unknown(query, &names::<T>())?;
        Ok(Self(read_query(query)?))
    }
}

/// The parameters that the API document names.
fn names<T: IntoParams>() -> Vec<String> {
    let parameters = T::into_params(|| Some(ParameterIn::Query));
    parameters.into_iter().map(|it| it.name).collect()
}

/// Refuses names that are not known, and those that stand there twice. A key is no parameter: who asks is for the interface to say.
fn refuse_unknown(query: &str, known: &[String]) -> Result<(), InvalidField> {
    let mut given = HashSet::new();
    for (name, _) in url::form_urlencoded::parse(query.as_bytes()) {
        if name != "api_key" && !known.iter().any(|known| *known == name) {
            let name = shortened(&name);
            let known = known.join(", ");
            let message = format!("is unknown; there are {known}");
            return Err(InvalidField::new(name, message));
        }
        if !given.insert(name.clone()) {
            return Err(InvalidField::new(name.into_owned(), "is given twice"));
        }
    }
    Ok(())
}

impl Page {
    fn new(query: PageQuery, uri: Uri) -> Result<Self, ApiError> {
        let limit = query.limit.unwrap_or(MOST);
        if !(1..=MOST).contains(&limit) {
            return Err(ApiError::invalid("limit", "must be 1 to 100"));
        }
        Ok(Self {
            limit,
            after: query.cursor,
            uri,
        })
    }

    /// The cursor that the page follows; `None` for the first page.
    #[must_use]
    pub fn after(&self) -> Option<&str> {
        self.after.as_deref()
    }

    /// The rows to read from the database: one more than the page has, which tells if there is another page.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.limit + 1
    }

    /// What to read from the database: one row more than the page has tells whether there is another page.
    #[must_use]
    pub fn slice(&self) -> Slice {
        Slice {
            after: self.after.clone(),
            limit: Some(self.rows()),
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
    use axum::http::Request;

    use super::*;

    #[derive(Debug, Deserialize, IntoParams)]
    struct StateFilter {
        state: Option<u8>,
    }

    async fn listing<F: DeserializeOwned + IntoParams>(uri: &str) -> Result<Listing<F>, ApiError> {
        let (mut parts, ()) = Request::get(uri).body(()).unwrap().into_parts();
        Listing::from_request_parts(&mut parts, &()).await
    }

    async fn refused<F: DeserializeOwned + IntoParams>(uri: &str) -> ApiError {
        let refused = listing::<F>(uri).await.err().unwrap();
        assert_eq!(refused.status.as_u16(), 400, "{uri}");
        refused
    }

    #[tokio::test]
    async fn the_next_page_keeps_the_filters_and_drops_the_key() {
        let uri = "/v2/calls?state=7&limit=2&api_key=x&cursor=9";
        let Listing { filter, page } = listing::<StateFilter>(uri).await.unwrap();
        assert_eq!(filter.state, Some(7));
        assert_eq!(page.slice().after.as_deref(), Some("9"));
        assert_eq!(page.slice().limit, Some(3));
        let listed = page.of(vec![8, 7, 6], i32::to_string);
        assert_eq!(listed.entries, [8, 7]);
        assert_eq!(listed.next_cursor.as_deref(), Some("7"));
        assert_eq!(
            listed.links[LINK],
            "</v2/calls?state=7&limit=2&cursor=7>; rel=\"next\""
        );
        let last = page.of(vec![8, 7], i32::to_string);
        assert_eq!((last.next_cursor, last.links.len()), (None, 0));
    }

    #[tokio::test]
    async fn a_page_has_a_bound() {
        let page = listing::<NoFilter>("/x").await.unwrap().page;
        assert_eq!(page.slice().limit, Some(101));
        for limit in ["0", "101", "", "many"] {
            let refused = refused::<NoFilter>(&format!("/x?limit={limit}")).await;
            assert_eq!(refused.field.as_deref(), Some("limit"));
        }
    }

    #[tokio::test]
    async fn a_parameter_that_is_wrong_or_unknown_is_refused_by_name() {
        for (uri, field) in [
            ("/x?status=7", "status"),
            ("/x?limit=1&State=7", "State"),
            ("/x?state=seven", "state"),
            ("/x?state=7&state=8", "state"),
            ("/x?=7", ""),
        ] {
            let refused = refused::<StateFilter>(uri).await;
            assert_eq!(refused.field.as_deref(), Some(field), "{uri}");
        }
        assert_eq!(
            refused::<NoFilter>("/x?state=7").await.message,
            "is unknown; there are limit, cursor"
        );
        let long = format!("/x?{}=1", "a".repeat(5_000));
        assert!(refused::<NoFilter>(&long).await.message.len() < 300);
    }
}
