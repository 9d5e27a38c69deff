//! What happened to a run, gathered for its report.

use crate::assignment::Assignment;
use crate::ledger::unix_ms;
use fullstop_cage::Round;
use fullstop_cage::linux::now;
use fullstop_core::machine::{Leader, State};
use fullstop_core::report::{CageKind, Captured, Holder, Member, Report, Taken, VERSION, Verdict};
use fullstop_core::words::{Moment, Reason};

#[derive(Debug)]
pub struct Notes {
    began: Moment,
    pub started_at: u64,
    pub cage: CageKind,
    pub steps: Vec<Taken>,
    pub leftovers: Vec<Member>,
    pub survivors: Vec<Member>,
    pub released: Vec<Member>,
    pub output: Vec<Captured>,
    pub drained: Option<bool>,
    pub holders: Vec<Holder>,
    pub error: Option<String>,
}

impl Notes {
    pub fn new() -> Notes {
        Notes {
            began: now(),
            started_at: unix_ms(),
            cage: CageKind::Tree,
            steps: Vec::new(),
            leftovers: Vec::new(),
            survivors: Vec::new(),
            released: Vec::new(),
            output: Vec::new(),
            drained: None,
            holders: Vec::new(),
            error: None,
        }
    }

    fn ms_until(&self, at: Moment) -> u64 {
        u64::try_from(at.since(self.began).as_millis()).unwrap_or_default()
    }

    pub fn step(&mut self, step: String, at: Moment, round: Round) {
        let Round { alive, signalled } = round;
        // A step that met nobody is not worth a word: the last ones were dying.
        if alive == 0 && signalled == 0 {
            return;
        }
        self.steps.push(Taken { step, at_ms: self.ms_until(at), alive, signalled });
    }

    pub fn report(&self, assigned: &Assignment, state: &State) -> Report {
        let (verdict, proof) = match state {
            State::Ended { proof, .. } => (Verdict::Ended, Some(*proof)),
            State::Released { .. } => (Verdict::Released, None),
            _ => (Verdict::Stuck, None),
        };
        Report {
            version: VERSION,
            id: assigned.launch.id.clone(),
            name: assigned.spec.name.clone(),
            generation: assigned.launch.generation,
            command: assigned.spec.shown_command(),
            cage: self.cage,
            state: verdict,
            reason: state.reason().unwrap_or(Reason::Exited),
            exit: match state.leader() {
                Leader::Gone(exit) => Some(exit),
                Leader::Unborn | Leader::Alive => None,
            },
            steps: self.steps.clone(),
            leftovers: self.leftovers.clone(),
            survivors: if verdict == Verdict::Stuck { self.survivors.clone() } else { Vec::new() },
            released: self.released.clone(),
            proof,
            output: self.output.clone(),
            drained: self.drained,
            holders: self.holders.clone(),
            error: self.error.clone(),
            started_at: self.started_at,
            elapsed_ms: self.ms_until(now()),
        }
    }
}
