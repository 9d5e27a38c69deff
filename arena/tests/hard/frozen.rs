//! Members that nobody can kill, and those that only look like it.
//!
//! A write to a frozen file system, a task in a frozen cgroup of version 1 and
//! a FUSE read whose request is out are truly unkillable: such a run is `stuck`,
//! says so, and is confirmed once they are let go. A FUSE read that waits for a
//! page, a vfork parent and a zombie in a tracer's hands are the controls.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use arena::report::{Member, Report};
use arena::{
    Cgroup, Context, Ended, Need, Outcome, Process, Ready, Registry, Signal, Spawned, World,
    await_until, ensure, millis, seconds, send_signal,
};

use super::kit::{
    AS_ROOT, Cage, EVERYWHERE, Launch, Lines, Place, Run, SOON, add, all_clean, children, keeper,
    text,
};
use super::thaw::{Frozen, Watched, is_watched, run_name, thaw_filesystem};

/// Does not wait long for a proof that will not come.
const LADDER: &str = "term@leader:200ms,term@tree:200ms,kill:600ms";
/// What the ladder takes, and the five seconds of promise 4.
const BOUND: Duration = millis(200 + 200 + 5000);
/// A stuck run is tried again every second.
const RETRY: Duration = seconds(1);

pub fn register(registry: &mut Registry) {
    let ext4 = [
        Need::Program("mkfs.ext4"),
        Need::Program("fsfreeze"),
        Need::Check(loop_devices),
        Need::Check(is_watched),
    ];
    for (name, play) in [
        ("term", (|w, p| filesystem(w, p, Trigger::Term)) as fn(&mut World, Place) -> Outcome),
        ("timeout", |w, p| filesystem(w, p, Trigger::Timeout)),
        ("leader-exits", |w, p| filesystem(w, p, Trigger::LeaderExits)),
        ("run-killed", |w, p| filesystem(w, p, Trigger::KillRun)),
        ("keeper-killed", |w, p| filesystem(w, p, Trigger::KillKeeper)),
    ] {
        add(registry, &format!("stuck::frozen-filesystem::{name}"), &EVERYWHERE, &ext4, play);
    }
    let freezer = [Need::Check(freezer_mounted), Need::Check(is_watched)];
    add(registry, "stuck::frozen-cgroup", &EVERYWHERE, &freezer, frozen_cgroup);
    let fuse = [Need::Check(fuse_device)];
    add(registry, "stuck::fuse-request-is-out", &AS_ROOT, &fuse, fuse_direct);
    add(registry, "control::fuse-read", &AS_ROOT, &fuse, fuse_read);
    add(registry, "control::vfork-parent", &EVERYWHERE, &[], vfork_parent);
    let strace = [Need::Program("strace")];
    add(registry, "control::traced-leader", &EVERYWHERE, &strace, |w, p| traced(w, p, Whom::Leader));
    add(registry, "control::traced-child", &EVERYWHERE, &strace, |w, p| traced(w, p, Whom::Child));
    add(registry, "control::traced-child-of-an-exited-leader", &EVERYWHERE, &strace, |w, p| {
        traced(w, p, Whom::ChildAfterExit)
    });
}

// ---- what the machine must have --------------------------------------------

fn loop_devices() -> Result<(), String> {
    File::open("/dev/loop-control").map(drop).map_err(|error| format!("/dev/loop-control: {error}"))
}

