//! A group that is closed on a full file system, and starts that were under way when their
//! group was closed and come to their birth after it was opened again.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use arena::{Context, Outcome, Process, Registry, Signal, World, await_until, ensure, send_signal};
use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};

use super::desk::{
    QUIET, RunningCommand, all_clean, ask, live_ids, names, nobody, record, run_ids, say, start,
    tell, who,
};
use super::disk::{fill, is_written, small_state};
use crate::kit::{EVERYWHERE, Lines, Place, SOON, add, stop as stop_process};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("without-space", without_space as fn(&mut World, Place) -> Outcome),
        ("without-inodes", without_inodes),
        ("late-start", late_start),
        ("late-run", late_run),
        ("late-restart", late_restart),
        ("pruned-meanwhile", pruned_meanwhile),
    ] {
        add(registry, &format!("closing::{name}"), &EVERYWHERE, &[], play);
    }
}

fn without_space(world: &mut World, place: Place) -> Outcome {
    on_a_full_disk(world, place, fill)
}

fn without_inodes(world: &mut World, place: Place) -> Outcome {
    on_a_full_disk(world, place, |point| {
        fs::create_dir(point.join("filler")).context("filler")?;
        let name = |n: usize| point.join("filler").join(n.to_string());
        // More than the file system has.
        let refused = (0..1000).find(|n| File::create(name(*n)).is_err());
        ensure!(refused.is_some_and(|n| n > 0), "the inodes never end");
        // Space is left: only new files are refused.
        fs::write(name(0), "room").context("space")
    })
}

/// The group above is closed, which no run has joined by itself.
fn on_a_full_disk(world: &mut World, place: Place, fill: fn(&Path) -> Outcome) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let point = small_state(world, place)?;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let id = start(world, place, &["--group", "plan/a"], &["sh", "-c", QUIET])?;
        who(world, &id)?;
        ids.push(id);
    }
    fill(&point)?;
    let said = say(world, place, &["group", "close", "--json", "plan"])?;
    nobody(world)?;
    for id in &ids {
        is_written(world, place, id, "group-closed")?;
    }
    said.expect(0)?;
    let report = said.json()?;
    ensure!(report["closed"] == true, "{report}");
    ensure!(report["errors"].as_array().is_some_and(Vec::is_empty), "{report}");
    ensure!(report["reports"].as_array().is_some_and(|all| all.len() == ids.len()), "{report}");
    let listed = say(world, place, &["group", "ls", "--json"])?.json()?;
    ensure!(listed[0]["closed_by"] == "plan", "it lists {listed}");
    let words = ["start", "--group", "plan/a", "--", "sh", "-c", QUIET];
    say(world, place, &words)?.expect_one_line(125, "group plan is closed")?;
    // Closed once more, and opened, on a disk that is still full.
    say(world, place, &["group", "close", "plan"])?.expect(0)?;
    tell(world, place, &["group", "open", "plan"])?;
    let filler = point.join("filler");
    let emptied =
        if filler.is_dir() { fs::remove_dir_all(filler) } else { fs::remove_file(filler) };
    emptied.context("filler")?;
    let id = start(world, place, &["--group", "plan/a"], &["true"])?;
    say(world, place, &["wait", &id])?.expect(0)?;
    all_clean(world)
}

/// A pipe that a start reads a secret from: it waits there until something is written.
fn make_secret(world: &World) -> Outcome {
    let (path, everyone) = (world.dir().join("secret"), Mode::from_raw_mode(0o666));
    mknodat(CWD, &path, FileType::Fifo, everyone, 0).context("mknod")?;
    rustix::fs::chmod(&path, everyone).context("chmod")
}

/// Waits until the start reads its secret, gives these orders while it does, and then lets it
/// go on.
fn meanwhile(world: &mut World, place: Place, orders: &[&[&str]]) -> Outcome {
    let path = world.dir().join("secret");
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    // It can be opened for writing once there is a reader.
    let open = || File::options().write(true).custom_flags(flags).open(&path);
    let mut secret = None;
    let reads = || {
        secret = open().ok();
        secret.is_some()
    };
    ensure!(await_until(SOON, reads), "it does not read its secret");
    for order in orders {
        tell(world, place, order)?;
    }
    let mut secret = secret.context("a secret")?;
    secret.write_all(b"secret").context("the secret")
}

