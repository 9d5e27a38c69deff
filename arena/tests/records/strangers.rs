//! Strangers that look like members: a copied marker, the same place, the same name.
//! A sweep leaves alone whom it cannot tell from a stranger.

use std::fs;

use arena::{
    Context, Need, Outcome, Process, Registry, Signal, World, await_until, ensure, send_signal,
};

use super::desk::{
    QUIET, alive, all_clean, expect_over, lose, nobody, say, start, swept_proof, tell, who,
};
use crate::kit::{Cage, EVERYWHERE, Lines, Place, SOON, add};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("older-than-the-run", older as fn(&mut World, Place) -> Outcome),
        ("child-of-another", child_of_another),
        ("another-runs-marker", other_marker),
        ("marker-of-a-live-run", live_marker),
    ] {
        add(registry, &format!("strangers::{name}"), &EVERYWHERE, &[], play);
    }
    let needs = [Need::Cgroup];
    add(registry, "strangers::in-another-cgroup", &EVERYWHERE, &needs, other_cgroup);
}

/// Everything that might end a lost run, none of which may touch a stranger.
fn end_all(world: &mut World, place: Place, id: &str) -> Outcome {
    for words in [
        &["sweep", "--dry-run"][..],
        &["ps"],
        &["sweep"],
        &["stop", id],
        &["kill", id],
        &["stop", "--all"],
        &["run", "--", "true"],
    ] {
        say(world, place, words)?.expect(0)?;
        world.expect_bystanders_untouched().context(format!("after {words:?}"))?;
    }
    world.expect_extinct(SOON)?;
    expect_over(world, id, "keeper-died", swept_proof(place))
}

/// What the marker of a run looks like; outer runs may stand before it.
fn marker(id: &str) -> Vec<(String, String)> {
    vec![("FULLSTOP_RUN".into(), id.to_owned())]
}

/// It carries the id, because somebody wrote that into it, but was there before.
fn older(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let first = who(world, &id)?;
    tell(world, place, &["stop", &id])?;
    let stranger = world.bystander("older", place.user, &marker(&id))?;
    // A later generation of the same run is younger than the stranger.
    wait_a_tick(&stranger.process)?;
    tell(world, place, &["restart", &id])?;
    let second = lose(world, &id)?;
    ensure!(second.guard.start_ticks > stranger.process.start_ticks, "the clock stands still");
    ensure!(!alive(&first.leader), "the first generation lives");
    end_all(world, place, &id)?;
    all_clean(world)
}

/// Until the clock by which births are told apart has moved on.
fn wait_a_tick(than: &Process) -> Outcome {
    let later = || {
        let uptime = fs::read_to_string("/proc/uptime").unwrap_or_default();
        // Hundredths of a second, which is what the clock ticks.
        let ticks = uptime.split(' ').next().and_then(|word| word.replace('.', "").parse().ok());
        ticks.is_some_and(|ticks: u64| ticks > than.start_ticks + 2)
    };
    ensure!(await_until(SOON, later), "the clock stands still");
    Ok(())
}

/// A desktop bus or `at`: it starts what it is asked to, with the caller's environment,
/// but it is its own child, and its parent is none of the guard's ancestors.
fn child_of_another(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let mut told = Lines::create(world, "told")?;
    let _order = Lines::create(world, "order")?;
    // The bus is older than the run, as buses are; it obeys one order.
    let bystander = world.bystander_command("butler");
    let program = crate::kit::text(bystander.get_program());
    let mut bus = world.command("sh");
    let script = format!(
        "echo up > told; read id < order; FULLSTOP_RUN=$id setsid {program} --arena-bystander & \
         echo $! > told; wait"
    );
    bus.args(["-c", &script]);
    place.user.apply(&mut bus);
    let bus = world.spawn("bus", &mut bus)?;
    told.expect("up")?;
    world.adopt_bystander("bus", bus.pid)?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    who(world, &id)?;
    fs::write(world.dir().join("order"), format!("{id}\n")).context("order")?;
    let pid: i32 = told.next(SOON)?.parse().context("a pid")?;
    let marked = || {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let name = Process::read(pid).is_some_and(|process| process.comm == "butler");
        name && String::from_utf8_lossy(&environ).contains(&id)
    };
    ensure!(await_until(SOON, marked), "the butler has no marker");
    world.adopt_bystander("butler", pid)?;
    lose(world, &id)?;
    end_all(world, place, &id)?;
    all_clean(world)
}

/// Orphaned to the same ancestor, younger, with the marker, but in another cgroup.
fn other_cgroup(world: &mut World, place: Place) -> Outcome {
    let cgroup = world.cgroup().cloned().context("no cgroup")?;
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    who(world, &id)?;
    let elsewhere = cgroup.create("elsewhere")?;
    let stranger = world.bystander("elsewhere", place.user, &marker(&id))?;
    fs::write(elsewhere.path().join("cgroup.procs"), stranger.process.pid.to_string())
        .context("moving it")?;
    lose(world, &id)?;
    end_all(world, place, &id)?;
    all_clean(world)
}

/// Somebody whose marker merely resembles ours.
fn other_marker(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    who(world, &id)?;
    for value in [&id[..12], &format!("{id}x"), &format!("x{id}"), &id.to_uppercase(), ""] {
        world.bystander("alike", place.user, &marker(value))?;
    }
    let env = vec![
        ("FULLSTOP_RUN_OLD".to_owned(), id.clone()),
        ("X".into(), format!("FULLSTOP_RUN={id}")),
    ];
    world.bystander("alike", place.user, &env)?;
    lose(world, &id)?;
    end_all(world, place, &id)?;
    all_clean(world)
}

/// Two runs, one inside the marker of the other's name: only the lost one ends.
fn live_marker(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let lost = start(world, place, &[], &["sh", "-c", QUIET])?;
    let live = start(world, place, &[], &["sh", "-c", QUIET])?;
    let other = who(world, &live)?;
    let found = lose(world, &lost)?;
    tell(world, place, &["sweep"])?;
    ensure!(!alive(&found.leader), "the lost one lives");
    for process in [&other.guard, &other.keeper, &other.leader] {
        ensure!(alive(process), "{process} was touched");
    }
    if place.cage == Cage::Tree {
        // A nested member, of both: its own keeper is gone, the outer one is not.
        send_signal(other.leader.pid, Signal::CONT)?;
    }
    tell(world, place, &["stop", &live])?;
    nobody(world)?;
    all_clean(world)
}
