//! Members in the hands of an outside tracer. A zombie whose remains it holds is
//! dead and not stuck; one that it keeps from dying is stuck.

use std::fs;
use std::time::{Duration, Instant};

use arena::{
    Context, Ended, Need, Outcome, Process, Registry, Signal, Spawned, World, await_until, ensure,
    send_signal,
};

use super::kit::{
    Cage, EVERYWHERE, Launch, Lines, Place, Run, SOON, add, all_clean, children, keeper,
};
use super::stuck::{BOUND, LADDER, Trigger, is_confirmed, is_stuck};

pub fn register(registry: &mut Registry) {
    let strace = [Need::Program("strace")];
    add(registry, "stuck::the-tracer-sleeps", &EVERYWHERE, &strace, tracer_sleeps);
    let perl = tracer_needs();
    add(registry, "control::traced-leader", &EVERYWHERE, &perl, |w, p| traced(w, p, Whom::Leader));
    add(registry, "control::traced-child", &EVERYWHERE, &perl, |w, p| traced(w, p, Whom::Child));
    add(registry, "control::traced-child-of-an-exited-leader", &EVERYWHERE, &perl, |w, p| {
        traced(w, p, Whom::ChildAfterExit)
    });
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whom {
    Leader,
    Child,
    ChildAfterExit,
}

struct Held {
    run: Run,
    pid: i32,
}

/// A leader with a child, one of which is to be held.
fn two(world: &mut World, place: Place, whom: Whom) -> Outcome<Held> {
    let mut ready = Lines::create(world, "ready")?;
    let launch = Launch::new(place).options(&["--ladder", LADDER]);
    let command = "sh -c 'echo up > ready; exec sleep 50' & read go < go; exit 7";
    let run = launch.start(world, &["sh", "-c", command])?;
    ready.expect("up")?;
    let leader = children(keeper(world)?.pid).first().context("no leader")?.pid;
    let pid = match whom {
        Whom::Leader => leader,
        Whom::Child | Whom::ChildAfterExit => children(leader).first().context("no child")?.pid,
    };
    Ok(Held { run, pid })
}

/// A member whose remains an outside tracer holds: dead, and not stuck.
fn traced(world: &mut World, place: Place, whom: Whom) -> Outcome {
    let _go = Lines::create(world, "go")?;
    let Held { run, pid } = two(world, place, whom)?;
    let tracer = idle_tracer(world, pid)?;
    let asked = Instant::now();
    if whom == Whom::ChildAfterExit {
        fs::write(world.dir().join("go"), "now\n").context("go")?;
    } else {
        send_signal(run.pid(), Signal::TERM)?;
    }
    let ended = world.wait(&run.spawned, BOUND)?;
    let took = asked.elapsed();
    ensure!(ended != Ended::Code(120), "the dead are called stuck, after {took:?}");
    let remains = Process::read(pid).is_some_and(|process| !process.alive());
    ensure!(remains, "the tracer does not hold the remains");
    world.expect_extinct(Duration::ZERO)?;
    let report = run.report()?;
    ensure!(report.state == "ended", "the report says {}", report.state);
    let proof = match place.cage {
        Cage::Cgroup => "cgroup-empty",
        Cage::Tree => "scan-clean",
    };
    ensure!(report.proof.as_deref() == Some(proof), "the proof is {:?}", report.proof);
    if whom == Whom::ChildAfterExit {
        ensure!(ended == Ended::Code(7), "run ended with {ended}");
    }
    send_signal(tracer.pid, Signal::KILL)?;
    world.wait(&tracer, SOON)?;
    all_clean(world)
}

/// The number of ptrace(2), which perl does not know by name.
pub fn ptrace_number() -> Option<u32> {
    match std::env::consts::ARCH {
        "x86_64" => Some(101),
        "aarch64" | "riscv64" => Some(117),
        _ => None,
    }
}

fn ptrace_number_known() -> Result<(), String> {
    ptrace_number().map(drop).ok_or_else(|| "the number of ptrace is not known here".into())
}

pub fn tracer_needs() -> [Need; 2] {
    [Need::Program("perl"), Need::Check(ptrace_number_known)]
}

/// Seizes a process and never cares for it again.
pub fn idle_tracer(world: &mut World, pid: i32) -> Outcome<Spawned> {
    const SEIZE: u32 = 0x4206;
    let number = ptrace_number().context("ptrace")?;
    let script = format!("syscall({number}, {SEIZE}, {pid}, 0, 0) == 0 or die $!; sleep 55");
    let mut perl = world.command("perl");
    perl.args(["-e", &script]);
    let tracer = world.spawn("tracer", &mut perl)?;
    world.outsider(tracer.pid);
    is_traced(pid, tracer.pid)?;
    Ok(tracer)
}

fn is_traced(pid: i32, tracer: i32) -> Outcome {
    let line = format!("TracerPid:\t{tracer}\n");
    let status = format!("/proc/{pid}/status");
    let traced = || fs::read_to_string(&status).is_ok_and(|text| text.contains(&line));
    ensure!(await_until(SOON, traced), "{pid} is not traced");
    Ok(())
}

/// A tracer that wants to see every exit, and sleeps: whom it holds cannot even
/// die. That is `stuck`, until the tracer wakes up.
fn tracer_sleeps(world: &mut World, place: Place) -> Outcome {
    let _go = Lines::create(world, "go")?;
    let Held { run, pid } = two(world, place, Whom::Child)?;
    let mut strace = world.command("strace");
    strace.args(["-qq", "-o", "/dev/null", "-p", &pid.to_string()]);
    let tracer = world.spawn("strace", &mut strace)?;
    world.outsider(tracer.pid);
    is_traced(pid, tracer.pid)?;
    let state = |pid: i32, state: char| Process::read(pid).is_some_and(|p| p.state == state);
    ensure!(await_until(SOON, || state(pid, 'S')), "{pid} is not let go on");
    send_signal(tracer.pid, Signal::STOP)?;
    ensure!(await_until(SOON, || state(tracer.pid, 'T')), "the tracer does not stop");
    let held = Process::read(pid).context("nobody is held")?;
    let pulled = Instant::now();
    send_signal(run.pid(), Signal::TERM)?;
    is_stuck(world, &run, &held, pulled, Trigger::Term)?;
    send_signal(tracer.pid, Signal::CONT)?;
    is_confirmed(world, &run, place, Trigger::Term)?;
    world.wait(&tracer, SOON)?;
    all_clean(world)
}