fn fuse_device() -> Result<(), String> {
    let device = File::options().read(true).write(true).open("/dev/fuse");
    device.map(drop).map_err(|error| format!("/dev/fuse: {error}"))
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

// ---- the frozen file system -------------------------------------------------

/// A small file system of our own, in a file. Whatever happens it is thawed and
/// unmounted; the watch outside does it if we cannot.
struct Disk {
    point: PathBuf,
    _watched: Watched,
}

impl Disk {
    fn mount(world: &mut World) -> Outcome<Self> {
        let (image, point) = (world.scratch().join("disk"), world.scratch().join("mounted"));
        File::create(&image).and_then(|file| file.set_len(16 << 20)).context("image")?;
        fs::create_dir(&point).context("mount point")?;
        command(world, &["mkfs.ext4", "-q", "-F", &text(&image)])?;
        command(world, &["mount", "-o", "loop", &text(&image), &text(&point)])?;
        fs::set_permissions(&point, Permissions::from_mode(0o777)).context("chmod")?;
        let root = File::open(&point).context("the mounted directory")?;
        let watched = Watched::hand_over(Frozen::Filesystem, &root)?;
        Ok(Self { point, _watched: watched })
    }

    fn freeze(&self, world: &mut World) -> Outcome {
        command(world, &["fsfreeze", "-f", &text(&self.point)])
    }

    fn thaw(&self, world: &mut World) -> Outcome {
        command(world, &["fsfreeze", "-u", &text(&self.point)])
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        thaw_filesystem(&self.point);
        let _ = std::process::Command::new("umount").arg("-l").arg(&self.point).status();
    }
}

/// Runs a tool to its end.
fn command(world: &mut World, words: &[&str]) -> Outcome {
    let mut tool = world.command(words[0]);
    let log = File::create(world.out().join("tool")).context("log")?;
    tool.args(&words[1..]).stderr(log);
    let spawned = world.spawn(words[0], &mut tool)?;
    let ended = world.wait(&spawned, seconds(10))?;
    let said = fs::read_to_string(world.out().join("tool")).unwrap_or_default();
    ensure!(ended == Ended::Code(0), "{words:?} ended with {ended}: {said}");
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trigger {
    Term,
    Timeout,
    LeaderExits,
    KillRun,
    KillKeeper,
}

impl Trigger {
    fn reason(self) -> &'static str {
        match self {
            Self::Term => "stopped",
            Self::Timeout => "overall-timeout",
            Self::LeaderExits => "exited",
            Self::KillRun => "host-gone",
            Self::KillKeeper => "keeper-died",
        }
    }
}

fn filesystem(world: &mut World, place: Place, trigger: Trigger) -> Outcome {
    let disk = Disk::mount(world)?;
    let mut ready = Ready::create(&world.dir())?;
    let _go = Lines::create(world, "go")?;
    let file = text(disk.point.join("file"));
    let member = format!("{} --dir . frozen-writer {file}", text(world.zoo()));
    let mut launch = Launch::new(place).options(&["--ladder", LADDER]);
    let shell = match trigger {
        Trigger::LeaderExits => format!("{member} & read go < go; exit 7"),
        _ => format!("exec {member}"),
    };
    if trigger == Trigger::Timeout {
        launch = launch.options(&["--timeout", "1s"]);
    }
    let run = launch.start(world, &["sh", "-c", &shell])?;
    let announced = ready.wait(seconds(10))?;
    ensure!(announced == Some(1), "the writer announced {announced:?}");
    let writer = zoo(world)?;
    disk.freeze(world)?;
    hangs(&writer)?;
    let pulled = Instant::now();
    match trigger {
        Trigger::Term => send_signal(run.pid(), Signal::TERM)?,
        Trigger::Timeout => {}
        Trigger::LeaderExits => fs::write(world.dir().join("go"), "now\n").context("go")?,
        Trigger::KillRun => send_signal(run.pid(), Signal::KILL)?,
        Trigger::KillKeeper => send_signal(keeper(world)?.pid, Signal::KILL)?,
    }
    is_stuck(world, &run, &writer, pulled, trigger)?;
    disk.thaw(world)?;
    is_confirmed(world, &run, place, trigger.reason())?;
    drop(disk);
    all_clean(world)
}

/// The one zoo member of this world.
fn zoo(world: &World) -> Outcome<Process> {
    let mut all = world.survivors();
    all.retain(|process| process.comm == "zoo");
    all.pop().context("no member of the zoo is there")
}

/// Waits until a process hangs in the kernel, and is not just passing through.
fn hangs(process: &Process) -> Outcome {
    let asleep = || Process::read(process.pid).is_some_and(|now| now.state == 'D');
    let still = || (0..20).all(|_| asleep() && !process.wchan().is_empty());
    ensure!(await_until(SOON, still), "{process} does not hang");
    Ok(())
}

/// `run` has returned in time and said who lives, and nobody else does.
fn is_stuck(
    world: &World,
    run: &Run,
    member: &Process,
    pulled: Instant,
    trigger: Trigger,
) -> Outcome {
    let ended = world.wait(&run.spawned, BOUND)?;
    let took = pulled.elapsed();
    ensure!(took < BOUND, "run returned after {took:?}");
    if trigger == Trigger::KillRun {
        // Nobody waits for the keeper's word any more; it gives it all the same.
        let said = || run.report().is_ok();
        ensure!(await_until(BOUND + seconds(1), said), "no report from the keeper");
    } else {
        ensure!(ended == Ended::Code(120), "run ended with {ended}, not with status 120");
        names(&run.stderr(), member)?;
    }
    let report = run.report()?;
    ensure!(report.state == "stuck", "the report says {}", report.state);
    ensure!(report.reason == trigger.reason(), "the reason is {}", report.reason);
    ensure!(report.proof.is_none(), "stuck, with the proof {:?}", report.proof);
    ensure!(report.has_step("kill"), "stuck, and nothing was killed: {:?}", report.steps);
    one_survivor(&report, member)?;
    let mut alive = world.survivors();
    alive.retain(|process| process.pid != member.pid);
    let of_ours = |process: &Process| process.comm.starts_with("fullstop");
    ensure!(alive.iter().all(of_ours), "others live as well: {alive:?}");
    ensure!(alive.len() == 1, "nobody keeps trying: {alive:?}");
    world.expect_bystanders_untouched()
}

/// stderr names the survivor with pid, state and wait channel.
fn names(said: &str, member: &Process) -> Outcome {
    let pid = format!("pid {} ", member.pid);
    let line = said.lines().find(|line| line.contains(&pid));
    let line = line.context(format!("the survivor {} is not named: {said}", member.pid))?;
    let (state, wchan) = ("state D".to_owned(), member.wchan());
    ensure!(line.contains(&state) && line.contains(&wchan), "{line:?} lacks {state} or {wchan}");
    Ok(())
}

fn one_survivor(report: &Report, member: &Process) -> Outcome {
    let [Member { pid, state, start_ticks, wchan, .. }] = report.survivors.as_slice() else {
        return Err(format!("{} survivors are named, not one", report.survivors.len()));
    };
    let named = (*pid, *state, *start_ticks, wchan.clone().unwrap_or_default());
    let real = (member.pid, 'D', member.start_ticks, member.wchan());
    ensure!(named == real, "the survivor is named {named:?}, and is {real:?}");
    Ok(())
}

/// Let go, the member dies; the run notices by itself and says so.
fn is_confirmed(world: &World, run: &Run, place: Place, reason: &str) -> Outcome {
    world.expect_extinct(RETRY + seconds(2)).context("after it was let go")?;
    let report = run.expect_ended(place, reason)?;
    let kills = report.steps.iter().filter(|step| step.step == "kill").count();
    ensure!(kills == 1, "the last step is told {kills} times");
    Ok(())
}

// ---- the frozen cgroup ------------------------------------------------------

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
    let freezer = Freezer::create(place)?;
    let mut ready = Lines::create(world, "ready")?;
    let command = "sh -c 'echo up > ready; exec sleep 50' & wait";
    let launch = Launch::new(place).options(&["--ladder", LADDER]);
    let run = launch.start(world, &["sh", "-c", command])?;
    ready.expect("up")?;
    let sleeper = || world.survivors().into_iter().find(|process| process.comm == "sleep");
    ensure!(await_until(SOON, || sleeper().is_some()), "nobody sleeps");
    let sleeper = sleeper().context("nobody sleeps")?;
    fs::write(freezer.path.join("cgroup.procs"), sleeper.pid.to_string()).context("cgroup.procs")?;
    freezer.set("FROZEN")?;
    let pulled = Instant::now();
    send_signal(run.pid(), Signal::TERM)?;
    is_stuck(world, &run, &sleeper, pulled, Trigger::Term)?;
    freezer.set("THAWED")?;
    is_confirmed(world, &run, place, "stopped")?;
    drop(freezer);
    all_clean(world)
}

