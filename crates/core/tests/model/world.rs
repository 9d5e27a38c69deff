//! A run's surroundings, small enough to be explored whole: a leader, two members, a keeper that
//! may die anywhere, a guard that takes over, a clock, and people who ask.
//!
//! The keeper tells the guard of a stop under way when it finds the time, so a guard that takes
//! over may know less than the keeper did, and orders may be left undone.

use std::time::Duration;

use fullstop_core::clocks::Clocks;
use fullstop_core::ladder::host_gone;
use fullstop_core::machine::{Effect, Input, JOIN_WINDOW, Leader, Plan, Rest, State};
use fullstop_core::words::{Exit, Moment, Proof};

use crate::cast::{Body, Exec, Hand, Happens, Left};
use crate::faults::{Seen, Told};
use crate::waited::Waited;

/// How far apart signs of life are.
const SIGN_EVERY: Duration = Duration::from_secs(1);
/// A pause is longer than any clock is patient.
const PAUSE: Duration = Duration::from_secs(7);

/// The machine under test: the real one, or one broken on purpose.
pub type Decide = fn(&Plan, State, Input, Moment) -> (State, Vec<Effect>);

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct World {
    /// Which of the model's plans the run was made with.
    pub plan: usize,
    pub machine: State,
    /// What was ordered and is not done yet.
    pub owed: Vec<Effect>,
    /// What the guard knows.
    pub handed: State,
    pub now: Moment,
    pub waited: Waited,
    pub hand: Hand,
    pub cage_ready: bool,
    pub exec: Exec,
    pub leader: Body,
    pub leader_reaped: bool,
    pub members: [Body; 2],
    pub left: Left,
    pub seen: Seen,
}

impl World {
    pub fn new(index: usize, plan: &Plan, left: Left) -> World {
        let now = Moment::at(Duration::from_secs(1));
        World {
            plan: index,
            machine: State::new(plan, now),
            owed: vec![],
            handed: State::Running { leader: Leader::Alive, clocks: Clocks::default() },
            now,
            waited: Waited::default(),
            hand: Hand::Keeper,
            cage_ready: false,
            exec: Exec::Pending,
            leader: Body::Unborn,
            leader_reaped: false,
            members: [Body::Unborn; 2],
            left,
            seen: Seen::default(),
        }
    }

    pub fn anybody_lives(&self) -> bool {
        self.leader.lives() || self.members.iter().any(|member| member.lives())
    }

    /// Everything that can happen next.
    pub fn possible(&self) -> Vec<Happens> {
        if self.seen.fault.is_some() {
            return vec![];
        }
        let mut all = vec![];
        self.keeper_may(&mut all);
        if !self.owed.is_empty() {
            all.push(Happens::Done);
            return all;
        }
        if self.machine.is_over() {
            return all;
        }
        self.processes_may(&mut all);
        match self.hand {
            Hand::Nobody => all.push(Happens::GuardSees),
            Hand::Keeper | Hand::Guard => self.holder_may_hear(&mut all),
        }
        all
    }

    /// Nothing has to happen any more: whoever lives may live on, and nobody needs to ask.
    pub fn is_quiet(&self) -> bool {
        !self.possible().into_iter().any(|what| match what {
            Happens::LeaderDies => self.leader == Body::Doomed,
            Happens::MemberDies { slot } => self.members[slot] == Body::Doomed,
            Happens::Fork { .. }
            | Happens::Thaw { .. }
            | Happens::Asked(_)
            | Happens::Killed
            | Happens::HostGone
            | Happens::Storm
            | Happens::Wait
            | Happens::Wrote
            | Happens::Worked
            | Happens::Paused
            | Happens::Resumed
            | Happens::HandsOver
            | Happens::KeeperDies { .. } => false,
            _ => true,
        })
    }

    fn keeper_may(&self, all: &mut Vec<Happens>) {
        let finished = self.machine.is_over() && self.owed.is_empty();
        // The guard of a stuck run has said so and is gone.
        let alone = self.seen.told == Some(Told::Stuck);
        if self.hand != Hand::Keeper || self.left.keepers == 0 || finished || alone {
            return;
        }
        all.push(Happens::KeeperDies { exit_lost: false });
        if self.leader == Body::Dead {
            all.push(Happens::KeeperDies { exit_lost: true });
        }
        let stopping = matches!(self.machine, State::Stopping(_));
        if stopping && self.owed.is_empty() && self.handed != self.machine {
            all.push(Happens::HandsOver);
        }
    }

