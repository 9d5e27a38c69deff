//! What is said over a run's control socket: one JSON value a line, both ways.

use crate::format::Phase;
use fullstop_core::id::Id;
use fullstop_core::report::Report;
use fullstop_core::signal::Signal;
use fullstop_core::words::Reason;
use serde::{Deserialize, Serialize};

/// An order to a keeper. One that names a generation is refused by its successor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "kebab-case")]
pub enum Request {
    Stop {
        generation: Option<u32>,
        #[serde(default = "stopped")]
        reason: Reason,
    },
    Kill {
        generation: Option<u32>,
    },
    Signal {
        generation: Option<u32>,
        signal: Signal,
    },
    /// Only to be told how it goes.
    Watch {
        generation: Option<u32>,
    },
}

impl Request {
    pub fn generation(&self) -> Option<u32> {
        match self {
            Request::Stop { generation, .. }
            | Request::Kill { generation }
            | Request::Watch { generation }
            | Request::Signal { generation, .. } => *generation,
        }
    }
}

fn stopped() -> Reason {
    Reason::Stopped
}

/// A keeper's answer. The first answers the order; the others tell how it goes on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum Reply {
    /// The run exists, and its leader was born (or is about to be).
    Accepted {
        id: Id,
        generation: u32,
        phase: Phase,
        alive: usize,
    },
    Refused {
        why: String,
    },
    /// There is no run: the status a shell would give, and why.
    Failed {
        status: u8,
        why: String,
    },
    Now {
        phase: Phase,
        alive: usize,
    },
    /// Over, or stuck: the report says.
    Report {
        report: Box<Report>,
    },
}
