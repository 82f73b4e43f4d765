//! Reads the parameters of queries and paths. Every error names the parameter and what it must be.

use std::borrow::Cow;

use axum::extract::path::{ErrorKind, RawPathParams};
use colloquy_base::{invalid::InvalidField, json};
use serde::{
    de::{
        DeserializeOwned, Deserializer, Error as _, Expected, IntoDeserializer, Unexpected,
        Visitor,
        value::{CowStrDeserializer, Error, MapDeserializer},
    },
    forward_to_deserialize_any,
};

use super::ApiError;

/// The most characters of a name or value that an error repeats.
const MOST_CHARS: usize = 100;

/// Reads the parameters of a query.
///
/// # Errors
/// Names the parameter that is missing, repeated, unknown or of a wrong type.
pub(super) fn read_query<T: DeserializeOwned>(query: &str) -> Result<T, InvalidField> {
    let pairs = url::form_urlencoded::parse(query.as_bytes());
    let pairs = MapDeserializer::<_, Error>::new(pairs.map(|(name, text)| (name, Text(text))));
    serde_path_to_error::deserialize(pairs).map_err(|error| {
        let (name, message) = json::locate(&error);
        invalid(name.as_deref().unwrap_or("query"), &message)
    })
}

/// Reads the values of a parameter that are separated by commas, each once. `kinds` says in the error what they must be.
///
/// # Errors
/// Names the parameter if one of the values is unknown.
pub fn separated<T: TryFrom<String> + PartialEq>(
    parameter: &'static str,
    text: Option<&str>,
    kinds: &str,
) -> Result<Vec<T>, InvalidField> {
    let mut values = Vec::new();
    for word in text.into_iter().flat_map(|text| text.split(',')) {
        let value = T::try_from(word.trim().to_owned()).map_err(|_| {
            InvalidField::new(parameter, format!("must be {kinds}, separated by commas"))
        })?;
        if !values.contains(&value) {
            values.push(value);
        }
    }
    Ok(values)
}

/// Returns the error of a path whose parameters axum did not read. `given` are the parameters, where they are known.
pub(super) fn invalid_path(kind: ErrorKind, given: Option<&RawPathParams>) -> ApiError {
    let name_at = |index: usize| {
        let found = given.and_then(|given| given.iter().nth(index));
        found.map_or_else(|| "path".to_owned(), |(name, _)| name.to_owned())
    };
    let (name, message) = match kind {
        ErrorKind::ParseErrorAtKey {
            key,
            value,
            expected_type,
        } => (key, unfit(&value, &expected_type).to_string()),
        ErrorKind::ParseErrorAtIndex {
            index,
            value,
            expected_type,
        } => (name_at(index), unfit(&value, &expected_type).to_string()),
        ErrorKind::ParseError {
            value,
            expected_type,
        } => (name_at(0), unfit(&value, &expected_type).to_string()),
        ErrorKind::DeserializeError { key, message, .. } => (key, message),
        ErrorKind::InvalidUtf8InPathParam { key } => (key, "must be UTF-8".to_owned()),
        ErrorKind::Message(message) => ("path".to_owned(), message),
        // The handler does not fit its route.
        other => return ApiError::internal(other.to_string()),
    };
    invalid(&name, &json::plain(&message)).into()
}

/// Cuts a name or value that an error repeats.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(MOST_CHARS).collect()
}

fn invalid(name: &str, message: &str) -> InvalidField {
    InvalidField::new(shortened(name), message.to_owned())
}

/// Returns the error of a text that is not of the expected type. Integers are out of range.
fn unfit(text: &str, expected: &dyn Expected) -> Error {
    let shown = format!("`{}`", shortened(text));
    let given = Unexpected::Other(&shown);
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Error::invalid_value(given, expected);
    }
    Error::invalid_type(given, expected)
}

/// The text of a parameter, which is parsed as the type that is read.
struct Text<'a>(Cow<'a, str>);

