//! The way out of a sandbox: what passes, what does not, and what is told of it.

mod fetch;
mod gate;
mod gvisor;
mod run;
mod sandbox;
mod system;
mod tls;
mod watch;
