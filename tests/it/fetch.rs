//! The guarded client against a real TLS server: redirects, sizes, times, certificates. Which addresses are public is
//! tested beside the code.

use std::time::Duration;

use bytes::Bytes;
use colloquy::{
    config::FetchConfig,
    fetch::{Answer, Bounds, FetchError, Fetcher, Request},
};
use harness::receiver::{Receiver, Reply};
use reqwest::{
    Method,
    header::{AUTHORIZATION, HeaderMap, HeaderValue},
};

fn fetcher(receiver: &Receiver) -> Fetcher {
    let config = FetchConfig {
        allow_private: true,
        ca_file: Some(receiver.ca_file.clone()),
    };
    Fetcher::new(&config).unwrap()
}

const BOUNDS: Bounds = Bounds {
    time: Duration::from_secs(60),
    bytes: 100_000,
    redirects: 3,
    https_only: true,
};

async fn fetch(receiver: &Receiver, method: Method, bounds: Bounds) -> Result<Answer, FetchError> {
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer x"));
    let request = Request {
        method,
        url: format!("{}/start", receiver.base).parse().unwrap(),
        headers,
        body: Bytes::new(),
    };
    fetcher(receiver).send(request, bounds).await
}

#[tokio::test]
async fn redirects_are_followed_as_far_as_allowed() {
    let receiver = Receiver::start().await;
    let to = |path: &str| Reply::Redirect(path.to_owned());
    receiver.script([to("/a"), to("b"), to("/c")]);
    let answer = fetch(&receiver, Method::GET, BOUNDS).await.unwrap();
    assert_eq!((answer.status.as_u16(), answer.url.path()), (200, "/c"));
    let paths: Vec<_> = receiver
        .received()
        .into_iter()
        .map(|request| request.path)
        .collect();
    assert_eq!(paths, ["/start", "/a", "/b", "/c"]);

    receiver.script([to("/1"), to("/2"), to("/3"), to("/4")]);
    let error = fetch(&receiver, Method::GET, BOUNDS).await.unwrap_err();
    assert!(matches!(error, FetchError::Redirect), "{error:?}");

    // A POST is never sent a second time.
    receiver.script([to("/a")]);
    let answer = fetch(&receiver, Method::POST, BOUNDS).await.unwrap();
    assert_eq!(answer.status, 302);
    assert_eq!(receiver.received().len(), 4 + 4 + 1);
}

#[tokio::test]
async fn every_redirect_is_checked_and_credentials_stay_at_home() {
    let receiver = Receiver::start().await;
    receiver.script([Reply::Redirect("http://localhost:1/".to_owned())]);
    let error = fetch(&receiver, Method::GET, BOUNDS).await.unwrap_err();
    assert!(matches!(error, FetchError::Url(_)), "{error:?}");
    receiver.script([Reply::Redirect("file:///etc/passwd".to_owned())]);
    let error = fetch(&receiver, Method::GET, BOUNDS).await.unwrap_err();
    assert!(matches!(error, FetchError::Url(_)), "{error:?}");

    let other_origin = receiver.base.replace("localhost", "127.0.0.1");
    receiver.script([
        Reply::Redirect("/same".to_owned()),
        Reply::Redirect(format!("{other_origin}/other")),
    ]);
    fetch(&receiver, Method::GET, BOUNDS).await.unwrap();
    let with_key: Vec<_> = receiver
        .received()
        .into_iter()
        .skip(2)
        .map(|request| (request.path, request.headers.contains_key(AUTHORIZATION)))
        .collect();
    let expected = [("/start", true), ("/same", true), ("/other", false)];
    assert_eq!(with_key, expected.map(|(path, key)| (path.to_owned(), key)));
}

#[tokio::test]
async fn size_and_time_are_bounded() {
    let receiver = Receiver::start().await;
    receiver.script([Reply::Endless]);
    let error = fetch(&receiver, Method::GET, BOUNDS).await.unwrap_err();
    assert!(matches!(error, FetchError::TooLarge), "{error:?}");

    let quick = Bounds {
        time: Duration::from_millis(300),
        ..BOUNDS
    };
    receiver.script([Reply::Stall]);
    let error = fetch(&receiver, Method::GET, quick).await.unwrap_err();
    assert!(matches!(error, FetchError::Timeout), "{error:?}");
    // The time counts over all redirects and the whole body, not for each read.
    receiver.script([Reply::Redirect("/slow".to_owned()), Reply::Stall]);
    let error = fetch(&receiver, Method::GET, quick).await.unwrap_err();
    assert!(matches!(error, FetchError::Timeout), "{error:?}");
    let endless = Bounds {
        bytes: u64::MAX,
        ..quick
    };
    receiver.script([Reply::Drip]);
    let error = fetch(&receiver, Method::GET, endless).await.unwrap_err();
    assert!(matches!(error, FetchError::Timeout), "{error:?}");
}

#[tokio::test]
async fn a_certificate_must_be_of_a_known_authority() {
    let (known, unknown) = (Receiver::start().await, Receiver::start().await);
    let request = Request {
        method: Method::GET,
        url: unknown.base.parse().unwrap(),
        headers: HeaderMap::new(),
        body: Bytes::new(),
    };
    let error = fetcher(&known).send(request, BOUNDS).await.unwrap_err();
    assert!(matches!(error, FetchError::Connect(_)), "{error:?}");
    assert!(unknown.received().is_empty());
}
