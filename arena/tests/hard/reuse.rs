//! Process ids are used again. A member dies, and its id is forced upon an
//! innocent newcomer in the middle of a stop: the newcomer is never signalled.
//!
//! Once with a tracer that holds the keeper in the worst of moments, between
//! looking at a process and signalling it; once in real time, many times over.

use std::fs;
use std::time::{Duration, Instant};

use arena::{
    Context, Ended, Need, Outcome, Process, Registry, Signal, Took, World, await_until, ensure,
    millis, race_until, seconds, send_signal,
};

use super::kit::{EVERYWHERE, Launch, Lines, Place, Run, SOON, add, all_clean, children, keeper};

const LAST_PID: &str = "/proc/sys/kernel/ns_last_pid";

pub fn register(registry: &mut Registry) {
    let needs = [Need::Program("strace"), Need::Check(last_pid)];
    for (name, play) in [
        ("before-the-pidfd", (|w, p| held(w, p, Moment::Open)) as fn(&mut World, Place) -> Outcome),
        ("before-the-look", |w, p| held(w, p, Moment::Look)),
        ("before-the-signal", |w, p| held(w, p, Moment::Send)),
    ] {
        add(registry, &format!("reuse::{name}"), &EVERYWHERE, &needs, play);
    }
    add(registry, "reuse::in-real-time", &EVERYWHERE, &[Need::Check(last_pid)], real_time);
}

fn last_pid() -> Result<(), String> {
    fs::metadata(LAST_PID).map(drop).map_err(|error| format!("{LAST_PID}: {error}"))
}

/// Where the keeper is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// It has the id, and is about to open it.
    Open,
    /// It has a pidfd, and is about to read who that is.
    Look,
    /// It knows who it is, and is about to signal it.
    Send,
}

impl Moment {
    /// The call it is held at, by name and by its number on every machine.
    fn call(self) -> (&'static str, &'static [i64]) {
        match self {
            Self::Open => ("pidfd_open", &[434]),
            // In /proc (open, where there is one, or openat), or by ioctl.
            Self::Look => ("?open,openat,ioctl", &[2, 257, 56, 16, 29]),
            Self::Send => ("pidfd_send_signal", &[424]),
        }
    }
}

/// Long enough for a death and a birth on a busy machine.
const HELD: Duration = millis(250);

/// A leader that buries its child at once, and goes on without making others.
const TREE: &str = "trap : TERM; (echo up > ready; read gone < never) & wait; wait; \
                    while :; do read gone < never; done";

fn held(world: &mut World, place: Place, moment: Moment) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _never = Lines::create(world, "never")?;
    let run = Launch::new(place)
        .options(&["--ladder", "term@tree:300ms,kill"])
        .start(world, &["sh", "-c", TREE])?;
    ready.expect("up")?;
    let keeper = keeper(world)?;
    let leader = children(keeper.pid).first().context("no leader")?.pid;
    let child = children(leader).first().context("no child")?.clone();
    // The tracer comes late, so that the birth is not held up as well.
    let tracer = trace(world, &keeper, moment)?;
    send_signal(run.pid(), Signal::TERM)?;
    ensure!(is_held_at(&keeper, moment, child.pid)?, "the keeper is gone before {moment:?}");
    let since = Instant::now();
    send_signal(child.pid, Signal::KILL)?;
    ensure!(await_until(SOON, || child.still_there().is_none()), "the child is not buried");
    take(world, place, child.pid)?;
    let still_held = is_held_at(&keeper, moment, child.pid)?;
    let in_time = Took::since(since).kept(HELD, still_held);
    let ended = world.wait(&run.spawned, seconds(20))?;
    ensure!(ended == Ended::Code(137), "run ended with {ended}");
    world.expect_bystanders_untouched()?;
    world.wait(&tracer, SOON)?;
    ensure!(in_time, "the machine was too slow: the keeper was not held long enough");
    run.expect_ended(place, "stopped")?;
    all_clean(world)
}

/// Attaches a tracer that holds every such call for a while.
fn trace(world: &mut World, keeper: &Process, moment: Moment) -> Outcome<arena::Spawned> {
    let (calls, _) = moment.call();
    let mut strace = world.command("strace");
    let inject = format!("inject={calls}:delay_enter={}", HELD.as_micros());
    strace.args(["-qq", "-o", "/dev/null", "-e", &format!("trace={calls}"), "-e", &inject]);
    strace.args(["-p", &keeper.pid.to_string()]);
    let tracer = world.spawn("strace", &mut strace)?;
    world.outsider(tracer.pid);
    let line = format!("TracerPid:\t{}\n", tracer.pid);
    let status = format!("/proc/{}/status", keeper.pid);
    let traced = || fs::read_to_string(&status).is_ok_and(|text| text.contains(&line));
    ensure!(await_until(SOON, traced), "the keeper is not traced");
    Ok(tracer)
}

