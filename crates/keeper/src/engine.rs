//! Decisions and deeds together: facts go into the state machine, its orders go
//! to the cage. Used by the keeper, and by the guard once the keeper is dead.

use crate::feed::Feed;
use crate::notes::Notes;
use fullstop_cage::linux::now;
use fullstop_cage::{Cage, Command, Observation, Round, SpawnError, Witness};
use fullstop_core::clocks::Clocks;
use fullstop_core::machine::{Effect, Input, Leader, Plan, Recipients, Rest, State, decide};
use fullstop_core::signal::Signal;
use fullstop_core::words::{Exit, Moment};
use rustix::time::Timespec;
use std::collections::VecDeque;
use std::mem::replace;
use std::time::Duration;

/// After a round of the last step that met nobody new; after any other there is no
/// nap at all, or a fork storm gets ahead.
const SHORTEST_NAP: Duration = Duration::from_micros(300);
/// Where nobody dies and nobody new is met, there is no hurry: a death wakes us. And so
/// long at most nothing is heard while others are let die.
const LONGEST_NAP: Duration = Duration::from_millis(10);
/// Where waiting for news fails, they are looked for again and again.
pub const BLIND_NAP: Duration = Duration::from_millis(1);
/// How long those are looked for who are to be named: whoever gives orders waits.
const LONGEST_CENSUS: Duration = Duration::from_secs(1);
/// The last relatives of a leader that has just exited are often dying already.
const DYING_LOOKS: usize = 10;

pub struct Engine<C> {
    plan: Plan,
    pub state: State,
    pub cage: C,
    pub notes: Notes,
    /// What was decided and is not done yet, and when it was decided.
    due: VecDeque<(Effect, Moment)>,
    command: Option<Command>,
    pub feed: Option<Feed>,
    pub failure: Option<(u8, String)>,
    /// The system had no room for the command; it was never tried.
    pub no_room: bool,
    /// The pids of those that were reaped, while somebody wants to know.
    pub died: Option<Vec<i32>>,
    /// The last look has not seen all there was.
    unfinished: bool,
    nap: Duration,
    /// When the next round of the last step is due.
    round_at: Moment,
    /// When the last step was first taken.
    killed_at: Option<Moment>,
}

/// What the rest of the world may want to know after a fact was dealt with.
#[derive(Debug, Default)]
pub struct News {
    pub leader_stopped: Option<Signal>,
    pub leader_continued: bool,
    pub born: bool,
    pub exit: Option<Exit>,
    pub leftovers: bool,
}

impl<C: Cage> Engine<C> {
    pub fn new(plan: Plan, state: State, cage: C, notes: Notes) -> Engine<C> {
        Engine {
            plan,
            state,
            cage,
            notes,
            due: VecDeque::new(),
            command: None,
            feed: None,
            failure: None,
            no_room: false,
            died: None,
            unfinished: false,
            nap: SHORTEST_NAP,
            round_at: now(),
            killed_at: None,
        }
    }

    pub fn with_command(mut self, command: Command, feed: Option<Feed>) -> Engine<C> {
        self.command = Some(command);
        self.feed = feed;
        self
    }

    pub fn is_unborn(&self) -> bool {
        self.state.leader() == Leader::Unborn
    }

    pub fn tell(&mut self, input: Input) {
        self.hear(input);
        self.act();
    }

    /// Decides what follows from this, and leaves it to [`Engine::act`]: signalling and
    /// counting may take half a second, and the client that asked is answered before.
    pub fn hear(&mut self, input: Input) {
        let state =
            replace(&mut self.state, State::Starting { born: false, clocks: Clocks::default() });
        let now = now();
        let (state, effects) = decide(&self.plan, state, input, now);
        self.state = state;
        self.due.extend(effects.into_iter().map(|effect| (effect, now)));
    }

    /// Does what was decided.
    pub fn act(&mut self) {
        while let Some((effect, decided)) = self.due.pop_front() {
            self.perform(effect, decided);
        }
    }

