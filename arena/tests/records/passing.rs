//! What a command pays for the runs that live beside it: a bounded number of looks, however
//! many they are.

use std::fs::{self, File};
use std::path::PathBuf;

use arena::{Context, Need, Outcome, Registry, World, await_until, ensure, seconds};
use rustix::fs::{FlockOperation, fcntl_lock};
use serde_json::Value;

use super::desk::{
    QUIET, alive, all_clean, ask_program, dir, edit, expect_over, live_ids, lose, say, start,
    swept_proof, tell,
};
use super::following::copy;
use super::worlds::of_gone_container;
use crate::kit::{ANYWHERE, AS_ROOT, Lines, Place, SOON, add, text};

pub fn register(registry: &mut Registry) {
    let strace = [Need::Program("strace")];
    add(registry, "passing::a-bounded-number-of-looks", &ANYWHERE, &strace, bounded);
    for (name, play) in [
        ("ps", (|w, p| all_are_looked_at(w, p, &["ps"])) as fn(&mut World, Place) -> Outcome),
        ("sweep", |w, p| all_are_looked_at(w, p, &["sweep"])),
    ] {
        add(registry, &format!("passing::{name}-looks-at-all"), &AS_ROOT, &[], play);
    }
    add(registry, "passing::run-by-run", &ANYWHERE, &[], run_by_run);
    add(registry, "passing::lost-elsewhere", &ANYWHERE, &strace, lost_elsewhere);
}

/// As many runs as wanted, each with a directory, a listing and a lock that is held, by this
/// process and not by a keeper: a look asks for no more.
struct Crowd {
    state: PathBuf,
    locks: Vec<(String, File)>,
}

impl Crowd {
    fn new(world: &World) -> Crowd {
        Crowd { state: world.state(), locks: Vec::new() }
    }

    fn grow(&mut self, count: usize) -> Outcome {
        for number in self.locks.len()..count {
            // They sort before every real run.
            let id = format!("0000000{number:06}");
            let (dir, listing) = self.paths(&id);
            fs::create_dir(&dir).context("a run")?;
            fs::write(dir.join("lock"), "").context("a lock")?;
            fs::hard_link(dir.join("lock"), &listing).context("a listing")?;
            let lock = File::options().write(true).open(&listing).context("a lock")?;
            fcntl_lock(&lock, FlockOperation::NonBlockingLockExclusive).context("a lock")?;
            self.locks.push((id, lock));
        }
        Ok(())
    }

    fn paths(&self, id: &str) -> (PathBuf, PathBuf) {
        (self.state.join("runs").join(id), self.state.join("live").join(id))
    }

    fn leave(self) -> Outcome {
        for (id, _) in &self.locks {
            let (dir, listing) = self.paths(id);
            fs::remove_dir_all(dir).context("a run")?;
            fs::remove_file(listing).context("a listing")?;
        }
        Ok(())
    }
}

/// How many system calls a command made with all its children, and at how many of the crowd
/// it looked.
#[derive(Debug)]
struct Calls {
    all: usize,
    looks: usize,
}

fn traced(world: &mut World, place: Place, words: &[&str]) -> Outcome<Calls> {
    let (program, path) = (text(world.fullstop()), world.out().join("calls"));
    let asked = ask_program(world, place, "strace", words, |command| {
        command.args(["-f", "-qq", "-o"]).arg(&path).arg(&program).args(words);
    })?;
    // The tracer ends with the last of them.
    asked.hear(world, seconds(20))?.expect(0)?;
    let text = fs::read_to_string(&path).context("calls")?;
    let looks = text.lines().filter(|line| line.contains("\"live/0000000")).count();
    Ok(Calls { all: text.lines().count(), looks })
}

