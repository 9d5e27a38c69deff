//! What can go wrong, one line each.

mod command;

pub use command::{CommandError, SecretNameError};

use crate::keys::InvalidKey;
use fullstop_cage::plain;
use fullstop_core::duration::format as time;
use fullstop_core::id::Id;
use fullstop_core::ladder::LadderError;
use fullstop_core::signal::SignalError;
use fullstop_core::words::Stream;
use fullstop_keeper::sweep::ForgetError;
use fullstop_protocol::{
    AppNameError, Failure, FailureCode, LabelError, Refusal, Report, SpecError, Whereabouts, Word,
};
use fullstop_store::{FindError, StoreError};
use rustix::io::Errno;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// Why something could not be done. Programs decide by the variant, or by [`Error::code`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let empty = std::env::temp_dir().join(format!("fullstop-doc-error-{}", std::process::id()));
/// let runs = fullstop::Runs::at(&empty)?;
/// let missing = fullstop::blocking::wait(runs.find("no-such-run")).unwrap_err();
/// assert_eq!(missing.code(), "no-such-run");
/// assert!(missing.to_string().contains("no-such-run"));
/// # std::fs::remove_dir_all(&empty)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs, reason = "of a variant, its own words say what its fields are")]
pub enum Error {
    /// The state directory, or a file in it.
    #[error(transparent)]
    Store(StoreError),
    /// A word names no run, or more than one.
    #[error(transparent)]
    Find(#[from] FindError),
    /// What was asked for a command does not go together.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// The spec asks for what this version cannot do.
    #[error(transparent)]
    Spec(#[from] SpecError),
    /// A label cannot be one.
    #[error(transparent)]
    Label(#[from] LabelError),
    /// This cannot be the name of an application.
    #[error(transparent)]
    App(#[from] AppNameError),
    /// A ladder cannot be read.
    #[error(transparent)]
    Ladder(#[from] LadderError),
    /// A signal has no such name.
    #[error(transparent)]
    Signal(#[from] SignalError),
    /// No key has this name.
    #[error(transparent)]
    Key(#[from] InvalidKey),
    /// The command could not be started: a code, the status that a shell would give, and why.
    #[error("{}", .0.message)]
    NotStarted(Failure),
    /// Nothing may start in this group now, or it was closed since the start was asked for.
    #[error("{why}")]
    GroupClosed {
        /// The group that the command was to start in, or one above it.
        group: String,
        /// Which of them was closed when that was last looked at; nothing, if it is open again.
        closed: Option<String>,
        why: String,
    },
    /// A run is kept by another process. This program cannot be started anew as one, since it
    /// has loaded this library later, is setuid, or was started by naming the dynamic linker;
    /// no keeper executable was named ([`crate::Runs::with_keeper`]), and PATH names none.
    #[error(
        "this program cannot keep runs itself, and there is no fullstop in PATH: install it, or \
         name a keeper executable"
    )]
    NoKeeper,
    /// The kernel said no.
    #[error("cannot {what}: {}", plain(source))]
    Io { what: &'static str, source: io::Error },
    /// The kernel said no to something with a path.
    #[error("cannot {what} {}: {}", path.display(), plain(source))]
    File { what: &'static str, path: PathBuf, source: io::Error },
    /// A secret could not be read.
    #[error("cannot read the secret {name} from {}: {}", path.display(), plain(source))]
    Secret { name: String, path: PathBuf, source: io::Error },
    /// The keeper would not.
    #[error("{0}")]
    Refused(Refusal),
    /// The keeper said what no keeper of this version says.
    #[error("the keeper speaks strangely: {}", plain(source))]
    Strange { source: io::Error },
    /// That generation of the run is gone: a later one is not hit by what was meant for it.
    #[error("generation {meant} of run {id} is gone; a later one is not asked")]
    Superseded {
        id: Id,
        /// The generation that was meant.
        meant: u32,
    },
    /// The run has ended, is released or stuck: the order was not given. Its report.
    #[error("run {} is {} already", .0.id, .0.state.word())]
    Ended(Box<Report>),
    /// It has ended or is stuck, and nothing that is left of it tells how.
    #[error("run {id} is {state}, and nobody wrote how")]
    Untold { id: Id, state: &'static str },
    /// It was removed, or never began.
    #[error("run {id} was removed")]
    Removed { id: Id },
    /// There is nothing to be read of it yet.
    #[error("run {id} is being born just now")]
    BeingBorn { id: Id },
    /// The run has something of its caller, which a restart cannot give it again.
    #[error("run {id} has {needed}, and cannot be started again without its caller")]
    NeedsCaller {
        id: Id,
        /// What that is.
        needed: &'static str,
    },
    /// A restart that could not succeed was not begun: the run is left as it is.
    #[error("{0}; the run is left as it is")]
    LeftAlone(#[source] Box<Error>),
    /// It is not proven that the run is over: it is not started again.
    #[error("run {} is {}; it is not started again", .0.id, .0.state.word())]
    NotProven(Box<Report>),
    /// A restart ended the run, as this report says, and could not start it again. Its record
    /// and logs are kept.
    #[error(
        "run {} is {}, and could not be started again: {why}; its record and logs are kept",
        report.id,
        report.state.word()
    )]
    NotRestarted {
        report: Box<Report>,
        #[source]
        why: Box<Error>,
    },
    /// It does not belong to this program, which therefore cannot let it go.
    #[error("run {id} does not belong to this program")]
    NotHost { id: Id },
    /// Its pids mean nothing here.
    #[error("run {id} belongs to another machine or pid namespace; ask its keeper from there")]
    Elsewhere { id: Id },
    /// Its keeper and guard are gone, and it belongs to another machine or pid namespace,
    /// which may be gone as well. [`crate::Run::forget`] removes its record.
    #[error("run {id} is lost: {whereabouts}; it cannot be judged from here")]
    LostElsewhere { id: Id, whereabouts: Whereabouts },
    /// Its keeper and guard are gone, it belongs here, and a sweep could not judge it: its
    /// processes may live.
    #[error("run {id} is lost: {why}")]
    NotSwept { id: Id, why: String },
    /// This run may not be forgotten.
    #[error("run {id} is not forgotten: {why}")]
    NotForgotten {
        id: Id,
        #[source]
        why: ForgetError,
    },
    /// Neither keeper nor guard looks after it, and processes live in its cgroup, whatever is
    /// written down of it.
    #[error(
        "run {id} is not looked after here, and processes live in its cgroup (to end them: echo 1 \
         > {}/cgroup.kill)",
        cgroup.display()
    )]
    LivesOn { id: Id, cgroup: PathBuf },
    /// It lives, and nothing by which its keeper could be asked is left. The keeper makes that
    /// anew when it is next awake.
    #[error("{}", out_of_reach(id, *keeper))]
    OutOfReach {
        id: Id,
        /// The process that shows the title of its keeper or guard.
        keeper: Option<i32>,
    },
    /// Its keeper has not answered for a second of its own time.
    #[error("the keeper of run {id} does not answer")]
    KeeperSilent { id: Id },
    /// Its keeper hung, and going around it did not end the run in time.
    #[error("run {id}: {why}")]
    NotGoneAround { id: Id, why: String },
    /// It was kept by an earlier fullstop, whose keepers can be asked to stop and nothing else.
    #[error("run {id} is kept by an earlier fullstop, which can be asked to stop and nothing else")]
    EarlierKeeper { id: Id },
    /// It was waited for no longer than this.
    #[error("run {id} has not ended after {}", time(*patience))]
    NotEnded { id: Id, patience: Duration },
    /// It was not ready in time.
    #[error("run {id} is not ready after {}", time(*patience))]
    NotReady { id: Id, patience: Duration },
    /// It was over before it was ready.
    #[error("run {id} ended before it was ready{}", because(report.as_deref()))]
    EndedBeforeReady { id: Id, report: Option<Box<Report>> },
    /// Nothing can be sent to it: its stdin is no pipe, and it has no terminal of its own.
    #[error("run {id} reads nothing that is sent to it")]
    NoInput { id: Id },
    /// The command has not read what it was sent.
    #[error("run {id} has not read its input for {}", time(*patience))]
    NotRead { id: Id, patience: Duration },
    /// Only the first part of an input has arrived.
    #[error("{why}; {sent} of {given} bytes were sent")]
    PartlySent {
        sent: usize,
        given: usize,
        #[source]
        why: Box<Error>,
    },
    /// There is no log of it, or none of this stream.
    #[error("{}", no_log(id, *stream))]
    NoLog { id: Id, stream: Option<Stream> },
    /// A cursor into the log of another run.
    #[error("run {id} was asked for the log of run {other}")]
    OtherLog { id: Id, other: Id },
    /// A thread that worked for this program was not brought to its end.
    #[error("work on a thread was not brought to an end")]
    Unfinished,
    /// A window only to look through cannot be typed into.
    #[error("this window on run {id} is only to look through")]
    ViewOnly { id: Id },
    /// The keeper behind the window has hung up, for good or for now.
    #[error("nobody listens behind this window on run {id}")]
    WindowClosed { id: Id },
}

/// What a library call comes to.
///
/// ```
/// fn live() -> fullstop::Result<usize> {
///     fullstop::blocking::wait(async { Ok(fullstop::Runs::open()?.live_ids().await?.len()) })
/// }
/// ```
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn io(what: &'static str) -> impl FnOnce(io::Error) -> Error {
        move |source| Error::Io { what, source }
    }

    /// fullstop itself could not start a command.
    pub(crate) fn not_started(why: impl Into<String>) -> Error {
        Error::NotStarted(Failure::with_code(FailureCode::Failed, why))
    }

    /// Whether this process, or the whole system, had too few descriptors or too little memory.
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

    /// Whether not all was done in the time there was.
    pub fn is_timeout(&self) -> bool {
        match self {
            Error::KeeperSilent { .. }
            | Error::NotGoneAround { .. }
            | Error::NotEnded { .. }
            | Error::NotReady { .. }
            | Error::NotRead { .. } => true,
            Error::PartlySent { why, .. } => why.is_timeout(),
            _ => false,
        }
    }

    /// Processes may live that are to be judged here, and that are not proven dead: an
    /// order to end them has the status 120.
    pub fn may_live_on(&self) -> bool {
        self.is_timeout()
            || matches!(
                self,
                Error::NotSwept { .. } | Error::LivesOn { .. } | Error::OutOfReach { .. }
            )
    }

    /// The exit status that says so.
    pub fn status(&self) -> u8 {
        match self {
            Error::NotStarted(failure) => failure.status,
            Error::LivesOn { .. } | Error::OutOfReach { .. } => 120,
            Error::LeftAlone(why) | Error::NotRestarted { why, .. } => why.status(),
            _ if self.is_timeout() => 124,
            _ => 125,
        }
    }

    /// A stable word for programs. What a keeper has refused, or could not start, has the
    /// keeper's own word.
    pub fn code(&self) -> &str {
        match self {
            Error::Store(error) => error.code(),
            Error::Find(error) => error.code(),
            Error::Command(error) => error.code(),
            Error::Spec(error) => error.code().as_str(),
            Error::Label(_) => "invalid-label",
            Error::App(_) => "invalid-app",
            Error::Ladder(_) => "invalid-ladder",
            Error::Signal(_) => "invalid-signal",
            Error::Key(error) => error.code(),
            Error::NotStarted(failure) => word(&failure.code, FailureCode::as_str),
            Error::GroupClosed { .. } => "group-closed",
            Error::NoKeeper => "no-keeper",
            Error::Io { .. } | Error::File { .. } => "io",
            Error::Secret { .. } => "secret-unreadable",
            Error::Refused(refusal) => word(&refusal.code, fullstop_protocol::RefusalCode::as_str),
            Error::Strange { .. } => "strange-keeper",
            Error::Superseded { .. } => "superseded",
            Error::Ended(_) => "ended",
            Error::Untold { .. } => "untold",
            Error::Removed { .. } => "no-such-run",
            Error::BeingBorn { .. } => "being-born",
            Error::NeedsCaller { .. } => "needs-caller",
            Error::LeftAlone(why) | Error::PartlySent { why, .. } => why.code(),
            Error::NotProven(_) => "not-proven",
            Error::NotRestarted { .. } => "not-restarted",
            Error::NotHost { .. } => "not-host",
            Error::Elsewhere { .. } => "elsewhere",
            Error::LostElsewhere { .. } => "lost-elsewhere",
            Error::NotSwept { .. } => "not-swept",
            Error::NotForgotten { .. } => "not-forgotten",
            Error::LivesOn { .. } => "lives-on",
            Error::OutOfReach { .. } => "out-of-reach",
            Error::KeeperSilent { .. } => "keeper-silent",
            Error::NotGoneAround { .. } => "not-gone-around",
            Error::EarlierKeeper { .. } => "earlier-keeper",
            Error::NotEnded { .. } => "not-ended",
            Error::NotReady { .. } => "not-ready",
            Error::EndedBeforeReady { .. } => "ended-before-ready",
            Error::NoInput { .. } => "no-input",
            Error::NotRead { .. } => "not-read",
            Error::NoLog { .. } => "no-log",
            Error::OtherLog { .. } => "other-log",
            Error::Unfinished => "unfinished",
            Error::ViewOnly { .. } => "view-only",
            Error::WindowClosed { .. } => "window-closed",
        }
    }
}

fn word<T: Copy>(word: &Word<T>, known: fn(T) -> &'static str) -> &str {
    match word {
        Word::Known(code) => known(*code),
        Word::Other(code) => code,
    }
}

fn out_of_reach(id: &Id, keeper: Option<i32>) -> String {
    let ask = keeper.map(|pid| format!(" (kill -TERM {pid} asks it to stop)")).unwrap_or_default();
    format!(
        "run {id} lives, and what is written down of it was removed: its keeper restores it when it \
         is next awake{ask}"
    )
}

fn because(report: Option<&Report>) -> String {
    report.map(|report| format!(" ({})", report.reason())).unwrap_or_default()
}

fn no_log(id: &Id, stream: Option<Stream>) -> String {
    match stream {
        Some(stream) => format!("run {id} has no log of its {stream}"),
        None => format!("run {id} has no log: its output was not captured"),
    }
}

/// For what reads or writes as a stream. The error itself is its source.
impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        io::Error::new(io_kind(&error), error)
    }
}

fn io_kind(error: &Error) -> io::ErrorKind {
    use fullstop_protocol::RefusalCode::StdinClosed;
    match error {
        Error::PartlySent { why, .. } => io_kind(why),
        Error::Io { source, .. } | Error::File { source, .. } => source.kind(),
        Error::Ended(_) | Error::WindowClosed { .. } => io::ErrorKind::BrokenPipe,
        Error::Refused(refusal) if refusal.code == StdinClosed => io::ErrorKind::BrokenPipe,
        _ if error.is_timeout() => io::ErrorKind::TimedOut,
        _ => io::ErrorKind::Other,
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Error {
        match &error {
            StoreError::GroupClosed(group) => {
                let (closed, why) = (Some(group.clone()), error.to_string());
                Error::GroupClosed { group: group.clone(), closed, why }
            }
            StoreError::GroupClosedMeanwhile(group) => {
                Error::GroupClosed { group: group.clone(), closed: None, why: error.to_string() }
            }
            _ => Error::Store(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Key, Ladder, Signal};

    #[test]
    fn what_a_caller_writes_as_text_is_read_with_a_question_mark() {
        let ladder = || -> Result<Ladder> { Ok("sigh@leader".parse()?) };
        let signal = || -> Result<Signal> { Ok("sigh".parse()?) };
        let key = || -> Result<Key> { Ok("Entr".parse()?) };
        assert_eq!(ladder().unwrap_err().code(), "invalid-ladder");
        assert_eq!(signal().unwrap_err().code(), "invalid-signal");
        assert_eq!(key().unwrap_err().code(), "invalid-key");
    }
}
