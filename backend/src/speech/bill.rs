//! What speech costs whoever pays for it.

use axum::http::{HeaderMap, request::Parts};

use crate::{
    accounts::{
        Reach, Scope,
        ledger::{About, Amounts, Outcome, Reservation, Usage},
        quotas::{self, Payer, QuotaKind},
    },
    app::App,
    http::ApiError,
    money::Usd,
};

/// What a million characters are counted in.
const PRICED_CHARACTERS: u64 = 1_000_000;

/// Whoever asks for speech. The key is in `Authorization: Bearer` or in `X-Api-Key`, looked for in this order.
///
/// # Errors
/// As of [`Payer::with_key`].
pub(super) async fn payer(parts: &Parts, app: &App) -> Result<Payer, ApiError> {
    let key = quotas::key_text(&parts.headers);
    Payer::with_key(parts, app, key, QuotaKind::Speech, Scope::Speech).await
}

impl Payer {
    /// Whose answers may be repeated to this one.
    pub(super) fn speech_owner(&self) -> String {
        match self {
            Self::Quota(quota) => quota.tenant.partner().as_str().to_owned(),
            Self::Key(principal) => match &principal.reach {
                Reach::Partner(partner) => partner.as_str().to_owned(),
                // No partner is called so.
                Reach::Admin => String::new(),
            },
        }
    }

    /// Reserves the price of a text.
    ///
    /// # Errors
    /// 403 when the quota is not for this model, 429 when it is exhausted, 503 when the ledger fails.
    pub(super) async fn reserve_speech(
        &self,
        app: &App,
        characters: u64,
        request_id: u64,
    ) -> Result<Bill, ApiError> {
        let config = &app.config.speech;
        let price = config.usd_per_1m_characters;
        let quota = match self {
            Self::Quota(quota) => quota,
            Self::Key(principal) => {
                return Ok(Bill::Noted {
                    key_id: principal.key_id.clone(),
                    request_id,
                });
            }
        };
        quota.require_model(&config.model)?;
        let bound = Amounts {
            characters,
            cost: price.cost_of(characters, PRICED_CHARACTERS),
            ..Amounts::default()
        };
        let about = About {
            endpoint: "audio.speech",
            model: config.model.clone(),
            character: None,
            request_id: request_id.to_string(),
        };
        let mut reservation = app.ledger.reserve(quota, bound, about).await?;
        reservation.begin();
        Ok(Bill::Reserved {
            reservation: Box::new(reservation),
            price,
        })
    }
}

/// A text that has to be paid for.
pub(super) enum Bill {
    /// Its price is reserved.
    Reserved {
        reservation: Box<Reservation>,
        price: Usd,
    },
    /// Whoever asked has no quota: the log and the metrics have it.
    Noted { key_id: String, request_id: u64 },
}

impl Bill {
    /// `x-ratelimit-*`, as the quota stands with this text; nothing without a quota.
    pub(super) fn limits(&self, now_ms: i64) -> HeaderMap {
        match self {
            Self::Reserved { reservation, .. } => reservation.standing().headers(now_ms),
            Self::Noted { .. } => HeaderMap::new(),
        }
    }

    /// Settles what was really spoken.
    pub(super) fn settle(self, characters: u64, outcome: Outcome) {
        metrics::counter!("colloquy_speech_characters_total", "outcome" => outcome.as_str())
            .increment(characters);
        match self {
            Self::Reserved { reservation, price } => {
                let usage = Usage {
                    characters,
                    cost: price.cost_of(characters, PRICED_CHARACTERS),
                    ..Usage::default()
                };
                reservation.settle(usage, outcome);
            }
            Self::Noted { key_id, request_id } => {
                let outcome = outcome.as_str();
                tracing::info!(
                    key_id,
                    tts_request_id = request_id,
                    characters,
                    outcome,
                    "speech without a quota"
                );
            }
        }
    }
}
