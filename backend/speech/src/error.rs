//! What a client is told when there is no sound.

use std::{sync::Arc, time::Duration};

use axum::http::StatusCode;
use colloquy_http::{ApiError, memory::NoRoom};
use colloquy_providers::ProviderErrorKind;

use super::recording::SoundError;

/// When to come again to a service that does not say it itself.
const RETRY_AFTER: Duration = Duration::from_secs(1);

impl From<SoundError> for ApiError {
    fn from(error: SoundError) -> Self {
        match error {
            SoundError::NoRoom(NoRoom::Now) => return NoRoom::Now.into(),
            SoundError::NoRoom(NoRoom::Ever) => {
                let message = "The sound takes more memory than this server has for one; ask for another format, or for less text";
                return Self::new(StatusCode::PAYLOAD_TOO_LARGE, "sound_too_large", message);
            }
            _ => {}
        }
        let asked_to_wait = match &error {
            SoundError::Provider(error) => error.retry_after,
            _ => None,
        };
        let (status, code, message) = match &error {
            SoundError::Provider(error) => match error.kind {
                ProviderErrorKind::Rejected => (
                    StatusCode::BAD_REQUEST,
                    "voice_refused",
                    "The voice service refused the request; it may not have this voice",
                ),
                ProviderErrorKind::Connect
                | ProviderErrorKind::Timeout
                | ProviderErrorKind::RateLimited
                | ProviderErrorKind::Busy => (
                    StatusCode::SERVICE_UNAVAILABLE,
                    "voice_unavailable",
                    "The voice service is not available, try again later",
                ),
                _ => FAILED,
            },
            SoundError::Stopped => (
                StatusCode::SERVICE_UNAVAILABLE,
                "unavailable",
                "The server is stopping",
            ),
            _ => FAILED,
        };
        let unavailable = status == StatusCode::SERVICE_UNAVAILABLE;
        Self {
            retry_after: unavailable.then(|| asked_to_wait.unwrap_or(RETRY_AFTER)),
            source: Some(Arc::new(error)),
            ..Self::new(status, code, message)
        }
    }
}

const FAILED: (StatusCode, &str, &str) = (
    StatusCode::BAD_GATEWAY,
    "voice_failed",
    "The voice service failed",
);
