//! Ctrl-C and Ctrl-\: the command's and the shell's business.

use arena::{Ended, Outcome, Registry, World, ensure};

use super::actors::{await_actor, await_asleep, await_foreground, find, is_stopped, script};
use super::prefix::{Prefix, both, run};
use super::shell::{
    CTRL_BACKSLASH, CTRL_C, CTRL_D, CTRL_Z, ENTER, PROMPT, Shell, nothing_is_left, on_terminal,
};
use super::tty::PATIENCE;

pub fn register(registry: &mut Registry) {
    both(registry, "interrupt::ends-a-loop-in-a-script", ends_a_script);
    both(registry, "interrupt::ends-a-loop-at-the-prompt", ends_a_loop);
    both(registry, "interrupt::handled-by-the-command", handled);
    both(registry, "interrupt::ignored-by-the-command", ignored);
    both(registry, "interrupt::handled-inside-a-script", handled_in_script);
    both(registry, "interrupt::quit-key", quit_key);
    both(registry, "interrupt::without-a-shell", without_a_shell);
    run(registry, "interrupt::takes-the-whole-tree", whole_tree);
    run(registry, "interrupt::while-starting", while_starting);
}

fn ends_a_script(world: &mut World, prefix: Prefix) -> Outcome {
    let text = format!("for i in 1 2 3; do echo \"turn $i\"; {prefix}sleep 30; done; echo after");
    script(world, "loop", &text)?;
    let mut shell = Shell::start(world)?;
    shell.begin("bash ./loop")?;
    shell.tty.expect("turn 1")?;
    await_foreground(&mut shell.tty, "sleep 30")?;
    shell.tty.type_keys(CTRL_C)?;
    let said = shell.prompt()?;
    ensure!(!said.contains("turn 2"), "the script took another turn: {said:?}");
    ensure!(!said.contains("after"), "the script went on: {said:?}");
    shell.expect_status(130)?;
    shell.leave(world)
}

fn ends_a_loop(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("for i in 1 2 3; do echo \"turn $i\"; {prefix}sleep 30; done"))?;
    shell.tty.expect("turn 1")?;
    await_foreground(&mut shell.tty, "sleep 30")?;
    shell.tty.type_keys(CTRL_C)?;
    let said = shell.prompt()?;
    ensure!(!said.contains("turn 2"), "the loop took another turn: {said:?}");
    shell.expect_status(130)?;
    shell.leave(world)
}

/// Says what it hears, and lives on until it has read a line.
const HANDLES: &str = "trap 'echo caught' INT; echo up; \
    until read -r line; do :; done; echo \"got $line\"; exit 7";

fn handled(world: &mut World, prefix: Prefix) -> Outcome {
    script(world, "handles", HANDLES)?;
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}bash ./handles"))?;
    shell.tty.expect("up")?;
    for _ in 0..3 {
        await_foreground(&mut shell.tty, "bash ./handles")?;
        shell.tty.type_keys(CTRL_C)?;
        shell.tty.expect("caught")?;
    }
    shell.tty.type_keys("me\r")?;
    shell.tty.expect("got me")?;
    shell.prompt()?;
    shell.expect_status(7)?;
    shell.leave(world)
}

fn ignored(world: &mut World, prefix: Prefix) -> Outcome {
    script(world, "ignores", "trap '' INT QUIT; echo up; cat; exit 8")?;
    let mut shell = Shell::start(world)?;
    shell.begin(&format!("{prefix}bash ./ignores"))?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "cat")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.tty.type_keys(CTRL_BACKSLASH)?;
    // The keys flush what was typed before them: only then is more typed.
    shell.tty.expect("^\\")?;
    shell.tty.type_keys("still here\r")?;
    shell.tty.expect("still here\r\nstill here")?;
    shell.tty.type_keys(CTRL_D)?;
    shell.prompt()?;
    shell.expect_status(8)?;
    shell.leave(world)
}

