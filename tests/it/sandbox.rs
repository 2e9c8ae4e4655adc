//! Behaviour of `sandbox`.
