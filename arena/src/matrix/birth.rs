//! SIGKILL while a run is being born: at some sixty instants between the start
//! of `run` and a standing tree, to `run` itself or to the keeper.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::cell::Cage;
use super::{bystanders, clean};
use crate::report::Report;
use crate::{
    Context, Deadline, Need, Outcome, Registry, User, World, await_until, ensure, seconds,
    send_signal,
};

const ROUNDS: u32 = 60;

/// From one instant to the next. The last is some four milliseconds after the
/// start, when a tree stands on an idle machine.
const STEP: Duration = Duration::from_micros(70);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Victim {
    Run,
    Keeper,
}

pub fn register(registry: &mut Registry) {
    for cage in [Cage::Cgroup, Cage::Tree] {
        for user in [User::Root, User::Plain] {
            for (victim, name) in [(Victim::Run, "kill-run"), (Victim::Keeper, "kill-keeper")] {
                let needs: &[Need] = if cage == Cage::Cgroup { &[Need::Cgroup] } else { &[] };
                registry.scenario(format!("birth::{cage}::{user}::{name}"), needs, move |world| {
                    play(world, cage, user, victim)
                });
            }
        }
    }
}

fn play(world: &mut World, cage: Cage, user: User, victim: Victim) -> Outcome {
    if user == User::Plain && cage == Cage::Cgroup {
        world.enter_delegated(user)?;
    }
    bystanders::gather(world, user)?;
    world.attach("report", world.out().join("report.json"));
    for round in 0..ROUNDS {
        let instant = STEP * round;
        one(world, cage, user, victim, instant).context(format!("killed after {instant:?}"))?;
    }
    world.expect_bystanders_untouched()?;
    clean::nothing_left(world, &[])
}

fn one(world: &mut World, cage: Cage, user: User, victim: Victim, instant: Duration) -> Outcome {
    let report = world.out().join("report.json");
    let mut command = world.command(world.fullstop());
    command.args(["run", "--cage", &cage.to_string(), "--report"]).arg(&report).arg("--");
    command.arg(world.zoo()).arg("--dir").arg(world.dir()).arg("own-session");
    user.apply(&mut command);
    let run = world.spawn("run", &mut command)?;
    let born = Instant::now();
    let target = match victim {
        Victim::Run => Some(run.pid),
        Victim::Keeper => first_child(world, run.pid),
    };
    // The instant is what is tried out here; nothing is waited for.
    std::thread::sleep(instant.saturating_sub(born.elapsed()));
    let killed = Instant::now();
    // A target that is gone already had its end before the instant came.
    let _ = target.map(|pid| send_signal(pid, Signal::KILL));
    world.expect_extinct_by(Deadline::from(killed, seconds(1)))?;
    world.wait(&run, seconds(1))?;
    if let Some(cgroup) = world.cgroup() {
        let left = cgroup.leftovers();
        ensure!(left.is_empty(), "not clean: cgroups left behind: {}", left.join(", "));
    }
    says_the_truth(&report)
}

/// The keeper is the first child `run` ever has.
fn first_child(world: &World, run: i32) -> Option<i32> {
    let mut child = None;
    await_until(seconds(1), || {
        child = world.survivors().iter().find(|process| process.ppid == run).map(|p| p.pid);
        child.is_some()
    });
    child
}

/// There may be no report, if it was killed early; a report must not lie.
fn says_the_truth(path: &std::path::Path) -> Outcome {
    let empty = std::fs::metadata(path).map_or(true, |file| file.len() == 0);
    if !empty {
        let report = Report::read(path)?;
        ensure!(report.state == "ended", "the report says {}", report.state);
        ensure!(report.proof.is_some(), "the report has no proof");
    }
    // Absent already is as good.
    let _ = std::fs::remove_file(path);
    Ok(())
}
