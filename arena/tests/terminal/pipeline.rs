//! Pipelines: several commands, one job.

use arena::{Context, Outcome, Registry, World, ensure};

use super::actors::{await_actor, await_continued, await_foreground, await_stopped, group, script};
use super::prefix::{Prefix, both};
use super::shell::{CTRL_C, CTRL_D, CTRL_Z, Shell};

pub fn register(registry: &mut Registry) {
    both(registry, "pipeline::the-reader-leaves-first", reader_leaves);
    both(registry, "pipeline::in-the-middle", in_the_middle);
    both(registry, "pipeline::both-ends", both_ends);
    both(registry, "pipeline::suspended-as-a-whole", suspended);
    both(registry, "pipeline::interrupted-as-a-whole", interrupted);
    both(registry, "pipeline::into-a-pager", into_a_pager);
    both(registry, "pipeline::killed-into-a-pager", killed_into_a_pager);
}

fn reader_leaves(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    let said = shell.line(&format!("{prefix}yes | head -1; echo ${{PIPESTATUS[*]}}"))?;
    ensure!(said == "y\r\n141 0\r\n", "not as it should be: {said:?}");
    shell.leave(world)
}

fn in_the_middle(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    let said = shell.line(&format!("echo x | {prefix}cat | cat; echo ${{PIPESTATUS[*]}}"))?;
    ensure!(said == "x\r\n0 0 0\r\n", "not as it should be: {said:?}");
    let line = format!("echo x | {prefix}bash -c 'cat; exit 3' | cat; echo ${{PIPESTATUS[*]}}");
    let said = shell.line(&line)?;
    ensure!(said == "x\r\n0 3 0\r\n", "not as it should be: {said:?}");
    shell.leave(world)
}

fn both_ends(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}cat | {prefix}tr a-z A-Z; echo ${{PIPESTATUS[*]}}"))?;
    await_foreground(&mut shell.tty, "cat")?;
    await_foreground(&mut shell.tty, "tr a-z A-Z")?;
    shell.tty.type_keys("typed\r")?;
    shell.tty.type_keys(CTRL_D)?;
    shell.tty.expect("TYPED")?;
    shell.tty.expect("0 0")?;
    shell.prompt()?;
    shell.leave(world)
}

fn suspended(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}sleep 60 | {prefix}cat | cat -u"))?;
    for member in ["sleep 60", "cat", "cat -u"] {
        await_foreground(&mut shell.tty, member)?;
    }
    for _ in 0..5 {
        let pgid = await_continued(&mut shell.tty, "cat -u")?.pgid;
        shell.tty.type_keys(CTRL_Z)?;
        shell.tty.expect("Stopped")?;
        shell.prompt()?;
        await_stopped(&mut shell.tty, pgid)?;
        let said = shell.line("jobs")?;
        ensure!(said.contains("Stopped"), "the job is not stopped: {said:?}");
        shell.begin("fg")?;
    }
    await_foreground(&mut shell.tty, "sleep 60")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.prompt()?;
    shell.expect_status(130)?;
    shell.leave(world)
}

fn interrupted(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}sleep 60 | {prefix}cat; echo ${{PIPESTATUS[*]}}"))?;
    await_foreground(&mut shell.tty, "sleep 60")?;
    await_foreground(&mut shell.tty, "cat")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.prompt()?;
    shell.expect_status(130)?;
    shell.leave(world)
}

/// What a pager does to the terminal; its text comes through the pipe, its
/// keys from the terminal.
const PAGER: &str = "stty raw -echo < /dev/tty; cat > /dev/null & echo up; \
    read -r -n 1 key < /dev/tty; stty -raw echo < /dev/tty; exit 4";

/// Of the two in the foreground one ends, and must not take the terminal out
/// of the hands of the other.
fn into_a_pager(world: &mut World, prefix: Prefix) -> Outcome {
    script(world, "pager", PAGER)?;
    script(world, "text", "echo text; read -r line < go")?;
    let mut shell = Shell::start(world)?;
    shell.line("mkfifo go")?;
    shell.begin(&format!("{prefix}bash ./text | bash ./pager"))?;
    shell.tty.expect("up")?;
    let text = await_actor(&mut shell.tty, "bash ./text")?;
    std::fs::write(world.dir().join("go"), "go\n").context("go")?;
    behind_a_pager(world, shell, text.pgid)
}

fn killed_into_a_pager(world: &mut World, prefix: Prefix) -> Outcome {
    script(world, "pager", PAGER)?;
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}sleep 60 | bash ./pager"))?;
    shell.tty.expect("up")?;
    let text = await_actor(&mut shell.tty, "sleep 60")?;
    arena::send_signal(text.pid, arena::Signal::KILL)?;
    behind_a_pager(world, shell, text.pgid)
}

fn behind_a_pager(world: &mut World, mut shell: Shell, pgid: i32) -> Outcome {
    shell.tty.until("only the pager is left", || {
        let left = group(pgid);
        left.len() == 1 && left[0].command == "bash ./pager"
    })?;
    let now = shell.tty.settings()?;
    let raw = !now.local_modes.contains(rustix::termios::LocalModes::ICANON);
    ensure!(raw, "the settings of the pager are gone");
    shell.tty.type_keys("q")?;
    let said = shell.prompt()?;
    ensure!(!said.contains('\x1b'), "written into the pager's screen: {said:?}");
    shell.expect_status(4)?;
    shell.leave(world)
}
