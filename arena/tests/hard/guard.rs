//! The guard in unusual company: stopped, with children that are not its own,
//! as pid 1, leading a session; and a keeper that others send signals to.

use std::fs;
use std::time::Instant;

use arena::{
    Context, Ended, Need, Outcome, Process, Registry, Signal, Took, World, await_until, ensure,
    millis, seconds, send_signal,
};

use super::kit::{
    AS_ROOT, EVERYWHERE, Launch, Lines, Place, SOON, add, all_clean, children, keeper, stop,
};

pub fn register(registry: &mut Registry) {
    add(registry, "guard::stopped-when-the-keeper-is-killed", &EVERYWHERE, &[], stopped);
    add(registry, "guard::stopped-when-the-command-exits", &EVERYWHERE, &[], stopped_at_exit);
    add(registry, "guard::stopped-when-asked", &EVERYWHERE, &[], stopped_when_asked);
    add(registry, "guard::foreign-children", &EVERYWHERE, &[], |world, place| {
        foreign(world, place, Trigger::Term)
    });
    add(registry, "guard::foreign-children-natural", &EVERYWHERE, &[], |world, place| {
        foreign(world, place, Trigger::Natural)
    });
    add(registry, "guard::foreign-children-keeper-killed", &EVERYWHERE, &[], |world, place| {
        foreign(world, place, Trigger::KillKeeper)
    });
    add(registry, "guard::foreign-children-run-killed", &EVERYWHERE, &[], |world, place| {
        foreign(world, place, Trigger::KillRun)
    });
    add(registry, "guard::foreign-zombies-are-reaped", &AS_ROOT, &[], foreign_zombies);
    for (name, trigger) in [
        ("term", Trigger::Term),
        ("natural", Trigger::Natural),
        ("keeper-killed", Trigger::KillKeeper),
        ("guard-killed", Trigger::KillGuard),
    ] {
        let play: fn(&mut World, Place) -> Outcome = match trigger {
            Trigger::Term => |world, place| pid_one(world, place, Trigger::Term),
            Trigger::Natural => |world, place| pid_one(world, place, Trigger::Natural),
            Trigger::KillKeeper => |world, place| pid_one(world, place, Trigger::KillKeeper),
            _ => |world, place| pid_one(world, place, Trigger::KillGuard),
        };
        add(registry, &format!("guard::pid-1::{name}"), &AS_ROOT, &[], play);
    }
    add(registry, "guard::pid-1::proc-of-others", &AS_ROOT, &[], foreign_proc);
    let setsid = [Need::Program("setsid")];
    add(registry, "guard::leads-a-session", &EVERYWHERE, &setsid, leads_session);
    add(registry, "keeper::asked-directly", &EVERYWHERE, &[], keeper_asked);
    add(registry, "keeper::stopped", &EVERYWHERE, &[], keeper_stopped);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trigger {
    Term,
    Natural,
    KillKeeper,
    KillGuard,
    KillRun,
}

/// Deaf to TERM, with a child in a session of its own, until told to go.
const DEAF: &str = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo up > ready; sleep 50; true' & \
                    read go < go; exit 3";

fn stopped(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let run = Launch::new(place).start(world, &["sh", "-c", DEAF])?;
    ready.expect("up")?;
    let keeper = keeper(world)?;
    stop(run.pid())?;
    send_signal(keeper.pid, Signal::KILL)?;
    let ended = world.wait(&run.spawned, seconds(1))?;
    ensure!(ended == Ended::Code(137), "run ended with {ended}");
    run.expect_ended(place, "keeper-died")?;
    all_clean(world)
}

fn stopped_at_exit(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let run =
        Launch::new(place).options(&["--grace", "100ms"]).start(world, &["sh", "-c", DEAF])?;
    ready.expect("up")?;
    keeper(world)?;
    stop(run.pid())?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(3), "run ended with {ended}");
    run.expect_ended(place, "exited")?;
    all_clean(world)
}

