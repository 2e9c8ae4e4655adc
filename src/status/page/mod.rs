//! The page models: rows of the store and the bundle's view in, what a template shows out. Pure;
//! refuses to know HTTP, SQL or the clock.

pub(crate) mod dead_letters;
mod egress;
pub(crate) mod frame;
pub(crate) mod overview;
pub(crate) mod problems;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod schedule;
pub(crate) mod seal;
pub(crate) mod timeline;

#[cfg(test)]
mod samples;