/// It is refused in one line, was never born, and leaves nothing.
fn expect_refused(world: &mut World, asked: &RunningCommand) -> Outcome {
    let said = asked.hear(world, SOON)?;
    nobody(world)?;
    ensure!(!world.dir().join("born").exists(), "it was born into a group that was closed");
    said.expect_one_line(125, "group plan was closed")?;
    ensure!(said.out.is_empty(), "it printed {:?}", said.out);
    ensure!(run_ids(world).is_empty(), "there is a record: {:?}", run_ids(world));
    ensure!(live_ids(world).is_empty(), "it is listed");
    let members = names(&world.state().join("groups/plan/a/.members"));
    ensure!(members.is_empty(), "it is a member: {members:?}");
    Ok(())
}

/// Asks for a start that waits for its secret.
fn ask_for(world: &mut World, place: Place, verb: &str) -> Outcome<RunningCommand> {
    make_secret(world)?;
    let cage = place.cage.to_string();
    let words = [verb, "--cage", &cage, "--group", "plan/a", "--secret-fd", "TOKEN=secret", "--"];
    ask(world, place, &[&words[..], &["sh", "-c", ": > born"]].concat())
}

fn late(world: &mut World, place: Place, verb: &str) -> Outcome {
    let asked = ask_for(world, place, verb)?;
    meanwhile(world, place, &[&["group", "close", "plan"], &["group", "open", "plan"]])?;
    expect_refused(world, &asked)?;
    // What is asked for now is started.
    let id = start(world, place, &["--group", "plan/a"], &["true"])?;
    say(world, place, &["wait", &id])?.expect(0)?;
    all_clean(world)
}

/// A prune has no start refused.
fn pruned_meanwhile(world: &mut World, place: Place) -> Outcome {
    let asked = ask_for(world, place, "start")?;
    meanwhile(world, place, &[&["prune"]])?;
    let said = asked.hear(world, SOON)?;
    said.expect(0)?;
    say(world, place, &["wait", said.out.trim_end()])?.expect(0)?;
    ensure!(world.dir().join("born").exists(), "it was not born");
    // Once it is over, nothing holds the group any more.
    tell(world, place, &["prune"])?;
    let left = names(&world.state().join("groups"));
    ensure!(left.is_empty(), "left: {left:?}");
    all_clean(world)
}

fn late_start(world: &mut World, place: Place) -> Outcome {
    late(world, place, "start")
}

fn late_run(world: &mut World, place: Place) -> Outcome {
    late(world, place, "run")
}

/// A restart sleeps between the stop and the next generation.
fn late_restart(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _go) = (Lines::create(world, "ready")?, Lines::create(world, "go")?);
    let script = "echo up >> born; trap 'read g < go; exit 0' TERM; echo up > ready; \
                  while :; do read n < never; done";
    let _never = Lines::create(world, "never")?;
    let options = ["--group", "plan/a", "--ladder", "term@leader:20s,kill"];
    let id = start(world, place, &options, &["sh", "-c", script])?;
    ready.expect("up")?;
    let asked = ask(world, place, &["restart", &id])?;
    let stopping = || record(world, &id).is_ok_and(|r| r["state"] == "stopping");
    ensure!(await_until(SOON, stopping), "it is not being stopped");
    let restart = Process::read(asked.spawned.pid).context("the restart")?;
    stop_process(restart.pid)?;
    let close = ask(world, place, &["group", "close", "plan"])?;
    fs::write(world.dir().join("go"), "now\n").context("go")?;
    close.hear(world, SOON)?.expect(0)?;
    tell(world, place, &["group", "open", "plan"])?;
    send_signal(restart.pid, Signal::CONT)?;
    let said = asked.hear(world, SOON)?;
    nobody(world)?;
    let born = fs::read_to_string(world.dir().join("born")).context("born")?;
    ensure!(born == "up\n", "it was born again into a group that was closed");
    said.expect_one_line(125, "group plan was closed")?;
    ensure!(said.err.contains("is ended"), "what is dead is not said: {:?}", said.err);
    ensure!(record(world, &id)?["generation"] == 1, "{}", record(world, &id)?);
    // What is asked for now is started.
    tell(world, place, &["restart", &id])?;
    ready.expect("up")?;
    tell(world, place, &["kill", &id])?;
    all_clean(world)
}