/// What is sent to a stopped run is obeyed once it goes on.
fn stopped_when_asked(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let run =
        Launch::new(place).options(&["--grace", "100ms"]).start(world, &["sh", "-c", DEAF])?;
    ready.expect("up")?;
    keeper(world)?;
    stop(run.pid())?;
    for signal in [Signal::TERM, Signal::CONT] {
        send_signal(run.pid(), signal)?;
    }
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(137), "run ended with {ended}");
    run.expect_ended(place, "stopped")?;
    all_clean(world)
}

fn foreign(world: &mut World, place: Place, trigger: Trigger) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let run = Launch::new(place)
        .before(&["sh", "-c", "sleep 55 & setsid sleep 56 & exec \"$@\"", "sh"])
        .options(&["--grace", "100ms"])
        .start(world, &["sh", "-c", DEAF])?;
    ready.expect("up")?;
    let keeper = keeper(world)?;
    let foreigners = || {
        let mut all = children(run.pid());
        all.retain(|process| process.comm == "sleep");
        all
    };
    ensure!(await_until(SOON, || foreigners().len() == 2), "run has no foreign children");
    for process in foreigners() {
        world.adopt_bystander("foreign child", process.pid)?;
    }
    ensure!(keeper.ppid != run.pid(), "run has children of others, and guards all the same");
    pull(world, trigger, run.pid(), &keeper)?;
    let status = match trigger {
        Trigger::Natural => Ended::Code(3),
        Trigger::KillRun => Ended::Signal(9),
        _ => Ended::Code(137),
    };
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == status, "run ended with {ended}, not with {status}");
    world.expect_extinct(seconds(1))?;
    run.expect_ended(place, reason(trigger))?;
    all_clean(world)
}

fn reason(trigger: Trigger) -> &'static str {
    match trigger {
        Trigger::Term => "stopped",
        Trigger::Natural => "exited",
        Trigger::KillKeeper => "keeper-died",
        Trigger::KillGuard | Trigger::KillRun => "host-gone",
    }
}

fn pull(world: &World, trigger: Trigger, run: i32, keeper: &Process) -> Outcome {
    match trigger {
        Trigger::Term => send_signal(run, Signal::TERM),
        Trigger::Natural => fs::write(world.dir().join("go"), "now\n").context("go"),
        Trigger::KillKeeper => send_signal(keeper.pid, Signal::KILL),
        Trigger::KillGuard => send_signal(keeper.ppid, Signal::KILL),
        Trigger::KillRun => send_signal(run, Signal::KILL),
    }
}

/// Children of others that die are buried while the run goes on.
fn foreign_zombies(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _leave = Lines::create(world, "leave")?;
    let run = Launch::new(place)
        .before(&["sh", "-c", "(read gone < leave) & (read gone < leave) & exec \"$@\"", "sh"])
        .start(world, &["sh", "-c", "echo up > ready; sleep 50; true"])?;
    ready.expect("up")?;
    keeper(world)?;
    let strangers = || children(run.pid()).len();
    ensure!(await_until(SOON, || strangers() == 3), "{} children of run", strangers());
    fs::write(world.dir().join("leave"), "now\nnow\n").context("leave")?;
    ensure!(await_until(SOON, || strangers() == 1), "{} children of run", strangers());
    send_signal(run.pid(), Signal::TERM)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Signal(15), "run ended with {ended}");
    all_clean(world)
}

/// As in a container: the first process of a pid namespace of its own.
fn pid_one(world: &mut World, place: Place, trigger: Trigger) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let run = Launch::new(place)
        .before(&["unshare", "--pid", "--fork", "--mount-proc"])
        .options(&["--grace", "100ms"])
        .start(world, &["sh", "-c", DEAF])?;
    ready.expect("up")?;
    let keeper = keeper(world)?;
    let one = children(run.pid()).first().context("unshare has no child")?.pid;
    ensure!(keeper.ppid != one, "pid 1 guards by itself");
    pull(world, trigger, one, &keeper)?;
    // pid 1 cannot die of a signal: it says so with a status, as shells do.
    let status = if trigger == Trigger::Natural { 3 } else { 137 };
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(status), "run ended with {ended}, not with status {status}");
    world.expect_extinct(seconds(1))?;
    run.expect_ended(place, reason(trigger))?;
    all_clean(world)
}

