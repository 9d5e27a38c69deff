//! `ps`, `tree`, `show` and `events`: what they tell is what `/proc` tells.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use arena::{
    Context, Outcome, Process, Registry, Signal, World, await_until, ensure, send_signal,
    unix_ms_of,
};
use serde_json::{Value, json};

use super::desk::{
    QUIET, all_clean, ask_with, await_settled, cgroup_procs, dir, expect_over, nobody, proof, say,
    start, tell, who,
};
use crate::kit::{Cage, EVERYWHERE, Lines, Place, SOON, add, keeper};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("ps-is-true", ps as fn(&mut World, Place) -> Outcome),
        ("tree-is-true", tree),
        ("labels", labels),
        ("ps-of-many", many),
        ("secrets-are-masked", secrets),
        ("events-in-order", events),
        ("events-at-once", events_at_once),
        ("nobody-of-that-name", no_such),
    ] {
        add(registry, &format!("look::{name}"), &EVERYWHERE, &[], play);
    }
}

/// The members of a run as the kernel has them: by the cgroup, or below the keeper.
fn members(world: &World, place: Place, id: &str) -> Outcome<Vec<i32>> {
    if place.cage == Cage::Cgroup {
        let mut inside = cgroup_procs(world, id);
        inside.sort_unstable();
        return Ok(inside);
    }
    let keeper = who(world, id)?.keeper.pid;
    let all = Process::all();
    let mut below = vec![keeper];
    let mut next = 0;
    while let Some(&parent) = below.get(next) {
        below.extend(all.iter().filter(|p| p.ppid == parent).map(|p| p.pid));
        next += 1;
    }
    below.remove(0);
    below.sort_unstable();
    Ok(below)
}

const TWO: &str = "setsid sh -c 'echo up > ready; read n < never' & read n < never";

fn ps(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let before = unix_ms();
    let options = ["--name", "two words", "--group", "plan/research"];
    let id = start(world, place, &options, &["sh", "-c", TWO])?;
    ready.expect("up")?;
    let who = who(world, &id)?;
    let members = members(world, place, &id)?;
    ensure!(members.len() == 2, "the kernel sees {members:?}");
    let said = say(world, place, &["ps", "--json"])?;
    said.expect(0)?;
    let all = said.json()?;
    let row = &all[0];
    ensure!(all.as_array().is_some_and(|all| all.len() == 1), "not one run: {all}");
    for (field, value) in [
        ("id", Value::from(id.as_str())),
        ("name", "two words".into()),
        ("group", "plan/research".into()),
        ("generation", 1.into()),
        ("state", "running".into()),
        ("reason", Value::Null),
        ("processes", members.len().into()),
        ("command", vec!["sh", "-c", TWO].into()),
        ("damage", Value::Null),
    ] {
        ensure!(row[field] == value, "{field} is {}, not {value}", row[field]);
    }
    let now = unix_ms();
    let started = row["started_at"].as_str().and_then(unix_ms_of).unwrap_or(0);
    ensure!((before..=now).contains(&started), "started at {started}, not after {before}");
    let age = row["age_ms"].as_u64().unwrap_or(u64::MAX);
    ensure!(age <= now - before, "it is {age} ms old");
    ensure!(row["memory"].as_u64() > Some(10_000), "it has no memory: {}", row["memory"]);
    let table = tell(world, place, &["ps"])?;
    ensure!(table.contains(&id) && table.contains("running"), "the table is {table:?}");
    ensure!(tell(world, place, &["ps", "-q"])? == format!("{id}\n"), "ps -q");
    let of_group = tell(world, place, &["ps", "-q", "--group", "plan"])?;
    ensure!(of_group == format!("{id}\n"), "the group holds {of_group:?}");
    ensure!(tell(world, place, &["ps", "-q", "--group", "pla"])?.is_empty(), "another group");
    // Looking has hurt nobody.
    ensure!(super::desk::alive(&who.leader), "the leader is gone");
    tell(world, place, &["stop", &id])?;
    ensure!(tell(world, place, &["ps", "-q"])?.is_empty(), "one that has ended is listed");
    let said = say(world, place, &["ps", "--all", "--json"])?;
    let row = &said.json()?[0];
    ensure!(row["state"] == "ended" && row["reason"] == "stopped", "it is {row}");
    ensure!(row["processes"] == 0 && row["report"]["proof"] == proof(place), "it is {row}");
    all_clean(world)
}

