//! The embedded defaults: they need no account and no network.
//!
//! The programs run as child processes, because their licence forbids linking (espeak-ng) and because a process can be
//! killed when it hangs.

mod espeak;
mod extractive;
mod pocketsphinx;

pub use self::{
    espeak::Espeak,
    extractive::Extractive,
    pocketsphinx::{Models, PocketSphinx},
};
use colloquy_base::fair_queue::{Bounds, FairQueue, Full};

use super::{ProviderError, ProviderErrorKind};

/// How many may wait for a process with one priority, for each that there is at once.
const WAITING_FOR_EACH: usize = 32;

/// The queue before so many processes. Half of the places are for one partner.
fn queue(name: &'static str, processes: usize) -> FairQueue {
    let slots = processes.max(1);
    let waiting = slots * WAITING_FOR_EACH;
    FairQueue::new(
        name,
        Bounds {
            slots,
            waiting,
            waiting_of_owner: waiting / 2,
        },
    )
}

/// Too many wait for a process.
fn busy(provider: &str, full: Full) -> ProviderError {
    ProviderError {
        retry_after: Some(full.retry_after),
        ..ProviderError::new(provider, ProviderErrorKind::Busy, full.to_string())
    }
}

/// A program did not start.
fn not_started(program: &str, error: &std::io::Error) -> ProviderError {
    match error.kind() {
        // Asking again does not install it.
        std::io::ErrorKind::NotFound => ProviderError::new(
            program,
            ProviderErrorKind::Misconfigured,
            format!("the program {program} is not installed"),
        ),
        kind => ProviderError::new(
            program,
            ProviderErrorKind::Failed,
            format!("the program {program} does not start: {kind}"),
        ),
    }
}
