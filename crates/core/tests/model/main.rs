//! The machine in all its possible surroundings, explored to the end.

mod broken;
mod cast;
mod faults;
mod laws;
mod waited;
mod world;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fullstop_core::machine::{self, Ask, Climb, Input, Leader, Plan, Rest, State, Stop};
use fullstop_core::signal::Signal;
use fullstop_core::words::{OnExit, Reason};
use stateright::{Checker, HasDiscoveries, Model, Property};

use cast::{Happens, Left};
use world::{Decide, World};

/// How people and harnesses ask.
const ASKS: [Ask; 6] = [
    Ask::Plain,
    Ask::Signal(Signal::INT),
    Ask::Terminal(Signal::INT),
    Ask::Terminal(Signal::HUP),
    Ask::Order { reason: Reason::GroupClosed, within: None },
    Ask::Order { reason: Reason::Stopped, within: Some(Duration::from_secs(1)) },
];

/// Nothing happens but birth, forks, deaths and time.
pub const QUIET: Left = Left {
    asks: 0,
    kills: 0,
    hosts: 0,
    storms: 0,
    waits: 0,
    retries: 1,
    freezes: 0,
    thaws: 0,
    keepers: 0,
    signs: 0,
    pauses: 0,
};

/// What may happen together. Everything at once is too much for a test: two asks, say, need no
/// frozen member to race.
const TOGETHER: [Left; 8] = [
    // People ask again, early and late, and ask for the kill.
    Left { asks: 2, kills: 1, waits: 1, ..QUIET },
    // The keeper dies when they have asked.
    Left { asks: 1, keepers: 1, ..QUIET },
    // The host dies, and so does the keeper.
    Left { kills: 1, hosts: 1, keepers: 1, ..QUIET },
    // They breed while they are asked.
    Left { asks: 1, hosts: 1, storms: 1, keepers: 1, ..QUIET },
    // A member cannot be killed until it is thawed.
    Left { kills: 1, freezes: 1, thaws: 1, keepers: 1, ..QUIET },
    // A member can never be killed.
    Left { asks: 1, kills: 1, hosts: 1, freezes: 1, retries: 2, ..QUIET },
    // It shows signs of life, is paused and goes on, and somebody kills it.
    Left { kills: 1, signs: 2, pauses: 2, ..QUIET },
    // The keeper dies in a pause.
    Left { keepers: 1, signs: 1, pauses: 1, ..QUIET },
];

/// A kind of state and the fact that met it.
type Row = (&'static str, &'static str);

pub struct Surroundings {
    plans: Vec<Plan>,
    left: Left,
    decide: Decide,
    /// The rows of the machine's table that were used.
    rows: Arc<Mutex<BTreeSet<Row>>>,
}

impl Surroundings {
    fn new(left: Left, decide: Decide) -> Surroundings {
        let plans = if left.signs + left.pauses > 0 { watched() } else { plans() };
        Surroundings { plans, left, decide, rows: Arc::default() }
    }

    pub fn plan(&self, world: &World) -> &Plan {
        &self.plans[world.plan]
    }
}

impl Model for Surroundings {
    type State = World;
    type Action = Happens;

    fn init_states(&self) -> Vec<World> {
        let plans = self.plans.iter().enumerate();
        plans.map(|(index, plan)| World::new(index, plan, self.left)).collect()
    }

    fn actions(&self, world: &World, actions: &mut Vec<Happens>) {
        actions.extend(world.possible());
    }

    fn next_state(&self, world: &World, what: Happens) -> Option<World> {
        let note = |state: &State, fact| {
            self.rows.lock().unwrap().insert((state_name(state), fact));
        };
        Some(world.after(what, self.plan(world), self.decide, note))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        laws::all()
    }
}

const DEFAULT: &str = "term@leader:3s,term@tree:2s,kill";

fn plan(ladder: &str, on_exit: OnExit, timeout: Option<Duration>) -> Plan {
    Plan { ladder: ladder.parse().unwrap(), on_exit, timeout, no_output: None, idle: None }
}

fn plans() -> Vec<Plan> {
    let timeout = Some(Duration::from_secs(10));
    vec![
        plan(DEFAULT, OnExit::Stop, None),
        plan(DEFAULT, OnExit::Stop, timeout),
        plan(DEFAULT, OnExit::Wait, None),
        plan(DEFAULT, OnExit::Wait, timeout),
        plan(DEFAULT, OnExit::Release, timeout),
        plan("close-stdin:2s,kill:1s", OnExit::Stop, timeout),
        plan("kill", OnExit::Stop, None),
    ]
}

/// The plans that matter where clocks begin anew and stand still. A sign of life takes a second:
/// each clock runs out first in some world, and some run out at once.
fn watched() -> Vec<Plan> {
    let watched = |on_exit, timeout, no_output, idle| {
        let seconds = |n| Some(Duration::from_secs(n));
        let (no_output, idle) = (seconds(no_output), seconds(idle));
        Plan { no_output, idle, ..plan(DEFAULT, on_exit, seconds(timeout)) }
    };
    vec![watched(OnExit::Stop, 5, 4, 3), watched(OnExit::Wait, 4, 3, 3)]
}

