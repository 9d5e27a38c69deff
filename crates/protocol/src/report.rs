//! The report: how a run ended, for people and programs. The field names are stable.

use crate::asker::Asker;
use crate::claim::{Claim, KernelAnswers};
use crate::state::RunState;
use crate::timestamp::Timestamp;
use crate::tracked_member::TrackedMember;
use crate::word::Word;
use fullstop_core::cage::{CageKind, Member, OutputHolder};
use fullstop_core::id::Id;
use fullstop_core::words::{Exit, Reason, Stream};
use serde::{Deserialize, Serialize};

/// The version of the report. Raised when a field changes its meaning; new fields do not
/// raise it.
pub const REPORT_VERSION: u32 = 2;

/// How a run ended, or that it is stuck.
///
/// ```
/// use fullstop_protocol::Report;
///
/// let report: Report = serde_json::from_str(r#"{
///     "version": 2, "id": "0r3v8x2k7m4pq", "generation": 1, "command": ["true"],
///     "cage": "cgroup", "state": "ended", "reason": "exited", "at": "2027-01-15T08:00:00.003Z",
///     "exit": {"code": 0}, "proof": "cgroup-empty",
///     "started_at": "2027-01-15T08:00:00.000Z", "elapsed_ms": 3
/// }"#)?;
/// assert!(report.is_proven());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The version of this format.
    pub version: u32,
    /// The id of the run.
    pub id: Id,
    /// The name that it was given.
    #[serde(default)]
    pub name: Option<String>,
    /// Rises when a run is restarted under the same id.
    pub generation: u32,
    /// What ran, word by word.
    pub command: Vec<String>,
    /// What held its members together.
    pub cage: Word<CageKind>,
    /// Ended, stuck or released.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(with = "crate::schema::ReportedState"))]
    pub state: RunState,
    /// Since when it stands so.
    pub at: Timestamp,
    /// The process that asked for the end; nothing, if it came by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked: Option<Asker>,
    /// How the leader ended; nothing if it never became the command.
    #[serde(default)]
    pub exit: Option<Exit>,
    /// The steps climbed, in order.
    #[serde(default)]
    pub steps: Vec<StepRecord>,
    /// The members that lived on when the leader had exited.
    #[serde(default)]
    pub leftovers: Vec<Member>,
    /// The members that are still alive, if the run is stuck.
    #[serde(default)]
    pub survivors: Vec<TrackedMember>,
    /// The members that were let go, if the run was released.
    #[serde(default)]
    pub released: Vec<Member>,
    /// Why no process of the run is left. Here it is a claim.
    #[serde(default)]
    pub proof: Option<Claim>,
    /// What the kernel answered when that was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelAnswers>,
    /// What became of its output, where that was captured.
    #[serde(default)]
    pub output: Vec<CapturedStream>,
    /// Whether all output came to its end; nothing, where none was captured.
    #[serde(default)]
    pub drained: Option<bool>,
    /// The processes outside the run that held its output open, if it did not.
    #[serde(default)]
    pub holders: Vec<OutputHolder>,
    /// Why the command could not be started, or what else went wrong.
    #[serde(default)]
    pub error: Option<String>,
    /// When this generation began.
    pub started_at: Timestamp,
    /// How long the run took; suspend is not counted.
    pub elapsed_ms: u64,
}

impl Report {
    /// Why it has ended; of a state that only a later fullstop knows that is unknown too.
    pub fn reason(&self) -> Word<Reason> {
        self.state.reason().cloned().unwrap_or_else(|| Word::Other("unknown".to_owned()))
    }

    /// Whether the state is *ended*. A run that was released is over, and has not ended.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, RunState::Ended { .. })
    }

    /// No process of the run lives: the kernel said so. That is not known of a run that is stuck,
    /// nor of a released run, whose processes are not looked after any more.
    pub fn is_proven(&self) -> bool {
        self.has_ended() && self.proof.is_some()
    }
}

/// A step of a ladder that was taken.
///
/// ```
/// use fullstop_protocol::StepRecord;
///
/// let step = StepRecord { step: "term@leader".into(), at_ms: 12, alive: 3, signalled: 1 };
/// assert!(step.signalled <= step.alive);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StepRecord {
    /// The step, as a ladder writes it.
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
/// use fullstop_protocol::CapturedStream;
///
/// let out: CapturedStream = serde_json::from_str(r#"{"stream": "out", "bytes": 12}"#)?;
/// assert_eq!((out.bytes, out.cut, out.failure), (12, 0, None));
/// assert_eq!((out.unshown, out.refusal), (0, None));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapturedStream {
    /// Which stream it is.
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
