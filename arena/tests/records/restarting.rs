//! A restart that cannot succeed: it is noticed while the old generation lives, which then
//! goes on; and where it could not be noticed, the last word says what is dead.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use arena::{Context, Need, Outcome, Registry, World, await_until, ensure, seconds};

use super::desk::{
    CommandOutput, QUIET, alive, all_clean, ask_program, ask_with, expect_over, nobody, proof,
    record, say, start, tell, who,
};
use super::disk::{fill, small_state};
use crate::kit::{EVERYWHERE, Lines, Place, SOON, add, text};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("no-working-directory", no_working_directory as fn(&mut World, Place) -> Outcome),
        ("no-input", no_input),
        ("no-program", no_program),
        ("no-interpreter", no_interpreter),
        ("no-room", no_room),
        ("too-late", too_late),
        ("from-elsewhere", from_elsewhere),
    ] {
        add(registry, &format!("restarting::{name}"), &EVERYWHERE, &[], play);
    }
    let strace = [Need::Program("strace")];
    add(registry, "restarting::no-process", &EVERYWHERE, &strace, no_process);
}

/// Starts a run, takes something away that it needs, and sees that a restart leaves it as
/// it is; gives that back, and sees that it can be restarted.
fn left_as_it_is(
    world: &mut World,
    place: Place,
    options: &[&str],
    command: &[&str],
    (status, about): (i32, &str),
    mut is_there: impl FnMut(&World, bool) -> Outcome,
) -> Outcome {
    let _never = Lines::create(world, "never")?;
    is_there(world, true)?;
    let id = start(world, place, options, command)?;
    let before = who(world, &id)?;
    // A shell opens its script after the execution: it must have read that.
    let reads = || before.leader.still_there().is_some_and(|leader| leader.state == 'S');
    ensure!(await_until(SOON, reads), "its leader does not read: {}", before.leader);
    is_there(world, false)?;
    let said = say(world, place, &["restart", &id])?;
    expect_untouched(world, &id, &before, &said, status, about)?;
    is_there(world, true)?;
    tell(world, place, &["restart", &id])?;
    ensure!(!alive(&before.leader), "the old generation lives");
    ensure!(record(world, &id)?["generation"] == 2, "{}", record(world, &id)?);
    tell(world, place, &["stop", &id])?;
    all_clean(world)
}

fn expect_untouched(
    world: &World,
    id: &str,
    before: &super::desk::Who,
    said: &CommandOutput,
    status: i32,
    about: &str,
) -> Outcome {
    said.expect_one_line(status, about)?;
    ensure!(said.err.contains("left as it is"), "what became of the run? {:?}", said.err);
    for process in [&before.leader, &before.keeper, &before.guard] {
        ensure!(alive(process), "a restart that was not begun has ended {process}");
    }
    let record = record(world, id)?;
    ensure!(record["generation"] == 1 && record["state"] == "running", "{record}");
    Ok(())
}

fn no_working_directory(world: &mut World, place: Place) -> Outcome {
    let script = "while :; do read gone < ../never; done";
    let command = ["sh", "-c", script];
    left_as_it_is(world, place, &["--cwd", "place"], &command, (125, "place"), |world, there| {
        let path = world.dir().join("place");
        if there { fs::create_dir(path) } else { fs::remove_dir(path) }.context("place")
    })
}

fn no_input(world: &mut World, place: Place) -> Outcome {
    let command = ["sh", "-c", QUIET];
    left_as_it_is(world, place, &["--stdin", "input"], &command, (125, "input"), |world, there| {
        let path = world.dir().join("input");
        if there { fs::write(path, "words") } else { fs::remove_file(path) }.context("input")
    })
}

fn tool(world: &World, first_line: &str) -> Outcome {
    let path = world.dir().join("tool");
    fs::write(&path, format!("{first_line}\n{QUIET}\n")).context("tool")?;
    fs::set_permissions(&path, Permissions::from_mode(0o755)).context("tool")
}

fn no_program(world: &mut World, place: Place) -> Outcome {
    left_as_it_is(world, place, &[], &["./tool"], (127, "tool"), |world, there| {
        if there {
            tool(world, "#!/bin/sh")
        } else {
            fs::remove_file(world.dir().join("tool")).context("tool")
        }
    })
}

