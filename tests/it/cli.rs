//! Behaviour of `cli`.