/// A /proc that shows another namespace must not lead to another's processes:
/// with a cgroup it can be done without, otherwise it is refused.
fn foreign_proc(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let run = Launch::new(place)
        .before(&["unshare", "--pid", "--fork"])
        .options(&["--grace", "100ms", "--timeout", "600ms"])
        .start(world, &["sh", "-c", DEAF])?;
    let ended = world.wait(&run.spawned, SOON)?;
    world.expect_extinct(seconds(1))?;
    match ended {
        Ended::Code(124) => {
            ready.expect("up")?;
            run.expect_ended(place, "overall-timeout")?;
        }
        Ended::Code(125) => {
            let said = run.stderr();
            ensure!(said.lines().count() == 1 && said.contains("/proc"), "unclear: {said:?}");
        }
        _ => return Err(format!("run ended with {ended}").into()),
    }
    all_clean(world)
}

fn leads_session(world: &mut World, place: Place) -> Outcome {
    for (signal, status) in
        [(Signal::TERM, 15), (Signal::HUP, 1), (Signal::INT, 2), (Signal::QUIT, 3)]
    {
        let mut ready = Lines::create(world, "ready")?;
        let run = Launch::new(place)
            .before(&["setsid"])
            .options(&["--ladder", "term@leader:500ms,term@tree:2s,kill"])
            .start(world, &["sh", "-c", "setsid sleep 50 & echo up > ready; exec sleep 50"])?;
        ready.expect("up")?;
        keeper(world)?;
        let guard = Process::read(run.pid()).context("run")?;
        ensure!(guard.sid == guard.pid, "run does not lead its session");
        let asked = Instant::now();
        send_signal(run.pid(), signal)?;
        let ended = world.wait(&run.spawned, SOON)?;
        ensure!(ended == Ended::Signal(status), "run ended with {ended}, not with signal {status}");
        let took = Took::since(asked);
        ensure!(took.within(seconds(2)), "it took {took:?}");
        run.expect_ended(place, "stopped")?;
        all_clean(world)?;
        fs::remove_file(world.dir().join("ready")).context("ready")?;
    }
    Ok(())
}

/// A keeper takes TERM, INT and HUP as a request, not as an order to die.
fn keeper_asked(world: &mut World, place: Place) -> Outcome {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut ready = Lines::create(world, "ready")?;
        let _go = Lines::create(world, "go")?;
        let launch = Launch::new(place).options(&["--grace", "100ms"]);
        let run = launch.start(world, &["sh", "-c", DEAF])?;
        ready.expect("up")?;
        send_signal(keeper(world)?.pid, signal)?;
        let ended = world.wait(&run.spawned, SOON)?;
        ensure!(ended == Ended::Code(137), "run ended with {ended}");
        run.expect_ended(place, "stopped")?;
        all_clean(world)?;
        for fifo in ["ready", "go"] {
            fs::remove_file(world.dir().join(fifo)).context(fifo)?;
        }
    }
    Ok(())
}

/// A member of the same user may stop the keeper (`kill -STOP -1` does). Whoever
/// then asks `run` to stop must not wait for ever.
fn keeper_stopped(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let launch = Launch::new(place).options(&["--grace", "100ms"]);
    let run = launch.start(world, &["sh", "-c", DEAF])?;
    ready.expect("up")?;
    send_signal(keeper(world)?.pid, Signal::STOP)?;
    send_signal(run.pid(), Signal::TERM)?;
    world.wait(&run.spawned, millis(5100))?;
    world.expect_extinct(seconds(1))?;
    all_clean(world)
}
