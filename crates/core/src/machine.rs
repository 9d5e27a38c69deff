//! The life of a run: `(state, input, now) → (state, effects)`.
//!
//! Everything that can race is decided here, without a clock and without I/O, so
//! that it can be read as a table and explored by a model checker. Inputs are
//! facts, effects are orders. Timers are not ordered: the engine that drives the machine
//! sends a [`Input::Tick`] once [`State::deadline`] has passed.

use crate::clocks::Clocks;
use crate::ladder::{Action, Ladder, Step, Target, host_gone};
use crate::signal::Signal;
use crate::words::{Exit, Moment, OnExit, Proof, Reason};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A second ask within this time is the same ask: two HUPs of a closing window,
/// a harness that signals both the process and its group.
pub const JOIN_WINDOW: Duration = Duration::from_secs(1);

/// How often a stuck run is tried again. Its clients have been told that it is stuck.
pub const RETRY_EVERY: Duration = Duration::from_secs(1);

/// What was asked for when the run was made.
///
/// ```
/// use fullstop_core::ladder::Ladder;
/// use fullstop_core::machine::Plan;
/// use fullstop_core::words::OnExit;
///
/// let plan = Plan { ladder: Ladder::default(), on_exit: OnExit::Stop, timeout: None, no_output: None, idle: None };
/// assert_eq!(plan.ladder.to_string(), "term@leader:3s,term@tree:2s,kill");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Plan {
    pub ladder: Ladder,
    pub on_exit: OnExit,
    pub timeout: Option<Duration>,
    /// How long it may be silent.
    #[serde(default)]
    pub no_output: Option<Duration>,
    /// How long it may be silent and use no processor.
    #[serde(default)]
    pub idle: Option<Duration>,
}

/// What is known of the leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Leader {
    /// Never became the command.
    Unborn,
    Alive,
    Gone(Exit),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum State {
    /// The command does not run yet. `born` once a process was ordered for it.
    Starting {
        born: bool,
        clocks: Clocks,
    },
    Running {
        leader: Leader,
        clocks: Clocks,
    },
    Stopping(Stop),
    /// The last step was taken and there is no proof. Tracked and tried again.
    Stuck {
        reason: Reason,
        leader: Leader,
        again: Moment,
    },
    Ended {
        reason: Reason,
        leader: Leader,
        proof: Proof,
    },
    /// The leader exited and the rest was handed over on purpose.
    Released {
        leader: Leader,
    },
}

/// A stop under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stop {
    pub reason: Reason,
    pub leader: Leader,
    pub climb: Climb,
    /// When it was first asked for; nothing, if it began by itself.
    pub asked: Option<Moment>,
    /// When the soft steps are over at the latest, however patient the ladder is.
    pub limit: Option<Moment>,
}

/// Where on the ladder a stop stands.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Climb {
    Soft { ladder: Ladder, step: usize, deadline: Moment },
    Kill { deadline: Moment },
}

/// A fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    CageReady,
    LeaderRuns,
    SpawnFailed,
    LeaderExited {
        exit: Exit,
        rest: Rest,
    },
    /// A proof that nothing is alive.
    Extinct(Proof),
    Ask(Ask),
    Kill,
    /// A signal for the command that asks nothing of us.
    Forward(Signal),
    HostGone,
    /// So many are born that asking is in vain.
    Storm,
    /// Something was written.
    Output,
    /// Processor time was used.
    Busy,
    /// The terminal's user has stopped it, and its clocks with it.
    Paused,
    Resumed,
    /// Said to the guard's machine, which holds the keeper's last state.
    KeeperDied,
    Tick,
}

/// Whether others live when the leader is gone. One fact with its exit, because
/// a signal ordered between the two would come after the proof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rest {
    Alive,
    Gone(Proof),
}

/// A wish to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ask {
    /// By the ladder as it is written.
    Plain,
    /// This signal was sent to us alone.
    Signal(Signal),
    /// This signal came from the terminal, so the leader has it already.
    Terminal(Signal),
    /// A request of a client, which gets an answer, for this reason. Two requests are one stop,
    /// within the shorter time; without any time it is the last step.
    Order { reason: Reason, within: Option<Duration> },
}

/// An order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    Spawn,
    Signal {
        signal: Signal,
        whom: Recipients,
    },
    /// A step whose signal the leader has heard already: note it, send nothing.
    Heard(Signal),
    /// Pass a signal on to the leader; not a step.
    Forward(Signal),
    CloseStdin,
    WriteInput(String),
    /// Kill the cage.
    Kill,
    /// Let the rest go.
    Release,
    /// Say how it stands: ended, released, or stuck.
    Report,
}

