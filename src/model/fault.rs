//! Sorts a provider's failures into classes: by structured code first, then by status, and by wording
//! only where providers agree on no code (a prompt that is too long).

use super::ModelErrorClass;

/// What a provider said when it refused a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fault {
    /// The HTTP status, or a numeric code inside a body that came with 200.
    pub(super) status: Option<u16>,
    /// `error.code` or `error.type`, lower case.
    pub(super) codes: Vec<String>,
    pub(super) message: String,
    /// The body was empty.
    pub(super) bare: bool,
}

/// Codes that say the prompt does not fit.
const OVERFLOW_CODES: [&str; 5] = [
    "context_length_exceeded",
    "exceed_context_size_error",
    "context_window_exceeded",
    "model_max_prompt_tokens_exceeded",
    "request_too_large",
];

/// Wordings that say the prompt does not fit, in lower case.
const OVERFLOW_WORDINGS: [&str; 15] = [
    "maximum context length",
    "context length exceeded",
    "context_length_exceeded",
    "available context size",
    "exceeds the context window",
    "context window exceeds",
    "context window exceeded",
    "prompt is too long",
    "prompt too long",
    "maximum prompt length",
    "exceeds the maximum number of tokens allowed",
    "exceed context limit",
    "reduce the length of the messages",
    "exceeded max context length",
    "longer than the model's context length",
];

/// What stands before the window in such refusals (OpenAI and vLLM; llama.cpp; others).
const WINDOW_WORDINGS: [&str; 4] = [
    "maximum context length is ",
    "available context size (",
    "context window of ",
    "maximum prompt length is ",
];

/// The number that a text begins with, groups of digits joined.
fn number(text: &str) -> Option<u64> {
    let digits: String = text
        .chars()
        .take_while(|c| c.is_ascii_digit() || *c == ',')
        .filter(char::is_ascii_digit)
        .collect();
    digits.parse().ok()
}

/// Codes for which sending the request again cannot help.
const CONFIG_CODES: [&str; 10] = [
    "invalid_api_key",
    "authentication_error",
    "permission_error",
    "permission_denied",
    "insufficient_quota",
    "billing_hard_limit_reached",
    "invalid_request_error",
    "model_not_found",
    "not_found_error",
    "unsupported_parameter",
];

impl Fault {
    /// The class of this failure.
    pub(super) fn class(&self) -> ModelErrorClass {
        if self.is_overflow() {
            return ModelErrorClass::ContextOverflow;
        }
        let spent_out =
            ["insufficient_quota", "billing_hard_limit_reached"].iter().any(|c| self.has_code(c));
        match self.status {
            _ if spent_out => ModelErrorClass::Config,
            Some(408 | 409 | 425 | 429 | 500..=599) => ModelErrorClass::Transient,
            Some(300..=499) => ModelErrorClass::Config,
            _ if CONFIG_CODES.iter().any(|code| self.has_code(code)) => ModelErrorClass::Config,
            _ => ModelErrorClass::Transient,
        }
    }

    /// The context window that a refusal of a long prompt names.
    pub(super) fn window_tokens(&self) -> Option<u64> {
        if !self.is_overflow() {
            return None;
        }
        let message = self.message.to_lowercase();
        let after = WINDOW_WORDINGS.iter().find_map(|wording| {
            let (_, rest) = message.split_once(wording)?;
            number(rest)
        });
        // Anthropic: "prompt is too long: 210000 tokens > 200000 maximum".
        let anthropic = || number(message.split_once("tokens > ")?.1);
        after.or_else(anthropic).filter(|tokens| *tokens > 0)
    }

    fn has_code(&self, code: &str) -> bool {
        self.codes.iter().any(|seen| seen == code)
    }

    fn is_overflow(&self) -> bool {
        if OVERFLOW_CODES.iter().any(|code| self.has_code(code)) {
            return true;
        }
        // Older llama.cpp servers say it with 500; nobody says it with 401 or 429.
        match self.status {
            Some(400 | 413) if self.bare => true,
            None | Some(400 | 413 | 422 | 500) => {
                let message = self.message.to_lowercase();
                OVERFLOW_WORDINGS.iter().any(|wording| message.contains(wording))
            }
            Some(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(status: u16, code: &str, message: &str) -> ModelErrorClass {
        Fault {
            status: Some(status),
            codes: vec![code.to_owned()],
            message: message.to_owned(),
            bare: false,
        }
        .class()
    }

    #[test]
    fn every_wording_of_a_prompt_that_is_too_long_is_an_overflow() {
        let overflow = ModelErrorClass::ContextOverflow;
        assert_eq!(fault(400, "context_length_exceeded", "too long"), overflow);
        let vllm =
            "This model's maximum context length is 4096 tokens. However, you requested 9000";
        assert_eq!(fault(400, "badrequesterror", vllm), overflow);
        let llama = "the request exceeds the available context size, try increasing it";
        assert_eq!(fault(400, "exceed_context_size_error", llama), overflow);
        assert_eq!(fault(500, "server_error", llama), overflow);
        let bare = Fault { status: Some(400), bare: true, ..Fault::default() };
        assert_eq!(bare.class(), overflow);
    }

    #[test]
    fn the_window_is_read_from_the_refusal() {
        let window = |message: &str| {
            let fault =
                Fault { status: Some(400), message: message.to_owned(), ..Fault::default() };
            fault.window_tokens()
        };
        assert_eq!(
            window("This model's maximum context length is 8,192 tokens. However, you"),
            Some(8192)
        );
        assert_eq!(window("prompt is too long: 210000 tokens > 200000 maximum"), Some(200_000));
        assert_eq!(
            window("request (9000 tokens) exceeds the available context size (4096 tokens)"),
            Some(4096)
        );
        assert_eq!(window("prompt too long"), None);
        assert_eq!(window("tokens > 5"), None);
    }

    #[test]
    fn statuses_decide_where_no_code_does() {
        for status in [408, 429, 500, 502, 503, 529] {
            assert_eq!(fault(status, "", "busy"), ModelErrorClass::Transient, "{status}");
        }
        for status in [301, 400, 401, 402, 403, 404, 422] {
            assert_eq!(fault(status, "", "no"), ModelErrorClass::Config, "{status}");
        }
        assert_eq!(fault(429, "insufficient_quota", "pay"), ModelErrorClass::Config);
    }

    #[test]
    fn an_error_inside_a_200_is_transient_unless_its_code_says_otherwise() {
        let inside =
            |code: &str| Fault { codes: vec![code.to_owned()], ..Fault::default() }.class();
        assert_eq!(inside("overloaded_error"), ModelErrorClass::Transient);
        assert_eq!(inside("invalid_api_key"), ModelErrorClass::Config);
        assert_eq!(inside("context_length_exceeded"), ModelErrorClass::ContextOverflow);
    }
}
