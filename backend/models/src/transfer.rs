//! Downloading a file, from where an earlier transfer stopped.

use std::{
    fs::{self, File, OpenOptions},
    io::Write as _,
    path::Path,
    sync::OnceLock,
    time::Duration,
};

use reqwest::{
    Client, Response, StatusCode,
    header::{CONTENT_RANGE, RANGE},
};
use tokio::task::spawn_blocking;
use url::Url;

use crate::{error::PullError, folder::hash, pull::Step};

/// How often a transfer that breaks off is taken up again in vain, before another source is asked.
pub(crate) const ATTEMPTS: u32 = 3;

/// How long servers are waited for.
#[derive(Debug, Clone)]
pub struct Patience {
    /// How long one may take to accept a connection.
    pub connect: Duration,
    /// How long it may send nothing.
    pub stall: Duration,
    /// The pause before a transfer is taken up again.
    pub pause: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            stall: Duration::from_secs(30),
            pause: Duration::from_secs(1),
        }
    }
}

/// What is downloaded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Transfer<'a> {
    pub(crate) name: &'a str,
    pub(crate) bytes: u64,
    pub(crate) sha256: &'static str,
    pub(crate) to: &'a Path,
    /// How often it is taken up again in vain.
    pub(crate) attempts: u32,
}

/// What a server was last asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Began {
    /// The whole file.
    Whole,
    /// What was left of it.
    Rest,
    /// The whole file, though a part was there.
    Again,
}

/// The connections to servers. A proxy of the environment is used.
pub(crate) struct Web {
    patience: Patience,
    /// Made when the first server is asked: whoever copies a folder needs no certificates.
    client: OnceLock<Client>,
}

impl Web {
    pub(crate) fn new(patience: Patience) -> Self {
        Self {
            patience,
            client: OnceLock::new(),
        }
    }