fn state_name(state: &State) -> &'static str {
    match state {
        State::Starting { born: false, .. } => "starting",
        State::Starting { born: true, .. } => "born",
        State::Running { leader: Leader::Alive, .. } => "running",
        State::Running { .. } => "waiting",
        State::Stopping(Stop { climb: Climb::Soft { .. }, .. }) => "asking",
        State::Stopping(Stop { climb: Climb::Kill { .. }, .. }) => "killing",
        State::Stuck { .. } => "stuck",
        State::Ended { .. } => "ended",
        State::Released { .. } => "released",
    }
}

fn input_name(input: Input) -> &'static str {
    match input {
        Input::CageReady => "cage-ready",
        Input::LeaderRuns => "leader-runs",
        Input::SpawnFailed => "spawn-failed",
        Input::LeaderExited { rest: Rest::Alive, .. } => "leader-exited",
        Input::LeaderExited { rest: Rest::Gone(_), .. } => "all-exited",
        Input::Extinct(_) => "extinct",
        Input::Ask(_) => "ask",
        Input::Kill => "kill",
        Input::Forward(_) => "forward",
        Input::HostGone => "host-gone",
        Input::Storm => "storm",
        Input::Output => "output",
        Input::Busy => "busy",
        Input::Paused => "paused",
        Input::Resumed => "resumed",
        Input::KeeperDied => "keeper-died",
        Input::Tick => "tick",
    }
}

/// The races this model is for. Each must have been met, or it was not explored.
const RACES: &[(&str, &[Row])] = &[
    ("stop while starting", &[("starting", "ask"), ("born", "ask"), ("killing", "cage-ready")]),
    ("stop against exec", &[("asking", "leader-runs"), ("asking", "spawn-failed")]),
    (
        "stop against natural exit",
        &[
            ("running", "ask"),
            ("asking", "leader-exited"),
            ("asking", "all-exited"),
            ("asking", "ask"),
        ],
    ),
    ("kill during a step", &[("asking", "kill"), ("killing", "kill"), ("stuck", "kill")]),
    (
        "timeout against stop",
        &[("starting", "tick"), ("born", "tick"), ("running", "tick"), ("waiting", "tick")],
    ),
    (
        "keeper death at every state",
        &[
            ("starting", "keeper-dies"),
            ("born", "keeper-dies"),
            ("running", "keeper-dies"),
            ("waiting", "keeper-dies"),
            ("asking", "keeper-dies"),
            ("killing", "keeper-dies"),
            ("stuck", "keeper-dies"),
            ("ended", "keeper-dies"),
            ("released", "keeper-dies"),
            ("running", "keeper-died"),
            ("asking", "keeper-died"),
            ("killing", "keeper-died"),
        ],
    ),
    (
        "leader gone while members live",
        &[
            ("running", "leader-exited"),
            ("waiting", "extinct"),
            ("killing", "leader-exited"),
            ("stuck", "leader-exited"),
        ],
    ),
    ("stuck, and confirmed", &[("stuck", "tick"), ("stuck", "extinct"), ("stuck", "all-exited")]),
    (
        "the host's death",
        &[
            ("starting", "host-gone"),
            ("running", "host-gone"),
            ("waiting", "host-gone"),
            ("asking", "host-gone"),
            ("killing", "host-gone"),
            ("stuck", "host-gone"),
        ],
    ),
    ("a storm", &[("asking", "storm"), ("killing", "storm")]),
    (
        "clocks against signs of life and pauses",
        &[
            ("born", "output"),
            ("running", "output"),
            ("running", "busy"),
            ("running", "paused"),
            ("running", "resumed"),
            ("running", "tick"),
            ("waiting", "output"),
            ("waiting", "busy"),
            ("waiting", "paused"),
            ("waiting", "tick"),
        ],
    ),
];

/// Explores to the end and returns the rows that were used.
fn explore(left: Left) -> BTreeSet<Row> {
    let model = Surroundings::new(left, machine::decide);
    let rows = Arc::clone(&model.rows);
    let checker = model.checker().threads(2).spawn_bfs().join();
    println!("{left:?}: {} worlds, {} deep", checker.unique_state_count(), checker.max_depth());
    checker.assert_properties();
    let rows = rows.lock().unwrap();
    rows.clone()
}

#[test]
fn the_laws_hold_in_every_race() {
    let rows: BTreeSet<Row> = TOGETHER.into_iter().flat_map(explore).collect();
    for (race, needed) in RACES {
        for row in *needed {
            assert!(rows.contains(row), "{race}: {row:?} was never met");
        }
    }
}

#[test]
fn every_law_can_be_broken() {
    let laws: BTreeSet<&str> = laws::all().iter().map(|law| law.name).collect();
    let broken: BTreeSet<&str> = broken::ALL.iter().map(|(law, ..)| *law).collect();
    assert_eq!(laws, broken);
    for (law, decide, left) in broken::ALL {
        let checker = Surroundings::new(*left, *decide).checker();
        let caught = HasDiscoveries::AnyOf(BTreeSet::from([*law]));
        let checker = checker.threads(2).finish_when(caught).spawn_bfs().join();
        assert!(checker.discovery(law).is_some(), "not caught: {law}");
    }
}
