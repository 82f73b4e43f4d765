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
use super::{ProviderError, ProviderErrorKind};

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