    fn processes_may(&self, all: &mut Vec<Happens>) {
        if self.exec == Exec::Pending && self.leader == Body::Alive {
            all.extend([true, false].map(|works| Happens::Exec { works }));
        }
        if self.leader.can_die() {
            all.push(Happens::LeaderDies);
        }
        let leader_forks = matches!(self.exec, Exec::Worked { .. }) && self.leader.can_die();
        let somebody_forks = leader_forks || self.members.iter().any(|member| member.can_die());
        let free = self.members.iter().position(|member| *member == Body::Unborn);
        if let Some(slot) = free.filter(|_| somebody_forks) {
            all.push(Happens::Fork { slot, frozen: false });
            if self.left.freezes > 0 {
                all.push(Happens::Fork { slot, frozen: true });
            }
        }
        for (slot, member) in self.members.iter().enumerate() {
            match member {
                Body::Frozen | Body::FrozenDoomed if self.left.thaws > 0 => {
                    all.push(Happens::Thaw { slot });
                }
                Body::Alive | Body::Doomed => all.push(Happens::MemberDies { slot }),
                _ => {}
            }
        }
    }

    /// The facts that can reach whoever holds the machine.
    fn holder_may_hear(&self, all: &mut Vec<Happens>) {
        let keeper = self.hand == Hand::Keeper;
        if keeper && !self.cage_ready {
            all.push(Happens::CageReady);
        }
        let exec_known =
            matches!(self.exec, Exec::Worked { told: false } | Exec::Failed { told: false });
        if keeper && exec_known {
            all.push(Happens::ExecTold);
        }
        // How exec went is read before the leader is reaped.
        if self.leader == Body::Dead && !self.leader_reaped && !(keeper && exec_known) {
            all.push(Happens::LeaderReaped);
        }
        // Before the birth nobody looks for an end, unless a stop was asked for.
        let unborn = self.leader == Body::Unborn && self.machine.reason().is_some();
        if (unborn || self.leader_reaped) && !self.anybody_lives() && !self.seen.proof {
            all.push(Happens::Proven);
        }
        if self.left.asks > 0 {
            all.extend(crate::ASKS.map(Happens::Asked));
        }
        if self.left.kills > 0 {
            all.push(Happens::Killed);
        }
        if self.left.hosts > 0 {
            all.push(Happens::HostGone);
        }
        // Seen by a look that was begun before the kill was ordered, it may be told after.
        let stopping = matches!(self.machine, State::Stopping(_));
        if self.left.storms > 0 && stopping && self.anybody_lives() {
            all.push(Happens::Storm);
        }
        self.clock_may(all);
        self.run_may(all);
        let missed = |body: &Body| matches!(body, Body::Alive | Body::Frozen);
        if self.machine.is_killing() && self.members.iter().chain([&self.leader]).any(missed) {
            all.push(Happens::KillAgain);
        }
    }

    /// What a run that is not being stopped does to its clocks.
    fn run_may(&self, all: &mut Vec<Happens>) {
        if self.machine.reason().is_some() {
            return;
        }
        let in_time =
            self.machine.deadline().is_none_or(|deadline| deadline.since(self.now) > SIGN_EVERY);
        if self.left.signs > 0 && in_time && self.anybody_lives() {
            all.extend([Happens::Wrote, Happens::Worked]);
        }
        // That it was stopped may be told when the leader is gone, but the dead do not go on.
        if self.left.pauses > 0 && !self.waited.paused && self.leader != Body::Unborn {
            all.push(Happens::Paused);
        }
        if self.waited.paused && self.leader.lives() {
            all.push(Happens::Resumed);
        }
    }

    fn clock_may(&self, all: &mut Vec<Happens>) {
        let Some(deadline) = self.machine.deadline() else {
            return;
        };
        if !matches!(self.machine, State::Stuck { .. }) || self.left.retries > 0 {
            all.push(Happens::Tick);
        }
        let stopping = matches!(self.machine, State::Stopping(_));
        if stopping && self.left.waits > 0 && deadline.since(self.now) > JOIN_WINDOW {
            all.push(Happens::Wait);
        }
    }