/// Bash goes on with a script whose command handled the Ctrl-C and then left
/// of its own accord.
fn handled_in_script(world: &mut World, prefix: Prefix) -> Outcome {
    script(world, "handles", HANDLES)?;
    script(world, "outer", &format!("{prefix}bash ./handles; echo \"after $?\""))?;
    let mut shell = Shell::start(world)?;
    shell.begin("bash ./outer")?;
    shell.tty.expect("up")?;
    await_foreground(&mut shell.tty, "bash ./handles")?;
    // The script must have begun to wait: only then it lets its command decide.
    await_asleep(&mut shell.tty, "bash ./outer")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.tty.expect("caught")?;
    shell.tty.type_keys(ENTER)?;
    shell.tty.expect("after 7")?;
    shell.prompt()?;
    shell.expect_status(0)?;
    shell.leave(world)
}

fn quit_key(world: &mut World, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    shell.line("ulimit -c 0")?;
    shell.begin(&format!("{prefix}sleep 30"))?;
    await_foreground(&mut shell.tty, "sleep 30")?;
    shell.tty.type_keys(CTRL_BACKSLASH)?;
    let said = shell.prompt()?;
    ensure!(said.contains("Quit"), "bash did not say Quit: {said:?}");
    shell.expect_status(131)?;
    shell.leave(world)
}

/// The leader dies of Ctrl-C as ever; whom it left behind in other sessions
/// does not outlive it, and bash still sees the signal.
fn whole_tree(world: &mut World) -> Outcome {
    world.bystander("zoo", arena::User::Root, &[])?;
    script(world, "tree", "setsid sleep 31 & (setsid sleep 32 &) ; sleep 30")?;
    let mut shell = Shell::start(world)?;
    shell.begin("fullstop run -- bash ./tree")?;
    for name in ["sleep 31", "sleep 32"] {
        await_actor(&mut shell.tty, name)?;
    }
    await_foreground(&mut shell.tty, "sleep 30")?;
    shell.tty.type_keys(CTRL_C)?;
    shell.prompt()?;
    for name in ["sleep 31", "sleep 32"] {
        ensure!(find(name).is_none(), "{name:?} outlived its run");
    }
    shell.expect_status(130)?;
    shell.leave(world)
}

/// The command leads its session, as in a terminal that was opened for it. In
/// such a group Ctrl-Z stops nobody: nobody could continue it.
fn without_a_shell(world: &mut World, prefix: Prefix) -> Outcome {
    let line = format!("{prefix}sleep 60");
    let words: Vec<&str> = line.split(' ').collect();
    let (mut tty, command) = on_terminal(world, "command", &words, |_| {})?;
    await_foreground(&mut tty, "sleep 60")?;
    tty.type_keys(CTRL_Z)?;
    tty.expect("^Z")?;
    let sleeper = await_foreground(&mut tty, "sleep 60")?;
    ensure!(!is_stopped(&sleeper), "stopped for good: {sleeper}");
    tty.type_keys(CTRL_C)?;
    let ended = world.wait(&command, PATIENCE)?;
    ensure!(ended == Ended::Signal(2), "it ended with {ended}");
    nothing_is_left(world)
}

/// A Ctrl-C that comes before there is a command to hear it is still a Ctrl-C,
/// and no other signal: scripts look at that. When in its first milliseconds
/// a run is hit is up to chance, so it is tried often.
fn while_starting(world: &mut World) -> Outcome {
    const ROUNDS: usize = 20;
    script(world, "quick", "while :; do echo \"turn\"; fullstop run -- true; done")?;
    let mut shell = Shell::start(world)?;
    for _ in 0..ROUNDS {
        shell.begin("bash ./quick")?;
        shell.tty.expect("turn\r\n")?;
        loop {
            shell.tty.until("a run begins", || find("fullstop run -- true").is_some())?;
            shell.tty.type_keys(CTRL_C)?;
            shell.tty.expect("^C")?;
            // Bash goes on if the command was over before the key could end it.
            let next = shell.tty.expect_one_of(&[PROMPT, "turn\r\n"])?;
            ensure!(!next.before.contains("Terminated"), "Ctrl-C became another signal");
            if next.which == PROMPT {
                break;
            }
        }
        shell.expect_status(130)?;
    }
    shell.leave(world)
}
