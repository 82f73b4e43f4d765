//! Signed session URLs: HMAC-SHA-256, in hexadecimal, over method, path, call id and expiry, one a line.

use std::fmt::Write as _;

use colloquy_accounts as accounts;
use colloquy_config::{Secret, SigningKey, SigningKeys};
use colloquy_kernel::Base;
use colloquy_protocol::CloseCode;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use subtle::ConstantTimeEq as _;

use super::SignedQuery;
use crate::Calls;

/// The name of the generated signing key among the server's secrets.
const SECRET_NAME: &str = "call-url-signing";

/// The keys of session URLs: the first one signs, all of them verify.
#[derive(Debug)]
pub(super) struct Ring(SigningKeys);

impl Ring {
    /// The ring of a server: the configured one, else the one that all nodes share through the database.
    ///
    /// # Errors
    /// When the database fails.
    pub(super) async fn open(base: &Base) -> anyhow::Result<Self> {
        if let Some(keys) = &base.config.signing_keys {
            return Ok(Self::new(keys.clone()));
        }
        let secret = accounts::server_secret(&base.store, SECRET_NAME).await?;
        Ok(Self::new(SigningKeys(vec![SigningKey {
            kid: "server".to_owned(),
            secret: Secret::new(hex(&secret)),
        }])))
    }

    /// A ring of these keys.
    #[must_use]
    pub(super) fn new(keys: SigningKeys) -> Self {
        Self(keys)
    }

    /// The query of a call's signed URL; `None` without any key.
    #[must_use]
    pub(super) fn sign(&self, id: &str, expires_s: i64) -> Option<SignedQuery> {
        let key = self.0.0.first()?;
        Some(SignedQuery {
            exp: expires_s,
            kid: key.kid.clone(),
            sig: signature(key, id, expires_s)?,
        })
    }

    /// Checks a signature and its expiry.
    ///
    /// # Errors
    /// `InvalidSignature` when anything was changed or the key is not in the ring, else `UrlExpired`.
    pub(super) fn check(
        &self,
        id: &str,
        query: &SignedQuery,
        now_ms: i64,
    ) -> Result<(), CloseCode> {
        let valid = self
            .0
            .0
            .iter()
            .filter(|key| key.kid == query.kid)
            .filter_map(|key| signature(key, id, query.exp))
            .any(|expected| bool::from(expected.as_bytes().ct_eq(query.sig.as_bytes())));
        if !valid {
            Err(CloseCode::InvalidSignature)
        } else if now_ms >= query.exp.saturating_mul(1000) {
            Err(CloseCode::UrlExpired)
        } else {
            Ok(())
        }
    }
}

/// The path of a call's session.
fn path(id: &str) -> String {
    format!("/v2/calls/{id}/session")
}

/// The session's URL at this origin, without signature.
fn endpoint_at(origin: &str, id: &str) -> String {
    // http -> ws, https -> wss.
    format!("{}{}", origin.replacen("http", "ws", 1), path(id))
}

/// The session's URL without signature, as clients of this node reach it.
pub(super) fn endpoint(calls: &Calls, id: &str) -> String {
    endpoint_at(&calls.config.http.origin(), id)
}

/// The signed URL of a call; `None` without any key, which no setting gives.
#[must_use]
pub fn session_url(calls: &Calls, id: &str, expires_s: i64) -> Option<String> {
    let query = calls.signing.sign(id, expires_s)?;
    Some(session_at(&calls.config.http.origin(), id, &query))
}

/// The signed URL of a call at this origin, with a signature that was made before.
pub(super) fn session_at(origin: &str, id: &str, query: &SignedQuery) -> String {
    let SignedQuery { exp, kid, sig } = query;
    format!("{}?exp={exp}&kid={kid}&sig={sig}", endpoint_at(origin, id))
}

