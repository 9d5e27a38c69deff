//! How `run` itself ends: as the command did, or saying what else happened.

use crate::lifeline::Outcome;
use fullstop_cage::linux::{die_of, leave};
use fullstop_core::machine::{Leader, State};
use fullstop_core::signal::Signal;
use fullstop_core::words::{Exit, Reason};

pub const STUCK: u8 = 120;
pub const TIMED_OUT: u8 = 124;
pub const FAILED: u8 = 125;
pub const KILLED: u8 = 137;

/// How `run` itself ends.
///
/// ```
/// use fullstop_core::words::Exit;
/// use fullstop_keeper::Ending;
///
/// assert_eq!(Ending::of_exit(Exit::Code(3)), Ending::Code(3));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Code(u8),
    Signal(Signal),
}

impl Ending {
    /// `asked` is the signal that first asked for a stop.
    pub fn of(outcome: &Outcome, asked: Option<Signal>) -> Ending {
        if let Some((status, _)) = &outcome.error {
            return Ending::Code(*status);
        }
        match &outcome.state {
            State::Stuck { .. } => Ending::Code(STUCK),
            State::Ended { reason: Reason::OverallTimeout, .. } => Ending::Code(TIMED_OUT),
            // Stopped before it became the command: as that would have been.
            state if state.leader() == Leader::Unborn => {
                Ending::Signal(asked.unwrap_or(Signal::TERM))
            }
            state => Ending::of_leader(state.leader()),
        }
    }

    fn of_leader(leader: Leader) -> Ending {
        match leader {
            Leader::Gone(exit) => Ending::of_exit(exit),
            Leader::Alive | Leader::Unborn => Ending::Code(KILLED),
        }
    }

    pub fn of_exit(exit: Exit) -> Ending {
        match exit {
            Exit::Code(code) => Ending::Code(u8::try_from(code & 0xff).unwrap_or(FAILED)),
            // Whoever kills us with SIGKILL should look different from us.
            Exit::Signal(Signal::KILL) | Exit::Unknown => Ending::Code(KILLED),
            Exit::Signal(signal) => Ending::Signal(signal),
        }
    }

    /// Ends this process so.
    pub fn end(self) -> ! {
        match self {
            Ending::Code(code) => leave(code.into()),
            Ending::Signal(signal) => die_of(signal),
        }
    }
}
