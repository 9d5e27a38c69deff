//! Guard and keeper do not stand in the caller's directory, and hold no file system by it;
//! the command does, and whatever was said by a relative path means what it meant there.

use std::fs;
use std::path::{Path, PathBuf};

use arena::{Context, Outcome, Process, Registry, World, await_until, ensure};

use super::desk::{QUIET, all_clean, ask, ask_program, ask_with, live_ids, start, tell, who};
use crate::kit::{AS_ROOT, EVERYWHERE, Lines, Place, SOON, add, text};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("start", start_stands_apart as fn(&mut World, Place) -> Outcome),
        ("run", run_stands_apart),
        ("relative-paths", relative_paths),
    ] {
        add(registry, &format!("directory::{name}"), &EVERYWHERE, &[], play);
    }
    add(registry, "directory::can-be-unmounted", &AS_ROOT, &[], unmounted);
}

fn cwd(process: &Process) -> Outcome<PathBuf> {
    fs::read_link(format!("/proc/{}/cwd", process.pid)).context("its directory")
}

/// Only the command is where the caller was.
fn expect_apart(world: &World, id: &str) -> Outcome {
    let who = who(world, id)?;
    let leader = cwd(&who.leader)?;
    ensure!(leader == world.dir(), "the command is in {}", leader.display());
    for process in [&who.guard, &who.keeper] {
        let gone = || cwd(process).is_ok_and(|at| at == Path::new("/"));
        ensure!(await_until(SOON, gone), "in {:?}: {process}", cwd(process));
    }
    Ok(())
}

fn start_stands_apart(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    for pty in [&[][..], &["--pty"]] {
        let id = start(world, place, pty, &["sh", "-c", QUIET])?;
        expect_apart(world, &id)?;
        tell(world, place, &["restart", &id])?;
        expect_apart(world, &id)?;
        tell(world, place, &["stop", &id])?;
    }
    all_clean(world)
}

fn run_stands_apart(world: &mut World, place: Place) -> Outcome {
    let mut told = Lines::create(world, "told")?;
    let _never = Lines::create(world, "never")?;
    let cage = place.cage.to_string();
    let script = format!("echo up > told; {QUIET}");
    let asked = ask(world, place, &["run", "--cage", &cage, "--", "sh", "-c", &script])?;
    told.expect("up")?;
    let id = live_ids(world).pop().context("no run is listed")?;
    expect_apart(world, &id)?;
    tell(world, place, &["kill", &id])?;
    asked.hear(world, SOON)?;
    all_clean(world)
}

/// The state directory, a report and an input beside the caller.
fn relative_paths(world: &mut World, place: Place) -> Outcome {
    let cage = place.cage.to_string();
    fs::write(world.dir().join("in"), "hello\n").context("in")?;
    for verb in ["run", "start"] {
        let options = ["--cage", &cage, "--stdin", "in", "--report", "report.json"];
        let words =
            [&[verb][..], &options, &["--name", verb, "--", "sh", "-c", "cat > got; pwd > in-it"]];
        let beside = |command: &mut std::process::Command| {
            command.env("FULLSTOP_DIR", "state");
        };
        ask_with(world, place, &words.concat(), beside)?.hear(world, SOON)?.expect(0)?;
        ask_with(world, place, &["wait", verb], beside)?.hear(world, SOON)?.expect(0)?;
        for (file, wanted) in [("got", "hello\n".to_owned()), ("in-it", text(world.dir()) + "\n")] {
            let path = world.dir().join(file);
            let found = fs::read_to_string(&path).context(file)?;
            ensure!(found == wanted, "{verb}: {file} has {found:?}");
            fs::remove_file(&path).context(file)?;
        }
        let report = world.dir().join("report.json");
        let written = fs::read_to_string(&report).context("report")?;
        ensure!(written.contains("\"reason\":\"exited\""), "{verb}: the report is {written:?}");
        fs::remove_file(&report).context("report")?;
    }
    all_clean(world)
}

/// A script mounts something, starts a run from there that goes elsewhere, and leaves.
fn unmounted(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    fs::create_dir(world.dir().join("mount")).context("mount")?;
    let (cage, program) = (place.cage.to_string(), text(world.fullstop()));
    let never = format!("while :; do read gone < {}/never; done", text(world.dir()));
    let script = "mount -t tmpfs none mount && cd mount && \
        \"$0\" start --cage \"$1\" --cwd / --name it -- sh -c \"$2\" && cd .. && umount mount";
    let asked = ask_program(world, place, "unshare", &["mount, start, umount"], |command| {
        command.args(["--mount", "sh", "-c", script, &program, &cage, &never]);
    })?;
    asked.hear(world, SOON)?.expect(0)?;
    tell(world, place, &["stop", "it"])?;
    all_clean(world)
}
