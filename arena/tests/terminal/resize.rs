//! The size of the window, and how its changes are told.

use arena::{Outcome, Registry, Signal, World, ensure, send_signal};

use super::actors::{await_actor, await_foreground, script};
use super::prefix::{Prefix, both};
use super::shell::Shell;

pub fn register(registry: &mut Registry) {
    both(registry, "resize::told-once", told_once);
    both(registry, "resize::known-to-the-command", known);
}

fn told_once(world: &mut World, prefix: Prefix) -> Outcome {
    // Of all that bash can wait for, only `wait` is left at once for a signal.
    let counts = "trap 'n=$((n + 1)); echo \"change $n: $(stty size)\"' WINCH\n\
         trap 'echo \"changes: $n\"; kill $!; exit 0' TERM\n\
         sleep 60 & echo up; while :; do wait $!; done";
    script(world, "counts", counts)?;
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}bash ./counts"))?;
    shell.tty.expect("up")?;
    let counter = await_foreground(&mut shell.tty, "bash ./counts")?;
    await_actor(&mut shell.tty, "sleep 60")?;
    for n in 1..=10 {
        await_foreground(&mut shell.tty, "bash ./counts")?;
        shell.tty.resize(30 + n, 210 + n)?;
        shell.tty.expect(&format!("change {n}: {} {}", 30 + n, 210 + n))?;
    }
    await_foreground(&mut shell.tty, "bash ./counts")?;
    send_signal(counter.pid, Signal::TERM)?;
    let said = shell.tty.expect("changes: 10\r\n")?;
    ensure!(!said.contains("change "), "told more than once: {said:?}");
    shell.prompt()?;
    shell.expect_status(0)?;
    shell.leave(world)
}

fn known(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.tty.resize(33, 211)?;
    let said = shell.line(&format!("{prefix}stty size"))?;
    ensure!(said.contains("33 211"), "another size: {said:?}");
    shell.leave(world)
}
