//! Groups: after a close has returned nobody in the group lives, and none can start.

use std::time::Duration;

use arena::{Context, Ended, Outcome, Process, Registry, World, await_until, ensure, seconds};

use super::desk::{
    QUIET, RunningCommand, alive, all_clean, ask, behead, dir, expect_over, freeze, live_ids,
    names, nobody, proof, record, run_ids, say, start, swept_proof, tell, who,
};
use crate::kit::{EVERYWHERE, Launch, Lines, Place, SOON, add};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("close", close as fn(&mut World, Place) -> Outcome),
        ("stop-leaves-it-open", stop_only),
        ("nested", nested),
        ("leader-gone", leader_gone),
        ("keeper-hung", keeper_hung),
        ("keeper-hung-stop", keeper_hung_stop),
        ("keeper-and-guard-gone", lost_member),
        ("refused-without-a-trace", refused),
        ("restart-in-a-closed-group", restart_closed),
        ("joiners-racing-a-close", racing),
    ] {
        add(registry, &format!("group::{name}"), &EVERYWHERE, &[], play);
    }
}

fn members(world: &World, group: &str) -> Vec<String> {
    names(&world.state().join("groups").join(group).join(".members"))
}

fn close(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(start(world, place, &["--group", "plan"], &["sh", "-c", QUIET])?);
    }
    let outside = start(world, place, &[], &["sh", "-c", QUIET])?;
    let outsider = who(world, &outside)?;
    let listed = say(world, place, &["group", "ls", "--json"])?.json()?;
    ensure!(listed[0]["name"] == "plan" && listed[0]["live"] == 3, "it lists {listed}");
    let said = say(world, place, &["group", "close", "--json", "plan"])?;
    for id in &ids {
        ensure!(!live_ids(world).contains(id), "{id} is listed");
        expect_over(world, id, "group-closed", proof(place))?;
    }
    said.expect(0)?;
    let report = said.json()?;
    ensure!(report["closed"] == true, "{report}");
    ensure!(report["reports"].as_array().is_some_and(|all| all.len() == 3), "{report}");
    ensure!(members(world, "plan").is_empty(), "members are left: {:?}", members(world, "plan"));
    ensure!(alive(&outsider.leader), "one outside the group was stopped");
    // Closed again: nothing to do, and no error.
    say(world, place, &["group", "close", "plan"])?.expect(0)?;
    let listed = say(world, place, &["group", "ls", "--json"])?.json()?;
    ensure!(listed[0]["closed_by"] == "plan", "it lists {listed}");
    tell(world, place, &["group", "open", "plan"])?;
    let id = start(world, place, &["--group", "plan"], &["sh", "-c", QUIET])?;
    tell(world, place, &["stop", "--group", "plan"])?;
    expect_over(world, &id, "stopped", proof(place))?;
    tell(world, place, &["kill", &outside])?;
    nobody(world)?;
    say(world, place, &["group", "close", "no/../such"])?.expect(125)?;
    all_clean(world)
}

fn stop_only(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    for _ in 0..2 {
        let id = start(world, place, &["--group", "plan/a"], &["sh", "-c", QUIET])?;
        say(world, place, &["group", "stop", "plan"])?.expect(0)?;
        expect_over(world, &id, "stopped", proof(place))?;
        nobody(world)?;
    }
    all_clean(world)
}

/// What is done to a group is done to those below it, not to those beside it.
fn nested(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let mut begin = |group: &str| -> Outcome<(String, Process)> {
        let id = start(world, place, &["--group", group], &["sh", "-c", QUIET])?;
        let leader = who(world, &id)?.leader;
        Ok((id, leader))
    };
    let (top, deep, deeper) = (begin("plan")?, begin("plan/a")?, begin("plan/a/b")?);
    let (beside, alike) = (begin("plan/c")?, begin("plan/ab")?);
    say(world, place, &["group", "close", "plan/a"])?.expect(0)?;
    ensure!(!alive(&deep.1) && !alive(&deeper.1), "somebody in it lives");
    for (id, leader) in [&top, &beside, &alike] {
        ensure!(alive(leader), "{id} was stopped");
    }
    for (group, by) in [("plan/a", "plan/a"), ("plan/a/b", "plan/a"), ("plan/a/new", "plan/a")] {
        let said = say(world, place, &["start", "--group", group, "--", "sh", "-c", QUIET])?;
        said.expect_one_line(125, &format!("group {by} is closed"))?;
    }
    say(world, place, &["group", "close", "plan"])?.expect(0)?;
    nobody(world)?;
    // Opening the outer one does not open the inner one.
    tell(world, place, &["group", "open", "plan"])?;
    say(world, place, &["start", "--group", "plan/a/b", "--", "true"])?
        .expect_one_line(125, "plan/a is closed")?;
    let id = start(world, place, &["--group", "plan"], &["true"])?;
    say(world, place, &["wait", &id])?.expect(0)?;
    all_clean(world)
}

