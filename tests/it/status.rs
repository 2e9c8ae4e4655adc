//! Behaviour of `status`.
