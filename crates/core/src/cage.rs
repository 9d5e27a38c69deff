//! What holds a run together, and its members.

use crate::words::kebab_display;
use serde::{Deserialize, Serialize};

/// What held a run together.
///
/// ```
/// use fullstop_core::cage::CageKind;
///
/// assert_eq!(CageKind::Cgroup.to_string(), "cgroup");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CageKind {
    /// A cgroup of its own, and what a tree cage does besides.
    Cgroup,
    /// Subreapers, which inherit every orphan.
    Tree,
}

kebab_display!(CageKind);

/// Which cage was asked for.
///
/// ```
/// use fullstop_core::cage::CagePreference;
///
/// assert_eq!(CagePreference::default(), CagePreference::Auto);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CagePreference {
    /// The strongest that can be had.
    #[default]
    Auto,
    /// A cgroup, or an error where there can be none.
    Cgroup,
    /// A tree cage, also where a cgroup could be had.
    Tree,
}

/// One living process of a run.
///
/// ```
/// use fullstop_core::cage::Member;
///
/// let member: Member = serde_json::from_str(r#"{
///     "pid": 42, "ppid": 7, "pgid": 42, "sid": 42, "uid": 1000, "state": "D", "threads": 1,
///     "start_ticks": 555, "command": "dd if=/dev/sr0"
/// }"#)?;
/// assert_eq!(member.state, 'D');
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Member {
    /// Its pid.
    pub pid: i32,
    /// The pid of its parent.
    pub ppid: i32,
    /// Its process group.
    pub pgid: i32,
    /// Its session.
    pub sid: i32,
    /// The user whose rights it has.
    pub uid: u32,
    /// The kernel's letter: R, S, D, T, t, Z, X, I.
    pub state: char,
    /// How many threads it has.
    pub threads: u32,
    /// Clock ticks after boot.
    pub start_ticks: u64,
    /// The inode in pidfs, which no other process of this boot ever gets.
    pub inode: Option<u64>,
    /// Its command line.
    pub command: String,
    /// How long it has lived.
    #[serde(default)]
    pub age_ms: u64,
    /// How long it was on a processor.
    #[serde(default)]
    pub cpu_ms: u64,
    /// What it holds in memory; pages that it shares are counted whole.
    #[serde(default)]
    pub memory_bytes: u64,
    /// Where in the kernel it waits, if it may be seen.
    pub wchan: Option<String>,
}

/// A stranger that holds a run's output open.
///
/// ```
/// use fullstop_core::cage::OutputHolder;
///
/// let holder: OutputHolder = serde_json::from_str(r#"{"pid": 42, "command": "sshd"}"#)?;
/// assert_eq!(holder.pid, 42);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutputHolder {
    /// Its pid.
    pub pid: i32,
    /// Its command line.
    pub command: String,
}