/// The leader has exited, others live on: they are in the group all the same.
fn leader_gone(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let script = "setsid sh -c 'trap \"\" TERM; echo up > ready; \
                  while :; do read n < never; done' & exit 0";
    let options = ["--group", "plan", "--on-exit", "wait", "--grace", "100ms"];
    let id = start(world, place, &options, &["sh", "-c", script])?;
    ready.expect("up")?;
    let gone = || {
        let record = record(world, &id).ok();
        let leader = record.and_then(|r| r["leader"]["pid"].as_i64());
        leader.is_none_or(|pid| Process::read(i32::try_from(pid).unwrap_or(0)).is_none())
    };
    ensure!(await_until(SOON, gone), "the leader does not exit");
    let left: Vec<Process> =
        world.survivors().into_iter().filter(|process| process.comm == "sh").collect();
    ensure!(left.len() == 1, "{} are left", left.len());
    say(world, place, &["group", "close", "plan"])?.expect(0)?;
    nobody(world)?;
    let ended = record(world, &id)?;
    ensure!(ended["report"]["proof"] == proof(place), "{ended}");
    ensure!(members(world, "plan").is_empty(), "it is still a member");
    all_clean(world)
}

fn keeper_hung(world: &mut World, place: Place) -> Outcome {
    around_a_keeper(world, place, "close")
}

fn keeper_hung_stop(world: &mut World, place: Place) -> Outcome {
    around_a_keeper(world, place, "stop")
}

fn around_a_keeper(world: &mut World, place: Place, verb: &str) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let hung = start(world, place, &["--group", "plan/a"], &["sh", "-c", QUIET])?;
    let fine = start(world, place, &["--group", "plan/b"], &["sh", "-c", QUIET])?;
    freeze(&who(world, &hung)?)?;
    let said = say(world, place, &["group", verb, "plan"])?;
    nobody(world)?;
    said.expect(0)?;
    let told = format!("{hung}: the keeper does not answer");
    ensure!(said.err.contains(&told), "how it went around the keeper is not said: {:?}", said.err);
    ensure!(!said.err.contains(&fine), "it went around a keeper that does not hang: {}", said.err);
    ensure!(live_ids(world).is_empty(), "listed: {:?}", live_ids(world));
    let reason = if verb == "close" { "group-closed" } else { "stopped" };
    expect_over(world, &fine, reason, proof(place))?;
    all_clean(world)
}

fn lost_member(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &["--group", "plan"], &["sh", "-c", QUIET])?;
    let found = who(world, &id)?;
    behead(&found)?;
    ensure!(alive(&found.leader), "the leader died with its keeper");
    say(world, place, &["group", "close", "plan"])?.expect(0)?;
    nobody(world)?;
    expect_over(world, &id, "keeper-died", swept_proof(place))?;
    ensure!(members(world, "plan").is_empty(), "it is still a member");
    all_clean(world)
}

/// What is refused is not born, and leaves nothing: no record, no file, no cgroup.
fn refused(world: &mut World, place: Place) -> Outcome {
    say(world, place, &["group", "close", "plan"])?.expect(0)?;
    let cage = place.cage.to_string();
    for group in ["plan", "plan/below"] {
        for verb in ["start", "run"] {
            let script = ": > born";
            let words = [verb, "--cage", &cage, "--group", group, "--", "sh", "-c", script];
            let said = say(world, place, &words)?;
            said.expect_one_line(125, "group plan is closed")?;
            ensure!(said.out.is_empty(), "it printed {:?}", said.out);
            nobody(world)?;
            ensure!(!world.dir().join("born").exists(), "it was born");
            ensure!(run_ids(world).is_empty(), "there is a record: {:?}", run_ids(world));
            ensure!(live_ids(world).is_empty(), "it is listed");
            ensure!(members(world, group).is_empty(), "it is a member");
            crate::kit::no_cgroup(world)?;
        }
    }
    all_clean(world)
}

