//! Behaviour of `crash`.
