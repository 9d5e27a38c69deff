//! Ctrl-Z, `fg`, `bg`, and everything else that stops and continues a job.

use arena::{Context, Outcome, Process, Registry, Signal, World, ensure, send_signal};

use super::actors::{
    await_actor, await_continued, await_foreground, await_run, await_stopped, group, is_stopped,
    script,
};
use super::prefix::{Prefix, both, run};
use super::shell::{CTRL_C, CTRL_Z, JOBS, Shell};

pub fn register(registry: &mut Registry) {
    both(registry, "suspend::fg-and-bg", fg_and_bg);
    both(registry, "suspend::twenty-times", twenty_times);
    both(registry, "suspend::leader-stops-only-itself", stops_itself);
    both(registry, "suspend::leader-stopped-from-outside", stopped_from_outside);
    both(registry, "suspend::continued-from-outside", continued_from_outside);
    both(registry, "suspend::terminated-while-stopped", terminated);
    both(registry, "suspend::handled-by-the-command", handled);
    both(registry, "suspend::ignored-by-the-command", ignored);
    both(registry, "suspend::continue-is-heard-once", heard_once);
    run(registry, "suspend::keeper-killed-while-stopped", keeper_killed);
    run(registry, "suspend::behind-a-front", behind_a_front);
    run(registry, "suspend::run-inside-a-run", nested);
    run(registry, "suspend::during-a-stop", during_a_stop);
}

/// Waits for bash to say that the job in the foreground is stopped.
fn expect_stopped(shell: &mut Shell) -> Outcome {
    shell.tty.expect("Stopped")?;
    shell.prompt().map(drop)
}

/// What `jobs` says about the only job.
fn expect_job(shell: &mut Shell, word: &str) -> Outcome {
    let said = shell.line("jobs")?;
    ensure!(said.contains(word), "the job is not {word}: {said:?}\n{}", shell.tty.describe());
    ensure!(said.matches("[1]").count() == 1, "not one line: {said:?}");
    Ok(())
}

/// Waits until `jobs` says it.
fn await_job(shell: &mut Shell, word: &str) -> Outcome {
    let deadline = arena::Deadline::after(super::tty::PATIENCE);
    while !shell.line(JOBS)?.contains(word) {
        ensure!(deadline.stands(), "the job is not getting {word}\n{}", shell.tty.describe());
    }
    Ok(())
}

/// Bash tells of a job's end once, at the first prompt after it.
fn terminate(shell: &mut Shell) -> Outcome {
    let deadline = arena::Deadline::after(super::tty::PATIENCE);
    let mut said = shell.line("kill %1")?;
    while !said.contains("Terminated") {
        ensure!(deadline.stands(), "the job is not getting Terminated: {said:?}");
        said = shell.line(JOBS)?;
    }
    Ok(())
}

fn fg_and_bg(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}sleep 60"))?;
    let actor = await_foreground(&mut shell.tty, "sleep 60")?;
    shell.tty.type_keys(CTRL_Z)?;
    expect_stopped(&mut shell)?;
    shell.expect_status(148)?;
    expect_job(&mut shell, "Stopped")?;
    await_stopped(&mut shell.tty, actor.pgid)?;
    shell.line("bg")?;
    expect_job(&mut shell, "Running")?;
    shell.tty.until("all of the job runs", || !group(actor.pgid).iter().any(is_stopped))?;
    shell.begin("fg")?;
    await_foreground(&mut shell.tty, "sleep 60")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.prompt()?;
    shell.expect_status(130)?;
    shell.leave(world)
}

/// As fast as the keys can be typed, and no word too many from bash.
fn twenty_times(world: &mut World, prefix: Prefix) -> Outcome {
    const ROUNDS: usize = 20;
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}sleep 60"))?;
    await_foreground(&mut shell.tty, "sleep 60")?;
    for round in 1..=ROUNDS {
        let actor = await_continued(&mut shell.tty, "sleep 60")?;
        shell.tty.type_keys(CTRL_Z)?;
        expect_stopped(&mut shell)?;
        await_stopped(&mut shell.tty, actor.pgid)?;
        expect_job(&mut shell, "Stopped")?;
        let stopped = group(actor.pgid).iter().all(is_stopped);
        ensure!(stopped, "round {round}: the job goes on by itself");
        if round % 3 == 0 {
            shell.line("bg")?;
            expect_job(&mut shell, "Running")?;
        }
        shell.begin("fg")?;
    }
    await_foreground(&mut shell.tty, "sleep 60")?;
    shell.tty.type_keys(CTRL_C)?;
    let said = shell.prompt()?;
    ensure!(!said.contains("Stopped"), "stopped once more after the last fg: {said:?}");
    // Once told by bash itself and once by `jobs`, each round.
    let told = shell.tty.seen().matches("Stopped").count();
    ensure!(told == 2 * ROUNDS, "bash said Stopped {told} times in {ROUNDS} rounds");
    shell.expect_status(130)?;
    shell.leave(world)
}