    /// Steps are noted with the time their patience counts from.
    fn perform(&mut self, effect: Effect, now: Moment) {
        match effect {
            Effect::Spawn => self.spawn(),
            Effect::Signal { signal, whom } => {
                let round = self.cage.signal(signal, whom, self.time_to_ask());
                self.notes.step(format!("{signal}@{}", word(whom)), now, round);
            }
            Effect::Heard(signal) => {
                let alive = self.cage.count(self.time_to_ask());
                self.notes.step(
                    format!("{signal}@leader"),
                    now,
                    Round { alive, ..Round::default() },
                );
            }
            Effect::Forward(signal) => self.cage.forward(signal),
            Effect::CloseStdin => {
                self.quiet_step("close-stdin", now);
                if let Some(feed) = &mut self.feed {
                    feed.close();
                }
            }
            Effect::WriteInput(text) => {
                self.quiet_step("input", now);
                if let Some(feed) = &mut self.feed {
                    feed.input(text.as_bytes());
                }
            }
            Effect::Kill => self.kill(now),
            Effect::Release => self.notes.released = self.cage.release(),
            Effect::Report => {
                if matches!(self.state, State::Stuck { .. }) {
                    self.notes.survivors = self.cage.census(LONGEST_CENSUS);
                }
            }
        }
    }

    /// A part of the step's patience, so that most of it is left for whoever was asked.
    fn time_to_ask(&self) -> Duration {
        /// Even a step without patience is for everybody.
        const SHORTEST: Duration = Duration::from_millis(50);
        /// Nobody's orders wait longer than this.
        const LONGEST: Duration = Duration::from_millis(500);
        let patience = self.state.deadline().map(|at| at.since(now()));
        patience.map_or(LONGEST, |patience| patience / 3).clamp(SHORTEST, LONGEST)
    }

    /// Counted before it is taken: whoever obeys may be gone at once.
    fn quiet_step(&mut self, step: &str, now: Moment) {
        let alive = self.cage.count(self.time_to_ask());
        self.notes.step(step.to_owned(), now, Round { alive, ..Round::default() });
    }

    fn kill(&mut self, now: Moment) {
        const STEP: &str = "kill";
        self.killed_at.get_or_insert(now);
        self.notes.tried();
        if matches!(self.state, State::Stuck { .. }) {
            self.notes.left_alive = Some(self.cage.count(self.time_to_ask()));
        }
        let round = self.cage.kill();
        self.nap = SHORTEST_NAP;
        self.rest_after(&round);
        if self.notes.steps.last().is_none_or(|last| last.step != STEP) {
            self.notes.step(STEP.to_owned(), now, round);
        }
    }

    fn spawn(&mut self) {
        let Some(command) = self.command.take() else { return };
        let spawned = self.cage.spawn(command);
        self.notes.cage = self.cage.kind();
        if let Err(error) = spawned {
            self.spawn_failed(&error);
        }
    }

    fn spawn_failed(&mut self, error: &SpawnError) {
        self.notes.error = Some(error.to_string());
        self.failure = Some((error.status(), error.to_string()));
        self.no_room = matches!(error, SpawnError::Os { .. });
        self.tell(Input::SpawnFailed);
    }

    /// Looks at the cage and tells the machine what there is to tell.
    pub fn look(&mut self) -> News {
        let mut look = self.see();
        let mut news = News {
            leader_stopped: look.stopped,
            leader_continued: look.continued,
            ..News::default()
        };
        match look.birth.take() {
            Some(Ok(())) => {
                news.born = true;
                self.notes.cage = self.cage.kind();
                self.tell(Input::LeaderRuns);
            }
            Some(Err(error)) => self.spawn_failed(&error),
            None => {}
        }
        if look.storms && look.proof.is_none() {
            self.tell(Input::Storm);
        }
        if let Some(exit) = look.exit {
            news.exit = Some(exit);
            let rest = match look.proof {
                Some(witness) => self.gone(witness),
                None => self.rest(&mut news),
            };
            self.tell(Input::LeaderExited { exit, rest });
        } else if let Some(witness) = look.proof {
            self.notes.proven(witness);
            self.tell(Input::Extinct(witness.proof()));
        }
        news
    }

