//! The window that a run was started from gets every byte and nothing else; where it
//! cannot be written, that is told.

use std::fs::{self, File};

use arena::send_signal;
use arena::{Context, Ended, Need, Outcome, Process, Registry, Signal, World, await_until, ensure};

use super::cast::{
    HERE, NEEDS, PARROT_COMMAND, SOON_ENOUGH, all_clean, await_asleep, await_log, await_log_times,
    await_who, log, log_length, only_run, rehearse, report, run_words,
};
use super::window::{USUAL, Window};
use crate::actors::script;
use crate::desk::{ask_with, run_ids, tell};
use crate::kit::Lines;

pub fn register(registry: &mut Registry) {
    let needs = [NEEDS, &[Need::Program("seq")]].concat();
    registry.scenario("owner::gets-every-byte-however-slow", &needs, slow);
    registry.scenario("owner::gets-nothing-in-between", NEEDS, nothing_in_between);
    registry.scenario("owner::cannot-be-written", NEEDS, cannot_be_written);
    registry.scenario("owner::cannot-be-written-for-long", NEEDS, goes_on);
}

/// Signals after which a window tells its size, though that is what it was.
const AGAIN: [Signal; 2] = [Signal::CONT, Signal::WINCH];

/// Waits until a process has taken all signals that were sent to it, and sleeps.
fn await_taken(pid: i32) -> Outcome {
    let taken = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let pending = status.lines().find_map(|line| line.strip_prefix("ShdPnd:"));
        let none = pending.is_some_and(|mask| mask.trim().chars().all(|digit| digit == '0'));
        none && Process::read(pid).is_some_and(|process| process.state == 'S')
    };
    ensure!(await_until(SOON_ENOUGH, taken), "{pid} does not take its signals");
    Ok(())
}

/// Nobody reads the screen until the command cannot go on, and the window has said its
/// size again meanwhile.
fn slow(world: &mut World) -> Outcome {
    const LINES: usize = 200_001;
    script(world, "counts", &format!("read -r go\nseq {LINES}"))?;
    let mut window = Window::opened(world, USUAL, &run_words(&[], &["bash", "./counts"]))?;
    let id = only_run(world)?;
    let keeper = await_who(world, &id)?.keeper;
    window.types("\r")?;
    let held_up = || {
        let before = log_length(world, &id);
        let quiet = !await_until(arena::millis(100), || log_length(world, &id) > before);
        before > 300_000 && quiet
    };
    ensure!(await_until(SOON_ENOUGH, held_up), "nothing is written");
    for signal in AGAIN {
        send_signal(window.spawned.pid, signal)?;
        await_taken(window.spawned.pid)?;
        // Whoever answers twice has heard what was said before the second time.
        tell(world, HERE, &["signal", "cont", &id])?;
        tell(world, HERE, &["signal", "cont", &id])?;
        await_taken(keeper.pid)?;
    }
    window.ends(world, Ended::Code(0))?;
    let (shown, kept) = (window.tty.bytes().to_vec(), log(world, &id));
    let lines = String::from_utf8_lossy(&shown).matches('\n').count();
    // The line that was typed is one more.
    ensure!(lines == LINES + 1, "{} of {LINES} lines were shown", lines.saturating_sub(1));
    ensure!(shown == kept, "{} bytes were shown, and {} are kept", shown.len(), kept.len());
    all_clean(world)
}

/// A command that is told its size again may draw anew; nobody else draws for it.
fn nothing_in_between(world: &mut World) -> Outcome {
    rehearse(world)?;
    let mut window = Window::opened(world, USUAL, &run_words(&[], PARROT_COMMAND))?;
    window.shows("ready")?;
    let id = only_run(world)?;
    let leader = await_who(world, &id)?.leader;
    for (n, signal) in AGAIN.into_iter().enumerate() {
        await_asleep(&leader)?;
        send_signal(window.spawned.pid, signal)?;
        await_taken(window.spawned.pid)?;
        await_log_times(world, &id, "size 24 80\r\n", n + 1)?;
        window.types(&format!("still there {n}\r"))?;
        await_log(world, &id, &format!("heard still there {n}\r\n"))?;
    }
    await_asleep(&leader)?;
    window.types("exit 0\r")?;
    window.ends(world, Ended::Code(0))?;
    let (shown, kept) = (window.tty.bytes().to_vec(), log(world, &id));
    let text = String::from_utf8_lossy(&shown);
    ensure!(shown == kept, "more was shown than the command wrote: {text:?}");
    all_clean(world)
}

