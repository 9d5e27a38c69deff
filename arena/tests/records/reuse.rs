//! Process ids are used again, also those that were written down: of the leader, of
//! everybody counted, of keeper and guard. The newcomer is never signalled.

use std::fs;

use arena::{
    Context, MemberSlots, Need, Outcome, Process, Registry, Signal, World, await_until, ensure,
    send_signal,
};

use super::desk::{
    QUIET, Who, all_clean, behead, census, counted, dir, expect_over, freeze, live_ids, nobody,
    record, say, start, swept_proof, tell, who,
};
use crate::kit::{Cage, EVERYWHERE, Lines, Place, SOON, add, stop};

const LAST_PID: &str = "/proc/sys/kernel/ns_last_pid";

pub fn register(registry: &mut Registry) {
    let needs = [Need::Check(last_pid)];
    for (name, play) in [
        ("by-sweep", (|w, p| everybody(w, p, &["sweep"])) as fn(&mut World, Place) -> Outcome),
        ("by-ps", |w, p| everybody(w, p, &["ps"])),
        ("by-stop", |w, p| everybody(w, p, &["stop", "lost"])),
        ("by-kill", |w, p| everybody(w, p, &["kill", "lost"])),
        ("with-a-marker", with_marker),
        ("of-a-keeper-gone-around", keeper_gone_around),
    ] {
        add(registry, &format!("reuse::{name}"), &EVERYWHERE, &needs, play);
    }
}

fn last_pid() -> Result<(), String> {
    fs::metadata(LAST_PID).map(drop).map_err(|error| format!("{LAST_PID}: {error}"))
}

/// Forces a pid upon a newcomer, who belongs to whoever runs fullstop.
fn take(world: &mut World, place: Place, pid: i32, env: &[(String, String)]) -> Outcome {
    for _ in 0..50 {
        fs::write(LAST_PID, (pid - 1).to_string()).context(LAST_PID)?;
        let newcomer = world.bystander("sh", place.user, env)?;
        if newcomer.process.pid == pid {
            // Not in the middle of becoming the program it is.
            let settled = || Process::read(pid).is_some_and(|now| now.comm == "sh");
            ensure!(await_until(SOON, settled), "the newcomer is nobody");
            return Ok(());
        }
    }
    Err(format!("the id {pid} cannot be had").into())
}

/// All who are written down in a record, by pid.
fn written_down(world: &World, id: &str) -> Outcome<Vec<i32>> {
    let record = record(world, id)?;
    let mut pids: Vec<i64> = ["keeper", "guard", "leader"]
        .iter()
        .filter_map(|who| record[who]["pid"].as_i64())
        .collect();
    pids.extend(census(world, id).iter().map(|&(pid, _)| pid));
    pids.sort_unstable();
    pids.dedup();
    Ok(pids.into_iter().filter_map(|pid| i32::try_from(pid).ok()).collect())
}

/// A leader with two children that nobody will bury but the world.
const THREE: &str = "sh -c 'echo up > ready; while :; do read n < never; done' & \
                     sh -c 'echo up > ready; while :; do read n < never; done' & \
                     while :; do read n < never; done";

struct Gone {
    id: String,
    who: Who,
    pids: Vec<i32>,
    _never: Lines,
}

