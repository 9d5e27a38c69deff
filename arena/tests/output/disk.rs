//! A disk that fills up stops the logging, and nothing else.

use std::fs;
use std::path::PathBuf;
use std::process::Stdio;

use arena::{Context, Ended, Outcome, Registry, World, ensure};
use rustix::mount::{MountFlags, mount};

use super::tools::{Collect, LONG, events, noise, over, same, stream};
use crate::desk::{all_clean, start, tell};
use crate::kit::{AS_ROOT, Launch, Lines, Place, add};

pub fn register(registry: &mut Registry) {
    add(registry, "disk::full", &AS_ROOT, &[], full);
    add(registry, "disk::full-in-front", &AS_ROOT, &[], in_front);
    add(registry, "disk::full-to-the-end", &AS_ROOT, &[], to_the_end);
}

/// Makes the usual place of records a small file system, a third of which is taken.
fn small(world: &World) -> Outcome<PathBuf> {
    let point = world.state();
    fs::create_dir_all(&point).context("mount point")?;
    let options = c"size=768k,mode=700";
    mount("small", &point, "tmpfs", MountFlags::empty(), options).context("mounting")?;
    let filler = point.join("filler");
    fs::write(&filler, noise(256 << 10, 4)).context("filler")?;
    Ok(filler)
}

const SCRIPT: &str = "dd if=/dev/zero bs=64k count=40 2> /dev/null; echo told > told; \
     read go < go; echo still here; exit 5";

const WRITTEN: usize = 40 << 16;

fn full(world: &mut World, place: Place) -> Outcome {
    let (mut told, _go) = (Lines::create(world, "told")?, Lines::create(world, "go")?);
    let filler = small(world)?;
    let id = start(world, place, &[], &["sh", "-c", SCRIPT])?;
    // The command is not held up by it.
    told.expect("told")?;
    fs::remove_file(filler).context("filler")?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    let (said, report) = over(world, place, &id)?;
    said.expect(5)?;
    ensure!(report["reason"] == "exited", "{report}");
    let failed = events(world, &id, "log-failed")?;
    ensure!(failed.len() == 1, "it was told {} times: {failed:?}", failed.len());
    ensure!(failed[0]["stream"] == "out", "{}", failed[0]);
    let out = stream(&report, "out")?;
    ensure!(out["bytes"] == WRITTEN + 11, "{out}");
    ensure!(out["failure"].as_str().is_some_and(|why| why.contains("space")), "{out}");
    let kept = fs::metadata(crate::desk::dir(world, &id).join("out.log")).context("log")?.len();
    let cut = (WRITTEN + 11) as u64 - kept;
    ensure!(out["cut"] == cut, "{kept} bytes are kept, and told is {out}");
    all_clean(world)
}

/// Whoever reads it gets all of it.
fn in_front(world: &mut World, place: Place) -> Outcome {
    let (mut told, _go) = (Lines::create(world, "told")?, Lines::create(world, "go")?);
    let filler = small(world)?;
    let launch = Launch::new(place).options(&["--log"]).stdout(Stdio::piped());
    let mut run = launch.start(world, &["sh", "-c", SCRIPT])?;
    let shown = Collect::start(run.child.stdout.take().context("a pipe")?);
    told.expect("told")?;
    fs::remove_file(filler).context("filler")?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    let mut all = vec![0; WRITTEN];
    all.extend(b"still here\n");
    same(&shown.end()?, &all)?;
    let ended = world.wait(&run.spawned, LONG)?;
    ensure!(ended == Ended::Code(5), "run ended with {ended}: {}", run.stderr());
    let report = run.expect_ended(place, "exited")?;
    ensure!(events(world, &report.id, "log-failed")?.len() == 1, "not told once");
    all_clean(world)
}

/// Nobody makes room: it is known all the same how it ended.
fn to_the_end(world: &mut World, place: Place) -> Outcome {
    let (mut told, _go) = (Lines::create(world, "told")?, Lines::create(world, "go")?);
    small(world)?;
    for (name, end) in [("exits", 5), ("stopped", 143)] {
        let id = start(world, place, &["--name", name], &["sh", "-c", SCRIPT])?;
        told.expect("told")?;
        if name == "stopped" {
            tell(world, place, &["stop", &id])?;
        } else {
            fs::write(world.dir().join("go"), "now\n").context("go")?;
        }
        let (said, report) = over(world, place, &id)?;
        said.expect(end)?;
        let reason = if name == "stopped" { "stopped" } else { "exited" };
        ensure!(report["reason"] == reason, "{name}: {report}");
        let shown = tell(world, place, &["show", &id])?;
        ensure!(shown.contains(&format!("ended, {reason}")), "{name}: {shown}");
        // The next one finds the disk as the first one did.
        fs::remove_file(crate::desk::dir(world, &id).join("out.log")).context("log")?;
    }
    all_clean(world)
}
