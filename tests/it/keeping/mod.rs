//! What is kept, for how long, and what happens when the disk or the store's file fails.

mod backup;
mod restore;
mod retention;
mod small_disk;