    /// Lets it happen.
    pub fn after(
        &self,
        what: Happens,
        plan: &Plan,
        decide: Decide,
        note: impl Fn(&State, &'static str),
    ) -> World {
        let mut world = self.clone();
        if let Happens::KeeperDies { .. } = what {
            note(&self.machine, "keeper-dies");
        }
        let fact = world.occur(what);
        // The members are alike, so one order of them stands for all.
        world.members.sort_unstable();
        if let Some(input) = fact {
            note(&self.machine, crate::input_name(input));
            world.tell(input, plan, decide);
        }
        world
    }

    /// What happens to the world, and the fact it makes, if it makes one.
    fn occur(&mut self, what: Happens) -> Option<Input> {
        match what {
            Happens::Done => {
                let order = self.owed.remove(0);
                self.carry_out(&order);
            }
            Happens::CageReady => {
                self.cage_ready = true;
                return Some(Input::CageReady);
            }
            Happens::Exec { works: true } => self.exec = Exec::Worked { told: false },
            Happens::Exec { works: false } => {
                self.exec = Exec::Failed { told: false };
                self.leader = Body::Doomed;
            }
            Happens::ExecTold => return Some(self.tell_exec()),
            Happens::Fork { slot, frozen: false } => self.members[slot] = Body::Alive,
            Happens::Fork { slot, frozen: true } => {
                self.left.freezes -= 1;
                self.members[slot] = Body::Frozen;
            }
            Happens::Thaw { slot } => {
                self.left.thaws -= 1;
                let doomed = self.members[slot] == Body::FrozenDoomed;
                self.members[slot] = if doomed { Body::Doomed } else { Body::Alive };
            }
            Happens::LeaderDies => self.leader = Body::Dead,
            Happens::MemberDies { slot } => self.members[slot] = Body::Dead,
            Happens::LeaderReaped => {
                self.leader_reaped = true;
                return Some(Input::LeaderExited { exit: Exit::Code(0), rest: self.rest() });
            }
            Happens::Proven => return Some(Input::Extinct(Proof::NoChildren)),
            Happens::Asked(ask) => {
                self.left.asks -= 1;
                return Some(Input::Ask(ask));
            }
            Happens::Killed => {
                self.left.kills -= 1;
                return Some(Input::Kill);
            }
            Happens::HostGone => {
                self.left.hosts -= 1;
                return Some(Input::HostGone);
            }
            Happens::Storm => {
                self.left.storms -= 1;
                return Some(Input::Storm);
            }
            Happens::Tick => {
                let until = self.machine.deadline().unwrap_or(self.now);
                self.pass(until.since(self.now));
                if matches!(self.machine, State::Stuck { .. }) {
                    self.left.retries -= 1;
                }
                return Some(Input::Tick);
            }
            Happens::Wait => {
                self.left.waits -= 1;
                self.pass(JOIN_WINDOW);
            }
            Happens::Wrote | Happens::Worked => {
                self.left.signs -= 1;
                self.pass(SIGN_EVERY);
                return Some(if what == Happens::Wrote { Input::Output } else { Input::Busy });
            }
            Happens::Paused => {
                self.left.pauses -= 1;
                return Some(Input::Paused);
            }
            Happens::Resumed => {
                self.pass(PAUSE);
                return Some(Input::Resumed);
            }
            Happens::KillAgain => self.kill_everybody(),
            Happens::HandsOver => self.handed = self.machine.clone(),
            Happens::KeeperDies { exit_lost } => {
                self.left.keepers -= 1;
                self.hand = Hand::Nobody;
                self.owed.clear();
                self.machine = self.handed.clone();
                self.waited = Waited::default();
                self.leader_reaped = exit_lost;
                self.seen.keeper_died(&self.machine, self.now);
            }
            Happens::GuardSees => {
                self.hand = Hand::Guard;
                return Some(Input::KeeperDied);
            }
        }
        None
    }

    fn pass(&mut self, time: Duration) {
        self.now = self.now + time;
        if self.machine.reason().is_none() {
            self.waited.pass(time);
        }
    }

    fn tell_exec(&mut self) -> Input {
        if let Exec::Failed { .. } = self.exec {
            self.exec = Exec::Failed { told: true };
            return Input::SpawnFailed;
        }
        self.exec = Exec::Worked { told: true };
        Input::LeaderRuns
    }

    fn rest(&self) -> Rest {
        if self.anybody_lives() { Rest::Alive } else { Rest::Gone(Proof::NoChildren) }
    }

    fn tell(&mut self, input: Input, plan: &Plan, decide: Decide) {
        let before = self.machine.clone();
        let before_is_free = before.reason().is_none();
        let (after, effects) = decide(plan, before, input, self.now);
        self.seen.decision(&self.machine, input, &after, &effects, self.now, longest(plan));
        if before_is_free {
            self.seen.clocks(&self.waited, plan, input, &after);
            let gone = matches!(after.leader(), Leader::Gone(_));
            self.waited.hear(input, gone);
        }
        // From its first reason on, a run has no clocks but its ladder's.
        if after.reason().is_some() {
            self.waited = Waited::default();
        }
        self.machine = after;
        self.owed = effects;
    }

    fn carry_out(&mut self, order: &Effect) {
        self.seen.done(order, &self.machine, self.hand);
        match order {
            Effect::Spawn => self.leader = Body::Alive,
            Effect::Kill => self.kill_everybody(),
            // Whether a process heeds what it is asked is up to it: it may die at any time anyway.
            _ => {}
        }
    }

    fn kill_everybody(&mut self) {
        self.leader.kill();
        self.members.iter_mut().for_each(Body::kill);
    }
}

/// How long a stop may take from its first reason to its end: promise 4. The host's death puts
/// its short ladder in the place of the rest of the other one.
fn longest(plan: &Plan) -> Duration {
    let ladder = plan.ladder.total().max(plan.ladder.after_leader().total());
    let kill = plan.ladder.kill_patience().max(host_gone().kill_patience());
    ladder + host_gone().total() + kill
}
