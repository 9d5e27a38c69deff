//! SIGKILL to the keeper, the guard or the host at many instants of a run's
//! birth: nothing is alive one second later, and nothing is left.
//!
//! Two clocks: real time, where the whole birth takes a millisecond or two and
//! the instant is chosen by chance; and slow motion, where a tracer holds every
//! system call of fullstop for a while, so that each gap between two of them is
//! met.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arena::{
    Context, Ended, InTime, Need, Outcome, Process, Registry, Signal, World, await_until, ensure,
    millis, race_until, seconds, send_signal,
};

use super::kit::{EVERYWHERE, Launch, Place, SOON, add_with, no_cgroup, text};

pub fn register(registry: &mut Registry) {
    for (name, victim) in
        [("keeper", Victim::Keeper), ("guard", Victim::Guard), ("host", Victim::Host)]
    {
        add_with(
            registry,
            &format!("birth::{name}-killed"),
            &EVERYWHERE,
            &[],
            |_| {},
            move |world, place| real_time(world, place, victim),
        );
        add_with(
            registry,
            &format!("birth::{name}-killed-in-slow-motion"),
            &EVERYWHERE,
            &[Need::Program("strace")],
            |_| {},
            move |world, place| slow_motion(world, place, victim),
        );
    }
    for (name, victim) in [("guard", Victim::Guard), ("keeper", Victim::Keeper)] {
        add_with(
            registry,
            &format!("birth::{name}-killed-at-each-call"),
            &EVERYWHERE,
            &[Need::Program("strace")],
            |_| {},
            move |world, place| each_call(world, place, victim),
        );
    }
    add_with(registry, "birth::stopped-at-once", &EVERYWHERE, &[], |_| {}, stopped_at_once);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Keeper,
    Guard,
    Host,
}

/// How often, in real time. A round takes a few milliseconds.
const ROUNDS: u64 = 150;
/// How often, in slow motion.
const SLOW_ROUNDS: u64 = 40;
/// The kill comes at most this long after the victim's birth; by then the
/// command has been running for a while on an idle machine.
const LATEST: Duration = millis(4);

/// A tree that stands quickly: one in the leader's session, one in its own.
const COMMAND: [&str; 3] = ["sh", "-c", "setsid sleep 50 & sleep 50; true"];

fn launch(place: Place, victim: Victim) -> Launch {
    let launch = Launch::new(place).without_report().options(&["-q", "--on-host-exit", "stop"]);
    match victim {
        // A host that has something to do afterwards.
        Victim::Host => launch.before(&["sh", "-c", "\"$@\"; exit $?", "host"]),
        Victim::Keeper | Victim::Guard => launch,
    }
}

fn real_time(world: &mut World, place: Place, victim: Victim) -> Outcome {
    let mut chance = Chance::new();
    for round in 0..ROUNDS {
        let delay = LATEST.mul_f64(chance.next());
        let run = launch(place, victim).start(world, &COMMAND)?;
        let pid = match victim {
            Victim::Guard => run.pid(),
            Victim::Keeper => only_child(run.pid())?,
            Victim::Host => {
                watches_host(only_child(run.pid())?)?;
                run.pid()
            }
        };
        spin(delay);
        kill(pid);
        ended(world, &run.spawned, seconds(1))
            .context(format!("round {round}, killed after {delay:?}"))?;
    }
    world.expect_no_zombies()?;
    world.expect_bystanders_untouched()
}

/// The calls between which a birth goes on.
const CALLS: &str = "getppid,pidfd_open,prctl,signalfd4,socketpair,mkdir,open,clone3,clone,pipe2,setsid,\
                     sendmsg,recvmsg,dup2,close_range,prlimit64,waitid,ppoll,rt_sigprocmask,execve,rmdir";

