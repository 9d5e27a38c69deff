//! The window closes. An agent that saves its work on HUP gets to finish it,
//! and then nothing is left.

use arena::{
    Context, Outcome, Process, Registry, Signal, World, await_until, ensure, seconds, send_signal,
};
use rustix::process::kill_process_group;

use super::actors::{await_asleep, await_foreground, await_run, script};
use super::prefix::{Prefix, both, run};
use super::shell::{CTRL_Z, Shell, nothing_is_left, on_terminal};
use super::tty::PATIENCE;

pub fn register(registry: &mut Registry) {
    both(registry, "hangup::window-closes", window_closes);
    both(registry, "hangup::window-closes-on-a-script", closes_on_script);
    both(registry, "hangup::window-closes-on-a-background-job", closes_on_background);
    both(registry, "hangup::window-closes-on-a-stopped-job", closes_on_stopped);
    both(registry, "hangup::window-closes-on-an-inner-shell", closes_on_inner_shell);
    both(registry, "hangup::without-a-shell", without_a_shell);
    both(registry, "hangup::nohup", nohup);
    run(registry, "hangup::verbose", verbose);
    run(registry, "hangup::twice-within-a-millisecond", twice);
    run(registry, "hangup::never-escalates", never_escalates);
    run(registry, "hangup::stubborn-tree", stubborn_tree);
}

/// Saves for 300 ms. A second HUP, which closing windows send, is no news. It
/// waits inside the shell itself: a child would get the signal as well.
const SAVES: &str = "trap save HUP\n\
    save() { trap '' HUP; read -r -t 0.3 <> pause; echo saved > saved; exit 0; }\n\
    mkfifo pause\n\
    echo up\n\
    while :; do read -r <> pause; done";

fn saver(world: &mut World) -> Outcome {
    world.bystander("zoo", arena::User::Root, &[])?;
    script(world, "saves", SAVES)
}

fn expect_saved(world: &World) -> Outcome {
    let path = world.dir().join("saved");
    let saved = await_until(PATIENCE, || path.exists());
    ensure!(saved, "the agent was not allowed to finish");
    Ok(())
}

/// Saved, then gone, the shell and the guard included.
fn expect_orderly_end(world: &World) -> Outcome {
    world.expect_extinct(seconds(6))?;
    ensure!(world.dir().join("saved").exists(), "the agent was not allowed to finish");
    nothing_is_left(world)
}

fn window_closes(world: &mut World, prefix: Prefix) -> Outcome {
    saver(world)?;
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}bash ./saves"))?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "bash ./saves")?;
    drop(shell.tty);
    expect_orderly_end(world)
}

fn closes_on_script(world: &mut World, prefix: Prefix) -> Outcome {
    saver(world)?;
    script(world, "outer", &format!("{prefix}bash ./saves; echo after"))?;
    let mut shell = Shell::start(world)?;
    shell.begin("bash ./outer")?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "bash ./saves")?;
    drop(shell.tty);
    expect_orderly_end(world)
}

fn closes_on_background(world: &mut World, prefix: Prefix) -> Outcome {
    saver(world)?;
    let mut shell = Shell::start(world)?;
    shell.begin_behind(&format!("{prefix}bash ./saves &"), "up")?;
    await_asleep(&mut shell.tty, "bash ./saves")?;
    drop(shell.tty);
    expect_orderly_end(world)
}

/// Bash hangs up its stopped jobs, and then terminates and continues them:
/// there is no time to save anything.
fn closes_on_stopped(world: &mut World, prefix: Prefix) -> Outcome {
    saver(world)?;
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}bash ./saves"))?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "bash ./saves")?;
    shell.tty.type_keys(CTRL_Z)?;
    shell.tty.expect("Stopped")?;
    shell.prompt()?;
    drop(shell.tty);
    world.expect_extinct(seconds(6))?;
    nothing_is_left(world)
}

/// The agent is a job of the shell that is the command.
fn closes_on_inner_shell(world: &mut World, prefix: Prefix) -> Outcome {
    saver(world)?;
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("PS1='<inner> ' {prefix}bash --norc --noprofile -i"))?;
    shell.tty.expect("<inner> ")?;
    shell.begin("bash ./saves")?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "bash ./saves")?;
    drop(shell.tty);
    expect_orderly_end(world)
}

