//! Behaviour of `store`.
