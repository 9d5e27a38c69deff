//! What can go wrong, one line each.

use fullstop_cage::plain;
use fullstop_core::id::Id;

use fullstop_keeper::sweep::ForgetError;
use fullstop_protocol::{LabelError, Refusal, Report, SpecError, Whereabouts};
use fullstop_store::{FindError, StoreError};
use rustix::io::Errno;
use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why something could not be done.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let empty = std::env::temp_dir().join(format!("fullstop-doc-error-{}", std::process::id()));
/// let runs = fullstop::Runs::at(&empty)?;
/// let nobody = runs.find("no-such-run").unwrap_err();
/// assert!(nobody.to_string().contains("no-such-run"));
/// # std::fs::remove_dir_all(&empty)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    Store(StoreError),
    Find(FindError),
    /// The command could not be run: the status a shell would give, and why.
    Failed {
        status: u8,
        why: String,
    },
    /// Nothing may start in its group now, or it was closed since the start was asked for.
    GroupClosed {
        why: String,
    },
    /// [`crate::init`] was not called, and no keeper executable was named.
    NotInitialised,
    Io {
        what: &'static str,
        source: io::Error,
    },
    /// The keeper would not.
    Refused(Refusal),
    /// That generation of the run is gone: a later one is not hit by what was meant for it.
    Superseded {
        id: Id,
        /// The generation that was meant.
        meant: u32,
    },
    /// The run has ended, is released or stuck: the order was not given. Its report.
    Over(Box<Report>),
    /// The spec asks for what this version cannot do.
    Spec(SpecError),
    Label(LabelError),
    /// The run has something of whoever started it, which a restart cannot give it again.
    NeedsCaller {
        id: Id,
        /// What that is.
        needed: &'static str,
    },
    /// A restart that could not succeed was not begun: the run is left as it is.
    LeftAlone(Box<Error>),
    /// A restart ended the run, as this report says, and could not start it again.
    NotAgain {
        report: Box<Report>,
        why: Box<Error>,
    },
    /// Its pids mean nothing here.
    Elsewhere(String),
    /// Its keeper and guard are gone, and it belongs to another machine or pid namespace,
    /// which may be gone as well. [`crate::Run::forget`] removes its record.
    LostElsewhere {
        id: Id,
        whereabouts: Whereabouts,
    },
    /// Its keeper and guard are gone, it belongs here, and a sweep could not judge it: its
    /// processes may live.
    NotSwept {
        id: Id,
        why: String,
    },
    /// This run may not be forgotten.
    NotForgotten {
        id: Id,
        why: ForgetError,
    },
    /// Neither keeper nor guard looks after it, and processes live in its cgroup, whatever is
    /// written down of it.
    LivesOn {
        id: Id,
        cgroup: PathBuf,
    },
    /// It lives, and nothing by which its keeper could be asked is left. The keeper makes that
    /// anew when it is next awake.
    OutOfReach {
        id: Id,
        /// The process that shows the title of its keeper or guard.
        keeper: Option<i32>,
    },
    /// Not all was done in the time given.
    TimedOut(String),
    /// Something that has no place in the state of the run.
    Unfit(String),
}

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { what, source }
    }

    /// Whether it was ourselves, or the whole system, who had too little: descriptors or
    /// memory.
    pub(crate) fn is_shortage(&self) -> bool {
        let source = match self {
            Error::Store(error) => error.os_error(),
            Error::Io { source, .. } => Some(source),
            _ => None,
        };
        let short = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
        let errno = source.and_then(Errno::from_io_error);
        errno.is_some_and(|errno| short.contains(&errno))
    }

    /// Processes may live that are to be judged here, and that nobody has proven dead: an
    /// order to end them has the status 120.
    pub fn may_live_on(&self) -> bool {
        matches!(
            self,
            Error::TimedOut(_)
                | Error::NotSwept { .. }
                | Error::LivesOn { .. }
                | Error::OutOfReach { .. }
        )
    }

    /// The exit status that says so.
    pub fn status(&self) -> u8 {
        match self {
            Error::Failed { status, .. } => *status,
            Error::TimedOut(_) => 124,
            Error::LivesOn { .. } | Error::OutOfReach { .. } => 120,
            Error::LeftAlone(why) | Error::NotAgain { why, .. } => why.status(),
            _ => 125,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Store(error) => error.fmt(f),
            Error::Find(error) => error.fmt(f),
            Error::Failed { why, .. } | Error::GroupClosed { why } => f.write_str(why),
            Error::Refused(refusal) => refusal.fmt(f),
            Error::Superseded { id, meant } => {
                write!(f, "generation {meant} of run {id} is gone; a later one is not asked")
            }
            Error::NotInitialised => f.write_str(
                "call fullstop::init() first in main, or name a keeper executable: \
                 runs are kept by another process of this program",
            ),
            Error::Io { what, source } => write!(f, "cannot {what}: {}", plain(source)),
            Error::Spec(error) => error.fmt(f),
            Error::Label(error) => error.fmt(f),
            Error::NeedsCaller { id, needed } => {
                write!(f, "run {id} has {needed}, and cannot be started again without its caller")
            }
            Error::Over(report) => {
                write!(f, "run {} is {} already", report.id, report.state.word())
            }
            Error::LeftAlone(why) => write!(f, "{why}; the run is left as it is"),
            Error::NotAgain { report, why } => write!(
                f,
                "run {id} is {state}, and could not be started again: {why}; its record and logs \
                 are kept, and fullstop restart {id} tries once more",
                id = report.id,
                state = report.state.word(),
            ),
            Error::Elsewhere(id) => write!(
                f,
                "run {id} belongs to another machine or pid namespace; ask its keeper from there"
            ),
            Error::LostElsewhere { id, whereabouts } => write!(
                f,
                "run {id} is lost: {whereabouts}; it cannot be judged from here (to forget it: \
                 fullstop rm --forget {id})"
            ),
            Error::NotSwept { id, why } => write!(f, "run {id} is lost: {why}"),
            Error::NotForgotten { id, why } => write!(f, "run {id} is not forgotten: {why}"),
            Error::LivesOn { id, cgroup } => write!(
                f,
                "run {id} is not looked after here, and processes live in its cgroup (to end \
                 them: echo 1 > {}/cgroup.kill)",
                cgroup.display()
            ),
            Error::OutOfReach { id, keeper } => {
                write!(
                    f,
                    "run {id} lives, and what is written down of it was removed: its keeper "
                )?;
                f.write_str("restores it when it is next awake")?;
                match keeper {
                    Some(pid) => write!(f, " (kill -TERM {pid} asks it to stop)"),
                    None => Ok(()),
                }
            }
            Error::TimedOut(what) | Error::Unfit(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        if error.is_group_closed() {
            return Error::GroupClosed { why: error.to_string() };
        }
        Error::Store(error)
    }
}

impl From<SpecError> for Error {
    fn from(error: SpecError) -> Error {
        Error::Spec(error)
    }
}

impl From<LabelError> for Error {
    fn from(error: LabelError) -> Error {
        Error::Label(error)
    }
}

impl From<FindError> for Error {
    fn from(error: FindError) -> Error {
        Error::Find(error)
    }
}
