//! Programs people have: pagers, editors and monitors, each with its own way of
//! leaving the terminal and of coming back.

use arena::{Context, Need, Outcome, Registry, Signal, World, ensure, send_signal};

use super::actors::{await_foreground, await_run, await_stopped};
use super::prefix::{NEEDS, Prefix};
use super::shell::{BASH, CTRL_Z, Shell};

pub fn register(registry: &mut Registry) {
    for program in PROGRAMS {
        let mut needs = NEEDS.to_vec();
        needs.push(Need::Program(program.name));
        for (word, prefix) in [("bare", Prefix::Bare), ("run", Prefix::Run)] {
            let name = format!("programs::{}-suspended::{word}", program.name);
            registry.scenario(name, &needs, move |world| suspended(world, program, prefix));
        }
        let name = format!("programs::{}-killed::run", program.name);
        registry.scenario(name, &needs, move |world| killed(world, program));
    }
}

struct Program {
    name: &'static str,
    command: &'static str,
    /// What it shows, and shows again when it is continued.
    shows: &'static str,
    quit: &'static str,
    /// Whether it has a screen of its own.
    other_screen: bool,
}

const PROGRAMS: &[Program] = &[
    Program {
        name: "less",
        command: "less ./text",
        shows: "needle",
        quit: "q",
        other_screen: true,
    },
    Program {
        name: "vi",
        command: "vi -u NONE ./text",
        shows: "needle",
        quit: ":q!\r",
        other_screen: true,
    },
    Program { name: "top", command: "top -d 60", shows: "PID", quit: "q", other_screen: false },
];

const LEAVES_SCREEN: &str = "\x1b[?1049l";

fn begin(shell: &mut Shell, world: &World, program: &Program, prefix: Prefix) -> Outcome {
    let text = "a line with a needle\n".repeat(100);
    std::fs::write(world.dir().join("text"), text).context("text")?;
    shell.begin(&format!("{prefix}{}", program.command))?;
    shell.tty.expect(program.shows)?;
    await_foreground(&mut shell.tty, program.command).map(drop)
}

fn suspended(world: &mut World, program: &Program, prefix: Prefix) -> Outcome {
    let mut shell = Shell::start(world)?;
    await_foreground(&mut shell.tty, BASH)?;
    let prompt = shell.tty.settings()?;
    begin(&mut shell, world, program, prefix)?;
    for round in 1..=5 {
        let actor = await_foreground(&mut shell.tty, program.command)?;
        shell.tty.type_keys(CTRL_Z)?;
        shell.tty.expect("Stopped")?;
        let said = shell.prompt()?;
        ensure!(!said.contains(LEAVES_SCREEN), "round {round}: the shell was back first");
        await_stopped(&mut shell.tty, actor.pgid)?;
        let said = shell.line("echo \"on\"\"ward\"")?;
        ensure!(said == "onward\r\n", "round {round}: the shell is disturbed: {said:?}");
        await_foreground(&mut shell.tty, BASH)?;
        let now = shell.tty.settings()?;
        ensure!(
            now.local_modes == prompt.local_modes && now.input_modes == prompt.input_modes,
            "round {round}: not the settings of a prompt"
        );
        shell.begin("fg")?;
        shell.tty.expect(program.command)?;
        shell.tty.expect(program.shows)?;
    }
    await_foreground(&mut shell.tty, program.command)?;
    shell.tty.type_keys(program.quit)?;
    shell.prompt()?;
    shell.expect_status(0)?;
    let seen = shell.tty.seen();
    let left = seen.matches(LEAVES_SCREEN).count();
    ensure!(
        left == if program.other_screen { 6 } else { 0 },
        "the other screen was left {left} times"
    );
    shell.leave(world)
}

fn killed(world: &mut World, program: &Program) -> Outcome {
    let mut shell = Shell::start(world)?;
    begin(&mut shell, world, program, Prefix::Run)?;
    let run = await_run(&mut shell.tty, program.command)?;
    send_signal(run.leader.pid, Signal::KILL)?;
    let said = shell.prompt()?;
    ensure!(said.contains(LEAVES_SCREEN), "the other screen was not left: {said:?}");
    ensure!(said.contains("\x1b[?25h"), "the cursor is not shown: {said:?}");
    shell.expect_status(137)?;
    shell.leave(world)
}
