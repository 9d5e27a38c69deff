//! The terminal outlives any one of the processes of `fullstop`, long enough to keep
//! what was written to it, and no window is left in disorder.

use std::fs;

use arena::{Context, Ended, Outcome, Registry, Signal, World, await_until, ensure, send_signal};

use super::cast::{
    self, FULL_SCREEN_COMMAND, NEEDS, SOON_ENOUGH, all_clean, await_asleep, await_log, await_who,
    expect_reason, log_text, only_run, rehearse, run_words,
};
use super::window::{USUAL, Window};
use crate::actors::script;
use crate::desk::{self, Who};

pub fn register(registry: &mut Registry) {
    for (victim, of, reason) in [
        ("keeper", (|who| who.keeper.pid) as fn(&Who) -> i32, "keeper-died"),
        ("guard", |who| who.guard.pid, "host-gone"),
    ] {
        registry.scenario(format!("faults::{victim}-killed"), NEEDS, move |world| {
            killed(world, of, reason)
        });
    }
    registry.scenario("faults::last-words-before-the-keeper-s-death", NEEDS, last_words);
}

fn killed(world: &mut World, victim: fn(&Who) -> i32, reason: &str) -> Outcome {
    rehearse(world)?;
    for attached in [false, true] {
        let (mut window, id) = if attached {
            let id = cast::start(world, &[], FULL_SCREEN_COMMAND)?;
            (Window::opened(world, USUAL, &["attach", &id])?, id)
        } else {
            let words = run_words(&[], FULL_SCREEN_COMMAND);
            let window = Window::opened(world, USUAL, &words)?;
            (window, only_run(world)?)
        };
        window.shows("full screen")?;
        let who = await_who(world, &id)?;
        await_asleep(&who.leader)?;
        send_signal(victim(&who), Signal::KILL)?;
        let ended = window.ended(world)?;
        ensure!(ended != Ended::Code(0), "attached {attached}: the window saw no fault");
        window.expect_given_back().context(format!("attached: {attached}"))?;
        expect_reason(world, &id, reason)?;
        ensure!(log_text(world, &id).contains("full screen"), "the log is lost");
        world.expect_extinct(SOON_ENOUGH)?;
    }
    all_clean(world)
}

/// What nobody had read when the keeper was killed is kept by the guard, and shown.
fn last_words(world: &mut World) -> Outcome {
    let waits = "stty -echo\nprintf 'ready\\n'\n\
        while [ ! -e go ]; do read -r -t 0.02 key; done\nprintf 'last words\\n'\n\
        : > said\nread -r gone";
    script(world, "waits", waits)?;
    for attached in [false, true] {
        let (mut window, id) = if attached {
            let id = cast::start(world, &[], &["bash", "./waits"])?;
            await_log(world, &id, "ready\r\n")?;
            (Window::opened(world, USUAL, &["attach", &id])?, id)
        } else {
            let words = run_words(&[], &["bash", "./waits"]);
            let window = Window::opened(world, USUAL, &words)?;
            (window, only_run(world)?)
        };
        window.shows("ready")?;
        let who = await_who(world, &id)?;
        desk::freeze(&who)?;
        fs::write(world.dir().join("go"), "").context("go")?;
        let said = world.dir().join("said");
        ensure!(await_until(SOON_ENOUGH, || said.exists()), "it says nothing");
        ensure!(!log_text(world, &id).contains("last words"), "a frozen keeper has read");
        send_signal(who.keeper.pid, Signal::KILL)?;
        window.ended(world)?;
        window.shows("last words")?;
        window.expect_given_back()?;
        expect_reason(world, &id, "keeper-died")?;
        let log = log_text(world, &id);
        ensure!(log.ends_with("ready\r\nlast words\r\n"), "the log ends with {log:?}");
        world.expect_extinct(SOON_ENOUGH)?;
        for name in ["go", "said"] {
            fs::remove_file(world.dir().join(name)).context(name)?;
        }
    }
    all_clean(world)
}
