//! The last handle of a run that this program has spawned, and the death of the program itself.

use crate::kit::{SOON, finish, until};
use fullstop::{Command, Ladder, Reason, Report, Run, RunState, Runs, Signal};
use std::error::Error;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// The word by which this program is started as a host.
pub const HOST: &str = "be-a-host";
/// It lets go of its run, and lives on.
const LETS_GO: &str = "lets-go";
const HOLDS_ON: &str = "holds-on";

/// A second to save its work; longer than the short ladder leaves.
const A_SECOND: u32 = 20;
/// Longer than any machine stalls while the short ladder is climbed.
const LONG: u32 = 2400;

/// An agent that saves its work when it is asked to stop, in steps of 50 ms, in a file. Nobody it
/// starts can be killed to make it faster by more than one of these.
fn agent(runs: &Runs, saved: &Path, steps: u32) -> Result<Command, Box<dyn Error>> {
    let script = format!(
        "trap 'i=0; while [ $i -lt {steps} ]; do i=$((i+1)); sleep 0.05; done; echo saved >{}; exit 0' TERM; \
         echo ready >{}; while :; do sleep 0.05; done",
        saved.display(),
        ready(saved).display()
    );
    let ladder: Ladder = "term@leader:300s,kill".parse()?;
    Ok(runs.command("sh").args(["-c", &script]).ladder(ladder))
}

fn ready(saved: &Path) -> PathBuf {
    saved.with_extension("ready")
}

fn is_ready(saved: &Path) -> bool {
    std::fs::read(ready(saved)).is_ok_and(|it| !it.is_empty())
}

/// How it ends, without a handle of it.
fn end_of(runs: &Runs, id: &str) -> fullstop::Result<Report> {
    finish(finish(runs.find(id))?.wait_for(Some(SOON)))
}

pub fn last_handle(runs: &Runs) -> Result<(), Box<dyn Error>> {
    let saved = runs.path().join("work");
    let run = finish(agent(&runs.on_behalf_of("ann"), &saved, A_SECOND)?.spawn())?;
    until("the agent is ready", || is_ready(&saved));
    let id = run.id().to_string();
    // A clone is a handle; what was found is none.
    let clone = run.clone();
    drop(run);
    let found = finish(runs.find(&id))?;
    assert!(is_running(&found)?, "it was stopped with a handle left");
    drop(clone);
    let report = end_of(runs, &id)?;
    assert_eq!(report.reason(), Reason::Stopped);
    assert!(saved.exists(), "it had no time to save its work: {report:?}");
    let asker = report.asked.ok_or("nobody has asked for the end")?;
    assert_eq!(asker.by.as_deref(), Some("ann"));
    assert_eq!(asker.pid, i32::try_from(std::process::id()).ok());
    std::fs::remove_file(ready(&saved))?;

    // One that may outlive this program outlives its handles as well.
    let run = finish(agent(runs, &saved, A_SECOND)?.start())?;
    let started = run.id().to_string();
    let stays = finish(agent(runs, &saved, A_SECOND)?.spawn())?;
    let stayed = stays.id().to_string();
    finish(stays.stay())?;
    drop((run, stays));
    for id in [started, stayed] {
        let found = finish(runs.find(&id))?;
        assert!(is_running(&found)?, "it was to live on");
        finish(found.kill())?;
    }
    Ok(())
}

/// Once its keeper has heard all that was said before.
fn is_running(run: &Run) -> fullstop::Result<bool> {
    for _ in 0..2 {
        finish(run.signal(Signal::WINCH))?;
    }
    Ok(finish(run.record())?.state == RunState::Running)
}

pub fn dead_host(runs: &Runs) -> Result<(), Box<dyn Error>> {
    for (what, reason) in [(HOLDS_ON, Reason::HostGone), (LETS_GO, Reason::Stopped)] {
        let saved = runs.path().join(what);
        let (mut host, id) = start_host(runs, &saved, what)?;
        let killed = host.kill();
        host.wait()?;
        killed?;
        let report = end_of(runs, &id)?;
        assert_eq!(report.reason(), reason, "{what}");
        assert!(!saved.exists(), "{what}: nobody waits for it: {report:?}");
        let steps: Vec<&str> = report.steps.iter().map(|step| &*step.step).collect();
        assert_eq!(steps.last(), Some(&"kill"), "{what}");
        assert!(
            steps.contains(&"term@tree"),
            "{what}: the short ladder was not climbed: {steps:?}"
        );
    }
    Ok(())
}

fn start_host(runs: &Runs, saved: &Path, what: &str) -> Result<(Child, String), Box<dyn Error>> {
    let mut host = std::process::Command::new("/proc/self/exe")
        .args([HOST, what])
        .args([runs.path(), saved])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut id = String::new();
    let out = host.stdout.take().ok_or("no pipe")?;
    BufReader::new(out).read_line(&mut id)?;
    Ok((host, id.trim().to_owned()))
}

/// Tells the id of its run once that is ready, or was let go of, and waits to be killed.
pub fn be_host(mut words: impl Iterator<Item = String>) -> Result<(), Box<dyn Error>> {
    let mut word = || words.next().ok_or("a word is missing");
    let (what, dir, saved) = (word()?, word()?, PathBuf::from(word()?));
    let runs = Runs::at(Path::new(&dir))?;
    // What it writes is not to hold the pipe of the test open.
    let run = finish(agent(&runs, &saved, LONG)?.capture().spawn())?;
    until("the agent is ready", || is_ready(&saved));
    let id = run.id().to_string();
    if what == LETS_GO {
        drop(run);
        // That its own ladder has begun is written down.
        let found = finish(runs.find(&id))?;
        until("it is stopping", || {
            finish(found.record()).is_ok_and(|it| matches!(it.state, RunState::Stopping { .. }))
        });
        println!("{id}");
    } else {
        println!("{id}");
        std::mem::forget(run);
    }
    loop {
        std::thread::park();
    }
}
