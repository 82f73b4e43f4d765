//! Outages: the database is away, files cannot be stored or read, the disk is nearly full, no text can be recognized, or there is no room in the sandbox or the
//! embedder now.
//!
//! They say nothing about a document. Work that meets one waits for its end and loses none of its attempts, and what was done, and
//! perhaps paid for, is held until it is stored. What is wrong with a document itself, or with a service elsewhere, is no outage.

use std::{future::Future, time::Duration};

use colloquy_blobs::{NoRoom, ObjectError};
use colloquy_digitize::DigitizeError;
use colloquy_kernel::jobs::{RunResult, is_database_away};
use colloquy_providers::{ProviderError, ProviderErrorKind};
use colloquy_store::StoreError;
use tokio::time::sleep;

use super::{Bases, error::BaseError};

/// What a document that waits says of it.
pub(crate) const REASON: &str = "it waits, since files, the database or what reads documents cannot be used now; it goes on by itself";
/// What the log says is failing meanwhile.
const WAITING: &str = "working on documents, which wait for the end of an outage";
/// When it is tried again to store what was done.
const INSIST_AFTER: Duration = Duration::from_millis(500);

/// Whether a failure is that of an outage.
pub(crate) fn is_outage(error: &anyhow::Error) -> bool {
    let fails = |error: &ObjectError| matches!(error, ObjectError::Failed(_));
    let is_other = error.chain().any(|cause| {
        if let Some(error) = cause.downcast_ref::<BaseError>() {
            match error {
                BaseError::Store(error) => error.is_unavailable(),
                BaseError::Files(error) => fails(error),
                BaseError::NoRoom(why) => matches!(why, NoRoom::Disk(_)),
                _ => false,
            }
        } else if let Some(error) = cause.downcast_ref() {
            fails(error)
        } else if let Some(why) = cause.downcast_ref::<NoRoom>() {
            matches!(why, NoRoom::Disk(_))
        } else if let Some(error) = cause.downcast_ref::<DigitizeError>() {
            error.may_pass()
        } else if let Some(error) = cause.downcast_ref::<ProviderError>() {
            error.kind == ProviderErrorKind::Busy
        } else {
            false
        }
    });
    is_other || is_database_away(error)
}

/// What becomes of a run of a job: one that met an outage runs again after it, and its attempts start anew. `tell` says so where people look.
pub(crate) async fn outlast<F>(
    bases: &Bases,
    result: anyhow::Result<RunResult>,
    tell: impl FnOnce() -> F + Send,
) -> anyhow::Result<RunResult>
where
    F: Future<Output = Result<(), StoreError>> + Send,
{
    match result {
        Err(error) if is_outage(&error) => {
            // However many documents wait, the log has one line of it now and then.
            bases.store.complain(WAITING, &format!("{error:#}"));
            // Where the database is what is away, nobody can be told.
            let _ = tell().await;
            Ok(RunResult::after_outage())
        }
        result => result,
    }
}

/// Stores what must not be lost, again and again while an outage lasts, for as long as the worker lets the run go on.
pub(crate) async fn insist<T, F>(bases: &Bases, attempt: impl Fn() -> F) -> anyhow::Result<T>
where
    F: Future<Output = anyhow::Result<T>>,
{
    loop {
        match attempt().await {
            Err(error) if is_outage(&error) => {
                bases
                    .store
                    .complain("storing what was made of a document", &error);
                sleep(INSIST_AFTER).await;
            }
            ended => return ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use anyhow::Context as _;
    use colloquy_accounts::storage::StorageLimitReached;
    use colloquy_blobs::WriteError;
    use colloquy_kernel::disk::{DiskFull, DiskSpace};

    use super::*;
    use crate::fetching::FetchFailure;

    fn disk_full() -> NoRoom {
        NoRoom::Disk(DiskFull(DiskSpace {
            free: 1,
            reserve: 2,
        }))
    }

    fn limit_reached() -> NoRoom {
        NoRoom::Partner(StorageLimitReached { used: 1, limit: 1 })
    }

    fn full() -> ObjectError {
        ObjectError::Failed("no space left".to_owned())
    }

    #[test]
    fn what_passes_is_told_from_what_does_not() {
        let written = Err::<(), _>(WriteError::<std::convert::Infallible>::Object(full()));
        let busy = ProviderError::new("model", ProviderErrorKind::Busy, "full");
        let down = ProviderError::new("model", ProviderErrorKind::Failed, "500");
        for (error, expected) in [
            (full().into(), true),
            (BaseError::Files(full()).into(), true),
            (BaseError::NoRoom(disk_full()).into(), true),
            (FetchFailure::Own(disk_full().into()).into(), true),
            (BaseError::NoRoom(limit_reached()).into(), false),
            (FetchFailure::Own(full().into()).into(), true),
            (written.context("writing the manifest").unwrap_err(), true),
            (DigitizeError::Later("full".to_owned()).into(), true),
            (busy.into(), true),
            (ObjectError::Missing.into(), false),
            (DigitizeError::NoOcr.into(), false),
            (FetchFailure::Later("503".to_owned()).into(), false),
            (down.into(), false),
            (anyhow::anyhow!("a defect"), false),
        ] {
            assert_eq!(is_outage(&error), expected, "{error:#}");
        }
    }
}
