//! Forms: `multipart/form-data`, whose files are read as they come, and `application/x-www-form-urlencoded`.
//!
//! Nothing of a form is in memory but the piece that is read at the moment and the text of its fields, which counts as the
//! body of the request does ([`memory`](super::memory)). The head of a part has [`MOST_HEAD`] bytes: the parser would keep all
//! of a head that does not end.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
};

use axum::{
    body::BodyDataStream,
    extract::{FromRequest, Request},
    http::{StatusCode, header::CONTENT_TYPE},
};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};

use super::{
    ApiError,
    extract::{body_up_to, cut_off, too_large},
    memory::Share,
};

/// What comes in front of the content of a part, and between parts.
const MOST_HEAD: usize = 64 * 1024;
/// The parts of a form.
const MOST_PARTS: usize = 2_100;
/// The name of a field, and of a file.
const MOST_NAME: usize = 1_024;

/// A form whose parts are read one after the other.
#[derive(Debug)]
pub struct Form {
    parts: multer::Multipart<'static>,
    /// What came since the parser last gave something.
    unused: Arc<AtomicUsize>,
    share: Option<Share>,
    count: usize,
}

/// A part of a form: a field or a file.
#[derive(Debug)]
pub struct Part<'a> {
    /// The name of the field.
    pub name: String,
    /// The name of the file, which makes it one.
    pub file_name: Option<String>,
    field: multer::Field<'static>,
    form: &'a Form,
}

impl<S: Send + Sync> FromRequest<S> for Form {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        Self::of(request)
    }
}

impl Form {
    /// The form in a body.
    ///
    /// # Errors
    /// 415 when it is none.
    pub fn of(request: Request) -> Result<Self, ApiError> {
        let content_type = request.headers().get(CONTENT_TYPE);
        let content_type = content_type.and_then(|value| value.to_str().ok());
        let boundary = content_type.and_then(|value| multer::parse_boundary(value).ok());
        let boundary = boundary.ok_or_else(not_a_form)?;
        let share = request.extensions().get::<Share>().cloned();
        let unused = Arc::new(AtomicUsize::new(0));
        let body = Watched {
            body: request.into_body().into_data_stream(),
            unused: Arc::clone(&unused),
            has_piece: false,
        };
        Ok(Self {
            parts: multer::Multipart::new(body, boundary),
            unused,
            share,
            count: 0,
        })
    }

    /// The next part, after the one before was read to its end.
    ///
    /// # Errors
    /// 400 when the form is malformed or does not arrive.
    pub async fn next(&mut self) -> Result<Option<Part<'_>>, ApiError> {
        self.used();
        let field = self.parts.next_field().await.map_err(refused)?;
        self.used();
        let Some(field) = field else { return Ok(None) };
        self.count += 1;
        if self.count > MOST_PARTS {
            return Err(malformed(format!("A form has {MOST_PARTS} parts at most")));
        }
        let name = field.name().unwrap_or_default().to_owned();
        let file_name = field.file_name().map(str::to_owned);
        let longest = name.len().max(file_name.as_ref().map_or(0, String::len));
        if longest > MOST_NAME {
            return Err(malformed(format!(
                "The name of a field or of a file has {MOST_NAME} bytes at most"
            )));
        }
        Ok(Some(Part {
            name,
            file_name,
            field,
            form: self,
        }))
    }

    fn used(&self) {
        self.unused.store(0, Ordering::Relaxed);
    }
}

impl Part<'_> {
    /// The text of a field, `most` bytes of it.
    ///
    /// # Errors
    /// 400 when it is longer or no UTF-8, or the form does not arrive; 503 when there is no room for it.
    pub async fn text(mut self, most: usize) -> Result<String, ApiError> {
        let mut text = Vec::new();
        while let Some(piece) = self.next_piece().await? {
            if text.len() + piece.len() > most {
                let message = format!("has more than {most} bytes");
                return Err(ApiError::invalid(&self.name, message));
            }
            if let Some(share) = &self.form.share {
                share.grow(piece.len())?;
            }
            text.extend_from_slice(&piece);
        }
        String::from_utf8(text).map_err(|_| ApiError::invalid(&self.name, "is not UTF-8"))
    }

    /// The content of a file, as it comes.
    pub fn pieces(&mut self) -> impl Stream<Item = Result<Bytes, ApiError>> {
        futures_util::stream::try_unfold(self, |part| async move {
            Ok(part.next_piece().await?.map(|piece| (piece, part)))
        })
    }

    /// Reads what is left of a file that nobody wants, so that the next part can be read.
    ///
    /// # Errors
    /// 400 when the form does not arrive.
    pub async fn pass_over(mut self) -> Result<(), ApiError> {
        while self.next_piece().await?.is_some() {}
        Ok(())
    }

    async fn next_piece(&mut self) -> Result<Option<Bytes>, ApiError> {
        let piece = self.field.chunk().await.map_err(refused)?;
        self.form.used();
        Ok(piece)
    }
}

