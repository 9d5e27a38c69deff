//! `attach`: the screen as it is now, for whoever comes later.

use arena::{Context, Ended, Outcome, Registry, World, ensure};

use super::cast::{
    self, HERE, NEEDS, all_clean, await_asleep, await_log, await_log_times, await_who, log,
    log_text, start_parrot, stop,
};
use super::window::{DETACH, USUAL, Window, model};
use crate::actors::script;
use crate::desk::{self, say, tell};
use crate::shell::CTRL_C;

pub fn register(registry: &mut Registry) {
    registry.scenario("attach::the-screen-as-it-is-now", NEEDS, replay);
    registry.scenario("attach::several-see-the-same", NEEDS, several);
    registry.scenario("attach::sizes", NEEDS, sizes);
    registry.scenario("attach::how-it-ends", NEEDS, statuses);
    registry.scenario("attach::refused-in-one-line", NEEDS, refused);
}

/// Draws something, and the next thing with each line that it is sent.
const DRAWS: &str = "stty -echo\nprintf '\\e[2J\\e[3;7Hhere is \\e[1;32mgreen\\e[0m, 日本 and \
    \\e[4;38;5;208msome\\e[0m\\e[12;1Hthe end of a line\\e[1K\\e[24;70Hcorner'\nread -r next\n\
    printf '\\e[?1049h\\e[2J\\e[10;20H\\e[7mthe other\\e[0m \\e[44mscreen\\e[0m\\e[?25l'\n\
    read -r next\nprintf '\\e[?25h\\e[?1049l\\e[20;3Hback again'\nread -r next";

fn replay(world: &mut World) -> Outcome {
    script(world, "draws", DRAWS)?;
    let id = cast::start(world, &[], &["bash", "./draws"])?;
    for (drawn, other) in [("corner", false), ("\x1b[?25l", true), ("back again", false)] {
        await_log(world, &id, drawn)?;
        let screen = model(USUAL, &log(world, &id));
        let mut window = Window::opened(world, USUAL, &["attach", &id])?;
        window.is_like(screen.screen())?;
        ensure!(window.look().alternate_screen() == other, "that is the wrong screen");
        window.types(DETACH)?;
        window.ends(world, Ended::Code(0))?;
        window.expect_given_back()?;
        tell(world, HERE, &["send", &id, "--enter"])?;
    }
    cast::expect_reason(world, &id, "exited")?;
    all_clean(world)
}

fn several(world: &mut World) -> Outcome {
    let id = start_parrot(world, &[])?;
    let mut one = Window::opened(world, USUAL, &["attach", &id])?;
    let mut other = Window::opened(world, USUAL, &["attach", &id])?;
    let mut viewer = Window::opened(world, (10, 40), &["attach", "--view", &id])?;
    for window in [&mut one, &mut other, &mut viewer] {
        window.shows("ready 24 80")?;
    }
    one.types("from one\r")?;
    for window in [&mut one, &mut other, &mut viewer] {
        window.shows("heard from one")?;
    }
    other.types("from another\r")?;
    for window in [&mut one, &mut other, &mut viewer] {
        window.shows("heard from another")?;
    }
    one.is_like(model(USUAL, &log(world, &id)).screen())?;
    other.is_like(model(USUAL, &log(world, &id)).screen())?;
    // Whoever only looks is not heard, and has no say in the size. That it has gone
    // shows that it had read what was typed before.
    viewer.resize((11, 41))?;
    viewer.types("from a viewer\r")?;
    viewer.types(CTRL_C)?;
    viewer.ends(world, Ended::Code(0))?;
    viewer.expect_given_back()?;
    one.types("after that\r")?;
    one.shows("heard after that")?;
    let said = log_text(world, &id);
    ensure!(!said.contains("from a viewer"), "the viewer was heard: {said:?}");
    ensure!(!said.contains("size "), "another size was told: {said:?}");
    // All see the end.
    tell(world, HERE, &["send", &id, "exit 3", "--enter"])?;
    for mut window in [one, other] {
        window.ends(world, Ended::Code(3))?;
        window.expect_given_back()?;
    }
    all_clean(world)
}

