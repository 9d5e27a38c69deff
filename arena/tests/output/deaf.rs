//! An owner who holds the pipe and never reads: all that waits for it is waited for only
//! as long as nobody wants the end.

use std::process::Stdio;

use arena::{Context, Ended, Outcome, Process, Registry, Signal, World, await_until, ensure};
use arena::{seconds, send_signal};

use super::tools::{Collect, LONG, await_blocked, expect_drained, log, same};
use crate::desk::{all_clean, ask, live_ids, nobody, record, run_ids, say, tell};
use crate::kit::{ANYWHERE, AS_ROOT, Launch, Lines, Place, Run, add, children, keeper};

pub fn register(registry: &mut Registry) {
    add(registry, "deaf::stopped", &AS_ROOT, &[], stopped);
    add(registry, "deaf::waited-for", &ANYWHERE, &[], waited_for);
    add(registry, "deaf::keeper-dies", &AS_ROOT, &[], keeper_dies);
    add(registry, "deaf::is-no-silence", &ANYWHERE, &[], no_silence);
}

/// More than a pipe holds, and no more than two of them do.
const WRITTEN: usize = 100_000;

/// A run whose command is over at once, and whose owner has not read a byte.
fn unread(world: &mut World, place: Place) -> Outcome<(Run, Process)> {
    let mut told = Lines::create(world, "told")?;
    let script = format!("head -c {WRITTEN} /dev/zero; echo over > told");
    let launch = Launch::new(place).options(&["--log", "--name", "z"]).stdout(Stdio::piped());
    let run = launch.start(world, &["sh", "-c", &script])?;
    let keeper = keeper(world)?;
    told.expect("over")?;
    let alone = || children(keeper.pid).is_empty();
    ensure!(await_until(LONG, alone), "the command is not over");
    ensure!(world.ended(&run.spawned).is_none(), "the owner was not waited for");
    Ok((run, keeper))
}

/// It is over for everybody, though its owner has still read nothing.
fn expect_over(world: &mut World, place: Place, run: &Run) -> Outcome<Ended> {
    let ended = world.wait(&run.spawned, LONG)?;
    nobody(world)?;
    ensure!(live_ids(world).is_empty(), "it is listed: {:?}", live_ids(world));
    ask(world, place, &["wait", "z"])?.hear(world, LONG)?;
    let listed = say(world, place, &["ps", "--all", "--json"])?.json()?;
    ensure!(listed[0]["name"] == "z" && listed[0]["state"] == "ended", "ps lists {listed}");
    Ok(ended)
}

/// The command was over sooner than anybody could be told of it, and it can be stopped
/// all the same.
fn stopped(world: &mut World, place: Place) -> Outcome {
    let (run, _) = unread(world, place)?;
    let listed = say(world, place, &["ps", "--json"])?.json()?;
    ensure!(listed[0]["name"] == "z", "ps lists {listed}");
    ask(world, place, &["stop", "z"])?.hear(world, LONG)?.expect(0)?;
    let ended = expect_over(world, place, &run)?;
    ensure!(ended == Ended::Code(0), "run ended with {ended}: {}", run.stderr());
    drop(run);
    all_clean(world)
}

/// Nobody wants the end: the owner gets all of it whenever it reads, and whoever waits
/// hears of it then.
fn waited_for(world: &mut World, place: Place) -> Outcome {
    let (mut run, _) = unread(world, place)?;
    let waits = ask(world, place, &["wait", "z"])?;
    tell(world, place, &["ps"])?;
    ensure!(world.ended(&waits.spawned).is_none(), "wait has returned before the end");
    let shown = Collect::start(run.child.stdout.take().context("a pipe")?);
    same(&shown.end()?, &vec![0; WRITTEN])?;
    waits.hear(world, LONG)?.expect(0)?;
    let ended = expect_over(world, place, &run)?;
    ensure!(ended == Ended::Code(0), "run ended with {ended}: {}", run.stderr());
    let id = run_ids(world).pop().context("no run")?;
    same(&log(world, &id, "out.log")?, &vec![0; WRITTEN])?;
    expect_drained(&record(world, &id)?["report"])?;
    all_clean(world)
}

/// Nobody is left who could be told that the end is wanted.
fn keeper_dies(world: &mut World, place: Place) -> Outcome {
    let (run, keeper) = unread(world, place)?;
    send_signal(keeper.pid, Signal::KILL)?;
    expect_over(world, place, &run)?;
    drop(run);
    all_clean(world)
}

/// Whoever cannot write is not silent by choice: its owner has all the time it takes.
fn no_silence(world: &mut World, place: Place) -> Outcome {
    const MUCH: usize = 4 << 20;
    let script = format!("head -c {MUCH} /dev/zero; exit 7");
    let options = ["--log", "--name", "z", "--no-output-timeout", "2s"];
    let launch = Launch::new(place).options(&options).stdout(Stdio::piped());
    let mut run = launch.start(world, &["sh", "-c", &script])?;
    let keeper = keeper(world)?;
    let writer = || {
        let leader = children(keeper.pid).into_iter().next()?;
        children(leader.pid).into_iter().find(|process| process.comm == "head")
    };
    ensure!(await_until(LONG, || writer().is_some()), "nobody writes");
    await_blocked(writer().context("it wrote a moment ago")?.pid)?;
    let age = |world: &mut World| -> Outcome<u64> {
        let listed = say(world, place, &["ps", "--json"])?.json()?;
        listed[0]["age_ms"].as_u64().context(format!("it has no age: {listed}"))
    };
    // By its own clock it has been held up for longer than it may be silent.
    let held_at = age(world)?;
    let deadline = arena::Deadline::after(LONG);
    while age(world)? < held_at + 4000 {
        ensure!(deadline.stands(), "its time stands still");
        await_until(seconds(1), || world.ended(&run.spawned).is_some());
    }
    let shown = Collect::start(run.child.stdout.take().context("a pipe")?);
    same(&shown.end()?, &vec![0; MUCH])?;
    let ended = world.wait(&run.spawned, LONG)?;
    ensure!(ended == Ended::Code(7), "run ended with {ended}: {}", run.stderr());
    let id = run.expect_ended(place, "exited")?.id;
    same(&log(world, &id, "out.log")?, &vec![0; MUCH])?;
    all_clean(world)
}
