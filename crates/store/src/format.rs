//! What stands in the files of a run directory. The field names are stable.

mod v1;

use crate::world::World;
use fullstop_core::id::Id;
use fullstop_core::identity::Identity;
use fullstop_core::ladder::Step;
use fullstop_core::machine::State;
use fullstop_core::report::{CageKind, Report, Verdict};
use fullstop_core::words::{Moment, Reason, Stream};
use fullstop_protocol::{Labels, Spec, SpecError, read_around_spec};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A file that carries its version.
pub trait Format: Sized {
    /// The latest version that is understood, which is the one that is written.
    const VERSION: u32;

    /// Reads a file of this version, or of an earlier one.
    fn parse(version: u32, json: &[u8]) -> serde_json::Result<Self>;
}

/// `spec.json`: what was asked for, and what is known of a generation before it is born. It
/// holds the whole environment, for a restart; only its owner can read it.
///
/// ```
/// use fullstop_store::format::{Format as _, SpecFile};
///
/// let json = include_bytes!("../tests/fixtures/v2/spec.json");
/// let file = SpecFile::parse(2, json)?;
/// assert_eq!(file.spec.name.as_deref(), Some("research"));
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecFile {
    pub version: u32,
    pub id: Id,
    pub generation: u32,
    /// Where the cgroup will be, if one can be had: it is written down before it is
    /// made, so that a sweep can find it whatever happens in between.
    pub cgroup: Option<PathBuf>,
    /// How to find the members where there is no cgroup.
    #[serde(default)]
    pub kin: Option<Kin>,
    /// The inode of the lock: the lock of a copied directory says nothing.
    #[serde(default)]
    pub lock: Option<u64>,
    pub world: World,
    /// Milliseconds since 1970.
    pub started_at: u64,
    pub spec: Spec,
    /// A field of the spec that a later fullstop has written and this one does not know.
    #[serde(skip)]
    pub unknown: Option<String>,
}

impl SpecFile {
    /// The spec, to be run again; an error, if this version would drop something of it.
    pub fn whole_spec(self) -> std::result::Result<Spec, SpecError> {
        match self.unknown {
            Some(field) => Err(SpecError::Unsupported { field }),
            None => self.spec.check_supported().map(|()| self.spec),
        }
    }
}

impl Format for SpecFile {
    const VERSION: u32 = 2;

    fn parse(version: u32, json: &[u8]) -> serde_json::Result<SpecFile> {
        match version {
            1 => serde_json::from_slice::<v1::SpecFile>(json).map(Into::into),
            _ => {
                let (file, unknown) = read_around_spec(json, "spec.")?;
                Ok(SpecFile { unknown, ..file })
            }
        }
    }
}

/// Where the members of a cage without a cgroup stand.
///
/// ```
/// use fullstop_core::identity::Identity;
/// use fullstop_store::format::Kin;
///
/// let guard = Identity { pid: 42, start_ticks: 555, inode: None };
/// let kin = Kin { guard, line: vec![], place: Some("/user.slice".into()) };
/// assert!(kin.line.is_empty());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kin {
    /// Nobody in the cage is older than its guard.
    pub guard: Identity,
    /// The guard's ancestors when it began: where orphans of the run end up.
    pub line: Vec<Identity>,
    /// The cgroup they are all born in.
    pub place: Option<String>,
}

/// `record.json`: how the run stands.
///
/// ```
/// use fullstop_store::format::RecordFile;
///
/// let text = include_str!("../tests/fixtures/v1/record-ended.json");
/// let record: RecordFile = serde_json::from_str(text)?;
/// assert!(record.state.is_over() && record.report.is_some());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordFile {
    pub version: u32,
    pub id: Id,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default)]
    pub group: Option<String>,
    #[serde(default, skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    pub generation: u32,
    pub command: Vec<String>,
    pub state: Phase,
    pub cage: CageKind,
    pub cgroup: Option<PathBuf>,
    #[serde(default)]
    pub kin: Option<Kin>,
    pub world: World,
    pub keeper: Option<Identity>,
    pub guard: Option<Identity>,
    pub leader: Option<Identity>,
    /// The members when last counted, where there is no cgroup to tell; of records that
    /// were written before these had a file of their own.
    #[serde(default)]
    pub census: Vec<Identity>,
    /// The members stand in a file of their own. From then on its absence says nothing of
    /// theirs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_members_file: bool,
    pub started_at: u64,
    /// The inode of the lock, as the spec has it. A record that has none was written before
    /// a record could be read alone, and is read together with its spec.
    #[serde(default)]
    pub lock: Option<u64>,
    /// Once it is ended, released or stuck.
    #[serde(default)]
    pub report: Option<Report>,
}

impl Format for RecordFile {
    const VERSION: u32 = 1;

    fn parse(_: u32, json: &[u8]) -> serde_json::Result<RecordFile> {
        serde_json::from_slice(json)
    }
}

