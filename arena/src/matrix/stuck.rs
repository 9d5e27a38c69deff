//! The member nobody but root can end: a setuid-root child of a plain user, in
//! a cage without a cgroup. The run must not say that it has stopped.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::cell::{Cage, Cell};
use super::member::MEMBERS;
use super::parts::Parts;
use super::story::Pace;
use super::trigger::{ALL, Trigger};
use super::{bystanders, clean, needs};
use crate::report::Report;
use crate::{
    Context, Ended, Outcome, Process, Registry, Took, User, World, await_until, ensure, millis,
    seconds, send_signal,
};

/// The status that says so.
const STUCK: Ended = Ended::Code(120);

/// A stuck run is tried again every second.
const RETRY: Duration = seconds(1);

pub fn register(registry: &mut Registry) {
    for trigger in ALL {
        for member in MEMBERS.iter().filter(|member| member.name == "setuid-root") {
            let cell =
                Cell { member, cage: Cage::Tree, user: User::Plain, trigger, pace: Pace::Stuck };
            let needs = needs::of(member, User::Plain);
            registry.scenario(format!("stuck::{}", cell.name()), &needs, move |world| {
                play(&cell, world)
            });
        }
    }
}

fn play(cell: &Cell, world: &mut World) -> Outcome {
    bystanders::gather(world, cell.user)?;
    let mut started = cell.start(world)?;
    let announced = started.ready.wait(seconds(20))?;
    ensure!(announced == 2, "the member announced {announced}");
    if cell.trigger == Trigger::KillGuard {
        bystanders::adopt_foreign(world, started.spawned.pid)?;
    }
    let parts = Parts::find(world, started.spawned.pid, cell.trigger, true)?;
    let root = world
        .survivors()
        .into_iter()
        .find(|process| process.uid == 0)
        .context("no member is root")?;
    let pulled = Instant::now();
    cell.trigger.pull(&parts)?;

    let bound = cell.timeout() + cell.pace.total() + seconds(5);
    // Whoever is killed, or whose guard is, can say nothing of it.
    if !cell.trigger.kills_us() {
        let status = world.wait(&started.spawned, bound)?;
        ensure!(status == STUCK, "run ended with {status}, not with {STUCK}");
        let took = Took::since(pulled);
        ensure!(took.within(bound), "run returned after {took:?}");
        let stderr =
            std::fs::read_to_string(world.out().join("stderr")).context("stderr of run")?;
        ensure!(
            stderr.contains(&root.pid.to_string()),
            "stderr does not name the survivor {}",
            root.pid
        );
    }
    let read = || Report::read(&started.report);
    let written = await_until(bound + seconds(1), || read().is_ok());
    ensure!(written, "no report after {:?}", pulled.elapsed());
    says_stuck(cell, &read()?, &root)?;
    let others: Vec<Process> =
        world.survivors().into_iter().filter(|p| p.uid != 0 && p.comm == "zoo").collect();
    ensure!(others.is_empty(), "others live as well: {others:?}");
    ensure!(root.still_there().is_some_and(|now| now.alive()), "the survivor died of something");

    // What the run could not do is done for it; it must notice by itself.
    send_signal(root.pid, Signal::KILL)?;
    world.expect_extinct(RETRY + seconds(1)).context("after the survivor was killed")?;
    let report = read()?;
    ensure!(report.state == "ended", "the report still says {}", report.state);
    // With the keeper dead, who stays is not the survivors' parent, and says so.
    let orphaned = cell.trigger == Trigger::KillKeeper;
    let proof = if orphaned { "scan-clean" } else { "no-children" };
    ensure!(report.proof.as_deref() == Some(proof), "the proof is {:?}, not {proof}", report.proof);
    started.output.expect_end(millis(500))?;
    world.expect_bystanders_untouched()?;
    clean::nothing_left(world, &["ready", "zoo-suid"])
}

fn says_stuck(cell: &Cell, report: &Report, root: &Process) -> Outcome {
    ensure!(report.state == "stuck", "state {}", report.state);
    ensure!(report.reason == cell.trigger.reason(), "reason {}", report.reason);
    ensure!(report.proof.is_none(), "stuck, with the proof {:?}", report.proof);
    ensure!(report.has_step("kill"), "stuck, and nothing was killed");
    let [survivor] = report.survivors.as_slice() else {
        return Err(format!("{} survivors, not one", report.survivors.len()).into());
    };
    let named = (survivor.pid, survivor.uid, survivor.start_ticks);
    let real = (root.pid, 0, root.start_ticks);
    ensure!(named == real, "the survivor is named {named:?}, and is {real:?}");
    Ok(())
}