fn slow_motion(world: &mut World, place: Place, victim: Victim) -> Outcome {
    let mut chance = Chance::new();
    let (trace, inject) = (format!("trace={CALLS}"), format!("inject={CALLS}:delay_enter=1500"));
    let tracer = ["strace", "-f", "-b", "execve", "-qq", "-o", "/dev/null"];
    for round in 0..SLOW_ROUNDS {
        // About as long as the birth takes now.
        let delay = millis(140).mul_f64(chance.next());
        // The tracer is what starts run, so it is the host as well.
        let launch = launch(place, Victim::Guard).before(&tracer);
        let run = launch.before(&["-e", &trace, "-e", &inject]).start(world, &COMMAND)?;
        let traced = || {
            let is_run = |p: &Process| p.ppid == run.pid() && p.comm.starts_with("fullstop");
            world.survivors().into_iter().find(is_run).map(|process| process.pid)
        };
        ensure!(await_until(SOON, || traced().is_some()), "the tracer starts nothing");
        let guard = traced().context("run is gone")?;
        let pid = match victim {
            Victim::Host => watches_host(guard).map(|()| run.pid())?,
            Victim::Guard => guard,
            Victim::Keeper => only_child(guard)?,
        };
        std::thread::sleep(delay);
        kill(pid);
        // Ending is slow as well.
        ended(world, &run.spawned, seconds(6))
            .context(format!("round {round}, killed after {delay:?}"))?;
    }
    world.expect_no_zombies()?;
    world.expect_bystanders_untouched()
}

/// A command that leaves somebody behind, and ends soon by itself.
const SHORT: [&str; 3] = ["sh", "-c", "setsid sleep 50 & sleep 0.02"];

/// The guard, or the keeper, dies at each of its system calls, exactly.
fn each_call(world: &mut World, place: Place, victim: Victim) -> Outcome {
    let calls = calls_of(world, place, victim)?;
    world.note(format!("{calls:?}"));
    let mut died = 0;
    for (call, nth) in &calls {
        let inject = format!("inject={call}:signal=KILL:when={nth}");
        let mut tracer = vec!["strace", "-qq", "-o", "/dev/null", "-e", &inject];
        if victim == Victim::Keeper {
            tracer.extend(["-f", "-b", "execve"]);
        }
        let run = launch(place, victim).before(&tracer).start(world, &SHORT)?;
        let status =
            ended(world, &run.spawned, seconds(8)).context(format!("at {call} number {nth}"))?;
        died += usize::from(status != Ended::Code(0));
    }
    // What it does after the end has come is not always the same.
    ensure!(died > 2, "it died {died} times of {}", calls.len());
    world.expect_bystanders_untouched()
}

type Calls = Vec<(String, usize)>;

/// What belongs to a birth alone: a guard in its keeper's place does many others
/// over and over, more or less often each time.
const AT_BIRTH: [&str; 9] = [
    "mkdir",
    "pipe2",
    "clone3",
    "setsid",
    "dup2",
    "prctl",
    "close_range",
    "prlimit64",
    "signalfd4",
];

/// The calls a process makes, each with how many of its kind it is: that is how
/// strace counts. A call of the keeper at which the guard would die as well,
/// waiting or in its keeper's place, is left out.
fn calls_of(world: &mut World, place: Place, victim: Victim) -> Outcome<Calls> {
    let [guard, mut keeper] = reference(world, place, &[])?;
    if victim == Victim::Guard {
        return Ok(guard);
    }
    let killed = ["-e", "trace=all", "-e", "inject=setsid:signal=KILL:when=1"];
    let [in_its_place, _] = reference(world, place, &killed)?;
    let total = |calls: &Calls, name: &str| calls.iter().filter(|(call, _)| call == name).count();
    keeper.retain(|(name, nth)| {
        let most = total(&guard, name).max(total(&in_its_place, name));
        *nth > most && AT_BIRTH.contains(&name.as_str())
    });
    Ok(keeper)
}

/// What guard and keeper call in one run.
fn reference(world: &mut World, place: Place, more: &[&str]) -> Outcome<[Calls; 2]> {
    let dir = world.out().join("calls");
    fs::create_dir(&dir).context("calls")?;
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).context("chmod")?;
    let tracer = ["strace", "-ff", "-b", "execve", "-qq", "-o"];
    let launch = launch(place, Victim::Keeper).before(&tracer).before(&[&text(dir.join("of"))]);
    launch.before(more).finish(world, &SHORT)?;
    let number = |path: &Path| path.extension().and_then(|n| n.to_str()?.parse::<i32>().ok());
    let mut files: Vec<PathBuf> =
        fs::read_dir(&dir).context("calls")?.flatten().map(|file| file.path()).collect();
    files.sort_by_key(|path| number(path));
    ensure!(files.len() >= 2, "no guard and keeper were traced");
    let calls = |path: &Path| fs::read_to_string(path).map(|text| counted(&text)).context("trace");
    let pair = [calls(&files[0])?, calls(&files[1])?];
    fs::remove_dir_all(&dir).context("calls")?;
    Ok(pair)
}

