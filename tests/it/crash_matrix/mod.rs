//! Each named point of the source at which the daemon may die: kill -9 there, start again, and look
//! at everything. Only in the build with `fault-injection`.

mod stage;
mod complete;
mod leftovers;
mod points;
