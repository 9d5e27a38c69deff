//! What becomes of a window is nothing to the run: it may be slow, killed, or closed.

use arena::{
    Context, Ended, Need, Outcome, Registry, Signal, World, await_until, ensure, send_signal,
};

use super::cast::{
    self, HERE, NEEDS, SOON_ENOUGH, all_clean, await_log, log_length, say_to_parrot, start_parrot,
    stop,
};
use super::window::{DETACH, USUAL, Window, model};
use crate::actors::script;
use crate::desk::tell;

pub fn register(registry: &mut Registry) {
    let needs = [NEEDS, &[Need::Program("tr"), Need::Program("head")]].concat();
    registry.scenario("attached::a-window-that-does-not-read", &needs, does_not_read);
    registry.scenario("attached::the-last-window-is-gone", NEEDS, last_gone);
}

/// More than a window, its line and the keeper hold for it together.
const FLOOD: u64 = 4_000_000;

fn does_not_read(world: &mut World) -> Outcome {
    let flood = format!(
        "stty -echo -onlcr\nprintf ready\nread -r go\nhead -c {FLOOD} /dev/zero | tr '\\0' x\n\
         printf '\\e[2J\\e[7;7Hthe flood is over'\nread -r gone"
    );
    script(world, "flood", &flood)?;
    let id = cast::start(world, &[], &["bash", "./flood"])?;
    await_log(world, &id, "ready")?;
    // From here on nobody reads what this window shows.
    let mut slow = Window::opened(world, USUAL, &["attach", &id])?;
    let mut quick = Window::opened(world, USUAL, &["attach", &id])?;
    quick.shows("ready")?;
    tell(world, HERE, &["send", &id, "--enter"])?;
    quick.tty.until_within(SOON_ENOUGH, "the flood is written down", || {
        log_length(world, &id) > FLOOD
    })?;
    await_log(world, &id, "the flood is over")?;
    let screen = model(USUAL, b"\x1b[2J\x1b[7;7Hthe flood is over");
    quick.until("the end of the flood", |screen| screen.contents().contains("is over"))?;
    // Now it is read, and shows what there is now.
    slow.is_like(screen.screen())?;
    let read = slow.tty.bytes().len() as u64;
    ensure!(read < FLOOD, "it was given all {read} bytes of the flood");
    slow.types(DETACH)?;
    slow.ends(world, Ended::Code(0))?;
    slow.expect_given_back()?;
    quick.types("\r")?;
    quick.ends(world, Ended::Code(0))?;
    all_clean(world)
}

fn last_gone(world: &mut World) -> Outcome {
    let id = start_parrot(world, &[])?;
    for (n, how) in ["killed", "closed", "told to go"].iter().enumerate() {
        let mut window = Window::opened(world, USUAL, &["attach", &id])?;
        window.shows("ready")?;
        let spawned = window.spawned.clone();
        match *how {
            "killed" => send_signal(spawned.pid, Signal::KILL)?,
            "closed" => drop(window),
            _ => {
                send_signal(spawned.pid, Signal::TERM)?;
                window.ends(world, Ended::Signal(15))?;
                window.expect_given_back()?;
            }
        }
        world.wait(&spawned, SOON_ENOUGH).context(*how)?;
        say_to_parrot(world, &id, &format!("still there {n}"))?;
    }
    let gone = || world.survivors().iter().all(|process| !process.command.contains("attach"));
    ensure!(await_until(SOON_ENOUGH, gone), "a window is left");
    stop(world, &id)?;
    all_clean(world)
}