/// The processes that get a step's signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Recipients {
    Leader,
    /// The keeper's direct children, which a dead wrapper leader has left behind.
    Children,
    Group,
    Tree,
}

impl State {
    pub fn new(plan: &Plan, now: Moment) -> State {
        State::Starting { born: false, clocks: Clocks::new(plan, now) }
    }

    /// When the machine wants its next [`Input::Tick`].
    pub fn deadline(&self) -> Option<Moment> {
        match self {
            State::Starting { clocks, .. } | State::Running { clocks, .. } => {
                clocks.next().map(|(at, _)| at)
            }
            State::Stopping(stop) => Some(stop.climb.deadline()),
            State::Stuck { again, .. } => Some(*again),
            State::Ended { .. } | State::Released { .. } => None,
        }
    }

    pub fn reason(&self) -> Option<Reason> {
        match self {
            State::Starting { .. } | State::Running { .. } => None,
            State::Stopping(stop) => Some(stop.reason),
            State::Stuck { reason, .. } | State::Ended { reason, .. } => Some(*reason),
            State::Released { .. } => Some(Reason::Exited),
        }
    }

    pub fn leader(&self) -> Leader {
        match self {
            State::Starting { born: false, .. } => Leader::Unborn,
            State::Starting { born: true, .. } => Leader::Alive,
            State::Running { leader, .. }
            | State::Stuck { leader, .. }
            | State::Ended { leader, .. }
            | State::Released { leader } => *leader,
            State::Stopping(stop) => stop.leader,
        }
    }

    /// Nothing more will happen.
    pub fn is_over(&self) -> bool {
        matches!(self, State::Ended { .. } | State::Released { .. })
    }

    /// It climbs the short ladder, of one second in all. A run's own ladder that has the same steps
    /// is climbed as fast.
    pub fn climbs_short_ladder(&self) -> bool {
        match self {
            State::Stopping(Stop { climb: Climb::Soft { ladder, .. }, .. }) => {
                *ladder == host_gone()
            }
            _ => false,
        }
    }

    /// The last step is being taken: look often.
    pub fn is_killing(&self) -> bool {
        matches!(self, State::Stopping(Stop { climb: Climb::Kill { .. }, .. }))
    }
}

impl Climb {
    pub fn deadline(&self) -> Moment {
        match self {
            Climb::Soft { deadline, .. } | Climb::Kill { deadline } => *deadline,
        }
    }

    pub fn current_step(&self) -> Option<&Step> {
        match self {
            Climb::Soft { ladder, step, .. } => ladder.soft().get(*step),
            Climb::Kill { .. } => None,
        }
    }
}

/// The table. What is not listed changes nothing: a late fact about a run that is over, a tick
/// before its time, a signal for a leader that is not there.
#[allow(clippy::match_same_arms)] // Each row stands for itself.
pub fn decide(plan: &Plan, state: State, input: Input, now: Moment) -> (State, Vec<Effect>) {
    match (state, input) {
        // Nothing is ever ordered once it is over.
        (state @ (State::Ended { .. } | State::Released { .. }), _) => (state, vec![]),

        // Before the birth there is nothing yet that could have ended.
        (state @ State::Starting { born: false, .. }, Input::Extinct(_)) => (state, vec![]),
        (state, Input::Extinct(proof)) => end(&state, proof),
        (state, Input::LeaderExited { exit, rest }) => leader_exited(plan, state, exit, rest, now),
        (state, Input::KeeperDied) => keeper_died(plan, state, now),
        (state, Input::Kill) => kill(plan, state, Reason::Killed, now),
        // The process ordered for the command never became it.
        (state, Input::SpawnFailed) => {
            kill(plan, with_leader(state, Leader::Unborn), Reason::SpawnFailed, now)
        }
        (state, Input::HostGone) => host_is_gone(state, now),

        // A storm saves nothing, and the second of the short ladder is needed to kill it. A stop by
        // a longer ladder keeps the patience that was asked for.
        (state, Input::Storm) if state.climbs_short_ladder() => patience_is_over(plan, state, now),

        (State::Starting { born: false, clocks }, Input::CageReady) => {
            (State::Starting { born: true, clocks }, vec![Effect::Spawn])
        }
        (State::Starting { born: true, clocks }, Input::LeaderRuns) => {
            (State::Running { leader: Leader::Alive, clocks }, vec![])
        }

        (state @ (State::Starting { .. } | State::Running { .. }), Input::Ask(ask)) => {
            asked(plan, state, ask, now)
        }
        (State::Stopping(stop), Input::Ask(ask)) => asked_again(plan, stop, ask, now),
        (state @ State::Stuck { .. }, Input::Ask(_)) => (state, vec![Effect::Kill]),

        (
            state @ (State::Starting { born: true, .. }
            | State::Running { leader: Leader::Alive, .. }
            | State::Stopping(Stop {
                leader: Leader::Alive, climb: Climb::Soft { .. }, ..
            })),
            Input::Forward(signal),
        ) => (state, vec![Effect::Forward(signal)]),

        (state, Input::Tick) if state.deadline().is_some_and(|at| at <= now) => {
            patience_is_over(plan, state, now)
        }

        (state, Input::Output) => (with_clocks(state, |clocks| clocks.output(plan, now)), vec![]),
        (state, Input::Busy) => (with_clocks(state, |clocks| clocks.busy(plan, now)), vec![]),
        // Told too late. It is the leader that is stopped and goes on; the dead never go on.
        (state @ State::Running { leader: Leader::Gone(_), .. }, Input::Paused) => (state, vec![]),
        (state, Input::Paused) => (with_clocks(state, |clocks| clocks.pause(now)), vec![]),
        (state, Input::Resumed) => (with_clocks(state, |clocks| clocks.resume(now)), vec![]),

        (
            state,
            Input::CageReady | Input::LeaderRuns | Input::Forward(_) | Input::Storm | Input::Tick,
        ) => (state, vec![]),
    }
}

