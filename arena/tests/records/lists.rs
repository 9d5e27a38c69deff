//! What it costs to list runs and to find one, in bytes read and in system calls: what is
//! shown is paid for, and nothing else.

use std::fs;
use std::path::PathBuf;

use arena::{Context, Ended, Need, Outcome, Registry, World, await_until, ensure, seconds};

use serde_json::Value;

use super::desk::{
    CommandOutput, QUIET, all_clean, ask_program, ask_with, dir, expect_gone, live_ids, nobody,
    read_json, record, run_ids, say, start, tell, who,
};
use crate::kit::{ANYWHERE, EVERYWHERE, Lines, Place, SOON, add, text};

pub fn register(registry: &mut Registry) {
    let strace = [Need::Program("strace")];
    for (name, play) in [
        ("ps-reads-no-environment", listing as fn(&mut World, Place) -> Outcome),
        ("finding-reads-no-history", finding),
        ("looking-reads-no-history", looking),
        ("finding-reads-one-record", finding_one),
        ("foreign-processes", foreign),
    ] {
        add(registry, &format!("lists::{name}"), &ANYWHERE, &strace, play);
    }
    add(registry, "lists::restart-cut-short", &EVERYWHERE, &strace, cut_short);
}

/// What a command has asked of the kernel.
#[derive(Debug)]
struct Cost {
    said: CommandOutput,
    /// All its system calls.
    calls: usize,
    /// Those about files of the state directory.
    looks: usize,
    /// What it has read of them.
    bytes: usize,
}

/// Gives a command, and counts what it looks at in the state directory.
fn count(world: &mut World, place: Place, words: &[&str]) -> Outcome<Cost> {
    let (program, log) = (text(world.fullstop()), world.out().join("counted"));
    let asked = ask_program(world, place, "strace", words, |command| {
        command.args(["-f", "-qqq", "-y", "-o", &text(&log)]);
        command.arg(program).args(words);
    })?;
    let said = asked.hear(world, seconds(60))?;
    let trace = fs::read(&log).context("calls")?;
    let trace = String::from_utf8_lossy(&trace);
    let state = text(world.state());
    // A directory is listed, a few hundred entries a call.
    let is_look = |line: &&str| line.contains(&state) && !line.contains(" getdents");
    let looks: Vec<&str> = trace.lines().filter(is_look).collect();
    let read = |line: &&str| {
        let is_read = line.contains(" read(") || line.contains(" pread64(");
        let length = line.rsplit_once("= ").and_then(|(_, length)| length.parse::<usize>().ok());
        length.filter(|_| is_read).unwrap_or(0)
    };
    let bytes = looks.iter().map(read).sum();
    Ok(Cost { said, calls: trace.lines().count(), looks: looks.len(), bytes })
}

/// So many more runs, each with 100 KB of environment; returns what it costs to list all.
fn list_more(world: &mut World, place: Place, more: usize) -> Outcome<Cost> {
    let cage = place.cage.to_string();
    let words = ["start", "--cage", &cage, "--", "sh", "-c", QUIET];
    for _ in 0..more {
        let asked = ask_with(world, place, &words, |command| {
            command.env("LARGE", "x".repeat(100_000));
        })?;
        let said = asked.hear(world, seconds(20))?;
        said.expect(0)?;
        who(world, said.out.trim_end())?;
    }
    let cost = count(world, place, &["ps", "--json"])?;
    cost.said.expect(0)?;
    let listed = cost.said.json()?;
    let listed = listed.as_array().context("no list")?;
    ensure!(listed.len() == live_ids(world).len(), "{} runs are listed", listed.len());
    ensure!(listed.iter().all(|run| run["state"] == "running"), "not all of them run");
    Ok(cost)
}

/// `ps` reads the records, not the environments, which it does not show; and it asks the
/// kernel about each run once.
fn listing(world: &mut World, place: Place) -> Outcome {
    const MORE: usize = 10;
    /// Of the lock, of the record, of the keeper, of the leader, and who their children are.
    const CALLS: usize = 25;
    let _never = Lines::create(world, "never")?;
    let few = list_more(world, place, MORE)?;
    let many = list_more(world, place, MORE)?;
    ensure!(many.bytes > 0 && many.bytes < 2 * MORE * 4096, "ps has read {} bytes", many.bytes);
    let calls = many.calls.saturating_sub(few.calls) / MORE;
    ensure!(calls <= CALLS, "{calls} calls for each run: {} and {}", few.calls, many.calls);
    say(world, place, &["kill", "--all"])?.expect(0)?;
    nobody(world)?;
    all_clean(world)
}

