//! What happens when the command exits while others live, or when the host dies.

use std::fs;
use std::time::Instant;

use arena::report::Exit;
use arena::{
    Context, Ended, Outcome, Process, Registry, Scenario, Signal, Took, World, await_until, ensure,
    millis, seconds, send_signal,
};

use super::kit::{
    EVERYWHERE, Launch, Lines, Place, SOON, add, add_with, all_clean, children, keeper, no_cgroup,
    text,
};

pub fn register(registry: &mut Registry) {
    add(registry, "on-exit::wait", &EVERYWHERE, &[], wait);
    add(registry, "on-exit::wait-and-stop", &EVERYWHERE, &[], wait_and_stop);
    add(registry, "on-exit::release", &EVERYWHERE, &[], release);
    add(registry, "on-exit::release-nobody", &EVERYWHERE, &[], release_nobody);
    add(registry, "on-host-exit::ignore", &EVERYWHERE, &[], |w, p| host(w, p, "ignore"));
    add(registry, "on-host-exit::stop", &EVERYWHERE, &[], |w, p| host(w, p, "stop"));
    let alone = |scenario: &mut Scenario| {
        scenario.heavy().crowd();
    };
    for (name, policy) in [("stop-the-dead", "stop"), ("release-the-dead", "release")] {
        let play = move |w: &mut World, p: Place| the_dead(w, p, policy);
        add_with(registry, &format!("on-exit::{name}"), &EVERYWHERE, &[], alone, play);
    }
    add_with(registry, "on-host-exit::storm", &EVERYWHERE, &[], alone, storm);
}

/// A leader that leaves a child behind, which lives until it is told to go.
const LEAVES: &str = "(echo up > ready; read go < go) & exit 3";

fn told_to_go(world: &World) -> Outcome {
    fs::write(world.dir().join("go"), "now\n").context("go")
}

fn wait(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let run =
        Launch::new(place).options(&["--on-exit", "wait"]).start(world, &["sh", "-c", LEAVES])?;
    ready.expect("up")?;
    let keeper = keeper(world)?;
    ensure!(await_until(SOON, || children(keeper.pid).len() == 1), "the leader does not leave");
    ensure!(world.ended(&run.spawned).is_none(), "run did not wait");
    told_to_go(world)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(3), "run ended with {ended}");
    let report = run.expect_ended(place, "exited")?;
    ensure!(report.steps.is_empty(), "nobody was to be stopped: {:?}", report.steps);
    all_clean(world)
}

fn wait_and_stop(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let run =
        Launch::new(place).options(&["--on-exit", "wait"]).start(world, &["sh", "-c", LEAVES])?;
    ready.expect("up")?;
    let keeper = keeper(world)?;
    ensure!(await_until(SOON, || children(keeper.pid).len() == 1), "the leader does not leave");
    send_signal(run.pid(), Signal::TERM)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(3), "run ended with {ended}");
    let report = run.expect_ended(place, "stopped")?;
    ensure!(report.has_step("term@children"), "the steps were {:?}", report.steps);
    all_clean(world)
}

/// The one deliberate hand-off: loud, complete, and nobody is touched.
fn release(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let command = "sleep 50 & setsid sleep 50 & (trap '' HUP; echo up > ready; exec sleep 50) & \
                   read go < go; exit 5";
    let _go = Lines::create(world, "go")?;
    let run = Launch::new(place)
        .options(&["--on-exit", "release"])
        .start(world, &["sh", "-c", command])?;
    ready.expect("up")?;
    let keeper = keeper(world)?;
    let sleepers = || -> Vec<Process> {
        world.survivors().into_iter().filter(|process| process.comm == "sleep").collect()
    };
    ensure!(await_until(SOON, || sleepers().len() == 3), "there are not three sleepers");
    told_to_go(world)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(5), "run ended with {ended}");
    ensure!(keeper.still_there().is_none(), "the keeper stayed");
    let left = sleepers();
    ensure!(left.len() == 3, "{} of three live on", left.len());
    let report = run.report()?;
    ensure!(report.state == "released", "the report says {}", report.state);
    ensure!(report.proof.is_none(), "released, with the proof {:?}", report.proof);
    ensure!(report.exit == Some(Exit::Code(5)), "the leader ended with {:?}", report.exit);
    let mut named: Vec<i32> = report.released.iter().map(|member| member.pid).collect();
    named.sort_unstable();
    let mut real: Vec<i32> = left.iter().map(|process| process.pid).collect();
    real.sort_unstable();
    ensure!(named == real, "named are {named:?}, released were {real:?}");
    let said = run.stderr();
    for pid in &real {
        ensure!(said.contains(&pid.to_string()), "{pid} is not named on stderr: {said}");
    }
    no_cgroup(world)?;
    let own = fs::read_to_string("/proc/self/cgroup").context("own cgroup")?;
    for process in &left {
        let theirs = fs::read_to_string(format!("/proc/{}/cgroup", process.pid));
        ensure!(theirs.is_ok_and(|theirs| theirs == own), "{process} is not where run was");
        ensure!(!matches!(process.state, 'T' | 't'), "somebody was stopped: {process}");
    }
    // What was let go is ours to end.
    for process in left {
        send_signal(process.pid, Signal::KILL)?;
    }
    world.expect_extinct(SOON)?;
    all_clean(world)
}

