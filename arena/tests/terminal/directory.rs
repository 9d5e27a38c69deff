//! Terminals and tmux open a new window in the directory of the process that leads their
//! foreground. That is the guard, which stays where the command is.

use std::fs;
use std::path::{Path, PathBuf};

use arena::{Context, Outcome, Registry, World, ensure};

use super::actors::{await_foreground, await_run};
use super::prefix::run;
use super::shell::{CTRL_C, Shell};

pub fn register(registry: &mut Registry) {
    run(registry, "directory::of-the-foreground", foreground);
}

fn cwd(pid: i32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/cwd")).ok()
}

fn foreground(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.begin("fullstop run -- sleep 60")?;
    await_foreground(&mut shell.tty, "sleep 60")?;
    let run = await_run(&mut shell.tty, "sleep 60")?;
    let leads = shell.tty.foreground().context("nobody is in the foreground")?;
    ensure!(leads == run.guard.pid, "{leads} leads the foreground, not {}", run.guard);
    let keeper = run.keeper.pid;
    shell.tty.until("the keeper to leave", || cwd(keeper).as_deref() == Some(Path::new("/")))?;
    let at = cwd(leads).context("its directory")?;
    ensure!(at == world.dir(), "the guard is in {}", at.display());
    shell.tty.type_keys(CTRL_C)?;
    shell.prompt()?;
    shell.leave(world)
}
