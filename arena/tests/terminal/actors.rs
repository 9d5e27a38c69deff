//! Who plays: scripts written for a scenario, and the processes of a run as
//! they are found in the closed world.

use std::os::unix::fs::PermissionsExt;

use arena::{Context, Outcome, Process, World, ensure};

use super::tty::{PATIENCE, Tty};

/// Writes an executable bash script into the directory every scenario starts
/// in, so that it is called as `./name`.
pub fn script(world: &World, name: &str, text: &str) -> Outcome {
    let path = world.dir().join(name);
    std::fs::write(&path, format!("#!/usr/bin/env bash\n{text}\n")).context(name)?;
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(&path, mode).context(name)
}

/// The only living process whose command line is exactly this.
pub fn find(command: &str) -> Option<Process> {
    let mut found =
        Process::all().into_iter().filter(|process| process.alive() && process.command == command);
    let first = found.next()?;
    found.next().is_none().then_some(first)
}

/// Waits for a process with this command line.
pub fn await_actor(tty: &mut Tty, command: &str) -> Outcome<Process> {
    let mut found = None;
    tty.until(&format!("{command:?} runs"), || {
        found = find(command);
        found.is_some()
    })?;
    found.context("it was there")
}

/// Waits until a process sleeps: it has nothing more to do until something
/// comes. A signal that reaches bash between looking for signals and sleeping
/// would wait for the sleep to end.
pub fn await_asleep(tty: &mut Tty, command: &str) -> Outcome<Process> {
    let mut found = None;
    tty.until(&format!("{command:?} runs and sleeps"), || {
        found = find(command).filter(is_asleep);
        found.is_some()
    })?;
    found.context("it was there")
}

fn is_asleep(process: &Process) -> bool {
    process.state == 'S'
}

/// Waits until a process and all of its group sleep in the foreground: from
/// then on a key typed is meant for them.
pub fn await_foreground(tty: &mut Tty, command: &str) -> Outcome<Process> {
    await_in_foreground(tty, command, is_asleep)
}

/// Waits only until a process and all of its group have been continued in the
/// foreground. They may have much to do yet, and a key typed comes quickly.
pub fn await_continued(tty: &mut Tty, command: &str) -> Outcome<Process> {
    await_in_foreground(tty, command, |process| !is_stopped(process))
}

fn await_in_foreground(
    tty: &mut Tty,
    command: &str,
    ready: fn(&Process) -> bool,
) -> Outcome<Process> {
    let pid = await_actor(tty, command)?.pid;
    let deadline = arena::Deadline::after(PATIENCE);
    loop {
        let now = Process::read(pid).context(format!("{command:?} has ended"))?;
        if tty.foreground() == Some(now.pgid) && group(now.pgid).iter().all(ready) {
            return Ok(now);
        }
        ensure!(deadline.stands(), "{command:?} does not wait in the foreground: {now}");
        tty.breathe();
    }
}

/// The living members of a process group.
pub fn group(pgid: i32) -> Vec<Process> {
    Process::all().into_iter().filter(|process| process.alive() && process.pgid == pgid).collect()
}

pub fn is_stopped(process: &Process) -> bool {
    matches!(process.state, 'T' | 't')
}

/// Waits until all of a group are stopped. They get the signal at the same
/// time, but each stops when it is next scheduled.
pub fn await_stopped(tty: &mut Tty, pgid: i32) -> Outcome {
    tty.until("all of the job are stopped", || group(pgid).iter().all(is_stopped))
}

/// A run seen from outside.
#[derive(Debug, Clone)]
pub struct Run {
    pub guard: Process,
    pub keeper: Process,
    pub leader: Process,
}

/// Waits for the only run in this world, and for its leader to be the command
/// that begins with these words.
pub fn await_run(tty: &mut Tty, command: &str) -> Outcome<Run> {
    let mut run = None;
    tty.until(&format!("a run of {command:?}"), || {
        run = find_run(command);
        run.is_some()
    })?;
    run.context("it was there")
}

fn find_run(command: &str) -> Option<Run> {
    let all: Vec<Process> = Process::all().into_iter().filter(Process::alive).collect();
    let leader = all.iter().find(|process| {
        process.command.starts_with(command)
            && all.iter().any(|other| other.pid == process.ppid && other.comm == "fullstop-keeper")
    })?;
    let keeper = all.iter().find(|process| process.pid == leader.ppid)?;
    let guard = all.iter().find(|process| process.pid == keeper.ppid)?;
    Some(Run { guard: guard.clone(), keeper: keeper.clone(), leader: leader.clone() })
}
