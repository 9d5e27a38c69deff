//! Joining and closing a group, in every order in which their steps can meet.
//!
//! Each action is one system call of `groups.rs`, `mark.rs`, `rundir.rs` or `Group::close`, or
//! the death of the process that makes them. Opening a group again takes the promise back for
//! starts that are asked for afterwards, and for no others.

mod cast;
mod orders;
mod tree;
mod world;

use cast::{Groups, Left, Plan};
use orders::Variant;
use stateright::{Checker, HasDiscoveries, Model, Property};
use tree::Place;
use world::{Happens, World};

const KEPT: &str = "after a close nobody lives in it that was asked for before";
const RETURNS: &str = "a close comes to its end";
const CLEAN: &str = "whoever is put away is in no group";

/// What may happen together; everything at once is too much for a test.
const QUIET: Left = Left { crashes: 0, prunes: 0, restarts: 0, opens: 0 };

pub struct Protocol {
    plan: Plan,
    variant: Variant,
}

impl Model for Protocol {
    type State = World;
    type Action = Happens;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(&self.plan, self.variant)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Happens>) {
        world.possible(self.variant, actions);
    }

    fn next_state(&self, world: &World, what: Happens) -> Option<World> {
        Some(world.after(self.variant, what))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let met = |name, met: fn(&Protocol, &World) -> bool| Property::sometimes(name, met);
        vec![
            Property::always(KEPT, |_, world: &World| {
                !world.closer.has_returned() || world.living_below_closed() == 0
            }),
            Property::always(RETURNS, |model, world: &World| {
                let mut actions = Vec::new();
                world.possible(model.variant, &mut actions);
                !actions.is_empty() || world.closer.has_returned() || world.closer.is_dead()
            }),
            Property::always(CLEAN, |_, world: &World| {
                world.runs.iter().all(|run| run.listed || !run.registered)
            }),
            // The races this model is for. One that is never met was not explored.
            met("refused by a close", |_, world| world.seen.refused),
            met("stopped by a close", |_, world| world.seen.stopped),
            met("swept, or never lost", |model, world| {
                world.seen.swept || model.plan.left.crashes == 0
            }),
            met("made anew after a prune, or never pruned", |model, world| {
                world.seen.made_anew || model.plan.left.prunes == 0
            }),
            met("restarted into a closed group, or never restarted", |model, world| {
                world.seen.restarted_late || model.plan.left.restarts == 0
            }),
            met("refused when it is open again, or never opened", |model, world| {
                world.seen.refused_when_open || model.plan.left.opens == 0
            }),
        ]
    }
}

fn explore(plan: Plan, variant: Variant) -> impl Checker<Protocol> {
    let broken = HasDiscoveries::AnyOf([KEPT].into());
    let checker = Protocol { plan, variant }.checker().finish_when(broken);
    let checker = checker.threads(2).spawn_bfs().join();
    println!("{variant:?}: {} worlds, {} deep", checker.unique_state_count(), checker.max_depth());
    checker
}

#[test]
fn three_join_while_the_group_above_is_closed() {
    let places = vec![Place::Outer, Place::Inner, Place::Inner];
    explore(
        Plan { groups: Groups::Open, places, close: Place::Outer, left: QUIET },
        Variant::AsCoded,
    )
    .assert_properties();
}

#[test]
fn three_join_while_their_own_group_is_closed() {
    let places = vec![Place::Inner, Place::Inner, Place::Inner];
    explore(
        Plan { groups: Groups::Open, places, close: Place::Inner, left: QUIET },
        Variant::AsCoded,
    )
    .assert_properties();
}

#[test]
fn whoever_crashes_at_any_step() {
    let left = Left { crashes: 2, ..QUIET };
    let places = vec![Place::Outer, Place::Inner];
    explore(Plan { groups: Groups::Missing, places, close: Place::Outer, left }, Variant::AsCoded)
        .assert_properties();
}