fn end(state: &State, proof: Proof) -> (State, Vec<Effect>) {
    let leader = match state.leader() {
        Leader::Alive => Leader::Gone(Exit::Unknown),
        known => known,
    };
    let reason = state.reason().unwrap_or(Reason::Exited);
    (State::Ended { reason, leader, proof }, vec![Effect::Report])
}

fn leader_exited(
    plan: &Plan,
    state: State,
    exit: Exit,
    rest: Rest,
    now: Moment,
) -> (State, Vec<Effect>) {
    // What never became the command has no exit, and an exit once known stays.
    let leader = match state.leader() {
        Leader::Alive | Leader::Gone(Exit::Unknown) => Leader::Gone(exit),
        known => known,
    };
    if let Rest::Gone(proof) = rest {
        return end(&with_leader(state, leader), proof);
    }
    match (state, plan.on_exit) {
        (State::Starting { .. } | State::Running { .. }, OnExit::Stop) => {
            begin(Cause::unasked(Reason::Exited), plan.ladder.after_leader(), leader, now)
        }
        // A leader that was stopped when it was killed does not hold up the clocks of the rest.
        (State::Starting { clocks, .. } | State::Running { clocks, .. }, OnExit::Wait) => {
            (State::Running { leader, clocks: clocks.resume(now) }, vec![])
        }
        (State::Starting { .. } | State::Running { .. }, OnExit::Release) => {
            (State::Released { leader }, vec![Effect::Release, Effect::Report])
        }
        (State::Stopping(stop), _) => asked_leader_exited(Stop { leader, ..stop }, now),
        (state, _) => (with_leader(state, leader), vec![]),
    }
}

/// The leader is gone in the middle of a step that may have been meant for it.
fn asked_leader_exited(stop: Stop, now: Moment) -> (State, Vec<Effect>) {
    let Climb::Soft { ladder, step, .. } = &stop.climb else {
        return (State::Stopping(stop), vec![]);
    };
    match stop.climb.current_step() {
        // A wrapper died of the signal meant for the agent behind it: the same step goes on to
        // those it left, within the patience that remains. A kill was meant for the leader alone.
        Some(&Step { action: Action::Signal(signal), target: Target::Leader, .. })
            if signal != Signal::KILL =>
        {
            (State::Stopping(stop), vec![Effect::Signal { signal, whom: Recipients::Children }])
        }
        // The step was for the leader's stdin alone; no other process was asked yet.
        Some(Step { action: Action::CloseStdin | Action::Input(_), .. }) => {
            climb(stop.cause(), ladder.clone(), step + 1, stop.leader, now)
        }
        _ => (State::Stopping(stop), vec![]),
    }
}

