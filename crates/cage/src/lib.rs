//! What holds a run's processes together, by the strongest means this machine has.
//!
//! [`Cage`] is the whole seam to an operating system: spawn, signal, kill, census,
//! and a look that may return a proof. It assumes neither ECHILD nor pidfds; how
//! macOS and Windows would fill it is sketched in `docs/cage.md`. This is the only
//! crate with `unsafe` code.

use fullstop_core::cage::{CageKind, Member};
use fullstop_core::machine::Recipients;
use fullstop_core::signal::Signal;
use fullstop_core::words::{Exit, Proof};
use std::ffi::{CString, OsString};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

#[cfg(target_os = "linux")]
pub mod linux;
#[cfg(unix)]
pub mod os;

/// The processes of one run.
pub trait Cage {
    fn kind(&self) -> CageKind;

    /// Starts the leader inside the cage. It has not become the command when this
    /// returns: [`Observation::birth`] tells.
    fn spawn(&mut self, command: Command) -> Result<(), SpawnError>;

    /// Sends one signal to each of those meant, as they are at this instant.
    /// Whoever is stopped is continued, or it would never hear it. Of more than can be
    /// met within that time, only those who were met.
    fn signal(&mut self, signal: Signal, whom: Recipients, within: Duration) -> Round;

    /// Passes a signal on to the leader, as it is.
    fn forward(&mut self, signal: Signal);

    /// One round of the last step. Called again and again until there is a proof.
    fn kill(&mut self) -> Round;

    /// Waits until those who are seen to die of the last step are dead, for that time at
    /// most. Returns at once where another round may be needed.
    fn let_die(&mut self, within: Duration);

    /// The living members at this instant; of more than can be looked at within that
    /// time, only some.
    fn census(&mut self, within: Duration) -> Vec<Member>;

    /// How many a census would name.
    fn count(&mut self, within: Duration) -> usize;

    /// Processor time used so far by everybody who is or was in the cage. It never
    /// goes back.
    fn cpu_time(&mut self) -> Duration;

    /// What has happened since the last look, and the proof once nobody is left.
    fn look(&mut self) -> Observation;

    /// Lets all members go: nothing is killed, and nothing of ours stays around them.
    fn release(&mut self) -> Vec<Member>;
}

/// What a round of signals met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Round {
    pub alive: usize,
    pub signalled: usize,
    /// The pids and start times of those that were signalled one by one.
    pub reached: Vec<(i32, u64)>,
}

/// What a look found.
#[derive(Debug, Default)]
pub struct Observation {
    /// The leader became the command, or failed to.
    pub birth: Option<Result<(), SpawnError>>,
    /// The leader stopped itself, or was stopped.
    pub stopped: Option<Signal>,
    pub continued: bool,
    pub exit: Option<Exit>,
    /// Since the latest step that asked, so many processes have died that it had not met that
    /// asking is in vain.
    pub storms: bool,
    /// The pids of those that were reaped.
    pub died: Vec<i32>,
    /// There is more to see than one look takes.
    pub unfinished: bool,
    pub proof: Option<Witness>,
}

/// Why nobody is left, with what the kernel answered at that moment. Only a cage can make
/// one: what others tell is a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Witness {
    proof: Proof,
    populated: Option<bool>,
    has_children: Option<bool>,
    is_census_complete: Option<bool>,
}

impl Witness {
    /// `wait` said ECHILD to the process that inherits all orphans.
    pub(crate) const NO_CHILDREN: Witness = Witness {
        proof: Proof::NoChildren,
        populated: None,
        has_children: Some(false),
        is_census_complete: None,
    };

    /// The cgroup reads `populated 0`. Whether there were children was not asked by whoever
    /// has none of the run's.
    pub(crate) fn cgroup_empty(has_children: Option<bool>) -> Witness {
        Witness {
            proof: Proof::CgroupEmpty,
            populated: Some(false),
            has_children,
            is_census_complete: None,
        }
    }