/// The calls of each command that is not about all runs.
fn of_each(world: &mut World, place: Place) -> Outcome<[(&'static str, Calls); 3]> {
    let cage = place.cage.to_string();
    let run = traced(world, place, &["run", "--cage", &cage, "--", "true"])?;
    let born = traced(world, place, &["start", "--cage", &cage, "--", "true"])?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let stop = traced(world, place, &["stop", &id])?;
    Ok([("run", run), ("start", born), ("stop", stop)])
}

fn bounded(world: &mut World, place: Place) -> Outcome {
    const FEW: usize = 40;
    const MANY: usize = 240;
    /// All that are looked at in passing; one of them may be the command's own run.
    const LOOKS: std::ops::RangeInclusive<usize> = 31..=32;
    /// Some calls are a matter of time: how often something was waited for.
    const NOISE: usize = 200;
    let _never = Lines::create(world, "never")?;
    tell(world, place, &["run", "--", "true"])?;
    let mut crowd = Crowd::new(world);
    crowd.grow(FEW)?;
    let few = of_each(world, place)?;
    crowd.grow(MANY)?;
    let many = of_each(world, place)?;
    for ((name, few), (_, many)) in few.iter().zip(&many) {
        world.note(format!("{name}: {few:?} beside {FEW}, {many:?} beside {MANY}"));
        for calls in [few, many] {
            ensure!(LOOKS.contains(&calls.looks), "{name} looks at {}", calls.looks);
        }
        // Three for each more of them would be 600.
        ensure!(many.all < few.all + NOISE, "{name}: {few:?} beside {FEW}, {many:?} beside {MANY}");
    }
    crowd.leave()?;
    all_clean(world)
}

/// Lost runs of containers that are gone are met by every command, for ever. Each costs a
/// command little, and many cost as much as a few.
fn lost_elsewhere(world: &mut World, place: Place) -> Outcome {
    const FEW: usize = 40;
    const MANY: usize = 240;
    const LOOKS: usize = 32;
    /// To ask for its lock, to read one file of its directory, and to look for its cgroup.
    const EACH: usize = 25;
    const NOISE: usize = 100;
    let _never = Lines::create(world, "never")?;
    let words = ["run", "--cage", "tree", "--", "true"];
    let alone = traced(world, place, &words)?;
    let first = of_gone_container(world, place)?;
    let mut costs = Vec::new();
    let mut made = 1;
    for count in [FEW, MANY] {
        for number in made..count {
            let id = format!("0000000{number:06}");
            copy(world, &first, &id)?;
            edit(world, &id, "spec.json", |spec| spec["lock"] = Value::Null)?;
            let listing = world.state().join("live").join(&id);
            fs::hard_link(dir(world, &id).join("lock"), listing).context("a listing")?;
        }
        made = count;
        costs.push(traced(world, place, &words)?);
    }
    world.note(format!("alone {alone:?}, with {FEW} and {MANY} lost elsewhere {costs:?}"));
    for cost in &costs {
        let most = alone.all + LOOKS * EACH + NOISE;
        ensure!(cost.all < most, "{} calls, and not {most}; alone {}", cost.all, alone.all);
    }
    let said = say(world, place, &["stop", "--all"])?;
    said.expect_one_line(0, &format!("{MANY} lost runs"))?;
    tell(world, place, &["prune", "--forget"])?;
    ensure!(live_ids(world).is_empty(), "{:?} are listed", live_ids(world));
    all_clean(world)
}

/// A lost run among more live ones than a command in passing looks at.
fn all_are_looked_at(world: &mut World, place: Place, words: &[&str]) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let mut crowd = Crowd::new(world);
    crowd.grow(240)?;
    let lost = lose(world, &id)?;
    tell(world, place, words)?;
    ensure!(!alive(&lost.leader), "the leader of a lost run lives");
    expect_over(world, &id, "keeper-died", swept_proof(place))?;
    crowd.leave()?;
    all_clean(world)
}

/// Each `run` looks at other ones, so that a lost run is found by one of them.
fn run_by_run(world: &mut World, place: Place) -> Outcome {
    /// A run misses it with a chance of one in five: 40 of them, once in 10^27.
    const RUNS: usize = 40;
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let mut crowd = Crowd::new(world);
    crowd.grow(40)?;
    let lost = lose(world, &id)?;
    for _ in 0..RUNS {
        tell(world, place, &["run", "--", "true"])?;
    }
    ensure!(!alive(&lost.leader), "no run of {RUNS} has found it");
    let finished = || !live_ids(world).contains(&id);
    ensure!(await_until(SOON, finished), "{} is still listed", dir(world, &id).display());
    expect_over(world, &id, "keeper-died", swept_proof(place))?;
    crowd.leave()?;
    all_clean(world)
}
