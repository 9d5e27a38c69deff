//! `events -f`: every event of every run, as it happens, at the cost of what happens and
//! not of the history.

use std::collections::BTreeMap;
use std::fs;

use arena::{
    Context, Ended, Need, Outcome, Registry, Signal, Spawned, World, await_until, ensure, seconds,
    send_signal,
};
use serde_json::Value;

use super::desk::{
    QUIET, all_clean, ask_program, await_settled, dir, expect_over, proof, run_ids, say, start,
    tell, who,
};
use crate::kit::{ANYWHERE, AS_ROOT, Lines, Place, SOON, add, children};
use crate::tools::{Collect, LONG, collected, trace};

pub fn register(registry: &mut Registry) {
    add(registry, "events::all-of-them-in-order", &AS_ROOT, &[], in_order);
    add(registry, "events::of-named-runs", &ANYWHERE, &[], of_named_runs);
    add(registry, "events::reader-leaves", &ANYWHERE, &[], |world, place| {
        reader_leaves(world, place, &["events", "-f"])
    });
    let strace = [Need::Program("strace")];
    add(registry, "events::waits", &ANYWHERE, &strace, waits);
    add(registry, "events::without-inotify", &ANYWHERE, &strace, |world, place| {
        without_inotify(world, place, &["events", "-f", "--json"])
    });
}

/// The follower never ends by itself.
pub fn dismiss(world: &mut World, follower: &Spawned) -> Outcome {
    send_signal(follower.pid, Signal::TERM)?;
    let ended = world.wait(follower, LONG)?;
    ensure!(ended == Ended::Signal(Signal::TERM.as_raw()), "it ended with {ended}");
    Ok(())
}

/// What was shown so far, the events of each run in the order in which they were shown.
fn shown(seen: &Collect) -> BTreeMap<String, Vec<Value>> {
    let mut runs: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for line in String::from_utf8_lossy(&seen.so_far()).lines() {
        // A line whose end has not come yet is no JSON.
        let Ok(event) = serde_json::from_str::<Value>(line) else { continue };
        runs.entry(event["id"].as_str().unwrap_or_default().to_owned()).or_default().push(event);
    }
    runs
}

/// What every run has written down.
fn written(world: &World) -> BTreeMap<String, Vec<Value>> {
    let events = |id: &String| {
        let text = fs::read_to_string(dir(world, id).join("events.jsonl")).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    };
    run_ids(world).into_iter().map(|id| (events(&id), id)).map(|(all, id)| (id, all)).collect()
}

/// History, runs that come later, one that ends at once, a next generation, an event that changes no state, a
/// guard in its keeper's place, and many stops at once.
fn in_order(world: &mut World, place: Place) -> Outcome {
    const CROWD: usize = 8;
    let _never = Lines::create(world, "never")?;
    let _go = Lines::create(world, "go")?;
    let mut ready = Lines::create(world, "ready")?;
    let before = start(world, place, &[], &["true"])?;
    say(world, place, &["wait", &before])?.expect(0)?;
    let (follower, seen) = collected(world, place, &["events", "-f", "--json"])?;
    let has = |id: &str, event: &str, count: usize| {
        let is = |told: &&Value| told["type"] == event;
        shown(&seen).get(id).map_or(0, |all| all.iter().filter(is).count()) >= count
    };
    ensure!(await_until(SOON, || has(&before, "ended", 1)), "history is not shown");
    // It is over before anybody could see it in a list of the unfinished.
    let short = start(world, place, &[], &["true"])?;
    ensure!(await_until(SOON, || has(&short, "ended", 1)), "a short run is not shown");
    // The leader leaves, the run goes on: its state stays the same.
    let script = "sh -c 'echo up > ready; read n < never' & read n < go; exit 3";
    let left = start(world, place, &["--on-exit", "wait"], &["sh", "-c", script])?;
    ready.expect("up")?;
    let found = who(world, &left)?;
    await_settled(world, &left)?;
    ensure!(await_until(SOON, || has(&left, "started", 1)), "a birth is not shown");
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    ensure!(await_until(SOON, || has(&left, "leader-exited", 1)), "the leader's end is not shown");
    send_signal(found.keeper.pid, Signal::KILL)?;
    ensure!(await_until(SOON, || has(&left, "ended", 1)), "what the guard did is not shown");
    for _ in 0..CROWD {
        start(world, place, &["--grace", "100ms"], &["sh", "-c", QUIET])?;
    }
    let again = start(world, place, &["--grace", "100ms"], &["sh", "-c", QUIET])?;
    tell(world, place, &["restart", &again])?;
    ensure!(await_until(SOON, || has(&again, "started", 2)), "a restart is not shown");
    tell(world, place, &["stop", "--all"])?;
    ensure!(await_until(SOON, || shown(&seen) == written(world)), "shown is {:#?}", shown(&seen));
    ensure!(written(world).len() == CROWD + 4, "there are {} runs", written(world).len());
    expect_over(world, &left, "keeper-died", proof(place))?;
    dismiss(world, &follower)?;
    all_clean(world)
}

