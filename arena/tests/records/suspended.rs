//! TSTP, TTIN and TTOU to a `run` without a terminal: it does not stop alone, so that a
//! later stop is heard. They are the command's, as everything is that a program can catch.

use std::fs;
use std::os::unix::process::CommandExt as _;

use arena::{Context, Ended, Outcome, Registry, Signal, World, await_until, ensure, send_signal};

use super::desk::{RunningCommand, all_clean, ask_program};
use crate::kit::{EVERYWHERE, Lines, Place, SOON, add, text};

pub fn register(registry: &mut Registry) {
    for (name, play) in
        [("run", run as fn(&mut World, Place) -> Outcome), ("run-pty", run_pty), ("front", front)]
    {
        add(registry, &format!("suspended::{name}"), &EVERYWHERE, &[], play);
    }
}

/// It says what it hears, at the latest when a nap is over: a shell that reads may miss a
/// signal until it has read.
const SCRIPT: &str = "trap 'echo tstp > told' TSTP; trap 'echo ttin > told' TTIN; \
    trap 'echo ttou > told' TTOU; trap 'echo term > told; exit 7' TERM; \
    echo up > told; while :; do sleep 0.05; done";

/// Runs the script in a process group of its own. A group that has nobody above it in its
/// session is never stopped by these signals; this one is.
fn ask(
    world: &mut World,
    place: Place,
    before: &str,
    options: &[&str],
    command: &str,
) -> Outcome<RunningCommand> {
    let (cage, program) = (place.cage.to_string(), text(world.fullstop()));
    // Longer than the test: nothing is killed here.
    let ladder = ["--ladder", "term@leader:1m,kill", "--cage", &cage];
    let script = format!("{before}exec \"$0\" \"$@\"");
    ask_program(world, place, "sh", &["run"], |words| {
        words.args(["-c", &script, &program, "run"]).args(ladder).args(options);
        words.args(["--", "sh", "-c", command]).process_group(0);
    })
}

/// Each is heard by the command. Then it is asked to stop.
fn suspend_then_stop(world: &mut World, told: &mut Lines, asked: &RunningCommand) -> Outcome {
    told.expect("up")?;
    let pid = asked.spawned.pid;
    for (signal, word) in [(Signal::TSTP, "tstp"), (Signal::TTIN, "ttin"), (Signal::TTOU, "ttou")] {
        send_signal(pid, signal)?;
        told.expect(word)?;
    }
    send_signal(pid, Signal::TERM)?;
    told.expect("term")?;
    let said = asked.hear(world, SOON)?;
    ensure!(said.ended == Ended::Code(7), "it ended with {}", said.ended);
    Ok(())
}

/// Whether a process holds TSTP back, to hear it instead. While it starts another process it
/// holds back everything, ABRT too: both are told by one look.
fn hears_suspension(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigBlk:\t"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask, 16).ok()).unwrap_or_default();
    let holds_back = |signal: Signal| mask & (1 << (signal.as_raw() - 1)) != 0;
    holds_back(Signal::TSTP) && !holds_back(Signal::ABORT)
}

fn run(world: &mut World, place: Place) -> Outcome {
    let mut told = Lines::create(world, "told")?;
    let asked = ask(world, place, "", &[], SCRIPT)?;
    suspend_then_stop(world, &mut told, &asked)?;
    all_clean(world)
}

fn run_pty(world: &mut World, place: Place) -> Outcome {
    let mut told = Lines::create(world, "told")?;
    let asked = ask(world, place, "", &["--pty"], SCRIPT)?;
    // What comes before there is a window is nobody's; it stops nothing either.
    let hears = || hears_suspension(asked.spawned.pid);
    ensure!(await_until(SOON, hears), "the window does not hear signals");
    suspend_then_stop(world, &mut told, &asked)?;
    all_clean(world)
}

/// A guard with a stranger for a child stands behind a front.
fn front(world: &mut World, place: Place) -> Outcome {
    let mut told = Lines::create(world, "told")?;
    let _stranger = Lines::create(world, "stranger")?;
    let asked = ask(world, place, "(read gone < stranger) & ", &[], SCRIPT)?;
    suspend_then_stop(world, &mut told, &asked)?;
    fs::write(world.dir().join("stranger"), "\n").context("stranger")?;
    world.expect_extinct(SOON)?;
    all_clean(world)
}