// ---- FUSE -------------------------------------------------------------------

/// A file system that answers everything but reads, and a member that reads.
fn fuse(world: &mut World, place: Place, file: &str) -> Outcome<(Spawned, Run, Process)> {
    let point = world.scratch().join("mounted");
    fs::create_dir(&point).context("mount point")?;
    let mut serving = Lines::create(world, "serving")?;
    let mut server = world.command(world.zoo());
    server.arg("--dir").arg(world.dir()).arg("fuse-serve").arg(&point);
    let server = world.spawn("fuse-serve", &mut server)?;
    serving.expect("serving")?;
    world.outsider(server.pid);
    let mut ready = Ready::create(&world.dir())?;
    let (zoo_path, path) = (text(world.zoo()), text(point.join(file)));
    let launch = Launch::new(place).options(&["--ladder", LADDER]);
    let run = launch.start(world, &[&zoo_path, "--dir", ".", "fuse-reader", &path])?;
    let announced = ready.wait(seconds(10))?;
    ensure!(announced == Some(1), "the reader announced {announced:?}");
    let reader = zoo(world)?;
    Ok((server, run, reader))
}

fn leave(world: &World, server: &Spawned) -> Outcome {
    send_signal(server.pid, Signal::KILL)?;
    world.wait(server, SOON).map(drop)
}

fn fuse_read(world: &mut World, place: Place) -> Outcome {
    let (server, run, reader) = fuse(world, place, "file")?;
    hangs(&reader)?;
    send_signal(run.pid(), Signal::TERM)?;
    let ended = world.wait(&run.spawned, BOUND)?;
    let report = run.expect_ended(place, "stopped")?;
    // A wait for a page ends with any signal that kills.
    ensure!(ended == Ended::Signal(15), "run ended with {ended}: {:?}", report.steps);
    world.expect_extinct(Duration::ZERO)?;
    leave(world, &server)?;
    all_clean(world)
}

