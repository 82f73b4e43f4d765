//! Why an analysis failed: for the client without anything of the services behind, for the log with it.

use std::time::Duration;

use colloquy_accounts::ledger::LedgerError;
use colloquy_kernel::jobs;
use colloquy_providers::{ProviderError, ProviderErrorKind};

use super::output::Reason;

/// How long an analysis waits for room in a quota.
const SOON: Duration = Duration::from_secs(5);

/// Why there is no result.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("the model: {0}")]
    Model(ProviderError),
    /// What was wrong with its last answer.
    #[error("no answer fits the schemas: {0}")]
    Unfit(String),
    #[error("the quota: {0}")]
    Quota(LedgerError),
    #[error("its process ended too often")]
    Interrupted,
}

impl jobs::Failure for Failure {
    fn may_pass(&self) -> bool {
        match self {
            Self::Model(error) => !matches!(
                error.kind,
                ProviderErrorKind::Rejected | ProviderErrorKind::Misconfigured
            ),
            // Only what others have reserved is in the way.
            Self::Quota(LedgerError::Refused(refused)) => {
                refused.retry_after().is_some_and(|wait| wait <= SOON)
            }
            Self::Quota(error) => matches!(error, LedgerError::Unavailable | LedgerError::Stopped),
            Self::Unfit(_) | Self::Interrupted => false,
        }
    }
}

impl Failure {
    /// For the client, the log and the metrics.
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Model(_) => "model_failed",
            Self::Unfit(_) => "answer_unfit",
            Self::Quota(LedgerError::Refused(_)) => "quota_exhausted",
            Self::Quota(_) => "quota_unusable",
            Self::Interrupted => "interrupted",
        }
    }

    pub(super) fn reason(&self) -> Reason {
        let message = match self {
            Self::Model(_) => "the model failed, also when it was asked again".to_owned(),
            Self::Unfit(why) => format!("no answer of the model fits the schemas: {why}"),
            Self::Quota(LedgerError::Refused(_)) => "the quota is exhausted".to_owned(),
            Self::Quota(_) => "the quota cannot be used any more".to_owned(),
            Self::Interrupted => {
                "the analysis was begun several times, and interrupted each time".to_owned()
            }
        };
        Reason {
            code: self.code().to_owned(),
            message,
        }
    }
}
