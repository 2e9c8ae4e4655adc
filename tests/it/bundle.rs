//! Behaviour of `bundle`.