/// A restart that is killed at any of the calls by which it becomes the next generation.
/// What is left is the record of one generation with the spec of the same one, and it can
/// be restarted.
fn cut_short(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let program = text(world.fullstop());
    let cuts = ["linkat:1", "linkat:2", "linkat:3", "renameat:1", "renameat:2", "renameat:3"];
    for cut in cuts {
        let (call, time) = cut.split_once(':').context("a cut")?;
        let before = who(world, &id)?;
        let generation = record(world, &id)?["generation"].as_u64().context("a generation")?;
        let asked = ask_program(world, place, "strace", &["restart"], |command| {
            let fault = format!("inject={call}:signal=KILL:when={time}");
            command.args(["-f", "-qqq", "-o", "/dev/null", "-e", &fault]);
            command.args([&program, "restart", &id]);
        })?;
        let said = asked.hear(world, seconds(30))?;
        // The last one is of a keeper that has told of the birth already.
        ensure!(cut == "renameat:3" || said.ended != Ended::Code(0), "{cut}: nobody was killed");
        expect_gone(&before.leader, SOON)?;
        // A keeper that outlives its guard, or a guard its keeper, ends the run.
        let settled = || {
            let _ = say(world, place, &["sweep"]);
            live_ids(world).is_empty() && world.expect_extinct(SOON).is_ok()
        };
        ensure!(await_until(SOON, settled), "{cut}: it is not settled");
        let (record, spec) = (record(world, &id)?, read_json(&spec_path(world, &id))?);
        let now = record["generation"].as_u64().context("a generation")?;
        ensure!(spec["generation"] == now, "{cut}: spec {} with {now}", spec["generation"]);
        ensure!(now == generation || now == generation + 1, "{cut}: {generation}, then {now}");
        ensure!(!record["report"].is_null(), "{cut}: no report in {record}");
        let left = super::desk::names(&dir(world, &id));
        let odd = left.iter().find(|name| name.contains(".json."));
        ensure!(odd.is_none(), "{cut}: it has left {left:?}");
        tell(world, place, &["restart", &id])?;
        let again = super::desk::record(world, &id)?["generation"].as_u64();
        ensure!(again == Some(now + 1), "{cut}: {again:?} after {now}");
    }
    tell(world, place, &["stop", &id])?;
    all_clean(world)
}

fn spec_path(world: &World, id: &str) -> PathBuf {
    dir(world, id).join("spec.json")
}

/// The history of a directory, made of copies of one run that has ended: so many of them,
/// each with a name of its own.
struct History {
    spec: Value,
    record: Value,
    length: usize,
}

impl History {
    fn begin(world: &mut World, place: Place) -> Outcome<Self> {
        let cage = place.cage.to_string();
        let words = ["run", "--cage", &cage, "--name", "ended-0", "--", "true"];
        let asked = ask_with(world, place, &words, |command| {
            command.env("LARGE", "x".repeat(10_000));
        })?;
        asked.hear(world, seconds(20))?.expect(0)?;
        let live = live_ids(world);
        let ended = run_ids(world).into_iter().find(|id| !live.contains(id));
        let id = ended.context("no run has ended")?;
        let (spec, record) = (read_json(&spec_path(world, &id))?, record(world, &id)?);
        Ok(Self { spec, record, length: 1 })
    }

    /// They sort behind the one that they are copies of, and before any live one.
    fn id(&self, number: usize) -> Outcome<String> {
        let first = self.record["id"].as_str().context("an id")?;
        Ok(if number == 0 { first.to_owned() } else { format!("0000000{number:05}0") })
    }

    fn grow_to(&mut self, world: &World, length: usize) -> Outcome {
        for number in self.length..length {
            let (id, name) = (self.id(number)?, format!("ended-{number}"));
            let run = dir(world, &id);
            fs::create_dir(&run).context("a run")?;
            for (file, value) in [("spec.json", &mut self.spec), ("record.json", &mut self.record)]
            {
                let mut value = value.clone();
                value["id"] = id.as_str().into();
                let named = if file == "spec.json" { &mut value["spec"] } else { &mut value };
                named["name"] = name.as_str().into();
                fs::write(run.join(file), format!("{value}\n")).context(file)?;
            }
        }
        self.length = length;
        // They were written by nobody who keeps an index.
        let names = world.state().join("names");
        if names.exists() { fs::remove_dir_all(names).context("names") } else { Ok(()) }
    }
}

