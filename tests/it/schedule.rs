//! Behaviour of `schedule`.
