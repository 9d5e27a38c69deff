//! A write to a frozen file system: truly unkillable until it is thawed.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Instant;

use arena::{
    Context, Ended, Need, Outcome, Ready, Registry, Signal, World, await_until, ensure, seconds,
    send_signal,
};

use super::kit::{EVERYWHERE, Launch, Lines, Place, SOON, add, all_clean, keeper, text};
use super::mapper;
use super::stuck::{BOUND, LADDER, Trigger, hangs, is_confirmed, is_stuck, zoo};
use super::thaw::{Frozen, Watched, is_watched, thaw_filesystem};

pub fn register(registry: &mut Registry) {
    let needs = [
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
        ("memory-is-locked", memory_locked),
    ] {
        add(registry, &format!("stuck::frozen-filesystem::{name}"), &EVERYWHERE, &needs, play);
    }
}

fn loop_devices() -> Result<(), String> {
    File::open("/dev/loop-control").map(drop).map_err(|error| format!("/dev/loop-control: {error}"))
}

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
    ensure!(announced == 1, "the writer announced {announced}");
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
    is_confirmed(world, &run, place, trigger)?;
    drop(disk);
    all_clean(world)
}

/// A member of which even the command line cannot be read: one thread waits in a
/// page fault on the frozen file system, another for it, with the memory map
/// locked. Whoever reads `/proc/PID/cmdline` now waits as well, and the keeper
/// must not.
fn memory_locked(world: &mut World, place: Place) -> Outcome {
    let disk = Disk::mount(world)?;
    let file = disk.point.join("file");
    fs::write(&file, vec![1; 8192]).context("file")?;
    fs::set_permissions(&file, Permissions::from_mode(0o666)).context("chmod")?;
    let mut ready = Lines::create(world, "ready")?;
    let _go = Lines::create(world, "go")?;
    let member = mapper::command(world, &file);
    let member: Vec<&str> = member.iter().map(String::as_str).collect();
    let run = Launch::new(place).options(&["--ladder", LADDER]).start(world, &member)?;
    ready.expect("up")?;
    let find = || world.survivors().into_iter().find(|process| process.comm == mapper::NAME);
    let mapper = find().context("no member")?;
    disk.freeze(world)?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    ensure!(await_until(SOON, || threads_in(mapper.pid, 'D') == 2), "it does not hang");
    send_signal(run.pid(), Signal::TERM)?;
    // The driver would wait as well if it took a census now.
    let ended = world.wait(&run.spawned, BOUND)?;
    ensure!(ended == Ended::Code(120), "run ended with {ended}");
    let report = run.report()?;
    let named: Vec<i32> = report.survivors.iter().map(|member| member.pid).collect();
    ensure!(named == [mapper.pid], "{} lives, named are {named:?}", mapper.pid);
    let said = run.stderr();
    ensure!(said.contains(&format!("pid {} ", mapper.pid)), "it is not named: {said}");
    disk.thaw(world)?;
    is_confirmed(world, &run, place, Trigger::Term)?;
    drop(disk);
    all_clean(world)
}

/// How many threads of a process are in this state. Their `stat` needs no lock.
fn threads_in(pid: i32, state: char) -> usize {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let stats = tasks.filter_map(|task| fs::read_to_string(task.path().join("stat")).ok());
    stats.filter(|stat| stat.rsplit(") ").next().is_some_and(|s| s.starts_with(state))).count()
}
