//! What the clocks of a run should say, counted apart from the machine: not when each runs out, but
//! how much of its patience is used up.

use std::time::Duration;

use fullstop_core::machine::{Input, Plan};
use fullstop_core::words::Reason;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Waited {
    overall: Duration,
    silent: Duration,
    idle: Duration,
    pub paused: bool,
}

impl Waited {
    pub fn pass(&mut self, time: Duration) {
        if !self.paused {
            for waited in [&mut self.overall, &mut self.silent, &mut self.idle] {
                *waited += time;
            }
        }
    }

    /// What a fact means for the clocks of a run that is not being stopped.
    pub fn hear(&mut self, input: Input, leader_is_gone: bool) {
        match input {
            Input::Output => (self.silent, self.idle) = Default::default(),
            Input::Busy => self.idle = Duration::ZERO,
            Input::Paused => self.paused = !leader_is_gone,
            Input::Resumed | Input::LeaderExited { .. } => self.paused = false,
            _ => {}
        }
    }

    /// Why a clock would end it now, if one would.
    pub fn verdict(&self, plan: &Plan) -> Option<Reason> {
        let clocks = [
            (plan.timeout, self.overall, Reason::OverallTimeout),
            (plan.no_output, self.silent, Reason::NoOutputTimeout),
            (plan.idle, self.idle, Reason::IdleTimeout),
        ];
        let over = |(patience, waited, reason): (Option<Duration>, Duration, Reason)| {
            Some((patience?.checked_sub(waited).unwrap_or_default(), reason))
        };
        let over = clocks.into_iter().filter_map(over).find(|(left, _)| left.is_zero());
        over.filter(|_| !self.paused).map(|(_, reason)| reason)
    }

    /// One of them has waited longer than it should have.
    pub fn is_overdue(&self, plan: &Plan) -> bool {
        let over = |patience: Option<Duration>, waited| patience.is_some_and(|most| waited > most);
        over(plan.timeout, self.overall)
            || over(plan.no_output, self.silent)
            || over(plan.idle, self.idle)
    }
}