fn fuse_direct(world: &mut World, place: Place) -> Outcome {
    let (server, run, reader) = fuse(world, place, "direct")?;
    let asleep = || Process::read(reader.pid).is_some_and(|now| matches!(now.state, 'D' | 'S'));
    ensure!(await_until(SOON, || asleep() && reader.wchan().contains("fuse") || reader.wchan().contains("request")), "{reader} does not wait");
    let pulled = Instant::now();
    send_signal(run.pid(), Signal::TERM)?;
    is_stuck(world, &run, &reader, pulled, Trigger::Term)?;
    leave(world, &server)?;
    is_confirmed(world, &run, place, "stopped")?;
    all_clean(world)
}

fn vfork_parent(world: &mut World, place: Place) -> Outcome {
    let mut ready = Ready::create(&world.dir())?;
    let zoo_path = text(world.zoo());
    let launch = Launch::new(place).options(&["--ladder", LADDER]);
    let run = launch.start(world, &[&zoo_path, "--dir", ".", "vfork-parent"])?;
    let announced = ready.wait(seconds(10))?;
    ensure!(announced == Some(3), "the member announced {announced:?}");
    let all = world.survivors();
    ensure!(all.iter().any(|process| process.state == 'D'), "nobody shows D");
    send_signal(run.pid(), Signal::TERM)?;
    world.wait(&run.spawned, BOUND)?;
    run.expect_ended(place, "stopped")?;
    all_clean(world)
}

// ---- in a tracer's hands ----------------------------------------------------

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whom {
    Leader,
    Child,
    ChildAfterExit,
}

/// A member whose remains an outside tracer holds: dead, and not stuck.
fn traced(world: &mut World, place: Place, whom: Whom) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let launch = Launch::new(place).options(&["--ladder", LADDER]);
    let command = "sh -c 'echo up > ready; exec sleep 50' & read go < go; exit 7";
    let run = launch.start(world, &["sh", "-c", command])?;
    ready.expect("up")?;
    let leader = children(keeper(world)?.pid).first().context("no leader")?.pid;
    let held = match whom {
        Whom::Leader => leader,
        Whom::Child | Whom::ChildAfterExit => children(leader).first().context("no child")?.pid,
    };
    let tracer = hold_by_tracer(world, held)?;
    let asked = Instant::now();
    if whom == Whom::ChildAfterExit {
        fs::write(world.dir().join("go"), "now\n").context("go")?;
    } else {
        send_signal(run.pid(), Signal::TERM)?;
    }
    let ended = world.wait(&run.spawned, BOUND)?;
    let took = asked.elapsed();
    ensure!(ended != Ended::Code(120), "the dead are called stuck, after {took:?}");
    world.expect_extinct(Duration::ZERO)?;
    let report = run.report()?;
    ensure!(report.state == "ended", "the report says {}", report.state);
    let proof = match place.cage {
        Cage::Cgroup => "cgroup-empty",
        Cage::Tree => "scan-clean",
    };
    ensure!(report.proof.as_deref() == Some(proof), "the proof is {:?}", report.proof);
    if whom == Whom::ChildAfterExit {
        ensure!(ended == Ended::Code(7), "run ended with {ended}");
    }
    send_signal(tracer.pid, Signal::KILL)?;
    world.wait(&tracer, SOON)?;
    all_clean(world)
}

/// A tracer that sleeps: what dies in its hands stays unburied.
fn hold_by_tracer(world: &mut World, pid: i32) -> Outcome<Spawned> {
    let mut strace = world.command("strace");
    strace.args(["-qq", "-o", "/dev/null", "-p", &pid.to_string()]);
    let tracer = world.spawn("strace", &mut strace)?;
    world.outsider(tracer.pid);
    let status = Path::new("/proc").join(pid.to_string()).join("status");
    let line = format!("TracerPid:\t{}", tracer.pid);
    let traced = || fs::read_to_string(&status).is_ok_and(|text| text.contains(&line));
    ensure!(await_until(SOON, traced), "{pid} is not traced");
    let calm = || Process::read(pid).is_some_and(|process| process.state == 'S');
    ensure!(await_until(SOON, calm), "{pid} is not let go on");
    send_signal(tracer.pid, Signal::STOP)?;
    let stopped = || Process::read(tracer.pid).is_some_and(|process| process.state == 'T');
    ensure!(await_until(SOON, stopped), "the tracer does not stop");
    Ok(tracer)
}
