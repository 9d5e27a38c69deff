//! The ways in which a run comes to its end.

use std::fmt;

use rustix::process::Signal;

use super::parts::Parts;
use crate::{Context, Outcome, send_signal};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// A signal to `fullstop run`.
    Term,
    Int,
    Hup,
    /// SIGKILL to `fullstop run`, which is the guard.
    KillRun,
    KillKeeper,
    /// SIGKILL to a guard of its own, which exists when `run` had children
    /// already.
    KillGuard,
    /// SIGKILL to the process that started `run`.
    KillHost,
    /// `--timeout`.
    Timeout,
    /// The leader ends by itself; leaders that would not are killed.
    Natural,
}

pub const ALL: [Trigger; 9] = [
    Trigger::Term,
    Trigger::Int,
    Trigger::Hup,
    Trigger::KillRun,
    Trigger::KillKeeper,
    Trigger::KillGuard,
    Trigger::KillHost,
    Trigger::Timeout,
    Trigger::Natural,
];

impl Trigger {
    /// After these nobody waits for the keeper, which climbs the short ladder.
    pub fn kills_us(self) -> bool {
        matches!(self, Self::KillRun | Self::KillGuard | Self::KillHost)
    }

    /// After these nothing may live longer than a second.
    pub fn is_murder(self) -> bool {
        self.kills_us() || self == Self::KillKeeper
    }

    /// After these a graceful member must have saved its state.
    pub fn is_soft(self) -> bool {
        matches!(self, Self::Term | Self::Int | Self::Hup | Self::Timeout)
    }

    pub fn reason(self) -> &'static str {
        match self {
            Self::Term | Self::Int | Self::Hup => "stopped",
            Self::KillRun | Self::KillGuard | Self::KillHost => "host-gone",
            Self::KillKeeper => "keeper-died",
            Self::Timeout => "overall-timeout",
            Self::Natural => "exited",
        }
    }

    /// Pulls the trigger.
    pub fn pull(self, parts: &Parts) -> Outcome {
        match self {
            Self::Term => send_signal(parts.run, Signal::TERM),
            Self::Int => send_signal(parts.run, Signal::INT),
            Self::Hup => send_signal(parts.run, Signal::HUP),
            Self::KillRun => send_signal(parts.run, Signal::KILL),
            Self::KillKeeper => send_signal(parts.keeper, Signal::KILL),
            Self::KillGuard => send_signal(parts.guard, Signal::KILL),
            Self::KillHost => {
                send_signal(parts.host.context("there is no host to kill")?, Signal::KILL)
            }
            Self::Natural => {
                send_signal(parts.leader.context("there is no leader to kill")?, Signal::KILL)
            }
            Self::Timeout => Ok(()),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Term => "term",
            Self::Int => "int",
            Self::Hup => "hup",
            Self::KillRun => "kill-run",
            Self::KillKeeper => "kill-keeper",
            Self::KillGuard => "kill-guard",
            Self::KillHost => "kill-host",
            Self::Timeout => "timeout",
            Self::Natural => "natural",
        })
    }
}