fn signature(key: &SigningKey, id: &str, expires_s: i64) -> Option<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.secret.reveal().as_bytes()).ok()?;
    mac.update(format!("GET\n{}\n{id}\n{expires_s}", path(id)).as_bytes());
    Some(hex(&mac.finalize().into_bytes()))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0190d3f4-0000-7000-8000-000000000001";
    const NOW_MS: i64 = 1_700_000_000_000;
    const EXP: i64 = 1_700_000_300;

    fn ring(keys: &[(&str, &str)]) -> Ring {
        let keys = keys.iter().map(|(kid, secret)| SigningKey {
            kid: (*kid).to_owned(),
            secret: Secret::new(*secret),
        });
        Ring::new(SigningKeys(keys.collect()))
    }

    #[test]
    fn a_signature_does_not_change_between_versions() {
        // Computed with openssl: printf 'GET\n/v2/calls/ID/session\nID\n1700000300' | openssl dgst -sha256 -hmac SECRET
        let query = ring(&[("a", "0123456789abcdef")]).sign(ID, EXP).unwrap();
        assert_eq!(
            query.sig,
            "485e2768a380a7d31ff1d0a15f8cc2e9da2b5a4e97b83086f424428f2934c669"
        );
    }

    #[test]
    fn every_changed_field_is_an_invalid_signature() {
        let ring = ring(&[("a", "0123456789abcdef"), ("b", "fedcba9876543210")]);
        let good = ring.sign(ID, EXP).unwrap();
        assert_eq!(ring.check(ID, &good, NOW_MS), Ok(()));
        let changed = |change: &dyn Fn(&mut SignedQuery)| {
            let mut query = good.clone();
            change(&mut query);
            ring.check(ID, &query, NOW_MS)
        };
        let invalid = Err(CloseCode::InvalidSignature);
        assert_eq!(changed(&|query| query.exp += 1), invalid);
        assert_eq!(changed(&|query| query.exp = i64::MAX), invalid);
        assert_eq!(changed(&|query| query.kid = "b".to_owned()), invalid);
        assert_eq!(changed(&|query| query.kid = "unknown".to_owned()), invalid);
        assert_eq!(changed(&|query| query.kid.clear()), invalid);
        assert_eq!(changed(&|query| query.sig.clear()), invalid);
        assert_eq!(changed(&|query| query.sig.truncate(63)), invalid);
        assert_eq!(changed(&|query| query.sig.push('0')), invalid);
        for at in 0..good.sig.len() {
            let flipped = changed(&|query| {
                let other = if &query.sig[at..=at] == "0" { "1" } else { "0" };
                query.sig.replace_range(at..=at, other);
            });
            assert_eq!(flipped, invalid, "digit {at}");
        }
        let other = "0190d3f4-0000-7000-8000-000000000002";
        assert_eq!(ring.check(other, &good, NOW_MS), invalid);
    }

    #[test]
    fn it_expires_to_the_millisecond() {
        let ring = ring(&[("a", "0123456789abcdef")]);
        let query = ring.sign(ID, EXP).unwrap();
        assert_eq!(ring.check(ID, &query, EXP * 1000 - 1), Ok(()));
        assert_eq!(
            ring.check(ID, &query, EXP * 1000),
            Err(CloseCode::UrlExpired)
        );
    }

    #[test]
    fn a_rotated_ring_signs_with_the_new_key_and_still_knows_the_old_one() {
        let old = ring(&[("a", "0123456789abcdef")]).sign(ID, EXP).unwrap();
        let rotated = ring(&[("b", "fedcba9876543210"), ("a", "0123456789abcdef")]);
        assert_eq!(rotated.sign(ID, EXP).unwrap().kid, "b");
        assert_eq!(rotated.check(ID, &old, NOW_MS), Ok(()));
        let retired = ring(&[("b", "fedcba9876543210")]);
        assert_eq!(
            retired.check(ID, &old, NOW_MS),
            Err(CloseCode::InvalidSignature)
        );
    }
}
