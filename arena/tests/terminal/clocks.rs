//! Time that a person takes with Ctrl-Z is not the command's.

use arena::{Outcome, Registry, World, await_until, ensure, seconds};

use super::actors::{await_foreground, await_stopped, find, group, is_stopped, script};
use super::prefix::run;
use super::shell::{CTRL_Z, JOBS, Shell};

pub fn register(registry: &mut Registry) {
    run(registry, "clocks::stopped-time-does-not-count", stopped);
    run(registry, "clocks::a-command-cannot-stop-them", stops_itself);
}

/// It stays stopped for longer than it has in all; continued, it gets what is left.
fn stopped(world: &mut World) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.begin("fullstop run --timeout 6s -- sleep 60")?;
    let actor = await_foreground(&mut shell.tty, "sleep 60")?;
    shell.tty.type_keys(CTRL_Z)?;
    shell.tty.expect("Stopped")?;
    shell.prompt()?;
    await_stopped(&mut shell.tty, actor.pgid)?;
    // Nothing can be waited for where nothing is to happen.
    let ended = await_until(seconds(7), || !group(actor.pgid).iter().any(is_stopped));
    ensure!(!ended, "its time ran out while it was stopped");
    let said = shell.line(JOBS)?;
    ensure!(said.contains("Stopped"), "the job is not stopped any more: {said:?}");
    shell.begin("fg")?;
    shell.prompt()?;
    shell.expect_status(124)?;
    shell.leave(world)
}

/// A command that stops itself as Ctrl-Z would has its time all the same.
fn stops_itself(world: &mut World) -> Outcome {
    script(world, "stops", "sleep 61 &\necho stopping\nkill -TSTP $$\nwait")?;
    let mut shell = Shell::start(world)?;
    shell.begin("fullstop run --timeout 3s -- bash ./stops")?;
    shell.tty.expect("stopping")?;
    // The shell sees a stop or none; nobody continues it.
    shell.tty.until("nobody of the run is left", || find("sleep 61").is_none())?;
    shell.prompt()?;
    shell.await_no_jobs()?;
    shell.leave(world)
}