/// A run of which everybody who was ever written down is dead and buried, and whose
/// record says that it runs.
fn gone(world: &mut World, place: Place) -> Outcome<Gone> {
    let (mut ready, never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let id = start(world, place, &["--name", "lost"], &["sh", "-c", THREE])?;
    ready.expect("up")?;
    ready.expect("up")?;
    let found = who(world, &id)?;
    let members: Vec<Process> =
        world.survivors().into_iter().filter(|process| process.comm == "sh").collect();
    ensure!(members.len() == 3, "there are {} members", members.len());
    if place.cage == Cage::Tree {
        let pids: Vec<i32> = members.iter().map(|member| member.pid).collect();
        counted(world, &id, &pids)?;
    }
    behead(&found)?;
    for member in &members {
        send_signal(member.pid, Signal::KILL)?;
    }
    for member in &members {
        ensure!(await_until(SOON, || member.still_there().is_none()), "{member} is not buried");
    }
    let mut pids = written_down(world, &id)?;
    // In a cgroup only the leader is written down; the others are tried as well.
    pids.extend(members.iter().map(|member| member.pid));
    pids.sort_unstable();
    pids.dedup();
    Ok(Gone { id, who: found, pids, _never: never })
}

fn everybody(world: &mut World, place: Place, words: &[&str]) -> Outcome {
    let gone = gone(world, place)?;
    ensure!(gone.pids.len() == 5, "written down are {:?}", gone.pids);
    for &pid in &gone.pids {
        take(world, place, pid, &[])?;
    }
    // The worst that a clock of a hundred ticks a second can do: the same start time.
    same_start_times(world, &gone)?;
    say(world, place, words)?.expect(0)?;
    world.expect_bystanders_untouched()?;
    expect_over(world, &gone.id, "keeper-died", swept_proof(place))?;
    for words in [&["stop", "lost"][..], &["kill", "lost"], &["sweep"]] {
        say(world, place, words)?.expect(0)?;
        world.expect_bystanders_untouched()?;
    }
    nobody(world)?;
    all_clean(world)
}

/// Writes the newcomers' start times over those of the dead.
fn same_start_times(world: &World, gone: &Gone) -> Outcome {
    let ticks = |value: &serde_json::Value| {
        let pid = value["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok())?;
        Process::read(pid).map(|process| process.start_ticks)
    };
    let mut slots = MemberSlots::read(&dir(world, &gone.id), &gone.id);
    for (at, slot) in slots.all().collect::<Vec<_>>() {
        if let Some(now) = Process::read(slot.pid) {
            slots.set_start(at, now.start_ticks);
        }
    }
    slots.write(&dir(world, &gone.id))?;
    super::desk::edit(world, &gone.id, "record.json", |record| {
        for name in ["keeper", "guard", "leader"] {
            if let Some(now) = ticks(&record[name]) {
                record[name]["start_ticks"] = now.into();
            }
        }
    })
}

/// The newcomer even carries the marker, but is a child of somebody else.
fn with_marker(world: &mut World, place: Place) -> Outcome {
    let gone = gone(world, place)?;
    let mut told = Lines::create(world, "told")?;
    let _order = Lines::create(world, "order")?;
    let program = crate::kit::text(world.bystander_command("heir").get_program());
    let mut bus = world.command("sh");
    let script = format!(
        "while read id < order; do FULLSTOP_RUN=$id {program} --arena-bystander & \
         echo $! > told; done"
    );
    bus.args(["-c", &script]);
    place.user.apply(&mut bus);
    let bus = world.spawn("bus", &mut bus)?;
    world.adopt_bystander("bus", bus.pid)?;
    let pid = gone.who.leader.pid;
    let mut had = false;
    for _ in 0..50 {
        fs::write(LAST_PID, (pid - 1).to_string()).context(LAST_PID)?;
        fs::write(world.dir().join("order"), format!("{}\n", gone.id)).context("order")?;
        let heir: i32 = told.next(SOON)?.parse().context("a pid")?;
        let settled = || Process::read(heir).is_some_and(|now| now.comm == "heir");
        ensure!(await_until(SOON, settled), "the heir is nobody");
        world.adopt_bystander("heir", heir)?;
        had |= heir == pid;
        if had {
            break;
        }
    }
    ensure!(had, "the id {pid} cannot be had");
    same_start_times(world, &gone)?;
    for words in [&["ps"][..], &["sweep"], &["stop", "lost"], &["kill", "lost"]] {
        say(world, place, words)?.expect(0)?;
        world.expect_bystanders_untouched().context(format!("after {words:?}"))?;
    }
    expect_over(world, &gone.id, "keeper-died", swept_proof(place))?;
    all_clean(world)
}

/// The keeper is gone and its pid is another's; the guard hangs. Whoever goes around
/// them kills "the keeper" first.
fn keeper_gone_around(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let found = who(world, &id)?;
    freeze(&found)?;
    // Its record says that another one is its keeper, as after a reuse.
    let newcomer = world.bystander("fullstop-keeper", place.user, &[])?;
    let ticks = newcomer.process.start_ticks;
    super::desk::edit(world, &id, "record.json", |record| {
        record["keeper"]["pid"] = newcomer.process.pid.into();
        record["keeper"]["start_ticks"] = ticks.into();
    })?;
    let said = say(world, place, &["stop", &id])?;
    newcomer.expect_untouched()?;
    world.note(format!("with another's keeper: {said:?}"));
    world.expect_bystanders_untouched()?;
    // What hung may have been ended all the same, by its guard; or not, and said so.
    if live_ids(world).contains(&id) {
        ensure!(said.ended != arena::Ended::Code(0), "it lives, and stop says it does not");
        stop(found.guard.pid)?;
        super::desk::kill_frozen(&found)?;
        tell(world, place, &["sweep"])?;
    }
    nobody(world)?;
    all_clean(world)
}