    pub(crate) fn client(&self) -> Result<&Client, PullError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        // Another part of the process may have chosen its cryptography already; either choice will do.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .connect_timeout(self.patience.connect)
            .read_timeout(self.patience.stall)
            .user_agent(concat!("colloquy/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(PullError::Network)?;
        Ok(self.client.get_or_init(|| client))
    }

    /// Waits before a server is asked again.
    pub(crate) async fn pause(&self) {
        tokio::time::sleep(self.patience.pause).await;
    }

    /// Downloads a file and compares it with its hash.
    pub(crate) async fn download(
        &self,
        url: &Url,
        transfer: &Transfer<'_>,
        report: &mut (dyn FnMut(Step<'_>) + Send),
    ) -> Result<(), PullError> {
        let Transfer {
            name,
            bytes,
            sha256,
            to,
            ..
        } = *transfer;
        report(Step::Begins {
            name,
            bytes,
            from: shown(url).as_str(),
        });
        let mut is_second = false;
        loop {
            let mut began = Began::Whole;
            let arrived = self.arrive(url, transfer, &mut began, report).await;
            let checked = match arrived {
                Ok(()) => check(to, bytes, sha256).await,
                Err(error) => Err(error),
            };
            match checked {
                // Its parts may be of two files: it is got once more, as a whole.
                Err(PullError::WrongHash | PullError::TooLong)
                    if began == Began::Rest && !is_second =>
                {
                    let _ = fs::remove_file(to);
                    is_second = true;
                }
                checked => return checked,
            }
        }
    }

    /// Takes a transfer up until all of it is there, and tells what came last.
    async fn arrive(
        &self,
        url: &Url,
        transfer: &Transfer<'_>,
        began: &mut Began,
        report: &mut (dyn FnMut(Step<'_>) + Send),
    ) -> Result<(), PullError> {
        let (mut attempts, mut restarts) = (0, 0);
        loop {
            let before = length(transfer.to);
            match self.go_on(url, transfer, began, report).await {
                Err(error) if error.may_pass() => {
                    // What brings it further is no attempt in vain, unless what was there is lost for it.
                    match *began {
                        Began::Again => (attempts, restarts) = (attempts + 1, restarts + 1),
                        Began::Whole | Began::Rest if length(transfer.to) > before => attempts = 0,
                        Began::Whole | Began::Rest => attempts += 1,
                    }
                    if attempts >= transfer.attempts || restarts >= ATTEMPTS {
                        return Err(error);
                    }
                    self.pause().await;
                }
                ended => return ended,
            }
        }
    }

    async fn go_on(
        &self,
        url: &Url,
        transfer: &Transfer<'_>,
        began: &mut Began,
        report: &mut (dyn FnMut(Step<'_>) + Send),
    ) -> Result<(), PullError> {
        let Transfer {
            bytes, sha256, to, ..
        } = *transfer;
        let wrote = |error| PullError::writing(to, error);
        *began = Began::Whole;
        let mut arrived = length(to);
        if arrived >= bytes {
            // What is there is whole, or not of this file.
            if is_whole(to, bytes, sha256).await {
                return Ok(());
            }
            arrived = 0;
        }
        let mut answer = self.ask(url, arrived).await?;
        if arrived > 0 && is_no_rest(&answer, arrived) {
            arrived = 0;
            *began = Began::Again;
            answer = self.ask(url, 0).await?;
        }
        match answer.status() {
            StatusCode::PARTIAL_CONTENT if arrived > 0 => *began = Began::Rest,
            StatusCode::OK => {
                // A server without ranges sends all of it again.
                if arrived > 0 {
                    *began = Began::Again;
                }
                arrived = 0;
                let found = answer.content_length().unwrap_or(bytes);
                if found != bytes {
                    return Err(PullError::WrongSize { bytes, found });
                }
            }
            status => return Err(PullError::Status(status)),
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(arrived == 0)
            .append(arrived > 0)
            .open(to)
            .map_err(wrote)?;
        while let Some(piece) = answer.chunk().await.map_err(PullError::Network)? {
            arrived += piece.len() as u64;
            if arrived > bytes {
                let _ = fs::remove_file(to);
                return Err(PullError::TooLong);
            }
            file.write_all(&piece).map_err(wrote)?;
            report(Step::Arrived { bytes, arrived });
        }
        match arrived == bytes {
            true => Ok(()),
            false => Err(PullError::BrokeOff),
        }
    }

    /// Asks for a file from this byte on.
    async fn ask(&self, url: &Url, from: u64) -> Result<Response, PullError> {
        let mut request = self.client()?.get(url.clone());
        if from > 0 {
            request = request.header(RANGE, format!("bytes={from}-"));
        }
        request.send().await.map_err(PullError::Network)
    }
}

/// An address without the password that it may have.
pub(crate) fn shown(url: &Url) -> Url {
    let mut url = url.clone();
    if url.password().is_some() {
        let _ = url.set_password(Some("***"));
    }
    url
}

/// Whether a server that was asked for the rest from this byte on has none, or sends another part.
fn is_no_rest(answer: &Response, from: u64) -> bool {
    match answer.status() {
        StatusCode::RANGE_NOT_SATISFIABLE => true,
        StatusCode::PARTIAL_CONTENT => {
            let range = answer.headers().get(CONTENT_RANGE);
            let range = range.and_then(|range| range.to_str().ok());
            !range.is_some_and(|range| range.starts_with(&format!("bytes {from}-")))
        }
        _ => false,
    }
}

/// How much of a file is there.
pub(crate) fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

/// Whether a file is there and has its hash.
pub(crate) async fn is_whole(path: &Path, bytes: u64, sha256: &'static str) -> bool {
    let path = path.to_owned();
    let hashed = spawn_blocking(move || hash(&path, bytes, &mut |_| ())).await;
    matches!(hashed, Ok(Ok(Some(found))) if found == sha256)
}

/// Compares what has arrived with its hash, and makes the disk keep it. What is wrong is taken away.
pub(crate) async fn check(path: &Path, bytes: u64, sha256: &'static str) -> Result<(), PullError> {
    if !is_whole(path, bytes, sha256).await {
        let _ = fs::remove_file(path);
        return Err(PullError::WrongHash);
    }
    let synced = File::open(path).and_then(|file| file.sync_all());
    synced.map_err(|error| PullError::writing(path, error))
}
