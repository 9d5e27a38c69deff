//! `restart`, `rm` and `prune`: what comes after the end.

use std::fs;
use std::time::Duration;

use arena::{Context, Outcome, Process, Registry, World, await_until, ensure, seconds};
use serde_json::{Value, json};

use super::desk::{
    QUIET, alive, all_clean, ask, dir, expect_over, nobody, proof, read_json, record, run_ids, say,
    start, tell, who,
};
use super::wire::Client;
use crate::kit::{EVERYWHERE, Lines, Place, SOON, add, text};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("restart", restart as fn(&mut World, Place) -> Outcome),
        ("restart-of-the-ended", restart_ended),
        ("restart-without-its-caller", restart_in_front),
        ("restart-waits-for-the-proof", restart_proven),
        ("an-old-order-misses", old_order),
        ("two-restarts", two_restarts),
        ("rm", rm),
        ("prune", prune),
    ] {
        add(registry, &format!("again::{name}"), &EVERYWHERE, &[], play);
    }
}

/// The id stays, the generation rises, and all is as it was.
fn restart(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    fs::create_dir(world.dir().join("there")).context("directory")?;
    let script = "echo $PWD $COLOUR $0 $1 > ../ready; while :; do read n < ../never; done";
    let id = start(
        world,
        place,
        &[
            &["--cwd", "there", "--env", "COLOUR=blue", "--name", "phoenix", "--group", "plan"][..],
            &["--label", "app=arena", "--report", "report.json", "--log-max", "1MB"],
            &["--timeout", "10m", "--ladder", "term@tree:20s,kill", "--stdin", "pipe"],
        ]
        .concat(),
        &["sh", "-c", script, "zero", "one two"],
    )?;
    let first = ready.next(SOON)?;
    ensure!(first.ends_with("/there blue zero one two"), "it said {first:?}");
    let mut leaders = vec![who(world, &id)?.leader];
    let asked = read_json(&dir(world, &id).join("spec.json"))?["spec"].take();
    for generation in 2..=4 {
        let said = tell(world, place, &["restart", "phoenix"])?;
        ensure!(said == format!("{id} generation {generation}\n"), "it said {said:?}");
        ensure!(leaders.iter().all(|old| !alive(old)), "an old generation lives");
        ensure!(ready.next(SOON)? == first, "generation {generation} began otherwise");
        let now = who(world, &id)?;
        ensure!(record(world, &id)?["generation"] == generation, "the record is another's");
        let spec = read_json(&dir(world, &id).join("spec.json"))?;
        ensure!(spec["generation"] == generation, "{spec}");
        ensure!(spec["spec"] == asked, "the spec is\n{}\nand was\n{asked}", spec["spec"]);
        leaders.push(now.leader);
    }
    ensure!(run_ids(world) == [id.clone()], "there are others: {:?}", run_ids(world));
    let listed = tell(world, place, &["ps", "-q", "--group", "plan"])?;
    ensure!(listed == format!("{id}\n"), "the group holds {listed:?}");
    // The one before it ended in order, and that is written down.
    let events = tell(world, place, &["events", "--json", &id])?;
    let of = |generation: u64| -> Vec<String> {
        let all = events.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        all.filter(|event| event["generation"] == generation)
            .filter_map(|event| event["type"].as_str().map(str::to_owned))
            .collect()
    };
    for generation in 1..=3 {
        let told = of(generation);
        ensure!(told.first().is_some_and(|word| word == "started"), "{generation}: {told:?}");
        ensure!(told.last().is_some_and(|word| word == "ended"), "{generation}: {told:?}");
    }
    tell(world, place, &["stop", &id])?;
    nobody(world)?;
    expect_over(world, &id, "stopped", proof(place))?;
    let report = read_json(&world.dir().join("report.json"))?;
    ensure!(report["generation"] == 4, "the report is {report}");
    all_clean(world)
}

