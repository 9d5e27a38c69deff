//! What our own processes are called, and what is not to be read off them: the words of
//! the command, and what `--env` was given.

use std::fs;
use std::os::unix::process::CommandExt as _;

use arena::{Context, Ended, Need, Outcome, Process, Registry, User, World, await_until, ensure};

use super::desk::{
    RunningCommand, all_clean, ask, ask_program, ask_with, live_ids, run_ids, start, tell,
};
use crate::kit::{ANYWHERE, EVERYWHERE, Launch, Lines, Place, SOON, add, text};

pub fn register(registry: &mut Registry) {
    for (name, play) in [
        ("run", run as fn(&mut World, Place) -> Outcome),
        ("run-pty", run_pty),
        ("front", front),
        ("first-process", first_process),
        ("nested", nested),
        ("start", start_and_restart),
        ("start-pty", start_pty),
    ] {
        add(registry, &format!("titles::{name}"), &EVERYWHERE, &[], play);
    }
    add(registry, "titles::short", &ANYWHERE, &[], short);
    add(registry, "titles::pkill", &EVERYWHERE, &[Need::Program("pkill")], pkill);
}

const WORD: &str = "a-word-of-the-agent";
const SECRET: &str = "a-value-of-the-caller";
const SET: &str = "KEY=a-value-of-the-caller";
const SCRIPT: &str = "echo up > told; read go < go; exit 7; : a-word-of-the-agent";

/// The FIFO on which a command tells that it runs, and the one on which it is let go.
struct Signs {
    told: Lines,
    _go: Lines,
}

impl Signs {
    fn create(world: &World) -> Outcome<Signs> {
        Ok(Signs { told: Lines::create(world, "told")?, _go: Lines::create(world, "go")? })
    }

    /// Lets the command go, which returns 7.
    fn release(world: &World) -> Outcome {
        fs::write(world.dir().join("go"), "\n").context("go")
    }
}

fn words<'a>(place: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    let command = ["--env", SET, "--", "sh", "-c", SCRIPT];
    [&["run", "--cage", place], options, &command].concat()
}

/// Processes that execute `fullstop`, as the kernel sees them.
fn of_ours(world: &World) -> Vec<Process> {
    let program = world.fullstop();
    let is_ours = |process: &Process| {
        fs::read_link(format!("/proc/{}/exe", process.pid)).is_ok_and(|exe| exe == program)
    };
    world.survivors().into_iter().filter(is_ours).collect()
}

/// Waits until our processes have these names and show nothing else but the tag of a run.
fn expect_names(world: &World, names: &[&str]) -> Outcome {
    let mut wanted: Vec<&str> = names.to_vec();
    wanted.sort_unstable();
    let named = || {
        let mut found: Vec<String> = of_ours(world).into_iter().map(|it| it.comm).collect();
        found.sort_unstable();
        found == wanted
    };
    let shown = || of_ours(world).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n");
    ensure!(await_until(SOON, named), "our processes are not {wanted:?}:\n{}", shown());
    let ids = run_ids(world);
    for process in of_ours(world) {
        match process.comm.as_str() {
            // The host of a run that stands apart, and the window on it.
            "fullstop" => ensure!(process.command.ends_with("fullstop run"), "{process}"),
            "fullstop-front" => ensure!(process.command == "fullstop-front", "{process}"),
            name => {
                let tag = process.command.strip_prefix(name).context(process.to_string())?;
                let tagged = |id: &String| tag.strip_prefix(&format!(" {id}-")).map(str::len);
                ensure!(ids.iter().filter_map(tagged).eq([8]), "{process}");
            }
        }
        for file in ["cmdline", "environ"] {
            let bytes = fs::read(format!("/proc/{}/{file}", process.pid)).context(file)?;
            let read = String::from_utf8_lossy(&bytes);
            ensure!(!read.contains(WORD), "{process} tells the command: {read:?}");
            ensure!(!read.contains(SECRET), "{process} tells what --env was given: {read:?}");
        }
    }
    Ok(())
}

fn finish(world: &mut World, asked: &RunningCommand, ended: Ended) -> Outcome {
    Signs::release(world)?;
    let said = asked.hear(world, SOON)?;
    ensure!(said.ended == ended, "it ended with {}", said.ended);
    all_clean(world)
}

fn run(world: &mut World, place: Place) -> Outcome {
    let mut signs = Signs::create(world)?;
    let asked = ask(world, place, &words(&place.cage.to_string(), &[]))?;
    signs.told.expect("up")?;
    expect_names(world, &["fullstop-guard", "fullstop-keeper"])?;
    finish(world, &asked, Ended::Code(7))
}

fn run_pty(world: &mut World, place: Place) -> Outcome {
    let mut signs = Signs::create(world)?;
    let asked = ask(world, place, &words(&place.cage.to_string(), &["--pty"]))?;
    signs.told.expect("up")?;
    expect_names(world, &["fullstop", "fullstop-guard", "fullstop-keeper"])?;
    finish(world, &asked, Ended::Code(7))
}

