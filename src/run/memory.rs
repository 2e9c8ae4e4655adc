//! What a task's runs remember for later ones.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// Keys of a task: the one that was written longest ago goes when there is another.
pub const MAX_MEMORIES: usize = 100;
/// Bytes of a value.
pub const MAX_MEMORY_BYTES: usize = 4096;
/// Bytes of a key.
pub const MAX_MEMORY_KEY_BYTES: usize = 128;

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    pub key: String,
    pub value: String,
    pub updated_at: Timestamp,
}
