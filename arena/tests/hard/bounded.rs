//! Promise 4 where nobody listens: whoever holds a pipe open, full or broken, a
//! stop returns in time, and what `run` has to say never changes how it goes.

use std::fs::{self, File};
use std::os::fd::OwnedFd;

use arena::{
    Context, Ended, Outcome, Process, Ready, Registry, Scenario, Signal, World, await_until,
    ensure, millis, seconds, send_signal,
};
use rustix::fs::OFlags;

use super::kit::{
    EVERYWHERE, Launch, Lines, Place, Run, SOON, add, add_with, all_clean, keeper, stop, text,
};

pub fn register(registry: &mut Registry) {
    add(registry, "bounded::nobody-reads-the-report", &EVERYWHERE, &[], full_stdout);
    add(registry, "bounded::nobody-reads-stderr", &EVERYWHERE, &[], full_stderr);
    add(registry, "bounded::nobody-reads-verbose", &EVERYWHERE, &[], full_verbose);
    for (name, stderr) in
        [("broken-pipe", broken_pipe as fn() -> Outcome<OwnedFd>), ("full-device", full_device)]
    {
        let play = move |w: &mut World, p: Place| verbose_goes_on(w, p, stderr()?);
        add_with(registry, &format!("mute::{name}"), &EVERYWHERE, &[], |_| {}, play);
        let play = move |w: &mut World, p: Place| keeper_dies_unheard(w, p, stderr()?);
        add_with(registry, &format!("mute::{name}-keeper-killed"), &EVERYWHERE, &[], |_| {}, play);
        let play = move |w: &mut World, p: Place| report_unheard(w, p, stderr()?);
        add_with(registry, &format!("mute::{name}-for-the-report"), &EVERYWHERE, &[], |_| {}, play);
    }
    add(registry, "signals::none-is-lost", &EVERYWHERE, &[], none_is_lost);
    add(registry, "signals::no-patience-is-for-all", &EVERYWHERE, &[], no_patience);
    add(registry, "signals::few-descriptors-are-for-all", &EVERYWHERE, &[], few_descriptors);
    let crowd = |scenario: &mut Scenario| {
        scenario.crowd();
    };
    let name = "guard::stopped-over-a-crowd";
    add_with(registry, name, &EVERYWHERE, &[], crowd, stopped_over_a_crowd);
}

/// A pipe that is full, and the end nobody reads from.
fn full_pipe() -> Outcome<(OwnedFd, OwnedFd)> {
    let (reader, writer) = pipe()?;
    rustix::fs::fcntl_setfl(&writer, OFlags::NONBLOCK).context("fcntl")?;
    while rustix::io::write(&writer, &[b'.'; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(&writer, OFlags::empty()).context("fcntl")?;
    Ok((reader, writer))
}

fn broken_pipe() -> Outcome<OwnedFd> {
    pipe().map(|(_, writer)| writer)
}

fn full_device() -> Outcome<OwnedFd> {
    File::options().write(true).open("/dev/full").map(OwnedFd::from).context("/dev/full")
}

fn pipe() -> Outcome<(OwnedFd, OwnedFd)> {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).context("pipe")
}

const SLEEPER: [&str; 3] = ["sh", "-c", "echo up > ready; exec sleep 50"];
const OBEDIENT: [&str; 3] = ["sh", "-c", "echo up > ready; read go < go; exit 3"];

fn full_stdout(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let (reader, writer) = full_pipe()?;
    let run = Launch::new(place)
        .without_report()
        .options(&["--report", "-", "--grace", "200ms"])
        .stdout(writer)
        .start(world, &SLEEPER)?;
    ready.expect("up")?;
    send_signal(run.pid(), Signal::TERM)?;
    world.wait(&run.spawned, millis(5200))?;
    drop(reader);
    world.expect_extinct(seconds(1))?;
    all_clean(world)
}

fn full_stderr(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let (_reader, writer) = full_pipe()?;
    let run = Launch::new(place).stderr(writer).start(world, &SLEEPER)?;
    ready.expect("up")?;
    send_signal(keeper(world)?.pid, Signal::KILL)?;
    world.wait(&run.spawned, millis(5000))?;
    run.expect_ended(place, "keeper-died")?;
    all_clean(world)
}

fn full_verbose(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let (_reader, writer) = full_pipe()?;
    let launch = Launch::new(place).options(&["-v", "--grace", "200ms"]).stderr(writer);
    let run = launch.start(world, &SLEEPER)?;
    ready.expect("up")?;
    keeper(world)?;
    send_signal(run.pid(), Signal::TERM)?;
    world.wait(&run.spawned, millis(5200))?;
    run.expect_ended(place, "stopped")?;
    all_clean(world)
}

fn may_go(world: &World) -> Outcome {
    fs::write(world.dir().join("go"), "now\n").context("go")
}

fn ends_with(world: &World, run: &Run, status: Ended) -> Outcome {
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == status, "run ended with {ended}, not with {status}");
    Ok(())
}

/// What cannot be said stops nobody.
fn verbose_goes_on(world: &mut World, place: Place, stderr: OwnedFd) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let run = Launch::new(place).options(&["-v"]).stderr(stderr).start(world, &OBEDIENT)?;
    ready.expect("up")?;
    keeper(world)?;
    may_go(world)?;
    ends_with(world, &run, Ended::Code(3))?;
    run.expect_ended(place, "exited")?;
    all_clean(world)
}

