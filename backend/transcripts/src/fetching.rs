//! Getting a recording from an address. The address is a stranger's, so it goes through the guarded client.

use std::time::Duration;

use axum::http::{
    HeaderMap, Method,
    header::{ACCEPT, HeaderValue},
};
use bytes::Bytes;
use colloquy_accounts::Tenant;
use colloquy_blobs::{NoRoom, WriteError, Written};
use colloquy_fetch::{Bounds, FetchError, Request};
use url::Url;

use super::failure::Failure;
use crate::Transcripts;

/// How often an address may point elsewhere.
const REDIRECTS: u32 = 8;

/// Stores what is at an address as it comes, as a file that belongs to no transcript yet.
pub(super) async fn fetch(
    transcripts: &Transcripts,
    tenant: &Tenant,
    url: &str,
) -> anyhow::Result<Result<Written, Failure>> {
    let settings = &transcripts.config.transcripts;
    let url = Url::parse(url)?;
    let mut headers = HeaderMap::new();
    headers.insert(
        ACCEPT,
        HeaderValue::from_static("audio/*,video/*;q=0.9,*/*;q=0.5"),
    );
    let request = Request {
        method: Method::GET,
        url,
        headers,
        body: Bytes::new(),
    };
    let bounds = Bounds {
        time: Duration::from_secs(settings.fetch_seconds.into()),
        bytes: settings.max_file_bytes,
        redirects: REDIRECTS,
        https_only: false,
    };
    let answer = match transcripts.fetcher.open(request, bounds).await {
        Ok(answer) => answer,
        Err(error) => return Ok(Err(not_fetched(&error))),
    };
    let status = answer.status;
    if !status.is_success() {
        let reason = format!("audio_url answers with status {}", status.as_u16());
        let is_passing = status.is_server_error() || matches!(status.as_u16(), 408 | 425 | 429);
        return Ok(Err(match is_passing {
            true => Failure::NotFetched {
                reason,
                most: u32::MAX,
            },
            false => Failure::Refused(reason),
        }));
    }
    let most = settings.max_file_bytes;
    let written = transcripts
        .blobs
        .write(tenant.partner(), answer.pieces, most);
    match written.await {
        Ok(written) => Ok(Ok(written)),
        Err(WriteError::Source(error)) => Ok(Err(not_fetched(&error))),
        Err(WriteError::TooLarge(_)) => Ok(Err(not_fetched(&FetchError::TooLarge))),
        Err(WriteError::NoRoom(why @ NoRoom::Partner { .. })) => {
            Ok(Err(Failure::Refused(why.to_string())))
        }
        Err(WriteError::NoRoom(why)) => Err(why.into()),
        Err(WriteError::Object(error)) => Err(error.into()),
        Err(WriteError::Database(error)) => Err(error.into()),
    }
}

fn not_fetched(error: &FetchError) -> Failure {
    let reason = format!("audio_url: {error}");
    match error {
        FetchError::Timeout | FetchError::Connect(_) | FetchError::Broken(_) => {
            let most = error.most_attempts();
            Failure::NotFetched { reason, most }
        }
        FetchError::Url(_)
        | FetchError::NotPublic
        | FetchError::TooLarge
        | FetchError::Redirect => Failure::Refused(reason),
    }
}

#[cfg(test)]
mod tests {
    use colloquy_kernel::jobs::Failure as _;

    use super::*;

    #[test]
    fn an_address_that_nobody_answers_at_is_tried_three_times() {
        let most = |error: FetchError| not_fetched(&error).most_attempts();
        assert_eq!(most(FetchError::Connect("refused".to_owned())), 3);
        assert_eq!(most(FetchError::Timeout), u32::MAX);
    }
}
