//! A task in a frozen cgroup of version 1: truly unkillable until it is thawed.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Instant;

use arena::{
    Cgroup, Context, Need, Outcome, Registry, Signal, World, await_until, ensure, seconds,
    send_signal,
};

use super::kit::{AS_ROOT, EVERYWHERE, Launch, Lines, Place, SOON, add, all_clean};
use super::stuck::{LADDER, Trigger, is_confirmed, is_stuck};
use super::thaw::{Frozen, Watched, is_watched, run_name};

pub fn register(registry: &mut Registry) {
    let needs = [Need::Check(freezer_mounted), Need::Check(is_watched)];
    add(registry, "stuck::frozen-cgroup", &EVERYWHERE, &needs, frozen_cgroup);
    add(registry, "stuck::who-can-die-does", &AS_ROOT, &needs, others_die);
}

fn freezer_mounted() -> Result<(), String> {
    freezer_mount().map(drop).ok_or_else(|| "no freezer cgroup of version 1 is mounted".into())
}

fn freezer_mount() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        let (kind, options) = (right.next()?, right.nth(1)?);
        let is_freezer = kind == "cgroup" && options.split(',').any(|option| option == "freezer");
        is_freezer.then(|| left.split(' ').nth(4).map(PathBuf::from)).flatten()
    })
}

/// A cgroup of version 1, thawed and removed whatever happens.
struct Freezer {
    path: PathBuf,
    _watched: Watched,
}

impl Freezer {
    fn create(place: Place) -> Outcome<Self> {
        let name = format!("{}-{}-{}", run_name(), place.cage, place.user);
        let path = freezer_mount().context("no freezer")?.join(name);
        fs::create_dir(&path).context(path.display())?;
        let state = path.join("freezer.state");
        let file = File::options().write(true).open(&state).context(state.display())?;
        Ok(Self { _watched: Watched::hand_over(Frozen::Freezer, &file)?, path })
    }

    fn set(&self, state: &str) -> Outcome {
        let file = self.path.join("freezer.state");
        fs::write(&file, state).context(file.display())?;
        let is_so = || fs::read_to_string(&file).is_ok_and(|now| now.trim() == state);
        ensure!(await_until(SOON, is_so), "the cgroup does not become {state}");
        Ok(())
    }
}

impl Drop for Freezer {
    fn drop(&mut self) {
        let _ = fs::write(self.path.join("freezer.state"), "THAWED");
        let _ = Cgroup::at(&self.path).remove(seconds(2));
    }
}

fn frozen_cgroup(world: &mut World, place: Place) -> Outcome {
    beside(world, place, "true")
}

/// One who has left the cgroup, and whose children die without end, is killed beside one
/// who cannot be.
fn others_die(world: &mut World, place: Place) -> Outcome {
    let above = world.cgroup().context("no cgroup")?.path().join("cgroup.procs");
    let restless = format!(
        "setsid sh -c 'trap \"\" TERM; echo 0 > {}; i=0; \
         while [ $i -lt 9999 ]; do i=$((i+1)); (true & ); done'",
        above.display()
    );
    beside(world, place, &restless)
}

/// One member is frozen, and stops the end, beside another one.
fn beside(world: &mut World, place: Place, other: &str) -> Outcome {
    let freezer = Freezer::create(place)?;
    let mut ready = Lines::create(world, "ready")?;
    let command = format!("{other} & sh -c 'echo up > ready; exec sleep 50' & wait");
    let launch = Launch::new(place).options(&["--ladder", LADDER]);
    let run = launch.start(world, &["sh", "-c", &command])?;
    ready.expect("up")?;
    let sleeper = || world.survivors().into_iter().find(|process| process.comm == "sleep");
    ensure!(await_until(SOON, || sleeper().is_some()), "nobody sleeps");
    let sleeper = sleeper().context("nobody sleeps")?;
    fs::write(freezer.path.join("cgroup.procs"), sleeper.pid.to_string())
        .context("cgroup.procs")?;
    freezer.set("FROZEN")?;
    let pulled = Instant::now();
    send_signal(run.pid(), Signal::TERM)?;
    is_stuck(world, &run, &sleeper, pulled, Trigger::Term)?;
    freezer.set("THAWED")?;
    is_confirmed(world, &run, place, Trigger::Term)?;
    drop(freezer);
    all_clean(world)
}