impl RecordFile {
    /// As far as the spec tells, before anything has happened.
    pub fn first(file: SpecFile) -> RecordFile {
        RecordFile {
            version: RecordFile::VERSION,
            id: file.id,
            generation: file.generation,
            command: file.spec.shown_command(),
            name: file.spec.name,
            group: file.spec.group,
            labels: file.spec.labels,
            state: Phase::Starting,
            cage: if file.cgroup.is_some() { CageKind::Cgroup } else { CageKind::Tree },
            cgroup: file.cgroup,
            kin: file.kin,
            world: file.world,
            keeper: None,
            guard: None,
            leader: None,
            census: Vec::new(),
            has_members_file: false,
            started_at: file.started_at,
            lock: file.lock,
            report: None,
        }
    }
}

/// The state as it is written down and told.
///
/// ```
/// use fullstop_store::format::Phase;
///
/// assert_eq!(Phase::Running.word(), "running");
/// assert!(Phase::Released.is_over());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Phase {
    Starting,
    Running,
    Stopping {
        reason: Reason,
        step: String,
        /// On the clock of this boot that does not count suspend.
        until: Moment,
    },
    Stuck {
        reason: Reason,
    },
    Ended {
        reason: Reason,
    },
    Released,
}

impl Phase {
    pub fn of(state: &State) -> Phase {
        match state {
            State::Starting { .. } => Phase::Starting,
            State::Running { .. } => Phase::Running,
            State::Stopping(stop) => Phase::Stopping {
                reason: stop.reason,
                step: stop.climb.current_step().map_or("kill".to_owned(), Step::label),
                until: stop.climb.deadline(),
            },
            State::Stuck { reason, .. } => Phase::Stuck { reason: *reason },
            State::Ended { reason, .. } => Phase::Ended { reason: *reason },
            State::Released { .. } => Phase::Released,
        }
    }

    pub fn of_report(report: &Report) -> Phase {
        match report.state {
            Verdict::Ended => Phase::Ended { reason: report.reason },
            Verdict::Stuck => Phase::Stuck { reason: report.reason },
            Verdict::Released => Phase::Released,
        }
    }

    /// Nothing more will happen to it.
    pub fn is_over(&self) -> bool {
        matches!(self, Phase::Ended { .. } | Phase::Released)
    }

    pub fn word(&self) -> &'static str {
        match self {
            Phase::Starting => "starting",
            Phase::Running => "running",
            Phase::Stopping { .. } => "stopping",
            Phase::Stuck { .. } => "stuck",
            Phase::Ended { .. } => "ended",
            Phase::Released => "released",
        }
    }
}

/// One line of `events.jsonl`.
///
/// ```
/// use fullstop_store::format::{Event, What};
///
/// let line = r#"{"at":1800000000000,"id":"0r3v8x2k7m4pq","generation":1,
///                "event":"stuck","survivors":2}"#;
/// let event: Event = serde_json::from_str(line)?;
/// assert_eq!(event.what, What::Stuck { survivors: 2 });
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Milliseconds since 1970.
    pub at: u64,
    pub id: Id,
    pub generation: u32,
    #[serde(flatten)]
    pub what: What,
}

/// What happened.
///
/// ```
/// use fullstop_store::format::What;
///
/// let what = What::Released { released: 1 };
/// assert_eq!(serde_json::to_string(&what)?, r#"{"event":"released","released":1}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum What {
    Started {
        command: Vec<String>,
        leader: Option<i32>,
    },
    /// A step of a stop was taken.
    Step {
        step: String,
        alive: usize,
        signalled: usize,
        reason: Reason,
    },
    LeaderExited {
        exit: fullstop_core::words::Exit,
    },
    /// The log of a stream ended before the stream did; the command goes on.
    LogFailed {
        stream: Stream,
        why: String,
    },
    /// The state directory, or the run's part of it, was removed while the run was live.
    Restored {
        /// The names that were made anew.
        restored: Vec<String>,
        /// What cannot be had back: `events`, and the streams whose log was removed.
        lost: Vec<String>,
    },
    Stuck {
        survivors: usize,
    },
    Ended {
        reason: Reason,
        exit: Option<fullstop_core::words::Exit>,
        proof: Option<fullstop_core::words::Proof>,
    },
    Released {
        released: usize,
    },
}

impl Event {
    /// Whether it tells of the end that this report tells of.
    pub fn is_end_of(&self, report: &Report) -> bool {
        self.generation == report.generation && self.what == What::end(report)
    }
}

impl What {
    /// How a run came to its end, as its report tells it.
    pub fn end(report: &Report) -> What {
        match report.state {
            Verdict::Ended => {
                What::Ended { reason: report.reason, exit: report.exit, proof: report.proof }
            }
            Verdict::Stuck => What::Stuck { survivors: report.survivors.len() },
            Verdict::Released => What::Released { released: report.released.len() },
        }
    }
}
