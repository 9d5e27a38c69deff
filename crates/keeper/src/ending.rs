//! How `run` itself ends: as the command did, or saying what else happened.

use crate::lifeline::Outcome;
use fullstop_cage::linux::{die_of, leave};
use fullstop_core::machine::{Leader, State};
use fullstop_core::signal::Signal;
use fullstop_core::words::{Exit, Reason};
use fullstop_protocol::{CapturedStream, Report, RunState};

/// What programs return whose output cannot be written.
pub const UNSHOWN: u8 = 1;
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
            State::Ended { reason, .. } if reason.is_timeout() => Ending::Code(TIMED_OUT),
            // Stopped before it became the command: as that would have been.
            state if state.leader() == Leader::Unborn => {
                Ending::Signal(asked.unwrap_or(Signal::TERM))
            }
            state => Ending::of_leader(state.leader()),
        }
    }

    /// As the report tells it, for whoever only stood by.
    ///
    /// ```
    /// use fullstop_keeper::Ending;
    /// use fullstop_protocol::{Report, RunState};
    ///
    /// let mut report: Report = serde_json::from_str(r#"{
    ///     "version": 2, "id": "0r3v8x2k7m4pq", "generation": 1, "command": ["false"],
    ///     "cage": "tree", "state": "ended", "reason": "exited", "exit": {"code": 1},
    ///     "at": "2027-01-15T08:00:00.003Z", "proof": "no-children",
    ///     "started_at": "2027-01-15T08:00:00.000Z", "elapsed_ms": 3
    /// }"#)?;
    /// assert_eq!(Ending::of_report(&report), Ending::Code(1));
    /// report.exit = Some(fullstop_core::words::Exit::Code(0));
    /// assert_eq!(Ending::of_report(&report), Ending::Code(0));
    /// let out = r#"{"stream": "out", "bytes": 9, "unshown": 4, "refusal": "no space left"}"#;
    /// report.output.push(serde_json::from_str(out)?);
    /// assert_eq!(Ending::of_report(&report), Ending::Code(1));
    /// let reason = fullstop_core::words::Reason::IdleTimeout.into();
    /// report.state = RunState::Ended { reason };
    /// assert_eq!(Ending::of_report(&report), Ending::Code(124));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn of_report(report: &Report) -> Ending {
        Ending::of_run(report).unless_refused(&report.output)
    }

    /// A command that succeeded would not have, had it written by itself to what cannot
    /// be written.
    pub(crate) fn unless_refused(self, output: &[CapturedStream]) -> Ending {
        let refused = output.iter().any(|stream| stream.refusal.is_some());
        if refused && self == Ending::Code(0) { Ending::Code(UNSHOWN) } else { self }
    }

    fn of_run(report: &Report) -> Ending {
        match (&report.state, report.reason().known(), report.exit) {
            (RunState::Stuck { .. }, ..) => Ending::Code(STUCK),
            (_, Some(reason), _) if reason.is_timeout() => Ending::Code(TIMED_OUT),
            (.., Some(exit)) => Ending::of_exit(exit),
            (_, Some(Reason::SpawnFailed), None) => Ending::Code(FAILED),
            // Nobody saw its leader end, or it lives on.
            (RunState::Released, ..) | (_, Some(Reason::KeeperDied | Reason::Rebooted), None) => {
                Ending::Code(KILLED)
            }
            // Stopped before it became the command: as that would have been.
            (.., None) => Ending::Signal(Signal::TERM),
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
