//! What speech costs whoever pays for it.

use axum::http::HeaderMap;
use colloquy_accounts::{
    ledger::{Amounts, LedgerError, Measure, Outcome, Reservation, UsageContext},
    quotas::Payer,
};
use colloquy_base::money::Usd;

use crate::Speech;

/// What a million characters are counted in.
const PRICED_CHARACTERS: u64 = 1_000_000;

/// Whose answers may be repeated to this one: those of its own key. (Another partner may get a partner's name.)
pub(super) fn owner(payer: &Payer) -> String {
    match payer {
        Payer::Quota(quota) => quota.id.clone(),
        Payer::Key(principal) => principal.key_id.clone(),
    }
}

impl Bill {
    /// Reserves the price of a text.
    ///
    /// # Errors
    /// When the quota is not for this model or is exhausted, or the ledger fails.
    pub(super) async fn reserve(
        speech: &Speech,
        payer: &Payer,
        characters: u64,
        request_id: u64,
    ) -> Result<Self, LedgerError> {
        let config = &speech.config.speech;
        let price = config.usd_per_1m_characters;
        let quota = match payer {
            Payer::Quota(quota) => quota,
            Payer::Key(principal) => {
                return Ok(Self::Noted {
                    key_id: principal.key_id.clone(),
                    request_id,
                });
            }
        };
        quota.require_model(&config.model)?;
        let bound = amounts(characters, price);
        let about = UsageContext {
            endpoint: "audio.speech",
            model: config.model.clone(),
            character: None,
            request_id: request_id.to_string(),
        };
        let mut reservation = speech.ledger.reserve(quota, bound, about).await?;
        reservation.begin();
        Ok(Self::Reserved {
            reservation: Box::new(reservation),
            price,
        })
    }
}

/// So many characters, and what they cost.
fn amounts(characters: u64, price: Usd) -> Amounts {
    Amounts::default()
        .with(Measure::Characters, characters)
        .with(Measure::Cost, price.cost_of(characters, PRICED_CHARACTERS))
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
                reservation.settle(amounts(characters, price), outcome);
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
