//! How full the model's context window is. Pure: what to do about it is decided elsewhere.

use crate::model::ModelError;

/// When fleet acts on a prompt that grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContextPolicy {
    /// The share of the window from which an event warns (default 0.75).
    pub warn_fraction: f64,
    /// The share from which the history is compacted, where `auto_compact` is on (default 0.9).
    pub compact_fraction: f64,
    /// Compact before the provider refuses. A prompt that was refused is compacted in any case.
    pub auto_compact: bool,
}

/// What is known of the prompt's size and the window's.
#[derive(Debug, Default)]
pub(super) struct Pressure {
    /// From a provider's refusal: better than any table.
    observed_window: Option<u64>,
    /// The last prompt: as the provider counted it, and as it was estimated.
    last: Option<(u64, u64)>,
    pub(super) warned: bool,
    /// Refusals in a row.
    pub(super) overflows: u32,
}

impl Pressure {
    /// The window in tokens.
    pub(super) fn window(&self, catalog: u64) -> u64 {
        self.observed_window.unwrap_or(catalog).max(1)
    }

    /// The size of a prompt that is estimated at `estimate` tokens: what the provider counted last, and
    /// what was added since.
    pub(super) fn tokens(&self, estimate: u64) -> u64 {
        match self.last {
            Some((counted, estimated)) if estimate >= estimated => {
                counted.saturating_add(estimate - estimated)
            }
            _ => estimate,
        }
    }

    /// A prompt was answered.
    pub(super) fn answered(&mut self, counted: Option<u64>, estimate: u64) {
        self.last = counted.filter(|tokens| *tokens > 0).map(|tokens| (tokens, estimate));
        self.overflows = 0;
    }

    /// A prompt was refused because it is too long.
    pub(super) fn refused(&mut self, error: &ModelError, estimate: u64) {
        // Where the provider does not say, less than what it refused.
        let window = error.window_tokens.unwrap_or_else(|| self.tokens(estimate) / 10 * 9);
        self.observed_window = Some(self.observed_window.map_or(window, |known| known.min(window)));
        self.overflows += 1;
    }

    /// The history was cut: what was counted before says nothing any more.
    pub(super) fn compacted(&mut self) {
        self.last = None;
        self.warned = false;
    }
}

/// The share of the window that is filled.
pub(super) fn share(tokens: u64, window: u64) -> f64 {
    tokens as f64 / window as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::ModelErrorClass;

    fn overflow(window_tokens: Option<u64>) -> ModelError {
        ModelError {
            class: ModelErrorClass::ContextOverflow,
            provider: "p".to_owned(),
            message: String::new(),
            retry_after: None,
            perhaps_billed: false,
            window_tokens,
        }
    }

    #[test]
    fn the_providers_count_is_taken_and_what_came_since_is_added() {
        let mut pressure = Pressure::default();
        assert_eq!(pressure.tokens(100), 100);
        pressure.answered(Some(150), 100);
        assert_eq!(pressure.tokens(120), 170);
        pressure.compacted();
        assert_eq!(pressure.tokens(60), 60);
        pressure.answered(Some(0), 60);
        assert_eq!(pressure.tokens(70), 70);
    }

    #[test]
    fn a_refusal_tells_the_window_or_that_it_is_smaller() {
        let mut pressure = Pressure::default();
        assert_eq!(pressure.window(1000), 1000);
        pressure.refused(&overflow(None), 800);
        assert_eq!((pressure.window(1000), pressure.overflows), (720, 1));
        pressure.refused(&overflow(Some(500)), 800);
        assert_eq!((pressure.window(1000), pressure.overflows), (500, 2));
        pressure.answered(None, 10);
        assert_eq!(pressure.overflows, 0);
    }
}
