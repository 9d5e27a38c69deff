//! The record: how a run stands, and all that a list shows of it.

use crate::asker::Asker;
use crate::labels::Labels;
use crate::launch::Host;
use crate::report::Report;
use crate::state::RunState;
use crate::timestamp::Timestamp;
use crate::word::Word;
use crate::world::World;
use fullstop_core::cage::CageKind;
use fullstop_core::id::Id;
use fullstop_core::identity::Identity;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The version of the record. Raised when a field changes its meaning; new fields do not
/// raise it.
pub const RECORD_VERSION: u32 = 2;

/// How a run stands. It needs no spec beside it.
///
/// ```
/// use fullstop_protocol::Record;
///
/// let record: Record = serde_json::from_str(r#"{
///     "version": 2, "id": "0r3v8x2k7m4pq", "generation": 1, "command": ["claude"],
///     "state": "running", "at": "2027-01-15T08:00:00.000Z", "events": 1, "cage": "cgroup",
///     "cgroup": "/sys/fs/cgroup/fullstop-0r3v8x2k7m4pq", "cgroup_inode": 4711,
///     "world": {"machine": "a", "boot": "b", "pid_namespace": 4026531836},
///     "started_at": "2027-01-15T08:00:00.000Z"
/// }"#)?;
/// assert_eq!(record.state.word(), "running");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Record {
    /// The version of this format.
    pub version: u32,
    /// The id of the run.
    pub id: Id,
    /// The name that it was given.
    #[serde(default)]
    pub name: Option<String>,
    /// The group that it is in.
    #[serde(default)]
    pub group: Option<String>,
    /// Its labels.
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// How often it has been started.
    pub generation: u32,
    /// What runs, word by word.
    pub command: Vec<String>,
    /// How it stands.
    #[serde(flatten)]
    pub state: RunState,
    /// Since when it stands so.
    pub at: Timestamp,
    /// How many events there were, through all generations.
    #[serde(default)]
    pub events: u64,
    /// The process that asked for the end; nothing, if it came by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asker>,
    /// The program that the run belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Host>,
    /// What holds its members together.
    pub cage: Word<CageKind>,
    /// Its cgroup, where it has one.
    #[serde(default, with = "crate::path")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<crate::Text>"))]
    pub cgroup: Option<PathBuf>,
    /// What tells this cgroup, and the one above it, from others at the same place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_inode: Option<u64>,
    /// The inode of the directory above the cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup_parent_inode: Option<u64>,
    /// Where the members stand, if there is no cgroup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ancestry: Option<Ancestry>,
    /// The machine, the boot and the namespaces in which the pids of this record mean something.
    pub world: World,
    /// Its keeper.
    #[serde(default)]
    pub keeper: Option<Identity>,
    /// Its guard.
    #[serde(default)]
    pub guard: Option<Identity>,
    /// Its first process.
    #[serde(default)]
    pub leader: Option<Identity>,
    /// The members when last counted, where there is no cgroup to tell; of version 1, before
    /// they had a file of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub census: Vec<Identity>,
    /// The members stand in a file of their own. From then on its absence says nothing of
    /// theirs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_members_file: bool,
    /// When this generation began.
    pub started_at: Timestamp,
    /// The inode of the lock, as the spec has it. A record that has none was written before
    /// a record could be read alone, and is read together with its spec.
    #[serde(default)]
    pub lock: Option<u64>,
    /// Once it is ended, released or stuck.
    #[serde(default)]
    pub report: Option<Report>,
}

/// Where the members of a cage without a cgroup stand.
///
/// ```
/// use fullstop_core::identity::Identity;
/// use fullstop_protocol::Ancestry;
///
/// let guard = Identity { pid: 42, start_ticks: 555, inode: None };
/// let ancestry = Ancestry { guard, line: vec![], place: Some("/user.slice".into()) };
/// assert!(ancestry.line.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Ancestry {
    /// No member is older than the guard.
    pub guard: Identity,
    /// The guard's ancestors when it began: where orphans of the run end up.
    pub line: Vec<Identity>,
    /// The cgroup in which all members are born.
    pub place: Option<String>,
}
