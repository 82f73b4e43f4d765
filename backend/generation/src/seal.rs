//! What seals the summaries of compacted conversations, so that only this service reads them, and only for their partner.

use std::fmt;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use colloquy_accounts::partners::Partner;
use hmac::{Hmac, KeyInit as _, Mac as _};
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use sha2::Sha256;

/// What a sealed summary begins with. Contents of other services are not touched.
const PREFIX: &str = "clqc1.";

/// The secret that the keys of partners are derived from.
pub(crate) struct SealingSecret(Vec<u8>);

impl fmt::Debug for SealingSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealingSecret").finish_non_exhaustive()
    }
}

impl SealingSecret {
    /// With the server's secret for it.
    pub(crate) fn new(secret: Vec<u8>) -> Self {
        Self(secret)
    }

    /// The seal of a partner: its key is an HMAC-SHA-256 over its name and the time at which it was made, so that whoever gets the
    /// name after it cannot open what was sealed for it.
    pub(super) fn of(&self, partner: &Partner) -> Sealer {
        let key = || {
            let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
            mac.update(format!("{}\n{}", partner.id.as_str(), partner.created_at).as_bytes());
            let key = mac.finalize().into_bytes();
            UnboundKey::new(&CHACHA20_POLY1305, &key).ok()
        };
        Sealer(key().map(LessSafeKey::new))
    }
}

/// What seals for one partner; nothing when the cipher refuses its key.
#[derive(Debug)]
pub(super) struct Sealer(Option<LessSafeKey>);

impl Sealer {
    /// SealingSecret a summary: ChaCha20-Poly1305 with a random nonce, which stands in front. `None` when the cipher refuses.
    pub(super) fn seal(&self, summary: &str) -> Option<String> {
        let nonce = rand::random::<[u8; NONCE_LEN]>();
        let mut sealed = summary.as_bytes().to_vec();
        let key = self.0.as_ref()?;
        let unique = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(unique, Aad::from(PREFIX), &mut sealed)
            .ok()?;
        let whole = [&nonce[..], &sealed].concat();
        Some(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(whole)))
    }

    /// The summary in a content of ours, `None` for one of another service.
    ///
    /// # Errors
    /// When it was changed, or sealed for another partner or by another server.
    pub(super) fn open(&self, content: &str) -> Option<Result<String, &'static str>> {
        let sealed = content.strip_prefix(PREFIX)?;
        let summary = || {
            let mut whole = URL_SAFE_NO_PAD.decode(sealed).ok()?;
            let (nonce, sealed) = whole.split_at_mut_checked(NONCE_LEN)?;
            let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
            let key = self.0.as_ref()?;
            let summary = key.open_in_place(nonce, Aad::from(PREFIX), sealed).ok()?;
            String::from_utf8(summary.to_vec()).ok()
        };
        Some(summary().ok_or("cannot be opened: it was changed, or made for somebody else"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use colloquy_accounts::PartnerId;

    fn seal(secret: u8, partner: &str, created_at: i64) -> Sealer {
        SealingSecret::new(vec![secret; 32]).of(&Partner {
            id: PartnerId::parse(partner).unwrap(),
            display_name: String::new(),
            settings: colloquy_accounts::PartnerSettings::default(),
            created_at,
            updated_at: created_at,
            stored_bytes: 0,
        })
    }

    #[test]
    fn only_the_same_server_opens_it_for_the_same_partner() {
        let own = seal(1, "acme", 7);
        let text = "Grüße und Anliegen";
        let sealed = own.seal(text).unwrap();
        assert!(!sealed.contains("Anliegen"));
        assert_ne!(own.seal(text).unwrap(), sealed);
        assert_eq!(own.open(&sealed), Some(Ok(text.to_owned())));
        for other in [seal(1, "other", 7), seal(2, "acme", 7), seal(1, "acme", 8)] {
            assert!(other.open(&sealed).unwrap().is_err());
        }
        assert_eq!(own.open("gAAAA"), None);
    }

    #[test]
    fn what_was_changed_is_not_opened() {
        let own = seal(1, "acme", 7);
        let sealed = own.seal("a summary").unwrap();
        for at in PREFIX.len()..sealed.len() {
            let mut changed = sealed.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap();
            assert!(own.open(&changed).unwrap().is_err(), "{at}");
        }
        for cut in PREFIX.len()..sealed.len() {
            assert!(own.open(&sealed[..cut]).unwrap().is_err(), "{cut}");
        }
    }
}
