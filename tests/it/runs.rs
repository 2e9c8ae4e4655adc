//! Behaviour of `runs`.