/// The fields of a form without files, of either kind.
#[derive(Debug, Default)]
pub struct Fields(BTreeMap<String, String>);

impl Fields {
    /// Reads a form of `most` bytes of text in all.
    ///
    /// # Errors
    /// 400 when it is malformed, has a file or a field twice, 413 when it is larger, 415 when it is no form, 503 when there is no
    /// room for it.
    pub async fn read(request: Request, most: usize) -> Result<Self, ApiError> {
        let mut fields = Self::default();
        if is_url_encoded(&request) {
            let body = body_up_to(request, most).await?;
            for (name, value) in url::form_urlencoded::parse(&body) {
                fields.add(name.into_owned(), value.into_owned())?;
            }
            return Ok(fields);
        }
        let mut form = Form::of(request)?;
        let mut left = most;
        while let Some(part) = form.next().await? {
            if part.file_name.is_some() {
                let message = "is a file; this form takes text";
                return Err(ApiError::invalid(&part.name, message));
            }
            let name = part.name.clone();
            let text = part.text(left).await?;
            left -= text.len();
            fields.add(name, text)?;
        }
        Ok(fields)
    }

    /// Adds a field.
    ///
    /// # Errors
    /// 400 when it is there already.
    pub fn add(&mut self, name: String, text: String) -> Result<(), ApiError> {
        if self.0.contains_key(&name) {
            return Err(ApiError::invalid(&name, "is given twice"));
        }
        self.0.insert(name, text);
        Ok(())
    }

    /// Takes a field out; one that is empty is none.
    pub fn take(&mut self, name: &str) -> Option<String> {
        self.0.remove(name).filter(|text| !text.is_empty())
    }

    /// Takes a field out also when it is empty.
    pub fn take_text(&mut self, name: &str) -> Option<String> {
        self.0.remove(name)
    }

    /// Takes a field out that has to be there.
    ///
    /// # Errors
    /// 400 when it is missing or empty.
    pub fn require(&mut self, name: &str) -> Result<String, ApiError> {
        self.take(name)
            .ok_or_else(|| ApiError::invalid(name, "is required"))
    }

    /// Takes out `true` or `false`.
    ///
    /// # Errors
    /// 400 for anything else.
    pub fn take_bool(&mut self, name: &str) -> Result<Option<bool>, ApiError> {
        match self.take(name).as_deref() {
            None => Ok(None),
            Some("true" | "True" | "1") => Ok(Some(true)),
            Some("false" | "False" | "0") => Ok(Some(false)),
            Some(_) => Err(ApiError::invalid(name, "must be true or false")),
        }
    }

    /// Refuses what nobody took out.
    ///
    /// # Errors
    /// 400 that names a field.
    pub fn finish(self) -> Result<(), ApiError> {
        match self.0.into_keys().next() {
            Some(name) => Err(ApiError::invalid(&name, "is not a field of this form")),
            None => Ok(()),
        }
    }
}

fn is_url_encoded(request: &Request) -> bool {
    let value = request.headers().get(CONTENT_TYPE);
    let value = value.and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next());
    essence.is_some_and(|essence| {
        essence
            .trim()
            .eq_ignore_ascii_case("application/x-www-form-urlencoded")
    })
}

/// The body of a form, a piece at a time: the parser takes whatever is ready before it looks at it, which of a fast client is
/// everything. And it may not put off for ever to give something.
struct Watched {
    body: BodyDataStream,
    unused: Arc<AtomicUsize>,
    /// Whether the parser has something that it did not look at.
    has_piece: bool,
}

/// Why a body is not read on.
#[derive(Debug, thiserror::Error)]
enum FormError {
    #[error("the body broke off")]
    CutOff,
    #[error("the head of a part is too long")]
    LongHead,
}

impl Stream for Watched {
    type Item = Result<Bytes, FormError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_piece {
            self.has_piece = false;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.unused.load(Ordering::Relaxed) > MOST_HEAD {
            return Poll::Ready(Some(Err(FormError::LongHead)));
        }
        let piece = ready!(self.body.poll_next_unpin(context));
        self.has_piece = true;
        Poll::Ready(piece.map(|piece| {
            let piece = piece.map_err(|_| FormError::CutOff)?;
            self.unused.fetch_add(piece.len(), Ordering::Relaxed);
            Ok(piece)
        }))
    }
}

fn malformed(message: impl Into<String>) -> ApiError {
    ApiError::new(StatusCode::BAD_REQUEST, "invalid_body", message)
}

/// 415.
fn not_a_form() -> ApiError {
    ApiError::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported_media_type",
        "Send a form with Content-Type: multipart/form-data and its boundary",
    )
}

