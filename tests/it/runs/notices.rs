//! From the end of a run to what people are told.
