//! What an exit status says where there are several answers to give, or no good one: `wait` of
//! several runs, orders for a run that was released, a `prune` that may not remove.

use std::fs;

use arena::{Context, Outcome, Process, Registry, Signal, World, await_until, ensure, send_signal};
use rustix::mount::{MountFlags, mount_remount};

use super::desk::{alive, all_clean, ask, nobody, record, run_ids, say, start, tell};
use super::disk::small_state;
use crate::kit::{EVERYWHERE, Lines, Place, SOON, add};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("wait-for-several", wait_for_several as fn(&mut World, Place) -> Outcome),
        ("stop-a-released-run", released),
        ("prune-read-only", prune_read_only),
    ] {
        add(registry, &format!("status::{name}"), &EVERYWHERE, &[], play);
    }
}

/// The first failure in the order given, whichever run ended first; and all are told of.
fn wait_for_several(world: &mut World, place: Place) -> Outcome {
    let _go = Lines::create(world, "go")?;
    let mut begin = |script: &str| start(world, place, &[], &["sh", "-c", script]);
    let slow = begin("read g < go; exit 3")?;
    let (good, bad) = (begin("exit 0")?, begin("exit 4")?);
    let asked = ask(world, place, &["wait", &slow, &good, &bad])?;
    say(world, place, &["wait", &good, &bad])?.expect(4)?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    let said = asked.hear(world, SOON)?;
    said.expect(3)?;
    let told: Vec<&str> = said.out.lines().filter_map(|line| line.split(' ').next()).collect();
    ensure!(told == [&slow, &good, &bad], "it told of {told:?}");
    for (ids, status) in [
        (&[&slow, &good][..], 3),
        (&[&good, &slow, &bad], 3),
        (&[&bad, &slow], 4),
        (&[&good, &good], 0),
    ] {
        let words: Vec<&str> =
            ["wait"].into_iter().chain(ids.iter().map(|id| id.as_str())).collect();
        say(world, place, &words)?.expect(status)?;
    }
    all_clean(world)
}

/// Nothing is proven of processes that were let go: an order to stop them cannot succeed.
fn released(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let script = "setsid sh -c 'echo up > ready; read n < never' & read go < go; exit 3";
    let _go = Lines::create(world, "go")?;
    let id =
        start(world, place, &["--on-exit", "release", "--group", "plan"], &["sh", "-c", script])?;
    ready.expect("up")?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    // As `run` would have ended: with its leader's status.
    say(world, place, &["wait", &id])?.expect(3)?;
    let is_released = || record(world, &id).is_ok_and(|r| r["state"] == "released");
    ensure!(await_until(SOON, is_released), "it was not released");
    let free: Vec<Process> =
        world.survivors().into_iter().filter(|process| process.comm == "sh").collect();
    ensure!(free.len() == 1, "{} were released", free.len());
    for words in
        [&["stop", &id][..], &["kill", &id], &["stop", "-q", &id], &["stop", "--json", &id]]
    {
        let said = say(world, place, words)?;
        ensure!(alive(&free[0]), "{words:?} ended what was released");
        said.expect_one_line(120, "released, not stopped: 1 process")?;
        ensure!(said.err.contains("no proof"), "{words:?} said {:?}", said.err);
    }
    // It is over, and none of those that an order to all of them means.
    for words in [&["stop", "--all"][..], &["kill", "--all"], &["group", "close", "plan"]] {
        say(world, place, words)?.expect(0)?;
    }
    send_signal(free[0].pid, Signal::KILL)?;
    world.expect_extinct(SOON)?;
    all_clean(world)
}

/// What cannot be removed is named, each by itself, and the status says so.
fn prune_read_only(world: &mut World, place: Place) -> Outcome {
    let point = small_state(world, place)?;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let id = start(world, place, &[], &["true"])?;
        say(world, place, &["wait", &id])?.expect(0)?;
        ids.push(id);
    }
    ids.sort();
    nobody(world)?;
    // A group that is empty goes as well.
    tell(world, place, &["group", "close", "plan"])?;
    tell(world, place, &["group", "open", "plan"])?;
    mount_remount(&point, MountFlags::RDONLY, c"").context("remount")?;
    let said = say(world, place, &["prune"])?;
    said.expect(125)?;
    let left = [&ids[0], &ids[1], "groups/plan"];
    ensure!(said.err.lines().count() == left.len(), "it said {:?}", said.err);
    for (left, line) in left.iter().zip(said.err.lines()) {
        ensure!(line.contains(left) && line.contains("read-only"), "of {left} it said {line:?}");
    }
    let said = say(world, place, &["prune", "--json"])?;
    said.expect(125)?;
    let told = said.json()?;
    ensure!(told["removed"].as_array().is_some_and(Vec::is_empty), "{told}");
    ensure!(told["left"][0]["id"] == ids[0] && told["left"][1]["id"] == ids[1], "{told}");
    ensure!(told["left"][2]["group"] == "plan", "{told}");
    say(world, place, &["prune", "--dry-run"])?.expect(0)?;
    mount_remount(&point, MountFlags::empty(), c"").context("remount")?;
    ensure!(run_ids(world) == ids, "something was removed: {:?}", run_ids(world));
    let said = tell(world, place, &["prune"])?;
    ensure!(said == "removed 2 runs\n", "it said {said:?}");
    ensure!(run_ids(world).is_empty(), "left: {:?}", run_ids(world));
    ensure!(tell(world, place, &["group", "ls", "--json"])? == "[]\n", "the group is left");
    all_clean(world)
}
