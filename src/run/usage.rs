//! What a run consumed.

use std::fmt;
use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// An amount of money in billionths of a US dollar: one token's price is a whole number of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NanoUsd(pub u64);

impl NanoUsd {
    /// Rounds up, so that a cost is never understated. Negative and non-finite amounts become zero.
    pub fn from_usd(usd: f64) -> Self {
        // `as` saturates, and turns NaN into 0.
        NanoUsd((usd * 1e9).ceil() as u64)
    }

    /// The amount in US dollars.
    pub fn as_usd(self) -> f64 {
        self.0 as f64 / 1e9
    }
}

impl Add for NanoUsd {
    type Output = NanoUsd;
    fn add(self, other: NanoUsd) -> NanoUsd {
        NanoUsd(self.0.saturating_add(other.0))
    }
}

impl AddAssign for NanoUsd {
    fn add_assign(&mut self, other: NanoUsd) {
        *self = *self + other;
    }
}

impl fmt::Display for NanoUsd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.4}", self.as_usd())
    }
}

/// Tokens and money, of one model call or of many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens that were not read from a cache.
    pub input_tokens: u64,
    /// Prompt tokens that were read from a cache.
    pub cached_tokens: u64,
    pub output_tokens: u64,
    pub cost_nano_usd: NanoUsd,
    /// The cost or the tokens are fleet's estimate, in part or whole: the provider did not say.
    pub estimated: bool,
}

impl Usage {
    /// Tokens that count against `max_total_tokens`: prompt − cached + completion.
    pub fn counted_tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cost_nano_usd += other.cost_nano_usd;
        self.estimated |= other.estimated;
    }
}
