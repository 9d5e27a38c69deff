//! `ps --watch`: the list as it changes, told by the journal and read from the records; and
//! what a journal may never cost a run.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use arena::{
    Context, Need, Outcome, Registry, Signal, Spawned, World, await_until, ensure, seconds,
    send_signal,
};
use serde_json::Value;

use super::desk::{
    QUIET, all_clean, ask, ask_program, await_settled, expect_over, proof, run_ids, say, start,
    tell, who,
};
use super::disk::{fill, small_state};
use super::following::{dismiss, reader_leaves, without_inotify};
use crate::kit::{ANYWHERE, AS_ROOT, Lines, Place, add, text};
use crate::tools::{Collect, LONG, collected, trace};

pub fn register(registry: &mut Registry) {
    let strace = [Need::Program("strace")];
    add(registry, "watch::each-change", &AS_ROOT, &[], each_change);
    add(registry, "watch::some-of-them", &ANYWHERE, &[], some_of_them);
    add(registry, "watch::table", &ANYWHERE, &[], table);
    add(registry, "watch::reader-leaves", &ANYWHERE, &[], |world, place| {
        reader_leaves(world, place, &["ps", "--watch", "--json"])
    });
    add(registry, "watch::without-inotify", &ANYWHERE, &strace, |world, place| {
        without_inotify(world, place, &["ps", "--watch", "--json"])
    });
    add(registry, "watch::wakes-no-keeper", &AS_ROOT, &strace, wakes_no_keeper);
    add(registry, "watch::few-descriptors", &ANYWHERE, &[], few_descriptors);
    add(registry, "watch::journal-is-removed", &ANYWHERE, &[], journal_removed);
    add(registry, "watch::journal-is-torn", &ANYWHERE, &[], journal_torn);
    add(registry, "watch::journal-cannot-be-had", &ANYWHERE, &[], journal_impossible);
    add(registry, "watch::disk-fills-up", &AS_ROOT, &[], disk_fills_up);
    add(registry, "watch::made-by-its-readers", &ANYWHERE, &[], made_by_its_readers);
}

const WATCH: [&str; 3] = ["ps", "--watch", "--json"];

/// Runs that no notice names are looked at every 30 s.
const UNASKED: Duration = seconds(90);

/// What was told so far.
fn changes(seen: &Collect) -> Vec<Value> {
    let text = seen.so_far();
    // A line whose end has not come yet is no JSON.
    let lines =
        String::from_utf8_lossy(&text).lines().map(serde_json::from_str).collect::<Vec<_>>();
    lines.into_iter().flatten().collect()
}

/// How each run stands by what was told, each with its generation.
fn stands(seen: &Collect) -> BTreeMap<String, (String, u64)> {
    let mut runs = BTreeMap::new();
    let mut tell = |run: &Value| {
        let state = run["state"].as_str().unwrap_or_default().to_owned();
        let id = run["id"].as_str().unwrap_or_default().to_owned();
        runs.insert(id, (state, run["generation"].as_u64().unwrap_or_default()));
    };
    for change in changes(seen) {
        match change["type"].as_str() {
            Some("snapshot") => change["runs"].as_array().into_iter().flatten().for_each(&mut tell),
            Some("run") => tell(&change["run"]),
            _ => {
                let id = change["id"].as_str().unwrap_or_default().to_owned();
                tell(&serde_json::json!({"id": id, "state": "removed"}));
            }
        }
    }
    runs
}

fn await_state(seen: &Collect, id: &str, state: &str, generation: u64) -> Outcome {
    let is = || stands(seen).get(id) == Some(&(state.to_owned(), generation));
    ensure!(await_until(LONG, is), "{id} is not told to be {state}: {:?}", stands(seen));
    Ok(())
}

/// A watcher that has shown its snapshot.
fn watcher(world: &mut World, place: Place, words: &[&str]) -> Outcome<(Spawned, Collect)> {
    let (watcher, seen) = collected(world, place, &[&WATCH[..], words].concat())?;
    seen.expect("snapshot")?;
    Ok((watcher, seen))
}