fn restart_ended(world: &mut World, place: Place) -> Outcome {
    let id = start(world, place, &[], &["sh", "-c", "echo said; exit 6"])?;
    say(world, place, &["wait", &id])?.expect(6)?;
    tell(world, place, &["restart", &id])?;
    say(world, place, &["wait", &id])?.expect(6)?;
    let out = fs::read_to_string(dir(world, &id).join("out.log")).context("log")?;
    ensure!(out == "said\nsaid\n", "the log is {out:?}");
    ensure!(record(world, &id)?["report"]["generation"] == 2, "{}", record(world, &id)?);
    say(world, place, &["restart", "no-such"])?.expect_one_line(125, "no-such")?;
    all_clean(world)
}

/// The new leader looks for the old ones itself, first of all it does.
fn restart_proven(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    // Deaf, in a session of its own, and known by its pid in a file.
    let script = "for p in $(cat old 2>/dev/null); do \
                    if [ -d /proc/$p ] && ! grep -q '^State:.Z' /proc/$p/status; \
                    then echo \"met $p\" > ready; fi; done; \
                  trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ >> new; echo up > ready; \
                    while :; do read n < never; done' & \
                  echo $$ >> new; while :; do read n < never; done";
    let ladder = ["--ladder", "term@tree:100ms,kill"];
    let id = start(world, place, &ladder, &["sh", "-c", script])?;
    ready.expect("up")?;
    for _ in 0..3 {
        // What was new is old now; renamed as root, whoever wrote it.
        fs::rename(world.dir().join("new"), world.dir().join("old")).context("rename")?;
        tell(world, place, &["restart", &id])?;
        ready.expect("up")?;
    }
    tell(world, place, &["kill", &id])?;
    ensure!(ready.next(Duration::ZERO).is_err(), "a new leader has met an old one");
    nobody(world)?;
    all_clean(world)
}

/// What has its caller's stdin or stdout is not started again with others in their place.
fn restart_in_front(world: &mut World, place: Place) -> Outcome {
    let cage = place.cage.to_string();
    for options in [&[][..], &["--log"]] {
        let words = [&["run", "--cage", &cage][..], options, &["--", "true"]].concat();
        tell(world, place, &words)?;
    }
    for id in run_ids(world) {
        let said = say(world, place, &["restart", &id])?;
        said.expect_one_line(125, "without its caller")?;
        ensure!(record(world, &id)?["generation"] == 1, "it has begun another generation");
    }
    all_clean(world)
}

/// An order that names generation 1 is refused by generation 2, whatever it is.
fn old_order(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    who(world, &id)?;
    tell(world, place, &["restart", &id])?;
    let now = who(world, &id)?;
    for order in [
        json!({"id": 7, "type": "stop", "generation": 1}),
        json!({"id": 7, "type": "kill", "generation": 1}),
        json!({"id": 7, "type": "signal", "generation": 1, "signal": "kill"}),
        json!({"id": 7, "type": "signal", "generation": 1, "signal": "term"}),
    ] {
        let answer = Client::connect(world, &id)?.ask(&order)?;
        ensure!(answer["code"] == "superseded", "{order} was answered with {answer}");
        ensure!(answer["id"] == 7, "{order} was answered with {answer}");
    }
    ensure!(alive(&now.leader) && alive(&now.keeper), "an old order hit the new generation");
    ensure!(record(world, &id)?["state"] == "running", "{}", record(world, &id)?);
    // An order that is under way when its run is restarted never hits the next one.
    let stops: Vec<_> =
        (0..3).map(|_| ask(world, place, &["stop", &id])).collect::<Outcome<_>>()?;
    let restarted = ask(world, place, &["restart", &id])?;
    for stop in stops {
        // Who looked before the restart meant generation 2, and got it; who looked
        // after it meant generation 3.
        stop.hear(world, seconds(10))?;
    }
    restarted.hear(world, seconds(10))?;
    say(world, place, &["kill", &id])?.expect(0)?;
    nobody(world)?;
    all_clean(world)
}

