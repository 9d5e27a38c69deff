//! The one line that is shown while a stop is under way, and where it is not.

use arena::{Context, Outcome, Registry, Signal, World, ensure, send_signal};

use super::actors::{Run, await_actor, await_foreground, await_run, script};
use super::prefix::run;
use super::shell::{CTRL_C, CTRL_Q, CTRL_S, CTRL_Z, Shell};

pub fn register(registry: &mut Registry) {
    run(registry, "status::shown-and-erased", shown);
    run(registry, "status::in-a-narrow-window", narrow);
    run(registry, "status::not-for-a-quick-stop", quick);
    run(registry, "status::not-in-the-background", background);
    run(registry, "status::not-on-a-raw-terminal", raw);
    run(registry, "status::not-when-quiet", quiet);
    run(registry, "status::not-into-a-file", into_a_file);
    run(registry, "status::held-up-terminal", held_up);
    run(registry, "status::held-up-message", held_up_message);
    run(registry, "status::key-during-a-stop", key);
}

/// Has to be killed; its child goes when it is asked.
const STUBBORN: &str = "trap : TERM; mkfifo pause; sleep 60 & echo up; \
    while :; do read -r <> pause; done";

fn begin(shell: &mut Shell, world: &World, line: &str) -> Outcome<Run> {
    script(world, "stubborn", STUBBORN)?;
    shell.begin(line)?;
    shell.tty.expect("up")?;
    await_actor(&mut shell.tty, "sleep 60")?;
    await_run(&mut shell.tty, "bash ./stubborn")
}

fn shown(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    let run = begin(&mut shell, world, "fullstop run --grace 3s -- bash ./stubborn")?;
    await_foreground(&mut shell.tty, "bash ./stubborn")?;
    send_signal(run.guard.pid, Signal::TERM)?;
    let before = shell.tty.expect("fullstop: stopping…")?;
    ensure!(before.ends_with("\r\x1b[K"), "not at the beginning of a line: {before:?}");
    let line = shell.tty.expect("alive")?;
    ensure!(line.contains("term@leader (1 of 3)"), "not its step: {line:?}");
    ensure!(line.contains(" 1.") && line.contains(" s left"), "not its time: {line:?}");
    ensure!(line.contains("2 processes"), "not its members: {line:?}");
    shell.tty.expect("term@tree (2 of 3)")?;
    let rest = shell.prompt()?;
    ensure!(rest.contains("1 process alive"), "the child's end is not shown: {rest:?}");
    ensure!(!rest.contains('\n'), "the line was not one line: {rest:?}");
    ensure!(rest.ends_with("\r\x1b[K"), "the line was not erased: {rest:?}");
    shell.expect_status(137)?;
    shell.leave(world)
}

/// What is longer than the window takes two lines, of which only one would be
/// erased.
fn narrow(world: &mut World) -> Outcome {
    const COLUMNS: usize = 40;
    let mut shell = Shell::start(world)?;
    let run = begin(&mut shell, world, "fullstop run --grace 1s -- bash ./stubborn")?;
    shell.tty.resize(24, 40)?;
    send_signal(run.guard.pid, Signal::TERM)?;
    let said = shell.prompt()?;
    let lines = said.split("\r\x1b[K").map(|line| line.chars().count());
    let longest = lines.max().unwrap_or_default();
    ensure!(said.contains("fullstop: stopping…"), "not shown at all: {said:?}");
    ensure!(longest <= COLUMNS, "{longest} characters in {COLUMNS} columns: {said:?}");
    shell.leave(world)
}

fn quick(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.begin("fullstop run -- sleep 60")?;
    await_foreground(&mut shell.tty, "sleep 60")?;
    let run = await_run(&mut shell.tty, "sleep 60")?;
    send_signal(run.guard.pid, Signal::TERM)?;
    let said = shell.prompt()?;
    ensure!(!said.contains("stopping"), "not worth a line: {said:?}");
    shell.expect_status(143)?;
    shell.leave(world)
}

