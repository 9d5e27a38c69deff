//! The keys that leave a window without ending what it shows.

use arena::{Ended, Outcome, Registry, World, ensure};

use super::cast::{
    NEEDS, PARROT_COMMAND, all_clean, await_asleep, await_log, await_log_times, await_who,
    log_text, only_run, rehearse, run_words, say_to_parrot, start_parrot, stop,
};
use super::window::{DETACH, USUAL, Window};
use crate::shell::CTRL_BACKSLASH;

pub fn register(registry: &mut Registry) {
    registry.scenario("detach::from-run", NEEDS, from_run);
    registry.scenario("detach::one-key-is-the-command-s", NEEDS, one_key);
    registry.scenario("detach::keys-of-one-s-own", NEEDS, own_keys);
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
