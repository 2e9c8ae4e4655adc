//! Behaviour of `config`.