/// Births, steps, ends, next generations, removals, and what a guard does.
fn each_change(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let before = start(world, place, &[], &["sh", "-c", QUIET])?;
    let (watcher, seen) = watcher(world, place, &[])?;
    await_state(&seen, &before, "running", 1)?;
    let short = start(world, place, &[], &["true"])?;
    await_state(&seen, &short, "ended", 1)?;
    let deaf = "trap '' TERM; echo up > ready; while :; do read n < never; done";
    let ladder = ["--ladder", "term@leader:60s,kill"];
    let slow = start(world, place, &ladder, &["sh", "-c", deaf])?;
    ready.expect("up")?;
    tell(world, place, &["stop", "--no-wait", &slow])?;
    await_state(&seen, &slow, "stopping", 1)?;
    let told = changes(&seen);
    let step = told.iter().rfind(|change| change["run"]["id"] == slow.as_str());
    let step = &step.context("it was told")?["run"];
    ensure!(step["step"] == "term@leader" && step["step_left_ms"].is_u64(), "it is told {step}");
    tell(world, place, &["kill", &slow])?;
    await_state(&seen, &slow, "ended", 1)?;
    tell(world, place, &["restart", &before])?;
    await_state(&seen, &before, "running", 2)?;
    send_signal(who(world, &before)?.keeper.pid, Signal::KILL)?;
    await_state(&seen, &before, "ended", 2)?;
    tell(world, place, &["rm", &short])?;
    await_state(&seen, &short, "removed", 0)?;
    let snapshots = changes(&seen).iter().filter(|it| it["type"] == "snapshot").count();
    ensure!(snapshots == 1, "{snapshots} snapshots");
    expect_over(world, &before, "keeper-died", proof(place))?;
    dismiss(world, &watcher)?;
    all_clean(world)
}

/// By label, by group, and those that have ended.
fn some_of_them(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let over = start(world, place, &["--label", "app=one"], &["true"])?;
    say(world, place, &["wait", &over])?.expect(0)?;
    let (by_label, labelled) = watcher(world, place, &["--label", "app=one"])?;
    let (by_group, grouped) = watcher(world, place, &["--group", "plan"])?;
    let (of_all, all) = watcher(world, place, &["--all", "--label", "app=one"])?;
    ensure!(stands(&labelled).is_empty(), "told are {:?}", stands(&labelled));
    await_state(&all, &over, "ended", 1)?;
    let one = start(world, place, &["--label", "app=one"], &["sh", "-c", QUIET])?;
    let two = start(world, place, &["--group", "plan/b"], &["sh", "-c", QUIET])?;
    let both = ["--label", "app=one", "--group", "plan"];
    let three = start(world, place, &both, &["sh", "-c", QUIET])?;
    for (seen, id) in [(&labelled, &one), (&labelled, &three), (&grouped, &two), (&grouped, &three)]
    {
        await_state(seen, id, "running", 1)?;
    }
    tell(world, place, &["stop", "--all"])?;
    for (seen, id) in [(&labelled, &three), (&grouped, &three), (&all, &three)] {
        await_state(seen, id, "ended", 1)?;
    }
    ensure!(!stands(&labelled).contains_key(&two), "told are {:?}", stands(&labelled));
    ensure!(!stands(&grouped).contains_key(&one), "told are {:?}", stands(&grouped));
    for watcher in [by_label, by_group, of_all] {
        dismiss(world, &watcher)?;
    }
    all_clean(world)
}

/// To people, the whole list again.
fn table(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let (watcher, seen) = collected(world, place, &["ps", "--watch"])?;
    seen.expect("COMMAND")?;
    let (ids, listed) = collected(world, place, &["ps", "--watch", "-q"])?;
    let id = start(world, place, &["--name", "it"], &["sh", "-c", QUIET])?;
    seen.expect("running")?;
    listed.expect(&id)?;
    tell(world, place, &["stop", &id])?;
    let last = |seen: &Collect| {
        let text = String::from_utf8_lossy(&seen.so_far()).into_owned();
        text.rsplit("COMMAND").next().unwrap_or_default().trim().to_owned()
    };
    ensure!(await_until(LONG, || last(&seen).is_empty()), "it is listed: {:?}", last(&seen));
    dismiss(world, &watcher)?;
    dismiss(world, &ids)?;
    all_clean(world)
}

