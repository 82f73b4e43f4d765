//! Documents that are addresses: what is there becomes their original.
//!
//! The address is a stranger's, so it goes through the guarded client: public hosts only, and bounds on time, size and redirects.

use std::{
    io::{Read as _, Seek as _},
    time::Duration,
};

use axum::http::{
    HeaderMap, Method,
    header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderValue},
};
use bytes::Bytes;
use colloquy_accounts::Tenant;
use colloquy_blobs::{NoRoom, ObjectError, WriteError, Written};
use colloquy_digitize::Format;
use colloquy_extract::detect::{PDF_WITHIN, has_pdf_mark};
use colloquy_fetch::{Bounds, CONNECT_ATTEMPTS, FetchError, Request};
use futures_util::Stream;
use tokio::task::spawn_blocking;
use url::Url;

use super::{
    Bases,
    content::{NewContent, Variant, charset},
    digitizing::ATTEMPTS,
    error::BaseError,
    names,
    upload::{Unclaimed, looked_at},
};

/// How long a page may take.
const TIME: Duration = Duration::from_secs(60);
/// How often it may point elsewhere.
const REDIRECTS: u32 = 8;
/// The longest name of a file that is made of an address, in characters.
const LONGEST: usize = 100;
/// The longest name of an encoding.
const LONGEST_CHARSET: usize = 40;
/// How much of what came is looked at when neither its type nor its address says what it is, in bytes.
const BEGINNING: u64 = PDF_WITHIN as u64;

/// Why there is no original.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchFailure {
    /// It will be the same another time.
    #[error("{0}")]
    Refused(String),
    /// It may be there another time.
    #[error("{0}")]
    Later(String),
    /// No connection can be made, which is tried a few times.
    #[error("{0}")]
    Unreachable(String),
    /// This server's own failure.
    #[error("storing it failed")]
    Own(#[source] anyhow::Error),
}

impl FetchFailure {
    /// Returns the most attempts at an address that fails like this.
    pub(crate) fn most_attempts(&self) -> u32 {
        match self {
            Self::Refused(_) => 1,
            Self::Unreachable(_) => CONNECT_ATTEMPTS,
            Self::Later(_) | Self::Own(_) => ATTEMPTS,
        }
    }
}

/// Fetches what is at an address, and stores it as it comes, as a file that belongs to no document yet.
pub(crate) async fn fetch(
    bases: &Bases,
    tenant: &Tenant,
    url: &str,
) -> Result<NewContent, FetchFailure> {
    let url =
        Url::parse(url).map_err(|_| FetchFailure::Refused("the address is none".to_owned()))?;
    let mut headers = HeaderMap::new();
    let accept = "text/html,application/xhtml+xml,application/pdf,text/*;q=0.9,*/*;q=0.5";
    headers.insert(ACCEPT, HeaderValue::from_static(accept));
    headers.insert(
        ACCEPT_LANGUAGE,
        HeaderValue::from_static("en;q=0.5,*;q=0.4"),
    );
    let request = Request {
        method: Method::GET,
        url,
        headers,
        body: Bytes::new(),
    };
    let settings = &bases.config.knowledge;
    let most = settings.max_page_bytes.min(settings.max_file_bytes);
    let bounds = Bounds {
        time: TIME,
        bytes: most,
        redirects: REDIRECTS,
        https_only: false,
    };
    let answer = bases.fetcher.open(request, bounds).await.map_err(refused)?;
    let status = answer.status;
    if !status.is_success() {
        let reason = format!("the address answers with status {}", status.as_u16());
        let is_passing = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
        return Err(match is_passing {
            true => FetchFailure::Later(reason),
            false => FetchFailure::Refused(reason),
        });
    }
    let (declared, charset) = media_type(&answer.headers);
    let written = write(bases, tenant, answer.pieces, most).await?;
    let file = Unclaimed::new(bases, written);
    let written = file.written();
    if written.bytes == 0 {
        return Err(FetchFailure::Refused(
            "the address answers with nothing".to_owned(),
        ));
    }
    let mut reader = bases.blobs.reader(&written.key, written.bytes);
    let address = answer.url;
    let looked = spawn_blocking(move || {
        let mut beginning = Vec::new();
        let read = reader.by_ref().take(BEGINNING).read_to_end(&mut beginning);
        let rewound = read.and_then(|_| reader.rewind());
        rewound
            .map_err(|error| FetchFailure::Own(ObjectError::Failed(error.to_string()).into()))?;
        let extension = extension(&address, &declared, &beginning).ok_or_else(|| {
            FetchFailure::Refused(format!(
                "what is at the address is not supported: {declared}"
            ))
        })?;
        let file_name = format!("{}.{extension}", stem(&address));
        match looked_at(&file_name, &mut reader) {
            Ok(format) => Ok((file_name, format)),
            Err(BaseError::Refused(refused)) => Err(FetchFailure::Refused(refused.to_string())),
            Err(error) => Err(FetchFailure::Own(error.into())),
        }
    });
    let looked = looked.await;
    let (file_name, format) = looked.map_err(|error| FetchFailure::Own(error.into()))??;
    let media_type = format.media_type();
    Ok(NewContent {
        variant: Variant::Original,
        written: file.claim(),
        file_name,
        media_type: match charset {
            Some(charset) => format!("{media_type}; charset={charset}"),
            None => media_type.to_owned(),
        },
        characters: None,
        made_of: None,
    })
}

