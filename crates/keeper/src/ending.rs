//! How `run` itself ends: as the command did, or saying what else happened.

use crate::lifeline::Outcome;
use fullstop_cage::linux::{die_of, leave};
use fullstop_core::machine::{Leader, State};
use fullstop_core::signal::Signal;
use fullstop_core::words::{Exit, Reason};

pub const STUCK: u8 = 120;
pub const TIMED_OUT: u8 = 124;
pub const FAILED: u8 = 125;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    Code(u8),
    Signal(Signal),
}

impl Ending {
    pub fn of(outcome: &Outcome) -> Ending {
        if let Some((status, _)) = &outcome.error {
            return Ending::Code(*status);
        }
        match &outcome.state {
            State::Stuck { .. } => Ending::Code(STUCK),
            State::Ended { reason: Reason::OverallTimeout, .. } => Ending::Code(TIMED_OUT),
            state => Ending::of_leader(state.leader()),
        }
    }

    fn of_leader(leader: Leader) -> Ending {
        match leader {
            Leader::Gone(Exit::Code(code)) => {
                Ending::Code(u8::try_from(code & 0xff).unwrap_or(FAILED))
            }
            // Whoever kills us with SIGKILL should look different from us.
            Leader::Gone(Exit::Signal(Signal::KILL) | Exit::Unknown) | Leader::Alive => {
                Ending::Code(137)
            }
            Leader::Gone(Exit::Signal(signal)) => Ending::Signal(signal),
            // Stopped before it became the command, as if by the usual signal.
            Leader::Unborn => Ending::Signal(Signal::TERM),
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
