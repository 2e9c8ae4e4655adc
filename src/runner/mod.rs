//! Ticks, claims, executes, finishes, recovers.
