//! The bundle's files as they are written: every key optional, unknown keys denied. The JSON Schemas
//! are made from these types, whose comments are the keys' documentation.

mod manifest;
mod network;
mod notify;
mod permissions;
mod persona;
mod policies;
mod script;
mod task;
mod text;

pub(super) use manifest::{
    RawDefaults, RawManifest, RawPricing, RawProvider, RawProviderType, RawSandbox,
};
pub(super) use network::RawNetwork;
pub(super) use notify::{RawChannel, RawChannelType, RawNoticeEvent, RawTls};
pub(super) use permissions::RawToolPermissions;
pub(super) use persona::RawPersona;
pub(super) use policies::{RawMisfire, RawMisfirePolicy, RawOnError, RawOverlap, RawRunIf};
pub(super) use script::{RawFault, RawScript, RawStop, RawToolCall, RawTurn, RawUsage};
pub(super) use task::{
    RawBackoff, RawCompletion, RawLimits, RawRetryPolicy, RawSandboxLimits, RawTask,
    RawWorktreeConfig,
};
pub(super) use text::DurationText;
