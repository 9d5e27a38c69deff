//! A task in a frozen cgroup of version 1: truly unkillable until it is thawed.

use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Instant;

use arena::{
    Cgroup, Context, Need, Outcome, Process, Registry, Signal, World, await_until, ensure, seconds,
    send_signal,
};

use super::kit::{AS_ROOT, Cage, EVERYWHERE, Launch, Lines, Place, Run, SOON, add, all_clean};
use super::stuck::{LADDER, Trigger, is_confirmed, is_stuck};
use super::thaw::{Frozen, Watched, is_watched, run_name};
use super::traced::{idle_tracer, tracer_needs};

pub fn register(registry: &mut Registry) {
    let needs = [Need::Check(freezer_mounted), Need::Check(is_watched)];
    add(registry, "stuck::frozen-cgroup", &EVERYWHERE, &needs, frozen_cgroup);
    add(registry, "stuck::who-can-die-does", &AS_ROOT, &needs, others_die);
    let needs = [&needs[..], &tracer_needs()].concat();
    add(registry, "stuck::beside-remains", &EVERYWHERE, &needs, remains);
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
    /// `whose`: of all scenarios that are played at the same time.
    fn create(place: Place, whose: &str) -> Outcome<Self> {
        let name = format!("{}-{whose}-{}-{}", run_name(), place.cage, place.user);
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
    let frozen = beside(world, place, "alone", "echo other > ready")?;
    frozen.thaw()?;
    is_confirmed(world, &frozen.run, place, Trigger::Term)?;
    all_clean(world)
}

/// One who has left the cgroup, and whose children die without end, is killed beside one
/// who cannot be.
fn others_die(world: &mut World, place: Place) -> Outcome {
    let above = world.cgroup().context("no cgroup")?.path().join("cgroup.procs");
    let restless = format!(
        "setsid sh -c 'trap \"\" TERM; echo 0 > {}; echo other > ready; i=0; \
         while [ $i -lt 9999 ]; do i=$((i+1)); (true & ); done'",
        above.display()
    );
    let frozen = beside(world, place, "restless", &restless)?;
    frozen.thaw()?;
    is_confirmed(world, &frozen.run, place, Trigger::Term)?;
    all_clean(world)
}

/// Beside the frozen one there are remains that a tracer holds. Once the frozen one is
/// dead as well nobody lives, whatever becomes of the remains.
fn remains(world: &mut World, place: Place) -> Outcome {
    let other = "sh -c 'echo other > ready; exec tail -f /dev/null'";
    let mut tracer = None;
    let frozen = beside_whom(world, place, "remains", other, |world| {
        tracer = Some(idle_tracer(world, named(world, "tail")?.pid)?);
        Ok(())
    })?;
    frozen.thaw()?;
    world.expect_extinct(seconds(3)).context("after it was thawed")?;
    let report = frozen.run.report()?;
    let said = (report.state.as_str(), report.proof.as_deref());
    let proof = match place.cage {
        Cage::Cgroup => "cgroup-empty",
        Cage::Tree => "scan-clean",
    };
    ensure!(said == ("ended", Some(proof)), "it says {said:?}");
    let tracer = tracer.context("no tracer")?;
    send_signal(tracer.pid, Signal::KILL)?;
    world.wait(&tracer, SOON)?;
    drop(frozen);
    all_clean(world)
}

/// Whoever goes by that name, once it does.
fn named(world: &World, name: &str) -> Outcome<Process> {
    let find = || world.survivors().into_iter().find(|process| process.comm == name);
    ensure!(await_until(SOON, || find().is_some()), "there is no {name}");
    find().context(format!("there is no {name}"))
}

/// A run that is stuck, for one of its members is frozen.
struct Stuck {
    run: Run,
    freezer: Freezer,
}

impl Stuck {
    fn thaw(&self) -> Outcome {
        self.freezer.set("THAWED")
    }
}

fn beside(world: &mut World, place: Place, whose: &str, other: &str) -> Outcome<Stuck> {
    beside_whom(world, place, whose, other, |_| Ok(()))
}

/// One member is frozen, and stops the end, beside another one, who says that it is
/// there.
fn beside_whom(
    world: &mut World,
    place: Place,
    whose: &str,
    other: &str,
    before_the_stop: impl FnOnce(&mut World) -> Outcome,
) -> Outcome<Stuck> {
    let freezer = Freezer::create(place, whose)?;
    let mut ready = Lines::create(world, "ready")?;
    let command = format!("{other} & read go < go; sh -c 'echo up > ready; exec sleep 50' & wait");
    let _go = Lines::create(world, "go")?;
    let launch = Launch::new(place).options(&["--ladder", LADDER]);
    let run = launch.start(world, &["sh", "-c", &command])?;
    ready.expect("other")?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    ready.expect("up")?;
    let sleeper = named(world, "sleep")?;
    fs::write(freezer.path.join("cgroup.procs"), sleeper.pid.to_string())
        .context("cgroup.procs")?;
    freezer.set("FROZEN")?;
    before_the_stop(world)?;
    let pulled = Instant::now();
    send_signal(run.pid(), Signal::TERM)?;
    is_stuck(world, &run, &sleeper, pulled, Trigger::Term)?;
    Ok(Stuck { run, freezer })
}
