//! Behaviour of the helper program, spoken to directly over its protocol. It runs here as a plain
//! process: the container's seal is tested elsewhere.

mod commands;
mod connection;
mod driver;
mod figures;
mod files;
mod git;
mod kernel;
mod races;
