//! The ends of a `run --pty`, asked for from outside or by what happens to its window:
//! nothing is left, and the terminal is as it was found.

use std::fs;

use arena::{Context, Ended, Outcome, Registry, Signal, World, ensure, send_signal};

use super::cast::{
    FULL_SCREEN_COMMAND, HERE, NEEDS, PARROT_COMMAND, all_clean, await_asleep, await_who,
    expect_reason, only_run, rehearse, run_words,
};
use super::window::{USUAL, Window};
use crate::actors::script;
use crate::desk::tell;

pub fn register(registry: &mut Registry) {
    registry.scenario("ends::the-terminal-is-given-back", NEEDS, given_back);
    registry.scenario("ends::a-signal-to-the-window-comes-first", NEEDS, signal_first);
    registry.scenario("ends::the-window-is-killed", NEEDS, window_killed);
    registry.scenario("ends::the-window-is-closed", NEEDS, window_closed);
}

/// Who ends it, and how.
#[derive(Debug, Clone, Copy)]
enum By {
    Command(&'static str),
    ToWindow(Signal),
    ToLeader(Signal),
}

fn given_back(world: &mut World) -> Outcome {
    rehearse(world)?;
    for (by, wanted) in [
        (By::Command("stop"), Ended::Signal(15)),
        (By::Command("kill"), Ended::Code(137)),
        (By::ToWindow(Signal::TERM), Ended::Signal(15)),
        (By::ToWindow(Signal::INT), Ended::Signal(2)),
        (By::ToWindow(Signal::HUP), Ended::Signal(1)),
        (By::ToLeader(Signal::KILL), Ended::Code(137)),
    ] {
        let mut window = Window::opened(world, USUAL, &run_words(&[], FULL_SCREEN_COMMAND))?;
        window.shows("full screen")?;
        ensure!(window.look().alternate_screen(), "it is not on the other screen");
        let id = only_run(world)?;
        let leader = await_who(world, &id)?.leader;
        await_asleep(&leader)?;
        match by {
            By::Command(word) => drop(tell(world, HERE, &[word, &id])?),
            By::ToWindow(signal) => send_signal(window.spawned.pid, signal)?,
            By::ToLeader(signal) => send_signal(leader.pid, signal)?,
        }
        window.ends(world, wanted).context(format!("{by:?}"))?;
        window.expect_given_back().context(format!("{by:?}"))?;
        world.expect_extinct(super::cast::SOON_ENOUGH).context(format!("{by:?}"))?;
    }
    all_clean(world)
}

/// The signal that the window gets is the first that the leader gets, and that one may
/// end in its own way.
fn signal_first(world: &mut World) -> Outcome {
    let hears = "for name in INT TERM HUP; do trap \"echo $name >> heard; exit 9\" $name; done\n\
        sleep 100 & echo ready; wait";
    script(world, "hears", hears)?;
    for (signal, name) in [(Signal::INT, "INT"), (Signal::TERM, "TERM"), (Signal::HUP, "HUP")] {
        let words = run_words(&[], &["bash", "./hears"]);
        let mut window = Window::opened(world, USUAL, &words)?;
        window.shows("ready")?;
        let id = only_run(world)?;
        await_asleep(&await_who(world, &id)?.leader)?;
        send_signal(window.spawned.pid, signal)?;
        window.ends(world, Ended::Code(9)).context(name)?;
        window.expect_given_back().context(name)?;
        let heard = fs::read_to_string(world.dir().join("heard")).context("heard")?;
        ensure!(heard == format!("{name}\n"), "{name} was sent, and {heard:?} was heard");
        fs::remove_file(world.dir().join("heard")).context("heard")?;
        let report = expect_reason(world, &id, "stopped")?;
        let first = report["steps"][0]["step"].as_str().unwrap_or_default();
        ensure!(first.starts_with(&name.to_lowercase()), "the first step was {first}");
    }
    all_clean(world)
}

/// Whoever had no chance to say anything was the host all the same.
fn window_killed(world: &mut World) -> Outcome {
    rehearse(world)?;
    let mut window = Window::opened(world, USUAL, &run_words(&[], PARROT_COMMAND))?;
    window.shows("ready")?;
    let id = only_run(world)?;
    await_who(world, &id)?;
    send_signal(window.spawned.pid, Signal::KILL)?;
    window.ends(world, Ended::Signal(9))?;
    expect_reason(world, &id, "host-gone")?;
    all_clean(world)
}

/// A command that is deaf to HUP goes the same way as any other.
fn window_closed(world: &mut World) -> Outcome {
    rehearse(world)?;
    let deaf = ["sh", "-c", "trap '' HUP; echo ready; while :; do sleep 100; done"];
    for (command, deaf) in [(PARROT_COMMAND, false), (&deaf[..], true)] {
        let options = ["--ladder", "term@leader:200ms,term@tree:5s,kill"];
        let mut window = Window::opened(world, USUAL, &run_words(&options, command))?;
        window.shows("ready")?;
        let id = only_run(world)?;
        await_asleep(&await_who(world, &id)?.leader)?;
        let spawned = window.spawned.clone();
        drop(window);
        world.wait(&spawned, super::cast::SOON_ENOUGH)?;
        let report = expect_reason(world, &id, "stopped")?;
        let steps = report["steps"].as_array().map_or(0, Vec::len);
        let first = report["steps"][0]["step"].as_str().unwrap_or_default();
        ensure!(first.starts_with("hup"), "the first step was {first}");
        ensure!(steps > 1 || !deaf, "the deaf went at once: {report}");
        world.expect_extinct(super::cast::SOON_ENOUGH)?;
    }
    all_clean(world)
}
