//! Programs people have, on a terminal of a run: they draw, they are drawn again for
//! whoever comes later, and they follow the size.

use std::fs;

use arena::{Context, Ended, Need, Outcome, Registry, World, ensure};
use vt100::Screen;

use super::cast::{NEEDS, all_clean, await_asleep, await_who, only_run, run_words};
use super::window::{DETACH, USUAL, Window};

pub fn register(registry: &mut Registry) {
    for program in PROGRAMS {
        let needs = [NEEDS, &[Need::Program(program.command[0])]].concat();
        registry.scenario(format!("programs::{}", program.command[0]), &needs, move |world| {
            used(world, program)
        });
    }
}

struct Program {
    command: &'static [&'static str],
    /// What is to be seen somewhere, from the beginning.
    shows: &'static str,
    /// Whether it has a screen of its own.
    other_screen: bool,
    /// What is in the last line, once it is drawn at a size.
    last_line: fn(&Screen) -> bool,
    /// A key, and what follows from it.
    key: (&'static str, &'static str),
    quit: &'static str,
}

const PROGRAMS: &[Program] = &[
    Program {
        command: &["vi", "-u", "NONE", "-N", "./text"],
        shows: "line 1 with a needle",
        other_screen: true,
        last_line: |screen| !last_line(screen).contains("needle") && fills(screen),
        key: ("iinserted ", "inserted line 1"),
        quit: "\x1b:q!\r",
    },
    Program {
        command: &["less", "./text"],
        shows: "line 1 with a needle",
        other_screen: true,
        last_line: |screen| !last_line(screen).contains("needle") && fills(screen),
        key: ("/line 150\r", "line 150 with a needle"),
        quit: "q",
    },
    Program {
        command: &["nano", "-I", "./text"],
        shows: "line 1 with a needle",
        other_screen: true,
        last_line: |screen| last_line(screen).contains("^X"),
        key: ("inserted ", "inserted line 1"),
        quit: "\x18n",
    },
    Program {
        command: &["htop", "-d", "600"],
        shows: "PID",
        other_screen: true,
        last_line: |screen| last_line(screen).contains("F1"),
        key: ("t", "F5List"),
        quit: "q",
    },
];

fn line(screen: &Screen, row: u16) -> String {
    let (_, columns) = screen.size();
    screen.rows(0, columns.get()).nth(row.into()).unwrap_or_default()
}

fn last_line(screen: &Screen) -> String {
    line(screen, screen.size().0.get() - 1)
}

/// There is text down to the line above the last.
fn fills(screen: &Screen) -> bool {
    line(screen, screen.size().0.get() - 2).contains("needle")
}

fn used(world: &mut World, program: &Program) -> Outcome {
    let text: Vec<String> = (1..=200).map(|n| format!("line {n} with a needle")).collect();
    fs::write(world.dir().join("text"), text.join("\n") + "\n").context("text")?;
    let mut window = Window::opened(world, USUAL, &run_words(&[], program.command))?;
    drawn(&mut window, program)?;
    let id = only_run(world)?;
    let leader = await_who(world, &id)?.leader;
    // Larger, and smaller: it is drawn down to the last line. Some programs miss a
    // change that comes while they draw, with or without us.
    for size in [(40, 120), (15, 60), USUAL] {
        await_asleep(&leader)?;
        window.resize(size)?;
        drawn(&mut window, program).context(format!("{size:?}"))?;
    }
    // Somebody else looks, from a terminal of another size, and types.
    await_asleep(&leader)?;
    let mut other = Window::opened(world, (30, 100), &["attach", &id])?;
    drawn(&mut other, program)?;
    let (key, seen) = program.key;
    other.types(key)?;
    other.shows(seen)?;
    await_asleep(&leader)?;
    other.resize((33, 90))?;
    drawn_last(&mut other, program)?;
    await_asleep(&leader)?;
    other.types(DETACH)?;
    other.ends(world, Ended::Code(0))?;
    other.expect_given_back()?;
    // Whoever started it is as large as ever, and ends it.
    drawn_last(&mut window, program)?;
    window.types(program.quit)?;
    window.ends(world, Ended::Code(0))?;
    window.expect_given_back()?;
    tidy(world)?;
    all_clean(world)
}

/// Everything is on the screen that belongs there.
fn drawn(window: &mut Window, program: &Program) -> Outcome {
    window.shows(program.shows)?;
    drawn_last(window, program)?;
    let other = window.look().alternate_screen();
    ensure!(other == program.other_screen, "it is on the wrong screen");
    Ok(())
}

fn drawn_last(window: &mut Window, program: &Program) -> Outcome {
    window.until("something in the last line", program.last_line)
}

/// Editors remember things at home.
fn tidy(world: &World) -> Outcome {
    for entry in fs::read_dir(world.home()).context("home")?.flatten() {
        let path = entry.path();
        let removed =
            if path.is_dir() { fs::remove_dir_all(&path) } else { fs::remove_file(&path) };
        removed.context("home")?;
    }
    Ok(())
}