/// The next generation joins as the first one did: or not.
fn restart_closed(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &["--group", "plan"], &["sh", "-c", QUIET])?;
    who(world, &id)?;
    say(world, place, &["group", "close", "plan"])?.expect(0)?;
    let said = say(world, place, &["restart", &id])?;
    said.expect_one_line(125, "closed")?;
    nobody(world)?;
    // What it was before it was not restarted can still be told.
    ensure!(dir(world, &id).join("record.json").exists(), "its record is gone");
    expect_over(world, &id, "group-closed", proof(place))?;
    say(world, place, &["show", &id])?.expect(0)?;
    tell(world, place, &["group", "open", "plan"])?;
    tell(world, place, &["restart", &id])?;
    tell(world, place, &["kill", &id])?;
    nobody(world)?;
    all_clean(world)
}

const ROUNDS: usize = 4;
const JOINERS: usize = 5;

/// Real processes that join as fast as they can, while the group is closed.
fn racing(world: &mut World, place: Place) -> Outcome {
    let mut born = Lines::create(world, "born")?;
    let _never = Lines::create(world, "never")?;
    let (mut refused, mut stopped) = (0, 0);
    for round in 0..ROUNDS {
        let group = format!("plan/{round}");
        let script = format!("echo {round} > born; while :; do read n < never; done");
        let mut joiners: Vec<RunningCommand> = Vec::new();
        let mut runs = Vec::new();
        let cage = place.cage.to_string();
        let close_at = round % (JOINERS + 1);
        let mut close = None;
        for n in 0..=JOINERS {
            if n == close_at {
                // By the group itself, or by the one above it.
                let which = if round % 2 == 0 { group.as_str() } else { "plan" };
                close = Some(ask(world, place, &["group", "close", which])?);
            }
            let words = ["start", "--cage", &cage, "--group", &group, "--", "sh", "-c", &script];
            joiners.push(ask(world, place, &words)?);
            let launch = Launch::new(place).options(&["--group", &group]).without_report();
            runs.push(launch.start(world, &["sh", "-c", &script])?);
        }
        let closed = close.context("nobody closed it")?.hear(world, seconds(20))?;
        // From this instant nobody in it lives, and none starts: who is here now was
        // born before, and is on its way out or was never born.
        let shells: Vec<String> = world
            .survivors()
            .iter()
            .filter(|process| process.comm == "sh" && process.command.contains("born"))
            .map(ToString::to_string)
            .collect();
        ensure!(shells.is_empty(), "round {round}: alive after close:\n{}", shells.join("\n"));
        closed.expect(0)?;
        for joiner in joiners {
            let said = joiner.hear(world, seconds(10))?;
            match said.ended {
                Ended::Code(0) => stopped += 1,
                _ => {
                    said.expect_one_line(125, "closed").or_else(|why| {
                        // It was stopped before it could be said that it runs.
                        if said.err.lines().count() == 1 { Ok(()) } else { Err(why) }
                    })?;
                    refused += 1;
                }
            }
        }
        for run in runs {
            let ended = world.wait(&run.spawned, seconds(10))?;
            ensure!(ended != Ended::Code(0), "a run in a closed group ended with {ended}");
        }
        nobody(world).context(format!("round {round}"))?;
        ensure!(
            members(world, &group).is_empty(),
            "members are left: {:?}",
            members(world, &group)
        );
        ensure!(live_ids(world).is_empty(), "listed: {:?}", live_ids(world));
        while born.next(Duration::ZERO).is_ok() {}
        if round % 2 == 1 {
            tell(world, place, &["group", "open", "plan"])?;
        }
    }
    world.note(format!("{stopped} were stopped, {refused} refused"));
    ensure!(refused > 0, "nobody came too late: nothing was tried");
    for id in run_ids(world) {
        let ended = record(world, &id)?;
        ensure!(ended["state"] == "ended", "{id} is {}", ended["state"]);
    }
    all_clean(world)
}