fn no_interpreter(world: &mut World, place: Place) -> Outcome {
    left_as_it_is(world, place, &[], &["./tool"], (126, "/no/such/shell"), |world, there| {
        tool(world, if there { "#!/bin/sh" } else { "#!/no/such/shell" })
    })
}

fn no_room(world: &mut World, place: Place) -> Outcome {
    let point = small_state(world, place)?;
    let command = ["sh", "-c", QUIET];
    left_as_it_is(world, place, &[], &command, (125, "no space left"), |_, there| {
        let filler = point.join("filler");
        match (there, filler.exists()) {
            (false, _) => fill(&point),
            (true, true) => fs::remove_file(filler).context("filler"),
            (true, false) => Ok(()),
        }
    })
}

/// No process can be made: the one that the next generation begins with is made first.
fn no_process(world: &mut World, place: Place) -> Outcome {
    let _never = Lines::create(world, "never")?;
    let id = start(world, place, &[], &["sh", "-c", QUIET])?;
    let before = who(world, &id)?;
    let program = text(world.fullstop());
    let asked = ask_program(world, place, "strace", &["restart"], |command| {
        command.args(["-qqq", "-o", "/dev/null", "-e"]);
        command.arg("inject=fork,vfork,clone,clone3:error=EAGAIN");
        command.args([&program, "restart", &id]);
    })?;
    let said = asked.hear(world, seconds(20))?;
    expect_untouched(world, &id, &before, &said, 125, "keeper")?;
    tell(world, place, &["stop", &id])?;
    all_clean(world)
}

/// On its way out the old generation takes away what the next one needs.
fn too_late(world: &mut World, place: Place) -> Outcome {
    let (mut ready, _never) = (Lines::create(world, "ready")?, Lines::create(world, "never")?);
    let shared = world.dir().join("place");
    fs::create_dir(&shared).context("place")?;
    fs::set_permissions(&shared, Permissions::from_mode(0o777)).context("place")?;
    let script = "trap 'rmdir ../place; exit 0' TERM; echo up > ../ready; \
                  while :; do read gone < ../never; done";
    let id = start(world, place, &["--cwd", "place"], &["sh", "-c", script])?;
    ready.expect("up")?;
    let before = who(world, &id)?;
    let said = say(world, place, &["restart", &id])?;
    ensure!(!alive(&before.leader), "it lives");
    said.expect_one_line(125, "place")?;
    for word in ["is ended", "could not be started again", &format!("fullstop restart {id}")] {
        ensure!(said.err.contains(word), "{word:?} is not said: {:?}", said.err);
    }
    expect_over(world, &id, "spawn-failed", proof(place))?;
    ensure!(record(world, &id)?["generation"] == 2, "{}", record(world, &id)?);
    fs::create_dir(&shared).context("place")?;
    let again = ask_with(world, place, &["restart", &id], |_| {})?;
    again.hear(world, SOON)?.expect(0)?;
    tell(world, place, &["kill", &id])?;
    nobody(world)?;
    all_clean(world)
}

/// Whoever restarts a run may stand in another directory; the run does not follow.
fn from_elsewhere(world: &mut World, place: Place) -> Outcome {
    let mut ready = Lines::create(world, "ready")?;
    let top = world.dir();
    for dir in ["place", "elsewhere", "elsewhere/place"] {
        fs::create_dir(top.join(dir)).context(dir)?;
    }
    let script = format!("pwd > {0}/ready; while :; do sleep 60; done", text(&top));
    for (options, wanted) in [(&["--cwd", "place"][..], "place"), (&[], "")] {
        let id = start(world, place, options, &["sh", "-c", &script])?;
        let first = ready.next(SOON)?;
        ensure!(
            first.trim_end_matches('/') == text(top.join(wanted)).trim_end_matches('/'),
            "it began in {first}"
        );
        let asked = ask_with(world, place, &["restart", &id], |command| {
            command.current_dir(top.join("elsewhere"));
        })?;
        asked.hear(world, SOON)?.expect(0)?;
        let second = ready.next(SOON)?;
        ensure!(second == first, "generation 2 began in {second}, not in {first}");
        tell(world, place, &["kill", &id])?;
    }
    all_clean(world)
}
