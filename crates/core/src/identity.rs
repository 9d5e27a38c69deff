//! Who a process is, beyond its pid.

use serde::{Deserialize, Serialize};

/// Enough to know a process again on the same boot, in the same pid namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Identity {
    pub pid: i32,
    /// Clock ticks after boot.
    pub start_ticks: u64,
    /// The inode in pidfs, which no other process of this boot ever gets.
    pub inode: Option<u64>,
}
