//! The machine in all its possible surroundings, explored to the end.

mod faults;
mod world;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use fullstop_core::machine::{self, Ask, Climb, Input, Leader, Plan, State, Stop};
use fullstop_core::signal::Signal;
use fullstop_core::words::{OnExit, Reason};
use stateright::{Checker, Model, Property};

use faults::{Fault, Told};
use world::{Decide, Exec, Happens, Left, World};

/// How people and harnesses ask.
const ASKS: [Ask; 4] = [
    Ask::Plain,
    Ask::Signal(Signal::INT),
    Ask::Terminal(Signal::INT),
    Ask::Terminal(Signal::HUP),
];

struct Surroundings {
    plans: Vec<Plan>,
    left: Left,
    decide: Decide,
    rows: Arc<Mutex<BTreeSet<(&'static str, &'static str)>>>,
}

fn kind(state: &State) -> &'static str {
    match state {
        State::Starting { born: false, .. } => "starting",
        State::Starting { born: true, .. } => "born",
        State::Running { leader: Leader::Alive, .. } => "running",
        State::Running { .. } => "running, leader gone",
        State::Stopping(Stop { climb: Climb::Soft { .. }, .. }) => "asking",
        State::Stopping(Stop { climb: Climb::Kill { .. }, .. }) => "killing",
        State::Stuck { .. } => "stuck",
        State::Ended { .. } => "ended",
        State::Released { .. } => "released",
    }
}
fn input_kind(input: Input) -> &'static str {
    match input {
        Input::CageReady => "cage",
        Input::LeaderRuns => "runs",
        Input::SpawnFailed => "failed",
        Input::LeaderExited {..} => "exit",
        Input::Extinct(_) => "extinct",
        Input::Ask(_) => "ask",
        Input::Kill => "kill",
        Input::Forward(_) => "forward",
        Input::HostGone => "host",
        Input::KeeperDied => "keeper",
        Input::Tick => "tick",
    }
}

fn keeps(world: &World, fault: Fault) -> bool {
    world.seen.fault != Some(fault)
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
        let rows = |state: &State, input| {
            self.rows.lock().unwrap().insert((kind(state), input_kind(input)));
        };
        Some(world.after(what, &self.plans[world.plan], self.decide, rows))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("ended only with a proof", |_, w: &World| {
                keeps(w, Fault::EndedWithoutProof)
                    && !(matches!(w.machine, State::Ended { .. }) && w.anybody_lives())
            }),
            Property::always("the first reason stays", |_, w: &World| keeps(w, Fault::ReasonChanged)),
            Property::always("no order after the proof", |_, w: &World| keeps(w, Fault::OrderAfterProof)),
            Property::always("born once, and not after a stop", |_, w: &World| keeps(w, Fault::BornTwiceOrTooLate)),
            Property::always("nobody is asked after the kill", |_, w: &World| keeps(w, Fault::AskedAfterKill)),
            Property::always("no dead leader is asked", |_, w: &World| keeps(w, Fault::DeadLeaderAsked)),
            Property::always("a stop is over in time", |_, w: &World| keeps(w, Fault::TooLate)),
            Property::always("every path comes to an end", |m: &Self, w: &World| {
                let over = match w.machine {
                    State::Ended { .. } | State::Released { .. } | State::Stuck { .. } => true,
                    State::Running { leader: Leader::Gone(_), deadline: None } => m.plans[w.plan].on_exit == OnExit::Wait && w.anybody_lives(),
                    _ => false,
                };
                over || !w.possible().is_empty() || w.seen.fault.is_some()
            }),
            Property::always("a stuck run ends when it can", |_, w: &World| {
                !matches!(w.machine, State::Stuck { .. }) || w.anybody_lives() || !w.possible().is_empty()
            }),
            Property::always("stuck only after a kill", |_, w: &World| {
                !matches!(w.machine, State::Stuck { .. }) || w.seen.kill_done
            }),
            Property::always("told", |_, w: &World| {
                if !w.possible().is_empty() {return true;}
                match w.machine {
                    State::Ended{..} => w.seen.told == Some(Told::Ended),
                    State::Stuck{..} => w.seen.told == Some(Told::Stuck),
                    State::Released{..} => w.seen.told == Some(Told::Released),
                    _ => true,
                }
            }),
            Property::always("unborn has no exit", |_, w: &World| {
                !(w.exec == Exec::Failed{told:true} && matches!(w.machine, State::Ended{leader: Leader::Gone(_), ..}))
            }),
            Property::sometimes("stuck, then ended", |_, w: &World| w.seen.was_stuck && matches!(w.machine, State::Ended{..})),
            Property::sometimes("released", |_, w: &World| matches!(w.machine, State::Released{..})),
            Property::sometimes("timeout", |_, w: &World| w.machine.reason() == Some(Reason::OverallTimeout)),
        ]
    }
}

fn plans() -> Vec<Plan> {
    let mut plans = vec![];
    for ladder in ["term@leader:3s,term@tree:2s,kill", "close-stdin:2s,kill:1s"] {
        for on_exit in [OnExit::Stop, OnExit::Wait, OnExit::Release] {
            for timeout in [None, Some(Duration::from_secs(10))] {
                plans.push(Plan { ladder: ladder.parse().unwrap(), on_exit, timeout });
            }
        }
    }
    plans
}

#[test]
fn explore() {
    let start = Instant::now();
    let env = |name: &str, or: u8| std::env::var(name).ok().map_or(or, |v| v.parse().unwrap());
    let left = Left { asks: env("ASKS",2), kills: env("KILLS",1), hosts: env("HOSTS",1), waits: env("WAITS",1), retries: env("RETRIES",1), freezes: env("FREEZES",1), thaws: env("THAWS",1), keepers: env("KEEPERS",1) };
    let rows = Arc::default();
    let model = Surroundings { plans: plans(), left, decide: machine::decide, rows: Arc::clone(&rows) };
    let checker = model.checker().threads(2).spawn_bfs().join();
    println!("{} unique, {} states, depth {}, {:?}", checker.unique_state_count(), checker.state_count(), checker.max_depth(), start.elapsed());
    for (name, path) in checker.discoveries() {
        println!("{name}: {:?}", path.into_actions());
    }
    println!("{:?}", rows.lock().unwrap());
}
