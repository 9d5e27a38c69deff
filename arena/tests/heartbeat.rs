//! The heartbeat itself: a suite of its own is started as a child, and stopped while
//! its scenario misses its time. Then nothing was shown, and it is played again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use arena::{Context, Outcome, Signal, await_until, ensure, seconds, send_signal};
use libtest_mimic::{Arguments, Completion, Failed, Trial};

/// Where a scenario tells how far it is. With it, this executable is the suite.
const DIRECTORY: &str = "FULLSTOP_ARENA_HEARTBEAT";

/// What the scenario asserts; we must stop the suite within nine tenths of it.
const BOUND: Duration = seconds(2);

/// Nothing that is waited for here takes this long, even on a busy machine.
const PATIENCE: Duration = seconds(60);

/// Scenarios that miss their time whenever they are not told to pass.
const ORDINARY: &str = "late";
const CROWD: &str = "late-with-a-crowd";

fn main() -> ExitCode {
    if let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) {
        let again = directory.clone();
        return arena::main(|registry| {
            registry.scenario(ORDINARY, &[], move |_| late(&directory));
            registry.scenario(CROWD, &[], move |_| late(&again)).crowd();
        });
    }
    let trials = [
        trial("heartbeat::stopped-once", |dir| stopped_once(dir, ORDINARY)),
        trial("heartbeat::stopped-once-with-a-crowd", |dir| stopped_once(dir, CROWD)),
        trial("heartbeat::stopped-always", stopped_always),
        trial("heartbeat::never-stopped", never_stopped),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}

fn trial(name: &'static str, play: fn(&Path) -> Outcome) -> Trial {
    Trial::ignorable_test(name, move || {
        if !rustix::process::geteuid().is_root() {
            return Ok(Completion::ignored_with("a world of its own needs root"));
        }
        let name = format!("{}-{}", name.replace("::", "-"), std::process::id());
        let directory = std::env::temp_dir().join(name);
        let made = fs::create_dir(&directory).context("a directory");
        let played = made.and_then(|()| play(&directory));
        let _ = fs::remove_dir_all(&directory);
        played.map(|()| Completion::Completed).map_err(|failure| Failed::from(failure.text))
    })
}

/// Says when it begins to measure and when it is over, by the number of the play.
fn late(directory: &Path) -> Outcome {
    if directory.join("pass").exists() {
        return Ok(());
    }
    let play = plays(directory) + 1;
    let says = |word: &str| fs::write(directory.join(format!("{word}-{play}")), "").context(word);
    says("begun")?;
    let in_time = await_until(BOUND, || false);
    says("over")?;
    ensure!(in_time, "too late");
    Ok(())
}

fn plays(directory: &Path) -> usize {
    (1..=9).take_while(|play| directory.join(format!("begun-{play}")).exists()).count()
}

/// Plays a scenario. It is stopped while it measures, this often; `meanwhile` is done
/// before it goes on. Returns whether the suite passed, and what it printed.
fn played(
    directory: &Path,
    scenario: &str,
    stops: usize,
    meanwhile: impl Fn() -> Outcome,
) -> Outcome<(bool, String)> {
    let child = Command::new(std::env::current_exe().context("own executable")?)
        .args(["--exact", scenario])
        .env(DIRECTORY, directory)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .context("the suite")?;
    let pid = i32::try_from(child.id()).context("process id")?;
    let there = |file: String| await_until(PATIENCE, || directory.join(&file).exists());
    for play in 1..=stops {
        ensure!(there(format!("begun-{play}")), "play {play} does not begin");
        send_signal(pid, Signal::STOP)?;
        let over = there(format!("over-{play}"));
        let done = meanwhile();
        send_signal(pid, Signal::CONT)?;
        done?;
        ensure!(over, "play {play} does not end");
    }
    let ended = child.wait_with_output().context("the suite")?;
    Ok((ended.status.success(), String::from_utf8_lossy(&ended.stdout).into_owned()))
}

fn stopped_once(directory: &Path, scenario: &str) -> Outcome {
    let pass = || fs::write(directory.join("pass"), "").context("pass");
    let (passed, said) = played(directory, scenario, 1, pass)?;
    ensure!(passed, "the suite failed: {said}");
    ensure!(said.contains("\nvoid: 1 of 1 played again, 0 given up\n"), "it said {said}");
    ensure!(said.contains("test result: ok. 1 passed; 0 failed"), "it said {said}");
    ensure!(said.contains(&format!("\n    {scenario}: the heartbeat was late by ")), "{said}");
    Ok(())
}

fn stopped_always(directory: &Path) -> Outcome {
    let (passed, said) = played(directory, ORDINARY, 5, || Ok(()))?;
    ensure!(!passed, "nothing was shown, and the suite passed: {said}");
    ensure!(plays(directory) == 5, "it was played {} times", plays(directory));
    ensure!(said.contains("\nvoid: 1 of 1 played again, 1 given up\n"), "it said {said}");
    ensure!(said.contains("\nvoid 5 times; the last time:\ntoo late\n"), "it said {said}");
    Ok(())
}

/// Whoever is late by itself fails, and is not played again. Should the machine stand
/// still just now, each play that was void is told.
fn never_stopped(directory: &Path) -> Outcome {
    let (passed, said) = played(directory, ORDINARY, 0, || Ok(()))?;
    ensure!(!passed, "it was late, and the suite passed: {said}");
    let void = said.matches("\n    late: the heartbeat was late by ").count();
    ensure!(plays(directory) == 1 + void, "played {} times: {said}", plays(directory));
    ensure!(said.contains(" played again, 0 given up\n"), "it said {said}");
    Ok(())
}
