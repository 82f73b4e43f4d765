//! The signature of Standard Webhooks (<https://www.standardwebhooks.com>): HMAC-SHA-256 over `id.timestamp.body`.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use colloquy_config::Secret;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The value of `webhook-signature`: `v1,` and base64.
pub(super) fn signature(secret: &Secret, id: &str, timestamp: i64, body: &str) -> String {
    let secret = secret.reveal();
    let key = secret
        .strip_prefix("whsec_")
        .and_then(|encoded| STANDARD.decode(encoded).ok())
        .unwrap_or_else(|| secret.as_bytes().to_vec());
    // HMAC takes keys of every length; the error branch of its interface cannot be reached.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key) else {
        return String::new();
    };
    mac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_example_verifies() {
        // The test vector of the Standard Webhooks libraries.
        let secret = Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signature = signature(
            &secret,
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_plain_secret_is_used_as_it_stands() {
        let plain = signature(&Secret::new("plain secret"), "m", 1, "{}");
        let encoded = Secret::new(format!("whsec_{}", STANDARD.encode("plain secret")));
        assert_eq!(plain, signature(&encoded, "m", 1, "{}"));
        assert_ne!(plain, signature(&encoded, "m", 2, "{}"));
    }
}