fn stops_itself(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    for signal in ["STOP", "TSTP", "TTIN"] {
        script(world, "pauses", &format!("kill -{signal} $$; echo back; exit 5"))?;
        shell.begin(&format!("{prefix}bash ./pauses"))?;
        expect_stopped(&mut shell)?;
        expect_job(&mut shell, "Stopped")?;
        shell.begin("fg")?;
        shell.tty.expect("\r\nback\r\n")?;
        let said = shell.prompt()?;
        ensure!(!said.contains("Stopped"), "stopped again after fg: {said:?}");
        shell.expect_status(5)?;
    }
    shell.leave(world)
}

fn stopped_from_outside(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}sleep 60"))?;
    let actor = await_foreground(&mut shell.tty, "sleep 60")?;
    send_signal(actor.pid, Signal::STOP)?;
    expect_stopped(&mut shell)?;
    expect_job(&mut shell, "Stopped")?;
    shell.begin("fg")?;
    await_foreground(&mut shell.tty, "sleep 60")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.prompt()?;
    shell.expect_status(130)?;
    shell.leave(world)
}

/// Somebody continues the command, and not the job: bash must hear of it.
fn continued_from_outside(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}sleep 60"))?;
    let actor = await_foreground(&mut shell.tty, "sleep 60")?;
    for key in [true, false] {
        if key {
            shell.tty.type_keys(CTRL_Z)?;
        } else {
            shell.begin("fg")?;
            await_foreground(&mut shell.tty, "sleep 60")?;
            send_signal(actor.pid, Signal::STOP)?;
        }
        expect_stopped(&mut shell)?;
        await_stopped(&mut shell.tty, actor.pgid)?;
        send_signal(actor.pid, Signal::CONT)?;
        await_job(&mut shell, "Running")?;
        ensure!(!group(actor.pgid).iter().any(is_stopped), "some of the job are still stopped");
    }
    terminate(&mut shell)?;
    shell.leave(world)
}

fn terminated(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}sleep 60"))?;
    await_foreground(&mut shell.tty, "sleep 60")?;
    shell.tty.type_keys(CTRL_Z)?;
    expect_stopped(&mut shell)?;
    terminate(&mut shell)?;
    shell.leave(world)
}

/// Pagers and `top` put the terminal in order before they stop: the shell must
/// not be back before they have.
fn handled(world: &mut World, prefix: Prefix) -> Outcome {
    let tidies = "trap 'read -r -t 0.1 <> pause; echo tidied; kill -STOP $$; echo resumed' TSTP; \
         mkfifo pause; echo up; until read -r line; do :; done; echo \"got $line\"";
    script(world, "tidies", tidies)?;
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}bash ./tidies"))?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "bash ./tidies")?;
    shell.tty.type_keys(CTRL_Z)?;
    let said = shell.prompt()?;
    let (tidied, stopped) = (said.find("tidied"), said.find("Stopped"));
    ensure!(
        tidied.is_some() && tidied < stopped,
        "the shell was back before the command was ready to stop: {said:?}"
    );
    shell.begin("fg")?;
    shell.tty.expect("resumed")?;
    shell.tty.type_keys("me\r")?;
    shell.tty.expect("got me")?;
    shell.prompt()?;
    shell.expect_status(0)?;
    shell.leave(world)
}

fn ignored(world: &mut World, prefix: Prefix) -> Outcome {
    script(world, "ignores", "trap '' TSTP; echo up; read -r line; echo \"got $line\"")?;
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}bash ./ignores"))?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "bash ./ignores")?;
    shell.tty.type_keys(CTRL_Z)?;
    shell.tty.expect("^Z")?;
    shell.tty.type_keys("me\r")?;
    let said = shell.tty.expect("got me")?;
    ensure!(!said.contains("Stopped"), "a command that ignores Ctrl-Z was stopped: {said:?}");
    shell.prompt()?;
    shell.expect_status(0)?;
    shell.leave(world)
}

