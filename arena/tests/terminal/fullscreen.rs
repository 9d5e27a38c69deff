//! A full-screen program that is killed leaves the terminal as nobody could
//! use it. It is given back as it was found; and a program that leaves by
//! itself has the last word about it.

use arena::{Context, Outcome, Registry, Signal, World, ensure, send_signal};

use super::actors::{await_foreground, await_run, script};
use super::prefix::{Prefix, both, run};
use super::shell::Shell;

pub fn register(registry: &mut Registry) {
    run(registry, "fullscreen::killed-inside-a-script", killed_in_script);
    run(registry, "fullscreen::killed-at-the-prompt", killed_at_prompt);
    run(registry, "fullscreen::timed-out", timed_out);
    run(registry, "fullscreen::keeper-killed", keeper_killed);
    run(registry, "fullscreen::stopped-by-hand", stopped_by_hand);
    both(registry, "fullscreen::leaves-in-order", leaves_in_order);
    both(registry, "fullscreen::plain-command", plain_command);
    both(registry, "fullscreen::settings-meant-to-stay", meant_to_stay);
    both(registry, "fullscreen::killed-without-a-change", killed_unchanged);
}

/// What editors and agents do to a terminal, and then nothing more. Left by
/// itself only with a key.
const SCREEN: &str = "old=$(stty -g)\nstty raw -echo\nprintf '\\e[?1049h\\e[?25l\\e[?1003h'\n\
    printf up\nread -r -n 1 key\nprintf '\\e[?1003l\\e[?25h\\e[?1049l'\nstty \"$old\"\nexit 6";

/// A script that looks at the terminal before and after.
fn watched(command: &str) -> String {
    format!("stty -g > before\n{command}\necho \"ended $?\"\nstty -g > after")
}

fn expect_sane(world: &World, said: &str) -> Outcome {
    let read = |name: &str| std::fs::read_to_string(world.dir().join(name)).context(name);
    let (before, after) = (read("before")?, read("after")?);
    ensure!(before == after, "the settings were {before:?} and are {after:?}");
    for (meaning, code) in [
        ("the alternate screen is not left", "\x1b[?1049l"),
        ("the cursor is not shown", "\x1b[?25h"),
        ("the mouse still reports", "\x1b[?1003l"),
    ] {
        ensure!(said.contains(code), "{meaning}: {said:?}");
    }
    Ok(())
}

fn begin(shell: &mut Shell, world: &World, command: &str) -> Outcome {
    script(world, "screen", SCREEN)?;
    script(world, "outer", &watched(command))?;
    shell.begin("bash ./outer")?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "bash ./screen").map(drop)
}

fn killed_in_script(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    begin(&mut shell, world, "fullstop run -- bash ./screen")?;
    let run = await_run(&mut shell.tty, "bash ./screen")?;
    send_signal(run.leader.pid, Signal::KILL)?;
    let said = shell.tty.expect("ended 137\r\n")?;
    shell.prompt()?;
    expect_sane(world, &said)?;
    shell.leave(world)
}

fn timed_out(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    begin(&mut shell, world, "fullstop run --timeout 600ms --grace 1s -- bash ./screen")?;
    let said = shell.tty.expect("ended 124\r\n")?;
    shell.prompt()?;
    expect_sane(world, &said)?;
    shell.leave(world)
}

fn keeper_killed(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    begin(&mut shell, world, "fullstop run -- bash ./screen")?;
    let run = await_run(&mut shell.tty, "bash ./screen")?;
    send_signal(run.keeper.pid, Signal::KILL)?;
    let said = shell.tty.expect("ended 137\r\n")?;
    shell.prompt()?;
    expect_sane(world, &said)?;
    shell.leave(world)
}

fn stopped_by_hand(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    begin(&mut shell, world, "fullstop run -- bash ./screen")?;
    let run = await_run(&mut shell.tty, "bash ./screen")?;
    send_signal(run.guard.pid, Signal::TERM)?;
    let said = shell.tty.expect("ended 143\r\n")?;
    shell.prompt()?;
    expect_sane(world, &said)?;
    shell.leave(world)
}

/// Bash puts the settings right itself, but knows nothing of screens.
fn killed_at_prompt(world: &mut World) -> Outcome {
    script(world, "screen", SCREEN)?;
    let mut shell = Shell::start(world)?;
    shell.line("stty -g > before")?;
    shell.begin("fullstop run -- bash ./screen")?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "bash ./screen")?;
    let run = await_run(&mut shell.tty, "bash ./screen")?;
    send_signal(run.leader.pid, Signal::KILL)?;
    let said = shell.prompt()?;
    shell.line("stty -g > after")?;
    expect_sane(world, &said)?;
    shell.leave(world)
}

fn leaves_in_order(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    begin(&mut shell, world, &format!("{prefix}bash ./screen"))?;
    shell.tty.type_keys("q")?;
    let said = shell.tty.expect("ended 6\r\n")?;
    ensure!(
        said == "\x1b[?1003l\x1b[?25h\x1b[?1049l",
        "more was written than the program wrote: {said:?}"
    );
    shell.prompt()?;
    shell.leave(world)
}

fn plain_command(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    let said = shell.line(&format!("{prefix}echo plain"))?;
    ensure!(said == "plain\r\n", "more was written than the command wrote: {said:?}");
    let said = shell.line(&format!("{prefix}false"))?;
    ensure!(said.is_empty(), "more was written than the command wrote: {said:?}");
    shell.expect_status(1)?;
    shell.leave(world)
}

/// A command whose very purpose is to change the settings.
fn meant_to_stay(world: &mut World, prefix: Prefix) -> Outcome {
    script(world, "outer", &format!("{prefix}stty -ixon susp ^Y\necho \"ended $?\"\nstty -a"))?;
    let mut shell = Shell::start(world)?;
    shell.begin("bash ./outer")?;
    let said = shell.tty.expect("ended 0\r\n")?;
    ensure!(said.is_empty(), "more was written than the command wrote: {said:?}");
    let said = shell.prompt()?;
    ensure!(said.contains("-ixon") && said.contains("susp = ^Y"), "it did not stay: {said:?}");
    let said = shell.line(&format!("{prefix}stty ixon && {prefix}stty -a"))?;
    ensure!(said.contains(" ixon"), "it did not stay: {said:?}");
    shell.leave(world)
}

/// Where nothing was changed nothing is put right.
fn killed_unchanged(world: &mut World, prefix: Prefix) -> Outcome {
    script(world, "outer", &watched(&format!("{prefix}sleep 60")))?;
    let mut shell = Shell::start(world)?;
    shell.begin("bash ./outer")?;
    let actor = await_foreground(&mut shell.tty, "sleep 60")?;
    send_signal(actor.pid, Signal::TERM)?;
    let said = shell.tty.expect("ended 143\r\n")?;
    ensure!(!said.contains('\x1b'), "something was written: {said:?}");
    shell.prompt()?;
    shell.leave(world)
}