/// `run --pty -- COMMAND > /dev/full`; returns what it said, and the report.
fn on_full_disk(
    world: &mut World,
    command: &[&str],
    meanwhile: impl FnOnce(&mut World) -> Outcome,
) -> Outcome<(crate::desk::CommandOutput, serde_json::Value)> {
    let full = File::options().write(true).open("/dev/full").context("/dev/full")?;
    let file = world.out().join("report.json");
    let file = file.to_string_lossy().into_owned();
    let asked = ask_with(world, HERE, &run_words(&["--report", &file], command), |command| {
        command.stdin(std::process::Stdio::null()).stdout(full);
    })?;
    meanwhile(world)?;
    let said = asked.hear(world, SOON_ENOUGH)?;
    let id = run_ids(world).pop().context("no run")?;
    let report = report(world, &id)?;
    let told = crate::desk::read_json(std::path::Path::new(&file))?;
    ensure!(told == report, "the reports differ: {told} {report}");
    ensure!(report["reason"] == "exited", "it did not end by itself: {report}");
    ensure!(report["drained"] == true, "{report}");
    Ok((said, report))
}

fn expect_told(
    said: &crate::desk::CommandOutput,
    report: &serde_json::Value,
    unshown: usize,
) -> Outcome {
    let tty = &report["output"][0];
    ensure!(tty["stream"] == "tty" && tty["unshown"] == unshown, "{unshown} bytes, and {tty}");
    let why = tty["refusal"].as_str().unwrap_or_default();
    ensure!(why.contains("no space left"), "why is not told: {tty}");
    let logs = format!("fullstop logs {}", report["id"].as_str().unwrap_or_default());
    ensure!(said.err.lines().count() == 1, "not one line: {:?}", said.err);
    for part in ["no space left", &format!("{unshown} of"), &logs] {
        ensure!(said.err.contains(part), "no {part:?} in {:?}", said.err);
    }
    Ok(())
}

/// However fast it ends, its report is not written before it is known what was shown.
fn cannot_be_written(world: &mut World) -> Outcome {
    for (own, wanted) in [(0, 1), (7, 7)] {
        let command = format!("echo hi; exit {own}");
        let (said, report) = on_full_disk(world, &["sh", "-c", &command], |_| Ok(()))?;
        said.expect(wanted)?;
        ensure!(report["exit"]["code"] == own, "the command: {}", report["exit"]);
        expect_told(&said, &report, 4)?;
        let id = report["id"].as_str().unwrap_or_default().to_owned();
        ensure!(log(world, &id) == b"hi\r\n", "the log has {:?}", log(world, &id));
        tell(world, HERE, &["rm", &id])?;
    }
    all_clean(world)
}

/// A command that nobody can see goes on, and is asked by nobody to end.
fn goes_on(world: &mut World) -> Outcome {
    let _go = Lines::create(world, "go")?;
    let script = "trap 'echo HUP' HUP; echo one; read go < go; echo two";
    let (said, report) = on_full_disk(world, &["sh", "-c", script], |world| {
        let id = only_run(world)?;
        await_log(world, &id, "one\r\n")?;
        await_asleep(&await_who(world, &id)?.leader)?;
        fs::write(world.dir().join("go"), "now\n").context("go")
    })?;
    said.expect(1)?;
    expect_told(&said, &report, 10)?;
    ensure!(report["steps"] == serde_json::json!([]), "it was asked to end: {report}");
    all_clean(world)
}