/// A guard with a stranger for a child stands behind a front.
fn front(world: &mut World, place: Place) -> Outcome {
    let mut signs = Signs::create(world)?;
    let _stranger = Lines::create(world, "never")?;
    let (cage, program) = (place.cage.to_string(), text(world.fullstop()));
    let words = words(&cage, &[]);
    let asked = ask_program(world, place, "sh", &words, |command| {
        let script = "(read gone < never) & exec \"$0\" \"$@\"";
        command.args(["-c", script, &program]).args(&words);
    })?;
    signs.told.expect("up")?;
    expect_names(world, &["fullstop-front", "fullstop-guard", "fullstop-keeper"])?;
    Signs::release(world)?;
    let said = asked.hear(world, SOON)?;
    ensure!(said.ended == Ended::Code(7), "it ended with {}", said.ended);
    fs::write(world.dir().join("never"), "\n").context("never")?;
    world.expect_extinct(SOON)?;
    all_clean(world)
}

/// The first process of a pid namespace is a front, too.
fn first_process(world: &mut World, place: Place) -> Outcome {
    let mut signs = Signs::create(world)?;
    let (cage, program) = (place.cage.to_string(), text(world.fullstop()));
    let words = words(&cage, &[]);
    let own_user: &[&str] = if place.user == User::Root { &[] } else { &["--map-current-user"] };
    let asked = ask_program(world, place, "unshare", &words, |command| {
        command.args(own_user).args(["--pid", "--mount-proc", "--fork", "--kill-child"]);
        command.arg(&program).args(&words);
    })?;
    signs.told.expect("up")?;
    expect_names(world, &["fullstop-front", "fullstop-guard", "fullstop-keeper"])?;
    finish(world, &asked, Ended::Code(7))
}

/// The leader of the outer run is the guard of the inner one.
fn nested(world: &mut World, place: Place) -> Outcome {
    let mut signs = Signs::create(world)?;
    let (cage, program) = (place.cage.to_string(), text(world.fullstop()));
    let mut all = vec!["run", "--cage", &cage, "--", &program];
    all.extend(words(&cage, &[]));
    let asked = ask(world, place, &all)?;
    signs.told.expect("up")?;
    let pair = ["fullstop-guard", "fullstop-keeper"];
    expect_names(world, &[pair, pair].concat())?;
    finish(world, &asked, Ended::Code(7))
}

fn start_and_restart(world: &mut World, place: Place) -> Outcome {
    let mut signs = Signs::create(world)?;
    let id = start(world, place, &["--env", SET], &["sh", "-c", SCRIPT])?;
    for _ in 0..2 {
        signs.told.expect("up")?;
        expect_names(world, &["fullstop-guard", "fullstop-keeper"])?;
        tell(world, place, &["restart", &id])?;
    }
    signs.told.expect("up")?;
    tell(world, place, &["stop", &id])?;
    all_clean(world)
}

fn start_pty(world: &mut World, place: Place) -> Outcome {
    let mut signs = Signs::create(world)?;
    let id = start(world, place, &["--pty", "--env", SET], &["sh", "-c", SCRIPT])?;
    signs.told.expect("up")?;
    expect_names(world, &["fullstop-guard", "fullstop-keeper"])?;
    tell(world, place, &["stop", &id])?;
    all_clean(world)
}

/// A command line that is shorter than the title reaches into the environment: the
/// variables there are moved, for the command and for our own use.
fn short(world: &mut World, place: Place) -> Outcome {
    let mut signs = Signs::create(world)?;
    let script = world.dir().join("x");
    fs::write(&script, "#!/bin/sh\nenv > seen; echo $A > told; read go < go; exit 7")
        .context("x")?;
    rustix::fs::chmod(&script, rustix::fs::Mode::from_raw_mode(0o755)).context("chmod")?;
    let path = format!("{}:/usr/bin:/bin", text(world.dir()));
    let asked = ask_with(world, place, &[], |command| {
        // The environment begins with these two.
        command.arg0("f").args(["run", "x"]).env("A", "b").env("AA", "c").env("PATH", &path);
    })?;
    signs.told.expect("b")?;
    expect_names(world, &["fullstop-guard", "fullstop-keeper"])?;
    let seen = fs::read_to_string(world.dir().join("seen")).context("seen")?;
    for line in ["A=b", "AA=c", &format!("PATH={path}")] {
        ensure!(seen.lines().any(|seen| seen == line), "{line} did not reach the command: {seen}");
    }
    ensure!(live_ids(world).len() == 1, "its record is elsewhere: {:?}", live_ids(world));
    finish(world, &asked, Ended::Code(7))
}

/// An agent that kills by a word of its own command line hits itself, and no process of
/// ours: a guard that is hit stops the run, and the report says so.
fn pkill(world: &mut World, place: Place) -> Outcome {
    let mut signs = Signs::create(world)?;
    let script = format!("trap 'echo hit > told' TERM; pkill -f {WORD}; read go < go; exit 7");
    let run = Launch::new(place).start(world, &["sh", "-c", &script])?;
    signs.told.expect("hit")?;
    Signs::release(world)?;
    let ended = world.wait(&run.spawned, SOON)?;
    ensure!(ended == Ended::Code(7), "it ended with {ended}");
    let report = run.expect_ended(place, "exited")?;
    ensure!(report.steps.is_empty(), "it was stopped: {:?}", report.steps);
    all_clean(world)
}
