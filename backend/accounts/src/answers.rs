//! What clients hear: why a key or a change was refused, why nothing was reserved or stored, and `x-ratelimit-*`, how much is left, as
//! clients of the public APIs read it.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use colloquy_base::money::Usd;
use colloquy_http::ApiError;

use super::{
    AccessDenied, AccountError, KeyRefused,
    ledger::{LedgerError, Measure, Standing},
    quotas::{NotAllowed, QuotaUnusable},
    storage::{ChargeError, StorageLimitReached},
};

/// When those come back who found the ledger away.
const SOON: Duration = Duration::from_secs(1);

impl From<AccountError> for ApiError {
    /// 400 that names the field, 404, 409, 413 `storage_limit_reached`, 507, or the database's failure.
    fn from(error: AccountError) -> Self {
        match error {
            AccountError::Invalid(invalid) => invalid.into(),
            AccountError::NotFound(what) => Self::not_found(what),
            AccountError::Conflict(why) => Self::conflict(why),
            AccountError::Storage(reached) => reached.into(),
            AccountError::Disk(low) => low.into(),
            AccountError::Store(error) => error.into(),
        }
    }
}

impl From<KeyRefused> for ApiError {
    /// 401, 403 `quota_disabled`, 429, or the database's failure.
    fn from(refused: KeyRefused) -> Self {
        match refused {
            KeyRefused::Invalid | KeyRefused::Unknown => Self::unauthorized(),
            KeyRefused::Disabled => QuotaUnusable::Disabled.into(),
            KeyRefused::TooManyAttempts(limited) => limited.into(),
            KeyRefused::Store(error) => error.into(),
        }
    }
}

impl From<AccessDenied> for ApiError {
    /// 403.
    fn from(denied: AccessDenied) -> Self {
        Self::forbidden(match denied {
            AccessDenied::OtherPartner => "Access denied",
            AccessDenied::NotAdministrator => "This needs an administrator key",
            AccessDenied::MissingScope => "The API key lacks the scope for this",
        })
    }
}

impl From<QuotaUnusable> for KeyRefused {
    fn from(unusable: QuotaUnusable) -> Self {
        match unusable {
            QuotaUnusable::Ended => Self::Invalid,
            QuotaUnusable::Disabled => Self::Disabled,
        }
    }
}

impl From<QuotaUnusable> for ApiError {
    /// 401 when it has ended, 403 `quota_disabled`.
    fn from(unusable: QuotaUnusable) -> Self {
        match unusable {
            QuotaUnusable::Ended => Self::unauthorized(),
            QuotaUnusable::Disabled => {
                let code = "quota_disabled";
                Self::new(StatusCode::FORBIDDEN, code, "The quota is switched off")
            }
        }
    }
}

impl From<NotAllowed> for ApiError {
    /// 403 with a code for what is not allowed.
    fn from(denied: NotAllowed) -> Self {
        let code = match denied {
            NotAllowed::Kind => "quota_kind_not_allowed",
            NotAllowed::Model | NotAllowed::PartnerModel => "model_not_allowed",
            NotAllowed::Character => "character_not_allowed",
        };
        Self::new(StatusCode::FORBIDDEN, code, denied.to_string())
    }
}

impl From<LedgerError> for ApiError {
    /// 429 `quota_exhausted`, 401 or 403 for a quota that cannot be used, 503.
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Refused(refused) => {
                let (status, message) = (StatusCode::TOO_MANY_REQUESTS, refused.to_string());
                let error = Self {
                    retry_after: refused.retry_after(),
                    ..Self::new(status, "quota_exhausted", message)
                };
                error.with_limits(refused.standing.headers(refused.at))
            }
            LedgerError::Unusable(unusable) => unusable.into(),
            LedgerError::NotAllowed(denied) => denied.into(),
            LedgerError::Unavailable => {
                Self::unavailable("Usage cannot be recorded at the moment", SOON)
            }
            LedgerError::Stopped => Self::unavailable("The server is stopping", SOON),
        }
    }
}

impl From<StorageLimitReached> for ApiError {
    /// 413 `storage_limit_reached`.
    fn from(reached: StorageLimitReached) -> Self {
        let mut message = reached.to_string();
        if let Some(first) = message.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        let status = StatusCode::PAYLOAD_TOO_LARGE;
        Self::new(status, "storage_limit_reached", message)
    }
}

impl From<ChargeError> for ApiError {
    /// 413 `storage_limit_reached`, or the database's failure.
    fn from(error: ChargeError) -> Self {
        match error {
            ChargeError::Limit(reached) => reached.into(),
            ChargeError::Store(error) => error.into(),
        }
    }
}

impl Standing {
    /// The headers for what is limited. A period ends in so many seconds; a lifetime does not.
    #[must_use]
    pub fn headers(&self, now_ms: i64) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let mut insert = |name: &str, of: &str, value: String| {
            let name = HeaderName::try_from(format!("x-ratelimit-{name}-{of}"));
            if let (Ok(name), Ok(value)) = (name, HeaderValue::try_from(value)) {
                headers.insert(name, value);
            }
        };
        for measure in Measure::LIMITED {
            let (Some(limit), Some(remaining)) = (self.limits.of(measure), self.remaining(measure))
            else {
                continue;
            };
            let text = |amount: u64| match measure {
                Measure::Cost => Usd(amount).to_string(),
                _ => amount.to_string(),
            };
            let name = measure.as_str();
            insert("limit", name, text(limit));
            insert("remaining", name, text(remaining));
            if let Some(end) = self.period_end() {
                let seconds = (end - now_ms).max(0).unsigned_abs().div_ceil(1_000);
                insert("reset", name, format!("{seconds}s"));
            }
        }
        headers
    }
}
