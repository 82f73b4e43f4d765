//! `If-Match` and `If-None-Match` of contents.

use axum::http::{HeaderMap, HeaderName, HeaderValue, header::ETAG};
use colloquy_http::ApiError;
use utoipa::IntoParams;

use crate::content::{Content, Variant, of_variant};

/// Conditions of a request that writes a content.
#[derive(IntoParams)]
#[into_params(parameter_in = Header)]
#[expect(dead_code, reason = "only its shape is used, in the API document")]
pub(super) struct ConditionHeaders {
    /// The `ETag` of the content that is replaced, in quotes, or `*` for any content. A weak tag (`W/`), as compressing proxies return it, counts as
    /// the tag itself.
    #[param(rename = "If-Match", required = false)]
    if_match: Option<String>,
    /// `*`: the document has no such content.
    #[param(rename = "If-None-Match", required = false)]
    if_none_match: Option<String>,
}

/// What a request demands of the content that it replaces.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// Nothing.
    None,
    /// `If-Match: "<sha256>"` or `W/"<sha256>"`: it has this hash.
    Same(String),
    /// `If-Match: *`: there is one.
    Present,
    /// `If-None-Match: *`: there is none.
    Absent,
}

impl Condition {
    /// Reads the headers of a request.
    ///
    /// # Errors
    /// A header is given twice or beside the other one, or is not one of these forms.
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, ApiError> {
        let matched = only(headers, "If-Match")?;
        let absent = only(headers, "If-None-Match")?;
        match (matched, absent) {
            (None, None) => Ok(Self::None),
            (Some("*"), None) => Ok(Self::Present),
            (Some(tag), None) => {
                // Proxies that compress an answer weaken its tag; the hash is that of the content, however it is encoded.
                let tag = tag.strip_prefix("W/").unwrap_or(tag);
                let hash = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
                let is_hash = |hash: &&str| {
                    !hash.is_empty() && hash.chars().all(|c| c.is_ascii_alphanumeric())
                };
                let hash = hash.filter(is_hash).map(|hash| Self::Same(hash.to_owned()));
                hash.ok_or_else(|| {
                    ApiError::invalid(
                        "If-Match",
                        "must be the ETag of the content, in quotes, or *",
                    )
                })
            }
            (None, Some("*")) => Ok(Self::Absent),
            (None, Some(_)) => Err(ApiError::invalid("If-None-Match", "must be *")),
            (Some(_), Some(_)) => Err(ApiError::invalid(
                "If-None-Match",
                "cannot stand beside If-Match",
            )),
        }
    }

    /// Checks the contents of a document before the one of a variant is written. A text that waits for its budget is not accepted yet and has no
    /// `ETag`, so no condition on the digitized text holds while there is one.
    ///
    /// # Errors
    /// 409: the document has another content, or a text that waits.
    pub(super) fn check(&self, contents: &[Content], variant: Variant) -> Result<(), ApiError> {
        let waits =
            variant == Variant::Digitized && of_variant(contents, Variant::Extracted).is_some();
        let message = match (self, of_variant(contents, variant)) {
            (Self::None, _) => return Ok(()),
            _ if waits => "A text of the document waits for its budget",
            (Self::Present, Some(_)) | (Self::Absent, None) => return Ok(()),
            (Self::Same(hash), Some(content)) if content.sha256 == *hash => return Ok(()),
            (Self::Same(_), Some(_)) => "The content has changed since it was read",
            (Self::Same(_) | Self::Present, None) => "The document has no such content",
            (Self::Absent, Some(_)) => "The document has such a content already",
        };
        Err(ApiError::conflict(message).with_code("content_changed"))
    }
}

fn only<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, ApiError> {
    let mut values = headers.get_all(name).iter();
    let value = values
        .next()
        .map(|value| value.to_str().unwrap_or_default().trim());
    match values.next() {
        None => Ok(value),
        Some(_) => Err(ApiError::invalid(name, "is given twice")),
    }
}

/// Returns the header `ETag` of a content: its SHA-256.
pub(super) fn etag(content: &Content) -> Option<(HeaderName, HeaderValue)> {
    let value = HeaderValue::try_from(format!("\"{}\"", content.sha256));
    Some((ETAG, value.ok()?))
}

#[cfg(test)]
mod tests {
    use axum::http::header::{IF_MATCH, IF_NONE_MATCH};

    use super::*;

    fn read(headers: &[(HeaderName, &str)]) -> Result<Condition, String> {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.clone(), HeaderValue::from_str(value).unwrap()));
        let condition = Condition::of(&headers.collect());
        condition.map_err(|error| error.field.unwrap())
    }

    #[test]
    fn conditions_are_those_of_the_etag() {
        let same = Condition::Same("0a".to_owned());
        assert_eq!(read(&[]), Ok(Condition::None));
        for tag in ["\"0a\"", "W/\"0a\""] {
            assert_eq!(read(&[(IF_MATCH, tag)]).as_ref(), Ok(&same), "{tag}");
        }
        assert_eq!(read(&[(IF_MATCH, " * ")]), Ok(Condition::Present));
        assert_eq!(read(&[(IF_NONE_MATCH, "*")]), Ok(Condition::Absent));
        for wrong in ["0a", "\"\"", "\"0a\", \"0b\"", "W/0a", "W/*", "\"", ""] {
            assert_eq!(
                read(&[(IF_MATCH, wrong)]),
                Err("If-Match".to_owned()),
                "{wrong}"
            );
        }
        let other = read(&[(IF_NONE_MATCH, "\"0a\"")]);
        assert_eq!(other, Err("If-None-Match".to_owned()));
        let both = read(&[(IF_MATCH, "*"), (IF_NONE_MATCH, "*")]);
        assert_eq!(both, Err("If-None-Match".to_owned()));
        let twice = read(&[(IF_MATCH, "*"), (IF_MATCH, "*")]);
        assert_eq!(twice, Err("If-Match".to_owned()));
        let twice = read(&[(IF_NONE_MATCH, "*"), (IF_NONE_MATCH, "*")]);
        assert_eq!(twice, Err("If-None-Match".to_owned()));
    }
}
