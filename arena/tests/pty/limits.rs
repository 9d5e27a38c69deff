//! No terminal to be had, or hardly a descriptor: one clear line, and nothing left.

use std::path::Path;

use arena::{Context, Ended, Outcome, Registry, World, ensure, seconds};
use rustix::mount::{MountFlags, mount, mount_bind};

use super::cast::{
    HERE, NEEDS, PARROT_COMMAND, SOON_ENOUGH, all_clean, await_log, only_run, rehearse, run_words,
    start_parrot, stop,
};
use super::window::{DETACH, USUAL, Window};
use crate::desk::{ask_program, live_ids, say};
use crate::tty::Tty;

pub fn register(registry: &mut Registry) {
    registry.scenario("limits::no-terminal-to-be-had", NEEDS, no_terminal);
    registry.scenario("limits::few-descriptors", NEEDS, few_descriptors);
    registry.scenario("limits::too-many-windows", NEEDS, too_many_windows).limit(seconds(180));
}

/// Gives this world terminals of its own, no more than so many.
pub fn own_terminals(most: u32) -> Outcome {
    let options = format!("newinstance,ptmxmode=0666,mode=620,max={most}");
    let options = std::ffi::CString::new(options).context("options")?;
    mount("arena", "/dev/pts", "devpts", MountFlags::empty(), &*options)
        .context("mounting terminals")?;
    // Where it is a device of its own it finds them by the directory beside it; where
    // it was bound from elsewhere it would not.
    if !Path::new("/dev/ptmx").is_symlink() {
        mount_bind("/dev/pts/ptmx", "/dev/ptmx").context("binding /dev/ptmx")?;
    }
    Ok(())
}

/// How many terminals there are.
pub fn terminals() -> usize {
    let entries = std::fs::read_dir("/dev/pts").into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name() != "ptmx").count()
}

fn no_terminal(world: &mut World) -> Outcome {
    own_terminals(2)?;
    rehearse(world)?;
    let first = Tty::open(world)?;
    let second = Tty::open(world)?;
    ensure!(terminals() == 2, "there are {} terminals", terminals());
    let words = ["start", "--cage", "tree", "--pty", "--", "bash", "./parrot"];
    let said = say(world, HERE, &words)?;
    said.expect_one_line(125, "terminal")?;
    ensure!(said.out.is_empty(), "it said an id: {:?}", said.out);
    world.expect_extinct(SOON_ENOUGH)?;
    ensure!(live_ids(world).is_empty(), "a run is listed: {:?}", live_ids(world));
    // One is left, and `run` stands on it: there is none for its command.
    drop(first);
    let mut window = Window::open(world, USUAL, &run_words(&[], PARROT_COMMAND))?;
    window.ends(world, Ended::Code(125))?;
    window.shows("terminal")?;
    let said = window.tty.seen();
    ensure!(said.lines().count() == 1, "it did not say one line: {said:?}");
    window.expect_given_back()?;
    drop((window, second));
    // With room for two, a run and a window on it have just enough.
    let id = start_parrot(world, &[])?;
    let mut window = Window::opened(world, USUAL, &["attach", &id])?;
    window.shows("ready")?;
    window.types("exit 0\r")?;
    window.ends(world, Ended::Code(0))?;
    drop(window);
    world.expect_extinct(SOON_ENOUGH)?;
    ensure!(terminals() == 0, "{} terminals are left", terminals());
    all_clean(world)
}

fn few_descriptors(world: &mut World) -> Outcome {
    rehearse(world)?;
    let bin = world.fullstop();
    let bin = bin.to_string_lossy();
    let parrot = PARROT_COMMAND.join(" ");
    let mut worked = 0;
    for most in [4, 6, 8, 10, 12, 14, 16, 20, 24, 30, 40, 64] {
        let line = format!("ulimit -n {most}; exec {bin} start --cage tree --pty -- {parrot}");
        let asked = ask_program(world, HERE, "bash", &[&line], |command| {
            command.args(["-c", &line]);
        })?;
        let said = asked.hear(world, SOON_ENOUGH)?;
        if said.ended == Ended::Code(0) {
            worked += 1;
            let id = only_run(world)?;
            await_log(world, &id, "ready ")?;
            stop(world, &id)?;
        } else {
            said.expect_one_line(125, "").context(format!("ulimit -n {most}"))?;
            ensure!(said.out.is_empty(), "ulimit -n {most}: it said {:?}", said.out);
        }
        world.expect_extinct(SOON_ENOUGH).context(format!("ulimit -n {most}"))?;
        let left = live_ids(world);
        ensure!(left.is_empty(), "ulimit -n {most}: runs are listed: {left:?}");
    }
    ensure!(worked > 0, "64 descriptors are not enough");
    all_clean(world)
}

/// So many have room.
const MOST_WINDOWS: usize = 32;

fn too_many_windows(world: &mut World) -> Outcome {
    own_terminals(1000)?;
    let id = start_parrot(world, &[])?;
    let mut windows = Vec::new();
    for _ in 0..MOST_WINDOWS {
        let mut window = Window::opened(world, USUAL, &["attach", &id])?;
        window.shows("ready")?;
        windows.push(window);
    }
    let mut refused = Window::open(world, USUAL, &["attach", &id])?;
    refused.ends(world, Ended::Code(125))?;
    refused.shows("too many windows")?;
    let said = refused.tty.seen();
    ensure!(said.lines().count() == 1, "it did not say one line: {said:?}");
    refused.expect_given_back()?;
    // Where one leaves there is room for another.
    let mut leaves = windows.pop().context("a window")?;
    leaves.types(DETACH)?;
    leaves.ends(world, Ended::Code(0))?;
    let mut comes = Window::opened(world, USUAL, &["attach", &id])?;
    comes.shows("ready")?;
    windows.push(comes);
    stop(world, &id)?;
    for mut window in windows {
        window.ended(world)?;
        window.expect_given_back()?;
    }
    all_clean(world)
}
