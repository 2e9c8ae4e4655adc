//! The one way out of a sealed sandbox: an allowlisting HTTP proxy inside fleet, on a unix socket of
//! one sandbox. Names are resolved here, every address is checked and then dialled as it was checked,
//! every verdict is an event. Refuses addresses instead of names, everything that is not public, and
//! whatever the task does not allow. Knows nothing of containers, tasks or models.

mod address;
mod dial;
mod fetch;
mod gate;
mod head;
mod name;
mod pattern;
mod policy;
mod proxy;
mod refusal;
mod relay;
mod verdicts;

pub use address::{AddressPolicy, range_of};
pub use dial::{Dialer, Resolve, SystemResolver};
pub use fetch::{FetchError, FetchLimits, Fetched, fetch};
pub use gate::{Caps, Gate};
pub use name::{HostName, NameError, Target};
pub use pattern::{HostPattern, PatternError};
pub use policy::{NetworkPolicy, carries_host_sockets};
pub use proxy::Proxy;
pub use refusal::Refusal;

/// Ports that are allowed where none is named: HTTPS and HTTP.
pub const DEFAULT_PORTS: [u16; 2] = [443, 80];