fn sizes(world: &mut World) -> Outcome {
    // The latest.
    let id = start_parrot(world, &[])?;
    let leader = await_who(world, &id)?.leader;
    let told = |world: &World, size: &str, times| -> Outcome {
        await_log_times(world, &id, &format!("size {size}\r\n"), times)?;
        await_asleep(&leader)
    };
    await_asleep(&leader)?;
    let mut one = Window::opened(world, (30, 100), &["attach", &id])?;
    told(world, "30 100", 1)?;
    let mut other = Window::opened(world, (20, 60), &["attach", &id])?;
    told(world, "20 60", 1)?;
    one.types("x")?;
    told(world, "30 100", 2)?;
    other.resize((22, 66))?;
    told(world, "22 66", 1)?;
    other.types(DETACH)?;
    other.ends(world, Ended::Code(0))?;
    told(world, "30 100", 3)?;
    one.types(DETACH)?;
    one.ends(world, Ended::Code(0))?;
    stop(world, &id)?;
    // The smallest.
    let id = start_parrot(world, &["--size", "smallest"])?;
    let leader = await_who(world, &id)?.leader;
    await_asleep(&leader)?;
    let mut one = Window::opened(world, (30, 60), &["attach", &id])?;
    await_log(world, &id, "size 30 60\r\n")?;
    await_asleep(&leader)?;
    let mut other = Window::opened(world, (20, 100), &["attach", &id])?;
    await_log(world, &id, "size 20 60\r\n")?;
    await_asleep(&leader)?;
    other.types(DETACH)?;
    other.ends(world, Ended::Code(0))?;
    await_log_times(world, &id, "size 30 60\r\n", 2)?;
    one.types("exit 0\r")?;
    one.ends(world, Ended::Code(0))?;
    // None of them.
    let id = start_parrot(world, &["--size", "33x77"])?;
    let mut one = Window::opened(world, (20, 60), &["attach", &id])?;
    one.types("hello\r")?;
    await_log(world, &id, "heard hello\r\n")?;
    one.types("exit 0\r")?;
    one.ends(world, Ended::Code(0))?;
    let said = log_text(world, &id);
    ensure!(said.starts_with("ready 33 77\r\n"), "it began with {said:?}");
    ensure!(!said.contains("size "), "another size was told: {said:?}");
    all_clean(world)
}

fn statuses(world: &mut World) -> Outcome {
    for (words, wanted) in [
        (&["send", "ID", "exit 7", "--enter"][..], 7),
        (&["stop", "ID"], 143),
        (&["kill", "ID"], 137),
    ] {
        let id = start_parrot(world, &[])?;
        let mut window = Window::opened(world, USUAL, &["attach", &id])?;
        window.shows("ready")?;
        let words: Vec<&str> =
            words.iter().map(|word| if *word == "ID" { &id } else { *word }).collect();
        tell(world, HERE, &words)?;
        window.ends(world, Ended::Code(wanted)).context(format!("{words:?}"))?;
        window.expect_given_back().context(format!("{words:?}"))?;
        world.expect_extinct(cast::SOON_ENOUGH)?;
    }
    all_clean(world)
}

fn refused(world: &mut World) -> Outcome {
    let over = cast::start(world, &[], &["true"])?;
    cast::expect_reason(world, &over, "exited")?;
    let plain = desk::start(world, HERE, &[], &["sleep", "100"])?;
    let parrot = start_parrot(world, &[])?;
    for (id, about) in [(&*over, "over"), (&*plain, "terminal"), ("nobody", "nobody")] {
        let mut window = Window::open(world, USUAL, &["attach", id])?;
        window.ends(world, Ended::Code(125)).context(about)?;
        window.shows(about)?;
        let said = window.tty.seen();
        ensure!(said.lines().count() == 1, "it did not say one line: {said:?}");
        window.expect_given_back()?;
    }
    say(world, HERE, &["attach", &parrot])?.expect_one_line(125, "terminal")?;
    stop(world, &parrot)?;
    stop(world, &plain)?;
    all_clean(world)
}