fn release_nobody(world: &mut World, place: Place) -> Outcome {
    let (ended, run) = Launch::new(place)
        .options(&["--on-exit", "release"])
        .finish(world, &["sh", "-c", "exit 6"])?;
    ensure!(ended == Ended::Code(6), "run ended with {ended}");
    run.expect_ended(place, "exited")?;
    ensure!(run.stderr().is_empty(), "much ado about nothing: {}", run.stderr());
    all_clean(world)
}

/// A leader that never waited leaves only its dead. They are neither stopped nor
/// released, however many they are.
fn the_dead(world: &mut World, place: Place, policy: &str) -> Outcome {
    let launch = Launch::new(place).options(&["--on-exit", policy]);
    let run = launch.start(world, &[&text(world.zoo()), "unburied"])?;
    let ended = world.wait(&run.spawned, seconds(20))?;
    ensure!(ended == Ended::Code(3), "run ended with {ended}");
    let report = run.expect_ended(place, "exited")?;
    ensure!(report.steps.is_empty(), "the dead were stopped: {:?}", report.steps);
    ensure!(report.leftovers.is_empty(), "the dead are named: {:?}", report.leftovers);
    all_clean(world)
}

fn host(world: &mut World, place: Place, policy: &str) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    // The host has something to do afterwards, so it stays a process of its own.
    let run = Launch::new(place)
        .before(&["sh", "-c", "\"$@\"; exit $?", "host"])
        .options(&["--on-host-exit", policy])
        .start(world, &["sh", "-c", "echo up > ready; read go < go; exit 0"])?;
    ready.expect("up")?;
    let keeper = keeper(world)?;
    send_signal(run.pid(), Signal::KILL)?;
    world.wait(&run.spawned, SOON)?;
    if policy == "ignore" {
        // It is not an event when nothing happens: two ladders' time is waited.
        std::thread::sleep(millis(1200));
        ensure!(keeper.still_there().is_some(), "the run did not ignore its host's death");
        ensure!(children(keeper.pid).len() == 1, "the command is gone");
        told_to_go(world)?;
        world.expect_extinct(SOON)?;
        run.expect_ended(place, "exited")?;
    } else {
        world.expect_extinct(seconds(1))?;
        run.expect_ended(place, "host-gone")?;
    }
    all_clean(world)
}

/// Of a tree that breeds while it is asked nobody waits for the answer: without a host
/// there is one second in all.
fn storm(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _never = Lines::create(world, "never")?;
    let leader = "trap '' TERM; echo up > ready; n=0; \
                  while [ $n -lt 20000 ]; do (true &); n=$((n + 1)); done; read gone < never";
    let run = Launch::new(place).start(world, &["sh", "-c", leader])?;
    ready.expect("up")?;
    keeper(world)?;
    let since = Instant::now();
    send_signal(run.pid(), Signal::KILL)?;
    world.expect_extinct(seconds(1))?;
    let took = Took::since(since);
    let report = run.expect_ended(place, "host-gone")?;
    let at = |step: &str| report.steps.iter().find(|taken| taken.step == step).map(|it| it.at_ms);
    let (asked, killed) =
        (at("term@tree").context("nobody asked")?, at("kill").context("no kill")?);
    let after = millis(killed - asked);
    ensure!(took.kept(millis(500), after < millis(500)), "killed {after:?} after it was asked");
    all_clean(world)
}
