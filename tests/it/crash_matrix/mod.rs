//! Each named point of the source at which the daemon may die: kill -9 there, start again, and look
//! at everything. Only in the build with `fault-injection`.

mod complete;
mod hung;
mod notices;
mod points;
mod stage;