/// A command that redraws when continued is not to do it twice.
fn heard_once(world: &mut World, prefix: Prefix) -> Outcome {
    let counts = "trap 'echo redrawn' CONT; echo up; \
         while :; do read -r line && echo \"got $line\"; done";
    script(world, "redraws", counts)?;
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}bash ./redraws"))?;
    shell.tty.expect("up")?;
    for _ in 0..5 {
        await_foreground(&mut shell.tty, "bash ./redraws")?;
        shell.tty.type_keys(CTRL_Z)?;
        expect_stopped(&mut shell)?;
        shell.begin("fg")?;
        let first = shell.tty.expect("redrawn")?;
        shell.tty.type_keys("me\r")?;
        let said = shell.tty.expect("got me")?;
        ensure!(!said.contains("redrawn"), "continued once, redrawn twice: {first:?} {said:?}");
    }
    shell.tty.type_keys(CTRL_C)?;
    shell.prompt()?;
    shell.expect_status(130)?;
    shell.leave(world)
}

/// The guard of a stopped job is stopped as well; that its keeper dies must
/// wake it, or the tree would be nobody's.
fn keeper_killed(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.begin("fullstop run -- sleep 60")?;
    await_foreground(&mut shell.tty, "sleep 60")?;
    let run = await_run(&mut shell.tty, "sleep 60")?;
    shell.tty.type_keys(CTRL_Z)?;
    expect_stopped(&mut shell)?;
    await_stopped(&mut shell.tty, run.guard.pgid)?;
    send_signal(run.keeper.pid, Signal::KILL)?;
    shell.tty.until("the guard has ended the run", || {
        [&run.guard, &run.leader]
            .iter()
            .all(|process| process.still_there().is_none_or(|now| !now.alive()))
    })?;
    shell.tty.type_keys("\r")?;
    shell.tty.expect("[1]+")?;
    shell.prompt()?;
    shell.await_no_jobs()?;
    shell.leave(world)
}

/// A guard with children of another's stands behind a front; the shell knows
/// the front alone.
fn behind_a_front(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.begin("(sleep 61 & exec fullstop run -- sleep 60)")?;
    await_foreground(&mut shell.tty, "sleep 60")?;
    await_actor(&mut shell.tty, "sleep 61")?;
    let run = await_run(&mut shell.tty, "sleep 60")?;
    let front = Process::read(run.guard.ppid).context("no front")?;
    ensure!(front.comm == "fullstop-front", "no front: {front}");
    for _ in 0..5 {
        await_foreground(&mut shell.tty, "sleep 60")?;
        shell.tty.type_keys(CTRL_Z)?;
        expect_stopped(&mut shell)?;
        expect_job(&mut shell, "Stopped")?;
        shell.begin("fg")?;
    }
    await_foreground(&mut shell.tty, "sleep 60")?;
    send_signal(run.leader.pid, Signal::STOP)?;
    expect_stopped(&mut shell)?;
    shell.begin("fg")?;
    await_foreground(&mut shell.tty, "sleep 60")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.prompt()?;
    shell.expect_status(130)?;
    // The stranger is in the same group, and ignores the key as background
    // jobs of a subshell do; that it lives shows that it was left alone.
    let stranger = await_actor(&mut shell.tty, "sleep 61")?;
    shell.line(&format!("kill {}", stranger.pid))?;
    shell.tty.until("the stranger has gone", || stranger.still_there().is_none())?;
    shell.leave(world)
}

/// The leader of one run is the guard of another.
fn nested(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.begin("fullstop run -- fullstop run -- sleep 60")?;
    for round in 0..6 {
        let actor = await_foreground(&mut shell.tty, "sleep 60")?;
        if round % 2 == 0 {
            shell.tty.type_keys(CTRL_Z)?;
        } else {
            send_signal(actor.pid, Signal::STOP)?;
        }
        expect_stopped(&mut shell)?;
        await_stopped(&mut shell.tty, actor.pgid)?;
        expect_job(&mut shell, "Stopped")?;
        shell.begin("fg")?;
    }
    await_foreground(&mut shell.tty, "sleep 60")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.prompt()?;
    shell.expect_status(130)?;
    shell.leave(world)
}

/// A stop goes on though the job is stopped: the clocks are the keeper's.
fn during_a_stop(world: &mut World) -> Outcome {
    script(world, "stubborn", "trap '' TERM; echo up; while :; do sleep 60; done")?;
    let mut shell = Shell::start(world)?;
    shell.begin("fullstop run --grace 1500ms -- bash ./stubborn")?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "sleep 60")?;
    let run = await_run(&mut shell.tty, "bash ./stubborn")?;
    send_signal(run.guard.pid, Signal::TERM)?;
    shell.tty.expect("stopping")?;
    shell.tty.type_keys(CTRL_Z)?;
    expect_stopped(&mut shell)?;
    shell.tty.until_within(arena::seconds(7), "the run is over", || {
        run.guard.still_there().is_none_or(|now| !now.alive())
    })?;
    shell.await_no_jobs()?;
    shell.leave(world)
}