/// The keeper of a quiet run is called by nobody who watches it, while others come and go.
fn wakes_no_keeper(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let quiet = start(world, place, &[], &["sh", "-c", QUIET])?;
    let found = who(world, &quiet)?;
    await_settled(world, &quiet)?;
    let (watcher, seen) = watcher(world, place, &[])?;
    let (follower, events) = collected(world, place, &["events", "-f", "--json"])?;
    events.expect("started")?;
    let mut paths = Vec::new();
    let mut tracers = Vec::new();
    for process in [&found.keeper, &found.guard] {
        let path = world.out().join(format!("calls-{}", process.pid));
        tracers.push(trace(world, process.pid, &["-f", "-o", &text(path.clone())])?);
        paths.push(path);
    }
    for _ in 0..5 {
        let other = start(world, place, &[], &["true"])?;
        await_state(&seen, &other, "ended", 1)?;
    }
    for tracer in &tracers {
        send_signal(tracer.pid, Signal::TERM)?;
        world.wait(tracer, LONG)?;
    }
    for path in paths {
        let calls = fs::read_to_string(&path).context("calls")?;
        // A call that was under way when the tracer came or went is told as that.
        let woken: Vec<&str> = calls
            .lines()
            .filter(|line| !line.contains("restart_syscall(") && !line.contains("<detached"))
            .collect();
        ensure!(woken.len() <= 1, "it was woken: {calls}");
    }
    tell(world, place, &["stop", &quiet])?;
    dismiss(world, &watcher)?;
    dismiss(world, &follower)?;
    all_clean(world)
}

