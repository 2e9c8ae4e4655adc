//! Behaviour of `worktree`.