/// Stops the run and returns all that was to be seen meanwhile.
fn stop(shell: &mut Shell, run: &Run) -> Outcome<String> {
    send_signal(run.guard.pid, Signal::TERM)?;
    shell
        .tty
        .until("the run is over", || run.guard.still_there().is_none_or(|now| !now.alive()))?;
    Ok(shell.tty.rest())
}

fn background(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    let run = begin(&mut shell, world, "fullstop run --grace 1s -- bash ./stubborn")?;
    await_foreground(&mut shell.tty, "bash ./stubborn")?;
    shell.tty.type_keys(CTRL_Z)?;
    shell.tty.expect("Stopped")?;
    shell.prompt()?;
    shell.line("bg")?;
    let said = stop(&mut shell, &run)?;
    ensure!(said.is_empty(), "something was written from the background: {said:?}");
    shell.line("wait")?;
    shell.leave(world)
}

fn raw(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    script(world, "outer", "stty raw; fullstop run --grace 1s -- bash ./stubborn; stty -raw")?;
    let run = begin(&mut shell, world, "bash ./outer")?;
    let said = stop(&mut shell, &run)?;
    ensure!(!said.contains("stopping"), "written on a raw terminal: {said:?}");
    shell.prompt()?;
    shell.leave(world)
}

fn quiet(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    let run = begin(&mut shell, world, "fullstop run -q --grace 1s -- bash ./stubborn")?;
    stop(&mut shell, &run)?;
    shell.prompt()?;
    ensure!(!shell.tty.seen().contains("stopping"), "not quiet");
    shell.leave(world)
}

fn into_a_file(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    let run = begin(&mut shell, world, "fullstop run --grace 1s -- bash ./stubborn 2> err")?;
    stop(&mut shell, &run)?;
    shell.prompt()?;
    ensure!(!shell.tty.seen().contains("stopping"), "it went to the terminal all the same");
    let said = std::fs::read_to_string(world.dir().join("err")).context("err")?;
    ensure!(said.is_empty(), "it went into the file: {said:?}");
    shell.leave(world)
}

/// Ctrl-S holds up whoever writes to the terminal. A stop is bounded all the
/// same.
fn held_up(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    let run = begin(&mut shell, world, "fullstop run --grace 2s -- bash ./stubborn")?;
    shell.tty.type_keys(CTRL_S)?;
    send_signal(run.guard.pid, Signal::TERM)?;
    let over = || run.guard.still_there().is_none_or(|now| !now.alive());
    shell.tty.until_within(arena::seconds(7), "the run is over", over)?;
    shell.tty.type_keys(CTRL_Q)?;
    shell.prompt()?;
    shell.leave(world)
}

/// The same for what is said at the end.
fn held_up_message(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    let run = begin(&mut shell, world, "fullstop run -- bash ./stubborn")?;
    shell.tty.type_keys(CTRL_S)?;
    send_signal(run.keeper.pid, Signal::KILL)?;
    let over = || run.guard.still_there().is_none_or(|now| !now.alive());
    shell.tty.until_within(arena::seconds(5), "the run is over", over)?;
    shell.tty.type_keys(CTRL_Q)?;
    shell.prompt()?;
    shell.leave(world)
}

/// Impatience within a second joins the stop, later it escalates; the line
/// that is shown then is erased as well.
fn key(world: &mut World) -> Outcome {
    script(world, "deaf", "trap '' TERM INT; echo up; while :; do sleep 60; done")?;
    let mut shell = Shell::start(world)?;
    shell.begin("fullstop run --grace 20s -- bash ./deaf")?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "sleep 60")?;
    let run = await_run(&mut shell.tty, "bash ./deaf")?;
    send_signal(run.guard.pid, Signal::TERM)?;
    shell.tty.expect("term@leader (1 of 3), 11.")?;
    shell.tty.type_keys(CTRL_C)?;
    // Shown again with more than a second gone: the key has changed nothing.
    shell.tty.expect("term@leader (1 of 3), 10.")?;
    ensure!(run.leader.still_there().is_some_and(|now| now.alive()), "killed at once");
    shell.tty.type_keys(CTRL_C)?;
    let said = shell.prompt()?;
    ensure!(said.ends_with("\r\x1b[K"), "the line was not erased: {said:?}");
    shell.expect_status(137)?;
    shell.leave(world)
}