fn with_leader(state: State, leader: Leader) -> State {
    match state {
        State::Starting { clocks, .. } | State::Running { clocks, .. } => {
            State::Running { leader, clocks }
        }
        State::Stopping(stop) => State::Stopping(Stop { leader, ..stop }),
        State::Stuck { reason, again, .. } => State::Stuck { reason, leader, again },
        State::Ended { reason, proof, .. } => State::Ended { reason, leader, proof },
        State::Released { .. } => State::Released { leader },
    }
}

/// The run's clocks count until a stop begins; from then on there are only its steps.
fn with_clocks(state: State, change: impl FnOnce(Clocks) -> Clocks) -> State {
    match state {
        State::Starting { born, clocks } => State::Starting { born, clocks: change(clocks) },
        State::Running { leader, clocks } => State::Running { leader, clocks: change(clocks) },
        state => state,
    }
}

fn asked(plan: &Plan, state: State, ask: Ask, now: Moment) -> (State, Vec<Effect>) {
    let leader = state.leader();
    let (ladder, heard) = match ask {
        Ask::Plain | Ask::Order { .. } => (plan.ladder.clone(), false),
        Ask::Terminal(Signal::HUP) => (plan.ladder.starting_with(Signal::HUP), true),
        // The command has it; what it makes of a Ctrl-C is its own business.
        Ask::Terminal(_) if leader == Leader::Alive => return (state, vec![]),
        // Where there is no command to make anything of it, it is an ask like any.
        Ask::Signal(signal) | Ask::Terminal(signal) => (plan.ladder.starting_with(signal), false),
    };
    let (reason, within) = match ask {
        Ask::Order { reason, within } => (reason, within),
        _ => (Reason::Stopped, None),
    };
    let limit = within.map(|within| now + within);
    let (state, mut effects) =
        begin(Cause { reason, asked: Some(now), limit }, ladder, leader, now);
    if heard {
        for effect in &mut effects {
            if let Effect::Signal { signal: Signal::HUP, whom: Recipients::Leader } = effect {
                *effect = Effect::Heard(Signal::HUP);
            }
        }
    }
    (state, effects)
}

fn asked_again(plan: &Plan, mut stop: Stop, ask: Ask, now: Moment) -> (State, Vec<Effect>) {
    // A client that wants it faster can ask for a kill. A second stop joins the first, and may
    // shorten it.
    if let Ask::Order { within, .. } = ask {
        return shorten(stop, within, now);
    }
    let first = *stop.asked.get_or_insert(now);
    let hup = matches!(ask, Ask::Signal(Signal::HUP) | Ask::Terminal(Signal::HUP));
    let joins = hup || now.since(first) < JOIN_WINDOW;
    let state = State::Stopping(stop);
    if joins { (state, vec![]) } else { kill(plan, state, Reason::Killed, now) }
}

/// Clips a stop that is under way to a shorter time. A longer one changes nothing.
fn shorten(mut stop: Stop, within: Option<Duration>, now: Moment) -> (State, Vec<Effect>) {
    let (Some(within), Climb::Soft { ladder, step, deadline }) = (within, &mut stop.climb) else {
        return (State::Stopping(stop), vec![]);
    };
    let limit = stop.limit.map_or(now + within, |before| before.min(now + within));
    if limit <= now {
        let (ladder, step) = (ladder.clone(), *step);
        return climb(Cause { limit: Some(limit), ..stop.cause() }, ladder, step, stop.leader, now);
    }
    *deadline = limit.min(*deadline);
    stop.limit = Some(limit);
    (State::Stopping(stop), vec![])
}

/// To the last step, from wherever it stands.
fn kill(plan: &Plan, state: State, reason: Reason, now: Moment) -> (State, Vec<Effect>) {
    let reason = state.reason().unwrap_or(reason);
    let leader = state.leader();
    match state {
        State::Stuck { .. } => (state, vec![Effect::Kill]),
        State::Stopping(Stop { climb: Climb::Kill { .. }, .. }) => (state, vec![]),
        State::Stopping(stop) => last_step(plan, stop.cause(), leader, now),
        _ => last_step(plan, Cause::unasked(reason), leader, now),
    }
}

fn keeper_died(plan: &Plan, state: State, now: Moment) -> (State, Vec<Effect>) {
    match state {
        // The guard has not taken this step itself yet, and needs its time for it.
        State::Stopping(stop @ Stop { climb: Climb::Kill { .. }, .. }) => {
            last_step(plan, stop.cause(), stop.leader, now)
        }
        state => kill(plan, state, Reason::KeeperDied, now),
    }
}

