//! A program that embeds the library is its own guard and keeper, by their names: neither
//! the program's words nor the command's stand in them.

use fullstop::{Command, Run, Runs, blocking};
use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

const WORD: &str = "a-word-of-the-agent";
const SECRET: &str = "a-value-of-the-caller";
/// Longer than anything that is meant to happen at once takes on a busy machine.
const SOON: Duration = Duration::from_secs(10);

#[test]
fn guard_and_keeper_go_by_their_names() -> Result<(), Box<dyn Error>> {
    let dir = std::env::temp_dir().join(format!("fullstop-embedded-{}", std::process::id()));
    // A pid comes again, and one that was killed has left its directory.
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir(&dir)?;
    // Guard and keeper leave this directory, and find the runs nevertheless.
    std::env::set_current_dir(&dir)?;
    let runs = Runs::at(Path::new("state"))?;
    assert_eq!(runs.path(), dir.join("state"));
    for begin in [blocking::spawn, blocking::start] {
        let script = format!("sleep 60; : {WORD}");
        let command = Command::new("sh").args(["-c", &script]).env("KEY", SECRET);
        let run = begin(command.runs(&runs))?;
        let checked = check(&run);
        let report = blocking::wait(run.stop())?;
        assert!(report.proof.is_some(), "{report:?}");
        assert_eq!(blocking::wait(run.record())?.report, Some(report));
        checked?;
    }
    fs::remove_dir_all(&dir)?;
    Ok(())
}

fn check(run: &Run) -> Result<(), String> {
    let until = Instant::now() + SOON;
    let (guard, keeper) = loop {
        let record = blocking::wait(run.record()).map_err(|error| error.to_string())?;
        if let (Some(guard), Some(keeper)) = (record.guard, record.keeper) {
            break (guard.pid, keeper.pid);
        }
        if Instant::now() > until {
            return Err("the record names no guard and keeper".to_owned());
        }
        std::thread::yield_now();
    };
    for (pid, name) in [(guard, "fullstop-guard"), (keeper, "fullstop-keeper")] {
        let of = |file: &str| fs::read(Path::new("/proc").join(pid.to_string()).join(file));
        let read = |file| of(file).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let [comm, line] = ["comm", "cmdline"].map(|file| read(file).unwrap_or_default());
        let shown = format!("{name}\0{}-", run.id());
        if comm.trim_end() != name || !line.starts_with(&shown) {
            return Err(format!("the {name} is called {comm:?}, and shows {line:?}"));
        }
        // Only root may look there.
        let told = format!("{line}{}", read("environ").unwrap_or_default());
        if [WORD, SECRET].iter().any(|word| told.contains(word)) {
            return Err(format!("the {name} tells what it runs: {told:?}"));
        }
    }
    Ok(())
}