    /// A search found nobody alive.
    pub(crate) fn scan_clean(is_census_complete: Option<bool>) -> Witness {
        Witness { proof: Proof::ScanClean, populated: None, has_children: None, is_census_complete }
    }

    pub fn proof(&self) -> Proof {
        self.proof
    }

    /// Whether a process was in the cgroup, if there is one.
    pub fn populated(&self) -> Option<bool> {
        self.populated
    }

    /// Whether whoever asked had a child, if that says something.
    pub fn has_children(&self) -> Option<bool> {
        self.has_children
    }

    /// Whether a search saw all processes that there are.
    pub fn is_census_complete(&self) -> Option<bool> {
        self.is_census_complete
    }
}

/// Everything the leader is made from, ready for the kernel: nothing is looked up
/// and nothing allocated between fork and exec.
#[derive(Debug)]
pub struct Command {
    pub program: OsString,
    /// The files to try, in order.
    pub candidates: Vec<CString>,
    pub argv: Vec<CString>,
    pub env: Vec<CString>,
    pub cwd: Option<CString>,
    /// A session of its own, or the caller's (and its terminal).
    pub own_session: bool,
    pub stdin: Source,
    /// These take the places of the inherited stdout and stderr.
    pub stdout: Option<OwnedFd>,
    pub stderr: Option<OwnedFd>,
    /// The command's side of a terminal of its own: it becomes the controlling one of
    /// its session, and takes the places of all three.
    pub terminal: Option<OwnedFd>,
}

/// Where a command's stdin comes from.
#[derive(Debug)]
pub enum Source {
    Inherit,
    Descriptor(OwnedFd),
    /// Opened by the child itself: one that waits for a writer must not hold up its
    /// keeper.
    File(CString),
}

/// Why the leader did not become the command.
#[derive(Debug)]
pub enum SpawnError {
    /// The working directory cannot be entered.
    Cwd { path: String, source: io::Error },
    /// What it was to read as stdin cannot be opened.
    Stdin { path: String, source: io::Error },
    /// There is no such program.
    NotFound { program: String, searched: Vec<String> },
    /// There is, but it cannot be executed.
    NotExecutable { path: String, interpreter: Option<String>, source: io::Error },
    /// The system refused a process.
    Os { what: &'static str, source: io::Error },
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SpawnError::Cwd { path, source } => {
                write!(f, "cannot enter working directory {path}: {}", plain(source))
            }
            SpawnError::Stdin { path, source } => {
                write!(f, "cannot read stdin from {path}: {}", plain(source))
            }
            SpawnError::NotFound { program, .. } if program.is_empty() => {
                f.write_str("the command's name is empty")
            }
            SpawnError::NotFound { program, searched } if searched.is_empty() => {
                write!(f, "{program}: no such file")
            }
            SpawnError::NotFound { program, searched } => {
                write!(f, "{program}: not found in {}", searched.join(":"))
            }
            SpawnError::NotExecutable { path, interpreter: Some(interpreter), source } => {
                write!(f, "cannot execute {path}: its interpreter {interpreter}: {}", plain(source))
            }
            SpawnError::NotExecutable { path, interpreter: None, source } => {
                write!(f, "cannot execute {path}: {}", plain(source))
            }
            SpawnError::Os { what, source } => write!(f, "cannot {what}: {}", plain(source)),
        }
    }
}

impl std::error::Error for SpawnError {}

impl SpawnError {
    /// The exit status that shells and `env` give to each failure.
    pub fn status(&self) -> u8 {
        match self {
            SpawnError::NotFound { .. } => 127,
            SpawnError::NotExecutable { .. } => 126,
            SpawnError::Cwd { .. } | SpawnError::Stdin { .. } | SpawnError::Os { .. } => 125,
        }
    }
}

/// The kernel's word for an error, without Rust's "(os error 2)".
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(at) => text[..at].to_lowercase(),
        None => text,
    }
}

/// What could not be done, and the kernel's word for why. An errno alone helps no reader.
pub fn cannot(what: &'static str) -> impl FnOnce(io::Error) -> String {
    move |error| format!("cannot {what}: {}", plain(&error))
}
