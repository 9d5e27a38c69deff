//! How a command fails: one line, and an exit status.

use crate::explain::explain;
use fullstop::blocking;
use fullstop_cage::plain;
use fullstop_cli::plain::line;
use std::fmt::Display;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

/// fullstop itself failed, as opposed to the command.
pub const FAILED: u8 = 125;
/// Something could not be killed, or processes may live that belong here and that nobody has
/// proven dead: of a run that is stuck, was released while it was stopped, could not be gone
/// around or swept, or is not listed. Those of another machine or pid namespace do not count
/// for a command about all runs. Nor does what was released before: such a run is over.
pub const STUCK: u8 = 120;

pub struct Fail {
    pub why: String,
    pub status: u8,
}

impl Fail {
    /// A status without another word: all was said already.
    pub fn silent(status: u8) -> Fail {
        Fail { why: String::new(), status }
    }
}

impl From<fullstop::Error> for Fail {
    fn from(error: fullstop::Error) -> Fail {
        Fail { why: explain(&error), status: error.status() }
    }
}

impl From<String> for Fail {
    fn from(why: String) -> Fail {
        Fail { why, status: FAILED }
    }
}

impl From<&str> for Fail {
    fn from(why: &str) -> Fail {
        Fail::from(why.to_owned())
    }
}

impl From<std::io::Error> for Fail {
    fn from(error: std::io::Error) -> Fail {
        Fail::from(format!("cannot write to stdout: {}", plain(&error)))
    }
}

/// Does a command to its end. It needs no thread but this one, which reads the files as well.
pub fn wait<T>(command: impl Future<Output = Result<T, Fail>>) -> Result<T, Fail> {
    blocking::wait(async { Ok(command.await) })?
}

/// What a look at files comes to, for those within [`wait`] who cannot await it: there it is
/// done when it is first polled.
pub fn at_once<T>(look: impl Future<Output = T>) -> Option<T> {
    match pin!(look).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => Some(done),
        Poll::Pending => None,
    }
}

/// Says what went wrong with one of many, and goes on. A message may quote what others have
/// written.
pub fn complain(why: impl Display) {
    use std::io::Write as _;
    let why = line(&why.to_string());
    // The reader of our messages may be gone.
    let _ = writeln!(std::io::stderr(), "fullstop: {why}");
}
