//! Behaviour of `structure`.
