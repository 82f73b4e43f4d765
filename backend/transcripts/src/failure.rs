//! Why there is no transcript: for the client without anything of the services behind, for the log with it.

use std::time::Duration;

use colloquy_accounts::ledger::LedgerError;
use colloquy_digitize::DigitizeError;
use colloquy_fetch::CONNECT_ATTEMPTS;
use colloquy_kernel::jobs;
use colloquy_providers::{ProviderError, ProviderErrorKind};

/// The most attempts at a transcription service that is not set up, or cannot be reached although it [may be there](ProviderError::is_absent); the
/// waits take about two minutes.
const UNREACHABLE_ATTEMPTS: u32 = 8;
/// How long a transcript waits for room in a quota.
const SOON: Duration = Duration::from_secs(5);

/// Why there is no text.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    /// What is at the address will not be there another time either.
    #[error("{0}")]
    Refused(String),
    /// It may be there another time, and is tried so often.
    #[error("{reason}")]
    NotFetched { reason: String, most: u32 },
    /// What is at the address is something else.
    #[error("what is at audio_url is no recording of a supported type")]
    NoRecording,
    #[error(transparent)]
    Unreadable(#[from] DigitizeError),
    #[error("the stored recording is damaged; send it again")]
    Damaged,
    #[error("the recording lasts longer than {0} s")]
    TooLong(u32),
    #[error("transcription is switched off for this partner")]
    SwitchedOff,
    #[error("the quota: {0}")]
    Quota(LedgerError),
    #[error("transcription: {0}")]
    Transcription(ProviderError),
    #[error("its process ended too often")]
    Interrupted,
}

impl jobs::Failure for Failure {
    fn may_pass(&self) -> bool {
        match self {
            Self::NotFetched { .. } => true,
            Self::Transcription(error) => error.kind != ProviderErrorKind::Rejected,
            // Only what others have reserved is in the way.
            Self::Quota(LedgerError::Refused(refused)) => {
                refused.retry_after().is_some_and(|wait| wait <= SOON)
            }
            Self::Quota(error) => matches!(error, LedgerError::Unavailable | LedgerError::Stopped),
            _ => false,
        }
    }

    fn most_attempts(&self) -> u32 {
        match self {
            Self::NotFetched { most, .. } => *most,
            Self::Transcription(error) if error.is_absent() => CONNECT_ATTEMPTS,
            Self::Transcription(error)
                if matches!(
                    error.kind,
                    ProviderErrorKind::Connect | ProviderErrorKind::Misconfigured
                ) =>
            {
                UNREACHABLE_ATTEMPTS
            }
            _ => u32::MAX,
        }
    }
}

impl Failure {
    /// Returns true if another attempt may succeed later on, as the reason lies with a service, the quota or the server.
    pub(super) fn is_retryable(&self) -> bool {
        match self {
            Self::NotFetched { .. } | Self::SwitchedOff | Self::Quota(_) | Self::Interrupted => {
                true
            }
            Self::Transcription(error) => error.kind != ProviderErrorKind::Rejected,
            Self::Refused(_)
            | Self::NoRecording
            | Self::Unreadable(_)
            | Self::Damaged
            | Self::TooLong(_) => false,
        }
    }

    /// For the log and the metrics.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Refused(_) | Self::NotFetched { .. } => "not_fetched",
            Self::NoRecording | Self::Unreadable(_) => "unreadable",
            Self::Damaged => "damaged",
            Self::TooLong(_) => "too_long",
            Self::SwitchedOff => "switched_off",
            Self::Quota(_) => "quota",
            Self::Transcription(_) => "transcription",
            Self::Interrupted => "interrupted",
        }
    }

    /// For the client.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Quota(LedgerError::Refused(_)) => "the quota is exhausted".to_owned(),
            Self::Quota(_) => "the quota cannot be used any more".to_owned(),
            Self::Transcription(error) if error.kind == ProviderErrorKind::Rejected => {
                "the transcription service refuses the recording".to_owned()
            }
            Self::Transcription(error) => format!(
                "the transcription service failed, also when it was asked again: {}",
                error.reason()
            ),
            Self::Interrupted => {
                "the transcript was begun several times, and interrupted each time".to_owned()
            }
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use colloquy_kernel::jobs::Failure as _;
    use colloquy_providers::Unreachable;

    use super::*;

    #[test]
    fn a_service_that_fails_is_asked_again_and_its_reason_is_told() {
        let error = |kind| ProviderError::new("secret", kind, "secret");
        let unreachable = |why| ProviderError {
            unreachable: Some(why),
            ..error(ProviderErrorKind::Connect)
        };
        for (error, attempts, reason) in [
            (unreachable(Unreachable::Refused), 3, "connection refused"),
            (unreachable(Unreachable::HostNotFound), 3, "host not found"),
            (
                unreachable(Unreachable::NotResolved),
                8,
                "name not resolved",
            ),
            (error(ProviderErrorKind::Connect), 8, "no connection"),
            (error(ProviderErrorKind::Timeout), u32::MAX, "timed out"),
            (error(ProviderErrorKind::Cut), u32::MAX, "connection cut"),
        ] {
            let failure = Failure::Transcription(error);
            assert!(failure.may_pass() && failure.is_retryable());
            assert_eq!(failure.most_attempts(), attempts);
            let told = failure.reason();
            assert!(told.ends_with(&format!(": {reason}")), "{told}");
            assert!(!told.contains("secret"), "{told}");
        }
        let rejected = Failure::Transcription(error(ProviderErrorKind::Rejected));
        assert!(!rejected.may_pass() && !rejected.is_retryable());
    }
}
