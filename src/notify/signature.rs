//! The signature of a webhook's body: HMAC-SHA256 over `<timestamp>.<body>`.

use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use sha2::Sha256;

/// How old a timestamp may be before a receiver should refuse it.
pub const REPLAY_WINDOW: Duration = Duration::from_secs(300);

/// The value of `X-Fleet-Signature`.
pub fn sign(key: &[u8], at: Timestamp, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    mac.update(format!("{}.", at.as_second()).as_bytes());
    mac.update(body.as_bytes());
    let hex: String =
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("v1={hex}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signature_is_that_of_a_vector_computed_elsewhere() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac key
        let at = Timestamp::from_second(1_700_000_000).expect("an instant");
        assert_eq!(
            sign(b"key", at, "{\"a\":1}"),
            "v1=a438e398bfafc57e4396bb7fc2304422f0f768e965d073ca313cb52e22e6ad03"
        );
    }
}
