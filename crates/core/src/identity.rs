//! Which process it is, beyond its pid.

use serde::{Deserialize, Serialize};

/// Enough to know a process again on the same boot, in the same pid namespace.
///
/// ```
/// use fullstop_core::identity::Identity;
///
/// let seen = Identity { pid: 42, start_ticks: 555, inode: Some(7) };
/// let reused = Identity { inode: Some(8), ..seen };
/// assert_ne!(seen, reused, "the same pid, another process");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Identity {
    /// Its pid.
    pub pid: i32,
    /// Clock ticks after boot.
    pub start_ticks: u64,
    /// The inode in pidfs, which no other process of this boot ever gets.
    pub inode: Option<u64>,
}
