//! What happened to a run, gathered for its report.

use crate::assignment::Assignment;
use crate::roster::Reached;
use fullstop_cage::linux::now;
use fullstop_cage::{Round, Witness};
use fullstop_core::cage::{CageKind, Member, OutputHolder};
use fullstop_core::ladder::Step;
use fullstop_core::machine::{Leader, State, Stop};
use fullstop_core::words::Moment;
use fullstop_protocol::{
    Asker, CapturedStream, Claim, KernelAnswers, REPORT_VERSION, Report, RunState, StepRecord,
    Timestamp, TrackedMember,
};

/// What a step for the leader is called that went on to those it left.
const PASSED_ON: &str = "@children";

fn label(stop: &Stop) -> String {
    stop.climb.current_step().map_or("kill".to_owned(), Step::label)
}

/// What the kernel answered, as it is told.
pub fn answers(witness: Witness) -> KernelAnswers {
    KernelAnswers {
        at: Timestamp::now(),
        populated: witness.populated(),
        has_children: witness.has_children(),
        is_census_complete: witness.is_census_complete(),
    }
}

#[derive(Debug)]
pub struct Notes {
    began: Moment,
    pub started_at: Timestamp,
    pub cage: CageKind,
    /// Who first asked for the end.
    pub asked: Option<Asker>,
    pub steps: Vec<StepRecord>,
    pub reached: Reached,
    /// How often the last step was taken, and when for the last time.
    tries: u32,
    tried_at: Timestamp,
    /// How many were alive when it was last tried; nothing before the second time.
    pub left_alive: Option<usize>,
    /// What the kernel answered when the proof was made.
    pub kernel: Option<KernelAnswers>,
    pub leftovers: Vec<Member>,
    pub survivors: Vec<Member>,
    pub released: Vec<Member>,
    pub output: Vec<CapturedStream>,
    pub drained: Option<bool>,
    pub holders: Vec<OutputHolder>,
    pub error: Option<String>,
}

impl Notes {
    pub fn new() -> Notes {
        Notes {
            began: now(),
            started_at: Timestamp::now(),
            cage: CageKind::Tree,
            asked: None,
            steps: Vec::new(),
            reached: Reached::default(),
            tries: 0,
            tried_at: Timestamp::default(),
            left_alive: None,
            kernel: None,
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
        let Round { alive, signalled, reached } = round;
        // A step that met nobody is not worth a word: the last ones were dying.
        if alive == 0 && signalled == 0 {
            return;
        }
        self.reached.by(self.steps.len(), &step, reached);
        self.steps.push(StepRecord { step, at_ms: self.ms_until(at), alive, signalled });
    }

    /// Another try of the last step.
    pub fn tried(&mut self) {
        self.tries = self.tries.saturating_add(1);
        self.tried_at = Timestamp::now();
    }

    pub fn proven(&mut self, witness: Witness) {
        self.kernel = Some(answers(witness));
    }

    /// The step that is being taken, among those that were noted: one that met no process was
    /// not.
    pub fn current_step(&self, state: &State) -> Option<usize> {
        let State::Stopping(stop) = state else { return None };
        let last = self.steps.last()?;
        let is_current = last.step == label(stop) || last.step.ends_with(PASSED_ON);
        is_current.then(|| self.steps.len() - 1)
    }

    /// How the run stands, as it is told.
    pub fn state(&self, state: &State) -> RunState {
        match state {
            State::Starting { .. } => RunState::Starting,
            State::Running { .. } => RunState::Running,
            State::Stopping(stop) => RunState::Stopping {
                reason: stop.reason.into(),
                step: label(stop),
                left: stop.climb.deadline().since(now()),
                alive: self.current_step(state).map(|current| self.steps[current].alive),
            },
            State::Stuck { reason, .. } => RunState::Stuck {
                reason: (*reason).into(),
                alive: Some(self.left_alive.unwrap_or(self.survivors.len())),
                tries: self.tries,
                tried_at: self.tried_at,
            },
            State::Ended { reason, .. } => RunState::Ended { reason: (*reason).into() },
            State::Released { .. } => RunState::Released,
        }
    }

    fn track_survivors(&self, state: &State) -> Vec<TrackedMember> {
        let current = self.current_step(state);
        self.survivors.iter().map(|it| self.reached.track(it.clone(), current)).collect()
    }

    pub fn report(&self, assigned: &Assignment, state: &State) -> Report {
        let is_stuck = matches!(state, State::Stuck { .. });
        let proof = match state {
            State::Ended { proof, .. } => Some(Claim::from(*proof)),
            _ => None,
        };
        Report {
            version: REPORT_VERSION,
            id: assigned.launch.id.clone(),
            name: assigned.spec.name.clone(),
            generation: assigned.launch.generation,
            command: assigned.spec.shown_command(),
            cage: self.cage.into(),
            state: self.state(state),
            at: Timestamp::now(),
            asked: self.asked.clone(),
            exit: match state.leader() {
                Leader::Gone(exit) => Some(exit),
                Leader::Unborn | Leader::Alive => None,
            },
            steps: self.steps.clone(),
            leftovers: self.leftovers.clone(),
            survivors: if is_stuck { self.track_survivors(state) } else { Vec::new() },
            released: self.released.clone(),
            proof,
            kernel: self.kernel.filter(|_| state.is_over()),
            output: self.output.clone(),
            drained: self.drained,
            holders: self.holders.clone(),
            error: self.error.clone(),
            started_at: self.started_at,
            elapsed_ms: self.ms_until(now()),
        }
    }
}
