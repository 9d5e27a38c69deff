//! A window whose screen nobody reads: it is left as soon as the end is wanted.

use std::process::Stdio;

use arena::{Ended, Need, Outcome, Registry, Spawned, World, await_until, ensure};

use super::cast::{
    HERE, NEEDS, SOON_ENOUGH, all_clean, await_who, expect_reason, log_length, only_run, run_words,
};
use crate::desk::say;

pub fn register(registry: &mut Registry) {
    let needs = [NEEDS, &[Need::Program("yes")]].concat();
    registry.scenario("unread::timeout", &needs, timeout);
    registry.scenario("unread::stopped", &needs, stopped);
}

/// `run --pty -- yes` into a pipe that is held and never read.
fn unread(world: &mut World, options: &[&str]) -> Outcome<(Spawned, std::process::Child)> {
    let words = run_words(options, &["yes", "over and over"]);
    let mut command = world.command(world.fullstop());
    command.args(&words).stdin(Stdio::null()).stdout(Stdio::piped());
    world.spawn_piped(&format!("fullstop {}", words.join(" ")), &mut command)
}

fn timeout(world: &mut World) -> Outcome {
    let (spawned, child) = unread(world, &["--timeout", "1s"])?;
    let id = only_run(world)?;
    let ended = world.wait(&spawned, SOON_ENOUGH)?;
    ensure!(ended == Ended::Code(124), "run ended with {ended}");
    expect_reason(world, &id, "overall-timeout")?;
    drop(child);
    all_clean(world)
}

fn stopped(world: &mut World) -> Outcome {
    let (spawned, child) = unread(world, &[])?;
    let id = only_run(world)?;
    await_who(world, &id)?;
    // More than the pipe takes: from now on somebody waits for its reader.
    let much = || log_length(world, &id) > 128 * 1024;
    ensure!(await_until(SOON_ENOUGH, much), "nothing was written");
    say(world, HERE, &["stop", &id])?.expect(0)?;
    let ended = world.wait(&spawned, SOON_ENOUGH)?;
    ensure!(ended != Ended::Code(0), "run ended with {ended}");
    expect_reason(world, &id, "stopped")?;
    drop(child);
    all_clean(world)
}
