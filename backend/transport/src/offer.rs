//! What a session description of a client's says about the transport, and what is passed on of it.
//!
//! Anybody may send one, so its size is bounded before the stack parses it. Candidates are left out: the client's own
//! checks show its addresses (see [`ice`](crate::ice)).

use super::ice::Credentials;

/// The longest offer, in bytes; those of browsers have about 2,000.
pub const MAX_BYTES: usize = 16 * 1024;

/// The most lines of it, candidates among them.
const MAX_LINES: usize = 512;

/// The most media sections: a call has one.
const MAX_SECTIONS: usize = 4;

/// Which end of DTLS the client wants to be (RFC 5763).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setup {
    /// The client begins, or leaves it to the server, which then lets it begin: who begins repeats what was lost.
    Active,
    /// The client waits.
    Passive,
}

/// An offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The description without candidates.
    pub sdp: String,
    /// The client's ICE credentials.
    pub credentials: Credentials,
    /// The fingerprint of the client's certificate.
    pub fingerprint: String,
    /// The client's end of DTLS.
    pub setup: Setup,
}

/// Why an offer was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// Of more bytes than an offer of audio has.
    #[error("the offer is larger than 16 KiB")]
    TooLarge,
    /// Of more lines than an offer of audio has.
    #[error("the offer has more than 512 lines")]
    TooManyLines,
    /// Of more than the sections of a page that offers video and data as well.
    #[error("the offer has more than 4 media sections")]
    TooManySections,
    /// Nothing to hear in it.
    #[error("the offer has no audio")]
    NoAudio,
    /// Without what names and signs the checks of the client.
    #[error("the offer has no ice-ufrag and ice-pwd of 4 and 22 to 256 characters")]
    NoCredentials,
    /// Of a client that sends no checks.
    #[error("the offer is of an ICE-lite agent: the server waits for the checks of its client")]
    Lite,
    /// Without what tells whose the DTLS handshake is.
    #[error("the offer has no fingerprint")]
    NoFingerprint,
}

impl Offer {
    /// Reads an offer.
    ///
    /// # Errors
    /// When it is too large, or lacks what a connection needs.
    pub fn parse(text: &str) -> Result<Self, OfferError> {
        if text.len() > MAX_BYTES {
            return Err(OfferError::TooLarge);
        }
        if text.lines().count() > MAX_LINES {
            return Err(OfferError::TooManyLines);
        }
        let sections = || text.lines().filter(|line| line.starts_with("m="));
        if sections().count() > MAX_SECTIONS {
            return Err(OfferError::TooManySections);
        }
        if !sections().any(|line| line.starts_with("m=audio ")) {
            return Err(OfferError::NoAudio);
        }
        if text.lines().any(|line| line.trim_end() == "a=ice-lite") {
            return Err(OfferError::Lite);
        }
        let credentials = credentials(text).ok_or(OfferError::NoCredentials)?;
        let fingerprint = value(text, "fingerprint").ok_or(OfferError::NoFingerprint)?;
        let setup = match value(text, "setup") {
            Some("passive") => Setup::Passive,
            _ => Setup::Active,
        };
        let lines = text.lines().filter(|line| {
            !line.starts_with("a=candidate:") && !line.starts_with("a=remote-candidates:")
        });
        let sdp = lines.flat_map(|line| [line, "\r\n"]).collect();
        Ok(Self {
            sdp,
            credentials,
            fingerprint: fingerprint.to_owned(),
            setup,
        })
    }
}

/// The ICE credentials of a description (RFC 8839 section 5.4).
pub fn credentials(sdp: &str) -> Option<Credentials> {
    let fragment = value(sdp, "ice-ufrag").filter(|text| (4..=256).contains(&text.len()))?;
    let password = value(sdp, "ice-pwd").filter(|text| (22..=256).contains(&text.len()))?;
    Some(Credentials {
        fragment: fragment.to_owned(),
        password: password.to_owned(),
    })
}

/// The value of the first `a=NAME:` line of a session description.
fn value<'sdp>(sdp: &'sdp str, name: &str) -> Option<&'sdp str> {
    sdp.lines()
        .find_map(|line| {
            line.strip_prefix("a=")?
                .strip_prefix(name)?
                .strip_prefix(':')
        })
        .map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: &str = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n\
        m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=ice-ufrag:Ab/3\r\na=ice-pwd:abcdefghijklmnopqrstuv\r\n\
        a=fingerprint:sha-256 AA:BB\r\na=setup:actpass\r\na=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\na=mid:0\r\n";

    #[test]
    fn what_the_transport_needs_is_read_and_candidates_are_left_out() {
        let offer = Offer::parse(OFFER).unwrap();
        assert_eq!(offer.credentials.fragment, "Ab/3");
        assert_eq!(offer.credentials.password, "abcdefghijklmnopqrstuv");
        assert_eq!(offer.fingerprint, "sha-256 AA:BB");
        assert_eq!(offer.setup, Setup::Active);
        assert!(!offer.sdp.contains("192.0.2.1"), "{}", offer.sdp);
        assert!(offer.sdp.ends_with("a=mid:0\r\n"));
        let waits = OFFER.replace("actpass", "passive");
        assert_eq!(Offer::parse(&waits).unwrap().setup, Setup::Passive);
    }

    #[test]
    fn offers_are_bounded() {
        let refused = |text: &str| Offer::parse(text).unwrap_err();
        let candidates = "a=candidate:1 1 udp 1 192.0.2.1 9 typ host\r\n".repeat(400);
        assert_eq!(
            refused(&format!("{OFFER}{candidates}")),
            OfferError::TooLarge
        );
        assert_eq!(
            refused(&format!("{OFFER}{}", "a=b\r\n".repeat(600))),
            OfferError::TooManyLines
        );
        let sections = "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\n".repeat(4);
        assert_eq!(
            refused(&format!("{OFFER}{sections}")),
            OfferError::TooManySections
        );
        assert_eq!(
            refused(&OFFER.replace("m=audio", "m=video")),
            OfferError::NoAudio
        );
        assert_eq!(
            refused(&OFFER.replace("ice-pwd:", "ice-pwd:\r\n")),
            OfferError::NoCredentials
        );
        assert_eq!(
            refused(&OFFER.replace("v=0\r\n", "v=0\r\na=ice-lite\r\n")),
            OfferError::Lite
        );
        assert_eq!(
            refused(&OFFER.replace("fingerprint", "print")),
            OfferError::NoFingerprint
        );
    }
}