/// Waits until the keeper is held in the call, with this process in its hands, or
/// is gone. There is no event for that, and no time to lose.
fn is_held_at(keeper: &Process, moment: Moment, pid: i32) -> Outcome<bool> {
    let (_, numbers) = moment.call();
    let held = || {
        let call = fs::read_to_string(format!("/proc/{}/syscall", keeper.pid)).unwrap_or_default();
        let mut words = call.split_ascii_whitespace();
        let number = words.next().and_then(|word| word.parse::<i64>().ok());
        if !number.is_some_and(|number| numbers.contains(&number)) {
            return false;
        }
        match moment {
            Moment::Open => words.next() == Some(&format!("{pid:#x}")),
            Moment::Look | Moment::Send => holds_pidfd(keeper.pid, pid),
        }
    };
    let mut is_held = false;
    let looked = race_until(seconds(10), || {
        is_held = held();
        is_held || Process::read(keeper.pid).is_none()
    });
    ensure!(looked, "the keeper is never held at {moment:?}");
    Ok(is_held)
}

/// Does `holder` have a pidfd of `pid`, or of the dead one that had this id?
fn holds_pidfd(holder: i32, pid: i32) -> bool {
    let (alive, dead) = (format!("Pid:\t{pid}\n"), "Pid:\t-1\n");
    let entries = fs::read_dir(format!("/proc/{holder}/fdinfo")).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| fs::read_to_string(entry.path()).ok())
        .any(|info| info.contains(&alive) || info.contains(dead))
}

/// Forces the id upon a newcomer. Somebody else may get it first; whoever the
/// newcomers are, nobody may touch them.
fn take(world: &mut World, place: Place, pid: i32) -> Outcome {
    for _ in 0..20 {
        if newcomer(world, place, pid)? {
            return Ok(());
        }
    }
    Err(format!("the id {pid} cannot be had").into())
}

/// The newcomer belongs to whoever runs fullstop, who could signal it.
fn newcomer(world: &mut World, place: Place, pid: i32) -> Outcome<bool> {
    fs::write(LAST_PID, (pid - 1).to_string()).context(LAST_PID)?;
    let mut command = world.bystander_command("newcomer");
    place.user.apply(&mut command);
    let spawned = world.spawn("newcomer", &mut command)?;
    world.adopt_bystander("newcomer", spawned.pid)?;
    Ok(spawned.pid == pid)
}

/// How many stops, with how many members each.
const ROUNDS: usize = 6;
const MEMBERS: usize = 12;

/// A leader that buries its children at once, while they are being asked.
const CROWD: &str = "trap : TERM; for n in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 50 & done; \
                     echo up > ready; while :; do wait; sleep 0.01; done";

fn real_time(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let mut taken = 0;
    for round in 0..ROUNDS {
        let ladder = ["term@tree:40ms,kill", "term@leader:20ms,term@tree:20ms,kill", "kill"];
        let run = Launch::new(place)
            .options(&["--ladder", ladder[round % ladder.len()]])
            .start(world, &["sh", "-c", CROWD])?;
        ready.expect("up")?;
        taken += reuse_while_it_stops(world, place, &run)?;
        world.wait(&run.spawned, SOON)?;
        world.expect_extinct(Duration::ZERO)?;
        world.expect_bystanders_untouched().context(format!("round {round}"))?;
        run.expect_ended(place, "stopped")?;
    }
    ensure!(taken >= ROUNDS, "only {taken} ids were used again: nothing was tried");
    all_clean(world)
}

/// Gives the ids of the dead to newcomers as soon as they are free, for as long
/// as the run goes on.
fn reuse_while_it_stops(world: &mut World, place: Place, run: &Run) -> Outcome<usize> {
    let sleepers = || -> Vec<i32> {
        world.survivors().iter().filter(|p| p.comm == "sleep").map(|p| p.pid).collect()
    };
    ensure!(await_until(SOON, || sleepers().len() >= MEMBERS), "only {} members", sleepers().len());
    let mut members = sleepers();
    let mut taken = 0;
    send_signal(run.pid(), Signal::TERM)?;
    while world.ended(&run.spawned).is_none() {
        let free = members.iter().position(|&pid| fs::metadata(format!("/proc/{pid}")).is_err());
        let Some(free) = free else {
            std::thread::yield_now();
            continue;
        };
        let pid = members.swap_remove(free);
        taken += usize::from(newcomer(world, place, pid)?);
    }
    Ok(taken)
}
