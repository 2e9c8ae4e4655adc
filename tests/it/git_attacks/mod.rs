//! What a hostile agent does to a repository, in the real container over the real mounts, with real git
//! on both sides. Afterwards the host's git directory and main tree are what they were, but for the
//! run's own branch, fleet's refs and new objects, and what an operator does next runs nothing.

mod history;
mod hosts;
mod lab;
mod leaks;
mod metadata;