/// What commands cost with a short history and with a long one.
fn with_histories(
    world: &mut World,
    place: Place,
    commands: &[(i32, Vec<String>)],
    bound: usize,
) -> Outcome {
    let mut history = History::begin(world, place)?;
    let mut short: Vec<Cost> = Vec::new();
    for length in [50, 500] {
        history.grow_to(world, length)?;
        // The index is made once, by whoever looks for a name first.
        say(world, place, &["show", "ended-1"])?.expect(0)?;
        for (number, (status, words)) in commands.iter().enumerate() {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let cost = count(world, place, &words)?;
            cost.said.expect(*status).context(words.join(" "))?;
            let Some(before) = short.get(number).filter(|_| length == 500) else {
                ensure!(cost.bytes < bound, "{words:?} reads {} bytes", cost.bytes);
                short.push(cost);
                continue;
            };
            let how = format!("{} looks, {} bytes", cost.looks, cost.bytes);
            let was = format!("{} looks, {} bytes", before.looks, before.bytes);
            ensure!(cost.looks <= before.looks + 10, "{words:?}: {was}, then {how}");
            ensure!(cost.bytes <= before.bytes + 1000, "{words:?}: {was}, then {how}");
        }
    }
    Ok(())
}

fn words(status: i32, words: &[&str]) -> (i32, Vec<String>) {
    (status, words.iter().map(|&word| word.to_owned()).collect())
}

/// A word costs what it means: by name, by the beginning of an id, or nothing at all.
fn finding(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let live = start(world, place, &["--name", "living"], &["sh", "-c", QUIET])?;
    who(world, &live)?;
    let commands = [
        words(125, &["wait", "nobody-of-that-name"]),
        words(125, &["wait", "research"]),
        words(0, &["wait", "ended-7"]),
        words(0, &["wait", "000000000007"]),
        words(0, &["tree", "living"]),
        words(0, &["tree", &live[..12]]),
    ];
    with_histories(world, place, &commands, 30_000)?;
    tell(world, place, &["stop", "living"])?;
    nobody(world)
}

/// A live run that is in the index is found without the records of the others that live. Before
/// one that is over is taken they are read: each may be the live run of that name.
fn finding_one(world: &mut World, place: Place) -> Outcome {
    const MORE: usize = 10;
    let _never = Lines::create(world, "never")?;
    let cage = place.cage.to_string();
    tell(world, place, &["run", "--cage", &cage, "--name", "over", "--", "true"])?;
    let live = start(world, place, &["--name", "living"], &["sh", "-c", QUIET])?;
    who(world, &live)?;
    let mut read = Vec::new();
    for _ in 0..2 {
        let named = count(world, place, &["tree", "living"])?;
        let over = count(world, place, &["wait", "over"])?;
        named.said.expect(0)?;
        over.said.expect(0)?;
        read.push((named.bytes, over.bytes));
        for _ in 0..MORE {
            let id = start(world, place, &[], &["sh", "-c", QUIET])?;
            who(world, &id)?;
        }
    }
    let [(few, few_over), (many, many_over)] = read[..] else { return Ok(()) };
    ensure!(many <= few + 100, "{few} bytes are read, and {many} among {MORE} more");
    ensure!(many_over > few_over, "{few_over} bytes are read, and {many_over}: nobody was asked");
    say(world, place, &["kill", "--all"])?.expect(0)?;
    nobody(world)?;
    all_clean(world)
}

/// `ps` and `doctor` read the unfinished runs.
fn looking(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let live = start(world, place, &[], &["sh", "-c", QUIET])?;
    who(world, &live)?;
    let commands = [words(0, &["ps"]), words(0, &["doctor"])];
    with_histories(world, place, &commands, 30_000)?;
    let counted = tell(world, place, &["doctor"])?;
    ensure!(counted.contains("501 written down, 1 unfinished"), "it says {counted}");
    tell(world, place, &["stop", &live])?;
    nobody(world)
}

/// A look behind the list costs one call for each process that founded no session.
fn foreign(world: &mut World, place: Place) -> Outcome {
    const MANY: usize = 300;
    const CROWD: &str = "while [ $n -gt 0 ]; do sh -c 'read n < never' & n=$((n - 1)); done; \
                         echo up > ready; read n < never";
    /// The pages in which /proc is listed, and what is a matter of time.
    const NOISE: usize = 60;
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    for words in [&["sweep", "--dry-run"][..], &["sweep"]] {
        let mut calls = Vec::new();
        for beside in [0, MANY] {
            let id = start(world, place, &[], &["sh", "-c", &format!("n={beside}; {CROWD}")])?;
            ready.expect("up")?;
            calls.push(count(world, place, words)?.calls);
            tell(world, place, &["kill", &id])?;
        }
        world.note(format!("{words:?}: {calls:?} calls beside 0 and {MANY} processes"));
        let more = calls[1].saturating_sub(calls[0]);
        ensure!(more <= MANY + NOISE, "{words:?}: {more} calls for {MANY} processes");
    }
    all_clean(world)
}
