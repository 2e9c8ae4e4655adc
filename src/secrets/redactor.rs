//! Masks secrets in text.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use regex::Regex;

use super::shapes;

/// What stands in a secret's place.
pub const MASK: &str = "[redacted]";

/// Shorter values would mask ordinary text.
const SHORTEST: usize = 8;

/// Masks the literals of every registered secret, and everything in the shape of a credential. Cheap
/// to clone; clones share the literals.
#[derive(Clone, Default)]
pub struct Redactor {
    literals: Arc<RwLock<Literals>>,
}

#[derive(Default)]
struct Literals {
    known: Vec<String>,
    /// Matches any of them, the longest first.
    any: Option<Regex>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

impl Redactor {
    /// Registers a secret's value, in the forms in which it may appear: as it is, JSON-escaped,
    /// percent-encoded, base64. Shorter than 8 characters is ignored.
    pub fn register(&self, secret: &str) {
        let secret = secret.trim();
        if secret.len() < SHORTEST {
            return;
        }
        let mut literals = self.literals.write().unwrap_or_else(PoisonError::into_inner);
        let before = literals.known.len();
        for form in
            [secret.to_owned(), json_escaped(secret), percent_encoded(secret), base64(secret)]
        {
            if !literals.known.contains(&form) {
                literals.known.push(form);
            }
        }
        if literals.known.len() > before {
            literals.rebuild();
        }
    }

    /// Where secrets stand in a text, in order and not overlapping. A secret that is cut in two is
    /// masked no more.
    pub fn spans(&self, text: &str) -> Vec<Range<usize>> {
        let literals = self.literals.read().unwrap_or_else(PoisonError::into_inner);
        let hits = shapes::ANY.matches(text);
        let patterns = literals.any.iter().chain(hits.iter().map(|hit| &shapes::EACH[hit]));
        let mut found: Vec<Range<usize>> =
            patterns.flat_map(|pattern| pattern.find_iter(text)).map(|hit| hit.range()).collect();
        found.sort_by_key(|span| span.start);
        let mut spans: Vec<Range<usize>> = Vec::with_capacity(found.len());
        for span in found {
            match spans.last_mut() {
                Some(last) if span.start < last.end => last.end = last.end.max(span.end),
                _ => spans.push(span),
            }
        }
        spans
    }

    /// The text with every secret replaced by [`MASK`].
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = Cow::Borrowed(text);
        let literals = self.literals.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(any) = &literals.any {
            replace(&mut masked, any);
        }
        let hits = shapes::ANY.matches(&masked);
        for hit in hits.iter() {
            replace(&mut masked, &shapes::EACH[hit]);
        }
        masked
    }
}

fn replace(text: &mut Cow<'_, str>, pattern: &Regex) {
    if let Cow::Owned(replaced) = pattern.replace_all(text, MASK) {
        *text = Cow::Owned(replaced);
    }
}

impl Literals {
    fn rebuild(&mut self) {
        // A secret that contains another one must be masked whole.
        self.known.sort_by_key(|literal| std::cmp::Reverse(literal.len()));
        let escaped: Vec<String> =
            self.known.iter().map(|literal| regex::escape(literal)).collect();
        self.any = regex::RegexBuilder::new(&escaped.join("|")).size_limit(64 << 20).build().ok();
        assert!(self.any.is_some(), "secrets too large to be masked are not accepted");
    }
}

fn json_escaped(secret: &str) -> String {
    let quoted = serde_json::to_string(secret).expect("text is JSON");
    quoted[1..quoted.len() - 1].to_owned()
}

fn percent_encoded(secret: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    secret
        .bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Standard base64 of the whole value, without padding: padded or not, it is found.
fn base64(secret: &str) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in secret.as_bytes().chunks(3) {
        let bits =
            (0..3).fold(0_u32, |bits, i| bits << 8 | u32::from(chunk.get(i).copied().unwrap_or(0)));
        for i in 0..=chunk.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * i) & 63) as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registered_secret_is_masked_in_every_form() {
        let redactor = Redactor::default();
        redactor.register("pa\"ss word/1");
        for text in [
            "x pa\"ss word/1 y",
            r#"{"a":"pa\"ss word/1"}"#,
            "u=pa%22ss%20word%2F1",
            "cGEic3Mgd29yZC8x",
        ] {
            let masked = redactor.redact(text);
            assert!(masked.contains(MASK), "{text} became {masked}");
        }
    }

    #[test]
    fn secret_inside_an_error_text_is_masked_by_its_value() {
        let redactor = Redactor::default();
        redactor.register("hunter2hunter2");
        assert_eq!(
            redactor.redact("login failed for hunter2hunter2: denied"),
            "login failed for [redacted]: denied"
        );
    }

    #[test]
    fn credential_shapes_are_masked_without_being_registered() {
        let redactor = Redactor::default();
        for text in [
            "sk-abcdefghijklmnopqrstuvwxyz",
            "ghp_abcdefghijklmnopqrstuvwxyz0123456789",
            "Authorization: Bearer abcdefghijklmnop.qrst",
            "eyJhbGciOiJI.eyJzdWIiOiIx.c2lnbmF0dXJl",
            "AKIAIOSFODNN7EXAMPLE",
        ] {
            assert!(redactor.redact(text).contains(MASK), "{text}");
            assert!(super::shapes::ANY.is_match(text), "{text}");
        }
        assert_eq!(
            redactor.redact("basic research, bearer of news"),
            "basic research, bearer of news"
        );
    }

    #[test]
    fn spans_are_whole_and_in_order() {
        let redactor = Redactor::default();
        redactor.register("hunter2hunter2");
        let text = "AKIAIOSFODNN7EXAMPLE hunter2hunter2 Bearer hunter2hunter2abcdef";
        assert_eq!(redactor.spans(text), [0..20, 21..35, 36..63]);
        assert_eq!(redactor.spans("nothing"), Vec::<Range<usize>>::new());
    }

    #[test]
    fn short_values_are_not_registered() {
        let redactor = Redactor::default();
        redactor.register("true");
        assert_eq!(redactor.redact("true"), "true");
    }
}
