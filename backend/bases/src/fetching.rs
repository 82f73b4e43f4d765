//! Documents that are addresses: what is there becomes their original.
//!
//! The address is a stranger's, so it goes through the guarded client: public hosts only, and bounds on time, size and redirects.

use std::{io::Cursor, time::Duration};

use axum::http::{
    HeaderMap, Method,
    header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, HeaderValue},
};
use bytes::Bytes;
use colloquy_accounts::Tenant;
use colloquy_digitize::{DetectError, Format, detect};
use colloquy_fetch::{Answer, Bounds, FetchError, Request};
use url::Url;

use super::{
    Bases,
    content::{NewContent, Variant},
    names,
};

/// How long a page may take.
const TIME: Duration = Duration::from_secs(60);
/// How often it may point elsewhere.
const REDIRECTS: u32 = 8;
/// The longest name of a file that is made of an address, in characters.
const LONGEST: usize = 100;

/// Why there is no original.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FetchFailure {
    /// It will be the same another time.
    #[error("{0}")]
    Refused(String),
    /// It may be there another time.
    #[error("{0}")]
    Later(String),
    /// This server's own failure.
    #[error("storing it failed")]
    Own(#[source] anyhow::Error),
}

/// What an address gave.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) content: NewContent,
    /// The encoding that came with it.
    pub(crate) charset: Option<String>,
}

/// Fetches what is at an address, and stores it as a file that belongs to no document yet.
pub(crate) async fn fetch(
    bases: &Bases,
    tenant: &Tenant,
    url: &str,
) -> Result<Fetched, FetchFailure> {
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
    let bounds = Bounds {
        time: TIME,
        bytes: bases.config.knowledge.max_page_bytes,
        redirects: REDIRECTS,
        https_only: false,
    };
    let answer = bases.fetcher.send(request, bounds).await.map_err(refused)?;
    let status = answer.status;
    if !status.is_success() {
        let reason = format!("the address answers with status {}", status.as_u16());
        let is_passing = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
        return Err(match is_passing {
            true => FetchFailure::Later(reason),
            false => FetchFailure::Refused(reason),
        });
    }
    if answer.body.is_empty() {
        return Err(FetchFailure::Refused(
            "the address answers with nothing".to_owned(),
        ));
    }
    let (media_type, charset) = media_type(&answer);
    let extension = extension(&answer, &media_type).ok_or_else(|| {
        FetchFailure::Refused(format!(
            "what is at the address is not supported: {media_type}"
        ))
    })?;
    let file_name = format!("{}.{extension}", stem(&answer.url));
    let format = format(&file_name, &answer.body)?;
    let written = bases
        .blobs
        .write_bytes(tenant.partner(), answer.body)
        .await
        .map_err(|error| FetchFailure::Own(error.into()))?;
    Ok(Fetched {
        content: NewContent {
            variant: Variant::Original,
            written,
            file_name,
            media_type: format.media_type(),
            characters: None,
        },
        charset,
    })
}

fn refused(error: FetchError) -> FetchFailure {
    match error {
        FetchError::Timeout | FetchError::Connect(_) | FetchError::Broken(_) => {
            FetchFailure::Later(error.to_string())
        }
        FetchError::Url(_)
        | FetchError::NotPublic
        | FetchError::TooLarge
        | FetchError::Redirect => FetchFailure::Refused(error.to_string()),
    }
}

/// The media type of an answer, and the encoding of its text.
fn media_type(answer: &Answer) -> (String, Option<String>) {
    let header = answer.headers.get(CONTENT_TYPE);
    let header = header.and_then(|value| value.to_str().ok());
    let mut parts = header.unwrap_or_default().split(';').map(str::trim);
    let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
    let charset = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        let value = value.trim_matches('"').to_owned();
        name.eq_ignore_ascii_case("charset").then_some(value)
    });
    (media_type, charset)
}

/// The extension of what came: by its type, else by the address, else by how it begins.
fn extension(answer: &Answer, media_type: &str) -> Option<String> {
    let of_path = || {
        let path = answer.url.path();
        let (_, extension) = path.rsplit('/').next()?.rsplit_once('.')?;
        let extension = extension.to_ascii_lowercase();
        Format::of_extension(&extension).map(|_| extension)
    };
    let of_beginning = || match answer.body.get(..512).unwrap_or(&answer.body) {
        [b'%', b'P', b'D', b'F', ..] => Some("pdf".to_owned()),
        beginning if beginning.trim_ascii_start().starts_with(b"<") => Some("html".to_owned()),
        _ => None,
    };
    let told = match media_type {
        "text/html" | "application/xhtml+xml" => "html",
        "application/pdf" => "pdf",
        "text/plain" => return of_path().or(Some("txt".to_owned())),
        "text/markdown" => "md",
        "text/csv" => "csv",
        "application/json" => "json",
        "application/xml" | "text/xml" => "xml",
        _ => return of_path().or_else(of_beginning),
    };
    Some(told.to_owned())
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

fn format(name: &str, body: &Bytes) -> Result<Format, FetchFailure> {
    detect(name, &mut Cursor::new(body)).map_err(|error| {
        FetchFailure::Refused(match error {
            DetectError::Refused(refused) => refused.to_string(),
            DetectError::Read(error) => error.to_string(),
        })
    })
}
