//! Jobs in the background: what they may not do with the terminal, and what
//! the terminal's keys may not do to them.

use arena::{Context, Outcome, Process, Registry, Signal, World, ensure, send_signal};

use super::actors::{
    await_actor, await_foreground, await_run, await_stopped, find, group, is_stopped, script,
};
use super::prefix::{Prefix, both, run};
use super::shell::{CTRL_C, CTRL_D, CTRL_Z, Shell};

pub fn register(registry: &mut Registry) {
    both(registry, "background::read-stops-the-job", reads);
    both(registry, "background::write-stops-the-job-on-tostop", writes);
    both(registry, "background::setting-stops-the-job", sets);
    both(registry, "background::write-is-free-otherwise", writes_freely);
    both(registry, "background::keys-do-not-reach-it", keys);
    both(registry, "background::of-a-script-ignores-the-keys", of_a_script);
    both(registry, "background::ends-behind-the-prompt", ends_behind_the_prompt);
    both(registry, "background::ends-behind-another-command", ends_behind_another);
    both(registry, "background::killed-behind-another-command", killed_behind_another);
    both(registry, "background::brought-forward", brought_forward);
    run(registry, "background::starts-there", starts_there);
}

fn reads(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.line(&format!("{prefix}cat &"))?;
    let cat = await_actor(&mut shell.tty, "cat")?;
    await_stopped(&mut shell.tty, cat.pgid)?;
    let said = shell.line("jobs -l")?;
    ensure!(said.contains("Stopped (tty input)"), "bash does not know why: {said:?}");
    shell.begin("fg")?;
    await_foreground(&mut shell.tty, "cat")?;
    shell.tty.type_keys("hello\r")?;
    shell.tty.expect("hello\r\nhello\r\n")?;
    shell.tty.type_keys(CTRL_D)?;
    shell.prompt()?;
    shell.expect_status(0)?;
    shell.leave(world)
}

fn writes(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    script(world, "writes", "echo \"one\"\"word\"; exit 3")?;
    shell.line("stty tostop")?;
    shell.line(&format!("{prefix}bash ./writes &"))?;
    let actor = await_actor(&mut shell.tty, "bash ./writes")?;
    await_stopped(&mut shell.tty, actor.pgid)?;
    let said = shell.line("jobs -l")?;
    ensure!(said.contains("Stopped (tty output)"), "bash does not know why: {said:?}");
    ensure!(!shell.tty.seen().contains("oneword"), "it has written all the same");
    shell.begin("fg")?;
    shell.tty.expect("oneword")?;
    let said = shell.prompt()?;
    ensure!(!said.contains("Stopped"), "stopped again: {said:?}");
    shell.expect_status(3)?;
    shell.line("stty -tostop")?;
    shell.leave(world)
}

/// Settings are not to be changed from the background either.
fn sets(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.line(&format!("{prefix}stty -ixon &"))?;
    let actor = await_actor(&mut shell.tty, "stty -ixon")?;
    await_stopped(&mut shell.tty, actor.pgid)?;
    let said = shell.line("jobs -l")?;
    ensure!(said.contains("Stopped (tty output)"), "bash does not know why: {said:?}");
    shell.line("fg")?;
    shell.expect_status(0)?;
    shell.leave(world)
}

fn writes_freely(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    script(world, "writes", "echo \"one\"\"word\"; exit 3")?;
    shell.begin_behind(&format!("{prefix}bash ./writes &"), "oneword")?;
    let said = shell.line("wait $!; echo \"status=$?\"")?;
    ensure!(said.contains("status=3"), "not its status: {said:?}");
    shell.leave(world)
}

fn keys(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.line(&format!("{prefix}sleep 60 &"))?;
    let sleeper = await_actor(&mut shell.tty, "sleep 60")?;
    shell.begin("cat")?;
    await_foreground(&mut shell.tty, "cat")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.prompt()?;
    shell.begin("cat")?;
    await_foreground(&mut shell.tty, "cat")?;
    shell.tty.type_keys(CTRL_Z)?;
    shell.prompt()?;
    let now = sleeper.still_there().filter(Process::alive).context("a key has ended it")?;
    ensure!(!is_stopped(&now), "a key has stopped it: {now}");
    shell.line("kill %1 %2")?;
    shell.tty.until("both have gone", || find("sleep 60").or_else(|| find("cat")).is_none())?;
    shell.await_no_jobs()?;
    shell.leave(world)
}

/// A shell without job control starts background jobs with INT and QUIT
/// ignored; what was ignored at the start stays ignored. That the script is
/// gone is no reason to stop either: with a terminal the shell's rules apply.
fn of_a_script(world: &mut World, prefix: Prefix) -> Outcome {
    script(world, "outer", &format!("{prefix}sleep 60 & wait"))?;
    let mut shell = Shell::start(world)?;
    shell.begin("bash ./outer")?;
    let sleeper = await_foreground(&mut shell.tty, "sleep 60")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.prompt()?;
    shell.expect_status(130)?;
    let job = match prefix {
        Prefix::Bare => sleeper.clone(),
        Prefix::Run => await_run(&mut shell.tty, "sleep 60")?.guard,
    };
    for signal in [Signal::INT, Signal::QUIT] {
        send_signal(job.pid, signal)?;
    }
    // A signal that is ignored is gone when kill returns, and what the guard
    // hears it acts on before the shell has answered twice.
    shell.line("true")?;
    shell.line("true")?;
    sleeper.still_there().filter(Process::alive).context("an ignored signal has ended it")?;
    send_signal(job.pid, Signal::TERM)?;
    shell.tty.until("the job has ended", || find("sleep 60").is_none())?;
    shell.leave(world)
}

