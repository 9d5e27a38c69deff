//! One line of `events.jsonl`: it had no number, and times were milliseconds since 1970.

use fullstop_core::id::Id;
use fullstop_core::words::{Exit, Proof, Reason, Stream};
use fullstop_protocol::{Claim, EventKind, Timestamp};
use serde::Deserialize;

#[derive(Deserialize)]
pub struct Event {
    at: u64,
    id: Id,
    generation: u32,
    #[serde(flatten)]
    what: What,
}

#[derive(Deserialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum What {
    Started { command: Vec<String>, leader: Option<i32> },
    Step { step: String, alive: usize, signalled: usize, reason: Reason },
    LeaderExited { exit: Exit },
    LogFailed { stream: Stream, why: String },
    Restored { restored: Vec<String>, lost: Vec<String> },
    Stuck { survivors: usize },
    Ended { reason: Reason, exit: Option<Exit>, proof: Option<Proof> },
    Released { released: usize },
}

impl From<Event> for fullstop_protocol::Event {
    fn from(event: Event) -> fullstop_protocol::Event {
        fullstop_protocol::Event {
            number: 0,
            at: Timestamp::from_unix_ms(event.at),
            id: event.id,
            generation: event.generation,
            kind: match event.what {
                What::Started { command, leader } => EventKind::Started { command, leader },
                What::Step { step, alive, signalled, reason } => {
                    EventKind::Step { step, alive, signalled, reason: reason.into() }
                }
                What::LeaderExited { exit } => EventKind::LeaderExited { exit },
                What::LogFailed { stream, why } => EventKind::LogFailed { stream, why },
                What::Restored { restored, lost } => EventKind::Restored { restored, lost },
                What::Stuck { survivors } => EventKind::Stuck { survivors },
                What::Ended { reason, exit, proof } => {
                    let proof = proof.map(Claim::from);
                    EventKind::Ended { reason: reason.into(), exit, proof }
                }
                What::Released { released } => EventKind::Released { released },
            },
        }
    }
}
