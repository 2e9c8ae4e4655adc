//! Values that must never be seen: the redaction of text before it is stored, logged or shown. Refuses
//! to keep a secret anywhere but in memory.

mod redactor;
mod shapes;
mod writer;

pub use redactor::{MASK, Redactor};
pub use shapes::{holds_credential, pasted};
pub use writer::RedactingWriter;
