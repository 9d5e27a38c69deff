//! A living member, and what became of the steps of a stop that reached it.

use fullstop_core::cage::Member;
use serde::{Deserialize, Serialize};

/// A living member, and what became of the steps of a stop that reached it.
///
/// ```
/// use fullstop_protocol::TrackedMember;
///
/// let survivor: TrackedMember = serde_json::from_str(r#"{
///     "pid": 71, "ppid": 70, "pgid": 70, "sid": 70, "uid": 0, "state": "D", "threads": 1,
///     "start_ticks": 267915, "command": "sync",
///     "asked_by": ["term@tree", "kill"], "outlived": ["term@tree", "kill"]
/// }"#)?;
/// assert_eq!((survivor.member.pid, survivor.asked_by), (71, survivor.outlived));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TrackedMember {
    /// The process.
    #[serde(flatten)]
    pub member: Member,
    /// The steps whose signal it got, as far as the process that tells of it has seen them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asked_by: Vec<String>,
    /// Those of them that are over, while it lives.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outlived: Vec<String>,
}

/// A member of which it is not known which steps have reached it.
impl From<Member> for TrackedMember {
    fn from(member: Member) -> TrackedMember {
        TrackedMember { member, asked_by: Vec::new(), outlived: Vec::new() }
    }
}
