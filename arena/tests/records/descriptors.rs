//! The caller's descriptors from 3 on: `run` hands them to the command, as the command
//! itself would have got them; a run in the background gets those that it is to keep.

use std::fs::{self, File};

use arena::{Context, Need, Outcome, Registry, World, ensure};
use rustix::fs::{FlockOperation, flock};

use super::desk::{CommandOutput, QUIET, alive, all_clean, ask_program, live_ids, say, tell, who};
use crate::kit::{EVERYWHERE, Lines, Place, SOON, add, text};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("start-closes-them", start_closes as fn(&mut World, Place) -> Outcome),
        ("keep-fd", keep),
        ("keep-fd-refused", refused),
        ("stdin-by-descriptor", stdin),
        ("run-keeps-them", run_keeps),
    ] {
        add(
            registry,
            &format!("descriptors::{name}"),
            &EVERYWHERE,
            &[Need::Program("flock")],
            play,
        );
    }
}

/// A script that holds the file `lock` as its descriptor 9, locked, calls `fullstop`, and
/// is over.
fn with_lock(world: &mut World, place: Place, words: &[&str]) -> Outcome<CommandOutput> {
    let program = text(world.fullstop());
    let script = "exec 9>>lock; flock -n 9 || exit 99; \"$0\" \"$@\"";
    let asked = ask_program(world, place, "sh", words, |command| {
        command.args(["-c", script, &program]).args(words);
    })?;
    asked.hear(world, SOON)
}

fn start_with_lock(world: &mut World, place: Place, words: &[&str]) -> Outcome<String> {
    let cage = place.cage.to_string();
    let said = with_lock(world, place, &[&["start", "--cage", &cage], words].concat())?;
    said.expect(0)?;
    Ok(said.out.trim_end().to_owned())
}

/// Whether a process has the lock's file open, as the kernel sees it.
fn has_lock(world: &World, pid: i32) -> Outcome<bool> {
    let lock = world.dir().join("lock");
    let open = fs::read_dir(format!("/proc/{pid}/fd")).context("descriptors")?;
    Ok(open.flatten().any(|entry| fs::read_link(entry.path()).is_ok_and(|file| file == lock)))
}

fn expect_free(world: &World, id: &str) -> Outcome {
    let who = who(world, id)?;
    for process in [&who.guard, &who.keeper, &who.leader] {
        ensure!(!has_lock(world, process.pid)?, "the script's descriptor is open in {process}");
    }
    let lock = File::open(world.dir().join("lock")).context("lock")?;
    flock(lock, FlockOperation::NonBlockingLockExclusive).context("the script's lock is held")
}

fn start_closes(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    for pty in [&[][..], &["--pty"]] {
        let id = start_with_lock(world, place, &[pty, &["--", "sh", "-c", QUIET]].concat())?;
        expect_free(world, &id)?;
        with_lock(world, place, &["restart", &id])?.expect(0)?;
        expect_free(world, &id)?;
        tell(world, place, &["stop", &id])?;
    }
    all_clean(world)
}

fn keep(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let mut told = Lines::create(world, "told")?;
    let script = format!("echo kept >&9; echo up > told; {QUIET}");
    let words = ["--keep-fd", "9", "--", "sh", "-c", &script];
    let id = start_with_lock(world, place, &words)?;
    told.expect("up")?;
    let written = fs::read_to_string(world.dir().join("lock")).context("lock")?;
    ensure!(written == "kept\n", "the descriptor got {written:?}");
    let who = who(world, &id)?;
    ensure!(has_lock(world, who.leader.pid)?, "the command has no such descriptor");
    for process in [&who.guard, &who.keeper] {
        ensure!(!has_lock(world, process.pid)?, "the command's descriptor is open in {process}");
    }
    // Nobody could give the next generation what this one has of its caller.
    with_lock(world, place, &["stop", &id])?.expect(99)?;
    let said = say(world, place, &["restart", &id])?;
    said.expect_one_line(125, "its caller's descriptors")?;
    ensure!(alive(&who.leader), "it was stopped for nothing");
    tell(world, place, &["stop", &id])?;
    all_clean(world)
}

/// What cannot be kept is said before anything is begun.
fn refused(world: &mut World, place: Place) -> Outcome {
    for (number, why) in [("9", "it is not open"), ("2", "are not kept"), ("x", "is no number")] {
        let said = say(world, place, &["start", "--keep-fd", number, "true"])?;
        said.expect(125)?;
        ensure!(said.err.contains(why), "it says {:?}", said.err);
        ensure!(said.err.lines().count() == 1, "it says too much: {:?}", said.err);
    }
    ensure!(live_ids(world).is_empty(), "something was started");
    all_clean(world)
}

/// A shell hands over `<(…)` as a descriptor, and says `/dev/fd/63` or so for it.
fn stdin(world: &mut World, place: Place) -> Outcome {
    fs::write(world.dir().join("text"), "hello\n").context("text")?;
    let (cage, program) = (place.cage.to_string(), text(world.fullstop()));
    let script = "exec 9<text; \"$0\" start --cage \"$1\" --stdin /dev/fd/9 -- cat";
    let asked = ask_program(world, place, "sh", &["start --stdin /dev/fd/9"], |command| {
        command.args(["-c", script, &program, &cage]);
    })?;
    let said = asked.hear(world, SOON)?;
    said.expect(0)?;
    let id = said.out.trim_end();
    tell(world, place, &["wait", id])?;
    let logs = tell(world, place, &["logs", id])?;
    ensure!(logs == "hello\n", "the command read {logs:?}");
    all_clean(world)
}

fn run_keeps(world: &mut World, place: Place) -> Outcome {
    let cage = place.cage.to_string();
    for pty in [&[][..], &["--pty"]] {
        let command = ["--", "sh", "-c", "echo kept >&9"];
        let words = [&["run", "--cage", &cage], pty, &command].concat();
        with_lock(world, place, &words)?.expect(0)?;
    }
    let written = fs::read_to_string(world.dir().join("lock")).context("lock")?;
    ensure!(written == "kept\nkept\n", "the descriptor got {written:?}");
    all_clean(world)
}
