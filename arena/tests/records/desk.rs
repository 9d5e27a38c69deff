//! What the scenarios of this suite share: asking `fullstop` something, reading what
//! it has written down, and killing keeper and guard so that neither can act.

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, UNIX_EPOCH};

use arena::{
    Context, Ended, MemberSlots, Outcome, Process, Signal, Spawned, Took, World, await_until,
    ensure, millis, seconds, send_signal, unix_ms_of,
};
use serde_json::Value;

use crate::kit::{Cage, Place, SOON, stop as stop_process, text};

/// A command of `fullstop` that was given, and not yet answered.
pub struct RunningCommand {
    pub spawned: Spawned,
    out: PathBuf,
    err: PathBuf,
    since: Instant,
}

/// What it printed, and how it ended.
#[derive(Debug)]
pub struct CommandOutput {
    pub ended: Ended,
    pub out: String,
    pub err: String,
    pub took: Took,
}

/// Gives a command and waits for its end.
pub fn say(world: &mut World, place: Place, words: &[&str]) -> Outcome<CommandOutput> {
    ask(world, place, words)?.hear(world, seconds(20))
}

/// Gives a command that is to succeed; returns what it printed.
pub fn tell(world: &mut World, place: Place, words: &[&str]) -> Outcome<String> {
    let said = say(world, place, words)?;
    said.expect(0)?;
    Ok(said.out)
}

/// Gives a command, and does not wait.
pub fn ask(world: &mut World, place: Place, words: &[&str]) -> Outcome<RunningCommand> {
    ask_with(world, place, words, |_| {})
}

pub fn ask_with(
    world: &mut World,
    place: Place,
    words: &[&str],
    adjust: impl FnOnce(&mut std::process::Command),
) -> Outcome<RunningCommand> {
    let program = text(world.fullstop());
    ask_program(world, place, &program, words, |command| {
        command.args(words);
        adjust(command);
    })
}

/// The same with another program, of which the words are only a description.
pub fn ask_program(
    world: &mut World,
    place: Place,
    program: &str,
    words: &[&str],
    adjust: impl FnOnce(&mut std::process::Command),
) -> Outcome<RunningCommand> {
    static SERIAL: AtomicUsize = AtomicUsize::new(0);
    let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
    let (out, err) =
        (world.out().join(format!("{serial}.out")), world.out().join(format!("{serial}.err")));
    let mut command = world.command(program);
    command.stdout(File::create(&out).context("stdout")?);
    command.stderr(File::create(&err).context("stderr")?);
    place.user.apply(&mut command);
    adjust(&mut command);
    let since = Instant::now();
    let spawned = world.spawn(&format!("fullstop {}", words.join(" ")), &mut command)?;
    Ok(RunningCommand { spawned, out, err, since })
}

impl RunningCommand {
    pub fn hear(&self, world: &mut World, patience: Duration) -> Outcome<CommandOutput> {
        let ended = world.wait(&self.spawned, patience)?;
        let took = Took::since(self.since);
        let read = |path| fs::read_to_string(path).context("what was said");
        let said = CommandOutput { ended, out: read(&self.out)?, err: read(&self.err)?, took };
        world.note(format!("  {} after {:?}: {:?} {:?}", ended, took, said.out, said.err));
        Ok(said)
    }

    /// What was said so far on stdout.
    pub fn stdout(&self) -> String {
        fs::read_to_string(&self.out).unwrap_or_default()
    }

    /// What was said so far on stderr.
    pub fn stderr(&self) -> String {
        fs::read_to_string(&self.err).unwrap_or_default()
    }

    pub fn since(&self) -> Instant {
        self.since
    }
}

impl CommandOutput {
    pub fn expect(&self, code: i32) -> Outcome {
        ensure!(
            self.ended == Ended::Code(code),
            "it ended with {} and not with {code}; it said {:?} {:?}",
            self.ended,
            self.out,
            self.err
        );
        Ok(())
    }

    /// It failed, and said why in one line.
    pub fn expect_one_line(&self, code: i32, about: &str) -> Outcome {
        self.expect(code)?;
        ensure!(self.err.lines().count() == 1, "it did not say one line: {:?}", self.err);
        ensure!(self.err.contains(about), "it said nothing about {about:?}: {:?}", self.err);
        Ok(())
    }

    pub fn json(&self) -> Outcome<Value> {
        serde_json::from_str(&self.out).context(format!("no JSON: {:?}", self.out))
    }
}

/// Starts a run in the background; returns its id.
pub fn start(
    world: &mut World,
    place: Place,
    options: &[&str],
    command: &[&str],
) -> Outcome<String> {
    let cage = place.cage.to_string();
    let mut words = vec!["start", "--cage", &cage];
    words.extend(options);
    words.push("--");
    words.extend(command);
    let id = tell(world, place, &words)?;
    let id = id.trim_end().to_owned();
    ensure!(id.len() == 13, "that is no id: {id:?}");
    Ok(id)
}

