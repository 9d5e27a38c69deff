//! `stop`, `kill`, `wait` and `signal`: what returns has happened.

use std::fs;
use std::time::Duration;

use arena::{Context, Ended, Outcome, Registry, World, await_until, ensure, millis, seconds};

use super::desk::{
    QUIET, alive, all_clean, ask, cgroup_procs, expect_over, nobody, proof, record, say, start,
    tell, who,
};
use crate::kit::{EVERYWHERE, Lines, Place, SOON, add};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("returns-when-nobody-lives", returns as fn(&mut World, Place) -> Outcome),
        ("two-at-once", two_at_once),
        ("kill-overtakes", kill_overtakes),
        ("what-has-ended", has_ended),
        ("many-side-by-side", many),
        ("each-as-it-ends", each_as_it_ends),
        ("no-wait", no_wait),
        ("wait", wait),
        ("wait-timeout", wait_timeout),
        ("signal", signal),
        ("a-run-in-front", in_front),
    ] {
        add(registry, &format!("stop::{name}"), &EVERYWHERE, &[], play);
    }
}

/// A leader that is deaf to a polite word, and somebody in another session.
const DEAF: &str = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo up > ready; \
                    while :; do read n < never; done' & while :; do read n < never; done";

fn returns(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    for (verb, reason, within) in [("stop", "stopped", 2), ("kill", "killed", 1)] {
        let ladder = ["--ladder", "term@leader:200ms,term@tree:200ms,kill"];
        let id = start(world, place, &ladder, &["sh", "-c", DEAF])?;
        ready.expect("up")?;
        let said = say(world, place, &[verb, &id])?;
        // Nobody is alive at this instant, keeper and guard included.
        nobody(world)?;
        ensure!(cgroup_procs(world, &id).is_empty(), "the cgroup is not empty");
        said.expect(0)?;
        let line = format!("{id} ended: {reason}, {}\n", proof(place));
        ensure!(said.out == line, "it said {:?}", said.out);
        ensure!(said.took.within(seconds(within)), "it took {:?}", said.took);
        expect_over(world, &id, reason, proof(place))?;
    }
    // The same in JSON, and quietly.
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let said = say(world, place, &["stop", "--json", &id])?;
    let report = said.json()?;
    ensure!(report["proof"] == proof(place) && report["id"] == id.as_str(), "it said {report}");
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let said = say(world, place, &["stop", "-q", &id])?;
    ensure!(said.out.is_empty() && said.err.is_empty(), "quietly: {said:?}");
    nobody(world)?;
    all_clean(world)
}

/// The second joins the first; both tell the same truth.
fn two_at_once(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let id = start(world, place, &["--ladder", "term@leader:400ms,kill"], &["sh", "-c", DEAF])?;
    ready.expect("up")?;
    let all: Vec<_> =
        (0..4).map(|_| ask(world, place, &["stop", "--json", &id])).collect::<Outcome<_>>()?;
    for asked in all {
        let said = asked.hear(world, SOON)?;
        said.expect(0)?;
        let report = said.json()?;
        ensure!(report["reason"] == "stopped", "it said {report}");
        let steps = report["steps"].as_array().map(Vec::len);
        ensure!(steps == Some(2), "a second stop began anew: {}", report["steps"]);
    }
    nobody(world)?;
    all_clean(world)
}