    fn see(&mut self) -> Observation {
        let mut look = self.cage.look();
        self.unfinished = look.unfinished;
        if let Some(died) = &mut self.died {
            died.append(&mut look.died);
        }
        look
    }

    /// The members that are there when the leader is gone.
    fn rest(&mut self, news: &mut News) -> Rest {
        // Naming them takes time that a storm does not leave, least of all where
        // everything has to be gone within a second.
        if self.state.is_killing() || self.state.climbs_short_ladder() {
            return Rest::Alive;
        }
        // Behind many dead processes there may be no living one.
        let until = now() + LONGEST_CENSUS;
        while self.unfinished && now() < until {
            if let Some(witness) = self.see().proof {
                return self.gone(witness);
            }
        }
        for _ in 0..DYING_LOOKS {
            self.notes.leftovers = self.cage.census(LONGEST_CENSUS);
            if !self.notes.leftovers.is_empty() {
                news.leftovers = true;
                return Rest::Alive;
            }
            std::thread::sleep(SHORTEST_NAP);
            if let Some(witness) = self.see().proof {
                return self.gone(witness);
            }
        }
        Rest::Alive
    }

    fn gone(&mut self, witness: Witness) -> Rest {
        self.notes.proven(witness);
        Rest::Gone(witness.proof())
    }

    /// Another round of the last step, if that is where it stands.
    pub fn press(&mut self) {
        if !self.state.is_killing() || now() < self.round_at {
            return;
        }
        let round = self.cage.kill();
        self.rest_after(&round);
    }

    fn rest_after(&mut self, round: &Round) {
        if round.signalled > 0 {
            self.nap = SHORTEST_NAP;
            self.round_at = now();
        } else {
            self.round_at = now() + self.nap;
            self.nap = (self.nap * 2).min(LONGEST_NAP);
        }
    }

    /// Leaves the processor to those who die: whoever is woken for each of a hundred
    /// deaths takes as long as they do. But the more are reaped meanwhile, the fewer
    /// are left for the end.
    pub fn let_die(&mut self) {
        const PART: u32 = 4;
        if self.state.is_killing() && !self.unfinished {
            self.cage.let_die((self.last_step_took() / PART).min(LONGEST_NAP));
        }
    }

    /// Whether the last step was taken, and its proof is waited for.
    pub fn is_at_last_step(&self) -> bool {
        self.killed_at.is_some() && matches!(self.state, State::Stopping(_))
    }

    /// How long the last step has taken until now, if it was taken.
    pub fn last_step_took(&self) -> Duration {
        self.killed_at.map_or(Duration::ZERO, |at| now().since(at))
    }

    pub fn tick(&mut self) {
        if self.state.deadline().is_some_and(|at| at <= now()) {
            self.tell(Input::Tick);
        }
    }

    /// How long nothing needs to be done, as far as this engine knows.
    pub fn patience(&self) -> Option<Duration> {
        if self.unfinished {
            return Some(Duration::ZERO);
        }
        let deadline = self.state.deadline().map(|at| at.since(now()));
        match deadline {
            Some(left) if self.state.is_killing() => Some(left.min(self.round_at.since(now()))),
            other => other,
        }
    }
}

fn word(whom: Recipients) -> &'static str {
    match whom {
        Recipients::Leader => "leader",
        Recipients::Children => "children",
        Recipients::Group => "group",
        Recipients::Tree => "tree",
    }
}

pub fn timespec(wait: Duration) -> Timespec {
    Timespec::try_from(wait).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 })
}
