//! What a machine must never do, seen from outside, and what it did.

use std::time::Duration;

use fullstop_core::machine::{
    Ask, Climb, Effect, Input, Leader, Plan, Recipients, Rest, State, Stop,
};
use fullstop_core::words::{Moment, Reason};

use crate::cast::Hand;
use crate::waited::Waited;

/// The history of a run, as far as the laws need it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Seen {
    /// The first law that was broken.
    pub fault: Option<Fault>,
    first: Option<(Reason, Moment)>,
    /// When the soft steps of the stop must be over, as those who ordered it have said.
    limit: Option<Moment>,
    pub proof: bool,
    spawned: bool,
    kill_ordered: bool,
    pub killed_by: Option<Hand>,
    pub told: Option<Told>,
}

/// What the last report said.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Told {
    Ended,
    Stuck,
    Released,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    EndedWithoutProof,
    ReasonChanged,
    OrderAfterProof,
    BornTwiceOrTooLate,
    AskedAfterKill,
    DeadLeaderAsked,
    TooLate,
    NotClipped,
    WrongClock,
}

impl Seen {
    /// Looks at one decision.
    pub fn decision(
        &mut self,
        before: &State,
        input: Input,
        after: &State,
        effects: &[Effect],
        now: Moment,
        longest: Duration,
    ) {
        let proof =
            matches!(input, Input::Extinct(_) | Input::LeaderExited { rest: Rest::Gone(_), .. });
        self.proof |= proof;
        if let Input::Ask(Ask::Order { within: Some(within), .. }) = input {
            self.limit = Some(self.limit.map_or(now + within, |limit| limit.min(now + within)));
        }
        let fault = self
            .reason_fault(after, now)
            .or_else(|| effects.iter().find_map(|effect| self.order_fault(effect, after)))
            .or_else(|| self.end_fault(before, after, now, longest))
            .or_else(|| self.limit_fault(after));
        self.fault = self.fault.or(fault);
        self.kill_ordered |= effects.contains(&Effect::Kill);
        self.spawned |= effects.contains(&Effect::Spawn);
    }

    /// Looks at what a fact did to a run that nothing had ended yet.
    pub fn clocks(&mut self, waited: &Waited, plan: &Plan, input: Input, after: &State) {
        let ended = after.reason().filter(|reason| reason.is_timeout());
        let should = waited.verdict(plan).filter(|_| input == Input::Tick);
        if ended != should || waited.is_overdue(plan) {
            self.fault = self.fault.or(Some(Fault::WrongClock));
        }
    }

    fn reason_fault(&mut self, after: &State, now: Moment) -> Option<Fault> {
        match (self.first, after.reason()) {
            (Some((first, _)), reason) if reason != Some(first) => Some(Fault::ReasonChanged),
            (None, Some(reason)) => {
                self.first = Some((reason, now));
                None
            }
            _ => None,
        }
    }

    fn order_fault(&self, effect: &Effect, after: &State) -> Option<Fault> {
        let soft = matches!(
            effect,
            Effect::Signal { .. }
                | Effect::Heard(_)
                | Effect::Forward(_)
                | Effect::CloseStdin
                | Effect::WriteInput(_)
        );
        let to_leader = matches!(
            effect,
            Effect::Signal { whom: Recipients::Leader, .. }
                | Effect::Heard(_)
                | Effect::Forward(_)
                | Effect::CloseStdin
                | Effect::WriteInput(_)
        );
        if self.proof && *effect != Effect::Report {
            return Some(Fault::OrderAfterProof);
        }
        if *effect == Effect::Spawn && (self.spawned || after.reason().is_some()) {
            return Some(Fault::BornTwiceOrTooLate);
        }
        if soft && self.kill_ordered {
            return Some(Fault::AskedAfterKill);
        }
        (to_leader && after.leader() != Leader::Alive).then_some(Fault::DeadLeaderAsked)
    }

    fn end_fault(
        &self,
        before: &State,
        after: &State,
        now: Moment,
        longest: Duration,
    ) -> Option<Fault> {
        match after {
            State::Ended { .. } if !self.proof => Some(Fault::EndedWithoutProof),
            State::Stopping(_) | State::Stuck { .. } if matches!(before, State::Stopping(_)) => {
                let (_, since) = self.first?;
                (now.since(since) > longest).then_some(Fault::TooLate)
            }
            _ => None,
        }
    }

    fn limit_fault(&self, after: &State) -> Option<Fault> {
        let State::Stopping(Stop { climb: Climb::Soft { deadline, .. }, .. }) = after else {
            return None;
        };
        self.limit.filter(|limit| deadline > limit).map(|_| Fault::NotClipped)
    }

    /// What only the keeper knew is lost. A reason that nobody was told of is none, and the guard
    /// has its own time to end it.
    pub fn keeper_died(&mut self, handed: &State, now: Moment) {
        self.proof = false;
        self.limit = None;
        self.first = handed.reason().map(|reason| (reason, now));
    }

    /// Looks at an order that was carried out.
    pub fn done(&mut self, order: &Effect, machine: &State, hand: Hand) {
        match (order, machine) {
            (Effect::Kill, _) => self.killed_by = Some(hand),
            (Effect::Report, State::Ended { .. }) => self.told = Some(Told::Ended),
            (Effect::Report, State::Stuck { .. }) => self.told = Some(Told::Stuck),
            (Effect::Report, State::Released { .. }) => self.told = Some(Told::Released),
            _ => {}
        }
    }
}
