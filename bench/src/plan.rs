//! What shall be measured, and with which programs.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Plan {
    /// Few rounds: to try the bench out, not to quote its figures.
    pub quick: bool,
    pub parts: Vec<Part>,
    /// An existing directory for FIFOs, readable by everybody.
    pub scratch: PathBuf,
    /// An existing directory for records, on a disk where there is one: that is
    /// where people have theirs.
    pub state: PathBuf,
    pub fullstop: PathBuf,
    pub bits: Bits,
    /// The hostile programs; without them no survivors are counted.
    pub zoo: Option<PathBuf>,
    pub contenders: Vec<Contender>,
    pub capturers: Vec<Capturer>,
    /// The multiplexer beside which keys are timed.
    pub tmux: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    Spawn,
    Stop,
    Memory,
    Survivors,
    Records,
    Output,
}

impl Part {
    pub const ALL: [Self; 6] =
        [Self::Spawn, Self::Stop, Self::Memory, Self::Survivors, Self::Records, Self::Output];

    pub fn name(self) -> &'static str {
        match self {
            Self::Spawn => "spawn",
            Self::Stop => "stop",
            Self::Memory => "memory",
            Self::Survivors => "survivors",
            Self::Records => "records",
            Self::Output => "output",
        }
    }
}

/// The small programs that are started and stopped.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Bits {
    pub stamp: PathBuf,
    pub true_: PathBuf,
    pub tree: PathBuf,
    pub floor: PathBuf,
    pub flood: PathBuf,
}

/// One way of running a command.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Contender {
    pub name: String,
    pub role: Role,
    /// The words in front of the command. Empty for plain `posix_spawn`.
    pub prefix: Vec<String>,
    /// The same, told to lose no time when it is stopped.
    pub prefix_at_once: Vec<String>,
    /// Added to its environment.
    pub env: Vec<(String, String)>,
    /// For a library: a long-living program that spawns on request, because a
    /// user of the library does not start a new host for each command.
    pub host: Option<Vec<String>>,
    /// It moves processes between cgroups, after which every fork and exit of the
    /// machine is slower for some milliseconds; the next one shall not pay.
    pub echoes: bool,
    /// Why this contender is not in the race.
    pub missing: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Plain `posix_spawn`: what every spawn costs at least.
    Floor,
    /// As people use it, with its record.
    FullstopCgroup,
    FullstopTree,
    /// Without a record: what running and ending cost by themselves.
    EngineCgroup,
    EngineTree,
    /// The peer whose start-up is the yardstick of the acceptance figure.
    Tini,
    Peer,
}

impl Contender {
    pub fn takes_part(&self) -> bool {
        self.missing.is_none()
    }

    /// Whether it is there to be compared with its twin that keeps records, and
    /// need not be stopped, weighed and counted as well.
    pub fn is_engine(&self) -> bool {
        matches!(self.role, Role::EngineCgroup | Role::EngineTree)
    }

    /// Whether it is a program that stands in front of a command, with
    /// processes of its own to be weighed.
    pub fn is_prefix(&self) -> bool {
        self.host.is_none() && !self.prefix.is_empty()
    }
}

/// One way of getting what a command prints into a file.
///
/// Both scripts are for `sh`; their words (`"$@"`) are the command, and everything
/// they write is below `$DIR`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Capturer {
    pub name: String,
    pub role: CaptureRole,
    /// Not timed: starts the server that captures, if there is one.
    pub before: Option<String>,
    /// Starts the command; returns when it is over, where one can wait for that.
    pub script: String,
    /// How it captures, if that is not obvious.
    pub note: Option<String>,
    /// Why it is not in the race.
    pub missing: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CaptureRole {
    /// `flood | cat > file`: what everybody is measured by.
    Cat,
    Start,
    Peer,
}