/// What the parser says. Its own words may hold a piece of the body.
fn refused(error: multer::Error) -> ApiError {
    match error {
        multer::Error::StreamReadFailed(reason) => match reason.downcast_ref::<FormError>() {
            Some(FormError::LongHead) => {
                malformed(format!("The head of a part has {MOST_HEAD} bytes at most"))
            }
            _ => cut_off(),
        },
        multer::Error::FieldSizeExceeded { .. } | multer::Error::StreamSizeExceeded { .. } => {
            too_large()
        }
        multer::Error::IncompleteFieldData { .. } | multer::Error::IncompleteStream => cut_off(),
        _ => malformed("The form is malformed"),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::body::Body;

    use super::*;

    fn request(content_type: &str, body: impl Into<Body>) -> Request {
        Request::builder()
            .header(CONTENT_TYPE, content_type)
            .body(body.into())
            .unwrap()
    }

    fn multipart(body: impl Into<Body>) -> Request {
        request("multipart/form-data; boundary=x", body)
    }

    fn endless(piece: &'static str, taken: Arc<AtomicUsize>) -> Body {
        let pieces = futures_util::stream::repeat_with(move || {
            taken.fetch_add(piece.len(), Ordering::Relaxed);
            Ok::<_, Infallible>(Bytes::from_static(piece.as_bytes()))
        });
        Body::from_stream(pieces)
    }

    #[tokio::test]
    async fn both_kinds_of_forms_have_fields() {
        let body = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1 2\r\n\
                    --x\r\nContent-Disposition: form-data; name=\"b\"\r\n\r\n\r\n--x--\r\n";
        let encoded = request(
            "application/x-www-form-urlencoded; charset=utf-8",
            "a=1+2&b=",
        );
        for request in [multipart(body), encoded] {
            let mut fields = Fields::read(request, 100).await.unwrap();
            assert_eq!(fields.require("a").unwrap(), "1 2");
            let missing = fields.require("b").unwrap_err();
            assert_eq!(missing.field.as_deref(), Some("b"));
            fields.finish().unwrap();
        }
    }

    #[tokio::test]
    async fn a_field_is_given_once_and_known() {
        let encoded = |body| request("application/x-www-form-urlencoded", body);
        let twice = Fields::read(encoded("a=1&a=2"), 100).await.unwrap_err();
        assert_eq!(twice.field.as_deref(), Some("a"));
        let fields = Fields::read(encoded("naem=1"), 100).await.unwrap();
        assert_eq!(fields.finish().unwrap_err().field.as_deref(), Some("naem"));
        let other = Fields::read(request("application/json", "{}"), 100).await;
        assert_eq!(
            other.unwrap_err().status,
            StatusCode::UNSUPPORTED_MEDIA_TYPE
        );
    }

    #[tokio::test]
    async fn a_head_that_does_not_end_is_refused_early() {
        for start in [
            "--x\r\nContent-Disposition: form-data; name=\"a",
            "",
            "--x\r\nA: ",
        ] {
            let taken = Arc::new(AtomicUsize::new(0));
            let first = futures_util::stream::iter([Ok::<_, axum::Error>(Bytes::from(start))]);
            let rest = endless("aaaaaaaaaaaaaaaa", Arc::clone(&taken)).into_data_stream();
            let body = Body::from_stream(first.chain(rest));
            let error = Fields::read(multipart(body), usize::MAX).await.unwrap_err();
            assert_eq!(error.status, StatusCode::BAD_REQUEST, "{start:?}");
            assert!(taken.load(Ordering::Relaxed) < 2 * MOST_HEAD, "{start:?}");
        }
    }

    #[tokio::test]
    async fn text_ends_at_its_bound() {
        let taken = Arc::new(AtomicUsize::new(0));
        let start = "--x\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n";
        let first = futures_util::stream::iter([Ok::<_, axum::Error>(Bytes::from(start))]);
        let rest = endless("aaaaaaaaaaaaaaaa", Arc::clone(&taken)).into_data_stream();
        let body = Body::from_stream(first.chain(rest));
        let error = Fields::read(multipart(body), 1_000).await.unwrap_err();
        assert_eq!(error.field.as_deref(), Some("a"));
        assert!(taken.load(Ordering::Relaxed) < 100_000);
    }

    #[tokio::test]
    async fn many_parts_are_refused() {
        let part = "--x\r\nContent-Disposition: form-data; name=\"\"; filename=\"\"\r\n\r\n\r\n";
        let body = part.repeat(MOST_PARTS + 1) + "--x--\r\n";
        let mut form = Form::of(multipart(body)).unwrap();
        let mut count = 0;
        let error = loop {
            match form.next().await {
                Ok(Some(_)) => count += 1,
                Ok(None) => panic!("all {count} parts were taken"),
                Err(error) => break error,
            }
        };
        assert_eq!((count, error.status), (MOST_PARTS, StatusCode::BAD_REQUEST));
    }
}
