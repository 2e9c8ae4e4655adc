//! Behaviour of `agent`.