/// A job that began in the foreground and ends in the background must leave
/// the terminal to whoever has it now.
fn ends_behind_the_prompt(world: &mut World, prefix: Prefix) -> Outcome {
    script(world, "waits", "read -r line < go")?;
    let mut shell = Shell::start(world)?;
    shell.line("mkfifo go")?;
    shell.begin(&format!("{prefix}bash ./waits"))?;
    let actor = await_foreground(&mut shell.tty, "bash ./waits")?;
    shell.tty.type_keys(CTRL_Z)?;
    shell.tty.expect("Stopped")?;
    shell.prompt()?;
    shell.line("bg")?;
    let prompt = shell.tty.settings()?;
    std::fs::write(world.dir().join("go"), "go\n").context("go")?;
    shell.tty.until("the job has gone", || group(actor.pgid).is_empty())?;
    ensure!(shell.tty.foreground() == Some(shell.bash.pid), "it has taken the terminal along");
    let now = shell.tty.settings()?;
    ensure!(same(&prompt, &now), "it has changed the settings of the prompt");
    ensure!(!shell.tty.rest().contains('\x1b'), "it wrote to the screen: {:?}", shell.tty.rest());
    let said = shell.line("echo \"on\"\"ward\"")?;
    ensure!(said.contains("onward"), "the shell does not work any more: {said:?}");
    shell.leave(world)
}

/// The same while a full-screen program has the terminal.
fn ends_behind_another(world: &mut World, prefix: Prefix) -> Outcome {
    behind_another(world, prefix, false)
}

fn killed_behind_another(world: &mut World, prefix: Prefix) -> Outcome {
    behind_another(world, prefix, true)
}

fn behind_another(world: &mut World, prefix: Prefix, killed: bool) -> Outcome {
    script(world, "waits", "read -r line < go")?;
    script(world, "screen", "stty raw -echo; echo up; read -r < stay; stty -raw echo; exit 4")?;
    let mut shell = Shell::start(world)?;
    shell.line("mkfifo go stay")?;
    shell.begin(&format!("{prefix}bash ./waits"))?;
    let actor = await_foreground(&mut shell.tty, "bash ./waits")?;
    shell.tty.type_keys(CTRL_Z)?;
    shell.tty.expect("Stopped")?;
    shell.prompt()?;
    shell.line("bg")?;
    shell.begin("bash ./screen")?;
    shell.tty.expect("up")?;
    let screen = await_foreground(&mut shell.tty, "bash ./screen")?;
    let raw = shell.tty.settings()?;
    if killed {
        send_signal(actor.pid, Signal::KILL)?;
    } else {
        std::fs::write(world.dir().join("go"), "go\n").context("go")?;
    }
    shell.tty.until("the job has gone", || group(actor.pgid).is_empty())?;
    ensure!(shell.tty.foreground() == Some(screen.pgid), "it has taken the terminal along");
    ensure!(same(&raw, &shell.tty.settings()?), "it has changed another's settings");
    std::fs::write(world.dir().join("stay"), "no longer\n").context("stay")?;
    let said = shell.prompt()?;
    ensure!(!said.contains('\x1b'), "it wrote to another's screen: {said:?}");
    shell.expect_status(4)?;
    shell.leave(world)
}

/// Begun in the background, killed in the foreground.
fn brought_forward(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.line(&format!("{prefix}cat &"))?;
    let cat = await_actor(&mut shell.tty, "cat")?;
    await_stopped(&mut shell.tty, cat.pgid)?;
    shell.begin("fg")?;
    await_foreground(&mut shell.tty, "cat")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.prompt()?;
    shell.expect_status(130)?;
    shell.leave(world)
}

/// The guard has no business with the terminal while it is in the background.
fn starts_there(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.line("stty tostop")?;
    script(world, "stubborn", "trap '' TERM; while :; do sleep 60; done")?;
    let said = shell.line("fullstop run --grace 1s -- bash ./stubborn &")?;
    ensure!(said.trim().starts_with("[1]"), "more than the job's number: {said:?}");
    let run = await_run(&mut shell.tty, "bash ./stubborn")?;
    await_actor(&mut shell.tty, "sleep 60")?;
    send_signal(run.guard.pid, Signal::TERM)?;
    shell
        .tty
        .until("the run is over", || run.guard.still_there().is_none_or(|now| !now.alive()))?;
    let said = shell.line("wait $!; echo \"status=$?\"")?;
    ensure!(said.contains("status=137"), "not its status: {said:?}");
    ensure!(!shell.tty.seen().contains("stopping"), "it wrote from the background");
    shell.leave(world)
}

fn same(one: &rustix::termios::Termios, other: &rustix::termios::Termios) -> bool {
    (one.input_modes, one.output_modes, one.control_modes, one.local_modes)
        == (other.input_modes, other.output_modes, other.control_modes, other.local_modes)
}
