//! Asks a provider over HTTP, in its wire format. Streams, because long answers outlive idle timeouts.

mod assembly;
mod client;
mod failure;
mod provider;
mod response;
mod settings;

pub(super) use assembly::Progress;
pub(super) use failure::{body_fault, error_of};
pub use provider::HttpModel;
pub use settings::{HttpSettings, WireFormat};