/// Stores what comes from an address as a file that belongs to no document yet.
pub(crate) async fn write(
    bases: &Bases,
    tenant: &Tenant,
    pieces: impl Stream<Item = Result<Bytes, FetchError>> + Send,
    most: u64,
) -> Result<Written, FetchFailure> {
    let written = bases.blobs.write(tenant.partner(), pieces, most).await;
    written.map_err(|error| match error {
        WriteError::Source(error) => refused(error),
        WriteError::TooLarge(_) => refused(FetchError::TooLarge),
        WriteError::NoRoom(why @ NoRoom::Partner { .. }) => FetchFailure::Refused(why.to_string()),
        WriteError::NoRoom(why) => FetchFailure::Own(why.into()),
        WriteError::Object(error) => FetchFailure::Own(error.into()),
        WriteError::Database(error) => FetchFailure::Own(error.into()),
    })
}

pub(crate) fn refused(error: FetchError) -> FetchFailure {
    match error {
        FetchError::Connect(_) => FetchFailure::Unreachable(error.to_string()),
        FetchError::Timeout | FetchError::Broken(_) => FetchFailure::Later(error.to_string()),
        FetchError::Url(_)
        | FetchError::NotPublic
        | FetchError::TooLarge
        | FetchError::Redirect => FetchFailure::Refused(error.to_string()),
    }
}

/// The media type of an answer, and the encoding of its text.
fn media_type(headers: &HeaderMap) -> (String, Option<String>) {
    let header = headers.get(CONTENT_TYPE);
    let header = header.and_then(|value| value.to_str().ok());
    let header = header.unwrap_or_default();
    let essence = header.split(';').next().unwrap_or_default().trim();
    // It is stored, and said again in a header.
    let is_name = |name: &&str| {
        let mut characters = name.bytes();
        name.len() <= LONGEST_CHARSET
            && characters.all(|c| c.is_ascii_alphanumeric() || b"-_.:+".contains(&c))
    };
    let charset = charset(header).filter(is_name).map(str::to_owned);
    // An error says it, too.
    let essence = essence.chars().take(LONGEST).collect::<String>();
    (essence.to_ascii_lowercase(), charset)
}

/// The extension of what came: by its type or by the address, whichever knows more, else by how it begins.
fn extension(url: &Url, media_type: &str, beginning: &[u8]) -> Option<String> {
    let of_path = || {
        let (_, extension) = url.path().rsplit('/').next()?.rsplit_once('.')?;
        let extension = extension.to_ascii_lowercase();
        Format::of_extension(&extension).map(|_| extension)
    };
    let of_beginning = || match beginning {
        [b'%', b'P', b'D', b'F', ..] => Some("pdf".to_owned()),
        beginning if beginning.trim_ascii_start().starts_with(b"<") => Some("html".to_owned()),
        // Behind a byte order mark, blank lines, or the header of an answer.
        beginning if has_pdf_mark(beginning) => Some("pdf".to_owned()),
        _ => None,
    };
    let told = Format::of_media_type(media_type);
    let name = told.map(|format| format.name().to_owned());
    match told {
        // What servers make, they know.
        Some(
            Format::Html
            | Format::Pdf
            | Format::Markdown
            | Format::Csv
            | Format::Json
            | Format::Xml,
        ) => name,
        // Of a file that they keep its name knows more: many say `text/plain` of everything, or `application/msword` of all that Word writes.
        _ => of_path().or(name).or_else(of_beginning),
    }
}

/// What a file is called that came from an address.
fn stem(url: &Url) -> String {
    let last = url
        .path_segments()
        .and_then(|mut segments| segments.rfind(|segment| !segment.is_empty()));
    let last = last.map(|last| last.rsplit_once('.').map_or(last, |(stem, _)| stem));
    let host = url.host_str().unwrap_or("page");
    let stem: String = last.unwrap_or(host).chars().take(LONGEST).collect();
    names::derived(&stem)
}

#[cfg(test)]
mod tests {
    use colloquy_fetch::CONNECT_TIME;
    use colloquy_kernel::jobs::Job as _;

    use super::*;
    use crate::digitizing::Digitize;

    #[test]
    fn a_pdf_without_a_type_and_a_name_is_told_wherever_its_mark_may_be() {
        let url = Url::parse("https://example.org/paper").unwrap();
        let told = |before: &[u8]| {
            let file = [before, b"%PDF-1.7\n"].concat();
            extension(&url, "application/octet-stream", &file)
        };
        for before in [
            &b""[..],
            b"\r\n\r\n",
            b"\xEF\xBB\xBF",
            b"HTTP/1.1 200 OK\r\n\r\n",
            &[b'\n'; PDF_WITHIN - 5],
        ] {
            assert_eq!(told(before).as_deref(), Some("pdf"), "{before:?}");
        }
        assert_eq!(told(&[b'\n'; PDF_WITHIN - 4]), None);
        // A page may speak of it.
        assert_eq!(told(b" <p>").as_deref(), Some("html"));
    }

    #[test]
    fn an_address_whose_host_is_not_there_fails_within_a_minute() {
        let failure = refused(FetchError::Connect("connection refused".to_owned()));
        assert!(matches!(failure, FetchFailure::Unreachable(_)));
        let attempts = failure.most_attempts();
        assert_eq!(attempts, 3);
        // Waits have jitter.
        for _ in 0..100 {
            let waits: Duration = (1..attempts).map(|past| Digitize::RETRY.wait(past)).sum();
            let longest = CONNECT_TIME * attempts + waits;
            assert!(longest < Duration::from_secs(60), "{longest:?}");
        }
        assert_eq!(refused(FetchError::Timeout).most_attempts(), ATTEMPTS);
        assert_eq!(refused(FetchError::NotPublic).most_attempts(), 1);
    }
}
