//! How a run ended, for people and programs. The field names are stable.

use crate::id::Id;
use crate::words::{Exit, Proof, Reason, Stream, kebab_display};
use serde::{Deserialize, Serialize};

/// Raised when a field changes its meaning; new fields do not raise it.
pub const VERSION: u32 = 1;

/// How a run ended.
///
/// ```
/// use fullstop_core::report::{Report, Verdict};
///
/// let report: Report = serde_json::from_str(r#"{
///     "version": 1, "id": "0r3v8x2k7m4pq", "generation": 1, "command": ["true"],
///     "cage": "cgroup", "state": "ended", "reason": "exited", "exit": {"code": 0},
///     "steps": [], "leftovers": [], "survivors": [], "released": [],
///     "proof": "cgroup-empty", "started_at": 1800000000000, "elapsed_ms": 3
/// }"#)?;
/// assert_eq!(report.state, Verdict::Ended);
/// assert!(report.proof.is_some());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    pub version: u32,
    pub id: Id,
    pub name: Option<String>,
    /// Rises when a run is restarted under the same id.
    pub generation: u32,
    pub command: Vec<String>,
    pub cage: CageKind,
    pub state: Verdict,
    pub reason: Reason,
    /// How the leader ended; nothing if it never became the command.
    pub exit: Option<Exit>,
    /// The steps climbed, in order.
    pub steps: Vec<Taken>,
    /// Who lived on when the leader had exited.
    pub leftovers: Vec<Member>,
    /// Who is still alive, if the run is stuck.
    pub survivors: Vec<Member>,
    /// Who was let go, if the run was released.
    pub released: Vec<Member>,
    pub proof: Option<Proof>,
    /// What became of its output, where that was captured.
    #[serde(default)]
    pub output: Vec<Captured>,
    /// Whether all output came to its end; nothing, where none was captured.
    #[serde(default)]
    pub drained: Option<bool>,
    /// Who outside the run held its output open, if it did not.
    #[serde(default)]
    pub holders: Vec<Holder>,
    /// Why the command could not be started, or what else went wrong.
    pub error: Option<String>,
    /// Milliseconds since 1970.
    pub started_at: u64,
    pub elapsed_ms: u64,
}

impl Report {
    /// No process of the run lives: the kernel said so. That is not known of a run that is stuck,
    /// nor of one that was released, whose processes are not looked after any more.
    pub fn is_proven(&self) -> bool {
        self.state == Verdict::Ended && self.proof.is_some()
    }
}

/// Where a run stands at its end.
///
/// ```
/// use fullstop_core::report::Verdict;
///
/// assert_eq!(Verdict::Stuck.to_string(), "stuck");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    Ended,
    Stuck,
    Released,
}

/// What held a run together.
///
/// ```
/// use fullstop_core::report::CageKind;
///
/// assert_eq!(CageKind::Cgroup.to_string(), "cgroup");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CageKind {
    Cgroup,
    Tree,
}

kebab_display!(Verdict, CageKind);

/// Which cage was asked for.
///
/// ```
/// use fullstop_core::report::Wanted;
///
/// assert_eq!(Wanted::default(), Wanted::Auto);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wanted {
    /// The strongest that can be had.
    #[default]
    Auto,
    Cgroup,
    Tree,
}

/// A step that was taken.
///
/// ```
/// use fullstop_core::report::Taken;
///
/// let step = Taken { step: "term@leader".into(), at_ms: 12, alive: 3, signalled: 1 };
/// assert!(step.signalled <= step.alive);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Taken {
    pub step: String,
    /// Milliseconds since the run began.
    pub at_ms: u64,
    /// The census when the step was taken.
    pub alive: usize,
    /// How many were reached by it.
    pub signalled: usize,
}

/// What became of one stream.
///
/// ```
/// use fullstop_core::report::Captured;
///
/// let out: Captured = serde_json::from_str(r#"{"stream": "out", "bytes": 12}"#)?;
/// assert_eq!((out.bytes, out.cut, out.failure), (12, 0, None));
/// assert_eq!((out.unshown, out.refusal), (0, None));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    pub stream: Stream,
    /// How much the command wrote in this generation.
    pub bytes: u64,
    /// How much of it is not in the log, by its cap or by a failure.
    #[serde(default)]
    pub cut: u64,
    /// Why the log ended before the output did.
    #[serde(default)]
    pub failure: Option<String>,
    /// How much of it was not shown to the owner: what `run --log` was given as stdout or
    /// stderr, or the window of `run --pty`.
    #[serde(default)]
    pub unshown: u64,
    /// Why the owner could not be written; nothing, if it left or was not waited for.
    #[serde(default)]
    pub refusal: Option<String>,
}

/// A stranger that holds a run's output open.
///
/// ```
/// use fullstop_core::report::Holder;
///
/// let holder: Holder = serde_json::from_str(r#"{"pid": 42, "command": "sshd"}"#)?;
/// assert_eq!(holder.pid, 42);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    pub pid: i32,
    pub command: String,
}

/// One living process of a run.
///
/// ```
/// use fullstop_core::report::Member;
///
/// let member: Member = serde_json::from_str(r#"{
///     "pid": 42, "ppid": 7, "pgid": 42, "sid": 42, "uid": 1000, "state": "D", "threads": 1,
///     "start_ticks": 555, "command": "dd if=/dev/sr0"
/// }"#)?;
/// assert_eq!(member.state, 'D');
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    pub pid: i32,
    pub ppid: i32,
    pub pgid: i32,
    pub sid: i32,
    pub uid: u32,
    /// The kernel's letter: R, S, D, T, t, Z, X, I.
    pub state: char,
    pub threads: u32,
    /// Clock ticks after boot.
    pub start_ticks: u64,
    /// The inode in pidfs, which no other process of this boot ever gets.
    pub inode: Option<u64>,
    pub command: String,
    /// Where in the kernel it waits, if it may be seen.
    pub wchan: Option<String>,
}
