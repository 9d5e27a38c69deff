//! What `run --log` shows to cannot be written: the command goes on, the log has all of
//! it, and the loss is told in one line, in the report, and by the status.

use std::fs::{self, File};
use std::path::PathBuf;

use arena::{Context, Ended, Outcome, Registry, Signal, World, await_until, ensure, send_signal};
use rustix::mount::{MountFlags, mount};
use serde_json::Value;

use super::tools::{LONG, log, noise, same, stream};
use crate::desk::{all_clean, ask, record};
use crate::kit::{ANYWHERE, AS_ROOT, Launch, Lines, Place, Run, add, keeper};

pub fn register(registry: &mut Registry) {
    add(registry, "unwritable::full-disk", &AS_ROOT, &[], full_disk);
    add(registry, "unwritable::dev-full", &ANYWHERE, &[], dev_full);
    add(registry, "unwritable::stderr", &ANYWHERE, &[], stderr);
    add(registry, "unwritable::keeper-dies", &AS_ROOT, &[], keeper_dies);
}

/// What is written, and how much of it has room.
const WRITTEN: usize = 80_000;
const ROOM: usize = 65_536;

/// A file on a disk that has room for only a part of it.
fn small_disk(world: &World) -> Outcome<(PathBuf, File)> {
    let point = world.dir().join("small");
    fs::create_dir(&point).context("mount point")?;
    let options = c"size=64k";
    mount("small", &point, "tmpfs", MountFlags::empty(), options).context("mounting")?;
    let path = point.join("shown");
    let file = File::create(&path).context("shown")?;
    Ok((path, file))
}

fn full() -> Outcome<File> {
    File::options().write(true).open("/dev/full").context("/dev/full")
}

/// The report's mark on one stream.
fn expect_mark(report: &Value, name: &str, unshown: usize) -> Outcome {
    let told = stream(report, name)?;
    ensure!(told["unshown"] == unshown, "{unshown} bytes are missing, told is {told}");
    let why = told["refusal"].as_str().unwrap_or_default();
    ensure!(why.contains("no space left"), "why is not told: {told}");
    Ok(())
}

/// One line: how much is missing, of what, and where it is.
fn expect_line(run: &Run, id: &str, unshown: usize) -> Outcome {
    let said = run.stderr();
    ensure!(said.lines().count() == 1, "not one line: {said:?}");
    for part in ["stdout", "no space left", &unshown.to_string(), &format!("fullstop logs {id}")] {
        ensure!(said.contains(part), "no {part:?} in {said:?}");
    }
    Ok(())
}

fn full_disk(world: &mut World, place: Place) -> Outcome {
    let data = noise(WRITTEN, 5);
    fs::write(world.dir().join("data"), &data).context("data")?;
    let (path, shown) = small_disk(world)?;
    // A command that fails has its own status, and one that does not has that of any
    // program whose output cannot be written.
    for (round, (own, wanted)) in [(0, 1), (7, 7)].into_iter().enumerate() {
        shown.set_len(0).context("shown")?;
        let out = File::options().append(true).open(&path).context("shown")?;
        let script = format!("cat data; exit {own}");
        let name = format!("round-{round}");
        let launch = Launch::new(place).options(&["--log", "--name", &name]).stdout(out);
        let run = launch.start(world, &["sh", "-c", &script])?;
        let ended = world.wait(&run.spawned, LONG)?;
        ensure!(ended == Ended::Code(wanted), "run ended with {ended}: {}", run.stderr());
        let report = run.expect_ended(place, "exited")?;
        ensure!(report.leader() == Some(Ended::Code(own)), "the leader: {:?}", report.exit);
        same(&fs::read(&path).context("shown")?, &data[..ROOM]).context("what was shown")?;
        same(&log(world, &report.id, "out.log")?, &data).context("the log")?;
        expect_mark(&record(world, &report.id)?["report"], "out", WRITTEN - ROOM)?;
        expect_line(&run, &report.id, WRITTEN - ROOM)?;
        // Whoever only waits hears the same.
        ask(world, place, &["wait", &report.id])?.hear(world, LONG)?.expect(wanted)?;
    }
    all_clean(world)
}

fn dev_full(world: &mut World, place: Place) -> Outcome {
    let launch = Launch::new(place).options(&["--log"]).stdout(full()?);
    let (ended, run) = launch.finish(world, &["echo", "hi"])?;
    ensure!(ended == Ended::Code(1), "run ended with {ended}: {}", run.stderr());
    let report = run.expect_ended(place, "exited")?;
    same(&log(world, &report.id, "out.log")?, b"hi\n")?;
    expect_mark(&record(world, &report.id)?["report"], "out", 3)?;
    expect_line(&run, &report.id, 3)?;
    all_clean(world)
}

/// Nobody can be told, and the status says so all the same.
fn stderr(world: &mut World, place: Place) -> Outcome {
    let launch = Launch::new(place).options(&["--log"]).stderr(full()?);
    let (ended, run) = launch.finish(world, &["sh", "-c", "echo oh >&2"])?;
    ensure!(ended == Ended::Code(1), "run ended with {ended}");
    let report = run.expect_ended(place, "exited")?;
    same(&log(world, &report.id, "err.log")?, b"oh\n")?;
    expect_mark(&record(world, &report.id)?["report"], "err", 3)?;
    all_clean(world)
}

/// The guard knows what its keeper could not show.
fn keeper_dies(world: &mut World, place: Place) -> Outcome {
    let _go = Lines::create(world, "go")?;
    let launch = Launch::new(place).options(&["--log"]).stdout(full()?);
    let run = launch.start(world, &["sh", "-c", "echo hi; read go < go"])?;
    let id = || crate::desk::live_ids(world).pop();
    ensure!(await_until(LONG, || id().is_some()), "it is not listed");
    let id = id().context("it was there")?;
    let kept = || log(world, &id, "out.log").is_ok_and(|log| log == b"hi\n");
    ensure!(await_until(LONG, kept), "nothing is kept");
    // Whoever is asked has done all that came before.
    ask(world, place, &["signal", "cont", &id])?.hear(world, LONG)?.expect(0)?;
    send_signal(keeper(world)?.pid, Signal::KILL)?;
    let ended = world.wait(&run.spawned, LONG)?;
    ensure!(ended == Ended::Code(137), "run ended with {ended}: {}", run.stderr());
    expect_mark(&record(world, &id)?["report"], "out", 3)?;
    let said = run.stderr();
    ensure!(said.contains("3 of 3 bytes"), "the loss is not told: {said:?}");
    all_clean(world)
}
