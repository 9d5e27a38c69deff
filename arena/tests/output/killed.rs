//! Keeper or guard are killed in the middle of a flood: whatever the tree has written is
//! in the log.

use std::process::Stdio;

use arena::{Context, Outcome, Ready, Registry, Signal, World, ensure, send_signal};

use super::tools::{
    Collect, LONG, counted, expect_drained, lines, log, over, same, same_as_counted, stream,
};
use crate::desk::{all_clean, live_ids, nobody, record, start, who, zoo};
use crate::kit::{AS_ROOT, EVERYWHERE, Launch, Place, add};

pub fn register(registry: &mut Registry) {
    add(registry, "killed::keeper", &EVERYWHERE, &[], keeper);
    add(registry, "killed::guard", &AS_ROOT, &[], guard);
    add(registry, "killed::keeper-in-front", &AS_ROOT, &[], in_front);
    add(registry, "killed::keeper-that-rotates", &AS_ROOT, &[], rotates);
}

/// Somebody who counts, and is heard counting.
fn start_counting(world: &mut World, place: Place) -> Outcome<String> {
    let mut ready = Ready::create(&world.dir())?;
    let words = zoo(world, "count");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let id = start(world, place, &[], &words)?;
    ready.wait(LONG).context("it does not count")?;
    Ok(id)
}

fn keeper(world: &mut World, place: Place) -> Outcome {
    let id = start_counting(world, place)?;
    let found = who(world, &id)?;
    send_signal(found.keeper.pid, Signal::KILL)?;
    let (_, report) = over(world, place, &id)?;
    nobody(world)?;
    ensure!(report["reason"] == "keeper-died", "the reason is {}", report["reason"]);
    let out = log(world, &id, "out.log")?;
    same_as_counted(world, &out)?;
    expect_drained(&report)?;
    let told = stream(&report, "out")?["bytes"].clone();
    ensure!(told == out.len(), "{told} bytes are told of {}", out.len());
    all_clean(world)
}

/// The keeper goes on alone, and ends the run.
fn guard(world: &mut World, place: Place) -> Outcome {
    let id = start_counting(world, place)?;
    let found = who(world, &id)?;
    send_signal(found.guard.pid, Signal::KILL)?;
    let (_, report) = over(world, place, &id)?;
    nobody(world)?;
    ensure!(report["reason"] == "host-gone", "the reason is {}", report["reason"]);
    same_as_counted(world, &log(world, &id, "out.log")?)?;
    expect_drained(&report)?;
    all_clean(world)
}

/// The owner gets to see all of it as well; the guard is `run` itself.
fn in_front(world: &mut World, place: Place) -> Outcome {
    let mut ready = Ready::create(&world.dir())?;
    let words = zoo(world, "count");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let launch = Launch::new(place).options(&["--log"]).stdout(Stdio::piped());
    let mut run = launch.start(world, &words)?;
    let shown = Collect::start(run.child.stdout.take().context("a pipe")?);
    ready.wait(LONG).context("it does not count")?;
    let listed = || live_ids(world).len() == 1;
    ensure!(arena::await_until(LONG, listed), "it is not listed");
    let id = live_ids(world).remove(0);
    send_signal(who(world, &id)?.keeper.pid, Signal::KILL)?;
    let shown = shown.end()?;
    world.wait(&run.spawned, LONG)?;
    nobody(world)?;
    let out = log(world, &id, "out.log")?;
    same_as_counted(world, &out)?;
    // What the keeper had shown and not yet written down, the guard may show again.
    let last = format!("line {}\n", counted(world)?);
    let has = shown.windows(last.len()).any(|window| window == last.as_bytes());
    ensure!(has && shown.len() >= out.len() - last.len() - 1, "the owner missed something");
    expect_drained(&record(world, &id)?["report"])?;
    all_clean(world)
}

/// It may be cut short between any two files; what there is stands where it belongs.
fn rotates(world: &mut World, place: Place) -> Outcome {
    let mut ready = Ready::create(&world.dir())?;
    let words = zoo(world, "count");
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let id = start(world, place, &["--log-max", "64KB"], &words)?;
    ready.wait(LONG).context("it does not count")?;
    send_signal(who(world, &id)?.keeper.pid, Signal::KILL)?;
    let (_, report) = over(world, place, &id)?;
    nobody(world)?;
    let all = lines(counted(world)? + 1);
    let parts = super::caps::parts(world, &id, "out")?;
    let end = parts.last().map_or(0, |(start, bytes)| start + bytes.len());
    ensure!(end + 20 > all.len(), "the end is missing: {end} of {}", all.len());
    for (start, bytes) in parts {
        let should = all.get(start..start + bytes.len()).context("more than was written")?;
        same(&bytes, should).context(format!("the part at {start}"))?;
    }
    expect_drained(&report)?;
    all_clean(world)
}
