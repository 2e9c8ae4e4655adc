//! The loop: a scripted model and a sandbox without a container.

mod bench;
mod budget;
mod calls;
mod compaction;
mod dispatch;
mod ends;
mod fallback;
mod finish;
mod history;
mod memory;
mod tools;