fn of_named_runs(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let named = start(world, place, &["--name", "it"], &["sh", "-c", QUIET])?;
    let (follower, seen) = collected(world, place, &["events", "-f", "--json", "it"])?;
    seen.expect("started")?;
    let other = start(world, place, &[], &["true"])?;
    say(world, place, &["wait", &other])?.expect(0)?;
    tell(world, place, &["stop", &named])?;
    seen.expect("\"ended\"")?;
    let (shown, mut written) = (shown(&seen), written(world));
    written.remove(&other);
    ensure!(shown == written, "shown is {shown:#?}");
    dismiss(world, &follower)?;
    all_clean(world)
}

/// `… | head -1` ends, though nothing happens any more.
pub fn reader_leaves(world: &mut World, place: Place, words: &[&str]) -> Outcome {
    let id = start(world, place, &[], &["true"])?;
    say(world, place, &["wait", &id])?.expect(0)?;
    let mut command = world.command(world.fullstop());
    command.args(words).stdout(std::process::Stdio::piped());
    let (follower, mut child) = world.spawn_piped(&words.join(" "), &mut command)?;
    let mut pipe = child.stdout.take().context("a pipe")?;
    std::io::Read::read_exact(&mut pipe, &mut [0; 4]).context("the first word")?;
    drop(pipe);
    world.wait(&follower, LONG).context("its reader has left")?;
    all_clean(world)
}

/// The same calls while nothing happens, and for the same events, after one run and after
/// many.
fn waits(world: &mut World, place: Place) -> Outcome {
    const MANY: usize = 200;
    const IDLE: std::time::Duration = seconds(3);
    /// Five a second, and those for the birth of one run.
    const MOST: usize = 15 + 200;
    let _never = Lines::create(world, "never")?;
    let first = start(world, place, &[], &["true"])?;
    say(world, place, &["wait", &first])?.expect(0)?;
    let few = calls(world, place, IDLE, "after one run")?;
    for number in 0..MANY {
        copy(world, &first, &format!("{}{number:03}", &first[..10]))?;
    }
    let many = calls(world, place, IDLE, "after many runs")?;
    ensure!(few < MOST, "{few} calls after one run");
    ensure!(many < MOST, "{many} calls after {MANY} runs, {few} after one");
    all_clean(world)
}

/// The calls of a follower that has shown all history: nothing happens for this long, then
/// one run is born.
fn calls(
    world: &mut World,
    place: Place,
    idle: std::time::Duration,
    about: &str,
) -> Outcome<usize> {
    let (follower, seen) = collected(world, place, &["events", "-f", "--json"])?;
    let all = written(world).len();
    ensure!(await_until(LONG, || shown(&seen).len() == all), "history is not shown");
    let path = world.out().join(about);
    let words = ["-f", "-o", path.to_str().context("a path")?];
    let tracer = trace(world, follower.pid, &words)?;
    // No event is awaited here: this is the time that is measured.
    let _ = await_until(idle, || false);
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    ensure!(await_until(LONG, || shown(&seen).contains_key(&id)), "a new run is not shown");
    dismiss(world, &follower)?;
    world.wait(&tracer, LONG)?;
    tell(world, place, &["kill", &id])?;
    let text = fs::read_to_string(&path).context("calls")?;
    world.note(format!("{} calls {about}", text.lines().count()));
    Ok(text.lines().count())
}

/// Another run that stands in the same way.
pub fn copy(world: &World, from: &str, id: &str) -> Outcome {
    fs::create_dir(dir(world, id)).context("a run")?;
    for name in super::desk::names(&dir(world, from)) {
        // Where a keeper listened, there may be a socket.
        if !dir(world, from).join(&name).is_file() {
            continue;
        }
        let bytes = fs::read(dir(world, from).join(&name)).context("a file")?;
        let text = String::from_utf8_lossy(&bytes).replace(from, id);
        fs::write(dir(world, id).join(&name), text).context("a file")?;
    }
    Ok(())
}

/// A user has few inotify instances. Without one the journal is read four times a second,
/// and that is said.
pub fn without_inotify(world: &mut World, place: Place, words: &[&str]) -> Outcome {
    let program = world.fullstop();
    let asked = ask_program(world, place, "strace", words, |command| {
        command.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=inotify_init1"]);
        command.args(["-e", "inject=inotify_init1:error=EMFILE"]);
        command.arg(program).args(words);
    })?;
    let told = || asked.stderr().contains("four times a second");
    ensure!(await_until(LONG, told), "it does not say so: {:?}", asked.stderr());
    let id = start(world, place, &[], &["true"])?;
    let ended = || asked.stdout().contains("\"ended\"");
    ensure!(await_until(LONG, ended), "the end of {id} is not shown: {:?}", asked.stdout());
    // The tracer ends with it.
    for follower in children(asked.spawned.pid) {
        send_signal(follower.pid, Signal::KILL)?;
    }
    let said = asked.hear(world, LONG)?;
    ensure!(said.err.lines().count() == 1, "it says {:?}", said.err);
    all_clean(world)
}