#[test]
fn while_empty_groups_are_pruned() {
    // With two of them both groups can be forgotten.
    for (close, prunes) in [(Place::Outer, 2), (Place::Inner, 1)] {
        let left = Left { prunes, ..QUIET };
        let plan =
            Plan { groups: Groups::Open, places: vec![Place::Inner, Place::Inner], close, left };
        explore(plan, Variant::AsCoded).assert_properties();
    }
}

#[test]
fn while_runs_are_started_again() {
    let left = Left { restarts: 2, crashes: 1, ..QUIET };
    let places = vec![Place::Inner, Place::Inner];
    explore(Plan { groups: Groups::Open, places, close: Place::Outer, left }, Variant::AsCoded)
        .assert_properties();
}

#[test]
fn while_the_group_is_opened_again() {
    let left = Left { opens: 2, ..QUIET };
    let places = vec![Place::Inner, Place::Inner];
    for close in [Place::Outer, Place::Inner] {
        let plan = Plan { groups: Groups::Open, places: places.clone(), close, left };
        explore(plan, Variant::AsCoded).assert_properties();
    }
}

/// Two of them find it closed, and open it side by side, each as late as can be.
#[test]
fn while_two_open_the_group_at_once() {
    let quiet = Left { opens: 2, ..QUIET };
    let (crash, prune) = (Left { crashes: 1, ..quiet }, Left { prunes: 1, ..quiet });
    for (runs, left) in [(2, quiet), (1, crash), (1, prune)] {
        let places = vec![Place::Outer; runs];
        let plan = Plan { groups: Groups::Closed, places, close: Place::Outer, left };
        explore(plan, Variant::AsCoded).assert_properties();
    }
}

#[test]
fn while_the_group_is_opened_again_and_forgotten() {
    let left = Left { opens: 1, prunes: 1, ..QUIET };
    let places = vec![Place::Outer, Place::Outer];
    let plan = Plan { groups: Groups::Open, places, close: Place::Outer, left };
    explore(plan, Variant::AsCoded).assert_properties();
}

/// Without the comparison of generations, or with one that can repeat, a start that is late is
/// born into a group that was closed after it was asked for.
#[test]
fn a_late_start_is_born_where_generations_are_not_compared() {
    for variant in Variant::BROKEN_BY_AN_OPEN {
        let (place, prunes) =
            if variant == Variant::SameWhenNew { (Place::Outer, 1) } else { (Place::Inner, 0) };
        let left = Left { opens: 1, prunes, ..QUIET };
        let plan =
            Plan { groups: Groups::Missing, places: vec![place; 2], close: Place::Outer, left };
        let checker = explore(plan, variant);
        assert!(checker.discovery(KEPT).is_some(), "not caught: {variant:?}");
    }
}

/// One of two openers writes into the mark that the other has put in place again: a start sees
/// that, a close comes, and the first one opens the group by the same mark.
#[test]
fn a_late_start_is_born_where_two_openers_write_into_one_mark() {
    let left = Left { opens: 2, ..QUIET };
    let plan =
        Plan { groups: Groups::Closed, places: vec![Place::Outer], close: Place::Outer, left };
    assert!(explore(plan, Variant::ChangesInPlace).discovery(KEPT).is_some());
}

/// A promise that no order of steps can break says nothing.
#[test]
fn other_orders_break_the_promise() {
    for variant in Variant::BROKEN {
        let places = vec![Place::Inner, Place::Inner];
        let plan = Plan { groups: Groups::Open, places, close: Place::Outer, left: QUIET };
        let checker = explore(plan, variant);
        assert!(checker.discovery(KEPT).is_some(), "not caught: {variant:?}");
    }
}

/// Put away before it leaves its group, a run that crashes in between stays in it
/// for ever: nobody sweeps what is not listed.
#[test]
fn leaving_after_being_put_away_is_not_clean() {
    let left = Left { crashes: 1, ..QUIET };
    let plan =
        Plan { groups: Groups::Missing, places: vec![Place::Inner], close: Place::Outer, left };
    let checker = explore(plan, Variant::LeavesLast);
    assert!(checker.discovery(CLEAN).is_some());
}
