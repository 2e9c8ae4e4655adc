//! How credentials look, whoever they belong to.

use std::sync::LazyLock;

use regex::{Regex, RegexSet};

/// Key shapes of well-known issuers, bearer and basic headers, JSON web tokens, private keys. None
/// matches a quote or a backslash, so that redacted JSON stays JSON.
const SHAPES: [&str; 13] = [
    r"\bsk-[A-Za-z0-9_-]{20,}",
    r"\bgh[pousr]_[A-Za-z0-9]{30,}",
    r"\bgithub_pat_[A-Za-z0-9_]{22,}",
    r"\bglpat-[A-Za-z0-9_-]{20,}",
    r"\bxox[abprs]-[A-Za-z0-9-]{10,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
    r"\bAIza[A-Za-z0-9_-]{35}",
    r"\bya29\.[A-Za-z0-9_-]{20,}",
    r"\bnpm_[A-Za-z0-9]{36}",
    r"\bSG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",
    r"(?i)\b(?:bearer|basic)\s+[A-Za-z0-9._~+/=-]{16,}",
    r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?:[A-Za-z0-9+/=\s]|\\n|\\r)*(?:-----END [A-Z ]*PRIVATE KEY-----)?",
];

pub(super) static ANY: LazyLock<RegexSet> =
    LazyLock::new(|| RegexSet::new(SHAPES).expect("the shapes are valid"));

pub(super) static EACH: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    SHAPES.iter().map(|shape| Regex::new(shape).expect("the shapes are valid")).collect()
});