/// A watcher holds no descriptor for a run.
fn few_descriptors(world: &mut World, place: Place) -> Outcome {
    const RUNS: usize = 30;
    let _never = Lines::create(world, "never")?;
    let program = text(world.fullstop());
    let asked = ask_program(world, place, "sh", &WATCH, |command| {
        command.args(["-c", "ulimit -n 32 && exec \"$0\" \"$@\"", &program]).args(WATCH);
    })?;
    for _ in 0..RUNS {
        start(world, place, &[], &["sh", "-c", QUIET])?;
    }
    tell(world, place, &["stop", "--all"])?;
    let is_over = |id: &String| {
        let out = asked.stdout();
        out.lines().any(|line| line.contains(id.as_str()) && line.contains(r#""state":"ended""#))
    };
    ensure!(await_until(LONG, || run_ids(world).iter().all(is_over)), "one is not told to be over");
    dismiss(world, &asked.spawned)?;
    let said = asked.hear(world, LONG)?;
    ensure!(said.err.is_empty(), "it complains: {:?}", said.err);
    all_clean(world)
}

/// Each time a reader of the journal may have missed something, it begins anew.
fn journal_removed(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let (watcher, seen) = watcher(world, place, &[])?;
    let journal = world.state().join("journal");
    for round in 1..=3 {
        let id = start(world, place, &[], &["sh", "-c", QUIET])?;
        await_state(&seen, &id, "running", 1)?;
        fs::remove_file(&journal).context("the journal")?;
        tell(world, place, &["stop", &id])?;
        expect_over(world, &id, "stopped", proof(place))?;
        // A snapshot has it no more, or a change tells its end.
        let gone = || {
            let told = changes(&seen);
            let snapshots = told.iter().filter(|it| it["type"] == "snapshot").count();
            snapshots > round || stands(&seen)[&id].0 == "ended"
        };
        ensure!(await_until(LONG, gone), "round {round}: told is {:?}", changes(&seen));
    }
    dismiss(world, &watcher)?;
    all_clean(world)
}

/// Half a notice, as a machine leaves it that has crashed.
fn journal_torn(world: &mut World, place: Place) -> Outcome {
    use std::io::Write as _;
    let _never = Lines::create(world, "never")?;
    let (watcher, seen) = watcher(world, place, &[])?;
    let path = world.state().join("journal");
    let mut journal = fs::OpenOptions::new().append(true).open(path).context("the journal")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    await_state(&seen, &id, "running", 1)?;
    journal.write_all(&[0; 100]).context("torn")?;
    let others: Vec<String> =
        (0..3).map(|_| start(world, place, &[], &["sh", "-c", QUIET])).collect::<Outcome<_>>()?;
    for other in &others {
        await_state(&seen, other, "running", 1)?;
    }
    let missed = |it: &Value| it["type"] == "snapshot" && it["missed"] == true;
    ensure!(changes(&seen).iter().any(missed), "it does not say that it missed something");
    tell(world, place, &["stop", "--all"])?;
    for other in others.iter().chain([&id]) {
        expect_over(world, other, "stopped", proof(place))?;
    }
    dismiss(world, &watcher)?;
    all_clean(world)
}

/// A directory bears its name: runs do without it, and the watch looks for itself.
fn journal_impossible(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let first = start(world, place, &[], &["true"])?;
    say(world, place, &["wait", &first])?.expect(0)?;
    let path = world.state().join("journal");
    fs::remove_file(&path).context("the journal")?;
    fs::create_dir(&path).context("in its place")?;
    let asked = ask(world, place, &WATCH)?;
    let told = || asked.stderr().contains("four times a second");
    ensure!(await_until(LONG, told), "it does not say so: {:?}", asked.stderr());
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let is = |state: &str| {
        let state = format!("\"state\":\"{state}\"");
        asked.stdout().lines().any(|line| line.contains(&id) && line.contains(&state))
    };
    ensure!(await_until(LONG, || is("running")), "told is {}", asked.stdout());
    let said = say(world, place, &["stop", &id])?;
    said.expect(0)?;
    expect_over(world, &id, "stopped", proof(place))?;
    ensure!(await_until(LONG, || is("ended")), "told is {}", asked.stdout());
    dismiss(world, &asked.spawned)?;
    fs::remove_dir(&path).context("the directory")?;
    all_clean(world)
}

/// There may be no room for a notice: the run ends as it should, and the watch finds out.
fn disk_fills_up(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let point = small_state(world, place)?;
    let (watcher, seen) = watcher(world, place, &[])?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    await_state(&seen, &id, "running", 1)?;
    fill(&point)?;
    tell(world, place, &["stop", &id])?;
    expect_over(world, &id, "stopped", proof(place))?;
    fs::remove_file(point.join("filler")).context("filler")?;
    let other = start(world, place, &[], &["sh", "-c", QUIET])?;
    await_state(&seen, &other, "running", 1)?;
    let told = || stands(&seen).get(&id).is_some_and(|it| it.0 == "ended");
    ensure!(await_until(UNASKED, told), "its end is not told: {:?}", stands(&seen));
    tell(world, place, &["stop", &other])?;
    dismiss(world, &watcher)?;
    all_clean(world)
}

/// Where nothing was ever followed, nothing is written for a reader.
fn made_by_its_readers(world: &mut World, place: Place) -> Outcome {
    let journal = world.state().join("journal");
    let mut run = world.command(world.fullstop());
    run.args(["run", "--", "true"]);
    let run = world.spawn("run", &mut run)?;
    world.wait(&run, LONG)?;
    ensure!(!journal.exists(), "there is a journal");
    let (watcher, seen) = watcher(world, place, &[])?;
    let before = fs::metadata(&journal).context("the journal")?;
    ensure!(before.len() == 0 && before.mode() & 0o777 == 0o600, "it is {before:?}");
    let id = start(world, place, &[], &["true"])?;
    await_state(&seen, &id, "ended", 1)?;
    ensure!(fs::metadata(&journal).context("the journal")?.len() % 256 == 0, "half a notice");
    dismiss(world, &watcher)?;
    all_clean(world)
}
