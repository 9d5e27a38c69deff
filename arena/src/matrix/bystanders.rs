//! Everybody near a run who has nothing to do with it.

use std::fs;

use crate::{Context, Outcome, Process, User, World, await_until, ensure, seconds};

/// What the foreign child of `run` is called.
pub const FOREIGN: &str = "foreign";

/// Started before the run and outside of it.
pub fn gather(world: &mut World, user: User) -> Outcome {
    let marker = ["FULLSTOP_ID", "FULLSTOP_RUN", "FULLSTOP"]
        .map(|key| (key.to_owned(), "01JARENA0000000000000000000".to_owned()));
    // The same program name, user, environment, session and process group.
    world.bystander("zoo", user, &marker)?;
    // The name of our own, in a session of its own.
    let keeper = world.bystander_command("fullstop-keeper");
    let mut command = world.command("setsid");
    command.arg(keeper.get_program()).args(keeper.get_args());
    user.apply(&mut command);
    let spawned = world.spawn("bystander in another session", &mut command)?;
    world.adopt_bystander("in another session", spawned.pid)?;
    Ok(())
}

/// A stranger with exactly the environment of the leader, as desktop buses and
/// `at` make them.
pub fn copy_the_marker(world: &mut World, leader: i32, user: User) -> Outcome {
    let environ =
        fs::read(format!("/proc/{leader}/environ")).context("environment of the leader")?;
    let environ = String::from_utf8_lossy(&environ).into_owned();
    let pair =
        |entry: &str| entry.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    let environ: Vec<(String, String)> = environ.split('\0').filter_map(pair).collect();
    world.bystander("zoo", user, &environ).map(|_| ())
}

/// Finds the child that `run` had before it was `run`.
pub fn adopt_foreign(world: &mut World, run: i32) -> Outcome {
    let find = || Process::all().into_iter().find(|p| p.ppid == run && p.comm == FOREIGN);
    ensure!(await_until(seconds(5), || find().is_some()), "run has no foreign child");
    let pid = find().context("the foreign child is gone")?.pid;
    world.adopt_bystander(FOREIGN, pid).map(|_| ())
}