/// Runs are listed and stopped by their labels, and no other is.
fn labels(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let mut ids = Vec::new();
    for (app, turn) in [("one", "1"), ("one", "2"), ("two", "1")] {
        let (app, turn) = (format!("app={app}"), format!("turn={turn}"));
        let words = ["--label", &app, "--label", &turn];
        ids.push(start(world, place, &words, &["sh", "-c", QUIET])?);
    }
    let whoever = ids.iter().map(|id| who(world, id)).collect::<Outcome<Vec<_>>>()?;
    for (labels, listed) in [
        (&["app=one"][..], &ids[..2]),
        (&["app=one", "turn=2"], &ids[1..2]),
        (&["app=one", "turn=3"], &[]),
        (&["app=on"], &[]),
    ] {
        let words = labels.iter().flat_map(|label| ["--label", label]);
        let words: Vec<&str> = ["ps", "-q"].into_iter().chain(words).collect();
        let told = tell(world, place, &words)?;
        ensure!(told.lines().eq(listed), "{words:?} tells {told:?}, not {listed:?}");
    }
    let rows = say(world, place, &["ps", "--json", "--label", "turn=2"])?.json()?;
    ensure!(rows[0]["labels"] == json!({"app": "one", "turn": "2"}), "it is {}", rows[0]);
    say(world, place, &["stop", "--label", "turn"])?.expect_one_line(125, "KEY=VALUE")?;
    let restarted = tell(world, place, &["restart", "--label", "turn=2"])?;
    ensure!(restarted == format!("{} generation 2\n", ids[1]), "it told {restarted:?}");
    let signalled = tell(world, place, &["signal", "cont", "--json", "--label", "app=one"])?;
    let is_told = |id: &String| signalled.contains(id.as_str());
    ensure!(ids.iter().map(is_told).eq([true, true, false]), "it told {signalled:?}");
    let late = say(world, place, &["wait", "--timeout", "100ms", "--label", "app=two"])?;
    late.expect_one_line(124, &ids[2])?;
    tell(world, place, &["stop", "--label", "app=one"])?;
    let alive: Vec<bool> = whoever.iter().map(|who| super::desk::alive(&who.leader)).collect();
    ensure!(alive == [false, false, true], "alive are {alive:?}");
    tell(world, place, &["kill", "--label", "app=two"])?;
    ensure!(!super::desk::alive(&whoever[2].leader), "it lives");
    all_clean(world)
}

