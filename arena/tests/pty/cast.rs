//! Who plays: the commands on the terminals, and the runs they are the leaders of.

use std::fs;
use std::time::Duration;

use arena::{Context, Need, Outcome, Process, World, await_until, ensure};
use serde_json::Value;

use crate::actors::script;
use crate::desk::{self, Who, dir, live_ids, tell, who};
use crate::kit::{ANYWHERE, Place};
use crate::tty::PATIENCE;

/// What every scenario here needs besides a world.
pub const NEEDS: &[Need] = &[Need::Program("bash"), Need::Program("setsid"), Need::Program("stty")];

/// Nothing that is waited for here takes this long, even on a busy machine.
pub const SOON_ENOUGH: Duration = PATIENCE;

/// Where nothing depends on the cage.
pub const HERE: Place = ANYWHERE[0];

/// Says what it hears, by key, by signal and by size; leaves with the status it is
/// told. Of all that bash can wait for, only `wait` is left at once for a signal, so
/// another reads the lines; being in the background, that one ignores INT and QUIT.
const PARROT: &str = r#"
stty -echo
exec 3<&0
trap 'echo "got INT"' INT
trap 'echo "got QUIT"' QUIT
trap 'echo "size $(stty size)"' WINCH
{
  while read -r line; do
    case $line in exit*) exit "${line#exit }";; esac
    echo "heard $line"
  done <&3
  exit 0
} &
reader=$!
echo "ready $(stty size)"
while :; do wait $reader; status=$?; [ $status -le 128 ] && exit $status; done"#;

/// What editors and agents do to a terminal, and then nothing until a key comes.
const FULL_SCREEN: &str = "old=$(stty -g)\nstty raw -echo\n\
    printf '\\e[?1049h\\e[?25l\\e[?1003h\\e[?2004h\\e[?1h\\e[2J\\e[5;5H\\e[31mfull screen\\e[0m'\n\
    read -r -n 1 key\n\
    printf '\\e[?1l\\e[?2004l\\e[?1003l\\e[?25h\\e[?1049l'\nstty \"$old\"\nexit 6";

pub const PARROT_COMMAND: &[&str] = &["bash", "./parrot"];
pub const FULL_SCREEN_COMMAND: &[&str] = &["bash", "./full-screen"];

/// Writes the scripts that are played.
pub fn rehearse(world: &World) -> Outcome {
    script(world, "parrot", PARROT)?;
    script(world, "full-screen", FULL_SCREEN)
}

/// A run in the background with a terminal, of the parrot, which listens.
pub fn start_parrot(world: &mut World, options: &[&str]) -> Outcome<String> {
    rehearse(world)?;
    let id = start(world, options, PARROT_COMMAND)?;
    await_log(world, &id, "ready ")?;
    Ok(id)
}

pub fn start(world: &mut World, options: &[&str], command: &[&str]) -> Outcome<String> {
    let mut all = vec!["--pty"];
    all.extend(options);
    desk::start(world, HERE, &all, command)
}

/// `run --pty` and these words, as words for a window.
pub fn run_words<'w>(options: &[&'w str], command: &[&'w str]) -> Vec<&'w str> {
    let mut words = vec!["run", "--cage", "tree", "--pty"];
    words.extend(options);
    words.push("--");
    words.extend(command);
    words
}

/// Waits for the only run that goes on.
pub fn only_run(world: &World) -> Outcome<String> {
    let one = || live_ids(world).len() == 1;
    ensure!(await_until(PATIENCE, one), "there is not one run: {:?}", live_ids(world));
    live_ids(world).pop().context("it was there")
}

/// Everything that was ever written to the terminal of a run.
pub fn log(world: &World, id: &str) -> Vec<u8> {
    fs::read(dir(world, id).join("tty.log")).unwrap_or_default()
}

pub fn log_length(world: &World, id: &str) -> u64 {
    fs::metadata(dir(world, id).join("tty.log")).map_or(0, |log| log.len())
}

pub fn log_text(world: &World, id: &str) -> String {
    String::from_utf8_lossy(&log(world, id)).into_owned()
}

pub fn await_log(world: &World, id: &str, text: &str) -> Outcome {
    await_log_times(world, id, text, 1)
}

/// Waits until this was written so many times.
pub fn await_log_times(world: &World, id: &str, text: &str, times: usize) -> Outcome {
    let there = || log_text(world, id).matches(text).count() >= times;
    ensure!(
        await_until(PATIENCE, there),
        "the terminal of {id} has no {text:?} ({times} times): {:?}",
        log_text(world, id)
    );
    Ok(())
}

/// Types a line by `send`, and waits until the parrot has said it.
pub fn say_to_parrot(world: &mut World, id: &str, line: &str) -> Outcome {
    tell(world, HERE, &["send", id, line, "--enter"])?;
    await_log(world, id, &format!("heard {line}\r\n"))
}

/// Waits until everybody on the leader's terminal sleeps. A signal that reaches bash
/// between looking for signals and sleeping would wait for the sleep to end.
pub fn await_asleep(leader: &Process) -> Outcome {
    let asleep = || {
        let session = |p: &Process| p.alive() && p.sid == leader.sid;
        Process::all().iter().filter(|p| session(p)).all(|p| p.state == 'S')
    };
    ensure!(await_until(PATIENCE, asleep), "the session of {leader} does not sleep");
    Ok(())
}

/// The report of a run that has ended, once it is written.
pub fn report(world: &World, id: &str) -> Outcome<Value> {
    let over = || desk::record(world, id).is_ok_and(|record| record["report"].is_object());
    ensure!(await_until(PATIENCE, over), "run {id} has no report");
    Ok(desk::record(world, id)?["report"].clone())
}

pub fn expect_reason(world: &World, id: &str, reason: &str) -> Outcome<Value> {
    let report = report(world, id)?;
    ensure!(report["reason"] == reason, "run {id} did not end by {reason}: {report}");
    Ok(report)
}

/// Stops a run that goes on for no other reason.
pub fn stop(world: &mut World, id: &str) -> Outcome {
    tell(world, HERE, &["stop", id])?;
    expect_reason(world, id, "stopped").map(drop)
}

/// Nobody alive, nothing left, nobody hurt. Whoever has just been told to go may take
/// a moment.
pub fn all_clean(world: &World) -> Outcome {
    let within: Duration = PATIENCE;
    world.expect_extinct(within)?;
    desk::all_clean(world)
}

/// Who is who in a run, once it is written down.
pub fn await_who(world: &World, id: &str) -> Outcome<Who> {
    let mut found = who(world, id);
    for _ in 0..3 {
        found = found.or_else(|_| who(world, id));
    }
    found
}
