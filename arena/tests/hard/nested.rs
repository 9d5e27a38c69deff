//! A run inside a run: whoever of the two is killed, nothing outlives it, and no
//! cgroup of either is left.

use std::time::Instant;

use arena::{
    Context, Ended, Outcome, Process, Registry, Signal, Took, World, await_until, ensure, millis,
    seconds, send_signal,
};

use super::kit::{EVERYWHERE, Launch, Lines, Place, Run, SOON, add, all_clean, text};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("term", nested_term as fn(&mut World, Place) -> Outcome),
        ("outer-run-killed", |world, place| nested(world, place, Nested::OuterRun)),
        ("outer-keeper-killed", |world, place| nested(world, place, Nested::OuterKeeper)),
        ("inner-run-killed", |world, place| nested(world, place, Nested::InnerRun)),
        ("inner-keeper-killed", |world, place| nested(world, place, Nested::InnerKeeper)),
    ] {
        add(registry, &format!("nested::{name}"), &EVERYWHERE, &[], play);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nested {
    OuterRun,
    OuterKeeper,
    InnerRun,
    InnerKeeper,
}

struct Two {
    run: Run,
    outer: Process,
    inner: Process,
}

/// A run inside a run, with a deaf member at the bottom.
fn two(world: &mut World, place: Place) -> Outcome<Two> {
    let mut ready = Lines::create(world, "ready")?;
    let cage = place.cage.to_string();
    let fullstop = text(world.fullstop());
    let member = "trap '' TERM; setsid sleep 50 & echo up > ready; sleep 50; true";
    let run = Launch::new(place).options(&["--ladder", "term@leader:2s,kill"]).start(
        world,
        &[&fullstop, "run", "--cage", &cage, "--grace", "200ms", "--", "sh", "-c", member],
    )?;
    ready.expect("up")?;
    let keepers = || -> Vec<Process> {
        world.survivors().into_iter().filter(|p| p.comm == "fullstop-keeper").collect()
    };
    ensure!(await_until(SOON, || keepers().len() == 2), "there are not two keepers");
    let [outer, inner] = keepers().try_into().map_err(|_| "not two keepers")?;
    ensure!(outer.ppid == run.pid(), "the outer keeper is not run's");
    Ok(Two { run, outer, inner })
}

fn nested_term(world: &mut World, place: Place) -> Outcome {
    let Two { run, .. } = two(world, place)?;
    let asked = Instant::now();
    send_signal(run.pid(), Signal::TERM)?;
    let ended = world.wait(&run.spawned, SOON)?;
    // The inner run ends in order, within the patience of the outer.
    ensure!(ended == Ended::Code(137), "run ended with {ended}");
    let took = Took::since(asked);
    ensure!(took.within(millis(1900)), "it took {took:?}");
    let report = run.expect_ended(place, "stopped")?;
    ensure!(!report.has_step("kill"), "the inner run was killed: {:?}", report.steps);
    all_clean(world)
}

fn nested(world: &mut World, place: Place, whom: Nested) -> Outcome {
    let Two { run, outer, inner } = two(world, place)?;
    let victim = match whom {
        Nested::OuterRun => run.pid(),
        Nested::OuterKeeper => outer.pid,
        Nested::InnerRun => inner.ppid,
        Nested::InnerKeeper => inner.pid,
    };
    let killed = Instant::now();
    send_signal(victim, Signal::KILL)?;
    world.expect_extinct(seconds(1)).context(format!("after {:?}", killed.elapsed()))?;
    let ended = world.wait(&run.spawned, SOON)?;
    let (status, reason) = match whom {
        Nested::OuterRun => (Ended::Signal(9), "host-gone"),
        Nested::OuterKeeper => (Ended::Code(137), "keeper-died"),
        Nested::InnerRun | Nested::InnerKeeper => (Ended::Code(137), "exited"),
    };
    ensure!(ended == status, "run ended with {ended}, not with {status}");
    run.expect_ended(place, reason)?;
    if whom == Nested::OuterKeeper {
        sweep(world, place)?;
    }
    all_clean(world)
}

/// The inner run was killed as a whole, keeper and guard included: the next command
/// finishes its record.
fn sweep(world: &mut World, place: Place) -> Outcome {
    let mut command = world.command(world.fullstop());
    command.arg("sweep");
    place.user.apply(&mut command);
    let sweep = world.spawn("sweep", &mut command)?;
    let ended = world.wait(&sweep, SOON)?;
    ensure!(ended == Ended::Code(0), "sweep ended with {ended}");
    Ok(())
}