/// As a terminal started with a command: the command leads the session.
fn without_a_shell(world: &mut World, prefix: Prefix) -> Outcome {
    saver(world)?;
    let line = format!("{prefix}bash ./saves");
    let words: Vec<&str> = line.split(' ').collect();
    let (mut tty, _) = on_terminal(world, "command", &words, |_| {})?;
    tty.expect("up")?;
    await_asleep(&mut tty, "bash ./saves")?;
    drop(tty);
    expect_orderly_end(world)
}

/// A closed window is no reason for what was meant to outlive it.
fn nohup(world: &mut World, prefix: Prefix) -> Outcome {
    script(world, "lives", "echo up > up; read -r line < go; echo \"got $line\" > got; exit 0")?;
    let mut shell = Shell::start(world)?;
    shell.line("mkfifo go")?;
    shell.begin(&format!("nohup {prefix}bash ./lives"))?;
    await_foreground(&mut shell.tty, "bash ./lives")?;
    let up = world.dir().join("up");
    shell.tty.until("the command is up", || up.exists())?;
    drop(shell.tty);
    world.wait(&shell.bash, PATIENCE)?;
    std::fs::write(world.dir().join("go"), "on\n").context("go")?;
    world.expect_extinct(seconds(5))?;
    let got = std::fs::read_to_string(world.dir().join("got")).context("it did not live on")?;
    ensure!(got == "got on\n", "not as it should be: {got:?}");
    nothing_is_left(world)
}

/// There is nothing to write to any more, and that must not matter.
fn verbose(world: &mut World) -> Outcome {
    saver(world)?;
    let mut shell = Shell::start(world)?;
    shell.begin("fullstop run -v --report report.json -- bash ./saves")?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "bash ./saves")?;
    drop(shell.tty);
    expect_orderly_end(world)?;
    let report = arena::report::Report::read(&world.dir().join("report.json"))?;
    ensure!(report.reason == "stopped", "its reason was {}", report.reason);
    Ok(())
}

/// What a closing window does, as tightly as it can be done.
fn twice(world: &mut World) -> Outcome {
    saver(world)?;
    let mut shell = Shell::start(world)?;
    shell.begin("fullstop run --report report.json -- bash ./saves")?;
    shell.tty.expect("up")?;
    let agent = await_foreground(&mut shell.tty, "bash ./saves")?;
    let group = arena::Pid::from_raw(agent.pgid).context("its group")?;
    for _ in 0..2 {
        kill_process_group(group, Signal::HUP).context("hanging up")?;
    }
    shell.prompt()?;
    shell.expect_status(0)?;
    expect_saved(world)?;
    let report = arena::report::Report::read(&world.dir().join("report.json"))?;
    ensure!(report.steps.len() == 1, "not one step: {:?}", report.steps);
    ensure!(report.steps[0].step == "hup@leader", "another step: {:?}", report.steps);
    shell.leave(world)
}

/// A later HUP is no impatience, however late.
fn never_escalates(world: &mut World) -> Outcome {
    let slow = "trap save HUP\n\
        save() { trap '' HUP; read -r -t 1.3 <> pause; echo halfway; read -r -t 0.5 <> pause; \
        echo saved > saved; exit 0; }\n\
        mkfifo pause\necho up\nwhile :; do read -r <> pause; done";
    script(world, "slow", slow)?;
    let mut shell = Shell::start(world)?;
    shell.begin("fullstop run -q --report report.json -- bash ./slow")?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "bash ./slow")?;
    let run = await_run(&mut shell.tty, "bash ./slow")?;
    send_signal(run.guard.pid, Signal::HUP)?;
    shell.tty.expect("halfway")?;
    send_signal(run.guard.pid, Signal::HUP)?;
    shell.prompt()?;
    shell.expect_status(0)?;
    expect_saved(world)?;
    shell.leave(world)
}

/// Whoever does not care for HUP is gone as well, when the ladder is climbed.
fn stubborn_tree(world: &mut World) -> Outcome {
    world.bystander("zoo", arena::User::Root, &[])?;
    let text = "trap '' HUP TERM INT; (setsid sleep 61 &); echo up; while :; do sleep 60; done";
    script(world, "stubborn", text)?;
    let mut shell = Shell::start(world)?;
    shell.begin("fullstop run --grace 1s -- bash ./stubborn")?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "bash ./stubborn")?;
    drop(shell.tty);
    world.wait(&shell.bash, PATIENCE)?;
    let alive = |process: &Process| process.command == "bash ./stubborn";
    ensure!(world.survivors().iter().any(alive), "killed without being asked");
    world.expect_extinct(seconds(7))?;
    nothing_is_left(world)
}
