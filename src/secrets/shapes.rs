//! How credentials look, whoever they belong to: the one table, for what is masked and for what must not
//! be pasted into a bundle.

use std::ops::Range;
use std::sync::LazyLock;

use regex::{Regex, RegexSet};

/// Whether a text that people write on purpose may hold the shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InProse {
    Never,
    /// Words may look like it: masked, but no fault of a bundle.
    Perhaps,
}

/// Key shapes of well-known issuers, headers, JSON web tokens, private keys, passwords in URLs, each with
/// its name. None matches a quote or a backslash but a private key's `\n`, so that masked JSON stays
/// JSON.
const SHAPES: [(&str, InProse, &str); 14] = [
    ("an API key", InProse::Never, r"\bsk-[A-Za-z0-9_-]{20,}"),
    ("a GitHub token", InProse::Never, r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    ("a GitHub token", InProse::Never, r"\bgithub_pat_[A-Za-z0-9_]{22,}"),
    ("a GitLab token", InProse::Never, r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("a Slack token", InProse::Never, r"\bxox[abprs]-[A-Za-z0-9-]{10,}"),
    ("an AWS access key", InProse::Never, r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b"),
    ("a Google API key", InProse::Never, r"\bAIza[A-Za-z0-9_-]{35}"),
    ("a Google access token", InProse::Never, r"\bya29\.[A-Za-z0-9_-]{20,}"),
    ("an npm token", InProse::Never, r"\bnpm_[A-Za-z0-9]{36}"),
    ("a SendGrid key", InProse::Never, r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    (
        "a JSON web token",
        InProse::Never,
        r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    ),
    (
        "a private key",
        InProse::Never,
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[A-Za-z0-9+/=\s]|\\n|\\r)*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
    ),
    ("a password in a URL", InProse::Never, r#"\bhttps?://[^/\s:@"\\]+:[^/\s:@{$"\\]+@"#),
    (
        "a header with credentials",
        InProse::Perhaps,
        r"(?i)\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{16,}",
    ),
];

/// Of each shape in one text; more is noise.
const MAX_PASTED: usize = 50;

/// All shapes at once: nearly every text has none.
pub(super) static ANY: LazyLock<RegexSet> =
    LazyLock::new(|| RegexSet::new(SHAPES.map(|(.., shape)| shape)).expect("the shapes are valid"));

pub(super) static EACH: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    SHAPES.iter().map(|(.., shape)| Regex::new(shape).expect("the shapes are valid")).collect()
});

/// Credentials in a text that people write: what each looks like and where it stands, shape by shape.
pub fn pasted(text: &str) -> Vec<(&'static str, Range<usize>)> {
    let mut found = Vec::new();
    for hit in ANY.matches(text).iter() {
        let (what, prose, _) = SHAPES[hit];
        if prose == InProse::Never {
            let places = EACH[hit].find_iter(text).take(MAX_PASTED);
            found.extend(places.map(|place| (what, place.range())));
        }
    }
    found
}

/// Whether a text that people write holds a credential.
pub fn holds_credential(text: &str) -> bool {
    ANY.matches(text).iter().any(|hit| SHAPES[hit].1 == InProse::Never)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_masked_like_headers_and_no_fault_of_a_bundle() {
        let text = "use basic internationalization, then Bearer abcdefghijklmnop";
        assert!(ANY.is_match(text));
        assert_eq!((pasted(text), holds_credential(text)), (vec![], false));
        let key = "AKIAIOSFODNN7EXAMPLE and https://me:word@example.com/x";
        let found = [("an AWS access key", 0..20), ("a password in a URL", 25..41)];
        assert_eq!(pasted(key), found);
        assert!(holds_credential(key));
    }

    #[test]
    fn no_shape_reaches_over_the_end_of_a_json_string() {
        let text = r#"{"a":"http://x","b":"c:d@e","k":"-----BEGIN PRIVATE KEY-----\nQUJD","l":1}"#;
        let places: Vec<&str> = pasted(text).into_iter().map(|(_, place)| &text[place]).collect();
        assert_eq!(places, [r"-----BEGIN PRIVATE KEY-----\nQUJD"]);
    }
}