/// A shell that does nothing but wait, without making others.
pub const QUIET: &str = "while :; do read gone < never; done";

pub fn dir(world: &World, id: &str) -> PathBuf {
    world.state().join("runs").join(id)
}

pub fn read_json(path: &std::path::Path) -> Outcome<Value> {
    let text = fs::read_to_string(path).context(path.display().to_string())?;
    serde_json::from_str(&text).context(format!("{} cannot be read: {text}", path.display()))
}

pub fn record(world: &World, id: &str) -> Outcome<Value> {
    read_json(&dir(world, id).join("record.json"))
}

/// Changes a file of a run behind its back; its owner stays.
pub fn edit(world: &World, id: &str, name: &str, change: impl FnOnce(&mut Value)) -> Outcome {
    let path = dir(world, id).join(name);
    let mut value = read_json(&path)?;
    change(&mut value);
    fs::write(&path, serde_json::to_vec(&value).context("json")?).context("edit")
}

/// The ids that are listed as unfinished.
pub fn live_ids(world: &World) -> Vec<String> {
    names(&world.state().join("live"))
}

pub fn run_ids(world: &World) -> Vec<String> {
    names(&world.state().join("runs"))
}

pub fn names(dir: &std::path::Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Who is who in a run, as it was written down and as the kernel sees it.
#[derive(Debug, Clone)]
pub struct Who {
    pub guard: Process,
    pub keeper: Process,
    pub leader: Process,
}

/// Waits until the three are written down; what is written is checked.
pub fn who(world: &World, id: &str) -> Outcome<Who> {
    let pid = |record: &Value, name: &str| {
        let pid = record[name]["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok())?;
        let process = Process::read(pid)?;
        (record[name]["start_ticks"] == process.start_ticks).then_some(process)
    };
    let find = || {
        let record = record(world, id).ok()?;
        Some(Who {
            guard: pid(&record, "guard")?,
            keeper: pid(&record, "keeper")?,
            leader: pid(&record, "leader")?,
        })
    };
    ensure!(await_until(SOON, || find().is_some()), "run {id} is not written down");
    let who = find().context("it was written down a moment ago")?;
    ensure!(who.keeper.ppid == who.guard.pid, "the keeper is not the guard's: {}", who.keeper);
    ensure!(who.keeper.comm == "fullstop-keeper", "the keeper is called {}", who.keeper);
    Ok(who)
}

/// Waits for the record of a run that has settled, which takes with it what came before:
/// from here on an event brings no record with it.
pub fn await_settled(world: &World, id: &str) -> Outcome {
    let written = dir(world, id).join("record.json");
    let settled = || {
        let at = fs::metadata(&written).and_then(|file| file.modified()).ok();
        let at = at.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        let began =
            record(world, id).ok().and_then(|record| unix_ms_of(record["started_at"].as_str()?));
        // After 50 ms; but files are dated by a clock that ticks.
        at.zip(began).is_some_and(|(at, began)| at > millis(began + 30))
    };
    ensure!(await_until(SOON, settled), "run {id} does not settle");
    Ok(())
}

/// Waits until the census of a tree that is written down holds all of these.
pub fn counted(world: &World, id: &str, pids: &[i32]) -> Outcome {
    let all = || {
        let census: Vec<i64> = census(world, id).iter().map(|&(pid, _)| pid).collect();
        pids.iter().all(|&pid| census.contains(&pid.into()))
    };
    ensure!(await_until(SOON, all), "{pids:?} are not all counted: {:?}", census(world, id));
    Ok(())
}

/// The pids and start times of the members that were written down: of the leader in the
/// record, of all others in a file of their own, or in the record if that is an old one.
pub fn census(world: &World, id: &str) -> Vec<(i64, u64)> {
    let record = record(world, id).unwrap_or_default();
    let one = |one: &Value| Some((one["pid"].as_i64()?, one["start_ticks"].as_u64()?));
    let old = record["census"].as_array().into_iter().flatten();
    let mut all: Vec<_> = old.chain([&record["leader"]]).filter_map(one).collect();
    let slots = MemberSlots::read(&dir(world, id), id);
    all.extend(slots.all().map(|(_, slot)| (i64::from(slot.pid), slot.start_ticks)));
    all.sort_unstable();
    all.dedup();
    all
}

/// Kills keeper and guard so that neither can act any more: both are stopped first,
/// the guard before the keeper (it would continue that), and the guard is killed
/// first (the keeper's end would wake it).
pub fn behead(who: &Who) -> Outcome {
    freeze(who)?;
    kill_frozen(who)
}

/// Stops guard and keeper, in this order.
pub fn freeze(who: &Who) -> Outcome {
    stop_process(who.guard.pid)?;
    stop_process(who.keeper.pid)
}

/// Continues both. A keeper that was asked to stop may be gone as soon as its guard is awake,
/// and its death wakes the guard: whoever is gone needs no signal.
pub fn thaw(who: &Who) {
    for frozen in [&who.keeper, &who.guard] {
        let _ = send_signal(frozen.pid, Signal::CONT);
    }
}

pub fn kill_frozen(who: &Who) -> Outcome {
    send_signal(who.guard.pid, Signal::KILL)?;
    send_signal(who.keeper.pid, Signal::KILL)?;
    for gone in [&who.guard, &who.keeper] {
        let is_gone = || gone.still_there().is_none();
        ensure!(await_until(SOON, is_gone), "{gone} does not go");
    }
    Ok(())
}

/// A run that was lost: guard and keeper are gone, the members live.
pub fn lose(world: &World, id: &str) -> Outcome<Who> {
    let who = who(world, id)?;
    behead(&who)?;
    ensure!(alive(&who.leader), "the leader died with its keeper");
    Ok(who)
}

/// Still the same process, and alive?
pub fn alive(process: &Process) -> bool {
    process.still_there().is_some_and(|now| now.alive())
}

/// Nobody of any run is alive at this instant; keepers and guards that are on their
/// way out, and commands that still speak, are gone in a moment.
pub fn nobody(world: &World) -> Outcome {
    // A program is called `exe` until it has taken the guard's name.
    let ours = |process: &Process| process.comm.starts_with("fullstop") || process.comm == "exe";
    let members: Vec<String> =
        world.survivors().iter().filter(|p| !ours(p)).map(ToString::to_string).collect();
    ensure!(members.is_empty(), "somebody lives:\n{}", members.join("\n"));
    world.expect_extinct(SOON)
}

/// Nobody alive, nothing left, nobody hurt.
pub fn all_clean(world: &World) -> Outcome {
    nobody(world)?;
    crate::kit::all_clean(world)
}

/// Waits for the end of a process that is not ours.
pub fn expect_gone(process: &Process, patience: Duration) -> Outcome {
    ensure!(await_until(patience, || !alive(process)), "{process} still lives");
    Ok(())
}

/// The processes of the run in the cgroup, as the kernel counts them.
pub fn cgroup_procs(world: &World, id: &str) -> Vec<i32> {
    let path = record(world, id).ok().and_then(|r| r["cgroup"].as_str().map(PathBuf::from));
    let path = path.or_else(|| {
        let spec = read_json(&dir(world, id).join("spec.json")).ok()?;
        spec["cgroup"].as_str().map(PathBuf::from)
    });
    let procs = path.and_then(|path| fs::read_to_string(path.join("cgroup.procs")).ok());
    procs.unwrap_or_default().lines().filter_map(|line| line.parse().ok()).collect()
}

/// A record that is over: its last word, with these in it.
pub fn expect_over(world: &World, id: &str, reason: &str, proof: &str) -> Outcome {
    ensure!(!live_ids(world).contains(&id.to_owned()), "run {id} is still listed");
    let record = record(world, id)?;
    let report = &record["report"];
    ensure!(record["state"] == "ended", "run {id} is written down as {}", record["state"]);
    ensure!(record["reason"] == reason, "run {id} ended by {}, not {reason}", record["reason"]);
    ensure!(report["reason"] == reason, "the report says {}", report["reason"]);
    ensure!(report["proof"] == proof, "the proof is {}, not {proof}", report["proof"]);
    let events = fs::read_to_string(dir(world, id).join("events.jsonl")).unwrap_or_default();
    let last: Value = serde_json::from_str(events.lines().last().unwrap_or_default())
        .context(format!("the events of {id} have no end: {events:?}"))?;
    ensure!(last["type"] == "ended", "the last event is {last}");
    ensure!(last["reason"] == reason && last["proof"] == proof, "the last event is {last}");
    Ok(())
}

/// The proof a keeper or a guard gives in this place.
pub fn proof(place: Place) -> &'static str {
    match place.cage {
        Cage::Cgroup => "cgroup-empty",
        Cage::Tree => "no-children",
    }
}

/// The proof a sweep gives in this place.
pub fn swept_proof(place: Place) -> &'static str {
    match place.cage {
        Cage::Cgroup => "cgroup-empty",
        Cage::Tree => "scan-clean",
    }
}

/// The words that start a member of the zoo.
pub fn zoo(world: &World, member: &str) -> Vec<String> {
    vec![text(world.zoo()), "--dir".into(), text(world.dir()), member.into()]
}
