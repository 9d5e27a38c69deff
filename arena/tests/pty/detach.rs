//! The keys that leave a window without ending what it shows.

use arena::{Ended, Need, Outcome, Registry, World, await_until, ensure};

use super::cast::{
    HERE, NEEDS, PARROT_COMMAND, SOON_ENOUGH, all_clean, await_asleep, await_log, await_log_times,
    await_who, log_text, only_run, rehearse, run_words, say_to_parrot, start_parrot, stop,
};
use super::window::{DETACH, USUAL, Window};
use crate::desk::ask_program;
use crate::shell::CTRL_BACKSLASH;

pub fn register(registry: &mut Registry) {
    registry.scenario("detach::from-run", NEEDS, from_run);
    registry.scenario("detach::one-key-is-the-command-s", NEEDS, one_key);
    registry.scenario("detach::keys-of-one-s-own", NEEDS, own_keys);
    let needs = [NEEDS, &[Need::Program("tmux"), Need::Program("seq")]].concat();
    registry.scenario("detach::the-cursor-stays", &needs, cursor_stays);
}

/// The run has lost its host and its window, and goes on: it hears, it can be looked at
/// again, and it ends when and how it is told.
fn from_run(world: &mut World) -> Outcome {
    rehearse(world)?;
    let mut window = Window::opened(world, USUAL, &run_words(&[], PARROT_COMMAND))?;
    window.shows("ready")?;
    let id = only_run(world)?;
    window.types("before\r")?;
    window.shows("heard before")?;
    window.types(DETACH)?;
    window.ends(world, Ended::Code(0))?;
    window.shows(&format!("fullstop attach {id}"))?;
    window.expect_given_back()?;
    say_to_parrot(world, &id, "after")?;
    let mut again = Window::opened(world, USUAL, &["attach", &id])?;
    again.shows("heard before")?;
    again.shows("heard after")?;
    again.types("once more\r")?;
    again.shows("heard once more")?;
    again.types(DETACH)?;
    again.ends(world, Ended::Code(0))?;
    again.expect_given_back()?;
    say_to_parrot(world, &id, "alone")?;
    // The first reason wins: had it been stopped for its host, this would say so.
    stop(world, &id)?;
    all_clean(world)
}

/// A single key is held back for a moment, and then is the command's; so is one that
/// another key follows.
fn one_key(world: &mut World) -> Outcome {
    rehearse(world)?;
    let mut window = Window::opened(world, USUAL, &run_words(&[], PARROT_COMMAND))?;
    window.shows("ready")?;
    let id = only_run(world)?;
    let leader = await_who(world, &id)?.leader;
    await_asleep(&leader)?;
    window.types(CTRL_BACKSLASH)?;
    window.shows("got QUIT")?;
    await_asleep(&leader)?;
    window.types(&format!("{CTRL_BACKSLASH}word\r"))?;
    await_log_times(world, &id, "got QUIT\r\n", 2)?;
    window.shows("heard word")?;
    window.types("exit 0\r")?;
    window.ends(world, Ended::Code(0))?;
    window.expect_given_back()?;
    all_clean(world)
}

fn own_keys(world: &mut World) -> Outcome {
    let id = start_parrot(world, &[])?;
    let leader = await_who(world, &id)?.leader;
    let words = ["attach", "--detach-keys", "ctrl-p,ctrl-q", &id];
    let mut window = Window::opened(world, USUAL, &words)?;
    // The usual keys are like any others.
    await_asleep(&leader)?;
    window.types(CTRL_BACKSLASH)?;
    await_log(world, &id, "got QUIT\r\n")?;
    await_asleep(&leader)?;
    window.types(CTRL_BACKSLASH)?;
    await_log_times(world, &id, "got QUIT\r\n", 2)?;
    window.types("\x10\x11")?;
    window.ends(world, Ended::Code(0))?;
    window.expect_given_back()?;
    // None at all.
    let mut window = Window::opened(world, USUAL, &["attach", "--detach-keys", "none", &id])?;
    await_asleep(&leader)?;
    window.types(DETACH)?;
    await_log_times(world, &id, "got QUIT\r\n", 3)?;
    window.types("here\r")?;
    window.shows("heard here")?;
    window.types("exit 0\r")?;
    window.ends(world, Ended::Code(0))?;
    ensure!(!log_text(world, &id).contains("heard \u{10}"), "the keys were passed on");
    all_clean(world)
}

/// A tmux that has used its other screen before keeps where its cursor was then, and
/// puts it there whenever it is told to leave that screen, though it is not on it.
fn cursor_stays(world: &mut World) -> Outcome {
    let tmux = |world: &mut World, words: &[&str]| -> Outcome<String> {
        let asked = ask_program(world, HERE, "tmux", words, |command| {
            command.args(["-S", "./tmux", "-f", "/dev/null"]).args(words);
        })?;
        let said = asked.hear(world, SOON_ENOUGH)?;
        said.expect(0)?;
        Ok(said.out)
    };
    let screen = |world: &mut World, what: &str| -> Outcome<String> {
        let mut shown = String::new();
        let mut there = || {
            shown = tmux(world, &["capture-pane", "-p"]).unwrap_or_default();
            shown.contains(what)
        };
        let there = await_until(SOON_ENOUGH, &mut there);
        ensure!(there, "the screen does not show {what:?}: {shown}");
        Ok(shown)
    };
    let line = |world: &mut World, line: &str| tmux(world, &["send-keys", line, "Enter"]);
    tmux(world, &["new-session", "-d", "-x", "100", "-y", "30", "sh"])?;
    line(world, "printf '\\033[?1049hother\\033[?1049l'; seq 10; echo used:$?")?;
    screen(world, "used:0")?;
    let fullstop = world.fullstop();
    let command = "sh -c 'echo ready; read gone'";
    line(world, &format!("{} run --pty --cage tree -- {command}", fullstop.display()))?;
    screen(world, "\nready\n")?;
    let id = only_run(world)?;
    tmux(world, &["send-keys", "C-\\", "C-\\"])?;
    let shown = screen(world, &format!("detached; fullstop attach {id}"))?;
    let wanted = format!("\nready\n\ndetached; fullstop attach {id}");
    ensure!(shown.contains(&wanted), "the cursor was elsewhere: {shown}");
    let all: Vec<String> = (1..=10).map(|n| n.to_string()).collect();
    ensure!(shown.contains(&all.join("\n")), "old text was written over: {shown}");
    stop(world, &id)?;
    tmux(world, &["kill-server"])?;
    all_clean(world)
}