fn host_is_gone(state: State, now: Moment) -> (State, Vec<Effect>) {
    let leader = state.leader();
    match state {
        State::Starting { .. } | State::Running { .. } => {
            begin(Cause::unasked(Reason::HostGone), host_gone(), leader, now)
        }
        // The host is gone that would have waited for the long ladder; the reason stays the first.
        // Its death is seen in more than one way, and only the first starts the clock.
        State::Stopping(stop) if matches!(&stop.climb, Climb::Soft { ladder, .. } if *ladder != host_gone()) => {
            begin(stop.cause(), host_gone(), leader, now)
        }
        state => (state, vec![]),
    }
}

fn patience_is_over(plan: &Plan, state: State, now: Moment) -> (State, Vec<Effect>) {
    let leader = state.leader();
    match state {
        State::Starting { clocks, .. } | State::Running { clocks, .. } => match clocks.next() {
            Some((_, reason)) => begin(Cause::unasked(reason), plan.ladder.clone(), leader, now),
            None => (state, vec![]),
        },
        State::Stopping(stop) => match &stop.climb {
            Climb::Soft { ladder, step, .. } => {
                climb(stop.cause(), ladder.clone(), step + 1, leader, now)
            }
            Climb::Kill { .. } => {
                let (reason, again) = (stop.reason, now + RETRY_EVERY);
                (State::Stuck { reason, leader, again }, vec![Effect::Report])
            }
        },
        State::Stuck { reason, .. } => {
            (State::Stuck { reason, leader, again: now + RETRY_EVERY }, vec![Effect::Kill])
        }
        state @ (State::Ended { .. } | State::Released { .. }) => (state, vec![]),
    }
}

/// Why a stop began, and what bounds it: the same from its first step to its last.
#[derive(Clone, Copy)]
struct Cause {
    reason: Reason,
    asked: Option<Moment>,
    limit: Option<Moment>,
}

impl Cause {
    fn unasked(reason: Reason) -> Cause {
        Cause { reason, asked: None, limit: None }
    }
}

impl Stop {
    fn cause(&self) -> Cause {
        Cause { reason: self.reason, asked: self.asked, limit: self.limit }
    }
}

/// The first step of a stop.
fn begin(cause: Cause, ladder: Ladder, leader: Leader, now: Moment) -> (State, Vec<Effect>) {
    // Without a leader that could be asked, the last step is taken at once.
    let step = if leader == Leader::Unborn { ladder.soft().len() } else { 0 };
    climb(cause, ladder, step, leader, now)
}

fn climb(
    cause: Cause,
    ladder: Ladder,
    step: usize,
    leader: Leader,
    now: Moment,
) -> (State, Vec<Effect>) {
    let Cause { reason, asked, limit } = cause;
    // A step that has nothing to order is not waited for, and none begins when the time is over.
    let in_time = limit.is_none_or(|limit| now < limit);
    let mut steps = ladder.soft().iter().enumerate().skip(step).filter(|_| in_time);
    let next = steps.find_map(|(step, at)| Some((step, at.patience, order(at, leader)?)));
    let (climb, effect) = match next {
        Some((step, patience, effect)) => {
            let deadline = limit.map_or(now + patience, |limit| limit.min(now + patience));
            (Climb::Soft { ladder, step, deadline }, effect)
        }
        None => (Climb::Kill { deadline: now + ladder.kill_patience() }, Effect::Kill),
    };
    let state = State::Stopping(Stop { reason, leader, climb, asked, limit });
    (state, vec![effect])
}

fn last_step(plan: &Plan, cause: Cause, leader: Leader, now: Moment) -> (State, Vec<Effect>) {
    let end = plan.ladder.soft().len();
    climb(cause, plan.ladder.clone(), end, leader, now)
}

/// What a step orders. Nothing, if it is for a leader that is gone.
fn order(step: &Step, leader: Leader) -> Option<Effect> {
    let gone = matches!(leader, Leader::Gone(_));
    match &step.action {
        Action::Signal(signal) => {
            let whom = match step.target {
                Target::Leader if gone => Recipients::Children,
                Target::Leader => Recipients::Leader,
                Target::Group => Recipients::Group,
                Target::Tree => Recipients::Tree,
            };
            Some(Effect::Signal { signal: *signal, whom })
        }
        Action::CloseStdin | Action::Input(_) if gone => None,
        Action::CloseStdin => Some(Effect::CloseStdin),
        Action::Input(text) => Some(Effect::WriteInput(text.clone())),
    }
}