fn counted(trace: &str) -> Calls {
    let mut calls = Calls::new();
    for name in trace.lines().filter_map(|line| line.split_once('(')).map(|(name, _)| name) {
        let nth = calls.iter().filter(|(known, _)| known == name).count() + 1;
        calls.push((name.to_owned(), nth));
    }
    calls.retain(|(name, _)| name != "execve" && name != "exit_group");
    calls
}

/// A stop that comes while the run is being born is kept and obeyed.
fn stopped_at_once(world: &mut World, place: Place) -> Outcome {
    let mut chance = Chance::new();
    let signals = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];
    for round in 0..ROUNDS {
        let delay = LATEST.mul_f64(chance.next());
        let signal = signals[usize::try_from(round % 4).unwrap_or(0)];
        let launch =
            Launch::new(place).options(&["--ladder", "term@leader:100ms,term@tree:1s,kill"]);
        let run = launch.start(world, &COMMAND)?;
        let began = holds_signals(run.pid());
        spin(delay);
        let sent = send_signal(run.pid(), signal).is_ok();
        ensure!(began, "run does not hold its signals back");
        ensure!(sent, "run was over before it began");
        let status = world.wait(&run.spawned, seconds(3)).context(format!("after {delay:?}"))?;
        world.expect_extinct(Duration::ZERO).context(format!("{signal:?} after {delay:?}"))?;
        no_cgroup(world)?;
        // The shell catches nothing, so it died of the signal, or never began.
        let fine = [Ended::Signal(signal.as_raw()), Ended::Signal(15), Ended::Code(137)];
        ensure!(fine.contains(&status), "{signal:?} after {delay:?}: run ended with {status}");
        let report = run.report().context(format!("{signal:?} after {delay:?}"))?;
        ensure!(report.state == "ended", "the report says {}", report.state);
        ensure!(report.reason == "stopped", "{signal:?} after {delay:?}: {}", report.reason);
        ensure!(report.proof.is_some(), "no proof");
    }
    world.expect_no_zombies()?;
    world.expect_bystanders_untouched()
}

/// Until run holds TERM back it may die of it like anybody.
fn holds_signals(pid: i32) -> InTime {
    const TERM: u64 = 1 << 14;
    let path = format!("/proc/{pid}/status");
    let blocked = || {
        let status = fs::read_to_string(&path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("SigBlk:")).unwrap_or("0");
        u64::from_str_radix(line.trim(), 16).unwrap_or(0) & TERM != 0
    };
    race_until(SOON, blocked)
}

/// A host that dies before run has looked at it cannot be told from a parent
/// that was never there. From then on it holds a pidfd.
fn watches_host(run: i32) -> Outcome {
    let holds = || {
        let entries = fs::read_dir(format!("/proc/{run}/fd")).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| fs::read_link(entry.path()).ok())
            .any(|link| link.to_string_lossy().contains("pidfd"))
    };
    ensure!(race_until(SOON, holds), "run does not look at its host");
    Ok(())
}

/// The first child, as soon as there is one.
fn only_child(of: i32) -> Outcome<i32> {
    let path = format!("/proc/{of}/task/{of}/children");
    let mut child = None;
    let looked = race_until(SOON, || {
        let Ok(children) = fs::read_to_string(&path) else { return true };
        child = children.split_ascii_whitespace().next().and_then(|first| first.parse().ok());
        child.is_some()
    });
    ensure!(looked, "{of} has no child");
    child.context(format!("{of} is gone, and had no child"))
}

/// Sleeping is not exact enough for some microseconds.
fn spin(delay: Duration) {
    let start = Instant::now();
    while start.elapsed() < delay {
        std::hint::spin_loop();
    }
}

/// The victim may just have ended by itself.
fn kill(pid: i32) {
    if Process::read(pid).is_some() {
        let _ = send_signal(pid, Signal::KILL);
    }
}

/// Everybody is dead within `patience`, and no cgroup is left.
fn ended(world: &World, run: &arena::Spawned, patience: Duration) -> Outcome<Ended> {
    world.expect_extinct(patience)?;
    let gone = await_until(millis(500), || no_cgroup(world).is_ok());
    if !gone {
        no_cgroup(world)?;
    }
    world.wait(run, SOON)
}

/// Chance that can be repeated: a seed is noted, and a multiplication does.
struct Chance(u64);

impl Chance {
    fn new() -> Self {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        Self(u64::try_from(now.unwrap_or_default().as_nanos()).unwrap_or(1) | 1)
    }

    /// Between nothing and one.
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        f64::from(u32::try_from(self.0 >> 33).unwrap_or(0)) / f64::from(1u32 << 31)
    }
}