fn keeper_dies_unheard(world: &mut World, place: Place, stderr: OwnedFd) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let run = Launch::new(place).stderr(stderr).start(world, &SLEEPER)?;
    ready.expect("up")?;
    send_signal(keeper(world)?.pid, Signal::KILL)?;
    ends_with(world, &run, Ended::Code(137))?;
    run.expect_ended(place, "keeper-died")?;
    all_clean(world)
}

/// A report into a pipe that is broken, or onto a device that is full.
fn report_unheard(world: &mut World, place: Place, stdout: OwnedFd) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let launch = Launch::new(place).without_report().options(&["--report", "-"]).stdout(stdout);
    let run = launch.start(world, &OBEDIENT)?;
    ready.expect("up")?;
    may_go(world)?;
    ends_with(world, &run, Ended::Code(3))?;
    let said = run.stderr();
    ensure!(said.lines().count() == 1 && said.contains("report"), "it says {said:?}");
    all_clean(world)
}

/// Between guard and keeper there is room for some messages only. A keeper that
/// does not listen for a while must still hear of a stop.
fn none_is_lost(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let deaf = "trap '' 35; echo up > ready; exec sleep 50";
    let run = Launch::new(place).start(world, &["sh", "-c", deaf])?;
    ready.expect("up")?;
    let keeper = keeper(world)?;
    // Its guard continues it at once; whatever came between must not be lost.
    send_signal(keeper.pid, Signal::STOP)?;
    // Signals of real time are queued, and each is passed on.
    let flood = format!("n=0; while [ $n -lt 2000 ]; do kill -35 {}; n=$((n+1)); done", run.pid());
    let mut shell = world.command("sh");
    shell.args(["-c", &flood]);
    let flood = world.spawn("flood", &mut shell)?;
    world.wait(&flood, seconds(10))?;
    send_signal(run.pid(), Signal::TERM)?;
    let taken = || pending(run.pid()) == 0;
    ensure!(await_until(SOON, taken), "run does not take its signals");
    ends_with(world, &run, Ended::Signal(15))?;
    run.expect_ended(place, "stopped")?;
    all_clean(world)
}

/// The signals a process has not taken yet.
fn pending(pid: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("ShdPnd:")).unwrap_or("0");
    u64::from_str_radix(line.trim(), 16).unwrap_or(0)
}

/// A step that does not wait is still for every one of them.
fn no_patience(world: &mut World, place: Place) -> Outcome {
    let launch = Launch::new(place).options(&["--ladder", "term@tree:0s,cont@tree:5s,kill"]);
    all_are_asked(world, place, launch)
}

/// And so is one for which there are fewer descriptors than members.
fn few_descriptors(world: &mut World, place: Place) -> Outcome {
    let launch = Launch::new(place)
        .before(&["sh", "-c", "ulimit -n 40; exec \"$@\"", "few"])
        .options(&["--ladder", "term@tree:5s,kill"]);
    all_are_asked(world, place, launch)
}

fn all_are_asked(world: &mut World, place: Place, launch: Launch) -> Outcome {
    const CROWD: usize = 60;
    let mut ready = Lines::create(world, "ready")?;
    let _never = Lines::create(world, "never")?;
    let member = "trap 'echo heard >> heard; exit' TERM; echo up > ready; read gone < never";
    fs::write(world.dir().join("member"), member).context("member")?;
    let tree = format!("for i in $(seq {CROWD}); do sh ./member & done; trap : TERM; wait; wait");
    let run = launch.start(world, &["sh", "-c", &tree])?;
    for _ in 0..CROWD {
        ready.expect("up")?;
    }
    // Between its last look for signals and the read a shell would keep one to itself.
    let reads = |process: &Process| process.comm == "sh" && process.wchan().contains("pipe_read");
    let all_read = || world.survivors().into_iter().filter(reads).count() == CROWD;
    ensure!(await_until(SOON, all_read), "they do not all read");
    send_signal(run.pid(), Signal::TERM)?;
    world.wait(&run.spawned, seconds(10))?;
    let heard = fs::read_to_string(world.dir().join("heard")).context("heard")?;
    ensure!(heard.lines().count() == CROWD, "{} of {CROWD} were asked", heard.lines().count());
    let report = run.expect_ended(place, "stopped")?;
    let first = report.steps.first().context("no step")?;
    ensure!(first.alive == CROWD + 1, "{first:?} of {CROWD} and their leader");
    all_clean(world)
}

/// A guard that is stopped while a crowd is left behind and ended: what the
/// keeper has to tell is more than a socket holds, but the end must be heard.
fn stopped_over_a_crowd(world: &mut World, place: Place) -> Outcome {
    let mut ready = Ready::create(&world.dir())?;
    let _go = Lines::create(world, "go")?;
    let command = format!("{} --dir . wide 900 & read go < go; exit 3", text(world.zoo()));
    let run = Launch::new(place).start(world, &["sh", "-c", &command])?;
    ready.wait(seconds(20)).context("the crowd")?;
    keeper(world)?;
    stop(run.pid())?;
    may_go(world)?;
    let ended = world.wait(&run.spawned, seconds(15))?;
    ensure!(ended == Ended::Code(3), "run ended with {ended}");
    let report = run.expect_ended(place, "exited")?;
    ensure!(report.leftovers.len() > 800, "{} leftovers", report.leftovers.len());
    all_clean(world)
}
