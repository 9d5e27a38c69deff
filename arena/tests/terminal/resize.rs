//! The size of the window, and how its changes are told.

use arena::{Outcome, Registry, World, ensure};

use super::actors::{await_foreground, script};
use super::prefix::{Prefix, both};
use super::shell::Shell;

pub fn register(registry: &mut Registry) {
    both(registry, "resize::told-once", told_once);
    both(registry, "resize::known-to-the-command", known);
}

fn told_once(world: &mut World, prefix: Prefix) -> Outcome {
    // Bash hears of a change when a read returns, so this one returns often.
    let counts = "trap 'n=$((n + 1)); echo \"change $n: $(stty size)\"' WINCH; echo up; \
         until [ \"$line\" = end ]; do read -r -t 0.05 line && echo \"got $line\"; done";
    script(world, "counts", counts)?;
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}bash ./counts"))?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "bash ./counts")?;
    for n in 1..=10 {
        shell.tty.resize(30 + n, 210 + n)?;
        // Said in answer to a line, so that a second telling would be seen.
        shell.tty.expect(&format!("change {n}: {} {}", 30 + n, 210 + n))?;
        shell.tty.type_keys(&format!("{n}\r"))?;
        let said = shell.tty.expect(&format!("got {n}"))?;
        ensure!(!said.contains("change"), "told more than once: {said:?}");
    }
    shell.tty.type_keys("end\r")?;
    shell.prompt()?;
    shell.leave(world)
}

fn known(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.tty.resize(33, 211)?;
    let said = shell.line(&format!("{prefix}stty size"))?;
    ensure!(said.contains("33 211"), "another size: {said:?}");
    shell.leave(world)
}
