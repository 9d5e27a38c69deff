//! The laws, each as a question to one world.

use fullstop_core::machine::{Leader, State};
use fullstop_core::words::OnExit;
use stateright::Property;

use crate::Surroundings;
use crate::cast::Hand;
use crate::faults::{Fault, Told};
use crate::world::World;

pub const PROVEN: &str = "ended is never reached without a proof";
pub const FIRST_REASON: &str = "the first reason never changes";
pub const SILENCE: &str = "nothing is ordered after the proof";
pub const BIRTH: &str = "the leader is born once, and never after a stop";
pub const NO_WAY_BACK: &str = "nobody is asked after the kill";
pub const THE_LIVING: &str = "a leader that is gone is not asked";
pub const IN_TIME: &str = "a stop is over within its ladder";
pub const CLIPPED: &str = "a stop that was given a time kills when it is over";
pub const SETTLED: &str = "every stop comes to ended, stuck or released";
pub const CONFIRMED: &str = "a stuck run ends once its survivors have";
pub const TRIED: &str = "stuck is said only after a kill";
pub const GUARDED: &str = "a guard that takes over kills";
pub const ON_PURPOSE: &str = "released only where that was asked for";
pub const PATIENT: &str = "a clock ends a run when its patience is used up";
pub const TOLD: &str = "how it ended is told";

fn keeps(world: &World, fault: Fault) -> bool {
    world.seen.fault != Some(fault)
}

fn is_stuck(world: &World) -> bool {
    matches!(world.machine, State::Stuck { .. })
}

/// Nothing has to happen here any more.
fn is_final(world: &World) -> bool {
    world.seen.fault.is_none() && world.is_quiet()
}

fn settled(model: &Surroundings, world: &World) -> bool {
    let plan = model.plan(world);
    let timeless = [plan.timeout, plan.no_output, plan.idle] == [None; 3];
    match world.machine {
        State::Ended { .. } | State::Released { .. } | State::Stuck { .. } => true,
        // A command may run for ever, and `wait` waits for ever, if there is no clock or it stands.
        State::Running { leader: Leader::Alive, .. } => {
            (timeless || world.waited.paused) && world.leader.lives()
        }
        State::Running { leader: Leader::Gone(_), .. } => {
            timeless && plan.on_exit == OnExit::Wait && world.anybody_lives()
        }
        _ => false,
    }
}

fn told(world: &World) -> bool {
    let truth = match world.machine {
        State::Ended { .. } => Some(Told::Ended),
        State::Stuck { .. } => Some(Told::Stuck),
        State::Released { .. } => Some(Told::Released),
        _ => return true,
    };
    world.seen.told == truth
}

fn law(name: &'static str, holds: fn(&Surroundings, &World) -> bool) -> Property<Surroundings> {
    Property::always(name, holds)
}

pub fn all() -> Vec<Property<Surroundings>> {
    vec![
        law(PROVEN, |_, world| {
            let ended = matches!(world.machine, State::Ended { .. });
            keeps(world, Fault::EndedWithoutProof) && !(ended && world.anybody_lives())
        }),
        law(FIRST_REASON, |_, world| keeps(world, Fault::ReasonChanged)),
        law(SILENCE, |_, world| keeps(world, Fault::OrderAfterProof)),
        law(BIRTH, |_, world| keeps(world, Fault::BornTwiceOrTooLate)),
        law(NO_WAY_BACK, |_, world| keeps(world, Fault::AskedAfterKill)),
        law(THE_LIVING, |_, world| keeps(world, Fault::DeadLeaderAsked)),
        law(IN_TIME, |_, world| keeps(world, Fault::TooLate)),
        law(CLIPPED, |_, world| keeps(world, Fault::NotClipped)),
        law(SETTLED, |model, world| !is_final(world) || settled(model, world)),
        law(CONFIRMED, |_, world| !is_final(world) || !is_stuck(world) || world.anybody_lives()),
        law(TRIED, |_, world| !is_stuck(world) || world.seen.killed_by.is_some()),
        law(GUARDED, |_, world| {
            let busy = world.hand != Hand::Guard || !world.owed.is_empty();
            busy || world.machine.is_over() || world.seen.killed_by == Some(Hand::Guard)
        }),
        law(ON_PURPOSE, |model, world| {
            let released = matches!(world.machine, State::Released { .. });
            !released || model.plan(world).on_exit == OnExit::Release
        }),
        law(PATIENT, |_, world| keeps(world, Fault::WrongClock)),
        law(TOLD, |_, world| !is_final(world) || told(world)),
    ]
}