/// A kill does not wait for the patience of a stop; the first reason stays.
fn kill_overtakes(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let id = start(world, place, &["--ladder", "term@leader:30s,kill"], &["sh", "-c", DEAF])?;
    ready.expect("up")?;
    let stop = ask(world, place, &["stop", &id])?;
    let stopping = || record(world, &id).is_ok_and(|r| r["state"] == "stopping");
    ensure!(await_until(SOON, stopping), "nobody wrote down that it is being stopped");
    let listed = say(world, place, &["ps", "--json"])?.json()?;
    ensure!(listed[0]["state"] == "stopping", "ps says {}", listed[0]["state"]);
    let left = listed[0]["step_left_ms"].as_u64().unwrap_or(0);
    ensure!((20_000..=30_000).contains(&left), "ps says that {left} ms are left");
    let kill = say(world, place, &["kill", &id])?;
    kill.expect(0)?;
    ensure!(kill.took.within(seconds(3)), "the kill took {:?}", kill.took);
    let stop = stop.hear(world, seconds(1))?;
    stop.expect(0)?;
    for said in [&kill.out, &stop.out] {
        ensure!(said.contains("ended: stopped"), "it said {said:?}");
    }
    nobody(world)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// What is over needs no stop, and says how it ended.
fn has_ended(world: &mut World, place: Place) -> Outcome {
    let id = start(world, place, &[], &["sh", "-c", "exit 5"])?;
    say(world, place, &["wait", &id])?.expect(5)?;
    let before = record(world, &id)?;
    for verb in ["stop", "kill"] {
        let said = say(world, place, &[verb, &id])?;
        said.expect(0)?;
        ensure!(said.out.contains("ended: exited"), "it said {:?}", said.out);
    }
    let said = say(world, place, &["stop", "--no-wait", &id])?;
    said.expect(0)?;
    ensure!(said.out.contains("ended: exited"), "it said {:?}", said.out);
    say(world, place, &["signal", "USR1", &id])?.expect_one_line(125, "is ended already")?;
    ensure!(record(world, &id)? == before, "the record has changed");
    // Right at its end: whoever comes first, everybody says the truth.
    for round in 0..10 {
        let id = start(world, place, &[], &["sh", "-c", "exit 0"])?;
        let said = say(world, place, &["stop", &id])?;
        said.expect(0).context(format!("round {round}"))?;
        nobody(world)?;
    }
    all_clean(world)
}

/// As long as the slowest, not as long as all of them.
fn many(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let mut words = vec!["stop".to_owned()];
    for _ in 0..6 {
        let ladder = ["--ladder", "term@tree:1s,kill"];
        words.push(start(world, place, &ladder, &["sh", "-c", DEAF])?);
        ready.expect("up")?;
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let said = say(world, place, &words)?;
    said.expect(0)?;
    nobody(world)?;
    ensure!(said.took.within(seconds(4)), "six stops of a second took {:?}", said.took);
    ensure!(said.out.lines().count() == 6, "it said {:?}", said.out);
    all_clean(world)
}

/// The quick one is shown while the slow one is still asked.
fn each_as_it_ends(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let slow = start(world, place, &["--ladder", "term@leader:30s,kill"], &["sh", "-c", DEAF])?;
    ready.expect("up")?;
    let quick = start(world, place, &[], &["sh", "-c", QUIET])?;
    let leader = who(world, &slow)?.leader;
    let asked = ask(world, place, &["stop", &slow, &quick])?;
    let line = format!("{quick} ended: stopped, {}\n", proof(place));
    ensure!(await_until(SOON, || asked.stdout() == line), "it said {:?}", asked.stdout());
    ensure!(alive(&leader), "the slow one was not slow");
    tell(world, place, &["kill", &slow])?;
    let said = asked.hear(world, SOON)?;
    said.expect(0)?;
    ensure!(said.out.lines().count() == 2, "it said {:?}", said.out);
    nobody(world)?;
    all_clean(world)
}

fn no_wait(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let id = start(world, place, &["--ladder", "term@leader:20s,kill"], &["sh", "-c", DEAF])?;
    ready.expect("up")?;
    let leader = who(world, &id)?.leader;
    let said = say(world, place, &["stop", "--no-wait", &id])?;
    said.expect(0)?;
    ensure!(alive(&leader), "there was nothing to wait for");
    ensure!(said.out == format!("{id} stopping\n"), "it said {:?}", said.out);
    let stopping = || record(world, &id).is_ok_and(|r| r["state"] == "stopping");
    ensure!(await_until(SOON, stopping), "it was not obeyed");
    say(world, place, &["kill", "--no-wait", &id])?.expect(0)?;
    say(world, place, &["wait", &id])?.expect(137)?;
    nobody(world)?;
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// The status is the command's, however it came to it.
fn wait(world: &mut World, place: Place) -> Outcome {
    let (_go, _never) = (Lines::create(world, "go")?, Lines::create(world, "never")?);
    for (script, status) in [
        ("read g < go; exit 0", 0),
        ("read g < go; exit 7", 7),
        ("read g < go; kill -KILL $$", 137),
        ("read g < go; kill -TERM $$", 143),
    ] {
        let id = start(world, place, &[], &["sh", "-c", script])?;
        let waits: Vec<_> =
            (0..2).map(|_| ask(world, place, &["wait", &id])).collect::<Outcome<_>>()?;
        fs::write(world.dir().join("go"), "now\n").context("go")?;
        for asked in waits {
            asked.hear(world, SOON)?.expect(status)?;
            nobody(world)?;
        }
        // Asked again when it is long over.
        let said = say(world, place, &["wait", "--json", &id])?;
        said.expect(status)?;
        ensure!(said.json()?["id"] == id.as_str(), "it said {:?}", said.out);
    }
    let id = start(world, place, &["--timeout", "200ms"], &["sh", "-c", QUIET])?;
    say(world, place, &["wait", &id])?.expect(124)?;
    expect_over(world, &id, "overall-timeout", proof(place))?;
    // One that stops it ends the waiting of another.
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let waiting = ask(world, place, &["wait", &id])?;
    tell(world, place, &["kill", &id])?;
    waiting.hear(world, SOON)?.expect(137)?;
    all_clean(world)
}

/// Whoever only waits gives up; the run goes on.
fn wait_timeout(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let leader = who(world, &id)?.leader;
    let said = say(world, place, &["wait", "--timeout", "200ms", &id])?;
    said.expect_one_line(124, "has not ended after 200ms")?;
    ensure!(said.took >= millis(200), "it took {:?}", said.took);
    ensure!(said.took.within(seconds(3)), "it took {:?}", said.took);
    ensure!(alive(&leader), "the run was ended");
    tell(world, place, &["kill", &id])?;
    all_clean(world)
}

/// To the leader alone, and no part of a stop.
fn signal(world: &mut World, place: Place) -> Outcome {
    let (mut lines, _never) = (Lines::create(world, "lines")?, Lines::create(world, "never")?);
    let script = "trap 'echo leader > lines' USR1; \
                  sh -c 'trap \"echo child > lines\" USR1; echo up > lines; \
                         while :; do read n < never; done' & \
                  while :; do wait; done";
    let id = start(world, place, &[], &["sh", "-c", script])?;
    lines.expect("up")?;
    for name in ["USR1", "SIGUSR1", "usr1"] {
        tell(world, place, &["signal", name, &id])?;
        lines.expect("leader")?;
    }
    // Through the leader it went, and nobody else has one waiting.
    ensure!(record(world, &id)?["state"] == "running", "a signal stopped it");
    tell(world, place, &["kill", &id])?;
    ensure!(lines.next(Duration::ZERO).is_err(), "the child was signalled as well");
    let said = say(world, place, &["signal", "USR1", &id])?;
    world.note(format!("a signal to the dead: {said:?}"));
    say(world, place, &["signal", "NOSUCH", &id])?.expect(125)?;
    all_clean(world)
}

/// A run in front of somebody is stopped like any other.
fn in_front(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let run = crate::kit::Launch::new(place).start(world, &["sh", "-c", QUIET])?;
    let find = || super::desk::live_ids(world).into_iter().next();
    ensure!(await_until(SOON, || find().is_some()), "the run is not listed");
    let id = find().context("it was listed")?;
    who(world, &id)?;
    let said = say(world, place, &["stop", &id])?;
    said.expect(0)?;
    world.expect_extinct(SOON)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Signal(15) || ended == Ended::Code(143), "run ended with {ended}");
    expect_over(world, &id, "stopped", proof(place))?;
    run.expect_ended(place, "stopped")?;
    all_clean(world)
}