impl<'de> IntoDeserializer<'de, Error> for Text<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! parsed {
    ($($deserialize:ident: $type:ty, $visit:ident;)*) => {$(
        fn $deserialize<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
            match self.0.parse::<$type>() {
                Ok(value) => visitor.$visit(value),
                Err(_) => Err(unfit(&self.0, &visitor)),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Text<'_> {
    type Error = Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        match self.0 {
            Cow::Borrowed(text) => visitor.visit_str(text),
            Cow::Owned(text) => visitor.visit_string(text),
        }
    }

    parsed! {
        deserialize_bool: bool, visit_bool;
        deserialize_i8: i8, visit_i8;
        deserialize_i16: i16, visit_i16;
        deserialize_i32: i32, visit_i32;
        deserialize_i64: i64, visit_i64;
        deserialize_u8: u8, visit_u8;
        deserialize_u16: u16, visit_u16;
        deserialize_u32: u32, visit_u32;
        deserialize_u64: u64, visit_u64;
        deserialize_f32: f32, visit_f32;
        deserialize_f64: f64, visit_f64;
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Error> {
        visitor.visit_enum(CowStrDeserializer::<Error>::new(self.0))
    }

    forward_to_deserialize_any! {
        char str string bytes byte_buf unit unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use axum::{
        Router,
        body::Body,
        extract::FromRequestParts,
        http::{Request, StatusCode},
        routing::get,
    };
    use serde::Deserialize;
    use tower::ServiceExt as _;
    use uuid::Uuid;

    use super::*;
    use crate::{ApiPath, ApiQuery};

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Order {
        Asc,
        Desc,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Asked {
        kb: String,
        limit: Option<u32>,
        offset: Option<i8>,
        #[serde(default)]
        dry_run: bool,
        speed: Option<f64>,
        call: Option<Uuid>,
        order: Option<Order>,
    }

    async fn query(query: &str) -> Result<Asked, ApiError> {
        let request = Request::get(format!("/x?{query}")).body(()).unwrap();
        let (mut parts, ()) = request.into_parts();
        let ApiQuery(asked) = ApiQuery::from_request_parts(&mut parts, &()).await?;
        Ok(asked)
    }

    #[tokio::test]
    async fn parameters_of_a_query_are_read_as_their_types() {
        let call = "0190b6c4-7e1a-7000-8000-000000000001";
        let text =
            format!("kb=a+b%C3%A9&limit=7&offset=-8&dry_run=true&speed=1.5&call={call}&order=desc");
        let expected = Asked {
            kb: "a bé".to_owned(),
            limit: Some(7),
            offset: Some(-8),
            dry_run: true,
            speed: Some(1.5),
            call: call.parse().ok(),
            order: Some(Order::Desc),
        };
        assert_eq!(query(&text).await.unwrap(), expected);
    }

    #[tokio::test]
    async fn a_wrong_parameter_of_a_query_is_named_with_what_it_must_be() {
        for (text, name, message) in [
            (
                "kb=x&limit=seven",
                "limit",
                "must be an integer, not `seven`",
            ),
            ("kb=x&limit=", "limit", "must be an integer, not ``"),
            ("kb=x&limit=1.5", "limit", "must be an integer, not `1.5`"),
            (
                "kb=x&limit=-1",
                "limit",
                "must be an integer of 0 to 4294967295, not `-1`",
            ),
            (
                "kb=x&offset=128",
                "offset",
                "must be an integer of -128 to 127, not `128`",
            ),
            (
                "kb=x&dry_run=yes",
                "dry_run",
                "must be a boolean, not `yes`",
            ),
            ("kb=x&speed=fast", "speed", "must be a number, not `fast`"),
            ("kb=x&call=7", "call", "must be a UUID"),
            (
                "kb=x&order=up",
                "order",
                "must be `asc` or `desc`, not `up`",
            ),
            ("limit=1", "kb", "is required"),
            ("kb=x&limit=1&limit=2", "limit", "is given twice"),
        ] {
            let error = query(text).await.unwrap_err();
            assert_eq!(error.status, StatusCode::BAD_REQUEST, "{text}");
            assert_eq!(error.code, "invalid_parameters", "{text}");
            assert_eq!(error.field.as_deref(), Some(name), "{text}");
            assert_eq!(error.message, message, "{text}");
        }
        let unknown = query("kb=x&size=1").await.unwrap_err();
        assert_eq!(unknown.field.as_deref(), Some("size"));
        assert!(
            unknown
                .message
                .starts_with("is unknown: expected one of `kb`, ")
        );
        let long = query(&format!("kb=x&limit={}", "a".repeat(5_000))).await;
        assert!(long.unwrap_err().message.len() < 200);
    }

    async fn path<T>(route: &str, uri: &str) -> ApiError
    where
        T: DeserializeOwned + Send + 'static,
    {
        let routes =
            Router::<()>::new().route(route, get(|_: ApiPath<T>| async { StatusCode::OK }));
        let request = Request::get(uri).body(Body::empty()).unwrap();
        let mut response = routes.oneshot(request).await.unwrap();
        let error = response.extensions_mut().remove::<ApiError>();
        error.unwrap()
    }

    #[test]
    fn values_are_separated_by_commas() {
        #[derive(Debug, PartialEq)]
        struct Even(u8);
        impl TryFrom<String> for Even {
            type Error = ();
            fn try_from(text: String) -> Result<Self, ()> {
                let number = text.parse().ok().filter(|number| number % 2 == 0);
                number.map(Even).ok_or(())
            }
        }
        let read = |text| separated::<Even>("even", text, "even numbers");
        assert_eq!(read(None).unwrap(), []);
        assert_eq!(read(Some("4, 2,4")).unwrap(), [Even(4), Even(2)]);
        for wrong in ["", "2,", "3", "2;4"] {
            let error = read(Some(wrong)).unwrap_err();
            assert_eq!(error.field, "even", "{wrong}");
            assert_eq!(error.message, "must be even numbers, separated by commas");
        }
    }

    #[tokio::test]
    async fn a_wrong_parameter_of_a_path_is_named_with_what_it_must_be() {
        #[derive(Deserialize)]
        struct Named {
            #[expect(dead_code, reason = "only parsed")]
            number: u32,
        }
        let versions = "/{name}/versions/{version}";
        for (error, name, message) in [
            (
                path::<(String, i64)>(versions, "/a/versions/last").await,
                "version",
                "must be an integer, not `last`",
            ),
            (
                path::<(String, u8)>(versions, "/a/versions/256").await,
                "version",
                "must be an integer of 0 to 255, not `256`",
            ),
            (
                path::<(String, bool)>(versions, "/a/versions/1").await,
                "version",
                "must be a boolean, not `1`",
            ),
            (
                path::<(String, i64)>(versions, "/%FF/versions/1").await,
                "name",
                "must be UTF-8",
            ),
            (
                path::<u32>("/{number}", "/one").await,
                "number",
                "must be an integer, not `one`",
            ),
            (
                path::<Named>("/{number}", "/one").await,
                "number",
                "must be an integer, not `one`",
            ),
            (path::<Uuid>("/{id}", "/one").await, "id", "must be a UUID"),
        ] {
            assert_eq!(error.status, StatusCode::BAD_REQUEST, "{message}");
            assert_eq!(error.code, "invalid_parameters", "{message}");
            assert_eq!(error.field.as_deref(), Some(name), "{message}");
            assert_eq!(error.message, message);
        }
        let misrouted = path::<(String, String)>("/{number}", "/one").await;
        assert_eq!(misrouted.status, StatusCode::INTERNAL_SERVER_ERROR);
    }
}