/// Two at once: there is one generation in the end, with one leader.
fn two_restarts(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let script = "echo up > ready; while :; do read n < never; done";
    let id = start(world, place, &[], &["sh", "-c", script])?;
    ready.expect("up")?;
    let both: Vec<_> =
        (0..2).map(|_| ask(world, place, &["restart", &id])).collect::<Outcome<_>>()?;
    let mut done = 0;
    for asked in both {
        let said = asked.hear(world, seconds(15))?;
        if said.ended == arena::Ended::Code(0) {
            done += 1;
        } else {
            ensure!(said.err.lines().count() == 1, "it said {:?}", said.err);
        }
    }
    ensure!(done >= 1, "nobody restarted it");
    let leaders =
        || -> Vec<Process> { world.survivors().into_iter().filter(|p| p.comm == "sh").collect() };
    ensure!(await_until(SOON, || leaders().len() == 1), "{} leaders", leaders().len());
    tell(world, place, &["stop", &id])?;
    nobody(world)?;
    all_clean(world)
}

fn rm(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let leader = who(world, &id)?.leader;
    let said = say(world, place, &["rm", &id])?;
    said.expect_one_line(125, "live")?;
    ensure!(alive(&leader), "it was killed by being forgotten");
    ensure!(record(world, &id).is_ok(), "its record is gone");
    tell(world, place, &["stop", &id])?;
    tell(world, place, &["rm", &id])?;
    ensure!(run_ids(world).is_empty(), "it is still there: {:?}", run_ids(world));
    for verb in ["rm", "show", "stop", "wait"] {
        say(world, place, &[verb, &id])?.expect_one_line(125, &id)?;
    }
    all_clean(world)
}

fn prune(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let mut over = Vec::new();
    for _ in 0..5 {
        let id = start(world, place, &["--group", "plan"], &["true"])?;
        say(world, place, &["wait", &id])?.expect(0)?;
        over.push(id);
        // Ids of one instant are sorted by chance; these are to be in order.
        let tick = |id: &String| id[..7].to_owned();
        let last = over.last().map(tick);
        let next = || {
            let probe = world.dir().join("clock");
            fs::write(&probe, text(&probe)).is_ok() && last.as_deref() < Some(&now_letters())
        };
        ensure!(await_until(SOON, next), "the clock stands still");
    }
    // An hour ago, as far as anybody can tell.
    let old = std::time::SystemTime::now() - seconds(3600);
    for id in &over[..3] {
        let record = fs::File::options().write(true).open(dir(world, id).join("record.json"));
        record.and_then(|record| record.set_modified(old)).context("age")?;
    }
    let live = start(world, place, &["--group", "plan"], &["sh", "-c", QUIET])?;
    let leader = who(world, &live)?.leader;
    let prune = |world: &mut World, options: &[&str]| -> Outcome<Value> {
        let said = say(world, place, &[&["prune", "--json"], options].concat())?;
        said.expect(0)?;
        said.json()
    };
    let gone = prune(world, &["--older", "30m", "--dry-run"])?;
    ensure!(gone["removed"] == Value::from(over[..3].to_vec()), "it would remove {gone}");
    ensure!(run_ids(world).len() == 6, "something was removed in a dry run");
    let gone = prune(world, &["--older", "30m", "--keep", "3"])?;
    ensure!(gone["removed"] == Value::from(over[..2].to_vec()), "it removed {gone}");
    let gone = prune(world, &["--keep", "1"])?;
    ensure!(gone["removed"] == Value::from(over[2..4].to_vec()), "it removed {gone}");
    let gone = prune(world, &[])?;
    ensure!(gone["removed"] == Value::from(over[4..].to_vec()), "it removed {gone}");
    ensure!(run_ids(world) == [live.clone()], "left are {:?}", run_ids(world));
    ensure!(alive(&leader), "it was killed by a prune");
    ensure!(world.state().join("groups/plan").exists(), "a group with a member was removed");
    tell(world, place, &["kill", &live])?;
    prune(world, &[])?;
    ensure!(run_ids(world).is_empty(), "left are {:?}", run_ids(world));
    ensure!(!world.state().join("groups/plan").exists(), "an empty group is left");
    all_clean(world)
}

/// The time as ids have it: 32 ticks a second since 2026.
fn now_letters() -> String {
    const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let ticks = (now.unwrap_or_default().as_millis() - 1_767_225_600_000) * 32 / 1000;
    let letter = |place: u32| char::from(LETTERS[(ticks >> (5 * place)) as usize & 31]);
    (0..7).rev().map(letter).collect()
}