fn tree(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let id = start(world, place, &[], &["sh", "-c", TWO])?;
    ready.expect("up")?;
    who(world, &id)?;
    let members = members(world, place, &id)?;
    let said = say(world, place, &["tree", "--json", &id])?;
    said.expect(0)?;
    let shown = said.json()?;
    let shown = shown.as_array().context("no list")?;
    let mut pids: Vec<i64> = shown.iter().filter_map(|one| one["pid"].as_i64()).collect();
    pids.sort_unstable();
    ensure!(pids == members.iter().map(|&pid| pid.into()).collect::<Vec<i64>>(), "{pids:?}");
    for one in shown {
        let pid = one["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).context("pid")?;
        let real = Process::read(pid).context("it is gone")?;
        ensure!(one["ppid"] == real.ppid, "{pid} is shown below {}", one["ppid"]);
        ensure!(one["command"] == real.command.as_str(), "{pid} is shown as {}", one["command"]);
    }
    let picture = tell(world, place, &["tree", &id])?;
    ensure!(picture.contains("2 alive"), "the picture is {picture:?}");
    for pid in members {
        ensure!(picture.contains(&format!("─ {pid} ")), "{pid} is missing: {picture}");
    }
    tell(world, place, &["kill", &id])?;
    let said = say(world, place, &["tree", "--json", &id])?;
    ensure!(said.json()? == Value::Array(Vec::new()), "the dead are shown: {:?}", said.out);
    all_clean(world)
}

/// Every run there is, each with its own; `--all` with those that have ended.
fn many(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let mut ids = Vec::new();
    for n in 0..5 {
        ids.push(start(world, place, &["--name", &format!("n{n}")], &["sh", "-c", QUIET])?);
    }
    // The order of their birth, but for those of one instant.
    say(world, place, &["stop", "n1", "n3"])?.expect(0)?;
    let listed = |world: &mut World, words: &[&str]| -> Outcome<Vec<String>> {
        Ok(tell(world, place, words)?.lines().map(str::to_owned).collect())
    };
    let live = listed(world, &["ps", "-q"])?;
    let mut left = vec![ids[0].clone(), ids[2].clone(), ids[4].clone()];
    left.sort();
    ensure!(live == left, "live are {live:?}, not {left:?}");
    let mut all = listed(world, &["ps", "-q", "-a"])?;
    all.sort();
    ids.sort();
    ensure!(all == ids, "all are {all:?}");
    say(world, place, &["kill", "--all"])?.expect(0)?;
    nobody(world)?;
    all_clean(world)
}

fn secrets(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let env = [
        ("OPENAI_API_KEY", "hidden-1"),
        ("my_password", "hidden-2"),
        ("GH_TOKEN", "hidden-3"),
        ("DATABASE_URL", "pg://me:hidden-4@host/db"),
        ("EDITOR", "shown-1"),
    ];
    let words = ["start", "--env", "AWS_SECRET=hidden-5", "--", "sh", "-c", QUIET];
    let asked = ask_with(world, place, &words, |command| {
        command.envs(env);
    })?;
    let said = asked.hear(world, arena::seconds(10))?;
    said.expect(0)?;
    let id = said.out.trim_end().to_owned();
    let leader = who(world, &id)?.leader;
    for words in [
        &["show", &id][..],
        &["show", "--json", &id],
        &["ps", "--json"],
        &["events", "--json"],
        &["tree", "--json", &id],
    ] {
        let said = tell(world, place, words)?;
        ensure!(!said.contains("hidden"), "{words:?} tells a secret: {said}");
    }
    let shown = tell(world, place, &["show", &id])?;
    for what in ["shown-1", "OPENAI_API_KEY=", "AWS_SECRET=", "pg://me:", &leader.pid.to_string()] {
        ensure!(shown.contains(what), "{what} is not shown: {shown}");
    }
    let shown = say(world, place, &["show", "--json", &id])?.json()?;
    let env = shown["spec"]["env"].as_array().context("an environment")?;
    ensure!(env.contains(&"EDITOR=shown-1".into()), "it shows {env:?}");
    ensure!(shown["record"]["leader"]["pid"] == leader.pid, "it shows {}", shown["record"]);
    // The command itself has them all.
    let environ = fs::read(format!("/proc/{}/environ", leader.pid)).context("environ")?;
    let environ = String::from_utf8_lossy(&environ);
    for n in 1..=5 {
        ensure!(environ.contains(&format!("hidden-{n}")), "the command has not got secret {n}");
    }
    tell(world, place, &["kill", &id])?;
    let shown =
        tell(world, place, &["show", &id])? + &tell(world, place, &["show", "--json", &id])?;
    ensure!(!shown.contains("hidden"), "a secret is told once it is over: {shown}");
    all_clean(world)
}

fn events(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let script = "trap '' TERM; echo up > ready; while :; do read n < never; done";
    let ladder = ["--ladder", "hup@leader:50ms,term@tree:50ms,kill"];
    let id = start(world, place, &ladder, &["sh", "-c", &format!("trap '' HUP; {script}")])?;
    ready.expect("up")?;
    let leader = who(world, &id)?.leader.pid;
    tell(world, place, &["stop", &id])?;
    let said = tell(world, place, &["events", "--json", &id])?;
    let told: Result<Vec<Value>, _> = said.lines().map(serde_json::from_str).collect();
    let told = told.context(format!("no JSON: {said}"))?;
    let words: Vec<&str> = told.iter().filter_map(|event| event["type"].as_str()).collect();
    ensure!(
        words == ["started", "asked", "step", "step", "step", "ended"],
        "what happened: {words:?}"
    );
    ensure!(told[0]["leader"] == leader, "it began with {}", told[0]);
    let steps: Vec<&str> = told[2..5].iter().filter_map(|event| event["step"].as_str()).collect();
    ensure!(steps.last() == Some(&"kill"), "the steps were {steps:?}");
    ensure!(told[5]["proof"] == proof(place), "it ended with {}", told[5]);
    let asker = &told[1]["asker"];
    ensure!(asker["program"] == "fullstop" && asker["pid"].is_i64(), "it was asked by {asker}");
    let times: Vec<u64> =
        told.iter().filter_map(|event| unix_ms_of(event["at"].as_str()?)).collect();
    ensure!(times.is_sorted() && times.len() == 6, "the times are {times:?}");
    let numbers: Vec<u64> = told.iter().filter_map(|event| event["number"].as_u64()).collect();
    ensure!(numbers == [1, 2, 3, 4, 5, 6], "the numbers are {numbers:?}");
    // Another's events stand between, in the order of time; asked for alone, alone.
    let other = start(world, place, &[], &["true"])?;
    say(world, place, &["wait", &other])?.expect(0)?;
    let all = tell(world, place, &["events"])?;
    ensure!(all.contains(&id) && all.contains(&other), "all of them: {all}");
    let one = tell(world, place, &["events", &other])?;
    ensure!(!one.contains(&id), "one of them: {one}");
    // A torn line, as a full disk leaves it, hides no other.
    let path = dir(world, &other).join("events.jsonl");
    let text = fs::read_to_string(&path).context("events")?;
    fs::write(&path, format!("{{\"at\": 1, \"id\n{text}{{\"at\"")).context("events")?;
    let torn = tell(world, place, &["events", &other])?;
    ensure!(torn == one, "with a torn line: {torn:?} and not {one:?}");
    expect_over(world, &id, "stopped", proof(place))?;
    all_clean(world)
}

/// What happens is told when it happens, also where the state stays the same; and what a
/// guard does in its keeper's place is told as well.
fn events_at_once(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let _go = Lines::create(world, "go")?;
    let script = "sh -c 'echo up > ready; read n < never' & read n < go; exit 3";
    let id = start(world, place, &["--on-exit", "wait"], &["sh", "-c", script])?;
    ready.expect("up")?;
    await_settled(world, &id)?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    let path = dir(world, &id).join("events.jsonl");
    let told = || -> Vec<Value> {
        let text = fs::read_to_string(&path).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    let left = || told().iter().any(|event| event["type"] == "leader-exited");
    ensure!(await_until(SOON, left), "nobody tells that the leader has left: {:?}", told());
    send_signal(keeper(world)?.pid, Signal::KILL)?;
    world.expect_extinct(SOON)?;
    let words: Vec<Value> = told().iter().map(|event| event["type"].clone()).collect();
    ensure!(words == ["started", "leader-exited", "step", "ended"], "what happened: {words:?}");
    expect_over(world, &id, "keeper-died", proof(place))?;
    all_clean(world)
}

/// Ids by prefix and by name; what may mean several means nobody.
fn no_such(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let one = start(world, place, &["--name", "twin"], &["sh", "-c", QUIET])?;
    let two = start(world, place, &["--name", "twin"], &["sh", "-c", QUIET])?;
    let prefix: String =
        one.chars().zip(two.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    ensure!(!prefix.is_empty(), "{one} and {two} share nothing");
    let leaders = [who(world, &one)?.leader, who(world, &two)?.leader];
    for word in ["twin", prefix.as_str()] {
        for words in [
            &["stop", word][..],
            &["kill", word],
            &["signal", "KILL", word],
            &["wait", "--timeout", "1s", word],
            &["rm", word],
            &["restart", word],
            &["show", word],
            &["tree", word],
            &["events", word],
        ] {
            let said = say(world, place, words)?;
            said.expect_one_line(125, "may be")?;
            ensure!(
                said.err.contains(&one) && said.err.contains(&two),
                "{words:?} does not name both: {:?}",
                said.err
            );
        }
    }
    for words in [&["stop", "no-such"][..], &["kill", "zzzz"], &["signal", "TERM", "no-such"]] {
        say(world, place, words)?.expect_one_line(125, words[words.len() - 1])?;
    }
    ensure!(leaders.iter().all(super::desk::alive), "somebody was stopped by no name of theirs");
    // One unknown among the known: the known are stopped, the status says so.
    let unique = &one[..=prefix.len()];
    let said = say(world, place, &["stop", unique, "no-such"])?;
    said.expect_one_line(125, "no-such")?;
    ensure!(!super::desk::alive(&leaders[0]), "a prefix of one run did not stop it");
    ensure!(super::desk::alive(&leaders[1]), "the other was stopped");
    // Now that one has ended, the name means the one that lives.
    tell(world, place, &["stop", "twin"])?;
    nobody(world)?;
    all_clean(world)
}

fn unix_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
