//! What happened to a run, one event after the other.

use crate::asker::Asker;
use crate::claim::Claim;
use crate::launch::Host;
use crate::report::Report;
use crate::spec::HostPolicy;
use crate::state::RunState;
use crate::timestamp::Timestamp;
use crate::word::Word;
use fullstop_core::id::Id;
use fullstop_core::words::{Exit, Reason, Stream};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Something that happened to a run.
///
/// ```
/// use fullstop_protocol::{Event, EventKind};
///
/// let line = r#"{"number":7,"at":"2027-01-15T08:00:00.000Z","id":"0r3v8x2k7m4pq",
///                "generation":1,"type":"stuck","survivors":2}"#;
/// let event: Event = serde_json::from_str(line)?;
/// assert_eq!(event.kind, EventKind::Stuck { survivors: 2 });
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Event {
    /// The place among the events of this run, from 1 on, through all its generations.
    pub number: u64,
    /// When it happened.
    pub at: Timestamp,
    /// The run that it happened to.
    pub id: Id,
    /// The generation of the run.
    pub generation: u32,
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
}

/// What happened.
///
/// ```
/// use fullstop_protocol::EventKind;
///
/// let kind = EventKind::Released { released: 1 };
/// assert_eq!(serde_json::to_string(&kind)?, r#"{"type":"released","released":1}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(transform = crate::schema::keep_kinds_apart))]
#[serde(tag = "type", rename_all = "kebab-case")]
pub enum EventKind {
    /// The command runs.
    Started {
        /// What runs, word by word.
        command: Vec<String>,
        /// The pid of its first process.
        leader: Option<i32>,
    },
    /// The end was asked for.
    Asked {
        /// By which process, as far as is known.
        asker: Asker,
    },
    /// A step of a stop was taken.
    Step {
        /// The step, as a ladder writes it.
        step: String,
        /// How many were alive when it was taken.
        alive: usize,
        /// How many of them were sent the signal.
        signalled: usize,
        /// Why the run is being stopped.
        reason: Word<Reason>,
    },
    /// The first process has exited; others may live.
    LeaderExited {
        /// How it exited.
        exit: Exit,
    },
    /// The log of a stream ended before the stream did; the command goes on.
    LogFailed {
        /// The stream whose log it is.
        stream: Stream,
        /// What went wrong.
        why: String,
    },
    /// The state directory, or the run's part of it, was removed while the run was live.
    Restored {
        /// The names that were made anew.
        restored: Vec<String>,
        /// What cannot be had back: `events`, and the streams whose log was removed.
        lost: Vec<String>,
    },
    /// It has another host, whose death means this.
    Adopted {
        /// The host.
        host: Host,
        /// What its death means.
        on_host_exit: HostPolicy,
    },
    /// The last step was taken, and there is no proof.
    Stuck {
        /// How many live.
        survivors: usize,
    },
    /// It is over, with a proof.
    Ended {
        /// Why it ended.
        reason: Word<Reason>,
        /// How its first process exited, if it ever ran.
        exit: Option<Exit>,
        /// Why it may be said to be over.
        proof: Option<Claim>,
    },
    /// The first process exited, and the rest was let go on purpose.
    Released {
        /// How many were let go.
        released: usize,
    },
    /// What a later fullstop has written, as it stands there.
    #[serde(untagged)]
    Other(Map<String, Value>),
}

impl Event {
    /// Whether it tells of the end that this report tells of.
    pub fn is_end_of(&self, report: &Report) -> bool {
        self.generation == report.generation && self.kind == EventKind::end(report)
    }
}

impl EventKind {
    /// How a run came to its end, as its report tells it.
    pub fn end(report: &Report) -> EventKind {
        match report.state {
            RunState::Stuck { .. } => EventKind::Stuck { survivors: report.survivors.len() },
            RunState::Released => EventKind::Released { released: report.released.len() },
            _ => EventKind::Ended {
                reason: report.reason(),
                exit: report.exit,
                proof: report.proof.clone(),
            },
        }
    }
}
